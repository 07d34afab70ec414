/* call_int.h - calling a function: the code of the rows of functions.def.
 *
 * Code gets evaluated arguments and gives a value; it fails only when the run's budget ends. What
 * does not fit a function's types is no error: the result is undefined.
 */
#pragma once

#include "query/eval/query_run_int.h"
#include "query/sql/functions_int.h"

/* '*out' is undefined before the call. */
typedef Status (*FunctionCode)(Run *run, const Value *args, uint32_t count, Value *out);

/* Calls a function that is available and no aggregate. */
MUST_USE Status function_call(Run *run, const Function *function, const Value *args, uint32_t count,
                              Value *out);

#define FUNCTION(name, least, most, flags, index, code) \
    MUST_USE Status code(Run *run, const Value *args, uint32_t count, Value *out);
#include "query/sql/functions.def"

double math_cot(double x);
double math_degrees(double x);
double math_radians(double x);
double math_sign(double x);
double math_square(double x);
