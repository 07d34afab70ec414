/* seed_file_test.c - seed files: what is accepted, what is refused and where, and the files beside
 * them. */
#include "seed/seed_file.h"

#include "base/buf.h"
#include "base/testing.h"
#include "seed/seed_body.h"
#include "seed/seed_place.h"

static Status parse(const char *row, Error *err)
{
    Json root;
    return seed_file_parse(&test_arena, row_text(&test_arena, row), NULL, &root, err);
}

static void good_files_are_accepted(void **state)
{
    (void)state;
    const char *const rows[] = {
        "{'databases':[]}",
        "{'databases':[{'id':'a','throughput':400,'_rid':'x','_ts':1}]}",
        "{'databases':[{'id':'a','absent':true},{'id':'b','maxThroughput':4000}]}",
        "{'databases':[{'id':'a','absent':false}]}",
        "{'databases':[{'id':'a','containers':[{'id':'c','partitionKey':['/a','/b'],'_docs':'docs/'"
        "}]}]}",
        "{'databases':[{'id':'a','containers':[{'id':'c','partitionKey':['/a']},"
        "{'id':'C','partitionKey':'/id'}]}]}",
        "{'databases':[{'id':'a','containers':[{'id':'c','partitionKey':{'paths':['/a']},"
        "'items':[{'id':'1','anything':{'absent':1}}],"
        "'itemsFrom':['x.jsonl',{'file':'a/b.csv','set':{'/a':'{b}'},'idFrom':'/n'}],"
        "'storedProcedures':[{'id':'p','file':'p.js'}]}]}]}",
        "{'databases':[{'id':'a','users':[{'id':'u','permissions':[{'id':'p','permissionMode':'"
        "Read'"
        ",'resource':'dbs/a/colls/c','resourcePartitionKey':[1]}]}]}]}",
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_ok(parse(rows[i], err));
}

static void mistakes_are_refused_with_their_place(void **state)
{
    (void)state;
#define IN_CONTAINER(members) \
    "{'databases':[{'id':'d','containers':[{'id':'c','partitionKey':'/pk'," members "}]}]}"
    const struct {
        const char *row;
        const char *begins; /* the message */
    } rows[] = {
        {"", "line 1, column 1: "},
        {"{\n  'databases': [1,]}", "line 2, column "},
        {"[]", "$: expected an object, found a list"},
        {"{}", "$: 'databases' is missing"},
        {"{'databases':null}", "$.databases: expected a list, found null"},
        {"{'databases':[1]}", "$.databases[0]: expected an object, found a number"},
        {"{'databases':[{'id':1}]}", "$.databases[0].id: expected text, found a number"},
        {"{'databases':[{'id':''}]}", "$.databases[0]: "},
        {"{'databases':[{'id':'a'},{'id':'a'}]}",
         "$.databases[1]: the id 'a' was used before, in element 0"},
        {"{'databases':[{'id':'a','throughput':0}]}",
         "$.databases[0].throughput: expected a whole number"},
        {"{'databases':[{'id':'a','throughput':400,'maxThroughput':4000}]}",
         "$.databases[0]: 'throughput' (manual) and"},
        {"{'databases':[{'id':'a','absent':true,'users':[]}]}",
         "$.databases[0]: 'absent' is true, so 'users'"},
        {"{'databases':[{'id':'a','my key':1}]}",
         "$.databases[0]: there is no member 'my key' here; expected one of: id, throughput,"},
        {"{'databases':[{'id':'a','collections':[]}]}",
         "$.databases[0]: there is no member 'collections' here; did you mean 'containers'?"},
        {"{'databases':[{'id':'d','containers':[{'id':'c'}]}]}", "$.databases[0].containers[0]: "},
        {IN_CONTAINER("'indexingPolicy':{'excludedPaths':[{'path':'/*','x':1}]}"),
         "$.databases[0].containers[0].indexingPolicy.excludedPaths[0]: there is no member 'x'"},
        {IN_CONTAINER("'indexingPolicy':{'compositeIndexes':[[{'order':'ascending'}]]}"),
         "$.databases[0].containers[0].indexingPolicy.compositeIndexes[0][0]: 'path' is missing"},
        {IN_CONTAINER("'items':[{}]"), "$.databases[0].containers[0].items[0]: an item needs"},
        {IN_CONTAINER("'items':[{'id':7}]"), "$.databases[0].containers[0].items[0]: an item"},
        {IN_CONTAINER("'itemsFrom':['/a']"), "$.databases[0].containers[0].itemsFrom[0]: '/a'"},
        {IN_CONTAINER("'itemsFrom':['a//b']"), "$.databases[0].containers[0].itemsFrom[0]: 'a//b'"},
        {IN_CONTAINER("'itemsFrom':['a/']"), "$.databases[0].containers[0].itemsFrom[0]: 'a/'"},
        {IN_CONTAINER("'itemsFrom':['']"), "$.databases[0].containers[0].itemsFrom[0]: ''"},
        {IN_CONTAINER("'itemsFrom':['x/..']"), "$.databases[0].containers[0].itemsFrom[0]: 'x/..'"},
        {IN_CONTAINER("'itemsFrom':[{'file':'x','format':'xml'}]"),
         "$.databases[0].containers[0].itemsFrom[0]: 'format' must be"},
        {IN_CONTAINER("'itemsFrom':[{'file':'x','delimiter':''}]"),
         "$.databases[0].containers[0].itemsFrom[0]: 'delimiter' must be"},
        {IN_CONTAINER("'itemsFrom':[{'file':'x','set':{'/a':1}}]"),
         "$.databases[0].containers[0].itemsFrom[0]: 'set' must have"},
        {IN_CONTAINER("'storedProcedures':[{'id':'p','body':'','file':'x'}]"),
         "$.databases[0].containers[0].storedProcedures[0]: expected either"},
        {IN_CONTAINER("'triggers':[{'id':'t','body':'x'}]"),
         "$.databases[0].containers[0].triggers[0]: "},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Error err = {.message = ""};
        assert_int_not_equal(parse(rows[i].row, &err), STATUS_OK);
        if (strncmp(err.message, rows[i].begins, strlen(rows[i].begins)) != 0)
            fail_msg("expected '%s', found '%s' for %s", rows[i].begins, err.message, rows[i].row);
    }
}

static void a_place_is_printed_as_a_path(void **state)
{
    (void)state;
    const SeedPlace root = {0};
    SeedPlace list = seed_place_member(&root, SLICE("databases"));
    SeedPlace element = seed_place_element(&list, 12);
    SeedPlace odd = seed_place_member(&element, SLICE("a \"b\""));
    assert_string_equal(seed_place_text(&root).text, "$");
    assert_string_equal(seed_place_text(&odd).text, "$.databases[12][\"a \\\"b\\\"\"]");
    /* Many long names are cut, not more. */
    SeedPlace chain[100];
    for (size_t i = 0; i < ARRAY_COUNT(chain); i++)
        chain[i] = seed_place_member(i == 0 ? &root : &chain[i - 1], SLICE("a_rather_long_name"));
    assert_true(strlen(seed_place_text(&chain[99]).text) < SEED_PLACE_BYTES_MAX);
}

static void short_partition_keys_become_definitions(void **state)
{
    (void)state;
    const struct {
        const char *row;
        const char *body;
    } rows[] = {
        {"{'id':'c','partitionKey':'/pk','throughput':1,'items':[],'_ts':1}",
         "{'id':'c','partitionKey':{'paths':['/pk'],'kind':'Hash','version':2}}"},
        {"{'partitionKey':['/a','/b'],'absent':false}",
         "{'partitionKey':{'paths':['/a','/b'],'kind':'MultiHash','version':2}}"},
        {"{'partitionKey':['/a']}", "{'partitionKey':{'paths':['/a'],'kind':'Hash','version':2}}"},
        {"{'partitionKey':{'paths':['/a']},'defaultTtl':5}",
         "{'partitionKey':{'paths':['/a']},'defaultTtl':5}"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Json container;
        assert_ok(json_parse(&test_arena, row_text(&test_arena, rows[i].row), &container, err));
        Json body = seed_container_body(&test_arena, container);
        assert_slice(json_print_arena(&test_arena, body), row_text(&test_arena, rows[i].body));
    }
}

static void a_huge_list_is_refused(void **state)
{
    (void)state;
    AUTO(buf_done) Buf text;
    buf_init(&text, 4 << 20);
    buf_slice(&text, SLICE("{\"databases\":["));
    for (int i = 0; i < 20000; i++)
        buf_format(&text, "%s{\"id\":\"%d\"}", i == 0 ? "" : ",", i);
    buf_slice(&text, SLICE("]}"));
    Json root;
    Error err;
    assert_status(seed_file_parse(&test_arena, buf_view(&text), NULL, &root, &err),
                  STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, "$.databases: a list of 20000"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(good_files_are_accepted),      TEST(mistakes_are_refused_with_their_place),
        TEST(a_place_is_printed_as_a_path), TEST(short_partition_keys_become_definitions),
        TEST(a_huge_list_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
