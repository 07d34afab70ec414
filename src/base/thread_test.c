/* thread_test.c - a thread has its name and hears no signals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/thread.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>

typedef struct Seen {
    sem_t named; /* the name comes after the thread */
    char name[THREAD_NAME_LEN_MAX + 1];
    sigset_t blocked;
} Seen;

static void *look(void *ctx)
{
    Seen *seen = ctx;
    while (sem_wait(&seen->named) != 0)
        assert_int_equal(errno, EINTR);
    assert_int_equal(pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name)), 0);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &seen->blocked), 0);
    return ctx;
}

static void *start_and_join(Seen *seen, const char *name)
{
    Error err;
    pthread_t thread;
    assert_int_equal(sem_init(&seen->named, 0, 0), 0);
    assert_int_equal(thread_start(&thread, name, look, seen, &err), STATUS_OK);
    assert_int_equal(sem_post(&seen->named), 0);
    void *result = NULL;
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_int_equal(sem_destroy(&seen->named), 0);
    return result;
}

static void a_thread_has_the_name_that_it_was_given(void **state)
{
    (void)state;
    static const char *const names[] = {"orrery-x", "fifteen letters"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        Seen seen = {0};
        assert_ptr_equal(start_and_join(&seen, names[i]), &seen);
        assert_string_equal(seen.name, names[i]);
    }
}

static void a_thread_hears_of_nothing_but_its_own_faults(void **state)
{
    (void)state;
    static const struct {
        int signal;
        bool blocked;
    } rows[] = {
        {SIGTERM, true}, {SIGINT, true},   {SIGHUP, true},  {SIGXFSZ, true},
        {SIGUSR1, true}, {SIGSEGV, false}, {SIGBUS, false}, {SIGABRT, false},
    };
    Seen seen = {0};
    (void)start_and_join(&seen, "deaf");
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(sigismember(&seen.blocked, rows[i].signal), rows[i].blocked);
}

static void whoever_starts_a_thread_goes_on_hearing(void **state)
{
    (void)state;
    sigset_t before, after;
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    Seen seen = {0};
    (void)start_and_join(&seen, "deaf");
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    for (int signal = 1; signal < SIGRTMIN; signal++)
        assert_int_equal(sigismember(&after, signal), sigismember(&before, signal));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_has_the_name_that_it_was_given),
        cmocka_unit_test(a_thread_hears_of_nothing_but_its_own_faults),
        cmocka_unit_test(whoever_starts_a_thread_goes_on_hearing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
