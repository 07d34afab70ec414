/* reclaim.c - gives the space of deleted keys back to the disk, in the background.
 *
 * Dropping writes one mark over a range of keys; the files still hold them until RocksDB rewrites
 * those files for another reason. For a range that is large enough the reclaimer asks for that now,
 * one range after another on a thread of its own, since RocksDB does it on the thread that asks.
 *
 * The same goes for keys that are deleted one by one while room is short: the marks take room, and
 * none is won before the files are rewritten. Where the keys lie is noted, as the range from the
 * first to the last of each neighbourhood, and compaction is tried again as long as room is short
 * and there is something to win: rewriting takes room itself, and fails without it.
 */
#include "base/mem.h"
#include "base/thread.h"
#include "base/thread_background.h"
#include "store/rocksdb/rocksdb_int.h"

/* Below this the ordinary compaction is enough: a test suite that drops a thousand small containers
 * must not cause a thousand rewrites. */
#define RECLAIM_BYTES_MIN ((uint64_t)8 << 20)

enum { COMPACT_BOTTOM_ONCE = 3 }; /* kForceOptimized: also the last level, each file once */

/* How long notes gather before they are looked at, and how long between two attempts. */
enum { GATHER_MS = 1000 };

/* Keys that share these bytes are neighbours: the space and, in it, the first byte, which usually
 * tells kinds of keys apart. */
enum { NEIGHBOUR_BYTES = SPACE_BYTES + 1 };

typedef struct Range {
    QueueNode node;
    size_t from_len;
    size_t to_len;
    char bytes[]; /* from, to */
} Range;

static void *reclaim_thread(void *ctx);
static bool start_locked(Reclaimer *reclaimer);
static void forget_locked(Reclaimer *reclaimer);

static Range *range_new(Slice from, Slice to)
{
    Range *range = mem_alloc(sizeof(Range) + from.len + to.len);
    range->from_len = from.len;
    range->to_len = to.len;
    memcpy(range->bytes, from.ptr, from.len);
    memcpy(range->bytes + from.len, to.ptr, to.len);
    return range;
}

static Slice range_from(const Range *range)
{
    return slice_make(range->bytes, range->from_len);
}

static Slice range_to(const Range *range)
{
    return slice_make(range->bytes + range->from_len, range->to_len);
}

void reclaimer_init(Reclaimer *reclaimer, rocksdb_t *db, bool (*is_tight)(void *ctx), void *ctx)
{
    reclaimer->db = db;
    reclaimer->is_tight = is_tight;
    reclaimer->ctx = ctx;
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
    rocksdb_free(text); /* an unknown size counts as 0, which leaves it to RocksDB */
    return bytes;
}

void reclaimer_push(Reclaimer *reclaimer, Slice from, Slice to, uint64_t bytes)
{
    bool started = false;
    if (bytes >= RECLAIM_BYTES_MIN) {
        pthread_mutex_lock(&reclaimer->lock);
        started = start_locked(reclaimer);
        pthread_mutex_unlock(&reclaimer->lock);
    }
    if (!started) {
        char *text = NULL;
        rocksdb_suggest_compact_range(reclaimer->db, from.ptr, from.len, to.ptr, to.len, &text);
        rocksdb_free(text); /* it was only a suggestion */
        return;
    }
    mailbox_post(&reclaimer->mailbox, &range_new(from, to)->node);
}

static void widen(Range **range, Slice key)
{
    Slice from = range_from(*range);
    Slice to = range_to(*range);
    bool is_before = slice_compare(key, from) < 0;
    if (!is_before && slice_compare(key, to) <= 0)
        return;
    Range *wider = is_before ? range_new(key, to) : range_new(from, key);
    mem_free(*range);
    *range = wider;
}

static void note_locked(Reclaimer *reclaimer, Slice key)
{
    Slice prefix = slice_first(key, NEIGHBOUR_BYTES);
    size_t at = 0;
    while (at < reclaimer->noted_count &&
           !slice_starts_with(range_from(reclaimer->noted[at]), prefix))
        at++;
    if (at == RECLAIMER_NOTED_MAX)
        widen(&reclaimer->noted[at - 1], key); /* one that covers much is better than none */
    else if (at == reclaimer->noted_count)
        reclaimer->noted[reclaimer->noted_count++] = range_new(key, key);
    else
        widen(&reclaimer->noted[at], key);
    reclaimer->has_news = true;
}

static void note_deleted(void *ctx, TreeEntry *entry)
{
    if (entry->deleted)
        note_locked(ctx, tree_entry_key(entry));
}

void reclaimer_note(Reclaimer *reclaimer, const Tree *writes)
{
    pthread_mutex_lock(&reclaimer->lock);
    bool is_first = reclaimer->noted_count == 0;
    tree_each(writes, note_deleted, reclaimer);
    bool wakes = is_first && reclaimer->noted_count > 0 && !reclaimer->is_woken;
    if (wakes && !start_locked(reclaimer)) {
        wakes = false;
        forget_locked(reclaimer); /* there is no thread that would use it */
    }
    reclaimer->is_woken = reclaimer->is_woken || wakes;
    pthread_mutex_unlock(&reclaimer->lock);
    if (wakes)
        mailbox_post(&reclaimer->mailbox, &reclaimer->wake);
}

/* False if no thread can be started. */
static bool start_locked(Reclaimer *reclaimer)
{
    Error err;
    if (!reclaimer->started)
        reclaimer->started = thread_start(&reclaimer->thread, "orrery-reclaim", reclaim_thread,
                                          reclaimer, &err) == STATUS_OK;
    return reclaimer->started;
}

static void forget_locked(Reclaimer *reclaimer)
{
    for (size_t i = 0; i < reclaimer->noted_count; i++)
        mem_free(reclaimer->noted[i]);
    reclaimer->noted_count = 0;
}

void reclaimer_stop(Reclaimer *reclaimer)
{
    atomic_store(&reclaimer->stopping, true);
    rocksdb_cancel_all_background_work(reclaimer->db, 1);
    if (reclaimer->started) {
        mailbox_post(&reclaimer->mailbox, &reclaimer->stop);
        (void)pthread_join(reclaimer->thread, NULL); /* fails only for a thread that is not ours */
    }
    forget_locked(reclaimer);
    (void)pthread_mutex_destroy(&reclaimer->lock);
    mailbox_done(&reclaimer->mailbox);
}

static uint64_t errors_count(Reclaimer *reclaimer)
{
    uint64_t count = 0;
    (void)rocksdb_property_int(reclaimer->db, "rocksdb.background-errors", &count);
    return count;
}

/* False if it may have failed: the C interface does not report it. */
static bool compact(Reclaimer *reclaimer, Slice from, Slice to)
{
    if (atomic_load(&reclaimer->stopping))
        return false;
    uint64_t errors = errors_count(reclaimer);
    rocksdb_compactoptions_t *options = rocksdb_compactoptions_create();
    /* Not exclusive: ordinary compactions go on, so that writers do not have to wait. */
    rocksdb_compactoptions_set_exclusive_manual_compaction(options, 0);
    rocksdb_compactoptions_set_bottommost_level_compaction(options, COMPACT_BOTTOM_ONCE);
    rocksdb_compact_range_opt(reclaimer->db, options, from.ptr, from.len, to.ptr, to.len);
    rocksdb_compactoptions_destroy(options);
    return errors_count(reclaimer) == errors;
}

/* Copies them, because more may be noted meanwhile. */
static size_t copy_noted(Reclaimer *reclaimer, Range *copies[RECLAIMER_NOTED_MAX])
{
    pthread_mutex_lock(&reclaimer->lock);
    size_t count = reclaimer->noted_count;
    for (size_t i = 0; i < count; i++)
        copies[i] = range_new(range_from(reclaimer->noted[i]), range_to(reclaimer->noted[i]));
    reclaimer->has_news = false;
    pthread_mutex_unlock(&reclaimer->lock);
    return count;
}

/* Makes one attempt on all that was noted. True if there should be another one. */
static bool reclaim_noted(Reclaimer *reclaimer)
{
    Range *ranges[RECLAIMER_NOTED_MAX];
    size_t count = copy_noted(reclaimer, ranges);
    bool is_tight = reclaimer->is_tight(reclaimer->ctx);
    bool failed = false;
    for (size_t i = 0; i < count; i++) {
        if (is_tight && !compact(reclaimer, range_from(ranges[i]), range_to(ranges[i])))
            failed = true;
        mem_free(ranges[i]);
    }
    pthread_mutex_lock(&reclaimer->lock);
    bool again = is_tight && (failed || reclaimer->has_news);
    if (!again) {
        forget_locked(reclaimer);
        reclaimer->is_woken = false;
    }
    pthread_mutex_unlock(&reclaimer->lock);
    return again;
}

static void *reclaim_thread(void *ctx)
{
    Reclaimer *reclaimer = ctx;
    thread_set_background();
    for (bool is_woken = false;;) {
        QueueNode *node = is_woken ? mailbox_wait_for(&reclaimer->mailbox, GATHER_MS)
                                   : mailbox_wait(&reclaimer->mailbox);
        if (node == NULL)
            is_woken = reclaim_noted(reclaimer);
        while (node != NULL) {
            if (node == &reclaimer->stop)
                return NULL;
            QueueNode *next = node->next;
            if (node == &reclaimer->wake) {
                is_woken = true;
            } else {
                Range *range = CONTAINER_OF(node, Range, node);
                (void)compact(reclaimer, range_from(range), range_to(range)); /* once is enough */
                mem_free(range);
            }
            node = next;
        }
    }
}
