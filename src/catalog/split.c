/* split.c - see split_int.h.
 *
 * By size: the logical partitions are walked in the order of their hashes, and a cut is made where
 * the sum of their sizes comes closest to a whole part of all. By hash: see epk_cuts. Always: if
 * there are too few cuts by size, what lies between them is cut by hash, the widest most often.
 */
#include "catalog/split_int.h"

#include "base/encoding.h"
#include "catalog/epk_range.h"
#include "partition/sizes.h"

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

/* What lies between two cuts. */
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

/* Gives each of the missing cuts to the gap whose parts are the widest. */
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

Status split_find(Arena *arena, const Container *container, const PartitionRange *range,
                  uint32_t parts, SplitBy by, Cuts *out, Error *err)
{
    ASSERT(parts > 0);
    Slice *texts = ARENA_NEW_ARRAY(arena, Slice, parts);
    *out = (Cuts){.texts = texts};
    PartitionKind kind = container->partition_key.kind;
    if (kind == PARTITION_NONE)
        return STATUS_OK;
    bool is_by_hash = by == SPLIT_BY_HASH || partition_usage(range->partition).items == 0;
    if (!is_by_hash)
        TRY(cut_by_size(arena, range, parts, texts, &out->count, err));
    if (is_by_hash || by == SPLIT_ALWAYS)
        fill_by_hash(arena, kind, range, parts, texts, &out->count);
    return STATUS_OK;
}

bool split_has_pair(const PartitionRange *range)
{
    Error err;
    SizesWalk *walk = NULL;
    if (partition_usage(range->partition).items < 2 ||
        sizes_walk_open(range->partition, range->min_bytes, range->max_bytes, &walk, &err) !=
            STATUS_OK)
        return false;
    bool found = true;
    for (int i = 0; i < 2 && found; i++) {
        LogicalSize size;
        found = sizes_walk_next(walk, &size, &found, &err) == STATUS_OK && found;
    }
    sizes_walk_close(walk);
    return found;
}
