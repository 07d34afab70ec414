/* thread.h - starts a thread with a name and with all signals blocked.
 *
 * Every thread of the server but the first comes from here, so that a profile, a debugger and
 * `ps -L` tell them apart, and a signal always reaches the thread that waits for it.
 *
 * Ownership  The module that starts a thread joins it.
 */
#pragma once

#include "base/error.h"

#include <pthread.h>

enum { THREAD_NAME_LEN_MAX = 15 }; /* what the system keeps */

/* How often a thread that has nothing to do polls for work, letting others run in between, before
 * it sleeps. On a busy machine the others are often those that it waits for, and to sleep and be
 * woken costs both sides more; on an idle one the polls take a few microseconds. */
enum { THREAD_POLLS_MAX = 8 };

/* 'name' is the system's name for the thread. STATUS_IO if the system has no thread to give. */
MUST_USE Status thread_start(pthread_t *thread, const char *name, void *(*run)(void *ctx),
                             void *ctx, Error *err);
