/* manage.c - the round of the manager: reads the engine, and acts on what it says.
 *
 * Each round finishes what was begun before. The engine is read once a second, and at once when
 * something has changed that this node was told of.
 */
#include "cluster/cluster_int.h"

void cluster_wake_manager(Cluster *cluster)
{
    waker_wake(&cluster->manager_waker);
}

void cluster_refresh_owners(Cluster *cluster)
{
    if (!atomic_exchange(&cluster->is_refresh_wanted, true))
        cluster_wake_manager(cluster);
}

Status cluster_read_view(Cluster *cluster, bool with_replicas, Arena *arena, ClusterView *view,
                         uint64_t *begun_us, Error *err)
{
    (void)pthread_mutex_lock(&cluster->admin_lane);
    *view = (ClusterView){0};
    *begun_us = cluster_now_us(cluster);
    Status status = journal_nodes(cluster->journal, JOURNAL_LANE_ADMIN, arena, &view->nodes,
                                  &view->node_count, err);
    if (status == STATUS_OK)
        status = journal_owners(cluster->journal, JOURNAL_LANE_ADMIN, NULL, 0, arena, &view->owners,
                                &view->owner_count, err);
    if (status == STATUS_OK && with_replicas)
        status = journal_replicas(cluster->journal, JOURNAL_LANE_ADMIN, arena, &view->replicas,
                                  &view->replica_count, err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    TRY(status);
    view_sort_replicas(view, arena);
    view_count_loads(view, arena);
    return STATUS_OK;
}

void cluster_read_groups(Cluster *cluster, Arena *arena, ClusterView *view)
{
    SharedSpace *shared;
    size_t count;
    if (!atomic_load(&cluster->has_catalog))
        return;
    cluster->catalog.list_shared(cluster->catalog.ctx, arena, &shared, &count);
    view_set_groups(view, arena, shared, count);
}

static MemberState member_of(Cluster *cluster)
{
    (void)pthread_mutex_lock(&cluster->lock);
    MemberState member = cluster->member;
    (void)pthread_mutex_unlock(&cluster->lock);
    return member;
}

/* Finds a space in a state from SERVING on. */
static StoreSpace next_served(Cluster *cluster, StoreSpace from)
{
    StoreSpace space = 0;
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < cluster->spaces.count && space == 0; i++) {
        const SpaceSlot *slot = &cluster->spaces.items[i];
        if (slot->space >= from && slot->state == SPACE_STATE_SERVING)
            space = slot->space;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    return space;
}

/* A hand-over under way has served nothing since it began; the other node, or whoever takes over,
 * has the space. */
static void end_all_hand_overs(Cluster *cluster)
{
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < cluster->spaces.count; i++) {
        SpaceSlot *slot = &cluster->spaces.items[i];
        if (slot->state == SPACE_STATE_YIELDING && slot->is_handing) {
            space_enter(slot, SPACE_STATE_FOLLOWING);
            slot->epoch_gone = slot->epoch;
        }
    }
    (void)pthread_mutex_unlock(&cluster->lock);
}

void drop_all_spaces(Cluster *cluster, const char *reason)
{
    for (StoreSpace space = 0; (space = next_served(cluster, space)) != 0; space++)
        drop_space(cluster, space, reason);
    end_all_hand_overs(cluster);
}

/* Whether another thread is still taking a space; it will find that this node is dead. */
static bool is_taking(Cluster *cluster)
{
    bool found = false;
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < cluster->spaces.count && !found; i++) {
        SpaceState state = cluster->spaces.items[i].state;
        found = state == SPACE_STATE_TAKING || state == SPACE_STATE_SERVING;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    return found;
}

/* Declared dead: drops everything, and joins anew when it has the newest catalogue. */
static void come_back(Cluster *cluster)
{
    if (member_of(cluster) == MEMBER_DROPPED) {
        clean_lost_spaces(cluster);
        drop_all_spaces(cluster, "the node was declared dead");
        if (is_taking(cluster))
            return;
        (void)pthread_mutex_lock(&cluster->lock);
        if (cluster->member == MEMBER_DROPPED)
            cluster->member = MEMBER_OUT;
        (void)pthread_mutex_unlock(&cluster->lock);
        cluster->rejoin_us = 0;
    }
    uint64_t now_us = cluster_now_us(cluster);
    if (member_of(cluster) != MEMBER_OUT || now_us < cluster->rejoin_us)
        return;
    if (!has_newest_catalog(cluster)) {
        cluster->rejoin_us = now_us + REJOIN_US;
        return;
    }
    Error err;
    if (cluster_rejoin(cluster, &err) != STATUS_OK) {
        LOG_ERROR(cluster->log, "cluster.join_failed", "message=\"%s\"", err.message);
        cluster->rejoin_us = now_us + LEASE_US;
    }
}

static bool keeps_row(void *ctx, StoreSpace space)
{
    Cluster *cluster = ctx;
    const SpaceSlot *slot = space_table_find(&cluster->spaces, space);
    return slot != NULL &&
           (slot->state == SPACE_STATE_SERVING || slot->state == SPACE_STATE_TAKING);
}

void cluster_note_owners(Cluster *cluster, const ClusterView *view)
{
    (void)pthread_mutex_lock(&cluster->lock);
    owners_replace(&cluster->owners, view->nodes, view->node_count, view->owners, view->owner_count,
                   keeps_row, cluster);
    (void)pthread_mutex_unlock(&cluster->lock);
}

/* Notes what was read: the watch of the others, who owns what, which spaces have an owner again. */
static void note_view(Cluster *cluster, uint64_t begun_us)
{
    const ClusterView *view = &cluster->view;
    uint64_t ended_us = cluster_now_us(cluster);
    uint64_t lapses = atomic_load(&cluster->lapses);
    cluster_note_owners(cluster, view);
    (void)pthread_mutex_lock(&cluster->lock);
    if (lapses != cluster->lapses_seen)
        node_watch_restart(&cluster->watch);
    cluster->lapses_seen = lapses;
    node_watch_see(&cluster->watch, view->nodes, view->node_count, begun_us, ended_us,
                   atomic_load(&cluster->own_renewals));
    for (size_t i = 0; i < view->owner_count; i++) {
        SpaceSlot *slot = space_table_find(&cluster->spaces, view->owners[i].space);
        if (slot != NULL && slot->orphan_us != 0 && view_owner_lives(view, &view->owners[i]))
            slot->orphan_us = 0;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
}

/* What was changed before this node had said how far it is may have been answered without it. The
 * view was read after that. */
static void note_current(Cluster *cluster, uint64_t counted_in)
{
    const ClusterView *view = &cluster->view;
    if (counted_in != atomic_load(&cluster->incarnation) ||
        counted_in == atomic_load(&cluster->current_in))
        return;
    if (catalog_is_published(cluster, view->owners, view->owner_count))
        atomic_store(&cluster->current_in, counted_in);
    else
        cluster_refresh_owners(cluster);
}

/* The engine itself is looked at as soon as it begins or ceases to answer. */
static void note_answering(Cluster *cluster, bool is_answering)
{
    if (cluster->view_failed == is_answering)
        cluster->engine_asked_us = 0;
    cluster->view_failed = !is_answering;
}

static bool read_engine(Cluster *cluster)
{
    /* Requests that meet a space which nobody serves ask for a read each time. */
    bool is_wanted = atomic_load(&cluster->is_refresh_wanted);
    uint64_t age_us = cluster_now_us(cluster) - cluster->view_us;
    if (cluster->view_us != 0 && age_us < (is_wanted ? VIEW_US_MIN : VIEW_US))
        return false;
    atomic_store(&cluster->is_refresh_wanted, false);
    arena_reset(&cluster->view_arena);
    uint64_t begun_us;
    uint64_t counted_in = atomic_load(&cluster->counted_in);
    Error err;
    if (cluster_read_view(cluster, true, &cluster->view_arena, &cluster->view, &begun_us, &err) !=
        STATUS_OK) {
        if (!cluster->view_failed)
            LOG_WARN(cluster->log, "cluster.read_failed", "message=\"%s\"", err.message);
        note_answering(cluster, false);
        engine_step(cluster, false);
        cluster->view = (ClusterView){0};
        return false;
    }
    cluster_read_groups(cluster, &cluster->view_arena, &cluster->view);
    note_answering(cluster, true);
    cluster->view_us = begun_us;
    note_view(cluster, begun_us);
    note_current(cluster, counted_in);
    note_living(cluster, &cluster->view);
    return true;
}

static void declare_dead(Cluster *cluster, const JournalNode *node)
{
    bool done = false;
    Error err;
    (void)pthread_mutex_lock(&cluster->node_lane);
    Status status = journal_declare_dead(cluster->journal, node->name, node->incarnation,
                                         node->renewal, &done, &err);
    (void)pthread_mutex_unlock(&cluster->node_lane);
    if (status != STATUS_OK)
        LOG_WARN(cluster->log, "cluster.declare_failed", "node=%.*s message=\"%s\"",
                 SLICE_CUT(node->name, JOURNAL_NAME_MAX), err.message);
    if (status == STATUS_OK && done)
        cluster_event(cluster, "nodeDead", 0, 0, node->name, "no renewal in %llu ms",
                      (unsigned long long)(LEASE_SUCCESSOR_US / 1000));
    cluster_refresh_owners(cluster);
}

static void watch_others(Cluster *cluster)
{
    const ClusterView *view = &cluster->view;
    uint64_t own = atomic_load(&cluster->own_renewals);
    for (size_t i = 0; i < view->node_count; i++) {
        const JournalNode *node = &view->nodes[i];
        if (slice_equal(node->name, slice_from_cstr(cluster->node)) || node->state == NODE_DEAD)
            continue;
        (void)pthread_mutex_lock(&cluster->lock);
        bool is_overdue = node_watch_is_overdue(&cluster->watch, node, own);
        (void)pthread_mutex_unlock(&cluster->lock);
        if (is_overdue && lease_holds(&cluster->lease))
            declare_dead(cluster, node);
    }
}

/* Every row that may be acted upon: the catalogue alone as long as there is no catalogue to serve
 * other spaces and to know which are a group, but what is this node's own already is served before
 * that, so that the catalogue finds it when it is opened. */
static void act_on_owners(Cluster *cluster)
{
    const ClusterView *view = &cluster->view;
    await_catalog(cluster, view);
    own_assigned(cluster, view->owners, view->owner_count);
    rescue_assigned(cluster, view);
    if (atomic_load(&cluster->is_leaving))
        return;
    for (size_t i = 0; i < view->owner_count && !atomic_load(&cluster->is_stopping); i++) {
        SpaceGroup group = view_group(view, &view->owners[i].space);
        if (space_group_begins(group, view->owners[i].space))
            take_over_group(cluster, view, group);
    }
}

/* For long enough, while this node itself was awake: after a pause it finds old complaints. */
static bool is_cut_off_for_long(Cluster *cluster)
{
    uint64_t now_us = cluster_now_us(cluster);
    size_t self = view_node(&cluster->view, slice_from_cstr(cluster->node));
    if (!view_is_cut_off(&cluster->view, self) || now_us - cluster->round_us > VIEW_US * 2)
        cluster->cut_off_us = now_us;
    cluster->round_us = now_us;
    return now_us - cluster->cut_off_us >= CUT_OFF_US;
}

static void give_away(Cluster *cluster)
{
    const ClusterView *view = &cluster->view;
    bool cut_off = is_cut_off_for_long(cluster);
    if (atomic_exchange(&cluster->is_cut_off, cut_off) != cut_off && cut_off)
        cluster_event(cluster, "cutOff", 0, 0, slice_from_cstr(cluster->node),
                      "most other nodes cannot reach this one");
    if (atomic_load(&cluster->is_leaving))
        give_all_away(cluster, view, REASON_LEAVE);
    else if (atomic_load(&cluster->is_draining))
        give_all_away(cluster, view, REASON_DRAIN);
    else if (cut_off)
        give_all_away(cluster, view, REASON_CUT_OFF);
    else
        spread_evenly(cluster, view);
}

/* Of the copies that this node keeps. */
static int64_t count_behind(Cluster *cluster)
{
    const ClusterView *view = &cluster->view;
    uint64_t behind = 0;
    for (size_t i = 0; i < view->owner_count; i++) {
        ReplicaPlace place = cluster->store.place(cluster->store.ctx, view->owners[i].space);
        uint64_t tail = view->owners[i].tail.seq;
        if (place.role == SPACE_FOLLOWED && place.applied.seq < tail)
            behind += tail - place.applied.seq;
    }
    return (int64_t)behind;
}

static void count_metrics(Cluster *cluster)
{
    if (cluster->metrics == NULL)
        return;
    int64_t owned = 0;
    int64_t followed = 0;
    int64_t behind = count_behind(cluster);
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < cluster->spaces.count; i++) {
        owned += cluster->spaces.items[i].state == SPACE_STATE_SERVING;
        followed += cluster->spaces.items[i].state == SPACE_STATE_FOLLOWING;
    }
    int64_t events = (int64_t)cluster->event_count;
    int64_t take_overs = (int64_t)cluster->take_overs;
    int64_t hand_overs = (int64_t)cluster->hand_overs;
    int64_t bytes = (int64_t)cluster->engine.bytes;
    int64_t warns = cluster->engine.warning_len > 0;
    (void)pthread_mutex_unlock(&cluster->lock);
    const struct {
        Metric metric;
        int64_t value;
    } rows[] = {
        {METRIC_CLUSTER_SPACES_OWNED, owned},
        {METRIC_CLUSTER_SPACES_FOLLOWED, followed},
        {METRIC_CLUSTER_ENTRIES_BEHIND, behind},
        {METRIC_CLUSTER_TAKE_OVERS, take_overs},
        {METRIC_CLUSTER_HAND_OVERS, hand_overs},
        {METRIC_CLUSTER_EVENTS, events},
        {METRIC_CLUSTER_JOURNAL_BYTES, bytes},
        {METRIC_CLUSTER_JOURNAL_BYTES_MAX, (int64_t)cluster->journal_bytes_max},
        {METRIC_CLUSTER_SPACES_UNTRIMMED, (int64_t)atomic_load(&cluster->untrimmed)},
        {METRIC_CLUSTER_ENGINE_WARNING, warns},
        {METRIC_CLUSTER_LEASE, lease_holds(&cluster->lease)},
        {METRIC_CLUSTER_LEASE_LAPSES, (int64_t)atomic_load(&cluster->lapses)},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        int64_t before =
            atomic_load_explicit(&cluster->metrics->values[rows[i].metric], memory_order_relaxed);
        metrics_add(cluster->metrics, rows[i].metric, rows[i].value - before);
    }
}

/* The lock of the folder is enough for the next process again. If that cannot be noted, it waits.
 */
static void settle_folder(Cluster *cluster)
{
    Error err;
    if (cluster->settle_us == 0 || cluster_now_us(cluster) < cluster->settle_us)
        return;
    cluster->settle_us = 0;
    if (cluster_folder_has_moved(cluster->folder) &&
        cluster_folder_settle(cluster->folder, &err) != STATUS_OK)
        LOG_WARN(cluster->log, "cluster.folder_failed", "message=\"%s\"", err.message);
}

void manage_step(Cluster *cluster)
{
    settle_folder(cluster);
    clean_lost_spaces(cluster);
    come_back(cluster);
    if (member_of(cluster) != MEMBER_JOINED || !atomic_load(&cluster->has_store))
        return;
    continue_hand_overs(cluster);
    if (read_engine(cluster)) {
        engine_step(cluster, true);
        if (expel_lost_copies(cluster, &cluster->view)) {
            cluster_refresh_owners(cluster);
            return;
        }
        watch_own_progress(cluster, &cluster->view);
        drop_lost_by_engine(cluster, &cluster->view);
        watch_others(cluster);
        act_on_owners(cluster);
        follow_spaces(cluster, &cluster->view);
        if (atomic_load(&cluster->has_catalog)) {
            drain_damaged(cluster);
            forget_dropped(cluster, &cluster->view);
            give_away(cluster);
            trim_step(cluster, &cluster->view);
        }
    }
    count_metrics(cluster);
    if (cluster->view.node_count > 0)
        carry_out_orders(cluster, &cluster->view);
}
