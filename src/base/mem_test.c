/* mem_test.c - the heap (I1), the clean-up macros of defs.h, and assertions that stay on. */
#include "base/mem.h"

#include "base/testing.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void allocated_memory_is_zero_and_never_null(void **state)
{
    (void)state;
    AUTO(mem_free) void *nothing = mem_alloc(0);
    assert_non_null(nothing);
    AUTO(mem_free) void *empty_copy = mem_copy(NULL, 0);
    assert_non_null(empty_copy);
    uint64_t *numbers = MEM_NEW_ARRAY(uint64_t, 100);
    for (size_t i = 0; i < 100; i++) {
        assert_true(numbers[i] == 0);
        numbers[i] = i;
    }
    numbers = mem_realloc(numbers, sizeof(uint64_t) * 1000);
    for (size_t i = 0; i < 100; i++)
        assert_true(numbers[i] == i);
    AUTO(mem_free) void *copy = mem_copy(numbers, sizeof(uint64_t) * 100);
    assert_memory_equal(copy, numbers, sizeof(uint64_t) * 100);
    mem_free(numbers);
    mem_free(NULL);
}

typedef struct Thing {
    int *closed;
} Thing;

static void thing_close(Thing *thing)
{
    if (thing != NULL)
        (*thing->closed)++;
}
DEFINE_AUTO(Thing *, thing_close)

static void thing_done(Thing *thing)
{
    (*thing->closed) += 10;
}
DEFINE_AUTO_VALUE(Thing, thing_done)

static Thing *close_unless_taken(Thing *given, bool take)
{
    AUTO(thing_close) Thing *thing = given;
    if (take)
        return TAKE(thing);
    return NULL;
}

static void things_are_closed_on_the_way_out_unless_taken(void **state)
{
    (void)state;
    int closed = 0;
    Thing thing = {&closed};
    assert_null(close_unless_taken(&thing, false));
    assert_int_equal(closed, 1);
    assert_ptr_equal(close_unless_taken(&thing, true), &thing);
    assert_int_equal(closed, 1);
    {
        AUTO(thing_done) Thing value = {&closed};
        assert_int_equal(*value.closed, 1);
    }
    assert_int_equal(closed, 11);
}

/* Runs 'act' in a child and returns what it said before the signal that must end it. */
static void assert_aborts(void (*act)(void), const char *expected)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        /* cmocka would turn the signal into a failed test. */
        (void)signal(SIGABRT, SIG_DFL);
        (void)dup2(fds[1], STDERR_FILENO);
        act();
        _exit(0);
    }
    (void)close(fds[1]);
    char text[512] = {0};
    ssize_t got = read(fds[0], text, sizeof(text) - 1);
    (void)close(fds[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(got > 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(text, expected));
}

static void break_a_promise(void)
{
    volatile int one = 1;
    ASSERT(one == 2);
}

static void a_broken_promise_ends_the_process_and_names_it(void **state)
{
    (void)state;
    assert_aborts(break_a_promise, "internal error: one == 2 does not hold at ");
    ASSERT(*state == NULL); /* and a kept one does nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocated_memory_is_zero_and_never_null),
        cmocka_unit_test(things_are_closed_on_the_way_out_unless_taken),
        cmocka_unit_test(a_broken_promise_ends_the_process_and_names_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
