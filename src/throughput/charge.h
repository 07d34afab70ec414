/* charge.h - what work costs, in request units.
 *
 * Charges are functions of the work done and of nothing else: the same request on the same data
 * always costs the same. The model follows the figures that the service's documentation publishes,
 * by size of the item's text; between them it goes in straight lines.
 *
 * A Charge counts hundredths of a request unit, so that sums are exact.
 */
#pragma once

#include "base/defs.h"
#include "base/slice.h"

typedef uint64_t Charge;

Charge charge_read(size_t bytes); /* a point read of an item of this size */
Charge charge_miss(void);         /* a point read that finds nothing */
Charge charge_create(size_t bytes, uint32_t terms);
Charge charge_delete(size_t bytes, uint32_t terms);
Charge charge_replace(size_t bytes_before, size_t bytes_after, uint32_t terms);
Charge charge_patch(size_t bytes_before, size_t bytes_after, uint32_t terms, size_t operations);
Charge charge_feed(size_t bytes, size_t items); /* a page of a feed */
Charge charge_metadata_read(void);
Charge charge_metadata_write(void);
Charge charge_metadata_query(void);

/* What a query did: partitions visited, index keys and items read, results given. */
typedef struct QueryWork {
    uint64_t partitions;
    uint64_t index_keys;
    uint64_t items;
    uint64_t item_bytes;
    uint64_t result_bytes;
} QueryWork;
Charge charge_query(const QueryWork *work);

/* "5.71", "1"; at most CHARGE_TEXT_MAX characters, not terminated. */
#define CHARGE_TEXT_MAX 24
size_t charge_print(Charge charge, char out[CHARGE_TEXT_MAX]);
