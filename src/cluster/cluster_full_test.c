/* cluster_full_test.c - a journal that fills up: what is expelled so that it can be trimmed, and
 * that writes are taken again then. cluster_testing_int.h has the nodes. */
#include "cluster/cluster_testing_int.h"

enum { BYTES_MAX = 400, ENTRY_BYTES = 8, ENGINE_MS = ENGINE_US / 1000, TRIM_MS = TRIM_US / 1000 };

static Sim sim;

/* Three nodes, all with a copy of each of two spaces, and a journal that is soon full. */
static void begin(uint64_t bytes_max)
{
    sim_init(&sim, 3, 3, 1);
    sim_begin(&sim, 2);
    sim_run(&sim, 1000);
    for (size_t i = 0; i < sim.count; i++)
        sim.nodes[i].cluster->journal_bytes_max = bytes_max;
}

static int end(void **state)
{
    (void)state;
    sim_done(&sim);
    return 0;
}

static SimNode *other_than(const SimNode *node)
{
    return node == &sim.nodes[0] ? &sim.nodes[1] : &sim.nodes[0];
}

static bool is_expelled(SimNode *by, StoreSpace space, const SimNode *node)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    const JournalReplica *replicas = NULL;
    size_t count = 0;
    assert_ok(journal_replicas(by->journal, JOURNAL_LANE_ADMIN, &arena, &replicas, &count, err));
    for (size_t i = 0; i < count; i++) {
        if (replicas[i].space == space &&
            slice_equal(replicas[i].node, slice_from_cstr(node->name)))
            return replicas[i].state == REPLICA_EXPELLED;
    }
    return false;
}

static bool is_dead(SimNode *by, const SimNode *node)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    const JournalNode *nodes = NULL;
    size_t count = 0;
    assert_ok(journal_nodes(by->journal, JOURNAL_LANE_ADMIN, &arena, &nodes, &count, err));
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(nodes[i].name, slice_from_cstr(node->name)))
            return nodes[i].state == NODE_DEAD;
    }
    return false;
}

static uint64_t base_of(SimNode *by, StoreSpace space)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    const JournalOwner *owner = NULL;
    size_t found = 0;
    assert_ok(
        journal_owners(by->journal, JOURNAL_LANE_ADMIN, &space, 1, &arena, &owner, &found, err));
    assert_int_equal(found, 1);
    return owner->base;
}

/* Kills a node that does not own space 2, lets the space be written to, and waits until the node is
 * known to be dead. The owner's catalogue is another's then, if it was that node's. */
static SimNode *kill_a_follower(SimNode **owner)
{
    *owner = sim_owner(&sim, 2);
    SimNode *dead = other_than(*owner);
    sim_kill(dead);
    assert_true(sim_write(*owner, 2));
    while (!is_dead(*owner, dead))
        sim_run(&sim, 100);
    assert_ptr_equal(sim_owner(&sim, 2), *owner);
    return dead;
}

static void a_dead_nodes_copies_are_expelled_at_once_while_the_journal_is_long(void **state)
{
    (void)state;
    begin(4); /* less than one entry */
    SimNode *owner = NULL;
    SimNode *dead = kill_a_follower(&owner);
    sim_run(&sim, ENGINE_MS + TRIM_MS + 1000);
    assert_true(is_expelled(owner, 2, dead));
    assert_int_equal(base_of(owner, 2), 1);
}

/* The same with room: it may come back, and needs the log. */
static void a_dead_nodes_copies_are_kept_while_there_is_room(void **state)
{
    (void)state;
    begin(1 << 20);
    SimNode *owner = NULL;
    SimNode *dead = kill_a_follower(&owner);
    sim_run(&sim, ENGINE_MS + TRIM_MS + 1000);
    assert_false(is_expelled(owner, 2, dead));
    assert_int_equal(base_of(owner, 2), 0);
}

/* Writes until nothing more is taken; the engine is only looked at now and then. */
static void fill(SimNode *owner)
{
    for (int i = 0; !owner->is_journal_full; i++) {
        assert_true(i < 100);
        assert_true(sim_write(owner, 2));
        sim_run(&sim, ENGINE_MS / 5);
    }
    assert_false(sim_write(owner, 2));
}

static void writes_are_taken_again_once_a_full_journal_was_trimmed(void **state)
{
    (void)state;
    begin(BYTES_MAX);
    SimNode *owner = sim_owner(&sim, 2);
    SimNode *stuck = other_than(owner);
    stuck->is_stuck = true;
    for (int i = 0; i < BYTES_MAX / ENTRY_BYTES; i++)
        assert_true(sim_write(owner, 2)); /* the copy hangs for less time than STUCK_US */
    fill(owner);
    char warning[CLUSTER_WARNING_MAX + 1] = "";
    (void)cluster_engine_warning(owner->cluster, warning);
    assert_non_null(strstr(warning, "journal is full"));
    assert_int_equal(base_of(owner, 2), 0);

    stuck->is_stuck = false;
    sim_run(&sim, 2 * TRIM_MS + ENGINE_MS);
    assert_false(owner->is_journal_full);
    assert_false(is_expelled(owner, 2, stuck));
    assert_true(sim_write(owner, 2));
    memset(warning, 0, sizeof(warning));
    (void)cluster_engine_warning(owner->cluster, warning);
    assert_null(strstr(warning, "journal is full"));
}

/* Nobody needs to do anything: the dead node's copies go, and the log with them. */
static void a_journal_that_a_dead_node_has_filled_is_emptied(void **state)
{
    (void)state;
    begin(BYTES_MAX);
    SimNode *owner = sim_owner(&sim, 2);
    SimNode *dead = other_than(owner);
    sim_kill(dead);
    for (int i = 0; i < BYTES_MAX / ENTRY_BYTES; i++)
        assert_true(sim_write(owner, 2));
    fill(owner);
    sim_run(&sim, 2 * TRIM_MS + ENGINE_MS);
    assert_true(is_expelled(owner, 2, dead));
    assert_false(owner->is_journal_full);
    assert_true(sim_write(owner, 2));
    Error failure;
    assert_true(sim_try_start(dead, &failure));
    sim_run(&sim, 20000);
    assert_int_equal(sim_copy(dead, 2)->sum, sim.written[2]);
    assert_false(is_expelled(owner, 2, dead));
}

/* Two nodes live of three, and a copy of the space is on one of them alone. */
static void spaces_that_nobody_else_has_are_counted_until_somebody_has(void **state)
{
    (void)state;
    begin(1 << 20);
    SimNode *owner = sim_owner(&sim, 2);
    for (size_t i = 0; i < sim.count; i++) {
        if (&sim.nodes[i] != owner)
            sim_kill(&sim.nodes[i]);
    }
    assert_true(sim_write(owner, 2));
    sim_run(&sim, ENGINE_MS + 2 * TRIM_MS);
    assert_int_equal(atomic_load(&owner->cluster->untrimmed), 0); /* they may come back */
    owner->cluster->keep_us = 1000;
    sim_run(&sim, 3 * TRIM_MS);
    assert_int_equal(base_of(owner, 2), 0);
    assert_true(atomic_load(&owner->cluster->untrimmed) >= 1);
    char warning[CLUSTER_WARNING_MAX + 1] = "";
    (void)cluster_copies_warning(owner->cluster, warning);
    assert_non_null(strstr(warning, "keeps everything"));

    Error failure;
    assert_true(sim_try_start(other_than(owner), &failure));
    sim_run(&sim, 20000 + 2 * TRIM_MS);
    assert_int_equal(atomic_load(&owner->cluster->untrimmed), 0);
    assert_int_equal(base_of(owner, 2), 1);
    memset(warning, 0, sizeof(warning));
    (void)cluster_copies_warning(owner->cluster, warning);
    assert_null(strstr(warning, "keeps everything"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_dead_nodes_copies_are_expelled_at_once_while_the_journal_is_long),
        CASE(a_dead_nodes_copies_are_kept_while_there_is_room),
        CASE(writes_are_taken_again_once_a_full_journal_was_trimmed),
        CASE(a_journal_that_a_dead_node_has_filled_is_emptied),
        CASE(spaces_that_nobody_else_has_are_counted_until_somebody_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
