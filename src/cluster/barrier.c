/* barrier.c - the catalogue on all nodes: following it, and the answer to a change (J8).
 *
 * The node that leads wakes the others; each applies the new records (the store), publishes them
 * (catalog_refresh) and renews its lease at once, which says how far it is. A change is answered
 * when the renewals of all living nodes say that they have it. A node that is dead counts no more
 * once no space is its own; if nobody can take a space over, after BARRIER_DEAD_US.
 *
 * A node with a progress of 0 has joined, but not begun to serve: cluster_start reads the
 * catalogue's end after it has said how far it is, so nothing of that is missed.
 */
#include "cluster/cluster_int.h"

#include "base/array.h"

enum { BARRIER_DEAD_US = 15000000, BARRIER_PAUSE_MS = 5, BARRIER_PAUSE_MS_MAX = 50 };

/* Who leads has published everything of others before it began, and gives no space away whose range
 * it is replacing; what it writes to clean up changes no map, and is not counted. */
bool catalog_is_published(Cluster *cluster, const JournalOwner *owners, size_t count)
{
    if (cluster_serves(cluster, SPACE_OF_CATALOG))
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

void cluster_published(void *ctx, void (*done)(void *done_ctx), void *done_ctx)
{
    Cluster *cluster = ctx;
    uint64_t epoch = leading_epoch(cluster);
    uint64_t seq = cluster->store.place(cluster->store.ctx, SPACE_OF_CATALOG).applied.seq;
    (void)pthread_mutex_lock(&cluster->lock);
    bool is_kept = !atomic_load(&cluster->is_stopping);
    if (is_kept) /* as many as the catalogue has groups that are not answered */
        ARRAY_GROW(cluster->barriers, cluster->barrier_count, cluster->barrier_capacity, 16);
    if (is_kept)
        cluster->barriers[cluster->barrier_count++] = (Barrier){
            .seq = seq, .done = done, .ctx = done_ctx, .begun_us = cluster_now_us(cluster)};
    (void)pthread_mutex_unlock(&cluster->lock);
    /* If the catalogue is another node's meanwhile, its changes may be among those. */
    if (epoch != 0 && epoch == leading_epoch(cluster))
        atomic_store(&cluster->catalog_done, seq);
    if (is_kept)
        waker_wake(&cluster->catalog_waker);
    else
        done(done_ctx); /* the node leaves */
}

/* All of them: the Cluster is being closed. */
void barriers_release(Cluster *cluster)
{
    for (;;) {
        (void)pthread_mutex_lock(&cluster->lock);
        bool found = cluster->barrier_count > 0;
        Barrier barrier = found ? cluster->barriers[--cluster->barrier_count] : (Barrier){0};
        (void)pthread_mutex_unlock(&cluster->lock);
        if (!found)
            return;
        barrier.done(barrier.ctx);
    }
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
        barrier.done(barrier.ctx);
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
    if (read_progress(cluster, &seq, &err) == STATUS_OK)
        release_up_to(cluster, seq);
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
