/* merge_operator_test.c - what happens to operands and values in files: flushes, compactions,
 * restarts.
 *
 * Some tests use RocksDB without a store around it, to have a key's versions in files of their
 * choice.
 */
#include "store/rocksdb/rocksdb_testing_int.h"

#include "base/test_seed.h"
#include "store/rocksdb/rocksdb_int.h"

#include <stdatomic.h>

static void flush(rocksdb_t *db)
{
    char *text = NULL;
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flush(db, options, &text);
    rocksdb_flushoptions_destroy(options);
    assert_null(text);
}

static void compact(rocksdb_t *db)
{
    enum { REWRITE_THE_LAST_LEVEL = 2 };
    rocksdb_compactoptions_t *options = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_bottommost_level_compaction(options, REWRITE_THE_LAST_LEVEL);
    rocksdb_compact_range_opt(db, options, NULL, 0, NULL, 0);
    rocksdb_compactoptions_destroy(options);
}

static uint64_t property(rocksdb_t *db, const char *name)
{
    uint64_t value = 0;
    assert_int_equal(rocksdb_property_int(db, name, &value), 0);
    return value;
}

/* How many keys RocksDB itself shows, empty values included. */
static uint32_t raw_count(rocksdb_t *db)
{
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    rocksdb_iterator_t *iterator = rocksdb_create_iterator(db, options);
    uint32_t count = 0;
    for (rocksdb_iter_seek_to_first(iterator); rocksdb_iter_valid(iterator);
         rocksdb_iter_next(iterator))
        count++;
    rocksdb_iter_destroy(iterator);
    rocksdb_readoptions_destroy(options);
    return count;
}

static void a_flush_puts_operands_together(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = test_rocksdb_open(folder.path);
    rocksdb_t *db = rocksdb_of_store(store);
    for (uint32_t i = 0; i < 100; i++) {
        char operand[3] = {i < 60 ? '+' : '-', (char)('a' + i % 20), 0};
        merge_now(store, 1, "~k", operand);
    }
    assert_int_equal(property(db, "rocksdb.num-entries-active-mem-table"), 100);
    expect_key(store, NULL, 1, "~k", NULL);
    merge_now(store, 1, "~k", "+x");
    flush(db);
    assert_int_equal(property(db, "rocksdb.estimate-num-keys"), 1);
    expect_key(store, NULL, 1, "~k", "x");
}

/* A key that takes an operand a group is written as a value now and then. */
static void a_busy_key_does_not_collect_operands_for_ever(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = test_rocksdb_open(folder.path);
    rocksdb_t *db = rocksdb_of_store(store);
    enum { OPERANDS = 1000 };
    for (uint32_t i = 0; i < OPERANDS; i++)
        merge_now(store, 1, "~k", i % 2 == 0 ? "+x" : "+y-x");
    uint64_t values = property(db, "rocksdb.num-entries-active-mem-table") - OPERANDS;
    assert_in_range(values, 4, 16);
    expect_key(store, NULL, 1, "~k", "y");
}

static void compaction_removes_what_has_become_empty(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = test_rocksdb_open(folder.path);
    rocksdb_t *db = rocksdb_of_store(store);
    put_now(store, 1, "plain", "");
    put_now(store, 1, "p", "x");
    merge_now(store, 1, "~kept", "+a");
    for (uint32_t i = 0; i < 50; i++) {
        char key[8];
        (void)snprintf(key, sizeof(key), "~%u", i);
        merge_now(store, 1, key, "+a");
        merge_now(store, 1, key, "-a");
    }
    AUTO(store_snapshot_close) StoreSnapshot *snapshot = store_snapshot_open(store, STORE_READ_ANY);
    static const char all[] = "p=x plain= ~kept=a";
    for (uint32_t round = 0; round < 3; round++) {
        compact(db); /* the first one makes values of operands, the second removes them */
        expect_walk(store_cursor_open(store, NULL, 1, SLICE_EMPTY, SLICE_EMPTY), true, all);
        expect_walk(store_cursor_open(store, snapshot, 1, SLICE_EMPTY, SLICE_EMPTY), false,
                    "~kept=a plain= p=x");
    }
    assert_int_equal(raw_count(db), 3);
    merge_now(store, 1, "~7", "+b");
    expect_key(store, NULL, 1, "~7", "b");
    expect_key(store, snapshot, 1, "~7", NULL);
}

static void damage_stops_neither_flush_nor_compaction(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = test_rocksdb_open(folder.path);
    merge_now(store, 1, "~bad", "+a");
    merge_now(store, 1, "~good", "+a");
    for (uint32_t round = 0; round < 4; round++) {
        rocksdb_t *db = rocksdb_of_store(store);
        if (round % 2 == 1)
            merge_now(store, 1, "~bad", "damage");
        flush(db);
        compact(db);
        if (round > 0)
            expect_corrupt(store, NULL, 1, "~bad");
        merge_now(store, 1, "~bad", "+b");
        merge_now(store, 1, "~good", "+b"); /* is refused if RocksDB has given up */
        expect_key(store, NULL, 1, "~good", "ab");
        Error err;
        assert_int_equal(store_health(store, &err), STATUS_OK);
        assert_int_equal(property(db, "rocksdb.background-errors"), 0);
        store_close(store);
        store = test_rocksdb_open(folder.path);
    }
    expect_corrupt(store, NULL, 1, "~bad");
    expect_key(store, NULL, 1, "~good", "ab");
    assert_ok(store_drop_spaces(store, 1, 1, err));
    merge_now(store, 1, "~bad", "+c");
    compact(rocksdb_of_store(store));
    expect_key(store, NULL, 1, "~bad", "c");
    store_close(store);
}

/* Bytes that no operand has made are damage too, not a value. */
static void a_value_without_its_last_byte_is_damaged(void **state)
{
    (void)state;
    static const Slice rows[] = {SLICE_INIT(""), SLICE_INIT("ab"), SLICE_INIT("ba\0"),
                                 SLICE_INIT("ab\x02")};
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = test_rocksdb_open(folder.path);
    rocksdb_writeoptions_t *options = rocksdb_writeoptions_create();
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FullKey full;
        Slice key = full_key(&full, 1, SLICE("~k"));
        char *text = NULL;
        rocksdb_put(rocksdb_of_store(store), options, key.ptr, key.len, rows[i].ptr, rows[i].len,
                    &text);
        assert_null(text);
        merge_now(store, 1, "~k", "+c");
        expect_corrupt(store, NULL, 1, "~k");
        compact(rocksdb_of_store(store));
        expect_corrupt(store, NULL, 1, "~k");
    }
    rocksdb_writeoptions_destroy(options);
}

static StoreFound find_in_memory(Store *store, const char *key)
{
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(
        store_get(store, NULL, 1, slice_from_cstr(key), STORE_READ_MEMORY, &value, &found, err));
    return found;
}

static void operands_over_a_cold_value_are_unknown_to_memory(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = test_rocksdb_open(folder.path);
    merge_now(store, 1, "~k", "+a");
    compact(rocksdb_of_store(store));
    store_close(store);
    store = test_rocksdb_open(folder.path);
    assert_int_equal(find_in_memory(store, "~k"), STORE_UNKNOWN);
    merge_now(store, 1, "~k", "+b");
    assert_int_equal(find_in_memory(store, "~k"), STORE_UNKNOWN);
    flush(rocksdb_of_store(store));
    merge_now(store, 1, "~k", "+c");
    assert_int_equal(find_in_memory(store, "~k"), STORE_UNKNOWN);
    expect_key(store, NULL, 1, "~k", "abc");
    assert_int_equal(find_in_memory(store, "~k"), STORE_FOUND);
    store_close(store);
}

static void an_estimate_is_about_what_is_in_files(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = test_rocksdb_open(folder.path);
    Random random;
    random_init(&random, 1);
    StoreTxn *txn = store_txn_begin(store);
    for (uint32_t i = 0; i < 4096; i++) {
        char key[8], value[1024];
        (void)snprintf(key, sizeof(key), "%04u", i);
        for (size_t j = 0; j < sizeof(value); j += 8)
            memcpy(value + j, &(uint64_t){random_u64(&random)}, 8);
        store_txn_put(txn, 1, slice_from_cstr(key), slice_make(value, sizeof(value)));
    }
    commit_now(txn);
    compact(rocksdb_of_store(store));
    static const struct {
        StoreSpace space;
        const char *from, *to;
        uint64_t least, most; /* in KB */
    } rows[] = {
        {1, "", "", 3800, 4600},     {1, "0000", "5", 3800, 4600}, {1, "0", "2048", 1800, 2300},
        {1, "2048", "", 1800, 2300}, {1, "1000", "1100", 50, 200}, {1, "5", "", 0, 16},
        {1, "2", "1", 0, 0},         {1, "1", "1", 0, 0},          {2, "", "", 0, 16},
        {0, "", "", 0, 16},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint64_t bytes = store_estimate_bytes(store, rows[i].space, slice_from_cstr(rows[i].from),
                                              slice_from_cstr(rows[i].to));
        assert_in_range(bytes >> 10, rows[i].least, rows[i].most);
    }
}

/* Random work with flushes and compactions in between, under snapshots, against sets of bits. */
enum {
    MODEL_KEYS = 6,
    MODEL_GROUP = 2,
    MODEL_LETTERS = 4,
    MODEL_SNAPSHOTS = 3,
    MODEL_STEPS = 1500,
};

typedef struct SetModel {
    uint32_t sets[MODEL_KEYS];
} SetModel;

/* Several keys to a group, which differ in their tails. */
static void model_key(uint32_t k, char *key, size_t size)
{
    (void)snprintf(key, size, "~%c%c", 'a' + (char)(k / MODEL_GROUP),
                   'x' + (char)(k % MODEL_GROUP));
}

static void add_text(char *all, size_t size, const char *key, const char *value)
{
    size_t len = strlen(all);
    (void)snprintf(all + len, size - len, "%s%s=%s", len > 0 ? " " : "", key, value);
}

static void expect_model(Store *store, const StoreSnapshot *snapshot, const SetModel *model)
{
    char all[256] = "";
    char group[128] = "";
    for (uint32_t k = 0; k < MODEL_KEYS; k++) {
        char key[8], value[8];
        size_t letters = 0;
        model_key(k, key, sizeof(key));
        for (uint32_t i = 0; i < MODEL_LETTERS; i++)
            if ((model->sets[k] & 1U << i) != 0)
                value[letters++] = (char)('a' + i);
        value[letters] = '\0';
        expect_key(store, snapshot, 1, key, letters > 0 ? value : NULL);
        if (letters > 0) {
            add_text(all, sizeof(all), key, value);
            add_text(group, sizeof(group), key, value);
        }
        if (k % MODEL_GROUP == MODEL_GROUP - 1) {
            Slice head = slice_make(key, strlen(key) - TEST_TAIL_BYTES);
            expect_walk(store_group_open(store, snapshot, 1, head), true, group);
            group[0] = '\0';
        }
    }
    expect_walk(store_cursor_open(store, snapshot, 1, SLICE_EMPTY, SLICE_EMPTY), true, all);
}

static void change_set(Store *store, Random *random, SetModel *model)
{
    uint32_t k = (uint32_t)random_below(random, MODEL_KEYS);
    uint32_t letter = (uint32_t)random_below(random, MODEL_LETTERS);
    bool add = random_below(random, 5) < 2; /* empty more often than not */
    char key[8], operand[3] = {add ? '+' : '-', (char)('a' + letter), 0};
    model_key(k, key, sizeof(key));
    merge_now(store, 1, key, operand);
    model->sets[k] = add ? model->sets[k] | 1U << letter : model->sets[k] & ~(1U << letter);
}

static void random_work_survives_flushes_and_compactions(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = test_rocksdb_open(folder.path);
    Random random;
    random_init(&random, test_seed());
    SetModel now = {0}, then[MODEL_SNAPSHOTS] = {0};
    StoreSnapshot *snapshots[MODEL_SNAPSHOTS] = {0};
    for (uint32_t step = 0; step < MODEL_STEPS; step++) {
        size_t which = random_below(&random, MODEL_SNAPSHOTS);
        switch (random_below(&random, 40)) {
        case 0:
        case 1:
            flush(rocksdb_of_store(store));
            break;
        case 2:
            compact(rocksdb_of_store(store));
            break;
        case 3:
            assert_ok(store_drop_spaces(store, 1, 1, err));
            now = (SetModel){0};
            break;
        case 4:
        case 5:
            store_snapshot_close(snapshots[which]);
            snapshots[which] = store_snapshot_open(store, STORE_READ_ANY);
            then[which] = now;
            break;
        case 6:
            expect_model(store, NULL, &now);
            for (size_t i = 0; i < MODEL_SNAPSHOTS; i++)
                if (snapshots[i] != NULL)
                    expect_model(store, snapshots[i], &then[i]);
            break;
        default:
            change_set(store, &random, &now);
            break;
        }
    }
    expect_model(store, NULL, &now);
    for (size_t i = 0; i < MODEL_SNAPSHOTS; i++)
        store_snapshot_close(snapshots[i]);
}

/* The tests' merge, watched: a filter that is shown an operand would ask whether that is empty,
 * and unlike values, operands have a '+' in them. */
static _Atomic uint32_t operands_asked_about;

static bool watched_is_empty(Slice value)
{
    if (value.len > 0 && memchr(value.ptr, '+', value.len) != NULL)
        operands_asked_about++;
    return value.len == 0;
}

static const StoreMerge WATCHED_MERGE = {
    .kind = TEST_MERGE_KIND, .merge = test_merge, .is_empty = watched_is_empty};

typedef struct RawDb {
    rocksdb_t *db;
    rocksdb_compactionfilter_t *filter;
    rocksdb_writeoptions_t *write;
    rocksdb_readoptions_t *read;
} RawDb;

static void raw_open(RawDb *raw, const char *path)
{
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_disable_auto_compactions(options, 1);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 0);
    rocksdb_options_set_level0_file_num_compaction_trigger(options, 2);
    rocksdb_set_merge_operator(options, &WATCHED_MERGE, &raw->filter);
    char *text = NULL;
    raw->db = rocksdb_open(options, path, &text);
    assert_null(text);
    rocksdb_options_destroy(options);
    raw->write = rocksdb_writeoptions_create();
    raw->read = rocksdb_readoptions_create();
}

static void raw_close(RawDb *raw)
{
    rocksdb_close(raw->db);
    rocksdb_compactionfilter_destroy(raw->filter);
    rocksdb_writeoptions_destroy(raw->write);
    rocksdb_readoptions_destroy(raw->read);
}

static void raw_write(RawDb *raw, bool merge, Slice key, Slice bytes)
{
    FullKey full;
    Slice whole = full_key(&full, 1, key);
    char *text = NULL;
    if (merge)
        rocksdb_merge(raw->db, raw->write, whole.ptr, whole.len, bytes.ptr, bytes.len, &text);
    else
        rocksdb_put(raw->db, raw->write, whole.ptr, whole.len, bytes.ptr, bytes.len, &text);
    assert_null(text);
}

static void raw_expect(RawDb *raw, Slice key, Slice expected)
{
    FullKey full;
    Slice whole = full_key(&full, 1, key);
    char *text = NULL;
    size_t len = 0;
    char *stored = rocksdb_get(raw->db, raw->read, whole.ptr, whole.len, &len, &text);
    assert_null(text);
    assert_int_equal(stored != NULL, expected.ptr != NULL);
    if (stored != NULL)
        assert_slice(slice_make(stored, len), expected);
    rocksdb_free(stored);
}

/* An empty value of the middle of a key's history, with operands in a file below that takes no part
 * in the compaction: it has to go without bringing them back. */
static void a_removed_value_still_hides_what_is_below_it(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    RawDb raw;
    raw_open(&raw, folder.path);
    raw_write(&raw, true, SLICE("~gone"), SLICE("+x"));
    raw_write(&raw, true, SLICE("~kept"), SLICE("+x"));
    flush(raw.db);
    rocksdb_compactoptions_t *options = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_change_level(options, 1);
    rocksdb_compactoptions_set_target_level(options, 3);
    rocksdb_compact_range_opt(raw.db, options, NULL, 0, NULL, 0);
    rocksdb_compactoptions_destroy(options);
    assert_int_equal(property(raw.db, "rocksdb.estimate-num-keys"), 2);

    raw_write(&raw, false, SLICE("~gone"), SLICE("a\0"));
    raw_write(&raw, true, SLICE("~kept"), SLICE("+\0"));
    flush(raw.db);
    raw_write(&raw, false, SLICE("~gone"), SLICE("\0"));
    raw_write(&raw, true, SLICE("~kept"), SLICE("+\0"));
    flush(raw.db);
    raw_expect(&raw, SLICE("~gone"), SLICE("\0"));
    static const char *const names[] = {"disable_auto_compactions"};
    static const char *const values[] = {"false"};
    char *text = NULL;
    rocksdb_set_options(raw.db, 1, names, values, &text);
    assert_null(text);
    char *files = NULL;
    for (uint32_t i = 0; i < 1000; i++) { /* until the two have become one, above the third */
        rocksdb_free(files);
        files = rocksdb_property_value(raw.db, "rocksdb.num-files-at-level1");
        if (strcmp(files, "1") == 0)
            break;
        sleep_ms(10);
    }
    assert_string_equal(files, "1");
    rocksdb_free(files);
    files = rocksdb_property_value(raw.db, "rocksdb.num-files-at-level3");
    assert_string_equal(files, "1");
    rocksdb_free(files);

    raw_expect(&raw, SLICE("~gone"), SLICE_EMPTY);
    raw_expect(&raw, SLICE("~kept"), SLICE("\0x\0"));
    raw_write(&raw, true, SLICE("~gone"), SLICE("+y"));
    raw_expect(&raw, SLICE("~gone"), SLICE("y\0"));
    assert_int_equal(operands_asked_about, 0);
    raw_close(&raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flush_puts_operands_together),
        cmocka_unit_test(a_busy_key_does_not_collect_operands_for_ever),
        cmocka_unit_test(compaction_removes_what_has_become_empty),
        cmocka_unit_test(damage_stops_neither_flush_nor_compaction),
        cmocka_unit_test(a_value_without_its_last_byte_is_damaged),
        cmocka_unit_test(operands_over_a_cold_value_are_unknown_to_memory),
        cmocka_unit_test(an_estimate_is_about_what_is_in_files),
        cmocka_unit_test(random_work_survives_flushes_and_compactions),
        cmocka_unit_test(a_removed_value_still_hides_what_is_below_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
