/* parts_int.h - what a Cluster calls in the store and in the catalogue, as functions that a test
 * can replace. parts.c fills in the real ones.
 *
 * Threads    Any of the Cluster's; each waits as the header of the real function says.
 */
#pragma once

#include "catalog/placement.h"
#include "cluster/space_groups_int.h"
#include "store/replicated/replicated_store.h"

typedef struct ClusterStore {
    void *ctx; /* a Replication */
    size_t (*places)(void *ctx, ReplicaPlace *out, size_t max);
    ReplicaPlace (*place)(void *ctx, StoreSpace space);
    void (*follow)(void *ctx, StoreSpace space);
    Status (*own)(void *ctx, StoreSpace space, const JournalPlace *tail, uint64_t deadline_us,
                  Error *err);
    Status (*yield)(void *ctx, StoreSpace space, JournalPlace *last, Error *err);
    Status (*forget)(void *ctx, StoreSpace space, Error *err);
    void (*poke)(void *ctx);
    void (*set_full)(void *ctx, bool is_full);
    Status (*room)(void *ctx, Error *err); /* STATUS_IO if the disk has none for a new copy */
    Status (*source_open)(void *ctx, StoreSpace space, SeedSource **out, Error *err);
    Status (*source_next)(SeedSource *source, size_t bytes_max, Buf *piece, bool *is_last,
                          Error *err);
    void (*source_close)(SeedSource *source);
    Status (*target_open)(void *ctx, StoreSpace space, SeedTarget **out, Error *err);
    Status (*target_put)(SeedTarget *target, Slice piece, Error *err);
    Status (*target_finish)(SeedTarget *target, Error *err);
    void (*target_close)(SeedTarget *target);
    /* Whether a read has met something else than was written, in this life or an earlier one. */
    bool (*is_damaged)(void *store);
    void *store;
} ClusterStore;

typedef struct ClusterCatalog {
    void *ctx; /* a Catalog */
    Status (*lead)(void *ctx, Error *err);
    void (*follow)(void *ctx);
    bool (*leads)(void *ctx);
    Status (*refresh)(void *ctx, Error *err);
    Status (*serve)(void *ctx, StoreSpace space, Error *err);
    Status (*stop_serving)(void *ctx, StoreSpace space, Error *err);
    uint32_t (*container_of)(void *ctx, StoreSpace space); /* its number; 0 if there is none */
    /* The number of the container of which a split or a merge holds writes back, because its map is
     * about to change; 0 if there is none. That ends when all nodes have the new map, in which this
     * node takes part: so it must not wait for that. Called under Cluster.lock, too: it is brief.
     */
    uint32_t (*switching)(void *ctx);
    /* Whether the catalogue, as far as this node has it, names each of the spaces. */
    Status (*find_named)(void *ctx, const StoreSpace *spaces, size_t count, bool *is_named,
                         Error *err);
    /* The spaces of ranges that spend the budgets of a database, in the arena. */
    void (*list_shared)(void *ctx, Arena *arena, SharedSpace **out, size_t *count);
    /* What this node serves, and what others say of theirs: see catalog/placement.h. */
    void (*list_usage)(void *ctx, Arena *arena, SpaceUsage **out, size_t *count);
    void (*note_usage)(void *ctx, SpaceUsage *said, size_t count, uint64_t age_us);
} ClusterCatalog;

ClusterStore cluster_store_of(Store *store, Replication *replication);
ClusterCatalog cluster_catalog_of(Catalog *catalog);
