/* hash_table.h - numbers for 64-bit hashes, given out in the order of their first appearance.
 *
 * Two different keys with the same hash count as one; among the items of a sample that does not
 * happen.
 *
 * Ownership  The caller calls hash_table_done. Threads: one.
 */
#pragma once

#include "base/defs.h"

typedef struct HashTable {
    uint64_t *hashes;  /* by slot */
    uint32_t *numbers; /* by slot; 0 if the slot is free, else the number plus one */
    size_t capacity;   /* a power of two */
    size_t count;
} HashTable;

void hash_table_init(HashTable *table);
void hash_table_reset(HashTable *table); /* empty again, keeps its memory */
void hash_table_done(HashTable *table);
DEFINE_AUTO_VALUE(HashTable, hash_table_done)

/* The number of 'hash', which is 'count' - 1 if it is new; '*is_new' says so. */
uint32_t hash_table_add(HashTable *table, uint64_t hash, bool *is_new);
