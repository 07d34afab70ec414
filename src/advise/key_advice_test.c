/* key_advice_test.c - data of which the right key is known: it comes first, and each trap is named.
 */
#include "advise/key_advice.h"

#include "advise/advise_testing_int.h"

typedef struct Case {
    Arena arena;
    Sample sample;
    Workload work;
    Advice advice;
} Case;

static void run_case(Case *c, void (*generate)(Sample *), const char *queries,
                     void (*change)(Case *, KeyAdviceOptions *))
{
    arena_init(&c->arena, 4096);
    generate(&c->sample);
    KeyAdviceOptions options = key_advice_options(&c->arena);
    if (change != NULL)
        change(c, &options);
    if (queries != NULL)
        c->work = workload_of(&c->arena, queries);
    key_advice_make(&c->sample, queries == NULL ? NULL : &c->work, &options, &c->arena, &c->advice);
}

static void end_case(Case *c)
{
    sample_done(&c->sample);
    arena_done(&c->arena);
}

static void assert_best(const Case *c, const char *name)
{
    if (c->advice.best == NULL)
        fail_msg("nothing was advised; expected %s", name);
    else if (!slice_equal(c->advice.best->key.name, slice_from_cstr(name)))
        fail_msg("expected %s, found %.*s", name, SLICE_ARG(c->advice.best->key.name));
}

static void assert_finding(const Case *c, const char *name, FindingCode code, FindingLevel level)
{
    const AdvisedKey *key = find_advised(&c->advice, name);
    if (key == NULL)
        fail_msg("%s was not tried", name);
    for (size_t i = 0; key != NULL && i < key->verdict.count; i++) {
        if (key->verdict.findings[i].code != code)
            continue;
        assert_int_equal(key->verdict.findings[i].level, level);
        return;
    }
    fail_msg("%s has no finding %s", name, finding_code(code));
}

static bool count_down(void *ctx)
{
    size_t *left = ctx;
    return (*left)-- == 0;
}

static void an_advice_that_is_stopped_has_the_named_keys_and_what_was_tried(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 3, 1000};
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Sample sample;
        generate_users(&sample);
        KeyAdviceOptions options = key_advice_options(&arena);
        KeyCandidate current = {0};
        Error err;
        assert_int_equal(key_candidate_parse(&arena, SLICE("/country"), &current, &err), STATUS_OK);
        size_t left = counts[i];
        options.current = &current;
        options.stop = (AdviceStop){.is_due = count_down, .ctx = &left};
        Advice advice;
        key_advice_make(&sample, NULL, &options, &arena, &advice);
        assert_int_equal(advice.is_cut_short, i + 1 < ARRAY_COUNT(counts));
        if (advice.is_cut_short)
            assert_int_equal(advice.key_count, 1 + counts[i]);
        assert_non_null(find_advised(&advice, "/country"));
        assert_true(find_advised(&advice, "/country")->key.is_current);
        assert_true(advice.conclusion.len > 0);
        sample_done(&sample);
    }
}

static void users_who_are_alike_are_the_key(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, generate_users, NULL, NULL);
    assert_best(&c, "/userId");
    assert_int_equal(c.advice.best->verdict.count, 0);
    assert_finding(&c, "/country", FINDING_FEW_VALUES, FINDING_REFUSAL);
    assert_finding(&c, "/country", FINDING_UNEVEN_STORAGE, FINDING_REFUSAL);
    assert_finding(&c, "/status", FINDING_MAY_CHANGE, FINDING_WARNING);
    assert_finding(&c, "/id", FINDING_ONE_ITEM_PER_KEY, FINDING_NOTE);
    assert_null(find_advised(&c.advice, "/price")); /* not whole */
    assert_null(find_advised(&c.advice, "/_ts"));
    end_case(&c);
}

static void a_celebrity_makes_users_a_bad_key(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, generate_celebrity, NULL, NULL);
    assert_finding(&c, "/userId", FINDING_HOT_KEY, FINDING_REFUSAL);
    assert_best(&c, "/userId, /id");
    assert_finding(&c, "/userId, /id", FINDING_UNEVEN_AT_FIRST, FINDING_WARNING);
    assert_non_null(find_advised(&c.advice, "/userId-(0..19)"));
    assert_true(find_advised(&c.advice, "/userId-(0..19)")->verdict.worst != FINDING_REFUSAL);
    end_case(&c);
}

static void a_key_that_follows_the_time_is_a_moving_hot_spot(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, generate_series, NULL, NULL);
    assert_best(&c, "/deviceId");
    assert_finding(&c, "/day", FINDING_MOVING_HOT_SPOT, FINDING_REFUSAL);
    assert_finding(&c, "/at", FINDING_TIME_VALUE, FINDING_WARNING);
    const AdvisedKey *day = find_advised(&c.advice, "/day");
    assert_true(day->layout.largest_share * 10 < 1); /* over all, no day is large */
    assert_false(verdict_has(&c.advice.best->verdict, FINDING_MOVING_HOT_SPOT));
    end_case(&c);
}

static const char TENANT_QUERIES[] = "SELECT * FROM c WHERE c.tenantId = @t AND c.userId = @u\n"
                                     "SELECT * FROM c WHERE c.tenantId = @t ORDER BY c._ts DESC\n";

static void few_tenants_are_the_first_part_of_a_key(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, generate_tenants, TENANT_QUERIES, NULL);
    assert_best(&c, "/tenantId, /userId");
    /* A query for a tenant visits the partitions of that tenant, not all of them. */
    assert_true(c.advice.best->queries.visits[0] <= 1);
    assert_true(c.advice.best->queries.visits[1] < 5);
    assert_true(find_advised(&c.advice, "/userId")->queries.visits[1] > 9);
    assert_finding(&c, "/tenantId", FINDING_HOT_KEY, FINDING_REFUSAL);
    assert_finding(&c, "/tenantId", FINDING_FEW_VALUES, FINDING_REFUSAL);
    assert_finding(&c, "/id", FINDING_QUERIES_FAN_OUT, FINDING_WARNING);
    end_case(&c);
}

static void grow_slowly(Case *c, KeyAdviceOptions *options)
{
    (void)c;
    options->growth = 100;
}

static void in_a_small_container_queries_decide(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, generate_tenants, "SELECT * FROM c WHERE c.tenantId = @t", grow_slowly);
    assert_true(c.advice.is_small);
    assert_best(&c, "/tenantId");
    assert_finding(&c, "/tenantId", FINDING_SMALL_CONTAINER, FINDING_NOTE);
    assert_finding(&c, "/tenantId", FINDING_HOT_KEY, FINDING_NOTE);
    end_case(&c);
}

static void grow_fast(Case *c, KeyAdviceOptions *options)
{
    (void)c;
    options->growth = 50e6;
}

static void a_key_that_is_soon_full_is_refused_with_the_day(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, generate_tenants, NULL, grow_fast);
    assert_finding(&c, "/tenantId", FINDING_FULL_SOON, FINDING_REFUSAL);
    const Verdict *verdict = &find_advised(&c.advice, "/tenantId")->verdict;
    bool has_day = false;
    for (size_t i = 0; i < verdict->count; i++)
        has_day = has_day || memmem(verdict->findings[i].text.ptr, verdict->findings[i].text.len,
                                    " on 2026-", 9) != NULL;
    assert_true(has_day);
    assert_false(verdict_has(&find_advised(&c.advice, "/id")->verdict, FINDING_FULL_SOON));
    end_case(&c);
}

static void keep_orders_together(Case *c, KeyAdviceOptions *options)
{
    options->together = key_of(&c->arena, "/orderId").paths[0];
}

static void what_is_written_together_is_kept_together(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, generate_tenants, NULL, keep_orders_together);
    assert_best(&c, "/orderId");
    assert_true(c.advice.best->layout.together_share >= 1);
    assert_finding(&c, "/userId", FINDING_SPLIT_TRANSACTIONS, FINDING_WARNING);
    end_case(&c);
}

static void generate_hopeless(Sample *sample)
{
    begin_sample(sample);
    for (int i = 0; i < 3000; i++)
        add_item(sample, "{\"kind\":\"k%d\",\"on\":%s}", i % 3, i % 2 == 0 ? "true" : "false");
    end_sample(sample);
}

static void where_nothing_fits_it_says_no_and_what_to_do(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, generate_hopeless, NULL, NULL);
    assert_null(c.advice.best);
    assert_true(c.advice.key_count > 0);
    assert_non_null(memmem(c.advice.conclusion.ptr, c.advice.conclusion.len, "No key fits", 11));
    assert_non_null(memmem(c.advice.conclusion.ptr, c.advice.conclusion.len, "synthetic", 9));
    end_case(&c);
}

static void generate_without_keys(Sample *sample)
{
    begin_sample(sample);
    for (int i = 0; i < 600; i++)
        add_item(sample, "{\"list\":[%d],\"p%d\":1}", i, i);
    end_sample(sample);
}

static void items_without_a_common_property_have_no_key(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, generate_without_keys, NULL, NULL);
    assert_int_equal(c.advice.key_count, 0);
    assert_null(c.advice.best);
    assert_false(c.advice.paths.is_complete); /* more than there is room for */
    assert_non_null(memmem(c.advice.conclusion.ptr, c.advice.conclusion.len, "nothing can be", 14));
    end_case(&c);
}

static void name_keys(Case *c, KeyAdviceOptions *options)
{
    KeyCandidate *keys = ARENA_NEW_ARRAY(&c->arena, KeyCandidate, 2);
    keys[0] = key_of(&c->arena, "/country");
    keys[1] = key_of(&c->arena, "/missing");
    options->current = &keys[0];
    options->check = &keys[1];
}

static void named_keys_are_judged_whatever_they_are(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, generate_users, NULL, name_keys);
    assert_best(&c, "/userId");
    assert_true(find_advised(&c.advice, "/country")->key.is_current);
    assert_ptr_equal(c.advice.checked, find_advised(&c.advice, "/missing"));
    assert_finding(&c, "/missing", FINDING_MISSING_VALUES, FINDING_REFUSAL);
    end_case(&c);
}

static void advice_is_repeatable(void **state)
{
    (void)state;
    Case a = {0};
    Case b = {0};
    run_case(&a, generate_tenants, TENANT_QUERIES, NULL);
    run_case(&b, generate_tenants, TENANT_QUERIES, NULL);
    assert_int_equal(a.advice.key_count, b.advice.key_count);
    assert_true(a.advice.key_count <= KEY_ADVICE_CANDIDATES_MAX);
    for (size_t i = 0; i < a.advice.key_count; i++) {
        assert_true(slice_equal(a.advice.keys[i]->key.name, b.advice.keys[i]->key.name));
        assert_true(a.advice.keys[i]->verdict.score >= b.advice.keys[i]->verdict.score);
    }
    end_case(&a);
    end_case(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_advice_that_is_stopped_has_the_named_keys_and_what_was_tried),
        cmocka_unit_test(users_who_are_alike_are_the_key),
        cmocka_unit_test(a_celebrity_makes_users_a_bad_key),
        cmocka_unit_test(a_key_that_follows_the_time_is_a_moving_hot_spot),
        cmocka_unit_test(few_tenants_are_the_first_part_of_a_key),
        cmocka_unit_test(in_a_small_container_queries_decide),
        cmocka_unit_test(a_key_that_is_soon_full_is_refused_with_the_day),
        cmocka_unit_test(what_is_written_together_is_kept_together),
        cmocka_unit_test(where_nothing_fits_it_says_no_and_what_to_do),
        cmocka_unit_test(items_without_a_common_property_have_no_key),
        cmocka_unit_test(named_keys_are_judged_whatever_they_are),
        cmocka_unit_test(advice_is_repeatable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
