/* query_text.c - from text to a tree whose names are bound: see query_int.h. */
#include "query/sql/binder_int.h"
#include "query/sql/functions_int.h"
#include "query/sql/parser_int.h"
#include "query/sql/query_int.h"

static Status check_text(Slice text, Error *err)
{
    if (text.len > QUERY_TEXT_BYTES_MAX)
        return sql_error(err, SLICE_EMPTY, (Span){0, 0}, "SC3020",
                         "The SQL query text exceeded the maximum limit of %zu characters.",
                         QUERY_TEXT_BYTES_MAX);
    if (!json_utf8_valid(text))
        return sql_error(err, SLICE_EMPTY, (Span){0, 0}, "SC1010",
                         "Syntax error, the query is not valid UTF-8.");
    return STATUS_OK;
}

Status query_bind_text(Arena *arena, Slice text, Json parameters, Json computed, Query **out,
                       Error *err)
{
    TRY(check_text(text, err));
    Query *query = ARENA_NEW(arena, Query);
    query->text = text;
    query->computed = computed;
    TRY(parameters_read(arena, parameters, &query->parameters, err));
    TRY(parser_run(arena, text, &query->select, err));
    TRY(binder_run(arena, query, &query->parameters, computed, err));
    *out = query;
    return STATUS_OK;
}

Status query_check_text(const Query *query, Arena *arena, Slice text, Error *err)
{
    TRY(check_text(text, err));
    Query other = {.text = text};
    TRY(parser_run(arena, text, &other.select, err));
    return binder_run(arena, &other, &query->parameters, query->computed, err);
}

Status query_check_available(const Query *query, Error *err)
{
    const Node *node = query->unavailable;
    if (node == NULL)
        return STATUS_OK;
    return sql_error(err, query->text, node->span, "SC2990",
                     "The specified query calls '%.*s', a function that is not available yet.",
                     SLICE_ARG(node->call.function->name));
}
