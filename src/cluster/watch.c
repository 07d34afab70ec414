/* watch.c - see watch_int.h. */
#include "cluster/watch_int.h"

#include "base/array.h"

void node_watch_done(NodeWatch *watch)
{
    mem_free(watch->items);
    *watch = (NodeWatch){0};
}

static WatchedNode *find(const NodeWatch *watch, Slice name)
{
    for (size_t i = 0; i < watch->count; i++) {
        if (slice_equal(slice_from_cstr(watch->items[i].name), name))
            return &watch->items[i];
    }
    return NULL;
}

static WatchedNode *add(NodeWatch *watch, Slice name)
{
    ARRAY_GROW(watch->items, watch->count, watch->capacity, 8);
    WatchedNode *item = &watch->items[watch->count++];
    *item = (WatchedNode){0};
    memcpy(item->name, name.ptr, name.len);
    return item;
}

void node_watch_see(NodeWatch *watch, const JournalNode *nodes, size_t count, uint64_t begun_us,
                    uint64_t ended_us, uint64_t own_renewals)
{
    for (size_t i = 0; i < watch->count; i++)
        watch->items[i].is_present = false;
    for (size_t i = 0; i < count; i++) {
        const JournalNode *node = &nodes[i];
        if (node->name.len > JOURNAL_NAME_MAX)
            continue; /* the journal has no such names */
        WatchedNode *item = find(watch, node->name);
        if (item == NULL)
            item = add(watch, node->name);
        item->is_present = true;
        item->dead_us = node->state != NODE_DEAD ? 0
                        : item->dead_us != 0     ? item->dead_us
                                                 : ended_us;
        if (item->incarnation == node->incarnation && item->renewal == node->renewal &&
            item->first_us != 0) {
            item->last_us = begun_us;
            continue;
        }
        item->incarnation = node->incarnation;
        item->renewal = node->renewal;
        item->first_us = item->last_us = ended_us;
        item->own_renewals = own_renewals;
    }
    size_t kept = 0;
    for (size_t i = 0; i < watch->count; i++) {
        if (watch->items[i].is_present)
            watch->items[kept++] = watch->items[i];
    }
    watch->count = kept;
}

void node_watch_restart(NodeWatch *watch)
{
    for (size_t i = 0; i < watch->count; i++)
        watch->items[i].first_us = watch->items[i].last_us = 0;
}

bool node_watch_is_overdue(const NodeWatch *watch, const JournalNode *node, uint64_t own_renewals)
{
    const WatchedNode *item = find(watch, node->name);
    return item != NULL && node->state != NODE_DEAD && item->incarnation == node->incarnation &&
           item->renewal == node->renewal && item->first_us != 0 &&
           item->last_us >= item->first_us &&
           item->last_us - item->first_us >= LEASE_SUCCESSOR_US &&
           own_renewals - item->own_renewals >= WATCH_OWN_RENEWALS;
}

uint64_t node_watch_dead_for_us(const NodeWatch *watch, Slice name, uint64_t now_us)
{
    const WatchedNode *item = find(watch, name);
    return item == NULL || item->dead_us == 0 || now_us <= item->dead_us ? 0
                                                                         : now_us - item->dead_us;
}
