/* query.c - see query.h: the steps from text to results, one after the other. */
#include "query/query.h"

#include "query/binder_int.h"
#include "query/eval_int.h"
#include "query/fold_int.h"
#include "query/functions_int.h"
#include "query/parser_int.h"
#include "query/query_int.h"
#include "query/run_int.h"

Status query_parse(Arena *arena, Slice text, Json parameters, Query **out, Error *err)
{
    return query_parse_with(arena, text, parameters, JSON_NONE, out, err);
}

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

Status query_parse_with(Arena *arena, Slice text, Json parameters, Json computed, Query **out,
                        Error *err)
{
    TRY(check_text(text, err));
    Query *query = ARENA_NEW(arena, Query);
    query->text = text;
    query->computed = computed;
    TRY(parameters_read(arena, parameters, &query->parameters, err));
    TRY(parser_run(arena, text, &query->select, err));
    TRY(binder_run(arena, query, &query->parameters, computed, err));
    fold_constants(arena, query);
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
    if (node->kind == NODE_UDF)
        return sql_error(err, query->text, node->span, "SC2003",
                         "User-defined function '%.*s' could not be resolved.",
                         SLICE_CUT(node->call.name, SQL_QUOTE_BYTES));
    return sql_error(err, query->text, node->span, "SC2990",
                     "The specified query calls '%.*s', a function that is not available yet.",
                     SLICE_ARG(node->call.function->name));
}

typedef struct Results {
    Json *list;
    size_t count;
    size_t capacity;
} Results;

static Status add_result(void *context, Run *run, const Value *row, bool *more UNUSED)
{
    Results *results = context;
    if (results->count == results->capacity) {
        size_t capacity = results->capacity == 0 ? 16 : 2 * results->capacity;
        TRY(run_reserve(run, capacity * sizeof(Json)));
        Json *list = arena_alloc(run->keep, capacity * sizeof(Json));
        if (results->count > 0)
            memcpy(list, results->list, results->count * sizeof(Json));
        results->list = list;
        results->capacity = capacity;
    }
    if (!row->stable)
        TRY(run_charge_value(run, row));
    results->list[results->count++] = value_json(run->keep, run->scratch, row);
    return run_reserve(run, 0);
}

Status query_run_with(const Query *query, QueryOptions options, const Json *documents, size_t count,
                      Arena *arena, Json **results, size_t *result_count, Error *err)
{
    TRY(query_check_available(query, err));
    AUTO(run_done) Run run;
    run_init(&run, options, arena, err);
    run.documents = documents;
    run.document_count = count;
    run.slots = ARENA_NEW_ARRAY(arena, Value, query->slot_count); /* all undefined */
    Results found = {0};
    TRY(select_run(&run, query->select, SELECT_OUTERMOST, arena, add_result, &found));
    *results = found.list;
    *result_count = found.count;
    return STATUS_OK;
}

Status query_run(const Query *query, const Json *documents, size_t count, Arena *arena,
                 Json **results, size_t *result_count, Error *err)
{
    return query_run_with(query, (QueryOptions){0}, documents, count, arena, results, result_count,
                          err);
}
