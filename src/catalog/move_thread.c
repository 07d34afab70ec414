/* move_thread.c - see move_thread_int.h.
 *
 * The thread looks once a second, and when it is told, whether something was ordered or is due.
 */
#include "catalog/move_thread_int.h"

#include "base/thread.h"
#include "base/thread_background.h"
#include "catalog/placement.h"

/* Finds what is due in the newest snapshot, and makes an event for it. That is the leader's. */
static bool find_due(MoveThread *moves, WaitingOrder *out)
{
    if (!catalog_is_leader(moves->catalog))
        return false;
    CatalogReader reader;
    catalog_reader_init(&reader, moves->catalog);
    MoveReason reason = MOVE_ASKED;
    bool found = move_policy_find_due(&moves->policy, &moves->backoffs, catalog_read(&reader),
                                      clock_monotonic_us(moves->clock), &out->order, &reason);
    catalog_reader_done(&reader);
    if (found)
        out->event = move_orders_add_event(&moves->orders, &out->order, reason);
    return found;
}

/* Not while a saved state of the database is saved or restored. */
static void run_order(MoveThread *moves, const WaitingOrder *waiting)
{
    move_orders_enter(&moves->orders, waiting->order.database);
    move_driver_run(&moves->driver, waiting);
    move_orders_leave(&moves->orders);
}

static void *run(void *arg)
{
    MoveThread *moves = arg;
    thread_set_background();
    while (!move_orders_is_stopped(&moves->orders)) {
        WaitingOrder waiting = {0};
        if (move_orders_take(&moves->orders, &waiting) || find_due(moves, &waiting))
            run_order(moves, &waiting);
        else
            move_orders_wait(&moves->orders);
    }
    return NULL;
}

static void destroy(MoveThread *moves)
{
    cleaner_link_close(moves->driver.cleaner);
    move_orders_close(&moves->orders);
}

Status move_thread_open(MoveThread *moves, const MoveThreadOptions *options, Error *err)
{
    moves->catalog = options->catalog;
    moves->clock = options->clock;
    moves->policy = (MovePolicy){.rules = options->rules, .provision = options->provision};
    moves->driver = (MoveDriver){
        .catalog = options->catalog,
        .cleaner = cleaner_link_new(options->cleaner),
        .placement = options->placement,
        .orders = &moves->orders,
        .backoffs = &moves->backoffs,
        .bytes_per_s = options->rules.bytes_per_s,
        .clock = options->clock,
        .log = options->log,
    };
    move_orders_open(&moves->orders, options->clock);
    Status status = thread_start(&moves->thread, "orrery-moves", run, moves, err);
    moves->is_running = status == STATUS_OK;
    if (!moves->is_running)
        destroy(moves);
    return status;
}

void move_thread_close(MoveThread *moves)
{
    if (!moves->is_running)
        return;
    move_orders_stop(&moves->orders);
    (void)pthread_join(moves->thread, NULL);
    destroy(moves);
    moves->is_running = false;
}

/* A split that has failed is tried again now and then. No client has to wait for that. */
bool move_thread_is_scaling(MoveThread *moves, const Snapshot *snapshot, const Container *container)
{
    if (!moves->orders.is_open)
        return false;
    ContainerMoves known = move_orders_of(&moves->orders, container);
    if (known.is_open || !move_policy_needs_split(&moves->policy, snapshot, container))
        return known.is_open;
    const Offer *offer = snapshot_offer(snapshot, container->offer);
    ASSERT(offer != NULL);
    return !known.has_failed || known.failed_at_us / 1000000 < (uint64_t)offer->replaced_at_s;
}
