/* orrery_containers.c - the list of all containers with their totals.
 *
 * The numbers are sums over partitions, wherever these are. Another node sends a line for each
 * range that it serves: the container's number, the range's id, and its RangeTotals.
 */
#include "api/admin/range_totals_int.h"

#include <stdlib.h>

enum { CONTAINERS_COUNT, CONTAINERS_DEFAULT = 1000, CONTAINERS_MAX = 10000 };

/* To ask all other nodes, which have the numbers in memory. */
#define CONTAINERS_US ((uint64_t)3000000)

typedef struct Row {
    const Database *database;
    const Container *container;
    RangeTotals totals;
} Row;

typedef struct ContainerRows {
    OrreryPage *page;
    Row *rows;
    size_t count;
    RangeGather gather;
} ContainerRows;

/* The busiest first; then in the order in which they were made. */
static int compare_rows(const void *left, const void *right)
{
    const Row *a = left;
    const Row *b = right;
    if (a->totals.use.minute.charge != b->totals.use.minute.charge)
        return a->totals.use.minute.charge > b->totals.use.minute.charge ? -1 : 1;
    uint32_t first = a->container->info.number;
    uint32_t second = b->container->info.number;
    return (first > second) - (first < second);
}

static Status read_here(void *ctx, const GatherRange *range, Error *err UNUSED)
{
    ContainerRows *list = ctx;
    RangeTotals totals = range_totals_of(list->page, range);
    range_totals_add(&list->rows[range->row].totals, &totals);
    return STATUS_OK;
}

/* ---- between nodes ---- */

static Status print_line(void *ctx, const GatherRange *range, Error *err UNUSED)
{
    ContainerRows *list = ctx;
    Buf *out = &list->page->text;
    RangeTotals totals = range_totals_of(list->page, range);
    buf_format(out, "%u %u", range->container->info.number, range->range->id);
    range_totals_print(out, &totals);
    buf_byte(out, '\n');
    return STATUS_OK;
}

static Status take_lines(RangeGather *gather, Slice text, Arena *arena UNUSED, Error *err)
{
    ContainerRows *list = gather->ctx;
    while (text.len > 0) {
        Slice line = slice_cut(&text, '\n');
        uint64_t ids[2];
        RangeTotals totals;
        if (!range_numbers_read(&line, ids, ARRAY_COUNT(ids)) || !range_totals_read(&line, &totals))
            return range_gather_refuse(err);
        const GatherRange *range = range_gather_claim(gather, ids[0], ids[1]);
        if (range != NULL)
            range_totals_add(&list->rows[range->row].totals, &totals);
    }
    return STATUS_OK;
}

static Status run_part(OrreryPage *page)
{
    ContainerRows list = {.page = page, .gather = {.ctx = &list, .read_here = print_line}};
    range_gather_init(&list.gather, page);
    return range_gather_here(&list.gather, &page->error);
}

/* ---- the answer ---- */

static void list_containers(ContainerRows *list)
{
    const Snapshot *snapshot = list->page->snapshot;
    list->rows = ARENA_NEW_ARRAY(list->page->request->arena, Row, snapshot->container_count + 1);
    SnapshotWalk walk = {0};
    while (snapshot_next(snapshot, &walk))
        list->rows[list->count++] = (Row){.database = walk.database, .container = walk.container};
}

static void put_row(Buf *out, const ContainerRows *list, const Row *row)
{
    put_open(out, NULL, '{');
    put_text(out, "database", row->database->info.id);
    put_text(out, "container", row->container->info.id);
    put_number(out, "physicalPartitions", row->container->range_count);
    put_missing(out, &list->gather, row->container);
    put_size(out, &row->totals);
    put_throughput(out, list->page, row->database, row->container);
    put_use(out, &row->totals.use, &row->totals.allotted);
    put_close(out, '}');
}

static Status run_containers(OrreryPage *page)
{
    Buf *out = &page->text;
    ContainerRows list = {.page = page};
    list_containers(&list);
    list.gather = (RangeGather){
        .part = SLICE("numbers"),
        .time_us = CONTAINERS_US,
        .answer_bytes_max = ORRERY_PART_BYTES_MAX,
        .ctx = &list,
        .read_here = read_here,
        .take = take_lines,
    };
    range_gather_init(&list.gather, page);
    TRY(range_gather_run(&list.gather, &page->error));
    qsort(list.rows, list.count, sizeof(Row), compare_rows);
    put_open(out, NULL, '{');
    put_number(out, "time", page->now_s);
    put_bool(out, "hasStatistics", page->request->api->options.histories != NULL);
    put_number(out, "count", list.count);
    put_open(out, "containers", '[');
    for (size_t i = 0; i < list.count && i < page->containers.count; i++)
        put_row(out, &list, &list.rows[i]);
    put_close(out, ']');
    put_close(out, '}');
    return STATUS_OK;
}

static Status parse_containers(OrreryPage *page, Error *err)
{
    uint64_t count = 0;
    TRY(orrery_number(page, CONTAINERS_COUNT, 1, CONTAINERS_MAX, CONTAINERS_DEFAULT, &count, err));
    page->containers.count = (uint32_t)count;
    page->is_long = page->request->api->options.cluster != NULL;
    return STATUS_OK;
}

const OrreryKind ORRERY_CONTAINERS = {
    .name = SLICE_INIT("containers"),
    .parameters = {[CONTAINERS_COUNT] = "count"},
    .parse = parse_containers,
    .run = run_containers,
    .run_part = run_part,
};
