/* patch.h - partial document update: a short list of changes to one document.
 *
 * A patch is checked when it is made from a request's body: shape, bounds, and that it stays away
 * from what identifies an item. Applying it can still fail, because only the document decides
 * whether a path leads anywhere; then there is no new document at all.
 *
 *     op       needs        on a member                      on an element of an array
 *     add      path value   creates or replaces              inserts; appends at "-" and the length
 *     set      path value   creates or replaces              replaces; appends at "-"
 *     replace  path value   replaces                         replaces
 *     remove   path         removes                          removes, and the rest closes up
 *     incr     path value   adds to a number, or creates it  adds to a number
 *     move     from path    removes 'from', then adds to 'path' as "add" does
 *
 * Paths are JSON pointers. Whatever contains the target has to exist: only its last segment can be
 * created. Operations see the effect of those before them.
 *
 * Ownership  A Patch lives in its arena and borrows from the body that it was made from.
 * Threads    A Patch is immutable and may be shared.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "json/json.h"
#include "json/property_path.h"

/* As the service has it. The cost of a patch grows with their number times the document. */
#define PATCH_OPERATIONS_MAX 10

typedef struct Patch Patch;

typedef struct PatchRules {
    /* The partition key's paths. Neither they nor anything above or inside them can be changed, and
     * so a patched item keeps its place. The same holds for "id" and the system properties. */
    const PropertyPath *keys;
    size_t key_count;
    size_t bytes_max; /* json_size() of the patched document */
} PatchRules;

/* Checks the body of a request: {"operations": [...], "condition": "from c where ..."} or only the
 * array. STATUS_BAD_REQUEST says what is wrong with it. 'rules' are not needed afterwards. */
MUST_USE Status patch_parse(Arena *arena, Json body, const PatchRules *rules, Patch **out,
                            Error *err);

/* The text of the filter that decides whether the patch may be applied; empty if there is none. A
 * layer that understands the query language evaluates it. */
Slice patch_condition(const Patch *patch);

size_t patch_operation_count(const Patch *patch);

/* Applies all operations in their order to 'document', an object of at most JSON_DEPTH_MAX levels
 * without its system properties, which stays as it is; the new one lives in 'arena'.
 * STATUS_BAD_REQUEST names the operation that cannot be applied ("For Operation(2): ..."), and
 * STATUS_TOO_LARGE means that the result is beyond the rules' size. */
MUST_USE Status patch_apply(const Patch *patch, Arena *arena, Json document, Json *out, Error *err);
