/* workload_test.c - the table of workloads. */
#include "load/workload.h"

#include "base/testing.h"

static void shares_are_100_together(void **state)
{
    (void)state;
    size_t count = 0;
    const Workload *workloads = workload_list(&count);
    assert_true(count > 10);
    for (size_t i = 0; i < count; i++) {
        uint32_t sum = 0;
        for (int n = 0; n < LOAD_ITEM_OPERATION_COUNT; n++)
            sum += workloads[i].percent[n];
        assert_int_equal(sum, 100);
        assert_ptr_equal(workload_find(slice_from_cstr(workloads[i].name)), &workloads[i]);
    }
    assert_null(workload_find(SLICE("reads")));
    assert_null(workload_find(SLICE_EMPTY));
}

static void the_workloads_of_ycsb_are_its_own(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        KeyDistribution distribution;
        ItemOperation first;
        ItemOperation second;
        uint8_t first_percent;
    } rows[] = {
        {"ycsb-a", KEY_ZIPFIAN, LOAD_ITEM_READ, LOAD_ITEM_UPDATE, 50},
        {"ycsb-b", KEY_ZIPFIAN, LOAD_ITEM_READ, LOAD_ITEM_UPDATE, 95},
        {"ycsb-c", KEY_ZIPFIAN, LOAD_ITEM_READ, LOAD_ITEM_UPDATE, 100},
        {"ycsb-d", KEY_LATEST, LOAD_ITEM_READ, LOAD_ITEM_CREATE, 95},
        {"ycsb-e", KEY_ZIPFIAN, LOAD_ITEM_SCAN, LOAD_ITEM_CREATE, 95},
        {"ycsb-f", KEY_ZIPFIAN, LOAD_ITEM_READ, LOAD_ITEM_MODIFY, 50},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const Workload *workload = workload_find(slice_from_cstr(rows[i].name));
        assert_non_null(workload);
        assert_int_equal(workload->shape, LOAD_ITEM_SHAPE_FIELDS);
        assert_int_equal(workload->distribution, rows[i].distribution);
        assert_int_equal(workload->percent[rows[i].first], rows[i].first_percent);
        assert_int_equal(workload->percent[rows[i].second], 100 - rows[i].first_percent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_100_together),
        cmocka_unit_test(the_workloads_of_ycsb_are_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
