/* csv_writer.c - see csv_writer.h.
 *
 *     temporary file = row*
 *     row            = | length u32 LE | binary document, 'length' bytes |
 *
 * It has no name, so it is gone when the process ends, however that happens.
 */
#include "transfer/csv_writer.h"

#include "base/array.h"
#include "base/mem.h"
#include "base/murmur.h"
#include "transfer/field_path.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATH_BYTES_MAX = 64 << 10 };
#define CELL_BYTES_MAX ((size_t)16 << 20)

/* Where a printed cell is in 'cells', which may move while it grows. */
typedef struct CellPlace {
    size_t begin;
    size_t len; /* 0 if the row has no such value: a printed cell is never empty */
} CellPlace;

struct CsvWriter {
    FILE *rows;
    bool is_reading;
    Arena arena;    /* names of columns */
    Slice *columns; /* in the order in which they were first seen */
    size_t count;
    size_t capacity;
    uint32_t *slots; /* hash table of column numbers plus one; 0 if free */
    Buf path;        /* of the value at hand */
    Arena row_arena;
    Buf cells;         /* printed cells of the row at hand, one after the other */
    CellPlace *places; /* one per column, of the row at hand */
    char *row;         /* the stored row */
    size_t row_capacity;
};

enum { SLOTS = 4 * CSV_COLUMNS_MAX };

Status csv_writer_new(CsvWriter **out, Error *err)
{
    AUTO(csv_writer_free) CsvWriter *writer = MEM_NEW(CsvWriter);
    arena_init(&writer->arena, 4096);
    arena_init(&writer->row_arena, 64 << 10);
    buf_init(&writer->path, PATH_BYTES_MAX);
    buf_init(&writer->cells, CELL_BYTES_MAX);
    writer->slots = MEM_NEW_ARRAY(uint32_t, SLOTS);
    writer->rows = tmpfile();
    if (writer->rows == NULL)
        return error_set_errno(err, errno, "cannot make a temporary file");
    *out = TAKE(writer);
    return STATUS_OK;
}

void csv_writer_free(CsvWriter *writer)
{
    if (writer == NULL)
        return;
    if (writer->rows != NULL)
        (void)fclose(writer->rows); /* it has no name and is not wanted any more */
    arena_done(&writer->arena);
    arena_done(&writer->row_arena);
    buf_done(&writer->path);
    buf_done(&writer->cells);
    mem_free(writer->columns);
    mem_free(writer->slots);
    mem_free(writer->places);
    mem_free(writer->row);
    mem_free(writer);
}

/* ---- columns ---- */

/* The number of the column of that name; it is made if there is none. */
static Status column_of(CsvWriter *writer, Slice name, size_t *out, Error *err)
{
    uint32_t slot = murmur3_32(name) % SLOTS;
    while (writer->slots[slot] != 0) {
        size_t column = writer->slots[slot] - 1;
        if (slice_equal(writer->columns[column], name)) {
            *out = column;
            return STATUS_OK;
        }
        slot = (slot + 1) % SLOTS;
    }
    if (writer->count == CSV_COLUMNS_MAX)
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "the items have more than %d different properties, too many for CSV",
                         CSV_COLUMNS_MAX);
    ARRAY_GROW(writer->columns, writer->count, writer->capacity, 64);
    writer->columns[writer->count] = arena_copy(&writer->arena, name);
    *out = writer->count++;
    writer->slots[slot] = (uint32_t)*out + 1;
    return STATUS_OK;
}

/* ---- cells ---- */

/* Text that would be read as something else without quotes. */
static bool needs_quotes(Slice text)
{
    static const Slice WORDS[] = {SLICE_INIT("null"), SLICE_INIT("true"), SLICE_INIT("false"),
                                  SLICE_INIT("{}"), SLICE_INIT("[]")};
    if (text.len == 0)
        return true;
    for (size_t i = 0; i < ARRAY_COUNT(WORDS); i++) {
        if (slice_equal(text, WORDS[i]))
            return true;
    }
    char first = text.ptr[0];
    char last = text.ptr[text.len - 1];
    if (first == '-' || (first >= '0' && first <= '9') || first == ' ' || last == ' ' ||
        first == '\t' || last == '\t' || (uint8_t)first == 0xef)
        return true; /* perhaps a number; what others might trim; a byte order mark */
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '"' || c == ',' || c == '\n' || c == '\r')
            return true;
    }
    return false;
}

static void print_text(Slice text, Buf *out)
{
    if (!needs_quotes(text)) {
        buf_slice(out, text);
        return;
    }
    buf_byte(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"')
            buf_byte(out, '"');
        buf_byte(out, (uint8_t)text.ptr[i]);
    }
    buf_byte(out, '"');
}

/* An integer that would be read as text is written with an exponent. */
static void print_number(Json value, Buf *out)
{
    double number = json_number(value);
    if (fabs(number) >= CSV_INTEGER_MAX)
        buf_format(out, "%.16e", number);
    else
        json_print(value, out);
}

static void print_cell(Json value, Buf *out)
{
    switch (json_type(value)) {
    case JSON_STRING:
        print_text(json_string(value), out);
        break;
    case JSON_NUMBER:
        print_number(value, out);
        break;
    case JSON_UNDEFINED:
    case JSON_NULL:
    case JSON_BOOL:
    case JSON_ARRAY: /* an empty one */
    case JSON_OBJECT:
        json_print(value, out);
        break;
    }
}

/* Finds the column of every value without parts in 'value', whose path is in 'writer->path'. While
 * rows are read, its cell is printed, too. */
static Status walk(CsvWriter *writer, Json value, uint32_t depth, Error *err)
{
    bool has_parts =
        (json_is(value, JSON_OBJECT) || json_is(value, JSON_ARRAY)) && json_count(value) > 0;
    if (has_parts && depth == FIELD_PATH_DEPTH_MAX)
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "an item is nested more than %d levels deep, too deep for CSV",
                         FIELD_PATH_DEPTH_MAX);
    if (!has_parts) {
        size_t column = 0;
        TRY(column_of(writer, buf_view(&writer->path), &column, err));
        if (writer->is_reading) {
            size_t begin = writer->cells.len;
            print_cell(value, &writer->cells);
            writer->places[column] = (CellPlace){begin, writer->cells.len - begin};
        }
        return STATUS_OK;
    }
    JsonIter it = json_iter(value);
    for (uint32_t i = 0; json_next(&it); i++) {
        size_t before = writer->path.len;
        FieldStep step = {.name = it.name, .index = i, .is_index = json_is(value, JSON_ARRAY)};
        if (i > FIELD_INDEX_MAX && step.is_index)
            return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                             "an array has more than %d elements, too many for CSV",
                             FIELD_INDEX_MAX + 1);
        if (!step.is_index && step.name.len == 0)
            return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                             "an item has a property without a name, which CSV cannot have");
        field_path_print_step(&step, &writer->path);
        if (buf_full(&writer->path))
            return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                             "the path of a property is too long for CSV");
        TRY(walk(writer, it.value, depth + 1, err));
        writer->path.len = before;
    }
    return STATUS_OK;
}

/* ---- rows ---- */

Status csv_writer_add(CsvWriter *writer, Json item, Error *err)
{
    ASSERT(!writer->is_reading);
    buf_reset(&writer->path);
    TRY(walk(writer, item, 0, err));
    arena_reset(&writer->row_arena);
    Slice bytes = json_bytes(&writer->row_arena, item);
    uint32_t size = (uint32_t)bytes.len;
    if (fwrite(&size, sizeof(size), 1, writer->rows) != 1 ||
        fwrite(bytes.ptr, 1, bytes.len, writer->rows) != bytes.len)
        return error_set_errno(err, errno, "cannot write a temporary file");
    return STATUS_OK;
}

void csv_writer_header(const CsvWriter *writer, Buf *out)
{
    for (size_t i = 0; i < writer->count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        print_text(writer->columns[i], out);
    }
    buf_slice(out, SLICE("\r\n"));
}

static Status begin_reading(CsvWriter *writer, Error *err)
{
    if (fflush(writer->rows) != 0 || fseek(writer->rows, 0, SEEK_SET) != 0)
        return error_set_errno(err, errno, "cannot read a temporary file");
    writer->is_reading = true;
    writer->places = MEM_NEW_ARRAY(CellPlace, writer->count + 1);
    return STATUS_OK;
}

static Status read_row(CsvWriter *writer, Json *out, bool *is_last, Error *err)
{
    uint32_t size = 0;
    *is_last = fread(&size, sizeof(size), 1, writer->rows) != 1;
    if (*is_last)
        return ferror(writer->rows) == 0
                   ? STATUS_OK
                   : error_set_errno(err, errno, "cannot read a temporary file");
    if (size > writer->row_capacity) {
        writer->row = mem_realloc(writer->row, size);
        writer->row_capacity = size;
    }
    if (fread(writer->row, 1, size, writer->rows) != size)
        return error_set_errno(err, errno, "cannot read a temporary file");
    return json_open(slice_make(writer->row, size), out, err);
}

Status csv_writer_row(CsvWriter *writer, Buf *out, bool *is_last, Error *err)
{
    Json item;
    if (!writer->is_reading)
        TRY(begin_reading(writer, err));
    TRY(read_row(writer, &item, is_last, err));
    if (*is_last)
        return STATUS_OK;
    memset(writer->places, 0, writer->count * sizeof(CellPlace));
    buf_reset(&writer->cells);
    buf_reset(&writer->path);
    TRY(walk(writer, item, 0, err));
    if (buf_full(&writer->cells))
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE, "an item is too large for CSV");
    for (size_t i = 0; i < writer->count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        if (writer->places[i].len > 0)
            buf_bytes(out, writer->cells.ptr + writer->places[i].begin, writer->places[i].len);
    }
    buf_slice(out, SLICE("\r\n"));
    return STATUS_OK;
}
