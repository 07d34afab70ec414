/* functions_type.c - what a value is, and values out of JSON text. */
#include "query/functions_int.h"

#include <math.h>

static bool is_datetime(Slice text);

#define DEFINE_IS(function, condition)                                                     \
    Status function(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out) \
    {                                                                                      \
        const Value *value = &args[0];                                                     \
        *out = value_bool(condition);                                                      \
        return STATUS_OK;                                                                  \
    }

DEFINE_IS(function_is_array, value->type == JSON_ARRAY)
DEFINE_IS(function_is_bool, value->type == JSON_BOOL)
DEFINE_IS(function_is_datetime, value->type == JSON_STRING && is_datetime(value->string))
DEFINE_IS(function_is_defined, value->type != JSON_UNDEFINED)
DEFINE_IS(function_is_finite_number, value->type == JSON_NUMBER && isfinite(value->number))
DEFINE_IS(function_is_null, value->type == JSON_NULL)
DEFINE_IS(function_is_number, value->type == JSON_NUMBER)
DEFINE_IS(function_is_object, value->type == JSON_OBJECT)
DEFINE_IS(function_is_primitive, value->type >= JSON_NULL && value->type <= JSON_STRING)
DEFINE_IS(function_is_string, value->type == JSON_STRING)

Status function_is_integer(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t integer;
    *out = value_bool(value_to_i64(&args[0], &integer));
    return STATUS_OK;
}

/* Takes 'digits' digits off the front. */
static bool take_number(Slice *text, size_t digits, uint32_t *out)
{
    uint64_t value;
    if (text->len < digits || !slice_to_u64(slice_first(*text, digits), &value))
        return false;
    *text = slice_from(*text, digits);
    *out = (uint32_t)value;
    return true;
}

static bool take_char(Slice *text, char c)
{
    if (text->len == 0 || text->ptr[0] != c)
        return false;
    *text = slice_from(*text, 1);
    return true;
}

static bool take_date(Slice *text)
{
    static const uint8_t DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    uint32_t year, month, day;
    if (!take_number(text, 4, &year) || !take_char(text, '-') || !take_number(text, 2, &month) ||
        !take_char(text, '-') || !take_number(text, 2, &day))
        return false;
    if (year < 1 || month < 1 || month > 12 || day < 1)
        return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day <= DAYS[month - 1] + (month == 2 && leap ? 1u : 0u);
}

/* hh:mm:ss and perhaps a fraction of one to seven digits. */
static bool take_time(Slice *text)
{
    uint32_t hour, minute, second;
    if (!take_number(text, 2, &hour) || !take_char(text, ':') || !take_number(text, 2, &minute) ||
        !take_char(text, ':') || !take_number(text, 2, &second))
        return false;
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    if (!take_char(text, '.'))
        return true;
    size_t digits = 0;
    while (digits < text->len && text->ptr[digits] >= '0' && text->ptr[digits] <= '9')
        digits++;
    *text = slice_from(*text, digits);
    return digits >= 1 && digits <= 7;
}

/* YYYY-MM-DD [T or space hh:mm:ss [.f to .fffffff]] [Z] */
static bool is_datetime(Slice text)
{
    if (!take_date(&text))
        return false;
    if ((take_char(&text, 'T') || take_char(&text, ' ')) && !take_time(&text))
        return false;
    (void)take_char(&text, 'Z'); /* it may be there or not */
    return text.len == 0;
}

/* The value that the text is, if it is JSON of the wanted type. */
static Status parse_as(Run *run, const Value *arg, JsonType type, Value *out)
{
    if (arg->type != JSON_STRING || arg->string.len > JSON_TEXT_BYTES_MAX)
        return STATUS_OK;
    TRY(run_charge_bytes(run, arg->string.len));
    TRY(run_reserve(run, 2 * arg->string.len));
    Error unused;
    Json json;
    if (json_parse(run->scratch, arg->string, &json, &unused) == STATUS_OK && json_is(json, type))
        *out = value_of(json, false);
    return STATUS_OK;
}

#define DEFINE_PARSE(function, type)                                                \
    Status function(Run *run, const Value *args, uint32_t count UNUSED, Value *out) \
    {                                                                               \
        return parse_as(run, &args[0], type, out);                                  \
    }

DEFINE_PARSE(function_stringtoarray, JSON_ARRAY)
DEFINE_PARSE(function_stringtoboolean, JSON_BOOL)
DEFINE_PARSE(function_stringtonull, JSON_NULL)
DEFINE_PARSE(function_stringtonumber, JSON_NUMBER)
DEFINE_PARSE(function_stringtoobject, JSON_OBJECT)

Status function_iif(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    *out = value_is_true(&args[0]) ? args[1] : args[2];
    return STATUS_OK;
}

Status function_choose(Run *run UNUSED, const Value *args, uint32_t count, Value *out)
{
    int64_t index;
    if (value_to_i64(&args[0], &index) && index >= 1 && index < (int64_t)count)
        *out = args[index];
    return STATUS_OK;
}
