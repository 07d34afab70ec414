/* mailbox.h - a queue whose reader may sleep: how a thread that owns something gets its work.
 *
 * Threads    Any thread posts; one thread takes. The reader polls a few times (THREAD_POLLS_MAX),
 * then it sleeps.
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

/* The reader, or the thread that joined it, may end the mailbox as soon as the last message was
 * taken, even if mailbox_post has not returned yet. */
void mailbox_done(Mailbox *mailbox);

void mailbox_post(Mailbox *mailbox, QueueNode *message);

/* Waits until there is a message, and returns all that have arrived, linked oldest first. */
QueueNode *mailbox_wait(Mailbox *mailbox);

/* The same, but returns NULL if nothing has arrived for 'ms_max'. */
QueueNode *mailbox_wait_for(Mailbox *mailbox, uint32_t ms_max);
