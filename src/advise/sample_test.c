/* sample_test.c - which items a sample keeps, and in which order. */
#include "advise/sample.h"

#include "advise/advise_testing_int.h"
#include "base/rid.h"

#include <math.h>

static int64_t number_of(const Sample *sample, size_t i)
{
    int64_t number = -1;
    assert_true(json_to_i64(json_get(sample->items[i].document, SLICE("n")), &number));
    return number;
}

static void beyond_its_bound_a_sample_stays_spread(void **state)
{
    (void)state;
    Sample sample;
    sample_init(&sample, (SampleLimits){100, SAMPLE_BYTES_MAX});
    for (int i = 0; i < 10000; i++)
        add_item(&sample, "{\"n\":%d}", i);
    end_sample(&sample);
    assert_int_equal(sample.seen, 10000);
    assert_true(sample.count <= 100);
    assert_true(sample.count >= 40);
    assert_true(number_of(&sample, 0) < 1000);
    assert_true(number_of(&sample, sample.count - 1) >= 9000);
    for (size_t i = 1; i < sample.count; i++) {
        assert_true(number_of(&sample, i) > number_of(&sample, i - 1));
        assert_true(number_of(&sample, i) - number_of(&sample, i - 1) < 500);
    }
    assert_true(fabs(sample_scale(&sample) * (double)sample.count - 10000) < 1);
    sample_done(&sample);
}

/* A fixed step through data that repeats every eight items would see one of them only. */
static void a_sample_does_not_fall_into_step_with_data(void **state)
{
    (void)state;
    Sample sample;
    sample_init(&sample, (SampleLimits){100, SAMPLE_BYTES_MAX});
    for (int i = 0; i < 10000; i++)
        add_item(&sample, "{\"n\":%d}", i % 8);
    end_sample(&sample);
    size_t counts[8] = {0};
    for (size_t i = 0; i < sample.count; i++)
        counts[number_of(&sample, i)]++;
    for (size_t i = 0; i < 8; i++)
        assert_true(counts[i] > 0);
    sample_done(&sample);
}

static void bytes_are_bounded_too(void **state)
{
    (void)state;
    Sample sample;
    sample_init(&sample, (SampleLimits){1000, 10000});
    for (int i = 0; i < 1000; i++)
        add_item(&sample, "{\"n\":%d,\"text\":\"%0200d\"}", i, i);
    end_sample(&sample);
    assert_true(sample.kept_bytes <= 10000);
    assert_true(sample.count > 10);
    sample_done(&sample);
}

static void items_are_sorted_by_their_time(void **state)
{
    (void)state;
    Sample sample;
    begin_sample(&sample);
    for (int i = 0; i < 100; i++)
        add_item(&sample, "{\"n\":%d,\"_ts\":%d}", i, FIRST_TS + (i * 37) % 100 * 86400);
    end_sample(&sample);
    assert_true(sample.has_time);
    for (size_t i = 0; i < sample.count; i++)
        assert_int_equal(number_of(&sample, i) * 37 % 100, i);
    assert_true(fabs(sample_span_days(&sample) - 99) < 1e-9);
    sample_done(&sample);
}

static void a_time_path_without_times_is_refused(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Sample sample;
    Error err;
    begin_sample(&sample);
    add_item(&sample, "{\"n\":1,\"at\":\"never\"}");
    assert_int_equal(sample_finish(&sample, key_of(&arena, "/at").paths[0], &err),
                     STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, "0 of 1 items"));
    sample_done(&sample);
}

static void without_items_there_is_nothing_to_learn(void **state)
{
    (void)state;
    Sample sample;
    Error err;
    begin_sample(&sample);
    assert_int_equal(sample_finish(&sample, (PropertyPath){0}, &err), STATUS_BAD_REQUEST);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    assert_int_equal(sample_add(&sample, text_json(&arena, SLICE("[1]")), &err),
                     STATUS_BAD_REQUEST);
    assert_int_equal(sample.seen, 0);
    sample_done(&sample);
}

static void what_the_server_adds_is_left_out(void **state)
{
    (void)state;
    Sample sample;
    begin_sample(&sample);
    add_item(&sample,
             "{\"id\":\"1\",\"_rid\":\"r\",\"_self\":\"s\",\"_etag\":\"e\",\"_attachments\":\"a\","
             "\"_ts\":%d,\"_lsn\":7}",
             FIRST_TS);
    end_sample(&sample);
    assert_int_equal(json_count(sample.items[0].document), 3);
    assert_true(json_is(json_get(sample.items[0].document, SLICE("_rid")), JSON_STRING));
    sample_done(&sample);
}

/* Two nodes hand over their items one after the other, in either order. */
static void items_of_one_time_are_in_the_order_of_their_ids(void **state)
{
    (void)state;
    static const int orders[][4] = {{1, 2, 300, 4}, {300, 4, 1, 2}, {4, 300, 2, 1}};
    for (size_t o = 0; o < ARRAY_COUNT(orders); o++) {
        Sample sample;
        begin_sample(&sample);
        for (size_t i = 0; i < ARRAY_COUNT(orders[o]); i++) {
            char rid[RID_CHILD_LEN + 1] = "";
            rid_print_child(RID_DOCUMENT, 1, 1, (uint64_t)orders[o][i], rid);
            AUTO(arena_done) Arena arena;
            arena_init(&arena, 1024);
            Json value =
                text_json(&arena, arena_format(&arena, "{\"_rid\":\"%s\",\"n\":%d,\"_ts\":%d}", rid,
                                               orders[o][i], FIRST_TS));
            Error err;
            assert_int_equal(sample_add(&sample, value, &err), STATUS_OK);
        }
        end_sample(&sample);
        static const int sorted[] = {1, 2, 4, 300};
        for (size_t i = 0; i < ARRAY_COUNT(sorted); i++)
            assert_int_equal(number_of(&sample, i), sorted[i]);
        sample_done(&sample);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beyond_its_bound_a_sample_stays_spread),
        cmocka_unit_test(a_sample_does_not_fall_into_step_with_data),
        cmocka_unit_test(bytes_are_bounded_too),
        cmocka_unit_test(items_are_sorted_by_their_time),
        cmocka_unit_test(items_of_one_time_are_in_the_order_of_their_ids),
        cmocka_unit_test(a_time_path_without_times_is_refused),
        cmocka_unit_test(without_items_there_is_nothing_to_learn),
        cmocka_unit_test(what_the_server_adds_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
