/* snapshots_test.c - what is kept of snapshots between two writes, and that nobody can tell. */
#include "store/rocksdb/rocksdb_testing_int.h"

#include "store/rocksdb/rocksdb_int.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* How many RocksDB has at the moment, kept ones included. */
static uint64_t snapshots_alive(Store *store)
{
    uint64_t count = 0;
    assert_int_equal(rocksdb_property_int(rocksdb_of_store(store), "rocksdb.num-snapshots", &count),
                     0);
    return count;
}

static void wait_until_none_is_alive(Store *store)
{
    struct timespec pause = {.tv_nsec = 20L * 1000 * 1000};
    for (uint32_t i = 0; i < 500 && snapshots_alive(store) > 0; i++)
        (void)nanosleep(&pause, NULL);
    assert_int_equal(snapshots_alive(store), 0);
}

static void expect_group(Store *store, const StoreSnapshot *snapshot, const char *head,
                         const char *expected)
{
    expect_walk(store_group_open(store, snapshot, 1, slice_from_cstr(head)), true, expected);
}

static void a_snapshot_is_new_after_each_write(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = test_rocksdb_open(folder.path);
    for (uint32_t i = 0; i < 40; i++) {
        bool is_there = i % 2 == 0;
        merge_now(store, 1, "~ax", is_there ? "+k" : "-k");
        put_now(store, 1, "plain", is_there ? "even" : "odd");
        for (uint32_t read = 0; read < 4; read++) {
            StoreRead kind = read < 2 ? STORE_READ_ANY : STORE_READ_MEMORY;
            AUTO(store_snapshot_close) StoreSnapshot *snapshot = store_snapshot_open(store, kind);
            expect_group(store, snapshot, "~a", is_there ? "~ax=k" : "");
            AUTO(store_value_release) StoreValue value = {0};
            StoreFound found = STORE_ABSENT;
            assert_ok(store_get(store, snapshot, 1, SLICE("plain"), STORE_READ_MEMORY, &value,
                                &found, err));
            assert_int_equal(found, STORE_FOUND);
            assert_slice(value.data, slice_from_cstr(is_there ? "even" : "odd"));
        }
    }
}

static void one_is_kept_until_something_is_written(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = test_rocksdb_open(folder.path);
    put_now(store, 1, "a", "1");
    for (uint32_t i = 0; i < 10; i++)
        store_snapshot_close(store_snapshot_open(store, STORE_READ_ANY));
    assert_in_range(snapshots_alive(store), 0, 1); /* the second may have ended meanwhile */
    put_now(store, 1, "a", "2");
    assert_int_equal(snapshots_alive(store), 0);
}

static void an_old_one_is_not_kept(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = test_rocksdb_open(folder.path);
    StoreSnapshot *old = store_snapshot_open(store, STORE_READ_ANY);
    put_now(store, 1, "a", "1");
    expect_key(store, old, 1, "a", NULL);
    store_snapshot_close(old);
    assert_int_equal(snapshots_alive(store), 0);
}

static void without_any_write_they_go_within_seconds(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = test_rocksdb_open(folder.path);
    StoreSnapshot *open[3];
    for (size_t i = 0; i < ARRAY_COUNT(open); i++)
        open[i] = store_snapshot_open(store, i == 0 ? STORE_READ_MEMORY : STORE_READ_ANY);
    assert_int_equal(snapshots_alive(store), ARRAY_COUNT(open));
    for (size_t i = 0; i < ARRAY_COUNT(open); i++)
        store_snapshot_close(open[i]);
    wait_until_none_is_alive(store);
}

static void more_than_are_kept_go_at_once(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = test_rocksdb_open(folder.path);
    enum { MANY = 3 * OBJECT_POOL_MAX };
    StoreSnapshot *open[MANY];
    for (size_t i = 0; i < MANY; i++)
        open[i] = store_snapshot_open(store, STORE_READ_ANY);
    for (size_t i = 0; i < MANY; i++)
        store_snapshot_close(open[i]);
    assert_in_range(snapshots_alive(store), 0, OBJECT_POOL_MAX);
}

static void cursors_over_groups_do_not_meet(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = test_rocksdb_open(folder.path);
    static const char *const keys[] = {"~ax", "~ay", "~az", "~bx", "~by"};
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
        merge_now(store, 1, keys[i], "+k");
    merge_now(store, 2, "~ax", "+k"); /* a neighbour, in another space */
    for (uint32_t i = 0; i < 3; i++) {
        AUTO(store_snapshot_close)
        StoreSnapshot *snapshot = store_snapshot_open(store, STORE_READ_ANY);
        AUTO(store_cursor_close)
        StoreCursor *cursor = store_group_open(store, snapshot, 1, SLICE("~a"));
        expect_step(cursor, true, "~ax=k");
        expect_group(store, snapshot, "~b", "~bx=k ~by=k");
        expect_step(cursor, true, "~ay=k");
        expect_group(store, snapshot, "~a", "~ax=k ~ay=k ~az=k");
        expect_group(store, snapshot, "~c", "");
        expect_step(cursor, true, "~az=k");
        expect_step(cursor, true, NULL);
        store_cursor_seek(cursor, SLICE("~ay"));
        expect_step(cursor, true, "~ay=k");
    }
}

/* A cursor that has failed leaves nothing behind that would fail again. */
static void what_was_cold_is_found_once_it_is_in_memory(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = test_rocksdb_open(folder.path);
    merge_now(store, 1, "~ax", "+k");
    store_close(store);
    store = test_rocksdb_open(folder.path);
    for (uint32_t i = 0; i < 2; i++) {
        AUTO(store_snapshot_close)
        StoreSnapshot *snapshot = store_snapshot_open(store, STORE_READ_MEMORY);
        AUTO(store_cursor_close)
        StoreCursor *cursor = store_group_open(store, snapshot, 1, SLICE("~a"));
        Slice key, value;
        bool found = false;
        Error err;
        assert_int_equal(store_cursor_next(cursor, &key, &value, &found, &err), STATUS_TIMEOUT);
    }
    StoreSnapshot *snapshot = store_snapshot_open(store, STORE_READ_ANY);
    expect_group(store, snapshot, "~a", "~ax=k");
    store_snapshot_close(snapshot);
    snapshot = store_snapshot_open(store, STORE_READ_MEMORY);
    expect_group(store, snapshot, "~a", "~ax=k");
    store_snapshot_close(snapshot);
    store_close(store);
}

/* ---- readers beside the writer ---- */

enum { READERS = 4, WRITES = 1500 };

typedef struct Race {
    Store *store;
    _Atomic uint32_t written; /* acknowledged */
    _Atomic uint32_t reads;
    _Atomic uint32_t stale; /* less than what was acknowledged before the snapshot was opened */
    _Atomic uint32_t torn;
} Race;

static uint32_t plain_number(Store *store, const StoreSnapshot *snapshot)
{
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    Error err;
    uint32_t number = 0;
    if (store_get(store, snapshot, 1, SLICE("number"), STORE_READ_ANY, &value, &found, &err) ==
            STATUS_OK &&
        found == STORE_FOUND && value.data.len == sizeof(number))
        memcpy(&number, value.data.ptr, sizeof(number));
    return number;
}

static uint32_t group_count(Store *store, const StoreSnapshot *snapshot, const char *head)
{
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_group_open(store, snapshot, 1, slice_from_cstr(head));
    for (uint32_t count = 0;; count++) {
        Slice key, value;
        bool found = false;
        Error err;
        if (store_cursor_next(cursor, &key, &value, &found, &err) != STATUS_OK)
            return UINT32_MAX;
        if (!found)
            return count;
    }
}

static void *read_beside(void *ctx)
{
    Race *race = ctx;
    for (uint32_t written = 0; written < WRITES;) {
        written = atomic_load(&race->written);
        AUTO(store_snapshot_close)
        StoreSnapshot *snapshot = store_snapshot_open(race->store, STORE_READ_ANY);
        uint32_t number = plain_number(race->store, snapshot);
        uint32_t expected = number % 2 == 0 ? 0 : 2;
        bool is_whole = group_count(race->store, snapshot, "~a") == expected &&
                        group_count(race->store, snapshot, "~b") == 1 &&
                        group_count(race->store, snapshot, "~a") == expected;
        atomic_fetch_add(&race->stale, number < written ? 1 : 0);
        atomic_fetch_add(&race->torn, is_whole ? 0 : 1);
        atomic_fetch_add(&race->reads, 1);
    }
    return NULL;
}

/* The group is there after each odd write and gone after each even one. */
static void write_number(Store *store, uint32_t number)
{
    Slice operand = number % 2 == 0 ? SLICE("-k") : SLICE("+k");
    StoreTxn *txn = store_txn_begin(store);
    store_txn_merge(txn, 1, SLICE("~ax"), operand);
    store_txn_merge(txn, 1, SLICE("~ay"), operand);
    store_txn_put(txn, 1, SLICE("number"), slice_make((const char *)&number, sizeof(number)));
    commit_now(txn);
}

static void readers_see_what_was_acknowledged_and_all_of_it(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = test_rocksdb_open(folder.path);
    merge_now(store, 1, "~bx", "+k");
    write_number(store, 0);
    Race race = {.store = store};
    pthread_t readers[READERS];
    for (size_t i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_beside, &race), 0);
    for (uint32_t number = 1; number <= WRITES; number++) {
        write_number(store, number);
        atomic_store(&race.written, number);
    }
    for (size_t i = 0; i < READERS; i++)
        assert_int_equal(pthread_join(readers[i], NULL), 0);
    assert_int_equal(race.stale, 0);
    assert_int_equal(race.torn, 0);
    assert_true(race.reads > READERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_is_new_after_each_write),
        cmocka_unit_test(one_is_kept_until_something_is_written),
        cmocka_unit_test(an_old_one_is_not_kept),
        cmocka_unit_test(without_any_write_they_go_within_seconds),
        cmocka_unit_test(more_than_are_kept_go_at_once),
        cmocka_unit_test(cursors_over_groups_do_not_meet),
        cmocka_unit_test(what_was_cold_is_found_once_it_is_in_memory),
        cmocka_unit_test(readers_see_what_was_acknowledged_and_all_of_it),
    };
    return cmocka_run_group_tests_name("store/snapshots", tests, NULL, NULL);
}
