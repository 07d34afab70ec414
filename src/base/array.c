/* array.c - see array.h. */
#include "base/array.h"

size_t array_capacity_next(size_t capacity, size_t first, size_t element_size, size_t capacity_max)
{
    ASSERT(first > 0);
    ASSERT(element_size > 0);
    ASSERT(capacity <= SIZE_MAX / 2);
    size_t next = capacity == 0 ? first : 2 * capacity;
    ASSERT(next <= capacity_max);
    ASSERT(next <= SIZE_MAX / element_size);
    return next;
}

size_t array_capacity_for(size_t capacity, size_t wanted)
{
    ASSERT(capacity > 0);
    while (capacity < wanted) {
        ASSERT(capacity <= SIZE_MAX / 2);
        capacity *= 2;
    }
    return capacity;
}
