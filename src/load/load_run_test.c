/* load_run_test.c - what is counted, by a server that makes time pass. */
#include "load/load_run.h"

#include "base/testing.h"
#include "base/thread.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct Answer {
    uint64_t takes_us;
    bool has_more;
    bool is_close;
    int status;              /* 0 for 200 */
    uint32_t retry_after_ms; /* of 429; time passes until the request comes again */
    const char *charge;      /* request units; NULL for none */
    bool is_missing;         /* time passes, and nothing is sent; the last one */
    const char *body;        /* NULL for "{}" */
    uint64_t down_us;        /* with 'is_close': nobody can connect for so long */
} Answer;

/* Gives these answers in turn. Its thread does not use what cmocka asserts with: that jumps. */
typedef struct Script {
    const Answer *answers;
    size_t count;
    FakeClock clock;
    _Atomic bool is_over; /* the client has ended */
    int listener;
    uint16_t port;
    char url[64];
} Script;

static void listen_on(Script *script)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons(script->port)};
    socklen_t len = sizeof(address);
    int on = 1;
    script->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT(script->listener >= 0);
    ASSERT(setsockopt(script->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
    ASSERT(bind(script->listener, (struct sockaddr *)&address, len) == 0);
    ASSERT(listen(script->listener, 8) == 0);
    ASSERT(getsockname(script->listener, (struct sockaddr *)&address, &len) == 0);
    script->port = ntohs(address.sin_port);
}

/* Time passes while nobody can connect, and until the first one does again. */
static void stay_down(Script *script, uint64_t down_us)
{
    for (uint64_t passed_us = 0; passed_us < down_us && !script->is_over; passed_us += 50000) {
        fake_clock_advance(&script->clock, 50000);
        (void)poll(NULL, 0, 1);
    }
    listen_on(script);
    struct pollfd poller = {.fd = script->listener, .events = POLLIN};
    while (!script->is_over && poll(&poller, 1, 1) == 0)
        fake_clock_advance(&script->clock, 10000);
}

static void wait_readable(Script *script, int fd, bool time_passes)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    while (time_passes && poll(&poller, 1, 1) == 0)
        fake_clock_advance(&script->clock, 1000);
}

/* One whole request: what a query sends ends like this, and nothing follows before the answer. */
static void receive_request(Script *script, int fd, bool goes_on, bool time_passes)
{
    char text[4096];
    size_t len = 0;
    wait_readable(script, fd, time_passes);
    while (len < 2 || memcmp(text + len - 2, "]}", 2) != 0) {
        ssize_t got = recv(fd, text + len, sizeof(text) - len, 0);
        ASSERT(got > 0);
        len += (size_t)got;
    }
    ASSERT((memmem(text, len, "\r\nx-ms-continuation: next\r\n", 27) != NULL) == goes_on);
}

static void send_answer(int fd, const Answer *answer)
{
    char text[4096];
    const char *body = answer->body == NULL ? "{}" : answer->body;
    int len = snprintf(text, sizeof(text),
                       "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nx-ms-retry-after-ms: %u\r\n"
                       "x-ms-request-charge: %s\r\n%s%s\r\n%s",
                       answer->status == 0 ? 200 : answer->status, strlen(body),
                       answer->retry_after_ms, answer->charge == NULL ? "0" : answer->charge,
                       answer->has_more ? "x-ms-continuation: next\r\n" : "",
                       answer->is_close ? "Connection: close\r\n" : "", body);
    ASSERT(send(fd, text, (size_t)len, MSG_NOSIGNAL) == len);
}

static void *play(void *ctx)
{
    Script *script = ctx;
    int fd = -1;
    bool goes_on = false;
    bool time_passes = false;
    for (size_t i = 0; i < script->count; i++) {
        const Answer *answer = &script->answers[i];
        if (fd < 0)
            fd = accept(script->listener, NULL, NULL);
        ASSERT(fd >= 0);
        receive_request(script, fd, goes_on, time_passes || answer->is_missing);
        fake_clock_advance(&script->clock, answer->takes_us);
        if (answer->is_missing) {
            while (!script->is_over) {
                fake_clock_advance(&script->clock, 10000);
                (void)poll(NULL, 0, 1);
            }
            break;
        }
        if (answer->down_us > 0)
            (void)close(script->listener);
        send_answer(fd, answer);
        goes_on = answer->has_more && !answer->is_close;
        time_passes = answer->status == 429 || answer->status == 207;
        if (answer->is_close) {
            (void)close(fd); /* nothing is left to be sent */
            fd = -1;
        }
        if (answer->down_us > 0)
            stay_down(script, answer->down_us);
    }
    if (fd >= 0)
        (void)close(fd);
    return NULL;
}

/* Sends queries, one after the other, to a server that gives these answers. */
static Status try_options(LoadOptions options, const Answer *answers, size_t count,
                          LoadResult *result, Error *err)
{
    Script script = {.answers = answers, .count = count};
    fake_clock_init(&script.clock, UINT64_C(1700000000000000));
    listen_on(&script);
    (void)snprintf(script.url, sizeof(script.url), "http://localhost:%u/dbs/b/colls/c/docs",
                   script.port);
    options.request =
        (RequestOptions){.kind = WORKLOAD_QUERY, .query = {.kind = QUERY_ALL, .count = 1}};
    options.connections = 1;
    options.stop_fd = -1;
    assert_int_equal(url_parse(slice_from_cstr(script.url), &options.request.url, err), STATUS_OK);
    LoadTargetOptions target_options = {.url = options.request.url};
    AUTO(load_target_close) LoadTarget *target = NULL;
    assert_int_equal(load_target_open(&target_options, &target, err), STATUS_OK);
    assert_true(load_target_is_loopback(target));
    options.target = target;
    pthread_t thread;
    assert_int_equal(thread_start(&thread, "script", play, &script, err), STATUS_OK);
    Status status = load_run(&options, &script.clock.clock, result, err);
    script.is_over = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(close(script.listener), 0);
    return status;
}

static void run_options(LoadOptions options, const Answer *answers, size_t count,
                        LoadResult *result)
{
    assert_ok(try_options(options, answers, count, result, err));
}

static void run_script(const Answer *answers, size_t count, uint64_t requests, LoadResult *result)
{
    run_options((LoadOptions){.seconds = 3600, .count = requests}, answers, count, result);
}

static void the_first_page_and_the_last_are_timed_apart(void **state)
{
    (void)state;
    static const Answer answers[] = {
        {.takes_us = 5000, .has_more = true},
        {.takes_us = 7000, .has_more = true},
        {.takes_us = 1000},
    };
    LoadResult result;
    run_script(answers, ARRAY_COUNT(answers), 1, &result);
    assert_int_equal(result.pages, 3);
    assert_int_equal(result.by_status[200], 3);
    assert_int_equal(result.latency_us.count, 1);
    assert_int_equal(result.latency_us.value_max, 13000);
    assert_int_equal(result.first_page_us.count, 1);
    assert_int_equal(result.first_page_us.value_max, 5000);
}

static void a_single_page_is_the_first_and_the_last(void **state)
{
    (void)state;
    static const Answer answers[] = {{.takes_us = 3000}};
    LoadResult result;
    run_script(answers, ARRAY_COUNT(answers), 1, &result);
    assert_int_equal(result.pages, 1);
    assert_int_equal(result.latency_us.value_max, 3000);
    assert_int_equal(result.first_page_us.value_max, 3000);
}

static void each_query_has_a_first_page_of_its_own(void **state)
{
    (void)state;
    static const Answer answers[] = {
        {.takes_us = 1000, .has_more = true},
        {.takes_us = 2000},
        {.takes_us = 8000, .has_more = true},
        {.takes_us = 16000},
    };
    LoadResult result;
    run_script(answers, ARRAY_COUNT(answers), 2, &result);
    assert_int_equal(result.latency_us.count, 2);
    assert_int_equal(result.latency_us.value_max, 24000);
    assert_int_equal(result.first_page_us.count, 2);
    assert_int_equal(result.first_page_us.value_max, 8000);
    assert_in_range(histogram_percentile(&result.first_page_us, 50000), 1000, 1016);
}

static void a_query_that_is_cut_off_is_a_failure_and_has_no_times(void **state)
{
    (void)state;
    static const Answer answers[] = {
        {.takes_us = 1000, .has_more = true, .is_close = true},
        {.takes_us = 4000, .has_more = true},
        {.takes_us = 2000},
    };
    LoadResult result;
    run_script(answers, ARRAY_COUNT(answers), 2, &result);
    assert_int_equal(result.failures, 1);
    assert_int_equal(result.latency_us.count, 1);
    assert_int_equal(result.latency_us.value_max, 6000);
    assert_int_equal(result.first_page_us.count, 1);
    assert_int_equal(result.first_page_us.value_max, 4000);
}

/* The server stalls for 5 ms while a request is due every millisecond: the requests that had to
 * wait for it are late by what was left of the stall, although each was answered at once. */
static void a_stall_is_in_the_latency_of_all_requests_that_were_due(void **state)
{
    (void)state;
    static const Answer answers[] = {{.takes_us = 5000}, {0}, {0}, {0}, {0}, {0}};
    LoadResult result;
    run_options((LoadOptions){.seconds = 3600, .count = 6, .rate = 1000}, answers,
                ARRAY_COUNT(answers), &result);
    static const uint64_t expected[] = {0, 1000, 2000, 3000, 4000, 5000};
    assert_int_equal(result.latency_us.count, ARRAY_COUNT(expected));
    for (size_t i = 0; i < ARRAY_COUNT(expected); i++) {
        uint64_t found = histogram_percentile(
            &result.latency_us, (uint32_t)((i + 1) * HISTOGRAM_WHOLE / ARRAY_COUNT(expected)));
        assert_in_range(found, expected[i], expected[i] + expected[i] / 60);
    }
    assert_int_equal(result.latency_us.sum, 15000);
    assert_int_equal(result.unanswered, 0);
    /* Without a rate, the same server looks fast but for one request. */
    run_script(answers, ARRAY_COUNT(answers), 6, &result);
    assert_int_equal(result.latency_us.sum, 5000);
}

/* A server that never answers again is not left out: 10 requests were due in the second. */
static void requests_without_an_answer_count_with_the_time_they_waited(void **state)
{
    (void)state;
    static const Answer answers[] = {{.takes_us = 1000}, {.is_missing = true}};
    LoadResult result;
    run_options((LoadOptions){.seconds = 1, .rate = 10, .timeout_ms = 500}, answers,
                ARRAY_COUNT(answers), &result);
    assert_int_equal(result.succeeded, 1);
    assert_int_equal(result.latency_us.count, 10);
    assert_int_equal(result.unanswered, 9);
    assert_true(result.latency_us.value_max >= 500000);
    /* Without a rate, only what was sent. */
    run_options((LoadOptions){.seconds = 3600, .count = 2, .timeout_ms = 500}, answers,
                ARRAY_COUNT(answers), &result);
    assert_int_equal(result.succeeded, 1);
    assert_int_equal(result.failures, 1);
    assert_int_equal(result.unanswered, 1);
    assert_int_equal(result.latency_us.count, 2);
    assert_true(result.latency_us.value_max >= 500000);
}

static void a_throttled_request_is_sent_again_and_has_one_latency(void **state)
{
    (void)state;
    static const Answer answers[] = {
        {.takes_us = 100, .status = 429, .retry_after_ms = 7, .charge = "0.38"},
        {.takes_us = 100, .status = 429, .retry_after_ms = 2, .charge = "0.38"},
        {.takes_us = 100, .charge = "2.5"},
        {.takes_us = 100, .status = 429, .is_close = true, .retry_after_ms = 1},
        {.takes_us = 100, .charge = "2.5"},
    };
    LoadResult result;
    run_script(answers, ARRAY_COUNT(answers), 2, &result);
    assert_int_equal(result.throttled, 3);
    assert_int_equal(result.by_status[429], 3);
    assert_int_equal(result.by_status[200], 2);
    assert_int_equal(result.errors, 0);
    assert_int_equal(result.milli_ru, 5760);
    assert_int_equal(result.latency_us.count, 2);
    assert_true(result.latency_us.value_max >= 9300);
}

/* A batch fails as a whole, and says for each operation why; the one that was throttled may be any.
 */
static void a_throttled_operation_of_a_batch_is_throttling(void **state)
{
    (void)state;
    char body[2000];
    memset(body, ' ', sizeof(body));
    (void)snprintf(body + 1000, sizeof(body) - 1000, "{\"statusCode\":429}");
    const Answer answers[] = {
        {.takes_us = 100, .status = 207, .retry_after_ms = 3, .body = body},
        {.takes_us = 100},
        {.takes_us = 100, .status = 207, .body = "[{\"statusCode\":409}]"},
    };
    LoadResult result;
    run_script(answers, ARRAY_COUNT(answers), 2, &result);
    assert_int_equal(result.throttled, 1);
    assert_int_equal(result.succeeded, 1);
    assert_int_equal(result.errors, 1);
    assert_int_equal(result.error_status, 207);
}

static void errors_are_counted_and_have_no_latency(void **state)
{
    (void)state;
    static const Answer answers[] = {
        {.takes_us = 100, .status = 429, .retry_after_ms = 7},
        {.takes_us = 100, .status = 404},
        {.takes_us = 100},
    };
    LoadResult result;
    run_options((LoadOptions){.seconds = 3600, .count = 3, .no_retry = true}, answers,
                ARRAY_COUNT(answers), &result);
    assert_int_equal(result.errors, 2);
    assert_int_equal(result.error_status, 429);
    assert_string_equal(result.error_text, "{}");
    assert_int_equal(result.succeeded, 1);
    assert_int_equal(result.latency_us.count, 1);
}

static void a_run_ends_when_its_request_units_are_used(void **state)
{
    (void)state;
    static const Answer answers[] = {{.takes_us = 100, .charge = "4"},
                                     {.takes_us = 100, .charge = "4"},
                                     {.takes_us = 100, .charge = "4"}};
    LoadResult result;
    run_options((LoadOptions){.seconds = 3600, .milli_ru_max = 10000}, answers,
                ARRAY_COUNT(answers), &result);
    assert_int_equal(result.end, LOAD_END_MAX_RU);
    assert_int_equal(result.succeeded, 3);
    assert_int_equal(result.milli_ru, 12000);
}

/* It starts anew, as after a crash: the run goes on when it is back. */
static void a_server_may_be_away_for_a_while(void **state)
{
    (void)state;
    static const Answer answers[] = {
        {.takes_us = 100, .is_close = true, .down_us = 3000000},
        {.takes_us = 100},
    };
    LoadResult result;
    run_options((LoadOptions){.seconds = 3600, .count = 2, .rate = 1000}, answers,
                ARRAY_COUNT(answers), &result);
    assert_int_equal(result.succeeded, 2);
    assert_int_equal(result.failures, 0);
    assert_true(result.latency_us.value_max >= 2900000);
}

static void a_server_that_stays_away_ends_the_run(void **state)
{
    (void)state;
    static const Answer answers[] = {{.takes_us = 100, .is_close = true, .down_us = UINT64_MAX}};
    LoadResult result;
    Error err;
    assert_int_equal(try_options((LoadOptions){.seconds = 3600, .count = 2}, answers,
                                 ARRAY_COUNT(answers), &result, &err),
                     STATUS_UNAVAILABLE);
    assert_non_null(strstr(err.message, "the server is gone for 10 s: cannot connect"));
    assert_int_equal(result.succeeded, 1);
    assert_true(result.elapsed_us >= 10000000);
}

static void addresses_of_this_machine_are_known(void **state)
{
    (void)state;
    static const struct {
        Slice url;
        bool is_loopback;
    } rows[] = {
        {SLICE_INIT("http://127.0.0.1:1"), true},
        {SLICE_INIT("http://127.9.9.9:1"), true},
        {SLICE_INIT("http://[::1]:1"), true},
        {SLICE_INIT("http://[::ffff:127.0.0.1]:1"), true},
        {SLICE_INIT("http://128.0.0.1:1"), false},
        {SLICE_INIT("http://0.0.0.0:1"), false},
        {SLICE_INIT("http://[2001:db8::1]:1"), false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        LoadTargetOptions options = {0};
        AUTO(load_target_close) LoadTarget *target = NULL;
        assert_ok(url_parse(rows[i].url, &options.url, err));
        assert_ok(load_target_open(&options, &target, err));
        assert_int_equal(load_target_is_loopback(target), rows[i].is_loopback);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_page_and_the_last_are_timed_apart),
        cmocka_unit_test(a_single_page_is_the_first_and_the_last),
        cmocka_unit_test(each_query_has_a_first_page_of_its_own),
        cmocka_unit_test(a_query_that_is_cut_off_is_a_failure_and_has_no_times),
        cmocka_unit_test(a_stall_is_in_the_latency_of_all_requests_that_were_due),
        cmocka_unit_test(requests_without_an_answer_count_with_the_time_they_waited),
        cmocka_unit_test(a_throttled_request_is_sent_again_and_has_one_latency),
        cmocka_unit_test(a_throttled_operation_of_a_batch_is_throttling),
        cmocka_unit_test(errors_are_counted_and_have_no_latency),
        cmocka_unit_test(a_run_ends_when_its_request_units_are_used),
        cmocka_unit_test(a_server_may_be_away_for_a_while),
        cmocka_unit_test(a_server_that_stays_away_ends_the_run),
        cmocka_unit_test(addresses_of_this_machine_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
