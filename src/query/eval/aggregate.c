/* aggregate.c - see aggregate_int.h. */
#include "query/eval/aggregate_int.h"

void aggregate_init(AggregateState *state, Arena *keep)
{
    *state = (AggregateState){.best = VALUE_UNDEFINED};
    tuples_init(&state->set, keep, 1);
}

static void add_extreme(AggregateState *state, Arena *keep, const Value *value, int direction)
{
    if (value->type > JSON_STRING)
        state->spoiled = true;
    if (state->spoiled)
        return;
    if (!value_defined(&state->best) || value_compare(value, &state->best) * direction < 0)
        state->best = value_keep(keep, value);
}

static Status add_to_list(Run *run, AggregateState *state, Arena *keep, const Value *value)
{
    TRY(RUN_GROW(run, keep, state->list, state->list_count, state->list_capacity, 8));
    state->list[state->list_count++] = value_keep(keep, value);
    return run_reserve(run, 0);
}

Status aggregate_add(Run *run, Aggregate aggregate, AggregateState *state, Arena *keep,
                     const Value *value)
{
    if (!value_defined(value))
        return STATUS_OK;
    TRY(run_charge_value(run, value));
    bool counted = aggregate != AGGREGATE_COUNTIF || value_is_true(value);
    state->count += counted;
    uint32_t index;
    bool added;
    switch (aggregate) {
    case AGGREGATE_NONE:
    case AGGREGATE_COUNT:
    case AGGREGATE_COUNTIF:
        return STATUS_OK;
    case AGGREGATE_SUM:
    case AGGREGATE_AVG:
        if (value->type == JSON_NUMBER)
            state->sum += value->number;
        else
            state->spoiled = true;
        return STATUS_OK;
    case AGGREGATE_MIN:
        add_extreme(state, keep, value, 1);
        return run_reserve(run, 0);
    case AGGREGATE_MAX:
        add_extreme(state, keep, value, -1);
        return run_reserve(run, 0);
    case AGGREGATE_MAKELIST:
        return add_to_list(run, state, keep, value);
    case AGGREGATE_MAKESET:
        return tuples_add(run, &state->set, value, &index, &added);
    }
    return STATUS_OK;
}

Status aggregate_result(Run *run, Aggregate aggregate, const AggregateState *state, Value *out)
{
    *out = VALUE_UNDEFINED;
    if (state->spoiled)
        return STATUS_OK;
    switch (aggregate) {
    case AGGREGATE_NONE:
        break;
    case AGGREGATE_COUNT:
    case AGGREGATE_COUNTIF:
        *out = value_integer((int64_t)state->count);
        break;
    case AGGREGATE_SUM:
        *out = value_number(state->sum); /* of nothing it is 0, while the others are undefined */
        break;
    case AGGREGATE_AVG:
        if (state->count > 0)
            *out = value_number(state->sum / (double)state->count);
        break;
    case AGGREGATE_MIN:
    case AGGREGATE_MAX:
        *out = state->best;
        break;
    case AGGREGATE_MAKELIST:
        return run_array(run, state->list, state->list_count, out);
    case AGGREGATE_MAKESET:
        return run_array(run, state->set.tuples, state->set.count, out);
    }
    return STATUS_OK;
}
