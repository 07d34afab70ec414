/* partition.c - see partition.h: life, reading, and the way of a group.
 *
 *     submit --> queue --> writer thread: apply --> store: commit --> commit thread: answer
 *
 * 'is_active' is the right to touch the counters and to apply. Whoever sets it passes it on with
 * the group: from the poster to the writer thread to the commit thread, which gives it back and
 * looks once more whether messages have come in between.
 */
#include "partition/partition.h"

#include "base/mem.h"
#include "index/set.h"
#include "partition/partition_int.h"

#include <time.h>

/* Version 1 is from before every logical partition had a record of what it holds, and has no
 * 'bytes_ever'. */
enum { COUNTERS_VERSION_UNSIZED = 1, COUNTERS_VERSION = 2 };

/* What a group writes before the rest of what has gathered is left to the next one. A message of a
 * few bytes can change an item of 2 MB, so counting messages bounds nothing; and the terms of the
 * index, which are added at the end, take up to ten times as much as the items. */
#define GROUP_BYTES_MAX ((size_t)4 << 20)

typedef struct CountersRecord {
    uint8_t version;
    uint8_t zero[3];
    uint32_t now_s; /* when it was written: see host_time.c; 0 in older data */
    PartitionCounters counters;
} CountersRecord;
static_assert(sizeof(CountersRecord) == 56, "the record is written as it lies in memory");
enum { COUNTERS_UNSIZED_BYTES = 48 };

static const StoreMerge SIZE_MERGE = {
    .kind = KEY_SIZE,
    .merge = size_merge,
    .is_empty = size_is_empty,
};

const StoreMerge PARTITION_MERGE = {
    .kind = KEY_TERM,
    .tail_bytes = TERM_CHUNK_BYTES,
    .merge = set_merge,
    .is_empty = set_value_is_empty,
    .next = &SIZE_MERGE,
};

static const uint8_t COUNTERS_KEY[] = {KEY_COUNTERS};

static void schedule(Partition *partition);
static void on_writer(WorkerJob *job);

static Status counters_damaged(const Partition *partition, Error *err)
{
    return error_set(err, STATUS_CORRUPT, SUB_NONE, "the counters of partition %u are damaged",
                     partition->id);
}

static Status read_record(Partition *partition, const StoreSnapshot *snapshot, StoreRead read,
                          CountersRecord *out, bool *found, Error *err)
{
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound where = STORE_ABSENT;
    TRY(store_get(partition->host->store, snapshot, partition->space,
                  slice_make(COUNTERS_KEY, sizeof(COUNTERS_KEY)), read, &value, &where, err));
    TRY(store_check_known(where, err));
    *found = where == STORE_FOUND;
    *out = (CountersRecord){.version = COUNTERS_VERSION, .counters = {.lsn = 1, .item_next = 1}};
    if (!*found)
        return STATUS_OK;
    bool is_unsized = value.data.len == COUNTERS_UNSIZED_BYTES;
    if (!is_unsized && value.data.len != sizeof(*out))
        return counters_damaged(partition, err);
    memcpy(out, value.data.ptr, value.data.len);
    if (out->version != (is_unsized ? COUNTERS_VERSION_UNSIZED : COUNTERS_VERSION))
        return counters_damaged(partition, err);
    if (is_unsized)
        out->counters.bytes_ever = out->counters.bytes;
    return STATUS_OK;
}

Status partition_read_counters(Partition *partition, const StoreSnapshot *snapshot, StoreRead read,
                               PartitionCounters *out, bool *found, Error *err)
{
    CountersRecord record;
    TRY(read_record(partition, snapshot, read, &record, found, err));
    *out = record.counters;
    return STATUS_OK;
}

void partition_put_counters(const Partition *partition, StoreTxn *txn,
                            const PartitionCounters *counters)
{
    CountersRecord record = {
        .version = partition->has_sizes ? COUNTERS_VERSION : COUNTERS_VERSION_UNSIZED,
        .now_s = partition_host_now_s(partition->host),
        .counters = *counters,
    };
    store_txn_put(txn, partition->space, slice_make(COUNTERS_KEY, sizeof(COUNTERS_KEY)),
                  slice_make(&record, partition->has_sizes ? sizeof(record)
                                                           : (size_t)COUNTERS_UNSIZED_BYTES));
}

bool partition_is_resting(const Partition *partition, uint64_t *turns)
{
    *turns = atomic_load(&partition->turns);
    return !atomic_load(&partition->is_active);
}

static Status load_counters(Partition *partition, bool *found, Error *err)
{
    CountersRecord record;
    TRY(read_record(partition, NULL, STORE_READ_ANY, &record, found, err));
    partition_host_saw_s(partition->host, record.now_s);
    partition->counters = record.counters;
    partition->has_sizes = record.version == COUNTERS_VERSION;
    if (!*found)
        partition->counters.ttl_swept_s = partition->schema->default_ttl_s;
    return STATUS_OK;
}

void partition_host_stop(PartitionHost *host)
{
    atomic_store(&host->is_closing, true);
    /* At the end of the process, once: not worth a lock in every write. */
    while (atomic_load(&host->active) > 0)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    groups_free(host);
}

static void publish_counters(Partition *partition)
{
    atomic_store_explicit(&partition->items, partition->counters.items, memory_order_relaxed);
    atomic_store_explicit(&partition->bytes, partition->counters.bytes, memory_order_relaxed);
    atomic_store_explicit(&partition->bytes_ever, partition->counters.bytes_ever,
                          memory_order_relaxed);
    atomic_store_explicit(&partition->ttl_swept_s, partition->counters.ttl_swept_s,
                          memory_order_relaxed);
    atomic_store_explicit(&partition->lsn, partition->counters.lsn, memory_order_release);
}

static Status load_purges(Partition *partition, Error *err)
{
    uint8_t from[] = {KEY_PURGE};
    uint8_t to[] = {KEY_PURGE + 1};
    AUTO(store_cursor_close)
    StoreCursor *cursor =
        store_cursor_open(partition->host->store, NULL, partition->space,
                          slice_make(from, sizeof(from)), slice_make(to, sizeof(to)));
    uint32_t count = 0;
    for (;;) {
        Slice key;
        Slice value;
        bool found = false;
        TRY(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            break;
        if (value.len != sizeof(uint64_t) || key.len - 1 > EPK_BYTES_MAX || count == PURGES_MAX)
            return error_set(err, STATUS_CORRUPT, SUB_NONE,
                             "a purge record of partition %u is damaged", partition->id);
        if (partition->purges == NULL)
            partition->purges = MEM_NEW_ARRAY(Purge, PURGES_MAX);
        Purge *purge = &partition->purges[count++];
        purge->epk.len = (uint16_t)(key.len - 1);
        memcpy(purge->epk.bytes, key.ptr + 1, key.len - 1);
        memcpy(&purge->lsn, value.ptr, sizeof(purge->lsn));
    }
    atomic_store(&partition->purge_count, count);
    return STATUS_OK;
}

static Status load(Partition *partition, Error *err)
{
    bool found = false;
    partition->counters = (PartitionCounters){.lsn = 1, .item_next = 1}; /* should it fail */
    TRY(load_counters(partition, &found, err));
    TRY(load_purges(partition, err));
    return partition_load_index(partition, !found, err);
}

Status partition_check_damage(const Partition *partition, Error *err)
{
    if (LIKELY(partition->damage == NULL))
        return STATUS_OK;
    *err = *partition->damage;
    return err->status;
}

Status partition_open(PartitionHost *host, StoreSpace space, uint32_t id, PartitionSchema *schema,
                      Partition **out, Error *err)
{
    AUTO(partition_unref) Partition *partition = MEM_NEW(Partition);
    atomic_init(&partition->refs, 1);
    partition->host = host;
    partition->space = space;
    partition->id = id;
    partition->schema = schema_ref(schema);
    int failed = pthread_mutex_init(&partition->lock, NULL);
    ASSERT(failed == 0);
    queue_init(&partition->queue);
    buf_init(&partition->notes, MOVE_NOTES_BYTES_MAX);
    partition->maintain.kind = MESSAGE_MAINTAIN;
    partition->job.run = on_writer;
    Status status = load(partition, err);
    if (status == STATUS_CORRUPT) {
        /* One damaged block is no reason to keep everything else from being served. */
        LOG_ERROR(host->log, "partition.damaged", "partition=%u space=%llu reason=%s", id,
                  (unsigned long long)space, err->message);
        partition->damage = mem_copy(err, sizeof(*err));
        status = STATUS_OK;
    }
    TRY(status);
    if (!partition->has_sizes && partition->damage == NULL && !atomic_load(&host->is_closing))
        partition_count_sizes(partition);
    publish_counters(partition);
    *out = TAKE(partition);
    return STATUS_OK;
}

Partition *partition_ref(Partition *partition)
{
    atomic_fetch_add_explicit(&partition->refs, 1, memory_order_relaxed);
    return partition;
}

void partition_unref(Partition *partition)
{
    if (partition == NULL ||
        atomic_fetch_sub_explicit(&partition->refs, 1, memory_order_acq_rel) > 1)
        return;
    schema_unref(partition->schema);
    index_state_unref(partition->index);
    index_state_unref(partition->index_seen);
    buf_done(&partition->notes);
    bulk_free(partition->bulk);
    PartitionGone gone = partition->gone;
    void *gone_ctx = partition->gone_ctx;
    StoreSpace space = partition->space;
    (void)pthread_mutex_destroy(&partition->lock);
    mem_free(partition->purges);
    mem_free(partition->damage);
    mem_free(partition);
    if (gone != NULL)
        gone(gone_ctx, space);
}

PartitionSchema *partition_schema(Partition *partition)
{
    (void)pthread_mutex_lock(&partition->lock);
    PartitionSchema *schema = schema_ref(partition->schema);
    (void)pthread_mutex_unlock(&partition->lock);
    return schema;
}

void partition_set_schema(Partition *partition, PartitionSchema *schema)
{
    (void)pthread_mutex_lock(&partition->lock);
    PartitionSchema *old = partition->schema;
    partition->schema = schema_ref(schema);
    bool is_stale = partition_index_is_stale(partition);
    (void)pthread_mutex_unlock(&partition->lock);
    schema_unref(old);
    if (is_stale)
        (void)partition_maintain(partition); /* if it cannot be now, it will be later */
}

uint64_t partition_lsn(const Partition *partition)
{
    return atomic_load_explicit(&partition->lsn, memory_order_acquire);
}

PartitionUsage partition_usage(const Partition *partition)
{
    return (PartitionUsage){
        .items = atomic_load_explicit(&partition->items, memory_order_relaxed),
        .bytes = atomic_load_explicit(&partition->bytes, memory_order_relaxed),
        .bytes_ever = atomic_load_explicit(&partition->bytes_ever, memory_order_relaxed),
    };
}

uint64_t partition_index_bytes(const Partition *partition)
{
    static const uint8_t from[] = {KEY_TERM};
    static const uint8_t to[] = {KEY_TERM + 1};
    return store_estimate_bytes(partition->host->store, partition->space,
                                slice_make(from, sizeof(from)), slice_make(to, sizeof(to)));
}

uint64_t purges_find(const Purge *purges, size_t count, Slice epk)
{
    uint64_t lsn = 0;
    for (size_t i = 0; i < count; i++) {
        if (purges[i].lsn > lsn && slice_starts_with(epk, epk_slice(&purges[i].epk)))
            lsn = purges[i].lsn;
    }
    return lsn;
}

uint64_t partition_purged_lsn(Partition *partition, Slice epk)
{
    if (LIKELY(atomic_load_explicit(&partition->purge_count, memory_order_acquire) == 0))
        return 0;
    (void)pthread_mutex_lock(&partition->lock);
    uint32_t count = atomic_load_explicit(&partition->purge_count, memory_order_relaxed);
    uint64_t lsn = purges_find(partition->purges, count, epk);
    (void)pthread_mutex_unlock(&partition->lock);
    return lsn;
}

const Purge *partition_copy_purges(Partition *partition, Arena *arena, size_t *count)
{
    *count = 0;
    if (LIKELY(atomic_load_explicit(&partition->purge_count, memory_order_acquire) == 0))
        return NULL;
    (void)pthread_mutex_lock(&partition->lock);
    *count = atomic_load_explicit(&partition->purge_count, memory_order_relaxed);
    Slice bytes = slice_make(partition->purges, *count * sizeof(Purge));
    const void *copy = arena_copy(arena, bytes).ptr;
    (void)pthread_mutex_unlock(&partition->lock);
    return copy;
}

Status partition_get_bytes(Partition *partition, Slice key, bool puts, StoreRead read,
                           StoreValue *value, StoreFound *found, Error *err)
{
    const PartitionHost *host = partition->host;
    if (host->cache == NULL)
        return store_get(host->store, NULL, partition->space, key, read, value, found, err);
    uint64_t hash = item_cache_hash(host->cache, partition->space, key);
    uint32_t ticket = 0;
    if (item_cache_get(host->cache, hash, partition->space, key, value, &ticket)) {
        *found = STORE_FOUND;
        return STATUS_OK;
    }
    TRY(store_get(host->store, NULL, partition->space, key, read, value, found, err));
    if (*found == STORE_FOUND && puts)
        item_cache_put(host->cache, hash, partition->space, key, value->data, ticket);
    return STATUS_OK;
}

Status partition_get(Partition *partition, const PartitionSchema *schema, const Epk *epk, Slice id,
                     StoreRead read, Item *item, StoreValue *value, StoreFound *found, Error *err)
{
    *found = STORE_ABSENT;
    TRY(partition_check_damage(partition, err));
    if (id.len > ITEM_ID_BYTES_MAX)
        return STATUS_OK;
    Key key;
    key_item(&key, epk_slice(epk), id);
    uint64_t purged_lsn = partition_purged_lsn(partition, epk_slice(epk));
    TRY(partition_get_bytes(partition, key_slice(&key), true, read, value, found, err));
    if (*found != STORE_FOUND)
        return STATUS_OK;
    Status status = item_decode(value->data, item, err);
    bool gone = status != STATUS_OK || item_has_expired(partition->host, schema, item) ||
                item->lsn <= purged_lsn;
    if (gone) {
        store_value_release(value);
        *found = STORE_ABSENT;
    }
    return status;
}

Status partition_locate(Partition *partition, uint64_t number, Arena *arena, Slice *epk, Slice *id,
                        bool *found, Error *err)
{
    TRY(partition_check_damage(partition, err));
    Key key;
    key_number(&key, number);
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound where = STORE_ABSENT;
    TRY(store_get(partition->host->store, NULL, partition->space, key_slice(&key), STORE_READ_ANY,
                  &value, &where, err));
    *found = where == STORE_FOUND;
    if (!*found)
        return STATUS_OK;
    return location_decode(arena_copy(arena, value.data), epk, id, err);
}

/* Messages. */

static Status dropped(const Partition *partition, Error *err)
{
    if (atomic_load_explicit(&partition->is_moved, memory_order_acquire))
        return error_set(err, STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE,
                         "The partition key range %u is gone: others have taken it over.",
                         partition->id);
    return error_set(err, STATUS_NOT_FOUND, SUB_OWNER_NOT_FOUND,
                     "Owner resource does not exist: the container was deleted.");
}

static void stop_waiting(Partition *partition, size_t bytes)
{
    atomic_fetch_sub_explicit(&partition->waiting_bytes, bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&partition->host->waiting_bytes, bytes, memory_order_relaxed);
}

/* Two additions in memory, whatever waits. */
static Status begin_waiting(Partition *partition, size_t bytes, Error *err)
{
    PartitionHost *host = partition->host;
    uint64_t own =
        atomic_fetch_add_explicit(&partition->waiting_bytes, bytes, memory_order_relaxed);
    uint64_t all = atomic_fetch_add_explicit(&host->waiting_bytes, bytes, memory_order_relaxed);
    if (LIKELY(own + bytes <= PARTITION_WAITING_BYTES_MAX &&
               all + bytes <= PARTITION_HOST_WAITING_BYTES_MAX))
        return STATUS_OK;
    stop_waiting(partition, bytes);
    bool is_own = own + bytes > PARTITION_WAITING_BYTES_MAX;
    Status status = error_set(err, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                              "%s has %llu MB of writes waiting for the disk; try again later.",
                              is_own ? "This partition" : "The server",
                              (unsigned long long)(is_own ? own : all) >> 20);
    err->retry_after_ms = 100;
    return status;
}

static Status post(Partition *partition, PartitionMessage *message, size_t bytes, Error *err)
{
    if (atomic_load_explicit(&partition->is_dropped, memory_order_acquire))
        return dropped(partition, err);
    TRY(partition_check_damage(partition, err));
    message->bytes = PARTITION_MESSAGE_BYTES + bytes;
    TRY(begin_waiting(partition, message->bytes, err));
    if (queue_push(&partition->queue, &message->node))
        schedule(partition);
    return STATUS_OK;
}

Status partition_submit(Partition *partition, PartitionWrite *write, Error *err)
{
    write->message.kind = MESSAGE_WRITE;
    write->status = STATUS_OK;
    write->read_bytes = 0;
    write->patched_bytes = 0;
    /* The arena has the documents and all that the sender needs for the answer. */
    return post(partition, &write->message, write->arena == NULL ? 0 : arena_used(write->arena),
                err);
}

Status partition_purge(Partition *partition, PartitionPurge *purge, Error *err)
{
    purge->message.kind = MESSAGE_PURGE;
    purge->status = STATUS_OK;
    return post(partition, &purge->message, 0, err);
}

/* Not through post(): a drop is never refused. */
void partition_drop(Partition *partition, PartitionDrop *drop)
{
    drop->message.kind = MESSAGE_DROP;
    drop->message.bytes = 0;
    atomic_store_explicit(&partition->is_dropped, true, memory_order_release);
    if (queue_push(&partition->queue, &drop->message.node))
        schedule(partition);
}

bool partition_maintain(Partition *partition)
{
    if (atomic_load(&partition->host->is_closing) || partition->damage != NULL)
        return false;
    (void)pthread_mutex_lock(&partition->lock);
    bool has_work = partition->schema->default_ttl_s != 0 || partition_index_is_stale(partition) ||
                    atomic_load(&partition->purge_count) > 0;
    (void)pthread_mutex_unlock(&partition->lock);
    if (!has_work || atomic_exchange(&partition->maintain_posted, true))
        return has_work;
    Error err;
    if (post(partition, &partition->maintain, 0, &err) != STATUS_OK)
        atomic_store(&partition->maintain_posted, false); /* there will be another time */
    return true;
}

/* A reference is held while the partition is with a writer or on its way to the disk. */
static void schedule(Partition *partition)
{
    if (atomic_exchange(&partition->is_active, true))
        return;
    atomic_fetch_add(&partition->turns, 1);
    (void)partition_ref(partition);
    atomic_fetch_add(&partition->host->active, 1);
    bool taken = workers_post(partition->host->writers, &partition->job);
    ASSERT(taken); /* the writers have a thread, and a queue as long as there can be partitions */
}

/* Gives the right to apply back. A message that came in while it was held found the partition
 * active and woke nobody, so it is looked for afterwards. What a group had no room for is next, and
 * no reason to let go. */
static void release(Partition *partition)
{
    PartitionHost *host = partition->host;
    if (partition->rest != NULL) {
        bool taken = workers_post(host->writers, &partition->job);
        ASSERT(taken); /* as in schedule() */
        return;
    }
    atomic_store(&partition->is_active, false);
    if (atomic_load(&partition->queue.newest) != NULL)
        schedule(partition);
    partition_unref(partition);
    atomic_fetch_sub(&host->active, 1);
}

static void answer(Group *group, const Error *err)
{
    uint64_t lsn = partition_lsn(group->partition);
    size_t bytes = 0;
    for (QueueNode *node = group->messages; node != NULL;) {
        PartitionMessage *message = CONTAINER_OF(node, PartitionMessage, node);
        node = node->next;
        bytes += message->bytes;
        if (message->kind == MESSAGE_WRITE) {
            PartitionWrite *write = CONTAINER_OF(message, PartitionWrite, message);
            write->lsn = lsn;
            if (err != NULL) {
                write->status = err->status;
                write->error = *err;
            }
            write->done(write);
        } else if (message->kind == MESSAGE_PURGE) {
            PartitionPurge *purge = CONTAINER_OF(message, PartitionPurge, message);
            purge->lsn = lsn;
            if (err != NULL) {
                purge->status = err->status;
                purge->error = *err;
            }
            purge->done(purge);
        } else if (message->kind == MESSAGE_DROP) {
            PartitionDrop *drop = CONTAINER_OF(message, PartitionDrop, message);
            drop->done(drop);
        } else if (message->kind == MESSAGE_MAINTAIN) {
            /* Not before: posted again, the message would leave this list for the queue. */
            atomic_store(&group->partition->maintain_posted, false);
        } else {
            Turn *turn = CONTAINER_OF(message, Turn, message);
            if (err != NULL) {
                turn->status = err->status;
                turn->error = *err;
            }
            (void)sem_post(&turn->done);
        }
    }
    stop_waiting(group->partition, bytes);
}

/* There is one purge per EPK, as there is one key: another one for the same EPK makes it cover
 * more, and so begin again. */
static void add_purge(Partition *partition, const Purge *purge, uint32_t *count)
{
    uint32_t at = 0;
    while (at < *count &&
           !slice_equal(epk_slice(&partition->purges[at].epk), epk_slice(&purge->epk)))
        at++;
    ASSERT(at < PURGES_MAX);
    partition->purges[at] = *purge;
    if (at == *count)
        ++*count;
    else if (at == 0)
        partition->upkeep.purge_position.len = 0;
}

static void update_purges(Partition *partition, const Group *group)
{
    if (group->purge_count == 0 && !group->purge_done)
        return;
    (void)pthread_mutex_lock(&partition->lock);
    uint32_t count = atomic_load(&partition->purge_count);
    if (partition->purges == NULL)
        partition->purges = MEM_NEW_ARRAY(Purge, PURGES_MAX);
    if (group->purge_done)
        partition->purges[0] = partition->purges[--count];
    for (size_t i = 0; i < group->purge_count; i++)
        add_purge(partition, &group->purges[i], &count);
    atomic_store_explicit(&partition->purge_count, count, memory_order_release);
    (void)pthread_mutex_unlock(&partition->lock);
}

static void take_index(Partition *partition, Group *group)
{
    partition->index_is_stored = true;
    partition->index_position = group->index_position;
    IndexState *old = partition->index;
    partition->index = index_state_ref(group->index);
    index_state_unref(old);
}

/* When what they are about can be read. Too many are told from all by a buffer that is full. */
static void take_notes(Partition *partition, Group *group)
{
    if (LIKELY(group->notes.len == 0))
        return;
    (void)pthread_mutex_lock(&partition->lock);
    buf_slice(&partition->notes, buf_view(&group->notes));
    partition->notes.full = partition->notes.full || group->notes.full;
    (void)pthread_mutex_unlock(&partition->lock);
}

/* On the commit thread. */
static void on_commit(void *ctx, const Error *err)
{
    Group *group = ctx;
    Partition *partition = group->partition;
    if (err == NULL) {
        /* First of all: who sees the new LSN must not see an old item. */
        group_tell_cache(group);
        partition->counters = group->counters;
        if (group->upkeep != NULL)
            partition->upkeep = *group->upkeep;
        update_purges(partition, group);
        take_index(partition, group);
        publish_counters(partition);
        take_notes(partition, group);
    }
    if (group->index_is_changed)
        partition_publish_index(partition, partition->index, partition_index_percent(partition));
    bool has_more = group->has_more && err == NULL;
    answer(group, err);
    group_end(group);
    if (has_more)
        (void)partition_maintain(partition);
    release(partition);
}

/* Whoever looked at 'is_dropped' just before it was set may post behind the drop. Its space may be
 * gone by then, so nothing must be written to it. */
static void refuse_message(const Partition *partition, PartitionMessage *message)
{
    if (message->kind == MESSAGE_WRITE) {
        PartitionWrite *write = CONTAINER_OF(message, PartitionWrite, message);
        write->status = dropped(partition, &write->error);
    } else if (message->kind == MESSAGE_PURGE) {
        PartitionPurge *purge = CONTAINER_OF(message, PartitionPurge, message);
        purge->status = dropped(partition, &purge->error);
    } else if (message->kind != MESSAGE_DROP && message->kind != MESSAGE_MAINTAIN) {
        Turn *turn = CONTAINER_OF(message, Turn, message);
        turn->status = dropped(partition, &turn->error);
    }
}

static void apply_message(Group *group, PartitionMessage *message)
{
    if (group->partition->is_over) {
        refuse_message(group->partition, message);
        return;
    }
    Error err;
    switch (message->kind) {
    case MESSAGE_WRITE:
        group_apply_write(group, CONTAINER_OF(message, PartitionWrite, message));
        break;
    case MESSAGE_PURGE:
        group_apply_purge(group, CONTAINER_OF(message, PartitionPurge, message));
        break;
    case MESSAGE_DROP:
        group->partition->is_over = true;
        break;
    case MESSAGE_WATCH:
        atomic_store(&group->partition->is_watched, true);
        break;
    case MESSAGE_IMPORT:
        group_apply_import(group, CONTAINER_OF(message, Import, turn.message));
        break;
    case MESSAGE_MAINTAIN:
        if (group_maintain(group, &err) != STATUS_OK)
            LOG_WARN(group->partition->host->log, "partition.maintain_failed",
                     "partition=%u reason=%s", group->partition->id, err.message);
        break;
    default:
        ASSERT(!"a message of an unknown kind");
    }
}

static bool is_fence(const QueueNode *node)
{
    return CONTAINER_OF(node, PartitionMessage, node)->kind == MESSAGE_FENCE;
}

/* Applies messages until the group writes enough, or up to a fence; returns the first that is left.
 */
static QueueNode *apply_messages(Group *group)
{
    QueueNode *node = group->messages;
    while (node != NULL) {
        apply_message(group, CONTAINER_OF(node, PartitionMessage, node));
        QueueNode *next = node->next;
        if (next != NULL && (is_fence(next) || store_txn_bytes(group->txn) >= GROUP_BYTES_MAX ||
                             arena_used(&group->keep) >= GROUP_KEEP_BYTES_MAX)) {
            node->next = NULL;
            return next;
        }
        node = next;
    }
    return NULL;
}

/* Everything before it is durable. The right to apply goes to whoever put it there. */
static void stand_at_fence(Partition *partition, QueueNode *fence)
{
    Turn *turn = CONTAINER_OF(fence, Turn, message.node);
    partition->rest = fence->next;
    stop_waiting(partition, turn->message.bytes);
    (void)sem_post(&turn->done);
}

Status partition_begin_turn(Partition *partition, Turn *turn, int kind, Error *err)
{
    turn->status = STATUS_OK;
    turn->message.kind = kind;
    int failed = sem_init(&turn->done, 0, 0);
    ASSERT(failed == 0);
    Status status = post(partition, &turn->message, 0, err);
    if (status != STATUS_OK)
        (void)sem_destroy(&turn->done);
    return status;
}

Status partition_end_turn(Turn *turn, Error *err)
{
    while (sem_wait(&turn->done) != 0)
        continue; /* a signal */
    (void)sem_destroy(&turn->done);
    if (turn->status != STATUS_OK)
        *err = turn->error;
    return turn->status;
}

Status partition_take_turn(Partition *partition, Turn *turn, int kind, Error *err)
{
    TRY(partition_begin_turn(partition, turn, kind, err));
    return partition_end_turn(turn, err);
}

void partition_unfence(Partition *partition)
{
    bool taken = workers_post(partition->host->writers, &partition->job);
    ASSERT(taken); /* as in schedule() */
}

void partition_retire(Partition *partition, PartitionGone gone, void *ctx)
{
    partition->gone = gone;
    partition->gone_ctx = ctx;
    partition->is_over = true;
    atomic_store_explicit(&partition->is_moved, true, memory_order_release);
    atomic_store_explicit(&partition->is_dropped, true, memory_order_release);
    partition_unfence(partition);
}

/* On a writer thread. */
static void on_writer(WorkerJob *job)
{
    Partition *partition = CONTAINER_OF(job, Partition, job);
    QueueNode *messages =
        partition->rest != NULL ? TAKE(partition->rest) : queue_take(&partition->queue);
    if (messages == NULL) {
        release(partition);
        return;
    }
    if (is_fence(messages) && !partition->is_over) {
        stand_at_fence(partition, messages);
        return;
    }
    Group *group = group_new(partition);
    group->messages = messages;
    partition->rest = apply_messages(group);
    if (group->is_changed) {
        partition_put_counters(partition, group->txn, &group->counters);
        group_finish_sizes(group);
        group_finish_index(group);
        if (!group->takes_room)
            store_txn_makes_room(group->txn);
        store_txn_commit(group->txn, (StoreCompletion){.done = on_commit, .ctx = group});
        return;
    }
    /* Nothing to write: the answers follow from what is durable already. */
    store_txn_abort(group->txn);
    answer(group, NULL);
    group_end(group);
    release(partition);
}
