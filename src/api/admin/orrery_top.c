/* orrery_top.c - the logical partitions of a container that stand out: by request units, by
 * throttled requests, by size.
 *
 * The first two come from sketches (throughput/top_keys.h), so each row has a lower and an upper
 * bound. The totals are exact: they come from the histories of the partitions.
 */
#include "api/admin/range_gather_int.h"

#include "api/core/usage_int.h"
#include "base/encoding.h"

enum { TOP_BY, TOP_COUNT, TOP_MINUTES };
enum { COUNT_DEFAULT = 20, MINUTES_MAX = TOP_WINDOWS - 1 };

typedef enum By { BY_RU, BY_THROTTLED, BY_SIZE } By;
static const Slice BY_NAMES[] = {SLICE_INIT("ru"), SLICE_INIT("throttled"), SLICE_INIT("size")};

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
    uint64_t minutes = 0;
    TRY(orrery_number(page, TOP_COUNT, 1, ORRERY_TOP_COUNT_MAX, COUNT_DEFAULT, &count, err));
    TRY(orrery_number(page, TOP_MINUTES, 1, MINUTES_MAX, MINUTES_MAX, &minutes, err));
    if (by == BY_SIZE && page->values[TOP_MINUTES].len > 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Sizes are as of now: 'minutes' goes with by=ru and by=throttled.");
    if (by != BY_SIZE)
        TRY(orrery_need_statistics(page, err));
    page->is_long = by == BY_SIZE;
    page->top.by = (int)by;
    page->top.count = (uint32_t)count;
    page->top.minutes = (uint32_t)minutes;
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
    put_node(out, page);
    put_number(out, "time", page->now_s);
}

/* ---- by use ---- */

static HistoryCount sum_since(const Container *container, uint64_t from_s, uint64_t to_s)
{
    HistoryCount sum = {0};
    for (size_t i = 0; i < container->range_count; i++) {
        HistorySpan span =
            history_span(handle_history(container_handle_at(container, i)), from_s, to_s);
        sum.charge += span.sum.charge;
        sum.throttled += span.sum.throttled;
    }
    return sum;
}

static void put_amount(Buf *out, const char *name, bool is_charge, uint64_t amount)
{
    if (is_charge)
        put_hundredths(out, name, amount);
    else
        put_number(out, name, amount);
}

static Status run_by_use(OrreryPage *page)
{
    Buf *out = &page->text;
    bool is_charge = page->top.by == BY_RU;
    const Top *tops[USAGE_LOOPS_MAX];
    size_t top_count = usage_tops(page->request->api, tops);
    TopQuery query = {
        .kind = is_charge ? TOP_CHARGE : TOP_THROTTLED,
        .container = page->container->info.number,
        .now_s = page->now_s,
        .windows = page->top.minutes,
        .rows_max = page->top.count,
    };
    TopRow *rows = NULL;
    size_t count = top_keys_read(tops, top_count, &query, page->request->arena, &rows);
    uint64_t from_s = (page->now_s / TOP_WINDOW_S - page->top.minutes) * TOP_WINDOW_S;
    HistoryCount sum = sum_since(page->container, from_s, page->now_s + 1);
    uint64_t total = is_charge ? sum.charge : sum.throttled;
    put_head(out, page);
    put_number(out, "from", from_s);
    put_amount(out, "total", is_charge, total);
    put_open(out, "rows", '[');
    for (size_t i = 0; i < count; i++) {
        put_key(out, rows[i].text, rows[i].is_cut, rows[i].range, rows[i].epk);
        put_amount(out, "amount", is_charge, rows[i].at_least);
        put_amount(out, "amountMax", is_charge, rows[i].at_most);
        put_share(out, rows[i].at_least, total);
    }
    put_close(out, ']');
    put_close(out, '}');
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
    .parameters = {[TOP_BY] = "by", [TOP_COUNT] = "count", [TOP_MINUTES] = "minutes"},
    .parse = parse_top,
    .run = run_top,
};
