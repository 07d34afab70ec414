/* functions_int.h - the names and signatures of the functions that queries call, as rows of
 * functions.def. Their code is in eval, in a table by FunctionId (eval/call_int.h).
 */
#pragma once

#include "query/sql/ast_int.h"

typedef enum FunctionFlags {
    FUNCTION_ANY = 1,           /* called with undefined arguments too */
    FUNCTION_UNSTEADY = 1 << 1, /* may answer differently the next time */
    FUNCTION_SPATIAL = 1 << 2,
    FUNCTION_SCORE = 1 << 3,  /* FullTextScore: only in ORDER BY RANK */
    FUNCTION_VECTOR = 1 << 4, /* VectorDistance: may be an item of ORDER BY */
    FUNCTION_FUSION = 1 << 5, /* RRF: known in ORDER BY RANK only */
    FUNCTION_SYSTEM = 1 << 6, /* looks at the document's system properties, whatever it is given */
} FunctionFlags;

/* Which values of its path a call can be true of. */
typedef enum FunctionIndex {
    FUNCTION_INDEX_WALK,    /* not known: they are looked at one by one */
    FUNCTION_INDEX_EQUAL,   /* the string that is the second argument */
    FUNCTION_INDEX_PREFIX,  /* those that begin with it */
    FUNCTION_INDEX_ELEMENT, /* arrays with this element; of an array that is given, its elements */
    FUNCTION_INDEX_ANY_ELEMENT,
    FUNCTION_INDEX_ALL_ELEMENTS,
    FUNCTION_INDEX_SHAPES,  /* whose place on earth meets that of the other argument */
    FUNCTION_INDEX_DEFINED, /* all; and of a type: */
    FUNCTION_INDEX_NULL,
    FUNCTION_INDEX_BOOLEANS,
    FUNCTION_INDEX_NUMBERS,
    FUNCTION_INDEX_INTEGERS,
    FUNCTION_INDEX_STRINGS,
    FUNCTION_INDEX_ARRAYS,
    FUNCTION_INDEX_OBJECTS,
    FUNCTION_INDEX_PRIMITIVES,
} FunctionIndex;

typedef enum Aggregate {
    AGGREGATE_NONE,
#define AGGREGATE_ROW(name) AGGREGATE_##name,
#include "query/sql/functions.def"
} Aggregate;

typedef enum FunctionId {
#define FUNCTION(name, least, most, flags, index, code) FUNCTION_ID_##name,
#define MATH(name, code)                                FUNCTION_ID_##name,
#define AGGREGATE_ROW(name)                             FUNCTION_ID_##name,
#define LATER(name, least, most, flags)                 FUNCTION_ID_##name,
#include "query/sql/functions.def"
    FUNCTION_ID_END,
} FunctionId;

struct Function {
    FunctionId id;
    Slice name;
    uint32_t args_min;
    uint32_t args_max;
    uint32_t flags;
    FunctionIndex index;
    Aggregate aggregate;
    bool is_available; /* false if its name is known and it has no code yet */
};

/* NULL if there is no such function. */
const Function *function_find(Slice name);

/* The aggregate over the rows of 'select' that an item of its projection is, or NULL. */
const Function *item_aggregate(const Select *select, const SelectItem *item);
