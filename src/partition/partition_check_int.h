/* partition_check_int.h - what the two halves of the check share: see partition_check.c. */
#pragma once

#include "partition/change_log_int.h"
#include "partition/partition_check.h"
#include "partition/partition_int.h"
#include "partition/size_record_int.h"

enum { CHECK_BUCKETS = 4096 };

/* Pairs of a term and an item whose number falls into the bucket. */
typedef struct CheckBucket {
    uint64_t sum; /* of their hashes, modulo 2^64 */
    uint64_t count;
} CheckBucket;

typedef struct Check {
    Partition *partition;
    const PartitionSchema *schema;
    const CheckReport *report;
    StoreSnapshot *snapshot;
    PartitionCounters counters;
    IndexState *index;
    HashKey index_key;
    uint64_t index_position;
    HashKey secret[2];
    CheckTotals totals;
    uint64_t bytes;
    Epk epk; /* of the item visited last, and what was found of its logical partition so far */
    SizeSum size;
    uint64_t sizes;         /* logical partitions that have items */
    SizeSum sizes_recorded; /* the sum over all records */
    uint64_t kinds[256];    /* keys found of each kind */
    Arena arena;            /* for one key */
    CheckBucket of_items[CHECK_BUCKETS];
    CheckBucket of_index[CHECK_BUCKETS];
} Check;

typedef struct CheckedItem {
    Item item;
    Epk epk_bytes; /* of its document */
    Slice epk;
    Slice id;
} CheckedItem;

void check_found(Check *check, const char *format, ...) PRINTF_LIKE(2, 3);

/* The value lives until the next key. */
MUST_USE Status check_get(Check *check, Slice key, Slice *value, bool *found, Error *err);

/* Calls 'visit' for each key of a kind. What is damaged there is its finding, not its error. */
typedef Status (*CheckVisit)(Check *check, Slice key, Slice value, Error *err);
MUST_USE Status check_walk(Check *check, uint8_t kind, CheckVisit visit, Error *err);

/* False if the bytes are no item, or one that belongs under another key. */
bool check_open_item(Check *check, Slice key, Slice value, CheckedItem *out);

/* partition_check_index.c: adds the pairs that an item must have; then, when all are added,
 * compares them with the index. */
MUST_USE Status check_add_item(Check *check, const Item *item, Error *err);
MUST_USE Status check_index(Check *check, Error *err);
