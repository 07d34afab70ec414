/* change_log_fuzz.c - entries of the change log, as a damaged disk may have them. What is accepted
 * is written again, and must be the same. */
#include "base/arena.h"
#include "base/mem.h"
#include "partition/change_log_int.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_latest(Arena *arena, Slice bytes)
{
    LatestEntry entry;
    Error err;
    if (latest_decode(bytes, &entry, &err) != STATUS_OK)
        return;
    ASSERT(slice_equal(latest_encode(arena, entry.ts_s, entry.epk, entry.id), bytes));
}

static void try_history(Arena *arena, Slice bytes)
{
    HistoryEntry entry;
    Error err;
    if (history_decode(bytes, &entry, &err) != STATUS_OK)
        return;
    HistoryEntry again;
    Slice written = history_encode(arena, &entry);
    ASSERT(written.len == bytes.len);
    Status status = history_decode(written, &again, &err);
    ASSERT(status == STATUS_OK);
    ASSERT(slice_equal(again.image, entry.image));
    Item item;
    if (entry.image.len > 0 && item_decode(entry.image, &item, &err) == STATUS_OK)
        ASSERT(item.bytes == entry.image.len);
}

static void try_key(Slice bytes)
{
    ChangePlace place;
    if (bytes.len == 0 || !key_change_parse(bytes, &place))
        return;
    Key key;
    key_change(&key, (uint8_t)bytes.ptr[0], place);
    ASSERT(slice_equal(key_slice(&key), bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    Slice bytes = slice_make(data, size);
    try_key(bytes);
    try_latest(&arena, bytes);
    try_history(&arena, bytes);
    return 0;
}
