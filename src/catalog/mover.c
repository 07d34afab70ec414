/* mover.c - see moves.h and mover_int.h.
 *
 *     order, or something is due --> cuts --> catalogue: begin --> copy --> catch up --> fence
 *         --> catalogue: end --> the sources are retired          (or: cancel, catalogue: undo)
 *
 * The thread looks once a second, and when it is told, whether something is due. It waits for the
 * catalogue and for the disk; nobody waits for it.
 */
#include "catalog/mover_int.h"

#include "base/cond.h"
#include "base/mem.h"
#include "base/thread.h"
#include "catalog/split_int.h"
#include "partition/move.h"

#include <semaphore.h>
#include <stdio.h>
#include <time.h>

enum {
    /* Notes that are left when the fence is set: a millisecond or two of catching up. */
    FENCE_NOTES_MAX = 200,
    CATCH_UPS_MAX = 10000,  /* if there are always more, the source is too busy */
    FENCES_MAX = 20,        /* likewise, if much changes whenever one is set */
    REST_US = 30 * 1000000, /* after a failure */
};

Slice move_reason_text(MoveReason reason)
{
    static const Slice texts[] = {[MOVE_ASKED] = SLICE_INIT("asked"),
                                  [MOVE_THROUGHPUT] = SLICE_INIT("throughput"),
                                  [MOVE_STORAGE] = SLICE_INIT("storage")};
    return texts[reason];
}

Slice move_stage_text(MoveStage stage)
{
    static const Slice texts[] = {
        [MOVE_WAITING] = SLICE_INIT("waiting"),
        [MOVE_COPYING] = SLICE_INIT("copying"),
        [MOVE_CATCHING_UP] = SLICE_INIT("catching up"),
        [MOVE_SWITCHING] = SLICE_INIT("switching"),
        [MOVE_DONE] = SLICE_INIT("done"),
        [MOVE_FAILED] = SLICE_INIT("failed"),
    };
    return texts[stage];
}

/* ---- events ---- */

/* Under the lock. */
static MoveEvent *event_at(Mover *mover, uint64_t number)
{
    return &mover->events[number % MOVE_EVENTS_MAX];
}

static uint64_t event_new(Mover *mover, const MoveOrder *order, MoveReason reason)
{
    uint64_t number = ++mover->event_count;
    *event_at(mover, number) = (MoveEvent){
        .number = number,
        .reason = reason,
        .database = order->database,
        .container = order->container,
        .sources = {order->range_first, order->range_last},
        .source_count = order->range_first == order->range_last ? 1 : 2,
        .begun_us = clock_wall_us(mover->clock),
    };
    return number;
}

size_t mover_events(Mover *mover, MoveEvent *out, size_t max)
{
    if (!mover->is_running)
        return 0;
    (void)pthread_mutex_lock(&mover->lock);
    size_t count = 0;
    for (uint64_t n = mover->event_count; n > 0 && count < max && count < MOVE_EVENTS_MAX; n--)
        out[count++] = *event_at(mover, n);
    (void)pthread_mutex_unlock(&mover->lock);
    return count;
}

Status mover_order(Mover *mover, const MoveOrder *order, uint64_t *event, Error *err)
{
    if (!mover->is_running)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "Partitions are not moved here.");
    if (order->parts == 0 || order->parts > MOVE_RANGES_MAX || order->cut.len > 2 * EPK_BYTES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "A partition is split into 2 to %d parts.", MOVE_RANGES_MAX);
    (void)pthread_mutex_lock(&mover->lock);
    bool has_room = mover->order_count < MOVE_ORDERS_MAX;
    if (has_room) {
        WaitingOrder *waiting = &mover->orders[mover->order_count++];
        waiting->order = *order;
        if (order->cut.len > 0)
            memcpy(waiting->cut, order->cut.ptr, order->cut.len);
        *event = waiting->event = event_new(mover, order, MOVE_ASKED);
        (void)pthread_cond_signal(&mover->changed);
    }
    (void)pthread_mutex_unlock(&mover->lock);
    if (has_room)
        return STATUS_OK;
    Status status =
        error_set(err, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                  "%d splits and merges are waiting already; try again later.", MOVE_ORDERS_MAX);
    err->retry_after_ms = 1000;
    return status;
}

/* ---- the catalogue, and waiting for it ---- */

typedef struct WaitedChange {
    CatalogChange change;
    sem_t done;
} WaitedChange;

static void on_change(CatalogChange *change)
{
    (void)sem_post(&CONTAINER_OF(change, WaitedChange, change)->done);
}

/* The change's results are the caller's to release. */
static Status submit(Mover *mover, CatalogChange *change, Error *err)
{
    WaitedChange waited = {.change = *change};
    waited.change.done = on_change;
    int failed = sem_init(&waited.done, 0, 0);
    ASSERT(failed == 0);
    catalog_submit(mover->catalog, &waited.change);
    while (sem_wait(&waited.done) != 0)
        continue; /* a signal */
    (void)sem_destroy(&waited.done);
    *change = waited.change;
    if (change->status != STATUS_OK)
        *err = change->error;
    return change->status;
}

/* ---- one move ---- */

typedef struct Job {
    Mover *mover;
    const MoveOrder *order;
    uint64_t event;
    Arena arena;
    Container *container; /* a reference: as the move has begun */
    Move *move;
    uint64_t begun_us; /* monotonic, of the copying */
    uint64_t rest_us;  /* until when after that nothing is to be copied */
} Job;

static bool is_stopped(Mover *mover)
{
    (void)pthread_mutex_lock(&mover->lock);
    bool stop = mover->stop;
    (void)pthread_mutex_unlock(&mover->lock);
    return stop;
}

static void show(Job *job, MoveStage stage)
{
    Mover *mover = job->mover;
    (void)pthread_mutex_lock(&mover->lock);
    MoveEvent *event = event_at(mover, job->event);
    event->stage = stage;
    if (job->move != NULL) {
        MoveProgress progress = move_progress(job->move);
        event->bytes = progress.bytes_copied;
        event->items = progress.items_copied;
        event->caught_up = progress.items_caught_up;
        event->fence_us = progress.fence_us;
    }
    if (stage >= MOVE_DONE) {
        event->ended_us = clock_wall_us(mover->clock);
        mover_count(mover, event);
    }
    (void)pthread_mutex_unlock(&mover->lock);
}

/* The newest state of the container; a reference, or NULL. */
static Container *find_container(Mover *mover, uint32_t database, uint32_t number)
{
    CatalogReader reader;
    catalog_reader_init(&reader, mover->catalog);
    const Container *container = snapshot_container(catalog_read(&reader), database, number);
    Container *found = container == NULL ? NULL : container_ref(container);
    catalog_reader_done(&reader);
    return found;
}

static Status find_cuts(Job *job, const Container *container, Cuts *out, Error *err)
{
    const MoveOrder *order = job->order;
    *out = (Cuts){0};
    if (order->parts == 1)
        return STATUS_OK;
    if (order->cut.len > 0) {
        Slice *text = ARENA_NEW(&job->arena, Slice);
        *text = order->cut;
        *out = (Cuts){.texts = text, .count = 1};
        return STATUS_OK;
    }
    const PartitionRange *range = container_range(container, order->range_first);
    if (range == NULL || order->range_last != order->range_first)
        return error_set(err, STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE,
                         "There is no partition key range %u (any more).", order->range_first);
    TRY(split_find(&job->arena, container, range, order->parts, order->by, out, err));
    if (out->count > 0)
        return STATUS_OK;
    return error_set(err, STATUS_CONFLICT, SUB_NONE,
                     order->by == SPLIT_BY_SIZE
                         ? "Partition %u holds a single logical partition, which cannot be split."
                         : "Partition %u serves so few hashes that they cannot be divided.",
                     range->id);
}

/* Lets the catalogue make the targets. */
static Status begin(Job *job, Error *err)
{
    Mover *mover = job->mover;
    const MoveOrder *order = job->order;
    AUTO(container_unref)
    Container *container = find_container(mover, order->database, order->container);
    if (container == NULL)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "The container was deleted.");
    Cuts cuts;
    TRY(find_cuts(job, container, &cuts, err));
    CatalogChange change = {
        .op = CATALOG_BEGIN_MOVE,
        .database = order->database,
        .container = order->container,
        .range_first = order->range_first,
        .range_last = order->range_last,
        .cuts = cuts.texts,
        .cut_count = cuts.count,
    };
    TRY(submit(mover, &change, err));
    job->container = container_ref(change.result_container);
    catalog_change_release(&change);
    return STATUS_OK;
}

static void show_ranges(Job *job, const PartitionRange *sources, size_t source_count)
{
    Mover *mover = job->mover;
    const Container *container = job->container;
    uint64_t total = 0;
    (void)pthread_mutex_lock(&mover->lock);
    MoveEvent *event = event_at(mover, job->event);
    event->source_count = source_count < MOVE_RANGES_MAX ? source_count : MOVE_RANGES_MAX;
    for (size_t i = 0; i < event->source_count; i++) {
        event->sources[i] = sources[i].id;
        total += partition_usage(sources[i].partition).bytes;
    }
    event->bytes_total = total;
    event->target_count =
        container->pending_count < MOVE_RANGES_MAX ? container->pending_count : MOVE_RANGES_MAX;
    for (size_t i = 0; i < event->target_count; i++)
        event->targets[i] = container->pending[i].id;
    (void)pthread_mutex_unlock(&mover->lock);
}

static Status open_move(Job *job, Error *err)
{
    const Container *container = job->container;
    size_t source_count = 0;
    const PartitionRange *sources = container_sources(container, &source_count);
    ASSERT(sources != NULL);
    Partition **partitions = ARENA_NEW_ARRAY(&job->arena, Partition *, source_count);
    for (size_t i = 0; i < source_count; i++)
        partitions[i] = sources[i].partition;
    MoveTarget *targets = ARENA_NEW_ARRAY(&job->arena, MoveTarget, container->pending_count);
    for (size_t i = 0; i < container->pending_count; i++)
        targets[i] = (MoveTarget){.partition = container->pending[i].partition,
                                  .epk_from = container->pending[i].min_bytes};
    job->move = move_new(partitions, source_count, targets, container->pending_count);
    show_ranges(job, sources, source_count);
    return move_begin(job->move, err);
}

static Status stopped(Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "The server is being stopped.");
}

/* Sleeps until what was copied so far may have been; a second at most, to be stopped in: false if
 * it is still too early then. */
static bool keep_rate(Job *job)
{
    uint64_t rate = job->mover->rules.bytes_per_s;
    if (rate == 0)
        return true;
    uint64_t due_us = move_progress(job->move).bytes_copied * 1000000 / rate;
    due_us = due_us > job->rest_us ? due_us : job->rest_us;
    uint64_t now_us = clock_monotonic_us(job->mover->clock) - job->begun_us;
    if (now_us >= due_us)
        return true;
    uint64_t wait_us = due_us - now_us < 1000000 ? due_us - now_us : 1000000;
    (void)nanosleep(&(struct timespec){.tv_sec = (time_t)(wait_us / 1000000),
                                       .tv_nsec = (long)(wait_us % 1000000) * 1000},
                    NULL);
    return wait_us == due_us - now_us;
}

/* Afterwards it rests for as long as that took: what the targets write keeps processors and the
 * disk from clients, whatever the rate. */
static Status copy_piece(Job *job, bool *is_done, Error *err)
{
    uint64_t before_us = clock_monotonic_us(job->mover->clock);
    TRY(move_copy(job->move, is_done, err));
    uint64_t after_us = clock_monotonic_us(job->mover->clock);
    job->rest_us = after_us + (after_us - before_us) - job->begun_us;
    return STATUS_OK;
}

static Status copy(Job *job, Error *err)
{
    job->begun_us = clock_monotonic_us(job->mover->clock);
    bool is_done = false;
    while (!is_done) {
        show(job, MOVE_COPYING);
        if (is_stopped(job->mover))
            return stopped(err);
        if (keep_rate(job))
            TRY(copy_piece(job, &is_done, err));
    }
    return STATUS_OK;
}

static Status catch_up(Job *job, Error *err)
{
    size_t left = SIZE_MAX;
    for (int i = 0; left > FENCE_NOTES_MAX; i++) {
        show(job, MOVE_CATCHING_UP);
        if (is_stopped(job->mover))
            return stopped(err);
        if (i == CATCH_UPS_MAX)
            return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                             "The partition is written to faster than the copy can follow.");
        TRY(move_catch_up(job->move, &left, err));
    }
    return STATUS_OK;
}

/* Until the targets hold what the sources hold, and writes wait. */
static Status set_fence(Job *job, Error *err)
{
    Status status = STATUS_TIMEOUT;
    for (int i = 0; status == STATUS_TIMEOUT && i < FENCES_MAX; i++) {
        TRY(catch_up(job, err));
        show(job, MOVE_SWITCHING);
        status = move_fence(job->move, err);
    }
    return status;
}

static void yard_unref(MoverYard *yard)
{
    if (atomic_fetch_sub(&yard->refs, 1) > 1)
        return;
    (void)pthread_mutex_destroy(&yard->lock);
    mem_free(yard);
}

/* Nobody reads from a source any more. */
static void on_gone(void *ctx, StoreSpace space)
{
    MoverYard *yard = ctx;
    (void)pthread_mutex_lock(&yard->lock);
    if (yard->cleaner != NULL)
        cleaner_post(yard->cleaner, (Garbage){space, space});
    (void)pthread_mutex_unlock(&yard->lock);
    yard_unref(yard);
}

/* While writes wait, the map changes. */
static Status change_map(Job *job, Error *err)
{
    CatalogChange change = {
        .op = CATALOG_END_MOVE,
        .database = job->order->database,
        .container = job->order->container,
    };
    TRY(submit(job->mover, &change, err));
    size_t source_count = 0;
    (void)container_sources(job->container, &source_count);
    atomic_fetch_add(&job->mover->yard->refs, (uint32_t)source_count);
    move_end(job->move, on_gone, job->mover->yard);
    catalog_change_release(&change);
    return STATUS_OK;
}

static Status run_steps(Job *job, Error *err)
{
    TRY(open_move(job, err));
    TRY(copy(job, err));
    TRY(set_fence(job, err));
    return change_map(job, err);
}

/* If it cannot be undone now, the next start does. */
static void undo(Job *job)
{
    move_cancel(job->move);
    CatalogChange change = {
        .op = CATALOG_UNDO_MOVE,
        .database = job->order->database,
        .container = job->order->container,
    };
    Error err;
    if (submit(job->mover, &change, &err) != STATUS_OK && err.status != STATUS_NOT_FOUND)
        LOG_WARN(job->mover->log, "move.undo_failed", "container=%u reason=%s",
                 job->order->container, err.message);
    catalog_change_release(&change);
}

static void rest(Mover *mover, StoreSpace space)
{
    mover->rests[mover->rest_next++ % MOVE_RESTS_MAX] =
        (MoveRest){space, clock_monotonic_us(mover->clock) + REST_US};
}

static bool is_resting(const Mover *mover, StoreSpace space)
{
    uint64_t now_us = clock_monotonic_us(mover->clock);
    for (size_t i = 0; i < MOVE_RESTS_MAX; i++) {
        if (mover->rests[i].space == space && mover->rests[i].until_us > now_us)
            return true;
    }
    return false;
}

static void note_failure(Job *job, const Error *err)
{
    Mover *mover = job->mover;
    (void)pthread_mutex_lock(&mover->lock);
    MoveEvent *event = event_at(mover, job->event);
    (void)snprintf(event->message, sizeof(event->message), "%.*s", (int)sizeof(event->message) - 1,
                   err->message);
    (void)pthread_mutex_unlock(&mover->lock);
    LOG_WARN(mover->log, "move.failed", "container=%u range=%u reason=%s", job->order->container,
             job->order->range_first, err->message);
    AUTO(container_unref)
    Container *container = find_container(mover, job->order->database, job->order->container);
    const PartitionRange *range =
        container == NULL ? NULL : container_range(container, job->order->range_first);
    if (range != NULL)
        rest(mover, range->space);
}

static void run_order(Mover *mover, const MoveOrder *order, uint64_t event)
{
    Job job = {.mover = mover, .order = order, .event = event};
    arena_init(&job.arena, 4096);
    Error err;
    Status status = begin(&job, &err);
    if (status == STATUS_OK) {
        status = run_steps(&job, &err);
        if (status != STATUS_OK && !is_stopped(mover))
            undo(&job);
    }
    if (status != STATUS_OK)
        note_failure(&job, &err);
    show(&job, status == STATUS_OK ? MOVE_DONE : MOVE_FAILED);
    if (status == STATUS_OK) {
        MoveProgress progress = move_progress(job.move);
        LOG_INFO(mover->log, "move.done",
                 "container=%u sources=%u..%u targets=%zu items=%llu bytes=%llu fence_us=%llu",
                 order->container, order->range_first, order->range_last,
                 job.container->pending_count, (unsigned long long)progress.items_copied,
                 (unsigned long long)progress.bytes_copied, (unsigned long long)progress.fence_us);
    }
    move_free(job.move);
    container_unref(job.container);
    arena_done(&job.arena);
}

/* ---- what is due ---- */

PartitionCounts mover_partition_counts(const Snapshot *snapshot, const Container *container,
                                       const ProvisionRules *rules)
{
    const Offer *offer = container->offer == 0 ? NULL : snapshot_offer(snapshot, container->offer);
    if (offer == NULL || container->partition_key.kind == PARTITION_NONE)
        return (PartitionCounts){0};
    uint32_t needed = provision_partitions(&offer->provision, rules);
    uint32_t new = provision_partitions_new(&offer->provision, rules);
    return (PartitionCounts){.needed = needed, .kept = new > needed ? new : needed};
}

static MoveOrder order_of(const Container *container, size_t first, size_t last, uint32_t parts)
{
    return (MoveOrder){
        .database = container->database,
        .container = container->info.number,
        .range_first = container->ranges[first].id,
        .range_last = container->ranges[last].id,
        .parts = parts,
    };
}

/* The range that holds most of those that are not left alone; SIZE_MAX: none. */
static size_t find_largest(const Mover *mover, const Container *container)
{
    size_t largest = SIZE_MAX;
    uint64_t most = 0;
    for (size_t i = 0; i < container->range_count; i++) {
        uint64_t bytes = partition_usage(container->ranges[i].partition).bytes;
        if (is_resting(mover, container->ranges[i].space) || (largest != SIZE_MAX && bytes <= most))
            continue;
        largest = i;
        most = bytes;
    }
    return largest;
}

/* The range whose split helps most: the largest of those that a cut can part what they hold of,
 * otherwise the one with the most hashes. SIZE_MAX: none. */
static size_t find_most_useful(const Mover *mover, const Container *container)
{
    PartitionKind kind = container->partition_key.kind;
    size_t best = SIZE_MAX;
    bool best_has_pair = false;
    double most = 0; /* bytes, or the part of all hashes */
    for (size_t i = 0; i < container->range_count; i++) {
        const PartitionRange *range = &container->ranges[i];
        if (is_resting(mover, range->space))
            continue;
        bool has_pair = split_has_pair(range);
        double weight =
            has_pair ? (double)partition_usage(range->partition).bytes
                     : epk_fraction(kind, range->max_bytes) - epk_fraction(kind, range->min_bytes);
        bool is_better = has_pair == best_has_pair ? weight > most : has_pair;
        if (best != SIZE_MAX && !is_better)
            continue;
        best = i;
        best_has_pair = has_pair;
        most = weight;
    }
    return best;
}

static bool find_split_for_throughput(const Mover *mover, const Container *container,
                                      uint32_t needed, MoveOrder *out, MoveReason *reason)
{
    size_t have = container->range_count;
    size_t at = have < needed ? find_most_useful(mover, container) : SIZE_MAX;
    if (at == SIZE_MAX)
        return false;
    size_t share = (needed + have - 1) / have;
    size_t parts = needed - have + 1 < share ? needed - have + 1 : share;
    parts = parts > MOVE_RANGES_MAX ? MOVE_RANGES_MAX : parts;
    *out = order_of(container, at, at, (uint32_t)parts);
    out->by = SPLIT_ALWAYS;
    *reason = MOVE_THROUGHPUT;
    return true;
}

static bool find_split_for_storage(const Mover *mover, const Container *container, MoveOrder *out,
                                   MoveReason *reason)
{
    size_t at = find_largest(mover, container);
    uint64_t max = mover->rules.partition_bytes_max;
    if (max == 0 || at == SIZE_MAX || partition_usage(container->ranges[at].partition).bytes <= max)
        return false;
    *out = order_of(container, at, at, 2);
    *reason = MOVE_STORAGE;
    return true;
}

static bool find_split(const Mover *mover, const Container *container, uint32_t needed,
                       MoveOrder *out, MoveReason *reason)
{
    return container->range_count < RANGES_MAX &&
           (find_split_for_throughput(mover, container, needed, out, reason) ||
            find_split_for_storage(mover, container, out, reason));
}

/* Two neighbours that hold least together, if that is not so much that they would soon be split. */
static bool find_merge(const Mover *mover, const Container *container, uint32_t kept,
                       MoveOrder *out, MoveReason *reason)
{
    if (kept == 0 || container->range_count <= kept)
        return false;
    uint64_t least = mover->rules.partition_bytes_max / 2;
    bool found = false;
    for (size_t i = 0; i + 1 < container->range_count; i++) {
        uint64_t bytes = partition_usage(container->ranges[i].partition).bytes +
                         partition_usage(container->ranges[i + 1].partition).bytes;
        if (bytes > least || is_resting(mover, container->ranges[i].space))
            continue;
        least = bytes;
        found = true;
        *out = order_of(container, i, i + 1, 1);
        *reason = MOVE_THROUGHPUT;
    }
    return found;
}

static bool is_due(const Mover *mover, const Snapshot *snapshot, const Container *container,
                   MoveOrder *out, MoveReason *reason)
{
    if (container->pending_count > 0 || container->partition_key.kind == PARTITION_NONE)
        return false;
    PartitionCounts counts = mover_partition_counts(snapshot, container, &mover->provision);
    return (mover->rules.splits && find_split(mover, container, counts.needed, out, reason)) ||
           (mover->rules.merges && find_merge(mover, container, counts.kept, out, reason));
}

static bool find_due(Mover *mover, MoveOrder *out, MoveReason *reason)
{
    CatalogReader reader;
    catalog_reader_init(&reader, mover->catalog);
    const Snapshot *snapshot = catalog_read(&reader);
    bool found = false;
    const Database *database;
    for (uint32_t d = 0; !found && (database = snapshot_next_database(snapshot, d)) != NULL;
         d = database->info.number + 1) {
        const Container *container;
        for (uint32_t c = 0;
             !found &&
             (container = snapshot_next_container(snapshot, database->info.number, c)) != NULL;
             c = container->info.number + 1)
            found = is_due(mover, snapshot, container, out, reason);
    }
    catalog_reader_done(&reader);
    return found;
}

/* ---- the thread ---- */

/* A second, or until there is an order or a notice; under the lock. */
static void wait_for_work(Mover *mover)
{
    uint64_t until_us = cond_after_ms(1000);
    while (!mover->stop && !mover->is_noticed && mover->order_count == 0 &&
           cond_wait_until(&mover->changed, &mover->lock, until_us))
        continue;
    mover->is_noticed = false;
}

static bool take_order(Mover *mover, WaitingOrder *out)
{
    if (mover->order_count == 0)
        return false;
    *out = mover->orders[0];
    out->order.cut = slice_make(out->cut, out->order.cut.len);
    mover->order_count--;
    memmove(mover->orders, mover->orders + 1, mover->order_count * sizeof(*mover->orders));
    return true;
}

/* Runs what was ordered, else what is due; false: there is nothing. */
static bool run_one(Mover *mover)
{
    WaitingOrder waiting = {0};
    (void)pthread_mutex_lock(&mover->lock);
    bool found = take_order(mover, &waiting);
    (void)pthread_mutex_unlock(&mover->lock);
    if (found)
        waiting.order.cut = slice_make(waiting.cut, waiting.order.cut.len);
    MoveReason reason = MOVE_ASKED;
    if (!found && find_due(mover, &waiting.order, &reason)) {
        found = true;
        (void)pthread_mutex_lock(&mover->lock);
        waiting.event = event_new(mover, &waiting.order, reason);
        (void)pthread_mutex_unlock(&mover->lock);
    }
    if (found)
        run_order(mover, &waiting.order, waiting.event);
    return found;
}

static void *run(void *arg)
{
    Mover *mover = arg;
    while (!is_stopped(mover)) {
        if (run_one(mover))
            continue;
        (void)pthread_mutex_lock(&mover->lock);
        wait_for_work(mover);
        (void)pthread_mutex_unlock(&mover->lock);
    }
    return NULL;
}

static void destroy(Mover *mover)
{
    (void)pthread_mutex_lock(&mover->yard->lock);
    mover->yard->cleaner = NULL;
    (void)pthread_mutex_unlock(&mover->yard->lock);
    yard_unref(mover->yard);
    (void)pthread_cond_destroy(&mover->changed);
    (void)pthread_mutex_destroy(&mover->lock);
}

Status mover_open(Mover *mover, const MoverOptions *options, Error *err)
{
    mover->catalog = options->catalog;
    mover->yard = MEM_NEW(MoverYard);
    atomic_init(&mover->yard->refs, 1);
    mover->yard->cleaner = options->cleaner;
    mover->rules = options->rules;
    mover->provision = options->provision;
    mover->clock = options->clock;
    mover->log = options->log;
    int failed = pthread_mutex_init(&mover->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_mutex_init(&mover->yard->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&mover->changed, NULL);
    ASSERT(failed == 0);
    Status status = thread_start(&mover->thread, "orrery-mover", run, mover, err);
    mover->is_running = status == STATUS_OK;
    if (!mover->is_running)
        destroy(mover);
    return status;
}

void mover_notice(Mover *mover)
{
    if (!mover->is_running)
        return;
    (void)pthread_mutex_lock(&mover->lock);
    mover->is_noticed = true;
    (void)pthread_cond_signal(&mover->changed);
    (void)pthread_mutex_unlock(&mover->lock);
}

void mover_close(Mover *mover)
{
    if (!mover->is_running)
        return;
    (void)pthread_mutex_lock(&mover->lock);
    mover->stop = true;
    (void)pthread_cond_signal(&mover->changed);
    (void)pthread_mutex_unlock(&mover->lock);
    (void)pthread_join(mover->thread, NULL);
    destroy(mover);
    mover->is_running = false;
}
