/* mover_seen.c - what others want to know of splits and merges: how many there were, whether one is
 * coming, which merges there is room for. See moves.h. */
#include "catalog/mover_int.h"

void mover_count(Mover *mover, const MoveEvent *event)
{
    MoveCounts *counts = &mover->counts;
    bool is_split = event->source_count == 1;
    if (event->stage == MOVE_DONE)
        *(is_split ? &counts->splits_done : &counts->merges_done) += 1;
    else
        *(is_split ? &counts->splits_failed : &counts->merges_failed) += 1;
    counts->bytes += event->bytes;
    counts->fence_us += event->fence_us;
    if (event->fence_us > counts->fence_us_max)
        counts->fence_us_max = event->fence_us;
}

MoveCounts mover_counts(Mover *mover)
{
    if (!mover->is_running)
        return (MoveCounts){0};
    (void)pthread_mutex_lock(&mover->lock);
    MoveCounts counts = mover->counts;
    (void)pthread_mutex_unlock(&mover->lock);
    return counts;
}

/* ---- whether one is coming ---- */

typedef struct Newest {
    bool is_open;          /* some move of the container waits or is under way */
    bool has_failed;       /* the newest one has ... */
    uint64_t failed_at_us; /* ... at this time */
} Newest;

static Newest find_newest(Mover *mover, const Container *container)
{
    Newest newest = {0};
    bool is_first = true;
    (void)pthread_mutex_lock(&mover->lock);
    for (uint64_t n = mover->event_count; n > 0 && mover->event_count - n < MOVE_EVENTS_MAX; n--) {
        const MoveEvent *event = &mover->events[n % MOVE_EVENTS_MAX];
        if (event->database != container->database || event->container != container->info.number)
            continue;
        newest.is_open = newest.is_open || event->stage < MOVE_DONE;
        if (is_first && event->stage == MOVE_FAILED) {
            newest.has_failed = true;
            newest.failed_at_us = event->ended_us;
        }
        is_first = false;
    }
    (void)pthread_mutex_unlock(&mover->lock);
    return newest;
}

bool mover_is_moving(Mover *mover, const Container *container)
{
    return mover->is_running && find_newest(mover, container).is_open;
}

/* A split that has failed is tried again now and then. Nobody has to wait for that. */
bool mover_is_scaling(Mover *mover, const Snapshot *snapshot, const Container *container)
{
    if (!mover->is_running)
        return false;
    Newest newest = find_newest(mover, container);
    if (newest.is_open || !mover->rules.splits || container->range_count >= RANGES_MAX)
        return newest.is_open;
    if (container->range_count >=
        mover_partition_counts(snapshot, container, &mover->provision).needed)
        return false;
    const Offer *offer = snapshot_offer(snapshot, container->offer);
    return !newest.has_failed || newest.failed_at_us / 1000000 < (uint64_t)offer->replaced_at_s;
}

/* ---- which merges there is room for ---- */

/* Neighbours that become one. */
typedef struct Group {
    size_t first; /* indexes of ranges */
    size_t last;
    uint64_t bytes;
} Group;

/* Those that hold least together, the left one of the two; SIZE_MAX: none that may be merged. */
static size_t find_pair(const Group *groups, size_t count, uint64_t bytes_max)
{
    size_t found = SIZE_MAX;
    uint64_t least = bytes_max;
    for (size_t i = 0; i + 1 < count; i++) {
        uint64_t bytes = groups[i].bytes + groups[i + 1].bytes;
        bool is_better = found == SIZE_MAX ? bytes <= least : bytes < least;
        if (!is_better || groups[i + 1].last - groups[i].first >= MOVE_RANGES_MAX)
            continue;
        found = i;
        least = bytes;
    }
    return found;
}

static uint32_t partitions_kept(const Mover *mover, const Snapshot *snapshot,
                                const Container *container)
{
    uint32_t kept = mover_partition_counts(snapshot, container, &mover->provision).kept;
    const Database *database = snapshot_database(snapshot, container->database);
    /* Who shares throughput has a part of each partition that it is divided over. */
    if (kept == 0 && container->offer == 0 && database != NULL)
        kept = database->partitions;
    return kept == 0 ? 1 : kept;
}

size_t mover_plan_merges(const Mover *mover, const Snapshot *snapshot, const Container *container,
                         Arena *arena, MoveOrder **out)
{
    size_t count = container->range_count;
    Group *groups = ARENA_NEW_ARRAY(arena, Group, count);
    for (size_t i = 0; i < count; i++)
        groups[i] = (Group){i, i, partition_usage(container->ranges[i].partition).bytes};
    /* As much as automatic merges allow: what is merged must not be split again soon. */
    uint64_t bytes_max = mover->rules.partition_bytes_max / 2;
    uint32_t kept = partitions_kept(mover, snapshot, container);
    while (count > kept) {
        size_t at = find_pair(groups, count, bytes_max == 0 ? UINT64_MAX : bytes_max);
        if (at == SIZE_MAX)
            break;
        groups[at].last = groups[at + 1].last;
        groups[at].bytes += groups[at + 1].bytes;
        count--;
        memmove(&groups[at + 1], &groups[at + 2], (count - at - 1) * sizeof(Group));
    }
    MoveOrder *orders = ARENA_NEW_ARRAY(arena, MoveOrder, count);
    size_t order_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (groups[i].first == groups[i].last)
            continue;
        orders[order_count++] = (MoveOrder){
            .database = container->database,
            .container = container->info.number,
            .range_first = container->ranges[groups[i].first].id,
            .range_last = container->ranges[groups[i].last].id,
            .parts = 1,
        };
    }
    *out = orders;
    return order_count;
}
