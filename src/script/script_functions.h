/* script_functions.h - user-defined functions, called by a page of a query.
 *
 * A session belongs to one page of a query. It takes a worker process when the first call is made
 * and gives it back when it is closed, so a page that calls no function costs nothing. Calls travel
 * in batches: one message to the worker and one back for many calls. The functions of a session
 * share one global object that is fresh for the session; they have no getContext and no data
 * access.
 *
 * Ownership  The caller closes the session. Texts of the sources are borrowed until then.
 *            Results live in the arena passed in.
 * Threads    A session belongs to one thread at a time. Several may be open. A script's own
 *            operation may open one (a procedure that runs a query with functions): processes for
 *            functions are counted apart, so it never waits for itself.
 */
#pragma once

#include "script/script_pool.h"

enum { SCRIPT_FUNCTIONS_MAX = 64 }; /* of a session; the SQL limit is 10 */

/* Calls of one message. More are sent as several messages. */
enum { SCRIPT_BATCH_CALLS_MAX = 4096 };

typedef struct ScriptSource {
    Slice id;
    Slice version; /* as in ScriptRun */
    Slice body;
} ScriptSource;

typedef enum ScriptValueKind {
    SCRIPT_VALUE_JSON,      /* text is JSON */
    SCRIPT_VALUE_UNDEFINED, /* also for functions, symbols, NaN and infinities */
    SCRIPT_VALUE_ERROR,     /* it threw or did not compile: number, text as in ScriptResult */
    SCRIPT_VALUE_COUNT
} ScriptValueKind;

typedef struct ScriptFunctionCall {
    /* Set by the caller. */
    uint32_t which;  /* index into the sources */
    Slice arguments; /* JSON array. A call with an undefined argument is not made at all. */

    /* Filled in. */
    ScriptValueKind kind;
    Slice text;
    uint32_t number; /* of an error: the sub-status of the 400 */
} ScriptFunctionCall;

typedef struct ScriptFunctions ScriptFunctions;

/* Does not wait. 'hard_us': the end of the page's time, see script_functions_call. The array of
 * sources is copied, its texts are not. */
ScriptFunctions *script_functions_open(ScriptPool *pool, const ScriptSource *sources, size_t count,
                                       uint64_t hard_us);

/* Makes the calls in order. A call that throws is no failure of this function: the others are made
 * all the same, and the query fails only if it needs the value.
 *
 *   STATUS_TIMEOUT      The calls did not end before hard_us, or no worker was free.
 *   STATUS_FORBIDDEN    One of the functions that are called is blocked.
 *   STATUS_BAD_REQUEST  The worker died, for instance because a function used too much memory.
 *   STATUS_TOO_LARGE    The arguments of a single call are larger than a message may be.
 *   STATUS_UNAVAILABLE  As script_run.
 *
 * After a failure only script_functions_close may be called. Results are complete or not valid. */
MUST_USE Status script_functions_call(ScriptFunctions *functions, ScriptFunctionCall *calls,
                                      size_t count, Arena *arena, Error *err);

uint64_t script_functions_cpu_us(const ScriptFunctions *functions); /* used so far */

/* Accepts NULL. */
void script_functions_close(ScriptFunctions *functions);
DEFINE_AUTO(ScriptFunctions *, script_functions_close)
