/* offline_folder.h - a data folder without a server: its store, catalogue and partitions, for
 * commands.
 *
 * Nothing is done in the background: no item expires, nothing is split or cleaned up.
 *
 * Ownership  The caller closes it.
 * Threads    One, besides those of the store and of the catalogue.
 */
#pragma once

#include "catalog/catalog.h"
#include "cli/backup_manifest.h"

typedef struct OfflineFolder OfflineFolder;

typedef struct OfflineOptions {
    const char *data; /* the data folder */
    const Log *log;
    bool is_read_only;     /* see RocksdbStoreOptions */
    bool takes_incomplete; /* likewise */
} OfflineOptions;

MUST_USE Status offline_folder_open(const OfflineOptions *options, OfflineFolder **out, Error *err);
void offline_folder_close(OfflineFolder *folder); /* accepts NULL */
DEFINE_AUTO(OfflineFolder *, offline_folder_close)

/* As long as the folder is open. */
const Snapshot *offline_folder_snapshot(OfflineFolder *folder);
Catalog *offline_folder_catalog(OfflineFolder *folder);

/* How far each partition of each container is, in the arena. */
void offline_folder_positions(OfflineFolder *folder, Arena *arena, BackupPosition **out,
                              size_t *count);
