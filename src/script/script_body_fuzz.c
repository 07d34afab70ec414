/* script_body_fuzz.c - any text as the body of a script, and as its arguments, run in a real worker
 * process.
 *
 *     input = | role u8 | arguments, or the body of a trigger's request | '\n' | body of the script
 * |
 *
 * Whatever it is, the run returns in time with one of the statuses that script_run names, what it
 * answers is UTF-8, and the next input finds a worker.
 *
 * The engine is not instrumented, so inputs are found by the server's side only: this is for the
 * worker, its API and the way back, not for the engine.
 */
#include "base/latch.h"
#include "base/mem.h"
#include "script/script_pool.h"
#include "script/script_worker.h"
#include "json/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define WORKER_ARGUMENT "--script-worker"
#define HARD_US         ((uint64_t)300000)

static const char *const COMMAND[] = {"/proc/self/exe", WORKER_ARGUMENT, NULL};
static ScriptPool *pool; /* lives as long as the process, as libFuzzer has no other place for it */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    if (*argc > 1 && strcmp((*argv)[1], WORKER_ARGUMENT) == 0)
        exit(script_worker_main());
    return 0;
}

/* Knows no items, and takes all that are made. */
static Status operate(void *ctx, const ScriptCall *call, Arena *arena, ScriptAnswer *answer,
                      Error *err)
{
    (void)ctx;
    Json body;
    answer->status_code = 200;
    switch (call->kind) {
    case SCRIPT_CALL_LIST:
    case SCRIPT_CALL_QUERY:
        answer->resource = SLICE("[{\"id\":\"1\"}]");
        return STATUS_OK;
    case SCRIPT_CALL_CREATE:
    case SCRIPT_CALL_UPSERT:
        TRY(json_parse(arena, call->body, &body, err));
        answer->resource = call->body;
        return STATUS_OK;
    case SCRIPT_CALL_READ:
    case SCRIPT_CALL_REPLACE:
    case SCRIPT_CALL_DELETE:
    case SCRIPT_CALL_COUNT:
        break;
    }
    return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "there is no such item");
}

static Status repeat(void *ctx, Error *err)
{
    (void)ctx;
    (void)err;
    return STATUS_OK;
}

static const ScriptCalls CALLS = {.operate = operate, .repeat = repeat};

typedef struct FuzzJob {
    ScriptJob job;
    ScriptRun run;
    Arena *arena;
    Latch done;
} FuzzJob;

static void expect_text(Slice text)
{
    ASSERT(text.len == 0 || json_utf8_valid(text));
}

static void run_one(ScriptJob *script_job, ScriptRunner *runner)
{
    FuzzJob *job = CONTAINER_OF(script_job, FuzzJob, job);
    ScriptResult result;
    Error err;
    Status status = script_run(runner, &job->run, job->arena, &result, &err);
    ASSERT(status == STATUS_OK || status == STATUS_BAD_REQUEST || status == STATUS_TIMEOUT);
    expect_text(result.response_body);
    expect_text(result.request_body);
    expect_text(result.text);
    expect_text(result.log);
    latch_post(&job->done);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (pool == NULL)
        pool = script_pool_open(&(ScriptPoolOptions){
            .command = COMMAND, .workers_max = 1, .memory_bytes_max = (uint64_t)2 << 30});
    Slice body = slice_make(data + 1, size - 1);
    Slice arguments = slice_cut(&body, '\n');
    if (body.ptr == NULL || !json_utf8_valid(body) || !json_utf8_valid(arguments))
        return 0; /* which the api refuses */
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    uint64_t hard_us = clock_monotonic_us(clock_real()) + HARD_US;
    FuzzJob job = {
        .job = {.run = run_one},
        .run = {.role = (ScriptRole)(data[0] % SCRIPT_ROLE_COUNT),
                .id = SLICE("fuzz"),
                .body = body,
                .arguments = arguments,
                .request_body = SLICE("{\"id\":\"1\"}"),
                .response_body = SLICE("{\"id\":\"1\"}"),
                .self_link = SLICE("dbs/Rdb==/colls/Rcoll==/"),
                .alt_link = SLICE("dbs/d/colls/c"),
                .operation = SLICE("Create"),
                .wants_log = true,
                .hard_us = hard_us,
                .soft_us = hard_us - HARD_US / 4,
                .calls = &CALLS},
        .arena = &arena,
    };
    latch_init(&job.done);
    Error err;
    Status status = script_pool_post(pool, &job.job, &err);
    ASSERT(status == STATUS_OK);
    latch_wait(&job.done);
    latch_done(&job.done);
    return 0;
}
