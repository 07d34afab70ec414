/* purges.c - see purges_int.h. */
#include "partition/purges_int.h"

#include "base/mem.h"

void purge_list_init(PurgeList *list)
{
    int failed = pthread_mutex_init(&list->lock, NULL);
    ASSERT(failed == 0);
}

void purge_list_done(PurgeList *list)
{
    (void)pthread_mutex_destroy(&list->lock);
    mem_free(list->purges);
}

static void reserve(PurgeList *list)
{
    if (list->purges == NULL)
        list->purges = MEM_NEW_ARRAY(Purge, PURGES_MAX);
}

bool purge_list_load(PurgeList *list, Slice epk, uint64_t lsn)
{
    uint32_t count = atomic_load_explicit(&list->count, memory_order_relaxed);
    if (count == PURGES_MAX)
        return false;
    reserve(list);
    epk_set(&list->purges[count].epk, epk);
    list->purges[count].lsn = lsn;
    atomic_store_explicit(&list->count, count + 1, memory_order_relaxed);
    return true;
}

Purge purge_list_first(PurgeList *list)
{
    (void)pthread_mutex_lock(&list->lock);
    ASSERT(atomic_load_explicit(&list->count, memory_order_relaxed) > 0);
    Purge first = list->purges[0];
    (void)pthread_mutex_unlock(&list->lock);
    return first;
}

/* One more for the same EPK makes the purge cover more, and so begin again. */
static uint32_t add(PurgeList *list, const Purge *purge, uint32_t count, bool *is_restarted)
{
    uint32_t at = 0;
    while (at < count && !slice_equal(epk_slice(&list->purges[at].epk), epk_slice(&purge->epk)))
        at++;
    ASSERT(at < PURGES_MAX);
    list->purges[at] = *purge;
    if (at == count)
        return count + 1;
    *is_restarted = *is_restarted || at == 0;
    return count;
}

void purge_list_change(PurgeList *list, const PurgeChanges *changes, bool *is_restarted)
{
    *is_restarted = false;
    if (LIKELY(changes->added_count == 0 && !changes->is_first_done))
        return;
    (void)pthread_mutex_lock(&list->lock);
    uint32_t count = atomic_load_explicit(&list->count, memory_order_relaxed);
    reserve(list);
    if (changes->is_first_done) {
        ASSERT(count > 0);
        list->purges[0] = list->purges[--count];
    }
    for (size_t i = 0; i < changes->added_count; i++)
        count = add(list, &changes->added[i], count, is_restarted);
    atomic_store_explicit(&list->count, count, memory_order_release);
    (void)pthread_mutex_unlock(&list->lock);
}

uint64_t purges_find(const Purge *purges, size_t count, Slice epk)
{
    uint64_t lsn = 0;
    for (size_t i = 0; i < count; i++) {
        if (purges[i].lsn > lsn && slice_starts_with(epk, epk_slice(&purges[i].epk)))
            lsn = purges[i].lsn;
    }
    return lsn;
}

uint64_t purge_list_find_slow(PurgeList *list, Slice epk)
{
    (void)pthread_mutex_lock(&list->lock);
    uint32_t count = atomic_load_explicit(&list->count, memory_order_relaxed);
    uint64_t lsn = purges_find(list->purges, count, epk);
    (void)pthread_mutex_unlock(&list->lock);
    return lsn;
}

const Purge *purge_list_copy(PurgeList *list, Arena *arena, size_t *count)
{
    *count = 0;
    if (LIKELY(purge_list_count(list) == 0))
        return NULL;
    (void)pthread_mutex_lock(&list->lock);
    *count = atomic_load_explicit(&list->count, memory_order_relaxed);
    const void *copy = arena_copy(arena, slice_make(list->purges, *count * sizeof(Purge))).ptr;
    (void)pthread_mutex_unlock(&list->lock);
    return copy;
}
