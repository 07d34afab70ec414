/* functions.c - the table of functions. */
#include "query/sql/functions_int.h"

static const Function FUNCTIONS[] = {
#define FUNCTION(called, least, most, flags_, index_, code) \
    {.id = FUNCTION_ID_##called,                            \
     .name = SLICE_INIT(#called),                           \
     .args_min = (least),                                   \
     .args_max = (most),                                    \
     .flags = (flags_),                                     \
     .index = FUNCTION_INDEX_##index_,                      \
     .is_available = true},
#define MATH(called, code)        \
    {.id = FUNCTION_ID_##called,  \
     .name = SLICE_INIT(#called), \
     .args_min = 1,               \
     .args_max = 1,               \
     .is_available = true},
#define AGGREGATE_ROW(called)         \
    {.id = FUNCTION_ID_##called,      \
     .name = SLICE_INIT(#called),     \
     .args_min = 1,                   \
     .args_max = 1,                   \
     .aggregate = AGGREGATE_##called, \
     .is_available = true},
#define LATER(called, least, most, flags_) \
    {.id = FUNCTION_ID_##called,           \
     .name = SLICE_INIT(#called),          \
     .args_min = (least),                  \
     .args_max = (most),                   \
     .flags = (flags_)},
#include "query/sql/functions.def"
};
static_assert(ARRAY_COUNT(FUNCTIONS) == FUNCTION_ID_END, "an id is an index of the table");

const Function *function_find(Slice name)
{
    for (size_t i = 0; i < ARRAY_COUNT(FUNCTIONS); i++) {
        if (FUNCTIONS[i].name.len == name.len && slice_equal_nocase(FUNCTIONS[i].name, name))
            return &FUNCTIONS[i];
    }
    return NULL;
}

const Function *item_aggregate(const Select *select, const SelectItem *item)
{
    const Node *value = item->value;
    bool is_aggregate = value->kind == NODE_CALL && value->call.owner == select;
    return is_aggregate ? value->call.function : NULL;
}
