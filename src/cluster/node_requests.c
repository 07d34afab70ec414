/* node_requests.c - what other nodes ask of this one.
 *
 *     path    = "/_node/" word "?" name "=" value ("&" name "=" value)*
 *     poke    catalog=1: look for new entries; owners=1: read the owners; space=N, epoch=N,
 *             reason=N: the space was given to this node, and why (hand_over_reasons.def);
 *             fence=N: since when the sender serves it no more, in microseconds before it sent this
 *     follow  space=N: keep a copy of the space for a while
 *     place   space=N: how far this node's copy is; the answer is a number
 *     move    space=N, node=NAME: give the space to the node
 *     seed    space=N, session=S, piece=P: a piece of a copy (seed_sessions.c)
 *     ping    nothing: whether this node is reached
 *     usage   nothing: what this node's partitions hold (usage.c)
 *     moves   nothing: what this node gives away (status_moves.c)
 *
 * The sender has proved that it is a node of this cluster, but may be of another version, or
 * broken: whatever it sends gets an answer. Numbers are decimal, names are those of nodes, and
 * nothing is encoded.
 */
#include "cluster/cluster_int.h"

Slice query_value(Slice query, Slice name)
{
    while (query.len > 0) {
        Slice pair = slice_cut(&query, '&');
        Slice key = slice_cut(&pair, '=');
        if (slice_equal(key, name))
            return pair;
    }
    return SLICE_EMPTY;
}

static int say(Buf *out, int status, const char *text)
{
    buf_slice(out, slice_from_cstr(text));
    return status;
}

static void meet_engine(Cluster *cluster, Slice query)
{
    uint64_t system;
    uint64_t timeline;
    if (slice_to_u64(query_value(query, SLICE("system")), &system) &&
        slice_to_u64(query_value(query, SLICE("timeline")), &timeline) && timeline <= UINT32_MAX)
        journal_meet(cluster->journal, (JournalEngineId){system, (uint32_t)timeline});
}

/* Keeps a space that this node has or is about to have: a space that nobody knows is not noted. */
static bool pin_space(Cluster *cluster, StoreSpace space)
{
    uint64_t until_us = cluster_now_us(cluster) + PIN_US;
    OwnerRow row;
    OwnerNode node;
    bool is_known = owners_find(&cluster->owners, space, &row, &node);
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_find(&cluster->spaces, space);
    if (slot == NULL && is_known)
        slot = space_table_get(&cluster->spaces, space);
    if (slot != NULL)
        slot->pinned_us = until_us;
    (void)pthread_mutex_unlock(&cluster->lock);
    return slot != NULL;
}

static HandOverReason reason_of(Slice query)
{
    uint64_t number;
    bool is_known =
        slice_to_u64(query_value(query, SLICE("reason")), &number) && number < REASON_UNKNOWN;
    return is_known ? (HandOverReason)number : REASON_UNKNOWN;
}

/* What was placed here on purpose is not spread for a while. This node may have found the space in
 * the engine before, and serve it already. */
static void note_given(Cluster *cluster, StoreSpace space, uint64_t epoch, HandOverReason reason,
                       uint64_t fence_us)
{
    uint64_t now_us = cluster_now_us(cluster);
    uint64_t since_us = now_us > fence_us ? now_us - fence_us : 0;
    uint64_t open_us = 0;
    if (reason == REASON_OPERATOR || reason == REASON_SPLIT_OR_MERGE)
        (void)pin_space(cluster, space);
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_find(&cluster->spaces, space);
    if (slot != NULL) {
        slot->given_epoch = epoch;
        slot->given_reason = reason;
        slot->given_us = since_us;
        open_us = slot->state == SPACE_STATE_SERVING && slot->epoch == epoch ? slot->open_us : 0;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    if (open_us != 0)
        cluster_event_fence(cluster, space, epoch, open_us > since_us ? open_us - since_us : 0);
}

static int answer_poke(Cluster *cluster, Slice query, Buf *out)
{
    bool has_catalog = query_value(query, SLICE("catalog")).len > 0;
    if (has_catalog && atomic_load(&cluster->has_store)) {
        cluster->store.poke(cluster->store.ctx);
        waker_wake(&cluster->catalog_waker);
    }
    uint64_t space;
    uint64_t epoch;
    if (slice_to_u64(query_value(query, SLICE("space")), &space) && space != 0 &&
        slice_to_u64(query_value(query, SLICE("epoch")), &epoch)) {
        uint64_t fence_us = 0; /* of an older program */
        (void)slice_to_u64(query_value(query, SLICE("fence")), &fence_us);
        note_given(cluster, space, epoch, reason_of(query), fence_us);
    }
    if (query_value(query, SLICE("owners")).len > 0 || query_value(query, SLICE("space")).len > 0)
        cluster_refresh_owners(cluster);
    return say(out, 200, "ok");
}

static int answer_follow(Cluster *cluster, StoreSpace space, Buf *out)
{
    bool is_known = pin_space(cluster, space);
    cluster_refresh_owners(cluster); /* the manager follows it */
    return is_known ? say(out, 200, "ok") : say(out, 404, "no such space is known here");
}

static int answer_place(Cluster *cluster, StoreSpace space, Buf *out)
{
    cluster->store.poke(cluster->store.ctx);
    ReplicaPlace place = cluster->store.place(cluster->store.ctx, space);
    if (place.role == SPACE_ABSENT)
        return say(out, 404, "there is no copy here");
    buf_u64(out, place.applied.seq);
    return 200;
}

static int answer_error(const Error *err, Buf *out)
{
    buf_slice(out, slice_from_cstr(err->message));
    return status_http(err->status);
}

static int answer_move(Cluster *cluster, StoreSpace space, Slice query, Buf *out)
{
    Slice node = query_value(query, SLICE("node"));
    if (node.len == 0 || node.len > JOURNAL_NAME_MAX)
        return say(out, 400, "expected the name of a node");
    if (!cluster_serves(cluster, space))
        return say(out, 421, "the space is not served here");
    Error err;
    if (cluster_order(cluster, space, node, reason_of(query), &err) != STATUS_OK)
        return answer_error(&err, out);
    return say(out, 200, "ok");
}

static int answer_seed(Cluster *cluster, StoreSpace space, Slice query, Buf *out)
{
    uint64_t session;
    uint64_t piece;
    if (!slice_to_u64(query_value(query, SLICE("session")), &session) ||
        !slice_to_u64(query_value(query, SLICE("piece")), &piece))
        return say(out, 400, "expected a session and a piece");
    Error err;
    if (seed_sessions_answer(cluster->seeds, space, session, piece, out, &err) != STATUS_OK) {
        buf_reset(out);
        return answer_error(&err, out);
    }
    return 200;
}

/* The word and the query of a path. */
static Slice split_path(Slice path, Slice *query)
{
    Slice rest = slice_from(path, sizeof(CLUSTER_PATH) - 1);
    Slice word = slice_cut(&rest, '?');
    *query = rest;
    return word;
}

bool node_request_waits(Slice path)
{
    Slice query;
    Slice word = split_path(path, &query);
    return slice_equal(word, SLICE("seed")) || slice_equal(word, SLICE("usage"));
}

int node_answer(Cluster *cluster, Slice path, Buf *out)
{
    Slice query;
    if (!slice_starts_with(path, SLICE(CLUSTER_PATH)))
        return say(out, 404, "no such path");
    Slice word = split_path(path, &query);
    meet_engine(cluster, query);
    if (slice_equal(word, SLICE("ping")))
        return say(out, 200, "ok");
    if (slice_equal(word, SLICE("poke")))
        return answer_poke(cluster, query, out);
    if (slice_equal(word, SLICE("usage")))
        return usage_answer(cluster, out);
    if (slice_equal(word, SLICE("moves")))
        return moves_answer(cluster, out);
    uint64_t space;
    bool is_known = slice_equal(word, SLICE("follow")) || slice_equal(word, SLICE("place")) ||
                    slice_equal(word, SLICE("move")) || slice_equal(word, SLICE("seed"));
    if (!is_known)
        return say(out, 404, "no such request");
    if (!slice_to_u64(query_value(query, SLICE("space")), &space) || space == 0)
        return say(out, 400, "expected a space");
    if (!atomic_load(&cluster->has_store))
        return say(out, 503, "the node has just begun");
    if (slice_equal(word, SLICE("follow")))
        return answer_follow(cluster, space, out);
    if (slice_equal(word, SLICE("place")))
        return answer_place(cluster, space, out);
    if (slice_equal(word, SLICE("move")))
        return answer_move(cluster, space, query, out);
    return answer_seed(cluster, space, query, out);
}
