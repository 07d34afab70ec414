/* budget_int.h - the memory that all connections together may hold.
 *
 * What clients can make the server keep is counted here: connections, heads and bodies on their
 * way in, requests under way, answers that are not read. A loop counts what its connections hold
 * with plain arithmetic. It reserves the memory from the server's budget in pieces of some hundred
 * kilobytes, and only that is an atomic operation: many small requests share one.
 *
 * Bulk (large bodies, answers that are not read) may take three quarters. The rest is for small
 * requests, which are served all the while that somebody fills the other part.
 *
 * Threads    A BudgetShare belongs to its loop, a Budget to all of them.
 */
#pragma once

#include "base/defs.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef enum BudgetUse { BUDGET_SMALL, BUDGET_BULK } BudgetUse;

typedef struct Budget {
    uint64_t bytes_max;
    uint64_t piece; /* what a share reserves at least */
    _Atomic uint64_t reserved;
} Budget;

typedef struct BudgetShare {
    Budget *budget;
    uint64_t held;     /* by the connections of the loop */
    uint64_t reserved; /* of the budget; not less than 'held' */
} BudgetShare;

void budget_init(Budget *budget, uint64_t bytes_max, uint32_t share_count);

/* False if there is no room: nothing is taken then. */
bool budget_take(BudgetShare *share, uint64_t bytes, BudgetUse use);

/* For memory that is in use already. */
void budget_force(BudgetShare *share, uint64_t bytes);
void budget_give(BudgetShare *share, uint64_t bytes);

/* Whether more is reserved than this use may have. */
bool budget_is_over(const BudgetShare *share, BudgetUse use);
