/* txn.c - transactions: a tree of writes over the engine's newest state.
 *
 * The engine gets the tree when the transaction is committed; until then it is not involved. While
 * there is a savepoint, each write notes what it replaces, and rolling back undoes the newest
 * notes. Operands are only ever added at the end of a buffer, and rolling back cuts it.
 *
 * A small transaction is kept when it ends, as it is, and emptied by the writer that uses it again:
 * it ends on the commit thread, for which all writes wait, and memory that a writer's thread frees
 * can be used again by that thread.
 */
#include "base/array.h"
#include "base/latch.h"
#include "base/mem.h"
#include "store/store_int.h"

/* About what an engine adds to each write: type, lengths. Only for store_txn_bytes. */
enum { WRITE_OVERHEAD_BYTES = 8 };

/* A transaction that holds more is not kept. */
#define SPARE_BYTES_MAX ((size_t)64 << 10)

static void drop_savepoint(StoreTxn *txn);
static void empty(StoreTxn *txn);

StoreTxn *store_txn_begin(Store *store)
{
    StoreTxn *txn = object_pool_take(&store->txns);
    if (txn != NULL) {
        ASSERT(txn->store == store);
        ASSERT(txn->savepoint_count == 0);
        empty(txn);
        return txn;
    }
    txn = MEM_NEW(StoreTxn);
    txn->store = store;
    buf_init(&txn->merges, SIZE_MAX); /* the writer bounds a transaction by store_txn_bytes */
    return txn;
}

static void empty(StoreTxn *txn)
{
    tree_done(&txn->writes);
    buf_reset(&txn->merges);
    txn->makes_room = false;
    txn->has_space = false;
}

static void txn_free(StoreTxn *txn)
{
    empty(txn);
    mem_free(txn->savepoints);
    mem_free(txn->undo);
    buf_done(&txn->merges);
    mem_free(txn);
}

void store_free_txns(Store *store)
{
    StoreTxn *txn;
    while ((txn = object_pool_take(&store->txns)) != NULL)
        txn_free(txn);
}

/* A transaction is a part of one space's history: spaces can have different owners (replicated/).
 */
static void note_space(StoreTxn *txn, StoreSpace space)
{
    ASSERT(!txn->has_space || txn->space == space);
    txn->has_space = true;
    txn->space = space;
}

/* Deletes the key if 'value' is NULL. */
static void write_key(StoreTxn *txn, Slice whole, const Slice *value)
{
    TreeEntry *before = NULL;
    TreeEntry *entry = tree_replace(&txn->writes, whole, value, &before);
    if (txn->savepoint_count > 0) {
        ARRAY_GROW(txn->undo, txn->undo_count, txn->undo_capacity, 16);
        txn->undo[txn->undo_count++] = (Undo){entry, before};
    } else if (before != NULL) {
        tree_entry_unref(before);
    }
}

void store_txn_put(StoreTxn *txn, StoreSpace space, Slice key, Slice value)
{
    ASSERT(key.len <= STORE_KEY_BYTES_MAX);
    ASSERT(value.len <= STORE_VALUE_BYTES_MAX);
    note_space(txn, space);
    FullKey full;
    Slice whole = full_key(&full, space, key);
    ASSERT(merge_of(txn->store->engine->merge, whole) == NULL);
    write_key(txn, whole, &value);
}

void store_txn_delete(StoreTxn *txn, StoreSpace space, Slice key)
{
    ASSERT(key.len <= STORE_KEY_BYTES_MAX);
    note_space(txn, space);
    FullKey full;
    Slice whole = full_key(&full, space, key);
    ASSERT(merge_of(txn->store->engine->merge, whole) == NULL);
    write_key(txn, whole, NULL);
}

void store_txn_merge(StoreTxn *txn, StoreSpace space, Slice key, Slice operand)
{
    ASSERT(key.len > 0);
    ASSERT(key.len <= STORE_KEY_BYTES_MAX);
    ASSERT(merge_of_kind(txn->store->engine->merge, (uint8_t)key.ptr[0]) != NULL);
    ASSERT(operand.len <= STORE_VALUE_BYTES_MAX);
    note_space(txn, space);
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
    ARRAY_GROW(txn->savepoints, txn->savepoint_count, txn->savepoint_capacity, 4);
    txn->savepoints[txn->savepoint_count++] = (Savepoint){txn->undo_count, txn->merges.len};
}

void store_txn_rollback(StoreTxn *txn)
{
    ASSERT(txn->savepoint_count > 0);
    Savepoint saved = txn->savepoints[--txn->savepoint_count];
    ASSERT(saved.merge_bytes <= txn->merges.len);
    ASSERT(saved.undo_count <= txn->undo_count);
    while (txn->undo_count > saved.undo_count) {
        Undo undo = txn->undo[--txn->undo_count];
        if (undo.before != NULL) {
            tree_put_entry(&txn->writes, undo.before);
            tree_entry_unref(undo.before);
        } else {
            tree_remove(&txn->writes, tree_entry_key(undo.entry));
        }
    }
    txn->merges.len = saved.merge_bytes;
}

void store_txn_release(StoreTxn *txn)
{
    ASSERT(txn->savepoint_count > 0);
    drop_savepoint(txn);
}

size_t store_txn_bytes(const StoreTxn *txn)
{
    /* The head of an operand's record is as long as WRITE_OVERHEAD_BYTES. */
    return txn->writes.bytes + txn->writes.count * WRITE_OVERHEAD_BYTES + txn->merges.len;
}

void store_txn_makes_room(StoreTxn *txn)
{
    txn->makes_room = true;
}

void store_txn_commit(StoreTxn *txn, StoreCompletion completion)
{
    ASSERT(completion.done != NULL);
    while (txn->savepoint_count > 0)
        drop_savepoint(txn);
    txn->completion = completion;
    committer_push(&txn->store->committer, txn);
}

static bool is_small(const StoreTxn *txn)
{
    return txn->writes.bytes <= SPARE_BYTES_MAX && txn->merges.capacity <= SPARE_BYTES_MAX &&
           txn->undo_capacity * sizeof(Undo) <= SPARE_BYTES_MAX;
}

void store_txn_abort(StoreTxn *txn)
{
    if (txn == NULL)
        return;
    while (txn->savepoint_count > 0)
        drop_savepoint(txn);
    if (!is_small(txn) || !object_pool_give(&txn->store->txns, txn))
        txn_free(txn);
}

static void drop_savepoint(StoreTxn *txn)
{
    /* What an outer savepoint would have to undo stays noted. */
    if (--txn->savepoint_count > 0)
        return;
    while (txn->undo_count > 0) {
        TreeEntry *before = txn->undo[--txn->undo_count].before;
        if (before != NULL)
            tree_entry_unref(before);
    }
}

typedef struct CommitWait {
    Latch done;
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
    latch_post(&wait->done);
}

Status store_txn_commit_wait(StoreTxn *txn, Error *err)
{
    CommitWait wait = {.err = err};
    latch_init(&wait.done);
    store_txn_commit(txn, (StoreCompletion){commit_waited, &wait});
    latch_wait(&wait.done);
    latch_done(&wait.done);
    return wait.status;
}
