/* consistency_test.c - which level the reads of a request have. */
#include "api/core/consistency.h"

#include "base/testing.h"

static const Consistency LEVELS[] = {
    CONSISTENCY_EVENTUAL, CONSISTENCY_CONSISTENT_PREFIX,
    CONSISTENCY_SESSION,  CONSISTENCY_BOUNDED_STALENESS,
    CONSISTENCY_STRONG,
};

static Status choose(Consistency account, const char *level, const char *strategy, Consistency *out,
                     Error *err)
{
    return consistency_choose(account, slice_from_cstr(level), slice_from_cstr(strategy), out, err);
}

static void expect_refused(Consistency account, const char *level, const char *strategy,
                           const char *message)
{
    Consistency chosen = CONSISTENCY_EVENTUAL;
    Error err;
    assert_int_equal(choose(account, level, strategy, &chosen, &err), STATUS_BAD_REQUEST);
    if (strstr(err.message, message) == NULL)
        fail_msg("expected '%s' in '%s'", message, err.message);
}

static void a_request_without_headers_reads_at_the_accounts_level(void **state)
{
    (void)state;
    static const char *const strategies[] = {"", "Default", "default"};
    for (size_t i = 0; i < ARRAY_COUNT(LEVELS); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(strategies); j++) {
            Consistency chosen = CONSISTENCY_EVENTUAL;
            Error err;
            assert_int_equal(choose(LEVELS[i], "", strategies[j], &chosen, &err), STATUS_OK);
            assert_int_equal(chosen, LEVELS[i]);
        }
    }
}

static void a_request_may_ask_for_the_same_level_or_a_weaker_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(LEVELS); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(LEVELS); j++) {
            Consistency chosen = CONSISTENCY_EVENTUAL;
            Error err;
            Status status = consistency_choose(LEVELS[i], consistency_name(LEVELS[j]), SLICE_EMPTY,
                                               &chosen, &err);
            assert_int_equal(status, j > i ? STATUS_BAD_REQUEST : STATUS_OK);
            if (status == STATUS_OK)
                assert_int_equal(chosen, LEVELS[j]);
        }
    }
    expect_refused(CONSISTENCY_SESSION, "strong", "",
                   "ConsistencyLevel Strong specified in the request is invalid when service is "
                   "configured with consistency level Session. Ensure the request consistency "
                   "level is not stronger than the service consistency level.");
}

static void a_strategy_overrides_the_level(void **state)
{
    (void)state;
    static const struct {
        Consistency account;
        const char *level, *strategy;
        Consistency chosen;
    } rows[] = {
        {CONSISTENCY_SESSION, "", "Eventual", CONSISTENCY_EVENTUAL},
        {CONSISTENCY_SESSION, "", "session", CONSISTENCY_SESSION},
        {CONSISTENCY_SESSION, "", "LatestCommitted", CONSISTENCY_BOUNDED_STALENESS},
        {CONSISTENCY_SESSION, "Eventual", "Session", CONSISTENCY_SESSION},
        {CONSISTENCY_SESSION, "Session", "Eventual", CONSISTENCY_EVENTUAL},
        {CONSISTENCY_SESSION, "Eventual", "Default", CONSISTENCY_EVENTUAL},
        /* stronger than the account's level, which a level could not be */
        {CONSISTENCY_EVENTUAL, "", "Session", CONSISTENCY_SESSION},
        {CONSISTENCY_EVENTUAL, "", "LatestCommitted", CONSISTENCY_BOUNDED_STALENESS},
        {CONSISTENCY_STRONG, "", "Eventual", CONSISTENCY_EVENTUAL},
        {CONSISTENCY_STRONG, "Session", "GlobalStrong", CONSISTENCY_STRONG},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Consistency chosen = CONSISTENCY_CONSISTENT_PREFIX;
        Error err;
        assert_int_equal(choose(rows[i].account, rows[i].level, rows[i].strategy, &chosen, &err),
                         STATUS_OK);
        assert_int_equal(chosen, rows[i].chosen);
    }
}

static void what_is_unknown_or_not_allowed_is_refused(void **state)
{
    (void)state;
    expect_refused(CONSISTENCY_STRONG, "Whatever", "", "x-ms-consistency-level 'Whatever'");
    expect_refused(CONSISTENCY_STRONG, "LatestCommitted", "", "is not a consistency level");
    expect_refused(CONSISTENCY_STRONG, "", "Whatever",
                   "x-ms-cosmos-read-consistency-strategy 'Whatever'");
    expect_refused(CONSISTENCY_STRONG, "", "Strong", "is not a strategy");
    /* A strategy does not make a bad level good. */
    expect_refused(CONSISTENCY_SESSION, "Whatever", "Eventual", "is not a consistency level");
    expect_refused(CONSISTENCY_SESSION, "Strong", "Eventual", "ConsistencyLevel Strong");
    for (size_t i = 0; i < ARRAY_COUNT(LEVELS) - 1; i++)
        expect_refused(LEVELS[i], "", "GlobalStrong",
                       "GlobalStrong is possible only in an account");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_without_headers_reads_at_the_accounts_level),
        cmocka_unit_test(a_request_may_ask_for_the_same_level_or_a_weaker_one),
        cmocka_unit_test(a_strategy_overrides_the_level),
        cmocka_unit_test(what_is_unknown_or_not_allowed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
