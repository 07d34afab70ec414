/* watch_int.h - what this node has seen of the others, and which of them are dead (J4).
 *
 * Only this node's own clock counts, and only renewal numbers that it has read. A node is overdue
 * when the same number was read at two moments that are LEASE_SUCCESSOR_US apart, and this node has
 * renewed its own lease WATCH_OWN_RENEWALS times in between: while the engine is away for all,
 * nobody is.
 *
 * Threads    None of its own; Cluster.lock guards it.
 */
#pragma once

#include "cluster/lease_int.h"
#include "journal/journal.h"

enum { WATCH_OWN_RENEWALS = 3 };

typedef struct WatchedNode {
    char name[JOURNAL_NAME_MAX + 1];
    uint64_t incarnation;
    uint64_t renewal;
    uint64_t first_us;     /* after the read that found this number first */
    uint64_t last_us;      /* before the newest read that found it */
    uint64_t own_renewals; /* when it was found first */
    uint64_t dead_us;      /* when it was first found to be dead; 0 if it is not */
    bool is_present;       /* in the newest read */
} WatchedNode;

typedef struct NodeWatch {
    WatchedNode *items;
    size_t count;
    size_t capacity;
} NodeWatch;

void node_watch_done(NodeWatch *watch);

/* Notes what a read has found that began and ended at these moments of boot time. Forgets nodes
 * that are not there any more. */
void node_watch_see(NodeWatch *watch, const JournalNode *nodes, size_t count, uint64_t begun_us,
                    uint64_t ended_us, uint64_t own_renewals);

/* Begins anew: this node's own lease had lapsed, so that it may have been blind. */
void node_watch_restart(NodeWatch *watch);

bool node_watch_is_overdue(const NodeWatch *watch, const JournalNode *node, uint64_t own_renewals);

/* For how long it has been dead, as far as this node has seen; 0 if it is not. */
uint64_t node_watch_dead_for_us(const NodeWatch *watch, Slice name, uint64_t now_us);
