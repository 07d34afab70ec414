/* session_fuzz.c - any token: it is refused for every range or for none, it asks nothing of a range
 * that it does not name, and what it asks can be printed and read again. */
#include "api/core/session_int.h"

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
    Status expected = session_check(token, &err);
    ASSERT(expected == STATUS_OK || expected == STATUS_BAD_REQUEST);
    Status status = session_wanted(token, &(PartitionRange){.id = UINT32_MAX}, &unused, &err);
    ASSERT(status == expected);
    uint32_t parents[10];
    uint64_t most = 0;
    for (uint32_t id = 0; id < 10; id++) {
        parents[id] = id;
        uint64_t lsn = 0;
        status = session_wanted(token, &(PartitionRange){.id = id}, &lsn, &err);
        ASSERT(status == expected);
        if (status != STATUS_OK)
            continue;
        ASSERT(lsn == 0 || holds_digit(token, (char)('0' + id)));
        uint64_t again = 0;
        status = session_wanted(session_print(&arena, id, lsn), &(PartitionRange){.id = id}, &again,
                                &err);
        ASSERT(status == STATUS_OK);
        ASSERT(again == lsn);
        /* A range that comes from all of them must have what each had. */
        most = lsn > most ? lsn : most;
        PartitionRange child = {.id = UINT32_MAX, .parents = parents, .parent_count = id + 1};
        status = session_wanted(token, &child, &again, &err);
        ASSERT(status == STATUS_OK);
        ASSERT(again == (most > unused ? most : unused));
    }
    return 0;
}
