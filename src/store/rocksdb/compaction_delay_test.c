/* compaction_delay_test.c - when level 0 may grow, and that it is compacted in the end. */
#include "store/rocksdb/rocksdb_testing_int.h"

#include "base/thread.h"
#include "store/rocksdb/rocksdb_int.h"

#include <stdlib.h>
#include <unistd.h>

enum { MEMTABLE_BYTES = 4 << 20, SECOND_US = 1000000, LEVEL0_USUAL = 4 };

static bool yes(void *ctx)
{
    (void)ctx;
    return true;
}

static bool no(void *ctx)
{
    (void)ctx;
    return false;
}

static int level0(rocksdb_t *db)
{
    char *text = rocksdb_property_value(db, "rocksdb.num-files-at-level0");
    assert_non_null(text);
    int files = (int)strtol(text, NULL, 10);
    rocksdb_free(text);
    return files;
}

/* A table with the same keys as the others, so that it can only be compacted with them. */
static void add_table(Store *store)
{
    put_now(store, 1, "a", "1");
    put_now(store, 1, "z", "1");
    char *text = NULL;
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flush(rocksdb_of_store(store), options, &text);
    rocksdb_flushoptions_destroy(options);
    assert_null(text);
}

/* RocksDB compacts in the background. */
static void expect_compacted(rocksdb_t *db)
{
    for (int i = 0; i < 3000 && level0(db) >= LEVEL0_USUAL; i++)
        usleep(10000);
    assert_true(level0(db) < LEVEL0_USUAL);
}

static void level_0_grows_while_much_is_written_and_is_compacted_afterwards(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = open_at(folder.path);
    rocksdb_t *db = rocksdb_of_store(store);
    CompactionDelay delay = {.db = db, .memtable_bytes = MEMTABLE_BYTES};
    compaction_delay_note(&delay, MEMTABLE_BYTES, 2 * SECOND_US, yes, NULL);
    assert_true(delay.is_delayed);
    for (int i = 0; i < 3 * LEVEL0_USUAL; i++)
        add_table(store);
    assert_int_equal(level0(db), 3 * LEVEL0_USUAL);
    compaction_delay_end(&delay);
    assert_false(delay.is_delayed);
    expect_compacted(db);
    expect_key(store, NULL, 1, "a", "1");
}

static void the_delay_follows_the_rate_and_the_room(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = open_at(folder.path);
    CompactionDelay delay = {.db = rocksdb_of_store(store), .memtable_bytes = MEMTABLE_BYTES};
    static const struct {
        size_t bytes; /* in each second */
        bool (*has_room)(void *ctx);
        bool is_delayed;
    } rows[] = {
        {MEMTABLE_BYTES / 100, yes, false},
        {MEMTABLE_BYTES / 8, yes, false}, /* between the two rates it stays as it is */
        {MEMTABLE_BYTES / 2, no, false},
        {MEMTABLE_BYTES / 2, yes, true},
        {MEMTABLE_BYTES / 8, yes, true},
        {MEMTABLE_BYTES / 8, no, false},
        {MEMTABLE_BYTES * 10, yes, true},
        {MEMTABLE_BYTES * 10, no, false},
        {MEMTABLE_BYTES * 10, yes, true},
        {MEMTABLE_BYTES / 100, yes, false},
    };
    uint64_t now_us = (uint64_t)100 * SECOND_US;
    delay.window_at_us = now_us;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        bool before = delay.is_delayed;
        for (int tenth = 1; tenth <= 9; tenth++) {
            compaction_delay_note(&delay, rows[i].bytes / 10, now_us + tenth * SECOND_US / 10,
                                  rows[i].has_room, NULL);
            assert_int_equal(delay.is_delayed, before);
        }
        now_us += SECOND_US;
        compaction_delay_note(&delay, rows[i].bytes / 10, now_us, rows[i].has_room, NULL);
        assert_int_equal(delay.is_delayed, rows[i].is_delayed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(level_0_grows_while_much_is_written_and_is_compacted_afterwards),
        cmocka_unit_test(the_delay_follows_the_rate_and_the_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
