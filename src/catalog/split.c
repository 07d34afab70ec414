/* split.c - see split_int.h.
 *
 * By size: the logical partitions are walked in the order of their hashes, and a cut is made where
 * the sum of their sizes comes closest to a whole part of all. By hash: see epk_cuts. Always: if
 * there are too few cuts by size, what lies between them is cut by hash, the widest most often.
 */
#include "catalog/split_int.h"

#include "base/encoding.h"
#include "catalog/epk_range.h"
#include "partition/logical_partitions.h"

static Status open_walk(const PartitionHandle *handle, LogicalPartitions **out, Error *err)
{
    const PartitionRange *range = handle_range(handle);
    if (!handle_is_local(handle))
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE, "Partition %u is served by another node.",
                         range->id);
    return logical_partitions_open(handle_local(handle), range->min_bytes, range->max_bytes, out,
                                   err);
}

/* Cuts before or after the logical partition at which the sum passes a whole part, whichever is
 * closer. */
static Status cut_by_size(Arena *arena, const PartitionHandle *handle, uint32_t parts, Slice *texts,
                          size_t *count, Error *err)
{
    Slice min = handle_range(handle)->min_bytes;
    uint64_t total = handle_usage(handle).bytes;
    AUTO(logical_partitions_close) LogicalPartitions *walk = NULL;
    TRY(open_walk(handle, &walk, err));
    uint64_t sum = 0;
    uint64_t before = 0; /* the sum without the logical partition before this one */
    for (;;) {
        LogicalSize size;
        bool found = false;
        TRY(logical_partitions_next(walk, &size, &found, err));
        if (!found || *count + 1 == parts)
            return STATUS_OK;
        uint64_t wanted = total / parts * (*count + 1);
        /* The sum with this logical partition is further from what is wanted than without it. */
        bool is_closer = sum > 0 && (sum >= wanted || sum + size.bytes - wanted > wanted - sum);
        bool passes = sum + size.bytes >= wanted || sum >= wanted;
        if (passes && is_closer && slice_compare(size.epk, min) > 0 && sum > before) {
            texts[(*count)++] = epk_text(arena, size.epk);
            before = sum;
        }
        sum += size.bytes;
    }
}

/* The hashes between two cuts. */
typedef struct Gap {
    Slice min; /* bytes */
    Slice max;
    double width; /* its part of all hashes */
    uint32_t parts;
} Gap;

static Slice bound_bytes(Arena *arena, Slice text)
{
    size_t len = 0;
    uint8_t *bytes = arena_alloc(arena, text.len / 2);
    bool is_hex = hex_decode(text, bytes, text.len / 2, &len);
    ASSERT(is_hex);
    return slice_make(bytes, len);
}

/* Adds parts, up to 'parts' in all, each to the gap whose parts are the widest. */
static void divide_gaps(Gap *gaps, size_t count, uint32_t parts)
{
    for (size_t have = count; have < parts; have++) {
        Gap *widest = &gaps[0];
        for (size_t i = 1; i < count; i++)
            if (gaps[i].width / gaps[i].parts > widest->width / widest->parts)
                widest = &gaps[i];
        widest->parts++;
    }
}

/* Adds cuts by hash between those that there are, up to parts - 1 in all. */
static void fill_by_hash(Arena *arena, PartitionKind kind, const PartitionRange *range,
                         uint32_t parts, Slice *texts, size_t *count)
{
    size_t gap_count = *count + 1;
    Gap *gaps = ARENA_NEW_ARRAY(arena, Gap, gap_count);
    Slice min = range->min_bytes;
    for (size_t i = 0; i < gap_count; i++) {
        Slice max = i < *count ? bound_bytes(arena, texts[i]) : range->max_bytes;
        double width = epk_fraction(kind, max) - epk_fraction(kind, min);
        gaps[i] = (Gap){.min = min, .max = max, .width = width, .parts = 1};
        min = max;
    }
    divide_gaps(gaps, gap_count, parts);
    *count = 0;
    for (size_t i = 0; i < gap_count; i++) {
        *count += epk_cuts(arena, kind, gaps[i].min, gaps[i].max, gaps[i].parts, texts + *count);
        if (i + 1 < gap_count)
            texts[(*count)++] = epk_text(arena, gaps[i].max);
    }
}

Status split_find(Arena *arena, const PartitionHandle *handle, PartitionKind kind, uint32_t parts,
                  SplitBy by, Cuts *out, Error *err)
{
    ASSERT(parts > 0);
    Slice *texts = ARENA_NEW_ARRAY(arena, Slice, parts);
    *out = (Cuts){.texts = texts};
    if (kind == PARTITION_NONE)
        return STATUS_OK;
    bool is_by_hash = by == SPLIT_BY_HASH || handle_usage(handle).items == 0;
    if (!is_by_hash)
        TRY(cut_by_size(arena, handle, parts, texts, &out->count, err));
    if (is_by_hash || by == SPLIT_ALWAYS)
        fill_by_hash(arena, kind, handle_range(handle), parts, texts, &out->count);
    return STATUS_OK;
}

bool split_has_pair(const PartitionHandle *handle)
{
    Error err;
    LogicalPartitions *walk = NULL;
    if (handle_usage(handle).items < 2 || open_walk(handle, &walk, &err) != STATUS_OK)
        return false;
    bool found = true;
    for (int i = 0; i < 2 && found; i++) {
        LogicalSize size;
        found = logical_partitions_next(walk, &size, &found, &err) == STATUS_OK && found;
    }
    logical_partitions_close(walk);
    return found;
}
