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

static uint64_t weight_of(Slice node, StoreSpace space)
{
    char key[sizeof(space) + JOURNAL_NAME_MAX];
    Slice name = slice_first(node, JOURNAL_NAME_MAX);
    memcpy(key, &space, sizeof(space));
    memcpy(key + sizeof(space), name.ptr, name.len);
    return hash_keyed(WEIGHT_KEY, slice_make(key, sizeof(space) + name.len));
}

bool spread_follows(const ClusterView *view, const bool *counts, const JournalOwner *owner,
                    size_t node, uint32_t replicas)
{
    if (!counts[node] || slice_equal(view->nodes[node].name, owner->node))
        return false;
    if (owner->space == SPACE_OF_CATALOG)
        return true;
    uint64_t own = weight_of(view->nodes[node].name, owner->space);
    size_t before = 1; /* the owner */
    for (size_t i = 0; i < view->node_count; i++) {
        if (i == node || !counts[i] || slice_equal(view->nodes[i].name, owner->node))
            continue;
        uint64_t other = weight_of(view->nodes[i].name, owner->space);
        before += other > own || (other == own && i < node);
    }
    return before < replicas;
}

/* How far the node's copy is; false if the node may not take the space over. */
static bool may_take(const ClusterView *view, const JournalOwner *owner, size_t node,
                     uint64_t *applied)
{
    if (!view_is_living(view, node))
        return false;
    const JournalReplica *replica = view_replica(view, owner->space, view->nodes[node].name);
    *applied = replica != NULL ? replica->applied : 0;
    return replica != NULL && replica->state == REPLICA_FOLLOWING &&
           replica->applied >= owner->base;
}

size_t spread_rank(const ClusterView *view, const JournalOwner *owner, size_t node)
{
    bool has_replica = false;
    uint64_t applied = 0;
    for (size_t i = 0; i < view->node_count; i++)
        has_replica = has_replica || may_take(view, owner, i, &applied);
    bool takes_all = !has_replica && owner->base == 0;
    uint64_t own = 0;
    if (!may_take(view, owner, node, &own) && !(takes_all && view_is_living(view, node)))
        return NO_NODE;
    size_t rank = 0;
    for (size_t i = 0; i < view->node_count; i++) {
        if (i == node ||
            (!may_take(view, owner, i, &applied) && !(takes_all && view_is_living(view, i))))
            continue;
        if (applied != own)
            rank += applied > own;
        else if (view->loads[i] != view->loads[node])
            rank += view->loads[i] < view->loads[node];
        else
            rank += slice_compare(view->nodes[i].name, view->nodes[node].name) < 0;
    }
    return rank;
}

size_t spread_choose(const ClusterView *view, StoreSpace space, size_t but)
{
    size_t best = NO_NODE;
    bool best_follows = false;
    for (size_t i = 0; i < view->node_count; i++) {
        if (i == but || !may_get_more(view, i))
            continue;
        const JournalReplica *replica =
            space != 0 ? view_replica(view, space, view->nodes[i].name) : NULL;
        bool follows = replica != NULL && replica->state == REPLICA_FOLLOWING;
        if (best == NO_NODE || (follows && !best_follows) ||
            (follows == best_follows && view->loads[i] < view->loads[best])) {
            best = i;
            best_follows = follows;
        }
    }
    return best;
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
