/* queue_test.c - messages from many threads arrive once each, in their senders' order (I5), and a
 * sleeping reader is always woken. Run under the thread sanitizer too (make tsan). */
#include "base/clock.h"
#include "base/mailbox.h"
#include "base/queue.h"
#include "base/testing.h"

#include <pthread.h>
#include <sched.h>

enum { SENDERS = 4, MESSAGES = 5000 };

typedef struct Message {
    QueueNode node;
    int sender;
    int number;
} Message;

typedef struct Sender {
    pthread_t thread;
    Queue *queue; /* one of these two is the receiver's */
    Mailbox *mailbox;
    Message messages[MESSAGES];
    int woke; /* pushes into an empty queue */
} Sender;

static void *send_all(void *arg)
{
    Sender *sender = arg;
    for (int i = 0; i < MESSAGES; i++) {
        if (sender->mailbox != NULL)
            mailbox_post(sender->mailbox, &sender->messages[i].node);
        else if (queue_push(sender->queue, &sender->messages[i].node))
            sender->woke++;
        /* Now and then the reader must get as far as finding nothing. */
        if (i % 500 == 0)
            (void)sched_yield();
    }
    return NULL;
}

static void start(Sender *senders, Queue *queue, Mailbox *mailbox)
{
    for (int i = 0; i < SENDERS; i++) {
        senders[i].queue = queue;
        senders[i].mailbox = mailbox;
        senders[i].woke = 0;
        for (int j = 0; j < MESSAGES; j++)
            senders[i].messages[j] = (Message){.sender = i, .number = j};
        assert_int_equal(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]), 0);
    }
}

/* Checks each message of a chain against what its sender must have sent next. */
static int receive(QueueNode *node, int next[SENDERS])
{
    int count = 0;
    while (node != NULL) {
        Message *message = CONTAINER_OF(node, Message, node);
        node = node->next;
        assert_int_equal(message->number, next[message->sender]);
        next[message->sender]++;
        count++;
    }
    return count;
}

static void join(Sender *senders)
{
    for (int i = 0; i < SENDERS; i++)
        assert_int_equal(pthread_join(senders[i].thread, NULL), 0);
}

static void one_thread_takes_what_it_pushed_oldest_first(void **state)
{
    (void)state;
    Queue queue;
    queue_init(&queue);
    Message messages[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    assert_null(queue_take(&queue));
    assert_true(queue_push(&queue, &messages[0].node));
    assert_false(queue_push(&queue, &messages[1].node));
    assert_false(queue_push(&queue, &messages[2].node));
    int next[SENDERS] = {0};
    assert_int_equal(receive(queue_take(&queue), next), 3);
    assert_null(queue_take(&queue));
    assert_true(queue_push(&queue, &messages[0].node));
    assert_ptr_equal(queue_take(&queue), &messages[0].node);
}

static void every_message_arrives_once_and_in_its_senders_order(void **state)
{
    (void)state;
    static Sender senders[SENDERS];
    Queue queue;
    queue_init(&queue);
    start(senders, &queue, NULL);
    int next[SENDERS] = {0};
    int received = 0;
    int takes = 0;
    while (received < SENDERS * MESSAGES) {
        QueueNode *chain = queue_take(&queue);
        takes += chain != NULL ? 1 : 0;
        received += receive(chain, next);
    }
    join(senders);
    assert_null(queue_take(&queue));
    /* Exactly one push per batch was told that it should wake the reader. */
    int woke = 0;
    for (int i = 0; i < SENDERS; i++)
        woke += senders[i].woke;
    assert_int_equal(woke, takes);
}

static void a_sleeping_reader_is_woken_for_every_batch(void **state)
{
    (void)state;
    static Sender senders[SENDERS];
    Mailbox mailbox;
    mailbox_init(&mailbox);
    start(senders, NULL, &mailbox);
    int next[SENDERS] = {0};
    int received = 0;
    while (received < SENDERS * MESSAGES) {
        QueueNode *chain = mailbox_wait(&mailbox);
        assert_non_null(chain);
        received += receive(chain, next);
    }
    join(senders);
    assert_int_equal(received, SENDERS * MESSAGES);
    mailbox_done(&mailbox);
}

typedef struct Pair {
    Mailbox there, back;
} Pair;

static void *answer_each(void *arg)
{
    Pair *pair = arg;
    for (int i = 0; i < 2000; i++)
        mailbox_post(&pair->back, mailbox_wait(&pair->there));
    return NULL;
}

static void two_threads_that_wait_for_each_other_never_sleep_too_long(void **state)
{
    (void)state;
    /* Each side sleeps before nearly every message: one lost wake-up and this never ends. */
    Pair pair;
    mailbox_init(&pair.there);
    mailbox_init(&pair.back);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, answer_each, &pair), 0);
    Message message = {.number = 0};
    for (int i = 0; i < 2000; i++) {
        mailbox_post(&pair.there, &message.node);
        assert_ptr_equal(mailbox_wait(&pair.back), &message.node);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    mailbox_done(&pair.there);
    mailbox_done(&pair.back);
}

static void a_wait_with_a_limit_ends_with_a_message_or_without(void **state)
{
    (void)state;
    Mailbox mailbox;
    mailbox_init(&mailbox);
    uint64_t begin_us = clock_monotonic_us(clock_real());
    assert_null(mailbox_wait_for(&mailbox, 20));
    assert_true(clock_monotonic_us(clock_real()) - begin_us >= 20000);
    assert_null(mailbox_wait_for(&mailbox, 0));
    Message messages[2] = {{.number = 0}, {.number = 1}};
    mailbox_post(&mailbox, &messages[0].node);
    mailbox_post(&mailbox, &messages[1].node);
    int next[SENDERS] = {0};
    assert_int_equal(receive(mailbox_wait_for(&mailbox, 60000), next), 2);
    assert_null(mailbox_wait_for(&mailbox, 1));
    mailbox_done(&mailbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_takes_what_it_pushed_oldest_first),
        cmocka_unit_test(every_message_arrives_once_and_in_its_senders_order),
        cmocka_unit_test(a_sleeping_reader_is_woken_for_every_batch),
        cmocka_unit_test(two_threads_that_wait_for_each_other_never_sleep_too_long),
        cmocka_unit_test(a_wait_with_a_limit_ends_with_a_message_or_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
