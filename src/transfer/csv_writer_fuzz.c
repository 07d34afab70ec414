/* csv_writer_fuzz.c - any items: written as CSV and read again, they are the same.
 *
 * An input is JSON lines.
 */
#include "transfer/csv_writer.h"
#include "transfer/row_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ITEMS_MAX = 64 };

static bool has_minus_zero(Json value)
{
    if (json_is(value, JSON_NUMBER))
        return json_number(value) == 0;
    JsonIter it = json_iter(value);
    while (json_next(&it)) {
        if (has_minus_zero(it.value))
            return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    AUTO(csv_writer_free) CsvWriter *writer = NULL;
    Error err;
    ASSERT(csv_writer_new(&writer, &err) == STATUS_OK);
    Json items[ITEMS_MAX];
    size_t count = 0;
    Slice rest = slice_make(data, size);
    while (rest.len > 0 && count < ITEMS_MAX) {
        Json item;
        Slice line = slice_cut(&rest, '\n');
        /* An item without properties is an empty line, which is no row. */
        if (json_parse(&arena, line, &item, &err) != STATUS_OK || !json_is(item, JSON_OBJECT) ||
            json_count(item) == 0 || has_minus_zero(item) ||
            csv_writer_add(writer, item, &err) != STATUS_OK)
            continue;
        items[count++] = item;
    }
    AUTO(buf_done) Buf text;
    buf_init(&text, 64 << 20);
    csv_writer_header(writer, &text);
    bool is_last = false;
    while (!is_last)
        ASSERT(csv_writer_row(writer, &text, &is_last, &err) == STATUS_OK);
    ASSERT(!buf_full(&text));
    AUTO(row_reader_free)
    RowReader *reader = row_reader_new(&(RowOptions){.format = ROW_FORMAT_CSV});
    Slice left = buf_view(&text);
    for (size_t i = 0;; i++) {
        Row row;
        size_t used = 0;
        RowResult result = row_reader_next(reader, ROW_PARSE, left, true, &arena, &used, &row);
        left = slice_from(left, used);
        if (result == ROW_END) {
            ASSERT(i == count);
            break;
        }
        ASSERT(row.error.status == STATUS_OK);
        ASSERT(json_equal(row.value, items[i]));
    }
    return 0;
}
