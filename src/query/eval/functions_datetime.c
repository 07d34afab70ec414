/* functions_datetime.c - dates and times. What they are is in datetime_int.h.
 *
 * GetCurrent...() asks the clock for every row; GetCurrent...Static() has one answer for a run, so
 * that an index can be searched for it.
 */
#include "query/eval/call_int.h"
#include "query/eval/datetime_int.h"

/* 1601, before which no bins begin. */
#define BIN_ORIGIN_MIN ((int64_t)-116444736 * 100 * TICKS_PER_SECOND)

static bool is_time(const Value *arg, int64_t *ticks)
{
    return arg->type == JSON_STRING && datetime_parse(arg->string, ticks);
}

static bool is_part(const Value *arg, DatePart *part)
{
    return arg->type == JSON_STRING && date_part_find(arg->string, part);
}

static Status give_time(Run *run, int64_t ticks, Value *out)
{
    void *memory;
    TRY(run_alloc(run, DATETIME_LEN, &memory));
    datetime_print(ticks, memory);
    *out = value_string(slice_make(memory, DATETIME_LEN));
    return STATUS_OK;
}

/* Ticks have always been doubles here, and lose their last digits. */
static Value give_ticks(int64_t ticks)
{
    return value_number((double)ticks);
}

static Value give_timestamp(int64_t ticks)
{
    int64_t ms = ticks / TICKS_PER_MS;
    return value_integer(ticks % TICKS_PER_MS < 0 ? ms - 1 : ms);
}

Status function_is_datetime(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t ticks;
    *out = value_bool(is_time(&args[0], &ticks));
    return STATUS_OK;
}

Status function_datetimeadd(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    DatePart part;
    int64_t number, ticks;
    if (!is_part(&args[0], &part) || !value_to_i64(&args[1], &number) ||
        !is_time(&args[2], &ticks) || !datetime_add(part, number, ticks, &ticks))
        return STATUS_OK;
    return give_time(run, ticks, out);
}

Status function_datetimebin(Run *run, const Value *args, uint32_t count, Value *out)
{
    DatePart part;
    int64_t ticks;
    int64_t size = 1;
    int64_t origin = 0;
    if (!is_time(&args[0], &ticks) || !is_part(&args[1], &part) ||
        (count >= 3 && !value_to_i64(&args[2], &size)) ||
        (count == 4 && !is_time(&args[3], &origin)) || origin < BIN_ORIGIN_MIN ||
        !datetime_bin(part, size, origin, ticks, &ticks))
        return STATUS_OK;
    return give_time(run, ticks, out);
}

Status function_datetimediff(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    DatePart part;
    int64_t start, end;
    if (is_part(&args[0], &part) && is_time(&args[1], &start) && is_time(&args[2], &end))
        *out = value_number(datetime_diff(part, start, end));
    return STATUS_OK;
}

Status function_datetimeformat(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t ticks;
    if (!is_time(&args[0], &ticks) || args[1].type != JSON_STRING)
        return STATUS_OK;
    Slice form = args[1].string;
    void *memory;
    size_t size = DATETIME_FORMAT_GROWTH * form.len;
    TRY(run_charge_chars(run, form.len));
    TRY(run_alloc(run, size, &memory));
    Buf text = {.ptr = memory, .capacity = size, .bytes_max = size};
    if (datetime_format(ticks, form, &text))
        *out = value_string(buf_view(&text));
    return STATUS_OK;
}

Status function_datetimefromparts(Run *run, const Value *args, uint32_t count, Value *out)
{
    int64_t parts[7] = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (!value_to_i64(&args[i], &parts[i]))
            return STATUS_OK;
    }
    DateFields fields = {parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6]};
    int64_t ticks;
    return datetime_from_fields(&fields, &ticks) ? give_time(run, ticks, out) : STATUS_OK;
}

Status function_datetimepart(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    DatePart part;
    int64_t ticks;
    if (is_part(&args[0], &part) && is_time(&args[1], &ticks))
        *out = value_integer(datetime_part(part, ticks));
    return STATUS_OK;
}

static Status give_part(const Value *arg, DatePart part, Value *out)
{
    int64_t ticks;
    if (is_time(arg, &ticks))
        *out = value_integer(datetime_part(part, ticks));
    return STATUS_OK;
}

Status function_year(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    return give_part(&args[0], DATE_YEAR, out);
}

Status function_month(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    return give_part(&args[0], DATE_MONTH, out);
}

Status function_day(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    return give_part(&args[0], DATE_DAY, out);
}

Status function_datetimetoticks(Run *run UNUSED, const Value *args, uint32_t count UNUSED,
                                Value *out)
{
    int64_t ticks;
    if (is_time(&args[0], &ticks))
        *out = give_ticks(ticks);
    return STATUS_OK;
}

Status function_datetimetotimestamp(Run *run UNUSED, const Value *args, uint32_t count UNUSED,
                                    Value *out)
{
    int64_t ticks;
    if (is_time(&args[0], &ticks))
        *out = give_timestamp(ticks);
    return STATUS_OK;
}

Status function_tickstodatetime(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t ticks;
    if (!value_to_i64(&args[0], &ticks) || !datetime_in_range(ticks))
        return STATUS_OK;
    return give_time(run, ticks, out);
}

Status function_timestamptodatetime(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t ms, ticks;
    if (!value_to_i64(&args[0], &ms) || __builtin_mul_overflow(ms, TICKS_PER_MS, &ticks) ||
        !datetime_in_range(ticks))
        return STATUS_OK;
    return give_time(run, ticks, out);
}

Status function_getcurrentdatetime(Run *run, const Value *args UNUSED, uint32_t count UNUSED,
                                   Value *out)
{
    return give_time(run, run_ticks(run), out);
}

Status function_getcurrentdatetimestatic(Run *run, const Value *args UNUSED, uint32_t count UNUSED,
                                         Value *out)
{
    return give_time(run, run_static_ticks(run), out);
}

Status function_getcurrentticks(Run *run, const Value *args UNUSED, uint32_t count UNUSED,
                                Value *out)
{
    *out = give_ticks(run_ticks(run));
    return STATUS_OK;
}

Status function_getcurrentticksstatic(Run *run, const Value *args UNUSED, uint32_t count UNUSED,
                                      Value *out)
{
    *out = give_ticks(run_static_ticks(run));
    return STATUS_OK;
}

Status function_getcurrenttimestamp(Run *run, const Value *args UNUSED, uint32_t count UNUSED,
                                    Value *out)
{
    *out = give_timestamp(run_ticks(run));
    return STATUS_OK;
}

Status function_getcurrenttimestampstatic(Run *run, const Value *args UNUSED, uint32_t count UNUSED,
                                          Value *out)
{
    *out = give_timestamp(run_static_ticks(run));
    return STATUS_OK;
}

/* The parts and their number, from now on if 'sign' is 1 and back from now if it is -1. */
static Status give_near(Run *run, const Value *args, int64_t sign, Value *out)
{
    DatePart part;
    int64_t number, ticks;
    if (!is_part(&args[0], &part) || !value_to_i64(&args[1], &number) ||
        __builtin_mul_overflow(number, sign, &number) ||
        !datetime_add(part, number, run_ticks(run), &ticks))
        return STATUS_OK;
    return give_time(run, ticks, out);
}

Status function_now(Run *run, const Value *args, uint32_t count, Value *out)
{
    if (count == 1)
        return STATUS_OK; /* a part, but not how many of it */
    return count == 0 ? give_time(run, run_ticks(run), out) : give_near(run, args, 1, out);
}

Status function_ago(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    return give_near(run, args, -1, out);
}
