/* index_policy.h - a container's indexing policy, ready to be asked: is this path indexed?
 *
 * Made from the normal form that the catalogue keeps ("indexingPolicy" of a definition). The more
 * precise of an included and an excluded path wins: the deeper one; at equal depth "/?" beats a
 * star. The partition key paths, "/id" and "/_ts" are always indexed, also with mode "none".
 *
 * Ownership  Lives in the arena it was made in. Threads: immutable.
 * Bounds     The catalogue bounds the number of paths and of composite indexes. A compiled policy
 *            is a tree of its steps, so that asking costs a look-up per step whatever the number of
 *            paths.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "index/index_path.h"
#include "index/spatial.h"
#include "json/json.h"
#include "json/property_path.h"

typedef struct IndexPolicy IndexPolicy;

/* 'policy' may be undefined, which means the default: everything but "/_etag". */
MUST_USE Status index_policy_new(Arena *arena, Json policy, const PropertyPath *keys,
                                 size_t key_count, IndexPolicy **out, Error *err);

/* Whether an item is indexed if its request does not say so ("automatic"). Also true with mode
 * "none", which requires "automatic" to be false: there an item is indexed under the few paths that
 * always are, and queries find it by these. */
bool index_policy_is_automatic(const IndexPolicy *policy);

/* Whether two policies give every item the same terms; then nothing has to be rebuilt. */
bool index_policy_equal(const IndexPolicy *a, const IndexPolicy *b);

/* A walk from the root down, in step with a document or with the path of a query. */
typedef struct PolicyNode PolicyNode;
typedef struct PolicyPlace {
    const PolicyNode *node; /* NULL if no rule names a path at or below this place */
    bool subtree;           /* whether the nearest rule with a star includes all below */
} PolicyPlace;
PolicyPlace policy_root(const IndexPolicy *policy);
PolicyPlace policy_name(PolicyPlace place, Slice name);
PolicyPlace policy_element(PolicyPlace place);
bool policy_indexes(PolicyPlace place);        /* the value at this place */
bool policy_indexes_always(PolicyPlace place); /* whatever the policy says */
bool policy_indexes_below(PolicyPlace place);  /* something at or below it */

/* The same for a whole path; 'steps' as in IndexPath. */
bool index_policy_has(const IndexPolicy *policy, const IndexStep *steps, size_t count);

/* Parts of a composite index or a tuple; the catalogue and index_path.h enforce it. */
#define COMPOSITE_PARTS_MAX 8

typedef struct CompositePart {
    const IndexStep *steps;
    size_t step_count;
    bool is_descending;
    bool is_time; /* "/_ts", which belongs to the item and is not in its document */
    Slice text;   /* "/a/b", for messages and metrics */
} CompositePart;

/* A composite index, or a tuple, which is one over the elements of an array. If parts go through
 * arrays, an item has a term for each element, and all parts of a term are of one element. So all
 * arrays must lie on one way from the root: '/a/[]/x' goes with '/b' and '/a/[]/c/[]/y', not with
 * '/d/[]/z'. An index whose arrays do not is left out of the policy, and queries do without it. */
typedef struct CompositeIndex {
    const CompositePart *parts;
    size_t part_count;
    size_t array_part;  /* a part that goes through all the arrays */
    size_t array_steps; /* its steps up to the last "[]"; 0 if there is none */
} CompositeIndex;
const CompositeIndex *index_policy_composites(const IndexPolicy *policy, size_t *count);

typedef struct SpatialIndex {
    const IndexStep *steps;
    size_t step_count;
    bool is_subtree; /* for every shape at or below the path; otherwise for the one there */
    unsigned types;  /* flags of SpatialTypes */
    SpatialFrame frame;
} SpatialIndex;
const SpatialIndex *index_policy_spatials(const IndexPolicy *policy, size_t *count);

/* A walk like the one above, to the spatial index of a shape: the one with the most precise path.
 */
typedef struct SpatialPlace {
    const PolicyNode *node;
    const SpatialIndex *subtree;
} SpatialPlace;
SpatialPlace policy_spatial_root(const IndexPolicy *policy);
SpatialPlace policy_spatial_name(SpatialPlace place, Slice name);
SpatialPlace policy_spatial_element(SpatialPlace place);
const SpatialIndex *policy_spatial(SpatialPlace place); /* NULL if no index has shapes here */
bool policy_spatial_below(SpatialPlace place);          /* whether one has, at or below */

/* The same for a whole path. */
const SpatialIndex *index_policy_spatial(const IndexPolicy *policy, const IndexStep *steps,
                                         size_t count);
