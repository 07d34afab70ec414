/* copy_plan_test.c - changes of the source and what becomes of them in the copy. */
#include "transfer/copy_plan.h"

#include "json/json_testing.h"

static CopyKeys make_keys(const char *from, const char *to)
{
    CopyKeys keys = {.source = {.kind = PARTITION_NONE}, .target = {.kind = PARTITION_HASH_V2}};
    size_t position = 0;
    if (from != NULL) {
        keys.source = (PartitionKeyDefinition){.kind = PARTITION_HASH_V2, .path_count = 1};
        assert_true(property_path_parse(&test_arena, slice_from_cstr(from), &keys.source.paths[0],
                                        &position));
    }
    position = 0;
    keys.target.path_count = 1;
    assert_true(
        property_path_parse(&test_arena, slice_from_cstr(to), &keys.target.paths[0], &position));
    return keys;
}

/* What the copy has: rows, of which each has its ETag in 'e'. */
static size_t make_found(const CopyKeys *keys, const char *rows, CopyFound out[8])
{
    size_t count = 0;
    for (JsonIter it = json_iter(row_json(&test_arena, rows)); json_next(&it); count++) {
        out[count].etag = json_string(json_get(it.value, SLICE("e")));
        partition_key_extract(&keys->source, it.value, &out[count].source_key);
        partition_key_extract(&keys->target, it.value, &out[count].target_key);
    }
    return count;
}

static Slice print_plan(const CopyKeys *keys, const char *page, const char *rows)
{
    static const char *const names[] = {"create", "upsert", "replace", "delete"};
    CopyFound found[8];
    CopyStep steps[9];
    CopyChange *changes = NULL;
    size_t change_count = 0;
    size_t step_count = 0;
    Slice text = arena_format(&test_arena, "{'Documents':[%s]}", page);
    assert_ok(copy_changes_parse(&test_arena, row_json(&test_arena, arena_cstr(&test_arena, text)),
                                 keys, &changes, &change_count, err));
    assert_int_equal(change_count, 1);
    size_t count = make_found(keys, rows, found);
    Buf out;
    buf_init(&out, 1000);
    if (!copy_plan(keys, &changes[0], found, count, steps, &step_count))
        buf_slice(&out, SLICE("collision"));
    for (size_t i = 0; i < step_count; i++)
        buf_format(&out, "%s%s %.*s%.*s", i == 0 ? "" : ", ", names[steps[i].act],
                   SLICE_ARG(json_is(steps[i].key.parts[0], JSON_STRING)
                                 ? json_string(steps[i].key.parts[0])
                                 : SLICE("-")),
                   SLICE_ARG(steps[i].etag));
    Slice result = arena_copy(&test_arena, buf_view(&out));
    buf_done(&out);
    return result;
}

#define WRITE(user)                                                         \
    "{'current':{'id':'1','pk':'a','user':'" user "'},'metadata':{'lsn':7," \
    "'operationType':'replace'}}"
#define DELETE                                                                            \
    "{'current':{},'metadata':{'lsn':7,'operationType':'delete','id':'1','partitionKey':" \
    "{'pk':'a'}}}"

static void what_the_copy_has_decides(void **state)
{
    (void)state;
    static const struct {
        const char *page;
        const char *rows;
        const char *expected;
    } table[] = {
        {WRITE("u"), "[]", "create u"},
        {WRITE("u"), "[{'pk':'a','user':'u','e':'*'}]", "replace u*"},
        {WRITE("u"), "[{'pk':'a','user':'v','e':'*'}]", "delete v*, create u"},
        {WRITE("u"), "[{'pk':'a','user':'v','e':'!'},{'pk':'a','user':'u','e':'*'}]",
         "delete v!, replace u*"},
        {WRITE("u"), "[{'pk':'b','user':'v','e':'*'}]", "create u"},
        {WRITE("u"), "[{'pk':'b','user':'u','e':'*'}]", "collision"},
        {WRITE("u"), "[{'pk':'b','user':'u','e':'*'},{'pk':'a','user':'v','e':'!'}]", "collision"},
        {DELETE, "[]", ""},
        {DELETE, "[{'pk':'b','user':'u','e':'*'}]", ""},
        {DELETE, "[{'pk':'a','user':'u','e':'*'},{'pk':'b','user':'u','e':'!'}]", "delete u*"},
        {DELETE, "[{'pk':'a','user':'u','e':'*'},{'pk':'a','user':'v','e':'!'}]",
         "delete u*, delete v!"},
        {"{'id':'1','pk':'a','_lsn':3}", "[{'pk':'a','user':'u','e':'*'}]", "delete u*, create -"},
        {"{'current':{},'previous':{'id':'1','pk':'a'},'metadata':{'lsn':1,'operationType':"
         "'delete'}}",
         "[{'pk':'a','user':'u','e':'*'}]", "delete u*"},
    };
    CopyKeys keys = make_keys("/pk", "/user");
    assert_false(copy_keys_are_same(&keys));
    for (size_t i = 0; i < ARRAY_COUNT(table); i++)
        assert_slice(print_plan(&keys, table[i].page, table[i].rows),
                     slice_from_cstr(table[i].expected));
}

static void without_a_key_the_id_is_enough(void **state)
{
    (void)state;
    CopyKeys keys = make_keys(NULL, "/user");
    assert_false(copy_keys_are_same(&keys));
    assert_slice(print_plan(&keys, WRITE("u"), "[{'user':'v','e':'*'}]"),
                 SLICE("delete v*, create u"));
    assert_slice(print_plan(&keys,
                            "{'current':{},'metadata':{'lsn':1,'operationType':'delete',"
                            "'id':'1'}}",
                            "[{'user':'v','e':'*'}]"),
                 SLICE("delete v*"));
    CopyKeys same = make_keys("/pk", "/pk");
    assert_true(copy_keys_are_same(&same));
}

static void the_last_change_of_an_item_counts(void **state)
{
    (void)state;
    CopyKeys keys = make_keys("/pk", "/user");
    CopyChange *changes = NULL;
    size_t count = 0;
    Json page = row_json(
        &test_arena, "{'Documents':[" WRITE("u") "," WRITE(
                         "v") ","
                              "{'current':{'id':'1','pk':'b'},'metadata':{'lsn':8}}," DELETE "]}");
    assert_ok(copy_changes_parse(&test_arena, page, &keys, &changes, &count, err));
    assert_int_equal(count, 2);
    assert_true(json_is(changes[0].item, JSON_UNDEFINED));
    assert_slice(json_string(changes[1].key.parts[0]), SLICE("b"));
}

static void what_is_no_page_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{}",
        "{'Documents':7}",
        "{'Documents':[7]}",
        "{'Documents':[{'pk':'a'}]}",
        "{'Documents':[{'current':{},'metadata':{'lsn':1,'operationType':'delete'}}]}",
        "{'Documents':[{'current':{},'metadata':{'lsn':1,'operationType':'delete','id':'1'}}]}",
        "{'Documents':[{'current':7,'metadata':{'lsn':1}}]}",
    };
    CopyKeys keys = make_keys("/pk", "/user");
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        CopyChange *changes = NULL;
        size_t count = 0;
        Error err;
        assert_int_equal(copy_changes_parse(&test_arena, row_json(&test_arena, rows[i]), &keys,
                                            &changes, &count, &err),
                         STATUS_UNAVAILABLE);
    }
}

static void an_item_is_sent_without_what_the_server_added(void **state)
{
    (void)state;
    AUTO(buf_done) Buf out;
    buf_init(&out, 1000);
    CopyChange change = {.item = row_json(&test_arena, "{'id':'1','_ts':1,'_rid':'x','_lsn':4,"
                                                       "'n':1234567890123456}")};
    copy_item_print(&change, &out);
    assert_slice(buf_view(&out), SLICE("{\"id\":\"1\",\"_lsn\":4,\"n\":1234567890123456}"));
    buf_reset(&out);
    change.has_lsn = true;
    copy_item_print(&change, &out);
    assert_slice(buf_view(&out), SLICE("{\"id\":\"1\",\"n\":1234567890123456}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(what_the_copy_has_decides),
        TEST(without_a_key_the_id_is_enough),
        TEST(the_last_change_of_an_item_counts),
        TEST(what_is_no_page_is_refused),
        TEST(an_item_is_sent_without_what_the_server_added),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
