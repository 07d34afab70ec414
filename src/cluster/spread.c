/* spread.c - see spread_int.h. */
#include "cluster/spread_int.h"

#include "base/hash.h"

#include <stdlib.h>

/* Fixed, so that all nodes agree. Nobody gains by guessing it: names of nodes are an operator's. */
static const HashKey WEIGHT_KEY = {UINT64_C(0x6f72726572792d73), UINT64_C(0x7072656164207631)};

size_t view_node(const ClusterView *view, Slice name)
{
    for (size_t i = 0; i < view->node_count; i++) {
        if (slice_equal(view->nodes[i].name, name))
            return i;
    }
    return NO_NODE;
}

bool view_is_living(const ClusterView *view, size_t node)
{
    return node != NO_NODE && view->nodes[node].state != NODE_DEAD;
}

bool view_is_cut_off(const ClusterView *view, size_t node)
{
    size_t others = 0;
    size_t complaints = 0;
    for (size_t i = 0; i < view->node_count; i++) {
        if (i == node || !view_is_living(view, i))
            continue;
        others++;
        Slice names = view->nodes[i].unreachable;
        while (names.len > 0) {
            if (slice_equal(slice_cut(&names, ','), view->nodes[node].name)) {
                complaints++;
                break;
            }
        }
    }
    return complaints >= 2 && complaints * 2 > others;
}

static bool may_get_more(const ClusterView *view, size_t node)
{
    return view->nodes[node].state == NODE_LIVE && !view_is_cut_off(view, node);
}

const JournalOwner *view_owner(const ClusterView *view, StoreSpace space)
{
    size_t from = 0;
    size_t to = view->owner_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (view->owners[middle].space < space)
            from = middle + 1;
        else
            to = middle;
    }
    return from < view->owner_count && view->owners[from].space == space ? &view->owners[from]
                                                                         : NULL;
}

size_t view_first_replica(const ClusterView *view, StoreSpace space)
{
    size_t from = 0;
    size_t to = view->replica_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (view->replicas[middle].space < space)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

const JournalReplica *view_replica(const ClusterView *view, StoreSpace space, Slice node)
{
    for (size_t i = view_first_replica(view, space);
         i < view->replica_count && view->replicas[i].space == space; i++) {
        if (slice_equal(view->replicas[i].node, node))
            return &view->replicas[i];
    }
    return NULL;
}

static int compare_replicas(const void *a, const void *b)
{
    const JournalReplica *left = a;
    const JournalReplica *right = b;
    if (left->space != right->space)
        return left->space < right->space ? -1 : 1;
    return slice_compare(left->node, right->node);
}

void view_sort_replicas(ClusterView *view, Arena *arena)
{
    if (view->replica_count == 0)
        return;
    JournalReplica *sorted = ARENA_NEW_ARRAY(arena, JournalReplica, view->replica_count);
    memcpy(sorted, view->replicas, view->replica_count * sizeof(JournalReplica));
    qsort(sorted, view->replica_count, sizeof(JournalReplica), compare_replicas);
    view->replicas = sorted;
}

void view_count_loads(ClusterView *view, Arena *arena)
{
    view->loads = ARENA_NEW_ARRAY(arena, size_t, view->node_count + 1);
    view->is_silent = ARENA_NEW_ARRAY(arena, bool, view->node_count + 1);
    for (size_t i = 0; i < view->owner_count; i++) {
        size_t node = view_node(view, view->owners[i].node);
        if (node != NO_NODE)
            view->loads[node]++;
    }
}

bool view_owner_lives(const ClusterView *view, const JournalOwner *owner)
{
    size_t node = view_node(view, owner->node);
    return view_is_living(view, node) && view->nodes[node].incarnation == owner->incarnation;
}

/* A space that was dropped has no part in what becomes of the others. */
void view_set_groups(ClusterView *view, Arena *arena, SharedSpace *shared, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const JournalOwner *owner = view_owner(view, shared[i].space);
        if (owner != NULL && owner->sealed != -1)
            shared[kept++] = shared[i];
    }
    view->groups = space_groups_make(arena, shared, kept);
    view->has_groups = true;
}

SpaceGroup view_group(const ClusterView *view, const StoreSpace *space)
{
    return space_groups_find(&view->groups, space);
}

bool view_knows_group(const ClusterView *view, StoreSpace space)
{
    return view->has_groups || space == SPACE_OF_CATALOG;
}

static uint64_t weight_of(Slice node, uint64_t group)
{
    char key[sizeof(group) + JOURNAL_NAME_MAX];
    Slice name = slice_first(node, JOURNAL_NAME_MAX);
    memcpy(key, &group, sizeof(group));
    memcpy(key + sizeof(group), name.ptr, name.len);
    return hash_keyed(WEIGHT_KEY, slice_make(key, sizeof(group) + name.len));
}

bool spread_follows(const ClusterView *view, const bool *counts, const JournalOwner *owner,
                    size_t node, uint32_t replicas)
{
    if (!counts[node] || slice_equal(view->nodes[node].name, owner->node))
        return false;
    if (owner->space == SPACE_OF_CATALOG)
        return true;
    uint64_t group = view_group(view, &owner->space).key;
    uint64_t own = weight_of(view->nodes[node].name, group);
    size_t before = 1; /* the owner */
    for (size_t i = 0; i < view->node_count; i++) {
        if (i == node || !counts[i] || slice_equal(view->nodes[i].name, owner->node))
            continue;
        uint64_t other = weight_of(view->nodes[i].name, group);
        before += other > own || (other == own && i < node);
    }
    return before < replicas;
}

/* Whether its copy reaches back to where the log begins. */
static bool has_copy(const ClusterView *view, const JournalOwner *owner, size_t node)
{
    if (!view_is_living(view, node))
        return false;
    const JournalReplica *replica = view_replica(view, owner->space, view->nodes[node].name);
    return replica != NULL && replica->state == REPLICA_FOLLOWING &&
           replica->applied >= owner->base;
}

bool spread_may_take(const ClusterView *view, const JournalOwner *owner, size_t node)
{
    if (has_copy(view, owner, node))
        return true;
    bool is_copied = false;
    for (size_t i = 0; i < view->node_count && !is_copied; i++)
        is_copied = has_copy(view, owner, i);
    return !is_copied && owner->base == 0 && view_is_living(view, node);
}

/* What a node has of a group whose owner is dead. */
typedef struct Claim {
    size_t able; /* orphans that it may take */
    size_t owned;
    uint64_t applied; /* of the orphans, in all */
} Claim;

static Claim claim_of(const ClusterView *view, SpaceGroup group, size_t node)
{
    Claim claim = {0};
    Slice name = view->nodes[node].name;
    for (size_t i = 0; i < group.count; i++) {
        const JournalOwner *owner = view_owner(view, group.spaces[i]);
        if (owner == NULL)
            continue;
        if (view_owner_lives(view, owner)) {
            claim.owned += slice_equal(owner->node, name);
            continue;
        }
        const JournalReplica *replica = view_replica(view, owner->space, name);
        claim.able += spread_may_take(view, owner, node);
        claim.applied +=
            replica != NULL && replica->state != REPLICA_SEEDING ? replica->applied : 0;
    }
    return claim;
}

size_t spread_rank(const ClusterView *view, SpaceGroup group, size_t node)
{
    Claim own = claim_of(view, group, node);
    if (own.able == 0)
        return NO_NODE;
    size_t rank = 0;
    for (size_t i = 0; i < view->node_count; i++) {
        Claim other = claim_of(view, group, i);
        if (i == node || other.able == 0)
            continue;
        if (other.able != own.able)
            rank += other.able > own.able;
        else if (other.owned != own.owned)
            rank += other.owned > own.owned;
        else if (other.applied != own.applied)
            rank += other.applied > own.applied;
        else if (view->loads[i] != view->loads[node])
            rank += view->loads[i] < view->loads[node];
        else
            rank += slice_compare(view->nodes[i].name, view->nodes[node].name) < 0;
    }
    return rank;
}

/* How many spaces of the group the node owns, and of how many it has a copy or is the owner. */
static void count_held(const ClusterView *view, SpaceGroup group, size_t node, size_t *owned,
                       size_t *held)
{
    Slice name = view->nodes[node].name;
    *owned = *held = 0;
    for (size_t i = 0; i < group.count; i++) {
        const JournalOwner *owner = view_owner(view, group.spaces[i]);
        const JournalReplica *replica = view_replica(view, group.spaces[i], name);
        bool owns =
            owner != NULL && slice_equal(owner->node, name) && view_owner_lives(view, owner);
        *owned += owns;
        *held += owns || (replica != NULL && replica->state == REPLICA_FOLLOWING);
    }
}

size_t spread_choose(const ClusterView *view, SpaceGroup group, size_t but)
{
    size_t best = NO_NODE;
    size_t best_owned = 0;
    size_t best_held = 0;
    for (size_t i = 0; i < view->node_count; i++) {
        if (i == but || !may_get_more(view, i))
            continue;
        size_t owned;
        size_t held;
        count_held(view, group, i, &owned, &held);
        bool is_better = best == NO_NODE       ? true
                         : held != best_held   ? held > best_held
                         : owned != best_owned ? owned > best_owned
                                               : view->loads[i] < view->loads[best];
        if (is_better) {
            best = i;
            best_owned = owned;
            best_held = held;
        }
    }
    return best;
}

size_t spread_home(const ClusterView *view, SpaceGroup group)
{
    size_t home = NO_NODE;
    size_t most = 0;
    for (size_t i = 0; i < view->node_count; i++) {
        size_t owned;
        size_t held;
        if (!may_get_more(view, i))
            continue;
        count_held(view, group, i, &owned, &held);
        /* A tie is decided by what does not change while the group comes together. */
        bool is_first = home != NO_NODE && owned == most &&
                        slice_compare(view->nodes[i].name, view->nodes[home].name) < 0;
        if (owned > most || (owned > 0 && is_first)) {
            home = i;
            most = owned;
        }
    }
    return home;
}

bool spread_is_uneven(const ClusterView *view, size_t node, size_t *to)
{
    size_t most = NO_NODE;
    size_t least = NO_NODE;
    for (size_t i = 0; i < view->node_count; i++) {
        if (!may_get_more(view, i))
            continue;
        if (most == NO_NODE || view->loads[i] > view->loads[most])
            most = i;
        if (least == NO_NODE || view->loads[i] < view->loads[least])
            least = i;
    }
    if (most != node || least == NO_NODE || view->loads[most] < view->loads[least] + 2)
        return false;
    *to = least;
    return true;
}
