/* charge.h - what work costs, in request units.
 *
 * Charges are functions of the work done and of nothing else: the same request on the same data
 * always costs the same. What one kind of work costs is a row of charge.def, which follows the
 * figures that the service's documentation publishes; a calibration file can replace any of them.
 *
 * A Charge counts hundredths of a request unit, so that sums are exact. The model itself counts
 * millionths, and every charge is rounded once.
 *
 * Threads    A model is immutable once it is made; any thread.
 */
#pragma once

#include "base/defs.h"
#include "base/error.h"
#include "base/slice.h"

typedef uint64_t Charge;

#define CHARGE_SIZES_MAX      64                  /* rows of a size table */
#define CHARGE_UNITS_MAX      ((uint64_t)1000000) /* of one row */
#define CHARGE_FILE_BYTES_MAX ((size_t)64 << 10)  /* of a calibration file */

/* What an item of this size costs. */
typedef struct ChargeSize {
    uint64_t bytes;
    uint64_t micro; /* millionths of a request unit, as all fields of a model */
} ChargeSize;

typedef struct ChargeSizes {
    ChargeSize rows[CHARGE_SIZES_MAX]; /* by size; a larger item never costs less (I5) */
    size_t count;                      /* at least one */
} ChargeSizes;

typedef struct ChargeModel {
    ChargeSizes read;
    ChargeSizes write;
#define CHARGE_CONSTANT(field, name, units, per, why) uint64_t field;
#include "throughput/charge.def"
} ChargeModel;

/* The published figures. */
const ChargeModel *charge_model_default(void);

/* The published figures, except those that 'text' replaces in lines like
 *
 *     index-term = 0.15      # what charge.def calls it
 *     read 100KB = 10        # a row of a size table, new or not; B, KB or MB
 *
 * STATUS_BAD_REQUEST with the line's number if a name or a number is wrong, a name is given twice,
 * or a larger item would cost less. */
MUST_USE Status charge_model_parse(Slice text, ChargeModel *out, Error *err);

Charge charge_read(const ChargeModel *model, size_t bytes); /* a point read of an item */
Charge charge_create(const ChargeModel *model, size_t bytes, uint32_t terms);
Charge charge_delete(const ChargeModel *model, size_t bytes, uint32_t terms);
Charge charge_replace(const ChargeModel *model, size_t bytes_before, size_t bytes_after,
                      uint32_t terms);
Charge charge_patch(const ChargeModel *model, size_t bytes_before, size_t bytes_after,
                    uint32_t terms, size_t operations);
Charge charge_failed(const ChargeModel *model); /* a request that is refused or finds nothing */
Charge charge_metadata_read(const ChargeModel *model);
Charge charge_metadata_write(const ChargeModel *model);
Charge charge_plan(const ChargeModel *model, size_t bytes); /* of a query, and its text's size */
Charge charge_metadata_query(const ChargeModel *model);
Charge charge_script(const ChargeModel *model); /* one run, besides its operations */

/* What one partition has done for a page of a list: 'reads' are the point reads of its items. */
Charge charge_feed(const ChargeModel *model, Charge reads);

/* What one partition has done for a page of a query. */
typedef struct QueryWork {
    uint64_t index_keys;
    uint64_t items;
    uint64_t item_bytes;
    uint64_t results;
    uint64_t result_bytes;
    uint64_t user_calls; /* of users' functions */
} QueryWork;
Charge charge_query(const ChargeModel *model, const QueryWork *work);

/* What a read that costs 'charge' otherwise costs at Strong or BoundedStaleness. */
Charge charge_strong(const ChargeModel *model, Charge charge);

/* "5.71", "1"; at most CHARGE_TEXT_MAX characters, not terminated. */
#define CHARGE_TEXT_MAX 24
size_t charge_print(Charge charge, char out[CHARGE_TEXT_MAX]);
