/* item_cache.c - see item_cache.h.
 *
 *     shard: table of chains --> entry --> entry
 *            newest <-> entry <-> entry <-> oldest, and a hand that walks from old to new
 *
 * The table has a fixed size, two slots per kilobyte of the shard: growing it would make some
 * reader wait. Its memory is taken by the pages that are used.
 */
#include "partition/item_cache.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>

#define SHARD_BYTES_MIN ((size_t)1 << 20)
#define SLOT_BYTES      ((size_t)512)

enum {
    SHARDS_MAX = 256,
    ENTRY_SHARE = 8,    /* an item larger than this part of its shard is not kept */
    HEAP_OVERHEAD = 16, /* what the allocator adds to an entry */
    WRITTEN_SHARE = 8,  /* one of this many written items is kept because it was written */
};

typedef struct CachedItem Entry;
struct CachedItem {
    Entry *chain;
    Entry *newer;
    Entry *older;
    uint64_t hash;
    StoreSpace space;
    _Atomic uint32_t refs; /* the cache's own, and one per value handed out */
    uint32_t key_len;
    uint32_t value_len;
    bool was_read; /* since the hand passed */
    char bytes[];  /* key, value */
};

/* Two lines of the processor's cache each, so that no two share a whole one. */
typedef struct Shard {
    pthread_mutex_t lock; /* guards what follows */
    uint32_t ticket;      /* counts what was forgotten */
    Entry **slots;
    Entry *newest;
    Entry *oldest;
    Entry *hand; /* NULL if it is at the oldest */
    size_t bytes;
    char padding[40];
} Shard;
static_assert(sizeof(Shard) == 128 || sizeof(pthread_mutex_t) != 40, "the padding fits");

struct ItemCache {
    /* Immutable after open; the shards have locks of their own. */
    HashKey key;
    size_t shard_mask;
    size_t slot_mask;
    size_t shard_bytes_max;
    Shard *shards;
};

static size_t power_of_two(size_t at_most)
{
    size_t power = 1;
    while (power * 2 <= at_most)
        power *= 2;
    return power;
}

ItemCache *item_cache_open(size_t bytes_max, HashKey key)
{
    ItemCache *cache = MEM_NEW(ItemCache);
    size_t shards = power_of_two(bytes_max / SHARD_BYTES_MIN);
    shards = shards > SHARDS_MAX ? SHARDS_MAX : shards;
    size_t slots = power_of_two(bytes_max / shards / SLOT_BYTES);
    cache->key = key;
    cache->shard_mask = shards - 1;
    cache->slot_mask = slots - 1;
    size_t table = slots * sizeof(Entry *);
    cache->shard_bytes_max = bytes_max / shards > table ? bytes_max / shards - table : 0;
    cache->shards = MEM_NEW_ARRAY(Shard, shards);
    for (size_t i = 0; i < shards; i++) {
        int failed = pthread_mutex_init(&cache->shards[i].lock, NULL);
        ASSERT(failed == 0);
        cache->shards[i].slots = MEM_NEW_ARRAY(Entry *, slots);
    }
    return cache;
}

static void entry_unref(void *owner)
{
    Entry *entry = owner;
    if (atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel) == 1)
        mem_free(entry);
}

void item_cache_close(ItemCache *cache)
{
    if (cache == NULL)
        return;
    for (size_t i = 0; i <= cache->shard_mask; i++) {
        Shard *shard = &cache->shards[i];
        for (Entry *entry = shard->oldest; entry != NULL;) {
            Entry *next = entry->newer;
            entry_unref(entry);
            entry = next;
        }
        mem_free(shard->slots);
        (void)pthread_mutex_destroy(&shard->lock);
    }
    mem_free(cache->shards);
    mem_free(cache);
}

uint64_t item_cache_hash(const ItemCache *cache, StoreSpace space, Slice key)
{
    HashKey mixed = {.k0 = cache->key.k0 ^ space, .k1 = cache->key.k1};
    return hash_keyed(mixed, key);
}

/* The low bits choose the shard, others the slot. */
static Shard *shard_of(const ItemCache *cache, uint64_t hash)
{
    return &cache->shards[hash & cache->shard_mask];
}

static Entry **slot_of(const ItemCache *cache, const Shard *shard, uint64_t hash)
{
    return &shard->slots[hash >> 32 & cache->slot_mask];
}

static size_t needed_bytes(size_t key_len, size_t value_len)
{
    return sizeof(Entry) + HEAP_OVERHEAD + key_len + value_len;
}

static size_t entry_bytes(const Entry *entry)
{
    return needed_bytes(entry->key_len, entry->value_len);
}

static Slice entry_key(const Entry *entry)
{
    return slice_make(entry->bytes, entry->key_len);
}

static Entry *find(const ItemCache *cache, const Shard *shard, uint64_t hash, StoreSpace space,
                   Slice key)
{
    Entry *entry = *slot_of(cache, shard, hash);
    while (entry != NULL &&
           (entry->hash != hash || entry->space != space || !slice_equal(entry_key(entry), key)))
        entry = entry->chain;
    return entry;
}

bool item_cache_get(ItemCache *cache, uint64_t hash, StoreSpace space, Slice key, StoreValue *value,
                    uint32_t *ticket)
{
    Shard *shard = shard_of(cache, hash);
    (void)pthread_mutex_lock(&shard->lock);
    Entry *entry = find(cache, shard, hash, space, key);
    if (entry != NULL) {
        entry->was_read = true;
        atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
    }
    *ticket = shard->ticket;
    (void)pthread_mutex_unlock(&shard->lock);
    if (entry == NULL)
        return false;
    *value = (StoreValue){
        .data = slice_make(entry->bytes + entry->key_len, entry->value_len),
        .owner = entry,
        .release = entry_unref,
    };
    return true;
}

static void unlink_entry(const ItemCache *cache, Shard *shard, Entry *entry)
{
    Entry **link = slot_of(cache, shard, entry->hash);
    while (*link != entry)
        link = &(*link)->chain;
    *link = entry->chain;
    if (shard->hand == entry)
        shard->hand = entry->newer;
    *(entry->newer != NULL ? &entry->newer->older : &shard->newest) = entry->older;
    *(entry->older != NULL ? &entry->older->newer : &shard->oldest) = entry->newer;
    ASSERT(shard->bytes >= entry_bytes(entry));
    shard->bytes -= entry_bytes(entry);
}

/* Takes one entry out: the first from the hand on that was not read since it last came by. */
static Entry *evict(const ItemCache *cache, Shard *shard)
{
    Entry *entry = shard->hand != NULL ? shard->hand : shard->oldest;
    while (entry->was_read) {
        entry->was_read = false;
        entry = entry->newer != NULL ? entry->newer : shard->oldest;
    }
    shard->hand = entry->newer;
    unlink_entry(cache, shard, entry);
    return entry;
}

static void link_entry(const ItemCache *cache, Shard *shard, Entry *entry)
{
    Entry **slot = slot_of(cache, shard, entry->hash);
    entry->chain = *slot;
    *slot = entry;
    entry->older = shard->newest;
    *(shard->newest != NULL ? &shard->newest->newer : &shard->oldest) = entry;
    shard->newest = entry;
    shard->bytes += entry_bytes(entry);
}

static Entry *entry_new(uint64_t hash, StoreSpace space, Slice key, Slice value)
{
    Entry *entry = mem_realloc(NULL, sizeof(Entry) + key.len + value.len); /* need not be zeroed */
    *entry = (Entry){
        .hash = hash,
        .space = space,
        .key_len = (uint32_t)key.len,
        .value_len = (uint32_t)value.len,
    };
    atomic_init(&entry->refs, 1);
    memcpy(entry->bytes, key.ptr, key.len);
    if (value.len > 0)
        memcpy(entry->bytes + key.len, value.ptr, value.len);
    return entry;
}

static bool is_too_large(const ItemCache *cache, Slice key, Slice value)
{
    return needed_bytes(key.len, value.len) > cache->shard_bytes_max / ENTRY_SHARE;
}

/* An item that is here already, or that there is room for. Of the others one in WRITTEN_SHARE: an
 * item that is written again and again comes in soon, and those that are written once push few out.
 */
static bool is_worth_keeping(ItemCache *cache, uint64_t hash, StoreSpace space, Slice key,
                             Slice value)
{
    if (is_too_large(cache, key, value))
        return false;
    Shard *shard = shard_of(cache, hash);
    (void)pthread_mutex_lock(&shard->lock);
    bool is_worth = shard->bytes + needed_bytes(key.len, value.len) <= cache->shard_bytes_max ||
                    shard->ticket % WRITTEN_SHARE == 0 ||
                    find(cache, shard, hash, space, key) != NULL;
    (void)pthread_mutex_unlock(&shard->lock);
    return is_worth;
}

CachedItem *item_cache_prepare(ItemCache *cache, uint64_t hash, StoreSpace space, Slice key,
                               Slice value)
{
    return is_worth_keeping(cache, hash, space, key, value) ? entry_new(hash, space, key, value)
                                                            : NULL;
}

void cached_item_free(CachedItem *item)
{
    if (item != NULL)
        entry_unref(item);
}

/* Makes room first, so that the new entry is not evicted. Returns the evicted ones, chained, to be
 * freed after the lock is given back. */
static Entry *let_in(const ItemCache *cache, Shard *shard, Entry *entry)
{
    Entry *evicted = NULL;
    while (shard->bytes + entry_bytes(entry) > cache->shard_bytes_max) {
        Entry *next = evict(cache, shard);
        next->chain = evicted;
        evicted = next;
    }
    link_entry(cache, shard, entry);
    return evicted;
}

static void free_chain(Entry *entry)
{
    while (entry != NULL) {
        Entry *next = entry->chain;
        entry_unref(entry);
        entry = next;
    }
}

void item_cache_put(ItemCache *cache, uint64_t hash, StoreSpace space, Slice key, Slice value,
                    uint32_t ticket)
{
    if (is_too_large(cache, key, value))
        return;
    Entry *entry = entry_new(hash, space, key, value);
    Shard *shard = shard_of(cache, hash);
    Entry *evicted = NULL;
    (void)pthread_mutex_lock(&shard->lock);
    /* Another reader may have put the same item here. */
    bool is_wanted = shard->ticket == ticket && find(cache, shard, hash, space, key) == NULL;
    if (is_wanted)
        evicted = let_in(cache, shard, entry);
    (void)pthread_mutex_unlock(&shard->lock);
    if (!is_wanted)
        entry_unref(entry);
    free_chain(evicted);
}

/* Takes all entries with this hash out; chained, to be freed after the lock is given back. */
static Entry *forget(const ItemCache *cache, Shard *shard, uint64_t hash)
{
    Entry *forgotten = NULL;
    shard->ticket++;
    for (Entry *entry = *slot_of(cache, shard, hash); entry != NULL;) {
        Entry *next = entry->chain;
        if (entry->hash == hash) {
            unlink_entry(cache, shard, entry);
            entry->chain = forgotten;
            forgotten = entry;
        }
        entry = next;
    }
    return forgotten;
}

void item_cache_forget(ItemCache *cache, uint64_t hash)
{
    Shard *shard = shard_of(cache, hash);
    (void)pthread_mutex_lock(&shard->lock);
    Entry *forgotten = forget(cache, shard, hash);
    (void)pthread_mutex_unlock(&shard->lock);
    free_chain(forgotten);
}

void item_cache_renew(ItemCache *cache, CachedItem *item)
{
    Shard *shard = shard_of(cache, item->hash);
    (void)pthread_mutex_lock(&shard->lock);
    Entry *forgotten = forget(cache, shard, item->hash);
    Entry *evicted = let_in(cache, shard, item);
    (void)pthread_mutex_unlock(&shard->lock);
    free_chain(forgotten);
    free_chain(evicted);
}

size_t item_cache_bytes(ItemCache *cache)
{
    size_t bytes = 0;
    for (size_t i = 0; i <= cache->shard_mask; i++) {
        (void)pthread_mutex_lock(&cache->shards[i].lock);
        bytes += cache->shards[i].bytes;
        (void)pthread_mutex_unlock(&cache->shards[i].lock);
    }
    return bytes;
}
