/* catalog.c - see catalog.h: opening, reading, and the thread that groups changes.
 *
 * The thread does one of two things: it waits for messages, or it applies what has gathered. One
 * group is on its way to the disk at a time; what arrives meanwhile forms the next one. The store
 * tells of the commit by a message like any other, so nothing here is shared but the published
 * snapshot.
 *
 *     changes --> [ mailbox ] --> apply to a copy --> store commit
 *                                                          |
 *              answer <-- publish <-- [ mailbox ] <--------+
 */
#include "catalog/catalog_int.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/thread.h"
#include "catalog/offer_budgets_int.h"

enum { GROUP_CHANGES_MAX = 1024 }; /* keeps one group's commit short */

/* ---- opening ---- */

/* A new data folder starts counting at a random place: clients cache resource ids, and a folder
 * that was wiped must not look like the one before. */
Status catalog_begin_empty(Catalog *catalog, Error *err)
{
    Random random;
    random_init_secret(&random);
    catalog->counters = (CatalogCounters){
        .lsn = 1,
        .database_next = 1 + (uint32_t)random_below(&random, RID_DATABASE_MAX / 2),
        .container_next = 1 + (uint32_t)random_below(&random, RID_CONTAINER_MAX / 2),
        .key_next = 1 + (uint32_t)random_below(&random, RID_KEY_MAX / 2),
        .script_next = 1, /* their ids begin with their container's */
        .user_next = 1 + (uint32_t)random_below(&random, RID_USER_MAX / 2),
        .permission_next = 1, /* their ids begin with their user's */
        .saved_next = 1,
        .offer_next = 1 + (uint32_t)random_below(&random, RID_OFFER_MAX / 4),
        .space_next = SPACE_PARTITION_FIRST,
        .is_serverless = catalog->rules.is_serverless,
    };
    StoreTxn *txn = store_txn_begin(catalog->store);
    record_put_counters(txn, &catalog->counters);
    return store_txn_commit_wait(txn, err);
}

/* A small part of the numbers that are left, so that they last for many restores. */
static void skip(uint32_t *next, uint32_t max, uint32_t numbers)
{
    uint32_t room = *next < max ? (max - *next) / 16 : 0;
    *next += numbers < room ? numbers : room;
}

Status catalog_skip_numbers(Catalog *catalog, uint32_t numbers, Error *err)
{
    CatalogCounters *counters = &catalog->counters;
    if (counters->lsn == 0)
        return STATUS_OK; /* nothing was ever made; the first start begins at a random place */
    skip(&counters->database_next, RID_DATABASE_MAX, numbers);
    skip(&counters->container_next, RID_CONTAINER_MAX, numbers);
    skip(&counters->key_next, RID_KEY_MAX, numbers);
    skip(&counters->offer_next, RID_OFFER_MAX, numbers);
    skip(&counters->script_next, RID_SCRIPT_MAX, numbers);
    skip(&counters->user_next, RID_USER_MAX, numbers);
    /* A resource token names its permission by number and LSN. One of the lost server must not
     * open what a new permission names. */
    skip(&counters->permission_next, UINT32_MAX, numbers);
    counters->lsn += numbers;
    StoreTxn *txn = store_txn_begin(catalog->store);
    record_put_counters(txn, counters);
    store_txn_makes_room(txn); /* takes next to none, and the folder is not complete without it */
    return store_txn_commit_wait(txn, err);
}

static Status load(Catalog *catalog, bool is_read_only, Error *err)
{
    bool is_leader = atomic_load(&catalog->is_leader);
    AUTO(catalog_load_done) CatalogLoad found = {0};
    TRY(catalog_load(catalog->host,
                     is_read_only ? LOAD_TO_READ_ONLY
                     : is_leader  ? LOAD_TO_LEAD
                                  : LOAD_TO_FOLLOW,
                     NULL, &found, err));
    catalog->published = TAKE(found.snapshot);
    catalog->counters = found.counters;
    catalog->garbage = found.garbage;
    found.garbage = (GarbageList){0};
    return found.found || is_read_only || !is_leader ? STATUS_OK
                                                     : catalog_begin_empty(catalog, err);
}

/* A follower may not have seen any record yet. */
Status catalog_check_account(const Catalog *catalog, Error *err)
{
    if (catalog->counters.is_serverless == catalog->rules.is_serverless ||
        catalog->counters.lsn == 0)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "the data folder holds a %s account, and cannot be served as a %s one: start "
                     "%s --serverless, or with another folder",
                     catalog->counters.is_serverless ? "serverless" : "provisioned",
                     catalog->counters.is_serverless ? "provisioned" : "serverless",
                     catalog->counters.is_serverless ? "with" : "without");
}

/* ---- the thread ---- */

void catalog_publish(Catalog *catalog, Snapshot *snapshot)
{
    (void)pthread_mutex_lock(&catalog->lock);
    Snapshot *old = catalog->published;
    catalog->published = snapshot;
    atomic_fetch_add_explicit(&catalog->version, 1, memory_order_release);
    if (catalog->listener != NULL)
        catalog->listener(catalog->listener_ctx);
    (void)pthread_mutex_unlock(&catalog->lock);
    snapshot_unref(old);
}

void catalog_post_garbage(Catalog *catalog)
{
    bool is_leader = atomic_load(&catalog->is_leader);
    for (size_t i = 0; is_leader && i < catalog->garbage.count; i++)
        cleaner_post(&catalog->cleaner, catalog->garbage.items[i]);
    catalog->garbage.count = 0;
}

static void on_commit(void *ctx, const Error *err)
{
    Catalog *catalog = ctx;
    catalog->commit_failed = err != NULL;
    if (err != NULL)
        catalog->commit_error = *err;
    mailbox_post(&catalog->mailbox, &catalog->committed);
}

void catalog_fail_change(CatalogChange *change, const Error *err)
{
    ContainerList revived = change->revived; /* the sender lets go of their partitions */
    change->revived = (ContainerList){0};
    catalog_change_release(change);
    change->revived = revived;
    change->error = *err;
    change->status = err->status;
}

void catalog_answer(QueueNode *group)
{
    while (group != NULL) {
        CatalogChange *change = CONTAINER_OF(group, CatalogChange, node);
        group = group->next;
        change->done(change);
    }
}

/* Takes at most GROUP_CHANGES_MAX of the changes that wait. */
static QueueNode *take_group(Catalog *catalog)
{
    QueueNode *first = catalog->pending_first;
    ASSERT(first != NULL);
    QueueNode *last = first;
    for (size_t count = 1; count < GROUP_CHANGES_MAX && last->next != NULL; count++)
        last = last->next;
    catalog->pending_first = last->next;
    if (catalog->pending_first == NULL)
        catalog->pending_last = NULL;
    last->next = NULL;
    return first;
}

/* Limited, because a record with a later time would be refused by the next start. */
static int64_t record_now_s(const Catalog *catalog)
{
    int64_t now_s = clock_wall_s(catalog->clock);
    return now_s < RECORD_TIME_S_MAX ? now_s : RECORD_TIME_S_MAX;
}

static void end_group(Catalog *catalog);

/* This node has ceased to lead while the group was made, so that others may have changed what it
 * rests on. */
static void refuse_group(Catalog *catalog, QueueNode *group, Work *work)
{
    store_txn_abort(work->txn);
    catalog->group = group;
    catalog->group_snapshot = work->snapshot;
    catalog->commit_failed = true;
    catalog->commit_error.status = error_set(&catalog->commit_error, STATUS_NOT_OWNER, SUB_NONE,
                                             "The catalogue is led by another node.");
    end_group(catalog);
}

static void begin_group(Catalog *catalog)
{
    ASSERT(catalog->group == NULL);
    ASSERT(catalog->dropped.count == 0 && catalog->kept.count == 0);
    ASSERT(catalog->freed.count == 0);
    QueueNode *group = take_group(catalog);
    if (UNLIKELY(!atomic_load(&catalog->is_leader))) {
        placement_refuse(catalog, group);
        return;
    }
    Work work = {
        .host = catalog->host,
        .rules = &catalog->rules,
        .snapshot = snapshot_copy(catalog->published), /* which only this thread replaces */
        .txn = store_txn_begin(catalog->store),
        .counters = &catalog->counters,
        .dropped = &catalog->dropped,
        .kept = &catalog->kept,
        .freed = &catalog->freed,
        .cleaner = &catalog->cleaner,
        .placement = catalog->placement,
        .now_s = record_now_s(catalog),
        .now_us = clock_monotonic_us(catalog->clock),
    };
    work.full.status = store_room(catalog->store, &work.full);
    size_t applied = 0;
    for (QueueNode *node = group; node != NULL; node = node->next) {
        CatalogChange *change = CONTAINER_OF(node, CatalogChange, node);
        change_apply(&work, change);
        applied += change->status == STATUS_OK ? 1 : 0;
    }
    /* Changes may have taken long. This thread alone makes the node lead again, after the group. */
    if (UNLIKELY(!atomic_load(&catalog->is_leader))) {
        refuse_group(catalog, group, &work);
        return;
    }
    if (applied == 0) {
        /* All were refused because of what is durable already. */
        store_txn_abort(work.txn);
        snapshot_unref(work.snapshot);
        container_list_clear(&catalog->dropped);
        container_list_clear(&catalog->kept);
        catalog->freed.count = 0;
        if (catalog->unpublished > 0)
            placement_answer(catalog,
                             group); /* they may rest on what is not published everywhere */
        else
            catalog_answer(group);
        return;
    }
    metrics_add(catalog->metrics, METRIC_CATALOG_CHANGES, (int64_t)applied);
    metrics_add(catalog->metrics, METRIC_CATALOG_COMMITS, 1);
    record_put_counters(work.txn, &catalog->counters);
    if (!work.takes_room)
        store_txn_makes_room(work.txn);
    catalog->group = group;
    catalog->group_snapshot = work.snapshot;
    store_txn_commit(work.txn, (StoreCompletion){.done = on_commit, .ctx = catalog});
}

static void set_schema(const PartitionHandle *handle, const Container *container)
{
    if (handle_is_local(handle))
        partition_set_schema(handle_local(handle), container->schema);
}

void catalog_follow_definition(const Container *container)
{
    for (size_t i = 0; i < container->range_count; i++)
        set_schema(container_handle_at(container, i), container);
    for (size_t i = 0; i < container->pending_count; i++)
        set_schema(container_handle(container, &container->pending[i]), container);
}

/* Uses the newest offer: another change of the group may have replaced or dropped it or its owner.
 */
void catalog_follow_offer(Catalog *catalog, uint32_t number, uint64_t now_us)
{
    const Offer *offer = snapshot_offer(catalog->published, number);
    if (offer != NULL)
        offer_budgets_set(catalog->published, offer, &catalog->rules, now_us);
}

static void move_takes_effect(Catalog *catalog, const CatalogChange *change, uint64_t now_us)
{
    const Container *before = change->before;
    if (change->op == CATALOG_UNDO_MOVE) {
        cleaner_drop(&catalog->cleaner, before, before->pending, before->pending_count);
        return;
    }
    /* The sources are left alone, because holders of an older map read them. The driver of the move
     * retires them (move_end), and they are emptied after their last reader (I12). */
    if (catalog->rules.is_serverless)
        offer_budgets_set_serverless(change->result_container, &catalog->rules, now_us);
    else
        catalog_follow_offer(catalog, before->offer, now_us);
}

/* A restored database has other definitions and offers, and perhaps partitions that were opened. */
static void restore_takes_effect(Catalog *catalog, uint32_t database, uint64_t now_us)
{
    const Snapshot *snapshot = catalog->published;
    const Database *owner = snapshot_database(snapshot, database);
    if (owner == NULL)
        return; /* another change of the group has deleted it */
    catalog_follow_offer(catalog, owner->offer, now_us);
    const Container *container;
    for (uint32_t from = 0; (container = snapshot_next_container(snapshot, database, from)) != NULL;
         from = container->info.number + 1) {
        catalog_follow_definition(container);
        catalog_follow_offer(catalog, container->offer, now_us);
        if (catalog->rules.is_serverless)
            offer_budgets_set_serverless(container, &catalog->rules, now_us);
    }
}

/* Tells the rest of the server about a durable group: partitions get a replaced definition, budgets
 * a replaced offer or a changed map (I9), and partitions of dropped containers end and are emptied.
 */
static void take_effect(Catalog *catalog, QueueNode *group)
{
    uint64_t now_us = clock_monotonic_us(catalog->clock);
    for (QueueNode *node = group; node != NULL; node = node->next) {
        const CatalogChange *change = CONTAINER_OF(node, CatalogChange, node);
        if (change->result_container != NULL)
            catalog_follow_definition(change->result_container);
        if (change->op == CATALOG_REPLACE_OFFER)
            catalog_follow_offer(catalog, change->offer, now_us);
        if (change->before != NULL)
            move_takes_effect(catalog, change, now_us);
        if (change->op == CATALOG_RESTORE_STATE && change->status == STATUS_OK)
            restore_takes_effect(catalog, change->database, now_us);
    }
    for (size_t i = 0; i < catalog->kept.count; i++) {
        const Container *kept = catalog->kept.items[i];
        cleaner_keep(&catalog->cleaner, kept);
        cleaner_drop(&catalog->cleaner, kept, kept->pending, kept->pending_count);
    }
    for (size_t i = 0; i < catalog->freed.count; i++)
        cleaner_post(&catalog->cleaner, catalog->freed.items[i]);
    for (size_t i = 0; i < catalog->dropped.count; i++) {
        const Container *dropped = catalog->dropped.items[i];
        cleaner_drop(&catalog->cleaner, dropped, dropped->ranges, dropped->range_count);
        cleaner_drop(&catalog->cleaner, dropped, dropped->pending, dropped->pending_count);
    }
    reminder_notice(&catalog->reminder);
    move_orders_notice(&catalog->moves.orders);
}

/* Another node leads, or nobody knows whether it does: what is durable may not be what is published
 * here. It is read again before this node leads again (catalog_lead). */
static void stop_leading_if_unsure(Catalog *catalog)
{
    Status status = catalog->commit_error.status;
    if (catalog->placement != NULL && (status == STATUS_NOT_OWNER || status == STATUS_TIMEOUT))
        catalog_follow(catalog);
}

/* The group is durable, or lost as a whole. A lost group fails every change in it, refused ones
 * too, because a refusal may rest on a change that is lost (I2). */
static void end_group(Catalog *catalog)
{
    QueueNode *group = TAKE(catalog->group);
    ASSERT(group != NULL);
    if (catalog->commit_failed) {
        snapshot_unref(TAKE(catalog->group_snapshot));
        LOG_ERROR(catalog->log, "catalog.commit_failed", "reason=%s",
                  catalog->commit_error.message);
        for (QueueNode *node = group; node != NULL; node = node->next)
            catalog_fail_change(CONTAINER_OF(node, CatalogChange, node), &catalog->commit_error);
        stop_leading_if_unsure(catalog);
    } else {
        catalog_publish(catalog, TAKE(catalog->group_snapshot)); /* after the commit (I1) */
        take_effect(catalog, group);
    }
    container_list_clear(&catalog->dropped);
    container_list_clear(&catalog->kept);
    catalog->freed.count = 0;
    if (catalog->placement == NULL || catalog->commit_failed)
        catalog_answer(group);
    else
        placement_answer(catalog, group);
}

static void *run(void *arg)
{
    Catalog *catalog = arg;
    bool stop = false;
    while (!stop || catalog->group != NULL || catalog->pending_first != NULL ||
           catalog->unpublished > 0 || catalog->stopping != NULL) {
        QueueNode *node = mailbox_wait(&catalog->mailbox);
        while (node != NULL) {
            QueueNode *next = node->next;
            if (node == &catalog->stop) {
                stop = true;
            } else if (node == &catalog->committed) {
                end_group(catalog);
            } else if (node == &catalog->ordered) {
                placement_take_orders(catalog);
            } else {
                node->next = NULL;
                if (catalog->pending_last == NULL)
                    catalog->pending_first = node;
                else
                    catalog->pending_last->next = node;
                catalog->pending_last = node;
            }
            node = next;
        }
        if (catalog->group == NULL)
            placement_run_orders(catalog);
        while (catalog->group == NULL && catalog->pending_first != NULL)
            begin_group(catalog);
    }
    return NULL;
}

/* ---- the public functions ---- */

/* Whether this process leads. */
static bool open_placement(Catalog *catalog)
{
    const CatalogPlacement *placement = catalog->placement;
    bool is_leader = placement == NULL || placement->is_local(placement->ctx, SPACE_CATALOG);
    atomic_init(&catalog->is_leader, is_leader);
    if (placement != NULL) {
        catalog->host->serves = placement->is_local;
        catalog->host->doubts_time = placement->doubts_time;
        catalog->host->placement_ctx = placement->ctx;
    }
    return is_leader;
}

Status catalog_open(const CatalogOptions *options, Catalog **out, Error *err)
{
    AUTO(catalog_close) Catalog *catalog = MEM_NEW(Catalog);
    catalog->host = options->host;
    catalog->store = options->host->store;
    catalog->clock = options->clock;
    catalog->log = options->log;
    catalog->metrics = options->metrics;
    catalog->placement = options->placement;
    bool is_leader = open_placement(catalog);
    catalog->rules = PROVISION_RULES_DEFAULT;
    catalog->rules.is_enforced = false;
    if (options->throughput != NULL)
        catalog->rules = *options->throughput;
    atomic_init(&catalog->version, 1);
    int failed = pthread_mutex_init(&catalog->lock, NULL);
    ASSERT(failed == 0);
    mailbox_init(&catalog->mailbox);
    queue_init(&catalog->orders);
    TRY(workers_start(catalog->host->writers, err)); /* partitions count on it */
    TRY(cleaner_open(&catalog->cleaner, catalog->store, options->placement, options->log, err));
    cleaner_pause(&catalog->cleaner, !is_leader);
    TRY(load(catalog, options->is_read_only, err));
    if (options->throughput != NULL)
        TRY(catalog_check_account(catalog, err));
    uint64_t now_us = clock_monotonic_us(catalog->clock);
    offer_budgets_set_all(catalog->published, &catalog->rules, now_us);
    placement_begin_budgets(catalog, now_us);
    if (!options->is_read_only)
        catalog_post_garbage(catalog);
    TRY(reminder_open(&catalog->reminder, catalog, err));
    TRY(thread_start(&catalog->thread, "orrery-catalog", run, catalog, err));
    catalog->is_running = true;
    saved_states_open(&catalog->saved, catalog, catalog->counters.saved_next,
                      &catalog->moves.orders, options->log);
    if (!options->is_read_only && is_leader)
        TRY(saved_states_recover(&catalog->saved, err));
    if (options->moves != NULL)
        TRY(move_thread_open(&catalog->moves,
                             &(MoveThreadOptions){
                                 .catalog = catalog,
                                 .cleaner = &catalog->cleaner,
                                 .placement = options->placement,
                                 .rules = *options->moves,
                                 .provision = catalog->rules,
                                 .clock = options->clock,
                                 .log = options->log,
                             },
                             err));
    *out = TAKE(catalog);
    return STATUS_OK;
}

void catalog_close(Catalog *catalog)
{
    if (catalog == NULL)
        return;
    move_thread_close(&catalog->moves); /* it waits for answers from the thread */
    saved_states_close(&catalog->saved);
    if (catalog->is_running) {
        mailbox_post(&catalog->mailbox, &catalog->stop);
        (void)pthread_join(catalog->thread, NULL);
    }
    reminder_close(&catalog->reminder);
    cleaner_close(&catalog->cleaner);
    mailbox_done(&catalog->mailbox);
    snapshot_unref(catalog->published);
    (void)pthread_mutex_destroy(&catalog->lock);
    mem_free(catalog->garbage.items);
    mem_free(catalog->dropped.items);
    mem_free(catalog->kept.items);
    mem_free(catalog->freed.items);
    mem_free(catalog);
}

void catalog_submit(Catalog *catalog, CatalogChange *change)
{
    change->status = STATUS_OK;
    mailbox_post(&catalog->mailbox, &change->node);
}

typedef struct WaitedChange {
    CatalogChange change;
    Latch done;
} WaitedChange;

static void on_waited(CatalogChange *change)
{
    latch_post(&CONTAINER_OF(change, WaitedChange, change)->done);
}

Status catalog_change(Catalog *catalog, CatalogChange *change, Error *err)
{
    WaitedChange waited = {.change = *change};
    waited.change.done = on_waited;
    latch_init(&waited.done);
    catalog_submit(catalog, &waited.change);
    latch_wait(&waited.done);
    latch_done(&waited.done);
    *change = waited.change;
    if (change->status != STATUS_OK)
        *err = change->error;
    return change->status;
}

SavedStates *catalog_saved_states(Catalog *catalog)
{
    return &catalog->saved;
}

Status catalog_order_move(Catalog *catalog, const MoveOrder *order, uint64_t *event, Error *err)
{
    TRY(placement_check_leads(catalog, err));
    return move_orders_add(&catalog->moves.orders, order, event, err);
}

size_t catalog_moves(Catalog *catalog, MoveEvent *out, size_t max)
{
    return move_orders_events(&catalog->moves.orders, out, max);
}

MoveCounts catalog_move_counts(Catalog *catalog)
{
    return move_orders_counts(&catalog->moves.orders);
}

bool catalog_is_moving(Catalog *catalog, const Container *container)
{
    return move_orders_of(&catalog->moves.orders, container).is_open;
}

bool catalog_is_scaling(Catalog *catalog, const Snapshot *snapshot, const Container *container)
{
    return move_thread_is_scaling(&catalog->moves, snapshot, container);
}

size_t catalog_plan_merges(const Catalog *catalog, const Snapshot *snapshot,
                           const Container *container, Arena *arena, MoveOrder **out)
{
    return move_policy_plan_merges(&catalog->moves.policy, snapshot, container,
                                   clock_monotonic_us(catalog->clock), arena, out);
}

void catalog_set_listener(Catalog *catalog, void (*published)(void *ctx), void *ctx)
{
    (void)pthread_mutex_lock(&catalog->lock);
    catalog->listener = published;
    catalog->listener_ctx = ctx;
    (void)pthread_mutex_unlock(&catalog->lock);
}

uint64_t catalog_logical_bytes_max(const Catalog *catalog, const PartitionSchema *schema)
{
    return partition_logical_bytes_max(catalog->host, schema);
}

void catalog_reader_init(CatalogReader *reader, Catalog *catalog)
{
    *reader = (CatalogReader){.catalog = catalog};
}

void catalog_reader_done(CatalogReader *reader)
{
    snapshot_unref(TAKE(reader->snapshot));
}

Snapshot *catalog_read(CatalogReader *reader)
{
    Catalog *catalog = reader->catalog;
    uint64_t version = atomic_load_explicit(&catalog->version, memory_order_acquire);
    if (LIKELY(version == reader->version))
        return reader->snapshot;
    (void)pthread_mutex_lock(&catalog->lock);
    Snapshot *newest = snapshot_ref(catalog->published);
    reader->version = atomic_load_explicit(&catalog->version, memory_order_relaxed);
    (void)pthread_mutex_unlock(&catalog->lock);
    snapshot_unref(reader->snapshot);
    reader->snapshot = newest;
    return newest;
}
