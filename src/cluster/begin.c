/* begin.c - how a node begins with a real store and a real catalogue; the steps are in cluster.c.
 */
#include "cluster/cluster_int.h"

enum { JOIN_WAIT_MS = 60000, JOIN_PAUSE_MS = 10 }; /* for the catalogue */

Status cluster_join_catalog(Cluster *cluster, Store *store, Replication *replication,
                            bool *is_leader, Error *err)
{
    cluster_bind_store(cluster, cluster_store_of(store, replication));
    TRY(cluster_make_catalog_space(cluster, err));
    bool is_ready = false;
    Status status = STATUS_OK;
    uint64_t begun_us = clock_monotonic_us(cluster->clock);
    while (!is_ready && clock_monotonic_us(cluster->clock) - begun_us < JOIN_WAIT_MS * 1000ULL) {
        (void)seed_step(cluster); /* no other thread does it yet */
        status = cluster_try_join_catalog(cluster, &is_ready, is_leader, err);
        if (!is_ready)
            cluster_pause_ms(JOIN_PAUSE_MS);
    }
    TRY(status);
    if (!is_ready && cluster_clock_state(&cluster->time) == CLUSTER_CLOCK_NEW)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the engine does not say what time it is within %d s of a renewal",
                         (int)(CLUSTER_CLOCK_ANSWER_US / 1000000));
    if (!is_ready)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the catalogue's owner is dead or away, or its log cannot be read");
    return STATUS_OK;
}

Status cluster_start(Cluster *cluster, Catalog *catalog, Error *err)
{
    cluster_bind_catalog(cluster, cluster_catalog_of(catalog));
    (void)pthread_mutex_lock(&cluster->lock);
    bool is_member = cluster->member == MEMBER_JOINED;
    (void)pthread_mutex_unlock(&cluster->lock);
    if (!is_member)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the node was declared dead while it started");
    cluster_refresh_owners(cluster);
    manage_step(cluster); /* before requests come: what is this node's already */
    TRY(cluster_reach_catalog_end(cluster, err));
    return cluster_start_threads(cluster, err);
}
