/* cluster_parts_testing_int.h - for tests, what a Cluster works on: a store and a catalogue that
 * are simple enough to be looked through (cluster_testing_int.h has the nodes).
 *
 * An entry is a number of 8 bytes. The store keeps, of each space, how many it has applied and
 * their sum, so that two copies at the same place can be compared.
 */
#pragma once

#include "base/encoding.h"
#include "base/random.h"
#include "base/test_seed.h"
#include "base/testing.h"
#include "cluster/cluster_int.h"
#include "journal/memory/memory_journal.h"

enum { SIM_NODES_MAX = 5, SIM_SPACES_MAX = 64 };

#define SIM_BEGIN_US UINT64_C(1000000000) /* about what all clocks say at first */

typedef struct SimCopy {
    StoreSpace space; /* 0 if it is free */
    SpaceRole role;
    JournalPlace place;
    uint64_t epoch; /* owned */
    uint64_t sum;
} SimCopy;

typedef struct Sim Sim;

typedef struct SimNode {
    Sim *sim;
    char name[24];
    char address[32];
    TestFolder data;
    FakeClock clock;
    Journal *journal;
    ClusterFolder *folder;
    Cluster *cluster; /* NULL if the process does not run */
    ReplicationHooks hooks;
    bool is_paused;
    bool is_unreachable; /* from the other nodes, nor they from it */
    SimCopy copies[SIM_SPACES_MAX];
    bool leads;
    bool is_stuck; /* its copies apply nothing */
    bool is_journal_full;
    bool loses_what_it_stops;          /* an append of unknown outcome is found meanwhile */
    bool cannot_forget;                /* its copies stay */
    bool is_damaged;                   /* its disk */
    StoreSpace switching;              /* the map is about to change here; 0 if none is */
    bool loses_what_it_yields;         /* an append of that moment has an unknown outcome */
    bool cannot_refresh;               /* its catalogue publishes nothing new */
    bool has_no_room;                  /* for a copy, which it finds before or */
    bool is_filling_up;                /* while it is made */
    bool is_seeder_stuck;              /* no copy is made */
    size_t seeds_begun;                /* copies of other nodes, whatever became of them */
    uint64_t published;                /* of the catalogue, by this node */
    StoreSpace served[SIM_SPACES_MAX]; /* partitions that the catalogue has open */
    size_t served_count;
    SpaceUsage said[SIM_SPACES_MAX + 1];  /* by other nodes, of each space */
    uint64_t said_us[SIM_SPACES_MAX + 1]; /* when they looked, by this node's boot time */
} SimNode;

struct Sim {
    MemoryJournalEngine *engine;
    FakeClock clock; /* the engine's */
    SimNode nodes[SIM_NODES_MAX];
    size_t count;
    uint32_t replicas;
    Random random;
    Log log;
    uint64_t next_write;
    bool keeps_log;                          /* nothing is trimmed */
    uint64_t lenient_ms;                     /* for so long two nodes may answer for a space */
    StoreSpace shared_from;                  /* spaces from here on share budgets; 0 if none do */
    uint64_t shared_budgets;                 /* how many; 0 for one */
    size_t changes_done;                     /* of the catalogue, that may be answered */
    uint64_t dropped_at[SIM_SPACES_MAX + 1]; /* the catalogue's entry that does it; 0 if none */
    uint64_t written[SIM_SPACES_MAX + 1];    /* the sum of what was acknowledged, of each space */
    uint64_t unsure[SIM_SPACES_MAX + 1];     /* writes of unknown outcome */
    struct {
        const SimNode *node;
        uint64_t incarnation;
    } owned_by[SIM_SPACES_MAX + 1]; /* of each space, the last to own it */
};

/* ---- the store ---- */

static inline SimCopy *sim_copy(SimNode *node, StoreSpace space)
{
    for (size_t i = 0; i < SIM_SPACES_MAX; i++) {
        if (node->copies[i].space == space)
            return &node->copies[i];
    }
    return NULL;
}

static inline size_t sim_places(void *ctx, ReplicaPlace *out, size_t max)
{
    SimNode *node = ctx;
    size_t count = 0;
    for (size_t i = 0; i < SIM_SPACES_MAX; i++) {
        const SimCopy *copy = &node->copies[i];
        if (copy->space == 0)
            continue;
        if (count < max)
            out[count] = (ReplicaPlace){.space = copy->space,
                                        .role = copy->role,
                                        .applied = copy->place,
                                        .durable_seq = copy->place.seq};
        count++;
    }
    return count;
}

static inline ReplicaPlace sim_place(void *ctx, StoreSpace space)
{
    const SimCopy *copy = sim_copy(ctx, space);
    if (copy == NULL)
        return (ReplicaPlace){.space = space, .role = SPACE_ABSENT};
    return (ReplicaPlace){
        .space = space, .role = copy->role, .applied = copy->place, .durable_seq = copy->place.seq};
}

static inline void sim_follow(void *ctx, StoreSpace space)
{
    SimNode *node = ctx;
    SimCopy *copy = sim_copy(node, space);
    if (copy != NULL)
        return; /* also if it is refused */
    copy = sim_copy(node, 0);
    assert_non_null(copy);
    *copy = (SimCopy){.space = space, .role = SPACE_FOLLOWED};
}

static inline bool sim_is_at(const JournalPlace *a, const JournalChain *chain)
{
    return memcmp(&a->chain, chain, sizeof(*chain)) == 0;
}

/* Reads what is new, up to 'seq'. False if the engine cannot be reached, or has no more of it; and
 * if its log has another history, when the copy is of no use any more (SPACE_ABSENT). */
static inline bool sim_catch_up(SimNode *node, SimCopy *copy, uint64_t seq, bool *is_behind)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Error err;
    JournalEntries entries;
    *is_behind = false;
    while (copy->place.seq < seq) {
        if (journal_read(node->journal, JOURNAL_LANE_FOLLOW, copy->space, copy->place.seq, 1 << 16,
                         &arena, &entries, &err) != STATUS_OK ||
            journal_report(node->journal, JOURNAL_LANE_FOLLOW, NULL, 0, &err) != STATUS_OK)
            return false;
        *is_behind = entries.count == 0 && entries.base > copy->place.seq;
        if (entries.count == 0)
            break;
        for (size_t i = 0; i < entries.count && copy->place.seq < seq; i++) {
            const JournalEntry *entry = &entries.items[i];
            assert_int_equal(entry->bytes.len, 8);
            assert_int_equal(entry->seq, copy->place.seq + 1);
            if (!sim_is_at(&copy->place, &entry->before)) {
                copy->role = SPACE_ABSENT;
                return false;
            }
            copy->place = (JournalPlace){entry->epoch, entry->seq, entry->chain};
            copy->sum += be64_get(entry->bytes.ptr);
        }
    }
    return true;
}

static inline bool sim_lives(const JournalNode *nodes, size_t count, const char *name,
                             uint64_t incarnation)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(nodes[i].name, slice_from_cstr(name)) &&
            nodes[i].incarnation == incarnation)
            return nodes[i].state != NODE_DEAD;
    }
    return false;
}

/* A space of a dead node has another owner only after the catalogue has (C9). */
static inline void sim_check_fenced(SimNode *node, StoreSpace space)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    const uint64_t catalog = SPACE_OF_CATALOG;
    const JournalNode *nodes = NULL;
    const JournalOwner *leader = NULL;
    size_t count = 0;
    size_t found = 0;
    Error err;
    const SimNode *before = node->sim->owned_by[space].node;
    uint64_t incarnation = node->sim->owned_by[space].incarnation;
    node->sim->owned_by[space].node = node;
    node->sim->owned_by[space].incarnation = atomic_load(&node->cluster->incarnation);
    if (before == NULL || space == SPACE_OF_CATALOG ||
        journal_nodes(node->journal, JOURNAL_LANE_ADMIN, &arena, &nodes, &count, &err) !=
            STATUS_OK ||
        journal_owners(node->journal, JOURNAL_LANE_ADMIN, &catalog, 1, &arena, &leader, &found,
                       &err) != STATUS_OK ||
        found == 0 || sim_lives(nodes, count, before->name, incarnation))
        return;
    if (slice_equal(leader->node, slice_from_cstr(before->name)) &&
        leader->incarnation == incarnation)
        fail_msg("space %d was taken from %s, which may still change the catalogue", (int)space,
                 before->name);
}

static inline Status sim_own(void *ctx, StoreSpace space, const JournalPlace *tail,
                             uint64_t deadline_us, Error *err)
{
    (void)deadline_us;
    SimNode *node = ctx;
    SimCopy *copy = sim_copy(node, space);
    assert_non_null(copy);
    bool is_behind;
    if (copy->place.seq > tail->seq)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "the log has lost entries");
    bool is_read = sim_catch_up(node, copy, tail->seq, &is_behind);
    if (copy->role == SPACE_ABSENT)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "the log has another history");
    if (is_behind)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "the log was trimmed");
    if (!is_read || copy->place.seq != tail->seq)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the log cannot be read to its end");
    if (tail->seq > 0 && !sim_is_at(&copy->place, &tail->chain))
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "the log has another chain");
    sim_check_fenced(node, space);
    copy->role = SPACE_OWNED;
    copy->epoch = tail->epoch;
    return STATUS_OK;
}

static inline Status sim_yield(void *ctx, StoreSpace space, JournalPlace *last, Error *err)
{
    SimCopy *copy = sim_copy(ctx, space);
    if (copy == NULL || copy->role != SPACE_OWNED)
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE, "the space is not owned");
    /* What a member gives away is another's although this node dies at once (C9). */
    SimNode *node = ctx;
    if (node->cluster->member == MEMBER_JOINED)
        node->sim->owned_by[space].node = NULL;
    copy->role = SPACE_FOLLOWED;
    if (node->loses_what_it_yields) {
        node->loses_what_it_yields = false;
        Status status = error_set(err, STATUS_NOT_OWNER, SUB_NONE, "an append has failed");
        node->hooks.lost(node->hooks.ctx, space, err);
        return status;
    }
    *last = copy->place;
    last->epoch = copy->epoch;
    return STATUS_OK;
}

static inline Status sim_forget(void *ctx, StoreSpace space, Error *err)
{
    SimCopy *copy = sim_copy(ctx, space);
    if (((SimNode *)ctx)->cannot_forget)
        return error_set(err, STATUS_IO, SUB_NONE, "the disk is full");
    if (copy != NULL) {
        assert_int_not_equal(copy->role, SPACE_OWNED);
        *copy = (SimCopy){0};
    }
    return STATUS_OK;
}

static inline void sim_poke(void *ctx)
{
    (void)ctx;
}

/* A copy travels as one piece: place and sum. */
static inline Status sim_source_open(void *ctx, StoreSpace space, SeedSource **out, Error *err)
{
    SimCopy *copy = sim_copy(ctx, space);
    if (copy == NULL || copy->role == SPACE_ABSENT)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "there is no copy");
    *out = mem_copy(copy, sizeof(*copy));
    return STATUS_OK;
}

static inline Status sim_source_next(SeedSource *source, size_t bytes_max, Buf *piece,
                                     bool *is_last, Error *err)
{
    (void)bytes_max;
    (void)err;
    buf_bytes(piece, source, sizeof(SimCopy));
    *is_last = true;
    return STATUS_OK;
}

static inline void sim_source_close(SeedSource *source)
{
    mem_free(source);
}

typedef struct SimTarget {
    SimNode *node;
    StoreSpace space;
    SimCopy copy;
    bool has_copy;
} SimTarget;

static inline Status sim_room(void *ctx, Error *err)
{
    return ((SimNode *)ctx)->has_no_room ? error_set(err, STATUS_IO, SUB_NONE, "the disk is full")
                                         : STATUS_OK;
}

static inline Status sim_target_open(void *ctx, StoreSpace space, SeedTarget **out, Error *err)
{
    ((SimNode *)ctx)->seeds_begun++;
    TRY(sim_forget(ctx, space, err));
    SimTarget *target = MEM_NEW(SimTarget);
    target->node = ctx;
    target->space = space;
    *out = (SeedTarget *)(void *)target;
    return STATUS_OK;
}

static inline Status sim_target_put(SeedTarget *opaque, Slice piece, Error *err)
{
    SimTarget *target = (SimTarget *)(void *)opaque;
    if (target->node->is_filling_up)
        return error_set(err, STATUS_IO, SUB_NONE, "the disk is full");
    if (piece.len != sizeof(SimCopy))
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "expected a whole copy");
    memcpy(&target->copy, piece.ptr, sizeof(SimCopy));
    target->has_copy = true;
    return STATUS_OK;
}

static inline Status sim_target_finish(SeedTarget *opaque, Error *err)
{
    SimTarget *target = (SimTarget *)(void *)opaque;
    if (!target->has_copy)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "expected a copy");
    SimCopy *copy = sim_copy(target->node, 0);
    assert_non_null(copy);
    *copy = target->copy;
    copy->role = SPACE_FOLLOWED;
    return STATUS_OK;
}

static inline void sim_target_close(SeedTarget *target)
{
    mem_free(target);
}

static inline void sim_set_full(void *ctx, bool is_full)
{
    ((SimNode *)ctx)->is_journal_full = is_full;
}

static inline bool sim_is_damaged(void *store)
{
    return ((SimNode *)store)->is_damaged;
}

static inline ClusterStore sim_store(SimNode *node)
{
    return (ClusterStore){
        .ctx = node,
        .places = sim_places,
        .place = sim_place,
        .follow = sim_follow,
        .own = sim_own,
        .yield = sim_yield,
        .forget = sim_forget,
        .poke = sim_poke,
        .set_full = sim_set_full,
        .room = sim_room,
        .source_open = sim_source_open,
        .source_next = sim_source_next,
        .source_close = sim_source_close,
        .target_open = sim_target_open,
        .target_put = sim_target_put,
        .target_finish = sim_target_finish,
        .target_close = sim_target_close,
        .is_damaged = sim_is_damaged,
        .store = node,
    };
}

/* ---- the catalogue ---- */

static inline Status sim_lead(void *ctx, Error *err)
{
    (void)err;
    ((SimNode *)ctx)->leads = true;
    return STATUS_OK;
}

static inline void sim_follow_catalog(void *ctx)
{
    ((SimNode *)ctx)->leads = false;
}

static inline bool sim_leads(void *ctx)
{
    return ((SimNode *)ctx)->leads;
}

static inline Status sim_refresh(void *ctx, Error *err)
{
    SimNode *node = ctx;
    if (node->cannot_refresh)
        return error_set(err, STATUS_IO, SUB_NONE, "a record of the catalogue cannot be read");
    node->published = sim_place(node, SPACE_OF_CATALOG).applied.seq;
    return STATUS_OK;
}

static inline bool sim_serves(const SimNode *node, StoreSpace space)
{
    for (size_t i = 0; i < node->served_count; i++) {
        if (node->served[i] == space)
            return true;
    }
    return false;
}

static inline Status sim_serve(void *ctx, StoreSpace space, Error *err)
{
    (void)err;
    SimNode *node = ctx;
    assert_int_equal(sim_place(node, space).role, SPACE_OWNED);
    if (!sim_serves(node, space))
        node->served[node->served_count++] = space;
    return STATUS_OK;
}

static inline Status sim_stop_serving(void *ctx, StoreSpace space, Error *err)
{
    (void)err;
    SimNode *node = ctx;
    for (size_t i = 0; i < node->served_count; i++) {
        if (node->served[i] == space) {
            node->served[i] = node->served[--node->served_count];
            break;
        }
    }
    SimCopy *copy = sim_copy(node, space);
    if (node->loses_what_it_stops && copy != NULL && copy->role == SPACE_OWNED) {
        Error reason = {.status = STATUS_NOT_OWNER};
        copy->role = SPACE_FOLLOWED;
        node->hooks.lost(node->hooks.ctx, space, &reason);
    }
    return STATUS_OK;
}

/* Each space is a container of its own. */
static inline uint32_t sim_container_of(void *ctx, StoreSpace space)
{
    (void)ctx;
    return space == SPACE_OF_CATALOG ? 0 : (uint32_t)space;
}

static inline uint32_t sim_switching(void *ctx)
{
    return (uint32_t)((SimNode *)ctx)->switching;
}

static inline Status sim_find_named(void *ctx, const StoreSpace *spaces, size_t count,
                                    bool *is_named, Error *err)
{
    (void)err;
    SimNode *node = ctx;
    for (size_t i = 0; i < count; i++) {
        uint64_t seq = spaces[i] <= SIM_SPACES_MAX ? node->sim->dropped_at[spaces[i]] : 0;
        is_named[i] = seq == 0 || sim_place(node, SPACE_OF_CATALOG).applied.seq < seq;
    }
    return STATUS_OK;
}

/* Those from Sim.shared_from on. */
static inline void sim_list_shared(void *ctx, Arena *arena, SharedSpace **out, size_t *count)
{
    const Sim *sim = ((SimNode *)ctx)->sim;
    uint64_t budgets = sim->shared_budgets > 0 ? sim->shared_budgets : 1;
    *out = ARENA_NEW_ARRAY(arena, SharedSpace, SIM_SPACES_MAX);
    *count = 0;
    for (StoreSpace space = sim->shared_from; space != 0 && space < SIM_SPACES_MAX; space++)
        (*out)[(*count)++] = (SharedSpace){.space = space, .budget = space % budgets};
}

/* A partition holds as many bytes as its number, and as many items as writes were applied. */
static inline void sim_list_usage(void *ctx, Arena *arena, SpaceUsage **out, size_t *count)
{
    SimNode *node = ctx;
    *out = ARENA_NEW_ARRAY(arena, SpaceUsage, SIM_SPACES_MAX);
    *count = node->served_count;
    for (size_t i = 0; i < *count; i++) {
        StoreSpace space = node->served[i];
        (*out)[i] = (SpaceUsage){.space = space,
                                 .held = {.items = sim_place(node, space).applied.seq,
                                          .bytes = space,
                                          .bytes_ever = space + 1},
                                 .busiest = space + 2,
                                 .is_one_key = space % 2 == 0};
    }
}

static inline void sim_note_usage(void *ctx, SpaceUsage *said, size_t count, uint64_t age_us)
{
    SimNode *node = ctx;
    for (size_t i = 0; i < count; i++) {
        assert_true(said[i].space <= SIM_SPACES_MAX);
        node->said[said[i].space] = said[i];
        node->said_us[said[i].space] = cluster_now_us(node->cluster) - age_us;
    }
}

static inline ClusterCatalog sim_catalog(SimNode *node)
{
    return (ClusterCatalog){.ctx = node,
                            .lead = sim_lead,
                            .follow = sim_follow_catalog,
                            .leads = sim_leads,
                            .refresh = sim_refresh,
                            .serve = sim_serve,
                            .stop_serving = sim_stop_serving,
                            .container_of = sim_container_of,
                            .switching = sim_switching,
                            .find_named = sim_find_named,
                            .list_shared = sim_list_shared,
                            .list_usage = sim_list_usage,
                            .note_usage = sim_note_usage};
}
