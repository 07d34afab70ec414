/* range_totals.c - see range_totals_int.h.
 *
 *     items bytes allotted second tenSeconds minute(3) total(3)
 *
 * Charges are in hundredths of a request unit; (3) is charge, requests and throttled ones.
 */
#include "api/admin/range_totals_int.h"

enum { COLUMNS = 11 };

RangeTotals range_totals_of(const OrreryPage *page, const GatherRange *range)
{
    const PartitionHandle *partition = container_handle(range->container, range->range);
    PartitionUsage usage = handle_usage(partition);
    return (RangeTotals){
        .use = orrery_use(partition, page->now_s),
        .allotted = handle_share(partition),
        .items = usage.items,
        .bytes = usage.bytes,
    };
}

void range_totals_add(RangeTotals *sum, const RangeTotals *more)
{
    orrery_use_add(&sum->use, &more->use);
    sum->allotted += more->allotted;
    sum->items += more->items;
    sum->bytes += more->bytes;
}

void put_size(Buf *out, const RangeTotals *totals)
{
    put_number(out, "items", totals->items);
    put_number(out, "bytes", totals->bytes);
}

bool range_numbers_read(Slice *line, uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!slice_to_u64(slice_cut(line, ' '), &numbers[i]) || numbers[i] > ORRERY_NUMBER_MAX)
            return false;
    }
    return true;
}

void range_totals_print(Buf *out, const RangeTotals *totals)
{
    const OrreryUse *use = &totals->use;
    const uint64_t columns[COLUMNS] = {
        totals->items,     totals->bytes,       totals->allotted,     use->second,
        use->ten_seconds,  use->minute.charge,  use->minute.requests, use->minute.throttled,
        use->total.charge, use->total.requests, use->total.throttled,
    };
    for (size_t i = 0; i < COLUMNS; i++)
        buf_format(out, " %llu", (unsigned long long)columns[i]);
}

bool range_totals_read(Slice *line, RangeTotals *totals)
{
    uint64_t n[COLUMNS];
    if (!range_numbers_read(line, n, COLUMNS))
        return false;
    *totals = (RangeTotals){
        .items = n[0],
        .bytes = n[1],
        .allotted = n[2],
        .use = {.second = n[3],
                .ten_seconds = n[4],
                .minute = {.charge = n[5], .requests = n[6], .throttled = n[7]},
                .total = {.charge = n[8], .requests = n[9], .throttled = n[10]}},
    };
    return true;
}
