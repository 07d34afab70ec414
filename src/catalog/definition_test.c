/* definition_test.c - whole bodies: ids, normal forms (I6), replacements, readers, the
 * documentation. */
#include "catalog/definition_test_int.h"

#include <stdlib.h>

#define DEFAULT_INDEXING                                                                       \
    "'indexingPolicy':{'indexingMode':'consistent','automatic':true,'includedPaths':[{'path':" \
    "'/*'}],'excludedPaths':[{'path':'/\\'_etag\\'/?'}]}"
#define DEFAULT_CONFLICT                                                                   \
    "'conflictResolutionPolicy':{'mode':'LastWriterWins','conflictResolutionPath':'/_ts'," \
    "'conflictResolutionProcedure':''}"
#define DEFAULT_GEO "'geospatialConfig':{'type':'Geography'}"

static void ids_follow_the_rules_of_their_kind(void **state)
{
    (void)state;
    static const struct {
        Slice id;
        bool named, item;
    } ROWS[] = {
        {SLICE_INIT("Db1"), true, true},
        {SLICE_INIT("a b"), true, true},
        {SLICE_INIT(" a"), true, true},
        {SLICE_INIT("caf\xC3\xA9"), true, true},
        {SLICE_INIT("\xF0\x9F\x98\x80"), true, true},
        {SLICE_INIT(""), false, false},
        {SLICE_INIT("a/b"), false, false},
        {SLICE_INIT("a\\b"), false, false},
        {SLICE_INIT("a?"), false, true},
        {SLICE_INIT("#a"), false, true},
        {SLICE_INIT("a "), false, true},
        {SLICE_INIT("a\nb"), false, true},
        {SLICE_INIT("a\0b"), false, true},
        {SLICE_INIT("a\x7F"), false, true},
        {SLICE_INIT("caf\xC3"), false, false},
        {SLICE_INIT("\xED\xA0\x80"), false, false}, /* half a surrogate pair */
    };
    Error err;
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        print_message("%zu: %.*s\n", i, SLICE_ARG(ROWS[i].id));
        assert_int_equal(resource_id_check(ROWS[i].id, RESOURCE_ID_NAMED, &err),
                         ROWS[i].named ? STATUS_OK : STATUS_BAD_REQUEST);
        assert_int_equal(resource_id_check(ROWS[i].id, RESOURCE_ID_ITEM, &err),
                         ROWS[i].item ? STATUS_OK : STATUS_BAD_REQUEST);
    }
}

static void ids_have_a_length_in_characters_or_bytes(void **state)
{
    (void)state;
    Error err;
    char text[3 * 1024];
    for (size_t i = 0; i < sizeof(text); i += 3)
        memcpy(text + i, "\xE2\x82\xAC", 3); /* the euro sign */
    assert_int_equal(resource_id_check(slice_make(text, 3 * 255), RESOURCE_ID_NAMED, &err),
                     STATUS_OK);
    assert_refused(resource_id_check(slice_make(text, 3 * 256), RESOURCE_ID_NAMED, &err), &err,
                   "has 256 characters; the maximum is 255");
    assert_int_equal(resource_id_check(slice_make(text, 1023), RESOURCE_ID_ITEM, &err), STATUS_OK);
    assert_refused(resource_id_check(slice_make(text, 1026), RESOURCE_ID_ITEM, &err), &err,
                   "has 1026 bytes; the maximum is 1023");
    /* What a message repeats is cut between two characters. */
    assert_true(json_utf8_valid(slice_from_cstr(err.message)));
}

static void a_database_is_its_id(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Error err;
    Slice id;
    Json body = row_json(&arena, "{'id':'Db1','_rid':'x','more':{}}");
    assert_int_equal(database_definition_create(&arena, body, &id, &err), STATUS_OK);
    assert_true(slice_equal(id, SLICE("Db1")));
    static const struct {
        const char *body, *message;
    } ROWS[] = {
        {"[]", "The body of a database must be a JSON object; found an array"},
        {"'Db1'", "must be a JSON object; found a string"},
        {"{}", "must have a text 'id'; found nothing"},
        {"{'id':7}", "must have a text 'id'; found a number"},
        {"{'id':null}", "must have a text 'id'; found null"},
        {"{'id':''}", "must not be empty"},
        {"{'id':'a/b'}", "The id 'a/b' must not contain '/'"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        Json refused = row_json(&arena, ROWS[i].body);
        assert_refused(database_definition_create(&arena, refused, &id, &err), &err,
                       ROWS[i].message);
        assert_refused(
            container_definition_create(&arena, refused, (ContainerRules){0}, &(Json){NULL}, &err),
            &err, strstr(ROWS[i].message, "must"));
    }
}

static void the_least_body_gets_all_defaults_in_order(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Error err;
    Json normal;
    assert_int_equal(
        row_create(&arena, "'_rid':'x','_ts':5,'_docs':'docs/','mine':1", &normal, &err),
        STATUS_OK);
    assert_text(&arena, normal,
                "{'id':'c'," DEFAULT_INDEXING
                ",'partitionKey':{'paths':['/pk'],'kind':'Hash'}," DEFAULT_CONFLICT "," DEFAULT_GEO
                "}");
}

static void only_old_clients_may_leave_out_the_partition_key(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Error err;
    Json normal, again;
    Json body = row_json(&arena, "{'id':'c'}");
    Status status = container_definition_create(&arena, body, (ContainerRules){0}, &normal, &err);
    assert_refused(status, &err, "must have a 'partitionKey'");

    ContainerRules old_rules = {.allow_no_partition_key = true};
    status = container_definition_create(&arena, body, old_rules, &normal, &err);
    assert_int_equal(status, STATUS_OK);
    assert_text(&arena, normal,
                "{'id':'c'," DEFAULT_INDEXING "," DEFAULT_CONFLICT "," DEFAULT_GEO "}");
    PartitionKeyDefinition key;
    assert_int_equal(container_partition_key(&arena, normal, &key, &err), STATUS_OK);
    assert_int_equal(key.kind, PARTITION_NONE);
    assert_int_equal(key.path_count, 0);

    /* A newer client sees the system key and sends it back; the container stays as it is. */
    Json with_key = row_json(&arena, "{'id':'c','partitionKey':{'paths':['/_partitionKey'],'kind':"
                                     "'Hash','systemKey':true}}");
    status = container_definition_replace(&arena, normal, with_key, &again, &err);
    assert_int_equal(status, STATUS_OK);
    assert_true(json_equal(normal, again));
    status = container_definition_replace(&arena, normal, row_body(&arena, ""), &again, &err);
    assert_refused(status, &err, "'partitionKey' is fixed");
}

/* A container with everything that can be fixed, and some of what cannot. */
#define RICH                                                                                    \
    "'defaultTtl':60,'uniqueKeyPolicy':{'uniqueKeys':[{'paths':['/u']}]},"                      \
    "'conflictResolutionPolicy':{'mode':'Custom'},'computedProperties':[{'name':'cp','query':"  \
    "'q'}],'indexingPolicy':{'includedPaths':[{'path':'/*'},{'path':'/cp/?'},{'path':'/x/?'}]," \
    "'compositeIndexes':[[{'path':'/y'},{'path':'/z'}]],'vectorIndexes':[{'path':'/v','type':"  \
    "'quantizedFlat'}]},'vectorEmbeddingPolicy':{'vectorEmbeddings':[{'path':'/v','dataType':"  \
    "'int8','dimensions':9,'distanceFunction':'cosine'}]},'clientEncryptionPolicy':"            \
    "{'policyFormatVersion':2,'includedPaths':[]},'partitionKey':{'paths':['/pk'],'version':2}"
#define EMBEDDING(path, dimensions)                                                \
    "'vectorEmbeddingPolicy':{'vectorEmbeddings':[{'path':'/v','dataType':'int8'," \
    "'dimensions':9,'distanceFunction':'cosine'},{'path':'" path                   \
    "','dataType':'int8','dimensions':" dimensions ",'distanceFunction':'cosine'}]}"
#define ENCRYPTION "'clientEncryptionPolicy':{'includedPaths':[],'policyFormatVersion':2}"
#define SAME       EMBEDDING("/w", "3") "," ENCRYPTION

static void a_replacement_keeps_what_is_fixed_and_resets_what_is_left_out(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 14);
    Error err;
    Json old, normal;
    assert_int_equal(row_create(&arena, RICH, &old, &err), STATUS_OK);
    assert_int_equal(container_definition_replace(&arena, old, old, &normal, &err), STATUS_OK);
    assert_text(&arena, normal, arena_cstr(&arena, json_print_arena(&arena, old)));

    /* The partition key without its version, two embeddings, and nothing else. */
    Json body = row_body(&arena, SAME);
    if (container_definition_replace(&arena, old, body, &normal, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    assert_text(&arena, normal,
                "{'id':'c'," DEFAULT_INDEXING
                ",'partitionKey':{'paths':['/pk'],'kind':'Hash','version':2},'uniqueKeyPolicy':"
                "{'uniqueKeys':[{'paths':['/u']}]},'conflictResolutionPolicy':{'mode':'Custom',"
                "'conflictResolutionPath':'','conflictResolutionProcedure':''}," DEFAULT_GEO
                "," SAME "}");

    body = row_json(&arena, "{'id':'c'," SAME "}");
    Json without_key;
    assert_int_equal(container_definition_replace(&arena, old, body, &without_key, &err),
                     STATUS_OK);
    assert_true(json_equal(normal, without_key));
}

static void a_replacement_that_changes_what_is_fixed_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *members, *message;
    } ROWS[] = {
        {"'id':'d'," SAME, "The id of a container cannot be changed; it is 'c', found 'd'"},
        {"'partitionKey':{'paths':['/other']}," SAME, "'partitionKey' is fixed"},
        {"'partitionKey':{'paths':['/pk'],'version':1}," SAME, "'partitionKey' is fixed"},
        {"'partitionKey':{'paths':['/pk'],'kind':'MultiHash','version':2}," SAME,
         "'partitionKey' is fixed"},
        {"'uniqueKeyPolicy':{'uniqueKeys':[]}," SAME, "'uniqueKeyPolicy' is fixed"},
        {"'uniqueKeyPolicy':{'uniqueKeys':[{'paths':['/u','/v']}]}," SAME,
         "'uniqueKeyPolicy' is fixed"},
        {"'conflictResolutionPolicy':{'mode':'LastWriterWins'}," SAME,
         "Updating conflict resolution policy is currently not supported"},
        {"'clientEncryptionPolicy':{'policyFormatVersion':1}," EMBEDDING("/w", "3"),
         "'clientEncryptionPolicy' cannot be changed as part of collection replace operation."},
        {EMBEDDING("/w", "3"),
         "'clientEncryptionPolicy' cannot be changed as part of collection replace"},
        {"'defaultTtl':1," ENCRYPTION,
         "Paths in existing embedding policy cannot be modified in Collection "
         "Replace; '/v' is missing"},
        {"'vectorEmbeddingPolicy':{'vectorEmbeddings':[{'path':'/v','dataType':'int8','dimensions':"
         "10,'distanceFunction':'cosine'}]}," ENCRYPTION,
         "Paths in existing embedding policy cannot be modified in Collection Replace; '/v' is "
         "different"},
        {"'indexingPolicy':{'vectorIndexes':[{'path':'/v','type':'flat'}]}," SAME,
         "Paths in existing vector indexing policy cannot be modified in Collection Replace"},
        {"'indexingPolicy':{'vectorIndexes':[{'path':'/v','type':'quantizedFlat',"
         "'quantizationByteSize':3}]}," SAME,
         "Paths in existing vector indexing policy cannot be modified"},
        /* What would be refused at creation is said first. */
        {"'conflictResolutionPolicy':{'mode':'LastWriterWins','conflictResolutionPath':'/a/"
         "b'}," SAME,
         "Invalid path '/a/b' for last writer wins conflict resolution"},
        {"'id':'d','defaultTtl':0," SAME, "defaultTtl must be -1"},
        {"'id':'d','computedProperties':[{'name':'id','query':'q'}]," SAME,
         "The system property name 'id'"},
        {"'indexingPolicy':{'vectorIndexes':[{'path':'/v','type':'quantizedFlat'}]}," ENCRYPTION,
         "The Vector Indexing Policy's path::/v not matching in Embedding's path."},
        /* A computed property must not take over the index of a stored one. */
        {"'computedProperties':[{'name':'cp','query':'q'},{'name':'x','query':'q'}]," SAME,
         "Computed property 'x' at index (1) has the name of a path"},
        {"'computedProperties':[{'name':'z','query':'q'}]," SAME, "Computed property 'z'"},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 14);
    Error err;
    Json old, normal;
    assert_int_equal(row_create(&arena, RICH, &old, &err), STATUS_OK);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        print_message("%s\n", ROWS[i].members);
        Json body = row_body(&arena, ROWS[i].members);
        Status status = container_definition_replace(&arena, old, body, &normal, &err);
        assert_refused(status, &err, ROWS[i].message);
    }
}

static void a_conflict_policy_is_compared_in_its_normal_form(void **state)
{
    (void)state;
    static const struct {
        const char *old, *sent;
    } ROWS[] = {
        {"", "'conflictResolutionPolicy':{'mode':'LastWriterWins'}"},
        {"", "'conflictResolutionPolicy':{'conflictResolutionPath':null}"},
        {"", "'conflictResolutionPolicy':null"},
        {"", ""},
        {"'conflictResolutionPolicy':{'mode':'Custom','conflictResolutionProcedure':'p'}", ""},
        {"'conflictResolutionPolicy':{'mode':'LastWriterWins','conflictResolutionPath':'/a'}",
         "'conflictResolutionPolicy':{'mode':'lastWriterWins','conflictResolutionPath':'/a',"
         "'conflictResolutionProcedure':''}"},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 14);
    Error err;
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        Json old, normal;
        assert_int_equal(row_create(&arena, ROWS[i].old, &old, &err), STATUS_OK);
        Json body = row_body(&arena, ROWS[i].sent);
        if (container_definition_replace(&arena, old, body, &normal, &err) != STATUS_OK)
            fail_msg("row %zu: %s", i, err.message);
        assert_true(json_equal(old, normal));
    }
}

static void a_replacement_may_add_computed_properties_and_drop_vector_indexes(void **state)
{
    (void)state;
    static const char *const ROWS[] = {
        SAME ",'indexingPolicy':{'vectorIndexes':[{'path':'/w','type':'flat'}]}",
        SAME ",'computedProperties':[{'name':'cp','query':'another'},{'name':'new','query':'q'}]",
        SAME ",'partitionKey':{'paths':['/pk'],'systemKey':false}",
        SAME ",'geospatialConfig':{'type':'Geometry'}",
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 14);
    Error err;
    Json old, normal;
    assert_int_equal(row_create(&arena, RICH, &old, &err), STATUS_OK);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        Json body = row_body(&arena, ROWS[i]);
        if (container_definition_replace(&arena, old, body, &normal, &err) != STATUS_OK)
            fail_msg("%s: %s", ROWS[i], err.message);
    }
    /* No policy and an empty one are the same promise. */
    assert_int_equal(row_create(&arena, "", &old, &err), STATUS_OK);
    Json body = row_body(&arena, "'uniqueKeyPolicy':{'uniqueKeys':[]},'partitionKey':{'paths':"
                                 "['/pk'],'version':1}");
    assert_int_equal(container_definition_replace(&arena, old, body, &normal, &err), STATUS_OK);
    assert_true(json_equal(old, normal));
}

static void readers_give_what_the_engine_needs(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 14);
    Error err;
    Json normal;
    const char *members =
        "'partitionKey':{'paths':['/t','/a/\\'b c\\''],'kind':'MultiHash',"
        "'version':2},'uniqueKeyPolicy':{'uniqueKeys':[{'paths':['/x','/y/z']}]},"
        "'computedProperties':[{'name':'n','query':'q'},{'name':'m','query':'r'}],"
        "'defaultTtl':77,'changeFeedPolicy':{'retentionDuration':5}";
    assert_int_equal(row_create(&arena, members, &normal, &err), STATUS_OK);

    PartitionKeyDefinition key;
    assert_int_equal(container_partition_key(&arena, normal, &key, &err), STATUS_OK);
    assert_int_equal(key.kind, PARTITION_MULTI_HASH);
    assert_int_equal(key.path_count, 2);
    assert_int_equal(key.paths[1].count, 2);
    assert_true(slice_equal(key.paths[1].segments[1], SLICE("b c")));
    assert_false(key.system_key);

    UniqueKey keys[UNIQUE_KEYS_MAX];
    size_t count;
    assert_int_equal(container_unique_keys(&arena, normal, keys, &count, &err), STATUS_OK);
    assert_int_equal(count, 1);
    assert_int_equal(keys[0].path_count, 2);
    assert_true(slice_equal(keys[0].paths[1].segments[1], SLICE("z")));

    ComputedProperty computed[COMPUTED_PROPERTIES_MAX];
    assert_int_equal(container_computed_properties(normal, computed), 2);
    assert_true(slice_equal(computed[1].name, SLICE("m")));
    assert_true(slice_equal(computed[1].query, SLICE("r")));
    assert_int_equal(container_default_ttl_s(normal), 77);
}

static void the_kind_of_a_key_follows_from_kind_and_version(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        PartitionKind kind;
        bool system_key;
    } ROWS[] = {
        {"{'paths':['/a']}", PARTITION_HASH_V1, false},
        {"{'paths':['/a'],'version':1}", PARTITION_HASH_V1, false},
        {"{'paths':['/a'],'version':2}", PARTITION_HASH_V2, false},
        {"{'paths':['/a'],'kind':'MultiHash','version':2}", PARTITION_MULTI_HASH, false},
        {"{'paths':['/_partitionKey'],'systemKey':true}", PARTITION_HASH_V1, true},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        Error err;
        Json normal;
        PartitionKeyDefinition key;
        Slice members = arena_format(&arena, "'partitionKey':%s", ROWS[i].key);
        assert_int_equal(row_create(&arena, arena_cstr(&arena, members), &normal, &err), STATUS_OK);
        assert_int_equal(container_partition_key(&arena, normal, &key, &err), STATUS_OK);
        assert_int_equal(key.kind, ROWS[i].kind);
        assert_int_equal(key.system_key, ROWS[i].system_key);
        assert_int_equal(container_default_ttl_s(normal), 0);
    }
}

static void readers_report_what_is_not_a_normal_form(void **state)
{
    (void)state;
    static const char *const ROWS[] = {
        "[]",
        "{'partitionKey':7}",
        "{'partitionKey':{'paths':[],'kind':'Hash'}}",
        "{'partitionKey':{'paths':['pk'],'kind':'Hash'}}",
        "{'partitionKey':{'paths':[7],'kind':'Hash'}}",
        "{'partitionKey':{'paths':['/a','/b','/c','/d'],'kind':'MultiHash'}}",
        "{'partitionKey':{'paths':['/a']}}",
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Error err;
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        PartitionKeyDefinition key = {.path_count = 99};
        Json stored = row_json(&arena, ROWS[i]);
        assert_int_equal(container_partition_key(&arena, stored, &key, &err), STATUS_CORRUPT);
        assert_int_equal(key.path_count, 99);
    }
    UniqueKey keys[UNIQUE_KEYS_MAX];
    size_t count;
    Json stored = row_json(&arena, "{'uniqueKeyPolicy':{'uniqueKeys':[{'paths':['/a']},{}]}}");
    assert_int_equal(container_unique_keys(&arena, stored, keys, &count, &err), STATUS_CORRUPT);
}

/* The documentation, found beside the sources from the name of this file. */
static Slice read_docs(Arena *arena)
{
    Slice here = slice_from_cstr(__FILE__);
    Slice tail = SLICE("src/catalog/definition_test.c");
    assert_true(slice_ends_with(here, tail));
    Slice path =
        arena_format(arena, "%.*sdocs/containers.md", (int)(here.len - tail.len), here.ptr);
    FILE *file = fopen(arena_cstr(arena, path), "rb");
    assert_non_null(file);
    size_t size_max = 1 << 20;
    char *text = arena_alloc(arena, size_max);
    size_t len = fread(text, 1, size_max, file);
    fclose(file);
    assert_true(len > 0 && len < size_max);
    return slice_make(text, len);
}

/* The block as a body: with an id and a partition key, if it shows only some properties. */
static Json example_body(Arena *arena, Slice block)
{
    Error err;
    Json example;
    if (json_parse(arena, block, &example, &err) != STATUS_OK)
        fail_msg("%.*s: %s", SLICE_ARG(block), err.message);
    if (!json_is(json_get(example, SLICE("id")), JSON_UNDEFINED))
        return example;
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    JsonIter least = json_iter(row_body(arena, ""));
    while (json_next(&least)) {
        json_key(&b, least.name);
        json_add(&b, least.value);
    }
    JsonIter it = json_iter(example);
    while (json_next(&it)) {
        json_key(&b, it.name);
        json_add(&b, it.value);
    }
    json_end(&b);
    return json_built(&b);
}

static void the_examples_of_the_documentation_are_true(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    Slice rest = read_docs(&arena);
    size_t accepted = 0, refused = 0;
    while (rest.len > 0) {
        Slice line = slice_cut(&rest, '\n');
        bool is_refused = slice_equal(line, SLICE("```json refused"));
        if (!is_refused && !slice_equal(line, SLICE("```json")))
            continue;
        Slice block = rest;
        size_t len = 0;
        while (!slice_starts_with(slice_from(block, len), SLICE("\n```")) && len < block.len)
            ++len;
        block = slice_first(block, len);
        Json normal;
        Error err = {.message = ""};
        Status status = container_definition_create(&arena, example_body(&arena, block),
                                                    (ContainerRules){0}, &normal, &err);
        if (status != (is_refused ? STATUS_BAD_REQUEST : STATUS_OK))
            fail_msg("%.*s\n%s", SLICE_ARG(block), err.message);
        *(is_refused ? &refused : &accepted) += 1;
        rest = slice_from(rest, len);
    }
    print_message("%zu accepted, %zu refused\n", accepted, refused);
    assert_true(accepted >= 10);
    assert_true(refused >= 10);
}

static void a_key_has_all_its_parts(void **state)
{
    (void)state;
    static const struct {
        const char *body, *message; /* NULL if it is accepted */
    } ROWS[] = {
        {"{'id':'k','encryptionAlgorithm':'A','wrappedDataEncryptionKey':'AQID','keyWrapMetadata':"
         "{'type':'t','x':[1]},'_rid':'r','more':1}",
         NULL},
        {"[]", "must be a JSON object"},
        {"{'encryptionAlgorithm':'A','wrappedDataEncryptionKey':'AQID','keyWrapMetadata':{}}",
         "must have a text 'id'"},
        {"{'id':'a/b','encryptionAlgorithm':'A','wrappedDataEncryptionKey':'AQID',"
         "'keyWrapMetadata':{}}",
         "must not contain '/'"},
        {"{'id':'k','wrappedDataEncryptionKey':'AQID','keyWrapMetadata':{}}",
         "'encryptionAlgorithm'"},
        {"{'id':'k','encryptionAlgorithm':'A','keyWrapMetadata':{}}", "'wrappedDataEncryptionKey'"},
        {"{'id':'k','encryptionAlgorithm':'A','wrappedDataEncryptionKey':'?','keyWrapMetadata':{}}",
         "must be base64"},
        {"{'id':'k','encryptionAlgorithm':'A','wrappedDataEncryptionKey':7,'keyWrapMetadata':{}}",
         "must be a string; found a number"},
        {"{'id':'k','encryptionAlgorithm':'A','wrappedDataEncryptionKey':'AQID'}",
         "'keyWrapMetadata', an object; found nothing"},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        Json normal;
        Error err;
        Status status =
            encryption_key_definition_create(&arena, row_json(&arena, ROWS[i].body), &normal, &err);
        if (ROWS[i].message != NULL) {
            assert_refused(status, &err, ROWS[i].message);
            continue;
        }
        assert_int_equal(status, STATUS_OK);
        assert_text(&arena, normal,
                    "{'id':'k','encryptionAlgorithm':'A','wrappedDataEncryptionKey':'AQID',"
                    "'keyWrapMetadata':{'type':'t','x':[1]}}");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_follow_the_rules_of_their_kind),
        cmocka_unit_test(ids_have_a_length_in_characters_or_bytes),
        cmocka_unit_test(a_database_is_its_id),
        cmocka_unit_test(the_least_body_gets_all_defaults_in_order),
        cmocka_unit_test(only_old_clients_may_leave_out_the_partition_key),
        cmocka_unit_test(a_replacement_keeps_what_is_fixed_and_resets_what_is_left_out),
        cmocka_unit_test(a_replacement_that_changes_what_is_fixed_is_refused),
        cmocka_unit_test(a_conflict_policy_is_compared_in_its_normal_form),
        cmocka_unit_test(a_replacement_may_add_computed_properties_and_drop_vector_indexes),
        cmocka_unit_test(readers_give_what_the_engine_needs),
        cmocka_unit_test(the_kind_of_a_key_follows_from_kind_and_version),
        cmocka_unit_test(readers_report_what_is_not_a_normal_form),
        cmocka_unit_test(the_examples_of_the_documentation_are_true),
        cmocka_unit_test(a_key_has_all_its_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
