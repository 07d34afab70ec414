/* sizes_cache.c - see sizes_cache_int.h. */
#include "api/sizes_cache_int.h"

#include "base/mem.h"

#include <stdatomic.h>

void sizes_cache_init(SizesCache *cache)
{
    *cache = (SizesCache){0};
    int failed = pthread_mutex_init(&cache->lock, NULL);
    ASSERT(failed == 0);
}

void sizes_cache_done(SizesCache *cache)
{
    for (size_t i = 0; i < SIZES_CACHE_SLOTS; i++)
        sizes_facts_unref(cache->slots[i]);
    (void)pthread_mutex_destroy(&cache->lock); /* nobody holds it any more */
}

SizesFacts *sizes_facts_new(SizesKind kind, uint32_t container, uint64_t lsn, uint64_t now_us)
{
    SizesFacts *facts = MEM_NEW(SizesFacts);
    atomic_init(&facts->refs, 1);
    arena_init(&facts->arena, 4096);
    facts->kind = kind;
    facts->container = container;
    facts->lsn = lsn;
    facts->made_us = now_us;
    return facts;
}

void sizes_facts_unref(SizesFacts *facts)
{
    if (facts == NULL || atomic_fetch_sub_explicit(&facts->refs, 1, memory_order_acq_rel) != 1)
        return;
    arena_done(&facts->arena);
    mem_free(facts);
}

static bool is_about(const SizesFacts *facts, SizesKind kind, uint32_t container)
{
    return facts != NULL && facts->kind == kind && facts->container == container;
}

SizesFacts *sizes_cache_get(SizesCache *cache, SizesKind kind, uint32_t container, uint64_t lsn,
                            uint64_t now_us)
{
    SizesFacts *found = NULL;
    (void)pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < SIZES_CACHE_SLOTS && found == NULL; i++) {
        SizesFacts *facts = cache->slots[i];
        if (is_about(facts, kind, container) && facts->lsn == lsn &&
            now_us - facts->made_us < SIZES_CACHE_US) {
            atomic_fetch_add_explicit(&facts->refs, 1, memory_order_relaxed);
            found = facts;
        }
    }
    (void)pthread_mutex_unlock(&cache->lock);
    return found;
}

/* In the place of older facts of the same kind, of nobody's, or else of the oldest. */
static size_t choose_slot(const SizesCache *cache, const SizesFacts *facts)
{
    size_t chosen = 0;
    for (size_t i = 0; i < SIZES_CACHE_SLOTS; i++) {
        if (is_about(cache->slots[i], facts->kind, facts->container))
            return i;
        if (cache->slots[chosen] != NULL &&
            (cache->slots[i] == NULL || cache->slots[i]->made_us < cache->slots[chosen]->made_us))
            chosen = i;
    }
    return chosen;
}

void sizes_cache_put(SizesCache *cache, SizesFacts *facts)
{
    atomic_fetch_add_explicit(&facts->refs, 1, memory_order_relaxed);
    (void)pthread_mutex_lock(&cache->lock);
    size_t slot = choose_slot(cache, facts);
    SizesFacts *old = cache->slots[slot];
    cache->slots[slot] = facts;
    (void)pthread_mutex_unlock(&cache->lock);
    sizes_facts_unref(old);
}
