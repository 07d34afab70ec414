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

/* The index of the range that holds most; SIZE_MAX if all are backed off. What a partition holds
 * that is served elsewhere is not known, here and below. */
static size_t find_largest(const Search *search, const Container *container)
{
    size_t largest = SIZE_MAX;
    uint64_t most = 0;
    for (size_t i = 0; i < container->range_count; i++) {
        uint64_t bytes = handle_usage(container_handle_at(container, i)).bytes;
        if (!handle_is_local(container_handle_at(container, i)) ||
            is_backed_off(search, container->ranges[i].space) ||
            (largest != SIZE_MAX && bytes <= most))
            continue;
        largest = i;
        most = bytes;
    }
    return largest;
}

/* The index of the range whose split helps most: the largest of those that hold two logical
 * partitions or more, otherwise the one with the most hashes. SIZE_MAX if all are backed off. */
static size_t find_most_useful(const Search *search, const Container *container)
{
    PartitionKind kind = container->partition_key.kind;
    size_t best = SIZE_MAX;
    bool best_has_pair = false;
    double most = 0; /* bytes, or the part of all hashes */
    for (size_t i = 0; i < container->range_count; i++) {
        const PartitionRange *range = &container->ranges[i];
        const PartitionHandle *handle = container_handle_at(container, i);
        if (is_backed_off(search, range->space))
            continue;
        bool has_pair = split_has_pair(handle);
        double weight =
            has_pair ? (double)handle_usage(handle).bytes
                     : epk_fraction(kind, range->max_bytes) - epk_fraction(kind, range->min_bytes);
        bool is_better = has_pair == best_has_pair ? weight > most : has_pair;
        if (best != SIZE_MAX && !is_better)
            continue;
        best = i;
        best_has_pair = has_pair;
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
    size_t at = find_largest(search, container);
    uint64_t max = search->policy->rules.partition_bytes_max;
    if (max == 0 || at == SIZE_MAX || handle_usage(container_handle_at(container, at)).bytes <= max)
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
        const PartitionHandle *left = container_handle_at(container, i);
        const PartitionHandle *right = container_handle_at(container, i + 1);
        uint64_t bytes = handle_usage(left).bytes + handle_usage(right).bytes;
        if (!handle_is_local(left) || !handle_is_local(right) || bytes > least ||
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
    bool is_known; /* what they hold */
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
                               const Container *container, Arena *arena, MoveOrder **out)
{
    size_t count = container->range_count;
    Group *groups = ARENA_NEW_ARRAY(arena, Group, count);
    for (size_t i = 0; i < count; i++)
        groups[i] = (Group){i, i, handle_usage(container_handle_at(container, i)).bytes,
                            handle_is_local(container_handle_at(container, i))};
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
