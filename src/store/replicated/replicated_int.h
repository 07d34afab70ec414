/* replicated_int.h - what the files of this folder share: the engine and its spaces.
 *
 * A transaction goes through three threads:
 *
 *     commit thread      a lane                   the applier
 *     submit ---> waiting ---> append ---> ready ---> write ---> complete
 *
 * Locks are taken in this order: 'writing', 'lock'.
 */
#pragma once

#include "base/mailbox.h"
#include "store/engine_int.h"
#include "store/replicated/replicated_store.h"

#include <pthread.h>

/* What one append writes, over all spaces. Larger groups take the engine longer than they save. */
#define APPEND_BYTES_MAX ((size_t)1 << 20)

enum { LANES = 1 };

/* After this an append whose answer does not come is of unknown outcome, and what waits is refused.
 */
#define APPEND_US_MAX ((uint64_t)20 * 1000 * 1000)

/* When the oldest append is older than this, new transactions are refused. */
#define APPEND_US_SLOW ((uint64_t)1000 * 1000)

enum { RETRY_AFTER_MS = 500 }; /* of transactions that are refused because appends are slow */

/* Why a space that is not owned is not followed either. */
typedef enum SpaceTrouble {
    SPACE_SOUND,
    SPACE_BEHIND,  /* the log was trimmed past it */
    SPACE_REFUSED, /* what is here is not what the log says */
    SPACE_NEWER,   /* an entry needs a newer program */
} SpaceTrouble;

typedef struct AppendGroup AppendGroup;

/* Guarded by 'lock' of the Replication; lives until the store is closed. */
typedef struct ReplicaSpace {
    StoreSpace space;
    SpaceRole role;
    SpaceTrouble trouble;
    uint64_t life;    /* another one after each drop */
    bool is_stored;   /* RocksDB has something of it */
    bool is_changing; /* one thread changes its role, or applies entries to it */
    bool is_seeded;   /* it is being filled from another node, in a change */

    /* While it is owned. */
    bool is_closing;          /* appends no transaction from 'closing_from' on */
    uint64_t closing_from;    /* a number */
    size_t closing_left;      /* closing: transactions from before that are not completed */
    bool is_lost;             /* an append has failed: what waits is refused */
    uint64_t epoch;           /* in which it is owned */
    JournalPlace appended;    /* the newest that the journal has */
    const AppendGroup *group; /* the append that it is in; NULL if none is under way */

    size_t under_way; /* transactions that were taken and are not completed */
    JournalPlace applied;
    uint64_t durable_seq;
    uint64_t reported_applied; /* to the journal */
    uint64_t reported_durable;
    bool is_read_alone; /* reading its log has failed; see follower.c */
} ReplicaSpace;

/* An empty transaction, which is completed after those before it. */
typedef struct Barrier {
    EngineTxn *txn;
    size_t left;
} Barrier;

typedef struct AppendLane {
    struct Replication *replication;
    JournalLane lane;
    pthread_t thread;
    bool has_thread;

    /* Guarded by 'lock'. */
    uint64_t began_us;  /* of the append under way; 0 if there is none */
    uint64_t silent_us; /* of the first append without an answer until its deadline since the last
                           that had one; 0 if there is none */
} AppendLane;

/* A thread that does something now and then. */
typedef struct PeriodicThread {
    pthread_t thread;
    bool has_thread;
} PeriodicThread;

struct Replication {
    Engine engine; /* first */

    /* Immutable after open. */
    Engine *local;
    Journal *journal;
    ReplicationHooks hooks;
    const Clock *clock;
    const Log *log; /* may be NULL */
    EngineOps ops;

    /* Held for each write to RocksDB's engine, which one thread at a time may make. */
    pthread_mutex_t writing;

    /* The follower's thread alone. */
    StoreSpace follow_from; /* with which its next round begins */
    StoreSpace alone_from;  /* with which the next turn of those begins that are read alone */
    bool was_alone;         /* its newest round has read one space alone */

    /* Guards everything below. */
    pthread_mutex_t lock;
    pthread_cond_t changed;    /* a role, a place, what is under way or followed, 'is_stopping' */
    pthread_cond_t has_work;   /* 'waiting', or a space that can be appended to again */
    pthread_cond_t has_ready;  /* 'ready' */
    pthread_cond_t is_poked;   /* 'is_poking', 'is_stopping' */
    pthread_cond_t sync_ended; /* 'is_stopping' */
    ReplicaSpace **spaces;     /* in order */
    size_t space_count;
    size_t space_capacity;
    EngineTxn *waiting; /* oldest first */
    EngineTxn **waiting_end;
    AppendGroup *ready; /* oldest first */
    AppendGroup **ready_end;
    uint64_t next_number; /* of a transaction */
    size_t under_way;     /* transactions that are not completed, barriers left out */
    size_t ending;        /* barriers that are being completed */
    Barrier *barriers;
    size_t barrier_count;
    size_t barrier_capacity;
    bool is_journal_full; /* see replication_set_full */
    bool is_poking;       /* the follower has been asked to look */

    /* Everything that is read from the journal on its lane, and what is done with it. */
    bool is_following;
    size_t following_wanted; /* by threads that wait for it */

    bool is_stopping;
    Error local_failure; /* of the newest write to RocksDB; STATUS_OK if it succeeded */

    AppendLane lanes[LANES];
    PeriodicThread applier;
    PeriodicThread syncer;
    PeriodicThread follower;
};

static inline Replication *replication_of(Engine *engine)
{
    return CONTAINER_OF(engine, Replication, engine);
}

/* Opens the engine without a store, for tests that stand between the two. */
MUST_USE Status replicated_engine_open(const ReplicatedStoreOptions *options, Engine **out,
                                       Error *err);

static inline bool chain_equal(const JournalChain *a, const JournalChain *b)
{
    return memcmp(a->bytes, b->bytes, JOURNAL_CHAIN_BYTES) == 0;
}

/* ---- space_places.c: the spaces, and their places in RocksDB ---- */

/* Whether what RocksDB has of a space is whole. */
typedef enum StoredState { STORED_WHOLE = 0, STORED_PARTLY = 1 } StoredState;

/* Under 'lock'. The second makes one, absent, if there is none. */
ReplicaSpace *spaces_find(const Replication *replication, StoreSpace space); /* or NULL */
ReplicaSpace *spaces_get(Replication *replication, StoreSpace space);

/* Adds the place of a space to what is about to be written. */
void place_put(Tree *tree, StoreSpace space, StoredState state, const JournalPlace *place);
void place_delete(Tree *tree, StoreSpace space);

/* The place of a space as of 'snapshot', which is RocksDB's; NULL for now. STATUS_NOT_FOUND if only
 * a part of the space is there. */
MUST_USE Status place_read(Replication *replication, const StoreSnapshot *snapshot,
                           StoreSpace space, JournalPlace *out, bool *found, Error *err);

/* When the store is opened: reads all places. Drops spaces of which only a part is there. */
MUST_USE Status places_load(Replication *replication, Error *err);

/* On RocksDB's engine alone, without a Replication. */
MUST_USE Status places_delete_all(Engine *local, Error *err);

/* Writes to RocksDB, with 'writing' held. It never fails with STATUS_CORRUPT. */
MUST_USE Status replication_write(Replication *replication, const EngineWrites *writes,
                                  size_t count, Error *err);

/* Under 'lock': waits until no other thread changes the space, and then does. False if the deadline
 * (monotonic, real time) has passed. */
bool space_begin_change(Replication *replication, ReplicaSpace *space, uint64_t until_us);
void space_end_change(Replication *replication, ReplicaSpace *space);

/* Under 'lock', in a change: transactions that come from now on are refused. What waits for those
 * from before waits for 'closing_left': others may come all the time. */
void space_begin_closing(const Replication *replication, ReplicaSpace *space);

/* Drops the copies of the spaces [first, last], which become absent. */
MUST_USE Status spaces_drop(Replication *replication, StoreSpace first, StoreSpace last,
                            Error *err);

/* The same for one space, with STATUS_CONFLICT if it is owned by then. */
MUST_USE Status space_drop_copy(Replication *replication, StoreSpace space, Error *err);

/* ---- append_stage.c and apply_stage.c ---- */

/* One space in one append. */
typedef struct AppendSlot {
    ReplicaSpace *space;
    EngineTxn *first; /* its transactions, in order */
    EngineTxn **end;
    size_t count;
    JournalPlace before;
    JournalPlace after;
    AppendOutcome outcome;
} AppendSlot;

struct AppendGroup {
    AppendGroup *next;
    AppendSlot *slots;
    size_t slot_count;
    size_t slot_capacity;
    Error err;          /* of the append, if some outcome is not APPEND_DONE */
    bool is_unanswered; /* until its deadline */
    EngineTxn *refused; /* completed with the error at the same place of 'reasons' */
    EngineTxn **refused_end;
    Error *reasons;
    size_t reason_count;
    size_t reason_capacity;
};

AppendGroup *append_group_new(void);
void append_group_free(AppendGroup *group);
void append_group_refuse(AppendGroup *group, EngineTxn *txn, const Error *reason);

/* engine_int.h: 'submit', 'drain' and 'room'. */
void replicated_submit(Engine *engine, EngineTxn *first);
void replicated_drain(Engine *engine);
MUST_USE Status replicated_room(Engine *engine, EngineNeed need, size_t bytes, Error *err);

void *append_thread(void *lane);
void *apply_thread(void *replication);

/* Under 'lock'. Hands what waits for the space to the applier, which refuses it. */
void append_refuse_waiting(Replication *replication, ReplicaSpace *space, const Error *reason);

/* Without the lock: completes a transaction that was taken. */
void commit_end_transaction(Replication *replication, EngineTxn *txn, const Error *err);

/* RocksDB has refused what the journal has: no space is owned any more. */
void give_up_all(Replication *replication, const Error *reason);

/* The reason for which nothing is appended for now; STATUS_OK if there is none. Under 'lock'. */
MUST_USE Status append_check_speed(const Replication *replication, Error *err);

/* ---- durability.c ---- */

void *sync_thread(void *replication);

/* ---- follower.c ---- */

void *follow_thread(void *replication);

/* The journal's lane, which is for one thread at a time. False if the deadline has passed. */
MUST_USE bool follow_begin(Replication *replication, uint64_t until_us);
void follow_end(Replication *replication);

/* Applies everything up to 'tail'. The space is in a change of the caller's. */
MUST_USE Status follow_up_to(Replication *replication, ReplicaSpace *space,
                             const JournalPlace *tail, uint64_t deadline_us, Error *err);

/* ---- space_reader.c ---- */

/* Everything that readers see in a space at one moment, in the order of the keys. */
typedef struct SpaceReader SpaceReader;

/* '*place' is that of the moment; zeroes if nothing was applied yet. STATUS_NOT_FOUND if the node
 * has no copy, or not all of it. */
MUST_USE Status space_reader_open(Replication *replication, StoreSpace space, SpaceReader **out,
                                  JournalPlace *place, Error *err);

/* The next key, full, with the value as it is stored and as it is seen; they live until the next
 * call. STATUS_CORRUPT if it is damaged. */
MUST_USE Status space_reader_next(SpaceReader *reader, EngineItem *item, Slice *seen, bool *found,
                                  Error *err);
void space_reader_close(SpaceReader *reader); /* accepts NULL */
DEFINE_AUTO(SpaceReader *, space_reader_close)
