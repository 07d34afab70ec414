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

/* The strategies, and the levels that read in the same way: SDKs document LatestCommitted as a read
 * of a quorum of one region, which is what BoundedStaleness does. */
static const struct {
    Slice name;
    Consistency level;
} STRATEGIES[] = {
    {SLICE_INIT("Eventual"), CONSISTENCY_EVENTUAL},
    {SLICE_INIT("Session"), CONSISTENCY_SESSION},
    {SLICE_INIT("LatestCommitted"), CONSISTENCY_BOUNDED_STALENESS},
    {SLICE_INIT("GlobalStrong"), CONSISTENCY_STRONG},
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

static Status read_level(Consistency account, Slice name, Consistency *out, Error *err)
{
    if (name.len == 0)
        return STATUS_OK;
    Consistency level;
    if (!consistency_parse(name, &level))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "x-ms-consistency-level '%.*s' is not a consistency level; expected "
                         "Strong, BoundedStaleness, Session, ConsistentPrefix or Eventual.",
                         SLICE_CUT(name, 40));
    if (level > account)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "ConsistencyLevel %.*s specified in the request is invalid when service "
                         "is configured with consistency level %.*s. Ensure the request "
                         "consistency level is not stronger than the service consistency level.",
                         SLICE_ARG(consistency_name(level)), SLICE_ARG(consistency_name(account)));
    *out = level;
    return STATUS_OK;
}

/* "Default" changes nothing; SDKs have it as a value, although they do not send it. */
static Status read_strategy(Consistency account, Slice name, Consistency *out, Error *err)
{
    if (name.len == 0 || slice_equal_nocase(name, SLICE("Default")))
        return STATUS_OK;
    size_t i = 0;
    while (i < ARRAY_COUNT(STRATEGIES) && !slice_equal_nocase(name, STRATEGIES[i].name))
        i++;
    if (i == ARRAY_COUNT(STRATEGIES))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "x-ms-cosmos-read-consistency-strategy '%.*s' is not a strategy; expected "
                         "Eventual, Session, LatestCommitted or GlobalStrong.",
                         SLICE_CUT(name, 40));
    if (STRATEGIES[i].level == CONSISTENCY_STRONG && account != CONSISTENCY_STRONG)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The read consistency strategy GlobalStrong is possible only in an "
                         "account with consistency level Strong; the level of this account is "
                         "%.*s.",
                         SLICE_ARG(consistency_name(account)));
    *out = STRATEGIES[i].level;
    return STATUS_OK;
}

Status consistency_choose(Consistency account, Slice level, Slice strategy, Consistency *out,
                          Error *err)
{
    Consistency chosen = account;
    TRY(read_level(account, level, &chosen, err));
    TRY(read_strategy(account, strategy, &chosen, err));
    *out = chosen;
    return STATUS_OK;
}
