/* partition.c - see partition.h: life, reading, and the way in for messages. What a group of them
 * goes through is in group_run.c.
 */
#include "partition/partition.h"

#include "base/mem.h"
#include "base/random.h"
#include "index/set.h"
#include "partition/group_int.h"
#include "partition/transaction_int.h"

#include <time.h>

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

void partition_host_stop(PartitionHost *host)
{
    atomic_store(&host->is_closing, true);
    transactions_stop(host);
    /* At the end of the process, once: not worth a lock in every write. */
    while (atomic_load(&host->active) > 0)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    groups_free(host);
}

/* ---- life ---- */

static Status load_purges(Partition *partition, Error *err)
{
    uint8_t from[] = {KEY_PURGE};
    uint8_t to[] = {KEY_PURGE + 1};
    AUTO(store_cursor_close)
    StoreCursor *cursor =
        store_cursor_open(partition->host->store, NULL, partition->space,
                          slice_make(from, sizeof(from)), slice_make(to, sizeof(to)));
    for (;;) {
        Slice key;
        Slice value;
        bool found = false;
        TRY(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return STATUS_OK;
        uint64_t lsn = 0;
        bool is_good = value.len == sizeof(lsn) && key.len - 1 <= EPK_BYTES_MAX;
        if (is_good)
            memcpy(&lsn, value.ptr, sizeof(lsn));
        if (!is_good || !purge_list_load(&partition->purges, slice_from(key, 1), lsn))
            return error_set(err, STATUS_CORRUPT, SUB_NONE,
                             "a purge record of partition %u is damaged", partition->id);
    }
}

static Status load(Partition *partition, Error *err)
{
    bool found = false;
    TRY(partition_load_counters(partition, &found, err));
    TRY(load_purges(partition, err));
    TRY(partition_load_baselines(partition, err));
    return partition_load_index(partition, !found, err);
}

/* At random: after a restart within a second no version gets the ETag of one from before. */
static void begin_stamps(Partition *partition)
{
    uint32_t first = 0;
    random_secret(&first, sizeof(first));
    atomic_init(&partition->stamp_next, first);
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
    ASSERT(host->store != NULL);
    ASSERT(host->writers != NULL);
    AUTO(partition_unref) Partition *partition = MEM_NEW(Partition);
    atomic_init(&partition->refs, 1);
    partition->host = host;
    partition->space = space;
    partition->id = id;
    partition->cache_name = atomic_fetch_add(&host->openings, 1) + 1;
    atomic_init(&partition->state, PARTITION_SERVING);
    current_schema_init(&partition->current, schema);
    purge_list_init(&partition->purges);
    inbox_init(&partition->inbox, partition_run);
    begin_stamps(partition);
    Status status = load(partition, err);
    if (status == STATUS_CORRUPT) {
        /* One damaged block is no reason to keep everything else from being served (I15). */
        LOG_ERROR(host->log, "partition.damaged", "partition=%u space=%llu reason=%s", id,
                  (unsigned long long)space, err->message);
        partition->damage = mem_copy(err, sizeof(*err));
        status = STATUS_OK;
    }
    TRY(status);
    if (!partition->has_sizes && partition->damage == NULL && !atomic_load(&host->is_closing))
        partition_count_sizes(partition);
    if (!partition->has_log && partition->has_sizes && partition->damage == NULL &&
        !atomic_load(&host->is_closing))
        partition_build_log(partition);
    atomic_init(&partition->trim_due_s,
                partition->writer.counters.history_entries > 0 ? 0 : UINT64_MAX);
    atomic_init(&partition->item_next, partition->writer.counters.item_next);
    counters_publish(&partition->published, &partition->writer.counters);
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
    ASSERT(!atomic_load_explicit(&partition->inbox.is_active, memory_order_relaxed));
    current_schema_done(&partition->current);
    purge_list_done(&partition->purges);
    index_state_unref(partition->writer.index);
    bulk_free(partition->writer.bulk);
    epk_locks_done(&partition->locks);
    mem_free(partition->damage);
    PartitionGone gone = partition->gone;
    void *gone_ctx = partition->gone_ctx;
    StoreSpace space = partition->space;
    mem_free(partition);
    if (gone != NULL)
        gone(gone_ctx, space);
}

void partition_set_schema(Partition *partition, PartitionSchema *schema)
{
    bool has_work = current_schema_replace(&partition->current, schema);
    /* It may keep its history for another time. */
    if (atomic_load_explicit(&partition->trim_due_s, memory_order_relaxed) != UINT64_MAX) {
        atomic_store_explicit(&partition->trim_due_s, 0, memory_order_relaxed);
        has_work = true;
    }
    if (has_work)
        (void)partition_maintain(partition); /* if it cannot be now, it will be later */
}

/* ---- reading ---- */

/* A client gives up after some tries. So it is told to wait for as long again as the restore has
 * taken so far: the tries last for a thousand times the first wait. */
enum { RESTORE_RETRY_MS_MIN = 5, RESTORE_RETRY_MS_MAX = 2000 };

static Status is_being_restored(const Partition *partition, Error *err)
{
    Status status = error_set(err, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                              "A snapshot of the database is being restored; try again.");
    uint64_t begun_us = atomic_load(&partition->restore_begun_us);
    uint64_t ms = (clock_monotonic_us(partition->host->clock) - begun_us) / 1000;
    err->retry_after_ms = ms < RESTORE_RETRY_MS_MIN   ? RESTORE_RETRY_MS_MIN
                          : ms > RESTORE_RETRY_MS_MAX ? RESTORE_RETRY_MS_MAX
                                                      : (uint32_t)ms;
    return status;
}

bool partition_is_stopped(const Partition *partition)
{
    return UNLIKELY(partition_state(partition) == PARTITION_STOPPED);
}

/* Looked at after something was read, once: a partition that is stopped stays so, and what is seen
 * before that is nobody else's. */
static Status check_served(const Partition *partition, Error *err)
{
    return partition_is_stopped(partition) ? partition_refuse(partition, err) : STATUS_OK;
}

Status partition_begin_read(const Partition *partition, uint64_t *restores, Error *err)
{
    *restores = atomic_load(&partition->restores);
    return LIKELY(*restores % 2 == 0) ? STATUS_OK : is_being_restored(partition, err);
}

Status partition_end_read(const Partition *partition, uint64_t restores, Error *err)
{
    TRY(check_served(partition, err));
    return LIKELY(atomic_load(&partition->restores) == restores)
               ? STATUS_OK
               : is_being_restored(partition, err);
}

unsigned partition_index_progress(Partition *partition)
{
    return current_schema_index_progress(&partition->current);
}

uint64_t partition_lsn(const Partition *partition)
{
    return atomic_load_explicit(&partition->published.lsn, memory_order_acquire);
}

PartitionUsage partition_usage(const Partition *partition)
{
    PartitionCounters counters = counters_published(&partition->published);
    return (PartitionUsage){
        .items = counters.items,
        .bytes = counters.bytes,
        .bytes_ever = counters.bytes_ever,
    };
}

uint64_t partition_index_bytes(const Partition *partition)
{
    static const uint8_t from[] = {KEY_TERM};
    static const uint8_t to[] = {KEY_TERM + 1};
    return store_estimate_bytes(partition->host->store, partition->space,
                                slice_make(from, sizeof(from)), slice_make(to, sizeof(to)));
}

Status partition_get_bytes(Partition *partition, Slice key, bool puts, StoreRead read,
                           StoreValue *value, StoreFound *found, Error *err)
{
    const PartitionHost *host = partition->host;
    if (host->cache == NULL)
        return store_get(host->store, NULL, partition->space, key, read, value, found, err);
    uint64_t name = partition->cache_name;
    uint64_t hash = item_cache_hash(host->cache, name, key);
    uint32_t ticket = 0;
    if (item_cache_get(host->cache, hash, name, key, value, &ticket)) {
        *found = STORE_FOUND;
        return STATUS_OK;
    }
    TRY(store_get(host->store, NULL, partition->space, key, read, value, found, err));
    if (*found == STORE_FOUND && puts)
        item_cache_put(host->cache, hash, name, key, value->data, ticket);
    return STATUS_OK;
}

/* The time that decides whether the item has expired. Without a time to live the clock is not read.
 */
static uint64_t now_for(PartitionHost *host, const PartitionSchema *schema, const Item *item)
{
    return item_expires_at_s(schema, item) == UINT64_MAX ? 0 : partition_host_now_s(host);
}

Status partition_get(Partition *partition, const PartitionSchema *schema, const Epk *epk, Slice id,
                     StoreRead read, Item *item, StoreValue *value, StoreFound *found, Error *err)
{
    *found = STORE_ABSENT;
    uint64_t restores = 0;
    TRY(partition_check_damage(partition, err));
    TRY(partition_begin_read(partition, &restores, err));
    if (id.len > ITEM_ID_BYTES_MAX)
        return STATUS_OK;
    Key key;
    key_item(&key, epk_slice(epk), id);
    uint64_t purged_lsn = purge_list_find(&partition->purges, epk_slice(epk)); /* first (I6) */
    TRY(partition_get_bytes(partition, key_slice(&key), true, read, value, found, err));
    if (*found != STORE_FOUND)
        return check_served(partition, err);
    Status status = item_decode(value->data, item, err);
    if (UNLIKELY(partition_is_stopped(partition)))
        status = partition_refuse(partition, err);
    if (status != STATUS_OK ||
        item_is_gone(schema, item, now_for(partition->host, schema, item), purged_lsn)) {
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
    TRY(check_served(partition, err));
    *found = where == STORE_FOUND;
    if (!*found)
        return STATUS_OK;
    return location_decode(arena_copy(arena, value.data), epk, id, err);
}

/* ---- messages ---- */

Status partition_refuse(const Partition *partition, Error *err)
{
    PartitionState state = partition_state(partition);
    if (state == PARTITION_RETIRED)
        return error_set(err, STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE,
                         "The partition key range %u is gone: others have taken it over.",
                         partition->id);
    if (state == PARTITION_STOPPED)
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE,
                         "The partition key range %u is not served here any more.", partition->id);
    return error_set(err, STATUS_NOT_FOUND, SUB_OWNER_NOT_FOUND,
                     "Owner resource does not exist: the container was deleted.");
}

Status partition_post(Partition *partition, PartitionMessage *message, size_t bytes, Error *err)
{
    if (!state_accepts_messages(partition_state(partition)))
        return partition_refuse(partition, err);
    TRY(partition_check_damage(partition, err));
    return inbox_post(partition, message, bytes, err);
}

Status partition_submit(Partition *partition, PartitionWrite *write, Error *err)
{
    ASSERT(write->done != NULL);
    write->message.kind = MESSAGE_WRITE;
    write->status = STATUS_OK;
    write->lsn = 0;
    write->read_bytes = 0;
    write->patched_bytes = 0;
    /* The arena has the documents and all that the sender needs for the answer. */
    return partition_post(partition, &write->message,
                          write->arena == NULL ? 0 : arena_used(write->arena), err);
}

Status partition_purge(Partition *partition, PartitionPurge *purge, Error *err)
{
    purge->message.kind = MESSAGE_PURGE;
    purge->status = STATUS_OK;
    return partition_post(partition, &purge->message, 0, err);
}

/* Not through partition_post(): a drop is never refused. */
void partition_drop(Partition *partition, PartitionDrop *drop)
{
    ASSERT(drop->done != NULL);
    drop->message.kind = MESSAGE_DROP;
    state_drop(&partition->state);
    inbox_post_always(partition, &drop->message);
}

/* Not through partition_post(): a stop is never refused. */
void partition_stop(Partition *partition, PartitionStop *stop)
{
    ASSERT(stop->done != NULL);
    stop->message.kind = MESSAGE_STOP;
    state_stop(&partition->state, stop->is_gone);
    inbox_post_always(partition, &stop->message);
}

bool partition_maintain(Partition *partition)
{
    if (atomic_load(&partition->host->is_closing) || partition->damage != NULL)
        return false;
    uint64_t due_s = atomic_load_explicit(&partition->trim_due_s, memory_order_relaxed);
    bool may_have_later = due_s != UINT64_MAX || current_schema_keeps_history(&partition->current);
    bool has_work = current_schema_has_work(&partition->current) ||
                    purge_list_count(&partition->purges) > 0 ||
                    atomic_load_explicit(&partition->has_stale_befores, memory_order_relaxed) ||
                    (due_s != UINT64_MAX && due_s <= partition_host_now_s(partition->host));
    if (!has_work || atomic_exchange(&partition->inbox.maintain_posted, true))
        return has_work || may_have_later;
    Error err;
    if (partition_post(partition, &partition->inbox.maintain, 0, &err) != STATUS_OK)
        atomic_store(&partition->inbox.maintain_posted, false); /* there will be another time */
    return true;
}

Status partition_begin_turn(Partition *partition, Turn *turn, int kind, Error *err)
{
    turn->status = STATUS_OK;
    turn->message.kind = kind;
    latch_init(&turn->done);
    Status status = partition_post(partition, &turn->message, 0, err);
    if (status != STATUS_OK)
        latch_done(&turn->done);
    return status;
}

Status partition_end_turn(Turn *turn, Error *err)
{
    latch_wait(&turn->done);
    latch_done(&turn->done);
    if (turn->status != STATUS_OK)
        *err = turn->error;
    return turn->status;
}

Status partition_take_turn(Partition *partition, Turn *turn, int kind, Error *err)
{
    TRY(partition_begin_turn(partition, turn, kind, err));
    return partition_end_turn(turn, err);
}

void partition_unhold(Partition *partition)
{
    state_unhold(&partition->state); /* a drop that came first is next in the queue */
    inbox_hand_on(partition);
}

/* ---- a move ends, or goes back a step ---- */

void partition_unfence(Partition *partition)
{
    (void)state_unfence(&partition->state); /* a drop that came first is next in the queue */
    inbox_hand_on(partition);
}

void partition_retire(Partition *partition, PartitionGone gone, void *ctx)
{
    ASSERT(partition->gone == NULL);
    partition->gone = gone;
    partition->gone_ctx = ctx;
    state_retire(&partition->state);
    inbox_hand_on(partition);
}

void partition_unwatch(Partition *partition)
{
    state_unwatch(&partition->state);
    /* What the log has kept for the move can go. */
    atomic_store_explicit(&partition->trim_due_s, 0, memory_order_relaxed);
    (void)partition_maintain(partition);
}
