/* catalog.h - which databases, containers and offers there are, and where their partitions lie.
 *
 * Readers use a Snapshot and never wait for a change. Changes are messages to the catalogue's
 * own thread, which applies all that have gathered, one after the other, to a private copy, makes
 * the group durable with one commit, publishes the copy and only then answers each. So what a
 * client was told is on disk, and what it reads next, on any connection, shows it.
 *
 * Ownership  The caller closes the Catalog after its last reader and the answer to its last change.
 * Threads    catalog_submit from any thread. A CatalogReader belongs to one thread.
 */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/queue.h"
#include "catalog/definition.h"
#include "catalog/move_orders.h"
#include "catalog/snapshot.h"
#include "store/store.h"

/* Containers that share a database's throughput; the service has the same limit. */
#define SHARED_CONTAINERS_MAX 25

typedef struct CatalogPlacement CatalogPlacement; /* placement.h */

typedef struct CatalogOptions {
    PartitionHost *host; /* outlives the catalogue; its store is the catalogue's too */
    const Clock *clock;
    const Log *log;
    MetricsShard *metrics; /* of the catalogue's own thread */
    /* NULL if the data is only looked at, not served. The kind of account, serverless or not, is
     * decided when a data folder is made; opening it as the other kind is refused. */
    const ProvisionRules *throughput;
    const MoveRules *moves; /* NULL if no partition is split or merged, not even by an order */
    const CatalogPlacement *placement; /* NULL if this process serves everything, alone */
    bool is_read_only; /* writes nothing, and undoes no interrupted move in the store */
} CatalogOptions;

/* Loads what is in the store, or begins an empty catalogue. With a placement to which the
 * catalogue's own space is not local, it follows: then it writes nothing, not even to undo what a
 * start undoes, until catalog_lead. */
MUST_USE Status catalog_open(const CatalogOptions *options, Catalog **out, Error *err);
void catalog_close(Catalog *catalog); /* accepts NULL */
DEFINE_AUTO(Catalog *, catalog_close)

/* For a folder that was restored, with a catalogue that is read only and otherwise unused:
 * resources that are made after it is opened again have numbers that are higher by as much, as far
 * as there are so many. No client of a server that made more than this one knows of has seen them.
 */
MUST_USE Status catalog_skip_numbers(Catalog *catalog, uint32_t numbers, Error *err);

/* Sets the function that is called on the catalogue's thread for each newer snapshot, so that
 * readers which keep an older one can release it. It must only pass messages on, and call nothing
 * of the catalogue. With NULL it is not called any more once this returns. */
void catalog_set_listener(Catalog *catalog, void (*published)(void *ctx), void *ctx);

/* How many bytes a logical partition of such a container may hold; 0 if there is no limit. */
uint64_t catalog_logical_bytes_max(const Catalog *catalog, const PartitionSchema *schema);

/* A thread's own view. catalog_read returns the newest published snapshot, which stays valid until
 * this reader's next catalog_read; it costs one atomic load when nothing has changed. */
typedef struct CatalogReader {
    Catalog *catalog;
    Snapshot *snapshot;
    uint64_t version;
} CatalogReader;

void catalog_reader_init(CatalogReader *reader, Catalog *catalog);
void catalog_reader_done(CatalogReader *reader);
Snapshot *catalog_read(CatalogReader *reader);

typedef enum CatalogOp {
    CATALOG_CREATE_DATABASE,
    CATALOG_DELETE_DATABASE,
    CATALOG_CREATE_CONTAINER,
    CATALOG_REPLACE_CONTAINER,
    CATALOG_DELETE_CONTAINER,
    CATALOG_REPLACE_OFFER,
    CATALOG_CREATE_KEY, /* a client encryption key */
    CATALOG_REPLACE_KEY,
    CATALOG_CREATE_SCRIPT, /* with 'is_upsert' it replaces one that has its id */
    CATALOG_REPLACE_SCRIPT,
    CATALOG_DELETE_SCRIPT,
    CATALOG_CREATE_USER, /* with 'is_upsert' it keeps one that has its id, as a new version */
    CATALOG_REPLACE_USER,
    CATALOG_DELETE_USER,
    CATALOG_CREATE_PERMISSION, /* with 'is_upsert' it replaces one that has its id */
    CATALOG_REPLACE_PERMISSION,
    CATALOG_DELETE_PERMISSION,
    /* A move takes a run of neighbouring ranges over into new ones, cut at other places: of one
     * range a split, of several a merge. Begun, the targets are there, empty and pending, for the
     * data to be brought to them; ended, they are in the map instead of the sources, of which each
     * is an ancestor; undone, they vanish. A container has one move at a time, and a restart undoes
     * it. None of this changes the container's own version. */
    CATALOG_BEGIN_MOVE,
    CATALOG_END_MOVE,
    CATALOG_UNDO_MOVE,
    /* A swap gives the name of a container to another one of its database, which is a copy of it,
     * and the old one a name of its own, in one commit. Begun, no move may begin, so that the
     * writes of the container can be held (partition/write_hold.h); ended or undone, they may. A
     * restart undoes it. */
    CATALOG_BEGIN_SWAP,
    CATALOG_END_SWAP,
    CATALOG_UNDO_SWAP,
    /* Saved states: see saved_states.h, whose functions send these. A restore begins with the
     * records, and ends when the items are there, too; a start after a crash ends it. */
    CATALOG_SAVE_STATE,
    CATALOG_RESTORE_STATE,
    CATALOG_END_RESTORE,
    CATALOG_DROP_STATE,
} CatalogOp;

/* Containers, with one reference on each; zeroed to begin with. */
typedef struct ContainerList {
    Container **items;
    size_t count;
    size_t capacity;
} ContainerList;

/* One change and its answer. The sender fills the inputs, which must stay valid until 'done' is
 * called, on the catalogue's thread, exactly once; 'done' passes a message on and does not wait. */
typedef struct CatalogChange CatalogChange;
struct CatalogChange {
    QueueNode node;
    CatalogOp op;
    uint32_t database;  /* number of the one to delete or of a container's parent */
    uint32_t container; /* number of the one to replace or delete, or whose ranges or scripts change
                         */
    uint32_t copy;      /* end swap: number of the one that takes the name over */
    uint32_t offer;     /* number of the one to replace */
    uint32_t key;       /* number of the client encryption key to replace */
    StoredScriptKind script_kind;
    uint32_t script;     /* number of the one to replace or delete */
    uint32_t user;       /* number of the one to replace or delete, or whose permissions change */
    uint32_t permission; /* number of the one to replace or delete */
    bool is_upsert;
    Slice id;             /* create database, create and replace user; end swap: the new name */
    uint32_t first_range; /* create container: id of its first range, usually 0 */
    Json definition;      /* normal form; replace container: as it was sent */
    bool has_provision;   /* create: throughput was asked for */
    Provision provision;  /* create, replace offer */
    bool has_buckets;     /* replace offer: 'buckets' replace the old ones */
    OfferBuckets buckets;
    Slice if_match;       /* empty, "*", or the ETag that the resource must still have */
    uint32_t range_first; /* begin move: ids of the first and of the last source */
    uint32_t range_last;
    const Slice *cuts; /* begin move: the bounds between the targets, as text (epk_range.h) */
    size_t cut_count;
    uint32_t saved;                   /* number of the saved state */
    const uint32_t *saved_containers; /* numbers of those whose partitions are held, in order */
    size_t saved_count;
    uint64_t deadline_us; /* its sender waits no longer than that (the catalogue's monotonic clock):
                             from then on it is refused with STATUS_THROTTLED; 0 if there is none */
    void (*done)(CatalogChange *change);

    Status status;               /* the answer */
    Error error;                 /* if 'status' is not STATUS_OK */
    ProvisionHistory history;    /* replace offer: what its minimum follows from */
    OfferUsage usage;            /* replace offer: what it shows */
    Database *result_database;   /* what was created; the sender releases it */
    Container *result_container; /* what was created or replaced */
    Offer *result_offer;
    EncryptionKey *result_key;
    StoredScript *result_script;
    User *result_user;
    Permission *result_permission;
    bool has_replaced;     /* create script, user or permission: there was one with this id */
    size_t script_count;   /* scripts: how many of the kind the container has now */
    Container *before;     /* end move, undo move: the container as it was */
    ContainerList revived; /* restore state: containers whose partitions are held from the
                              beginning (partition_hold_new), also if it failed */
    const Snapshot *before_snapshot; /* while a state is restored */
};

/* Submits a change and waits for its answer; not on the catalogue's thread or a loop. */
MUST_USE Status catalog_change(Catalog *catalog, CatalogChange *change, Error *err);

void catalog_submit(Catalog *catalog, CatalogChange *change);
void catalog_change_release(CatalogChange *change); /* gives the results back */

/* What an offer shows now ('now_us' is monotonic), and what its minimum depends on. */
OfferUsage catalog_offer_usage(const Snapshot *snapshot, const Offer *offer, uint64_t now_us);
ProvisionHistory catalog_provision_history(const Snapshot *snapshot, const Offer *offer,
                                           const OfferUsage *usage);

/* Calls 'found' for each space with data that no record of the catalogue names: nothing would ever
 * remove it. For tools. Walks from
 * space to space without reading them. */
MUST_USE Status catalog_find_unknown_spaces(Store *store,
                                            void (*found)(void *ctx, StoreSpace space), void *ctx,
                                            Error *err);

/* Calls 'found' for every space that a journal must know of, in order: those with data, and those
 * that a range names, in the map or pending, also of a container that is kept for a saved state. A
 * range may have a space in which there is nothing yet. For tools. */
MUST_USE Status catalog_find_all_spaces(Store *store, void (*found)(void *ctx, StoreSpace space),
                                        void *ctx, Error *err);

/* STATUS_PRECONDITION_FAILED unless 'if_match' is empty, "*" or 'etag'. */
MUST_USE Status catalog_check_etag(Slice if_match, Slice etag, Error *err);
