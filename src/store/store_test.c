/* store_test.c - the conformance suite: what store.h promises, on every engine. */
#include "store/store_testing_int.h"

#include "base/latch.h"

#include <pthread.h>
#include <stdatomic.h>

static StoreCursor *whole(Store *store, const StoreSnapshot *snapshot, StoreSpace space)
{
    return store_cursor_open(store, snapshot, space, SLICE_EMPTY, SLICE_EMPTY);
}

static void what_is_put_is_found_until_it_is_deleted(Store *store)
{
    expect_key(store, NULL, 1, "a", NULL);
    put_now(store, 1, "a", "one");
    expect_key(store, NULL, 1, "a", "one");
    put_now(store, 1, "a", "two");
    expect_key(store, NULL, 1, "a", "two");
    delete_now(store, 1, "a");
    expect_key(store, NULL, 1, "a", NULL);
    delete_now(store, 1, "never there");
}

static void spaces_do_not_leak_into_each_other(Store *store)
{
    static const StoreSpace spaces[] = {0, 1, 2, 255, 256, 1ULL << 56, LAST - 1, LAST};
    char value[32];
    for (size_t i = 0; i < ARRAY_COUNT(spaces); i++) {
        (void)snprintf(value, sizeof(value), "%zu", i);
        put_now(store, spaces[i], "", value);
        put_now(store, spaces[i], "k", value);
        put_now(store, spaces[i], "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", value);
    }
    for (size_t i = 0; i < ARRAY_COUNT(spaces); i++) {
        (void)snprintf(value, sizeof(value), "%zu", i);
        expect_key(store, NULL, spaces[i], "k", value);
        expect_key(store, NULL, spaces[i], "x", NULL);
        char all[128];
        (void)snprintf(all, sizeof(all), "=%s k=%s \xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF=%s", value,
                       value, value);
        expect_walk(whole(store, NULL, spaces[i]), true, all);
    }
    expect_walk(whole(store, NULL, 3), true, "");
    expect_walk(whole(store, NULL, LAST - 2), false, "");
}

static void spaces_with_keys_are_found_one_after_the_other(Store *store)
{
    static const struct {
        StoreSpace from;
        StoreSpace space;
    } rows[] = {
        {0, 2}, {2, 2}, {3, 300}, {300, 300}, {301, LAST}, {LAST, LAST},
    };
    StoreSpace space = 0;
    bool found = true;
    assert_ok(store_next_space(store, 0, &space, &found, err));
    assert_false(found);
    put_now(store, 2, "", "v");
    put_now(store, 2, "k", "v");
    put_now(store, 7, "k", "v");
    put_now(store, 300, "\xFF\xFF", "v");
    put_now(store, LAST, "k", "v");
    delete_now(store, 7, "k");
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_ok(store_next_space(store, rows[i].from, &space, &found, err));
        assert_true(found);
        assert_int_equal(space, rows[i].space);
    }
    assert_ok(store_drop_spaces(store, 300, LAST, err));
    assert_ok(store_next_space(store, 3, &space, &found, err));
    assert_false(found);
}

static void keys_come_in_byte_order_in_both_directions(Store *store)
{
    static const char *const keys[] = {"b", "ab", "\xFF", "a", "\x01", "aa", "\x7F", "\x80"};
    StoreTxn *txn = store_txn_begin(store);
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
        store_txn_put(txn, 7, slice_from_cstr(keys[i]), SLICE("v"));
    commit_now(txn);
    expect_walk(whole(store, NULL, 7), true, "\x01=v a=v aa=v ab=v b=v \x7F=v \x80=v \xFF=v");
    expect_walk(whole(store, NULL, 7), false, "\xFF=v \x80=v \x7F=v b=v ab=v aa=v a=v \x01=v");
}

static void put_letters(Store *store, StoreSpace space)
{
    StoreTxn *txn = store_txn_begin(store);
    for (const char *c = "bdfhj"; *c != '\0'; c++)
        store_txn_put(txn, space, slice_make(c, 1), slice_make(c, 1));
    commit_now(txn);
}

static void bounds_include_the_first_and_exclude_the_last(Store *store)
{
    put_letters(store, 4);
    put_letters(store, 5);
    put_letters(store, 6);
    static const struct {
        const char *from, *to, *up, *down;
    } rows[] = {
        {"", "", "b=b d=d f=f h=h j=j", "j=j h=h f=f d=d b=b"},
        {"d", "h", "d=d f=f", "f=f d=d"},
        {"c", "i", "d=d f=f h=h", "h=h f=f d=d"},
        {"d", "d", "", ""},
        {"d", "d\x01", "d=d", "d=d"},
        {"e", "f", "", ""},
        {"h", "d", "", ""}, /* upside down */
        {"k", "", "", ""},
        {"", "b", "", ""},
        {"j", "zz", "j=j", "j=j"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice from = slice_from_cstr(rows[i].from), to = slice_from_cstr(rows[i].to);
        expect_walk(store_cursor_open(store, NULL, 5, from, to), true, rows[i].up);
        expect_walk(store_cursor_open(store, NULL, 5, from, to), false, rows[i].down);
    }
}

static void a_cursor_turns_round_anywhere(Store *store)
{
    put_letters(store, 5);
    AUTO(store_cursor_close) StoreCursor *cursor = whole(store, NULL, 5);
    expect_step(cursor, true, "b=b");
    expect_step(cursor, true, "d=d");
    expect_step(cursor, false, "b=b");
    expect_step(cursor, false, NULL);
    expect_step(cursor, false, NULL);
    expect_step(cursor, true, "b=b");
    expect_step(cursor, true, "d=d");
    expect_step(cursor, true, "f=f");
    expect_step(cursor, true, "h=h");
    expect_step(cursor, true, "j=j");
    expect_step(cursor, true, NULL);
    expect_step(cursor, true, NULL);
    expect_step(cursor, false, "j=j");
    expect_step(cursor, false, "h=h");
    expect_step(cursor, true, "j=j");
}

static void a_seek_stands_between_two_keys(Store *store)
{
    put_letters(store, 4);
    put_letters(store, 5);
    put_letters(store, 6);
    static const struct {
        const char *seek, *next, *prev;
    } rows[] = {
        {"d", "d=d", NULL},  {"c", "d=d", NULL},  {"", "d=d", NULL},   {"e", "f=f", "d=d"},
        {"f", "f=f", "d=d"}, {"g", "h=h", "f=f"}, {"h", "h=h", "f=f"}, {"i", NULL, "h=h"},
        {"j", NULL, "h=h"},  {"z", NULL, "h=h"},
    };
    /* Bounds d to i: what lies outside is neither found nor stood on. */
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(store, NULL, 5, SLICE("d"), SLICE("i"));
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        store_cursor_seek(cursor, slice_from_cstr(rows[i].seek));
        expect_step(cursor, true, rows[i].next);
        store_cursor_seek(cursor, slice_from_cstr(rows[i].seek));
        expect_step(cursor, false, rows[i].prev);
    }
    store_cursor_seek(cursor, SLICE("f"));
    expect_step(cursor, true, "f=f");
    expect_step(cursor, false, "d=d");
}

static void snapshots_show_what_was_when_they_were_taken(Store *store)
{
    put_now(store, 1, "a", "1");
    put_now(store, 1, "b", "1");
    AUTO(store_snapshot_close) StoreSnapshot *first = store_snapshot_open(store, STORE_READ_ANY);
    put_now(store, 1, "a", "2");
    delete_now(store, 1, "b");
    put_now(store, 1, "c", "2");
    AUTO(store_snapshot_close) StoreSnapshot *second = store_snapshot_open(store, STORE_READ_ANY);
    delete_now(store, 1, "a");

    expect_key(store, first, 1, "a", "1");
    expect_key(store, first, 1, "b", "1");
    expect_key(store, first, 1, "c", NULL);
    expect_key(store, second, 1, "a", "2");
    expect_key(store, second, 1, "b", NULL);
    expect_key(store, NULL, 1, "a", NULL);
    expect_walk(whole(store, first, 1), true, "a=1 b=1");
    expect_walk(whole(store, second, 1), false, "c=2 a=2");
    expect_walk(whole(store, NULL, 1), true, "c=2");
}

static void a_cursor_without_a_snapshot_shows_the_moment_it_was_opened(Store *store)
{
    put_now(store, 1, "a", "1");
    StoreCursor *cursor = whole(store, NULL, 1);
    put_now(store, 1, "a", "2");
    put_now(store, 1, "b", "2");
    expect_walk(cursor, true, "a=1");
}

static void a_value_stays_while_it_is_held(Store *store)
{
    put_now(store, 1, "a", "held");
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(store_get(store, NULL, 1, SLICE("a"), STORE_READ_ANY, &value, &found, err));
    assert_int_equal(found, STORE_FOUND);
    put_now(store, 1, "a", "replaced");
    delete_now(store, 1, "a");
    assert_slice(value.data, SLICE("held"));
}

static void fresh_writes_are_read_from_memory(Store *store)
{
    put_now(store, 1, "a", "warm");
    AUTO(store_snapshot_close) StoreSnapshot *snapshot = store_snapshot_open(store, STORE_READ_ANY);
    const StoreSnapshot *snapshots[] = {NULL, snapshot};
    for (size_t i = 0; i < ARRAY_COUNT(snapshots); i++) {
        AUTO(store_value_release) StoreValue value = {0};
        StoreFound found = STORE_ABSENT;
        assert_ok(
            store_get(store, snapshots[i], 1, SLICE("a"), STORE_READ_MEMORY, &value, &found, err));
        assert_int_equal(found, STORE_FOUND);
        assert_slice(value.data, SLICE("warm"));
        assert_ok(
            store_get(store, snapshots[i], 1, SLICE("b"), STORE_READ_MEMORY, &value, &found, err));
        assert_int_equal(found, STORE_ABSENT);
    }
}

static void a_transaction_reads_its_own_writes_over_the_store(Store *store)
{
    put_now(store, 1, "a", "old");
    put_now(store, 1, "b", "old");
    put_now(store, 1, "c", "old");
    put_now(store, 2, "a", "other");
    AUTO(store_txn_abort) StoreTxn *txn = store_txn_begin(store);
    store_txn_put(txn, 1, SLICE("a"), SLICE("new"));
    store_txn_delete(txn, 1, SLICE("b"));
    store_txn_put(txn, 1, SLICE("d"), SLICE("new"));
    store_txn_delete(txn, 1, SLICE("e"));

    expect_txn_key(txn, 1, "a", "new");
    expect_txn_key(txn, 1, "b", NULL);
    expect_txn_key(txn, 1, "c", "old");
    expect_txn_key(txn, 1, "d", "new");
    expect_txn_key(txn, 1, "e", NULL);
    expect_txn_key(txn, 2, "a", "other");
    store_txn_put(txn, 1, SLICE("b"), SLICE("back"));
    expect_txn_key(txn, 1, "b", "back");

    expect_key(store, NULL, 1, "a", "old");
    expect_key(store, NULL, 1, "d", NULL);
}

static void a_transaction_sees_what_others_have_committed_meanwhile(Store *store)
{
    AUTO(store_txn_abort) StoreTxn *txn = store_txn_begin(store);
    store_txn_put(txn, 1, SLICE("a"), SLICE("mine"));
    put_now(store, 1, "a", "theirs");
    put_now(store, 1, "b", "theirs");
    expect_txn_key(txn, 1, "a", "mine");
    expect_txn_key(txn, 1, "b", "theirs");
    expect_walk(store_txn_cursor_open(txn, 1, SLICE_EMPTY, SLICE_EMPTY), true, "a=mine b=theirs");
}

static void a_transactions_cursor_merges_both_ways(Store *store)
{
    put_letters(store, 5); /* b d f h j */
    put_now(store, 4, "z", "neighbour");
    put_now(store, 6, "", "neighbour");
    put_now(store, 6, "a", "neighbour");
    AUTO(store_txn_abort) StoreTxn *txn = store_txn_begin(store);
    store_txn_put(txn, 5, SLICE("a"), SLICE("+"));
    store_txn_delete(txn, 5, SLICE("b"));
    store_txn_put(txn, 5, SLICE("d"), SLICE("!"));
    store_txn_put(txn, 5, SLICE("e"), SLICE("+"));
    store_txn_delete(txn, 5, SLICE("g")); /* is not there */
    store_txn_delete(txn, 5, SLICE("h"));
    store_txn_delete(txn, 5, SLICE("j"));
    store_txn_put(txn, 5, SLICE("k"), SLICE("+"));

    static const struct {
        const char *from, *to, *up, *down;
    } rows[] = {
        {"", "", "a=+ d=! e=+ f=f k=+", "k=+ f=f e=+ d=! a=+"},
        {"b", "k", "d=! e=+ f=f", "f=f e=+ d=!"},
        {"e", "f", "e=+", "e=+"},
        {"g", "k", "", ""},
        {"h", "", "k=+", "k=+"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice from = slice_from_cstr(rows[i].from), to = slice_from_cstr(rows[i].to);
        expect_walk(store_txn_cursor_open(txn, 5, from, to), true, rows[i].up);
        expect_walk(store_txn_cursor_open(txn, 5, from, to), false, rows[i].down);
    }

    AUTO(store_cursor_close)
    StoreCursor *cursor = store_txn_cursor_open(txn, 5, SLICE_EMPTY, SLICE_EMPTY);
    store_cursor_seek(cursor, SLICE("e"));
    expect_step(cursor, false, "d=!");
    expect_step(cursor, true, "e=+");
    expect_step(cursor, true, "f=f");
    expect_step(cursor, true, "k=+");
    expect_step(cursor, false, "f=f");
    expect_step(cursor, false, "e=+");
}

static void savepoints_nest(Store *store)
{
    put_now(store, 1, "base", "old");
    StoreTxn *txn = store_txn_begin(store);
    store_txn_put(txn, 1, SLICE("a"), SLICE("0"));
    store_txn_savepoint(txn);
    store_txn_put(txn, 1, SLICE("a"), SLICE("1"));
    store_txn_delete(txn, 1, SLICE("base"));
    store_txn_savepoint(txn);
    store_txn_put(txn, 1, SLICE("a"), SLICE("2"));
    store_txn_put(txn, 1, SLICE("b"), SLICE("2"));
    store_txn_rollback(txn); /* to the second */
    expect_txn_key(txn, 1, "a", "1");
    expect_txn_key(txn, 1, "b", NULL);
    expect_txn_key(txn, 1, "base", NULL);

    store_txn_savepoint(txn);
    store_txn_put(txn, 1, SLICE("c"), SLICE("3"));
    store_txn_release(txn); /* what it guarded now belongs to the first */
    expect_txn_key(txn, 1, "c", "3");
    store_txn_rollback(txn); /* to the first */
    expect_txn_key(txn, 1, "a", "0");
    expect_txn_key(txn, 1, "c", NULL);
    expect_txn_key(txn, 1, "base", "old");

    store_txn_savepoint(txn); /* left over: it changes nothing */
    store_txn_put(txn, 1, SLICE("d"), SLICE("4"));
    commit_now(txn);
    expect_walk(whole(store, NULL, 1), true, "a=0 base=old d=4");
}

static void a_thousand_savepoints_cost_what_is_written_not_what_is_kept(Store *store)
{
    StoreTxn *txn = store_txn_begin(store);
    for (uint32_t i = 0; i < 1000; i++) {
        char key[16];
        Slice name = slice_make(key, (size_t)snprintf(key, sizeof(key), "%04u", i));
        store_txn_savepoint(txn);
        store_txn_put(txn, 1, name, name);
        store_txn_put(txn, 1, SLICE("last"), name);
        if (i % 2 == 0)
            store_txn_rollback(txn);
        else
            store_txn_release(txn);
    }
    commit_now(txn);
    expect_key(store, NULL, 1, "last", "0999");
    expect_key(store, NULL, 1, "0998", NULL);
    expect_key(store, NULL, 1, "0001", "0001");
}

static void an_aborted_transaction_leaves_nothing(Store *store)
{
    put_now(store, 1, "a", "old");
    StoreTxn *txn = store_txn_begin(store);
    store_txn_put(txn, 1, SLICE("a"), SLICE("new"));
    store_txn_savepoint(txn);
    store_txn_put(txn, 1, SLICE("b"), SLICE("new"));
    store_txn_abort(txn);
    store_txn_abort(NULL);
    expect_walk(whole(store, NULL, 1), true, "a=old");
}

/* The memory of one that has ended is used again. */
static void a_transaction_begins_empty_whatever_the_one_before_held(Store *store)
{
    for (int i = 0; i < 3; i++) {
        StoreTxn *txn = store_txn_begin(store);
        store_txn_put(txn, 1, SLICE("a"), SLICE("one"));
        store_txn_savepoint(txn);
        store_txn_put(txn, 1, SLICE("b"), SLICE("two"));
        store_txn_abort(txn);
        txn = store_txn_begin(store);
        assert_int_equal(store_txn_bytes(txn), 0);
        expect_txn_key(txn, 1, "a", NULL);
        store_txn_savepoint(txn);
        store_txn_put(txn, 1, SLICE("c"), SLICE("three"));
        store_txn_rollback(txn);
        commit_now(txn);
    }
    expect_walk(whole(store, NULL, 1), true, "");
}

static void an_empty_transaction_commits(Store *store)
{
    commit_now(store_txn_begin(store));
}

static void a_transactions_bytes_follow_its_writes(Store *store)
{
    AUTO(store_txn_abort) StoreTxn *txn = store_txn_begin(store);
    assert_int_equal(store_txn_bytes(txn), 0);
    store_txn_put(txn, 1, SLICE("k"), SLICE("0123456789"));
    size_t one = store_txn_bytes(txn);
    assert_true(one >= 11);
    assert_true(one <= 64);
    store_txn_savepoint(txn);
    store_txn_put(txn, 1, SLICE("l"), SLICE("0123456789"));
    assert_int_equal(store_txn_bytes(txn), 2 * one);
    store_txn_rollback(txn);
    assert_int_equal(store_txn_bytes(txn), one);
}

static void keys_and_values_are_any_bytes(Store *store)
{
    static const Slice keys[] = {
        SLICE_INIT(""),     SLICE_INIT("\0"),   SLICE_INIT("\0\0"),   SLICE_INIT("\0\xFF"),
        SLICE_INIT("a\0b"), SLICE_INIT("\xFF"), SLICE_INIT("\xFF\0"), SLICE_INIT("\xFF\xFF"),
    };
    StoreTxn *txn = store_txn_begin(store);
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
        store_txn_put(txn, 9, keys[i], keys[i]); /* the first value is empty */
    commit_now(txn);
    AUTO(store_cursor_close) StoreCursor *cursor = whole(store, NULL, 9);
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        Slice key = {0}, value = {0};
        bool found = false;
        assert_ok(store_cursor_next(cursor, &key, &value, &found, err));
        assert_true(found);
        assert_slice(key, keys[i]);
        assert_slice(value, keys[i]);
        AUTO(store_value_release) StoreValue got = {0};
        StoreFound answer = STORE_ABSENT;
        assert_ok(store_get(store, NULL, 9, keys[i], STORE_READ_ANY, &got, &answer, err));
        assert_int_equal(answer, STORE_FOUND);
        assert_slice(got.data, keys[i]);
    }
    expect_step(cursor, true, NULL);
}

static void keys_of_the_greatest_length_work_and_longer_ones_are_absent(Store *store)
{
    char *bytes = mem_alloc(STORE_KEY_BYTES_MAX + 2);
    memset(bytes, 0xFF, STORE_KEY_BYTES_MAX + 2);
    Slice longest = slice_make(bytes, STORE_KEY_BYTES_MAX);
    static const StoreSpace spaces[] = {3, LAST};
    for (size_t i = 0; i < ARRAY_COUNT(spaces); i++) {
        StoreTxn *txn = store_txn_begin(store);
        store_txn_put(txn, spaces[i], longest, SLICE("v"));
        store_txn_put(txn, spaces[i], SLICE("a"), SLICE("v"));
        commit_now(txn);
        for (size_t longer = 0; longer <= 2; longer++) {
            Slice key = slice_make(bytes, STORE_KEY_BYTES_MAX + longer);
            AUTO(store_value_release) StoreValue value = {0};
            StoreFound found = STORE_UNKNOWN;
            assert_ok(store_get(store, NULL, spaces[i], key, STORE_READ_ANY, &value, &found, err));
            assert_int_equal(found, longer == 0 ? STORE_FOUND : STORE_ABSENT);

            AUTO(store_cursor_close) StoreCursor *cursor = whole(store, NULL, spaces[i]);
            store_cursor_seek(cursor, key);
            Slice at = {0}, ignored = {0};
            bool there = false;
            assert_ok(store_cursor_next(cursor, &at, &ignored, &there, err));
            assert_int_equal(there, longer == 0);
            assert_ok(store_cursor_prev(cursor, &at, &ignored, &there, err));
            assert_true(there);
            assert_int_equal(at.len, longer == 0 ? 1 : STORE_KEY_BYTES_MAX);
        }
    }
    mem_free(bytes);
}

static void large_values_come_back_whole(Store *store)
{
    size_t len = (size_t)5 << 20;
    char *bytes = mem_alloc(len);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    StoreTxn *txn = store_txn_begin(store);
    for (uint32_t i = 0; i < 8; i++) { /* together more than one group takes */
        char key = (char)('a' + i);
        bytes[0] = key;
        store_txn_put(txn, 1, slice_make(&key, 1), slice_make(bytes, len));
    }
    commit_now(txn);
    for (uint32_t i = 0; i < 8; i++) {
        char key = (char)('a' + i);
        bytes[0] = key;
        AUTO(store_value_release) StoreValue value = {0};
        StoreFound found = STORE_ABSENT;
        assert_ok(
            store_get(store, NULL, 1, slice_make(&key, 1), STORE_READ_ANY, &value, &found, err));
        assert_int_equal(found, STORE_FOUND);
        assert_int_equal(value.data.len, len);
        assert_memory_equal(value.data.ptr, bytes, len);
    }
    mem_free(bytes);
}

static void dropped_spaces_are_empty_and_their_neighbours_whole(Store *store)
{
    for (StoreSpace space = 10; space <= 15; space++) {
        put_letters(store, space);
        put_now(store, space, "", "empty key");
    }
    put_letters(store, LAST);
    AUTO(store_snapshot_close) StoreSnapshot *before = store_snapshot_open(store, STORE_READ_ANY);
    assert_ok(store_drop_spaces(store, 11, 13, err));
    assert_ok(store_drop_spaces(store, 15, 15, err));
    assert_ok(store_drop_spaces(store, LAST, LAST, err));
    static const char all[] = "=empty key b=b d=d f=f h=h j=j";
    for (StoreSpace space = 10; space <= 15; space++) {
        bool kept = space == 10 || space == 14;
        expect_walk(whole(store, NULL, space), true, kept ? all : "");
        expect_key(store, NULL, space, "d", kept ? "d" : NULL);
        expect_walk(whole(store, before, space), true, all);
    }
    expect_walk(whole(store, NULL, LAST), true, "");
    put_now(store, 12, "again", "1");
    expect_walk(whole(store, NULL, 12), true, "again=1");
}

static void usage_grows_with_what_is_stored(Store *store)
{
    StoreUsage before, after;
    store_usage(store, &before);
    char *bytes = mem_alloc((size_t)2 << 20);
    StoreTxn *txn = store_txn_begin(store);
    store_txn_put(txn, 1, SLICE("large"), slice_make(bytes, (size_t)2 << 20));
    commit_now(txn);
    mem_free(bytes);
    store_usage(store, &after);
    assert_true(after.memory_bytes >= before.memory_bytes + ((size_t)2 << 20));
    Error err;
    assert_int_equal(store_health(store, &err), STATUS_OK);
}

/* Estimates of what is in memory may be nothing: only what they must not be is common to all. */
static void estimates_are_of_the_range_alone(Store *store)
{
    put_letters(store, 4);
    put_letters(store, 6);
    assert_int_equal(store_estimate_bytes(store, 5, SLICE_EMPTY, SLICE_EMPTY), 0);
    assert_int_equal(store_estimate_bytes(store, 4, SLICE("h"), SLICE("d")), 0);
    assert_int_equal(store_estimate_bytes(store, 4, SLICE("k"), SLICE_EMPTY), 0);
    assert_in_range(store_estimate_bytes(store, 4, SLICE_EMPTY, SLICE_EMPTY), 0, 4096);
}

static void a_snapshot_in_memory_shows_fresh_writes(Store *store)
{
    put_letters(store, 5);
    AUTO(store_snapshot_close)
    StoreSnapshot *snapshot = store_snapshot_open(store, STORE_READ_MEMORY);
    delete_now(store, 5, "d");
    expect_walk(whole(store, snapshot, 5), true, "b=b d=d f=f h=h j=j");
    /* It reads memory only, also if the call would allow more. */
    expect_key(store, snapshot, 5, "d", "d");
    expect_key(store, snapshot, 5, "e", NULL);
}

static void a_fresh_store_is_healthy_and_whole(Store *store)
{
    assert_ok(store_health(store, err));
    assert_ok(store_room(store, err));
    StoreDamage damage;
    store_damage(store, &damage);
    assert_int_equal(damage.reads, 0);
    assert_int_equal(damage.newest.status, STATUS_OK);
}

/* What a completion is told, and how often. */
typedef struct Outcome {
    _Atomic uint32_t calls;
    _Atomic uint32_t order; /* which completion of all it was, from 1 */
    _Atomic uint32_t *counter;
    bool failed;
    Latch *done;
} Outcome;

static void note(void *ctx, const Error *err)
{
    Outcome *outcome = ctx;
    outcome->failed = err != NULL;
    outcome->order = ++*outcome->counter;
    outcome->calls++;
    latch_post(outcome->done);
}

/* Transactions that write over each other, all under way at once: the last one must win, puts and
 * deletes alike, which is to say that groups are joined in order. */
static void overlapping_transactions_apply_in_the_order_of_their_commits(Store *store)
{
    enum { TXNS = 600, SPAN = 17 };
    Outcome *outcomes = MEM_NEW_ARRAY(Outcome, TXNS);
    _Atomic uint32_t counter = 0;
    Latch done;
    latch_init(&done);
    char expected[SPAN][16] = {{0}};
    for (uint32_t i = 0; i < TXNS; i++) {
        StoreTxn *txn = store_txn_begin(store);
        for (uint32_t j = 0; j < 5; j++) {
            uint32_t number = (i * 7 + j * 3) % SPAN;
            char key = (char)('A' + number), value[16];
            int len = snprintf(value, sizeof(value), "%u.%u", i, j);
            bool gone = (i + j) % 3 == 0;
            if (gone)
                store_txn_delete(txn, 1, slice_make(&key, 1));
            else
                store_txn_put(txn, 1, slice_make(&key, 1), slice_make(value, (size_t)len));
            (void)snprintf(expected[number], sizeof(expected[number]), "%s", gone ? "" : value);
        }
        outcomes[i].counter = &counter;
        outcomes[i].done = &done;
        store_txn_commit(txn, (StoreCompletion){note, &outcomes[i]});
    }
    for (uint32_t i = 0; i < TXNS; i++)
        latch_wait(&done);
    for (uint32_t i = 0; i < TXNS; i++) {
        assert_int_equal(outcomes[i].calls, 1);
        assert_int_equal(outcomes[i].order, i + 1);
        assert_false(outcomes[i].failed);
    }
    for (uint32_t i = 0; i < SPAN; i++) {
        char key[2] = {(char)('A' + i), 0};
        expect_key(store, NULL, 1, key, expected[i][0] == 0 ? NULL : expected[i]);
    }
    latch_done(&done);
    mem_free(outcomes);
}

enum { WRITERS = 8, WRITER_TXNS = 120, TXN_KEYS = 6 };

typedef struct Writer {
    Store *store;
    StoreSpace space;
    pthread_t thread;
    Outcome outcomes[WRITER_TXNS];
    _Atomic uint32_t counter;
} Writer;

/* Transaction n writes its own keys, moves "last" on to n and deletes one key of the one before. */
static void *write_many(void *ctx)
{
    Writer *writer = ctx;
    Latch done;
    latch_init(&done);
    for (uint32_t n = 0; n < WRITER_TXNS; n++) {
        StoreTxn *txn = store_txn_begin(writer->store);
        char text[32];
        for (uint32_t k = 0; k < TXN_KEYS; k++) {
            int len = snprintf(text, sizeof(text), "%04u/%u", n, k);
            store_txn_put(txn, writer->space, slice_make(text, (size_t)len),
                          slice_make(text, (size_t)len));
        }
        if (n > 0) {
            int len = snprintf(text, sizeof(text), "%04u/0", n - 1);
            store_txn_delete(txn, writer->space, slice_make(text, (size_t)len));
        }
        int len = snprintf(text, sizeof(text), "%04u", n);
        store_txn_put(txn, writer->space, SLICE("last"), slice_make(text, (size_t)len));
        writer->outcomes[n].counter = &writer->counter;
        writer->outcomes[n].done = &done;
        store_txn_commit(txn, (StoreCompletion){note, &writer->outcomes[n]});
        if (n % 4 == 3) /* up to four of each writer are under way at once */
            for (uint32_t i = 0; i < 4; i++)
                latch_wait(&done);
    }
    latch_done(&done);
    return NULL;
}

/* While they write: a transaction is there as a whole or not at all, and "last" never goes back. */
static void expect_whole_transactions(Store *store, StoreSpace space, uint32_t *last_seen)
{
    AUTO(store_snapshot_close) StoreSnapshot *snapshot = store_snapshot_open(store, STORE_READ_ANY);
    AUTO(store_value_release) StoreValue last = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(store_get(store, snapshot, space, SLICE("last"), STORE_READ_ANY, &last, &found, err));
    if (found != STORE_FOUND) {
        assert_int_equal(*last_seen, 0);
        return;
    }
    uint64_t n = 0;
    assert_true(slice_to_u64(last.data, &n));
    assert_true(n >= *last_seen);
    *last_seen = (uint32_t)n;
    uint32_t count = 0;
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(store, snapshot, space, SLICE_EMPTY, SLICE("l"));
    for (;; count++) {
        Slice key = {0}, value = {0};
        bool more = false;
        assert_ok(store_cursor_next(cursor, &key, &value, &more, err));
        if (!more)
            break;
        assert_slice(value, key);
    }
    assert_int_equal(count, (n + 1) * TXN_KEYS - n);
}

static void eight_threads_commit_at_once_and_every_transaction_is_whole(Store *store)
{
    Writer *writers = MEM_NEW_ARRAY(Writer, WRITERS);
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i].store = store;
        writers[i].space = 100 + i;
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_many, &writers[i]), 0);
    }
    uint32_t last_seen[WRITERS] = {0};
    for (uint32_t round = 0; round < 10; round++)
        for (uint32_t i = 0; i < WRITERS; i++)
            expect_whole_transactions(store, writers[i].space, &last_seen[i]);
    for (uint32_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
    for (uint32_t i = 0; i < WRITERS; i++) {
        expect_whole_transactions(store, writers[i].space, &last_seen[i]);
        assert_int_equal(last_seen[i], WRITER_TXNS - 1);
        for (uint32_t n = 0; n < WRITER_TXNS; n++) {
            assert_int_equal(writers[i].outcomes[n].calls, 1);
            assert_int_equal(writers[i].outcomes[n].order, n + 1);
            assert_false(writers[i].outcomes[n].failed);
        }
    }
    mem_free(writers);
}

/* A completion that finds its own write in the store: visible before anyone is told. */
typedef struct ReadBack {
    Store *store;
    Latch done;
    StoreFound found;
} ReadBack;

static void read_back(void *ctx, const Error *err)
{
    ReadBack *back = ctx;
    Error ignored;
    AUTO(store_value_release) StoreValue value = {0};
    if (err != NULL || store_get(back->store, NULL, 1, SLICE("k"), STORE_READ_MEMORY, &value,
                                 &back->found, &ignored) != STATUS_OK)
        back->found = STORE_UNKNOWN;
    latch_post(&back->done);
}

static void a_completion_finds_its_transaction_visible(Store *store)
{
    ReadBack back = {.store = store, .found = STORE_ABSENT};
    latch_init(&back.done);
    StoreTxn *txn = store_txn_begin(store);
    store_txn_put(txn, 1, SLICE("k"), SLICE("v"));
    store_txn_commit(txn, (StoreCompletion){read_back, &back});
    latch_wait(&back.done);
    assert_int_equal(back.found, STORE_FOUND);
    latch_done(&back.done);
}

/* store_close waits: everything that was handed over before it is completed by it. */
static void closing_completes_what_is_under_way(void **state)
{
    for (size_t e = 0; e < ARRAY_COUNT(TEST_ENGINES); e++) {
        enum { TXNS = 50 };
        TestStore test;
        test_store_open(&test, &TEST_ENGINES[e]);
        static Outcome outcomes[TXNS];
        memset(outcomes, 0, sizeof(outcomes));
        _Atomic uint32_t counter = 0;
        Latch done;
        latch_init(&done);
        for (uint32_t i = 0; i < TXNS; i++) {
            StoreTxn *txn = store_txn_begin(test.store);
            store_txn_put(txn, 1, slice_make(&i, sizeof(i)), SLICE("v"));
            outcomes[i].counter = &counter;
            outcomes[i].done = &done;
            store_txn_commit(txn, (StoreCompletion){note, &outcomes[i]});
        }
        test_store_close(&test);
        for (uint32_t i = 0; i < TXNS; i++)
            assert_int_equal(outcomes[i].calls, 1);
        latch_done(&done);
    }
    store_close(NULL);
    store_cursor_close(NULL);
    store_snapshot_close(NULL);
    (void)state;
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(what_is_put_is_found_until_it_is_deleted),
        ENGINE_TEST(spaces_do_not_leak_into_each_other),
        ENGINE_TEST(spaces_with_keys_are_found_one_after_the_other),
        ENGINE_TEST(keys_come_in_byte_order_in_both_directions),
        ENGINE_TEST(bounds_include_the_first_and_exclude_the_last),
        ENGINE_TEST(a_cursor_turns_round_anywhere),
        ENGINE_TEST(a_seek_stands_between_two_keys),
        ENGINE_TEST(snapshots_show_what_was_when_they_were_taken),
        ENGINE_TEST(a_cursor_without_a_snapshot_shows_the_moment_it_was_opened),
        ENGINE_TEST(a_value_stays_while_it_is_held),
        ENGINE_TEST(fresh_writes_are_read_from_memory),
        ENGINE_TEST(a_transaction_reads_its_own_writes_over_the_store),
        ENGINE_TEST(a_transaction_sees_what_others_have_committed_meanwhile),
        ENGINE_TEST(a_transactions_cursor_merges_both_ways),
        ENGINE_TEST(savepoints_nest),
        ENGINE_TEST(a_thousand_savepoints_cost_what_is_written_not_what_is_kept),
        ENGINE_TEST(an_aborted_transaction_leaves_nothing),
        ENGINE_TEST(a_transaction_begins_empty_whatever_the_one_before_held),
        ENGINE_TEST(an_empty_transaction_commits),
        ENGINE_TEST(a_transactions_bytes_follow_its_writes),
        ENGINE_TEST(keys_and_values_are_any_bytes),
        ENGINE_TEST(keys_of_the_greatest_length_work_and_longer_ones_are_absent),
        ENGINE_TEST(large_values_come_back_whole),
        ENGINE_TEST(dropped_spaces_are_empty_and_their_neighbours_whole),
        ENGINE_TEST(usage_grows_with_what_is_stored),
        ENGINE_TEST(estimates_are_of_the_range_alone),
        ENGINE_TEST(a_snapshot_in_memory_shows_fresh_writes),
        ENGINE_TEST(a_fresh_store_is_healthy_and_whole),
        ENGINE_TEST(overlapping_transactions_apply_in_the_order_of_their_commits),
        ENGINE_TEST(eight_threads_commit_at_once_and_every_transaction_is_whole),
        ENGINE_TEST(a_completion_finds_its_transaction_visible),
    };
    const struct CMUnitTest closing[] = {cmocka_unit_test(closing_completes_what_is_under_way)};
    int failed = run_on_every_engine("store", tests, ARRAY_COUNT(tests));
    return failed + cmocka_run_group_tests_name("store_close", closing, NULL, NULL);
}
