/* array.h - arrays that get twice the room when they are full.
 *
 * An array is three variables or members of its owner: a pointer to the elements, how many there
 * are, and for how many there is room. It begins as NULL, 0 and 0. ARRAY_GROW makes room for one
 * more element:
 *
 *     ARRAY_GROW(list->items, list->count, list->capacity, 16);
 *     list->items[list->count++] = item;
 *
 * An array on the heap is freed with mem_free. In an arena (ARRAY_GROW_IN) the old copies stay
 * until its reset: together they take no more room than the last one.
 *
 * Bounds     What a client can make grow is bounded by the caller, before it grows. That a capacity
 *            fits its type, and its bytes a size_t, is asserted.
 */
#pragma once

#include "base/arena.h"
#include "base/mem.h"

/* Twice 'capacity', or 'first' if that is 0. Asserts that this is at most 'capacity_max'. */
size_t array_capacity_next(size_t capacity, size_t first, size_t element_size, size_t capacity_max);

/* The smallest doubling of 'capacity', which is not 0, that is at least 'wanted'. */
size_t array_capacity_for(size_t capacity, size_t wanted);

/* Of the type, so that static analysis does not take an array of pointers for a mistake. */
#define ARRAY_ELEMENT_SIZE(items) sizeof(__typeof__(*(items)))

/* The next capacity of an array of '*items', as a number of the type of 'capacity'. */
#define ARRAY_CAPACITY_NEXT(items, capacity, first)                                            \
    ((__typeof__(capacity))array_capacity_next((capacity), (first), ARRAY_ELEMENT_SIZE(items), \
                                               (__typeof__(capacity))-1))

/* Makes room for one more element. The arguments are evaluated more than once. 'capacity' is
 * unsigned. */
#define ARRAY_GROW(items, count, capacity, first)                                   \
    do {                                                                            \
        if (UNLIKELY((count) == (capacity))) {                                      \
            (capacity) = ARRAY_CAPACITY_NEXT(items, capacity, first);               \
            (items) = mem_realloc((items), ARRAY_ELEMENT_SIZE(items) * (capacity)); \
        }                                                                           \
    } while (0)

#define ARRAY_GROW_IN(arena, items, count, capacity, first)                                \
    do {                                                                                   \
        if (UNLIKELY((count) == (capacity))) {                                             \
            (capacity) = ARRAY_CAPACITY_NEXT(items, capacity, first);                      \
            (items) = arena_realloc((arena), (items), ARRAY_ELEMENT_SIZE(items) * (count), \
                                    ARRAY_ELEMENT_SIZE(items) * (capacity));               \
        }                                                                                  \
    } while (0)
