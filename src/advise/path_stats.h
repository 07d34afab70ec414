/* path_stats.h - which paths the items of a sample have, and what stands there.
 *
 * A path with values is a row: "/address/city", or "/tags/[]" for the elements of an array. Rows
 * come in the order in which the paths were first met.
 *
 * Ownership  Rows and their texts live in the arena given.
 * Bounds     PATH_STATS_MAX rows, PATH_STATS_DEPTH_MAX steps. What is beyond is left out, and
 *            'is_complete' says so.
 */
#pragma once

#include "advise/sample.h"

#define PATH_STATS_MAX       512
#define PATH_STATS_DEPTH_MAX 16

typedef struct PathStats {
    Slice text;         /* canonical; "[]" for elements */
    PropertyPath path;  /* its names; of no use if 'has_element' */
    bool has_element;   /* leads through an array */
    uint64_t items;     /* that have a value here */
    uint64_t last_item; /* the last of them, plus one */
    uint64_t values;    /* all, but those that an item has twice: these are what an index holds */
    uint64_t strings;
    uint64_t numbers;
    uint64_t fractions; /* numbers that are not whole */
    uint64_t others;    /* true, false and null */
    uint64_t times;     /* that look like a time */
    uint64_t bytes;     /* of the strings */
    size_t bytes_max;   /* of the longest */
} PathStats;

typedef struct PathTable {
    PathStats *rows;
    size_t count;
    bool is_complete;
} PathTable;

void path_stats_collect(const Sample *sample, Arena *arena, PathTable *out);

/* The row of a path, or NULL. */
const PathStats *path_stats_find(const PathTable *table, Slice text);
