/* status_moves.c - hand-overs under way, of all nodes: each knows its own.
 *
 *     moves = [ { "space": n, "from": node, "to": node, "reason": text, "stage": text }, ... ]
 *
 * "waiting" is for a copy that is near enough, "handing over" for the engine. The node that is
 * asked for the status asks the other living ones, and names those that have not answered: the
 * status must be there also when a node hangs. What they send is checked before it is shown.
 */
#include "cluster/cluster_int.h"

/* Of one node: its orders, and the spaces that it yields, of which there are few at a time. */
enum { NODE_MOVES_MAX = 1000, ANSWER_BYTES_MAX = 512 << 10, TEXT_MAX = 200 };

static void add_text(JsonBuilder *b, const char *key, Slice value)
{
    json_key(b, slice_from_cstr(key));
    json_add_string(b, value);
}

static void add_move(const Cluster *cluster, JsonBuilder *b, StoreSpace space, const char *to,
                     HandOverReason reason, const char *stage)
{
    json_begin_object(b);
    json_key(b, SLICE("space"));
    json_add_i64(b, (int64_t)space);
    add_text(b, "from", slice_from_cstr(cluster->node));
    add_text(b, "to", slice_from_cstr(to));
    add_text(b, "reason", slice_from_cstr(hand_over_reason_text(reason)));
    add_text(b, "stage", slice_from_cstr(stage));
    json_end(b);
}

/* What this node gives away. */
static void add_own(Cluster *cluster, JsonBuilder *b)
{
    size_t count = 0;
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < cluster->order_count; i++) {
        const SpaceOrder *order = &cluster->orders[i];
        const SpaceSlot *slot = space_table_find(&cluster->spaces, order->space);
        if (slot == NULL || slot->state != SPACE_STATE_YIELDING)
            add_move(cluster, b, order->space, order->node, order->reason, "waiting");
    }
    for (size_t i = 0; i < cluster->spaces.count && count < NODE_MOVES_MAX - ORDERS_MAX; i++) {
        const SpaceSlot *slot = &cluster->spaces.items[i];
        if (slot->state != SPACE_STATE_YIELDING || !slot->is_handing)
            continue;
        add_move(cluster, b, slot->space, slot->to, slot->to_reason, "handing over");
        count++;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
}

int moves_answer(Cluster *cluster, Buf *out)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    JsonBuilder b;
    json_build(&b, &arena);
    json_begin_array(&b);
    add_own(cluster, &b);
    json_end(&b);
    buf_slice(out, json_print_arena(&arena, json_built(&b)));
    return 200;
}

static bool get_text(Json object, const char *name, Slice *out)
{
    Json value = json_get(object, slice_from_cstr(name));
    *out = json_is(value, JSON_STRING) ? json_string(value) : SLICE_EMPTY;
    return out->len > 0 && out->len <= TEXT_MAX;
}

/* False if it is not a list of moves at all. 'name' is who has sent it, whatever it says. */
static bool add_told(JsonBuilder *b, Slice name, Slice text)
{
    Json moves;
    Error ignored;
    if (json_parse(b->arena, text, &moves, &ignored) != STATUS_OK || !json_is(moves, JSON_ARRAY) ||
        json_count(moves) > NODE_MOVES_MAX)
        return false;
    for (JsonIter it = json_iter(moves); json_next(&it);) {
        int64_t space = 0;
        Slice to, reason, stage;
        if (!json_to_i64(json_get(it.value, SLICE("space")), &space) || space <= 0 ||
            !get_text(it.value, "to", &to) || !get_text(it.value, "reason", &reason) ||
            !get_text(it.value, "stage", &stage))
            continue;
        json_begin_object(b);
        json_key(b, SLICE("space"));
        json_add_i64(b, space);
        add_text(b, "from", name);
        add_text(b, "to", to);
        add_text(b, "reason", reason);
        add_text(b, "stage", stage);
        json_end(b);
    }
    return true;
}

static bool add_others(Cluster *cluster, JsonBuilder *b, const JournalNode *node)
{
    AUTO(buf_done) Buf answer;
    buf_init(&answer, ANSWER_BYTES_MAX);
    Error err;
    if (node_call(cluster, node->address, "moves", "", CALL_MS, &answer, &err) == STATUS_OK)
        return add_told(b, node->name, arena_copy(b->arena, buf_view(&answer)));
    LOG_DEBUG(cluster->log, "cluster.moves_unknown", "message=\"%s\"", err.message);
    return false;
}

void status_add_moves(Cluster *cluster, const ClusterView *view, JsonBuilder *b)
{
    bool *has_told = ARENA_NEW_ARRAY(b->arena, bool, view->node_count + 1);
    size_t self = view_node(view, slice_from_cstr(cluster->node));
    json_key(b, SLICE("moves"));
    json_begin_array(b);
    add_own(cluster, b);
    for (size_t i = 0; i < view->node_count; i++)
        has_told[i] =
            i == self || !view_is_living(view, i) || add_others(cluster, b, &view->nodes[i]);
    json_end(b);
    json_key(b, SLICE("movesMissing"));
    json_begin_array(b);
    for (size_t i = 0; i < view->node_count; i++) {
        if (!has_told[i])
            json_add_string(b, view->nodes[i].name);
    }
    json_end(b);
}
