/* query_log_test.c - frequent texts stay whatever else comes, sums are exact, and a reader beside a
 * writer sees whole texts. */
#include "throughput/query_log.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>

static const HashKey KEY = {1, 2};

static void add(QueryLog *log, uint64_t now_s, uint32_t container, Slice text, uint8_t key_parts,
                uint64_t charge)
{
    QueryNote note = {
        .container = container,
        .text = text,
        .key_parts = key_parts,
        .counts = {[QUERY_PAGES] = 1, [QUERY_EXECUTIONS] = 1, [QUERY_CHARGE] = charge},
    };
    query_log_add(log, now_s, &note);
}

static size_t read_one(const QueryLog *log, uint32_t container, QueryCount by, Arena *arena,
                       QueryRow **rows)
{
    return query_log_read(&log, 1, container, by, arena, rows);
}

static void rows_are_sums_of_all_logs(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(query_log_free) QueryLog *one = query_log_new(8, KEY);
    AUTO(query_log_free) QueryLog *two = query_log_new(8, KEY);
    const QueryLog *logs[] = {one, two};
    QueryRow *rows = NULL;
    assert_int_equal(query_log_read(logs, 2, 1, QUERY_CHARGE, &arena, &rows), 0);
    add(one, 100, 1, SLICE("a"), 0, 5);
    add(two, 90, 1, SLICE("a"), 0, 7);
    add(one, 120, 1, SLICE("a"), 1, 1);    /* the same text with a key is another row */
    add(one, 120, 2, SLICE("a"), 0, 1000); /* and so is that of another container */
    add(two, 120, 1, SLICE("b"), 0, 100);
    add(two, 130, 1, SLICE_EMPTY, 0, 3);
    assert_int_equal(query_log_read(logs, 2, 1, QUERY_CHARGE, &arena, &rows), 4);
    assert_true(slice_equal(rows[0].text, SLICE("b")));
    assert_true(slice_equal(rows[1].text, SLICE("a")));
    assert_int_equal(rows[1].counts[QUERY_CHARGE], 12);
    assert_int_equal(rows[1].counts[QUERY_PAGES], 2);
    assert_int_equal(rows[1].first_s, 90);
    assert_int_equal(rows[1].last_s, 100);
    assert_true(rows[1].is_exact);
    assert_int_equal(rows[2].text.len, 0);
    assert_int_equal(rows[3].key_parts, 1);
    assert_int_equal(query_log_read(logs, 2, 1, QUERY_PAGES, &arena, &rows), 4);
    assert_true(slice_equal(rows[0].text, SLICE("a")));
}

/* Three texts are a third of all, the rest never comes twice. */
static void frequent_texts_stay(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(query_log_free) QueryLog *log = query_log_new(32, KEY);
    Random random;
    random_init(&random, 7);
    uint64_t frequent[3] = {0};
    for (uint32_t i = 0; i < 20000; i++) {
        char text[32];
        uint64_t which = random_below(&random, 9);
        if (which < 3)
            frequent[which]++;
        int len = which < 3 ? snprintf(text, sizeof(text), "frequent %d", (int)which)
                            : snprintf(text, sizeof(text), "rare %u", i);
        add(log, i, 1, slice_make(text, (size_t)len), 0, 1);
    }
    QueryRow *rows = NULL;
    size_t count = read_one(log, 1, QUERY_PAGES, &arena, &rows);
    assert_int_equal(count, 16); /* half of the entries */
    for (size_t i = 0; i < 3; i++) {
        assert_true(slice_starts_with(rows[i].text, SLICE("frequent ")));
        size_t which = (size_t)(rows[i].text.ptr[9] - '0');
        assert_in_range(rows[i].counts[QUERY_PAGES], frequent[which] * 9 / 10, frequent[which]);
    }
}

static void one_container_leaves_room_for_others(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(query_log_free) QueryLog *log = query_log_new(8, KEY);
    add(log, 1, 2, SLICE("quiet"), 0, 1);
    for (uint32_t i = 0; i < 1000; i++) {
        char text[32];
        int len = snprintf(text, sizeof(text), "loud %u", i);
        add(log, i, 1, slice_make(text, (size_t)len), 0, 1);
    }
    QueryRow *rows = NULL;
    assert_int_equal(read_one(log, 2, QUERY_PAGES, &arena, &rows), 1);
    assert_int_equal(rows[0].counts[QUERY_PAGES], 1);
    assert_int_equal(read_one(log, 1, QUERY_PAGES, &arena, &rows), 4);
    assert_false(rows[0].is_exact);
}

static void many_threads_take_no_more_memory(void **state)
{
    (void)state;
    assert_int_equal(query_log_entries(0), QUERY_LOG_ENTRIES_MAX);
    assert_int_equal(query_log_entries(2), QUERY_LOG_ENTRIES_MAX);
    assert_int_equal(query_log_entries(256), QUERY_LOG_ENTRIES_MIN);
    for (uint32_t threads = 1; threads <= 64; threads++)
        assert_true(query_log_entries(threads) == QUERY_LOG_ENTRIES_MIN ||
                    query_log_entries(threads) * threads * QUERY_LOG_TEXT_MAX <=
                        QUERY_LOG_BYTES_MAX);
}

/* ---- beside a writer ---- */

typedef struct Race {
    QueryLog *log;
    _Atomic bool is_over;
} Race;

enum { RACE_TEXT = 300 };

/* Texts of one repeated letter: half of one and half of another is seen at once. */
static void *write_texts(void *ctx)
{
    Race *race = ctx;
    for (uint32_t i = 0; !atomic_load(&race->is_over); i++) {
        char text[RACE_TEXT];
        size_t len = 1 + i % RACE_TEXT;
        memset(text, 'a' + (int)(i % 26), len);
        add(race->log, i, 1, slice_make(text, len), (uint8_t)(i % 4), 1);
    }
    return NULL;
}

static void readers_see_whole_texts(void **state)
{
    (void)state;
    AUTO(query_log_free) QueryLog *log = query_log_new(8, KEY);
    Race race = {.log = log};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_texts, &race), 0);
    for (int round = 0; round < 300; round++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        QueryRow *rows = NULL;
        size_t count = read_one(log, 1, QUERY_PAGES, &arena, &rows);
        for (size_t i = 0; i < count; i++) {
            for (size_t at = 1; at < rows[i].text.len; at++)
                assert_int_equal(rows[i].text.ptr[at], rows[i].text.ptr[0]);
        }
    }
    atomic_store(&race.is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_sums_of_all_logs),
        cmocka_unit_test(frequent_texts_stay),
        cmocka_unit_test(one_container_leaves_room_for_others),
        cmocka_unit_test(many_threads_take_no_more_memory),
        cmocka_unit_test(readers_see_whole_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
