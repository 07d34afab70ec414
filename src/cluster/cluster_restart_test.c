/* cluster_restart_test.c - nodes that begin anew in a folder that was moved, or with a damaged
 * disk. cluster_testing_int.h has the nodes. */
#include "cluster/cluster_testing_int.h"

static Sim sim;

static void begin(size_t nodes, uint32_t replicas, size_t spaces)
{
    sim_init(&sim, nodes, replicas, 1);
    sim_begin(&sim, spaces);
}

static int end(void **state)
{
    (void)state;
    sim_done(&sim);
    return 0;
}

/* The folder's lock says nothing there. The process that is cut off from the engine answers clients
 * until its lease ends; sim_check_owners sees to it that nobody else does. */
static void a_folder_that_was_moved_waits_for_the_lease(void **state)
{
    (void)state;
    begin(2, 2, 4);
    SimNode *first = &sim.nodes[0];
    SimNode *second = &sim.nodes[2];
    *second = (SimNode){.sim = &sim};
    (void)snprintf(second->name, sizeof(second->name), "%s", first->name);
    (void)snprintf(second->address, sizeof(second->address), "10.0.0.9:1");
    test_folder_init(&second->data);
    fake_clock_init(&second->clock, 5000000000);
    sim_open_journal(second, 0);
    sim.count = 3;
    memory_journal_cut(first->journal, true);
    char command[256];
    (void)snprintf(command, sizeof(command), "cp %s/CLUSTER* %s", first->data.path,
                   second->data.path);
    assert_int_equal(system(command), 0); /* NOLINT: a copy, in a test */
    Error failure;
    assert_true(sim_try_start(second, &failure));
    sim_run(&sim, 3500); /* while it has a lease, or may have */
    assert_true(sim_has_lease(first));
    assert_int_equal(sim_count_owned(second, 4), 0);
    sim_run(&sim, 4000);
    assert_false(sim_has_lease(first));
    sim_assert_all_served(&sim, 4);
    assert_true(sim_count_owned(second, 4) > 0);
    /* A restart there is one as any other. */
    sim_kill(second);
    assert_true(sim_try_start(second, &failure));
    sim_run(&sim, 1500);
    sim_assert_all_served(&sim, 4);
}

/* It was declared dead, and its join has made it live: it must not get anything again. */
static void a_node_whose_disk_is_damaged_comes_back_without_spaces(void **state)
{
    (void)state;
    begin(3, 3, 6);
    SimNode *node = sim_owner(&sim, 2);
    node->is_damaged = true;
    sim_run(&sim, 20000);
    assert_int_equal(sim_count_owned(node, 6), 0);
    uint64_t incarnation = cluster_incarnation(node->cluster);
    node->is_paused = true;
    sim_run(&sim, 10000);
    node->is_paused = false;
    sim_run(&sim, 30000); /* long enough to be spread */
    assert_true(cluster_incarnation(node->cluster) > incarnation);
    assert_int_equal(sim_count_owned(node, 6), 0);
    sim_assert_all_served(&sim, 6);
    sim_assert_nothing_lost(&sim, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_folder_that_was_moved_waits_for_the_lease),
        CASE(a_node_whose_disk_is_damaged_comes_back_without_spaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
