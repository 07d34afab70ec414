/* ownership.c - beginning and ceasing to serve spaces.
 *
 * Whoever finds in the engine that a space is this node's calls own_space, from any thread. The
 * state of the slot decides who works on it: the thread that entered TAKING. What was read before
 * this node gave the space away is refused by 'epoch_gone'.
 */
#include "cluster/cluster_int.h"

bool cluster_serves(Cluster *cluster, StoreSpace space)
{
    (void)pthread_mutex_lock(&cluster->lock);
    const SpaceSlot *slot = space_table_find(&cluster->spaces, space);
    bool serves = slot != NULL && slot->state == SPACE_STATE_SERVING && !slot->is_lost;
    (void)pthread_mutex_unlock(&cluster->lock);
    return serves;
}

void cluster_publish_space(Cluster *cluster, StoreSpace space, Slice node, uint64_t incarnation,
                           uint64_t epoch, bool is_served)
{
    OwnerRow row = {
        .space = space,
        .epoch = epoch,
        .incarnation = incarnation,
        .is_served = is_served,
        .is_local = is_served && slice_equal(node, slice_from_cstr(cluster->node)),
    };
    (void)pthread_mutex_lock(&cluster->lock);
    owners_set(&cluster->owners, &row, node);
    (void)pthread_mutex_unlock(&cluster->lock);
}

static void publish_own(Cluster *cluster, StoreSpace space, uint64_t epoch, bool is_served)
{
    cluster_publish_space(cluster, space, slice_from_cstr(cluster->node),
                          atomic_load(&cluster->incarnation), epoch, is_served);
}

/* Tells the catalogue, if there is one: before that, it asks for each space when it is opened. */
static Status tell_catalog(Cluster *cluster, StoreSpace space, bool serves, Error *err)
{
    if (!atomic_load(&cluster->has_catalog))
        return STATUS_OK;
    const ClusterCatalog *catalog = &cluster->catalog;
    if (space != SPACE_OF_CATALOG)
        return serves ? catalog->serve(catalog->ctx, space, err)
                      : catalog->stop_serving(catalog->ctx, space, err);
    if (serves)
        return catalog->lead(catalog->ctx, err);
    catalog->follow(catalog->ctx);
    return STATUS_OK;
}

/* Enters TAKING, unless another thread is at work, or what was read is old. */
static bool begin_taking(Cluster *cluster, StoreSpace space, uint64_t epoch, uint64_t *incarnation)
{
    uint64_t now_us = cluster_now_us(cluster);
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, space);
    bool is_free = slot->state == SPACE_STATE_ABSENT || slot->state == SPACE_STATE_FOLLOWING;
    bool takes = is_free && cluster->member == MEMBER_JOINED && epoch > slot->epoch_gone &&
                 slot->retry_us <= now_us;
    bool is_absent = slot->state == SPACE_STATE_ABSENT;
    if (takes && is_absent)
        space_enter(slot, SPACE_STATE_FOLLOWING);
    if (takes) {
        space_enter(slot, SPACE_STATE_TAKING);
        slot->epoch = epoch;
    }
    *incarnation = atomic_load(&cluster->incarnation);
    (void)pthread_mutex_unlock(&cluster->lock);
    if (takes && is_absent)
        cluster->store.follow(cluster->store.ctx, space);
    return takes;
}

static void give_up_taking(Cluster *cluster, StoreSpace space, const Error *err)
{
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, space);
    uint64_t epoch = slot->epoch;
    bool is_refused = err->status == STATUS_CORRUPT || slot->is_refused;
    bool needs_seed = is_refused || slot->needs_seed || err->status == STATUS_NOT_FOUND;
    if (slot->is_lost) /* the store had it already (C6) */
        slot->epoch_gone = epoch;
    space_enter(slot, SPACE_STATE_FOLLOWING);
    if (needs_seed)
        space_enter(slot, SPACE_STATE_SEEDING);
    if (is_refused)
        space_enter(slot, SPACE_STATE_REFUSED);
    slot->retry_us = cluster_now_us(cluster) + RETRY_US;
    (void)pthread_mutex_unlock(&cluster->lock);
    cluster_event(cluster, is_refused ? "engineLost" : "takeFailed", space, epoch,
                  slice_from_cstr(cluster->node), "%s", err->message);
    if (needs_seed && !is_refused)
        waker_wake(&cluster->seeder_waker);
}

/* Enters SERVING, unless this node was declared dead since, or the store has lost the space. */
static bool begin_serving(Cluster *cluster, StoreSpace space, uint64_t incarnation)
{
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, space);
    bool serves = cluster->member == MEMBER_JOINED && !slot->is_lost &&
                  atomic_load(&cluster->incarnation) == incarnation;
    if (serves) {
        space_enter(slot, SPACE_STATE_SERVING);
        slot->served_us = cluster_now_us(cluster);
        slot->open_us = 0;
        slot->applied_before = 0;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    return serves;
}

static void note_serving(Cluster *cluster, StoreSpace space, uint64_t epoch, const char *reason)
{
    uint64_t now_us = cluster_now_us(cluster);
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, space);
    bool was_given = slot->given_epoch == epoch;
    HandOverReason given_reason = slot->given_reason;
    (void)pthread_mutex_unlock(&cluster->lock);
    cluster_event(cluster, "serving", space, epoch, slice_from_cstr(cluster->node), "%s%s%s",
                  reason, was_given ? ": " : "",
                  was_given ? hand_over_reason_text(given_reason) : "");
    (void)pthread_mutex_lock(&cluster->lock);
    slot = space_table_get(&cluster->spaces, space);
    slot->open_us = now_us; /* after the event, which note_given may look for from now on */
    was_given = slot->given_epoch == epoch;
    uint64_t since_us = slot->given_us;
    (void)pthread_mutex_unlock(&cluster->lock);
    if (was_given)
        cluster_event_fence(cluster, space, epoch, now_us > since_us ? now_us - since_us : 0);
}

static void serve_space(Cluster *cluster, StoreSpace space, const JournalPlace *tail,
                        bool tells_catalog, const char *reason)
{
    uint64_t incarnation;
    if (!begin_taking(cluster, space, tail->epoch, &incarnation))
        return;
    Error err;
    JournalPlace last;
    uint64_t deadline_us = clock_monotonic_us(cluster->clock) + OWN_US;
    if (cluster->store.own(cluster->store.ctx, space, tail, deadline_us, &err) != STATUS_OK) {
        give_up_taking(cluster, space, &err);
        return;
    }
    if (!begin_serving(cluster, space, incarnation)) {
        /* Of no consequence if it fails: the store has lost the space already. */
        Status status = cluster->store.yield(cluster->store.ctx, space, &last, &err);
        if (status == STATUS_OK)
            status = error_set(&err, STATUS_NOT_OWNER, SUB_NONE, "the node was declared dead");
        LOG_DEBUG(cluster->log, "cluster.not_served", "space=%llu status=%d",
                  (unsigned long long)space, (int)status);
        give_up_taking(cluster, space, &err);
        return;
    }
    if (tells_catalog && tell_catalog(cluster, space, true, &err) != STATUS_OK) {
        drop_space(cluster, space, err.message);
        return;
    }
    if (space == SPACE_OF_CATALOG)
        atomic_store(&cluster->catalog_done, tail->seq);
    publish_own(cluster, space, tail->epoch, true);
    note_serving(cluster, space, tail->epoch, reason);
}

void own_space(Cluster *cluster, StoreSpace space, const JournalPlace *tail, const char *reason)
{
    serve_space(cluster, space, tail, true, reason);
}

/* The catalogue's thread asks for the space when the change that makes it is applied, so nothing
 * need be told, and it could not be waited for. */
void own_new_space(Cluster *cluster, StoreSpace space, const JournalPlace *tail)
{
    serve_space(cluster, space, tail, false, "new");
}

static bool is_own(Cluster *cluster, const JournalOwner *owner)
{
    return owner->incarnation == atomic_load(&cluster->incarnation) &&
           slice_equal(owner->node, slice_from_cstr(cluster->node));
}

/* Whether the space is this node's in the engine, in an epoch in which the store has lost it. */
static bool is_assigned_in_vain(Cluster *cluster, const JournalOwner *owner)
{
    if (owner == NULL || !is_own(cluster, owner))
        return false;
    (void)pthread_mutex_lock(&cluster->lock);
    const SpaceSlot *slot = space_table_find(&cluster->spaces, owner->space);
    bool useless = slot != NULL && slot->state == SPACE_STATE_FOLLOWING &&
                   owner->tail.epoch <= slot->epoch_gone;
    (void)pthread_mutex_unlock(&cluster->lock);
    return useless;
}

/* Where the useless spaces of a group go: to this node in a new epoch, if it goes on serving others
 * of the group or nobody has copies of all of them; otherwise to who has. */
static size_t choose_rescuer(Cluster *cluster, const ClusterView *view, SpaceGroup group,
                             size_t self)
{
    size_t to = spread_choose(view, group, self);
    for (size_t i = 0; to != NO_NODE && i < group.count; i++) {
        const JournalOwner *owner = view_owner(view, group.spaces[i]);
        if (cluster_serves(cluster, group.spaces[i]) ||
            (is_assigned_in_vain(cluster, owner) &&
             !is_reported_near(view, owner->space, to, owner->tail.seq)))
            return self;
    }
    return to != NO_NODE ? to : self;
}

static void rescue(Cluster *cluster, const JournalOwner *owner, const JournalNode *node)
{
    bool done = false;
    Error err;
    (void)pthread_mutex_lock(&cluster->node_lane);
    Status status = journal_hand_over(cluster->journal, owner->space, &owner->tail, node->name,
                                      node->incarnation, &done, &err);
    (void)pthread_mutex_unlock(&cluster->node_lane);
    if (status == STATUS_OK && done)
        cluster_event(cluster, "rescued", owner->space, owner->tail.epoch + 1, node->name,
                      "this node cannot serve it any more in epoch %llu",
                      (unsigned long long)owner->tail.epoch);
    cluster_refresh_owners(cluster);
}

static void rescue_group(Cluster *cluster, const ClusterView *view, SpaceGroup group, size_t self)
{
    size_t to = NO_NODE;
    for (size_t i = 0; i < group.count; i++) {
        const JournalOwner *owner = view_owner(view, group.spaces[i]);
        if (!is_assigned_in_vain(cluster, owner))
            continue;
        if (to == NO_NODE)
            to = choose_rescuer(cluster, view, group, self);
        rescue(cluster, owner, &view->nodes[to]);
    }
}

void rescue_assigned(Cluster *cluster, const ClusterView *view)
{
    size_t self = view_node(view, slice_from_cstr(cluster->node));
    for (size_t i = 0;
         self != NO_NODE && i < view->owner_count && !atomic_load(&cluster->is_stopping); i++) {
        StoreSpace space = view->owners[i].space;
        SpaceGroup group = view_group(view, &view->owners[i].space);
        if (view_knows_group(view, space) && space_group_begins(group, space))
            rescue_group(cluster, view, group, self);
    }
}

/* A space that had another owner before may be one that a split or a merge has replaced. Its
 * partition must not be opened by an older map, or it would take writes that are in no other one.
 * A space in its first epoch is new: no other map has it, and it is served before the map has it
 * (C3). */
static bool needs_map(Cluster *cluster, const JournalOwner *owner)
{
    return owner->space != SPACE_OF_CATALOG && owner->tail.epoch > JOURNAL_EPOCH_FIRST &&
           atomic_load(&cluster->has_catalog);
}

void own_assigned(Cluster *cluster, const JournalOwner *owners, size_t count)
{
    bool has_map = catalog_is_published(cluster, owners, count);
    for (size_t i = 0; i < count && !atomic_load(&cluster->is_stopping); i++) {
        const JournalOwner *owner = &owners[i];
        if (!is_own(cluster, owner) || cluster_serves(cluster, owner->space))
            continue;
        if (has_map || !needs_map(cluster, owner))
            own_space(cluster, owner->space, &owner->tail, "assigned");
        else
            cluster_refresh_owners(cluster); /* the next round finds it again */
    }
}

static bool has_work(Cluster *cluster, const ClusterView *view)
{
    for (size_t i = 0; i < view->owner_count; i++) {
        const JournalOwner *owner = &view->owners[i];
        if (needs_map(cluster, owner) &&
            (is_own(cluster, owner) ? !cluster_serves(cluster, owner->space)
                                    : !view_owner_lives(view, owner)))
            return true;
    }
    return false;
}

void await_catalog(Cluster *cluster, const ClusterView *view)
{
    if (cluster->thread_count == 0 || !has_work(cluster, view))
        return;
    for (int i = 0; i < CATALOG_WAIT_MS && !atomic_load(&cluster->is_stopping) &&
                    !catalog_is_published(cluster, view->owners, view->owner_count);
         i++) {
        waker_wake(&cluster->catalog_waker);
        cluster_pause_ms(1);
    }
}

/* The lock of the folder has shown that the process before is gone; if it could not, its lease must
 * have ended. The engine renews that no more since this process has joined. */
static bool may_take_own(Cluster *cluster)
{
    return !cluster_folder_has_moved(cluster->folder) ||
           cluster_now_us(cluster) >= cluster->settle_us;
}

/* Whether it is this node's turn: its rank in the group waits from when the owner was first found
 * dead. */
static bool is_turn(Cluster *cluster, const ClusterView *view, const JournalOwner *owner,
                    size_t rank)
{
    Slice me = slice_from_cstr(cluster->node);
    if (slice_equal(owner->node, me))
        return owner->incarnation < atomic_load(&cluster->incarnation) && may_take_own(cluster);
    bool may_take = rank != NO_NODE && view_knows_group(view, owner->space) &&
                    spread_may_take(view, owner, view_node(view, me));
    uint64_t now_us = cluster_now_us(cluster);
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, owner->space);
    if (slot->orphan_us == 0)
        slot->orphan_us = now_us;
    /* A node that has come back takes its own spaces itself, if it can. Its folder may have moved:
     * nobody has seen the lease of the process before end. */
    size_t home = view_node(view, owner->node);
    uint64_t wait_us = view_is_living(view, home) ? LEASE_SUCCESSOR_US : 0;
    bool is_due = may_take && now_us - slot->orphan_us >= wait_us + rank * RANK_US;
    bool is_free = slot->state == SPACE_STATE_FOLLOWING || slot->state == SPACE_STATE_ABSENT;
    (void)pthread_mutex_unlock(&cluster->lock);
    return is_due && is_free;
}

/* Whether the dead owner has the catalogue, too. Its last statement there may still arrive: the end
 * of a move, by which this space goes, with all that another owner would write to it (C9). */
static bool may_change_catalog(const ClusterView *view, const JournalOwner *owner)
{
    const JournalOwner *leader = view_owner(view, SPACE_OF_CATALOG);
    return owner->space != SPACE_OF_CATALOG && leader != NULL &&
           leader->incarnation == owner->incarnation && slice_equal(leader->node, owner->node);
}

/* Makes this node the owner in the engine; '*tail' is where the log ends. False if someone was
 * faster, or the answer was lost. */
static bool take_over(Cluster *cluster, const JournalOwner *owner, JournalPlace *tail)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    JournalOwner now;
    bool done = false;
    Error err;
    (void)pthread_mutex_lock(&cluster->node_lane);
    Status status = journal_take_over(cluster->journal, owner->space, owner->tail.epoch, &arena,
                                      &now, &done, &err);
    (void)pthread_mutex_unlock(&cluster->node_lane);
    if (status != STATUS_OK)
        LOG_WARN(cluster->log, "cluster.take_over_failed", "space=%llu message=\"%s\"",
                 (unsigned long long)owner->space, err.message);
    if (status != STATUS_OK || !done) {
        cluster_refresh_owners(cluster);
        return false;
    }
    *tail = now.tail;
    (void)pthread_mutex_lock(&cluster->lock);
    cluster->take_overs++;
    (void)pthread_mutex_unlock(&cluster->lock);
    cluster_event(cluster, "takeOver", owner->space, now.tail.epoch, slice_from_cstr(cluster->node),
                  "from %.*s, incarnation %llu", SLICE_CUT(owner->node, JOURNAL_NAME_MAX),
                  (unsigned long long)owner->incarnation);
    return true;
}

static bool has_orphan(const ClusterView *view, SpaceGroup group)
{
    for (size_t i = 0; i < group.count; i++) {
        const JournalOwner *owner = view_owner(view, group.spaces[i]);
        if (owner != NULL && owner->sealed != -1 && !view_owner_lives(view, owner))
            return true;
    }
    return false;
}

/* All of the group is made this node's before any of it is served, which may take long: meanwhile
 * the ranks of others would come. If another node was faster with one, it gets the rest, too. */
void take_over_group(Cluster *cluster, const ClusterView *view, SpaceGroup group)
{
    if (!has_orphan(view, group))
        return;
    bool has_map = catalog_is_published(cluster, view->owners, view->owner_count);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    JournalPlace *tails = ARENA_NEW_ARRAY(&arena, JournalPlace, group.count);
    bool *is_taken = ARENA_NEW_ARRAY(&arena, bool, group.count);
    size_t self = view_node(view, slice_from_cstr(cluster->node));
    size_t rank = self != NO_NODE ? spread_rank(view, group, self) : NO_NODE;
    for (size_t i = 0; i < group.count; i++) {
        const JournalOwner *owner = view_owner(view, group.spaces[i]);
        if (owner == NULL || owner->sealed == -1 || view_owner_lives(view, owner) ||
            may_change_catalog(view, owner) || (!has_map && needs_map(cluster, owner)) ||
            !is_turn(cluster, view, owner, rank))
            continue;
        is_taken[i] = take_over(cluster, owner, &tails[i]);
        if (!is_taken[i])
            break;
    }
    for (size_t i = 0; i < group.count; i++) {
        if (is_taken[i])
            own_space(cluster, group.spaces[i], &tails[i], "taken over");
    }
}

void drop_space(Cluster *cluster, StoreSpace space, const char *reason)
{
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, space);
    bool is_served = slot->state == SPACE_STATE_SERVING;
    uint64_t epoch = slot->epoch;
    if (is_served)
        space_enter(slot, SPACE_STATE_YIELDING);
    (void)pthread_mutex_unlock(&cluster->lock);
    if (!is_served)
        return;
    publish_own(cluster, space, epoch, false);
    Error err;
    JournalPlace last;
    if (tell_catalog(cluster, space, false, &err) != STATUS_OK)
        LOG_WARN(cluster->log, "cluster.stop_failed", "space=%llu message=\"%s\"",
                 (unsigned long long)space, err.message);
    Status status = cluster->store.yield(cluster->store.ctx, space, &last, &err);
    if (status != STATUS_OK)
        LOG_WARN(cluster->log, "cluster.yield_failed", "space=%llu message=\"%s\"",
                 (unsigned long long)space, err.message);
    (void)pthread_mutex_lock(&cluster->lock);
    slot = space_table_get(&cluster->spaces, space);
    space_enter(slot, SPACE_STATE_FOLLOWING);
    if (status != STATUS_OK) /* the store has lost it (C6) */
        slot->epoch_gone = epoch;
    slot->retry_us = cluster_now_us(cluster) + RETRY_US;
    (void)pthread_mutex_unlock(&cluster->lock);
    cluster_event(cluster, "dropped", space, epoch, slice_from_cstr(cluster->node), "%s", reason);
}

/* What is wrong with a space that is served here, by a row that was read since it is; NULL if
 * nothing is. A row is never behind what was applied before it was read. */
static const char *find_loss(Cluster *cluster, const JournalOwner *owner)
{
    uint64_t applied = cluster->store.place(cluster->store.ctx, owner->space).applied.seq;
    bool is_mine = owner->incarnation == atomic_load(&cluster->incarnation) &&
                   slice_equal(owner->node, slice_from_cstr(cluster->node));
    const char *loss = NULL;
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_find(&cluster->spaces, owner->space);
    if (slot != NULL && slot->state == SPACE_STATE_SERVING && slot->served_us < cluster->view_us) {
        if (!is_mine || owner->tail.epoch < slot->epoch)
            loss = "the engine has forgotten that this node owns it";
        else if (owner->tail.seq < slot->applied_before)
            loss = "the engine has lost writes that it had acknowledged";
        slot->applied_before = applied;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    return loss;
}

void drop_lost_by_engine(Cluster *cluster, const ClusterView *view)
{
    for (size_t i = 0; i < view->owner_count; i++) {
        const char *loss = find_loss(cluster, &view->owners[i]);
        if (loss != NULL)
            drop_space(cluster, view->owners[i].space, loss);
    }
}

/* The store follows the space already, or refuses its log. */
static void clean_lost_space(Cluster *cluster, StoreSpace space, uint64_t epoch, bool is_refused)
{
    Error err;
    publish_own(cluster, space, epoch, false);
    if (tell_catalog(cluster, space, false, &err) != STATUS_OK)
        LOG_WARN(cluster->log, "cluster.stop_failed", "space=%llu message=\"%s\"",
                 (unsigned long long)space, err.message);
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, space);
    space_enter(slot, SPACE_STATE_FOLLOWING);
    if (is_refused) {
        space_enter(slot, SPACE_STATE_SEEDING);
        space_enter(slot, SPACE_STATE_REFUSED);
    }
    slot->epoch_gone = epoch;
    (void)pthread_mutex_unlock(&cluster->lock);
    cluster_event(cluster, is_refused ? "engineLost" : "lost", space, epoch,
                  slice_from_cstr(cluster->node), "%s",
                  is_refused ? "the engine has lost writes that it had acknowledged: run `orrery "
                               "cluster recover`"
                             : "another node owns it, or an append has failed");
}

Status cluster_recover(Cluster *cluster, StoreSpace space, Error *err)
{
    size_t count = 0;
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < cluster->spaces.count; i++) {
        SpaceSlot *slot = &cluster->spaces.items[i];
        if (slot->state != SPACE_STATE_REFUSED || (space != 0 && slot->space != space))
            continue;
        space_enter(slot, SPACE_STATE_SEEDING);
        slot->accepts_log = true;
        slot->retry_us = 0;
        count++;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    if (count == 0)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                         "this node refuses no partition, or not that one");
    cluster_event(cluster, "recover", space, 0, slice_from_cstr(cluster->node),
                  "an operator accepts what the engine has, for %zu partitions", count);
    waker_wake(&cluster->seeder_waker);
    return STATUS_OK;
}

void clean_lost_spaces(Cluster *cluster)
{
    for (StoreSpace from = 0;;) {
        (void)pthread_mutex_lock(&cluster->lock);
        const SpaceSlot *lost = NULL;
        for (size_t i = 0; i < cluster->spaces.count && lost == NULL; i++) {
            const SpaceSlot *slot = &cluster->spaces.items[i];
            if (slot->space >= from && slot->is_lost && slot->state == SPACE_STATE_SERVING)
                lost = slot;
        }
        SpaceSlot copy = lost != NULL ? *lost : (SpaceSlot){0};
        (void)pthread_mutex_unlock(&cluster->lock);
        if (copy.space == 0)
            return;
        clean_lost_space(cluster, copy.space, copy.epoch, copy.is_refused);
        from = copy.space + 1;
    }
}
