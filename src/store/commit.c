/* commit.c - the commit thread: many transactions, one durable write.
 *
 * A caller posts its transaction to the mailbox and goes on. The commit thread takes all that has
 * gathered, has the engine write it as one, calls the completions and looks again. While it waits
 * for the disk the next group gathers, so the slower the disk, the larger the groups. After a
 * second without work it calls the engine's 'idle'.
 *
 * I3: one queue, one thread, and completions in the order of the queue.
 * I5: when the disk is full a group is divided: transactions that make room are written, the others
 * are refused.
 * I6: after a failed write the thread asks the engine every second whether writes work again. A
 * caller that sends no writes while store_health reports a failure would never see it end
 * otherwise.
 */
#include "base/array.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/mem.h"
#include "base/thread.h"
#include "store/store_int.h"

/* A group is cut here, so that one write stays short and its copy in memory small. A transaction
 * that is larger by itself is written alone. */
#define GROUP_BYTES_MAX ((size_t)16 << 20)

enum { PERIOD_MS = 1000 };

#define LOG_PERIOD_US ((uint64_t)10 * 1000 * 1000)

static void *commit_thread(void *ctx);
static QueueNode *wait_for_work(Committer *committer);
static QueueNode *write_group(Committer *committer, QueueNode *first);
static QueueNode *submit_all(const Committer *committer, QueueNode *first);
static void note_outcome(Committer *committer, const Error *err);
static void log_change(Committer *committer, const Error *err);

Status committer_start(Committer *committer, Engine *engine, const Log *log, Error *err)
{
    committer->engine = engine;
    committer->log = log;
    mailbox_init(&committer->mailbox);
    int failed = pthread_mutex_init(&committer->lock, NULL);
    ASSERT(failed == 0);

    /* A disk that is full already does not prevent the start, but is reported. */
    Error full = {0};
    if (engine->ops->room(engine, ENGINE_TAKES_ROOM, 0, &full) != STATUS_OK)
        note_outcome(committer, &full);
    Status status =
        thread_start(&committer->thread, "orrery-commit", commit_thread, committer, err);
    if (status == STATUS_OK)
        return STATUS_OK;
    mailbox_done(&committer->mailbox);
    (void)pthread_mutex_destroy(&committer->lock);
    return status;
}

void committer_push(Committer *committer, StoreTxn *txn)
{
    mailbox_post(&committer->mailbox, &txn->node);
}

Status committer_health(Committer *committer, Error *err)
{
    pthread_mutex_lock(&committer->lock);
    Status status = committer->failure.status;
    if (status != STATUS_OK)
        *err = committer->failure;
    pthread_mutex_unlock(&committer->lock);
    if (status != STATUS_OK)
        return status;
    /* The disk may have become full since the last write. */
    return committer->engine->ops->room(committer->engine, ENGINE_TAKES_ROOM, 0, err);
}

void committer_stop(Committer *committer)
{
    mailbox_post(&committer->mailbox, &committer->stop);
    (void)pthread_join(committer->thread, NULL); /* fails only for a thread that is not ours */
    const EngineOps *ops = committer->engine->ops;
    if (ops->drain != NULL)
        ops->drain(committer->engine);
    mailbox_done(&committer->mailbox);
    (void)pthread_mutex_destroy(&committer->lock);
    mem_free(committer->group);
}

static void *commit_thread(void *ctx)
{
    Committer *committer = ctx;
    bool submits = committer->engine->ops->submit != NULL;
    for (;;) {
        QueueNode *node = wait_for_work(committer);
        while (node != NULL && node != &committer->stop)
            node = submits ? submit_all(committer, node) : write_group(committer, node);
        if (node == &committer->stop)
            return NULL;
    }
}

static void probe(Committer *committer)
{
    Error err = {0};
    if (committer->engine->ops->probe(committer->engine, &err) == STATUS_OK)
        err = (Error){0};
    note_outcome(committer, &err);
}

static void idle(const Committer *committer)
{
    Engine *engine = committer->engine;
    if (engine->ops->idle != NULL)
        engine->ops->idle(engine);
}

/* Also while there is work: transactions that are refused may come all the time. After a failure,
 * what is kept for readers is freed because it may be what fills the disk. */
static void probe_now_and_then(Committer *committer, bool has_failed)
{
    uint64_t now_us = cond_now_us();
    if (now_us - committer->probed_at_us < PERIOD_MS * 1000)
        return;
    committer->probed_at_us = now_us;
    if (has_failed)
        idle(committer);
    probe(committer);
}

static QueueNode *wait_for_work(Committer *committer)
{
    for (;;) {
        QueueNode *node = mailbox_wait_for(&committer->mailbox, PERIOD_MS);
        /* Only this thread changes the failure, so that it may read it without the lock. */
        bool has_failed = committer->failure.status != STATUS_OK;
        if (has_failed || committer->engine->ops->submit != NULL)
            probe_now_and_then(committer, has_failed);
        if (!has_failed && node == NULL)
            idle(committer);
        if (node != NULL)
            return node;
    }
}

static StoreTxn *txn_of(QueueNode *node)
{
    return CONTAINER_OF(node, StoreTxn, node);
}

static size_t bytes_of(const StoreTxn *txn)
{
    return txn->writes.bytes + txn->merges.len;
}

static bool is_empty(const StoreTxn *txn)
{
    return txn->writes.count == 0 && txn->merges.len == 0;
}

/* The first transaction from 'first' on that does not belong to the same group. */
static QueueNode *cut_group(const Committer *committer, QueueNode *first)
{
    size_t bytes = 0;
    QueueNode *node = first;
    do {
        bytes += bytes_of(txn_of(node));
        node = node->next;
    } while (node != NULL && node != &committer->stop &&
             bytes + bytes_of(txn_of(node)) <= GROUP_BYTES_MAX);
    return node;
}

/* What one group writes. */
typedef struct Gathered {
    size_t count;
    size_t bytes;
} Gathered;

/* Puts the writes of the transactions before 'rest' into 'group': all of them, or only of those
 * that make room. */
static Gathered gather(Committer *committer, QueueNode *first, const QueueNode *rest,
                       EngineNeed need)
{
    Gathered result = {0};
    for (QueueNode *node = first; node != rest; node = node->next) {
        const StoreTxn *txn = txn_of(node);
        if (is_empty(txn) || (need == ENGINE_MAKES_ROOM && !txn->makes_room))
            continue;
        ARRAY_GROW(committer->group, result.count, committer->group_capacity, 64);
        /* Borrowed from the transaction. */
        committer->group[result.count++] = (EngineWrites){txn->writes, buf_view(&txn->merges)};
        result.bytes += bytes_of(txn);
    }
    return result;
}

/* The errors of a group; STATUS_OK if there is none. */
typedef struct Outcome {
    Error full;    /* of transactions that take room */
    Error written; /* of all that were written */
} Outcome;

/* If there is no room for the whole group, only the transactions that make room are written. */
static void write_transactions(Committer *committer, QueueNode *first, const QueueNode *rest,
                               Outcome *outcome)
{
    Engine *engine = committer->engine;
    const EngineOps *ops = engine->ops;
    EngineNeed need = ENGINE_TAKES_ROOM;
    Gathered gathered = gather(committer, first, rest, need);
    if (gathered.count == 0)
        return;
    Status status = ops->room(engine, need, gathered.bytes, &outcome->full);
    if (status != STATUS_OK) {
        need = ENGINE_MAKES_ROOM;
        gathered = gather(committer, first, rest, need);
        status = ops->room(engine, need, gathered.bytes, &outcome->written);
    }
    if (status == STATUS_OK && gathered.count > 0)
        status = ops->write(engine, committer->group, gathered.count, &outcome->written);
    note_outcome(committer, status != STATUS_OK ? &outcome->written : &outcome->full);
}

static const Error *failure_of(const StoreTxn *txn, const Outcome *outcome)
{
    bool is_full = outcome->full.status != STATUS_OK;
    if (is_full && !txn->makes_room && !is_empty(txn))
        return &outcome->full;
    return outcome->written.status != STATUS_OK ? &outcome->written : NULL;
}

/* Writes and completes transactions from 'first' on; returns the first one that is left. */
static QueueNode *write_group(Committer *committer, QueueNode *first)
{
    ASSERT(first != &committer->stop);
    QueueNode *rest = cut_group(committer, first);
    Outcome outcome = {0};
    write_transactions(committer, first, rest, &outcome);
    for (QueueNode *node = first; node != rest;) {
        StoreTxn *txn = txn_of(node);
        node = node->next;
        txn->completion.done(txn->completion.ctx, failure_of(txn, &outcome));
        store_txn_abort(txn); /* only frees it: the engine has what it wrote */
    }
    return rest;
}

/* Hands everything from 'first' on to an engine that completes it by itself; returns what is left:
 * nothing, or the stop. */
static QueueNode *submit_all(const Committer *committer, QueueNode *first)
{
    EngineTxn *list = NULL;
    EngineTxn **end = &list;
    QueueNode *node = first;
    for (; node != NULL && node != &committer->stop; node = node->next) {
        StoreTxn *txn = txn_of(node);
        txn->submitted = (EngineTxn){
            .space = txn->space,
            .writes = {txn->writes, buf_view(&txn->merges)},
            .bytes = is_empty(txn) ? 0 : store_txn_bytes(txn),
            .makes_room = txn->makes_room,
        };
        *end = &txn->submitted;
        end = &txn->submitted.next;
    }
    committer->engine->ops->submit(committer->engine, list);
    return node;
}

void engine_complete(EngineTxn *submitted, const Error *err)
{
    StoreTxn *txn = CONTAINER_OF(submitted, StoreTxn, submitted);
    txn->completion.done(txn->completion.ctx, err);
    store_txn_abort(txn); /* only frees it */
}

/* 'err' has STATUS_OK when writes work. */
static void note_outcome(Committer *committer, const Error *err)
{
    bool failed_before = committer->failure.status != STATUS_OK;
    bool fails = err->status != STATUS_OK;
    if (!fails && !failed_before)
        return;
    pthread_mutex_lock(&committer->lock);
    committer->failure = *err;
    pthread_mutex_unlock(&committer->lock);
    if (committer->log != NULL && fails != failed_before)
        log_change(committer, err);
}

/* When the disk is nearly full this may change many times a second, and is not logged as often. */
static void log_change(Committer *committer, const Error *err)
{
    uint64_t now_us = clock_monotonic_us(committer->log->clock);
    if (err->status == STATUS_OK && committer->is_failure_logged)
        LOG_INFO(committer->log, "store.writes_work_again", "status=ok");
    committer->is_failure_logged =
        err->status != STATUS_OK && now_us >= committer->log_failure_at_us;
    if (!committer->is_failure_logged)
        return;
    committer->log_failure_at_us = now_us + LOG_PERIOD_US;
    LOG_ERROR(committer->log, "store.writes_fail", "reason=\"%s\"", err->message);
}
