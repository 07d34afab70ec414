/* json_random_testing_int.h - what the tests and fuzz targets of this folder share. Not part of the
 * library. */
#pragma once

#include "base/random.h"
#include "json/json.h"

/* Builds 'value' again from what the readers say. As each value has one encoding, the result has
 * the same bytes: this proves readers, checker and writer against each other. */
static inline void rebuild(JsonBuilder *b, Json value)
{
    int64_t integer;
    switch (json_type(value)) {
    case JSON_UNDEFINED:
        ASSERT(!"undefined is never stored");
        return;
    case JSON_NULL:
        json_add_null(b);
        return;
    case JSON_BOOL:
        json_add_bool(b, json_bool(value));
        return;
    case JSON_NUMBER:
        if (json_number(value) != 0 && json_to_i64(value, &integer))
            json_add_i64(b, integer);
        else
            json_add_number(b, json_number(value));
        return;
    case JSON_STRING:
        json_add_string(b, json_string(value));
        return;
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    JsonIter it = json_iter(value);
    if (it.is_object)
        json_begin_object(b);
    else
        json_begin_array(b);
    while (json_next(&it)) {
        if (it.is_object)
            json_key(b, it.name);
        rebuild(b, it.value);
    }
    json_end(b);
}

/* Every member is found by its name, and every element by its index (if there are few). */
static inline void check_look_ups(Json value)
{
    JsonIter it = json_iter(value);
    size_t index = 0;
    while (json_next(&it)) {
        if (it.is_object)
            ASSERT(json_get(value, it.name).at == it.value.at);
        else if (index < 100)
            ASSERT(json_at(value, index).at == it.value.at);
        check_look_ups(it.value);
        index++;
    }
    if (json_is(value, JSON_ARRAY) || json_is(value, JSON_OBJECT))
        ASSERT(index == json_count(value));
}

static inline Slice random_text(Random *random, Arena *arena)
{
    static const char *const pieces[] = {
        "a",
        "b",
        "name",
        "\"",
        "\\",
        "\n",
        "\x01",
        "\x7f",
        "é",
        "\xe2\x82\xac",
        " ",
        "/",
        "\xf0\x9f\x98\x80",
        "0123456789abcdef",
        "\xef\xbf\xbf",
        "z",
    };
    size_t sizes[] = {0, 1, 2, 3, 5, 9, 14, 70};
    size_t count = random_below(random, sizes[random_below(random, ARRAY_COUNT(sizes))] + 1);
    Buf text;
    buf_init(&text, 4096);
    for (size_t i = 0; i < count; i++) {
        uint64_t pick = random_below(random, ARRAY_COUNT(pieces) + 1);
        if (pick == ARRAY_COUNT(pieces))
            buf_byte(&text, 0);
        else
            buf_slice(&text, slice_from_cstr(pieces[pick]));
    }
    Slice copy = arena_copy(arena, buf_view(&text));
    buf_done(&text);
    return copy;
}

/* Any finite double but -0, which does not survive printing; often one near a boundary. */
static inline double random_number(Random *random)
{
    for (;;) {
        uint64_t bits = random_u64(random);
        double value;
        switch (random_below(random, 5)) {
        case 0:
            value = (double)(int64_t)(bits >> random_below(random, 64));
            break;
        case 1:
            value = -(double)(int64_t)(bits >> (1 + random_below(random, 63)));
            break;
        case 2:
            value = (double)(bits >> 44) / 100;
            break;
        case 3:
            value = (double)(int64_t)random_below(random, 300) - 150;
            break;
        default:
            memcpy(&value, &bits, sizeof(value));
            break;
        }
        bool is_finite = value - value == 0;
        if (is_finite && (value != 0 || 1 / value > 0))
            return value;
    }
}

/* A value with at most 'depth' levels and about 'width' members a level. */
static inline void random_value(JsonBuilder *b, Random *random, Arena *arena, uint32_t depth,
                                uint64_t width)
{
    uint64_t pick = random_below(random, depth == 0 ? 5 : 9);
    uint64_t count = random_below(random, width + 1);
    switch (pick) {
    case 0:
        json_add_null(b);
        return;
    case 1:
        json_add_bool(b, random_below(random, 2) == 1);
        return;
    case 2:
    case 3:
        json_add_number(b, random_number(random));
        return;
    case 4:
        json_add_string(b, random_text(random, arena));
        return;
    case 5:
    case 6:
        json_begin_array(b);
        break;
    default:
        json_begin_object(b);
        break;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (pick > 6)
            json_key(b, random_text(random, arena));
        random_value(b, random, arena, depth - 1, width);
    }
    json_end(b);
}

static inline Json random_document(Random *random, Arena *arena, uint32_t depth, uint64_t width)
{
    JsonBuilder b;
    json_build(&b, arena);
    random_value(&b, random, arena, depth, width);
    Json value = json_built(&b);
    ASSERT(value.at != NULL);
    return value;
}
