/* script_functions_test.c - functions of queries: values, errors, batches, limits. */
#include "script/script_testing_int.h"

static ScriptPool *pool;

static uint64_t soon(void)
{
    return clock_monotonic_us(clock_real()) + TEST_HARD_US;
}

static void results_are_json_undefined_or_errors(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        const char *arguments; /* ' stands for " */
        ScriptValueKind kind;
        uint32_t number;
        const char *text;
    } CASES[] = {
        {"function (x) { return x * 0.05; }", "[100]", SCRIPT_VALUE_JSON, 0, "5"},
        {"x => x.a", "[{'a':{'b':[1,null]}}]", SCRIPT_VALUE_JSON, 0, "{'b':[1,null]}"},
        {"function (a, b) { return '' + a + b; }", "['x']", SCRIPT_VALUE_JSON, 0, "'xundefined'"},
        {"function () { return arguments.length; };", "[]", SCRIPT_VALUE_JSON, 0, "0"},
        {"function () { }", "[1]", SCRIPT_VALUE_UNDEFINED, 0, ""},
        {"function () { return NaN; }", "[]", SCRIPT_VALUE_UNDEFINED, 0, ""},
        {"function () { return -Infinity; }", "[]", SCRIPT_VALUE_UNDEFINED, 0, ""},
        {"function () { return function () {}; }", "[]", SCRIPT_VALUE_UNDEFINED, 0, ""},
        {"function () { return Symbol(); }", "[]", SCRIPT_VALUE_UNDEFINED, 0, ""},
        {"function () { return new Date(0); }", "[]", SCRIPT_VALUE_JSON, 0,
         "'1970-01-01T00:00:00.000Z'"},
        {"function () { return null; }", "[]", SCRIPT_VALUE_JSON, 0, "null"},
        {"function (x) { y = x; return y; }", "[3]", SCRIPT_VALUE_JSON, 0, "3"},
        {"function () { return [typeof getContext, typeof __, typeof console.log]; }", "[]",
         SCRIPT_VALUE_JSON, 0, "['undefined','undefined','function']"},
        {"function () { throw new Error(32766, 'no'); }", "[]", SCRIPT_VALUE_ERROR, 32766,
         "Encountered exception while executing function. Exception = Error: no\r\nStack trace: "
         "Error: no\n   at fn (f0.js:1:65)"},
        {"function (", "[]", SCRIPT_VALUE_ERROR, 65535,
         "Encountered exception while compiling Javascript. Exception = SyntaxError: "},
        {"17", "[]", SCRIPT_VALUE_ERROR, 0,
         "Encountered exception while executing function. Exception = TypeError: "},
        {"function f() { f(); }", "[]", SCRIPT_VALUE_ERROR, 0,
         "Encountered exception while executing function. Exception = RangeError: "},
    };
    enum { COUNT = ARRAY_COUNT(CASES) };
    ScriptSource sources[COUNT];
    ScriptFunctionCall calls[2 * COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        sources[i] = (ScriptSource){.id = arena_format(&test_arena, "f%zu", i == 13 ? 0 : i + 1),
                                    .body = slice_from_cstr(CASES[i].body)};
        calls[i] = (ScriptFunctionCall){.which = (uint32_t)i,
                                        .arguments = row_text(&test_arena, CASES[i].arguments)};
        calls[COUNT + i] = calls[i]; /* each function twice: compiled once */
    }
    AUTO(script_functions_close)
    ScriptFunctions *functions = script_functions_open(pool, sources, COUNT, soon());
    assert_ok(script_functions_call(functions, calls, 2 * COUNT, &test_arena, err));
    for (size_t i = 0; i < 2 * COUNT; i++) {
        size_t at = i % COUNT;
        Slice expected = row_text(&test_arena, CASES[at].text);
        assert_int_equal(calls[i].kind, CASES[at].kind);
        assert_int_equal(calls[i].number, CASES[at].number);
        assert_slice(calls[i].kind == SCRIPT_VALUE_ERROR ? slice_first(calls[i].text, expected.len)
                                                         : calls[i].text,
                     expected);
    }
}

static void a_session_has_one_global_object_of_its_own(void **state)
{
    (void)state;
    ScriptSource sources[] = {
        {.id = SLICE("a"),
         .body = SLICE("function () { n = typeof n === 'undefined' ? 1 : n + 1; return n; }")},
        {.id = SLICE("b"), .body = SLICE("function () { return typeof n; }")}};
    for (size_t i = 0; i < 3; i++) {
        AUTO(script_functions_close)
        ScriptFunctions *functions = script_functions_open(pool, sources, 2, soon());
        ScriptFunctionCall calls[] = {{.which = 0, .arguments = SLICE("[]")},
                                      {.which = 0, .arguments = SLICE("[]")},
                                      {.which = 1, .arguments = SLICE("[]")}};
        assert_ok(script_functions_call(functions, calls, 1, &test_arena, err));
        assert_ok(script_functions_call(functions, calls + 1, 2, &test_arena, err));
        assert_slice_text(calls[0].text, "1");
        assert_slice_text(calls[1].text, "2");
        assert_slice_text(calls[2].text, "\"number\"");
    }
}

static void many_calls_travel_in_several_messages(void **state)
{
    (void)state;
    enum { COUNT = 3 * SCRIPT_BATCH_CALLS_MAX / 2 };
    ScriptSource source = {.id = SLICE("len"),
                           .body = SLICE("function (x, n) { return x.length + n; }")};
    ScriptFunctionCall *calls = MEM_NEW_ARRAY(ScriptFunctionCall, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        calls[i].arguments = arena_format(&test_arena, "[\"%0*d\",%zu]", i == 5 ? 20000 : 1, 0, i);
    AUTO(script_functions_close)
    ScriptFunctions *functions = script_functions_open(pool, &source, 1, soon());
    assert_ok(script_functions_call(functions, calls, COUNT, &test_arena, err));
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t number = 0;
        assert_true(slice_to_u64(calls[i].text, &number));
        assert_int_equal(number, i + (i == 5 ? 20000 : 1));
    }
    mem_free(calls);
}

static void too_large_arguments_and_results_are_refused(void **state)
{
    (void)state;
    ScriptSource source = {.id = SLICE("big"),
                           .body = SLICE("function (n) { return 'x'.repeat(n); }")};
    ScriptFunctionCall calls[3] = {{.arguments = SLICE("[10000000]")},
                                   {.arguments = SLICE("[10000000]")},
                                   {.arguments = SLICE("[1]")}};
    ScriptFunctions *functions = script_functions_open(pool, &source, 1, soon());
    assert_ok(script_functions_call(functions, calls, 3, &test_arena, err));
    assert_int_equal(calls[0].kind, SCRIPT_VALUE_JSON);
    assert_int_equal(calls[1].kind, SCRIPT_VALUE_ERROR);
    assert_int_equal(calls[1].number, 413);
    assert_slice_text(calls[2].text, "\"x\"");
    size_t len = 20 << 20;
    char *large = mem_alloc(len);
    memset(large, ' ', len);
    calls[0].arguments = slice_make(large, len);
    Error failure;
    assert_status(script_functions_call(functions, calls, 1, &test_arena, &failure),
                  STATUS_TOO_LARGE);
    mem_free(large);
    script_functions_close(functions);
}

static void endless_functions_time_out(void **state)
{
    (void)state;
    static const char *const BODIES[] = {
        "function () { for (;;); }",
        "function () { for (;;) /(a+)+$/.test('a'.repeat(40) + 'b'); }"};
    for (size_t i = 0; i < ARRAY_COUNT(BODIES); i++) {
        ScriptSource source = {.id = SLICE("loop"), .body = slice_from_cstr(BODIES[i])};
        ScriptFunctionCall call = {.arguments = SLICE("[]")};
        AUTO(script_functions_close)
        ScriptFunctions *functions =
            script_functions_open(pool, &source, 1, clock_monotonic_us(clock_real()) + 500000);
        Error failure;
        assert_status(script_functions_call(functions, &call, 1, &test_arena, &failure),
                      STATUS_TIMEOUT);
        assert_string_equal(failure.message, SCRIPT_TIMEOUT_TEXT);
    }
}

static void sessions_wait_for_each_other_and_not_for_ever(void **state)
{
    (void)state;
    ScriptPoolOptions options = {.command = TEST_COMMAND, .functions_max = 1};
    ScriptPool *small = script_pool_open(&options);
    ScriptSource source = {.id = SLICE("f"), .body = SLICE("x => x")};
    ScriptFunctionCall call = {.arguments = SLICE("[1]")};
    ScriptFunctions *first = script_functions_open(small, &source, 1, soon());
    ScriptFunctions *second =
        script_functions_open(small, &source, 1, clock_monotonic_us(clock_real()) + 200000);
    assert_ok(script_functions_call(first, &call, 1, &test_arena, err));
    Error failure;
    assert_status(script_functions_call(second, &call, 1, &test_arena, &failure), STATUS_TIMEOUT);
    script_functions_close(second);
    script_functions_close(first);
    ScriptFunctions *third = script_functions_open(small, &source, 1, soon());
    assert_ok(script_functions_call(third, &call, 1, &test_arena, err));
    script_functions_close(third);
    ScriptPoolStats stats;
    script_pool_stats(small, &stats);
    assert_int_equal(stats.processes_started, 1);
    script_pool_close(small);
}

/* The limit is CPU time: a busy machine makes the test slower but changes nothing. */
static void a_function_that_uses_much_cpu_is_blocked(void **state)
{
    (void)state;
    ScriptSource sources[] = {
        {.id = SLICE("slow"),
         .version = SLICE("v1"),
         .body =
             SLICE("function () { for (var i = 0, x = 0; i < 2e7; i++) x = (x * 31 + i) % 1000003; "
                   "var s = Date.now(); while (Date.now() - s < 60) x++; return 1; }")},
        {.id = SLICE("fast"), .version = SLICE("v2"), .body = SLICE("x => x")},
    };
    ScriptFunctionCall slow = {.which = 0, .arguments = SLICE("[]")};
    ScriptFunctionCall fast = {.which = 1, .arguments = SLICE("[1]")};
    size_t runs = 0;
    Status status = STATUS_OK;
    Error failure = {.status = STATUS_OK};
    for (; runs < 50 && status == STATUS_OK; runs++) {
        AUTO(script_functions_close)
        ScriptFunctions *functions = script_functions_open(pool, sources, 2, soon());
        status = script_functions_call(functions, &slow, 1, &test_arena, &failure);
        if (status == STATUS_OK)
            status = script_functions_call(functions, &fast, 1, &test_arena, &failure);
    }
    assert_status(status, STATUS_FORBIDDEN);
    assert_int_equal(runs, SCRIPT_BLOCK_RUNS + 1);
    assert_string_equal(failure.message,
                        "The script with id 'slow' is blocked for execution because it has "
                        "violated its allowed resources limit several times.");
    AUTO(script_functions_close)
    ScriptFunctions *functions = script_functions_open(pool, sources, 2, soon());
    assert_ok(script_functions_call(functions, &fast, 1, &test_arena, err));
}

static int open_pool(void **state)
{
    (void)state;
    ScriptPoolOptions options = {.command = TEST_COMMAND,
                                 .memory_bytes_max = TEST_MEMORY_BYTES,
                                 .shows_stderr = true,
                                 .block_functions_cpu_us = 20000};
    pool = script_pool_open(&options);
    return 0;
}

static int close_pool(void **state)
{
    (void)state;
    script_pool_close(pool);
    return 0;
}

int main(int argc, char **argv)
{
    TEST_WORKER_MAIN(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
    const struct CMUnitTest tests[] = {
        TEST(results_are_json_undefined_or_errors),
        TEST(a_session_has_one_global_object_of_its_own),
        TEST(many_calls_travel_in_several_messages),
        TEST(too_large_arguments_and_results_are_refused),
        TEST(endless_functions_time_out),
        TEST(sessions_wait_for_each_other_and_not_for_ever),
        TEST(a_function_that_uses_much_cpu_is_blocked),
    };
    return cmocka_run_group_tests(tests, open_pool, close_pool);
}
