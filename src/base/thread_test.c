/* thread_test.c - a thread has its name, gets no signals, and may be in the background. */

#include "base/thread.h"
#include "base/thread_background.h"

#include "base/latch.h"
#include "base/testing.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct Seen {
    Latch named; /* the name comes after the thread */
    char name[THREAD_NAME_LEN_MAX + 1];
    sigset_t blocked;
} Seen;

static void *look(void *ctx)
{
    Seen *seen = ctx;
    latch_wait(&seen->named);
    assert_int_equal(pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name)), 0);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &seen->blocked), 0);
    return ctx;
}

static void *start_and_join(Seen *seen, const char *name)
{
    Error err;
    pthread_t thread;
    latch_init(&seen->named);
    assert_int_equal(thread_start(&thread, name, look, seen, &err), STATUS_OK);
    latch_post(&seen->named);
    void *result = NULL;
    assert_int_equal(pthread_join(thread, &result), 0);
    latch_done(&seen->named);
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

static void the_thread_that_starts_one_still_gets_signals(void **state)
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

/* As the system call fills it in; the C library has no name for it everywhere. */
typedef struct Attr {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t slice_ns;
    uint64_t others[2];
} Attr;

static Attr own_attr(void)
{
    Attr attr = {.size = sizeof(attr)};
    assert_int_equal(syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0), 0);
    return attr;
}

static void *note_attr(void *ctx)
{
    *(Attr *)ctx = own_attr();
    return NULL;
}

static Attr attr_of_new_thread(void)
{
    Attr attr;
    pthread_t thread;
    Error err;
    assert_int_equal(thread_start(&thread, "new", note_attr, &attr, &err), STATUS_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return attr;
}

static void *compare_attrs(void *ctx)
{
    Attr before = own_attr();
    thread_set_background();
    thread_set_background(); /* twice is once */
    Attr after = own_attr();
    assert_int_equal(after.policy, before.policy);
    assert_int_equal(after.nice, before.nice);
    assert_int_equal(attr_of_new_thread().slice_ns, before.slice_ns);
    /* Linux before 6.12 knows no slices, and then nothing changes. */
    if (after.slice_ns != before.slice_ns)
        assert_true(after.slice_ns > before.slice_ns);
    else
        print_message("NOT TESTED: this system has no slices of threads' own\n");
    return ctx;
}

/* It gets its share as before, in longer slices; threads beside it, and those that it starts, do
 * not change. */
static void a_background_thread_has_a_longer_slice_and_nothing_else(void **state)
{
    (void)state;
    Attr before = own_attr();
    pthread_t thread;
    Error err;
    assert_int_equal(thread_start(&thread, "background", compare_attrs, NULL, &err), STATUS_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    Attr after = own_attr();
    assert_int_equal(after.slice_ns, before.slice_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_has_the_name_that_it_was_given),
        cmocka_unit_test(a_thread_hears_of_nothing_but_its_own_faults),
        cmocka_unit_test(the_thread_that_starts_one_still_gets_signals),
        cmocka_unit_test(a_background_thread_has_a_longer_slice_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
