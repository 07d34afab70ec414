/* script_gate_test.c - sessions of one key go one after the other, others do not wait. */
#include "api/items/script_gate_int.h"

#include "base/mem.h"
#include "base/testing.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct Visitor {
    ScriptWaiter waiter;
    char name;
} Visitor;

static char entered[2048];
static size_t entered_count;

static void note(ScriptWaiter *waiter)
{
    entered[entered_count++] = CONTAINER_OF(waiter, Visitor, waiter)->name;
    entered[entered_count] = '\0';
}

static void enter(ScriptGate *gate, Visitor *visitor, char name, uint64_t container, Slice epk)
{
    *visitor = (Visitor){.waiter.enter = note, .name = name};
    assert_ok(script_gate_enter(gate, container, epk, &visitor->waiter, err));
}

static void those_of_one_key_wait_in_order(void **state)
{
    (void)state;
    ScriptGate *gate = script_gate_open();
    Visitor visitors[6];
    entered_count = 0;
    enter(gate, &visitors[0], 'a', 1, SLICE("k"));
    enter(gate, &visitors[1], 'b', 1, SLICE("k"));
    enter(gate, &visitors[2], 'c', 1, SLICE("other"));
    enter(gate, &visitors[3], 'd', 2, SLICE("k")); /* of another container */
    enter(gate, &visitors[4], 'e', 1, SLICE("k"));
    enter(gate, &visitors[5], 'f', 1, SLICE("k"));
    assert_string_equal(entered, "acd");
    script_gate_leave(gate, &visitors[0].waiter);
    assert_string_equal(entered, "acdb");
    script_gate_leave(gate, &visitors[3].waiter);
    script_gate_leave(gate, &visitors[1].waiter);
    enter(gate, &visitors[0], 'g', 1, SLICE("k"));
    script_gate_leave(gate, &visitors[4].waiter);
    script_gate_leave(gate, &visitors[5].waiter);
    assert_string_equal(entered, "acdbefg");
    script_gate_leave(gate, &visitors[0].waiter);
    script_gate_leave(gate, &visitors[2].waiter);
    enter(gate, &visitors[0], 'h', 1, SLICE("k"));
    assert_string_equal(entered, "acdbefgh");
    script_gate_leave(gate, &visitors[0].waiter);
    script_gate_close(gate);
}

static void too_many_are_turned_away(void **state)
{
    (void)state;
    ScriptGate *gate = script_gate_open();
    Visitor *visitors = MEM_NEW_ARRAY(Visitor, GATE_WAITERS_MAX + 2);
    entered_count = 0;
    for (size_t i = 0; i <= GATE_WAITERS_MAX; i++)
        enter(gate, &visitors[i], 'x', 1, SLICE("k"));
    assert_int_equal(entered_count, 1);
    Visitor *last = &visitors[GATE_WAITERS_MAX + 1];
    Error err;
    last->waiter.enter = note;
    assert_int_equal(script_gate_enter(gate, 1, SLICE("k"), &last->waiter, &err), STATUS_THROTTLED);
    assert_int_equal(err.sub, SUB_SCRIPT_CONCURRENCY);
    assert_true(err.retry_after_ms > 0);
    for (size_t i = 0; i <= GATE_WAITERS_MAX; i++)
        script_gate_leave(gate, &visitors[i].waiter);
    assert_int_equal(entered_count, GATE_WAITERS_MAX + 1);
    script_gate_close(gate);
    mem_free(visitors);
}

enum { THREADS = 4, ROUNDS = 2000 };

typedef struct Worker {
    ScriptWaiter waiter;
    ScriptGate *gate;
    _Atomic bool is_in;
} Worker;

static size_t inside; /* only the one that has entered touches it */

static void let_in(ScriptWaiter *waiter)
{
    atomic_store(&CONTAINER_OF(waiter, Worker, waiter)->is_in, true);
}

static void *go_through(void *ctx)
{
    Worker *worker = ctx;
    for (size_t i = 0; i < ROUNDS; i++) {
        Error err;
        atomic_store(&worker->is_in, false);
        worker->waiter.enter = let_in;
        if (script_gate_enter(worker->gate, 1, SLICE("k"), &worker->waiter, &err) != STATUS_OK)
            return worker;
        while (!atomic_load(&worker->is_in))
            sched_yield();
        inside++;
        script_gate_leave(worker->gate, &worker->waiter);
    }
    return NULL;
}

static void one_is_inside_at_a_time(void **state)
{
    (void)state;
    ScriptGate *gate = script_gate_open();
    Worker workers[THREADS];
    pthread_t threads[THREADS];
    inside = 0;
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (Worker){.gate = gate};
        assert_int_equal(pthread_create(&threads[i], NULL, go_through, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(inside, (size_t)THREADS * ROUNDS);
    script_gate_close(gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_of_one_key_wait_in_order),
        cmocka_unit_test(too_many_are_turned_away),
        cmocka_unit_test(one_is_inside_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
