/* range_totals_int.h - what a range, or all ranges of a container, hold and use: numbers that are
 * added up, also over nodes. */
#pragma once

#include "api/admin/range_gather_int.h"

typedef struct RangeTotals {
    OrreryUse use;
    uint64_t allotted; /* hundredths of a request unit a second */
    uint64_t items;
    uint64_t bytes;
} RangeTotals;

/* Of a range that this node serves. */
RangeTotals range_totals_of(const OrreryPage *page, const GatherRange *range);
void range_totals_add(RangeTotals *sum, const RangeTotals *more);

/* The members "items" and "bytes"; put_use prints the rest. */
void put_size(Buf *out, const RangeTotals *totals);

/* For lines from node to node, numbers with blanks between them. Reads and cuts off numbers of at
 * most ORRERY_NUMBER_MAX; false if they are none. */
bool range_numbers_read(Slice *line, uint64_t *numbers, size_t count);
void range_totals_print(Buf *out, const RangeTotals *totals); /* with a blank in front */
bool range_totals_read(Slice *line, RangeTotals *totals);
