/* field_path.h - where a value is in an item, as the headers of CSV files and templates name it.
 *
 *     address.city      the member "city" of the member "address"
 *     tags[0]           the first element of "tags"
 *     a\.b              the member "a.b": a backslash takes the next character as it is
 *     /address/city     the same as address.city, as the protocol writes paths
 *
 * Ownership  Steps live in the arena given to the parser.
 * Threads    Paths are immutable and may be shared.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"
#include "json/json.h"

#define FIELD_PATH_DEPTH_MAX 64
#define FIELD_INDEX_MAX      9999 /* of an array; a larger one would make a row of nulls */

typedef struct FieldStep {
    Slice name;     /* of a member */
    uint32_t index; /* of an element */
    bool is_index;
} FieldStep;

typedef struct FieldPath {
    const FieldStep *steps;
    size_t count; /* at least 1 */
} FieldPath;

/* False if the text is not a path. */
bool field_path_parse(Arena *arena, Slice text, FieldPath *out);

/* The value there, or undefined. */
Json field_path_get(const FieldPath *path, Json document);

/* Appends one step to the text of a path; 'out' is empty for the first one. */
void field_path_print_step(const FieldStep *step, Buf *out);

/* A copy of 'document', which is an object, with 'value' at 'path'; objects on the way are made. A
 * path with an index, and one that leads through something that is not an object, is
 * STATUS_BAD_REQUEST. */
MUST_USE Status field_path_put(const FieldPath *path, Json document, Json value, Arena *arena,
                               Json *out, Error *err);
