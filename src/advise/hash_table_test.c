/* hash_table_test.c - every hash has one number, also when they collide and after growing. */
#include "advise/hash_table.h"

#include "base/testing.h"

static void numbers_are_given_in_order_and_stay(void **state)
{
    (void)state;
    AUTO(hash_table_done) HashTable table;
    hash_table_init(&table);
    bool is_new = false;
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < 5000; i++) {
            /* Equal in the low bits, so that they fall into few slots. */
            assert_int_equal(hash_table_add(&table, i << 6, &is_new), i);
            assert_int_equal(is_new, round == 0);
        }
    }
    assert_int_equal(table.count, 5000);
    hash_table_reset(&table);
    assert_int_equal(hash_table_add(&table, 42, &is_new), 0);
    assert_true(is_new);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_given_in_order_and_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
