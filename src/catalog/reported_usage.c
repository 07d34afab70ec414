/* reported_usage.c - see reported_usage_int.h.
 *
 * The moment is written after the numbers and read before them, so what counts as the present is
 * never older than its moment.
 */
#include "catalog/reported_usage_int.h"

#include "base/array.h"
#include "base/mem.h"
#include "catalog/catalog_int.h"
#include "catalog/partition_handle_int.h"
#include "catalog/split_int.h"

#include <stdlib.h>

struct ReportedUsage {
    _Atomic uint32_t refs;
    _Atomic uint64_t at_us; /* monotonic */
    _Atomic uint64_t items;
    _Atomic uint64_t bytes;
    _Atomic uint64_t bytes_ever;
    _Atomic uint64_t busiest;
    _Atomic bool is_one_key;
};

#define GET(field)        atomic_load_explicit(&(field), memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&(field), value, memory_order_relaxed)

ReportedUsage *reported_usage_new(void)
{
    ReportedUsage *reported = MEM_NEW(ReportedUsage);
    atomic_init(&reported->refs, 1);
    return reported;
}

ReportedUsage *reported_usage_ref(ReportedUsage *reported)
{
    atomic_fetch_add_explicit(&reported->refs, 1, memory_order_relaxed);
    return reported;
}

void reported_usage_unref(ReportedUsage *reported)
{
    if (reported != NULL && atomic_fetch_sub(&reported->refs, 1) == 1)
        mem_free(reported);
}

void reported_usage_note(ReportedUsage *reported, const SpaceUsage *said, uint64_t at_us)
{
    atomic_store(&reported->at_us, 0);
    SET(reported->items, said->held.items);
    SET(reported->bytes, said->held.bytes);
    /* A late answer of the last owner does not lower what an offer must go by. */
    if (said->held.bytes_ever > GET(reported->bytes_ever))
        SET(reported->bytes_ever, said->held.bytes_ever);
    SET(reported->busiest, said->busiest);
    SET(reported->is_one_key, said->is_one_key);
    atomic_store(&reported->at_us, at_us);
}

SpaceUsage reported_usage_last(const ReportedUsage *reported, uint64_t *at_us)
{
    *at_us = atomic_load(&reported->at_us);
    return (SpaceUsage){
        .held = {.items = GET(reported->items),
                 .bytes = GET(reported->bytes),
                 .bytes_ever = GET(reported->bytes_ever)},
        .busiest = GET(reported->busiest),
        .is_one_key = GET(reported->is_one_key),
    };
}

/* ---- of all partitions ---- */

/* Whether it holds more than one may, and cannot be cut. Nobody else can tell, and whoever leads
 * should not bring it over in vain. */
static bool is_one_key(const Catalog *catalog, const PartitionHandle *handle, uint64_t bytes)
{
    uint64_t max = catalog->moves.policy.rules.partition_bytes_max;
    return max != 0 && bytes > max && !split_has_pair(handle);
}

void catalog_list_usage(Catalog *catalog, Arena *arena, SpaceUsage **out, size_t *count)
{
    size_t capacity = 0;
    *out = NULL;
    *count = 0;
    CatalogReader reader;
    catalog_reader_init(&reader, catalog);
    uint64_t now_us = clock_monotonic_us(catalog->clock);
    const Snapshot *snapshot = catalog_read(&reader);
    SnapshotWalk walk = {0};
    while (snapshot_next(snapshot, &walk)) {
        for (size_t i = 0; i < walk.container->range_count; i++) {
            const PartitionHandle *handle = container_handle_at(walk.container, i);
            if (!handle_is_served(handle))
                continue;
            KnownUsage known = handle_known_usage(handle, now_us);
            ARRAY_GROW_IN(arena, *out, *count, capacity, 64);
            (*out)[(*count)++] =
                (SpaceUsage){.space = handle_range(handle)->space,
                             .held = known.held,
                             .busiest = known.busiest,
                             .is_one_key = is_one_key(catalog, handle, known.held.bytes)};
        }
    }
    catalog_reader_done(&reader);
}

static int compare_spaces(const void *a, const void *b)
{
    StoreSpace left = ((const SpaceUsage *)a)->space;
    StoreSpace right = ((const SpaceUsage *)b)->space;
    return (left > right) - (left < right);
}

static bool is_credible(const SpaceUsage *said)
{
    return said->held.bytes <= said->held.bytes_ever &&
           said->held.bytes_ever <= SPACE_USAGE_BYTES_MAX &&
           said->busiest <= SPACE_USAGE_CHARGE_MAX;
}

void catalog_note_usage(Catalog *catalog, SpaceUsage *said, size_t count, uint64_t age_us)
{
    if (count == 0)
        return;
    qsort(said, count, sizeof(*said), compare_spaces);
    uint64_t now_us = clock_monotonic_us(catalog->clock);
    uint64_t at_us = now_us > age_us ? now_us - age_us : 0;
    CatalogReader reader;
    catalog_reader_init(&reader, catalog);
    const Snapshot *snapshot = catalog_read(&reader);
    SnapshotWalk walk = {0};
    while (snapshot_next(snapshot, &walk)) {
        for (size_t i = 0; i < walk.container->range_count; i++) {
            const PartitionHandle *handle = container_handle_at(walk.container, i);
            SpaceUsage key = {.space = handle_range(handle)->space};
            const SpaceUsage *found =
                handle_is_local(handle) ? NULL
                                        : bsearch(&key, said, count, sizeof(*said), compare_spaces);
            if (found != NULL && is_credible(found))
                reported_usage_note(handle->reported, found, at_us);
        }
    }
    catalog_reader_done(&reader);
}
