/* api_cluster.h - what the api asks of the cluster that this process is a node of.
 *
 * The layer of the cluster is above the api, so cli fills this in. Without a cluster there is none,
 * and this process serves everything.
 *
 * Threads    Any thread, except as noted; none of the functions waits, except as noted.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "http/node_link.h"
#include "store/store.h"

#define API_NODE_ADDRESS_MAX 300
#define API_NODE_NAME_MAX    63

/* The node that serves a space. */
typedef struct ApiOwner {
    bool is_known;
    bool is_local;
    uint64_t epoch;                     /* grows whenever the owner changes */
    char address[API_NODE_ADDRESS_MAX]; /* for node_link_send; empty if it is this node */
    char node[API_NODE_NAME_MAX + 1];
} ApiOwner;

typedef struct ApiCluster {
    void *ctx;
    const char *node; /* the name of this one */
    ApiOwner (*owner)(void *ctx, StoreSpace space);
    ApiOwner (*catalog_owner)(void *ctx);

    /* The life of this node among the others, another one after it was declared dead. What it
     * serves belongs to one life. */
    uint64_t (*life)(void *ctx);

    /* Whether what this node has read in that life may be told: no other node can have been made
     * the owner of what it read. To be asked after the data was read. */
    bool (*lease_holds)(void *ctx, uint64_t life);

    /* An owner is not the one that this node knows: looks for the new one soon. */
    void (*refresh)(void *ctx);

    /* Another node has said who is the owner, and in which epoch: that counts if it is newer than
     * what this node knows. 0 is the catalogue's space. */
    void (*note_owner)(void *ctx, StoreSpace space, uint64_t epoch, Slice node);

    /* node_client_call: waits for the answer, so it is for workers. */
    void (*call)(void *ctx, NodeCall *call);

    /* What is wrong with the engine of the cluster or with this node's clock, as far as it is
     * known, and that fewer nodes live than are to have copies; in the arena, empty if there is
     * nothing. The newest changes of owners and nodes, as a JSON array. */
    Slice (*warning)(void *ctx, Arena *arena);
    Slice (*copies_warning)(void *ctx, Arena *arena);
    Slice (*events)(void *ctx, Arena *arena);

    /* For operators; on a worker, since they wait. 'node' is a name, 'json' lives in the arena. */
    Status (*status)(void *ctx, Arena *arena, Slice *json, Error *err);
    Status (*drain)(void *ctx, Slice node, bool is_draining, Error *err);
    Status (*remove)(void *ctx, Slice node, Error *err);

    /* Moves the space, and those of all ranges that share a budget with it; says which, as JSON. */
    Status (*move)(void *ctx, StoreSpace space, Slice node, Arena *arena, Slice *json, Error *err);

    /* Raises the format that the cluster writes; says what it was and is, as JSON. */
    Status (*upgrade)(void *ctx, Arena *arena, Slice *json, Error *err);

    /* Gives up copies of a space (0: of all) that hold writes which the engine has lost. */
    Status (*recover)(void *ctx, StoreSpace space, Error *err);

    /* What this node's own copy of a space holds, and up to where, as JSON: at the same place all
     * copies hold the same. STATUS_NOT_FOUND if there is no copy here. Reads the whole space. */
    Status (*digest)(void *ctx, StoreSpace space, Arena *arena, Slice *json, Error *err);
} ApiCluster;
