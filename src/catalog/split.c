/* split.c - see split_int.h.
 *
 * By size: the logical partitions are walked in the order of their hashes, and a cut is made where
 * the sum of their sizes comes closest to a whole part of all. By hash: the range is taken for a
 * range of numbers of 16 bytes, which hashes of version 2 are.
 */
#include "catalog/split_int.h"

#include "catalog/epk_range.h"
#include "partition/sizes.h"

/* Bounds behind which no part of the range is left are left out. */
static void cut_by_hash(Arena *arena, const PartitionRange *range, uint32_t parts, Slice *texts,
                        size_t *count)
{
    EpkNumber low = epk_number(range->min_bytes);
    EpkNumber high = epk_number(range->max_bytes);
    if (high > EPK_NUMBERS_END && low < EPK_NUMBERS_END)
        high = EPK_NUMBERS_END;
    for (uint32_t i = 1; i < parts; i++) {
        Slice text = epk_number_text(arena, low + (high - low) / parts * i);
        Slice before = *count == 0 ? range->min : texts[*count - 1];
        if (slice_compare(text, before) > 0 && slice_compare(text, range->max) < 0)
            texts[(*count)++] = text;
    }
}

/* A cut before the logical partition at which the sum passes a whole part, or behind it, whichever
 * is closer. */
static Status cut_by_size(Arena *arena, const PartitionRange *range, uint32_t parts, Slice *texts,
                          size_t *count, Error *err)
{
    uint64_t total = partition_usage(range->partition).bytes;
    AUTO(sizes_walk_close) SizesWalk *walk = NULL;
    TRY(sizes_walk_open(range->partition, range->min_bytes, range->max_bytes, &walk, err));
    uint64_t sum = 0;
    uint64_t before = 0; /* the sum without the logical partition before this one */
    for (;;) {
        LogicalSize size;
        bool found = false;
        TRY(sizes_walk_next(walk, &size, &found, err));
        if (!found || *count + 1 == parts)
            return STATUS_OK;
        uint64_t wanted = total / parts * (*count + 1);
        /* What comes with this one is further from it than what there is. */
        bool is_closer = sum > 0 && (sum >= wanted || sum + size.bytes - wanted > wanted - sum);
        bool passes = sum + size.bytes >= wanted || sum >= wanted;
        if (passes && is_closer && slice_compare(size.epk, range->min_bytes) > 0 && sum > before) {
            texts[(*count)++] = epk_text(arena, size.epk);
            before = sum;
        }
        sum += size.bytes;
    }
}

Status split_find(Arena *arena, const Container *container, const PartitionRange *range,
                  uint32_t parts, SplitBy by, Cuts *out, Error *err)
{
    ASSERT(parts > 0);
    Slice *texts = ARENA_NEW_ARRAY(arena, Slice, parts);
    *out = (Cuts){.texts = texts};
    if (container->partition_key.kind == PARTITION_NONE)
        return STATUS_OK;
    if (by == SPLIT_BY_HASH || partition_usage(range->partition).items == 0)
        cut_by_hash(arena, range, parts, texts, &out->count);
    else
        TRY(cut_by_size(arena, range, parts, texts, &out->count, err));
    return STATUS_OK;
}
