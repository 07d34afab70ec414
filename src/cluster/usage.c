/* usage.c - nodes tell each other what their partitions hold.
 *
 *     answer = age "\n" row*
 *     row    = space " " items " " bytes " " bytes-ever " " charge " " is-one-key "\n"
 *
 * 'age' is how many microseconds ago the node has looked, and 'charge' what the partition's budget
 * gave in its busiest second of late. Each node looks before it asks the others, and keeps what it
 * has found as text: answers need no catalogue, which may be closed by then.
 *
 * An answer counts only for spaces that its sender owns, as far as this node knows, and its length
 * and numbers are bounded (catalog_note_usage): a broken node can say nonsense of its own
 * partitions, and of nothing else.
 */
#include "cluster/cluster_int.h"

#include "base/array.h"

enum { COLUMNS = 6, ROW_BYTES_MAX = COLUMNS * 21 };

/* What does not fit is not known to others. */
static void print_rows(Buf *out, const SpaceUsage *rows, size_t count)
{
    for (size_t i = 0; i < count && out->len + ROW_BYTES_MAX < USAGE_BYTES_MAX / 2; i++) {
        const SpaceUsage *row = &rows[i];
        buf_format(out, "%llu %llu %llu %llu %llu %d\n", (unsigned long long)row->space,
                   (unsigned long long)row->held.items, (unsigned long long)row->held.bytes,
                   (unsigned long long)row->held.bytes_ever, (unsigned long long)row->busiest,
                   row->is_one_key);
    }
}

void usage_look(Cluster *cluster)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_LARGE_BYTES);
    SpaceUsage *rows;
    size_t count;
    uint64_t now_us = cluster_now_us(cluster);
    if (!atomic_load(&cluster->has_catalog))
        return;
    cluster->catalog.list_usage(cluster->catalog.ctx, &arena, &rows, &count);
    AUTO(buf_done) Buf text;
    buf_init(&text, USAGE_BYTES_MAX);
    print_rows(&text, rows, count);
    (void)pthread_mutex_lock(&cluster->usage_lock);
    Buf before = cluster->usage;
    cluster->usage = text;
    cluster->usage_us = now_us;
    (void)pthread_mutex_unlock(&cluster->usage_lock);
    text = before;
}

int usage_answer(Cluster *cluster, Buf *out)
{
    (void)pthread_mutex_lock(&cluster->usage_lock);
    bool is_known = cluster->usage_us != 0;
    if (is_known) {
        buf_format(out, "%llu\n",
                   (unsigned long long)(cluster_now_us(cluster) - cluster->usage_us));
        buf_slice(out, buf_view(&cluster->usage));
    }
    (void)pthread_mutex_unlock(&cluster->usage_lock);
    if (is_known)
        return 200;
    buf_slice(out, SLICE("the node has just begun"));
    return 503;
}

static bool read_row(Slice line, SpaceUsage *out)
{
    uint64_t numbers[COLUMNS];
    for (size_t i = 0; i < COLUMNS; i++) {
        if (!slice_to_u64(slice_cut(&line, ' '), &numbers[i]))
            return false;
    }
    *out = (SpaceUsage){
        .space = numbers[0],
        .held = {.items = numbers[1], .bytes = numbers[2], .bytes_ever = numbers[3]},
        .busiest = numbers[4],
        .is_one_key = numbers[5] != 0,
    };
    return line.len == 0;
}

static bool owns(Cluster *cluster, Slice name, StoreSpace space)
{
    OwnerRow row;
    OwnerNode node;
    return owners_find(&cluster->owners, space, &row, &node) &&
           slice_equal(slice_from_cstr(node.name), name);
}

bool usage_note(Cluster *cluster, Slice name, Slice answer, uint64_t asked_us)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_LARGE_BYTES);
    SpaceUsage *rows = NULL;
    size_t count = 0;
    size_t capacity = 0;
    uint64_t age_us;
    if (!slice_to_u64(slice_cut(&answer, '\n'), &age_us))
        return false;
    while (answer.len > 0) {
        SpaceUsage row;
        if (!read_row(slice_cut(&answer, '\n'), &row))
            return false;
        if (!owns(cluster, name, row.space))
            continue;
        ARRAY_GROW_IN(&arena, rows, count, capacity, 64);
        rows[count++] = row;
    }
    uint64_t waited_us = cluster_now_us(cluster) - asked_us;
    age_us = age_us < UINT64_MAX - waited_us ? age_us + waited_us : UINT64_MAX;
    cluster->catalog.note_usage(cluster->catalog.ctx, rows, count, age_us);
    return true;
}

void usage_ask(Cluster *cluster, const JournalNode *node)
{
    AUTO(buf_done) Buf answer;
    buf_init(&answer, USAGE_BYTES_MAX);
    Error err;
    uint64_t asked_us = cluster_now_us(cluster);
    if (!atomic_load(&cluster->has_catalog))
        return;
    Status status = node_call(cluster, node->address, "usage", "", CALL_MS, &answer, &err);
    if (status == STATUS_OK && !usage_note(cluster, node->name, buf_view(&answer), asked_us))
        status = error_set(&err, STATUS_UNAVAILABLE, SUB_NONE, "the answer makes no sense");
    if (status != STATUS_OK)
        LOG_DEBUG(cluster->log, "cluster.usage_unknown", "node=%.*s message=\"%s\"",
                  SLICE_CUT(node->name, JOURNAL_NAME_MAX), err.message);
}
