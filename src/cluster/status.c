/* status.c - what /_orrery/cluster shows. */
#include "cluster/cluster_int.h"

#include "base/encoding.h"
#include "json/json.h"

#include <stdio.h>

typedef struct StatusView {
    ClusterView view;
    JournalUsage usage;
    Slice usage_error; /* empty if 'usage' is known */
} StatusView;

static void add_text(JsonBuilder *b, const char *key, Slice value)
{
    json_key(b, slice_from_cstr(key));
    json_add_string(b, json_utf8_valid(value) ? value : SLICE(""));
}

static void add_number(JsonBuilder *b, const char *key, uint64_t value)
{
    json_key(b, slice_from_cstr(key));
    json_add_i64(b, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

static void add_bool(JsonBuilder *b, const char *key, bool value)
{
    json_key(b, slice_from_cstr(key));
    json_add_bool(b, value);
}

static const char *state_text(NodeState state)
{
    switch (state) {
    case NODE_LIVE:
        return "live";
    case NODE_DRAINING:
        return "draining";
    case NODE_DEAD:
        return "dead";
    }
    return "unknown";
}

/* Since when this node has seen the newest renewal of the other. */
static uint64_t renewal_age_ms(Cluster *cluster, Slice name)
{
    uint64_t now_us = cluster_now_us(cluster);
    uint64_t age_ms = 0;
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < cluster->watch.count; i++) {
        const WatchedNode *item = &cluster->watch.items[i];
        if (slice_equal(slice_from_cstr(item->name), name) && item->first_us != 0 &&
            now_us > item->first_us)
            age_ms = (now_us - item->first_us) / 1000;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    return age_ms;
}

/* Copies of a node, and how many entries they are behind in all. */
static void count_copies(const ClusterView *view, Slice node, size_t *copies, uint64_t *lag)
{
    *copies = 0;
    *lag = 0;
    for (size_t i = 0; i < view->replica_count; i++) {
        const JournalReplica *replica = &view->replicas[i];
        const JournalOwner *owner = view_owner(view, replica->space);
        if (owner == NULL || replica->state != REPLICA_FOLLOWING ||
            !slice_equal(replica->node, node) || slice_equal(owner->node, node))
            continue;
        (*copies)++;
        *lag += owner->tail.seq > replica->applied ? owner->tail.seq - replica->applied : 0;
    }
}

static void add_nodes(Cluster *cluster, JsonBuilder *b, const ClusterView *view)
{
    json_key(b, SLICE("nodes"));
    json_begin_array(b);
    for (size_t i = 0; i < view->node_count; i++) {
        const JournalNode *node = &view->nodes[i];
        size_t copies;
        uint64_t lag;
        count_copies(view, node->name, &copies, &lag);
        json_begin_object(b);
        add_text(b, "name", node->name);
        add_text(b, "state", slice_from_cstr(state_text(node->state)));
        add_number(b, "incarnation", node->incarnation);
        add_text(b, "address", node->address);
        add_text(b, "advertise", node->advertise);
        add_text(b, "region", node->region);
        add_text(b, "unreachable", node->unreachable);
        add_number(b, "format", node->format);
        add_number(b, "catalog", node->catalog);
        add_number(b, "renewalAgeMs", renewal_age_ms(cluster, node->name));
        add_number(b, "owned", view->loads[i]);
        add_number(b, "followed", copies);
        add_number(b, "lag", lag);
        json_end(b);
    }
    json_end(b);
}

static void add_space(Cluster *cluster, JsonBuilder *b, const ClusterView *view,
                      const JournalOwner *owner)
{
    static const char *const replica_states[] = {
        [REPLICA_SEEDING] = "seeding",
        [REPLICA_FOLLOWING] = "following",
        [REPLICA_EXPELLED] = "expelled",
    };
    (void)pthread_mutex_lock(&cluster->lock);
    const SpaceSlot *slot = space_table_find(&cluster->spaces, owner->space);
    const char *state = space_state_text(slot != NULL ? slot->state : SPACE_STATE_ABSENT);
    (void)pthread_mutex_unlock(&cluster->lock);
    json_begin_object(b);
    add_number(b, "id", owner->space);
    add_text(b, "owner", owner->node);
    add_bool(b, "ownerLives", view_owner_lives(view, owner));
    add_number(b, "epoch", owner->tail.epoch);
    add_number(b, "tail", owner->tail.seq);
    add_number(b, "base", owner->base);
    add_bool(b, "sealed", owner->sealed != 0);
    add_text(b, "here", slice_from_cstr(state));
    json_key(b, SLICE("replicas"));
    json_begin_array(b);
    for (size_t i = view_first_replica(view, owner->space);
         i < view->replica_count && view->replicas[i].space == owner->space; i++) {
        const JournalReplica *replica = &view->replicas[i];
        json_begin_object(b);
        add_text(b, "node", replica->node);
        add_text(b, "state", slice_from_cstr(replica_states[replica->state]));
        add_number(b, "applied", replica->applied);
        add_number(b, "durable", replica->durable);
        json_end(b);
    }
    json_end(b);
    json_end(b);
}

static void add_spaces(Cluster *cluster, JsonBuilder *b, const ClusterView *view)
{
    add_number(b, "spaceCount", view->owner_count);
    json_key(b, SLICE("spaces"));
    json_begin_array(b);
    for (size_t i = 0; i < view->owner_count && i < CLUSTER_STATUS_SPACES_MAX; i++)
        add_space(cluster, b, view, &view->owners[i]);
    json_end(b);
}

static void add_warnings(Cluster *cluster, JsonBuilder *b, const StatusView *status)
{
    json_key(b, SLICE("warnings"));
    json_begin_array(b);
    if (status->usage_error.len > 0)
        json_add_string(b, status->usage_error);
    if (status->usage.warning.len > 0) /* which says what is wrong with the standby, if it is */
        json_add_string(b, status->usage.warning);
    else if (status->usage_error.len == 0 && !status->usage.has_synchronous_standby)
        json_add_string(b, SLICE("The engine has no synchronous standby: if it is lost, so are "
                                 "acknowledged writes."));
    char clock_text[CLUSTER_WARNING_MAX];
    size_t clock_len = cluster_clock_warning(cluster, clock_text);
    if (clock_len > 0)
        json_add_string(b, arena_copy(b->arena, slice_make(clock_text, clock_len)));
    char copies[CLUSTER_WARNING_MAX];
    size_t copies_len = cluster_copies_warning(cluster, copies);
    if (copies_len > 0)
        json_add_string(b, slice_make(copies, copies_len));
    if (atomic_load(&cluster->is_late))
        json_add_string(b, SLICE("This node does not get the newest changes of the catalogue: it "
                                 "answers no requests until it has them; its log says why."));
    if (!lease_holds(&cluster->lease))
        json_add_string(b, SLICE("The lease of this node does not hold."));
    if (cluster->store.is_damaged(cluster->store.store))
        json_add_string(b,
                        SLICE("Data on the disk of this node is damaged. It gives its partitions "
                              "to others: stop it, and start it with an empty folder."));
    size_t refused = 0;
    size_t rowless = 0;
    uint64_t now_us = cluster_now_us(cluster);
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < cluster->spaces.count; i++) {
        const SpaceSlot *slot = &cluster->spaces.items[i];
        refused += slot->state == SPACE_STATE_REFUSED;
        rowless += slot->state != SPACE_STATE_ABSENT && slot->rowless_us != 0 &&
                   now_us - slot->rowless_us >= ROWLESS_US;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    if (rowless > 0)
        json_add_string(b, arena_format(b->arena,
                                        "The engine does not know %zu partitions that this node "
                                        "has copies of: was it restored from a backup?",
                                        rowless));
    if (refused > 0)
        json_add_string(b,
                        arena_format(b->arena,
                                     "The engine has lost acknowledged writes of %zu partitions: "
                                     "see `orrery cluster recover`.",
                                     refused));
    size_t orphans = 0;
    for (size_t i = 0; i < status->view.owner_count; i++)
        orphans += !view_owner_lives(&status->view, &status->view.owners[i]);
    if (orphans > 0)
        json_add_string(b, arena_format(b->arena, "%zu partitions have no living owner.", orphans));
    json_end(b);
}

static void add_events(Cluster *cluster, JsonBuilder *b, Arena *arena)
{
    ClusterEvent *events = ARENA_NEW_ARRAY(arena, ClusterEvent, CLUSTER_EVENTS_MAX);
    size_t count = cluster_events(cluster, events, CLUSTER_EVENTS_MAX);
    json_begin_array(b);
    for (size_t i = 0; i < count; i++) {
        const ClusterEvent *event = &events[i];
        json_begin_object(b);
        add_number(b, "number", event->number);
        add_number(b, "atMs", event->at_us / 1000);
        add_text(b, "kind", slice_from_cstr(event->kind));
        if (event->space != 0)
            add_number(b, "space", event->space);
        if (event->epoch != 0)
            add_number(b, "epoch", event->epoch);
        add_text(b, "node", slice_from_cstr(event->node));
        add_text(b, "reason", slice_from_cstr(event->reason));
        if (event->has_fence)
            add_number(b, "fenceMs", (event->fence_us + 999) / 1000);
        json_end(b);
    }
    json_end(b);
}

static Status read_status(Cluster *cluster, Arena *arena, StatusView *out, Error *err)
{
    uint64_t begun_us;
    TRY(cluster_read_view(cluster, true, arena, &out->view, &begun_us, err));
    note_living(cluster, &out->view);
    Error usage_err;
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status =
        journal_usage(cluster->journal, JOURNAL_LANE_ADMIN, arena, &out->usage, &usage_err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    if (status != STATUS_OK)
        out->usage_error = arena_copy(arena, slice_from_cstr(usage_err.message));
    return STATUS_OK;
}

Status cluster_status(Cluster *cluster, Arena *arena, Slice *json, Error *err)
{
    StatusView status = {0};
    TRY(read_status(cluster, arena, &status, err));
    char id[GUID_LEN];
    guid_print(be64_get(cluster->cluster), be64_get(cluster->cluster + 8), id);
    JsonBuilder *b = ARENA_NEW(arena, JsonBuilder);
    json_build(b, arena);
    json_begin_object(b);
    add_text(b, "cluster", slice_make(id, sizeof(id)));
    add_text(b, "node", slice_from_cstr(cluster->node));
    add_number(b, "incarnation", atomic_load(&cluster->incarnation));
    add_bool(b, "leaseHolds", lease_holds(&cluster->lease));
    add_text(b, "engine", status.usage.engine);
    add_number(b, "journalBytes", status.usage.bytes);
    add_number(b, "journalBytesMax", cluster->journal_bytes_max);
    add_number(b, "journalEntries", status.usage.entries);
    add_number(b, "replicasWanted", cluster->replicas);
    add_number(b, "format", journal_format(cluster->journal));
    add_warnings(cluster, b, &status);
    add_nodes(cluster, b, &status.view);
    add_spaces(cluster, b, &status.view);
    status_add_moves(cluster, &status.view, b);
    json_key(b, SLICE("events"));
    add_events(cluster, b, arena);
    json_end(b);
    *json = json_print_arena(arena, json_built(b));
    return STATUS_OK;
}

Slice cluster_events_json(Cluster *cluster, Arena *arena)
{
    JsonBuilder *b = ARENA_NEW(arena, JsonBuilder);
    json_build(b, arena);
    add_events(cluster, b, arena);
    return json_print_arena(arena, json_built(b));
}
