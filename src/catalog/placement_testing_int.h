/* placement_testing_int.h - for tests: catalogues of several nodes over one store, in which each
 * node's partitions write to the spaces that it serves, and all nodes read what the leader writes.
 */
#pragma once

#include "catalog/placement.h"
#include "catalog/testing_int.h"

enum { NODE_SPACES_MAX = 4096, NODE_DELAYED_MAX = 64, NODE_EVENTS_BYTES = 1 << 16 };

typedef struct TestNode {
    TestCatalog t;
    bool owns_store;
    CatalogPlacement placement;

    pthread_mutex_t lock; /* guards the rest */
    bool leads;
    bool takes_new; /* it serves what the leader places */
    StoreSpace local[NODE_SPACES_MAX];
    size_t local_count;
    Status create_status; /* of the hooks */
    bool is_deposed;      /* it ceases to lead while it places new spaces */
    Status gather_status;
    bool delays; /* groups are published everywhere when node_publish is called */
    struct {
        PlacementPublished *done;
        void *ctx;
    } delayed[NODE_DELAYED_MAX];
    size_t delayed_count;
    Buf events; /* what hooks were called, one after the other */
} TestNode;

static inline void node_event(TestNode *node, const char *what, StoreSpace first, StoreSpace last,
                              StoreSpace beside)
{
    buf_format(&node->events, "%s %llu-%llu", what, (unsigned long long)first - (1 << 16),
               (unsigned long long)last - (1 << 16));
    if (beside != 0)
        buf_format(&node->events, " beside %llu", (unsigned long long)beside - (1 << 16));
    buf_slice(&node->events, SLICE("; "));
}

static inline bool node_has(const TestNode *node, StoreSpace space)
{
    for (size_t i = 0; i < node->local_count; i++) {
        if (node->local[i] == space)
            return true;
    }
    return false;
}

static inline void node_add(TestNode *node, StoreSpace space)
{
    if (node_has(node, space))
        return;
    assert_true(node->local_count < NODE_SPACES_MAX);
    node->local[node->local_count++] = space;
}

static inline void node_remove(TestNode *node, StoreSpace space)
{
    for (size_t i = 0; i < node->local_count; i++) {
        if (node->local[i] == space)
            node->local[i--] = node->local[--node->local_count];
    }
}

static inline bool node_is_local(void *ctx, StoreSpace space)
{
    TestNode *node = ctx;
    (void)pthread_mutex_lock(&node->lock);
    bool result = space == SPACE_CATALOG ? node->leads : node_has(node, space);
    (void)pthread_mutex_unlock(&node->lock);
    return result;
}

static inline Status node_create(void *ctx, StoreSpace first, size_t count, StoreSpace beside,
                                 Error *err)
{
    TestNode *node = ctx;
    (void)pthread_mutex_lock(&node->lock);
    node_event(node, "create", first, first + count - 1, beside);
    Status status = node->create_status;
    for (StoreSpace space = first; status == STATUS_OK && node->takes_new && space < first + count;
         space++)
        node_add(node, space);
    (void)pthread_mutex_unlock(&node->lock);
    if (node->is_deposed)
        catalog_follow(node->t.catalog);
    return status == STATUS_OK ? status : error_set(err, status, SUB_NONE, "no node takes it");
}

static inline void node_published(void *ctx, PlacementPublished *done, void *done_ctx)
{
    TestNode *node = ctx;
    (void)pthread_mutex_lock(&node->lock);
    buf_slice(&node->events, SLICE("published; "));
    bool delays = node->delays;
    if (delays) {
        assert_true(node->delayed_count < NODE_DELAYED_MAX);
        node->delayed[node->delayed_count].done = done;
        node->delayed[node->delayed_count++].ctx = done_ctx;
    }
    (void)pthread_mutex_unlock(&node->lock);
    if (!delays)
        done(done_ctx, true);
}

static inline void node_dropped(void *ctx, StoreSpace first, StoreSpace last)
{
    TestNode *node = ctx;
    (void)pthread_mutex_lock(&node->lock);
    node_event(node, "dropped", first, last, 0);
    (void)pthread_mutex_unlock(&node->lock);
}

/* Brings the spaces from wherever they are: in these tests nobody else serves them. */
static inline Status node_gather(void *ctx, const StoreSpace *spaces, size_t count, Error *err)
{
    TestNode *node = ctx;
    (void)pthread_mutex_lock(&node->lock);
    Status status = node->gather_status;
    for (size_t i = 0; i < count; i++)
        node_event(node, "gather", spaces[i], spaces[i], 0);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        node_add(node, spaces[i]);
    (void)pthread_mutex_unlock(&node->lock);
    if (status != STATUS_OK)
        return error_set(err, status, SUB_NONE, "the other node does not answer");
    for (size_t i = 0; i < count; i++)
        TRY(catalog_serve(node->t.catalog, spaces[i], err));
    return STATUS_OK;
}

/* Other nodes have published all groups up to now, or nobody waits for them any more. */
static inline void node_end_waiting(TestNode *node, bool is_everywhere)
{
    for (;;) {
        (void)pthread_mutex_lock(&node->lock);
        bool has_one = node->delayed_count > 0;
        PlacementPublished *done = has_one ? node->delayed[node->delayed_count - 1].done : NULL;
        void *ctx = has_one ? node->delayed[--node->delayed_count].ctx : NULL;
        (void)pthread_mutex_unlock(&node->lock);
        if (!has_one)
            return;
        done(ctx, is_everywhere);
    }
}

static inline void node_publish(TestNode *node)
{
    node_end_waiting(node, true);
}

static inline size_t node_delayed(TestNode *node)
{
    (void)pthread_mutex_lock(&node->lock);
    size_t count = node->delayed_count;
    (void)pthread_mutex_unlock(&node->lock);
    return count;
}

/* What hooks were called since the last time. */
static inline Slice node_events(TestNode *node)
{
    (void)pthread_mutex_lock(&node->lock);
    Slice events = arena_copy(&node->t.arena, buf_view(&node->events));
    node->events.len = 0;
    (void)pthread_mutex_unlock(&node->lock);
    return events;
}

/* 'store' is another node's; NULL for the first one. */
static inline void node_init(TestNode *node, Store *store, bool leads, const ProvisionRules *rules)
{
    *node = (TestNode){.leads = leads, .takes_new = leads, .owns_store = store == NULL};
    node->placement = (CatalogPlacement){
        .ctx = node,
        .is_local = node_is_local,
        .create = node_create,
        .published = node_published,
        .dropped = node_dropped,
        .gather = node_gather,
    };
    (void)pthread_mutex_init(&node->lock, NULL);
    buf_init(&node->events, NODE_EVENTS_BYTES);
    test_init(&node->t, TEST_MEMORY, rules);
    node->t.placement = &node->placement;
    node->t.store = store;
    if (store == NULL)
        test_open_store(&node->t);
}

static inline void node_open(TestNode *node, Store *store, bool leads, const ProvisionRules *rules)
{
    node_init(node, store, leads, rules);
    assert_ok(test_try_open(&node->t, err));
}

/* The first one last. */
static inline void node_close(TestNode *node)
{
    node->delays = false;
    node_publish(node);
    test_close_catalog(&node->t);
    if (node->owns_store)
        store_close(TAKE(node->t.store));
    test_done(&node->t);
    buf_done(&node->events);
    (void)pthread_mutex_destroy(&node->lock);
}
DEFINE_AUTO_VALUE(TestNode, node_close)

/* A planned change of owner. */
static inline void node_hand_over(TestNode *from, TestNode *to, StoreSpace space)
{
    (void)pthread_mutex_lock(&from->lock);
    node_remove(from, space);
    (void)pthread_mutex_unlock(&from->lock);
    assert_ok(catalog_stop_serving(from->t.catalog, space, err));
    (void)pthread_mutex_lock(&to->lock);
    node_add(to, space);
    (void)pthread_mutex_unlock(&to->lock);
    assert_ok(catalog_serve(to->t.catalog, space, err));
}

static inline void node_refresh(TestNode *node)
{
    assert_ok(catalog_refresh(node->t.catalog, err));
}

/* The leader becomes a follower, and the other way round. */
static inline void node_switch(TestNode *from, TestNode *to)
{
    from->leads = from->takes_new = false;
    to->leads = to->takes_new = true;
    catalog_follow(from->t.catalog);
    assert_ok(catalog_lead(to->t.catalog, err));
}

static const ProvisionRules NODE_RULES = {.partition_ru = 1000,
                                          .fallback = {PROVISION_MANUAL, 2000},
                                          .is_enforced = true,
                                          .has_burst = true};

/* Two nodes, of which the first leads and serves what is made; with a container of two ranges. */
typedef struct Pair {
    TestNode a;
    TestNode b;
    uint32_t database;
    uint32_t container;
} Pair;

static inline void pair_open(Pair *pair)
{
    node_open(&pair->a, NULL, true, &NODE_RULES);
    node_open(&pair->b, pair->a.t.store, false, &NODE_RULES);
    pair->database = make_database(&pair->a.t, "d", MANUAL(0));
    pair->container = make_container(&pair->a.t, pair->database, "c", MANUAL(2000));
    node_refresh(&pair->b);
    (void)node_events(&pair->a);
}

static inline void pair_close(Pair *pair)
{
    node_close(&pair->b);
    node_close(&pair->a);
}
DEFINE_AUTO_VALUE(Pair, pair_close)

static inline const Container *container_at(Pair *pair, TestNode *node)
{
    return test_container(&node->t, pair->database, pair->container);
}

static inline PartitionHandle *handle_at(Pair *pair, TestNode *node, size_t range)
{
    return container_handle_at(container_at(pair, node), range);
}

static inline StoreSpace space_of(Pair *pair, size_t range)
{
    return container_at(pair, &pair->a)->ranges[range].space;
}

static inline void expect_same(Pair *pair)
{
    Slice a = test_dump(&pair->a.t);
    Slice b = test_dump(&pair->b.t);
    if (!slice_equal(a, b))
        fail_msg("the leader has\n%.*s\nthe follower\n%.*s", SLICE_ARG(a), SLICE_ARG(b));
}

static inline Status write_item(PartitionHandle *handle, const char *row)
{
    AUTO(test_write_done) TestWrite w;
    Error err;
    test_write_init(&w, row);
    Status status = handle_submit(handle, &w.write, &err);
    if (status != STATUS_OK)
        return status;
    test_write_wait(&w);
    return w.write.status != STATUS_OK ? w.write.status : w.item.status;
}
