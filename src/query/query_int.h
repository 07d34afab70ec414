/* query_int.h - a query that has been parsed and bound. */
#pragma once

#include "query/ast_int.h"
#include "query/query.h"

struct Query {
    Slice text;
    Select *select;
    uint32_t slot_count;

    /* The first thing in it that is understood and cannot be run yet; NULL if all can. */
    const Node *unavailable;
};

/* STATUS_BAD_REQUEST if something in the query cannot be run yet. */
MUST_USE Status query_check_available(const Query *query, Error *err);

typedef struct Parameter {
    Slice name; /* with its '@' */
    Json value; /* undefined if the request gave none */
} Parameter;

typedef struct Parameters {
    Parameter *sorted; /* by name */
    size_t count;
} Parameters;

/* Reads and checks the request's array; 'array' may be undefined or null. */
MUST_USE Status parameters_read(Arena *arena, Json array, Parameters *out, Error *err);
