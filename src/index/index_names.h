/* index_names.h - the names of the properties that an index has, such as "/address/city".
 *
 * The index itself knows paths as hashes only. So it is asked which hashes it has, from path to
 * path, and an item under a hash that is new tells its name, with all the others that the item has.
 * What comes out is what the index holds, not what a sample of the items has: a property that one
 * item of a million has is there, and one that the policy excludes is not.
 *
 * An array's elements are the step "[]", as in indexing policies. The root has no name and is left
 * out. Composite and spatial indexes, and samples, are no names.
 *
 * Names of several indexes, of the partitions of a container, can be collected one after the other.
 * In the later ones only what is new takes an item.
 *
 * Ownership  An IndexNames lives in the arena given, with all names.
 * Threads    Belongs to one thread.
 * Bounds     INDEX_NAMES_MAX, INDEX_NAMES_BYTES_MAX, and the reader's budget.
 */
#pragma once

#include "index/index_policy.h"
#include "index/index_reader.h"

/* An object that is used as a map has a name for each of its keys. */
#define INDEX_NAMES_MAX       10000
#define INDEX_NAMES_BYTES_MAX ((size_t)1 << 20) /* of the last steps of all names */

/* The items of the index: their documents, and the policies from which they have their terms. */
typedef struct IndexDocuments {
    /* The document lives until the next call. '*found' is false if the item has gone. */
    Status (*fetch)(void *ctx, uint64_t number, Json *document, uint32_t *ts_s, bool *found,
                    Error *err);
    void *ctx;
    const IndexPolicy *policies[2]; /* the same one twice, or NULL, if there are not two */
} IndexDocuments;

typedef struct IndexNames IndexNames;
IndexNames *index_names_new(Arena *arena);

/* Adds the names of one index. '*is_complete' is false if the budget, its time included, or a bound
 * ended it, or if no item could tell the name of a path. */
MUST_USE Status index_names_collect(IndexNames *names, IndexReader *reader,
                                    const IndexDocuments *documents, bool *is_complete, Error *err);

/* Appends the text of the next name to 'out', "/tags/[]", as policies spell it: a step with other
 * characters than letters, digits and '_' is quoted. Parents come before what is below them.
 * '*position' begins at 0; false at the end. */
bool index_names_next(const IndexNames *names, size_t *position, Buf *out);
