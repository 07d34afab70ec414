/* orrery_sizes.c - how many logical partitions there are, and which are the largest: looked up on a
 * worker, within bounds, and kept for a while. */
#include "api/orrery_int.h"
#include "api/usage_int.h"

/* What one look may cost. A count is then an estimate; of the largest some may be missing. */
#define COUNT_US_MAX        ((uint64_t)100000)
#define LARGEST_ENTRIES_MAX ((uint64_t)2000000)
#define LARGEST_US_MAX      ((uint64_t)2000000)

/* ---- how many ---- */

/* A partition that has no sizes makes the whole unknown: it is no reason to show nothing else. */
static Status count_all(OrreryPage *page, SizesFacts *facts)
{
    const Container *container = page->container;
    facts->counts = ARENA_NEW_ARRAY(&facts->arena, LogicalCount, container->range_count);
    facts->count = container->range_count;
    facts->is_known = true;
    uint64_t deadline_us = page->now_us + COUNT_US_MAX;
    for (size_t i = 0; i < container->range_count; i++) {
        const PartitionRange *range = &container->ranges[i];
        ScanBudget budget = {.entries = SIZES_COUNT_ENTRIES / container->range_count + 1000,
                             .deadline_us = deadline_us};
        Status status = sizes_count(range->partition, container->schema, range->min_bytes,
                                    range->max_bytes, &budget, &facts->counts[i], &page->error);
        if (status == STATUS_UNAVAILABLE)
            facts->is_known = false;
        else
            TRY(status);
    }
    return STATUS_OK;
}

/* ---- the largest ---- */

static const PartitionRange *range_with(const Container *container, uint32_t id)
{
    for (size_t i = 0; i < container->range_count; i++) {
        if (container->ranges[i].id == id)
            return &container->ranges[i];
    }
    return NULL;
}

/* The key's value comes from one of its items; it may have lost its last one meanwhile. */
static Status name_large(OrreryPage *page, SizesFacts *facts, const LogicalSize *size)
{
    const Container *container = page->container;
    const PartitionRange *range = range_with(container, size->partition);
    ASSERT(range != NULL); /* it was asked */
    Slice text = SLICE_EMPTY;
    bool found = false;
    TRY(sizes_key_text(range->partition, container->schema, size->epk, &facts->arena, &text, &found,
                       &page->error));
    if (!found)
        return STATUS_OK;
    SizesLarge *large = &facts->largest[facts->largest_count++];
    *large = (SizesLarge){
        .epk = arena_copy(&facts->arena, size->epk),
        .range = range->id,
        .items = size->items,
        .bytes = size->bytes,
    };
    large->key = usage_cut(text, TOP_TEXT_MAX, &large->is_cut);
    return STATUS_OK;
}

static Status find_largest(OrreryPage *page, SizesFacts *facts)
{
    const Container *container = page->container;
    Arena *arena = page->request->arena;
    SizesTop *top = sizes_top_new(arena, ORRERY_TOP_COUNT_MAX);
    ScanBudget budget = {.entries = LARGEST_ENTRIES_MAX,
                         .deadline_us = page->now_us + LARGEST_US_MAX};
    facts->is_complete = true;
    for (size_t i = 0; i < container->range_count && facts->is_complete; i++) {
        const PartitionRange *range = &container->ranges[i];
        Slice next;
        TRY(sizes_top_add(top, range->partition, range->min_bytes, range->max_bytes, &budget,
                          &facts->is_complete, &next, &page->error));
    }
    size_t count = 0;
    const LogicalSize *list = sizes_top_list(top, &count);
    facts->largest = ARENA_NEW_ARRAY(&facts->arena, SizesLarge, count + 1);
    for (size_t i = 0; i < count; i++)
        TRY(name_large(page, facts, &list[i]));
    return STATUS_OK;
}

/* ---- both, for a while ---- */

/* What is known, or else is looked up by 'fill'. */
static Status facts_of(OrreryPage *page, SizesKind kind,
                       Status (*fill)(OrreryPage *page, SizesFacts *facts), SizesFacts **out)
{
    const Container *container = page->container;
    SizesCache *cache = &page->request->api->sizes;
    uint32_t number = container->info.number;
    *out = sizes_cache_get(cache, kind, number, container->ranges_lsn, page->now_us);
    if (*out != NULL)
        return STATUS_OK;
    AUTO(sizes_facts_unref)
    SizesFacts *facts = sizes_facts_new(kind, number, container->ranges_lsn, page->now_us);
    TRY(fill(page, facts));
    sizes_cache_put(cache, facts);
    *out = TAKE(facts);
    return STATUS_OK;
}

Status orrery_counts(OrreryPage *page, SizesFacts **out)
{
    return facts_of(page, SIZES_COUNTS, count_all, out);
}

Status orrery_largest(OrreryPage *page, SizesFacts **out)
{
    return facts_of(page, SIZES_LARGEST, find_largest, out);
}
