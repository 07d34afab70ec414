/* load_run.h - sends requests for a while and counts what comes back.
 *
 * With a number of connections and no rate, each connection sends its next request when it has the
 * answer to the last one: that measures how much the server can do. With a rate, requests are due
 * at fixed times whether or not the server keeps up, and latency counts from the time when a
 * request was due: a server that stalls cannot hide it by making the client wait. What was due
 * within the time is sent and waited for after it; what has no answer even then is in the latencies
 * with the time that it has waited so far.
 *
 * A query is over when its last page is there: pages are asked for one by one, on its connection,
 * and its latency is that of all of them. How long the first one took is counted beside it. A
 * request that is throttled is sent again when the server says so, and has one latency for all.
 *
 * Threads    One thread, which must not be the bottleneck: compare 'client_cpu_us' with the time.
 */
#pragma once

#include "base/clock.h"
#include "load/histogram.h"
#include "load/load_target.h"
#include "load/process_usage.h"
#include "load/reply.h"

#define LOAD_CONNECTIONS_MAX 10000
#define LOAD_STATUS_MAX      600

typedef enum LoadEnd {
    LOAD_END_DONE,        /* the time is over, or all requests have ended */
    LOAD_END_MAX_RU,      /* as many request units were used as allowed */
    LOAD_END_INTERRUPTED, /* 'stop_fd' is readable */
} LoadEnd;

typedef struct LoadResult {
    Histogram latency_us;    /* of requests that succeeded */
    Histogram first_page_us; /* until the first page of the same requests was there */
    Histogram
        by_operation[LOAD_ITEM_OPERATION_COUNT]; /* of WORKLOAD_ITEMS; together 'latency_us' */
    uint64_t by_status[LOAD_STATUS_MAX];         /* of all answers */
    uint64_t succeeded;                          /* requests */
    uint64_t errors;     /* requests that ended with a status of 400 or more */
    uint64_t throttled;  /* answers with 429 */
    uint64_t pages;      /* answers but those; as many as requests unless there were queries */
    uint64_t body_bytes; /* of all pages */
    uint64_t milli_ru;   /* of all answers, in thousandths */
    uint64_t unanswered; /* requests that were given up; with a rate, also those that were due
                            and have no answer at the end */
    uint64_t elapsed_us;
    uint64_t failures;                            /* connections that broke */
    Error first_failure;                          /* only if there were any */
    int error_status;                             /* of the first of 'errors' */
    char error_text[REPLY_EXCERPT_BYTES_MAX + 1]; /* and what it says */
    LoadEnd end;
    ProcessUsage server; /* CPU during the run, memory at its end; only with a pid */
    uint64_t client_cpu_us;
} LoadResult;

/* Is shown how far the run is, about five times a second. */
typedef struct LoadObserver {
    void *ctx;
    void (*show)(void *ctx, const LoadResult *result, uint64_t elapsed_us);
} LoadObserver;

typedef struct LoadOptions {
    RequestOptions request;
    LoadTarget *target;
    uint32_t connections;
    uint32_t seconds;
    uint32_t warmup_ms;    /* before that, not counted */
    uint64_t count;        /* requests, which end the run before 'seconds' and leave out the
                              warm-up; 0 for no limit */
    uint64_t turn;         /* number of the first request */
    uint64_t rate;         /* requests a second; 0 for as many as possible */
    uint64_t milli_ru_max; /* ends the run; 0 for no limit */
    uint32_t timeout_ms;   /* of one answer; 0 for LOAD_TIMEOUT_MS */
    bool drains;           /* without a rate: what is under way when the time is over is waited
                              for and counted, which matters if a request takes a good part of
                              the time */
    bool no_retry;         /* a throttled request is an error */
    int64_t pid;           /* the server's process, to measure it; 0 for none */
    int stop_fd;           /* ends the run when it becomes readable; -1 for none */
    const LoadObserver *observer; /* NULL for none */
} LoadOptions;

enum { LOAD_TIMEOUT_MS = 60000 };

/* Fails if the server cannot be reached; broken connections after that are counted. '*result' says
 * how far it got also if it fails. */
MUST_USE Status load_run(const LoadOptions *options, const Clock *clock, LoadResult *result,
                         Error *err);

/* Sends the request of that turn and appends the body of the answer to 'body', and those of further
 * pages if there are any, with a line feed between them. */
MUST_USE Status load_once(const RequestOptions *options, LoadTarget *target, uint64_t turn,
                          const Clock *clock, int *status, Buf *body, Error *err);
