/* plan_int.h - how a query finds its documents in one partition.
 *
 * A filter is what the index can say about a WHERE clause: a tree of look-ups whose result is a set
 * of item numbers. The set holds every document for which the clause may be true; if it is exact,
 * no other. For every expression two filters can be asked for, the documents for which it is true
 * and those for which it is false, since NOT is no complement: what is undefined is neither.
 *
 *     c.a = 1                 true: {a=1}                 false: {a present} - {a=1}
 *     c.a < 1                 true: {a in numbers, < 1}   false: {a in numbers, >= 1}
 *     x AND y                 true: and of both           false: or of both
 *     f(c.a), whatever f is   true: a walk over all values of a, f asked of each
 *     anything else           everything, not exact
 *
 * A condition on the element of a JOIN, or inside EXISTS, is necessary for a document and not
 * sufficient; such filters are never exact.
 */
#pragma once

#include "partition/view.h"
#include "query/eval_int.h"
#include "query/query_int.h"

enum { PLAN_STEPS_MAX = 64 }; /* a longer path is not looked up */

/* Where an expression leads in the document. */
typedef struct PlanPath {
    IndexStep steps[PLAN_STEPS_MAX];
    size_t count;
    bool is_precise; /* no element stands for a position, and no row for its document */
} PlanPath;

typedef enum FilterKind {
    FILTER_ALL,  /* every indexed item */
    FILTER_NONE, /* no item */
    FILTER_TERM, /* items with exactly this value */
    FILTER_RANGE,
    FILTER_TEST, /* items whose value makes 'test' what is wanted */
    FILTER_AND,
    FILTER_OR,
    FILTER_MINUS, /* the first child without the second, which is exact */
    FILTER_CELLS, /* items in cells of a spatial index: a union of ranges */
} FilterKind;

typedef struct Filter {
    FilterKind kind;
    bool exact;
    TermPath path;
    Slice from; /* of FILTER_TERM: the value */
    Slice to;
    const Node *test; /* over 'slot' */
    uint32_t slot;
    bool wanted;
    struct Filter *children;
    struct Filter *next;
    Slice spec; /* "/a/b/?", of what is looked up; for metrics */
    IndexEstimate estimate;
    bool is_estimated;
    NumberSet set; /* read while it was estimated, if 'has_set' */
    bool has_set;
    bool was_used;
    uint64_t found; /* after it was read; for explain */
} Filter;

/* What is known while one partition's part of a query is planned and run. */
typedef struct Planner {
    Arena *arena; /* lives as long as the page */
    const Query *query;
    Run *run; /* to evaluate constants, and tests */
    PartitionView *view;
    PartitionSchema *schema;
    bool needs_system; /* documents are asked for what only the whole item has */
    IndexReader index;
    PlanPath **slots; /* by slot: where it leads; NULL: not known */
    uint32_t slot_count;
    bool is_out_of_budget;
    Slice *excluded; /* paths that a filter would have used, were they indexed */
    size_t excluded_count;
    Error *err;
} Planner;

void planner_init(Planner *planner, Arena *arena, const Query *query, Run *run, PartitionView *view,
                  PartitionSchema *schema, IndexBudget *budget, Error *err);

/* Puts an item's document, in 'arena' if it has to be made, into the slots of FROM's first source.
 */
MUST_USE Status plan_bind(Planner *planner, const Item *item, Arena *arena);

/* Whether a query asks for system properties other than through whole documents that it returns. */
bool plan_needs_system(const Query *query);

/* The path of an expression, if it is nothing but one. */
bool plan_path(Planner *planner, const Node *node, PlanPath *out);
TermPath plan_term_path(const Planner *planner, const PlanPath *path);
bool plan_is_indexed(const Planner *planner, const PlanPath *path);
Slice plan_path_text(Arena *arena, const PlanPath *path); /* "/a/[]/b" */

/* True, and its value in the planner's arena, if an expression says the same for every document. */
MUST_USE Status plan_constant(Planner *planner, const Node *node, Value *out, bool *is_constant);

/* The encoded value as the index has it; '*exact' becomes false if it stands for others, too. */
Slice plan_term(Planner *planner, const Value *value, bool *exact);

/* The documents for which 'node' is 'wanted'. */
MUST_USE Status filter_make(Planner *planner, const Node *node, bool wanted, Filter **out);

/* Those of one logical partition, or of the prefix of a hierarchical key. */
Filter *filter_key(Planner *planner, const PartitionKeyDefinition *definition,
                   const PartitionKey *key);
Filter *filter_and(Planner *planner, Filter *a, Filter *b);
Filter *filter_all(Planner *planner, bool exact);
Filter *filter_present(Planner *planner, const PlanPath *path);
Filter *filter_range(Planner *planner, const PlanPath *path, Slice from, Slice to, bool exact);

/* About how many items a filter gives, and how many keys are read for it. */
MUST_USE Status filter_estimate(Planner *planner, Filter *filter);

/* Reads it. '*exact' says whether exactly the documents wanted are in the set; without budget the
 * planner says so, and the set is of no use. */
MUST_USE Status filter_read(Planner *planner, Filter *filter, NumberSet *out, bool *exact);

/* The terms of the root: every indexed item. */
MUST_USE Status plan_read_all(Planner *planner, NumberSet *out);
