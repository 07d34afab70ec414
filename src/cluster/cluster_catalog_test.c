/* cluster_catalog_test.c - changes of the catalogue: for whom they wait, and who may answer without
 * them (nobody). cluster_testing_int.h has the nodes. */
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

static bool warns(const SimNode *node, const char *text)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice json;
    Error failure;
    return cluster_status(node->cluster, &arena, &json, &failure) == STATUS_OK &&
           strstr(arena_cstr(&arena, json), text) != NULL;
}

static void a_change_of_the_catalogue_waits_for_every_living_node(void **state)
{
    (void)state;
    begin(3, 3, 2);
    SimNode *leader = sim_owner(&sim, SPACE_OF_CATALOG);
    SimNode *paused = sim_other_than(&sim, leader);
    paused->is_paused = true;
    size_t done = sim.changes_done;
    assert_true(sim_change(leader));
    sim_run(&sim, 3000);
    assert_int_equal(sim.changes_done, done);
    paused->is_paused = false;
    sim_run(&sim, 1500);
    assert_int_equal(sim.changes_done, done + 1);
    uint64_t seq = sim_place(leader, SPACE_OF_CATALOG).applied.seq;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(sim.nodes[i].published, seq);
}

static void a_change_of_the_catalogue_waits_until_a_dead_nodes_spaces_are_others(void **state)
{
    (void)state;
    begin(3, 3, 6);
    SimNode *leader = sim_owner(&sim, SPACE_OF_CATALOG);
    SimNode *paused = sim_other_than(&sim, leader);
    paused->is_paused = true;
    size_t done = sim.changes_done;
    assert_true(sim_change(leader));
    for (int i = 0; i < 200 && sim.changes_done == done; i++) {
        sim_run(&sim, 100);
        for (StoreSpace space = 2; space <= 7 && sim.changes_done > done; space++)
            assert_false(sim_may_answer(paused, space));
    }
    assert_int_equal(sim.changes_done, done + 1);
    paused->is_paused = false;
    for (StoreSpace space = 2; space <= 7; space++)
        assert_false(sim_write(paused, space));
}

/* A call that makes another change of the catalogue, once. */
static SimNode *changing;

static Status call_and_change(void *ctx, ClusterCall *call, Error *err)
{
    SimNode *leader = TAKE(changing);
    if (leader != NULL)
        assert_true(sim_change(leader));
    return sim_call(ctx, call, err);
}

/* The other node does not count yet, as it is joining. It may begin to answer with what the
 * catalogue had when it was read. */
static void a_change_that_comes_while_others_are_asked_waits_for_the_next_time(void **state)
{
    (void)state;
    begin(2, 2, 2);
    SimNode *leader = sim_owner(&sim, SPACE_OF_CATALOG);
    SimNode *joining = sim_other_than(&sim, leader);
    atomic_store(&joining->cluster->catalog_done, 0);
    lease_step(joining->cluster);
    size_t done = sim.changes_done;
    assert_true(sim_change(leader));
    changing = leader;
    leader->cluster->call = call_and_change;
    barrier_step(leader->cluster);
    assert_null(changing);
    assert_int_equal(sim.changes_done, done + 1);
    barrier_step(leader->cluster);
    assert_int_equal(sim.changes_done, done + 2);
}

static Status own_slowly(void *ctx, StoreSpace space, const JournalPlace *tail,
                         uint64_t deadline_us, Error *err)
{
    sleep_ms(100);
    return sim_own(ctx, space, tail, deadline_us, err);
}

static void *run_manager(void *arg)
{
    JournalPlace tail = {.epoch = 1};
    own_space(arg, 20, &tail, "assigned");
    return NULL;
}

/* Its row is there before the catalogue's thread gets to it. */
static void a_new_space_that_the_manager_has_found_is_waited_for(void **state)
{
    (void)state;
    begin(1, 1, 1);
    Cluster *cluster = sim.nodes[0].cluster;
    const CatalogPlacement *placement = cluster_placement(cluster);
    cluster->store.own = own_slowly;
    pthread_t manager;
    assert_int_equal(pthread_create(&manager, NULL, run_manager, cluster), 0);
    for (bool is_taking = false; !is_taking; sleep_ms(1)) {
        (void)pthread_mutex_lock(&cluster->lock);
        const SpaceSlot *slot = space_table_find(&cluster->spaces, 20);
        is_taking = slot != NULL && slot->state == SPACE_STATE_TAKING;
        (void)pthread_mutex_unlock(&cluster->lock);
    }
    assert_ok(placement->create(placement->ctx, 20, 1, 0, err));
    assert_true(cluster_serves(cluster, 20));
    assert_int_equal(pthread_join(manager, NULL), 0);
}

/* It renews all the time, so nobody else would find that it hangs. */
static void a_node_that_does_not_get_the_catalogue_steps_aside(void **state)
{
    (void)state;
    for (int is_stuck = 0; is_stuck < 2; is_stuck++) {
        begin(3, 3, 6);
        SimNode *leader = sim_owner(&sim, SPACE_OF_CATALOG);
        SimNode *other = sim_other_than(&sim, leader);
        other->cannot_refresh = is_stuck == 0;
        other->is_stuck = is_stuck == 1;
        size_t done = sim.changes_done;
        assert_true(sim_change(leader));
        for (int ms = 0; ms < 30000 && sim.changes_done == done; ms += 100)
            sim_run(&sim, 100);
        assert_int_equal(sim.changes_done, done + 1);
        for (int i = 0; i < 60; i++) {
            assert_false(sim_has_lease(other));
            sim_run(&sim, 500);
            assert_false(sim_has_lease(other));
            if (i % 10 == 0)
                assert_true(sim_change(sim_owner(&sim, SPACE_OF_CATALOG)));
            sim_run(&sim, 500);
        }
        assert_int_equal(sim.changes_done, done + 7);
        sim_assert_all_served(&sim, 6);
        assert_true(warns(other, "newest changes of the catalogue"));
        other->cannot_refresh = other->is_stuck = false;
        sim_run(&sim, 3000);
        assert_true(sim_has_lease(other));
        assert_int_equal(other->published, sim_place(leader, SPACE_OF_CATALOG).applied.seq);
        assert_false(warns(other, "newest changes of the catalogue"));
        sim_assert_nothing_lost(&sim, 6);
        if (is_stuck == 0)
            sim_done(&sim);
    }
}

/* The engine was away for longer than that: nobody could read the catalogue. */
static void an_engine_that_is_away_makes_no_node_step_aside(void **state)
{
    (void)state;
    begin(3, 3, 6);
    SimNode *leader = sim_owner(&sim, SPACE_OF_CATALOG);
    SimNode *other = sim_other_than(&sim, leader);
    uint64_t incarnation = cluster_incarnation(other->cluster);
    other->is_stuck = true;
    assert_true(sim_change(leader));
    sim_run(&sim, 5000);
    memory_journal_set_down(sim.engine, true);
    sim_run(&sim, 60000);
    memory_journal_set_down(sim.engine, false);
    sim_run(&sim, 2000);
    other->is_stuck = false;
    sim_run(&sim, 3000);
    assert_int_equal(cluster_incarnation(other->cluster), incarnation);
    assert_int_equal(sim.changes_done, 3);
}

/* What was answered while it was dead, it knows before it answers anything. */
static void a_node_that_comes_back_has_the_catalogue_before_its_lease(void **state)
{
    (void)state;
    begin(3, 3, 2);
    SimNode *leader = sim_owner(&sim, SPACE_OF_CATALOG);
    SimNode *other = sim_other_than(&sim, leader);
    other->is_paused = true;
    sim_run(&sim, 15000);
    size_t done = sim.changes_done;
    assert_true(sim_change(leader));
    sim_run(&sim, 1000);
    assert_int_equal(sim.changes_done, done + 1);
    other->is_paused = false;
    other->is_stuck = true;
    for (int i = 0; i < 50; i++) {
        sim_run(&sim, 200);
        assert_false(sim_has_lease(other));
    }
    other->is_stuck = false;
    sim_run(&sim, 3000);
    assert_true(sim_has_lease(other));
}

/* By its older map the partition may be one that a split has replaced. */
static void a_space_is_served_only_with_the_newest_catalogue(void **state)
{
    (void)state;
    begin(3, 3, 3);
    sim_run(&sim, 2000);
    SimNode *leader = sim_owner(&sim, SPACE_OF_CATALOG);
    StoreSpace space = 2;
    while (sim_owner(&sim, space) != leader)
        space++;
    SimNode *to = sim_other_than(&sim, leader);
    to->is_stuck = true;
    assert_true(sim_change(leader));
    assert_ok(
        cluster_order(leader->cluster, space, slice_from_cstr(to->name), REASON_OPERATOR, err));
    sim_run(&sim, 3000);
    assert_null(sim_owner(&sim, space));
    assert_false(sim_write(to, space));
    to->is_stuck = false;
    sim_run(&sim, 2000);
    assert_ptr_equal(sim_owner(&sim, space), to);
    assert_true(sim_write(to, space));
}

/* The manager would wait for all nodes, and with it nobody would find that one of them is dead. */
static void a_space_whose_map_changes_is_given_away_later(void **state)
{
    (void)state;
    begin(3, 3, 3);
    sim_run(&sim, 2000);
    SimNode *owner = sim_owner(&sim, 2);
    SimNode *to = sim_other_than(&sim, owner);
    owner->switching = 2;
    assert_ok(cluster_order(owner->cluster, 2, slice_from_cstr(to->name), REASON_OPERATOR, err));
    sim_run(&sim, 3000);
    assert_ptr_equal(sim_owner(&sim, 2), owner);
    assert_true(sim_write(owner, 2));
    owner->switching = 0;
    sim_run(&sim, 2000);
    assert_ptr_equal(sim_owner(&sim, 2), to);
}

/* What the catalogue finds while it begins to lead: it has not published the newest changes yet. */
static bool was_published;

static Status lead_and_look(void *ctx, Error *err)
{
    SimNode *node = ctx;
    JournalOwner row = {.space = SPACE_OF_CATALOG};
    assert_true(sim_tail(node, SPACE_OF_CATALOG, &row.tail));
    assert_true(cluster_serves(node->cluster, SPACE_OF_CATALOG));
    was_published = catalog_is_published(node->cluster, &row, 1);
    return sim_lead(ctx, err);
}

static void a_new_leader_has_not_published_what_it_still_loads(void **state)
{
    (void)state;
    begin(2, 2, 2);
    sim_run(&sim, 2000);
    SimNode *leader = sim_owner(&sim, SPACE_OF_CATALOG);
    SimNode *next = sim_other_than(&sim, leader);
    next->cluster->catalog.lead = lead_and_look;
    next->is_stuck = true; /* until it owns the space */
    assert_true(sim_change(leader));
    assert_ok(cluster_order(leader->cluster, SPACE_OF_CATALOG, slice_from_cstr(next->name),
                            REASON_OPERATOR, err));
    was_published = true;
    sim_run(&sim, 2000);
    assert_ptr_equal(sim_owner(&sim, SPACE_OF_CATALOG), next);
    assert_false(was_published);
    JournalOwner row = {.space = SPACE_OF_CATALOG};
    assert_true(sim_tail(next, SPACE_OF_CATALOG, &row.tail));
    assert_true(catalog_is_published(next->cluster, &row, 1));
}

/* A call that lets a move reach its end meanwhile. */
static SimNode *about_to_switch;

static Status call_and_switch(void *ctx, ClusterCall *call, Error *err)
{
    about_to_switch->switching = 2;
    return sim_call(ctx, call, err);
}

/* Other nodes are asked before a space is given away, which takes long enough for that. */
static void a_space_whose_map_begins_to_change_meanwhile_is_given_away_later(void **state)
{
    (void)state;
    begin(3, 3, 3);
    sim_run(&sim, 2000);
    SimNode *owner = sim_owner(&sim, 2);
    SimNode *to = sim_other_than(&sim, owner);
    assert_ok(cluster_order(owner->cluster, 2, slice_from_cstr(to->name), REASON_OPERATOR, err));
    about_to_switch = owner;
    owner->cluster->call = call_and_switch;
    manage_step(owner->cluster);
    assert_int_equal(owner->switching, 2);
    owner->cluster->call = sim_call;
    assert_ptr_equal(sim_owner(&sim, 2), owner);
    assert_true(sim_write(owner, 2));
    owner->switching = 0;
    sim_run(&sim, 2000);
    assert_ptr_equal(sim_owner(&sim, 2), to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_space_is_served_only_with_the_newest_catalogue),
        CASE(a_space_whose_map_changes_is_given_away_later),
        CASE(a_new_leader_has_not_published_what_it_still_loads),
        CASE(a_space_whose_map_begins_to_change_meanwhile_is_given_away_later),
        CASE(a_change_of_the_catalogue_waits_for_every_living_node),
        CASE(a_change_of_the_catalogue_waits_until_a_dead_nodes_spaces_are_others),
        CASE(a_change_that_comes_while_others_are_asked_waits_for_the_next_time),
        CASE(a_new_space_that_the_manager_has_found_is_waited_for),
        CASE(a_node_that_does_not_get_the_catalogue_steps_aside),
        CASE(an_engine_that_is_away_makes_no_node_step_aside),
        CASE(a_node_that_comes_back_has_the_catalogue_before_its_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
