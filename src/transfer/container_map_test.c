/* container_map_test.c - containers and ranges as servers describe them, right and wrong. */
#include "transfer/container_map.h"

#include "json/json_testing.h"

static void partition_keys_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int kind; /* -1 if it is refused */
        size_t paths;
    } rows[] = {
        {"{'id':'c','partitionKey':{'paths':['/pk'],'kind':'Hash','version':2}}", PARTITION_HASH_V2,
         1},
        {"{'id':'c','partitionKey':{'paths':['/a/b'],'kind':'Hash'}}", PARTITION_HASH_V1, 1},
        {"{'id':'c','partitionKey':{'paths':['/a','/b','/c'],'kind':'MultiHash','version':2}}",
         PARTITION_MULTI_HASH, 3},
        {"{'id':'c'}", PARTITION_NONE, 0},
        {"{}", -1, 0},
        {"[]", -1, 0},
        {"{'id':'c','partitionKey':{'paths':[]}}", -1, 0},
        {"{'id':'c','partitionKey':{'paths':[7]}}", -1, 0},
        {"{'id':'c','partitionKey':{'paths':['pk']}}", -1, 0},
        {"{'id':'c','partitionKey':{'paths':['/a','/b'],'kind':'Hash'}}", -1, 0},
        {"{'id':'c','partitionKey':{'paths':['/a','/b','/c','/d'],'kind':'MultiHash'}}", -1, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        PartitionKeyDefinition key;
        Error err;
        Status status =
            container_key_parse(&test_arena, row_json(&test_arena, rows[i].body), &key, &err);
        if ((status == STATUS_OK) != (rows[i].kind >= 0))
            fail_msg("row %zu", i);
        if (status == STATUS_OK) {
            assert_int_equal(key.kind, rows[i].kind);
            assert_int_equal(key.path_count, rows[i].paths);
        }
    }
}

#define R(id, min, max, parents) \
    "{'id':'" id "','minInclusive':'" min "','maxExclusive':'" max "','parents':[" parents "]}"

static void ranges_are_read_in_order_without_parents(void **state)
{
    (void)state;
    static const struct {
        const char *list, *ids; /* NULL if it is refused */
    } rows[] = {
        {R("0", "", "FF", ""), "0"},
        {R("2", "7F", "FF", "'0'") "," R("1", "", "7F", "'0'"), "12"},
        {R("0", "", "FF", "") "," R("2", "7F", "FF", "'0'") "," R("1", "", "7F", "'0'"), "12"},
        {"", NULL},
        {R("1", "", "7F", ""), NULL},
        {R("1", "", "7F", "") "," R("2", "80", "FF", ""), NULL},
        {R("1", "", "7F", "") "," R("2", "7E", "FF", ""), NULL},
        {R("", "", "FF", ""), NULL},
        {R("a\\nb", "", "FF", ""), NULL},
        {R("1", "", "", "") "," R("2", "", "FF", ""), NULL},
        {"7", NULL},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice body = arena_format(&test_arena, "{'PartitionKeyRanges':[%s]}", rows[i].list);
        ContainerMap map;
        Error err;
        Status status = container_map_parse(
            &test_arena, row_json(&test_arena, arena_cstr(&test_arena, body)), &map, &err);
        if ((status == STATUS_OK) != (rows[i].ids != NULL))
            fail_msg("row %zu", i);
        if (status != STATUS_OK)
            continue;
        assert_int_equal(map.count, strlen(rows[i].ids));
        for (size_t r = 0; r < map.count; r++)
            assert_int_equal(map.ranges[r].id.ptr[0], rows[i].ids[r]);
    }
}

static void hashes_have_their_range(void **state)
{
    (void)state;
    Json feed = row_json(&test_arena, "{'PartitionKeyRanges':[" R("1", "", "3F", "") "," R(
                                          "2", "3F", "7F80", "") "," R("3", "7F80", "FF", "") "]}");
    ContainerMap map;
    assert_ok(container_map_parse(&test_arena, feed, &map, err));
    static const struct {
        const char *epk, *id;
    } rows[] = {{"", "1"},     {"00", "1"},     {"3EFF", "1"}, {"3F", "2"},
                {"3F00", "2"}, {"7F7FFF", "2"}, {"7F80", "3"}, {"FE", "3"}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_slice_text(container_map_find(&map, slice_from_cstr(rows[i].epk))->id, rows[i].id);
}

static void keys_are_printed_for_bodies_and_headers(void **state)
{
    (void)state;
    static const struct {
        const char *values, *utf8, *ascii;
    } rows[] = {
        {"['a\\'b']", "['a\\'b']", "['a\\'b']"},
        {"[1.5,null,true]", "[1.5,null,true]", "[1.5,null,true]"},
        {"['\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80']", "['\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80']",
         "['\\u00e9\\u20ac\\ud83d\\ude00']"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        PartitionKey key = {0};
        JsonIter it = json_iter(row_json(&test_arena, rows[i].values));
        while (json_next(&it))
            key.parts[key.count++] = it.value;
        AUTO(buf_done) Buf utf8, ascii;
        buf_init(&utf8, 1000);
        buf_init(&ascii, 1000);
        container_key_print(&key, KEY_TEXT_UTF8, &utf8);
        container_key_print(&key, KEY_TEXT_ASCII, &ascii);
        assert_slice(buf_view(&utf8), row_text(&test_arena, rows[i].utf8));
        assert_slice(buf_view(&ascii), row_text(&test_arena, rows[i].ascii));
    }
    AUTO(buf_done) Buf text;
    buf_init(&text, 100);
    container_key_print(&(PartitionKey){.count = 2}, KEY_TEXT_UTF8, &text);
    assert_slice_text(buf_view(&text), "[{},{}]");
    buf_reset(&text);
    container_epk_print(&(Epk){.bytes = {0x05, 0xc1}, .len = 2}, &text);
    assert_slice_text(buf_view(&text), "05C1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(partition_keys_are_read),
        TEST(ranges_are_read_in_order_without_parents),
        TEST(hashes_have_their_range),
        TEST(keys_are_printed_for_bodies_and_headers),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
