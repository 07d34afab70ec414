/* orrery_top.c - the logical partitions of a container that stand out: by request units, by
 * throttled requests, by size.
 *
 * The first two come from sketches (throughput/top_keys.h), so each row has a lower and an upper
 * bound. The totals are exact: they come from the histories of the partitions.
 *
 * Sketches are in the memory of the node that served the requests. Of all ranges the node that is
 * asked tells what itself has; if one range is asked for, it asks the owner, which sends
 *
 *     range total isExact [rows]
 *
 * Of a range that a split or a merge has retired, this node still has the keys, but no total.
 */
#include "api/admin/range_gather_int.h"

#include "api/core/usage_int.h"
#include "base/encoding.h"

enum { TOP_BY, TOP_COUNT, TOP_MINUTES, TOP_FROM, TOP_TO, TOP_RANGE };
enum { COUNT_DEFAULT = 20, MINUTES_MAX = TOP_WINDOWS - 1 };

/* To ask the owner of a range, which has the keys in memory. */
#define KEYS_US ((uint64_t)2000000)

typedef enum By { BY_RU, BY_THROTTLED, BY_SIZE } By;
static const Slice BY_NAMES[] = {SLICE_INIT("ru"), SLICE_INIT("throttled"), SLICE_INIT("size")};

/* The minutes that are counted: those that the given time lies in, or the last ones. */
static Status parse_minutes(OrreryPage *page, Error *err)
{
    const uint64_t time_max = (uint64_t)1 << 40;
    uint64_t now_s = (uint64_t)page->request->now_s;
    uint64_t minutes = 0;
    TRY(orrery_number(page, TOP_MINUTES, 1, MINUTES_MAX, MINUTES_MAX, &minutes, err));
    uint64_t from = (now_s / TOP_WINDOW_S - minutes) * TOP_WINDOW_S;
    uint64_t to = now_s + 1;
    TRY(orrery_number(page, TOP_TO, 1, time_max, to, &to, err));
    TRY(orrery_number(page, TOP_FROM, 0, time_max, from < to ? from : to - 1, &from, err));
    if (from >= to)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'from' and 'to' are seconds since 1970, 'from' before 'to'; they were "
                         "%llu and %llu.",
                         (unsigned long long)from, (unsigned long long)to);
    from = from / TOP_WINDOW_S * TOP_WINDOW_S;
    to = (to + TOP_WINDOW_S - 1) / TOP_WINDOW_S * TOP_WINDOW_S;
    uint64_t span_max = (uint64_t)TOP_WINDOWS * TOP_WINDOW_S;
    page->top.from_s = to - from > span_max ? to - span_max : from;
    page->top.to_s = to;
    return STATUS_OK;
}

static bool has_time(const OrreryPage *page)
{
    return page->values[TOP_FROM].len + page->values[TOP_TO].len > 0;
}

static Status parse_top(OrreryPage *page, Error *err)
{
    size_t by = page->values[TOP_BY].len == 0 ? BY_RU : ARRAY_COUNT(BY_NAMES);
    for (size_t i = 0; i < ARRAY_COUNT(BY_NAMES); i++) {
        if (slice_equal(page->values[TOP_BY], BY_NAMES[i]))
            by = i;
    }
    if (by == ARRAY_COUNT(BY_NAMES))
        return orrery_refuse(page, TOP_BY, "ru, throttled or size", err);
    uint64_t count = 0;
    TRY(orrery_number(page, TOP_COUNT, 1, ORRERY_TOP_COUNT_MAX, COUNT_DEFAULT, &count, err));
    TRY(orrery_range(page, TOP_RANGE, &page->top.range, err));
    TRY(parse_minutes(page, err));
    bool has_minutes = page->values[TOP_MINUTES].len > 0;
    if (by == BY_SIZE && (has_minutes || has_time(page) || page->top.range.is_given))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Sizes are as of now and of all ranges: 'minutes', 'from', 'to' and "
                         "'range' go with by=ru and by=throttled.");
    if (has_minutes && has_time(page))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'minutes' are the last ones: it does not go with 'from' and 'to'.");
    if (by != BY_SIZE)
        TRY(orrery_need_statistics(page, err));
    page->is_long =
        by == BY_SIZE || (page->top.range.is_given && page->request->api->options.cluster != NULL);
    page->top.by = (int)by;
    page->top.count = (uint32_t)count;
    return STATUS_OK;
}

static void put_key(Buf *out, Slice key, bool is_cut, uint32_t range, Slice epk)
{
    char hex[2 * EPK_ITEM_BYTES_MAX];
    hex_encode(epk.ptr, epk.len, hex);
    put_open(out, NULL, '{');
    put_text(out, "key", key);
    put_bool(out, "isCut", is_cut);
    put_id(out, "range", range);
    put_text(out, "epk", slice_make(hex, 2 * epk.len));
}

static void put_share(Buf *out, uint64_t part, uint64_t whole)
{
    double share = whole == 0 ? 0 : (double)part / (double)whole;
    put_name(out, "share");
    buf_format(out, "%.4f", share < 1 ? share : 1);
    put_close(out, '}');
}

static void put_head(Buf *out, const OrreryPage *page)
{
    put_open(out, NULL, '{');
    put_text(out, "database", page->database->info.id);
    put_text(out, "container", page->container->info.id);
    put_text(out, "by", BY_NAMES[page->top.by]);
    put_number(out, "time", page->now_s);
}

/* ---- by use ---- */

/* The keys, and what their shares are of. */
typedef struct Keys {
    uint64_t total;
    bool is_exact; /* the total is that of the ranges; otherwise the sum of the rows */
    Slice rows;    /* as JSON */
} Keys;

static uint64_t total_of(const OrreryPage *page, const PartitionRange *range)
{
    const History *history = handle_history(container_handle(page->container, range));
    HistorySpan span = history_span(history, page->top.from_s, page->top.to_s);
    return page->top.by == BY_RU ? span.sum.charge : span.sum.throttled;
}

/* The sum over the ranges that are asked for, as far as they still exist. */
static void find_total(const OrreryPage *page, Keys *keys)
{
    const Container *container = page->container;
    for (size_t i = 0; i < container->range_count; i++) {
        if (page->top.range.is_given && page->top.range.id != container->ranges[i].id)
            continue;
        keys->is_exact = true;
        keys->total += total_of(page, &container->ranges[i]);
    }
}

static void put_amount(Buf *out, const char *name, bool is_charge, uint64_t amount)
{
    if (is_charge)
        put_hundredths(out, name, amount);
    else
        put_number(out, name, amount);
}

static void put_rows(const OrreryPage *page, const TopRow *rows, size_t count, uint64_t total,
                     Buf *out)
{
    bool is_charge = page->top.by == BY_RU;
    buf_byte(out, '[');
    for (size_t i = 0; i < count; i++) {
        put_key(out, rows[i].text, rows[i].is_cut, rows[i].range, rows[i].epk);
        put_amount(out, "amount", is_charge, rows[i].at_least);
        put_amount(out, "amountMax", is_charge, rows[i].at_most);
        put_share(out, rows[i].at_least, total);
    }
    buf_byte(out, ']');
}

/* What this node knows of them. */
static Keys read_keys(const OrreryPage *page)
{
    Arena *arena = page->request->arena;
    const Top *tops[USAGE_LOOPS_MAX];
    size_t top_count = usage_tops(page->request->api, tops);
    uint64_t last = page->top.to_s - TOP_WINDOW_S;
    TopQuery query = {
        .kind = page->top.by == BY_RU ? TOP_CHARGE : TOP_THROTTLED,
        .container = page->container->info.number,
        .has_range = page->top.range.is_given,
        .range = page->top.range.id,
        .now_s = last,
        .windows = (uint32_t)((last - page->top.from_s) / TOP_WINDOW_S),
        .rows_max = page->top.count,
    };
    TopRow *rows = NULL;
    size_t count = top_keys_read(tops, top_count, &query, arena, &rows);
    Keys keys = {0};
    find_total(page, &keys);
    for (size_t i = 0; i < count && !keys.is_exact; i++)
        keys.total += rows[i].at_least;
    AUTO(buf_done) Buf text;
    buf_init(&text, ORRERY_JSON_BYTES_MAX);
    put_rows(page, rows, count, keys.total, &text);
    keys.rows = arena_copy(arena, buf_view(&text));
    return keys;
}

/* ---- of a range that another node serves ---- */

typedef struct RangeKeys {
    OrreryPage *page;
    Keys keys;
    RangeGather gather;
} RangeKeys;

static Status read_here(void *ctx, const GatherRange *range UNUSED, Error *err UNUSED)
{
    RangeKeys *asked = ctx;
    asked->keys = read_keys(asked->page);
    return STATUS_OK;
}

static Status print_line(void *ctx, const GatherRange *range, Error *err UNUSED)
{
    OrreryPage *page = ((RangeKeys *)ctx)->page;
    Keys keys = read_keys(page);
    buf_format(&page->text, "%u %llu %d ", range->range->id, (unsigned long long)keys.total,
               keys.is_exact);
    buf_slice(&page->text, keys.rows);
    return STATUS_OK;
}

static Status take_line(RangeGather *gather, Slice text, Arena *arena, Error *err)
{
    RangeKeys *asked = gather->ctx;
    uint64_t n[3];
    for (size_t i = 0; i < ARRAY_COUNT(n); i++) {
        if (!slice_to_u64(slice_cut(&text, ' '), &n[i]) || n[i] > ORRERY_NUMBER_MAX)
            return range_gather_refuse(err);
    }
    Json rows;
    TRY(json_parse(arena, text, &rows, err));
    if (!json_is(rows, JSON_ARRAY))
        return range_gather_refuse(err);
    if (range_gather_claim(gather, asked->page->container->info.number, n[0]) != NULL)
        asked->keys = (Keys){n[1], n[2] != 0, arena_copy(asked->page->request->arena, text)};
    return STATUS_OK;
}

static Status run_part(OrreryPage *page)
{
    if (!page->top.range.is_given || page->top.by == BY_SIZE)
        return error_set(&page->error, STATUS_BAD_REQUEST, SUB_NONE,
                         "There are parts of single ranges by use only.");
    RangeKeys asked = {.page = page, .gather = {.ctx = &asked, .read_here = print_line}};
    range_gather_init(&asked.gather, page);
    range_gather_keep(&asked.gather, page->top.range.id);
    return range_gather_here(&asked.gather, &page->error);
}

/* ---- the answer ---- */

static void put_keys(OrreryPage *page, const Keys *keys)
{
    Buf *out = &page->text;
    put_number(out, "from", page->top.from_s);
    put_number(out, "to", page->top.to_s);
    put_amount(out, "total", page->top.by == BY_RU, keys->total);
    put_json(out, "rows", keys->rows);
    put_close(out, '}');
}

static Status run_by_use(OrreryPage *page)
{
    if (!page->top.range.is_given) {
        Keys keys = read_keys(page);
        put_head(&page->text, page);
        put_node(&page->text, page);
        put_keys(page, &keys);
        return STATUS_OK;
    }
    RangeKeys asked = {.page = page};
    asked.gather = (RangeGather){
        .part = SLICE("keys"),
        .time_us = KEYS_US,
        .answer_bytes_max = ORRERY_JSON_BYTES_MAX,
        .ctx = &asked,
        .read_here = read_here,
        .take = take_line,
    };
    range_gather_init(&asked.gather, page);
    range_gather_keep(&asked.gather, page->top.range.id);
    if (asked.gather.count == 0) /* there is no such range any more */
        asked.keys = read_keys(page);
    TRY(range_gather_run(&asked.gather, &page->error));
    if (asked.keys.rows.len == 0)
        asked.keys.rows = SLICE("[]");
    put_head(&page->text, page);
    put_missing(&page->text, &asked.gather, page->container);
    put_keys(page, &asked.keys);
    return STATUS_OK;
}

/* ---- by size ---- */

static Status run_by_size(OrreryPage *page)
{
    AUTO(logical_sizes_unref) LogicalSizes *facts = NULL;
    TRY(orrery_largest(page, &facts));
    Buf *out = &page->text;
    uint64_t total = 0;
    for (size_t i = 0; i < page->container->range_count; i++)
        total += handle_usage(container_handle_at(page->container, i)).bytes;
    put_head(out, page);
    put_node(out, page);
    put_number(out, "total", total);
    put_bool(out, "isComplete", facts->is_complete);
    put_open(out, "rows", '[');
    for (size_t i = 0; i < facts->largest_count && i < page->top.count; i++) {
        const LogicalLarge *large = &facts->largest[i];
        put_key(out, large->key, large->is_cut, large->range, large->epk);
        put_number(out, "items", large->items);
        put_number(out, "amount", large->bytes);
        put_share(out, large->bytes, total);
    }
    put_close(out, ']');
    put_close(out, '}');
    return STATUS_OK;
}

static Status run_top(OrreryPage *page)
{
    return page->top.by == BY_SIZE ? run_by_size(page) : run_by_use(page);
}

const OrreryKind ORRERY_TOP = {
    .name = SLICE_INIT("top"),
    .is_of_container = true,
    .parameters = {[TOP_BY] = "by",
                   [TOP_COUNT] = "count",
                   [TOP_MINUTES] = "minutes",
                   [TOP_FROM] = "from",
                   [TOP_TO] = "to",
                   [TOP_RANGE] = "range"},
    .parse = parse_top,
    .run = run_top,
    .run_part = run_part,
};
