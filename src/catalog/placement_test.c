/* placement_test.c - catalogues that serve some partitions only, follow another one, and call the
 * hooks of their placement in order. */
#include "catalog/move_testing_int.h"
#include "catalog/partition_handle_int.h"
#include "catalog/placement_testing_int.h"
#include "catalog/saved_states.h"

#include <pthread.h>

#define NONE MANUAL(0)

enum { PATIENCE_MS = 20000 };

static bool has_item(PartitionHandle *handle, const PartitionSchema *schema, const char *id)
{
    AUTO(store_value_release) StoreValue value = {0};
    Item item;
    StoreFound found = STORE_ABSENT;
    Epk epk = {.len = 1};
    assert_ok(handle_get(handle, schema, &epk, slice_from_cstr(id), STORE_READ_ANY, &item, &value,
                         &found, err));
    return found == STORE_FOUND;
}

/* ---- handles ---- */

static void expect_elsewhere(Status status, const Error *failure)
{
    assert_int_equal(status, STATUS_NOT_OWNER);
    assert_non_null(strstr(failure->message, "served by another node"));
}

static void no_call_reaches_a_partition_that_is_elsewhere(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    PartitionHandle *h = handle_at(&pair, &pair.b, 0);
    PartitionSchema *schema = container_at(&pair, &pair.b)->schema;
    assert_false(handle_is_local(h));
    assert_null(handle_local(h));
    assert_false(handle_is_served(h));
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, "{'id':'1'}");
    Error e = {0};
    Item item;
    StoreValue value = {0};
    StoreFound where;
    Slice text;
    bool flag = false;
    PartitionPurge purge = {.epk = w.item.epk};
    PartitionScan *scan = NULL;
    PartitionView *view = NULL;
    ChangeFeed *feed = NULL;
    PartitionTransaction *transaction = NULL;
    ScanOptions scan_options = {.order = SCAN_BY_NUMBER};
    FeedOptions feed_options = {.read = STORE_READ_ANY};
    ScanBudget budget = {.entries = 1};
    LogicalCount count;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    expect_elsewhere(
        handle_get(h, schema, &w.item.epk, SLICE("1"), STORE_READ_ANY, &item, &value, &where, &e),
        &e);
    expect_elsewhere(handle_locate(h, 1, &arena, &text, &text, &flag, &e), &e);
    expect_elsewhere(handle_submit(h, &w.write, &e), &e);
    expect_elsewhere(handle_purge(h, &purge, &e), &e);
    expect_elsewhere(handle_scan_open(h, schema, &scan_options, &scan, &e), &e);
    expect_elsewhere(handle_view_open(h, schema, STORE_READ_ANY, &view, &e), &e);
    expect_elsewhere(handle_feed_open(h, schema, &feed_options, &feed, &e), &e);
    expect_elsewhere(handle_txn_begin(h, schema, &w.item.epk, UINT64_MAX, &transaction, &e), &e);
    expect_elsewhere(handle_hold(h, &e), &e);
    expect_elsewhere(handle_count_keys(h, schema, &budget, &count, &e), &e);
    expect_elsewhere(handle_add_largest(h, NULL, &budget, &flag, &text, &e), &e);
    expect_elsewhere(handle_key_text(h, schema, SLICE("x"), &arena, &text, &flag, &e), &e);
    handle_let_go(h, 7); /* nothing to let go of */
    assert_true(handle_lsn(h) == 0);
    assert_true(handle_index_bytes(h) == 0);
    assert_int_equal(handle_index_progress(h), 0);
    PartitionUsage usage = handle_usage(h);
    assert_true(usage.items == 0 && usage.bytes == 0 && usage.bytes_ever == 0);
    /* What the catalogue knows is there. */
    assert_true(handle_share(h) == 100000);
    assert_ptr_equal(handle_range(h), &container_at(&pair, &pair.b)->ranges[0]);
    uint64_t now_us = clock_monotonic_us(&pair.b.t.clock.clock);
    uint32_t wait_ms = 0;
    assert_int_equal(handle_admit(h, (BudgetClass){0}, 0, now_us, &wait_ms), BUDGET_ADMITTED);
    handle_charge(h, (BudgetClass){0}, 10000000, now_us);
    assert_int_equal(handle_admit(h, (BudgetClass){0}, 0, now_us, &wait_ms), BUDGET_SPENT);
    assert_non_null(handle_history(h));
    assert_false(handle_shares_budget(h, handle_at(&pair, &pair.b, 1)));
}

/* ---- serving ---- */

static void a_partition_goes_to_another_node_and_comes_back(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    StoreSpace space = space_of(&pair, 0);
    AUTO(container_unref) Container *kept = container_ref(container_at(&pair, &pair.a));
    PartitionHandle *old = container_handle_at(kept, 0);
    assert_int_equal(write_item(old, "{'id':'1'}"), STATUS_OK);
    node_hand_over(&pair.a, &pair.b, space);
    assert_false(handle_is_local(handle_at(&pair, &pair.a, 0)));
    assert_true(handle_is_local(handle_at(&pair, &pair.a, 1)));
    assert_true(handle_is_local(old)); /* of an older snapshot */
    assert_false(handle_is_served(old));
    assert_int_equal(write_item(old, "{'id':'2'}"), STATUS_NOT_OWNER);
    PartitionHandle *there = handle_at(&pair, &pair.b, 0);
    const PartitionSchema *schema = kept->schema;
    assert_true(handle_is_local(there));
    assert_false(handle_is_local(handle_at(&pair, &pair.b, 1)));
    assert_true(has_item(there, schema, "1"));
    assert_int_equal(write_item(there, "{'id':'3'}"), STATUS_OK);
    assert_int_equal(handle_usage(there).items, 2);
    node_hand_over(&pair.b, &pair.a, space);
    assert_true(has_item(handle_at(&pair, &pair.a, 0), schema, "3"));
    assert_int_equal(handle_usage(handle_at(&pair, &pair.a, 0)).items, 2);
    expect_same(&pair);
}

static void spaces_that_no_range_names_are_fine(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    const Snapshot *before = test_read(&pair.a.t);
    assert_ok(catalog_serve(pair.a.t.catalog, 1 << 30, err));
    assert_ok(catalog_stop_serving(pair.a.t.catalog, 1 << 30, err));
    assert_ok(catalog_stop_serving(pair.b.t.catalog, space_of(&pair, 0), err)); /* is not here */
    assert_ptr_equal(test_read(&pair.a.t), before);
}

typedef struct Asker {
    Catalog *catalog;
    StoreSpace space;
} Asker;

static void *serve_space(void *arg)
{
    const Asker *asker = arg;
    assert_ok(catalog_serve(asker->catalog, asker->space, err));
    return NULL;
}

static void *stop_space(void *arg)
{
    const Asker *asker = arg;
    assert_ok(catalog_stop_serving(asker->catalog, asker->space, err));
    return NULL;
}

/* Whoever asks: as long as a group of the one before is under way, nobody opens the partition. */
static void a_partition_is_not_opened_while_the_one_before_is_ending(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    PartitionHandle *handle = handle_at(&pair, &pair.a, 0);
    AUTO(container_unref) Container *kept = container_ref(container_at(&pair, &pair.a));
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, "{'id':'1'}");
    memory_store_stall(pair.a.t.store);
    assert_ok(handle_submit(handle, &w.write, err));
    memory_store_wait_stalled(pair.a.t.store);
    Asker asker = {pair.a.t.catalog, space_of(&pair, 0)};
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i % 2 == 0 ? stop_space : serve_space, &asker), 0);
    while (handle_is_served(handle))
        (void)usleep(100);
    assert_ok(catalog_refresh(pair.a.t.catalog, err)); /* what was asked before was looked at */
    assert_false(handle_is_local(handle_at(&pair, &pair.a, 0)));
    memory_store_release(pair.a.t.store);
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    test_write_wait(&w);
    assert_int_equal(w.write.status, STATUS_OK);
    assert_ok(catalog_serve(pair.a.t.catalog, asker.space, err));
    assert_true(has_item(handle_at(&pair, &pair.a, 0), kept->schema, "1"));
}

/* What is there may be outdated: the store has been written to since. */
static void serving_again_opens_the_partition_anew(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    Partition *before = partition_ref(handle_local(handle_at(&pair, &pair.a, 0)));
    assert_ok(catalog_serve(pair.a.t.catalog, space_of(&pair, 0), err));
    assert_ptr_not_equal(handle_local(handle_at(&pair, &pair.a, 0)), before);
    assert_int_equal(write_item(handle_at(&pair, &pair.a, 0), "{'id':'1'}"), STATUS_OK);
    partition_unref(before);
}

/* Its stop has been asked for before, and nothing else would end it: it would answer for ever from
 * a copy that follows. */
static void a_space_that_was_given_away_meanwhile_is_not_opened(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    StoreSpace space = space_of(&pair, 0);
    node_hand_over(&pair.a, &pair.b, space);
    assert_ok(catalog_serve(pair.a.t.catalog, space, err)); /* whoever asked has not heard of it */
    assert_false(handle_is_local(handle_at(&pair, &pair.a, 0)));
    assert_int_equal(write_item(handle_at(&pair, &pair.b, 0), "{'id':'1'}"), STATUS_OK);
    node_hand_over(&pair.b, &pair.a, space);
    assert_true(handle_is_local(handle_at(&pair, &pair.a, 0)));
}

static void a_partition_that_cannot_be_opened_stays_elsewhere(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    StoreSpace space = space_of(&pair, 0);
    assert_ok(catalog_stop_serving(pair.a.t.catalog, space, err));
    node_add(&pair.b, space);
    memory_store_fail_gets(pair.a.t.store, 1, STATUS_UNAVAILABLE);
    Error failure = {0};
    assert_int_equal(catalog_serve(pair.b.t.catalog, space, &failure), STATUS_UNAVAILABLE);
    assert_false(handle_is_local(handle_at(&pair, &pair.b, 0)));
    assert_ok(catalog_serve(pair.b.t.catalog, space, err));
    assert_true(handle_is_local(handle_at(&pair, &pair.b, 0)));
}

static uint64_t now_us(const TestNode *node)
{
    return clock_monotonic_us(&node->t.clock.clock);
}

/* Its last owner may have given the second away that has begun. */
static void a_partition_begins_with_its_budget_used_up(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    fake_clock_advance(&pair.b.t.clock, UINT64_C(250) * 1000000);
    Charge share = handle_share(handle_at(&pair, &pair.b, 0));
    assert_true(handle_credit(handle_at(&pair, &pair.b, 0), now_us(&pair.b)) > 10 * share);
    Charge other = handle_credit(handle_at(&pair, &pair.b, 1), now_us(&pair.b));
    node_hand_over(&pair.a, &pair.b, space_of(&pair, 0));
    assert_true(handle_credit(handle_at(&pair, &pair.b, 0), now_us(&pair.b)) == 0);
    assert_true(handle_credit(handle_at(&pair, &pair.b, 1), now_us(&pair.b)) == other);
    fake_clock_advance(&pair.b.t.clock, 100000);
    assert_in_range(handle_credit(handle_at(&pair, &pair.b, 0), now_us(&pair.b)), share / 10 - 1,
                    share / 10);
}

/* A node that restarts serves at once what it had, and what others gave it while it started. */
static void a_node_that_starts_begins_with_budgets_used_up(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    Charge share = handle_share(handle_at(&pair, &pair.a, 0));
    assert_true(handle_credit(handle_at(&pair, &pair.a, 0), now_us(&pair.a)) == share);
    test_close_catalog(&pair.b.t);
    assert_ok(catalog_stop_serving(pair.a.t.catalog, space_of(&pair, 0), err));
    node_add(&pair.b, space_of(&pair, 0));
    assert_ok(test_try_open(&pair.b.t, err));
    assert_true(handle_is_local(handle_at(&pair, &pair.b, 0)));
    assert_true(handle_credit(handle_at(&pair, &pair.b, 0), now_us(&pair.b)) == 0);
    fake_clock_advance(&pair.b.t.clock, 100000);
    assert_true(handle_credit(handle_at(&pair, &pair.b, 0), now_us(&pair.b)) > 0);
}

/* ---- leading and following ---- */

static void a_follower_writes_nothing_and_refuses_changes(void **state)
{
    (void)state;
    AUTO(node_close) TestNode a;
    node_open(&a, NULL, true, &NODE_RULES);
    uint32_t database = make_database(&a.t, "d", NONE);
    uint32_t number = make_container(&a.t, database, "c", MANUAL(2000));
    begin_move(&a.t, database, number, 1, 1, "30");
    uint64_t groups = memory_store_groups(a.t.store);
    AUTO(node_close) TestNode b;
    static const MoveRules moves = {.splits = true, .merges = true, .partition_bytes_max = 1};
    node_init(&b, a.t.store, false, &NODE_RULES);
    b.t.moves = &moves;
    assert_ok(test_try_open(&b.t, err));
    const Container *container = test_container(&b.t, database, number);
    assert_int_equal(container->pending_count, 2); /* the move goes on elsewhere */
    AUTO(test_change_done) TestChange c;
    fill_database(&c, SLICE("mine"), NONE);
    assert_int_equal(test_run(b.t.catalog, &c), STATUS_NOT_OWNER);
    Error failure = {0};
    bool has_replaced = false;
    uint64_t event = 0;
    MoveOrder order = {.database = database, .container = number, .parts = 2};
    assert_int_equal(catalog_order_move(b.t.catalog, &order, &event, &failure), STATUS_NOT_OWNER);
    assert_int_equal(
        catalog_save_state(b.t.catalog, SLICE("d"), SLICE("s"), &has_replaced, &failure),
        STATUS_NOT_OWNER);
    assert_int_equal(catalog_restore_state(b.t.catalog, SLICE("d"), SLICE("s"), &failure),
                     STATUS_NOT_OWNER);
    assert_int_equal(catalog_drop_state(b.t.catalog, SLICE("d"), SLICE("s"), &failure),
                     STATUS_NOT_OWNER);
    node_refresh(&b);
    assert_true(memory_store_groups(a.t.store) == groups);
    assert_slice(node_events(&b), SLICE_EMPTY);
    finish_move(&a.t, CATALOG_UNDO_MOVE, database, number);
}

static void a_follower_of_an_empty_store_learns_everything_later(void **state)
{
    (void)state;
    AUTO(node_close) TestNode b;
    node_open(&b, NULL, false, &NODE_RULES);
    assert_int_equal(memory_store_groups(b.t.store), 0);
    assert_null(snapshot_next_database(test_read(&b.t), 0));
    AUTO(node_close) TestNode a;
    node_open(&a, b.t.store, true, &NODE_RULES);
    (void)make_container(&a.t, make_database(&a.t, "d", NONE), "c", NONE);
    node_refresh(&b);
    assert_slice(test_dump(&a.t), test_dump(&b.t));
}

/* What a start would do, and not before. */
static void a_new_leader_undoes_moves_and_cleans_up(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    uint32_t doomed = make_container(&pair.a.t, pair.database, "doomed", NONE);
    StoreSpace space = test_container(&pair.a.t, pair.database, doomed)->ranges[0].space;
    assert_int_equal(
        write_item(container_handle_at(test_container(&pair.a.t, pair.database, doomed), 0),
                   "{'id':'1'}"),
        STATUS_OK);
    begin_move(&pair.a.t, pair.database, pair.container, 0, 0, "05");
    catalog_follow(pair.a.t.catalog); /* so that it leaves the garbage */
    pair.a.leads = pair.a.takes_new = false;
    pair.b.leads = pair.b.takes_new = true;
    assert_ok(catalog_lead(pair.b.t.catalog, err));
    assert_int_equal(container_at(&pair, &pair.b)->pending_count, 0);
    assert_int_equal(container_at(&pair, &pair.b)->range_count, 2);
    assert_int_equal(delete_one(&pair.b.t, CATALOG_DELETE_CONTAINER, pair.database, doomed),
                     STATUS_OK);
    for (int ms = 0; count_garbage(pair.a.t.store) > 0 && ms < PATIENCE_MS; ms++)
        (void)usleep(1000);
    assert_int_equal(count_garbage(pair.a.t.store), 0);
    assert_int_equal(count_keys(pair.a.t.store, space), 0);
    node_refresh(&pair.a);
    expect_same(&pair);
    assert_null(test_container(&pair.a.t, pair.database, doomed));
    /* Numbers go on, and the other way round again. */
    uint32_t third = make_container(&pair.b.t, pair.database, "third", NONE);
    assert_true(third > doomed);
    node_switch(&pair.b, &pair.a);
    assert_true(make_container(&pair.a.t, pair.database, "fourth", NONE) > third);
    node_refresh(&pair.b);
    expect_same(&pair);
}

static void a_new_leader_makes_a_catalogue_if_there_is_none(void **state)
{
    (void)state;
    AUTO(node_close) TestNode b;
    node_open(&b, NULL, false, &NODE_RULES);
    b.leads = b.takes_new = true;
    assert_ok(catalog_lead(b.t.catalog, err));
    assert_ok(catalog_lead(b.t.catalog, err)); /* does nothing more */
    (void)make_database(&b.t, "d", NONE);
}

/* The store says so before anybody else does. */
static void a_leader_whose_commit_is_refused_follows(void **state)
{
    (void)state;
    static const Status rows[] = {STATUS_NOT_OWNER, STATUS_TIMEOUT};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(pair_close) Pair pair;
        pair_open(&pair);
        memory_store_fail_commits(pair.a.t.store, 1, rows[i]);
        AUTO(test_change_done) TestChange c;
        AUTO(test_change_done) TestChange d;
        fill_database(&c, SLICE("lost"), NONE);
        assert_int_equal(test_run(pair.a.t.catalog, &c), rows[i]);
        assert_false(catalog_is_leader(pair.a.t.catalog));
        fill_database(&d, SLICE("lost"), NONE);
        assert_int_equal(test_run(pair.a.t.catalog, &d), STATUS_NOT_OWNER);
        assert_ok(catalog_lead(pair.a.t.catalog, err));
        (void)make_database(&pair.a.t, "lost", NONE);
    }
}

/* Partitions of what is gone end: nothing more is written to them. */
static void partitions_end_when_another_node_drops_or_moves_their_ranges(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    uint32_t other = make_container(&pair.a.t, pair.database, "other", NONE);
    StoreSpace other_space = test_container(&pair.a.t, pair.database, other)->ranges[0].space;
    node_refresh(&pair.b);
    node_hand_over(&pair.a, &pair.b, other_space);
    node_hand_over(&pair.a, &pair.b, space_of(&pair, 1));
    AUTO(snapshot_unref) Snapshot *before = snapshot_ref(test_read(&pair.b.t));
    PartitionHandle *dropped =
        container_handle_at(snapshot_container(before, pair.database, other), 0);
    PartitionHandle *moved =
        container_handle_at(snapshot_container(before, pair.database, pair.container), 1);
    assert_int_equal(delete_one(&pair.a.t, CATALOG_DELETE_CONTAINER, pair.database, other),
                     STATUS_OK);
    move_ranges(&pair.a.t, pair.database, pair.container, 1, 1, "30");
    node_refresh(&pair.b);
    assert_int_equal(write_item(dropped, "{'id':'1'}"), STATUS_NOT_FOUND);
    assert_int_equal(write_item(moved, "{'id':'1'}"), STATUS_GONE);
    expect_same(&pair);
}

static void a_definition_reaches_partitions_that_a_follower_serves(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    node_hand_over(&pair.a, &pair.b, space_of(&pair, 0));
    assert_int_equal(write_item(handle_at(&pair, &pair.b, 0), "{'id':'1','ttl':10}"), STATUS_OK);
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_REPLACE_CONTAINER);
    c.change.database = pair.database;
    c.change.container = pair.container;
    c.change.definition = row_definition(&pair.a.t.arena, "c", ",'defaultTtl':-1");
    assert_int_equal(test_run(pair.a.t.catalog, &c), STATUS_OK);
    Partition *partition = handle_local(handle_at(&pair, &pair.b, 0));
    node_refresh(&pair.b);
    const Container *container = container_at(&pair, &pair.b);
    assert_ptr_equal(handle_local(handle_at(&pair, &pair.b, 0)), partition);
    assert_int_equal(container->schema->default_ttl_s, -1);
    fake_clock_advance(&pair.b.t.clock, UINT64_C(20) * 1000000);
    assert_false(has_item(handle_at(&pair, &pair.b, 0), container->schema, "1"));
}

static void throughput_reaches_the_budgets_of_a_follower(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    assert_true(handle_share(handle_at(&pair, &pair.b, 0)) == 100000);
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_REPLACE_OFFER);
    c.change.offer = container_at(&pair, &pair.a)->offer;
    c.change.provision = MANUAL(1000);
    assert_int_equal(test_run(pair.a.t.catalog, &c), STATUS_OK);
    node_refresh(&pair.b);
    assert_true(handle_share(handle_at(&pair, &pair.b, 0)) == 50000);
    /* Shared budgets are divided by position, wherever the ranges are (I9). */
    uint32_t shared = make_database(&pair.a.t, "shared", MANUAL(2000));
    uint32_t x = make_container(&pair.a.t, shared, "x", NONE);
    uint32_t y = make_container(&pair.a.t, shared, "y", NONE);
    node_refresh(&pair.b);
    const PartitionHandle *first = container_handle_at(test_container(&pair.b.t, shared, x), 1);
    assert_true(handle_share(first) == 100000);
    assert_true(
        handle_shares_budget(first, container_handle_at(test_container(&pair.b.t, shared, y), 1)));
}

/* The leader chooses; a node opens what it is to serve as soon as it learns of it. */
static void a_new_container_is_opened_by_the_nodes_that_were_chosen(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    pair.a.takes_new = false;
    uint32_t number = make_container(&pair.a.t, pair.database, "new", MANUAL(2000));
    const Container *here = test_container(&pair.a.t, pair.database, number);
    node_add(&pair.b, here->ranges[0].space);
    assert_ok(catalog_serve(pair.b.t.catalog, here->ranges[0].space, err)); /* not known yet */
    node_refresh(&pair.b);
    const Container *there = test_container(&pair.b.t, pair.database, number);
    assert_false(handle_is_local(container_handle_at(here, 0)));
    assert_true(handle_is_local(container_handle_at(there, 0)));
    assert_false(handle_is_local(container_handle_at(there, 1)));
    assert_int_equal(write_item(container_handle_at(here, 0), "{'id':'1'}"), STATUS_NOT_OWNER);
    assert_int_equal(write_item(container_handle_at(there, 0), "{'id':'1'}"), STATUS_OK);
    assert_true(handle_share(container_handle_at(here, 0)) == 100000);
    assert_true(handle_share(container_handle_at(there, 0)) == 100000);
    assert_int_equal(delete_one(&pair.a.t, CATALOG_DELETE_CONTAINER, pair.database, number),
                     STATUS_OK);
    node_refresh(&pair.b);
    expect_same(&pair);
}

/* ---- which spaces are named ---- */

static void spaces_are_named_until_the_leader_has_emptied_them(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    uint32_t doomed = make_container(&pair.a.t, pair.database, "doomed", NONE);
    uint32_t saved = make_container(&pair.a.t, make_database(&pair.a.t, "s", NONE), "saved", NONE);
    uint32_t saved_database =
        snapshot_database_by_id(test_read(&pair.a.t), SLICE("s"))->info.number;
    StoreSpace spaces[] = {
        SPACE_CATALOG,
        space_of(&pair, 1),
        test_container(&pair.a.t, pair.database, doomed)->ranges[0].space,
        test_container(&pair.a.t, saved_database, saved)->ranges[0].space,
        1 << 30, /* not given out yet */
    };
    bool has_replaced = false;
    assert_ok(catalog_save_state(pair.a.t.catalog, SLICE("s"), SLICE("now"), &has_replaced, err));
    assert_int_equal(delete_one(&pair.a.t, CATALOG_DELETE_CONTAINER, saved_database, saved),
                     STATUS_OK);
    assert_int_equal(delete_one(&pair.a.t, CATALOG_DELETE_CONTAINER, pair.database, doomed),
                     STATUS_OK);
    for (int ms = 0; count_garbage(pair.a.t.store) > 0 && ms < PATIENCE_MS; ms++)
        (void)usleep(1000);
    bool is_named[ARRAY_COUNT(spaces)];
    assert_ok(catalog_find_named(pair.a.t.catalog, spaces, ARRAY_COUNT(spaces), is_named, err));
    static const bool expected[] = {true, true, false, true, true};
    for (size_t i = 0; i < ARRAY_COUNT(spaces); i++)
        assert_int_equal(is_named[i], expected[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_call_reaches_a_partition_that_is_elsewhere),
        cmocka_unit_test(a_partition_goes_to_another_node_and_comes_back),
        cmocka_unit_test(spaces_that_no_range_names_are_fine),
        cmocka_unit_test(a_partition_is_not_opened_while_the_one_before_is_ending),
        cmocka_unit_test(serving_again_opens_the_partition_anew),
        cmocka_unit_test(a_space_that_was_given_away_meanwhile_is_not_opened),
        cmocka_unit_test(a_partition_that_cannot_be_opened_stays_elsewhere),
        cmocka_unit_test(a_partition_begins_with_its_budget_used_up),
        cmocka_unit_test(a_node_that_starts_begins_with_budgets_used_up),
        cmocka_unit_test(a_follower_writes_nothing_and_refuses_changes),
        cmocka_unit_test(a_follower_of_an_empty_store_learns_everything_later),
        cmocka_unit_test(a_new_leader_undoes_moves_and_cleans_up),
        cmocka_unit_test(a_new_leader_makes_a_catalogue_if_there_is_none),
        cmocka_unit_test(a_leader_whose_commit_is_refused_follows),
        cmocka_unit_test(partitions_end_when_another_node_drops_or_moves_their_ranges),
        cmocka_unit_test(a_definition_reaches_partitions_that_a_follower_serves),
        cmocka_unit_test(throughput_reaches_the_budgets_of_a_follower),
        cmocka_unit_test(a_new_container_is_opened_by_the_nodes_that_were_chosen),
        cmocka_unit_test(spaces_are_named_until_the_leader_has_emptied_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
