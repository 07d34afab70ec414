/* spares.h - objects that are used again instead of being freed and made anew.
 *
 * For what many threads need for a moment each, and what is dear to make. A heap's own memory of
 * what was freed is per thread; here what one thread gives another one takes.
 *
 * Ownership  What is given belongs to the spares until it is taken. Before they go away their owner
 *            takes all that is left.
 * Threads    Any. Lock-free.
 */
#pragma once

#include "base/defs.h"

#include <stdatomic.h>

enum { SPARES_MAX = 8 }; /* that are kept */

typedef struct SpareSlot {
    _Atomic(void *) object;
    char padding[CACHE_LINE_SIZE - sizeof(void *)]; /* threads have their own lines */
} SpareSlot;

/* Zeroes: there are none. */
typedef struct Spares {
    SpareSlot slots[SPARES_MAX];
} Spares;

/* NULL: there is none. */
void *spares_take(Spares *spares);

/* False: enough are kept, and the object stays the caller's. */
MUST_USE bool spares_give(Spares *spares, void *object);
