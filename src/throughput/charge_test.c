/* charge_test.c - what work costs. */
#include "throughput/charge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void the_published_figures_are_met(void **state)
{
    (void)state;
    static const struct {
        size_t kb;
        Charge read, write;
    } rows[] = {
        {1, 100, 495},     {2, 104, 629},      {4, 114, 667},        {8, 133, 704},
        {16, 167, 952},    {32, 219, 1123},    {64, 476, 2267},      {128, 995, 4819},
        {256, 2028, 9829}, {512, 4095, 18457}, {1024, 14590, 62500}, {2048, 29180, 125000},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_int_equal(charge_read(rows[i].kb * 1024), rows[i].read);
        assert_int_equal(charge_create(rows[i].kb * 1024, 0), rows[i].write);
    }
}

static void a_larger_item_never_costs_less(void **state)
{
    (void)state;
    Charge read = 0;
    Charge write = 0;
    for (size_t bytes = 0; bytes < (size_t)5 << 20; bytes += 511) {
        assert_true(charge_read(bytes) >= read);
        assert_true(charge_create(bytes, 0) >= write);
        read = charge_read(bytes);
        write = charge_create(bytes, 0);
    }
    assert_int_equal(charge_read(0), 100);
    assert_int_equal(charge_read(1536), 102);
    assert_int_equal(charge_create(1536, 0), 562);
}

static void costs_add_up(void **state)
{
    (void)state;
    assert_int_equal(charge_create(1024, 10), 695);
    assert_int_equal(charge_delete(1024, 10), 695);
    assert_int_equal(charge_replace(1024, 4096, 2), 495 + 667 + 40);
    assert_int_equal(charge_patch(1024, 4096, 2, 3), charge_replace(1024, 4096, 2) + 120);
    assert_int_equal(charge_miss(), 100);
}

static void a_page_costs_by_its_items_and_their_size(void **state)
{
    (void)state;
    assert_int_equal(charge_feed(0, 0), 100);
    assert_int_equal(charge_feed(1000, 10), 150);
    assert_int_equal(charge_feed(1 << 20, 1), 100 + 1024 * 50);
    Charge before = 0;
    for (size_t items = 0; items < 1000; items++) {
        assert_true(charge_feed(items * 700, items) >= before);
        before = charge_feed(items * 700, items);
    }
}

static void charges_are_printed_with_a_point(void **state)
{
    (void)state;
    static const struct {
        Charge charge;
        const char *text;
    } rows[] = {
        {0, "0"},      {1, "0.01"},      {10, "0.10"},  {100, "1"},
        {571, "5.71"}, {125000, "1250"}, {110, "1.10"}, {UINT64_MAX, "184467440737095516.15"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char text[CHARGE_TEXT_MAX];
        size_t len = charge_print(rows[i].charge, text);
        assert_int_equal(len, strlen(rows[i].text));
        assert_memory_equal(text, rows[i].text, len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_figures_are_met),
        cmocka_unit_test(a_larger_item_never_costs_less),
        cmocka_unit_test(costs_add_up),
        cmocka_unit_test(a_page_costs_by_its_items_and_their_size),
        cmocka_unit_test(charges_are_printed_with_a_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
