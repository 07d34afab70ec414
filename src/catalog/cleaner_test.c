/* cleaner_test.c - the data of a dropped container is removed, whatever happens meanwhile (I5). */
#include "catalog/testing_int.h"

#include <pthread.h>

#define NONE MANUAL(0)

enum { KEYS = 100, WAIT_MS = 10000 };

static void fill_space(Store *store, StoreSpace space)
{
    StoreTxn *txn = store_txn_begin(store);
    for (uint32_t i = 0; i < KEYS; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "key%u", i);
        store_txn_put(txn, space, slice_from_cstr(key), SLICE("value"));
    }
    assert_ok(store_txn_commit_wait(txn, err));
}

/* Puts keys into every space of the container and notes which those are. */
static size_t fill_spaces(TestCatalog *t, uint32_t database, uint32_t number, StoreSpace *first)
{
    const Container *container = snapshot_container(test_read(t), database, number);
    for (size_t i = 0; i < container->range_count; i++)
        fill_space(t->store, container->ranges[i].space);
    *first = container->ranges[0].space;
    return container->range_count;
}

static size_t count_all(Store *store, StoreSpace first, size_t spaces)
{
    size_t keys = 0;
    for (size_t i = 0; i < spaces; i++)
        keys += count_keys(store, first + i);
    return keys;
}

/* Waits until nothing is left, neither data nor the note that there is some. */
static void expect_cleaned(Store *store, StoreSpace first, size_t spaces)
{
    for (int ms = 0; count_garbage(store) > 0 || count_all(store, first, spaces) > 0; ms++) {
        if (ms == WAIT_MS)
            fail_msg("%zu keys and %zu notes are still there", count_all(store, first, spaces),
                     count_garbage(store));
        (void)usleep(1000);
    }
}

static void a_dropped_container_leaves_nothing(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    uint32_t kept = make_container(t, database, "kept", NONE);
    uint32_t dropped = make_container(t, database, "dropped", MANUAL(18000));
    uint32_t also_kept = make_container(t, database, "also kept", NONE);
    StoreSpace kept_first, dropped_first, also_kept_first;
    assert_int_equal(fill_spaces(t, database, kept, &kept_first), 1);
    assert_int_equal(fill_spaces(t, database, dropped, &dropped_first), 3);
    assert_int_equal(fill_spaces(t, database, also_kept, &also_kept_first), 1);
    assert_int_equal(delete_one(t, CATALOG_DELETE_CONTAINER, database, dropped), STATUS_OK);
    expect_cleaned(t->store, dropped_first, 3);
    /* Its neighbours on both sides are whole. */
    assert_int_equal(count_keys(t->store, kept_first), KEYS);
    assert_int_equal(count_keys(t->store, also_kept_first), KEYS);
}

static void a_dropped_database_leaves_nothing(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    StoreSpace first = 0;
    StoreSpace last = 0;
    for (int i = 0; i < 5; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "c%d", i);
        size_t spaces = fill_spaces(t, database, make_container(t, database, id, MANUAL(12000)),
                                    i == 0 ? &first : &last);
        assert_int_equal(spaces, 2);
    }
    assert_int_equal(count_all(t->store, first, last + 2 - first), 10 * KEYS);
    assert_int_equal(delete_one(t, CATALOG_DELETE_DATABASE, database, 0), STATUS_OK);
    expect_cleaned(t->store, first, last + 2 - first);
}

static void a_container_that_was_never_written_to_leaves_nothing_either(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    size_t keys = count_keys(t->store, SPACE_CATALOG);
    for (int i = 0; i < 50; i++) {
        uint32_t number = make_container(t, database, "c", NONE);
        assert_int_equal(delete_one(t, CATALOG_DELETE_CONTAINER, database, number), STATUS_OK);
    }
    expect_cleaned(t->store, SPACE_PARTITION_FIRST, 50);
    assert_int_equal(count_keys(t->store, SPACE_CATALOG), keys);
}

/* As if the process had ended between the drop and the cleaning. */
static void a_restart_goes_on_cleaning(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    uint32_t container = make_container(t, database, "c", MANUAL(12000));
    StoreSpace first = 0;
    assert_int_equal(fill_spaces(t, database, container, &first), 2);
    assert_int_equal(delete_one(t, CATALOG_DELETE_CONTAINER, database, container), STATUS_OK);
    expect_cleaned(t->store, first, 2);
    test_close_catalog(t);
    fill_space(t->store, first);
    fill_space(t->store, first + 1);
    StoreTxn *txn = store_txn_begin(t->store);
    record_put_garbage(txn, (Garbage){.first = first, .last = first + 1});
    assert_ok(store_txn_commit_wait(txn, err));
    assert_ok(test_try_open(t, err));
    expect_cleaned(t->store, first, 2);
}

typedef struct UnknownSpaces {
    StoreSpace spaces[16];
    size_t count;
} UnknownSpaces;

static void note_unknown_space(void *ctx, StoreSpace space)
{
    UnknownSpaces *unknown = ctx;
    assert_true(unknown->count < ARRAY_COUNT(unknown->spaces));
    unknown->spaces[unknown->count++] = space;
}

/* What belongs to a range, to a move under way or to the garbage is none. */
static void data_without_a_record_is_found(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    uint32_t number = make_container(t, database, "c", MANUAL(12000));
    StoreSpace first = 0;
    assert_int_equal(fill_spaces(t, database, number, &first), 2);
    begin_move(t, database, number, 1, 1, "30");
    const Container *container = snapshot_container(test_read(t), database, number);
    assert_int_equal(container->pending_count, 2);
    fill_space(t->store, container->pending[0].space);
    test_close_catalog(t); /* or it is cleaned */
    StoreSpace next = first + 4;
    for (StoreSpace space = next; space < next + 4; space++)
        fill_space(t->store, space);
    StoreTxn *txn = store_txn_begin(t->store);
    record_put_garbage(txn, (Garbage){.first = next + 1, .last = next + 2});
    assert_ok(store_txn_commit_wait(txn, err));
    UnknownSpaces unknown = {0};
    assert_ok(catalog_find_unknown_spaces(t->store, note_unknown_space, &unknown, err));
    assert_int_equal(unknown.count, 2);
    assert_int_equal(unknown.spaces[0], next);
    assert_int_equal(unknown.spaces[1], next + 3);
    UnknownSpaces all = {0}; /* with the catalogue's own, and one that is empty yet */
    assert_ok(catalog_find_all_spaces(t->store, note_unknown_space, &all, err));
    assert_int_equal(all.count, 9);
    assert_int_equal(all.spaces[0], SPACE_CATALOG);
    for (size_t i = 1; i < all.count; i++)
        assert_int_equal(all.spaces[i], first + i - 1);
    assert_ok(store_drop_spaces(t->store, next, next + 3, err));
    txn = store_txn_begin(t->store);
    record_delete_garbage(txn, (Garbage){.first = next + 1, .last = next + 2});
    assert_ok(store_txn_commit_wait(txn, err));
    assert_ok(test_try_open(t, err));
}

static void cleaning_that_failed_is_done_after_the_next_start(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    uint32_t database = make_database(&t, "db", NONE);
    uint32_t container = make_container(&t, database, "c", NONE);
    StoreSpace first = 0;
    assert_int_equal(fill_spaces(&t, database, container, &first), 1);
    memory_store_fail_cursor_steps(t.store, UINT32_MAX, STATUS_IO);
    assert_int_equal(delete_one(&t, CATALOG_DELETE_CONTAINER, database, container), STATUS_OK);
    test_close_catalog(&t);
    memory_store_fail_cursor_steps(t.store, 0, STATUS_IO);
    assert_int_equal(count_keys(t.store, first), KEYS);
    assert_int_equal(count_garbage(t.store), 1);
    assert_ok(test_try_open(&t, err));
    expect_cleaned(t.store, first, 1);
}

static void closing_does_not_wait_for_all_that_is_to_be_cleaned(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    uint32_t database = make_database(&t, "db", NONE);
    for (int i = 0; i < COUNT; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "c%d", i);
        StoreSpace first = 0;
        (void)fill_spaces(&t, database, make_container(&t, database, id, NONE), &first);
    }
    assert_int_equal(delete_one(&t, CATALOG_DELETE_DATABASE, database, 0), STATUS_OK);
    test_close_catalog(&t);
    /* Whatever was not reached still has its note, so it is not forgotten. */
    size_t left = 0;
    for (StoreSpace space = SPACE_PARTITION_FIRST; space < SPACE_PARTITION_FIRST + COUNT; space++)
        left += count_keys(t.store, space) > 0 ? 1 : 0;
    assert_true(left <= count_garbage(t.store));
    assert_ok(test_try_open(&t, err));
    expect_cleaned(t.store, SPACE_PARTITION_FIRST, COUNT);
}

/* ---- while it is written to ---- */

enum { WRITERS = 4, WRITES = 400 };

typedef struct Writer {
    pthread_t thread;
    Partition *partition;
    _Atomic bool *is_deleted;
    TestWrite writes[WRITES];
    size_t submitted;
    bool broken; /* something was accepted that must not be, or answered as nothing is */
} Writer;

/* Submits as fast as it can, until it is refused. */
static void *write_until_refused(void *arg)
{
    Writer *writer = arg;
    for (size_t i = 0; i < WRITES; i++) {
        bool was_deleted = atomic_load(writer->is_deleted);
        Error err;
        Status status = partition_submit(writer->partition, &writer->writes[i].write, &err);
        if (status != STATUS_OK) {
            writer->broken = status != STATUS_NOT_FOUND || err.sub != SUB_OWNER_NOT_FOUND;
            break;
        }
        writer->submitted++;
        writer->broken = writer->broken || was_deleted;
    }
    return NULL;
}

/* Every write that was taken is answered, once: done, or the container is gone. */
static size_t expect_answers(Writer *writer)
{
    size_t done = 0;
    for (size_t i = 0; i < WRITES; i++) {
        TestWrite *w = &writer->writes[i];
        if (i < writer->submitted) {
            test_write_wait(w);
            assert_true(w->write.status == STATUS_OK || w->write.status == STATUS_NOT_FOUND);
            done += w->write.status == STATUS_OK && w->item.status == STATUS_OK ? 1 : 0;
        }
        assert_false(latch_is_posted(&w->answered));
        test_write_done(w);
    }
    return done;
}

static void no_partition_writes_after_its_drop(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    uint32_t number = make_container(t, database, "c", MANUAL(12000));
    AUTO(container_unref)
    Container *container = container_ref(snapshot_container(test_read(t), database, number));
    StoreSpace first = container->ranges[0].space;
    _Atomic bool is_deleted = false;
    Writer *writers = MEM_NEW_ARRAY(Writer, WRITERS);
    for (size_t i = 0; i < WRITERS; i++) {
        writers[i].partition = handle_local(container_handle_at(container, i % 2));
        writers[i].is_deleted = &is_deleted;
        for (size_t j = 0; j < WRITES; j++) {
            char row[64];
            (void)snprintf(row, sizeof(row), "{'id':'%zu-%zu'}", i, j);
            test_write_init(&writers[i].writes[j], row);
        }
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_until_refused, &writers[i]),
                         0);
    }
    assert_int_equal(delete_one(t, CATALOG_DELETE_CONTAINER, database, number), STATUS_OK);
    atomic_store(&is_deleted, true);
    for (size_t i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
        assert_false(writers[i].broken);
        (void)expect_answers(&writers[i]);
    }
    mem_free(writers);
    expect_cleaned(t->store, first, 2);
    (void)usleep(20000); /* no reader comes later */
    assert_int_equal(count_all(t->store, first, 2), 0);
}

/* What stands before the disk when the container is dropped becomes durable, and goes then. */
static void what_was_on_its_way_is_cleaned_too(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    uint32_t database = make_database(&t, "db", NONE);
    uint32_t number = make_container(&t, database, "c", NONE);
    AUTO(container_unref)
    Container *container = container_ref(snapshot_container(test_read(&t), database, number));
    Partition *partition = handle_local(container_handle_at(container, 0));
    AUTO(test_write_done) TestWrite early;
    AUTO(test_write_done) TestWrite late;
    test_write_init(&early, "{'id':'early'}");
    test_write_init(&late, "{'id':'late'}");
    memory_store_stall(t.store);
    assert_ok(partition_submit(partition, &early.write, err));
    memory_store_wait_stalled(t.store);
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_DELETE_CONTAINER);
    c.change.database = database;
    c.change.container = number;
    catalog_submit(t.catalog, &c.change);
    assert_ok(partition_submit(partition, &late.write, err));
    memory_store_release(t.store);
    assert_int_equal(test_wait(&c), STATUS_OK);
    test_write_wait(&early);
    test_write_wait(&late);
    assert_int_equal(early.write.status, STATUS_OK);
    Error refusal;
    assert_int_equal(partition_submit(partition, &late.write, &refusal), STATUS_NOT_FOUND);
    expect_cleaned(t.store, container->ranges[0].space, 1);
}

static void closing_waits_for_partitions_that_fall_silent(void **state)
{
    (void)state;
    enum { COUNT = 20 };
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    uint32_t database = make_database(&t, "db", NONE);
    TestWrite writes[COUNT];
    for (int i = 0; i < COUNT; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "c%d", i);
        uint32_t number = make_container(&t, database, id, NONE);
        test_write_init(&writes[i], "{'id':'1'}");
        Partition *partition = handle_local(
            container_handle_at(snapshot_container(test_read(&t), database, number), 0));
        assert_ok(partition_submit(partition, &writes[i].write, err));
    }
    assert_int_equal(delete_one(&t, CATALOG_DELETE_DATABASE, database, 0), STATUS_OK);
    test_close_catalog(&t);
    for (int i = 0; i < COUNT; i++) {
        test_write_wait(&writes[i]);
        test_write_done(&writes[i]);
    }
    assert_ok(test_try_open(&t, err));
    expect_cleaned(t.store, SPACE_PARTITION_FIRST, COUNT);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(a_dropped_container_leaves_nothing),
        ENGINE_TEST(a_dropped_database_leaves_nothing),
        ENGINE_TEST(a_container_that_was_never_written_to_leaves_nothing_either),
        ENGINE_TEST(a_restart_goes_on_cleaning),
        ENGINE_TEST(data_without_a_record_is_found),
        ENGINE_TEST(no_partition_writes_after_its_drop),
    };
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(cleaning_that_failed_is_done_after_the_next_start),
        cmocka_unit_test(closing_does_not_wait_for_all_that_is_to_be_cleaned),
        cmocka_unit_test(what_was_on_its_way_is_cleaned_too),
        cmocka_unit_test(closing_waits_for_partitions_that_fall_silent),
    };
    int failed = cmocka_run_group_tests(plain, NULL, NULL);
    return failed + run_on_every_engine("cleaner", tests, ARRAY_COUNT(tests));
}
