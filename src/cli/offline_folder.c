/* offline_folder.c - see offline_folder.h. */
#include "cli/offline_folder.h"

#include "base/mem.h"
#include "base/metrics.h"
#include "store/rocksdb/rocksdb_store.h"

#include <sys/stat.h>

/* What must be free on the disk to open the folder grows with this. */
#define CACHE_BYTES ((size_t)4 << 20)

struct OfflineFolder {
    Arena arena;
    Metrics metrics;
    Store *store;
    Workers *writers;
    PartitionHost host;
    Catalog *catalog;
    CatalogReader reader;
    bool has_reader;
};

static Status open_parts(OfflineFolder *folder, const OfflineOptions *options, Error *err)
{
    const char *path = arena_format(&folder->arena, "%s/store", options->data).ptr;
    RocksdbStoreOptions store = {
        .path = path,
        .cache_bytes = CACHE_BYTES,
        .log = options->log,
        .merge = &PARTITION_MERGE,
        .is_read_only = options->is_read_only,
        .takes_incomplete = options->takes_incomplete,
    };
    TRY(rocksdb_store_open(&store, &folder->store, err));
    folder->writers = workers_open("writer", 1, UINT32_MAX);
    folder->host = (PartitionHost){
        .store = folder->store,
        .writers = folder->writers,
        .clock = options->log->clock,
        .log = options->log,
        .is_closing = true, /* no background work */
    };
    CatalogOptions catalog = {
        .host = &folder->host,
        .clock = options->log->clock,
        .log = options->log,
        .metrics = &folder->metrics.shards[0],
        .is_read_only = true,
    };
    TRY(catalog_open(&catalog, &folder->catalog, err));
    catalog_reader_init(&folder->reader, folder->catalog);
    folder->has_reader = true;
    return STATUS_OK;
}

Status offline_folder_open(const OfflineOptions *options, OfflineFolder **out, Error *err)
{
    AUTO(offline_folder_close) OfflineFolder *folder = MEM_NEW(OfflineFolder);
    arena_init(&folder->arena, 1024);
    metrics_init(&folder->metrics, 1);
    TRY(open_parts(folder, options, err));
    *out = TAKE(folder);
    return STATUS_OK;
}

void offline_folder_close(OfflineFolder *folder)
{
    if (folder == NULL)
        return;
    if (folder->has_reader)
        catalog_reader_done(&folder->reader);
    catalog_close(folder->catalog);
    partition_host_stop(&folder->host);
    workers_close(folder->writers);
    store_close(folder->store);
    metrics_done(&folder->metrics);
    arena_done(&folder->arena);
    mem_free(folder);
}

const Snapshot *offline_folder_snapshot(OfflineFolder *folder)
{
    return catalog_read(&folder->reader);
}

Catalog *offline_folder_catalog(OfflineFolder *folder)
{
    return folder->catalog;
}

void offline_folder_positions(OfflineFolder *folder, Arena *arena, BackupPosition **out,
                              size_t *count)
{
    const Snapshot *snapshot = offline_folder_snapshot(folder);
    SnapshotWalk walk = {0};
    size_t total = 0;
    while (snapshot_next(snapshot, &walk))
        total += walk.container->range_count;
    BackupPosition *list = ARENA_NEW_ARRAY(arena, BackupPosition, total + 1);
    size_t at = 0;
    walk = (SnapshotWalk){0};
    while (snapshot_next(snapshot, &walk)) {
        for (size_t i = 0; i < walk.container->range_count; i++)
            list[at++] = (BackupPosition){
                .database = arena_copy(arena, walk.database->info.id),
                .container = arena_copy(arena, walk.container->info.id),
                .range = arena_format(arena, "%u", walk.container->ranges[i].id),
                .lsn = handle_lsn(container_handle_at(walk.container, i)),
            };
    }
    ASSERT(at == total);
    *out = list;
    *count = total;
}
