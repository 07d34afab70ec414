/* logical_sizes.c - see logical_sizes_int.h. */
#include "api/core/logical_sizes_int.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>

enum { LOGICAL_SIZES_CACHE_SLOTS = 64 };

struct LogicalSizesCache {
    pthread_mutex_t lock;
    LogicalSizes *slots[LOGICAL_SIZES_CACHE_SLOTS]; /* guarded by 'lock' */
};

LogicalSizesCache *logical_sizes_cache_open(void)
{
    LogicalSizesCache *cache = MEM_NEW(LogicalSizesCache);
    int failed = pthread_mutex_init(&cache->lock, NULL);
    ASSERT(failed == 0);
    return cache;
}

void logical_sizes_cache_close(LogicalSizesCache *cache)
{
    if (cache == NULL)
        return;
    for (size_t i = 0; i < LOGICAL_SIZES_CACHE_SLOTS; i++)
        logical_sizes_unref(cache->slots[i]);
    (void)pthread_mutex_destroy(&cache->lock); /* no thread holds it any more */
    mem_free(cache);
}

LogicalSizes *logical_sizes_new(LogicalSizesKind kind, uint32_t container, uint64_t lsn,
                                uint64_t now_us)
{
    LogicalSizes *facts = MEM_NEW(LogicalSizes);
    atomic_init(&facts->refs, 1);
    arena_init(&facts->arena, 4096);
    facts->kind = kind;
    facts->container = container;
    facts->lsn = lsn;
    facts->made_us = now_us;
    return facts;
}

void logical_sizes_unref(LogicalSizes *facts)
{
    if (facts == NULL || atomic_fetch_sub_explicit(&facts->refs, 1, memory_order_acq_rel) != 1)
        return;
    arena_done(&facts->arena);
    mem_free(facts);
}

static bool is_about(const LogicalSizes *facts, LogicalSizesKind kind, uint32_t container)
{
    return facts != NULL && facts->kind == kind && facts->container == container;
}

LogicalSizes *logical_sizes_cache_get(LogicalSizesCache *cache, LogicalSizesKind kind,
                                      uint32_t container, uint64_t lsn, uint64_t now_us)
{
    LogicalSizes *found = NULL;
    (void)pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < LOGICAL_SIZES_CACHE_SLOTS && found == NULL; i++) {
        LogicalSizes *facts = cache->slots[i];
        if (is_about(facts, kind, container) && facts->lsn == lsn &&
            now_us - facts->made_us < LOGICAL_SIZES_CACHE_US) {
            atomic_fetch_add_explicit(&facts->refs, 1, memory_order_relaxed);
            found = facts;
        }
    }
    (void)pthread_mutex_unlock(&cache->lock);
    return found;
}

/* Replaces older sizes of the same kind and container, or takes an empty slot, or else the oldest.
 */
static size_t choose_slot(const LogicalSizesCache *cache, const LogicalSizes *facts)
{
    size_t chosen = 0;
    for (size_t i = 0; i < LOGICAL_SIZES_CACHE_SLOTS; i++) {
        if (is_about(cache->slots[i], facts->kind, facts->container))
            return i;
        if (cache->slots[chosen] != NULL &&
            (cache->slots[i] == NULL || cache->slots[i]->made_us < cache->slots[chosen]->made_us))
            chosen = i;
    }
    return chosen;
}

void logical_sizes_cache_put(LogicalSizesCache *cache, LogicalSizes *facts)
{
    uint32_t refs = atomic_fetch_add_explicit(&facts->refs, 1, memory_order_relaxed);
    ASSERT(refs > 0); /* the caller's */
    (void)pthread_mutex_lock(&cache->lock);
    size_t slot = choose_slot(cache, facts);
    LogicalSizes *old = cache->slots[slot];
    cache->slots[slot] = facts;
    (void)pthread_mutex_unlock(&cache->lock);
    logical_sizes_unref(old);
}
