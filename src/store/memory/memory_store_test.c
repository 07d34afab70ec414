/* memory_store_test.c - faults on demand, and through them what commits promise while they wait. */
#include "base/latch.h"
#include "base/object_pool.h"
#include "store/store_testing_int.h"

#include <stdatomic.h>
#include <time.h>

typedef struct Outcome {
    _Atomic uint32_t calls;
    Status status;
    Latch done;
} Outcome;

static void outcome_init(Outcome *outcome)
{
    *outcome = (Outcome){.status = STATUS_OK};
    latch_init(&outcome->done);
}

static void note(void *ctx, const Error *err)
{
    Outcome *outcome = ctx;
    outcome->status = err == NULL ? STATUS_OK : err->status;
    outcome->calls++;
    latch_post(&outcome->done);
}

static void delete_later(Store *store, const char *key, Outcome *outcome)
{
    outcome_init(outcome);
    StoreTxn *txn = store_txn_begin(store);
    store_txn_delete(txn, 1, slice_from_cstr(key));
    store_txn_makes_room(txn);
    store_txn_commit(txn, (StoreCompletion){note, outcome});
}

static void commit_later(Store *store, const char *key, Outcome *outcome)
{
    outcome_init(outcome);
    StoreTxn *txn = store_txn_begin(store);
    store_txn_put(txn, 1, slice_from_cstr(key), SLICE("v"));
    store_txn_commit(txn, (StoreCompletion){note, outcome});
}

static Status outcome_wait(Outcome *outcome)
{
    latch_wait(&outcome->done);
    latch_done(&outcome->done);
    assert_int_equal(outcome->calls, 1);
    return outcome->status;
}

static void nothing_is_visible_before_it_is_durable(void **state)
{
    Store *store = *state;
    memory_store_stall(store);
    Outcome outcome;
    commit_later(store, "a", &outcome);
    memory_store_wait_stalled(store);
    expect_key(store, NULL, 1, "a", NULL);
    AUTO(store_snapshot_close) StoreSnapshot *before = store_snapshot_open(store, STORE_READ_ANY);
    assert_int_equal(outcome.calls, 0);
    memory_store_release(store);
    assert_int_equal(outcome_wait(&outcome), STATUS_OK);
    expect_key(store, NULL, 1, "a", "v");
    expect_key(store, before, 1, "a", NULL);
}

static void what_gathers_behind_a_slow_write_becomes_one_group(void **state)
{
    Store *store = *state;
    enum { BEHIND = 40 };
    memory_store_stall(store);
    Outcome first, behind[BEHIND];
    commit_later(store, "first", &first);
    memory_store_wait_stalled(store);
    for (size_t i = 0; i < BEHIND; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "%zu", i);
        commit_later(store, key, &behind[i]);
    }
    uint64_t groups = memory_store_groups(store);
    memory_store_release(store);
    assert_int_equal(outcome_wait(&first), STATUS_OK);
    for (size_t i = 0; i < BEHIND; i++)
        assert_int_equal(outcome_wait(&behind[i]), STATUS_OK);
    assert_int_equal(memory_store_groups(store) - groups, 2);
}

static void a_group_is_cut_before_it_grows_too_large(void **state)
{
    Store *store = *state;
    enum { BEHIND = 5 };
    size_t len = (size_t)6 << 20; /* two fit into sixteen megabytes, three do not */
    char *bytes = mem_alloc(len);
    memory_store_stall(store);
    Outcome first, behind[BEHIND];
    commit_later(store, "first", &first);
    memory_store_wait_stalled(store);
    for (uint32_t i = 0; i < BEHIND; i++) {
        outcome_init(&behind[i]);
        StoreTxn *txn = store_txn_begin(store);
        store_txn_put(txn, 1, slice_make(&i, sizeof(i)), slice_make(bytes, len));
        store_txn_commit(txn, (StoreCompletion){note, &behind[i]});
    }
    mem_free(bytes);
    uint64_t groups = memory_store_groups(store);
    memory_store_release(store);
    assert_int_equal(outcome_wait(&first), STATUS_OK);
    for (size_t i = 0; i < BEHIND; i++)
        assert_int_equal(outcome_wait(&behind[i]), STATUS_OK);
    assert_int_equal(memory_store_groups(store) - groups, 1 + 3);
}

static void a_failed_write_fails_its_whole_group_and_changes_nothing(void **state)
{
    Store *store = *state;
    put_now(store, 1, "old", "v");
    memory_store_stall(store);
    Outcome first, second, third;
    commit_later(store, "first", &first);
    memory_store_wait_stalled(store);
    commit_later(store, "second", &second);
    commit_later(store, "third", &third);
    memory_store_fail_commits(store, 2, STATUS_IO);
    memory_store_release(store);
    assert_int_equal(outcome_wait(&first), STATUS_IO);
    assert_int_equal(outcome_wait(&second), STATUS_IO);
    assert_int_equal(outcome_wait(&third), STATUS_IO);
    expect_walk(store_cursor_open(store, NULL, 1, SLICE_EMPTY, SLICE_EMPTY), true, "old=v");

    Error err;
    assert_int_equal(store_health(store, &err), STATUS_IO);
    assert_true(strlen(err.message) > 0);
    put_now(store, 1, "new", "v"); /* the third write works */
    assert_int_equal(store_health(store, &err), STATUS_OK);
    expect_walk(store_cursor_open(store, NULL, 1, SLICE_EMPTY, SLICE_EMPTY), true, "new=v old=v");
}

static void health_comes_back_without_anyone_writing(void **state)
{
    Store *store = *state;
    memory_store_crash(store);
    Outcome outcome;
    commit_later(store, "a", &outcome);
    assert_int_equal(outcome_wait(&outcome), STATUS_UNAVAILABLE);
    Error err;
    assert_int_equal(store_health(store, &err), STATUS_UNAVAILABLE);
    memory_store_restart(store);
    Status status = STATUS_UNAVAILABLE;
    for (uint32_t i = 0; i < 1000 && status != STATUS_OK; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        status = store_health(store, &err);
    }
    assert_int_equal(status, STATUS_OK);
}

static void on_a_full_disk_a_group_parts_ways(void **state)
{
    Store *store = *state;
    put_now(store, 1, "a", "v");
    put_now(store, 1, "b", "v");
    assert_ok(store_room(store, err));
    memory_store_stall(store);
    Outcome first, put, delete, nothing;
    commit_later(store, "first", &first);
    memory_store_wait_stalled(store);
    memory_store_set_full(store, true);
    commit_later(store, "c", &put);
    delete_later(store, "a", &delete);
    outcome_init(&nothing);
    store_txn_commit(store_txn_begin(store), (StoreCompletion){note, &nothing});
    uint64_t groups = memory_store_groups(store);
    memory_store_release(store);
    assert_int_equal(outcome_wait(&first), STATUS_OK); /* it was past the question */
    assert_int_equal(outcome_wait(&put), STATUS_IO);
    assert_int_equal(outcome_wait(&delete), STATUS_OK);
    assert_int_equal(outcome_wait(&nothing), STATUS_OK);
    assert_int_equal(memory_store_groups(store) - groups, 2);
    expect_walk(store_cursor_open(store, NULL, 1, SLICE_EMPTY, SLICE_EMPTY), true, "b=v first=v");
    Error err;
    assert_int_equal(store_health(store, &err), STATUS_IO);
    assert_int_equal(store_room(store, &err), STATUS_IO);

    /* A delete that works does not mean that all is well; one that fails takes its group along. */
    delete_later(store, "b", &delete);
    assert_int_equal(outcome_wait(&delete), STATUS_OK);
    assert_int_equal(store_health(store, &err), STATUS_IO);
    memory_store_fail_commits(store, 1, STATUS_UNAVAILABLE);
    delete_later(store, "first", &delete);
    assert_int_equal(outcome_wait(&delete), STATUS_UNAVAILABLE);
    assert_int_equal(store_health(store, &err), STATUS_UNAVAILABLE);
    expect_key(store, NULL, 1, "first", "v");
    memory_store_set_full(store, false);
    put_now(store, 1, "c", "v");
    assert_int_equal(store_health(store, &err), STATUS_OK);
}

/* The memory of a transaction is used again; what it said of itself is not. */
static void room_is_made_by_who_says_so_and_nobody_else(void **state)
{
    Store *store = *state;
    StoreTxn *ended[2 * OBJECT_POOL_MAX];
    for (size_t i = 0; i < ARRAY_COUNT(ended); i++) {
        ended[i] = store_txn_begin(store);
        store_txn_makes_room(ended[i]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(ended); i++)
        store_txn_abort(ended[i]);
    memory_store_set_full(store, true);
    Outcome put;
    commit_later(store, "a", &put);
    assert_int_equal(outcome_wait(&put), STATUS_IO);
}

static void health_knows_of_a_full_disk_before_anyone_writes(void **state)
{
    Store *store = *state;
    Error err;
    memory_store_set_full(store, true);
    assert_int_equal(store_health(store, &err), STATUS_IO);
    memory_store_set_full(store, false);
    assert_int_equal(store_health(store, &err), STATUS_OK);
}

static void reads_that_meet_damage_are_counted(void **state)
{
    Store *store = *state;
    put_now(store, 1, "a", "v");
    StoreDamage damage;
    store_damage(store, &damage);
    assert_int_equal(damage.reads, 0);
    assert_int_equal(damage.newest.status, STATUS_OK);
    Slice key = {0}, data = {0};
    bool there = true;
    StoreValue value = {0};
    StoreFound found = STORE_UNKNOWN;
    AUTO(store_txn_abort) StoreTxn *txn = store_txn_begin(store);
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(store, NULL, 1, SLICE_EMPTY, SLICE_EMPTY);
    static const Status statuses[] = {STATUS_CORRUPT, STATUS_IO}; /* only one of them is damage */
    for (size_t i = 0; i < ARRAY_COUNT(statuses); i++) {
        Error err;
        Status status = statuses[i];
        memory_store_fail_gets(store, 2, status);
        memory_store_fail_cursor_steps(store, 1, status);
        store_cursor_seek(cursor, SLICE_EMPTY);
        assert_int_equal(
            store_get(store, NULL, 1, SLICE("a"), STORE_READ_ANY, &value, &found, &err), status);
        assert_int_equal(store_txn_get(txn, 1, SLICE("a"), &value, &there, &err), status);
        assert_int_equal(store_cursor_next(cursor, &key, &data, &there, &err), status);
        assert_int_equal(store_cursor_next(cursor, &key, &data, &there, &err), status);
        store_damage(store, &damage);
        assert_int_equal(damage.reads, 3); /* the cursor's second step read nothing */
        assert_int_equal(damage.newest.status, STATUS_CORRUPT);
        assert_non_null(strstr(damage.newest.message, "cursor step"));
    }
    assert_ok(store_health(store, err));
}

static void a_crash_loses_what_was_under_way_and_nothing_else(void **state)
{
    Store *store = *state;
    put_now(store, 1, "durable", "v");
    memory_store_stall(store);
    Outcome stalled, queued, after;
    commit_later(store, "stalled", &stalled);
    memory_store_wait_stalled(store);
    commit_later(store, "queued", &queued);
    memory_store_crash(store);
    commit_later(store, "after", &after);
    assert_int_equal(outcome_wait(&stalled), STATUS_UNAVAILABLE);
    assert_int_equal(outcome_wait(&queued), STATUS_UNAVAILABLE);
    assert_int_equal(outcome_wait(&after), STATUS_UNAVAILABLE);
    memory_store_restart(store);
    expect_walk(store_cursor_open(store, NULL, 1, SLICE_EMPTY, SLICE_EMPTY), true, "durable=v");
    put_now(store, 1, "again", "v");
    expect_key(store, NULL, 1, "again", "v");
}

static void failing_gets_say_so_as_often_as_they_were_told_to(void **state)
{
    Store *store = *state;
    put_now(store, 1, "a", "v");
    memory_store_fail_gets(store, 2, STATUS_CORRUPT);
    StoreValue value = {0};
    StoreFound found = STORE_UNKNOWN;
    bool there = true;
    Error err;
    assert_int_equal(store_get(store, NULL, 1, SLICE("a"), STORE_READ_ANY, &value, &found, &err),
                     STATUS_CORRUPT);
    assert_int_equal(err.status, STATUS_CORRUPT);
    AUTO(store_txn_abort) StoreTxn *txn = store_txn_begin(store);
    assert_int_equal(store_txn_get(txn, 1, SLICE("a"), &value, &there, &err), STATUS_CORRUPT);
    assert_null(value.owner);
    expect_key(store, NULL, 1, "a", "v");
}

static void a_forgotten_key_is_unknown_to_memory_only(void **state)
{
    Store *store = *state;
    put_now(store, 1, "a", "v");
    memory_store_forget(store, 1);
    expect_key(store, NULL, 1, "a", "v"); /* may go to the disk: finds it */
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(store_get(store, NULL, 1, SLICE("a"), STORE_READ_MEMORY, &value, &found, err));
    assert_int_equal(found, STORE_UNKNOWN);
    assert_null(value.owner);
    assert_ok(store_get(store, NULL, 1, SLICE("a"), STORE_READ_MEMORY, &value, &found, err));
    assert_int_equal(found, STORE_FOUND);
}

static void a_cursor_that_failed_fails_until_it_seeks(void **state)
{
    Store *store = *state;
    put_now(store, 1, "a", "v");
    put_now(store, 1, "b", "v");
    put_now(store, 1, "c", "v");
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(store, NULL, 1, SLICE_EMPTY, SLICE_EMPTY);
    expect_step(cursor, true, "a=v");
    memory_store_fail_cursor_steps(store, 1, STATUS_IO);
    Slice key = {0}, value = {0};
    bool found = true;
    Error err;
    assert_int_equal(store_cursor_next(cursor, &key, &value, &found, &err), STATUS_IO);
    assert_int_equal(store_cursor_prev(cursor, &key, &value, &found, &err), STATUS_IO);
    store_cursor_seek(cursor, SLICE("b"));
    expect_step(cursor, true, "b=v");
    expect_step(cursor, true, "c=v");
}

static void a_failed_drop_drops_nothing(void **state)
{
    Store *store = *state;
    put_now(store, 1, "a", "v");
    memory_store_fail_commits(store, 1, STATUS_IO);
    Error refusal;
    assert_int_equal(store_drop_spaces(store, 0, 9, &refusal), STATUS_IO);
    expect_key(store, NULL, 1, "a", "v");
    assert_ok(store_drop_spaces(store, 0, 9, err));
    expect_key(store, NULL, 1, "a", NULL);
}

static int open_store(void **state)
{
    Store *store = NULL;
    memory_store_open(&store);
    *state = store;
    return 0;
}

static int close_store(void **state)
{
    store_close(*state);
    return 0;
}

int main(void)
{
#define FAULT_TEST(function) cmocka_unit_test_setup_teardown(function, open_store, close_store)
    const struct CMUnitTest tests[] = {
        FAULT_TEST(nothing_is_visible_before_it_is_durable),
        FAULT_TEST(what_gathers_behind_a_slow_write_becomes_one_group),
        FAULT_TEST(a_group_is_cut_before_it_grows_too_large),
        FAULT_TEST(a_failed_write_fails_its_whole_group_and_changes_nothing),
        FAULT_TEST(health_comes_back_without_anyone_writing),
        FAULT_TEST(on_a_full_disk_a_group_parts_ways),
        FAULT_TEST(room_is_made_by_who_says_so_and_nobody_else),
        FAULT_TEST(health_knows_of_a_full_disk_before_anyone_writes),
        FAULT_TEST(reads_that_meet_damage_are_counted),
        FAULT_TEST(a_crash_loses_what_was_under_way_and_nothing_else),
        FAULT_TEST(failing_gets_say_so_as_often_as_they_were_told_to),
        FAULT_TEST(a_forgotten_key_is_unknown_to_memory_only),
        FAULT_TEST(a_cursor_that_failed_fails_until_it_seeks),
        FAULT_TEST(a_failed_drop_drops_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
