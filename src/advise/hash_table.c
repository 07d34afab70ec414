/* hash_table.c - see hash_table.h. */
#include "advise/hash_table.h"

#include "base/mem.h"

#include <string.h>

enum { CAPACITY_FIRST = 64 };

void hash_table_init(HashTable *table)
{
    *table = (HashTable){0};
}

void hash_table_reset(HashTable *table)
{
    table->count = 0;
    if (table->capacity > 0)
        memset(table->numbers, 0, table->capacity * sizeof(uint32_t));
}

void hash_table_done(HashTable *table)
{
    mem_free(table->hashes);
    mem_free(table->numbers);
    *table = (HashTable){0};
}

/* The slot of the hash, or the free one where it would be. */
static size_t find_slot(const HashTable *table, uint64_t hash)
{
    size_t slot = hash & (table->capacity - 1);
    while (table->numbers[slot] != 0 && table->hashes[slot] != hash)
        slot = (slot + 1) & (table->capacity - 1);
    return slot;
}

static void grow(HashTable *table)
{
    HashTable larger = {.capacity = table->capacity == 0 ? CAPACITY_FIRST : 2 * table->capacity,
                        .count = table->count};
    larger.hashes = MEM_NEW_ARRAY(uint64_t, larger.capacity);
    larger.numbers = MEM_NEW_ARRAY(uint32_t, larger.capacity);
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->numbers[i] == 0)
            continue;
        size_t slot = find_slot(&larger, table->hashes[i]);
        larger.hashes[slot] = table->hashes[i];
        larger.numbers[slot] = table->numbers[i];
    }
    hash_table_done(table);
    *table = larger;
}

uint32_t hash_table_add(HashTable *table, uint64_t hash, bool *is_new)
{
    if (2 * table->count >= table->capacity)
        grow(table);
    size_t slot = find_slot(table, hash);
    *is_new = table->numbers[slot] == 0;
    if (*is_new) {
        table->hashes[slot] = hash;
        table->numbers[slot] = (uint32_t)++table->count;
    }
    return table->numbers[slot] - 1;
}
