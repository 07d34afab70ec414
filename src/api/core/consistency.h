/* consistency.h - the levels of consistency that the protocol knows, and which one a read has.
 *
 * There is one copy of the data, and a reader sees everything that was acknowledged, so every level
 * always holds. What differs is what clients may ask for, what they do by themselves, whether
 * session tokens count, and what reads cost.
 */
#pragma once

#include "base/error.h"
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

/* The level that the reads of a request have in an account of the level 'account'. 'level' and
 * 'strategy' are the values of x-ms-consistency-level and x-ms-cosmos-read-consistency-strategy, or
 * empty. A level may not be stronger than the account's. A strategy overrides the level and is
 * chosen independently of the account, except that GlobalStrong needs an account of level Strong.
 * STATUS_BAD_REQUEST if one of them is unknown or not allowed. */
MUST_USE Status consistency_choose(Consistency account, Slice level, Slice strategy,
                                   Consistency *out, Error *err);

/* Whether a read at this level asks more than one replica at the service, and costs double. */
static inline bool consistency_is_strong(Consistency level)
{
    return level >= CONSISTENCY_BOUNDED_STALENESS;
}

/* Whether a read at this level respects the client's session token. Stronger levels guarantee more
 * than a token can ask for, and weaker ones promise nothing. */
static inline bool consistency_has_session(Consistency level)
{
    return level == CONSISTENCY_SESSION;
}
