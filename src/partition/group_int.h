/* group_int.h - a group: the messages that are applied together and the transaction that they make.
 *
 * A group begins with the partition's WriterState and works on copies. What it is about to change
 * for others is noted in parts, one per reader: the index, the sizes, the purges, the cache, a
 * move. When the group is durable they take effect (I1), and when an operation of it fails they go
 * back to its mark (I3).
 *
 * Threads    The holder of the turn: a writer thread, then the commit thread.
 */
#pragma once

#include "index/terms.h"
#include "partition/change_log_int.h"
#include "partition/partition_int.h"
#include "partition/size_record_int.h"

/* Of documents that a group must keep for the index: beyond it the next group goes on. */
#define GROUP_KEEP_BYTES_MAX ((size_t)16 << 20)

/* What one group writes before the rest of what has gathered is left to the next one. A message of
 * a few bytes can change an item of 2 MB, so counting messages bounds nothing; and the terms of the
 * index, which are added at the end, take up to ten times as much as the items. A group is applied
 * after the one before it is durable, so with much less a slow disk would decide how fast items are
 * imported: this many of 1 KB take 80 ms. */
#define GROUP_BYTES_MAX ((size_t)8 << 20)

/* An item that gets other terms when the group is committed. */
typedef struct IndexChange {
    uint64_t number;
    const IndexPolicy *old_policy; /* NULL if it had no terms */
    const IndexPolicy *new_policy; /* NULL if it gets none */
    Json old_document;
    Json new_document;
    uint32_t old_ts_s;
    uint32_t new_ts_s;
    uint32_t *terms;   /* gets how many differ; NULL if they are not charged */
    bool adds_samples; /* it has all terms but perhaps those in samples, which it gets */
} IndexChange;

/* index_update.c, index_rebuild.c: what the partition's index becomes. */
typedef struct GroupIndex {
    IndexState *state; /* a reference of its own */
    uint64_t position;
    bool is_changed; /* the state must be stored */
    IndexChange *changes;
    size_t change_count;
    size_t change_capacity;
} GroupIndex;

/* A key that the cache may have. */
typedef struct CacheChange {
    uint64_t hash;
    CachedItem *item; /* what becomes of it; NULL if the cache forgets it */
} CacheChange;

/* group.c: what the cache hears of. */
typedef struct CacheChanges {
    CacheChange *list;
    size_t count;
    size_t capacity;
} CacheChanges;

/* change_log.c: the place of the next change in the log. */
typedef struct GroupLog {
    uint64_t lsn; /* of the transaction that the rest is of */
    uint16_t order;
    size_t image_bytes; /* of what it has deleted or replaced, as far as that is kept */
} GroupLog;

struct Group {
    /* Fixed when it begins. */
    Partition *partition;
    PartitionSchema *schema; /* a reference of its own */
    StoreTxn *txn;
    uint32_t now_s;
    Error full; /* the disk is full; STATUS_OK if it is not */

    QueueNode *messages;
    Arena arena; /* for one operation, or one item of maintenance; emptied before each */
    Arena keep;  /* for what is needed until the group is durable */

    PartitionCounters counters; /* as they will be */
    bool is_changed;            /* there is something to commit */
    bool takes_room;            /* not only deletes */
    bool has_more;              /* maintenance has not finished: look again afterwards */
    bool is_import;             /* items come from another partition, which has checked them */
    bool is_commit;             /* items come from a transaction, which has numbered them */
    bool is_restore;            /* items are put back as they were: see held_partitions.c */
    bool is_private;            /* of a transaction, and never committed: see group_new_private */

    /* What takes effect when it is durable. */
    GroupIndex index;
    SizeChanges sizes;
    PurgeChanges purges;
    CacheChanges cache;
    GroupLog log;
    Upkeep *upkeep;             /* what the partition's becomes; NULL if it stays */
    Baselines *baselines;       /* likewise */
    uint64_t restored_baseline; /* that is being restored, and notes nothing; 0 if none is */
};

/* group.c: begins a group on the partition as it is; ends it when all requests are answered; frees
 * the groups that were kept for reuse. */
Group *group_new(Partition *partition);
void group_end(Group *group);

/* The writes of a transaction before its commit: any thread has one, while the EPK is locked.
 * It begins with what is durable, and what it does takes effect for nobody else. */
Group *group_new_private(Partition *partition, PartitionSchema *schema, const Epk *epk);
void group_free_private(Group *group); /* accepts NULL */
void groups_free(PartitionHost *host);

/* Makes everything that the group has become the partition's own, when it is durable. */
void group_take_effect(Group *group);

/* apply_write.c: the state that an operation, an atomic batch or a piece of maintenance goes back
 * to when it fails. Marks nest. */
typedef struct Mark {
    PartitionCounters counters;
    bool is_changed;
    bool takes_room;
    size_t index_change_count;
    uint32_t size_note_count;
    size_t cache_change_count;
    GroupLog log;
} Mark;
Mark group_mark(Group *group);
void group_undo(Group *group, const Mark *mark);
void group_keep(Group *group);

/* apply_write.c: one write with its operations. */
void group_apply_write(Group *group, PartitionWrite *write);

/* apply_write.c: one of its operations, which changes nothing if it fails. */
void group_apply_alone(Group *group, PartitionWrite *write, ItemWrite *w);

/* Reads an item in the group's transaction. The item lives in group->arena. The first gives what is
 * stored; the second removes what is stored but expired or purged, and does not find it. */
MUST_USE Status group_get(Group *group, Slice epk, Slice id, Item *item, bool *found, Error *err);
MUST_USE Status group_get_living(Group *group, Slice epk, Slice id, Item *item, bool *found,
                                 Error *err);

/* Stores 'item' under 'id' in place of 'old' (NULL if there was none), which was under 'old_id',
 * with all its other keys, and fills in how many bytes that takes. The documents are needed until
 * the group is committed; then '*terms' (NULL if it is not wanted) is how many terms of the index
 * have changed. STATUS_FORBIDDEN if the logical partition would become too large. */
MUST_USE Status group_put(Group *group, Slice epk, Slice id, const Item *old, Slice old_id,
                          Item *item, uint32_t *terms, Error *err);
MUST_USE Status group_delete(Group *group, ChangeKind kind, Slice epk, Slice id, const Item *old,
                             uint32_t *terms, Error *err);

/* baseline.c: what the item that becomes another one, or is deleted, was ('old' under 'old_id';
 * NULL if there was none) is noted for each baseline that does not have it yet. The EPK and the
 * number are those of the item. */
MUST_USE Status group_note_before(Group *group, Slice epk, uint64_t number, const Item *old,
                                  Slice old_id, bool is_delete, Error *err);

/* Whether there are baselines, so that what is deleted is kept, and takes room. */
bool group_keeps_deleted(const Group *group);

/* The partition's baselines become these. */
void group_set_baselines(Group *group, const Baselines *baselines);

/* A record as another partition has it. */
void group_import_before(Group *group, Slice key, Slice value);

/* A piece of maintenance: removes records of baselines that are gone. */
MUST_USE Status group_trim_befores(Group *group, Error *err);

/* The turn of a message: forgets all baselines but those that it names. */
void group_apply_keep(Group *group, const BaselineKeep *keep);

/* group_run.c: GROUP_BYTES_MAX and GROUP_KEEP_BYTES_MAX, or less after a group that was too large
 * for the store. */
size_t group_bytes_max(const Partition *partition);
size_t group_keep_bytes_max(const Partition *partition);

/* group_run.c: commits the group of a partition that the caller holds, and waits for that in two
 * steps. The group is freed. A group that has nothing to commit is only freed. */
typedef struct HeldCommit {
    Group *group;
    Latch done;
    Status status;
    Error error;
} HeldCommit;
void group_commit_held(Group *group, HeldCommit *commit);
MUST_USE Status group_commit_end(HeldCommit *commit, Error *err);

/* expiry.c: removes the next piece of what is purged. */
MUST_USE Status group_purge_piece(Group *group, Error *err);

/* Whether what it has gathered is enough for one group. */
bool group_is_large(const Group *group);

/* group.c: what the cache may have under this key is about to change in the group's transaction, to
 * 'bytes' if they are worth keeping; takes back all but the first 'count' of that; and tells the
 * cache. */
void group_note_changed(Group *group, const Key *key, Slice bytes);
void group_cut_changed(Group *group, size_t count);
void group_tell_cache(Group *group);

/* An item as another partition has it, or that it has none there. */
typedef struct ImportItem {
    Slice epk;
    Slice id;
    bool is_absent;
    uint64_t gone_number; /* of an item that is deleted, wherever it was; 0 if there is none */
    Item item;
} ImportItem;

/* An entry of the history of changes, or a record of a baseline, as another partition has it. */
typedef struct ImportEntry {
    Slice key;
    Slice value;
} ImportEntry;

typedef struct Import {
    Turn turn;
    const ImportItem *items; /* with their documents, good until the turn is done */
    size_t count;
    const ImportEntry *entries; /* likewise */
    size_t entry_count;
    uint64_t lsn; /* the LSN of the partition is at least this afterwards; and see counters_int.h */
    uint64_t history_from_lsn;
    uint64_t unordered_lsn;
    const HistoryFloors *floors; /* NULL if there are none */
    const Baselines *baselines;  /* of the sources, once the fence stands */
    size_t bulk_bytes_max; /* 0 if items may be there already. Otherwise the partition has none of
                              them, and keeps up to about this before it writes them */
    bool settles;          /* there are no items: a step of writing what was kept */
    bool is_settled;       /* afterwards: that was the last step */
} Import;

/* item_import.c */
void group_apply_import(Group *group, Import *import);

/* Writes what was imported and is not in the store yet: before anything is looked for there. */
MUST_USE Status group_settle_bulk(Group *group, Error *err);
void bulk_free(Bulk *bulk); /* accepts NULL; nothing of it is written */

/* size_record.c: adds to what the logical partition, and with it the partition, holds;
 * STATUS_FORBIDDEN if it must not hold so many bytes more; and, once, when everything is applied,
 * writes the records.
 */
void group_resize(Group *group, Slice epk, SizeSum sum);
MUST_USE Status group_check_size(Group *group, Slice epk, int64_t grown, Error *err);
void group_finish_sizes(Group *group);

/* Whether the logical partition had no items before the group, expired ones included: then a batch
 * that fills it need not look for each of its items in the store. Says no at first, since one
 * search costs as much as another. */
bool group_holds_nothing(Group *group, Slice epk);

/* expiry.c: keys of ['from', 'to'), at most PIECE_MAX of them, copied, because removing them
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

/* item_import.c: the first keys from '*from' on of what a partition has of a purged prefix; '*from'
 * is moved after them, or emptied at the end. */
MUST_USE Status partition_list_purged(Partition *partition, Slice prefix, Key *from, Arena *arena,
                                      FoundKeys *out, Error *err);

/* expiry.c */
MUST_USE Status group_maintain(Group *group, Error *err);
void group_apply_purge(Group *group, PartitionPurge *purge);

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
