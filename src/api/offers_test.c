/* offers_test.c - throughput is found, read and replaced. */
#include "api/testing_int.h"

static void an_offer_is_found_read_and_replaced(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    FakeAnswer container = expect_status(&server, &(Ask){"GET", "/dbs/db/colls/c"}, 200);
    Slice rid = text_of(body_of(&server, &container), "_rid");
    Slice query = arena_format(&server.arena,
                               "{'query':'SELECT * FROM root r WHERE r.offerResourceId = @r',"
                               "'parameters':[{'name':'@r','value':'%.*s'}]}",
                               SLICE_ARG(rid));
    FakeAnswer found = expect_status(
        &server, &(Ask){"POST", "/offers", query.ptr, {{"x-ms-documentdb-isquery", "True"}}}, 200);
    Json offer = json_at(json_get(body_of(&server, &found), SLICE("Offers")), 0);
    Slice id = text_of(offer, "id");
    const char *path = arena_format(&server.arena, "/offers/%.*s/", SLICE_ARG(id)).ptr;
    FakeAnswer read = expect_status(&server, &(Ask){"GET", path}, 200);
    expect_header(&read, "x-ms-cosmos-min-throughput", "400");
    expect_header(&read, "x-ms-offer-replace-pending", "false");

    const struct {
        const char *body;
        Header header;
        int status;
        const char *says;
    } rows[] = {
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
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Ask a = {"PUT", path, rows[i].body, {rows[i].header}};
        FakeAnswer answer = expect_status(&server, &a, rows[i].status);
        expect_holds(answer.body, rows[i].says);
        if (rows[i].status != 200)
            continue;
        expect_header(&answer, "x-ms-offer-replace-pending", "false");
        FakeAnswer again = expect_status(&server, &(Ask){"GET", path}, 200);
        expect_slice(again.body, answer.body);
        expect_slice(fake_header(&again, "x-ms-cosmos-min-throughput"),
                     fake_header(&answer, "x-ms-cosmos-min-throughput"));
    }
    (void)expect_status(&server, &(Ask){"DELETE", "/dbs/db/colls/c"}, 204);
    (void)expect_status(&server, &(Ask){"GET", path}, 404);
    (void)expect_status(&server, &(Ask){"PUT", path, rows[0].body}, 404);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_offer_is_found_read_and_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
