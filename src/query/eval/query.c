/* query.c - see query.h: the steps from text to results, one after the other. */
#include "query/eval/query.h"

#include "query/eval/eval_int.h"
#include "query/eval/fold_int.h"
#include "query/eval/query_run_int.h"
#include "query/sql/query_int.h"

Status query_parse(Arena *arena, Slice text, Json parameters, Query **out, Error *err)
{
    return query_parse_with(arena, text, parameters, JSON_NONE, out, err);
}

Status query_parse_with(Arena *arena, Slice text, Json parameters, Json computed, Query **out,
                        Error *err)
{
    TRY(query_bind_text(arena, text, parameters, computed, out, err));
    fold_constants(arena, *out);
    return STATUS_OK;
}

typedef struct Results {
    Json *list;
    size_t count;
    size_t capacity;
} Results;

static Status add_result(void *context, Run *run, const Value *row, RowAnswer *answer UNUSED)
{
    Results *results = context;
    TRY(RUN_GROW(run, run->keep, results->list, results->count, results->capacity, 16));
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
    TRY(user_calls_begin(&run, query));
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
