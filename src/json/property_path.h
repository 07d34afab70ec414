/* property_path.h - the path of a property in an item: "/address/\"zip code\"/0th".
 *
 * Partition keys, unique keys and other policies name properties this way: a '/' before each
 * segment, and quotes around a segment with characters other than letters, digits and '_'.
 *
 *     path    = 1*( "/" segment )
 *     segment = 1*( letter / digit / "_" / any non-ASCII character )
 *             / quote 1*( any character but that quote and "\" / "\" escaped ) quote
 *     quote   = '"' or "'"            escaped = '"' / "'" / "\" / "/"
 *
 * There are no wildcards and no array positions here; paths of indexing policies, which have
 * both, are in index/index_path.h and share the segments.
 *
 * Ownership  Segments live in the arena given to the parser, or in the parsed text itself.
 * Threads    Parsed paths are immutable and may be shared.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "json/json.h"

/* A deeper path could never lead to a value, because items are not nested deeper. */
#define PROPERTY_PATH_DEPTH_MAX JSON_DEPTH_MAX
/* Longer than any path seen in the wild; bounds the work of comparing thousands of paths. */
#define PROPERTY_PATH_BYTES_MAX ((size_t)2048)
/* Of property_path_print: a byte prints as two at most, and each segment adds a slash and two
 * quotes. */
#define PROPERTY_PATH_CANONICAL_BYTES_MAX \
    (2 * PROPERTY_PATH_BYTES_MAX + 3 * PROPERTY_PATH_DEPTH_MAX)

typedef struct PropertyPath {
    const Slice *segments; /* unquoted and unescaped */
    size_t count;          /* at least 1 after a successful parse */
} PropertyPath;

/* Parses 'text'. False if it is not a path; '*position' is then the byte at which it stops being
 * one, which is what the protocol's messages name ("failed near position '3'"). */
bool property_path_parse(Arena *arena, Slice text, PropertyPath *out, size_t *position);

/* Reads one segment at '*position' of 'text' and moves to its end. False leaves '*position' at
 * the offending byte. For parsers of richer paths. */
bool property_path_parse_segment(Arena *arena, Slice text, size_t *position, Slice *segment);

bool property_path_equal(PropertyPath a, PropertyPath b);

/* Two texts that mean the same segment print the same: plain if it can be, else quoted. */
void property_path_print_segment(Slice segment, Buf *out);
void property_path_print(PropertyPath path, Buf *out);

/* The value that 'path' leads to in 'document', through objects only: undefined where a segment
 * is missing or something on the way is not an object. The value itself may be of any type. */
Json property_path_get(PropertyPath path, Json document);
