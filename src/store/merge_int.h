/* merge_int.h - keys that are written as operands: how a transaction carries them, and what an
 * engine keeps for them.
 *
 * Whatever a StoreMerge makes of a key's operands is stored with one byte behind it, which says
 * whether it is whole:
 *
 *     stored = | value | 0 u8 |         what merge made
 *            / | any bytes | 1 u8 |     damaged: merge has refused what was there, or an operand
 *
 * An engine merges in the background too, where nobody could be told of a failure and where giving
 * up would stop every later write. So merging never fails there: the key is marked, and whoever
 * reads it is told that it is corrupt. A damaged key stays so; operands that come later are lost,
 * for there is nothing that they could be applied to.
 *
 * Threads    Nothing here has state.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "store/store.h"

/* One operand as a transaction keeps it; 'key' is a full key. */
typedef struct MergeRecord {
    Slice key;
    Slice operand;
} MergeRecord;

void merge_record_append(Buf *out, StoreSpace space, Slice key, Slice operand);

/* Takes the first record off 'records'; false when there are no more. */
bool merge_record_next(Slice *records, MergeRecord *out);

/* The one of 'merges' (which may be NULL) that is for a kind of key, or for the kind of a full key;
 * NULL: such keys are not merged. */
const StoreMerge *merge_of_kind(const StoreMerge *merges, uint8_t kind);
const StoreMerge *merge_of(const StoreMerge *merges, Slice key);

/* Applies operands of a full key, oldest first, to its stored value (NULL pointer: there is none)
 * and writes the stored value that results. 'out' is empty, with room for
 * STORE_VALUE_BYTES_MAX + 1. */
void merge_full(const StoreMerge *merges, Slice key, Slice stored, const Slice *operands,
                size_t count, Buf *out);

/* The stored value of a full key that is merged, whole and empty: it may be removed. */
bool merge_is_removable(const StoreMerge *merges, Slice key, Slice stored);

/* Turns what an engine has found for the full key 'key' into what its reader sees: unless it is of
 * another kind, the value without its last byte. '*hidden': it is empty, and the key as good as
 * absent. */
MUST_USE Status merge_read(const StoreMerge *merges, Slice key, Slice *value, bool *hidden,
                           Error *err);
