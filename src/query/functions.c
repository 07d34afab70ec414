/* functions.c - the table of functions, and how one is called. */
#include "query/functions_int.h"

#include <math.h>

static const Function FUNCTIONS[] = {
#define FUNCTION(called, least, most, flags_, index_, code_) \
    {.name = SLICE_INIT(#called),                            \
     .args_min = (least),                                    \
     .args_max = (most),                                     \
     .flags = (flags_),                                      \
     .index = FUNCTION_INDEX_##index_,                       \
     .code = (code_)},
#define MATH(called, code_) \
    {.name = SLICE_INIT(#called), .args_min = 1, .args_max = 1, .math = (code_)},
#define AGGREGATE_ROW(called) \
    {.name = SLICE_INIT(#called), .args_min = 1, .args_max = 1, .aggregate = AGGREGATE_##called},
#define LATER(called, least, most, flags_) \
    {.name = SLICE_INIT(#called), .args_min = (least), .args_max = (most), .flags = (flags_)},
#include "query/functions.def"
};

const Function *function_find(Slice name)
{
    for (size_t i = 0; i < ARRAY_COUNT(FUNCTIONS); i++) {
        if (FUNCTIONS[i].name.len == name.len && slice_equal_nocase(FUNCTIONS[i].name, name))
            return &FUNCTIONS[i];
    }
    return NULL;
}

Status function_call(Run *run, const Function *function, const Value *args, uint32_t count,
                     Value *out)
{
    *out = VALUE_UNDEFINED;
    for (uint32_t i = 0; i < count && !(function->flags & FUNCTION_ANY); i++) {
        if (!value_defined(&args[i]))
            return STATUS_OK;
    }
    if (function->code != NULL)
        return function->code(run, args, count, out);
    if (args[0].type == JSON_NUMBER)
        *out = value_number(function->math(args[0].number));
    return STATUS_OK;
}
