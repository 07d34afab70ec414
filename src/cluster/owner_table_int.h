/* owner_table_int.h - who serves each space, as far as this node knows: for every request.
 *
 *     OwnerTable (immutable, reference counted)
 *       nodes  by number: name, address
 *       rows   in order of space: node, epoch, whether it is served here
 *
 * A new table replaces the whole old one, as the catalogue's snapshots do. Readers are spread over
 * OWNER_SHARDS pointers to the same table, each with a lock that is held while one row is looked
 * up, so that loops do not wait for each other.
 *
 * An older epoch never replaces a newer one: tables are made from reads of the engine that may be
 * overtaken by what this node does itself.
 *
 * Threads    owners_find from any thread. The others under Cluster.lock.
 */
#pragma once

#include "journal/journal.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

#define OWNER_ADDRESS_MAX 300

enum { OWNER_SHARDS = 16 };

typedef struct OwnerNode {
    char name[JOURNAL_NAME_MAX + 1];
    char address[OWNER_ADDRESS_MAX];
} OwnerNode;

typedef struct OwnerRow {
    StoreSpace space;
    uint64_t epoch;
    uint64_t incarnation;
    uint32_t node;  /* its number in the table */
    bool is_served; /* by that node: false while nobody does */
    bool is_local;
} OwnerRow;

typedef struct OwnerTable {
    _Atomic uint32_t refs;
    OwnerNode *nodes;
    size_t node_count;
    OwnerRow *rows;
    size_t row_count;
} OwnerTable;

typedef struct OwnerShard {
    _Alignas(CACHE_LINE_SIZE) pthread_mutex_t lock;
    OwnerTable *table;
} OwnerShard;

typedef struct Owners {
    OwnerShard shards[OWNER_SHARDS];
    OwnerTable *newest; /* under Cluster.lock */
} Owners;

void owners_init(Owners *owners);
void owners_done(Owners *owners);

/* Copies the row of the space and its node; false if there is none. */
bool owners_find(Owners *owners, StoreSpace space, OwnerRow *row, OwnerNode *node);

/* What a read of the engine has found. Rows that it does not have are forgotten, except those that
 * 'keeps' says to keep. */
void owners_replace(Owners *owners, const JournalNode *nodes, size_t node_count,
                    const JournalOwner *rows, size_t row_count,
                    bool (*keeps)(void *ctx, StoreSpace space), void *ctx);

/* Another node has said that 'node' serves the space in that epoch: true if that is newer than the
 * row, which then says so. Never of a row that is local, as this node knows better what it serves;
 * nor for a space or a node that the table does not have. */
bool owners_advance(Owners *owners, StoreSpace space, uint64_t epoch, Slice node);

/* One row; 'node' may be one that the table does not have, then its address is empty. */
void owners_set(Owners *owners, const OwnerRow *row, Slice node);
