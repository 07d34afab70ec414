/* cluster_testing_int.h - several nodes in one process, for tests: Clusters over one engine in
 * memory, each with a clock of its own and the parts of cluster_parts_testing_int.h. The test calls
 * the steps; no thread is started. Not part of the library.
 */
#pragma once

#include "cluster/cluster_parts_testing_int.h"

/* ---- nodes ---- */

static inline Status sim_call(void *ctx, ClusterCall *call, Error *err)
{
    SimNode *from = ctx;
    Sim *sim = from->sim;
    for (size_t i = 0; i < sim->count; i++) {
        SimNode *to = &sim->nodes[i];
        if (!slice_equal(slice_from_cstr(to->address), call->address))
            continue;
        if (to->cluster == NULL || to->is_paused || to->is_unreachable || from->is_unreachable)
            break;
        call->status = node_answer(to->cluster, call->path, call->answer);
        return STATUS_OK;
    }
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "no answer from '%.*s'",
                     SLICE_ARG(call->address));
}

/* 'format' is the newest that the node's program reads; 0 for that of the others. */
static inline void sim_open_journal(SimNode *node, uint32_t format)
{
    static const uint8_t secret[JOURNAL_SECRET_BYTES] = {7};
    MemoryJournalOptions options = {.clock = clock_real(), .format = format};
    memory_journal_open(node->sim->engine, secret, &options, &node->journal);
}

static inline void sim_init(Sim *sim, size_t count, uint32_t replicas, uint64_t seed)
{
    memset(sim, 0, sizeof(*sim));
    sim->engine = memory_journal_engine_new(seed);
    fake_clock_init(&sim->clock, SIM_BEGIN_US);
    memory_journal_set_clock(sim->engine, &sim->clock.clock);
    sim->count = count;
    sim->replicas = replicas;
    sim->log = (Log){.fd = 2, .level = LOG_LEVEL_ERROR, .clock = clock_real()};
    if (getenv("SIM_LOG") != NULL) /* NOLINT(concurrency-mt-unsafe): no thread sets it */
        sim->log.level = LOG_LEVEL_INFO;
    random_init(&sim->random, seed);
    for (size_t i = 0; i < count; i++) {
        SimNode *node = &sim->nodes[i];
        node->sim = sim;
        (void)snprintf(node->name, sizeof(node->name), "n%u", (unsigned)i);
        (void)snprintf(node->address, sizeof(node->address), "10.0.0.%u:1", (unsigned)i);
        test_folder_init(&node->data);
        fake_clock_init(&node->clock, SIM_BEGIN_US + i * 12345);
        sim_open_journal(node, 0);
    }
}

/* Begins a process; false if it may not join. */
static inline bool sim_try_start(SimNode *node, Error *error)
{
    JournalMember member;
    JournalJoin join = {.name = slice_from_cstr(node->name),
                        .address = slice_from_cstr(node->address),
                        .advertise = SLICE("http://here/"),
                        .region = SLICE("r")};
    if (cluster_folder_open(node->data.path, slice_from_cstr(node->name), &node->folder, error) !=
        STATUS_OK)
        return false;
    if (cluster_folder_join(node->folder, node->journal, &join, &member, error) != STATUS_OK) {
        cluster_folder_close(TAKE(node->folder));
        return false;
    }
    ClusterOptions options = {.journal = node->journal,
                              .folder = node->folder,
                              .member = member,
                              .join = join,
                              .node = node->name,
                              .replicas = node->sim->replicas,
                              .clock = &node->clock.clock,
                              .log = &node->sim->log,
                              .call = sim_call,
                              .call_ctx = node};
    assert_ok(cluster_create(&options, &node->cluster, err));
    node->hooks = cluster_hooks(node->cluster);
    for (size_t i = 0; i < SIM_SPACES_MAX; i++)
        node->copies[i].role = SPACE_FOLLOWED;
    node->served_count = 0;
    node->leads = false;
    lease_step(node->cluster);
    cluster_bind_store(node->cluster, sim_store(node));
    const JournalNewSpace space = {.space = SPACE_OF_CATALOG,
                                   .node = slice_from_cstr(node->name),
                                   .incarnation = member.incarnation};
    return journal_create_spaces(node->journal, JOURNAL_LANE_ADMIN, &space, 1, error) == STATUS_OK;
}

/* Opens the catalogue as soon as its space is there. */
static inline void sim_join_catalog(SimNode *node)
{
    Error err;
    bool is_ready;
    bool is_leader;
    if (cluster_try_join_catalog(node->cluster, &is_ready, &is_leader, &err) != STATUS_OK ||
        !is_ready)
        return;
    node->leads = is_leader;
    for (size_t i = 0; i < SIM_SPACES_MAX; i++) {
        StoreSpace space = node->copies[i].space;
        if (space > SPACE_OF_CATALOG && cluster_serves(node->cluster, space))
            node->served[node->served_count++] = space;
    }
    node->published = sim_place(node, SPACE_OF_CATALOG).applied.seq;
    cluster_bind_catalog(node->cluster, sim_catalog(node));
    atomic_store(&node->cluster->catalog_done, node->published);
}

/* The process ends at once. */
static inline void sim_kill(SimNode *node)
{
    if (node->cluster == NULL)
        return;
    cluster_destroy(node->cluster);
    node->cluster = NULL;
    cluster_folder_close(TAKE(node->folder));
}

static inline void sim_done(Sim *sim)
{
    for (size_t i = 0; i < sim->count; i++) {
        sim_kill(&sim->nodes[i]);
        journal_close(sim->nodes[i].journal);
        test_folder_done(&sim->nodes[i].data);
    }
    memory_journal_engine_free(sim->engine);
}

static inline bool sim_tail(SimNode *node, StoreSpace space, JournalPlace *tail)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    const JournalOwner *owner = NULL;
    size_t found = 0;
    Error err;
    bool is_known = journal_owners(node->journal, JOURNAL_LANE_FOLLOW, &space, 1, &arena, &owner,
                                   &found, &err) == STATUS_OK &&
                    found > 0;
    if (is_known)
        *tail = owner->tail;
    return is_known;
}

/* What the store's follower does: reads new entries, and says how far it is. */
static inline void sim_follow_logs(SimNode *node)
{
    JournalReplica rows[SIM_SPACES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < SIM_SPACES_MAX; i++) {
        SimCopy *copy = &node->copies[i];
        if (copy->space == 0)
            continue;
        bool is_behind = false;
        uint64_t before = copy->place.seq;
        JournalPlace tail;
        if (copy->role == SPACE_FOLLOWED && sim_tail(node, copy->space, &tail) &&
            (tail.seq < copy->place.seq ||
             (tail.seq == copy->place.seq && !sim_is_at(&copy->place, &tail.chain)))) {
            copy->role = SPACE_ABSENT;
            node->hooks.behind(node->hooks.ctx, copy->space);
        }
        if (copy->role == SPACE_ABSENT)
            continue;
        if (copy->role == SPACE_FOLLOWED && !node->is_stuck)
            (void)sim_catch_up(node, copy, UINT64_MAX, &is_behind);
        if (copy->role == SPACE_ABSENT) {
            node->hooks.behind(node->hooks.ctx, copy->space);
            continue;
        }
        if (is_behind) {
            node->hooks.behind(node->hooks.ctx, copy->space);
            continue;
        }
        if (copy->place.seq > before)
            node->hooks.applied(node->hooks.ctx, copy->space, copy->place.seq);
        rows[count++] = (JournalReplica){.space = copy->space,
                                         .node = slice_from_cstr(node->name),
                                         .state = REPLICA_FOLLOWING,
                                         .applied = copy->place.seq,
                                         .durable = copy->place.seq};
    }
    Error err;
    if (journal_report(node->journal, JOURNAL_LANE_FOLLOW, rows, count, &err) != STATUS_OK)
        return; /* the engine is away */
}

/* Serving, as a client sees it: what may be answered by this node now. */
static inline bool sim_has_lease(SimNode *node)
{
    return cluster_lease_holds(node->cluster, cluster_incarnation(node->cluster));
}

static inline bool sim_may_answer(SimNode *node, StoreSpace space)
{
    if (node->cluster == NULL)
        return false;
    bool has_partition = space == SPACE_OF_CATALOG ? node->leads : sim_serves(node, space);
    return has_partition && cluster_serves(node->cluster, space) && sim_has_lease(node);
}

/* No two nodes may answer for a space at the same moment. */
static inline void sim_check_owners(Sim *sim)
{
    for (StoreSpace space = 1; sim->lenient_ms == 0 && space <= SIM_SPACES_MAX; space++) {
        size_t answering = 0;
        for (size_t i = 0; i < sim->count; i++)
            answering += sim_may_answer(&sim->nodes[i], space);
        if (answering > 1)
            fail_msg("%zu nodes answer for space %d", answering, (int)space);
    }
}

/* One round of every process that runs, in a random order. */
static inline void sim_round(Sim *sim)
{
    size_t first = random_below(&sim->random, sim->count);
    for (size_t i = 0; i < sim->count; i++) {
        SimNode *node = &sim->nodes[(first + i) % sim->count];
        if (node->cluster == NULL || node->is_paused)
            continue;
        sim_follow_logs(node);
        if (!atomic_load(&node->cluster->has_catalog))
            sim_join_catalog(node);
        if (random_below(&sim->random, 2) == 0 && !node->is_seeder_stuck)
            (void)seed_step(node->cluster);
        if (sim->keeps_log)
            node->cluster->trimmed_us = cluster_now_us(node->cluster);
        manage_step(node->cluster);
        sim_check_owners(sim);
        catalog_step(node->cluster);
        sim_check_owners(sim);
        reach_step(node->cluster);
    }
}

/* Time passes for all, also for those that are paused: 'ms', in rounds of 100 ms. Leases are
 * renewed each second. */
static inline void sim_run(Sim *sim, uint64_t ms)
{
    for (uint64_t passed = 0; passed < ms; passed += 100) {
        fake_clock_advance(&sim->clock, 100000);
        for (size_t i = 0; i < sim->count; i++)
            fake_clock_advance(&sim->nodes[i].clock, 100000);
        sim->lenient_ms -= sim->lenient_ms < 100 ? sim->lenient_ms : 100;
        sim_check_owners(sim);
        for (size_t i = 0; i < sim->count; i++) {
            SimNode *node = &sim->nodes[i];
            bool is_due =
                node->cluster != NULL && !node->is_paused &&
                cluster_now_us(node->cluster) - node->cluster->renewed_us >= LEASE_RENEW_US;
            if (is_due || (node->cluster != NULL && !node->is_paused &&
                           node->cluster->lease_waker.is_woken)) {
                node->cluster->lease_waker.is_woken = false;
                lease_step(node->cluster);
            }
        }
        sim_round(sim);
    }
}

static inline SimNode *sim_owner(Sim *sim, StoreSpace space)
{
    for (size_t i = 0; i < sim->count; i++) {
        if (sim_may_answer(&sim->nodes[i], space))
            return &sim->nodes[i];
    }
    return NULL;
}

/* A write at a node that serves the space, as the store does it. True if it is acknowledged. */
static inline bool sim_write(SimNode *node, StoreSpace space)
{
    Sim *sim = node->sim;
    SimCopy *copy = sim_copy(node, space);
    if (copy == NULL || copy->role != SPACE_OWNED || node->is_journal_full)
        return false;
    uint8_t bytes[8];
    uint64_t value = ++sim->next_write;
    be64_put(bytes, value);
    JournalAppend one = {.space = space,
                         .before = copy->place,
                         .epoch = copy->epoch,
                         .bytes = slice_make(bytes, sizeof(bytes))};
    Error err;
    uint64_t deadline_us = clock_monotonic_us(clock_real()) + 20000;
    Status status =
        journal_append(node->journal, JOURNAL_LANE_APPEND_0, &one, 1, deadline_us, &err);
    if (one.outcome == APPEND_DONE) {
        assert_int_equal(status, STATUS_OK);
        copy->place = one.after;
        copy->sum += value;
        sim->written[space] += value;
        return true;
    }
    if (one.outcome == APPEND_PENDING)
        return false;
    sim->unsure[space] += one.outcome == APPEND_UNKNOWN;
    /* As the real store: what the engine has lost is refused, and there is no copy any more. */
    copy->role = one.outcome == APPEND_LOST ? SPACE_ABSENT : SPACE_FOLLOWED;
    err.status = one.outcome == APPEND_LOST ? STATUS_CORRUPT : STATUS_NOT_OWNER;
    node->hooks.lost(node->hooks.ctx, space, &err);
    return false;
}

/* A change of the catalogue by the node that leads; Sim.changes_done counts it when it may be
 * answered. */
static inline void sim_change_done(void *ctx, bool is_everywhere)
{
    ((Sim *)ctx)->changes_done += is_everywhere;
}

static inline bool sim_change(SimNode *node)
{
    if (!node->leads || !sim_write(node, SPACE_OF_CATALOG))
        return false;
    node->published = sim_place(node, SPACE_OF_CATALOG).applied.seq;
    const CatalogPlacement *placement = cluster_placement(node->cluster);
    placement->published(placement->ctx, sim_change_done, node->sim);
    return true;
}

/* Starts all, makes spaces 2 to 1 + 'spaces', and waits until all is served. */
static inline void sim_begin(Sim *sim, size_t spaces)
{
    Error failure;
    for (size_t i = 0; i < sim->count; i++) {
        assert_true(sim_try_start(&sim->nodes[i], &failure));
        sim_run(sim, 200);
        if (i == 0)
            assert_true(sim_change(&sim->nodes[0])); /* the catalogue's first record */
    }
    sim_run(sim, 2000);
    SimNode *leader = sim_owner(sim, SPACE_OF_CATALOG);
    assert_non_null(leader);
    const CatalogPlacement *placement = cluster_placement(leader->cluster);
    if (spaces > 0) {
        assert_ok(placement->create(placement->ctx, 2, spaces, 0, err));
        for (StoreSpace space = 2; space < 2 + spaces; space++) {
            if (placement->is_local(placement->ctx, space))
                leader->served[leader->served_count++] = space;
        }
        assert_true(sim_change(leader));
        sim_run(sim, 2000);
        assert_int_equal(sim->changes_done, 2);
    }
}

/* ---- what most tests look at ---- */

/* How many of the first spaces it serves, and of the catalogue. */
static inline size_t sim_count_owned(const SimNode *node, size_t spaces)
{
    size_t count = 0;
    for (StoreSpace space = 1; space <= spaces + 1; space++)
        count += node->cluster != NULL && cluster_serves(node->cluster, space);
    return count;
}

static inline void sim_assert_all_served(Sim *sim, size_t spaces)
{
    for (StoreSpace space = 1; space <= spaces + 1; space++) {
        if (sim_owner(sim, space) == NULL)
            fail_msg("nobody serves space %d", (int)space);
    }
}

/* Each owner has every write that was acknowledged, and the copies are equal. */
static inline void sim_assert_nothing_lost(Sim *sim, size_t spaces)
{
    sim_run(sim, 1000);
    for (StoreSpace space = 2; space <= spaces + 1; space++) {
        SimNode *owner = sim_owner(sim, space);
        assert_non_null(owner);
        const SimCopy *copy = sim_copy(owner, space);
        if (sim->unsure[space] == 0)
            assert_int_equal(copy->sum, sim->written[space]);
        else
            assert_true(copy->sum >= sim->written[space]);
        for (size_t i = 0; i < sim->count; i++) {
            const SimCopy *other = sim_copy(&sim->nodes[i], space);
            if (sim->nodes[i].cluster != NULL && other != NULL &&
                other->place.seq == copy->place.seq)
                assert_int_equal(other->sum, copy->sum);
        }
    }
}

/* Another one that runs; NULL if there is none. */
static inline SimNode *sim_other_than(Sim *sim, const SimNode *node)
{
    for (size_t i = 0; i < sim->count; i++) {
        if (&sim->nodes[i] != node && sim->nodes[i].cluster != NULL && !sim->nodes[i].is_paused)
            return &sim->nodes[i];
    }
    return NULL;
}

#define CASE(test) cmocka_unit_test_teardown(test, end)
