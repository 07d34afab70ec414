/* size_record.c - see size_record_int.h; and the limit of a logical partition (I17). */
#include "partition/size_record_int.h"

#include "base/array.h"
#include "partition/group_int.h"

#include <stdio.h>

enum {
    RECORD_VERSION = 1,
    CHANGES_MIN = 8,
    SEARCHES_MAX = 2, /* for items of a logical partition, before its record is read */
};

void size_encode(SizeSum sum, uint8_t out[SIZE_RECORD_BYTES])
{
    out[0] = RECORD_VERSION;
    memcpy(out + 1, &sum.items, sizeof(sum.items));
    memcpy(out + 9, &sum.bytes, sizeof(sum.bytes));
}

bool size_decode(Slice record, SizeSum *out)
{
    if (record.len != SIZE_RECORD_BYTES || (uint8_t)record.ptr[0] != RECORD_VERSION)
        return false;
    memcpy(&out->items, record.ptr + 1, sizeof(out->items));
    memcpy(&out->bytes, record.ptr + 9, sizeof(out->bytes));
    return true;
}

static bool add_record(SizeSum *sum, Slice record)
{
    SizeSum one;
    return size_decode(record, &one) &&
           !__builtin_add_overflow(sum->items, one.items, &sum->items) &&
           !__builtin_add_overflow(sum->bytes, one.bytes, &sum->bytes);
}

bool size_merge(Slice existing, const Slice *operands, size_t count, bool is_partial, Buf *out)
{
    (void)is_partial; /* a sum of differences is a difference */
    SizeSum sum = {0};
    if (existing.ptr != NULL && !add_record(&sum, existing))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!add_record(&sum, operands[i]))
            return false;
    }
    uint8_t record[SIZE_RECORD_BYTES];
    size_encode(sum, record);
    buf_bytes(out, record, sizeof(record));
    return true;
}

bool size_is_empty(Slice record)
{
    SizeSum sum;
    return size_decode(record, &sum) && sum.items == 0 && sum.bytes == 0;
}

/* ---- what a group changes ---- */

static uint32_t *find_slot(const SizeChanges *changes, uint64_t hash, Slice epk)
{
    uint32_t mask = changes->slot_count - 1;
    uint32_t at = (uint32_t)hash & mask;
    while (changes->slots[at] != 0 && !slice_equal(changes->list[changes->slots[at] - 1].epk, epk))
        at = (at + 1) & mask;
    return &changes->slots[at];
}

/* Doubles the list; at most half of the slots are used. */
static void grow(SizeChanges *changes, Arena *arena, HashKey key)
{
    ARRAY_GROW_IN(arena, changes->list, changes->count, changes->capacity, CHANGES_MIN);
    changes->slot_count = changes->capacity * 2;
    changes->slots = ARENA_NEW_ARRAY(arena, uint32_t, changes->slot_count);
    for (uint32_t i = 0; i < changes->count; i++)
        *find_slot(changes, hash_keyed(key, changes->list[i].epk), changes->list[i].epk) = i + 1;
}

SizeChange *size_changes_of(SizeChanges *changes, Arena *arena, HashKey key, Slice epk)
{
    /* Most writes of a batch are of the same one. */
    if (changes->last < changes->count && slice_equal(changes->list[changes->last].epk, epk))
        return &changes->list[changes->last];
    if (changes->count == changes->capacity)
        grow(changes, arena, key);
    uint32_t *slot = find_slot(changes, hash_keyed(key, epk), epk);
    if (*slot == 0) {
        changes->list[changes->count++] = (SizeChange){.epk = arena_copy(arena, epk)};
        *slot = changes->count;
    }
    changes->last = *slot - 1;
    return &changes->list[changes->last];
}

void size_changes_add(SizeChanges *changes, Arena *arena, HashKey key, Slice epk, SizeSum sum)
{
    SizeChange *change = size_changes_of(changes, arena, key, epk);
    change->sum.items += sum.items;
    change->sum.bytes += sum.bytes;
    ARRAY_GROW_IN(arena, changes->notes, changes->note_count, changes->note_capacity, CHANGES_MIN);
    changes->notes[changes->note_count++] =
        (SizeNote){.change = (uint32_t)(change - changes->list), .sum = sum};
}

void size_changes_undo(SizeChanges *changes, uint32_t note_count)
{
    ASSERT(note_count <= changes->note_count);
    while (changes->note_count > note_count) {
        const SizeNote *note = &changes->notes[--changes->note_count];
        changes->list[note->change].sum.items -= note->sum.items;
        changes->list[note->change].sum.bytes -= note->sum.bytes;
    }
}

void group_resize(Group *group, Slice epk, SizeSum sum)
{
    group->counters.items += (uint64_t)sum.items; /* below zero it wraps around, as it should */
    group->counters.bytes += (uint64_t)sum.bytes;
    if (group->counters.bytes > group->counters.bytes_ever)
        group->counters.bytes_ever = group->counters.bytes;
    size_changes_add(&group->sizes, &group->keep, group->partition->index_key, epk, sum);
}

void group_finish_sizes(Group *group)
{
    const SizeChanges *changes = &group->sizes;
    for (uint32_t i = 0; i < changes->count; i++) {
        const SizeChange *change = &changes->list[i];
        if (change->sum.items == 0 && change->sum.bytes == 0)
            continue;
        Key key;
        uint8_t record[SIZE_RECORD_BYTES];
        key_size(&key, change->epk);
        size_encode(change->sum, record);
        store_txn_merge(group->txn, group->partition->space, key_slice(&key),
                        slice_make(record, sizeof(record)));
    }
}

/* ---- the limit ---- */

uint64_t partition_logical_bytes_max(const PartitionHost *host, const PartitionSchema *schema)
{
    uint64_t max = host->logical_bytes_max;
    return schema->key.kind == PARTITION_NONE ? max / 2 : max;
}

/* Reads the record at most once per group and logical partition. */
static Status read_stored(Group *group, SizeChange *change, Error *err)
{
    if (change->is_stored_known)
        return STATUS_OK;
    Key key;
    key_size(&key, change->epk);
    AUTO(store_value_release) StoreValue value = {0};
    bool found = false;
    SizeSum sum = {0};
    TRY(store_txn_get(group->txn, group->partition->space, key_slice(&key), &value, &found, err));
    if (found && !size_decode(value.data, &sum))
        return size_damaged(err);
    change->stored = sum;
    change->is_stored_known = true;
    return STATUS_OK;
}

bool group_holds_nothing(Group *group, Slice epk)
{
    if (!group->partition->has_sizes)
        return false;
    SizeChange *change =
        size_changes_of(&group->sizes, &group->keep, group->partition->index_key, epk);
    Error ignored; /* then it is not known, and items are looked for one by one */
    if (change->searches < SEARCHES_MAX) {
        change->searches++;
        return false;
    }
    return read_stored(group, change, &ignored) == STATUS_OK && change->stored.items == 0 &&
           change->stored.bytes == 0;
}

static const char *print_size(uint64_t bytes, char out[32])
{
    static const char *const units[] = {"bytes", "KB", "MB", "GB"};
    size_t unit = 0;
    while (unit + 1 < ARRAY_COUNT(units) && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    (void)snprintf(out, 32, "%llu %s", (unsigned long long)bytes, units[unit]);
    return out;
}

static Status check_logical(Group *group, Slice epk, int64_t grown, uint64_t max, Error *err)
{
    SizeChange *change =
        size_changes_of(&group->sizes, &group->keep, group->partition->index_key, epk);
    TRY(read_stored(group, change, err));
    int64_t bytes = change->stored.bytes + change->sum.bytes;
    if (bytes + grown <= (int64_t)max)
        return STATUS_OK;
    char text[32];
    return error_set(err, STATUS_FORBIDDEN, SUB_PARTITION_KEY_QUOTA,
                     "Partition key reached maximum size of %s: its items have %lld bytes, and "
                     "this write adds %lld. Items can still be deleted or made smaller.",
                     print_size(max, text), (long long)bytes, (long long)grown);
}

Status group_check_size(Group *group, Slice epk, int64_t grown, Error *err)
{
    uint64_t max = partition_logical_bytes_max(group->partition->host, group->schema);
    if (LIKELY(grown <= 0 || max == 0 || group->is_import || group->is_restore ||
               group->counters.bytes + (uint64_t)grown <= max))
        return STATUS_OK; /* all logical partitions together are below the limit */
    return group->partition->has_sizes ? check_logical(group, epk, grown, max, err) : STATUS_OK;
}

Status size_damaged(Error *err)
{
    return error_set(err, STATUS_CORRUPT, SUB_NONE, "the size of a logical partition is damaged");
}
