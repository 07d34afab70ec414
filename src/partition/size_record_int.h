/* size_record_int.h - how much a logical partition holds: its record, and what a group changes of
 * it.
 *
 *     record = | version u8 | items i64 LE | bytes i64 LE |
 *
 * A record is written blindly, as a difference to be added, and the store keeps the sum of all that
 * were written: see StoreMerge. Bytes are those of the stored items
 * with their keys, as in the partition's counters, which are therefore the sums over all records.
 * The store removes a record whose sum is zero (I16).
 *
 * A group notes its changes here and writes one record for each logical partition that it has
 * touched. Marks of the group remember how many notes there were; group_undo takes back the rest.
 *
 * Ownership  What a group notes lives in its 'keep' arena.
 * Threads    A group's writer.
 */
#pragma once

#include "base/arena.h"
#include "base/hash.h"
#include "base/slice.h"
#include "store/store.h"

enum { SIZE_RECORD_BYTES = 17 };

typedef struct SizeSum {
    int64_t items;
    int64_t bytes;
} SizeSum;

void size_encode(SizeSum sum, uint8_t out[SIZE_RECORD_BYTES]);
bool size_decode(Slice record, SizeSum *out); /* false if the bytes are damaged */
MUST_USE Status size_damaged(Error *err);     /* says so */

/* For StoreMerge. Sums that overflow are damage, too. */
bool size_merge(Slice existing, const Slice *operands, size_t count, bool is_partial, Buf *out);
bool size_is_empty(Slice record);

/* What a group changes of one logical partition. */
typedef struct SizeChange {
    Slice epk;
    SizeSum sum;
    SizeSum stored; /* before the group, if it was read */
    bool is_stored_known;
    uint8_t searches; /* for items of it in vain, up to SEARCHES_MAX: see group_holds_nothing */
} SizeChange;

typedef struct SizeNote {
    uint32_t change;
    SizeSum sum;
} SizeNote;

typedef struct SizeChanges {
    SizeChange *list;
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots; /* by the hash of the EPK: where in the list, and one; 0 is free */
    uint32_t slot_count;
    uint32_t last; /* where in the list the newest search ended */
    SizeNote *notes;
    uint32_t note_count;
    uint32_t note_capacity;
} SizeChanges;

/* The logical partition's entry, made if there is none. Valid until the next one is made. */
SizeChange *size_changes_of(SizeChanges *changes, Arena *arena, HashKey key, Slice epk);

void size_changes_add(SizeChanges *changes, Arena *arena, HashKey key, Slice epk, SizeSum sum);
void size_changes_undo(SizeChanges *changes, uint32_t note_count);
