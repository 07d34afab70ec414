/* sql.h - the text of a query: how it arrives, and how large it may be.
 *
 * What is wrong with a query is STATUS_BAD_REQUEST, and the message is the JSON that clients of
 * the service parse:
 *     {"errors":[{"severity":"Error","location":{"start":7,"end":8},"code":"SC2001",
 *                 "message":"Identifier 'x' could not be resolved."}]}
 * Locations count UTF-16 code units, as the clients' strings do.
 *
 * Ownership  What comes out lives in the arena given, or points into the body.
 * Threads    Nothing here has state.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "json/json.h"

#define QUERY_TEXT_BYTES_MAX ((size_t)512 << 10) /* as the service announces it */
#define QUERY_JOINS_MAX      10                  /* likewise, of the whole query */
#define QUERY_UDF_CALLS_MAX  10                  /* likewise */
#define QUERY_COUNT_MAX      UINT32_MAX          /* of TOP, OFFSET and LIMIT */
#define QUERY_LIMIT_MAX      INT32_MAX           /* the same in a query that clients may plan */

/* Levels of nesting, other than parentheses that open an expression, which are free up to
 * QUERY_PARENTHESES_MAX: programs print ((((a OR b) OR c) OR d) OR e) without end. The rest costs
 * a piece of the C stack each (some 600 bytes, with sanitizers 2 KB), hence the lower bound. */
#define QUERY_DEPTH_MAX       200
#define QUERY_PARENTHESES_MAX 3400 /* as the service has it */

/* A query that was read, bound and folded: eval/query.h makes one. It is immutable. */
typedef struct Query Query;

/* Takes the body of a query request, {"query": text, "parameters": [{"name", "value"}, ...]} or a
 * JSON string alone, as old clients send it, apart and checks its shape. '*parameters' is
 * undefined if there are none. */
MUST_USE Status query_request(Arena *arena, Slice body, Slice *text, Json *parameters, Error *err);

/* The same of a query on items, which may say besides where in its order it is to begin:
 * 'resume_filter' goes into QueryPageOptions, or is undefined. */
typedef struct QueryRequest {
    Slice text;
    Json parameters;
    Json resume_filter;
} QueryRequest;
MUST_USE Status query_request_items(Arena *arena, Slice body, QueryRequest *out, Error *err);

/* Fails unless the text may define a computed property: SELECT VALUE and one expression over the
 * document, without anything that looks elsewhere or answers differently the next time. */
MUST_USE Status query_check_computed(Slice text, Error *err);
