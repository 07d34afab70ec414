/* chaos_delay_int.h - requests that are held for a while, without a thread for each.
 *
 * One thread sleeps until the next of them is due and gives it back to its loop.
 *
 * Ownership  A Delay is a member of the caller's message; until its task runs nobody else touches
 *            it.
 * Threads    Any thread adds; the task runs on its loop.
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
    pthread_mutex_t lock; /* guards from here ... */
    pthread_cond_t changed;
    Delay *first; /* the one that is due first; those after it later */
    bool stop;    /* ... to here */
    pthread_t thread;
    bool is_running; /* opening thread only */
} Delays;

/* By the system's own clock, whatever the server's is: it is the client who waits. */
void delays_open(Delays *delays);
void delays_close(Delays *delays); /* gives all back at once */

/* Runs the delay's task on its loop after so long; at once if there is no thread to be had. */
void delays_add(Delays *delays, Delay *delay, uint32_t delay_ms);
