/* retry_queue.h - connections that wait until the server lets them go on, the first one first.
 *
 * Ownership  A RetryQueue owns its memory until retry_queue_done.
 * Threads    Belongs to one thread. Time is passed in.
 */
#pragma once

#include "base/defs.h"

typedef struct RetryEntry {
    uint64_t at_us;
    uint32_t index; /* of the connection */
} RetryEntry;

typedef struct RetryQueue {
    RetryEntry *entries; /* a heap: none is before the one at (its place - 1) / 2 */
    uint32_t count;
    uint32_t capacity;
} RetryQueue;

void retry_queue_init(RetryQueue *queue, uint32_t capacity);
void retry_queue_done(RetryQueue *queue);

/* There is room for it: no connection may be added twice. */
void retry_queue_add(RetryQueue *queue, uint64_t at_us, uint32_t index);

/* When the first one may go on; UINT64_MAX if none waits. */
uint64_t retry_queue_next_us(const RetryQueue *queue);

/* Takes the first one; there must be one. */
uint32_t retry_queue_take(RetryQueue *queue);
