/* resource.h - databases, containers and offers as they stand at one moment.
 *
 * Each is an immutable, shared object with everything prepared that a request needs: its ids, its
 * ETag, and for a container its partition key and its partition map. A change makes a new object.
 * How it is shown to clients is made by a layer above, and kept here (ResourceView).
 *
 * Ownership  Reference counted; a Snapshot holds one reference on all it shows.
 * Threads    Immutable after they are made; any thread may read and release them.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/rid.h"
#include "base/slice.h"
#include "base/trie.h"
#include "catalog/definition.h"
#include "catalog/partition_handle.h"
#include "store/store.h"
#include "throughput/provision.h"
#include "json/json.h"

#include <stdatomic.h>

#define RANGES_MAX 4096 /* physical partitions of one container */

/* A range's id is the highest part of the numbers of the items that are made in it, which have 40
 * bits more and must fit into the 60 of a resource id. */
#define RANGE_IDS_MAX (UINT32_C(1) << 20)

/* Splits and merges in turn would make the list of ancestors ever longer, so only this many of the
 * newest are kept (I11). A client that names an older one reads the whole map again. */
#define RANGE_PARENTS_MAX 256

/* What a layer above has made of a resource, kept as long as the resource: the first member of a
 * struct of its own. */
typedef struct ResourceView ResourceView;
struct ResourceView {
    void (*release)(ResourceView *view); /* on any thread */
};

/* With its quotes. */
#define RESOURCE_ETAG_LEN 38

/* What every resource has. 'lsn' numbers the catalogue's changes; the ETag is made from it. */
typedef struct ResourceInfo {
    uint32_t number; /* unique among its kind in this data folder, never used again */
    Slice id;
    Slice rid;
    Slice etag; /* RESOURCE_ETAG_LEN characters */
    uint64_t lsn;
    int64_t ts_s;
    _Atomic(ResourceView *) *view; /* see resource_view(); in the resource's arena */
} ResourceInfo;

/* Parts of an offer's throughput that some requests must not exceed: see ru_budget.h. */
typedef struct OfferBuckets {
    uint8_t percent[BUDGET_BUCKETS_MAX]; /* 0 if there is no such bucket */
    uint8_t chosen; /* of requests that name none: 1 to BUDGET_BUCKETS_MAX, or 0 for no bucket */
} OfferBuckets;

typedef struct Offer {
    _Atomic uint32_t refs;
    Arena arena;
    ResourceInfo info;
    uint32_t database;  /* the owner, or the database of the owner */
    uint32_t container; /* the owner; 0 if it is the database, whose containers share the offer */
    Slice owner_rid;
    Provision provision;
    OfferBuckets buckets;
    uint32_t ru_ever;         /* the most that was ever provisioned */
    uint64_t storage_kb_ever; /* the most that was ever stored, as far as it was noted */
    int64_t replaced_at_s;
} Offer;

/* What an offer shows that changes with use, not with the offer. */
typedef struct OfferUsage {
    uint64_t ru;         /* a second: what the load of the last seconds asks for */
    uint64_t storage_kb; /* the most ever stored */
    bool is_pending;     /* partitions are being made for it, or no longer needed */
} OfferUsage;

/* A range of effective partition keys, and the name of the physical partition that holds it.
 * container_handle() leads to that partition. */
struct PartitionRange {
    uint32_t id;     /* decimal text on the wire; never used again in its container */
    Slice min;       /* inclusive, upper-case hex; empty for the lowest */
    Slice max;       /* exclusive; "FF" for the highest */
    Slice min_bytes; /* the same as bytes, which is what requests are routed by */
    Slice max_bytes;
    StoreSpace space;        /* where its data is */
    uint64_t lsn;            /* of the change that made it: the range feed shows what is newer */
    const uint32_t *parents; /* ids of the ranges that this one came from, and theirs; sorted */
    size_t parent_count;
};

struct Container {
    _Atomic uint32_t refs;
    Arena arena;
    ResourceInfo info;
    uint32_t database;
    Json definition; /* normal form, see definition.h */
    PartitionKeyDefinition partition_key;
    PartitionSchema *schema;      /* what the partitions act on */
    const PartitionRange *ranges; /* in order of 'min', without gaps */
    size_t range_count;
    PartitionHandle *handles; /* of the ranges, in their order */
    /* The ranges that a move under way (see CATALOG_BEGIN_MOVE) will put in the place of a run of
     * neighbours: in order, without gaps, covering exactly those. No request is routed to them. */
    const PartitionRange *pending;
    size_t pending_count; /* 0 if there is none */
    PartitionHandle *pending_handles;
    uint32_t range_next; /* the next range's id */
    uint64_t ranges_lsn; /* of the newest change to the map */
    uint32_t offer;      /* 0 if it shares its database's throughput */
    /* Of the container whose name this one took over (CATALOG_END_SWAP); clients may still know its
     * key. Undefined, and NULL, if there was none. */
    Json before;
    const PartitionKeyDefinition *key_before;
    uint64_t named_lsn; /* of the change that gave it the name; 0 if there was none */
    /* In memory only. */
    bool is_held;        /* its writes wait for a swap; no move may begin */
    uint32_t generation; /* see partition/write_hold.h */
};

/* A key with which clients encrypt properties of items, wrapped so that only they can use it. */
typedef struct EncryptionKey {
    _Atomic uint32_t refs;
    Arena arena;
    ResourceInfo info;
    uint32_t database;
    int64_t created_at_s;
    Json definition; /* normal form, see definition.h */
} EncryptionKey;

/* The throughput that a database's containers share is divided, like that of a container, over
 * physical partitions: each has a budget, which the ranges that lie there spend together. */
typedef struct Database {
    _Atomic uint32_t refs;
    Arena arena;
    ResourceInfo info;
    uint32_t offer; /* 0 if its containers have their own throughput */
    Budget **budgets;
    uint32_t partitions; /* how many; 0 without an offer */
} Database;

/* Plain descriptions, which are stored, and from which the objects above are made. */
typedef struct DatabaseRecord {
    uint32_t number;
    Slice id;
    uint64_t lsn;
    int64_t ts_s;
    uint32_t offer;
    uint32_t partitions;
} DatabaseRecord;

typedef struct ContainerRecord {
    uint32_t number;
    uint32_t database;
    uint64_t lsn;
    int64_t ts_s;
    Json definition;
    const PartitionRange *ranges;
    size_t range_count;
    const PartitionRange *pending;
    size_t pending_count;
    uint32_t range_next;
    uint64_t ranges_lsn;
    uint32_t offer;
    Json before;  /* {"partitionKey":...,"lsn":7}; undefined if there is none */
    bool is_held; /* these two are not stored */
    uint32_t generation;
} ContainerRecord;

typedef struct OfferRecord {
    uint32_t number;
    uint32_t database;
    uint32_t container;
    uint64_t lsn;
    int64_t ts_s;
    Provision provision;
    OfferBuckets buckets;
    uint32_t ru_ever;
    uint64_t storage_kb_ever;
    int64_t replaced_at_s;
} OfferRecord;

typedef struct EncryptionKeyRecord {
    uint32_t number;
    uint32_t database;
    uint64_t lsn;
    int64_t ts_s;
    int64_t created_at_s;
    Json definition;
} EncryptionKeyRecord;

/* Everything is copied. container_new opens the partitions that this process serves, pending ones
 * too, or takes those of 'old', the container that this one replaces, with their budgets and
 * histories. Without an offer
 * of its own it spends the budgets of 'database', which is NULL if there are none to share, or if
 * those of 'old' are kept. It fails, with STATUS_CORRUPT, on a definition that is not a normal
 * form, and when a partition cannot be opened. New budgets have no terms yet. */
Database *database_new(const DatabaseRecord *record);
MUST_USE Status container_new(const ContainerRecord *record, PartitionHost *host,
                              const Database *database, const Container *old, Container **out,
                              Error *err);
/* The same container, in which the partition of one space is 'partition', of which a reference is
 * made, or is served elsewhere if that is NULL. It keeps its budget. */
MUST_USE Status container_with_partition(const Container *old, StoreSpace space,
                                         Partition *partition, Container **out, Error *err);
Offer *offer_new(const OfferRecord *record);
/* STATUS_CORRUPT on a definition that is not a normal form. */
MUST_USE Status encryption_key_new(const EncryptionKeyRecord *record, EncryptionKey **out,
                                   Error *err);

/* SDKs treat an ETag as opaque but log it as a GUID, so it looks like one: the change's number,
 * then its time. */
void resource_etag(uint64_t lsn, int64_t ts_s, char out[RESOURCE_ETAG_LEN]);

/* The view that is kept with a resource; NULL if there is none yet. From any thread. */
ResourceView *resource_view(const ResourceInfo *info);

/* Keeps 'view' with the resource, which releases it in the end, and returns it. If another thread
 * has kept one before, that one is returned and 'view' released. From any thread. */
ResourceView *resource_keep_view(const ResourceInfo *info, ResourceView *view);

/* What an object was made from; slices and documents are borrowed from it. */
ContainerRecord container_record(const Container *container);
OfferRecord offer_record(const Offer *offer);
EncryptionKeyRecord encryption_key_record(const EncryptionKey *key);

Database *database_ref(const Database *database);
Container *container_ref(const Container *container);
Offer *offer_ref(const Offer *offer);
EncryptionKey *encryption_key_ref(const EncryptionKey *key);
void database_unref(Database *database); /* each accepts NULL */
void container_unref(Container *container);
void offer_unref(Offer *offer);
void encryption_key_unref(EncryptionKey *key);
DEFINE_AUTO(Database *, database_unref)
DEFINE_AUTO(Container *, container_unref)
DEFINE_AUTO(Offer *, offer_unref)
DEFINE_AUTO(EncryptionKey *, encryption_key_unref)

/* The range with this id in the map, or NULL; pending ones are not in it. */
const PartitionRange *container_range(const Container *container, uint32_t id);

/* The ranges that the move under way takes over: neighbours in the map. NULL if there is none. */
const PartitionRange *container_sources(const Container *container, size_t *count);

/* Whether 'id' is the range's own, or one that it came from. */
bool partition_range_is_from(const PartitionRange *range, uint32_t id);
