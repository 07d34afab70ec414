/* call.c - the table of code by FunctionId, and how a function is called. */
#include "query/eval/call_int.h"

#include <math.h>

/* One of the two, or neither: an aggregate, or a function that is not available yet. */
typedef struct CallCode {
    FunctionCode code;
    double (*math)(double);
} CallCode;

static const CallCode CODES[FUNCTION_ID_END] = {
#define FUNCTION(name, least, most, flags, index, code_) [FUNCTION_ID_##name] = {.code = (code_)},
#define MATH(name, code_)                                [FUNCTION_ID_##name] = {.math = (code_)},
#include "query/sql/functions.def"
};

Status function_call(Run *run, const Function *function, const Value *args, uint32_t count,
                     Value *out)
{
    const CallCode *call = &CODES[function->id];
    *out = VALUE_UNDEFINED;
    for (uint32_t i = 0; i < count && !(function->flags & FUNCTION_ANY); i++) {
        if (!value_defined(&args[i]))
            return STATUS_OK;
    }
    if (call->code != NULL)
        return call->code(run, args, count, out);
    ASSERT(call->math != NULL);
    if (args[0].type == JSON_NUMBER)
        *out = value_number(call->math(args[0].number));
    return STATUS_OK;
}
