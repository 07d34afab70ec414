/* cluster_model_test.c - random lives of a cluster: processes that end, pause and come back, nodes
 * that are cut from the engine or from each other, an engine that fails, statements that are lost
 * or late, moves, drains, changes of the catalogue, and writes all the time.
 *
 * At every step at most one node may answer for a space. When all is well again, everything is
 * served, spaces that share a budget by one node, each write that was acknowledged is there, and
 * copies are equal. In some lives the engine then loses what it had acknowledged since a backup: a
 * copy that has more is refused and told of, until an operator accepts the loss, and nothing else
 * is gone. */
#include "cluster/cluster_testing_int.h"

enum { NODES = 4, SPACES = 6, SHARED_FROM = 4, BUDGETS = 2, STEPS = 150, LIVES = 12 };

static Sim sim;

static SimNode *any_node(void)
{
    return &sim.nodes[random_below(&sim.random, sim.count)];
}

static size_t count_running(void)
{
    size_t count = 0;
    for (size_t i = 0; i < sim.count; i++)
        count += sim.nodes[i].cluster != NULL && !sim.nodes[i].is_paused;
    return count;
}

static void write_somewhere(void)
{
    for (int i = 0; i < 4; i++) {
        StoreSpace space = 2 + random_below(&sim.random, SPACES);
        SimNode *node = any_node(); /* perhaps one that only believes to own it */
        if (node->cluster != NULL && !node->is_paused && sim_serves(node, space))
            (void)sim_write(node, space);
    }
}

static void change_catalogue(void)
{
    for (size_t i = 0; i < sim.count; i++) {
        SimNode *node = &sim.nodes[i];
        if (node->cluster != NULL && !node->is_paused && node->leads)
            (void)sim_change(node);
    }
}

static void order_move(void)
{
    SimNode *node = any_node();
    Error failure;
    if (node->cluster == NULL || node->is_paused)
        return;
    Status status = cluster_order(node->cluster, 1 + random_below(&sim.random, SPACES + 1),
                                  slice_from_cstr(any_node()->name), REASON_OPERATOR, &failure);
    assert_int_equal(status, STATUS_OK);
}

static void order_drain(void)
{
    SimNode *node = any_node();
    Error failure;
    if (node->cluster == NULL || node->is_paused)
        return;
    Status status = cluster_drain(node->cluster, slice_from_cstr(any_node()->name),
                                  random_below(&sim.random, 3) == 0, &failure);
    assert_true(status == STATUS_OK || status == STATUS_NOT_FOUND || status == STATUS_UNAVAILABLE ||
                status == STATUS_THROTTLED);
}

static void disturb_node(void)
{
    SimNode *node = any_node();
    Error failure;
    switch (random_below(&sim.random, 8)) {
    case 0:
        if (count_running() > 2)
            sim_kill(node);
        break;
    case 1:
    case 2:
        if (node->cluster == NULL)
            (void)sim_try_start(node, &failure);
        break;
    case 3:
        node->is_paused = node->cluster != NULL && !node->is_paused && count_running() > 2;
        break;
    case 4:
        node->is_paused = false;
        break;
    case 5:
        memory_journal_cut(node->journal, random_below(&sim.random, 2) == 0);
        break;
    case 6:
        node->is_unreachable = random_below(&sim.random, 2) == 0;
        break;
    default:
        if (node->cluster != NULL && count_running() > 2) { /* it leaves on purpose */
            cluster_end_membership(node->cluster);
            sim_kill(node);
        }
        break;
    }
}

static void disturb_engine(void)
{
    static const MemoryJournalChaos chaos = {
        .lose_request = 20, .lose_answer = 20, .delay = 10, .refuse = 20, .deliver = 100};
    switch (random_below(&sim.random, 9)) {
    case 0:
        memory_journal_set_down(sim.engine, true);
        break;
    case 1:
    case 2:
        memory_journal_set_down(sim.engine, false);
        break;
    case 3:
        memory_journal_crash_restart(sim.engine);
        break;
    case 4:
        memory_journal_promote(sim.engine);
        break;
    case 5:
        memory_journal_set_standby(sim.engine, false);
        break;
    case 6:
    case 7:
        memory_journal_set_standby(sim.engine, true);
        break;
    default:
        memory_journal_set_chaos(sim.engine, random_below(&sim.random, 2) == 0 ? &chaos : NULL);
        break;
    }
}

static void step(void)
{
    switch (random_below(&sim.random, 12)) {
    case 0:
        disturb_node();
        break;
    case 1:
        if (random_below(&sim.random, 4) == 0)
            disturb_engine();
        break;
    case 2:
        order_move();
        break;
    case 3:
        if (random_below(&sim.random, 4) == 0)
            order_drain();
        break;
    case 4:
        change_catalogue();
        break;
    case 5:
        if (random_below(&sim.random, 4) == 0) {
            SimNode *node = any_node(); /* its wall clock is set */
            fake_clock_set_wall(&node->clock,
                                clock_wall_us(&node->clock.clock) + UINT64_C(100000000));
        }
        break;
    default:
        break;
    }
    write_somewhere();
    sim_run(&sim, 100 + random_below(&sim.random, 8) * 100);
}

static void heal(void)
{
    memory_journal_set_chaos(sim.engine, NULL);
    memory_journal_set_down(sim.engine, false);
    memory_journal_set_standby(sim.engine, true);
    while (memory_journal_delayed(sim.engine) > 0) {
        (void)memory_journal_deliver(sim.engine, 0);
        sim_check_owners(&sim);
    }
    for (size_t i = 0; i < sim.count; i++) {
        SimNode *node = &sim.nodes[i];
        node->is_paused = node->is_unreachable = false;
        memory_journal_cut(node->journal, false);
    }
    sim_run(&sim, 10000);
    for (size_t i = 0; i < sim.count; i++) {
        Error failure;
        SimNode *node = &sim.nodes[i];
        if (node->cluster == NULL && !sim_try_start(node, &failure))
            fail_msg("%s does not start: %s", node->name, failure.message);
    }
    sim_run(&sim, 10000);
    for (size_t i = 0; i < sim.count; i++)
        assert_ok(
            cluster_drain(sim.nodes[0].cluster, slice_from_cstr(sim.nodes[i].name), false, err));
    sim_run(&sim, 30000);
}

static void check_all(void)
{
    for (StoreSpace space = 1; space <= SPACES + 1; space++) {
        SimNode *owner = sim_owner(&sim, space);
        if (owner == NULL)
            fail_msg("nobody serves space %d", (int)space);
        const SimCopy *copy = sim_copy(owner, space);
        if (sim.unsure[space] == 0 ? copy->sum != sim.written[space]
                                   : copy->sum < sim.written[space])
            fail_msg("space %d: %llu were written, %llu are there", (int)space,
                     (unsigned long long)sim.written[space], (unsigned long long)copy->sum);
        size_t copies = 0;
        for (size_t i = 0; i < sim.count; i++) {
            const SimCopy *other = sim_copy(&sim.nodes[i], space);
            if (other == NULL)
                continue;
            copies++;
            assert_int_equal(other->place.seq, copy->place.seq);
            assert_memory_equal(&other->place.chain, &copy->place.chain, sizeof(JournalChain));
            assert_int_equal(other->sum, copy->sum);
        }
        assert_true(copies >= sim.replicas);
        if (space >= SHARED_FROM + BUDGETS && sim_owner(&sim, space - BUDGETS) != owner)
            fail_msg("spaces %d and %d share a budget, and have two owners", (int)(space - BUDGETS),
                     (int)space);
    }
    for (size_t i = 0; i < sim.count; i++) { /* every change was answered */
        const Cluster *cluster = sim.nodes[i].cluster;
        if (cluster->barrier_count > 0)
            fail_msg("%s waits for %llu, and has published %llu", cluster->node,
                     (unsigned long long)cluster->barriers[0].seq,
                     (unsigned long long)atomic_load(&cluster->catalog_done));
    }
}

/* ---- an engine that loses what it has acknowledged ---- */

/* The sums that a backup has, and which copies have more than the engine after it was restored. */
typedef struct Loss {
    uint64_t kept[SPACES + 2];
    bool is_ahead[NODES][SPACES + 2];
} Loss;

/* Writes and moves that the backup does not have; then the promotion of a standby that was behind
 * by as much. */
static void lose(Loss *loss)
{
    memcpy(loss->kept, sim.written, sizeof(loss->kept));
    memory_journal_backup(sim.engine);
    for (int i = 0; i < 20; i++) {
        if (random_below(&sim.random, 3) == 0)
            order_move();
        write_somewhere();
        change_catalogue();
        sim_run(&sim, 300);
    }
    memory_journal_restore(sim.engine);
    memcpy(sim.written, loss->kept, sizeof(loss->kept));
    memset(sim.owned_by, 0, sizeof(sim.owned_by));
    sim.lenient_ms = LEASE_SUCCESSOR_US / 1000; /* then every node has looked */
    for (size_t i = 0; i < sim.count; i++) {
        for (StoreSpace space = 1; space <= SPACES + 1; space++) {
            JournalPlace tail = {0};
            const SimCopy *copy = sim_copy(&sim.nodes[i], space);
            assert_true(sim_tail(&sim.nodes[0], space, &tail));
            loss->is_ahead[i][space] = copy != NULL && copy->place.seq > tail.seq;
        }
    }
}

static bool is_told(SimNode *node, StoreSpace space)
{
    ClusterEvent events[CLUSTER_EVENTS_MAX];
    size_t count = cluster_events(node->cluster, events, CLUSTER_EVENTS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(events[i].kind, "engineLost") == 0 && events[i].space == space)
            return true;
    }
    return false;
}

/* What is ahead of the engine is refused and told of, also where nobody writes, until an operator
 * accepts it. */
static void recover(const Loss *loss)
{
    for (size_t i = 0; i < sim.count; i++) {
        SimNode *node = &sim.nodes[i];
        bool refuses = false;
        for (StoreSpace space = 1; space <= SPACES + 1; space++) {
            const SpaceSlot *slot = space_table_find(&node->cluster->spaces, space);
            bool is_refused = slot != NULL && slot->state == SPACE_STATE_REFUSED;
            refuses |= is_refused;
            /* One that is not wanted any more, since there are enough others, may be gone. */
            bool is_ahead = loss->is_ahead[i][space] && sim_copy(node, space) != NULL;
            if (is_refused != is_ahead)
                fail_msg("%s and space %d: ahead %d, %s", node->name, (int)space, is_ahead,
                         slot == NULL ? "-" : space_state_text(slot->state));
            assert_true(!is_refused || is_told(node, space));
        }
        Error failure;
        assert_int_equal(cluster_recover(node->cluster, 0, &failure),
                         refuses ? STATUS_OK : STATUS_NOT_FOUND);
    }
    sim.keeps_log = false;
}

static void random_lives_keep_every_promise(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (uint64_t life = 0; life < LIVES; life++) {
        bool has_loss = life % 3 == 0;
        (void)printf("life %llu\n", (unsigned long long)life);
        sim_init(&sim, NODES, 3, seed * 1000 + life);
        /* If all copies are ahead of what is left of the log, and its beginning was trimmed, there
         * is nothing that a copy could be made of. */
        sim.keeps_log = has_loss;
        sim_begin(&sim, SPACES);
        sim.shared_from = SHARED_FROM;
        sim.shared_budgets = BUDGETS;
        for (int i = 0; i < STEPS; i++)
            step();
        heal();
        check_all();
        if (has_loss) {
            Loss loss = {0};
            lose(&loss);
            sim_run(&sim, 20000);
            recover(&loss);
            sim_run(&sim, 180000); /* copies are given a few at a time */
            check_all();
        }
        sim_done(&sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_lives_keep_every_promise)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
