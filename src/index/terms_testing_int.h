/* terms_testing_int.h - policies, paths and documents for the tests of this folder, from texts with
 * single quotes. Not part of the library. */
#pragma once

#include "base/random.h"
#include "index/terms.h"
#include "json/json_testing.h"

/* 'key' is the partition key path, or NULL; 'text' the policy, or NULL for none. */
static inline IndexPolicy *policy_of(Arena *arena, const char *text, const char *key)
{
    PropertyPath path = {0};
    size_t position;
    if (key != NULL)
        assert_true(property_path_parse(arena, slice_from_cstr(key), &path, &position));
    IndexPolicy *policy;
    Error err;
    Json json = text == NULL ? JSON_NONE : row_json(arena, text);
    if (index_policy_new(arena, json, &path, key == NULL ? 0 : 1, &policy, &err) != STATUS_OK)
        fail_msg("%s: %s", text == NULL ? "no policy" : text, err.message);
    return policy;
}

/* A path without an ending; "/" is the root. */
static inline IndexPath path_of(Arena *arena, const char *text)
{
    IndexPath path = {.is_root = true};
    size_t position;
    if (strcmp(text, "/") != 0 &&
        !index_path_parse(arena, slice_from_cstr(text), INDEX_PATH_BARE, &path, &position))
        fail_msg("%s is no path at %zu", text, position);
    return path;
}

static const HashKey TESTING_KEY = {0x0123456789abcdef, 0xfedcba9876543210};

/* Levels of a random document. */
enum { TESTING_DEPTH_MAX = 6 };

static inline int compare_terms(const void *left, const void *right)
{
    const Term *a = left;
    const Term *b = right;
    if (a->path != b->path)
        return a->path < b->path ? -1 : 1;
    return slice_compare(a->value, b->value);
}

static inline bool has_term(const TermList *list, TermPath path, Slice value)
{
    Term wanted = {.path = path, .value = value};
    return bsearch(&wanted, list->terms, list->count, sizeof(Term), compare_terms) != NULL;
}

static inline void random_value(JsonBuilder *b, Random *random, size_t depth)
{
    static const Slice NAMES[] = {SLICE_INIT("a"), SLICE_INIT("b"), SLICE_INIT("c"),
                                  SLICE_INIT("id")};
    static const Slice TEXTS[] = {
        SLICE_INIT(""),
        SLICE_INIT("x"),
        SLICE_INIT("a longer text"),
        SLICE_INIT("a longer texts"),
        SLICE_INIT("0123456789012345678901234567890123456789012345678901234567890123456789012345"
                   "67890123456789012345 and beyond"),
        SLICE_INIT("0123456789012345678901234567890123456789012345678901234567890123456789012345"
                   "67890123456789012345 and more"),
    };
    switch (random_below(random, depth == 0 ? 4 : 7)) {
    case 0:
        json_add_null(b);
        return;
    case 1:
        json_add_bool(b, random_below(random, 2) == 0);
        return;
    case 2:
        json_add_number(b, (double)random_below(random, 5) / 2);
        return;
    case 3:
        json_add_string(b, TEXTS[random_below(random, ARRAY_COUNT(TEXTS))]);
        return;
    case 4:
        json_begin_array(b);
        for (uint64_t left = random_below(random, 4); left > 0; --left)
            random_value(b, random, depth - 1);
        json_end(b);
        return;
    default:
        json_begin_object(b);
        for (size_t i = 0; i < ARRAY_COUNT(NAMES); ++i) {
            if (random_below(random, 2) == 0)
                continue;
            json_key(b, NAMES[i]);
            random_value(b, random, depth - 1);
        }
        json_end(b);
        return;
    }
}

/* An object, now and then nearly the same as 'like'. */
static inline Json random_document(Random *random, Arena *arena, Json like)
{
    static const Slice NAMES[] = {SLICE_INIT("a"), SLICE_INIT("b"), SLICE_INIT("c"),
                                  SLICE_INIT("id")};
    bool is_near = json_is(like, JSON_OBJECT) && random_below(random, 3) > 0;
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    for (size_t i = 0; i < ARRAY_COUNT(NAMES); ++i) {
        Json old = json_get(like, NAMES[i]);
        uint64_t choice = random_below(random, 4);
        if (choice == 0)
            continue;
        bool is_kept = is_near && choice > 1 && !json_is(old, JSON_UNDEFINED);
        json_key(&b, NAMES[i]);
        if (is_kept)
            json_add(&b, old);
        else
            random_value(&b, random, TESTING_DEPTH_MAX - 1);
    }
    json_end(&b);
    return json_built(&b);
}
