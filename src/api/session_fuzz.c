/* session_fuzz.c - any token: it is refused for every range or for none, it asks nothing of a range
 * that it does not name, and what it asks can be printed and read again. */
#include "api/session_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool holds_digit(Slice token, char digit)
{
    return slice_find(token, digit) < token.len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Slice token = slice_make(data, size);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 256);
    Error err;
    uint64_t unused = 0;
    Status expected = session_wanted(token, UINT32_MAX, &unused, &err);
    ASSERT(expected == STATUS_OK || expected == STATUS_BAD_REQUEST);
    for (uint32_t id = 0; id < 10; id++) {
        uint64_t lsn = 0;
        Status status = session_wanted(token, id, &lsn, &err);
        ASSERT(status == expected);
        if (status != STATUS_OK)
            continue;
        ASSERT(lsn == 0 || holds_digit(token, (char)('0' + id)));
        uint64_t again = 0;
        status = session_wanted(session_print(&arena, id, lsn), id, &again, &err);
        ASSERT(status == STATUS_OK);
        ASSERT(again == lsn);
    }
    return 0;
}
