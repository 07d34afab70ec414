/* memory_store.c - see memory_store.h.
 *
 * The state is one Tree. A snapshot and a cursor hold a copy of it, which is a reference: a group
 * that is applied afterwards leaves the nodes that they share alone.
 */
#include "store/memory/memory_store.h"

#include "base/mem.h"
#include "store/engine_int.h"

#include <pthread.h>

typedef struct Fault {
    unsigned count;
    Status status;
} Fault;

typedef struct MemoryEngine {
    Engine engine;

    /* Everything below is guarded by 'lock'. */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* 'stall', 'stalled' or 'crashed' */
    Tree state;
    Fault commits;
    Fault gets;
    Fault cursor_steps;
    unsigned forgotten;
    bool full;    /* only what makes room is taken */
    bool stall;   /* groups have to wait */
    bool stalled; /* a group is waiting */
    bool crashed;
    uint64_t groups;
} MemoryEngine;

typedef struct MemorySnapshot {
    StoreSnapshot snapshot;
    Tree state;
} MemorySnapshot;

struct EngineCursor {
    MemoryEngine *memory;
    Tree state;
    StoreRead read;
    Slice from;
    Slice to;
    TreeEntry *at;
};

static const EngineOps MEMORY_OPS;

static MemoryEngine *memory_of(Engine *engine)
{
    return CONTAINER_OF(engine, MemoryEngine, engine);
}

static MemoryEngine *memory_of_store(Store *store)
{
    Engine *engine = store_engine(store);
    ASSERT(engine->ops == &MEMORY_OPS);
    return memory_of(engine);
}

static const Tree *state_of(const StoreSnapshot *snapshot)
{
    return &CONTAINER_OF(snapshot, const MemorySnapshot, snapshot)->state;
}

void memory_store_open(Store **out)
{
    memory_store_open_with(NULL, out);
}

void memory_store_open_with(const StoreMerge *merge, Store **out)
{
    MemoryEngine *memory = MEM_NEW(MemoryEngine);
    memory->engine = (Engine){.ops = &MEMORY_OPS, .merge = merge};
    int failed = pthread_mutex_init(&memory->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&memory->changed, NULL);
    ASSERT(failed == 0);
    Error err;
    Status status = store_open(&memory->engine, NULL, out, &err);
    ASSERT(status == STATUS_OK); /* fails only if no thread can be started */
}

static void set_fault(Store *store, size_t offset, Fault fault)
{
    MemoryEngine *memory = memory_of_store(store);
    ASSERT(fault.status != STATUS_OK);
    pthread_mutex_lock(&memory->lock);
    *(Fault *)((char *)memory + offset) = fault;
    pthread_mutex_unlock(&memory->lock);
}

void memory_store_fail_commits(Store *store, unsigned count, Status status)
{
    set_fault(store, offsetof(MemoryEngine, commits), (Fault){count, status});
}

void memory_store_fail_gets(Store *store, unsigned count, Status status)
{
    set_fault(store, offsetof(MemoryEngine, gets), (Fault){count, status});
}

void memory_store_fail_cursor_steps(Store *store, unsigned count, Status status)
{
    set_fault(store, offsetof(MemoryEngine, cursor_steps), (Fault){count, status});
}

void memory_store_forget(Store *store, unsigned count)
{
    MemoryEngine *memory = memory_of_store(store);
    pthread_mutex_lock(&memory->lock);
    memory->forgotten = count;
    pthread_mutex_unlock(&memory->lock);
}

static void set_flag(Store *store, size_t offset, bool on)
{
    MemoryEngine *memory = memory_of_store(store);
    pthread_mutex_lock(&memory->lock);
    *(bool *)((char *)memory + offset) = on;
    pthread_cond_broadcast(&memory->changed);
    pthread_mutex_unlock(&memory->lock);
}

void memory_store_set_full(Store *store, bool full)
{
    set_flag(store, offsetof(MemoryEngine, full), full);
}

void memory_store_stall(Store *store)
{
    set_flag(store, offsetof(MemoryEngine, stall), true);
}

void memory_store_wait_stalled(Store *store)
{
    MemoryEngine *memory = memory_of_store(store);
    pthread_mutex_lock(&memory->lock);
    while (!memory->stalled)
        pthread_cond_wait(&memory->changed, &memory->lock);
    pthread_mutex_unlock(&memory->lock);
}

void memory_store_release(Store *store)
{
    set_flag(store, offsetof(MemoryEngine, stall), false);
}

void memory_store_crash(Store *store)
{
    set_flag(store, offsetof(MemoryEngine, crashed), true);
}

void memory_store_restart(Store *store)
{
    MemoryEngine *memory = memory_of_store(store);
    pthread_mutex_lock(&memory->lock);
    memory->stall = false;
    memory->crashed = false;
    pthread_mutex_unlock(&memory->lock);
}

uint64_t memory_store_groups(Store *store)
{
    MemoryEngine *memory = memory_of_store(store);
    pthread_mutex_lock(&memory->lock);
    uint64_t groups = memory->groups;
    pthread_mutex_unlock(&memory->lock);
    return groups;
}

/* Fails if this call is one of those that a test wants to fail. */
static Status take_fault(Fault *fault, const char *what, Error *err)
{
    if (fault->count == 0)
        return STATUS_OK;
    fault->count--;
    return error_set(err, fault->status, SUB_NONE, "a test wants this %s to fail", what);
}

static void release_entry(void *owner)
{
    tree_entry_unref(owner);
}

static Status memory_get_locked(MemoryEngine *memory, const StoreSnapshot *snapshot, Slice key,
                                StoreRead read, StoreValue *value, StoreFound *found, Error *err)
{
    TRY(take_fault(&memory->gets, "get", err));
    if (read == STORE_READ_MEMORY && memory->forgotten > 0) {
        memory->forgotten--;
        *found = STORE_UNKNOWN;
        return STATUS_OK;
    }
    TreeEntry *entry = tree_find(snapshot != NULL ? state_of(snapshot) : &memory->state, key);
    *found = entry != NULL ? STORE_FOUND : STORE_ABSENT;
    if (entry != NULL)
        *value = (StoreValue){tree_entry_value(entry), tree_entry_ref(entry), release_entry};
    return STATUS_OK;
}

static Status memory_get(Engine *engine, const StoreSnapshot *snapshot, Slice key, StoreRead read,
                         StoreValue *value, StoreFound *found, Error *err)
{
    MemoryEngine *memory = memory_of(engine);
    pthread_mutex_lock(&memory->lock);
    Status status = memory_get_locked(memory, snapshot, key, read, value, found, err);
    pthread_mutex_unlock(&memory->lock);
    return status;
}

static Tree copy_state(MemoryEngine *memory)
{
    pthread_mutex_lock(&memory->lock);
    Tree state = tree_copy(&memory->state);
    pthread_mutex_unlock(&memory->lock);
    return state;
}

static StoreSnapshot *memory_snapshot_open(Engine *engine, StoreRead read)
{
    MemorySnapshot *snapshot = MEM_NEW(MemorySnapshot);
    snapshot->snapshot = (StoreSnapshot){.engine = engine, .read = read};
    snapshot->state = copy_state(memory_of(engine));
    return &snapshot->snapshot;
}

static void memory_snapshot_close(StoreSnapshot *snapshot)
{
    MemorySnapshot *memory = CONTAINER_OF(snapshot, MemorySnapshot, snapshot);
    tree_done(&memory->state);
    mem_free(memory);
}

static EngineCursor *memory_cursor_open(Engine *engine, const StoreSnapshot *snapshot, Slice from,
                                        Slice to, bool is_group)
{
    (void)is_group; /* a tree has everything in one place */
    EngineCursor *cursor = MEM_NEW(EngineCursor);
    cursor->memory = memory_of(engine);
    cursor->state = snapshot != NULL ? tree_copy(state_of(snapshot)) : copy_state(cursor->memory);
    cursor->read = snapshot != NULL ? snapshot->read : STORE_READ_ANY;
    cursor->from = from;
    cursor->to = to;
    return cursor;
}

static TreeEntry *find_move(const EngineCursor *cursor, EngineMove move, Slice key)
{
    switch (move) {
    case ENGINE_AT_OR_AFTER:
        return tree_at_or_after(&cursor->state, key);
    case ENGINE_BEFORE:
        return tree_before(&cursor->state, key);
    case ENGINE_NEXT:
        ASSERT(cursor->at != NULL);
        return tree_after(&cursor->state, tree_entry_key(cursor->at));
    case ENGINE_PREV:
        ASSERT(cursor->at != NULL);
        return tree_before(&cursor->state, tree_entry_key(cursor->at));
    }
    return NULL;
}

static Status memory_cursor_move(EngineCursor *cursor, EngineMove move, Slice key, EngineItem *item,
                                 bool *found, Error *err)
{
    pthread_mutex_lock(&cursor->memory->lock);
    Status status = take_fault(&cursor->memory->cursor_steps, "cursor step", err);
    if (status == STATUS_OK && cursor->read == STORE_READ_MEMORY && cursor->memory->forgotten > 0) {
        cursor->memory->forgotten--;
        status = engine_not_in_memory(err);
    }
    pthread_mutex_unlock(&cursor->memory->lock);
    TRY(status);

    TreeEntry *entry = find_move(cursor, move, key);
    cursor->at = entry;
    *found = entry != NULL && slice_compare(tree_entry_key(entry), cursor->from) >= 0 &&
             slice_compare(tree_entry_key(entry), cursor->to) < 0;
    if (*found)
        *item = (EngineItem){tree_entry_key(entry), tree_entry_value(entry)};
    return STATUS_OK;
}

static void memory_cursor_close(EngineCursor *cursor)
{
    tree_done(&cursor->state);
    mem_free(cursor);
}

static void apply_entry(void *ctx, TreeEntry *entry)
{
    Tree *state = ctx;
    if (entry->deleted)
        tree_remove(state, tree_entry_key(entry));
    else
        tree_put_entry(state, entry);
}

static void apply_merges(MemoryEngine *memory, Slice records)
{
    AUTO(buf_done) Buf merged;
    buf_init(&merged, STORE_VALUE_BYTES_MAX + 1);
    MergeRecord record;
    while (merge_record_next(&records, &record)) {
        const TreeEntry *entry = tree_find(&memory->state, record.key);
        Slice stored = entry != NULL ? tree_entry_value(entry) : (Slice){0};
        buf_reset(&merged);
        merge_full(memory->engine.merge, record.key, stored, &record.operand, 1, &merged);
        if (merge_is_removable(memory->engine.merge, record.key, buf_view(&merged)))
            tree_remove(&memory->state, record.key);
        else
            tree_put(&memory->state, record.key, buf_view(&merged));
    }
}

static void wait_while_stalled(MemoryEngine *memory)
{
    memory->stalled = memory->stall;
    pthread_cond_broadcast(&memory->changed);
    while (memory->stall && !memory->crashed)
        pthread_cond_wait(&memory->changed, &memory->lock);
    memory->stalled = false;
}

static Status memory_write_locked(MemoryEngine *memory, const EngineWrites *writes, size_t count,
                                  Error *err)
{
    wait_while_stalled(memory);
    if (memory->crashed)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the store has crashed");
    TRY(take_fault(&memory->commits, "commit", err));
    for (size_t i = 0; i < count; i++) {
        tree_each(&writes[i].tree, apply_entry, &memory->state);
        apply_merges(memory, writes[i].merges);
    }
    memory->groups++;
    return STATUS_OK;
}

static Status memory_room(Engine *engine, EngineNeed need, size_t bytes, Error *err)
{
    (void)bytes;
    MemoryEngine *memory = memory_of(engine);
    pthread_mutex_lock(&memory->lock);
    bool refused = memory->full && need == ENGINE_TAKES_ROOM;
    pthread_mutex_unlock(&memory->lock);
    if (refused)
        return error_set(err, STATUS_IO, SUB_NONE, "a test wants the disk to be full");
    return STATUS_OK;
}

static Status memory_write(Engine *engine, const EngineWrites *writes, size_t count, Error *err)
{
    MemoryEngine *memory = memory_of(engine);
    pthread_mutex_lock(&memory->lock);
    Status status = memory_write_locked(memory, writes, count, err);
    pthread_mutex_unlock(&memory->lock);
    return status;
}

static Status memory_probe(Engine *engine, Error *err)
{
    MemoryEngine *memory = memory_of(engine);
    TRY(memory_room(engine, ENGINE_TAKES_ROOM, 0, err));
    pthread_mutex_lock(&memory->lock);
    bool fails = memory->crashed || memory->commits.count > 0;
    pthread_mutex_unlock(&memory->lock);
    if (fails)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "a test wants commits to fail");
    return STATUS_OK;
}

static Status memory_drop(Engine *engine, StoreSpace first, StoreSpace last, Error *err)
{
    MemoryEngine *memory = memory_of(engine);
    FullKey from_memory, to_memory;
    Slice from = full_key(&from_memory, first, SLICE_EMPTY);
    Slice to = full_key_end(&to_memory, last);
    pthread_mutex_lock(&memory->lock);
    Status status = take_fault(&memory->commits, "drop", err);
    const TreeEntry *entry = NULL;
    while (status == STATUS_OK && (entry = tree_at_or_after(&memory->state, from)) != NULL &&
           slice_compare(tree_entry_key(entry), to) < 0) {
        /* The key is copied because tree_remove frees the entry and still compares with it. */
        FullKey key;
        memcpy(key.bytes, entry->bytes, entry->key_len);
        tree_remove(&memory->state, slice_make(key.bytes, entry->key_len));
    }
    pthread_mutex_unlock(&memory->lock);
    return status;
}

/* Exact, because tests have little data. */
static uint64_t memory_estimate(Engine *engine, Slice from, Slice to)
{
    AUTO(tree_done) Tree state = copy_state(memory_of(engine));
    uint64_t bytes = 0;
    const TreeEntry *entry = tree_at_or_after(&state, from);
    while (entry != NULL && slice_compare(tree_entry_key(entry), to) < 0) {
        bytes += entry->key_len + entry->value_len;
        entry = tree_after(&state, tree_entry_key(entry));
    }
    return bytes;
}

static void memory_usage(Engine *engine, StoreUsage *usage)
{
    MemoryEngine *memory = memory_of(engine);
    pthread_mutex_lock(&memory->lock);
    *usage = (StoreUsage){.disk_bytes = 0, .memory_bytes = memory->state.bytes};
    pthread_mutex_unlock(&memory->lock);
}

static void memory_close(Engine *engine)
{
    MemoryEngine *memory = memory_of(engine);
    ASSERT(!memory->stalled);
    tree_done(&memory->state);
    (void)pthread_cond_destroy(&memory->changed);
    (void)pthread_mutex_destroy(&memory->lock);
    mem_free(memory);
}

static const EngineOps MEMORY_OPS = {
    .get = memory_get,
    .snapshot_open = memory_snapshot_open,
    .snapshot_close = memory_snapshot_close,
    .cursor_open = memory_cursor_open,
    .cursor_move = memory_cursor_move,
    .cursor_close = memory_cursor_close,
    .room = memory_room,
    .write = memory_write,
    .probe = memory_probe,
    .drop = memory_drop,
    .estimate = memory_estimate,
    .usage = memory_usage,
    .close = memory_close,
};
