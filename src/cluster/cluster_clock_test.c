/* cluster_clock_test.c - the time of a node whose wall clock is wrong, or jumps.
 * cluster_testing_int.h has the nodes; the engine has a clock of its own. */
#include "cluster/cluster_testing_int.h"

#define SECOND_US INT64_C(1000000)

enum { HOUR_S = 3600 };

static Sim sim;

static int end(void **state)
{
    (void)state;
    sim_done(&sim);
    return 0;
}

/* ---- the clock alone ---- */

static void a_clock_is_right_up_to_a_bound(void **state)
{
    (void)state;
    static const struct {
        int64_t ahead_us;
        bool is_wrong;
    } rows[] = {
        {0, false},        {10000000, false},          {10000001, true},
        {9000001, true}, /* it was wrong: it must be clearly right */
        {9000000, false},  {9999999, false},           {-10000000, false},
        {-10000001, true}, {-9000001, true},           {10000001, true},
        {-9000000, false}, {HOUR_S * SECOND_US, true}, {-HOUR_S * SECOND_US, true},
        {INT64_MIN, true}, {INT64_MAX, true},          {0, false},
    };
    FakeClock own;
    fake_clock_init(&own, 1000);
    ClusterClock clock;
    fake_clock_set_wall(&own, 5000);
    cluster_clock_init(&clock, &own.clock);
    assert_int_equal(cluster_clock_state(&clock), CLUSTER_CLOCK_NEW);
    assert_int_equal(clock_wall_us(&clock.clock), 5000);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const uint64_t engine_us = UINT64_C(1700000000000000) + i;
        uint64_t own_us = engine_us + (uint64_t)rows[i].ahead_us;
        cluster_clock_set(&clock, (ClockReading){clock_boot_us(&own.clock), own_us, engine_us});
        assert_int_equal(cluster_clock_state(&clock),
                         rows[i].is_wrong ? CLUSTER_CLOCK_WRONG : CLUSTER_CLOCK_RIGHT);
        uint64_t expected_us = rows[i].is_wrong ? engine_us : own_us;
        assert_int_equal(clock_wall_us(&clock.clock), expected_us);
        /* Only the time that passes moves it, whatever the wall clock does. */
        fake_clock_set_wall(&own, i * 77777777);
        assert_int_equal(clock_wall_us(&clock.clock), expected_us);
        fake_clock_advance(&own, 1234567);
        assert_int_equal(clock_wall_us(&clock.clock), expected_us + 1234567);
        assert_int_equal(clock_boot_us(&clock.clock), clock_boot_us(&own.clock));
        assert_int_equal(clock_monotonic_us(&clock.clock), clock_monotonic_us(&own.clock));
    }
}

/* ---- nodes ---- */

/* Sets the wall clock of a node so far ahead of the engine's. */
static void set_ahead(SimNode *node, int64_t us)
{
    fake_clock_set_wall(&node->clock, clock_wall_us(&sim.clock.clock) + (uint64_t)us);
}

static void begin(size_t nodes)
{
    sim_init(&sim, nodes, nodes == 1 ? 1 : 2, 1);
    for (size_t i = 0; i < nodes; i++)
        set_ahead(&sim.nodes[i], 0);
    sim_begin(&sim, 2);
}

/* How far the time of a node is from the engine's. */
static int64_t off_us(const SimNode *node)
{
    return (int64_t)(clock_wall_us(cluster_clock(node->cluster)) - clock_wall_us(&sim.clock.clock));
}

static bool is_doubtful(const SimNode *node)
{
    const CatalogPlacement *placement = cluster_placement(node->cluster);
    return placement->doubts_time(placement->ctx);
}

/* With NULL: that there is none. */
static void expect_warning(const SimNode *node, const char *expected)
{
    char text[CLUSTER_WARNING_MAX];
    Slice found = slice_make(text, cluster_clock_warning(node->cluster, text));
    assert_true((expected == NULL) == (found.len == 0));
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice json;
    assert_ok(cluster_status(node->cluster, &arena, &json, err));
    bool is_shown = strstr(arena_cstr(&arena, json), "the clock of the node") != NULL;
    assert_int_equal(is_shown, expected != NULL);
    if (expected != NULL && strstr(arena_cstr(&arena, found), expected) == NULL)
        fail_msg("expected %s in %.*s", expected, SLICE_ARG(found));
    if (expected != NULL)
        assert_non_null(strstr(arena_cstr(&arena, json), expected));
}

static size_t count_events(const SimNode *node, const char *kind)
{
    static ClusterEvent events[CLUSTER_EVENTS_MAX];
    size_t found = cluster_events(node->cluster, events, CLUSTER_EVENTS_MAX);
    size_t count = 0;
    for (size_t i = 0; i < found; i++)
        count += strcmp(events[i].kind, kind) == 0;
    return count;
}

static void expect_right(const SimNode *node)
{
    assert_int_equal(off_us(node), 0);
    assert_false(is_doubtful(node));
    expect_warning(node, NULL);
}

static void a_jump_changes_nothing_and_is_told(void **state)
{
    (void)state;
    static const struct {
        int64_t ahead_us;
        const char *warning;
    } rows[] = {
        {HOUR_S * SECOND_US, "the node 'n1' is 3600 s ahead of that of the engine: set it right"},
        {-HOUR_S * SECOND_US, "the node 'n1' is 3600 s behind that of the engine: set it right"},
        {11 * SECOND_US, "11 s ahead of"},
        {-11 * SECOND_US, "11 s behind"},
    };
    begin(2);
    SimNode *node = &sim.nodes[1];
    expect_right(node);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        set_ahead(node, rows[i].ahead_us);
        assert_int_equal(off_us(node), 0); /* before anything is measured */
        assert_int_equal(count_events(node, "clockWrong"), i);
        sim_run(&sim, 2000);
        assert_int_equal(off_us(node), 0);
        assert_true(is_doubtful(node));
        expect_warning(node, rows[i].warning);
        sim_run(&sim, 10000);
        assert_int_equal(off_us(node), 0);
        assert_int_equal(count_events(node, "clockWrong"), i + 1); /* not with each renewal */
        assert_int_equal(count_events(node, "clockRight"), i);
        expect_right(&sim.nodes[0]);
        set_ahead(node, 0);
        assert_true(is_doubtful(node)); /* until it is measured */
        sim_run(&sim, 2000);
        expect_right(node);
        assert_int_equal(count_events(node, "clockRight"), i + 1);
    }
}

static void a_small_difference_is_the_node_s_own(void **state)
{
    (void)state;
    begin(1);
    SimNode *node = &sim.nodes[0];
    static const int64_t rows_us[] = {3 * SECOND_US, -9 * SECOND_US, 10 * SECOND_US, 0};
    for (size_t i = 0; i < ARRAY_COUNT(rows_us); i++) {
        int64_t before_us = off_us(node);
        set_ahead(node, rows_us[i]);
        assert_int_equal(off_us(node), before_us);
        sim_run(&sim, 2000);
        assert_int_equal(off_us(node), rows_us[i]);
        assert_false(is_doubtful(node));
        expect_warning(node, NULL);
    }
    assert_int_equal(count_events(node, "clockWrong"), 0);
}

static void another_difference_is_told_anew(void **state)
{
    (void)state;
    begin(1);
    SimNode *node = &sim.nodes[0];
    set_ahead(node, HOUR_S * SECOND_US);
    sim_run(&sim, 2000);
    set_ahead(node, (HOUR_S + 5) * SECOND_US);
    sim_run(&sim, 2000);
    assert_int_equal(count_events(node, "clockWrong"), 1);
    expect_warning(node, "3605 s ahead of");
    set_ahead(node, -60 * SECOND_US);
    sim_run(&sim, 2000);
    assert_int_equal(count_events(node, "clockWrong"), 2);
    expect_warning(node, "60 s behind");
    assert_int_equal(off_us(node), 0);
}

static void a_node_that_starts_with_a_wrong_clock_has_the_right_time(void **state)
{
    (void)state;
    begin(2);
    SimNode *node = &sim.nodes[1];
    static const int64_t rows_us[] = {HOUR_S * SECOND_US, -HOUR_S * SECOND_US};
    for (size_t i = 0; i < ARRAY_COUNT(rows_us); i++) {
        Error err;
        sim_kill(node);
        sim_run(&sim, 1000);
        set_ahead(node, rows_us[i]);
        assert_true(sim_try_start(node, &err));
        assert_false(atomic_load(&node->cluster->has_catalog));
        assert_int_equal(off_us(node), 0);
        assert_true(is_doubtful(node));
        sim_run(&sim, 20000);
        assert_true(atomic_load(&node->cluster->has_catalog));
        assert_int_equal(off_us(node), 0);
        assert_int_equal(count_events(node, "clockWrong"), 1);
        assert_non_null(sim_owner(&sim, 2));
    }
}

/* An engine that looks at its clock, and takes its time before it answers. */
typedef struct SlowClock {
    Clock clock;
    uint64_t took_us;
} SlowClock;

static uint64_t slow_wall_us(const Clock *clock)
{
    uint64_t now_us = clock_wall_us(&sim.clock.clock);
    uint64_t took_us = CONTAINER_OF(clock, SlowClock, clock)->took_us;
    fake_clock_advance(&sim.clock, took_us);
    for (size_t i = 0; i < sim.count; i++)
        fake_clock_advance(&sim.nodes[i].clock, took_us);
    return now_us;
}

static void what_took_long_says_nothing(void **state)
{
    (void)state;
    begin(1);
    SimNode *node = &sim.nodes[0];
    SlowClock slow = {.clock.wall_us = slow_wall_us, .took_us = CLUSTER_CLOCK_ANSWER_US + 1};
    memory_journal_set_clock(sim.engine, &slow.clock);
    set_ahead(node, HOUR_S * SECOND_US);
    for (size_t i = 0; i < 5; i++)
        lease_step(node->cluster);
    assert_int_equal(off_us(node), 0);
    assert_false(is_doubtful(node)); /* nobody knows */
    assert_true(sim_has_lease(node));
    slow.took_us = CLUSTER_CLOCK_ANSWER_US;
    lease_step(node->cluster);
    assert_true(is_doubtful(node));
    /* The engine has looked at its clock at the beginning; it is believed to have in the middle. */
    assert_int_equal(off_us(node), -(int64_t)CLUSTER_CLOCK_ANSWER_US / 2);
    memory_journal_set_clock(sim.engine, &sim.clock.clock);
}

static void a_node_waits_for_the_time_before_it_opens_anything(void **state)
{
    (void)state;
    begin(2);
    SimNode *node = &sim.nodes[1];
    sim_kill(node);
    sim_run(&sim, 1000);
    set_ahead(node, HOUR_S * SECOND_US);
    SlowClock slow = {.clock.wall_us = slow_wall_us, .took_us = CLUSTER_CLOCK_ANSWER_US + 1};
    memory_journal_set_clock(sim.engine, &slow.clock);
    Error err;
    assert_true(sim_try_start(node, &err));
    assert_true(is_doubtful(node));
    for (size_t i = 0; i < 5; i++) {
        sim_follow_logs(node);
        sim_join_catalog(node);
        assert_false(atomic_load(&node->cluster->has_catalog));
        lease_step(node->cluster);
    }
    memory_journal_set_clock(sim.engine, &sim.clock.clock);
    lease_step(node->cluster);
    sim_run(&sim, 20000);
    assert_true(atomic_load(&node->cluster->has_catalog));
    assert_int_equal(off_us(node), 0);
}

static void an_engine_that_is_away_changes_nothing(void **state)
{
    (void)state;
    begin(1);
    SimNode *node = &sim.nodes[0];
    memory_journal_set_down(sim.engine, true);
    set_ahead(node, HOUR_S * SECOND_US);
    sim_run(&sim, 20000);
    assert_int_equal(off_us(node), 0);
    assert_false(is_doubtful(node));
    memory_journal_set_down(sim.engine, false);
    sim_run(&sim, 5000);
    assert_true(is_doubtful(node));
    assert_int_equal(off_us(node), 0);
    memory_journal_set_down(sim.engine, true);
    set_ahead(node, 0);
    sim_run(&sim, 20000);
    assert_true(is_doubtful(node));
    assert_int_equal(off_us(node), 0);
    memory_journal_set_down(sim.engine, false);
    sim_run(&sim, 5000);
    expect_right(node);
    /* Renewals are answered, and the question is not. */
    memory_journal_fail(node->journal, JOURNAL_LANE_NODE, MEMORY_JOURNAL_LOSE_ANSWER, 1, 1);
    set_ahead(node, HOUR_S * SECOND_US);
    uint64_t renewals = atomic_load(&node->cluster->own_renewals);
    lease_step(node->cluster);
    assert_int_equal(atomic_load(&node->cluster->own_renewals), renewals + 1);
    assert_int_equal(off_us(node), 0);
    assert_false(is_doubtful(node));
}

static void a_jump_of_the_wall_clock_ends_the_lease_until_it_is_renewed(void **state)
{
    (void)state;
    begin(1);
    SimNode *node = &sim.nodes[0];
    assert_true(sim_has_lease(node));
    uint64_t wall_us = clock_wall_us(&node->clock.clock);
    fake_clock_set_wall(&node->clock, wall_us + LEASE_US - 1000);
    assert_true(sim_has_lease(node));
    fake_clock_set_wall(&node->clock, wall_us + LEASE_US + 1000);
    assert_false(sim_has_lease(node));
    fake_clock_set_wall(&node->clock, wall_us - LEASE_US - 1000);
    assert_false(sim_has_lease(node));
    sim_run(&sim, 1500);
    assert_true(sim_has_lease(node));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_is_right_up_to_a_bound),
        CASE(a_jump_changes_nothing_and_is_told),
        CASE(a_small_difference_is_the_node_s_own),
        CASE(another_difference_is_told_anew),
        CASE(a_node_that_starts_with_a_wrong_clock_has_the_right_time),
        CASE(what_took_long_says_nothing),
        CASE(a_node_waits_for_the_time_before_it_opens_anything),
        CASE(an_engine_that_is_away_changes_nothing),
        CASE(a_jump_of_the_wall_clock_ends_the_lease_until_it_is_renewed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
