/* placement_threads_test.c - partitions go from node to node and back while clients write, read,
 * scan, follow changes and run transactions on both, and while the leader changes the catalogue.
 * Also for the thread sanitizer.
 *
 * The store is one and takes everybody's writes, so that nothing but the stop keeps two nodes from
 * writing to a space at once: then counters would go back, and acknowledged items would be lost.
 */
#include "catalog/partition_handle_int.h"
#include "catalog/placement_testing_int.h"

#include <pthread.h>

enum { HAND_OVERS = 120, CLIENTS = 3, RANGES = 2, DEFINITIONS = 40 };

typedef struct Site {
    Pair pair;
    _Atomic bool stop;
    _Atomic uint64_t done[CLIENTS * 2]; /* what each client has had acknowledged */
    _Atomic uint64_t refused;
    _Atomic uint64_t scanned;
    _Atomic uint64_t committed;
} Site;

typedef struct Client {
    Site *site;
    TestNode *node;
    size_t number;
    CatalogReader reader;
    uint64_t written[RANGES]; /* the newest that was acknowledged */
} Client;

static PartitionHandle *handle_now(Client *c, size_t range, const Container **container)
{
    *container = snapshot_container(catalog_read(&c->reader), c->site->pair.database,
                                    c->site->pair.container);
    return container_handle_at(*container, range);
}

/* Nothing else may become of a request. */
static bool is_done(Client *c, Status status, const Error *failure)
{
    if (status == STATUS_NOT_OWNER)
        atomic_fetch_add(&c->site->refused, 1);
    else if (status != STATUS_OK)
        fail_msg("%s", failure->message);
    return status == STATUS_OK;
}

static void expect_stored(const Container *container, PartitionHandle *handle, size_t client,
                          uint64_t n)
{
    char id[16];
    (void)snprintf(id, sizeof(id), "w%zu", client);
    AUTO(store_value_release) StoreValue value = {0};
    Item item;
    StoreFound found = STORE_ABSENT;
    Epk epk = {.len = 1};
    assert_ok(handle_get(handle, container->schema, &epk, slice_from_cstr(id), STORE_READ_ANY,
                         &item, &value, &found, err));
    assert_int_equal(found, n == 0 ? STORE_ABSENT : STORE_FOUND);
    if (n != 0)
        assert_true((uint64_t)json_number(json_get(item.document, SLICE("n"))) == n);
}

static void write_one(Client *c, size_t range, uint64_t n)
{
    char row[64];
    (void)snprintf(row, sizeof(row), "{'id':'w%zu','n':%llu}", c->number, (unsigned long long)n);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, row);
    const Container *container = NULL;
    PartitionHandle *handle = handle_now(c, range, &container);
    Error failure;
    if (!is_done(c, handle_submit(handle, &w.write, &failure), &failure))
        return;
    test_write_wait(&w);
    if (!is_done(c, w.write.status, &w.write.error))
        return;
    assert_int_equal(w.item.status, STATUS_OK);
    c->written[range] = n;
    atomic_fetch_add(&c->site->done[c->number], 1);
}

/* What was acknowledged last is what there is, wherever it is served now. */
static void read_one(Client *c, size_t range)
{
    char id[16];
    (void)snprintf(id, sizeof(id), "w%zu", c->number);
    const Container *container = NULL;
    PartitionHandle *handle = handle_now(c, range, &container);
    AUTO(store_value_release) StoreValue value = {0};
    Item item;
    StoreFound found = STORE_ABSENT;
    Epk epk = {.len = 1};
    Error failure;
    if (!is_done(c,
                 handle_get(handle, container->schema, &epk, slice_from_cstr(id), STORE_READ_ANY,
                            &item, &value, &found, &failure),
                 &failure))
        return;
    uint64_t n =
        found == STORE_FOUND ? (uint64_t)json_number(json_get(item.document, SLICE("n"))) : 0;
    if (n != c->written[range])
        fail_msg("client %zu reads %llu, and had %llu acknowledged", c->number,
                 (unsigned long long)n, (unsigned long long)c->written[range]);
}

static void *run_writer(void *arg)
{
    Client *c = arg;
    for (uint64_t n = 1; !atomic_load(&c->site->stop); n++) {
        write_one(c, n % RANGES, n);
        read_one(c, n % RANGES);
    }
    return NULL;
}

static void scan_all(Client *c, PartitionHandle *handle, const Container *container)
{
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    ScanOptions options = {.order = SCAN_BY_NUMBER};
    Error failure;
    bool found = true;
    if (!is_done(c, handle_scan_open(handle, container->schema, &options, &scan, &failure),
                 &failure))
        return;
    while (found) {
        Item item;
        assert_ok(partition_scan_next(scan, &item, &found, err));
    }
    atomic_fetch_add(&c->site->scanned, 1);
}

static void open_others(Client *c, PartitionHandle *handle, const Container *container)
{
    AUTO(partition_view_close) PartitionView *view = NULL;
    AUTO(change_feed_close) ChangeFeed *feed = NULL;
    FeedOptions options = {.read = STORE_READ_ANY};
    Error failure;
    (void)is_done(c, handle_view_open(handle, container->schema, STORE_READ_ANY, &view, &failure),
                  &failure);
    if (!is_done(c, handle_feed_open(handle, container->schema, &options, &feed, &failure),
                 &failure))
        return;
    for (bool found = true; found;) {
        ItemChange change;
        assert_ok(change_feed_next(feed, &change, &found, err));
    }
}

static void *run_reader(void *arg)
{
    Client *c = arg;
    for (size_t i = 0; !atomic_load(&c->site->stop); i++) {
        const Container *container = NULL;
        PartitionHandle *handle = handle_now(c, i % RANGES, &container);
        scan_all(c, handle, container);
        open_others(c, handle, container);
        (void)handle_lsn(handle);
        (void)handle_usage(handle);
    }
    return NULL;
}

/* As a script does: reads and writes under the lock of its key. */
static void transact(Client *c, size_t range, uint64_t n)
{
    const Container *container = NULL;
    PartitionHandle *handle = handle_now(c, range, &container);
    PartitionTransaction *transaction = NULL;
    char row[64];
    (void)snprintf(row, sizeof(row), "{'id':'t%zu','n':%llu}", c->number, (unsigned long long)n);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, row);
    w.item.epk.len = 2; /* not the key of the others, so that they need not wait */
    Error failure;
    if (!is_done(c,
                 handle_txn_begin(handle, container->schema, &w.item.epk, UINT64_MAX, &transaction,
                                  &failure),
                 &failure))
        return;
    transaction_apply(transaction, &w.item, &w.arena);
    if (is_done(c, w.item.status, &w.item.error)) {
        uint64_t lsn = 0;
        if (is_done(c, transaction_commit(transaction, &lsn, &failure), &failure))
            atomic_fetch_add(&c->site->committed, 1);
    }
    transaction_end(transaction);
}

static void *run_scripts(void *arg)
{
    Client *c = arg;
    for (uint64_t n = 1; !atomic_load(&c->site->stop); n++)
        transact(c, n % RANGES, n);
    return NULL;
}

/* On the leader; the other node follows. */
static void *run_definitions(void *arg)
{
    Site *site = arg;
    for (int i = 0; i < DEFINITIONS && !atomic_load(&site->stop); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        AUTO(test_change_done) TestChange c;
        test_change_init(&c, CATALOG_REPLACE_CONTAINER);
        c.change.database = site->pair.database;
        c.change.container = site->pair.container;
        c.change.definition =
            row_definition(&arena, "c", i % 2 == 0 ? ",'defaultTtl':-1" : ",'defaultTtl':1000");
        assert_int_equal(test_run(site->pair.a.t.catalog, &c), STATUS_OK);
        assert_ok(catalog_refresh(site->pair.b.t.catalog, err));
    }
    return NULL;
}

static void start(Site *site, Client *clients, pthread_t *threads)
{
    static void *(*const runs[CLIENTS])(void *) = {run_writer, run_reader, run_scripts};
    for (size_t i = 0; i < (size_t)CLIENTS * 2; i++) {
        clients[i] = (Client){
            .site = site, .node = i < CLIENTS ? &site->pair.a : &site->pair.b, .number = i};
        catalog_reader_init(&clients[i].reader, clients[i].node->t.catalog);
        assert_int_equal(pthread_create(&threads[i], NULL, runs[i % CLIENTS], &clients[i]), 0);
    }
}

/* Each lets the clients do something at both places first. */
static void wait_for_work(Site *site, uint64_t *before)
{
    for (;;) {
        uint64_t now = atomic_load(&site->done[0]) + atomic_load(&site->done[CLIENTS]) +
                       atomic_load(&site->committed);
        if (now > *before) {
            *before = now;
            return;
        }
        (void)sched_yield();
    }
}

static void partitions_move_between_nodes_under_load(void **state)
{
    (void)state;
    AUTO(mem_free) void *owned = MEM_NEW(Site);
    Site *site = owned;
    Client clients[CLIENTS * 2];
    pthread_t threads[CLIENTS * 2];
    pthread_t definitions;
    pair_open(&site->pair);
    StoreSpace spaces[RANGES] = {space_of(&site->pair, 0), space_of(&site->pair, 1)};
    start(site, clients, threads);
    assert_int_equal(pthread_create(&definitions, NULL, run_definitions, site), 0);
    uint64_t work = 0;
    for (size_t i = 0; i < HAND_OVERS; i++) {
        bool is_back = i / RANGES % 2 != 0;
        wait_for_work(site, &work);
        node_hand_over(is_back ? &site->pair.b : &site->pair.a,
                       is_back ? &site->pair.a : &site->pair.b, spaces[i % RANGES]);
    }
    atomic_store(&site->stop, true);
    assert_int_equal(pthread_join(definitions, NULL), 0);
    for (size_t i = 0; i < (size_t)CLIENTS * 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(atomic_load(&site->refused) > 0);
    assert_true(atomic_load(&site->scanned) > 0);
    assert_true(atomic_load(&site->committed) > 0);
    /* All is back at the first node, and everything that was acknowledged is there. */
    const Container *container = container_at(&site->pair, &site->pair.a);
    for (size_t range = 0; range < RANGES; range++) {
        PartitionHandle *handle = container_handle_at(container, range);
        assert_true(handle_is_local(handle));
        expect_stored(container, handle, 0, clients[0].written[range]);
        expect_stored(container, handle, CLIENTS, clients[CLIENTS].written[range]);
    }
    for (size_t i = 0; i < (size_t)CLIENTS * 2; i++)
        catalog_reader_done(&clients[i].reader);
    pair_close(&site->pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partitions_move_between_nodes_under_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
