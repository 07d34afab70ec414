/* workload.c - see workload.h. */
#include "advise/workload.h"

#include "query/eval/query.h"

#include <math.h>

enum {
    PARAMETERS_MAX = 1000,
    PLACEHOLDER_NUMBER = 10, /* of TOP, LIMIT and the like */
};
static const double PER_SECOND_MAX = 1e9;

/* ---- parameters that have no value ---- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The next "@name" in the text that is not part of a string; empty if there is none. */
static Slice next_parameter(Slice *rest)
{
    char quote = 0;
    for (size_t i = 0; i < rest->len; i++) {
        char c = rest->ptr[i];
        if (quote != 0) {
            if (c == '\\')
                i++;
            else if (c == quote)
                quote = 0;
            continue;
        }
        if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '@') {
            size_t end = i + 1;
            while (end < rest->len && is_name_char(rest->ptr[end]))
                end++;
            Slice name = slice_make(rest->ptr + i, end - i);
            *rest = slice_from(*rest, end);
            return name;
        }
    }
    *rest = SLICE_EMPTY;
    return SLICE_EMPTY;
}

static bool has_parameter(Json parameters, Slice name)
{
    JsonIter it = json_iter(parameters);
    while (json_next(&it)) {
        Json given = json_get(it.value, SLICE("name"));
        if (json_is(given, JSON_STRING) && slice_equal(json_string(given), name) &&
            !json_is(json_get(it.value, SLICE("value")), JSON_UNDEFINED))
            return true;
    }
    return false;
}

static void add_parameter(JsonBuilder *b, Slice name, bool is_number)
{
    json_begin_object(b);
    json_key(b, SLICE("name"));
    json_add_string(b, name);
    json_key(b, SLICE("value"));
    if (is_number)
        json_add_i64(b, PLACEHOLDER_NUMBER);
    else
        json_add_string(b, name); /* each another value, so that no two are taken for one */
    json_end(b);
}

/* The given parameters that have a value, and one for each name in the text that has none. */
static Json complete(Arena *arena, Slice text, Json given, bool is_number)
{
    Slice names[PARAMETERS_MAX];
    size_t count = 0;
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_array(&b);
    JsonIter it = json_iter(given);
    while (json_next(&it)) {
        Json name = json_get(it.value, SLICE("name"));
        bool is_whole = !json_is(name, JSON_STRING) || has_parameter(given, json_string(name));
        if (is_whole)
            json_add(&b, it.value);
    }
    for (Slice name = next_parameter(&text); name.len > 0 && count < PARAMETERS_MAX;
         name = next_parameter(&text)) {
        bool is_known = has_parameter(given, name);
        for (size_t i = 0; i < count && !is_known; i++)
            is_known = slice_equal(names[i], name);
        if (is_known)
            continue;
        names[count++] = name;
        add_parameter(&b, name, is_number);
    }
    json_end(&b);
    return json_built(&b);
}

/* ---- one query ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static Slice trim(Slice text)
{
    while (text.len > 0 && is_space(text.ptr[0]))
        text = slice_from(text, 1);
    while (text.len > 0 && is_space(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

/* The message inside of the JSON that clients get. */
static Status plain_error(Arena *arena, size_t number, Error *err)
{
    Json body;
    Error ignored;
    Slice message = slice_from_cstr(err->message);
    if (json_parse(arena, message, &body, &ignored) == STATUS_OK) {
        Json first = json_at(json_get(body, SLICE("errors")), 0);
        Json text = json_get(first, SLICE("message"));
        if (json_is(text, JSON_STRING))
            message = arena_copy(arena, json_string(text));
    } else {
        message = arena_copy(arena, message);
    }
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "query %zu: %.*s", number,
                     SLICE_CUT(message, 300));
}

static Status add_query(Workload *work, Arena *arena, Slice text, Json parameters,
                        double per_second, Error *err)
{
    size_t number = work->count + 1;
    if (number > WORKLOAD_QUERIES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "there are more than %d queries; give the most frequent ones",
                         WORKLOAD_QUERIES_MAX);
    if (!(per_second >= 0) || per_second > PER_SECOND_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "query %zu: perSecond must be a number from 0 to %.0f", number,
                         PER_SECOND_MAX);
    Query *query = NULL;
    Error second;
    Status status = query_parse(arena, text, complete(arena, text, parameters, false), &query, err);
    if (status != STATUS_OK && query_parse(arena, text, complete(arena, text, parameters, true),
                                           &query, &second) != STATUS_OK)
        return plain_error(arena, number, err);
    WorkQuery *row = &work->list[work->count++];
    *row = (WorkQuery){.text = text, .per_second = per_second, .query = query};
    query_uses(query, arena, &row->uses);
    work->per_second += per_second;
    return STATUS_OK;
}

static Status add_json(Workload *work, Arena *arena, Json value, Error *err)
{
    if (json_is(value, JSON_STRING))
        return add_query(work, arena, json_string(value), JSON_NONE, 1, err);
    Json text = json_get(value, SLICE("query"));
    Json parameters = json_get(value, SLICE("parameters"));
    Json rate = json_get(value, SLICE("perSecond"));
    if (!json_is(text, JSON_STRING))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "query %zu: expected {\"query\": \"SELECT ...\"} or a string",
                         work->count + 1);
    if (!json_is(parameters, JSON_UNDEFINED) && !json_is(parameters, JSON_ARRAY))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "query %zu: parameters must be an array", work->count + 1);
    if (json_is(parameters, JSON_ARRAY) && json_count(parameters) > PARAMETERS_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "query %zu has more than %d parameters",
                         work->count + 1, PARAMETERS_MAX);
    if (!json_is(rate, JSON_UNDEFINED) && !json_is(rate, JSON_NUMBER))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "query %zu: perSecond must be a number",
                         work->count + 1);
    double per_second = json_is(rate, JSON_NUMBER) ? json_number(rate) : 1;
    return add_query(work, arena, json_string(text), parameters, per_second, err);
}

static Status parse_json(Workload *work, Arena *arena, Slice text, Error *err)
{
    Json value;
    TRY(json_parse(arena, text, &value, err));
    if (!json_is(value, JSON_ARRAY))
        return add_json(work, arena, value, err);
    JsonIter it = json_iter(value);
    while (json_next(&it))
        TRY(add_json(work, arena, it.value, err));
    return STATUS_OK;
}

static Status parse_lines(Workload *work, Arena *arena, Slice text, Error *err)
{
    while (text.len > 0) {
        Slice line = trim(slice_cut(&text, '\n'));
        if (slice_ends_with(line, SLICE(";")))
            line = slice_first(line, line.len - 1);
        if (line.len == 0 || slice_starts_with(line, SLICE("--")))
            continue;
        if (!json_utf8_valid(line))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "query %zu is not UTF-8",
                             work->count + 1);
        TRY(add_query(work, arena, line, JSON_NONE, 1, err));
    }
    return STATUS_OK;
}

Status workload_parse(Arena *arena, Slice text, Workload *out, Error *err)
{
    if (text.len > WORKLOAD_BYTES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the file of queries has more than %zu bytes", WORKLOAD_BYTES_MAX);
    Workload work = {.list = ARENA_NEW_ARRAY(arena, WorkQuery, WORKLOAD_QUERIES_MAX)};
    Slice trimmed = trim(text);
    if (slice_starts_with(trimmed, SLICE("[")) || slice_starts_with(trimmed, SLICE("{")))
        TRY(parse_json(&work, arena, trimmed, err));
    else
        TRY(parse_lines(&work, arena, trimmed, err));
    if (work.count == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "the file has no query");
    *out = work;
    return STATUS_OK;
}
