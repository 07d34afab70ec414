/* group.c - the life of a group, and the memory that it has from the one before.
 *
 * A group begins on a writer's thread and ends on the commit thread, which all writes wait for. So
 * a small one is kept as it is when it ends, and emptied when the next one begins: what it has
 * from the heap goes back on a thread that takes as much. (store/txn.c does the same.)
 */
#include "base/array.h"
#include "base/mem.h"
#include "partition/group_int.h"

/* A group that holds more is not kept. */
enum { SPARE_ARENA_BYTES_MAX = ARENA_LARGE_BYTES, SPARE_CHANGES_MAX = 512 };

static bool is_small(const Group *group)
{
    return arena_used(&group->arena) <= SPARE_ARENA_BYTES_MAX &&
           arena_used(&group->keep) <= SPARE_ARENA_BYTES_MAX &&
           group->cache.capacity <= SPARE_CHANGES_MAX &&
           group->index.change_capacity <= SPARE_CHANGES_MAX;
}

static void group_free(Group *group)
{
    arena_done(&group->arena);
    arena_done(&group->keep);
    mem_free(group->cache.list);
    mem_free(group->index.changes);
    mem_free(group);
}

void group_end(Group *group)
{
    group_cut_changed(group, 0); /* there are some left if it has failed */
    schema_unref(group->schema);
    index_state_unref(group->index.state);
    if (!is_small(group) || !object_pool_give(&group->partition->host->groups, group))
        group_free(group);
}

/* Zeroes, except for memory that it can use again. */
static Group *group_take(PartitionHost *host)
{
    Group *group = object_pool_take(&host->groups);
    if (group == NULL) {
        group = MEM_NEW(Group);
        arena_init(&group->arena, ARENA_SMALL_BYTES);
        arena_init(&group->keep, ARENA_SMALL_BYTES);
        return group;
    }
    arena_reset(&group->arena);
    arena_reset(&group->keep);
    *group = (Group){
        .arena = group->arena,
        .keep = group->keep,
        .cache = {.list = group->cache.list, .capacity = group->cache.capacity},
        .index = {.changes = group->index.changes, .change_capacity = group->index.change_capacity},
    };
    return group;
}

Group *group_new(Partition *partition)
{
    Group *group = group_take(partition->host);
    group->partition = partition;
    group->schema = current_schema_ref(&partition->current);
    group->txn = store_txn_begin(partition->host->store);
    group->full.status = store_room(partition->host->store, &group->full);
    group->now_s = partition_host_now_s(partition->host);
    const WriterState *writer = &partition->writer;
    group->counters = writer->counters;
    group->index.state = index_state_ref(writer->index);
    group->index.position = writer->index_position;
    return group;
}

Group *group_new_private(Partition *partition, PartitionSchema *schema, const Epk *epk)
{
    Group *group = MEM_NEW(Group);
    arena_init(&group->arena, ARENA_SMALL_BYTES);
    arena_init(&group->keep, ARENA_SMALL_BYTES);
    group->is_private = true;
    group->partition = partition;
    group->schema = schema_ref(schema);
    group->txn = store_txn_begin(partition->host->store);
    group->full.status = store_room(partition->host->store, &group->full);
    group->now_s = partition_host_now_s(partition->host);
    group->counters = counters_published(&partition->published);
    /* Before the first item is read (I6); another purge of the EPK waits for the lock. */
    Purge *purge = ARENA_NEW(&group->keep, Purge);
    *purge = (Purge){*epk, purge_list_find(&partition->purges, epk_slice(epk))};
    group->purges = (PurgeChanges){.added = purge, .added_count = 1};
    return group;
}

void group_free_private(Group *group)
{
    if (group == NULL)
        return;
    ASSERT(group->is_private);
    store_txn_abort(group->txn);
    schema_unref(group->schema);
    group_free(group);
}

static void take_index(WriterState *writer, const GroupIndex *index)
{
    IndexState *old = writer->index;
    writer->index = index_state_ref(index->state);
    writer->index_position = index->position;
    writer->index_is_stored = true;
    index_state_unref(old);
}

void group_take_effect(Group *group)
{
    Partition *partition = group->partition;
    WriterState *writer = &partition->writer;
    ASSERT(group->counters.lsn >= writer->counters.lsn); /* I2 */
    /* First of all: a reader that sees the new LSN must not see an older version of an item (I10).
     */
    group_tell_cache(group);
    writer->counters = group->counters;
    if (group->upkeep != NULL)
        writer->upkeep = *group->upkeep;
    if (group->baselines != NULL)
        baselines_take_effect(partition, group->baselines);
    bool is_restarted = false;
    purge_list_change(&partition->purges, &group->purges, &is_restarted);
    if (is_restarted)
        writer->upkeep.purge_position.len = 0;
    take_index(writer, &group->index);
    counters_publish(&partition->published, &writer->counters);
    partition_note_history(partition, group);
}

void groups_free(PartitionHost *host)
{
    Group *group;
    while ((group = object_pool_take(&host->groups)) != NULL)
        group_free(group);
}

/* ---- changes for the cache ---- */

/* Only the first changes of a group carry the new version of the item: that bounds the search for
 * versions that a later change replaces. */
enum { RENEWED_MAX = 64 };

/* A version that was changed again in the same group must not be seen: in an atomic batch it never
 * existed (I10). */
static void supersede(Group *group, uint64_t hash)
{
    size_t count = group->cache.count < RENEWED_MAX ? group->cache.count : RENEWED_MAX;
    for (size_t i = 0; i < count; i++) {
        CacheChange *change = &group->cache.list[i];
        if (UNLIKELY(change->hash == hash))
            cached_item_free(TAKE(change->item));
    }
}

void group_note_changed(Group *group, const Key *key, Slice bytes)
{
    const Partition *partition = group->partition;
    ItemCache *cache = partition->host->cache;
    if (cache == NULL || group->is_private)
        return;
    uint64_t hash = item_cache_hash(cache, partition->cache_name, key_slice(key));
    supersede(group, hash);
    ARRAY_GROW(group->cache.list, group->cache.count, group->cache.capacity, 64);
    CachedItem *item = NULL;
    if (bytes.len > 0 && group->cache.count < RENEWED_MAX)
        item = item_cache_prepare(cache, hash, partition->cache_name, key_slice(key), bytes);
    group->cache.list[group->cache.count++] = (CacheChange){hash, item};
}

void group_cut_changed(Group *group, size_t count)
{
    ASSERT(count <= group->cache.count);
    while (group->cache.count > count)
        cached_item_free(group->cache.list[--group->cache.count].item);
}

void group_tell_cache(Group *group)
{
    ItemCache *cache = group->partition->host->cache;
    for (size_t i = 0; i < group->cache.count; i++) {
        CacheChange *change = &group->cache.list[i];
        if (change->item != NULL)
            item_cache_renew(cache, TAKE(change->item));
        else
            item_cache_forget(cache, change->hash);
    }
}
