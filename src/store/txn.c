/* txn.c - transactions: a tree of writes over the engine's newest state.
 *
 * The tree is the engine's business only when it is committed; until then a transaction costs the
 * engine nothing. A savepoint is a copy of the tree, which is a reference, so that taking one,
 * releasing it and rolling back to it do not depend on how much the transaction has written.
 * Operands are only ever added at the end of a buffer, and rolling back cuts it.
 *
 * A small transaction is kept when it ends, as it is, and emptied by who begins the next one. It
 * ends on the commit thread, which all writes wait for, and what it holds was taken from the heap
 * by a writer: there it is freed for the same writer's use again.
 */
#include "base/mem.h"
#include "store/store_int.h"

#include <errno.h>
#include <semaphore.h>

/* What an engine adds to each write: type, lengths, checksum's share. Only for store_txn_bytes. */
enum { WRITE_OVERHEAD_BYTES = 8 };

/* A transaction that holds more is not kept. */
#define SPARE_BYTES_MAX ((size_t)64 << 10)

static void drop_savepoint(StoreTxn *txn);
static void empty(StoreTxn *txn);

StoreTxn *store_txn_begin(Store *store)
{
    StoreTxn *txn = spares_take(&store->txns);
    if (txn != NULL) {
        empty(txn);
        return txn;
    }
    txn = MEM_NEW(StoreTxn);
    txn->store = store;
    buf_init(&txn->merges, SIZE_MAX); /* whoever writes bounds a transaction by its bytes */
    return txn;
}

static void empty(StoreTxn *txn)
{
    tree_done(&txn->writes);
    buf_reset(&txn->merges);
    txn->makes_room = false;
}

static void txn_free(StoreTxn *txn)
{
    empty(txn);
    mem_free(txn->savepoints);
    buf_done(&txn->merges);
    mem_free(txn);
}

void store_free_txns(Store *store)
{
    StoreTxn *txn;
    while ((txn = spares_take(&store->txns)) != NULL)
        txn_free(txn);
}

void store_txn_put(StoreTxn *txn, StoreSpace space, Slice key, Slice value)
{
    ASSERT(key.len <= STORE_KEY_BYTES_MAX);
    ASSERT(value.len <= STORE_VALUE_BYTES_MAX);
    FullKey full;
    Slice whole = full_key(&full, space, key);
    ASSERT(merge_of(txn->store->engine->merge, whole) == NULL);
    tree_put(&txn->writes, whole, value);
}

void store_txn_delete(StoreTxn *txn, StoreSpace space, Slice key)
{
    ASSERT(key.len <= STORE_KEY_BYTES_MAX);
    FullKey full;
    Slice whole = full_key(&full, space, key);
    ASSERT(merge_of(txn->store->engine->merge, whole) == NULL);
    tree_mark_deleted(&txn->writes, whole);
}

void store_txn_merge(StoreTxn *txn, StoreSpace space, Slice key, Slice operand)
{
    ASSERT(key.len > 0);
    ASSERT(key.len <= STORE_KEY_BYTES_MAX);
    ASSERT(merge_of_kind(txn->store->engine->merge, (uint8_t)key.ptr[0]) != NULL);
    ASSERT(operand.len <= STORE_VALUE_BYTES_MAX);
    merge_record_append(&txn->merges, space, key, operand);
}

static void release_entry(void *owner)
{
    tree_entry_unref(owner);
}

static StoreFound get_own(const StoreTxn *txn, Slice whole, StoreValue *value)
{
    TreeEntry *own = tree_find(&txn->writes, whole);
    if (own == NULL)
        return STORE_UNKNOWN;
    if (own->deleted)
        return STORE_ABSENT;
    *value = (StoreValue){tree_entry_value(own), tree_entry_ref(own), release_entry};
    return STORE_FOUND;
}

StoreFound store_txn_get_own(const StoreTxn *txn, StoreSpace space, Slice key, StoreValue *value)
{
    FullKey full;
    return get_own(txn, full_key(&full, space, key), value);
}

Status store_txn_get(StoreTxn *txn, StoreSpace space, Slice key, StoreValue *value, bool *found,
                     Error *err)
{
    FullKey full;
    Slice whole = full_key(&full, space, key);
    StoreFound answer = get_own(txn, whole, value);
    if (answer == STORE_UNKNOWN) {
        Engine *engine = txn->store->engine;
        Status status = engine_get(engine, NULL, whole, STORE_READ_ANY, value, &answer, err);
        TRY(store_note_read(txn->store, status, err));
    }
    *found = answer == STORE_FOUND;
    return STATUS_OK;
}

StoreCursor *store_txn_cursor_open(StoreTxn *txn, StoreSpace space, Slice from, Slice to)
{
    return cursor_open(txn->store, NULL, &txn->writes, space, from, to);
}

void store_txn_savepoint(StoreTxn *txn)
{
    if (txn->savepoint_count == txn->savepoint_capacity) {
        txn->savepoint_capacity = txn->savepoint_capacity == 0 ? 4 : txn->savepoint_capacity * 2;
        txn->savepoints = mem_realloc(txn->savepoints, sizeof(Savepoint) * txn->savepoint_capacity);
    }
    txn->savepoints[txn->savepoint_count++] = (Savepoint){tree_copy(&txn->writes), txn->merges.len};
}

void store_txn_rollback(StoreTxn *txn)
{
    ASSERT(txn->savepoint_count > 0);
    tree_done(&txn->writes);
    Savepoint saved = txn->savepoints[--txn->savepoint_count];
    txn->writes = saved.writes;
    txn->merges.len = saved.merge_bytes;
}

void store_txn_release(StoreTxn *txn)
{
    ASSERT(txn->savepoint_count > 0);
    drop_savepoint(txn);
}

size_t store_txn_bytes(const StoreTxn *txn)
{
    /* A record's own head is as long as the overhead that it stands for. */
    return txn->writes.bytes + txn->writes.count * WRITE_OVERHEAD_BYTES + txn->merges.len;
}

void store_txn_makes_room(StoreTxn *txn)
{
    txn->makes_room = true;
}

void store_txn_commit(StoreTxn *txn, StoreCompletion completion)
{
    /* A savepoint that is left over holds nothing that the transaction has not written. */
    while (txn->savepoint_count > 0)
        drop_savepoint(txn);
    txn->completion = completion;
    committer_push(&txn->store->committer, txn);
}

static bool is_small(const StoreTxn *txn)
{
    return txn->writes.bytes <= SPARE_BYTES_MAX && txn->merges.capacity <= SPARE_BYTES_MAX;
}

void store_txn_abort(StoreTxn *txn)
{
    if (txn == NULL)
        return;
    while (txn->savepoint_count > 0)
        drop_savepoint(txn);
    if (!is_small(txn) || !spares_give(&txn->store->txns, txn))
        txn_free(txn);
}

static void drop_savepoint(StoreTxn *txn)
{
    tree_done(&txn->savepoints[--txn->savepoint_count].writes);
}

typedef struct CommitWait {
    sem_t done;
    Error *err;
    Status status;
} CommitWait;

static void commit_waited(void *ctx, const Error *err)
{
    CommitWait *wait = ctx;
    wait->status = STATUS_OK;
    if (err != NULL) {
        *wait->err = *err;
        wait->status = err->status;
    }
    (void)sem_post(&wait->done); /* fails only when the count overflows; it is 0 */
}

Status store_txn_commit_wait(StoreTxn *txn, Error *err)
{
    CommitWait wait = {.err = err};
    int failed = sem_init(&wait.done, 0, 0);
    ASSERT(failed == 0); /* it has no other reason to fail than wrong arguments */
    store_txn_commit(txn, (StoreCompletion){commit_waited, &wait});
    while (sem_wait(&wait.done) != 0)
        ASSERT(errno == EINTR);
    (void)sem_destroy(&wait.done); /* fails only for what is not a semaphore */
    return wait.status;
}

Status store_txn_ingest(StoreTxn *txn, Error *err)
{
    Engine *engine = txn->store->engine;
    if (engine->ops->ingest == NULL)
        return store_txn_commit_wait(txn, err);
    EngineWrites writes = {.tree = txn->writes, .merges = buf_view(&txn->merges)};
    Status status = engine->ops->room(engine, ENGINE_TAKES_ROOM, store_txn_bytes(txn), err);
    if (status == STATUS_OK)
        status = engine->ops->ingest(engine, &writes, err);
    store_txn_abort(txn);
    return status;
}
