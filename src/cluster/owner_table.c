/* owner_table.c - see owner_table_int.h. */
#include "cluster/owner_table_int.h"

#include "base/mem.h"

static void unref(OwnerTable *table)
{
    if (table == NULL || atomic_fetch_sub(&table->refs, 1) != 1)
        return;
    mem_free(table->nodes);
    mem_free(table->rows);
    mem_free(table);
}

static OwnerTable *new_table(size_t nodes, size_t rows)
{
    OwnerTable *table = MEM_NEW(OwnerTable);
    atomic_init(&table->refs, 1);
    table->nodes = MEM_NEW_ARRAY(OwnerNode, nodes + 1);
    table->rows = MEM_NEW_ARRAY(OwnerRow, rows + 1);
    return table;
}

void owners_init(Owners *owners)
{
    owners->newest = new_table(0, 0);
    for (size_t i = 0; i < OWNER_SHARDS; i++) {
        (void)pthread_mutex_init(&owners->shards[i].lock, NULL);
        atomic_fetch_add(&owners->newest->refs, 1);
        owners->shards[i].table = owners->newest;
    }
}

void owners_done(Owners *owners)
{
    for (size_t i = 0; i < OWNER_SHARDS; i++) {
        unref(owners->shards[i].table);
        (void)pthread_mutex_destroy(&owners->shards[i].lock);
    }
    unref(owners->newest);
    owners->newest = NULL;
}

static void publish(Owners *owners, OwnerTable *table)
{
    for (size_t i = 0; i < OWNER_SHARDS; i++) {
        OwnerShard *shard = &owners->shards[i];
        atomic_fetch_add(&table->refs, 1);
        (void)pthread_mutex_lock(&shard->lock);
        OwnerTable *old = shard->table;
        shard->table = table;
        (void)pthread_mutex_unlock(&shard->lock);
        unref(old);
    }
    unref(owners->newest);
    owners->newest = table;
}

/* The first row whose space is not smaller. */
static size_t place_of(const OwnerTable *table, StoreSpace space)
{
    size_t from = 0;
    size_t to = table->row_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (table->rows[middle].space < space)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static const OwnerRow *find_row(const OwnerTable *table, StoreSpace space)
{
    size_t i = place_of(table, space);
    return i < table->row_count && table->rows[i].space == space ? &table->rows[i] : NULL;
}

bool owners_find(Owners *owners, StoreSpace space, OwnerRow *row, OwnerNode *node)
{
    /* Threads are far apart in memory; the lowest bits of their handles are all the same. */
    uint64_t self = (uint64_t)pthread_self();
    OwnerShard *shard = &owners->shards[(self >> 12 ^ self >> 20) % OWNER_SHARDS];
    (void)pthread_mutex_lock(&shard->lock);
    const OwnerRow *found = find_row(shard->table, space);
    if (found != NULL) {
        *row = *found;
        *node = shard->table->nodes[found->node];
    }
    (void)pthread_mutex_unlock(&shard->lock);
    return found != NULL;
}

static void copy_text(char *out, size_t size, Slice text)
{
    Slice cut = slice_first(text, size - 1);
    if (cut.len > 0)
        memcpy(out, cut.ptr, cut.len);
    out[cut.len] = '\0';
}

static uint32_t number_of(OwnerTable *table, size_t capacity, Slice name, Slice address)
{
    for (size_t i = 0; i < table->node_count; i++) {
        if (slice_equal(slice_from_cstr(table->nodes[i].name), name))
            return (uint32_t)i;
    }
    ASSERT(table->node_count < capacity);
    OwnerNode *node = &table->nodes[table->node_count];
    copy_text(node->name, sizeof(node->name), name);
    copy_text(node->address, sizeof(node->address), address);
    return (uint32_t)table->node_count++;
}

static bool is_living(const JournalNode *nodes, size_t count, const JournalOwner *row)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(nodes[i].name, row->node))
            return nodes[i].state != NODE_DEAD && nodes[i].incarnation == row->incarnation;
    }
    return false;
}

void owners_replace(Owners *owners, const JournalNode *nodes, size_t node_count,
                    const JournalOwner *rows, size_t row_count,
                    bool (*keeps)(void *ctx, StoreSpace space), void *ctx)
{
    const OwnerTable *old = owners->newest;
    /* Owners may be nodes whose rows have gone. */
    size_t node_max = node_count + old->node_count + row_count;
    OwnerTable *table = new_table(node_max, row_count + old->row_count);
    for (size_t i = 0; i < node_count; i++)
        (void)number_of(table, node_max, nodes[i].name, nodes[i].address);
    size_t at = 0; /* in the old rows; both are in order of space */
    for (size_t i = 0; i <= row_count; i++) {
        StoreSpace space = i < row_count ? rows[i].space : UINT64_MAX;
        for (; at < old->row_count && old->rows[at].space < space; at++) {
            if (!keeps(ctx, old->rows[at].space))
                continue;
            OwnerRow kept = old->rows[at];
            const OwnerNode *node = &old->nodes[kept.node];
            kept.node = number_of(table, node_max, slice_from_cstr(node->name),
                                  slice_from_cstr(node->address));
            table->rows[table->row_count++] = kept;
        }
        if (i == row_count)
            break;
        OwnerRow row = {.space = space,
                        .epoch = rows[i].tail.epoch,
                        .incarnation = rows[i].incarnation,
                        .node = number_of(table, node_max, rows[i].node, SLICE_EMPTY),
                        .is_served = is_living(nodes, node_count, &rows[i])};
        if (at < old->row_count && old->rows[at].space == space) {
            const OwnerNode *node = &old->nodes[old->rows[at].node];
            bool is_older = row.epoch < old->rows[at].epoch;
            bool is_same = row.epoch == old->rows[at].epoch;
            if (is_older || (is_same && old->rows[at].is_local)) {
                row = old->rows[at];
                row.node = number_of(table, node_max, slice_from_cstr(node->name),
                                     slice_from_cstr(node->address));
            }
            at++;
        }
        table->rows[table->row_count++] = row;
    }
    publish(owners, table);
}

void owners_set(Owners *owners, const OwnerRow *row, Slice node)
{
    const OwnerTable *old = owners->newest;
    size_t i = place_of(old, row->space);
    bool exists = i < old->row_count && old->rows[i].space == row->space;
    if (exists && old->rows[i].epoch > row->epoch)
        return;
    OwnerTable *table = new_table(old->node_count + 1, old->row_count + 1);
    memcpy(table->nodes, old->nodes, old->node_count * sizeof(OwnerNode));
    table->node_count = old->node_count;
    memcpy(table->rows, old->rows, i * sizeof(OwnerRow));
    memcpy(&table->rows[i + 1], &old->rows[i + exists],
           (old->row_count - i - exists) * sizeof(OwnerRow));
    table->row_count = old->row_count + !exists;
    table->rows[i] = *row;
    table->rows[i].node = number_of(table, old->node_count + 1, node, SLICE_EMPTY);
    publish(owners, table);
}

static bool has_address(const OwnerTable *table, Slice name)
{
    for (size_t i = 0; i < table->node_count; i++) {
        if (slice_equal(slice_from_cstr(table->nodes[i].name), name))
            return table->nodes[i].address[0] != '\0';
    }
    return false;
}

bool owners_advance(Owners *owners, StoreSpace space, uint64_t epoch, Slice node)
{
    const OwnerRow *found = find_row(owners->newest, space);
    if (found == NULL || found->is_local || found->epoch >= epoch ||
        !has_address(owners->newest, node))
        return false;
    OwnerRow row = *found;
    row.epoch = epoch;
    row.incarnation = 0; /* unknown until the engine is read */
    row.is_served = true;
    owners_set(owners, &row, node);
    return true;
}
