/* cluster_folder.h - what a data folder remembers of the cluster: a lock, and who it was.
 *
 * A node that restarts takes its own spaces over at once, without waiting for its old lease to
 * end. That is right only if the old process is gone: it held the lock of this folder. And only if
 * nobody else has lived under the name since: the engine compares the incarnation that the folder
 * remembers with its own. A lock is known to one machine: in a folder that was moved or copied the
 * old process may have another one, and answer until its lease ends (cluster_folder_has_moved).
 *
 * Ownership  cluster_folder_close releases the lock, after the store is closed.
 * Threads    One thread at a time.
 * Format     At the top of cluster_folder.c.
 */
#pragma once

#include "base/error.h"
#include "journal/journal.h"

#define CLUSTER_FOLDER_FILE    "CLUSTER"
#define CLUSTER_FOLDER_LOCK    "CLUSTER.lock"
#define CLUSTER_FOLDER_MACHINE "CLUSTER.machine"
#define CLUSTER_FOLDER_ADOPTING \
    "CLUSTER.adopting" /* is there while the folder is only partly adopted */

typedef struct ClusterFolder ClusterFolder;

/* Locks the folder, which exists, and reads the file. STATUS_CONFLICT if the folder is of a node
 * with another name, or has data but is of no cluster; STATUS_UNAVAILABLE if a process has it;
 * STATUS_CORRUPT if the file is not what was written. */
MUST_USE Status cluster_folder_open(const char *path, Slice node, ClusterFolder **out, Error *err);

/* For `orrery cluster adopt`: the same for a folder whose data is of no cluster yet, or whose
 * adoption was interrupted. From the first join on, until cluster_folder_end_adoption, everything
 * else refuses the folder. */
MUST_USE Status cluster_folder_adopt(const char *path, Slice node, ClusterFolder **out, Error *err);
MUST_USE Status cluster_folder_end_adoption(ClusterFolder *folder, Error *err);

/* Whether an adoption of the folder at 'path' has begun and has not come to its end. */
bool cluster_folder_is_adopted_partly(const char *path);

/* Whether the folder was of a cluster, and so of which, when it was opened or last joined. */
bool cluster_folder_is_member(const ClusterFolder *folder);

/* Whether the lock says nothing about the process that had the folder before: that was on another
 * machine, or before this one was started, or in another folder, of which this one is a copy. True
 * until cluster_folder_settle, which is to be called when the lease of that process has ended. */
bool cluster_folder_has_moved(const ClusterFolder *folder);
MUST_USE Status cluster_folder_settle(ClusterFolder *folder, Error *err);

/* Joins with what the folder remembers, which is filled into a copy of 'join', and remembers the
 * new incarnation before it returns. */
MUST_USE Status cluster_folder_join(ClusterFolder *folder, Journal *journal,
                                    const JournalJoin *join, JournalMember *out, Error *err);

void cluster_folder_close(ClusterFolder *folder); /* accepts NULL */
DEFINE_AUTO(ClusterFolder *, cluster_folder_close)
