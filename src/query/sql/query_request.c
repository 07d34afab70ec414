/* query_request.c - the body of a query request and its parameters. */
#include "query/sql/query_int.h"

#include "query/sql/sql_text_int.h"

#include <stdlib.h>

enum { NAME_QUOTE_BYTES = 64 };

Status query_request_items(Arena *arena, Slice body, QueryRequest *out, Error *err)
{
    Json request;
    *out = (QueryRequest){0};
    TRY(json_parse(arena, body, &request, err));
    if (json_is(request, JSON_STRING)) {
        out->text = json_string(request);
        return STATUS_OK;
    }
    if (!json_is(request, JSON_OBJECT))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the body of a query must be an object with a \"query\"");
    Json query = json_get(request, SLICE("query"));
    if (!json_is(query, JSON_STRING))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the \"query\" of a query request must be a string");
    Parameters checked;
    Json array = json_get(request, SLICE("parameters"));
    TRY(parameters_read(arena, array, &checked, err));
    out->text = json_string(query);
    out->parameters = checked.count == 0 ? JSON_NONE : array;
    out->resume_filter = json_get(request, SLICE("resumeFilter"));
    if (json_is(out->resume_filter, JSON_NULL))
        out->resume_filter = JSON_NONE;
    return STATUS_OK;
}

Status query_request(Arena *arena, Slice body, Slice *text, Json *parameters, Error *err)
{
    QueryRequest request;
    TRY(query_request_items(arena, body, &request, err));
    if (request.resume_filter.at != NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "a \"resumeFilter\" is for queries on items");
    *text = request.text;
    *parameters = request.parameters;
    return STATUS_OK;
}

/* "@" and an identifier, as the text of a query can name it. */
static bool is_parameter_name(Slice name)
{
    if (name.len < 2 || name.ptr[0] != '@')
        return false;
    size_t at = 1;
    while (at < name.len) {
        bool first = at == 1;
        uint32_t c = text_next(name, &at);
        bool digit = c >= '0' && c <= '9';
        if (!text_is_letter(c) && (first || !digit))
            return false;
    }
    return true;
}

static Status read_parameter(Json entry, size_t index, Parameter *out, Error *err)
{
    Json name = json_get(entry, SLICE("name"));
    if (!json_is(name, JSON_STRING))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "parameter %zu of the query must be an object with a \"name\"", index);
    *out = (Parameter){json_string(name), json_get(entry, SLICE("value"))};
    if (!is_parameter_name(out->name))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the name of parameter %zu of the query must be '@' and an identifier, "
                         "not '%.*s'",
                         index, SLICE_CUT(out->name, NAME_QUOTE_BYTES));
    return STATUS_OK;
}

static int compare_names(const void *a, const void *b)
{
    return slice_compare(((const Parameter *)a)->name, ((const Parameter *)b)->name);
}

Status parameters_read(Arena *arena, Json array, Parameters *out, Error *err)
{
    if (array.at == NULL || json_is(array, JSON_NULL)) {
        *out = (Parameters){NULL, 0};
        return STATUS_OK;
    }
    if (!json_is(array, JSON_ARRAY))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the \"parameters\" of a query must be an array");
    size_t count = 0;
    Parameter *sorted = ARENA_NEW_ARRAY(arena, Parameter, json_count(array) + 1);
    JsonIter iter = json_iter(array);
    while (json_next(&iter)) {
        TRY(read_parameter(iter.value, count, &sorted[count], err));
        count++;
    }
    qsort(sorted, count, sizeof(*sorted), compare_names);
    for (size_t i = 1; i < count; i++) {
        if (slice_equal(sorted[i - 1].name, sorted[i].name))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "the query has more than one parameter '%.*s'",
                             SLICE_CUT(sorted[i].name, NAME_QUOTE_BYTES));
    }
    *out = (Parameters){sorted, count};
    return STATUS_OK;
}
