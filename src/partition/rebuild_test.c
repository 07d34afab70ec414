/* rebuild_test.c - the index follows a change of the policy while everything goes on. */
#include "base/test_seed.h"
#include "partition/partition_rebuild_testing_int.h"

static void a_new_policy_is_followed(TestPartition *t)
{
    create_items(t, 0, 1200);
    assert_int_equal(count_with(t, "/n", "3"), 120);
    expect_path(t, "/u", true);
    set_policy(t, POLICY_N);
    test_settle(t);
    assert_int_equal(partition_index_progress(t->partition), 100);
    assert_int_equal(count_with(t, "/n", "3"), 120);
    assert_int_equal(count_with(t, "/u", NULL), 0);
    expect_path(t, "/u", false);
    expect_path(t, "/n", true);
    check_space(t);
    set_policy(t, POLICY_U);
    create_items(t, 1200, 1300);
    test_settle(t);
    assert_int_equal(count_with(t, "/n", NULL), 0);
    assert_int_equal(count_with(t, "/u", NULL), 1300);
    assert_int_equal(count_with(t, "", NULL), 1300);
    check_space(t);
}

/* While it is rebuilt, a path is usable that both policies have, and progress is told (I12). */
static void meanwhile_both_policies_count(TestPartition *t)
{
    create_items(t, 0, 1200);
    memory_store_stall(t->store);
    set_policy(t, POLICY_N);
    expect_path(t, "/u", false); /* at once: the definition has it no more */
    assert_int_equal(partition_index_progress(t->partition), 0);
    memory_store_wait_stalled(t->store);
    memory_store_release(t->store);
    test_settle(t);

    memory_store_stall(t->store);
    set_policy(t, POLICY_ALL);
    memory_store_wait_stalled(t->store);
    expect_path(t, "/n", true);
    expect_path(t, "/u", false);
    expect_path(t, "/id", true);
    assert_int_equal(partition_index_progress(t->partition), 0);
    memory_store_release(t->store);
    unsigned last = 0;
    while (last < 100) {
        unsigned now = partition_index_progress(t->partition);
        assert_in_range(now, last, 100);
        AUTO(partition_view_close) PartitionView *view = test_view(t);
        if (view_has(view, "/u"))
            assert_int_equal(view_set(t, view, "/u", NULL).count, 1200);
        assert_true(view_has(view, "/n"));
        assert_int_equal(view_set(t, view, "/n", "3").count, 120);
        last = now;
    }
    expect_path(t, "/u", true);
    check_space(t);
}

/* I12 */
static void a_third_policy_waits_for_the_second(TestPartition *t)
{
    create_items(t, 0, 1200);
    memory_store_stall(t->store);
    set_policy(t, POLICY_N);
    memory_store_wait_stalled(t->store);
    set_policy(t, POLICY_U);
    assert_int_equal(partition_index_progress(t->partition), 0);
    memory_store_release(t->store);
    test_settle(t);
    assert_int_equal(partition_index_progress(t->partition), 100);
    assert_int_equal(count_with(t, "/n", NULL), 0);
    assert_int_equal(count_with(t, "/u", NULL), 1200);
    check_space(t);
}

static void a_policy_that_comes_back_is_followed_too(TestPartition *t)
{
    create_items(t, 0, 30);
    memory_store_stall(t->store);
    set_policy(t, POLICY_N);
    memory_store_wait_stalled(t->store);
    set_policy(t, NULL);
    memory_store_release(t->store);
    test_settle(t);
    assert_int_equal(count_with(t, "/u", NULL), 30);
    expect_path(t, "/u", true);
    check_space(t);
}

static void other_words_for_the_same_policy_rebuild_nothing(TestPartition *t)
{
    create_items(t, 0, 10);
    uint64_t groups = memory_store_groups(t->store);
    set_policy(t, "{'automatic':true,'includedPaths':[{'path':'/*'}],"
                  "'excludedPaths':[{'path':'/_etag/?'}]}");
    test_settle(t);
    assert_int_equal(memory_store_groups(t->store), groups + 1);
    assert_int_equal(partition_index_progress(t->partition), 100);
    check_space(t);
    set_policy(t, POLICY_BY_HAND); /* but for _etag, which no document has */
    test_settle(t);
    check_space(t);
}

static void items_from_before_there_was_an_index_are_indexed(TestPartition *t)
{
    create_items(t, 0, 700);
    static const uint8_t state[] = {KEY_INDEX_STATE};
    StoreTxn *txn = store_txn_begin(t->store);
    store_txn_delete(txn, TEST_SPACE, slice_make(state, sizeof(state)));
    assert_ok(store_txn_commit_wait(txn, err));
    assert_int_equal(count_keys(t, KEY_TERM), 0);
    PartitionSchema *old = t->schema;
    t->schema = test_schema((TestSchema){.kind = PARTITION_HASH_V2, .paths = "/pk"});
    schema_unref(old);
    test_reopen(t);
    assert_int_equal(partition_index_progress(t->partition), 0);
    expect_path(t, "/n", false);
    create_items(t, 700, 800);
    check_space(t);
    test_maintain(t);
    assert_int_equal(partition_index_progress(t->partition), 100);
    expect_path(t, "/n", true);
    assert_int_equal(count_with(t, "", NULL), 800);
    check_space(t);
}

static void a_failing_disk_only_delays_it(TestPartition *t)
{
    create_items(t, 0, 1200);
    for (unsigned groups = 0; groups < 5; groups++) {
        set_policy(t, groups % 2 == 0 ? POLICY_N : POLICY_U);
        test_settle(t);
        set_policy(t, NULL);
        test_settle(t);
        /* The beginning, a piece or the end is lost. */
        memory_store_stall(t->store);
        set_policy(t, groups % 2 == 0 ? POLICY_U : POLICY_N);
        for (unsigned i = 0; i < groups; i++) {
            memory_store_wait_stalled(t->store);
            memory_store_release(t->store);
            memory_store_stall(t->store);
        }
        memory_store_fail_commits(t->store, 1, STATUS_IO);
        memory_store_release(t->store);
        test_settle(t);
        memory_store_fail_commits(t->store, 0, STATUS_IO);
        check_space(t);
        expect_path(t, "/id", true);
        test_maintain(t);
        assert_int_equal(partition_index_progress(t->partition), 100);
        check_space(t);
    }
}

/* I12 */
static void a_stop_in_the_middle_is_gone_on_from(TestPartition *t)
{
    enum { ITEMS = 2500 };
    static const char *const policies[] = {POLICY_N, POLICY_U, POLICY_NONE, POLICY_ALL, ""};
    Random random;
    random_init(&random, test_seed());
    create_items(t, 0, ITEMS);
    int rounds = (t->engine == TEST_MEMORY ? 40 : 20) / ROUNDS_SHARE;
    unsigned unfinished = 0;
    for (int round = 0; round < rounds; round++) {
        if (round % 2 == 0)
            set_policy(t, policies[(size_t)round / 2 % ARRAY_COUNT(policies)]);
        for (uint64_t i = random_below(&random, 4); i > 0; i--)
            disturb(t, &random, ITEMS);
        test_reopen(t); /* wherever it is */
        check_space(t);
        unfinished += partition_index_progress(t->partition) < 100 ? 1 : 0;
        for (uint64_t i = random_below(&random, 4); i > 0; i--)
            disturb(t, &random, ITEMS);
        check_space(t);
        (void)partition_maintain(t->partition);
    }
    assert_true(unfinished > 0);
    test_maintain(t);
    assert_int_equal(partition_index_progress(t->partition), 100);
    check_space(t);
}

static void a_rebuild_of_large_items_goes_in_small_pieces(TestPartition *t)
{
    enum { ITEMS = 12, BYTES = 600000 };
    char *row = mem_alloc(BYTES + 100);
    for (int i = 0; i < ITEMS; i++) {
        int at = snprintf(row, 100, "{'id':'%d','pk':'p','text':'", i);
        memset(row + at, 'x', BYTES);
        (void)snprintf(row + at + BYTES, 3, "'}");
        assert_status(run_document(t, ITEM_CREATE, row), STATUS_OK);
    }
    mem_free(row);
    uint64_t groups = memory_store_groups(t->store);
    set_policy(t, POLICY_N);
    test_settle(t);
    assert_true(memory_store_groups(t->store) >= groups + 1 + 3);
    check_space(t);
}

static void unindexed_items_stay_so(TestPartition *t)
{
    create_items(t, 0, 3);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    add_document(&w, ITEM_CREATE, "{'id':'x','pk':'p','n':1}")->directive = INDEX_EXCLUDE;
    test_run(t, &w);
    set_policy(t, POLICY_N);
    test_settle(t);
    assert_int_equal(count_with(t, "", NULL), 3);
    check_space(t);
}

static void a_damaged_state_is_refused(TestPartition *t)
{
    create_items(t, 0, 1);
    static const uint8_t key[] = {KEY_INDEX_STATE};
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(store_get(t->store, NULL, TEST_SPACE, slice_make(key, 1), STORE_READ_ANY, &value,
                        &found, err));
    Slice good = arena_copy(&t->arena, value.data);
    for (size_t i = 0; i < 8; i++) {
        char *bytes = UNCONST(char, arena_copy(&t->arena, good).ptr);
        Slice bad = slice_make(bytes, good.len);
        if (i == 0)
            bad.len = 0;
        else if (i == 1)
            bad.len = 39;
        else if (i == 2)
            bytes[0] = 9;
        else if (i == 3)
            bad.len--;
        else if (i == 4)
            bytes[32] = 1; /* an old policy of one byte */
        else if (i == 5)
            bytes[1] = SAMPLES_ALL + 1;
        else if (i == 6)
            bytes[1] = SAMPLES_TO_POSITION; /* which is the end */
        else
            memset(bytes + 40, 0xEE, good.len - 40);
        StoreTxn *txn = store_txn_begin(t->store);
        store_txn_put(txn, TEST_SPACE, slice_make(key, 1), bad);
        assert_ok(store_txn_commit_wait(txn, err));
        /* It is there, and refuses everything. */
        AUTO(partition_unref) Partition *partition = NULL;
        Error error;
        assert_ok(partition_open(&t->host, TEST_SPACE, TEST_PARTITION, t->schema, &partition, err));
        assert_status(partition_check_damage(partition, &error), STATUS_CORRUPT);
        assert_int_equal(partition_index_progress(partition), 0);
    }
    StoreTxn *txn = store_txn_begin(t->store);
    store_txn_put(txn, TEST_SPACE, slice_make(key, 1), good);
    assert_ok(store_txn_commit_wait(txn, err));
    check_space(t);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(a_new_policy_is_followed),
        ENGINE_TEST(items_from_before_there_was_an_index_are_indexed, .index = ""),
        ENGINE_TEST(a_stop_in_the_middle_is_gone_on_from),
        ENGINE_TEST(unindexed_items_stay_so),
        ENGINE_TEST(a_damaged_state_is_refused),
    };
    static const EngineTest on_memory[] = {
        ENGINE_TEST(meanwhile_both_policies_count),
        ENGINE_TEST(a_third_policy_waits_for_the_second),
        ENGINE_TEST(a_policy_that_comes_back_is_followed_too),
        ENGINE_TEST(other_words_for_the_same_policy_rebuild_nothing),
        ENGINE_TEST(a_failing_disk_only_delays_it),
        ENGINE_TEST(a_rebuild_of_large_items_goes_in_small_pieces),
    };
    return run_on_every_engine("rebuild", tests, ARRAY_COUNT(tests)) +
           run_on_memory("rebuild faults", on_memory, ARRAY_COUNT(on_memory));
}
