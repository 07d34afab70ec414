/* partition_int.h - what the files of a partition share: keys, state, the group being applied.
 *
 *     key                              value
 *     | 01 |                           the counters, see partition.c
 *     | 02 | EPK | id |                an item, see item.c
 *     | 03 | number u64 BE |           where that item is: | EPK length u16 LE | EPK | id |
 *     | 04 | s u32 BE | number |       nothing: look at this item at that second
 *     | 05 | which u8 | EPK | values | the number, u64 LE, that has these values of a unique key
 *     | 06 | EPK |                     an LSN, u64 LE: items up to it are purged
 *     | 07 |                           the state of the index, see index_state.c
 *     | 08 | EPK |                     what the logical partition holds, see size_int.h; merged
 *     | 10 | path | value | chunk |    which items have this value there, see index/term.h
 *
 * An EPK is of a fixed length in its container or ends itself, so no (EPK, id) looks like another.
 */
#pragma once

#include "base/encoding.h"
#include "index/term.h"
#include "index/terms.h"
#include "partition/index_state_int.h"
#include "partition/move.h"
#include "partition/partition.h"
#include "partition/size_int.h"

#include <pthread.h>
#include <semaphore.h>

enum {
    KEY_COUNTERS = 0x01,
    KEY_ITEM = 0x02,
    KEY_NUMBER = 0x03,
    KEY_EXPIRY = 0x04,
    KEY_UNIQUE = 0x05,
    KEY_PURGE = 0x06,
    KEY_INDEX_STATE = 0x07,
    KEY_SIZE = 0x08,
    KEY_TERM = TERM_KIND,
};

#define KEY_BYTES_MAX 4096

typedef struct Key {
    uint8_t bytes[KEY_BYTES_MAX];
    size_t len;
} Key;

static inline Slice key_slice(const Key *key)
{
    return slice_make(key->bytes, key->len);
}

void key_item(Key *key, Slice epk, Slice id);
void key_number(Key *key, uint64_t number);
void key_expiry(Key *key, uint64_t expires_at_s, uint64_t number);
void key_purge(Key *key, Slice epk);
void key_size(Key *key, Slice epk);

/* The EPK in front of an item's key. */
Slice key_item_epk(const PartitionSchema *schema, Slice key, const Item *item);

typedef struct PartitionCounters {
    uint64_t lsn;
    uint64_t item_next; /* count part of the next item's number */
    uint64_t items;
    uint64_t bytes;
    int64_t ttl_swept_s; /* the default TTL for which every item has its expiry noted, or
                            TTL_UNSWEPT */
    uint64_t bytes_ever; /* the most that 'bytes' has been; behind the rest: see partition.c */
} PartitionCounters;

/* Items were written under a default for which the others have no notes yet. */
#define TTL_UNSWEPT INT64_MIN

/* An EPK prefix whose items up to 'lsn' are gone though still stored. */
typedef struct Purge {
    Epk epk;
    uint64_t lsn;
} Purge;

#define PURGES_MAX 256

/* How far maintenance has come. */
typedef struct Upkeep {
    Key purge_position;  /* where the first purge goes on; empty: at its beginning */
    Key sweep_position;  /* likewise of the sweep for expiry notes ... */
    int64_t sweep_ttl_s; /* ... and the default TTL that it is made for */
} Upkeep;

typedef struct Bulk Bulk; /* see move.c */

struct Partition {
    _Atomic uint32_t refs;
    PartitionHost *host; /* immutable after open */
    StoreSpace space;
    uint32_t id;
    Error *damage;  /* its own records cannot be read, so that all but a drop is refused */
    bool has_sizes; /* every logical partition has its record; false: they were not counted yet */

    HashKey index_key; /* secret; immutable after open */

    pthread_mutex_t lock; /* guards from 'schema' to 'notes'; held for a few instructions */
    PartitionSchema *schema;
    IndexState *index_seen; /* what readers may rely on: see index_publish */
    unsigned index_percent; /* how much of 'index_seen' is done */
    Purge *purges;
    _Atomic uint32_t purge_count; /* atomic: readers look at it without the lock first */

    Buf notes; /* what has changed while it was watched: see move.c */
    _Atomic bool is_watched;
    PartitionGone gone; /* to be called when the last reference is; NULL: nobody */
    void *gone_ctx;

    Queue queue;                  /* PartitionMessages */
    PartitionMessage maintain;    /* the one message of its kind ... */
    _Atomic bool maintain_posted; /* ... and whether it is under way: queued or in a group */
    _Atomic uint64_t waiting_bytes;
    _Atomic bool is_dropped;
    _Atomic bool is_moved;  /* set before 'is_dropped': others have its items now */
    _Atomic bool is_active; /* a writer has it, or its group is on the way to the disk */
    _Atomic uint64_t turns; /* how often it became active */
    WorkerJob job;

    _Atomic uint64_t lsn; /* durable; what follows are copies of the counters for other threads */
    _Atomic uint64_t items;
    _Atomic uint64_t bytes;
    _Atomic uint64_t bytes_ever;
    _Atomic int64_t ttl_swept_s;

    PartitionCounters counters; /* whoever made 'is_active' true, from here on */
    IndexState *index;
    uint64_t index_position; /* items up to this number have the terms of the new policy */
    bool index_is_stored;
    QueueNode *rest;    /* messages that came before the queue's and were too much for a group */
    bool is_over;       /* a drop has had its turn: nothing is applied any more */
    Bulk *bulk;         /* items from elsewhere that are not in the store yet; NULL: none */
    bool has_lost_bulk; /* they could not be written: the move that brought them must fail */
    Upkeep upkeep;
};

/* Of documents that a group must keep for the index: beyond it the next group goes on. */
#define GROUP_KEEP_BYTES_MAX ((size_t)16 << 20)

/* PartitionMessage.kind. */
enum {
    MESSAGE_WRITE,
    MESSAGE_PURGE,
    MESSAGE_MAINTAIN,
    MESSAGE_DROP,
    MESSAGE_WATCH,  /* a Turn: changes are noted from here on */
    MESSAGE_FENCE,  /* a Turn, never part of a group: what is behind it waits */
    MESSAGE_IMPORT, /* an Import */
};

/* A message whose sender waits for it. */
typedef struct Turn {
    PartitionMessage message;
    sem_t done;
    Status status;
    Error error;
} Turn;

/* An item as another partition has it, or that it has none there. */
typedef struct ImportItem {
    Slice epk;
    Slice id;
    bool is_absent;
    Item item;
} ImportItem;

typedef struct Import {
    Turn turn;
    const ImportItem *items; /* with their documents, good until the turn is done */
    size_t count;
    uint64_t lsn;          /* which the partition's is at least, afterwards */
    size_t bulk_bytes_max; /* 0: items may be there already. Otherwise the partition has none of
                              them, and keeps about so many bytes before it writes them */
} Import;

/* An item that gets other terms when the group is committed. */
typedef struct IndexChange {
    uint64_t number;
    const IndexPolicy *old_policy; /* NULL: it had no terms */
    const IndexPolicy *new_policy; /* NULL: it gets none */
    Json old_document;
    Json new_document;
    uint32_t old_ts_s;
    uint32_t new_ts_s;
    uint32_t *terms;   /* gets how many differ; NULL: nobody pays for them */
    bool adds_samples; /* it has all terms but perhaps those in samples, which it gets */
} IndexChange;

/* A key of an item that is written. */
typedef struct CacheChange {
    uint64_t hash;
    CachedItem *item; /* what becomes of it; NULL: the cache forgets it */
} CacheChange;

/* The messages that are applied together and the transaction that they make. */
typedef struct Group {
    Partition *partition;
    PartitionSchema *schema; /* a reference of its own */
    StoreTxn *txn;
    Arena arena; /* for one operation, or one item of maintenance; emptied before each */
    Arena keep;  /* for what is needed until the group is durable */
    uint32_t now_s;
    PartitionCounters counters; /* as they will be */
    bool is_changed;
    bool takes_room; /* not only deletes; and if that must not be: */
    Error full;      /* the disk is full; STATUS_OK: it is not */
    bool has_more;   /* maintenance has not finished: look again afterwards */
    Purge *purges;   /* to be added when the group is durable */
    size_t purge_count;
    bool purge_done;   /* the partition's first purge is to be taken away then */
    Upkeep *upkeep;    /* what the partition's becomes then; NULL: stays */
    IndexState *index; /* a reference of its own; what the partition's becomes then */
    uint64_t index_position;
    bool index_is_changed; /* the state is to be stored */
    IndexChange *index_changes;
    size_t index_change_count;
    size_t index_change_capacity;
    SizeChanges sizes;
    QueueNode *messages;
    bool is_import;       /* items come from another partition, which has checked them */
    Buf notes;            /* what the partition's get when it is durable, if it is watched */
    CacheChange *changed; /* what the cache hears of when it is durable */
    size_t changed_count;
    size_t changed_capacity;
} Group;

/* group.c: begins, on the partition as it is; ends, when everybody is answered; and lets go of what
 * was kept for the next ones. */
Group *group_new(Partition *partition);
void group_end(Group *group);
void groups_free(PartitionHost *host);

/* The state that an operation, an atomic batch or a piece of maintenance goes back to when it
 * fails. Marks nest. */
typedef struct Mark {
    PartitionCounters counters;
    bool is_changed;
    size_t index_change_count;
    bool takes_room;
    uint32_t size_note_count;
    size_t changed_count;
} Mark;
Mark group_mark(Group *group);
void group_undo(Group *group, const Mark *mark);
void group_keep(Group *group);

/* apply.c: one write with its operations. */
void group_apply_write(Group *group, PartitionWrite *write);

/* Reads an item in the group's transaction. The item lives in group->arena. The first gives
 * what is stored; the second removes what is stored but expired or purged, and says 'not found'. */
MUST_USE Status group_get(Group *group, Slice epk, Slice id, Item *item, bool *found, Error *err);
MUST_USE Status group_get_living(Group *group, Slice epk, Slice id, Item *item, bool *found,
                                 Error *err);

/* Stores 'item' under 'id' in place of 'old' (NULL: there was none), which was under 'old_id', with
 * all its other keys, and fills in how many bytes that takes. The documents are needed until the
 * group is committed; then '*terms' (NULL: nobody asks) is how many terms of the index that
 * changed. STATUS_FORBIDDEN if the logical partition would become too large. */
MUST_USE Status group_put(Group *group, Slice epk, Slice id, const Item *old, Slice old_id,
                          Item *item, uint32_t *terms, Error *err);
void group_delete(Group *group, Slice epk, Slice id, const Item *old, uint32_t *terms);

/* group.c: what the cache may have under this key is about to change in the group's transaction, to
 * 'bytes' if they are worth keeping; takes back all but the first 'count' of that; and tells the
 * cache. */
void group_note_changed(Group *group, const Key *key, Slice bytes);
void group_cut_changed(Group *group, size_t count);
void group_tell_cache(Group *group);

/* move.c: the item under this key is about to change, if anybody wants to know; so is everything up
 * to now whose EPK begins with this; and an Import. */
void group_note_item(Group *group, Slice epk, Slice id);
void group_note_purge(Group *group, Slice epk);
void group_apply_import(Group *group, Import *import);

/* Writes what was imported and is not in the store yet: before anything is looked for there. */
MUST_USE Status group_settle_bulk(Group *group, Error *err);
void bulk_free(Bulk *bulk); /* accepts NULL; nothing of it is written */

/* partition.c: posts a turn, and waits for it, at once or in two steps; goes on behind a fence; or
 * refuses what is behind it. */
MUST_USE Status partition_begin_turn(Partition *partition, Turn *turn, int kind, Error *err);
MUST_USE Status partition_end_turn(Turn *turn, Error *err);
MUST_USE Status partition_take_turn(Partition *partition, Turn *turn, int kind, Error *err);
void partition_unfence(Partition *partition);
void partition_retire(Partition *partition, PartitionGone gone, void *ctx);
PartitionSchema *partition_schema(Partition *partition); /* a reference */

/* size.c: adds to what the logical partition, and with it the partition, holds; STATUS_FORBIDDEN if
 * it must not hold so many bytes more; and, once, when everything is applied, writes the records.
 */
void group_resize(Group *group, Slice epk, SizeSum sum);
MUST_USE Status group_check_size(Group *group, Slice epk, int64_t grown, Error *err);
void group_finish_sizes(Group *group);
MUST_USE Status size_damaged(Error *err);

/* size_count.c: makes the records of a partition that has none. If that cannot be done, which is
 * logged, 'has_sizes' stays false. */
void partition_count_sizes(Partition *partition);

/* maintain.c: keys of ['from', 'to'), at most PIECE_MAX of them, copied, because removing them
 * would disturb a cursor; and the item with a number, expired or not. */
enum { PIECE_MAX = 500 }; /* looked at per group, so that other writes are not held up */
typedef struct FoundKeys {
    Slice keys[PIECE_MAX];
    size_t count;
    bool is_full; /* there may be more */
} FoundKeys;
MUST_USE Status group_find_keys(Group *group, Slice from, Slice to, FoundKeys *out, Error *err);
MUST_USE Status group_find_item(Group *group, uint64_t number, Slice *epk, Slice *id, Item *item,
                                bool *found, Error *err);

/* index_update.c: notes that 'old' becomes 'item' (each may be NULL); and, once, when everything is
 * applied, writes the terms of all that was noted and, if need be, the state. */
void group_index_change(Group *group, const Item *old, const Item *item, uint32_t *terms);
void group_finish_index(Group *group);
/* Adds the terms of all that was noted to 'batch' instead. */
void group_gather_terms(Group *group, TermsBatch *batch);

/* The item stays as it is, but goes over from the state's old policy to its new one. */
void group_index_rebuild(Group *group, const Item *item);

/* index_rebuild.c: begins, goes on with or ends a rebuild. */
MUST_USE Status group_rebuild_index(Group *group, Error *err);

/* unique.c: STATUS_CONFLICT if another living item of the logical partition holds the values that
 * 'item' has. Then the values of 'old' are given up and those of 'item' taken. */
MUST_USE Status unique_update(Group *group, Slice epk, const Item *old, const Item *item,
                              Error *err);

/* maintain.c */
MUST_USE Status group_maintain(Group *group, Error *err);
void group_apply_purge(Group *group, PartitionPurge *purge);

/* The LSN up to which items with this EPK are purged; 0: none is. A reader asks before it reads the
 * item: afterwards the purge may be over, and what it was to hide already in the reader's hands. */
uint64_t partition_purged_lsn(Partition *partition, Slice epk);

/* The same in a list of purges. */
uint64_t purges_find(const Purge *purges, size_t count, Slice epk);

/* index_state.c: reads the state at the opening, or begins one; 'is_new': nothing was ever written
 * to the partition. */
MUST_USE Status partition_load_index(Partition *partition, bool is_new, Error *err);

/* Makes the group's state (before its commit) or the partition's (after it) what readers go by. A
 * reader must never rely on what is not yet, or not any more, in its snapshot: so the beginning of
 * a rebuild is published before it is committed, its end afterwards. */
void partition_publish_index(Partition *partition, IndexState *state, unsigned percent);
unsigned partition_index_percent(const Partition *partition); /* of the partition's own state */

/* A reference to what readers may rely on. */
IndexState *partition_index_seen(Partition *partition);

/* Whether the index is not as the newest policy wants it. The lock is held. */
bool partition_index_is_stale(const Partition *partition);

/* Whether nothing of the partition is being written. If it rests before and after something was
 * done, and with as many turns, it has rested all the time, and what it has published is all there
 * is. */
bool partition_is_resting(const Partition *partition, uint64_t *turns);

/* The counters as of a snapshot; those of an empty partition if there are none. */
MUST_USE Status partition_read_counters(Partition *partition, const StoreSnapshot *snapshot,
                                        StoreRead read, PartitionCounters *out, bool *found,
                                        Error *err);

void partition_put_counters(const Partition *partition, StoreTxn *txn,
                            const PartitionCounters *counters);

/* A copy of all purges, for whoever reads for a while; '*count' may be 0. */
const Purge *partition_copy_purges(Partition *partition, Arena *arena, size_t *count);

/* scan.c: takes one entry off the budget (NULL: there is no bound); false if there is none left. */
bool scan_budget_spend(ScanBudget *budget, const Clock *clock);

/* scan.c: a scan for queries, of a moment that a view keeps and that outlives the scan. */
typedef struct ScanMoment {
    const StoreSnapshot *snapshot;
    const Purge *purges;
    size_t purge_count;
    uint64_t now_s;
} ScanMoment;
MUST_USE Status partition_scan_open_at(Partition *partition, PartitionSchema *schema,
                                       const ScanMoment *at, const ScanOptions *options,
                                       PartitionScan **out, Error *err);

/* host_time.c: a time that was stored, before which time does not begin. */
void partition_host_saw_s(PartitionHost *host, uint32_t now_s);

/* Whether it has expired by now. Without a time to live nobody looks at a clock. */
static inline bool item_has_expired(PartitionHost *host, const PartitionSchema *schema,
                                    const Item *item)
{
    uint64_t expires_at_s = item_expires_at_s(schema, item);
    return expires_at_s != UINT64_MAX && expires_at_s <= partition_host_now_s(host);
}

/* The reason why a damaged partition refuses everything. */
MUST_USE Status partition_check_damage(const Partition *partition, Error *err);

/* The stored bytes of the newest item under a key, from the cache if they are there; 'puts': and
 * into the cache if they are not. */
MUST_USE Status partition_get_bytes(Partition *partition, Slice key, bool puts, StoreRead read,
                                    StoreValue *value, StoreFound *found, Error *err);

/* | EPK length u16 | EPK | id |, the value of a KEY_NUMBER. */
Slice location_encode(Arena *arena, Slice epk, Slice id);
MUST_USE Status location_decode(Slice bytes, Slice *epk, Slice *id, Error *err);
