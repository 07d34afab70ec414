/* snapshots.c - snapshots, and what is kept of them for the next reader.
 *
 * Taking a snapshot and an iterator and giving them back is a good part of a look-up that finds one
 * item: RocksDB's lock, an iterator for each level and each file, the blocks that say where
 * things are. Between two writes all of that would come out the same. So a snapshot that is closed
 * is kept, with an iterator over groups, and handed out again while it still is the newest state:
 * each write begins a new turn, and only a snapshot of this turn is taken or kept.
 *
 * What is kept holds files and memory that RocksDB would let go of otherwise. So each turn lets go
 * of what earlier ones have kept, and there is a new one at least every second (snapshots_turn).
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
    /* The turn is read before: what this snapshot may have beyond it does no harm. */
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

static Spares *kept(Snapshots *snapshots, StoreRead read)
{
    return &snapshots->kept[read == STORE_READ_MEMORY];
}

RocksSnapshot *snapshots_take(Snapshots *snapshots, StoreRead read)
{
    RocksSnapshot *snapshot;
    while ((snapshot = spares_take(kept(snapshots, read))) != NULL && !is_current(snapshot))
        snapshot_free(snapshot);
    return snapshot != NULL ? snapshot : snapshot_new(snapshots, read);
}

void snapshots_give(RocksSnapshot *snapshot)
{
    Spares *spares = kept(snapshot->owner, snapshot->snapshot.read);
    if (!is_current(snapshot) || !spares_give(spares, snapshot))
        snapshot_free(snapshot);
}

static void let_go(Snapshots *snapshots)
{
    for (size_t i = 0; i < ARRAY_COUNT(snapshots->kept); i++) {
        /* No more often than that: readers may give new ones all the while. */
        for (size_t j = 0; j < SPARES_MAX; j++)
            snapshot_free(spares_take(&snapshots->kept[i]));
    }
}

/* Who has found its snapshot to be current before this may keep it after: the next turn finds it.
 */
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
    /* It asks filters, and ends with the group that it was last sent to: it needs no bounds, which
     * could not be changed. */
    rocksdb_readoptions_set_total_order_seek(groups->options, 0);
    rocksdb_readoptions_set_prefix_same_as_start(groups->options, 1);
    rocksdb_readoptions_set_background_purge_on_iterator_cleanup(groups->options, 1);
    groups->iterator = rocksdb_create_iterator(snapshot->owner->db, groups->options);
    return groups;
}

RocksGroups *snapshot_take_groups(RocksSnapshot *snapshot)
{
    RocksGroups *groups = atomic_exchange(&snapshot->groups, NULL);
    return groups != NULL ? groups : groups_new(snapshot);
}

void snapshot_give_groups(RocksSnapshot *snapshot, RocksGroups *groups, bool has_failed)
{
    RocksGroups *none = NULL;
    if (has_failed || !atomic_compare_exchange_strong(&snapshot->groups, &none, groups))
        groups_free(groups);
}
