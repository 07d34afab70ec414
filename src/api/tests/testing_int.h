/* testing_int.h - for tests of requests: ask, and expect.
 *
 * JSON in rows is written with ' for ", so that it stays readable.
 */
#pragma once

/* Rows leave out what they do not care about. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#include "api/tests/fake_http_int.h"

#include "base/latch.h"
#include "base/testing.h"

typedef struct Header {
    const char *name, *value;
} Header;

/* A request as rows write it. 'headers' ends with a NULL name. */
typedef struct Ask {
    const char *method, *path, *body;
    Header headers[8];
    const char *key; /* NULL for the master key, "" for none */
} Ask;

static inline Slice quoted(Arena *arena, const char *row)
{
    return row_text(arena, row == NULL ? "" : row);
}

/* Sends it without waiting for the answer; free the exchange when that has come (fake_wait). */
static inline FakeExchange *ask_only(FakeServer *server, const Ask *a, FakeAnswer *answer)
{
    HttpHeader headers[ARRAY_COUNT(a->headers)];
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_COUNT(a->headers) && a->headers[i].name != NULL; i++)
        headers[count++] = (HttpHeader){slice_from_cstr(a->headers[i].name),
                                        quoted(&server->arena, a->headers[i].value)};
    FakeRequest request = {
        .method = slice_from_cstr(a->method),
        .path = slice_from_cstr(a->path),
        .headers = headers,
        .header_count = count,
        .body = quoted(&server->arena, a->body),
        .key = a->key == NULL ? SLICE(FAKE_KEY) : slice_from_cstr(a->key),
    };
    return fake_send(server, &request, answer);
}

static inline FakeAnswer ask(FakeServer *server, const Ask *a)
{
    FakeAnswer answer;
    FakeExchange *exchange = ask_only(server, a, &answer);
    fake_wait(server, &answer);
    mem_free(exchange);
    return answer;
}

static inline bool holds(Slice text, const char *word)
{
    return text.len > 0 && memmem(text.ptr, text.len, word, strlen(word)) != NULL;
}

static inline void expect_holds(Slice text, const char *word)
{
    if (!holds(text, word))
        fail_msg("expected '%s' in '%.*s'", word, SLICE_ARG(text));
}

static inline void expect_header(const FakeAnswer *answer, const char *name, const char *value)
{
    Slice found = fake_header(answer, name);
    if (!slice_equal(found, slice_from_cstr(value)))
        fail_msg("%s: expected '%s', found '%.*s'", name, value, SLICE_ARG(found));
}

static inline FakeAnswer expect_status(FakeServer *server, const Ask *a, int status)
{
    FakeAnswer answer = ask(server, a);
    if (answer.status != status)
        fail_msg("%s %s: expected %d, found %d: %.*s", a->method, a->path, status, answer.status,
                 SLICE_ARG(answer.body));
    return answer;
}

static inline Json body_of(FakeServer *server, const FakeAnswer *answer)
{
    Json body = JSON_NONE;
    Error err;
    assert_int_equal(json_parse(&server->arena, answer->body, &body, &err), STATUS_OK);
    return body;
}

static inline Slice text_of(Json body, const char *name)
{
    Json value = json_get(body, slice_from_cstr(name));
    assert_true(json_is(value, JSON_STRING));
    return json_string(value);
}

#define CONTAINER "{'id':'c','partitionKey':{'paths':['/pk'],'version':2}}"

/* A server with the database 'db' and a container in it. */
static inline void open_with(FakeServer *server, Ask container)
{
    fake_server_open(server, NULL);
    (void)expect_status(server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
    container.method = "POST";
    container.path = "/dbs/db/colls";
    (void)expect_status(server, &container, 201);
}

static inline void open_with_container(FakeServer *server)
{
    open_with(server, (Ask){.body = CONTAINER});
}

/* Items of the container 'c'. */
#define DOCS "/dbs/db/colls/c/docs"
#define PK(k)                               \
    {                                       \
        "x-ms-documentdb-partitionkey", (k) \
    }

static inline void make_item(FakeServer *server, const char *body)
{
    (void)expect_status(server, &(Ask){"POST", DOCS, body}, 201);
}

static inline int sub_status_of(const FakeAnswer *answer)
{
    uint64_t sub = 0;
    (void)slice_to_u64(fake_header(answer, "x-ms-substatus"), &sub);
    return (int)sub;
}

/* The container 'c' as the catalogue shows it now; valid until the next request. */
static inline const Container *container_now(FakeServer *server)
{
    ApiLoop *loop = server->loop.user;
    const Snapshot *snapshot = catalog_read(&loop->reader);
    const Database *database = snapshot_database_by_id(snapshot, SLICE("db"));
    assert_non_null(database);
    const Container *found = snapshot_container_by_id(snapshot, database->info.number, SLICE("c"));
    assert_non_null(found);
    return found;
}

/* Keeps the server's workers busy, so that jobs wait or are refused. */
enum { JAM_WAITING_MAX = 2 }; /* as many as fake_server_open lets wait */
typedef struct Jam {
    struct JamJob {
        WorkerJob job;
        struct Jam *jam;
    } jobs[1 + JAM_WAITING_MAX];
    size_t waiting;
    Latch begun; /* once for each job */
    Latch over;
} Jam;

static inline void jam_run(WorkerJob *job)
{
    struct JamJob *own = CONTAINER_OF(job, struct JamJob, job);
    bool is_first = own == &own->jam->jobs[0];
    latch_post(&own->jam->begun);
    if (is_first)
        latch_wait(&own->jam->over);
}

/* 'waiting' is how many more jobs are queued. The jam must outlive the server. */
static inline void jam_begin(Jam *jam, FakeServer *server, size_t waiting)
{
    *jam = (Jam){.waiting = waiting};
    latch_init(&jam->begun);
    latch_init(&jam->over);
    for (size_t i = 0; i <= waiting; i++) {
        jam->jobs[i] = (struct JamJob){.job.run = jam_run, .jam = jam};
        assert_true(workers_post(server->workers, &jam->jobs[i].job));
        if (i == 0)
            latch_wait(&jam->begun);
    }
}

static inline void jam_end(Jam *jam)
{
    latch_post(&jam->over);
    for (size_t i = 0; i < jam->waiting; i++)
        latch_wait(&jam->begun);
}

/* Ends writing to a partition of 'c' without the catalogue: what is submitted from now on is
 * refused, as it is while the container is being deleted. */
typedef struct Dropped {
    PartitionDrop drop;
    Latch over;
} Dropped;

static inline void on_dropped(PartitionDrop *drop)
{
    latch_post(&CONTAINER_OF(drop, Dropped, drop)->over);
}

static inline void drop_partition(FakeServer *server, size_t range)
{
    Dropped dropped = {.drop.done = on_dropped};
    latch_init(&dropped.over);
    partition_drop(handle_local(container_handle_at(container_now(server), range)), &dropped.drop);
    latch_wait(&dropped.over);
    latch_done(&dropped.over);
}
