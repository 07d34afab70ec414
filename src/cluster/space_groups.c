/* space_groups.c - see space_groups_int.h. */
#include "cluster/space_groups_int.h"

#include <stdlib.h>

/* Where the group of a space stands among SpaceGroups.spaces. */
typedef struct GroupPlace {
    StoreSpace space;
    size_t first;
    size_t count;
    uint64_t key;
} GroupPlace;

static int compare_shared(const void *a, const void *b)
{
    const SharedSpace *left = a;
    const SharedSpace *right = b;
    if (left->budget != right->budget)
        return left->budget < right->budget ? -1 : 1;
    return left->space < right->space ? -1 : left->space > right->space;
}

static int compare_places(const void *a, const void *b)
{
    const GroupPlace *left = a;
    const GroupPlace *right = b;
    return left->space < right->space ? -1 : left->space > right->space;
}

SpaceGroups space_groups_make(Arena *arena, SharedSpace *shared, size_t count)
{
    if (count == 0)
        return (SpaceGroups){0};
    StoreSpace *spaces = ARENA_NEW_ARRAY(arena, StoreSpace, count);
    GroupPlace *places = ARENA_NEW_ARRAY(arena, GroupPlace, count);
    qsort(shared, count, sizeof(SharedSpace), compare_shared);
    for (size_t first = 0; first < count;) {
        size_t end = first + 1;
        while (end < count && shared[end].budget == shared[first].budget)
            end++;
        for (size_t i = first; i < end; i++) {
            spaces[i] = shared[i].space;
            places[i] = (GroupPlace){.space = shared[i].space,
                                     .first = first,
                                     .count = end - first,
                                     .key = shared[first].budget};
        }
        first = end;
    }
    qsort(places, count, sizeof(GroupPlace), compare_places);
    return (SpaceGroups){.places = places, .count = count, .spaces = spaces};
}

SpaceGroup space_groups_find(const SpaceGroups *groups, const StoreSpace *space)
{
    size_t from = 0;
    size_t to = groups->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (groups->places[middle].space < *space)
            from = middle + 1;
        else
            to = middle;
    }
    if (from == groups->count || groups->places[from].space != *space)
        return (SpaceGroup){.spaces = space, .count = 1, .key = *space};
    const GroupPlace *place = &groups->places[from];
    return (SpaceGroup){
        .spaces = groups->spaces + place->first, .count = place->count, .key = place->key};
}

bool space_group_begins(SpaceGroup group, StoreSpace space)
{
    return group.spaces[0] == space;
}
