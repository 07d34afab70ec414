/* forward_testing_int.h - for tests: a node of a cluster of which the test decides everything. Not
 * part of the library.
 */
#pragma once

#include "api/tests/testing_int.h"

#include "api/core/forward_int.h"

#define BATCH                                  \
    {                                          \
        "x-ms-cosmos-is-batch-request", "True" \
    }
#define ATOMIC                             \
    {                                      \
        "x-ms-cosmos-batch-atomic", "True" \
    }

/* A cluster of which a test decides everything. */
typedef struct FakeCluster {
    ApiCluster api;
    ApiOwner catalog;
    ApiOwner partitions;
    _Atomic bool has_lease;
    uint64_t life;
    bool is_about_to_die; /* it is declared dead, and joins anew, when a request has begun */
    unsigned refreshes;
    char told[64];  /* the newest that another node has said of an owner */
    char order[64]; /* the newest of an operator */
    const char *warning;
    const char *copies;
} FakeCluster;

static inline ApiOwner owner_of_partition(void *ctx, StoreSpace space)
{
    assert_true(space > 1); /* which is the catalogue's */
    return ((FakeCluster *)ctx)->partitions;
}

static inline ApiOwner catalog_owner(void *ctx)
{
    return ((FakeCluster *)ctx)->catalog;
}

static inline uint64_t life(void *ctx)
{
    FakeCluster *cluster = ctx;
    uint64_t before = cluster->life;
    cluster->life += cluster->is_about_to_die;
    cluster->is_about_to_die = false;
    return before;
}

static inline bool lease_holds(void *ctx, uint64_t of_life)
{
    const FakeCluster *cluster = ctx;
    return cluster->has_lease && of_life == cluster->life;
}

static inline void refresh(void *ctx)
{
    ((FakeCluster *)ctx)->refreshes++;
}

static const ApiOwner HERE = {.is_known = true, .is_local = true, .epoch = 7};
static const ApiOwner NODE_B = {
    .is_known = true, .epoch = 8, .address = "10.0.0.2:9000", .node = "b"};
static const ApiOwner NODE_C = {
    .is_known = true, .epoch = 9, .address = "10.0.0.3:9000", .node = "c"};

static inline void note_owner(void *ctx, StoreSpace space, uint64_t epoch, Slice node)
{
    FakeCluster *cluster = ctx;
    (void)snprintf(cluster->told, sizeof(cluster->told), "%llu %llu %.*s",
                   (unsigned long long)space, (unsigned long long)epoch, SLICE_ARG(node));
    if (slice_equal(node, SLICE("c")) && epoch > cluster->catalog.epoch)
        cluster->catalog = NODE_C;
}

static inline Slice warning(void *ctx, Arena *arena)
{
    return arena_copy(arena, slice_from_cstr(((FakeCluster *)ctx)->warning));
}

static inline Slice copies_warning(void *ctx, Arena *arena)
{
    return arena_copy(arena, slice_from_cstr(((FakeCluster *)ctx)->copies));
}

static inline Slice events(void *ctx UNUSED, Arena *arena)
{
    return arena_copy(arena, SLICE("[{\"kind\":\"takeOver\"}]"));
}

static inline Status cluster_status(void *ctx UNUSED, Arena *arena, Slice *json, Error *err UNUSED)
{
    *json = arena_copy(arena, SLICE("{\"nodes\":[]}"));
    return STATUS_OK;
}

static inline void note_order(void *ctx, const char *what, Slice node)
{
    FakeCluster *cluster = ctx;
    (void)snprintf(cluster->order, sizeof(cluster->order), "%s %.*s", what, SLICE_ARG(node));
}

static inline Status drain(void *ctx, Slice node, bool is_draining, Error *err UNUSED)
{
    note_order(ctx, is_draining ? "drain" : "undrain", node);
    return STATUS_OK;
}

static inline Status remove_node(void *ctx, Slice node, Error *err)
{
    note_order(ctx, "remove", node);
    return error_set(err, STATUS_CONFLICT, SUB_NONE, "the node '%.*s' lives", SLICE_ARG(node));
}

static inline Status move(void *ctx, StoreSpace space, Slice node, Arena *arena, Slice *json,
                          Error *err UNUSED)
{
    char what[32];
    (void)snprintf(what, sizeof(what), "move %llu", (unsigned long long)space);
    note_order(ctx, what, node);
    *json = arena_copy(arena, SLICE("{\"node\":\"b\",\"spaces\":[65536]}"));
    return STATUS_OK;
}

static inline Status upgrade(void *ctx, Arena *arena, Slice *json, Error *err UNUSED)
{
    note_order(ctx, "upgrade", SLICE("all"));
    *json = arena_copy(arena, SLICE("{\"format\":2,\"before\":1}"));
    return STATUS_OK;
}

static inline Status recover(void *ctx, StoreSpace space, Error *err UNUSED)
{
    char what[32];
    (void)snprintf(what, sizeof(what), "recover %llu", (unsigned long long)space);
    note_order(ctx, what, SLICE("here"));
    return STATUS_OK;
}

/* Of the api; NULL for the server's. */
static inline void open_cluster_with(FakeServer *server, FakeCluster *cluster, const Clock *clock)
{
    *cluster = (FakeCluster){.api = {.ctx = cluster,
                                     .node = "a",
                                     .owner = owner_of_partition,
                                     .catalog_owner = catalog_owner,
                                     .life = life,
                                     .lease_holds = lease_holds,
                                     .refresh = refresh,
                                     .note_owner = note_owner,
                                     .warning = warning,
                                     .copies_warning = copies_warning,
                                     .events = events,
                                     .status = cluster_status,
                                     .drain = drain,
                                     .remove = remove_node,
                                     .upgrade = upgrade,
                                     .recover = recover,
                                     .move = move},
                             .catalog = HERE,
                             .partitions = HERE,
                             .has_lease = true,
                             .warning = "",
                             .copies = ""};
    fake_server_open(server, &(ApiOptions){.cluster = &cluster->api, .clock = clock});
    (void)expect_status(server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
    (void)expect_status(server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 201);
}

static inline void open_cluster(FakeServer *server, FakeCluster *cluster)
{
    open_cluster_with(server, cluster, NULL);
}

/* Lets HTTP_LATER_MS pass. */
static inline void tick(FakeServer *server)
{
    HttpLoop *loop = &server->loop;
    HttpTimer *timers[ARRAY_COUNT(loop->timers)];
    size_t count = loop->timer_count;
    memcpy(timers, loop->timers, sizeof(timers));
    loop->timer_count = 0;
    fake_clock_advance(&server->clock, HTTP_LATER_MS * 1000);
    for (size_t i = 0; i < count; i++)
        timers[i]->run(timers[i]);
}

static inline Slice sent_header(const NodeCall *call, const char *name)
{
    for (size_t i = 0; i < call->header_count; i++) {
        if (slice_equal(call->headers[i].name, slice_from_cstr(name)))
            return call->headers[i].value;
    }
    return SLICE_EMPTY;
}

/* Runs the loop until there is a call to another node. */
static inline void run_until_called(FakeServer *server)
{
    while (server->loop.call_count == 0) {
        QueueNode *node = mailbox_wait(&server->loop.tasks);
        while (node != NULL) {
            HttpTask *task = CONTAINER_OF(node, HttpTask, node);
            node = node->next;
            task->run(task);
        }
    }
}

/* The call to another node that waits; it is the test's to end. */
static inline NodeCall *take_call(FakeServer *server)
{
    assert_int_equal(server->loop.call_count, 1);
    return server->loop.calls[--server->loop.call_count];
}

static inline void end_call(NodeCall *call, NodeCallOutcome outcome, int status)
{
    static const HttpHeader headers[] = {
        {SLICE_INIT("etag"), SLICE_INIT("\"1\"")},
        {SLICE_INIT("content-length"), SLICE_INIT("13")},
    };
    call->outcome = outcome;
    call->status = status;
    if (outcome == NODE_CALL_ANSWERED) {
        call->answer_headers = headers;
        call->answer_header_count = ARRAY_COUNT(headers);
        call->answer_body = SLICE("{\"id\":\"far\"}");
    } else {
        assert_int_equal(
            error_set(&call->error, STATUS_UNAVAILABLE, SUB_NONE, "the other side has closed"),
            STATUS_UNAVAILABLE);
    }
    call->done(call);
}

static const Ask CREATE = {"POST", "/dbs", "{'id':'far'}"};

/* A change of the catalogue that is sent to node B. */
typedef struct Flight {
    FakeServer server;
    FakeCluster cluster;
    FakeExchange *exchange;
    FakeAnswer answer;
} Flight;

static inline void take_off(Flight *f, const Ask *a)
{
    open_cluster(&f->server, &f->cluster);
    f->cluster.catalog = NODE_B;
    f->exchange = ask_only(&f->server, a, &f->answer);
}

static inline void land(Flight *f)
{
    mem_free(f->exchange);
    fake_server_close(&f->server);
}
