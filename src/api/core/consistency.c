/* consistency.c - see consistency.h. */
#include "api/core/consistency.h"

/* From the weakest on. */
static const Slice NAMES[] = {
    [0] = SLICE_INIT("Eventual"),
    [CONSISTENCY_CONSISTENT_PREFIX - CONSISTENCY_EVENTUAL] = SLICE_INIT("ConsistentPrefix"),
    [CONSISTENCY_SESSION - CONSISTENCY_EVENTUAL] = SLICE_INIT("Session"),
    [CONSISTENCY_BOUNDED_STALENESS - CONSISTENCY_EVENTUAL] = SLICE_INIT("BoundedStaleness"),
    [CONSISTENCY_STRONG - CONSISTENCY_EVENTUAL] = SLICE_INIT("Strong"),
};

bool consistency_parse(Slice name, Consistency *out)
{
    for (int i = 0; i < (int)ARRAY_COUNT(NAMES); i++) {
        if (slice_equal_nocase(name, NAMES[i])) {
            *out = (Consistency)(CONSISTENCY_EVENTUAL + i);
            return true;
        }
    }
    return false;
}

Slice consistency_name(Consistency level)
{
    return NAMES[level - CONSISTENCY_EVENTUAL];
}
