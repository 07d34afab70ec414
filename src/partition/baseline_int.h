/* baseline_int.h - what items were at an earlier moment, for those that have changed since.
 *
 * A baseline is a moment of a partition to which its items can be taken back. To begin one costs a
 * record. From then on each item that is changed for the first time leaves what it was: its stored
 * form, or that it was not there. So a baseline takes as much room as has changed, and so much is
 * read and written to go back to it. Baselines do not know of each other: going back to one is a
 * series of ordinary changes for the others, which note what they need.
 *
 *     key      = | 0C | baseline u64 BE |                                 value = | LSN u64 LE |
 *     key      = | 0D | baseline u64 BE | LSN u64 BE | number u64 BE |   value = before
 *     before   = | EPK length u16 LE | id length u16 LE | EPK | id | stored form |
 *
 * The LSN is the baseline's. A restore begins the baseline again at another one, so the next
 * restore does not walk over what the store has not yet cleaned up of the records of this one.
 *
 * There is no id and no stored form if the item was not there. Records have the item's number,
 * which it keeps when its id changes, and which no other item ever has.
 *
 * A version whose LSN is above the baseline's was made since, and has left its record then. One
 * that is not above it has usually left none; but two partitions that were merged have the higher
 * LSN of theirs, so the record is looked for (I28).
 *
 * Threads    Groups: the holder of the turn. The rest has no state.
 */
#pragma once

#include "partition/baseline.h"
#include "partition/inbox_int.h"
#include "partition/item.h"

typedef struct Baseline {
    uint64_t number;
    uint64_t lsn;
} Baseline;

typedef struct Baselines {
    Baseline list[BASELINES_MAX];
    size_t count;
} Baselines;

const Baseline *baselines_find(const Baselines *baselines, uint64_t number); /* or NULL */

/* What is forgotten, and what stays. */
typedef struct BaselineKeep {
    Turn turn;
    const uint64_t *numbers;
    size_t count;
} BaselineKeep;

enum { KEY_BASELINE_BYTES = 1 + 8, KEY_BEFORE_BYTES = 1 + 8 + 8 + 8 };

void key_baseline(uint8_t key[KEY_BASELINE_BYTES], uint64_t number);
void key_before(uint8_t key[KEY_BEFORE_BYTES], Baseline baseline, uint64_t number);

typedef struct BeforeRecord {
    Baseline baseline;
    uint64_t number;
    Slice epk;
    Slice id;
    Slice image; /* the stored form; empty if the item was not there */
} BeforeRecord;

/* The slices point into 'value'. */
MUST_USE Status before_decode(Slice key, Slice value, BeforeRecord *out, Error *err);
MUST_USE Status baseline_decode(Slice key, Slice value, Baseline *out, Error *err);
Slice before_encode(Arena *arena, Slice epk, Slice id, Slice image);

/* At the opening of a partition. */
MUST_USE Status partition_load_baselines(Partition *partition, Error *err);

/* Adds the partition's baselines as of a snapshot; of those that are there already the LSN becomes
 * the higher one. */
typedef struct StoreSnapshot StoreSnapshot;
MUST_USE Status partition_add_baselines(Partition *partition, const StoreSnapshot *snapshot,
                                        Baselines *baselines, Error *err);

/* One record as it is now. */
MUST_USE Status partition_get_before(Partition *partition, const uint8_t key[KEY_BEFORE_BYTES],
                                     StoreValue *value, StoreFound *found, Error *err);

/* When a group that has changed them is durable. */
void baselines_take_effect(Partition *partition, const Baselines *baselines);
