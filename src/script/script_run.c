/* script_run.c - one run: sends it to a worker and answers the worker's operations. */
#include "base/cond.h"
#include "script/script_pool_int.h"

enum {
    ARENA_BYTES = 64 << 10,
    ANSWERS_BYTES = 1 << 20, /* when the answers have more, they are sent */
};

#define LOST_TEXT                                                                             \
    "Encountered exception while executing function. Exception = RangeError: The script used" \
    " too much memory or stack, and the process in which it ran has ended."
#define MEMORY_TEXT                                                                      \
    "Encountered exception while executing function. Exception = RangeError: The script" \
    " used too much memory."

typedef struct Run {
    const ScriptRun *run;
    ScriptProcess *process;
    uint64_t hard_us;  /* of the system's clock: when the run's time is over */
    uint64_t soft_us;  /* when no more operations are accepted */
    uint64_t until_us; /* when the process is killed */
    ScriptBlocks *repeats;
    bool may_assume;  /* the worker may assume that operations succeed */
    bool must_repeat; /* it was wrong */
    Arena memory;     /* of the newest frame */
    Arena scratch;    /* of the newest operation */
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

/* Does one operation and adds its answer to those to be sent. '*has_failed' says that the script
 * has to be told of a failure. */
static Status answer_operation(Run *run, const ScriptCall *call, bool *has_failed)
{
    Buf *out = &run->process->out;
    ScriptAnswer answer = {.status_code = 0};
    Error failure = {.status = STATUS_OK};
    run->result->operations++;
    arena_reset(&run->scratch);
    Status status = run->run->calls->operate(run->run->ctx, call, &run->scratch, &answer, &failure);
    if (status != STATUS_OK && answer.ends_run) {
        run->process->state = PROCESS_LOST; /* it waits for an answer that will not come */
        *run->err = failure;
        return status;
    }
    run->must_repeat = call->is_assumed && (status != STATUS_OK || answer.is_last);
    FrameAnswer frame = {.status_code = answer.status_code,
                         .is_not_modified = answer.is_not_modified,
                         .resource = answer.resource,
                         .continuation = answer.continuation};
    if (status != STATUS_OK)
        frame = (FrameAnswer){.status_code = (uint32_t)status_http(status),
                              .has_failed = true,
                              .failure = slice_from_cstr(failure.message)};
    frame.is_last = answer.is_last;
    if (!frame_add_answer(out, &frame)) {
        frame = (FrameAnswer){.status_code = 413,
                              .has_failed = true,
                              .is_last = answer.is_last,
                              .failure = SLICE("The answer is too large: ask for a smaller page.")};
        if (!frame_add_answer(out, &frame))
            return fail_frame(run);
    }
    *has_failed = frame.has_failed;
    return STATUS_OK;
}

/* Does the operations, in order, and sends the answers. After a failure the script may end, so
 * what it has queued besides is not done before it was told; nor is anything after the time. */
static Status answer_operations(Run *run, Slice payload)
{
    FrameOperations operations;
    arena_reset(&run->memory);
    if (!frame_get_operations(payload, &run->memory, &operations))
        return fail_frame(run);
    for (size_t i = 0; i < operations.count; i++) {
        if (operations.calls[i].is_assumed && !run->may_assume)
            return fail_frame(run);
    }
    Buf *out = &run->process->out;
    frame_begin_answers(out);
    uint32_t count = 0;
    bool is_finished = false;
    while (!is_finished) {
        bool has_failed = false;
        TRY(answer_operation(run, &operations.calls[count++], &has_failed));
        is_finished = count == operations.count || has_failed || out->len > ANSWERS_BYTES ||
                      run->must_repeat || cond_now_us() >= run->hard_us;
    }
    frame_end_many(out, count);
    if (run->must_repeat)
        return STATUS_OK;
    return script_process_send(run->process, run->until_us) ? STATUS_OK
                                                            : fail_event(run, PROCESS_DIED);
}

/* ---- the run ---- */

static uint64_t left_us(uint64_t now_us, uint64_t moment_us)
{
    return moment_us > now_us ? moment_us - now_us : 0;
}

static Status send_run(Run *run)
{
    const ScriptRun *given = run->run;
    uint64_t now_us = cond_now_us();
    FrameRun frame = {
        .role = given->role,
        .wants_log = given->wants_log,
        .hard_us = left_us(now_us, run->hard_us),
        .soft_us = left_us(now_us, run->soft_us),
        .assume_us = run->may_assume ? SCRIPT_ASSUME_US : 0,
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

/* Runs the script again, without assuming anything. */
static Status repeat(Run *run)
{
    ScriptProcess *process = run->process;
    Error failure;
    Status status = run->run->calls->repeat(run->run->ctx, &failure);
    if (status != STATUS_OK) {
        process->state = PROCESS_LOST;
        *run->err = failure;
        return status;
    }
    run->must_repeat = false;
    run->may_assume = false;
    run->result->operations = 0;
    script_blocks_note(run->repeats, run->run->version);
    buf_reset(&process->out);
    frame_put_repeat(&process->out);
    if (!script_process_send(process, run->until_us))
        return fail_event(run, PROCESS_DIED);
    return send_run(run);
}

static Status converse(Run *run)
{
    for (;;) {
        FrameType type;
        Slice payload;
        ProcessEvent event = script_process_receive(run->process, run->until_us, &type, &payload);
        if (event != PROCESS_FRAME)
            return fail_event(run, event);
        if (type == FRAME_DONE)
            return finish(run, payload);
        if (type != FRAME_OPERATIONS)
            return fail_frame(run);
        TRY(answer_operations(run, payload));
        if (run->must_repeat)
            TRY(repeat(run));
    }
}

static Status run_in_process(Run *run, ScriptPool *pool)
{
    uint64_t before_us = script_process_cpu_us(run->process);
    uint64_t hard_us = script_pool_system_us(pool, run->run->hard_us);
    run->hard_us = hard_us;
    run->soft_us = script_pool_system_us(pool, run->run->soft_us);
    run->until_us = hard_us > UINT64_MAX - PROCESS_GRACE_US ? hard_us : hard_us + PROCESS_GRACE_US;
    run->repeats = script_pool_repeats(pool);
    run->may_assume =
        run->run->calls->repeat != NULL && !script_blocks_has(run->repeats, run->run->version);
    Status status = send_run(run);
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
    arena_init(&one.memory, ARENA_BYTES);
    arena_init(&one.scratch, ARENA_BYTES);
    Status status = run_once(runner, &one);
    arena_done(&one.memory);
    arena_done(&one.scratch);
    if (status != STATUS_OK && result->text.len == 0)
        result->text = arena_copy(arena, slice_from_cstr(err->message));
    script_pool_count_run(runner->pool, status != STATUS_OK);
    return status;
}
