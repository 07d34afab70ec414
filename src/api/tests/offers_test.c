/* offers_test.c - throughput is found, read and replaced. */
#include "api/tests/testing_int.h"

#define BUCKETS(list) "{'content':{'offerThroughput':20000,'throughputBuckets':[" list "]}}"

/* The path of the offer of 'c'. */
static const char *find_offer(FakeServer *server)
{
    FakeAnswer container = expect_status(server, &(Ask){"GET", "/dbs/db/colls/c"}, 200);
    Slice rid = text_of(body_of(server, &container), "_rid");
    Slice query = arena_format(&server->arena,
                               "{'query':'SELECT * FROM root r WHERE r.offerResourceId = @r',"
                               "'parameters':[{'name':'@r','value':'%.*s'}]}",
                               SLICE_ARG(rid));
    FakeAnswer found = expect_status(
        server, &(Ask){"POST", "/offers", query.ptr, {{"x-ms-documentdb-isquery", "True"}}}, 200);
    Json offer = json_at(json_get(body_of(server, &found), SLICE("Offers")), 0);
    Slice id = text_of(offer, "id");
    return arena_format(&server->arena, "/offers/%.*s/", SLICE_ARG(id)).ptr;
}

typedef struct Replacement {
    const char *body;
    Header header;
    int status;
    const char *says;
} Replacement;

static void replace_each(FakeServer *server, const char *path, const Replacement *rows,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Ask a = {"PUT", path, rows[i].body, {rows[i].header}};
        FakeAnswer answer = expect_status(server, &a, rows[i].status);
        expect_holds(answer.body, rows[i].says);
        if (rows[i].status != 200)
            continue;
        expect_header(&answer, "x-ms-offer-replace-pending", "false");
        FakeAnswer again = expect_status(server, &(Ask){"GET", path}, 200);
        assert_slice(again.body, answer.body);
        assert_slice(fake_header(&again, "x-ms-cosmos-min-throughput"),
                     fake_header(&answer, "x-ms-cosmos-min-throughput"));
    }
}

static void an_offer_is_found_read_and_replaced(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    const char *path = find_offer(&server);
    FakeAnswer read = expect_status(&server, &(Ask){"GET", path}, 200);
    expect_header(&read, "x-ms-cosmos-min-throughput", "400");
    expect_header(&read, "x-ms-offer-replace-pending", "false");

    static const Replacement ROWS[] = {
        {"{'content':{'offerThroughput':100000}}", {0}, 200, "\"offerThroughput\":100000"},
        {"{'content':{'offerThroughput':400}}", {0}, 400, "between 1000 and 1000000"},
        {"{'content':{'offerThroughput':1050}}", {0}, 400, "increments of 100"},
        {"{'content':{'offerThroughput':'1000'}}", {0}, 400, "offerThroughput"},
        {"{'content':{'offerThroughput':-1}}", {0}, 400, "offerThroughput"},
        {"{'content':{'offerThroughput':1e300}}", {0}, 400, "offerThroughput"},
        {"{'content':{}}", {0}, 400, "offerThroughput"},
        {"{}", {0}, 400, "content"},
        {"{'id':'AAAA','content':{'offerThroughput':1000}}", {0}, 400, "'id'"},
        {"{'_rid':7,'content':{'offerThroughput':1000}}", {0}, 400, "'_rid'"},
        {"{'content':{'offerAutopilotSettings':{'maxThroughput':20000}}}",
         {0},
         400,
         "migrate-offer-to-autopilot"},
        {"{'content':{}}",
         {"x-ms-cosmos-migrate-offer-to-autopilot", "true"},
         200,
         "\"maxThroughput\":100000"},
        {"{'content':{'offerThroughput':1000}}", {0}, 400, "migrate-offer-to-manual-throughput"},
        {"{'content':{'offerAutopilotSettings':{'maxThroughput':20000}}}",
         {0},
         200,
         "\"maxThroughput\":20000"},
        {"{'content':{}}",
         {"x-ms-cosmos-migrate-offer-to-manual-throughput", "True"},
         200,
         "\"offerThroughput\":20000"},
    };
    replace_each(&server, path, ROWS, ARRAY_COUNT(ROWS));
    (void)expect_status(&server, &(Ask){"DELETE", "/dbs/db/colls/c"}, 204);
    (void)expect_status(&server, &(Ask){"GET", path}, 404);
    (void)expect_status(&server, &(Ask){"PUT", path, ROWS[0].body}, 404);
}

static void buckets_of_an_offer_are_replaced(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    static const Replacement ROWS[] = {
        {BUCKETS("{'id':1,'maxThroughputPercentage':10},"
                 "{'id':5,'maxThroughputPercentage':100,'isDefaultBucket':true}"),
         {0},
         200,
         "\"throughputBuckets\":[{\"id\":1,\"maxThroughputPercentage\":10,"
         "\"isDefaultBucket\":false},{\"id\":5,\"maxThroughputPercentage\":100,"
         "\"isDefaultBucket\":true}]"},
        {BUCKETS("{'id':0,'maxThroughputPercentage':10}"), {0}, 400, "throughputBuckets"},
        {BUCKETS("{'id':6,'maxThroughputPercentage':10}"), {0}, 400, "throughputBuckets"},
        {BUCKETS("{'id':1,'maxThroughputPercentage':0}"), {0}, 400, "throughputBuckets"},
        {BUCKETS("{'id':1,'maxThroughputPercentage':101}"), {0}, 400, "throughputBuckets"},
        {BUCKETS("{'id':1}"), {0}, 400, "throughputBuckets"},
        {BUCKETS("7"), {0}, 400, "throughputBuckets"},
        {BUCKETS("{'id':1,'maxThroughputPercentage':1},{'id':1,'maxThroughputPercentage':1}"),
         {0},
         400,
         "of its own"},
        {BUCKETS("{'id':1,'maxThroughputPercentage':1,'isDefaultBucket':true},"
                 "{'id':2,'maxThroughputPercentage':1,'isDefaultBucket':true}"),
         {0},
         400,
         "one may have"},
        {"{'content':{'offerThroughput':20000,'throughputBuckets':7}}", {0}, 400, "list"},
        {"{'content':{'offerThroughput':20000}}", {0}, 200, "\"throughputBuckets\":[{"},
        {BUCKETS(""),
         {0},
         200,
         "\"maxConsumedStorageEverInKB\":0},\"isOfferReplacePending\":false,\"offerLastReplace"},
    };
    replace_each(&server, find_offer(&server), ROWS, ARRAY_COUNT(ROWS));
}

static void a_serverless_account_has_no_offers(void **state)
{
    (void)state;
    ProvisionRules rules = PROVISION_RULES_DEFAULT;
    rules.is_serverless = true;
    ApiOptions options = {.is_serverless = true};
    AUTO(fake_server_close) FakeServer server;
    fake_server_open_with(&server, &options, &rules);
    (void)expect_status(&server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
    (void)expect_status(&server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 201);
    make_item(&server, "{'id':'1','pk':'a'}");
    static const struct {
        Ask ask;
        const char *says;
    } rows[] = {
        {{"GET", "/offers"}, "Reading or replacing offers is not supported for serverless"},
        {{"GET", "/offers/Hu+t"}, "Reading or replacing offers is not supported for serverless"},
        {{"PUT", "/offers/Hu+t", "{}"}, "Reading or replacing offers is not supported"},
        {{"POST", "/offers", "{'query':'SELECT * FROM c'}", {{"x-ms-documentdb-isquery", "True"}}},
         "Reading or replacing offers is not supported for serverless"},
        {{"POST", "/dbs", "{'id':'x'}", {{"x-ms-offer-throughput", "400"}}},
         "Shared throughput database creation is not supported for serverless"},
        {{"POST",
          "/dbs/db/colls",
          "{'id':'x','partitionKey':{'paths':['/pk']}}",
          {{"x-ms-cosmos-offer-autopilot-settings", "{'maxThroughput':1000}"}}},
         "Setting offer throughput or autopilot on container is not supported for serverless"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(&server, &rows[i].ask, 400);
        expect_holds(answer.body, rows[i].says);
        assert_int_equal(sub_status_of(&answer), 0);
    }
    assert_int_equal(handle_share(container_handle_at(container_now(&server), 0)), 500000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_offer_is_found_read_and_replaced),
        cmocka_unit_test(buckets_of_an_offer_are_replaced),
        cmocka_unit_test(a_serverless_account_has_no_offers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
