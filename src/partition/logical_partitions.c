/* logical_partitions.c - see logical_partitions.h. The records are drawn in size_record_int.h. */
#include "partition/logical_partitions.h"

#include "base/mem.h"
#include "partition/partition_int.h"
#include "partition/size_record_int.h"

#include <stdlib.h>

struct LogicalPartitions {
    Partition *partition; /* a reference of its own */
    StoreSnapshot *snapshot;
    StoreCursor *cursor;
};

static Status check_known(const Partition *partition, Error *err)
{
    TRY(partition_check_damage(partition, err));
    if (!partition->has_sizes)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "The sizes of the logical partitions of partition %u could not be counted "
                         "when it was opened; the log says why.",
                         partition->id);
    return STATUS_OK;
}

static Status to_size(const Partition *partition, Slice epk, Slice record, LogicalSize *out,
                      Error *err)
{
    SizeSum sum;
    if (epk.len > EPK_BYTES_MAX || !size_decode(record, &sum) || sum.items < 0 || sum.bytes < 0)
        return size_damaged(err);
    *out = (LogicalSize){
        .epk = epk,
        .items = (uint64_t)sum.items,
        .bytes = (uint64_t)sum.bytes,
        .partition = partition->id,
    };
    return STATUS_OK;
}

Status logical_partitions_open(Partition *partition, Slice epk_from, Slice epk_to,
                               LogicalPartitions **out, Error *err)
{
    TRY(check_known(partition, err));
    if (epk_from.len > EPK_BYTES_MAX || epk_to.len > EPK_BYTES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "A bound of the range of effective partition keys is too long.");
    Key from;
    Key to = {.bytes = {KEY_SIZE + 1}, .len = 1};
    key_size(&from, epk_from);
    if (epk_to.len > 0)
        key_size(&to, epk_to);
    LogicalPartitions *walk = MEM_NEW(LogicalPartitions);
    Store *store = partition->host->store;
    walk->partition = partition_ref(partition);
    walk->snapshot = store_snapshot_open(store, STORE_READ_ANY);
    walk->cursor = store_cursor_open(store, walk->snapshot, partition->space, key_slice(&from),
                                     key_slice(&to));
    *out = walk;
    return STATUS_OK;
}

Status logical_partitions_next(LogicalPartitions *walk, LogicalSize *out, bool *found, Error *err)
{
    Slice key;
    Slice record;
    bool is_there = false;
    TRY(store_cursor_next(walk->cursor, &key, &record, &is_there, err));
    if (is_there)
        TRY(to_size(walk->partition, slice_from(key, 1), record, out, err));
    *found = is_there;
    return STATUS_OK;
}

void logical_partitions_close(LogicalPartitions *walk)
{
    if (walk == NULL)
        return;
    store_cursor_close(walk->cursor);
    store_snapshot_close(walk->snapshot);
    partition_unref(walk->partition);
    mem_free(walk);
}

/* ---- how many ---- */

static uint64_t extrapolate(const PartitionSchema *schema, uint64_t seen, Slice from, Slice at,
                            Slice to)
{
    PartitionKind kind = schema->key.kind;
    double begin = epk_fraction(kind, from);
    double end = to.len == 0 ? 1 : epk_fraction(kind, to);
    double covered = epk_fraction(kind, at) - begin;
    double all = end - begin;
    /* All have about the same hash, as the keys under one hierarchical key do. */
    if (!(covered > 0) || !(covered < all))
        return seen;
    double estimate = (double)seen * (all / covered);
    return estimate < (double)INT64_MAX ? (uint64_t)estimate : INT64_MAX;
}

Status logical_partitions_count(Partition *partition, const PartitionSchema *schema, Slice epk_from,
                                Slice epk_to, ScanBudget *budget, LogicalCount *out, Error *err)
{
    AUTO(logical_partitions_close) LogicalPartitions *walk = NULL;
    TRY(logical_partitions_open(partition, epk_from, epk_to, &walk, err));
    uint64_t seen = 0;
    for (;;) {
        LogicalSize size;
        bool found = false;
        TRY(logical_partitions_next(walk, &size, &found, err));
        if (!found) {
            *out = (LogicalCount){.count = seen, .is_exact = true};
            return STATUS_OK;
        }
        if (!scan_budget_spend(budget, partition->host->clock)) {
            *out = (LogicalCount){.count = extrapolate(schema, seen, epk_from, size.epk, epk_to)};
            return STATUS_OK;
        }
        seen++;
    }
}

/* ---- the largest ---- */

typedef struct TopEntry {
    LogicalSize size; /* its EPK is the one below */
    Epk epk;
} TopEntry;

/* 'heap' has the smallest of them on top. */
struct LargestPartitions {
    Arena *arena;
    size_t max;
    size_t count;
    TopEntry **heap;
    LogicalSize *list;
};

LargestPartitions *largest_partitions_new(Arena *arena, size_t max)
{
    LargestPartitions *top = ARENA_NEW(arena, LargestPartitions);
    top->arena = arena;
    top->max = max;
    top->heap = ARENA_NEW_ARRAY(arena, TopEntry *, max);
    top->list = ARENA_NEW_ARRAY(arena, LogicalSize, max);
    return top;
}

/* Below zero if 'a' comes first in the list. */
static int compare_sizes(const LogicalSize *a, const LogicalSize *b)
{
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return slice_compare(a->epk, b->epk);
}

static int compare_listed(const void *a, const void *b)
{
    return compare_sizes(a, b);
}

static void entry_set(TopEntry *entry, const LogicalSize *size)
{
    entry->size = *size;
    epk_set(&entry->epk, size->epk);
    entry->size.epk = epk_slice(&entry->epk);
}

static void sift_up(LargestPartitions *top, size_t at)
{
    TopEntry *entry = top->heap[at];
    while (at > 0 && compare_sizes(&entry->size, &top->heap[(at - 1) / 2]->size) > 0) {
        top->heap[at] = top->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    top->heap[at] = entry;
}

static void sift_down(LargestPartitions *top)
{
    TopEntry *entry = top->heap[0];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < top->count &&
            compare_sizes(&top->heap[child + 1]->size, &top->heap[child]->size) > 0)
            child++;
        if (child >= top->count || compare_sizes(&top->heap[child]->size, &entry->size) <= 0)
            break;
        top->heap[at] = top->heap[child];
        at = child;
    }
    top->heap[at] = entry;
}

static void top_offer(LargestPartitions *top, const LogicalSize *size)
{
    if (top->count < top->max) {
        TopEntry *entry = ARENA_NEW(top->arena, TopEntry);
        entry_set(entry, size);
        top->heap[top->count++] = entry;
        sift_up(top, top->count - 1);
    } else if (top->max > 0 && compare_sizes(size, &top->heap[0]->size) < 0) {
        entry_set(top->heap[0], size);
        sift_down(top);
    }
}

Status largest_partitions_add(LargestPartitions *top, Partition *partition, Slice epk_from,
                              Slice epk_to, ScanBudget *budget, bool *is_complete, Slice *next,
                              Error *err)
{
    AUTO(logical_partitions_close) LogicalPartitions *walk = NULL;
    TRY(logical_partitions_open(partition, epk_from, epk_to, &walk, err));
    for (;;) {
        LogicalSize size;
        bool found = false;
        TRY(logical_partitions_next(walk, &size, &found, err));
        *is_complete = !found;
        *next = SLICE_EMPTY;
        if (!found)
            return STATUS_OK;
        if (!scan_budget_spend(budget, partition->host->clock)) {
            *next = arena_copy(top->arena, size.epk);
            return STATUS_OK;
        }
        top_offer(top, &size);
    }
}

const LogicalSize *largest_partitions_list(LargestPartitions *top, size_t *count)
{
    for (size_t i = 0; i < top->count; i++)
        top->list[i] = top->heap[i]->size;
    if (top->count > 1)
        qsort(top->list, top->count, sizeof(*top->list), compare_listed);
    *count = top->count;
    return top->list;
}

/* ---- one ---- */

static Slice print_key(Arena *arena, const PartitionKey *key)
{
    AUTO(buf_done) Buf text;
    /* A character takes at most six bytes when it is escaped. */
    buf_init(&text, (size_t)PARTITION_KEY_PATHS_MAX * (6 * PARTITION_KEY_BYTES_MAX + 64));
    buf_byte(&text, '[');
    for (size_t i = 0; i < key->count; i++) {
        if (i > 0)
            buf_byte(&text, ',');
        if (json_is(key->parts[i], JSON_UNDEFINED))
            buf_slice(&text, SLICE("{}"));
        else
            json_print(key->parts[i], &text);
    }
    buf_byte(&text, ']');
    return arena_copy(arena, buf_view(&text));
}

Status logical_partition_key_text(Partition *partition, const PartitionSchema *schema, Slice epk,
                                  Arena *arena, Slice *text, bool *found, Error *err)
{
    *found = false;
    TRY(partition_check_damage(partition, err));
    if (epk.len > EPK_BYTES_MAX)
        return STATUS_OK;
    Key from;
    Key to;
    key_item_range(&from, &to, epk);
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(partition->host->store, NULL, partition->space,
                                            key_slice(&from), key_slice(&to));
    Slice key;
    Slice bytes;
    bool is_there = false;
    TRY(store_cursor_next(cursor, &key, &bytes, &is_there, err));
    if (!is_there)
        return STATUS_OK;
    Item item;
    TRY(item_decode(bytes, &item, err));
    if (!slice_equal(key_item_epk(schema, key, &item), epk))
        return STATUS_OK; /* an item of another key, whose EPK begins like the one asked for */
    PartitionKey value;
    partition_key_extract(&schema->key, item.document, &value);
    *text = print_key(arena, &value);
    *found = true;
    return STATUS_OK;
}
