/* space_key_int.h - the keys of a partition's space.
 *
 *     key                              value
 *     | 01 |                           the counters, see counters.c
 *     | 02 | EPK | id |                an item, see item.c
 *     | 03 | number u64 BE |           where that item is: | EPK length u16 LE | EPK | id |
 *     | 04 | s u32 BE | number |       nothing: look at this item at that second
 *     | 05 | which u8 | EPK | values | the number, u64 LE, that has these values of a unique key
 *     | 06 | EPK |                     an LSN, u64 LE: items up to it are purged
 *     | 07 |                           the state of the index, see index_state.c
 *     | 08 | EPK |                     what the logical partition holds, see size_record_int.h
 *     | 09 | LSN | order | number |    the newest change of an item, see change_log_int.h
 *     | 0A | LSN | order | number |    a change that is kept for a time, see there
 *     | 0B | EPK |                     an LSN, u64 LE: from this EPK on, changes up to it are not
 *                                      kept
 *     | 0C | baseline u64 BE |         an LSN, u64 LE: see baseline_int.h
 *     | 0D | baseline | LSN | number | what that item was at the baseline, see there
 *     | 10 | path | value | chunk |    which items have this value there, see index/term.h
 *
 * An EPK has a fixed length in its container or ends itself, so two pairs (EPK, id) never make the
 * same key.
 */
#pragma once

#include "base/encoding.h"
#include "index/term.h"
#include "partition/item.h"

enum {
    KEY_COUNTERS = 0x01,
    KEY_ITEM = 0x02,
    KEY_NUMBER = 0x03,
    KEY_EXPIRY = 0x04,
    KEY_UNIQUE = 0x05,
    KEY_PURGE = 0x06,
    KEY_INDEX_STATE = 0x07,
    KEY_SIZE = 0x08,
    KEY_LATEST = 0x09,
    KEY_HISTORY = 0x0A,
    KEY_FLOOR = 0x0B,
    KEY_BASELINE = 0x0C,
    KEY_BEFORE = 0x0D,
    KEY_TERM = TERM_KIND,
};

/* The lengths of those that have one. */
enum {
    KEY_NUMBER_BYTES = 1 + 8,
    KEY_EXPIRY_BYTES = 1 + 4 + 8,
};

#define KEY_BYTES_MAX 4096

typedef struct Key {
    uint8_t bytes[KEY_BYTES_MAX];
    size_t len;
} Key;

static inline Slice key_slice(const Key *key)
{
    return slice_make(key->bytes, key->len);
}

void key_set(Key *key, Slice bytes);
void key_item(Key *key, Slice epk, Slice id);
void key_number(Key *key, uint64_t number);
void key_expiry(Key *key, uint64_t expires_at_s, uint64_t number);
void key_purge(Key *key, Slice epk);
void key_size(Key *key, Slice epk);

/* The keys of items whose EPK begins with 'prefix' are those of ['from', 'to'). */
void key_item_range(Key *from, Key *to, Slice prefix);

/* The EPK at the beginning of an item's key. */
Slice key_item_epk(const PartitionSchema *schema, Slice key, const Item *item);

/* | EPK length u16 | EPK | id |, the value of a KEY_NUMBER. */
Slice location_encode(Arena *arena, Slice epk, Slice id);
MUST_USE Status location_decode(Slice bytes, Slice *epk, Slice *id, Error *err);
