/* top_model_test.c - answers of a server are read, and wrong ones are refused. */
#include "cli/top_testing_int.h"

static Status parse(Arena *arena, const char *layout, const char *history, const char *by_ru,
                    TopModel *model, Error *err)
{
    TopAnswers answers = {
        .layout = row_text(arena, layout),
        .history = row_text(arena, history),
        .by_ru = row_text(arena, by_ru),
        .by_throttled = row_text(arena, BY_THROTTLED),
        .events = row_text(arena, EVENTS),
    };
    return top_model_parse(arena, &answers, model, err);
}

static void answers_become_a_model(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    TopModel model;
    Error err;
    assert_int_equal(parse(&arena, LAYOUT, HISTORY, BY_RU, &model, &err), STATUS_OK);
    assert_true(slice_equal(model.database, SLICE("shop")));
    assert_true(slice_equal(model.container, SLICE("orders")));
    assert_true(slice_equal(model.mode, SLICE("manual")));
    assert_int_equal(model.time_s, 1700000000);
    assert_int_equal((int)model.ru, 800);
    assert_int_equal((int)model.logical, 1234);
    assert_false(model.is_logical_estimate);
    assert_int_equal(model.range_count, 2);
    assert_int_equal(model.column_count, 10);
    assert_true(slice_equal(model.ranges[1].min, SLICE("1FFFFFFFFFFFFFFF")));
    assert_int_equal((int)(model.ranges[0].ru_minute * 10), 120005);
    assert_int_equal((int)model.ranges[0].throttled_minute, 12);
    assert_int_equal((int)model.ranges[0].cells[9].throttled, 9);
    assert_int_equal((int)model.ranges[1].cells[5].ru, 600);
    assert_int_equal(model.by_ru.count, 2);
    assert_true(slice_equal(model.by_ru.keys[0].text, SLICE("[\"hot\"]")));
    assert_int_equal((int)(model.by_ru.keys[0].share * 1000), 905);
    assert_int_equal(model.by_throttled.count, 1);
    assert_int_equal(model.move_count, 3); /* the other is another container's */
    assert_true(slice_equal(model.moves[0].sources, SLICE("3, 4")));
    assert_true(slice_equal(model.moves[1].message, SLICE("one key")));
    assert_int_equal(model.moves[1].targets.len, 0);
    assert_int_equal((int)model.moves[2].ended_s, 1699999000);
}

static void a_cluster_becomes_nodes_and_owners(void **state)
{
    (void)state;
    static const struct {
        const char *cluster, *named;
    } rows[] = {
        {CLUSTER, NULL},
        {"[]", "cluster"},
        {"{}", "node"},
        {"{'node':'a'}", "leaseHolds"},
        {"{'node':'a','leaseHolds':true,'nodes':{}}", "nodes"},
        {"{'node':'a','leaseHolds':true,'nodes':[{}]}", "name"},
        {"{'node':'a','leaseHolds':true,'nodes':[" NODE("a", "live", "-1", "0", "0") "]}", "owned"},
        {"{'node':'a','leaseHolds':true,'nodes':[]}", "spaces"},
        {"{'node':'a','leaseHolds':true,'nodes':[],'spaces':[{'id':1}]}", "owner"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        TopAnswers answers = {
            .layout = row_text(&arena, LAYOUT_IN_CLUSTER),
            .history = row_text(&arena, HISTORY),
            .by_ru = row_text(&arena, BY_RU),
            .by_throttled = row_text(&arena, BY_THROTTLED),
            .events = row_text(&arena, EVENTS),
            .cluster = row_text(&arena, rows[i].cluster),
        };
        TopModel model;
        Error err;
        Status status = top_model_parse(&arena, &answers, &model, &err);
        assert_int_equal(status, rows[i].named == NULL ? STATUS_OK : STATUS_UNAVAILABLE);
        if (rows[i].named != NULL) {
            assert_non_null(strstr(err.message, rows[i].named));
            continue;
        }
        assert_true(slice_equal(model.node, SLICE("b")));
        assert_int_equal(model.node_count, 3);
        assert_int_equal((int)model.nodes[1].lag, 12);
        assert_true(slice_equal(model.ranges[0].owner, SLICE("c")));
        assert_true(slice_equal(model.ranges[1].owner, SLICE("a")));
        assert_true(model.ranges[0].is_missing);
        assert_false(model.ranges[1].is_missing);
        assert_int_equal(model.missing_count, 1);
    }
}

static void events_that_are_not_understood_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *events, *named;
    } rows[] = {
        {"", "events"},
        {"{}", "moves"},
        {"{'moves':[5]}", "database"},
        {"{'moves':[{'database':'shop','container':'orders'}]}", "what"},
        {"{'moves':[" EVENT("orders", "split", "done", "1", "", "1", "1", "") "]}", "sources"},
        {"{'moves':[" EVENT("orders", "split", "done", "", "", "-1", "1", "") "]}", "ended"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        TopAnswers answers = {
            .layout = row_text(&arena, LAYOUT),
            .history = row_text(&arena, HISTORY),
            .by_ru = row_text(&arena, BY_RU),
            .by_throttled = row_text(&arena, BY_THROTTLED),
            .events = row_text(&arena, rows[i].events),
        };
        TopModel model;
        Error err;
        Status status = top_model_parse(&arena, &answers, &model, &err);
        if (status != STATUS_UNAVAILABLE || strstr(err.message, rows[i].named) == NULL)
            fail_msg("row %zu: status %d, %s", i, (int)status, err.message);
    }
}

/* Between two questions a partition may have been divided. */
static void a_range_that_has_no_history_has_none(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    TopModel model;
    Error err;
    static const char *const history =
        "{'from':10,'to':12,'ranges':[{'id':'7','ru':[1,2],'throttled':[0,0]},"
        "{'id':'1','ru':[3,4],'throttled':[0,1]}]}";
    assert_int_equal(parse(&arena, LAYOUT, history, BY_RU, &model, &err), STATUS_OK);
    assert_int_equal((int)model.ranges[0].cells[1].ru, 0);
    assert_int_equal((int)model.ranges[1].cells[1].ru, 4);
}

static void keys_that_nobody_has_counted_are_not_known(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    TopModel model;
    Error err;
    static const char *const layout =
        "{'database':'d','container':'c','time':1,'throughput':{'mode':'serverless','ru':0,"
        "'isShared':true},'totals':{'logicalPartitions':null},'ranges':[" LAYOUT_RANGE(
            "0", "", "0", "0", "0", "0", "0") "]}";
    assert_int_equal(parse(&arena, layout, HISTORY, BY_RU, &model, &err), STATUS_OK);
    assert_true(model.logical < 0);
    assert_true(model.is_shared);
}

static void what_is_not_understood_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *layout, *history, *by_ru, *named;
    } rows[] = {
        {"", HISTORY, BY_RU, "layout"},
        {"[]", HISTORY, BY_RU, "layout"},
        {"{}", HISTORY, BY_RU, "database"},
        {"{'database':'d','container':'c','time':-1}", HISTORY, BY_RU, "time"},
        {"{'database':'d','container':'c','time':1e300}", HISTORY, BY_RU, "time"},
        {"{'database':'d','container':'c','time':'x'}", HISTORY, BY_RU, "time"},
        {"{'database':'d','container':'c','time':1,'throughput':{'mode':'m','ru':1,"
         "'isShared':false},'ranges':[]}",
         HISTORY, BY_RU, "ranges"},
        {"{'database':'d','container':'c','time':1,'throughput':{'mode':'m','ru':1,"
         "'isShared':false},'ranges':[{'id':5}]}",
         HISTORY, BY_RU, "id"},
        {LAYOUT, "{'from':5,'to':4,'ranges':[]}", BY_RU, "from"},
        {LAYOUT, "{'from':0,'to':4000,'ranges':[]}", BY_RU, "from"},
        {LAYOUT, "{'from':1,'to':3,'ranges':[{'id':'0','ru':[1],'throttled':[0,0]}]}", BY_RU, "ru"},
        {LAYOUT, "{'from':1,'to':3,'ranges':[{'id':'0','ru':[1,-2],'throttled':[0,0]}]}", BY_RU,
         "history"},
        {LAYOUT, "{'from':1,'to':3,'ranges':[{'id':'0','ru':[1,'x'],'throttled':[0,0]}]}", BY_RU,
         "history"},
        {LAYOUT, HISTORY, "{'rows':{}}", "rows"},
        {LAYOUT, HISTORY, "{'rows':[{'key':null}]}", "key"},
        {LAYOUT, HISTORY, "{'rows':[{'key':'a','range':'0','amount':-5}]}", "amount"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        TopModel model;
        Error err;
        Status status = parse(&arena, rows[i].layout, rows[i].history, rows[i].by_ru, &model, &err);
        if (status != STATUS_UNAVAILABLE || strstr(err.message, rows[i].named) == NULL)
            fail_msg("row %zu: status %d, %s", i, (int)status, err.message);
    }
}

static void lists_of_containers_are_read(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    TopContainer *list = NULL;
    size_t count = 0;
    Error err;
    Slice answer = row_text(&arena, "{'containers':[{'database':'a','container':'b','ru':"
                                    "{'lastMinute':5}},{'database':'c','container':'d','ru':"
                                    "{'lastMinute':0}}]}");
    assert_int_equal(top_containers_parse(&arena, answer, &list, &count, &err), STATUS_OK);
    assert_int_equal(count, 2);
    assert_true(slice_equal(list[1].container, SLICE("d")));
    static const char *const bad[] = {"", "{}", "{'containers':[5]}",
                                      "{'containers':[{'database':'a','container':'b'}]}"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        assert_int_equal(
            top_containers_parse(&arena, row_text(&arena, bad[i]), &list, &count, &err),
            STATUS_UNAVAILABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_become_a_model),
        cmocka_unit_test(a_range_that_has_no_history_has_none),
        cmocka_unit_test(keys_that_nobody_has_counted_are_not_known),
        cmocka_unit_test(what_is_not_understood_is_named),
        cmocka_unit_test(a_cluster_becomes_nodes_and_owners),
        cmocka_unit_test(events_that_are_not_understood_are_named),
        cmocka_unit_test(lists_of_containers_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
