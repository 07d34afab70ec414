/* catalog_int.h - the catalogue's own state, for its thread (catalog.c) and for what a placement
 * tells it (placement.c). */
#pragma once

#include "base/latch.h"
#include "base/mailbox.h"
#include "catalog/catalog.h"
#include "catalog/catalog_load_int.h"
#include "catalog/change_int.h"
#include "catalog/cleaner_int.h"
#include "catalog/maintenance_reminder_int.h"
#include "catalog/move_thread_int.h"
#include "catalog/placement.h"
#include "catalog/saved_states_int.h"

#include <pthread.h>

typedef struct Stopping Stopping; /* placement.c */

/* A message that is neither a change nor a placement's (Orders) is known by its address: there is
 * one of each kind. */
struct Catalog {
    PartitionHost *host; /* immutable after open */
    ProvisionRules rules;
    Store *store;
    const Clock *clock;
    const Log *log;
    MetricsShard *metrics;
    const CatalogPlacement *placement; /* NULL if this process is alone */

    _Atomic bool is_leader; /* changes the catalogue; true if it is alone */
    _Atomic uint64_t loads; /* how often the records were read again, and published */

    pthread_mutex_t lock; /* guards from 'published' to 'listener_ctx' */
    Snapshot *published;
    void (*listener)(void *ctx);
    void *listener_ctx;
    _Atomic uint64_t version; /* of 'published'; atomic, so that readers need no lock */

    Mailbox mailbox;
    pthread_t thread;
    bool is_running; /* opening thread only */
    Cleaner cleaner;
    MaintenanceReminder reminder;
    MoveThread moves;
    SavedStates saved;

    QueueNode stop;      /* message from the opening thread */
    QueueNode committed; /* message from the commit thread */
    QueueNode ordered;   /* message from the thread that set 'is_ordered' */
    _Atomic bool is_ordered;
    Queue orders;       /* CatalogOrders */
    Error commit_error; /* written before 'committed' is posted */
    bool commit_failed;

    CatalogCounters counters; /* catalogue's thread only, from here on */
    QueueNode *pending_first; /* changes that wait for the next group */
    QueueNode *pending_last;
    QueueNode *orders_first; /* CatalogOrders that wait for the group's end */
    QueueNode *orders_last;
    Stopping *stopping;   /* partitions that have not ended yet */
    uint32_t unpublished; /* groups that other nodes have not all published */
    QueueNode *group;     /* changes on their way to the disk */
    Snapshot *group_snapshot;
    ContainerList dropped; /* by that group */
    ContainerList kept;    /* likewise, for saved states */
    GarbageList freed;     /* likewise: spaces that no saved state has any more */
    GarbageList garbage;   /* found at the start, or when this node began to lead */
};

/* ---- catalog.c: the catalogue's thread, when no group is under way ---- */

/* Takes 'snapshot' over, and shows it to readers. */
void catalog_publish(Catalog *catalog, Snapshot *snapshot);
MUST_USE Status catalog_begin_empty(Catalog *catalog, Error *err);
MUST_USE Status catalog_check_account(const Catalog *catalog, Error *err);
void catalog_post_garbage(Catalog *catalog); /* what was found, if this node leads */
void catalog_follow_definition(const Container *container);
void catalog_follow_offer(Catalog *catalog, uint32_t number, uint64_t now_us);
void catalog_answer(QueueNode *group);
/* Releases what it has come to: it is answered as failed. */
void catalog_fail_change(CatalogChange *change, const Error *err);

/* ---- placement.c ---- */

/* The catalogue's thread: takes what was posted, and answers groups that are published everywhere.
 * The rest waits for placement_run_orders, which may be called when no group is under way. */
void placement_take_orders(Catalog *catalog);
void placement_run_orders(Catalog *catalog);

/* When the catalogue was opened, before anything is served: in a cluster another process may have
 * served, until just now, what this one serves at its start. */
void placement_begin_budgets(const Catalog *catalog, uint64_t now_us);

/* Answers the group, which has been published here, when all nodes have published it. */
void placement_answer(Catalog *catalog, QueueNode *group);

/* How often the records were read again: see catalog_refresh. Any thread. */
uint64_t placement_loads(Catalog *catalog);

/* STATUS_NOT_OWNER if another node leads. Any thread. */
MUST_USE Status placement_check_leads(Catalog *catalog, Error *err);

/* Fails the changes of a follower. */
void placement_refuse(Catalog *catalog, QueueNode *group);
