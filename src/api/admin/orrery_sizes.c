/* orrery_sizes.c - how many logical partitions there are, and which are the largest: looked up on a
 * worker, within bounds, and kept for a while. */
#include "api/admin/orrery_int.h"
#include "api/core/usage_int.h"

/* Limits of one look-up. If one is reached, a count is an estimate, and some of the largest may be
 * missing. */
#define COUNT_US_MAX        ((uint64_t)100000)
#define LARGEST_ENTRIES_MAX ((uint64_t)2000000)
#define LARGEST_US_MAX      ((uint64_t)2000000)

/* ---- how many ---- */

/* What another node serves is not looked at. */
static bool is_elsewhere(const OrreryPage *page, size_t index)
{
    return page->request->api->options.cluster != NULL &&
           !handle_is_local(container_handle_at(page->container, index));
}

/* If a partition has no sizes, the counts are unknown; the rest of the answer is still shown. */
static Status count_all(OrreryPage *page, LogicalSizes *facts)
{
    const Container *container = page->container;
    facts->counts = ARENA_NEW_ARRAY(&facts->arena, LogicalCount, container->range_count);
    facts->count = container->range_count;
    facts->is_known = true;
    uint64_t deadline_us = page->now_us + COUNT_US_MAX;
    for (size_t i = 0; i < container->range_count; i++) {
        ScanBudget budget = {.entries =
                                 LOGICAL_PARTITIONS_COUNT_ENTRIES / container->range_count + 1000,
                             .deadline_us = deadline_us};
        facts->counts[i].count = LOGICAL_COUNT_UNKNOWN;
        if (is_elsewhere(page, i))
            continue;
        Status status = handle_count_keys(container_handle_at(container, i), container->schema,
                                          &budget, &facts->counts[i], &page->error);
        if (status == STATUS_UNAVAILABLE)
            facts->is_known = false;
        else if (status != STATUS_NOT_OWNER) /* it has moved just now */
            TRY(status);
    }
    return STATUS_OK;
}

/* ---- the largest ---- */

/* The key's value is read from one of its items; the last of them may have been deleted meanwhile.
 */
static Status name_large(OrreryPage *page, LogicalSizes *facts, const LogicalSize *size)
{
    const Container *container = page->container;
    const PartitionRange *range = container_range(container, size->partition);
    ASSERT(range != NULL); /* one of those that were asked */
    Slice text = SLICE_EMPTY;
    bool found = false;
    TRY(handle_key_text(container_handle(container, range), container->schema, size->epk,
                        &facts->arena, &text, &found, &page->error));
    if (!found)
        return STATUS_OK;
    LogicalLarge *large = &facts->largest[facts->largest_count++];
    *large = (LogicalLarge){
        .epk = arena_copy(&facts->arena, size->epk),
        .range = range->id,
        .items = size->items,
        .bytes = size->bytes,
    };
    large->key = usage_cut(text, TOP_TEXT_MAX, &large->is_cut);
    return STATUS_OK;
}

static Status find_largest(OrreryPage *page, LogicalSizes *facts)
{
    const Container *container = page->container;
    Arena *arena = page->request->arena;
    LargestPartitions *top = largest_partitions_new(arena, ORRERY_TOP_COUNT_MAX);
    ScanBudget budget = {.entries = LARGEST_ENTRIES_MAX,
                         .deadline_us = page->now_us + LARGEST_US_MAX};
    facts->is_complete = true;
    for (size_t i = 0; i < container->range_count && facts->is_complete; i++) {
        Slice next;
        if (is_elsewhere(page, i))
            continue;
        TRY(handle_add_largest(container_handle_at(container, i), top, &budget, &facts->is_complete,
                               &next, &page->error));
    }
    size_t count = 0;
    const LogicalSize *list = largest_partitions_list(top, &count);
    facts->largest = ARENA_NEW_ARRAY(&facts->arena, LogicalLarge, count + 1);
    for (size_t i = 0; i < count; i++)
        TRY(name_large(page, facts, &list[i]));
    return STATUS_OK;
}

/* ---- both, for a while ---- */

/* From the cache, or made by 'fill'. */
static Status facts_of(OrreryPage *page, LogicalSizesKind kind,
                       Status (*fill)(OrreryPage *page, LogicalSizes *facts), LogicalSizes **out)
{
    const Container *container = page->container;
    LogicalSizesCache *cache = page->request->api->sizes;
    uint32_t number = container->info.number;
    *out = logical_sizes_cache_get(cache, kind, number, container->ranges_lsn, page->now_us);
    if (*out != NULL)
        return STATUS_OK;
    AUTO(logical_sizes_unref)
    LogicalSizes *facts = logical_sizes_new(kind, number, container->ranges_lsn, page->now_us);
    TRY(fill(page, facts));
    logical_sizes_cache_put(cache, facts);
    *out = TAKE(facts);
    return STATUS_OK;
}

Status orrery_counts(OrreryPage *page, LogicalSizes **out)
{
    return facts_of(page, LOGICAL_SIZES_COUNTS, count_all, out);
}

Status orrery_largest(OrreryPage *page, LogicalSizes **out)
{
    return facts_of(page, LOGICAL_SIZES_LARGEST, find_largest, out);
}
