/* property_path_test.c - property paths: their grammar, their one spelling, and where they lead. */
#include "json/property_path.h"

#include "base/testing.h"

static void a_path_is_its_segments(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *segments[4];
        const char *canonical;
    } ROWS[] = {
        {"/pk", {"pk"}, "/pk"},
        {"/a/b/c", {"a", "b", "c"}, "/a/b/c"},
        {"/_partitionKey", {"_partitionKey"}, "/_partitionKey"},
        {"/0", {"0"}, "/0"},
        {"/caf\xC3\xA9", {"caf\xC3\xA9"}, "/caf\xC3\xA9"},
        {"/\"pk\"", {"pk"}, "/pk"},
        {"/'pk'", {"pk"}, "/pk"},
        {"/\"zip code\"/x", {"zip code", "x"}, "/\"zip code\"/x"},
        {"/'zip code'", {"zip code"}, "/\"zip code\""},
        {"/\"a/b\"/c", {"a/b", "c"}, "/\"a/b\"/c"},
        {"/\"[]\"", {"[]"}, "/\"[]\""},
        {"/\"it's\"", {"it's"}, "/\"it's\""},
        {"/'it\\'s'", {"it's"}, "/\"it's\""},
        {"/\"say \\\"hi\\\"\"", {"say \"hi\""}, "/\"say \\\"hi\\\"\""},
        {"/\"back\\\\slash\"", {"back\\slash"}, "/\"back\\\\slash\""},
        {"/\"a\\/b\"", {"a/b"}, "/\"a/b\""},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        PropertyPath path, again;
        size_t position;
        print_message("%s\n", ROWS[i].text);
        assert_true(property_path_parse(&arena, slice_from_cstr(ROWS[i].text), &path, &position));
        for (size_t k = 0; k < path.count; ++k)
            assert_true(slice_equal(path.segments[k], slice_from_cstr(ROWS[i].segments[k])));
        assert_null(ROWS[i].segments[path.count]);

        AUTO(buf_done) Buf text;
        buf_init(&text, PROPERTY_PATH_CANONICAL_BYTES_MAX);
        property_path_print(path, &text);
        assert_true(slice_equal(buf_view(&text), slice_from_cstr(ROWS[i].canonical)));
        assert_true(property_path_parse(&arena, buf_view(&text), &again, &position));
        assert_true(property_path_equal(path, again));
    }
}

static void what_is_not_a_path_is_refused_at_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t position;
    } ROWS[] = {
        {"", 0},     {"pk", 0},    {"/", 1},       {"//a", 1},       {"/a/", 3},    {"/a//b", 3},
        {"/a b", 2}, {"/a-b", 2},  {"/a/*", 3},    {"/a/?", 3},      {"/a/[]", 3},  {"/a[0]", 2},
        {"/\"a", 3}, {"/\"\"", 2}, {"/\"a\"b", 4}, {"/\"a\\n\"", 4}, {"/\"a\\", 4}, {"/'a\"", 4},
        {"/a.b", 2}, {"C:/pk", 0}, {" /a", 0},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        PropertyPath path = {.count = 99};
        size_t position;
        print_message("%s\n", ROWS[i].text);
        assert_false(property_path_parse(&arena, slice_from_cstr(ROWS[i].text), &path, &position));
        assert_int_equal(position, ROWS[i].position);
        assert_int_equal(path.count, 99);
    }
}

static void depth_and_length_have_bounds(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    char deep[2 * (PROPERTY_PATH_DEPTH_MAX + 1)];
    for (size_t i = 0; i < sizeof(deep); ++i)
        deep[i] = i % 2 == 0 ? '/' : 'a';
    PropertyPath path;
    size_t position;
    assert_true(property_path_parse(&arena, slice_make(deep, sizeof(deep) - 2), &path, &position));
    assert_int_equal(path.count, PROPERTY_PATH_DEPTH_MAX);
    assert_false(property_path_parse(&arena, slice_make(deep, sizeof(deep)), &path, &position));

    char wide[PROPERTY_PATH_BYTES_MAX + 1];
    memset(wide, 'a', sizeof(wide));
    wide[0] = '/';
    assert_true(
        property_path_parse(&arena, slice_make(wide, PROPERTY_PATH_BYTES_MAX), &path, &position));
    assert_false(property_path_parse(&arena, slice_make(wide, PROPERTY_PATH_BYTES_MAX + 1), &path,
                                     &position));
}

static void a_path_leads_through_objects_only(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *value; /* NULL if undefined */
    } ROWS[] = {
        {"/a", "1"},      {"/b/c", "\"x\""}, {"/b/d", NULL},        {"/b", "{\"c\":\"x\"}"},
        {"/n", "null"},   {"/n/x", NULL},    {"/l", "[{\"c\":2}]"}, {"/l/0", NULL},
        {"/l/0/c", NULL}, {"/a/b", NULL},    {"/\"x y\"", "true"},  {"/A", NULL},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Error err;
    Json document;
    Slice text = SLICE("{\"a\":1,\"b\":{\"c\":\"x\"},\"n\":null,\"l\":[{\"c\":2}],\"x y\":true}");
    assert_int_equal(json_parse(&arena, text, &document, &err), STATUS_OK);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        PropertyPath path;
        size_t position;
        print_message("%s\n", ROWS[i].path);
        assert_true(property_path_parse(&arena, slice_from_cstr(ROWS[i].path), &path, &position));
        Json value = property_path_get(path, document);
        assert_int_equal(json_is(value, JSON_UNDEFINED), ROWS[i].value == NULL);
        if (ROWS[i].value != NULL)
            assert_slice_text(json_print_arena(&arena, value), ROWS[i].value);
        assert_null(property_path_get(path, JSON_NONE).at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_its_segments),
        cmocka_unit_test(what_is_not_a_path_is_refused_at_its_place),
        cmocka_unit_test(depth_and_length_have_bounds),
        cmocka_unit_test(a_path_leads_through_objects_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
