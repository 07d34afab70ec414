/* query_int.h - a query that has been parsed and bound. */
#pragma once

#include "query/ast_int.h"
#include "query/query.h"

typedef struct Parameter {
    Slice name; /* with its '@' */
    Json value; /* undefined if the request gave none */
} Parameter;

typedef struct Parameters {
    Parameter *sorted; /* by name */
    size_t count;
} Parameters;

struct Query {
    Slice text;
    Select *select;
    uint32_t slot_count;

    /* The first thing in it that is understood and cannot be run yet; NULL if all can. */
    const Node *unavailable;

    /* What its names were bound to. */
    Parameters parameters;
    Json computed;
};

/* STATUS_BAD_REQUEST if something in the query cannot be run yet. */
MUST_USE Status query_check_available(const Query *query, Error *err);

/* STATUS_BAD_REQUEST unless 'text' is a query as well, with the parameters and the computed
 * properties of this one. */
MUST_USE Status query_check_text(const Query *query, Arena *arena, Slice text, Error *err);

/* As query_is_streaming() has it, of a query or of one in its FROM. */
bool select_is_streaming(const Select *select);

/* SELECT COUNT(1) FROM (SELECT DISTINCT ... FROM c): the only aggregate over such a subquery that
 * clients can add up, by counting what is distinct themselves. */
bool select_is_dcount(const Select *select);

/* Reads and checks the request's array; 'array' may be undefined or null. */
MUST_USE Status parameters_read(Arena *arena, Json array, Parameters *out, Error *err);
