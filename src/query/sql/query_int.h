/* query_int.h - a query that has been parsed and bound. */
#pragma once

#include "query/sql/ast_int.h"
#include "query/sql/sql.h"

typedef struct Parameter {
    Slice name; /* with its '@' */
    Json value; /* undefined if the request gave none */
} Parameter;

typedef struct Parameters {
    Parameter *sorted; /* by name */
    size_t count;
} Parameters;

/* Where a query calls a function of a user: udf.name(...). */
typedef struct UserCallPlace {
    Slice name;
    Span span;
} UserCallPlace;

struct Query {
    Slice text;
    Select *select;
    uint32_t slot_count;

    /* The first thing in it that is understood and cannot be run yet; NULL if all can. */
    const Node *unavailable;

    /* Functions of users that it calls, in the order in which they were bound; NODE_UDF has the
     * index in 'call.slot'. What they are is asked when the query runs. */
    UserCallPlace user_calls[QUERY_UDF_CALLS_MAX];
    uint32_t user_call_count;

    /* What its names were bound to. */
    Parameters parameters;
    Json computed;
};

/* Reads a text and binds its names, as query_parse_with() does, and folds nothing. */
MUST_USE Status query_bind_text(Arena *arena, Slice text, Json parameters, Json computed,
                                Query **out, Error *err);

/* STATUS_BAD_REQUEST if something in the query cannot be run yet. Functions of users can be, as far
 * as is known here. */
MUST_USE Status query_check_available(const Query *query, Error *err);

/* STATUS_BAD_REQUEST unless 'text' is a query as well, with the parameters and the computed
 * properties of this one. */
MUST_USE Status query_check_text(const Query *query, Arena *arena, Slice text, Error *err);

/* Reads and checks the request's array; 'array' may be undefined or null. */
MUST_USE Status parameters_read(Arena *arena, Json array, Parameters *out, Error *err);
