/* mailbox.h - a queue whose reader may sleep: how a thread that owns something gets its work.
 *
 * Threads    Any thread posts; one thread takes. The reader uses no CPU while it waits, once it has
 *            looked a few times (THREAD_LOOKS).
 */
#pragma once

#include "base/queue.h"

#include <pthread.h>

typedef struct Mailbox {
    Queue queue;
    pthread_mutex_t lock; /* only for sleeping and waking */
    pthread_cond_t arrived;
    _Atomic uint32_t posting; /* threads inside mailbox_post */
} Mailbox;

void mailbox_init(Mailbox *mailbox);

/* The reader, or whoever joined it, may end the mailbox as soon as the last message was taken, even
 * if its poster has not returned yet. */
void mailbox_done(Mailbox *mailbox);

void mailbox_post(Mailbox *mailbox, QueueNode *message);

/* Everything that has arrived, linked oldest first; waits until there is something. */
QueueNode *mailbox_wait(Mailbox *mailbox);

/* The same, but NULL when nothing has arrived for 'ms_max'. */
QueueNode *mailbox_wait_for(Mailbox *mailbox, uint32_t ms_max);
