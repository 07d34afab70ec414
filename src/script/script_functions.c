/* script_functions.c - see script_functions.h. */
#include "script/script_functions.h"

#include "base/cond.h"
#include "base/mem.h"
#include "script/script_pool_int.h"

/* What the arguments of one message may take; the rest is for their lengths. */
#define BATCH_BYTES_MAX (SCRIPT_FRAME_BYTES_MAX - ((size_t)1 << 20))

typedef struct Function {
    ScriptSource source;
    uint64_t cpu_us;
    bool is_called; /* in the message under way */
    bool is_noted;  /* went beyond its limit in this session */
} Function;

struct ScriptFunctions {
    ScriptPool *pool;
    ScriptProcess *process; /* NULL until the first call */
    uint64_t hard_us;       /* of the pool's clock */
    uint64_t until_us;      /* of the system's clock: when the process is killed */
    uint64_t cpu_us;
    bool has_failed;
    size_t count;
    Function functions[];
};

ScriptFunctions *script_functions_open(ScriptPool *pool, const ScriptSource *sources, size_t count,
                                       uint64_t hard_us)
{
    ASSERT(count <= SCRIPT_FUNCTIONS_MAX);
    ScriptFunctions *functions = mem_alloc(sizeof(*functions) + count * sizeof(Function));
    functions->pool = pool;
    functions->hard_us = hard_us;
    functions->count = count;
    for (size_t i = 0; i < count; i++)
        functions->functions[i].source = sources[i];
    return functions;
}

void script_functions_close(ScriptFunctions *functions)
{
    if (functions == NULL)
        return;
    ScriptProcess *process = functions->process;
    if (process != NULL) {
        if (process->state == PROCESS_READY) {
            buf_reset(&process->out);
            frame_put_close(&process->out);
            /* If it cannot be sent, the process is LOST, and is ended here. */
            (void)!script_process_send(process, cond_after_ms(0));
        }
        script_pool_give(functions->pool, PROCESS_FOR_FUNCTIONS, process);
    }
    mem_free(functions);
}

uint64_t script_functions_cpu_us(const ScriptFunctions *functions)
{
    return functions->cpu_us;
}

/* ---- limits ---- */

static void note(ScriptFunctions *functions, Function *function)
{
    if (!function->is_noted)
        script_blocks_note(script_pool_blocks(functions->pool), function->source.version);
    function->is_noted = true;
}

static void charge(ScriptFunctions *functions, uint32_t which, uint32_t cpu_us)
{
    Function *function = &functions->functions[which];
    functions->cpu_us += cpu_us;
    function->cpu_us += cpu_us;
    if (function->cpu_us > script_pool_options(functions->pool)->block_functions_cpu_us)
        note(functions, function);
}

/* The worker does not answer, so nobody knows which function it was. */
static void note_called(ScriptFunctions *functions)
{
    for (size_t i = 0; i < functions->count; i++) {
        if (functions->functions[i].is_called)
            note(functions, &functions->functions[i]);
    }
}

static Status check_blocked(const ScriptFunctions *functions, const ScriptFunctionCall *calls,
                            size_t count, Error *err)
{
    bool is_checked[SCRIPT_FUNCTIONS_MAX] = {false};
    for (size_t i = 0; i < count; i++) {
        uint32_t which = calls[i].which;
        ASSERT(which < functions->count);
        /* A session that is under way goes on. */
        if (is_checked[which] || functions->functions[which].is_noted)
            continue;
        is_checked[which] = true;
        const ScriptSource *source = &functions->functions[which].source;
        if (script_blocks_has(script_pool_blocks(functions->pool), source->version))
            return error_set(err, STATUS_FORBIDDEN, SUB_NONE,
                             "The script with id '%.*s' is blocked for execution because it has "
                             "violated its allowed resources limit several times.",
                             SLICE_CUT(source->id, 255));
    }
    return STATUS_OK;
}

/* ---- messages ---- */

static Status fail_event(ScriptFunctions *functions, ProcessEvent event, Error *err)
{
    note_called(functions);
    if (event == PROCESS_TIMEOUT)
        return script_timeout(err);
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "Encountered exception while executing function. Exception = RangeError: A "
                     "function of the query used too much memory or stack.");
}

static Status open_session(ScriptFunctions *functions, Error *err)
{
    uint64_t hard_us = script_pool_system_us(functions->pool, functions->hard_us);
    bool is_far = hard_us > UINT64_MAX - PROCESS_GRACE_US;
    functions->until_us = is_far ? hard_us : hard_us + PROCESS_GRACE_US;
    TRY(script_pool_take(functions->pool, PROCESS_FOR_FUNCTIONS, hard_us, &functions->process,
                         err));
    uint64_t now_us = cond_now_us();
    ScriptSource sources[SCRIPT_FUNCTIONS_MAX];
    for (size_t i = 0; i < functions->count; i++)
        sources[i] = functions->functions[i].source;
    FrameOpen open = {.hard_us = hard_us > now_us ? hard_us - now_us : 0,
                      .count = (uint32_t)functions->count,
                      .sources = sources};
    frame_put_open(&functions->process->out, &open);
    if (buf_full(&functions->process->out)) {
        buf_reset(&functions->process->out);
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "the functions of the query are too large together");
    }
    if (!script_process_send(functions->process, functions->until_us))
        return fail_event(functions, PROCESS_DIED, err);
    return STATUS_OK;
}

static Status take_results(ScriptFunctions *functions, Slice payload, ScriptFunctionCall *calls,
                           size_t count, Arena *arena, Error *err)
{
    FrameResults results;
    if (!frame_get_results(payload, arena, &results) ||
        (!results.is_timeout && results.count != count)) {
        functions->process->state = PROCESS_LOST;
        return fail_event(functions, PROCESS_DIED, err);
    }
    if (results.is_timeout)
        return fail_event(functions, PROCESS_TIMEOUT, err);
    for (size_t i = 0; i < count; i++) {
        calls[i].kind = results.calls[i].kind;
        calls[i].number = results.calls[i].number;
        calls[i].text = arena_copy(arena, results.calls[i].text);
        charge(functions, calls[i].which, results.cpu_us[i]);
    }
    return STATUS_OK;
}

static Status call_batch(ScriptFunctions *functions, ScriptFunctionCall *calls, size_t count,
                         Arena *arena, Error *err)
{
    ScriptProcess *process = functions->process;
    FrameCalls frame = {.count = (uint32_t)count, .calls = calls};
    for (size_t i = 0; i < functions->count; i++)
        functions->functions[i].is_called = false;
    for (size_t i = 0; i < count; i++)
        functions->functions[calls[i].which].is_called = true;
    frame_put_calls(&process->out, &frame);
    ASSERT(!buf_full(&process->out));
    if (!script_process_send(process, functions->until_us))
        return fail_event(functions, PROCESS_DIED, err);
    FrameType type;
    Slice payload;
    ProcessEvent event = script_process_receive(process, functions->until_us, &type, &payload);
    if (event == PROCESS_FRAME && type != FRAME_RESULTS) {
        process->state = PROCESS_LOST;
        event = PROCESS_DIED;
    }
    return event == PROCESS_FRAME ? take_results(functions, payload, calls, count, arena, err)
                                  : fail_event(functions, event, err);
}

/* How many of the calls go into one message: at least one, unless that is too large alone. */
static size_t batch_count(const ScriptFunctionCall *calls, size_t count)
{
    size_t bytes = 0;
    size_t taken = 0;
    while (taken < count && taken < SCRIPT_BATCH_CALLS_MAX &&
           calls[taken].arguments.len <= BATCH_BYTES_MAX - bytes) {
        bytes += calls[taken].arguments.len;
        taken++;
    }
    return taken;
}

static Status call_all(ScriptFunctions *functions, ScriptFunctionCall *calls, size_t count,
                       Arena *arena, Error *err)
{
    TRY(check_blocked(functions, calls, count, err));
    if (functions->process == NULL)
        TRY(open_session(functions, err));
    size_t done = 0;
    while (done < count) {
        size_t batch = batch_count(calls + done, count - done);
        if (batch == 0)
            return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                             "the arguments of a function are too large: at most %zu bytes",
                             BATCH_BYTES_MAX);
        TRY(call_batch(functions, calls + done, batch, arena, err));
        done += batch;
    }
    return STATUS_OK;
}

Status script_functions_call(ScriptFunctions *functions, ScriptFunctionCall *calls, size_t count,
                             Arena *arena, Error *err)
{
    ASSERT(!functions->has_failed);
    if (count == 0)
        return STATUS_OK;
    Status status = call_all(functions, calls, count, arena, err);
    functions->has_failed = status != STATUS_OK;
    return status;
}
