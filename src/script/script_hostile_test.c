/* script_hostile_test.c - scripts that try to use too much, or to break what they run in. Each ends
 * with an error in the right form, and the next script runs.
 */
#include "script/script_testing_int.h"

static ScriptPool *pool;

/* Time that the scripts have which never end. Other tests may keep the machine busy: that a worker
 * needs longer than this to begin is no failure, since the outcome is the same. */
#define SHORT_US ((uint64_t)700000)

static Status run_body(const char *body, uint64_t hard_us, ScriptResult *result)
{
    TestTable table = {.count = 0};
    Error err;
    ScriptRun run = test_make_run(&table, SCRIPT_ROLE_PROCEDURE, body);
    run.calls = &TEST_REPEATING_CALLS; /* as procedures have them */
    run.hard_us = clock_monotonic_us(clock_real()) + hard_us;
    Status status = test_run(pool, &run, &test_arena, result, &err);
    test_table_done(&table);
    return status;
}

static void check_still_works(void)
{
    ScriptResult result;
    assert_status(run_body("function () { __.response.setBody([1].map(x => x + 1)); }",
                           TEST_HARD_US, &result),
                  STATUS_OK);
    assert_slice_text(result.response_body, "[2]");
}

static void endless_scripts_time_out(void **state)
{
    (void)state;
    static const char *const BODIES[] = {
        "function () { for (;;); }",
        "function () { try { for (;;); } finally { for (;;); } }",
        "function () { while (true) { try { for (;;); } catch (e) { } } }",
        "function () { (function f() { Promise.resolve().then(f); })(); }",
        "async function () { for (;;) await null; }",
        "function () { for (;;) /(a+)+$/.test('a'.repeat(40) + 'b'); }",
        "function () { (function go() { __.readDocuments(__.getSelfLink(), go); })(); }",
        "function () { __.response.setBody({toJSON() { for (;;); }}); }",
        "function () { throw {get number() { for (;;); }}; }",
        "function () { new Array(4e9).join(); }",
        "function () { __.filter(x => true, {get pageSize() { for (;;); }}, () => { }); }",
    };
    for (size_t i = 0; i < ARRAY_COUNT(BODIES); i++) {
        ScriptResult result;
        Status status = run_body(BODIES[i], SHORT_US, &result);
        /* Some use much memory before their time is over. */
        if (status != STATUS_TIMEOUT && status != STATUS_BAD_REQUEST)
            fail_msg("%s: %s", BODIES[i], status_code(status));
        if (status == STATUS_TIMEOUT)
            assert_slice_text(result.text, SCRIPT_TIMEOUT_TEXT);
    }
    check_still_works();
}

static void too_much_memory_is_an_error(void **state)
{
    (void)state;
    static const char *const BODIES[] = {
        "function () { var a = []; for (;;) a.push(new Array(1000).fill(a.length)); }",
        "function () { var s = 'x'; for (;;) s += s + Math.random(); }",
        "function () { var a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1)); }",
        "function () { var o = {}; for (var i = 0; ; i++) o['k' + i] = {i: i}; }",
        "function () { for (;;) __.createDocument(__.getSelfLink(), {id: 'x'.repeat(100000)}); }",
        "function () { new Uint8Array(3e9).fill(1); }",
    };
    for (size_t i = 0; i < ARRAY_COUNT(BODIES); i++) {
        ScriptResult result;
        Status status = run_body(BODIES[i], TEST_HARD_US, &result);
        if (status != STATUS_BAD_REQUEST)
            fail_msg("%s: %s", BODIES[i], status_code(status));
        assert_true(result.text.len > 0);
    }
    ScriptPoolStats stats;
    script_pool_stats(pool, &stats);
    assert_true(stats.processes_lost > 0);
    check_still_works();
}

static void deep_recursion_is_an_error(void **state)
{
    (void)state;
    static const char *const BODIES[] = {
        "function f() { f(); }",
        "function () { var a = []; for (var i = 0; i < 200000; i++) a = [a]; "
        "__.response.setBody(a); }",
        "function f() { try { f(); } finally { f(); } }",
        "function () { var t = '['.repeat(200000); JSON.parse(t); }",
        "function f() { getContext().getResponse().setBody({toJSON: f}); JSON.stringify({toJSON: "
        "f}); }",
        "function () { new RegExp('('.repeat(100000) + ')'.repeat(100000)).test('x'); }",
        "function () { eval('('.repeat(200000)); }",
    };
    for (size_t i = 0; i < ARRAY_COUNT(BODIES); i++) {
        ScriptResult result;
        Status status = run_body(BODIES[i], 5000000, &result);
        if (status != STATUS_BAD_REQUEST && status != STATUS_TIMEOUT)
            fail_msg("%s: %s %.*s", BODIES[i], status_code(status),
                     SLICE_ARG(result.response_body));
    }
    check_still_works();
}

/* What a script does to its own global object does not reach the API. */
static void poisoned_prototypes_do_not_break_the_api(void **state)
{
    (void)state;
    static const char BODY[] =
        "function () {"
        "  var seen = [], c = __, self = __.getSelfLink(), r = __.response, parse = JSON.parse;"
        "  var grab = function () { seen.push(typeof this); for (var i = 0; i < arguments.length; "
        "i++) if (arguments[i] && arguments[i].kind !== undefined) seen.push('leak'); throw new "
        "Error('poison'); };"
        "  var names = ['push', 'sort', 'slice', 'indexOf', 'join', 'concat', Symbol.iterator];"
        "  for (var i = 0; i < names.length; i++) Array.prototype[names[i]] = grab;"
        "  ['call', 'apply', 'bind'].forEach(function (n) { Function.prototype[n] = grab; });"
        "  ['indexOf', 'lastIndexOf', 'slice', 'charCodeAt', 'toLowerCase', 'toWellFormed', "
        "'split'].forEach(function (n) { String.prototype[n] = grab; });"
        "  ['parse', 'stringify'].forEach(function (n) { JSON[n] = grab; });"
        "  ['assign', 'create', 'defineProperty', 'keys', 'setPrototypeOf'].forEach(function (n) { "
        "Object[n] = grab; });"
        "  Reflect.apply = grab; Reflect.construct = grab; Array.isArray = grab; Number.isInteger "
        "= grab; Number.isFinite = grab; Math.random = grab; Math.floor = grab; Date.now = grab; "
        "Error.prototype.toString = grab;"
        "  ['then', 'number', 'callback', 'next', 'value', 'get', 'set', 'writable', 'isResponse', "
        "'failure', 'steps', 'kind', 'body', 'pageSize'].forEach(function (n) {"
        "    Reflect.defineProperty(Object.prototype, n, {__proto__: null, get: grab, set: grab, "
        "configurable: "
        "true}); });"
        "  String = Number = Object = Array = Function = Reflect = JSON = Math = Promise = RegExp "
        "= TypeError = undefined;"
        "  var done = 0;"
        "  c.createDocument(self, '{\"id\":\"a\"}', {__proto__: null}, function (e, d) { if (e) "
        "throw e; done++;"
        "    c.readDocument(d._self, {__proto__: null}, function (e, d) { if (e) throw e; done += "
        "10;"
        "      c.filter(function (x) { return true; }, {__proto__: null}, function (e, list) { if "
        "(e) throw e; done += 100 * list.length; r.setBody(done + ':' + seen.length); }); }); });"
        "}";
    ScriptResult result;
    Status status = run_body(BODY, TEST_HARD_US, &result);
    if (status != STATUS_OK)
        fail_msg("%.*s", SLICE_ARG(result.text));
    assert_slice_text(result.response_body, "\"111:0\"");
    check_still_works();
}

/* A thrown value is described although everything is poisoned; the number counts. */
static void poisoned_errors_are_still_described(void **state)
{
    (void)state;
    ScriptResult result;
    Status status = run_body("function () { var e = new Error(4242, 'm'); Function.prototype.call "
                             "= Function.prototype.apply = null; Error.prototype.toString = null;"
                             " String.prototype.indexOf = null; Error = null; throw e; }",
                             TEST_HARD_US, &result);
    assert_status(status, STATUS_BAD_REQUEST);
    assert_int_equal(result.number, 4242);
    check_still_works();
}

/* The functions of the API that scripts can reach lead to nothing else. */
static void a_script_finds_no_native_functions_of_the_worker(void **state)
{
    (void)state;
    ScriptResult result;
    assert_status(
        run_body("function () { var found = []; var known = new Set();"
                 " (function walk(o, path) { if ((typeof o !== 'object' && typeof o !== "
                 "'function') || o === null || known.has(o)) return; known.add(o);"
                 "  Reflect.ownKeys(o).forEach(k => { var d = Reflect.getOwnPropertyDescriptor(o, "
                 "k); if "
                 "(/^(start|deliver|describe|callFunction|defineFunction|setArguments)$/"
                 ".test(String(k)) && typeof d.value === 'function') found.push(path + String(k)); "
                 "walk(d.value, path + String(k) + '.'); });"
                 "  walk(Reflect.getPrototypeOf(o), path + '__proto__.'); })({getContext, __, "
                 "console, c: getContext()}, ''); __.response.setBody(found); }",
                 TEST_HARD_US, &result),
        STATUS_OK);
    assert_slice_text(result.response_body, "[]");
    assert_status(
        run_body(
            "() => { var a = typeof arguments === 'undefined' ? [] : arguments; "
            "__.response.setBody([typeof a[0], a.length, a.callee && typeof a.callee.caller]); }",
            TEST_HARD_US, &result),
        STATUS_OK);
}

static int open_pool(void **state)
{
    (void)state;
    ScriptPoolOptions options = {.command = TEST_COMMAND, .memory_bytes_max = (uint64_t)384 << 20};
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
        TEST(endless_scripts_time_out),
        TEST(too_much_memory_is_an_error),
        TEST(deep_recursion_is_an_error),
        TEST(poisoned_prototypes_do_not_break_the_api),
        TEST(poisoned_errors_are_still_described),
        TEST(a_script_finds_no_native_functions_of_the_worker),
    };
    return cmocka_run_group_tests(tests, open_pool, close_pool);
}
