/* cluster_node.h - the parts of a server that make it a node of a cluster, opened and closed in
 * their order.
 *
 *     cluster_node_open        secret, folder, journal, a new incarnation, the lease
 *     cluster_node_open_store  the replicated store, with the catalogue's space up to date
 *     ... the catalogue, with cluster_node_placement; the api, with cluster_node_api; these and the
 *         http server with cluster_node_clock
 *     ... the http server, with cluster_node_links
 *     cluster_node_start       serves what is the node's, follows the rest
 *
 *     cluster_node_leave       gives everything to the others, and goes on answering
 *     cluster_node_end         after the http server is closed, before the catalogue is
 *     cluster_node_stop        after the catalogue is closed, before the store is
 *     cluster_node_close       after the store is closed
 *
 * Threads    The main thread's; what is handed out may be used by any.
 */
#pragma once

#include "api/core/api_cluster.h"
#include "catalog/placement.h"
#include "cli/cluster_settings.h"
#include "http/http.h"
#include "store/rocksdb/rocksdb_store.h"

#include <stdio.h>

typedef struct ClusterNode ClusterNode;

typedef struct ClusterNodeOptions {
    const ClusterSettings *settings;
    const char *data; /* the folder, which exists */
    const char *region;
    const Clock *clock;
    const Log *log;
    MetricsShard *metrics; /* of the cluster's own thread */
} ClusterNodeOptions;

/* For a server that is no node: STATUS_CONFLICT if the folder is that of one. */
MUST_USE Status cluster_node_check_absent(const char *data, Error *err);

MUST_USE Status cluster_node_open(const ClusterNodeOptions *options, ClusterNode **out, Error *err);

/* The secret of continuation tokens and of resource tokens: the same on every node. */
void cluster_node_token_secret(const ClusterNode *node, void *out, size_t size);

MUST_USE Status cluster_node_open_store(ClusterNode *node, const RocksdbStoreOptions *local,
                                        Store **out, Error *err);
const CatalogPlacement *cluster_node_placement(ClusterNode *node);
const ApiCluster *cluster_node_api(ClusterNode *node);

/* The time that the cluster goes by; until cluster_node_stop. */
const Clock *cluster_node_clock(const ClusterNode *node);

/* Fills in what the http server needs for the other nodes, and takes their own requests out before
 * 'options->handler' sees them. */
void cluster_node_links(ClusterNode *node, HttpOptions *options);

MUST_USE Status cluster_node_start(ClusterNode *node, Catalog *catalog, Error *err);

/* Says which cluster it is, and what an operator should know at once, such as an engine without a
 * standby. */
void cluster_node_print(const ClusterNode *node, FILE *to); /* accepts NULL */

/* All of these accept NULL. */
void cluster_node_leave(ClusterNode *node, HttpServer *http, uint32_t wait_ms);
void cluster_node_end(ClusterNode *node);
void cluster_node_stop(ClusterNode *node);
void cluster_node_close(ClusterNode *node);
