/* row_reader_fuzz.c - any file of any format, in pieces of any size: it is read to its end, and the
 * pieces do not matter.
 *
 * The first byte of an input chooses the format, the second the size of a piece.
 */
#include "base/buf.h"
#include "transfer/row_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads everything and prints what was found. */
static void read_all(const RowOptions *options, Slice text, size_t piece, RowUse use, Buf *out)
{
    AUTO(row_reader_free) RowReader *reader = row_reader_new(options);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    size_t begin = 0;
    size_t end = 0;
    for (size_t steps = 0;; steps++) {
        ASSERT(steps <= 3 * text.len + 10); /* it gets on */
        Row row;
        size_t used = 0;
        bool is_last = end == text.len;
        RowResult result = row_reader_next(reader, use, slice_make(text.ptr + begin, end - begin),
                                           is_last, &arena, &used, &row);
        ASSERT(used <= end - begin);
        begin += used;
        if (result == ROW_END)
            return;
        if (result == ROW_MORE) {
            ASSERT(!is_last);
            end = end + piece < text.len ? end + piece : text.len;
            continue;
        }
        ASSERT(row.line > 0);
        buf_format(out, "%llu ", (unsigned long long)row.line);
        if (use == ROW_PARSE && row.error.status == STATUS_OK) {
            ASSERT(json_is(row.value, JSON_OBJECT));
            json_print(row.value, out);
        }
        buf_byte(out, '\n');
        arena_reset(&arena);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    static const RowFormat FORMATS[] = {ROW_FORMAT_LINES, ROW_FORMAT_JSON, ROW_FORMAT_CSV};
    RowOptions options = {.format = FORMATS[data[0] % ARRAY_COUNT(FORMATS)],
                          .csv = {.delimiter = (data[0] & 64) != 0 ? ';' : ',',
                                  .all_are_text = (data[0] & 128) != 0}};
    Slice text = slice_make(data + 2, size - 2);
    (void)row_format_of_bytes(text);
    AUTO(buf_done) Buf whole, pieces, skipped;
    buf_init(&whole, 64 << 20);
    buf_init(&pieces, 64 << 20);
    buf_init(&skipped, 64 << 20);
    read_all(&options, text, text.len + 1, ROW_PARSE, &whole);
    read_all(&options, text, (size_t)data[1] + 1, ROW_PARSE, &pieces);
    ASSERT(slice_equal(buf_view(&whole), buf_view(&pieces)));
    /* Skipping rows finds as many of them. */
    read_all(&options, text, (size_t)data[1] + 1, ROW_SKIP, &skipped);
    size_t rows[2] = {0};
    for (size_t i = 0; i < whole.len; i++)
        rows[0] += whole.ptr[i] == '\n';
    for (size_t i = 0; i < skipped.len; i++)
        rows[1] += skipped.ptr[i] == '\n';
    ASSERT(rows[0] == rows[1]);
    return 0;
}
