/* partition_check_test.c - the check finds what is wrong, and says what. */
#include "partition/partition_index_testing_int.h"

#include "index/set.h"

typedef struct Findings {
    Buf text; /* a line each */
    CheckTotals totals;
} Findings;

static void note_finding(void *ctx, const char *finding)
{
    Findings *findings = ctx;
    buf_format(&findings->text, "%s\n", finding);
}

static void run_check(TestPartition *t, Findings *out)
{
    *out = (Findings){.totals = {0}};
    buf_init(&out->text, 1 << 20);
    CheckReport report = {.found = note_finding, .ctx = out};
    test_settle(t);
    assert_ok(partition_check(t->partition, t->schema, &report, &out->totals, err));
    buf_byte(&out->text, 0);
}

static void expect_finding(TestPartition *t, const char *text)
{
    Findings findings;
    run_check(t, &findings);
    if (text == NULL)
        assert_string_equal(findings.text.ptr, "");
    else if (findings.totals.findings == 0 || strstr(findings.text.ptr, text) == NULL)
        fail_msg("expected '%s', found '%s'", text, findings.text.ptr);
    assert_int_equal(findings.totals.findings > 0, text != NULL);
    buf_done(&findings.text);
}

static void put(TestPartition *t, Slice key, Slice value)
{
    StoreTxn *txn = store_txn_begin(t->store);
    store_txn_put(txn, TEST_SPACE, key, value);
    assert_ok(store_txn_commit_wait(txn, err));
}

static void take(TestPartition *t, Slice key)
{
    StoreTxn *txn = store_txn_begin(t->store);
    store_txn_delete(txn, TEST_SPACE, key);
    assert_ok(store_txn_commit_wait(txn, err));
}

static Slice get(TestPartition *t, Slice key)
{
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(store_get(t->store, NULL, TEST_SPACE, key, STORE_READ_ANY, &value, &found, err));
    assert_int_equal(found, STORE_FOUND);
    return arena_copy(&t->arena, value.data);
}

/* Adds a number to, or takes it from, the set of a path and value. */
static void merge(TestPartition *t, const char *path, const char *value, uint64_t number,
                  bool is_added)
{
    AUTO(buf_done) Buf key;
    AUTO(buf_done) Buf term;
    AUTO(buf_done) Buf operand;
    buf_init(&key, STORE_KEY_BYTES_MAX);
    buf_init(&term, TERM_VALUE_BYTES_MAX);
    buf_init(&operand, 1024);
    bool exact = true;
    term_put_json(&term, row_json(&t->arena, value), &exact);
    term_key(&key, test_term_path(t->partition->index_key, path), buf_view(&term),
             number >> SET_CHUNK_BITS);
    uint16_t low = (uint16_t)number;
    set_operand(&operand, &low, is_added ? 1 : 0, &low, is_added ? 0 : 1);
    StoreTxn *txn = store_txn_begin(t->store);
    store_txn_merge(txn, TEST_SPACE, buf_view(&key), buf_view(&operand));
    assert_ok(store_txn_commit_wait(txn, err));
}

/* Two items, 'a' and 'b', and 'c', which is not indexed. */
static void fill(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1,'u':1,'ttl':100}"),
                  STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','n':1,'u':2}"), STATUS_OK);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    add_document(&w, ITEM_CREATE, "{'id':'c','pk':'p','n':1,'u':3}")->directive = INDEX_EXCLUDE;
    test_run(t, &w);
}

static void key_of(TestPartition *t, const char *id, Key *key)
{
    Epk epk;
    make_epk(&t->arena, t->schema, "p", &epk);
    key_item(key, epk_slice(&epk), slice_from_cstr(id));
}

static uint64_t number_of(TestPartition *t, const char *id)
{
    Item item;
    assert_true(test_get(t, "p", id, &item));
    return item.number;
}

static void what_is_whole_gives_no_findings(TestPartition *t)
{
    expect_finding(t, NULL);
    fill(t);
    Findings findings;
    run_check(t, &findings);
    assert_string_equal(findings.text.ptr, "");
    assert_int_equal(findings.totals.items, 3);
    assert_true(findings.totals.terms > 10);
    buf_done(&findings.text);
}

static void a_term_that_is_missing_is_found(TestPartition *t)
{
    fill(t);
    merge(t, "/n", "1", number_of(t, "b"), false);
    expect_finding(t, "item 'b' (");
    expect_finding(t, "is missing under 1 of its 12 terms");
    merge(t, "/n", "1", number_of(t, "b"), true);
    expect_finding(t, NULL);
}

static void a_term_too_many_is_found(TestPartition *t)
{
    fill(t);
    uint64_t b = number_of(t, "b");
    merge(t, "/n", "2", b, true);
    expect_finding(t, "that it has not");
    merge(t, "/n", "2", b, false);
    expect_finding(t, NULL);
    merge(t, "/n", "1", number_of(t, "c"), true);
    expect_finding(t, "item 'c' (");
    merge(t, "/n", "1", number_of(t, "c"), false);
    merge(t, "/n", "1", b + 7, true);
    expect_finding(t, "which is not there");
    merge(t, "/n", "1", b + 7, false);
    merge(t, "/n", "1", (uint64_t)77 << ITEM_COUNT_BITS, true);
    expect_finding(t, "which is not there");
}

/* One too many and one missing in the same chunk: as many pairs as there should be. */
static void two_items_that_change_places_are_found(TestPartition *t)
{
    fill(t);
    uint64_t a = number_of(t, "a");
    uint64_t b = number_of(t, "b");
    merge(t, "/u", "1", a, false);
    merge(t, "/u", "1", b, true);
    merge(t, "/u", "2", b, false);
    merge(t, "/u", "2", a, true);
    expect_finding(t, "item 'a' (");
    expect_finding(t, "item 'b' (");
}

static void a_number_that_is_missing_or_wrong_is_found(TestPartition *t)
{
    fill(t);
    Key key;
    key_number(&key, number_of(t, "a"));
    Slice place = get(t, key_slice(&key));
    take(t, key_slice(&key));
    expect_finding(t, "item 'a' is not in the map of numbers");
    put(t, key_slice(&key), SLICE("x"));
    expect_finding(t, "an entry of the map of numbers is damaged");
    Key other;
    key_number(&other, number_of(t, "b"));
    put(t, key_slice(&key), get(t, key_slice(&other)));
    expect_finding(t, "the number of item 'a' leads elsewhere");
    put(t, key_slice(&key), place);
    expect_finding(t, NULL);
    key_number(&key, number_of(t, "a") + 100);
    put(t, key_slice(&key), place);
    expect_finding(t, "leads to no item");
}

static void an_item_that_is_missing_or_damaged_is_found(TestPartition *t)
{
    fill(t);
    Key key;
    key_of(t, "a", &key);
    Slice bytes = get(t, key_slice(&key));
    take(t, key_slice(&key));
    expect_finding(t, "the counters have 3 items");
    expect_finding(t, "leads to no item");
    expect_finding(t, "which is not there");
    put(t, key_slice(&key), slice_first(bytes, bytes.len - 1));
    expect_finding(t, "is damaged, or not where it belongs");
    put(t, key_slice(&key), SLICE("x"));
    expect_finding(t, "is damaged, or not where it belongs");
    put(t, key_slice(&key), bytes);
    expect_finding(t, NULL);
    key_of(t, "z", &key);
    put(t, key_slice(&key), bytes);
    expect_finding(t, "is damaged, or not where it belongs");
}

static void notes_and_unique_values_that_are_missing_are_found(TestPartition *t)
{
    fill(t);
    Key key;
    Item item;
    assert_true(test_get(t, "p", "a", &item));
    key_expiry(&key, item_expires_at_s(t->schema, &item), item.number);
    take(t, key_slice(&key));
    expect_finding(t, "item 'a' has no expiry note");
    put(t, key_slice(&key), SLICE_EMPTY);
    expect_finding(t, NULL);

    StoreCursor *cursor = store_cursor_open(t->store, NULL, TEST_SPACE, SLICE("\5"), SLICE("\6"));
    Slice stored, value;
    bool found = false;
    assert_ok(store_cursor_next(cursor, &stored, &value, &found, err));
    assert_true(found);
    stored = arena_copy(&t->arena, stored);
    value = arena_copy(&t->arena, value);
    store_cursor_close(cursor);
    take(t, stored);
    expect_finding(t, "does not hold its values of unique key 1");
    put(t, stored, value);
    put(t, SLICE("\5\0zzz"), value);
    expect_finding(t, "there are 4 unique values where 3 are held by items");
    put(t, SLICE("\5\0zzz"), SLICE("zzz"));
    expect_finding(t, "a unique key is damaged");
}

/* The first key of a kind, with its value; copies. */
static void find_first(TestPartition *t, uint8_t kind, Slice *key, Slice *value)
{
    uint8_t from[] = {kind};
    uint8_t to[] = {(uint8_t)(kind + 1)};
    AUTO(store_cursor_close)
    StoreCursor *cursor =
        store_cursor_open(t->store, NULL, TEST_SPACE, slice_make(from, 1), slice_make(to, 1));
    bool found = false;
    assert_ok(store_cursor_next(cursor, key, value, &found, err));
    assert_true(found);
    *key = arena_copy(&t->arena, *key);
    *value = arena_copy(&t->arena, *value);
}

/* I23, I25 */
static void damage_of_the_change_log_is_found(TestPartition *t)
{
    fill(t);
    expect_finding(t, NULL);
    Slice key;
    Slice value;
    find_first(t, KEY_LATEST, &key, &value);
    take(t, key);
    expect_finding(t, "the newest change of item 'a' is not in the change log");
    put(t, key, slice_first(value, value.len - 1)); /* of another item */
    expect_finding(t, "is not in the change log");
    put(t, key, value);
    expect_finding(t, NULL);
    Key other;
    key_change(&other, KEY_LATEST, (ChangePlace){.lsn = 3, .number = 77});
    put(t, key_slice(&other), value);
    expect_finding(t, "the change log has the newest changes of 4 items, there are 3");
    take(t, key_slice(&other));
    key_change(&other, KEY_LATEST, (ChangePlace){.lsn = 99, .number = 77});
    put(t, key_slice(&other), value);
    expect_finding(t, "an entry of the change log is damaged");
    take(t, key_slice(&other));

    find_first(t, KEY_HISTORY, &key, &value);
    take(t, key);
    expect_finding(t, "the history of changes is said to have 3 entries, it has 2");
    put(t, key, slice_first(value, value.len / 2));
    expect_finding(t, "an entry of the history of changes is damaged");
    put(t, key, value);
    expect_finding(t, NULL);
    put(t, SLICE("\x0b"), SLICE("short"));
    expect_finding(t, "a floor of the change log is damaged");
    take(t, SLICE("\x0b"));
    put(t, SLICE("\x0c"), SLICE("short"));
    expect_finding(t, "a baseline is damaged");
    take(t, SLICE("\x0c"));
    put(t, SLICE("\x0d"), SLICE("short"));
    expect_finding(t, "a record of a baseline is damaged");
}

static void keys_that_should_not_be_there_are_found(TestPartition *t)
{
    fill(t);
    static const Slice keys[] = {SLICE_INIT("\x0e what"), SLICE_INIT("\x11"), SLICE_INIT("\xff")};
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        put(t, keys[i], SLICE("x"));
        expect_finding(t, "a key of an unknown kind");
        take(t, keys[i]);
        expect_finding(t, NULL);
    }
    put(t, SLICE("\4"), SLICE_EMPTY);
    expect_finding(t, "an expiry note is damaged");
    take(t, SLICE("\4"));
    put(t, SLICE("\6"), SLICE("x"));
    expect_finding(t, "a purge is damaged");
}

static void sizes_that_are_wrong_are_found(TestPartition *t)
{
    fill(t);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'q'}"), STATUS_OK);
    expect_finding(t, NULL);
    static const SizeSum changes[] = {{0, 1}, {0, -1}, {1, 0}, {-1, 0}, {INT32_MAX, INT32_MIN}};
    for (size_t i = 0; i < ARRAY_COUNT(changes); i++) {
        test_resize(t, "p", changes[i].items, changes[i].bytes);
        expect_finding(t, "a logical partition is said to have");
        expect_finding(t, "together, the partition 4 of");
        test_resize(t, "p", -changes[i].items, -changes[i].bytes);
        expect_finding(t, NULL);
    }
    /* Between two of them the sum stays the same. */
    test_resize(t, "p", 0, 1);
    test_resize(t, "q", 0, -1);
    expect_finding(t, "a logical partition is said to have");
    test_resize(t, "p", 0, -1);
    test_resize(t, "q", 0, 1);
    test_resize(t, "nobody", 1, 100);
    expect_finding(t, "there are sizes of 3 logical partitions, and 2 have items");
    test_resize(t, "nobody", -1, -100);
    expect_finding(t, NULL);
}

static void many_findings_are_counted_and_not_all_told(TestPartition *t)
{
    fill(t);
    for (uint64_t i = 0; i < 150; i++)
        merge(t, "/n", "1", item_number(TEST_PARTITION, 1000 + i), true);
    Findings findings;
    run_check(t, &findings);
    size_t lines = 0;
    for (const char *c = findings.text.ptr; *c != '\0'; c++)
        lines += *c == '\n' ? 1 : 0;
    assert_int_equal(lines, CHECK_FINDINGS_MAX);
    assert_true(findings.totals.findings > CHECK_FINDINGS_MAX);
    buf_done(&findings.text);
}

static void bytes_that_the_store_cannot_merge_are_a_finding(TestPartition *t)
{
    fill(t);
    StoreTxn *txn = store_txn_begin(t->store);
    AUTO(buf_done) Buf key;
    buf_init(&key, 100);
    term_key(&key, 1, SLICE("\5"), 0);
    store_txn_merge(txn, TEST_SPACE, buf_view(&key), SLICE("\7 no operand"));
    assert_ok(store_txn_commit_wait(txn, err));
    expect_finding(t, "could not be checked");
}

static void a_disk_that_fails_is_an_error(TestPartition *t)
{
    fill(t);
    Findings findings = {.totals = {0}};
    buf_init(&findings.text, 1 << 20);
    CheckReport report = {.found = note_finding, .ctx = &findings};
    Error error;
    memory_store_fail_cursor_steps(t->store, 1, STATUS_IO);
    assert_status(partition_check(t->partition, t->schema, &report, &findings.totals, &error),
                  STATUS_IO);
    memory_store_fail_gets(t->store, 1, STATUS_IO);
    assert_status(partition_check(t->partition, t->schema, &report, &findings.totals, &error),
                  STATUS_IO);
    buf_done(&findings.text);
}

#define CHECK_TEST(function) ENGINE_TEST(function, .ttl_s = -1, .unique = {"/u"})

int main(void)
{
    static const EngineTest tests[] = {
        CHECK_TEST(what_is_whole_gives_no_findings),
        CHECK_TEST(a_term_that_is_missing_is_found),
        CHECK_TEST(a_term_too_many_is_found),
        CHECK_TEST(two_items_that_change_places_are_found),
        CHECK_TEST(a_number_that_is_missing_or_wrong_is_found),
        CHECK_TEST(an_item_that_is_missing_or_damaged_is_found),
        CHECK_TEST(notes_and_unique_values_that_are_missing_are_found),
        ENGINE_TEST(damage_of_the_change_log_is_found, .ttl_s = -1, .unique = {"/u"},
                    .retention_s = 600),
        CHECK_TEST(keys_that_should_not_be_there_are_found),
        CHECK_TEST(sizes_that_are_wrong_are_found),
        CHECK_TEST(many_findings_are_counted_and_not_all_told),
        CHECK_TEST(bytes_that_the_store_cannot_merge_are_a_finding),
    };
    static const EngineTest on_memory[] = {CHECK_TEST(a_disk_that_fails_is_an_error)};
    return run_on_every_engine("check", tests, ARRAY_COUNT(tests)) +
           run_on_memory("check faults", on_memory, ARRAY_COUNT(on_memory));
}
