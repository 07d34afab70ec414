/* latch_test.c - each post ends one wait. Run under the thread sanitizer too. */
#include "base/latch.h"
#include "base/testing.h"
#include "base/thread.h"

#include <stdio.h>

enum { ROUNDS = 2000, THREADS = 4 };

static void each_post_ends_one_wait(void **state)
{
    (void)state;
    Latch latch;
    latch_init(&latch);
    assert_false(latch_is_posted(&latch));
    latch_post(&latch);
    latch_post(&latch);
    latch_wait(&latch);
    assert_true(latch_is_posted(&latch));
    latch_wait(&latch);
    assert_false(latch_is_posted(&latch));
    latch_done(&latch);
}

typedef struct Work {
    Latch finished;
    int result; /* written before the post, read after the wait */
} Work;

static void *finish(void *ctx)
{
    Work *work = ctx;
    work->result = 1;
    latch_post(&work->finished);
    return NULL;
}

static void what_was_written_before_a_post_is_seen_after_the_wait(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS / THREADS; round++) {
        Work work[THREADS];
        pthread_t threads[THREADS];
        Error err;
        for (size_t i = 0; i < THREADS; i++) {
            work[i].result = 0;
            latch_init(&work[i].finished);
            assert_int_equal(thread_start(&threads[i], "finish", finish, &work[i], &err),
                             STATUS_OK);
        }
        for (size_t i = 0; i < THREADS; i++) {
            latch_wait(&work[i].finished);
            assert_int_equal(work[i].result, 1);
            latch_done(&work[i].finished); /* the thread may still be inside latch_post */
        }
        for (size_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

static void *post(void *ctx)
{
    for (int i = 0; i < ROUNDS; i++)
        latch_post(ctx);
    return NULL;
}

static void posts_of_several_threads_are_counted(void **state)
{
    (void)state;
    Latch latch;
    latch_init(&latch);
    pthread_t threads[THREADS];
    Error err;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(thread_start(&threads[i], "post", post, &latch, &err), STATUS_OK);
    for (int i = 0; i < THREADS * ROUNDS; i++)
        latch_wait(&latch);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(latch_is_posted(&latch));
    latch_done(&latch);
}

static void a_wait_for_a_time_ends(void **state)
{
    (void)state;
    Latch latch;
    latch_init(&latch);
    assert_false(latch_wait_for(&latch, 0));
    assert_false(latch_wait_for(&latch, 1500));
    latch_post(&latch);
    assert_true(latch_wait_for(&latch, 0));
    assert_false(latch_wait_for(&latch, 0));
    latch_post(&latch);
    assert_true(latch_wait_for(&latch, 3000000));
    latch_done(&latch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_post_ends_one_wait),
        cmocka_unit_test(what_was_written_before_a_post_is_seen_after_the_wait),
        cmocka_unit_test(posts_of_several_threads_are_counted),
        cmocka_unit_test(a_wait_for_a_time_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
