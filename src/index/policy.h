/* policy.h - a container's indexing policy, ready to be asked: is this path indexed?
 *
 * Made from the normal form that the catalogue keeps ("indexingPolicy" of a definition). The more
 * precise of an included and an excluded path wins: the deeper one; at equal depth "/?" beats a
 * star. The partition key paths, "/id" and "/_ts" are always indexed, also with mode "none".
 *
 * Ownership  Lives in the arena it was made in. Threads: immutable.
 * Bounds     3,000 paths, 100 composite indexes, as the catalogue checks; a compiled policy is a
 *            tree of its steps, so that asking costs a look-up per step whatever the number of
 *            paths.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "index/path.h"
#include "index/spatial.h"
#include "json/json.h"
#include "json/path.h"

typedef struct IndexPolicy IndexPolicy;

/* 'policy' may be undefined: the default, everything but "/_etag". */
MUST_USE Status index_policy_new(Arena *arena, Json policy, const PropertyPath *keys,
                                 size_t key_count, IndexPolicy **out, Error *err);

/* "automatic": whether an item is indexed whose request does not say. With mode "none", where the
 * word must be false, it is, under the few paths that always are: queries find it by these. */
bool index_policy_is_automatic(const IndexPolicy *policy);

/* Whether two policies give every item the same terms; then nothing has to be rebuilt. */
bool index_policy_equal(const IndexPolicy *a, const IndexPolicy *b);

/* A walk from the root down, in step with a document or with the path of a query. */
typedef struct PolicyNode PolicyNode;
typedef struct PolicyPlace {
    const PolicyNode *node; /* NULL: no rule reaches below here by name */
    bool subtree;           /* what the nearest rule with a star says about all below */
} PolicyPlace;
PolicyPlace policy_root(const IndexPolicy *policy);
PolicyPlace policy_name(PolicyPlace place, Slice name);
PolicyPlace policy_element(PolicyPlace place);
bool policy_indexes(PolicyPlace place);        /* the value here */
bool policy_indexes_always(PolicyPlace place); /* and would whatever the policy said */
bool policy_indexes_below(
    PolicyPlace place); /* anything at or below: false lets a walk turn back */

/* The same for a whole path; 'steps' as in IndexPath. */
bool index_policy_has(const IndexPolicy *policy, const IndexStep *steps, size_t count);

/* A value has as many parts at most: the catalogue and path.h keep to it. */
#define COMPOSITE_PARTS_MAX 8

typedef struct CompositePart {
    const IndexStep *steps;
    size_t step_count;
    bool is_descending;
    bool is_time; /* "/_ts", which is the item's and not in its document */
    Slice text;   /* "/a/b", for messages and metrics */
} CompositePart;

/* A composite index, or a tuple, which is one over the elements of an array. If parts go through
 * arrays, an item has a term for each element, and the parts in one term are of one element; so
 * all arrays must lie on one way from the root: '/a/[]/x' goes with '/b' and '/a/[]/c/[]/y', not
 * with '/d/[]/z'. An index with such parts is not among these, and queries use other ways. */
typedef struct CompositeIndex {
    const CompositePart *parts;
    size_t part_count;
    size_t array_part;  /* a part that goes through all the arrays */
    size_t array_steps; /* its steps up to the last "[]"; 0: there is none */
} CompositeIndex;
const CompositeIndex *index_policy_composites(const IndexPolicy *policy, size_t *count);

typedef struct SpatialIndex {
    const IndexStep *steps;
    size_t step_count;
    bool is_subtree; /* of every shape at or below the path; else of the one there */
    unsigned types;  /* flags of SpatialTypes */
    SpatialFrame frame;
} SpatialIndex;
const SpatialIndex *index_policy_spatials(const IndexPolicy *policy, size_t *count);

/* Which of them a shape belongs to: the one with the most precise path. The same kind of walk. */
typedef struct SpatialPlace {
    const PolicyNode *node;
    const SpatialIndex *subtree;
} SpatialPlace;
SpatialPlace policy_spatial_root(const IndexPolicy *policy);
SpatialPlace policy_spatial_name(SpatialPlace place, Slice name);
SpatialPlace policy_spatial_element(SpatialPlace place);
const SpatialIndex *policy_spatial(SpatialPlace place); /* NULL: no index has shapes here */
bool policy_spatial_below(SpatialPlace place);          /* some index has, at or below */

/* The same for a whole path. */
const SpatialIndex *index_policy_spatial(const IndexPolicy *policy, const IndexStep *steps,
                                         size_t count);
