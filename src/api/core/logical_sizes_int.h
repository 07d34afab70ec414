/* logical_sizes_int.h - counts and sizes of logical partitions, kept for LOGICAL_SIZES_CACHE_US.
 *
 * Counting logical partitions and finding the largest reads much of the store if there are many.
 * Clients such as orrery top ask every second, and sizes change more slowly than that.
 *
 * Ownership  LogicalSizes are reference counted; the cache holds one reference on each.
 * Threads    Any thread; a lock is held while a slot is looked at, never while anything is read.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "partition/logical_partitions.h"

#define LOGICAL_SIZES_CACHE_US ((uint64_t)10 * 1000000)
#define LOGICAL_COUNT_UNKNOWN  UINT64_MAX

/* Counts of each range; the largest of all ranges; counts and the largest of each range. */
typedef enum LogicalSizesKind {
    LOGICAL_SIZES_COUNTS,
    LOGICAL_SIZES_LARGEST,
    LOGICAL_SIZES_STATISTICS
} LogicalSizesKind;

typedef struct LogicalLarge {
    Slice key;   /* its value, as clients send it */
    bool is_cut; /* the value is longer than this */
    Slice epk;
    uint32_t range; /* id */
    uint64_t items;
    uint64_t bytes;
} LogicalLarge;

typedef struct LogicalSizes {
    _Atomic uint32_t refs;
    Arena arena;
    LogicalSizesKind kind;
    uint32_t container; /* number */
    uint64_t lsn;       /* of its partition map */
    uint64_t made_us;   /* monotonic */

    LogicalCount *counts; /* of each range, in their order; not known if 'is_known' is false, or
                             if it is LOGICAL_COUNT_UNKNOWN, as another node serves the range */
    size_t count;

    LogicalLarge
        *largest; /* the largest first; of LOGICAL_SIZES_STATISTICS by range, the largest first */
    size_t largest_count;
    bool is_complete; /* all of them were looked at */
    bool is_known;    /* the partitions have sizes at all */
} LogicalSizes;

typedef struct LogicalSizesCache LogicalSizesCache;

LogicalSizesCache *logical_sizes_cache_open(void);
void logical_sizes_cache_close(LogicalSizesCache *cache); /* accepts NULL */

LogicalSizes *logical_sizes_new(LogicalSizesKind kind, uint32_t container, uint64_t lsn,
                                uint64_t now_us);
void logical_sizes_unref(LogicalSizes *facts); /* accepts NULL */
DEFINE_AUTO(LogicalSizes *, logical_sizes_unref)

/* A reference on what is cached and not too old, or NULL. */
LogicalSizes *logical_sizes_cache_get(LogicalSizesCache *cache, LogicalSizesKind kind,
                                      uint32_t container, uint64_t lsn, uint64_t now_us);

/* Takes a reference of its own. */
void logical_sizes_cache_put(LogicalSizesCache *cache, LogicalSizes *facts);
