/* move_orders.c - see move_orders_int.h. */
#include "catalog/move_orders_int.h"

#include "base/cond.h"

#include <stdio.h>

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

void move_orders_open(MoveOrders *orders, const Clock *clock)
{
    ASSERT(!orders->is_open);
    orders->clock = clock;
    int failed = pthread_mutex_init(&orders->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&orders->changed, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&orders->holds_changed, NULL);
    ASSERT(failed == 0);
    orders->is_open = true;
}

void move_orders_close(MoveOrders *orders)
{
    ASSERT(orders->is_open);
    orders->is_open = false;
    (void)pthread_cond_destroy(&orders->changed);
    (void)pthread_cond_destroy(&orders->holds_changed);
    (void)pthread_mutex_destroy(&orders->lock);
}

static void lock(MoveOrders *orders)
{
    ASSERT(orders->is_open);
    (void)pthread_mutex_lock(&orders->lock);
}

static void unlock(MoveOrders *orders)
{
    (void)pthread_mutex_unlock(&orders->lock);
}

/* Under the lock, like all that takes or gives an event's address. */
static MoveEvent *event_at(MoveOrders *orders, uint64_t number)
{
    MoveEvent *event = &orders->events[number % MOVE_EVENTS_MAX];
    ASSERT(event->number == number);
    return event;
}

static uint64_t event_new(MoveOrders *orders, const MoveOrder *order, MoveReason reason)
{
    uint64_t number = ++orders->event_count;
    orders->events[number % MOVE_EVENTS_MAX] = (MoveEvent){
        .number = number,
        .reason = reason,
        .database = order->database,
        .container = order->container,
        .sources = {order->range_first, order->range_last},
        .source_count = order->range_first == order->range_last ? 1 : 2,
        .begun_us = clock_wall_us(orders->clock),
    };
    return number;
}

/* ---- for any thread ---- */

Status move_orders_add(MoveOrders *orders, const MoveOrder *order, uint64_t *event, Error *err)
{
    if (!orders->is_open)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "This server does not split or merge partitions.");
    if (order->parts == 0 || order->parts > MOVE_RANGES_MAX || order->cut.len > 2 * EPK_BYTES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "A partition is split into 2 to %d parts.", MOVE_RANGES_MAX);
    lock(orders);
    bool has_room = orders->waiting_count < MOVE_ORDERS_MAX;
    if (has_room) {
        WaitingOrder *waiting = &orders->waiting[orders->waiting_count++];
        waiting->order = *order;
        if (order->cut.len > 0)
            memcpy(waiting->cut, order->cut.ptr, order->cut.len);
        *event = waiting->event = event_new(orders, order, MOVE_ASKED);
        (void)pthread_cond_signal(&orders->changed);
    }
    unlock(orders);
    if (has_room)
        return STATUS_OK;
    Status status =
        error_set(err, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                  "%d splits and merges are waiting already; try again later.", MOVE_ORDERS_MAX);
    err->retry_after_ms = 1000;
    return status;
}

void move_orders_notice(MoveOrders *orders)
{
    if (!orders->is_open)
        return;
    lock(orders);
    orders->is_noticed = true;
    (void)pthread_cond_signal(&orders->changed);
    unlock(orders);
}

size_t move_orders_events(MoveOrders *orders, MoveEvent *out, size_t max)
{
    if (!orders->is_open)
        return 0;
    lock(orders);
    size_t count = 0;
    for (uint64_t n = orders->event_count; n > 0 && count < max && count < MOVE_EVENTS_MAX; n--)
        out[count++] = *event_at(orders, n);
    unlock(orders);
    return count;
}

MoveCounts move_orders_counts(MoveOrders *orders)
{
    if (!orders->is_open)
        return (MoveCounts){0};
    lock(orders);
    MoveCounts counts = orders->counts;
    unlock(orders);
    return counts;
}

ContainerMoves move_orders_of(MoveOrders *orders, const Container *container)
{
    ContainerMoves moves = {0};
    if (!orders->is_open)
        return moves;
    bool is_newest = true;
    lock(orders);
    for (uint64_t n = orders->event_count; n > 0 && orders->event_count - n < MOVE_EVENTS_MAX;
         n--) {
        const MoveEvent *event = event_at(orders, n);
        if (event->database != container->database || event->container != container->info.number)
            continue;
        moves.is_open = moves.is_open || !move_stage_is_final(event->stage);
        if (is_newest && event->stage == MOVE_FAILED) {
            moves.has_failed = true;
            moves.failed_at_us = event->ended_us;
        }
        is_newest = false;
    }
    unlock(orders);
    return moves;
}

/* ---- for the thread that carries orders out ---- */

void move_orders_wait(MoveOrders *orders)
{
    uint64_t until_us = cond_after_ms(1000);
    lock(orders);
    while (!orders->stop && !orders->is_noticed && orders->waiting_count == 0 &&
           cond_wait_until(&orders->changed, &orders->lock, until_us))
        continue;
    orders->is_noticed = false;
    unlock(orders);
}

void move_orders_stop(MoveOrders *orders)
{
    lock(orders);
    orders->stop = true;
    (void)pthread_cond_broadcast(&orders->holds_changed);
    (void)pthread_cond_signal(&orders->changed);
    unlock(orders);
}

bool move_orders_is_stopped(MoveOrders *orders)
{
    lock(orders);
    bool stop = orders->stop;
    unlock(orders);
    return stop;
}

bool move_orders_take(MoveOrders *orders, WaitingOrder *out)
{
    lock(orders);
    bool found = orders->waiting_count > 0;
    if (found) {
        *out = orders->waiting[0];
        out->order.cut = slice_make(out->cut, out->order.cut.len);
        orders->waiting_count--;
        memmove(orders->waiting, orders->waiting + 1,
                orders->waiting_count * sizeof(*orders->waiting));
    }
    unlock(orders);
    return found;
}

uint64_t move_orders_add_event(MoveOrders *orders, const MoveOrder *order, MoveReason reason)
{
    ASSERT(reason != MOVE_ASKED);
    lock(orders);
    uint64_t number = event_new(orders, order, reason);
    unlock(orders);
    return number;
}

/* ---- for the driver ---- */

void move_orders_show_ranges(MoveOrders *orders, uint64_t number, const Container *container)
{
    size_t source_count = 0;
    const PartitionRange *sources = container_sources(container, &source_count);
    ASSERT(sources != NULL);
    uint64_t total = 0;
    lock(orders);
    MoveEvent *event = event_at(orders, number);
    event->source_count = source_count < MOVE_RANGES_MAX ? source_count : MOVE_RANGES_MAX;
    for (size_t i = 0; i < event->source_count; i++) {
        event->sources[i] = sources[i].id;
        total += handle_usage(container_handle(container, &sources[i])).bytes;
    }
    event->bytes_total = total;
    event->target_count =
        container->pending_count < MOVE_RANGES_MAX ? container->pending_count : MOVE_RANGES_MAX;
    for (size_t i = 0; i < event->target_count; i++)
        event->targets[i] = container->pending[i].id;
    unlock(orders);
}

/* Counts a move that has ended. */
static void count(MoveCounts *counts, const MoveEvent *event)
{
    bool is_split = event->source_count == 1;
    if (event->stage == MOVE_DONE)
        *(is_split ? &counts->splits_done : &counts->merges_done) += 1;
    else
        *(is_split ? &counts->splits_failed : &counts->merges_failed) += 1;
    counts->bytes += event->bytes;
    counts->fence_us += event->fence_us;
    if (event->fence_us > counts->fence_us_max)
        counts->fence_us_max = event->fence_us;
}

void move_orders_show_stage(MoveOrders *orders, uint64_t number, MoveStage stage,
                            MoveProgress progress)
{
    lock(orders);
    MoveEvent *event = event_at(orders, number);
    ASSERT(!move_stage_is_final(event->stage));
    event->stage = stage;
    event->bytes = progress.bytes_copied;
    event->items = progress.items_copied;
    event->caught_up = progress.items_caught_up;
    event->fence_us = progress.fence_us;
    if (move_stage_is_final(stage)) {
        event->ended_us = clock_wall_us(orders->clock);
        count(&orders->counts, event);
    }
    unlock(orders);
}

void move_orders_show_failure(MoveOrders *orders, uint64_t number, const char *message)
{
    lock(orders);
    MoveEvent *event = event_at(orders, number);
    (void)snprintf(event->message, sizeof(event->message), "%.*s", (int)sizeof(event->message) - 1,
                   message);
    unlock(orders);
}

/* ---- holds ---- */

/* How long a move may take to end before it has to give up. */
enum { HOLD_WAIT_MS = 1000 };

void move_orders_hold(MoveOrders *orders, uint32_t database)
{
    if (!orders->is_open)
        return;
    lock(orders);
    ASSERT(orders->held_database == 0);
    orders->held_database = database;
    uint64_t end_us = cond_after_ms(HOLD_WAIT_MS);
    while (orders->moving_database == database && database != 0) {
        orders->is_hurried =
            orders->is_hurried || !cond_wait_until(&orders->holds_changed, &orders->lock, end_us);
        if (orders->is_hurried && orders->moving_database == database)
            (void)pthread_cond_wait(&orders->holds_changed, &orders->lock);
    }
    orders->is_hurried = false;
    unlock(orders);
}

void move_orders_release(MoveOrders *orders)
{
    if (!orders->is_open)
        return;
    lock(orders);
    orders->held_database = 0;
    (void)pthread_cond_broadcast(&orders->holds_changed);
    unlock(orders);
}

void move_orders_enter(MoveOrders *orders, uint32_t database)
{
    lock(orders);
    while (orders->held_database == database && !orders->stop)
        (void)pthread_cond_wait(&orders->holds_changed, &orders->lock);
    orders->moving_database = database;
    unlock(orders);
}

void move_orders_leave(MoveOrders *orders)
{
    lock(orders);
    orders->moving_database = 0;
    (void)pthread_cond_broadcast(&orders->holds_changed);
    unlock(orders);
}

bool move_orders_is_hurried(MoveOrders *orders, uint32_t database)
{
    lock(orders);
    bool result = orders->is_hurried && orders->held_database == database;
    unlock(orders);
    return result;
}
