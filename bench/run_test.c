/* run_test.c - what is counted of queries with several pages, by a server that makes time pass. */
#include "bench/run.h"

#include "base/thread.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct Answer {
    uint64_t takes_us;
    bool has_more;
    bool is_close;
} Answer;

/* Gives these answers in turn. Its thread does not use what cmocka asserts with: that jumps. */
typedef struct Script {
    const Answer *answers;
    size_t count;
    FakeClock clock;
    int listener;
    char url[64];
} Script;

/* One whole request: what a query sends ends like this, and nothing follows before the answer. */
static void receive_request(int fd, bool goes_on)
{
    char text[4096];
    size_t len = 0;
    while (len < 2 || memcmp(text + len - 2, "]}", 2) != 0) {
        ssize_t got = recv(fd, text + len, sizeof(text) - len, 0);
        ASSERT(got > 0);
        len += (size_t)got;
    }
    ASSERT((memmem(text, len, "\r\nx-ms-continuation: next\r\n", 27) != NULL) == goes_on);
}

static void send_answer(int fd, const Answer *answer)
{
    char text[256];
    int len = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%s%s\r\n{}",
                       answer->has_more ? "x-ms-continuation: next\r\n" : "",
                       answer->is_close ? "Connection: close\r\n" : "");
    ASSERT(send(fd, text, (size_t)len, MSG_NOSIGNAL) == len);
}

static void *play(void *ctx)
{
    Script *script = ctx;
    int fd = -1;
    bool goes_on = false;
    for (size_t i = 0; i < script->count; i++) {
        const Answer *answer = &script->answers[i];
        if (fd < 0)
            fd = accept(script->listener, NULL, NULL);
        ASSERT(fd >= 0);
        receive_request(fd, goes_on);
        fake_clock_advance(&script->clock, answer->takes_us);
        send_answer(fd, answer);
        goes_on = answer->has_more && !answer->is_close;
        if (answer->is_close) {
            (void)close(fd); /* nothing is left to be sent */
            fd = -1;
        }
    }
    if (fd >= 0)
        (void)close(fd);
    return NULL;
}

static void listen_anywhere(Script *script)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    script->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(script->listener >= 0);
    assert_int_equal(bind(script->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(script->listener, 8), 0);
    assert_int_equal(getsockname(script->listener, (struct sockaddr *)&address, &len), 0);
    (void)snprintf(script->url, sizeof(script->url), "http://127.0.0.1:%u/dbs/b/colls/c/docs",
                   ntohs(address.sin_port));
}

/* Sends 'requests' queries, one after the other, to a server that gives these answers. */
static void run_script(const Answer *answers, size_t count, uint64_t requests, RunResult *result)
{
    Error err;
    Script script = {.answers = answers, .count = count};
    fake_clock_init(&script.clock, UINT64_C(1700000000000000));
    listen_anywhere(&script);
    RunOptions options = {
        .request = {.is_query = true, .query = {.kind = QUERY_ALL, .count = 1}},
        .connections = 1,
        .seconds = 3600,
        .requests = requests,
    };
    assert_int_equal(url_parse(slice_from_cstr(script.url), &options.request.url, &err), STATUS_OK);
    pthread_t thread;
    assert_int_equal(thread_start(&thread, "script", play, &script, &err), STATUS_OK);
    Status status = run_load(&options, &script.clock.clock, result, &err);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(close(script.listener), 0);
    assert_int_equal(status, STATUS_OK);
}

static void the_first_page_and_the_last_are_timed_apart(void **state)
{
    (void)state;
    static const Answer answers[] = {
        {.takes_us = 5000, .has_more = true},
        {.takes_us = 7000, .has_more = true},
        {.takes_us = 1000},
    };
    RunResult result;
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
    RunResult result;
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
    RunResult result;
    run_script(answers, ARRAY_COUNT(answers), 2, &result);
    assert_int_equal(result.latency_us.count, 2);
    assert_int_equal(result.latency_us.value_max, 24000);
    assert_int_equal(result.first_page_us.count, 2);
    assert_int_equal(result.first_page_us.value_max, 8000);
    assert_in_range(histogram_percentile(&result.first_page_us, 500), 1000, 1016);
}

static void a_query_that_is_cut_off_is_a_failure_and_has_no_times(void **state)
{
    (void)state;
    static const Answer answers[] = {
        {.takes_us = 1000, .has_more = true, .is_close = true},
        {.takes_us = 4000, .has_more = true},
        {.takes_us = 2000},
    };
    RunResult result;
    run_script(answers, ARRAY_COUNT(answers), 2, &result);
    assert_int_equal(result.failures, 1);
    assert_int_equal(result.latency_us.count, 1);
    assert_int_equal(result.latency_us.value_max, 6000);
    assert_int_equal(result.first_page_us.count, 1);
    assert_int_equal(result.first_page_us.value_max, 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_page_and_the_last_are_timed_apart),
        cmocka_unit_test(a_single_page_is_the_first_and_the_last),
        cmocka_unit_test(each_query_has_a_first_page_of_its_own),
        cmocka_unit_test(a_query_that_is_cut_off_is_a_failure_and_has_no_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
