/* rocksdb_room.c - how much of the disk is kept for what RocksDB does in the background (R3). */
#include "store/rocksdb/rocksdb_engine_int.h"

#include <sys/statvfs.h>

/* What must stay free of the disk, in memtables. For flushes and the log: three memtables may wait
 * to be written out, and the log grows by two while that happens. For compaction, which writes the
 * new files before it removes the old ones: the step that is always taken, of four memtables with
 * the first level, which has eight; but never more than there is data. Not even what makes room may
 * use the last one, which is for the log alone. */
enum { FLUSH_MEMTABLES = 5, COMPACTION_MEMTABLES = 12, LAST_MEMTABLES = 1 };

/* With less than this beside the reserve, the bytes of deleted keys are given back at once. */
enum { TIGHT_MEMTABLES = 4 };

/* What a compaction that was delayed takes beside the reserve: see compaction_delay.c. */
enum { DELAY_MEMTABLES = 28 };

uint64_t rocks_property(const RocksEngine *rocks, const char *name)
{
    uint64_t value = 0;
    (void)rocksdb_property_int(rocks->db, name, &value); /* unknown counts as nothing */
    return value;
}

/* How much must be free beside what is written (R3). With enough 'free_bytes' RocksDB is not asked
 * for the size of the data. */
static uint64_t reserve(const RocksEngine *rocks, EngineNeed need, uint64_t free_bytes)
{
    uint64_t memtable = rocks->memtable_bytes;
    if (need == ENGINE_MAKES_ROOM)
        return LAST_MEMTABLES * memtable;
    uint64_t most = (FLUSH_MEMTABLES + COMPACTION_MEMTABLES) * memtable;
    if (free_bytes >= most + TIGHT_MEMTABLES * memtable)
        return most;
    uint64_t data = rocks_property(rocks, "rocksdb.total-sst-files-size");
    uint64_t least = FLUSH_MEMTABLES * memtable + data;
    return least < most ? least : most;
}

Status rocks_check_room(RocksEngine *rocks, EngineNeed need, size_t bytes, Error *err)
{
    struct statvfs info;
    if (fstatvfs(rocks->folder_fd, &info) != 0)
        return STATUS_OK; /* then the write itself fails if there is no room */
    uint64_t free_bytes = (uint64_t)info.f_bavail * info.f_frsize;
    uint64_t kept_bytes = reserve(rocks, need, free_bytes);
    if (need == ENGINE_TAKES_ROOM)
        atomic_store(&rocks->is_tight,
                     free_bytes < kept_bytes + TIGHT_MEMTABLES * rocks->memtable_bytes);
    if (free_bytes >= kept_bytes + bytes)
        return STATUS_OK;
    return error_set(err, STATUS_IO, SUB_NONE,
                     "cannot write: the disk is full (%llu MB are free, and %llu MB are kept for "
                     "work in the background)",
                     (unsigned long long)(free_bytes >> 20),
                     (unsigned long long)(kept_bytes >> 20));
}

Status rocks_room(Engine *engine, EngineNeed need, size_t bytes, Error *err)
{
    RocksEngine *rocks = rocks_of(engine);
    return rocks->is_read_only ? STATUS_OK : rocks_check_room(rocks, need, bytes, err);
}

bool rocks_has_much_room(void *ctx)
{
    RocksEngine *rocks = ctx;
    Error err;
    size_t bytes = (TIGHT_MEMTABLES + DELAY_MEMTABLES) * rocks->memtable_bytes;
    return rocks_check_room(rocks, ENGINE_TAKES_ROOM, bytes, &err) == STATUS_OK;
}

bool rocks_is_tight(void *ctx)
{
    RocksEngine *rocks = ctx;
    Error err;
    bool is_full = rocks_check_room(rocks, ENGINE_TAKES_ROOM, 0, &err) != STATUS_OK;
    /* Damaged data cannot be rewritten, so that no room can be won. */
    return (is_full || atomic_load(&rocks->is_tight)) && !atomic_load(&rocks->is_damaged);
}
