/* run.c - see run.h. */
#include "bench/run.h"

#include "base/mem.h"
#include "bench/connection.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

/* The run ends if the server breaks connections faster than it answers. */
enum { FAILURES_MAX = 1000, EVENTS_MAX = 256, DRAIN_MAX_S = 600 };

typedef struct Run {
    const RunOptions *options;
    const Clock *clock;
    RunResult *result;
    RequestMaker maker;
    struct addrinfo *address;
    int epoll_fd;
    Connection *connections;
    uint32_t *idle; /* a stack of connections without a request */
    uint32_t idle_count;
    uint64_t begun_us;
    uint64_t issued;  /* requests since then */
    uint64_t ended;   /* of those: answered, or lost with their connection */
    bool is_draining; /* nothing more is sent */
} Run;

static void run_done(Run *run)
{
    for (uint32_t i = 0; run->connections != NULL && i < run->options->connections; i++)
        connection_done(&run->connections[i]);
    mem_free(run->connections);
    mem_free(run->idle);
    address_free(run->address);
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

static Status open_one(Run *run, uint32_t index, Error *err)
{
    Connection *c = &run->connections[index];
    TRY(connection_open(c, run->address, err));
    TRY(connection_unblock(c, err));
    TRY(watch(run, index, EPOLL_CTL_ADD, EPOLLIN, err));
    run->idle[run->idle_count++] = index;
    return STATUS_OK;
}

static Status open_all(Run *run, Error *err)
{
    uint32_t count = run->options->connections;
    TRY(request_maker_init(&run->maker, &run->options->request, err));
    TRY(address_resolve(&run->options->request.url, &run->address, err));
    run->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (run->epoll_fd < 0)
        return error_set_errno(err, errno, "cannot make an epoll set");
    run->idle = MEM_NEW_ARRAY(uint32_t, count);
    run->connections = MEM_NEW_ARRAY(Connection, count);
    for (uint32_t i = 0; i < count; i++)
        connection_init(&run->connections[i], false);
    for (uint32_t i = 0; i < count; i++)
        TRY(open_one(run, i, err));
    return STATUS_OK;
}

/* A broken connection is counted and opened again; only if that fails is the run over. */
static Status recover(Run *run, uint32_t index, const Error *failure, Error *err)
{
    if (run->result->failures == 0)
        run->result->first_failure = *failure;
    if (++run->result->failures > FAILURES_MAX)
        return error_set(err, STATUS_IO, SUB_NONE, "more than %d connections broke; the first: %s",
                         FAILURES_MAX, run->result->first_failure.message);
    run->ended++;
    return open_one(run, index, err);
}

static bool is_all_issued(const Run *run)
{
    return run->is_draining ||
           (run->options->requests > 0 && run->issued >= run->options->requests);
}

/* Where the next page begins, by the answer to the one before; empty if there was none. */
static Slice next_page(const RequestOptions *options, const Reply *reply)
{
    return options->is_feed ? reply->etag : reply->continuation;
}

/* Asks for the first page of a turn, or for what goes on at the continuation of the answer. */
static Status send_page(Run *run, uint32_t index, Error *err)
{
    Connection *c = &run->connections[index];
    buf_reset(&c->out);
    request_print(&run->maker, c->turn, next_page(&run->options->request, &c->reply),
                  clock_wall_s(run->clock), &c->out);
    reply_reset(&c->reply);
    c->out_sent = 0;
    bool sent = false;
    Error failure = {0};
    if (connection_send(c, &sent, &failure) != STATUS_OK)
        return recover(run, index, &failure, err);
    return sent ? STATUS_OK : watch(run, index, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT, err);
}

/* Sends the next request on an idle connection; it was due at 'due_us'. */
static Status issue(Run *run, uint64_t due_us, Error *err)
{
    uint32_t index = run->idle[--run->idle_count];
    Connection *c = &run->connections[index];
    reply_reset(&c->reply);
    c->is_busy = true;
    c->begun_us = due_us;
    c->pages = 0;
    c->turn = run->options->turn + run->issued++;
    return send_page(run, index, err);
}

/* When the next request is due: at once without a rate, else by the clock. */
static uint64_t next_due_us(const Run *run, uint64_t now_us)
{
    uint64_t rate = run->options->rate;
    return rate == 0 ? now_us : run->begun_us + run->issued * 1000000 / rate;
}

static Status issue_due(Run *run, Error *err)
{
    uint64_t now_us = clock_monotonic_us(run->clock);
    while (run->idle_count > 0 && !is_all_issued(run)) {
        uint64_t due_us = next_due_us(run, now_us);
        if (due_us > now_us)
            break;
        TRY(issue(run, due_us, err));
    }
    return STATUS_OK;
}

static bool has_more(const Run *run, const Connection *c)
{
    const RequestOptions *options = &run->options->request;
    return (options->is_query || options->is_feed) && c->reply.status == 200 &&
           next_page(options, &c->reply).len > 0;
}

static Status check_open(const Connection *c, Error *err)
{
    if (c->reply.is_close)
        return error_set(err, STATUS_IO, SUB_NONE, "the server closed between two pages");
    return STATUS_OK;
}

static Status send_more(Run *run, uint32_t index, Error *err)
{
    Error failure = {0};
    if (check_open(&run->connections[index], &failure) != STATUS_OK)
        return recover(run, index, &failure, err);
    return send_page(run, index, err);
}

/* Counts a complete answer, and goes on with the next page or the next request. */
static Status take_page(Run *run, uint32_t index, Error *err)
{
    Connection *c = &run->connections[index];
    RunResult *result = run->result;
    uint64_t taken_us = clock_monotonic_us(run->clock) - c->begun_us;
    result->by_status[c->reply.status]++;
    result->pages++;
    result->body_bytes += c->reply.body_len;
    if (c->pages++ == 0)
        c->first_us = taken_us;
    if (has_more(run, c))
        return send_more(run, index, err);
    histogram_add(&result->latency_us, taken_us);
    histogram_add(&result->first_page_us, c->first_us);
    run->ended++;
    c->is_busy = false;
    if (c->reply.is_close)
        return open_one(run, index, err);
    run->idle[run->idle_count++] = index;
    return STATUS_OK;
}

static Status handle_event(Run *run, const struct epoll_event *event, Error *err)
{
    uint32_t index = event->data.u32;
    Connection *c = &run->connections[index];
    Error failure = {0};
    bool complete = false;
    if ((event->events & EPOLLOUT) != 0) {
        if (connection_send(c, &complete, &failure) != STATUS_OK)
            return recover(run, index, &failure, err);
        if (complete)
            TRY(watch(run, index, EPOLL_CTL_MOD, EPOLLIN, err));
    }
    if ((event->events & ~(uint32_t)EPOLLOUT) == 0)
        return STATUS_OK;
    if (!c->is_busy) {
        /* A server may close what is idle; that is no failure, but the place must be filled. */
        for (uint32_t i = 0; i < run->idle_count; i++) {
            if (run->idle[i] == index)
                run->idle[i] = run->idle[--run->idle_count];
        }
        return open_one(run, index, err);
    }
    if (connection_receive(c, &complete, &failure) != STATUS_OK)
        return recover(run, index, &failure, err);
    if (!complete)
        return STATUS_OK;
    return take_page(run, index, err);
}

/* Waits for answers, at most until 'until_us'. */
static Status wait_events(Run *run, uint64_t until_us, Error *err)
{
    uint64_t now_us = clock_monotonic_us(run->clock);
    uint64_t left_us = until_us > now_us ? until_us - now_us : 0;
    struct timespec timeout = {.tv_sec = (time_t)(left_us / 1000000),
                               .tv_nsec = (long)(left_us % 1000000) * 1000};
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_pwait2(run->epoll_fd, events, EVENTS_MAX, &timeout, NULL);
    if (count < 0 && errno != EINTR)
        return error_set_errno(err, errno, "cannot wait for answers");
    for (int i = 0; i < count; i++)
        TRY(handle_event(run, &events[i], err));
    return STATUS_OK;
}

static Status run_until(Run *run, uint64_t end_us, Error *err)
{
    for (;;) {
        TRY(issue_due(run, err));
        uint64_t now_us = clock_monotonic_us(run->clock);
        if (now_us >= end_us || (is_all_issued(run) && run->ended == run->issued))
            return STATUS_OK;
        /* With nothing left to send, or no connection idle, it is an answer that lets us go on, not
         * the time. */
        bool is_waiting = run->idle_count == 0 || is_all_issued(run);
        uint64_t due_us = is_waiting ? end_us : next_due_us(run, now_us);
        TRY(wait_events(run, due_us < end_us ? due_us : end_us, err));
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

Status run_load(const RunOptions *options, const Clock *clock, RunResult *result, Error *err)
{
    ASSERT(options->connections > 0);
    ASSERT(options->connections <= RUN_CONNECTIONS_MAX);
    *result = (RunResult){0};
    AUTO(run_done) Run run = {.options = options, .clock = clock, .result = result, .epoll_fd = -1};
    TRY(open_all(&run, err));
    run.begun_us = clock_monotonic_us(clock);
    if (options->requests == 0 && options->warmup_ms > 0)
        TRY(run_until(&run, run.begun_us + (uint64_t)options->warmup_ms * 1000, err));

    *result = (RunResult){0};
    ProcessUsage before;
    uint64_t client_before_us = 0;
    TRY(measure(&run, &before, &client_before_us, err));
    uint64_t begin_us = clock_monotonic_us(clock);
    uint64_t end_us = begin_us + (uint64_t)options->seconds * 1000000;
    TRY(run_until(&run, end_us, err));
    if (options->drains) {
        run.is_draining = true;
        TRY(run_until(&run, end_us + (uint64_t)DRAIN_MAX_S * 1000000, err));
    }
    result->elapsed_us = clock_monotonic_us(clock) - begin_us;
    if (options->requests > 0 && run.ended < options->requests)
        return error_set(err, STATUS_TIMEOUT, SUB_NONE,
                         "%" PRIu64 " of %" PRIu64 " requests were answered within %" PRIu32 " s",
                         run.ended, options->requests, options->seconds);
    TRY(measure(&run, &result->server, &result->client_cpu_us, err));
    result->server.cpu_us -= before.cpu_us;
    result->client_cpu_us -= client_before_us;
    return STATUS_OK;
}

/* Receives one whole answer. */
static Status receive_whole(Connection *c, const Clock *clock, Error *err)
{
    uint64_t end_us = clock_monotonic_us(clock) + (uint64_t)CONNECTION_TIMEOUT_S * 1000000;
    for (bool complete = false; !complete;) {
        TRY(connection_receive(c, &complete, err));
        if (!complete && clock_monotonic_us(clock) > end_us)
            return error_set(err, STATUS_TIMEOUT, SUB_NONE, "no answer within %d s",
                             CONNECTION_TIMEOUT_S);
    }
    return STATUS_OK;
}

Status run_once(const RequestOptions *options, uint64_t turn, const Clock *clock, int *status,
                Buf *body, Error *err)
{
    AUTO(request_maker_done) RequestMaker maker;
    AUTO(address_free) struct addrinfo *address = NULL;
    AUTO(connection_done) Connection c;
    connection_init(&c, true);
    TRY(request_maker_init(&maker, options, err));
    TRY(address_resolve(&options->url, &address, err));
    TRY(connection_open(&c, address, err));
    for (;;) {
        buf_reset(&c.out);
        request_print(&maker, turn, next_page(options, &c.reply), clock_wall_s(clock), &c.out);
        reply_reset(&c.reply);
        c.out_sent = 0;
        bool complete = false;
        TRY(connection_send(&c, &complete, err));
        if (!complete)
            return error_set(err, STATUS_TIMEOUT, SUB_NONE, "the server did not take the request");
        TRY(receive_whole(&c, clock, err));
        buf_slice(body, buf_view(&c.reply.body));
        *status = c.reply.status;
        if (!options->is_query || c.reply.status != 200 || c.reply.continuation.len == 0)
            return STATUS_OK;
        buf_byte(body, '\n');
    }
}
