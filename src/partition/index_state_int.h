/* index_state_int.h - which terms the items of a partition have.
 *
 * The index follows one policy. While the policy is being changed it follows two: items up to a
 * position, in the order of their numbers, have the terms of the new one, those after it the
 * terms of the old one. There are never more than two: a third policy waits until the second is
 * complete.
 *
 * Before the index had samples of its values (index/term.h) there were the same terms without them.
 * Items from then get them by a rebuild from a policy to itself. Until it has passed an
 * item it is unknown which samples the item has, since both kinds of items may be in a partition.
 * So a change of the item removes all samples that it can have, and adds those that it should have.
 *
 * Ownership  Reference counted. Threads: immutable after it is made.
 */
#pragma once

#include "base/hash.h"
#include "index/index_policy.h"
#include "partition/epk.h"

#include <stdatomic.h>

/* Which items are in samples for certain. Stored, so never renumbered. */
typedef enum IndexSamples {
    SAMPLES_UNSURE = 0,
    SAMPLES_TO_POSITION = 1, /* they are being added: both policies are the same */
    SAMPLES_ALL = 2,
} IndexSamples;

typedef struct IndexState {
    _Atomic uint32_t refs;
    IndexSamples samples;
    Arena arena;
    Slice old_text; /* stored forms of the policies; empty if nothing is indexed */
    Slice new_text;
    const IndexPolicy *old_policy; /* NULL if nothing is indexed */
    const IndexPolicy *new_policy; /* the same as the old one if the index is complete */
} IndexState;

/* The position of an index that is complete. */
#define INDEX_COMPLETE UINT64_MAX

/* Makes a state from stored forms of policies. Fails with STATUS_CORRUPT, or with the reason why a
 * text is no policy. */
MUST_USE Status index_state_new(const PartitionKeyDefinition *key, Slice old_text, Slice new_text,
                                IndexSamples samples, IndexState **out, Error *err);
IndexState *index_state_ref(IndexState *state);
void index_state_unref(IndexState *state); /* accepts NULL */
DEFINE_AUTO(IndexState *, index_state_unref)

/* The stored record; see index_state.c. 'arena' holds the result. */
Slice index_state_encode(Arena *arena, const IndexState *state, HashKey key, uint64_t position);
MUST_USE Status index_state_decode(Slice record, const PartitionKeyDefinition *definition,
                                   IndexState **out, HashKey *key, uint64_t *position, Error *err);
