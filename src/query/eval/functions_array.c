/* functions_array.c - arrays, sets and the members of objects. */
#include "query/eval/call_int.h"
#include "query/eval/tuples_int.h"

#include <math.h>
#include <stdlib.h>

Status function_array_length(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    if (args[0].type == JSON_ARRAY)
        *out = value_integer((int64_t)json_count(args[0].json));
    return STATUS_OK;
}

static Status add_elements(Run *run, JsonBuilder *b, const Value *array)
{
    TRY(run_charge_value(run, array));
    JsonIter iter = json_iter(array->json);
    while (json_next(&iter)) {
        json_add(b, iter.value);
        TRY(run_reserve(run, 0));
    }
    return STATUS_OK;
}

Status function_array_concat(Run *run, const Value *args, uint32_t count, Value *out)
{
    for (uint32_t i = 0; i < count; i++) {
        if (args[i].type != JSON_ARRAY)
            return STATUS_OK;
    }
    JsonBuilder b;
    json_build(&b, run->scratch);
    json_begin_array(&b);
    for (uint32_t i = 0; i < count; i++)
        TRY(add_elements(run, &b, &args[i]));
    json_end(&b);
    return run_built(run, &b, out);
}

/* Whether 'object' has all members of 'part', with equal values. */
static bool has_members(Json object, Json part)
{
    JsonIter iter = json_iter(part);
    while (json_next(&iter)) {
        Json member = json_get(object, iter.name);
        if (member.at == NULL || !json_equal(member, iter.value))
            return false;
    }
    return true;
}

static Status array_contains(Run *run, Json array, const Value *sought, bool partial, bool *found)
{
    *found = false;
    bool by_members = partial && sought->type == JSON_OBJECT;
    JsonIter iter = json_iter(array);
    while (!*found && json_next(&iter)) {
        Value element = value_of(iter.value, false);
        TRY(run_charge_value(run, &element));
        if (by_members && element.type == JSON_OBJECT)
            *found = has_members(iter.value, sought->json);
        else
            *found = value_equal(&element, sought);
    }
    return STATUS_OK;
}

Status function_array_contains(Run *run, const Value *args, uint32_t count, Value *out)
{
    if (args[0].type != JSON_ARRAY || !value_defined(&args[1]))
        return STATUS_OK;
    /* An undefined third argument counts as false; any other that is not boolean has no meaning. */
    if (count == 3 && value_defined(&args[2]) && args[2].type != JSON_BOOL)
        return STATUS_OK;
    bool found;
    TRY(array_contains(run, args[0].json, &args[1], count == 3 && value_is_true(&args[2]), &found));
    *out = value_bool(found);
    return STATUS_OK;
}

/* Membership of each of the others, joined by AND or OR: 'decisive' is what ends it, and an
 * undefined one makes the whole undefined if none is decisive. */
static Status contains_each(Run *run, const Value *args, uint32_t count, bool decisive, Value *out)
{
    if (args[0].type != JSON_ARRAY)
        return STATUS_OK;
    bool some_undefined = false;
    for (uint32_t i = 1; i < count; i++) {
        bool found;
        if (!value_defined(&args[i])) {
            some_undefined = true;
            continue;
        }
        TRY(array_contains(run, args[0].json, &args[i], false, &found));
        if (found == decisive) {
            *out = value_bool(decisive);
            return STATUS_OK;
        }
    }
    if (!some_undefined)
        *out = value_bool(!decisive);
    return STATUS_OK;
}

Status function_array_contains_all(Run *run, const Value *args, uint32_t count, Value *out)
{
    return contains_each(run, args, count, false, out);
}

Status function_array_contains_any(Run *run, const Value *args, uint32_t count, Value *out)
{
    return contains_each(run, args, count, true, out);
}

Status function_array_slice(Run *run, const Value *args, uint32_t count, Value *out)
{
    int64_t start;
    int64_t length = INT64_MAX;
    if (args[0].type != JSON_ARRAY || !value_to_i64(&args[1], &start) ||
        (count == 3 && !value_to_i64(&args[2], &length)))
        return STATUS_OK;
    int64_t size = (int64_t)json_count(args[0].json);
    if (start < 0)
        start = start < -size ? 0 : start + size;
    TRY(run_charge_value(run, &args[0]));
    JsonBuilder b;
    json_build(&b, run->scratch);
    json_begin_array(&b);
    JsonIter iter = json_iter(args[0].json);
    for (int64_t i = 0; json_next(&iter); i++) {
        if (i >= start && i - start < length)
            json_add(&b, iter.value);
        TRY(run_reserve(run, 0));
    }
    json_end(&b);
    return run_built(run, &b, out);
}

/* The elements as doubles, if all are numbers; '*numbers' is NULL if not. */
static Status take_numbers(Run *run, const Value *array, double **numbers, size_t *count)
{
    *numbers = NULL;
    *count = 0;
    if (array->type != JSON_ARRAY)
        return STATUS_OK;
    void *memory;
    TRY(run_alloc(run, json_count(array->json) * sizeof(double), &memory));
    double *found = memory;
    size_t found_count = 0;
    JsonIter iter = json_iter(array->json);
    while (json_next(&iter)) {
        if (!json_is(iter.value, JSON_NUMBER))
            return STATUS_OK;
        found[found_count++] = json_number(iter.value);
    }
    *numbers = found;
    *count = found_count;
    return STATUS_OK;
}

static double sum_of(const double *numbers, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += numbers[i];
    return sum;
}

Status function_array_sum(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    double *numbers;
    size_t size;
    TRY(take_numbers(run, &args[0], &numbers, &size));
    if (numbers != NULL)
        *out = value_number(sum_of(numbers, size));
    return STATUS_OK;
}

Status function_array_avg(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    double *numbers;
    size_t size;
    TRY(take_numbers(run, &args[0], &numbers, &size));
    if (numbers != NULL && size > 0)
        *out = value_number(sum_of(numbers, size) / (double)size);
    return STATUS_OK;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

Status function_array_median(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    double *numbers;
    size_t size;
    TRY(take_numbers(run, &args[0], &numbers, &size));
    if (numbers == NULL || size == 0)
        return STATUS_OK;
    TRY(run_charge(run, size));
    qsort(numbers, size, sizeof(*numbers), compare_doubles);
    double upper = numbers[size / 2];
    *out = value_number(size % 2 == 1 ? upper : (numbers[size / 2 - 1] + upper) / 2);
    return STATUS_OK;
}

/* The element that sorts first (direction 1) or last (-1); nothing if there is an array or object
 * among them. */
static Status array_extreme(Run *run, const Value *array, int direction, Value *out)
{
    if (array->type != JSON_ARRAY)
        return STATUS_OK;
    Value best = VALUE_UNDEFINED;
    JsonIter iter = json_iter(array->json);
    while (json_next(&iter)) {
        TRY(run_charge(run, 1));
        Value element = value_of(iter.value, array->stable);
        if (element.type > JSON_STRING)
            return STATUS_OK;
        if (!value_defined(&best) || value_compare(&element, &best) * direction < 0)
            best = element;
    }
    *out = best;
    return STATUS_OK;
}

Status function_array_max(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    return array_extreme(run, &args[0], -1, out);
}

Status function_array_min(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    return array_extreme(run, &args[0], 1, out);
}

Status function_objecttoarray(Run *run, const Value *args, uint32_t count, Value *out)
{
    if (args[0].type != JSON_OBJECT)
        return STATUS_OK;
    Slice names[] = {SLICE("k"), SLICE("v")};
    for (uint32_t i = 1; i < count; i++) {
        if (args[i].type != JSON_STRING)
            return STATUS_OK;
        names[i - 1] = args[i].string;
    }
    JsonBuilder b;
    json_build(&b, run->scratch);
    json_begin_array(&b);
    TRY(run_charge_value(run, &args[0]));
    JsonIter iter = json_iter(args[0].json);
    while (json_next(&iter)) {
        json_begin_object(&b);
        json_key(&b, names[0]);
        json_add_string(&b, iter.name);
        json_key(&b, names[1]);
        json_add(&b, iter.value);
        json_end(&b);
        TRY(run_reserve(run, 0));
    }
    json_end(&b);
    return run_built(run, &b, out);
}

/* Adds the elements that are in 'filter' (or not in it, if 'inside' is false), or all if there is
 * no filter. */
static Status collect(Run *run, Json array, const TupleSet *filter, bool inside, TupleSet *into)
{
    JsonIter iter = json_iter(array);
    while (json_next(&iter)) {
        Value element = value_of(iter.value, false);
        bool found;
        uint32_t index;
        bool added;
        if (filter != NULL) {
            TRY(tuples_has(run, filter, &element, &found));
            if (found != inside)
                continue;
        }
        TRY(tuples_add(run, into, &element, &index, &added));
    }
    return STATUS_OK;
}

static bool are_arrays(const Value *args)
{
    return args[0].type == JSON_ARRAY && args[1].type == JSON_ARRAY;
}

Status function_setunion(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    if (!are_arrays(args))
        return STATUS_OK;
    TupleSet result;
    tuples_init(&result, run->scratch, 1);
    TRY(collect(run, args[0].json, NULL, true, &result));
    TRY(collect(run, args[1].json, NULL, true, &result));
    return run_array(run, result.tuples, result.count, out);
}

/* 'kept' filtered by membership in 'other'. */
static Status set_filter(Run *run, Json kept, Json other, bool inside, Value *out)
{
    TupleSet members, result;
    tuples_init(&members, run->scratch, 1);
    tuples_init(&result, run->scratch, 1);
    TRY(collect(run, other, NULL, true, &members));
    TRY(collect(run, kept, &members, inside, &result));
    return run_array(run, result.tuples, result.count, out);
}

Status function_setintersect(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    /* The published results are in the order of the second array. */
    return are_arrays(args) ? set_filter(run, args[1].json, args[0].json, true, out) : STATUS_OK;
}

Status function_setdifference(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    return are_arrays(args) ? set_filter(run, args[0].json, args[1].json, false, out) : STATUS_OK;
}

Status function_setequal(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    if (!are_arrays(args))
        return STATUS_OK;
    TupleSet a, b;
    tuples_init(&a, run->scratch, 1);
    tuples_init(&b, run->scratch, 1);
    TRY(collect(run, args[0].json, NULL, true, &a));
    TRY(collect(run, args[1].json, NULL, true, &b));
    bool equal = a.count == b.count;
    for (uint32_t i = 0; equal && i < a.count; i++)
        TRY(tuples_has(run, &b, &a.tuples[i], &equal));
    *out = value_bool(equal);
    return STATUS_OK;
}
