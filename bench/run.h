/* run.h - sends requests for a while and counts what comes back.
 *
 * With a number of connections and no rate, each connection sends its next request when it has the
 * answer to the last one: that measures how much the server can do. With a rate, requests are due
 * at fixed times whether or not the server keeps up, and latency counts from the time when a
 * request was due: a server that stalls cannot hide it by making the client wait.
 *
 * A query is over when its last page is there: pages are asked for one by one, on its connection,
 * and its latency is that of all of them. How long the first one took is counted beside it.
 *
 * Threads    One thread, which must not be the bottleneck: compare 'client_cpu_us' with the time.
 */
#pragma once

#include "base/clock.h"
#include "bench/histogram.h"
#include "bench/process.h"
#include "bench/request.h"

#define RUN_CONNECTIONS_MAX 10000
#define RUN_STATUS_MAX      600

typedef struct RunOptions {
    RequestOptions request;
    uint32_t connections;
    uint32_t seconds;
    uint32_t warmup_ms; /* before that, not counted */
    uint64_t
        requests;  /* ends the run before 'seconds' and leaves out the warm-up; 0 for no limit */
    uint64_t turn; /* number of the first request */
    bool drains;   /* what is under way when the time is over is waited for and counted, which
                      matters where a request takes a good part of the time */
    uint64_t rate; /* requests a second; 0 for as many as possible */
    int64_t pid;   /* the server's process, to measure it; 0 for none */
} RunOptions;

typedef struct RunResult {
    Histogram latency_us;
    Histogram first_page_us; /* until the first page of the same requests was there */
    uint64_t by_status[RUN_STATUS_MAX];
    uint64_t pages;      /* answers; as many as requests unless there were queries */
    uint64_t body_bytes; /* of all answers */
    uint64_t elapsed_us;
    uint64_t failures;   /* connections that broke */
    Error first_failure; /* only if there were any */
    ProcessUsage server; /* CPU during the run, memory at its end; only with a pid */
    uint64_t client_cpu_us;
} RunResult;

/* Fails if the server cannot be reached; broken connections after that are counted. */
MUST_USE Status run_load(const RunOptions *options, const Clock *clock, RunResult *result,
                         Error *err);

/* Sends the request of that turn and appends the body of the answer to 'body', and those of further
 * pages if there are any, with a line feed between them. */
MUST_USE Status run_once(const RequestOptions *options, uint64_t turn, const Clock *clock,
                         int *status, Buf *body, Error *err);
