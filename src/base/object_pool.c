/* object_pool.c - see object_pool.h. */
#include "base/object_pool.h"

#include <sched.h>

/* Each CPU begins at another slot, so that threads that run at the same time do not contend for
 * one. */
static size_t first_slot(void)
{
    int cpu = sched_getcpu();
    return cpu < 0 ? 0 : (size_t)cpu;
}

void *object_pool_take(ObjectPool *spares)
{
    size_t first = first_slot();
    for (size_t i = 0; i < OBJECT_POOL_MAX; i++) {
        ObjectPoolSlot *slot = &spares->slots[(first + i) % OBJECT_POOL_MAX];
        if (atomic_load_explicit(&slot->object, memory_order_relaxed) == NULL)
            continue;
        void *object = atomic_exchange(&slot->object, NULL);
        if (object != NULL)
            return object;
    }
    return NULL;
}

bool object_pool_give(ObjectPool *spares, void *object)
{
    ASSERT(object != NULL);
    size_t first = first_slot();
    for (size_t i = 0; i < OBJECT_POOL_MAX; i++) {
        ObjectPoolSlot *slot = &spares->slots[(first + i) % OBJECT_POOL_MAX];
        void *none = NULL;
        if (atomic_load_explicit(&slot->object, memory_order_relaxed) == NULL &&
            atomic_compare_exchange_strong(&slot->object, &none, object))
            return true;
    }
    return false;
}
