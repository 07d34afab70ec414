/* trimming.c - what the engine need not keep any more (J6), and replicas that it waits for in vain.
 *
 * The owner of a space trims its log up to what the least durable member has on disk. Members are
 * all replicas that are not expelled, dead ones, too: one that comes back soon needs the rest of
 * the log, and nothing else. One that is dead for longer than 'keep_us', or lives and has applied
 * nothing for so long, is expelled, and seeded anew when it comes back; while the log fills the
 * engine, a dead one at once, and one that hangs after STUCK_US. Of a copy that is being made, the
 * pieces that come are its progress. A space of which no other node is to have a copy is not
 * trimmed at all, unless one copy is all that is wanted; copies_warning.c tells that.
 */
#include "cluster/cluster_int.h"

static bool has_waited(Cluster *cluster, const ClusterView *view, const JournalOwner *owner,
                       const JournalReplica *replica, bool is_full)
{
    uint64_t now_us = cluster_now_us(cluster);
    (void)pthread_mutex_lock(&cluster->lock);
    uint64_t dead_us = node_watch_dead_for_us(&cluster->watch, replica->node, now_us);
    (void)pthread_mutex_unlock(&cluster->lock);
    if (view_node(view, replica->node) == NO_NODE)
        return true; /* the node was removed */
    if (dead_us > 0)
        return is_full || dead_us > cluster->keep_us;
    if (replica->state == REPLICA_FOLLOWING && replica->applied >= owner->tail.seq)
        return false;
    uint64_t stuck_us = replica_watch_see(&cluster->replica_watch, replica, now_us);
    return stuck_us > (is_full && STUCK_US < cluster->keep_us ? STUCK_US : cluster->keep_us);
}

/* The least durable member; false if there are too few of them (J6). */
static bool find_bound(Cluster *cluster, const ClusterView *view, const JournalOwner *owner,
                       bool is_full, uint64_t *bound)
{
    size_t members = 0;
    *bound = cluster->store.place(cluster->store.ctx, owner->space).durable_seq;
    for (size_t i = view_first_replica(view, owner->space);
         i < view->replica_count && view->replicas[i].space == owner->space; i++) {
        const JournalReplica *replica = &view->replicas[i];
        if (replica->state == REPLICA_EXPELLED)
            continue;
        bool is_own = slice_equal(replica->node, slice_from_cstr(cluster->node));
        if (!is_own && replica->durable < owner->tail.seq &&
            has_waited(cluster, view, owner, replica, is_full)) {
            Error err;
            (void)pthread_mutex_lock(&cluster->admin_lane);
            Status status = journal_expel(cluster->journal, JOURNAL_LANE_ADMIN, owner->space,
                                          replica->node, &err);
            (void)pthread_mutex_unlock(&cluster->admin_lane);
            if (status == STATUS_OK)
                cluster_event(cluster, "expelled", owner->space, owner->tail.epoch, replica->node,
                              "its copy is behind since too long");
            continue;
        }
        members += !is_own;
        if (!is_own && replica->durable < *bound)
            *bound = replica->durable;
    }
    return members > 0 || cluster->replicas == 1;
}

static void rotate(Cluster *cluster)
{
    Error err;
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status = journal_rotate(cluster->journal, JOURNAL_LANE_ADMIN, &err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    if (status != STATUS_OK)
        LOG_INFO(cluster->log, "cluster.rotate_waits", "message=\"%s\"", err.message);
}

void trim_step(Cluster *cluster, const ClusterView *view)
{
    uint64_t now_us = cluster_now_us(cluster);
    if (cluster->trimmed_us != 0 && now_us - cluster->trimmed_us < TRIM_US)
        return;
    cluster->trimmed_us = now_us;
    bool is_full = engine_bytes(cluster) > cluster->journal_bytes_max / 4;
    uint32_t untrimmed = 0;
    for (size_t i = 0; i < view->owner_count && !atomic_load(&cluster->is_stopping); i++) {
        const JournalOwner *owner = &view->owners[i];
        uint64_t bound;
        if (!cluster_serves(cluster, owner->space) ||
            owner->incarnation != atomic_load(&cluster->incarnation))
            continue;
        bool has_members = find_bound(cluster, view, owner, is_full, &bound);
        untrimmed += !has_members && owner->tail.seq > owner->base;
        if (!has_members || bound <= owner->base)
            continue;
        Error err;
        (void)pthread_mutex_lock(&cluster->admin_lane);
        Status status = journal_trim(cluster->journal, JOURNAL_LANE_ADMIN, owner->space,
                                     owner->tail.epoch, bound, &err);
        (void)pthread_mutex_unlock(&cluster->admin_lane);
        if (status != STATUS_OK)
            LOG_INFO(cluster->log, "cluster.trim_waits", "space=%llu message=\"%s\"",
                     (unsigned long long)owner->space, err.message);
    }
    note_untrimmed(cluster, untrimmed);
    replica_watch_end_round(&cluster->replica_watch);
    if (cluster_serves(cluster, SPACE_OF_CATALOG))
        rotate(cluster);
}
