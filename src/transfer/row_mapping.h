/* row_mapping.h - what an import makes of a row before it is written.
 *
 * A mapping sets properties by templates, gives every row an id that is text, and removes the
 * properties that a server adds. A template is text with paths in braces (field_path.h):
 *
 *     --set /pk={userId}-{date}      text made of two properties
 *     --set /copy={address}          a template that is one path copies the value, of any type
 *     --set /type=order              the same text in every row
 *     {{ and }}                      braces
 *
 * All templates see the row as it was read.
 *
 * Ownership  A mapping lives in the arena it was parsed into.
 * Threads    A mapping is immutable.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "json/json.h"

#define MAPPING_SETS_MAX 100

typedef struct RowMapping RowMapping;

/* 'sets' are PATH=TEMPLATE. 'id_from' is a path, NULL if ids are the rows' own. */
MUST_USE Status row_mapping_parse(Arena *arena, const char *const *sets, size_t set_count,
                                  const char *id_from, const RowMapping **out, Error *err);

/* The item to write, in '*out'; '*is_changed' if it is not the row as it stands. A row without an
 * id gets 'fallback_id'. STATUS_BAD_REQUEST if a template needs a property that the row does not
 * have, or the id cannot be one. */
MUST_USE Status row_mapping_apply(const RowMapping *mapping, Json row, Slice fallback_id,
                                  Arena *arena, Json *out, bool *is_changed, Error *err);

/* The id of a row that has none: made of the file, the row's number in it and the row itself, so
 * importing the same file again writes the same items. */
#define ROW_ID_LEN 36
void row_id_make(Slice file, uint64_t number, Slice text, char out[ROW_ID_LEN]);
