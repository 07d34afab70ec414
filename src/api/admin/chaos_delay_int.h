/* chaos_delay_int.h - requests that are held for a while, without a thread for each.
 *
 * One thread sleeps until the next one is due and gives it back to its loop.
 *
 * Ownership  A Delay is a member of the caller's message, which the caller does not touch until its
 * task runs. Threads    Any thread adds; the task runs on its loop.
 */
#pragma once

#include "http/http.h"

#include <pthread.h>

typedef struct Delay {
    struct Delay *next;
    uint64_t due_us;
    HttpLoop *loop;
    HttpTask task;
} Delay;

typedef struct Delays {
    /* Guarded by 'lock'. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Delay *first; /* in the order in which they are due */
    bool stop;

    /* Opening thread only. */
    pthread_t thread;
    bool is_running;
} Delays;

/* Waits by the system's clock, even if the server was given another one, since real clients wait.
 */
void delays_open(Delays *delays);
void delays_close(Delays *delays); /* runs all tasks at once */

/* Runs the delay's task on its loop after 'delay_ms'; at once if the thread could not be started.
 */
void delays_add(Delays *delays, Delay *delay, uint32_t delay_ms);
