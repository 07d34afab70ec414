/* policy_advice.h - what a workload says about the indexing policy: paths that no query needs, and
 * composite indexes that would help.
 *
 * Request units are what the charge model says: a write pays for each value that enters the index,
 * and a query for each item that it loads, as a server has measured it. Of queries that no server
 * has seen, the planner's rule says how many items it would load and sort.
 *
 * Ownership  Everything lives in the arena given.
 * Bounds     As many unused paths as path_stats.h has rows; POLICY_COMPOSITES_MAX of each kind.
 */
#pragma once

#include "advise/key_candidate.h"
#include "advise/path_stats.h"
#include "advise/workload.h"
#include "index/index_policy.h"
#include "throughput/charge.h"

#define POLICY_COMPOSITES_MAX 32

typedef struct UnusedPath {
    Slice path;   /* as an indexing policy excludes it: "/note/?", or "/log/" and a star */
    double terms; /* values in the index, for each item */
    double ru;    /* what leaving them out saves on each create */
} UnusedPath;

typedef struct CompositeAdvice {
    const Slice *parts; /* "/a ASC" */
    size_t part_count;
    bool is_required;    /* the service refuses the query without it */
    size_t query;        /* the first that needs it, by its place in the workload */
    double spared_items; /* that need not be loaded and sorted for such a query; not charged */
    double saved_ru;     /* on each such query; 0 if that is not known */
    double saved_ru_s;   /* a second, of all queries that it serves */
    double write_ru;     /* what the index adds to each create */
} CompositeAdvice;

/* A composite index of the policy that serves no query. */
typedef struct UnusedComposite {
    const CompositeIndex *index;
    double ru; /* what dropping it saves on each create */
} UnusedComposite;

typedef struct PolicyAdvice {
    bool is_known;    /* false if a query may use any path: then no path is called unused */
    double create_ru; /* of an item of mean size with all that is indexed now */
    UnusedPath *unused;
    size_t unused_count;
    double unused_ru; /* of all of them */
    CompositeAdvice composites[POLICY_COMPOSITES_MAX];
    size_t composite_count;
    UnusedComposite unused_composites[POLICY_COMPOSITES_MAX];
    size_t unused_composite_count;
} PolicyAdvice;

/* 'current' is the policy that the container has, or the default one; 'key' the partition key,
 * which is indexed whatever the policy says. */
void policy_advice_make(const PathTable *paths, const Sample *sample, const Workload *work,
                        const IndexPolicy *current, const KeyCandidate *key,
                        const ChargeModel *model, Arena *arena, PolicyAdvice *out);
