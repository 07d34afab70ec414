/* rocksdb_int.h - what the files of this folder share; the only ones that know RocksDB. */
#pragma once

#include "base/hash.h"
#include "base/mailbox.h"
#include "base/object_pool.h"
#include "store/engine_int.h"
#include "store/rocksdb/rocksdb_store.h"

#include <pthread.h>
#include <rocksdb/c.h>

enum { RECLAIMER_NOTED_MAX = 32 };

/* Gives the space of deleted keys back to the disk: see reclaim.c. */
typedef struct Reclaimer {
    /* Immutable after reclaimer_init. */
    rocksdb_t *db;
    bool (*is_tight)(void *ctx); /* whether room is short; the reclaimer's thread calls it */
    void *ctx;

    /* Any thread posts, the reclaimer's own takes. */
    Mailbox mailbox;
    QueueNode stop;
    QueueNode wake; /* something was noted */
    _Atomic bool stopping;

    /* Guarded by 'lock'. */
    pthread_mutex_t lock;
    bool started; /* with the first large range: most processes never need the thread */
    pthread_t thread;
    struct Range *noted[RECLAIMER_NOTED_MAX]; /* where keys were deleted while room was short */
    size_t noted_count;
    bool has_news; /* since the last attempt */
    bool is_woken; /* 'wake' was posted, and the thread has not given up since */
} Reclaimer;

void reclaimer_init(Reclaimer *reclaimer, rocksdb_t *db, bool (*is_tight)(void *ctx), void *ctx);

/* About how many bytes of files the keys in ['from', 'to'] take. */
uint64_t reclaimer_bytes(Reclaimer *reclaimer, Slice from, Slice to);

/* The keys in ['from', 'to'], which took 'bytes', are gone; the bytes are given back later. Does
 * not wait. */
void reclaimer_push(Reclaimer *reclaimer, Slice from, Slice to, uint64_t bytes);

/* Gives back what these writes delete, as long as room is short. Does not wait. */
void reclaimer_note(Reclaimer *reclaimer, const Tree *writes);

/* Cancels what is under way. RocksDB takes no more writes afterwards. */
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
    rocksdb_readoptions_t *read_any; /* NULL if it reads memory only */
    rocksdb_readoptions_t *read_memory;
    _Atomic(RocksGroups *) groups; /* a spare iterator, NULL if there is none */
} RocksSnapshot;

struct Snapshots {
    rocksdb_t *db;          /* immutable after open */
    _Atomic uint32_t count; /* of all that exist, those that are kept included */
    _Atomic uint64_t turn;  /* grows with each write */
    ObjectPool kept[2];     /* of STORE_READ_ANY; of STORE_READ_MEMORY */
};

/* A snapshot of the newest state. The caller sets 'engine' and gives it back. */
RocksSnapshot *snapshots_take(Snapshots *snapshots, StoreRead read);
void snapshots_give(RocksSnapshot *snapshot);

/* Something was written, or may have been: older snapshots no longer show the newest state (I8).
 * Also called now and then without such a reason, to free those that are kept. */
void snapshots_turn(Snapshots *snapshots);

/* After all of them were given back. */
void snapshots_done(Snapshots *snapshots);

/* An iterator for one cursor over a group, as of the snapshot. One that has failed is not kept. */
RocksGroups *snapshots_take_groups(RocksSnapshot *snapshot);
void snapshots_give_groups(RocksSnapshot *snapshot, RocksGroups *groups, bool has_failed);

/* Read options with nothing else set; the caller destroys them. */
rocksdb_readoptions_t *rocksdb_read_options(StoreRead read);

/* How much RocksDB gathers in memory before it writes a file. */
size_t rocksdb_memtable_bytes(size_t cache_bytes);

/* The cache of blocks; the caller destroys it after the database. */
rocksdb_cache_t *rocksdb_tuned_cache(size_t cache_bytes);

/* The options of the database, explained in rocksdb_options.c, with the environment of this name
 * (wal_files_env). The caller destroys them. */
rocksdb_options_t *rocksdb_tuned_options(size_t cache_bytes, rocksdb_cache_t *cache,
                                         const char *env);

/* Lets more tables gather in level 0 while much is written: see compaction_delay.c. Commit thread
 * only. */
typedef struct CompactionDelay {
    rocksdb_t *db;
    size_t memtable_bytes;
    uint64_t window_at_us; /* when the window at hand began */
    uint64_t window_bytes; /* written in it */
    bool is_delayed;
} CompactionDelay;

/* 'bytes' were written at 'now_us'. 'has_room' if the disk has room for a larger compaction; it is
 * asked once a window at most. */
void compaction_delay_note(CompactionDelay *delay, size_t bytes, uint64_t now_us,
                           bool (*has_room)(void *ctx), void *ctx);

/* Nothing is being written any more. */
void compaction_delay_end(CompactionDelay *delay);

/* Which keys have many operands: see hot_keys.c. Commit thread only. */
typedef struct HotSlot HotSlot;
typedef struct HotKeys {
    HashKey hash_key;
    HotSlot *slots;
    uint32_t group;
} HotKeys;

void hot_keys_init(HotKeys *keys);
void hot_keys_done(HotKeys *keys); /* accepts a zeroed one */
void hot_keys_next_group(HotKeys *keys);

/* An operand of 'key' is about to be written. Returns true if the key has had many, and none in
 * this group: then its value from before the group must be written first (R5). */
bool hot_keys_note(HotKeys *keys, Slice key);

/* Has RocksDB merge operands, and remove what has become empty: see merge_operator.c. The caller
 * destroys the filter after the database is closed. */
void rocksdb_set_merge_operator(rocksdb_options_t *options, const StoreMerge *merge,
                                rocksdb_compactionfilter_t **filter);

/* Has the filters of tables answer for groups of keys: see prefix_filter.c. 'merge' may be NULL. */
void rocksdb_set_prefix_filter(rocksdb_options_t *options, const StoreMerge *merge);

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
    bool is_read_only; /* then nothing is ingested or removed */
    const StoreMerge *merge;
    rocksdb_options_t *tables; /* of the database; taken over */
} IngesterOptions;

/* Removes the files that an earlier process has left (R14). */
void ingester_init(Ingester *ingester, const IngesterOptions *options);
void ingester_done(Ingester *ingester); /* after the database is closed */

/* A load, as engine_int.h describes it; linking waits for compaction if that is far behind. */
EngineLoad *ingester_load_begin(Ingester *ingester, uint8_t rising_kind);
MUST_USE Status ingester_load_add(EngineLoad *load, const EngineWrites *writes, Error *err);
MUST_USE Status ingester_load_merge(EngineLoad *load, unsigned part, bool *is_done, Error *err);
MUST_USE Status ingester_load_link(EngineLoad *load, Error *err);
void ingester_load_end(EngineLoad *load); /* accepts NULL */

/* The database of a store of this engine; for tests. */
rocksdb_t *rocksdb_of_store(Store *store);

/* STATUS_IO if the system has no room for the threads that RocksDB starts: see thread_limit.c. */
MUST_USE Status rocksdb_check_thread_limit(Error *err);

/* Turns RocksDB's message 'text' about the store in 'folder' into an Error that begins with 'what'.
 * Frees 'text'. */
MUST_USE Status rocksdb_error(Error *err, const char *folder, const char *what, char *text);

/* The same for a message about opening the database. */
MUST_USE Status rocksdb_open_error(Error *err, const char *folder, char *text);

/* Whether damage was met before this start, and the reason if so. See damage.c. */
bool damage_read_mark(int folder_fd, Error *reason);

/* Damage was met: compaction ends, and the next start will know. */
void damage_note(int folder_fd, rocksdb_t *db, const Error *reason);
