/* order_text_test.c - that orders are what queries expect: sizes, names, how often a value occurs.
 */
#include "load/order_text.h"

#include "load/item_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SAMPLE = 20000 };

static size_t count_of(Slice text, const char *part)
{
    size_t count = 0;
    size_t len = strlen(part);
    for (const char *at = text.ptr;
         (at = memmem(at, (size_t)(text.ptr + text.len - at), part, len)) != NULL; at += len)
        count++;
    return count;
}

/* What follows 'label' up to the next quote or comma. */
static Slice value_of(Slice text, const char *label)
{
    const char *at = memmem(text.ptr, text.len, label, strlen(label));
    assert_non_null(at);
    Slice rest = slice_from(text, (size_t)(at - text.ptr) + strlen(label));
    size_t quote = slice_find(rest, '"');
    size_t comma = slice_find(rest, ',');
    return slice_first(rest, quote < comma ? quote : comma);
}

static double number_of(Slice text, const char *label)
{
    char digits[32];
    Slice value = value_of(text, label);
    assert_true(value.len < sizeof(digits));
    memcpy(digits, value.ptr, value.len);
    digits[value.len] = '\0';
    char *end = NULL;
    double number = strtod(digits, &end);
    assert_ptr_equal(end, digits + value.len);
    return number;
}

typedef struct Made {
    Buf text;
    Slice id, key;
} Made;

static void made_done(Made *made)
{
    buf_done(&made->text);
}
DEFINE_AUTO_VALUE(Made, made_done)

static Slice make(Made *made, uint64_t number)
{
    order_text_print(number, &made->text, &made->id, &made->key);
    return buf_view(&made->text);
}

static void an_order_has_20_paths(void **state)
{
    (void)state;
    AUTO(made_done) Made made = {0};
    buf_init(&made.text, ORDER_BYTES_MAX);
    for (uint64_t n = 0; n < 100; n++) {
        Slice text = make(&made, n);
        size_t objects = count_of(text, "\":{");
        assert_int_equal(objects, 2);
        assert_int_equal(count_of(text, "\":[\""), 1);
        assert_int_equal(count_of(text, "\":") - objects, 20);
        assert_int_equal(count_of(text, "{"), count_of(text, "}"));
        /* Neither JSON nor COPY has to escape anything. */
        assert_int_equal(count_of(text, "\\"), 0);
        assert_int_equal(count_of(text, "\t"), 0);
    }
}

static void the_same_number_gives_the_same_order(void **state)
{
    (void)state;
    AUTO(made_done) Made made = {0};
    AUTO(made_done) Made again = {0};
    buf_init(&made.text, ORDER_BYTES_MAX);
    buf_init(&again.text, ORDER_BYTES_MAX);
    Slice first = make(&made, 17);
    assert_false(slice_equal(first, make(&again, 18)));
    assert_true(slice_equal(first, make(&again, 17)));
}

static void names_are_those_that_scripts_compute(void **state)
{
    (void)state;
    static const struct {
        uint64_t number, name;
    } rows[] = {
        {0, 0},
        {1, 2654435761},
        {2, 1013904226}, /* 2 * 2654435761 modulo 2^32 */
        {999999, 1583715471},
        {UINT64_C(1) << 32, UINT64_C(1) << 32},
        {(UINT64_C(5) << 32) + 1, (UINT64_C(5) << 32) + 2654435761},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(order_text_name(rows[i].number), rows[i].name);
}

static void identities_stand_in_the_text(void **state)
{
    (void)state;
    AUTO(made_done) Made made = {0};
    buf_init(&made.text, ORDER_BYTES_MAX);
    Slice text = make(&made, LOAD_ITEMS_PER_KEY + 1);
    char expected[64];
    (void)snprintf(expected, sizeof(expected), "o%lu", (unsigned long)order_text_name(101));
    assert_true(slice_equal(made.id, slice_from_cstr(expected)));
    assert_true(slice_equal(value_of(text, "\"id\":\""), made.id));
    assert_true(slice_equal(made.key, SLICE("c2654435761")));
    assert_true(slice_equal(value_of(text, "\"pk\":\""), made.key));
    assert_true(slice_equal(value_of(text, "\"orderNumber\":\"ORD-"), slice_from(made.id, 1)));
}

/* What the queries of the benchmark are meant to find. */
static void values_are_spread_as_they_should(void **state)
{
    (void)state;
    AUTO(made_done) Made made = {0};
    buf_init(&made.text, ORDER_BYTES_MAX);
    uint64_t bytes = 0;
    uint32_t by_status[ORDER_STATUS_COUNT] = {0};
    uint32_t one_category = 0;
    uint32_t rare_tags = 0;
    uint32_t low_totals = 0;
    uint32_t long_notes = 0;
    for (uint64_t n = 0; n < SAMPLE; n++) {
        Slice text = make(&made, n);
        bytes += text.len;
        by_status[(size_t)number_of(text, "\"status-")]++;
        one_category += number_of(text, "\"category-") == 42;
        rare_tags += count_of(text, "\"tag-555\"");
        double total = number_of(text, "\"total\":");
        assert_true(total >= 0 && total < ORDER_TOTAL_MAX);
        low_totals += total < ORDER_TOTAL_MAX / 10.0;
        double quantity = number_of(text, "\"quantity\":");
        assert_true(quantity >= 1 && quantity <= ORDER_QUANTITY_MAX);
        double price = number_of(text, "\"price\":");
        assert_true(price > 0 && price <= ORDER_PRICE_MAX);
        size_t note = value_of(text, "\"note\":\"").len;
        assert_in_range(note, ORDER_NOTE_MIN, ORDER_NOTE_MAX);
        long_notes += note > (ORDER_NOTE_MIN + ORDER_NOTE_MAX) / 2;
    }
    assert_in_range(bytes / SAMPLE, ORDER_BYTES - 30, ORDER_BYTES + 30);
    for (size_t i = 0; i < ORDER_STATUS_COUNT; i++)
        assert_in_range(by_status[i], SAMPLE / 10 * 9 / 10, SAMPLE / 10 * 11 / 10);
    assert_in_range(one_category, SAMPLE / 100 / 2, SAMPLE / 100 * 2);
    assert_in_range(rare_tags, SAMPLE / 900 / 3, SAMPLE / 900 * 3);
    assert_in_range(low_totals, SAMPLE / 10 * 9 / 10, SAMPLE / 10 * 11 / 10);
    assert_in_range(long_notes, SAMPLE / 2 * 9 / 10, SAMPLE / 2 * 11 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_has_20_paths),
        cmocka_unit_test(the_same_number_gives_the_same_order),
        cmocka_unit_test(names_are_those_that_scripts_compute),
        cmocka_unit_test(identities_stand_in_the_text),
        cmocka_unit_test(values_are_spread_as_they_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
