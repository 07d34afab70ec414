/* script_testing_int.h - for tests: a pool whose workers are this very test program, and a small
 * table of items on which scripts operate.
 *
 * A test program's main begins with TEST_WORKER_MAIN, which makes a worker of it when the pool has
 * started it.
 */
#pragma once

#include "base/latch.h"
#include "base/testing.h"
#include "script/script_functions.h"
#include "script/script_worker.h"
#include "json/json.h"

#include <string.h>

#define TEST_WORKER_ARGUMENT "--script-worker"
#define TEST_WORKER_MAIN(argc, argv)                                    \
    do {                                                                \
        if ((argc) > 1 && strcmp((argv)[1], TEST_WORKER_ARGUMENT) == 0) \
            return script_worker_main();                                \
    } while (0)

static const char *const TEST_COMMAND[] UNUSED = {"/proc/self/exe", TEST_WORKER_ARGUMENT, NULL};

#define TEST_SELF_LINK "dbs/Rdb==/colls/Rcoll==/"
#define TEST_ALT_LINK  "dbs/shop/colls/things"
#define TEST_QUOTA \
    "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;"
#define TEST_USAGE "documentSize=0;documentsSize=1;documentsCount=3;collectionSize=2;"

/* Far more than a busy machine needs. */
#define TEST_HARD_US ((uint64_t)60 * 1000000)

/* Sanitizers take several times as much memory as the engine alone. */
#define TEST_MEMORY_BYTES ((uint64_t)2 << 30)

/* ---- the table ---- */

enum { TEST_ITEMS_MAX = 256 };

typedef struct TestItem {
    char *id; /* NULL if the item was deleted */
    char *text;
} TestItem;

typedef struct TestTable {
    TestItem items[TEST_ITEMS_MAX];
    size_t count;
    Slice last_query;
    ScriptCall last; /* its texts are not valid any more */
    bool ends_next_run;
    uint32_t last_at;  /* the operation after which no more are accepted; 0: none */
    uint32_t operated; /* since the run began, or began anew */
    uint32_t repeats;
    ScriptPool *pool; /* not NULL: a query calls a function of a session of its own */
} TestTable;

static inline void test_table_done(TestTable *table)
{
    for (size_t i = 0; i < table->count; i++) {
        mem_free(TAKE(table->items[i].id));
        mem_free(TAKE(table->items[i].text));
    }
    table->count = 0;
}

static inline char *test_text(Slice text)
{
    char *copy = mem_alloc(text.len + 1);
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    return copy;
}

static inline size_t test_table_find(const TestTable *table, const ScriptCall *call, Slice name)
{
    for (size_t i = 0; i < table->count; i++) {
        char rid[32];
        (void)snprintf(rid, sizeof(rid), "rid%zu", i);
        const char *id = table->items[i].id;
        if (id != NULL && slice_equal(slice_from_cstr(call->is_rid ? rid : id), name))
            return i;
    }
    return SIZE_MAX;
}

/* The id of a JSON text; an empty slice if it has none. */
static inline Slice test_body_id(Arena *arena, Slice body)
{
    Json value;
    Error err;
    if (json_parse(arena, body, &value, &err) != STATUS_OK)
        return SLICE_EMPTY;
    Json id = json_get(value, SLICE("id"));
    return json_is(id, JSON_STRING) ? json_string(id) : SLICE_EMPTY;
}

static inline Status test_table_put(TestTable *table, size_t at, const ScriptCall *call, Slice id,
                                    ScriptAnswer *answer)
{
    bool is_new = at == SIZE_MAX;
    if (is_new)
        at = table->count++;
    assert_true(at < TEST_ITEMS_MAX);
    TestItem *item = &table->items[at];
    mem_free(item->id);
    mem_free(item->text);
    item->id = test_text(id);
    char tail[128];
    (void)snprintf(tail, sizeof(tail), ",\"_self\":\"%sdocs/rid%zu/\",\"_etag\":\"e%zu\"}",
                   TEST_SELF_LINK, at, at);
    Buf text;
    buf_init(&text, 64 << 20);
    buf_slice(&text, slice_first(call->body, call->body.len - 1));
    buf_slice(&text, slice_from_cstr(tail));
    item->text = test_text(buf_view(&text));
    buf_done(&text);
    if (call->wants_item)
        answer->resource = slice_from_cstr(item->text);
    answer->status_code = is_new ? 201 : 200;
    return STATUS_OK;
}

static inline Status test_table_list(TestTable *table, const ScriptCall *call, Arena *arena,
                                     ScriptAnswer *answer)
{
    uint64_t at = 0;
    (void)!slice_to_u64(call->continuation, &at);
    Buf text;
    buf_init(&text, 64 << 20);
    buf_byte(&text, '[');
    int32_t found = 0;
    for (; at < table->count && (call->page_size < 0 || found < call->page_size); at++) {
        if (table->items[at].id == NULL)
            continue;
        buf_slice(&text, slice_from_cstr(found++ > 0 ? "," : ""));
        buf_slice(&text, slice_from_cstr(table->items[at].text));
    }
    buf_byte(&text, ']');
    answer->resource = arena_copy(arena, buf_view(&text));
    buf_done(&text);
    answer->status_code = 200;
    if (at < table->count)
        answer->continuation = arena_format(arena, "%zu", (size_t)at);
    return STATUS_OK;
}

/* Answers with what was asked, or with what a function returns for it. */
static inline Status test_table_query(TestTable *table, const ScriptCall *call, Arena *arena,
                                      ScriptAnswer *answer, Error *err)
{
    answer->status_code = 200;
    if (slice_equal(call->query, SLICE("bad")))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Syntax error, incorrect syntax near 'bad'.");
    if (slice_equal(call->query, SLICE("udf"))) {
        ScriptSource source = {.id = SLICE("twice"),
                               .body = SLICE("function (x) { return 2 * x; }")};
        AUTO(script_functions_close)
        ScriptFunctions *functions = script_functions_open(table->pool, &source, 1, UINT64_MAX);
        ScriptFunctionCall one = {.which = 0, .arguments = SLICE("[21]")};
        TRY(script_functions_call(functions, &one, 1, arena, err));
        answer->resource = arena_format(arena, "[%.*s]", SLICE_ARG(one.text));
        return STATUS_OK;
    }
    Buf text;
    buf_init(&text, 1 << 20);
    buf_slice(&text, SLICE("[{\"query\":"));
    json_print_string(call->query, &text);
    buf_slice(&text, SLICE(",\"parameters\":"));
    buf_slice(&text, call->parameters.len > 0 ? call->parameters : SLICE("null"));
    buf_slice(&text, SLICE("}]"));
    answer->resource = arena_copy(arena, buf_view(&text));
    buf_done(&text);
    return STATUS_OK;
}

static inline Status test_operate(void *ctx, const ScriptCall *call, Arena *arena,
                                  ScriptAnswer *answer, Error *err)
{
    TestTable *table = ctx;
    table->last = *call;
    answer->is_last = ++table->operated == table->last_at;
    if (table->ends_next_run) {
        answer->ends_run = true;
        return error_set(err, STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE, "the partition has moved");
    }
    if (call->kind == SCRIPT_CALL_LIST)
        return test_table_list(table, call, arena, answer);
    if (call->kind == SCRIPT_CALL_QUERY)
        return test_table_query(table, call, arena, answer, err);
    bool has_name = call->kind != SCRIPT_CALL_CREATE && call->kind != SCRIPT_CALL_UPSERT;
    Slice id = call->body.len > 0 ? test_body_id(arena, call->body) : SLICE_EMPTY;
    size_t at = test_table_find(table, call, has_name ? call->name : id);
    if (has_name && at == SIZE_MAX)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                         "Entity with the specified id does not exist.");
    char etag[32];
    (void)snprintf(etag, sizeof(etag), "e%zu", at);
    if (call->if_match.len > 0 && !slice_equal(call->if_match, slice_from_cstr(etag)))
        return error_set(err, STATUS_PRECONDITION_FAILED, SUB_NONE,
                         "One of the specified pre-condition is not met");
    if (call->kind == SCRIPT_CALL_READ) {
        answer->is_not_modified = slice_equal(call->if_none_match, slice_from_cstr(etag));
        answer->status_code = answer->is_not_modified ? 304 : 200;
        if (!answer->is_not_modified && call->wants_item)
            answer->resource = slice_from_cstr(table->items[at].text);
        return STATUS_OK;
    }
    if (call->kind == SCRIPT_CALL_DELETE) {
        mem_free(TAKE(table->items[at].id));
        answer->status_code = 204;
        return STATUS_OK;
    }
    if (id.len == 0)
        return error_set(
            err, STATUS_BAD_REQUEST, SUB_NONE,
            "The input content is invalid because the required properties - 'id; ' - are missing");
    if (call->kind == SCRIPT_CALL_CREATE && at != SIZE_MAX)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "Entity with the specified id already exists in the system.");
    return test_table_put(table, at, call, id, answer);
}

/* The table was empty when the run began. */
static inline Status test_repeat(void *ctx, Error *err)
{
    (void)err;
    TestTable *table = ctx;
    test_table_done(table);
    table->operated = 0;
    table->repeats++;
    return STATUS_OK;
}

static const ScriptCalls TEST_CALLS UNUSED = {.operate = test_operate};
static const ScriptCalls TEST_REPEATING_CALLS UNUSED = {.operate = test_operate,
                                                        .repeat = test_repeat};

/* ---- runs ---- */

typedef struct TestJob {
    ScriptJob job;
    const ScriptRun *runs;
    size_t count;
    Arena *arena;
    ScriptResult *results;
    Status *statuses;
    Error *errors;
    Latch done;
} TestJob;

static inline void test_run_job(ScriptJob *script_job, ScriptRunner *runner)
{
    TestJob *job = CONTAINER_OF(script_job, TestJob, job);
    for (size_t i = 0; i < job->count; i++)
        job->statuses[i] =
            script_run(runner, &job->runs[i], job->arena, &job->results[i], &job->errors[i]);
    latch_post(&job->done);
}

/* Runs one script on a thread of the pool and waits for it. */
static inline Status test_run(ScriptPool *pool, const ScriptRun *run, Arena *arena,
                              ScriptResult *result, Error *error)
{
    Status status = STATUS_OK;
    TestJob job = {.job = {.run = test_run_job},
                   .runs = run,
                   .count = 1,
                   .arena = arena,
                   .results = result,
                   .statuses = &status,
                   .errors = error};
    latch_init(&job.done);
    assert_ok(script_pool_post(pool, &job.job, err));
    latch_wait(&job.done);
    latch_done(&job.done);
    return status;
}

static inline ScriptRun test_make_run(TestTable *table, ScriptRole role, const char *body)
{
    return (ScriptRun){
        .role = role,
        .id = SLICE("s1"),
        .body = slice_from_cstr(body),
        .self_link = SLICE(TEST_SELF_LINK),
        .alt_link = SLICE(TEST_ALT_LINK),
        .operation = SLICE("Create"),
        .quota = SLICE(TEST_QUOTA),
        .usage = SLICE(TEST_USAGE),
        .hard_us = clock_monotonic_us(clock_real()) + TEST_HARD_US,
        .soft_us = clock_monotonic_us(clock_real()) + TEST_HARD_US,
        .calls = &TEST_CALLS,
        .ctx = table,
    };
}
