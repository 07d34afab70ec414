/* query_testing_int.h - what the tests of this folder share. Not part of the library. */
#pragma once

#include "query/eval/query.h"
#include "json/json_testing.h"

/* A query, what it runs over, and what must come out: the results as a JSON array, or, when it
 * begins with '!', a part of the error's message. */
typedef struct QueryCase {
    const char *query;
    const char *expected;
} QueryCase;

static inline Json parse_json(Arena *arena, const char *text)
{
    return text == NULL ? JSON_NONE : text_json(arena, slice_from_cstr(text));
}

/* Runs over the elements of 'documents', which have computed properties, and prints the results,
 * or "!" and the error's message. */
static inline const char *run_computed(Arena *arena, const char *text, const char *documents,
                                       const char *parameters, const char *computed,
                                       QueryOptions options)
{
    Error err;
    Query *query;
    if (query_parse_with(arena, slice_from_cstr(text), parse_json(arena, parameters),
                         parse_json(arena, computed), &query, &err) != STATUS_OK) {
        assert_int_equal(err.status, STATUS_BAD_REQUEST);
        return arena_format(arena, "!%s%c", err.message, '\0').ptr;
    }
    Json array = parse_json(arena, documents);
    size_t count = 0;
    Json *list = ARENA_NEW_ARRAY(arena, Json, array.at == NULL ? 1 : json_count(array) + 1);
    JsonIter iter = json_iter(array);
    while (json_next(&iter))
        list[count++] = iter.value;
    Json *results;
    size_t result_count;
    if (query_run_with(query, options, list, count, arena, &results, &result_count, &err) !=
        STATUS_OK) {
        assert_int_equal(err.status, STATUS_BAD_REQUEST);
        return arena_format(arena, "!%s%c", err.message, '\0').ptr;
    }
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_array(&b);
    for (size_t i = 0; i < result_count; i++)
        json_add(&b, results[i]);
    json_end(&b);
    return arena_cstr(arena, json_print_arena(arena, json_built(&b)));
}

static inline const char *run_query(Arena *arena, const char *text, const char *documents,
                                    const char *parameters, QueryOptions options)
{
    return run_computed(arena, text, documents, parameters, NULL, options);
}

static inline void check_case(const QueryCase *c, const char *documents, const char *parameters)
{
    Arena arena;
    arena_init(&arena, 64 << 10);
    const char *got = run_query(&arena, c->query, documents, parameters, (QueryOptions){0});
    bool refused = got[0] == '!';
    bool same = c->expected[0] == '!' ? refused && strstr(got, c->expected + 1) != NULL
                                      : strcmp(got, c->expected) == 0;
    if (!same)
        fail_msg("%s\n  expected %s\n  got      %s", c->query, c->expected, got);
    arena_done(&arena);
}

static inline void check_cases(const QueryCase *cases, size_t count, const char *documents,
                               const char *parameters)
{
    for (size_t i = 0; i < count; i++)
        check_case(&cases[i], documents, parameters);
}

#define CHECK_CASES(cases, documents, parameters) \
    check_cases((cases), ARRAY_COUNT(cases), (documents), (parameters))

/* Each expression becomes SELECT VALUE ...; expected is its value, or "" if undefined. */
static inline void check_expressions(const QueryCase *cases, size_t count, QueryOptions options)
{
    for (size_t i = 0; i < count; i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        const char *query = arena_format(&arena, "SELECT VALUE %s%c", cases[i].query, '\0').ptr;
        const char *expected = arena_format(&arena, "[%s]%c", cases[i].expected, '\0').ptr;
        const char *got = run_query(&arena, query, "[]", NULL, options);
        bool same = cases[i].expected[0] == '!' ? strstr(got, cases[i].expected + 1) != NULL
                                                : strcmp(got, expected) == 0;
        if (!same)
            fail_msg("%s\n  expected %s\n  got      %s", cases[i].query, expected, got);
    }
}

#define CHECK_EXPRESSIONS(cases) check_expressions((cases), ARRAY_COUNT(cases), (QueryOptions){0})
