/* orrery_history.c - what the partitions of a container were asked for, slot by slot. Another node
 * sends a line for each range that it serves: its id, and its row as JSON. */
#include "api/admin/range_gather_int.h"

enum { HISTORY_GRAIN, HISTORY_FROM, HISTORY_TO, HISTORY_RANGE, HISTORY_KINDS };

/* What is shown without parameters. */
enum { SECONDS_DEFAULT = 300, STEPS_DEFAULT = 288 };

/* To ask all other nodes, which have the slots in memory. */
#define HISTORY_US ((uint64_t)3000000)

static Status parse_grain(OrreryPage *page, Error *err)
{
    Slice grain = page->values[HISTORY_GRAIN];
    if (grain.len == 0 || slice_equal(grain, SLICE("second")))
        page->history.grain = HISTORY_SECOND;
    else if (slice_equal(grain, SLICE("5min")))
        page->history.grain = HISTORY_STEP;
    else
        return orrery_refuse(page, HISTORY_GRAIN, "second or 5min", err);
    return STATUS_OK;
}

static Status parse_operations(OrreryPage *page, Error *err)
{
    Slice value = page->values[HISTORY_KINDS];
    page->history.has_operations = slice_equal(value, SLICE("true"));
    if (value.len > 0 && !page->history.has_operations && !slice_equal(value, SLICE("false")))
        return orrery_refuse(page, HISTORY_KINDS, "true or false", err);
    return STATUS_OK;
}

/* Shows whole slots, from the one that the beginning lies in to the one that the end lies in.
 * Without an end the last complete slot is the last. */
static Status parse_history(OrreryPage *page, Error *err)
{
    const uint64_t time_max = (uint64_t)1 << 40;
    TRY(orrery_need_statistics(page, err));
    TRY(parse_grain(page, err));
    TRY(parse_operations(page, err));
    TRY(orrery_range(page, HISTORY_RANGE, &page->history.range, err));
    uint64_t slot_s = history_slot_s(page->history.grain);
    uint64_t slots = history_slots(page->history.grain);
    uint64_t now_s = (uint64_t)page->request->now_s;
    uint64_t span =
        slot_s * (page->history.grain == HISTORY_SECOND ? SECONDS_DEFAULT : STEPS_DEFAULT);
    uint64_t to = 0;
    TRY(orrery_number(page, HISTORY_TO, 0, time_max, now_s / slot_s * slot_s, &to, err));
    to = (to + slot_s - 1) / slot_s * slot_s;
    uint64_t from = 0;
    TRY(orrery_number(page, HISTORY_FROM, 0, time_max, to > span ? to - span : 0, &from, err));
    from = from / slot_s * slot_s;
    uint64_t span_max = slots * slot_s;
    if (from > to || to - from > span_max)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'from' and 'to' are seconds since 1970, 'from' not after 'to' and at "
                         "most %llu seconds before it; they were %llu and %llu.",
                         (unsigned long long)span_max, (unsigned long long)from,
                         (unsigned long long)to);
    page->history.from_s = from;
    page->history.to_s = to;
    page->is_long = page->request->api->options.cluster != NULL;
    return STATUS_OK;
}

typedef enum Column { COLUMN_RU, COLUMN_REQUESTS, COLUMN_THROTTLED } Column;

static void put_column(Buf *out, const HistoryCount *counts, size_t count, Column column)
{
    static const char *const names[] = {"ru", "requests", "throttled"};
    put_open(out, names[column], '[');
    for (size_t i = 0; i < count && !buf_full(out); i++) {
        if (column == COLUMN_RU)
            put_hundredths(out, NULL, counts[i].charge);
        else
            put_number(out, NULL,
                       column == COLUMN_REQUESTS ? counts[i].requests : counts[i].throttled);
    }
    put_close(out, ']');
}

/* ---- a range ---- */

typedef struct HistoryRows {
    OrreryPage *page;
    HistoryCount *counts; /* for one range at a time */
    Slice *rows;          /* in the order of the ranges; empty if missing */
    size_t bytes_left;    /* of all rows */
    uint64_t wall_us;     /* one moment by two clocks */
    uint64_t monotonic_us;
    RangeGather gather;
} HistoryRows;

/* The wall clock's time by the monotonic one, in which shares are remembered. */
static uint64_t monotonic_of(const HistoryRows *list, uint64_t time_s)
{
    uint64_t ago_us = list->wall_us - time_s * 1000000;
    if (list->wall_us < time_s * 1000000)
        return list->monotonic_us;
    return ago_us < list->monotonic_us ? list->monotonic_us - ago_us : 0;
}

static void put_allotted(const HistoryRows *list, const PartitionHandle *partition, Buf *out)
{
    const OrreryPage *page = list->page;
    uint64_t slot_s = history_slot_s(page->history.grain);
    put_open(out, "allotted", '[');
    for (uint64_t s = page->history.from_s; s < page->history.to_s && !buf_full(out); s += slot_s)
        put_hundredths(
            out, NULL,
            handle_share_between(partition, monotonic_of(list, s), monotonic_of(list, s + slot_s)));
    put_close(out, ']');
}

/* Each kind of request of which there was one. */
static void put_operations(const HistoryRows *list, const History *history, Buf *out)
{
    const OrreryPage *page = list->page;
    HistoryGrain grain = page->history.grain;
    put_open(out, "operations", '[');
    for (unsigned i = 0; i < HISTORY_OPERATIONS; i++) {
        bool is_used = false;
        size_t count = 0;
        for (uint64_t s = page->history.from_s; s < page->history.to_s;
             s += history_slot_s(grain)) {
            list->counts[count] = history_operation_at(history, (HistoryOperation)i, grain, s);
            is_used = is_used || list->counts[count].requests > 0;
            count++;
        }
        if (!is_used)
            continue;
        put_open(out, NULL, '{');
        put_text(out, "kind", history_operation_text((HistoryOperation)i));
        put_column(out, list->counts, count, COLUMN_RU);
        put_column(out, list->counts, count, COLUMN_REQUESTS);
        put_column(out, list->counts, count, COLUMN_THROTTLED);
        put_close(out, '}');
    }
    put_close(out, ']');
}

static void print_range(const HistoryRows *list, const GatherRange *range, Buf *out)
{
    const OrreryPage *page = list->page;
    HistoryGrain grain = page->history.grain;
    const PartitionHandle *partition = container_handle(range->container, range->range);
    const History *history = handle_history(partition);
    size_t count = 0;
    for (uint64_t s = page->history.from_s; s < page->history.to_s; s += history_slot_s(grain))
        list->counts[count++] = history_at(history, grain, s);
    buf_format(out, "{\"id\":\"%u\"", range->range->id);
    put_bool(out, "isKept", history_is_kept(history));
    put_column(out, list->counts, count, COLUMN_RU);
    put_column(out, list->counts, count, COLUMN_REQUESTS);
    put_column(out, list->counts, count, COLUMN_THROTTLED);
    put_allotted(list, partition, out);
    if (page->history.has_operations)
        put_operations(list, history, out);
    put_close(out, '}');
}

/* What there is no room for makes the answer too large. */
static void keep_row(HistoryRows *list, const GatherRange *range, Slice row)
{
    size_t index = (size_t)(range->range - range->container->ranges);
    list->bytes_left -= row.len < list->bytes_left ? row.len : list->bytes_left;
    if (list->bytes_left > 0)
        list->rows[index] = arena_copy(list->page->request->arena, row);
}

static Status read_here(void *ctx, const GatherRange *range, Error *err UNUSED)
{
    HistoryRows *list = ctx;
    AUTO(buf_done) Buf row;
    buf_init(&row, ORRERY_JSON_BYTES_MAX);
    if (list->bytes_left > 0)
        print_range(list, range, &row);
    keep_row(list, range, buf_view(&row));
    return STATUS_OK;
}

/* ---- between nodes ---- */

#define PART "history "

static Status print_line(void *ctx, const GatherRange *range, Error *err UNUSED)
{
    const HistoryRows *list = ctx;
    Buf *out = &list->page->text;
    buf_format(out, "%u ", range->range->id);
    print_range(list, range, out);
    buf_byte(out, '\n');
    return STATUS_OK;
}

static Status take_lines(RangeGather *gather, Slice text, Arena *arena, Error *err)
{
    HistoryRows *list = gather->ctx;
    while (text.len > 0) {
        Slice row = slice_cut(&text, '\n');
        uint64_t id = 0;
        Json parsed;
        if (!slice_to_u64(slice_cut(&row, ' '), &id))
            return range_gather_refuse(err);
        TRY(json_parse(arena, row, &parsed, err));
        const GatherRange *range =
            range_gather_claim(gather, list->page->container->info.number, id);
        if (range != NULL)
            keep_row(list, range, row);
    }
    return STATUS_OK;
}

/* The slots are those that the asking node shows, whatever time it is here. */
static bool read_part(OrreryPage *page)
{
    Slice part = page->part;
    uint64_t from = 0;
    uint64_t to = 0;
    uint64_t slot_s = history_slot_s(page->history.grain);
    if (!slice_starts_with(part, SLICE(PART)))
        return false;
    part = slice_from(part, strlen(PART));
    if (!slice_to_u64(slice_cut(&part, ' '), &from) || !slice_to_u64(part, &to) || from > to ||
        to - from > history_slots(page->history.grain) * slot_s)
        return false;
    page->history.from_s = from;
    page->history.to_s = to;
    return true;
}

/* The numbers of a range, and the ranges that are asked for. */
static void prepare(HistoryRows *list)
{
    OrreryPage *page = list->page;
    const Clock *clock = page->request->api->options.clock;
    list->wall_us = clock_wall_us(clock);
    list->monotonic_us = clock_monotonic_us(clock);
    size_t slots = history_slots(page->history.grain);
    list->counts = ARENA_NEW_ARRAY(page->request->arena, HistoryCount, slots);
    range_gather_init(&list->gather, page);
    if (page->history.range.is_given)
        range_gather_keep(&list->gather, page->history.range.id);
}

static Status run_part(OrreryPage *page)
{
    if (!read_part(page))
        return error_set(&page->error, STATUS_BAD_REQUEST, SUB_NONE, "There is no part '%.*s'.",
                         SLICE_CUT(page->part, 60));
    HistoryRows list = {.page = page, .gather = {.ctx = &list, .read_here = print_line}};
    prepare(&list);
    return range_gather_here(&list.gather, &page->error);
}

/* ---- the answer ---- */

static Status gather_rows(HistoryRows *list, OrreryPage *page)
{
    Arena *arena = page->request->arena;
    list->page = page;
    list->rows = ARENA_NEW_ARRAY(arena, Slice, page->container->range_count);
    list->bytes_left = ORRERY_JSON_BYTES_MAX;
    list->gather = (RangeGather){
        .part = arena_format(arena, PART "%llu %llu", (unsigned long long)page->history.from_s,
                             (unsigned long long)page->history.to_s),
        .time_us = HISTORY_US,
        .answer_bytes_max = ORRERY_JSON_BYTES_MAX,
        .ctx = list,
        .read_here = read_here,
        .take = take_lines,
    };
    prepare(list);
    return range_gather_run(&list->gather, &page->error);
}

static Status run_history(OrreryPage *page)
{
    Buf *out = &page->text;
    HistoryRows list = {0};
    TRY(gather_rows(&list, page));
    if (list.bytes_left == 0)
        return error_set(&page->error, STATUS_TOO_LARGE, SUB_RESPONSE_TOO_LARGE,
                         "The answer has more than %zu bytes; ask for less of it.",
                         page->text.bytes_max);
    put_open(out, NULL, '{');
    put_text(out, "database", page->database->info.id);
    put_text(out, "container", page->container->info.id);
    put_missing(out, &list.gather, page->container);
    put_text(out, "grain", page->history.grain == HISTORY_SECOND ? SLICE("second") : SLICE("5min"));
    put_number(out, "step", history_slot_s(page->history.grain));
    put_number(out, "from", page->history.from_s);
    put_number(out, "to", page->history.to_s);
    put_open(out, "ranges", '[');
    for (size_t i = 0; i < page->container->range_count && !buf_full(out); i++) {
        if (list.rows[i].len > 0)
            put_json(out, NULL, list.rows[i]);
    }
    put_close(out, ']');
    put_close(out, '}');
    return STATUS_OK;
}

const OrreryKind ORRERY_HISTORY = {
    .name = SLICE_INIT("history"),
    .is_of_container = true,
    .parameters = {[HISTORY_GRAIN] = "grain",
                   [HISTORY_FROM] = "from",
                   [HISTORY_TO] = "to",
                   [HISTORY_RANGE] = "range",
                   [HISTORY_KINDS] = "operations"},
    .parse = parse_history,
    .run = run_history,
    .run_part = run_part,
};
