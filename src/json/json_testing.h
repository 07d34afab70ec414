/* json_testing.h - JSON for the tests of all folders. For tests only: no part of the product
 * includes it. */
#pragma once

#include "base/testing.h"
#include "json/json.h"

static inline Json text_json(Arena *arena, Slice text)
{
    Json value = JSON_NONE;
    Error err;
    if (json_parse(arena, text, &value, &err) != STATUS_OK)
        fail_msg("'%.*s' was refused: %s", SLICE_CUT(text, 100), err.message);
    return value;
}

/* The value of a row, in which ' stands for ". */
static inline Json row_json(Arena *arena, const char *row)
{
    return text_json(arena, row_text(arena, row));
}
