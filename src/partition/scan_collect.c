/* scan_collect.c - items of a scan in the order of their numbers, where they are few. */
#include "base/array.h"
#include "partition/partition.h"

#include <stdlib.h>

enum { ROOM_FIRST = 32 };

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = ((const Item *)a)->number;
    uint64_t y = ((const Item *)b)->number;
    return (x > y) - (x < y);
}

static void add_item(Arena *arena, ItemList *list, size_t *room, const Item *item)
{
    ARRAY_GROW_IN(arena, list->items, list->count, *room, ROOM_FIRST);
    list->items[list->count++] = *item;
}

Status partition_scan_collect(PartitionScan *scan, uint64_t from, size_t bytes_max, Arena *arena,
                              ItemList *out, bool *fits, Error *err)
{
    ItemList list = {0};
    size_t room = 0;
    size_t bytes = 0;
    bool found = true;
    while (found && bytes <= bytes_max) {
        Item item;
        TRY(partition_scan_next(scan, &item, &found, err));
        if (!found || item.number < from)
            continue;
        bytes += item.bytes;
        item.document = json_trust(json_bytes(arena, item.document));
        add_item(arena, &list, &room, &item);
    }
    *fits = !found && !partition_scan_is_paused(scan);
    if (list.count > 1)
        qsort(list.items, list.count, sizeof(Item), compare_numbers);
    *out = list;
    return STATUS_OK;
}
