/* spec_testing_int.h - the conformance corpus for tests: a folder beside the project, which stays
 * outside of it. It is $ORRERY_SPEC, or "shared/spec" in or beside a folder above this file; where
 * it is not, a test says so and is skipped. */
#pragma once

#include "query/eval/query_testing_int.h"

#include <stdlib.h>

/* The corpus of plans leaves out values, which do not matter to a plan. */
static const char PLAN_PARAMETERS[] = "[{\"name\":\"@TOPCOUNT\",\"value\":42},"
                                      "{\"name\":\"@vectorEmbedding\",\"value\":[]}]";

/* Holds what a test reads from the corpus. */
static Arena arena;

static int spec_set_up(void **state)
{
    (void)state;
    arena_init(&arena, 1 << 20);
    return 0;
}

static int spec_tear_down(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

#define SPEC_TEST(test) cmocka_unit_test_setup_teardown(test, spec_set_up, spec_tear_down)

/* The text of a file of the corpus, or false if there is none. */
static inline bool spec_read_file(const char *path, Slice *out)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return false;
    char *text = arena_alloc(&arena, JSON_TEXT_BYTES_MAX);
    size_t len = fread(text, 1, JSON_TEXT_BYTES_MAX, file);
    fclose(file);
    *out = slice_make(text, len);
    return true;
}

static inline bool spec_find_file(const char *name, Slice *out)
{
    const char *folder = getenv("ORRERY_SPEC");
    if (folder != NULL)
        return spec_read_file(arena_format(&arena, "%s/%s%c", folder, name, '\0').ptr, out);
    Slice above = slice_from_cstr(__FILE__);
    while (above.len > 0) {
        while (above.len > 0 && above.ptr[above.len - 1] != '/')
            above.len--;
        if (above.len > 0)
            above.len--;
        Slice path = arena_format(&arena, "%.*s/shared/spec/%s%c", SLICE_ARG(above), name, '\0');
        if (spec_read_file(path.ptr, out))
            return true;
    }
    return false;
}

static inline Json spec_load(const char *name)
{
    Slice text;
    if (!spec_find_file(name, &text)) {
        printf("SKIPPED: there is no %s: no $ORRERY_SPEC, and no shared/spec above\n", name);
        skip();
    }
    Error err;
    Json cases = JSON_NONE;
    if (json_parse(&arena, text, &cases, &err) != STATUS_OK)
        fail_msg("%s: %s", name, err.message);
    return cases;
}

static inline bool spec_flag(Json c, const char *name)
{
    Json value = json_get(c, slice_from_cstr(name));
    return json_is(value, JSON_BOOL) && json_bool(value);
}

static inline Slice spec_text(Json c, const char *name)
{
    Json value = json_get(c, slice_from_cstr(name));
    return json_is(value, JSON_STRING) ? json_string(value) : SLICE_EMPTY;
}

static inline bool spec_has(Json c, const char *name)
{
    return json_get(c, slice_from_cstr(name)).at != NULL;
}

/* The text with the placeholder that clients replace replaced by true. */
static inline Slice spec_fill_in(Slice text)
{
    Slice placeholder = SLICE("{documentdb-formattableorderbyquery-filter}");
    AUTO(buf_done) Buf out;
    buf_init(&out, QUERY_TEXT_BYTES_MAX);
    while (text.len > 0) {
        bool found = slice_starts_with(text, placeholder);
        buf_slice(&out, found ? SLICE("true") : slice_first(text, 1));
        text = slice_from(text, found ? placeholder.len : 1);
    }
    return arena_copy(&arena, buf_view(&out));
}
