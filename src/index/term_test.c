/* term_test.c - encoded values order and read back as the values they stand for. */
#include "index/term.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/test_seed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const HashKey KEY = {1, 2};

static Json json_of_number(Arena *arena, double number)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_add_number(&b, number);
    return json_built(&b);
}

static Json json_of_string(Arena *arena, Slice text)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_add_string(&b, text);
    return json_built(&b);
}

static double random_number(Random *random)
{
    static const double SPECIAL[] = {
        0.0,    -0.0,  1,      -1,       0.5,    0x1p53,    -0x1p53, 0x1p53 - 1, 0x1p63,   -0x1p63,
        0x1p64, 1e308, -1e308, 4.9e-324, 1e-310, -4.9e-324, NAN,     INFINITY,   -INFINITY};
    switch (random_below(random, 4)) {
    case 0:
        return SPECIAL[random_below(random, ARRAY_COUNT(SPECIAL))];
    case 1:
        return (double)random_below(random, 20) - 10;
    case 2:
        return (double)(int64_t)random_u64(random) / 1000;
    default: {
        uint64_t bits = random_u64(random);
        double number;
        memcpy(&number, &bits, sizeof(number));
        return number;
    }
    }
}

/* Few different characters, zero bytes among them, and lengths around the cut. */
static Slice random_text(Random *random, Arena *arena)
{
    static const char *const PIECES[] = {"a", "b", "\x01", "\xC3\xA9", "\xEF\xBF\xBF", "\x7F"};
    size_t lengths[] = {0, 1, 2, 3, 94, 95, 96, 97, 98, 150};
    size_t wanted = lengths[random_below(random, ARRAY_COUNT(lengths))];
    bool is_uniform = random_below(random, 2) == 0;
    AUTO(buf_done) Buf text;
    buf_init(&text, 1024);
    while (text.len < wanted) {
        bool is_long = wanted > 10 && text.len + 10 < wanted;
        uint64_t dice = random_below(random, ARRAY_COUNT(PIECES) + 2);
        if (is_long && is_uniform)
            buf_byte(&text, 'x');
        else if (dice >= ARRAY_COUNT(PIECES))
            buf_byte(&text, 0);
        else
            buf_slice(&text, slice_from_cstr(PIECES[dice]));
    }
    return arena_copy(arena, buf_view(&text));
}

static Json random_scalar(Random *random, Arena *arena)
{
    JsonBuilder b;
    switch (random_below(random, 8)) {
    case 0:
        json_build(&b, arena);
        json_add_null(&b);
        return json_built(&b);
    case 1:
        json_build(&b, arena);
        json_add_bool(&b, random_below(random, 2) == 0);
        return json_built(&b);
    case 2:
    case 3:
    case 4:
        return json_of_number(arena, random_number(random));
    default:
        return json_of_string(arena, random_text(random, arena));
    }
}

static int sign(int order)
{
    return (order > 0) - (order < 0);
}

static void encoded_values_order_like_the_values(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    AUTO(buf_done) Buf x;
    AUTO(buf_done) Buf y;
    buf_init(&x, 4096);
    buf_init(&y, 4096);
    for (int i = 0; i < 100000; i++) {
        arena_reset(&arena);
        buf_reset(&x);
        buf_reset(&y);
        Json a = random_scalar(&random, &arena);
        Json b = random_scalar(&random, &arena);
        bool is_a_cut = json_is(a, JSON_STRING) && json_string(a).len > TERM_STRING_BYTES;
        bool is_b_cut = json_is(b, JSON_STRING) && json_string(b).len > TERM_STRING_BYTES;
        bool exact = true;
        term_put_json(&x, a, &exact);
        term_put_json(&y, b, &exact);
        assert_true(x.len <= TERM_VALUE_BYTES_MAX / 8 && !x.full);
        int wanted = sign(json_compare(a, b));
        int found = sign(slice_compare(buf_view(&x), buf_view(&y)));
        /* Two that were cut may look the same, but never the wrong way round. */
        if (found != wanted && !(is_a_cut && is_b_cut && found == 0))
            fail_msg("%s and %s: %d, not %d", json_print_arena(&arena, a).ptr,
                     json_print_arena(&arena, b).ptr, found, wanted);
        /* Prefix-free: no value is the beginning of another one. */
        if (found != 0) {
            assert_false(slice_starts_with(buf_view(&x), buf_view(&y)));
            assert_false(slice_starts_with(buf_view(&y), buf_view(&x)));
        }
    }
}

static void values_read_back(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    AUTO(buf_done) Buf bytes;
    buf_init(&bytes, 4096);
    for (int i = 0; i < 50000; i++) {
        arena_reset(&arena);
        buf_reset(&bytes);
        Json values[3];
        bool exact[3] = {true, true, true};
        for (int k = 0; k < 3; k++) {
            values[k] = random_scalar(&random, &arena);
            term_put_json(&bytes, values[k], &exact[k]);
        }
        Slice rest = buf_view(&bytes);
        for (int k = 0; k < 3; k++) {
            TermValue value;
            assert_true(term_read(&arena, &rest, &value));
            assert_int_equal(value.exact, exact[k]);
            if (json_is(values[k], JSON_NUMBER)) {
                assert_int_equal(value.tag, TERM_NUMBER);
                Json read = json_of_number(&arena, value.number);
                assert_int_equal(json_compare(read, values[k]), 0);
                assert_true(value.number != 0 || !signbit(value.number));
            } else if (json_is(values[k], JSON_STRING)) {
                assert_int_equal(value.tag, TERM_STRING);
                Slice text = json_string(values[k]);
                assert_int_equal(value.exact, text.len <= TERM_STRING_BYTES);
                assert_true(slice_equal(value.text, slice_first(text, TERM_STRING_BYTES)));
            } else {
                assert_true(value.exact);
                assert_int_equal(value.tag, json_is(values[k], JSON_NULL) ? TERM_NULL
                                            : json_bool(values[k])        ? TERM_TRUE
                                                                          : TERM_FALSE);
            }
        }
        assert_int_equal(rest.len, 0);
    }
}

static void prefix_ranges_hold_exactly_the_strings_with_that_prefix(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    AUTO(buf_done) Buf from;
    AUTO(buf_done) Buf to;
    AUTO(buf_done) Buf value;
    buf_init(&from, 4096);
    buf_init(&to, 4096);
    buf_init(&value, 4096);
    size_t inside = 0;
    for (int i = 0; i < 50000; i++) {
        arena_reset(&arena);
        buf_reset(&from);
        buf_reset(&to);
        buf_reset(&value);
        Slice text = random_text(&random, &arena);
        Slice prefix = random_text(&random, &arena);
        if (random_below(&random, 2) == 0)
            prefix = slice_first(text, (size_t)random_below(&random, text.len + 1));
        bool exact = true;
        term_put_prefix(&from, prefix, &exact);
        assert_int_equal(exact, prefix.len <= TERM_STRING_BYTES);
        buf_slice(&to, buf_view(&from));
        term_after(&to);
        bool ignored = true;
        term_put_string(&value, text, &ignored);
        bool is_inside = slice_compare(buf_view(&value), buf_view(&from)) >= 0 &&
                         slice_compare(buf_view(&value), buf_view(&to)) < 0;
        inside += is_inside;
        if (exact)
            assert_int_equal(is_inside, slice_starts_with(text, prefix));
        else
            assert_true(is_inside || !slice_starts_with(text, prefix));
    }
    assert_true(inside > 1000);
}

static void encodings_are_the_ones_of_the_format(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        Slice bytes;
        bool exact;
    } ROWS[] = {
        {"null", SLICE_INIT("\x05"), true},
        {"false", SLICE_INIT("\x06"), true},
        {"true", SLICE_INIT("\x07"), true},
        {"0", SLICE_INIT("\x08\x80\0\0\0\0\0\0\0"), true},
        {"-0.0", SLICE_INIT("\x08\x80\0\0\0\0\0\0\0"), true},
        {"1", SLICE_INIT("\x08\xBF\xF0\0\0\0\0\0\0"), true},
        {"-1", SLICE_INIT("\x08\x40\x0F\xFF\xFF\xFF\xFF\xFF\xFF"), true},
        {"9007199254740991", SLICE_INIT("\x08\xC3\x3F\xFF\xFF\xFF\xFF\xFF\xFF"), true},
        {"9007199254740992", SLICE_INIT("\x08\xC3\x40\0\0\0\0\0\0"), false},
        {"\"\"", SLICE_INIT("\x0A\0\x01"), true},
        {"\"ab\"", SLICE_INIT("\x0A\x61\x62\0\x01"), true},
        {"\"a\\u0000\"", SLICE_INIT("\x0A\x61\0\xFF\0\x01"), true},
        {"[1]", SLICE_INIT("\x0C"), false},
        {"{}", SLICE_INIT("\x0D"), false},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        Error err;
        Json value;
        assert_int_equal(json_parse(&arena, slice_from_cstr(ROWS[i].json), &value, &err),
                         STATUS_OK);
        AUTO(buf_done) Buf bytes;
        buf_init(&bytes, 4096);
        bool exact = true;
        term_put_json(&bytes, value, &exact);
        assert_int_equal(bytes.len, ROWS[i].bytes.len);
        assert_memory_equal(bytes.ptr, ROWS[i].bytes.ptr, bytes.len);
        assert_int_equal(exact, ROWS[i].exact);
    }
    AUTO(buf_done) Buf bytes;
    buf_init(&bytes, 4096);
    bool exact = true;
    term_put_json(&bytes, JSON_NONE, &exact);
    assert_int_equal(bytes.len, 1);
    assert_int_equal(bytes.ptr[0], TERM_UNDEFINED);
    exact = false; /* is left as it is */
    term_put_json(&bytes, JSON_NONE, &exact);
    assert_false(exact);
}

static void after_follows_everything_with_the_prefix(void **state)
{
    (void)state;
    static const struct {
        Slice bytes, after;
    } ROWS[] = {
        {SLICE_INIT("a"), SLICE_INIT("b")},
        {SLICE_INIT("a\xFF"), SLICE_INIT("b")},
        {SLICE_INIT("a\0\xFF\xFF"), SLICE_INIT("a\x01")},
        {SLICE_INIT("a\x7F"), SLICE_INIT("a\x80")},
        {SLICE_INIT("\xFF\xFF"), SLICE_INIT("")},
        {SLICE_INIT(""), SLICE_INIT("")},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(buf_done) Buf bytes;
        buf_init(&bytes, 64);
        buf_slice(&bytes, ROWS[i].bytes);
        term_after(&bytes);
        assert_true(slice_equal(buf_view(&bytes), ROWS[i].after));
    }
}

static void bytes_that_are_no_value_are_refused(void **state)
{
    (void)state;
    static const Slice ROWS[] = {
        SLICE_INIT(""),
        SLICE_INIT("\x01"),
        SLICE_INIT("\x0E"),
        SLICE_INIT("\xFF"),
        SLICE_INIT("\x08"),
        SLICE_INIT("\x08\1\2\3\4\5\6\7"),
        SLICE_INIT("\x0A"),
        SLICE_INIT("\x0A\x61\x62"),
        SLICE_INIT("\x0A\x61\0"),
        SLICE_INIT("\x0A\x61\0\x03"),
        SLICE_INIT("\x0A\x61\0\xFF"),
        SLICE_INIT("\x0A\x61\0\x02"), /* cut, but short */
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        Slice rest = ROWS[i];
        TermValue value;
        assert_false(term_read(&arena, &rest, &value));
        assert_true(slice_equal(rest, ROWS[i]));
    }
    AUTO(buf_done) Buf bytes;
    buf_init(&bytes, 4096);
    buf_byte(&bytes, TERM_STRING);
    for (int i = 0; i < TERM_STRING_BYTES + 1; i++)
        buf_byte(&bytes, 'x');
    buf_slice(&bytes, SLICE("\0\1"));
    Slice rest = buf_view(&bytes);
    TermValue value;
    assert_false(term_read(&arena, &rest, &value));
}

static void keys_read_back(void **state)
{
    (void)state;
    static const struct {
        TermPath path;
        Slice value;
        uint64_t high;
    } ROWS[] = {
        {0, SLICE_INIT("\0"), 0},
        {UINT64_MAX, SLICE_INIT("\x0A\x61\0\x01"), (UINT64_C(1) << 48) - 1},
        {UINT64_C(0x0102030405060708), SLICE_INIT("\x07"), 0x0A0B0C},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(buf_done) Buf key;
        buf_init(&key, 4096);
        term_key(&key, ROWS[i].path, ROWS[i].value, ROWS[i].high);
        assert_int_equal(key.len, TERM_KEY_HEAD + ROWS[i].value.len + TERM_CHUNK_BYTES);
        TermPath path;
        Slice value;
        uint64_t high;
        assert_true(term_key_read(buf_view(&key), &path, &value, &high));
        assert_true(path == ROWS[i].path);
        assert_true(slice_equal(value, ROWS[i].value));
        assert_true(high == ROWS[i].high);
        key.ptr[0]++;
        assert_false(term_key_read(buf_view(&key), &path, &value, &high));
    }
    TermPath path;
    Slice value;
    uint64_t high;
    /* No room for a value. */
    assert_false(term_key_read(SLICE("\x10"
                                     "12345678"
                                     "123456"),
                               &path, &value, &high));
    assert_false(term_key_read(SLICE_EMPTY, &path, &value, &high));
    /* A value longer than any that is written: a damaged key. */
    char longest[TERM_KEY_HEAD + TERM_VALUE_BYTES_MAX + TERM_CHUNK_BYTES + 1] = {TERM_KIND};
    assert_true(term_key_read(slice_make(longest, sizeof(longest) - 1), &path, &value, &high));
    assert_false(term_key_read(slice_make(longest, sizeof(longest)), &path, &value, &high));
}

static void paths_differ_by_every_step_and_by_key(void **state)
{
    (void)state;
    char long_name[400];
    memset(long_name, 'n', sizeof(long_name));
    TermPath root = term_path_root(KEY);
    TermPath a = term_path_name(KEY, root, SLICE("a"));
    const TermPath paths[] = {
        root,
        a,
        term_path_root((HashKey){1, 3}),
        term_path_name((HashKey){1, 3}, root, SLICE("a")),
        term_path_name(KEY, root, SLICE("b")),
        term_path_name(KEY, root, SLICE("")),
        term_path_name(KEY, root, SLICE("[]")),
        term_path_element(KEY, root),
        term_path_element(KEY, a),
        term_path_name(KEY, a, SLICE("a")),
        term_path_name(KEY, a, SLICE("b")),
        term_path_name(KEY, root, slice_make(long_name, 119)),
        term_path_name(KEY, root, slice_make(long_name, 120)),
        term_path_name(KEY, root, slice_make(long_name, 121)),
        term_path_name(KEY, a, slice_make(long_name, 121)),
        term_path_name(KEY, root, slice_make(long_name, 400)),
    };
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        for (size_t k = 0; k < i; k++)
            assert_true(paths[i] != paths[k]);
    }
    assert_true(a == term_path_name(KEY, term_path_root(KEY), SLICE("a")));
}

/* Whatever kind of values they are, one in 64, 256 and so on. */
static void samples_have_their_share_of_the_values(void **state)
{
    (void)state;
    enum { VALUES = 1 << 19 };
    static const struct {
        const char *before, *after; /* NULL if the values are numbers */
    } KINDS[] = {{NULL, NULL}, {"", ""}, {"user-", ""}, {"2024-03-15T12:", " and some more text"}};
    AUTO(buf_done) Buf value;
    buf_init(&value, TERM_VALUE_BYTES_MAX);
    for (size_t kind = 0; kind < ARRAY_COUNT(KINDS); kind++) {
        size_t counts[TERM_SAMPLES + 1] = {0};
        for (int i = 0; i < VALUES; i++) {
            bool exact = true;
            buf_reset(&value);
            char text[80];
            if (KINDS[kind].before == NULL) {
                term_put_number(&value, i, &exact);
            } else {
                int len = snprintf(text, sizeof(text), "%s%06d%s", KINDS[kind].before, i,
                                   KINDS[kind].after);
                term_put_string(&value, slice_make(text, (size_t)len), &exact);
            }
            for (unsigned k = term_samples(buf_view(&value)); k > 0; k--)
                counts[k]++;
        }
        for (unsigned k = 1; k < TERM_SAMPLES; k++) { /* the last one has two or so */
            double expected = (double)(VALUES >> (6 + 2 * (k - 1)));
            print_message("kind %zu, sample %u: %zu of %.0f\n", kind, k, counts[k], expected);
            assert_true(fabs((double)counts[k] - expected) < 4 * sqrt(expected));
        }
    }
    assert_int_equal(term_samples(SLICE("\0")), 0);
    assert_int_equal(term_samples(SLICE_EMPTY), 0);
}

static void samples_have_paths_of_their_own(void **state)
{
    (void)state;
    TermPath path = term_path_name(KEY, term_path_root(KEY), SLICE("a"));
    for (unsigned i = 0; i < TERM_SAMPLES; i++) {
        assert_true(term_path_sample(path, i) != path);
        for (unsigned k = 0; k < i; k++)
            assert_true(term_path_sample(path, i) != term_path_sample(path, k));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoded_values_order_like_the_values),
        cmocka_unit_test(values_read_back),
        cmocka_unit_test(prefix_ranges_hold_exactly_the_strings_with_that_prefix),
        cmocka_unit_test(encodings_are_the_ones_of_the_format),
        cmocka_unit_test(after_follows_everything_with_the_prefix),
        cmocka_unit_test(bytes_that_are_no_value_are_refused),
        cmocka_unit_test(keys_read_back),
        cmocka_unit_test(samples_have_their_share_of_the_values),
        cmocka_unit_test(samples_have_paths_of_their_own),
        cmocka_unit_test(paths_differ_by_every_step_and_by_key),
    };
    return cmocka_run_group_tests_name("terms", tests, NULL, NULL);
}
