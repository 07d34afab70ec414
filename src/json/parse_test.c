/* parse_test.c - text into documents: what is accepted and becomes what, and what is refused. */
#include "base/mem.h"
#include "base/test_seed.h"
#include "json/json_random_testing_int.h"
#include "json/json_testing.h"

#include <pthread.h>

typedef struct Row {
    const char *text;
    const char *expected;
} Row;

static Json parse(Slice text)
{
    return text_json(&test_arena, text);
}

static void assert_prints(const char *text, Json value, const char *expected)
{
    Slice printed = json_print_arena(&test_arena, value);
    if (!slice_equal(printed, slice_from_cstr(expected)))
        fail_msg("'%s' prints as '%.*s', expected '%s'", text, SLICE_ARG(printed), expected);
    Json opened;
    Error err;
    assert_int_equal(json_open(json_bytes(&test_arena, value), &opened, &err), STATUS_OK);
}

static void assert_rows(const Row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_prints(rows[i].text, parse(slice_from_cstr(rows[i].text)), rows[i].expected);
}

static void values_of_every_type_are_parsed(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"null", "null"},
        {"true", "true"},
        {"false", "false"},
        {"\"\"", "\"\""},
        {"[]", "[]"},
        {"{}", "{}"},
        {" \t\r\n[ 1 , 2 ]\n", "[1,2]"},
        {"{ \"b\" : 1 , \"a\" : { \"c\" : [ ] } }", "{\"b\":1,\"a\":{\"c\":[]}}"},
        {"\xef\xbb\xbf{\"a\":1}", "{\"a\":1}"},
        {"[[[[1]],[]],{\"\":{}}]", "[[[[1]],[]],{\"\":{}}]"},
    };
    assert_rows(rows, ARRAY_COUNT(rows));
}

static void numbers_are_doubles(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"0", "0"},
        {"-0", "0"},
        {"-0.0", "0"},
        {"1.0", "1"},
        {"1E2", "100"},
        {"1e+2", "100"},
        {"-1.5e-3", "-0.0015"},
        {"9007199254740991", "9007199254740991"},
        {"9007199254740992", "9007199254740992"},
        {"9007199254740993", "9007199254740992"},
        {"-9007199254740993", "-9007199254740992"},
        {"9223372036854775807", "9223372036854776000"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"-9223372036854775807", "-9223372036854775808"},
        {"4611686018427387904", "4611686018427387904"},
        {"1234567890123456789", "1234567890123456768"},
        {"9223372036854775808", "9223372036854776000"},
        {"18446744073709551615", "18446744073709552000"},
        {"18446744073709551616", "18446744073709552000"},
        {"-9223372036854775809", "-9223372036854775808"},
        {"-9223372036854777856", "-9223372036854778000"},
        {"123456789012345678901234567890", "1.2345678901234568e+29"},
        {"[1234567890123456789012,-1234567890123456789012]",
         "[1.2345678901234568e+21,-1.2345678901234568e+21]"},
        {"{\"a\":\"1234567890123456789012\",\"b\":1234567890123456789012}",
         "{\"a\":\"1234567890123456789012\",\"b\":1.2345678901234568e+21}"},
        {"1e-400", "0"},
        {"5e-324", "5e-324"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"},
        {"0.1", "0.1"},
        {"123456789012345678901234567890.5", "1.2345678901234568e+29"},
        {"0e999999999999999999999", "0"},
    };
    assert_rows(rows, ARRAY_COUNT(rows));
}

static void a_number_has_one_encoding(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"1", "1.0"},
        {"1", "10e-1"},
        {"100", "1E2"},
        {"-5", "-5.000"},
        {"0.5", "5e-1"},
        {"9007199254740993", "9007199254740992"},
        {"1e18", "1000000000000000000"},
        {"18446744073709551616", "1.8446744073709551616e19"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice a = json_bytes(&test_arena, parse(slice_from_cstr(rows[i].text)));
        Slice b = json_bytes(&test_arena, parse(slice_from_cstr(rows[i].expected)));
        assert_true(slice_equal(a, b));
    }
    /* The sign of zero is the one thing that only a double can hold. */
    Json minus_zero = parse(SLICE("-0.0"));
    assert_true(1 / json_number(minus_zero) < 0);
}

static void strings_are_unescaped(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"\"a\\\"b\\\\c\\/d\"", "\"a\\\"b\\\\c/d\""},
        {"\"\\b\\f\\n\\r\\t\"", "\"\\b\\f\\n\\r\\t\""},
        {"\"\\u0000\\u001F\\u007f\"", "\"\\u0000\\u001f\x7f\""},
        {"\"\\u00e9\\u20AC\"", "\"\xc3\xa9\xe2\x82\xac\""},
        {"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\""},
        {"\"\xf0\x9f\x98\x80 \xed\x9f\xbf \xee\x80\x80\"",
         "\"\xf0\x9f\x98\x80 \xed\x9f\xbf \xee\x80\x80\""},
        {"\"\\u2028\"", "\"\xe2\x80\xa8\""},
        {"{\"\\u0061\\n\":1}", "{\"a\\n\":1}"},
        /* also in a text that is read twice, for its long integer */
        {"{\"\\ud83d\\ude00\\\"\":\"1\\\\\",\"n\":12345678901234567890123}",
         "{\"\xf0\x9f\x98\x80\\\"\":\"1\\\\\",\"n\":1.2345678901234568e+22}"},
        {"\"</script>\"", "\"</script>\""},
    };
    assert_rows(rows, ARRAY_COUNT(rows));
}

static void of_a_name_given_twice_the_last_value_counts_in_the_place_of_the_first(void **state)
{
    (void)state;
    static const Row rows[] = {
        {"{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}"},
        {"{\"a\":1,\"a\":2,\"a\":[3]}", "{\"a\":[3]}"},
        {"{\"\":1,\"\":2}", "{\"\":2}"},
        {"{\"b\":1,\"a\":{\"x\":1,\"x\":2},\"b\":{\"y\":0},\"a\":0}", "{\"b\":{\"y\":0},\"a\":0}"},
        {"{\"a\":1,\"\\u0061\":2}", "{\"a\":2}"},
        {"[{\"a\":[[[1]]],\"a\":0}]", "[{\"a\":0}]"},
    };
    assert_rows(rows, ARRAY_COUNT(rows));
    /* The value that did not stay was the deepest. */
    assert_int_equal(json_depth(parse(SLICE("[{\"a\":[[[1]]],\"a\":0}]"))), 2);
}

static void a_thousand_names_given_twice_keep_their_places(void **state)
{
    (void)state;
    Buf text;
    buf_init(&text, 1 << 20);
    buf_byte(&text, '{');
    for (int i = 0; i < 2000; i++)
        buf_format(&text, "%s\"longer than eight %d\":%d", i == 0 ? "" : ",", i % 1000, i);
    buf_byte(&text, '}');
    Json value = parse(buf_view(&text));
    assert_int_equal(json_count(value), 1000);
    JsonIter it = json_iter(value);
    for (int i = 0; json_next(&it); i++) {
        assert_true(slice_equal(it.name, arena_format(&test_arena, "longer than eight %d", i)));
        assert_int_equal((int)json_number(it.value), 1000 + i);
    }
    check_look_ups(value);
    buf_done(&text);
}

typedef struct Refusal {
    Slice text;
    size_t at;
    const char *expected;
} Refusal;

static void assert_refused(Slice text, size_t at, const char *expected)
{
    Error err;
    Json value = JSON_NONE;
    Status status = json_parse(&test_arena, text, &value, &err);
    if (status != STATUS_BAD_REQUEST)
        fail_msg("'%.*s' was not refused", SLICE_CUT(text, 100));
    char begin[64];
    (void)snprintf(begin, sizeof(begin), "invalid JSON at byte %zu: expected ", at);
    if (strncmp(err.message, begin, strlen(begin)) != 0 || strstr(err.message, expected) == NULL)
        fail_msg("'%.*s': '%s', expected byte %zu and '%s'", SLICE_CUT(text, 100), err.message, at,
                 expected);
    assert_null(value.at);
}

#define TEXT(literal) SLICE_INIT(literal)

static void half_a_surrogate_pair_is_refused(void **state)
{
    (void)state;
    static const Refusal rows[] = {
        {TEXT("\"\\ud800\""), 1, "both halves"},
        {TEXT("\"\\uDC00\""), 1, "both halves"},
        {TEXT("\"a\\udfffb\""), 2, "both halves"},
        {TEXT("\"\\uDBFF"), 1, "both halves"},
        {TEXT("\"\\ud800\\u0041\""), 1, "both halves"},
        {TEXT("\"\\ud800\\ud83d\\ude00\""), 1, "both halves"},
        {TEXT("\"\\ud83d\\ude00\\ude00\""), 13, "both halves"},
        {TEXT("\"\\ud800\\\\dc00\""), 1, "both halves"},
        {TEXT("\"\\\\ud800\\ud800\""), 8, "both halves"},
        {TEXT("\"\\ud800\\udc0\""), 12, "four hexadecimal digits"},
        {TEXT("{\"\\udc00\":1}"), 2, "both halves"},
        {TEXT("{\"a\":[12345678901234567890123,\"\\ud800\"]}"), 31, "both halves"},
        /* the same in bytes */
        {TEXT("\"\xed\xa0\x80\""), 1, "well-formed UTF-8"},
        {TEXT("\"\xed\xa0\xbd\xed\xb8\x80\""), 1, "well-formed UTF-8"},
        {TEXT("\"\xed\xbf\xbf\""), 1, "well-formed UTF-8"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_refused(rows[i].text, rows[i].at, rows[i].expected);
}

static void refusals_say_what_and_where(void **state)
{
    (void)state;
    static const Refusal rows[] = {
        {TEXT(""), 0, "a value, found the end"},
        {TEXT("  "), 2, "a value, found the end"},
        {TEXT("\xef\xbb\xbf"), 3, "a value, found the end"},
        {TEXT("\xef\xbb\xbf\xef\xbb\xbf 1"), 3, "a value, found byte 0xef"},
        {TEXT("1 2"), 2, "the end of the text, found '2'"},
        {TEXT("{} x"), 3, "the end of the text, found 'x'"},
        {TEXT("1\0"), 1, "the end of the text, found byte 0x00"},
        {TEXT("nul"), 0, "'null'"},
        {TEXT("True"), 0, "a value, found 'T'"},
        {TEXT("truely"), 4, "the end"},
        {TEXT("NaN"), 0, "a value"},
        {TEXT("Infinity"), 0, "a value"},
        {TEXT("-Infinity"), 1, "a digit"},
        {TEXT("'a'"), 0, "a value"},
        {TEXT("[1,]"), 3, "a value, found ']'"},
        {TEXT("[,1]"), 1, "a value"},
        {TEXT("[1 2]"), 3, "',' or ']'"},
        {TEXT("[1"), 2, "',' or ']', found the end"},
        {TEXT("]"), 0, "a value"},
        {TEXT("[1}"), 2, "',' or ']'"},
        {TEXT("{\"a\" 1}"), 5, "':'"},
        {TEXT("{\"a\":}"), 5, "a value"},
        {TEXT("{\"a\":1,}"), 7, "a property name in quotes"},
        {TEXT("{a:1}"), 1, "a property name in quotes"},
        {TEXT("{1:1}"), 1, "a property name in quotes"},
        {TEXT("{\"a\":1"), 6, "',' or '}'"},
        {TEXT("{\"a\":1]"), 6, "',' or '}'"},
        {TEXT("{\"a\":1 \"b\":2}"), 7, "',' or '}'"},
        {TEXT("// x\n1"), 0, "a value"},
        {TEXT("01"), 1, "no digit after a leading zero"},
        {TEXT("-"), 1, "a digit"},
        {TEXT("-a"), 1, "a digit"},
        {TEXT("+1"), 0, "a value"},
        {TEXT(".5"), 0, "a value"},
        {TEXT("5."), 2, "a digit"},
        {TEXT("1e"), 2, "a digit"},
        {TEXT("1e+"), 3, "a digit"},
        {TEXT("0x10"), 1, "the end"},
        {TEXT("1_000"), 1, "the end"},
        {TEXT("[0,1e999]"), 3, "a number in the range of a double"},
        {TEXT("-1e999"), 0, "a number in the range of a double"},
        {TEXT("1.7976931348623159e308"), 0, "a number in the range of a double"},
        {TEXT("\"abc"), 4, "a closing quote"},
        {TEXT("\"a\nb\""), 2, "a control character to be escaped, found byte 0x0a"},
        {TEXT("\"a\0b\""), 2, "a control character to be escaped, found byte 0x00"},
        {TEXT("\"\\x41\""), 2, "one of"},
        {TEXT("\"\\"), 2, "one of"},
        {TEXT("\"\\u12g4\""), 5, "four hexadecimal digits"},
        {TEXT("\"\\u12"), 5, "four hexadecimal digits"},
        {TEXT("\"a\x80\""), 2, "well-formed UTF-8"},
        {TEXT("\"\xc0\xaf\""), 1, "well-formed UTF-8"},
        {TEXT("\"\xed\xa0\x80\""), 1, "well-formed UTF-8"},
        {TEXT("\"\xf4\x90\x80\x80\""), 1, "well-formed UTF-8"},
        {TEXT("\"\xe2\x82\""), 1, "well-formed UTF-8"},
        {TEXT("{\"\xff\":1}"), 2, "well-formed UTF-8"},
        {TEXT("[\x01]"), 1, "a value, found byte 0x01"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_refused(rows[i].text, rows[i].at, rows[i].expected);
}

static Slice nested(size_t levels, Slice open, Slice inner, Slice close)
{
    Buf text;
    buf_init(&text, 1 << 20);
    for (size_t i = 0; i < levels; i++)
        buf_slice(&text, open);
    buf_slice(&text, inner);
    for (size_t i = 0; i < levels; i++)
        buf_slice(&text, close);
    Slice copy = arena_copy(&test_arena, buf_view(&text));
    buf_done(&text);
    return copy;
}

static void nesting_ends_at_the_limit(void **state)
{
    (void)state;
    Json deepest = parse(nested(JSON_DEPTH_MAX, SLICE("["), SLICE("1"), SLICE("]")));
    assert_int_equal(json_depth(deepest), JSON_DEPTH_MAX);
    deepest = parse(nested(JSON_DEPTH_MAX, SLICE("{\"a\":"), SLICE("1"), SLICE("}")));
    Json opened;
    Error err;
    assert_int_equal(json_open(json_bytes(&test_arena, deepest), &opened, &err), STATUS_OK);

    const char *expected = "no more than 128 levels";
    assert_refused(nested(129, SLICE("["), SLICE("1"), SLICE("]")), 128, expected);
    assert_refused(nested(129, SLICE("{\"a\":"), SLICE("1"), SLICE("}")), 128 * 5, expected);
    assert_refused(nested(100000, SLICE("["), SLICE(""), SLICE("")), 128, expected);
}

static void an_integer_of_hundreds_of_digits_is_a_double_or_refused(void **state)
{
    (void)state;
    Json value = parse(nested(308, SLICE("9"), SLICE(""), SLICE("")));
    assert_true(json_number(value) == 1e308);
    assert_refused(nested(309, SLICE("9"), SLICE(""), SLICE("")), 0, "the range of a double");
    value = parse(nested(309, SLICE("1"), SLICE(""), SLICE("")));
    assert_true(json_number(value) > 1.1e308);
}

static void text_beyond_the_limit_is_refused(void **state)
{
    (void)state;
    char *text = mem_alloc(JSON_TEXT_BYTES_MAX + 1);
    memset(text, 'x', JSON_TEXT_BYTES_MAX + 1);
    text[0] = text[JSON_TEXT_BYTES_MAX - 1] = '"';
    Json value = parse(slice_make(text, JSON_TEXT_BYTES_MAX));
    assert_int_equal(json_string(value).len, JSON_TEXT_BYTES_MAX - 2);
    text[JSON_TEXT_BYTES_MAX] = ' ';
    Error err;
    assert_int_equal(
        json_parse(&test_arena, slice_make(text, JSON_TEXT_BYTES_MAX + 1), &value, &err),
        STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, "longer than 4194304"));
    mem_free(text);
}

/* Hundreds of thousands of members, half of them twice: what must not take quadratic time. */
static void a_hostile_object_is_parsed_in_reasonable_time(void **state)
{
    (void)state;
    Buf text;
    buf_init(&text, JSON_TEXT_BYTES_MAX);
    buf_byte(&text, '{');
    int count = 0;
    for (; text.len < JSON_TEXT_BYTES_MAX - 64; count++)
        buf_format(&text, "\"prefix%d\":0,", count / 2);
    buf_slice(&text, SLICE("\"end\":1}"));
    assert_false(buf_full(&text));
    Json value = parse(buf_view(&text));
    assert_int_equal(json_count(value), (count + 1) / 2 + 1);
    assert_int_equal((int)json_number(json_get(value, SLICE("end"))), 1);
    Json again = parse(buf_view(&text));
    assert_int_equal(json_compare(value, again), 0);
    buf_done(&text);
}

static void text_without_padding_is_not_read_beyond_its_end(void **state)
{
    (void)state;
    /* Memory of exactly the text's size, so that the address sanitizer sees any step beyond. */
    Slice text = SLICE("{\"a\":[1,2.5,\"x\"]}");
    for (size_t len = 0; len <= text.len; len++) {
        char *copy = mem_copy(text.ptr, len);
        Json value;
        Error err;
        Status status = json_parse(&test_arena, slice_make(copy, len), &value, &err);
        assert_int_equal(status, len == text.len ? STATUS_OK : STATUS_BAD_REQUEST);
        mem_free(copy);
    }
}

static void random_documents_survive_printing_and_parsing(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    for (int i = 0; i < 1500; i++) {
        arena_reset(&test_arena);
        bool wide = i % 50 == 0;
        Json value = random_document(&random, &test_arena,
                                     wide ? 1 : (uint32_t)random_below(&random, 6), wide ? 90 : 5);
        Json parsed = parse(json_print_arena(&test_arena, value));
        assert_true(slice_equal(json_bytes(&test_arena, value), json_bytes(&test_arena, parsed)));
        check_look_ups(parsed);
    }
}

static void *parse_in_a_thread(void *texts)
{
    Arena own;
    arena_init(&own, 4096);
    size_t count = 0;
    for (int i = 0; i < 2000; i++) {
        const char *text = ((const char *const *)texts)[i % 3];
        Json value;
        Error err;
        count += json_parse(&own, slice_from_cstr(text), &value, &err) == STATUS_OK &&
                 slice_equal(json_print_arena(&own, value), slice_from_cstr(text));
        arena_reset(&own);
    }
    arena_done(&own);
    return count == 2000 ? texts : NULL;
}

static void threads_parse_side_by_side(void **state)
{
    (void)state;
    static const char *texts[] = {"{\"a\":[1,2,3],\"b\":\"text\"}", "[0.5,null,[true]]", "\"x\""};
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, parse_in_a_thread, texts), 0);
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, texts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_every_type_are_parsed),
        cmocka_unit_test(numbers_are_doubles),
        cmocka_unit_test(a_number_has_one_encoding),
        cmocka_unit_test(strings_are_unescaped),
        cmocka_unit_test(half_a_surrogate_pair_is_refused),
        cmocka_unit_test(of_a_name_given_twice_the_last_value_counts_in_the_place_of_the_first),
        cmocka_unit_test(a_thousand_names_given_twice_keep_their_places),
        cmocka_unit_test(refusals_say_what_and_where),
        cmocka_unit_test(nesting_ends_at_the_limit),
        cmocka_unit_test(an_integer_of_hundreds_of_digits_is_a_double_or_refused),
        cmocka_unit_test(text_beyond_the_limit_is_refused),
        cmocka_unit_test(a_hostile_object_is_parsed_in_reasonable_time),
        cmocka_unit_test(text_without_padding_is_not_read_beyond_its_end),
        cmocka_unit_test(threads_parse_side_by_side),
        cmocka_unit_test(random_documents_survive_printing_and_parsing),
    };
    return cmocka_run_group_tests(tests, test_arena_setup, test_arena_teardown);
}
