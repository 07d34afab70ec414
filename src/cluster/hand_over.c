/* hand_over.c - giving spaces to other nodes on purpose: one order, draining, leaving, spreading.
 *
 *     the other node has a copy that is at most LAG_MAX entries behind (or is asked to make one)
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

const char REASON_OPERATOR[] = "an operator asked for it";

/* What the engine was told of the other node's copy. */
static bool is_reported_near(const ClusterView *view, StoreSpace space, size_t to, uint64_t seq)
{
    const JournalReplica *replica = view_replica(view, space, view->nodes[to].name);
    return replica != NULL && replica->state == REPLICA_FOLLOWING &&
           replica->applied + LAG_MAX >= seq;
}

/* Asks how far the other node's copy is, or for a copy; true if it may become the owner now. A node
 * that reaches no other one gives what it has to whoever has a copy. */
static bool is_caught_up(Cluster *cluster, const ClusterView *view, StoreSpace space, size_t to)
{
    Slice address = view->nodes[to].address;
    char query[64];
    (void)snprintf(query, sizeof(query), "space=%llu", (unsigned long long)space);
    AUTO(buf_done) Buf answer;
    buf_init(&answer, 4096);
    Error err;
    ReplicaPlace own = cluster->store.place(cluster->store.ctx, space);
    if (atomic_load(&cluster->is_cut_off))
        return is_reported_near(view, space, to, own.applied.seq);
    Status status = node_call(cluster, address, "place", query, CALL_MS, &answer, &err);
    if (status != STATUS_OK) {
        if (status == STATUS_NOT_FOUND)
            node_tell(cluster, address, "follow", query);
        return false;
    }
    uint64_t seq;
    return slice_to_u64(buf_view(&answer), &seq) && seq + LAG_MAX >= own.applied.seq;
}

static void tell_new_owner(Cluster *cluster, Slice address, StoreSpace space, bool is_placed)
{
    char query[64];
    (void)snprintf(query, sizeof(query), "owners=1&space=%llu%s", (unsigned long long)space,
                   is_placed ? "&placed=1" : "");
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
    cluster_event(cluster, "handOver", copy->space, epoch, owner, "from %s", cluster->node);
    OwnerRow row;
    OwnerNode node;
    if (owners_find(&cluster->owners, copy->space, &row, &node))
        tell_new_owner(cluster, slice_from_cstr(node.address), copy->space, copy->is_placed);
}

/* The log does not end where this node has left it: it goes on as the owner. */
static void take_back(Cluster *cluster, const SpaceSlot *copy)
{
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, copy->space);
    space_enter(slot, SPACE_STATE_FOLLOWING);
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

/* Serves nothing any more, and notes where the log ends. */
static bool begin_hand_over(Cluster *cluster, const ClusterView *view, StoreSpace space, size_t to,
                            bool is_placed)
{
    const JournalNode *node = &view->nodes[to];
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, space);
    bool begins =
        slot->state == SPACE_STATE_SERVING && !slot->is_lost && cluster->member == MEMBER_JOINED;
    uint64_t epoch = slot->epoch;
    if (begins) {
        space_enter(slot, SPACE_STATE_YIELDING);
        memset(slot->to, 0, sizeof(slot->to));
        memcpy(slot->to, node->name.ptr, node->name.len);
        slot->to_incarnation = node->incarnation;
        slot->is_placed = is_placed;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    if (!begins)
        return false;
    cluster_publish_space(cluster, space, slice_from_cstr(cluster->node),
                          atomic_load(&cluster->incarnation), epoch, false);
    Error err;
    JournalPlace last = {0};
    Status status = STATUS_OK;
    const ClusterCatalog *catalog = &cluster->catalog;
    if (atomic_load(&cluster->has_catalog) && space == SPACE_OF_CATALOG)
        catalog->follow(catalog->ctx);
    else if (atomic_load(&cluster->has_catalog))
        status = catalog->stop_serving(catalog->ctx, space, &err);
    if (status == STATUS_OK)
        status = cluster->store.yield(cluster->store.ctx, space, &last, &err);
    (void)pthread_mutex_lock(&cluster->lock);
    slot = space_table_get(&cluster->spaces, space);
    if (status == STATUS_OK) {
        slot->is_handing = true;
        slot->last = last;
        slot->last.epoch = epoch;
    } else {
        space_enter(slot,
                    SPACE_STATE_FOLLOWING); /* nothing was sent: the next read takes it back */
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
    for (StoreSpace from = 0; copy_handing(cluster, from, &copy); from = copy.space + 1)
        ask_engine(cluster, &copy);
}

bool hand_over_space(Cluster *cluster, const ClusterView *view, StoreSpace space, size_t to,
                     const char *reason)
{
    if (!cluster_serves(cluster, space))
        return true;
    if (!view_is_living(view, to) || !is_caught_up(cluster, view, space, to))
        return false;
    LOG_INFO(cluster->log, "cluster.hand_over", "space=%llu to=%.*s reason=\"%s\"",
             (unsigned long long)space, SLICE_CUT(view->nodes[to].name, JOURNAL_NAME_MAX), reason);
    SpaceSlot copy;
    if (begin_hand_over(cluster, view, space, to, reason == REASON_OPERATOR) &&
        copy_handing(cluster, space, &copy) && copy.space == space)
        ask_engine(cluster, &copy);
    return true;
}

/* ---- orders ---- */

Status cluster_order(Cluster *cluster, StoreSpace space, Slice node, const char *reason, Error *err)
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

void carry_out_orders(Cluster *cluster, const ClusterView *view)
{
    SpaceOrder order;
    for (size_t at = 0; copy_order(cluster, at, &order);) {
        size_t to = view_node(view, slice_from_cstr(order.node));
        bool is_here = strcmp(order.node, cluster->node) == 0;
        bool is_late = cluster_now_us(cluster) > order.until_us;
        if (is_late || is_here || hand_over_space(cluster, view, order.space, to, order.reason))
            remove_order(cluster, &order);
        else
            at++;
        if (is_late)
            cluster_event(cluster, "moveFailed", order.space, 0, slice_from_cstr(order.node),
                          "the node has no copy that is near enough");
    }
}

void give_all_away(Cluster *cluster, const ClusterView *view, const char *reason)
{
    size_t self = view_node(view, slice_from_cstr(cluster->node));
    for (size_t i = 0; i < view->owner_count; i++) {
        StoreSpace space = view->owners[i].space;
        if (!cluster_serves(cluster, space))
            continue;
        size_t to = spread_choose(view, space, self);
        if (to == NO_NODE)
            return;
        if (hand_over_space(cluster, view, space, to, reason))
            view->loads[to]++;
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

/* Ranges that share a budget are on one node, where they spend it together: none moves alone. */
static bool is_shared(const StoreSpace *shared, size_t count, StoreSpace space)
{
    for (size_t i = 0; i < count; i++) {
        if (shared[i] == space)
            return true;
    }
    return false;
}

static bool may_be_spread(Cluster *cluster, StoreSpace space)
{
    uint64_t now_us = cluster_now_us(cluster);
    (void)pthread_mutex_lock(&cluster->lock);
    const SpaceSlot *slot = space_table_find(&cluster->spaces, space);
    bool may = slot != NULL && slot->state == SPACE_STATE_SERVING && slot->pinned_us <= now_us;
    (void)pthread_mutex_unlock(&cluster->lock);
    return may;
}

void spread_evenly(Cluster *cluster, const ClusterView *view)
{
    size_t self = view_node(view, slice_from_cstr(cluster->node));
    size_t to;
    uint64_t now_us = cluster_now_us(cluster);
    if (!is_settled(cluster, view) || self == NO_NODE || !spread_is_uneven(view, self, &to) ||
        now_us - cluster->spread_us < SPREAD_US)
        return;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    StoreSpace *shared;
    size_t shared_count;
    cluster->catalog.list_shared(cluster->catalog.ctx, &arena, &shared, &shared_count);
    StoreSpace chosen = 0; /* one that the other node follows, if there is one */
    for (size_t i = 0; i < view->owner_count; i++) {
        StoreSpace space = view->owners[i].space;
        if (space == SPACE_OF_CATALOG || !may_be_spread(cluster, space) ||
            is_shared(shared, shared_count, space))
            continue;
        const JournalReplica *replica = view_replica(view, space, view->nodes[to].name);
        bool follows = replica != NULL && replica->state == REPLICA_FOLLOWING;
        if (chosen == 0 || follows)
            chosen = space;
        if (follows)
            break;
    }
    if (chosen != 0 && hand_over_space(cluster, view, chosen, to, "spread evenly"))
        cluster->spread_us = now_us;
}
