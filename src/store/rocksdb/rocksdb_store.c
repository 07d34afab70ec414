/* rocksdb_store.c - see rocksdb_store.h; the engine of engine_int.h on RocksDB's C interface.
 *
 * Full keys are RocksDB's keys, in its default column family, with its default (bytewise) order.
 *
 * A group becomes one WriteBatch and one rocksdb_write: RocksDB appends it to its log as one
 * record, syncs the log, and only then shows it to readers (I1). A batch is atomic there, and a
 * record torn by a crash is not replayed, so that a group, and with it each transaction, is there
 * as a whole or not at all (I2, R1).
 *
 * When RocksDB cannot write, it depends on what it was writing:
 *
 *   - A table file (a flush, a compaction), and the disk is full. RocksDB stops taking writes,
 *     tries again by itself and goes on; the log is whole all the while. We only report it.
 *   - A table file for any other reason: RocksDB takes no writes until it is opened again.
 *   - The log. This version of RocksDB then takes itself for recovered although it still holds the
 *     broken log, and appends to it after the torn record. So after any failure but the first kind
 *     we write nothing more until the process is started again, which replays the log up to the
 *     torn record (R2). Reads go on. If a sync fails, the record may be on disk nevertheless: so
 *     the marks say where the next start must end the log (sync_marks_end_logs).
 *
 * The usual reason, a full disk, must not end like that. Hence the reserve (R3): a group is refused
 * while there is still room for what RocksDB has to write in the background, and taken again when
 * there is more. What makes room (deletes, dropped spaces) may use nearly all of it.
 */
#include "store/rocksdb/rocksdb_store.h"

#include "base/clock.h"
#include "base/mem.h"
#include "store/rocksdb/folder_check_int.h"
#include "store/rocksdb/rocksdb_engine_int.h"
#include "store/rocksdb/rocksdb_local_int.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A batch keeps its memory from group to group, and until there is nothing to write if it has grown
 * beyond this: making it anew for each large group cost a fifth of the commit thread. */
#define BATCH_KEEP_BYTES_MAX ((size_t)1 << 20)

enum { BLOCK_CACHE_TIER = 1 }; /* kBlockCacheTier, for which the C interface has no name */

/* The iterator is its own, or one over groups that it has taken from its snapshot. */
struct EngineCursor {
    RocksEngine *rocks;
    StoreRead read;
    rocksdb_readoptions_t *options;
    rocksdb_iterator_t *iterator;
    RocksSnapshot *snapshot;
    RocksGroups *groups; /* NULL if the iterator is its own */
    bool has_failed;
    bool is_group;
    Buf left; /* the key that a step in memory went on from */
};

static const EngineOps ROCKS_OPS;
static Status open_folder(RocksEngine *rocks, const RocksdbStoreOptions *options, Error *err);
static Status open_database(RocksEngine *rocks, const RocksdbStoreOptions *options, Error *err);
static void close_folder(RocksEngine *rocks);

/* A snapshot never changes for its readers; the iterator that is kept with it does. */
static RocksSnapshot *rocks_snapshot(const StoreSnapshot *snapshot)
{
    return CONTAINER_OF((StoreSnapshot *)snapshot, RocksSnapshot, snapshot);
}

rocksdb_readoptions_t *rocksdb_read_options(StoreRead read)
{
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    if (read == STORE_READ_MEMORY)
        rocksdb_readoptions_set_read_tier(options, BLOCK_CACHE_TIER);
    return options;
}

Status rocksdb_engine_open(const RocksdbStoreOptions *options, Engine **out, Error *err)
{
    TRY(rocksdb_check_thread_limit(err));
    RocksEngine *rocks = MEM_NEW(RocksEngine);
    rocks->engine = (Engine){.ops = &ROCKS_OPS, .merge = options->merge};
    rocks->folder = mem_copy(options->path, strlen(options->path) + 1);
    rocks->folder_fd = -1;
    rocks->lock_fd = -1;
    rocks->is_read_only = options->is_read_only;
    int failed = pthread_mutex_init(&rocks->gate, NULL);
    ASSERT(failed == 0);
    Status status = open_folder(rocks, options, err);
    if (status == STATUS_OK)
        status = open_database(rocks, options, err);
    if (status != STATUS_OK) {
        close_folder(rocks);
        return status;
    }
    rocks->write_options = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(rocks->write_options,
                                  options->durability == STORE_DURABILITY_SYNC);
    rocks->write_synced = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(rocks->write_synced, 1);
    rocks->read_any = rocksdb_read_options(STORE_READ_ANY);
    rocks->read_memory = rocksdb_read_options(STORE_READ_MEMORY);
    rocks->snapshots.db = rocks->db;
    rocks->delay = (CompactionDelay){.db = rocks->db, .memtable_bytes = rocks->memtable_bytes};
    rocks->batch = rocksdb_writebatch_create();
    if (options->merge != NULL)
        hot_keys_init(&rocks->hot_keys);
    reclaimer_init(&rocks->reclaimer, rocks->db, rocks_is_tight, rocks);
    *out = &rocks->engine;
    return STATUS_OK;
}

void rocksdb_engine_tell_damage(Engine *engine, Store *store)
{
    const RocksEngine *rocks = rocks_of(engine);
    Error reason;
    if (atomic_load(&rocks->is_damaged) && damage_read_mark(rocks->folder_fd, &reason))
        store_note_damage(store, &reason);
}

Status rocksdb_store_open(const RocksdbStoreOptions *options, Store **out, Error *err)
{
    Engine *engine = NULL;
    TRY(rocksdb_engine_open(options, &engine, err));
    TRY(store_open(engine, options->log, out, err));
    rocksdb_engine_tell_damage(engine, *out);
    return STATUS_OK;
}

static Status in_use(const char *path, Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "the data folder '%.200s' is in use by another process", path);
}

/* RocksDB names its lock file in the message and has no other word for a folder in use. */
static bool is_about_lock(const char *text)
{
    return strstr(text, "/LOCK:") != NULL;
}

/* A reader keeps others from beginning to write. It does not make the file LOCK: if there is none,
 * there is no database that could be written. */
static Status lock_for_reading(RocksEngine *rocks, Error *err)
{
    rocks->lock_fd = openat(rocks->folder_fd, "LOCK", O_RDONLY | O_CLOEXEC);
    if (rocks->lock_fd < 0 && errno == ENOENT)
        return STATUS_OK;
    if (rocks->lock_fd < 0)
        return error_set_errno(err, errno, "cannot read the file LOCK in '%.200s'", rocks->folder);
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    return fcntl(rocks->lock_fd, F_SETLK, &lock) == 0 ? STATUS_OK : in_use(rocks->folder, err);
}

/* The lock comes first: a folder in use would look damaged. */
static Status lock_folder(RocksEngine *rocks, const RocksdbStoreOptions *options, Error *err)
{
    if (options->is_read_only)
        TRY(lock_for_reading(rocks, err));
    rocks->marks = sync_marks_open(options->path);
    rocks->log_files = wal_files_open(&(WalFilesOptions){
        .folder = options->path,
        .marks = rocks->marks,
        .is_relaxed = options->durability == STORE_DURABILITY_RELAXED,
    });
    char reason[256];
    if (!options->is_read_only &&
        !wal_files_lock(rocks->log_files, options->path, reason, sizeof(reason)))
        return is_about_lock(reason)
                   ? in_use(options->path, err)
                   : error_set(err, STATUS_IO, SUB_NONE, "cannot lock the data folder '%.200s': %s",
                               options->path, reason);
    sync_marks_reload(rocks->marks);
    return STATUS_OK;
}

/* RocksDB would report all of this too, in messages that do not help a user. */
static Status open_folder(RocksEngine *rocks, const RocksdbStoreOptions *options, Error *err)
{
    const char *path = options->path;
    if (!options->is_read_only && mkdir(path, 0700) != 0 && errno != EEXIST)
        return error_set_errno(err, errno, "cannot make the data folder '%.200s'", path);
    rocks->folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (rocks->folder_fd < 0 && errno == ENOTDIR)
        return error_set(err, STATUS_IO, SUB_NONE, "the data folder '%.200s' is not a folder",
                         path);
    if (rocks->folder_fd < 0)
        return error_set_errno(err, errno, "cannot open the data folder '%.200s'", path);
    if (!options->takes_incomplete &&
        faccessat(rocks->folder_fd, STORE_INCOMPLETE_FILE, F_OK, 0) == 0)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the data folder '%.200s' is not complete: a restore into it was "
                         "interrupted; run it again, or remove the folder",
                         path);
    int wanted = options->is_read_only ? R_OK | X_OK : R_OK | W_OK | X_OK;
    if (faccessat(rocks->folder_fd, ".", wanted, AT_EACCESS) != 0)
        return error_set_errno(err, errno, "cannot %s the data folder '%.200s'",
                               options->is_read_only ? "read" : "write to", path);
    return lock_folder(rocks, options, err);
}

/* Checks the folder, and sets how much of the logs RocksDB is shown. */
static Status check_folder(RocksEngine *rocks, const RocksdbStoreOptions *options, bool *is_new,
                           Error *err)
{
    FolderFindings findings;
    FolderCheckOptions check = {
        .path = options->path,
        .marks = rocks->marks,
        .is_relaxed = options->durability == STORE_DURABILITY_RELAXED,
    };
    TRY(folder_check(&check, &findings, err));
    if (findings.is_new && options->is_read_only)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "there is no database in '%.200s'",
                         options->path);
    if (findings.is_new)
        sync_marks_clear(rocks->marks);
    bool is_lost = findings.loss.status != STATUS_OK;
    if (is_lost && !options->accepts_lost_writes) {
        *err = findings.loss;
        return err->status;
    }
    if (is_lost)
        TRY(folder_accept_loss(&check, &findings, err));
    if (findings.has_log_end && options->log != NULL)
        LOG_WARN(options->log, is_lost ? "store.writes_lost" : "store.log_cut",
                 "log=%06llu.log bytes=%llu reason=\"%s\"",
                 (unsigned long long)findings.log_end.number,
                 (unsigned long long)findings.log_end.bytes,
                 is_lost ? findings.loss.message
                         : "what follows was torn or never acknowledged, and is not taken");
    if (findings.has_log_end)
        wal_files_set_end(rocks->log_files, findings.log_end);
    *is_new = findings.is_new;
    return STATUS_OK;
}

static Status open_database(RocksEngine *rocks, const RocksdbStoreOptions *options, Error *err)
{
    size_t cache_bytes =
        options->cache_bytes > 0 ? options->cache_bytes : ROCKSDB_STORE_CACHE_BYTES;
    rocks->memtable_bytes = rocksdb_memtable_bytes(cache_bytes);
    /* RocksDB writes a few files when it opens, and ends the process by an assertion if it cannot.
     */
    if (!options->is_read_only && rocks_check_room(rocks, ENGINE_MAKES_ROOM, 0, err) != STATUS_OK)
        return error_context(err, "cannot open the data folder '%.200s'", options->path);
    bool is_new = false;
    TRY(check_folder(rocks, options, &is_new, err));
    rocks->cache = rocksdb_tuned_cache(cache_bytes);
    rocksdb_options_t *tuned =
        rocksdb_tuned_options(cache_bytes, rocks->cache, wal_files_env(rocks->log_files));
    rocksdb_options_set_create_if_missing(tuned, is_new);
    rocksdb_set_prefix_filter(tuned, options->merge);
    if (options->merge != NULL)
        rocksdb_set_merge_operator(tuned, options->merge, &rocks->filter);
    if (!options->is_read_only)
        rocks_checkpoints_clean(options->path);
    Error reason;
    atomic_init(&rocks->is_damaged, damage_read_mark(rocks->folder_fd, &reason));
    rocksdb_options_set_disable_auto_compactions(tuned, atomic_load(&rocks->is_damaged));
    char *text = NULL;
    rocks->db = options->is_read_only ? rocksdb_open_for_read_only(tuned, options->path, 0, &text)
                                      : rocksdb_open(tuned, options->path, &text);
    if (text != NULL) {
        rocksdb_options_destroy(tuned);
        return rocksdb_open_error(err, options->path, text);
    }
    ingester_init(&rocks->ingester, &(IngesterOptions){.db = rocks->db,
                                                       .folder = rocks->folder,
                                                       .folder_fd = rocks->folder_fd,
                                                       .is_read_only = options->is_read_only,
                                                       .merge = options->merge,
                                                       .tables = tuned});
    return STATUS_OK;
}

/* Closes what open_folder and open_database have opened, after the database. */
static void close_folder(RocksEngine *rocks)
{
    if (rocks->filter != NULL)
        rocksdb_compactionfilter_destroy(rocks->filter);
    if (rocks->cache != NULL)
        rocksdb_cache_destroy(rocks->cache);
    wal_files_close(rocks->log_files);
    sync_marks_close(rocks->marks);
    if (rocks->lock_fd >= 0)
        (void)close(rocks->lock_fd); /* only read from */
    if (rocks->folder_fd >= 0)
        (void)close(rocks->folder_fd); /* only read from */
    (void)pthread_mutex_destroy(&rocks->gate);
    mem_free(rocks->folder);
    mem_free(rocks);
}

rocksdb_t *rocksdb_of_store(Store *store)
{
    Engine *engine = store_engine(store);
    ASSERT(engine->ops == &ROCKS_OPS);
    return rocks_of(engine)->db;
}

static void note_damage(RocksEngine *rocks, const Error *err)
{
    if (err->status == STATUS_CORRUPT && !rocks->is_read_only &&
        !atomic_exchange(&rocks->is_damaged, true))
        damage_note(rocks->folder_fd, rocks->db, err);
}

static Status read_error(RocksEngine *rocks, char *text, Error *err)
{
    Status status = rocksdb_error(err, rocks->folder, "cannot read", text);
    note_damage(rocks, err);
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
    ASSERT(read == STORE_READ_MEMORY || of->read_any != NULL);
    return read == STORE_READ_MEMORY ? of->read_memory : of->read_any;
}

/* Whether this is RocksDB's message about a read that would have to wait for the disk. */
static bool is_incomplete(StoreRead read, const char *text)
{
    return read == STORE_READ_MEMORY && text != NULL && strncmp(text, "Result incomplete", 17) == 0;
}

static Status rocks_get(Engine *engine, const StoreSnapshot *snapshot, Slice key, StoreRead read,
                        StoreValue *value, StoreFound *found, Error *err)
{
    RocksEngine *rocks = rocks_of(engine);
    char *text = NULL;
    rocksdb_pinnableslice_t *pinned =
        rocksdb_get_pinned(rocks->db, options_for(rocks, snapshot, read), key.ptr, key.len, &text);
    if (text != NULL) {
        if (is_incomplete(read, text)) {
            rocksdb_free(text);
            *found = STORE_UNKNOWN;
            return STATUS_OK;
        }
        return read_error(rocks, text, err);
    }
    *found = pinned != NULL ? STORE_FOUND : STORE_ABSENT;
    if (pinned != NULL) {
        size_t len = 0;
        const char *ptr = rocksdb_pinnableslice_value(pinned, &len);
        /* When the table that may hold the key is not open yet, RocksDB does not report an
         * incomplete answer: it says that the key is found, with an empty value (I9). */
        if (read == STORE_READ_MEMORY && len == 0) {
            rocksdb_pinnableslice_destroy(pinned);
            *found = STORE_UNKNOWN;
            return STATUS_OK;
        }
        *value = (StoreValue){slice_make(ptr, len), pinned, release_pinned};
    }
    return STATUS_OK;
}

static StoreSnapshot *rocks_snapshot_open(Engine *engine, StoreRead read)
{
    RocksSnapshot *snapshot = snapshots_take(&rocks_of(engine)->snapshots, read);
    snapshot->snapshot.engine = engine;
    return &snapshot->snapshot;
}

static void rocks_snapshot_close(StoreSnapshot *snapshot)
{
    snapshots_give(rocks_snapshot(snapshot));
}

static void open_iterator(EngineCursor *cursor, Slice from, Slice to, bool is_group)
{
    cursor->options = rocksdb_read_options(cursor->read);
    /* RocksDB keeps pointers to the bounds, which live as long as the cursor, and stops there
     * without looking at the deleted keys of a neighbour. */
    rocksdb_readoptions_set_iterate_lower_bound(cursor->options, from.ptr, from.len);
    rocksdb_readoptions_set_iterate_upper_bound(cursor->options, to.ptr, to.len);
    rocksdb_readoptions_set_total_order_seek(cursor->options, !is_group); /* else: ask filters */
    rocksdb_readoptions_set_background_purge_on_iterator_cleanup(cursor->options, 1);
    if (cursor->snapshot != NULL)
        rocksdb_readoptions_set_snapshot(cursor->options, cursor->snapshot->rocks);
    cursor->iterator = rocksdb_create_iterator(cursor->rocks->db, cursor->options);
}

static EngineCursor *rocks_cursor_open(Engine *engine, const StoreSnapshot *snapshot, Slice from,
                                       Slice to, bool is_group)
{
    EngineCursor *cursor = MEM_NEW(EngineCursor);
    cursor->rocks = rocks_of(engine);
    cursor->is_group = is_group;
    buf_init(&cursor->left, FULL_KEY_BYTES_MAX + 1);
    cursor->read = snapshot != NULL ? snapshot->read : STORE_READ_ANY;
    cursor->snapshot = snapshot != NULL ? rocks_snapshot(snapshot) : NULL;
    if (cursor->snapshot != NULL && is_group) {
        cursor->groups = snapshots_take_groups(cursor->snapshot);
        cursor->iterator = cursor->groups->iterator;
        return cursor;
    }
    open_iterator(cursor, from, to, is_group);
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

/* Before a step in memory: keeps the key that the iterator stands on, for verify_end. */
static void keep_key(EngineCursor *cursor)
{
    size_t len = 0;
    const char *ptr = rocksdb_iter_key(cursor->iterator, &len);
    buf_reset(&cursor->left);
    buf_bytes(&cursor->left, ptr, len);
}

/* Makes the kept key the next one that there can be; false if that is not in the group. Keys of a
 * group have the same length, and a seek must be to a key of the group (prefix_filter.c). */
static bool raise_key(EngineCursor *cursor)
{
    Buf *key = &cursor->left;
    if (!cursor->is_group) {
        buf_byte(key, 0);
        return true;
    }
    const StoreMerge *merge = merge_of(cursor->rocks->engine.merge, buf_view(key));
    ASSERT(merge != NULL);
    ASSERT(key->len >= merge->tail_bytes);
    for (size_t i = 1; i <= merge->tail_bytes; i++) {
        if ((uint8_t)++key->ptr[key->len - i] != 0)
            return true;
    }
    return false;
}

/* RocksDB ends a walk in memory without an error where the next table of a level is not in memory.
 * A seek to the next key reports that (I9). */
static void verify_end(EngineCursor *cursor, EngineMove move)
{
    if (move == ENGINE_PREV)
        seek_before(cursor->iterator, buf_view(&cursor->left));
    else if (raise_key(cursor))
        rocksdb_iter_seek(cursor->iterator, cursor->left.ptr, cursor->left.len);
}

static Status rocks_cursor_move(EngineCursor *cursor, EngineMove move, Slice key, EngineItem *item,
                                bool *found, Error *err)
{
    rocksdb_iterator_t *iterator = cursor->iterator;
    bool is_step = move == ENGINE_NEXT || move == ENGINE_PREV;
    bool verifies = is_step && cursor->read == STORE_READ_MEMORY;
    if (verifies)
        keep_key(cursor);
    move_iterator(iterator, move, key);
    if (verifies && !rocksdb_iter_valid(iterator))
        verify_end(cursor, move);
    if (!rocksdb_iter_valid(iterator)) {
        char *text = NULL;
        rocksdb_iter_get_error(iterator, &text);
        cursor->has_failed = cursor->has_failed || text != NULL;
        if (is_incomplete(cursor->read, text)) {
            rocksdb_free(text);
            return engine_not_in_memory(err);
        }
        if (text != NULL)
            return read_error(cursor->rocks, text, err);
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
    if (cursor->groups != NULL) {
        snapshots_give_groups(cursor->snapshot, cursor->groups, cursor->has_failed);
    } else {
        rocksdb_iter_destroy(cursor->iterator);
        rocksdb_readoptions_destroy(cursor->options);
    }
    buf_done(&cursor->left);
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

/* Ends writing (R2): keeps the reason for later writes, and adds to the error what to expect. What
 * has just failed may be in the log nevertheless. */
static Status break_off(RocksEngine *rocks, Error *err)
{
    Error reason = *err;
    bool is_certain = sync_marks_end_logs(rocks->marks);
    Status status = error_set(err, reason.status, SUB_NONE,
                              "%.300s; writes are taken again after a restart", reason.message);
    if (!atomic_exchange(&rocks->is_breaking, true)) {
        rocks->breakage = *err;
        atomic_store_explicit(&rocks->is_broken, true, memory_order_release);
    }
    return is_certain ? status
                      : error_set(err, reason.status, SUB_NONE,
                                  "%.300s; writes are taken again after a restart, and only then "
                                  "it is known whether this one was kept",
                                  reason.message);
}

Status rocks_check_writable(const RocksEngine *rocks, Error *err)
{
    if (atomic_load_explicit(&rocks->is_broken, memory_order_acquire)) {
        *err = rocks->breakage;
        return err->status;
    }
    if (rocks->is_read_only)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the store is open for reading only");
    return STATUS_OK;
}

static Status write_batch(RocksEngine *rocks, const rocksdb_writeoptions_t *options,
                          rocksdb_writebatch_t *batch, Error *err)
{
    TRY(rocks_check_writable(rocks, err));
    char *text = NULL;
    pthread_mutex_lock(&rocks->gate);
    rocksdb_write(rocks->db, options, batch, &text);
    pthread_mutex_unlock(&rocks->gate);
    snapshots_turn(&rocks->snapshots);
    if (text == NULL) {
        sync_marks_write(rocks->marks); /* before completions are called */
        return STATUS_OK;
    }
    /* Only the message names the file. */
    bool heals = strstr(text, ".sst") != NULL && strstr(text, ".log") == NULL &&
                 strstr(text, "No space left on device") != NULL;
    Status status = rocksdb_error(err, rocks->folder, "cannot write", text);
    note_damage(rocks, err);
    return heals ? status : break_off(rocks, err);
}

/* Puts the key's value as it is before this group into the batch (R5): the operands that made it
 * need not be read again. Only this thread writes, and no space is dropped while it is written to,
 * so that the value cannot change before the batch is applied. A key that cannot be read keeps its
 * operands. */
static void settle_key(RocksEngine *rocks, Slice key)
{
    AUTO(store_value_release) StoreValue stored = {0};
    StoreFound found = STORE_ABSENT;
    Error ignored;
    if (rocks_get(&rocks->engine, NULL, key, STORE_READ_ANY, &stored, &found, &ignored) ==
            STATUS_OK &&
        found == STORE_FOUND)
        rocksdb_writebatch_put(rocks->batch, key.ptr, key.len, stored.data.ptr, stored.data.len);
}

static void add_merges(RocksEngine *rocks, Slice records)
{
    MergeRecord record;
    while (merge_record_next(&records, &record)) {
        if (hot_keys_note(&rocks->hot_keys, record.key))
            settle_key(rocks, record.key);
        rocksdb_writebatch_merge(rocks->batch, record.key.ptr, record.key.len, record.operand.ptr,
                                 record.operand.len);
    }
}

static Status rocks_write(Engine *engine, const EngineWrites *writes, size_t count, Error *err)
{
    RocksEngine *rocks = rocks_of(engine);
    size_t bytes = 0;
    rocksdb_writebatch_clear(rocks->batch);
    hot_keys_next_group(&rocks->hot_keys);
    for (size_t i = 0; i < count; i++) {
        bytes += writes[i].tree.bytes + writes[i].merges.len;
        tree_each(&writes[i].tree, add_to_batch, rocks->batch);
        add_merges(rocks, writes[i].merges);
    }
    Status status = write_batch(rocks, rocks->write_options, rocks->batch, err);
    bool reclaims = atomic_load(&rocks->is_tight) && !atomic_load(&rocks->is_damaged);
    for (size_t i = 0; status == STATUS_OK && reclaims && i < count; i++)
        reclaimer_note(&rocks->reclaimer, &writes[i].tree);
    rocks->batch_bytes = bytes > rocks->batch_bytes ? bytes : rocks->batch_bytes;
    compaction_delay_note(&rocks->delay, bytes, clock_monotonic_us(clock_real()),
                          rocks_has_much_room, rocks);
    return status;
}

Status rocksdb_engine_sync(Engine *engine, Error *err)
{
    RocksEngine *rocks = rocks_of(engine);
    TRY(rocks_check_writable(rocks, err));
    char *text = NULL;
    rocksdb_flush_wal(rocks->db, 1, &text);
    if (text != NULL) {
        Status failed = rocksdb_error(err, rocks->folder, "cannot sync", text);
        ASSERT(failed != STATUS_OK);
        return break_off(rocks, err);
    }
    sync_marks_write(rocks->marks);
    return STATUS_OK;
}

static EngineLoad *rocks_load_begin(Engine *engine, uint8_t rising_kind)
{
    return ingester_load_begin(&rocks_of(engine)->ingester, rising_kind);
}

static Status rocks_load_link(Engine *engine, EngineLoad *load, Error *err)
{
    RocksEngine *rocks = rocks_of(engine);
    TRY(rocks_check_writable(rocks, err));
    Status status = ingester_load_link(load, err);
    snapshots_turn(&rocks->snapshots);
    sync_marks_write(rocks->marks); /* the MANIFEST was synced */
    return status;
}

static Status rocks_probe(Engine *engine, Error *err)
{
    RocksEngine *rocks = rocks_of(engine);
    TRY(rocks_check_room(rocks, ENGINE_TAKES_ROOM, 0, err));
    rocksdb_writebatch_clear(rocks->batch);
    return write_batch(rocks, rocks->write_options, rocks->batch,
                       err); /* an empty one goes the whole way too */
}

/* Needs only the last bytes of room: this is how room is made.
 *
 * There are three steps, and the process may end after each: it writes the mark that hides the
 * keys, synced even if durability is relaxed, since files do not come back; it removes whole files
 * that hold nothing else; the rest is removed in the background.
 *
 * Removing files would also take them from older snapshots (I7), so it is done only when no
 * snapshot is open. One that is opened later sees the mark. Iterators hold their files. 'last_key'
 * is inside the range: RocksDB's bound is inclusive, and a file that ends with the first key of the
 * next space must stay. */
static Status rocks_drop(Engine *engine, StoreSpace first, StoreSpace last, Error *err)
{
    RocksEngine *rocks = rocks_of(engine);
    TRY(rocks_check_room(rocks, ENGINE_MAKES_ROOM, 0, err));
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

    if (atomic_load(&rocks->snapshots.count) == 0) {
        char *text = NULL;
        rocksdb_delete_file_in_range(rocks->db, from.ptr, from.len, last_key.ptr, last_key.len,
                                     &text);
        rocksdb_free(text); /* the keys are gone already; a later compaction frees the bytes */
    }
    if (!atomic_load(&rocks->is_damaged))
        reclaimer_push(&rocks->reclaimer, from, last_key, bytes);
    return STATUS_OK;
}

static void rocks_idle(Engine *engine)
{
    RocksEngine *rocks = rocks_of(engine);
    snapshots_turn(&rocks->snapshots);
    compaction_delay_end(&rocks->delay);
    if (rocks->batch_bytes > BATCH_KEEP_BYTES_MAX) {
        rocksdb_writebatch_destroy(rocks->batch);
        rocks->batch = rocksdb_writebatch_create();
        rocks->batch_bytes = 0;
    }
}

static uint64_t rocks_estimate(Engine *engine, Slice from, Slice to)
{
    return reclaimer_bytes(&rocks_of(engine)->reclaimer, from, to);
}

static void rocks_usage(Engine *engine, StoreUsage *usage)
{
    RocksEngine *rocks = rocks_of(engine);
    uint64_t memtables = rocks_property(rocks, "rocksdb.size-all-mem-tables");
    /* The log holds what the memtables hold, about as large; asking the disk would take longer
     * than a caller on an event loop can wait. */
    usage->disk_bytes = rocks_property(rocks, "rocksdb.total-sst-files-size") + memtables;
    usage->memory_bytes = memtables + rocksdb_cache_get_usage(rocks->cache) +
                          rocks_property(rocks, "rocksdb.estimate-table-readers-mem");
}

/* Writes out what is only in the log: opening would have to do it otherwise, after reading it all
 * back. The log is synced for relaxed durability, in case the flush is not possible. */
static void settle(RocksEngine *rocks)
{
    char *text = NULL;
    rocksdb_flush_wal(rocks->db, 1, &text);
    rocksdb_free(text); /* a relaxed store does not promise this */
    sync_marks_write(rocks->marks);
    text = NULL;
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flush(rocks->db, options, &text);
    rocksdb_free(text); /* the log has it */
    rocksdb_flushoptions_destroy(options);
}

static void rocks_close(Engine *engine)
{
    RocksEngine *rocks = rocks_of(engine);
    if (!atomic_load(&rocks->is_broken) && !rocks->is_read_only)
        settle(rocks);
    reclaimer_stop(&rocks->reclaimer);
    snapshots_done(&rocks->snapshots);
    rocksdb_writebatch_destroy(rocks->batch);
    hot_keys_done(&rocks->hot_keys);
    rocksdb_readoptions_destroy(rocks->read_any);
    rocksdb_readoptions_destroy(rocks->read_memory);
    rocksdb_writeoptions_destroy(rocks->write_options);
    rocksdb_writeoptions_destroy(rocks->write_synced);
    rocksdb_close(rocks->db);
    ingester_done(&rocks->ingester);
    close_folder(rocks);
}

static const EngineOps ROCKS_OPS = {
    .get = rocks_get,
    .snapshot_open = rocks_snapshot_open,
    .snapshot_close = rocks_snapshot_close,
    .cursor_open = rocks_cursor_open,
    .cursor_move = rocks_cursor_move,
    .cursor_close = rocks_cursor_close,
    .room = rocks_room,
    .write = rocks_write,
    .load_begin = rocks_load_begin,
    .load_add = ingester_load_add,
    .load_merge = ingester_load_merge,
    .load_link = rocks_load_link,
    .load_end = ingester_load_end,
    .probe = rocks_probe,
    .drop = rocks_drop,
    .checkpoint = rocks_checkpoint,
    .checkpoint_remove = rocks_checkpoint_remove,
    .idle = rocks_idle,
    .estimate = rocks_estimate,
    .usage = rocks_usage,
    .close = rocks_close,
};
