/* record_int.h - how the catalogue is kept in the store. The formats are drawn in record.c. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "catalog/resource.h"
#include "catalog/saved_state.h"
#include "catalog/snapshot.h"
#include "catalog/stored_script.h"
#include "catalog/user.h"
#include "store/store.h"

/* The catalogue's own space, and where the spaces of physical partitions begin. */
#define SPACE_CATALOG         ((StoreSpace)1)
#define SPACE_PARTITION_FIRST ((StoreSpace)1 << 16)

/* The latest time that a record can hold. */
#define RECORD_TIME_S_MAX ((INT64_C(1) << 40) - 1)

/* Numbers that are given out once. */
typedef struct CatalogCounters {
    uint64_t lsn; /* of the newest change */
    uint32_t database_next;
    uint32_t container_next;
    uint32_t offer_next;
    uint32_t key_next;
    uint32_t script_next; /* of all kinds */
    uint32_t user_next;
    uint32_t permission_next;
    uint32_t saved_next; /* of saved states */
    StoreSpace space_next;
    bool is_serverless; /* of the account, for good: no throughput is provisioned */
} CatalogCounters;

/* Spaces whose container is gone and whose data is still to be removed. */
typedef struct Garbage {
    StoreSpace first;
    StoreSpace last;
} Garbage;

void record_put_counters(StoreTxn *txn, const CatalogCounters *counters);
void record_put_database(StoreTxn *txn, const DatabaseRecord *record);
void record_put_container(StoreTxn *txn, const ContainerRecord *record);
void record_put_offer(StoreTxn *txn, const OfferRecord *record);
void record_put_key(StoreTxn *txn, const EncryptionKeyRecord *record);
void record_put_script(StoreTxn *txn, const StoredScriptRecord *record);
void record_put_user(StoreTxn *txn, const UserRecord *record);
void record_put_permission(StoreTxn *txn, const PermissionRecord *record);
void record_put_garbage(StoreTxn *txn, Garbage garbage);

/* record_saved.c: a saved state; and copies of all records of a database for it. The container that
 * is dropped, but kept for a saved state, is in record.c. */
void record_put_saved(StoreTxn *txn, const SavedRecord *record);
MUST_USE Status record_copy_saved(StoreTxn *txn, uint32_t state, const Snapshot *snapshot,
                                  const Database *database, Error *err);
MUST_USE Status record_delete_saved(StoreTxn *txn, uint32_t state, Error *err);
void record_put_kept(StoreTxn *txn, const ContainerRecord *record);
void record_delete_kept(StoreTxn *txn, uint32_t database, uint32_t container);

void record_delete_database(StoreTxn *txn, uint32_t database);
void record_delete_container(StoreTxn *txn, uint32_t database, uint32_t container);
void record_delete_offer(StoreTxn *txn, uint32_t offer);
void record_delete_key(StoreTxn *txn, uint32_t database, uint32_t key);
void record_delete_script(StoreTxn *txn, StoredScriptGroup group, uint32_t script);
void record_delete_user(StoreTxn *txn, UserKey user);
void record_delete_permission(StoreTxn *txn, UserKey owner, uint32_t permission);
void record_delete_garbage(StoreTxn *txn, Garbage garbage);

/* What record_load calls for each record, databases before containers before the others, and users
 * before permissions; NULL for kinds that are not wanted. Slices live for the call. */
typedef struct RecordVisitor {
    void *ctx;
    Status (*counters)(void *ctx, const CatalogCounters *counters, Error *err);
    Status (*database)(void *ctx, const DatabaseRecord *record, Error *err);
    Status (*container)(void *ctx, const ContainerRecord *record, Error *err);
    Status (*offer)(void *ctx, const OfferRecord *record, Error *err);
    Status (*garbage)(void *ctx, Garbage garbage, Error *err);
    Status (*key)(void *ctx, const EncryptionKeyRecord *record, Error *err);
    Status (*script)(void *ctx, const StoredScriptRecord *record, Error *err);
    Status (*user)(void *ctx, const UserRecord *record, Error *err);
    Status (*permission)(void *ctx, const PermissionRecord *record, Error *err);
    Status (*saved)(void *ctx, const SavedRecord *record, Error *err);
    /* After 'saved', in order: a container that is in the saved state. */
    Status (*saved_container)(void *ctx, uint32_t state, uint32_t database, uint32_t container,
                              Error *err);
    Status (*kept)(void *ctx, const ContainerRecord *record, Error *err);
} RecordVisitor;

/* The first byte of a key. */
enum {
    RECORD_KIND_COUNTERS = 1,
    RECORD_KIND_DATABASE = 2,
    RECORD_KIND_CONTAINER = 3,
    RECORD_KIND_OFFER = 4,
    RECORD_KIND_GARBAGE = 5,
    RECORD_KIND_KEY = 6,
    RECORD_KIND_SCRIPT = 7,
    RECORD_KIND_USER = 9,
    RECORD_KIND_PERMISSION = 10,
    RECORD_KIND_SAVED = 11,
    RECORD_KIND_KEPT = 12,
};

/* One record. */
MUST_USE Status record_read(Slice key, Slice value, Arena *arena, const RecordVisitor *visitor,
                            Error *err);

/* record_saved.c: the same for its kinds; all records of a saved state, as their own kinds; and a
 * container that is kept. */
MUST_USE Status record_load_saved(Slice key, Slice value, Arena *arena,
                                  const RecordVisitor *visitor, Error *err);
MUST_USE Status record_load_kept(Slice key, Slice value, Arena *arena, const RecordVisitor *visitor,
                                 Error *err);
MUST_USE Status record_read_saved(StoreTxn *txn, uint32_t state, const RecordVisitor *visitor,
                                  Error *err);
MUST_USE Status record_read_kept(StoreTxn *txn, uint32_t database, uint32_t container, Arena *arena,
                                 const RecordVisitor *visitor, Error *err);

/* STATUS_CORRUPT if a record is not what this version or an older one writes. */
MUST_USE Status record_load(Store *store, const RecordVisitor *visitor, Error *err);
