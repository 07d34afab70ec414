/* hot_keys.c - finds the keys that collect operands faster than RocksDB merges them.
 *
 * Until a memtable is written out, every operand of a key is an entry of its own, and a read walks
 * them all: up to 0.6 us each. A key that takes one operand a group has thousands after seconds.
 * So the commit thread counts them, and after OPERANDS_MAX writes the key's whole value first.
 *
 * The counts need not be exact, but must not suffer from the many keys that are written once: a
 * key is in one of WAYS slots. A new key replaces the one with the lowest count only if that is 1;
 * otherwise it lowers that count. So busy keys stay, and keys that are no longer busy go in time.
 *
 * The value may only be written if the group has no operand of the key yet, because the value that
 * is read does not include it (R5). A slot says in which group it was last noted: if that is an
 * older one, no key with the same hash, and so not this one, has been noted since.
 */
#include "base/mem.h"
#include "base/random.h"
#include "store/rocksdb/rocksdb_int.h"

enum {
    OPERANDS_MAX = 128, /* the largest value of an index, 8 KB, then costs 64 bytes an operand */
    WAYS = 4,
    SETS = 4096, /* 256 KB, of which only what is used takes memory */
};

struct HotSlot {
    uint64_t hash;
    uint32_t count; /* 0 if the slot is free */
    uint32_t group;
};

void hot_keys_init(HotKeys *keys)
{
    Random random;
    random_init_secret(&random);
    keys->hash_key = (HashKey){random_u64(&random), random_u64(&random)};
    keys->slots = MEM_NEW_ARRAY(HotSlot, (size_t)WAYS * SETS);
    keys->group = 0;
}

void hot_keys_done(HotKeys *keys)
{
    mem_free(keys->slots);
}

void hot_keys_next_group(HotKeys *keys)
{
    keys->group++; /* may wrap: a slot that seems to be of this group is only left alone */
}

bool hot_keys_note(HotKeys *keys, Slice key)
{
    uint64_t hash = hash_keyed(keys->hash_key, key);
    HotSlot *set = &keys->slots[hash % SETS * WAYS];
    HotSlot *least = set;
    for (size_t i = 0; i < WAYS; i++) {
        HotSlot *slot = &set[i];
        if (slot->count > 0 && slot->hash == hash) {
            bool settle = slot->count >= OPERANDS_MAX && slot->group != keys->group;
            slot->count = settle ? 1 : slot->count + (slot->count < UINT32_MAX);
            slot->group = keys->group;
            return settle;
        }
        if (slot->count < least->count)
            least = slot;
    }
    if (least->count > 1)
        least->count--;
    else
        *least = (HotSlot){hash, 1, keys->group};
    return false;
}
