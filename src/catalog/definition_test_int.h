/* definition_test_int.h - for the tests of container definitions: JSON in rows of C strings.
 *
 * Rows are written with ' for ", so that they stay readable; \\' is a quote inside a string.
 */
#pragma once

#include "catalog/definition.h"
#include "json/json_testing.h"

/* A body with an id, a partition key and 'members', which may be empty. */
static inline Json row_body(Arena *arena, const char *members)
{
    Slice text = arena_format(arena, "{'id':'c','partitionKey':{'paths':['/pk']}%s%s}",
                              members[0] == '\0' ? "" : ",", members);
    return row_json(arena, arena_cstr(arena, text));
}

static inline Status row_create(Arena *arena, const char *members, Json *normal, Error *err)
{
    return container_definition_create(arena, row_body(arena, members), (ContainerRules){0}, normal,
                                       err);
}

static inline void assert_text(Arena *arena, Json value, const char *expected)
{
    Slice text = json_print_arena(arena, value);
    Slice wanted = row_text(arena, expected);
    if (!slice_equal(text, wanted))
        fail_msg("expected %.*s\n     found %.*s", SLICE_ARG(wanted), SLICE_ARG(text));
}

static inline void assert_refused(Status status, const Error *err, const char *fragment)
{
    if (status != STATUS_BAD_REQUEST)
        fail_msg("expected a refusal that says: %s", fragment);
    if (strstr(err->message, fragment) == NULL)
        fail_msg("expected a message with: %s\n     found: %s", fragment, err->message);
}
