/* resource_test.c - what resources are made of, and what is kept with them. */
#include "catalog/testing_int.h"

#define DATABASE  0x00AA01F3u /* 8wGqAA== */
#define CONTAINER 0x12345607u /* 8wGqAJI0Vgc= */
#define OFFER     0xADEF1Eu   /* Hu+t */

static void an_etag_looks_like_a_guid_in_quotes(void **state)
{
    (void)state;
    static const struct {
        uint64_t lsn;
        int64_t ts_s;
        const char *etag;
    } rows[] = {
        {1, 0, "\"00000001-0000-0000-0000-000000000000\""},
        {0x1234, TEST_BEGIN_S, "\"00001234-0000-0000-0000-6553f1000000\""},
        {0x0001223344556677, TEST_BEGIN_S, "\"44556677-2233-0001-0000-6553f1000000\""},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        DatabaseRecord record = {
            .number = 1, .id = SLICE("d"), .lsn = rows[i].lsn, .ts_s = rows[i].ts_s};
        AUTO(database_unref) Database *database = database_new(&record);
        assert_slice(database->info.etag, slice_from_cstr(rows[i].etag));
    }
}

static void a_database_is_what_its_record_says(void **state)
{
    (void)state;
    DatabaseRecord record = {.number = DATABASE,
                             .id = SLICE("a \"quoted\" name"),
                             .lsn = 0xd826,
                             .ts_s = TEST_BEGIN_S,
                             .offer = 4};
    AUTO(database_unref) Database *database = database_new(&record);
    assert_slice(database->info.rid, SLICE("8wGqAA=="));
    assert_int_equal(database->info.number, record.number);
    assert_slice(database->info.id, record.id);
    assert_true(database->info.lsn == record.lsn);
    assert_true(database->info.ts_s == record.ts_s);
    assert_int_equal(database->offer, record.offer);
}

static const PartitionRange RANGES[] = {
    {.id = 0, .min = SLICE_INIT(""), .max = SLICE_INIT("7F"), .space = 65536, .lsn = 12},
    {.id = 5, .min = SLICE_INIT("7F"), .max = SLICE_INIT("FF"), .space = 65539, .lsn = 13},
};

static ContainerRecord container_of(Arena *arena, size_t range_count)
{
    static const PartitionRange whole[] = {
        {.id = 0, .min = SLICE_INIT(""), .max = SLICE_INIT("FF"), .space = 65536, .lsn = 12}};
    return (ContainerRecord){.number = CONTAINER,
                             .database = DATABASE,
                             .lsn = 12,
                             .ts_s = TEST_BEGIN_S,
                             .definition = row_definition(arena, "C1", ",'defaultTtl':-1"),
                             .ranges = range_count == 1 ? whole : RANGES,
                             .range_count = range_count,
                             .range_next = 6,
                             .ranges_lsn = 13,
                             .offer = OFFER};
}

static void a_container_is_its_definition_and_its_ranges(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    ContainerRecord record = container_of(&arena, 2);
    AUTO(container_unref) Container *container = NULL;
    assert_ok(container_new(&record, test_host, NULL, NULL, &container, err));
    const ResourceInfo *info = &container->info;
    assert_slice(info->id, SLICE("C1"));
    assert_slice(info->rid, SLICE("8wGqAJI0Vgc="));
    assert_slice(container->schema->self, SLICE("dbs/8wGqAA==/colls/8wGqAJI0Vgc=/"));
    assert_int_equal(container->partition_key.kind, PARTITION_HASH_V2);
    assert_int_equal(container->partition_key.path_count, 1);

    ContainerRecord back = container_record(container);
    assert_int_equal(back.number, record.number);
    assert_int_equal(back.database, record.database);
    assert_true(json_equal(back.definition, record.definition));
    assert_int_equal(back.range_count, 2);
    assert_int_equal(back.range_next, 6);
    assert_true(back.ranges_lsn == 13);
    assert_int_equal(back.offer, OFFER);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(back.ranges[i].id, RANGES[i].id);
        assert_slice(back.ranges[i].min, RANGES[i].min);
        assert_slice(back.ranges[i].max, RANGES[i].max);
        assert_true(back.ranges[i].min.ptr != RANGES[i].min.ptr || back.ranges[i].min.len == 0);
        assert_true(back.ranges[i].space == RANGES[i].space);
        assert_true(back.ranges[i].lsn == RANGES[i].lsn);
    }
}

static void a_definition_that_is_no_normal_form_makes_no_container(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{}",
        "{'id':7,'partitionKey':{'paths':['/pk'],'kind':'Hash','version':2}}",
        "{'id':'c','partitionKey':{'paths':[],'kind':'Hash','version':2}}",
        "{'id':'c','partitionKey':{'paths':['pk'],'kind':'Hash','version':2}}",
        "{'id':'c','partitionKey':{'paths':['/a','/b','/c','/d'],'kind':'MultiHash','version':2}}",
        "{'id':'c','partitionKey':{'paths':['/pk'],'kind':'Odd','version':2}}",
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1024);
        ContainerRecord record = container_of(&arena, 1);
        record.definition = row_json(&arena, rows[i]);
        AUTO(container_unref) Container *container = NULL;
        Error refusal = {0};
        if (container_new(&record, test_host, NULL, NULL, &container, &refusal) != STATUS_CORRUPT)
            fail_msg("row %zu was taken", i);
        assert_null(container);
    }
}

static void a_definition_as_large_as_no_request_makes_no_container(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    ContainerRecord record = container_of(&arena, 1);
    size_t len = JSON_BUILD_BYTES_MAX / 2;
    char *text = arena_alloc(&arena, len);
    memset(text, 'x', len);
    JsonBuilder b;
    json_build(&b, &arena);
    json_begin_object(&b);
    JsonIter it = json_iter(record.definition);
    while (json_next(&it)) {
        json_key(&b, it.name);
        json_add(&b, it.value);
    }
    json_key(&b, SLICE("more"));
    json_add_string(&b, slice_make(text, len));
    json_end(&b);
    record.definition = json_built(&b);
    AUTO(container_unref) Container *container = NULL;
    Error refusal = {0};
    assert_int_equal(container_new(&record, test_host, NULL, NULL, &container, &refusal),
                     STATUS_CORRUPT);
    assert_null(container);
}

static void an_offer_names_its_owner_and_its_throughput(void **state)
{
    (void)state;
    static const struct {
        OfferRecord record;
        const char *owner;
    } rows[] = {
        {{.number = OFFER,
          .database = DATABASE,
          .container = CONTAINER,
          .lsn = 3,
          .ts_s = TEST_BEGIN_S,
          .provision = {PROVISION_MANUAL, 400},
          .ru_ever = 500,
          .replaced_at_s = TEST_BEGIN_S - 1},
         "8wGqAJI0Vgc="},
        {{.number = OFFER,
          .database = DATABASE,
          .lsn = 3,
          .ts_s = TEST_BEGIN_S,
          .provision = {PROVISION_AUTOSCALE, 4000, .increment_percent = 10},
          .ru_ever = 4000,
          .replaced_at_s = TEST_BEGIN_S},
         "8wGqAA=="},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(offer_unref) Offer *offer = offer_new(&rows[i].record);
        assert_slice(offer->info.id, SLICE("Hu+t"));
        assert_slice(offer->owner_rid, slice_from_cstr(rows[i].owner));
        OfferRecord back = offer_record(offer);
        assert_int_equal(back.number, rows[i].record.number);
        assert_int_equal(back.database, rows[i].record.database);
        assert_int_equal(back.container, rows[i].record.container);
        assert_true(back.lsn == rows[i].record.lsn);
        assert_true(back.ts_s == rows[i].record.ts_s);
        assert_int_equal(back.provision.mode, rows[i].record.provision.mode);
        assert_int_equal(back.provision.ru, rows[i].record.provision.ru);
        assert_int_equal(back.provision.increment_percent,
                         rows[i].record.provision.increment_percent);
        assert_int_equal(back.ru_ever, rows[i].record.ru_ever);
        assert_true(back.replaced_at_s == rows[i].record.replaced_at_s);
    }
}

typedef struct CountedView {
    ResourceView view;
    int *released;
} CountedView;

static void on_release(ResourceView *view)
{
    (*CONTAINER_OF(view, CountedView, view)->released)++;
}

static void the_first_view_is_kept_until_the_resource_goes(void **state)
{
    (void)state;
    int released = 0;
    CountedView first = {{on_release}, &released};
    CountedView second = {{on_release}, &released};
    Database *database = database_new(&(DatabaseRecord){.number = 1, .id = SLICE("d"), .lsn = 1});
    assert_null(resource_view(&database->info));
    assert_ptr_equal(resource_keep_view(&database->info, &first.view), &first.view);
    assert_ptr_equal(resource_keep_view(&database->info, &second.view), &first.view);
    assert_int_equal(released, 1);
    Database *shared = database_ref(database);
    database_unref(database);
    assert_ptr_equal(resource_view(&shared->info), &first.view);
    database_unref(shared);
    assert_int_equal(released, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_etag_looks_like_a_guid_in_quotes),
        cmocka_unit_test(a_database_is_what_its_record_says),
        cmocka_unit_test(a_container_is_its_definition_and_its_ranges),
        cmocka_unit_test(a_definition_that_is_no_normal_form_makes_no_container),
        cmocka_unit_test(a_definition_as_large_as_no_request_makes_no_container),
        cmocka_unit_test(an_offer_names_its_owner_and_its_throughput),
        cmocka_unit_test(the_first_view_is_kept_until_the_resource_goes),
    };
    return cmocka_run_group_tests(tests, test_host_setup, test_host_teardown);
}
