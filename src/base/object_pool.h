/* object_pool.h - objects that are used again instead of being freed and made anew.
 *
 * For objects that many threads need for a moment each and that are expensive to make. A heap
 * caches freed memory per thread; here one thread can take what another has given.
 *
 * Ownership  What is given belongs to the ObjectPool until it is taken. Before its end, the owner
 * of the ObjectPool takes all that is left. Threads    Any. Lock-free.
 */
#pragma once

#include "base/defs.h"

#include <stdatomic.h>

enum { OBJECT_POOL_MAX = 8 }; /* objects that are kept */

typedef struct ObjectPoolSlot {
    _Atomic(void *) object;
    char padding[CACHE_LINE_SIZE - sizeof(void *)]; /* so that threads do not share a cache line */
} ObjectPoolSlot;

/* All zero if it holds none. */
typedef struct ObjectPool {
    ObjectPoolSlot slots[OBJECT_POOL_MAX];
} ObjectPool;

/* NULL if there is none. */
void *object_pool_take(ObjectPool *spares);

/* False if enough are kept; the object then stays the caller's. */
MUST_USE bool object_pool_give(ObjectPool *spares, void *object);
