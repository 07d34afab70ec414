/* held_partitions.c - see baseline.h.
 *
 * A restore of a partition goes through phases, each in groups of bounded size:
 *
 *     PURGING    removes what is purged; else it would stay hidden
 *     CLEARING   deletes the items that were not there, and those that are in the way of others: by
 *                their id, or by a unique value
 *     PUTTING    puts back what there was
 *     DONE       the baseline begins again at the LSN that was reached
 *
 * What is small is one group, and one commit. All partitions commit at once, so the disk is waited
 * for once. A record of the baseline goes in the group that makes it true, so a restore that is cut
 * off can begin again from the first phase.
 */
#include "base/array.h"
#include "base/mem.h"
#include "partition/group_int.h"

typedef enum RestorePhase {
    RESTORE_PURGING,
    RESTORE_CLEARING,
    RESTORE_PUTTING,
    RESTORE_DONE,
} RestorePhase;

typedef struct HeldPartition {
    Partition *partition; /* a reference */
    Turn turn;
    bool is_held;
    bool is_waiting; /* for the turn */
    bool is_refusing;
    bool is_committing;
    HeldCommit commit;
    RestorePhase phase;
    uint64_t after; /* records up to this item's number are dealt with in this phase */
    bool has_put;
} HeldPartition;

struct HeldPartitions {
    HeldPartition *items;
    size_t count;
    size_t capacity;
};

/* ---- holding ---- */

HeldPartitions *held_partitions_new(void)
{
    return MEM_NEW(HeldPartitions);
}

static HeldPartition *add(HeldPartitions *held, Partition *partition)
{
    ARRAY_GROW(held->items, held->count, held->capacity, 16);
    HeldPartition *item = &held->items[held->count++];
    *item = (HeldPartition){.partition = partition_ref(partition)};
    return item;
}

void held_partitions_add(HeldPartitions *held, Partition *partition)
{
    (void)add(held, partition);
}

/* From an even number, or an odd one, to the next. */
static void begin_refusing(Partition *partition)
{
    atomic_store(&partition->restore_begun_us, clock_monotonic_us(partition->host->clock));
    uint64_t before = atomic_fetch_add(&partition->restores, 1);
    ASSERT(before % 2 == 0);
}

static void end_refusing(Partition *partition)
{
    uint64_t before = atomic_fetch_add(&partition->restores, 1);
    ASSERT(before % 2 == 1);
}

void partition_hold_new(Partition *partition)
{
    inbox_take_first(partition);
    bool is_held = state_hold(&partition->state);
    ASSERT(is_held);
    begin_refusing(partition);
}

void held_partitions_add_held(HeldPartitions *held, Partition *partition)
{
    ASSERT(partition_state(partition) != PARTITION_SERVING);
    HeldPartition *item = add(held, partition);
    item->is_held = true;
    item->is_refusing = true;
}

Status held_partitions_wait(HeldPartitions *held, Error *err)
{
    Status status = STATUS_OK;
    for (size_t i = 0; i < held->count && status == STATUS_OK; i++) {
        HeldPartition *item = &held->items[i];
        if (item->is_held)
            continue;
        status = partition_begin_turn(item->partition, &item->turn, MESSAGE_HOLD, err);
        item->is_waiting = status == STATUS_OK;
    }
    for (size_t i = 0; i < held->count; i++) {
        HeldPartition *item = &held->items[i];
        Error other;
        if (!item->is_waiting)
            continue;
        item->is_waiting = false;
        item->is_held = partition_end_turn(&item->turn, &other) == STATUS_OK;
        if (item->is_held || status != STATUS_OK)
            continue;
        status = other.status;
        *err = other;
    }
    return status;
}

Status held_partitions_check(const HeldPartitions *held, Error *err)
{
    for (size_t i = 0; i < held->count; i++)
        TRY(partition_check_damage(held->items[i].partition, err));
    return held->count == 0 ? STATUS_OK : store_room(held->items[0].partition->host->store, err);
}

void held_partitions_refuse_readers(HeldPartitions *held)
{
    for (size_t i = 0; i < held->count; i++) {
        HeldPartition *item = &held->items[i];
        if (!item->is_refusing)
            begin_refusing(item->partition);
        item->is_refusing = true;
    }
}

void held_partitions_free(HeldPartitions *held)
{
    if (held == NULL)
        return;
    for (size_t i = 0; i < held->count; i++) {
        HeldPartition *item = &held->items[i];
        ASSERT(!item->is_committing);
        if (item->is_refusing)
            end_refusing(item->partition);
    }
    for (size_t i = 0; i < held->count; i++) {
        HeldPartition *item = &held->items[i];
        if (item->is_held)
            partition_unhold(item->partition);
        (void)partition_maintain(item->partition); /* if it cannot be now, it will be later */
        partition_unref(item->partition);
    }
    mem_free(held->items);
    mem_free(held);
}

/* ---- groups ---- */

typedef Status (*ApplyHeld)(HeldPartition *item, Group *group, uint64_t baseline, Error *err);

static Status begin_commit(HeldPartition *item, ApplyHeld apply, uint64_t baseline, Error *err)
{
    ASSERT(item->is_held);
    TRY(partition_check_damage(item->partition, err));
    Group *group = group_new(item->partition);
    Status status = apply(item, group, baseline, err);
    if (status != STATUS_OK) {
        store_txn_abort(group->txn);
        group_end(group);
        return status;
    }
    item->is_committing = true;
    group_commit_held(group, &item->commit);
    return STATUS_OK;
}

/* Applies and commits one group in each partition that 'wants' one. '*any' if there was one. */
static Status run_round(HeldPartitions *held, bool (*wants)(const HeldPartition *item),
                        ApplyHeld apply, uint64_t baseline, bool *any, Error *err)
{
    Status status = STATUS_OK;
    *any = false;
    for (size_t i = 0; i < held->count && status == STATUS_OK; i++) {
        if (!wants(&held->items[i]))
            continue;
        *any = true;
        status = begin_commit(&held->items[i], apply, baseline, err);
    }
    for (size_t i = 0; i < held->count; i++) {
        HeldPartition *item = &held->items[i];
        Error other;
        if (!item->is_committing)
            continue;
        item->is_committing = false;
        if (group_commit_end(&item->commit, &other) == STATUS_OK || status != STATUS_OK)
            continue;
        status = other.status;
        *err = other;
    }
    return status;
}

static bool wants_always(const HeldPartition *item)
{
    (void)item;
    return true;
}

/* ---- purges ---- */

bool partition_has_purges(Partition *partition)
{
    return purge_list_count(&partition->purges) > 0;
}

static bool wants_purge(const HeldPartition *item)
{
    return partition_has_purges(item->partition);
}

static Status check_room(const Group *group, Error *err)
{
    if (group->full.status != STATUS_OK)
        *err = group->full;
    return group->full.status;
}

static Status apply_purge(HeldPartition *item, Group *group, uint64_t baseline, Error *err)
{
    (void)item;
    (void)baseline;
    TRY(check_room(group, err)); /* otherwise it would wait, for good */
    return group_purge_piece(group, err);
}

Status held_partitions_purge(HeldPartitions *held, Error *err)
{
    for (bool any = true; any;)
        TRY(run_round(held, wants_purge, apply_purge, 0, &any, err));
    return STATUS_OK;
}

/* ---- beginning a baseline ---- */

static Status apply_begin(HeldPartition *item, Group *group, uint64_t baseline, Error *err)
{
    Baselines after = item->partition->writer.baselines;
    ASSERT(baselines_find(&after, baseline) == NULL);
    TRY(check_room(group, err));
    if (after.count == BASELINES_MAX)
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "Partition %u has %d snapshots, which is the most there can be.",
                         item->partition->id, BASELINES_MAX);
    after.list[after.count++] = (Baseline){.number = baseline, .lsn = group->counters.lsn};
    group_set_baselines(group, &after);
    group->takes_room = true;
    return STATUS_OK;
}

Status held_partitions_begin(HeldPartitions *held, uint64_t baseline, Error *err)
{
    bool any = false;
    return run_round(held, wants_always, apply_begin, baseline, &any, err);
}

/* ---- restoring ---- */

/* The record that a key names; its slices live in the group's arena. It was there a moment ago. */
static Status read_record(Group *group, Slice key, BeforeRecord *out, Error *err)
{
    AUTO(store_value_release) StoreValue value = {0};
    bool found = false;
    TRY(store_txn_get(group->txn, group->partition->space, key, &value, &found, err));
    if (!found)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "a record of a baseline is gone");
    return before_decode(key, arena_copy(&group->keep, value.data), out, err);
}

static void delete_record(Group *group, Slice key)
{
    store_txn_delete(group->txn, group->partition->space, key);
    group->is_changed = true;
}

/* Whether the item can be put in the place of what it has become: there is nothing in its way. */
static bool can_replace(const Group *group, const BeforeRecord *record, Slice epk, Slice id)
{
    return record->image.len > 0 && group->schema->unique_key_count == 0 &&
           slice_equal(record->epk, epk) && slice_equal(record->id, id);
}

static Status clear_one(HeldPartition *item, Group *group, Slice key, Error *err)
{
    (void)item;
    BeforeRecord record;
    Slice epk;
    Slice id;
    Item now;
    bool found = false;
    TRY(read_record(group, key, &record, err));
    TRY(group_find_item(group, record.number, &epk, &id, &now, &found, err));
    if (found && !can_replace(group, &record, epk, id)) {
        TRY(group_delete(group, CHANGE_DELETE, epk, id, &now, NULL, err));
        group->counters.lsn++;
    }
    if (record.image.len == 0)
        delete_record(group, key);
    return STATUS_OK;
}

static Status put_one(HeldPartition *held, Group *group, Slice key, Error *err)
{
    BeforeRecord record;
    Item item;
    Item now;
    bool found = false;
    TRY(read_record(group, key, &record, err));
    TRY(item_decode(record.image, &item, err));
    TRY(group_get(group, record.epk, record.id, &now, &found, err));
    if (found && now.number != item.number)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "an item that was made after a baseline has no record there");
    item_restore(&item, group->counters.lsn + 1);
    TRY(group_put(group, record.epk, record.id, found ? &now : NULL, record.id, &item, NULL, err));
    group->counters.lsn++;
    held->has_put = true;
    delete_record(group, key);
    return STATUS_OK;
}

/* Deals with records from 'after' on, until the group is large or there are no more. */
static Status visit_records(HeldPartition *item, Group *group, uint64_t baseline,
                            Status (*visit)(HeldPartition *, Group *, Slice, Error *),
                            bool *is_done, Error *err)
{
    const Baseline *begun = baselines_find(&item->partition->writer.baselines, baseline);
    uint8_t to[KEY_BEFORE_BYTES + 1] = {0};
    key_before(to, *begun, UINT64_MAX); /* and a byte after it */
    *is_done = false;
    while (!*is_done && !group_is_large(group)) {
        uint8_t from[KEY_BEFORE_BYTES];
        FoundKeys keys;
        key_before(from, *begun, item->after + 1);
        TRY(group_find_keys(group, slice_make(from, sizeof(from)), slice_make(to, sizeof(to)),
                            &keys, err));
        size_t i = 0;
        for (; i < keys.count && !group_is_large(group); i++) {
            if (keys.keys[i].len != KEY_BEFORE_BYTES)
                return error_set(err, STATUS_CORRUPT, SUB_NONE,
                                 "a record of a baseline is damaged");
            arena_reset(&group->arena);
            TRY(visit(item, group, keys.keys[i], err));
            item->after = be64_get(keys.keys[i].ptr + 17);
        }
        *is_done = i == keys.count && !keys.is_full;
    }
    if (*is_done)
        item->after = 0;
    return STATUS_OK;
}

/* The baseline begins again here. */
static void end_restore(HeldPartition *item, Group *group, uint64_t baseline)
{
    Baselines after = item->partition->writer.baselines;
    for (size_t i = 0; i < after.count; i++) {
        if (after.list[i].number == baseline)
            after.list[i].lsn = group->counters.lsn;
    }
    group_set_baselines(group, &after);
    /* Items have older times than their LSNs say: see change_feed.c. */
    if (item->has_put)
        group->counters.unordered_lsn = group->counters.lsn;
}

static Status apply_restore(HeldPartition *item, Group *group, uint64_t baseline, Error *err)
{
    TRY(check_room(group, err));
    if (item->phase == RESTORE_PURGING && wants_purge(item)) {
        TRY(group_purge_piece(group, err));
        return STATUS_OK;
    }
    if (item->phase == RESTORE_PURGING)
        item->phase = RESTORE_CLEARING;
    group->is_restore = true;
    group->restored_baseline = baseline;
    bool is_done = false;
    if (item->phase == RESTORE_CLEARING) {
        TRY(visit_records(item, group, baseline, clear_one, &is_done, err));
        if (is_done)
            item->phase = RESTORE_PUTTING;
    }
    if (item->phase == RESTORE_PUTTING) {
        TRY(visit_records(item, group, baseline, put_one, &is_done, err));
        if (is_done) {
            end_restore(item, group, baseline);
            item->phase = RESTORE_DONE;
        }
    }
    return STATUS_OK;
}

static bool wants_restore(const HeldPartition *item)
{
    return item->phase != RESTORE_DONE;
}

/* No transaction that has read what is about to go commits. */
static void give_back_locks(Partition *partition)
{
    if (!epk_locks_are_held(&partition->locks))
        return;
    epk_locks_give_back_all(&partition->locks);
    epk_locks_put_waiting(&partition->locks, &partition->inbox.rest);
}

Status held_partitions_restore(HeldPartitions *held, uint64_t baseline, Error *err)
{
    for (size_t i = 0; i < held->count; i++) {
        HeldPartition *item = &held->items[i];
        ASSERT(item->is_refusing);
        const Baselines *own = &item->partition->writer.baselines;
        give_back_locks(item->partition);
        item->phase = baselines_find(own, baseline) != NULL ? RESTORE_PURGING : RESTORE_DONE;
        item->after = 0;
    }
    for (bool any = true; any;)
        TRY(run_round(held, wants_restore, apply_restore, baseline, &any, err));
    return STATUS_OK;
}

/* ---- forgetting ---- */

Status partition_keep_baselines(Partition *partition, const uint64_t *numbers, size_t count,
                                Error *err)
{
    BaselineKeep keep = {.numbers = numbers, .count = count};
    TRY(partition_begin_turn(partition, &keep.turn, MESSAGE_KEEP, err));
    return partition_end_turn(&keep.turn, err);
}
