/* functions_int.h - the functions that queries call, as rows of functions.def.
 *
 * Code gets evaluated arguments and gives a value; it fails only when the run's budget ends. What
 * does not fit a function's types is no error: the result is undefined.
 */
#pragma once

#include "query/ast_int.h"
#include "query/run_int.h"

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
    FUNCTION_INDEX_WALK,    /* who knows: they are looked at one by one */
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
#include "query/functions.def"
} Aggregate;

/* '*out' is undefined before the call. */
typedef Status (*FunctionCode)(Run *run, const Value *args, uint32_t count, Value *out);

struct Function {
    Slice name;
    uint32_t args_min;
    uint32_t args_max;
    uint32_t flags;
    FunctionIndex index;
    Aggregate aggregate;
    FunctionCode code;      /* one of the two, or */
    double (*math)(double); /* neither: an aggregate, or not available yet */
};

/* NULL if there is no such function. */
const Function *function_find(Slice name);

static inline bool function_is_available(const Function *function)
{
    return function->code != NULL || function->math != NULL ||
           function->aggregate != AGGREGATE_NONE;
}

/* Calls a function that is available and no aggregate. */
MUST_USE Status function_call(Run *run, const Function *function, const Value *args, uint32_t count,
                              Value *out);

#define FUNCTION(name, least, most, flags, index, code) \
    MUST_USE Status code(Run *run, const Value *args, uint32_t count, Value *out);
#include "query/functions.def"

double math_cot(double x);
double math_degrees(double x);
double math_radians(double x);
double math_sign(double x);
double math_square(double x);
