/* partition_key_header_test.c - partition keys in headers and in documents. */
#include "api/core/partition_key_header_int.h"

#include "api/tests/testing_int.h"

typedef enum Shape { V1, V2, TWO, THREE, NONE, SYSTEM } Shape;

static PartitionKeyDefinition definition_of(Arena *arena, Shape shape)
{
    static const struct {
        PartitionKind kind;
        size_t path_count;
        bool system_key;
    } shapes[] = {
        [V1] = {PARTITION_HASH_V1, 1},     [V2] = {PARTITION_HASH_V2, 1},
        [TWO] = {PARTITION_MULTI_HASH, 2}, [THREE] = {PARTITION_MULTI_HASH, 3},
        [NONE] = {PARTITION_NONE, 0},      [SYSTEM] = {PARTITION_HASH_V2, 1, true},
    };
    static const Slice paths[] = {SLICE_INIT("/a"), SLICE_INIT("/b/c"), SLICE_INIT("/\"d e\"")};
    PartitionKeyDefinition definition = {.kind = shapes[shape].kind,
                                         .path_count = shapes[shape].path_count,
                                         .system_key = shapes[shape].system_key};
    for (size_t i = 0; i < definition.path_count; i++) {
        size_t position = 0;
        assert_true(property_path_parse(arena, paths[i], &definition.paths[i], &position));
    }
    return definition;
}

/* The values as JSON, one after the other: "'a' 1 -" with - for undefined. */
static Slice shown(Arena *arena, const PartitionKey *key)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 16);
    for (size_t i = 0; i < key->count; i++) {
        if (i > 0)
            buf_byte(&text, ' ');
        if (json_is(key->parts[i], JSON_UNDEFINED))
            buf_byte(&text, '-');
        else
            json_print(key->parts[i], &text);
    }
    return arena_copy(arena, buf_view(&text));
}

static void headers_become_keys(void **state)
{
    (void)state;
    static const struct {
        Shape shape;
        KeyExtent extent;
        const char *header;
        const char *key; /* NULL if refused */
    } rows[] = {
        {V2, KEY_WHOLE, "['a']", "'a'"},
        {V2, KEY_WHOLE, " [ 'a' ] ", "'a'"},
        {V2, KEY_WHOLE, "['']", "''"},
        {V2, KEY_WHOLE, "[1.5]", "1.5"},
        {V2, KEY_WHOLE, "[true]", "true"},
        {V2, KEY_WHOLE, "[null]", "null"},
        {V2, KEY_WHOLE, "[{}]", "-"},
        {V2, KEY_WHOLE, "['\\u00e9']", "'é'"},
        {V2, KEY_WHOLE, "['é']", "'é'"},
        {V1, KEY_WHOLE, "['a']", "'a'"},
        {V2, KEY_WHOLE, "[]", NULL},
        {V2, KEY_PREFIX, "[]", NULL},
        {V2, KEY_WHOLE, "['a','b']", NULL},
        {V2, KEY_WHOLE, "[[]]", NULL},
        {V2, KEY_WHOLE, "[['a']]", NULL},
        {V2, KEY_WHOLE, "[{'a':1}]", NULL},
        {V2, KEY_WHOLE, "[{'type':'MinNumber'}]", NULL},
        {V2, KEY_WHOLE, "'a'", NULL},
        {V2, KEY_WHOLE, "a", NULL},
        {V2, KEY_WHOLE, "{}", NULL},
        {V2, KEY_WHOLE, "['a'", NULL},
        {V2, KEY_WHOLE, "['a'] x", NULL},
        {V2, KEY_WHOLE, "['\xff']", NULL},
        {V2, KEY_WHOLE, "null", NULL},
        {TWO, KEY_WHOLE, "['a',1]", "'a' 1"},
        {TWO, KEY_WHOLE, "[{},null]", "- null"},
        {TWO, KEY_WHOLE, "['a']", NULL},
        {TWO, KEY_PREFIX, "['a']", "'a'"},
        {TWO, KEY_PREFIX, "['a','b']", "'a' 'b'"},
        {TWO, KEY_PREFIX, "['a','b','c']", NULL},
        {TWO, KEY_PREFIX, "[]", NULL},
        {THREE, KEY_WHOLE, "['a','b','c']", "'a' 'b' 'c'"},
        {THREE, KEY_PREFIX, "['a','b']", "'a' 'b'"},
        {THREE, KEY_WHOLE, "['a','b','c','d']", NULL},
        {NONE, KEY_WHOLE, "['a']", ""},
        {NONE, KEY_PREFIX, "rubbish", ""},
        {SYSTEM, KEY_WHOLE, "[]", "-"},
        {SYSTEM, KEY_WHOLE, "[{}]", "-"},
        {SYSTEM, KEY_WHOLE, "['a']", "'a'"},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        PartitionKeyDefinition definition = definition_of(&arena, rows[i].shape);
        PartitionKey key;
        bool found = false;
        Error err;
        Status status = key_header_parse(&arena, quoted(&arena, rows[i].header), &definition,
                                         rows[i].extent, &key, &found, &err);
        if ((status == STATUS_OK) != (rows[i].key != NULL))
            fail_msg("'%s': %s", rows[i].header, status_code(status));
        if (status != STATUS_OK) {
            assert_int_equal(status, STATUS_BAD_REQUEST);
            expect_holds(slice_from_cstr(err.message), "x-ms-documentdb-partitionkey");
            continue;
        }
        assert_true(found);
        assert_slice(shown(&arena, &key), quoted(&arena, rows[i].key));
    }
}

static void an_absent_header_is_no_key(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (Shape shape = V1; shape <= SYSTEM; shape++) {
        PartitionKeyDefinition definition = definition_of(&arena, shape);
        PartitionKey key = {.count = 7};
        bool found = true;
        Error err;
        assert_int_equal(
            key_header_parse(&arena, SLICE_EMPTY, &definition, KEY_WHOLE, &key, &found, &err),
            STATUS_OK);
        assert_false(found);
        assert_int_equal(key.count, 0);
    }
}

static Status parse_long(Arena *arena, Shape shape, size_t len, Error *err)
{
    char *text = arena_alloc(arena, len + 4);
    memset(text, 'x', len + 4);
    memcpy(text, "[\"", 2);
    memcpy(text + len + 2, "\"]", 2);
    PartitionKeyDefinition definition = definition_of(arena, shape);
    PartitionKey key;
    bool found = false;
    return key_header_parse(arena, slice_make(text, len + 4), &definition, KEY_WHOLE, &key, &found,
                            err);
}

static void a_string_has_a_greatest_length(void **state)
{
    (void)state;
    static const struct {
        Shape shape;
        size_t len;
        bool good;
    } rows[] = {
        {V2, PARTITION_KEY_BYTES_MAX, true},
        {V2, PARTITION_KEY_BYTES_MAX + 1, false},
        {V1, PARTITION_KEY_BYTES_MAX, true},
        {V1, PARTITION_KEY_BYTES_MAX + 1, false},
        {V2, 16 << 10, false},
        {V2, 1 << 20, false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Error err;
        Status status = parse_long(&arena, rows[i].shape, rows[i].len, &err);
        assert_int_equal(status, rows[i].good ? STATUS_OK : STATUS_BAD_REQUEST);
    }
}

static void documents_have_keys(void **state)
{
    (void)state;
    static const struct {
        Shape shape;
        const char *document;
        const char *key;
    } rows[] = {
        {V2, "{'a':'x'}", "'x'"},
        {V2, "{'a':null}", "null"},
        {V2, "{'b':1}", "-"},
        {V2, "{'a':{}}", "-"},
        {V2, "{'a':['x']}", "-"},
        {TWO, "{'a':1,'b':{'c':2}}", "1 2"},
        {TWO, "{'a':1,'b':[{'c':2}]}", "1 -"},
        {TWO, "{'a':1,'b':2}", "1 -"},
        {THREE, "{'a':1,'b':{'c':2},'d e':3}", "1 2 3"},
        {NONE, "{'a':1}", ""},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        PartitionKeyDefinition definition = definition_of(&arena, rows[i].shape);
        Json document = JSON_NONE;
        Error err;
        assert_int_equal(json_parse(&arena, quoted(&arena, rows[i].document), &document, &err),
                         STATUS_OK);
        PartitionKey key;
        partition_key_extract(&definition, document, &key);
        assert_slice(shown(&arena, &key), quoted(&arena, rows[i].key));
    }
}

static void a_header_must_repeat_the_documents_key(void **state)
{
    (void)state;
    static const struct {
        const char *header, *document;
        bool same;
    } rows[] = {
        {"['x']", "{'a':'x'}", true},   {"['x']", "{'a':'y'}", false},
        {"[1]", "{'a':1.0}", true},     {"[1]", "{'a':'1'}", false},
        {"[null]", "{'a':null}", true}, {"[null]", "{}", false},
        {"[{}]", "{}", true},           {"[{}]", "{'a':[1]}", true},
        {"[{}]", "{'a':null}", false},  {"[false]", "{'a':0}", false},
        {"['']", "{}", false},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    PartitionKeyDefinition definition = definition_of(&arena, V2);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        PartitionKey header;
        PartitionKey own;
        bool found = false;
        Json document = JSON_NONE;
        Error err;
        assert_int_equal(key_header_parse(&arena, quoted(&arena, rows[i].header), &definition,
                                          KEY_WHOLE, &header, &found, &err),
                         STATUS_OK);
        assert_int_equal(json_parse(&arena, quoted(&arena, rows[i].document), &document, &err),
                         STATUS_OK);
        partition_key_extract(&definition, document, &own);
        Status status = key_header_match(&header, &own, &err);
        assert_int_equal(status, rows[i].same ? STATUS_OK : STATUS_BAD_REQUEST);
        assert_true(rows[i].same || err.sub == SUB_PARTITION_KEY_MISMATCH);
    }
}

static void bounds_of_ranges_are_hexadecimal(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bytes; /* NULL if refused */
    } rows[] = {
        {"", ""},      {"FF", "\xFF"},  {"ff", "\xFF"}, {"05C1E0", "\x05\xC1\xE0"},
        {"F", NULL},   {"05C1E", NULL}, {"0x05", NULL}, {"GG", NULL},
        {" 05", NULL}, {"min", NULL},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Error err;
    Slice bytes;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Status status = key_header_parse_epk(&arena, slice_from_cstr(rows[i].text), &bytes, &err);
        assert_int_equal(status, rows[i].bytes != NULL ? STATUS_OK : STATUS_BAD_REQUEST);
        if (status == STATUS_OK)
            assert_slice(bytes, slice_from_cstr(rows[i].bytes));
    }
    char longest[2 * EPK_BYTES_MAX + 2];
    memset(longest, 'A', sizeof(longest));
    assert_int_equal(
        key_header_parse_epk(&arena, slice_make(longest, sizeof(longest) - 2), &bytes, &err),
        STATUS_OK);
    assert_int_equal(
        key_header_parse_epk(&arena, slice_make(longest, sizeof(longest)), &bytes, &err),
        STATUS_BAD_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_become_keys),
        cmocka_unit_test(an_absent_header_is_no_key),
        cmocka_unit_test(a_string_has_a_greatest_length),
        cmocka_unit_test(documents_have_keys),
        cmocka_unit_test(a_header_must_repeat_the_documents_key),
        cmocka_unit_test(bounds_of_ranges_are_hexadecimal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
