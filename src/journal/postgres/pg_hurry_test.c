/* pg_hurry_test.c - a process that ends while the standby of its engine is away. */
#include "journal/postgres/pg_testing_int.h"

static void *list_nodes(void *ctx)
{
    const JournalNode *nodes = NULL;
    size_t count = 0;
    Error error;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    return journal_nodes(ctx, JOURNAL_LANE_ADMIN, &arena, &nodes, &count, &error) == STATUS_OK
               ? ctx
               : NULL;
}

/* What is read must be acknowledged by the standby, which is away. */
static void a_process_that_ends_does_not_wait_for_the_engine(void **state)
{
    (void)state;
    AUTO(pair_end) PostgresPair pair = {0};
    pair_start(&pair);
    AUTO(journal_close) Journal *a = open_postgres(pair_url(&pair, ""), 0);
    (void)join_as(a, "a", 0);
    pair_do(&pair, "stop", "b");
    pthread_t thread;
    assert_ok(thread_start(&thread, "nodes", list_nodes, a, err));
    char waits[8] = "";
    while (strcmp(waits, "t") != 0)
        pair_sql(&pair, "a",
                 "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'", waits,
                 sizeof(waits));
    uint64_t begun_us = clock_monotonic_us(clock_real());
    journal_hurry(a);
    void *is_read = a;
    pthread_join(thread, &is_read);
    assert_null(is_read);
    assert_null(list_nodes(a)); /* nor does what is asked after that */
    assert_true(clock_monotonic_us(clock_real()) - begun_us < 12000000);
    pair_do(&pair, "run", "b");
    while (list_nodes(a) == NULL) /* which is why it is asked at all */
        sleep_ms(20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_process_that_ends_does_not_wait_for_the_engine,
                                        test_arena_setup, test_arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
