/* load_once.c - see load_run.h: one request, and its answer. */
#include "load/load_connection.h"
#include "load/load_run.h"

/* Receives one whole answer. */
static Status receive_whole(LoadConnection *c, const Clock *clock, Error *err)
{
    uint64_t end_us = clock_monotonic_us(clock) + (uint64_t)LOAD_TIMEOUT_MS * 1000;
    for (bool complete = false; !complete;) {
        TRY(load_connection_receive(c, &complete, err));
        if (!complete && clock_monotonic_us(clock) > end_us)
            return error_set(err, STATUS_TIMEOUT, SUB_NONE, "no answer within %d s",
                             LOAD_TIMEOUT_MS / 1000);
    }
    return STATUS_OK;
}

Status load_once(const RequestOptions *options, LoadTarget *target, uint64_t turn,
                 const Clock *clock, int *status, Buf *body, Error *err)
{
    AUTO(request_maker_done) RequestMaker maker;
    AUTO(load_connection_done) LoadConnection c;
    load_connection_init(&c, true);
    TRY(request_maker_init(&maker, options, err));
    TRY(load_connection_open(&c, target, err));
    request_maker_begin(&maker, turn, &c.turn);
    for (;;) {
        buf_reset(&c.out);
        request_maker_print(&maker, &c.turn, c.reply.continuation, clock_wall_s(clock), &c.out);
        reply_reset(&c.reply);
        c.out_sent = 0;
        bool complete = false;
        TRY(load_connection_send(&c, &complete, err));
        if (!complete)
            return error_set(err, STATUS_TIMEOUT, SUB_NONE, "the server did not take the request");
        TRY(receive_whole(&c, clock, err));
        buf_slice(body, buf_view(&c.reply.body));
        *status = c.reply.status;
        if (options->kind != WORKLOAD_QUERY || c.reply.status != 200 ||
            c.reply.continuation.len == 0)
            return STATUS_OK;
        buf_byte(body, '\n');
    }
}
