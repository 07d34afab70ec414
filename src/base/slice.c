/* slice.c - see slice.h. */
#include "base/slice.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool slice_equal_nocase(Slice a, Slice b)
{
    if (a.len != b.len)
        return false;
    if (slice_equal(a, b))
        return true; /* the rule, and much quicker */
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.ptr[i]) != lower(b.ptr[i]))
            return false;
    }
    return true;
}

Slice slice_trim(Slice s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

size_t slice_find(Slice s, char c)
{
    const char *at = s.len == 0 ? NULL : memchr(s.ptr, c, s.len);
    return at == NULL ? s.len : (size_t)(at - s.ptr);
}

Slice slice_cut(Slice *s, char separator)
{
    Slice whole = *s;
    size_t at = slice_find(whole, separator);
    if (at == whole.len) {
        *s = SLICE_EMPTY;
        return whole;
    }
    *s = slice_make(whole.ptr + at + 1, whole.len - at - 1);
    return slice_make(whole.ptr, at);
}

bool slice_to_u64(Slice s, uint64_t *out)
{
    if (s.len == 0 || s.len > 20)
        return false;
    uint64_t value = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(s.ptr[i] - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

bool slice_to_i64(Slice s, int64_t *out)
{
    bool negative = s.len > 0 && s.ptr[0] == '-';
    uint64_t value = 0;
    if (!slice_to_u64(negative ? slice_from(s, 1) : s, &value))
        return false;
    if (value > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool slice_to_bool(Slice s, bool *out)
{
    bool is_true = slice_equal_nocase(s, SLICE("true"));
    if (!is_true && !slice_equal_nocase(s, SLICE("false")))
        return false;
    *out = is_true;
    return true;
}
