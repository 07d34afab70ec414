/* seed_body.h - the bodies of requests, made of what a seed file says.
 *
 * Ownership  Results live in the arena given.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "json/json.h"

#define SEED_SCRIPT_BYTES_MAX ((size_t)1 << 20) /* of a script in a file of its own */
#define SEED_PATH_BYTES_MAX   1000              /* of the name of a file */

/* A container without what only seed files have. A partition key that is a path stands for
 * {"paths":[path],"kind":"Hash","version":2}, a list of paths for a hierarchical one. */
Json seed_container_body(Arena *arena, Json container);

/* A script, whose body may be in a file below 'folder'. With 'folder' NULL no file is read, and the
 * body of such a script is empty. */
MUST_USE Status seed_script_body(Arena *arena, const char *folder, Json script, Json *out,
                                 Error *err);

/* An object without the members "absent" and "permissions" and those that begin with _. */
Json seed_plain_body(Arena *arena, Json object);

/* The path of a file that a seed file names. STATUS_BAD_REQUEST if it leads out of 'folder', or is
 * not an ordinary file. With 'folder' NULL only the name is checked. */
MUST_USE Status seed_file_path(Arena *arena, const char *folder, Slice name, const char **out,
                               Error *err);
