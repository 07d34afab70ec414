/* query_functions.h - functions of users that a query calls: udf.name(...).
 *
 * A query does not know what they are written in. The caller of a run gives it this table; without
 * one every name is unknown.
 *
 * Threads    All calls come from the thread that runs the query, one after the other. It has given
 *            its turn away while it waits (base/workers.h), so the callee may wait, too.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "json/json.h"

typedef struct QueryCall {
    uint32_t which;        /* as 'find' has said */
    const Json *arguments; /* all of them defined */
    size_t argument_count;

    /* Filled in by the callee. */
    Json result;        /* in the arena, or JSON_NONE if it is undefined */
    const Error *error; /* in the arena: why this one has failed; NULL if it has not */
} QueryCall;

typedef struct QueryFunctions {
    /* Asked once for each place where the text calls a function, before the query runs. False if
     * there is none of that name. */
    bool (*find)(void *context, Slice name, uint32_t *which);

    /* Makes all the calls, in their order, within 'time_us_max' (0: no bound). A call that fails
     * says so in 'error' and the others are made all the same: which of them the query needs is not
     * known yet, and it fails only if one of those has failed. A failure of the function itself, as
     * when time is over, fails the query. */
    Status (*call)(void *context, QueryCall *calls, size_t count, uint64_t time_us_max,
                   Arena *arena, Error *err);
} QueryFunctions;
