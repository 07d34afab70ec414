/* call_wave.c - see call_wave.h. */
#include "transfer/call_wave.h"

#include "base/clock.h"
#include "transfer/remote.h"
#include "transfer/stop_signal.h"

enum {
    POLL_MS = 200,
    ATTEMPTS_MAX = 20,
    FAILURE_WAIT_MS = 200,
    THROTTLED_WAIT_MS = 100,
    GIVE_UP_US = 120 * 1000000, /* of a server that cannot be reached */
};

void wave_init(Wave *wave, Client *client, int stop_fd, uint32_t concurrency, WaveCost *cost)
{
    *wave = (Wave){.client = client, .stop_fd = stop_fd, .cost = cost};
    pace_init(&wave->pace, concurrency);
}

static void lower(uint32_t *wait_ms, uint64_t ms)
{
    if (ms < *wait_ms)
        *wait_ms = (uint32_t)ms;
}

/* Starts what may start. */
static void start(Wave *wave, WaveCall *calls, size_t count, uint64_t now_us, uint32_t *wait_ms)
{
    for (size_t i = 0; i < count; i++) {
        WaveCall *c = &calls[i];
        if (c->is_done || c->is_active)
            continue;
        if (c->wait_until_us > now_us) {
            lower(wait_ms, (c->wait_until_us - now_us + 999) / 1000);
            continue;
        }
        if (!pace_may_start(&wave->pace, now_us)) {
            uint64_t until_us = wave->pace.wait_until_us;
            if (until_us > now_us)
                lower(wait_ms, (until_us - now_us + 999) / 1000);
            return;
        }
        uint32_t ru_wait_ms = 0;
        if (!ru_limit_reserve(&wave->cost->limit, c->operations, now_us, &c->reserved,
                              &ru_wait_ms)) {
            lower(wait_ms, ru_wait_ms);
            return;
        }
        c->is_active = true;
        c->started_us = now_us;
        pace_start(&wave->pace);
        wave->cost->requests++;
        client_start(wave->client, &c->call);
    }
}

static bool is_passing(int http_status)
{
    return http_status == 408 || http_status == 449 || http_status == 500 || http_status == 503;
}

static Status take_answer(Wave *wave, WaveCall *c, uint64_t *failing_since_us, uint64_t now_us,
                          Error *err)
{
    const ClientCall *call = &c->call;
    c->is_active = false;
    if (call->error.status != STATUS_OK) {
        pace_failed(&wave->pace, FAILURE_WAIT_MS, now_us);
        ru_limit_settle(&wave->cost->limit, c->reserved, 0, 0);
        c->wait_until_us = now_us + FAILURE_WAIT_MS * 1000ULL;
        if (*failing_since_us == 0)
            *failing_since_us = now_us;
        if (now_us - *failing_since_us <= GIVE_UP_US)
            return STATUS_OK;
        *err = call->error;
        return err->status;
    }
    *failing_since_us = 0;
    double charge = remote_charge(call);
    wave->cost->ru += charge;
    ru_limit_settle(&wave->cost->limit, c->reserved, charge > 0 ? c->operations : 0, charge);
    if (call->http_status == 429) {
        uint32_t wait_ms = remote_retry_after_ms(call);
        wait_ms = wait_ms == 0 ? THROTTLED_WAIT_MS : wait_ms;
        wave->cost->throttled++;
        pace_throttled(&wave->pace, 0, wait_ms, c->started_us, now_us);
        c->wait_until_us = now_us + wait_ms * 1000ULL;
        return STATUS_OK;
    }
    if (is_passing(call->http_status) && ++c->attempts < ATTEMPTS_MAX) {
        uint32_t wait_ms = pace_backoff_ms(c->attempts - 1);
        pace_failed(&wave->pace, wait_ms, now_us);
        c->wait_until_us = now_us + wait_ms * 1000ULL;
        return STATUS_OK;
    }
    pace_accepted(&wave->pace);
    c->is_done = true;
    return STATUS_OK;
}

static size_t count_active(const WaveCall *calls, size_t count)
{
    size_t active = 0;
    for (size_t i = 0; i < count; i++)
        active += calls[i].is_active ? 1 : 0;
    return active;
}

static bool is_over(const WaveCall *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!calls[i].is_done)
            return false;
    }
    return true;
}

Status wave_run(Wave *wave, WaveCall *calls, size_t count, Error *err)
{
    ClientWake stop = {.fd = wave->stop_fd};
    uint64_t failing_since_us = 0;
    Error failure = {.status = STATUS_OK};
    for (size_t i = 0; i < count; i++)
        calls[i].operations = calls[i].operations == 0 ? 1 : calls[i].operations;
    while (!is_over(calls, count)) {
        bool is_ending = wave->is_stopped || failure.status != STATUS_OK;
        uint64_t now_us = clock_monotonic_us(clock_real());
        uint32_t wait_ms = POLL_MS;
        if (!is_ending)
            start(wave, calls, count, now_us, &wait_ms);
        else if (count_active(calls, count) == 0)
            break;
        if (wave->tick != NULL)
            wave->tick(wave->ctx);
        ClientCall *ended = NULL;
        size_t wakes = wave->stop_fd >= 0 && !wave->is_stopped ? 1 : 0;
        TRY(client_poll(wave->client, &stop, wakes, wait_ms, &ended, err));
        if (wakes > 0 && stop.is_ready) {
            stop_signal_taken(wave->stop_fd);
            wave->is_stopped = true;
        }
        if (ended == NULL)
            continue;
        Status status = take_answer(wave, CONTAINER_OF(ended, WaveCall, call), &failing_since_us,
                                    clock_monotonic_us(clock_real()), &failure);
        ASSERT(status == failure.status || status == STATUS_OK);
    }
    if (failure.status != STATUS_OK) {
        *err = failure;
        return failure.status;
    }
    if (wave->is_stopped)
        return error_set(err, STATUS_TIMEOUT, SUB_NONE, "stopped");
    return STATUS_OK;
}
