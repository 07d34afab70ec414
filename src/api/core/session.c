/* session.c - see session_int.h. */
#include "api/core/session_int.h"

#include "base/encoding.h"

enum { OUR_VERSION = -1 };
#define BEFORE_LSN SLICE(":-1#") /* OUR_VERSION, and what stands around it */

static_assert(2 * U64_TEXT_MAX + 4 <= SESSION_ENTRY_TEXT_MAX, "an id, BEFORE_LSN and an LSN");

typedef struct Entry {
    Slice range;
    uint64_t lsn; /* that it asks of the range */
} Entry;

static bool is_digits(Slice text)
{
    size_t digits = 0;
    while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9')
        digits++;
    return digits > 0 && digits == text.len;
}

static bool is_nan(Slice text)
{
    return slice_equal_nocase(text, SLICE("NaN"));
}

/* A negative LSN, which SDKs have for a range that they know nothing of, is 0. */
static bool read_lsn(Slice text, uint64_t *out)
{
    *out = 0;
    if (is_nan(text) || (text.len > 0 && text.ptr[0] == '-' && is_digits(slice_from(text, 1))))
        return true;
    return slice_to_u64(text, out);
}

static bool read_regions(Slice rest)
{
    while (rest.ptr != NULL) {
        Slice lsn = slice_cut(&rest, '#');
        Slice region = slice_cut(&lsn, '=');
        uint64_t ignored = 0;
        if (!is_digits(region) || !read_lsn(lsn, &ignored))
            return false;
    }
    return true;
}

static bool read_vector(Slice version, Slice rest, uint64_t *out)
{
    int64_t number = 0;
    Slice global = slice_cut(&rest, '#');
    if ((!is_nan(version) && !slice_to_i64(version, &number)) || !read_lsn(global, out) ||
        !read_regions(rest))
        return false;
    if (is_nan(version) || is_nan(global) || number < OUR_VERSION)
        *out = 0;
    else if (number > OUR_VERSION)
        *out = SESSION_LSN_UNREACHABLE;
    return true;
}

static bool read_entry(Slice text, Entry *out)
{
    out->range = slice_cut(&text, ':');
    if (!is_digits(out->range) || text.ptr == NULL)
        return false;
    Slice first = slice_cut(&text, '#');
    return text.ptr == NULL ? read_lsn(first, &out->lsn) : read_vector(first, text, &out->lsn);
}

static bool is_of(const Entry *entry, const PartitionRange *range)
{
    uint64_t id = 0;
    return slice_to_u64(entry->range, &id) && id <= UINT32_MAX &&
           partition_range_is_from(range, (uint32_t)id);
}

/* 'range' may be NULL, to read the entries only. */
static Status read_token(Slice token, const PartitionRange *range, uint64_t *lsn, Error *err)
{
    uint64_t most = 0;
    Slice rest = token;
    while (rest.ptr != NULL) {
        Slice text = slice_trim(slice_cut(&rest, ','));
        Entry entry;
        if (text.len == 0)
            continue;
        if (!read_entry(text, &entry))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "InvalidSessionToken: the entry '%.*s' of the session token '%.*s' is "
                             "malformed; expected 'range:version#lsn'.",
                             SLICE_CUT(text, 60), SLICE_CUT(token, 120));
        if (range != NULL && entry.lsn > most && is_of(&entry, range))
            most = entry.lsn;
    }
    *lsn = most;
    return STATUS_OK;
}

Status session_wanted(Slice token, const PartitionRange *range, uint64_t *lsn, Error *err)
{
    ASSERT(range != NULL);
    return read_token(token, range, lsn, err);
}

Status session_check(Slice token, Error *err)
{
    uint64_t ignored = 0;
    return read_token(token, NULL, &ignored, err);
}

Slice session_print(Arena *arena, uint32_t id, uint64_t lsn)
{
    char *text = arena_alloc(arena, SESSION_ENTRY_TEXT_MAX);
    size_t len = u64_print(id, text);
    memcpy(text + len, BEFORE_LSN.ptr, BEFORE_LSN.len);
    len += BEFORE_LSN.len;
    return slice_make(text, len + u64_print(lsn, text + len));
}
