/* offer_budgets_test.c - the throughput of offers reaches the budgets of partitions (I8, I9, I14).
 */
#include "catalog/partition_handle_int.h"
#include "catalog/testing_int.h"

#define NONE      MANUAL(0)
#define RU(units) ((uint64_t)(units)*100)

static const ProvisionRules RULES = {
    .partition_ru = 1000, .fallback = {PROVISION_MANUAL, 500}, .is_enforced = true};

static const Container *container_of(TestCatalog *t, uint32_t database, const char *id)
{
    const Container *found = snapshot_container_by_id(test_read(t), database, slice_from_cstr(id));
    assert_non_null(found);
    return found;
}

static uint64_t share_of(TestCatalog *t, uint32_t database, const char *id)
{
    const Container *container = container_of(t, database, id);
    for (size_t i = 1; i < container->range_count; i++)
        assert_int_equal(handle_share(container_handle_at(container, i)),
                         handle_share(container_handle_at(container, 0)));
    return handle_share(container_handle_at(container, 0));
}

static void replace_offer(TestCatalog *t, uint32_t offer, Provision provision)
{
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_REPLACE_OFFER);
    c.change.offer = offer;
    c.change.provision = provision;
    if (test_run(t->catalog, &c) != STATUS_OK)
        fail_msg("%s", c.change.error.message);
}

static void throughput_is_divided_evenly_over_partitions(void **state)
{
    (void)state;
    static const struct {
        Provision provision;
        size_t partitions;
        uint64_t share;
    } rows[] = {
        {{PROVISION_MANUAL, 0}, 1, RU(500)},        {{PROVISION_MANUAL, 400}, 1, RU(400)},
        {{PROVISION_MANUAL, 1000}, 1, RU(1000)},    {{PROVISION_MANUAL, 1100}, 2, RU(550)},
        {{PROVISION_MANUAL, 40000}, 40, RU(1000)},  {{PROVISION_AUTOSCALE, 4000}, 4, RU(1000)},
        {{PROVISION_AUTOSCALE, 1000}, 1, RU(1000)},
    };
    AUTO(test_close) TestCatalog t;
    test_open_with(&t, TEST_MEMORY, &RULES);
    uint32_t database = make_database(&t, "db", NONE);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const char *id = arena_format(&t.arena, "c%zu", i).ptr;
        make_container(&t, database, id, rows[i].provision);
        assert_int_equal(container_of(&t, database, id)->range_count, rows[i].partitions);
        assert_int_equal(share_of(&t, database, id), rows[i].share);
    }
    test_reopen(&t);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const char *id = arena_format(&t.arena, "c%zu", i).ptr;
        assert_int_equal(share_of(&t, database, id), rows[i].share);
    }
}

static void a_replaced_offer_changes_the_budgets_that_there_are(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open_with(&t, TEST_MEMORY, &RULES);
    uint32_t database = make_database(&t, "db", NONE);
    make_container(&t, database, "c", MANUAL(2000));
    uint32_t offer = container_of(&t, database, "c")->offer;
    Budget *budget = container_handle_at(container_of(&t, database, "c"), 1)->budget;
    static const Provision rows[] = {
        {PROVISION_MANUAL, 8000}, {PROVISION_AUTOSCALE, 4000}, {PROVISION_MANUAL, 400}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        replace_offer(&t, offer, rows[i]);
        assert_ptr_equal(container_handle_at(container_of(&t, database, "c"), 1)->budget, budget);
        assert_int_equal(share_of(&t, database, "c"), RU(rows[i].ru) / 2);
    }
    test_reopen(&t);
    assert_int_equal(share_of(&t, database, "c"), RU(200));
}

static void a_replaced_container_keeps_its_budgets_and_histories(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open_with(&t, TEST_MEMORY, &RULES);
    uint32_t database = make_database(&t, "db", NONE);
    uint32_t number = make_container(&t, database, "c", MANUAL(2000));
    AUTO(budget_unref)
    Budget *budget = budget_ref(container_handle_at(container_of(&t, database, "c"), 0)->budget);
    const History *history = container_handle_at(container_of(&t, database, "c"), 0)->history;
    uint64_t now_us = clock_monotonic_us(&t.clock.clock);
    Charge left = budget_credit(budget, now_us) - RU(7);
    budget_charge(budget, (BudgetClass){0}, RU(7), now_us);
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_REPLACE_CONTAINER);
    c.change.database = database;
    c.change.container = number;
    c.change.definition = row_definition(&t.arena, "c", ",'defaultTtl':7");
    assert_int_equal(test_run(t.catalog, &c), STATUS_OK);
    const Container *container = container_of(&t, database, "c");
    assert_ptr_equal(container_handle_at(container, 0)->budget, budget);
    assert_ptr_equal(container_handle_at(container, 0)->history, history);
    assert_ptr_not_equal(container_handle_at(container, 1)->history, history);
    assert_int_equal(budget_credit(container_handle_at(container, 0)->budget, now_us), left);
    assert_int_equal(share_of(&t, database, "c"), RU(1000));
}

static void containers_of_a_shared_database_spend_the_same_budgets(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open_with(&t, TEST_MEMORY, &RULES);
    uint32_t database = make_database(&t, "db", MANUAL(3000));
    make_container(&t, database, "a", NONE);
    make_container(&t, database, "own", MANUAL(400));
    uint32_t offer = snapshot_database(test_read(&t), database)->offer;
    replace_offer(&t, offer, MANUAL(6000));
    /* What the database has stays: partitions are not split yet. */
    make_container(&t, database, "b", NONE);
    for (int turn = 0; turn < 2; turn++) {
        const Container *a = container_of(&t, database, "a");
        const Container *b = container_of(&t, database, "b");
        assert_int_equal(a->range_count, 3);
        assert_int_equal(b->range_count, 3);
        for (size_t i = 0; i < 3; i++) {
            assert_ptr_equal(container_handle_at(a, i)->budget, container_handle_at(b, i)->budget);
            assert_ptr_not_equal(container_handle_at(a, i)->budget,
                                 container_handle_at(a, (i + 1) % 3)->budget);
        }
        assert_int_equal(share_of(&t, database, "a"), RU(2000));
        assert_int_equal(share_of(&t, database, "own"), RU(400));
        test_reopen(&t);
    }
}

static void autoscale_shows_what_its_busiest_partition_asks_for(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open_with(&t, TEST_MEMORY, &RULES);
    uint32_t database = make_database(&t, "db", NONE);
    make_container(&t, database, "c", AUTOSCALE(4000));
    const Container *container = container_of(&t, database, "c");
    const Offer *offer = snapshot_offer(test_read(&t), container->offer);
    static const struct {
        uint64_t used;
        int64_t shown;
    } rows[] = {{0, 400}, {50, 400}, {300, 1200}, {999, 3996}, {5000, 4000}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        fake_clock_advance(&t.clock, 11000000);
        uint64_t now_us = clock_monotonic_us(&t.clock.clock);
        budget_charge(container_handle_at(container, 2)->budget, (BudgetClass){0}, RU(rows[i].used),
                      now_us);
        budget_charge(container_handle_at(container, 3)->budget, (BudgetClass){0},
                      RU(rows[i].used) / 2, now_us);
        OfferUsage usage = catalog_offer_usage(test_read(&t), offer, now_us + 5000000);
        assert_int_equal(provision_current_ru(&offer->provision, usage.ru), rows[i].shown);
    }
}

static void buckets_are_kept(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open_with(&t, TEST_MEMORY, &RULES);
    uint32_t database = make_database(&t, "db", NONE);
    make_container(&t, database, "c", MANUAL(1000));
    uint32_t offer = container_of(&t, database, "c")->offer;
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_REPLACE_OFFER);
    c.change.offer = offer;
    c.change.provision = MANUAL(1000);
    c.change.has_buckets = true;
    c.change.buckets = (OfferBuckets){.percent = {0, 25, 0, 0, 100}, .chosen = 2};
    assert_int_equal(test_run(t.catalog, &c), STATUS_OK);
    replace_offer(&t, offer, MANUAL(2000)); /* says nothing of buckets */
    test_reopen(&t);
    const OfferBuckets *buckets = &snapshot_offer(test_read(&t), offer)->buckets;
    assert_memory_equal(buckets, &c.change.buckets, sizeof(*buckets));
    Budget *budget = container_handle_at(container_of(&t, database, "c"), 0)->budget;
    uint64_t now_us = clock_monotonic_us(&t.clock.clock);
    uint32_t wait_ms = 0;
    budget_charge(budget, (BudgetClass){0}, RU(600), now_us); /* of 2,000 all, of bucket 2 500 */
    assert_int_equal(budget_admit(budget, (BudgetClass){0}, 0, now_us, &wait_ms),
                     BUDGET_BUCKET_SPENT);
    assert_int_equal(budget_admit(budget, (BudgetClass){.bucket = 5}, 0, now_us, &wait_ms),
                     BUDGET_ADMITTED);
}

/* ---- storage ---- */

static void fill(TestCatalog *t, uint32_t database, const char *id, int count)
{
    char text[1 << 16];
    memset(text, 'x', sizeof(text));
    for (int i = 0; i < count; i++) {
        Slice body =
            arena_format(&t->arena, "{'id':'%d','text':'%.*s'}", i, (int)sizeof(text) - 1, text);
        make_item(handle_local(container_handle_at(container_of(t, database, id), 0)), body.ptr);
    }
}

static void drain(TestCatalog *t, uint32_t database, const char *id, int count)
{
    for (int i = 0; i < count; i++) {
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, arena_format(&t->arena, "{'id':'%d'}", i).ptr);
        w.item.op = ITEM_DELETE;
        assert_ok(partition_submit(
            handle_local(container_handle_at(container_of(t, database, id), 0)), &w.write, err));
        test_write_wait(&w);
        assert_int_equal(w.item.status, STATUS_OK);
    }
}

static OfferUsage usage_of(TestCatalog *t, uint32_t number)
{
    const Offer *offer = snapshot_offer(test_read(t), number);
    return catalog_offer_usage(test_read(t), offer, clock_monotonic_us(&t->clock.clock));
}

static void the_most_that_was_ever_stored_is_kept(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open_with(&t, TEST_MEMORY, &RULES);
    uint32_t database = make_database(&t, "db", NONE);
    uint32_t number = make_container(&t, database, "c", MANUAL(400));
    uint32_t offer = container_of(&t, database, "c")->offer;
    Slice etag = arena_copy(&t.arena, snapshot_offer(test_read(&t), offer)->info.etag);
    assert_int_equal(usage_of(&t, offer).storage_kb, 0);
    fill(&t, database, "c", 10);
    uint64_t most = usage_of(&t, offer).storage_kb;
    assert_in_range(most, 640, 700);
    drain(&t, database, "c", 10);
    assert_int_equal(usage_of(&t, offer).storage_kb, most);
    test_reopen(&t);
    assert_int_equal(usage_of(&t, offer).storage_kb, most);
    move_ranges(&t, database, number, 0, 0, "20"); /* and its partition goes */
    assert_int_equal(usage_of(&t, offer).storage_kb, most);
    test_reopen(&t);
    assert_int_equal(usage_of(&t, offer).storage_kb, most);
    const Offer *noted = snapshot_offer(test_read(&t), offer);
    assert_slice(noted->info.etag, etag); /* it changes with use, and is no new version */
    assert_int_equal(noted->storage_kb_ever, most);
    assert_int_equal(
        catalog_provision_history(test_read(&t), noted, &(OfferUsage){0, most}).storage_kb, most);
}

static void what_a_dropped_container_has_stored_counts_for_what_it_shared(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open_with(&t, TEST_MEMORY, &RULES);
    uint32_t database = make_database(&t, "db", MANUAL(400));
    uint32_t offer = snapshot_database(test_read(&t), database)->offer;
    make_container(&t, database, "a", NONE);
    uint32_t b = make_container(&t, database, "b", NONE);
    make_container(&t, database, "own", MANUAL(400));
    fill(&t, database, "a", 2);
    fill(&t, database, "b", 3);
    fill(&t, database, "own", 4);
    assert_in_range(usage_of(&t, offer).storage_kb, 320, 360);
    assert_int_equal(delete_one(&t, CATALOG_DELETE_CONTAINER, database, b), STATUS_OK);
    assert_in_range(usage_of(&t, offer).storage_kb, 320, 360);
    test_reopen(&t);
    assert_in_range(usage_of(&t, offer).storage_kb, 320, 360);
}

static void a_serverless_account_provisions_nothing(void **state)
{
    (void)state;
    ProvisionRules serverless = RULES;
    serverless.is_serverless = true;
    AUTO(test_close) TestCatalog t;
    test_open_with(&t, TEST_MEMORY, &serverless);
    TestChange c;
    fill_database(&c, SLICE("no"), MANUAL(400));
    assert_int_equal(test_run(t.catalog, &c), STATUS_BAD_REQUEST);
    assert_non_null(strstr(c.change.error.message, "not supported for serverless accounts"));
    test_change_done(&c);
    uint32_t database = make_database(&t, "db", NONE);
    fill_container(&c, database, row_definition(&t.arena, "no", ""), AUTOSCALE(1000));
    assert_int_equal(test_run(t.catalog, &c), STATUS_BAD_REQUEST);
    assert_non_null(strstr(c.change.error.message, "not supported for serverless accounts"));
    test_change_done(&c);
    make_container(&t, database, "c", NONE);
    for (int turn = 0; turn < 2; turn++) {
        assert_null(snapshot_next_offer(test_read(&t), 0));
        assert_int_equal(container_of(&t, database, "c")->range_count, 1);
        assert_int_equal(share_of(&t, database, "c"), RU(5000));
        test_reopen(&t);
    }
}

static void the_kind_of_account_is_decided_once(void **state)
{
    (void)state;
    ProvisionRules kinds[] = {RULES, RULES};
    kinds[1].is_serverless = true;
    for (size_t i = 0; i < 2; i++) {
        AUTO(test_close) TestCatalog t;
        test_open_with(&t, TEST_MEMORY, &kinds[i]);
        test_close_catalog(&t);
        t.rules = &kinds[1 - i];
        Error refusal;
        assert_int_equal(test_try_open(&t, &refusal), STATUS_BAD_REQUEST);
        assert_non_null(
            strstr(refusal.message, i == 0 ? "without --serverless" : "with --serverless"));
        t.rules = NULL; /* to look at it, it is the same */
        assert_ok(test_try_open(&t, err));
        test_close_catalog(&t);
        t.rules = &kinds[i];
        assert_ok(test_try_open(&t, err));
    }
}

/* The ranges of a container as they are now, with what each may spend. */
static void expect_shares(TestCatalog *t, uint32_t database, size_t count, uint64_t share)
{
    assert_int_equal(container_of(t, database, "c")->range_count, count);
    assert_int_equal(share_of(t, database, "c"), share);
}

static void throughput_is_divided_anew_over_a_changed_map(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open_with(&t, TEST_MEMORY, &RULES);
    uint32_t database = make_database(&t, "db", NONE);
    uint32_t number = make_container(&t, database, "c", MANUAL(2000));
    Budget *kept = container_handle_at(container_of(&t, database, "c"), 1)->budget;
    begin_move(&t, database, number, 0, 0, "05 10");
    expect_shares(&t, database, 2, RU(1000)); /* pending ranges get nothing */
    finish_move(&t, CATALOG_END_MOVE, database, number);
    expect_shares(&t, database, 4, RU(500));
    /* What an untouched range has spent is not forgotten. */
    assert_ptr_equal(container_handle_at(container_of(&t, database, "c"), 3)->budget, kept);
    replace_offer(&t, container_of(&t, database, "c")->offer, MANUAL(4000));
    expect_shares(&t, database, 4, RU(1000));
    move_ranges(&t, database, number, 2, 4, "");
    expect_shares(&t, database, 2, RU(2000));
    begin_move(&t, database, number, 1, 1, "30");
    finish_move(&t, CATALOG_UNDO_MOVE, database, number);
    expect_shares(&t, database, 2, RU(2000));
    test_reopen(&t);
    expect_shares(&t, database, 2, RU(2000));
}

/* An offer that is replaced in the same group as the map. */
static void an_offer_and_a_map_may_change_at_once(void **state)
{
    (void)state;
    for (int offer_first = 0; offer_first < 2; offer_first++) {
        AUTO(test_close) TestCatalog t;
        test_open_with(&t, TEST_MEMORY, &RULES);
        uint32_t database = make_database(&t, "db", NONE);
        uint32_t number = make_container(&t, database, "c", MANUAL(1000));
        begin_move(&t, database, number, 0, 0, "20");
        TestChange group[2];
        TestChange *offer = &group[1 - offer_first];
        fill_move(&group[offer_first], CATALOG_END_MOVE, container_of(&t, database, "c"));
        test_change_init(offer, CATALOG_REPLACE_OFFER);
        offer->change.offer = container_of(&t, database, "c")->offer;
        offer->change.provision = MANUAL(3000);
        run_as_group(&t, group, 2);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(group[i].change.status, STATUS_OK);
            test_change_done(&group[i]);
        }
        expect_shares(&t, database, 2, RU(1500));
    }
}

/* More ranges than budgets, or fewer: each budget serves as many as any other, give or take one. */
static void ranges_of_a_shared_database_are_dealt_out_evenly(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open_with(&t, TEST_MEMORY, &RULES);
    uint32_t number = make_database(&t, "db", MANUAL(3000));
    uint32_t container = make_container(&t, number, "c", NONE);
    static const struct {
        uint32_t first, last;
        const char *cuts;
        size_t ranges;
    } rows[] = {
        {0, 0, "04 08 0C 10", 7},
        {3, 1, "", 2},
        {8, 8, "", 0},
        {2, 2, "30 34 38", 5},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (rows[i].ranges == 0) {
            test_reopen(&t);
            continue;
        }
        move_ranges(&t, number, container, rows[i].first, rows[i].last, rows[i].cuts);
        const Container *now = container_of(&t, number, "c");
        const Database *database = snapshot_database(test_read(&t), number);
        assert_int_equal(now->range_count, rows[i].ranges);
        assert_int_equal(database->partitions, 3);
        for (size_t j = 0; j < now->range_count; j++)
            assert_ptr_equal(container_handle_at(now, j)->budget, database->budgets[j % 3]);
        assert_int_equal(share_of(&t, number, "c"), RU(1000));
    }
}

static void new_ranges_of_a_serverless_account_have_what_all_have(void **state)
{
    (void)state;
    static const ProvisionRules serverless = {
        .partition_ru = 1000, .is_serverless = true, .is_enforced = true};
    AUTO(test_close) TestCatalog t;
    test_open_with(&t, TEST_MEMORY, &serverless);
    uint32_t database = make_database(&t, "db", NONE);
    uint32_t number = make_container(&t, database, "c", NONE);
    move_ranges(&t, database, number, 0, 0, "20");
    expect_shares(&t, database, 2, RU(PROVISION_SERVERLESS_RU));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(throughput_is_divided_evenly_over_partitions),
        cmocka_unit_test(a_replaced_offer_changes_the_budgets_that_there_are),
        cmocka_unit_test(a_replaced_container_keeps_its_budgets_and_histories),
        cmocka_unit_test(containers_of_a_shared_database_spend_the_same_budgets),
        cmocka_unit_test(autoscale_shows_what_its_busiest_partition_asks_for),
        cmocka_unit_test(buckets_are_kept),
        cmocka_unit_test(the_most_that_was_ever_stored_is_kept),
        cmocka_unit_test(what_a_dropped_container_has_stored_counts_for_what_it_shared),
        cmocka_unit_test(a_serverless_account_provisions_nothing),
        cmocka_unit_test(the_kind_of_account_is_decided_once),
        cmocka_unit_test(throughput_is_divided_anew_over_a_changed_map),
        cmocka_unit_test(an_offer_and_a_map_may_change_at_once),
        cmocka_unit_test(ranges_of_a_shared_database_are_dealt_out_evenly),
        cmocka_unit_test(new_ranges_of_a_serverless_account_have_what_all_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
