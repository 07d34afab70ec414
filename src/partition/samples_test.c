/* samples_test.c - the index of an earlier version gets its samples while everything goes on. */
#include "base/test_seed.h"
#include "index/set.h"
#include "index/terms.h"
#include "partition/partition_rebuild_testing_int.h"

enum { ITEMS = 1500 };

/* ---- as an earlier version left it ---- */

static void take_term(StoreTxn *txn, const Term *term, uint64_t number)
{
    AUTO(buf_done) Buf key;
    AUTO(buf_done) Buf operand;
    buf_init(&key, STORE_KEY_BYTES_MAX);
    buf_init(&operand, 1024);
    uint16_t low = (uint16_t)number;
    term_key(&key, term->path, term->value, number >> SET_CHUNK_BITS);
    set_operand(&operand, NULL, 0, &low, 1);
    store_txn_merge(txn, TEST_SPACE, buf_view(&key), buf_view(&operand));
}

/* Returns how many samples the item is taken out of. */
static size_t take_samples(TestPartition *t, StoreTxn *txn, const Item *item)
{
    const IndexState *state = t->partition->writer.index;
    const IndexPolicy *policy =
        item->number <= t->partition->writer.index_position ? state->new_policy : state->old_policy;
    TermList list;
    TermSystem system = {.ts_s = item->ts_s};
    size_t taken = 0;
    terms_of(&t->arena, policy, t->partition->index_key, item->document, &system, &list);
    for (size_t i = 0; i < list.count; i++) {
        if (!list.terms[i].is_sample)
            continue;
        take_term(txn, &list.terms[i], item->number);
        taken++;
    }
    return taken;
}

/* The partition's own, but for what it says about samples; 'version' 1 says nothing. */
static void put_state(TestPartition *t, StoreTxn *txn, uint8_t version, IndexSamples samples,
                      uint64_t position)
{
    static const uint8_t key[] = {KEY_INDEX_STATE};
    const IndexState *now = t->partition->writer.index;
    AUTO(index_state_unref) IndexState *state = NULL;
    assert_ok(index_state_new(&t->schema->key, now->old_text, now->new_text, samples, &state, err));
    Slice record = index_state_encode(&t->arena, state, t->partition->index_key, position);
    char *bytes = UNCONST(char, record.ptr);
    bytes[0] = (char)version;
    store_txn_put(txn, TEST_SPACE, slice_make(key, 1), record);
}

static size_t take_all_samples(TestPartition *t, StoreTxn *txn, uint64_t keep)
{
    uint8_t from[] = {KEY_ITEM};
    uint8_t to[] = {KEY_ITEM + 1};
    AUTO(store_cursor_close)
    StoreCursor *cursor =
        store_cursor_open(t->store, NULL, TEST_SPACE, slice_make(from, 1), slice_make(to, 1));
    size_t taken = 0;
    for (;;) {
        Slice key, value;
        Item item;
        bool found = false;
        assert_ok(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return taken;
        assert_ok(item_decode(arena_copy(&t->arena, value), &item, err));
        if (keep == 0 || item.number % keep != 0)
            taken += take_samples(t, txn, &item);
    }
}

/* Takes all items out of samples but one in 'keep', which a version between the two has written;
 * 0 for none at all. The state says nothing about samples. */
static size_t make_old(TestPartition *t, uint64_t keep)
{
    test_settle(t);
    StoreTxn *txn = store_txn_begin(t->store);
    size_t taken = take_all_samples(t, txn, keep);
    put_state(t, txn, 1, SAMPLES_UNSURE, t->partition->writer.index_position);
    assert_ok(store_txn_commit_wait(txn, err));
    assert_true(taken > 0);
    test_reopen(t);
    return taken;
}

/* ---- tests ---- */

static uint64_t estimate_u(TestPartition *t)
{
    AUTO(partition_view_close) PartitionView *view = test_view(t);
    IndexBudget budget = {.keys_left = UINT32_MAX, .bytes_left = (size_t)1 << 30};
    IndexReader reader = partition_view_index(view, &budget);
    uint8_t from = TERM_STRING;
    uint8_t to = TERM_STRING + 1;
    IndexRange range = {.path = test_term_path(reader.key, "/u"),
                        .from = slice_make(&from, 1),
                        .to = slice_make(&to, 1)};
    IndexEstimate estimate;
    assert_ok(index_estimate(&reader, range, 64, &estimate, err));
    return estimate.items;
}

static void expect_whole(TestPartition *t, uint64_t items)
{
    assert_int_equal(partition_index_progress(t->partition), 100);
    assert_int_equal(t->partition->writer.index->samples, SAMPLES_ALL);
    assert_false(partition_maintain(t->partition));
    assert_int_equal(count_with(t, "", NULL), items);
    check_space(t); /* each item in all its samples, and no other */
}

/* I12 */
static void an_index_without_samples_gets_them(TestPartition *t)
{
    create_items(t, 0, ITEMS);
    uint64_t before = estimate_u(t);
    size_t terms = count_keys(t, KEY_TERM);
    size_t taken = make_old(t, 0);
    assert_true(count_keys(t, KEY_TERM) < terms);
    assert_true(taken > ITEMS / 64);
    assert_true(estimate_u(t) < before / 4);
    assert_int_equal(partition_index_progress(t->partition), 0);
    expect_path(t, "/u", true);
    assert_int_equal(count_with(t, "/n", "3"), ITEMS / 10);
    check_space(t);
    test_maintain(t);
    expect_whole(t, ITEMS);
    assert_int_equal(count_keys(t, KEY_TERM), terms);
    assert_int_equal(estimate_u(t), before);
    test_reopen(t);
    expect_whole(t, ITEMS);
}

static void what_is_written_before_it_begins_is_in_order(TestPartition *t)
{
    create_items(t, 0, ITEMS);
    make_old(t, 3);
    create_items(t, ITEMS, ITEMS + 300);
    assert_status(run_id(t, ITEM_DELETE, "p1", "i1"), STATUS_OK);
    check_space(t);
    test_reopen(t); /* the state is still the old one */
    assert_int_equal(partition_index_progress(t->partition), 0);
    check_space(t);
    test_maintain(t);
    expect_whole(t, ITEMS + 299);
}

/* Stops wherever it is, again and again, under writes that change and delete items of all kinds. */
static void a_stop_in_the_middle_is_gone_on_from(TestPartition *t)
{
    Random random;
    random_init(&random, test_seed());
    create_items(t, 0, ITEMS);
    unsigned unfinished = 0;
    for (unsigned round = 0; round < 8 / ROUNDS_SHARE; round++) {
        make_old(t, round % 2 == 0 ? 0 : 2 + round % 3);
        for (unsigned step = 0; step < 4; step++) {
            for (uint64_t i = random_below(&random, 8); i > 0; i--)
                disturb(t, &random, ITEMS);
            check_space(t);
            (void)partition_maintain(t->partition);
            /* At first not even one, so that there is something left to be gone on with. */
            for (uint64_t i = step == 0 ? 0 : random_below(&random, 8); i > 0; i--)
                disturb(t, &random, ITEMS);
            test_reopen(t);
            check_space(t);
            unfinished += t->partition->writer.index->samples == SAMPLES_TO_POSITION ? 1 : 0;
        }
        test_maintain(t);
        assert_int_equal(t->partition->writer.index->samples, SAMPLES_ALL);
        check_space(t);
    }
    assert_true(unfinished > 0);
}

/* Two policies without samples are rebuilt into one without, and that into the same with them. */
static void a_change_of_policy_that_was_begun_is_finished_first(TestPartition *t)
{
    create_items(t, 0, ITEMS);
    set_policy(t, POLICY_U);
    test_settle(t);
    bool is_between = false;
    for (int i = 0; i < 20 && !is_between; i++) {
        set_policy(t, i % 2 == 0 ? POLICY_ALL : POLICY_U);
        test_reopen(t);
        is_between = t->partition->writer.index_position != INDEX_COMPLETE;
        if (!is_between)
            test_maintain(t);
    }
    assert_true(is_between);
    uint64_t position = t->partition->writer.index_position;
    make_old(t, 2);
    assert_int_equal(t->partition->writer.index_position, position);
    assert_int_equal(t->partition->writer.index->samples, SAMPLES_UNSURE);
    assert_int_equal(partition_index_progress(t->partition), 0);
    check_space(t);
    for (int i = 0; i < 30; i++)
        assert_status(run_id(t, ITEM_DELETE, i % 2 == 0 ? "p0" : "p4",
                             arena_format(&t->arena, "i%d", i * 5 + i % 2 * 4).ptr),
                      STATUS_OK);
    check_space(t);
    test_maintain(t);
    expect_whole(t, ITEMS - 30);
    expect_path(t, "/u", true);
}

static void a_new_policy_waits_for_the_samples(TestPartition *t)
{
    create_items(t, 0, ITEMS);
    make_old(t, 2);
    memory_store_stall(t->store);
    set_policy(t, POLICY_U);
    memory_store_wait_stalled(t->store);
    expect_path(t, "/n", false); /* at once: the definition has it no more */
    expect_path(t, "/u", true);
    assert_int_equal(partition_index_progress(t->partition), 0);
    memory_store_release(t->store);
    test_settle(t);
    assert_int_equal(count_with(t, "/n", NULL), 0);
    expect_whole(t, ITEMS);
}

/* A number that is added to samples it is in and taken out of them in the same group is out. */
static void a_write_after_the_rebuild_in_one_group_counts(TestPartition *t)
{
    create_items(t, 0, TEST_OPS_MAX);
    StoreTxn *txn = store_txn_begin(t->store);
    put_state(t, txn, 2, SAMPLES_TO_POSITION, 0);
    assert_ok(store_txn_commit_wait(txn, err));
    test_reopen(t);
    AUTO(test_write_done) TestWrite first;
    AUTO(test_write_done) TestWrite second;
    test_write_init(&first, t, WRITE_CONTINUE);
    test_write_init(&second, t, WRITE_CONTINUE);
    (void)add_document(&first, ITEM_CREATE, "{'id':'x','pk':'p'}");
    for (int i = 0; i < TEST_OPS_MAX; i++) {
        Slice row = arena_format(&t->arena, "{'id':'i%d','pk':'p%d','u':'w%d'}", i, i % 5, i);
        (void)add_document(&second, ITEM_UPSERT, row.ptr);
    }
    uint64_t groups = memory_store_groups(t->store);
    memory_store_stall(t->store);
    test_submit(t, &first);
    memory_store_wait_stalled(t->store);
    assert_true(partition_maintain(t->partition));
    test_submit(t, &second);
    memory_store_release(t->store);
    assert_status(test_wait(&first), STATUS_OK);
    assert_status(test_wait(&second), STATUS_OK);
    test_settle(t);
    assert_int_equal(memory_store_groups(t->store), groups + 2); /* the second has the rebuild */
    expect_whole(t, TEST_OPS_MAX + 1);
}

/* I12 */
static void samples_are_added_under_one_policy_only(TestPartition *t)
{
    create_items(t, 0, 1);
    AUTO(index_state_unref) IndexState *state = NULL;
    assert_ok(index_state_new(&t->schema->key, SLICE_EMPTY, t->schema->index_text,
                              SAMPLES_TO_POSITION, &state, err));
    Slice record = index_state_encode(&t->arena, state, t->partition->index_key, 0);
    AUTO(index_state_unref) IndexState *decoded = NULL;
    HashKey key;
    uint64_t position = 0;
    Error error;
    assert_status(index_state_decode(record, &t->schema->key, &decoded, &key, &position, &error),
                  STATUS_CORRUPT);
    assert_null(decoded);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(an_index_without_samples_gets_them),
        ENGINE_TEST(what_is_written_before_it_begins_is_in_order),
        ENGINE_TEST(a_stop_in_the_middle_is_gone_on_from),
        ENGINE_TEST(a_change_of_policy_that_was_begun_is_finished_first),
    };
    static const EngineTest on_memory[] = {
        ENGINE_TEST(a_new_policy_waits_for_the_samples),
        ENGINE_TEST(a_write_after_the_rebuild_in_one_group_counts),
        ENGINE_TEST(samples_are_added_under_one_policy_only),
    };
    return run_on_every_engine("samples", tests, ARRAY_COUNT(tests)) +
           run_on_memory("samples faults", on_memory, ARRAY_COUNT(on_memory));
}
