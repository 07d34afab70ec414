/* terms.h - makes the terms under which a document is found, and the operands that are written when
 * documents change.
 *
 * Every indexed path of a document has the terms (path, 00) and (path, value); array elements are
 * under the path of "any element". Arrays and objects have their own tag, and the terms of what is
 * inside them. A composite index has one term, under a path of its own (the hash of its parts and
 * orders): the values one after the other, those in descending order with every byte inverted,
 * undefined as TERM_UNDEFINED; "/_ts" is the item's. Every indexed item has such a term. If parts
 * go through arrays (see index_policy.h), there is a term per element; an item with more than
 * COMPOSITE_ELEMENTS_MAX of them also has the term TERM_END there, which says that queries must
 * look at the item. A spatial index has one term per cell that covers a shape, under a path of its
 * own: see spatial.h.
 *
 * A batch collects what changed in many items and writes each chunk once: see terms_batch_finish.
 *
 * Threads    One at a time.
 * Bounds     A document has at most as many terms as bytes; TERMS_MAX stops a hostile one.
 */
#pragma once

#include "base/arena.h"
#include "base/hash.h"
#include "index/index_policy.h"
#include "index/term.h"
#include "store/store.h"

#define TERMS_MAX ((size_t)1 << 20)

typedef struct Term {
    TermPath path;
    Slice value; /* in the arena */
    bool is_sample;
} Term;

typedef struct TermList {
    Term *terms; /* sorted, without repetition */
    size_t count;
} TermList;

/* What an item has besides its document. */
typedef struct TermSystem {
    uint32_t ts_s;
} TermSystem;

/* The terms of a document under a policy, in 'arena'. */
void terms_of(Arena *arena, const IndexPolicy *policy, HashKey key, Json document,
              const TermSystem *system, TermList *out);

/* The path under which a composite index keeps its terms. */
TermPath terms_composite_path(HashKey key, const CompositeIndex *index);

/* Appends one part of the value of a composite term. A reader of a descending part inverts the
 * bytes again, and then knows by itself where the part ends. '*exact' as in term.h. */
void terms_put_part(Buf *out, Json value, bool is_descending, bool *exact);

/* The path under which 'index' keeps the cells of the shapes at 'path'. */
TermPath terms_spatial_path(HashKey key, TermPath path, const SpatialIndex *index);

typedef struct TermsBatch TermsBatch;
TermsBatch *terms_batch_new(Arena *arena, HashKey key);

/* Item 'number' had the terms of one document and gets those of another; a policy of NULL means no
 * terms (there is no item, or it is not indexed). An item may change several times in a batch (I8).
 * Returns how many terms differ. */
size_t terms_batch_change(TermsBatch *batch, uint64_t number, const IndexPolicy *old_policy,
                          Json old_document, const TermSystem *old_system,
                          const IndexPolicy *new_policy, Json new_document,
                          const TermSystem *new_system);

/* Item 'number' has all the terms of its document, except perhaps those in samples: adds all of
 * these, since adding a number that a set has does nothing. Must not share a batch with
 * terms_batch_change: if that removed such a term, the two would cancel out, and the term would
 * stay. */
void terms_batch_add_samples(TermsBatch *batch, uint64_t number, const IndexPolicy *policy,
                             Json document, const TermSystem *system);

/* How many of the terms in which the last change differs are charged: the values that the policy
 * includes, and those of composite and spatial indexes. Terms that say that something is there, or
 * is an array or an object, are free, and so are "/id", "/_ts" and the partition key, which are
 * indexed whatever the policy says. */
size_t terms_batch_values(const TermsBatch *batch);

/* Writes one operand per chunk that changes, in key order; changes that cancel out write nothing.
 */
void terms_batch_finish(TermsBatch *batch, StoreTxn *txn, StoreSpace space);
