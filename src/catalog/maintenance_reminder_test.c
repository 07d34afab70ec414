/* maintenance_reminder_test.c - items that have expired or were purged are removed without a
 * request, and the reminder delays nothing. */
#include "catalog/testing_int.h"

#include <time.h>

#define NONE MANUAL(0)

enum { WAIT_MS = 10000 };

static uint32_t make_with(TestCatalog *t, uint32_t database, const char *id, const char *rest)
{
    AUTO(test_change_done) TestChange c;
    fill_container(&c, database, row_definition(&t->arena, id, rest), NONE);
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
    return c.change.result_container->info.number;
}

static void replace_with(TestCatalog *t, uint32_t database, uint32_t number, const char *id,
                         const char *rest)
{
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_REPLACE_CONTAINER);
    c.change.database = database;
    c.change.container = number;
    c.change.definition = row_definition(&t->arena, id, rest);
    if (test_run(t->catalog, &c) != STATUS_OK)
        fail_msg("%s", c.change.error.message);
}

static Partition *partition_of(TestCatalog *t, uint32_t database, uint32_t number)
{
    return handle_local(container_handle_at(snapshot_container(test_read(t), database, number), 0));
}

static void expect_items(Partition *partition, uint64_t expected)
{
    for (int ms = 0; partition_usage(partition).items != expected; ms++) {
        if (ms == WAIT_MS)
            fail_msg("%llu items are there, expected %llu",
                     (unsigned long long)partition_usage(partition).items,
                     (unsigned long long)expected);
        (void)usleep(1000);
    }
}

static void what_has_expired_is_taken_away(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    uint32_t mortal = make_with(t, database, "mortal", ",'defaultTtl':-1");
    uint32_t immortal = make_with(t, database, "immortal", "");
    Partition *first = partition_of(t, database, mortal);
    Partition *second = partition_of(t, database, immortal);
    make_item(first, "{'id':'1','ttl':10}");
    make_item(first, "{'id':'2','ttl':100}");
    make_item(first, "{'id':'3'}");
    make_item(second, "{'id':'1','ttl':10}");
    fake_clock_advance(&t->clock, UINT64_C(11000000));
    expect_items(first, 2);
    fake_clock_advance(&t->clock, UINT64_C(100000000));
    expect_items(first, 1);
    assert_int_equal(partition_usage(second).items, 1);
}

static void a_container_that_becomes_mortal_is_noticed(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    uint32_t number = make_with(t, database, "c", "");
    Partition *partition = partition_of(t, database, number);
    make_item(partition, "{'id':'1'}");
    make_item(partition, "{'id':'2','ttl':-1}");
    fake_clock_advance(&t->clock, UINT64_C(20000000));
    replace_with(t, database, number, "c", ",'defaultTtl':10");
    expect_items(partition, 1);
}

static void what_a_stop_interrupted_goes_on_after_the_start(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    uint32_t number = make_with(t, database, "c", ",'defaultTtl':10");
    make_item(partition_of(t, database, number), "{'id':'1'}");
    test_close_catalog(t);
    fake_clock_advance(&t->clock, UINT64_C(11000000));
    assert_ok(test_try_open(t, err));
    expect_items(partition_of(t, database, number), 0);
}

/* A reminder that sleeps holds no snapshot, or all that was dropped meanwhile would live on. */
static void a_dropped_container_is_let_go(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    uint32_t database = make_database(&t, "db", NONE);
    uint32_t number = make_with(&t, database, "c", "");
    (void)usleep(1500000); /* until it sleeps, having seen the container */
    Container *container = container_ref(snapshot_container(test_read(&t), database, number));
    assert_int_equal(delete_one(&t, CATALOG_DELETE_CONTAINER, database, number), STATUS_OK);
    (void)test_read(&t);
    for (int ms = 0; atomic_load(&container->refs) > 1; ms++) {
        assert_true(ms < 500); /* well before its next round */
        (void)usleep(1000);
    }
    container_unref(container);
}

static uint64_t now_ms(void)
{
    return clock_monotonic_us(clock_real()) / 1000;
}

static void closing_does_not_wait_for_the_next_round(void **state)
{
    (void)state;
    for (int is_mortal = 0; is_mortal < 2; is_mortal++) {
        AUTO(test_close) TestCatalog t;
        test_open(&t, TEST_MEMORY);
        uint32_t database = make_database(&t, "db", NONE);
        (void)make_with(&t, database, "c", is_mortal ? ",'defaultTtl':10" : "");
        uint64_t slowest = 0;
        for (int i = 0; i < 5; i++) {
            (void)usleep(20000);
            uint64_t begun = now_ms();
            test_close_catalog(&t);
            slowest = now_ms() - begun > slowest ? now_ms() - begun : slowest;
            assert_ok(test_try_open(&t, err));
        }
        if (slowest > 500)
            fail_msg("closing took %llu ms", (unsigned long long)slowest);
    }
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(what_has_expired_is_taken_away),
        ENGINE_TEST(a_container_that_becomes_mortal_is_noticed),
        ENGINE_TEST(what_a_stop_interrupted_goes_on_after_the_start),
    };
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(a_dropped_container_is_let_go),
        cmocka_unit_test(closing_does_not_wait_for_the_next_round),
    };
    int failed = cmocka_run_group_tests(plain, NULL, NULL);
    return failed + run_on_every_engine("reminder", tests, ARRAY_COUNT(tests));
}
