/* permission_link.h - what the link of a permission names.
 *
 * A link is the path of a container, or of something in it, as clients write it: with names or with
 * resource ids, with or without slashes around it, and with names that may be percent-encoded. An
 * encoded and a plain name are read in the same way, so a name that has a '%' itself must be
 * encoded.
 *
 * Threads  Nothing here has state.
 */
#pragma once

#include "base/arena.h"
#include "base/slice.h"

#define PERMISSION_LINK_BYTES_MAX ((size_t)8 << 10) /* as a path may have */

typedef enum PermissionTargetKind {
    TARGET_CONTAINER,
    TARGET_ITEM,
    TARGET_PROCEDURE,
    TARGET_TRIGGER,
    TARGET_FUNCTION,
} PermissionTargetKind;

/* Ids, decoded; each is a name or a resource id. */
typedef struct PermissionTarget {
    PermissionTargetKind kind;
    Slice database;
    Slice container;
    Slice child; /* empty if it is the container itself */
} PermissionTarget;

/* False if the link is of no such form. What has to be decoded is in the arena, the rest points
 * into the link. */
bool permission_link_parse(Arena *arena, Slice link, PermissionTarget *out);

/* The link without the slashes around it: two permissions of a user must differ in it, or in their
 * partition keys. */
Slice permission_link_trim(Slice link);
