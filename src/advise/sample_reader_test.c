/* sample_reader_test.c - JSON lines and arrays, in pieces of every size; what is neither. */
#include "advise/sample_reader.h"

#include "advise/advise_testing_int.h"

/* Feeds 'text' in pieces of 'step' bytes. */
static Status read_text(Slice text, size_t step, uint64_t *items, Error *err)
{
    AUTO(sample_done) Sample sample;
    begin_sample(&sample);
    AUTO(sample_reader_done) SampleReader reader;
    sample_reader_init(&reader, &sample);
    while (text.len > 0) {
        TRY(sample_reader_feed(&reader, slice_first(text, step), err));
        text = slice_from(text, step);
    }
    TRY(sample_reader_end(&reader, err));
    *items = sample.count;
    return STATUS_OK;
}

static void lines_and_arrays_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t items;
    } rows[] = {
        {"", 0},
        {" \n\t", 0},
        {"[]", 0},
        {"{}", 1},
        {"{\"a\":1}\n{\"a\":2}\n", 2},
        {"{\"a\":1}\r\n\r\n{\"a\":2}", 2},
        {"{\"a\":1} {\"a\":2}", 2},
        {"[{\"a\":1},{\"a\":[{}]}]", 2},
        {" [ {\n\"a\": 1\n} ,\n{}\n] \n", 2},
        {"{\"a\":\"}{][\\\"}\"}\n{\"\\\\\":\"\\\\\"}", 2},
        {"\xEF\xBB\xBF{\"a\":1}", 1},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        for (size_t step = 1; step < 40; step += 5) {
            uint64_t items = 0;
            Error err;
            if (read_text(slice_from_cstr(rows[i].text), step, &items, &err) != STATUS_OK)
                fail_msg("'%s': %s", rows[i].text, err.message);
            assert_int_equal(items, rows[i].items);
        }
    }
}

static void what_is_neither_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {"x", "line 1: expected an object or an array"},
        {"\x01", "found byte 0x01"},
        {"{}\n\n5", "line 3: expected an object on each line, found '5'"},
        {"{}\n{\"a\"}", "line 2"},
        {"[1]", "expected an object"},
        {"[{},]", "expected an object, found ']'"},
        {"[{} {}]", "',' or ']'"},
        {"[{}] {}", "nothing after the array"},
        {"[{}", "the array has no end"},
        {"[", "the array has no end"},
        {"{\"a\":", "in the middle of an item"},
        {"{\"a\":\"}", "in the middle of an item"},
        {"{\"a\":]}", "line 1"},
        {"{\"a\":\"\xFF\"}", "line 1"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint64_t items = 0;
        Error err;
        if (read_text(slice_from_cstr(rows[i].text), 3, &items, &err) != STATUS_BAD_REQUEST)
            fail_msg("'%s' was accepted", rows[i].text);
        if (strstr(err.message, rows[i].message) == NULL)
            fail_msg("'%s': %s", rows[i].text, err.message);
    }
}

static void depth_and_size_are_bounded(void **state)
{
    (void)state;
    AUTO(buf_done) Buf text;
    buf_init(&text, 16 << 20);
    uint64_t items = 0;
    Error err;
    for (int i = 0; i < 100000; i++)
        buf_slice(&text, SLICE("{\"a\":"));
    assert_int_equal(read_text(buf_view(&text), 1 << 16, &items, &err), STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, "levels deep"));
    buf_reset(&text);
    buf_slice(&text, SLICE("{\"a\":\""));
    for (size_t i = 0; i < SAMPLE_ITEM_BYTES_MAX; i++)
        buf_byte(&text, 'x');
    buf_slice(&text, SLICE("\"}"));
    assert_int_equal(read_text(buf_view(&text), 1 << 16, &items, &err), STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, "more than any container takes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_and_arrays_are_read),
        cmocka_unit_test(what_is_neither_is_refused_with_its_line),
        cmocka_unit_test(depth_and_size_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
