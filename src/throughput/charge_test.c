/* charge_test.c - what work costs, beside the published figures. */
#include "throughput/charge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const ChargeModel *model(void)
{
    return charge_model_default();
}

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
        assert_int_equal(charge_read(model(), rows[i].kb * 1024), rows[i].read);
        assert_int_equal(charge_create(model(), rows[i].kb * 1024, 0), rows[i].write);
        assert_int_equal(charge_delete(model(), rows[i].kb * 1024, 0), rows[i].write);
        assert_int_equal(charge_replace(model(), rows[i].kb * 1024, rows[i].kb * 1024, 0),
                         2 * rows[i].write);
    }
}

/* Other pages of the documentation give round numbers; ours must be within a percentage of them. */
static void other_published_figures_are_near(void **state)
{
    (void)state;
    const ChargeModel *m = model();
    QueryWork scan = {.items = 60951, .item_bytes = 399998938, .results = 7, .result_bytes = 700};
    QueryWork page = {
        .items = 2000, .item_bytes = 1125600, .results = 2000, .result_bytes = 1125600};
    QueryWork one = {.items = 1, .item_bytes = 7000, .results = 1, .result_bytes = 7000};
    const struct {
        const char *what;
        Charge ours, published;
        unsigned percent;
    } rows[] = {
        {"write of 1 KB", charge_create(m, 1024, 0), 500, 1},
        {"read of 100 KB", charge_read(m, 100 * 1024), 1000, 25},
        {"write of 100 KB", charge_create(m, 100 * 1024, 0), 5000, 27},
        {"create of 1 KB with 10 terms", charge_create(m, 1024, 10), 700, 1},
        {"replace of 1 KB with 2 values changed", charge_replace(m, 1024, 1024, 4), 1080, 1},
        {"query that scans 60,951 items", charge_query(m, &scan), 405995, 1},
        {"query that returns 2,000 items", charge_query(m, &page), 60442, 1},
        {"query that finds one item of 7 KB", charge_query(m, &one), 298, 2},
        {"query that finds nothing", charge_query(m, &(QueryWork){0}), 230, 1},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Charge low = rows[i].published * (100 - rows[i].percent) / 100;
        Charge high = rows[i].published * (100 + rows[i].percent) / 100;
        if (rows[i].ours < low || rows[i].ours > high)
            fail_msg("%s: %llu hundredths, published are %llu", rows[i].what,
                     (unsigned long long)rows[i].ours, (unsigned long long)rows[i].published);
    }
}

static void a_larger_item_never_costs_less(void **state)
{
    (void)state;
    Charge read = 0;
    Charge write = 0;
    for (size_t bytes = 0; bytes < (size_t)20 << 20; bytes += 511) {
        assert_true(charge_read(model(), bytes) >= read);
        assert_true(charge_create(model(), bytes, 0) >= write);
        read = charge_read(model(), bytes);
        write = charge_create(model(), bytes, 0);
    }
    assert_int_equal(charge_read(model(), 0), 100);
    assert_int_equal(charge_read(model(), 1536), 102);
    assert_int_equal(charge_create(model(), 1536, 0), 562);
    assert_int_equal(charge_read(model(), 4 << 20), 2 * 29180);
}

static void costs_add_up(void **state)
{
    (void)state;
    const ChargeModel *m = model();
    assert_int_equal(charge_create(m, 1024, 10), 695);
    assert_int_equal(charge_delete(m, 1024, 10), 695);
    assert_int_equal(charge_replace(m, 1024, 4096, 2), 495 + 667 + 40);
    assert_int_equal(charge_patch(m, 1024, 4096, 2, 3), charge_replace(m, 1024, 4096, 2) + 120);
    assert_int_equal(charge_failed(m), 100);
    assert_int_equal(charge_strong(m, 133), 266);
    assert_int_equal(charge_metadata_read(m), 100);
    assert_int_equal(charge_metadata_write(m), 495);
    assert_int_equal(charge_metadata_query(m), 233);
    assert_int_equal(charge_plan(m, 100), 100);
    assert_int_equal(charge_plan(m, 4 << 10), 100);
    assert_int_equal(charge_plan(m, 512 << 10), 12800);
}

static void a_page_of_a_list_costs_its_reads_and_never_nothing(void **state)
{
    (void)state;
    assert_int_equal(charge_feed(model(), 0), 100);
    assert_int_equal(charge_feed(model(), charge_read(model(), 10)), 100);
    Charge reads = 100 * charge_read(model(), 2048);
    assert_int_equal(charge_feed(model(), reads), reads);
}

static void each_part_of_a_query_has_its_price(void **state)
{
    (void)state;
    static const struct {
        QueryWork work;
        Charge charge;
    } rows[] = {
        {{0}, 228},
        {{.index_keys = 1}, 228},
        {{.index_keys = 100}, 238},
        {{.items = 100}, 528},
        {{.item_bytes = 100 << 10}, 285},
        {{.results = 100}, 2628},
        {{.result_bytes = 100 << 10}, 728},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(charge_query(model(), &rows[i].work), rows[i].charge);
}

static void too_much_work_is_not_little(void **state)
{
    (void)state;
    QueryWork work = {.index_keys = UINT64_MAX,
                      .items = UINT64_MAX,
                      .item_bytes = UINT64_MAX,
                      .results = UINT64_MAX,
                      .result_bytes = UINT64_MAX};
    assert_true(charge_query(model(), &work) > (Charge)100 * 1000000000);
    assert_true(charge_read(model(), SIZE_MAX) > (Charge)100 * 1000000000);
    assert_true(charge_strong(model(), UINT64_MAX) > (Charge)100 * 1000000000);
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
        cmocka_unit_test(other_published_figures_are_near),
        cmocka_unit_test(a_larger_item_never_costs_less),
        cmocka_unit_test(costs_add_up),
        cmocka_unit_test(a_page_of_a_list_costs_its_reads_and_never_nothing),
        cmocka_unit_test(each_part_of_a_query_has_its_price),
        cmocka_unit_test(too_much_work_is_not_little),
        cmocka_unit_test(charges_are_printed_with_a_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
