/* cluster_copies_test.c - copies that are lost, hang or cannot be made: what of them counts, and
 * for what the log is kept. cluster_testing_int.h has the nodes. */
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

/* Of a copy, which has a row, on a node that need not run. */
static ReplicaState state_of(const SimNode *node, StoreSpace space, uint64_t *base)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    ClusterView view;
    uint64_t begun_us;
    const SimNode *reader = sim_other_than(&sim, NULL);
    assert_ok(cluster_read_view(reader->cluster, true, &arena, &view, &begun_us, err));
    *base = view_owner(&view, space)->base;
    const JournalReplica *replica = view_replica(&view, space, slice_from_cstr(node->name));
    assert_non_null(replica);
    return replica->state;
}

static void a_copy_on_a_living_node_that_hangs_is_expelled_and_made_anew(void **state)
{
    (void)state;
    begin(3, 3, 2);
    SimNode *owner = sim_owner(&sim, 2);
    SimNode *other = sim_other_than(&sim, owner);
    sim_run(&sim, 1000);
    other->is_stuck = true;
    assert_true(sim_write(owner, 2));
    uint64_t base;
    sim_run(&sim, 14 * 60000);
    assert_int_equal(state_of(other, 2, &base), REPLICA_FOLLOWING);
    sim_run(&sim, 2 * 60000);
    assert_int_equal(state_of(other, 2, &base), REPLICA_EXPELLED);
    assert_int_equal(base, 1);
    other->is_stuck = false;
    sim_run(&sim, 5000);
    assert_int_equal(state_of(other, 2, &base), REPLICA_FOLLOWING);

    /* While the log is long, that is found sooner. */
    other->is_stuck = true;
    for (size_t i = 0; i < 3; i++)
        sim.nodes[i].cluster->journal_bytes_max = 4;
    assert_true(sim_write(owner, 2));
    sim_run(&sim, 90000);
    assert_int_equal(state_of(other, 2, &base), REPLICA_EXPELLED);
    sim_assert_nothing_lost(&sim, 2);
}

/* With two nodes the log is never trimmed behind the only other copy, so it needs no new one. */
static void an_expelled_copy_that_has_read_the_rest_of_the_log_counts_again(void **state)
{
    (void)state;
    begin(2, 2, 2);
    SimNode *owner = sim_owner(&sim, 2);
    SimNode *other = sim_other_than(&sim, owner);
    sim_run(&sim, 1000);
    sim_kill(other);
    sim_run(&sim, 10000);
    owner = sim_owner(&sim, 2);
    assert_true(sim_write(owner, 2));
    sim_run(&sim, 20 * 60000);
    Error failure;
    assert_true(sim_try_start(other, &failure));
    uint64_t base;
    assert_int_equal(state_of(other, 2, &base), REPLICA_EXPELLED);
    assert_int_equal(base, 0);
    sim_run(&sim, 40000);
    assert_int_equal(state_of(other, 2, &base), REPLICA_FOLLOWING);
    assert_int_equal(base, 1);
    sim_assert_nothing_lost(&sim, 2);
}

/* Its process ends, and its disk is replaced; or only the store's folder on it is lost. */
static void lose_disk(SimNode *node, bool with_folder)
{
    sim_kill(node);
    sim_run(&sim, 10000);
    memset(node->copies, 0, sizeof(node->copies));
    if (!with_folder)
        return;
    test_folder_done(&node->data);
    test_folder_init(&node->data);
}

/* Other than at the moment of an attempt, the copy that cannot be made holds nothing back. */
static void a_copy_that_cannot_be_made_does_not_keep_the_log(void **state)
{
    (void)state;
    begin(3, 3, 2);
    SimNode *other = sim_other_than(&sim, sim_owner(&sim, 2));
    for (int with_room = 0; with_room < 2; with_room++) {
        uint64_t base;
        Error failure;
        lose_disk(other, false);
        assert_true(sim_write(sim_owner(&sim, 2), 2));
        assert_ok(journal_expel(sim.nodes[1].journal, JOURNAL_LANE_ADMIN, 2,
                                slice_from_cstr(other->name), err));
        sim_run(&sim, 30000); /* the owner trims */
        other->has_no_room = with_room == 0;
        other->is_filling_up = with_room == 1;
        other->seeds_begun = 0;
        assert_true(sim_try_start(other, &failure));
        for (int i = 0; i < 300; i++) {
            sim_run(&sim, 1000);
            assert_true(state_of(other, 2, &base) == REPLICA_EXPELLED || base == 0);
            if (i % 30 == 0)
                assert_true(sim_write(sim_owner(&sim, 2), 2));
        }
        assert_int_equal(base, sim_place(sim_owner(&sim, 2), 2).applied.seq);
        assert_in_range(other->seeds_begun, with_room * 5, with_room * 60);
        other->has_no_room = other->is_filling_up = false;
        sim_run(&sim, 60000);
        assert_int_equal(state_of(other, 2, &base), REPLICA_FOLLOWING);
    }
    sim_assert_nothing_lost(&sim, 2);
}

static void a_copy_that_is_made_without_progress_is_expelled(void **state)
{
    (void)state;
    begin(3, 3, 2);
    SimNode *owner = sim_owner(&sim, 2);
    SimNode *other = sim_other_than(&sim, owner);
    JournalReplica row = {.space = 2, .state = REPLICA_SEEDING};
    uint64_t base;
    sim_run(&sim, 1000);
    other->is_stuck = other->is_seeder_stuck = true;
    assert_true(sim_write(owner, 2));
    sim_copy(other, 2)->role = SPACE_ABSENT; /* reports nothing */
    for (int minute = 0; minute < 30; minute++) {
        row.applied++; /* pieces */
        assert_ok(journal_report(other->journal, JOURNAL_LANE_ADMIN, &row, 1, err));
        sim_run(&sim, 60000);
        assert_int_equal(state_of(other, 2, &base), REPLICA_SEEDING);
        assert_int_equal(base, 0);
    }
    sim_run(&sim, 13 * 60000);
    assert_int_equal(state_of(other, 2, &base), REPLICA_SEEDING);
    sim_run(&sim, 3 * 60000);
    assert_int_equal(state_of(other, 2, &base), REPLICA_EXPELLED);
    assert_int_equal(base, 1);

    /* While the log is long, that is found sooner. */
    for (size_t i = 0; i < 3; i++)
        sim.nodes[i].cluster->journal_bytes_max = 4;
    assert_true(sim_write(owner, 2));
    assert_ok(journal_report(other->journal, JOURNAL_LANE_ADMIN, &row, 1, err));
    sim_run(&sim, 90000);
    assert_int_equal(state_of(other, 2, &base), REPLICA_EXPELLED);
}

static void copies_on_a_lost_disk_do_not_count(void **state)
{
    (void)state;
    begin(3, 3, 2);
    SimNode *owner = sim_owner(&sim, 2);
    SimNode *other = sim_other_than(&sim, owner);
    for (int i = 0; i < 10; i++)
        assert_true(sim_write(owner, 2));
    sim_run(&sim, 30000); /* the owner trims */
    for (int with_folder = 0; with_folder < 2; with_folder++) {
        uint64_t base;
        lose_disk(other, with_folder == 1);
        assert_int_equal(state_of(other, 2, &base), REPLICA_FOLLOWING);
        assert_int_equal(base, 10);
        Error failure;
        assert_true(sim_try_start(other, &failure));
        manage_step(other->cluster);
        ClusterView view;
        uint64_t begun_us;
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        assert_ok(cluster_read_view(owner->cluster, true, &arena, &view, &begun_us, err));
        const JournalReplica *row = view_replica(&view, 2, slice_from_cstr(other->name));
        assert_true(row == NULL || row->state == REPLICA_EXPELLED);
        sim_run(&sim, 20000);
        assert_int_equal(state_of(other, 2, &base), REPLICA_FOLLOWING);
        assert_int_equal(sim_place(other, 2).applied.seq, 10);
    }
    sim_assert_nothing_lost(&sim, 2);
}

/* The log was trimmed, and has lost what all copies have: there is nothing to be copied. */
static void the_last_copies_are_not_dropped_for_one_that_nobody_has(void **state)
{
    (void)state;
    begin(2, 2, 1);
    SimNode *owner = sim_owner(&sim, 2);
    for (int i = 0; i < 3; i++)
        assert_true(sim_write(owner, 2));
    sim_run(&sim, 30000); /* the owner trims */
    memory_journal_backup(sim.engine);
    assert_true(sim_write(owner, 2));
    sim_run(&sim, 1000);
    memory_journal_restore(sim.engine);
    sim_run(&sim, 10000);
    assert_null(sim_owner(&sim, 2));
    for (size_t i = 0; i < 2; i++)
        assert_ok(cluster_recover(sim.nodes[i].cluster, 2, err));
    sim_run(&sim, 10000);
    for (size_t i = 0; i < 2; i++) {
        const SimCopy *copy = sim_copy(&sim.nodes[i], 2);
        assert_non_null(copy);
        assert_int_equal(copy->place.seq, 4);
    }
}

/* A session whose copy has been read whole makes room for the next one. */
static void many_small_copies_are_made_one_after_the_other(void **state)
{
    (void)state;
    enum { SPACES = 40 };
    begin(2, 2, SPACES);
    SimNode *other = sim_other_than(&sim, sim_owner(&sim, 2));
    for (StoreSpace space = 2; space <= SPACES + 1; space++)
        assert_true(sim_write(sim_owner(&sim, space), space));
    sim_run(&sim, 30000); /* the owners trim */
    lose_disk(other, true);
    Error failure;
    assert_true(sim_try_start(other, &failure));
    sim_run(&sim, 20000);
    for (StoreSpace space = 1; space <= SPACES + 1; space++)
        assert_int_equal(sim_place(other, space).applied.seq,
                         sim_place(sim_owner(&sim, space), space).applied.seq);
    sim_assert_nothing_lost(&sim, SPACES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_last_copies_are_not_dropped_for_one_that_nobody_has),
        CASE(a_copy_on_a_living_node_that_hangs_is_expelled_and_made_anew),
        CASE(an_expelled_copy_that_has_read_the_rest_of_the_log_counts_again),
        CASE(a_copy_that_cannot_be_made_does_not_keep_the_log),
        CASE(many_small_copies_are_made_one_after_the_other),
        CASE(a_copy_that_is_made_without_progress_is_expelled),
        CASE(copies_on_a_lost_disk_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
