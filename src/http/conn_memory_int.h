/* conn_memory_int.h - the memory that all connections together may hold.
 *
 * What clients can make the server keep is counted here: connections, heads and bodies on their
 * way in, requests under way, answers that are not read. A loop counts what its connections hold
 * with plain arithmetic. It reserves memory from the server's total in pieces of some hundred
 * kilobytes, and only that is an atomic operation: many small requests share one.
 *
 * Bulk (large bodies, answers that are not read) may take three quarters. The rest is for small
 * requests, which are served even while bulk fills its part.
 *
 * Threads    A ConnMemoryShare belongs to its loop, a ConnMemory to all of them.
 */
#pragma once

#include "base/defs.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef enum ConnMemoryUse { CONN_MEMORY_SMALL, CONN_MEMORY_BULK } ConnMemoryUse;

typedef struct ConnMemory {
    uint64_t bytes_max;
    uint64_t piece; /* what a share reserves at least */
    _Atomic uint64_t reserved;
} ConnMemory;

typedef struct ConnMemoryShare {
    ConnMemory *all;
    uint64_t held;     /* by the connections of the loop */
    uint64_t reserved; /* of 'all'; not less than 'held' */
} ConnMemoryShare;

void conn_memory_init(ConnMemory *memory, uint64_t bytes_max, uint32_t share_count);

/* False if there is no room; nothing is taken then. */
bool conn_memory_take(ConnMemoryShare *share, uint64_t bytes, ConnMemoryUse use);

/* For memory that is in use already. */
void conn_memory_force(ConnMemoryShare *share, uint64_t bytes);
void conn_memory_give(ConnMemoryShare *share, uint64_t bytes);

/* Whether more is reserved than this use may take. */
bool conn_memory_is_over(const ConnMemoryShare *share, ConnMemoryUse use);
