/* call_wave.h - many calls to one server, until each has an answer that is worth looking at.
 *
 * The calls of a wave start together, as many at a time as the server takes. One that is throttled
 * (429), that the server cannot serve now (408, 449, 500, 503) or that does not reach it is sent
 * again; every other answer is final. So a wave suits requests that may be sent twice.
 *
 * Ownership  The caller owns the calls, and the memory behind them, until the wave has ended.
 * Threads    As the Client: one thread.
 */
#pragma once

#include "client/client.h"
#include "transfer/pacing.h"

/* What all waves of a command have cost. */
typedef struct WaveCost {
    RuLimit limit;
    double ru;
    uint64_t requests;
    uint64_t throttled;
} WaveCost;

typedef struct Wave {
    Client *client;
    int stop_fd; /* readable when the user wants to stop; -1 if there is none */
    Pace pace;
    WaveCost *cost;
    void (*tick)(void *ctx); /* called now and then, for the progress; may be NULL */
    void *ctx;
    bool is_stopped; /* the user wants to stop; set by wave_run */
} Wave;

typedef struct WaveCall {
    ClientCall call; /* as for client_start */
    uint32_t operations;
    /* For the wave. */
    bool is_done;
    bool is_active;
    uint32_t attempts;
    uint64_t wait_until_us;
    uint64_t started_us;
    double reserved;
} WaveCall;

void wave_init(Wave *wave, Client *client, int stop_fd, uint32_t concurrency, WaveCost *cost);

/* STATUS_OK: each call has an answer that is final. STATUS_TIMEOUT if the user wants to stop, or
 * the server does not answer for long; the calls under way have ended then. */
MUST_USE Status wave_run(Wave *wave, WaveCall *calls, size_t count, Error *err);
