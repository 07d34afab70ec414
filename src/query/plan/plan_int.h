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
 * sufficient; such filters are never exact. (I7)
 *
 * Ownership  Filters are in the planner's arena. What is put into another filter belongs to it.
 * Bounds     The tree is as deep as the query (I8); what programs generate in thousands, values of
 * IN and parts of AND and OR, are children of one filter. Keys, bytes and time of all that is read
 * come from one IndexBudget.
 */
#pragma once

#include "partition/view.h"
#include "query/eval/eval_int.h"
#include "query/sql/query_int.h"

enum { PLAN_STEPS_MAX = JSON_DEPTH_MAX }; /* no document has anything at a longer path */

/* Where an expression leads in the document. */
typedef struct PlanPath {
    const IndexStep *steps;
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
    FILTER_CELLS, /* items in cells of a spatial index: a union, too */
} FilterKind;

typedef struct Filter Filter;
struct Filter {
    FilterKind kind;
    bool exact;
    bool is_single; /* of a range: a document has one value at its path, or none */
    bool is_walked; /* documents come in the order of its range, so that no set of it is needed */
    const CompositeIndex *composite; /* or NULL */
    TermPath path;
    Slice from; /* of FILTER_TERM: the value */
    Slice to;
    const Node *test; /* over 'slot' */
    uint32_t slot;
    bool wanted;
    Filter *children;
    Filter *last_child;
    size_t child_count;
    Filter *next;
    Slice spec; /* "/a/b/?", of what is looked up, or composite_spec(); for metrics */
    IndexEstimate estimate;
    bool is_estimated;
    NumberSet set; /* read while it was estimated, if 'has_set' */
    bool has_set;
    bool is_within; /* 'set' and 'estimate' have only what is in the planner's 'within' */
    bool was_used;
    bool is_named;  /* in index metrics, also if it was not read */
    uint64_t found; /* after it was read; for explain */
};

/* What is known while one partition's part of a query is planned and run. The first group is filled
 * in by the caller of planner_begin. */
typedef struct Planner {
    Arena *arena; /* lives as long as the partition is read */
    const Query *query;
    Run *run; /* to evaluate constants, and tests */
    PartitionView *view;
    PartitionSchema *schema;
    bool needs_system; /* documents are asked for what only the whole item has */
    Random *random;    /* for tests: see plan_prefers */
    Error *err;

    /* What is looked for is in this set, as far as it is in the index: look-ups read nothing else.
     * NULL if nothing so small is known. */
    const NumberSet *within;

    IndexReader index;
    PlanPath **slots; /* by slot: where it leads, or NULL if that is not known */
    uint32_t slot_count;
    bool wants_exact; /* sets that are not are of no use, so that nothing is left out of them */
    bool is_out_of_budget;
    uint32_t looks;  /* between two looks at the clock */
    Slice *excluded; /* paths that a filter would have used, were they indexed */
    size_t excluded_count;
    TermPath spec_path; /* the text of a path is made once for all its filters */
    Slice spec;
} Planner;

void planner_begin(Planner *planner, IndexBudget *budget);

/* Whether to take a way that is right in any case: if it is the cheaper one, or by chance, so that
 * tests see all of them. */
static inline bool plan_prefers(const Planner *planner, bool is_cheaper)
{
    return planner->random == NULL ? is_cheaper : random_below(planner->random, 2) == 0;
}

/* Puts an item's document, in 'arena' if it has to be made, into the slots of FROM's first source.
 */
MUST_USE Status plan_bind(Planner *planner, const Item *item, Arena *arena);

/* Whether a query asks for system properties other than through whole documents that it returns. */
bool plan_needs_system(const Query *query);

/* ---- paths and constants: plan_path.c ---- */

/* The path of an expression, if it is nothing but one. */
bool plan_path(Planner *planner, const Node *node, PlanPath *out);

/* Whether this is the only path of documents that the query asks for; '*out' is then its steps. */
bool plan_asks_only(Planner *planner, TermPath path, PlanPath *out);

/* The path of its elements; false if that is too long. */
bool plan_element(Planner *planner, const PlanPath *path, PlanPath *out);
TermPath plan_term_path(const Planner *planner, const PlanPath *path);
bool plan_is_indexed(const Planner *planner, const PlanPath *path);
Slice plan_path_text(Arena *arena, const PlanPath *path); /* "/a/[]/b" */

/* True, and its value in the planner's arena, if an expression says the same for every document. */
MUST_USE Status plan_constant(Planner *planner, const Node *node, Value *out, bool *is_constant);

/* The encoded value as the index has it; '*exact' becomes false if it stands for others, too. */
Slice plan_term(Planner *planner, const Value *value, bool *exact);

/* The first bytes after all values that begin with these. */
Slice plan_after(Planner *planner, Slice bytes);

/* ---- filters: plan_filter.c ---- */

/* The documents for which 'node' is 'wanted'. */
MUST_USE Status filter_make(Planner *planner, const Node *node, bool wanted, Filter **out);

/* Those of one logical partition, or of the prefix of a hierarchical key. */
Filter *filter_key(Planner *planner, const PartitionKeyDefinition *definition,
                   const PartitionKey *key);

Filter *filter_new(Planner *planner, FilterKind kind, bool exact);
Filter *filter_all(Planner *planner, bool exact);
Filter *filter_none(Planner *planner);
Filter *filter_and(Planner *planner, Filter *a, Filter *b);
Filter *filter_or(Planner *planner, Filter *a, Filter *b);

/* 'a' without 'b'; if 'b' may hold too much, nothing can be taken away. */
Filter *filter_minus(Planner *planner, Filter *a, Filter *b);
void filter_add_child(Filter *filter, Filter *child);

/* An indexed path, and nothing else. */
bool filter_path(Planner *planner, const Node *node, PlanPath *out);
Filter *filter_term(Planner *planner, const PlanPath *path, Slice value, bool exact);
Filter *filter_range(Planner *planner, const PlanPath *path, Slice from, Slice to, bool exact);
Filter *filter_present(Planner *planner, const PlanPath *path);
Filter *filter_types(Planner *planner, const PlanPath *path, TermTag first, TermTag end);
Filter *filter_equal(Planner *planner, const PlanPath *path, const Value *value, bool wanted);
Slice filter_spec(Planner *planner, const PlanPath *path, TermPath term);

/* The filter of an expression of one kind; '*out' stays NULL if the index cannot help.
 *
 *     plan_call.c     functions, LIKE, EXISTS
 *     plan_values.c   filter_test: any expression that depends on one path
 *     plan_spatial.c  ST_WITHIN and ST_INTERSECTS; ST_DISTANCE up to a constant
 */
MUST_USE Status filter_call(Planner *planner, const Node *node, bool wanted, Filter **out);
MUST_USE Status filter_like(Planner *planner, const Node *node, bool wanted, Filter **out);
MUST_USE Status filter_exists(Planner *planner, const Node *node, bool wanted, Filter **out);
MUST_USE Status filter_test(Planner *planner, const Node *node, bool wanted, Filter **out);
MUST_USE Status filter_shapes(Planner *planner, const Node *call, bool wanted, Filter **out);
MUST_USE Status filter_distance(Planner *planner, const Node *call, const Node *limit, bool wanted,
                                Filter **out);

/* ---- composite indexes: plan_composite.c ---- */

/* Values of a composite index for which the parts of a conjunction ask: constants at its first
 * parts, and perhaps a range at the next. */
typedef struct CompositeRange {
    Slice from;
    Slice to;
    size_t parts; /* of the index */
    Filter *used[COMPOSITE_PARTS_MAX];
    bool is_value; /* no range among them */
    bool is_exact;
} CompositeRange;
bool composite_range(Planner *planner, Filter *filter, const CompositeIndex *index,
                     CompositeRange *out);

/* Puts one look-up in the place of several, if a composite index has all of their paths and that is
 * cheaper. */
MUST_USE Status filter_use_composite(Planner *planner, Filter *filter);
Slice composite_spec(Arena *arena, const CompositeIndex *index); /* "/a ASC, /b DESC" */

/* ---- orders: plan_order.c ---- */

enum { ORDER_PARTS_MAX = COMPOSITE_PARTS_MAX };

/* What documents are ordered by: an indexed path, or a composite index. If the filter has constants
 * for the first parts of one, as in c.a = 1 for ORDER BY c.b, the others are in its order. */
typedef struct OrderBy {
    Slice prefix; /* of the composite index: the values to which the filter ties its first parts */
    const Node *values[ORDER_PARTS_MAX]; /* none, if terms are order enough */
    bool inverted[ORDER_PARTS_MAX];      /* the key is descending */
    size_t count;
    const CompositeIndex *composite; /* NULL if it is the path's range index */
    bool is_down;      /* the index is walked down, since all of its bytes are inverted to ours */
    bool numbers_down; /* among equal keys */
    TermPath path;
    Slice spec;
} OrderBy;

/* The order by which an index serves ORDER BY; '*out' is NULL if rows must be sorted after all.
 * STATUS_BAD_REQUEST as the service has it: an index would be needed and is not there. */
MUST_USE Status plan_order(Planner *planner, const OrderBy **out);

/* ---- advice: index_advice.c ---- */

/* Composite indexes that would serve a filter and an order, part by part: "/a ASC". One for each
 * range of the filter, and one for the order. */
enum { ADVICE_MAX = COMPOSITE_PARTS_MAX + 1 };
typedef struct AdvisedIndex {
    const Slice *parts;
    size_t part_count;
} AdvisedIndex;
typedef struct IndexAdvice {
    AdvisedIndex list[ADVICE_MAX];
    size_t count;
} IndexAdvice;

/* Advice for the planner's query with this filter; its texts are in 'arena'. */
void advise(Planner *planner, const Filter *filter, Arena *arena, IndexAdvice *out);

/* ---- sets: plan_set.c ---- */

/* About how many items a filter gives, and how many keys are read for it. */
MUST_USE Status filter_estimate(Planner *planner, Filter *filter);

/* Everything that is planned from here on is asked together with this filter, which is estimated:
 * if it has few items, nothing else needs to be read. */
void plan_look_within(Planner *planner, const Filter *filter);

/* Reads it, into 'arena'. '*exact' becomes false unless exactly the documents wanted are in the
 * set; without budget the planner says so, and the set is of no use. */
MUST_USE Status filter_read(Planner *planner, Filter *filter, Arena *arena, NumberSet *out,
                            bool *exact);

/* The terms of the root: every indexed item. And every item with anything at a path. */
MUST_USE Status plan_read_all(Planner *planner, Arena *arena, NumberSet *out);
MUST_USE Status plan_read_present(Planner *planner, TermPath path, Arena *arena, NumberSet *out);
