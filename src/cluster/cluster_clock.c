/* cluster_clock.c - see cluster_clock_int.h; and how the engine is asked for the time. */
#include "cluster/cluster_int.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- the clock ---- */

static const ClusterClock *clock_of(const Clock *clock)
{
    return CONTAINER_OF(clock, ClusterClock, clock);
}

static uint64_t boot_us(const Clock *clock)
{
    return clock_boot_us(clock_of(clock)->own);
}

static uint64_t monotonic_us(const Clock *clock)
{
    return clock_monotonic_us(clock_of(clock)->own);
}

static uint64_t wall_us(const Clock *clock)
{
    return boot_us(clock) + atomic_load_explicit(&clock_of(clock)->offset_us, memory_order_relaxed);
}

void cluster_clock_init(ClusterClock *clock, const Clock *own)
{
    clock->clock = (Clock){.wall_us = wall_us, .monotonic_us = monotonic_us, .boot_us = boot_us};
    clock->own = own;
    uint64_t now_us = clock_boot_us(own);
    atomic_init(&clock->offset_us, clock_wall_us(own) - now_us);
    atomic_init(&clock->ahead_us, 0);
    atomic_init(&clock->state, CLUSTER_CLOCK_NEW);
}

ClusterClockState cluster_clock_state(const ClusterClock *clock)
{
    return (ClusterClockState)atomic_load(&clock->state);
}

static uint64_t magnitude(int64_t us)
{
    return us < 0 ? -(uint64_t)us : (uint64_t)us;
}

/* The state comes before the offset: nothing is removed by a time that may be the wrong one. */
void cluster_clock_set(ClusterClock *clock, ClockReading reading)
{
    int64_t ahead_us = (int64_t)(reading.own_us - reading.engine_us);
    bool was_wrong = cluster_clock_state(clock) == CLUSTER_CLOCK_WRONG;
    uint64_t most_us = was_wrong ? CLUSTER_CLOCK_RIGHT_US : CLUSTER_CLOCK_WRONG_US;
    bool is_wrong = magnitude(ahead_us) > most_us;
    atomic_store(&clock->ahead_us, ahead_us);
    if (is_wrong)
        atomic_store(&clock->state, CLUSTER_CLOCK_WRONG);
    atomic_store(&clock->offset_us,
                 (is_wrong ? reading.engine_us : reading.own_us) - reading.boot_us);
    if (!is_wrong)
        atomic_store(&clock->state, CLUSTER_CLOCK_RIGHT);
}

const Clock *cluster_clock(const Cluster *cluster)
{
    return &cluster->time.clock;
}

bool cluster_doubts_time(const Cluster *cluster)
{
    return cluster_clock_state(&cluster->time) != CLUSTER_CLOCK_RIGHT;
}

/* ---- what is said ---- */

#define AHEAD_FORMAT  "%" PRIu64 " s %s"
#define AHEAD_ARG(us) (magnitude(us) / 1000000), (us) < 0 ? "behind" : "ahead of"

size_t cluster_clock_warning(const Cluster *cluster, char out[CLUSTER_WARNING_MAX])
{
    if (cluster_clock_state(&cluster->time) != CLUSTER_CLOCK_WRONG)
        return 0;
    int64_t ahead_us = atomic_load(&cluster->time.ahead_us);
    int len = snprintf(out, CLUSTER_WARNING_MAX,
                       "the clock of the node '%s' is " AHEAD_FORMAT
                       " that of the engine: set it right, or the engine's if that is the wrong "
                       "one; until then the node goes by the engine's, and nothing that has "
                       "expired is removed",
                       cluster->node, AHEAD_ARG(ahead_us));
    ASSERT(len > 0 && len < CLUSTER_WARNING_MAX);
    return (size_t)len;
}

static bool is_far(int64_t a_us, int64_t b_us)
{
    return magnitude((int64_t)((uint64_t)a_us - (uint64_t)b_us)) > CLUSTER_CLOCK_WRONG_US;
}

/* Says it when it begins, when it ends, and when it has become another difference. */
static void tell(Cluster *cluster, ClusterClockState before)
{
    ClusterClockState now = cluster_clock_state(&cluster->time);
    int64_t ahead_us = atomic_load(&cluster->time.ahead_us);
    bool was_wrong = before == CLUSTER_CLOCK_WRONG;
    bool is_wrong = now == CLUSTER_CLOCK_WRONG;
    if (is_wrong && (!was_wrong || is_far(ahead_us, cluster->clock_told_us))) {
        cluster->clock_told_us = ahead_us;
        LOG_WARN(cluster->log, "cluster.clock_wrong", "seconds_ahead=%" PRId64, ahead_us / 1000000);
        cluster_event(cluster, "clockWrong", 0, 0, slice_from_cstr(cluster->node),
                      "its clock is " AHEAD_FORMAT " the engine's, which is used instead",
                      AHEAD_ARG(ahead_us));
    } else if (was_wrong && !is_wrong) {
        LOG_WARN(cluster->log, "cluster.clock_right", "seconds_before=%" PRId64,
                 cluster->clock_told_us / 1000000);
        cluster_event(cluster, "clockRight", 0, 0, slice_from_cstr(cluster->node),
                      "its clock was " AHEAD_FORMAT " the engine's, and is right again",
                      AHEAD_ARG(cluster->clock_told_us));
    }
}

/* ---- measuring ---- */

void clock_step(Cluster *cluster)
{
    const Clock *own = cluster->clock;
    ClockReading reading = {0};
    Error err;
    (void)pthread_mutex_lock(&cluster->node_lane);
    uint64_t before_us = clock_boot_us(own);
    Status status =
        journal_engine_time(cluster->journal, JOURNAL_LANE_NODE, &reading.engine_us, &err);
    uint64_t after_us = clock_boot_us(own);
    (void)pthread_mutex_unlock(&cluster->node_lane);
    reading.own_us = clock_wall_us(own);
    uint64_t ended_us = clock_boot_us(own);
    /* The renewals say that the engine does not answer. The last offset is the best there is. */
    if (status != STATUS_OK || ended_us - before_us > CLUSTER_CLOCK_ANSWER_US)
        return;
    /* The moment of the engine's reading is not known better than as the middle. */
    reading.boot_us = after_us;
    reading.engine_us += (after_us - before_us) / 2;
    ClusterClockState before = cluster_clock_state(&cluster->time);
    cluster_clock_set(&cluster->time, reading);
    tell(cluster, before);
}
