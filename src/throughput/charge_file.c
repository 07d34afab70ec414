/* charge_file.c - calibration files: see charge_model_parse. */
#include "throughput/charge.h"

enum {
    FRACTION_DIGITS = 6, /* as many as the model keeps */
    CONSTANTS_MAX = 64,
};

typedef struct Constant {
    Slice name;
    size_t offset; /* in ChargeModel */
} Constant;

static const Constant CONSTANTS[] = {
#define CHARGE_CONSTANT(field, name, units, per, why) \
    {SLICE_INIT(name), offsetof(ChargeModel, field)},
#include "throughput/charge.def"
};
static_assert(ARRAY_COUNT(CONSTANTS) <= CONSTANTS_MAX, "each has a bit that says it was given");

typedef struct File {
    ChargeModel *model;
    unsigned line;
    uint64_t given; /* constants that it has set, as bits */
    unsigned read_lines[CHARGE_SIZES_MAX];
    unsigned write_lines[CHARGE_SIZES_MAX]; /* of each row; 0 if it is a published one */
    Error *err;
} File;

/* ---- numbers ---- */

/* "0.15" to 150000. */
static bool parse_micro(Slice text, uint64_t *out)
{
    Slice fraction = text;
    Slice whole = slice_cut(&fraction, '.');
    bool has_point = whole.len < text.len;
    uint64_t units = 0;
    uint64_t part = 0;
    if (!slice_to_u64(whole, &units) || units > CHARGE_UNITS_MAX)
        return false;
    if (has_point && (fraction.len > FRACTION_DIGITS || !slice_to_u64(fraction, &part)))
        return false;
    for (size_t i = fraction.len; has_point && i < FRACTION_DIGITS; i++)
        part *= 10;
    *out = units * 1000000 + part;
    return true;
}

/* "100KB" to 102400. */
static bool parse_size(Slice text, uint64_t *out)
{
    static const struct {
        Slice name;
        unsigned shift;
    } units[] = {{SLICE_INIT("KB"), 10}, {SLICE_INIT("MB"), 20}, {SLICE_INIT("B"), 0}};
    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        if (!slice_ends_with(text, units[i].name))
            continue;
        Slice digits = slice_first(text, text.len - units[i].name.len);
        if (!slice_to_u64(slice_trim(digits), out) || *out == 0 || *out > UINT32_MAX)
            return false;
        *out <<= units[i].shift;
        return true;
    }
    return false;
}

/* ---- lines ---- */

static Status twice(const File *file, Slice name)
{
    return error_set(file->err, STATUS_BAD_REQUEST, SUB_NONE, "line %u: '%.*s' is there twice",
                     file->line, SLICE_CUT(name, 40));
}

/* Puts a row where it belongs, or in place of the one that is there. */
static Status set_size(const File *file, Slice name, ChargeSizes *sizes, unsigned *lines,
                       ChargeSize row)
{
    size_t at = 0;
    while (at < sizes->count && sizes->rows[at].bytes < row.bytes)
        at++;
    bool is_there = at < sizes->count && sizes->rows[at].bytes == row.bytes;
    if (is_there && lines[at] != 0)
        return twice(file, name);
    if (!is_there && sizes->count == CHARGE_SIZES_MAX)
        return error_set(file->err, STATUS_BAD_REQUEST, SUB_NONE,
                         "line %u: there are more than %d sizes", file->line, CHARGE_SIZES_MAX);
    size_t after = sizes->count - at;
    if (!is_there) {
        memmove(&sizes->rows[at + 1], &sizes->rows[at], after * sizeof(sizes->rows[0]));
        memmove(&lines[at + 1], &lines[at], after * sizeof(lines[0]));
        sizes->count++;
    }
    sizes->rows[at] = row;
    lines[at] = file->line;
    return STATUS_OK;
}

/* "read 100KB". */
static Status set_size_of(File *file, Slice name, uint64_t micro, bool *done)
{
    Slice rest = name;
    Slice kind = slice_cut(&rest, ' ');
    bool is_read = slice_equal(kind, SLICE("read"));
    *done = is_read || slice_equal(kind, SLICE("write"));
    if (!*done)
        return STATUS_OK;
    ChargeSize row = {.micro = micro};
    if (!parse_size(slice_trim(rest), &row.bytes))
        return error_set(file->err, STATUS_BAD_REQUEST, SUB_NONE,
                         "line %u: '%.*s' is not a size such as 512B, 100KB or 2MB", file->line,
                         SLICE_CUT(rest, 40));
    return is_read ? set_size(file, name, &file->model->read, file->read_lines, row)
                   : set_size(file, name, &file->model->write, file->write_lines, row);
}

static Status set_constant(File *file, Slice name, uint64_t micro)
{
    for (size_t i = 0; i < ARRAY_COUNT(CONSTANTS); i++) {
        if (!slice_equal(name, CONSTANTS[i].name))
            continue;
        uint64_t bit = (uint64_t)1 << i;
        if ((file->given & bit) != 0)
            return twice(file, name);
        file->given |= bit;
        *(uint64_t *)(void *)((char *)file->model + CONSTANTS[i].offset) = micro;
        return STATUS_OK;
    }
    return error_set(file->err, STATUS_BAD_REQUEST, SUB_NONE,
                     "line %u: there is no charge '%.*s'; docs/request-units.md lists them",
                     file->line, SLICE_CUT(name, 40));
}

static Status parse_line(File *file, Slice line)
{
    line = slice_trim(slice_first(line, slice_find(line, '#')));
    if (line.len == 0)
        return STATUS_OK;
    Slice value = line;
    Slice name = slice_trim(slice_cut(&value, '='));
    if (slice_find(line, '=') == line.len)
        return error_set(file->err, STATUS_BAD_REQUEST, SUB_NONE,
                         "line %u: expected 'name = number', found '%.*s'", file->line,
                         SLICE_CUT(line, 60));
    uint64_t micro = 0;
    value = slice_trim(value);
    if (!parse_micro(value, &micro))
        return error_set(file->err, STATUS_BAD_REQUEST, SUB_NONE,
                         "line %u: '%.*s' is not a number from 0 to %llu with at most %d decimal "
                         "places",
                         file->line, SLICE_CUT(value, 40), (unsigned long long)CHARGE_UNITS_MAX,
                         FRACTION_DIGITS);
    bool done = false;
    TRY(set_size_of(file, name, micro, &done));
    return done ? STATUS_OK : set_constant(file, name, micro);
}

/* ---- the whole ---- */

static Status check_sizes(const ChargeSizes *sizes, const unsigned *lines, const char *kind,
                          Error *err)
{
    for (size_t i = 1; i < sizes->count; i++) {
        if (sizes->rows[i].micro >= sizes->rows[i - 1].micro)
            continue;
        unsigned line = lines[i] > lines[i - 1] ? lines[i] : lines[i - 1];
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "line %u: to %s %llu bytes would cost less than %llu bytes", line, kind,
                         (unsigned long long)sizes->rows[i].bytes,
                         (unsigned long long)sizes->rows[i - 1].bytes);
    }
    return STATUS_OK;
}

Status charge_model_parse(Slice text, ChargeModel *out, Error *err)
{
    if (text.len > CHARGE_FILE_BYTES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "it is longer than %zu bytes",
                         CHARGE_FILE_BYTES_MAX);
    ChargeModel model = *charge_model_default();
    File file = {.model = &model, .err = err};
    while (text.len > 0) {
        file.line++;
        TRY(parse_line(&file, slice_cut(&text, '\n')));
    }
    TRY(check_sizes(&model.read, file.read_lines, "read", err));
    TRY(check_sizes(&model.write, file.write_lines, "write", err));
    *out = model;
    return STATUS_OK;
}
