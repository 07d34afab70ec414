/* document_functions_int.h - the user-defined functions that the queries of a request can call.
 *
 *     document_functions_find       on the loop: those of the container, if there can be a call
 *     DOCUMENT_FUNCTIONS            for the query, on the thread that runs it
 *     document_functions_end        the page is over: the worker process is free again
 *     document_functions_release    nothing of the request runs any more
 *
 * Ownership  References on all functions of the container, which are at most STORED_FUNCTIONS_MAX.
 * Threads    One at a time, in this order.
 */
#pragma once

#include "api/core/request_int.h"
#include "catalog/stored_script.h"
#include "query/eval/query_functions.h"
#include "script/script_functions.h"

typedef struct DocumentFunctions {
    ScriptPool *pool;
    const Clock *clock;
    Arena *arena;
    StoredScript **scripts;
    size_t count;
    ScriptFunctions *session; /* NULL until the first call */
} DocumentFunctions;

/* 'text' is where a call would be; NULL if that is not known yet. */
void document_functions_find(const ApiRequest *r, const Slice *text, DocumentFunctions *out);
void document_functions_end(DocumentFunctions *functions);
void document_functions_release(DocumentFunctions *functions);

/* With a DocumentFunctions as context. */
extern const QueryFunctions DOCUMENT_FUNCTIONS;
