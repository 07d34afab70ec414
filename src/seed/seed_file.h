/* seed_file.h - a seed file: read, and checked as far as that is possible without a server.
 *
 * docs/seed.md is the description that users read. Everything that is wrong with the file itself is
 * found here, before anything is sent, and named by its place: $.databases[0].containers[1].id
 *
 * Ownership  Everything lives in the arena given.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "json/json.h"

#define SEED_FILE_BYTES_MAX \
    JSON_TEXT_BYTES_MAX /* larger lists of items are in files of their own */

typedef struct SeedFile {
    const char *path;   /* as it was given */
    const char *folder; /* in which the files are that it names */
    Json root;
} SeedFile;

/* Reads and checks the file at 'path', or standard input if it is "-"; the files of that one are
 * looked for in the current folder. Messages begin with the path. */
MUST_USE Status seed_file_open(Arena *arena, const char *path, SeedFile *out, Error *err);

/* Checks a text. With 'folder' NULL no other file is looked at. */
MUST_USE Status seed_file_parse(Arena *arena, Slice text, const char *folder, Json *out,
                                Error *err);
