/* index_reader_test.c - reading an index that is in a store, against a model that is a list. */
#include "index/index_reader.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/testing.h"
#include "store/memory/memory_store.h"

#include <stdlib.h>

enum { SPACE = 7, PATHS = 3, VALUES_MAX = 60, ITEMS_MAX = 400 };

static const StoreMerge MERGE = {
    .kind = TERM_KIND,
    .tail_bytes = TERM_CHUNK_BYTES,
    .merge = set_merge,
    .is_empty = set_value_is_empty,
};

/* Neighbours in key order, and the last path there is. */
static const TermPath PATH[PATHS] = {41, 42, UINT64_MAX};

/* ---- an index and its model ---- */

typedef struct ModelValue {
    Slice bytes; /* sorted */
    uint64_t numbers[ITEMS_MAX];
    size_t count; /* of the sorted numbers; 0 if all of them were removed */
} ModelValue;

typedef struct Index {
    Arena arena;
    Store *store;
    StoreSnapshot *snapshot;
    ModelValue values[VALUES_MAX]; /* of PATH[1] */
    size_t count;
    IndexBudget budget;
    IndexReader reader;
} Index;

static void index_close(Index *index)
{
    if (index == NULL)
        return;
    store_snapshot_close(index->snapshot);
    store_close(index->store);
    arena_done(&index->arena);
    mem_free(index);
}
DEFINE_AUTO(Index *, index_close)

static Index *index_new(void)
{
    Index *index = MEM_NEW(Index);
    arena_init(&index->arena, 1 << 16);
    memory_store_open_with(&MERGE, &index->store);
    index->budget = (IndexBudget){.keys_left = UINT64_MAX, .bytes_left = SIZE_MAX};
    return index;
}

/* From now on the index is read as it is. */
static IndexReader *index_read(Index *index)
{
    index->snapshot = store_snapshot_open(index->store, STORE_READ_ANY);
    index->reader = (IndexReader){.store = index->store,
                                  .snapshot = index->snapshot,
                                  .space = SPACE,
                                  .key = {1, 2},
                                  .budget = &index->budget};
    return &index->reader;
}

static void write_change(StoreTxn *txn, TermPath path, Slice value, uint64_t number, bool is_add)
{
    AUTO(buf_done) Buf key;
    AUTO(buf_done) Buf operand;
    buf_init(&key, STORE_KEY_BYTES_MAX);
    buf_init(&operand, 64);
    uint16_t low = (uint16_t)number;
    term_key(&key, path, value, number >> SET_CHUNK_BITS);
    set_operand(&operand, &low, is_add, &low, !is_add);
    store_txn_merge(txn, SPACE, buf_view(&key), buf_view(&operand));
}

static void add_now(Index *index, TermPath path, Slice value, uint64_t number)
{
    StoreTxn *txn = store_txn_begin(index->store);
    write_change(txn, path, value, number, true);
    assert_ok(store_txn_commit_wait(txn, err));
}

static Slice random_value(Random *random, Arena *arena)
{
    static const char *const TEXTS[] = {"", "a", "ab", "abc", "ac", "b", "\xFF", "\x01"};
    AUTO(buf_done) Buf out;
    buf_init(&out, TERM_VALUE_BYTES_MAX);
    bool exact = true;
    switch (random_below(random, 5)) {
    case 0: {
        static const TermTag TAGS[] = {TERM_PRESENT, TERM_NULL,  TERM_FALSE,
                                       TERM_TRUE,    TERM_ARRAY, TERM_OBJECT};
        term_put_tag(&out, TAGS[random_below(random, ARRAY_COUNT(TAGS))]);
        break;
    }
    case 1:
    case 2:
        term_put_number(&out, (double)random_below(random, 30) - 15, &exact);
        break;
    case 3:
        term_put_string(&out, slice_from_cstr(TEXTS[random_below(random, ARRAY_COUNT(TEXTS))]),
                        &exact);
        break;
    default: {
        char zeros[TERM_STRING_BYTES + 2] = {0};
        term_put_string(&out, slice_make(zeros, (size_t)random_below(random, sizeof(zeros) + 1)),
                        &exact);
    }
    }
    return arena_copy(arena, buf_view(&out));
}

static int compare_values(const void *a, const void *b)
{
    return slice_compare(((const ModelValue *)a)->bytes, ((const ModelValue *)b)->bytes);
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void sort_values(Index *index)
{
    qsort(index->values, index->count, sizeof(ModelValue), compare_values);
    size_t kept = 0;
    for (size_t i = 0; i < index->count; i++) {
        if (kept == 0 || !slice_equal(index->values[kept - 1].bytes, index->values[i].bytes))
            index->values[kept++] = index->values[i];
    }
    index->count = kept;
}

/* Highs that make the chunk bytes after a value as small and as large as they get. */
static uint64_t random_number(Random *random)
{
    static const uint64_t HIGHS[] = {0, 1, 255, 256, 0x10FFFFFF, (UINT64_C(1) << 48) - 1};
    return HIGHS[random_below(random, ARRAY_COUNT(HIGHS))] << SET_CHUNK_BITS |
           random_below(random, 50);
}

static void fill_numbers(Random *random, StoreTxn *txn, ModelValue *value)
{
    if (random_below(random, 10) == 0) { /* a value that no item has any more */
        write_change(txn, PATH[1], value->bytes, 3, false);
        return;
    }
    size_t count = random_below(random, 3) == 0 ? ITEMS_MAX : 2;
    for (size_t i = 0; i < count; i++)
        value->numbers[i] = random_number(random);
    qsort(value->numbers, count, sizeof(uint64_t), compare_numbers);
    for (size_t i = 0; i < count; i++) {
        if (value->count > 0 && value->numbers[value->count - 1] == value->numbers[i])
            continue;
        value->numbers[value->count++] = value->numbers[i];
        write_change(txn, PATH[1], value->bytes, value->numbers[i], true);
    }
}

static Index *index_random(Random *random)
{
    Index *index = index_new();
    index->count = (size_t)random_below(random, VALUES_MAX) + 1;
    for (size_t i = 0; i < index->count; i++)
        index->values[i].bytes = random_value(random, &index->arena);
    sort_values(index);
    StoreTxn *txn = store_txn_begin(index->store);
    for (size_t i = 0; i < index->count; i++) {
        fill_numbers(random, txn, &index->values[i]);
        write_change(txn, PATH[0], index->values[i].bytes, 1000 + i, true);
        write_change(txn, PATH[2], index->values[i].bytes, 2000 + i, true);
    }
    store_txn_put(txn, SPACE, SLICE("\x0F"), SLICE("x"));
    store_txn_put(txn, SPACE, SLICE("\x11"), SLICE("x"));
    assert_ok(store_txn_commit_wait(txn, err));
    StoreTxn *neighbour = store_txn_begin(index->store);
    store_txn_put(neighbour, SPACE + 1, SLICE("\x0F"), SLICE("x"));
    assert_ok(store_txn_commit_wait(neighbour, err));
    (void)index_read(index);
    return index;
}

static void expect_numbers(const NumberSet *set, const uint64_t *numbers, size_t count)
{
    assert_true(set->count == count);
    SetWalk walk = set_walk_up(set, 0);
    for (size_t i = 0; i < count; i++) {
        uint64_t number = 0;
        assert_true(set_walk_next(&walk, &number));
        assert_true(number == numbers[i]);
    }
}

static bool is_inside(const IndexRange *range, Slice value)
{
    return slice_compare(value, range->from) >= 0 &&
           (range->to.len == 0 || slice_compare(value, range->to) < 0);
}

/* Ends at values that are there, at values that are not, after values, at prefixes, and open. */
static IndexRange random_range(Random *random, Arena *arena)
{
    Slice ends[2] = {SLICE_EMPTY, SLICE_EMPTY};
    for (int i = 0; i < 2; i++) {
        uint64_t dice = random_below(random, 4);
        if (dice == 0)
            continue;
        AUTO(buf_done) Buf bytes;
        buf_init(&bytes, TERM_VALUE_BYTES_MAX);
        buf_slice(&bytes, random_value(random, arena));
        if (dice == 1 && bytes.ptr[0] == TERM_STRING)
            bytes.len -= 2; /* of all strings that begin so */
        if (dice == 2)
            term_after(&bytes);
        ends[i] = arena_copy(arena, buf_view(&bytes));
    }
    return (IndexRange){.path = PATH[1], .from = ends[0], .to = ends[1]};
}

/* ---- sets ---- */

static void ranges_and_values_read_like_the_model(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 4711);
    for (int round = 0; round < 60; round++) {
        AUTO(index_close) Index *index = index_random(&random);
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1 << 16);
        for (int i = 0; i < 20; i++) {
            IndexRange range = random_range(&random, &arena);
            SetBuilder *wanted = set_builder_new(&arena);
            for (size_t k = 0; k < index->count; k++) {
                const ModelValue *value = &index->values[k];
                for (size_t n = 0; is_inside(&range, value->bytes) && n < value->count; n++)
                    set_builder_add(wanted, value->numbers[n]);
            }
            NumberSet expected, found;
            set_builder_finish(wanted, &expected);
            bool complete = false;
            assert_ok(index_read_range(&index->reader, range, &arena, &found, &complete, err));
            assert_true(complete);
            assert_true(found.count == expected.count);
            assert_true(set_and_count(&found, &expected) == expected.count);

            const ModelValue *value = &index->values[random_below(&random, index->count)];
            assert_ok(index_read_value(&index->reader, PATH[1], value->bytes, &arena, &found,
                                       &complete, err));
            assert_true(complete);
            expect_numbers(&found, value->numbers, value->count);

            NumberSet within;
            set_and(&arena, &found, &expected, &within); /* of the range's numbers */
            assert_ok(index_read_value_within(&index->reader, PATH[1], value->bytes, &expected,
                                              &arena, &found, &complete, err));
            assert_true(complete);
            assert_true(found.count == within.count);
            assert_true(set_and_count(&found, &within) == within.count);
        }
        NumberSet none;
        bool complete = false;
        assert_ok(
            index_read_value(&index->reader, 99, SLICE("\x05"), &arena, &none, &complete, err));
        assert_true(complete);
        assert_int_equal(none.count, 0);
    }
}

static void a_snapshot_is_what_is_read(void **state)
{
    (void)state;
    AUTO(index_close) Index *index = index_new();
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    add_now(index, PATH[1], SLICE("\x05"), 1);
    IndexReader *reader = index_read(index);
    add_now(index, PATH[1], SLICE("\x05"), 2);
    NumberSet set;
    bool complete = false;
    assert_ok(index_read_value(reader, PATH[1], SLICE("\x05"), &arena, &set, &complete, err));
    assert_int_equal(set.count, 1);
    reader->snapshot = NULL;
    assert_ok(index_read_value(reader, PATH[1], SLICE("\x05"), &arena, &set, &complete, err));
    assert_int_equal(set.count, 2);
}

/* Ten values of one chunk each. */
static Index *index_of_ten(void)
{
    Index *index = index_new();
    for (uint64_t i = 0; i < 10; i++) {
        AUTO(buf_done) Buf value;
        buf_init(&value, TERM_VALUE_BYTES_MAX);
        bool exact = true;
        term_put_number(&value, (double)i, &exact);
        add_now(index, PATH[1], buf_view(&value), 100 + i);
    }
    (void)index_read(index);
    return index;
}

static void budgets_end_a_read_without_failing_it(void **state)
{
    (void)state;
    AUTO(index_close) Index *index = index_of_ten();
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    static const struct {
        IndexBudget budget;
        bool complete;
        uint64_t keys_left;
    } ROWS[] = {
        {{.keys_left = 10, .bytes_left = 100000}, true, 0},
        {{.keys_left = 11, .bytes_left = 100000}, true, 1},
        {{.keys_left = 9, .bytes_left = 100000}, false, 0},
        {{.keys_left = 0, .bytes_left = 100000}, false, 0},
        {{.keys_left = 10, .bytes_left = 10}, false, 10},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        index->budget = ROWS[i].budget;
        index->reader.keys_read = 0;
        NumberSet set;
        bool complete = !ROWS[i].complete;
        assert_ok(index_read_range(&index->reader, (IndexRange){.path = PATH[1]}, &arena, &set,
                                   &complete, err));
        assert_int_equal(complete, ROWS[i].complete);
        assert_int_equal(set.count, ROWS[i].complete ? 10 : 0);
        assert_int_equal(index->budget.keys_left, ROWS[i].keys_left);
        assert_int_equal(index->reader.keys_read,
                         ROWS[i].budget.keys_left - index->budget.keys_left);
        assert_true(index->budget.bytes_left < ROWS[i].budget.bytes_left);
    }
}

static void time_is_part_of_the_budget(void **state)
{
    (void)state;
    AUTO(index_close) Index *index = index_of_ten();
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    FakeClock clock;
    fake_clock_init(&clock, 5000);
    static const struct {
        uint64_t deadline_us;
        bool complete;
    } ROWS[] = {{0, true}, {5001, true}, {5000, false}, {1, false}};
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        index->budget = (IndexBudget){.keys_left = 1024,
                                      .bytes_left = 100000,
                                      .clock = &clock.clock,
                                      .deadline_us = ROWS[i].deadline_us};
        NumberSet set;
        bool complete = !ROWS[i].complete;
        assert_ok(index_read_range(&index->reader, (IndexRange){.path = PATH[1]}, &arena, &set,
                                   &complete, err));
        assert_int_equal(complete, ROWS[i].complete);
        assert_int_equal(set.count, ROWS[i].complete ? 10 : 0);
    }
}

static void estimates_are_exact_when_there_are_few(void **state)
{
    (void)state;
    AUTO(index_close) Index *index = index_of_ten();
    IndexRange range = {.path = PATH[1]};
    IndexEstimate estimate;
    assert_ok(index_estimate(&index->reader, range, 10, &estimate, err));
    assert_true(estimate.is_exact);
    assert_int_equal(estimate.keys, 10);
    assert_int_equal(estimate.items, 10);
    assert_ok(index_estimate(&index->reader, range, 9, &estimate, err));
    assert_false(estimate.is_exact);
    assert_in_range(estimate.keys, 10, 20);
    assert_in_range(estimate.items, 10, 20);
    assert_ok(index_estimate(&index->reader, range, 0, &estimate, err));
    assert_false(estimate.is_exact);
    assert_in_range(estimate.keys, 2, 40);
    index->budget.keys_left = 4;
    assert_ok(index_estimate(&index->reader, range, 100, &estimate, err));
    assert_false(estimate.is_exact);
    assert_in_range(estimate.keys, 5, 20);
    range.path = 99;
    assert_ok(index_estimate(&index->reader, range, 0, &estimate, err));
    assert_true(estimate.is_exact);
    assert_int_equal(estimate.keys, 0);
}

/* Values with the samples that a writer gives them; value 'i' has i % 3 + 1 items. */
static void add_values(Index *index, int count)
{
    StoreTxn *txn = store_txn_begin(index->store);
    for (int i = 0; i < count; i++) {
        AUTO(buf_done) Buf value;
        buf_init(&value, TERM_VALUE_BYTES_MAX);
        bool exact = true;
        term_put_number(&value, i, &exact);
        unsigned samples = term_samples(buf_view(&value));
        for (uint64_t item = 0; item <= (uint64_t)i % 3; item++) {
            write_change(txn, PATH[1], buf_view(&value), (uint64_t)i + item, true);
            for (unsigned k = 0; k < samples; k++)
                write_change(txn, term_path_sample(PATH[1], k), buf_view(&value),
                             (uint64_t)i + item, true);
        }
    }
    assert_ok(store_txn_commit_wait(txn, err));
}

static void longer_ranges_are_estimated_from_samples(void **state)
{
    (void)state;
    enum { VALUES = 60000 };
    AUTO(index_close) Index *index = index_new();
    add_values(index, VALUES);
    IndexReader *reader = index_read(index);
    static const struct {
        double from, to;
    } ROWS[] = {{0, VALUES}, {0, 300},       {100, 1000},    {5000, 9000},
                {0, 20000},  {30000, 60000}, {59000, 60000}, {12345, 45678}};
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(buf_done) Buf from;
        AUTO(buf_done) Buf to;
        buf_init(&from, TERM_VALUE_BYTES_MAX);
        buf_init(&to, TERM_VALUE_BYTES_MAX);
        bool exact = true;
        term_put_number(&from, ROWS[i].from, &exact);
        term_put_number(&to, ROWS[i].to, &exact);
        IndexRange range = {PATH[1], buf_view(&from), buf_view(&to)};
        IndexEstimate estimate;
        uint64_t before = reader->keys_read;
        assert_ok(index_estimate(reader, range, 64, &estimate, err));
        uint64_t keys = (uint64_t)(ROWS[i].to - ROWS[i].from);
        print_message("%llu: %llu keys, %llu items\n", (unsigned long long)keys,
                      (unsigned long long)estimate.keys, (unsigned long long)estimate.items);
        assert_false(estimate.is_exact);
        assert_in_range(estimate.keys, keys / 2, keys * 2);
        assert_in_range(estimate.items, keys, keys * 4);
        assert_true(reader->keys_read - before <= 64 * (1 + TERM_SAMPLES));
    }
}

/* ---- walks ---- */

/* Walks on to the end; the first value is one of the model's at 'at' or further. */
static void expect_walk(IndexWalk *walk, const Index *index, const IndexRange *range, size_t at,
                        bool is_down)
{
    while (true) {
        while (at < index->count &&
               (index->values[at].count == 0 || !is_inside(range, index->values[at].bytes)))
            at = is_down ? at - 1 : at + 1; /* below 0 is above 'count', too */
        Slice value;
        NumberSet items;
        bool found = false;
        bool complete = false;
        assert_ok(index_walk_next(walk, &value, &items, &found, &complete, err));
        assert_true(complete);
        assert_int_equal(found, at < index->count);
        if (!found)
            return;
        assert_true(slice_equal(value, index->values[at].bytes));
        expect_numbers(&items, index->values[at].numbers, index->values[at].count);
        at = is_down ? at - 1 : at + 1;
    }
}

static void walks_go_up_and_down_like_the_model(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 815);
    for (int round = 0; round < 60; round++) {
        AUTO(index_close) Index *index = index_random(&random);
        for (int i = 0; i < 10; i++) {
            bool is_down = random_below(&random, 2) == 0;
            IndexRange range = random_range(&random, &index->arena);
            AUTO(index_walk_close) IndexWalk *walk = NULL;
            assert_ok(index_walk_open(&index->reader, range, is_down, &walk, err));
            expect_walk(walk, index, &range, is_down ? index->count - 1 : 0, is_down);
            expect_walk(walk, index, &range, index->count, is_down); /* and stays there */

            /* To a value that may be there, or not, or not even in the range. */
            Slice to = random_value(&random, &index->arena);
            size_t at = 0;
            while (at < index->count && slice_compare(index->values[at].bytes, to) < 0)
                at++;
            if (is_down && (at == index->count || !slice_equal(index->values[at].bytes, to)))
                at--;
            index_walk_seek(walk, to);
            expect_walk(walk, index, &range, at, is_down);
        }
    }
}

static void walks_go_on_when_there_is_budget_again(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 42);
    for (int round = 0; round < 20; round++) {
        AUTO(index_close) Index *index = index_random(&random);
        bool is_down = round % 2 == 0;
        AUTO(index_walk_close) IndexWalk *walk = NULL;
        assert_ok(
            index_walk_open(&index->reader, (IndexRange){.path = PATH[1]}, is_down, &walk, err));
        size_t seen = 0;
        size_t pauses = 0;
        size_t wanted = 0;
        for (size_t i = 0; i < index->count; i++)
            wanted += index->values[i].count > 0;
        size_t at = is_down ? index->count - 1 : 0;
        bool complete = false;
        while (true) {
            Slice value;
            NumberSet items;
            bool found = false;
            assert_ok(index_walk_next(walk, &value, &items, &found, &complete, err));
            if (!found && complete)
                break;
            if (!found) {
                pauses++;
                index->budget.keys_left = 6 + random_below(&random, 3); /* chunks of one value */
                continue;
            }
            while (index->values[at].count == 0)
                at = is_down ? at - 1 : at + 1;
            assert_true(slice_equal(value, index->values[at].bytes));
            expect_numbers(&items, index->values[at].numbers, index->values[at].count);
            at = is_down ? at - 1 : at + 1;
            if (seen++ == 0)
                index->budget.keys_left = 0;
        }
        assert_int_equal(seen, wanted);
        assert_true(wanted < 2 || pauses > 0);
    }
}

static void a_set_beyond_the_budget_is_not_given(void **state)
{
    (void)state;
    AUTO(index_close) Index *index = index_new();
    for (uint64_t i = 0; i < 200; i++)
        add_now(index, PATH[1], SLICE("\x05"), i << SET_CHUNK_BITS);
    IndexReader *reader = index_read(index);
    index->budget.bytes_left = 1000;
    AUTO(index_walk_close) IndexWalk *walk = NULL;
    assert_ok(index_walk_open(reader, (IndexRange){.path = PATH[1]}, false, &walk, err));
    Slice value;
    NumberSet items;
    bool found = true;
    bool complete = true;
    assert_ok(index_walk_next(walk, &value, &items, &found, &complete, err));
    assert_false(found);
    assert_false(complete);
    index->budget.bytes_left = 100000;
    assert_ok(index_walk_next(walk, &value, &items, &found, &complete, err));
    assert_true(found);
    assert_true(complete);
    assert_int_equal(items.count, 200);
}

/* ---- damage and faults ---- */

/* A store without merging takes any bytes as a value. */
static void damage_is_an_error(void **state)
{
    (void)state;
    static const struct {
        Slice key, value;
    } ROWS[] = {
        {SLICE_INIT("\x10\0\0\0\0\0\0\0\x2A\x05\0\0\0\0\0\0"), SLICE_INIT("\0\2\0\1\0")},
        {SLICE_INIT("\x10\0\0\0\0\0\0\0\x2A\x05\0\0\0\0\0\0"), SLICE_INIT("\2\0\0")},
        {SLICE_INIT("\x10\0\0\0\0\0\0\0\x2A\x05\0\0\0"), SLICE_INIT("\0\1\0")},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        Store *store = NULL;
        memory_store_open(&store);
        StoreTxn *txn = store_txn_begin(store);
        store_txn_put(txn, SPACE, ROWS[i].key, ROWS[i].value);
        assert_ok(store_txn_commit_wait(txn, err));
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        IndexBudget budget = {.keys_left = 100, .bytes_left = 100000};
        IndexReader reader = {.store = store, .space = SPACE, .budget = &budget};
        IndexRange range = {.path = 0x2A};
        NumberSet set;
        bool found = false;
        bool complete = false;
        Error err;
        assert_int_equal(index_read_range(&reader, range, &arena, &set, &complete, &err),
                         STATUS_CORRUPT);
        IndexWalk *walk = NULL;
        assert_int_equal(index_walk_open(&reader, range, false, &walk, &err), STATUS_OK);
        Slice value;
        assert_int_equal(index_walk_next(walk, &value, &set, &found, &complete, &err),
                         STATUS_CORRUPT);
        index_walk_close(walk);
        if (i > 0) { /* an estimate does not look at numbers */
            IndexEstimate estimate;
            assert_int_equal(index_estimate(&reader, range, 10, &estimate, &err), STATUS_CORRUPT);
        }
        store_close(store);
    }
}

static void chunks_without_numbers_are_passed_over(void **state)
{
    (void)state;
    Store *store = NULL;
    memory_store_open(&store);
    StoreTxn *txn = store_txn_begin(store);
    store_txn_put(txn, SPACE, SLICE("\x10\0\0\0\0\0\0\0\x2A\x05\0\0\0\0\0\0"), SLICE_EMPTY);
    store_txn_put(txn, SPACE, SLICE("\x10\0\0\0\0\0\0\0\x2A\x06\0\0\0\0\0\0"), SLICE("\0"));
    store_txn_put(txn, SPACE, SLICE("\x10\0\0\0\0\0\0\0\x2A\x06\0\0\0\0\0\1"), SLICE("\0\7\0"));
    store_txn_put(txn, SPACE, SLICE("\x10\0\0\0\0\0\0\0\x2A\x07\0\0\0\0\0\0"), SLICE_EMPTY);
    assert_ok(store_txn_commit_wait(txn, err));
    IndexBudget budget = {.keys_left = 100, .bytes_left = 100000};
    IndexReader reader = {.store = store, .space = SPACE, .budget = &budget};
    for (int is_down = 0; is_down < 2; is_down++) {
        AUTO(index_walk_close) IndexWalk *walk = NULL;
        assert_ok(index_walk_open(&reader, (IndexRange){.path = 0x2A}, is_down, &walk, err));
        Slice value;
        NumberSet items;
        bool found = false;
        bool complete = false;
        assert_ok(index_walk_next(walk, &value, &items, &found, &complete, err));
        assert_true(found);
        assert_true(slice_equal(value, SLICE("\x06")));
        assert_int_equal(items.chunk_count, 1);
        assert_true(set_has(&items, 0x10007));
        assert_ok(index_walk_next(walk, &value, &items, &found, &complete, err));
        assert_false(found);
        assert_true(complete);
    }
    store_close(store);
}

static void faults_of_the_store_are_passed_on(void **state)
{
    (void)state;
    AUTO(index_close) Index *index = index_of_ten();
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    IndexRange range = {.path = PATH[1]};
    AUTO(index_walk_close) IndexWalk *walk = NULL;
    assert_ok(index_walk_open(&index->reader, range, true, &walk, err));
    NumberSet set;
    Slice value;
    IndexEstimate estimate;
    bool found = false;
    bool complete = false;
    Error failure;
    memory_store_fail_cursor_steps(index->store, 3, STATUS_IO);
    assert_int_equal(index_read_range(&index->reader, range, &arena, &set, &complete, &failure),
                     STATUS_IO);
    assert_int_equal(index_estimate(&index->reader, range, 5, &estimate, &failure), STATUS_IO);
    assert_int_equal(index_walk_next(walk, &value, &set, &found, &complete, &failure), STATUS_IO);
    index_walk_seek(walk, SLICE("\xFF"));
    assert_ok(index_walk_next(walk, &value, &set, &found, &complete, err));
    assert_true(found);
    assert_true(set_has(&set, 109));
}

static void a_seek_to_more_than_a_value_can_be_is_harmless(void **state)
{
    (void)state;
    AUTO(index_close) Index *index = index_of_ten();
    AUTO(mem_free) void *large = mem_alloc(1 << 20);
    memset(large, 0x08, 1 << 20);
    for (int is_down = 0; is_down < 2; is_down++) {
        AUTO(index_walk_close) IndexWalk *walk = NULL;
        assert_ok(
            index_walk_open(&index->reader, (IndexRange){.path = PATH[1]}, is_down, &walk, err));
        index_walk_seek(walk, slice_make(large, 1 << 20));
        Slice value;
        NumberSet items;
        bool found = false;
        bool complete = false;
        assert_ok(index_walk_next(walk, &value, &items, &found, &complete, err));
        assert_true(complete);
        assert_int_equal(found, !is_down); /* it is a small negative number */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_and_values_read_like_the_model),
        cmocka_unit_test(a_snapshot_is_what_is_read),
        cmocka_unit_test(budgets_end_a_read_without_failing_it),
        cmocka_unit_test(time_is_part_of_the_budget),
        cmocka_unit_test(estimates_are_exact_when_there_are_few),
        cmocka_unit_test(longer_ranges_are_estimated_from_samples),
        cmocka_unit_test(walks_go_up_and_down_like_the_model),
        cmocka_unit_test(walks_go_on_when_there_is_budget_again),
        cmocka_unit_test(a_set_beyond_the_budget_is_not_given),
        cmocka_unit_test(damage_is_an_error),
        cmocka_unit_test(chunks_without_numbers_are_passed_over),
        cmocka_unit_test(faults_of_the_store_are_passed_on),
        cmocka_unit_test(a_seek_to_more_than_a_value_can_be_is_harmless),
    };
    return cmocka_run_group_tests_name("the index reader", tests, NULL, NULL);
}
