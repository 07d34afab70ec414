/* csv_writer_test.c - what is written is read as the same items. */
#include "transfer/csv_writer.h"

#include "transfer/item_digest.h"
#include "transfer/row_reader.h"
#include "json/json_testing.h"

static void write_all(const char *const *items, Buf *out)
{
    AUTO(csv_writer_free) CsvWriter *writer = NULL;
    assert_ok(csv_writer_new(&writer, err));
    for (; *items != NULL; items++)
        assert_ok(csv_writer_add(writer, row_json(&test_arena, *items), err));
    csv_writer_header(writer, out);
    bool is_last = false;
    while (!is_last)
        assert_ok(csv_writer_row(writer, out, &is_last, err));
}

static const char *const ITEMS[] = {
    "{'id':'1','n':1,'t':true,'z':null,'e':'','o':{},'l':[]}",
    "{'id':'2','n':-1.5e-7,'deep':{'a':{'b':'x'}},'tags':['a',null,{'k':1}]}",
    "{'id':'3','n':'1','t':'true','z':'null','e':'{}','o':'[]','l':' x '}",
    "{'id':'4','deep':7,'tags':{'x':1},'a.b':1,'[0]':2,'/p':3,'q\\\\':4}",
    "{'id':'5','n':9007199254740993000,'m':-1e300,'s':'a,b\\'c\\r\\nd','u':'\\u00e9\\u4e2d'}",
    "{'id':'6','n':'-','m':'007','s':'+1','u':'\\ufeffx','deep':{'a':[]}}",
    "{'id':'7','only':[[1,2],[3]]}",
    NULL,
};

static void items_survive_being_written_and_read(void **state)
{
    (void)state;
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    write_all(ITEMS, &text);
    AUTO(row_reader_free)
    RowReader *reader = row_reader_new(&(RowOptions){.format = ROW_FORMAT_CSV});
    Slice rest = buf_view(&text);
    size_t count = 0;
    for (;; count++) {
        Row row;
        size_t used = 0;
        RowResult result = row_reader_next(reader, ROW_PARSE, rest, true, &test_arena, &used, &row);
        rest = slice_from(rest, used);
        if (result == ROW_END)
            break;
        assert_int_equal(result, ROW_READ);
        if (row.error.status != STATUS_OK)
            fail_msg("item %zu: %s", count, row.error.message);
        Json expected = row_json(&test_arena, ITEMS[count]);
        if (!json_equal(row.value, expected))
            fail_msg("item %zu became %.*s", count,
                     SLICE_ARG(json_print_arena(&test_arena, row.value)));
    }
    assert_int_equal(count, ARRAY_COUNT(ITEMS) - 1);
}

static void a_file_looks_like_this(void **state)
{
    (void)state;
    static const char *const items[] = {"{'id':'a','n':1,'p':{'q':'x y','r':[1,2]}}",
                                        "{'id':'b','s':'7'}", NULL};
    AUTO(buf_done) Buf text;
    buf_init(&text, 10000);
    write_all(items, &text);
    assert_slice_text(buf_view(&text), "id,n,p.q,p.r[0],p.r[1],s\r\n"
                                       "a,1,x y,1,2,\r\n"
                                       "b,,,,,\"7\"\r\n");
    static const char *const none[] = {NULL};
    buf_reset(&text);
    write_all(none, &text);
    assert_slice_text(buf_view(&text), "\r\n");
}

static void too_much_for_csv_is_refused(void **state)
{
    (void)state;
    AUTO(csv_writer_free) CsvWriter *writer = NULL;
    assert_ok(csv_writer_new(&writer, err));
    Error err;
    assert_status(csv_writer_add(writer, row_json(&test_arena, "{'':1}"), &err), STATUS_TOO_LARGE);
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    for (int i = 0; i <= CSV_COLUMNS_MAX; i++)
        buf_format(&text, "%c\"p%d\":1", i == 0 ? '{' : ',', i);
    buf_byte(&text, '}');
    assert_status(csv_writer_add(writer, text_json(&test_arena, buf_view(&text)), &err),
                  STATUS_TOO_LARGE);
    assert_non_null(strstr(err.message, "16384"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(items_survive_being_written_and_read),
        TEST(a_file_looks_like_this),
        TEST(too_much_for_csv_is_refused),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
