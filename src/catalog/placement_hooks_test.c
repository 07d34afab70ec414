/* placement_hooks_test.c - the hooks of a placement: in which order they are called, what becomes
 * of a change when one fails, moves whose sources are elsewhere, and what nodes say of them. */
#include "catalog/move_policy_int.h"
#include "catalog/move_testing_int.h"
#include "catalog/placement_testing_int.h"
#include "catalog/saved_states.h"
#include "partition/baseline.h"

#define NONE MANUAL(0)

enum { KEYS = 40, PATIENCE_MS = 20000 };

static void expect_events(TestNode *node, const char *expected)
{
    assert_slice(node_events(node), slice_from_cstr(expected));
}

/* ---- create, published, dropped ---- */

static void spaces_are_placed_before_the_change_that_makes_them(void **state)
{
    (void)state;
    AUTO(node_close) TestNode a;
    node_open(&a, NULL, true, &NODE_RULES);
    uint32_t database = make_database(&a.t, "d", NONE);
    uint32_t shared = make_database(&a.t, "shared", MANUAL(2000));
    expect_events(&a, "published; published; ");
    (void)make_container(&a.t, database, "c", MANUAL(2000));
    expect_events(&a, "create 0-1; published; ");
    /* Ranges that share a budget are placed together, one by one. */
    (void)make_container(&a.t, shared, "x", NONE);
    expect_events(&a, "create 2-2; create 3-3; published; ");
    (void)make_container(&a.t, shared, "y", NONE);
    expect_events(&a, "create 4-4 beside 2; create 5-5 beside 3; published; ");
    (void)make_container(&a.t, shared, "own", MANUAL(1000));
    expect_events(&a, "create 6-6; published; ");
    const Container *container = snapshot_container_by_id(test_read(&a.t), database, SLICE("c"));
    begin_move(&a.t, database, container->info.number, 1, 1, "30");
    expect_events(&a, "create 7-8 beside 1; published; ");
}

static void a_change_whose_spaces_nobody_takes_is_refused_alone(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    Slice before = test_dump(&pair.a.t);
    pair.a.create_status = STATUS_UNAVAILABLE;
    AUTO(test_change_done) TestChange c;
    fill_container(&c, pair.database, row_definition(&pair.a.t.arena, "none", ""), NONE);
    assert_int_equal(test_run(pair.a.t.catalog, &c), STATUS_UNAVAILABLE);
    assert_non_null(strstr(c.change.error.message, "no node takes it"));
    AUTO(test_change_done) TestChange m;
    fill_begin(&pair.a.t, &m, container_at(&pair, &pair.a), 0, 0, "05");
    assert_int_equal(test_run(pair.a.t.catalog, &m), STATUS_UNAVAILABLE);
    assert_slice(test_dump(&pair.a.t), before);
    /* In one group with others. */
    TestChange group[2];
    fill_container(&group[0], pair.database, row_definition(&pair.a.t.arena, "none", ""), NONE);
    fill_database(&group[1], SLICE("other"), NONE);
    run_as_group(&pair.a.t, group, ARRAY_COUNT(group));
    assert_int_equal(group[0].change.status, STATUS_UNAVAILABLE);
    assert_int_equal(group[1].change.status, STATUS_OK);
    for (size_t i = 0; i < ARRAY_COUNT(group); i++)
        test_change_done(&group[i]);
    pair.a.create_status = STATUS_OK;
    (void)make_container(&pair.a.t, pair.database, "none", NONE);
    node_refresh(&pair.b);
    expect_same(&pair);
}

/* A group may take long, and another node may lead before it is made. */
static void a_group_is_not_committed_by_a_node_that_leads_no_more(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    Slice before = test_dump(&pair.a.t);
    pair.a.is_deposed = true;
    AUTO(test_change_done) TestChange late;
    fill_container(&late, pair.database, row_definition(&pair.a.t.arena, "none", ""), NONE);
    assert_int_equal(test_run(pair.a.t.catalog, &late), STATUS_NOT_OWNER);
    assert_false(catalog_is_leader(pair.a.t.catalog));
    assert_slice(test_dump(&pair.a.t), before);
    /* A refusal is no answer either, as it rests on what may be old. */
    pair.a.is_deposed = false;
    assert_ok(catalog_lead(pair.a.t.catalog, err));
    pair.a.is_deposed = true;
    pair.a.create_status = STATUS_UNAVAILABLE;
    AUTO(test_change_done) TestChange c;
    fill_container(&c, pair.database, row_definition(&pair.a.t.arena, "none", ""), NONE);
    assert_int_equal(test_run(pair.a.t.catalog, &c), STATUS_NOT_OWNER);
    pair.a.is_deposed = false;
    pair.a.create_status = STATUS_OK;
    assert_ok(catalog_lead(pair.a.t.catalog, err));
    (void)make_container(&pair.a.t, pair.database, "none", NONE);
    node_refresh(&pair.b);
    expect_same(&pair);
}

static void answers_wait_until_all_nodes_have_published(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    TestNode *a = &pair.a;
    a->delays = true;
    AUTO(test_change_done) TestChange first, second, refused;
    fill_database(&first, SLICE("first"), NONE);
    catalog_submit(a->t.catalog, &first.change);
    while (node_delayed(a) < 1)
        (void)usleep(100);
    /* It is published here, and does not hold up the next one. */
    assert_non_null(snapshot_database_by_id(test_read(&a->t), SLICE("first")));
    fill_database(&second, SLICE("second"), NONE);
    catalog_submit(a->t.catalog, &second.change);
    while (node_delayed(a) < 2)
        (void)usleep(100);
    /* A refusal rests on what was not answered yet. */
    fill_database(&refused, SLICE("first"), NONE);
    catalog_submit(a->t.catalog, &refused.change);
    while (node_delayed(a) < 3)
        (void)usleep(100);
    assert_false(test_is_answered(&first));
    assert_false(test_is_answered(&second));
    assert_false(test_is_answered(&refused));
    /* Nor does it hold up what the placement asks for. */
    node_hand_over(a, &pair.b, space_of(&pair, 0));
    node_refresh(&pair.b);
    a->delays = false;
    node_publish(a);
    assert_int_equal(test_wait(&first), STATUS_OK);
    assert_int_equal(test_wait(&second), STATUS_OK);
    assert_int_equal(test_wait(&refused), STATUS_CONFLICT);
    /* With nothing left to wait for, a refusal is answered at once. */
    (void)node_events(a);
    AUTO(test_change_done) TestChange again;
    fill_database(&again, SLICE("first"), NONE);
    assert_int_equal(test_run(a->t.catalog, &again), STATUS_CONFLICT);
    expect_events(a, "");
}

static void what_is_not_published_everywhere_is_not_answered_as_done(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    TestNode *a = &pair.a;
    a->delays = true;
    AUTO(test_change_done) TestChange first, refused;
    fill_database(&first, SLICE("first"), NONE);
    catalog_submit(a->t.catalog, &first.change);
    while (node_delayed(a) < 1)
        (void)usleep(100);
    fill_database(&refused, SLICE("first"), NONE);
    catalog_submit(a->t.catalog, &refused.change);
    while (node_delayed(a) < 2)
        (void)usleep(100);
    a->delays = false;
    node_end_waiting(a, false);
    assert_int_equal(test_wait(&first), STATUS_TIMEOUT);
    assert_null(first.change.result_database);
    assert_int_equal(test_wait(&refused), STATUS_TIMEOUT);
    assert_non_null(snapshot_database_by_id(test_read(&a->t), SLICE("first")));
}

static void closing_waits_for_what_is_not_published_everywhere(void **state)
{
    (void)state;
    AUTO(test_change_done) TestChange c;
    {
        AUTO(node_close) TestNode a;
        node_open(&a, NULL, true, &NODE_RULES);
        a.delays = true;
        fill_database(&c, SLICE("d"), NONE);
        catalog_submit(a.t.catalog, &c.change);
        while (node_delayed(&a) < 1)
            (void)usleep(100);
        assert_false(test_is_answered(&c));
    }
    assert_int_equal(test_wait(&c), STATUS_OK);
}

static void a_group_that_fails_is_not_published(void **state)
{
    (void)state;
    AUTO(node_close) TestNode a;
    node_open(&a, NULL, true, &NODE_RULES);
    memory_store_fail_commits(a.t.store, 1, STATUS_UNAVAILABLE);
    AUTO(test_change_done) TestChange c;
    fill_database(&c, SLICE("d"), NONE);
    assert_int_equal(test_run(a.t.catalog, &c), STATUS_UNAVAILABLE);
    expect_events(&a, "");
    assert_true(catalog_is_leader(a.t.catalog)); /* the disk says nothing about owners */
}

static void the_placement_hears_of_spaces_that_were_emptied(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    assert_int_equal(write_item(handle_at(&pair, &pair.a, 0), "{'id':'1'}"), STATUS_OK);
    node_hand_over(&pair.a, &pair.b, space_of(&pair, 1)); /* one is elsewhere */
    StoreSpace space = space_of(&pair, 0);
    assert_int_equal(delete_one(&pair.a.t, CATALOG_DELETE_CONTAINER, pair.database, pair.container),
                     STATUS_OK);
    for (int ms = 0; count_garbage(pair.a.t.store) > 0 && ms < PATIENCE_MS; ms++)
        (void)usleep(1000);
    assert_int_equal(count_keys(pair.a.t.store, space), 0);
    expect_events(&pair.a, "published; dropped 0-1; ");
    node_refresh(&pair.b);
    expect_events(&pair.b, ""); /* it drops its copies by itself */
}

static void states_are_restored_where_all_partitions_are(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    TestNode *a = &pair.a;
    bool has_replaced = false;
    Error failure = {0};
    assert_ok(catalog_save_state(a->t.catalog, SLICE("d"), SLICE("s"), &has_replaced, err));
    StoreSpace space = space_of(&pair, 1);
    node_hand_over(a, &pair.b, space);
    assert_int_equal(
        catalog_save_state(a->t.catalog, SLICE("d"), SLICE("t"), &has_replaced, &failure),
        STATUS_NOT_OWNER);
    assert_int_equal(catalog_restore_state(a->t.catalog, SLICE("d"), SLICE("s"), &failure),
                     STATUS_NOT_OWNER);
    /* The container is dropped, and comes back where it was. */
    assert_int_equal(delete_one(&a->t, CATALOG_DELETE_CONTAINER, pair.database, pair.container),
                     STATUS_OK);
    node_refresh(&pair.b);
    (void)node_events(a);
    assert_int_equal(catalog_restore_state(a->t.catalog, SLICE("d"), SLICE("s"), &failure),
                     STATUS_OK); /* this placement takes what it is asked to place */
    Slice events = node_events(a);
    assert_true(slice_starts_with(events, SLICE("create 0-1; published; ")));
    node_refresh(&pair.b);
    expect_same(&pair);
    assert_int_equal(write_item(handle_at(&pair, a, 1), "{'id':'1'}"), STATUS_OK);
    assert_ok(catalog_stop_serving(a->t.catalog, space, err));
    assert_int_equal(delete_one(&a->t, CATALOG_DELETE_CONTAINER, pair.database, pair.container),
                     STATUS_OK);
    a->takes_new = false; /* another node was given one of its partitions meanwhile */
    a->local_count = 0;
    Slice before = test_dump(&a->t);
    assert_int_equal(catalog_restore_state(a->t.catalog, SLICE("d"), SLICE("s"), &failure),
                     STATUS_NOT_OWNER);
    assert_slice(test_dump(&a->t), before);
}

static bool is_restoring(TestNode *node)
{
    return snapshot_saved_by_name(test_read(&node->t), SLICE("d"), SLICE("s"))->is_restoring;
}

/* As a leader leaves it that dies while items are taken back. */
static void cut_off_restore(Pair *pair)
{
    bool has_replaced = false;
    assert_ok(catalog_save_state(pair->a.t.catalog, SLICE("d"), SLICE("s"), &has_replaced, err));
    assert_int_equal(write_item(handle_at(pair, &pair->a, 0), "{'id':'later'}"), STATUS_OK);
    SavedRecord record =
        saved_state_record(snapshot_saved_by_name(test_read(&pair->a.t), SLICE("d"), SLICE("s")));
    record.is_restoring = true;
    StoreTxn *txn = store_txn_begin(pair->a.t.store);
    record_put_saved(txn, &record);
    assert_ok(store_txn_commit_wait(txn, err));
}

/* Other nodes need not publish anything for that: the caller may be the one who says when they
 * have. */
static void a_new_leader_finishes_a_restore_if_all_partitions_are_here(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    cut_off_restore(&pair);
    node_switch(&pair.a, &pair.b); /* nothing is here: it leads all the same */
    assert_true(is_restoring(&pair.b));
    node_switch(&pair.b, &pair.a);
    assert_false(is_restoring(&pair.a));
    assert_int_equal(handle_usage(handle_at(&pair, &pair.a, 0)).items, 0);

    cut_off_restore(&pair);
    node_hand_over(&pair.a, &pair.b, space_of(&pair, 0));
    node_hand_over(&pair.a, &pair.b, space_of(&pair, 1));
    pair.b.delays = true;
    node_switch(&pair.a, &pair.b);
    assert_false(is_restoring(&pair.b));
    assert_int_equal(node_delayed(&pair.b), 0);
    assert_int_equal(handle_usage(handle_at(&pair, &pair.b, 0)).items, 0);
}

/* Else each state that is dropped meanwhile would leave one, up to BASELINES_MAX. */
static void partitions_forget_states_that_were_dropped_while_they_were_elsewhere(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    pair_open(&pair);
    TestNode *a = &pair.a;
    bool has_replaced = false;
    StoreSpace space = space_of(&pair, 0);
    assert_ok(catalog_save_state(a->t.catalog, SLICE("d"), SLICE("s"), &has_replaced, err));
    node_refresh(&pair.b);
    node_hand_over(a, &pair.b, space);
    assert_ok(catalog_drop_state(a->t.catalog, SLICE("d"), SLICE("s"), err));
    assert_int_equal(partition_baseline_count(handle_local(handle_at(&pair, &pair.b, 0))), 1);
    assert_int_equal(partition_baseline_count(handle_local(handle_at(&pair, a, 1))), 0);
    node_hand_over(&pair.b, a, space);
    assert_ok(catalog_save_state(a->t.catalog, SLICE("d"), SLICE("t"), &has_replaced, err));
    assert_int_equal(partition_baseline_count(handle_local(handle_at(&pair, a, 0))), 1);
}

/* ---- moves ---- */

static const MoveRules BY_ORDER = {.partition_bytes_max = 0};

/* A container with items. */
static void fill_pair(Pair *pair, Provision provision)
{
    pair->database = make_database(&pair->a.t, "d", NONE);
    pair->container = make_container(&pair->a.t, pair->database, "c", provision);
    for (int key = 0; key < KEYS; key++)
        assert_int_equal(put_item(&pair->a.t, pair->database, pair->container, key, key + 1, 10),
                         STATUS_OK);
    node_refresh(&pair->b);
    (void)node_events(&pair->a);
}

/* A container with items, on two nodes of which the first moves partitions. */
static void open_for_moves(Pair *pair, const MoveRules *moves, Provision provision)
{
    node_init(&pair->a, NULL, true, &NODE_RULES);
    pair->a.t.moves = moves;
    assert_ok(test_try_open(&pair->a.t, err));
    node_open(&pair->b, pair->a.t.store, false, &NODE_RULES);
    fill_pair(pair, provision);
}

static MoveEvent wait_for_move(TestNode *node)
{
    MoveEvent event = {.stage = MOVE_WAITING};
    for (int ms = 0; ms < PATIENCE_MS; ms++) {
        if (catalog_moves(node->t.catalog, &event, 1) == 1 && move_stage_is_final(event.stage))
            return event;
        (void)usleep(1000);
    }
    fail_msg("the move does not end");
    return event;
}

static void order_split(Pair *pair)
{
    MoveOrder order = {.database = pair->database, .container = pair->container, .parts = 2};
    uint64_t event = 0;
    assert_ok(catalog_order_move(pair->a.t.catalog, &order, &event, err));
}

static void the_sources_of_a_move_are_brought_here_first(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    open_for_moves(&pair, &BY_ORDER, MANUAL(1000));
    StoreSpace space = space_of(&pair, 0);
    node_hand_over(&pair.a, &pair.b, space);
    /* The other node lets go of it when it is asked to. */
    assert_ok(catalog_stop_serving(pair.b.t.catalog, space, err));
    order_split(&pair);
    MoveEvent event = wait_for_move(&pair.a);
    if (event.stage != MOVE_DONE)
        fail_msg("%s", event.message);
    Slice events = node_events(&pair.a);
    if (!slice_starts_with(events, SLICE("gather 0-0; create 1-2 beside 0; published; ")))
        fail_msg("%.*s", SLICE_ARG(events));
    const Container *container = container_at(&pair, &pair.a);
    assert_int_equal(container->range_count, 2);
    for (int key = 0; key < KEYS; key++)
        assert_int_equal(get_item(container, key), key + 1);
    node_refresh(&pair.b);
    expect_same(&pair);
}

static void a_move_whose_sources_do_not_come_gives_up(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    open_for_moves(&pair, &BY_ORDER, MANUAL(1000));
    node_hand_over(&pair.a, &pair.b, space_of(&pair, 0));
    pair.a.gather_status = STATUS_UNAVAILABLE;
    order_split(&pair);
    MoveEvent event = wait_for_move(&pair.a);
    assert_int_equal(event.stage, MOVE_FAILED);
    assert_non_null(strstr(event.message, "the other node does not answer"));
    expect_events(&pair.a, "gather 0-0; ");
    assert_int_equal(container_at(&pair, &pair.a)->range_next, 1); /* nothing was begun */
    assert_int_equal(put_item(&pair.b.t, pair.database, pair.container, 1, 100, 10), STATUS_OK);
}

static void a_move_whose_targets_are_elsewhere_is_undone(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    open_for_moves(&pair, &BY_ORDER, MANUAL(1000));
    pair.a.takes_new = false;
    order_split(&pair);
    MoveEvent event = wait_for_move(&pair.a);
    assert_int_equal(event.stage, MOVE_FAILED);
    assert_non_null(strstr(event.message, "is served by another node"));
    const Container *container = container_at(&pair, &pair.a);
    assert_int_equal(container->pending_count, 0);
    assert_int_equal(container->range_count, 1);
    assert_int_equal(put_item(&pair.a.t, pair.database, pair.container, 1, 100, 10), STATUS_OK);
    for (int ms = 0; count_garbage(pair.a.t.store) > 0 && ms < PATIENCE_MS; ms++)
        (void)usleep(1000);
    assert_int_equal(count_garbage(pair.a.t.store), 0);
}

/* A clock that has the commit of the map fail, whose outcome nobody knows then. */
typedef struct FailingClock {
    Clock clock;
    TestNode *node;
    _Atomic bool has_failed;
} FailingClock;

static uint64_t failing_wall_us(const Clock *clock)
{
    FailingClock *own = CONTAINER_OF(UNCONST(Clock, clock), FailingClock, clock);
    char thread[16] = "";
    MoveEvent event;
    (void)pthread_getname_np(pthread_self(), thread, sizeof(thread));
    bool is_switching = strcmp(thread, "orrery-catalog") == 0 &&
                        catalog_moves(own->node->t.catalog, &event, 1) == 1 &&
                        event.stage == MOVE_SWITCHING;
    if (is_switching && !atomic_exchange(&own->has_failed, true))
        memory_store_fail_commits(own->node->t.store, 1, STATUS_TIMEOUT);
    return clock_wall_us(&own->node->t.clock.clock);
}

static uint64_t failing_monotonic_us(const Clock *clock)
{
    FailingClock *own = CONTAINER_OF(UNCONST(Clock, clock), FailingClock, clock);
    return clock_monotonic_us(&own->node->t.clock.clock);
}

/* The sources take nothing until it is known whether they are still in the map. */
static void a_move_whose_end_is_unknown_keeps_nothing_that_could_be_lost(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    FailingClock clock = {.clock = {failing_wall_us, failing_monotonic_us}, .node = &pair.a};
    atomic_init(&clock.has_failed, false);
    node_init(&pair.a, NULL, true, &NODE_RULES);
    pair.a.t.moves = &BY_ORDER;
    pair.a.t.catalog_clock = &clock.clock;
    assert_ok(test_try_open(&pair.a.t, err));
    node_open(&pair.b, pair.a.t.store, false, &NODE_RULES);
    fill_pair(&pair, MANUAL(1000));
    AUTO(container_unref) Container *kept = container_ref(container_at(&pair, &pair.a));
    PartitionHandle *source = container_handle_at(kept, 0);
    order_split(&pair);
    for (int ms = 0; handle_is_served(source) && ms < PATIENCE_MS; ms++)
        (void)usleep(1000);
    assert_true(atomic_load(&clock.has_failed));
    assert_int_equal(write_item(source, "{'id':'lost'}"), STATUS_NOT_OWNER);
    while (catalog_is_leader(pair.a.t.catalog))
        (void)usleep(100);
    assert_ok(catalog_lead(pair.a.t.catalog, err));
    MoveEvent event = wait_for_move(&pair.a);
    assert_int_equal(event.stage, MOVE_FAILED);
    const Container *container = container_at(&pair, &pair.a);
    assert_int_equal(container->range_count, 1);
    assert_int_equal(container->pending_count, 0);
    assert_true(handle_is_served(container_handle_at(container, 0)));
    assert_int_equal(put_item(&pair.a.t, pair.database, pair.container, 1, 100, 10), STATUS_OK);
    for (int key = 2; key < KEYS; key++)
        assert_int_equal(get_item(container, key), key + 1);
    for (int ms = 0; count_garbage(pair.a.t.store) > 0 && ms < PATIENCE_MS; ms++)
        (void)usleep(1000);
    node_refresh(&pair.b);
    expect_same(&pair);
}

/* A node that gives away what is asked for while a map is about to change; nothing was stopped. */
static bool is_local_until_fenced(void *ctx, StoreSpace space)
{
    TestNode *node = ctx;
    MoveEvent event;
    bool is_switching =
        catalog_moves(node->t.catalog, &event, 1) == 1 && event.stage == MOVE_SWITCHING;
    (void)pthread_mutex_lock(&node->lock);
    if (is_switching)
        node_remove(node, space);
    (void)pthread_mutex_unlock(&node->lock);
    return node_is_local(node, space);
}

/* Its next owner would not know of what has become of it. */
static void a_move_whose_source_is_about_to_go_does_not_end(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    open_for_moves(&pair, &BY_ORDER, MANUAL(1000));
    StoreSpace space = space_of(&pair, 0);
    pair.a.placement.is_local = is_local_until_fenced;
    order_split(&pair);
    MoveEvent event = wait_for_move(&pair.a);
    assert_int_equal(event.stage, MOVE_FAILED);
    assert_non_null(strstr(event.message, "is served by another node"));
    assert_int_equal(container_at(&pair, &pair.a)->range_count, 1);
    for (int ms = 0; count_garbage(pair.a.t.store) > 0 && ms < PATIENCE_MS; ms++)
        (void)usleep(1000);
    node_refresh(&pair.b);
    node_hand_over(&pair.a, &pair.b, space);
    for (int key = 0; key < KEYS; key++)
        assert_int_equal(get_item(container_at(&pair, &pair.b), key), key + 1);
}

/* What the node that serves them would say of its partitions, so long ago, to the other one. */
static void tell(TestNode *from, TestNode *to, uint64_t age_us)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    SpaceUsage *said = NULL;
    size_t count = 0;
    catalog_list_usage(from->t.catalog, &arena, &said, &count);
    catalog_note_usage(to->t.catalog, said, count, age_us);
}

static bool is_due(TestNode *node, const MoveRules *rules, MoveOrder *order)
{
    MovePolicy policy = {.rules = *rules, .provision = NODE_RULES};
    MoveBackoffs backoffs = {0};
    MoveReason reason;
    return move_policy_find_due(&policy, &backoffs, test_read(&node->t),
                                clock_monotonic_us(&node->t.clock.clock), order, &reason);
}

static size_t planned(Pair *pair, TestNode *node)
{
    MovePolicy policy = {.rules = {.partition_bytes_max = 1 << 20}, .provision = NODE_RULES};
    MoveOrder *orders = NULL;
    return move_policy_plan_merges(&policy, test_read(&node->t), container_at(pair, node),
                                   clock_monotonic_us(&node->t.clock.clock), &node->t.arena,
                                   &orders);
}

static void provision(Pair *pair, uint32_t ru)
{
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_REPLACE_OFFER);
    c.change.offer = container_at(pair, &pair->a)->offer;
    c.change.provision = MANUAL(ru);
    assert_int_equal(test_run(pair->a.t.catalog, &c), STATUS_OK);
    node_refresh(&pair->b);
}

/* What looks empty, because nobody has said what it holds, is not merged; what is small is,
 * wherever it is. */
static void partitions_that_are_elsewhere_are_merged_when_they_are_known_to_be_small(void **state)
{
    (void)state;
    static const MoveRules merging = {.merges = true, .partition_bytes_max = 1 << 20};
    MoveOrder order;
    AUTO(pair_close) Pair pair;
    open_for_moves(&pair, &BY_ORDER, MANUAL(2000));
    provision(&pair, 1000);
    assert_true(is_due(&pair.a, &merging, &order));
    assert_false(is_due(&pair.b, &merging, &order));
    assert_int_equal(planned(&pair, &pair.b), 0);
    node_hand_over(&pair.a, &pair.b, space_of(&pair, 1));
    /* What it has held here is not what it holds now. */
    assert_false(is_due(&pair.a, &merging, &order));
    assert_int_equal(planned(&pair, &pair.a), 0);
    tell(&pair.b, &pair.a, USAGE_FRESH_US);
    assert_true(is_due(&pair.a, &merging, &order));
    assert_int_equal(planned(&pair, &pair.a), 1);
    assert_int_equal(order.range_first, container_at(&pair, &pair.a)->ranges[0].id);
    assert_int_equal(order.range_last, container_at(&pair, &pair.a)->ranges[1].id);
    fake_clock_advance(&pair.a.t.clock, 1); /* too old */
    assert_false(is_due(&pair.a, &merging, &order));
    assert_int_equal(planned(&pair, &pair.a), 0);
    tell(&pair.b, &pair.a, USAGE_FRESH_US + 1);
    assert_false(is_due(&pair.a, &merging, &order));
    tell(&pair.b, &pair.a, 0);
    assert_true(is_due(&pair.a, &merging, &order));
    /* Too large, or nothing that may be believed. */
    SpaceUsage said = {.space = space_of(&pair, 1), .held = {.bytes = 1 << 20}};
    catalog_note_usage(pair.a.t.catalog, &said, 1, 0);
    assert_true(is_due(&pair.a, &merging, &order)); /* more than it ever was */
    said.held.bytes_ever = SPACE_USAGE_BYTES_MAX + 1;
    catalog_note_usage(pair.a.t.catalog, &said, 1, 0);
    assert_true(is_due(&pair.a, &merging, &order));
    said.held.bytes_ever = said.held.bytes;
    catalog_note_usage(pair.a.t.catalog, &said, 1, 0);
    assert_false(is_due(&pair.a, &merging, &order));
    assert_int_equal(planned(&pair, &pair.a), 0);
}

static void a_partition_that_is_elsewhere_is_split_for_what_it_holds(void **state)
{
    (void)state;
    static const MoveRules splitting = {.splits = true, .partition_bytes_max = 100};
    MoveOrder order;
    AUTO(pair_close) Pair pair;
    open_for_moves(&pair, &BY_ORDER, MANUAL(1000));
    StoreSpace space = space_of(&pair, 0);
    assert_true(is_due(&pair.a, &splitting, &order));
    node_hand_over(&pair.a, &pair.b, space);
    assert_false(is_due(&pair.a, &splitting, &order));
    tell(&pair.b, &pair.a, 0);
    assert_true(is_due(&pair.a, &splitting, &order));
    assert_int_equal(order.parts, 2);
    /* It comes here for the move, and the parts begin without anything that was said. */
    assert_ok(catalog_stop_serving(pair.b.t.catalog, space, err));
    order_split(&pair);
    assert_int_equal(wait_for_move(&pair.a).stage, MOVE_DONE);
    node_refresh(&pair.b);
    SpaceUsage late = {.space = space, .held = {.bytes = 1 << 20, .bytes_ever = 1 << 20}};
    catalog_note_usage(pair.b.t.catalog, &late, 1, 0);
    for (size_t i = 0; i < 2; i++) {
        KnownUsage known =
            handle_known_usage(handle_at(&pair, &pair.b, i), clock_monotonic_us(clock_real()));
        assert_false(known.is_fresh);
        assert_int_equal(known.held.bytes_ever, 0);
    }
}

static void for_throughput_the_largest_partition_is_split_wherever_it_is(void **state)
{
    (void)state;
    static const MoveRules splitting = {.splits = true};
    MoveOrder order;
    AUTO(pair_close) Pair pair;
    open_for_moves(&pair, &BY_ORDER, MANUAL(2000));
    uint64_t bytes[2];
    for (size_t i = 0; i < 2; i++)
        bytes[i] = handle_usage(handle_at(&pair, &pair.a, i)).bytes;
    assert_int_not_equal(bytes[0], bytes[1]);
    size_t largest = bytes[1] > bytes[0];
    provision(&pair, 3000);
    node_hand_over(&pair.a, &pair.b, space_of(&pair, largest));
    assert_true(is_due(&pair.a, &splitting, &order));
    assert_int_equal(order.range_first, container_at(&pair, &pair.a)->ranges[1 - largest].id);
    tell(&pair.b, &pair.a, 0);
    assert_true(is_due(&pair.a, &splitting, &order));
    assert_int_equal(order.range_first, container_at(&pair, &pair.a)->ranges[largest].id);
}

/* Else it would come here at each attempt, in vain. */
static void a_partition_of_one_key_stays_where_it_is(void **state)
{
    (void)state;
    static const MoveRules small = {.partition_bytes_max = 100};
    AUTO(pair_close) Pair pair;
    node_init(&pair.a, NULL, true, &NODE_RULES);
    pair.a.t.moves = &small;
    assert_ok(test_try_open(&pair.a.t, err));
    node_init(&pair.b, pair.a.t.store, false, &NODE_RULES);
    pair.b.t.moves = &small;
    assert_ok(test_try_open(&pair.b.t, err));
    pair.database = make_database(&pair.a.t, "d", NONE);
    pair.container = make_container(&pair.a.t, pair.database, "c", MANUAL(1000));
    assert_int_equal(put_item(&pair.a.t, pair.database, pair.container, 7, 1, 200), STATUS_OK);
    node_refresh(&pair.b);
    node_hand_over(&pair.a, &pair.b, space_of(&pair, 0));
    tell(&pair.b, &pair.a, 0);
    (void)node_events(&pair.a);
    order_split(&pair);
    MoveEvent event = wait_for_move(&pair.a);
    assert_int_equal(event.stage, MOVE_FAILED);
    assert_non_null(strstr(event.message, "holds a single logical partition"));
    expect_events(&pair.a, "");
    /* With another key it can be cut. */
    assert_int_equal(put_item(&pair.b.t, pair.database, pair.container, 8, 1, 200), STATUS_OK);
    tell(&pair.b, &pair.a, 0);
    assert_ok(catalog_stop_serving(pair.b.t.catalog, space_of(&pair, 0), err));
    order_split(&pair);
    assert_int_equal(wait_for_move(&pair.a).stage, MOVE_DONE);
}

static OfferUsage usage_at(Pair *pair, TestNode *node)
{
    const Snapshot *snapshot = test_read(&node->t);
    const Offer *offer = snapshot_offer(snapshot, container_at(pair, node)->offer);
    return catalog_offer_usage(snapshot, offer, clock_monotonic_us(&node->t.clock.clock));
}

static void offers_tell_the_same_on_every_node(void **state)
{
    (void)state;
    AUTO(pair_close) Pair pair;
    open_for_moves(&pair, &BY_ORDER, (Provision){PROVISION_AUTOSCALE, 2000});
    for (int key = KEYS; key < 2 * KEYS; key++)
        assert_int_equal(put_item(&pair.a.t, pair.database, pair.container, key, 1, 2000),
                         STATUS_OK);
    OfferUsage whole = usage_at(&pair, &pair.a);
    assert_true(whole.storage_kb > 80);
    assert_int_equal(usage_at(&pair, &pair.b).storage_kb, 0);
    node_hand_over(&pair.a, &pair.b, space_of(&pair, 1));
    /* Nothing is forgotten before the new owner has said something, nor when it is silent. */
    assert_int_equal(usage_at(&pair, &pair.a).storage_kb, whole.storage_kb);
    handle_charge(handle_at(&pair, &pair.b, 1), (BudgetClass){0}, 12300,
                  clock_monotonic_us(&pair.b.t.clock.clock));
    tell(&pair.a, &pair.b, 0);
    tell(&pair.b, &pair.a, 0);
    for (size_t i = 0; i < 2; i++) {
        OfferUsage usage = usage_at(&pair, i == 0 ? &pair.a : &pair.b);
        assert_int_equal(usage.storage_kb, whole.storage_kb);
        assert_int_equal(usage.ru, 2 * 123);
    }
    fake_clock_advance(&pair.a.t.clock, 1000 * USAGE_FRESH_US);
    assert_int_equal(usage_at(&pair, &pair.a).storage_kb, whole.storage_kb);
    assert_int_equal(usage_at(&pair, &pair.a).ru, 0); /* what was spent is long past */
    /* A late answer does not lower it. */
    SpaceUsage late = {.space = space_of(&pair, 1), .held = {.bytes = 1, .bytes_ever = 2}};
    catalog_note_usage(pair.a.t.catalog, &late, 1, 0);
    assert_int_equal(usage_at(&pair, &pair.a).storage_kb, whole.storage_kb);
    /* The leader decides what an offer may be lowered to, and notes it. */
    provision(&pair, 1000);
    const Snapshot *snapshot = test_read(&pair.a.t);
    const Offer *offer = snapshot_offer(snapshot, container_at(&pair, &pair.a)->offer);
    assert_int_equal(offer->storage_kb_ever, whole.storage_kb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spaces_are_placed_before_the_change_that_makes_them),
        cmocka_unit_test(a_change_whose_spaces_nobody_takes_is_refused_alone),
        cmocka_unit_test(a_group_is_not_committed_by_a_node_that_leads_no_more),
        cmocka_unit_test(answers_wait_until_all_nodes_have_published),
        cmocka_unit_test(what_is_not_published_everywhere_is_not_answered_as_done),
        cmocka_unit_test(closing_waits_for_what_is_not_published_everywhere),
        cmocka_unit_test(a_group_that_fails_is_not_published),
        cmocka_unit_test(the_placement_hears_of_spaces_that_were_emptied),
        cmocka_unit_test(states_are_restored_where_all_partitions_are),
        cmocka_unit_test(a_new_leader_finishes_a_restore_if_all_partitions_are_here),
        cmocka_unit_test(partitions_forget_states_that_were_dropped_while_they_were_elsewhere),
        cmocka_unit_test(the_sources_of_a_move_are_brought_here_first),
        cmocka_unit_test(a_move_whose_sources_do_not_come_gives_up),
        cmocka_unit_test(a_move_whose_targets_are_elsewhere_is_undone),
        cmocka_unit_test(a_move_whose_end_is_unknown_keeps_nothing_that_could_be_lost),
        cmocka_unit_test(a_move_whose_source_is_about_to_go_does_not_end),
        cmocka_unit_test(partitions_that_are_elsewhere_are_merged_when_they_are_known_to_be_small),
        cmocka_unit_test(a_partition_that_is_elsewhere_is_split_for_what_it_holds),
        cmocka_unit_test(for_throughput_the_largest_partition_is_split_wherever_it_is),
        cmocka_unit_test(a_partition_of_one_key_stays_where_it_is),
        cmocka_unit_test(offers_tell_the_same_on_every_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
