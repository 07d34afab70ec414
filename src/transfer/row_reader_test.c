/* row_reader_test.c - rows of every format, in pieces of every size. */
#include "transfer/row_reader.h"

#include "json/json_testing.h"

enum { ROWS_MAX = 16 };

typedef struct Read {
    size_t count;
    char rows[ROWS_MAX][200]; /* "line:value", or "line!reason" of a bad row */
} Read;

/* Reads all of 'text', given to the reader in pieces of 'piece' bytes. */
static void read_all(const RowOptions *options, Slice text, size_t piece, RowUse use, Read *out)
{
    AUTO(row_reader_free) RowReader *reader = row_reader_new(options);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    *out = (Read){0};
    size_t begin = 0;
    size_t end = 0;
    for (;;) {
        bool is_last = end == text.len;
        Row row;
        size_t used = 0;
        RowResult result = row_reader_next(reader, use, slice_make(text.ptr + begin, end - begin),
                                           is_last, &arena, &used, &row);
        assert_in_range(used, 0, end - begin);
        begin += used;
        if (result == ROW_END)
            break;
        if (result == ROW_MORE) {
            assert_false(is_last);
            end = end + piece < text.len ? end + piece : text.len;
            continue;
        }
        assert_in_range(out->count, 0, ROWS_MAX - 1);
        char *at = out->rows[out->count++];
        Slice value = row.error.status != STATUS_OK ? slice_from_cstr(row.error.message)
                      : use == ROW_SKIP             ? SLICE("")
                                                    : json_print_arena(&arena, row.value);
        (void)snprintf(at, sizeof(out->rows[0]), "%llu%c%.*s", (unsigned long long)row.line,
                       row.error.status != STATUS_OK ? '!' : ':', SLICE_CUT(value, 150));
    }
}

typedef struct Case {
    RowFormat format;
    const char *text;
    const char *rows[8]; /* with ' for "; of a bad row a part of the reason is enough */
    CsvOptions csv;
} Case;

#define CSV ROW_FORMAT_CSV

static const Case CASES[] = {
    {ROW_FORMAT_LINES, "", {NULL}, {0}},
    {ROW_FORMAT_LINES, "{'a':1}\n{'a':2}\n", {"1:{'a':1}", "2:{'a':2}"}, {0}},
    {ROW_FORMAT_LINES, "\n\r\n{'a':1}\r\n \n{'a':2}", {"3:{'a':1}", "5:{'a':2}"}, {0}},
    {ROW_FORMAT_LINES, "\xef\xbb\xbf{'a':1}\n", {"1:{'a':1}"}, {0}},
    {ROW_FORMAT_LINES, "{'a':\n{'a':2}\n7\n", {"1!", "2:{'a':2}", "3!must be a JSON object"}, {0}},
    {ROW_FORMAT_JSON, "", {NULL}, {0}},
    {ROW_FORMAT_JSON, "[]", {NULL}, {0}},
    {ROW_FORMAT_JSON, " [ ] ", {NULL}, {0}},
    {ROW_FORMAT_JSON, "[{'a':1},\n{'a':[{}]}\n]\n", {"1:{'a':1}", "2:{'a':[{}]}"}, {0}},
    {ROW_FORMAT_JSON, "{\n'a':1\n}\n{'b':2}", {"1:{'a':1}", "4:{'b':2}"}, {0}},
    {ROW_FORMAT_JSON, "[{'a':'\\'}]'},{'b':']'}]", {"1:{'a':'\\'}]'}", "1:{'b':']'}"}, {0}},
    {ROW_FORMAT_JSON,
     "[{'a':1},2,'x',null,{'b':2}]",
     {"1:{'a':1}", "1!must be", "1!must be", "1!must be", "1:{'b':2}"},
     {0}},
    {ROW_FORMAT_JSON, "[{'a' 1},{'b':2}]", {"1!", "1:{'b':2}"}, {0}},
    {ROW_FORMAT_JSON, "[{'a':1}", {"1:{'a':1}", "1!ends before the ']'"}, {0}},
    {ROW_FORMAT_JSON, "[{'a':1},{'b", {"1:{'a':1}", "1!", "1!ends before the ']'"}, {0}},
    {ROW_FORMAT_JSON, "[{'a':1}]\n x {}", {"1:{'a':1}", "2!follows the array"}, {0}},
    {ROW_FORMAT_JSON, "} {'a':1}", {"1!", "1:{'a':1}"}, {0}},
    {CSV, "", {NULL}, {0}},
    {CSV, "id,n\n", {NULL}, {0}},
    {CSV, "id,n\na,1\nb,-2.5e1\n", {"2:{'id':'a','n':1}", "3:{'id':'b','n':-25}"}, {0}},
    {CSV,
     "\xef\xbb\xbf"
     "id,n\r\na,1\r\n\r\nb,2",
     {"2:{'id':'a','n':1}", "4:{'id':'b','n':2}"},
     {0}},
    {CSV,
     "a,b,c,d,e\ntrue,false,null,,'null'\n",
     {"2:{'a':true,'b':false,'c':null,'e':'null'}"},
     {0}},
    {CSV, "a,b,c,d\n007,1.,.5,+1\n", {"2:{'a':'007','b':'1.','c':'.5','d':'+1'}"}, {0}},
    {CSV,
     "a,b\n9007199254740991,-9007199254740993\n",
     {"2:{'a':9007199254740991,'b':'-9007199254740993'}"},
     {0}},
    {CSV, "a,b\n90071992547409930,1e400\n", {"2:{'a':'90071992547409930','b':'1e400'}"}, {0}},
    {CSV, "a,b\n'x,\ny''z',''\n'1',2\n", {"2:{'a':'x,\\ny\\'z','b':''}", "4:{'a':'1','b':2}"}, {0}},
    {CSV,
     "a.b,a.c,t[0],t[1],t[2]\n1,,x,,z\n,2,,,\n",
     {"2:{'a':{'b':1},'t':['x',null,'z']}", "3:{'a':{'c':2}}"},
     {0}},
    {CSV,
     "t[1].x,t[0].x,e\n1,2,{}\n,,[]\n",
     {"2:{'t':[{'x':2},{'x':1}],'e':{}}", "3:{'e':[]}"},
     {0}},
    {CSV, "a,a.b\n1,\n,2\n1,2\n", {"2:{'a':1}", "3:{'a':{'b':2}}", "4!at the same time"}, {0}},
    {CSV, "a,b\n1\n1,2,3\n4,5\n", {"2!found 1", "3!found 3", "4:{'a':4,'b':5}"}, {0}},
    {CSV, "a,b\n'1'2,3\n4,'5\n", {"2!follows a quoted cell", "3!does not end"}, {0}},
    {CSV, "a,a\n1,2\n", {"1!twice"}, {0}},
    {CSV, "a,,b\n1,2,3\n", {"1!is not the path"}, {0}},
    {CSV, "a\n\xff\n1\n", {"2!UTF-8", "3:{'a':1}"}, {0}},
    {CSV, "a\tb\n1\tx,y\n", {"2:{'a':1,'b':'x,y'}"}, {.delimiter = '\t'}},
    {CSV, "a,b,c\n1,true,\n", {"2:{'a':'1','b':'true','c':''}"}, {.all_are_text = true}},
};

static void rows_are_the_same_in_pieces_of_any_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        const Case *one = &CASES[i];
        RowOptions options = {.format = one->format, .csv = one->csv};
        Slice text = row_text(&test_arena, one->text);
        static const size_t pieces[] = {1, 2, 3, 7, 1000};
        for (size_t p = 0; p < ARRAY_COUNT(pieces); p++) {
            Read read;
            read_all(&options, text, pieces[p], ROW_PARSE, &read);
            size_t expected = 0;
            while (expected < 8 && one->rows[expected] != NULL)
                expected++;
            if (read.count != expected)
                fail_msg("case %zu, pieces of %zu: %zu rows, the last is %s", i, pieces[p],
                         read.count, read.count == 0 ? "" : read.rows[read.count - 1]);
            for (size_t r = 0; r < expected; r++) {
                Slice row = row_text(&test_arena, one->rows[r]);
                /* A reason has ' where it has one. */
                bool is_bad = strchr(one->rows[r], '!') != NULL;
                const char *reason = is_bad ? strchr(one->rows[r], '!') : row.ptr;
                bool same = is_bad ? strncmp(read.rows[r], one->rows[r],
                                             (size_t)(reason - one->rows[r]) + 1) == 0 &&
                                         strstr(read.rows[r], reason + 1) != NULL
                                   : strcmp(read.rows[r], row.ptr) == 0;
                if (!same)
                    fail_msg("case %zu, pieces of %zu: expected %s, found %s", i, pieces[p],
                             row.ptr, read.rows[r]);
            }
            /* Skipping finds the same rows. */
            Read skipped;
            read_all(&options, text, pieces[p], ROW_SKIP, &skipped);
            assert_int_equal(skipped.count, read.count);
        }
    }
}

static void a_row_that_is_too_long_is_skipped(void **state)
{
    (void)state;
    static const struct {
        RowFormat format;
        const char *before, *open, *close, *after;
    } rows[] = {
        {ROW_FORMAT_LINES, "{\"a\":1}\n", "{\"b\":\"", "\"}\n", "{\"c\":3}\n"},
        {ROW_FORMAT_JSON, "[{\"a\":1},\n", "{\"b\":\"", "\"},", "{\"c\":3}]"},
        {ROW_FORMAT_CSV, "a\n1\n", "\"", "\"\n", "3\n"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(buf_done) Buf text;
        buf_init(&text, 16 << 20);
        buf_slice(&text, slice_from_cstr(rows[i].before));
        buf_slice(&text, slice_from_cstr(rows[i].open));
        for (size_t n = 0; n < ROW_BYTES_MAX + 5; n++)
            buf_byte(&text, n % 100 == 7 ? ' ' : 'x');
        buf_slice(&text, slice_from_cstr(rows[i].close));
        buf_slice(&text, slice_from_cstr(rows[i].after));
        static const size_t pieces[] = {1 << 16, 16 << 20};
        for (size_t p = 0; p < ARRAY_COUNT(pieces); p++) {
            Read read;
            read_all(&(RowOptions){.format = rows[i].format}, buf_view(&text), pieces[p], ROW_PARSE,
                     &read);
            assert_int_equal(read.count, 3);
            assert_non_null(strstr(read.rows[1], "!the row has more than 4194304 bytes"));
            assert_non_null(strstr(read.rows[2], ":3}"));
        }
    }
}

static void formats_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        RowFormat format;
        char delimiter;
    } names[] = {
        {"a.jsonl", ROW_FORMAT_LINES, 0}, {"a.ndjson.gz", ROW_FORMAT_LINES, 0},
        {"a.csv.zst", ROW_FORMAT_CSV, 0}, {"a.tsv", ROW_FORMAT_CSV, '\t'},
        {"a.json", ROW_FORMAT_AUTO, 0},   {"-", ROW_FORMAT_AUTO, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        CsvOptions csv = {0};
        assert_int_equal(row_format_of_name(slice_from_cstr(names[i].name), &csv), names[i].format);
        assert_int_equal(csv.delimiter, names[i].delimiter);
    }
    static const struct {
        const char *bytes;
        RowFormat format;
    } bytes[] = {
        {"", ROW_FORMAT_JSON},           {" [{", ROW_FORMAT_JSON},
        {"{'a':1}\n", ROW_FORMAT_LINES}, {"{\n'a':1}", ROW_FORMAT_JSON},
        {"{'a':", ROW_FORMAT_JSON},      {"\xef\xbb\xbf{}", ROW_FORMAT_LINES},
        {"id,a\n", ROW_FORMAT_CSV},      {"'id'\n", ROW_FORMAT_CSV},
    };
    for (size_t i = 0; i < ARRAY_COUNT(bytes); i++)
        assert_int_equal(row_format_of_bytes(row_text(&test_arena, bytes[i].bytes)),
                         bytes[i].format);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(rows_are_the_same_in_pieces_of_any_size),
        TEST(a_row_that_is_too_long_is_skipped),
        TEST(formats_are_found),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
