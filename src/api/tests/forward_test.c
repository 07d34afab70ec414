/* forward_test.c - requests that another node of the cluster serves (forward_int.h). */
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

static ApiOwner owner_of_partition(void *ctx, StoreSpace space)
{
    assert_true(space > 1); /* which is the catalogue's */
    return ((FakeCluster *)ctx)->partitions;
}

static ApiOwner catalog_owner(void *ctx)
{
    return ((FakeCluster *)ctx)->catalog;
}

static uint64_t life(void *ctx)
{
    FakeCluster *cluster = ctx;
    uint64_t before = cluster->life;
    cluster->life += cluster->is_about_to_die;
    cluster->is_about_to_die = false;
    return before;
}

static bool lease_holds(void *ctx, uint64_t of_life)
{
    const FakeCluster *cluster = ctx;
    return cluster->has_lease && of_life == cluster->life;
}

static void refresh(void *ctx)
{
    ((FakeCluster *)ctx)->refreshes++;
}

static const ApiOwner HERE = {.is_known = true, .is_local = true, .epoch = 7};
static const ApiOwner NODE_B = {
    .is_known = true, .epoch = 8, .address = "10.0.0.2:9000", .node = "b"};
static const ApiOwner NODE_C = {
    .is_known = true, .epoch = 9, .address = "10.0.0.3:9000", .node = "c"};

static void note_owner(void *ctx, StoreSpace space, uint64_t epoch, Slice node)
{
    FakeCluster *cluster = ctx;
    (void)snprintf(cluster->told, sizeof(cluster->told), "%llu %llu %.*s",
                   (unsigned long long)space, (unsigned long long)epoch, SLICE_ARG(node));
    if (slice_equal(node, SLICE("c")) && epoch > cluster->catalog.epoch)
        cluster->catalog = NODE_C;
}

static Slice warning(void *ctx, Arena *arena)
{
    return arena_copy(arena, slice_from_cstr(((FakeCluster *)ctx)->warning));
}

static Slice copies_warning(void *ctx, Arena *arena)
{
    return arena_copy(arena, slice_from_cstr(((FakeCluster *)ctx)->copies));
}

static Slice events(void *ctx UNUSED, Arena *arena)
{
    return arena_copy(arena, SLICE("[{\"kind\":\"takeOver\"}]"));
}

static Status cluster_status(void *ctx UNUSED, Arena *arena, Slice *json, Error *err UNUSED)
{
    *json = arena_copy(arena, SLICE("{\"nodes\":[]}"));
    return STATUS_OK;
}

static void note_order(void *ctx, const char *what, Slice node)
{
    FakeCluster *cluster = ctx;
    (void)snprintf(cluster->order, sizeof(cluster->order), "%s %.*s", what, SLICE_ARG(node));
}

static Status drain(void *ctx, Slice node, bool is_draining, Error *err UNUSED)
{
    note_order(ctx, is_draining ? "drain" : "undrain", node);
    return STATUS_OK;
}

static Status remove_node(void *ctx, Slice node, Error *err)
{
    note_order(ctx, "remove", node);
    return error_set(err, STATUS_CONFLICT, SUB_NONE, "the node '%.*s' lives", SLICE_ARG(node));
}

static Status move(void *ctx, StoreSpace space, Slice node, Arena *arena, Slice *json,
                   Error *err UNUSED)
{
    char what[32];
    (void)snprintf(what, sizeof(what), "move %llu", (unsigned long long)space);
    note_order(ctx, what, node);
    *json = arena_copy(arena, SLICE("{\"node\":\"b\",\"spaces\":[65536]}"));
    return STATUS_OK;
}

static Status upgrade(void *ctx, Arena *arena, Slice *json, Error *err UNUSED)
{
    note_order(ctx, "upgrade", SLICE("all"));
    *json = arena_copy(arena, SLICE("{\"format\":2,\"before\":1}"));
    return STATUS_OK;
}

static Status recover(void *ctx, StoreSpace space, Error *err UNUSED)
{
    char what[32];
    (void)snprintf(what, sizeof(what), "recover %llu", (unsigned long long)space);
    note_order(ctx, what, SLICE("here"));
    return STATUS_OK;
}

/* Of the api; NULL for the server's. */
static void open_cluster_with(FakeServer *server, FakeCluster *cluster, const Clock *clock)
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

static void open_cluster(FakeServer *server, FakeCluster *cluster)
{
    open_cluster_with(server, cluster, NULL);
}

/* Lets HTTP_LATER_MS pass. */
static void tick(FakeServer *server)
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

static Slice sent_header(const NodeCall *call, const char *name)
{
    for (size_t i = 0; i < call->header_count; i++) {
        if (slice_equal(call->headers[i].name, slice_from_cstr(name)))
            return call->headers[i].value;
    }
    return SLICE_EMPTY;
}

/* Runs the loop until there is a call to another node. */
static void run_until_called(FakeServer *server)
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
static NodeCall *take_call(FakeServer *server)
{
    assert_int_equal(server->loop.call_count, 1);
    return server->loop.calls[--server->loop.call_count];
}

static void end_call(NodeCall *call, NodeCallOutcome outcome, int status)
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

static void take_off(Flight *f, const Ask *a)
{
    open_cluster(&f->server, &f->cluster);
    f->cluster.catalog = NODE_B;
    f->exchange = ask_only(&f->server, a, &f->answer);
}

static void land(Flight *f)
{
    mem_free(f->exchange);
    fake_server_close(&f->server);
}

static void a_change_goes_to_the_owner_of_the_catalogue_as_it_came(void **state UNUSED)
{
    Flight f;
    take_off(&f, &CREATE);
    NodeCall *call = take_call(&f.server);
    assert_slice(call->address, SLICE("10.0.0.2:9000"));
    assert_slice(call->method, SLICE("POST"));
    assert_slice(call->path, SLICE("/dbs"));
    assert_slice(call->body, SLICE("{\"id\":\"far\"}"));
    assert_slice(sent_header(call, NODE_HEADER_HOST), SLICE(FAKE_AUTHORITY));
    assert_true(slice_starts_with(sent_header(call, NODE_HEADER_ORIGIN), SLICE("http ")));
    assert_true(sent_header(call, "authorization").len > 0);
    assert_true(sent_header(call, "x-ms-activity-id").len > 0);
    end_call(call, NODE_CALL_ANSWERED, 201);
    assert_int_equal(f.answer.status, 201);
    assert_slice(f.answer.body, SLICE("{\"id\":\"far\"}"));
    expect_header(&f.answer, "etag", "\"1\"");
    expect_header(&f.answer, "content-length", ""); /* http's own */
    land(&f);
}

static void a_node_that_is_no_longer_the_owner_is_asked_again_only_later(void **state UNUSED)
{
    Flight f;
    take_off(&f, &CREATE);
    end_call(take_call(&f.server), NODE_CALL_ANSWERED, 421);
    assert_int_equal(f.answer.status, 0);
    assert_true(f.cluster.refreshes > 0);
    tick(&f.server);
    assert_int_equal(f.server.loop.call_count, 0); /* the same owner, a moment later */
    f.cluster.catalog = NODE_C;
    tick(&f.server);
    NodeCall *call = take_call(&f.server);
    assert_slice(call->address, SLICE("10.0.0.3:9000"));
    end_call(call, NODE_CALL_NOT_SENT, 0);
    for (int i = 0; i < 5; i++)
        tick(&f.server);
    end_call(take_call(&f.server), NODE_CALL_ANSWERED, 201); /* the same one again */
    assert_int_equal(f.answer.status, 201);
    land(&f);
}

/* What a 421 says of the owner. */
static void refuse_call(NodeCall *call, const char *owner)
{
    HttpHeader header = {SLICE(NODE_HEADER_OWNER), slice_from_cstr(owner)};
    call->outcome = NODE_CALL_ANSWERED;
    call->status = 421;
    call->answer_headers = &header;
    call->answer_header_count = 1;
    call->done(call);
}

static void a_refusal_that_names_a_newer_owner_is_followed_at_once(void **state UNUSED)
{
    Flight f;
    take_off(&f, &CREATE);
    refuse_call(take_call(&f.server), "0 9 c");
    assert_string_equal(f.cluster.told, "0 9 c");
    assert_int_equal(f.server.loop.timer_count, 0);
    NodeCall *call = take_call(&f.server);
    assert_slice(call->address, SLICE("10.0.0.3:9000"));
    refuse_call(call, "0 8 b"); /* older: not again to where it came from */
    assert_int_equal(f.server.loop.call_count, 0);
    for (int i = 0; i < 5; i++)
        tick(&f.server);
    end_call(take_call(&f.server), NODE_CALL_ANSWERED, 201);
    assert_int_equal(f.answer.status, 201);
    land(&f);
}

static void refusals_that_make_no_sense_say_nothing_of_the_owner(void **state UNUSED)
{
    static const char *const texts[] = {
        "",
        "0",
        "0 9",
        "0 9 ",
        "c",
        "0 c 9",
        "-1 9 c",
        "0  9 c",
        "0 9 ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        Flight f;
        take_off(&f, &CREATE);
        refuse_call(take_call(&f.server), texts[i]);
        assert_string_equal(f.cluster.told, "");
        assert_true(f.cluster.refreshes > 0);
        f.cluster.catalog = NODE_C;
        tick(&f.server);
        end_call(take_call(&f.server), NODE_CALL_ANSWERED, 201);
        assert_int_equal(f.answer.status, 201);
        land(&f);
    }
}

static void a_request_runs_here_when_this_node_becomes_the_owner(void **state UNUSED)
{
    Flight f;
    take_off(&f, &CREATE);
    end_call(take_call(&f.server), NODE_CALL_ANSWERED, 421);
    f.cluster.catalog = HERE;
    f.cluster.has_lease = false;
    tick(&f.server);
    assert_int_equal(f.answer.status, 0); /* not before it has a lease */
    f.cluster.has_lease = true;
    tick(&f.server);
    fake_wait(&f.server, &f.answer);
    assert_int_equal(f.answer.status, 201);
    expect_holds(f.answer.body, "far");
    land(&f);
}

static void a_request_without_an_owner_is_told_to_come_again(void **state UNUSED)
{
    Flight f;
    open_cluster(&f.server, &f.cluster);
    f.cluster.catalog = (ApiOwner){0};
    f.exchange = ask_only(&f.server, &CREATE, &f.answer);
    for (int i = 0; i * HTTP_LATER_MS < FORWARD_HOLD_MS - HTTP_LATER_MS; i++)
        tick(&f.server);
    assert_int_equal(f.answer.status, 0);
    tick(&f.server);
    assert_int_equal(f.answer.status, 429);
    assert_int_equal(sub_status_of(&f.answer), 3092);
    assert_true(fake_header(&f.answer, "x-ms-retry-after-ms").len > 0);
    assert_int_equal(f.server.loop.timer_count, 0);
    land(&f);
}

static void a_write_whose_answer_is_lost_is_not_sent_again(void **state UNUSED)
{
    Flight f;
    take_off(&f, &CREATE);
    end_call(take_call(&f.server), NODE_CALL_UNKNOWN, 0);
    assert_int_equal(f.answer.status, 408);
    expect_holds(f.answer.body, "not known");
    assert_int_equal(f.server.loop.call_count, 0);
    assert_int_equal(f.server.loop.timer_count, 0);
    land(&f);
}

static const Ask OF_ITEMS[] = {
    {"GET", DOCS "/1", NULL, {PK("['a']")}},
    {"POST", DOCS, "{'id':'2','pk':'a'}"},
    {"PUT", DOCS "/1", "{'id':'1','pk':'a'}", {PK("['a']")}},
    {"PATCH", DOCS "/1", "[{'op':'add','path':'/x','value':1}]", {PK("['a']")}},
    {"DELETE", DOCS "/1", NULL, {PK("['a']")}},
    {"GET", DOCS},
    {"GET", DOCS, NULL, {{"a-im", "Incremental Feed"}}},
    {"POST",
     DOCS,
     "{'query':'SELECT * FROM c'}",
     {{"x-ms-documentdb-isquery", "true"},
      {"content-type", "application/query+json"},
      {"x-ms-documentdb-query-enablecrosspartition", "true"}}},
    {"POST",
     DOCS,
     "[{'operationType':'Create','resourceBody':{'id':'3','pk':'a'}}]",
     {{"x-ms-cosmos-is-batch-request", "true"}, {"x-ms-cosmos-batch-atomic", "true"}, PK("['a']")}},
    {"POST", "/dbs/db/colls/c/operations/partitionkeydelete", "", {PK("['a']")}},
};

static void requests_for_items_go_to_the_owner_of_their_partition(void **state UNUSED)
{
    for (size_t i = 0; i < ARRAY_COUNT(OF_ITEMS); i++) {
        Flight f;
        open_cluster(&f.server, &f.cluster);
        make_item(&f.server, "{'id':'1','pk':'a'}");
        Error err;
        StoreSpace space = container_now(&f.server)->ranges[0].space;
        assert_int_equal(catalog_stop_serving(f.server.catalog, space, &err), STATUS_OK);
        f.cluster.partitions = NODE_B;
        f.exchange = ask_only(&f.server, &OF_ITEMS[i], &f.answer);
        run_until_called(&f.server);
        NodeCall *call = take_call(&f.server);
        assert_slice(call->method, slice_from_cstr(OF_ITEMS[i].method));
        assert_slice(call->path, slice_from_cstr(OF_ITEMS[i].path));
        assert_slice(call->body, quoted(&f.server.arena, OF_ITEMS[i].body));
        end_call(call, NODE_CALL_ANSWERED, 200);
        assert_int_equal(f.answer.status, 200);
        land(&f);
    }
}

/* What the other node does with it. */
static void a_forwarded_request_is_answered_as_the_client_has_sent_it(void **state UNUSED)
{
    FakeServer server;
    FakeCluster cluster;
    open_cluster(&server, &cluster);
    make_item(&server, "{'id':'1','pk':'a'}");
    Ask a = {"GET",
             DOCS "/1",
             NULL,
             {PK("['a']"),
              {NODE_HEADER_ORIGIN, "https 192.0.2.7:50522"},
              {NODE_HEADER_HOST, "cosmos.example:8081"},
              {NODE_HEADER_SECONDS, "1700000000"}}};
    server.is_node = true;
    FakeAnswer answer = expect_status(&server, &a, 200);
    expect_header(&answer, "content-location", "https://cosmos.example:8081" DOCS "/1");
    a.key = "";
    (void)expect_status(&server, &a, 401); /* the client's credential counts, not the node's */
    a.key = NULL;
    a.headers[1].name = NULL;
    (void)expect_status(&server, &a, 400);
    fake_server_close(&server);
}

static void a_forwarded_request_keeps_its_client_while_its_body_comes(void **state UNUSED)
{
    FakeServer server;
    FakeCluster cluster;
    open_cluster(&server, &cluster);
    Ask a = {"POST",
             DOCS,
             "{'id':'1','pk':'a'}",
             {PK("['a']"),
              {NODE_HEADER_ORIGIN, "https 192.0.2.7:50522"},
              {NODE_HEADER_HOST, "cosmos.example:8081"},
              {NODE_HEADER_SECONDS, "1700000000"}}};
    server.is_node = server.bodies_come_later = true;
    FakeAnswer answer;
    FakeExchange *exchange = ask_only(&server, &a, &answer);
    assert_slice(exchange->http.peer, SLICE("192.0.2.7:50522"));
    assert_slice(exchange->http.authority, SLICE("cosmos.example:8081"));
    assert_true(exchange->http.is_tls);
    fake_wait(&server, &answer);
    assert_int_equal(answer.status, 201);
    mem_free(exchange);
    fake_server_close(&server);
}

/* The node that has sent it on may have told its client already that nothing is known of it. */
static void a_write_that_nobody_waits_for_any_more_is_not_done(void **state UNUSED)
{
    static const struct {
        Ask ask;
        int status; /* in time */
    } rows[] = {
        {{"POST", DOCS, "{'id':'2','pk':'a'}", {PK("['a']")}}, 201},
        {{"PATCH", DOCS "/1", "[{'op':'incr','path':'/n','value':1}]", {PK("['a']")}}, 200},
        {{"POST", DOCS, "[{'operationType':'Delete','id':'1'}]", {PK("['a']"), BATCH, ATOMIC}},
         200},
        {{"DELETE", DOCS "/1", NULL, {PK("['a']")}}, 204},
        {{"POST", "/dbs/db/colls/c/operations/partitionkeydelete", NULL, {PK("['a']")}}, 200},
        {{"POST", "/dbs", "{'id':'other'}"}, 201},
        {{"DELETE", "/dbs/db/colls/c"}, 204},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeServer server;
        FakeCluster cluster;
        open_cluster(&server, &cluster);
        make_item(&server, "{'id':'1','pk':'a','n':1}");
        Ask a = rows[i].ask;
        size_t count = 0;
        while (a.headers[count].name != NULL)
            count++;
        a.headers[count++] = (Header){NODE_HEADER_ORIGIN, "http 192.0.2.7:50522"};
        a.headers[count++] = (Header){NODE_HEADER_HOST, FAKE_AUTHORITY};
        a.headers[count++] = (Header){NODE_HEADER_SECONDS, "1700000000"};
        a.headers[count] = (Header){HTTP_NODE_HEADER_LEFT, "0"};
        server.is_node = true;
        FakeAnswer answer = expect_status(&server, &a, 429);
        assert_int_equal(sub_status_of(&answer), 3092);
        expect_holds(answer.body, "Nothing was done");
        a.headers[count].value = "1";
        (void)expect_status(&server, &a, rows[i].status);
        fake_server_close(&server);
    }
}

/* Other nodes may have told the client already that a range is gone. */
static void the_map_of_partitions_is_read_where_it_changes(void **state UNUSED)
{
    static const Ask reads[] = {
        {"GET", "/dbs/db/colls/c/pkranges"},
        {"GET", "/dbs/db/colls/c/pkranges/0"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(reads); i++) {
        Flight f;
        open_cluster(&f.server, &f.cluster);
        (void)expect_status(&f.server, &reads[i], 200);
        f.cluster.catalog = NODE_B;
        f.exchange = ask_only(&f.server, &reads[i], &f.answer);
        assert_int_equal(f.answer.status, 0);
        end_call(take_call(&f.server), NODE_CALL_ANSWERED, 200);
        fake_wait(&f.server, &f.answer);
        assert_int_equal(f.answer.status, 200);
        land(&f);
    }
}

static void a_node_answers_421_for_what_it_does_not_serve(void **state UNUSED)
{
    FakeServer server;
    FakeCluster cluster;
    open_cluster(&server, &cluster);
    Error err;
    StoreSpace space = container_now(&server)->ranges[0].space;
    assert_int_equal(catalog_stop_serving(server.catalog, space, &err), STATUS_OK);
    cluster.partitions = NODE_B;
    Ask a = {"GET",
             DOCS "/1",
             NULL,
             {PK("['a']"),
              {NODE_HEADER_ORIGIN, "http 192.0.2.7:50522"},
              {NODE_HEADER_HOST, FAKE_AUTHORITY},
              {NODE_HEADER_SECONDS, "1700000000"}}};
    server.is_node = true;
    FakeAnswer answer = expect_status(&server, &a, 421);
    char owner[40];
    (void)snprintf(owner, sizeof(owner), "%llu 8 b", (unsigned long long)space);
    expect_header(&answer, NODE_HEADER_OWNER, owner);
    assert_int_equal(server.loop.call_count, 0);
    assert_int_equal(server.loop.timer_count, 0);
    cluster.partitions = (ApiOwner){0}; /* in the middle of a hand-over */
    answer = expect_status(&server, &a, 421);
    expect_header(&answer, NODE_HEADER_OWNER, "");
    fake_server_close(&server);
}

static void a_node_without_a_lease_answers_421(void **state UNUSED)
{
    FakeServer server;
    FakeCluster cluster;
    open_cluster(&server, &cluster);
    Ask a = {"GET",
             "/dbs/db",
             NULL,
             {{NODE_HEADER_ORIGIN, "http 192.0.2.7:50522"},
              {NODE_HEADER_HOST, FAKE_AUTHORITY},
              {NODE_HEADER_SECONDS, "1700000000"}}};
    server.is_node = true;
    cluster.has_lease = false;
    (void)expect_status(&server, &a, 421);
    cluster.has_lease = true;
    (void)expect_status(&server, &a, 200);
    fake_server_close(&server);
}

/* Ends the lease while a request is being handled, when the clock has been read so often. */
typedef struct LeaseClock {
    Clock clock;
    FakeServer *server;
    FakeCluster *cluster;
    _Atomic unsigned readings;
    _Atomic unsigned ends_at; /* 0 for never */
} LeaseClock;

static const Clock *note_reading(const Clock *clock)
{
    LeaseClock *own = CONTAINER_OF(UNCONST(Clock, clock), LeaseClock, clock);
    if (atomic_fetch_add(&own->readings, 1) + 1 == atomic_load(&own->ends_at))
        atomic_store(&own->cluster->has_lease, false);
    return &own->server->clock.clock;
}

static uint64_t lease_wall_us(const Clock *clock)
{
    return clock_wall_us(note_reading(clock));
}

static uint64_t lease_monotonic_us(const Clock *clock)
{
    return clock_monotonic_us(note_reading(clock));
}

/* A request that is on its way with a lease that may end. */
typedef struct Lapse {
    Flight f;
    LeaseClock clock;
} Lapse;

/* The lease ends at a reading of the clock, from the request on; 0 for never. */
static void send_with_lease(Lapse *lapse, const Ask *a, unsigned ends_at)
{
    Flight *f = &lapse->f;
    lapse->clock = (LeaseClock){.clock = {lease_wall_us, lease_monotonic_us, NULL},
                                .server = &f->server,
                                .cluster = &f->cluster};
    open_cluster_with(&f->server, &f->cluster, &lapse->clock.clock);
    make_item(&f->server, "{'id':'1','pk':'a'}");
    atomic_store(&lapse->clock.readings, 0);
    atomic_store(&lapse->clock.ends_at, ends_at);
    f->exchange = ask_only(&f->server, a, &f->answer);
}

/* It is not told before there is a lease again. */
static void expect_held(Flight *f)
{
    while (f->answer.status == 0 && f->server.loop.timer_count == 0) {
        QueueNode *node = mailbox_wait(&f->server.loop.tasks);
        HttpTask *task = CONTAINER_OF(node, HttpTask, node);
        task->run(task);
    }
    assert_int_equal(f->answer.status, 0);
    f->cluster.has_lease = true;
    tick(&f->server);
    fake_wait(&f->server, &f->answer);
    assert_int_not_equal(f->answer.status, 429);
}

static const Ask READS[] = {
    {"GET", "/dbs/db"},
    {"GET", "/dbs/none"},
    {"GET", "/dbs/db/colls"},
    {"GET", DOCS "/1", NULL, {PK("['a']")}},
    {"GET", DOCS "/none", NULL, {PK("['a']")}},
    {"POST", DOCS, "{'id':'1','pk':'a'}"}, /* 409 */
    {"DELETE", DOCS "/none", NULL, {PK("['a']")}},
    {"GET", DOCS},
    {"GET", DOCS "/1", NULL, {PK("['a']"), {"if-none-match", "*"}}},               /* 304 */
    {"PUT", DOCS "/1", "{'id':'1','pk':'a'}", {PK("['a']"), {"if-match", "old"}}}, /* 412 */
    {"POST", DOCS, "[{'operationType':'Read','id':'1'}]", {PK("['a']"), BATCH, ATOMIC}},
    {"POST", DOCS, "[{'operationType':'Delete','id':'none'}]", {PK("['a']"), BATCH, ATOMIC}},
};

static void nothing_that_was_read_is_told_without_a_lease(void **state UNUSED)
{
    for (size_t i = 0; i < ARRAY_COUNT(READS); i++) {
        Flight f;
        open_cluster(&f.server, &f.cluster);
        make_item(&f.server, "{'id':'1','pk':'a'}");
        f.cluster.has_lease = false;
        f.exchange = ask_only(&f.server, &READS[i], &f.answer);
        expect_held(&f);
        land(&f);
    }
}

/* The lease is looked at after the data was read (J3): it held when the request was taken. */
static void nothing_is_told_if_the_lease_ends_while_it_is_read(void **state UNUSED)
{
    size_t finished_later = 0;
    for (size_t i = 0; i < ARRAY_COUNT(READS); i++) {
        Lapse lapse;
        send_with_lease(&lapse, &READS[i], 0);
        bool is_answered = lapse.f.answer.status != 0;
        unsigned readings = atomic_load(&lapse.clock.readings);
        if (!is_answered) { /* taken, and to be finished by the loop */
            atomic_store(&lapse.f.cluster.has_lease, false);
            expect_held(&lapse.f);
            finished_later++;
        }
        land(&lapse.f);
        /* Answered by the handler itself. Only how long it took is read after the lease. */
        assert_true(!is_answered || readings > 1);
        for (unsigned at = 1; is_answered && at < readings; at++) {
            send_with_lease(&lapse, &READS[i], at);
            expect_held(&lapse.f);
            land(&lapse.f);
        }
    }
    assert_true(finished_later > 0);
    assert_true(finished_later < ARRAY_COUNT(READS));
}

static void what_was_written_is_told_without_a_lease(void **state UNUSED)
{
    Flight f;
    open_cluster(&f.server, &f.cluster);
    f.cluster.has_lease = false;
    (void)expect_status(&f.server, &(Ask){"POST", DOCS, "{'id':'1','pk':'a'}"}, 201);
    (void)expect_status(&f.server,
                        &(Ask){"POST",
                               DOCS,
                               "[{'operationType':'Read','id':'1'},"
                               "{'operationType':'Delete','id':'1'}]",
                               {PK("['a']"), BATCH, ATOMIC}},
                        200);
    fake_server_close(&f.server);
}

/* It may have been done, and would be done twice if it was run again or sent on. */
static void a_write_whose_outcome_is_unknown_is_not_done_again(void **state UNUSED)
{
    static const Ask writes[] = {
        {"POST", DOCS, "{'id':'2','pk':'a'}"},
        {"PATCH", DOCS "/1", "[{'op':'incr','path':'/n','value':1}]", {PK("['a']")}},
        {"POST", DOCS, "[{'operationType':'Delete','id':'1'}]", {PK("['a']"), BATCH, ATOMIC}},
        {"POST", DOCS, "[{'operationType':'Delete','id':'1'}]", {PK("['a']"), BATCH}},
        {"POST", "/dbs", "{'id':'other'}"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(writes); i++) {
        Flight f;
        open_cluster(&f.server, &f.cluster);
        make_item(&f.server, "{'id':'1','pk':'a','n':1}");
        memory_store_fail_commits(f.server.store, 1, STATUS_TIMEOUT);
        f.cluster.has_lease = false;
        (void)expect_status(&f.server, &writes[i], 408);
        fake_server_close(&f.server);
    }
}

/* Its new lease says nothing of what was read before it. */
static void what_an_earlier_life_has_read_is_not_told(void **state UNUSED)
{
    static const Ask reads[] = {
        {"GET", "/dbs/db"},
        {"GET", DOCS "/1", NULL, {PK("['a']")}},
        {"GET", DOCS},
    };
    for (size_t i = 0; i < ARRAY_COUNT(reads); i++) {
        Flight f;
        open_cluster(&f.server, &f.cluster);
        make_item(&f.server, "{'id':'1','pk':'a'}");
        f.cluster.is_about_to_die = true;
        f.exchange = ask_only(&f.server, &reads[i], &f.answer);
        while (f.server.loop.timer_count == 0) {
            QueueNode *node = mailbox_wait(&f.server.loop.tasks);
            HttpTask *task = CONTAINER_OF(node, HttpTask, node);
            task->run(task);
        }
        assert_int_equal(f.answer.status, 0);
        tick(&f.server);
        fake_wait(&f.server, &f.answer);
        assert_int_equal(f.answer.status, 200);
        land(&f);
    }
}

static void what_says_nothing_of_the_data_needs_no_lease(void **state UNUSED)
{
    Flight f;
    open_cluster(&f.server, &f.cluster);
    f.cluster.has_lease = false;
    (void)expect_status(&f.server, &(Ask){"GET", "/"}, 200);
    (void)expect_status(&f.server, &(Ask){"GET", "/dbs/db", .key = ""}, 401);
    fake_server_close(&f.server);
}

static void orders_reach_the_cluster(void **state UNUSED)
{
    static const struct {
        Ask ask;
        int status;
        const char *order;
    } rows[] = {
        {{"POST", "/_orrery/cluster/drain?node=b"}, 204, "drain b"},
        {{"DELETE", "/_orrery/cluster/drain?node=b%2Ec"}, 204, "undrain b.c"},
        {{"DELETE", "/_orrery/cluster/nodes?node=b"}, 409, "remove b"},
        {{"POST", "/_orrery/cluster/move?space=65536&node=b"}, 200, "move 65536 b"},
        {{"POST", "/_orrery/cluster/recover?space=65536"}, 204, "recover 65536 here"},
        {{"POST", "/_orrery/cluster/recover"}, 400, ""},
        {{"POST", "/_orrery/cluster/upgrade"}, 200, "upgrade all"},
        {{"POST", "/_orrery/cluster/upgrade", .key = FAKE_READ_KEY}, 401, ""},
        {{"POST", "/_orrery/cluster/move?space=x&node=b"}, 400, ""},
        {{"POST", "/_orrery/cluster/move?space=db%2Fc%2F0&node=b"}, 200, "move {0} b"},
        {{"POST", "/_orrery/cluster/move?space=db%2Fc%2F9&node=b"}, 404, ""},
        {{"POST", "/_orrery/cluster/move?space=db%2Fx%2F0&node=b"}, 404, ""},
        {{"POST", "/_orrery/cluster/move?space=x%2Fc%2F0&node=b"}, 404, ""},
        {{"POST", "/_orrery/cluster/move?space=db%2Fc%2F&node=b"}, 400, ""},
        {{"POST", "/_orrery/cluster/move?space=db%2Fc%2F0%2F0&node=b"}, 400, ""},
        {{"POST", "/_orrery/cluster/recover?space=db%2Fc%2F0"}, 400, ""},
        {{"POST", "/_orrery/cluster/move?space=1"}, 400, ""},
        {{"POST", "/_orrery/cluster/drain?node=b&node=c"}, 400, ""},
        {{"POST", "/_orrery/cluster/drain?other=b"}, 400, ""},
        {{"PUT", "/_orrery/cluster/drain?node=b"}, 405, ""},
        {{"POST", "/_orrery/cluster/nothing?node=b"}, 405, ""},
        {{"POST", "/_orrery/cluster/drain?node=b", .key = FAKE_READ_KEY}, 401, ""},
    };
    FakeServer server;
    FakeCluster cluster;
    open_cluster(&server, &cluster);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", "/_orrery/cluster"}, 200);
    assert_slice(answer.body, SLICE("{\"nodes\":[]}"));
    char of_range[64];
    (void)snprintf(of_range, sizeof(of_range), "move %llu b",
                   (unsigned long long)container_now(&server)->ranges[0].space);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        cluster.order[0] = '\0';
        (void)expect_status(&server, &rows[i].ask, rows[i].status);
        assert_string_equal(cluster.order,
                            strcmp(rows[i].order, "move {0} b") == 0 ? of_range : rows[i].order);
    }
    fake_server_close(&server);
}

static void a_node_refuses_what_knows_only_one_folder(void **state UNUSED)
{
    static const struct {
        Ask ask;
        const char *instead;
    } rows[] = {
        {{"POST", "/_orrery/backup"}, "Stop one node, copy its data folder"},
        {{"POST", "/_orrery/swap?database=db&container=c"}, "orrery copy without --swap"},
        {{"PUT", "/_orrery/dbs/db/snapshots/s"}, "orrery export"},
        {{"GET", "/_orrery/snapshots"}, "Back up a cluster"},
    };
    FakeServer server;
    FakeCluster cluster;
    open_cluster(&server, &cluster);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(&server, &rows[i].ask, 501);
        expect_holds(answer.body, "A node of a cluster ");
        expect_holds(answer.body, rows[i].instead);
    }
    fake_server_close(&server);
}

static void a_node_tells_of_its_engine_and_of_changes_of_owners(void **state UNUSED)
{
    FakeServer server;
    FakeCluster cluster;
    open_cluster(&server, &cluster);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", "/healthz", .key = ""}, 200);
    assert_false(holds(answer.body, "warnings"));
    cluster.copies = "2 of 3";
    answer = expect_status(&server, &(Ask){"GET", "/healthz", .key = ""}, 200);
    expect_holds(answer.body, "\"warnings\":[\"2 of 3\"],");
    cluster.warning = "the \"standby\" is away";
    answer = expect_status(&server, &(Ask){"GET", "/healthz", .key = ""}, 200);
    expect_holds(answer.body, "\"status\":\"ok\"");
    expect_holds(answer.body, "\"warnings\":[\"the \\\"standby\\\" is away\",\"2 of 3\"],");
    answer = expect_status(&server, &(Ask){"GET", "/_orrery/events"}, 200);
    expect_holds(answer.body, "\"cluster\":[{\"kind\":\"takeOver\"}]}");
    fake_server_close(&server);
}

static void a_server_alone_has_no_nodes(void **state UNUSED)
{
    FakeServer server;
    fake_server_open(&server, NULL);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", "/_orrery/cluster"}, 404);
    expect_holds(answer.body, "--cluster");
    answer = expect_status(&server, &(Ask){"GET", "/_orrery/events"}, 200);
    assert_false(holds(answer.body, "\"cluster\""));
    fake_server_close(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_goes_to_the_owner_of_the_catalogue_as_it_came),
        cmocka_unit_test(a_node_that_is_no_longer_the_owner_is_asked_again_only_later),
        cmocka_unit_test(a_refusal_that_names_a_newer_owner_is_followed_at_once),
        cmocka_unit_test(refusals_that_make_no_sense_say_nothing_of_the_owner),
        cmocka_unit_test(a_request_runs_here_when_this_node_becomes_the_owner),
        cmocka_unit_test(a_request_without_an_owner_is_told_to_come_again),
        cmocka_unit_test(a_write_whose_answer_is_lost_is_not_sent_again),
        cmocka_unit_test(requests_for_items_go_to_the_owner_of_their_partition),
        cmocka_unit_test(a_forwarded_request_is_answered_as_the_client_has_sent_it),
        cmocka_unit_test(a_forwarded_request_keeps_its_client_while_its_body_comes),
        cmocka_unit_test(a_write_that_nobody_waits_for_any_more_is_not_done),
        cmocka_unit_test(the_map_of_partitions_is_read_where_it_changes),
        cmocka_unit_test(a_node_answers_421_for_what_it_does_not_serve),
        cmocka_unit_test(a_node_without_a_lease_answers_421),
        cmocka_unit_test(nothing_that_was_read_is_told_without_a_lease),
        cmocka_unit_test(nothing_is_told_if_the_lease_ends_while_it_is_read),
        cmocka_unit_test(what_was_written_is_told_without_a_lease),
        cmocka_unit_test(a_write_whose_outcome_is_unknown_is_not_done_again),
        cmocka_unit_test(what_an_earlier_life_has_read_is_not_told),
        cmocka_unit_test(what_says_nothing_of_the_data_needs_no_lease),
        cmocka_unit_test(orders_reach_the_cluster),
        cmocka_unit_test(a_node_refuses_what_knows_only_one_folder),
        cmocka_unit_test(a_node_tells_of_its_engine_and_of_changes_of_owners),
        cmocka_unit_test(a_server_alone_has_no_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
