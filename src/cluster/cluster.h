/* cluster.h - one node among several: its lease, what it owns, and who owns the rest.
 *
 * A Cluster renews the node's lease, watches the other nodes, takes over what a dead one owned,
 * spreads spaces evenly, hands spaces over when it is drained, and tells the store and the
 * catalogue what is theirs. Who owns what is decided by the journal's engine alone.
 *
 * Ownership  Journal, folder, clock, log and NodeClient outlive the Cluster.
 * Threads    cluster_owner, cluster_lease_holds and cluster_refresh_owners from any thread, without
 *            a lock that is held for long; loops call them. Threads of the Cluster's own do the
 *            rest (README.md).
 */
#pragma once

#include "base/clock.h"
#include "base/metrics.h"
#include "catalog/placement.h"
#include "cluster/cluster_folder.h"
#include "http/http.h"
#include "journal/journal.h"
#include "store/replicated/replicated_store.h"

#define CLUSTER_ADDRESS_MAX 300

/* Copies of each space, unless something else is asked for. */
#define CLUSTER_REPLICAS_DEFAULT 3

typedef struct Cluster Cluster;

/* A request to another node, by a thread that may wait. STATUS_UNAVAILABLE if no answer came. The
 * answer is what the other node's cluster_handle gave: its status and its body. */
typedef struct ClusterCall {
    Slice address; /* HOST:PORT */
    Slice path;    /* begins with CLUSTER_PATH */
    uint32_t timeout_ms;
    int status;
    Buf *answer; /* empty */
} ClusterCall;

/* Paths of requests from node to node that are for the Cluster. */
#define CLUSTER_PATH "/_node/"

typedef struct ClusterOptions {
    Journal *journal;      /* joined through 'folder' as 'member' */
    ClusterFolder *folder; /* where a new incarnation is noted */
    JournalMember member;
    JournalJoin join;  /* what the node says of itself; copied */
    const char *node;  /* its name, as in 'join' */
    uint32_t replicas; /* wanted copies of each space; 0 for CLUSTER_REPLICAS_DEFAULT */
    uint32_t keep_ms;  /* a replica that is behind for so long is expelled; 0 for 15 minutes */
    uint64_t journal_bytes_max; /* with a quarter of it used, a dead node's replicas are expelled at
                                   once; 0 for 8 GB */
    const Clock *clock;
    const Log *log;
    MetricsShard *metrics; /* of the manager's thread alone; NULL if nothing is counted */
    /* Sends a request to another node; cluster_call_with_client is one, with a NodeClient as
     * 'call_ctx'. Called on several threads. */
    Status (*call)(void *ctx, ClusterCall *call, Error *err);
    void *call_ctx;
} ClusterOptions;

/* 'ctx' is a NodeClient (http/node_link.h). */
MUST_USE Status cluster_call_with_client(void *ctx, ClusterCall *call, Error *err);

/* In this order: cluster_folder_open and cluster_folder_join, cluster_new (renews the lease from
 * now on), replicated_store_open with cluster_hooks, cluster_join_catalog (waits until the
 * catalogue's space is owned or followed to its tail), catalog_open with cluster_placement,
 * cluster_start. */
MUST_USE Status cluster_new(const ClusterOptions *options, Cluster **out, Error *err);
ReplicationHooks cluster_hooks(Cluster *cluster);
MUST_USE Status cluster_join_catalog(Cluster *cluster, Store *store, Replication *replication,
                                     bool *is_leader, Error *err);
const CatalogPlacement *cluster_placement(Cluster *cluster);
MUST_USE Status cluster_start(Cluster *cluster, Catalog *catalog, Error *err);

/* The time by which the node dates and expires, and measures: its own clock, unless the engine's
 * wall clock says something else by more than some seconds. Known when cluster_join_catalog has
 * returned; lives as long as the Cluster. Any thread. */
const Clock *cluster_clock(const Cluster *cluster);

/* Who serves a space. Not known: nobody does at this moment, as far as this node knows; ask again
 * in some milliseconds. */
typedef struct ClusterOwner {
    bool is_known;
    bool is_local;
    uint64_t epoch;
    char address[CLUSTER_ADDRESS_MAX]; /* HOST:PORT for node_link_send; empty if it is local */
    char node[JOURNAL_NAME_MAX + 1];
} ClusterOwner;
ClusterOwner cluster_owner(Cluster *cluster, StoreSpace space);
ClusterOwner cluster_catalog_owner(Cluster *cluster);

/* Another node has said that the owner is not who this one thinks: reads the owners again soon. */
void cluster_refresh_owners(Cluster *cluster);

/* The incarnation of this node: another one after it was declared dead and has joined anew. */
uint64_t cluster_incarnation(Cluster *cluster);

/* Whether an answer that rests on what this node has read in that incarnation may be given (J3):
 * ask after the read. */
bool cluster_lease_holds(Cluster *cluster, uint64_t incarnation);

/* A request with HttpRequest.is_node: false if its path does not begin with CLUSTER_PATH, otherwise
 * it is answered here, now or later. On the request's loop. */
bool cluster_handle(Cluster *cluster, HttpRequest *request);

/* For an operator: see docs/cluster.md. Any thread that may wait. cluster_move moves the
 * space and those of all ranges that share a budget with it, and returns when the other node owns
 * them; '*json', in the arena, is {"node":"n","spaces":[1,2]}. STATUS_TIMEOUT if that takes longer
 * than a minute: it goes on. */
MUST_USE Status cluster_move(Cluster *cluster, StoreSpace space, Slice node, Arena *arena,
                             Slice *json, Error *err);
MUST_USE Status cluster_drain(Cluster *cluster, Slice node, bool is_draining, Error *err);
MUST_USE Status cluster_remove(Cluster *cluster, Slice node, Error *err);

/* Raises the format that the cluster writes to the newest that all its living nodes read; '*json'
 * is
 * {"format":N,"before":N} then. STATUS_CONFLICT if older nodes keep it where it is; the message
 * names them. */
MUST_USE Status cluster_upgrade(Cluster *cluster, Arena *arena, Slice *json, Error *err);

/* Accepts that the engine has lost writes which it had acknowledged: this node gives up its copies
 * of the space (0 for all that it refuses), and follows what the log has. STATUS_NOT_FOUND if it
 * refuses none. To be run on each node that has such copies. */
MUST_USE Status cluster_recover(Cluster *cluster, StoreSpace space, Error *err);

/* Spaces and events in cluster_status, and events that are kept. */
#define CLUSTER_STATUS_SPACES_MAX 1000
#define CLUSTER_EVENTS_MAX        256

/* What /_orrery/cluster shows, as JSON in 'arena'. */
MUST_USE Status cluster_status(Cluster *cluster, Arena *arena, Slice *json, Error *err);

/* What an operator should know of the engine, as it was read last: no synchronous standby, fsync
 * off. Returns how long it is; 0 if there is nothing. Any thread; does not ask the engine. */
#define CLUSTER_WARNING_MAX 512
size_t cluster_engine_warning(Cluster *cluster, char out[CLUSTER_WARNING_MAX]);

/* The same of this node's clock, if it is not the engine's. */
size_t cluster_clock_warning(const Cluster *cluster, char out[CLUSTER_WARNING_MAX]);
/* That fewer nodes live than are to have a copy of each partition; likewise. */
size_t cluster_copies_warning(Cluster *cluster, char out[CLUSTER_WARNING_MAX]);

/* A change of an owner, or of a node's life. */
typedef struct ClusterEvent {
    uint64_t number;  /* counts from 1 since the start */
    uint64_t at_us;   /* wall time of cluster_clock */
    const char *kind; /* "takeOver", "handOver", "lost", "nodeDead", ... */
    StoreSpace space; /* 0 if it is about a node */
    uint64_t epoch;
    char node[JOURNAL_NAME_MAX + 1]; /* the new owner, or the node it is about */
    char reason[160];
} ClusterEvent;

/* The newest events first, at most 'max'; returns how many. Any thread. */
size_t cluster_events(Cluster *cluster, ClusterEvent *out, size_t max);

/* All that are kept, as a JSON array in 'arena'. Any thread. */
Slice cluster_events_json(Cluster *cluster, Arena *arena);

/* Gives away what it owns, if there is a node that can take it, and waits until the changes of the
 * catalogue that it has made are on all nodes, for at most 'wait_ms'. What is not on all nodes then
 * is not answered as done. The node stays a member, which follows the catalogue and forwards, so
 * that clients are served until the loops have ended. */
void cluster_leave(Cluster *cluster, uint32_t wait_ms);

/* Ends the threads, and the membership: others take over at once what it still owns. After the
 * loops have ended, because nothing that was read here may be answered any more; before the
 * catalogue is closed. */
void cluster_end(Cluster *cluster);

/* Calls nothing of the store any more: after the catalogue is closed, before the store is. The
 * store may go on calling the hooks until it is closed, so cluster_close comes after that. Both
 * accept NULL. */
void cluster_stop(Cluster *cluster);
void cluster_close(Cluster *cluster);
DEFINE_AUTO(Cluster *, cluster_close)
