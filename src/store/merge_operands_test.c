/* merge_operands_test.c - keys that are written as operands: what store.h promises, on every
 * engine.
 *
 * The tests' merge (store_testing_int.h) makes sets of bytes, for which the order of operands
 * matters.
 */
#include "store/store_testing_int.h"

#include "base/latch.h"
#include "base/random.h"

#include <pthread.h>
#include <stdatomic.h>

static StoreCursor *whole(Store *store, const StoreSnapshot *snapshot, StoreSpace space)
{
    return store_cursor_open(store, snapshot, space, SLICE_EMPTY, SLICE_EMPTY);
}

static void operands_are_a_value_after_their_commit(Store *store)
{
    merge_now(store, 2, "~k", "+z");
    StoreTxn *txn = store_txn_begin(store);
    store_txn_merge(txn, 1, SLICE("~k"), SLICE("+b"));
    store_txn_merge(txn, 1, SLICE("~k"), SLICE("+a"));
    store_txn_put(txn, 1, SLICE("plain"), SLICE("v"));
    expect_txn_key(txn, 1, "~k", NULL); /* own reads do not see operands */
    expect_key(store, NULL, 1, "~k", NULL);
    commit_now(txn);
    expect_key(store, NULL, 1, "~k", "ab");
    expect_key(store, NULL, 2, "~k", "z");
    expect_key(store, NULL, 1, "plain", "v");
    expect_key(store, NULL, 1, "~", NULL);
    merge_now(store, 1, "~k", "+c"); /* a transaction of nothing else */
    expect_key(store, NULL, 1, "~k", "abc");
    AUTO(store_txn_abort) StoreTxn *reader = store_txn_begin(store);
    expect_txn_key(reader, 1, "~k", "abc");
}

static void operands_apply_in_the_order_they_were_written(Store *store)
{
    StoreTxn *txn = store_txn_begin(store);
    static const char *const operands[] = {"+a+b", "-a", "+c", "-c", "+c", "-b", "-x"};
    for (size_t i = 0; i < ARRAY_COUNT(operands); i++)
        store_txn_merge(txn, 1, SLICE("~k"), slice_from_cstr(operands[i]));
    commit_now(txn);
    expect_key(store, NULL, 1, "~k", "c");
    merge_now(store, 1, "~k", "-c+d");
    merge_now(store, 1, "~k", "+c");
    expect_key(store, NULL, 1, "~k", "cd");
}

static void an_operand_may_be_empty_and_bytes_may_be_any(Store *store)
{
    StoreTxn *txn = store_txn_begin(store);
    store_txn_merge(txn, 1, SLICE("~\0\xFF"), SLICE("+\0+\xFF"));
    store_txn_merge(txn, 1, SLICE("~"), SLICE("+x"));
    store_txn_merge(txn, 1, SLICE("~\0\xFF"), SLICE(""));
    commit_now(txn);
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(store_get(store, NULL, 1, SLICE("~\0\xFF"), STORE_READ_ANY, &value, &found, err));
    assert_int_equal(found, STORE_FOUND);
    assert_slice(value.data, SLICE("\0\xFF"));
    expect_key(store, NULL, 1, "~", "x");
}

static void rolling_back_takes_operands_away(Store *store)
{
    StoreTxn *txn = store_txn_begin(store);
    store_txn_merge(txn, 1, SLICE("~k"), SLICE("+a"));
    size_t one = store_txn_bytes(txn);
    assert_true(one >= 4 + sizeof(StoreSpace));
    store_txn_savepoint(txn);
    store_txn_merge(txn, 1, SLICE("~k"), SLICE("+b"));
    assert_int_equal(store_txn_bytes(txn), 2 * one);
    store_txn_savepoint(txn);
    store_txn_merge(txn, 1, SLICE("~k"), SLICE("-a"));
    store_txn_merge(txn, 1, SLICE("~other"), SLICE("+a"));
    store_txn_rollback(txn);
    assert_int_equal(store_txn_bytes(txn), 2 * one);
    store_txn_savepoint(txn);
    store_txn_merge(txn, 1, SLICE("~k"), SLICE("+c"));
    store_txn_release(txn);
    store_txn_savepoint(txn);
    store_txn_merge(txn, 1, SLICE("~k"), SLICE("+d"));
    store_txn_rollback(txn);
    store_txn_savepoint(txn); /* left over: it changes nothing */
    commit_now(txn);
    expect_walk(whole(store, NULL, 1), true, "~k=abc");

    txn = store_txn_begin(store);
    store_txn_savepoint(txn);
    store_txn_merge(txn, 1, SLICE("~k"), SLICE("+z"));
    store_txn_rollback(txn);
    assert_int_equal(store_txn_bytes(txn), 0);
    commit_now(txn);
    txn = store_txn_begin(store);
    store_txn_merge(txn, 1, SLICE("~k"), SLICE("+z"));
    store_txn_abort(txn);
    expect_key(store, NULL, 1, "~k", "abc");
}

static void snapshots_and_cursors_keep_the_value_of_their_moment(Store *store)
{
    merge_now(store, 1, "~k", "+a");
    AUTO(store_snapshot_close) StoreSnapshot *first = store_snapshot_open(store, STORE_READ_ANY);
    merge_now(store, 1, "~k", "+b");
    AUTO(store_snapshot_close) StoreSnapshot *second = store_snapshot_open(store, STORE_READ_ANY);
    StoreCursor *cursor = whole(store, NULL, 1);
    AUTO(store_value_release) StoreValue held = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(store_get(store, NULL, 1, SLICE("~k"), STORE_READ_ANY, &held, &found, err));
    merge_now(store, 1, "~k", "-a+c");
    merge_now(store, 1, "~l", "+x");
    expect_key(store, first, 1, "~k", "a");
    expect_key(store, first, 1, "~l", NULL);
    expect_key(store, second, 1, "~k", "ab");
    expect_key(store, NULL, 1, "~k", "bc");
    expect_walk(whole(store, first, 1), false, "~k=a");
    expect_walk(cursor, true, "~k=ab");
    expect_walk(whole(store, NULL, 1), true, "~k=bc ~l=x");
    assert_slice(held.data, SLICE("ab"));
}

static void cursors_see_values_in_both_directions(Store *store)
{
    put_now(store, 1, "a", "v");
    put_now(store, 1, "\x7F", "v");
    for (const char *c = "dbca"; *c != '\0'; c++) {
        char key[3] = {'~', *c, 0}, operand[5] = {'+', *c, '+', 'z', 0};
        merge_now(store, 1, key, operand);
        merge_now(store, 1, key, "+0");
    }
    expect_walk(whole(store, NULL, 1), true, "a=v ~a=0az ~b=0bz ~c=0cz ~d=0dz \x7F=v");
    expect_walk(whole(store, NULL, 1), false, "\x7F=v ~d=0dz ~c=0cz ~b=0bz ~a=0az a=v");
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(store, NULL, 1, SLICE("~b"), SLICE("~d"));
    expect_step(cursor, true, "~b=0bz");
    expect_step(cursor, true, "~c=0cz");
    expect_step(cursor, true, NULL);
    expect_step(cursor, false, "~c=0cz");
    AUTO(store_txn_abort) StoreTxn *txn = store_txn_begin(store);
    store_txn_put(txn, 1, SLICE("b"), SLICE("own"));
    store_txn_delete(txn, 1, SLICE("a"));
    store_txn_merge(txn, 1, SLICE("~b"), SLICE("-b"));
    expect_walk(store_txn_cursor_open(txn, 1, SLICE_EMPTY, SLICE("~c")), true,
                "b=own ~a=0az ~b=0bz");
}

static void an_empty_value_is_as_good_as_absent(Store *store)
{
    merge_now(store, 1, "~a", "+x");
    merge_now(store, 1, "~b", "+x");
    merge_now(store, 1, "~c", "+x");
    AUTO(store_snapshot_close) StoreSnapshot *before = store_snapshot_open(store, STORE_READ_ANY);
    merge_now(store, 1, "~b", "-x");
    merge_now(store, 1, "~never", "-x");
    expect_key(store, NULL, 1, "~b", NULL);
    expect_key(store, NULL, 1, "~never", NULL);
    expect_key(store, before, 1, "~b", "x");
    expect_walk(whole(store, NULL, 1), true, "~a=x ~c=x");
    expect_walk(whole(store, NULL, 1), false, "~c=x ~a=x");
    AUTO(store_cursor_close) StoreCursor *cursor = whole(store, NULL, 1);
    store_cursor_seek(cursor, SLICE("~b"));
    expect_step(cursor, true, "~c=x");
    expect_step(cursor, false, "~a=x");
    AUTO(store_txn_abort) StoreTxn *txn = store_txn_begin(store);
    expect_txn_key(txn, 1, "~b", NULL);
    merge_now(store, 1, "~b", "+y");
    expect_key(store, NULL, 1, "~b", "y");
}

static void a_dropped_spaces_operands_are_gone(Store *store)
{
    for (StoreSpace space = 10; space <= 12; space++)
        merge_now(store, space, "~k", "+a+b");
    AUTO(store_snapshot_close) StoreSnapshot *before = store_snapshot_open(store, STORE_READ_ANY);
    assert_ok(store_drop_spaces(store, 11, 11, err));
    expect_key(store, NULL, 10, "~k", "ab");
    expect_key(store, NULL, 11, "~k", NULL);
    expect_key(store, NULL, 12, "~k", "ab");
    expect_walk(whole(store, NULL, 11), true, "");
    expect_key(store, before, 11, "~k", "ab");
    merge_now(store, 11, "~k", "+c"); /* begins with nothing */
    expect_key(store, NULL, 11, "~k", "c");
    expect_walk(whole(store, NULL, 11), false, "~k=c");
}

static void a_damaged_key_is_corrupt_and_its_neighbours_are_not(Store *store)
{
    merge_now(store, 1, "~a", "+x");
    merge_now(store, 1, "~b", "+x");
    merge_now(store, 1, "~c", "+x");
    AUTO(store_snapshot_close) StoreSnapshot *before = store_snapshot_open(store, STORE_READ_ANY);
    merge_now(store, 1, "~b", "?!");
    merge_now(store, 1, "~new", "odd");
    expect_corrupt(store, NULL, 1, "~b");
    expect_corrupt(store, NULL, 1, "~new");
    merge_now(store, 1, "~b", "+y"); /* writes go on, but do not make it whole */
    expect_corrupt(store, NULL, 1, "~b");
    expect_key(store, before, 1, "~b", "x");
    expect_key(store, NULL, 1, "~a", "x");

    AUTO(store_txn_abort) StoreTxn *txn = store_txn_begin(store);
    StoreValue value = {0};
    bool found = false;
    Error refusal = {0};
    assert_int_equal(store_txn_get(txn, 1, SLICE("~b"), &value, &found, &refusal), STATUS_CORRUPT);
    AUTO(store_cursor_close) StoreCursor *cursor = whole(store, NULL, 1);
    expect_step(cursor, true, "~a=x");
    Slice key = {0}, bytes = {0};
    assert_int_equal(store_cursor_next(cursor, &key, &bytes, &found, &refusal), STATUS_CORRUPT);
    assert_int_equal(store_cursor_next(cursor, &key, &bytes, &found, &refusal), STATUS_CORRUPT);
    store_cursor_seek(cursor, SLICE("~b\x01"));
    expect_step(cursor, true, "~c=x");
    assert_int_equal(store_health(store, &refusal), STATUS_OK);
    assert_ok(store_drop_spaces(store, 1, 1, err));
    merge_now(store, 1, "~b", "+y");
    expect_key(store, NULL, 1, "~b", "y");
}

static void keys_of_two_kinds_are_merged_each_in_its_own_way(Store *store)
{
    StoreTxn *txn = store_txn_begin(store);
    store_txn_merge(txn, 1, SLICE("~k"), SLICE("+b"));
    store_txn_merge(txn, 1, SLICE("`k"), SLICE("+b"));
    store_txn_merge(txn, 1, SLICE("~k"), SLICE("+a"));
    store_txn_merge(txn, 1, SLICE("`k"), SLICE("?"));
    store_txn_merge(txn, 1, SLICE("`none"), SLICE(""));
    commit_now(txn);
    for (int i = 0; i < 300; i++) /* busy: values are written in between */
        merge_now(store, 1, "`busy", "x");
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(store_get(store, NULL, 1, SLICE("`busy"), STORE_READ_ANY, &value, &found, err));
    assert_int_equal(value.data.len, 300);
    expect_walk(store_cursor_open(store, NULL, 1, SLICE("`k"), SLICE_EMPTY), true, "`k=+b? ~k=ab");
    AUTO(store_cursor_close) StoreCursor *group = store_group_open(store, NULL, 1, SLICE("`k"));
    expect_step(group, true, "`k=+b?"); /* without a tail a group is one key */
    expect_step(group, true, NULL);
}

static void fresh_values_are_read_from_memory(Store *store)
{
    merge_now(store, 1, "~k", "+a");
    merge_now(store, 1, "~k", "+b");
    AUTO(store_snapshot_close) StoreSnapshot *snapshot = store_snapshot_open(store, STORE_READ_ANY);
    merge_now(store, 1, "~empty", "-a");
    const StoreSnapshot *snapshots[] = {NULL, snapshot};
    static const char *const absent[] = {"~j", "~empty"};
    for (size_t i = 0; i < ARRAY_COUNT(snapshots); i++) {
        AUTO(store_value_release) StoreValue value = {0};
        StoreFound found = STORE_ABSENT;
        assert_ok(
            store_get(store, snapshots[i], 1, SLICE("~k"), STORE_READ_MEMORY, &value, &found, err));
        assert_int_equal(found, STORE_FOUND);
        assert_slice(value.data, SLICE("ab"));
        for (size_t j = 0; j < ARRAY_COUNT(absent); j++) {
            StoreValue none = {0};
            assert_ok(store_get(store, snapshots[i], 1, slice_from_cstr(absent[j]),
                                STORE_READ_MEMORY, &none, &found, err));
            assert_int_equal(found, STORE_ABSENT);
            assert_null(none.owner);
        }
    }
}

static void count_down(void *ctx, const Error *err)
{
    if (err == NULL)
        latch_post(ctx);
}

/* Whatever an engine does with a key that is busy: no operand is lost where it does so. */
static void a_transaction_may_have_many_operands_of_one_key(Store *store)
{
    for (uint32_t i = 0; i < 200; i++) {
        StoreTxn *txn = store_txn_begin(store);
        bool add = i % 2 == 0;
        store_txn_merge(txn, 1, SLICE("~k"), add ? SLICE("+a") : SLICE("-a"));
        store_txn_merge(txn, 1, SLICE("~k"), add ? SLICE("+b") : SLICE("-b"));
        store_txn_merge(txn, 1, SLICE("~k"), add ? SLICE("-c") : SLICE("+c"));
        commit_now(txn);
        expect_key(store, NULL, 1, "~k", add ? "ab" : "c");
    }
}

enum { BUSY_KEYS = 3, BUSY_ROUNDS = 150, BUSY_TXNS = 20 };

/* Adds a random change of a busy key, or of one that is never written again, to 'txn'. */
static void change_busy(StoreTxn *txn, Random *random, bool sets[BUSY_KEYS][26])
{
    uint32_t letter = (uint32_t)random_below(random, 26);
    uint32_t which = (uint32_t)random_below(random, BUSY_KEYS + 1);
    bool add = random_below(random, 2) == 0;
    char key[32], operand[2] = {add ? '+' : '-', (char)('a' + letter)};
    int len = which < BUSY_KEYS
                  ? snprintf(key, sizeof(key), "~k%u", which)
                  : snprintf(key, sizeof(key), "~once%llu", (unsigned long long)random_u64(random));
    if (which < BUSY_KEYS)
        sets[which][letter] = add;
    store_txn_merge(txn, 1, slice_make(key, (size_t)len), slice_make(operand, 2));
}

static void expect_busy(Store *store, uint32_t which, const bool set[26])
{
    char key[16], expected[32];
    size_t len = 0;
    (void)snprintf(key, sizeof(key), "~k%u", which);
    for (uint32_t letter = 0; letter < 26; letter++)
        if (set[letter])
            expected[len++] = (char)('a' + letter);
    expected[len] = '\0';
    expect_key(store, NULL, 1, key, len > 0 ? expected : NULL);
}

/* The same with many transactions under way, and many keys that come and go. */
static void a_busy_key_has_the_value_of_all_its_operands(Store *store)
{
    bool sets[BUSY_KEYS][26] = {{false}};
    Random random;
    random_init(&random, 7);
    for (uint32_t round = 0; round < BUSY_ROUNDS; round++) {
        Latch done;
        latch_init(&done);
        for (uint32_t i = 0; i < BUSY_TXNS; i++) {
            StoreTxn *txn = store_txn_begin(store);
            for (uint32_t j = 0; j < 4; j++)
                change_busy(txn, &random, sets);
            store_txn_commit(txn, (StoreCompletion){count_down, &done});
        }
        for (uint32_t i = 0; i < BUSY_TXNS; i++)
            latch_wait(&done);
        latch_done(&done);
        for (uint32_t which = 0; which < BUSY_KEYS; which++)
            expect_busy(store, which, sets[which]);
    }
}

enum { WRITERS = 4, WRITER_TXNS = 400 };

typedef struct Writer {
    Store *store;
    StoreSpace space;
    pthread_t thread;
} Writer;

/* Every transaction does the same to two keys. */
static void *write_pairs(void *ctx)
{
    Writer *writer = ctx;
    Latch done;
    latch_init(&done);
    for (uint32_t i = 0; i < WRITER_TXNS; i++) {
        char operand[2] = {i / 26 % 2 == 0 ? '+' : '-', (char)('a' + i % 26)};
        StoreTxn *txn = store_txn_begin(writer->store);
        store_txn_merge(txn, writer->space, SLICE("~one"), slice_make(operand, 2));
        store_txn_merge(txn, writer->space, SLICE("~two"), slice_make(operand, 2));
        store_txn_commit(txn, (StoreCompletion){count_down, &done});
        if (i % 4 == 3)
            for (uint32_t j = 0; j < 4; j++)
                latch_wait(&done);
    }
    latch_done(&done);
    return NULL;
}

static void expect_pair(Store *store, StoreSpace space)
{
    AUTO(store_snapshot_close) StoreSnapshot *snapshot = store_snapshot_open(store, STORE_READ_ANY);
    AUTO(store_value_release) StoreValue one = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(store_get(store, snapshot, space, SLICE("~one"), STORE_READ_ANY, &one, &found, err));
    AUTO(store_cursor_close) StoreCursor *cursor = whole(store, snapshot, space);
    Slice key = {0}, value = {0};
    bool more = false;
    for (uint32_t i = 0; i < 2; i++) {
        assert_ok(store_cursor_next(cursor, &key, &value, &more, err));
        assert_int_equal(more, found == STORE_FOUND);
        if (more)
            assert_slice(value, one.data);
    }
}

static void four_threads_merge_at_once_and_readers_see_whole_transactions(Store *store)
{
    Writer writers[WRITERS];
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (Writer){.store = store, .space = 100 + i};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_pairs, &writers[i]), 0);
    }
    for (uint32_t round = 0; round < 50; round++)
        for (uint32_t i = 0; i < WRITERS; i++)
            expect_pair(store, writers[i].space);
    for (uint32_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
    for (uint32_t i = 0; i < WRITERS; i++) {
        expect_pair(store, writers[i].space);
        /* 400 operands: 15 times through the alphabet, the last of them with '+', and 10 '-'. */
        expect_key(store, NULL, writers[i].space, "~one", "klmnopqrstuvwxyz");
    }
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(operands_are_a_value_after_their_commit),
        ENGINE_TEST(operands_apply_in_the_order_they_were_written),
        ENGINE_TEST(an_operand_may_be_empty_and_bytes_may_be_any),
        ENGINE_TEST(rolling_back_takes_operands_away),
        ENGINE_TEST(snapshots_and_cursors_keep_the_value_of_their_moment),
        ENGINE_TEST(cursors_see_values_in_both_directions),
        ENGINE_TEST(an_empty_value_is_as_good_as_absent),
        ENGINE_TEST(a_dropped_spaces_operands_are_gone),
        ENGINE_TEST(a_damaged_key_is_corrupt_and_its_neighbours_are_not),
        ENGINE_TEST(keys_of_two_kinds_are_merged_each_in_its_own_way),
        ENGINE_TEST(fresh_values_are_read_from_memory),
        ENGINE_TEST(a_transaction_may_have_many_operands_of_one_key),
        ENGINE_TEST(a_busy_key_has_the_value_of_all_its_operands),
        ENGINE_TEST(four_threads_merge_at_once_and_readers_see_whole_transactions),
    };
    return run_on_every_engine("store_merge", tests, ARRAY_COUNT(tests));
}
