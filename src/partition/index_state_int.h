/* index_state_int.h - which terms the items of a partition have.
 *
 * The index follows one policy. While the policy is being changed it follows two: items up to a
 * position, in the order of their numbers, have the terms of the new one, those behind it the
 * terms of the old one. There are never more than two: a third policy waits until the second is
 * complete.
 *
 * Ownership  Reference counted. Threads: immutable after it is made.
 */
#pragma once

#include "base/hash.h"
#include "index/policy.h"
#include "partition/key.h"

#include <stdatomic.h>

typedef struct IndexState {
    _Atomic uint32_t refs;
    Arena arena;
    Slice old_text; /* stored forms of the policies; empty: nothing is indexed */
    Slice new_text;
    const IndexPolicy *old_policy; /* NULL: nothing is indexed */
    const IndexPolicy *new_policy; /* the same as the old one if the index is complete */
} IndexState;

/* The position of an index that is complete. */
#define INDEX_COMPLETE UINT64_MAX

/* Of stored forms. STATUS_CORRUPT or the reason why a policy is none. */
MUST_USE Status index_state_new(const PartitionKeyDefinition *key, Slice old_text, Slice new_text,
                                IndexState **out, Error *err);
IndexState *index_state_ref(IndexState *state);
void index_state_unref(IndexState *state); /* accepts NULL */
DEFINE_AUTO(IndexState *, index_state_unref)

/* The stored record; see index_state.c. 'arena' holds the result. */
Slice index_state_encode(Arena *arena, const IndexState *state, HashKey key, uint64_t position);
MUST_USE Status index_state_decode(Slice record, const PartitionKeyDefinition *definition,
                                   IndexState **out, HashKey *key, uint64_t *position, Error *err);
