/* definition_int.h - what the checkers of the parts of a container's body have in common.
 *
 * Each part of a body has a checker: it takes the part as the client sent it (undefined if it was
 * not sent) and makes the part's normal form, a document of its own in the arena, or undefined if
 * the part is not kept. Rules between two parts are checked on the normal forms afterwards.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "catalog/definition.h"
#include "json/json.h"

#define REFUSE(err, ...) error_set((err), STATUS_BAD_REQUEST, SUB_NONE, __VA_ARGS__)

/* "'%.*s'", SHOWN(text): a client's text as messages repeat it, cut between two characters. */
#define SHOWN(text) SLICE_ARG(body_shown(text))
Slice body_shown(Slice text);

/* The words that a policy allows at some place, as they are returned; input is in any case. */
typedef struct WordList {
    const Slice *words;
    size_t count;
} WordList;
#define WORDS(array)  ((WordList){(array), ARRAY_COUNT(array)})
#define WORD_REQUIRED SIZE_MAX /* as a fallback: an absent word is refused */

/* The id of a body, which must be an object; 'what' names the resource in messages. */
MUST_USE Status body_read_id(Json body, const char *what, Slice *id, Error *err);

/* The checkers, one per property of the body. */
MUST_USE Status definition_check_partition_key(Arena *arena, Json in, Json *out, Error *err);
MUST_USE Status definition_check_unique_keys(Arena *arena, Json in, Json *out, Error *err);
MUST_USE Status definition_check_indexing(Arena *arena, Json in, Json *out, Error *err);
MUST_USE Status definition_check_conflict_resolution(Arena *arena, Json in, Json *out, Error *err);
MUST_USE Status definition_check_geospatial(Arena *arena, Json in, Json *out, Error *err);
MUST_USE Status definition_check_default_ttl(Arena *arena, Json in, Json *out, Error *err);
MUST_USE Status definition_check_analytical_ttl(Arena *arena, Json in, Json *out, Error *err);
MUST_USE Status definition_check_computed_properties(Arena *arena, Json in, Json *out, Error *err);
MUST_USE Status definition_check_vector_embeddings(Arena *arena, Json in, Json *out, Error *err);
MUST_USE Status definition_check_full_text(Arena *arena, Json in, Json *out, Error *err);
MUST_USE Status definition_check_change_feed(Arena *arena, Json in, Json *out, Error *err);
MUST_USE Status definition_check_client_encryption(Arena *arena, Json in, Json *out, Error *err);

/* Parts of indexingPolicy that have files of their own; 'in' is the array as sent. */
MUST_USE Status definition_check_vector_indexes(Arena *arena, Json in, Json *out, Error *err);
MUST_USE Status definition_check_full_text_indexes(Arena *arena, Json in, Json *out, Error *err);
MUST_USE Status definition_check_composite_indexes(Arena *arena, Json in, Json *out, Error *err);
/* 'included' is includedPaths as sent: its spatial "indexes", an older form, are added. */
MUST_USE Status definition_check_spatial_indexes(Arena *arena, Json in, Json included, Json *out,
                                                 Error *err);

/* Rules between two parts, on whole normal forms; 'old' is undefined at creation. */
MUST_USE Status definition_cross_check_spatial(Json normal, Error *err);
MUST_USE Status definition_cross_check_computed(Json old, Json normal, Error *err);
MUST_USE Status definition_cross_check_vector(Json old, Json normal, Error *err);
MUST_USE Status definition_cross_check_full_text(Json normal, Error *err);
MUST_USE Status definition_cross_check_encryption(Arena *arena, Json normal, Error *err);

/* The member called 'name'; null counts as undefined. */
Json body_member(Json object, Slice name);

/* Elements of an array; 0 if it is not one. */
size_t body_element_count(Json array);

/* "a string", "an array"...: what messages say was found. */
const char *body_type_phrase(Json value);

/* Fails unless 'value' is of that type, or undefined. 'what' names the value in the message. */
MUST_USE Status body_want_object(Json value, const char *what, Error *err);
MUST_USE Status body_want_array(Json value, const char *what, size_t count_max, Error *err);

bool body_find_word(Slice text, WordList words, size_t *out);

/* The element of 'entries', objects with a "path", whose path means the same as 'path'. */
Json body_find_entry(Json entries, Json path);

/* The member as text, a word of a list, a whole number or a boolean; 'fallback' if it is absent. */
MUST_USE Status body_read_text(Json object, Slice name, const char *what, Slice fallback,
                               Slice *out, Error *err);
MUST_USE Status body_read_word(Json object, Slice name, const char *what, WordList words,
                               size_t fallback, size_t *out, Error *err);
MUST_USE Status body_read_bool(Json object, Slice name, const char *what, bool fallback, bool *out,
                               Error *err);
/* A whole number from 'min' to 'max'; '*found' says whether it was there. */
MUST_USE Status body_read_whole(Json object, Slice name, const char *what, int64_t min, int64_t max,
                                int64_t *out, bool *found, Error *err);

/* A property path that must be there, as text and parsed. */
MUST_USE Status body_read_path(Arena *arena, Json object, Slice name, const char *what, Slice *text,
                               PropertyPath *path, Error *err);

/* Fails if two of 'count' paths mean the same; 'what' is "path" or the like. */
MUST_USE Status body_want_distinct(Arena *arena, const PropertyPath *paths, size_t count,
                                   const char *what, Error *err);

/* A list of objects with distinct paths, as it is normalised. */
typedef struct EntryList {
    Arena *arena;
    JsonBuilder *builder;
    size_t count; /* entries before the one that is checked */
} EntryList;

/* Checks an entry, appends its normal form to the list's builder and parses its path. */
typedef Status (*EntryCheck)(const EntryList *list, Json in, PropertyPath *path, Error *err);

/* Appends an array with the normal form of each of 'entries', an array of at most POLICY_PATHS_MAX
 * (none if undefined). Fails if two paths mean the same; 'what' names the list in the message. */
MUST_USE Status body_add_entries(Arena *arena, JsonBuilder *b, Json entries, EntryCheck check,
                                 const char *what, Error *err);

/* A slice of the arena with the path in its one spelling, for sorting and comparing. */
Slice body_path_canonical(Arena *arena, PropertyPath path);

/* Orders Slices by bytes, for qsort. */
int body_compare_slices(const void *a, const void *b);

/* Appends "name": value to an object, if there is a value. */
void body_add_member(JsonBuilder *b, Slice name, Json value);
void body_add_text(JsonBuilder *b, Slice name, Slice value);
