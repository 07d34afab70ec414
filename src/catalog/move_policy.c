/* move_policy.c - see move_policy_int.h. */
#include "catalog/move_policy_int.h"

#include "catalog/split_int.h"

enum { BACKOFF_US = 30 * 1000000 };

void move_backoffs_add(MoveBackoffs *backoffs, StoreSpace space, uint64_t now_us)
{
    ASSERT(space != 0);
    backoffs->items[backoffs->next++ % MOVE_BACKOFFS_MAX] =
        (struct MoveBackoff){space, now_us + BACKOFF_US};
}

bool move_backoffs_has(const MoveBackoffs *backoffs, StoreSpace space, uint64_t now_us)
{
    for (size_t i = 0; i < MOVE_BACKOFFS_MAX; i++) {
        if (backoffs->items[i].space == space && backoffs->items[i].until_us > now_us)
            return true;
    }
    return false;
}

/* ---- which move is due ---- */

/* What the search for a move that is due depends on. */
typedef struct Search {
    const MovePolicy *policy;
    const MoveBackoffs *backoffs;
    const Snapshot *snapshot;
    uint64_t now_us;
} Search;

/* Between which numbers of partitions nothing is due for a container's throughput. Both are 0 if it
 * has no throughput of its own. */
typedef struct PartitionCounts {
    uint32_t needed; /* fewer are split */
    uint32_t kept;   /* more are merged; a new container would get as many */
} PartitionCounts;

static PartitionCounts partition_counts(const Snapshot *snapshot, const Container *container,
                                        const ProvisionRules *rules)
{
    const Offer *offer = container->offer == 0 ? NULL : snapshot_offer(snapshot, container->offer);
    if (offer == NULL || container->partition_key.kind == PARTITION_NONE)
        return (PartitionCounts){0};
    uint32_t needed = provision_partitions(&offer->provision, rules);
    uint32_t new = provision_partitions_new(&offer->provision, rules);
    return (PartitionCounts){.needed = needed, .kept = new > needed ? new : needed};
}

static bool is_backed_off(const Search *search, StoreSpace space)
{
    return move_backoffs_has(search->backoffs, space, search->now_us);
}

static MoveOrder order_of(const Container *container, size_t first, size_t last, uint32_t parts)
{
    ASSERT(first <= last);
    ASSERT(last < container->range_count);
    ASSERT(last - first < MOVE_RANGES_MAX);
    return (MoveOrder){
        .database = container->database,
        .container = container->info.number,
        .range_first = container->ranges[first].id,
        .range_last = container->ranges[last].id,
        .parts = parts,
    };
}

/* The index of the range that holds most, and how much; SIZE_MAX if all are backed off. What is not
 * known for the present counts for nothing, here and below: no move begins for it. */
static size_t find_largest(const Search *search, const Container *container, uint64_t *most)
{
    size_t largest = SIZE_MAX;
    *most = 0;
    for (size_t i = 0; i < container->range_count; i++) {
        KnownUsage known = handle_known_usage(container_handle_at(container, i), search->now_us);
        if (!known.is_fresh || is_backed_off(search, container->ranges[i].space) ||
            (largest != SIZE_MAX && known.held.bytes <= *most))
            continue;
        largest = i;
        *most = known.held.bytes;
    }
    return largest;
}

/* Whether it holds two logical partitions or more. Elsewhere nobody looks before it is needed. */
static bool has_pair(const PartitionHandle *handle, const KnownUsage *known)
{
    if (handle_is_local(handle))
        return split_has_pair(handle);
    return known->is_fresh && known->held.items >= 2 && !known->is_one_key;
}

/* The index of the range whose split helps most: the largest of those that hold two logical
 * partitions or more, otherwise the one with the most hashes. SIZE_MAX if all are backed off. */
static size_t find_most_useful(const Search *search, const Container *container)
{
    PartitionKind kind = container->partition_key.kind;
    size_t best = SIZE_MAX;
    bool best_is_pair = false;
    double most = 0; /* bytes, or the part of all hashes */
    for (size_t i = 0; i < container->range_count; i++) {
        const PartitionRange *range = &container->ranges[i];
        const PartitionHandle *handle = container_handle_at(container, i);
        if (is_backed_off(search, range->space))
            continue;
        KnownUsage known = handle_known_usage(handle, search->now_us);
        bool is_pair = has_pair(handle, &known);
        double weight =
            is_pair ? (double)known.held.bytes
                    : epk_fraction(kind, range->max_bytes) - epk_fraction(kind, range->min_bytes);
        bool is_better = is_pair == best_is_pair ? weight > most : is_pair;
        if (best != SIZE_MAX && !is_better)
            continue;
        best = i;
        best_is_pair = is_pair;
        most = weight;
    }
    return best;
}

static bool find_split_for_throughput(const Search *search, const Container *container,
                                      uint32_t needed, MoveOrder *out, MoveReason *reason)
{
    size_t have = container->range_count;
    ASSERT(have > 0);
    size_t at = have < needed ? find_most_useful(search, container) : SIZE_MAX;
    if (at == SIZE_MAX)
        return false;
    size_t share = (needed + have - 1) / have;
    size_t parts = needed - have + 1 < share ? needed - have + 1 : share;
    parts = parts > MOVE_RANGES_MAX ? MOVE_RANGES_MAX : parts;
    *out = order_of(container, at, at, (uint32_t)parts);
    out->by = SPLIT_ALWAYS;
    *reason = MOVE_THROUGHPUT;
    return true;
}

static bool find_split_for_storage(const Search *search, const Container *container, MoveOrder *out,
                                   MoveReason *reason)
{
    uint64_t bytes;
    size_t at = find_largest(search, container, &bytes);
    uint64_t max = search->policy->rules.partition_bytes_max;
    if (max == 0 || at == SIZE_MAX || bytes <= max)
        return false;
    *out = order_of(container, at, at, 2);
    *reason = MOVE_STORAGE;
    return true;
}

static bool find_split(const Search *search, const Container *container, uint32_t needed,
                       MoveOrder *out, MoveReason *reason)
{
    return container->range_count < RANGES_MAX &&
           (find_split_for_throughput(search, container, needed, out, reason) ||
            find_split_for_storage(search, container, out, reason));
}

/* Finds the two neighbours that hold least together, unless they hold so much that they would soon
 * be split again. */
static bool find_merge(const Search *search, const Container *container, uint32_t kept,
                       MoveOrder *out, MoveReason *reason)
{
    if (kept == 0 || container->range_count <= kept)
        return false;
    uint64_t least = search->policy->rules.partition_bytes_max / 2;
    bool found = false;
    for (size_t i = 0; i + 1 < container->range_count; i++) {
        KnownUsage left = handle_known_usage(container_handle_at(container, i), search->now_us);
        KnownUsage right =
            handle_known_usage(container_handle_at(container, i + 1), search->now_us);
        uint64_t bytes = left.held.bytes + right.held.bytes;
        if (!left.is_fresh || !right.is_fresh || bytes > least ||
            is_backed_off(search, container->ranges[i].space))
            continue;
        least = bytes;
        found = true;
        *out = order_of(container, i, i + 1, 1);
        *reason = MOVE_THROUGHPUT;
    }
    return found;
}

static bool is_due(const Search *search, const Container *container, MoveOrder *out,
                   MoveReason *reason)
{
    if (container->pending_count > 0 || container->partition_key.kind == PARTITION_NONE)
        return false;
    PartitionCounts counts =
        partition_counts(search->snapshot, container, &search->policy->provision);
    return (search->policy->rules.splits &&
            find_split(search, container, counts.needed, out, reason)) ||
           (search->policy->rules.merges &&
            find_merge(search, container, counts.kept, out, reason));
}

bool move_policy_find_due(const MovePolicy *policy, const MoveBackoffs *backoffs,
                          const Snapshot *snapshot, uint64_t now_us, MoveOrder *out,
                          MoveReason *reason)
{
    Search search = {policy, backoffs, snapshot, now_us};
    bool found = false;
    SnapshotWalk walk = {0};
    while (!found && snapshot_next(snapshot, &walk))
        found = is_due(&search, walk.container, out, reason);
    return found;
}

bool move_policy_needs_split(const MovePolicy *policy, const Snapshot *snapshot,
                             const Container *container)
{
    return policy->rules.splits && container->range_count < RANGES_MAX &&
           container->range_count <
               partition_counts(snapshot, container, &policy->provision).needed;
}

/* ---- which merges there is room for ---- */

/* Neighbours that become one. */
typedef struct Group {
    size_t first; /* indexes of ranges */
    size_t last;
    uint64_t bytes;
    bool is_known; /* what they hold now */
} Group;

/* The left one of the two neighbours that hold least together; SIZE_MAX if none may be merged. */
static size_t find_pair(const Group *groups, size_t count, uint64_t bytes_max)
{
    size_t found = SIZE_MAX;
    uint64_t least = bytes_max;
    for (size_t i = 0; i + 1 < count; i++) {
        uint64_t bytes = groups[i].bytes + groups[i + 1].bytes;
        bool is_better = found == SIZE_MAX ? bytes <= least : bytes < least;
        if (!is_better || !groups[i].is_known || !groups[i + 1].is_known ||
            groups[i + 1].last - groups[i].first >= MOVE_RANGES_MAX)
            continue;
        found = i;
        least = bytes;
    }
    return found;
}

static uint32_t partitions_kept(const MovePolicy *policy, const Snapshot *snapshot,
                                const Container *container)
{
    uint32_t kept = partition_counts(snapshot, container, &policy->provision).kept;
    const Database *database = snapshot_database(snapshot, container->database);
    /* A container that shares throughput has a range for each partition that it is divided over. */
    if (kept == 0 && container->offer == 0 && database != NULL)
        kept = database->partitions;
    return kept == 0 ? 1 : kept;
}

size_t move_policy_plan_merges(const MovePolicy *policy, const Snapshot *snapshot,
                               const Container *container, uint64_t now_us, Arena *arena,
                               MoveOrder **out)
{
    size_t count = container->range_count;
    Group *groups = ARENA_NEW_ARRAY(arena, Group, count);
    for (size_t i = 0; i < count; i++) {
        KnownUsage known = handle_known_usage(container_handle_at(container, i), now_us);
        groups[i] = (Group){i, i, known.held.bytes, known.is_fresh};
    }
    /* As much as automatic merges allow: what is merged must not be split again soon. */
    uint64_t bytes_max = policy->rules.partition_bytes_max / 2;
    uint32_t kept = partitions_kept(policy, snapshot, container);
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
        orders[order_count++] = order_of(container, groups[i].first, groups[i].last, 1);
    }
    *out = orders;
    return order_count;
}
