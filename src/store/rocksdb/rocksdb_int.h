/* rocksdb_int.h - what the files of this folder share; the only ones that know RocksDB. */
#pragma once

#include "base/hash.h"
#include "base/mailbox.h"
#include "base/spares.h"
#include "store/engine_int.h"
#include "store/rocksdb/rocksdb_store.h"

#include <pthread.h>
#include <rocksdb/c.h>

enum { RECLAIMER_NOTED_MAX = 32 };

/* Gives the space of deleted keys back to the disk: see reclaim.c. */
typedef struct Reclaimer {
    /* Immutable after reclaimer_init. */
    rocksdb_t *db;
    bool (*is_tight)(void *ctx); /* whether room is short; called on the reclaimer's thread */
    void *ctx;

    /* Any thread posts, the reclaimer's own takes. */
    Mailbox mailbox;
    QueueNode stop;
    QueueNode wake; /* something was noted */
    _Atomic bool stopping;

    /* Guarded by 'lock'. */
    pthread_mutex_t lock;
    bool started; /* by the first that is worth it: most processes never need the thread */
    pthread_t thread;
    struct Range *noted[RECLAIMER_NOTED_MAX]; /* where keys were deleted while room was short */
    size_t noted_count;
    bool has_news; /* since the last attempt */
    bool is_woken; /* the thread has, or will get, 'wake', and has not given up since */
} Reclaimer;

void reclaimer_init(Reclaimer *reclaimer, rocksdb_t *db, bool (*is_tight)(void *ctx), void *ctx);

/* About how many bytes of files the keys in ['from', 'to'] take. */
uint64_t reclaimer_bytes(Reclaimer *reclaimer, Slice from, Slice to);

/* The keys in ['from', 'to'], which took 'bytes', are gone; the bytes are given back later. Does
 * not wait. */
void reclaimer_push(Reclaimer *reclaimer, Slice from, Slice to, uint64_t bytes);

/* What these delete is wanted back as long as room is short. Does not wait. */
void reclaimer_note(Reclaimer *reclaimer, const Tree *writes);

/* Breaks off what is under way. RocksDB takes no more writes afterwards. */
void reclaimer_stop(Reclaimer *reclaimer);

/* An iterator over groups of keys, without bounds, to be used again and again: see snapshots.c. */
typedef struct RocksGroups {
    rocksdb_readoptions_t *options;
    rocksdb_iterator_t *iterator;
} RocksGroups;

typedef struct Snapshots Snapshots;

/* Read options are made with the snapshot, so that reading a key makes nothing. */
typedef struct RocksSnapshot {
    StoreSnapshot snapshot;
    Snapshots *owner;
    uint64_t turn;
    const rocksdb_snapshot_t *rocks;
    rocksdb_readoptions_t *read_any; /* NULL: memory only */
    rocksdb_readoptions_t *read_memory;
    _Atomic(RocksGroups *) groups; /* nobody uses it at the moment; may be NULL */
} RocksSnapshot;

struct Snapshots {
    rocksdb_t *db;          /* immutable after open */
    _Atomic uint32_t count; /* of all that exist, those that are kept included */
    _Atomic uint64_t turn;
    Spares kept[2]; /* those that read anything; memory only */
};

/* The newest state. The caller sets 'engine' and gives it back. */
RocksSnapshot *snapshots_take(Snapshots *snapshots, StoreRead read);
void snapshots_give(RocksSnapshot *snapshot);

/* Something was written and can be seen, or may have been: what was taken before is no longer new.
 * To be called now and then without such a reason, too. */
void snapshots_turn(Snapshots *snapshots);

/* All of them were given back. */
void snapshots_done(Snapshots *snapshots);

/* For one cursor over a group, as of the snapshot. One that has failed is not used again. */
RocksGroups *snapshot_take_groups(RocksSnapshot *snapshot);
void snapshot_give_groups(RocksSnapshot *snapshot, RocksGroups *groups, bool has_failed);

/* Of this kind, and nothing else; the caller destroys them. */
rocksdb_readoptions_t *rocksdb_read_options(StoreRead read);

/* How much RocksDB gathers in memory before it writes a file. */
size_t rocksdb_memtable_bytes(size_t cache_bytes);

/* The cache of blocks; the caller destroys it after the database. */
rocksdb_cache_t *rocksdb_tuned_cache(size_t cache_bytes);

/* Sizes and habits of the database, thought through in options.c, with the environment of this
 * name (log_files_env). The caller destroys it. */
rocksdb_options_t *rocksdb_tuned_options(size_t cache_bytes, rocksdb_cache_t *cache,
                                         const char *env);

/* Which keys have many operands: see hot_keys.c. Commit thread only. */
typedef struct HotSlot HotSlot;
typedef struct HotKeys {
    HashKey hash_key;
    HotSlot *slots;
    uint32_t group;
} HotKeys;

void hot_keys_init(HotKeys *keys);
void hot_keys_done(HotKeys *keys); /* also of what is zeroed */
void hot_keys_next_group(HotKeys *keys);

/* An operand of 'key' is about to be written. True: it has had many, and none in this group, so
 * that now is the time to write its value as of before the group. */
bool hot_keys_note(HotKeys *keys, Slice key);

/* Has RocksDB merge operands, and remove what has become empty: see merging.c. Of the filter, which
 * is made only if there is something to merge, the caller disposes after the database is closed. */
void rocksdb_set_merging(rocksdb_options_t *options, const StoreMerge *merge,
                         rocksdb_compactionfilter_t **filter);

/* Has the filters of tables answer for groups of keys: see groups.c. 'merge' may be NULL. */
void rocksdb_set_groups(rocksdb_options_t *options, const StoreMerge *merge);

/* Writes tables past the log: see ingest.c. */
typedef struct Ingester {
    rocksdb_t *db; /* immutable after init */
    const char *folder;
    int folder_fd;
    const StoreMerge *merge;
    rocksdb_options_t *options;
    rocksdb_envoptions_t *env;
    _Atomic uint64_t next; /* number of a table */
} Ingester;

typedef struct IngesterOptions {
    rocksdb_t *db;
    const char *folder; /* lives as long as the ingester */
    int folder_fd;
    bool is_read_only; /* nothing is ingested, nor removed */
    const StoreMerge *merge;
    rocksdb_options_t *tables; /* of the database; taken over */
} IngesterOptions;

/* Removes what a process that has ended left behind. */
void ingester_init(Ingester *ingester, const IngesterOptions *options);
void ingester_done(Ingester *ingester); /* after the database is closed */

/* Makes the writes durable, then visible. After a failure nothing of them is there. Any thread;
 * waits for the disk, and for compaction if that is far behind. */
MUST_USE Status ingester_write(Ingester *ingester, const EngineWrites *writes, Error *err);

/* The database under a store of this engine; for tests. */
rocksdb_t *rocksdb_of_store(Store *store);

/* STATUS_IO if the system has no room for the threads that RocksDB starts: see thread_room.c. */
MUST_USE Status thread_room_check(Error *err);

/* Turns RocksDB's words about the store in 'folder' into an Error: "'what': 'text'". Takes 'text'
 * over. */
MUST_USE Status rocksdb_error(Error *err, const char *folder, const char *what, char *text);

/* Whether damage was met before this start; then the reason. See damage.c. */
bool damage_read_mark(int folder_fd, Error *reason);

/* Damage was met: compaction ends, and the next start will know. */
void damage_note(int folder_fd, rocksdb_t *db, const Error *reason);
