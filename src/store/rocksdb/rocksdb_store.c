/* rocksdb_store.c - see rocksdb_store.h; the engine of engine_int.h on RocksDB's C interface.
 *
 * Full keys are RocksDB's keys, in its default column family, with its default (bytewise) order.
 *
 * A group becomes one WriteBatch and one rocksdb_write: RocksDB appends it to its log as one
 * record, syncs the log, and only then shows it to readers. A batch is atomic there, and a record
 * torn by a crash is not replayed, so that a group, and with it each transaction, is there as a
 * whole or not at all.
 *
 * When RocksDB cannot write, it depends on what:
 *
 *   - A table file (a flush, a compaction). RocksDB stops taking writes, tries again by itself and
 *     goes on; the log is whole all the while. We only report it.
 *   - The log. This version of RocksDB then believes to have recovered although it still holds the
 *     broken log, and appends to it behind the torn record. So after any failure that is not
 *     clearly about a table file we write nothing more until the process is started again, which
 *     replays the log up to the torn record. Reads go on. One caveat is nobody's to remove: if a
 *     sync fails, the disk may have the record all the same, and a restart may find what was
 *     reported as failed.
 *
 * The usual reason, a full disk, must not end like that. Hence the reserve: a group is refused
 * while there is still room for what RocksDB has to write in the background, and taken again when
 * someone has made more.
 */
#include "store/rocksdb/rocksdb_store.h"

#include "base/mem.h"
#include "store/rocksdb/rocksdb_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* A batch keeps its memory from group to group unless it has grown beyond this. */
#define BATCH_KEEP_BYTES_MAX ((size_t)1 << 20)

/* Of the disk, in memtables: three may wait to be written out, each may be rewritten once at the
 * first level, and the log grows by two while that happens. */
enum { RESERVE_MEMTABLES = 8 };

enum { BLOCK_CACHE_TIER = 1 }; /* kBlockCacheTier, for which the C interface has no name */

typedef struct RocksEngine {
    Engine engine;

    /* Immutable after open. */
    rocksdb_t *db;
    rocksdb_cache_t *cache;
    rocksdb_writeoptions_t *write_options; /* as durable as was asked for */
    rocksdb_writeoptions_t *write_synced;
    rocksdb_readoptions_t *read_any;
    rocksdb_readoptions_t *read_memory;
    int folder_fd;
    uint64_t reserve_bytes;

    rocksdb_writebatch_t *batch;      /* commit thread only */
    _Atomic uint32_t snapshots_count; /* that are open */
    _Atomic bool log_broken;          /* nothing is written any more */
    Reclaimer reclaimer;
} RocksEngine;

/* Read options are made with the snapshot, so that reading a key makes nothing. */
typedef struct RocksSnapshot {
    StoreSnapshot snapshot;
    const rocksdb_snapshot_t *rocks;
    rocksdb_readoptions_t *read_any;
    rocksdb_readoptions_t *read_memory;
} RocksSnapshot;

struct EngineCursor {
    rocksdb_readoptions_t *options;
    rocksdb_iterator_t *iterator;
};

static const EngineOps ROCKS_OPS;
static Status prepare_folder(const char *path, int *folder_fd, Error *err);
static Status open_database(RocksEngine *rocks, const RocksdbStoreOptions *options, Error *err);

static RocksEngine *rocks_of(Engine *engine)
{
    return CONTAINER_OF(engine, RocksEngine, engine);
}

static const RocksSnapshot *rocks_snapshot(const StoreSnapshot *snapshot)
{
    return CONTAINER_OF(snapshot, const RocksSnapshot, snapshot);
}

static rocksdb_readoptions_t *read_options_new(StoreRead read)
{
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    if (read == STORE_READ_MEMORY)
        rocksdb_readoptions_set_read_tier(options, BLOCK_CACHE_TIER);
    return options;
}

Status rocksdb_store_open(const RocksdbStoreOptions *options, Store **out, Error *err)
{
    int folder_fd = -1;
    TRY(prepare_folder(options->path, &folder_fd, err));
    RocksEngine *rocks = MEM_NEW(RocksEngine);
    rocks->engine.ops = &ROCKS_OPS;
    rocks->folder_fd = folder_fd;
    Status status = open_database(rocks, options, err);
    if (status != STATUS_OK) {
        (void)close(folder_fd); /* only read from */
        mem_free(rocks);
        return status;
    }
    rocks->write_options = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(rocks->write_options,
                                  options->durability == STORE_DURABILITY_SYNC);
    rocks->write_synced = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(rocks->write_synced, 1);
    rocks->read_any = read_options_new(STORE_READ_ANY);
    rocks->read_memory = read_options_new(STORE_READ_MEMORY);
    rocks->batch = rocksdb_writebatch_create();
    reclaimer_init(&rocks->reclaimer, rocks->db);
    return store_open(&rocks->engine, options->log, out, err);
}

/* RocksDB would say all of this too, in words that do not help. */
static Status prepare_folder(const char *path, int *folder_fd, Error *err)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return error_set_errno(err, errno, "cannot make the data folder '%.200s'", path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOTDIR)
        return error_set(err, STATUS_IO, SUB_NONE, "the data folder '%.200s' is not a folder",
                         path);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot open the data folder '%.200s'", path);
    if (faccessat(fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
        int code = errno;
        (void)close(fd); /* only read from */
        return error_set_errno(err, code, "cannot write to the data folder '%.200s'", path);
    }
    *folder_fd = fd;
    return STATUS_OK;
}

static Status open_error(Error *err, const char *path, char *text)
{
    /* RocksDB names its lock file in the message and has no other word for this. */
    if (strstr(text, "/LOCK:") != NULL) {
        rocksdb_free(text);
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the data folder '%.200s' is in use by another process", path);
    }
    char what[256];
    (void)snprintf(what, sizeof(what), "cannot open the data folder '%.200s'", path);
    return rocksdb_error(err, what, text);
}

static Status open_database(RocksEngine *rocks, const RocksdbStoreOptions *options, Error *err)
{
    size_t cache_bytes =
        options->cache_bytes > 0 ? options->cache_bytes : ROCKSDB_STORE_CACHE_BYTES;
    rocks->reserve_bytes = RESERVE_MEMTABLES * rocksdb_memtable_bytes(cache_bytes);
    rocks->cache = rocksdb_cache_create_lru(cache_bytes);
    rocksdb_options_t *tuned = rocksdb_tuned_options(cache_bytes, rocks->cache);
    char *text = NULL;
    rocks->db = rocksdb_open(tuned, options->path, &text);
    rocksdb_options_destroy(tuned);
    if (text == NULL)
        return STATUS_OK;
    rocksdb_cache_destroy(rocks->cache);
    return open_error(err, options->path, text);
}

typedef struct ErrorRow {
    const char *starts_with; /* how RocksDB's message begins */
    Status status;
    const char *says; /* NULL: RocksDB's own words */
} ErrorRow;

Status rocksdb_error(Error *err, const char *what, char *text)
{
    static const ErrorRow rows[] = {
        {"IO error: No space left on device", STATUS_IO, "the disk is full"},
        {"IO error", STATUS_IO, NULL},
        {"Corruption", STATUS_CORRUPT, NULL},
        {"Shutdown in progress", STATUS_UNAVAILABLE, "the store is being closed"},
        {"Resource busy", STATUS_UNAVAILABLE, NULL},
        {"Operation timed out", STATUS_UNAVAILABLE, NULL},
    };
    ErrorRow row = {"", STATUS_INTERNAL, NULL};
    for (size_t i = 0; i < ARRAY_COUNT(rows) && row.status == STATUS_INTERNAL; i++) {
        if (strncmp(text, rows[i].starts_with, strlen(rows[i].starts_with)) == 0)
            row = rows[i];
    }
    Status status = error_set(err, row.status, SUB_NONE, "%s: %.220s", what,
                              row.says != NULL ? row.says : text);
    rocksdb_free(text);
    return status;
}

static void release_pinned(void *owner)
{
    rocksdb_pinnableslice_destroy(owner);
}

static rocksdb_readoptions_t *options_for(RocksEngine *rocks, const StoreSnapshot *snapshot,
                                          StoreRead read)
{
    if (snapshot == NULL)
        return read == STORE_READ_MEMORY ? rocks->read_memory : rocks->read_any;
    const RocksSnapshot *of = rocks_snapshot(snapshot);
    return read == STORE_READ_MEMORY ? of->read_memory : of->read_any;
}

static Status rocks_get(Engine *engine, const StoreSnapshot *snapshot, Slice key, StoreRead read,
                        StoreValue *value, StoreFound *found, Error *err)
{
    RocksEngine *rocks = rocks_of(engine);
    char *text = NULL;
    rocksdb_pinnableslice_t *pinned =
        rocksdb_get_pinned(rocks->db, options_for(rocks, snapshot, read), key.ptr, key.len, &text);
    if (text != NULL) {
        if (read == STORE_READ_MEMORY && strncmp(text, "Result incomplete", 17) == 0) {
            rocksdb_free(text);
            *found = STORE_UNKNOWN;
            return STATUS_OK;
        }
        return rocksdb_error(err, "cannot read", text);
    }
    *found = pinned != NULL ? STORE_FOUND : STORE_ABSENT;
    if (pinned != NULL) {
        size_t len = 0;
        const char *ptr = rocksdb_pinnableslice_value(pinned, &len);
        /* When the table that may hold the key is not open yet, RocksDB does not say that the
         * answer is incomplete: it calls the key found, with an empty value. */
        if (read == STORE_READ_MEMORY && len == 0) {
            rocksdb_pinnableslice_destroy(pinned);
            *found = STORE_UNKNOWN;
            return STATUS_OK;
        }
        *value = (StoreValue){slice_make(ptr, len), pinned, release_pinned};
    }
    return STATUS_OK;
}

static StoreSnapshot *rocks_snapshot_open(Engine *engine)
{
    RocksEngine *rocks = rocks_of(engine);
    RocksSnapshot *snapshot = MEM_NEW(RocksSnapshot);
    snapshot->snapshot.engine = engine;
    /* Counted before it exists: see rocks_drop. */
    atomic_fetch_add(&rocks->snapshots_count, 1);
    snapshot->rocks = rocksdb_create_snapshot(rocks->db);
    snapshot->read_any = read_options_new(STORE_READ_ANY);
    snapshot->read_memory = read_options_new(STORE_READ_MEMORY);
    rocksdb_readoptions_set_snapshot(snapshot->read_any, snapshot->rocks);
    rocksdb_readoptions_set_snapshot(snapshot->read_memory, snapshot->rocks);
    return &snapshot->snapshot;
}

static void rocks_snapshot_close(StoreSnapshot *base)
{
    RocksEngine *rocks = rocks_of(base->engine);
    RocksSnapshot *snapshot = CONTAINER_OF(base, RocksSnapshot, snapshot);
    rocksdb_readoptions_destroy(snapshot->read_any);
    rocksdb_readoptions_destroy(snapshot->read_memory);
    rocksdb_release_snapshot(rocks->db, snapshot->rocks);
    atomic_fetch_sub(&rocks->snapshots_count, 1);
    mem_free(snapshot);
}

static EngineCursor *rocks_cursor_open(Engine *engine, const StoreSnapshot *snapshot, Slice from,
                                       Slice to)
{
    EngineCursor *cursor = MEM_NEW(EngineCursor);
    cursor->options = read_options_new(STORE_READ_ANY);
    /* RocksDB keeps pointers to the bounds, which live as long as the cursor, and stops there
     * without looking at the deleted keys of a neighbour. */
    rocksdb_readoptions_set_iterate_lower_bound(cursor->options, from.ptr, from.len);
    rocksdb_readoptions_set_iterate_upper_bound(cursor->options, to.ptr, to.len);
    rocksdb_readoptions_set_background_purge_on_iterator_cleanup(cursor->options, 1);
    if (snapshot != NULL)
        rocksdb_readoptions_set_snapshot(cursor->options, rocks_snapshot(snapshot)->rocks);
    cursor->iterator = rocksdb_create_iterator(rocks_of(engine)->db, cursor->options);
    return cursor;
}

static void seek_before(rocksdb_iterator_t *iterator, Slice key)
{
    rocksdb_iter_seek_for_prev(iterator, key.ptr, key.len); /* the last key <= 'key' */
    if (!rocksdb_iter_valid(iterator))
        return;
    size_t len = 0;
    const char *ptr = rocksdb_iter_key(iterator, &len);
    if (slice_equal(slice_make(ptr, len), key))
        rocksdb_iter_prev(iterator);
}

static void move_iterator(rocksdb_iterator_t *iterator, EngineMove move, Slice key)
{
    switch (move) {
    case ENGINE_AT_OR_AFTER:
        rocksdb_iter_seek(iterator, key.ptr, key.len);
        break;
    case ENGINE_BEFORE:
        seek_before(iterator, key);
        break;
    case ENGINE_NEXT:
        rocksdb_iter_next(iterator);
        break;
    case ENGINE_PREV:
        rocksdb_iter_prev(iterator);
        break;
    }
}

static Status rocks_cursor_move(EngineCursor *cursor, EngineMove move, Slice key, EngineItem *item,
                                bool *found, Error *err)
{
    rocksdb_iterator_t *iterator = cursor->iterator;
    move_iterator(iterator, move, key);
    if (!rocksdb_iter_valid(iterator)) {
        char *text = NULL;
        rocksdb_iter_get_error(iterator, &text);
        if (text != NULL)
            return rocksdb_error(err, "cannot read", text);
        *found = false;
        return STATUS_OK;
    }
    item->key.ptr = rocksdb_iter_key(iterator, &item->key.len);
    item->value.ptr = rocksdb_iter_value(iterator, &item->value.len);
    *found = true;
    return STATUS_OK;
}

static void rocks_cursor_close(EngineCursor *cursor)
{
    rocksdb_iter_destroy(cursor->iterator);
    rocksdb_readoptions_destroy(cursor->options);
    mem_free(cursor);
}

static void add_to_batch(void *ctx, TreeEntry *entry)
{
    rocksdb_writebatch_t *batch = ctx;
    Slice key = tree_entry_key(entry);
    Slice value = tree_entry_value(entry);
    if (entry->deleted)
        rocksdb_writebatch_delete(batch, key.ptr, key.len);
    else
        rocksdb_writebatch_put(batch, key.ptr, key.len, value.ptr, value.len);
}

static Status write_batch(RocksEngine *rocks, const rocksdb_writeoptions_t *options,
                          rocksdb_writebatch_t *batch, Error *err)
{
    if (atomic_load(&rocks->log_broken))
        return error_set(err, STATUS_IO, SUB_NONE,
                         "the store's log is broken; it takes writes again after a restart");
    char *text = NULL;
    rocksdb_write(rocks->db, options, batch, &text);
    if (text == NULL)
        return STATUS_OK;
    /* The message names the file and is the only thing that does. */
    if (strstr(text, ".sst") == NULL || strstr(text, ".log") != NULL)
        atomic_store(&rocks->log_broken, true);
    return rocksdb_error(err, "cannot write", text);
}

static Status check_reserve(RocksEngine *rocks, uint64_t bytes, Error *err)
{
    struct statvfs info;
    if (fstatvfs(rocks->folder_fd, &info) != 0)
        return STATUS_OK; /* the write itself will tell */
    uint64_t free_bytes = (uint64_t)info.f_bavail * info.f_frsize;
    if (free_bytes >= rocks->reserve_bytes + bytes)
        return STATUS_OK;
    return error_set(err, STATUS_IO, SUB_NONE,
                     "cannot write: the disk is full (%llu MB are free, of which %llu MB are kept "
                     "for work in the background)",
                     (unsigned long long)(free_bytes >> 20),
                     (unsigned long long)(rocks->reserve_bytes >> 20));
}

static Status rocks_write(Engine *engine, const Tree *writes, size_t count, Error *err)
{
    RocksEngine *rocks = rocks_of(engine);
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += writes[i].bytes;
    TRY(check_reserve(rocks, bytes, err));
    rocksdb_writebatch_clear(rocks->batch);
    for (size_t i = 0; i < count; i++)
        tree_each(&writes[i], add_to_batch, rocks->batch);
    Status status = write_batch(rocks, rocks->write_options, rocks->batch, err);
    if (bytes > BATCH_KEEP_BYTES_MAX) {
        rocksdb_writebatch_destroy(rocks->batch);
        rocks->batch = rocksdb_writebatch_create();
    }
    return status;
}

static Status rocks_probe(Engine *engine, Error *err)
{
    RocksEngine *rocks = rocks_of(engine);
    TRY(check_reserve(rocks, 0, err));
    rocksdb_writebatch_clear(rocks->batch);
    return write_batch(rocks, rocks->write_options, rocks->batch,
                       err); /* an empty one goes the whole way too */
}

/* Does not ask for the reserve: this is how room is made.
 *
 * Three steps, each safe to be the last: the mark that hides the keys, synced even if durability
 * is relaxed, since files do not come back; whole files that hold nothing else, at once; the rest
 * in the background.
 *
 * Files are taken away under everyone's feet, also from an older snapshot that still has a right to
 * read them, so that this is only done when no snapshot is open. One that is opened later sees the
 * mark. Iterators hold their files. 'last_key' is inside the range: with the first key of the next
 * space, which a file may end with, that file would go too. */
static Status rocks_drop(Engine *engine, StoreSpace first, StoreSpace last, Error *err)
{
    RocksEngine *rocks = rocks_of(engine);
    FullKey from_memory, to_memory, last_memory;
    Slice from = full_key(&from_memory, first, SLICE_EMPTY);
    Slice to = full_key_end(&to_memory, last);
    Slice last_key = full_key_last(&last_memory, last);
    uint64_t bytes = reclaimer_bytes(&rocks->reclaimer, from, last_key);
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    rocksdb_writebatch_delete_range(batch, from.ptr, from.len, to.ptr, to.len);
    Status status = write_batch(rocks, rocks->write_synced, batch, err);
    rocksdb_writebatch_destroy(batch);
    TRY(status);

    if (atomic_load(&rocks->snapshots_count) == 0) {
        char *text = NULL;
        rocksdb_delete_file_in_range(rocks->db, from.ptr, from.len, last_key.ptr, last_key.len,
                                     &text);
        rocksdb_free(text); /* the keys are gone already; the bytes will follow some other day */
    }
    reclaimer_push(&rocks->reclaimer, from, last_key, bytes);
    return STATUS_OK;
}

static uint64_t property(RocksEngine *rocks, const char *name)
{
    uint64_t value = 0;
    (void)rocksdb_property_int(rocks->db, name, &value); /* unknown counts as nothing */
    return value;
}

static void rocks_usage(Engine *engine, StoreUsage *usage)
{
    RocksEngine *rocks = rocks_of(engine);
    uint64_t memtables = property(rocks, "rocksdb.size-all-mem-tables");
    /* The log holds what the memtables hold, about as large; asking the disk would take longer
     * than a caller on an event loop can wait. */
    usage->disk_bytes = property(rocks, "rocksdb.total-sst-files-size") + memtables;
    usage->memory_bytes = memtables + rocksdb_cache_get_usage(rocks->cache) +
                          property(rocks, "rocksdb.estimate-table-readers-mem");
}

/* Writes out what is only in the log: opening would have to do it otherwise, after reading it all
 * back. The log is synced for relaxed durability, in case the flush is not possible. */
static void settle(RocksEngine *rocks)
{
    char *text = NULL;
    rocksdb_flush_wal(rocks->db, 1, &text);
    rocksdb_free(text); /* who needs to know chose to be told at commit */
    text = NULL;
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flush(rocks->db, options, &text);
    rocksdb_free(text); /* the log has it */
    rocksdb_flushoptions_destroy(options);
}

static void rocks_close(Engine *engine)
{
    RocksEngine *rocks = rocks_of(engine);
    if (!atomic_load(&rocks->log_broken))
        settle(rocks);
    reclaimer_stop(&rocks->reclaimer);
    rocksdb_writebatch_destroy(rocks->batch);
    rocksdb_readoptions_destroy(rocks->read_any);
    rocksdb_readoptions_destroy(rocks->read_memory);
    rocksdb_writeoptions_destroy(rocks->write_options);
    rocksdb_writeoptions_destroy(rocks->write_synced);
    rocksdb_close(rocks->db);
    rocksdb_cache_destroy(rocks->cache);
    (void)close(rocks->folder_fd); /* only read from */
    mem_free(rocks);
}

static const EngineOps ROCKS_OPS = {
    .get = rocks_get,
    .snapshot_open = rocks_snapshot_open,
    .snapshot_close = rocks_snapshot_close,
    .cursor_open = rocks_cursor_open,
    .cursor_move = rocks_cursor_move,
    .cursor_close = rocks_cursor_close,
    .write = rocks_write,
    .probe = rocks_probe,
    .drop = rocks_drop,
    .usage = rocks_usage,
    .close = rocks_close,
};
