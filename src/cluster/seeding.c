/* seeding.c - copying a space from another node, because the log does not reach back far enough.
 *
 * The row of this replica comes first: from then on nothing is trimmed that is appended after the
 * snapshot of the source was taken. If the log is whole, and no node has a copy, the copy begins
 * empty at the beginning of the log.
 *
 * The row keeps the log from being trimmed, so it says how many pieces have come, and is there only
 * while an attempt goes on: a copy that cannot be made must not fill the engine. Attempts that fail
 * are repeated after growing pauses.
 */
#include "cluster/cluster_int.h"

#include "base/encoding.h"

#include <stdio.h>

enum {
    HEAD_BYTES = 9,
    SEED_CALL_MS = 10000,
    TRIES_MAX = 3,
    ANSWER_BYTES_MAX = 16 << 20,
    PROGRESS_US = 10000000,  /* between two reports of the pieces; well below STUCK_US */
    RETRY_US_MAX = 30000000, /* the longest pause between two attempts */
};

static StoreSpace next_seeding(Cluster *cluster)
{
    StoreSpace space = 0;
    uint64_t now_us = cluster_now_us(cluster);
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < cluster->spaces.count && space == 0; i++) {
        const SpaceSlot *slot = &cluster->spaces.items[i];
        if (slot->state == SPACE_STATE_SEEDING && slot->retry_us <= now_us)
            space = slot->space;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    return space;
}

/* Makes the row, or says how many pieces have come. */
static Status report_pieces(Cluster *cluster, StoreSpace space, uint64_t pieces, Error *err)
{
    JournalReplica row = {.space = space,
                          .node = slice_from_cstr(cluster->node),
                          .state = REPLICA_SEEDING,
                          .applied = pieces};
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status = journal_report(cluster->journal, JOURNAL_LANE_ADMIN, &row, 1, err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    return status;
}

/* One piece; asked for again if no answer comes. */
static Status read_piece(Cluster *cluster, Slice address, StoreSpace space, uint64_t *session,
                         uint64_t piece, Buf *answer, bool *is_last, Error *err)
{
    char query[128];
    (void)snprintf(query, sizeof(query), "space=%llu&session=%llu&piece=%llu",
                   (unsigned long long)space, (unsigned long long)*session,
                   (unsigned long long)piece);
    Status status = STATUS_OK;
    int tries = *session == 0 ? 1 : TRIES_MAX;
    for (int i = 0; i < tries; i++) {
        status = node_call(cluster, address, "seed", query, SEED_CALL_MS, answer, err);
        if (status != STATUS_UNAVAILABLE)
            break;
    }
    TRY(status);
    Slice text = buf_view(answer);
    if (text.len < HEAD_BYTES || (uint8_t)text.ptr[8] > 1)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "'%.*s' sent no piece of a copy",
                         SLICE_CUT(address, 100));
    *session = be64_get(text.ptr);
    *is_last = text.ptr[8] == 1;
    return STATUS_OK;
}

/* Opening the target drops the copy that is there. It may be the last one, although the log has
 * another history, so that waits until the other node has sent the beginning of its own. */
static Status copy_pieces(Cluster *cluster, Slice address, StoreSpace space, SeedTarget **target,
                          Error *err)
{
    AUTO(buf_done) Buf answer;
    buf_init(&answer, ANSWER_BYTES_MAX);
    uint64_t session = 0;
    bool is_last = false;
    uint64_t reported_us = cluster_now_us(cluster);
    for (uint64_t piece = 0; !is_last; piece++) {
        if (atomic_load(&cluster->is_stopping))
            return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the node is being stopped");
        TRY(read_piece(cluster, address, space, &session, piece, &answer, &is_last, err));
        if (*target == NULL)
            TRY(cluster->store.target_open(cluster->store.ctx, space, target, err));
        TRY(cluster->store.target_put(*target, slice_from(buf_view(&answer), HEAD_BYTES), err));
        if (cluster_now_us(cluster) - reported_us < PROGRESS_US)
            continue;
        Error ignored; /* the next report says the same and more */
        (void)report_pieces(cluster, space, piece + 1, &ignored);
        reported_us = cluster_now_us(cluster);
    }
    return STATUS_OK;
}

static Status seed_from(Cluster *cluster, Slice address, StoreSpace space, Error *err)
{
    SeedTarget *target = NULL;
    Status status = copy_pieces(cluster, address, space, &target, err);
    if (status == STATUS_OK)
        status = cluster->store.target_finish(target, err);
    cluster->store.target_close(target);
    return status;
}

/* Whether the node may have a copy that is of use. */
static bool may_be_source(Cluster *cluster, const ClusterView *view, const JournalOwner *owner,
                          size_t node)
{
    Slice name = view->nodes[node].name;
    if (!view_is_living(view, node) || slice_equal(name, slice_from_cstr(cluster->node)))
        return false;
    const JournalReplica *replica = view_replica(view, owner->space, name);
    return slice_equal(name, owner->node) ||
           (replica != NULL && replica->state == REPLICA_FOLLOWING &&
            replica->applied >= owner->base);
}

/* Asks the nodes that may have a copy, the owner first. STATUS_NOT_FOUND if none has one. */
static Status seed_from_any(Cluster *cluster, const ClusterView *view, const JournalOwner *owner,
                            Error *err)
{
    Status status = error_set(err, STATUS_NOT_FOUND, SUB_NONE, "no living node has a copy");
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < view->node_count && status == STATUS_NOT_FOUND; i++) {
            bool is_owner = slice_equal(view->nodes[i].name, owner->node);
            if (is_owner == (round == 0) && may_be_source(cluster, view, owner, i))
                status = seed_from(cluster, view->nodes[i].address, owner->space, err);
        }
    }
    return status;
}

static Status seed_space(Cluster *cluster, StoreSpace space, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_LARGE_BYTES);
    ClusterView view;
    uint64_t begun_us;
    /* An old copy gives way to the new one. */
    if (cluster->store.place(cluster->store.ctx, space).applied.seq == 0)
        TRY(cluster->store.room(cluster->store.ctx, err));
    TRY(report_pieces(cluster, space, 0, err));
    TRY(cluster_read_view(cluster, true, &arena, &view, &begun_us, err));
    const JournalOwner *owner = view_owner(&view, space);
    if (owner == NULL)
        return STATUS_OK; /* dropped: the manager forgets it */
    Status status = seed_from_any(cluster, &view, owner, err);
    if (status != STATUS_NOT_FOUND || owner->base > 0)
        return status;
    TRY(cluster->store.forget(cluster->store.ctx, space, err));
    cluster->store.follow(cluster->store.ctx, space);
    return STATUS_OK;
}

/* The store says that the log has another history, by having no copy any more: refuses the space,
 * unless an operator has accepted the log. */
static bool is_refused(Cluster *cluster, StoreSpace space)
{
    bool has_copy = cluster->store.place(cluster->store.ctx, space).role != SPACE_ABSENT;
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, space);
    bool refuses = !has_copy && !slot->accepts_log;
    if (refuses)
        space_enter(slot, SPACE_STATE_REFUSED);
    else
        slot->accepts_log = true; /* from here on the copy is being replaced */
    (void)pthread_mutex_unlock(&cluster->lock);
    if (refuses)
        cluster_event(cluster, "engineLost", space, 0, slice_from_cstr(cluster->node),
                      "this copy has writes that the engine has not: run `orrery cluster recover`");
    return refuses;
}

/* Before the next attempt. That no node can give a copy says nothing of how that one will end. */
static uint64_t pause_us(SpaceSlot *slot, Status status)
{
    uint64_t pause = RETRY_US;
    if (status == STATUS_NOT_FOUND)
        return pause;
    for (uint32_t i = 0; i < slot->seed_failures && pause < RETRY_US_MAX; i++)
        pause *= 2;
    slot->seed_failures++;
    return pause < RETRY_US_MAX ? pause : RETRY_US_MAX;
}

static void withdraw_row(Cluster *cluster, StoreSpace space)
{
    Error err;
    if (expel_own_copy(cluster, space, &err) != STATUS_OK)
        LOG_INFO(cluster->log, "cluster.expel_waits", "space=%llu message=\"%s\"",
                 (unsigned long long)space, err.message);
}

bool seed_step(Cluster *cluster)
{
    StoreSpace space = next_seeding(cluster);
    if (space == 0 || !atomic_load(&cluster->has_store))
        return false;
    if (is_refused(cluster, space))
        return true;
    Error err;
    Status status = seed_space(cluster, space, &err);
    if (status != STATUS_OK)
        withdraw_row(cluster, space);
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_get(&cluster->spaces, space);
    if (status == STATUS_OK) {
        space_enter(slot, SPACE_STATE_FOLLOWING);
        slot->accepts_log = false;
        slot->seed_failures = 0;
    } else {
        slot->retry_us = cluster_now_us(cluster) + pause_us(slot, status);
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    cluster_event(cluster, status == STATUS_OK ? "seeded" : "seedFailed", space, 0,
                  slice_from_cstr(cluster->node), "%s", status == STATUS_OK ? "" : err.message);
    if (status == STATUS_OK)
        cluster_wake_manager(cluster);
    return true;
}
