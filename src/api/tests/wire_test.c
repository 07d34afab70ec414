/* wire_test.c - resources as the protocol shows them, byte for byte. */
#include "api/core/wire_int.h"

#include "api/tests/testing_int.h"

#define DATABASE_NUMBER  0x00AA01F3u /* 8wGqAA== */
#define CONTAINER_NUMBER 0x12345607u /* 8wGqAJI0Vgc= */
#define OFFER_NUMBER     0xADEF1Eu   /* Hu+t */

/* Rows are written with ' for ". Queries and readers see the same. */
static void expect_shown(FakeServer *server, const WireResource *shown, const char *row)
{
    assert_slice(shown->body, quoted(&server->arena, row));
    Json parsed = JSON_NONE;
    Error err;
    assert_int_equal(json_parse(&server->arena, shown->body, &parsed, &err), STATUS_OK);
    assert_true(json_equal(parsed, shown->document));
}

static void a_database_has_its_links(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    DatabaseRecord record = {.number = DATABASE_NUMBER,
                             .id = SLICE("a \"quoted\" name"),
                             .lsn = 0xd826,
                             .ts_s = FAKE_BEGIN_S,
                             .offer = 4};
    AUTO(database_unref) Database *database = database_new(&record);
    const WireResource *shown = wire_database(database);
    expect_shown(&server, shown,
                 "{'id':'a \\'quoted\\' name','_rid':'8wGqAA==','_ts':1700000000,"
                 "'_self':'dbs/8wGqAA==/','_etag':'\\'0000d826-0000-0000-0000-6553f1000000\\'',"
                 "'_colls':'colls/','_users':'users/'}");
    assert_slice(shown->self, SLICE("dbs/8wGqAA==/"));
    assert_slice(shown->uri_id, SLICE("a%20%22quoted%22%20name"));
    assert_slice(shown->etag, database->info.etag);
    assert_int_equal(shown->number, DATABASE_NUMBER);
    assert_ptr_equal(wire_database(database), shown); /* printed once */
}

static const PartitionRange RANGES[] = {
    {.id = 0, .min = SLICE_INIT(""), .max = SLICE_INIT("7F"), .space = 65536, .lsn = 12},
    {.id = 5, .min = SLICE_INIT("7F"), .max = SLICE_INIT("FF"), .space = 65539, .lsn = 13},
};

static Container *make_container(FakeServer *server, const char *row, size_t range_count)
{
    static const PartitionRange whole[] = {
        {.id = 0, .min = SLICE_INIT(""), .max = SLICE_INIT("FF"), .space = 65536, .lsn = 12}};
    Json body = JSON_NONE;
    Json definition = JSON_NONE;
    Error err;
    ContainerRules rules = {.allow_no_partition_key = true};
    Arena *arena = &server->arena;
    assert_int_equal(json_parse(arena, quoted(arena, row), &body, &err), STATUS_OK);
    assert_int_equal(container_definition_create(arena, body, rules, &definition, &err), STATUS_OK);
    ContainerRecord record = {.number = CONTAINER_NUMBER,
                              .database = DATABASE_NUMBER,
                              .lsn = 12,
                              .ts_s = FAKE_BEGIN_S,
                              .definition = definition,
                              .ranges = range_count == 1 ? whole : RANGES,
                              .range_count = range_count,
                              .range_next = 6,
                              .ranges_lsn = 13,
                              .offer = OFFER_NUMBER};
    Container *container = NULL;
    assert_int_equal(container_new(&record, &server->host, NULL, NULL, &container, &err),
                     STATUS_OK);
    return container;
}

#define LINKS                                                               \
    "'_rid':'8wGqAJI0Vgc=','_ts':1700000000,"                               \
    "'_self':'dbs/8wGqAA==/colls/8wGqAJI0Vgc=/',"                           \
    "'_etag':'\\'0000000c-0000-0000-0000-6553f1000000\\'','_docs':'docs/'," \
    "'_sprocs':'sprocs/','_triggers':'triggers/','_udfs':'udfs/',"          \
    "'_conflicts':'conflicts/'}"

/* The definition as it is, then what the server adds. */
static void expect_container(FakeServer *server, const Container *container,
                             const WireResource *shown, const char *added)
{
    Slice definition = json_print_arena(&server->arena, container->definition);
    expect_shown(
        server, shown,
        arena_format(&server->arena, "%.*s,%s", (int)definition.len - 1, definition.ptr, added)
            .ptr);
}

static void a_container_is_its_definition_and_its_links(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    AUTO(container_unref)
    Container *container = make_container(
        &server, "{'id':'C1','partitionKey':{'paths':['/pk'],'version':2},'defaultTtl':-1}", 2);
    const WireResource *shown = wire_container(container, false);
    expect_container(&server, container, shown, LINKS);
    assert_slice(wire_container(container, true)->body, shown->body);
    assert_ptr_equal(wire_container(container, false), shown);
}

static void only_old_clients_see_a_container_without_a_key(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    AUTO(container_unref) Container *container = make_container(&server, "{'id':'C1'}", 1);
    expect_container(&server, container, wire_container(container, true), LINKS);
    expect_container(
        &server, container, wire_container(container, false),
        "'partitionKey':{'paths':['/_partitionKey'],'kind':'Hash','systemKey':true}," LINKS);
}

static void a_script_is_its_definition_and_its_links(void **state)
{
    (void)state;
    static const struct {
        StoredScriptKind kind;
        const char *definition, *shown;
    } rows[] = {
        {STORED_PROCEDURE, "{'id':'s 1','body':'f(\\'a\\')\\r\\n\\u0001/\\u2028'}",
         "{'id':'s 1','body':'f(\\'a\\')\\r\\n\\u0001/\xe2\x80\xa8',"
         "'_rid':'8wGqAJI0VgcBAAAAAAAAgA==','_ts':1700000000,"
         "'_self':'dbs/8wGqAA==/colls/8wGqAJI0Vgc=/sprocs/8wGqAJI0VgcBAAAAAAAAgA==/',"
         "'_etag':'\\'0000000c-0000-0000-0000-6553f1000000\\''}"},
        {STORED_TRIGGER, "{'id':'t','body':'','triggerType':'pre','triggerOperation':'ALL'}",
         "{'id':'t','body':'','triggerType':'pre','triggerOperation':'ALL',"
         "'_rid':'8wGqAJI0VgcBAAAAAAAAcA==','_ts':1700000000,"
         "'_self':'dbs/8wGqAA==/colls/8wGqAJI0Vgc=/triggers/8wGqAJI0VgcBAAAAAAAAcA==/',"
         "'_etag':'\\'0000000c-0000-0000-0000-6553f1000000\\''}"},
        {STORED_FUNCTION, "{'id':'f','body':'x'}",
         "{'id':'f','body':'x','_rid':'8wGqAJI0VgcBAAAAAAAAYA==','_ts':1700000000,"
         "'_self':'dbs/8wGqAA==/colls/8wGqAJI0Vgc=/udfs/8wGqAJI0VgcBAAAAAAAAYA==/',"
         "'_etag':'\\'0000000c-0000-0000-0000-6553f1000000\\''}"},
    };
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    Arena *arena = &server.arena;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        StoredScriptRecord record = {
            .number = 1,
            .group = {DATABASE_NUMBER, CONTAINER_NUMBER, rows[i].kind},
            .lsn = 12,
            .ts_s = FAKE_BEGIN_S,
        };
        Error err;
        assert_int_equal(
            json_parse(arena, quoted(arena, rows[i].definition), &record.definition, &err),
            STATUS_OK);
        AUTO(stored_script_unref) StoredScript *script = NULL;
        assert_int_equal(stored_script_new(&record, &script, &err), STATUS_OK);
        WireResource *shown = wire_script(script, WIRE_BODY, arena);
        shown->document = wire_script(script, WIRE_DOCUMENT, arena)->document;
        expect_shown(&server, shown, rows[i].shown);
        assert_slice(shown->etag, script->info.etag);
        assert_int_equal(shown->number, 1);
    }
}

static void an_offer_names_its_owner_and_its_throughput(void **state)
{
    (void)state;
    static const struct {
        OfferRecord record;
        const char *body;
    } rows[] = {
        {{.number = OFFER_NUMBER,
          .database = DATABASE_NUMBER,
          .container = CONTAINER_NUMBER,
          .lsn = 3,
          .ts_s = FAKE_BEGIN_S,
          .provision = {PROVISION_MANUAL, 400},
          .ru_ever = 500,
          .replaced_at_s = FAKE_BEGIN_S - 1},
         "{'resource':'dbs/8wGqAA==/colls/8wGqAJI0Vgc=/','offerType':'Invalid',"
         "'offerResourceId':'8wGqAJI0Vgc=','offerVersion':'V2','content':{'offerThroughput':400,"
         "'offerIsRUPerMinuteThroughputEnabled':false,'offerMinimumThroughputParameters':{"
         "'maxThroughputEverProvisioned':500,'maxConsumedStorageEverInKB':0},"
         "'isOfferReplacePending':false,'offerLastReplaceTimestamp':1699999999},'id':'Hu+t','_rid':"
         "'Hu+t','_ts':1700000000,"
         "'_self':'offers/Hu+t/','_etag':'\\'00000003-0000-0000-0000-6553f1000000\\''}"},
        {{.number = OFFER_NUMBER,
          .database = DATABASE_NUMBER,
          .lsn = 3,
          .ts_s = FAKE_BEGIN_S,
          .provision = {PROVISION_AUTOSCALE, 4000, .increment_percent = 10},
          .ru_ever = 4000,
          .replaced_at_s = FAKE_BEGIN_S},
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
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(offer_unref) Offer *offer = offer_new(&rows[i].record);
        expect_shown(&server, wire_offer(offer, &(OfferUsage){0}, &server.arena), rows[i].body);
    }
}

static void an_offer_shows_its_buckets_and_its_use(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    OfferRecord record = {.number = OFFER_NUMBER,
                          .database = DATABASE_NUMBER,
                          .lsn = 3,
                          .provision = {PROVISION_AUTOSCALE, 4000},
                          .buckets = {.percent = {0, 25, 0, 0, 100}, .chosen = 2}};
    AUTO(offer_unref) Offer *offer = offer_new(&record);
    OfferUsage usage = {.ru = 1200, .storage_kb = 640, .is_pending = true};
    WireResource *shown = wire_offer(offer, &usage, &server.arena);
    static const char BUCKETS[] =
        "'throughputBuckets':[{'id':2,'maxThroughputPercentage':25,'isDefaultBucket':true},"
        "{'id':5,'maxThroughputPercentage':100,'isDefaultBucket':false}]";
    static const char *const rows[] = {"'offerThroughput':1200,",
                                       "'maxConsumedStorageEverInKB':640}", BUCKETS,
                                       "'isOfferReplacePending':true"};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        expect_holds(shown->body, quoted(&server.arena, rows[i]).ptr);
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
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(container_unref)
        Container *container = make_container(&server, CONTAINER, rows[i].range_count);
        AUTO(buf_done) Buf text;
        buf_init(&text, WIRE_RANGE_BYTES_MAX);
        wire_range_print(container, &container->ranges[rows[i].index], &text);
        assert_slice(buf_view(&text), quoted(&server.arena, rows[i].body));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_database_has_its_links),
        cmocka_unit_test(a_container_is_its_definition_and_its_links),
        cmocka_unit_test(only_old_clients_see_a_container_without_a_key),
        cmocka_unit_test(a_script_is_its_definition_and_its_links),
        cmocka_unit_test(an_offer_names_its_owner_and_its_throughput),
        cmocka_unit_test(an_offer_shows_its_buckets_and_its_use),
        cmocka_unit_test(a_range_is_printed_as_the_protocol_shows_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
