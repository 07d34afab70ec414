/* definition_body.c - reading what a client sent: types, words, numbers, paths.
 *
 * Every message names the property, what was expected of it and what was found.
 */
#include "catalog/definition_int.h"

#include <stdio.h>
#include <stdlib.h>

enum { SHOWN_BYTES = 100 };

Slice body_shown(Slice text)
{
    if (text.len <= SHOWN_BYTES)
        return text;
    size_t len = SHOWN_BYTES;
    while (len > 0 && ((uint8_t)text.ptr[len] & 0xC0) == 0x80)
        --len;
    return slice_first(text, len);
}

Json body_member(Json object, Slice name)
{
    Json value = json_get(object, name);
    return json_is(value, JSON_NULL) ? JSON_NONE : value;
}

size_t body_element_count(Json array)
{
    return json_is(array, JSON_ARRAY) ? json_count(array) : 0;
}

const char *body_type_phrase(Json value)
{
    switch (json_type(value)) {
    case JSON_UNDEFINED:
        return "nothing";
    case JSON_NULL:
        return "null";
    case JSON_BOOL:
        return "a boolean";
    case JSON_NUMBER:
        return "a number";
    case JSON_STRING:
        return "a string";
    case JSON_ARRAY:
        return "an array";
    case JSON_OBJECT:
        return "an object";
    }
    return "something else";
}

Status body_want_object(Json value, const char *what, Error *err)
{
    if (json_is(value, JSON_UNDEFINED) || json_is(value, JSON_OBJECT))
        return STATUS_OK;
    return REFUSE(err, "%s must be an object; found %s.", what, body_type_phrase(value));
}

Status body_want_array(Json value, const char *what, size_t count_max, Error *err)
{
    if (json_is(value, JSON_UNDEFINED))
        return STATUS_OK;
    if (!json_is(value, JSON_ARRAY))
        return REFUSE(err, "%s must be an array; found %s.", what, body_type_phrase(value));
    if (json_count(value) > count_max)
        return REFUSE(err, "%s has %zu elements; the maximum is %zu.", what, json_count(value),
                      count_max);
    return STATUS_OK;
}

bool body_find_word(Slice text, WordList words, size_t *out)
{
    for (size_t i = 0; i < words.count; ++i) {
        if (slice_equal_nocase(text, words.words[i])) {
            *out = i;
            return true;
        }
    }
    return false;
}

Json body_find_entry(Json entries, Json path)
{
    AUTO(arena_done) Arena wanted_arena;
    AUTO(arena_done) Arena scratch;
    arena_init(&wanted_arena, PROPERTY_PATH_BYTES_MAX);
    arena_init(&scratch, PROPERTY_PATH_BYTES_MAX);
    PropertyPath wanted, candidate;
    size_t position;
    if (!json_is(path, JSON_STRING) ||
        !property_path_parse(&wanted_arena, json_string(path), &wanted, &position))
        return JSON_NONE;
    JsonIter it = json_iter(entries);
    while (json_next(&it)) {
        Json text = json_get(it.value, SLICE("path"));
        arena_reset(&scratch);
        if (json_is(text, JSON_STRING) &&
            property_path_parse(&scratch, json_string(text), &candidate, &position) &&
            property_path_equal(wanted, candidate))
            return it.value;
    }
    return JSON_NONE;
}

Status body_read_text(Json object, Slice name, const char *what, Slice fallback, Slice *out,
                      Error *err)
{
    Json value = body_member(object, name);
    if (!json_is(value, JSON_UNDEFINED) && !json_is(value, JSON_STRING))
        return REFUSE(err, "'%.*s' of %s must be a string; found %s.", SLICE_ARG(name), what,
                      body_type_phrase(value));
    *out = json_is(value, JSON_STRING) ? json_string(value) : fallback;
    return STATUS_OK;
}

Status body_read_word(Json object, Slice name, const char *what, WordList words, size_t fallback,
                      size_t *out, Error *err)
{
    Slice text;
    TRY(body_read_text(object, name, what, SLICE_EMPTY, &text, err));
    if (json_is(body_member(object, name), JSON_UNDEFINED) && fallback != WORD_REQUIRED) {
        *out = fallback;
        return STATUS_OK;
    }
    if (body_find_word(text, words, out))
        return STATUS_OK;
    char list[160] = "";
    size_t len = 0;
    for (size_t i = 0; i < words.count && len < sizeof(list); ++i)
        len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%.*s", i == 0 ? "" : ", ",
                                SLICE_ARG(words.words[i]));
    return REFUSE(err, "'%.*s' of %s is '%.*s'; expected one of: %s.", SLICE_ARG(name), what,
                  SHOWN(text), list);
}

Status body_read_bool(Json object, Slice name, const char *what, bool fallback, bool *out,
                      Error *err)
{
    Json value = body_member(object, name);
    if (!json_is(value, JSON_UNDEFINED) && !json_is(value, JSON_BOOL))
        return REFUSE(err, "'%.*s' of %s must be true or false; found %s.", SLICE_ARG(name), what,
                      body_type_phrase(value));
    *out = json_is(value, JSON_BOOL) ? json_bool(value) : fallback;
    return STATUS_OK;
}

Status body_read_whole(Json object, Slice name, const char *what, int64_t min, int64_t max,
                       int64_t *out, bool *found, Error *err)
{
    Json value = body_member(object, name);
    *found = !json_is(value, JSON_UNDEFINED);
    if (!*found)
        return STATUS_OK;
    if (!json_is(value, JSON_NUMBER))
        return REFUSE(err, "'%.*s' of %s must be a whole number from %lld to %lld; found %s.",
                      SLICE_ARG(name), what, (long long)min, (long long)max,
                      body_type_phrase(value));
    if (!json_to_i64(value, out) || *out < min || *out > max)
        return REFUSE(err, "'%.*s' of %s must be a whole number from %lld to %lld; found %.17g.",
                      SLICE_ARG(name), what, (long long)min, (long long)max, json_number(value));
    return STATUS_OK;
}

Status body_read_path(Arena *arena, Json object, Slice name, const char *what, Slice *text,
                      PropertyPath *path, Error *err)
{
    TRY(body_read_text(object, name, what, SLICE_EMPTY, text, err));
    size_t position;
    if (property_path_parse(arena, *text, path, &position))
        return STATUS_OK;
    return REFUSE(err,
                  "'%.*s' of %s must be a property path like '/a/b', with quotes around names of "
                  "other characters; '%.*s' failed near position '%zu'.",
                  SLICE_ARG(name), what, SHOWN(*text), position);
}

Status body_want_distinct(Arena *arena, const PropertyPath *paths, size_t count, const char *what,
                          Error *err)
{
    if (count < 2)
        return STATUS_OK;
    Slice *texts = ARENA_NEW_ARRAY(arena, Slice, count);
    for (size_t i = 0; i < count; ++i)
        texts[i] = body_path_canonical(arena, paths[i]);
    qsort(texts, count, sizeof(Slice), body_compare_slices);
    for (size_t i = 1; i < count; ++i) {
        if (slice_equal(texts[i - 1], texts[i]))
            return REFUSE(err, "The path '%.*s' occurs more than once in %s.", SHOWN(texts[i]),
                          what);
    }
    return STATUS_OK;
}

Status body_add_entries(Arena *arena, JsonBuilder *b, Json entries, EntryCheck check,
                        const char *what, Error *err)
{
    ASSERT(body_element_count(entries) <= POLICY_PATHS_MAX);
    PropertyPath paths[POLICY_PATHS_MAX];
    EntryList list = {.arena = arena, .builder = b};
    json_begin_array(b);
    JsonIter it = json_iter(entries);
    while (json_next(&it)) {
        TRY(check(&list, it.value, &paths[list.count], err));
        list.count++;
    }
    json_end(b);
    return body_want_distinct(arena, paths, list.count, what, err);
}

Slice body_path_canonical(Arena *arena, PropertyPath path)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, PROPERTY_PATH_CANONICAL_BYTES_MAX);
    property_path_print(path, &text);
    return arena_copy(arena, buf_view(&text));
}

int body_compare_slices(const void *a, const void *b)
{
    return slice_compare(*(const Slice *)a, *(const Slice *)b);
}

void body_add_member(JsonBuilder *b, Slice name, Json value)
{
    if (json_is(value, JSON_UNDEFINED))
        return;
    json_key(b, name);
    json_add(b, value);
}

void body_add_text(JsonBuilder *b, Slice name, Slice value)
{
    json_key(b, name);
    json_add_string(b, value);
}
