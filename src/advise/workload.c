/* workload.c - see workload.h. */
#include "advise/workload.h"

#include "partition/epk.h"
#include "query/eval/query.h"
#include "query/sql/query_with_key.h"

#include <math.h>

enum {
    PARAMETERS_MAX = 1000,
    PLACEHOLDER_NUMBER = 10, /* of TOP, LIMIT and the like */
};
static const double PER_SECOND_MAX = 1e9;
static const double RECORDED_NUMBER_MAX = 1e12; /* products of it with sizes fit into 64 bits */

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

/* What a parameter without a value stands for. */
typedef enum Placeholder {
    PLACEHOLDER_TEXT,
    PLACEHOLDER_WHOLE_NUMBER,
    PLACEHOLDER_BY_LETTER, /* "@n1" is a number: see query/sql/query_shape.h */
} Placeholder;

/* Each another value, so that no two are taken for one. */
static void add_placeholder(JsonBuilder *b, Slice name, int64_t number, Placeholder placeholder)
{
    char letter = placeholder == PLACEHOLDER_BY_LETTER && name.len > 1 ? name.ptr[1] : 's';
    if (placeholder == PLACEHOLDER_WHOLE_NUMBER) {
        json_add_i64(b, PLACEHOLDER_NUMBER);
    } else if (letter == 'n') {
        json_add_i64(b, PLACEHOLDER_NUMBER + number);
    } else if (letter == 'b') {
        json_add_bool(b, true);
    } else if (letter == 'a') {
        json_begin_array(b);
        json_add_string(b, name);
        json_end(b);
    } else if (letter == 'o') {
        json_begin_object(b);
        json_end(b);
    } else {
        json_add_string(b, name);
    }
}

static void add_parameter(JsonBuilder *b, Slice name, int64_t number, Placeholder placeholder)
{
    json_begin_object(b);
    json_key(b, SLICE("name"));
    json_add_string(b, name);
    json_key(b, SLICE("value"));
    add_placeholder(b, name, number, placeholder);
    json_end(b);
}

/* The given parameters that have a value, and one for each name in the text that has none. */
static Json complete(Arena *arena, Slice text, Json given, Placeholder placeholder)
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
        add_parameter(&b, name, (int64_t)count, placeholder);
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
                        Placeholder placeholder, double per_second, Error *err)
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
    Status status =
        query_parse(arena, text, complete(arena, text, parameters, placeholder), &query, err);
    if (status != STATUS_OK &&
        query_parse(arena, text, complete(arena, text, parameters, PLACEHOLDER_WHOLE_NUMBER),
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
        return add_query(work, arena, json_string(value), JSON_NONE, PLACEHOLDER_TEXT, 1, err);
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
    return add_query(work, arena, json_string(text), parameters, PLACEHOLDER_TEXT, per_second, err);
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
        TRY(add_query(work, arena, line, JSON_NONE, PLACEHOLDER_TEXT, 1, err));
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

/* ---- recorded queries ---- */

/* The number of that name, if it is one, not negative, and not absurd. */
static bool take_number(Json row, Slice name, double *out)
{
    Json value = json_get(row, name);
    if (!json_is(value, JSON_NUMBER) || !(json_number(value) >= 0) ||
        json_number(value) > RECORDED_NUMBER_MAX)
        return false;
    *out = json_number(value);
    return true;
}

static Status not_understood(Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "the server's answer is not understood; is it of another version?");
}

typedef struct Recorded {
    const PropertyPath *key;
    size_t key_count;
    double seconds;
} Recorded;

static bool take_measure(Json row, double executions, WorkMeasure *out)
{
    if (!take_number(row, SLICE("ru"), &out->ru) ||
        !take_number(row, SLICE("itemsRead"), &out->items) ||
        !take_number(row, SLICE("indexKeysRead"), &out->index_keys) ||
        !take_number(row, SLICE("results"), &out->results))
        return false;
    out->is_known = executions > 0;
    double *const numbers[] = {&out->ru, &out->items, &out->index_keys, &out->results};
    for (size_t i = 0; i < ARRAY_COUNT(numbers) && out->is_known; i++)
        *numbers[i] /= executions;
    return true;
}

static bool is_named(const QueryUses *uses, PropertyPath path)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, PROPERTY_PATH_CANONICAL_BYTES_MAX);
    property_path_print(path, &text);
    for (size_t i = 0; i < uses->count; i++) {
        if (uses->list[i].kind == QUERY_USE_EQUAL &&
            slice_equal(uses->list[i].path, buf_view(&text)))
            return true;
    }
    return false;
}

/* The text with a filter by those of the first 'count' paths of the key that it does not name. */
static Slice name_key(Arena *arena, const WorkQuery *query, const Recorded *r, size_t count)
{
    PropertyPath missing[PARTITION_KEY_PATHS_MAX];
    size_t missing_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_named(&query->uses, r->key[i]))
            missing[missing_count++] = r->key[i];
    }
    Slice named;
    return missing_count > 0 && query_with_key(arena, query->text, missing, missing_count, &named)
               ? named
               : query->text;
}

/* Adds a text with the key that its request gave besides. */
static Status add_text(Workload *work, Arena *arena, Slice text, double per_second,
                       size_t key_parts, const Recorded *r, Error *err)
{
    WorkQuery row;
    Workload alone = {.list = &row};
    TRY(add_query(&alone, arena, text, JSON_NONE, PLACEHOLDER_BY_LETTER, per_second, err));
    Slice named = name_key(arena, &row, r, key_parts < r->key_count ? key_parts : r->key_count);
    return add_query(work, arena, named, JSON_NONE, PLACEHOLDER_BY_LETTER, per_second, err);
}

/* A text that is not kept, or that another version of the server understands, is left out. */
static Status add_recorded(Workload *work, Arena *arena, Json row, const Recorded *r, Error *err)
{
    double executions = 0;
    double key_parts = 0;
    WorkMeasure measured = {0};
    if (!take_number(row, SLICE("executions"), &executions) ||
        !take_number(row, SLICE("keyParts"), &key_parts) ||
        !take_measure(row, executions, &measured))
        return not_understood(err);
    if (executions <= 0) /* only later pages were seen */
        return STATUS_OK;
    Json text = json_get(row, SLICE("query"));
    Error ignored;
    if (!json_is(text, JSON_STRING) || work->count == WORKLOAD_QUERIES_MAX ||
        add_text(work, arena, json_string(text), executions / r->seconds,
                 key_parts < PARTITION_KEY_PATHS_MAX ? (size_t)key_parts : PARTITION_KEY_PATHS_MAX,
                 r, &ignored) != STATUS_OK) {
        work->left_out++;
        return STATUS_OK;
    }
    work->executions += executions;
    work->list[work->count - 1].measured = measured;
    return STATUS_OK;
}

Status workload_recorded(Arena *arena, Json answer, const PropertyPath *key, size_t key_count,
                         Workload *out, Error *err)
{
    double now_s = 0;
    double since_s = 0;
    Json rows = json_get(answer, SLICE("rows"));
    if (!json_is(rows, JSON_ARRAY) || !take_number(answer, SLICE("time"), &now_s) ||
        !take_number(answer, SLICE("since"), &since_s))
        return not_understood(err);
    Workload work = {
        .list = ARENA_NEW_ARRAY(arena, WorkQuery, WORKLOAD_QUERIES_MAX),
        .is_recorded = true,
        .seconds = now_s > since_s + 1 ? now_s - since_s : 1,
    };
    Recorded recorded = {key, key_count, work.seconds};
    JsonIter it = json_iter(rows);
    while (json_next(&it))
        TRY(add_recorded(&work, arena, it.value, &recorded, err));
    *out = work;
    return STATUS_OK;
}
