/* move_driver.c - see move_driver_int.h.
 *
 *     stage         what is done
 *     WAITING       find the cuts; CATALOG_BEGIN_MOVE makes the targets
 *     COPYING       copy piece by piece, at the rate that is allowed
 *     CATCHING_UP   repeat what was written meanwhile, until little is left
 *     SWITCHING     fence the sources, CATALOG_END_MOVE changes the map, retire the sources
 *     FAILED        cancel the move, CATALOG_UNDO_MOVE removes the targets
 */
#include "catalog/move_driver_int.h"

#include "base/mem.h"
#include "catalog/catalog_int.h"
#include "catalog/split_int.h"

#include <time.h>

enum {
    /* Changes that are left when the fence is set: a millisecond or two of catching up. */
    FENCE_CHANGES_MAX = 200,
    CATCH_UPS_MAX = 10000, /* rounds before the source is taken to be too busy */
    FENCES_MAX = 20,       /* fences that may time out before the same */
    PURGE_WAIT_MS = 10,
    OUTCOME_WAIT_MS = 10,
    PURGE_WAITS_MAX = 6000, /* before a move gives up, because partition keys are being deleted */
};

/* One move. */
typedef struct Job {
    MoveDriver *driver;
    const MoveOrder *order;
    uint64_t event;
    MoveStage stage;
    Arena arena;
    Container *container; /* a reference, with the targets pending; NULL before they are made */
    Move *move;           /* NULL before it is begun */
    uint64_t begun_us;    /* when copying began (monotonic) */
    uint64_t rest_us;     /* the next piece is copied so long after 'begun_us' at the earliest */
} Job;

/* ---- stages ---- */

static void show_progress(Job *job)
{
    MoveProgress progress = job->move == NULL ? (MoveProgress){0} : move_progress(job->move);
    move_orders_show_stage(job->driver->orders, job->event, job->stage, progress);
}

/* The transitions drawn at MoveStage. */
static bool may_follow(MoveStage from, MoveStage to)
{
    switch (to) {
    case MOVE_WAITING:
        return false;
    case MOVE_COPYING:
        return from == MOVE_WAITING;
    case MOVE_CATCHING_UP:
        return from == MOVE_COPYING || from == MOVE_SWITCHING;
    case MOVE_SWITCHING:
        return from == MOVE_CATCHING_UP;
    case MOVE_DONE:
        return from == MOVE_SWITCHING;
    case MOVE_FAILED:
        return !move_stage_is_final(from);
    }
    return false;
}

static void enter(Job *job, MoveStage stage)
{
    ASSERT(may_follow(job->stage, stage));
    job->stage = stage;
    show_progress(job);
}

static bool is_stopped(const Job *job)
{
    return move_orders_is_stopped(job->driver->orders);
}

/* The newest state of the container, as a reference; NULL if it was deleted. */
static Container *find_container(const Job *job)
{
    CatalogReader reader;
    catalog_reader_init(&reader, job->driver->catalog);
    const Container *container =
        snapshot_container(catalog_read(&reader), job->order->database, job->order->container);
    Container *found = container == NULL ? NULL : container_ref(container);
    catalog_reader_done(&reader);
    return found;
}

static Status is_one_key(const PartitionRange *range, Error *err)
{
    return error_set(err, STATUS_CONFLICT, SUB_NONE,
                     "Partition %u holds a single logical partition, which cannot be split.",
                     range->id);
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
                         "The container has no partition key range '%u' (any more).",
                         order->range_first);
    TRY(split_find(&job->arena, container_handle(container, range), container->partition_key.kind,
                   order->parts, order->by, out, err));
    if (out->count > 0)
        return STATUS_OK;
    if (order->by == SPLIT_BY_SIZE)
        return is_one_key(range, err);
    return error_set(err, STATUS_CONFLICT, SUB_NONE,
                     "Partition %u serves so few hashes that they cannot be divided.", range->id);
}

static Status was_deleted(Error *err)
{
    return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "The container was deleted.");
}

static Status is_elsewhere(const PartitionRange *range, Error *err)
{
    return error_set(err, STATUS_NOT_OWNER, SUB_NONE,
                     "Partition %u is served by another node; a move needs it here.", range->id);
}

/* The first of these ranges that is served elsewhere; NULL if all are served here. */
static const PartitionRange *find_elsewhere(const Container *container,
                                            const PartitionRange *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!handle_is_local(container_handle(container, &ranges[i])))
            return &ranges[i];
    }
    return NULL;
}

/* The sources as the order names them; 0 if it is out of date, which the catalogue will say. */
static size_t find_sources(const Job *job, const Container *container, const PartitionRange **first)
{
    *first = container_range(container, job->order->range_first);
    const PartitionRange *last = container_range(container, job->order->range_last);
    return *first == NULL || last == NULL || last < *first ? 0 : (size_t)(last - *first) + 1;
}

/* Brings the sources here, of which some are served elsewhere, and looks again. */
static Status gather(Job *job, Container **container, Error *err)
{
    const CatalogPlacement *placement = job->driver->placement;
    const PartitionRange *sources = NULL;
    size_t count = find_sources(job, *container, &sources);
    const PartitionRange *elsewhere = find_elsewhere(*container, sources, count);
    if (elsewhere == NULL)
        return STATUS_OK;
    if (placement == NULL || placement->gather == NULL)
        return is_elsewhere(elsewhere, err);
    /* It would be brought here again and again, and spread again after that. */
    const MoveOrder *order = job->order;
    if (order->parts > 1 && order->by == SPLIT_BY_SIZE && order->cut.len == 0 &&
        handle_known_usage(container_handle(*container, elsewhere),
                           clock_monotonic_us(job->driver->clock))
            .is_one_key)
        return is_one_key(elsewhere, err);
    StoreSpace *spaces = ARENA_NEW_ARRAY(&job->arena, StoreSpace, count);
    for (size_t i = 0; i < count; i++)
        spaces[i] = sources[i].space;
    TRY(placement->gather(placement->ctx, spaces, count, err));
    container_unref(TAKE(*container));
    *container = find_container(job);
    if (*container == NULL)
        return was_deleted(err);
    count = find_sources(job, *container, &sources);
    elsewhere = find_elsewhere(*container, sources, count);
    return elsewhere == NULL ? STATUS_OK : is_elsewhere(elsewhere, err);
}

/* Lets the catalogue make the targets. */
static Status begin(Job *job, Error *err)
{
    const MoveOrder *order = job->order;
    AUTO(container_unref) Container *container = find_container(job);
    if (container == NULL)
        return was_deleted(err);
    TRY(gather(job, &container, err));
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
    TRY(catalog_change(job->driver->catalog, &change, err));
    job->container = container_ref(change.result_container);
    catalog_change_release(&change);
    return STATUS_OK;
}

static const MovePart *parts_of(Job *job, const PartitionRange *ranges, size_t count)
{
    MovePart *parts = ARENA_NEW_ARRAY(&job->arena, MovePart, count);
    for (size_t i = 0; i < count; i++)
        parts[i] = (MovePart){
            .partition = handle_local(container_handle(job->container, &ranges[i])),
            .epk_from = ranges[i].min_bytes,
        };
    return parts;
}

static Status open_move(Job *job, Error *err)
{
    const Container *container = job->container;
    size_t source_count = 0;
    const PartitionRange *sources = container_sources(container, &source_count);
    ASSERT(sources != NULL);
    const PartitionRange *elsewhere = find_elsewhere(container, sources, source_count);
    if (elsewhere == NULL)
        elsewhere = find_elsewhere(container, container->pending, container->pending_count);
    if (elsewhere != NULL)
        return is_elsewhere(elsewhere, err);
    const MovePart *from = parts_of(job, sources, source_count);
    const MovePart *to = parts_of(job, container->pending, container->pending_count);
    job->move = move_new(from, source_count, to, container->pending_count);
    move_orders_show_ranges(job->driver->orders, job->event, container);
    return move_begin(job->move, err);
}

/* Why the move must not go on; STATUS_OK if it may. */
static Status check_stop(const Job *job, Error *err)
{
    if (is_stopped(job))
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "The server is being stopped.");
    if (move_orders_is_hurried(job->driver->orders, job->order->database))
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "A snapshot of the database is being saved or restored.");
    return STATUS_OK;
}

/* Sleeps until the rate allows the next piece, but for a second at most, so that the stop is seen.
 * False if it is still too early then. */
static bool keep_rate(Job *job)
{
    uint64_t rate = job->driver->bytes_per_s;
    if (rate == 0)
        return true;
    uint64_t due_us = move_progress(job->move).bytes_copied * 1000000 / rate;
    due_us = due_us > job->rest_us ? due_us : job->rest_us;
    uint64_t now_us = clock_monotonic_us(job->driver->clock) - job->begun_us;
    if (now_us >= due_us)
        return true;
    uint64_t wait_us = due_us - now_us < 1000000 ? due_us - now_us : 1000000;
    (void)nanosleep(&(struct timespec){.tv_sec = (time_t)(wait_us / 1000000),
                                       .tv_nsec = (long)(wait_us % 1000000) * 1000},
                    NULL);
    return wait_us == due_us - now_us;
}

/* Copies a piece, and plans a rest of the same length: whatever the rate, writing to the targets
 * takes processors and the disk from clients. */
static Status copy_piece(Job *job, bool *is_done, Error *err)
{
    uint64_t before_us = clock_monotonic_us(job->driver->clock);
    TRY(move_copy(job->move, is_done, err));
    uint64_t after_us = clock_monotonic_us(job->driver->clock);
    job->rest_us = after_us + (after_us - before_us) - job->begun_us;
    return STATUS_OK;
}

static Status copy(Job *job, Error *err)
{
    job->begun_us = clock_monotonic_us(job->driver->clock);
    bool is_done = false;
    enter(job, MOVE_COPYING);
    while (!is_done) {
        TRY(check_stop(job, err));
        if (keep_rate(job))
            TRY(copy_piece(job, &is_done, err));
        show_progress(job);
    }
    return STATUS_OK;
}

static Status catch_up(Job *job, Error *err)
{
    size_t left = SIZE_MAX;
    enter(job, MOVE_CATCHING_UP);
    for (int i = 0; left > FENCE_CHANGES_MAX; i++) {
        TRY(check_stop(job, err));
        if (i == CATCH_UPS_MAX)
            return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                             "The partition is written to faster than the copy can follow.");
        TRY(move_catch_up(job->move, &left, err));
        show_progress(job);
    }
    return STATUS_OK;
}

static Status wait_for_purges(Job *job, Error *err)
{
    for (int i = 0; move_has_purges(job->move); i++) {
        TRY(check_stop(job, err));
        if (i == PURGE_WAITS_MAX)
            return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                             "The deletion of partition keys takes too long.");
        (void)nanosleep(&(struct timespec){.tv_nsec = PURGE_WAIT_MS * 1000000L}, NULL);
    }
    return STATUS_OK;
}

/* On success the targets hold what the sources hold, and writes wait (I13). */
static Status set_fence(Job *job, Error *err)
{
    Status status = STATUS_TIMEOUT;
    for (int i = 0; status == STATUS_TIMEOUT && i < FENCES_MAX; i++) {
        TRY(wait_for_purges(job, err));
        TRY(catch_up(job, err));
        enter(job, MOVE_SWITCHING);
        status = move_fence(job->move, err);
    }
    return status;
}

/* The last reader of a source has let go of it (I12). */
static void on_gone(void *ctx, StoreSpace space)
{
    cleaner_link_post(ctx, (Garbage){space, space});
}

/* Whether this process serves the range, and in the same life as the container's handle says: a
 * partition that has gone to another node meanwhile may have been written to there. One that is
 * about to go has not been stopped yet; the placement knows, and from when the stage is SWITCHING
 * it lets none of this container go that it serves still. */
static bool is_still_here(const Job *job, const PartitionRange *range)
{
    const CatalogPlacement *placement = job->driver->placement;
    return handle_is_served(container_handle(job->container, range)) &&
           (placement == NULL || placement->is_local(placement->ctx, range->space));
}

static Status check_served(const Job *job, Error *err)
{
    const Container *container = job->container;
    size_t count = 0;
    const PartitionRange *sources = container_sources(container, &count);
    for (size_t i = 0; i < count; i++) {
        if (!is_still_here(job, &sources[i]))
            return is_elsewhere(&sources[i], err);
    }
    for (size_t i = 0; i < container->pending_count; i++) {
        if (!is_still_here(job, &container->pending[i]))
            return is_elsewhere(&container->pending[i], err);
    }
    return STATUS_OK;
}

static void on_source_stopped(PartitionStop *stop)
{
    mem_free(stop);
}

/* Nobody knows whether the map has changed. If it has, what the sources take from now on is lost.
 * So they are stopped before the fence is taken down: what waits is refused, and nothing was done.
 */
static void stop_sources(Job *job)
{
    size_t count = 0;
    const PartitionRange *sources = container_sources(job->container, &count);
    for (size_t i = 0; i < count; i++) {
        PartitionStop *stop = MEM_NEW(PartitionStop);
        stop->done = on_source_stopped;
        partition_stop(handle_local(container_handle(job->container, &sources[i])), stop);
    }
    move_cancel(job->move);
}

/* Waits until the catalogue was read again. If the sources are still in the map, they are served
 * on, where they were. */
static void serve_again(Job *job, uint64_t loads)
{
    const CatalogPlacement *placement = job->driver->placement;
    Catalog *catalog = job->driver->catalog;
    while (placement_loads(catalog) == loads && !is_stopped(job))
        (void)nanosleep(&(struct timespec){.tv_nsec = OUTCOME_WAIT_MS * 1000000L}, NULL);
    AUTO(container_unref) Container *now = is_stopped(job) ? NULL : find_container(job);
    size_t count = 0;
    const PartitionRange *sources = container_sources(job->container, &count);
    for (size_t i = 0; now != NULL && i < count; i++) {
        Error err;
        StoreSpace space = sources[i].space;
        if (container_range(now, sources[i].id) != NULL &&
            placement->is_local(placement->ctx, space) &&
            catalog_serve(catalog, space, &err) != STATUS_OK)
            LOG_WARN(job->driver->log, "move.source_lost", "container=%u range=%u reason=%s",
                     job->order->container, sources[i].id, err.message);
    }
}

/* Changes the map while writes wait, in one commit (I10). */
static Status change_map(Job *job, Error *err)
{
    uint64_t loads = placement_loads(job->driver->catalog);
    TRY(check_served(job, err));
    CatalogChange change = {
        .op = CATALOG_END_MOVE,
        .database = job->order->database,
        .container = job->order->container,
    };
    Status status = catalog_change(job->driver->catalog, &change, err);
    if (status == STATUS_TIMEOUT && job->driver->placement != NULL) {
        stop_sources(job);
        serve_again(job, loads);
    }
    TRY(status);
    size_t source_count = 0;
    (void)container_sources(job->container, &source_count);
    cleaner_link_ref(job->driver->cleaner, (uint32_t)source_count); /* each source gives one back */
    move_end(job->move, on_gone, job->driver->cleaner);
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

/* If the move cannot be undone now, the next start undoes it (I10). */
static void undo(Job *job)
{
    if (job->move != NULL)
        move_cancel(job->move);
    CatalogChange change = {
        .op = CATALOG_UNDO_MOVE,
        .database = job->order->database,
        .container = job->order->container,
    };
    Error err;
    if (catalog_change(job->driver->catalog, &change, &err) != STATUS_OK &&
        err.status != STATUS_NOT_FOUND)
        LOG_WARN(job->driver->log, "move.undo_failed", "container=%u reason=%s",
                 job->order->container, err.message);
    catalog_change_release(&change);
}

static void note_failure(Job *job, const Error *err)
{
    MoveDriver *driver = job->driver;
    move_orders_show_failure(driver->orders, job->event, err->message);
    LOG_WARN(driver->log, "move.failed", "container=%u range=%u reason=%s", job->order->container,
             job->order->range_first, err->message);
    AUTO(container_unref) Container *container = find_container(job);
    const PartitionRange *range =
        container == NULL ? NULL : container_range(container, job->order->range_first);
    if (range != NULL)
        move_backoffs_add(driver->backoffs, range->space, clock_monotonic_us(driver->clock));
}

static void log_done(const Job *job)
{
    MoveProgress progress = move_progress(job->move);
    LOG_INFO(job->driver->log, "move.done",
             "container=%u sources=%u..%u targets=%zu items=%llu bytes=%llu fence_us=%llu",
             job->order->container, job->order->range_first, job->order->range_last,
             job->container->pending_count, (unsigned long long)progress.items_copied,
             (unsigned long long)progress.bytes_copied, (unsigned long long)progress.fence_us);
}

void move_driver_run(MoveDriver *driver, const WaitingOrder *waiting)
{
    Job job = {.driver = driver, .order = &waiting->order, .event = waiting->event};
    arena_init(&job.arena, 4096);
    Error err;
    Status status = begin(&job, &err);
    if (status == STATUS_OK) {
        status = run_steps(&job, &err);
        if (status != STATUS_OK && !is_stopped(&job))
            undo(&job);
    }
    if (status != STATUS_OK)
        note_failure(&job, &err);
    enter(&job, status == STATUS_OK ? MOVE_DONE : MOVE_FAILED);
    if (status == STATUS_OK)
        log_done(&job);
    move_free(job.move);
    container_unref(job.container);
    arena_done(&job.arena);
}
