/* policy_advice_test.c - unused paths and composite indexes, with their prices. */
#include "advise/policy_advice.h"

#include "advise/advise_testing_int.h"

#include <math.h>

typedef struct Case {
    Arena arena;
    Sample sample;
    PolicyAdvice advice;
} Case;

static void run_case(Case *c, const char *queries, const char *policy_text)
{
    arena_init(&c->arena, 4096);
    begin_sample(&c->sample);
    for (int i = 0; i < 1000; i++)
        add_item(&c->sample,
                 "{\"id\":\"%d\",\"user\":\"u%d\",\"at\":%d,\"log\":{\"a\":1,\"b\":{\"c\":2}},"
                 "\"tags\":[\"x\",\"y\"],\"name\":{\"first\":\"f\",\"last\":\"l\"},\"_ts\":%d}",
                 i, i % 2, i, FIRST_TS + i);
    end_sample(&c->sample);
    PathTable paths;
    path_stats_collect(&c->sample, &c->arena, &paths);
    Workload work = workload_of(&c->arena, queries);
    KeyCandidate key = key_of(&c->arena, "/user");
    IndexPolicy *policy = NULL;
    Error err;
    Json json = policy_text == NULL ? JSON_NONE : row_json(&c->arena, policy_text);
    assert_int_equal(index_policy_new(&c->arena, json, key.paths, 1, &policy, &err), STATUS_OK);
    policy_advice_make(&paths, &c->sample, &work, policy, &key, charge_model_default(), &c->arena,
                       &c->advice);
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
        {"SELECT * FROM c WHERE c.user = @u", "/at/? /log/* /tags/* /name/*"},
        {"SELECT * FROM c WHERE c.at > @t ORDER BY c.name.last", "/log/* /tags/* /name/first/?"},
        {"SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, @t)", "/at/? /log/* /name/*"},
        {"SELECT VALUE c FROM c JOIN t IN c.tags WHERE t = @t AND c.log.b.c = 1",
         "/at/? /log/a/? /name/*"},
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
    assert_true(fabs(c.advice.unused_ru - 7 * 0.2) < 1e-9);
    size_t bytes = (size_t)sample_item_bytes(&c.sample);
    double create = (double)charge_create(charge_model_default(), bytes, 7) / 100;
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
    expect_unused(&c, "/at/? /name/*");
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
            assert_true(advice->saved_ru > 0);
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
        {"SELECT * FROM c WHERE c.user = @u ORDER BY c.at DESC", NULL, "/user ASC, /at DESC"},
        {"SELECT * FROM c WHERE c.at = @u ORDER BY c.user", NULL, ""}, /* finds one item */
        {"SELECT * FROM c WHERE c.user = @u ORDER BY c.name.last, c.at", NULL,
         "/name/last ASC, /at ASC!; /user ASC, /name/last ASC, /at ASC"},
        {"SELECT * FROM c WHERE c.tags[0] = @u ORDER BY c.at", NULL, ""},
        {"SELECT * FROM c WHERE c.user = @u ORDER BY c.user", NULL, ""},
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

static void what_an_index_saves_is_the_loading_of_items(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, "SELECT TOP 10 * FROM c WHERE c.user = @u ORDER BY c.at DESC", NULL);
    assert_int_equal(c.advice.composite_count, 1);
    const ChargeModel *model = charge_model_default();
    uint64_t bytes = (uint64_t)sample_item_bytes(&c.sample);
    QueryWork all = {.items = 500, .item_bytes = 500 * bytes};
    QueryWork page = {.items = 10, .item_bytes = 10 * bytes};
    double saved = (double)(charge_query(model, &all) - charge_query(model, &page)) / 100;
    assert_true(fabs(c.advice.composites[0].saved_ru - saved) < 0.05);
    end_case(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_that_no_query_uses_are_named),
        cmocka_unit_test(their_price_is_that_of_the_charge_model),
        cmocka_unit_test(what_the_policy_excludes_costs_nothing),
        cmocka_unit_test(composite_indexes_are_advised_for_orders),
        cmocka_unit_test(what_an_index_saves_is_the_loading_of_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
