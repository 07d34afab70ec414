/* index_path.h - the paths of an indexing policy: "/tags/[]/name/?".
 *
 *     path    = "/" [ star ]                                       the whole item
 *             / 1*( "/" step ) [ ending ]
 *             / 1*( "/" segment ) "/[]/{" field *( "," field ) "}/?"    a tuple
 *     step    = segment / "[]"                 a name, or every element of an array
 *     ending  = "/?"                           the value itself
 *             / "/" star                       everything at or below
 *     field   = segment *( "/" segment )       with spaces around it
 *
 * A segment is as in json/property_path.h. The first step is a name, since an item is an object.
 * Which endings are allowed depends on the kind of index that the path is for.
 *
 * Ownership  Results live in the arena, or in the text.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "json/property_path.h"

/* Fields of one tuple; each becomes a part of every index entry, as in a composite index. */
#define TUPLE_FIELDS_MAX 8

typedef enum IndexPathEnd {
    INDEX_PATH_BARE = 1,    /* "/a" : composite, vector and full-text indexes */
    INDEX_PATH_SCALAR = 2,  /* "/a/?" */
    INDEX_PATH_SUBTREE = 4, /* "/a/" and a star, and the root */
    INDEX_PATH_TUPLE = 8,
} IndexPathEnd;

typedef struct IndexStep {
    Slice name;      /* unquoted; of a name */
    bool is_element; /* "[]" */
} IndexStep;

/* One of the values that make up a tuple. */
typedef struct IndexField {
    const IndexStep *steps; /* from the root: those of the tuple, then its own */
    size_t step_count;
    Slice canonical; /* "/e/[]/a/b" */
} IndexField;

typedef struct IndexPath {
    IndexPathEnd end;
    bool is_root;
    Slice canonical;        /* one spelling for all texts that mean the same path */
    Slice name;             /* the first segment; empty for the root */
    const IndexStep *steps; /* a tuple's are those before its braces */
    size_t step_count;
    const IndexField *fields; /* of a tuple */
    size_t field_count;
    bool is_name; /* the path is one name: a property of the item itself */
} IndexPath;

/* Parses 'text', whose ending must be one of 'allowed' (flags of IndexPathEnd). Returns false if it
 * is not such a path; '*position' is then the first byte that is wrong. */
bool index_path_parse(Arena *arena, Slice text, unsigned allowed, IndexPath *out, size_t *position);
