/* plan_set.c - filters as sets: what they will cost, and what they hold.
 *
 * Estimates are read from the index itself: a range with few keys is counted, a longer one is
 * judged by a sample and its size. A conjunction begins with its smallest part; a part that would
 * cost more keys than it can save documents is left to the WHERE clause, and the set is not exact.
 */
#include "query/plan_int.h"

enum {
    SAMPLE_KEYS = 64,
    KEYS_PER_DOCUMENT = 16, /* keys that are read in the time that fetching a document takes */
};

static Slice present_tag(void)
{
    static const char tag[] = {TERM_PRESENT};
    return slice_make(tag, sizeof(tag));
}

Status plan_read_all(Planner *planner, NumberSet *out)
{
    bool complete = true;
    TRY(index_read_value(&planner->index, term_path_root(planner->index.key), present_tag(),
                         planner->arena, out, &complete, planner->err));
    planner->is_out_of_budget = planner->is_out_of_budget || !complete;
    return STATUS_OK;
}

static IndexRange range_of(const Filter *filter, Buf *end)
{
    if (filter->kind != FILTER_TERM)
        return (IndexRange){filter->path, filter->from, filter->to};
    buf_slice(end, filter->from);
    term_after(end);
    return (IndexRange){filter->path, filter->from, buf_view(end)};
}

/* A value is in a few chunks: reading them all costs no more than estimating would, and once they
 * are read they need not be read again. */
static Status estimate_term(Planner *planner, Filter *filter)
{
    IndexBudget *budget = planner->index.budget;
    IndexBudget few = {.keys_left = SAMPLE_KEYS, .bytes_left = budget->bytes_left};
    uint64_t before = planner->index.keys_read;
    planner->index.budget = &few;
    Status status = index_read_value(&planner->index, filter->path, filter->from, planner->arena,
                                     &filter->set, &filter->has_set, planner->err);
    planner->index.budget = budget;
    filter->estimate = (IndexEstimate){
        .keys = planner->index.keys_read - before,
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

static void combine(Filter *filter, uint64_t all)
{
    const Filter *first = filter->children;
    filter->estimate = first->estimate;
    for (const Filter *child = first->next; child != NULL; child = child->next) {
        filter->estimate.is_exact = false;
        filter->estimate.keys += child->estimate.keys;
        if (filter->kind == FILTER_AND)
            filter->estimate.items = least(filter->estimate.items, child->estimate.items);
        else if (filter->kind == FILTER_OR || filter->kind == FILTER_CELLS)
            filter->estimate.items = least(filter->estimate.items + child->estimate.items, all);
    }
}

Status filter_estimate(Planner *planner, Filter *filter)
{
    if (filter->is_estimated)
        return STATUS_OK;
    filter->is_estimated = true;
    uint64_t all = partition_view_items(planner->view);
    switch (filter->kind) {
    case FILTER_ALL:
        filter->estimate = (IndexEstimate){.keys = all >> SET_CHUNK_BITS, .items = all};
        return STATUS_OK;
    case FILTER_NONE:
        filter->estimate = (IndexEstimate){.is_exact = true};
        return STATUS_OK;
    case FILTER_TERM:
    case FILTER_RANGE:
        return estimate_leaf(planner, filter);
    case FILTER_TEST:
        TRY(estimate_leaf(planner, filter));
        filter->estimate.items /= 4; /* nobody knows; a filter is there to leave something out */
        filter->estimate.is_exact = false;
        return STATUS_OK;
    case FILTER_AND:
    case FILTER_OR:
    case FILTER_MINUS:
    case FILTER_CELLS:
        break;
    }
    for (Filter *child = filter->children; child != NULL; child = child->next)
        TRY(filter_estimate(planner, child));
    combine(filter, all);
    return STATUS_OK;
}

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

static void add_set(SetBuilder *builder, const NumberSet *set)
{
    SetWalk walk = set_walk_up(set, 0);
    uint64_t number = 0;
    while (set_walk_next(&walk, &number))
        set_builder_add(builder, number);
}

/* Asks the test of one value; what the term does not tell whole is taken along. */
static Status test_value(Planner *planner, const Filter *filter, Slice bytes, bool *taken,
                         bool *exact)
{
    Run *run = planner->run;
    TermValue term;
    bool is_read = term_read(&run->rows, &bytes, &term);
    *taken = !is_read || !term.exact || term.tag >= TERM_ARRAY;
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

static Status read_test(Planner *planner, const Filter *filter, NumberSet *out, bool *exact)
{
    AUTO(index_walk_close) IndexWalk *walk = NULL;
    IndexRange range = {filter->path, filter->from, filter->to};
    TRY(index_walk_open(&planner->index, range, false, &walk, planner->err));
    SetBuilder *builder = set_builder_new(planner->arena);
    Run *run = planner->run;
    Arena *before = run->scratch;
    run->scratch = &run->rows;
    for (;;) {
        Slice value;
        NumberSet items;
        bool found = false;
        bool complete = true;
        TRY(index_walk_next(walk, &value, &items, &found, &complete, planner->err));
        if (!found) {
            planner->is_out_of_budget = planner->is_out_of_budget || !complete;
            break;
        }
        bool taken = false;
        TRY(test_value(planner, filter, value, &taken, exact));
        if (taken)
            add_set(builder, &items);
        arena_reset(&run->rows);
    }
    run->scratch = before;
    set_builder_finish(builder, out);
    return STATUS_OK;
}

static Status read_leaf(Planner *planner, const Filter *filter, NumberSet *out)
{
    bool complete = true;
    if (filter->has_set) {
        *out = filter->set;
        return STATUS_OK;
    }
    if (filter->kind == FILTER_TERM)
        TRY(index_read_value(&planner->index, filter->path, filter->from, planner->arena, out,
                             &complete, planner->err));
    else
        TRY(index_read_range(&planner->index, (IndexRange){filter->path, filter->from, filter->to},
                             planner->arena, out, &complete, planner->err));
    planner->is_out_of_budget = planner->is_out_of_budget || !complete;
    return STATUS_OK;
}

/* The parts of a conjunction, also of those inside it, smallest first. */
static size_t flatten(const Filter *filter, Filter **parts, size_t count, size_t max)
{
    for (Filter *child = filter->children; child != NULL; child = child->next) {
        if (child->kind == FILTER_AND) {
            count = flatten(child, parts, count, max);
            continue;
        }
        if (count == max)
            return count;
        size_t at = count++;
        for (; at > 0 && parts[at - 1]->estimate.items > child->estimate.items; at--)
            parts[at] = parts[at - 1];
        parts[at] = child;
    }
    return count;
}

static size_t count_parts(const Filter *filter)
{
    size_t count = 0;
    for (const Filter *child = filter->children; child != NULL; child = child->next)
        count += child->kind == FILTER_AND ? count_parts(child) : 1;
    return count;
}

static Status read_and(Planner *planner, const Filter *filter, NumberSet *out, bool *exact)
{
    size_t max = count_parts(filter);
    Filter **parts = ARENA_NEW_ARRAY(planner->arena, Filter *, max);
    size_t count = flatten(filter, parts, 0, max);
    TRY(filter_read(planner, parts[0], out, exact));
    for (size_t i = 1; i < count && out->count > 0 && !planner->is_out_of_budget; i++) {
        if (parts[i]->estimate.keys > KEYS_PER_DOCUMENT * out->count + SAMPLE_KEYS) {
            *exact = false;
            continue;
        }
        NumberSet other;
        NumberSet both;
        TRY(filter_read(planner, parts[i], &other, exact));
        set_and(planner->arena, out, &other, &both);
        *out = both;
    }
    return STATUS_OK;
}

static Status read_or(Planner *planner, const Filter *filter, NumberSet *out, bool *exact)
{
    *out = (NumberSet){0};
    for (Filter *child = filter->children; child != NULL && !planner->is_out_of_budget;
         child = child->next) {
        NumberSet other;
        NumberSet both;
        TRY(filter_read(planner, child, &other, exact));
        set_or(planner->arena, out, &other, &both);
        *out = both;
    }
    return STATUS_OK;
}

static Status read_minus(Planner *planner, const Filter *filter, NumberSet *out, bool *exact)
{
    NumberSet from;
    NumberSet what;
    bool what_exact = true;
    TRY(filter_read(planner, filter->children, &from, exact));
    TRY(filter_read(planner, filter->children->next, &what, &what_exact));
    if (!what_exact) { /* it turned out so while it was read: take nothing away */
        *exact = false;
        *out = from;
        return STATUS_OK;
    }
    set_minus(planner->arena, &from, &what, out);
    return STATUS_OK;
}

static Status read_filter(Planner *planner, const Filter *filter, NumberSet *out, bool *exact)
{
    switch (filter->kind) {
    case FILTER_ALL:
        return plan_read_all(planner, out);
    case FILTER_NONE:
        *out = (NumberSet){0};
        return STATUS_OK;
    case FILTER_TERM:
    case FILTER_RANGE:
        return read_leaf(planner, filter, out);
    case FILTER_TEST:
        return read_test(planner, filter, out, exact);
    case FILTER_AND:
        return read_and(planner, filter, out, exact);
    case FILTER_OR:
    case FILTER_CELLS:
        return read_or(planner, filter, out, exact);
    case FILTER_MINUS:
        return read_minus(planner, filter, out, exact);
    }
    return STATUS_OK;
}

Status filter_read(Planner *planner, Filter *filter, NumberSet *out, bool *exact)
{
    TRY(filter_estimate(planner, filter));
    *exact = *exact && filter->exact;
    filter->was_used = true;
    TRY(read_filter(planner, filter, out, exact));
    filter->found = out->count;
    return STATUS_OK;
}
