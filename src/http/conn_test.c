/* conn_test.c - the life of connections: time-outs, pace, limits, memory and the end. */
#include "http/testing_int.h"

#include <dirent.h>
#include <sys/resource.h>

#define HELLO "GET /hello HTTP/1.1\r\nhost: h\r\n\r\n"

/* CPU time of the whole process. */
static uint64_t cpu_ms(void)
{
    struct timespec time;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time), 0);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static void an_idle_connection_is_closed_and_a_busy_one_is_not(void **state)
{
    (void)state;
    Site *site = site_make();
    site->options.idle_ms = 800;
    site_start(site);
    Peer *silent = peer_open(site);
    Peer *kept = peer_open(site);
    Peer *busy = peer_open(site);
    peer_send(kept, HELLO);
    peer_expect(kept, 200, "hello");
    peer_send(busy, "POST /hold HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi");
    uint64_t begun = now_ms();
    peer_expect_end(silent);
    peer_expect_end(kept);
    assert_in_range(now_ms() - begun, 400, 5000);
    sleep_ms(800);
    assert_int_equal(site_metric(site, METRIC_CONNECTIONS_OPEN), 1);
    assert_int_equal(site_answer_held(site), 1);
    peer_expect(busy, 200, "hi");
    peer_expect_end(busy);
    peer_close(silent);
    peer_close(kept);
    peer_close(busy);
    site_end(site, 0);
}

/* Every byte is progress, and still the request has to be there in time. */
static void a_request_that_trickles_in_is_cut_off(void **state)
{
    (void)state;
    static const char *const starts[] = {
        "GET /hello HTTP/1.1\r\nhost: h\r\na: ",
        "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 10000\r\n\r\n",
        "POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n10000\r\n",
    };
    Site *site = site_make();
    site->options.request_ms = 400;
    site_start(site);
    for (size_t i = 0; i < ARRAY_COUNT(starts); i++) {
        Peer *client = peer_open(site);
        peer_send(client, HELLO);
        peer_expect(client, 200, "hello");
        sleep_ms(500); /* being idle does not count */
        uint64_t begun = now_ms();
        peer_send(client, starts[i]);
        struct pollfd poller = {.fd = client->fd, .events = POLLIN};
        while (poll(&poller, 1, 20) == 0) {
            assert_true(now_ms() - begun < WAIT_MS_MAX);
            peer_send(client, "x");
        }
        assert_in_range(now_ms() - begun, 300, 5000);
        /* It says so, without the time in which the connection was idle. */
        uint64_t took_us = peer_expect_refusal(client, 408, "RequestTimeout");
        assert_in_range(took_us / 1000, 300, now_ms() - begun);
        peer_expect_end(client);
        peer_close(client);
    }
    site_end(site, 0);
}

static void a_request_in_time_is_not_cut_off(void **state)
{
    (void)state;
    Site *site = site_make();
    site->options.request_ms = 1500;
    site_start(site);
    Peer *client = peer_open(site);
    for (int i = 0; i < 20; i++) { /* more than that in all */
        peer_send(client, "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\nab");
        sleep_ms(100);
        peer_send(client, "cd");
        peer_expect(client, 200, "abcd");
    }
    /* What the handler takes is not the client's time. */
    peer_send(client, "POST /hold HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi");
    sleep_ms(1800);
    assert_int_equal(site_answer_held(site), 1);
    peer_expect(client, 200, "hi");
    peer_close(client);
    site_end(site, 0);
}

static void a_client_that_does_not_read_is_cut_off(void **state)
{
    (void)state;
    Site *site = site_make();
    site->options.pace_ms = 300;
    site_start(site);
    Peer *client = peer_open(site);
    peer_send(client, "GET /big/20000000 HTTP/1.1\r\nhost: h\r\n\r\n");
    WAIT_UNTIL(atomic_load(&site->released_count) == 1);
    WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_OPEN) == 0);
    peer_close(client);
    site_end(site, 0);
}

static void a_client_that_reads_slowly_gets_everything(void **state)
{
    (void)state;
    Site *site = site_make();
    site->options.pace_ms = 500;
    site_start(site);
    Peer *client = peer_open(site);
    int size = 65536;
    assert_int_equal(setsockopt(client->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
    peer_send(client, "GET /big/20000000 HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
    size_t total = 0, got = 0, pause = 0;
    while ((got = peer_read(client)) > 0) {
        total += got;
        client->len = 0;
        if (total > pause) { /* about two seconds for all of it */
            sleep_ms(10);
            pause = total + 100000;
        }
    }
    assert_true(total > 20000000);
    peer_close(client);
    site_end(site, 0);
}

static void a_client_that_reads_a_little_now_and_then_is_cut_off(void **state)
{
    (void)state;
    Site *site = site_make();
    site->options.pace_ms = 500; /* 2 KB at least */
    site_start(site);
    Peer *client = peer_open(site);
    int size = 4096;
    assert_int_equal(setsockopt(client->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
    peer_send(client, "GET /big/20000000 HTTP/1.1\r\nhost: h\r\n\r\n");
    uint64_t until = now_ms() + WAIT_MS_MAX;
    while (atomic_load(&site->released_count) == 0 && now_ms() < until) {
        char byte;
        (void)recv(client->fd, &byte, 1, MSG_DONTWAIT);
        sleep_ms(10);
    }
    assert_int_equal(atomic_load(&site->released_count), 1);
    assert_int_equal(site_metric(site, METRIC_CONNECTIONS_SLOW), 1);
    peer_close(client);
    site_end(site, 0);
}

static void a_body_that_trickles_in_is_cut_off(void **state)
{
    static const char *const heads[] = {
        "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 1000000\r\n\r\n",
        "POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\nfffff\r\n",
    };
    (void)state;
    Site *site = site_make();
    site->options.pace_ms = 500; /* 2 KB at least; the whole request has a minute */
    site_start(site);
    for (size_t i = 0; i < ARRAY_COUNT(heads); i++) {
        Peer *client = peer_open(site);
        peer_send(client, heads[i]);
        for (int j = 0; j < 1000 && site_metric(site, METRIC_CONNECTIONS_SLOW) == (int64_t)i; j++) {
            (void)peer_try_send(client, "abcdefghij", 10);
            sleep_ms(10);
        }
        peer_expect_refusal(client, 408, "RequestTimeout");
        peer_expect_end(client);
        peer_close(client);
    }
    assert_int_equal(site_metric(site, METRIC_CONNECTIONS_SLOW), ARRAY_COUNT(heads));
    site_end(site, 0);
}

/* A site whose connections may hold 32 MB, so that three quarters of it are 24. */
static Site *start_small_site(void)
{
    Site *site = site_make();
    site->options.threads = 1;
    site->options.memory_bytes_max = HTTP_MEMORY_BYTES_MIN;
    site_start(site);
    return site;
}

static void expect_served(Peer *client)
{
    peer_send(client, HELLO);
    peer_expect(client, 200, "hello");
}

static void bodies_beyond_the_memory_are_refused_and_small_requests_are_not(void **state)
{
    (void)state;
    enum { COUNT = 40, LEN = 1 << 20 };
    Site *site = start_small_site();
    Peer *normal = peer_open(site);
    expect_served(normal);
    Peer *clients[COUNT];
    char *body = calloc(1, LEN);
    for (int i = 0; i < COUNT; i++) {
        clients[i] = peer_open(site);
        peer_send(clients[i], i % 2 == 0 ? "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: "
                                           "1048576\r\n\r\n"
                                         : "POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: "
                                           "chunked\r\n\r\n100000\r\n");
        (void)peer_try_send(clients[i], body, LEN - 1);
        expect_served(normal);
        assert_in_range(site_metric(site, METRIC_MEMORY_BYTES), 0, HTTP_MEMORY_BYTES_MIN);
    }
    WAIT_UNTIL(site_metric(site, METRIC_REQUESTS_SHED) > 0);
    /* The newest is one of those that came too late. */
    Answer answer;
    peer_answer(clients[COUNT - 1], &answer);
    assert_int_equal(answer.status, 503);
    assert_non_null(strstr(answer.body, "\"ServiceUnavailable\""));
    assert_non_null(strstr(answer.body, "32 MB, a share of --memory"));
    answer_done(&answer);
    for (int i = 0; i < COUNT; i++)
        peer_close(clients[i]);
    free(body);
    expect_served(normal);
    peer_close(normal);
    WAIT_UNTIL(site_metric(site, METRIC_MEMORY_BYTES) == 0);
    site_end(site, 0);
}

static void large_requests_under_way_have_a_bound(void **state)
{
    (void)state;
    enum { COUNT = 12, LEN = 1 << 20 };
    Site *site = start_small_site();
    Peer *clients[COUNT];
    char *body = calloc(1, LEN);
    int shed = 0;
    for (int i = 0; i < COUNT; i++) {
        clients[i] = peer_open(site);
        peer_send(clients[i], "POST /hold HTTP/1.1\r\nhost: h\r\ncontent-length: 1048576\r\n\r\n");
        assert_true(peer_try_send(clients[i], body, LEN));
        WAIT_UNTIL(atomic_load(&site->held_count) + site_metric(site, METRIC_REQUESTS_SHED) ==
                   i + 1);
    }
    shed = (int)site_metric(site, METRIC_REQUESTS_SHED);
    assert_in_range(shed, COUNT / 2, COUNT - 1);
    assert_int_equal(site_answer_held(site), COUNT - shed);
    for (int i = 0; i < COUNT; i++) {
        peer_expect(clients[i], i < COUNT - shed ? 200 : 503, NULL);
        peer_close(clients[i]);
    }
    free(body);
    WAIT_UNTIL(site_metric(site, METRIC_MEMORY_BYTES) == 0);
    site_end(site, 0);
}

static void connections_that_do_not_read_make_room_for_those_that_do(void **state)
{
    (void)state;
    enum { COUNT = 16, LEN = 10000000 };
    Site *site = start_small_site();
    Peer *deaf[COUNT];
    for (int i = 0; i < COUNT; i++) {
        deaf[i] = peer_open(site);
        peer_send(deaf[i], "GET /big/10000000 HTTP/1.1\r\nhost: h\r\n\r\n");
    }
    WAIT_UNTIL(site_metric(site, METRIC_ANSWERS_SHED) >= COUNT - 3);
    assert_in_range(site_metric(site, METRIC_MEMORY_BYTES), 0, HTTP_MEMORY_BYTES_MIN);
    sleep_ms(1000); /* those that are left could have read something by now */
    for (int i = 0; i < 3; i++) {
        Answer answer;
        Peer *client = peer_open(site);
        peer_send(client, "GET /big/10000000 HTTP/1.1\r\nhost: h\r\n\r\n");
        peer_answer(client, &answer);
        assert_int_equal(answer.body_len, LEN);
        answer_done(&answer);
        peer_close(client);
    }
    for (int i = 0; i < COUNT; i++)
        peer_close(deaf[i]);
    WAIT_UNTIL(site_metric(site, METRIC_MEMORY_BYTES) == 0);
    site_end(site, 0);
}

static void beyond_the_limit_connections_are_refused(void **state)
{
    (void)state;
    enum { MAX = 10 };
    Site *site = site_make();
    site->options.connections_max = MAX;
    site_start(site);
    Peer *clients[MAX];
    for (int i = 0; i < MAX; i++) {
        clients[i] = peer_open(site);
        peer_send(clients[i], HELLO);
        peer_expect(clients[i], 200, "hello");
    }
    for (int i = 0; i < 5; i++) {
        Peer *client = peer_open(site);
        peer_expect_end(client);
        peer_close(client);
    }
    assert_int_equal(site_metric(site, METRIC_CONNECTIONS_REFUSED), 5);
    assert_int_equal(site_metric(site, METRIC_CONNECTIONS_TOTAL), MAX);

    peer_close(clients[0]);
    WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_OPEN) == MAX - 1);
    clients[0] = peer_open(site);
    peer_send(clients[0], HELLO);
    peer_expect(clients[0], 200, "hello");
    for (int i = 0; i < MAX; i++)
        peer_close(clients[i]);
    site_end(site, 0);
}

static rlim_t highest_fd(void)
{
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    rlim_t highest = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        rlim_t fd = strtoul(entry->d_name, NULL, 10);
        highest = fd > highest && fd != (rlim_t)dirfd(folder) ? fd : highest;
    }
    (void)closedir(folder);
    return highest;
}

static void without_descriptors_the_server_waits_and_does_not_spin(void **state)
{
    (void)state;
    Site *site = site_make();
    site->log.level = LOG_LEVEL_ERROR;
    site_start(site);
    Peer *client = calloc(1, sizeof(Peer));
    client->fd = peer_socket();
    /* Fill the holes, so that there is no number left below the new limit. */
    struct rlimit before, now;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    now = before;
    now.rlim_cur = highest_fd() + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    int fillers[256], count = 0;
    while (count < 256 && (fillers[count] = dup(client->fd)) >= 0)
        count++;
    peer_connect(client->fd, site);
    peer_send(client, HELLO);
    uint64_t used = cpu_ms();
    sleep_ms(600);
    assert_true(cpu_ms() - used < 150);
    assert_int_equal(site_metric(site, METRIC_CONNECTIONS_TOTAL), 0);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    peer_expect(client, 200, "hello");
    while (count > 0)
        (void)close(fillers[--count]);
    peer_close(client);
    site_end(site, 0);
}

/* A loop does not sleep between questions that follow each other closely; when they end, it must.
 */
static void after_a_rush_of_requests_the_loop_sleeps(void **state)
{
    Site *site = *state;
    Peer *client = peer_open(site);
    for (int i = 0; i < 500; i++) {
        peer_send(client, HELLO);
        peer_expect(client, 200, "hello");
    }
    sleep_ms(20);
    uint64_t begun = cpu_ms();
    sleep_ms(300);
    assert_in_range(cpu_ms() - begun, 0, 50);
    peer_close(client);
}

static void a_thousand_connections_at_once_are_served(void **state)
{
    enum { COUNT = 1000 };
    Site *site = *state;
    Peer **clients = calloc(COUNT, sizeof(Peer *));
    for (int i = 0; i < COUNT; i++)
        clients[i] = peer_open(site);
    for (int i = 0; i < COUNT; i++)
        peer_send(clients[i], HELLO);
    for (int i = 0; i < COUNT; i++)
        peer_expect(clients[i], 200, "hello");
    assert_int_equal(site_metric(site, METRIC_CONNECTIONS_OPEN), COUNT);

    /* And they cost nothing while nothing happens. */
    uint64_t used = cpu_ms();
    sleep_ms(400);
    assert_true(cpu_ms() - used < 50);
    for (int i = 0; i < COUNT; i++)
        peer_close(clients[i]);
    WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_OPEN) == 0);
    free(clients);
}

static void connections_come_and_go_quickly(void **state)
{
    Site *site = *state;
    for (int i = 0; i < 500; i++) {
        Peer *client = peer_open(site);
        peer_send(client, "GET /hello HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
        peer_expect(client, 200, "hello");
        peer_expect_end(client);
        peer_close(client);
    }
    WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_OPEN) == 0);
    assert_int_equal(site_metric(site, METRIC_CONNECTIONS_TOTAL), 500);
}

static void one_address_has_its_share_of_connections(void **state)
{
    (void)state;
    for (int limits_local = 0; limits_local < 2; limits_local++) {
        Site *site = site_make();
        site->options.address_connections_max = 3;
        site->options.limits_local_clients = limits_local == 1;
        site_start(site);
        Peer *clients[4];
        for (int i = 0; i < 3; i++) {
            clients[i] = peer_open(site);
            peer_send(clients[i], HELLO);
            peer_expect(clients[i], 200, "hello");
        }
        clients[3] = peer_open(site);
        if (limits_local == 1) {
            peer_expect_end(clients[3]);
            assert_int_equal(site_metric(site, METRIC_CONNECTIONS_ADDRESS_REFUSED), 1);
            peer_close(clients[0]);
            WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_OPEN) == 2);
            clients[0] = peer_open(site);
            peer_send(clients[0], HELLO);
            peer_expect(clients[0], 200, "hello");
        } else {
            peer_send(clients[3], HELLO);
            peer_expect(clients[3], 200, "hello");
        }
        for (int i = 0; i < 4; i++)
            peer_close(clients[i]);
        site_end(site, 0);
    }
}

/* With one loop, so that it has all the connections. */
static void a_full_server_closes_those_that_say_nothing(void **state)
{
    (void)state;
    enum { COUNT = 20 };
    static const char *const starts[] = {"", "GET /hello HT", "\x16\x03\x01"};
    for (size_t kind = 0; kind < ARRAY_COUNT(starts); kind++) {
        Site *site = site_make();
        site->options.threads = 1;
        site->options.connections_max = COUNT;
        site_start(site);
        Peer *working = peer_open(site);
        peer_send(working, "POST /hold HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi");
        Peer *silent[COUNT];
        for (int i = 0; i < COUNT - 1; i++) {
            silent[i] = peer_open(site);
            peer_send(silent[i], starts[kind]);
        }
        WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_OPEN) == COUNT);
        /* Until they have been silent for long enough newcomers are refused. */
        bool is_served = false;
        uint64_t begun = now_ms();
        while (!is_served) {
            assert_true(now_ms() - begun < WAIT_MS_MAX);
            Peer *client = peer_open(site);
            Answer answer;
            is_served = peer_try_send(client, HELLO, strlen(HELLO)) &&
                        peer_try_answer(client, ANSWER_WITH_BODY, &answer);
            if (is_served)
                answer_done(&answer);
            peer_close(client);
            sleep_ms(50);
        }
        assert_true(site_metric(site, METRIC_CONNECTIONS_EVICTED) > 0);
        assert_true(site_metric(site, METRIC_CONNECTIONS_OPEN) <= COUNT);
        assert_int_equal(site_answer_held(site), 1);
        peer_expect(working, 200, "hi");
        for (int i = 0; i < COUNT - 1; i++)
            peer_close(silent[i]);
        peer_close(working);
        site_end(site, 0);
    }
}

static void a_new_connection_must_say_something(void **state)
{
    (void)state;
    Site *site = site_make();
    site->options.request_ms = 1500;
    site_start(site);
    Peer *silent = peer_open(site);
    Peer *kept = peer_open(site);
    peer_send(kept, HELLO);
    peer_expect(kept, 200, "hello");
    peer_expect_end(silent);
    /* Silence after a request is something else. */
    sleep_ms(1600);
    peer_send(kept, HELLO);
    peer_expect(kept, 200, "hello");
    peer_close(silent);
    peer_close(kept);
    site_end(site, 0);
}

static void a_port_in_use_fails_to_open(void **state)
{
    Site *site = *state;
    HttpOptions options = site->options;
    HttpServer *second = NULL;
    Error err;
    options.port = http_server_port(site->server);
    assert_int_equal(http_server_open(&options, &second, &err), STATUS_CONFLICT);
    assert_non_null(strstr(err.message, "is in use; choose another with --port"));
    options.port = 0;
    options.cert_file = "/no/such/file";
    assert_int_equal(http_server_open(&options, &second, &err), STATUS_IO);
    assert_non_null(strstr(err.message, "/no/such/file"));
}

/* Closing. */

typedef struct Closer {
    pthread_t thread;
    Site *site;
    uint32_t drain_ms;
    uint64_t took_ms;
} Closer;

static void *close_server(void *arg)
{
    Closer *closer = arg;
    uint64_t begun = now_ms();
    http_server_close(closer->site->server, closer->drain_ms);
    closer->site->server = NULL;
    closer->took_ms = now_ms() - begun;
    return NULL;
}

static void closing_ends_idle_connections_at_once(void **state)
{
    (void)state;
    Site *site = site_make();
    site_start(site);
    Peer *silent = peer_open(site);
    Peer *kept = peer_open(site);
    peer_send(kept, HELLO);
    peer_expect(kept, 200, "hello");
    WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_OPEN) == 2);
    Closer closer = {.site = site, .drain_ms = 10000};
    (void)close_server(&closer);
    assert_true(closer.took_ms < 5000);
    peer_expect_end(silent);
    peer_expect_end(kept);
    assert_int_equal(atomic_load(&site->loops_closed), 2);
    peer_close(silent);
    peer_close(kept);
    site_end(site, 0);
}

static bool is_refused(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = peer_socket();
    bool is_refused = connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0;
    (void)close(fd);
    return is_refused;
}

static void closing_lets_requests_under_way_finish(void **state)
{
    (void)state;
    Site *site = site_make();
    site_start(site);
    Peer *handled = peer_open(site);
    Peer *arriving = peer_open(site);
    Peer *reading = peer_open(site);
    peer_send(handled, "POST /hold HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi");
    peer_send(arriving, "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\nab");
    peer_send(reading, "GET /big/20000000 HTTP/1.1\r\nhost: h\r\n\r\n");
    WAIT_UNTIL(atomic_load(&site->held_count) == 1);
    WAIT_UNTIL(atomic_load(&site->handled_count) == 2);
    WAIT_UNTIL(site_metric(site, METRIC_REQUESTS_2XX) == 1);
    WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_OPEN) == 3);
    sleep_ms(50);
    Closer closer = {.site = site, .drain_ms = 15000};
    uint16_t port = http_server_port(site->server);
    assert_int_equal(pthread_create(&closer.thread, NULL, close_server, &closer), 0);

    /* New clients are refused as soon as the loops know about the stop. */
    WAIT_UNTIL(is_refused(port));

    /* Clients that were connected still get their answers. */
    Answer answer;
    assert_int_equal(site_answer_held(site), 1);
    peer_answer(handled, &answer);
    assert_string_equal(answer.body, "hi");
    assert_string_equal(answer_header(&answer, "connection"), "close");
    answer_done(&answer);
    peer_expect_end(handled);
    peer_send(arriving, "cd");
    peer_expect(arriving, 200, "abcd");
    peer_expect_end(arriving);
    peer_answer(reading, &answer);
    assert_int_equal(answer.body_len, 20000000);
    answer_done(&answer);
    assert_int_equal(pthread_join(closer.thread, NULL), 0);
    assert_true(closer.took_ms < 15000);
    peer_close(handled);
    peer_close(arriving);
    peer_close(reading);
    site_end(site, 0);
}

static void a_server_that_retires_says_so_with_each_answer(void **state)
{
    (void)state;
    Site *site = site_make();
    site_start(site);
    Peer *kept = peer_open(site);
    peer_send(kept, HELLO);
    peer_expect(kept, 200, "hello");
    http_server_retire(site->server);
    Peer *new = peer_open(site);
    Peer *peers[] = {kept, new};
    for (size_t i = 0; i < ARRAY_COUNT(peers); i++) {
        Answer answer;
        peer_send(peers[i], HELLO);
        peer_answer(peers[i], &answer);
        assert_string_equal(answer.body, "hello");
        assert_string_equal(answer_header(&answer, "connection"), "close");
        answer_done(&answer);
        peer_expect_end(peers[i]);
        peer_close(peers[i]);
    }
    WAIT_UNTIL(http_server_connections(site->server) == 0);
    site_end(site, 0);
}

/* Its client could not know whether the request was handled. */
static void closing_serves_a_connection_that_has_just_come(void **state)
{
    (void)state;
    Site *site = site_make();
    site_start(site);
    uint16_t port = http_server_port(site->server);
    Peer *late = peer_open(site);
    WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_OPEN) == 1);
    Closer closer = {.site = site, .drain_ms = 15000};
    assert_int_equal(pthread_create(&closer.thread, NULL, close_server, &closer), 0);
    WAIT_UNTIL(is_refused(port));
    peer_send(late, HELLO);
    peer_expect(late, 200, "hello");
    peer_expect_end(late);
    assert_int_equal(pthread_join(closer.thread, NULL), 0);
    assert_true(closer.took_ms < 15000);
    peer_close(late);
    site_end(site, 0);
}

static void closing_cuts_off_what_does_not_finish(void **state)
{
    (void)state;
    Site *site = site_make();
    site_start(site);
    Peer *handled = peer_open(site);
    Peer *arriving = peer_open(site);
    Peer *reading = peer_open(site);
    peer_send(handled, "POST /hold HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi");
    peer_send(arriving, "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\nab");
    peer_send(reading, "GET /big/20000000 HTTP/1.1\r\nhost: h\r\n\r\n");
    WAIT_UNTIL(atomic_load(&site->handled_count) == 2);
    WAIT_UNTIL(site_metric(site, METRIC_REQUESTS_2XX) == 1);
    WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_OPEN) == 3);
    sleep_ms(50);
    Closer closer = {.site = site, .drain_ms = 200};
    assert_int_equal(pthread_create(&closer.thread, NULL, close_server, &closer), 0);
    peer_expect_end(handled);
    peer_expect_end(arriving);
    WAIT_UNTIL(atomic_load(&site->released_count) == 1);
    /* The handler must still give back what it has, and then it is over. */
    sleep_ms(100);
    assert_int_equal(site_answer_held(site), 1);
    assert_int_equal(pthread_join(closer.thread, NULL), 0);
    assert_in_range(closer.took_ms, 200, 10000);
    peer_close(handled);
    peer_close(arriving);
    peer_close(reading);
    site_end(site, 0);
}

int main(void)
{
#define WITH_SITE(test) cmocka_unit_test_setup_teardown(test, site_setup, site_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_connection_is_closed_and_a_busy_one_is_not),
        cmocka_unit_test(a_request_that_trickles_in_is_cut_off),
        cmocka_unit_test(a_request_in_time_is_not_cut_off),
        cmocka_unit_test(a_client_that_does_not_read_is_cut_off),
        cmocka_unit_test(a_client_that_reads_slowly_gets_everything),
        cmocka_unit_test(a_client_that_reads_a_little_now_and_then_is_cut_off),
        cmocka_unit_test(a_body_that_trickles_in_is_cut_off),
        cmocka_unit_test(bodies_beyond_the_memory_are_refused_and_small_requests_are_not),
        cmocka_unit_test(large_requests_under_way_have_a_bound),
        cmocka_unit_test(connections_that_do_not_read_make_room_for_those_that_do),
        cmocka_unit_test(beyond_the_limit_connections_are_refused),
        cmocka_unit_test(without_descriptors_the_server_waits_and_does_not_spin),
        WITH_SITE(after_a_rush_of_requests_the_loop_sleeps),
        WITH_SITE(a_thousand_connections_at_once_are_served),
        WITH_SITE(connections_come_and_go_quickly),
        cmocka_unit_test(one_address_has_its_share_of_connections),
        cmocka_unit_test(a_full_server_closes_those_that_say_nothing),
        cmocka_unit_test(a_new_connection_must_say_something),
        WITH_SITE(a_port_in_use_fails_to_open),
        cmocka_unit_test(closing_ends_idle_connections_at_once),
        cmocka_unit_test(closing_lets_requests_under_way_finish),
        cmocka_unit_test(a_server_that_retires_says_so_with_each_answer),
        cmocka_unit_test(closing_serves_a_connection_that_has_just_come),
        cmocka_unit_test(closing_cuts_off_what_does_not_finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
