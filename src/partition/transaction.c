/* transaction.c - see transaction.h, and transaction_int.h for its messages.
 *
 * Own writes are a group that is never committed (group_new_private), so that each operation does
 * here exactly what it does in a group. The commit submits the operations that have written once
 * more, in order, as one atomic write, in the partition's turn. Nothing that they depend on has
 * changed since: the EPK was locked, they bring along the numbers and stamps that they were given,
 * and they are applied by the transaction's time and definition (I22).
 */
#include "partition/transaction.h"

#include "base/array.h"
#include "base/mem.h"
#include "partition/transaction_int.h"

/* A sender that waits for its lock looks at the clock this often. */
enum { LOOK_US = 20000 };

/* ---- the host's list ---- */

Status transaction_stopped(Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "The server is shutting down.");
}

/* Whether a message may still be posted. If so, the host waits with its end until host_leave: the
 * writers that get the message must not be closed before. */
static bool host_enter(PartitionHost *host)
{
    bool may = !atomic_load_explicit(&host->transactions.is_stopped, memory_order_relaxed);
    if (may)
        atomic_fetch_add(&host->active, 1);
    return may;
}

static void host_leave(PartitionHost *host)
{
    atomic_fetch_sub(&host->active, 1);
}

static bool list_add(PartitionTransaction *transaction)
{
    PartitionHost *host = transaction->partition->host;
    TransactionList *list = &host->transactions;
    (void)pthread_mutex_lock(&list->lock);
    bool may = host_enter(host);
    transaction->is_listed = may;
    if (may) {
        transaction->next = list->first;
        if (list->first != NULL)
            list->first->previous = transaction;
        list->first = transaction;
    }
    (void)pthread_mutex_unlock(&list->lock);
    return may;
}

/* Returns what host_enter does: what waits for a transaction that is in the list when the host is
 * stopped is answered then, and else by the unlock. */
static bool list_remove(PartitionTransaction *transaction)
{
    PartitionHost *host = transaction->partition->host;
    TransactionList *list = &host->transactions;
    (void)pthread_mutex_lock(&list->lock);
    if (transaction->previous != NULL)
        transaction->previous->next = transaction->next;
    else
        list->first = transaction->next;
    if (transaction->next != NULL)
        transaction->next->previous = transaction->previous;
    bool may = host_enter(host);
    (void)pthread_mutex_unlock(&list->lock);
    return may;
}

static bool list_enter(PartitionHost *host)
{
    (void)pthread_mutex_lock(&host->transactions.lock);
    bool may = host_enter(host);
    (void)pthread_mutex_unlock(&host->transactions.lock);
    return may;
}

void transactions_stop(PartitionHost *host)
{
    TransactionList *list = &host->transactions;
    (void)pthread_mutex_lock(&list->lock);
    atomic_store(&list->is_stopped, true);
    for (PartitionTransaction *t = list->first; t != NULL; t = t->next) {
        EpkLocks *locks = &t->partition->locks;
        if (locks->is_recheck_posted)
            continue;
        locks->is_recheck_posted = true;
        locks->recheck.kind = MESSAGE_RECHECK;
        inbox_post_always(t->partition, &locks->recheck);
    }
    (void)pthread_mutex_unlock(&list->lock);
}

/* ---- life ---- */

static PartitionTransaction *transaction_new(Partition *partition, PartitionSchema *schema,
                                             const Epk *epk)
{
    PartitionTransaction *transaction = MEM_NEW(PartitionTransaction);
    transaction->partition = partition_ref(partition);
    transaction->schema = schema_ref(schema);
    transaction->epk = *epk;
    atomic_init(&transaction->state, TRANSACTION_WAITING);
    latch_init(&transaction->answered);
    return transaction;
}

/* What the sender has of it. */
static void let_go(PartitionTransaction *transaction)
{
    group_free_private(TAKE(transaction->group));
    mem_free(TAKE(transaction->applied));
    mem_free(TAKE(transaction->commit.items));
    schema_unref(TAKE(transaction->schema));
}

static void transaction_free(PartitionTransaction *transaction)
{
    latch_done(&transaction->answered);
    mem_free(transaction);
}

/* One that has no lock. */
static void discard(PartitionTransaction *transaction)
{
    Partition *partition = transaction->partition;
    if (transaction->is_listed && list_remove(transaction))
        host_leave(partition->host);
    let_go(transaction);
    transaction_free(transaction);
    partition_unref(partition);
}

static Status answer_of(const PartitionTransaction *transaction, Error *err)
{
    if (transaction->status != STATUS_OK)
        *err = transaction->error;
    return transaction->status;
}

/* '*is_abandoned' if it was not answered in time: then it is the partition's. */
static Status wait_for_lock(PartitionTransaction *transaction, uint64_t deadline_us,
                            bool *is_abandoned, Error *err)
{
    const Clock *clock = transaction->partition->host->clock;
    *is_abandoned = false;
    for (;;) {
        uint64_t now_us = clock_monotonic_us(clock);
        uint64_t left_us = now_us < deadline_us ? deadline_us - now_us : 0;
        if (latch_wait_for(&transaction->answered, left_us < LOOK_US ? left_us : LOOK_US))
            return answer_of(transaction, err);
        TransactionState found = TRANSACTION_WAITING;
        if (left_us > 0)
            continue;
        *is_abandoned =
            atomic_compare_exchange_strong(&transaction->state, &found, TRANSACTION_ABANDONED);
        if (*is_abandoned)
            return error_set(err, STATUS_TIMEOUT, SUB_NONE,
                             "Other transactions and writes of this partition key took too long.");
        latch_wait(&transaction->answered); /* the answer is under way */
        return answer_of(transaction, err);
    }
}

/* Fails, without posting, if the host is stopped or the partition refuses. */
static Status post_lock(PartitionTransaction *transaction, Error *err)
{
    PartitionHost *host = transaction->partition->host;
    if (!list_add(transaction))
        return transaction_stopped(err);
    transaction->message.kind = MESSAGE_LOCK;
    Status status = partition_post(transaction->partition, &transaction->message, 0, err);
    host_leave(host);
    return status;
}

Status transaction_begin(Partition *partition, PartitionSchema *schema, const Epk *epk,
                         uint64_t deadline_us, PartitionTransaction **out, Error *err)
{
    PartitionTransaction *transaction = transaction_new(partition, schema, epk);
    transaction->message.generation = schema->generation;
    bool is_abandoned = false;
    Status status = post_lock(transaction, err);
    if (status == STATUS_OK)
        status = wait_for_lock(transaction, deadline_us, &is_abandoned, err);
    if (status == STATUS_OK) {
        ASSERT(atomic_load(&transaction->state) == TRANSACTION_OPEN);
        transaction->group = group_new_private(partition, schema, epk);
        *out = transaction;
    } else if (!is_abandoned) {
        discard(transaction);
    }
    return status;
}

void transaction_set_deadline(PartitionTransaction *transaction, uint64_t deadline_us)
{
    transaction->message.deadline_us = deadline_us;
}

void transaction_end(PartitionTransaction *transaction)
{
    if (transaction == NULL)
        return;
    Partition *partition = transaction->partition;
    PartitionHost *host = partition->host;
    if (atomic_load(&transaction->state) == TRANSACTION_CLOSED) {
        discard(transaction);
        return;
    }
    ASSERT(atomic_load(&transaction->state) == TRANSACTION_OPEN);
    let_go(transaction);
    if (!list_remove(transaction)) {
        transaction_free(transaction); /* no turn will ever look for it */
    } else {
        transaction->message.kind = MESSAGE_UNLOCK;
        inbox_post_always(partition, &transaction->message); /* it is the partition's now */
        host_leave(host);
    }
    partition_unref(partition);
}

/* ---- operations ---- */

/* With what is kept of each until the commit. */
size_t transaction_bytes(const PartitionTransaction *transaction)
{
    return store_txn_bytes(transaction->group->txn) +
           transaction->applied_count * sizeof(ItemWrite);
}

static Status check_open(const PartitionTransaction *transaction, Error *err)
{
    const Partition *partition = transaction->partition;
    if (UNLIKELY(partition_state(partition) == PARTITION_STOPPED))
        return partition_refuse(partition, err);
    return atomic_load_explicit(&partition->host->transactions.is_stopped, memory_order_relaxed)
               ? transaction_stopped(err)
               : STATUS_OK;
}

/* One operation may pass the bound, and is the last to do so. */
static Status check_room(const PartitionTransaction *transaction, const ItemWrite *w, Error *err)
{
    TRY(check_open(transaction, err));
    if (w->op == ITEM_READ || transaction_bytes(transaction) < TRANSACTION_BYTES_MAX)
        return STATUS_OK;
    return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                     "The transaction has written more than %zu MB.", TRANSACTION_BYTES_MAX >> 20);
}

void transaction_apply(PartitionTransaction *transaction, ItemWrite *w, Arena *arena)
{
    ASSERT(transaction->group != NULL);
    ASSERT(!transaction->is_commit_tried);
    ASSERT(slice_equal(epk_slice(&w->epk), epk_slice(&transaction->epk)));
    w->status = check_room(transaction, w, &w->error);
    if (w->status != STATUS_OK)
        return;
    PartitionWrite alone = {.arena = arena, .read_bytes_max = SIZE_MAX};
    group_apply_alone(transaction->group, &alone, w);
    if (w->status != STATUS_OK || w->op == ITEM_READ)
        return;
    ARRAY_GROW(transaction->applied, transaction->applied_count, transaction->applied_capacity, 16);
    transaction->applied[transaction->applied_count++] = w;
}

void transaction_restart(PartitionTransaction *transaction)
{
    ASSERT(transaction->group != NULL);
    ASSERT(!transaction->is_commit_tried);
    uint32_t now_s = transaction->group->now_s;
    group_free_private(TAKE(transaction->group));
    transaction->group =
        group_new_private(transaction->partition, transaction->schema, &transaction->epk);
    transaction->group->now_s = now_s; /* I22 */
    transaction->applied_count = 0;
}

bool transaction_has_writes(const PartitionTransaction *transaction)
{
    return transaction->applied_count > 0;
}

/* ---- reading ---- */

static StoreTxn *own_writes(const PartitionTransaction *transaction)
{
    return transaction_has_writes(transaction) ? transaction->group->txn : NULL;
}

Status transaction_view(PartitionTransaction *transaction, StoreRead read, PartitionView **out,
                        Error *err)
{
    TRY(check_open(transaction, err));
    PartitionView *view = NULL;
    TRY(partition_view_open(transaction->partition, transaction->schema, read, &view, err));
    partition_view_overlay(view, own_writes(transaction), transaction->group->now_s);
    *out = view;
    return STATUS_OK;
}

Status transaction_scan(PartitionTransaction *transaction, const ScanOptions *options,
                        PartitionScan **out, Error *err)
{
    TRY(check_open(transaction, err));
    return partition_scan_open_own(transaction->partition, transaction->schema,
                                   own_writes(transaction), transaction->group->now_s, options, out,
                                   err);
}

/* ---- the commit ---- */

/* A patch is not made a second time: its document is known. */
static void repeat_patch(ItemWrite *w)
{
    w->op = ITEM_REPLACE;
    w->if_match = SLICE_EMPTY;
    w->directive = w->item.is_unindexed ? INDEX_EXCLUDE : INDEX_INCLUDE;
}

static void fill_commit(PartitionTransaction *transaction)
{
    size_t count = transaction->applied_count;
    ItemWrite *items = MEM_NEW_ARRAY(ItemWrite, count);
    for (size_t i = 0; i < count; i++) {
        items[i] = *transaction->applied[i];
        if (items[i].op == ITEM_PATCH)
            repeat_patch(&items[i]);
    }
    transaction->commit = (PartitionWrite){.mode = WRITE_ATOMIC, .items = items, .count = count};
}

static Status run_commit(PartitionTransaction *transaction, Error *err)
{
    PartitionHost *host = transaction->partition->host;
    if (!list_enter(host))
        return transaction_stopped(err);
    transaction->message.kind = MESSAGE_COMMIT;
    transaction->status = STATUS_OK;
    Status status = partition_post(transaction->partition, &transaction->message,
                                   transaction_bytes(transaction), err);
    host_leave(host);
    TRY(status);
    latch_wait(&transaction->answered);
    return answer_of(transaction, err);
}

/* The first that failed on its own account, if one did. */
static Status check_applied(const PartitionTransaction *transaction, Error *err)
{
    for (size_t i = 0; i < transaction->commit.count; i++) {
        const ItemWrite *w = &transaction->commit.items[i];
        if (w->status != STATUS_OK && w->status != STATUS_FAILED_DEPENDENCY) {
            *err = w->error;
            return w->status;
        }
    }
    return STATUS_OK;
}

static void tell_applied(const PartitionTransaction *transaction)
{
    for (size_t i = 0; i < transaction->commit.count; i++) {
        const ItemWrite *done = &transaction->commit.items[i];
        transaction->applied[i]->terms = done->terms;
        transaction->applied[i]->item.lsn = done->item.lsn;
    }
}

Status transaction_commit(PartitionTransaction *transaction, uint64_t *lsn, Error *err)
{
    ASSERT(!transaction->is_commit_tried);
    transaction->is_commit_tried = true;
    if (!transaction_has_writes(transaction)) {
        *lsn = partition_lsn(transaction->partition);
        return STATUS_OK;
    }
    fill_commit(transaction);
    TRY(run_commit(transaction, err));
    TRY(check_applied(transaction, err));
    tell_applied(transaction);
    *lsn = transaction->commit.lsn;
    return STATUS_OK;
}

/* ---- in the partition's turn ---- */

/* Those that waited come next, before all that is newer (I21). */
static void give_back(Group *group, PartitionTransaction *transaction)
{
    EpkLocks *locks = &group->partition->locks;
    if (epk_locks_give_back(locks, transaction))
        epk_locks_put_waiting(locks, &transaction->message.node.next);
}

void transaction_take_lock(Group *group, PartitionTransaction *transaction)
{
    transaction->status = STATUS_OK;
    if (atomic_load(&transaction->state) == TRANSACTION_ABANDONED)
        return; /* nobody would give it back */
    transaction->status =
        epk_locks_take(&group->partition->locks, transaction, &transaction->error);
}

void transaction_take_commit(Group *group, PartitionTransaction *transaction)
{
    /* What it has read is not what is there now. */
    if (!epk_locks_holds(&group->partition->locks, transaction)) {
        transaction->status =
            error_set(&transaction->error, STATUS_RETRY_WITH, SUB_NONE,
                      "A snapshot of the database was restored meanwhile; try again.");
        return;
    }
    uint32_t now_s = group->now_s;
    PartitionSchema *schema = group->schema;
    group->now_s = transaction->group->now_s; /* I22 */
    group->schema = transaction->schema;
    group->is_commit = true;
    group_apply_write(group, &transaction->commit);
    group->is_commit = false;
    group->schema = schema;
    group->now_s = now_s;
    transaction->commit.lsn = group->counters.lsn;
    give_back(group, transaction);
}

void transaction_take_unlock(Group *group, PartitionTransaction *transaction)
{
    give_back(group, transaction);
}

static void answer_lock(Partition *partition, PartitionTransaction *transaction)
{
    EpkLocks *locks = &partition->locks;
    TransactionState found = TRANSACTION_WAITING;
    TransactionState next =
        transaction->status == STATUS_OK ? TRANSACTION_OPEN : TRANSACTION_CLOSED;
    bool is_wanted = atomic_compare_exchange_strong(&transaction->state, &found, next);
    if ((!is_wanted || next == TRANSACTION_CLOSED) && epk_locks_give_back(locks, transaction))
        epk_locks_put_waiting(locks, &partition->inbox.rest);
    if (is_wanted)
        latch_post(&transaction->answered);
    else
        discard(transaction);
}

void transaction_answer(Partition *partition, PartitionTransaction *transaction, const Error *err)
{
    if (err != NULL) {
        transaction->status = err->status;
        transaction->error = *err;
    }
    switch (transaction->message.kind) {
    case MESSAGE_LOCK:
        answer_lock(partition, transaction);
        break;
    case MESSAGE_COMMIT:
        atomic_store(&transaction->state, TRANSACTION_CLOSED);
        latch_post(&transaction->answered);
        break;
    default:
        ASSERT(transaction->message.kind == MESSAGE_UNLOCK);
        transaction_free(transaction);
    }
}
