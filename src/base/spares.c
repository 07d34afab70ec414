/* spares.c - see spares.h. */
#include "base/spares.h"

#include <sched.h>

/* Threads that run beside each other should not meet in one slot, which they would pass to and
 * fro. */
static size_t first_slot(void)
{
    int cpu = sched_getcpu();
    return cpu < 0 ? 0 : (size_t)cpu;
}

void *spares_take(Spares *spares)
{
    size_t first = first_slot();
    for (size_t i = 0; i < SPARES_MAX; i++) {
        SpareSlot *slot = &spares->slots[(first + i) % SPARES_MAX];
        if (atomic_load_explicit(&slot->object, memory_order_relaxed) == NULL)
            continue;
        void *object = atomic_exchange(&slot->object, NULL);
        if (object != NULL)
            return object;
    }
    return NULL;
}

bool spares_give(Spares *spares, void *object)
{
    size_t first = first_slot();
    for (size_t i = 0; i < SPARES_MAX; i++) {
        SpareSlot *slot = &spares->slots[(first + i) % SPARES_MAX];
        void *none = NULL;
        if (atomic_load_explicit(&slot->object, memory_order_relaxed) == NULL &&
            atomic_compare_exchange_strong(&slot->object, &none, object))
            return true;
    }
    return false;
}
