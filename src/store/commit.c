/* commit.c - the commit thread: many transactions, one durable write.
 *
 * Whoever commits posts the transaction to the mailbox and goes on. The commit thread takes all
 * that has gathered, has the engine write it as one, calls the completions and looks again; while
 * it waits for the disk the next group gathers, so that a group grows exactly as large as the disk
 * is slow. An empty mailbox costs nothing.
 *
 * After a failed write the thread also wakes every second and asks the engine whether writes work
 * again: someone who refuses writes because store_health says so would otherwise never see it heal.
 */
#include "base/mem.h"
#include "store/store_int.h"

#include <signal.h>

/* A group is cut here, so that one write stays short and its copy in memory small. A transaction
 * that is larger by itself is written alone. */
#define GROUP_BYTES_MAX ((size_t)16 << 20)

enum { PROBE_PERIOD_MS = 1000 };

static void *commit_thread(void *ctx);
static QueueNode *wait_for_work(Committer *committer);
static QueueNode *write_group(Committer *committer, QueueNode *first);
static void note_outcome(Committer *committer, Status status, const Error *err);

Status committer_start(Committer *committer, Engine *engine, const Log *log, Error *err)
{
    committer->engine = engine;
    committer->log = log;
    mailbox_init(&committer->mailbox);
    int failed = pthread_mutex_init(&committer->lock, NULL);
    ASSERT(failed == 0);

    /* Signals are for the thread that waits for them, which is never this one. */
    sigset_t all, old;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(&committer->thread, NULL, commit_thread, committer);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code == 0)
        return STATUS_OK;
    mailbox_done(&committer->mailbox);
    (void)pthread_mutex_destroy(&committer->lock);
    return error_set_errno(err, code, "cannot start the commit thread");
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
    return status;
}

void committer_stop(Committer *committer)
{
    mailbox_post(&committer->mailbox, &committer->stop);
    (void)pthread_join(committer->thread, NULL); /* fails only for a thread that is not ours */
    mailbox_done(&committer->mailbox);
    (void)pthread_mutex_destroy(&committer->lock);
    mem_free(committer->group);
}

static void *commit_thread(void *ctx)
{
    Committer *committer = ctx;
    for (;;) {
        QueueNode *node = wait_for_work(committer);
        while (node != NULL && node != &committer->stop)
            node = write_group(committer, node);
        if (node == &committer->stop)
            return NULL;
    }
}

static void probe(Committer *committer)
{
    Error err = {0};
    Status status = committer->engine->ops->probe(committer->engine, &err);
    note_outcome(committer, status, &err);
}

static QueueNode *wait_for_work(Committer *committer)
{
    /* Only this thread changes the failure, so that it may read it without the lock. */
    while (committer->failure.status != STATUS_OK) {
        QueueNode *node = mailbox_wait_for(&committer->mailbox, PROBE_PERIOD_MS);
        if (node != NULL)
            return node;
        probe(committer);
    }
    return mailbox_wait(&committer->mailbox);
}

static StoreTxn *txn_of(QueueNode *node)
{
    return CONTAINER_OF(node, StoreTxn, node);
}

/* Puts the writes of transactions from 'first' on into 'group', until it is large enough or there
 * are no more. Returns the first one that is not in it. */
static QueueNode *gather(Committer *committer, QueueNode *first, size_t *count)
{
    size_t bytes = 0;
    *count = 0;
    QueueNode *node = first;
    do {
        const Tree *writes = &txn_of(node)->writes;
        if (*count == committer->group_capacity) {
            committer->group_capacity = *count == 0 ? 64 : *count * 2;
            committer->group =
                mem_realloc(committer->group, sizeof(Tree) * committer->group_capacity);
        }
        if (writes->count > 0)
            committer->group[(*count)++] = *writes; /* borrowed from the transaction */
        bytes += writes->bytes;
        node = node->next;
    } while (node != NULL && node != &committer->stop &&
             bytes + txn_of(node)->writes.bytes <= GROUP_BYTES_MAX);
    return node;
}

/* Writes and completes transactions from 'first' on; returns the first one that is left. */
static QueueNode *write_group(Committer *committer, QueueNode *first)
{
    size_t count = 0;
    QueueNode *rest = gather(committer, first, &count);
    Error err = {0};
    Status status = STATUS_OK;
    if (count > 0) {
        Engine *engine = committer->engine;
        status = engine->ops->write(engine, committer->group, count, &err);
        note_outcome(committer, status, &err);
    }
    for (QueueNode *node = first; node != rest;) {
        StoreTxn *txn = txn_of(node);
        node = node->next;
        txn->completion.done(txn->completion.ctx, status == STATUS_OK ? NULL : &err);
        store_txn_abort(txn); /* what it wrote is the engine's now */
    }
    return rest;
}

static void note_outcome(Committer *committer, Status status, const Error *err)
{
    bool failed_before = committer->failure.status != STATUS_OK;
    if (status == STATUS_OK && !failed_before)
        return;
    pthread_mutex_lock(&committer->lock);
    committer->failure = status == STATUS_OK ? (Error){0} : *err;
    pthread_mutex_unlock(&committer->lock);
    if (committer->log == NULL)
        return;
    if (status == STATUS_OK)
        LOG_INFO(committer->log, "store.writes_work_again", "status=ok");
    else if (!failed_before)
        LOG_ERROR(committer->log, "store.writes_fail", "reason=\"%s\"", err->message);
}
