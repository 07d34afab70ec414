/* mailbox.c - see mailbox.h. */
#include "base/mailbox.h"

void mailbox_init(Mailbox *mailbox)
{
    queue_init(&mailbox->queue);
    int failed = pthread_mutex_init(&mailbox->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&mailbox->arrived, NULL);
    ASSERT(failed == 0);
}

void mailbox_done(Mailbox *mailbox)
{
    (void)pthread_cond_destroy(&mailbox->arrived);
    (void)pthread_mutex_destroy(&mailbox->lock);
}

void mailbox_post(Mailbox *mailbox, QueueNode *message)
{
    if (!queue_push(&mailbox->queue, message))
        return; /* whoever made it non-empty wakes the reader */
    /* Taking the lock orders this signal after a reader's look at the queue and its sleep. */
    (void)pthread_mutex_lock(&mailbox->lock);
    (void)pthread_cond_signal(&mailbox->arrived);
    (void)pthread_mutex_unlock(&mailbox->lock);
}

QueueNode *mailbox_wait(Mailbox *mailbox)
{
    QueueNode *messages = queue_take(&mailbox->queue);
    if (messages != NULL)
        return messages;
    (void)pthread_mutex_lock(&mailbox->lock);
    while ((messages = queue_take(&mailbox->queue)) == NULL)
        (void)pthread_cond_wait(&mailbox->arrived, &mailbox->lock);
    (void)pthread_mutex_unlock(&mailbox->lock);
    return messages;
}
