/* load_test.c - loads, on every engine (I15). */
#include "store/store_testing_int.h"

static StoreCursor *whole(Store *store, const StoreSnapshot *snapshot, StoreSpace space)
{
    return store_cursor_open(store, snapshot, space, SLICE_EMPTY, SLICE_EMPTY);
}

static void put_letters(Store *store, StoreSpace space)
{
    StoreTxn *txn = store_txn_begin(store);
    for (const char *c = "bdfhj"; *c != '\0'; c++)
        store_txn_put(txn, space, slice_make(c, 1), slice_make(c, 1));
    commit_now(txn);
}

/* I15 */
static void what_is_loaded_is_there_when_the_load_has_finished(Store *store)
{
    put_letters(store, 4);
    put_letters(store, 6);
    for (uint32_t round = 0; round < 3; round++) { /* also over what was loaded before */
        StoreTxn *txn = store_txn_begin(store);
        for (uint32_t i = 0; i < 100; i++) {
            char key[16], value[16];
            int key_len = snprintf(key, sizeof(key), "%03u", i);
            int value_len = snprintf(value, sizeof(value), "%u.%u", round, i);
            if (round == 2 && i % 2 == 0)
                store_txn_delete(txn, 5, slice_make(key, (size_t)key_len));
            else
                store_txn_put(txn, 5, slice_make(key, (size_t)key_len),
                              slice_make(value, (size_t)value_len));
        }
        store_txn_merge(txn, 5, SLICE("~k"), round == 1 ? SLICE("-a+b") : SLICE("+a"));
        load_now(store, txn);
        expect_key(store, NULL, 5, "~k", round == 0 ? "a" : round == 1 ? "b" : "ab");
    }
    expect_key(store, NULL, 5, "001", "2.1");
    expect_key(store, NULL, 5, "002", NULL);
    put_now(store, 5, "001", "over it");
    expect_key(store, NULL, 5, "001", "over it");
    expect_walk(whole(store, NULL, 4), true, "b=b d=d f=f h=h j=j");
    expect_walk(whole(store, NULL, 6), true, "b=b d=d f=f h=h j=j");
}

enum { LOADED_TXNS = 5, LOADED_KEYS = 200 };

/* Adds transactions whose keys rise with 'k', and come again and again with 'n' and '~'. */
static void add_to_load(StoreLoad *load, Store *store, StoreSpace space)
{
    for (int t = 0; t < LOADED_TXNS; t++) {
        StoreTxn *txn = store_txn_begin(store);
        for (int i = 0; i < LOADED_KEYS; i++) {
            char key[16];
            char operand[2] = {'+', (char)('a' + t)};
            int len = snprintf(key, sizeof(key), "k%06d", t * LOADED_KEYS + i);
            store_txn_put(txn, space, slice_make(key, (size_t)len), slice_make(key, (size_t)len));
            len = snprintf(key, sizeof(key), "n%d", i);
            store_txn_put(txn, space, slice_make(key, (size_t)len), slice_make(operand, 2));
            len = snprintf(key, sizeof(key), "~%d", i);
            store_txn_merge(txn, space, slice_make(key, (size_t)len), slice_make(operand, 2));
        }
        assert_ok(store_load_add(load, txn, err));
    }
}

/* I15 */
static void a_load_of_many_transactions_is_as_if_they_were_committed(Store *store)
{
    put_letters(store, 4);
    put_letters(store, 6);
    StoreLoad *load = store_load_begin(store, 'k');
    add_to_load(load, store, 5);
    put_now(store, 4, "beside", "it"); /* other spaces are written meanwhile */
    assert_ok(store_load_finish(load, err));
    for (int i = 0; i < LOADED_TXNS * LOADED_KEYS; i += 37) {
        char key[16];
        (void)snprintf(key, sizeof(key), "k%06d", i);
        expect_key(store, NULL, 5, key, key);
    }
    for (int i = 0; i < LOADED_KEYS; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "~%d", i);
        expect_key(store, NULL, 5, key, "abcde");
        (void)snprintf(key, sizeof(key), "n%d", i);
        expect_key(store, NULL, 5, key, "+e"); /* the newest */
    }
    expect_walk(whole(store, NULL, 4), true, "b=b beside=it d=d f=f h=h j=j");
    expect_walk(whole(store, NULL, 6), true, "b=b d=d f=f h=h j=j");
}

/* What an aborted load leaves goes with its space; a load without transactions leaves nothing. */
static void a_load_may_be_given_up(Store *store)
{
    put_letters(store, 4);
    StoreLoad *load = store_load_begin(store, 'k');
    add_to_load(load, store, 5);
    store_load_abort(load);
    assert_ok(store_drop_spaces(store, 5, 5, err));
    expect_walk(whole(store, NULL, 5), true, "");
    store_load_abort(store_load_begin(store, 'k'));
    assert_ok(store_load_finish(store_load_begin(store, 'k'), err));
    expect_walk(whole(store, NULL, 5), true, "");
    expect_walk(whole(store, NULL, 4), true, "b=b d=d f=f h=h j=j");
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(what_is_loaded_is_there_when_the_load_has_finished),
        ENGINE_TEST(a_load_of_many_transactions_is_as_if_they_were_committed),
        ENGINE_TEST(a_load_may_be_given_up),
    };
    return run_on_every_engine("load", tests, ARRAY_COUNT(tests));
}
