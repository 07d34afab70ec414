/* script_frame_int.h - the messages between the server and a worker process.
 *
 * The server begins: after the worker's greeting it sends a run and answers operations until the
 * worker says that it is done, or opens functions and sends batches of calls. Each side sends only
 * when it is its turn, so neither can block the other by not reading.
 *
 *     server                               worker
 *                                   <---   HELLO, once
 *     RUN                           --->
 *                                   <---   OPERATIONS  |  any number of times
 *     ANSWERS                       --->               |
 *                                   <---   DONE
 *
 *     REPEAT, RUN                   --->   instead of ANSWERS: the run begins anew
 *
 *     OPEN                          --->
 *     CALL                          --->               |  any number of times
 *                                   <---   RESULTS     |
 *     CLOSE                         --->
 *
 * The server answers operations in their order, one or more of them: all, unless one fails or the
 * answers become large. The worker sends those that were not answered again.
 *
 * A user's script may have taken over the worker, so the server trusts nothing that comes from it:
 * a frame is refused unless its length, every field and all its text (UTF-8) are well formed.
 *
 * Ownership  Decoded texts point into the frame. Decoded arrays live in the arena passed in.
 * Format     At the top of script_frame.c.
 */
#pragma once

#include "base/buf.h"
#include "script/script_functions.h"

/* A response of SCRIPT_RESPONSE_UNITS_MAX, of which each takes three bytes, with what else is in
 * DONE. */
#define SCRIPT_FRAME_BYTES_MAX ((size_t)16 << 20)
enum {
    SCRIPT_FRAME_HEAD_BYTES = 5,
    SCRIPT_FRAME_VERSION = 2,
    SCRIPT_FRAME_OPERATIONS_MAX = 128, /* as in server_api.js */
};

typedef enum FrameType {
    FRAME_HELLO,
    FRAME_RUN,
    FRAME_OPERATIONS,
    FRAME_ANSWERS,
    FRAME_DONE,
    FRAME_OPEN,
    FRAME_CALL,
    FRAME_RESULTS,
    FRAME_CLOSE,
    FRAME_REPEAT,
    FRAME_COUNT
} FrameType;

typedef struct FrameHello {
    uint32_t version;
    Slice failure; /* why the worker cannot run scripts; empty if it can */
} FrameHello;

/* A ScriptRun whose moments are times from now on. */
typedef struct FrameRun {
    ScriptRole role;
    bool wants_log;
    uint64_t hard_us;
    uint64_t soft_us;
    uint64_t assume_us; /* how long operations may be assumed to succeed */
    Slice id;
    Slice body;
    Slice arguments;
    Slice self_link;
    Slice alt_link;
    Slice operation;
    Slice request_body;
    Slice response_body;
    Slice quota;
    Slice usage;
} FrameRun;

typedef struct FrameOperations {
    uint32_t count;
    ScriptCall *calls;
} FrameOperations;

typedef struct FrameAnswer {
    uint32_t status_code;
    bool is_not_modified;
    bool has_failed;
    bool is_last; /* no more operations are accepted */
    Slice resource;
    Slice continuation;
    Slice failure;
} FrameAnswer;

typedef struct FrameAnswers {
    uint32_t count;
    FrameAnswer *answers;
} FrameAnswers;

typedef enum FrameOutcome {
    FRAME_OUTCOME_OK,
    FRAME_OUTCOME_THROWN, /* number, text */
    FRAME_OUTCOME_TIMEOUT,
    FRAME_OUTCOME_COUNT
} FrameOutcome;

typedef struct FrameDone {
    FrameOutcome outcome;
    uint32_t number;
    Slice text;
    Slice response_body;
    Slice request_body;
    Slice log;
} FrameDone;

typedef struct FrameOpen {
    uint64_t hard_us; /* time from now on */
    uint32_t count;
    ScriptSource *sources; /* without versions */
} FrameOpen;

typedef struct FrameCalls {
    uint32_t count;
    ScriptFunctionCall *calls;
} FrameCalls;

typedef struct FrameResults {
    bool is_timeout; /* then there are no results */
    uint32_t count;
    ScriptFunctionCall *calls; /* which is not set */
    uint32_t *cpu_us;          /* of each call */
} FrameResults;

/* The length of the whole frame whose first SCRIPT_FRAME_HEAD_BYTES are at 'head'. False if no
 * frame begins so. */
MUST_USE bool frame_head(const char *head, FrameType *type, size_t *len);

/* Each writes one whole frame into 'out', which was empty. A frame that would be too large makes
 * 'out' full. */
void frame_put_hello(Buf *out, const FrameHello *hello);
void frame_put_run(Buf *out, const FrameRun *run);
void frame_put_done(Buf *out, const FrameDone *done);
void frame_put_open(Buf *out, const FrameOpen *open);
void frame_put_calls(Buf *out, const FrameCalls *calls);
void frame_put_results(Buf *out, const FrameResults *results);
void frame_put_close(Buf *out);
void frame_put_repeat(Buf *out);

/* Operations and answers are added one by one, and the end says how many were. What does not fit
 * makes 'out' full; frame_add_answer adds nothing then, says so, and another can be added. */
void frame_begin_operations(Buf *out);
void frame_add_operation(Buf *out, const ScriptCall *call);
void frame_begin_answers(Buf *out);
MUST_USE bool frame_add_answer(Buf *out, const FrameAnswer *answer);
void frame_end_many(Buf *out, uint32_t count);

/* Each reads what follows the head. False if it is not well formed. */
MUST_USE bool frame_get_hello(Slice payload, FrameHello *out);
MUST_USE bool frame_get_run(Slice payload, FrameRun *out);
MUST_USE bool frame_get_operations(Slice payload, Arena *arena, FrameOperations *out);
MUST_USE bool frame_get_answers(Slice payload, Arena *arena, FrameAnswers *out);
MUST_USE bool frame_get_done(Slice payload, FrameDone *out);
MUST_USE bool frame_get_open(Slice payload, Arena *arena, FrameOpen *out);
MUST_USE bool frame_get_calls(Slice payload, Arena *arena, FrameCalls *out);
MUST_USE bool frame_get_results(Slice payload, Arena *arena, FrameResults *out);
