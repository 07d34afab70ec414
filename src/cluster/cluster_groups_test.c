/* cluster_groups_test.c - spaces of ranges that share a budget have one owner, whatever happens to
 * nodes (C8). */
#include "cluster/cluster_testing_int.h"

enum { SINGLES = 3, GROUP = 20, GROUP_COUNT = 4, GROUP_END = GROUP + GROUP_COUNT };

static Sim sim;

static int end(void **state)
{
    (void)state;
    sim_done(&sim);
    return 0;
}

/* Spaces that the leader is to serve are opened by its catalogue when it makes their handles. */
static void make_spaces(StoreSpace first, size_t count, StoreSpace beside)
{
    SimNode *leader = sim_owner(&sim, SPACE_OF_CATALOG);
    const CatalogPlacement *placement = cluster_placement(leader->cluster);
    assert_ok(placement->create(placement->ctx, first, count, beside, err));
    for (StoreSpace space = first; space < first + count; space++) {
        if (placement->is_local(placement->ctx, space))
            assert_ok(sim_serve(leader, space, err));
    }
}

/* Some spaces that are alone, and a group of spaces that share a budget. */
static void begin(size_t nodes, uint32_t replicas)
{
    sim_init(&sim, nodes, replicas, 1);
    sim_begin(&sim, SINGLES);
    make_spaces(GROUP, 1, 0);
    make_spaces(GROUP + 1, GROUP_COUNT - 1, GROUP);
    sim.shared_from = GROUP;
    sim_run(&sim, 5000);
}

/* The owner of all that share the budget; NULL if there is none. */
static SimNode *owner_of_group(void)
{
    SimNode *owner = sim_owner(&sim, GROUP);
    for (StoreSpace space = GROUP; space < GROUP_END; space++) {
        if (sim_owner(&sim, space) != owner)
            return NULL;
    }
    return owner;
}

static void print_owners(void)
{
    for (StoreSpace space = GROUP; space < GROUP_END; space++) {
        const SimNode *owner = sim_owner(&sim, space);
        print_error("space %d is %s's\n", (int)space, owner != NULL ? owner->name : "nobody");
    }
}

#define ASSERT_TOGETHER()                                \
    do {                                                 \
        if (owner_of_group() == NULL) {                  \
            print_owners();                              \
            fail_msg("the group has not got one owner"); \
        }                                                \
    } while (0)

/* Lets time pass; the group has one owner or none all the time, but for the moments in which its
 * spaces move one after the other. */
static void run_together(uint64_t ms)
{
    uint32_t rounds_apart = 0;
    for (uint64_t passed = 0; passed < ms; passed += 100) {
        sim_run(&sim, 100);
        const SimNode *owner = NULL;
        bool is_apart = false;
        for (StoreSpace space = GROUP; space < GROUP_END; space++) {
            const SimNode *one = sim_owner(&sim, space);
            is_apart = is_apart || (one != NULL && owner != NULL && one != owner);
            owner = one != NULL ? one : owner;
        }
        rounds_apart = is_apart ? rounds_apart + 1 : 0;
        if (rounds_apart > 3) {
            print_owners();
            fail_msg("the group is apart");
        }
    }
    ASSERT_TOGETHER();
}

static SimNode *other_than(const SimNode *node)
{
    return node == &sim.nodes[0] ? &sim.nodes[1] : &sim.nodes[0];
}

static void a_drained_node_gives_a_group_to_one_node(void **state)
{
    (void)state;
    begin(4, 4);
    SimNode *owner = owner_of_group();
    assert_non_null(owner);
    assert_ok(cluster_drain(other_than(owner)->cluster, slice_from_cstr(owner->name), true, err));
    run_together(20000);
    assert_ptr_not_equal(owner_of_group(), owner);
}

static void a_node_that_leaves_gives_a_group_to_one_node(void **state)
{
    (void)state;
    begin(4, 4);
    SimNode *owner = owner_of_group();
    assert_non_null(owner);
    atomic_store(&owner->cluster->is_leaving, true); /* as cluster_leave does */
    assert_ok(cluster_drain(owner->cluster, slice_from_cstr(owner->name), true, err));
    run_together(5000);
    assert_ptr_not_equal(owner_of_group(), owner);
}

static void a_node_that_is_cut_off_gives_a_group_to_one_node(void **state)
{
    (void)state;
    begin(4, 4);
    SimNode *owner = owner_of_group();
    assert_non_null(owner);
    owner->is_unreachable = true;
    run_together(15000);
    assert_ptr_not_equal(owner_of_group(), owner);
}

/* Fewer copies than nodes: each would be on another one, if they were chosen space by space. */
static void one_node_takes_a_group_over(void **state)
{
    (void)state;
    begin(5, 2);
    sim_run(&sim, 5000);
    SimNode *owner = owner_of_group();
    assert_non_null(owner);
    for (StoreSpace space = GROUP; space < GROUP_END; space++)
        assert_true(sim_write(owner, space));
    sim_run(&sim, 1000);
    sim_kill(owner);
    run_together(10000);
    for (StoreSpace space = GROUP; space < GROUP_END; space++)
        assert_int_equal(sim_copy(owner_of_group(), space)->sum, sim.written[space]);
}

/* Those that are ahead in one space and behind in another do not share the group out. */
static void copies_that_are_behind_do_not_divide_a_group(void **state)
{
    (void)state;
    begin(4, 4);
    sim_run(&sim, 2000);
    SimNode *owner = owner_of_group();
    assert_non_null(owner);
    size_t next = 0;
    SimNode *followers[3] = {NULL};
    for (size_t i = 0; i < sim.count; i++) {
        if (&sim.nodes[i] != owner)
            followers[next++] = &sim.nodes[i];
    }
    /* Each has one entry more of one space. */
    for (StoreSpace space = GROUP; space < GROUP + 3; space++)
        assert_true(sim_write(owner, space));
    sim_kill(owner);
    for (size_t i = 0; i < ARRAY_COUNT(followers); i++) {
        bool is_behind;
        followers[i]->is_stuck = true;
        assert_true(
            sim_catch_up(followers[i], sim_copy(followers[i], GROUP + i), UINT64_MAX, &is_behind));
    }
    run_together(15000);
}

/* The outcome of an append is unknown: the others go on here, and so does this one. */
static void a_space_that_was_lost_stays_with_its_group(void **state)
{
    (void)state;
    begin(4, 4);
    SimNode *owner = owner_of_group();
    assert_non_null(owner);
    assert_true(sim_write(owner, GROUP + 1));
    sim_run(&sim, 1000);
    sim_copy(owner, GROUP + 1)->role = SPACE_FOLLOWED;
    Error refused = {.status = STATUS_NOT_OWNER};
    owner->hooks.lost(owner->hooks.ctx, GROUP + 1, &refused);
    assert_false(sim_may_answer(owner, GROUP + 1));
    run_together(5000);
    assert_ptr_equal(owner_of_group(), owner);
    assert_true(sim_write(owner, GROUP + 1));
}

static void a_group_that_was_lost_goes_to_one_node(void **state)
{
    (void)state;
    begin(4, 4);
    SimNode *owner = owner_of_group();
    assert_non_null(owner);
    sim_run(&sim, 1000);
    for (StoreSpace space = GROUP; space < GROUP_END; space++) {
        sim_copy(owner, space)->role = SPACE_FOLLOWED;
        Error refused = {.status = STATUS_NOT_OWNER};
        owner->hooks.lost(owner->hooks.ctx, space, &refused);
    }
    run_together(5000);
    assert_ptr_not_equal(owner_of_group(), owner);
}

static void a_move_of_one_moves_the_group(void **state)
{
    (void)state;
    begin(4, 4);
    SimNode *owner = owner_of_group();
    assert_non_null(owner);
    SimNode *to = other_than(owner);
    assert_ok(
        cluster_order(owner->cluster, GROUP + 2, slice_from_cstr(to->name), REASON_OPERATOR, err));
    run_together(2000);
    assert_ptr_equal(owner_of_group(), to);
}

/* All wait for the one that is behind. */
static void a_group_moves_when_all_its_copies_are_near(void **state)
{
    (void)state;
    begin(3, 3);
    sim_run(&sim, 2000);
    SimNode *owner = owner_of_group();
    assert_non_null(owner);
    SimNode *to = other_than(owner);
    to->is_stuck = true;
    for (int i = 0; i < LAG_MAX + 1; i++)
        assert_true(sim_write(owner, GROUP + 3));
    assert_ok(
        cluster_order(owner->cluster, GROUP, slice_from_cstr(to->name), REASON_OPERATOR, err));
    run_together(5000);
    assert_ptr_equal(owner_of_group(), owner);
    to->is_stuck = false;
    run_together(2000);
    assert_ptr_equal(owner_of_group(), to);
}

static void a_group_that_is_apart_comes_together(void **state)
{
    (void)state;
    sim_init(&sim, 3, 2, 1);
    sim_begin(&sim, SINGLES);
    make_spaces(GROUP, GROUP_COUNT, 0);
    sim_run(&sim, 5000);
    assert_null(owner_of_group());
    sim.shared_from = GROUP;
    sim_run(&sim, 30000);
    ASSERT_TOGETHER();
    SimNode *owner = owner_of_group();
    run_together(30000); /* and stays there */
    assert_ptr_equal(owner_of_group(), owner);
}

static void groups_are_spread_as_a_whole(void **state)
{
    (void)state;
    sim_init(&sim, 3, 3, 1);
    sim.count = 1;
    sim_begin(&sim, 0);
    make_spaces(GROUP, GROUP_COUNT * 3, 0);
    sim.shared_from = GROUP;
    sim.shared_budgets = 3;
    sim.count = 3;
    Error failure;
    assert_true(sim_try_start(&sim.nodes[1], &failure));
    assert_true(sim_try_start(&sim.nodes[2], &failure));
    sim_run(&sim, 60000);
    for (StoreSpace space = GROUP; space < GROUP + 3; space++) {
        SimNode *owner = sim_owner(&sim, space);
        assert_non_null(owner);
        for (StoreSpace other = space; other < GROUP + 3 * GROUP_COUNT; other += 3)
            assert_ptr_equal(sim_owner(&sim, other), owner);
        assert_ptr_not_equal(sim_owner(&sim, space == GROUP ? GROUP + 2 : space - 1), owner);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_drained_node_gives_a_group_to_one_node),
        CASE(a_node_that_leaves_gives_a_group_to_one_node),
        CASE(a_node_that_is_cut_off_gives_a_group_to_one_node),
        CASE(one_node_takes_a_group_over),
        CASE(copies_that_are_behind_do_not_divide_a_group),
        CASE(a_space_that_was_lost_stays_with_its_group),
        CASE(a_group_that_was_lost_goes_to_one_node),
        CASE(a_move_of_one_moves_the_group),
        CASE(a_group_moves_when_all_its_copies_are_near),
        CASE(a_group_that_is_apart_comes_together),
        CASE(groups_are_spread_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
