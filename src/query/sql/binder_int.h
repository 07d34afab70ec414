/* binder_int.h - what the names of a query stand for, and the rules that need to know it.
 *
 * The binder gives every source, group key and aggregate its slot (see ast_int.h), looks up
 * functions and parameters, puts the expressions of computed properties where they are named,
 * infers the names of results, and refuses what the language forbids although the grammar allows
 * it.
 */
#pragma once

#include "query/sql/query_int.h"

/* 'computed' is the container's array of definitions, or undefined. */
MUST_USE Status binder_run(Arena *arena, Query *query, const Parameters *parameters, Json computed,
                           Error *err);

/* What follows is for the files of the binder. */

enum {
    GROUP_KEYS_MAX = 64, /* ours: every expression of the projection is compared with each */
    ORDER_ITEMS_MAX = 8, /* a composite index has no more paths, and more than one item needs it */
};

/* The aliases that can be seen: those of a query's first sources, then those around it. */
typedef struct Scope {
    const struct Scope *outer;
    const Source *first;
    const Source *end; /* the first that cannot be seen yet */
} Scope;

typedef enum Clause {
    CLAUSE_FROM,
    CLAUSE_WHERE,
    CLAUSE_GROUP_BY,
    CLAUSE_SELECT,
    CLAUSE_ORDER_BY,
    CLAUSE_RANK,
} Clause;

typedef struct Binder {
    Arena *arena;
    Query *query;
    const Parameters *parameters;
    Json computed; /* undefined inside a definition: they do not see each other */
    Error *err;

    const Scope *scope;
    Select *select; /* the one whose clauses are being bound */
    Clause clause;
    const Node *aggregate; /* the one whose argument is being bound, or NULL */
    uint32_t depth;        /* levels of the tree down to what is being bound */

    /* Counted up, so that the caller that binds a part can see what was in it. */
    uint32_t names;
    uint32_t subqueries;
    uint32_t joins;
    size_t computed_bytes; /* of definitions that were read */
} Binder;

MUST_USE Status binder_error(Binder *b, Span span, const char *code, const char *format, ...)
    PRINTF_LIKE(4, 5);

MUST_USE Status bind_node(Binder *b, Node *node);

typedef enum SelectKind {
    SELECT_WHOLE,  /* the query itself */
    SELECT_SOURCE, /* the first source of one that may look at the container */
    SELECT_NESTED, /* any other subquery */
} SelectKind;
MUST_USE Status bind_select(Binder *b, Select *select, SelectKind kind);

/* binder_computed.c: puts the expression of a computed property in the place of a path over whole
 * items, if its first step names one. The path is bound, but for that. */
MUST_USE Status bind_computed(Binder *b, Node *path);

/* computed.c: what the query of a computed property may have, before and after it is bound. */
MUST_USE Status computed_check_clauses(const Select *select, Error *err);
MUST_USE Status computed_check_expression(Node *value, Error *err);

/* binder_rules.c: what a bound query must still obey. Names are inferred before, from the text. */
void infer_names(Binder *b, Select *select);
MUST_USE Status check_names(Binder *b, Select *select);
MUST_USE Status check_property_names(Binder *b, const Node *object);
MUST_USE Status check_groups(Binder *b, Select *select);
MUST_USE Status check_order_by(Binder *b, Select *select);
MUST_USE Status bind_rank(Binder *b, Select *select);
bool select_may_have_rows(const Select *select);
