/* pair_testing_int.h - for tests: two nodes with the same items. Not part of the library.
 *
 * 'a' serves some of the ranges of the container 'c' and asks 'b' for the others; 'b' serves all of
 * them.
 */
#pragma once

#include "api/core/forward_int.h"
#include "api/tests/document_pages_testing_int.h"
#include "catalog/placement.h"

enum { RANGES = 3 };

typedef struct Pair {
    FakeServer a;
    FakeServer b;
    ApiCluster of_a;
    ApiCluster of_b;
    StoreSpace away[RANGES]; /* spaces that 'b' serves for 'a'; 0 for those that 'a' serves */
    unsigned refreshes;
    unsigned calls;          /* that wait: batches */
    int refuses;             /* the status of every answer to these; 0 for b's own */
    Slice reason;            /* its x-ms-substatus */
    NodeCallOutcome outcome; /* of all calls */
    Slice says;              /* the body of every answer to these; empty for b's own */
} Pair;

/* ---- the cluster ---- */

static inline ApiOwner owner_of_a(void *ctx, StoreSpace space)
{
    const Pair *p = ctx;
    for (size_t i = 0; i < RANGES; i++) {
        if (p->away[i] == space)
            return (ApiOwner){.is_known = true, .epoch = 2, .address = "10.0.0.2:9000"};
    }
    return (ApiOwner){.is_known = true, .is_local = true, .epoch = 1};
}

static inline ApiOwner owner_here(void *ctx UNUSED, StoreSpace space UNUSED)
{
    return (ApiOwner){.is_known = true, .is_local = true, .epoch = 1};
}

static inline ApiOwner catalog_owner(void *ctx)
{
    return owner_here(ctx, 1);
}

static inline uint64_t life(void *ctx UNUSED)
{
    return 1;
}

static inline bool lease_holds(void *ctx UNUSED, uint64_t of_life UNUSED)
{
    return true;
}

static inline void refresh(void *ctx)
{
    ((Pair *)ctx)->refreshes++;
}

static inline void refuse(const Pair *p, NodeCall *call)
{
    HttpHeader *headers = ARENA_NEW_ARRAY(call->arena, HttpHeader, 2);
    headers[0] = (HttpHeader){SLICE("x-ms-substatus"), p->reason};
    headers[1] = (HttpHeader){SLICE("x-ms-retry-after-ms"), SLICE("77")};
    call->answer_headers = headers;
    call->answer_header_count = 2;
    call->answer_body = SLICE("{\"code\":\"No\",\"message\":\"b says no\\r\\nActivityId: 1\"}");
    call->status = p->refuses;
}

/* What is sent to 'b' is answered there. */
static inline void deliver(Pair *p, NodeCall *call)
{
    FakeAnswer answer;
    FakeRequest request = {.method = call->method,
                           .path = call->path,
                           .headers = call->headers,
                           .header_count = call->header_count,
                           .body = call->body,
                           .is_node = true};
    call->outcome = p->outcome;
    if (p->outcome != NODE_CALL_ANSWERED)
        return;
    if (p->refuses != 0) {
        refuse(p, call);
        return;
    }
    fake_request(&p->b, &request, &answer);
    HttpHeader *headers = ARENA_NEW_ARRAY(call->arena, HttpHeader, answer.header_count);
    for (size_t i = 0; i < answer.header_count; i++)
        headers[i] = (HttpHeader){arena_copy(call->arena, answer.headers[i].name),
                                  arena_copy(call->arena, answer.headers[i].value)};
    call->answer_headers = headers;
    call->answer_header_count = answer.header_count;
    call->answer_body = p->says.len > 0 ? p->says : arena_copy(call->arena, answer.body);
    call->status = answer.status;
}

/* On a worker of 'a'. */
static inline void call(void *ctx, NodeCall *call)
{
    Pair *p = ctx;
    p->calls++;
    deliver(p, call);
}

/* ---- two nodes ---- */

static inline void open_node(FakeServer *server, const ApiCluster *cluster, Ask container)
{
    fake_server_open(server, &(ApiOptions){.cluster = cluster});
    (void)expect_status(server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
    container.method = "POST";
    container.path = "/dbs/db/colls";
    (void)expect_status(server, &container, 201);
}

static inline void open_pair(Pair *p, Ask container)
{
    *p = (Pair){0};
    p->of_a = (ApiCluster){.ctx = p,
                           .node = "a",
                           .owner = owner_of_a,
                           .catalog_owner = catalog_owner,
                           .life = life,
                           .lease_holds = lease_holds,
                           .refresh = refresh,
                           .call = call};
    p->of_b = p->of_a;
    p->of_b.owner = owner_here;
    open_node(&p->a, &p->of_a, container);
    open_node(&p->b, &p->of_b, container);
}

static inline void close_pair(Pair *p)
{
    fake_server_close(&p->a);
    fake_server_close(&p->b);
}

static inline void make_both(Pair *p, const char *body)
{
    make_item(&p->a, body);
    make_item(&p->b, body);
}

static inline void open_pair_filled(Pair *p)
{
    open_pair(p, (Ask){.body = CONTAINER, .headers = {{"x-ms-offer-throughput", "18000"}}});
    assert_int_equal(container_now(&p->a)->range_count, RANGES);
    for (int i = 0; i < ITEMS; i++) {
        Slice body = arena_format(&p->a.arena, "{'id':'i%02d','pk':'k%d','n':%d,'m':%d}", i,
                                  i % KEYS, (i * 7) % ITEMS, i % 5);
        make_both(p, arena_cstr(&p->a.arena, body));
    }
}

static inline void give_away(Pair *p, size_t range)
{
    Error err;
    StoreSpace space = container_now(&p->a)->ranges[range].space;
    assert_int_equal(catalog_stop_serving(p->a.catalog, space, &err), 0);
    p->away[range] = space;
}

static inline void take_back(Pair *p, size_t range)
{
    Error err;
    assert_int_equal(catalog_serve(p->a.catalog, p->away[range], &err), 0);
    p->away[range] = 0;
}
