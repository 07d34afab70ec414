/* mailbox.c - see mailbox.h. */
#include "base/mailbox.h"

#include "base/cond.h"
#include "base/thread.h"

#include <sched.h>

void mailbox_init(Mailbox *mailbox)
{
    queue_init(&mailbox->queue);
    atomic_init(&mailbox->posting, 0);
    int failed = pthread_mutex_init(&mailbox->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&mailbox->arrived, NULL);
    ASSERT(failed == 0);
}

void mailbox_done(Mailbox *mailbox)
{
    while (atomic_load_explicit(&mailbox->posting, memory_order_acquire) > 0)
        (void)sched_yield();
    (void)pthread_cond_destroy(&mailbox->arrived);
    (void)pthread_mutex_destroy(&mailbox->lock);
}

void mailbox_post(Mailbox *mailbox, QueueNode *message)
{
    /* Once it is pushed, the message may be read and cause the mailbox to be ended. The count,
     * which the push publishes with it, keeps the lock alive until we no longer need it. */
    atomic_fetch_add_explicit(&mailbox->posting, 1, memory_order_relaxed);
    if (queue_push(&mailbox->queue, message)) {
        /* Taking the lock orders this signal after a reader's look at the queue and its sleep. */
        (void)pthread_mutex_lock(&mailbox->lock);
        (void)pthread_cond_signal(&mailbox->arrived);
        (void)pthread_mutex_unlock(&mailbox->lock);
    }
    /* Otherwise the thread that made the queue non-empty wakes the reader: I5. */
    atomic_fetch_sub_explicit(&mailbox->posting, 1, memory_order_release);
}

static QueueNode *look(Mailbox *mailbox)
{
    QueueNode *messages = queue_take(&mailbox->queue);
    for (int i = 0; messages == NULL && i < THREAD_POLLS_MAX; i++) {
        (void)sched_yield();
        messages = queue_take(&mailbox->queue);
    }
    return messages;
}

QueueNode *mailbox_wait(Mailbox *mailbox)
{
    QueueNode *messages = look(mailbox);
    if (messages != NULL)
        return messages;
    (void)pthread_mutex_lock(&mailbox->lock);
    while ((messages = queue_take(&mailbox->queue)) == NULL)
        (void)pthread_cond_wait(&mailbox->arrived, &mailbox->lock);
    (void)pthread_mutex_unlock(&mailbox->lock);
    return messages;
}

QueueNode *mailbox_wait_for(Mailbox *mailbox, uint32_t ms_max)
{
    QueueNode *messages = look(mailbox);
    if (messages != NULL)
        return messages;
    uint64_t until_us = cond_after_ms(ms_max);
    (void)pthread_mutex_lock(&mailbox->lock);
    messages = queue_take(&mailbox->queue);
    bool is_waiting = true;
    while (messages == NULL && is_waiting) {
        is_waiting = cond_wait_until(&mailbox->arrived, &mailbox->lock, until_us);
        messages = queue_take(&mailbox->queue);
    }
    (void)pthread_mutex_unlock(&mailbox->lock);
    return messages;
}
