/* store.c - see store.h for what a store is, and engine_int.h for what engines do.
 *
 *     full key = | space, u64 big-endian | key, at most STORE_KEY_BYTES_MAX |
 *
 * Big-endian makes a space one contiguous range that ends where the next one begins.
 */
#include "store/store.h"

#include "base/encoding.h"
#include "base/mem.h"
#include "store/store_int.h"

static_assert(sizeof(StoreSpace) == SPACE_BYTES, "a full key begins with the space");

Slice full_key(FullKey *out, StoreSpace space, Slice key)
{
    Slice cut = slice_first(key, STORE_KEY_BYTES_MAX + 1);
    be64_put(out->bytes, space);
    if (cut.len > 0)
        memcpy(out->bytes + SPACE_BYTES, cut.ptr, cut.len);
    return slice_make(out->bytes, SPACE_BYTES + cut.len);
}

Slice full_key_end(FullKey *out, StoreSpace space)
{
    ASSERT(space <= STORE_SPACE_MAX + 1);
    return full_key(out, space + 1, SLICE_EMPTY);
}

Slice full_key_last(FullKey *out, StoreSpace space)
{
    be64_put(out->bytes, space);
    memset(out->bytes + SPACE_BYTES, 0xFF, STORE_KEY_BYTES_MAX + 1);
    return slice_make(out->bytes, sizeof(out->bytes));
}

/* All but those of loads and checkpoints, and 'idle'. */
static void assert_ops(const EngineOps *ops)
{
    ASSERT(ops->get != NULL);
    ASSERT(ops->snapshot_open != NULL);
    ASSERT(ops->snapshot_close != NULL);
    ASSERT(ops->cursor_open != NULL);
    ASSERT(ops->cursor_move != NULL);
    ASSERT(ops->cursor_close != NULL);
    ASSERT(ops->room != NULL);
    ASSERT((ops->write == NULL) != (ops->submit == NULL));
    ASSERT((ops->drain == NULL) == (ops->submit == NULL));
    ASSERT(ops->probe != NULL);
    ASSERT(ops->drop != NULL);
    ASSERT(ops->estimate != NULL);
    ASSERT(ops->usage != NULL);
    ASSERT(ops->close != NULL);
    ASSERT((ops->load_begin == NULL) == (ops->load_add == NULL));
    ASSERT((ops->load_begin == NULL) == (ops->load_merge == NULL));
    ASSERT((ops->load_begin == NULL) == (ops->load_link == NULL));
    ASSERT((ops->load_begin == NULL) == (ops->load_end == NULL));
    ASSERT((ops->checkpoint == NULL) == (ops->checkpoint_remove == NULL));
}

Status store_open(Engine *engine, const Log *log, Store **out, Error *err)
{
    assert_ops(engine->ops);
    Store *store = MEM_NEW(Store);
    store->engine = engine;
    store->damage.log = log;
    int failed = pthread_mutex_init(&store->damage.lock, NULL);
    ASSERT(failed == 0);
    Status status = committer_start(&store->committer, engine, log, err);
    if (status != STATUS_OK) {
        engine->ops->close(engine);
        (void)pthread_mutex_destroy(&store->damage.lock);
        mem_free(store);
        return status;
    }
    *out = store;
    return STATUS_OK;
}

Engine *store_engine(Store *store)
{
    return store->engine;
}

Status store_get(Store *store, const StoreSnapshot *snapshot, StoreSpace space, Slice key,
                 StoreRead read, StoreValue *value, StoreFound *found, Error *err)
{
    ASSERT(snapshot == NULL || snapshot->engine == store->engine);
    FullKey full;
    if (snapshot != NULL && snapshot->read == STORE_READ_MEMORY)
        read = STORE_READ_MEMORY;
    Status status =
        engine_get(store->engine, snapshot, full_key(&full, space, key), read, value, found, err);
    return store_note_read(store, status, err);
}

Status engine_get(Engine *engine, const StoreSnapshot *snapshot, Slice key, StoreRead read,
                  StoreValue *value, StoreFound *found, Error *err)
{
    AUTO(store_value_release) StoreValue got = {0};
    StoreFound answer = STORE_ABSENT;
    bool hidden = false;
    TRY(engine->ops->get(engine, snapshot, key, read, &got, &answer, err));
    if (answer == STORE_FOUND)
        TRY(merge_read(engine->merge, key, &got.data, &hidden, err));
    *found = hidden ? STORE_ABSENT : answer;
    if (*found == STORE_FOUND) {
        *value = got;
        got = (StoreValue){0};
    }
    return STATUS_OK;
}

Status store_note_read(Store *store, Status status, const Error *err)
{
    if (UNLIKELY(status == STATUS_CORRUPT))
        store_note_damage(store, err);
    return status;
}

void store_note_damage(Store *store, const Error *err)
{
    ASSERT(err->status == STATUS_CORRUPT);
    Damage *damage = &store->damage;
    uint64_t before = atomic_fetch_add(&damage->reads, 1);
    pthread_mutex_lock(&damage->lock);
    damage->newest = *err;
    pthread_mutex_unlock(&damage->lock);
    /* Logged once: clients may read the same block as often as they like. */
    if (before == 0 && damage->log != NULL)
        LOG_ERROR(damage->log, "store.damaged", "reason=\"%s\"", err->message);
}

void store_damage(Store *store, StoreDamage *out)
{
    Damage *damage = &store->damage;
    pthread_mutex_lock(&damage->lock);
    *out = (StoreDamage){.reads = atomic_load(&damage->reads), .newest = damage->newest};
    pthread_mutex_unlock(&damage->lock);
}

Status store_check_known(StoreFound found, Error *err)
{
    return found == STORE_UNKNOWN ? engine_not_in_memory(err) : STATUS_OK;
}

Status engine_not_in_memory(Error *err)
{
    return error_set(err, STATUS_TIMEOUT, SUB_NONE, "the answer is on disk, not in memory");
}

StoreSnapshot *store_snapshot_open(Store *store, StoreRead read)
{
    return store->engine->ops->snapshot_open(store->engine, read);
}

void store_snapshot_close(StoreSnapshot *snapshot)
{
    if (snapshot != NULL)
        snapshot->engine->ops->snapshot_close(snapshot);
}

StoreCursor *store_cursor_open(Store *store, const StoreSnapshot *snapshot, StoreSpace space,
                               Slice from, Slice to)
{
    return cursor_open(store, snapshot, NULL, space, from, to);
}

StoreCursor *store_group_open(Store *store, const StoreSnapshot *snapshot, StoreSpace space,
                              Slice head)
{
    return cursor_open_group(store, snapshot, space, head);
}

Status store_drop_spaces(Store *store, StoreSpace first, StoreSpace last, Error *err)
{
    ASSERT(first <= last);
    return store->engine->ops->drop(store->engine, first, last, err);
}

uint64_t store_estimate_bytes(Store *store, StoreSpace space, Slice from, Slice to)
{
    FullKey first_memory, last_memory;
    Slice first = full_key(&first_memory, space, from);
    Slice last = to.len > 0 ? full_key(&last_memory, space, to) : full_key_end(&last_memory, space);
    if (slice_compare(first, last) >= 0)
        return 0;
    return store->engine->ops->estimate(store->engine, first, last);
}

Status store_room(Store *store, Error *err)
{
    return store->engine->ops->room(store->engine, ENGINE_TAKES_ROOM, 0, err);
}

void store_usage(Store *store, StoreUsage *usage)
{
    store->engine->ops->usage(store->engine, usage);
}

Status store_health(Store *store, Error *err)
{
    return committer_health(&store->committer, err);
}

void store_close(Store *store)
{
    if (store == NULL)
        return;
    committer_stop(&store->committer);
    store_free_txns(store);
    store->engine->ops->close(store->engine);
    (void)pthread_mutex_destroy(&store->damage.lock);
    mem_free(store);
}
