/* user_calls_int.h - the calls of users' functions that a run makes, many at a time where it can.
 *
 * A call leaves the process, so that one costs as much as thousands of operators, and a hundred
 * together hardly more than one. So a page reads some documents ahead and asks the query over each
 * of them which calls it needs:
 *
 *     ask      the query runs over one document, without results. At a call whose value is not
 *              known the row ends (CALL_PENDING), the call is noted, and the next row is tried.
 *     make     the calls that were noted for all these documents are made at once
 *
 * until there is nothing left to ask. What is asked for is needed, if the document is: a call comes
 * up only after all that decides whether it is made. Then the run takes the documents one by one
 * and finds the values here (user_calls_enter). What was not asked for, because that would have
 * taken too many rounds or too many rows, is called when the run comes to it.
 *
 * Functions need not say the same twice: each value is used once. Equal calls of a document are as
 * many calls, and their values come in the order in which the run uses them.
 */
#pragma once

#include "query/eval/query_functions.h"
#include "query/sql/ast_int.h"
#include "query/sql/sql.h"

typedef struct Run Run;

/* What eval() returns at a call that was noted; only while the query asks. */
#define CALL_PENDING STATUS_RETRY_WITH

typedef struct KnownCall {
    struct KnownCall *next;
    QueryCall call;
    uint32_t place; /* in Query.user_calls */
    uint64_t hash;  /* of its arguments */
    bool is_made;
    bool is_used; /* by what is run or asked now */
} KnownCall;

/* The calls that are known of a document. */
typedef struct KnownCalls {
    KnownCall *first;
    KnownCall *last;
    uint32_t count;
} KnownCalls;

typedef struct CallDocument {
    Json document; /* as the query sees it; lives as long as its calls */
    KnownCalls known;
    bool is_asked; /* there is nothing more to ask */
} CallDocument;

/* Part of a Run. */
typedef struct UserCalls {
    uint32_t which[QUERY_UDF_CALLS_MAX];
    KnownCalls *known;  /* of the document at hand; NULL if none are */
    Arena *asking;      /* where calls are noted; NULL while the query really runs */
    uint32_t rows_left; /* that it is asked about */
    uint32_t asked;     /* noted since the last ones were made */
    uint64_t used;      /* values that the run has used, */
    uint64_t us;        /* and the time that calls have taken */
} UserCalls;

/* Finds all functions of the query: SC2003 if there is none of that name. */
MUST_USE Status user_calls_begin(Run *run, const Query *query);

/* Asks about documents, and makes their calls. All of it is kept in 'arena', which the budget of
 * the run does not know of: the caller adds it to Run.held. Between two documents only. */
MUST_USE Status user_calls_prepare(Run *run, const Select *select, CallDocument *documents,
                                   size_t count, Arena *arena);

/* The calls of the document at hand; NULL if none are known. */
void user_calls_enter(Run *run, KnownCalls *known);

/* The value of a call. */
MUST_USE Status user_call(Run *run, const Node *node, const Value *args, uint32_t count,
                          Value *out);
