/* placement.c - see placement.h.
 *
 * What other threads ask for is an order, a message in a queue of its own. The catalogue's thread
 * carries orders out between two groups of changes: the snapshot of a group on its way to the disk
 * is a copy of the published one, which must not change meanwhile.
 *
 *     serve     open the partition --> publish a container that has it
 *     stop      publish a container without it --> partition_stop --> answer when it has ended
 *     refresh   load the records, keeping what is the same --> publish --> end what is gone
 *     lead      the same, and undo what a start undoes
 *     clean     have the cleaner empty what was found then
 *     stopped   the partition has ended: those that wait for that go on
 *     answer    a group was published by all nodes: its changes are answered, at once
 */
#include "catalog/placement.h"

#include "base/mem.h"
#include "catalog/catalog_int.h"
#include "catalog/offer_budgets_int.h"
#include "catalog/partition_handle_int.h"

#include <time.h>

typedef enum OrderKind {
    ORDER_SERVE,
    ORDER_STOP,
    ORDER_REFRESH,
    ORDER_LEAD,
    ORDER_CLEAN,
    ORDER_STOPPED, /* these two are posted by the catalogue's own callbacks */
    ORDER_ANSWER,
} OrderKind;

typedef struct CatalogOrder {
    QueueNode node;
    OrderKind kind;
    StoreSpace space; /* serve, stop */
    Status status;
    Error error;
    Latch done;          /* not of the last two */
    uint32_t saved_next; /* lead: what it has found */
    Catalog *catalog;    /* stopped, answer */
    QueueNode *group;    /* answer: the changes */
    bool is_everywhere;  /* answer: all nodes have published them */
} CatalogOrder;

static void post(Catalog *catalog, CatalogOrder *order)
{
    (void)queue_push(&catalog->orders, &order->node);
    if (!atomic_exchange(&catalog->is_ordered, true))
        mailbox_post(&catalog->mailbox, &catalog->ordered);
}

static Status run_order(Catalog *catalog, CatalogOrder *order, Error *err)
{
    latch_init(&order->done);
    post(catalog, order);
    latch_wait(&order->done);
    latch_done(&order->done);
    if (order->status != STATUS_OK)
        *err = order->error;
    return order->status;
}

/* ---- serving ---- */

/* The range with this space, in the map or pending; NULL if there is none. */
static PartitionHandle *find_handle(const Snapshot *snapshot, StoreSpace space,
                                    const Container **container)
{
    SnapshotWalk walk = {0};
    while (snapshot_next(snapshot, &walk)) {
        *container = walk.container;
        for (size_t i = 0; i < walk.container->range_count; i++) {
            if (walk.container->ranges[i].space == space)
                return &walk.container->handles[i];
        }
        for (size_t i = 0; i < walk.container->pending_count; i++) {
            if (walk.container->pending[i].space == space)
                return &walk.container->pending_handles[i];
        }
    }
    return NULL;
}

/* Publishes the container with this partition, or without one if it is NULL. */
static Status publish_partition(Catalog *catalog, const Container *old, StoreSpace space,
                                Partition *partition, Error *err)
{
    Container *container = NULL;
    TRY(container_with_partition(old, space, partition, &container, err));
    Snapshot *snapshot = snapshot_copy(catalog->published);
    bool put = snapshot_put_container(snapshot, container);
    ASSERT(put); /* the name is the old one's */
    catalog_publish(catalog, snapshot);
    return STATUS_OK;
}

/* Whoever asked may have given the space away meanwhile. The placement knows that before the
 * partition is asked to stop; so if it says here that the space is local, the stop is yet to come,
 * and finds the partition. Nothing else would ever end one that is opened after its stop.
 *
 * Its last owner may have given away what the budget earns in the second that has begun, and nobody
 * has charged that here. */
static Status serve(Catalog *catalog, StoreSpace space, Error *err)
{
    const Container *container = NULL;
    const PartitionHandle *handle = find_handle(catalog->published, space, &container);
    const CatalogPlacement *placement = catalog->placement;
    bool is_local = placement == NULL || placement->is_local(placement->ctx, space);
    if (handle == NULL || handle_is_local(handle) || !is_local)
        return STATUS_OK;
    AUTO(partition_unref) Partition *partition = NULL;
    TRY(partition_open(catalog->host, space, handle->range->id, container->schema, &partition,
                       err));
    budget_use_up(handle->budget, clock_monotonic_us(catalog->clock));
    TRY(publish_partition(catalog, container, space, partition, err));
    reminder_notice(&catalog->reminder);
    move_orders_notice(&catalog->moves.orders);
    return STATUS_OK;
}

void placement_begin_budgets(const Catalog *catalog, uint64_t now_us)
{
    SnapshotWalk walk = {0};
    while (catalog->placement != NULL && snapshot_next(catalog->published, &walk)) {
        for (size_t i = 0; i < walk.container->range_count; i++) {
            if (handle_is_local(&walk.container->handles[i]))
                budget_use_up(walk.container->handles[i].budget, now_us);
        }
    }
}

/* A partition that is on its way out. Nobody may open its space before it has ended. */
struct Stopping {
    CatalogOrder ended; /* posted when it has */
    PartitionStop stop;
    Stopping *next;
    QueueNode *waiting; /* orders for the space */
};

/* On a writer's thread or the commit thread. */
static void on_stopped(PartitionStop *stop)
{
    Stopping *stopping = CONTAINER_OF(stop, Stopping, stop);
    post(stopping->ended.catalog, &stopping->ended);
}

static Stopping *find_stopping(const Catalog *catalog, StoreSpace space)
{
    Stopping *found = catalog->stopping;
    while (found != NULL && found->ended.space != space)
        found = found->next;
    return found;
}

/* NULL if there is nothing to wait for. */
static Stopping *begin_stop(Catalog *catalog, CatalogOrder *order)
{
    const Container *container = NULL;
    const PartitionHandle *handle = find_handle(catalog->published, order->space, &container);
    if (handle == NULL || !handle_is_local(handle))
        return NULL;
    AUTO(partition_unref) Partition *partition = partition_ref(handle->partition);
    /* Until its next owner says what it holds, an offer goes by this. */
    reported_usage_note(handle->reported, &(SpaceUsage){.held = partition_usage(partition)}, 0);
    order->status = publish_partition(catalog, container, order->space, NULL, &order->error);
    if (order->status != STATUS_OK)
        return NULL;
    Stopping *stopping = MEM_NEW(Stopping);
    stopping->ended =
        (CatalogOrder){.kind = ORDER_STOPPED, .space = order->space, .catalog = catalog};
    stopping->stop.done = on_stopped;
    stopping->next = catalog->stopping;
    catalog->stopping = stopping;
    cleaner_begin_drop(&catalog->cleaner); /* a restore does not open it either */
    partition_stop(partition, &stopping->stop);
    return stopping;
}

static void wait_for_stop(Stopping *stopping, CatalogOrder *order)
{
    order->node.next = stopping->waiting;
    stopping->waiting = &order->node;
}

/* ---- following ---- */

/* A partition whose range was taken over by others while another node led. */
typedef struct Retirement {
    PartitionStop stop;
    Cleaner *cleaner;
} Retirement;

/* On a writer's thread or the commit thread. */
static void on_retired(PartitionStop *stop)
{
    Retirement *retirement = CONTAINER_OF(stop, Retirement, stop);
    cleaner_end_drop(retirement->cleaner);
    mem_free(retirement);
}

static bool has_space(const Container *container, StoreSpace space)
{
    for (size_t i = 0; container != NULL && i < container->range_count; i++) {
        if (container->ranges[i].space == space)
            return true;
    }
    for (size_t i = 0; container != NULL && i < container->pending_count; i++) {
        if (container->pending[i].space == space)
            return true;
    }
    return false;
}

static void retire_lost(Catalog *catalog, const PartitionHandle *handles, size_t count,
                        const Container *now)
{
    for (size_t i = 0; i < count; i++) {
        if (!handle_is_local(&handles[i]) || has_space(now, handles[i].range->space))
            continue;
        Retirement *retirement = MEM_NEW(Retirement);
        retirement->stop = (PartitionStop){.is_gone = true, .done = on_retired};
        retirement->cleaner = &catalog->cleaner;
        cleaner_begin_drop(&catalog->cleaner);
        partition_stop(handles[i].partition, &retirement->stop);
    }
}

/* Ends the partitions of containers and ranges that 'old' had and that are gone. Their spaces are
 * the leader's to empty, and this node's to drop (catalog_find_named). */
static void end_lost(Catalog *catalog, const Snapshot *old)
{
    SnapshotWalk walk = {0};
    while (snapshot_next(old, &walk)) {
        const Container *before = walk.container;
        const Container *now =
            snapshot_container(catalog->published, before->database, before->info.number);
        if (now == before)
            continue;
        if (now == NULL) {
            cleaner_keep(&catalog->cleaner, before);
            retire_lost(catalog, before->pending_handles, before->pending_count, NULL);
            continue;
        }
        retire_lost(catalog, before->handles, before->range_count, now);
        retire_lost(catalog, before->pending_handles, before->pending_count, now);
    }
}

/* As the commit of the changes would have taken effect here. */
static void take_effect(Catalog *catalog, const CatalogLoad *load, const Snapshot *old)
{
    uint64_t now_us = clock_monotonic_us(catalog->clock);
    for (size_t i = 0; i < load->changed.containers.count; i++) {
        const Container *container = load->changed.containers.items[i];
        catalog_follow_definition(container);
        if (catalog->rules.is_serverless)
            offer_budgets_set_serverless(container, &catalog->rules, now_us);
    }
    for (size_t i = 0; i < load->changed.offer_count; i++)
        catalog_follow_offer(catalog, load->changed.offers[i], now_us);
    end_lost(catalog, old);
    reminder_notice(&catalog->reminder);
    move_orders_notice(&catalog->moves.orders);
}

/* Replaces the published snapshot by what the records say. */
static Status load_again(Catalog *catalog, LoadMode mode, Error *err)
{
    AUTO(catalog_load_done) CatalogLoad load = {0};
    TRY(catalog_load(catalog->host, mode, catalog->published, &load, err));
    catalog->counters = load.counters;
    catalog->garbage.count = 0;
    for (size_t i = 0; i < load.garbage.count; i++)
        garbage_list_add(&catalog->garbage, load.garbage.items[i]);
    if (mode == LOAD_TO_LEAD && !load.found)
        TRY(catalog_begin_empty(catalog, err));
    TRY(catalog_check_account(catalog, err));
    AUTO(snapshot_unref) Snapshot *old = snapshot_ref(catalog->published);
    catalog_publish(catalog, TAKE(load.snapshot));
    take_effect(catalog, &load, old);
    atomic_fetch_add(&catalog->loads, 1);
    return STATUS_OK;
}

static Status refresh(Catalog *catalog, Error *err)
{
    if (catalog_is_leader(catalog))
        return STATUS_OK;
    return load_again(catalog, LOAD_TO_FOLLOW, err);
}

static Status lead(Catalog *catalog, uint32_t *saved_next, Error *err)
{
    *saved_next = catalog->counters.saved_next;
    if (catalog_is_leader(catalog))
        return STATUS_OK;
    TRY(load_again(catalog, LOAD_TO_LEAD, err));
    *saved_next = catalog->counters.saved_next;
    atomic_store(&catalog->is_leader, true);
    cleaner_pause(&catalog->cleaner, false);
    LOG_INFO(catalog->log, "catalog.leads", "lsn=%llu", (unsigned long long)catalog->counters.lsn);
    return STATUS_OK;
}

/* ---- the catalogue's thread ---- */

/* A client that was told of success could meet a node that does not know of the change; so it could
 * after a refusal, which may rest on such a change. The end of a move is answered to nobody, and
 * has happened. */
static void fail_unpublished(QueueNode *group)
{
    Error err;
    Status status = error_set(&err, STATUS_TIMEOUT, SUB_NONE,
                              "This node ends before it is known that all nodes have the change.");
    ASSERT(status == STATUS_TIMEOUT);
    for (QueueNode *node = group; node != NULL; node = node->next) {
        CatalogChange *change = CONTAINER_OF(node, CatalogChange, node);
        if (change->op != CATALOG_END_MOVE)
            catalog_fail_change(change, &err);
    }
}

static void end_answer(CatalogOrder *order)
{
    ASSERT(order->catalog->unpublished > 0);
    order->catalog->unpublished--;
    if (!order->is_everywhere)
        fail_unpublished(order->group);
    catalog_answer(order->group);
    mem_free(order);
}

static void add_order(Catalog *catalog, CatalogOrder *order)
{
    order->node.next = NULL;
    if (catalog->orders_last == NULL)
        catalog->orders_first = &order->node;
    else
        catalog->orders_last->next = &order->node;
    catalog->orders_last = &order->node;
}

/* Those that asked for the stop are answered; others have their turn. */
static void end_stopping(CatalogOrder *ended)
{
    Stopping *stopping = CONTAINER_OF(ended, Stopping, ended);
    Catalog *catalog = ended->catalog;
    Stopping **link = &catalog->stopping;
    while (*link != stopping)
        link = &(*link)->next;
    *link = stopping->next;
    cleaner_end_drop(&catalog->cleaner);
    for (QueueNode *node = stopping->waiting; node != NULL;) {
        CatalogOrder *order = CONTAINER_OF(node, CatalogOrder, node);
        node = node->next;
        if (order->kind == ORDER_STOP)
            latch_post(&order->done);
        else
            add_order(catalog, order);
    }
    mem_free(stopping);
}

void placement_take_orders(Catalog *catalog)
{
    /* Before the queue is looked at: a thread that posts afterwards sends another message. */
    (void)atomic_exchange(&catalog->is_ordered, false);
    for (QueueNode *node = queue_take(&catalog->orders); node != NULL;) {
        CatalogOrder *order = CONTAINER_OF(node, CatalogOrder, node);
        node = node->next;
        if (order->kind == ORDER_ANSWER)
            end_answer(order);
        else if (order->kind == ORDER_STOPPED)
            end_stopping(order);
        else
            add_order(catalog, order);
    }
}

static void run_one(Catalog *catalog, CatalogOrder *order)
{
    bool has_space = order->kind == ORDER_SERVE || order->kind == ORDER_STOP;
    Stopping *stopping = has_space ? find_stopping(catalog, order->space) : NULL;
    if (stopping == NULL && order->kind == ORDER_STOP)
        stopping = begin_stop(catalog, order);
    if (stopping != NULL) {
        wait_for_stop(stopping, order);
        return;
    }
    switch (order->kind) {
    case ORDER_SERVE:
        order->status = serve(catalog, order->space, &order->error);
        break;
    case ORDER_STOP: /* nothing was served, or it failed */
        break;
    case ORDER_REFRESH:
        order->status = refresh(catalog, &order->error);
        break;
    case ORDER_LEAD:
        order->status = lead(catalog, &order->saved_next, &order->error);
        break;
    case ORDER_CLEAN:
        catalog_post_garbage(catalog);
        break;
    case ORDER_STOPPED:
    case ORDER_ANSWER:
        ASSERT(!"these do not wait");
        break;
    }
    latch_post(&order->done);
}

void placement_run_orders(Catalog *catalog)
{
    ASSERT(catalog->group == NULL);
    while (catalog->orders_first != NULL) {
        CatalogOrder *order = CONTAINER_OF(catalog->orders_first, CatalogOrder, node);
        catalog->orders_first = order->node.next;
        if (catalog->orders_first == NULL)
            catalog->orders_last = NULL;
        run_one(catalog, order);
    }
}

/* On any thread. */
static void on_published(void *ctx, bool is_everywhere)
{
    CatalogOrder *order = ctx;
    order->is_everywhere = is_everywhere;
    post(order->catalog, order);
}

/* The end of a restore changes nothing that another node shows. It is the one change that
 * catalog_lead waits for, whose caller may be the one who calls 'done'. */
static bool must_be_published(const QueueNode *group)
{
    for (const QueueNode *node = group; node != NULL; node = node->next) {
        if (CONTAINER_OF(node, const CatalogChange, node)->op != CATALOG_END_RESTORE)
            return true;
    }
    return false;
}

void placement_answer(Catalog *catalog, QueueNode *group)
{
    const CatalogPlacement *placement = catalog->placement;
    if (placement->published == NULL || !must_be_published(group)) {
        catalog_answer(group);
        return;
    }
    CatalogOrder *order = MEM_NEW(CatalogOrder);
    *order = (CatalogOrder){.kind = ORDER_ANSWER, .catalog = catalog, .group = group};
    catalog->unpublished++;
    placement->published(placement->ctx, on_published, order);
}

Status placement_check_leads(Catalog *catalog, Error *err)
{
    if (LIKELY(catalog_is_leader(catalog)))
        return STATUS_OK;
    return error_set(err, STATUS_NOT_OWNER, SUB_NONE, "The catalogue is led by another node.");
}

void placement_refuse(Catalog *catalog, QueueNode *group)
{
    for (QueueNode *node = group; node != NULL; node = node->next) {
        CatalogChange *change = CONTAINER_OF(node, CatalogChange, node);
        change->status = placement_check_leads(catalog, &change->error);
        if (change->status == STATUS_OK) /* it has begun to lead just now */
            change->status = error_set(&change->error, STATUS_NOT_OWNER, SUB_NONE,
                                       "The catalogue was led by another node.");
    }
    catalog_answer(group);
}

/* ---- the public functions ---- */

bool catalog_is_leader(Catalog *catalog)
{
    return atomic_load_explicit(&catalog->is_leader, memory_order_acquire);
}

uint64_t placement_loads(Catalog *catalog)
{
    return atomic_load(&catalog->loads);
}

void catalog_follow(Catalog *catalog)
{
    cleaner_pause(&catalog->cleaner, true);
    atomic_store(&catalog->is_leader, false);
}

/* Partitions of what is gone may still be writing here. Their spaces are cleaned after that, and
 * opened after that, if a saved state brings a container back. */
static void wait_for_drops(Catalog *catalog)
{
    while (cleaner_is_dropping(&catalog->cleaner))
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

Status catalog_refresh(Catalog *catalog, Error *err)
{
    CatalogOrder order = {.kind = ORDER_REFRESH};
    if (!catalog_is_leader(catalog))
        wait_for_drops(catalog);
    return run_order(catalog, &order, err);
}

Status catalog_lead(Catalog *catalog, Error *err)
{
    CatalogOrder order = {.kind = ORDER_LEAD};
    CatalogOrder clean = {.kind = ORDER_CLEAN};
    TRY(catalog_refresh(catalog, err));
    wait_for_drops(catalog);
    TRY(run_order(catalog, &order, err));
    wait_for_drops(catalog); /* targets of moves that it has undone */
    TRY(run_order(catalog, &clean, err));
    return saved_states_lead(&catalog->saved, order.saved_next, err);
}

Status catalog_stop_serving(Catalog *catalog, StoreSpace space, Error *err)
{
    CatalogOrder order = {.kind = ORDER_STOP, .space = space};
    return run_order(catalog, &order, err);
}

Status catalog_serve(Catalog *catalog, StoreSpace space, Error *err)
{
    CatalogOrder order = {.kind = ORDER_SERVE, .space = space};
    TRY(catalog_stop_serving(catalog, space, err)); /* what is there may be outdated */
    return run_order(catalog, &order, err);
}
