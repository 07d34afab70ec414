/* orders.c - what an operator asks for, and what a move of ranges needs. */
#include "cluster/cluster_int.h"

#include "json/json.h"

#include <stdio.h>

enum {
    ORDER_WAIT_MS = 60000,
    GATHER_WAIT_MS = 10000, /* no other move begins meanwhile; one that fails is tried again */
    ORDER_AGAIN_MS = 1000,
    ORDER_PAUSE_MS = 20, /* the others are multiples of it */
    ORDER_CALL_MS = 3000,
    UPGRADE_NAMES_MAX = 300
};

static Status read_nodes(Cluster *cluster, Arena *arena, ClusterView *view, Error *err)
{
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status = journal_nodes(cluster->journal, JOURNAL_LANE_ADMIN, arena, &view->nodes,
                                  &view->node_count, err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    return status;
}

static Status find_living(const ClusterView *view, Slice name, Error *err)
{
    size_t node = view_node(view, name);
    if (node == NO_NODE)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "the cluster has no node '%.*s'",
                         SLICE_CUT(name, JOURNAL_NAME_MAX));
    if (!view_is_living(view, node))
        return error_set(err, STATUS_CONFLICT, SUB_NONE, "the node '%.*s' is dead",
                         SLICE_CUT(name, JOURNAL_NAME_MAX));
    return STATUS_OK;
}

/* Gives the order to whoever serves the space. */
static Status send_order(Cluster *cluster, StoreSpace space, Slice node, HandOverReason reason,
                         Error *err)
{
    if (cluster_serves(cluster, space))
        return cluster_order(cluster, space, node, reason, err);
    ClusterOwner owner = cluster_owner(cluster, space);
    if (!owner.is_known || owner.address[0] == '\0')
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE, "nobody serves the partition now");
    char query[128];
    (void)snprintf(query, sizeof(query), "space=%llu&node=%.*s&reason=%d",
                   (unsigned long long)space, SLICE_CUT(node, JOURNAL_NAME_MAX), (int)reason);
    AUTO(buf_done) Buf answer;
    buf_init(&answer, 4096);
    return node_call(cluster, slice_from_cstr(owner.address), "move", query, ORDER_CALL_MS, &answer,
                     err);
}

/* Moves the space with its group, and waits until the node owns the space; '*left_ms' counts down.
 * The order is given again now and then, because it is forgotten with the owner that has it. */
static Status move_and_wait(Cluster *cluster, StoreSpace space, Slice node, HandOverReason reason,
                            uint32_t *left_ms, Error *err)
{
    bool is_due = true;
    for (; *left_ms > 0 && !atomic_load(&cluster->is_stopping); *left_ms -= ORDER_PAUSE_MS) {
        ClusterOwner owner = cluster_owner(cluster, space);
        if (owner.is_known && slice_equal(slice_from_cstr(owner.node), node))
            return STATUS_OK;
        if (is_due || *left_ms % ORDER_AGAIN_MS == 0) {
            Status status = send_order(cluster, space, node, reason, err);
            if (status != STATUS_OK && status != STATUS_NOT_OWNER)
                return status;
            is_due = status != STATUS_OK;
        }
        if (*left_ms % 500 == 0)
            cluster_refresh_owners(cluster);
        cluster_pause_ms(ORDER_PAUSE_MS);
    }
    return error_set(err, STATUS_TIMEOUT, SUB_NONE,
                     "the partition %llu has not arrived at '%.*s' yet; the move goes on",
                     (unsigned long long)space, SLICE_CUT(node, JOURNAL_NAME_MAX));
}

static Slice print_moved(SpaceGroup group, Slice node, Arena *arena)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    json_key(&b, SLICE("node"));
    json_add_string(&b, node);
    json_key(&b, SLICE("spaces"));
    json_begin_array(&b);
    for (size_t i = 0; i < group.count; i++)
        json_add_i64(&b, (int64_t)group.spaces[i]);
    json_end(&b);
    json_end(&b);
    return json_print_arena(arena, json_built(&b));
}

/* Whoever owns a space gives all that it has of the group, so that few orders are needed; what is
 * elsewhere is asked for there. */
Status cluster_move(Cluster *cluster, StoreSpace space, Slice node, Arena *arena, Slice *json,
                    Error *err)
{
    AUTO(arena_done) Arena scratch;
    arena_init(&scratch, ARENA_LARGE_BYTES);
    OwnerRow row;
    OwnerNode owner;
    ClusterView view;
    uint64_t begun_us;
    uint32_t left_ms = ORDER_WAIT_MS;
    if (!owners_find(&cluster->owners, space, &row, &owner))
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "there is no partition %llu",
                         (unsigned long long)space);
    TRY(cluster_read_view(cluster, false, &scratch, &view, &begun_us, err));
    TRY(find_living(&view, node, err));
    cluster_read_groups(cluster, &scratch, &view);
    SpaceGroup group = view_group(&view, &space);
    TRY(move_and_wait(cluster, space, node, REASON_OPERATOR, &left_ms, err));
    for (size_t i = 0; i < group.count; i++)
        TRY(move_and_wait(cluster, group.spaces[i], node, REASON_OPERATOR, &left_ms, err));
    *json = print_moved(group, node, arena);
    return STATUS_OK;
}

/* On the thread for moves, of the node that leads: each space is asked of its owner. */
Status cluster_gather(void *ctx, const StoreSpace *spaces, size_t count, Error *err)
{
    Cluster *cluster = ctx;
    for (size_t i = 0; i < count; i++) {
        uint32_t left_ms = GATHER_WAIT_MS;
        TRY(move_and_wait(cluster, spaces[i], slice_from_cstr(cluster->node), REASON_SPLIT_OR_MERGE,
                          &left_ms, err));
        if (!cluster_serves(cluster, spaces[i]))
            return error_set(err, STATUS_NOT_OWNER, SUB_NONE, "the partition %llu moved on",
                             (unsigned long long)spaces[i]);
    }
    return STATUS_OK;
}

Status set_draining(Cluster *cluster, Slice node, bool is_draining, const char *reason, Error *err)
{
    bool done = false;
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status =
        journal_set_draining(cluster->journal, JOURNAL_LANE_ADMIN, node, is_draining, &done, err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    TRY(status);
    if (!done)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "the cluster has no living node '%.*s'",
                         SLICE_CUT(node, JOURNAL_NAME_MAX));
    cluster_event(cluster, is_draining ? "draining" : "drainEnded", 0, 0, node, "%s", reason);
    cluster_refresh_owners(cluster);
    return STATUS_OK;
}

Status cluster_drain(Cluster *cluster, Slice node, bool is_draining, Error *err)
{
    return set_draining(cluster, node, is_draining, "an operator asked for it", err);
}

/* Once in each incarnation: an operator may decide that the node is used all the same. A join ends
 * what was asked for before. */
void drain_damaged(Cluster *cluster)
{
    if (cluster->has_told_damage || !cluster->store.is_damaged(cluster->store.store))
        return;
    Error err;
    Status status = set_draining(cluster, slice_from_cstr(cluster->node), true,
                                 "data on the node's disk is damaged", &err);
    if (status != STATUS_OK)
        LOG_WARN(cluster->log, "cluster.drain_failed", "message=\"%s\"", err.message);
    cluster->has_told_damage = status == STATUS_OK;
}

/* The newest format that a living node reads. */
static uint32_t newest_format(const ClusterView *view)
{
    uint32_t newest = 0;
    for (size_t i = 0; i < view->node_count; i++) {
        if (view_is_living(view, i) && view->nodes[i].format > newest)
            newest = view->nodes[i].format;
    }
    return newest;
}

/* The names of living nodes that read nothing newer than 'format'. */
static Slice older_nodes(const ClusterView *view, uint32_t format, Arena *arena)
{
    AUTO(buf_done) Buf names;
    buf_init(&names, UPGRADE_NAMES_MAX);
    for (size_t i = 0; i < view->node_count; i++) {
        if (view_is_living(view, i) && view->nodes[i].format <= format)
            buf_format(&names, "%s'%.*s'", names.len == 0 ? "" : ", ",
                       SLICE_ARG(view->nodes[i].name));
    }
    return arena_copy(arena, buf_view(&names));
}

Status cluster_upgrade(Cluster *cluster, Arena *arena, Slice *json, Error *err)
{
    ClusterView view = {0};
    uint32_t before = journal_format(cluster->journal);
    uint32_t after = 0;
    TRY(read_nodes(cluster, arena, &view, err));
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status = journal_upgrade(cluster->journal, JOURNAL_LANE_ADMIN, &after, err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    TRY(status);
    uint32_t newest = newest_format(&view);
    if (after <= before && newest > after) {
        Slice names = older_nodes(&view, after, arena);
        return error_set(
            err, STATUS_CONFLICT, SUB_NONE,
            "the cluster stays at format %u, although a node reads %u: start %.*s with "
            "the newer program, or stop it for good",
            after, newest, SLICE_CUT(names, UPGRADE_NAMES_MAX));
    }
    if (after > before)
        cluster_event(cluster, "upgraded", 0, 0, slice_from_cstr(cluster->node),
                      "an operator asked for it: format %u instead of %u", after, before);
    *json = arena_format(arena, "{\"format\":%u,\"before\":%u}", after, before);
    return STATUS_OK;
}

Status cluster_remove(Cluster *cluster, Slice node, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_LARGE_BYTES);
    ClusterView view;
    uint64_t begun_us;
    TRY(cluster_read_view(cluster, false, &arena, &view, &begun_us, err));
    size_t index = view_node(&view, node);
    if (index == NO_NODE)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "the cluster has no node '%.*s'",
                         SLICE_CUT(node, JOURNAL_NAME_MAX));
    if (view_is_living(&view, index))
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "the node '%.*s' is alive: drain it and stop it first",
                         SLICE_CUT(node, JOURNAL_NAME_MAX));
    if (view.loads[index] > 0)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "the node '%.*s' still owns %zu partitions that nobody could take over",
                         SLICE_CUT(node, JOURNAL_NAME_MAX), view.loads[index]);
    bool done = false;
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status = journal_remove_node(cluster->journal, JOURNAL_LANE_ADMIN, node, &done, err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    TRY(status);
    if (!done)
        return error_set(err, STATUS_CONFLICT, SUB_NONE, "the node '%.*s' has come back",
                         SLICE_CUT(node, JOURNAL_NAME_MAX));
    cluster_event(cluster, "removed", 0, 0, node, "an operator asked for it");
    cluster_refresh_owners(cluster);
    return STATUS_OK;
}
