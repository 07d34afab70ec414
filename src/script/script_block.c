/* script_block.c - see script_block_int.h. */
#include "script/script_block_int.h"

#include "base/hash.h"
#include "base/mem.h"
#include "script/script_pool.h"

#include <pthread.h>

/* Versions are not chosen by clients, so the key need not be secret. */
static const HashKey KEY = {1, 2};

typedef struct Entry {
    uint64_t
        hash; /* of the version; two versions with one hash share their fate, which is harmless */
    uint64_t noted_us;
    uint32_t count; /* 0 if the entry is free */
} Entry;

struct ScriptBlocks {
    const Clock *clock;
    pthread_mutex_t lock;
    Entry entries[BLOCK_VERSIONS_MAX]; /* guarded by lock */
};

ScriptBlocks *script_blocks_new(const Clock *clock)
{
    ScriptBlocks *blocks = MEM_NEW(ScriptBlocks);
    blocks->clock = clock;
    (void)pthread_mutex_init(&blocks->lock, NULL);
    return blocks;
}

void script_blocks_free(ScriptBlocks *blocks)
{
    if (blocks == NULL)
        return;
    (void)pthread_mutex_destroy(&blocks->lock);
    mem_free(blocks);
}

/* The entry of a version; NULL if it has none that still counts. */
static Entry *find(ScriptBlocks *blocks, uint64_t hash, uint64_t now_us)
{
    for (size_t i = 0; i < BLOCK_VERSIONS_MAX; i++) {
        Entry *entry = &blocks->entries[i];
        if (entry->count > 0 && entry->hash == hash && now_us - entry->noted_us < BLOCK_FORGET_US)
            return entry;
    }
    return NULL;
}

/* A free entry, or the one that was noted the longest time ago. */
static Entry *find_room(ScriptBlocks *blocks)
{
    Entry *oldest = &blocks->entries[0];
    for (size_t i = 0; i < BLOCK_VERSIONS_MAX && oldest->count > 0; i++) {
        Entry *entry = &blocks->entries[i];
        if (entry->count == 0 || entry->noted_us < oldest->noted_us)
            oldest = entry;
    }
    return oldest;
}

bool script_blocks_has(ScriptBlocks *blocks, Slice version)
{
    if (version.len == 0)
        return false;
    uint64_t hash = hash_keyed(KEY, version);
    uint64_t now_us = clock_monotonic_us(blocks->clock);
    (void)pthread_mutex_lock(&blocks->lock);
    const Entry *entry = find(blocks, hash, now_us);
    bool is_blocked = entry != NULL && entry->count >= SCRIPT_BLOCK_RUNS;
    (void)pthread_mutex_unlock(&blocks->lock);
    return is_blocked;
}

void script_blocks_note(ScriptBlocks *blocks, Slice version)
{
    if (version.len == 0)
        return;
    uint64_t hash = hash_keyed(KEY, version);
    uint64_t now_us = clock_monotonic_us(blocks->clock);
    (void)pthread_mutex_lock(&blocks->lock);
    Entry *entry = find(blocks, hash, now_us);
    if (entry == NULL) {
        entry = find_room(blocks);
        *entry = (Entry){.hash = hash};
    }
    entry->noted_us = now_us;
    entry->count++;
    (void)pthread_mutex_unlock(&blocks->lock);
}
