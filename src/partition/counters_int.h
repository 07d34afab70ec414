/* counters_int.h - what a partition counts: for the holder of its turn, for other threads, stored.
 *
 * A group works on a copy. When it is durable the copy becomes the partition's own, and is
 * published for threads that have no turn.
 */
#pragma once

#include "partition/partition.h"

#include <stdatomic.h>

typedef struct PartitionCounters {
    uint64_t lsn;
    uint64_t item_next; /* count part of the next item's number */
    uint64_t items;
    uint64_t bytes;
    int64_t ttl_swept_s; /* the default TTL for which every item has its expiry noted, or
                            TTL_UNSWEPT */
    uint64_t bytes_ever; /* the most that 'bytes' has been; the last of version 2: see counters.c */
    uint64_t history_entries;  /* in the change log: see change_log_int.h */
    uint64_t history_from_lsn; /* the history of all LSNs after this one is complete */
    uint64_t unordered_lsn;    /* up to this one, LSNs of two partitions that were merged are mixed:
                                  times need not rise with them; 0 if none are */
} PartitionCounters;

/* Items were written under a default for which the others have no notes yet. */
#define TTL_UNSWEPT INT64_MIN

/* Of what is durable. Written by the holder of the turn, read by any thread. A reader that sees an
 * LSN sees at least the other counters of that LSN. */
typedef struct PublishedCounters {
    _Atomic uint64_t lsn;
    _Atomic uint64_t items;
    _Atomic uint64_t bytes;
    _Atomic uint64_t bytes_ever;
    _Atomic int64_t ttl_swept_s;
} PublishedCounters;

void counters_publish(PublishedCounters *published, const PartitionCounters *counters);

/* Without 'item_next', which is not published. */
PartitionCounters counters_published(const PublishedCounters *published);

/* Reads the partition's own counters when it is opened, and puts the host's time ahead of theirs.
 */
MUST_USE Status partition_load_counters(Partition *partition, bool *found, Error *err);

/* The counters as of a snapshot; those of an empty partition if there are none. */
MUST_USE Status partition_read_counters(Partition *partition, const StoreSnapshot *snapshot,
                                        StoreRead read, PartitionCounters *out, bool *found,
                                        Error *err);

void partition_put_counters(const Partition *partition, StoreTxn *txn,
                            const PartitionCounters *counters);
