/* snapshot_test.c - look-ups, walks, and copies that do not disturb each other. */
#include "catalog/testing_int.h"

#include "base/random.h"

static const HashKey KEY = {1, 2};

static Database *new_database(uint32_t number, const char *id)
{
    return database_new(&(DatabaseRecord){.number = number, .id = slice_from_cstr(id), .lsn = 1});
}

static Container *new_container(uint32_t database, uint32_t number, const char *id, uint32_t offer)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    static const PartitionRange ranges[] = {{.max = SLICE_INIT("FF"), .space = 65536, .lsn = 1}};
    ContainerRecord record = {.number = number,
                              .database = database,
                              .lsn = 1,
                              .definition = row_definition(&arena, id, ""),
                              .ranges = ranges,
                              .range_count = 1,
                              .range_next = 1,
                              .ranges_lsn = 1,
                              .offer = offer};
    Container *container = NULL;
    assert_ok(container_new(&record, test_host, NULL, NULL, &container, err));
    return container;
}

static Offer *new_offer(uint32_t number, uint32_t ru)
{
    return offer_new(&(OfferRecord){.number = number, .database = 1, .provision = MANUAL(ru)});
}

/* Two databases, one with two containers; two offers. */
static Snapshot *make_snapshot(void)
{
    Snapshot *snapshot = snapshot_new(KEY);
    assert_true(snapshot_put_database(snapshot, new_database(7, "a")));
    assert_true(snapshot_put_database(snapshot, new_database(3, "b")));
    assert_true(snapshot_put_container(snapshot, new_container(7, 20, "c", 0)));
    assert_true(snapshot_put_container(snapshot, new_container(7, 10, "d", 5)));
    snapshot_put_offer(snapshot, new_offer(5, 400));
    snapshot_put_offer(snapshot, new_offer(9, 500));
    return snapshot;
}

static void what_was_put_is_found_by_name_and_by_number(void **state)
{
    (void)state;
    AUTO(snapshot_unref) Snapshot *s = make_snapshot();
    assert_int_equal(snapshot_database_by_id(s, SLICE("a"))->info.number, 7);
    assert_slice(snapshot_database(s, 3)->info.id, SLICE("b"));
    assert_int_equal(snapshot_container_by_id(s, 7, SLICE("d"))->info.number, 10);
    assert_slice(snapshot_container(s, 7, 20)->info.id, SLICE("c"));
    assert_int_equal(snapshot_offer(s, 9)->provision.ru, 500);

    assert_null(snapshot_database_by_id(s, SLICE("A")));
    assert_null(snapshot_database_by_id(s, SLICE("")));
    assert_null(snapshot_database(s, 0));
    assert_null(snapshot_database(s, 8));
    assert_null(snapshot_container_by_id(s, 7, SLICE("a")));
    assert_null(snapshot_container_by_id(s, 3, SLICE("c"))); /* another database's */
    assert_null(snapshot_container_by_id(s, 99, SLICE("c")));
    assert_null(snapshot_container(s, 3, 20));
    assert_null(snapshot_container(s, 99, 20));
    assert_null(snapshot_offer(s, 0));
}

static void walks_go_by_number(void **state)
{
    (void)state;
    AUTO(snapshot_unref) Snapshot *s = make_snapshot();
    assert_int_equal(snapshot_next_database(s, 0)->info.number, 3);
    assert_int_equal(snapshot_next_database(s, 3)->info.number, 3);
    assert_int_equal(snapshot_next_database(s, 4)->info.number, 7);
    assert_null(snapshot_next_database(s, 8));
    assert_null(snapshot_next_database(s, UINT32_MAX));
    assert_int_equal(snapshot_next_container(s, 7, 0)->info.number, 10);
    assert_int_equal(snapshot_next_container(s, 7, 11)->info.number, 20);
    assert_null(snapshot_next_container(s, 7, 21));
    assert_null(snapshot_next_container(s, 3, 0));
    assert_null(snapshot_next_container(s, 99, 0));
    assert_int_equal(snapshot_next_offer(s, 6)->info.number, 9);
    assert_null(snapshot_next_offer(s, 10));
}

/* The numbers of all containers, in the order of the walk. */
static Slice walk_text(const Snapshot *s, Arena *arena)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 4096);
    SnapshotWalk walk = {0};
    while (snapshot_next(s, &walk)) {
        assert_ptr_equal(snapshot_database(s, walk.database->info.number), walk.database);
        assert_int_equal(walk.container->database, walk.database->info.number);
        buf_format(&text, "%u/%u ", walk.database->info.number, walk.container->info.number);
    }
    assert_null(walk.database);
    assert_null(walk.container);
    return arena_copy(arena, buf_view(&text));
}

static void the_walk_over_all_containers_skips_empty_databases(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    AUTO(snapshot_unref) Snapshot *empty = snapshot_new(KEY);
    assert_slice(walk_text(empty, &arena), SLICE(""));
    AUTO(snapshot_unref) Snapshot *s = make_snapshot();
    assert_slice(walk_text(s, &arena), SLICE("7/10 7/20 "));
    assert_true(snapshot_put_database(s, new_database(8, "e")));
    assert_true(snapshot_put_database(s, new_database(9, "f")));
    assert_true(snapshot_put_container(s, new_container(9, 5, "c", 0)));
    assert_true(snapshot_put_database(s, new_database(11, "g")));
    assert_slice(walk_text(s, &arena), SLICE("7/10 7/20 9/5 "));
    snapshot_remove_database(s, 7);
    assert_slice(walk_text(s, &arena), SLICE("9/5 "));
    snapshot_remove_container(s, 9, 5);
    assert_slice(walk_text(s, &arena), SLICE(""));
}

static void counts_follow_what_is_put_replaced_and_removed(void **state)
{
    (void)state;
    AUTO(snapshot_unref) Snapshot *s = make_snapshot();
    assert_int_equal(s->container_count, 2);
    assert_int_equal(snapshot_shared_count(s, 7), 1);
    assert_int_equal(snapshot_shared_count(s, 99), 0);

    assert_true(snapshot_put_container(s, new_container(7, 10, "d", 0))); /* now shares */
    assert_int_equal(s->container_count, 2);
    assert_int_equal(snapshot_shared_count(s, 7), 2);
    assert_true(snapshot_put_container(s, new_container(7, 20, "c", 6)));
    assert_int_equal(snapshot_shared_count(s, 7), 1);
    assert_true(snapshot_put_database(s, new_database(7, "a"))); /* keeps its containers */

    snapshot_remove_container(s, 7, 10);
    assert_int_equal(s->container_count, 1);
    assert_int_equal(snapshot_shared_count(s, 7), 0);
    assert_null(snapshot_container_by_id(s, 7, SLICE("d")));
    assert_null(snapshot_container(s, 7, 10));
    assert_non_null(snapshot_container_by_id(s, 7, SLICE("c")));
    snapshot_remove_database(s, 7);
    assert_int_equal(s->container_count, 0);
    assert_null(snapshot_database_by_id(s, SLICE("a")));
    assert_null(snapshot_container(s, 7, 20));
    snapshot_remove_offer(s, 5);
    assert_null(snapshot_offer(s, 5));
    assert_non_null(snapshot_offer(s, 9));
}

static void a_name_that_another_number_has_is_not_put(void **state)
{
    (void)state;
    AUTO(snapshot_unref) Snapshot *s = make_snapshot();
    assert_false(snapshot_put_database(s, new_database(8, "a")));
    assert_false(snapshot_put_container(s, new_container(7, 30, "c", 0)));
    assert_null(snapshot_database(s, 8));
    assert_null(snapshot_container(s, 7, 30));
    assert_int_equal(s->container_count, 2);
    assert_true(snapshot_put_container(s, new_container(3, 30, "c", 0)));
}

static void a_copy_and_its_original_do_not_see_each_others_changes(void **state)
{
    (void)state;
    AUTO(snapshot_unref) Snapshot *s = make_snapshot();
    AUTO(snapshot_unref) Snapshot *copy = snapshot_copy(s);
    AUTO(buf_done) Buf before;
    AUTO(buf_done) Buf after;
    buf_init(&before, 1 << 20);
    buf_init(&after, 1 << 20);
    dump_snapshot(s, &before);
    snapshot_remove_container(copy, 7, 10);
    assert_true(snapshot_put_container(copy, new_container(7, 20, "c", 9)));
    assert_true(snapshot_put_container(copy, new_container(3, 21, "new", 0)));
    snapshot_remove_database(copy, 7);
    assert_true(snapshot_put_database(copy, new_database(8, "a")));
    snapshot_put_offer(copy, new_offer(5, 900));
    snapshot_remove_offer(copy, 9);
    dump_snapshot(s, &after);
    assert_slice(buf_view(&after), buf_view(&before));
    assert_int_equal(snapshot_database_by_id(copy, SLICE("a"))->info.number, 8);
    assert_int_equal(snapshot_offer(copy, 5)->provision.ru, 900);
}

static void what_is_held_outlives_its_snapshot(void **state)
{
    (void)state;
    Snapshot *s = make_snapshot();
    AUTO(container_unref) Container *container = container_ref(snapshot_container(s, 7, 20));
    AUTO(database_unref) Database *database = database_ref(snapshot_database(s, 7));
    AUTO(offer_unref) Offer *offer = offer_ref(snapshot_offer(s, 5));
    Snapshot *again = snapshot_ref(s);
    snapshot_unref(s);
    assert_non_null(snapshot_database(again, 7));
    snapshot_unref(again);
    snapshot_unref(NULL);
    assert_slice(container->info.id, SLICE("c"));
    assert_slice(database->info.id, SLICE("a"));
    assert_int_equal(offer->provision.ru, 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_is_found_by_name_and_by_number),
        cmocka_unit_test(walks_go_by_number),
        cmocka_unit_test(the_walk_over_all_containers_skips_empty_databases),
        cmocka_unit_test(counts_follow_what_is_put_replaced_and_removed),
        cmocka_unit_test(a_name_that_another_number_has_is_not_put),
        cmocka_unit_test(a_copy_and_its_original_do_not_see_each_others_changes),
        cmocka_unit_test(what_is_held_outlives_its_snapshot),
    };
    return cmocka_run_group_tests(tests, test_host_setup, test_host_teardown);
}
