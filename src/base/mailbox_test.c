/* mailbox_test.c - what queue_test.c leaves out: how a mailbox ends.
 *
 * That every message arrives and that no wake-up is lost is tested there, with the queue.
 */
#include "base/mailbox.h"
#include "base/mem.h"
#include "base/testing.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

static void what_has_arrived_is_taken_at_once_and_in_order(void **state)
{
    (void)state;
    Mailbox mailbox;
    mailbox_init(&mailbox);
    QueueNode nodes[3];
    for (size_t i = 0; i < ARRAY_COUNT(nodes); i++)
        mailbox_post(&mailbox, &nodes[i]);
    QueueNode *chain = mailbox_wait(&mailbox);
    for (size_t i = 0; i < ARRAY_COUNT(nodes); i++) {
        assert_ptr_equal(chain, &nodes[i]);
        chain = chain->next;
    }
    assert_null(chain);
    mailbox_done(&mailbox);
}

typedef struct Late {
    Mailbox *mailbox;
    QueueNode node;
} Late;

static void *post_late(void *arg)
{
    Late *late = arg;
    (void)usleep(20000);
    mailbox_post(late->mailbox, &late->node);
    return NULL;
}

static void a_reader_sleeps_until_something_comes(void **state)
{
    (void)state;
    Mailbox mailbox;
    mailbox_init(&mailbox);
    Late late = {.mailbox = &mailbox};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, post_late, &late), 0);
    assert_ptr_equal(mailbox_wait(&mailbox), &late.node);
    assert_int_equal(pthread_join(thread, NULL), 0);
    mailbox_done(&mailbox);
}

enum { LIVES = 1000 };

/* One mailbox per life, in memory of its own: the reader frees it as soon as it has the message. */
typedef struct Life {
    _Atomic(Mailbox *) mailbox;
    QueueNode last;
} Life;

static void *post_last_words(void *arg)
{
    Life *lives = arg;
    for (int i = 0; i < LIVES; i++) {
        Mailbox *mailbox;
        while ((mailbox = atomic_load(&lives[i].mailbox)) == NULL)
            (void)sched_yield();
        mailbox_post(mailbox, &lives[i].last);
    }
    return NULL;
}

static void the_last_message_may_end_the_mailbox(void **state)
{
    (void)state;
    Life *lives = MEM_NEW_ARRAY(Life, LIVES);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, post_last_words, lives), 0);
    for (int i = 0; i < LIVES; i++) {
        Mailbox *mailbox = MEM_NEW(Mailbox);
        mailbox_init(mailbox);
        atomic_store(&lives[i].mailbox, mailbox);
        assert_ptr_equal(mailbox_wait(mailbox), &lives[i].last);
        mailbox_done(mailbox);
        memset(mailbox, 0xff, sizeof(*mailbox)); /* a poster that still used it would show */
        mem_free(mailbox);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    mem_free(lives);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_arrived_is_taken_at_once_and_in_order),
        cmocka_unit_test(a_reader_sleeps_until_something_comes),
        cmocka_unit_test(the_last_message_may_end_the_mailbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
