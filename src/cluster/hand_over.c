/* hand_over.c - giving spaces to other nodes on purpose: one order, draining, leaving, spreading.
 *
 *     the other node has copies of the whole group that are at most LAG_MAX entries behind (or is
 *     asked to make them); then, space by space,
 *     --> YIELDING: requests are refused with STATUS_NOT_OWNER, and held where they came from
 *     --> the store appends what it has taken, and says where the log ends
 *     --> the engine makes the other node the owner, if the log still ends there
 *     --> the other node is told
 *
 * From the yield on nothing is served, and nothing is taken back before it is known what became of
 * the statement.
 */
#include "cluster/cluster_int.h"

#include <stdio.h>

bool is_reported_near(const ClusterView *view, StoreSpace space, size_t node, uint64_t seq)
{
    const JournalReplica *replica = view_replica(view, space, view->nodes[node].name);
    return replica != NULL && replica->state == REPLICA_FOLLOWING &&
           replica->applied + LAG_MAX >= seq;
}

/* Whether a node may become the owner now. */
typedef enum Nearness { COPY_IS_NEAR, COPY_IS_FAR, NODE_IS_SILENT } Nearness;

/* Asks how far the other node's copy is, or for a copy. A node that reaches no other one gives what
 * it has to whoever has a copy. */
static Nearness ask_nearness(Cluster *cluster, const ClusterView *view, StoreSpace space, size_t to)
{
    Slice address = view->nodes[to].address;
    char query[64];
    (void)snprintf(query, sizeof(query), "space=%llu", (unsigned long long)space);
    AUTO(buf_done) Buf answer;
    buf_init(&answer, 4096);
    Error err;
    ReplicaPlace own = cluster->store.place(cluster->store.ctx, space);
    if (atomic_load(&cluster->is_cut_off))
        return is_reported_near(view, space, to, own.applied.seq) ? COPY_IS_NEAR : COPY_IS_FAR;
    Status status = node_call(cluster, address, "place", query, CALL_MS, &answer, &err);
    if (status != STATUS_OK) {
        if (status == STATUS_NOT_FOUND)
            node_tell(cluster, address, "follow", query);
        return status == STATUS_NOT_FOUND ? COPY_IS_FAR : NODE_IS_SILENT;
    }
    uint64_t seq;
    bool is_near = slice_to_u64(buf_view(&answer), &seq) && seq + LAG_MAX >= own.applied.seq;
    return is_near ? COPY_IS_NEAR : COPY_IS_FAR;
}

/* All of the group that is served here; copies that are missing are asked for at once. A node that
 * has not answered is asked again after the next read of the engine: each time costs CALL_MS, in
 * which the manager neither finds that it is dead nor takes anything over. */
static bool are_caught_up(Cluster *cluster, const ClusterView *view, SpaceGroup group, size_t to)
{
    bool are_near = true;
    for (size_t i = 0; i < group.count; i++) {
        if (!cluster_serves(cluster, group.spaces[i]))
            continue;
        Nearness nearness =
            view->is_silent[to] ? NODE_IS_SILENT : ask_nearness(cluster, view, group.spaces[i], to);
        view->is_silent[to] = nearness == NODE_IS_SILENT;
        if (nearness == NODE_IS_SILENT)
            return false;
        are_near = are_near && nearness == COPY_IS_NEAR;
    }
    return are_near;
}

static void tell_new_owner(Cluster *cluster, Slice address, const SpaceSlot *copy, uint64_t epoch)
{
    char query[160];
    (void)snprintf(query, sizeof(query), "owners=1&space=%llu&epoch=%llu&reason=%d&fence=%llu",
                   (unsigned long long)copy->space, (unsigned long long)epoch, (int)copy->to_reason,
                   (unsigned long long)(cluster_now_us(cluster) - copy->yield_us));
    if (address.len > 0)
        node_tell(cluster, address, "poke", query);
}

/* The engine has another owner now. */
static void end_hand_over(Cluster *cluster, const SpaceSlot *copy, Slice owner,
                          uint64_t incarnation, uint64_t epoch)
{
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, copy->space);
    space_enter(slot, SPACE_STATE_FOLLOWING);
    slot->epoch_gone = copy->epoch;
    cluster->hand_overs++;
    (void)pthread_mutex_unlock(&cluster->lock);
    cluster_publish_space(cluster, copy->space, owner, incarnation, epoch, true);
    cluster_event(cluster, "handOver", copy->space, epoch, owner, "from %s: %s", cluster->node,
                  hand_over_reason_text(copy->to_reason));
    OwnerRow row;
    OwnerNode node;
    if (owners_find(&cluster->owners, copy->space, &row, &node))
        tell_new_owner(cluster, slice_from_cstr(node.address), copy, epoch);
}

/* The log does not end where this node has left it, because an append came late: it goes on as the
 * owner, in another epoch. */
static void take_back(Cluster *cluster, const SpaceSlot *copy)
{
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, copy->space);
    space_enter(slot, SPACE_STATE_FOLLOWING);
    slot->epoch_gone = copy->epoch;
    (void)pthread_mutex_unlock(&cluster->lock);
    cluster_event(cluster, "takenBack", copy->space, copy->epoch, slice_from_cstr(cluster->node),
                  "the log has grown since it was yielded");
    cluster_refresh_owners(cluster);
}

/* Asks the engine, and finds out what became of that; does nothing if it cannot be known yet. */
static void ask_engine(Cluster *cluster, const SpaceSlot *copy)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    const JournalOwner *rows = NULL;
    size_t found = 0;
    bool done = false;
    Error err;
    (void)pthread_mutex_lock(&cluster->node_lane);
    Status status = journal_hand_over(cluster->journal, copy->space, &copy->last,
                                      slice_from_cstr(copy->to), copy->to_incarnation, &done, &err);
    if (status == STATUS_OK && !done)
        status = journal_owners(cluster->journal, JOURNAL_LANE_NODE, &copy->space, 1, &arena, &rows,
                                &found, &err);
    (void)pthread_mutex_unlock(&cluster->node_lane);
    if (status != STATUS_OK) {
        LOG_WARN(cluster->log, "cluster.hand_over_waits", "space=%llu message=\"%s\"",
                 (unsigned long long)copy->space, err.message);
        return;
    }
    if (done)
        end_hand_over(cluster, copy, slice_from_cstr(copy->to), copy->to_incarnation,
                      copy->last.epoch + 1);
    else if (found == 0)
        end_hand_over(cluster, copy, SLICE_EMPTY, 0, copy->epoch); /* dropped meanwhile */
    else if (rows[0].tail.epoch > copy->epoch)
        end_hand_over(cluster, copy, rows[0].node, rows[0].incarnation, rows[0].tail.epoch);
    else
        take_back(cluster, copy);
}

/* The store gives the space up also if the partition could not be stopped. */
static Status stop_and_yield(Cluster *cluster, StoreSpace space, JournalPlace *last, Error *err)
{
    const ClusterCatalog *catalog = &cluster->catalog;
    Error stop_err;
    Status stopped = STATUS_OK;
    if (atomic_load(&cluster->has_catalog) && space == SPACE_OF_CATALOG)
        catalog->follow(catalog->ctx);
    else if (atomic_load(&cluster->has_catalog))
        stopped = catalog->stop_serving(catalog->ctx, space, &stop_err);
    TRY(cluster->store.yield(cluster->store.ctx, space, last, err));
    if (stopped != STATUS_OK)
        *err = stop_err;
    return stopped;
}

/* The number of the container whose partition this is; 0 if there is none. */
static uint32_t container_of(Cluster *cluster, StoreSpace space)
{
    const ClusterCatalog *catalog = &cluster->catalog;
    return atomic_load(&cluster->has_catalog) ? catalog->container_of(catalog->ctx, space) : 0;
}

/* The number of the container whose map is about to change; 0 if none is. */
static uint32_t switching(Cluster *cluster)
{
    const ClusterCatalog *catalog = &cluster->catalog;
    return atomic_load(&cluster->has_catalog) ? catalog->switching(catalog->ctx) : 0;
}

static bool is_switching(Cluster *cluster, SpaceGroup group)
{
    uint32_t container = switching(cluster);
    bool found = false;
    for (size_t i = 0; container != 0 && i < group.count && !found; i++)
        found = container_of(cluster, group.spaces[i]) == container;
    return found;
}

/* Enters YIELDING, unless the map is about to change here. That is asked under the lock, as other
 * nodes were asked for long since it was asked last: a move says first that it switches, and then
 * asks whether this node serves the space. So one of the two finds the other, and gives up (C9). */
static bool begin_yielding(Cluster *cluster, const JournalNode *node, StoreSpace space,
                           HandOverReason reason, uint64_t *epoch)
{
    uint32_t container = container_of(cluster, space);
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, space);
    bool begins = slot->state == SPACE_STATE_SERVING && !slot->is_lost &&
                  cluster->member == MEMBER_JOINED &&
                  (container == 0 || container != switching(cluster));
    *epoch = slot->epoch;
    if (begins) {
        space_enter(slot, SPACE_STATE_YIELDING);
        memset(slot->to, 0, sizeof(slot->to));
        memcpy(slot->to, node->name.ptr, node->name.len);
        slot->to_incarnation = node->incarnation;
        slot->to_reason = reason;
        slot->yield_us = cluster_now_us(cluster);
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    return begins;
}

/* Serves nothing any more, and notes where the log ends. */
static bool begin_hand_over(Cluster *cluster, const ClusterView *view, StoreSpace space, size_t to,
                            HandOverReason reason)
{
    uint64_t epoch;
    if (!begin_yielding(cluster, &view->nodes[to], space, reason, &epoch))
        return false;
    cluster_publish_space(cluster, space, slice_from_cstr(cluster->node),
                          atomic_load(&cluster->incarnation), epoch, false);
    Error err;
    JournalPlace last = {0};
    Status status = stop_and_yield(cluster, space, &last, &err);
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, space);
    if (status == STATUS_OK) {
        slot->is_handing = true;
        slot->last = last;
        slot->last.epoch = epoch;
    } else { /* nothing was sent, but an append may still come: rescue_assigned begins anew */
        space_enter(slot, SPACE_STATE_FOLLOWING);
        slot->epoch_gone = epoch;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    if (status != STATUS_OK)
        LOG_WARN(cluster->log, "cluster.hand_over_failed", "space=%llu message=\"%s\"",
                 (unsigned long long)space, err.message);
    return status == STATUS_OK;
}

static bool copy_handing(Cluster *cluster, StoreSpace from, SpaceSlot *out)
{
    bool found = false;
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < cluster->spaces.count && !found; i++) {
        const SpaceSlot *slot = &cluster->spaces.items[i];
        found = slot->space >= from && slot->state == SPACE_STATE_YIELDING && slot->is_handing;
        if (found)
            *out = *slot;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    return found;
}

void continue_hand_overs(Cluster *cluster)
{
    SpaceSlot copy;
    for (StoreSpace from = 0;
         !atomic_load(&cluster->is_stopping) && copy_handing(cluster, from, &copy);
         from = copy.space + 1)
        ask_engine(cluster, &copy);
}

static void hand_over_space(Cluster *cluster, const ClusterView *view, StoreSpace space, size_t to,
                            HandOverReason reason)
{
    LOG_INFO(cluster->log, "cluster.hand_over", "space=%llu to=%.*s reason=\"%s\"",
             (unsigned long long)space, SLICE_CUT(view->nodes[to].name, JOURNAL_NAME_MAX),
             hand_over_reason_text(reason));
    SpaceSlot copy;
    if (begin_hand_over(cluster, view, space, to, reason) && copy_handing(cluster, space, &copy) &&
        copy.space == space)
        ask_engine(cluster, &copy);
}

static size_t count_served(Cluster *cluster, SpaceGroup group)
{
    size_t count = 0;
    for (size_t i = 0; i < group.count; i++)
        count += cluster_serves(cluster, group.spaces[i]);
    return count;
}

/* What became of a hand-over is not known yet: the others must not go another way. */
static bool is_handing(Cluster *cluster, SpaceGroup group)
{
    bool found = false;
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < group.count && !found; i++) {
        const SpaceSlot *slot = space_table_find(&cluster->spaces, group.spaces[i]);
        found = slot != NULL && slot->state == SPACE_STATE_YIELDING;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    return found;
}

bool hand_over_group(Cluster *cluster, const ClusterView *view, SpaceGroup group, size_t to,
                     HandOverReason reason)
{
    if (count_served(cluster, group) == 0)
        return true;
    if (!view_is_living(view, to) || is_handing(cluster, group) || is_switching(cluster, group) ||
        !are_caught_up(cluster, view, group, to))
        return false;
    for (size_t i = 0; i < group.count; i++) {
        if (cluster_serves(cluster, group.spaces[i]))
            hand_over_space(cluster, view, group.spaces[i], to, reason);
    }
    return count_served(cluster, group) == 0; /* otherwise the map of one began to change */
}

/* ---- orders ---- */

Status cluster_order(Cluster *cluster, StoreSpace space, Slice node, HandOverReason reason,
                     Error *err)
{
    SpaceOrder order = {
        .space = space, .until_us = cluster_now_us(cluster) + PIN_US, .reason = reason};
    Slice name = slice_first(node, JOURNAL_NAME_MAX);
    memcpy(order.node, name.ptr, name.len);
    (void)pthread_mutex_lock(&cluster->lock);
    size_t at = 0;
    while (at < cluster->order_count && cluster->orders[at].space != space)
        at++;
    bool is_full = at == ORDERS_MAX;
    if (!is_full) {
        cluster->orders[at] = order; /* a newer order replaces an older one */
        cluster->order_count += at == cluster->order_count;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    if (is_full)
        return error_set(err, STATUS_THROTTLED, SUB_SYSTEM_BUSY, "%d moves of spaces wait already",
                         ORDERS_MAX);
    cluster_wake_manager(cluster);
    return STATUS_OK;
}

static bool copy_order(Cluster *cluster, size_t at, SpaceOrder *out)
{
    (void)pthread_mutex_lock(&cluster->lock);
    bool found = at < cluster->order_count;
    if (found)
        *out = cluster->orders[at];
    (void)pthread_mutex_unlock(&cluster->lock);
    return found;
}

static void remove_order(Cluster *cluster, const SpaceOrder *order)
{
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < cluster->order_count; i++) {
        if (cluster->orders[i].space == order->space &&
            cluster->orders[i].until_us == order->until_us) {
            cluster->order_count--;
            cluster->orders[i] = cluster->orders[cluster->order_count];
            break;
        }
    }
    (void)pthread_mutex_unlock(&cluster->lock);
}

/* Whether nothing is left to be done. */
static bool carry_out(Cluster *cluster, const ClusterView *view, const SpaceOrder *order)
{
    size_t to = view_node(view, slice_from_cstr(order->node));
    return view_knows_group(view, order->space) &&
           hand_over_group(cluster, view, view_group(view, &order->space), to, order->reason);
}

void carry_out_orders(Cluster *cluster, const ClusterView *view)
{
    SpaceOrder order;
    for (size_t at = 0; !atomic_load(&cluster->is_stopping) && copy_order(cluster, at, &order);) {
        bool is_here = strcmp(order.node, cluster->node) == 0;
        bool is_late = cluster_now_us(cluster) > order.until_us;
        if (is_late || is_here || carry_out(cluster, view, &order))
            remove_order(cluster, &order);
        else
            at++;
        if (is_late)
            cluster_event(cluster, "moveFailed", order.space, 0, slice_from_cstr(order.node),
                          "the node has no copy that is near enough");
    }
}

void give_all_away(Cluster *cluster, const ClusterView *view, HandOverReason reason)
{
    size_t self = view_node(view, slice_from_cstr(cluster->node));
    for (size_t i = 0; i < view->owner_count && !atomic_load(&cluster->is_stopping); i++) {
        SpaceGroup group = view_group(view, &view->owners[i].space);
        if (!space_group_begins(group, view->owners[i].space) || count_served(cluster, group) == 0)
            continue;
        size_t to = spread_choose(view, group, self);
        if (to == NO_NODE)
            return;
        if (hand_over_group(cluster, view, group, to, reason))
            view->loads[to] += group.count;
    }
}

/* A change of the living nodes begins the time anew in which nothing is spread. */
static bool is_settled(Cluster *cluster, const ClusterView *view)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < view->node_count; i++)
        hash = hash * 31 + view->nodes[i].incarnation * 4 + (uint64_t)view->nodes[i].state;
    uint64_t now_us = cluster_now_us(cluster);
    if (hash != cluster->nodes_hash) {
        cluster->nodes_hash = hash;
        cluster->nodes_since_us = now_us;
    }
    return now_us - cluster->nodes_since_us >= SETTLED_US;
}

static bool may_be_spread(Cluster *cluster, SpaceGroup group)
{
    uint64_t now_us = cluster_now_us(cluster);
    bool may = group.spaces[0] != SPACE_OF_CATALOG;
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < group.count && may; i++) {
        const SpaceSlot *slot = space_table_find(&cluster->spaces, group.spaces[i]);
        may = slot != NULL && slot->state == SPACE_STATE_SERVING && slot->pinned_us <= now_us;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    return may;
}

static bool follows_all(const ClusterView *view, SpaceGroup group, size_t node)
{
    for (size_t i = 0; i < group.count; i++) {
        const JournalReplica *replica = view_replica(view, group.spaces[i], view->nodes[node].name);
        if (replica == NULL || replica->state != REPLICA_FOLLOWING)
            return false;
    }
    return true;
}

/* Whether all that this node serves of the group has been apart from the rest for a while, and not
 * just because the group is moving, space by space. */
static bool is_apart_for_long(Cluster *cluster, SpaceGroup group, bool is_apart)
{
    uint64_t now_us = cluster_now_us(cluster);
    bool is_long = is_apart;
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < group.count; i++) {
        SpaceSlot *slot = space_table_find(&cluster->spaces, group.spaces[i]);
        if (slot == NULL || slot->state != SPACE_STATE_SERVING)
            continue;
        slot->apart_us = !is_apart ? 0 : slot->apart_us != 0 ? slot->apart_us : now_us;
        is_long = is_long && now_us - slot->apart_us >= APART_US;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    return is_long;
}

/* Groups that have more than one owner: parts of it were new, or could not move with the rest. Its
 * ranges give their budget out more than once meanwhile, so this goes before evenness, and before
 * what an operator has placed. */
static bool bring_together(Cluster *cluster, const ClusterView *view, size_t self)
{
    for (size_t i = 0; i < view->owner_count && !atomic_load(&cluster->is_stopping); i++) {
        SpaceGroup group = view_group(view, &view->owners[i].space);
        if (group.count == 1 || !space_group_begins(group, view->owners[i].space) ||
            count_served(cluster, group) == 0)
            continue;
        size_t home = spread_home(view, group);
        bool is_apart = home != NO_NODE && home != self;
        if (is_apart_for_long(cluster, group, is_apart) &&
            hand_over_group(cluster, view, group, home, REASON_SHARED))
            return true;
    }
    return false;
}

/* Gives away a group that makes the nodes more even, if possible one that the other node follows.
 */
static bool even_out(Cluster *cluster, const ClusterView *view, size_t self)
{
    size_t to;
    if (!spread_is_uneven(view, self, &to))
        return false;
    SpaceGroup chosen = {0};
    for (size_t i = 0; i < view->owner_count; i++) {
        SpaceGroup group = view_group(view, &view->owners[i].space);
        if (!space_group_begins(group, view->owners[i].space) || !may_be_spread(cluster, group) ||
            view->loads[self] <= view->loads[to] + group.count)
            continue;
        bool follows = follows_all(view, group, to);
        if (chosen.count == 0 || follows)
            chosen = group;
        if (follows)
            break;
    }
    return chosen.count > 0 && hand_over_group(cluster, view, chosen, to, REASON_SPREAD);
}

void spread_evenly(Cluster *cluster, const ClusterView *view)
{
    size_t self = view_node(view, slice_from_cstr(cluster->node));
    uint64_t now_us = cluster_now_us(cluster);
    if (!is_settled(cluster, view) || self == NO_NODE || !view->has_groups ||
        now_us - cluster->spread_us < SPREAD_US)
        return;
    if (bring_together(cluster, view, self) || even_out(cluster, view, self))
        cluster->spread_us = now_us;
}
