/* workload.c - see workload.h. */
#include "load/workload.h"

static const Workload WORKLOADS[] = {
#define WORKLOAD_ROW(id, text, kind, shape, keys, what, ...) \
    {(text), WORKLOAD_##kind, LOAD_ITEM_SHAPE_##shape, KEY_##keys, (what), {__VA_ARGS__}},
#include "load/workload.def"
#undef WORKLOAD_ROW
};

const Workload *workload_find(Slice name)
{
    for (size_t i = 0; i < ARRAY_COUNT(WORKLOADS); i++) {
        if (slice_equal(name, slice_from_cstr(WORKLOADS[i].name)))
            return &WORKLOADS[i];
    }
    return NULL;
}

const Workload *workload_list(size_t *count)
{
    *count = ARRAY_COUNT(WORKLOADS);
    return WORKLOADS;
}
