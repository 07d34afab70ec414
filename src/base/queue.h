/* queue.h - messages from any thread to one.
 *
 * The sender links a node and never waits; the receiver takes everything that has arrived in one
 * step, oldest first. queue_push says whether the queue was empty, which is exactly when the
 * receiver may need to be woken: a burst of messages costs one wake-up.
 *
 * Ownership  The queue owns nothing: a QueueNode is a member of the caller's message. After the
 *            push the sender does not touch the message.
 * Threads    Any thread pushes; one thread takes. Lock-free.
 */
#pragma once

#include "base/defs.h"

#include <stdatomic.h>

typedef struct QueueNode QueueNode;
struct QueueNode {
    QueueNode *next;
};

typedef struct Queue {
    _Atomic(QueueNode *) newest; /* a stack; queue_take turns it round */
} Queue;

static inline void queue_init(Queue *queue)
{
    atomic_init(&queue->newest, NULL);
}

/* True if the queue was empty before: once per batch that queue_take returns (I5). */
static inline bool queue_push(Queue *queue, QueueNode *node)
{
    QueueNode *head = atomic_load_explicit(&queue->newest, memory_order_relaxed);
    do {
        node->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&queue->newest, &head, node,
                                                    memory_order_seq_cst, memory_order_relaxed));
    return head == NULL;
}

/* Everything pushed so far, linked oldest first; NULL if there is nothing. */
static inline QueueNode *queue_take(Queue *queue)
{
    QueueNode *node = atomic_exchange_explicit(&queue->newest, NULL, memory_order_acquire);
    QueueNode *oldest = NULL;
    while (node != NULL) {
        QueueNode *next = node->next;
        node->next = oldest;
        oldest = node;
        node = next;
    }
    return oldest;
}
