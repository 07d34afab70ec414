/* load_run.c - see load_run.h. */
#include "load/load_run.h"

#include "base/mem.h"
#include "load/load_connection.h"
#include "load/retry_queue.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum {
    FAILURES_MAX = 1000, /* the run ends if the server breaks connections faster than it answers */
    EVENTS_MAX = 256,
    DRAIN_MAX_S = 600,
    TICK_US = 200000,       /* how often the observer is called, and timeouts are looked for */
    REOPEN_MS = 100,        /* how long to wait with a connection that cannot be opened */
    DOWN_MAX_S = 10,        /* the run ends if none can be opened for so long */
    RETRY_MS = 100,         /* if a server throttles and does not say for how long */
    RETRY_MS_MAX = 60000,   /* whatever it says */
    UNSENT_STEPS = 1000000, /* requests that were never sent are counted in so many steps */
};
#define STOP_INDEX UINT32_MAX /* of the events of 'stop_fd' */

typedef struct Run {
    const LoadOptions *options;
    const Clock *clock;
    LoadResult *result;
    RequestMaker maker;
    int epoll_fd;
    LoadConnection *connections;
    uint32_t *idle; /* a stack of connections without a request */
    uint32_t idle_count;
    RetryQueue waiting;  /* connections that are THROTTLED or CLOSED */
    uint64_t down_us;    /* since when none could be opened; 0 if one could */
    uint64_t tried_us;   /* when the last one could not */
    uint64_t begun_us;   /* when the first request was due */
    uint64_t measure_us; /* what was due earlier belongs to the warm-up */
    uint64_t end_us;     /* nothing is due from then on */
    uint64_t tick_us;    /* when something is next to be looked at */
    uint64_t issued;     /* requests since 'begun_us' */
    uint64_t ended;      /* of those: answered, or lost with their connection */
    uint64_t milli_ru;   /* with those of the warm-up */
    bool is_draining;    /* the time is over */
    bool is_coarse;      /* the kernel has no epoll_pwait2 */
    LoadEnd end;
} Run;

static void run_done(Run *run)
{
    for (uint32_t i = 0; run->connections != NULL && i < run->options->connections; i++)
        load_connection_done(&run->connections[i]);
    mem_free(run->connections);
    mem_free(run->idle);
    retry_queue_done(&run->waiting);
    if (run->epoll_fd >= 0)
        (void)close(run->epoll_fd);
    request_maker_done(&run->maker);
}
DEFINE_AUTO_VALUE(Run, run_done)

static Status watch(Run *run, uint32_t index, int operation, uint32_t events, Error *err)
{
    struct epoll_event event = {.events = events, .data.u32 = index};
    if (epoll_ctl(run->epoll_fd, operation, run->connections[index].fd, &event) != 0)
        return error_set_errno(err, errno, "cannot watch a socket");
    return STATUS_OK;
}

static Status reopen(Run *run, uint32_t index, Error *err)
{
    LoadConnection *c = &run->connections[index];
    TRY(load_connection_open(c, run->options->target, err));
    TRY(load_connection_unblock(c, err));
    return watch(run, index, EPOLL_CTL_ADD, EPOLLIN, err);
}

static Status open_idle(Run *run, uint32_t index, Error *err)
{
    TRY(reopen(run, index, err));
    run->idle[run->idle_count++] = index;
    return STATUS_OK;
}

static Status open_all(Run *run, Error *err)
{
    uint32_t count = run->options->connections;
    TRY(request_maker_init(&run->maker, &run->options->request, err));
    run->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (run->epoll_fd < 0)
        return error_set_errno(err, errno, "cannot make an epoll set");
    struct epoll_event stop = {.events = EPOLLIN, .data.u32 = STOP_INDEX};
    if (run->options->stop_fd >= 0 &&
        epoll_ctl(run->epoll_fd, EPOLL_CTL_ADD, run->options->stop_fd, &stop) != 0)
        return error_set_errno(err, errno, "cannot wait for signals");
    run->idle = MEM_NEW_ARRAY(uint32_t, count);
    run->connections = MEM_NEW_ARRAY(LoadConnection, count);
    retry_queue_init(&run->waiting, count);
    for (uint32_t i = 0; i < count; i++)
        load_connection_init(&run->connections[i], false);
    for (uint32_t i = 0; i < count; i++)
        TRY(open_idle(run, i, err));
    return STATUS_OK;
}

static void end_turn(Run *run, LoadConnection *c)
{
    run->ended++;
    if (run->options->request.kind == WORKLOAD_ITEMS)
        item_maker_ended(&run->maker.items, &c->turn.item);
}

static Status try_open(Run *run, uint32_t index, Error *err)
{
    uint64_t now_us = clock_monotonic_us(run->clock);
    if (run->down_us != 0 && now_us < run->tried_us + REOPEN_MS * UINT64_C(1000))
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the server was not there just now");
    Status status = reopen(run, index, err);
    run->tried_us = clock_monotonic_us(run->clock);
    if (status == STATUS_OK)
        run->down_us = 0;
    else if (run->down_us == 0)
        run->down_us = now_us;
    return status;
}

/* Opens a connection again, which is idle then, or is tried again later: a server that starts anew
 * is part of what is measured. Opening waits for the server, so if that fails, no other connection
 * is tried for a while: the end of the run must not wait for all of them. */
static Status open_again(Run *run, uint32_t index, Error *err)
{
    Error failure = {0};
    if (try_open(run, index, &failure) == STATUS_OK) {
        run->idle[run->idle_count++] = index;
        return STATUS_OK;
    }
    if (run->tried_us - run->down_us > DOWN_MAX_S * UINT64_C(1000000))
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the server is gone for %d s: %s",
                         DOWN_MAX_S, failure.message);
    run->connections[index].state = LOAD_CONNECTION_CLOSED;
    retry_queue_add(&run->waiting, run->tried_us + REOPEN_MS * UINT64_C(1000), index);
    return STATUS_OK;
}

/* A broken connection is counted and opened again. */
static Status recover(Run *run, uint32_t index, const Error *failure, Error *err)
{
    if (run->result->failures == 0)
        run->result->first_failure = *failure;
    if (++run->result->failures > FAILURES_MAX)
        return error_set(err, STATUS_IO, SUB_NONE, "more than %d connections broke; the first: %s",
                         FAILURES_MAX, run->result->first_failure.message);
    end_turn(run, &run->connections[index]);
    return open_again(run, index, err);
}

/* When the next request is due: at once without a rate, else by the clock. */
static uint64_t due_us(const Run *run, uint64_t number, uint64_t now_us)
{
    uint64_t rate = run->options->rate;
    if (rate == 0)
        return now_us;
    return run->begun_us + number / rate * 1000000 + number % rate * 1000000 / rate;
}

static bool is_all_issued(const Run *run)
{
    if (run->end != LOAD_END_DONE)
        return true;
    if (run->options->count > 0 && run->issued >= run->options->count)
        return true;
    return run->is_draining &&
           (run->options->rate == 0 || due_us(run, run->issued, 0) >= run->end_us);
}

/* Where the next page begins, by the answer to the one before; empty if there was none. */
static Slice next_page(const Run *run, const LoadConnection *c)
{
    const RequestOptions *options = &run->options->request;
    switch (options->kind) {
    case WORKLOAD_FEED:
        return c->reply.etag;
    case WORKLOAD_QUERY:
        return c->reply.continuation;
    case WORKLOAD_ITEMS:
        return c->turn.item.operation == LOAD_ITEM_SCAN ? c->reply.continuation : SLICE_EMPTY;
    case WORKLOAD_REQUEST:
        break;
    }
    return SLICE_EMPTY;
}

/* Sends what is in 'out', from its beginning. */
static Status send_out(Run *run, uint32_t index, Error *err)
{
    LoadConnection *c = &run->connections[index];
    bool sent = false;
    Error failure = {0};
    reply_reset(&c->reply);
    c->out_sent = 0;
    c->state = LOAD_CONNECTION_BUSY;
    if (load_connection_send(c, &sent, &failure) != STATUS_OK)
        return recover(run, index, &failure, err);
    return sent ? STATUS_OK : watch(run, index, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT, err);
}

/* Asks for the first page of a turn, or for what goes on at the continuation of the answer. */
static Status send_page(Run *run, uint32_t index, uint64_t now_us, Error *err)
{
    LoadConnection *c = &run->connections[index];
    buf_reset(&c->out);
    request_maker_print(&run->maker, &c->turn, next_page(run, c), clock_wall_s(run->clock),
                        &c->out);
    ASSERT(!buf_full(&c->out));
    c->sent_us = now_us;
    return send_out(run, index, err);
}

/* Sends the next request on an idle connection; it was due at 'begun_us'. */
static Status issue(Run *run, uint64_t begun_us, uint64_t now_us, Error *err)
{
    uint32_t index = run->idle[--run->idle_count];
    LoadConnection *c = &run->connections[index];
    ASSERT(c->state == LOAD_CONNECTION_IDLE);
    reply_reset(&c->reply);
    c->begun_us = begun_us;
    c->pages = 0;
    request_maker_begin(&run->maker, run->options->turn + run->issued++, &c->turn);
    return send_page(run, index, now_us, err);
}

static Status issue_due(Run *run, Error *err)
{
    uint64_t now_us = clock_monotonic_us(run->clock);
    while (retry_queue_next_us(&run->waiting) <= now_us) {
        uint32_t index = retry_queue_take(&run->waiting);
        if (run->connections[index].state == LOAD_CONNECTION_CLOSED) {
            TRY(open_again(run, index, err));
            continue;
        }
        ASSERT(run->connections[index].state == LOAD_CONNECTION_THROTTLED);
        run->connections[index].sent_us = now_us;
        TRY(send_out(run, index, err));
    }
    while (run->idle_count > 0 && !is_all_issued(run)) {
        uint64_t due = due_us(run, run->issued, now_us);
        if (due > now_us || (run->options->rate > 0 && due >= run->end_us))
            break;
        TRY(issue(run, due, now_us, err));
    }
    return STATUS_OK;
}

/* Goes on with a turn that is not over: its next page, or its next step. */
static bool goes_on(const Run *run, LoadConnection *c)
{
    if (c->reply.status != 200)
        return false;
    ItemTurn *item = &c->turn.item;
    if (run->options->request.kind == WORKLOAD_ITEMS && item->operation == LOAD_ITEM_MODIFY)
        return item->step++ == 0;
    return next_page(run, c).len > 0;
}

static Status check_open(const LoadConnection *c, Error *err)
{
    if (c->reply.is_close)
        return error_set(err, STATUS_IO, SUB_NONE, "the server closed between two pages");
    return STATUS_OK;
}

static Status send_more(Run *run, uint32_t index, uint64_t now_us, Error *err)
{
    Error failure = {0};
    if (check_open(&run->connections[index], &failure) != STATUS_OK)
        return recover(run, index, &failure, err);
    return send_page(run, index, now_us, err);
}

/* The operations of a batch have statuses of their own, and one that was throttled undoes it. */
static bool is_throttled(const LoadConnection *c)
{
    static const char text[] = "\"statusCode\":429";
    Slice body = buf_view(&c->reply.body);
    return c->reply.status == 429 || (c->reply.status == 207 && body.len > 0 &&
                                      memmem(body.ptr, body.len, text, sizeof(text) - 1) != NULL);
}

static void wait_throttled(Run *run, uint32_t index, uint64_t now_us)
{
    LoadConnection *c = &run->connections[index];
    uint64_t wait_ms = c->reply.retry_after_ms > 0 ? c->reply.retry_after_ms : RETRY_MS;
    if (wait_ms > RETRY_MS_MAX)
        wait_ms = RETRY_MS_MAX;
    Error failure = {0};
    if (c->reply.is_close)
        (void)(reopen(run, index, &failure) == STATUS_OK); /* if not, sending will say so */
    c->state = LOAD_CONNECTION_THROTTLED;
    retry_queue_add(&run->waiting, now_us + wait_ms * 1000, index);
}

/* With a rate, what was due during the warm-up is not measured. */
static bool is_measured(const Run *run, const LoadConnection *c)
{
    return run->options->rate == 0 || c->begun_us >= run->measure_us;
}

static void count_error(LoadResult *result, const Reply *reply)
{
    if (result->errors++ > 0)
        return;
    result->error_status = reply->status;
    Slice text = slice_first(buf_view(&reply->body), REPLY_EXCERPT_BYTES_MAX);
    for (size_t i = 0; i < text.len; i++) /* it may be shown on a terminal */
        result->error_text[i] = text.ptr[i] >= ' ' && text.ptr[i] < 0x7f ? text.ptr[i] : ' ';
}

static void count_turn(Run *run, const LoadConnection *c, uint64_t taken_us)
{
    LoadResult *result = run->result;
    bool is_error = c->reply.status >= 400 || c->reply.status == 207;
    if (is_error) {
        count_error(result, &c->reply);
        return;
    }
    result->succeeded++;
    histogram_add(&result->latency_us, taken_us);
    histogram_add(&result->first_page_us, c->first_us);
    if (run->options->request.kind == WORKLOAD_ITEMS)
        histogram_add(&result->by_operation[c->turn.item.operation], taken_us);
}

/* Counts a complete answer, and goes on with the next page or the next request. */
static Status take_answer(Run *run, uint32_t index, Error *err)
{
    LoadConnection *c = &run->connections[index];
    LoadResult *result = run->result;
    uint64_t now_us = clock_monotonic_us(run->clock);
    uint64_t taken_us = now_us - c->begun_us;
    bool has_page = !is_throttled(c);
    run->milli_ru += c->reply.milli_ru;
    if (is_measured(run, c)) {
        result->by_status[c->reply.status]++;
        result->pages += has_page;
        result->body_bytes += has_page ? c->reply.body_len : 0;
        result->milli_ru += c->reply.milli_ru;
        result->throttled += !has_page;
    }
    if (run->options->milli_ru_max > 0 && run->milli_ru >= run->options->milli_ru_max &&
        run->end == LOAD_END_DONE)
        run->end = LOAD_END_MAX_RU;
    if (!has_page && !run->options->no_retry && run->end == LOAD_END_DONE) {
        wait_throttled(run, index, now_us);
        return STATUS_OK;
    }
    if (c->pages++ == 0)
        c->first_us = taken_us;
    if (goes_on(run, c))
        return send_more(run, index, now_us, err);
    if (is_measured(run, c))
        count_turn(run, c, taken_us);
    end_turn(run, c);
    c->state = LOAD_CONNECTION_IDLE;
    if (c->reply.is_close)
        return open_again(run, index, err);
    run->idle[run->idle_count++] = index;
    return STATUS_OK;
}

/* A server may close what is idle; that is no failure, but the place must be filled. */
static Status look_after(Run *run, uint32_t index, Error *err)
{
    LoadConnection *c = &run->connections[index];
    if (load_connection_is_open(c))
        return STATUS_OK;
    if (c->state == LOAD_CONNECTION_THROTTLED) {
        Error failure = {0};
        (void)(reopen(run, index, &failure) == STATUS_OK); /* if not, sending will say so */
        c->state = LOAD_CONNECTION_THROTTLED;
        return STATUS_OK;
    }
    ASSERT(c->state == LOAD_CONNECTION_IDLE);
    for (uint32_t i = 0; i < run->idle_count; i++) {
        if (run->idle[i] == index)
            run->idle[i] = run->idle[--run->idle_count];
    }
    return open_again(run, index, err);
}

static Status handle_event(Run *run, const struct epoll_event *event, Error *err)
{
    uint32_t index = event->data.u32;
    if (index == STOP_INDEX) {
        run->end = LOAD_END_INTERRUPTED;
        return STATUS_OK;
    }
    LoadConnection *c = &run->connections[index];
    if (c->state != LOAD_CONNECTION_BUSY)
        return look_after(run, index, err);
    Error failure = {0};
    bool complete = false;
    if ((event->events & EPOLLOUT) != 0) {
        if (load_connection_send(c, &complete, &failure) != STATUS_OK)
            return recover(run, index, &failure, err);
        if (complete)
            TRY(watch(run, index, EPOLL_CTL_MOD, EPOLLIN, err));
    }
    if ((event->events & ~(uint32_t)EPOLLOUT) == 0)
        return STATUS_OK;
    if (load_connection_receive(c, &complete, &failure) != STATUS_OK)
        return recover(run, index, &failure, err);
    return complete ? take_answer(run, index, err) : STATUS_OK;
}

/* Linux before 5.11 knows milliseconds only: they are rounded down, and what is left is not slept.
 */
static int wait_us(Run *run, struct epoll_event *events, uint64_t left_us)
{
    struct timespec timeout = {.tv_sec = (time_t)(left_us / 1000000),
                               .tv_nsec = (long)(left_us % 1000000) * 1000};
    if (!run->is_coarse) {
        int count = epoll_pwait2(run->epoll_fd, events, EVENTS_MAX, &timeout, NULL);
        if (count >= 0 || errno != ENOSYS)
            return count;
        run->is_coarse = true;
    }
    uint64_t left_ms = left_us / 1000;
    return epoll_wait(run->epoll_fd, events, EVENTS_MAX, left_ms < 1000 ? (int)left_ms : 1000);
}

/* Waits for answers, at most until 'until_us'. */
static Status wait_events(Run *run, uint64_t until_us, Error *err)
{
    uint64_t now_us = clock_monotonic_us(run->clock);
    uint64_t left_us = until_us > now_us ? until_us - now_us : 0;
    struct epoll_event events[EVENTS_MAX];
    int count = wait_us(run, events, left_us);
    if (count < 0 && errno != EINTR)
        return error_set_errno(err, errno, "cannot wait for answers");
    for (int i = 0; i < count; i++)
        TRY(handle_event(run, &events[i], err));
    return STATUS_OK;
}

static uint32_t timeout_ms(const Run *run)
{
    return run->options->timeout_ms > 0 ? run->options->timeout_ms : LOAD_TIMEOUT_MS;
}

static Status check_in_time(const Run *run, const LoadConnection *c, uint64_t now_us, Error *err)
{
    if (c->state == LOAD_CONNECTION_BUSY && now_us >= c->sent_us + timeout_ms(run) * UINT64_C(1000))
        return error_set(err, STATUS_TIMEOUT, SUB_NONE, "no answer within %" PRIu32 " ms",
                         timeout_ms(run));
    return STATUS_OK;
}

/* A request without an answer has waited at least until now. Leaving it out would hide a stall. */
static void count_late(Run *run, const LoadConnection *c, uint64_t now_us)
{
    if (!is_measured(run, c))
        return;
    run->result->unanswered++;
    histogram_add(&run->result->latency_us, now_us - c->begun_us);
}

/* What has to be done now and then. */
static Status tick(Run *run, uint64_t now_us, Error *err)
{
    const LoadObserver *observer = run->options->observer;
    run->tick_us = now_us + TICK_US;
    if (observer != NULL)
        observer->show(observer->ctx, run->result, now_us - run->measure_us);
    for (uint32_t i = 0; i < run->options->connections; i++) {
        Error failure = {0};
        if (check_in_time(run, &run->connections[i], now_us, &failure) == STATUS_OK)
            continue;
        count_late(run, &run->connections[i], now_us);
        TRY(recover(run, i, &failure, err));
    }
    return STATUS_OK;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static Status run_until(Run *run, uint64_t end_us, Error *err)
{
    for (;;) {
        TRY(issue_due(run, err));
        uint64_t now_us = clock_monotonic_us(run->clock);
        if (now_us >= end_us || run->end == LOAD_END_INTERRUPTED ||
            (is_all_issued(run) && run->ended == run->issued))
            return STATUS_OK;
        if (now_us >= run->tick_us)
            TRY(tick(run, now_us, err));
        /* With nothing left to send, or no connection idle, it is an answer that lets us go on, not
         * the time. */
        uint64_t until_us = earlier(end_us, run->tick_us);
        until_us = earlier(until_us, retry_queue_next_us(&run->waiting));
        if (run->idle_count > 0 && !is_all_issued(run))
            until_us = earlier(until_us, due_us(run, run->issued, now_us));
        TRY(wait_events(run, until_us, err));
    }
}

static Status measure(const Run *run, ProcessUsage *server, uint64_t *client_cpu_us, Error *err)
{
    *server = (ProcessUsage){0};
    if (run->options->pid != 0)
        TRY(process_usage(run->options->pid, server, err));
    ProcessUsage client;
    TRY(process_usage(getpid(), &client, err));
    *client_cpu_us = client.cpu_us;
    return STATUS_OK;
}

/* With a rate, what was due counts, whether or not it could be sent. */
static void count_unanswered(Run *run, uint64_t now_us)
{
    LoadResult *result = run->result;
    for (uint32_t i = 0; i < run->options->connections; i++) {
        LoadConnectionState state = run->connections[i].state;
        if (state == LOAD_CONNECTION_BUSY || state == LOAD_CONNECTION_THROTTLED)
            count_late(run, &run->connections[i], now_us);
    }
    uint64_t end = run->options->count > 0 ? run->options->count : UINT64_MAX;
    uint64_t due_count = 0;
    uint64_t end_us = earlier(run->end_us, now_us);
    if (run->issued < end && due_us(run, run->issued, 0) < end_us) {
        uint64_t left_us = end_us - due_us(run, run->issued, 0);
        due_count = earlier((left_us * run->options->rate + 999999) / 1000000, end - run->issued);
    }
    uint64_t step = due_count / UNSENT_STEPS + 1;
    for (uint64_t i = 0; i < due_count; i += step) {
        uint64_t weight = earlier(step, due_count - i);
        histogram_add_many(&result->latency_us, now_us - due_us(run, run->issued + i, 0), weight);
    }
    result->unanswered += due_count;
}

/* Measures until 'end_us', and then waits for what is under way if that is wanted. */
static Status run_measured(Run *run, Error *err)
{
    const LoadOptions *options = run->options;
    TRY(run_until(run, run->end_us, err));
    if ((options->drains || options->rate > 0) && run->end != LOAD_END_INTERRUPTED) {
        uint64_t drain_us =
            options->rate > 0 ? timeout_ms(run) * UINT64_C(1000) : DRAIN_MAX_S * UINT64_C(1000000);
        run->is_draining = true;
        TRY(run_until(run, run->end_us + drain_us, err));
    }
    return STATUS_OK;
}

static Status run_all(Run *run, Error *err)
{
    const LoadOptions *options = run->options;
    TRY(open_all(run, err));
    run->begun_us = clock_monotonic_us(run->clock);
    run->measure_us = run->begun_us;
    run->end_us = UINT64_MAX; /* the warm-up goes over into what is measured */
    run->tick_us = run->begun_us + TICK_US;
    if (options->count == 0 && options->warmup_ms > 0)
        TRY(run_until(run, run->begun_us + (uint64_t)options->warmup_ms * 1000, err));

    *run->result = (LoadResult){0};
    ProcessUsage before;
    uint64_t client_before_us = 0;
    TRY(measure(run, &before, &client_before_us, err));
    run->measure_us = clock_monotonic_us(run->clock);
    if (run->issued == 0)
        run->begun_us = run->measure_us; /* there was no warm-up */
    run->end_us = run->measure_us + (uint64_t)options->seconds * 1000000;
    Status status = run_measured(run, err);
    uint64_t now_us = clock_monotonic_us(run->clock);
    LoadResult *result = run->result;
    result->elapsed_us = now_us > run->measure_us ? now_us - run->measure_us : 1;
    result->end = run->end;
    if (options->rate > 0 && run->end == LOAD_END_DONE)
        count_unanswered(run, now_us);
    TRY(status);
    if (options->count > 0 && run->ended < options->count && run->end == LOAD_END_DONE)
        return error_set(err, STATUS_TIMEOUT, SUB_NONE,
                         "%" PRIu64 " of %" PRIu64 " requests were answered within %" PRIu32 " s",
                         run->ended, options->count, options->seconds);
    TRY(measure(run, &result->server, &result->client_cpu_us, err));
    result->server.cpu_us -= before.cpu_us;
    result->client_cpu_us -= client_before_us;
    return STATUS_OK;
}

Status load_run(const LoadOptions *options, const Clock *clock, LoadResult *result, Error *err)
{
    ASSERT(options->connections > 0);
    ASSERT(options->connections <= LOAD_CONNECTIONS_MAX);
    *result = (LoadResult){0};
    AUTO(run_done) Run run = {.options = options, .clock = clock, .result = result, .epoll_fd = -1};
    return run_all(&run, err);
}
