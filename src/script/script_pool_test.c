/* script_pool_test.c - processes and jobs: started on demand, kept, ended, replaced; blocked
 * scripts; failures to start. */
#include "script/script_pool.h"

#include "script/script_process_int.h"
#include "script/script_testing_int.h"

#include <signal.h>

static const char HELLO_BODY[] = "function () { __.response.setBody('hello'); }";

static void nothing_is_started_before_the_first_script(void **state)
{
    (void)state;
    /* With one thread each job gives its process back before the next begins. */
    ScriptPoolOptions options = {.command = TEST_COMMAND, .workers_max = 1};
    AUTO(script_pool_close) ScriptPool *pool = script_pool_open(&options);
    ScriptPoolStats stats;
    script_pool_stats(pool, &stats);
    assert_int_equal(stats.processes, 0);
    TestTable table = {.count = 0};
    ScriptRun run = test_make_run(&table, SCRIPT_ROLE_PROCEDURE, HELLO_BODY);
    ScriptResult result;
    for (size_t i = 0; i < 5; i++)
        assert_ok(test_run(pool, &run, &test_arena, &result, err));
    script_pool_stats(pool, &stats);
    assert_int_equal(stats.processes_started, 1);
    assert_int_equal(stats.processes_lost, 0);
    assert_int_equal(stats.runs, 5);
}

static void a_worker_that_cannot_start_is_an_error(void **state)
{
    (void)state;
    static const char *const MISSING[] = {"/nonexistent/orrery", NULL};
    static const char *const OTHER[] = {"/bin/true", NULL};
    static const char *const *const COMMANDS[] = {MISSING, OTHER};
    for (size_t i = 0; i < ARRAY_COUNT(COMMANDS); i++) {
        ScriptPoolOptions options = {.command = COMMANDS[i]};
        AUTO(script_pool_close) ScriptPool *pool = script_pool_open(&options);
        TestTable table = {.count = 0};
        ScriptRun run = test_make_run(&table, SCRIPT_ROLE_PROCEDURE, HELLO_BODY);
        for (size_t j = 0; j < 3; j++) {
            ScriptResult result;
            Error failure;
            assert_status(test_run(pool, &run, &test_arena, &result, &failure), STATUS_UNAVAILABLE);
            assert_true(result.text.len > 0);
        }
    }
}

typedef struct BlockedJob {
    ScriptJob job;
    Latch begun;
    Latch go;
    Latch done;
} BlockedJob;

static void run_blocked(ScriptJob *job, ScriptRunner *runner)
{
    (void)runner;
    BlockedJob *blocked = CONTAINER_OF(job, BlockedJob, job);
    latch_post(&blocked->begun);
    latch_wait(&blocked->go);
    latch_post(&blocked->done);
}

static void too_many_jobs_are_refused(void **state)
{
    (void)state;
    ScriptPoolOptions options = {.command = TEST_COMMAND, .workers_max = 1, .jobs_max = 1};
    AUTO(script_pool_close) ScriptPool *pool = script_pool_open(&options);
    BlockedJob jobs[3];
    for (size_t i = 0; i < 3; i++) {
        jobs[i].job = (ScriptJob){.run = run_blocked};
        latch_init(&jobs[i].begun);
        latch_init(&jobs[i].go);
        latch_init(&jobs[i].done);
    }
    assert_ok(script_pool_post(pool, &jobs[0].job, err));
    latch_wait(&jobs[0].begun);
    assert_ok(script_pool_post(pool, &jobs[1].job, err));
    Error failure;
    assert_status(script_pool_post(pool, &jobs[2].job, &failure), STATUS_THROTTLED);
    assert_int_equal(sub_number(failure.sub), 3084);
    assert_true(failure.retry_after_ms > 0);
    for (size_t i = 0; i < 2; i++) {
        latch_post(&jobs[i].go);
        latch_wait(&jobs[i].done);
    }
    for (size_t i = 0; i < 3; i++) {
        latch_done(&jobs[i].begun);
        latch_done(&jobs[i].go);
        latch_done(&jobs[i].done);
    }
}

static void scripts_run_at_the_same_time(void **state)
{
    (void)state;
    enum { COUNT = 12 };
    ScriptPoolOptions options = {.command = TEST_COMMAND, .workers_max = 3};
    AUTO(script_pool_close) ScriptPool *pool = script_pool_open(&options);
    TestTable tables[COUNT] = {{.count = 0}};
    TestJob jobs[COUNT];
    ScriptRun runs[COUNT];
    ScriptResult results[COUNT];
    Status statuses[COUNT];
    Error errors[COUNT];
    Arena arenas[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        arena_init(&arenas[i], 4096);
        runs[i] = test_make_run(
            &tables[i], SCRIPT_ROLE_PROCEDURE,
            "function () { for (var i = 0; i < 10; i++) __.createDocument(__.getSelfLink(), {id: "
            "'i' + i}); __.response.setBody(i); }");
        jobs[i] = (TestJob){.job = {.run = test_run_job},
                            .runs = &runs[i],
                            .count = 1,
                            .arena = &arenas[i],
                            .results = &results[i],
                            .statuses = &statuses[i],
                            .errors = &errors[i]};
        latch_init(&jobs[i].done);
        assert_ok(script_pool_post(pool, &jobs[i].job, err));
    }
    for (size_t i = 0; i < COUNT; i++) {
        latch_wait(&jobs[i].done);
        latch_done(&jobs[i].done);
        assert_status(statuses[i], STATUS_OK);
        assert_int_equal(tables[i].count, 10);
        test_table_done(&tables[i]);
        arena_done(&arenas[i]);
    }
    ScriptPoolStats stats;
    script_pool_stats(pool, &stats);
    assert_true(stats.processes_started <= 3);
}

static void idle_processes_end_but_for_one(void **state)
{
    (void)state;
    ScriptPoolOptions options = {.command = TEST_COMMAND, .idle_us = 50000};
    AUTO(script_pool_close) ScriptPool *pool = script_pool_open(&options);
    ScriptSource source = {.id = SLICE("f"), .body = SLICE("x => x")};
    ScriptFunctions *sessions[3];
    for (size_t i = 0; i < 3; i++) {
        ScriptFunctionCall call = {.arguments = SLICE("[1]")};
        sessions[i] = script_functions_open(pool, &source, 1,
                                            clock_monotonic_us(clock_real()) + TEST_HARD_US);
        assert_ok(script_functions_call(sessions[i], &call, 1, &test_arena, err));
    }
    ScriptPoolStats stats;
    script_pool_stats(pool, &stats);
    assert_int_equal(stats.processes, 3);
    for (size_t i = 0; i < 3; i++)
        script_functions_close(sessions[i]);
    for (size_t i = 0; i < 600; i++) {
        script_pool_stats(pool, &stats);
        if (stats.processes == 1)
            break;
        sleep_ms(50);
    }
    assert_int_equal(stats.processes, 1);
}

/* Runs a script that uses more CPU than is allowed to be used often. */
static void procedures_that_use_much_cpu_are_blocked(void **state)
{
    (void)state;
    ScriptPoolOptions options = {.command = TEST_COMMAND, .block_cpu_us = 50000};
    AUTO(script_pool_close) ScriptPool *pool = script_pool_open(&options);
    TestTable table = {.count = 0};
    ScriptRun run = test_make_run(&table, SCRIPT_ROLE_PROCEDURE, "function () { for (;;); }");
    run.version = SLICE("rid/etag");
    ScriptResult result;
    Error failure;
    size_t runs = 0;
    Status status = STATUS_TIMEOUT;
    for (; runs < 30 && status == STATUS_TIMEOUT; runs++) {
        run.hard_us = clock_monotonic_us(clock_real()) + 300000;
        status = test_run(pool, &run, &test_arena, &result, &failure);
    }
    /* On a busy machine some runs get less CPU in this time. */
    assert_true(runs > SCRIPT_BLOCK_RUNS);
    if (status == STATUS_FORBIDDEN)
        assert_slice_text(result.text, "The script with id 's1' is blocked for execution because "
                                       "it has violated its allowed resource limit several times.");
    run.version = SLICE("rid/another");
    run.body = slice_from_cstr(HELLO_BODY);
    run.hard_us = clock_monotonic_us(clock_real()) + TEST_HARD_US;
    assert_ok(test_run(pool, &run, &test_arena, &result, err));
}

static void a_process_that_dies_while_idle_is_replaced(void **state)
{
    (void)state;
    AUTO(script_process_free) ScriptProcess *process = NULL;
    assert_ok(script_process_start(TEST_COMMAND, (uint64_t)1 << 30, true, &process, err));
    assert_ok(script_process_greet(process, UINT64_MAX, err));
    assert_true(script_process_is_quiet(process));
    assert_true(script_process_memory_bytes(process) > 1 << 20);
    assert_true(script_process_cpu_us(process) > 0);
    assert_int_equal(kill(process->pid, SIGKILL), 0);
    for (size_t i = 0; i < 1000 && script_process_is_quiet(process); i++)
        sleep_ms(10);
    assert_false(script_process_is_quiet(process));
}

int main(int argc, char **argv)
{
    TEST_WORKER_MAIN(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_started_before_the_first_script),
        TEST(a_worker_that_cannot_start_is_an_error),
        TEST(too_many_jobs_are_refused),
        TEST(scripts_run_at_the_same_time),
        TEST(idle_processes_end_but_for_one),
        TEST(procedures_that_use_much_cpu_are_blocked),
        TEST(a_process_that_dies_while_idle_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
