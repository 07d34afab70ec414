/* replica_watch_int.h - which replicas on living nodes have stopped applying the log, or taking
 * the pieces of which they are made.
 *
 * Whoever owns a space looks at its replicas in each round of trimming. One that is behind the end
 * of the log, and at the same place as in all rounds since, does not come nearer: its disk is full,
 * or its node hangs in some other way that leaves its lease alone.
 *
 * Threads    The manager's.
 */
#pragma once

#include "journal/journal.h"

typedef struct BehindReplica {
    uint64_t space;
    char node[JOURNAL_NAME_MAX + 1];
    uint64_t applied;
    uint64_t since_us; /* boot time at which it was first found there */
} BehindReplica;

typedef struct ReplicaWatch {
    BehindReplica *items; /* as the round before has found them, in order of space */
    size_t count;
    size_t capacity;
    BehindReplica *next; /* as this round does */
    size_t next_count;
    size_t next_capacity;
} ReplicaWatch;

void replica_watch_done(ReplicaWatch *watch);

/* For how long a replica that is behind has been where it is. Once a round for each, in order of
 * space. */
uint64_t replica_watch_see(ReplicaWatch *watch, const JournalReplica *replica, uint64_t now_us);
void replica_watch_end_round(ReplicaWatch *watch);
