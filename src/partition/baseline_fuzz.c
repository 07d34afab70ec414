/* baseline_fuzz.c - records of baselines, as a damaged disk may have them: a key of
 * KEY_BEFORE_BYTES, then the value. What is accepted is written again, and must be the same. */
#include "base/mem.h"
#include "partition/baseline_int.h"
#include "partition/space_key_int.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_before(Arena *arena, Slice key, Slice value)
{
    BeforeRecord record;
    Error err;
    if (before_decode(key, value, &record, &err) != STATUS_OK)
        return;
    ASSERT(slice_equal(before_encode(arena, record.epk, record.id, record.image), value));
    uint8_t again[KEY_BEFORE_BYTES];
    key_before(again, record.baseline, record.number);
    ASSERT(memcmp(again + 1, key.ptr + 1, sizeof(again) - 1) == 0);
}

static void try_baseline(Slice key, Slice value)
{
    Baseline baseline;
    Error err;
    if (baseline_decode(key, value, &baseline, &err) != STATUS_OK)
        return;
    ASSERT(value.len == sizeof(baseline.lsn));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    Slice bytes = slice_make(data, size);
    size_t before = size < KEY_BEFORE_BYTES ? size : KEY_BEFORE_BYTES;
    size_t baseline = size < KEY_BASELINE_BYTES ? size : KEY_BASELINE_BYTES;
    try_before(&arena, slice_first(bytes, before), slice_from(bytes, before));
    try_baseline(slice_first(bytes, baseline), slice_from(bytes, baseline));
    return 0;
}
