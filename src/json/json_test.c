/* json_test.c - building and navigating: encodings (I1), look-ups, bounds of the builder (I5). */
#include "json/json_random_testing_int.h"
#include "json/json_testing.h"

#include <math.h>

static Json parse(const char *text)
{
    return text_json(&test_arena, slice_from_cstr(text));
}

static Json number(double value)
{
    JsonBuilder b;
    json_build(&b, &test_arena);
    json_add_number(&b, value);
    return json_built(&b);
}

/* The format is a promise to the data on disk: these bytes may never change. */
static void values_have_the_bytes_that_the_format_says(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        Slice bytes;
    } rows[] = {
        {"0", SLICE_INIT("\x01\x00")},
        {"63", SLICE_INIT("\x01\x3f")},
        {"64", SLICE_INIT("\x01\x43\x40")},
        {"-1", SLICE_INIT("\x01\x43\xff")},
        {"-128", SLICE_INIT("\x01\x43\x80")},
        {"128", SLICE_INIT("\x01\x44\x80\x00")},
        {"-129", SLICE_INIT("\x01\x44\x7f\xff")},
        {"32768", SLICE_INIT("\x01\x45\x00\x80\x00\x00")},
        {"-32769", SLICE_INIT("\x01\x45\xff\x7f\xff\xff")},
        {"2147483648", SLICE_INIT("\x01\x46\x00\x00\x00\x80\x00\x00\x00\x00")},
        {"-9223372036854775808", SLICE_INIT("\x01\x46\x00\x00\x00\x00\x00\x00\x00\x80")},
        {"1.5", SLICE_INIT("\x01\x47\x00\x00\x00\x00\x00\x00\xf8\x3f")},
        {"-0.0", SLICE_INIT("\x01\x47\x00\x00\x00\x00\x00\x00\x00\x80")},
        {"9223372036854775808", SLICE_INIT("\x01\x47\x00\x00\x00\x00\x00\x00\xe0\x43")},
        {"null", SLICE_INIT("\x01\x40")},
        {"false", SLICE_INIT("\x01\x41")},
        {"true", SLICE_INIT("\x01\x42")},
        {"\"\"", SLICE_INIT("\x01\x80")},
        {"\"abc\"", SLICE_INIT("\x01\x83"
                               "abc")},
        {"[]", SLICE_INIT("\x01\x4b\x01\x04\x00")},
        {"{}", SLICE_INIT("\x01\x4d\x01\x04\x00")},
        {"[1,[2]]", SLICE_INIT("\x01\x4b\x02\x0a\x02\x01\x4b\x01\x05\x01\x02")},
        {"{\"b\":1,\"a\":2}", SLICE_INIT("\x01\x4d\x01\x0c\x02\x81"
                                         "b\x01\x81"
                                         "a\x02\x07\x04")},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice bytes = json_bytes(&test_arena, parse(rows[i].text));
        if (!slice_equal(bytes, rows[i].bytes))
            fail_msg("%s has other bytes", rows[i].text);
    }
}

static Json string_of(size_t len)
{
    char *text = arena_zalloc(&test_arena, len + 1);
    memset(text, 'x', len);
    JsonBuilder b;
    json_build(&b, &test_arena);
    json_add_string(&b, slice_make(text, len));
    return json_built(&b);
}

static void strings_grow_their_header_where_they_must(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        size_t header;
    } rows[] = {{0, 1},   {1, 1},     {127, 1},   {128, 2},   {255, 2},
                {256, 3}, {65535, 3}, {65536, 5}, {200000, 5}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Json value = string_of(rows[i].len);
        Slice bytes = json_bytes(&test_arena, value);
        assert_int_equal(bytes.len, 1 + rows[i].header + rows[i].len);
        assert_int_equal(json_string(value).len, rows[i].len);
        assert_int_equal(json_size(value), bytes.len - 1);
        Json opened;
        Error err;
        assert_int_equal(json_open(bytes, &opened, &err), STATUS_OK);
    }
}

/* Arrays and objects of every size around the places where their form changes. */
static void containers_change_form_where_they_must(void **state)
{
    (void)state;
    static const struct {
        size_t from, to;
    } ranges[] = {{200, 270}, {65490, 65540}};
    for (size_t r = 0; r < ARRAY_COUNT(ranges); r++) {
        for (size_t len = ranges[r].from; len < ranges[r].to; len++) {
            arena_reset(&test_arena);
            Slice text = json_string(string_of(len));
            JsonBuilder b;
            json_build(&b, &test_arena);
            json_begin_array(&b);
            json_begin_object(&b);
            json_key(&b, SLICE("text"));
            json_add_string(&b, text);
            json_key(&b, SLICE("after"));
            json_add_i64(&b, 7);
            json_end(&b);
            json_add_string(&b, text);
            json_end(&b);
            Json value = json_built(&b);
            Json object = json_at(value, 0);
            assert_true(slice_equal(json_string(json_get(object, SLICE("text"))), text));
            assert_int_equal((int)json_number(json_get(object, SLICE("after"))), 7);
            assert_true(slice_equal(json_string(json_at(value, 1)), text));
            Json opened;
            Error err;
            assert_int_equal(json_open(json_bytes(&test_arena, value), &opened, &err), STATUS_OK);
        }
    }
}

/* The offsets of a small object take more bytes than its shorter header saves: it ends farther on
 * than its last member did, and that may be beyond the room that there was. */
static void the_end_of_an_object_stays_within_its_room(void **state)
{
    (void)state;
    for (size_t len = 0; len < 512; len++) {
        arena_reset(&test_arena);
        Slice text = json_string(string_of(len));
        JsonBuilder b;
        json_build(&b, &test_arena);
        json_begin_array(&b);
        json_add_string(&b, text);
        json_begin_object(&b);
        for (int letter = 'A'; letter <= 'z'; letter++) {
            char name = (char)letter;
            json_key(&b, slice_make(&name, 1));
            json_add_null(&b);
        }
        json_end(&b);
        assert_true(b.len <= b.capacity);
        json_end(&b);
        Json opened;
        Error err;
        assert_int_equal(json_open(json_bytes(&test_arena, json_built(&b)), &opened, &err),
                         STATUS_OK);
        assert_true(json_is(json_get(json_at(opened, 1), SLICE("z")), JSON_NULL));
    }
}

static void members_are_found_in_objects_of_every_size(void **state)
{
    (void)state;
    for (int count = 0; count < 300; count += count < 70 ? 1 : 37) {
        arena_reset(&test_arena);
        JsonBuilder b;
        json_build(&b, &test_arena);
        json_begin_object(&b);
        for (int i = 0; i < count; i++) {
            json_key(&b, arena_format(&test_arena, "property%d", count - 1 - i));
            json_add_i64(&b, count - 1 - i);
        }
        json_end(&b);
        Json value = json_built(&b);
        assert_int_equal(json_count(value), count);
        for (int i = 0; i < count; i++) {
            Json found = json_get(value, arena_format(&test_arena, "property%d", i));
            assert_non_null(found.at);
            assert_int_equal((int)json_number(found), i);
        }
        check_look_ups(value);
        static const char *const absent[] = {"", "property", "property-1", "q", "propertz0", "a"};
        for (size_t i = 0; i < ARRAY_COUNT(absent); i++)
            assert_null(json_get(value, slice_from_cstr(absent[i])).at);
        assert_null(json_get(value, SLICE_EMPTY).at);
        assert_null(json_get(value, arena_format(&test_arena, "property%d", count)).at);
    }
}

static void odd_names_are_names_too(void **state)
{
    (void)state;
    Json value = parse("{\"\":1,\"\\u0000\":2,\"a\\u0000\":3,\"a\":4,\"\xc3\xa9\":5,\"a b/c\":6}");
    static const struct {
        Slice name;
        int number;
    } rows[] = {{SLICE_INIT(""), 1},  {SLICE_INIT("\0"), 2},       {SLICE_INIT("a\0"), 3},
                {SLICE_INIT("a"), 4}, {SLICE_INIT("\xc3\xa9"), 5}, {SLICE_INIT("a b/c"), 6}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal((int)json_number(json_get(value, rows[i].name)), rows[i].number);
    assert_int_equal((int)json_number(json_get(value, SLICE_EMPTY)), 1);

    /* Names longer than the short form. */
    Slice name = json_string(string_of(128));
    Slice longer = json_string(string_of(300));
    JsonBuilder b;
    json_build(&b, &test_arena);
    json_begin_object(&b);
    json_key(&b, longer);
    json_add_bool(&b, true);
    json_key(&b, name);
    json_add_null(&b);
    json_end(&b);
    value = json_built(&b);
    assert_true(json_is(json_get(value, name), JSON_NULL));
    assert_true(json_is(json_get(value, longer), JSON_BOOL));
    assert_null(json_get(value, slice_first(longer, 299)).at);
}

static void what_is_not_there_is_undefined(void **state)
{
    (void)state;
    Json array = parse("[1,2]");
    Json object = parse("{\"a\":1}");
    assert_null(json_get(JSON_NONE, SLICE("a")).at);
    assert_null(json_get(array, SLICE("a")).at);
    assert_null(json_get(object, SLICE("b")).at);
    assert_null(json_at(JSON_NONE, 0).at);
    assert_null(json_at(object, 0).at);
    assert_null(json_at(array, 2).at);
    assert_null(json_at(array, SIZE_MAX).at);
    assert_int_equal(json_type(JSON_NONE), JSON_UNDEFINED);
    assert_int_equal(json_depth(JSON_NONE), 0);
    Json scalars[] = {JSON_NONE, parse("1"), parse("\"abc\""), parse("null")};
    for (size_t i = 0; i < ARRAY_COUNT(scalars); i++) {
        JsonIter it = json_iter(scalars[i]);
        assert_false(json_next(&it));
    }
    int64_t integer;
    assert_false(json_to_i64(JSON_NONE, &integer));
    assert_false(json_to_i64(object, &integer));
}

static void integers_come_out_as_integers(void **state)
{
    (void)state;
    static const struct {
        double number;
        bool fits;
        int64_t integer;
    } rows[] = {
        {0, true, 0},
        {-0.0, true, 0},
        {1.5, false, 0},
        {-1, true, -1},
        {0x1p53, true, (int64_t)1 << 53},
        {0x1p62, true, (int64_t)1 << 62},
        {-0x1p63, true, INT64_MIN},
        {0x1p63, false, 0},
        {-0x1.0000000000001p63, false, 0},
        {1e300, false, 0},
        {INFINITY, false, 0},
        {NAN, false, 0},
        {5e-324, false, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        int64_t integer = 0;
        Json value = number(rows[i].number);
        assert_int_equal(json_to_i64(value, &integer), rows[i].fits);
        assert_int_equal(integer, rows[i].integer);
        double back = json_number(value);
        bool same = back == rows[i].number && signbit(back) == signbit(rows[i].number);
        assert_true(same || isnan(back));
    }
}

static void sixty_four_bit_integers_are_carried_exactly(void **state)
{
    (void)state;
    int64_t rows[] = {INT64_MAX, INT64_MIN, INT64_MAX - 1, ((int64_t)1 << 53) + 1, 0, -1};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        JsonBuilder b;
        json_build(&b, &test_arena);
        json_add_i64(&b, rows[i]);
        int64_t back;
        assert_true(json_to_i64(json_built(&b), &back));
        assert_int_equal(back, rows[i]);
    }
}

static void copies_of_values_stand_on_their_own(void **state)
{
    (void)state;
    Json source = parse("{\"a\":{\"x\":[1,{\"y\":\"z\"}],\"b\":2},\"c\":\"text\"}");
    JsonBuilder b;
    json_build(&b, &test_arena);
    json_begin_array(&b);
    json_add(&b, json_get(source, SLICE("a")));
    json_add(&b, json_get(source, SLICE("c")));
    json_add(&b, source);
    json_end(&b);
    Json value = json_built(&b);
    Slice printed = json_print_arena(&test_arena, value);
    assert_true(
        slice_equal(printed, SLICE("[{\"x\":[1,{\"y\":\"z\"}],\"b\":2},\"text\","
                                   "{\"a\":{\"x\":[1,{\"y\":\"z\"}],\"b\":2},\"c\":\"text\"}]")));
    assert_int_equal(json_depth(value), 5);
    /* A part of a document is a document once it has the version in front. */
    Json opened;
    Error err;
    Slice bytes = json_bytes(&test_arena, json_get(source, SLICE("a")));
    assert_int_equal(json_open(bytes, &opened, &err), STATUS_OK);
    assert_true(json_equal(opened, json_at(value, 0)));
    assert_true(json_equal(json_trust(bytes), opened));
}

static Json nested_arrays(uint32_t levels, Json inner)
{
    JsonBuilder b;
    json_build(&b, &test_arena);
    for (uint32_t i = 0; i < levels; i++)
        json_begin_array(&b);
    if (inner.at != NULL)
        json_add(&b, inner);
    for (uint32_t i = 0; i < levels; i++)
        json_end(&b);
    return json_built(&b);
}

static void the_builder_ends_politely_at_its_depth(void **state)
{
    (void)state;
    Json deepest = nested_arrays(JSON_DEPTH_MAX, JSON_NONE);
    assert_int_equal(json_depth(deepest), JSON_DEPTH_MAX);
    assert_null(nested_arrays(JSON_DEPTH_MAX + 1, JSON_NONE).at);
    assert_null(nested_arrays(10 * JSON_DEPTH_MAX, JSON_NONE).at);

    Json deeper = nested_arrays(JSON_BUILD_DEPTH_MAX - JSON_DEPTH_MAX, deepest);
    assert_int_equal(json_depth(deeper), JSON_BUILD_DEPTH_MAX);
    assert_int_equal(json_print_arena(&test_arena, deeper).len, 2 * JSON_BUILD_DEPTH_MAX);
    assert_int_equal(json_compare(deeper, deeper), 0);
    assert_null(nested_arrays(1, deeper).at);

    /* Good for an answer, but not for the disk. */
    Json opened;
    Error err;
    assert_int_equal(json_open(json_bytes(&test_arena, deepest), &opened, &err), STATUS_OK);
    assert_int_equal(json_open(json_bytes(&test_arena, deeper), &opened, &err), STATUS_CORRUPT);
}

static void the_builder_ends_politely_at_its_size(void **state)
{
    (void)state;
    Json piece = string_of(8 << 20);
    JsonBuilder b;
    json_build(&b, &test_arena);
    json_begin_object(&b);
    for (int i = 0; i < 9; i++) {
        json_key(&b, arena_format(&test_arena, "%d", i));
        json_add(&b, piece);
    }
    json_key(&b, SLICE("rest"));
    json_begin_array(&b);
    json_add_null(&b);
    json_add_bool(&b, true);
    json_add_i64(&b, 1);
    json_add_number(&b, 0.5);
    json_add_string(&b, SLICE("x"));
    json_end(&b);
    json_end(&b);
    assert_null(json_built(&b).at);
}

static void the_builder_lets_the_last_of_two_names_count(void **state)
{
    (void)state;
    JsonBuilder b;
    json_build(&b, &test_arena);
    json_begin_object(&b);
    json_key(&b, SLICE("a"));
    json_add_i64(&b, 1);
    json_key(&b, SLICE("b"));
    json_begin_object(&b);
    json_end(&b);
    json_key(&b, SLICE("a"));
    json_add_string(&b, SLICE("longer than what it replaces"));
    json_end(&b);
    Slice printed = json_print_arena(&test_arena, json_built(&b));
    assert_true(slice_equal(printed, SLICE("{\"a\":\"longer than what it replaces\",\"b\":{}}")));
}

static void utf8_is_told_from_other_bytes(void **state)
{
    (void)state;
    static const Slice valid[] = {
        SLICE_INIT(""),
        SLICE_INIT("plain ascii of more than eight bytes"),
        SLICE_INIT("\0"),
        SLICE_INIT("\x7f"),
        SLICE_INIT("\xc2\x80"),
        SLICE_INIT("\xdf\xbf"),
        SLICE_INIT("\xe0\xa0\x80"),
        SLICE_INIT("\xed\x9f\xbf"),
        SLICE_INIT("\xee\x80\x80"),
        SLICE_INIT("\xef\xbf\xbf"),
        SLICE_INIT("\xf0\x90\x80\x80"),
        SLICE_INIT("\xf4\x8f\xbf\xbf"),
        SLICE_INIT("1234567\xc3\xa9"),
    };
    static const Slice invalid[] = {
        SLICE_INIT("\x80"),
        SLICE_INIT("\xbf"),
        SLICE_INIT("\xc0\x80"),
        SLICE_INIT("\xc1\xbf"),
        SLICE_INIT("\xc2"),
        SLICE_INIT("\xc2\x41"),
        SLICE_INIT("\xc2\xc2"),
        SLICE_INIT("\xe0\x9f\xbf"),
        SLICE_INIT("\xe2\x82"),
        SLICE_INIT("\xe2\x82\x41"),
        SLICE_INIT("\xed\xa0\x80"),
        SLICE_INIT("\xed\xbf\xbf"),
        SLICE_INIT("\xf0\x8f\xbf\xbf"),
        SLICE_INIT("\xf0\x90\x80"),
        SLICE_INIT("\xf0\x90\x80\x41"),
        SLICE_INIT("\xf4\x90\x80\x80"),
        SLICE_INIT("\xf5\x80\x80\x80"),
        SLICE_INIT("\xff"),
        SLICE_INIT("12345678\xff"),
        SLICE_INIT("1234567\xc3"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(valid); i++)
        assert_true(json_utf8_valid(valid[i]));
    for (size_t i = 0; i < ARRAY_COUNT(invalid); i++)
        assert_false(json_utf8_valid(invalid[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_the_bytes_that_the_format_says),
        cmocka_unit_test(strings_grow_their_header_where_they_must),
        cmocka_unit_test(containers_change_form_where_they_must),
        cmocka_unit_test(the_end_of_an_object_stays_within_its_room),
        cmocka_unit_test(members_are_found_in_objects_of_every_size),
        cmocka_unit_test(odd_names_are_names_too),
        cmocka_unit_test(what_is_not_there_is_undefined),
        cmocka_unit_test(integers_come_out_as_integers),
        cmocka_unit_test(sixty_four_bit_integers_are_carried_exactly),
        cmocka_unit_test(copies_of_values_stand_on_their_own),
        cmocka_unit_test(the_builder_ends_politely_at_its_depth),
        cmocka_unit_test(the_builder_ends_politely_at_its_size),
        cmocka_unit_test(the_builder_lets_the_last_of_two_names_count),
        cmocka_unit_test(utf8_is_told_from_other_bytes),
    };
    return cmocka_run_group_tests(tests, test_arena_setup, test_arena_teardown);
}
