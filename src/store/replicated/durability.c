/* durability.c - makes what was applied durable, once a second.
 *
 * RocksDB's log is not synced with each write: what it loses is in the journal. A place is durable
 * when a sync that began after it was written has succeeded; the journal is trimmed by that (J6).
 */
#include "base/cond.h"
#include "base/mem.h"
#include "store/replicated/replicated_int.h"
#include "store/rocksdb/rocksdb_local_int.h"

enum { PERIOD_MS = 1000 };

/* Of a space at the moment when the sync began. */
typedef struct Mark {
    ReplicaSpace *space;
    uint64_t life;
    uint64_t seq;
} Mark;

/* Under 'lock'. */
static Mark *note_places(const Replication *replication, size_t *count)
{
    *count = 0;
    Mark *marks = MEM_NEW_ARRAY(Mark, replication->space_count + 1);
    for (size_t i = 0; i < replication->space_count; i++) {
        ReplicaSpace *space = replication->spaces[i];
        if (space->applied.seq > space->durable_seq)
            marks[(*count)++] = (Mark){space, space->life, space->applied.seq};
    }
    return marks;
}

/* Under 'lock', which is given up meanwhile. */
static void sync_now(Replication *replication)
{
    size_t count = 0;
    Mark *marks = note_places(replication, &count);
    Error err = {.status = STATUS_OK};
    if (count > 0) {
        pthread_mutex_unlock(&replication->lock);
        err.status = rocksdb_engine_sync(replication->local, &err);
        pthread_mutex_lock(&replication->lock);
    }
    if (err.status != STATUS_OK)
        replication->local_failure = err;
    for (size_t i = 0; i < count && err.status == STATUS_OK; i++) {
        ReplicaSpace *space = marks[i].space;
        /* It may have been dropped meanwhile, and begun again. */
        if (space->life == marks[i].life)
            space->durable_seq = marks[i].seq;
    }
    mem_free(marks);
}

void *sync_thread(void *ctx)
{
    Replication *replication = ctx;
    pthread_mutex_lock(&replication->lock);
    while (!replication->is_stopping) {
        sync_now(replication);
        uint64_t until_us = cond_after_ms(PERIOD_MS);
        while (!replication->is_stopping &&
               cond_wait_until(&replication->sync_ended, &replication->lock, until_us))
            ; /* woken only to stop */
    }
    pthread_mutex_unlock(&replication->lock);
    return NULL;
}
