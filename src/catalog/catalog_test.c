/* catalog_test.c - every change, its results and its refusals, on both engines. */
#include "catalog/testing_int.h"

#define NONE MANUAL(0)

/* Runs a change that must be refused, and checks that it left nothing behind. */
static void expect_refusal(TestCatalog *t, TestChange *c, Status status, SubStatus sub,
                           const char *says)
{
    Slice before = test_dump(t);
    assert_int_equal(test_run(t->catalog, c), status);
    assert_int_equal(c->change.error.status, status);
    assert_int_equal(c->change.error.sub, sub);
    if (strstr(c->change.error.message, says) == NULL)
        fail_msg("expected '%s' in '%s'", says, c->change.error.message);
    assert_null(c->change.result_database);
    assert_null(c->change.result_container);
    assert_null(c->change.result_offer);
    assert_slice(test_dump(t), before);
    test_change_done(c);
}

static ProvisionHistory history_of(TestCatalog *t, const Offer *offer)
{
    return catalog_provision_history(test_read(t), offer, &(OfferUsage){0});
}

static const Container *find_container(TestCatalog *t, uint32_t database, const char *id)
{
    return snapshot_container_by_id(test_read(t), database, slice_from_cstr(id));
}

static void an_empty_store_is_an_empty_catalogue(TestCatalog *t)
{
    const Snapshot *snapshot = test_read(t);
    assert_null(snapshot_next_database(snapshot, 0));
    assert_null(snapshot_next_offer(snapshot, 0));
    assert_int_equal(snapshot->container_count, 0);
    test_reopen(t);
    assert_null(snapshot_next_database(test_read(t), 0));
}

static void a_database_is_created_as_it_was_asked_for(TestCatalog *t)
{
    AUTO(test_change_done) TestChange c;
    fill_database(&c, SLICE("Db1"), NONE);
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
    const Database *database = c.change.result_database;
    assert_null(c.change.result_offer);
    assert_int_equal(database->offer, 0);
    char rid[RID_DATABASE_LEN];
    rid_print_database(database->info.number, rid);
    assert_slice(database->info.rid, slice_make(rid, sizeof(rid)));
    assert_slice(database->info.id, SLICE("Db1"));
    assert_true(database->info.ts_s == TEST_BEGIN_S);
    /* Every reader sees what was answered. */
    assert_ptr_equal(snapshot_database_by_id(test_read(t), SLICE("Db1")), database);
    assert_ptr_equal(snapshot_database(test_read(t), database->info.number), database);
}

static void a_name_is_taken_once(TestCatalog *t)
{
    uint32_t a = make_database(t, "a", NONE);
    uint32_t b = make_database(t, "A", NONE); /* case matters */
    make_container(t, a, "c", NONE);
    make_container(t, a, "C", NONE);
    make_container(t, b, "c", NONE); /* each database has its own names */
    TestChange c;
    fill_database(&c, SLICE("a"), NONE);
    expect_refusal(t, &c, STATUS_CONFLICT, SUB_NONE, "already exists");
    fill_container(&c, a, row_definition(&t->arena, "c", ""), NONE);
    expect_refusal(t, &c, STATUS_CONFLICT, SUB_NONE, "already exists");
    /* Deleted, it is free again, and what gets it is another resource. */
    uint32_t old = find_container(t, a, "c")->info.number;
    assert_int_equal(delete_one(t, CATALOG_DELETE_CONTAINER, a, old), STATUS_OK);
    assert_true(make_container(t, a, "c", NONE) > old);
    assert_int_equal(delete_one(t, CATALOG_DELETE_DATABASE, a, 0), STATUS_OK);
    assert_true(make_database(t, "a", NONE) > b);
}

static void throughput_outside_its_bounds_is_refused(TestCatalog *t)
{
    static const struct {
        Provision provision;
        const char *says;
    } rows[] = {
        {{PROVISION_MANUAL, 399}, "between 400 and 1000000"},
        {{PROVISION_MANUAL, 300}, "between 400 and 1000000"},
        {{PROVISION_MANUAL, 450}, "increments of 100"},
        {{PROVISION_MANUAL, 1000100}, "between 400 and 1000000"},
        {{PROVISION_AUTOSCALE, 900}, "between 1000 and 1000000"},
        {{PROVISION_AUTOSCALE, 1500}, "increments of 1000"},
        {{PROVISION_AUTOSCALE, 1001000}, "between 1000 and 1000000"},
    };
    uint32_t database = make_database(t, "db", NONE);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        TestChange c;
        fill_database(&c, SLICE("new"), rows[i].provision);
        expect_refusal(t, &c, STATUS_BAD_REQUEST, SUB_NONE, rows[i].says);
        fill_container(&c, database, row_definition(&t->arena, "new", ""), rows[i].provision);
        expect_refusal(t, &c, STATUS_BAD_REQUEST, SUB_NONE, rows[i].says);
    }
}

static void throughput_decides_the_number_of_partitions(TestCatalog *t)
{
    static const struct {
        Provision provision;
        size_t ranges;
        uint32_t ru;
    } rows[] = {
        {{PROVISION_MANUAL, 0}, 1, 400}, /* none asked for */
        {{PROVISION_MANUAL, 400}, 1, 400},
        {{PROVISION_MANUAL, 6000}, 1, 6000},
        {{PROVISION_MANUAL, 6100}, 2, 6100},
        {{PROVISION_MANUAL, 30000}, 5, 30000},
        {{PROVISION_MANUAL, 1000000}, 167, 1000000},
        {{PROVISION_AUTOSCALE, 1000}, 1, 1000},
        {{PROVISION_AUTOSCALE, 11000}, 2, 11000},
    };
    uint32_t database = make_database(t, "db", NONE);
    StoreSpace space = SPACE_PARTITION_FIRST;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "c%zu", i);
        AUTO(test_change_done) TestChange c;
        fill_container(&c, database, row_definition(&t->arena, id, ""), rows[i].provision);
        assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
        const Container *container = c.change.result_container;
        const Offer *offer = c.change.result_offer;
        assert_ptr_equal(find_container(t, database, id), container);
        assert_ptr_equal(snapshot_offer(test_read(t), container->offer), offer);
        assert_int_equal(offer->provision.ru, rows[i].ru);
        assert_int_equal(offer->provision.mode, rows[i].provision.mode);
        assert_int_equal(offer->ru_ever, rows[i].ru);
        assert_int_equal(offer->container, container->info.number);
        assert_int_equal(container->range_count, rows[i].ranges);
        assert_int_equal(container->range_next, rows[i].ranges);
        Slice expected = SLICE("");
        for (size_t j = 0; j < container->range_count; j++) {
            const PartitionRange *range = &container->ranges[j];
            assert_int_equal(range->id, j);
            assert_slice(range->min, expected);
            assert_true(slice_compare(range->min, range->max) < 0);
            assert_true(range->space == space++); /* nobody else's */
            assert_true(range->lsn == container->ranges_lsn);
            expected = range->max;
        }
        assert_slice(expected, SLICE("FF"));
    }
}

static void a_container_without_a_key_has_one_partition(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", MANUAL(50000));
    Json normal = JSON_NONE;
    assert_ok(container_definition_create(&t->arena, row_json(&t->arena, "{'id':'old'}"),
                                          (ContainerRules){.allow_no_partition_key = true}, &normal,
                                          err));
    TestChange c;
    fill_container(&c, database, normal, MANUAL(10100));
    expect_refusal(t, &c, STATUS_BAD_REQUEST, SUB_NONE, "between 400 and 10000");
    fill_container(&c, database, normal, NONE);
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
    assert_int_equal(c.change.result_container->range_count, 1);
    /* It cannot share what its database has, so it has its own. */
    assert_int_equal(c.change.result_offer->provision.ru, 400);
    uint32_t offer = c.change.result_offer->info.number;
    test_change_done(&c);
    assert_true(history_of(t, snapshot_offer(test_read(t), offer)).is_fixed);
    test_change_init(&c, CATALOG_REPLACE_OFFER);
    c.change.offer = offer;
    c.change.provision = MANUAL(10100);
    expect_refusal(t, &c, STATUS_BAD_REQUEST, SUB_NONE, "between 400 and 10000");
}

static void shared_throughput_is_for_a_few_containers(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", MANUAL(400));
    char id[16];
    for (int i = 0; i < SHARED_CONTAINERS_MAX; i++) {
        (void)snprintf(id, sizeof(id), "c%d", i);
        make_container(t, database, id, NONE);
        assert_int_equal(find_container(t, database, id)->offer, 0);
        /* One with throughput of its own does not count. */
        (void)snprintf(id, sizeof(id), "own%d", i);
        make_container(t, database, id, MANUAL(400));
        assert_int_not_equal(find_container(t, database, id)->offer, 0);
    }
    assert_int_equal(snapshot_shared_count(test_read(t), database), SHARED_CONTAINERS_MAX);
    TestChange c;
    fill_container(&c, database, row_definition(&t->arena, "more", ""), NONE);
    expect_refusal(t, &c, STATUS_BAD_REQUEST, SUB_NONE, "shared by 25 containers");
    make_container(t, database, "own", MANUAL(400));
    uint32_t first = find_container(t, database, "c0")->info.number;
    assert_int_equal(delete_one(t, CATALOG_DELETE_CONTAINER, database, first), STATUS_OK);
    make_container(t, database, "more", NONE);
    test_reopen(t); /* and it is counted the same again */
    fill_container(&c, database, row_definition(&t->arena, "again", ""), NONE);
    expect_refusal(t, &c, STATUS_BAD_REQUEST, SUB_NONE, "shared by 25 containers");
}

static void what_is_missing_is_said(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    uint32_t container = make_container(t, database, "c", NONE);
    Json body = row_definition(&t->arena, "c", "");
    const struct {
        CatalogOp op;
        uint32_t database, container, offer;
        SubStatus sub;
        const char *says;
    } rows[] = {
        {CATALOG_CREATE_CONTAINER, database + 1, 0, 0, SUB_OWNER_NOT_FOUND, "Owner resource"},
        {CATALOG_DELETE_DATABASE, database + 1, 0, 0, SUB_NONE, "Resource Not Found"},
        {CATALOG_REPLACE_CONTAINER, database, container + 1, 0, SUB_NONE, "Resource Not Found"},
        {CATALOG_REPLACE_CONTAINER, database + 1, container, 0, SUB_NONE, "Resource Not Found"},
        {CATALOG_DELETE_CONTAINER, database, container + 1, 0, SUB_NONE, "Resource Not Found"},
        {CATALOG_DELETE_CONTAINER, database + 1, container, 0, SUB_NONE, "Resource Not Found"},
        {CATALOG_REPLACE_OFFER, 0, 0, 0, SUB_NONE, "Resource Not Found"},
        {CATALOG_REPLACE_OFFER, 0, 0, RID_OFFER_MAX, SUB_NONE, "Resource Not Found"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        TestChange c;
        test_change_init(&c, rows[i].op);
        c.change.database = rows[i].database;
        c.change.container = rows[i].container;
        c.change.offer = rows[i].offer;
        c.change.definition = body;
        c.change.provision = MANUAL(400);
        expect_refusal(t, &c, STATUS_NOT_FOUND, rows[i].sub, rows[i].says);
    }
}

static void whatever_the_clock_says_is_read_again(TestCatalog *t)
{
    static const uint64_t clocks_us[] = {0, UINT64_C(253402300800000000), UINT64_MAX};
    for (size_t i = 0; i < ARRAY_COUNT(clocks_us); i++) {
        fake_clock_set_wall(&t->clock, clocks_us[i]);
        char id[8];
        (void)snprintf(id, sizeof(id), "db%zu", i);
        uint32_t database = make_database(t, id, MANUAL(400));
        (void)make_container(t, database, "c", NONE);
        test_reopen(t);
        assert_non_null(find_container(t, database, "c"));
    }
}

static void a_replaced_container_keeps_what_it_is(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    uint32_t number = make_container(t, database, "c", MANUAL(12000));
    Container *old = container_ref(find_container(t, database, "c"));
    fake_clock_advance(&t->clock, 5000000);
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_REPLACE_CONTAINER);
    c.change.database = database;
    c.change.container = number;
    /* Not a normal form: what a client sends. */
    c.change.definition = row_json(
        &t->arena, "{'defaultTtl':60,'id':'c','partitionKey':{'paths':['/pk'],'version':2}}");
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
    const Container *new = c.change.result_container;
    assert_ptr_equal(find_container(t, database, "c"), new);
    assert_true(container_default_ttl_s(new->definition) == 60);
    assert_slice(new->info.rid, old->info.rid);
    assert_true(new->info.lsn > old->info.lsn);
    assert_int_equal(new->info.ts_s, TEST_BEGIN_S + 5);
    assert_false(slice_equal(new->info.etag, old->info.etag));
    assert_int_equal(new->offer, old->offer);
    assert_int_equal(new->range_count, 2);
    assert_true(new->ranges_lsn == old->ranges_lsn);
    for (size_t i = 0; i < 2; i++)
        assert_true(new->ranges[i].space == old->ranges[i].space);
    /* A holder of the old one still has it. */
    assert_true(container_default_ttl_s(old->definition) != 60);
    container_unref(old);
}

static Json key_definition(TestCatalog *t, const char *id, const char *wrapped)
{
    return row_json(&t->arena,
                    arena_format(&t->arena,
                                 "{'id':'%s','encryptionAlgorithm':'A',"
                                 "'wrappedDataEncryptionKey':'%s','keyWrapMetadata':{}}%c",
                                 id, wrapped, '\0')
                        .ptr);
}

static Status make_key(TestCatalog *t, uint32_t database, const char *id, uint32_t *number)
{
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_CREATE_KEY);
    c.change.database = database;
    c.change.definition = key_definition(t, id, "AAAA");
    Status status = test_run(t->catalog, &c);
    if (status == STATUS_OK)
        *number = c.change.result_key->info.number;
    return status;
}

static void a_key_lives_as_long_as_its_database(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    uint32_t other = make_database(t, "other", NONE);
    uint32_t first = 0;
    uint32_t second = 0;
    assert_int_equal(make_key(t, database, "k", &first), STATUS_OK);
    assert_int_equal(make_key(t, database, "k", &second), STATUS_CONFLICT);
    assert_int_equal(make_key(t, other, "k", &second), STATUS_OK);
    assert_int_equal(make_key(t, database + 1000, "k", &second), STATUS_NOT_FOUND);
    fake_clock_advance(&t->clock, 5000000);
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_REPLACE_KEY);
    c.change.database = database;
    c.change.key = first;
    c.change.definition = key_definition(t, "k", "BBBB");
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
    Slice definition = json_print_arena(&t->arena, c.change.result_key->definition);
    assert_int_equal(c.change.result_key->created_at_s, TEST_BEGIN_S);
    assert_int_equal(c.change.result_key->info.ts_s, TEST_BEGIN_S + 5);

    TestChange renamed;
    test_change_init(&renamed, CATALOG_REPLACE_KEY);
    renamed.change.database = database;
    renamed.change.key = first;
    renamed.change.definition = key_definition(t, "other", "BBBB");
    expect_refusal(t, &renamed, STATUS_BAD_REQUEST, SUB_NONE, "cannot be changed");
    TestChange stale;
    test_change_init(&stale, CATALOG_REPLACE_KEY);
    stale.change.database = database;
    stale.change.key = first;
    stale.change.definition = key_definition(t, "k", "CCCC");
    stale.change.if_match = SLICE("\"old\"");
    expect_refusal(t, &stale, STATUS_PRECONDITION_FAILED, SUB_NONE, "pre-condition");

    test_reopen(t);
    const EncryptionKey *key = snapshot_key_by_id(test_read(t), database, SLICE("k"));
    assert_non_null(key);
    assert_slice(json_print_arena(&t->arena, key->definition), definition);
    assert_ptr_equal(key, snapshot_key(test_read(t), database, first));
    assert_ptr_equal(key, snapshot_next_key(test_read(t), database, 0));
    assert_null(snapshot_next_key(test_read(t), database, first + 1));

    assert_int_equal(delete_one(t, CATALOG_DELETE_DATABASE, database, 0), STATUS_OK);
    assert_null(snapshot_key(test_read(t), database, first));
    test_reopen(t);
    assert_null(snapshot_key(test_read(t), database, first));
    assert_non_null(snapshot_key_by_id(test_read(t), other, SLICE("k")));
}

static void a_replacement_is_checked_like_a_new_one(TestCatalog *t)
{
    static const struct {
        const char *body;
        const char *says;
    } rows[] = {
        {"{'id':'c','partitionKey':{'paths':['/other'],'version':2}}", "'partitionKey' is fixed"},
        {"{'id':'other','partitionKey':{'paths':['/pk'],'version':2}}", "id"},
        {"{'partitionKey':{'paths':['/pk'],'version':2}}", "id"},
        {"{'id':'c','partitionKey':{'paths':['/pk'],'version':2},'defaultTtl':0}", "efaultTtl"},
    };
    uint32_t database = make_database(t, "db", NONE);
    uint32_t number = make_container(t, database, "c", NONE);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        TestChange c;
        test_change_init(&c, CATALOG_REPLACE_CONTAINER);
        c.change.database = database;
        c.change.container = number;
        c.change.definition = row_json(&t->arena, rows[i].body);
        expect_refusal(t, &c, STATUS_BAD_REQUEST, SUB_NONE, rows[i].says);
    }
}

/* Replaces the container again, so that 'etag' is an old one. */
static Slice replace_and_return_old_etag(TestCatalog *t, uint32_t database, uint32_t container)
{
    Slice old =
        arena_copy(&t->arena, snapshot_container(test_read(t), database, container)->info.etag);
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_REPLACE_CONTAINER);
    c.change.database = database;
    c.change.container = container;
    c.change.definition = row_definition(&t->arena, "c", "");
    c.change.if_match = old; /* still the newest: accepted */
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
    return old;
}

static void a_change_that_expects_another_etag_is_refused(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", MANUAL(400));
    uint32_t container = make_container(t, database, "c", NONE);
    Slice old = replace_and_return_old_etag(t, database, container);
    static const CatalogOp ops[] = {CATALOG_REPLACE_CONTAINER, CATALOG_DELETE_CONTAINER,
                                    CATALOG_REPLACE_OFFER, CATALOG_DELETE_DATABASE};
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        TestChange c;
        test_change_init(&c, ops[i]);
        c.change.database = database;
        c.change.container = container;
        c.change.offer = snapshot_database(test_read(t), database)->offer;
        c.change.definition = row_definition(&t->arena, "c", "");
        c.change.provision = MANUAL(500);
        c.change.if_match = old;
        expect_refusal(t, &c, STATUS_PRECONDITION_FAILED, SUB_NONE, "pre-condition is not met");
        /* A star means: whatever it is now. */
        test_change_init(&c, ops[i]);
        c.change.database = database;
        c.change.container = container;
        c.change.offer = snapshot_database(test_read(t), database)->offer;
        c.change.definition = row_definition(&t->arena, "c", "");
        c.change.provision = MANUAL(500);
        c.change.if_match = SLICE("*");
        assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
        test_change_done(&c);
    }
}

static void a_deleted_database_takes_everything_with_it(TestCatalog *t)
{
    uint32_t kept = make_database(t, "kept", MANUAL(500));
    make_container(t, kept, "c", MANUAL(600));
    Slice before = test_dump(t);
    uint32_t database = make_database(t, "db", MANUAL(400));
    make_container(t, database, "shared", NONE);
    make_container(t, database, "own", MANUAL(18000));
    assert_int_equal(delete_one(t, CATALOG_DELETE_DATABASE, database, 0), STATUS_OK);
    assert_slice(test_dump(t), before);
    assert_int_equal(delete_one(t, CATALOG_DELETE_DATABASE, database, 0), STATUS_NOT_FOUND);
    test_reopen(t);
    assert_slice(test_dump(t), before);
}

static void an_offer_is_replaced_within_what_its_past_allows(TestCatalog *t)
{
    static const struct {
        Provision provision;
        Status status;
        uint32_t ru_ever;
        uint32_t minimum; /* afterwards */
    } rows[] = {
        {{PROVISION_MANUAL, 100000}, STATUS_OK, 100000, 1000},
        {{PROVISION_MANUAL, 900}, STATUS_BAD_REQUEST, 100000, 0},
        {{PROVISION_MANUAL, 1050}, STATUS_BAD_REQUEST, 100000, 0},
        {{PROVISION_MANUAL, 1000}, STATUS_OK, 100000, 1000},
        {{PROVISION_AUTOSCALE, 9000}, STATUS_BAD_REQUEST, 100000, 0},
        {{PROVISION_AUTOSCALE, 10000}, STATUS_OK, 100000, 10000},
        {{PROVISION_AUTOSCALE, 1000000}, STATUS_OK, 1000000, 100000},
        {{PROVISION_MANUAL, 10000}, STATUS_OK, 1000000, 10000},
        {{PROVISION_MANUAL, 1000100}, STATUS_BAD_REQUEST, 1000000, 0},
    };
    uint32_t database = make_database(t, "db", NONE);
    make_container(t, database, "c", NONE);
    uint32_t number = find_container(t, database, "c")->offer;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        fake_clock_advance(&t->clock, 1000000);
        TestChange c;
        test_change_init(&c, CATALOG_REPLACE_OFFER);
        c.change.offer = number;
        c.change.provision = rows[i].provision;
        if (rows[i].status != STATUS_OK) {
            expect_refusal(t, &c, rows[i].status, SUB_NONE, "request units a second");
            continue;
        }
        assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
        const Offer *offer = c.change.result_offer;
        assert_ptr_equal(snapshot_offer(test_read(t), number), offer);
        assert_int_equal(offer->provision.ru, rows[i].provision.ru);
        assert_int_equal(offer->provision.mode, rows[i].provision.mode);
        assert_int_equal(offer->ru_ever, rows[i].ru_ever);
        assert_int_equal(offer->replaced_at_s, TEST_BEGIN_S + (int64_t)i + 1);
        assert_int_equal(c.change.history.ru_ever, rows[i].ru_ever);
        assert_int_equal(provision_minimum_ru(offer->provision.mode, &c.change.history),
                         rows[i].minimum);
        test_change_done(&c);
    }
    /* The container is the same one as before. */
    assert_int_equal(find_container(t, database, "c")->offer, number);
}

static void the_minimum_of_a_shared_offer_follows_its_containers(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", MANUAL(400));
    make_container(t, database, "shared", NONE);
    make_container(t, database, "own", MANUAL(400));
    const Snapshot *snapshot = test_read(t);
    const Offer *of_database =
        snapshot_offer(snapshot, snapshot_database(snapshot, database)->offer);
    const Offer *of_container = snapshot_offer(snapshot, find_container(t, database, "own")->offer);
    assert_int_equal(history_of(t, of_database).shared_containers, 1);
    assert_int_equal(history_of(t, of_container).shared_containers, 0);
}

static void a_restart_finds_the_same(TestCatalog *t)
{
    uint32_t a = make_database(t, "a", MANUAL(400));
    uint32_t b = make_database(t, "\xf0\x9f\xaa\x90 \xc3\xa9", AUTOSCALE(5000));
    make_container(t, a, "shared", NONE);
    make_container(t, a, "many", MANUAL(100000));
    make_container(t, b, "c", AUTOSCALE(20000));
    AUTO(test_change_done) TestChange c;
    fill_container(&c, b,
                   row_definition(&t->arena, "full",
                                  ",'defaultTtl':-1,'uniqueKeyPolicy':{'uniqueKeys':[{'paths':"
                                  "['/a','/b/c']}]},'indexingPolicy':{'compositeIndexes':[[{'path':"
                                  "'/a'},{'path':'/b','order':'descending'}]]}"),
                   NONE);
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
    (void)replace_and_return_old_etag(t, b, find_container(t, b, "c")->info.number);
    Slice before = test_dump(t);
    for (int i = 0; i < 3; i++) {
        test_reopen(t);
        assert_slice(test_dump(t), before);
    }
}

/* As a restore does: with a catalogue that makes nothing meanwhile. */
static void numbers_can_be_skipped(TestCatalog *t)
{
    uint32_t database = make_database(t, "a", NONE);
    uint32_t container = make_container(t, database, "c", NONE);
    assert_ok(catalog_skip_numbers(t->catalog, 1000, err));
    test_reopen(t);
    assert_int_equal(make_database(t, "b", NONE), database + 1001);
    assert_int_equal(make_container(t, database, "d", NONE), container + 1001);
    for (int i = 0; i < 100; i++) { /* they do not end */
        assert_ok(catalog_skip_numbers(t->catalog, UINT32_MAX, err));
        test_reopen(t);
    }
    assert_true(make_database(t, "e", NONE) > database + 1001);
    assert_true(make_container(t, database, "f", NONE) > container + 1001);
    test_reopen(t);
}

static void numbers_are_never_used_again(TestCatalog *t)
{
    uint32_t database_last = 0;
    uint32_t container_last = 0;
    uint32_t offer_last = 0;
    StoreSpace space_last = 0;
    for (int i = 0; i < 12; i++) {
        uint32_t database = make_database(t, "db", MANUAL(400));
        uint32_t container = make_container(t, database, "c", MANUAL(11000));
        const Container *c = find_container(t, database, "c");
        assert_true(database > database_last);
        assert_true(container > container_last);
        assert_true(c->offer > offer_last);
        assert_true(c->ranges[0].space > space_last);
        database_last = database;
        container_last = container;
        offer_last = c->offer;
        space_last = c->ranges[1].space;
        if (i % 3 == 0)
            assert_int_equal(delete_one(t, CATALOG_DELETE_CONTAINER, database, container),
                             STATUS_OK);
        assert_int_equal(delete_one(t, CATALOG_DELETE_DATABASE, database, 0), STATUS_OK);
        if (i % 2 == 0)
            test_reopen(t);
    }
}

static void every_change_has_an_etag_of_its_own(TestCatalog *t)
{
    enum { CHANGES = 20 };
    Slice etags[CHANGES];
    uint32_t database = make_database(t, "db", NONE);
    uint32_t container = make_container(t, database, "c", NONE);
    for (size_t i = 0; i < CHANGES; i++) {
        etags[i] = replace_and_return_old_etag(t, database, container);
        if (i == CHANGES / 2)
            test_reopen(t);
        for (size_t j = 0; j < i; j++)
            assert_false(slice_equal(etags[i], etags[j])); /* though all in one second */
    }
}

static void an_etag_must_match_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *if_match;
        Status status;
    } rows[] = {
        {"", STATUS_OK},
        {"*", STATUS_OK},
        {"\"a\"", STATUS_OK},
        {"a", STATUS_PRECONDITION_FAILED},
        {"\"A\"", STATUS_PRECONDITION_FAILED},
        {"\"a\" ", STATUS_PRECONDITION_FAILED},
        {"\"*\"", STATUS_PRECONDITION_FAILED},
        {"\"a\",\"b\"", STATUS_PRECONDITION_FAILED},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Error err = {0};
        assert_int_equal(
            catalog_check_etag(slice_from_cstr(rows[i].if_match), SLICE("\"a\""), &err),
            rows[i].status);
    }
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(an_empty_store_is_an_empty_catalogue),
        ENGINE_TEST(a_database_is_created_as_it_was_asked_for),
        ENGINE_TEST(a_name_is_taken_once),
        ENGINE_TEST(whatever_the_clock_says_is_read_again),
        ENGINE_TEST(throughput_outside_its_bounds_is_refused),
        ENGINE_TEST(throughput_decides_the_number_of_partitions),
        ENGINE_TEST(a_container_without_a_key_has_one_partition),
        ENGINE_TEST(shared_throughput_is_for_a_few_containers),
        ENGINE_TEST(what_is_missing_is_said),
        ENGINE_TEST(a_key_lives_as_long_as_its_database),
        ENGINE_TEST(a_replaced_container_keeps_what_it_is),
        ENGINE_TEST(a_replacement_is_checked_like_a_new_one),
        ENGINE_TEST(a_change_that_expects_another_etag_is_refused),
        ENGINE_TEST(a_deleted_database_takes_everything_with_it),
        ENGINE_TEST(an_offer_is_replaced_within_what_its_past_allows),
        ENGINE_TEST(the_minimum_of_a_shared_offer_follows_its_containers),
        ENGINE_TEST(a_restart_finds_the_same),
        ENGINE_TEST(numbers_can_be_skipped),
        ENGINE_TEST(numbers_are_never_used_again),
        ENGINE_TEST(every_change_has_an_etag_of_its_own),
    };
    const struct CMUnitTest plain[] = {cmocka_unit_test(an_etag_must_match_exactly)};
    int failed = cmocka_run_group_tests(plain, NULL, NULL);
    return failed + run_on_every_engine("catalog", tests, ARRAY_COUNT(tests));
}
