/* cluster_hand_over_test.c - giving spaces away: to a node that is silent, and at the end.
 * cluster_testing_int.h has the nodes. */
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

/* Calls that were not answered. */
static size_t calls_in_vain;

static Status call_and_count(void *ctx, ClusterCall *call, Error *err)
{
    Status status = sim_call(ctx, call, err);
    calls_in_vain += status != STATUS_OK;
    return status;
}

/* Each call takes its time, in which nobody would find that the other node is dead. */
static void a_node_that_is_silent_is_asked_once_about_all_that_it_might_get(void **state)
{
    (void)state;
    begin(2, 2, 20);
    SimNode *node = &sim.nodes[0];
    SimNode *silent = &sim.nodes[1];
    assert_true(sim_count_owned(node, 20) > 5);
    silent->is_unreachable = true;
    node->cluster->call = call_and_count;
    for (StoreSpace space = 2; space <= 6; space++)
        assert_ok(cluster_order(node->cluster, space, slice_from_cstr(silent->name),
                                REASON_OPERATOR, err));
    assert_ok(cluster_drain(node->cluster, slice_from_cstr(node->name), true, err));
    lease_step(node->cluster);
    fake_clock_advance(&node->clock, VIEW_US);
    calls_in_vain = 0;
    manage_step(node->cluster);
    assert_true(atomic_load(&node->cluster->is_draining));
    assert_int_equal(calls_in_vain, 1);
    manage_step(node->cluster); /* by the same view */
    assert_int_equal(calls_in_vain, 1);
    silent->is_unreachable = false;
    sim_run(&sim, 10000);
    assert_int_equal(sim_count_owned(node, 20), 0);
    sim_assert_all_served(&sim, 20);
}

/* The thread is waited for. */
static void a_manager_that_is_to_end_gives_nothing_away(void **state)
{
    (void)state;
    begin(2, 2, 20);
    SimNode *node = &sim.nodes[0];
    size_t owned = sim_count_owned(node, 20);
    assert_ok(cluster_order(node->cluster, 2, slice_from_cstr("n1"), REASON_OPERATOR, err));
    assert_ok(cluster_drain(node->cluster, slice_from_cstr(node->name), true, err));
    lease_step(node->cluster);
    atomic_store(&node->cluster->is_stopping, true);
    fake_clock_advance(&node->clock, VIEW_US);
    manage_step(node->cluster);
    assert_int_equal(sim_count_owned(node, 20), owned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_node_that_is_silent_is_asked_once_about_all_that_it_might_get),
        CASE(a_manager_that_is_to_end_gives_nothing_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
