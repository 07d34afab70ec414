/* swap_session_int.h - the moment in which a copy of a container takes its name over.
 *
 *             swaps_hold                     swaps_commit
 *     (none) ------------> HELD --------------------------------> (none), the names have changed
 *             writes wait    |
 *                            +----------------------------------> (none), as before
 *                               swaps_release, the time is over, or the server stops
 *
 * While a container is held its client brings the copy up to date: nothing changes any more. A
 * client that is gone holds nothing for longer than it has asked for, SWAP_HOLD_MS_MAX at most.
 * There is one at a time. Nothing of it is on disk before the commit: after a crash the writes go
 * on in the old container.
 *
 * Ownership  The caller closes the Swaps after the last request, before the catalogue.
 * Threads    Each function waits: call it on a worker. A thread watches the time of what is held.
 */
#pragma once

#include "base/log.h"
#include "catalog/catalog.h"

#define SWAP_TOKEN_LEN   32
#define SWAP_HOLD_MS_MAX 30000

typedef struct Swaps Swaps;

Swaps *swaps_open(Catalog *catalog, const Log *log);
void swaps_close(Swaps *swaps); /* accepts NULL */

typedef struct SwapNames {
    uint32_t database;
    uint32_t container; /* whose name is given away */
    uint32_t copy;      /* which takes it */
} SwapNames;

/* Writes 'token', which the other functions want. STATUS_CONFLICT if another swap or a move of the
 * container is under way. */
MUST_USE Status swaps_hold(Swaps *swaps, SwapNames names, uint32_t ms, char token[SWAP_TOKEN_LEN],
                           Error *err);

/* 'name' is what the old container is called from now on. STATUS_GONE if it is not held any more;
 * whatever the failure, nothing is held after it. */
MUST_USE Status swaps_commit(Swaps *swaps, Slice token, Slice name, Error *err);
MUST_USE Status swaps_release(Swaps *swaps, Slice token, Error *err);
