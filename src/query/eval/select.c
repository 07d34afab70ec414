/* select.c - the clauses of a query over rows.
 *
 *     documents -> FROM -> WHERE -> GROUP BY -> projection -> DISTINCT -> ORDER BY -> TOP, OFFSET
 *
 * Rows are pushed: each source binds its slot and calls the next, the last one calls take_row(),
 * and what comes out at the end is pushed into the sink, which for a subquery in FROM is the next
 * source of the query around it. So nothing is stored on the way but groups, distinct values and
 * rows to be sorted, and a sink that wants no more ends the loops at once.
 */
#include "query/eval/eval_int.h"

#include "query/eval/aggregate_int.h"
#include "query/eval/gathered_rows_int.h"
#include "query/eval/tuples_int.h"

#include <math.h>

struct Execution {
    Run *run;
    const Select *select;
    SelectPlace place;
    Arena *keep;
    RowSink sink;
    void *context;
    bool more;             /* false if no other row is wanted */
    uint64_t pending_rows; /* that wait for calls: user_calls_int.h */

    TupleSet groups;        /* by their keys */
    AggregateState *states; /* of each group, in the order of select->aggregates */
    uint32_t states_capacity;
    uint32_t group; /* the one whose row is made */

    TupleSet distinct;
    bool keys_vary; /* what a distinct row is ordered by is not in it: see hand_on */
    Rows rows;
    bool is_placed; /* rows are handed on in the order of their places */
    uint64_t skip_left;
    uint64_t take_left;
};

static Status feed_source(Execution *exec, const Source *source);
static Status scan_documents(Execution *exec, const Source *source);
static Status take_row(Execution *exec);
static Status add_to_group(Execution *exec);
static Status open_group(Execution *exec, const Value *keys, uint32_t *index);
static Status finish_rows(Execution *exec);
static Status place_rows(Execution *exec, const Feed *feed);
static Status deliver(Execution *exec);
static Status emit(Execution *exec, const Value *row);
static bool is_one_wanted(const Execution *exec);

uint64_t select_take_max(const Select *select)
{
    if (select->top.is_given)
        return select->top.value;
    return select->limit.is_given ? select->limit.value : UINT64_MAX;
}

static const Feed *feed_of(const Execution *exec)
{
    return exec->place == SELECT_OUTERMOST ? exec->run->feed : NULL;
}

/* Whether something that rows are ordered by is no item of the projection. */
static bool are_keys_hidden(const Select *select)
{
    for (const Order *order = select->order_by; order != NULL; order = order->next) {
        bool is_shown = false;
        for (const SelectItem *item = select->items; item != NULL && !is_shown; item = item->next)
            is_shown = node_equal(order->value, item->value);
        if (!is_shown)
            return true;
    }
    return false;
}

static void init_rows(Execution *exec)
{
    const Select *select = exec->select;
    const Feed *feed = feed_of(exec);
    size_t key_count = select->distinct ? 1 : select->group_by.count;
    key_count = select->order_by != NULL ? select->order_count : key_count;
    rows_init(&exec->rows, exec->keep, select->order_by, key_count);
    exec->keys_vary = select->distinct && are_keys_hidden(select);
    exec->is_placed =
        feed != NULL && feed->has_places && (feed->is_resumed || feed->resume != NULL);
    tuples_init(&exec->distinct, exec->keep, 1);
    tuples_init(&exec->groups, exec->keep, select->group_by.count);
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
    const Feed *feed = feed_of(&exec);
    if (feed != NULL) {
        exec.skip_left = feed->skip;
        exec.take_left = feed->take;
        run->progress = (FeedProgress){.skip_left = feed->skip, .take_left = feed->take};
    }
    exec.more = exec.take_left > 0;
    init_rows(&exec);
    if (!exec.more)
        return STATUS_OK;

    /* Without keys there is exactly one group, also over no rows at all. */
    uint32_t index;
    if (select->is_grouped && select->group_by.count == 0)
        TRY(open_group(&exec, NULL, &index));
    TRY(feed_source(&exec, select->sources));
    if (exec.pending_rows > 0)
        return CALL_PENDING;
    if (run->calls.asking != NULL && select->over_container)
        return STATUS_OK; /* what comes of all documents is not known from one */
    TRY(finish_rows(&exec));
    if (feed != NULL && feed->has_places && run->progress.is_full && !exec.is_placed)
        TRY(place_rows(&exec, feed));
    if (feed != NULL) {
        run->progress.skip_left = exec.skip_left;
        run->progress.take_left = exec.take_left;
    }
    return STATUS_OK;
}

/* A row waits for a call. Others are asked meanwhile, if they are wanted whatever this one is. */
static Status leave_pending(Execution *exec, Status status)
{
    if (LIKELY(status != CALL_PENDING))
        return status;
    ASSERT(exec->run->calls.asking != NULL);
    exec->pending_rows++;
    bool is_enough = exec->pending_rows >= exec->skip_left &&
                     exec->pending_rows - exec->skip_left >= exec->take_left;
    if (is_enough || is_one_wanted(exec) || exec->run->calls.rows_left == 0)
        exec->more = false;
    return STATUS_OK;
}

static Status bind(Execution *exec, const Source *source, const Value *value)
{
    TRY(run_charge(exec->run, 1));
    exec->run->slots[source->slot] = *value;
    return leave_pending(exec, feed_source(exec, source->next));
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

static Status take_subquery_row(void *context, Run *run UNUSED, const Value *row, RowAnswer *answer)
{
    SubquerySource *into = context;
    TRY(bind_each(into->exec, into->source, row));
    *answer = into->exec->more ? ROW_TAKEN : ROW_IS_LAST;
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
    if (run->feed != NULL) {
        FeedDocument document = {0};
        TRY(run->feed->next(run->feed->context, run, &document, found));
        if (*found) {
            run->progress.document = document;
            run->progress.document_rows = 0;
        }
        return STATUS_OK;
    }
    *found = index < run->document_count;
    if (*found)
        run->slots[SLOT_DOCUMENT] = value_of(run->documents[index], true);
    return STATUS_OK;
}

static Status scan_documents(Execution *exec, const Source *source)
{
    Run *run = exec->run;
    if (run->feed != NULL && run->feed->groups != NULL && exec->place == SELECT_OUTERMOST)
        TRY(run->feed->groups(run->feed->context, exec));
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

/* Whether WHERE is true. What of an AND is not true decides, be it false or undefined. */
static Status ask_where(Run *run, const Node *where, bool *is_kept)
{
    Value value;
    *is_kept = true;
    const Node *part = where->kind == NODE_AND ? where->list.first : where;
    for (; part != NULL && *is_kept; part = where->kind == NODE_AND ? part->next : NULL) {
        TRY(eval(run, part, &value));
        *is_kept = value_is_true(&value);
    }
    return STATUS_OK;
}

static Status work_on_row(Execution *exec)
{
    UserCalls *calls = &exec->run->calls;
    if (calls->asking != NULL && (calls->rows_left == 0 || --calls->rows_left == 0))
        return CALL_PENDING; /* the rest is not asked about */
    if (exec->select->where != NULL) {
        bool is_kept;
        TRY(ask_where(exec->run, exec->select->where, &is_kept));
        if (!is_kept)
            return STATUS_OK;
    }
    return exec->select->is_grouped ? add_to_group(exec) : deliver(exec);
}

static Status take_row(Execution *exec)
{
    Arena *before = begin_row(exec);
    TRY(leave_pending(exec, work_on_row(exec)));
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
        uint32_t capacity = ARRAY_CAPACITY_NEXT(exec->states, exec->states_capacity, 1);
        size_t group_size = select->aggregate_count * sizeof(AggregateState);
        TRY(run_reserve(exec->run, capacity * group_size));
        exec->states =
            arena_realloc(exec->keep, exec->states, *index * group_size, capacity * group_size);
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

/* One of several expressions that are all needed: those after one that waits for a call are asked,
 * too. */
static Status eval_next(Run *run, const Node *node, Value *out, Status *pending)
{
    Status status = eval(run, node, out);
    if (LIKELY(status != CALL_PENDING))
        return status;
    *out = VALUE_UNDEFINED;
    *pending = status;
    return STATUS_OK;
}

static Status add_to_group(Execution *exec)
{
    const Select *select = exec->select;
    void *keys;
    TRY(run_alloc(exec->run, select->group_by.count * sizeof(Value), &keys));
    Value *at = keys;
    Status pending = STATUS_OK;
    for (const Node *key = select->group_by.first; key != NULL; key = key->next)
        TRY(eval_next(exec->run, key, at++, &pending));
    TRY(pending);
    uint32_t index = 0;
    if (select->group_by.count > 0)
        TRY(open_group(exec, keys, &index));
    AggregateState *state = group_states(exec, index);
    for (const Node *call = select->aggregates; call != NULL; call = call->call.next_aggregate) {
        Value value;
        TRY(eval_next(exec->run, call->call.args.first, &value, &pending));
        TRY(aggregate_add(exec->run, call->call.function->aggregate, state++, exec->keep, &value));
    }
    return pending;
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

static Status finish_group(Execution *exec, uint32_t index)
{
    Arena *before = begin_row(exec);
    exec->group = index;
    TRY(load_group(exec, index));
    TRY(deliver(exec));
    TRY(run_reserve(exec->run, 0));
    end_row(exec, before);
    return STATUS_OK;
}

static Status finish_groups(Execution *exec)
{
    uint32_t count = exec->select->group_by.count == 0 ? 1 : exec->groups.count;
    for (uint32_t i = 0; i < count && exec->more; i++)
        TRY(finish_group(exec, i));
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
    Status pending = STATUS_OK;
    for (const SelectItem *item = items; item != NULL; item = item->next)
        TRY(eval_next(run, item->value, at++, &pending));
    TRY(pending);
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
    const Feed *feed = feed_of(exec);
    return feed == NULL || exec->select->is_grouped ? 0 : exec->run->progress.document.number;
}

/* What tells the row from others with the same keys, on any page and in any partition. */
static uint64_t identity_at_hand(const Execution *exec, uint32_t distinct)
{
    if (exec->select->distinct)
        return exec->distinct.hashes[distinct];
    return exec->groups.count > 0 ? exec->groups.hashes[exec->group] : number_at_hand(exec);
}

/* 'given' is what the row is ordered by, if it is not in the slots. */
static Status make_keys(Execution *exec, const Value *row, const Value *given, Arena *arena,
                        Value **out)
{
    const Select *select = exec->select;
    size_t count = exec->rows.key_count;
    TRY(run_reserve(exec->run, count * sizeof(Value)));
    Value *keys = arena_alloc(arena, count * sizeof(Value));
    *out = keys;
    for (const Order *order = select->order_by; order != NULL; order = order->next, keys++) {
        if (given != NULL)
            *keys = *given;
        else
            TRY(eval(exec->run, order->value, keys));
    }
    if (select->order_by == NULL) /* it is distinct */
        *keys = *row;
    return STATUS_OK;
}

static Status gather(Execution *exec, const Value *row, const Value *given, uint32_t distinct)
{
    GatheredRow gathered = {
        .row = *row,
        .number = number_at_hand(exec),
        .identity = identity_at_hand(exec, distinct),
    };
    TRY(make_keys(exec, row, given, exec->keep, &gathered.keys));
    return rows_add(exec->run, &exec->rows, gathered);
}

static bool is_gathered(const Execution *exec)
{
    const Feed *feed = feed_of(exec);
    bool is_ordered = exec->select->order_by == NULL || (feed != NULL && feed->is_ordered);
    return !is_ordered || (exec->is_placed && exec->select->distinct);
}

/* A distinct row has come again. What it is ordered by may differ from document to document, and
 * the first one in the order counts, since it does not depend on which document comes first. */
static Status gather_again(Execution *exec, const Value *row, uint32_t distinct)
{
    Value *keys = NULL;
    if (!exec->keys_vary || distinct >= exec->rows.count)
        return STATUS_OK;
    TRY(make_keys(exec, row, NULL, exec->run->scratch, &keys));
    rows_lower(&exec->rows, distinct, keys, number_at_hand(exec));
    return STATUS_OK;
}

/* Hands a row on that has been projected; 'given' as in make_keys. */
static Status hand_on(Execution *exec, const Value *row, const Value *given)
{
    uint32_t index = 0;
    if (!is_row(exec, row))
        return STATUS_OK;
    if (exec->select->distinct) {
        bool added;
        TRY(tuples_add(exec->run, &exec->distinct, row, &index, &added));
        if (!added)
            return gather_again(exec, row, index);
    }
    return is_gathered(exec) ? gather(exec, row, given, index) : emit(exec, row);
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
    FeedProgress *progress = feed_of(exec) == NULL ? NULL : &exec->run->progress;
    if (progress != NULL)
        progress->document_rows++;
    if (progress != NULL && progress->document.rows_to_skip > 0) {
        progress->document.rows_to_skip--;
        return STATUS_OK;
    }
    if (exec->skip_left > 0) {
        exec->skip_left--;
        return STATUS_OK;
    }
    RowAnswer answer = ROW_TAKEN;
    TRY(exec->sink(exec->context, exec->run, row, &answer));
    if (answer == ROW_REFUSED) {
        ASSERT(progress != NULL);
        progress->is_full = true;
        progress->document_rows--; /* it comes again, on the next page */
        exec->more = false;
        return STATUS_OK;
    }
    exec->more = answer != ROW_IS_LAST && --exec->take_left > 0;
    return STATUS_OK;
}

/* ---- rows that were gathered ---- */

/* If 'count' rows do not fit into the page, they get places at once. */
static void choose_places(Execution *exec, uint64_t count)
{
    const Feed *feed = feed_of(exec);
    uint64_t rows = count > exec->skip_left ? count - exec->skip_left : 0;
    rows = rows < exec->take_left ? rows : exec->take_left;
    exec->is_placed =
        exec->is_placed || (feed != NULL && feed->has_places && rows > feed->rows_max);
}

/* Skips the rows before the place where the page begins, as if they had been returned. */
static void pass_rows(Execution *exec, uint64_t count)
{
    uint64_t skipped = count < exec->skip_left ? count : exec->skip_left;
    uint64_t before = count - skipped;
    exec->run->progress.rows_before = before;
    exec->skip_left -= skipped;
    exec->take_left -= before < exec->take_left ? before : exec->take_left;
    exec->more = exec->take_left > 0;
}

/* The row that comes first, of those that are sorted. */
static size_t find_first(Execution *exec)
{
    const Feed *feed = feed_of(exec);
    size_t first = 0;
    if (feed != NULL && feed->has_places && feed->is_resumed)
        first = rows_find(&exec->rows, feed->place, feed->place_rows);
    if (feed == NULL || feed->resume == NULL)
        return first;
    size_t point = rows_find_point(&exec->rows, exec->run->scratch, feed->resume);
    if (point <= first)
        return first;
    pass_rows(exec, point - first);
    return point;
}

/* Notes the place of the last row that was handed on, which was refused. */
static void note_place(Execution *exec, size_t index)
{
    FeedProgress *progress = &exec->run->progress;
    ASSERT(exec->is_placed);
    progress->place = rows_place(&exec->rows, exec->keep, index, &progress->place_rows);
}

static Status emit_gathered(Execution *exec)
{
    if (exec->rows.count == 0)
        return STATUS_OK;
    choose_places(exec, exec->rows.count);
    if (exec->is_placed)
        TRY(rows_sort_by_place(exec->run, &exec->rows));
    else
        rows_sort(exec->run, &exec->rows);
    size_t at = find_first(exec);
    for (; at < exec->rows.count && exec->more; at++)
        TRY(emit(exec, &exec->rows.list[at].row));
    if (exec->is_placed && exec->run->progress.is_full)
        note_place(exec, at - 1);
    return STATUS_OK;
}

/* Groups in the order of their places; only those that the page has room for become rows. */
static Status finish_placed_groups(Execution *exec)
{
    Rows *rows = &exec->rows;
    size_t width = exec->select->group_by.count;
    TRY(rows_reserve(exec->run, rows, exec->groups.count));
    for (uint32_t i = 0; i < exec->groups.count; i++) {
        GatheredRow group = {
            .row = VALUE_UNDEFINED,
            .keys = &exec->groups.tuples[i * width],
            .identity = exec->groups.hashes[i],
        };
        TRY(rows_add(exec->run, rows, group));
    }
    TRY(rows_sort_by_place(exec->run, rows));
    size_t at = find_first(exec);
    for (; at < rows->count && exec->more; at++)
        TRY(finish_group(exec, (uint32_t)rows->list[at].sequence));
    if (exec->run->progress.is_full)
        note_place(exec, at - 1);
    return STATUS_OK;
}

static Status finish_rows(Execution *exec)
{
    const Select *select = exec->select;
    bool has_groups = select->is_grouped && select->group_by.count > 0;
    if (has_groups && select->order_by == NULL)
        choose_places(exec, exec->groups.count);
    if (has_groups && select->order_by == NULL && !select->distinct && exec->is_placed)
        return finish_placed_groups(exec);
    if (select->is_grouped)
        TRY(finish_groups(exec));
    return emit_gathered(exec);
}

/* The rows were too long for the page, which begins again with them, in the order in which the next
 * one can go on. */
static Status place_rows(Execution *exec, const Feed *feed)
{
    const Select *select = exec->select;
    ASSERT(exec->run->progress.is_full);
    feed->again(feed->context);
    exec->run->progress.is_full = false;
    exec->skip_left = feed->skip;
    exec->take_left = feed->take;
    exec->more = true;
    exec->is_placed = true;
    if (select->order_by != NULL)
        return emit_gathered(exec);
    tuples_init(&exec->distinct, exec->keep, 1);
    if (!select->is_grouped)
        TRY(feed->groups(feed->context, exec));
    return finish_rows(exec);
}

/* What a subquery in an expression has given so far. */
typedef struct Collected {
    SubqueryMode mode;
    uint64_t count;
    Value last;
    Value *list;
    size_t capacity;
} Collected;

static Status collect(void *context, Run *run, const Value *row, RowAnswer *answer)
{
    Collected *collected = context;
    collected->last = *row;
    collected->count++;
    if (collected->mode == SUBQUERY_EXISTS || collected->mode == SUBQUERY_FIRST)
        *answer = ROW_IS_LAST;
    if (collected->mode != SUBQUERY_ARRAY)
        return STATUS_OK;
    if (collected->count > collected->capacity) {
        size_t capacity = ARRAY_CAPACITY_NEXT(collected->list, collected->capacity, 8);
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

/* Whether the first row, if there is one, is all that is wanted. */
static bool is_one_wanted(const Execution *exec)
{
    if (exec->sink != collect)
        return false;
    const Collected *collected = exec->context;
    return collected->mode == SUBQUERY_EXISTS || collected->mode == SUBQUERY_FIRST;
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
