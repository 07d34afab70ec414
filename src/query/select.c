/* select.c - the clauses of a query over rows.
 *
 *     documents -> FROM -> WHERE -> GROUP BY -> projection -> DISTINCT -> ORDER BY -> TOP, OFFSET
 *
 * Rows are pushed: each source binds its slot and calls the next, the last one calls take_row(),
 * and what comes out at the end is pushed into the sink, which for a subquery in FROM is the next
 * source of the query around it. So nothing is stored on the way but groups, distinct values and
 * rows to be sorted, and a sink that wants no more ends the loops at once.
 */
#include "query/eval_int.h"

#include "query/aggregate_int.h"
#include "query/tuples_int.h"

#include <math.h>
#include <stdlib.h>

typedef struct SortedRow {
    Value row;
    Value *keys;
    uint64_t number;   /* of its document, by which rows with equal keys come; 0: of none */
    uint64_t sequence; /* and otherwise as they were made */
    const Order *order_by;
} SortedRow;

struct Execution {
    Run *run;
    const Select *select;
    SelectPlace place;
    Arena *keep;
    RowSink sink;
    void *context;
    bool more; /* false: nobody wants another row */

    TupleSet groups;        /* by their keys */
    AggregateState *states; /* of each group, in the order of select->aggregates */
    uint32_t states_capacity;

    TupleSet distinct;
    SortedRow *sorted;
    size_t sorted_count;
    size_t sorted_capacity;
    uint64_t skip_left;
    uint64_t take_left;
};

static Status feed_source(Execution *exec, const Source *source);
static Status scan_documents(Execution *exec, const Source *source);
static Status take_row(Execution *exec);
static Status add_to_group(Execution *exec);
static Status open_group(Execution *exec, const Value *keys, uint32_t *index);
static Status finish_groups(Execution *exec);
static Status deliver(Execution *exec);
static Status emit(Execution *exec, const Value *row);
static Status emit_sorted(Execution *exec);

uint64_t select_take_max(const Select *select)
{
    if (select->top.is_given)
        return select->top.value;
    return select->limit.is_given ? select->limit.value : UINT64_MAX;
}

Status select_run(Run *run, const Select *select, SelectPlace place, Arena *keep, RowSink sink,
                  void *context)
{
    Execution exec = {.run = run,
                      .select = select,
                      .place = place,
                      .keep = keep,
                      .sink = sink,
                      .context = context,
                      .skip_left = select->offset.value,
                      .take_left = select_take_max(select)};
    Feed *feed = place == SELECT_OUTERMOST ? run->feed : NULL;
    if (feed != NULL) {
        exec.skip_left = feed->skip_left;
        exec.take_left = feed->take_left;
    }
    exec.more = exec.take_left > 0;
    tuples_init(&exec.distinct, keep, 1);
    tuples_init(&exec.groups, keep, select->group_by.count);
    if (!exec.more)
        return STATUS_OK;

    /* Without keys there is exactly one group, also over no rows at all. */
    uint32_t index;
    if (select->is_grouped && select->group_by.count == 0)
        TRY(open_group(&exec, NULL, &index));
    TRY(feed_source(&exec, select->sources));
    if (select->is_grouped)
        TRY(finish_groups(&exec));
    TRY(emit_sorted(&exec));
    if (feed != NULL) {
        feed->skip_left = exec.skip_left;
        feed->take_left = exec.take_left;
    }
    return STATUS_OK;
}

static Status bind(Execution *exec, const Source *source, const Value *value)
{
    TRY(run_charge(exec->run, 1));
    exec->run->slots[source->slot] = *value;
    return feed_source(exec, source->next);
}

/* Binds the source to a value, or to each element of it. What is not there gives no row. */
static Status bind_each(Execution *exec, const Source *source, const Value *value)
{
    if (!source->iterate)
        return value_defined(value) ? bind(exec, source, value) : STATUS_OK;
    if (value->type != JSON_ARRAY)
        return STATUS_OK;
    JsonIter iter = json_iter(value->json);
    while (exec->more && json_next(&iter)) {
        Value element = value_of(iter.value, value->stable);
        TRY(bind(exec, source, &element));
    }
    return STATUS_OK;
}

typedef struct SubquerySource {
    Execution *exec;
    const Source *source;
} SubquerySource;

static Status take_subquery_row(void *context, Run *run UNUSED, const Value *row, bool *more)
{
    SubquerySource *into = context;
    TRY(bind_each(into->exec, into->source, row));
    *more = into->exec->more;
    return STATUS_OK;
}

static Status feed_source(Execution *exec, const Source *source)
{
    if (source == NULL)
        return take_row(exec);
    if (source->subquery != NULL) {
        SubquerySource into = {exec, source};
        Arena *keep = source->subquery->over_container ? exec->keep : exec->run->scratch;
        return select_run(exec->run, source->subquery, SELECT_INSIDE, keep, take_subquery_row,
                          &into);
    }
    if (exec->select->over_container && source == exec->select->sources)
        return scan_documents(exec, source);
    Value value;
    TRY(eval(exec->run, source->value, &value));
    return bind_each(exec, source, &value);
}

static Status next_document(Run *run, size_t index, bool *found)
{
    if (run->feed != NULL)
        return run->feed->next(run->feed, run, found);
    *found = index < run->document_count;
    if (*found)
        run->slots[SLOT_DOCUMENT] = value_of(run->documents[index], true);
    return STATUS_OK;
}

static Status scan_documents(Execution *exec, const Source *source)
{
    Run *run = exec->run;
    if (run->feed != NULL && run->feed->groups != NULL && exec->place == SELECT_OUTERMOST)
        TRY(run->feed->groups(run->feed, exec));
    for (size_t i = 0; exec->more; i++) {
        bool found = false;
        TRY(next_document(run, i, &found));
        if (!found)
            break;
        Value value;
        TRY(eval(run, source->value, &value));
        TRY(bind_each(exec, source, &value));
        TRY(run_reserve(run, 0));
        arena_reset(&run->sources);
    }
    return STATUS_OK;
}

/* The work on one row of the outermost query has an arena of its own, emptied when it is done. */
static Arena *begin_row(Execution *exec)
{
    Arena *before = exec->run->scratch;
    if (exec->place == SELECT_OUTERMOST)
        exec->run->scratch = &exec->run->rows;
    return before;
}

static void end_row(Execution *exec, Arena *before)
{
    if (exec->place == SELECT_OUTERMOST)
        arena_reset(&exec->run->rows);
    exec->run->scratch = before;
}

static Status work_on_row(Execution *exec)
{
    if (exec->select->where != NULL) {
        Value kept;
        TRY(eval(exec->run, exec->select->where, &kept));
        if (!value_is_true(&kept))
            return STATUS_OK;
    }
    return exec->select->is_grouped ? add_to_group(exec) : deliver(exec);
}

static Status take_row(Execution *exec)
{
    Arena *before = begin_row(exec);
    TRY(work_on_row(exec));
    TRY(run_reserve(exec->run, 0));
    end_row(exec, before);
    return STATUS_OK;
}

static Status open_group(Execution *exec, const Value *keys, uint32_t *index)
{
    const Select *select = exec->select;
    bool added = true;
    *index = 0;
    if (select->group_by.count > 0)
        TRY(tuples_add(exec->run, &exec->groups, keys, index, &added));
    if (!added || select->aggregate_count == 0)
        return STATUS_OK;
    if (*index >= exec->states_capacity) {
        uint32_t capacity = exec->states_capacity == 0 ? 1 : 2 * exec->states_capacity;
        size_t group_size = select->aggregate_count * sizeof(AggregateState);
        TRY(run_reserve(exec->run, capacity * group_size));
        AggregateState *states = arena_alloc(exec->keep, capacity * group_size);
        if (*index > 0)
            memcpy(states, exec->states, *index * group_size);
        exec->states = states;
        exec->states_capacity = capacity;
    }
    for (uint32_t i = 0; i < select->aggregate_count; i++)
        aggregate_init(&exec->states[*index * select->aggregate_count + i], exec->keep);
    return STATUS_OK;
}

/* NULL if there are no aggregates. */
static AggregateState *group_states(const Execution *exec, uint32_t index)
{
    uint32_t count = exec->select->aggregate_count;
    return count == 0 ? NULL : &exec->states[(size_t)index * count];
}

static Status add_to_group(Execution *exec)
{
    const Select *select = exec->select;
    void *keys;
    TRY(run_alloc(exec->run, select->group_by.count * sizeof(Value), &keys));
    Value *at = keys;
    for (const Node *key = select->group_by.first; key != NULL; key = key->next)
        TRY(eval(exec->run, key, at++));
    uint32_t index = 0;
    if (select->group_by.count > 0)
        TRY(open_group(exec, keys, &index));
    AggregateState *state = group_states(exec, index);
    for (const Node *call = select->aggregates; call != NULL; call = call->call.next_aggregate) {
        Value value;
        TRY(eval(exec->run, call->call.args.first, &value));
        TRY(aggregate_add(exec->run, call->call.function->aggregate, state++, exec->keep, &value));
    }
    return STATUS_OK;
}

Status execution_add_group(Execution *exec, const Value *keys, const Counted *counted)
{
    const Select *select = exec->select;
    uint32_t index = 0;
    if (select->group_by.count > 0)
        TRY(open_group(exec, keys, &index));
    AggregateState *state = group_states(exec, index);
    for (const Node *call = select->aggregates; call != NULL;
         call = call->call.next_aggregate, state++, counted++) {
        TRY(aggregate_add(exec->run, call->call.function->aggregate, state, exec->keep,
                          &counted->best));
        state->count += counted->count;
        state->sum += counted->sum;
        state->spoiled = state->spoiled || counted->is_spoiled;
    }
    return STATUS_OK;
}

/* Puts keys and aggregates where the projection expects them. */
static Status load_group(Execution *exec, uint32_t index)
{
    const Select *select = exec->select;
    Value *slots = exec->run->slots;
    for (uint32_t i = 0; i < select->group_by.count; i++)
        slots[select->group_slot + i] =
            exec->groups.tuples[(size_t)index * select->group_by.count + i];
    const AggregateState *state = group_states(exec, index);
    for (const Node *call = select->aggregates; call != NULL; call = call->call.next_aggregate)
        TRY(aggregate_result(exec->run, call->call.function->aggregate, state++,
                             &slots[call->call.slot]));
    return STATUS_OK;
}

static Status finish_groups(Execution *exec)
{
    uint32_t count = exec->select->group_by.count == 0 ? 1 : exec->groups.count;
    for (uint32_t i = 0; i < count && exec->more; i++) {
        Arena *before = begin_row(exec);
        TRY(load_group(exec, i));
        TRY(deliver(exec));
        TRY(run_reserve(exec->run, 0));
        end_row(exec, before);
    }
    return STATUS_OK;
}

static Status build_row(Run *run, const SelectItem *items, const Value *values, Value *out)
{
    JsonBuilder b;
    json_build(&b, run->scratch);
    json_begin_object(&b);
    for (const SelectItem *item = items; item != NULL; item = item->next) {
        (void)value_add(&b, &item->name, values++); /* undefined is left out */
        TRY(run_reserve(run, 0));
    }
    json_end(&b);
    TRY(run_charge_bytes(run, b.len));
    return run_built(run, &b, out);
}

static Status project_list(Run *run, const SelectItem *items, Value *out)
{
    size_t count = 0;
    for (const SelectItem *item = items; item != NULL; item = item->next)
        count++;
    void *values;
    TRY(run_alloc(run, count * sizeof(Value), &values));
    Value *at = values;
    for (const SelectItem *item = items; item != NULL; item = item->next)
        TRY(eval(run, item->value, at++));
    return build_row(run, items, values, out);
}

static Status project(Execution *exec, Value *out)
{
    const Select *select = exec->select;
    switch (select->projection) {
    case PROJECT_STAR:
        *out = exec->run->slots[select->sources->slot];
        return STATUS_OK;
    case PROJECT_VALUE:
        return eval(exec->run, select->items->value, out);
    case PROJECT_LIST:
        return project_list(exec->run, select->items, out);
    }
    return STATUS_OK;
}

/* A result must be JSON, so an infinity or NaN is dropped as undefined is. Inside a query such a
 * number is as good as any. */
static bool is_row(const Execution *exec, const Value *row)
{
    if (row->type == JSON_NUMBER && exec->place == SELECT_OUTERMOST)
        return row->is_integer || isfinite(row->number);
    return value_defined(row);
}

static uint64_t number_at_hand(const Execution *exec)
{
    const Feed *feed = exec->place == SELECT_OUTERMOST ? exec->run->feed : NULL;
    return feed == NULL || exec->select->is_grouped ? 0 : feed->number;
}

/* 'given' is what the row is ordered by, if it is not in the slots. */
static Status add_sorted(Execution *exec, const Value *row, const Value *given)
{
    const Select *select = exec->select;
    if (exec->sorted_count == exec->sorted_capacity) {
        size_t capacity = exec->sorted_capacity == 0 ? 16 : 2 * exec->sorted_capacity;
        TRY(run_reserve(exec->run, capacity * sizeof(SortedRow)));
        SortedRow *sorted = arena_alloc(exec->keep, capacity * sizeof(SortedRow));
        if (exec->sorted_count > 0)
            memcpy(sorted, exec->sorted, exec->sorted_count * sizeof(SortedRow));
        exec->sorted = sorted;
        exec->sorted_capacity = capacity;
    }
    TRY(run_reserve(exec->run, select->order_count * sizeof(Value)));
    SortedRow *entry = &exec->sorted[exec->sorted_count];
    *entry = (SortedRow){.row = value_keep(exec->keep, row),
                         .keys = arena_alloc(exec->keep, select->order_count * sizeof(Value)),
                         .number = number_at_hand(exec),
                         .sequence = exec->sorted_count,
                         .order_by = select->order_by};
    Value *keys = entry->keys;
    for (const Order *order = select->order_by; order != NULL; order = order->next) {
        Value key;
        if (given != NULL)
            key = *given;
        else
            TRY(eval(exec->run, order->value, &key));
        /* Every key takes part in some twenty comparisons; sorting itself cannot stop to pay. */
        for (int i = 0; i < 20; i++)
            TRY(run_charge_value(exec->run, &key));
        *keys++ = value_keep(exec->keep, &key);
    }
    exec->sorted_count++;
    return run_reserve(exec->run, 0);
}

/* Hands a row on that has been projected; 'key' as in add_sorted. */
static Status hand_on(Execution *exec, const Value *row, const Value *key)
{
    if (!is_row(exec, row))
        return STATUS_OK;
    if (exec->select->distinct) {
        uint32_t index;
        bool added;
        TRY(tuples_add(exec->run, &exec->distinct, row, &index, &added));
        if (!added)
            return STATUS_OK;
    }
    bool is_ordered =
        exec->select->order_by == NULL ||
        (exec->run->feed != NULL && exec->place == SELECT_OUTERMOST && exec->run->feed->is_ordered);
    return is_ordered ? emit(exec, row) : add_sorted(exec, row, key);
}

/* Projects the row, or group, that the slots hold, and hands it on. */
static Status deliver(Execution *exec)
{
    Value row;
    TRY(project(exec, &row));
    return hand_on(exec, &row, NULL);
}

Status execution_add_value(Execution *exec, const Value *value)
{
    if (!exec->more)
        return STATUS_OK;
    Arena *before = begin_row(exec);
    Value row = *value;
    if (exec->select->projection == PROJECT_LIST)
        TRY(build_row(exec->run, exec->select->items, value, &row));
    TRY(hand_on(exec, &row, value));
    TRY(run_reserve(exec->run, 0));
    end_row(exec, before);
    return STATUS_OK;
}

static Status emit(Execution *exec, const Value *row)
{
    Feed *feed = exec->place == SELECT_OUTERMOST ? exec->run->feed : NULL;
    if (feed != NULL)
        feed->document_rows++;
    if (feed != NULL && feed->rows_to_skip > 0) {
        feed->rows_to_skip--;
        return STATUS_OK;
    }
    if (exec->skip_left > 0) {
        exec->skip_left--;
        return STATUS_OK;
    }
    bool more = true;
    TRY(exec->sink(exec->context, exec->run, row, &more));
    if (feed != NULL && feed->is_full) {
        feed->document_rows--; /* it comes again, on the next page */
        exec->more = false;
        return STATUS_OK;
    }
    exec->more = more && --exec->take_left > 0;
    return STATUS_OK;
}

static int compare_keys(const Order *orders, const Value *a, const Value *b)
{
    for (const Order *order = orders; order != NULL; order = order->next, a++, b++) {
        int compared = value_compare(a, b);
        if (compared != 0)
            return order->descending ? -compared : compared;
    }
    return 0;
}

static int compare_sorted(const void *left, const void *right)
{
    const SortedRow *a = left;
    const SortedRow *b = right;
    int compared = compare_keys(a->order_by, a->keys, b->keys);
    if (compared != 0)
        return compared;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

static bool is_before(const SortedRow *row, const ResumePoint *point)
{
    int compared = compare_keys(row->order_by, row->keys, point->values);
    if (compared != 0)
        return compared < 0;
    return point->is_behind || (row->number != 0 && row->number < point->number);
}

/* Rows in front of the place where they are to begin are skipped, as if they had been returned. */
static void skip_before(Execution *exec, Feed *feed)
{
    size_t low = 0;
    size_t high = exec->sorted_count;
    while (low < high) {
        size_t middle = low + ((high - low) / 2);
        if (is_before(&exec->sorted[middle], feed->resume))
            low = middle + 1;
        else
            high = middle;
    }
    if (low <= exec->skip_left)
        return;
    uint64_t more = low - exec->skip_left;
    exec->skip_left = low;
    exec->take_left -= more < exec->take_left ? more : exec->take_left;
    exec->more = exec->take_left > 0;
    feed->rows_before = more;
}

static Status emit_sorted(Execution *exec)
{
    Feed *feed = exec->place == SELECT_OUTERMOST ? exec->run->feed : NULL;
    if (exec->sorted_count == 0)
        return STATUS_OK;
    qsort(exec->sorted, exec->sorted_count, sizeof(SortedRow), compare_sorted);
    if (feed != NULL && feed->resume != NULL)
        skip_before(exec, feed);
    for (size_t i = 0; i < exec->sorted_count && exec->more; i++)
        TRY(emit(exec, &exec->sorted[i].row));
    return STATUS_OK;
}

/* What a subquery in an expression has given so far. */
typedef struct Collected {
    SubqueryMode mode;
    uint64_t count;
    Value last;
    Value *list;
    size_t capacity;
} Collected;

static Status collect(void *context, Run *run, const Value *row, bool *more)
{
    Collected *collected = context;
    collected->last = *row;
    collected->count++;
    if (collected->mode == SUBQUERY_EXISTS || collected->mode == SUBQUERY_FIRST)
        *more = false;
    if (collected->mode != SUBQUERY_ARRAY)
        return STATUS_OK;
    if (collected->count > collected->capacity) {
        size_t capacity = collected->capacity == 0 ? 8 : 2 * collected->capacity;
        void *list;
        TRY(run_alloc(run, capacity * sizeof(Value), &list));
        if (collected->count > 1)
            memcpy(list, collected->list, (collected->count - 1) * sizeof(Value));
        collected->list = list;
        collected->capacity = capacity;
    }
    collected->list[collected->count - 1] = *row;
    return STATUS_OK;
}

Status select_subquery(Run *run, const Node *node, Value *out)
{
    Collected collected = {.mode = node->subquery.mode, .last = VALUE_UNDEFINED};
    TRY(select_run(run, node->subquery.select, SELECT_INSIDE, run->scratch, collect, &collected));
    switch (node->subquery.mode) {
    case SUBQUERY_SCALAR:
    case SUBQUERY_FIRST:
    case SUBQUERY_LAST:
        *out = collected.last;
        return STATUS_OK;
    case SUBQUERY_EXISTS:
        *out = value_bool((collected.count > 0) != node->negated);
        return STATUS_OK;
    case SUBQUERY_ARRAY:
        return run_array(run, collected.list, collected.count, out);
    case SUBQUERY_ALL: /* the binder has made it NOT EXISTS */
        break;
    }
    return STATUS_OK;
}
