/* plan_set.c - filters as sets: what they will cost, and what they hold.
 *
 * Estimates are read from the index itself: a range with few keys is counted, a longer one is
 * judged by a sample and its size. A conjunction begins with its smallest part; a part that would
 * cost more keys than it can save documents is left to the WHERE clause, and the set is not exact.
 */
#include "query/plan/plan_int.h"

#include <math.h>
#include <stdlib.h>

enum {
    SAMPLE_KEYS = 64,
    TEST_COUNTED_MIN = 8,   /* with fewer values, a test is taken to let little pass */
    SAMPLE_CHILDREN = 32,   /* of a union that are estimated; the others are like these */
    KEYS_PER_DOCUMENT = 16, /* keys that are read in the time that fetching a document takes */
    LOOKS_PER_CLOCK = 64,
    WITHIN_CHUNKS_MAX = 8, /* finding a chunk costs a search */
};

static Slice present_tag(void)
{
    static const char tag[] = {TERM_PRESENT};
    return slice_make(tag, sizeof(tag));
}

Status plan_read_present(Planner *planner, TermPath path, Arena *arena, NumberSet *out)
{
    bool complete = true;
    TRY(index_read_value(&planner->index, path, present_tag(), arena, out, &complete,
                         planner->err));
    planner->is_out_of_budget = planner->is_out_of_budget || !complete;
    return STATUS_OK;
}

Status plan_read_all(Planner *planner, Arena *arena, NumberSet *out)
{
    return plan_read_present(planner, term_path_root(planner->index.key), arena, out);
}

/* Look-ups that find nothing cost no key, but time. */
static bool is_late(Planner *planner)
{
    IndexBudget *budget = planner->index.budget;
    bool late = budget->deadline_us != 0 && ++planner->looks % LOOKS_PER_CLOCK == 0 &&
                clock_monotonic_us(budget->clock) >= budget->deadline_us;
    budget->was_short = budget->was_short || late;
    return late;
}

static Status read_test(Planner *planner, const Filter *filter, Arena *arena, NumberSet *out,
                        bool *exact);

/* ---- estimates ---- */

static IndexRange range_of(const Filter *filter, Buf *end)
{
    if (filter->kind != FILTER_TERM)
        return (IndexRange){filter->path, filter->from, filter->to};
    buf_slice(end, filter->from);
    term_after(end);
    return (IndexRange){filter->path, filter->from, buf_view(end)};
}

static Status read_term(Planner *planner, Filter *filter)
{
    IndexReader *index = &planner->index;
    filter->is_within = planner->within != NULL;
    if (filter->is_within)
        return index_read_value_within(index, filter->path, filter->from, planner->within,
                                       planner->arena, &filter->set, &filter->has_set,
                                       planner->err);
    return index_read_value(index, filter->path, filter->from, planner->arena, &filter->set,
                            &filter->has_set, planner->err);
}

/* A value is in a few chunks: reading them all costs no more than estimating would, and once they
 * are read they need not be read again. */
static Status estimate_term(Planner *planner, Filter *filter)
{
    IndexBudget *budget = planner->index.budget;
    IndexBudget few = *budget;
    few.keys_left = few.keys_left < SAMPLE_KEYS ? few.keys_left : SAMPLE_KEYS;
    uint64_t before = planner->index.keys_read;
    planner->index.budget = &few;
    Status status = read_term(planner, filter);
    planner->index.budget = budget;
    uint64_t keys = planner->index.keys_read - before;
    budget->was_short = budget->was_short || (few.was_short && budget->keys_left < SAMPLE_KEYS);
    budget->keys_left -= keys < budget->keys_left ? keys : budget->keys_left;
    budget->bytes_left = few.bytes_left;
    filter->estimate = (IndexEstimate){
        .keys = keys,
        .items = filter->set.count,
        .is_exact = true,
    };
    return status;
}

static Status estimate_leaf(Planner *planner, Filter *filter)
{
    if (filter->kind == FILTER_TERM) {
        TRY(estimate_term(planner, filter));
        if (filter->has_set)
            return STATUS_OK;
    }
    AUTO(buf_done) Buf end;
    buf_init(&end, TERM_VALUE_BYTES_MAX);
    return index_estimate(&planner->index, range_of(filter, &end), SAMPLE_KEYS, &filter->estimate,
                          planner->err);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void plan_look_within(Planner *planner, const Filter *filter)
{
    if (planner->within == NULL && filter->has_set && filter->set.chunk_count <= WITHIN_CHUNKS_MAX)
        planner->within = &filter->set;
}

/* The share of items that a filter lets pass. */
static double share_of(const Planner *planner, const Filter *filter)
{
    uint64_t all = filter->is_within ? planner->within->count : partition_view_items(planner->view);
    uint64_t items = filter->estimate.items;
    return items < all ? (double)items / (double)all : 1;
}

/* Assumes that the parts are independent of each other. */
static Status estimate_and(Planner *planner, Filter *filter)
{
    double items = (double)partition_view_items(planner->view);
    filter->estimate = (IndexEstimate){0};
    for (Filter *child = filter->children; child != NULL; child = child->next) {
        TRY(filter_estimate(planner, child));
        filter->estimate.keys += child->estimate.keys;
        items *= share_of(planner, child);
    }
    filter->estimate.items = (uint64_t)ceil(items);
    return STATUS_OK;
}

/* Estimates a long list from a sample of its members. */
static Status estimate_or(Planner *planner, Filter *filter)
{
    size_t step = filter->child_count / SAMPLE_CHILDREN + 1;
    size_t at = 0;
    uint64_t looked = 0;
    IndexEstimate sum = {0};
    filter->is_within = planner->within != NULL;
    for (Filter *child = filter->children; child != NULL; child = child->next) {
        if (at++ % step != 0)
            continue;
        TRY(filter_estimate(planner, child));
        sum.keys += child->estimate.keys;
        sum.items += child->estimate.items;
        filter->is_within = filter->is_within && child->is_within;
        looked++;
    }
    /* A look-up reads a key even if it finds nothing. */
    uint64_t keys = (sum.keys > looked ? sum.keys : looked) * filter->child_count / looked;
    filter->estimate = (IndexEstimate){
        .keys = keys,
        .items =
            least(sum.items * filter->child_count / looked, partition_view_items(planner->view)),
    };
    return STATUS_OK;
}

static Status estimate_minus(Planner *planner, Filter *filter)
{
    Filter *from = filter->children;
    TRY(filter_estimate(planner, from));
    TRY(filter_estimate(planner, from->next));
    const IndexEstimate *whole = &from->estimate;
    const IndexEstimate *part = &from->next->estimate; /* what is taken away is part of the rest */
    bool is_exact = whole->is_exact && part->is_exact;
    filter->estimate = (IndexEstimate){
        .keys = whole->keys + part->keys,
        .items = whole->items - (is_exact ? least(part->items, whole->items) : 0),
        .is_exact = is_exact,
    };
    return STATUS_OK;
}

/* If many values were counted, the share of all values that pass the test is estimated as the share
 * of the counted ones. If few were, the estimate is low: a filter usually leaves something out. */
static Status estimate_test(Planner *planner, Filter *filter)
{
    IndexEstimate *estimate = &filter->estimate;
    Filter few = *filter;
    few.path = estimate->path;
    NumberSet passed;
    bool exact = true;
    bool was_out = planner->is_out_of_budget;
    TRY(read_test(planner, &few, planner->arena, &passed, &exact));
    planner->is_out_of_budget = was_out;
    double share = ((double)passed.count + 0.5) / ((double)estimate->counted + TEST_COUNTED_MIN);
    estimate->items = (uint64_t)ceil((double)estimate->items * (share < 1 ? share : 1));
    estimate->is_exact = false;
    return STATUS_OK;
}

Status filter_estimate(Planner *planner, Filter *filter)
{
    if (filter->is_estimated)
        return STATUS_OK;
    filter->is_estimated = true;
    uint64_t all = partition_view_items(planner->view);
    switch (filter->kind) {
    case FILTER_ALL:
        filter->estimate =
            (IndexEstimate){.keys = all >> SET_CHUNK_BITS, .items = all, .is_exact = true};
        return STATUS_OK;
    case FILTER_NONE:
        filter->estimate = (IndexEstimate){.is_exact = true};
        return STATUS_OK;
    case FILTER_TERM:
    case FILTER_RANGE:
        return estimate_leaf(planner, filter);
    case FILTER_TEST:
        TRY(estimate_leaf(planner, filter));
        return estimate_test(planner, filter);
    case FILTER_AND:
        return estimate_and(planner, filter);
    case FILTER_OR:
    case FILTER_CELLS:
        return estimate_or(planner, filter);
    case FILTER_MINUS:
        return estimate_minus(planner, filter);
    }
    return STATUS_OK;
}

/* ---- tests ---- */

static Value value_of_term(const TermValue *term)
{
    switch (term->tag) {
    case TERM_NULL:
        return VALUE_NULL;
    case TERM_FALSE:
    case TERM_TRUE:
        return value_bool(term->tag == TERM_TRUE);
    case TERM_NUMBER:
        return value_number(term->number);
    case TERM_STRING:
        return value_string(term->text);
    case TERM_PRESENT:
    case TERM_UNDEFINED:
    case TERM_ARRAY:
    case TERM_OBJECT:
    case TERM_END:
        break;
    }
    return VALUE_UNDEFINED;
}

/* Whether a term tells all about the value that it stands for. 0 may be -0, which some functions
 * tell from it. */
static bool is_telling(const TermValue *term)
{
    return term->exact && term->tag < TERM_ARRAY &&
           !(term->tag == TERM_NUMBER && term->number == 0);
}

/* Asks the test of one value; what the term does not tell whole is taken along. */
static Status test_value(Planner *planner, const Filter *filter, Slice bytes, bool *taken,
                         bool *exact)
{
    Run *run = planner->run;
    TermValue term;
    *taken = !term_read(&run->rows, &bytes, &term) || !is_telling(&term);
    if (*taken) {
        *exact = false;
        return STATUS_OK;
    }
    Value answer;
    run->slots[filter->slot] = value_of_term(&term);
    TRY(eval(run, filter->test, &answer));
    *taken = answer.type == JSON_BOOL && answer.boolean == filter->wanted;
    return STATUS_OK;
}

static Status test_values(Planner *planner, const Filter *filter, IndexWalk *walk,
                          SetBuilder *builder, bool *exact)
{
    Run *run = planner->run;
    for (;;) {
        Slice value;
        NumberSet items;
        bool found = false;
        bool complete = true;
        TRY(index_walk_next(walk, &value, &items, &found, &complete, planner->err));
        if (!found) {
            planner->is_out_of_budget = planner->is_out_of_budget || !complete;
            return STATUS_OK;
        }
        bool taken = false;
        TRY(test_value(planner, filter, value, &taken, exact));
        if (taken)
            set_builder_add_set(builder, &items);
        if (set_builder_bytes(builder) > planner->index.budget->bytes_left) {
            planner->is_out_of_budget = true;
            return STATUS_OK;
        }
        TRY(run_reserve(run, 0));
        arena_reset(&run->rows);
    }
}

static Status read_test(Planner *planner, const Filter *filter, Arena *arena, NumberSet *out,
                        bool *exact)
{
    AUTO(index_walk_close) IndexWalk *walk = NULL;
    IndexRange range = {filter->path, filter->from, filter->to};
    TRY(index_walk_open(&planner->index, range, false, &walk, planner->err));
    SetBuilder *builder = set_builder_new(arena);
    Run *run = planner->run;
    Arena *before = run->scratch;
    run->scratch = &run->rows;
    TRY(test_values(planner, filter, walk, builder, exact));
    arena_reset(&run->rows);
    run->scratch = before;
    set_builder_finish(builder, out);
    return STATUS_OK;
}

/* ---- sets ---- */

static Status read_leaf(Planner *planner, const Filter *filter, Arena *arena, NumberSet *out)
{
    bool complete = true;
    if (filter->has_set) {
        *out = filter->set;
        return STATUS_OK;
    }
    if (filter->kind == FILTER_TERM)
        TRY(index_read_value(&planner->index, filter->path, filter->from, arena, out, &complete,
                             planner->err));
    else
        TRY(index_read_range(&planner->index, (IndexRange){filter->path, filter->from, filter->to},
                             arena, out, &complete, planner->err));
    planner->is_out_of_budget = planner->is_out_of_budget || !complete;
    return STATUS_OK;
}

/* A part of a conjunction. */
typedef struct Conjunct {
    Filter *filter;
} Conjunct;

static int compare_conjuncts(const void *a, const void *b)
{
    uint64_t left = ((const Conjunct *)a)->filter->estimate.items;
    uint64_t right = ((const Conjunct *)b)->filter->estimate.items;
    return (left > right) - (left < right);
}

/* Those that sets are needed of, smallest first. */
static size_t sort_conjuncts(const Filter *filter, Conjunct *out)
{
    size_t count = 0;
    for (Filter *child = filter->children; child != NULL; child = child->next) {
        if (!child->is_walked)
            out[count++].filter = child;
    }
    if (count > 1)
        qsort(out, count, sizeof(*out), compare_conjuncts);
    return count;
}

static Status read_and(Planner *planner, const Filter *filter, Arena *arena, NumberSet *out,
                       bool *exact)
{
    Conjunct *parts = ARENA_NEW_ARRAY(planner->arena, Conjunct, filter->child_count);
    size_t count = sort_conjuncts(filter, parts);
    ASSERT(count > 0);
    TRY(filter_read(planner, parts[0].filter, arena, out, exact));
    for (size_t i = 1; i < count && out->count > 0 && !planner->is_out_of_budget; i++) {
        Filter *part = parts[i].filter;
        uint64_t worth = KEYS_PER_DOCUMENT * out->count + SAMPLE_KEYS;
        if (!planner->wants_exact && !plan_prefers(planner, part->estimate.keys <= worth)) {
            *exact = false;
            continue;
        }
        NumberSet other;
        NumberSet both;
        TRY(filter_read(planner, part, arena, &other, exact));
        if (planner->is_out_of_budget) { /* what there is serves without the rest */
            planner->is_out_of_budget = false;
            *exact = false;
            return STATUS_OK;
        }
        set_and(arena, out, &other, &both);
        *out = both;
    }
    return STATUS_OK;
}

static Status read_or(Planner *planner, const Filter *filter, Arena *arena, NumberSet *out,
                      bool *exact)
{
    AUTO(arena_done) Arena scratch;
    arena_init(&scratch, ARENA_SMALL_BYTES);
    SetBuilder *builder = set_builder_new(arena);
    for (Filter *child = filter->children; child != NULL && !planner->is_out_of_budget;
         child = child->next) {
        NumberSet one;
        TRY(filter_read(planner, child, &scratch, &one, exact));
        set_builder_add_set(builder, &one);
        arena_reset(&scratch);
    }
    set_builder_finish(builder, out);
    return STATUS_OK;
}

static Status read_minus(Planner *planner, const Filter *filter, Arena *arena, NumberSet *out,
                         bool *exact)
{
    NumberSet from;
    NumberSet what;
    bool what_exact = true;
    TRY(filter_read(planner, filter->children, arena, &from, exact));
    TRY(filter_read(planner, filter->children->next, arena, &what, &what_exact));
    if (!what_exact) { /* it turned out so while it was read: take nothing away */
        *exact = false;
        *out = from;
        return STATUS_OK;
    }
    set_minus(arena, &from, &what, out);
    return STATUS_OK;
}

static Status read_filter(Planner *planner, const Filter *filter, Arena *arena, NumberSet *out,
                          bool *exact)
{
    switch (filter->kind) {
    case FILTER_ALL:
        return plan_read_all(planner, arena, out);
    case FILTER_NONE:
        *out = (NumberSet){0};
        return STATUS_OK;
    case FILTER_TERM:
    case FILTER_RANGE:
        return read_leaf(planner, filter, arena, out);
    case FILTER_TEST:
        return read_test(planner, filter, arena, out, exact);
    case FILTER_AND:
        return read_and(planner, filter, arena, out, exact);
    case FILTER_OR:
    case FILTER_CELLS:
        return read_or(planner, filter, arena, out, exact);
    case FILTER_MINUS:
        return read_minus(planner, filter, arena, out, exact);
    }
    return STATUS_OK;
}

Status filter_read(Planner *planner, Filter *filter, Arena *arena, NumberSet *out, bool *exact)
{
    *out = (NumberSet){0};
    planner->is_out_of_budget = planner->is_out_of_budget || is_late(planner) ||
                                arena_used(arena) > planner->index.budget->bytes_left;
    if (planner->is_out_of_budget)
        return STATUS_OK;
    if (filter->kind == FILTER_AND) /* its parts are sorted by it */
        TRY(filter_estimate(planner, filter));
    *exact = *exact && filter->exact;
    filter->was_used = true;
    TRY(read_filter(planner, filter, arena, out, exact));
    filter->found = out->count;
    return STATUS_OK;
}
