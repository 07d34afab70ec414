/* advise_container_test.c - sampling a container of a server that follows a script: pages, times,
 * throttling, and answers that make no sense. */
#include "cli/advise_container.h"

#include "api/core/auth.h"
#include "base/testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* A server of one connection. For each request it takes the first row that is not spent and whose
 * text is in the request; a request without a row ends it. */
typedef struct Row {
    const char *in_request;
    const char *status; /* "200 OK" */
    const char *headers;
    const char *body;
    int times; /* that it may be taken; 0 for any number */
} Row;

typedef struct Peer {
    pthread_t thread;
    int fd;
    Row *rows;
    size_t row_count;
    int requests;
    char endpoint[64];
} Peer;

static bool read_request(int fd, char *out, size_t size)
{
    size_t len = 0;
    memset(out, 0, size);
    while (len + 1 < size && strstr(out, "\r\n\r\n") == NULL) {
        ssize_t got = read(fd, out + len, size - 1 - len);
        if (got <= 0)
            return false;
        len += (size_t)got;
    }
    return true;
}

static bool send_row(int fd, const Row *row)
{
    char text[8000];
    int len = snprintf(text, sizeof(text), "HTTP/1.1 %s\r\n%scontent-length: %zu\r\n\r\n%s",
                       row->status, row->headers, strlen(row->body), row->body);
    return len > 0 && send(fd, text, (size_t)len, MSG_NOSIGNAL) == len;
}

static bool answer(Peer *peer, int fd, const char *request)
{
    static const Row no_queries = {"", "404 Not Found", "", "{}", 0};
    bool has_queries = false;
    for (size_t i = 0; i < peer->row_count; i++)
        has_queries = has_queries || strstr(peer->rows[i].in_request, "/queries") != NULL;
    if (!has_queries && strstr(request, "/queries?") != NULL)
        return send_row(fd, &no_queries);
    for (size_t i = 0; i < peer->row_count; i++) {
        Row *row = &peer->rows[i];
        if (strcasestr(request, row->in_request) == NULL || row->times < 0)
            continue;
        if (row->times > 0 && --row->times == 0)
            row->times = -1;
        return send_row(fd, row);
    }
    return false;
}

static void *serve(void *arg)
{
    Peer *peer = arg;
    int fd = accept(peer->fd, NULL, NULL);
    char request[4000];
    while (read_request(fd, request, sizeof(request)) && answer(peer, fd, request))
        peer->requests++;
    (void)close(fd);
    return NULL;
}

static void peer_open(Peer *peer, Row *rows, size_t row_count)
{
    *peer = (Peer){.rows = rows, .row_count = row_count};
    peer->fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    assert_int_equal(bind(peer->fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(peer->fd, 16), 0);
    assert_int_equal(getsockname(peer->fd, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(peer->endpoint, sizeof(peer->endpoint), "http://127.0.0.1:%u",
                   ntohs(address.sin_port));
    assert_int_equal(pthread_create(&peer->thread, NULL, serve, peer), 0);
}

static Status read_container(Peer *peer, size_t items_max, Sample *sample, Arena *arena,
                             AdviseContainer *out, Error *err)
{
    Client *client = NULL;
    ClientOptions options = {
        .endpoint = peer->endpoint, .key = AUTH_DEVELOPMENT_KEY, .timeout_ms = 20000};
    sample_init(sample, (SampleLimits){items_max, SAMPLE_BYTES_MAX});
    assert_int_equal(client_open(&options, &client, err), STATUS_OK);
    Status status =
        advise_container_read(client, SLICE("d b"), SLICE("c"), sample, arena, out, err);
    client_close(client);
    assert_int_equal(pthread_join(peer->thread, NULL), 0);
    (void)close(peer->fd);
    return status;
}

#define DEFINITION                                                                             \
    {                                                                                          \
        "GET /dbs/d%20b/colls/c HTTP", "200 OK", "",                                           \
            "{\"partitionKey\":{\"paths\":[\"/a\",\"/b/c\"]},\"indexingPolicy\":{"             \
            "\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[{\"path\":\"/x/*\"}]}}", \
            0                                                                                  \
    }
#define LAYOUT "GET /_orrery/dbs/d%20b/colls/c/layout HTTP"
#define PAGE   "GET /dbs/d%20b/colls/c/docs HTTP"

static void pages_are_read_to_the_end(void **state)
{
    (void)state;
    Row rows[] = {
        DEFINITION,
        {LAYOUT, "200 OK", "",
         "{\"time\":1767230000,\"ranges\":[{\"id\":\"0\",\"items\":3},{\"id\":\"1\",\"items\":0}]}",
         0},
        {PAGE, "429 Too Many", "x-ms-retry-after-ms: 1\r\n", "{}", 2},
        {"if-none-match: \"7\"", "200 OK", "etag: \"9\"\r\n",
         "{\"Documents\":[{\"id\":\"3\",\"_ts\":1767225602}]}", 1},
        {"if-none-match: \"9\"", "304 Not Modified", "", "", 0},
        {PAGE, "200 OK", "etag: \"7\"\r\n",
         "{\"Documents\":[{\"id\":\"1\",\"_ts\":1767225600},{\"id\":\"2\",\"_ts\":1767225601}]}",
         0},
    };
    Peer peer;
    peer_open(&peer, rows, ARRAY_COUNT(rows));
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Sample sample;
    AdviseContainer container;
    Error err;
    Status status = read_container(&peer, 100, &sample, &arena, &container, &err);
    if (status != STATUS_OK)
        fail_msg("%s", err.message);
    assert_int_equal(sample.count, 3);
    assert_int_equal(sample.population, 3);
    assert_int_equal(container.key.kind, KEY_HIERARCHICAL);
    assert_int_equal(container.key.path_count, 2);
    IndexStep excluded = {.name = SLICE("x")};
    IndexStep included = {.name = SLICE("y")};
    assert_false(index_policy_has(container.policy, &excluded, 1));
    assert_true(index_policy_has(container.policy, &included, 1));
    sample_done(&sample);
}

/* Of a container that is larger than the sample, pages come from several times of its life. */
static void a_large_range_is_read_at_several_times(void **state)
{
    (void)state;
    Row rows[] = {
        DEFINITION,
        {LAYOUT, "200 OK", "", "{\"time\":1767312000,\"ranges\":[{\"id\":\"0\",\"items\":1000}]}",
         0},
        {"if-modified-since", "200 OK", "etag: \"5\"\r\n",
         "{\"Documents\":[{\"id\":\"later\",\"_ts\":1767311999}]}", 0},
        {PAGE, "200 OK", "etag: \"1\"\r\n",
         "{\"Documents\":[{\"id\":\"first\",\"_ts\":1767225600}]}", 0},
    };
    Peer peer;
    peer_open(&peer, rows, ARRAY_COUNT(rows));
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Sample sample;
    AdviseContainer container;
    Error err;
    assert_int_equal(read_container(&peer, 20, &sample, &arena, &container, &err), STATUS_OK);
    assert_true(sample.count > 10);
    assert_true(sample.count <= 20);
    size_t later = 0;
    for (size_t i = 0; i < sample.count; i++)
        later += slice_equal(json_string(json_get(sample.items[i].document, SLICE("id"))),
                             SLICE("later"));
    assert_true(later > 0);            /* the last span has items of its time, */
    assert_true(later < sample.count); /* the others have none, and are not asked again */
    assert_int_equal(sample.population, 1000);
    sample_done(&sample);
}

#define QUERIES "/queries?by=executions"

/* Those of a server that records none, or that is older, are none. */
static void recorded_queries_are_taken(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        const char *body;
        Status expected;
        size_t count;
    } cases[] = {
        {"200 OK",
         "{\"time\":100,\"since\":0,\"rows\":[{\"query\":\"SELECT * FROM c\",\"keyParts\":2,"
         "\"executions\":200,\"ru\":600,\"itemsRead\":1,\"indexKeysRead\":1,\"results\":1}]}",
         STATUS_OK, 1},
        {"200 OK", "{\"time\":100,\"since\":100,\"rows\":[]}", STATUS_OK, 0},
        {"404 Not Found", "{}", STATUS_OK, 0},
        {"400 Bad Request", "{\"message\":\"--no-query-texts\"}", STATUS_OK, 0},
        {"200 OK", "{\"rows\":7}", STATUS_UNAVAILABLE, 0},
        {"403 Forbidden", "{}", STATUS_UNAUTHORIZED, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        Row rows[] = {
            DEFINITION,
            {QUERIES, cases[i].status, "", cases[i].body, 0},
            {LAYOUT, "200 OK", "", "{\"time\":1767312000,\"ranges\":[]}", 0},
        };
        Peer peer;
        peer_open(&peer, rows, ARRAY_COUNT(rows));
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Sample sample;
        AdviseContainer container;
        Error err;
        assert_int_equal(read_container(&peer, 20, &sample, &arena, &container, &err),
                         cases[i].expected);
        assert_int_equal(container.recorded.count, cases[i].count);
        if (cases[i].count > 0)
            assert_slice(container.recorded.list[0].text,
                         SLICE("SELECT * FROM c WHERE ((c.a = @key1) AND (c.b.c = @key2))"));
        sample_done(&sample);
    }
}

static void answers_without_sense_are_refused(void **state)
{
    (void)state;
    static const char *const layouts[] = {
        "[]",
        "{\"time\":1}", /* no ranges: no items */
        "{\"ranges\":[]}",
        "{\"time\":1,\"ranges\":[{\"id\":\"0\"}]}",
        "{\"time\":1,\"ranges\":[{\"id\":\"0\",\"items\":-1}]}",
        "{\"time\":1,\"ranges\":[{\"id\":\"0\\r\\nx: y\",\"items\":1}]}",
        "{\"time\":1,\"ranges\":[{\"id\":\"0\",\"items\":1}]}",
        "{\"time\":",
    };
    for (size_t i = 0; i < ARRAY_COUNT(layouts); i++) {
        Row rows[] = {
            DEFINITION,
            {LAYOUT, "200 OK", "", layouts[i], 0},
            {PAGE, "200 OK", "etag: \"7\"\r\n", "{\"Documents\":[{\"id\":\"1\"}]}", 0},
        };
        Peer peer;
        peer_open(&peer, rows, ARRAY_COUNT(rows));
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Sample sample;
        AdviseContainer container;
        Error err;
        Status status = read_container(&peer, 100, &sample, &arena, &container, &err);
        bool is_empty = i == 1;
        if ((status == STATUS_OK) != is_empty)
            fail_msg("%s: %d", layouts[i], (int)status);
        assert_int_equal(sample.count, 0);
        sample_done(&sample);
    }
}

static void a_server_that_never_ends_is_left(void **state)
{
    (void)state;
    Row rows[] = {
        DEFINITION,
        {LAYOUT, "200 OK", "", "{\"time\":1767312000,\"ranges\":[{\"id\":\"0\",\"items\":50}]}", 0},
        {PAGE, "200 OK", "etag: \"7\"\r\n", "{\"Documents\":[]}", 0},
    };
    Peer peer;
    peer_open(&peer, rows, ARRAY_COUNT(rows));
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Sample sample;
    AdviseContainer container;
    Error err;
    assert_int_equal(read_container(&peer, 100, &sample, &arena, &container, &err), STATUS_OK);
    assert_int_equal(sample.count, 0);
    assert_true(peer.requests < 10);
    sample_done(&sample);
}

static void a_refusal_is_passed_on_without_control_characters(void **state)
{
    (void)state;
    Row rows[] = {
        {"GET /dbs/d%20b/colls/c HTTP", "404 Not Found", "",
         "{\"message\":\"\\u001b[2J is not there\\r\\nActivityId\"}", 0},
    };
    Peer peer;
    peer_open(&peer, rows, ARRAY_COUNT(rows));
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Sample sample;
    AdviseContainer container;
    Error err;
    assert_int_equal(read_container(&peer, 100, &sample, &arena, &container, &err),
                     STATUS_NOT_FOUND);
    assert_string_equal(err.message, "the server answered 404: \\u001b[2J is not there");
    sample_done(&sample);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_read_to_the_end),
        cmocka_unit_test(a_large_range_is_read_at_several_times),
        cmocka_unit_test(recorded_queries_are_taken),
        cmocka_unit_test(answers_without_sense_are_refused),
        cmocka_unit_test(a_server_that_never_ends_is_left),
        cmocka_unit_test(a_refusal_is_passed_on_without_control_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
