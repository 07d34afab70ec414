/* partition_handle_test.c - a handle leads to the partition that its range names, whichever version
 * of the container it was asked of. */
#include "catalog/testing_int.h"

static const ProvisionRules RULES = {
    .partition_ru = 1000, .fallback = {PROVISION_MANUAL, 3000}, .is_enforced = true};

static void a_handle_is_of_the_range_that_it_was_asked_for(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open_with(&t, TEST_MEMORY, &RULES);
    uint32_t database = make_database(&t, "db", MANUAL(0));
    uint32_t number = make_container(&t, database, "c", MANUAL(3000));
    begin_move(&t, database, number, 1, 1, "20");
    const Container *container = test_container(&t, database, number);
    assert_int_equal(container->range_count, 3);
    for (size_t i = 0; i < container->range_count; i++) {
        PartitionHandle *handle = container_handle(container, &container->ranges[i]);
        assert_ptr_equal(handle, container_handle_at(container, i));
        assert_ptr_equal(handle_range(handle), &container->ranges[i]);
    }
    assert_int_equal(container->pending_count, 2);
    for (size_t i = 0; i < container->pending_count; i++) {
        PartitionHandle *handle = container_handle(container, &container->pending[i]);
        assert_ptr_equal(handle_range(handle), &container->pending[i]);
        assert_ptr_not_equal(handle_local(handle), NULL);
    }
}

static void writes_through_a_handle_are_in_its_partition_alone(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open_with(&t, TEST_MEMORY, &RULES);
    uint32_t database = make_database(&t, "db", MANUAL(0));
    uint32_t number = make_container(&t, database, "c", MANUAL(3000));
    const Container *container = test_container(&t, database, number);
    PartitionHandle *handle = container_handle_at(container, 1);
    TestWrite w;
    test_write_init(&w, "{'id':'1'}");
    assert_ok(handle_submit(handle, &w.write, err));
    test_write_wait(&w);
    assert_int_equal(w.write.status, STATUS_OK);
    assert_true(handle_lsn(handle) == w.write.lsn);
    for (size_t i = 0; i < container->range_count; i++)
        assert_int_equal(handle_usage(container_handle_at(container, i)).items, i == 1);
    Item item;
    StoreValue value;
    StoreFound found = STORE_ABSENT;
    assert_ok(handle_get(handle, container->schema, &w.item.epk, SLICE("1"), STORE_READ_ANY, &item,
                         &value, &found, err));
    assert_int_equal(found, STORE_FOUND);
    store_value_release(&value);
    test_write_done(&w);
}

static void charges_outlive_the_object_that_they_were_made_through(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open_with(&t, TEST_MEMORY, &RULES);
    uint32_t database = make_database(&t, "db", MANUAL(0));
    uint32_t number = make_container(&t, database, "c", MANUAL(3000));
    uint64_t now_us = clock_monotonic_us(&t.clock.clock);
    Container *before = container_ref(test_container(&t, database, number));
    handle_charge(container_handle_at(before, 2), (BudgetClass){0}, 50000, now_us);
    handle_charge(container_handle_at(before, 2), (BudgetClass){0}, 60000, now_us);
    begin_move(&t, database, number, 0, 0, "05");
    const Container *after = test_container(&t, database, number);
    assert_ptr_not_equal(after, before);
    container_unref(before);
    uint32_t wait_ms = 0;
    static const BudgetAnswer expected[] = {BUDGET_ADMITTED, BUDGET_ADMITTED, BUDGET_SPENT};
    for (size_t i = 0; i < ARRAY_COUNT(expected); i++)
        assert_int_equal(
            handle_admit(container_handle_at(after, i), (BudgetClass){0}, 0, now_us, &wait_ms),
            expected[i]);
}

static void budgets_are_shared_only_in_a_database_that_shares_its_throughput(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open_with(&t, TEST_MEMORY, &RULES);
    uint32_t database = make_database(&t, "db", MANUAL(3000));
    uint32_t numbers[] = {make_container(&t, database, "a", MANUAL(0)),
                          make_container(&t, database, "b", MANUAL(0)),
                          make_container(&t, database, "own", MANUAL(3000))};
    const Container *containers[ARRAY_COUNT(numbers)];
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        containers[i] = test_container(&t, database, numbers[i]);
    PartitionHandle *handle = container_handle_at(containers[0], 0);
    assert_true(handle_shares_budget(handle, container_handle_at(containers[1], 0)));
    assert_false(handle_shares_budget(handle, container_handle_at(containers[2], 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handle_is_of_the_range_that_it_was_asked_for),
        cmocka_unit_test(writes_through_a_handle_are_in_its_partition_alone),
        cmocka_unit_test(charges_outlive_the_object_that_they_were_made_through),
        cmocka_unit_test(budgets_are_shared_only_in_a_database_that_shares_its_throughput),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
