/* session.c - see session_int.h. */
#include "api/core/session_int.h"

#include "base/encoding.h"

static Status malformed(Slice token, Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "InvalidSessionToken: the session token '%.*s' is malformed; expected "
                     "'range:version#lsn'.",
                     SLICE_CUT(token, 120));
}

/* Any number of digits: a number that may be too large to be an LSN. */
static bool is_number(Slice text)
{
    size_t digits = 0;
    while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9')
        digits++;
    return digits > 0 && digits == text.len;
}

Status session_wanted(Slice token, const PartitionRange *range, uint64_t *lsn, Error *err)
{
    *lsn = 0;
    Slice rest = token;
    while (rest.ptr != NULL) {
        Slice value = slice_trim(slice_cut(&rest, ','));
        if (value.len == 0)
            continue;
        Slice name = slice_cut(&value, ':');
        uint64_t id = 0;
        if (value.ptr == NULL)
            return malformed(token, err);
        Slice first = slice_cut(&value, '#');
        Slice global = value.ptr == NULL ? first : slice_cut(&value, '#');
        uint64_t wanted = 0;
        if (!is_number(global))
            continue;
        if (!slice_to_u64(global, &wanted))
            return malformed(token, err);
        bool is_ours = slice_to_u64(name, &id) && id <= UINT32_MAX &&
                       partition_range_is_from(range, (uint32_t)id);
        if (is_ours && wanted > *lsn)
            *lsn = wanted;
    }
    return STATUS_OK;
}

Slice session_print(Arena *arena, uint32_t id, uint64_t lsn)
{
    Slice middle = SLICE(":-1#");
    char *text = arena_alloc(arena, 2 * U64_TEXT_MAX + middle.len);
    size_t len = u64_print(id, text);
    memcpy(text + len, middle.ptr, middle.len);
    len += middle.len;
    return slice_make(text, len + u64_print(lsn, text + len));
}
