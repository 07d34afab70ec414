/* catalog_int.h - what the files of the catalogue share: its state and its working copy. */
#pragma once

#include "base/mailbox.h"
#include "base/random.h"
#include "catalog/catalog.h"
#include "catalog/record_int.h"

#include <pthread.h>

/* Removes the data of dropped containers in the background (cleaner.c). Its own thread sleeps
 * until there is something to remove. */
typedef struct Cleaner {
    Store *store;         /* immutable after open */
    const Log *log;       /* immutable after open */
    Mailbox mailbox;      /* GarbageMessages */
    pthread_mutex_t lock; /* guards 'falling' */
    pthread_cond_t fallen;
    uint32_t falling; /* drops whose partitions are not silent yet */
    _Atomic bool stop;
    pthread_t thread;
    bool is_running; /* opening thread only */
} Cleaner;

MUST_USE Status cleaner_open(Cleaner *cleaner, Store *store, const Log *log, Error *err);
void cleaner_post(Cleaner *cleaner, Garbage garbage); /* after its record is durable */

/* The same for the spaces of ranges that are no more, all or some of a container's, when their
 * partitions are silent. */
void cleaner_drop(Cleaner *cleaner, const Container *container, const PartitionRange *ranges,
                  size_t count);

/* Waits for partitions that are falling silent, finishes the piece under way; the rest keeps its
 * record. */
void cleaner_close(Cleaner *cleaner);

/* Reminds partitions, once a second, of their background work (keeper.c). Sleeps as long as no
 * partition can have any. */
typedef struct Keeper {
    Catalog *catalog;     /* immutable after open */
    pthread_mutex_t lock; /* guards the two flags */
    pthread_cond_t changed;
    bool stop;
    bool is_needed;
    pthread_t thread;
    bool is_running; /* opening thread only */
} Keeper;

MUST_USE Status keeper_open(Keeper *keeper, Catalog *catalog, Error *err);
void keeper_notice(Keeper *keeper); /* a container was created or replaced */
void keeper_close(Keeper *keeper);

/* Pieces of garbage that were found at the start. */
typedef struct GarbageList {
    Garbage *items;
    size_t count;
    size_t capacity;
} GarbageList;

void garbage_list_add(GarbageList *list, Garbage garbage);

/* The spaces of ranges, neighbouring ones as one piece: the piece that begins at range '*from',
 * which is moved behind it. False at the end. */
bool garbage_next(const PartitionRange *ranges, size_t count, size_t *from, Garbage *out);

/* Loads what is in the store (load.c), and undoes the moves that the end of the process has
 * interrupted: their spaces are among the garbage; with 'is_read_only' the store keeps them, and
 * only the snapshot shows none. '*found' is false, and the snapshot empty, if the store holds no
 * catalogue yet. STATUS_CORRUPT if what it holds cannot have been written by this program. */
MUST_USE Status catalog_load(PartitionHost *host, bool is_read_only, Snapshot **snapshot,
                             CatalogCounters *counters, bool *found, GarbageList *garbage,
                             Error *err);

/* From offers to budgets (share.c). share_offer gives what an offer provides to the partitions of
 * its owner, in equal parts; share_serverless gives a container's partitions what they have without
 * one; share_all does the one or the other for everything there is. */
void share_offer(const Snapshot *snapshot, const Offer *offer, const ProvisionRules *rules,
                 uint64_t now_us);
void share_serverless(const Container *container, const ProvisionRules *rules, uint64_t now_us);
void share_all(const Snapshot *snapshot, const ProvisionRules *rules, uint64_t now_us);

/* Containers, with one reference on each; zeroed to begin with. */
typedef struct ContainerList {
    Container **items;
    size_t count;
    size_t capacity;
} ContainerList;

void container_list_add(ContainerList *list, const Container *container); /* makes a reference */
void container_list_clear(ContainerList *list);                           /* keeps its memory */

/* A group of changes being applied: the catalogue's thread only. */
typedef struct Work {
    PartitionHost *host;
    const ProvisionRules *rules;
    Snapshot *snapshot; /* private copy */
    StoreTxn *txn;
    CatalogCounters *counters;
    ContainerList *dropped; /* by the group */
    int64_t now_s;
    uint64_t now_us; /* monotonic */
    bool takes_room; /* not only drops; and if that must not be: */
    Error full;      /* the disk is full; STATUS_OK: it is not */
} Work;

/* Applies one change to the group, or leaves the group as it was and fills the change's error. */
void change_apply(Work *work, CatalogChange *change);

/* The three steps of a move (change_move.c). */
MUST_USE Status change_begin_move(Work *work, CatalogChange *change, Error *err);
MUST_USE Status change_end_move(Work *work, CatalogChange *change, Error *err);
MUST_USE Status change_undo_move(Work *work, CatalogChange *change, Error *err);

/* What the changes share. */
MUST_USE Status change_not_found(Error *err, const char *what);
MUST_USE Status change_take_spaces(Work *work, size_t count, StoreSpace *first, Error *err);
void change_put_garbage(Work *work, const PartitionRange *ranges, size_t count);

/* Before partitions of a container go: the most that they ever held belongs to the history of the
 * offer that they share. It is no new version of the offer. */
void change_note_storage(Work *work, const Container *container);
