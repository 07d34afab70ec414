/* thread.h - starts a thread: with a name, and deaf to signals.
 *
 * Every thread of the server but the first comes from here, so that a profile, a debugger and
 * `ps -L` say which is which, and a signal always finds the thread that waits for it.
 *
 * Ownership  Whoever starts a thread joins it.
 */
#pragma once

#include "base/error.h"

#include <pthread.h>

enum { THREAD_NAME_LEN_MAX = 15 }; /* what the system keeps */

/* A thread that has nothing to do looks so often whether something has come, and lets others run in
 * between, before it sleeps. On a busy machine those others are whom it waits for, and to sleep and
 * be woken costs both sides more; on an idle one it is over after a few microseconds. */
enum { THREAD_LOOKS = 8 };

/* 'name' is the system's name for the thread. STATUS_IO if there is no thread to be had. */
MUST_USE Status thread_start(pthread_t *thread, const char *name, void *(*run)(void *ctx),
                             void *ctx, Error *err);
