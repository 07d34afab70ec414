/* orrery_cluster_test.c - what operators ask of a node, and what it refuses them. */
#include "api/tests/forward_testing_int.h"

static void orders_reach_the_cluster(void **state UNUSED)
{
    static const struct {
        Ask ask;
        int status;
        const char *order;
    } rows[] = {
        {{"POST", "/_orrery/cluster/drain?node=b"}, 204, "drain b"},
        {{"DELETE", "/_orrery/cluster/drain?node=b%2Ec"}, 204, "undrain b.c"},
        {{"DELETE", "/_orrery/cluster/nodes?node=b"}, 409, "remove b"},
        {{"POST", "/_orrery/cluster/move?space=65536&node=b"}, 200, "move 65536 b"},
        {{"POST", "/_orrery/cluster/recover?space=65536"}, 204, "recover 65536 here"},
        {{"POST", "/_orrery/cluster/recover"}, 400, ""},
        {{"POST", "/_orrery/cluster/upgrade"}, 200, "upgrade all"},
        {{"POST", "/_orrery/cluster/upgrade", .key = FAKE_READ_KEY}, 401, ""},
        {{"POST", "/_orrery/cluster/move?space=x&node=b"}, 400, ""},
        {{"POST", "/_orrery/cluster/move?space=db%2Fc%2F0&node=b"}, 200, "move {0} b"},
        {{"POST", "/_orrery/cluster/move?space=db%2Fc%2F9&node=b"}, 404, ""},
        {{"POST", "/_orrery/cluster/move?space=db%2Fx%2F0&node=b"}, 404, ""},
        {{"POST", "/_orrery/cluster/move?space=x%2Fc%2F0&node=b"}, 404, ""},
        {{"POST", "/_orrery/cluster/move?space=db%2Fc%2F&node=b"}, 400, ""},
        {{"POST", "/_orrery/cluster/move?space=db%2Fc%2F0%2F0&node=b"}, 400, ""},
        {{"POST", "/_orrery/cluster/recover?space=db%2Fc%2F0"}, 400, ""},
        {{"POST", "/_orrery/cluster/move?space=1"}, 400, ""},
        {{"POST", "/_orrery/cluster/drain?node=b&node=c"}, 400, ""},
        {{"POST", "/_orrery/cluster/drain?other=b"}, 400, ""},
        {{"PUT", "/_orrery/cluster/drain?node=b"}, 405, ""},
        {{"POST", "/_orrery/cluster/nothing?node=b"}, 405, ""},
        {{"POST", "/_orrery/cluster/drain?node=b", .key = FAKE_READ_KEY}, 401, ""},
    };
    FakeServer server;
    FakeCluster cluster;
    open_cluster(&server, &cluster);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", "/_orrery/cluster"}, 200);
    assert_slice(answer.body, SLICE("{\"nodes\":[]}"));
    char of_range[64];
    (void)snprintf(of_range, sizeof(of_range), "move %llu b",
                   (unsigned long long)container_now(&server)->ranges[0].space);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        cluster.order[0] = '\0';
        (void)expect_status(&server, &rows[i].ask, rows[i].status);
        assert_string_equal(cluster.order,
                            strcmp(rows[i].order, "move {0} b") == 0 ? of_range : rows[i].order);
    }
    fake_server_close(&server);
}

static void a_node_refuses_what_knows_only_one_folder(void **state UNUSED)
{
    static const struct {
        Ask ask;
        const char *instead;
    } rows[] = {
        {{"POST", "/_orrery/backup"}, "Stop one node, copy its data folder"},
        {{"POST", "/_orrery/swap?database=db&container=c"}, "orrery copy without --swap"},
        {{"PUT", "/_orrery/dbs/db/snapshots/s"}, "orrery export"},
        {{"GET", "/_orrery/snapshots"}, "Back up a cluster"},
    };
    FakeServer server;
    FakeCluster cluster;
    open_cluster(&server, &cluster);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(&server, &rows[i].ask, 501);
        expect_holds(answer.body, "A node of a cluster ");
        expect_holds(answer.body, rows[i].instead);
    }
    fake_server_close(&server);
}

static void a_node_tells_of_its_engine_and_of_changes_of_owners(void **state UNUSED)
{
    FakeServer server;
    FakeCluster cluster;
    open_cluster(&server, &cluster);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", "/healthz", .key = ""}, 200);
    assert_false(holds(answer.body, "warnings"));
    cluster.copies = "2 of 3";
    answer = expect_status(&server, &(Ask){"GET", "/healthz", .key = ""}, 200);
    expect_holds(answer.body, "\"warnings\":[\"2 of 3\"],");
    cluster.warning = "the \"standby\" is away";
    answer = expect_status(&server, &(Ask){"GET", "/healthz", .key = ""}, 200);
    expect_holds(answer.body, "\"status\":\"ok\"");
    expect_holds(answer.body, "\"warnings\":[\"the \\\"standby\\\" is away\",\"2 of 3\"],");
    answer = expect_status(&server, &(Ask){"GET", "/_orrery/events"}, 200);
    expect_holds(answer.body, "\"cluster\":[{\"kind\":\"takeOver\"}]}");
    fake_server_close(&server);
}

static void a_server_alone_has_no_nodes(void **state UNUSED)
{
    FakeServer server;
    fake_server_open(&server, NULL);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", "/_orrery/cluster"}, 404);
    expect_holds(answer.body, "--cluster");
    answer = expect_status(&server, &(Ask){"GET", "/_orrery/events"}, 200);
    assert_false(holds(answer.body, "\"cluster\""));
    fake_server_close(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_reach_the_cluster),
        cmocka_unit_test(a_node_refuses_what_knows_only_one_folder),
        cmocka_unit_test(a_node_tells_of_its_engine_and_of_changes_of_owners),
        cmocka_unit_test(a_server_alone_has_no_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
