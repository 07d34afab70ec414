/* policy_advice_test.c - unused paths and composite indexes, with their prices. */
#include "advise/policy_advice.h"

#include "advise/advise_testing_int.h"

#include <math.h>

typedef struct Case {
    Arena arena;
    Sample sample;
    PolicyAdvice advice;
} Case;

/* Items of the container, of which the sample is a part, and of one shop. */
enum { ITEMS = 100000, SHOPS = 200, MATCHES = ITEMS / SHOPS };

/* With what a server has measured of the queries, if it is known. */
static void run_measured(Case *c, const char *queries, const char *policy_text,
                         WorkMeasure measured)
{
    arena_init(&c->arena, 4096);
    begin_sample(&c->sample);
    for (int i = 0; i < 1000; i++)
        add_item(&c->sample,
                 "{\"id\":\"%d\",\"user\":\"u%d\",\"at\":%d,\"log\":{\"a\":1,\"b\":{\"c\":2}},"
                 "\"tags\":[\"x\",\"y\"],\"name\":{\"first\":\"f\",\"last\":\"l\"},\"shop\":\"s%"
                 "d\",\"_ts\":%d}",
                 i, i % 2, i, i % SHOPS, FIRST_TS + i);
    end_sample(&c->sample);
    c->sample.population = ITEMS;
    PathTable paths;
    path_stats_collect(&c->sample, &c->arena, &paths);
    Workload work = workload_of(&c->arena, queries);
    for (size_t i = 0; i < work.count; i++)
        work.list[i].measured = measured;
    KeyCandidate key = key_of(&c->arena, "/user");
    IndexPolicy *policy = NULL;
    Error err;
    Json json = policy_text == NULL ? JSON_NONE : row_json(&c->arena, policy_text);
    assert_int_equal(index_policy_new(&c->arena, json, key.paths, 1, &policy, &err), STATUS_OK);
    policy_advice_make(&paths, &c->sample, &work, policy, &key, charge_model_default(), &c->arena,
                       &c->advice);
}

static void run_case(Case *c, const char *queries, const char *policy_text)
{
    run_measured(c, queries, policy_text, (WorkMeasure){0});
}

static void end_case(Case *c)
{
    sample_done(&c->sample);
    arena_done(&c->arena);
}

/* "path path", in the order in which they were found. */
static void expect_unused(Case *c, const char *expected)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 4096);
    for (size_t i = 0; i < c->advice.unused_count; i++)
        buf_format(&text, "%s%.*s", i == 0 ? "" : " ", SLICE_ARG(c->advice.unused[i].path));
    if (!slice_equal(buf_view(&text), slice_from_cstr(expected)))
        fail_msg("expected '%s', found '%.*s'", expected, SLICE_ARG(buf_view(&text)));
}

static void paths_that_no_query_uses_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *queries;
        const char *unused;
    } rows[] = {
        {"SELECT * FROM c WHERE c.user = @u", "/at/? /log/* /tags/* /name/* /shop/?"},
        {"SELECT * FROM c WHERE c.at > @t ORDER BY c.name.last",
         "/log/* /tags/* /name/first/? /shop/?"},
        {"SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, @t)", "/at/? /log/* /name/* /shop/?"},
        {"SELECT VALUE c FROM c JOIN t IN c.tags WHERE t = @t AND c.log.b.c = 1",
         "/at/? /log/a/? /name/* /shop/?"},
        {"SELECT * FROM c WHERE c = @any", ""}, /* may use every path */
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Case c = {0};
        run_case(&c, rows[i].queries, NULL);
        expect_unused(&c, rows[i].unused);
        end_case(&c);
    }
}

static void their_price_is_that_of_the_charge_model(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, "SELECT * FROM c WHERE c.user = @u", NULL);
    assert_true(fabs(c.advice.unused[0].ru - 0.2) < 1e-9); /* index-term, one value */
    assert_true(fabs(c.advice.unused[1].terms - 2) < 1e-9);
    assert_true(fabs(c.advice.unused[2].ru - 0.4) < 1e-9); /* two elements */
    assert_true(fabs(c.advice.unused_ru - 8 * 0.2) < 1e-9);
    size_t bytes = (size_t)sample_item_bytes(&c.sample);
    double create = (double)charge_create(charge_model_default(), bytes, 8) / 100;
    assert_true(fabs(c.advice.create_ru - create) < 1e-9);
    end_case(&c);
}

static void what_the_policy_excludes_costs_nothing(void **state)
{
    (void)state;
    Case c = {0};
    run_case(
        &c, "SELECT * FROM c WHERE c.user = @u",
        "{'includedPaths':[{'path':'/*'}],'excludedPaths':[{'path':'/log/*'},{'path':'/tags/*'}]}");
    expect_unused(&c, "/at/? /name/* /shop/?");
    end_case(&c);
}

/* "a ASC,b DESC!" with a mark if it is required; separated by spaces. */
static void expect_composites(Case *c, const char *expected)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 4096);
    for (size_t i = 0; i < c->advice.composite_count; i++) {
        const CompositeAdvice *advice = &c->advice.composites[i];
        buf_slice(&text, i == 0 ? SLICE("") : SLICE("; "));
        for (size_t j = 0; j < advice->part_count; j++)
            buf_format(&text, "%s%.*s", j == 0 ? "" : ", ", SLICE_ARG(advice->parts[j]));
        if (advice->is_required)
            buf_byte(&text, '!');
        else
            assert_true(advice->spared_items > 0);
        assert_true(fabs(advice->write_ru - 0.2) < 1e-9);
    }
    if (!slice_equal(buf_view(&text), slice_from_cstr(expected)))
        fail_msg("expected '%s', found '%.*s'", expected, SLICE_ARG(buf_view(&text)));
}

static void composite_indexes_are_advised_for_orders(void **state)
{
    (void)state;
    static const struct {
        const char *queries;
        const char *policy;
        const char *composites;
    } rows[] = {
        {"SELECT * FROM c ORDER BY c.at", NULL, ""},
        {"SELECT * FROM c ORDER BY c.user, c.at DESC", NULL, "/user ASC, /at DESC!"},
        {"SELECT * FROM c ORDER BY c.user, c.at\nSELECT * FROM c ORDER BY c.user, c.at", NULL,
         "/user ASC, /at ASC!"},
        {"SELECT * FROM c WHERE c.shop = @s ORDER BY c.at DESC", NULL, "/shop ASC, /at DESC"},
        {"SELECT * FROM c WHERE c.shop = @s AND c.at > @t ORDER BY c.at", NULL,
         "/shop ASC, /at ASC"},
        /* Every second item matches: walking along /at finds a page soon. */
        {"SELECT * FROM c WHERE c.user = @u ORDER BY c.at DESC", NULL, ""},
        {"SELECT * FROM c WHERE c.at = @u ORDER BY c.user", NULL, ""}, /* finds few items */
        {"SELECT * FROM c WHERE c.shop = @s ORDER BY c.name.last, c.at", NULL,
         "/name/last ASC, /at ASC!; /shop ASC, /name/last ASC, /at ASC"},
        /* Another condition, which no such index has. */
        {"SELECT * FROM c WHERE c.shop = @s AND CONTAINS(c.name.first, @t) ORDER BY c.at", NULL,
         ""},
        {"SELECT * FROM c WHERE c.tags[0] = @u ORDER BY c.at", NULL, ""},
        {"SELECT * FROM c WHERE c.shop = @u ORDER BY c.shop", NULL, ""},
        {"SELECT * FROM c ORDER BY c.user DESC, c.at DESC",
         "{'compositeIndexes':[[{'path':'/user','order':'ascending'},"
         "{'path':'/at','order':'ascending'}]]}",
         ""},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Case c = {0};
        run_case(&c, rows[i].queries, rows[i].policy);
        expect_composites(&c, rows[i].composites);
        end_case(&c);
    }
}

/* Where few match, they are loaded and sorted; where many do, the order's index is walked along. */
static void what_an_index_saves_is_what_the_planner_does_without_it(void **state)
{
    (void)state;
    static const char query[] = "SELECT TOP 10 * FROM c WHERE c.shop = @s ORDER BY c.at DESC";
    Case c = {0};
    run_case(&c, query, NULL);
    assert_int_equal(c.advice.composite_count, 1);
    assert_true(fabs(c.advice.composites[0].spared_items - (MATCHES - 10)) < 1e-6);
    assert_true(fabs(c.advice.composites[0].saved_ru) < 1e-9); /* sorting is not charged */
    end_case(&c);
}

static void what_was_measured_counts_more_than_an_estimate(void **state)
{
    (void)state;
    static const char query[] = "SELECT TOP 10 * FROM c WHERE c.shop = @s ORDER BY c.at DESC";
    Case c = {0};
    /* As it is cheap already, nothing is said to be saved. */
    WorkMeasure good = {.is_known = true, .ru = 5.1, .items = 10, .index_keys = 12, .results = 10};
    run_measured(&c, query, NULL, good);
    assert_true(fabs(c.advice.composites[0].saved_ru) < 1e-9);
    end_case(&c);
    WorkMeasure bad = {.is_known = true, .ru = 40, .items = 1010, .index_keys = 60, .results = 10};
    run_measured(&c, query, NULL, bad);
    assert_int_equal(c.advice.composite_count, 1);
    uint64_t bytes = (uint64_t)sample_item_bytes(&c.sample);
    QueryWork before = {.items = 1010, .item_bytes = 1010 * bytes, .index_keys = 60};
    QueryWork after = {.items = 10, .item_bytes = 10 * bytes, .index_keys = 10};
    const ChargeModel *model = charge_model_default();
    double saved = (double)(charge_query(model, &before) - charge_query(model, &after)) / 100;
    assert_true(fabs(c.advice.composites[0].saved_ru - saved) < 0.02);
    end_case(&c);
}

static void savings_are_of_all_queries_that_an_index_serves(void **state)
{
    (void)state;
    Case c = {0};
    run_measured(
        &c,
        "[{\"query\":\"SELECT TOP 10 * FROM c WHERE c.shop = @u ORDER BY c.at\",\"perSecond\":3},"
        "{\"query\":\"SELECT TOP 10 c.id FROM c WHERE c.shop = @v ORDER BY c.at\",\"perSecond\":"
        "2}]",
        NULL, (WorkMeasure){.is_known = true, .items = 500, .results = 10});
    assert_int_equal(c.advice.composite_count, 1);
    assert_true(c.advice.composites[0].saved_ru > 10);
    assert_true(fabs(c.advice.composites[0].saved_ru_s - 5 * c.advice.composites[0].saved_ru) <
                1e-6);
    end_case(&c);
}

static void composite_indexes_that_serve_no_query_are_named(void **state)
{
    (void)state;
    static const char policy[] = "{'compositeIndexes':[[{'path':'/user','order':'ascending'},"
                                 "{'path':'/at','order':'descending'}],"
                                 "[{'path':'/name/first'},{'path':'/at'}]]}";
    static const struct {
        const char *queries;
        size_t unused;
    } rows[] = {
        {"SELECT * FROM c WHERE c.user = @u ORDER BY c.at DESC", 1},
        {"SELECT * FROM c WHERE c.user = @u AND c.at > 5", 1},
        {"SELECT * FROM c WHERE c.user = @u\nSELECT * FROM c WHERE c.at > 5", 2},
        {"SELECT * FROM c WHERE c.user = @u AND c.at > 5 AND c.name.first = 'x'", 0},
        {"SELECT * FROM c WHERE c = @any", 0}, /* may use every path */
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Case c = {0};
        run_case(&c, rows[i].queries, policy);
        assert_int_equal(c.advice.unused_composite_count, rows[i].unused);
        if (rows[i].unused == 1) {
            assert_slice(c.advice.unused_composites[0].index->parts[0].text, SLICE("/name/first"));
            assert_true(fabs(c.advice.unused_composites[0].ru - 0.2) < 1e-9);
        }
        end_case(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_that_no_query_uses_are_named),
        cmocka_unit_test(their_price_is_that_of_the_charge_model),
        cmocka_unit_test(what_the_policy_excludes_costs_nothing),
        cmocka_unit_test(composite_indexes_are_advised_for_orders),
        cmocka_unit_test(what_an_index_saves_is_what_the_planner_does_without_it),
        cmocka_unit_test(what_was_measured_counts_more_than_an_estimate),
        cmocka_unit_test(savings_are_of_all_queries_that_an_index_serves),
        cmocka_unit_test(composite_indexes_that_serve_no_query_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
