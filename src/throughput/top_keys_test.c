/* top_keys_test.c - what sketches say holds for the exact counts. Run under the thread sanitizer
 * too. */
#include "throughput/top_keys.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/test_seed.h"

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define START_S 1700000040u /* a minute begins */
#define KEY     ((HashKey){UINT64_C(0x243F6A8885A308D3), UINT64_C(0x13198A2E03707344)})

/* Keys are numbers: the EPK begins with the number's bytes, and the text has its digits. */
typedef struct Key {
    uint64_t number;
    int *printed;
} Key;

static size_t print_number(const void *ctx, char out[TOP_TEXT_MAX], bool *is_cut)
{
    const Key *key = ctx;
    if (key->printed != NULL)
        ++*key->printed;
    *is_cut = false;
    return (size_t)snprintf(out, TOP_TEXT_MAX, "[%" PRIu64 "]", key->number);
}

static void add_to(Top *top, uint32_t container, uint64_t now_s, Key key, uint64_t weight)
{
    uint64_t epk[2] = {key.number, 0};
    size_t len = key.number % 3 == 0 ? 8 : 16;
    TopKey top_key = {container, (uint32_t)(key.number % 4), slice_make(epk, len)};
    top_keys_add(top, TOP_CHARGE, now_s, &top_key, weight, (TopName){print_number, &key});
}

static void add(Top *top, uint64_t now_s, uint64_t number, uint64_t weight)
{
    add_to(top, 1, now_s, (Key){.number = number}, weight);
}

static const TopQuery NOW = {TOP_CHARGE, 1, START_S, 0, 1000, false, 0};

static size_t read_one(const Top *top, const TopQuery *query, Arena *arena, TopRow **rows)
{
    const Top *tops[] = {top};
    return top_keys_read(tops, 1, query, arena, rows);
}

static void expect_row(const TopRow *row, const char *text, uint64_t at_least, uint64_t at_most)
{
    if (!slice_equal(row->text, slice_from_cstr(text)))
        fail_msg("expected '%s', found '%.*s'", text, SLICE_ARG(row->text));
    assert_int_equal(row->at_least, at_least);
    assert_int_equal(row->at_most, at_most);
}

static void few_keys_are_counted_exactly_and_ordered_by_weight(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(top_keys_free) Top *top = top_keys_new(4, KEY);
    add(top, START_S, 10, 100);
    add(top, START_S, 11, 300);
    add(top, START_S, 12, 200);
    add(top, START_S, 10, 250);
    TopRow *rows = NULL;
    assert_int_equal(read_one(top, &NOW, &arena, &rows), 3);
    expect_row(&rows[0], "[10]", 350, 350);
    expect_row(&rows[1], "[11]", 300, 300);
    expect_row(&rows[2], "[12]", 200, 200);
    assert_int_equal(rows[0].range, 2);
    assert_int_equal(rows[0].epk.len, 16);
    assert_int_equal(rows[0].epk.ptr[0], 10);
    assert_false(rows[0].is_cut);

    TopQuery two = NOW;
    two.rows_max = 2;
    assert_int_equal(read_one(top, &two, &arena, &rows), 2);
}

static void a_key_takes_the_place_of_the_lightest_when_it_is_not_lighter(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(top_keys_free) Top *top = top_keys_new(2, KEY);
    add(top, START_S, 1, 50);
    add(top, START_S, 2, 20);
    add(top, START_S, 3, 5);
    TopRow *rows = NULL;
    assert_int_equal(read_one(top, &NOW, &arena, &rows), 2);
    expect_row(&rows[0], "[1]", 50, 50);
    expect_row(&rows[1], "[2]", 20, 20);
    add(top, START_S, 3, 15);
    assert_int_equal(read_one(top, &NOW, &arena, &rows), 2);
    expect_row(&rows[1], "[3]", 15, 20);
    add(top, START_S, 2, 1); /* what it had is not forgotten */
    assert_int_equal(read_one(top, &NOW, &arena, &rows), 2);
    expect_row(&rows[1], "[2]", 1, 21);
}

static void containers_and_kinds_and_ranges_are_told_apart(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(top_keys_free) Top *top = top_keys_new(8, KEY);
    Key key = {.number = 7};
    add_to(top, 1, START_S, key, 10);
    add_to(top, 2, START_S, key, 20);
    uint64_t epk[2] = {key.number, 0};
    TopKey moved = {1, 9, slice_make(epk, 16)};
    top_keys_add(top, TOP_CHARGE, START_S, &moved, 30, (TopName){print_number, &key});
    top_keys_add(top, TOP_THROTTLED, START_S, &moved, 1, (TopName){print_number, &key});
    TopRow *rows = NULL;
    assert_int_equal(read_one(top, &NOW, &arena, &rows), 2);
    assert_int_equal(rows[0].range, 9);
    expect_row(&rows[0], "[7]", 30, 30);
    expect_row(&rows[1], "[7]", 10, 10);
    TopQuery query = NOW;
    query.has_range = true;
    query.range = 9;
    assert_int_equal(read_one(top, &query, &arena, &rows), 1);
    expect_row(&rows[0], "[7]", 30, 30);
    query.range = 8;
    assert_int_equal(read_one(top, &query, &arena, &rows), 0);
    query.has_range = false;
    query.container = 2;
    assert_int_equal(read_one(top, &query, &arena, &rows), 1);
    expect_row(&rows[0], "[7]", 20, 20);
    query.container = 3;
    assert_int_equal(read_one(top, &query, &arena, &rows), 0);
    query = NOW;
    query.kind = TOP_THROTTLED;
    assert_int_equal(read_one(top, &query, &arena, &rows), 1);
    expect_row(&rows[0], "[7]", 1, 1);
}

static void minutes_are_read_together_and_forgotten_when_they_are_over(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(top_keys_free) Top *top = top_keys_new(8, KEY);
    for (uint64_t minute = 0; minute < 20; minute++) {
        uint64_t now_s = START_S + minute * TOP_WINDOW_S;
        add(top, now_s, 1, 2);
        add(top, now_s + 59, minute + 100, 1);
        for (uint32_t windows = 0; windows < TOP_WINDOWS; windows++) {
            TopQuery query = {TOP_CHARGE, 1, now_s, windows, 100, false, 0};
            TopRow *rows = NULL;
            uint64_t seen = minute < windows ? minute + 1 : windows + 1;
            assert_int_equal(read_one(top, &query, &arena, &rows), 1 + seen);
            expect_row(&rows[0], "[1]", 2 * seen, 2 * seen);
        }
    }
    TopRow *rows = NULL;
    TopQuery later = {TOP_CHARGE, 1, START_S + 1000 * TOP_WINDOW_S, TOP_WINDOWS - 1, 100, false, 0};
    assert_int_equal(read_one(top, &later, &arena, &rows), 0);
    TopQuery beginning = {TOP_CHARGE, 1, 0, TOP_WINDOWS - 1, 100, false, 0};
    assert_int_equal(read_one(top, &beginning, &arena, &rows), 0);
}

static void a_name_is_printed_once_for_as_long_as_its_key_stays(void **state)
{
    (void)state;
    AUTO(top_keys_free) Top *top = top_keys_new(2, KEY);
    int printed = 0;
    for (int i = 0; i < 10; i++)
        add_to(top, 1, START_S, (Key){1, &printed}, 10);
    assert_int_equal(printed, 1);
    add_to(top, 1, START_S, (Key){2, &printed}, 1);
    add_to(top, 1, START_S, (Key){3, &printed}, 1); /* takes the place of 2 */
    add_to(top, 1, START_S, (Key){2, &printed}, 1); /* takes its place back */
    assert_int_equal(printed, 4);
}

static size_t print_long(const void *ctx, char out[TOP_TEXT_MAX], bool *is_cut)
{
    memset(out, *(const char *)ctx, TOP_TEXT_MAX);
    *is_cut = true;
    return TOP_TEXT_MAX;
}

static void long_keys_are_told_apart_by_all_of_their_bytes(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(top_keys_free) Top *top = top_keys_new(8, KEY);
    char epk[300];
    memset(epk, 'e', sizeof(epk));
    static const char lasts[] = {'a', 'b', 'c'};
    for (size_t i = 0; i < ARRAY_COUNT(lasts); i++) {
        char last = lasts[i];
        epk[sizeof(epk) - 1] = last;
        TopKey key = {1, 0, slice_make(epk, sizeof(epk))};
        top_keys_add(top, TOP_CHARGE, START_S, &key, (uint64_t)last, (TopName){print_long, &last});
    }
    TopRow *rows = NULL;
    assert_int_equal(read_one(top, &NOW, &arena, &rows), 3);
    assert_int_equal(rows[0].at_least, 'c');
    assert_int_equal(rows[0].text.len, TOP_TEXT_MAX);
    assert_int_equal(rows[0].text.ptr[99], 'c');
    assert_int_equal(rows[0].epk.len, TOP_EPK_MAX);
    assert_true(rows[0].is_cut);
}

static void an_empty_key_and_a_weight_of_nothing_are_counted(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(top_keys_free) Top *top = top_keys_new(1, KEY);
    TopKey key = {1, 0, SLICE_EMPTY};
    top_keys_add(top, TOP_CHARGE, START_S, &key, 0, (TopName){print_number, &(Key){.number = 5}});
    top_keys_add(top, TOP_CHARGE, START_S, &key, UINT64_MAX, (TopName){print_number, NULL});
    top_keys_add(top, TOP_CHARGE, START_S, &key, 1, (TopName){print_number, NULL});
    TopRow *rows = NULL;
    assert_int_equal(read_one(top, &NOW, &arena, &rows), 1);
    expect_row(&rows[0], "[5]", UINT64_MAX, UINT64_MAX);
    assert_int_equal(top_keys_read(NULL, 0, &NOW, &arena, &rows), 0);
}

/* Random streams against exact counts. */

enum { KEYS = 3000, TOPS = 3, MINUTES = 2, ADDS = 12000 };

typedef struct Stream {
    Random random;
    int skew; /* 0 if all keys are drawn equally often; a larger skew favours a few keys */
    uint64_t weight_max;
} Stream;

static uint64_t draw(Stream *stream)
{
    uint64_t bound = KEYS;
    for (int i = 0; i < stream->skew; i++)
        bound = 1 + random_below(&stream->random, bound);
    return random_below(&stream->random, bound);
}

typedef struct Exact {
    uint64_t weights[KEYS];
    uint64_t total;
    uint64_t bound; /* the sum over the sketches of their N / k */
} Exact;

static void fill(Top **tops, uint32_t entries, Stream *stream, Exact *exact)
{
    for (size_t t = 0; t < TOPS; t++) {
        for (uint64_t minute = 0; minute < MINUTES; minute++) {
            uint64_t total = 0;
            for (size_t i = 0; i < ADDS / (t + 1); i++) {
                uint64_t number = draw(stream);
                uint64_t weight = 1 + random_below(&stream->random, stream->weight_max);
                add(tops[t], START_S + minute * TOP_WINDOW_S, number, weight);
                exact->weights[number] += weight;
                total += weight;
            }
            exact->total += total;
            exact->bound += total / entries;
        }
    }
}

static void check(const Exact *exact, const TopRow *rows, size_t count)
{
    static bool found[KEYS];
    memset(found, 0, sizeof(found));
    uint64_t at_least = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t number = 0;
        memcpy(&number, rows[i].epk.ptr, 8);
        assert_true(number < KEYS);
        assert_false(found[number]); /* once each */
        found[number] = true;
        assert_true(rows[i].at_least <= exact->weights[number]);
        assert_true(rows[i].at_most >= exact->weights[number]);
        assert_true(rows[i].at_most - rows[i].at_least <= exact->bound);
        assert_true(i == 0 || rows[i - 1].at_least >= rows[i].at_least);
        char text[32];
        (void)snprintf(text, sizeof(text), "[%" PRIu64 "]", number);
        assert_true(slice_equal(rows[i].text, slice_from_cstr(text)));
        at_least += rows[i].at_least;
    }
    assert_true(at_least <= exact->total);
    for (size_t i = 0; i < KEYS; i++)
        assert_true(found[i] || exact->weights[i] <= exact->bound);
}

static void bounds_hold_for_random_streams_over_threads_and_minutes(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    static const uint32_t entries[] = {1, 2, 7, 64, 512};
    for (size_t e = 0; e < ARRAY_COUNT(entries); e++) {
        for (int skew = 0; skew < 4; skew++) {
            Stream stream = {.skew = skew, .weight_max = skew % 2 == 0 ? 1 : 2000};
            random_init(&stream.random, seed + e * 10 + (uint64_t)skew);
            AUTO(arena_done) Arena arena;
            arena_init(&arena, 1 << 16);
            Top *tops[TOPS];
            for (size_t t = 0; t < TOPS; t++)
                tops[t] = top_keys_new(entries[e], (HashKey){KEY.k0 ^ seed, KEY.k1 ^ t});
            AUTO(mem_free) void *memory = mem_alloc(sizeof(Exact));
            Exact *exact = memory;
            fill(tops, entries[e], &stream, exact);
            TopQuery query = {TOP_CHARGE, 1, START_S + TOP_WINDOW_S, 1, KEYS, false, 0};
            TopRow *rows = NULL;
            size_t count = top_keys_read((const Top *const *)tops, TOPS, &query, &arena, &rows);
            check(exact, rows, count);
            for (size_t t = 0; t < TOPS; t++)
                top_keys_free(tops[t]);
        }
    }
}

/* A reader beside a writer: what it sees is always one state of an entry. */

typedef struct Writer {
    Top *top;
    _Atomic bool is_over;
} Writer;

static void *write_many(void *arg)
{
    Writer *writer = arg;
    Random random;
    random_init(&random, 3);
    for (uint64_t i = 0; i < 50000; i++) {
        uint64_t now_s = START_S + i / 10000 * TOP_WINDOW_S;
        add(writer->top, now_s, i % 3 == 0 ? 1 : random_below(&random, 200), 1);
    }
    atomic_store(&writer->is_over, true);
    return NULL;
}

static void a_reader_sees_whole_entries_while_they_change(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    AUTO(top_keys_free) Top *top = top_keys_new(16, KEY);
    Writer writer = {.top = top};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_many, &writer), 0);
    size_t seen = 0;
    bool is_over = false;
    for (uint64_t minute = 0; !is_over; minute = (minute + 1) % 5) {
        is_over = atomic_load(&writer.is_over);
        arena_reset(&arena);
        TopQuery query = {TOP_CHARGE, 1, START_S + minute * TOP_WINDOW_S, 1, 100, false, 0};
        TopRow *rows = NULL;
        size_t count = read_one(top, &query, &arena, &rows);
        for (size_t i = 0; i < count; i++) {
            uint64_t number = 0;
            memcpy(&number, rows[i].epk.ptr, 8);
            char text[32];
            (void)snprintf(text, sizeof(text), "[%" PRIu64 "]", number);
            assert_true(slice_equal(rows[i].text, slice_from_cstr(text)));
            assert_int_equal(rows[i].range, number % 4);
            assert_true(rows[i].at_least <= 20000);
        }
        seen += count;
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(seen > 0);
}

static void more_threads_have_smaller_sketches(void **state)
{
    (void)state;
    static const struct {
        uint32_t threads, entries;
    } rows[] = {{0, 512}, {1, 512}, {2, 512}, {4, 256}, {8, 128}, {64, 128}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(top_keys_entries(rows[i].threads), rows[i].entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_keys_are_counted_exactly_and_ordered_by_weight),
        cmocka_unit_test(a_key_takes_the_place_of_the_lightest_when_it_is_not_lighter),
        cmocka_unit_test(containers_and_kinds_and_ranges_are_told_apart),
        cmocka_unit_test(minutes_are_read_together_and_forgotten_when_they_are_over),
        cmocka_unit_test(a_name_is_printed_once_for_as_long_as_its_key_stays),
        cmocka_unit_test(long_keys_are_told_apart_by_all_of_their_bytes),
        cmocka_unit_test(an_empty_key_and_a_weight_of_nothing_are_counted),
        cmocka_unit_test(bounds_hold_for_random_streams_over_threads_and_minutes),
        cmocka_unit_test(a_reader_sees_whole_entries_while_they_change),
        cmocka_unit_test(more_threads_have_smaller_sketches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
