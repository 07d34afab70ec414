/* barrier.c - the catalogue on all nodes: following it, and the answer to a change (J8).
 *
 * The node that leads wakes the others; each applies the new records (the store), publishes them
 * (catalog_refresh) and renews its lease at once, which says how far it is. A change is answered
 * when the renewals of all living nodes say that they have it. A node that is dead counts no more
 * once no space is its own; if nobody can take a space over, after BARRIER_DEAD_US.
 *
 * A node that renews, but does not get the changes, would hold all of them up: its copy is refused
 * or cannot be made, its disk is full, or the records cannot be published. After LATE_US it renews
 * its lease no more, is declared dead like any other, and joins anew when it has them: until then
 * it must not answer anything, because what it knows is older than what was answered elsewhere. For
 * the same reason a node that was declared dead has the newest changes before it joins anew.
 *
 * A node with a progress of 0 has joined, but not begun to serve: cluster_start reads the
 * catalogue's end after it has said how far it is, so nothing of that is missed.
 */
#include "cluster/cluster_int.h"

#include "base/array.h"

/* LATE_US, the end of its lease and the take-over of its spaces: for so long a change may wait. */
enum { BARRIER_DEAD_US = 15000000, LATE_US = 15000000 };
enum { BARRIER_PAUSE_MS = 5, BARRIER_PAUSE_MS_MAX = 50 };

/* Who leads has published everything of others before it began, and gives no space away whose range
 * it is replacing; what it writes to clean up changes no map, and is not counted. A node that has
 * just got the catalogue serves its space before it has published all of it. */
static bool leads(Cluster *cluster)
{
    return cluster_serves(cluster, SPACE_OF_CATALOG) &&
           (!atomic_load(&cluster->has_catalog) || cluster->catalog.leads(cluster->catalog.ctx));
}

bool catalog_is_published(Cluster *cluster, const JournalOwner *owners, size_t count)
{
    if (leads(cluster))
        return true;
    uint64_t done = atomic_load(&cluster->catalog_done);
    for (size_t i = 0; i < count; i++) {
        if (owners[i].space == SPACE_OF_CATALOG)
            return done >= owners[i].tail.seq;
    }
    return false;
}

/* In which epoch this node serves the catalogue; 0 if it does not. */
static uint64_t leading_epoch(Cluster *cluster)
{
    (void)pthread_mutex_lock(&cluster->lock);
    const SpaceSlot *slot = space_table_find(&cluster->spaces, SPACE_OF_CATALOG);
    uint64_t epoch = slot != NULL && slot->state == SPACE_STATE_SERVING ? slot->epoch : 0;
    (void)pthread_mutex_unlock(&cluster->lock);
    return epoch;
}

void cluster_published(void *ctx, PlacementPublished *done, void *done_ctx)
{
    Cluster *cluster = ctx;
    uint64_t epoch = leading_epoch(cluster);
    uint64_t seq = cluster->store.place(cluster->store.ctx, SPACE_OF_CATALOG).applied.seq;
    (void)pthread_mutex_lock(&cluster->lock);
    bool is_kept = !atomic_load(&cluster->is_stopping);
    if (is_kept) /* as many as the catalogue has groups that are not answered */
        ARRAY_GROW(cluster->barriers, cluster->barrier_count, cluster->barrier_capacity, 16);
    if (is_kept)
        cluster->barriers[cluster->barrier_count++] =
            (Barrier){.seq = seq, .done = done, .ctx = done_ctx};
    (void)pthread_mutex_unlock(&cluster->lock);
    /* If the catalogue is another node's meanwhile, its changes may be among those. */
    if (epoch != 0 && epoch == leading_epoch(cluster))
        atomic_store(&cluster->catalog_done, seq);
    if (is_kept)
        waker_wake(&cluster->catalog_waker);
    else
        done(done_ctx, false); /* the node leaves */
}

/* All of them: nobody waits any more, as the node has left. */
void barriers_release(Cluster *cluster)
{
    for (;;) {
        (void)pthread_mutex_lock(&cluster->lock);
        bool found = cluster->barrier_count > 0;
        Barrier barrier = found ? cluster->barriers[--cluster->barrier_count] : (Barrier){0};
        (void)pthread_mutex_unlock(&cluster->lock);
        if (!found)
            return;
        barrier.done(barrier.ctx, false);
    }
}

bool barriers_wait(Cluster *cluster)
{
    (void)pthread_mutex_lock(&cluster->lock);
    bool found = cluster->barrier_count > 0;
    (void)pthread_mutex_unlock(&cluster->lock);
    return found;
}

static size_t barrier_bounds(Cluster *cluster, uint64_t *seq_max)
{
    (void)pthread_mutex_lock(&cluster->lock);
    size_t count = cluster->barrier_count;
    *seq_max = 0;
    for (size_t i = 0; i < count; i++) {
        if (cluster->barriers[i].seq > *seq_max)
            *seq_max = cluster->barriers[i].seq;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    return count;
}

static bool owns_nothing(const JournalNode *node, const JournalOwner *owners, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (owners[i].incarnation == node->incarnation && slice_equal(owners[i].node, node->name))
            return false;
    }
    return true;
}

/* How far all nodes are that count. */
static Status read_progress(Cluster *cluster, uint64_t *seq, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_LARGE_BYTES);
    const JournalNode *nodes = NULL;
    const JournalOwner *owners = NULL;
    size_t node_count = 0;
    size_t owner_count = 0;
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status =
        journal_nodes(cluster->journal, JOURNAL_LANE_ADMIN, &arena, &nodes, &node_count, err);
    bool has_dead = false;
    for (size_t i = 0; status == STATUS_OK && i < node_count; i++)
        has_dead = has_dead || nodes[i].state == NODE_DEAD;
    if (status == STATUS_OK && has_dead)
        status = journal_owners(cluster->journal, JOURNAL_LANE_ADMIN, NULL, 0, &arena, &owners,
                                &owner_count, err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    TRY(status);
    uint64_t now_us = cluster_now_us(cluster);
    *seq = UINT64_MAX;
    for (size_t i = 0; i < node_count; i++) {
        const JournalNode *node = &nodes[i];
        if (slice_equal(node->name, slice_from_cstr(cluster->node)))
            continue;
        (void)pthread_mutex_lock(&cluster->lock);
        uint64_t dead_us = node_watch_dead_for_us(&cluster->watch, node->name, now_us);
        (void)pthread_mutex_unlock(&cluster->lock);
        bool counts = node->state != NODE_DEAD
                          ? node->catalog > 0
                          : dead_us < BARRIER_DEAD_US && !owns_nothing(node, owners, owner_count);
        if (counts && node->catalog < *seq)
            *seq = node->catalog;
    }
    return STATUS_OK;
}

static void release_up_to(Cluster *cluster, uint64_t seq)
{
    for (;;) {
        Barrier barrier = {0};
        bool found = false;
        (void)pthread_mutex_lock(&cluster->lock);
        for (size_t i = 0; i < cluster->barrier_count && !found; i++) {
            found = cluster->barriers[i].seq <= seq;
            if (!found)
                continue;
            barrier = cluster->barriers[i];
            cluster->barrier_count--;
            memmove(&cluster->barriers[i], &cluster->barriers[i + 1],
                    (cluster->barrier_count - i) * sizeof(Barrier));
        }
        (void)pthread_mutex_unlock(&cluster->lock);
        if (!found)
            return;
        barrier.done(barrier.ctx, true);
    }
}

/* Wakes the others once for each newer change, and again now and then. */
static void poke_others(Cluster *cluster, uint64_t seq)
{
    uint64_t now_us = cluster_now_us(cluster);
    if (seq <= cluster->poked_seq && now_us - cluster->poked_us < LEASE_RENEW_US)
        return;
    cluster->poked_seq = seq;
    cluster->poked_us = now_us;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    const JournalNode *nodes = NULL;
    size_t count = 0;
    Error err;
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status =
        journal_nodes(cluster->journal, JOURNAL_LANE_ADMIN, &arena, &nodes, &count, &err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        if (nodes[i].state != NODE_DEAD && nodes[i].catalog < seq &&
            !slice_equal(nodes[i].name, slice_from_cstr(cluster->node)))
            node_tell(cluster, nodes[i].address, "poke", "catalog=1");
    }
}

void barrier_step(Cluster *cluster)
{
    uint64_t seq_max;
    if (barrier_bounds(cluster, &seq_max) == 0)
        return;
    poke_others(cluster, seq_max);
    uint64_t seq;
    Error err;
    /* Changes that came after that are not released: a node that did not count when the nodes were
     * read may have begun to answer since, with the changes up to then. */
    if (read_progress(cluster, &seq, &err) == STATUS_OK)
        release_up_to(cluster, seq < seq_max ? seq : seq_max);
    uint32_t pause_ms = cluster->barrier_pause_ms * 2;
    if (pause_ms < BARRIER_PAUSE_MS)
        pause_ms = BARRIER_PAUSE_MS;
    cluster->barrier_pause_ms = pause_ms < BARRIER_PAUSE_MS_MAX ? pause_ms : BARRIER_PAUSE_MS_MAX;
}

/* Whether the manager is taking one of these at this moment. */
static bool is_taking(Cluster *cluster)
{
    bool found = false;
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < cluster->spaces.count && !found; i++)
        found = cluster->spaces.items[i].state == SPACE_STATE_TAKING;
    (void)pthread_mutex_unlock(&cluster->lock);
    return found;
}

/* Spaces that a change has given to this node are served before this node says that it has the
 * change. */
static Status own_new_spaces(Cluster *cluster, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_LARGE_BYTES);
    ClusterView view;
    uint64_t begun_us;
    TRY(cluster_read_view(cluster, false, &arena, &view, &begun_us, err));
    cluster_note_owners(cluster, &view);
    own_assigned(cluster, view.owners, view.owner_count);
    if (is_taking(cluster))
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "a space is being taken");
    return STATUS_OK;
}

static void follow_catalog(Cluster *cluster)
{
    /* Not what the hook has said: a copy that was seeded calls it for no entry. */
    uint64_t seen = cluster->store.place(cluster->store.ctx, SPACE_OF_CATALOG).applied.seq;
    if (seen <= atomic_load(&cluster->catalog_done) || cluster_serves(cluster, SPACE_OF_CATALOG))
        return;
    Error err;
    Status status = own_new_spaces(cluster, &err);
    if (status == STATUS_OK)
        status = cluster->catalog.refresh(cluster->catalog.ctx, &err);
    if (status != STATUS_OK) {
        LOG_INFO(cluster->log, "cluster.refresh_waits", "message=\"%s\"", err.message);
        cluster->barrier_pause_ms = BARRIER_PAUSE_MS_MAX;
        return;
    }
    atomic_store(&cluster->catalog_done, seen);
    cluster_renew_soon(cluster);
}

/* Time in which the engine was not read does not count: it may have been away for all. */
void watch_own_progress(Cluster *cluster, const ClusterView *view)
{
    const JournalOwner *owner = view_owner(view, SPACE_OF_CATALOG);
    uint64_t now_us = cluster_now_us(cluster);
    uint64_t passed_us = now_us - cluster->late_seen_us;
    uint64_t done = atomic_load(&cluster->catalog_done);
    cluster->late_seen_us = now_us;
    if (!atomic_load(&cluster->has_catalog) || owner == NULL || done >= owner->tail.seq ||
        cluster_serves(cluster, SPACE_OF_CATALOG)) {
        cluster->late_seq = 0;
        return;
    }
    if (cluster->late_seq <= done) {
        cluster->late_seq = owner->tail.seq;
        cluster->late_for_us = 0;
        return;
    }
    cluster->late_for_us += passed_us < 2 * VIEW_US ? passed_us : 2 * VIEW_US;
    if (cluster->late_for_us < LATE_US)
        return;
    cluster->late_seq = 0;
    LOG_WARN(cluster->log, "cluster.catalog_late", "published=%llu end=%llu",
             (unsigned long long)done, (unsigned long long)owner->tail.seq);
    cluster_event(cluster, "catalogLate", 0, 0, slice_from_cstr(cluster->node),
                  "it has published %llu of %llu changes, and steps aside until it has all",
                  (unsigned long long)done, (unsigned long long)owner->tail.seq);
    atomic_store(&cluster->is_late, true);
    cluster_renew_soon(cluster);
}

bool has_newest_catalog(Cluster *cluster)
{
    uint64_t end;
    Error err;
    if (!atomic_load(&cluster->has_catalog))
        return true;
    return cluster_read_catalog_end(cluster, &end, &err) == STATUS_OK &&
           atomic_load(&cluster->catalog_done) >= end;
}

void catalog_step(Cluster *cluster)
{
    if (!atomic_load(&cluster->has_catalog))
        return;
    uint64_t seq_max;
    if (barrier_bounds(cluster, &seq_max) == 0)
        cluster->barrier_pause_ms = 0;
    follow_catalog(cluster);
    barrier_step(cluster);
}
