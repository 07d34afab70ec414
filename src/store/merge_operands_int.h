/* merge_operands_int.h - keys that are written as operands: how a transaction carries them, and
 * what an engine keeps for them.
 *
 * What a StoreMerge makes of a key's operands is stored with one more byte, which says whether it
 * is whole:
 *
 *     stored = | value | 0 u8 |         what merge made
 *            / | any bytes | 1 u8 |     damaged: merge has refused the value, or an operand
 *
 * An engine merges in the background too, where a failure could not be reported and would stop
 * every later write. So merging never fails: the key is marked as damaged, and its readers get
 * STATUS_CORRUPT (I12). A damaged key stays damaged; later operands are lost, because there is no
 * value to apply them to.
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

/* The one of 'merges' (which may be NULL) for a kind of key, or for a full key; NULL if such keys
 * are not merged. */
const StoreMerge *merge_of_kind(const StoreMerge *merges, uint8_t kind);
const StoreMerge *merge_of(const StoreMerge *merges, Slice key);

/* Applies operands of a full key, oldest first, to its stored value (its pointer is NULL if there
 * is none) and writes the stored value that results. 'out' is empty, with room for
 * STORE_VALUE_BYTES_MAX + 1. */
void merge_full(const StoreMerge *merges, Slice key, Slice stored, const Slice *operands,
                size_t count, Buf *out);

/* Whether the full key is a merged one whose stored value is whole and empty. */
bool merge_is_removable(const StoreMerge *merges, Slice key, Slice stored);

/* Turns what an engine has found for the full key 'key' into what a reader sees: for a merged key,
 * the value without its last byte. '*hidden' is set if that is empty, so that the key reads as
 * absent (I11). */
MUST_USE Status merge_read(const StoreMerge *merges, Slice key, Slice *value, bool *hidden,
                           Error *err);
