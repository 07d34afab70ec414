/* partition.h - one physical partition: its items, and the order of the writes to them.
 *
 * A partition is the only writer of its own space. Writes are messages. A message to an idle
 * partition wakes a writer thread, which applies all messages that have gathered, one after the
 * other, in one transaction, and hands that to the store. While the group is on its way to the disk
 * the next one gathers. Messages are answered when their group is durable. Reads go straight to the
 * store and never wait for writes; what they see is durable.
 *
 * Every write has an LSN, counted by the partition; a batch has one.
 *
 * Ownership  Reference counted: the containers' objects hold their partitions. A PartitionWrite
 *            belongs to its sender again when 'done' is called.
 * Threads    Any thread reads and submits. 'done' is called on a writer thread or on the store's
 *            commit thread; it posts a message and must not wait.
 * Format     The keys of a partition's space are drawn in space_key_int.h.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/object_pool.h"
#include "base/queue.h"
#include "base/slice.h"
#include "base/workers.h"
#include "partition/epk.h"
#include "partition/item.h"
#include "partition/item_cache.h"
#include "partition/patch.h"
#include "partition/schema.h"
#include "store/store.h"
#include "json/json.h"

#include <pthread.h>

/* Bytes that may wait for one partition, and for all of a process: what writes hold in memory, with
 * what their senders need for the answer. Beyond it a write is refused instead of queued. A message
 * counts for PARTITION_MESSAGE_BYTES at least, which bounds their number, too. */
#define PARTITION_WAITING_BYTES_MAX      ((uint64_t)128 << 20)
#define PARTITION_HOST_WAITING_BYTES_MAX ((uint64_t)512 << 20)
#define PARTITION_MESSAGE_BYTES          2048

/* Bytes of all items that the patches of one write may change: a few bytes of a request can rewrite
 * large items. Beyond it a patch fails with STATUS_TOO_LARGE. */
#define PARTITION_PATCHED_BYTES_MAX ((size_t)16 << 20)

typedef struct Partition Partition;

/* How the store merges operands that partitions write blindly. A store for partitions must be
 * opened with it. */
extern const StoreMerge PARTITION_MERGE;

/* The transactions that are open, or wait: see transaction.h. Zeroes are an empty list. */
typedef struct PartitionTransaction PartitionTransaction;
typedef struct TransactionList {
    pthread_mutex_t lock; /* guards the rest and their links; held while the host is stopped for one
                             message to each partition that has some */
    PartitionTransaction *first;
    _Atomic bool is_stopped; /* none begins or commits; also read without the lock */
} TransactionList;

/* What all partitions of a process share; outlives them. */
typedef struct PartitionHost {
    Store *store;
    Workers *writers; /* started; its queue must be as long as there can be partitions */
    Workers *loaders; /* likewise, for partitions that a move fills; NULL if writers do that */
    const Clock *clock;
    const Log *log;
    ItemCache *cache; /* NULL if there is none */

    /* Bytes that the items of one partition key may have together, with their keys; 0 if there is
     * no limit. A write that would pass it is refused; one that makes items smaller or fewer is
     * not. An old-style container, all of which is one logical partition, may hold half of it. The
     * service's limit is 20 GB. */
    uint64_t logical_bytes_max;

    /* Whether this process serves the partition in a space; NULL if it serves all. */
    bool (*serves)(void *ctx, StoreSpace space);

    /* Whether 'clock' may be wrong at the moment; NULL if it never is. What is too old stays as
     * long as that is so: it is invisible, but it is not removed. */
    bool (*doubts_time)(void *ctx);
    void *placement_ctx; /* of both */

    _Atomic bool is_closing; /* no more background work; see partition_host_stop */
    _Atomic uint32_t active; /* partitions with a writer or on the way to the disk */
    _Atomic uint64_t waiting_bytes;
    _Atomic int64_t ahead_us;  /* of the monotonic clock: see host_time.c */
    _Atomic uint64_t openings; /* of partitions, each of which has a name of its own in the cache */
    ObjectPool groups;         /* finished ones, to be used again: see group.c */
    TransactionList transactions;
} PartitionHost;

/* Ends the background work of all partitions and waits until every message is answered. To be
 * called after the last post and before the writers are closed, and the store after them: the
 * store's commit thread hands partitions back to the writers. */
void partition_host_stop(PartitionHost *host);

/* Seconds since 1970 by which items are dated and expire. Follows the wall clock, but never goes
 * back: if the clock is set back, it continues from where it was. */
uint32_t partition_host_now_s(PartitionHost *host);

/* Opens the partition in a space, or begins an empty one. 'id' is the range's, 'schema' is shared.
 * A space is never used for another partition, even after a drop. It may be opened again, after the
 * one before was stopped. If the partition's own records are damaged it opens all the same, and
 * refuses everything but a drop. If an earlier version has written it, its items are counted by
 * logical partition, once, unless the host is closing; if that fails, which is logged, the limit of
 * logical partitions does not hold. */
MUST_USE Status partition_open(PartitionHost *host, StoreSpace space, uint32_t id,
                               PartitionSchema *schema, Partition **out, Error *err);
Partition *partition_ref(Partition *partition);
void partition_unref(Partition *partition); /* accepts NULL */
DEFINE_AUTO(Partition *, partition_unref)

/* The container's definition was replaced: what is applied from now on follows the new one. If it
 * has another indexing policy, a rebuild of the index begins. */
void partition_set_schema(Partition *partition, PartitionSchema *schema);

/* How much of the index follows the newest policy, in percent. */
unsigned partition_index_progress(Partition *partition);

uint64_t partition_lsn(const Partition *partition); /* of the newest durable write */

typedef struct PartitionUsage {
    uint64_t items;
    uint64_t bytes;      /* of stored items, with their keys */
    uint64_t bytes_ever; /* the most that this has been */
} PartitionUsage;
PartitionUsage partition_usage(const Partition *partition);

/* An estimate of what the index takes on disk; recent writes may not be counted. */
uint64_t partition_index_bytes(const Partition *partition);

/* How many bytes a logical partition of a container may hold; 0 if there is no limit. */
uint64_t partition_logical_bytes_max(const PartitionHost *host, const PartitionSchema *schema);

/* Reads one item; expired and purged ones are absent. Its document points into '*value', which the
 * caller releases. With STORE_READ_MEMORY '*found' may be STORE_UNKNOWN: ask again on a worker. */
MUST_USE Status partition_get(Partition *partition, const PartitionSchema *schema, const Epk *epk,
                              Slice id, StoreRead read, Item *item, StoreValue *value,
                              StoreFound *found, Error *err);

/* Where the item with this number is; the slices live in 'arena'. */
MUST_USE Status partition_locate(Partition *partition, uint64_t number, Arena *arena, Slice *epk,
                                 Slice *id, bool *found, Error *err);

typedef enum ItemOp {
    ITEM_CREATE,
    ITEM_UPSERT,
    ITEM_REPLACE,
    ITEM_PATCH,
    ITEM_DELETE,
    ITEM_READ, /* inside a batch: sees the writes before it */
} ItemOp;

/* Whether queries are to find the item by the index. */
typedef enum IndexDirective {
    INDEX_DEFAULT, /* as the policy says ("automatic"); a patch leaves it as it is */
    INDEX_INCLUDE,
    INDEX_EXCLUDE,
} IndexDirective;

/* Decides whether a patch applies to a document; filled in by the layer that knows SQL. */
typedef struct PatchCondition {
    Status (*holds)(void *ctx, Json document, bool *out, Error *err);
    void *ctx;
} PatchCondition;

typedef struct ItemWrite {
    ItemOp op;
    Epk epk;
    Slice id;          /* of the item to be read or written */
    Json document;     /* create, upsert, replace: see item_prepare */
    Slice document_id; /* the document's own id: a replace may change it */
    int32_t ttl_s;
    const Patch *patch;
    const PatchCondition *condition; /* of a patch; NULL if there is none */
    Slice if_match;      /* empty, "*" or an ETag; for a read the same as if_none_match */
    Slice if_none_match; /* of a read */
    IndexDirective directive;

    Status status; /* the answer; STATUS_FAILED_DEPENDENCY if another one of its batch failed */
    Error error;
    bool created;        /* there was no item before */
    bool is_absent;      /* of a create or upsert: nor was there one that had expired */
    Item item;           /* what is there now (not after a delete); lives in the write's arena */
    size_t bytes_before; /* of the item that was there, for the charge; also of a read that is
                            STATUS_NOT_MODIFIED */
    size_t bytes_after;
    uint32_t terms; /* terms of the index that were added or removed, for the charge */
} ItemWrite;

/* What every message to a partition begins with; filled in by the functions that post it, except
 * for the deadline. */
typedef struct PartitionMessage {
    QueueNode node;
    int kind;
    size_t bytes; /* that it counts for while it waits */
    /* Of a client's message: of the container through which it came. One that is older than the
     * partition's is refused as gone, see write_hold.h. */
    uint32_t generation;
    /* Of a write or a purge: its sender has given up by then, as it says. One that has waited for
     * so long is refused with STATUS_THROTTLED instead of being applied. Of the host's monotonic
     * clock; 0 if there is none. */
    uint64_t deadline_us;
} PartitionMessage;

typedef enum WriteMode {
    WRITE_ATOMIC,   /* all or nothing */
    WRITE_ORDERED,  /* each alone until one fails; the rest is STATUS_FAILED_DEPENDENCY */
    WRITE_CONTINUE, /* each alone */
} WriteMode;

typedef struct PartitionWrite PartitionWrite;
struct PartitionWrite {
    PartitionMessage message;
    WriteMode mode;
    ItemWrite *items;
    size_t count;
    size_t read_bytes_max; /* text of all items that its reads return; a read beyond it fails with
                              STATUS_TOO_LARGE */
    Arena *arena;          /* the partition's until 'done' */
    void (*done)(PartitionWrite *write);

    Status status; /* if not STATUS_OK, nothing was done, because of the disk, a drop or a move */
    Error error;
    uint64_t lsn; /* of what it has written; the partition's if that is nothing */

    size_t read_bytes; /* used so far; for the partition while it applies the write */
    size_t patched_bytes;
};

/* Fails, without taking the write, if too much waits already. */
MUST_USE Status partition_submit(Partition *partition, PartitionWrite *write, Error *err);

/* Hides every item whose EPK begins with 'epk' at once and removes them in the background. */
typedef struct PartitionPurge PartitionPurge;
struct PartitionPurge {
    PartitionMessage message;
    Epk epk;
    void (*done)(PartitionPurge *purge);
    Status status; /* STATUS_THROTTLED if too many purges are under way */
    Error error;
    uint64_t lsn;
};
MUST_USE Status partition_purge(Partition *partition, PartitionPurge *purge, Error *err);

/* The container was dropped: messages that are posted from now on are refused. 'done' is called
 * when those before are answered and nothing will be written to the partition's space any more. */
typedef struct PartitionDrop PartitionDrop;
struct PartitionDrop {
    PartitionMessage message;
    void (*done)(PartitionDrop *drop);
};
void partition_drop(Partition *partition, PartitionDrop *drop);

/* Another process is to serve the partition, or with 'is_gone' nobody: messages that wait, or are
 * posted from now on, are refused with STATUS_NOT_OWNER (STATUS_GONE), and so are reads that begin.
 * Transactions do not commit any more. 'done' is called when nothing is under way any more; then
 * the partition may be opened anew, here or elsewhere. If items can expire, the time up to which
 * they were seen is stored first, so that none is seen again by a clock that is behind.
 *
 * A partition stops by itself when the store refuses a commit with STATUS_NOT_OWNER, or does not
 * know its outcome (STATUS_TIMEOUT). */
typedef struct PartitionStop PartitionStop;
struct PartitionStop {
    PartitionMessage message;
    bool is_gone;
    void (*done)(PartitionStop *stop);
};
void partition_stop(Partition *partition, PartitionStop *stop);

/* Whether it was stopped: an LSN that it has not published by now it never will. */
bool partition_is_stopped(const Partition *partition);

/* Asks the partition to remove expired and purged items and to continue rebuilding its index, a
 * bounded piece at a time. False, and nothing is done, if there is no such work; with a time to
 * live there may always be some. */
bool partition_maintain(Partition *partition);

/* Items in order: of their numbers, which is the order in which they were made, or of (EPK, id). */
typedef enum ScanOrder { SCAN_BY_NUMBER, SCAN_BY_EPK } ScanOrder;

/* What a page may look at, shared by its scans: entries of every kind, with those that are hidden,
 * of which there may be millions in a row. */
typedef struct ScanBudget {
    uint64_t entries;
    uint64_t deadline_us; /* of the clock; 0 if there is none */
    const Clock *clock;   /* NULL for the host's */
} ScanBudget;

typedef struct ScanOptions {
    ScanOrder order;
    Slice epk_from;     /* bytes, inclusive */
    Slice epk_to;       /* exclusive; empty if there is no end */
    Slice at;           /* a position to begin at; empty for the start */
    ScanBudget *budget; /* NULL if there is no bound */
} ScanOptions;

/* A position is small, however long ids are, and valid for as long as the container lives, even in
 * another partition that has taken the range over. By number it is a number, big-endian. */
#define SCAN_POSITION_BYTES_MAX 480
#define SCAN_NUMBER_BYTES       8
bool partition_scan_is_position(ScanOrder order, Slice bytes);

typedef struct PartitionScan PartitionScan;
MUST_USE Status partition_scan_open(Partition *partition, PartitionSchema *schema,
                                    const ScanOptions *options, PartitionScan **out, Error *err);

/* The item lives until the next call. '*found' is false at the end, and when the budget is used up:
 * then the scan has paused, and another call continues it. */
MUST_USE Status partition_scan_next(PartitionScan *scan, Item *item, bool *found, Error *err);
bool partition_scan_is_paused(const PartitionScan *scan);

/* The partition's, as of the scan's snapshot. It may be published a moment later. */
MUST_USE Status partition_scan_lsn(const PartitionScan *scan, uint64_t *lsn, Error *err);

/* Where a scan would begin with the item that was returned last, or continue after a pause. Nothing
 * is repeated or lost, whatever is deleted in between (I11). */
Slice partition_scan_position(const PartitionScan *scan);
void partition_scan_close(PartitionScan *scan); /* accepts NULL */
DEFINE_AUTO(PartitionScan *, partition_scan_close)

/* A logical partition with at most this many entries and bytes is small: a caller that shows it in
 * the order of numbers reads it whole, as it lies, for each page, and sorts it. */
#define COLLECT_ITEMS_MAX ((uint64_t)1000)
#define COLLECT_BYTES_MAX ((size_t)1 << 20)

typedef struct ItemList {
    Item *items;
    size_t count;
} ItemList;

/* What is left of a scan by EPK, in the order of numbers, from the number 'from' on; copies in
 * 'arena'. '*fits' is false if these are more than 'bytes_max', or the scan has paused. */
MUST_USE Status partition_scan_collect(PartitionScan *scan, uint64_t from, size_t bytes_max,
                                       Arena *arena, ItemList *out, bool *fits, Error *err);
