/* orrery_layout.c - the physical partitions of a container, and the list of containers. */
#include "api/admin/orrery_int.h"

#include <stdlib.h>

/* ---- what is provisioned ---- */

static void put_throughput(Buf *out, const OrreryPage *page, const Database *database,
                           const Container *container)
{
    bool is_shared = container->offer == 0 && database->offer != 0;
    const Offer *offer =
        snapshot_offer(page->snapshot, is_shared ? database->offer : container->offer);
    put_open(out, "throughput", '{');
    if (offer == NULL) {
        put_text(out, "mode", SLICE("serverless"));
        put_number(out, "ru", 0);
    } else {
        bool is_autoscale = offer->provision.mode == PROVISION_AUTOSCALE;
        OfferUsage usage = catalog_offer_usage(page->snapshot, offer, page->now_us);
        put_text(out, "mode", is_autoscale ? SLICE("autoscale") : SLICE("manual"));
        put_number(out, "ru", offer->provision.ru);
        put_number(out, "current", provision_current_ru(&offer->provision, usage.ru));
    }
    put_bool(out, "isShared", is_shared);
    put_close(out, '}');
}

/* ---- the layout ---- */

typedef struct Totals {
    OrreryUse use;
    uint64_t allotted;
    uint64_t items;
    uint64_t bytes;
    uint64_t logical;
    bool is_logical_exact;
} Totals;

static void put_size(Buf *out, uint64_t items, uint64_t bytes)
{
    put_number(out, "items", items);
    put_number(out, "bytes", bytes);
}

/* Prints null if it is not known. */
static void put_logical(Buf *out, const LogicalSizes *counts, uint64_t count, bool is_exact)
{
    if (counts->is_known)
        put_number(out, "logicalPartitions", count);
    else
        buf_slice(out, SLICE(",\"logicalPartitions\":null"));
    put_bool(out, "logicalPartitionsExact", counts->is_known && is_exact);
}

static void put_range(Buf *out, const OrreryPage *page, size_t index, const LogicalSizes *counts,
                      Totals *totals)
{
    const PartitionRange *range = &page->container->ranges[index];
    const PartitionHandle *partition = container_handle(page->container, range);
    OrreryUse use = orrery_use(partition, page->now_s);
    PartitionUsage usage = handle_usage(partition);
    uint64_t allotted = handle_share(partition);
    const LogicalCount *logical = &counts->counts[index];
    put_open(out, NULL, '{');
    put_id(out, "id", range->id);
    put_text(out, "min", range->min);
    put_text(out, "max", range->max);
    put_open(out, "parents", '[');
    for (size_t i = 0; i < range->parent_count; i++)
        put_id(out, NULL, range->parents[i]);
    put_close(out, ']');
    put_number(out, "space", range->space); /* what /_orrery/cluster calls it */
    put_size(out, usage.items, usage.bytes);
    put_logical(out, counts, logical->count, logical->is_exact);
    put_use(out, &use, &allotted);
    put_hundredths(out, "normalizedConsumption",
                   orrery_consumption(page->snapshot, page->container, partition, page->now_s));
    put_hundredths(out, "burstCredit", handle_credit(partition, page->now_us));
    put_bool(out, "hasHistory", history_is_kept(handle_history(partition)));
    put_close(out, '}');
    orrery_use_add(&totals->use, &use);
    totals->allotted += allotted;
    totals->items += usage.items;
    totals->bytes += usage.bytes;
    totals->logical += logical->count;
    totals->is_logical_exact = totals->is_logical_exact && logical->is_exact;
}

static void put_names(Buf *out, const OrreryPage *page)
{
    put_text(out, "database", page->database->info.id);
    put_text(out, "container", page->container->info.id);
}

/* The split or merge that is under way or waits for its turn; null if there is none. */
static void put_move_of(Buf *out, const OrreryPage *page)
{
    MoveEvent *events = ARENA_NEW_ARRAY(page->request->arena, MoveEvent, MOVE_EVENTS_MAX);
    size_t count = catalog_moves(page->request->api->options.catalog, events, MOVE_EVENTS_MAX);
    const MoveEvent *found = NULL;
    for (size_t i = 0; i < count; i++) { /* the oldest unfinished one is next */
        if (events[i].container == page->container->info.number && events[i].stage < MOVE_DONE)
            found = &events[i];
    }
    put_name(out, "move");
    if (found == NULL) {
        buf_slice(out, SLICE("null"));
        return;
    }
    buf_byte(out, '{');
    put_move(out, found);
    put_close(out, '}');
}

static Status run_layout(OrreryPage *page)
{
    AUTO(logical_sizes_unref) LogicalSizes *counts = NULL;
    TRY(orrery_counts(page, &counts));
    Buf *out = &page->text;
    Totals totals = {.is_logical_exact = true};
    put_open(out, NULL, '{');
    put_names(out, page);
    put_text(out, "rid", page->container->info.rid);
    put_number(out, "time", page->now_s);
    put_bool(out, "hasStatistics", page->request->api->options.histories != NULL);
    put_throughput(out, page, page->database, page->container);
    put_move_of(out, page);
    put_open(out, "ranges", '[');
    for (size_t i = 0; i < page->container->range_count; i++)
        put_range(out, page, i, counts, &totals);
    put_close(out, ']');
    put_open(out, "totals", '{');
    put_size(out, totals.items, totals.bytes);
    put_logical(out, counts, totals.logical, totals.is_logical_exact);
    put_use(out, &totals.use, &totals.allotted);
    put_close(out, '}');
    put_close(out, '}');
    return STATUS_OK;
}

const OrreryKind ORRERY_LAYOUT = {
    .name = SLICE_INIT("layout"), .is_of_container = true, .run = run_layout};

/* ---- the list ---- */

enum { CONTAINERS_COUNT, CONTAINERS_DEFAULT = 1000, CONTAINERS_MAX = 10000 };

typedef struct Row {
    const Database *database;
    const Container *container;
    OrreryUse use;
    uint64_t allotted;
    uint64_t items;
    uint64_t bytes;
} Row;

/* The busiest first; then in the order in which they were made. */
static int compare_rows(const void *left, const void *right)
{
    const Row *a = left;
    const Row *b = right;
    if (a->use.minute.charge != b->use.minute.charge)
        return a->use.minute.charge > b->use.minute.charge ? -1 : 1;
    uint32_t first = a->container->info.number;
    uint32_t second = b->container->info.number;
    return (first > second) - (first < second);
}

static Row row_of(const OrreryPage *page, const Database *database, const Container *container)
{
    Row row = {.database = database, .container = container};
    for (size_t i = 0; i < container->range_count; i++) {
        const PartitionHandle *partition = container_handle_at(container, i);
        OrreryUse use = orrery_use(partition, page->now_s);
        PartitionUsage usage = handle_usage(partition);
        orrery_use_add(&row.use, &use);
        row.allotted += handle_share(partition);
        row.items += usage.items;
        row.bytes += usage.bytes;
    }
    return row;
}

static size_t gather_rows(const OrreryPage *page, Row *rows)
{
    size_t count = 0;
    SnapshotWalk walk = {0};
    while (snapshot_next(page->snapshot, &walk))
        rows[count++] = row_of(page, walk.database, walk.container);
    return count;
}

static void put_row(Buf *out, const OrreryPage *page, const Row *row)
{
    put_open(out, NULL, '{');
    put_text(out, "database", row->database->info.id);
    put_text(out, "container", row->container->info.id);
    put_number(out, "physicalPartitions", row->container->range_count);
    put_size(out, row->items, row->bytes);
    put_throughput(out, page, row->database, row->container);
    put_use(out, &row->use, &row->allotted);
    put_close(out, '}');
}

static Status run_containers(OrreryPage *page)
{
    Buf *out = &page->text;
    size_t count = page->snapshot->container_count;
    Row *rows = ARENA_NEW_ARRAY(page->request->arena, Row, count + 1);
    count = gather_rows(page, rows);
    qsort(rows, count, sizeof(Row), compare_rows);
    put_open(out, NULL, '{');
    put_number(out, "time", page->now_s);
    put_bool(out, "hasStatistics", page->request->api->options.histories != NULL);
    put_number(out, "count", count);
    put_open(out, "containers", '[');
    for (size_t i = 0; i < count && i < page->containers.count; i++)
        put_row(out, page, &rows[i]);
    put_close(out, ']');
    put_close(out, '}');
    return STATUS_OK;
}

static Status parse_containers(OrreryPage *page, Error *err)
{
    uint64_t count = 0;
    TRY(orrery_number(page, CONTAINERS_COUNT, 1, CONTAINERS_MAX, CONTAINERS_DEFAULT, &count, err));
    page->containers.count = (uint32_t)count;
    return STATUS_OK;
}

const OrreryKind ORRERY_CONTAINERS = {
    .name = SLICE_INIT("containers"),
    .parameters = {[CONTAINERS_COUNT] = "count"},
    .parse = parse_containers,
    .run = run_containers,
};
