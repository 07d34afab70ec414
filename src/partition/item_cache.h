/* item_cache.h - stored items by key, ready to be read: one probe instead of a search.
 *
 * Finding a key in the store means a search per level and a checksum of blocks; an item that is
 * read again and again should cost one probe of a table. The cache holds bytes as they are stored.
 * Two rules keep it correct: a change of an item in the store forgets it here, or renews it, before
 * the change is acknowledged, and what a reader found in the store is put here only if nothing of
 * its shard was forgotten since the reader asked (the ticket). So an item in the cache is the
 * newest (I10).
 *
 * What is evicted: an item that was not read again since the hand last passed it (SIEVE). A scan
 * does not put items here, and one that did would push out only items that are not read otherwise.
 *
 * Ownership  The StoreValue of a hit holds its bytes, also after they are forgotten or evicted.
 * Threads    Any. A shard's lock is held for a probe, never while anything is read or copied in.
 */
#pragma once

#include "base/hash.h"
#include "base/slice.h"
#include "store/store.h"

typedef struct ItemCache ItemCache;

/* At most 'bytes_max' of memory, with what the table itself takes. */
ItemCache *item_cache_open(size_t bytes_max, HashKey key);
void item_cache_close(ItemCache *cache); /* accepts NULL; every value must have been released */

/* Names a key of a space from here on. Another key with the same hash is told apart by its bytes,
 * and forgotten together with it. */
uint64_t item_cache_hash(const ItemCache *cache, StoreSpace space, Slice key);

/* If it is there, '*value' is the item, to be released by the caller. If not, the caller passes
 * '*ticket' on with what it finds in the store. */
bool item_cache_get(ItemCache *cache, uint64_t hash, StoreSpace space, Slice key, StoreValue *value,
                    uint32_t *ticket);
void item_cache_put(ItemCache *cache, uint64_t hash, StoreSpace space, Slice key, Slice value,
                    uint32_t ticket);

void item_cache_forget(ItemCache *cache, uint64_t hash);

/* A version of an item that is not durable yet; NULL if it is not worth keeping. Once it is durable
 * it replaces what the cache has (item_cache_renew); otherwise it is freed. */
typedef struct CachedItem CachedItem;
CachedItem *item_cache_prepare(ItemCache *cache, uint64_t hash, StoreSpace space, Slice key,
                               Slice value);
void item_cache_renew(ItemCache *cache, CachedItem *item);
void cached_item_free(CachedItem *item); /* accepts NULL */

size_t item_cache_bytes(ItemCache *cache); /* in use */
