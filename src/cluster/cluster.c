/* cluster.c - see cluster.h: making a Cluster, its threads, and how it begins and ends. */
#include "cluster/cluster_int.h"

#include "base/cond.h"
#include "base/mem.h"
#include "base/thread.h"

#include <time.h>

enum {
    KEEP_US_DEFAULT = 900000000,
    JOIN_WAIT_MS = 60000, /* for the catalogue, when the node joins */
    LEAVE_PAUSE_MS = 10,
    LEAVE_COUNT_US = 200000, /* between two looks at who is there to take something */
    ANSWERS_MS = 1000, /* at least, for changes that are not on all nodes when this one leaves */
    REACH_MS = 2000,
    IDLE_MS = 1000,
};
#define JOURNAL_BYTES_DEFAULT (UINT64_C(8) << 30)

/* ---- waking ---- */

void waker_init(Waker *waker)
{
    (void)pthread_mutex_init(&waker->lock, NULL);
    (void)pthread_cond_init(&waker->cond, NULL);
    waker->is_woken = false;
}

void waker_done(Waker *waker)
{
    (void)pthread_cond_destroy(&waker->cond);
    (void)pthread_mutex_destroy(&waker->lock);
}

void waker_wake(Waker *waker)
{
    (void)pthread_mutex_lock(&waker->lock);
    waker->is_woken = true;
    (void)pthread_cond_signal(&waker->cond);
    (void)pthread_mutex_unlock(&waker->lock);
}

void waker_wait(Waker *waker, uint32_t ms)
{
    uint64_t until_us = cond_after_ms(ms);
    (void)pthread_mutex_lock(&waker->lock);
    while (!waker->is_woken && cond_wait_until(&waker->cond, &waker->lock, until_us)) {
    }
    waker->is_woken = false;
    (void)pthread_mutex_unlock(&waker->lock);
}

/* ---- making and ending ---- */

static bool serves_space(void *ctx, StoreSpace space)
{
    return cluster_serves(ctx, space);
}

static bool doubts_time(void *ctx)
{
    return cluster_doubts_time(ctx);
}

static void copy_join(Cluster *cluster, const JournalJoin *join)
{
    arena_init(&cluster->join_arena, ARENA_SMALL_BYTES);
    cluster->join = *join;
    cluster->join.name = slice_from_cstr(cluster->node);
    cluster->join.address = arena_copy(&cluster->join_arena, join->address);
    cluster->join.advertise = arena_copy(&cluster->join_arena, join->advertise);
    cluster->join.region = arena_copy(&cluster->join_arena, join->region);
}

static void init_locks(Cluster *cluster)
{
    (void)pthread_mutex_init(&cluster->lock, NULL);
    (void)pthread_mutex_init(&cluster->node_lane, NULL);
    (void)pthread_mutex_init(&cluster->admin_lane, NULL);
    (void)pthread_mutex_init(&cluster->usage_lock, NULL);
    waker_init(&cluster->lease_waker);
    waker_init(&cluster->manager_waker);
    waker_init(&cluster->catalog_waker);
    waker_init(&cluster->seeder_waker);
    waker_init(&cluster->reach_waker);
}

Status cluster_create(const ClusterOptions *options, Cluster **out, Error *err)
{
    size_t name_len = strlen(options->node);
    if (name_len == 0 || name_len > JOURNAL_NAME_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected a node's name of 1 to %d characters", JOURNAL_NAME_MAX);
    Cluster *cluster = MEM_NEW(Cluster);
    cluster->journal = options->journal;
    cluster->folder = options->folder;
    cluster->clock = options->clock;
    cluster->log = options->log;
    cluster->metrics = options->metrics;
    memcpy(cluster->node, options->node, name_len);
    copy_join(cluster, &options->join);
    cluster->replicas = options->replicas != 0 ? options->replicas : CLUSTER_REPLICAS_DEFAULT;
    cluster->keep_us = options->keep_ms != 0 ? (uint64_t)options->keep_ms * 1000 : KEEP_US_DEFAULT;
    cluster->journal_bytes_max =
        options->journal_bytes_max != 0 ? options->journal_bytes_max : JOURNAL_BYTES_DEFAULT;
    memcpy(cluster->cluster, options->member.cluster, sizeof(cluster->cluster));
    cluster->call = options->call;
    cluster->call_ctx = options->call_ctx;
    cluster->placement = (CatalogPlacement){
        .ctx = cluster,
        .is_local = serves_space,
        .doubts_time = doubts_time,
        .create = cluster_create_spaces,
        .published = cluster_published,
        .dropped = cluster_dropped,
        .gather = cluster_gather,
    };
    atomic_store(&cluster->incarnation, options->member.incarnation);
    cluster->member = MEMBER_JOINED;
    lease_init(&cluster->lease, options->clock);
    cluster_clock_init(&cluster->time, options->clock);
    init_locks(cluster);
    owners_init(&cluster->owners);
    buf_init(&cluster->usage, USAGE_BYTES_MAX);
    arena_init(&cluster->view_arena, ARENA_LARGE_BYTES);
    cluster->serving = serving_new(cluster);
    cluster->seeds = seed_sessions_new(cluster);
    *out = cluster;
    return STATUS_OK;
}

void cluster_destroy(Cluster *cluster)
{
    barriers_release(cluster);
    serving_free(cluster->serving);
    seed_sessions_free(cluster->seeds);
    space_table_done(&cluster->spaces);
    node_watch_done(&cluster->watch);
    replica_watch_done(&cluster->replica_watch);
    owners_done(&cluster->owners);
    mem_free(cluster->dropped);
    mem_free(cluster->leftovers);
    mem_free(cluster->barriers);
    arena_done(&cluster->view_arena);
    arena_done(&cluster->join_arena);
    buf_done(&cluster->usage);
    waker_done(&cluster->lease_waker);
    waker_done(&cluster->manager_waker);
    waker_done(&cluster->catalog_waker);
    waker_done(&cluster->seeder_waker);
    waker_done(&cluster->reach_waker);
    (void)pthread_mutex_destroy(&cluster->lock);
    (void)pthread_mutex_destroy(&cluster->node_lane);
    (void)pthread_mutex_destroy(&cluster->admin_lane);
    (void)pthread_mutex_destroy(&cluster->usage_lock);
    mem_free(cluster);
}

/* ---- threads ---- */

static void *run_lease(void *arg)
{
    Cluster *cluster = arg;
    while (!atomic_load(&cluster->is_stopping)) {
        lease_step(cluster);
        waker_wait(&cluster->lease_waker, LEASE_RENEW_US / 1000);
    }
    return NULL;
}

static void *run_manager(void *arg)
{
    Cluster *cluster = arg;
    while (!atomic_load(&cluster->is_stopping)) {
        manage_step(cluster);
        bool is_wanted = atomic_load(&cluster->is_refresh_wanted);
        waker_wait(&cluster->manager_waker, is_wanted ? VIEW_US_MIN / 1000 : MANAGE_MS);
    }
    return NULL;
}

static void *run_catalog(void *arg)
{
    Cluster *cluster = arg;
    while (!atomic_load(&cluster->is_stopping)) {
        catalog_step(cluster);
        uint32_t pause_ms = cluster->barrier_pause_ms;
        waker_wait(&cluster->catalog_waker, pause_ms != 0 ? pause_ms : IDLE_MS);
    }
    return NULL;
}

static void *run_seeder(void *arg)
{
    Cluster *cluster = arg;
    while (!atomic_load(&cluster->is_stopping)) {
        if (!seed_step(cluster))
            waker_wait(&cluster->seeder_waker, MANAGE_MS);
    }
    return NULL;
}

static void *run_reach(void *arg)
{
    Cluster *cluster = arg;
    while (!atomic_load(&cluster->is_stopping)) {
        reach_step(cluster);
        waker_wait(&cluster->reach_waker, REACH_MS);
    }
    return NULL;
}

static void stop_threads(Cluster *cluster)
{
    atomic_store(&cluster->is_stopping, true);
    waker_wake(&cluster->lease_waker);
    waker_wake(&cluster->manager_waker);
    waker_wake(&cluster->catalog_waker);
    waker_wake(&cluster->seeder_waker);
    waker_wake(&cluster->reach_waker);
    for (size_t i = 0; i < cluster->thread_count; i++)
        (void)pthread_join(cluster->threads[i], NULL);
    cluster->thread_count = 0;
    if (cluster->has_lease_thread)
        (void)pthread_join(cluster->lease_thread, NULL);
    cluster->has_lease_thread = false;
    barriers_release(cluster); /* the catalogue waits for them before it is closed */
}

Status cluster_start_threads(Cluster *cluster, Error *err)
{
    static const struct {
        const char *name;
        void *(*run)(void *arg);
    } rows[] = {
        {"cluster-manage", run_manager},
        {"cluster-catalog", run_catalog},
        {"cluster-seed", run_seeder},
        {"cluster-reach", run_reach},
    };
    static_assert(ARRAY_COUNT(rows) <= sizeof(((Cluster *)0)->threads) / sizeof(pthread_t),
                  "there is room for each thread");
    TRY(serving_start(cluster->serving, err));
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        TRY(thread_start(&cluster->threads[i], rows[i].name, rows[i].run, cluster, err));
        cluster->thread_count++;
    }
    return STATUS_OK;
}

Status cluster_new(const ClusterOptions *options, Cluster **out, Error *err)
{
    Cluster *cluster;
    TRY(cluster_create(options, &cluster, err));
    Status status = thread_start(&cluster->lease_thread, "cluster-lease", run_lease, cluster, err);
    if (status != STATUS_OK) {
        cluster_destroy(cluster);
        return status;
    }
    cluster->has_lease_thread = true;
    *out = cluster;
    return STATUS_OK;
}

/* ---- hooks of the store: they only note what has happened ---- */

static void on_applied(void *ctx, StoreSpace space, uint64_t seq)
{
    Cluster *cluster = ctx;
    (void)seq;
    if (space == SPACE_OF_CATALOG)
        waker_wake(&cluster->catalog_waker);
}

static void on_lost(void *ctx, StoreSpace space, const Error *reason)
{
    Cluster *cluster = ctx;
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_find(&cluster->spaces, space);
    if (slot != NULL) {
        slot->is_lost = true;
        slot->is_refused = reason->status != STATUS_NOT_OWNER;
        if (slot->state >= SPACE_STATE_TAKING)
            slot->epoch_gone = slot->epoch; /* an append in it may still come (C6) */
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    cluster_refresh_owners(cluster);
}

static void on_behind(void *ctx, StoreSpace space)
{
    Cluster *cluster = ctx;
    (void)pthread_mutex_lock(&cluster->lock);
    SpaceSlot *slot = space_table_find(&cluster->spaces, space);
    if (slot != NULL && slot->state == SPACE_STATE_FOLLOWING)
        space_enter(slot, SPACE_STATE_SEEDING);
    else if (slot != NULL && slot->state == SPACE_STATE_TAKING)
        slot->needs_seed = true;
    (void)pthread_mutex_unlock(&cluster->lock);
    waker_wake(&cluster->seeder_waker);
}

ReplicationHooks cluster_hooks(Cluster *cluster)
{
    return (ReplicationHooks){
        .ctx = cluster, .applied = on_applied, .lost = on_lost, .behind = on_behind};
}

const CatalogPlacement *cluster_placement(Cluster *cluster)
{
    return &cluster->placement;
}

/* ---- beginning ---- */

/* Copies that the store holds from an earlier life. */
static void note_copies(Cluster *cluster)
{
    ClusterStore *store = &cluster->store;
    size_t count = store->places(store->ctx, NULL, 0);
    ReplicaPlace *places = MEM_NEW_ARRAY(ReplicaPlace, count + 1);
    size_t found = store->places(store->ctx, places, count);
    count = found < count ? found : count;
    for (size_t i = 0; i < count; i++) {
        (void)pthread_mutex_lock(&cluster->lock);
        SpaceSlot *slot = space_table_get(&cluster->spaces, places[i].space);
        bool is_new = slot->state == SPACE_STATE_ABSENT;
        if (is_new)
            space_enter(slot, SPACE_STATE_FOLLOWING);
        (void)pthread_mutex_unlock(&cluster->lock);
        if (is_new)
            store->follow(store->ctx, places[i].space);
    }
    mem_free(places);
}

void cluster_bind_store(Cluster *cluster, ClusterStore store)
{
    cluster->store = store;
    atomic_store(&cluster->has_store, true);
    note_copies(cluster);
}

void cluster_bind_catalog(Cluster *cluster, ClusterCatalog catalog)
{
    cluster->catalog = catalog;
    if (cluster_serves(cluster, SPACE_OF_CATALOG)) /* its first records are this node's */
        atomic_store(&cluster->catalog_done,
                     cluster->store.place(cluster->store.ctx, SPACE_OF_CATALOG).applied.seq);
    atomic_store(&cluster->has_catalog, true);
}

/* The first node to come makes it; rows that exist stay as they are. */
Status cluster_make_catalog_space(Cluster *cluster, Error *err)
{
    JournalNewSpace space = {.space = SPACE_OF_CATALOG,
                             .node = slice_from_cstr(cluster->node),
                             .incarnation = atomic_load(&cluster->incarnation)};
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status = journal_create_spaces(cluster->journal, JOURNAL_LANE_ADMIN, &space, 1, err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    return status;
}

Status cluster_try_join_catalog(Cluster *cluster, bool *is_ready, bool *is_leader, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    const uint64_t space = SPACE_OF_CATALOG;
    const JournalOwner *owner = NULL;
    size_t found = 0;
    *is_ready = *is_leader = false;
    cluster_refresh_owners(cluster);
    manage_step(cluster);
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status = journal_owners(cluster->journal, JOURNAL_LANE_ADMIN, &space, 1, &arena, &owner,
                                   &found, err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    TRY(status);
    if (found == 0)
        return STATUS_OK;
    *is_leader = cluster_serves(cluster, SPACE_OF_CATALOG);
    /* The catalogue's first record is its owner's: nobody else may begin an empty catalogue. */
    uint64_t applied = cluster->store.place(cluster->store.ctx, SPACE_OF_CATALOG).applied.seq;
    *is_ready = *is_leader || (owner->tail.seq > 0 && applied >= owner->tail.seq);
    /* The catalogue opens partitions, and they need the time. */
    if (cluster_clock_state(&cluster->time) == CLUSTER_CLOCK_NEW)
        *is_ready = false;
    return STATUS_OK;
}

void cluster_pause_ms(uint32_t ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&time, NULL);
}

Status cluster_read_catalog_end(Cluster *cluster, uint64_t *seq, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    const uint64_t space = SPACE_OF_CATALOG;
    const JournalOwner *owner = NULL;
    size_t found = 0;
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status = journal_owners(cluster->journal, JOURNAL_LANE_ADMIN, &space, 1, &arena, &owner,
                                   &found, err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    TRY(status);
    *seq = found > 0 ? owner->tail.seq : 0;
    return STATUS_OK;
}

/* Until then requests are not answered, but wait. */
Status cluster_reach_catalog_end(Cluster *cluster, Error *err)
{
    uint64_t until_us = clock_monotonic_us(cluster->clock) + JOIN_WAIT_MS * UINT64_C(1000);
    while (clock_monotonic_us(cluster->clock) < until_us) {
        cluster->store.poke(cluster->store.ctx);
        cluster_refresh_owners(cluster);
        manage_step(cluster);
        catalog_step(cluster);
        if (atomic_load(&cluster->current_in) == atomic_load(&cluster->incarnation))
            return STATUS_OK;
        cluster_renew_soon(cluster);
        cluster_pause_ms(1);
    }
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "the catalogue's newest changes do not arrive");
}

/* ---- asking ---- */

ClusterOwner cluster_owner(Cluster *cluster, StoreSpace space)
{
    ClusterOwner owner = {0};
    OwnerRow row;
    OwnerNode node;
    if (!owners_find(&cluster->owners, space, &row, &node) || !row.is_served) {
        cluster_refresh_owners(cluster);
        return owner;
    }
    owner.is_local = row.is_local;
    owner.epoch = row.epoch;
    memcpy(owner.node, node.name, sizeof(owner.node));
    static_assert(sizeof(owner.address) >= sizeof(node.address), "an address fits");
    if (!row.is_local)
        memcpy(owner.address, node.address, sizeof(node.address));
    /* The engine gives it to this node, which does not serve it yet. */
    bool is_own = strcmp(node.name, cluster->node) == 0;
    owner.is_known = row.is_local || (!is_own && node.address[0] != '\0');
    if (!owner.is_known)
        cluster_refresh_owners(cluster);
    return owner;
}

ClusterOwner cluster_catalog_owner(Cluster *cluster)
{
    return cluster_owner(cluster, SPACE_OF_CATALOG);
}

uint64_t cluster_incarnation(Cluster *cluster)
{
    return atomic_load(&cluster->incarnation);
}

/* The lease comes first: one of the next incarnation is renewed only after the incarnation is
 * known. What was read after the old lease had ended, and is told when the new one holds, is so
 * found out. */
bool cluster_lease_holds(Cluster *cluster, uint64_t incarnation)
{
    return lease_holds(&cluster->lease) && atomic_load(&cluster->incarnation) == incarnation &&
           atomic_load(&cluster->current_in) == incarnation;
}

/* ---- ending ---- */

static bool owns_something(Cluster *cluster)
{
    bool found = false;
    (void)pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < cluster->spaces.count && !found; i++)
        found = cluster->spaces.items[i].state >= SPACE_STATE_TAKING;
    (void)pthread_mutex_unlock(&cluster->lock);
    return found;
}

/* Says itself that it is dead, so that nobody waits for its lease to end. */
static void declare_left(Cluster *cluster)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    const JournalNode *nodes = NULL;
    size_t count = 0;
    bool done = false;
    Error err;
    lease_end(&cluster->lease);
    (void)pthread_mutex_lock(&cluster->node_lane);
    Status status =
        journal_nodes(cluster->journal, JOURNAL_LANE_NODE, &arena, &nodes, &count, &err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        if (slice_equal(nodes[i].name, slice_from_cstr(cluster->node)) &&
            nodes[i].incarnation == atomic_load(&cluster->incarnation))
            status = journal_declare_dead(cluster->journal, nodes[i].name, nodes[i].incarnation,
                                          nodes[i].renewal, &done, &err);
    }
    (void)pthread_mutex_unlock(&cluster->node_lane);
    if (status != STATUS_OK)
        LOG_WARN(cluster->log, "cluster.leave_failed", "message=\"%s\"", err.message);
}

/* The steps of the end, after the threads have: nothing is served any more. */
void cluster_end_membership(Cluster *cluster)
{
    (void)pthread_mutex_lock(&cluster->lock);
    bool is_joined = cluster->member == MEMBER_JOINED;
    cluster->member = MEMBER_LEFT;
    (void)pthread_mutex_unlock(&cluster->lock);
    lease_end(&cluster->lease);
    drop_all_spaces(cluster, "the node leaves");
    if (is_joined)
        declare_left(cluster);
}

/* How many other nodes would take what this one gives away. */
static Status count_others(Cluster *cluster, size_t *others, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    const JournalNode *nodes = NULL;
    size_t count = 0;
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status =
        journal_nodes(cluster->journal, JOURNAL_LANE_ADMIN, &arena, &nodes, &count, err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    TRY(status);
    size_t living = 0;
    for (size_t i = 0; i < count; i++)
        living += nodes[i].state == NODE_LIVE &&
                  !slice_equal(nodes[i].name, slice_from_cstr(cluster->node));
    *others = living;
    return STATUS_OK;
}

/* Until others own everything. Not if there are none any more, as all are stopped at once; an
 * engine that does not answer may do so again. */
static void wait_for_takers(Cluster *cluster, uint32_t wait_ms)
{
    uint64_t begun_us = clock_monotonic_us(cluster->clock);
    uint64_t counted_us = begun_us;
    size_t others = 1;
    Error err;
    while (owns_something(cluster) && cluster->thread_count > 0 && others > 0) {
        uint64_t now_us = clock_monotonic_us(cluster->clock);
        if (now_us - begun_us >= wait_ms * UINT64_C(1000))
            return;
        if (now_us - counted_us >= LEAVE_COUNT_US) {
            counted_us = now_us;
            (void)count_others(cluster, &others, &err); /* unknown: as many as before */
        }
        cluster_refresh_owners(cluster);
        cluster_pause_ms(LEAVE_PAUSE_MS);
    }
}

void cluster_leave(Cluster *cluster, uint32_t wait_ms)
{
    Error err;
    size_t others = 0;
    if (count_others(cluster, &others, &err) != STATUS_OK || others == 0)
        wait_ms = 0;
    atomic_store(&cluster->is_leaving, true);
    /* So that no other node gives it anything any more; the next join makes it live again. */
    if (wait_ms > 0 && set_draining(cluster, slice_from_cstr(cluster->node), true,
                                    "the node leaves", &err) != STATUS_OK)
        LOG_WARN(cluster->log, "cluster.drain_failed", "message=\"%s\"", err.message);
    cluster_refresh_owners(cluster);
    uint64_t begun_us = clock_monotonic_us(cluster->clock);
    wait_for_takers(cluster, wait_ms);
    /* Clients wait for the answers to their changes; with no other node that is a moment. */
    uint64_t answers_ms = wait_ms > ANSWERS_MS ? wait_ms : ANSWERS_MS;
    while (barriers_wait(cluster) && cluster->thread_count > 0 &&
           clock_monotonic_us(cluster->clock) - begun_us < answers_ms * 1000)
        cluster_pause_ms(LEAVE_PAUSE_MS);
    barriers_release(cluster);
}

void cluster_end(Cluster *cluster)
{
    stop_threads(cluster);
    cluster_end_membership(cluster);
}

/* The store's threads call the hooks until it is closed, and so need all that these use. */
void cluster_stop(Cluster *cluster)
{
    if (cluster == NULL)
        return;
    stop_threads(cluster);
    serving_free(TAKE(cluster->serving));
    seed_sessions_free(TAKE(cluster->seeds));
}

void cluster_close(Cluster *cluster)
{
    if (cluster == NULL)
        return;
    cluster_stop(cluster);
    cluster_destroy(cluster);
}
