/* move_orders_int.h - orders for moves that wait, and what became of each: see move_orders.h.
 *
 * Threads    Any. All but 'clock' and 'is_open' is guarded by 'lock'.
 */
#pragma once

#include "base/clock.h"
#include "catalog/move_orders.h"
#include "partition/item_move.h"

#include <pthread.h>

enum { MOVE_ORDERS_MAX = 64 };
static_assert(MOVE_ORDERS_MAX + 1 < MOVE_EVENTS_MAX,
              "the events of orders that wait, and of the move under way, are never overwritten");

/* An order and the number of its event. */
typedef struct WaitingOrder {
    MoveOrder order; /* its cut is the text below */
    char cut[2 * EPK_BYTES_MAX];
    uint64_t event;
} WaitingOrder;

typedef struct MoveOrders {
    const Clock *clock; /* immutable after open */
    bool is_open;       /* opening thread only; false if there are no moves here */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* one of the next three */
    bool stop;
    bool is_noticed;
    size_t waiting_count;
    WaitingOrder waiting[MOVE_ORDERS_MAX]; /* the oldest first */
    MoveEvent events[MOVE_EVENTS_MAX];     /* a ring: event n is at n % MOVE_EVENTS_MAX */
    uint64_t event_count;
    MoveCounts counts;
    uint32_t held_database;       /* none of its containers may be moved; 0 if none is held */
    uint32_t moving_database;     /* of the move under way; 0 if there is none */
    bool is_hurried;              /* the move under way must give up, if it is of 'held_database' */
    pthread_cond_t holds_changed; /* one of the last three */
} MoveOrders;

void move_orders_open(MoveOrders *orders, const Clock *clock);
void move_orders_close(MoveOrders *orders);

/* ---- for any thread; these may be called when it is not open ---- */

MUST_USE Status move_orders_add(MoveOrders *orders, const MoveOrder *order, uint64_t *event,
                                Error *err);
void move_orders_notice(MoveOrders *orders); /* an offer was replaced, or the map has changed */
size_t move_orders_events(MoveOrders *orders, MoveEvent *out, size_t max);
MoveCounts move_orders_counts(MoveOrders *orders);

/* What the events say about the moves of one container. */
typedef struct ContainerMoves {
    bool is_open;          /* some move waits or is under way */
    bool has_failed;       /* the newest one has, at 'failed_at_us' (wall clock) */
    uint64_t failed_at_us; /* 0 if it has not */
} ContainerMoves;
ContainerMoves move_orders_of(MoveOrders *orders, const Container *container);

/* Keeps the containers of a database from being moved, until the release. Waits for a move of one
 * that is under way, which gives up if it takes long. One database at a time can be held. */
void move_orders_hold(MoveOrders *orders, uint32_t database);
void move_orders_release(MoveOrders *orders);

/* ---- for the thread that carries orders out ---- */

/* Waits for a second, or until there is an order, a notice or the stop. */
void move_orders_wait(MoveOrders *orders);
void move_orders_stop(MoveOrders *orders);
bool move_orders_is_stopped(MoveOrders *orders);

/* A move of a container of the database begins, when that is not held; and ends. */
void move_orders_enter(MoveOrders *orders, uint32_t database);
void move_orders_leave(MoveOrders *orders);
bool move_orders_is_hurried(MoveOrders *orders, uint32_t database);

/* Takes the oldest order; false if there is none. */
bool move_orders_take(MoveOrders *orders, WaitingOrder *out);

/* Makes an event for a move that is due without an order. */
uint64_t move_orders_add_event(MoveOrders *orders, const MoveOrder *order, MoveReason reason);

/* ---- for the driver: what the event with this number shows ---- */

/* 'container' is as the move has begun: its pending ranges are the targets. */
void move_orders_show_ranges(MoveOrders *orders, uint64_t event, const Container *container);
void move_orders_show_stage(MoveOrders *orders, uint64_t event, MoveStage stage,
                            MoveProgress progress);
void move_orders_show_failure(MoveOrders *orders, uint64_t event, const char *message);
