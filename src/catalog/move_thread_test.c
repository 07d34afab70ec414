/* move_thread_test.c - partitions that are split and merged by orders and by rules, where they
 * are cut, and when a source is emptied (I12). */
#include "catalog/move_testing_int.h"

#include "base/mem.h"
#include "catalog/split_int.h"

enum { KEYS = 60, PATIENCE_MS = 20000 };

static const MoveRules BY_ORDER = {.partition_bytes_max = 0};

typedef struct Site {
    TestCatalog t;
    uint32_t database;
    uint32_t container;
} Site;

/* 'key' is the inside of the container's partitionKey. */
static void site_open_rules(Site *site, const MoveRules *moves, const ProvisionRules *rules,
                            Provision provision, const char *key)
{
    test_open_with(&site->t, TEST_MEMORY, rules);
    site->t.moves = moves;
    test_reopen(&site->t);
    site->database = make_database(&site->t, "d", MANUAL(0));
    Arena *arena = &site->t.arena;
    Json row = row_json(
        arena, arena_cstr(arena, arena_format(arena, "{'id':'c','partitionKey':{%s}}", key)));
    Json definition = JSON_NONE;
    assert_ok(container_definition_create(arena, row, (ContainerRules){0}, &definition, err));
    site->container = make_defined(&site->t, site->database, definition, provision);
}

static void site_open_kind(Site *site, const MoveRules *moves, Provision provision, const char *key)
{
    static const ProvisionRules rules = {.partition_ru = 1000,
                                         .fallback = {.mode = PROVISION_MANUAL, .ru = 400}};
    site_open_rules(site, moves, &rules, provision, key);
}

static void site_open(Site *site, const MoveRules *moves, Provision provision)
{
    site_open_kind(site, moves, provision, "'paths':['/pk'],'version':2");
}

static void site_close(Site *site)
{
    test_close(&site->t);
}
DEFINE_AUTO_VALUE(Site, site_close)

static const Container *container_of(Site *site)
{
    return test_container(&site->t, site->database, site->container);
}

static void fill(Site *site, int keys, int (*bytes)(int key))
{
    for (int key = 0; key < keys; key++)
        assert_int_equal(put_item(&site->t, site->database, site->container, key, key + 1,
                                  bytes == NULL ? 10 : bytes(key)),
                         STATUS_OK);
}

static void check(Site *site, int keys)
{
    const Container *container = container_of(site);
    for (int key = 0; key < keys; key++)
        assert_int_equal(get_item(container, key), key + 1);
    check_partitions(container);
}

static void order(Site *site, uint32_t first, uint32_t last, uint32_t parts, const char *cut)
{
    MoveOrder wanted = {
        .database = site->database,
        .container = site->container,
        .range_first = first,
        .range_last = last,
        .parts = parts,
        .cut = slice_from_cstr(cut),
    };
    uint64_t event = 0;
    assert_ok(catalog_order_move(site->t.catalog, &wanted, &event, err));
}

/* The newest event, when it has come to its end. */
static MoveEvent wait_for_event(Site *site)
{
    MoveEvent event = {0};
    for (int i = 0; i < PATIENCE_MS && event.ended_us == 0; i++) {
        if (catalog_moves(site->t.catalog, &event, 1) == 0 || event.ended_us == 0)
            sleep_ms(1);
    }
    assert_true(event.ended_us != 0);
    return event;
}

static void wait_for_ranges(Site *site, size_t count)
{
    for (int i = 0; i < PATIENCE_MS && container_of(site)->range_count != count; i++)
        sleep_ms(1);
    assert_int_equal(container_of(site)->range_count, count);
    while (container_of(site)->pending_count > 0)
        sleep_ms(1);
}

static void an_order_splits_and_another_merges(void **state)
{
    (void)state;
    AUTO(site_close) Site site;
    site_open(&site, &BY_ORDER, MANUAL(400));
    fill(&site, KEYS, NULL);
    order(&site, 0, 0, 3, "");
    MoveEvent event = wait_for_event(&site);
    assert_int_equal(event.stage, MOVE_DONE);
    assert_int_equal(event.reason, MOVE_ASKED);
    assert_int_equal(event.items, KEYS);
    assert_int_equal(event.target_count, 3);
    assert_int_equal(container_of(&site)->range_count, 3);
    check(&site, KEYS);
    order(&site, 1, 3, 1, "");
    sleep_ms(5);
    event = wait_for_event(&site);
    assert_int_equal(event.stage, MOVE_DONE);
    assert_int_equal(event.source_count, 3);
    const Container *container = container_of(&site);
    assert_int_equal(container->range_count, 1);
    assert_int_equal(container->ranges[0].parent_count, 4); /* 0 and its children */
    check(&site, KEYS);
}

static void a_cut_can_be_chosen(void **state)
{
    (void)state;
    AUTO(site_close) Site site;
    site_open(&site, &BY_ORDER, MANUAL(400));
    fill(&site, KEYS, NULL);
    order(&site, 0, 0, 2, "05C1");
    MoveEvent event = wait_for_event(&site);
    assert_int_equal(event.stage, MOVE_DONE);
    assert_slice(container_of(&site)->ranges[1].min, SLICE("05C1"));
    check(&site, KEYS);
}

static void orders_that_cannot_be_are_reported(void **state)
{
    (void)state;
    static const struct {
        uint32_t first;
        uint32_t last;
        uint32_t parts;
        const char *cut;
        const char *why;
    } rows[] = {
        {7, 7, 2, "", "range '7'"},
        {0, 3, 1, "", "range"},
        {0, 0, 2, "FFFF", "FFFF"},
        {0, 0, 2, "zz", "zz"},
    };
    AUTO(site_close) Site site;
    site_open(&site, &BY_ORDER, MANUAL(400));
    fill(&site, 3, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        order(&site, rows[i].first, rows[i].last, rows[i].parts, rows[i].cut);
        sleep_ms(5);
        MoveEvent event = wait_for_event(&site);
        assert_int_equal(event.number, i + 1);
        assert_int_equal(event.stage, MOVE_FAILED);
        if (strstr(event.message, rows[i].why) == NULL)
            fail_msg("%s", event.message);
    }
    assert_int_equal(container_of(&site)->range_count, 1);
    MoveOrder none = {.parts = MOVE_RANGES_MAX + 1};
    uint64_t number = 0;
    Error err;
    assert_int_equal(catalog_order_move(site.t.catalog, &none, &number, &err), STATUS_BAD_REQUEST);
}

static void one_logical_partition_is_not_split(void **state)
{
    (void)state;
    AUTO(site_close) Site site;
    site_open(&site, &BY_ORDER, MANUAL(400));
    fill(&site, 1, NULL);
    order(&site, 0, 0, 2, "");
    MoveEvent event = wait_for_event(&site);
    assert_int_equal(event.stage, MOVE_FAILED);
    assert_non_null(strstr(event.message, "single logical partition"));
    assert_int_equal(container_of(&site)->range_count, 1);
}

static void set_throughput(Site *site, uint32_t ru)
{
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_REPLACE_OFFER);
    c.change.offer = container_of(site)->offer;
    c.change.provision = MANUAL(ru);
    if (test_run(site->t.catalog, &c) != STATUS_OK)
        fail_msg("%s", c.change.error.message);
}

static void partitions_follow_the_throughput(void **state)
{
    (void)state;
    static const MoveRules rules = {
        .splits = true, .merges = true, .partition_bytes_max = (uint64_t)1 << 30};
    AUTO(site_close) Site site;
    site_open(&site, &rules, MANUAL(400));
    fill(&site, KEYS, NULL);
    static const uint32_t rus[] = {5000, 8000, 20000, 3000, 400};
    static const size_t counts[] = {5, 8, 20, 3, 1};
    for (size_t i = 0; i < ARRAY_COUNT(rus); i++) {
        set_throughput(&site, rus[i]);
        wait_for_ranges(&site, counts[i]);
        check(&site, KEYS);
    }
}

static int one_large(int key)
{
    return key == 7 ? 4000 : 10;
}

static void an_empty_container_is_divided_evenly(void **state)
{
    (void)state;
    static const MoveRules rules = {.splits = true};
    AUTO(site_close) Site site;
    site_open(&site, &rules, MANUAL(400));
    set_throughput(&site, 4000);
    wait_for_ranges(&site, 4);
    fill(&site, KEYS, NULL);
    check(&site, KEYS);
}

/* Few keys, of each kind: every number of partitions is reached, and the map is whole. */
static void partitions_follow_the_throughput_whatever_is_stored(void **state)
{
    (void)state;
    static const MoveRules rules = {.splits = true};
    static const char *const kinds[] = {
        "'paths':['/pk'],'version':2",
        "'paths':['/pk'],'version':1",
        "'paths':['/pk'],'kind':'MultiHash','version':2",
    };
    for (size_t k = 0; k < ARRAY_COUNT(kinds); k++) {
        for (int keys = 0; keys <= 3; keys++) {
            AUTO(site_close) Site site;
            site_open_kind(&site, &rules, MANUAL(400), kinds[k]);
            fill(&site, keys, NULL);
            static const uint32_t counts[] = {2, 5, 7, 20};
            for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
                set_throughput(&site, counts[i] * 1000);
                wait_for_ranges(&site, counts[i]);
                check(&site, keys);
            }
            fill(&site, KEYS, NULL);
            check(&site, KEYS);
            const Container *container = container_of(&site);
            size_t used = 0;
            for (size_t i = 0; i < container->range_count; i++)
                used += handle_usage(container_handle_at(container, i)).items > 0;
            if (used < 15)
                fail_msg("of 20 partitions %zu are used (%s, %d keys)", used, kinds[k], keys);
        }
    }
}

/* One logical partition holds nearly everything; cutting around it again and again is no use. */
static void partitions_that_a_cut_can_part_are_split_first(void **state)
{
    (void)state;
    static const MoveRules rules = {.splits = true};
    AUTO(site_close) Site site;
    site_open(&site, &rules, MANUAL(400));
    fill(&site, KEYS, one_large);
    set_throughput(&site, 8000);
    wait_for_ranges(&site, 8);
    set_throughput(&site, 16000);
    wait_for_ranges(&site, 16);
    check(&site, KEYS);
    const Container *container = container_of(&site);
    for (size_t i = 0; i < container->range_count; i++)
        assert_true(handle_usage(container_handle_at(container, i)).items > 0);
}

static void a_new_container_is_not_merged(void **state)
{
    (void)state;
    static const MoveRules moves = {
        .splits = true, .merges = true, .partition_bytes_max = (uint64_t)1 << 30};
    static const ProvisionRules rules = {.partition_ru = 10000,
                                         .new_partition_ru = 6000,
                                         .fallback = {.mode = PROVISION_MANUAL, .ru = 400}};
    AUTO(site_close) Site site;
    site_open_rules(&site, &moves, &rules, MANUAL(30000), "'paths':['/pk'],'version':2");
    assert_int_equal(container_of(&site)->range_count, 5);
    set_throughput(&site, 50000); /* as much as they serve */
    set_throughput(&site, 51000);
    wait_for_ranges(&site, 6);
    set_throughput(&site, 24000);
    wait_for_ranges(&site, 4);
    assert_int_equal(catalog_moves(site.t.catalog, (MoveEvent[8]){0}, 8), 3);
}

static void a_partition_that_holds_too_much_is_split(void **state)
{
    (void)state;
    static const MoveRules rules = {.splits = true, .partition_bytes_max = 20000};
    AUTO(site_close) Site site;
    site_open(&site, &rules, MANUAL(400));
    for (int key = 0; key < KEYS; key++) /* 1 KB each */
        assert_int_equal(put_item(&site.t, site.database, site.container, key, key + 1, 1000),
                         STATUS_OK);
    for (int i = 0; i < PATIENCE_MS; i++) {
        const Container *container = container_of(&site);
        uint64_t most = 0;
        for (size_t r = 0; r < container->range_count; r++) {
            uint64_t bytes = handle_usage(container_handle_at(container, r)).bytes;
            most = bytes > most ? bytes : most;
        }
        if (most <= rules.partition_bytes_max && container->pending_count == 0)
            break;
        sleep_ms(1);
    }
    assert_true(container_of(&site)->range_count >= 4);
    check(&site, KEYS);
}

static void a_source_is_emptied_when_nobody_reads_from_it(void **state)
{
    (void)state;
    AUTO(site_close) Site site;
    site_open(&site, &BY_ORDER, MANUAL(400));
    fill(&site, KEYS, NULL);
    Container *before = container_ref(container_of(&site));
    StoreSpace space = before->ranges[0].space;
    order(&site, 0, 0, 2, "");
    assert_int_equal(wait_for_event(&site).stage, MOVE_DONE);
    (void)container_of(&site); /* lets go of the older map */
    sleep_ms(20);
    for (int key = 0; key < KEYS; key++) /* a holder of it can still read */
        assert_int_equal(get_item(before, key), key + 1);
    assert_int_equal(count_garbage(site.t.store), 1);
    container_unref(before);
    for (int i = 0; i < PATIENCE_MS && count_garbage(site.t.store) > 0; i++)
        sleep_ms(1);
    assert_int_equal(count_garbage(site.t.store), 0);
    assert_int_equal(count_keys(site.t.store, space), 0);
    check(&site, KEYS);
}

/* ---- where to cut ---- */

static int skewed_bytes(int key)
{
    return 4000 / (key + 1) + 10;
}

static void parts_hold_equally_much(void **state)
{
    (void)state;
    AUTO(site_close) Site site;
    site_open(&site, &BY_ORDER, MANUAL(400));
    fill(&site, 400, skewed_bytes);
    order(&site, 0, 0, 2, "");
    assert_int_equal(wait_for_event(&site).stage, MOVE_DONE);
    const Container *container = container_of(&site);
    double first = (double)handle_usage(container_handle_at(container, 0)).bytes;
    double second = (double)handle_usage(container_handle_at(container, 1)).bytes;
    double half = (first + second) / 2;
    if (first < 0.9 * half || first > 1.1 * half)
        fail_msg("parts of %.0f and %.0f bytes", first, second);
    check(&site, 400);
}

static void cuts_by_hash_are_inside_the_range(void **state)
{
    (void)state;
    AUTO(site_close) Site site;
    site_open(&site, &BY_ORDER, MANUAL(400));
    const Container *container = container_of(&site);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (uint32_t parts = 2; parts <= 64; parts *= 2) {
        Cuts cuts;
        assert_ok(split_find(&arena, container_handle_at(container, 0),
                             container->partition_key.kind, parts, SPLIT_BY_HASH, &cuts, err));
        assert_int_equal(cuts.count, parts - 1);
        for (size_t i = 0; i < cuts.count; i++) {
            Slice before = i == 0 ? container->ranges[0].min : cuts.texts[i - 1];
            assert_true(slice_compare(before, cuts.texts[i]) < 0);
            assert_true(slice_compare(cuts.texts[i], container->ranges[0].max) < 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_splits_and_another_merges),
        cmocka_unit_test(a_cut_can_be_chosen),
        cmocka_unit_test(orders_that_cannot_be_are_reported),
        cmocka_unit_test(one_logical_partition_is_not_split),
        cmocka_unit_test(partitions_follow_the_throughput),
        cmocka_unit_test(an_empty_container_is_divided_evenly),
        cmocka_unit_test(partitions_follow_the_throughput_whatever_is_stored),
        cmocka_unit_test(partitions_that_a_cut_can_part_are_split_first),
        cmocka_unit_test(a_new_container_is_not_merged),
        cmocka_unit_test(a_partition_that_holds_too_much_is_split),
        cmocka_unit_test(a_source_is_emptied_when_nobody_reads_from_it),
        cmocka_unit_test(parts_hold_equally_much),
        cmocka_unit_test(cuts_by_hash_are_inside_the_range),
    };
    return cmocka_run_group_tests_name("moves", tests, NULL, NULL);
}
