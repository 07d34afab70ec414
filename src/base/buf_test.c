/* buf_test.c - growing, and the moment when a buffer is full: I2. */
#include "base/buf.h"

#include "base/testing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void assert_text(const Buf *buf, const char *expected)
{
    assert_false(buf_full(buf));
    assert_true(slice_equal(buf_view(buf), slice_from_cstr(expected)));
}

static void bytes_arrive_in_order_over_many_growths(void **state)
{
    (void)state;
    AUTO(buf_done) Buf buf;
    buf_init(&buf, 1 << 20);
    for (int i = 0; i < 10000; i++) {
        buf_byte(&buf, (uint8_t)i);
        buf_slice(&buf, SLICE("ab\0"));
    }
    assert_int_equal(buf.len, 40000);
    for (size_t i = 0; i < 10000; i++) {
        assert_int_equal((uint8_t)buf.ptr[i * 4], (uint8_t)i);
        assert_memory_equal(buf.ptr + i * 4 + 1, "ab\0", 3);
    }
}

static void the_last_byte_that_fits_is_kept(void **state)
{
    (void)state;
    for (size_t bytes_max = 0; bytes_max < 200; bytes_max++) {
        AUTO(buf_done) Buf buf;
        buf_init(&buf, bytes_max);
        for (size_t i = 0; i < bytes_max; i++)
            buf_byte(&buf, 'x');
        assert_false(buf_full(&buf));
        assert_int_equal(buf.len, bytes_max);
        buf_byte(&buf, 'y');
        assert_true(buf_full(&buf));
        assert_int_equal(buf.len, bytes_max);
    }
}

static void a_full_buffer_takes_nothing_more(void **state)
{
    (void)state;
    AUTO(buf_done) Buf buf;
    buf_init(&buf, 100);
    buf_slice(&buf, SLICE("abc"));
    char large[200] = {0};
    buf_bytes(&buf, large, sizeof(large));
    assert_true(buf_full(&buf));
    /* There is room for this, but what follows a gap would be a lie. */
    buf_slice(&buf, SLICE("d"));
    buf_u64(&buf, 1);
    buf_format(&buf, "%d", 1);
    assert_true(slice_equal(buf_view(&buf), SLICE("abc")));
}

static void absurd_sizes_do_not_overflow(void **state)
{
    (void)state;
    AUTO(buf_done) Buf buf;
    buf_init(&buf, 100);
    buf_slice(&buf, SLICE("abc"));
    assert_false(buf_reserve(&buf, SIZE_MAX));
    assert_false(buf_reserve(&buf, 1));
    assert_true(buf_full(&buf));
}

static void reset_makes_room_again_and_keeps_the_memory(void **state)
{
    (void)state;
    AUTO(buf_done) Buf buf;
    buf_init(&buf, 8);
    buf_slice(&buf, SLICE("12345678"));
    buf_byte(&buf, '9');
    const char *memory = buf.ptr;
    buf_reset(&buf);
    buf_slice(&buf, SLICE("again"));
    assert_text(&buf, "again");
    assert_ptr_equal(buf.ptr, memory);
}

static void empty_appends_change_nothing(void **state)
{
    (void)state;
    AUTO(buf_done) Buf buf;
    buf_init(&buf, 0);
    buf_slice(&buf, SLICE_EMPTY);
    buf_bytes(&buf, NULL, 0);
    buf_format(&buf, "%s", "");
    assert_text(&buf, "");
}

static void integers_print_as_printf_does(void **state)
{
    (void)state;
    static const int64_t rows[] = {0, 1, -1, 9, 10, 99, 100, -100, INT32_MIN, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char expected[64];
        AUTO(buf_done) Buf buf;
        buf_init(&buf, 100);
        buf_i64(&buf, rows[i]);
        (void)snprintf(expected, sizeof(expected), "%" PRId64, rows[i]);
        assert_text(&buf, expected);
        buf_reset(&buf);
        buf_u64(&buf, (uint64_t)rows[i]);
        (void)snprintf(expected, sizeof(expected), "%" PRIu64, (uint64_t)rows[i]);
        assert_text(&buf, expected);
    }
}

static void formatted_text_of_any_length_arrives_whole(void **state)
{
    (void)state;
    /* Around the size of the small buffer inside, where text is printed in place. */
    for (int width = 505; width < 520; width++) {
        AUTO(buf_done) Buf buf;
        buf_init(&buf, 4096);
        buf_format(&buf, "<%*d>", width, 7);
        assert_false(buf_full(&buf));
        assert_int_equal(buf.len, width + 2);
        assert_memory_equal(buf.ptr, "<  ", 3);
        assert_memory_equal(buf.ptr + width - 1, " 7>", 3);
    }
}

static void formatted_text_that_just_fits_is_kept(void **state)
{
    (void)state;
    for (int width = 505; width < 520; width++) {
        AUTO(buf_done) Buf buf;
        buf_init(&buf, (size_t)width);
        buf_format(&buf, "%*d", width, 7);
        assert_false(buf_full(&buf));
        assert_int_equal(buf.len, width);
        assert_int_equal(buf.ptr[width - 1], '7');
        buf_done(&buf);
        buf_init(&buf, (size_t)width - 1);
        buf_format(&buf, "%*d", width, 7);
        assert_true(buf_full(&buf));
        assert_int_equal(buf.len, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive_in_order_over_many_growths),
        cmocka_unit_test(the_last_byte_that_fits_is_kept),
        cmocka_unit_test(a_full_buffer_takes_nothing_more),
        cmocka_unit_test(absurd_sizes_do_not_overflow),
        cmocka_unit_test(reset_makes_room_again_and_keeps_the_memory),
        cmocka_unit_test(empty_appends_change_nothing),
        cmocka_unit_test(integers_print_as_printf_does),
        cmocka_unit_test(formatted_text_of_any_length_arrives_whole),
        cmocka_unit_test(formatted_text_that_just_fits_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
