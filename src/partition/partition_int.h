/* partition_int.h - a partition, in parts by their writers, and what its files share to read it.
 *
 * Each part is a struct of its own, with its functions: partition_state_int.h, inbox_int.h,
 * current_schema_int.h, purges_int.h, counters_int.h. What a group of writes is
 * and does is in group_int.h, which only those include that apply writes.
 */
#pragma once

#include "partition/baseline_int.h"
#include "partition/counters_int.h"
#include "partition/current_schema_int.h"
#include "partition/epk_locks_int.h"
#include "partition/inbox_int.h"
#include "partition/index_state_int.h"
#include "partition/item_move.h"
#include "partition/partition.h"
#include "partition/partition_state_int.h"
#include "partition/purges_int.h"
#include "partition/space_key_int.h"
#include "partition/view.h"

/* How far maintenance has come. */
typedef struct Upkeep {
    Key purge_position;  /* where the first purge continues; empty for its beginning */
    Key sweep_position;  /* likewise of the sweep for expiry notes */
    int64_t sweep_ttl_s; /* the default TTL that the sweep is made for */
} Upkeep;

typedef struct Bulk Bulk; /* see item_import.c */

/* What only the holder of the turn touches. A group begins with it and, when it is durable, puts
 * there what it has become. */
typedef struct WriterState {
    PartitionCounters counters;
    IndexState *index;
    uint64_t index_position; /* items up to this number have the terms of the new policy */
    bool index_is_stored;
    Upkeep upkeep;
    Baselines baselines;
    Bulk *bulk;         /* items of a move that are not in the store yet; NULL if there are none */
    bool has_lost_bulk; /* they could not be written: the move that brought them must fail */
} WriterState;

struct Partition {
    _Atomic uint32_t refs;

    /* Immutable after open. */
    PartitionHost *host;
    StoreSpace space;
    uint64_t cache_name; /* of this opening, in the cache: another process may have written since
                            the one before (I10) */
    uint32_t id;
    bool has_sizes;    /* every logical partition has its record; false if they were not counted */
    bool has_log;      /* every item is in the change log; false if that could not be made */
    HashKey index_key; /* secret */
    Error *damage;     /* why its records cannot be read: all but a drop is refused; NULL if not */

    /* Any thread, each by its own rules. */
    _Atomic PartitionState state;
    CurrentSchema current;
    PurgeList purges;
    PublishedCounters published;
    Inbox inbox;
    _Atomic uint64_t item_next;  /* count part of the next number that is given out: to groups and
                                    to transactions, some of which never commit (I2) */
    _Atomic uint32_t stamp_next; /* of what transactions write; 0 is skipped */
    _Atomic uint32_t baseline_count;
    _Atomic bool has_stale_befores;    /* a hint: there may be records of baselines that are gone */
    _Atomic uint64_t restore_begun_us; /* monotonic */
    _Atomic uint64_t restores;         /* begun and ended: odd while one is under way (I27) */
    _Atomic uint64_t trim_due_s; /* a hint: when to look for history that is too old; UINT64_MAX if
                                    there is none */

    /* The holder of the turn. */
    WriterState writer;
    EpkLocks locks;
    uint32_t generation;   /* see write_hold.h */
    unsigned group_shift;  /* by how much groups are smaller than they may be: group_run.c */
    unsigned groups_taken; /* by the store since it was changed */
    bool is_unsure; /* a commit was refused for another owner, or nobody knows its outcome: what
                       the partition counts may not be what is stored */

    /* Set when it is retired, by the holder of the turn; for the last one to let go of it. */
    PartitionGone gone; /* NULL if it is not called */
    void *gone_ctx;
};

static inline PartitionState partition_state(const Partition *partition)
{
    return atomic_load_explicit(&partition->state, memory_order_acquire);
}

/* The reason why a damaged partition refuses everything. */
MUST_USE Status partition_check_damage(const Partition *partition, Error *err);

/* STATUS_GONE, STATUS_NOT_OWNER or STATUS_NOT_FOUND: why a retired, stopped or dropped partition
 * refuses a message. */
MUST_USE Status partition_refuse(const Partition *partition, Error *err);

/* Queues a message if the partition's state accepts it; 'bytes' as for inbox_post. */
MUST_USE Status partition_post(Partition *partition, PartitionMessage *message, size_t bytes,
                               Error *err);

/* Posts a turn, and waits for it: at once, or in two steps. */
MUST_USE Status partition_begin_turn(Partition *partition, Turn *turn, int kind, Error *err);
MUST_USE Status partition_end_turn(Turn *turn, Error *err);
MUST_USE Status partition_take_turn(Partition *partition, Turn *turn, int kind, Error *err);

/* Readers look at this before and after they choose what they see, so that they see nothing of a
 * restore that is half done (I27): STATUS_THROTTLED. After that they also know whether the
 * partition was stopped: STATUS_NOT_OWNER. */
MUST_USE Status partition_begin_read(const Partition *partition, uint64_t *restores, Error *err);
MUST_USE Status partition_end_read(const Partition *partition, uint64_t restores, Error *err);

/* For the thread that drives a move. Messages that waited at the fence are applied, or refused. */
void partition_unfence(Partition *partition);
void partition_retire(Partition *partition, PartitionGone gone, void *ctx);
void partition_unwatch(Partition *partition);
void partition_unhold(Partition *partition); /* for the thread that holds it: see baseline.h */

/* group_run.c: a writer thread has the turn. */
void partition_run(WorkerJob *job);

/* index_state.c: reads the state at the opening, or begins one; 'is_new' says that nothing was ever
 * written to the partition. */
MUST_USE Status partition_load_index(Partition *partition, bool is_new, Error *err);
unsigned partition_index_percent(const Partition *partition); /* of the holder's state */

/* size_recount.c: makes the records of a partition that has none. If that cannot be done, which is
 * logged, 'has_sizes' stays false. */
void partition_count_sizes(Partition *partition);

/* host_time.c: the host's time is at least this one, which was stored. */
void partition_host_start_at_s(PartitionHost *host, uint32_t now_s);
/* Nothing may be removed because of the time. */
bool partition_host_doubts_time(const PartitionHost *host);

/* The stored bytes of the newest item under a key, from the cache if they are there. With 'puts'
 * they are put into the cache if they are not. */
MUST_USE Status partition_get_bytes(Partition *partition, Slice key, bool puts, StoreRead read,
                                    StoreValue *value, StoreFound *found, Error *err);

/* Whether an item is gone though it is still stored (I5): it has expired by 'now_s', or a purge up
 * to 'purged_lsn' covers it. The one place that decides it. */
static inline bool item_is_gone(const PartitionSchema *schema, const Item *item, uint64_t now_s,
                                uint64_t purged_lsn)
{
    return item->lsn <= purged_lsn || item_expires_at_s(schema, item) <= now_s;
}

/* A moment that readers see: with the purges from before the snapshot (I6). */
typedef struct ReadMoment {
    const StoreSnapshot *snapshot;
    StoreTxn *own; /* a transaction's own writes, to be seen over the snapshot; NULL if none are */
    const Purge *purges;
    size_t purge_count;
    uint64_t now_s;
} ReadMoment;

static inline bool moment_hides(const ReadMoment *moment, const PartitionSchema *schema, Slice epk,
                                const Item *item)
{
    return item_is_gone(schema, item, moment->now_s,
                        purges_find(moment->purges, moment->purge_count, epk));
}

/* scan.c: reads one key as of the moment, and walks over keys. */
MUST_USE Status moment_get(const ReadMoment *moment, const Partition *partition, Slice key,
                           StoreRead read, StoreValue *value, StoreFound *found, Error *err);
StoreCursor *moment_cursor(const ReadMoment *moment, const Partition *partition, Slice from,
                           Slice to);

/* view.c: has the view see a transaction's own writes (NULL if it has none), by its time. */
void partition_view_overlay(PartitionView *view, StoreTxn *own, uint64_t now_s);

/* scan.c: takes one entry off the budget (NULL if there is no bound); false if none is left. */
bool scan_budget_spend(ScanBudget *budget, const Clock *clock);

/* scan.c: a scan for queries, of a moment that a view keeps and that outlives the scan. */
MUST_USE Status partition_scan_open_at(Partition *partition, PartitionSchema *schema,
                                       const ReadMoment *at, const ScanOptions *options,
                                       PartitionScan **out, Error *err);

/* scan.c: a scan of all items as a transaction sees them, which has written 'own'. */
MUST_USE Status partition_scan_open_own(Partition *partition, PartitionSchema *schema,
                                        StoreTxn *own, uint64_t now_s, const ScanOptions *options,
                                        PartitionScan **out, Error *err);
