/* partition_check.h - whether everything in a partition's space agrees with everything else.
 *
 * Items, the map of their numbers, expiry notes, unique keys, purges, counters and the index must
 * agree (I4, I12, I16). The check reads all of them, in one snapshot, and reports where they do
 * not. It changes nothing.
 *
 * Threads    Any; the report's functions are called on the caller's.
 * Bounds     Memory does not grow with the partition. Items are read once, the index once; if they
 *            differ, once more each, as far as there are findings to report.
 */
#pragma once

#include "partition/partition.h"

/* Of one partition; more are counted and not reported. */
enum { CHECK_FINDINGS_MAX = 100 };

typedef struct CheckReport {
    void (*found)(void *ctx, const char *finding);    /* a sentence */
    void (*progress)(void *ctx, uint64_t items_done); /* from time to time; may be NULL */
    void *ctx;
} CheckReport;

typedef struct CheckTotals {
    uint64_t items;
    uint64_t terms; /* an item under a value of a path */
    uint64_t findings;
} CheckTotals;

/* Adds to '*totals'. Fails only if the partition cannot be read at all: whatever is damaged in it
 * is a finding. 'schema' is the container's definition. */
MUST_USE Status partition_check(Partition *partition, const PartitionSchema *schema,
                                const CheckReport *report, CheckTotals *totals, Error *err);
