/* latch.h - waiting for something that happens on another thread, such as a callback.
 *
 * One thread waits; others say that what it waits for has happened. Each latch_post ends one
 * latch_wait, before or after the wait begins; to wait for several things, wait several times.
 *
 * Ownership  The caller owns the Latch. The thread that was waiting may end it as soon as the last
 *            latch_wait has returned, even if the latch_post that ended it has not.
 * Threads    Any.
 */
#pragma once

#include "base/defs.h"

#include <semaphore.h>

typedef struct Latch {
    sem_t posts; /* those that no wait has used */
} Latch;

void latch_init(Latch *latch);
void latch_done(Latch *latch);

void latch_post(Latch *latch);
void latch_wait(Latch *latch);

/* Waits for at most about so long; false if nothing was posted until then. If the wall clock is set
 * meanwhile it may take shorter or longer: keep it short, and look at a clock. */
bool latch_wait_for(Latch *latch, uint64_t us);

/* True if latch_wait would return at once. */
bool latch_is_posted(Latch *latch);
