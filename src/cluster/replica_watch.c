/* replica_watch.c - see replica_watch_int.h. */
#include "cluster/replica_watch_int.h"

#include "base/array.h"

void replica_watch_done(ReplicaWatch *watch)
{
    mem_free(watch->items);
    mem_free(watch->next);
    *watch = (ReplicaWatch){0};
}

static const BehindReplica *find(const ReplicaWatch *watch, const JournalReplica *replica)
{
    size_t from = 0;
    size_t to = watch->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (watch->items[middle].space < replica->space)
            from = middle + 1;
        else
            to = middle;
    }
    for (; from < watch->count && watch->items[from].space == replica->space; from++) {
        if (slice_equal(slice_from_cstr(watch->items[from].node), replica->node))
            return &watch->items[from];
    }
    return NULL;
}

uint64_t replica_watch_see(ReplicaWatch *watch, const JournalReplica *replica, uint64_t now_us)
{
    const BehindReplica *before = find(watch, replica);
    uint64_t since_us =
        before != NULL && before->applied == replica->applied ? before->since_us : now_us;
    Slice name = slice_first(replica->node, JOURNAL_NAME_MAX);
    ARRAY_GROW(watch->next, watch->next_count, watch->next_capacity, 16);
    BehindReplica *item = &watch->next[watch->next_count++];
    *item =
        (BehindReplica){.space = replica->space, .applied = replica->applied, .since_us = since_us};
    memcpy(item->node, name.ptr, name.len);
    return now_us - since_us;
}

void replica_watch_end_round(ReplicaWatch *watch)
{
    ReplicaWatch before = *watch;
    *watch = (ReplicaWatch){.items = before.next,
                            .count = before.next_count,
                            .capacity = before.next_capacity,
                            .next = before.items,
                            .next_capacity = before.capacity};
}
