/* snapshot.h - the whole catalogue as it stood after one change.
 *
 * Lookups by name and by number, and walks in order of number (which is the order of creation).
 * Objects handed out are borrowed as long as the snapshot is held.
 *
 * Ownership  Reference counted. Threads: immutable after it is published, any thread may read it.
 */
#pragma once

#include "base/hash.h"
#include "base/trie.h"
#include "catalog/resource.h"

#include <stdatomic.h>

typedef struct Snapshot {
    _Atomic uint32_t refs;
    HashKey hash_key; /* of the names below */
    Trie databases;   /* by number -> DatabaseEntry */
    Trie database_names;
    Trie offers; /* by number -> Offer */
    size_t container_count;
} Snapshot;

Snapshot *snapshot_ref(Snapshot *snapshot);
void snapshot_unref(Snapshot *snapshot); /* accepts NULL */
DEFINE_AUTO(Snapshot *, snapshot_unref)

/* NULL if there is none. */
const Database *snapshot_database(const Snapshot *snapshot, uint32_t number);
const Database *snapshot_database_by_id(const Snapshot *snapshot, Slice id);
const Container *snapshot_container(const Snapshot *snapshot, uint32_t database, uint32_t number);
const Container *snapshot_container_by_id(const Snapshot *snapshot, uint32_t database, Slice id);
const Offer *snapshot_offer(const Snapshot *snapshot, uint32_t number);
const EncryptionKey *snapshot_key(const Snapshot *snapshot, uint32_t database, uint32_t number);
const EncryptionKey *snapshot_key_by_id(const Snapshot *snapshot, uint32_t database, Slice id);

/* The one with the smallest number >= 'from', or NULL. */
const Database *snapshot_next_database(const Snapshot *snapshot, uint32_t from);
const Container *snapshot_next_container(const Snapshot *snapshot, uint32_t database,
                                         uint32_t from);
const Offer *snapshot_next_offer(const Snapshot *snapshot, uint32_t from);
const EncryptionKey *snapshot_next_key(const Snapshot *snapshot, uint32_t database, uint32_t from);

size_t snapshot_container_count(const Snapshot *snapshot, uint32_t database);
/* Containers of a database that have no throughput of their own. */
size_t snapshot_shared_count(const Snapshot *snapshot, uint32_t database);

/* The rest is for the catalogue's writer, on a snapshot that nobody else holds yet. */

Snapshot *snapshot_new(HashKey hash_key);
Snapshot *snapshot_copy(const Snapshot *snapshot);

/* Each takes over one reference on the object and replaces an older one with its number. False, and
 * the reference is given back, if the name's hash is taken by another name: with a secret key that
 * will not be seen, and a new key (another snapshot_new) solves it. */
MUST_USE bool snapshot_put_database(Snapshot *snapshot, Database *database);
MUST_USE bool snapshot_put_container(Snapshot *snapshot, Container *container);
MUST_USE bool snapshot_put_key(Snapshot *snapshot, EncryptionKey *key);
void snapshot_put_offer(Snapshot *snapshot, Offer *offer);

void snapshot_remove_database(Snapshot *snapshot, uint32_t number); /* and its children */
void snapshot_remove_container(Snapshot *snapshot, uint32_t database, uint32_t number);
void snapshot_remove_offer(Snapshot *snapshot, uint32_t number);
