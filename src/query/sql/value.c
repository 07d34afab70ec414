/* value.c - see value_int.h. */
#include "query/sql/value_int.h"

#include <math.h>

static uint64_t json_hash(Json json);

Value value_of(Json json, bool stable)
{
    Value value = {.type = json_type(json), .stable = stable, .json = json};
    switch (value.type) {
    case JSON_UNDEFINED:
    case JSON_NULL:
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    case JSON_BOOL:
        value.boolean = json_bool(json);
        break;
    case JSON_NUMBER:
        value.number = json_number(json);
        value.is_integer = json_to_i64(json, &value.integer);
        break;
    case JSON_STRING:
        value.string = json_string(json);
        break;
    }
    return value;
}

bool value_to_i64(const Value *value, int64_t *out)
{
    if (value->type != JSON_NUMBER)
        return false;
    if (value->is_integer) {
        *out = value->integer;
        return true;
    }
    if (!(value->number >= -0x1p63 && value->number < 0x1p63) ||
        value->number != trunc(value->number))
        return false;
    *out = (int64_t)value->number;
    return true;
}

bool value_equal(const Value *a, const Value *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case JSON_UNDEFINED:
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return a->boolean == b->boolean;
    case JSON_NUMBER:
        return a->number == b->number;
    case JSON_STRING:
        return slice_equal(a->string, b->string);
    case JSON_ARRAY:
    case JSON_OBJECT:
        return json_equal(a->json, b->json);
    }
    return false;
}

int value_compare(const Value *a, const Value *b)
{
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    switch (a->type) {
    case JSON_UNDEFINED:
    case JSON_NULL:
        return 0;
    case JSON_BOOL:
        return (int)a->boolean - (int)b->boolean;
    case JSON_NUMBER:
        if (isnan(a->number) || isnan(b->number)) /* a sort needs a place for it: the lowest */
            return (isnan(b->number) != 0) - (isnan(a->number) != 0);
        return (a->number > b->number) - (a->number < b->number);
    case JSON_STRING:
        return slice_compare(a->string, b->string);
    case JSON_ARRAY:
    case JSON_OBJECT:
        return json_compare(a->json, b->json);
    }
    return 0;
}

static uint64_t mix(uint64_t hash, uint64_t more)
{
    hash = (hash ^ more) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static uint64_t hash_bytes(uint64_t seed, Slice bytes)
{
    uint64_t hash = mix(seed, bytes.len);
    size_t i = 0;
    for (; i + 8 <= bytes.len; i += 8) {
        uint64_t word;
        memcpy(&word, bytes.ptr + i, sizeof(word));
        hash = mix(hash, word);
    }
    uint64_t rest = 0;
    for (; i < bytes.len; i++)
        rest = rest << 8 | (uint8_t)bytes.ptr[i];
    return mix(hash, rest);
}

static uint64_t hash_number(double number)
{
    uint64_t bits;
    number += 0.0; /* -0 equals 0 */
    memcpy(&bits, &number, sizeof(bits));
    return mix(JSON_NUMBER, bits);
}

/* Members are added up, so that their order does not matter. */
static uint64_t hash_container(Json json, JsonType type)
{
    uint64_t hash = mix(type, json_count(json));
    uint64_t sum = 0;
    JsonIter iter = json_iter(json);
    while (json_next(&iter)) {
        uint64_t value = json_hash(iter.value);
        if (type == JSON_OBJECT)
            sum += hash_bytes(value, iter.name);
        else
            hash = mix(hash, value);
    }
    return mix(hash, sum);
}

static uint64_t json_hash(Json json)
{
    Value value = value_of(json, true);
    return value_hash(&value);
}

uint64_t value_hash(const Value *value)
{
    switch (value->type) {
    case JSON_UNDEFINED:
    case JSON_NULL:
        return mix(value->type, 0);
    case JSON_BOOL:
        return mix(JSON_BOOL, value->boolean);
    case JSON_NUMBER:
        return hash_number(value->number);
    case JSON_STRING:
        return hash_bytes(JSON_STRING, value->string);
    case JSON_ARRAY:
    case JSON_OBJECT:
        return hash_container(value->json, value->type);
    }
    return 0;
}

bool value_add(JsonBuilder *b, const Slice *name, const Value *value)
{
    bool printable = value->type != JSON_NUMBER || value->is_integer || isfinite(value->number);
    if (!value_defined(value) || !printable)
        return false;
    if (name != NULL)
        json_key(b, *name);
    switch (value->type) {
    case JSON_UNDEFINED:
        break;
    case JSON_NULL:
        json_add_null(b);
        break;
    case JSON_BOOL:
        json_add_bool(b, value->boolean);
        break;
    case JSON_NUMBER:
        if (value->is_integer)
            json_add_i64(b, value->integer);
        else
            json_add_number(b, value->number);
        break;
    case JSON_STRING:
        json_add_string(b, value->string);
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        json_add(b, value->json);
        break;
    }
    return true;
}

static Json build_scalar(Arena *scratch, const Value *value)
{
    JsonBuilder b;
    json_build(&b, scratch);
    return value_add(&b, NULL, value) ? json_built(&b) : JSON_NONE;
}

Json value_json(Arena *arena, Arena *scratch, const Value *value)
{
    Json json = value->json.at != NULL ? value->json : build_scalar(scratch, value);
    bool lasting = value->stable && value->json.at != NULL;
    if (json.at == NULL || lasting)
        return json;
    /* A builder takes a block of some size whatever it builds; what stays is cut to measure. */
    return json_trust(json_bytes(arena, json));
}

Value value_keep(Arena *arena, const Value *value)
{
    if (value->stable)
        return *value;
    Value kept = *value;
    kept.stable = true;
    if (value->json.at != NULL)
        return value_of(json_trust(json_bytes(arena, value->json)), true);
    if (value->type == JSON_STRING)
        kept.string = arena_copy(arena, value->string);
    return kept;
}
