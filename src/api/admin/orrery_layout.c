/* orrery_layout.c - the physical partitions of a container. Another node sends a line for each
 * range that it serves: its id, its RangeTotals, and
 *
 *     logicalPartitions isKnown isExact consumption credit hasHistory
 *
 * The owner of the catalogue is asked for another part, the move that is under way, as JSON.
 */
#include "api/admin/range_totals_int.h"

/* To ask all other nodes; counting takes each of them a moment. */
#define LAYOUT_US ((uint64_t)3000000)

/* What the owner of a range knows of it. */
typedef struct RangeFacts {
    RangeTotals totals;
    LogicalCount logical;
    bool is_logical_known;
    bool has_history;
    uint64_t consumption; /* hundredths of a percent */
    uint64_t credit;
} RangeFacts;

typedef struct Layout {
    OrreryPage *page;
    LogicalSizes *counts; /* of ranges that are here */
    RangeFacts *facts;    /* of all, in the order of the ranges; zeros for what is missing */
    RangeGather gather;
} Layout;

static void layout_done(Layout *layout)
{
    logical_sizes_unref(layout->counts);
}
DEFINE_AUTO_VALUE(Layout, layout_done)

/* ---- a range ---- */

static size_t index_of(const GatherRange *range)
{
    return (size_t)(range->range - range->container->ranges);
}

static RangeFacts facts_of(const Layout *layout, const GatherRange *range)
{
    const OrreryPage *page = layout->page;
    const PartitionHandle *partition = container_handle(range->container, range->range);
    const LogicalCount *logical = &layout->counts->counts[index_of(range)];
    return (RangeFacts){
        .totals = range_totals_of(page, range),
        .logical = *logical,
        .is_logical_known = layout->counts->is_known && logical->count != LOGICAL_COUNT_UNKNOWN,
        .has_history = history_is_kept(handle_history(partition)),
        .consumption = orrery_consumption(page->snapshot, page->container, partition, page->now_s),
        .credit = handle_credit(partition, page->now_us),
    };
}

static Status read_here(void *ctx, const GatherRange *range, Error *err UNUSED)
{
    Layout *layout = ctx;
    layout->facts[index_of(range)] = facts_of(layout, range);
    return STATUS_OK;
}

/* ---- between nodes ---- */

static Status print_line(void *ctx, const GatherRange *range, Error *err UNUSED)
{
    const Layout *layout = ctx;
    Buf *out = &layout->page->text;
    RangeFacts facts = facts_of(layout, range);
    buf_format(out, "%u", range->range->id);
    range_totals_print(out, &facts.totals);
    buf_format(out, " %llu %d %d %llu %llu %d\n",
               (unsigned long long)(facts.is_logical_known ? facts.logical.count : 0),
               facts.is_logical_known, facts.logical.is_exact,
               (unsigned long long)facts.consumption, (unsigned long long)facts.credit,
               facts.has_history);
    return STATUS_OK;
}

static bool read_line(Slice line, uint64_t *id, RangeFacts *out)
{
    uint64_t n[6];
    if (!range_numbers_read(&line, id, 1) || !range_totals_read(&line, &out->totals) ||
        !range_numbers_read(&line, n, ARRAY_COUNT(n)))
        return false;
    out->logical = (LogicalCount){.count = n[0], .is_exact = n[2] != 0};
    out->is_logical_known = n[1] != 0;
    out->consumption = n[3];
    out->credit = n[4];
    out->has_history = n[5] != 0;
    return true;
}

static Status take_lines(RangeGather *gather, Slice text, Arena *arena UNUSED, Error *err)
{
    Layout *layout = gather->ctx;
    while (text.len > 0) {
        uint64_t id = 0;
        RangeFacts facts;
        if (!read_line(slice_cut(&text, '\n'), &id, &facts))
            return range_gather_refuse(err);
        const GatherRange *range =
            range_gather_claim(gather, layout->page->container->info.number, id);
        if (range != NULL)
            layout->facts[index_of(range)] = facts;
    }
    return STATUS_OK;
}

static const Slice MOVE = SLICE_INIT("move");

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
    if (found == NULL) {
        buf_slice(out, SLICE("null"));
        return;
    }
    buf_byte(out, '{');
    put_move(out, found);
    put_close(out, '}');
}

static Status run_part(OrreryPage *page)
{
    if (slice_equal(page->part, MOVE)) {
        put_move_of(&page->text, page);
        return STATUS_OK;
    }
    AUTO(layout_done) Layout layout = {.page = page};
    TRY(orrery_counts(page, &layout.counts));
    layout.gather = (RangeGather){.ctx = &layout, .read_here = print_line};
    range_gather_init(&layout.gather, page);
    return range_gather_here(&layout.gather, &page->error);
}

/* ---- the answer ---- */

/* Prints null if it is not known. */
static void put_logical(Buf *out, const LogicalCount *count, bool is_known)
{
    put_name(out, "logicalPartitions");
    if (is_known)
        buf_u64(out, count->count);
    else
        buf_slice(out, SLICE("null"));
    put_bool(out, "logicalPartitionsExact", is_known && count->is_exact);
}

static void put_range(Buf *out, const PartitionRange *range, const RangeFacts *facts)
{
    put_open(out, NULL, '{');
    put_id(out, "id", range->id);
    put_text(out, "min", range->min);
    put_text(out, "max", range->max);
    put_open(out, "parents", '[');
    for (size_t i = 0; i < range->parent_count; i++)
        put_id(out, NULL, range->parents[i]);
    put_close(out, ']');
    put_number(out, "space", range->space); /* what /_orrery/cluster calls it */
    put_size(out, &facts->totals);
    put_logical(out, &facts->logical, facts->is_logical_known);
    put_use(out, &facts->totals.use, &facts->totals.allotted);
    put_hundredths(out, "normalizedConsumption", facts->consumption);
    put_hundredths(out, "burstCredit", facts->credit);
    put_bool(out, "hasHistory", facts->has_history);
    put_close(out, '}');
}

static void put_names(Buf *out, const OrreryPage *page)
{
    put_text(out, "database", page->database->info.id);
    put_text(out, "container", page->container->info.id);
}

static void put_totals(Buf *out, const Layout *layout)
{
    RangeTotals totals = {0};
    LogicalCount logical = {.is_exact = true};
    bool is_known = true;
    for (size_t i = 0; i < layout->page->container->range_count; i++) {
        const RangeFacts *facts = &layout->facts[i];
        range_totals_add(&totals, &facts->totals);
        logical.count += facts->logical.count;
        logical.is_exact = logical.is_exact && facts->logical.is_exact;
        is_known = is_known && facts->is_logical_known;
    }
    put_open(out, "totals", '{');
    put_size(out, &totals);
    put_logical(out, &logical, is_known);
    put_use(out, &totals.use, &totals.allotted);
    put_close(out, '}');
}

static Status run_layout(OrreryPage *page)
{
    const Container *container = page->container;
    AUTO(layout_done) Layout layout = {.page = page};
    TRY(orrery_counts(page, &layout.counts));
    layout.facts = ARENA_NEW_ARRAY(page->request->arena, RangeFacts, container->range_count);
    layout.gather = (RangeGather){
        .part = SLICE("layout"),
        .time_us = LAYOUT_US,
        .answer_bytes_max = ORRERY_PART_BYTES_MAX,
        .ctx = &layout,
        .read_here = read_here,
        .take = take_lines,
    };
    range_gather_init(&layout.gather, page);
    TRY(range_gather_run(&layout.gather, &page->error));
    Slice move = catalog_owner_ask(page, MOVE, JSON_OBJECT); /* null is what this node has, too */
    Buf *out = &page->text;
    put_open(out, NULL, '{');
    put_names(out, page);
    put_text(out, "rid", container->info.rid);
    put_missing(out, &layout.gather, container);
    put_number(out, "time", page->now_s);
    put_bool(out, "hasStatistics", page->request->api->options.histories != NULL);
    put_throughput(out, page, page->database, container);
    put_name(out, "move");
    if (move.len > 0)
        buf_slice(out, move);
    else
        put_move_of(out, page);
    put_open(out, "ranges", '[');
    for (size_t i = 0; i < container->range_count; i++)
        put_range(out, &container->ranges[i], &layout.facts[i]);
    put_close(out, ']');
    put_totals(out, &layout);
    put_close(out, '}');
    return STATUS_OK;
}

static Status parse_layout(OrreryPage *page, Error *err UNUSED)
{
    page->is_long = page->request->api->options.cluster != NULL;
    return STATUS_OK;
}

const OrreryKind ORRERY_LAYOUT = {
    .name = SLICE_INIT("layout"),
    .is_of_container = true,
    .parse = parse_layout,
    .run = run_layout,
    .run_part = run_part,
};
