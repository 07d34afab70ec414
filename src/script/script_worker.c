/* script_worker.c - see script_worker.h.
 *
 * One thread reads a frame, does what it says and answers. The next context is made after the
 * answer was sent, while the server is busy with it.
 */
#include "script/script_worker.h"

#include "base/cond.h"
#include "base/mem.h"
#include "script/script_context_int.h"
#include "script/script_frame_int.h"
#include "script/script_sandbox_int.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    ARENA_BYTES = 64 << 10,
    COLLECT_EVERY = 32, /* contexts; a used one has no other reason to be collected soon */
};

/* What all results of a batch of calls may take. */
#define RESULTS_BYTES_MAX (SCRIPT_FRAME_BYTES_MAX - ((size_t)1 << 20))

/* As in server_api.js. */
typedef enum OperationBit {
    OPERATION_KIND_MASK = (1 << 4) - 1,
    OPERATION_IS_RID = 1 << 4,
    OPERATION_ENABLES_SCAN = 1 << 5,
    OPERATION_INDEX_SHIFT = 6,
    OPERATION_INDEX_MASK = 3,
    OPERATION_HAS_PAGE_SIZE = 1 << 8,
    OPERATION_HAS_NAME = 1 << 9,
    OPERATION_HAS_BODY = 1 << 10,
    OPERATION_HAS_QUERY = 1 << 11,
    OPERATION_HAS_PARAMETERS = 1 << 12,
    OPERATION_HAS_IF_MATCH = 1 << 13,
    OPERATION_HAS_IF_NONE_MATCH = 1 << 14,
    OPERATION_HAS_CONTINUATION = 1 << 15,
    OPERATION_WANTS_ITEM = 1 << 16,
    OPERATION_IS_ASSUMED = 1 << 17,
} OperationBit;

typedef enum AnswerBit {
    ANSWER_STATUS_MASK = (1 << 10) - 1,
    ANSWER_IS_NOT_MODIFIED = 1 << 10,
    ANSWER_IS_LAST = 1 << 11,
    ANSWER_HAS_MORE = 1 << 12,
} AnswerBit;

typedef struct Worker {
    ScriptEngine engine;
    ScriptContext spare; /* fresh, or in use by a session of functions */
    Arena arena;         /* reset for each frame */
    Arena session;       /* sources of functions, while a session is open */
    Buf in;
    Buf out;
    uint32_t contexts; /* used since the last collection */

    /* The session of functions. */
    ScriptSource *sources;
    bool *is_defined;
    ScriptFailure *failures; /* of those that do not compile */
    uint32_t source_count;
} Worker;

/* ---- the socket ---- */

static bool read_all(void *to, size_t len)
{
    char *at = to;
    while (len > 0) {
        ssize_t got = read(SCRIPT_WORKER_FD, at, len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        len -= (size_t)got;
    }
    return true;
}

static bool write_all(Slice bytes)
{
    while (bytes.len > 0) {
        ssize_t put = write(SCRIPT_WORKER_FD, bytes.ptr, bytes.len);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        bytes = slice_from(bytes, (size_t)put);
    }
    return true;
}

/* False if the server has closed the socket. */
static bool receive(Worker *worker, FrameType *type, Slice *payload)
{
    char head[SCRIPT_FRAME_HEAD_BYTES];
    size_t len = 0;
    if (!read_all(head, sizeof(head)) || !frame_head(head, type, &len))
        return false;
    size_t rest = len - SCRIPT_FRAME_HEAD_BYTES;
    buf_reset(&worker->in);
    if (!buf_reserve(&worker->in, rest) || !read_all(worker->in.ptr, rest))
        return false;
    worker->in.len = rest;
    *payload = buf_view(&worker->in);
    return true;
}

static bool send_frame(Worker *worker)
{
    ASSERT(!buf_full(&worker->out));
    bool is_sent = write_all(buf_view(&worker->out));
    buf_reset(&worker->out);
    return is_sent;
}

/* ---- contexts ---- */

static bool renew_context(Worker *worker)
{
    Error err;
    script_context_done(&worker->spare);
    worker->engine.times = (ScriptTimes){.hard_us = UINT64_MAX};
    if (script_context_init(&worker->spare, &worker->engine, &err) != STATUS_OK)
        return false;
    if (++worker->contexts >= COLLECT_EVERY) {
        worker->contexts = 0;
        worker->engine.js.JSGarbageCollect(worker->spare.ref);
    }
    return true;
}

static void set_times(Worker *worker, uint64_t hard_us)
{
    uint64_t now_us = cond_now_us();
    worker->engine.times =
        (ScriptTimes){.hard_us = hard_us > UINT64_MAX - now_us ? UINT64_MAX : now_us + hard_us};
}

/* ---- a run ---- */

typedef enum Step {
    STEP_OK,
    STEP_FAILED, /* what happened to the script is in 'failure' */
    STEP_REPEAT, /* the server will run the script again */
    STEP_LOST,   /* the worker is of no use any more */
} Step;

static Step begin_run(Worker *worker, const FrameRun *run, ScriptFailure *failure)
{
    ScriptContext *context = &worker->spare;
    JSValueRef begin[] = {
        script_number_value(context, run->role),
        script_text_value(context, run->id),
        script_text_value(context, run->self_link),
        script_text_value(context, run->alt_link),
        script_text_value(context, run->operation),
        script_text_value(context, run->request_body),
        script_text_value(context, run->response_body),
        script_text_value(context, run->quota),
        script_text_value(context, run->usage),
        script_bool_value(context, run->wants_log),
        script_number_value(context, (double)run->soft_us / 1000),
        script_number_value(context, (double)run->assume_us / 1000),
    };
    JSValueRef result = NULL;
    if (!script_call_api(context, API_begin, ARRAY_COUNT(begin), begin, &result, &worker->arena,
                         failure))
        return STEP_FAILED;
    if (run->role == SCRIPT_ROLE_PROCEDURE) {
        JSValueRef arguments = script_text_value(context, run->arguments);
        if (!script_call_api(context, API_setArguments, 1, &arguments, &result, &worker->arena,
                             failure))
            return STEP_FAILED;
        if (worker->engine.js.JSValueIsString(context->ref, result)) {
            *failure = (ScriptFailure){.text = script_value_text(context, result, &worker->arena)};
            return STEP_FAILED;
        }
    }
    JSValueRef main = NULL;
    if (!script_compile(context, run->id, run->body, &main, &worker->arena, failure) ||
        !script_call_api(context, API_start, 1, &main, &result, &worker->arena, failure))
        return STEP_FAILED;
    return STEP_OK;
}

/* A list of operations that server_api.js has made: how many operations there are, then of each its
 * bits and what they say that it has. */
typedef struct OperationReader {
    const ScriptContext *context;
    JSValueRef list;
    unsigned at; /* the index of the next element */
    Arena *arena;
} OperationReader;

static double next_number(OperationReader *reader)
{
    JSValueRef value = script_get_at(reader->context, reader->list, reader->at++);
    return reader->context->engine->js.JSValueToNumber(reader->context->ref, value, NULL);
}

static Slice next_text(OperationReader *reader, uint32_t bits, OperationBit bit)
{
    if ((bits & bit) == 0)
        return SLICE_EMPTY;
    JSValueRef value = script_get_at(reader->context, reader->list, reader->at++);
    return script_value_text(reader->context, value, reader->arena);
}

static void read_operation(OperationReader *reader, ScriptCall *call)
{
    uint32_t bits = (uint32_t)next_number(reader);
    *call = (ScriptCall){
        .kind = (ScriptCallKind)(bits & OPERATION_KIND_MASK),
        .is_rid = (bits & OPERATION_IS_RID) != 0,
        .index_action = (ScriptIndexAction)(bits >> OPERATION_INDEX_SHIFT & OPERATION_INDEX_MASK),
        .enables_scan = (bits & OPERATION_ENABLES_SCAN) != 0,
        .wants_item = (bits & OPERATION_WANTS_ITEM) != 0,
        .is_assumed = (bits & OPERATION_IS_ASSUMED) != 0,
        .page_size = SCRIPT_PAGE_SIZE_DEFAULT,
    };
    if ((bits & OPERATION_HAS_PAGE_SIZE) != 0)
        call->page_size = (int32_t)next_number(reader);
    call->name = next_text(reader, bits, OPERATION_HAS_NAME);
    call->body = next_text(reader, bits, OPERATION_HAS_BODY);
    call->query = next_text(reader, bits, OPERATION_HAS_QUERY);
    call->parameters = next_text(reader, bits, OPERATION_HAS_PARAMETERS);
    call->if_match = next_text(reader, bits, OPERATION_HAS_IF_MATCH);
    call->if_none_match = next_text(reader, bits, OPERATION_HAS_IF_NONE_MATCH);
    call->continuation = next_text(reader, bits, OPERATION_HAS_CONTINUATION);
}

/* Calls the callback of the first operation in the queue. '*list' is what deliver() of
 * server_api.js returns. */
static Step deliver(Worker *worker, const FrameAnswer *answer, bool has_more, JSValueRef *list,
                    ScriptFailure *failure)
{
    ScriptContext *context = &worker->spare;
    const Engine *js = &worker->engine.js;
    uint32_t bits = answer->status_code & ANSWER_STATUS_MASK;
    bits |= answer->is_not_modified ? ANSWER_IS_NOT_MODIFIED : 0;
    bits |= answer->is_last ? ANSWER_IS_LAST : 0;
    bits |= has_more ? ANSWER_HAS_MORE : 0;
    JSValueRef none = js->JSValueMakeUndefined(context->ref);
    JSValueRef arguments[] = {
        script_number_value(context, bits),
        answer->resource.len > 0 ? script_text_value(context, answer->resource) : none,
        answer->continuation.len > 0 ? script_text_value(context, answer->continuation) : none,
        answer->has_failed ? script_text_value(context, answer->failure) : none,
    };
    return script_call_api(context, API_deliver, ARRAY_COUNT(arguments), arguments, list,
                           &worker->arena, failure)
               ? STEP_OK
               : STEP_FAILED;
}

/* Operations that were sent. Those that are assumed come first. */
typedef struct Sent {
    uint32_t count;
    uint32_t assumed;
} Sent;

/* Writes the frame with the operations of a list. False if it would be too large: then there is
 * only one in it, since server_api.js hands out several only if they are small. */
static bool put_operations(Worker *worker, JSValueRef list, Sent *sent)
{
    OperationReader reader = {.context = &worker->spare, .list = list, .arena = &worker->arena};
    *sent = (Sent){.count = (uint32_t)next_number(&reader)};
    frame_begin_operations(&worker->out);
    for (uint32_t i = 0; i < sent->count; i++) {
        ScriptCall call;
        read_operation(&reader, &call);
        frame_add_operation(&worker->out, &call);
        sent->assumed += call.is_assumed;
    }
    frame_end_many(&worker->out, sent->count);
    return !buf_full(&worker->out);
}

static Step call_step(Worker *worker, ApiFunction which, JSValueRef *result, ScriptFailure *failure)
{
    return script_call_api(&worker->spare, which, 0, NULL, result, &worker->arena, failure)
               ? STEP_OK
               : STEP_FAILED;
}

static Step deliver_all(Worker *worker, const FrameAnswers *answers, Sent sent, JSValueRef *list,
                        ScriptFailure *failure)
{
    *list = worker->engine.js.JSValueMakeUndefined(worker->spare.ref);
    uint32_t settled = answers->count < sent.assumed ? answers->count : sent.assumed;
    JSValueRef number = script_number_value(&worker->spare, settled);
    JSValueRef none = NULL;
    if (settled > 0 &&
        !script_call_api(&worker->spare, API_settle, 1, &number, &none, &worker->arena, failure))
        return STEP_FAILED;
    Step step = STEP_OK;
    for (size_t i = settled; step == STEP_OK && i < answers->count; i++)
        step = deliver(worker, &answers->answers[i], i + 1 < answers->count, list, failure);
    return step;
}

/* Has the operations of '*list' made by the server, and calls the callbacks of those that it has
 * answered. '*list' is the next one then, if it is known. */
static Step operate(Worker *worker, JSValueRef *list, ScriptFailure *failure)
{
    Sent sent;
    bool has_room = put_operations(worker, *list, &sent);
    if (sent.count == 0) {
        buf_reset(&worker->out);
        return call_step(worker, API_refuse, list, failure);
    }
    if (!has_room && sent.assumed == 0) {
        buf_reset(&worker->out);
        FrameAnswer refused = {
            .status_code = 413, .has_failed = true, .failure = SLICE("Request size is too large.")};
        return deliver(worker, &refused, false, list, failure);
    }
    FrameType type;
    Slice payload;
    FrameAnswers answers;
    if (!has_room || !send_frame(worker) || !receive(worker, &type, &payload))
        return STEP_LOST;
    if (type == FRAME_REPEAT)
        return STEP_REPEAT;
    if (type != FRAME_ANSWERS || !frame_get_answers(payload, &worker->arena, &answers) ||
        answers.count > sent.count)
        return STEP_LOST;
    return deliver_all(worker, &answers, sent, list, failure);
}

static bool is_list(const Worker *worker, JSValueRef value)
{
    return value != NULL && worker->engine.js.JSValueIsObject(worker->spare.ref, value);
}

static Step run_operations(Worker *worker, ScriptFailure *failure)
{
    JSValueRef list = NULL;
    for (;;) {
        arena_reset(&worker->arena);
        Step step = is_list(worker, list) ? operate(worker, &list, failure)
                                          : call_step(worker, API_take, &list, failure);
        if (step != STEP_OK)
            return step;
        if (worker->engine.js.JSValueIsUndefined(worker->spare.ref, list)) {
            /* What the last callback's promises have made ready has run only now. */
            step = call_step(worker, API_take, &list, failure);
            if (step != STEP_OK || worker->engine.js.JSValueIsUndefined(worker->spare.ref, list))
                return step;
        }
    }
}

/* A script that has failed may have assumed too much. Whatever it has assumed is made before its
 * failure counts. */
static Step check_assumed(Worker *worker, ScriptFailure *failure)
{
    for (;;) {
        JSValueRef list = NULL;
        ScriptFailure other;
        Step step = call_step(worker, API_listAssumed, &list, &other);
        if (step == STEP_OK && !is_list(worker, list))
            return STEP_FAILED;
        if (step == STEP_OK)
            step = operate(worker, &list, &other);
        if (step == STEP_FAILED)
            *failure = other;
        if (step != STEP_OK)
            return step;
    }
}

static Slice read_log(Worker *worker)
{
    ScriptContext *context = &worker->spare;
    JSValueRef log = NULL;
    ScriptFailure ignored;
    worker->engine.times.is_stopped = false;
    worker->engine.times.hard_us = UINT64_MAX;
    if (!script_call_api(context, API_getLog, 0, NULL, &log, &worker->arena, &ignored))
        return SLICE_EMPTY;
    return script_value_text(context, log, &worker->arena);
}

static bool run_script(Worker *worker, const FrameRun *run)
{
    ScriptContext *context = &worker->spare;
    ScriptFailure failure = {0};
    FrameDone done = {.outcome = FRAME_OUTCOME_OK};
    set_times(worker, run->hard_us);
    arena_reset(&worker->arena);
    Step step = begin_run(worker, run, &failure);
    if (step == STEP_OK)
        step = run_operations(worker, &failure);
    if (step == STEP_FAILED && !failure.is_timeout)
        step = check_assumed(worker, &failure);
    if (step == STEP_LOST)
        return false;
    if (step == STEP_REPEAT)
        return renew_context(worker);
    JSValueRef texts = NULL;
    if (step == STEP_OK &&
        !script_call_api(context, API_finish, 0, NULL, &texts, &worker->arena, &failure))
        step = STEP_FAILED;
    if (step == STEP_OK) {
        done.response_body = script_get_text(context, texts, "response", &worker->arena);
        done.request_body = script_get_text(context, texts, "request", &worker->arena);
    } else {
        done.outcome = failure.is_timeout ? FRAME_OUTCOME_TIMEOUT : FRAME_OUTCOME_THROWN;
        done.number = failure.number;
        done.text = failure.text;
    }
    if (run->wants_log)
        done.log = read_log(worker);
    frame_put_done(&worker->out, &done);
    if (buf_full(&worker->out)) {
        buf_reset(&worker->out);
        done =
            (FrameDone){.outcome = FRAME_OUTCOME_THROWN,
                        .number = 413,
                        .text = SLICE("Encountered exception while executing function. Exception "
                                      "= Error: the result of the script is too large"),
                        .log = done.log};
        frame_put_done(&worker->out, &done);
    }
    return send_frame(worker) && renew_context(worker);
}

/* ---- functions ---- */

static bool open_functions(Worker *worker, const FrameOpen *open)
{
    set_times(worker, open->hard_us);
    Arena *arena = &worker->session;
    arena_reset(arena);
    worker->source_count = open->count;
    worker->sources = ARENA_NEW_ARRAY(arena, ScriptSource, open->count);
    worker->is_defined = ARENA_NEW_ARRAY(arena, bool, open->count);
    worker->failures = ARENA_NEW_ARRAY(arena, ScriptFailure, open->count);
    for (size_t i = 0; i < open->count; i++) {
        worker->sources[i].id = arena_copy(arena, open->sources[i].id);
        worker->sources[i].body = arena_copy(arena, open->sources[i].body);
    }
    return true;
}

/* Compiles a function when it is first called. A failure is the same each time. */
static bool define(Worker *worker, uint32_t which, ScriptFailure *failure)
{
    if (worker->is_defined[which]) {
        *failure = worker->failures[which];
        return failure->text.ptr == NULL;
    }
    ScriptContext *context = &worker->spare;
    const ScriptSource *source = &worker->sources[which];
    worker->is_defined[which] = true;
    JSValueRef main = NULL;
    JSValueRef result = NULL;
    JSValueRef id = script_text_value(context, source->id);
    if (script_call_api(context, API_setFile, 1, &id, &result, &worker->arena, failure) &&
        script_compile(context, source->id, source->body, &main, &worker->session, failure)) {
        JSValueRef arguments[] = {script_number_value(context, which), main};
        if (script_call_api(context, API_defineFunction, ARRAY_COUNT(arguments), arguments, &result,
                            &worker->session, failure))
            return true;
    }
    worker->failures[which] = *failure;
    return false;
}

/* False if the time is over. */
static bool call_function(Worker *worker, ScriptFunctionCall *call)
{
    ScriptContext *context = &worker->spare;
    ScriptFailure failure = {0};
    JSValueRef result = NULL;
    JSValueRef arguments[] = {script_number_value(context, call->which),
                              script_text_value(context, call->arguments)};
    if (define(worker, call->which, &failure) &&
        script_call_api(context, API_callFunction, ARRAY_COUNT(arguments), arguments, &result,
                        &worker->arena, &failure)) {
        bool is_text = worker->engine.js.JSValueIsString(context->ref, result);
        call->kind = is_text ? SCRIPT_VALUE_JSON : SCRIPT_VALUE_UNDEFINED;
        call->text = script_value_text(context, result, &worker->arena);
        return true;
    }
    call->kind = SCRIPT_VALUE_ERROR;
    call->number = failure.number;
    call->text = failure.text;
    return !failure.is_timeout;
}

static uint64_t thread_cpu_us(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

static bool call_functions(Worker *worker, const FrameCalls *calls)
{
    FrameResults results = {.count = calls->count, .calls = calls->calls};
    results.cpu_us = ARENA_NEW_ARRAY(&worker->arena, uint32_t, calls->count);
    size_t bytes = 0;
    uint64_t before_us = thread_cpu_us();
    for (size_t i = 0; i < calls->count; i++) {
        ScriptFunctionCall *call = &calls->calls[i];
        if (call->which >= worker->source_count)
            return false;
        if (!call_function(worker, call)) {
            results = (FrameResults){.is_timeout = true};
            break;
        }
        bytes += call->text.len;
        if (bytes > RESULTS_BYTES_MAX) {
            bytes -= call->text.len;
            call->kind = SCRIPT_VALUE_ERROR;
            call->number = 413;
            call->text = SLICE("The results of the function are too large.");
        }
        uint64_t after_us = thread_cpu_us();
        results.cpu_us[i] = (uint32_t)(after_us - before_us);
        before_us = after_us;
    }
    frame_put_results(&worker->out, &results);
    return send_frame(worker);
}

/* ---- the process ---- */

/* False if the process must end. */
static bool serve_frame(Worker *worker, FrameType type, Slice payload)
{
    FrameRun run;
    FrameOpen open;
    FrameCalls calls;
    arena_reset(&worker->arena);
    switch (type) {
    case FRAME_RUN:
        return frame_get_run(payload, &run) && run_script(worker, &run);
    case FRAME_OPEN:
        return frame_get_open(payload, &worker->arena, &open) && open_functions(worker, &open);
    case FRAME_CALL:
        return frame_get_calls(payload, &worker->arena, &calls) && call_functions(worker, &calls);
    case FRAME_CLOSE:
        worker->source_count = 0;
        return renew_context(worker);
    case FRAME_HELLO:
    case FRAME_OPERATIONS:
    case FRAME_ANSWERS:
    case FRAME_DONE:
    case FRAME_RESULTS:
    case FRAME_REPEAT:
    case FRAME_COUNT:
        return false;
    }
    return false;
}

/* Runs something of each kind once, so that what the engine loads or starts late is there before
 * files and the rest are taken away. */
static Status warm_up(Worker *worker, Error *err)
{
    static const Slice BODY = SLICE_INIT(
        "function () { new Date().toString(); new Intl.DateTimeFormat().format(new Date());"
        " /a+/.test('aaa'); 'b'.localeCompare('a'); var x = 0; for (var i = 0; i < 20000; i++) x "
        "+= i % 7; }");
    JSValueRef main = NULL;
    JSValueRef result = NULL;
    ScriptFailure failure;
    if (!script_compile(&worker->spare, SLICE("warm"), BODY, &main, &worker->arena, &failure) ||
        !script_call_api(&worker->spare, API_start, 1, &main, &result, &worker->arena, &failure) ||
        !renew_context(worker))
        return error_set(err, STATUS_INTERNAL, SUB_NONE, "the JavaScript engine does not work");
    return STATUS_OK;
}

static Status open_worker(Worker *worker, Error *err)
{
    TRY(script_engine_open(&worker->engine, err));
    TRY(script_context_init(&worker->spare, &worker->engine, err));
    TRY(warm_up(worker, err));
    return sandbox_enter(err);
}

int script_worker_main(void)
{
    sandbox_prepare(SCRIPT_WORKER_FD + 1);
    Worker worker = {.source_count = 0};
    arena_init(&worker.arena, ARENA_BYTES);
    arena_init(&worker.session, ARENA_BYTES);
    buf_init(&worker.in, SCRIPT_FRAME_BYTES_MAX);
    buf_init(&worker.out, SCRIPT_FRAME_BYTES_MAX);

    Error err = {.status = STATUS_OK};
    Status status = open_worker(&worker, &err);
    FrameHello hello = {.version = SCRIPT_FRAME_VERSION};
    if (status != STATUS_OK)
        hello.failure = slice_from_cstr(err.message);
    frame_put_hello(&worker.out, &hello);
    bool goes_on = send_frame(&worker) && status == STATUS_OK;
    FrameType type;
    Slice payload;
    while (goes_on && receive(&worker, &type, &payload))
        goes_on = serve_frame(&worker, type, payload);
    /* Neither the engine's threads nor its heap are worth an orderly end. */
    _exit(goes_on ? EXIT_SUCCESS : EXIT_FAILURE);
}
