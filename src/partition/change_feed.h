/* change_feed.h - the changes of a partition, in the order in which they were made.
 *
 * A feed reads the log of changes from a position on, as of the moment at which it is opened. A
 * position is an LSN: what comes next are the changes of the transactions after it. LSNs rise by
 * one with each transaction, so a reader must take all changes of a transaction before it stops.
 *
 *     FEED_LATEST     each item once, at its newest change; no deletes
 *     FEED_VERSIONS   every change, as far back as the container keeps them (PartitionSchema)
 *
 * After a split, a position of the source holds in each target; after a merge, a position of each
 * source holds for its range of EPKs (I24).
 *
 * Ownership  A feed holds its partition and schema. What an ItemChange points to lives until the
 * next. Threads    One at a time.
 */
#pragma once

#include "partition/partition.h"

typedef enum ChangeKind {
    CHANGE_CREATE = 1,
    CHANGE_REPLACE,
    CHANGE_DELETE,
    CHANGE_EXPIRE, /* a delete because of the time to live */
    CHANGE_PURGE,  /* all items of an EPK prefix are hidden, and deleted later: only for moves */
} ChangeKind;

typedef enum FeedMode { FEED_LATEST, FEED_VERSIONS } FeedMode;

typedef struct FeedOptions {
    FeedMode mode;
    uint64_t after_lsn;
    int64_t
        since_s; /* leaves out what was changed at this second or before; INT64_MIN for nothing */
    Slice epk_from; /* bytes, inclusive */
    Slice epk_to;   /* exclusive; empty if there is no end */
    StoreRead read; /* with STORE_READ_MEMORY what must wait for the disk fails: STATUS_TIMEOUT */
    ScanBudget *budget; /* NULL if there is no bound; the caller's, and outlives the feed */
} FeedOptions;

typedef struct ItemChange {
    ChangeKind kind; /* of FEED_LATEST, CHANGE_REPLACE for every item */
    uint64_t lsn;
    uint32_t ts_s;
    uint64_t previous_lsn; /* FEED_VERSIONS: of the version before; 0 if there was none */
    Slice id;
    Json key;      /* of a delete: the partition key, {"path": value} */
    bool has_item; /* a delete may have lost it */
    Item item;     /* the new version or, of a delete, the old one */
} ItemChange;

typedef struct ChangeFeed ChangeFeed;

/* STATUS_BAD_REQUEST if FEED_VERSIONS does not reach back to 'after_lsn'. */
MUST_USE Status change_feed_open(Partition *partition, PartitionSchema *schema,
                                 const FeedOptions *options, ChangeFeed **out, Error *err);
void change_feed_close(ChangeFeed *feed); /* accepts NULL */
DEFINE_AUTO(ChangeFeed *, change_feed_close)

uint64_t change_feed_lsn(const ChangeFeed *feed); /* of the partition, when the feed was opened */

/* '*found' is false at the end, and when the budget is used up, which it never is within a
 * transaction. */
MUST_USE Status change_feed_next(ChangeFeed *feed, ItemChange *out, bool *found, Error *err);

/* When nothing was found: everything up to this LSN was looked at. */
uint64_t change_feed_seen_lsn(const ChangeFeed *feed);
