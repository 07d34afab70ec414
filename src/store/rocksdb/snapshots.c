/* snapshots.c - snapshots, and which of them are kept for the next reader.
 *
 * Opening a snapshot and an iterator and closing them is a good part of a look-up that finds one
 * item: RocksDB's lock, an iterator for each level and each file, the index blocks. Between two
 * writes the result is the same. So a snapshot that is closed is kept, with an iterator over
 * groups, and handed out again while it still is the newest state: each write begins a new turn,
 * and only a snapshot of the present turn is taken or kept (I8, R10).
 *
 * Snapshots that are kept hold files and memory that RocksDB would free otherwise. So each turn
 * frees what earlier ones have kept, and there is a new turn at least every second
 * (snapshots_turn).
 */
#include "base/mem.h"
#include "store/rocksdb/rocksdb_int.h"

static rocksdb_readoptions_t *options_new(StoreRead read, const rocksdb_snapshot_t *rocks)
{
    rocksdb_readoptions_t *options = rocksdb_read_options(read);
    rocksdb_readoptions_set_snapshot(options, rocks);
    return options;
}

static RocksSnapshot *snapshot_new(Snapshots *snapshots, StoreRead read)
{
    RocksSnapshot *snapshot = MEM_NEW(RocksSnapshot);
    snapshot->owner = snapshots;
    snapshot->snapshot.read = read;
    /* The turn is read first: it does no harm if the snapshot is newer than its turn. */
    snapshot->turn = atomic_load(&snapshots->turn);
    /* Counted before it exists: see rocks_drop. */
    atomic_fetch_add(&snapshots->count, 1);
    snapshot->rocks = rocksdb_create_snapshot(snapshots->db);
    snapshot->read_memory = options_new(STORE_READ_MEMORY, snapshot->rocks);
    if (read == STORE_READ_ANY) /* otherwise it never reads anything else */
        snapshot->read_any = options_new(STORE_READ_ANY, snapshot->rocks);
    return snapshot;
}

static void groups_free(RocksGroups *groups)
{
    if (groups == NULL)
        return;
    rocksdb_iter_destroy(groups->iterator);
    rocksdb_readoptions_destroy(groups->options);
    mem_free(groups);
}

static void snapshot_free(RocksSnapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    Snapshots *snapshots = snapshot->owner;
    groups_free(atomic_load(&snapshot->groups));
    if (snapshot->read_any != NULL)
        rocksdb_readoptions_destroy(snapshot->read_any);
    rocksdb_readoptions_destroy(snapshot->read_memory);
    rocksdb_release_snapshot(snapshots->db, snapshot->rocks);
    atomic_fetch_sub(&snapshots->count, 1);
    mem_free(snapshot);
}

static bool is_current(const RocksSnapshot *snapshot)
{
    return snapshot->turn == atomic_load(&snapshot->owner->turn);
}

static ObjectPool *kept(Snapshots *snapshots, StoreRead read)
{
    return &snapshots->kept[read == STORE_READ_MEMORY];
}

RocksSnapshot *snapshots_take(Snapshots *snapshots, StoreRead read)
{
    RocksSnapshot *snapshot;
    while ((snapshot = object_pool_take(kept(snapshots, read))) != NULL && !is_current(snapshot))
        snapshot_free(snapshot);
    return snapshot != NULL ? snapshot : snapshot_new(snapshots, read);
}

void snapshots_give(RocksSnapshot *snapshot)
{
    ObjectPool *spares = kept(snapshot->owner, snapshot->snapshot.read);
    if (!is_current(snapshot) || !object_pool_give(spares, snapshot))
        snapshot_free(snapshot);
}

static void let_go(Snapshots *snapshots)
{
    for (size_t i = 0; i < ARRAY_COUNT(snapshots->kept); i++) {
        /* Bounded, because readers may give snapshots back at the same time. */
        for (size_t j = 0; j < OBJECT_POOL_MAX; j++)
            snapshot_free(object_pool_take(&snapshots->kept[i]));
    }
}

/* A reader that found its snapshot to be current before this may add it to 'kept' afterwards: the
 * next turn frees it, and is_current refuses it until then. */
void snapshots_turn(Snapshots *snapshots)
{
    atomic_fetch_add(&snapshots->turn, 1);
    let_go(snapshots);
}

void snapshots_done(Snapshots *snapshots)
{
    let_go(snapshots);
    ASSERT(atomic_load(&snapshots->count) == 0);
}

static RocksGroups *groups_new(const RocksSnapshot *snapshot)
{
    RocksGroups *groups = MEM_NEW(RocksGroups);
    groups->options = options_new(snapshot->snapshot.read, snapshot->rocks);
    /* It asks filters, and ends with the group to which it was sent by the last seek: so it needs
     * no bounds, which could not be changed. */
    rocksdb_readoptions_set_total_order_seek(groups->options, 0);
    rocksdb_readoptions_set_prefix_same_as_start(groups->options, 1);
    rocksdb_readoptions_set_background_purge_on_iterator_cleanup(groups->options, 1);
    groups->iterator = rocksdb_create_iterator(snapshot->owner->db, groups->options);
    return groups;
}

RocksGroups *snapshots_take_groups(RocksSnapshot *snapshot)
{
    RocksGroups *groups = atomic_exchange(&snapshot->groups, NULL);
    return groups != NULL ? groups : groups_new(snapshot);
}

void snapshots_give_groups(RocksSnapshot *snapshot, RocksGroups *groups, bool has_failed)
{
    RocksGroups *none = NULL;
    if (has_failed || !atomic_compare_exchange_strong(&snapshot->groups, &none, groups))
        groups_free(groups);
}
