/* resource_test.c - bodies as the protocol shows them, byte for byte. */
#include "catalog/testing_int.h"

#define DATABASE  0x00AA01F3u /* 8wGqAA== */
#define CONTAINER 0x12345607u /* 8wGqAJI0Vgc= */
#define OFFER     0xADEF1Eu   /* Hu+t */

/* Rows are written with ' for ". */
static void expect_text(Slice actual, const char *row)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    char *text = arena_cstr(&arena, slice_from_cstr(row));
    for (char *c = text; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    assert_slice(actual, slice_from_cstr(text));
}

static void expect_same_document(const ResourceInfo *info)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    Json parsed = JSON_NONE;
    assert_ok(json_parse(&arena, info->body, &parsed, err));
    assert_true(json_equal(parsed, info->document)); /* queries and readers see the same */
}

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

static void a_database_has_its_links(void **state)
{
    (void)state;
    DatabaseRecord record = {.number = DATABASE,
                             .id = SLICE("a \"quoted\" name"),
                             .lsn = 0xd826,
                             .ts_s = TEST_BEGIN_S,
                             .offer = 4};
    AUTO(database_unref) Database *database = database_new(&record);
    expect_text(database->info.body,
                "{'id':'a \\'quoted\\' name','_rid':'8wGqAA==','_ts':1700000000,"
                "'_self':'dbs/8wGqAA==/','_etag':'\\'0000d826-0000-0000-0000-6553f1000000\\'',"
                "'_colls':'colls/','_users':'users/'}");
    assert_slice(database->info.self, SLICE("dbs/8wGqAA==/"));
    expect_same_document(&database->info);
    DatabaseRecord back = database_record(database);
    assert_int_equal(back.number, record.number);
    assert_slice(back.id, record.id);
    assert_true(back.lsn == record.lsn);
    assert_true(back.ts_s == record.ts_s);
    assert_int_equal(back.offer, record.offer);
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

static void a_container_is_its_definition_and_its_links(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    ContainerRecord record = container_of(&arena, 2);
    AUTO(container_unref) Container *container = NULL;
    assert_ok(container_new(&record, test_host, NULL, NULL, &container, err));
    const ResourceInfo *info = &container->info;
    /* The definition as it is, then what the server adds. */
    Slice definition = json_print_arena(&arena, record.definition);
    Slice begin = slice_first(definition, definition.len - 1);
    assert_true(slice_starts_with(info->body, begin));
    expect_text(slice_from(info->body, begin.len),
                ",'_rid':'8wGqAJI0Vgc=','_ts':1700000000,"
                "'_self':'dbs/8wGqAA==/colls/8wGqAJI0Vgc=/',"
                "'_etag':'\\'0000000c-0000-0000-0000-6553f1000000\\'','_docs':'docs/',"
                "'_sprocs':'sprocs/','_triggers':'triggers/','_udfs':'udfs/',"
                "'_conflicts':'conflicts/'}");
    assert_slice(info->id, SLICE("C1"));
    expect_same_document(info);
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
    size_t len = (size_t)9 << 20;
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
        const char *body;
    } rows[] = {
        {{.number = OFFER,
          .database = DATABASE,
          .container = CONTAINER,
          .lsn = 3,
          .ts_s = TEST_BEGIN_S,
          .provision = {PROVISION_MANUAL, 400},
          .ru_ever = 500,
          .replaced_at_s = TEST_BEGIN_S - 1},
         "{'resource':'dbs/8wGqAA==/colls/8wGqAJI0Vgc=/','offerType':'Invalid',"
         "'offerResourceId':'8wGqAJI0Vgc=','offerVersion':'V2','content':{'offerThroughput':400,"
         "'offerIsRUPerMinuteThroughputEnabled':false,'offerMinimumThroughputParameters':{"
         "'maxThroughputEverProvisioned':500,'maxConsumedStorageEverInKB':0},"
         "'isOfferReplacePending':false,'offerLastReplaceTimestamp':1699999999},'id':'Hu+t','_rid':"
         "'Hu+t','_ts':1700000000,"
         "'_self':'offers/Hu+t/','_etag':'\\'00000003-0000-0000-0000-6553f1000000\\''}"},
        {{.number = OFFER,
          .database = DATABASE,
          .lsn = 3,
          .ts_s = TEST_BEGIN_S,
          .provision = {PROVISION_AUTOSCALE, 4000, .increment_percent = 10},
          .ru_ever = 4000,
          .replaced_at_s = TEST_BEGIN_S},
         "{'resource':'dbs/8wGqAA==/','offerType':'Invalid','offerResourceId':'8wGqAA==',"
         "'offerVersion':'V2','content':{'offerThroughput':400,"
         "'offerIsRUPerMinuteThroughputEnabled':false,'offerMinimumThroughputParameters':{"
         "'maxThroughputEverProvisioned':4000,'maxConsumedStorageEverInKB':0},"
         "'offerAutopilotSettings':{'tier':0,'maximumTierThroughput':4000,'autoUpgrade':false,"
         "'maxThroughput':4000,'targetMaxThroughput':0,'autoUpgradePolicy':{'throughputPolicy':{"
         "'incrementPercent':10}}},'isOfferReplacePending':false,"
         "'offerLastReplaceTimestamp':1700000000},"
         "'id':'Hu+t','_rid':'Hu+t','_ts':1700000000,'_self':'offers/Hu+t/',"
         "'_etag':'\\'00000003-0000-0000-0000-6553f1000000\\''}"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(offer_unref) Offer *offer = offer_new(&rows[i].record);
        expect_text(offer->info.body, rows[i].body);
        expect_same_document(&offer->info);
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

static void a_range_is_printed_as_the_protocol_shows_it(void **state)
{
    (void)state;
    static const struct {
        size_t range_count, index;
        const char *body;
    } rows[] = {
        {1, 0,
         "{'_rid':'8wGqAJI0VgcCAAAAAAAAUA==','id':'0',"
         "'_etag':'\\'0000000c-0000-0000-0000-6553f1000000\\'','minInclusive':'',"
         "'maxExclusive':'FF','ridPrefix':0,"
         "'_self':'dbs/8wGqAA==/colls/8wGqAJI0Vgc=/pkranges/8wGqAJI0VgcCAAAAAAAAUA==/',"
         "'throughputFraction':1,'status':'online','parents':[],'ownedArchivalPKRangeIds':[],"
         "'_ts':1700000000,'lsn':12}"},
        {2, 1,
         "{'_rid':'8wGqAJI0VgcHAAAAAAAAUA==','id':'5',"
         "'_etag':'\\'0000000d-0000-0000-0000-6553f1000000\\'','minInclusive':'7F',"
         "'maxExclusive':'FF','ridPrefix':5,"
         "'_self':'dbs/8wGqAA==/colls/8wGqAJI0Vgc=/pkranges/8wGqAJI0VgcHAAAAAAAAUA==/',"
         "'throughputFraction':0.5,'status':'online','parents':[],'ownedArchivalPKRangeIds':[],"
         "'_ts':1700000000,'lsn':13}"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1024);
        ContainerRecord record = container_of(&arena, rows[i].range_count);
        AUTO(container_unref) Container *container = NULL;
        assert_ok(container_new(&record, test_host, NULL, NULL, &container, err));
        AUTO(buf_done) Buf text;
        buf_init(&text, 4096);
        partition_range_print(container, &container->ranges[rows[i].index], &text);
        expect_text(buf_view(&text), rows[i].body);
        Json parsed = JSON_NONE;
        assert_ok(json_parse(&arena, buf_view(&text), &parsed, err));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_etag_looks_like_a_guid_in_quotes),
        cmocka_unit_test(a_database_has_its_links),
        cmocka_unit_test(a_container_is_its_definition_and_its_links),
        cmocka_unit_test(a_definition_that_is_no_normal_form_makes_no_container),
        cmocka_unit_test(a_definition_as_large_as_no_request_makes_no_container),
        cmocka_unit_test(an_offer_names_its_owner_and_its_throughput),
        cmocka_unit_test(a_range_is_printed_as_the_protocol_shows_it),
    };
    return cmocka_run_group_tests(tests, test_host_setup, test_host_teardown);
}
