/* rewind_test.c - taking items back: to every second of a random history, and how far back at
 * most. */
#include "partition/rewind.h"

#include "base/random.h"
#include "base/test_seed.h"
#include "partition/change_feed.h"
#include "partition/change_log_int.h"
#include "partition/partition_check_testing_int.h"

enum { RETENTION_S = 600, SECONDS = 40, KEYS = 3, IDS = 5 };

static void set_policy(TestPartition *t, uint64_t retention_s)
{
    test_set_schema(t, (TestSchema){.kind = PARTITION_HASH_V2,
                                    .paths = "/pk",
                                    .ttl_s = -1,
                                    .unique = {"/u"},
                                    .retention_s = retention_s});
}

/* All documents, in the order of (EPK, id). */
static Slice contents(TestPartition *t)
{
    ScanOptions options = {.order = SCAN_BY_EPK};
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    assert_ok(partition_scan_open(t->partition, t->schema, &options, &scan, err));
    Buf text;
    buf_init(&text, 1 << 20);
    for (;;) {
        Item item;
        bool found = false;
        assert_ok(partition_scan_next(scan, &item, &found, err));
        if (!found)
            break;
        json_print(item.document, &text);
        buf_byte(&text, '\n');
    }
    Slice result = arena_copy(&t->arena, buf_view(&text));
    buf_done(&text);
    return result;
}

static RewindFacts check_facts(TestPartition *t, int64_t at_s, int64_t complete_from_s)
{
    RewindOptions options = {.at_s = at_s, .complete_from_s = complete_from_s};
    RewindFacts facts;
    assert_ok(partition_rewind_check(t->partition, &options, &facts, err));
    return facts;
}

static void rewind_to(TestPartition *t, int64_t at_s)
{
    RewindOptions options = {.at_s = at_s};
    assert_true(check_facts(t, at_s, INT64_MIN).earliest_s <= at_s);
    assert_ok(partition_rewind(t->partition, &options, err));
    check_space(t);
}

/* ---- any history ---- */

/* One operation of a batch: it may be refused, and then the whole batch is. */
static void add_random(TestPartition *t, TestWrite *w, Random *random, const char *pk)
{
    unsigned id = (unsigned)random_below(random, IDS);
    unsigned other = (unsigned)random_below(random, IDS);
    unsigned u = (unsigned)random_below(random, 12);
    const char *row = arena_format(&t->arena, "{'id':'%u','pk':'%s','u':%u,'n':%u}", id, pk, u,
                                   (unsigned)random_below(random, 1000000))
                          .ptr;
    const char *name = arena_format(&t->arena, "%u", other).ptr;
    switch (random_below(random, 5)) {
    case 0:
        (void)add_document(w, ITEM_CREATE, row);
        break;
    case 1:
    case 2:
        add_document(w, ITEM_UPSERT, row)->directive =
            random_below(random, 2) == 0 ? INDEX_EXCLUDE : INDEX_DEFAULT;
        break;
    case 3:
        (void)add_replace(w, name, row); /* perhaps under another id */
        break;
    default:
        (void)add_id(w, ITEM_DELETE, pk, name);
    }
}

static void work(TestPartition *t, Random *random)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, random_below(random, 2) == 0 ? WRITE_ATOMIC : WRITE_CONTINUE);
    const char *pk = arena_format(&t->arena, "p%u", (unsigned)random_below(random, KEYS)).ptr;
    for (uint64_t i = random_below(random, 4) + 1; i > 0; i--)
        add_random(t, &w, random, pk);
    test_run(t, &w);
}

static void each_second_of_a_history_can_be_gone_back_to(TestPartition *t)
{
    Random random;
    random_init(&random, test_seed());
    set_policy(t, RETENTION_S);
    int64_t begun_s = test_now_s(t);
    Slice states[SECONDS];
    for (size_t s = 0; s < SECONDS; s++) {
        for (uint64_t i = random_below(&random, 6); i > 0; i--)
            work(t, &random);
        states[s] = contents(t);
        test_advance_s(t, 1);
    }
    /* What takes it back is history, too: so it can be gone forwards again. Each round makes the
     * history several times as long. */
    for (int round = 0; round < 3; round++) {
        size_t s = (size_t)random_below(&random, SECONDS);
        uint64_t lsn = partition_lsn(t->partition);
        rewind_to(t, begun_s + (int64_t)s);
        assert_slice(contents(t), states[s]);
        assert_true(partition_lsn(t->partition) >= lsn);
        if (round == 1)
            test_reopen(t);
        test_advance_s(t, 1);
        rewind_to(t, begun_s + SECONDS - 1);
        assert_slice(contents(t), states[SECONDS - 1]);
        test_advance_s(t, 1);
    }
    rewind_to(t, begun_s - 1);
    assert_slice(contents(t), SLICE_EMPTY);
}

/* ---- how far back ---- */

static void put(TestPartition *t, const char *row)
{
    assert_status(run_document(t, ITEM_UPSERT, row), STATUS_OK);
}

/* Versions from before the policy are kept with the change that replaces them. */
static void what_was_there_before_the_policy_comes_back(TestPartition *t)
{
    put(t, "{'id':'a','pk':'p','u':1}");
    put(t, "{'id':'b','pk':'p','u':2}");
    test_advance_s(t, 10);
    set_policy(t, RETENTION_S);
    int64_t set_s = test_now_s(t);
    Slice before = contents(t);
    test_advance_s(t, 10);
    put(t, "{'id':'a','pk':'p','u':3}");
    assert_status(run_id(t, ITEM_DELETE, "p", "b"), STATUS_OK);
    check_space(t);
    test_advance_s(t, 10);
    /* By the history alone nothing is known of the time before its first change. */
    assert_int_equal(check_facts(t, set_s, INT64_MAX).earliest_s, set_s + 10);
    assert_int_equal(check_facts(t, set_s, set_s).earliest_s, set_s);
    assert_int_equal(check_facts(t, set_s, set_s).changes, 2);
    RewindOptions options = {.at_s = set_s, .complete_from_s = set_s};
    assert_ok(partition_rewind(t->partition, &options, err));
    assert_slice(contents(t), before);
    check_space(t);
}

/* The version that was replaced is gone from the history before the change is. */
static void all_of_the_retention_can_be_gone_back(TestPartition *t)
{
    set_policy(t, RETENTION_S);
    put(t, "{'id':'a','pk':'p','u':1}");
    put(t, "{'id':'b','pk':'p','u':2}");
    test_advance_s(t, 10);
    put(t, "{'id':'b','pk':'p','u':3}");
    int64_t changed_s = test_now_s(t);
    test_advance_s(t, RETENTION_S - 10);
    test_maintain(t); /* the first two entries go */
    assert_int_equal(count_keys(t, KEY_HISTORY), 1);
    rewind_to(t, changed_s - 1);
    assert_slice(contents(t), row_text(&t->arena, "{'id':'a','pk':'p','u':1}\n"
                                                  "{'id':'b','pk':'p','u':2}\n"));
}

/* Random changes for three times as long as history is kept, trimmed all along. */
static void every_second_within_the_retention_can_be_gone_back_to(TestPartition *t)
{
    enum { KEPT_S = 20, ALL_S = 3 * KEPT_S };
    Random random;
    random_init(&random, test_seed());
    set_policy(t, KEPT_S);
    Slice states[ALL_S];
    int64_t begun_s = test_now_s(t);
    for (size_t s = 0; s < ALL_S; s++) {
        if (random_below(&random, 3) > 0)
            work(t, &random);
        states[s] = contents(t);
        test_maintain(t);
        test_advance_s(t, 1);
    }
    for (size_t s = ALL_S - KEPT_S; s < ALL_S; s++)
        assert_true(check_facts(t, begun_s + (int64_t)s, INT64_MIN).earliest_s <=
                    begun_s + (int64_t)s);
    size_t s = ALL_S - KEPT_S;
    rewind_to(t, begun_s + (int64_t)s);
    assert_slice(contents(t), states[s]);
}

static void what_has_expired_stays_gone(TestPartition *t)
{
    set_policy(t, RETENTION_S);
    put(t, "{'id':'a','pk':'p','u':1,'ttl':5}");
    put(t, "{'id':'b','pk':'p','u':2}");
    int64_t at_s = test_now_s(t);
    test_advance_s(t, 2);
    put(t, "{'id':'b','pk':'p','u':3,'ttl':1}");
    test_advance_s(t, 10);
    test_maintain(t);
    assert_slice(contents(t), SLICE_EMPTY);
    rewind_to(t, at_s);
    assert_slice(contents(t), row_text(&t->arena, "{'id':'b','pk':'p','u':2}\n"));
}

static void an_open_purge_is_refused(TestPartition *t)
{
    set_policy(t, RETENTION_S);
    put(t, "{'id':'a','pk':'p','u':1}");
    atomic_store(&t->host.is_closing, true); /* nothing is removed */
    assert_status(run_purge(t, "p"), STATUS_OK);
    RewindFacts facts;
    RewindOptions options = {0};
    Error err;
    assert_status(partition_rewind_check(t->partition, &options, &facts, &err), STATUS_UNAVAILABLE);
    assert_non_null(strstr(err.message, "deletion of all items of a partition key"));
    atomic_store(&t->host.is_closing, false);
}

/* ---- numbers ---- */

static void numbers_can_be_skipped(TestPartition *t)
{
    set_policy(t, RETENTION_S);
    for (int round = 0; round < 2; round++) { /* empty, and not */
        uint64_t lsn = partition_lsn(t->partition);
        uint64_t number = atomic_load(&t->partition->item_next);
        test_settle(t);
        assert_ok(partition_skip_numbers(t->partition, 1000000, 5000, err));
        test_reopen(t);
        assert_int_equal(partition_lsn(t->partition), lsn + 1000000);
        put(t, arena_format(&t->arena, "{'id':'%d','pk':'p','u':%d}", round, round).ptr);
        assert_int_equal(partition_lsn(t->partition), lsn + 1000001);
        Item item;
        assert_true(test_get(t, "p", round == 0 ? "0" : "1", &item));
        assert_int_equal(item.number, item_number(TEST_PARTITION, number + 5000));
        test_maintain(t); /* an index that is rebuilt, if it is */
        check_space(t);
    }
    /* However often, numbers do not end. */
    for (int i = 0; i < 100; i++) {
        assert_ok(partition_skip_numbers(t->partition, UINT64_MAX, UINT64_MAX, err));
        test_reopen(t);
    }
    put(t, "{'id':'z','pk':'p','u':9}");
    assert_true(partition_lsn(t->partition) < UINT64_C(1) << 53);
    check_space(t);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(each_second_of_a_history_can_be_gone_back_to),
        ENGINE_TEST(what_was_there_before_the_policy_comes_back, .ttl_s = -1, .unique = {"/u"}),
        ENGINE_TEST(all_of_the_retention_can_be_gone_back),
        ENGINE_TEST(every_second_within_the_retention_can_be_gone_back_to),
        ENGINE_TEST(what_has_expired_stays_gone),
        ENGINE_TEST(an_open_purge_is_refused),
        ENGINE_TEST(numbers_can_be_skipped),
    };
    return run_on_every_engine("rewind", tests, ARRAY_COUNT(tests));
}
