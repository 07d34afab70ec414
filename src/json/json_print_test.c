/* json_print_test.c - documents as text: escapes, numbers as JavaScript prints them, full buffers.
 */
#include "base/test_seed.h"
#include "base/testing.h"
#include "json/json_random_testing_int.h"

#include <math.h>
#include <stdlib.h>

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint64_t to_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static void assert_number_prints(double number, const char *expected)
{
    Buf text;
    buf_init(&text, 100);
    json_print_number(number, &text);
    if (!slice_equal(buf_view(&text), slice_from_cstr(expected)))
        fail_msg("%.17g prints as '%.*s', expected '%s'", number, SLICE_ARG(buf_view(&text)),
                 expected);
    buf_done(&text);
}

static void numbers_print_as_in_javascript(void **state)
{
    (void)state;
    static const struct {
        uint64_t bits;
        const char *text;
    } rows[] = {
#include "json/number_table.inc"
    };
    Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        double number = from_bits(rows[i].bits);
        assert_number_prints(number, rows[i].text);
        /* The same inside a document, but for an integer, which is stored as one and prints with
         * all its digits. */
        JsonBuilder b;
        json_build(&b, &arena);
        json_add_number(&b, number);
        Json value = json_built(&b);
        Slice printed = json_print_arena(&arena, value);
        int64_t integer;
        Slice expected = json_to_i64(value, &integer) && number != 0
                             ? arena_format(&arena, "%lld", (long long)integer)
                             : slice_from_cstr(rows[i].text);
        double back = 0;
        assert_true(slice_equal(printed, expected));
        assert_true(json_number_from_text(printed, &back) && back == number);
        arena_reset(&arena);
    }
    assert_true(ARRAY_COUNT(rows) > 200);
    arena_done(&arena);
}

static void what_is_not_finite_prints_as_null(void **state)
{
    (void)state;
    assert_number_prints((double)NAN, "null");
    assert_number_prints((double)INFINITY, "null");
    assert_number_prints(-(double)INFINITY, "null");
}

static void integers_of_64_bits_print_exactly(void **state)
{
    (void)state;
    static const struct {
        int64_t integer;
        const char *text;
    } rows[] = {
        {INT64_MAX, "9223372036854775807"},         {INT64_MIN, "-9223372036854775808"},
        {INT64_MIN + 1, "-9223372036854775807"},    {((int64_t)1 << 53) + 1, "9007199254740993"},
        {(int64_t)1 << 62, "4611686018427387904"},  {-((int64_t)1 << 62), "-4611686018427387904"},
        {-((int64_t)1 << 53), "-9007199254740992"},
    };
    Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        JsonBuilder b;
        json_build(&b, &arena);
        json_add_i64(&b, rows[i].integer);
        Slice printed = json_print_arena(&arena, json_built(&b));
        assert_true(slice_equal(printed, slice_from_cstr(rows[i].text)));
    }
    arena_done(&arena);
}

static void random_doubles_survive_text_bit_for_bit(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    Arena arena;
    arena_init(&arena, 4096);
    for (int i = 0; i < 50000; i++) {
        double number = random_number(&random);
        Buf text;
        buf_init(&text, 100);
        json_print_number(number, &text);
        Json value;
        Error err;
        double scanned;
        assert_int_equal(json_parse(&arena, buf_view(&text), &value, &err), STATUS_OK);
        assert_int_equal(to_bits(json_number(value)), to_bits(number));
        assert_true(json_number_from_text(buf_view(&text), &scanned));
        assert_int_equal(to_bits(scanned), to_bits(number));
        arena_reset(&arena);
        buf_done(&text);
    }
    arena_done(&arena);
}

/* The fewest digits with which the C library gets the number back. */
static size_t shortest_digits(double number, char digits[32])
{
    char text[64];
    for (int precision = 0;; precision++) {
        (void)snprintf(text, sizeof(text), "%.*e", precision, number);
        if (strtod(text, NULL) == number)
            break;
    }
    size_t count = 0;
    for (const char *p = text; *p != 'e'; p++) {
        if (*p >= '0' && *p <= '9')
            digits[count++] = *p;
    }
    return count;
}

static void everyday_fractions_print_with_the_fewest_digits(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 2024);
    for (int i = 0; i < 30000; i++) {
        /* Both sides of where the quick way to find the digits ends. */
        double number = (double)random_below(&random, (uint64_t)1 << random_below(&random, 53)) /
                        pow(10, (double)random_below(&random, 11));
        if (number == floor(number))
            continue;
        Buf text;
        buf_init(&text, 100);
        json_print_number(number, &text);
        char digits[32];
        size_t count = shortest_digits(number, digits);
        size_t found = 0;
        for (size_t k = 0; k < text.len && text.ptr[k] != 'e'; k++) {
            if (text.ptr[k] == '.' || (text.ptr[k] == '0' && found == 0))
                continue;
            assert_true(found < count);
            assert_int_equal(text.ptr[k], digits[found++]);
        }
        assert_int_equal(found, count);
        buf_done(&text);
    }
}

static void number_text_is_read_strictly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double number;
    } rows[] = {
        {"0", 0},
        {"1.", 1},
        {".5", 0.5},
        {"-.5e1", -5},
        {"007", 7},
        {"1E2", 100},
        {"1e-400", 0},
        {"0.0001e-9999999999999999999999", 0},
        {"0e9999999999999999999", 0},
        {"-1.79769e+308", -1.79769e+308},
        {"18446744073709551615", 18446744073709551615.0},
    };
    static const char *const refused[] = {
        "",         " 1",       "1 ",
        "+1",       ".",        "-",
        "e1",       "1e",       "1e+",
        "0xF",      "inf",      "nan",
        "NaN",      "1,5",      "1.2.3",
        "--1",      "Infinity", "-inf",
        "1e5x",     "1f",       "1_0",
        "1-",       "1e9999",   "-2e308",
        "0.01e311", "1000e306", "1e99999999999999999999",
    };
    double number;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_true(json_number_from_text(slice_from_cstr(rows[i].text), &number));
        assert_true(number == rows[i].number);
    }
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        if (json_number_from_text(slice_from_cstr(refused[i]), &number))
            fail_msg("'%s' was read as %g", refused[i], number);
    }
}

/* Each byte at each place of strings of all the lengths that are treated apart. */
static void every_byte_is_escaped_at_every_place(void **state)
{
    (void)state;
    char text[64];
    for (int byte = 0; byte < 128; byte++) {
        char escaped[16];
        const char *named =
            byte < 0x20 || byte == '"' || byte == '\\' ? memchr("\b\t\n\f\r\"\\", byte, 7) : "";
        int len = 1;
        escaped[0] = (char)byte;
        if (named == NULL)
            len = snprintf(escaped, sizeof(escaped), "\\u%04x", (unsigned)byte);
        else if (*named != '\0')
            len = snprintf(escaped, sizeof(escaped), "\\%c",
                           "btnfr\"\\"[strchr("\b\t\n\f\r\"\\", byte) - "\b\t\n\f\r\"\\"]);
        for (size_t size = 1; size < 50; size++) {
            for (size_t at = 0; at < size; at++) {
                memset(text, 'x', sizeof(text));
                text[at] = (char)byte;
                Buf out;
                buf_init(&out, 1000);
                json_print_string(slice_make(text, size), &out);
                Slice printed = buf_view(&out);
                assert_int_equal(printed.len, size + 1 + (size_t)len);
                assert_memory_equal(printed.ptr + 1 + at, escaped, (size_t)len);
                assert_int_equal(printed.ptr[0], '"');
                assert_int_equal(printed.ptr[printed.len - 1], '"');
                buf_done(&out);
            }
        }
    }
}

static void a_full_buffer_drops_the_rest_and_says_so(void **state)
{
    (void)state;
    Arena arena;
    arena_init(&arena, 4096);
    Json value;
    Error err;
    Slice text = SLICE("{\"a\":[1,2.5,\"x\\ny\",null,true,12345678]}");
    assert_int_equal(json_parse(&arena, text, &value, &err), STATUS_OK);
    for (size_t size = 0; size <= text.len; size++) {
        Buf out;
        buf_init(&out, size);
        json_print(value, &out);
        assert_int_equal(buf_full(&out), size < text.len);
        buf_done(&out);
    }
    arena_done(&arena);
}

static void undefined_prints_nothing(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, 10);
    json_print(JSON_NONE, &out);
    assert_int_equal(out.len, 0);
    Arena arena;
    arena_init(&arena, 4096);
    assert_int_equal(json_print_arena(&arena, JSON_NONE).len, 0);
    arena_done(&arena);
    buf_done(&out);
}

/* The values that grow most in print, for which json_print_arena sizes its buffer. */
static void the_longest_prints_fit(void **state)
{
    (void)state;
    Arena arena;
    arena_init(&arena, 4096);
    static const char *const texts[] = {
        "[false,false,false,false,false]",
        "\"\\u0000\\u0001\\u0002\\u0003\\u0004\\u0005\"",
        "{\"\\u0000\":false}",
        "[-1.2345678901234568e-300,-128,-32768,-2147483648]",
        "[[],{},\"\",[[[[]]]]]",
        "false",
    };
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        Json value;
        Error err;
        assert_int_equal(json_parse(&arena, slice_from_cstr(texts[i]), &value, &err), STATUS_OK);
        Slice printed = json_print_arena(&arena, value);
        assert_true(slice_equal(printed, slice_from_cstr(texts[i])));
    }
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_print_as_in_javascript),
        cmocka_unit_test(what_is_not_finite_prints_as_null),
        cmocka_unit_test(integers_of_64_bits_print_exactly),
        cmocka_unit_test(random_doubles_survive_text_bit_for_bit),
        cmocka_unit_test(everyday_fractions_print_with_the_fewest_digits),
        cmocka_unit_test(number_text_is_read_strictly),
        cmocka_unit_test(every_byte_is_escaped_at_every_place),
        cmocka_unit_test(a_full_buffer_drops_the_rest_and_says_so),
        cmocka_unit_test(undefined_prints_nothing),
        cmocka_unit_test(the_longest_prints_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
