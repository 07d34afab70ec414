/* value_int.h - a value while a query is being evaluated.
 *
 * Scalars are held in the struct itself, so that an operator allocates nothing; arrays and objects
 * are views of JSON. Undefined is a value like the others here, and it never gets into JSON.
 */
#pragma once

#include "base/arena.h"
#include "base/slice.h"
#include "json/json.h"

typedef struct Value {
    JsonType type;
    bool stable;     /* what it points to lives as long as the run */
    bool is_integer; /* of a number: 'integer' is its exact value */
    Json json;       /* of an array or object; of a scalar where it was read, or undefined */
    union {
        bool boolean;
        Slice string;
        struct {
            double number;
            int64_t integer;
        };
    };
} Value;

#define VALUE_UNDEFINED ((Value){.type = JSON_UNDEFINED, .stable = true})
#define VALUE_NULL      ((Value){.type = JSON_NULL, .stable = true})

static inline Value value_bool(bool boolean)
{
    return (Value){.type = JSON_BOOL, .stable = true, .boolean = boolean};
}

static inline Value value_number(double number)
{
    return (Value){.type = JSON_NUMBER, .stable = true, .number = number};
}

static inline Value value_integer(int64_t integer)
{
    return (Value){.type = JSON_NUMBER,
                   .stable = true,
                   .is_integer = true,
                   .number = (double)integer,
                   .integer = integer};
}

/* Text in the scratch arena or in a document; 'stable' is false, which is always safe. */
static inline Value value_string(Slice string)
{
    return (Value){.type = JSON_STRING, .string = string};
}

/* 'stable' says whether the view lives as long as the run. */
Value value_of(Json json, bool stable);

static inline bool value_is(const Value *value, JsonType type)
{
    return value->type == type;
}

static inline bool value_defined(const Value *value)
{
    return value->type != JSON_UNDEFINED;
}

static inline bool value_is_true(const Value *value)
{
    return value->type == JSON_BOOL && value->boolean;
}

/* True and '*out' set if it is a number without a fraction within 64 bits. */
bool value_to_i64(const Value *value, int64_t *out);

/* Deep equality; undefined equals undefined. */
bool value_equal(const Value *a, const Value *b);

/* The order of ORDER BY: by type, then by value. */
int value_compare(const Value *a, const Value *b);

/* Equal values have equal hashes, whatever the order of an object's members. */
uint64_t value_hash(const Value *value);

/* Appends the value to what 'b' builds. False if there is nothing to append: undefined, or a
 * number that JSON cannot hold. The name goes in front of it, when inside an object. */
bool value_add(JsonBuilder *b, const Slice *name, const Value *value);

/* The value as JSON in 'arena', or the view itself if it is stable; 'scratch' is worked in.
 * Undefined if value_add would have said no. */
Json value_json(Arena *arena, Arena *scratch, const Value *value);

/* A value that lives as long as 'arena': what is not stable is copied there. */
Value value_keep(Arena *arena, const Value *value);
