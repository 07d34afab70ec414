/* key_advice.h - which partition key a container should have, derived from a sample of its items
 * and the queries that it serves.
 *
 * key_advice_make() finds candidates by itself, measures each (key_layout.h, key_queries.h), judges
 * it (verdict.h) and ranks them. report.h prints the result.
 *
 * Ownership  An Advice lives in the arena given, and borrows the sample and the workload.
 * Threads    Nothing here has state.
 * Bounds     KEY_ADVICE_CANDIDATES_MAX keys; the sample's and the workload's bounds.
 */
#pragma once

#include "advise/policy_advice.h"
#include "advise/verdict.h"

#define KEY_ADVICE_CANDIDATES_MAX     120
#define KEY_ADVICE_PARTITIONS_DEFAULT 10
#define KEY_ADVICE_ITEMS_PER_DAY_MAX  1e12

/* Whether to try no more candidates: what was measured until then is the advice. */
typedef struct AdviceStop {
    bool (*is_due)(void *ctx); /* NULL if never */
    void *ctx;
} AdviceStop;

typedef struct KeyAdviceOptions {
    uint32_t partitions;         /* physical ones to lay out; 1 to LAYOUT_PARTITIONS_MAX */
    bool are_partitions_given;   /* by the user: then the container is not taken for a small one */
    double growth;               /* expected items a day; 0 to derive it from the sample */
    PropertyPath together;       /* as in LayoutOptions */
    const KeyCandidate *check;   /* to be judged whatever else is found; NULL if none */
    const KeyCandidate *current; /* the key that the container has; NULL if not known */
    const IndexPolicy *policy;   /* that the container has, or the default one */
    const ChargeModel *model;
    double now_s;           /* since 1970 */
    const char *no_queries; /* said in the conclusion if there is no workload; NULL for nothing */
    AdviceStop stop;        /* asked before each candidate but the named ones */
} KeyAdviceOptions;

typedef struct AdvisedKey {
    KeyCandidate key;
    KeyLayout layout;
    KeyQueries queries; /* if there is a workload */
    Verdict verdict;
    double promise; /* how much its paths are asked for; decides between equal scores */
} AdvisedKey;

typedef struct Advice {
    const Sample *sample;
    const Workload *work; /* NULL if none was given */
    KeyAdviceOptions options;
    PathTable paths;
    AdvisedKey **keys; /* the best first */
    size_t key_count;
    const AdvisedKey *best;    /* NULL if no key is acceptable */
    const AdvisedKey *checked; /* of KeyAdviceOptions.check */
    double items_per_day;      /* given or observed; 0 if not known */
    bool is_growth_given;
    bool is_small;       /* one physical partition will do for years */
    bool is_cut_short;   /* by KeyAdviceOptions.stop */
    Slice conclusion;    /* in plain words */
    PolicyAdvice policy; /* if there is a workload */
} Advice;

/* 'work' may be NULL. The sample is finished. */
void key_advice_make(const Sample *sample, const Workload *work, const KeyAdviceOptions *options,
                     Arena *arena, Advice *out);
