/* change_log_int.h - the log of changes of a partition: what its entries look like, and how groups
 * write them.
 *
 * The log has two kinds of entries, both in the order of LSNs and, within a transaction, of its
 * operations:
 *
 *     latest     one for each stored item, at the change that made its newest version
 *     history    one for each change, kept for a time: for containers that have a change feed with
 *                all versions and, deletes only, while a move watches the partition
 *
 * An entry is written in the group of its change. So feeds, and moves that catch up, read what is
 * durable, and miss nothing (I19, I23).
 *
 *     key     = | 09 or 0A | LSN u64 BE | order u16 BE | item's number u64 BE |
 *     latest  = | ts u32 LE | EPK length u16 | EPK | id |
 *     history = | header, see change_log.c | EPK | id | partition key, or the form before |
 *               | the item's stored form |
 *
 * The key of an item's latest entry follows from the item: the order is in its header.
 *
 * Threads    Groups: the holder of the turn. The rest has no state.
 */
#pragma once

#include "partition/change_feed.h"
#include "partition/space_key_int.h"

typedef struct Group Group;

/* Where a change stands in the log. Of more than UINT16_MAX changes of a transaction the last ones
 * have one order, and stand by their numbers. Merged partitions may have two transactions with one
 * LSN; the numbers tell their changes apart. */
typedef struct ChangePlace {
    uint64_t lsn;
    uint16_t order;
    uint64_t number;
} ChangePlace;

enum { KEY_CHANGE_BYTES = 1 + 8 + 2 + 8 };

/* 'kind' is KEY_LATEST or KEY_HISTORY. */
void key_change(Key *key, uint8_t kind, ChangePlace place);
bool key_change_parse(Slice key, ChangePlace *out);

ChangePlace item_place(const Item *item); /* of its latest entry */

typedef struct LatestEntry {
    uint32_t ts_s;
    Slice epk;
    Slice id;
} LatestEntry;

/* The slices of decoded entries point into 'bytes'. */
Slice latest_encode(Arena *arena, uint32_t ts_s, Slice epk, Slice id);
MUST_USE Status latest_decode(Slice bytes, LatestEntry *out, Error *err);

typedef struct HistoryEntry {
    ChangeKind kind;
    uint32_t ts_s;
    uint64_t previous_lsn; /* of the version before; 0 if there was none */
    Slice epk;             /* of a purge, a prefix */
    Slice id;              /* empty for a purge */
    Slice key;             /* of a delete: the partition key as a document, {"path": value} */
    Slice previous;        /* of a replace: the version before; may be empty */
    Slice image;           /* the new version or, of a delete, the old one; may be empty */
} HistoryEntry;

Slice history_encode(Arena *arena, const HistoryEntry *entry);
MUST_USE Status history_decode(Slice bytes, HistoryEntry *out, Error *err);

/* After a merge each part of the range has its own beginning of the history. From 'epk_from' up to
 * the next floor's, changes up to 'lsn' are not kept. A partition whose LSNs were never mixed
 * (PartitionCounters) has none: all of it begins at 'history_from_lsn'. */
enum { HISTORY_FLOORS_MAX = 64 };

typedef struct HistoryFloor {
    Epk epk_from;
    uint64_t lsn;
} HistoryFloor;

typedef struct HistoryFloors {
    HistoryFloor list[HISTORY_FLOORS_MAX];
    size_t count;
} HistoryFloors;

/* Adds the floors of ['epk_from', 'epk_to') as of a snapshot (NULL for now). If they become too
 * many there is one, which is as high as the highest. */
MUST_USE Status partition_add_floors(Partition *partition, const StoreSnapshot *snapshot,
                                     Slice epk_from, Slice epk_to, HistoryFloors *floors,
                                     Error *err);
void group_put_floors(Group *group, const HistoryFloors *floors);

/* The place of the next change that the group makes: in the transaction under way, which has the
 * LSN after the counters'. */
ChangePlace group_next_place(Group *group, uint64_t number);

/* 'old' (NULL if there was none) becomes 'item', whose stored form is 'bytes'. */
void group_log_put(Group *group, Slice epk, Slice id, const Item *old, const Item *item,
                   Slice bytes);
void group_log_delete(Group *group, ChangeKind kind, Slice epk, Slice id, const Item *old);

/* Everything whose EPK begins with this is gone at once, up to the LSN. */
void group_log_purge(Group *group, Slice epk, uint64_t lsn);

/* A history entry as another partition has it. */
MUST_USE Status group_log_import(Group *group, Slice key, Slice value, Error *err);

/* A piece of maintenance: removes history that is older than the container keeps it. */
MUST_USE Status group_trim_history(Group *group, Error *err);

/* Once, when everything is applied: how far back the history goes. */
void group_finish_log(Group *group);

/* When the group is durable: there may be history to be trimmed, some time. */
void partition_note_history(Partition *partition, const Group *group);

/* STATUS_UNAVAILABLE if the partition has no log: see 'has_log'. */
MUST_USE Status partition_check_log(const Partition *partition, Error *err);

/* change_log_build.c: makes the latest entries of a partition that an earlier version has written.
 * If that cannot be done, which is logged, 'has_log' stays false. */
void partition_build_log(Partition *partition);
