/* functions_string.c - text. Positions and lengths count UTF-16 code units: see sql_text_int.h. */
#include "query/eval/call_int.h"
#include "query/sql/sql_text_int.h"

#include <math.h>

enum { REPLICATE_UNITS_MAX = 10000 }; /* as the service has it */

/* Arguments 0 and 1 are strings, and the third, if any, says whether to ignore case. What ignores
 * case compares upper-cased copies. False if the types do not fit. */
typedef struct Pair {
    Slice text;
    Slice other;
} Pair;

static Status fold(Run *run, Slice text, Slice *out)
{
    TRY(run_charge_chars(run, text.len));
    TRY(run_reserve(run, 2 * text.len));
    *out = text_case(run->scratch, run_locale(run), TEXT_UPPER, text);
    return STATUS_OK;
}

static Status take_pair(Run *run, const Value *args, uint32_t count, Pair *pair, bool *fits)
{
    *fits = args[0].type == JSON_STRING && args[1].type == JSON_STRING &&
            (count < 3 || args[2].type == JSON_BOOL);
    if (!*fits)
        return STATUS_OK;
    *pair = (Pair){args[0].string, args[1].string};
    TRY(run_charge_bytes(run, pair->text.len + pair->other.len));
    if (count < 3 || !args[2].boolean)
        return STATUS_OK;
    TRY(fold(run, pair->text, &pair->text));
    return fold(run, pair->other, &pair->other);
}

/* Whether 'test' holds for the two strings; undefined if the types do not fit. */
static inline Status test_pair(Run *run, const Value *args, uint32_t count,
                               bool (*test)(Slice text, Slice other), Value *out)
{
    Pair pair;
    bool fits;
    TRY(take_pair(run, args, count, &pair, &fits));
    if (fits)
        *out = value_bool(test(pair.text, pair.other));
    return STATUS_OK;
}

static bool contains(Slice text, Slice other)
{
    return text_find(text, other, 0) != SIZE_MAX;
}

Status function_contains(Run *run, const Value *args, uint32_t count, Value *out)
{
    return test_pair(run, args, count, contains, out);
}

Status function_startswith(Run *run, const Value *args, uint32_t count, Value *out)
{
    return test_pair(run, args, count, slice_starts_with, out);
}

Status function_endswith(Run *run, const Value *args, uint32_t count, Value *out)
{
    return test_pair(run, args, count, slice_ends_with, out);
}

Status function_stringequals(Run *run, const Value *args, uint32_t count, Value *out)
{
    return test_pair(run, args, count, slice_equal, out);
}

/* CONTAINS of each of the others, joined by AND or OR: 'decisive' is what ends it, and an undefined
 * one makes the whole undefined if none is decisive. */
static Status contains_each(Run *run, const Value *args, uint32_t count, bool ignore_case,
                            bool decisive, Value *out)
{
    bool some_undefined = false;
    for (uint32_t i = 1; i < count; i++) {
        Value one[] = {args[0], args[i], value_bool(ignore_case)};
        Value contained = VALUE_UNDEFINED;
        TRY(function_contains(run, one, 3, &contained));
        if (!value_defined(&contained)) {
            some_undefined = true;
        } else if (contained.boolean == decisive) {
            *out = contained;
            return STATUS_OK;
        }
    }
    if (!some_undefined)
        *out = value_bool(!decisive);
    return STATUS_OK;
}

Status function_contains_all_ci(Run *run, const Value *args, uint32_t count, Value *out)
{
    return contains_each(run, args, count, true, false, out);
}

Status function_contains_all_cs(Run *run, const Value *args, uint32_t count, Value *out)
{
    return contains_each(run, args, count, false, false, out);
}

Status function_contains_any_ci(Run *run, const Value *args, uint32_t count, Value *out)
{
    return contains_each(run, args, count, true, true, out);
}

Status function_contains_any_cs(Run *run, const Value *args, uint32_t count, Value *out)
{
    return contains_each(run, args, count, false, true, out);
}

/* The byte at which unit 'unit' begins; the end if the text has fewer units. */
static size_t byte_of_unit(Slice text, size_t unit)
{
    size_t at = 0;
    size_t units = 0;
    while (units < unit && at < text.len)
        units += text_next(text, &at) > 0xFFFF ? 2 : 1;
    return at;
}

Status function_index_of(Run *run, const Value *args, uint32_t count, Value *out)
{
    int64_t start = 0;
    if (args[0].type != JSON_STRING || args[1].type != JSON_STRING ||
        (count == 3 && !value_to_i64(&args[2], &start)))
        return STATUS_OK;
    Slice text = args[0].string;
    TRY(run_charge_chars(run, text.len));
    if (start > (int64_t)text.len) {
        *out = value_integer(-1);
        return STATUS_OK;
    }
    size_t from = byte_of_unit(text, start < 0 ? 0 : (size_t)start);
    size_t found = text_find(text, args[1].string, from);
    *out = value_integer(found == SIZE_MAX ? -1 : (int64_t)text_units(slice_first(text, found)));
    return STATUS_OK;
}

/* The last place of 'sought' in the text, or SIZE_MAX. Compares at every place: the caller pays for
 * all of them, since a hostile pair needs them. */
static size_t find_last(Slice text, Slice sought)
{
    for (size_t at = text.len; at + 1 > sought.len; at--) {
        size_t from = at - sought.len;
        if (sought.len == 0 || memcmp(text.ptr + from, sought.ptr, sought.len) == 0)
            return from;
    }
    return SIZE_MAX;
}

static Status charge_last(Run *run, Slice text, Slice sought)
{
    return run_charge(run, 1 + text.len / 8 * (1 + sought.len / 64));
}

Status function_lastindexof(Run *run, const Value *args, uint32_t count, Value *out)
{
    int64_t last = INT64_MAX;
    if (args[0].type != JSON_STRING || args[1].type != JSON_STRING ||
        (count == 3 && !value_to_i64(&args[2], &last)))
        return STATUS_OK;
    Slice text = args[0].string;
    Slice sought = args[1].string;
    TRY(charge_last(run, text, sought));
    *out = value_integer(-1);
    if (last < 0)
        return STATUS_OK;
    /* The match must end at unit 'last' at the latest. */
    size_t end = last >= (int64_t)text.len ? text.len : byte_of_unit(text, (size_t)last + 1);
    size_t found = find_last(slice_first(text, end), sought);
    if (found != SIZE_MAX)
        *out = value_integer((int64_t)text_units(slice_first(text, found)));
    return STATUS_OK;
}

Status function_length(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    if (args[0].type != JSON_STRING)
        return STATUS_OK;
    TRY(run_charge_chars(run, args[0].string.len));
    *out = value_integer((int64_t)text_units(args[0].string));
    return STATUS_OK;
}

static Status change_case(Run *run, const Value *arg, TextCase to, Value *out)
{
    if (arg->type != JSON_STRING)
        return STATUS_OK;
    TRY(run_charge_chars(run, arg->string.len));
    TRY(run_reserve(run, 2 * arg->string.len));
    *out = value_string(text_case(run->scratch, run_locale(run), to, arg->string));
    return STATUS_OK;
}

Status function_lower(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    return change_case(run, &args[0], TEXT_LOWER, out);
}

Status function_upper(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    return change_case(run, &args[0], TEXT_UPPER, out);
}

static Status substring(Run *run, const Value *text, size_t start, size_t count, Value *out)
{
    TRY(run_charge_chars(run, text->string.len));
    TRY(run_reserve(run, text->string.len));
    *out = value_string(text_sub(run->scratch, text->string, start, count));
    return STATUS_OK;
}

Status function_left(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t length;
    if (args[0].type != JSON_STRING || !value_to_i64(&args[1], &length))
        return STATUS_OK;
    return substring(run, &args[0], 0, length < 0 ? 0 : (size_t)length, out);
}

Status function_right(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t length;
    if (args[0].type != JSON_STRING || !value_to_i64(&args[1], &length))
        return STATUS_OK;
    TRY(run_charge_chars(run, args[0].string.len));
    size_t units = text_units(args[0].string);
    size_t wanted = length < 0 ? 0 : (size_t)length;
    return substring(run, &args[0], wanted >= units ? 0 : units - wanted, wanted, out);
}

Status function_substring(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t start, length;
    if (args[0].type != JSON_STRING || !value_to_i64(&args[1], &start) ||
        !value_to_i64(&args[2], &length))
        return STATUS_OK;
    if (start < 0 || length <= 0) {
        *out = value_string(SLICE(""));
        return STATUS_OK;
    }
    return substring(run, &args[0], (size_t)start, (size_t)length, out);
}

typedef enum Side { SIDE_BEFORE, SIDE_AFTER } Side;

/* What is before or after the first or last 'args[1]'; nothing if it does not occur. */
static Status split_at(Run *run, const Value *args, bool last, Side side, Value *out)
{
    if (args[0].type != JSON_STRING || args[1].type != JSON_STRING)
        return STATUS_OK;
    Slice text = args[0].string;
    Slice sought = args[1].string;
    TRY(last ? charge_last(run, text, sought) : run_charge_bytes(run, text.len + sought.len));
    size_t at = last ? find_last(text, sought) : text_find(text, sought, 0);
    if (at == SIZE_MAX)
        *out = value_string(SLICE(""));
    else if (side == SIDE_BEFORE)
        *out = value_string(slice_first(text, at));
    else
        *out = value_string(slice_from(text, at + sought.len));
    return STATUS_OK;
}

Status function_substringafter(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    return split_at(run, args, false, SIDE_AFTER, out);
}

Status function_substringbefore(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    return split_at(run, args, false, SIDE_BEFORE, out);
}

Status function_lastsubstringafter(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    return split_at(run, args, true, SIDE_AFTER, out);
}

Status function_lastsubstringbefore(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    return split_at(run, args, true, SIDE_BEFORE, out);
}

/* Whether 'c' is to be trimmed: in the set that was given, or white space if none was. */
static bool is_trimmed(uint32_t c, const Slice *set)
{
    if (set == NULL)
        return text_is_space(c);
    size_t at = 0;
    while (at < set->len) {
        if (text_next(*set, &at) == c)
            return true;
    }
    return false;
}

enum { TRIM_START = 1, TRIM_END = 2 };

static Status trim(Run *run, const Value *args, uint32_t count, int ends, Value *out)
{
    if (args[0].type != JSON_STRING || (count == 2 && args[1].type != JSON_STRING))
        return STATUS_OK;
    const Slice *set = count == 2 ? &args[1].string : NULL;
    Slice text = args[0].string;
    TRY(run_charge(run, 1 + text.len / 8 * (1 + (set == NULL ? 0 : set->len / 2))));
    size_t start = 0;
    size_t end = text.len;
    for (size_t at = 0; (ends & TRIM_START) && start < end; start = at) {
        if (!is_trimmed(text_next(text, &at), set))
            break;
    }
    while ((ends & TRIM_END) && end > start) {
        size_t before = end - 1;
        while (before > start && ((uint8_t)text.ptr[before] & 0xC0) == 0x80)
            before--;
        size_t at = before;
        if (!is_trimmed(text_next(text, &at), set))
            break;
        end = before;
    }
    *out = value_string(slice_make(text.ptr + start, end - start));
    return STATUS_OK;
}

Status function_ltrim(Run *run, const Value *args, uint32_t count, Value *out)
{
    return trim(run, args, count, TRIM_START, out);
}

Status function_rtrim(Run *run, const Value *args, uint32_t count, Value *out)
{
    return trim(run, args, count, TRIM_END, out);
}

Status function_trim(Run *run, const Value *args, uint32_t count, Value *out)
{
    return trim(run, args, count, TRIM_START | TRIM_END, out);
}

Status function_concat(Run *run, const Value *args, uint32_t count, Value *out)
{
    size_t len = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (args[i].type != JSON_STRING)
            return STATUS_OK;
        len += args[i].string.len;
    }
    void *memory;
    TRY(run_alloc(run, len, &memory));
    char *at = memory;
    for (uint32_t i = 0; i < count; i++) {
        if (args[i].string.len > 0)
            memcpy(at, args[i].string.ptr, args[i].string.len);
        at += args[i].string.len;
    }
    *out = value_string(slice_make(memory, len));
    return STATUS_OK;
}

static size_t count_matches(Slice text, Slice sought)
{
    size_t matches = 0;
    for (size_t at = text_find(text, sought, 0); at != SIZE_MAX;
         at = text_find(text, sought, at + sought.len))
        matches++;
    return matches;
}

Status function_replace(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    if (args[0].type != JSON_STRING || args[1].type != JSON_STRING || args[2].type != JSON_STRING)
        return STATUS_OK;
    Slice text = args[0].string;
    Slice sought = args[1].string;
    Slice by = args[2].string;
    if (sought.len == 0)
        return STATUS_OK; /* there is no saying how often nothing occurs */
    TRY(run_charge_chars(run, text.len));
    size_t matches = count_matches(text, sought);
    size_t len = text.len - matches * sought.len + matches * by.len;
    void *memory;
    TRY(run_alloc(run, len, &memory));
    char *to = memory;
    size_t from = 0;
    for (size_t i = 0; i < matches; i++) {
        size_t at = text_find(text, sought, from);
        memcpy(to, text.ptr + from, at - from);
        to += at - from;
        if (by.len > 0)
            memcpy(to, by.ptr, by.len);
        to += by.len;
        from = at + sought.len;
    }
    if (from < text.len)
        memcpy(to, text.ptr + from, text.len - from);
    *out = value_string(slice_make(memory, len));
    return STATUS_OK;
}

Status function_replicate(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    if (args[0].type != JSON_STRING || args[1].type != JSON_NUMBER)
        return STATUS_OK;
    Slice text = args[0].string;
    double times = trunc(args[1].number);
    TRY(run_charge_chars(run, text.len));
    if (!(times >= 0) || times * (double)text_units(text) > REPLICATE_UNITS_MAX)
        return STATUS_OK;
    void *memory = NULL;
    size_t len = text.len == 0 ? 0 : text.len * (size_t)times;
    TRY(run_alloc(run, len, &memory));
    for (size_t at = 0; at < len; at += text.len)
        memcpy((char *)memory + at, text.ptr, text.len);
    *out = value_string(slice_make(memory, len));
    return STATUS_OK;
}

Status function_reverse(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    if (args[0].type != JSON_STRING)
        return STATUS_OK;
    Slice text = args[0].string;
    void *memory;
    TRY(run_charge_chars(run, text.len));
    TRY(run_alloc(run, text.len, &memory));
    char *to = (char *)memory + text.len;
    size_t at = 0;
    while (at < text.len) {
        size_t start = at;
        (void)text_next(text, &at);
        to -= at - start;
        memcpy(to, text.ptr + start, at - start);
    }
    *out = value_string(slice_make(memory, text.len));
    return STATUS_OK;
}

Status function_stringjoin(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    if (args[0].type != JSON_ARRAY || args[1].type != JSON_STRING)
        return STATUS_OK;
    Slice separator = args[1].string;
    size_t len = 0;
    JsonIter iter = json_iter(args[0].json);
    for (bool first = true; json_next(&iter); first = false) {
        if (!json_is(iter.value, JSON_STRING))
            return STATUS_OK;
        len += json_string(iter.value).len + (first ? 0 : separator.len);
    }
    void *memory;
    TRY(run_charge(run, json_count(args[0].json)));
    TRY(run_alloc(run, len, &memory));
    Buf joined = {.ptr = memory, .capacity = len, .bytes_max = len};
    iter = json_iter(args[0].json);
    for (bool first = true; json_next(&iter); first = false) {
        if (!first)
            buf_slice(&joined, separator);
        buf_slice(&joined, json_string(iter.value));
    }
    *out = value_string(buf_view(&joined));
    return STATUS_OK;
}

Status function_stringsplit(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    if (args[0].type != JSON_STRING || args[1].type != JSON_STRING)
        return STATUS_OK;
    Slice text = args[0].string;
    Slice separator = args[1].string;
    JsonBuilder b;
    json_build(&b, run->scratch);
    json_begin_array(&b);
    for (size_t from = 0;;) {
        size_t at = separator.len == 0 ? SIZE_MAX : text_find(text, separator, from);
        TRY(run_charge_bytes(run, at == SIZE_MAX ? text.len - from : at - from));
        TRY(run_reserve(run, 0));
        json_add_string(&b, slice_make(text.ptr + from, (at == SIZE_MAX ? text.len : at) - from));
        if (at == SIZE_MAX)
            break;
        from = at + separator.len;
    }
    json_end(&b);
    return run_built(run, &b, out);
}

static Slice number_words(double number)
{
    if (isnan(number))
        return SLICE("NaN");
    return number > 0 ? SLICE("Infinity") : SLICE("-Infinity");
}

Status function_tostring(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    const Value *value = &args[0];
    if (value->type == JSON_STRING) {
        *out = *value;
        return STATUS_OK;
    }
    if (value->type == JSON_NUMBER && !value->is_integer && !isfinite(value->number)) {
        *out = value_string(number_words(value->number));
        return STATUS_OK;
    }
    TRY(run_charge_value(run, value));
    AUTO(buf_done) Buf text;
    buf_init(&text, run->options.bytes_max);
    json_print(value_json(run->scratch, run->scratch, value), &text);
    void *memory;
    TRY(run_alloc(run, buf_full(&text) ? run->options.bytes_max : text.len, &memory));
    if (text.len > 0)
        memcpy(memory, text.ptr, text.len);
    *out = value_string(slice_make(memory, text.len));
    return STATUS_OK;
}
