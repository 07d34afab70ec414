/* following.c - which copies this node keeps, beside what it owns. */
#include "cluster/cluster_int.h"

#include "base/array.h"

/* Nodes that copies are kept on: those that live, and those that may come back. */
static bool *count_nodes(Cluster *cluster, const ClusterView *view, Arena *arena)
{
    bool *counts = ARENA_NEW_ARRAY(arena, bool, view->node_count + 1);
    uint64_t now_us = cluster_now_us(cluster);
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < view->node_count; i++) {
        const JournalNode *node = &view->nodes[i];
        uint64_t dead_us = node_watch_dead_for_us(&cluster->watch, node->name, now_us);
        counts[i] = node->state == NODE_LIVE || (node->state == NODE_DEAD && dead_us < REPLACE_US);
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    return counts;
}

/* Copies that this node need not keep are dropped when all that are wanted are there without it. */
static bool has_copies(const ClusterView *view, const JournalOwner *owner, Slice but,
                       uint32_t wanted)
{
    size_t copies = 0;
    for (size_t i = 0; i < view->node_count; i++) {
        if (!view_is_living(view, i) || slice_equal(view->nodes[i].name, but))
            continue;
        const JournalReplica *replica = view_replica(view, owner->space, view->nodes[i].name);
        bool is_owner = slice_equal(view->nodes[i].name, owner->node);
        copies += is_owner || (replica != NULL && replica->state == REPLICA_FOLLOWING);
    }
    return copies >= wanted;
}

static void begin_following(Cluster *cluster, StoreSpace space)
{
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, space);
    bool begins = slot->state == SPACE_STATE_ABSENT;
    if (begins)
        space_enter(slot, SPACE_STATE_FOLLOWING);
    (void)pthread_mutex_unlock(&cluster->lock);
    if (begins)
        cluster->store.follow(cluster->store.ctx, space);
}

static SpaceSlot slot_of(Cluster *cluster, StoreSpace space)
{
    (void)pthread_mutex_lock(&cluster->lock);
    const SpaceSlot *slot = space_table_find(&cluster->spaces, space);
    SpaceSlot copy = slot != NULL ? *slot : (SpaceSlot){.space = space};
    (void)pthread_mutex_unlock(&cluster->lock);
    return copy;
}

static void forget(Cluster *cluster, StoreSpace space)
{
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, space);
    bool is_ours = slot->state == SPACE_STATE_FOLLOWING;
    if (is_ours)
        space_enter(slot, SPACE_STATE_ABSENT);
    bool is_absent = slot->state == SPACE_STATE_ABSENT;
    if (is_absent)
        space_table_remove(&cluster->spaces, space);
    (void)pthread_mutex_unlock(&cluster->lock);
    if (!is_absent)
        return;
    Error err;
    if (cluster->store.forget(cluster->store.ctx, space, &err) == STATUS_OK)
        return;
    LOG_WARN(cluster->log, "cluster.forget_failed", "space=%llu message=\"%s\"",
             (unsigned long long)space, err.message);
    ARRAY_GROW(cluster->leftovers, cluster->leftover_count, cluster->leftover_capacity, 16);
    cluster->leftovers[cluster->leftover_count++] = space;
}

/* Copies that could not be dropped, because the disk was full. Those that this node follows again
 * stay. */
static void forget_leftovers(Cluster *cluster)
{
    uint64_t now_us = cluster_now_us(cluster);
    if (cluster->leftover_count == 0 || now_us < cluster->leftovers_us + LEFTOVERS_US)
        return;
    cluster->leftovers_us = now_us;
    size_t count = cluster->leftover_count;
    cluster->leftover_count = 0; /* those that fail again are added, each before it would be read */
    for (size_t i = 0; i < count; i++) {
        StoreSpace space = cluster->leftovers[i];
        if (slot_of(cluster, space).state == SPACE_STATE_ABSENT)
            forget(cluster, space);
    }
}

Status expel_own_copy(Cluster *cluster, StoreSpace space, Error *err)
{
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status = journal_expel(cluster->journal, JOURNAL_LANE_ADMIN, space,
                                  slice_from_cstr(cluster->node), err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    return status;
}

/* First the others stop counting on the copy, then it goes. */
static void stop_following(Cluster *cluster, StoreSpace space)
{
    Error err;
    if (expel_own_copy(cluster, space, &err) == STATUS_OK)
        forget(cluster, space);
}

/* What the engine has of copies that this node's store does not hold: it was lost, but the node's
 * name was not. A copy that is refused is one all the same: nobody without one may take the space
 * over and so hide what the engine has lost (C7). */
bool expel_lost_copies(Cluster *cluster, const ClusterView *view)
{
    size_t expelled = 0;
    for (size_t i = 0; i < view->replica_count && !atomic_load(&cluster->is_stopping); i++) {
        const JournalReplica *row = &view->replicas[i];
        Error err;
        if (row->state != REPLICA_FOLLOWING ||
            !slice_equal(row->node, slice_from_cstr(cluster->node)) ||
            view_owner(view, row->space) == NULL || /* it was dropped */
            slot_of(cluster, row->space).state != SPACE_STATE_ABSENT ||
            cluster->store.place(cluster->store.ctx, row->space).role != SPACE_ABSENT)
            continue;
        if (expel_own_copy(cluster, row->space, &err) == STATUS_OK)
            expelled++;
        else
            LOG_WARN(cluster->log, "cluster.expel_failed", "space=%llu message=\"%s\"",
                     (unsigned long long)row->space, err.message);
    }
    if (expelled > 0)
        cluster_event(cluster, "copiesLost", 0, 0, slice_from_cstr(cluster->node),
                      "%zu copies are not in the data folder any more", expelled);
    return expelled > 0;
}

/* It was expelled while it was away, and has read the rest of the log since: nothing that it lacks
 * was trimmed. Only this thread drops copies, so it knows that this one stays. */
static void count_again(Cluster *cluster, const ClusterView *view, const JournalOwner *owner)
{
    const JournalReplica *replica =
        view_replica(view, owner->space, slice_from_cstr(cluster->node));
    if (replica == NULL || replica->state != REPLICA_EXPELLED)
        return;
    ReplicaPlace place = cluster->store.place(cluster->store.ctx, owner->space);
    if (place.role != SPACE_FOLLOWED || place.durable_seq < owner->base ||
        place.applied.seq + LAG_MAX < owner->tail.seq)
        return;
    JournalReplica row = {.space = owner->space,
                          .node = slice_from_cstr(cluster->node),
                          .applied = place.applied.seq,
                          .durable = place.durable_seq};
    Error err;
    /* The row of one that was expelled begins anew only as that of a new copy. */
    static const ReplicaState steps[] = {REPLICA_SEEDING, REPLICA_FOLLOWING};
    Status status = STATUS_OK;
    (void)pthread_mutex_lock(&cluster->admin_lane);
    for (size_t i = 0; i < ARRAY_COUNT(steps) && status == STATUS_OK; i++) {
        row.state = steps[i];
        status = journal_report(cluster->journal, JOURNAL_LANE_ADMIN, &row, 1, &err);
    }
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    if (status != STATUS_OK)
        LOG_INFO(cluster->log, "cluster.report_waits", "space=%llu message=\"%s\"",
                 (unsigned long long)owner->space, err.message);
}

/* Spaces of this node that the engine has no row of. */
static size_t list_rowless(Cluster *cluster, const ClusterView *view, Arena *arena,
                           StoreSpace **out)
{
    uint64_t now_us = cluster_now_us(cluster);
    (void)pthread_mutex_lock(&cluster->lock);
    StoreSpace *spaces = ARENA_NEW_ARRAY(arena, StoreSpace, cluster->spaces.count + 1);
    size_t count = 0;
    for (size_t i = 0; i < cluster->spaces.count; i++) {
        SpaceSlot *slot = &cluster->spaces.items[i];
        bool has_row = view_owner(view, slot->space) != NULL;
        slot->rowless_us = has_row ? 0 : slot->rowless_us != 0 ? slot->rowless_us : now_us;
        if (!has_row)
            spaces[count++] = slot->space;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    *out = spaces;
    return count;
}

/* The row of a dropped space goes, and so does its copy as soon as the catalogue does not name the
 * space here, too. A row that is missing alone proves nothing: an engine that was restored from a
 * backup has none of what is newer, and this copy may be all that is left of it (C10). */
static void forget_dropped_copies(Cluster *cluster, const ClusterView *view)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    StoreSpace *spaces;
    size_t count = list_rowless(cluster, view, &arena, &spaces);
    if (count == 0 || !atomic_load(&cluster->has_catalog))
        return;
    bool *is_named = ARENA_NEW_ARRAY(&arena, bool, count);
    Error err;
    if (cluster->catalog.find_named(cluster->catalog.ctx, spaces, count, is_named, &err) !=
        STATUS_OK) {
        LOG_WARN(cluster->log, "cluster.forget_failed", "message=\"%s\"", err.message);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (is_named[i])
            continue;
        drop_space(cluster, spaces[i], "it was dropped");
        forget(cluster, spaces[i]);
    }
}

void follow_spaces(Cluster *cluster, const ClusterView *view)
{
    size_t self = view_node(view, slice_from_cstr(cluster->node));
    if (self == NO_NODE)
        return;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    const bool *counts = count_nodes(cluster, view, &arena);
    uint64_t now_us = cluster_now_us(cluster);
    for (size_t i = 0; i < view->owner_count && !atomic_load(&cluster->is_stopping); i++) {
        const JournalOwner *owner = &view->owners[i];
        SpaceSlot slot = slot_of(cluster, owner->space);
        if (!view_knows_group(view, owner->space))
            continue;
        /* Every node that lives publishes the catalogue, also while it is drained. */
        bool is_wanted =
            owner->sealed != -1 && (owner->space == SPACE_OF_CATALOG || slot.pinned_us > now_us ||
                                    spread_follows(view, counts, owner, self, cluster->replicas));
        bool is_own = slice_equal(owner->node, view->nodes[self].name);
        if (slot.state == SPACE_STATE_ABSENT && is_wanted)
            begin_following(cluster, owner->space);
        else if (slot.state == SPACE_STATE_FOLLOWING && !is_wanted && !is_own &&
                 view_owner_lives(view, owner) &&
                 has_copies(view, owner, view->nodes[self].name, cluster->replicas))
            stop_following(cluster, owner->space);
        else if (slot.state == SPACE_STATE_FOLLOWING && is_wanted && !is_own)
            count_again(cluster, view, owner);
    }
    forget_dropped_copies(cluster, view);
    forget_leftovers(cluster);
}

/* Whether the rows must be compared with the catalogue: after a while of leading, and after a while
 * in which spaces were made. */
static bool is_check_due(Cluster *cluster)
{
    uint64_t due_us = atomic_load(&cluster->rows_due_us);
    uint64_t now_us = cluster_now_us(cluster);
    if (!cluster->is_leading) {
        cluster->is_leading = true;
        atomic_store(&cluster->rows_due_us, now_us + ROWS_CHECK_US);
        return false;
    }
    return due_us != 0 && due_us <= now_us &&
           atomic_compare_exchange_strong(&cluster->rows_due_us, &due_us, 0);
}

/* The rows of a change that was not committed are of no use, and the next change may have taken
 * other numbers. What the catalogue's owner does not name, and cannot name any more, goes. */
static void drop_unnamed_rows(Cluster *cluster, const ClusterView *view)
{
    if (!is_check_due(cluster) || view->owner_count == 0)
        return;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    StoreSpace *spaces = ARENA_NEW_ARRAY(&arena, StoreSpace, view->owner_count);
    bool *is_named = ARENA_NEW_ARRAY(&arena, bool, view->owner_count);
    for (size_t i = 0; i < view->owner_count; i++)
        spaces[i] = view->owners[i].space;
    Error err;
    if (cluster->catalog.find_named(cluster->catalog.ctx, spaces, view->owner_count, is_named,
                                    &err) != STATUS_OK) {
        LOG_WARN(cluster->log, "cluster.forget_failed", "message=\"%s\"", err.message);
        atomic_store(&cluster->rows_due_us, cluster_now_us(cluster) + ROWS_CHECK_US);
        return;
    }
    for (size_t i = 0; i < view->owner_count; i++) {
        if (!is_named[i])
            cluster_dropped(cluster, spaces[i], spaces[i]);
    }
}

/* Spaces that the catalogue's owner has removed: their rows go, which tells all nodes to drop their
 * copies (forget_dropped_copies). */
void forget_dropped(Cluster *cluster, const ClusterView *view)
{
    if (!cluster_serves(cluster, SPACE_OF_CATALOG)) {
        cluster->is_leading = false;
        return;
    }
    drop_unnamed_rows(cluster, view);
    (void)pthread_mutex_lock(&cluster->lock);
    StoreSpace *spaces = cluster->dropped;
    size_t count = cluster->dropped_count;
    cluster->dropped = NULL;
    cluster->dropped_count = cluster->dropped_capacity = 0;
    (void)pthread_mutex_unlock(&cluster->lock);
    if (count == 0)
        return;
    Error err;
    size_t done = 0;
    Status status = STATUS_OK;
    while (done < count && status == STATUS_OK) {
        size_t some = count - done < JOURNAL_SPACES_MAX ? count - done : JOURNAL_SPACES_MAX;
        (void)pthread_mutex_lock(&cluster->admin_lane);
        status =
            journal_forget_spaces(cluster->journal, JOURNAL_LANE_ADMIN, spaces + done, some, &err);
        (void)pthread_mutex_unlock(&cluster->admin_lane);
        done += status == STATUS_OK ? some : 0;
    }
    if (status != STATUS_OK)
        LOG_WARN(cluster->log, "cluster.forget_failed", "message=\"%s\"", err.message);
    (void)pthread_mutex_lock(&cluster->lock);
    for (; done < count; done++) {
        ARRAY_GROW(cluster->dropped, cluster->dropped_count, cluster->dropped_capacity, 16);
        cluster->dropped[cluster->dropped_count++] = spaces[done];
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    mem_free(spaces);
}
