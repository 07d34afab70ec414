/* script_run.c - one run: sends it to a worker and answers the worker's operations. */
#include "base/cond.h"
#include "script/script_pool_int.h"

enum { ARENA_BYTES = 64 << 10 };

#define LOST_TEXT                                                                             \
    "Encountered exception while executing function. Exception = RangeError: The script used" \
    " too much memory or stack, and the process in which it ran has ended."
#define MEMORY_TEXT                                                                      \
    "Encountered exception while executing function. Exception = RangeError: The script" \
    " used too much memory."

typedef struct Run {
    const ScriptRun *run;
    ScriptProcess *process;
    uint64_t until_us; /* of the system's clock: when the process is killed */
    Arena *arena;
    ScriptResult *result;
    Error *err;
} Run;

/* ---- failures ---- */

static Status fail_text(Run *run, Slice text)
{
    run->result->text = text;
    return error_set(run->err, STATUS_BAD_REQUEST, SUB_NONE, "%.*s", SLICE_CUT(text, 500));
}

static Status fail_event(Run *run, ProcessEvent event)
{
    if (event == PROCESS_TIMEOUT)
        return script_timeout(run->err);
    return fail_text(run, event == PROCESS_TOO_MUCH_MEMORY ? SLICE(MEMORY_TEXT) : SLICE(LOST_TEXT));
}

/* The process has said what it must not say. */
static Status fail_frame(Run *run)
{
    run->process->state = PROCESS_LOST;
    return fail_event(run, PROCESS_DIED);
}

/* ---- operations ---- */

static Status answer_operation(Run *run, const ScriptCall *call)
{
    AUTO(arena_done) Arena scratch;
    arena_init(&scratch, ARENA_BYTES);
    ScriptAnswer answer = {.status_code = 0};
    Error failure = {.status = STATUS_OK};
    run->result->operations++;
    Status status = run->run->calls->operate(run->run->ctx, call, &scratch, &answer, &failure);
    if (status != STATUS_OK && answer.ends_run) {
        run->process->state = PROCESS_LOST; /* it waits for an answer that will not come */
        *run->err = failure;
        return status;
    }
    FrameAnswer frame = {.status_code = answer.status_code,
                         .is_not_modified = answer.is_not_modified,
                         .resource = answer.resource,
                         .continuation = answer.continuation};
    if (status != STATUS_OK)
        frame = (FrameAnswer){.status_code = (uint32_t)status_http(status),
                              .has_failed = true,
                              .failure = slice_from_cstr(failure.message)};
    frame.is_last = answer.is_last;
    frame_put_answer(&run->process->out, &frame);
    if (buf_full(&run->process->out)) {
        buf_reset(&run->process->out);
        frame = (FrameAnswer){.status_code = 413,
                              .has_failed = true,
                              .is_last = answer.is_last,
                              .failure = SLICE("The answer is too large: ask for a smaller page.")};
        frame_put_answer(&run->process->out, &frame);
    }
    return script_process_send(run->process, run->until_us) ? STATUS_OK
                                                            : fail_event(run, PROCESS_DIED);
}

/* ---- the run ---- */

static Status send_run(Run *run, uint64_t hard_us, uint64_t soft_us)
{
    const ScriptRun *given = run->run;
    FrameRun frame = {
        .role = given->role,
        .wants_log = given->wants_log,
        .hard_us = hard_us,
        .soft_us = soft_us,
        .id = given->id,
        .body = given->body,
        .arguments = given->arguments,
        .self_link = given->self_link,
        .alt_link = given->alt_link,
        .operation = given->operation,
        .request_body = given->request_body,
        .response_body = given->response_body,
        .quota = given->quota,
        .usage = given->usage,
    };
    frame_put_run(&run->process->out, &frame);
    if (buf_full(&run->process->out)) {
        buf_reset(&run->process->out);
        return fail_text(run, SLICE("The script and its arguments are too large."));
    }
    return script_process_send(run->process, run->until_us) ? STATUS_OK
                                                            : fail_event(run, PROCESS_DIED);
}

static Status finish(Run *run, Slice payload)
{
    FrameDone done;
    if (!frame_get_done(payload, &done))
        return fail_frame(run);
    ScriptResult *result = run->result;
    result->log = arena_copy(run->arena, done.log);
    switch (done.outcome) {
    case FRAME_OUTCOME_OK:
        result->response_body = arena_copy(run->arena, done.response_body);
        result->request_body = arena_copy(run->arena, done.request_body);
        return STATUS_OK;
    case FRAME_OUTCOME_TIMEOUT:
        return script_timeout(run->err);
    case FRAME_OUTCOME_THROWN:
        result->number = done.number;
        return fail_text(run, arena_copy(run->arena, done.text));
    case FRAME_OUTCOME_COUNT:
        break;
    }
    return fail_frame(run);
}

static Status converse(Run *run)
{
    for (;;) {
        FrameType type;
        Slice payload;
        ScriptCall call;
        ProcessEvent event = script_process_receive(run->process, run->until_us, &type, &payload);
        if (event != PROCESS_FRAME)
            return fail_event(run, event);
        if (type == FRAME_DONE)
            return finish(run, payload);
        if (type != FRAME_OPERATION || !frame_get_operation(payload, &call))
            return fail_frame(run);
        TRY(answer_operation(run, &call));
    }
}

static uint64_t left_us(uint64_t now_us, uint64_t moment_us)
{
    return moment_us > now_us ? moment_us - now_us : 0;
}

static Status run_in_process(Run *run, ScriptPool *pool)
{
    uint64_t before_us = script_process_cpu_us(run->process);
    uint64_t now_us = cond_now_us();
    uint64_t hard_us = script_pool_system_us(pool, run->run->hard_us);
    uint64_t soft_us = script_pool_system_us(pool, run->run->soft_us);
    run->until_us = hard_us > UINT64_MAX - PROCESS_GRACE_US ? hard_us : hard_us + PROCESS_GRACE_US;
    Status status = send_run(run, left_us(now_us, hard_us), left_us(now_us, soft_us));
    if (status == STATUS_OK)
        status = converse(run);
    uint64_t after_us = script_process_cpu_us(run->process);
    run->result->cpu_us = left_us(before_us, after_us);
    if (run->result->cpu_us > script_pool_options(pool)->block_cpu_us)
        script_blocks_note(script_pool_blocks(pool), run->run->version);
    return status;
}

static Status run_once(ScriptRunner *runner, Run *run)
{
    ScriptPool *pool = runner->pool;
    if (script_blocks_has(script_pool_blocks(pool), run->run->version))
        return error_set(run->err, STATUS_FORBIDDEN, SUB_NONE,
                         "The script with id '%.*s' is blocked for execution because it has "
                         "violated its allowed resource limit several times.",
                         SLICE_CUT(run->run->id, 255));
    if (runner->process == NULL) {
        uint64_t until_us = script_pool_system_us(pool, run->run->hard_us);
        TRY(script_pool_take(pool, PROCESS_FOR_JOBS, until_us, &runner->process, run->err));
    }
    run->process = runner->process;
    Status status = run_in_process(run, pool);
    if (runner->process->state == PROCESS_LOST)
        script_pool_give(pool, PROCESS_FOR_JOBS, TAKE(runner->process));
    return status;
}

Status script_run(ScriptRunner *runner, const ScriptRun *run, Arena *arena, ScriptResult *result,
                  Error *err)
{
    ASSERT(run->calls != NULL);
    *result = (ScriptResult){.number = 0};
    Run one = {.run = run, .arena = arena, .result = result, .err = err};
    Status status = run_once(runner, &one);
    if (status != STATUS_OK && result->text.len == 0)
        result->text = arena_copy(arena, slice_from_cstr(err->message));
    script_pool_count_run(runner->pool, status != STATUS_OK);
    return status;
}
