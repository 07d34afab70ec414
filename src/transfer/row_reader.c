/* row_reader.c - see row_reader.h.
 *
 * The end of a JSON value is found by counting brackets outside of strings; whether the value is
 * good is then json_parse's matter. So a value with a mistake inside is one bad row, and the next
 * one is found where it begins.
 *
 * The scan goes on where it was when more bytes come, so a row that arrives in many pieces is
 * looked at once.
 */
#include "transfer/row_reader.h"

#include "base/mem.h"
#include "transfer/compression.h"

/* Of a reader of JSON values:
 *
 *     BEGIN -> SEQUENCE
 *           -> ARRAY -> AFTER_ARRAY -> FINISHED
 */
typedef enum JsonPhase {
    PHASE_BEGIN, /* nothing but space has been seen */
    PHASE_ARRAY,
    PHASE_SEQUENCE,
    PHASE_AFTER_ARRAY,
    PHASE_FINISHED,
} JsonPhase;

typedef struct JsonScan {
    size_t at;
    uint32_t depth;
    bool in_string;
    bool is_escaped; /* the byte at 'at' follows a backslash */
} JsonScan;

struct RowReader {
    RowOptions options;
    uint64_t line;      /* of the next byte */
    bool has_begun;     /* a byte order mark was looked for */
    bool is_discarding; /* the row is too long; the rest of it is skipped */
    uint64_t row_line;  /* of the row that is being discarded */

    JsonPhase phase;
    JsonScan json;
    size_t lines_at; /* ROW_FORMAT_LINES: bytes without a line end */
    CsvScan csv;
    CsvTable *table; /* NULL before the header */
};

RowReader *row_reader_new(const RowOptions *options)
{
    ASSERT(options->format != ROW_FORMAT_AUTO);
    RowReader *reader = MEM_NEW(RowReader);
    *reader = (RowReader){.options = *options, .line = 1};
    if (reader->options.csv.delimiter == 0)
        reader->options.csv.delimiter = ',';
    return reader;
}

void row_reader_free(RowReader *reader)
{
    if (reader == NULL)
        return;
    csv_table_free(reader->table);
    mem_free(reader);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void count_lines(RowReader *reader, Slice bytes)
{
    while (bytes.len > 0) {
        const char *end = memchr(bytes.ptr, '\n', bytes.len);
        if (end == NULL)
            return;
        reader->line++;
        bytes = slice_from(bytes, (size_t)(end - bytes.ptr) + 1);
    }
}

static Slice trim_space(Slice text)
{
    while (text.len > 0 && is_space(text.ptr[0]))
        text = slice_from(text, 1);
    while (text.len > 0 && is_space(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

static RowResult bad_row(Row *out, uint64_t line, Slice text, const char *reason)
{
    *out = (Row){.line = line, .text = text};
    out->error.status = error_set(&out->error, STATUS_BAD_REQUEST, SUB_NONE, "%s", reason);
    return ROW_READ;
}

static RowResult too_long(Row *out, uint64_t line)
{
    *out = (Row){.line = line};
    out->error.status = error_set(&out->error, STATUS_BAD_REQUEST, SUB_NONE,
                                  "the row has more than %zu bytes", ROW_BYTES_MAX);
    return ROW_READ;
}

static RowResult parse_row(RowUse use, Slice text, uint64_t line, Arena *arena, Row *out)
{
    *out = (Row){.line = line, .text = text};
    if (use == ROW_SKIP)
        return ROW_READ;
    Json value;
    if (json_parse(arena, text, &value, &out->error) != STATUS_OK)
        return ROW_READ;
    out->error = (Error){.status = STATUS_OK};
    if (!json_is(value, JSON_OBJECT))
        return bad_row(out, line, text, "an item must be a JSON object");
    out->value = value;
    return ROW_READ;
}

/* ---- JSON lines ---- */

static RowResult next_line(RowReader *reader, RowUse use, Slice bytes, bool is_last, Arena *arena,
                           size_t *used, Row *out)
{
    size_t done = 0;
    for (;;) {
        Slice rest = slice_from(bytes, done);
        Slice fresh = slice_from(rest, reader->lines_at);
        const char *end = fresh.len > 0 ? memchr(fresh.ptr, '\n', fresh.len) : NULL;
        if (end == NULL && !is_last) {
            reader->lines_at = rest.len;
            if (rest.len > ROW_BYTES_MAX || (reader->is_discarding && rest.len > 0)) {
                reader->row_line = reader->line;
                reader->is_discarding = true;
                reader->lines_at = 0;
                done = bytes.len;
            }
            *used = done;
            return ROW_MORE;
        }
        reader->lines_at = 0;
        size_t len = end == NULL ? rest.len : (size_t)(end - rest.ptr) + 1;
        Slice text = trim_space(slice_first(rest, len));
        uint64_t line = reader->line;
        bool was_discarding = reader->is_discarding;
        reader->is_discarding = false;
        reader->line += end == NULL ? 0 : 1;
        done += len;
        *used = done;
        if (was_discarding)
            return too_long(out, reader->row_line);
        if (text.len > 0)
            return text.len > ROW_BYTES_MAX ? too_long(out, line)
                                            : parse_row(use, text, line, arena, out);
        if (end == NULL)
            return ROW_END;
    }
}

/* ---- JSON values ---- */

/* Inside of a string: moves to the quote that ends it, or to the last byte that there is. Most
 * bytes of most files are in strings, so these are looked through many at a time. */
static void skip_string(JsonScan *scan, Slice bytes)
{
    if (scan->is_escaped) {
        scan->is_escaped = false;
        return;
    }
    Slice rest = slice_from(bytes, scan->at);
    const char *quote = memchr(rest.ptr, '"', rest.len);
    size_t len = quote == NULL ? rest.len : (size_t)(quote - rest.ptr);
    const char *escape = memchr(rest.ptr, '\\', len);
    if (escape != NULL) {
        scan->at += (size_t)(escape - rest.ptr);
        scan->is_escaped = true;
    } else if (quote != NULL) {
        scan->at += len;
        scan->in_string = false;
    } else {
        scan->at = bytes.len - 1;
    }
}

/* Moves to the end of the value at the front of 'bytes', as far as there are bytes. True if it is
 * there: 'scan->at' is behind the value. */
static bool scan_value(JsonScan *scan, Slice bytes, bool is_last)
{
    for (; scan->at < bytes.len; scan->at++) {
        if (scan->in_string) {
            skip_string(scan, bytes);
            continue;
        }
        char c = bytes.ptr[scan->at];
        switch (c) {
        case '"':
            scan->in_string = true;
            break;
        case '{':
        case '[':
            scan->depth++;
            break;
        case '}':
        case ']':
            /* A bracket that closes nothing is the array's own, or a mistake that is a row alone.
             */
            if (scan->depth == 0)
                return true;
            if (--scan->depth == 0) {
                scan->at++;
                return true;
            }
            break;
        default:
            if (scan->depth == 0 && (c == ',' || is_space(c)))
                return true;
            break;
        }
    }
    return is_last;
}

/* Skips what stands between values; returns how many bytes that is. */
static size_t skip_between(RowReader *reader, Slice bytes)
{
    size_t at = 0;
    while (at < bytes.len &&
           (is_space(bytes.ptr[at]) || (bytes.ptr[at] == ',' && reader->phase == PHASE_ARRAY)))
        at++;
    count_lines(reader, slice_first(bytes, at));
    return at;
}

/* At a byte that is no space: begins or ends the array. True if a value begins here. */
static bool enter(RowReader *reader, char c, size_t *done)
{
    if (reader->phase == PHASE_BEGIN) {
        reader->phase = c == '[' ? PHASE_ARRAY : PHASE_SEQUENCE;
        if (c != '[')
            return true;
    } else if (reader->phase == PHASE_ARRAY && c == ']') {
        reader->phase = PHASE_AFTER_ARRAY;
    } else {
        return true;
    }
    ++*done;
    return false;
}

static RowResult end_of_json(RowReader *reader, Row *out)
{
    bool is_cut = reader->phase == PHASE_ARRAY;
    reader->phase = PHASE_FINISHED;
    if (is_cut)
        return bad_row(out, reader->line, SLICE_EMPTY, "the file ends before the ']' of its array");
    return ROW_END;
}

/* The value at the front of 'rest', if it is all there. */
static RowResult take_value(RowReader *reader, RowUse use, Slice rest, bool is_last, Arena *arena,
                            size_t *len, Row *out)
{
    JsonScan *scan = &reader->json;
    *len = 0;
    if (!scan_value(scan, rest, is_last)) {
        if (rest.len <= ROW_BYTES_MAX && !reader->is_discarding)
            return ROW_MORE;
        if (!reader->is_discarding)
            reader->row_line = reader->line;
        reader->is_discarding = true;
        count_lines(reader, rest);
        *len = rest.len;
        scan->at = 0;
        return ROW_MORE;
    }
    uint64_t line = reader->line;
    bool was_discarding = reader->is_discarding;
    *len = scan->at > 0 || was_discarding ? scan->at : 1; /* 1 is a bracket that closes nothing */
    Slice text = slice_first(rest, *len);
    *scan = (JsonScan){0};
    reader->is_discarding = false;
    count_lines(reader, text);
    if (was_discarding)
        return too_long(out, reader->row_line);
    if (text.len > ROW_BYTES_MAX)
        return too_long(out, line);
    return parse_row(use, text, line, arena, out);
}

static RowResult next_value(RowReader *reader, RowUse use, Slice bytes, bool is_last, Arena *arena,
                            size_t *used, Row *out)
{
    size_t done = 0;
    for (;;) {
        bool is_between = reader->json.at == 0 && !reader->is_discarding;
        if (is_between)
            done += skip_between(reader, slice_from(bytes, done));
        *used = done;
        Slice rest = slice_from(bytes, done);
        if (reader->phase == PHASE_FINISHED) {
            *used = bytes.len;
            return ROW_END;
        }
        if (rest.len == 0 && !(is_last && reader->is_discarding))
            return is_last ? end_of_json(reader, out) : ROW_MORE;
        if (reader->phase == PHASE_AFTER_ARRAY) {
            reader->phase = PHASE_FINISHED;
            *used = bytes.len;
            return bad_row(out, reader->line, slice_first(rest, 100), "text follows the array");
        }
        if (is_between && !enter(reader, rest.ptr[0], &done))
            continue;
        size_t len = 0;
        RowResult result = take_value(reader, use, rest, is_last, arena, &len, out);
        *used = done + len;
        return result;
    }
}

/* ---- CSV ---- */

/* After a header that is wrong nothing in the file means anything. */
static RowResult take_header(RowReader *reader, Slice record, uint64_t line, Arena *arena, Row *out,
                             bool *is_bad)
{
    CsvCell *cells = NULL;
    size_t count = 0;
    Error err;
    *is_bad = csv_split(record, reader->options.csv.delimiter, arena, &cells, &count, &err) !=
                  STATUS_OK ||
              csv_table_open(cells, count, reader->options.csv, &reader->table, &err) != STATUS_OK;
    if (!*is_bad)
        return ROW_READ;
    reader->phase = PHASE_FINISHED;
    return bad_row(out, line, trim_space(record), err.message);
}

static RowResult take_record(RowReader *reader, RowUse use, Slice record, uint64_t line,
                             Arena *arena, Row *out)
{
    *out = (Row){.line = line, .text = trim_space(record)};
    if (record.len > ROW_BYTES_MAX)
        return too_long(out, line);
    if (use == ROW_SKIP)
        return ROW_READ;
    CsvCell *cells = NULL;
    size_t count = 0;
    Json value;
    if (csv_split(record, reader->options.csv.delimiter, arena, &cells, &count, &out->error) !=
            STATUS_OK ||
        csv_table_item(reader->table, cells, count, arena, &value, &out->error) != STATUS_OK)
        return ROW_READ;
    out->error = (Error){.status = STATUS_OK};
    out->value = value;
    return ROW_READ;
}

static RowResult next_record(RowReader *reader, RowUse use, Slice bytes, bool is_last, Arena *arena,
                             size_t *used, Row *out)
{
    size_t done = 0;
    for (;;) {
        Slice rest = slice_from(bytes, done);
        *used = done;
        if (reader->phase == PHASE_FINISHED) {
            *used = bytes.len;
            return ROW_END;
        }
        if (is_last && rest.len == 0)
            return reader->is_discarding
                       ? (reader->is_discarding = false, too_long(out, reader->row_line))
                       : ROW_END;
        size_t len = 0;
        if (!csv_scan_record(&reader->csv, rest, is_last, &len)) {
            if (rest.len <= ROW_BYTES_MAX && !reader->is_discarding)
                return ROW_MORE;
            if (!reader->is_discarding)
                reader->row_line = reader->line;
            reader->is_discarding = true;
            count_lines(reader, rest);
            reader->csv.at = 0;
            *used = bytes.len;
            return ROW_MORE;
        }
        Slice record = slice_first(rest, len);
        uint64_t line = reader->line;
        count_lines(reader, record);
        done += len;
        *used = done;
        if (reader->is_discarding) {
            reader->is_discarding = false;
            return too_long(out, reader->row_line);
        }
        if (trim_space(record).len == 0)
            continue;
        if (reader->table != NULL)
            return take_record(reader, use, record, line, arena, out);
        bool is_bad = false;
        RowResult result = take_header(reader, record, line, arena, out, &is_bad);
        if (is_bad)
            return result;
    }
}

/* ---- all ---- */

RowResult row_reader_next(RowReader *reader, RowUse use, Slice bytes, bool is_last, Arena *arena,
                          size_t *used, Row *out)
{
    static const Slice MARK = SLICE_INIT("\xef\xbb\xbf");
    size_t mark = 0;
    *used = 0;
    if (!reader->has_begun) {
        if (bytes.len < MARK.len && !is_last)
            return ROW_MORE;
        mark = slice_starts_with(bytes, MARK) ? MARK.len : 0;
        reader->has_begun = true;
    }
    bytes = slice_from(bytes, mark);
    RowResult result = ROW_END;
    switch (reader->options.format) {
    case ROW_FORMAT_AUTO:
    case ROW_FORMAT_LINES:
        result = next_line(reader, use, bytes, is_last, arena, used, out);
        break;
    case ROW_FORMAT_JSON:
        result = next_value(reader, use, bytes, is_last, arena, used, out);
        break;
    case ROW_FORMAT_CSV:
        result = next_record(reader, use, bytes, is_last, arena, used, out);
        break;
    }
    *used += mark;
    return result;
}

RowFormat row_format_of_name(Slice name, CsvOptions *csv)
{
    Slice plain = compression_strip(name);
    if (slice_ends_with(plain, SLICE(".jsonl")) || slice_ends_with(plain, SLICE(".ndjson")))
        return ROW_FORMAT_LINES;
    if (slice_ends_with(plain, SLICE(".csv")))
        return ROW_FORMAT_CSV;
    if (slice_ends_with(plain, SLICE(".tsv"))) {
        csv->delimiter = csv->delimiter == 0 ? '\t' : csv->delimiter;
        return ROW_FORMAT_CSV;
    }
    return ROW_FORMAT_AUTO;
}

RowFormat row_format_of_bytes(Slice first)
{
    if (slice_starts_with(first, SLICE("\xef\xbb\xbf")))
        first = slice_from(first, 3);
    while (first.len > 0 && is_space(first.ptr[0]))
        first = slice_from(first, 1);
    if (first.len == 0 || first.ptr[0] == '[')
        return ROW_FORMAT_JSON;
    if (first.ptr[0] != '{')
        return ROW_FORMAT_CSV;
    /* An object that ends in its line: lines, in which a broken row harms no other. */
    JsonScan scan = {0};
    bool is_whole = scan_value(&scan, first, false);
    Slice object = slice_first(first, scan.at);
    return is_whole && slice_find(object, '\n') == object.len ? ROW_FORMAT_LINES : ROW_FORMAT_JSON;
}
