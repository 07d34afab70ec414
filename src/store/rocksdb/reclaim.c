/* reclaim.c - gives the space of dropped keys back to the disk, in the background.
 *
 * Dropping writes one mark over a range of keys; the files below still hold them. RocksDB would
 * find out in its own time, when it rewrites those files for another reason. For a range that is
 * worth it the reclaimer asks for that now, one range after another on a thread of its own, since
 * RocksDB does it on the thread that asks.
 */
#include "base/mem.h"
#include "store/rocksdb/rocksdb_int.h"

#include <signal.h>

/* Below this the ordinary compaction will do: a test suite that drops a thousand small containers
 * must not cause a thousand rewrites. */
#define RECLAIM_BYTES_MIN ((uint64_t)8 << 20)

enum { COMPACT_BOTTOM_ONCE = 3 }; /* kForceOptimized: the last level too, what is not yet done */

typedef struct Range {
    QueueNode node;
    size_t from_len;
    size_t to_len;
    char bytes[]; /* from, to */
} Range;

static void *reclaim_thread(void *ctx);
static bool start(Reclaimer *reclaimer);

void reclaimer_init(Reclaimer *reclaimer, rocksdb_t *db)
{
    reclaimer->db = db;
    mailbox_init(&reclaimer->mailbox);
    atomic_init(&reclaimer->stopping, false);
    int failed = pthread_mutex_init(&reclaimer->lock, NULL);
    ASSERT(failed == 0);
}

uint64_t reclaimer_bytes(Reclaimer *reclaimer, Slice from, Slice to)
{
    uint64_t bytes = 0;
    char *text = NULL;
    rocksdb_approximate_sizes(reclaimer->db, 1, &from.ptr, &from.len, &to.ptr, &to.len, &bytes,
                              &text);
    rocksdb_free(text); /* not knowing the size is a reason to leave it to RocksDB */
    return bytes;
}

void reclaimer_push(Reclaimer *reclaimer, Slice from, Slice to, uint64_t bytes)
{
    if (bytes < RECLAIM_BYTES_MIN || !start(reclaimer)) {
        char *text = NULL;
        rocksdb_suggest_compact_range(reclaimer->db, from.ptr, from.len, to.ptr, to.len, &text);
        rocksdb_free(text); /* it was only a suggestion */
        return;
    }
    Range *range = mem_alloc(sizeof(Range) + from.len + to.len);
    range->from_len = from.len;
    range->to_len = to.len;
    memcpy(range->bytes, from.ptr, from.len);
    memcpy(range->bytes + from.len, to.ptr, to.len);
    mailbox_post(&reclaimer->mailbox, &range->node);
}

/* False if there is no thread to be had. */
static bool start(Reclaimer *reclaimer)
{
    pthread_mutex_lock(&reclaimer->lock);
    if (!reclaimer->started) {
        sigset_t all, old;
        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &old);
        reclaimer->started =
            pthread_create(&reclaimer->thread, NULL, reclaim_thread, reclaimer) == 0;
        (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    bool started = reclaimer->started;
    pthread_mutex_unlock(&reclaimer->lock);
    return started;
}

void reclaimer_stop(Reclaimer *reclaimer)
{
    atomic_store(&reclaimer->stopping, true);
    rocksdb_cancel_all_background_work(reclaimer->db, 1);
    if (reclaimer->started) {
        mailbox_post(&reclaimer->mailbox, &reclaimer->stop);
        (void)pthread_join(reclaimer->thread, NULL); /* fails only for a thread that is not ours */
    }
    (void)pthread_mutex_destroy(&reclaimer->lock);
    mailbox_done(&reclaimer->mailbox);
}

static void compact(Reclaimer *reclaimer, const Range *range)
{
    rocksdb_compactoptions_t *options = rocksdb_compactoptions_create();
    /* Not exclusive: ordinary compactions go on, so that writers do not have to wait. */
    rocksdb_compactoptions_set_exclusive_manual_compaction(options, 0);
    rocksdb_compactoptions_set_bottommost_level_compaction(options, COMPACT_BOTTOM_ONCE);
    rocksdb_compact_range_opt(reclaimer->db, options, range->bytes, range->from_len,
                              range->bytes + range->from_len, range->to_len);
    rocksdb_compactoptions_destroy(options);
}

static void *reclaim_thread(void *ctx)
{
    Reclaimer *reclaimer = ctx;
    for (;;) {
        QueueNode *node = mailbox_wait(&reclaimer->mailbox);
        while (node != NULL) {
            if (node == &reclaimer->stop)
                return NULL;
            Range *range = CONTAINER_OF(node, Range, node);
            node = node->next;
            if (!atomic_load(&reclaimer->stopping))
                compact(reclaimer, range);
            mem_free(range);
        }
    }
}
