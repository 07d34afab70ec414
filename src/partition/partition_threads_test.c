/* partition_threads_test.c - eight writers, transactions, readers of items and of the index,
 * maintenance, purges and changes of the definition and its policy, all at the same time. What each
 * writer knows to be its own is checked at every step, what all share at the end. Made for the
 * thread sanitizer.
 */
#include "partition/partition_index_testing_int.h"
#include "partition/transaction.h"

enum { WRITERS = 8, TRANSACTORS = 2, READERS = 2, VIEWERS = 2, ROUNDS = 120, OWN = 5 };

typedef struct Worker {
    TestPartition *t;
    PartitionSchema *schema; /* the one of the beginning: the key does not change */
    int which;
    pthread_t thread;
} Worker;

/* Assertions of cmocka are for the main thread only. */
static Status run_quietly(Worker *worker, TestWrite *w)
{
    Error failure = {0};
    Status status = partition_submit(worker->t->partition, &w->write, &failure);
    ASSERT(status == STATUS_OK);
    ASSERT(test_wait(w) == STATUS_OK);
    return w->items[0].status;
}

static void check_own(Worker *worker, const char *key, const char *id, int n)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 512);
    AUTO(store_value_release) StoreValue value = {0};
    Epk epk;
    make_epk(&arena, worker->schema, key, &epk);
    Item item;
    StoreFound found = STORE_ABSENT;
    Error failure = {0};
    Status status = partition_get(worker->t->partition, worker->schema, &epk, slice_from_cstr(id),
                                  STORE_READ_ANY, &item, &value, &found, &failure);
    ASSERT(status == STATUS_OK);
    ASSERT((found == STORE_FOUND) == (n >= 0));
    if (n >= 0)
        ASSERT(json_number(json_get(item.document, SLICE("n"))) == n);
}

/* One round on an item of its own, and the shared counter in the same atomic batch. */
static void write_round(Worker *worker, int round)
{
    char key[16];
    char id[32];
    char row[160];
    TestPartition own = {.schema = worker->schema};
    (void)snprintf(key, sizeof(key), "p%d", round % 3);
    (void)snprintf(id, sizeof(id), "w%d-%d", worker->which, round % OWN);
    (void)snprintf(row, sizeof(row), "{'id':'%s','pk':'%s','n':%d,'u':'%s'}", id, key, round, id);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, &own, WRITE_ATOMIC);
    (void)add_document(&w, ITEM_UPSERT, row);
    (void)add_patch(&w, "shared", "counter", "[{'op':'incr','path':'/n','value':1}]");
    ASSERT(run_quietly(worker, &w) == STATUS_OK);
    ASSERT(w.items[1].status == STATUS_OK);
    ASSERT(w.items[0].item.lsn == w.items[1].item.lsn);
    ASSERT(w.write.lsn >= w.items[0].item.lsn);
    ASSERT(partition_lsn(worker->t->partition) >= w.write.lsn);
    check_own(worker, key, id, round);
    if (round % 4 != 0)
        return;
    AUTO(test_write_done) TestWrite gone;
    test_write_init(&gone, &own, WRITE_ATOMIC);
    (void)add_id(&gone, ITEM_DELETE, key, id);
    ASSERT(run_quietly(worker, &gone) == STATUS_OK);
    check_own(worker, key, id, -1);
}

static void *write_always(void *arg)
{
    for (int round = 0; round < ROUNDS; round++)
        write_round(arg, round);
    return NULL;
}

/* The counter once more, in a transaction, which is rolled back now and then. */
static double transact_round(Worker *worker, int round, double before)
{
    TestPartition own = {.schema = worker->schema};
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, &own, WRITE_ATOMIC);
    ItemWrite *read = add_id(&w, ITEM_READ, "shared", "counter");
    Error failure = {0};
    PartitionTransaction *transaction = NULL;
    Status status = transaction_begin(worker->t->partition, worker->schema, &read->epk, UINT64_MAX,
                                      &transaction, &failure);
    ASSERT(status == STATUS_OK);
    transaction_apply(transaction, read, &w.arena);
    ASSERT(read->status == STATUS_OK);
    double n = json_number(json_get(read->item.document, SLICE("n")));
    ASSERT(n >= before);
    Slice row = arena_format(&w.arena, "{'id':'counter','pk':'shared','n':%.0f,'ttl':-1}", n + 1);
    ItemWrite *made = add_document(&w, ITEM_CREATE, "{'id':'new','pk':'shared','u':'new'}");
    transaction_apply(transaction, made, &w.arena);
    ASSERT(made->status == STATUS_OK);
    ItemWrite *counted = add_document(&w, ITEM_REPLACE, row.ptr);
    transaction_apply(transaction, counted, &w.arena);
    ASSERT(counted->status == STATUS_OK);
    ItemWrite *gone = add_id(&w, ITEM_DELETE, "shared", "new");
    transaction_apply(transaction, gone, &w.arena);
    ASSERT(gone->status == STATUS_OK);
    transaction_apply(transaction, read, &w.arena); /* sees its own */
    ASSERT(json_number(json_get(read->item.document, SLICE("n"))) == n + 1);
    uint64_t lsn = 0;
    if (round % 4 != 0) {
        status = transaction_commit(transaction, &lsn, &failure);
        ASSERT(status == STATUS_OK);
        ASSERT(partition_lsn(worker->t->partition) >= lsn);
    }
    transaction_end(transaction);
    return round % 4 != 0 ? n + 1 : n;
}

static void *transact_always(void *arg)
{
    double n = 0;
    for (int round = 0; round < ROUNDS; round++)
        n = transact_round(arg, round, n);
    return NULL;
}

static _Atomic bool is_over;

static void read_round(Worker *worker, ScanOrder order, double *counter)
{
    PartitionScan *scan = NULL;
    ScanOptions options = {.order = order};
    Error failure = {0};
    Status status =
        partition_scan_open(worker->t->partition, worker->schema, &options, &scan, &failure);
    ASSERT(status == STATUS_OK);
    uint64_t number = 0;
    for (;;) {
        Item item;
        bool found = false;
        status = partition_scan_next(scan, &item, &found, &failure);
        ASSERT(status == STATUS_OK);
        if (!found)
            break;
        ASSERT(order == SCAN_BY_EPK || item.number > number);
        number = item.number;
        if (!slice_equal(json_string(json_get(item.document, SLICE("id"))), SLICE("counter")))
            continue;
        double n = json_number(json_get(item.document, SLICE("n")));
        ASSERT(n >= *counter); /* no reader sees an older number */
        *counter = n;
    }
    partition_scan_close(scan);
}

static void *read_always(void *arg)
{
    double counter = 0;
    for (unsigned i = 0; !atomic_load(&is_over); i++)
        read_round(arg, (ScanOrder)(i % 2), &counter);
    return NULL;
}

/* The set of one value, in 'arena'. */
static NumberSet read_set(IndexReader *reader, TermPath path, Json value, Arena *arena)
{
    Buf term;
    buf_init(&term, TERM_VALUE_BYTES_MAX);
    bool exact = true;
    if (json_is(value, JSON_UNDEFINED))
        term_put_tag(&term, TERM_PRESENT);
    else
        term_put_json(&term, value, &exact);
    NumberSet set;
    bool complete = false;
    Error failure = {0};
    Status status =
        index_read_value(reader, path, buf_view(&term), arena, &set, &complete, &failure);
    ASSERT(status == STATUS_OK);
    ASSERT(complete);
    buf_done(&term);
    return set;
}

/* Every item of the index is there, as the index has it, and no other. */
static void view_round(Worker *worker, Arena *arena, bool puts)
{
    PartitionView *view = NULL;
    Error failure = {0};
    Status status =
        partition_view_open(worker->t->partition, worker->schema, STORE_READ_ANY, &view, &failure);
    ASSERT(status == STATUS_OK);
    partition_view_fill_cache(view, puts);
    IndexBudget budget = {.keys_left = UINT32_MAX, .bytes_left = (size_t)1 << 30};
    IndexReader reader = partition_view_index(view, &budget);
    static const IndexStep n[] = {{.name = SLICE_INIT("n")}};
    bool has_n = partition_view_has_path(view, n, 1);
    TermPath root = term_path_root(reader.key);
    TermPath path = term_path_name(reader.key, root, SLICE("n"));
    NumberSet all = read_set(&reader, root, JSON_NONE, arena);
    ASSERT(all.count == partition_view_items(view));
    ASSERT(!has_n || read_set(&reader, path, JSON_NONE, arena).count == all.count);
    SetWalk walk = set_walk_up(&all, 0);
    uint64_t number = 0;
    while (set_walk_next(&walk, &number)) {
        Item item;
        bool found = false;
        status =
            partition_view_fetch(view, number, SLICE_EMPTY, SLICE_EMPTY, &item, &found, &failure);
        ASSERT(status == STATUS_OK);
        ASSERT(found);
        ASSERT(item.number == number);
        ASSERT(item.lsn <= partition_view_lsn(view));
        if (!has_n)
            continue;
        NumberSet same = read_set(&reader, path, json_get(item.document, SLICE("n")), arena);
        ASSERT(set_has(&same, number));
    }
    partition_view_close(view);
}

static void *view_always(void *arg)
{
    Arena arena;
    arena_init(&arena, 4096);
    for (unsigned i = 0; !atomic_load(&is_over); i++) {
        view_round(arg, &arena, i % 4 != 0);
        arena_reset(&arena);
    }
    arena_done(&arena);
    return NULL;
}

static void *disturb_always(void *arg)
{
    Worker *worker = arg;
    TestPartition *t = worker->t;
    TestPartition own = {.schema = worker->schema, .partition = t->partition};
    arena_init(&own.arena, 512);
    for (int i = 0; !atomic_load(&is_over); i++) {
        partition_maintain(t->partition);
        TestPurge purge;
        test_purge_submit(&own, &purge, "nobody");
        ASSERT(test_purge_wait(&purge) == STATUS_OK);
        PartitionUsage usage = partition_usage(t->partition);
        ASSERT(usage.items <= 1 + WRITERS * OWN * 3);
        AUTO(schema_unref)
        PartitionSchema *schema =
            test_schema((TestSchema){.kind = PARTITION_HASH_V2,
                                     .paths = "/pk",
                                     .ttl_s = i % 2 == 0 ? 1000 : -1,
                                     .unique = {"/u"},
                                     .index = i / 16 % 3 == 0 ? POLICY_U : NULL});
        partition_set_schema(t->partition, schema);
        fake_clock_advance(&t->clock, 1000);
        arena_reset(&own.arena);
    }
    arena_done(&own.arena);
    return NULL;
}

/* I10 */
static void everyone_at_once(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'counter','pk':'shared','n':0,'ttl':-1}"),
                  STATUS_OK);
    atomic_store(&is_over, false);
    enum { WORKING = WRITERS + TRANSACTORS };
    Worker workers[WORKING + READERS + VIEWERS + 1];
    size_t count = ARRAY_COUNT(workers);
    for (size_t i = 0; i < count; i++) {
        workers[i] = (Worker){.t = t, .schema = schema_ref(t->schema), .which = (int)i};
        void *(*run)(void *) = i < WRITERS                       ? write_always
                               : i < WORKING                     ? transact_always
                               : i < WORKING + READERS           ? read_always
                               : i < WORKING + READERS + VIEWERS ? view_always
                                                                 : disturb_always;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, run, &workers[i]), 0);
    }
    for (size_t i = 0; i < count; i++) {
        if (i == WORKING)
            atomic_store(&is_over, true);
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        schema_unref(workers[i].schema);
    }
    Item item;
    assert_true(test_get(t, "shared", "counter", &item));
    assert_int_equal(json_number(json_get(item.document, SLICE("n"))),
                     WRITERS * ROUNDS + TRANSACTORS * (ROUNDS - ROUNDS / 4));
    t->is_ttl_changed = true;
    test_settle(t);
    test_set_schema(
        t,
        (TestSchema){.kind = PARTITION_HASH_V2, .paths = "/pk", .ttl_s = 1000, .unique = {"/u"}});
    test_maintain(t);
    check_space(t);
    test_reopen(t);
    check_space(t);
}

/* ---- atomic batches and readers of one item ---- */

enum { BATCHES = 400 };

static void *read_even(void *arg)
{
    Worker *worker = arg;
    Arena arena;
    arena_init(&arena, 512);
    Epk epk;
    make_epk(&arena, worker->schema, "shared", &epk);
    double before = 0;
    while (!atomic_load(&is_over)) {
        StoreValue value = {0};
        Item item;
        StoreFound found = STORE_ABSENT;
        Error failure = {0};
        Status status = partition_get(worker->t->partition, worker->schema, &epk, SLICE("counter"),
                                      STORE_READ_ANY, &item, &value, &found, &failure);
        ASSERT(status == STATUS_OK && found == STORE_FOUND);
        double n = json_number(json_get(item.document, SLICE("n")));
        ASSERT(n >= before && (uint64_t)n % 2 == 0);
        before = n;
        store_value_release(&value);
    }
    arena_done(&arena);
    return NULL;
}

/* Each batch changes the item twice, and no reader may see the first change alone (I1). */
static void nobody_sees_the_middle_of_a_batch(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'counter','pk':'shared','n':0}"), STATUS_OK);
    atomic_store(&is_over, false);
    Worker readers[READERS];
    for (size_t i = 0; i < READERS; i++) {
        readers[i] = (Worker){.t = t, .schema = t->schema};
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_even, &readers[i]), 0);
    }
    for (int i = 0; i < BATCHES; i++) {
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, WRITE_ATOMIC);
        (void)add_patch(&w, "shared", "counter", "[{'op':'incr','path':'/n','value':1}]");
        (void)add_patch(&w, "shared", "counter", "[{'op':'incr','path':'/n','value':1}]");
        test_run(t, &w);
    }
    atomic_store(&is_over, true);
    for (size_t i = 0; i < READERS; i++)
        assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
    Item item;
    assert_true(test_get(t, "shared", "counter", &item));
    assert_int_equal(json_number(json_get(item.document, SLICE("n"))), 2 * BATCHES);
    check_space(t);
}

/* ---- followers of the change feed ---- */

/* Reads what comes after '*position', and counts it. Positions and the values of the counter rise;
 * a feed of all versions shows every value. */
static void follow(Worker *worker, FeedMode mode, uint64_t *position, double *seen)
{
    FeedOptions options = {.mode = mode, .after_lsn = *position, .since_s = INT64_MIN};
    AUTO(change_feed_close) ChangeFeed *feed = NULL;
    Error failure = {0};
    Status status =
        change_feed_open(worker->t->partition, worker->schema, &options, &feed, &failure);
    ASSERT(status == STATUS_OK);
    ASSERT(change_feed_lsn(feed) >= *position);
    uint64_t lsn = *position;
    for (bool found = true; found;) {
        ItemChange change;
        status = change_feed_next(feed, &change, &found, &failure);
        ASSERT(status == STATUS_OK);
        if (!found)
            continue;
        double n = json_number(json_get(change.item.document, SLICE("n")));
        ASSERT(change.lsn > *position && change.lsn >= lsn);
        ASSERT(n > *seen);
        ASSERT(mode == FEED_LATEST || n == *seen + 1);
        lsn = change.lsn;
        *seen = n;
    }
    *position = change_feed_seen_lsn(feed);
}

static void *follow_both(void *arg)
{
    Worker *worker = arg;
    uint64_t latest = 1;
    uint64_t versions = 1;
    double latest_seen = 0;
    double versions_seen = 0;
    bool is_last = false;
    while (!is_last) {
        is_last = atomic_load(&is_over); /* and then once more */
        follow(worker, FEED_LATEST, &latest, &latest_seen);
        follow(worker, FEED_VERSIONS, &versions, &versions_seen);
    }
    ASSERT(latest_seen == 2 * BATCHES && versions_seen == 2 * BATCHES);
    return NULL;
}

/* I23, I25 */
static void followers_miss_nothing_while_others_write(TestPartition *t)
{
    atomic_store(&is_over, false);
    Worker readers[READERS];
    for (size_t i = 0; i < READERS; i++) {
        readers[i] = (Worker){.t = t, .schema = t->schema};
        assert_int_equal(pthread_create(&readers[i].thread, NULL, follow_both, &readers[i]), 0);
    }
    assert_status(run_document(t, ITEM_CREATE, "{'id':'counter','pk':'shared','n':1}"), STATUS_OK);
    assert_status(run_document(t, ITEM_UPSERT, "{'id':'counter','pk':'shared','n':2}"), STATUS_OK);
    for (int i = 1; i < BATCHES; i++) {
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, WRITE_ATOMIC);
        (void)add_patch(&w, "shared", "counter", "[{'op':'incr','path':'/n','value':1}]");
        (void)add_patch(&w, "shared", "counter", "[{'op':'incr','path':'/n','value':1}]");
        test_run(t, &w);
    }
    atomic_store(&is_over, true);
    for (size_t i = 0; i < READERS; i++)
        assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
    check_space(t);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(everyone_at_once, .ttl_s = 1000, .unique = {"/u"}),
        ENGINE_TEST(nobody_sees_the_middle_of_a_batch),
        ENGINE_TEST(followers_miss_nothing_while_others_write, .retention_s = 600),
    };
    return run_on_every_engine("threads", tests, ARRAY_COUNT(tests));
}
