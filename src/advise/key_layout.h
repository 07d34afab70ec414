/* key_layout.h - how the items of a sample would lie, and be written, with a partition key.
 *
 * The hash of each item's key is the server's own (partition/epk.h). The hash space is divided
 * evenly among the physical partitions, as in a new container; 'split_skew' is what remains when
 * partitions were split where it balances best, which no split can do within a logical partition.
 *
 * Writes are looked at in windows of equally many items, in their order in time. A key that follows
 * the time fills all partitions alike in the long run, and yet in each window only one of them.
 *
 * Ownership  A KeyLayout is a value. Threads: nothing here has state.
 * Bounds     LAYOUT_PARTITIONS_MAX, LAYOUT_WINDOWS_MAX. Counts are exact: there are at most as many
 *            keys as the sample has items.
 */
#pragma once

#include "advise/key_candidate.h"
#include "advise/sample.h"

#define LAYOUT_PARTITIONS_MAX 100
#define LAYOUT_WINDOWS_MAX    24

/* What one logical partition may hold, as in the service. */
#define LAYOUT_LOGICAL_BYTES_MAX (20.0 * 1024 * 1024 * 1024)

typedef struct LayoutOptions {
    uint32_t partitions;   /* 1 to LAYOUT_PARTITIONS_MAX */
    double items_per_day;  /* 0 if not known */
    PropertyPath together; /* items with the same value here are written together; count 0: none */
} LayoutOptions;

typedef struct KeyLayout {
    uint64_t distinct;       /* values of the key in the sample */
    uint64_t missing;        /* items of the sample without a whole key */
    double largest_share;    /* of the items: that of the largest logical partition */
    size_t largest_item;     /* an item of it */
    double largest_bytes;    /* of all that there is, not only of the sample */
    double skew;             /* bytes of the fullest partition, by the mean */
    double split_skew;       /* the same after splits */
    double gini;             /* of the bytes of partitions: 0 all alike, 1 all in one */
    uint32_t idle;           /* partitions without an item */
    uint32_t windows;        /* of writes; 0 if there are too few items to tell */
    double write_skew;       /* writes of a window's busiest partition by the mean, on average;
                                of a hierarchical key after splits */
    double window_key_share; /* of a window's writes: that of its busiest key, on average */
    uint32_t window_moves;   /* windows whose busiest key is not that of the window before */
    double days_to_full;     /* until a logical partition is full; infinite if never, NaN if the
                                rate is not known */
    double together_share;   /* of items written together: in one logical partition; NaN if not
                                asked for, or if no two items are */
    double changed_share;    /* of items that the sample has in several versions: whose key is not
                                the same in all; 0 if there are none */
    /* Of a hierarchical key: the partitions after splits that hold all items with the same first
     * value, and with the same first two values, on average over the items. */
    double prefix_partitions[PARTITION_KEY_PATHS_MAX];
    double prefix_one_share[PARTITION_KEY_PATHS_MAX]; /* of the items for which that is one */
    double partition_share[LAYOUT_PARTITIONS_MAX];    /* of the bytes */
    float window_share[LAYOUT_WINDOWS_MAX][LAYOUT_PARTITIONS_MAX];
} KeyLayout;

void key_layout_make(const KeyCandidate *key, const Sample *sample, const LayoutOptions *options,
                     KeyLayout *out);

/* Whether the busiest key of the moment changes all the time: writes follow the clock. */
bool key_layout_is_moving(const KeyLayout *layout, uint32_t partitions);

/* The partition of a hash among 'count'. */
uint32_t layout_partition(double fraction, uint32_t count);
