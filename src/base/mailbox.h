/* mailbox.h - a queue whose reader may sleep: how a thread that owns something gets its work.
 *
 * Threads    Any thread posts; one thread takes. The reader uses no CPU while it waits.
 */
#pragma once

#include "base/queue.h"

#include <pthread.h>

typedef struct Mailbox {
    Queue queue;
    pthread_mutex_t lock; /* only for sleeping and waking */
    pthread_cond_t arrived;
} Mailbox;

void mailbox_init(Mailbox *mailbox);
void mailbox_done(Mailbox *mailbox);

void mailbox_post(Mailbox *mailbox, QueueNode *message);

/* Everything that has arrived, linked oldest first; waits until there is something. */
QueueNode *mailbox_wait(Mailbox *mailbox);
