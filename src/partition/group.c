/* group.c - the life of a group, and the memory that it has from the one before.
 *
 * A group begins on a writer's thread and ends on the commit thread, which all writes wait for. So
 * a small one is kept as it is when it ends, and emptied by who begins the next one: what it has
 * from the heap goes back on a thread that takes as much. (store/txn.c does the same.)
 */
#include "base/mem.h"
#include "partition/partition_int.h"

/* A group that holds more is not kept. */
enum { SPARE_ARENA_BYTES_MAX = ARENA_LARGE_BYTES, SPARE_CHANGES_MAX = 512 };

static bool is_small(const Group *group)
{
    return arena_used(&group->arena) <= SPARE_ARENA_BYTES_MAX &&
           arena_used(&group->keep) <= SPARE_ARENA_BYTES_MAX &&
           group->notes.capacity <= SPARE_ARENA_BYTES_MAX &&
           group->changed_capacity <= SPARE_CHANGES_MAX &&
           group->index_change_capacity <= SPARE_CHANGES_MAX;
}

static void group_free(Group *group)
{
    arena_done(&group->arena);
    arena_done(&group->keep);
    buf_done(&group->notes);
    mem_free(group->changed);
    mem_free(group->index_changes);
    mem_free(group);
}

void group_end(Group *group)
{
    group_cut_changed(group, 0); /* there is something left if it has failed */
    schema_unref(group->schema);
    index_state_unref(group->index);
    if (!is_small(group) || !spares_give(&group->partition->host->groups, group))
        group_free(group);
}

/* All of it is zero, but for memory to use. */
static Group *group_take(PartitionHost *host)
{
    Group *group = spares_take(&host->groups);
    if (group == NULL) {
        group = MEM_NEW(Group);
        arena_init(&group->arena, ARENA_SMALL_BYTES);
        arena_init(&group->keep, ARENA_SMALL_BYTES);
        buf_init(&group->notes, MOVE_NOTES_BYTES_MAX);
        return group;
    }
    arena_reset(&group->arena);
    arena_reset(&group->keep);
    buf_reset(&group->notes);
    *group = (Group){
        .arena = group->arena,
        .keep = group->keep,
        .notes = group->notes,
        .changed = group->changed,
        .changed_capacity = group->changed_capacity,
        .index_changes = group->index_changes,
        .index_change_capacity = group->index_change_capacity,
    };
    return group;
}

Group *group_new(Partition *partition)
{
    Group *group = group_take(partition->host);
    group->partition = partition;
    group->schema = partition_schema(partition);
    group->txn = store_txn_begin(partition->host->store);
    group->full.status = store_room(partition->host->store, &group->full);
    group->now_s = partition_host_now_s(partition->host);
    group->counters = partition->counters;
    group->index = index_state_ref(partition->index);
    group->index_position = partition->index_position;
    return group;
}

void groups_free(PartitionHost *host)
{
    Group *group;
    while ((group = spares_take(&host->groups)) != NULL)
        group_free(group);
}

/* ---- what the cache hears of ---- */

/* Only so many changes of a group say what the item becomes: that bounds the search for those that
 * a later change makes untrue. */
enum { RENEWED_MAX = 64 };

/* Nobody may see what was written and changed again in the same group: in an atomic batch it never
 * was. */
static void supersede(Group *group, uint64_t hash)
{
    size_t count = group->changed_count < RENEWED_MAX ? group->changed_count : RENEWED_MAX;
    for (size_t i = 0; i < count; i++) {
        CacheChange *change = &group->changed[i];
        if (UNLIKELY(change->hash == hash))
            cached_item_free(TAKE(change->item));
    }
}

void group_note_changed(Group *group, const Key *key, Slice bytes)
{
    const Partition *partition = group->partition;
    ItemCache *cache = partition->host->cache;
    if (cache == NULL)
        return;
    uint64_t hash = item_cache_hash(cache, partition->space, key_slice(key));
    supersede(group, hash);
    if (group->changed_count == group->changed_capacity) {
        group->changed_capacity = group->changed_capacity == 0 ? 64 : group->changed_capacity * 2;
        group->changed = mem_realloc(group->changed, group->changed_capacity * sizeof(CacheChange));
    }
    CachedItem *item = NULL;
    if (bytes.len > 0 && group->changed_count < RENEWED_MAX)
        item = item_cache_prepare(cache, hash, partition->space, key_slice(key), bytes);
    group->changed[group->changed_count++] = (CacheChange){hash, item};
}

void group_cut_changed(Group *group, size_t count)
{
    while (group->changed_count > count)
        cached_item_free(group->changed[--group->changed_count].item);
}

void group_tell_cache(Group *group)
{
    ItemCache *cache = group->partition->host->cache;
    for (size_t i = 0; i < group->changed_count; i++) {
        CacheChange *change = &group->changed[i];
        if (change->item != NULL)
            item_cache_renew(cache, TAKE(change->item));
        else
            item_cache_forget(cache, change->hash);
    }
}
