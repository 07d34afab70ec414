/* script_session_int.h - a request that runs scripts: its way to a runner's thread and back.
 *
 * A procedure (procedures.c) and a write with triggers (triggers.c) have a ScriptSession as a
 * member. They provide 'run', which is called on a runner's thread inside a transaction of the
 * request's logical partition, and 'answer', which is called on the loop when that is committed.
 *
 *     script_session_post --> gate: one at a time for a key --> runner: begin, run, commit
 *                                                                    |
 *                            answer, or the error <-- on the loop +
 *
 * What a script asks for, script_operations.c does in the session's transaction. If the partition
 * was split or merged before the commit, nothing has happened, and the session runs again where the
 * key is now.
 *
 * Ownership  A session lives in its request's arena and holds the container until it is answered.
 * Threads    The loop's until it is posted, and again when it is answered; in between the runner's.
 * Bounds     Time: SCRIPT_HARD_US. Request units: what the partition has for that long.
 */
#pragma once

#include "api/items/document_context_int.h"
#include "api/items/document_functions_int.h"
#include "api/items/script_gate_int.h"
#include "catalog/stored_script.h"
#include "partition/transaction.h"
#include "script/script_pool.h"

typedef struct ScriptSession ScriptSession;
struct ScriptSession {
    ScriptJob job;
    ScriptWaiter waiter; /* at the gate of its key */
    HttpTask task;
    DocumentContext context;

    /* What the request says. */
    PartitionKey key;
    Epk epk;
    Slice epk_to;    /* where the keys after it begin */
    Slice self_link; /* of the container */
    Slice quota;     /* as the headers have it */
    Slice usage;
    bool wants_log;
    DocumentFunctions functions; /* that its queries can call */
    Status (*run)(ScriptSession *session, ScriptRunner *runner, Error *err);
    void (*answer)(ScriptSession *session);
    void (*release)(ScriptSession *session); /* gives back what it holds besides; on the loop */

    /* What has happened. Begins anew with each transaction. */
    PartitionTransaction *transaction;
    uint64_t hard_us;
    uint64_t soft_us;
    Charge budget;      /* what operations may cost before no more are accepted */
    Charge charge;      /* of all but the writes, which are known after the commit */
    Charge ahead;       /* what the writes cost at least */
    ItemWrite **writes; /* that succeeded, in order */
    size_t write_count;
    size_t write_capacity;
    ScriptResult result; /* of the newest run */
    Status status;
    Error error;
    uint64_t lsn;
};

/* Reads what every request with scripts says in its headers. */
void script_session_init(ScriptSession *session, ApiRequest *r, const Target *target);

/* Runs it, and answers the request. If that fails, the session is released. */
MUST_USE Status script_session_post(ScriptSession *session, Error *err);

/* A run with what every script of the session sees; without its text if 'script' is NULL. */
ScriptRun script_session_run(ScriptSession *session, ScriptRole role, const StoredScript *script);

/* Runs the script, in the transaction; a failure stays in session->result. */
MUST_USE Status script_session_do(ScriptSession *session, ScriptRunner *runner,
                                  const ScriptRun *run, Error *err);

/* Does an operation in the transaction and keeps it for the bill. A write, and all it points to,
 * is in the request's arena. */
void script_session_apply(ScriptSession *session, ItemWrite *w, Arena *arena);

/* Undoes what its only script has done. */
void script_session_restart(ScriptSession *session);

/* The id of the item that a resource id names, looked for among own writes, too; '*found' is false
 * if there is none in the logical partition. */
MUST_USE Status script_session_locate(ScriptSession *session, Slice rid, Arena *arena, Slice *id,
                                      bool *found, Error *err);

/* Reads a document that a script or a client has written, for 'w': it must be one of the session's
 * key. */
MUST_USE Status script_session_prepare(const ScriptSession *session, Slice text, ItemWrite *w,
                                       Error *err);

/* What the request costs, after the commit or after a failure. */
Charge script_session_charge(const ScriptSession *session);

/* Begins the answer to a success, with the headers that all of them have. */
void script_session_respond(ScriptSession *session, Response *response, int status);

/* script_operations.c: what a script asks for, with a ScriptSession as context. */
extern const ScriptCalls SCRIPT_OPERATIONS;

/* The same for a procedure, which is alone in its transaction and can be run again. */
extern const ScriptCalls PROCEDURE_OPERATIONS;
