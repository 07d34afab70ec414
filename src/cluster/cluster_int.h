/* cluster_int.h - what the files of this folder share: the Cluster, and its steps.
 *
 * Each thread of the Cluster calls one step again and again; a test calls the steps itself, with
 * clocks of its own.
 *
 *     lease     lease_step      renews, and asks the engine for the time
 *     manager   manage_step     reads the engine, watches, takes over, hands over, follows, trims
 *     catalog   catalog_step    publishes what another node wrote in the catalogue; the barrier
 *     seeder    seed_step       copies spaces from other nodes
 *     server    (serving.c)     answers other nodes where that may wait
 *     reach     reach_step      finds nodes that cannot be reached; asks what partitions hold
 *
 * Locks, in this order: a lane, then Cluster.lock, then a shard of the owners. With Cluster.lock
 * the catalogue is asked whether a map is about to change (begin_yielding). None is held while
 * another thread is waited for; a lane is held for one statement of the engine. With usage_lock no
 * other lock is taken.
 */
#pragma once

#include "cluster/cluster.h"
#include "cluster/cluster_clock_int.h"
#include "cluster/lease_int.h"
#include "cluster/owner_table_int.h"
#include "cluster/parts_int.h"
#include "cluster/replica_watch_int.h"
#include "cluster/spaces_int.h"
#include "cluster/spread_int.h"
#include "cluster/watch_int.h"
#include "json/json.h"

/* The life of this node, as the engine sees it:
 *
 *     JOINED --> DROPPED --> OUT --> JOINED (a new incarnation)
 *        |          |         |
 *        +----------+---------+----> LEFT
 *
 * DROPPED: it was declared dead, or renews no more (watch_own_progress), and drops what it served.
 * OUT: it serves nothing. Only then it joins anew: a lease of the new incarnation must not be taken
 * for one of what was served before. It also needs the newest catalogue: what was changed without
 * it was answered elsewhere.
 */
typedef enum MemberState { MEMBER_JOINED, MEMBER_DROPPED, MEMBER_OUT, MEMBER_LEFT } MemberState;

enum {
    MANAGE_MS = 100,       /* between two rounds with nothing to do */
    VIEW_US = 1000000,     /* between two reads of the engine, unless one is asked for */
    VIEW_US_MIN = 10000,   /* and if one is asked for */
    RANK_US = 200000,      /* that each rank waits before it takes over */
    REJOIN_US = 200000,    /* between two looks whether a node has what it must have to join anew */
    RETRY_US = 1000000,    /* before a space that could not be taken is tried again */
    REPLACE_US = 60000000, /* a dead node's copies are not made elsewhere before that */
    ROWLESS_US =
        10000000,         /* a copy is without a row of the engine for so long until that is told */
    PIN_US = 600000000,   /* a copy that was asked for is kept for that long */
    CUT_OFF_US = 5000000, /* others must complain for so long before a node gives up */
    STUCK_US = 60000000,  /* a copy on a living node applies nothing for so long, of a long log */
    ROWS_CHECK_US = 5000000, /* a change of the catalogue has its rows so long before its commit */
    TRIM_US = 10000000,      /* between two rounds of trimming */
    LEFTOVERS_US = 5000000,  /* between two rounds of dropping what could not be dropped */
    ENGINE_US = 5000000,     /* between two looks at the engine itself */
    SPREAD_US = 1000000,     /* between two spaces that this node gives away to spread them */
    APART_US = 3000000,      /* a group is apart for so long before it is brought together */
    SETTLED_US = 10000000,   /* nodes must be the same for so long before spaces are spread */
    OWN_US = 10000000,       /* a space may take so long to apply the rest of its log */
    LAG_MAX = 64,            /* entries that a copy may be behind before it becomes the owner */
    CALL_MS = 500,           /* a request to another node */
    CATALOG_WAIT_MS = 100,   /* for a change of the catalogue that is on its way to this node */
    USAGE_BYTES_MAX = 8 << 20, /* what a node says of its partitions; it says at most half of it */
    ORDERS_MAX = 64,
};

/* A move of one space that was asked for. */
typedef struct SpaceOrder {
    StoreSpace space;
    char node[JOURNAL_NAME_MAX + 1];
    uint64_t until_us; /* boot time */
    HandOverReason reason;
} SpaceOrder;

/* A change of the catalogue that waits until all nodes have it. */
typedef struct Barrier {
    uint64_t seq;
    PlacementPublished *done;
    void *ctx;
} Barrier;

/* The engine itself, as it was read last. */
typedef struct EngineState {
    uint64_t bytes;
    char warning[CLUSTER_WARNING_MAX];
    size_t warning_len;
} EngineState;

typedef struct Waker {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool is_woken;
} Waker;
void waker_init(Waker *waker);
void waker_done(Waker *waker);
void waker_wake(Waker *waker);
void waker_wait(Waker *waker, uint32_t ms);

typedef struct Serving Serving;

struct Cluster {
    /* immutable after cluster_new */
    Journal *journal;
    ClusterFolder *folder;
    const Clock *clock;
    const Log *log;
    MetricsShard *metrics;
    char node[JOURNAL_NAME_MAX + 1];
    Arena join_arena;
    JournalJoin join;
    uint32_t replicas;
    uint64_t keep_us;
    uint64_t journal_bytes_max;
    uint8_t cluster[16];
    Status (*call)(void *ctx, ClusterCall *call, Error *err);
    void *call_ctx;
    CatalogPlacement placement;

    /* set once, before the threads that use them */
    ClusterStore store;
    ClusterCatalog catalog;

    Lease lease;
    ClusterClock time;
    pthread_mutex_t node_lane;  /* JOURNAL_LANE_NODE */
    pthread_mutex_t admin_lane; /* JOURNAL_LANE_ADMIN */

    /* atomic */
    _Atomic bool has_store;
    _Atomic bool has_catalog;
    _Atomic bool is_stopping;
    _Atomic bool is_refresh_wanted;
    _Atomic bool is_draining; /* an operator wants that */
    _Atomic bool is_leaving;
    _Atomic bool is_late; /* it does not get the catalogue's changes: it is to be no member until it
                             has them */
    _Atomic bool is_cut_off;       /* most others cannot reach this node */
    _Atomic uint64_t own_renewals; /* completed */
    _Atomic uint64_t lapses;       /* of the lease */
    _Atomic uint64_t catalog_done; /* entries of the catalogue that are published here */
    _Atomic uint64_t incarnation;
    /* The newest incarnation in which a renewal has said how far the catalogue is published here,
     * so that no change is answered without this node; and in which all changes that were answered
     * before that are published here, too. Only then is anything answered (J3, J8). */
    _Atomic uint64_t counted_in;
    _Atomic uint64_t current_in;
    _Atomic uint32_t living;    /* nodes, this one included, as they were read last; 0: never */
    _Atomic uint32_t untrimmed; /* own spaces whose log nothing may be trimmed of, for a while */
    _Atomic uint64_t
        rows_due_us; /* when to compare rows with the catalogue (monotonic); 0: never */

    /* guarded by 'lock' */
    pthread_mutex_t lock;
    MemberState member;
    SpaceTable spaces;
    NodeWatch watch;
    Barrier *barriers;
    size_t barrier_count;
    size_t barrier_capacity;
    SpaceOrder orders[ORDERS_MAX];
    size_t order_count;
    StoreSpace *dropped; /* to be forgotten */
    size_t dropped_count;
    size_t dropped_capacity;
    char unreachable[JOURNAL_UNREACHABLE_MAX];
    ClusterEvent events[CLUSTER_EVENTS_MAX];
    uint64_t event_count;
    uint64_t take_overs; /* since the start */
    uint64_t hand_overs;
    EngineState engine;

    Owners owners; /* see there */

    /* guarded by 'usage_lock', while they are copied */
    pthread_mutex_t usage_lock;
    Buf usage;         /* what this node says of its partitions (usage.c) */
    uint64_t usage_us; /* boot time when it looked; 0 if it has not */

    /* lease thread only */
    uint64_t renewed_us; /* boot time before the newest renewal was sent; 0 if there was none */
    bool renew_failed;
    int64_t clock_told_us; /* the difference of the clocks that was told last */

    /* manager thread only */
    Arena view_arena;
    ClusterView view;
    uint64_t view_us; /* boot time of the newest read; 0 if there was none */
    uint64_t lapses_seen;
    uint64_t rejoin_us;
    uint64_t settle_us; /* boot time when the lease has ended that the process before had; 0 then */
    uint64_t trimmed_us;
    uint32_t untrimmed_before;     /* in the last round of trimming */
    uint64_t journal_told_percent; /* how full the log has said that the journal is */
    ReplicaWatch replica_watch;
    uint64_t engine_asked_us; /* 0 if it is to be asked at once */
    uint64_t cut_off_us;      /* when most others could reach it last */
    uint64_t spread_us;
    uint64_t round_us;   /* when that was looked at last */
    uint64_t nodes_hash; /* of the living nodes, and since when they are the same */
    uint64_t nodes_since_us;
    bool view_failed;
    uint64_t
        late_seq; /* an end of the catalogue that is waited for, for how long it was, and when */
    uint64_t late_for_us; /* that was looked at last */
    uint64_t late_seen_us;
    StoreSpace *leftovers; /* copies that could not be dropped */
    size_t leftover_count;
    size_t leftover_capacity;
    uint64_t leftovers_us; /* when that was tried last */
    bool is_leading;       /* it served the catalogue in the last round */
    bool has_told_damage;

    /* catalog thread only */
    uint64_t poked_seq;
    uint64_t poked_us;
    uint32_t barrier_pause_ms;

    /* threads */
    Waker lease_waker;
    Waker manager_waker;
    Waker catalog_waker;
    Waker seeder_waker;
    Waker reach_waker;
    pthread_t threads[5];
    size_t thread_count;
    bool has_lease_thread;
    pthread_t lease_thread;
    Serving *serving;
    struct SeedSessions *seeds; /* one thread at a time: the server's */
};

/* Makes a Cluster that has no threads: a test calls the steps. */
MUST_USE Status cluster_create(const ClusterOptions *options, Cluster **out, Error *err);
void cluster_bind_store(Cluster *cluster, ClusterStore store);
void cluster_bind_catalog(Cluster *cluster, ClusterCatalog catalog);
void cluster_destroy(Cluster *cluster);
/* One round of joining: whether the catalogue's space is led or followed to its end. */
MUST_USE Status cluster_try_join_catalog(Cluster *cluster, bool *is_ready, bool *is_leader,
                                         Error *err);
MUST_USE Status cluster_make_catalog_space(Cluster *cluster, Error *err);
/* Where the log of the catalogue ends in the engine. */
MUST_USE Status cluster_read_catalog_end(Cluster *cluster, uint64_t *seq, Error *err);
MUST_USE Status cluster_reach_catalog_end(Cluster *cluster, Error *err);
MUST_USE Status cluster_start_threads(Cluster *cluster, Error *err);
void cluster_pause_ms(uint32_t ms);
void cluster_end_membership(Cluster *cluster);

static inline uint64_t cluster_now_us(const Cluster *cluster)
{
    return clock_boot_us(cluster->clock);
}

/* ---- node_lease.c ---- */
void lease_step(Cluster *cluster);
void cluster_renew_soon(Cluster *cluster);
MUST_USE Status cluster_rejoin(Cluster *cluster, Error *err);

/* ---- cluster_clock.c ---- */
/* Asks the engine for the time and compares the node's clock with it. */
void clock_step(Cluster *cluster);
/* The clocks disagree, or were not compared yet: nothing is removed that has expired. */
bool cluster_doubts_time(const Cluster *cluster);

/* ---- manage.c ---- */
void manage_step(Cluster *cluster);
/* Reads nodes, owners and, if asked for, replicas, into the arena. */
MUST_USE Status cluster_read_view(Cluster *cluster, bool with_replicas, Arena *arena,
                                  ClusterView *view, uint64_t *begun_us, Error *err);
/* Adds which spaces share a budget, as far as this node's catalogue says, if it has one. */
void cluster_read_groups(Cluster *cluster, Arena *arena, ClusterView *view);
void drop_all_spaces(Cluster *cluster, const char *reason);
/* Owners as they were read replace older ones, for requests. */
void cluster_note_owners(Cluster *cluster, const ClusterView *view);
void cluster_wake_manager(Cluster *cluster);

/* ---- ownership.c ---- */
/* The engine says that the space is this node's in 'tail.epoch': serves it, if nothing newer is
 * known. Failures are noted, and tried again. */
void own_space(Cluster *cluster, StoreSpace space, const JournalPlace *tail, const char *reason);
/* Takes over what this node may of the orphans of a group; waits for its rank. */
void take_over_group(Cluster *cluster, const ClusterView *view, SpaceGroup group);
/* Serves nothing of the space any more. */
void drop_space(Cluster *cluster, StoreSpace space, const char *reason);
void clean_lost_spaces(Cluster *cluster);
/* Drops what the engine says is not this node's although it has not given it away, and of what it
 * has less than this node: it has gone back to an older state, and others may be the owners. */
void drop_lost_by_engine(Cluster *cluster, const ClusterView *view);
/* Serves what the rows give to this node; also by the catalogue's thread, before it publishes. */
void own_assigned(Cluster *cluster, const JournalOwner *owners, size_t count);
/* Waits a moment until the catalogue is published here as far as the view shows it, if the view has
 * something that this node should serve. */
void await_catalog(Cluster *cluster, const ClusterView *view);
/* Does the same with a space that was just made, on the catalogue's own thread. */
void own_new_space(Cluster *cluster, StoreSpace space, const JournalPlace *tail);
/* Spaces that are this node's in the engine, but of no use to it in this epoch any more: gives them
 * to a node with a copy, or to itself in a new epoch. */
void rescue_assigned(Cluster *cluster, const ClusterView *view);
bool cluster_serves(Cluster *cluster, StoreSpace space);
void cluster_publish_space(Cluster *cluster, StoreSpace space, Slice node, uint64_t incarnation,
                           uint64_t epoch, bool is_served);

/* ---- hand_over.c ---- */
/* Takes the next step of giving what this node serves of the group to the node; true when all of it
 * was given or cannot be. */
bool hand_over_group(Cluster *cluster, const ClusterView *view, SpaceGroup group, size_t to,
                     HandOverReason reason);
/* Whether the engine was told that the node has a copy which is at most LAG_MAX entries behind. */
bool is_reported_near(const ClusterView *view, StoreSpace space, size_t node, uint64_t seq);
void continue_hand_overs(Cluster *cluster);
void carry_out_orders(Cluster *cluster, const ClusterView *view);
void give_all_away(Cluster *cluster, const ClusterView *view, HandOverReason reason);
void spread_evenly(Cluster *cluster, const ClusterView *view);
MUST_USE Status cluster_order(Cluster *cluster, StoreSpace space, Slice node, HandOverReason reason,
                              Error *err);

/* ---- orders.c ---- */
MUST_USE Status set_draining(Cluster *cluster, Slice node, bool is_draining, const char *reason,
                             Error *err);
/* A node whose disk has damaged data gives all to others, and gets nothing more. */
void drain_damaged(Cluster *cluster);

/* ---- following.c ---- */
void follow_spaces(Cluster *cluster, const ClusterView *view);
/* The others do not count on this node's copy any more, nor does the log wait for it. */
MUST_USE Status expel_own_copy(Cluster *cluster, StoreSpace space, Error *err);
/* Copies that this node is said to have, but has not, count no more. True if there were any: what
 * was read is then to be read again before it is acted upon. */
bool expel_lost_copies(Cluster *cluster, const ClusterView *view);
void forget_dropped(Cluster *cluster, const ClusterView *view);

/* ---- barrier.c ---- */
void catalog_step(Cluster *cluster);
void barrier_step(Cluster *cluster);
void cluster_published(void *ctx, PlacementPublished *done, void *done_ctx);
bool barriers_wait(Cluster *cluster);
void barriers_release(Cluster *cluster);
/* Whether everything is published here that the catalogue had when the rows were read. */
bool catalog_is_published(Cluster *cluster, const JournalOwner *owners, size_t count);
/* The changes of the catalogue wait for this node: it steps aside if they do so for too long. */
void watch_own_progress(Cluster *cluster, const ClusterView *view);
/* Whether this node has all that was changed, and so may be a member. */
bool has_newest_catalog(Cluster *cluster);

/* ---- new_spaces.c ---- */
Status cluster_create_spaces(void *ctx, StoreSpace first, size_t count, StoreSpace beside,
                             Error *err);
void cluster_dropped(void *ctx, StoreSpace first, StoreSpace last);
Status cluster_gather(void *ctx, const StoreSpace *spaces, size_t count, Error *err);

/* ---- seeding.c ---- */
/* One attempt at the copy of one space; false if none is due. */
bool seed_step(Cluster *cluster);

/* ---- engine_state.c ---- */
/* 'is_answering': the manager could read what it needs, which takes an acknowledged write (J10). An
 * engine whose standby is away answers this alone, and says so. */
void engine_step(Cluster *cluster, bool is_answering);
uint64_t engine_bytes(Cluster *cluster);

/* ---- copies_warning.c ---- */
/* Notes how many nodes live, for cluster_copies_warning. */
void note_living(Cluster *cluster, const ClusterView *view);
/* And of how many partitions that this node owns nothing may be trimmed, because no other node is
 * to have a copy. After each round of trimming. */
void note_untrimmed(Cluster *cluster, uint32_t count);

/* ---- status_moves.c ---- */
/* Hand-overs under way, of all nodes: asks the others. Waits. */
void status_add_moves(Cluster *cluster, const ClusterView *view, JsonBuilder *b);
/* Those of this node, for another one. */
int moves_answer(Cluster *cluster, Buf *out);

/* ---- trimming.c ---- */
void trim_step(Cluster *cluster, const ClusterView *view);

/* ---- node_requests.c, serving.c, node_calls.c ---- */
/* Answers a request of another node. Waits. */
int node_answer(Cluster *cluster, Slice path, Buf *out);
bool node_request_waits(Slice path);
MUST_USE Status node_call(Cluster *cluster, Slice address, const char *what, const char *query,
                          uint32_t timeout_ms, Buf *answer, Error *err);
/* The same for what the other node would find by itself, only later. */
void node_tell(Cluster *cluster, Slice address, const char *what, const char *query);
Serving *serving_new(Cluster *cluster);
MUST_USE Status serving_start(Serving *serving, Error *err);
void serving_free(Serving *serving); /* accepts NULL */

/* Copies of spaces that other nodes are reading. */
typedef struct SeedSessions SeedSessions;
SeedSessions *seed_sessions_new(Cluster *cluster);
MUST_USE Status seed_sessions_answer(SeedSessions *sessions, StoreSpace space, uint64_t session,
                                     uint64_t piece, Buf *out, Error *err);
void seed_sessions_free(SeedSessions *sessions); /* accepts NULL */

/* The value of 'name' in a query string; empty if it is not there. */
Slice query_value(Slice query, Slice name);

/* ---- reach.c ---- */
void reach_step(Cluster *cluster);

/* ---- usage.c ---- */
void usage_look(Cluster *cluster);
int usage_answer(Cluster *cluster, Buf *out);
void usage_ask(Cluster *cluster, const JournalNode *node);
/* What the node has answered to a request that was sent at 'asked_us' (boot time); false if it is
 * not an answer at all. */
bool usage_note(Cluster *cluster, Slice name, Slice answer, uint64_t asked_us);

/* ---- events.c ---- */
void cluster_event(Cluster *cluster, const char *kind, StoreSpace space, uint64_t epoch, Slice node,
                   const char *format, ...) PRINTF_LIKE(6, 7);
/* Adds to the event of the space that begins to be served in that epoch for how long nobody has. */
void cluster_event_fence(Cluster *cluster, StoreSpace space, uint64_t epoch, uint64_t fence_us);
