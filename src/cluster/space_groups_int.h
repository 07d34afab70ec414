/* space_groups_int.h - spaces that have one owner together, because their ranges share a budget: on
 * two nodes it would be given out twice (C8).
 *
 * Whatever changes an owner asks for the group of the space and treats it as one thing. A space
 * that shares nothing is a group of its own.
 *
 * Threads    Any; everything is passed in and lives in the caller's arena.
 */
#pragma once

#include "base/arena.h"
#include "store/store.h"

/* A space, and a number that all spaces have which share its budget, and no others. */
typedef struct SharedSpace {
    StoreSpace space;
    uint64_t budget;
} SharedSpace;

typedef struct SpaceGroup {
    const StoreSpace *spaces; /* in order */
    size_t count;
    uint64_t key; /* the same on every node, and as long as the budget is there */
} SpaceGroup;

typedef struct SpaceGroups {
    const struct GroupPlace *places; /* in order of space */
    size_t count;
    const StoreSpace *spaces; /* group after group */
} SpaceGroups;

/* 'shared' is put into another order. */
SpaceGroups space_groups_make(Arena *arena, SharedSpace *shared, size_t count);

/* The group of '*space', which is the group itself if it shares nothing. */
SpaceGroup space_groups_find(const SpaceGroups *groups, const StoreSpace *space);

/* Whether the space is the one of its group by which a walk over all spaces meets the group. */
bool space_group_begins(SpaceGroup group, StoreSpace space);
