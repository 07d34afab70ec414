/* seed_items.h - the items of a container in a seed file: those in it, and those in files.
 *
 * transfer/import.h does the work: it reads each item first, and writes it only if it is not there
 * or different. So a second run writes nothing.
 */
#pragma once

#include "seed/seed_int.h"
#include "transfer/row_reader.h"

/* An element of "itemsFrom": the name of a file, or an object with it. */
typedef struct SeedItemFile {
    const char *path;
    RowFormat format;
    CsvOptions csv;
    const char *id_from; /* NULL if ids are the rows' own */
    const char **sets;   /* see row_mapping.h */
    size_t set_count;
} SeedItemFile;

/* With 'folder' NULL only names are checked. */
MUST_USE Status seed_item_file_parse(Arena *arena, const char *folder, Json value,
                                     SeedItemFile *out, Error *err);

/* Writes the items of a container. 'is_new' if the container was made by this run, so that nothing
 * need be compared. */
MUST_USE Status seed_items_apply(SeedRun *run, Slice database, Json container,
                                 const SeedPlace *place, bool is_new, Error *err);
