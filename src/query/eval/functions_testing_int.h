/* functions_testing_int.h - for tests: a table of functions that udf.name(...) calls, written here,
 * and what was called. Not part of the library. */
#pragma once

#include "query/eval/query_functions.h"

#include <math.h>

typedef struct FakeFunctions {
    size_t batches;       /* how often the table was called, */
    size_t calls;         /* and the calls in all of them */
    size_t largest;       /* of these batches */
    uint64_t time_us_max; /* what the last one was given */
    void (*on_batch)(struct FakeFunctions *fake, size_t count); /* may be NULL */
    void *context;
} FakeFunctions;

typedef enum FakeFunction {
    FAKE_SAME,   /* same(x): x */
    FAKE_TWICE,  /* twice(n): 2n, undefined if it is no number */
    FAKE_EVEN,   /* even(n): whether it is */
    FAKE_COUNT,  /* count(...): of arguments */
    FAKE_LIST,   /* list(n): [0, 1, ..., n - 1], at most 1000 */
    FAKE_BOX,    /* box(x): {"x": x} */
    FAKE_NONE,   /* none(...): undefined */
    FAKE_NULL,   /* nothing(...): null */
    FAKE_NEXT,   /* next(...): how many calls there were before */
    FAKE_THROWS, /* throws(x): an error that names x, unless it is true */
    FAKE_HANGS,  /* hangs(...): the whole batch takes too long */
    FAKE_END,
} FakeFunction;

static const char *const FAKE_NAMES[FAKE_END] = {"same", "twice",   "even", "count",  "list", "box",
                                                 "none", "nothing", "next", "throws", "hangs"};

static inline bool fake_find(void *context, Slice name, uint32_t *which)
{
    (void)context;
    for (uint32_t i = 0; i < FAKE_END; i++) {
        if (slice_equal(name, slice_from_cstr(FAKE_NAMES[i]))) {
            *which = i;
            return true;
        }
    }
    return false;
}

static inline Json fake_number(Arena *arena, double number)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_add_number(&b, number);
    return json_built(&b);
}

static inline Json fake_bool(Arena *arena, bool is_true)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_add_bool(&b, is_true);
    return json_built(&b);
}

static inline Json fake_list(Arena *arena, double count)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_array(&b);
    for (double i = 0; i < count && i < 1000; i++)
        json_add_number(&b, i);
    json_end(&b);
    return json_built(&b);
}

static inline Json fake_box(Arena *arena, Json value)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    if (value.at != NULL) {
        json_key(&b, SLICE("x"));
        json_add(&b, value);
    }
    json_end(&b);
    return json_built(&b);
}

static inline Json fake_null(Arena *arena)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_add_null(&b);
    return json_built(&b);
}

static inline const Error *fake_error(Arena *arena, Json value)
{
    if (json_is(value, JSON_BOOL) && json_bool(value))
        return NULL;
    Error *error = ARENA_NEW(arena, Error);
    Slice text = value.at == NULL ? SLICE("nothing") : json_print_arena(arena, value);
    Status status =
        error_set(error, STATUS_BAD_REQUEST, SUB_NONE, "thrown for %.*s", SLICE_CUT(text, 80));
    return status == STATUS_OK ? NULL : error;
}

static inline void fake_run(FakeFunctions *fake, QueryCall *call, Arena *arena)
{
    Json first = call->argument_count > 0 ? call->arguments[0] : JSON_NONE;
    double number = json_is(first, JSON_NUMBER) ? json_number(first) : 0;
    call->result = JSON_NONE;
    call->error = NULL;
    switch ((FakeFunction)call->which) {
    case FAKE_SAME:
        if (first.at != NULL) /* it lives in the arena of results */
            call->result = json_trust(json_bytes(arena, first));
        break;
    case FAKE_TWICE:
        if (json_is(first, JSON_NUMBER))
            call->result = fake_number(arena, 2 * number);
        break;
    case FAKE_EVEN:
        call->result = fake_bool(arena, json_is(first, JSON_NUMBER) && remainder(number, 2) == 0);
        break;
    case FAKE_COUNT:
        call->result = fake_number(arena, (double)call->argument_count);
        break;
    case FAKE_LIST:
        call->result = fake_list(arena, number);
        break;
    case FAKE_BOX:
        call->result = fake_box(arena, first);
        break;
    case FAKE_NULL:
        call->result = fake_null(arena);
        break;
    case FAKE_NEXT:
        call->result = fake_number(arena, (double)fake->calls);
        break;
    case FAKE_THROWS:
        call->error = fake_error(arena, first);
        if (call->error == NULL)
            call->result = fake_bool(arena, true);
        break;
    case FAKE_NONE:
    case FAKE_HANGS:
    case FAKE_END:
        break;
    }
}

static inline Status fake_call(void *context, QueryCall *calls, size_t count, uint64_t time_us_max,
                               Arena *arena, Error *err)
{
    FakeFunctions *fake = context;
    fake->batches++;
    fake->largest = count > fake->largest ? count : fake->largest;
    fake->time_us_max = time_us_max;
    if (fake->on_batch != NULL)
        fake->on_batch(fake, count);
    for (size_t i = 0; i < count; i++) {
        if (calls[i].which == FAKE_HANGS)
            return error_set(err, STATUS_TIMEOUT, SUB_NONE, "it hangs");
        fake_run(fake, &calls[i], arena);
        fake->calls++;
    }
    return STATUS_OK;
}

static const QueryFunctions FAKE_FUNCTIONS = {.find = fake_find, .call = fake_call};
