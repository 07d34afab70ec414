/* row_window_test.c - rows leave in order, and keys are known as long as they are on their way. */
#include "transfer/row_window.h"

#include "base/random.h"
#include "base/testing.h"

static void rows_leave_in_the_order_in_which_they_came(void **state)
{
    (void)state;
    AUTO(row_window_free) RowWindow *window = row_window_new();
    uint64_t numbers[3];
    for (uint64_t i = 0; i < 3; i++)
        numbers[i] = row_window_add(window, &(WindowRow){.number = i + 1, .key = 100 + i});
    row_window_written(window, numbers[2]);
    assert_null(row_window_first(window));
    row_window_rejected(window, numbers[0], "too odd", SLICE("{}"));
    const WindowRow *first = row_window_first(window);
    assert_int_equal(first->state, WINDOW_REJECTED);
    assert_string_equal(first->reason, "too odd");
    assert_slice_text(slice_make(first->text, first->text_len), "{}");
    row_window_pop(window);
    assert_null(row_window_first(window));
    row_window_written(window, numbers[1]);
    assert_int_equal(row_window_first(window)->number, 2);
    row_window_pop(window);
    assert_int_equal(row_window_first(window)->number, 3);
    row_window_pop(window);
    assert_true(row_window_is_empty(window));
    assert_null(row_window_first(window));
}

static void a_window_is_full_and_texts_are_cut(void **state)
{
    (void)state;
    AUTO(row_window_free) RowWindow *window = row_window_new();
    uint64_t first = row_window_add(window, &(WindowRow){.key = 1});
    for (uint64_t i = 1; i < WINDOW_ROWS_MAX; i++)
        (void)row_window_add(window, &(WindowRow){.key = i + 1});
    assert_true(row_window_is_full(window));
    char *text = mem_alloc(WINDOW_REJECT_BYTES_MAX + 1);
    row_window_rejected(window, first, "x", slice_make(text, WINDOW_REJECT_BYTES_MAX + 1));
    mem_free(text);
    assert_int_equal(row_window_first(window)->text_len, WINDOW_REJECT_BYTES_MAX);
    row_window_pop(window);
    assert_false(row_window_is_full(window));
    (void)row_window_add(window, &(WindowRow){.key = 1});
    assert_true(row_window_is_full(window));
}

static void keys_are_known_while_they_are_on_their_way(void **state)
{
    (void)state;
    AUTO(row_window_free) RowWindow *window = row_window_new();
    enum { KEYS = 64, ROUNDS = 200000, LIVE_MAX = 40 };
    /* Keys that share a few slots, so that they collide. */
    uint64_t keys[KEYS];
    for (uint64_t i = 0; i < KEYS; i++)
        keys[i] = (i << 32) + 1 + i % 3;
    uint64_t live[KEYS] = {0}; /* number in the window plus one */
    size_t live_count = 0;
    Random random;
    random_init(&random, 3);
    for (int i = 0; i < ROUNDS; i++) {
        size_t k = (size_t)random_below(&random, KEYS);
        if (live[k] != 0) {
            row_window_written(window, live[k] - 1);
            live[k] = 0;
            live_count--;
        } else if (live_count < LIVE_MAX && !row_window_is_full(window)) {
            live[k] = row_window_add(window, &(WindowRow){.key = keys[k]}) + 1;
            live_count++;
        }
        while (row_window_first(window) != NULL)
            row_window_pop(window);
        size_t any = (size_t)random_below(&random, KEYS);
        assert_int_equal(row_window_has_key(window, keys[any]), live[any] != 0);
    }
    assert_false(row_window_has_key(window, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_leave_in_the_order_in_which_they_came),
        cmocka_unit_test(a_window_is_full_and_texts_are_cut),
        cmocka_unit_test(keys_are_known_while_they_are_on_their_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
