/* consistency.h - the levels of consistency that the protocol knows.
 *
 * There is one copy of the data, and a reader sees everything that was acknowledged, so every level
 * always holds. What differs is what clients may ask for, what they do by themselves, and what
 * reads cost.
 */
#pragma once

#include "base/slice.h"

/* The larger the stronger; the default of an account is 0. */
typedef enum Consistency {
    CONSISTENCY_EVENTUAL = -2,
    CONSISTENCY_CONSISTENT_PREFIX,
    CONSISTENCY_SESSION,
    CONSISTENCY_BOUNDED_STALENESS,
    CONSISTENCY_STRONG,
} Consistency;

/* "Session" and so on; in any case. */
bool consistency_parse(Slice name, Consistency *out);
Slice consistency_name(Consistency level);

/* Whether a read at this level asks more than one replica at the service, and costs double. */
static inline bool consistency_is_strong(Consistency level)
{
    return level >= CONSISTENCY_BOUNDED_STALENESS;
}
