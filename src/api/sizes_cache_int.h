/* sizes_cache_int.h - what had to be looked up about sizes of logical partitions, for a while.
 *
 * Counting logical partitions, and finding the largest, reads the store: much, where there are
 * many. Whoever looks at a container looks every second, and sizes do not change as fast as that.
 *
 * Ownership  Facts are reference counted; the cache holds one reference on each.
 * Threads    Any thread; a lock is held while a slot is looked at, never while anything is read.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "partition/sizes.h"

#include <pthread.h>

enum { SIZES_CACHE_SLOTS = 64 };
#define SIZES_CACHE_US ((uint64_t)10 * 1000000)

typedef enum SizesKind { SIZES_COUNTS, SIZES_LARGEST } SizesKind;

typedef struct SizesLarge {
    Slice key;   /* its value, as clients send it */
    bool is_cut; /* it is longer */
    Slice epk;
    uint32_t range; /* id */
    uint64_t items;
    uint64_t bytes;
} SizesLarge;

typedef struct SizesFacts {
    _Atomic uint32_t refs;
    Arena arena;
    SizesKind kind;
    uint32_t container; /* number */
    uint64_t lsn;       /* of its partition map */
    uint64_t made_us;   /* monotonic */

    LogicalCount *counts; /* of each range, in their order; not known if 'is_known' is false */
    size_t count;

    SizesLarge *largest; /* the largest first */
    size_t largest_count;
    bool is_complete; /* all of them were looked at */
    bool is_known;    /* the partitions have sizes at all */
} SizesFacts;

typedef struct SizesCache {
    pthread_mutex_t lock;
    SizesFacts *slots[SIZES_CACHE_SLOTS]; /* guarded by 'lock' */
} SizesCache;

void sizes_cache_init(SizesCache *cache);
void sizes_cache_done(SizesCache *cache);

SizesFacts *sizes_facts_new(SizesKind kind, uint32_t container, uint64_t lsn, uint64_t now_us);
void sizes_facts_unref(SizesFacts *facts); /* accepts NULL */
DEFINE_AUTO(SizesFacts *, sizes_facts_unref)

/* A reference on what is known and not too old, or NULL. */
SizesFacts *sizes_cache_get(SizesCache *cache, SizesKind kind, uint32_t container, uint64_t lsn,
                            uint64_t now_us);

/* Takes a reference of its own. */
void sizes_cache_put(SizesCache *cache, SizesFacts *facts);
