/* script_pool.h - runs stored procedures and triggers, in processes of their own.
 *
 * The server has no JavaScript engine. A script runs in a worker process (the same binary, command
 * "script-worker") that has no files, no network, no other processes and a limited amount of
 * memory, and that asks the server for operations on items. A script that kills its engine
 * kills a worker, never the server: the run fails, and the next one gets another worker.
 *
 * The pool has a bounded number of runner threads. A job that was posted runs on one of them, with
 * one worker process of its own until it returns; it may run several scripts one after the other,
 * such as a pre-trigger and a post-trigger. No state of a script survives its run.
 *
 *     job->run(job, runner)                  on a runner's thread
 *         begin the transaction
 *         script_run(runner, &run, ...)      calls run.calls->operate on this same thread
 *         commit or roll back
 *         answer
 *
 * Ownership  The caller closes the pool, after everything that uses it. Texts passed in are
 *            borrowed for the call. Results live in the arena passed in.
 * Threads    Any thread posts. A ScriptRunner belongs to the thread that was given it.
 * Time       All moments are of the monotonic clock that the pool was opened with.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/workers.h"

/* How long a script may run, and after which time it cannot begin further operations. What lies
 * between is for the operations that it began before. */
#define SCRIPT_HARD_US ((uint64_t)5000000)
#define SCRIPT_SOFT_US ((uint64_t)4000000)

/* For this time a run need not wait for writes whose results it cannot see: it is assumed that they
 * succeed. If one does not, the run is repeated, and waits. So no more than this time is lost. */
#define SCRIPT_ASSUME_US ((uint64_t)100000)

/* UTF-16 units of a response's body: the largest answer of the service. */
#define SCRIPT_RESPONSE_UNITS_MAX ((size_t)4 << 20)

/* What a script logs is an HTTP header: its bytes when percent-encoded. Node.js refuses response
 * heads of more than 16 KB. */
#define SCRIPT_LOG_ENCODED_BYTES_MAX ((size_t)8 << 10)

/* Texts of failures, so that callers that fail for the same reason say the same. */
#define SCRIPT_TIMEOUT_TEXT                                   \
    "The requested operation exceeded maximum alloted time. " \
    "Learn more: https://aka.ms/cosmosdb-tsg-service-request-timeout"

/* The number of an error that was found when the script was compiled. */
#define SCRIPT_COMPILE_ERROR_NUMBER 65535

typedef struct ScriptPool ScriptPool;
typedef struct ScriptRunner ScriptRunner;

typedef struct ScriptPoolOptions {
    /* The worker's command line, ended by NULL: the path first. Kept, not copied. NULL means this
     * binary with the argument "script-worker". */
    const char *const *command;
    const Clock *clock;     /* for deadlines and for blocked scripts; NULL: the system's */
    uint32_t workers_max;   /* runner threads, each with one process; 0: max(4, 2 x processors) */
    uint32_t functions_max; /* processes for functions of queries, besides; 0: the same */
    uint32_t jobs_max;      /* jobs that wait for a thread; 0: 16 for each thread */
    uint64_t memory_bytes_max;       /* of one worker; 0: 256 MB */
    uint64_t idle_us;                /* after this time unused all workers but one end; 0: 60 s */
    uint64_t block_cpu_us;           /* 0: SCRIPT_BLOCK_CPU_US */
    uint64_t block_functions_cpu_us; /* 0: SCRIPT_BLOCK_FUNCTIONS_CPU_US */
    bool shows_stderr;               /* workers keep the server's standard error */
} ScriptPoolOptions;

/* Starts no thread and no process: a server that runs no scripts pays nothing. */
ScriptPool *script_pool_open(const ScriptPoolOptions *options);

/* Sessions of functions must be closed. Waits for jobs that run. Those that have not begun are
 * still run, but their scripts fail at once with STATUS_UNAVAILABLE. Ends all workers. Accepts
 * NULL. */
void script_pool_close(ScriptPool *pool);
DEFINE_AUTO(ScriptPool *, script_pool_close)

/* ---- jobs ---- */

typedef struct ScriptJob ScriptJob;
struct ScriptJob {
    WorkerJob job; /* the pool's own */
    ScriptPool *pool;
    void (*run)(ScriptJob *job, ScriptRunner *runner); /* on a runner's thread */
};

/* A ScriptJob is a member of the caller's message; after a successful post only 'run', which the
 * caller sets, touches it. STATUS_THROTTLED with SUB_SCRIPT_CONCURRENCY (3084) if too many jobs
 * wait already: the job is not taken. */
MUST_USE Status script_pool_post(ScriptPool *pool, ScriptJob *job, Error *err);

/* ---- operations of a script ---- */

typedef enum ScriptCallKind {
    SCRIPT_CALL_READ,    /* name */
    SCRIPT_CALL_LIST,    /* all items of the logical partition, by pages */
    SCRIPT_CALL_QUERY,   /* query, parameters */
    SCRIPT_CALL_CREATE,  /* body */
    SCRIPT_CALL_UPSERT,  /* body */
    SCRIPT_CALL_REPLACE, /* name, body */
    SCRIPT_CALL_DELETE,  /* name */
    SCRIPT_CALL_COUNT
} ScriptCallKind;

typedef enum ScriptIndexAction {
    SCRIPT_INDEX_DEFAULT,
    SCRIPT_INDEX_INCLUDE,
    SCRIPT_INDEX_EXCLUDE,
    SCRIPT_INDEX_COUNT
} ScriptIndexAction;

enum {
    SCRIPT_PAGE_SIZE_DEFAULT = 100,
    SCRIPT_PAGE_SIZE_DYNAMIC = -1,
};

/* One operation on the container and the logical partition of the run. Links have been checked:
 * they lead into this container. All text is valid UTF-8. Bodies are JSON texts as the engine
 * printed them; a body has an id unless the script has disabled automatic ids. Nothing else is
 * checked. */
typedef struct ScriptCall {
    ScriptCallKind kind;
    bool is_rid; /* 'name' is a resource id, not the item's id */
    Slice name;  /* the last segment of the item's link, as the script wrote it (maybe %-encoded) */
    Slice body;
    Slice query;         /* SQL text */
    Slice parameters;    /* JSON array of {name, value}; empty if there are none */
    Slice if_match;      /* empty if there is none */
    Slice if_none_match; /* empty if there is none */
    Slice continuation;  /* empty at the beginning */
    int32_t page_size;   /* 1 or more, or SCRIPT_PAGE_SIZE_DYNAMIC */
    ScriptIndexAction index_action;
    bool enables_scan;
    bool wants_item; /* else the script cannot see the item of READ, CREATE, UPSERT and REPLACE */
    bool is_assumed; /* for script_run: the script goes on as if it had succeeded */
} ScriptCall;

typedef struct ScriptAnswer {
    uint32_t status_code; /* of the operation: 200, 201, 204, 304 */
    bool is_not_modified; /* of READ: there is no resource then */
    Slice resource; /* JSON text: of the item, if it is wanted, or of an array for LIST and QUERY */
    Slice continuation; /* of LIST and QUERY; empty at the end */
    bool is_last;       /* no further operations are accepted; those that were are made */
    bool ends_run;      /* with a failure: the whole run fails with it, the script is not told */
} ScriptAnswer;

typedef struct ScriptCalls {
    /* Called on the thread that called script_run, in the order in which the script has queued the
     * operations. A failure is an answer for the script: number is the HTTP status of 'status',
     * text is {"Errors":["message"]}. With answer->ends_run it is the failure of the run instead.
     * What the answer points to lives in 'arena', which lives until the next operation, or
     * longer. */
    Status (*operate)(void *ctx, const ScriptCall *call, Arena *arena, ScriptAnswer *answer,
                      Error *err);

    /* Undoes everything that the run has done, as if it had not begun: it is run again. At most
     * once in a run. NULL if that is not possible. */
    Status (*repeat)(void *ctx, Error *err);
} ScriptCalls;

/* ---- one run ---- */

typedef enum ScriptRole {
    SCRIPT_ROLE_PROCEDURE,    /* request (its body: the arguments) and response */
    SCRIPT_ROLE_PRE_TRIGGER,  /* request, which it may change */
    SCRIPT_ROLE_POST_TRIGGER, /* request and response; it may change the response */
    SCRIPT_ROLE_COUNT
} ScriptRole;

typedef struct ScriptRun {
    ScriptRole role;
    Slice id;           /* of the script; stack traces name its file {id}.js */
    Slice version;      /* unique to this version of it (rid and ETag): see "blocked". Empty: any */
    Slice body;         /* JavaScript */
    Slice arguments;    /* of a procedure: the request's body as sent; empty counts as [] */
    Slice self_link;    /* of the container: "dbs/{rid}/colls/{rid}/" */
    Slice alt_link;     /* "dbs/{id}/colls/{id}" */
    Slice operation;    /* of a trigger: "Create", "Replace", "Upsert", "Delete" */
    Slice request_body; /* of triggers: JSON text; empty if there is none */
    Slice response_body; /* of post-triggers: JSON text; empty if there is none */
    Slice quota;         /* as x-ms-resource-quota has it */
    Slice usage;         /* as x-ms-resource-usage has it */
    bool wants_log;      /* else console.log does nothing */
    uint64_t hard_us;    /* at this moment the run ends with STATUS_TIMEOUT */
    uint64_t soft_us;    /* from this moment on operations are not accepted */
    const ScriptCalls *calls;
    void *ctx;
} ScriptRun;

typedef struct ScriptResult {
    Slice response_body; /* JSON text, of procedures and post-triggers */
    Slice request_body;  /* JSON text, of pre-triggers */

    /* After a failure. 'text' is what belongs into {"Errors":[...]}; err->message begins like it
     * but is cut. 'number' is the number of x-ms-substatus after STATUS_BAD_REQUEST, 0 otherwise.
     * A script can choose any. */
    uint32_t number;
    Slice text;

    /* Always. */
    Slice log; /* UTF-8, not yet percent-encoded; empty if nothing was logged */
    uint64_t cpu_us;
    uint32_t operations; /* how many were made */
} ScriptResult;

/* Runs one script to its end, with all its operations and callbacks. '*result' is always filled.
 *
 *   STATUS_BAD_REQUEST   The script failed: it threw, did not compile, got bad arguments, ran out
 *                        of memory. result->number and result->text say why.
 *   STATUS_TIMEOUT       It did not end before hard_us.
 *   STATUS_FORBIDDEN     It is blocked, and was not started. A version of a script that used more
 *                        CPU than SCRIPT_BLOCK_CPU_US in SCRIPT_BLOCK_RUNS runs is blocked;
 * replacing it makes a new version. STATUS_UNAVAILABLE   Scripts cannot run: the engine is not
 * installed, the system has no more processes, the pool is closing. what operate returned with
 * ends_run
 *
 * The caller rolls back after each of them. */
MUST_USE Status script_run(ScriptRunner *runner, const ScriptRun *run, Arena *arena,
                           ScriptResult *result, Error *err);

/* ---- blocked scripts ---- */

#define SCRIPT_BLOCK_CPU_US ((uint64_t)2000000) /* of one run of a procedure or trigger */
#define SCRIPT_BLOCK_FUNCTIONS_CPU_US                           \
    ((uint64_t)100000) /* of a function, in one page of a query \
                        */
enum { SCRIPT_BLOCK_RUNS = 6 };

/* ---- for /_orrery and tests ---- */

typedef struct ScriptPoolStats {
    uint32_t processes;         /* that live now */
    uint32_t idle;              /* of these, those that nobody uses */
    uint64_t processes_started; /* since the pool was opened */
    uint64_t processes_lost;    /* of these, those that died or were killed while in use */
    uint64_t runs;
    uint64_t runs_failed;
} ScriptPoolStats;

void script_pool_stats(ScriptPool *pool, ScriptPoolStats *out);
