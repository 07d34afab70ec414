/* index_path_test.c - the grammar of indexing paths. */
#include "index/index_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum {
    ANY = INDEX_PATH_BARE | INDEX_PATH_SCALAR | INDEX_PATH_SUBTREE | INDEX_PATH_TUPLE,
    VALUE = INDEX_PATH_SCALAR | INDEX_PATH_SUBTREE,
};

static void paths_end_in_one_of_four_ways(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        IndexPathEnd end;
        const char *canonical;
        const char *name;
        bool is_name;
    } ROWS[] = {
        {"/", INDEX_PATH_SUBTREE, "/*", "", false},
        {"/*", INDEX_PATH_SUBTREE, "/*", "", false},
        {"/a/?", INDEX_PATH_SCALAR, "/a/?", "a", true},
        {"/a/*", INDEX_PATH_SUBTREE, "/a/*", "a", true},
        {"/a", INDEX_PATH_BARE, "/a", "a", true},
        {"/\"a\"/?", INDEX_PATH_SCALAR, "/a/?", "a", true},
        {"/'_etag'/?", INDEX_PATH_SCALAR, "/_etag/?", "_etag", true},
        {"/a/b/?", INDEX_PATH_SCALAR, "/a/b/?", "a", false},
        {"/a/[]/?", INDEX_PATH_SCALAR, "/a/[]/?", "a", false},
        {"/a/[]/b/[]/*", INDEX_PATH_SUBTREE, "/a/[]/b/[]/*", "a", false},
        {"/a/[]", INDEX_PATH_BARE, "/a/[]", "a", false},
        {"/\"a b\"/\"?\"/*", INDEX_PATH_SUBTREE, "/\"a b\"/\"?\"/*", "a b", false},
        {"/e/[]/{name, category}/?", INDEX_PATH_TUPLE, "/e/[]/{/name,/category}/?", "e", false},
        {"/e/[]/{ a/b ,\"c d\"}/?", INDEX_PATH_TUPLE, "/e/[]/{/a/b,/\"c d\"}/?", "e", false},
        {"/e/f/[]/{a}/?", INDEX_PATH_TUPLE, "/e/f/[]/{/a}/?", "e", false},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        IndexPath path;
        size_t position;
        print_message("%s\n", ROWS[i].text);
        assert_true(index_path_parse(&arena, slice_from_cstr(ROWS[i].text), ANY, &path, &position));
        assert_int_equal(path.end, ROWS[i].end);
        assert_true(slice_equal(path.canonical, slice_from_cstr(ROWS[i].canonical)));
        assert_true(slice_equal(path.name, slice_from_cstr(ROWS[i].name)));
        assert_int_equal(path.is_name, ROWS[i].is_name);
        assert_int_equal(path.is_root, ROWS[i].name[0] == '\0');
        assert_int_equal(position, strlen(ROWS[i].text));
    }
}

static void steps_to_text(const IndexStep *steps, size_t count, Buf *out)
{
    for (size_t i = 0; i < count; ++i) {
        buf_byte(out, steps[i].is_element ? '*' : '.');
        buf_slice(out, steps[i].name);
    }
}

static void steps_are_names_and_elements(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *steps; /* ".name" or "*" each; a ';' before those of each field of a tuple */
    } ROWS[] = {
        {"/", ""},
        {"/*", ""},
        {"/a", ".a"},
        {"/a/?", ".a"},
        {"/a/b/*", ".a.b"},
        {"/\"a b\"/'[]'/?", ".a b.[]"},
        {"/\"a\\\"\\/\"/?", ".a\"/"},
        {"/a/[]/?", ".a*"},
        {"/a/[]/[]/b/*", ".a**.b"},
        {"/e/[]/{name, category}/?", ".e*;.e*.name;.e*.category"},
        {"/e/f/[]/{ a/b ,\"c d\"}/?", ".e.f*;.e.f*.a.b;.e.f*.c d"},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        IndexPath path;
        size_t position;
        AUTO(buf_done) Buf found;
        buf_init(&found, 4096);
        print_message("%s\n", ROWS[i].text);
        assert_true(index_path_parse(&arena, slice_from_cstr(ROWS[i].text), ANY, &path, &position));
        steps_to_text(path.steps, path.step_count, &found);
        for (size_t k = 0; k < path.field_count; ++k) {
            buf_byte(&found, ';');
            steps_to_text(path.fields[k].steps, path.fields[k].step_count, &found);
        }
        assert_true(slice_equal(buf_view(&found), slice_from_cstr(ROWS[i].steps)));
    }
}

static void fields_of_a_tuple_have_paths_of_their_own(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    IndexPath path;
    size_t position;
    assert_true(
        index_path_parse(&arena, SLICE("/e/[]/{ a/'b' ,\"c d\"}/?"), ANY, &path, &position));
    assert_int_equal(path.field_count, 2);
    assert_true(slice_equal(path.fields[0].canonical, SLICE("/e/[]/a/b")));
    assert_true(slice_equal(path.fields[1].canonical, SLICE("/e/[]/\"c d\"")));

    assert_true(
        index_path_parse(&arena, SLICE("/e/[]/{a,b,c,d,e,f,g,h}/?"), ANY, &path, &position));
    assert_int_equal(path.field_count, TUPLE_FIELDS_MAX);
    assert_false(
        index_path_parse(&arena, SLICE("/e/[]/{a,b,c,d,e,f,g,h,i}/?"), ANY, &path, &position));
    assert_int_equal(position, 23);
}

static void other_texts_are_refused_at_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned allowed;
        size_t position;
    } ROWS[] = {
        {"", ANY, 0},
        {"a/?", ANY, 0},
        {"/?", ANY, 1},
        {"/[]/?", ANY, 1},
        {"/a/?/b", ANY, 4},
        {"/a/*/b", ANY, 4},
        {"/a/**", ANY, 4},
        {"/a/", ANY, 3},
        {"/a//?", ANY, 3},
        {"/a-b/?", ANY, 2},
        {"/a b/?", ANY, 2},
        {"/a/[0]/?", ANY, 3},
        {"/a/[/?", ANY, 3},
        {"/\"a/?", ANY, 5},
        {"/expiration", VALUE, 11},
        {"/*", INDEX_PATH_BARE, 2},
        {"/a/?", INDEX_PATH_BARE, 4},
        {"/e/[]/{a}/?", VALUE, 11},
        {"/e/{a}/?", ANY, 3},
        {"/{a}/?", ANY, 1},
        {"/e/[]/f/[]/{a}/?", ANY, 11},
        {"/e/[]/f/{a}/?", ANY, 8},
        {"/e/[]/{}/?", ANY, 7},
        {"/e/[]/{a,}/?", ANY, 9},
        {"/e/[]/{a b}/?", ANY, 9},
        {"/e/[]/{/a}/?", ANY, 7},
        {"/e/[]/{a/[]/b}/?", ANY, 9},
        {"/e/[]/{a/?}/?", ANY, 9},
        {"/e/[]/{a}", ANY, 8},
        {"/e/[]/{a}/*", ANY, 8},
        {"/e/[]/{a}/?x", ANY, 11},
        {"/e/[]/{a, a}/?", ANY, 11},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        IndexPath path;
        size_t position = 1000;
        bool ok = index_path_parse(&arena, slice_from_cstr(ROWS[i].text), ROWS[i].allowed, &path,
                                   &position);
        print_message("%s: %zu\n", ROWS[i].text, position);
        assert_false(ok);
        assert_int_equal(position, ROWS[i].position);
    }
}

static void depth_and_length_have_bounds(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    char text[PROPERTY_PATH_BYTES_MAX + 1];
    for (size_t i = 0; i < sizeof(text); ++i)
        text[i] = i % 2 == 0 ? '/' : 'a';
    IndexPath path;
    size_t position;
    assert_true(index_path_parse(&arena, slice_make(text, 2 * PROPERTY_PATH_DEPTH_MAX), ANY, &path,
                                 &position));
    assert_false(index_path_parse(&arena, slice_make(text, 2 * PROPERTY_PATH_DEPTH_MAX + 2), ANY,
                                  &path, &position));
    memset(text + 1, 'a', sizeof(text) - 1);
    assert_true(
        index_path_parse(&arena, slice_make(text, PROPERTY_PATH_BYTES_MAX), ANY, &path, &position));
    assert_false(index_path_parse(&arena, slice_make(text, sizeof(text)), ANY, &path, &position));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_end_in_one_of_four_ways),
        cmocka_unit_test(steps_are_names_and_elements),
        cmocka_unit_test(fields_of_a_tuple_have_paths_of_their_own),
        cmocka_unit_test(other_texts_are_refused_at_their_place),
        cmocka_unit_test(depth_and_length_have_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
