/* cluster_test.c - several nodes over one engine: who serves what when nodes die, pause, restart,
 * leave, and when the engine fails. At every moment at most one node may answer for a space
 * (sim_check_owners). */
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

static void one_node_owns_everything(void **state)
{
    (void)state;
    begin(1, 1, 4);
    sim_assert_all_served(&sim, 4);
    assert_int_equal(sim_count_owned(&sim.nodes[0], 4), 5);
}

static void new_spaces_are_dealt_out_evenly(void **state)
{
    (void)state;
    begin(3, 3, 9);
    sim_assert_all_served(&sim, 9);
    for (size_t i = 0; i < 3; i++)
        assert_in_range(sim_count_owned(&sim.nodes[i], 9), 3, 4);
}

static void spaces_beside_another_go_to_its_owner(void **state)
{
    (void)state;
    begin(3, 3, 5);
    SimNode *leader = sim_owner(&sim, SPACE_OF_CATALOG);
    SimNode *owner = sim_owner(&sim, 4);
    const CatalogPlacement *placement = cluster_placement(leader->cluster);
    assert_ok(placement->create(placement->ctx, 20, 3, 4, err));
    sim_run(&sim, 2000);
    for (StoreSpace space = 20; space < 23; space++)
        assert_true(cluster_serves(owner->cluster, space));
}

static void every_node_knows_who_serves_what(void **state)
{
    (void)state;
    begin(3, 2, 6);
    sim_run(&sim, 2000);
    for (StoreSpace space = 1; space <= 7; space++) {
        SimNode *owner = sim_owner(&sim, space);
        for (size_t i = 0; i < 3; i++) {
            ClusterOwner found = cluster_owner(sim.nodes[i].cluster, space);
            assert_true(found.is_known);
            assert_int_equal(found.is_local, owner == &sim.nodes[i]);
            assert_string_equal(found.node, owner->name);
            assert_string_equal(found.address, found.is_local ? "" : owner->address);
        }
    }
    assert_false(cluster_owner(sim.nodes[0].cluster, 99).is_known);
}

static void a_dead_nodes_spaces_are_taken_over_by_replicas(void **state)
{
    (void)state;
    begin(3, 3, 6);
    for (StoreSpace space = 2; space <= 7; space++) {
        assert_true(sim_write(sim_owner(&sim, space), space));
        assert_true(sim_write(sim_owner(&sim, space), space));
    }
    sim_run(&sim, 500);
    SimNode *victim = sim_owner(&sim, 3);
    sim_kill(victim);
    sim_run(&sim, 4000);
    assert_null(sim_owner(&sim, 3)); /* nobody may be sure yet */
    sim_run(&sim, 6000);
    sim_assert_all_served(&sim, 6);
    sim_assert_nothing_lost(&sim, 6);
}

static void the_catalogue_gets_another_leader(void **state)
{
    (void)state;
    begin(3, 3, 2);
    SimNode *leader = sim_owner(&sim, SPACE_OF_CATALOG);
    sim_kill(leader);
    sim_run(&sim, 10000);
    SimNode *next = sim_owner(&sim, SPACE_OF_CATALOG);
    assert_non_null(next);
    assert_true(next->leads);
    size_t done = sim.changes_done;
    assert_true(sim_change(next));
    sim_run(&sim, 500);
    assert_int_equal(sim.changes_done, done + 1);
}

static void a_paused_node_stops_answering_before_its_successor_begins(void **state)
{
    (void)state;
    begin(3, 3, 6);
    SimNode *victim = sim_owner(&sim, 2);
    victim->is_paused = true;
    bool has_lapsed = false;
    for (int i = 0; i < 100; i++) {
        sim_run(&sim, 100);
        SimNode *owner = sim_owner(&sim, 2);
        has_lapsed = has_lapsed || owner == NULL;
        assert_true(owner == victim || owner == NULL || has_lapsed);
    }
    SimNode *owner = sim_owner(&sim, 2);
    assert_non_null(owner);
    assert_ptr_not_equal(owner, victim);
    /* It wakes up and still believes to own the space: neither a write nor an answer is given. */
    uint64_t earlier = cluster_incarnation(victim->cluster);
    victim->is_paused = false;
    assert_false(sim_may_answer(victim, 2));
    assert_false(sim_write(victim, 2));
    sim_run(&sim, 5000);
    /* Its new lease is not about what it read before. */
    assert_true(sim_has_lease(victim));
    assert_false(cluster_lease_holds(victim->cluster, earlier));
    sim_assert_all_served(&sim, 6);
    assert_true(atomic_load(&victim->cluster->incarnation) > 3); /* it has joined anew */
    sim_assert_nothing_lost(&sim, 6);
}

static void a_short_pause_changes_no_owner(void **state)
{
    (void)state;
    begin(3, 3, 6);
    SimNode *victim = sim_owner(&sim, 2);
    for (int i = 0; i < 5; i++) {
        victim->is_paused = true;
        sim_run(&sim, 4000);
        victim->is_paused = false;
        sim_run(&sim, 1500);
        assert_ptr_equal(sim_owner(&sim, 2), victim);
    }
}

static void nobody_is_declared_dead_while_the_engine_is_away_for_all(void **state)
{
    (void)state;
    begin(3, 3, 6);
    SimNode *owners[8];
    for (StoreSpace space = 1; space <= 7; space++)
        owners[space] = sim_owner(&sim, space);
    memory_journal_set_down(sim.engine, true);
    sim_run(&sim, 30000);
    for (StoreSpace space = 1; space <= 7; space++)
        assert_null(sim_owner(&sim, space));
    memory_journal_set_down(sim.engine, false);
    sim_run(&sim, 10000);
    for (StoreSpace space = 1; space <= 7; space++)
        assert_ptr_equal(sim_owner(&sim, space), owners[space]);
}

static void a_node_without_the_engine_loses_its_spaces(void **state)
{
    (void)state;
    begin(3, 3, 6);
    SimNode *victim = sim_owner(&sim, 2);
    memory_journal_cut(victim->journal, true);
    sim_run(&sim, 10000);
    assert_non_null(sim_owner(&sim, 2));
    assert_ptr_not_equal(sim_owner(&sim, 2), victim);
    memory_journal_cut(victim->journal, false);
    sim_run(&sim, 20000);
    sim_assert_all_served(&sim, 6);
    sim_assert_nothing_lost(&sim, 6);
}

static void a_restart_under_the_same_name_takes_its_spaces_at_once(void **state)
{
    (void)state;
    begin(3, 3, 6);
    SimNode *node = sim_owner(&sim, 2);
    assert_true(sim_write(node, 2));
    sim_kill(node);
    Error failure;
    assert_true(sim_try_start(node, &failure));
    sim_run(&sim, 1500); /* less than a lease */
    assert_true(sim_may_answer(node, 2));
    sim_assert_all_served(&sim, 6);
    sim_assert_nothing_lost(&sim, 6);
}

static void two_processes_of_one_name_do_not_both_live(void **state)
{
    (void)state;
    begin(2, 2, 2);
    /* The same name with a folder of its own: the first lives, so the second is refused. */
    SimNode *second = &sim.nodes[2];
    *second = (SimNode){.sim = &sim};
    (void)snprintf(second->name, sizeof(second->name), "n0");
    (void)snprintf(second->address, sizeof(second->address), "10.0.0.9:1");
    test_folder_init(&second->data);
    fake_clock_init(&second->clock, 5000000000);
    static const uint8_t secret[JOURNAL_SECRET_BYTES] = {7};
    MemoryJournalOptions options = {.clock = clock_real()};
    memory_journal_open(sim.engine, secret, &options, &second->journal);
    sim.count = 3;
    Error failure;
    assert_false(sim_try_start(second, &failure));
    assert_int_equal(failure.status, STATUS_CONFLICT);

    /* A copy of the folder lets the second in; the first is out, and stays out. */
    char command[256];
    (void)snprintf(command, sizeof(command), "cp %s/CLUSTER %s/CLUSTER", sim.nodes[0].data.path,
                   second->data.path);
    assert_int_equal(system(command), 0); /* NOLINT: a copy, in a test */
    assert_true(sim_try_start(second, &failure));
    sim_run(&sim, 7000);
    assert_int_equal(sim_count_owned(&sim.nodes[0], 2), 0);
    assert_false(sim_has_lease(&sim.nodes[0]));
    sim_assert_all_served(&sim, 2);
    sim_run(&sim, 20000);
    assert_int_equal(sim_count_owned(&sim.nodes[0], 2), 0);
    sim_assert_all_served(&sim, 2);
}

static void a_move_hands_a_space_over_without_a_write_lost(void **state)
{
    (void)state;
    begin(3, 3, 3);
    sim_run(&sim, 2000);
    for (int i = 0; i < 20; i++) {
        SimNode *owner = sim_owner(&sim, 2);
        SimNode *to = sim_other_than(&sim, owner);
        assert_true(sim_write(owner, 2));
        assert_ok(
            cluster_order(owner->cluster, 2, slice_from_cstr(to->name), REASON_OPERATOR, err));
        sim_run(&sim, 2000);
        assert_ptr_equal(sim_owner(&sim, 2), to);
        assert_false(sim_write(owner, 2));
    }
    sim_assert_nothing_lost(&sim, 3);
}

static void a_hand_over_whose_answer_is_lost_is_finished(void **state)
{
    (void)state;
    begin(3, 3, 3);
    sim_run(&sim, 2000);
    static const MemoryJournalFault faults[] = {MEMORY_JOURNAL_LOSE_ANSWER,
                                                MEMORY_JOURNAL_LOSE_REQUEST, MEMORY_JOURNAL_DELAY};
    for (size_t i = 0; i < ARRAY_COUNT(faults); i++) {
        SimNode *owner = sim_owner(&sim, 2);
        SimNode *to = sim_other_than(&sim, owner);
        assert_ok(
            cluster_order(owner->cluster, 2, slice_from_cstr(to->name), REASON_OPERATOR, err));
        memory_journal_fail(owner->journal, JOURNAL_LANE_NODE, faults[i], 0, 3);
        manage_step(owner->cluster);
        sim_check_owners(&sim);
        memory_journal_fail(owner->journal, JOURNAL_LANE_NODE, MEMORY_JOURNAL_NO_FAULT, 0, 0);
        sim_run(&sim, 2000);
        while (memory_journal_delayed(sim.engine) > 0)
            (void)memory_journal_deliver(sim.engine, 0);
        sim_run(&sim, 2000);
        sim_assert_all_served(&sim, 3);
        SimNode *next = sim_owner(&sim, 2);
        assert_true(sim_write(next, 2));
    }
    sim_assert_nothing_lost(&sim, 3);
}

static void draining_a_node_moves_all_it_owns(void **state)
{
    (void)state;
    begin(3, 2, 9);
    SimNode *node = sim_owner(&sim, SPACE_OF_CATALOG);
    SimNode *other = sim_other_than(&sim, node);
    assert_ok(cluster_drain(other->cluster, slice_from_cstr(node->name), true, err));
    sim_run(&sim, 20000);
    assert_int_equal(sim_count_owned(node, 9), 0);
    sim_assert_all_served(&sim, 9);
    sim_assert_nothing_lost(&sim, 9);
    /* It still has the catalogue, and changes do not wait for it. */
    size_t done = sim.changes_done;
    assert_true(sim_change(sim_owner(&sim, SPACE_OF_CATALOG)));
    sim_run(&sim, 1000);
    assert_int_equal(sim.changes_done, done + 1);
    assert_int_equal(node->published, sim_place(node, SPACE_OF_CATALOG).applied.seq);
    Error failure;
    assert_int_equal(cluster_remove(other->cluster, slice_from_cstr(node->name), &failure),
                     STATUS_CONFLICT);
    cluster_end_membership(node->cluster);
    sim_kill(node);
    sim_run(&sim, 2000);
    assert_ok(cluster_remove(other->cluster, slice_from_cstr(node->name), err));
    assert_int_equal(cluster_remove(other->cluster, slice_from_cstr(node->name), &failure),
                     STATUS_NOT_FOUND);
    assert_int_equal(cluster_drain(other->cluster, slice_from_cstr("nobody"), true, &failure),
                     STATUS_NOT_FOUND);
}

static void a_node_that_leaves_is_followed_without_waiting(void **state)
{
    (void)state;
    begin(3, 3, 6);
    SimNode *node = sim_owner(&sim, 2);
    cluster_end_membership(node->cluster);
    sim_kill(node);
    sim_run(&sim, 2500);
    sim_assert_all_served(&sim, 6);
    sim_assert_nothing_lost(&sim, 6);
}

static void a_new_node_gets_its_share(void **state)
{
    (void)state;
    sim_init(&sim, 3, 2, 1);
    sim.count = 2;
    sim_begin(&sim, 9);
    sim.count = 3;
    Error failure;
    assert_true(sim_try_start(&sim.nodes[2], &failure));
    sim_run(&sim, 40000);
    sim_assert_all_served(&sim, 9);
    for (size_t i = 0; i < 3; i++)
        assert_in_range(sim_count_owned(&sim.nodes[i], 9), 3, 4);
    sim_assert_nothing_lost(&sim, 9);
}

static void spaces_that_share_a_budget_are_not_spread_one_by_one(void **state)
{
    (void)state;
    sim_init(&sim, 3, 2, 1);
    sim.count = 2;
    sim_begin(&sim, 9);
    sim.shared_from = 4; /* all but two */
    sim.count = 3;
    Error failure;
    assert_true(sim_try_start(&sim.nodes[2], &failure));
    sim_run(&sim, 40000);
    sim_assert_all_served(&sim, 9);
    for (StoreSpace space = 4; space <= 10; space++)
        assert_ptr_not_equal(sim_owner(&sim, space), &sim.nodes[2]);
    assert_in_range(sim_count_owned(&sim.nodes[2], 9), 1, 2);
}

static bool warns(const SimNode *node, const char *text)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice json;
    Error failure;
    return cluster_status(node->cluster, &arena, &json, &failure) == STATUS_OK &&
           strstr(arena_cstr(&arena, json), text) != NULL;
}

/* The other node is started when the log of space 2 does not reach back to its copy. */
static JournalOwner fall_behind(SimNode *owner, SimNode *other, Arena *arena)
{
    sim_run(&sim, 1000);
    sim_kill(other);
    for (int i = 0; i < 10; i++)
        assert_true(sim_write(owner, 2));
    sim_run(&sim, 8000);
    assert_ok(
        journal_expel(owner->journal, JOURNAL_LANE_ADMIN, 2, slice_from_cstr(other->name), err));
    sim_run(&sim, 25000); /* the owner trims */
    const JournalOwner *row;
    size_t found;
    uint64_t space = 2;
    assert_ok(
        journal_owners(owner->journal, JOURNAL_LANE_ADMIN, &space, 1, arena, &row, &found, err));
    assert_int_equal(row[0].base, 10);
    Error failure;
    assert_true(sim_try_start(other, &failure));
    return row[0];
}

static void a_copy_that_is_far_behind_is_seeded(void **state)
{
    (void)state;
    begin(3, 3, 2);
    SimNode *owner = sim_owner(&sim, 2);
    SimNode *other = sim_other_than(&sim, owner);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    (void)fall_behind(owner, other, &arena);
    sim_run(&sim, 10000);
    const SimCopy *copy = sim_copy(other, 2);
    assert_non_null(copy);
    assert_int_equal(copy->place.seq, 10);
    sim_assert_nothing_lost(&sim, 2);
}

/* It finds that when it takes the space, which its follower has not come to yet. */
static void an_owner_whose_copy_is_far_behind_is_seeded(void **state)
{
    (void)state;
    begin(3, 3, 2);
    SimNode *owner = sim_owner(&sim, 2);
    SimNode *other = sim_other_than(&sim, owner);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    JournalOwner row = fall_behind(owner, other, &arena);
    other->is_stuck = true;
    sim_copy(owner, 2)->role = SPACE_FOLLOWED;
    Error lost = {.status = STATUS_NOT_OWNER};
    owner->hooks.lost(owner->hooks.ctx, 2, &lost);
    bool done = false;
    assert_ok(journal_hand_over(owner->journal, 2, &row.tail, slice_from_cstr(other->name),
                                other->cluster->incarnation, &done, err));
    assert_true(done);
    sim_run(&sim, 20000);
    other->is_stuck = false;
    assert_ptr_equal(sim_owner(&sim, 2), other);
    assert_true(sim_write(other, 2));
    sim_assert_nothing_lost(&sim, 2);
}

static void nothing_is_trimmed_that_only_the_owner_has(void **state)
{
    (void)state;
    begin(1, 3, 1);
    for (int i = 0; i < 10; i++)
        assert_true(sim_write(&sim.nodes[0], 2));
    sim_run(&sim, 30000);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    const JournalOwner *row;
    size_t found;
    uint64_t space = 2;
    assert_ok(journal_owners(sim.nodes[0].journal, JOURNAL_LANE_ADMIN, &space, 1, &arena, &row,
                             &found, err));
    assert_int_equal(row[0].base, 0);
}

/* As the catalogue does it: the rows go, and a record says that nothing names the spaces. */
static void drop_spaces(SimNode *leader, StoreSpace first, StoreSpace last)
{
    const CatalogPlacement *placement = cluster_placement(leader->cluster);
    placement->dropped(placement->ctx, first, last);
    for (StoreSpace space = first; space <= last; space++)
        sim.dropped_at[space] = sim_place(leader, SPACE_OF_CATALOG).applied.seq + 1;
    assert_true(sim_change(leader));
}

static void dropped_spaces_vanish_from_all_nodes(void **state)
{
    (void)state;
    begin(3, 3, 6);
    drop_spaces(sim_owner(&sim, SPACE_OF_CATALOG), 3, 5);
    sim_run(&sim, 4000);
    for (StoreSpace space = 2; space <= 7; space++) {
        bool is_dropped = space >= 3 && space <= 5;
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(sim_copy(&sim.nodes[i], space) == NULL, is_dropped);
        assert_int_equal(sim_owner(&sim, space) == NULL, is_dropped);
    }
}

static void a_node_that_was_away_forgets_what_was_dropped(void **state)
{
    (void)state;
    begin(3, 3, 6);
    SimNode *leader = sim_owner(&sim, SPACE_OF_CATALOG);
    SimNode *other = sim_other_than(&sim, leader);
    assert_true(sim_write(sim_owner(&sim, 3), 3));
    sim_run(&sim, 1000);
    sim_kill(other);
    sim_run(&sim, 10000);
    drop_spaces(leader, 3, 3);
    sim_run(&sim, 2000);
    Error failure;
    assert_non_null(sim_copy(other, 3));
    assert_true(sim_try_start(other, &failure));
    sim_run(&sim, 3000);
    assert_null(sim_copy(other, 3));
    assert_non_null(sim_copy(other, 4));
}

/* A copy of the append may still come, for as long as the epoch lasts. */
static void a_space_whose_append_fails_while_it_is_given_away_gets_another_epoch(void **state)
{
    (void)state;
    begin(3, 3, 3);
    sim_run(&sim, 2000);
    SimNode *owner = sim_owner(&sim, 2);
    uint64_t epoch = sim_copy(owner, 2)->epoch;
    assert_true(sim_write(owner, 2));
    owner->loses_what_it_yields = true;
    SimNode *to = sim_other_than(&sim, owner);
    assert_ok(cluster_order(owner->cluster, 2, slice_from_cstr(to->name), REASON_OPERATOR, err));
    sim_run(&sim, 6000);
    assert_false(owner->loses_what_it_yields);
    SimNode *next = sim_owner(&sim, 2);
    assert_non_null(next);
    assert_true(sim_write(next, 2));
    assert_true(sim_copy(next, 2)->epoch > epoch);
    sim_assert_nothing_lost(&sim, 3);
}

static void a_node_whose_disk_is_damaged_gives_all_it_owns_away(void **state)
{
    (void)state;
    begin(3, 3, 6);
    SimNode *node = sim_owner(&sim, 2);
    SimNode *other = sim_other_than(&sim, node);
    node->is_damaged = true;
    sim_run(&sim, 20000);
    assert_int_equal(sim_count_owned(node, 6), 0);
    sim_assert_all_served(&sim, 6);
    sim_assert_nothing_lost(&sim, 6);
    /* Also when it begins again: the damage is still there. */
    sim_kill(node);
    Error failure;
    assert_true(sim_try_start(node, &failure));
    sim_run(&sim, 20000);
    assert_int_equal(sim_count_owned(node, 6), 0);
    /* An operator may decide otherwise. */
    assert_ok(cluster_drain(other->cluster, slice_from_cstr(node->name), false, err));
    sim_run(&sim, 30000);
    assert_true(sim_count_owned(node, 6) > 0);
}

static void a_copy_that_cannot_be_dropped_goes_later(void **state)
{
    (void)state;
    begin(3, 3, 6);
    SimNode *leader = sim_owner(&sim, SPACE_OF_CATALOG);
    SimNode *other = sim_other_than(&sim, leader);
    other->cannot_forget = true;
    drop_spaces(leader, 3, 5);
    sim_run(&sim, 12000);
    assert_non_null(sim_copy(other, 4));
    other->cannot_forget = false;
    sim_run(&sim, 6000);
    for (StoreSpace space = 3; space <= 5; space++)
        assert_null(sim_copy(other, space));
    assert_non_null(sim_copy(other, 6));
}

/* The engine is restored from a backup that is older than a container. */
static void copies_that_the_engine_has_forgotten_are_kept(void **state)
{
    (void)state;
    begin(2, 2, 2);
    memory_journal_backup(sim.engine);
    SimNode *leader = sim_owner(&sim, SPACE_OF_CATALOG);
    const CatalogPlacement *placement = cluster_placement(leader->cluster);
    assert_ok(placement->create(placement->ctx, 4, 2, 0, err));
    assert_true(sim_change(leader));
    sim_run(&sim, 2000);
    memory_journal_restore(sim.engine);
    sim_run(&sim, 20000);
    for (size_t i = 0; i < 2; i++) {
        for (StoreSpace space = 4; space <= 5; space++)
            assert_non_null(sim_copy(&sim.nodes[i], space));
        assert_true(warns(&sim.nodes[i], "does not know 2 partitions"));
    }
}

static void a_log_that_has_lost_entries_is_not_served(void **state)
{
    (void)state;
    begin(2, 2, 2);
    SimNode *owner = sim_owner(&sim, 2);
    assert_true(sim_write(owner, 2));
    memory_journal_backup(sim.engine);
    assert_true(sim_write(owner, 2));
    assert_true(sim_write(owner, 2));
    sim_run(&sim, 1000);
    memory_journal_restore(sim.engine);
    assert_false(sim_write(owner, 2));
    for (int i = 0; i < 100; i++) {
        sim_run(&sim, 300);
        assert_null(sim_owner(&sim, 2));
    }
    ClusterEvent events[CLUSTER_EVENTS_MAX];
    size_t count = cluster_events(owner->cluster, events, CLUSTER_EVENTS_MAX);
    bool is_told = false;
    for (size_t i = 0; i < count; i++)
        is_told = is_told || (strcmp(events[i].kind, "engineLost") == 0 && events[i].space == 2);
    assert_true(is_told);
    assert_non_null(sim_owner(&sim, 3)); /* others go on */
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice json;
    assert_ok(cluster_status(owner->cluster, &arena, &json, err));
    assert_non_null(strstr(arena_cstr(&arena, json), "lost acknowledged writes"));

    Error failure;
    assert_int_equal(cluster_recover(owner->cluster, 3, &failure), STATUS_NOT_FOUND);
    for (size_t i = 0; i < 2; i++)
        assert_ok(cluster_recover(sim.nodes[i].cluster, 0, err));
    sim_run(&sim, 10000);
    SimNode *next = sim_owner(&sim, 2);
    assert_non_null(next);
    assert_int_equal(sim_place(next, 2).applied.seq, 1);
    assert_true(sim_write(next, 2));
}

static void replicas_of_a_node_that_is_dead_for_long_are_expelled(void **state)
{
    (void)state;
    begin(3, 3, 2);
    SimNode *owner = sim_owner(&sim, 2);
    SimNode *other = sim_other_than(&sim, owner);
    sim_run(&sim, 1000);
    sim_kill(other);
    assert_true(sim_write(owner, 2));
    uint64_t space = 2;
    bool is_expelled = false;
    uint64_t base = 0;
    for (int minutes = 0; minutes < 20; minutes++) {
        for (size_t i = 0; i < 60; i++)
            sim_run(&sim, 1000);
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        const JournalOwner *row;
        size_t found;
        assert_ok(journal_owners(owner->journal, JOURNAL_LANE_ADMIN, &space, 1, &arena, &row,
                                 &found, err));
        base = row[0].base;
        const JournalReplica *replicas;
        size_t count;
        assert_ok(
            journal_replicas(owner->journal, JOURNAL_LANE_ADMIN, &arena, &replicas, &count, err));
        is_expelled = false;
        for (size_t i = 0; i < count; i++)
            is_expelled =
                is_expelled || (replicas[i].space == 2 &&
                                slice_equal(replicas[i].node, slice_from_cstr(other->name)) &&
                                replicas[i].state == REPLICA_EXPELLED);
        if (minutes < 14) /* the log waits for it */
            assert_true(!is_expelled && base == 0);
    }
    assert_true(is_expelled);
    assert_int_equal(base, 1);
}

static void a_node_that_most_others_cannot_reach_gives_its_spaces_up(void **state)
{
    (void)state;
    begin(3, 3, 6);
    SimNode *node = sim_owner(&sim, 2);
    sim_run(&sim, 2000);
    node->is_unreachable = true;
    sim_run(&sim, 15000);
    assert_int_equal(sim_count_owned(node, 6), 0);
    sim_assert_all_served(&sim, 6);
}

static void two_nodes_that_do_not_reach_each_other_keep_their_spaces(void **state)
{
    (void)state;
    begin(2, 2, 4);
    sim.nodes[0].is_unreachable = sim.nodes[1].is_unreachable = true;
    sim_run(&sim, 15000);
    sim_assert_all_served(&sim, 4);
    assert_true(sim_count_owned(&sim.nodes[0], 4) > 0);
    assert_true(sim_count_owned(&sim.nodes[1], 4) > 0);
}

static void a_space_whose_append_has_failed_is_served_in_another_epoch(void **state)
{
    (void)state;
    begin(3, 3, 3);
    SimNode *owner = sim_owner(&sim, 2);
    assert_true(sim_write(owner, 2));
    sim_run(&sim, 1000);
    /* The outcome of an append is unknown, or RocksDB has refused what the journal has. */
    sim_copy(owner, 2)->role = SPACE_FOLLOWED;
    Error refused = {.status = STATUS_NOT_OWNER};
    owner->hooks.lost(owner->hooks.ctx, 2, &refused);
    assert_false(sim_may_answer(owner, 2));
    sim_run(&sim, 5000);
    SimNode *next = sim_owner(&sim, 2);
    assert_non_null(next);
    assert_true(sim_write(next, 2));
    assert_true(sim_place(next, 2).applied.epoch > 1);
    sim_assert_nothing_lost(&sim, 3);
}

/* What the store has sent in that epoch may still come. */
static void a_space_that_is_lost_while_it_is_given_away_is_served_in_another_epoch(void **state)
{
    (void)state;
    for (int leaves = 0; leaves < 2; leaves++) {
        begin(2, 2, 3);
        SimNode *owner = sim_owner(&sim, 2);
        SimNode *other = sim_other_than(&sim, owner);
        uint64_t epoch = sim_copy(owner, 2)->epoch;
        owner->loses_what_it_stops = true;
        if (leaves == 0)
            assert_ok(cluster_order(owner->cluster, 2, slice_from_cstr(other->name),
                                    REASON_OPERATOR, err));
        else
            drop_space(owner->cluster, 2, "a test says so");
        sim_run(&sim, 300);
        owner->loses_what_it_stops = false;
        sim_run(&sim, 10000);
        SimNode *next = sim_owner(&sim, 2);
        assert_non_null(next);
        assert_true(sim_copy(next, 2)->epoch > epoch);
        assert_true(sim_write(next, 2));
        sim_assert_nothing_lost(&sim, 3);
        if (leaves == 0)
            sim_done(&sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(one_node_owns_everything),
        CASE(new_spaces_are_dealt_out_evenly),
        CASE(spaces_beside_another_go_to_its_owner),
        CASE(every_node_knows_who_serves_what),
        CASE(a_dead_nodes_spaces_are_taken_over_by_replicas),
        CASE(the_catalogue_gets_another_leader),
        CASE(a_paused_node_stops_answering_before_its_successor_begins),
        CASE(a_short_pause_changes_no_owner),
        CASE(nobody_is_declared_dead_while_the_engine_is_away_for_all),
        CASE(a_node_without_the_engine_loses_its_spaces),
        CASE(a_restart_under_the_same_name_takes_its_spaces_at_once),
        CASE(two_processes_of_one_name_do_not_both_live),
        CASE(a_move_hands_a_space_over_without_a_write_lost),
        CASE(a_hand_over_whose_answer_is_lost_is_finished),
        CASE(draining_a_node_moves_all_it_owns),
        CASE(a_node_that_leaves_is_followed_without_waiting),
        CASE(a_new_node_gets_its_share),
        CASE(spaces_that_share_a_budget_are_not_spread_one_by_one),
        CASE(a_copy_that_is_far_behind_is_seeded),
        CASE(an_owner_whose_copy_is_far_behind_is_seeded),
        CASE(nothing_is_trimmed_that_only_the_owner_has),
        CASE(dropped_spaces_vanish_from_all_nodes),
        CASE(a_node_that_was_away_forgets_what_was_dropped),
        CASE(a_space_whose_append_fails_while_it_is_given_away_gets_another_epoch),
        CASE(a_node_whose_disk_is_damaged_gives_all_it_owns_away),
        CASE(a_copy_that_cannot_be_dropped_goes_later),
        CASE(copies_that_the_engine_has_forgotten_are_kept),
        CASE(a_log_that_has_lost_entries_is_not_served),
        CASE(replicas_of_a_node_that_is_dead_for_long_are_expelled),
        CASE(a_node_that_most_others_cannot_reach_gives_its_spaces_up),
        CASE(two_nodes_that_do_not_reach_each_other_keep_their_spaces),
        CASE(a_space_whose_append_has_failed_is_served_in_another_epoch),
        CASE(a_space_that_is_lost_while_it_is_given_away_is_served_in_another_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
