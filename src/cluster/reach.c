/* reach.c - which nodes this one cannot reach; it says so with its renewals. Those that it reaches
 * are asked what their partitions hold.
 *
 * Each look also tells the others of the newest timeline of the engine that this node has met, and
 * its own answer tells it of theirs.
 */
#include "cluster/cluster_int.h"

static bool reaches(Cluster *cluster, Slice address)
{
    AUTO(buf_done) Buf answer;
    buf_init(&answer, 64);
    Error err;
    return node_call(cluster, address, "ping", "", CALL_MS, &answer, &err) == STATUS_OK;
}

void reach_step(Cluster *cluster)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    const JournalNode *nodes = NULL;
    size_t count = 0;
    Error err;
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status =
        journal_nodes(cluster->journal, JOURNAL_LANE_ADMIN, &arena, &nodes, &count, &err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    if (status != STATUS_OK)
        return;
    usage_look(cluster);
    AUTO(buf_done) Buf names;
    buf_init(&names, JOURNAL_UNREACHABLE_MAX - 1);
    for (size_t i = 0; i < count && !atomic_load(&cluster->is_stopping); i++) {
        const JournalNode *node = &nodes[i];
        if (node->state == NODE_DEAD || node->catalog == 0 ||
            slice_equal(node->name, slice_from_cstr(cluster->node)))
            continue;
        if (reaches(cluster, node->address)) {
            usage_ask(cluster, node);
            continue;
        }
        if (names.len + node->name.len + 1 >= JOURNAL_UNREACHABLE_MAX - 1)
            continue;
        if (names.len > 0)
            buf_byte(&names, ',');
        buf_slice(&names, node->name);
    }
    (void)pthread_mutex_lock(&cluster->lock);
    memset(cluster->unreachable, 0, sizeof(cluster->unreachable));
    if (names.len > 0)
        memcpy(cluster->unreachable, names.ptr, names.len);
    (void)pthread_mutex_unlock(&cluster->lock);
}
