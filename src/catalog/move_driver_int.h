/* move_driver_int.h - drives one move through its stages: see MoveStage in move_orders.h.
 *
 * Threads    One thread drives; it waits for the catalogue and for the disk.
 */
#pragma once

#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/cleaner_int.h"
#include "catalog/move_orders_int.h"
#include "catalog/move_policy_int.h"

/* Immutable after open; the objects that it points to outlive it. */
typedef struct MoveDriver {
    Catalog *catalog;
    CleanerLink *cleaner;
    const CatalogPlacement *placement; /* NULL if there is none */
    MoveOrders *orders;                /* shows how the move goes on, and whether to stop */
    MoveBackoffs *backoffs;            /* of the driving thread */
    uint64_t bytes_per_s;              /* 0 if the rate is not limited */
    const Clock *clock;
    const Log *log;
} MoveDriver;

/* Carries out an order. Its event tells how it ended. If the orders are stopped meanwhile, the move
 * is left to be undone by the next start. */
void move_driver_run(MoveDriver *driver, const WaitingOrder *waiting);
