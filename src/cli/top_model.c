/* top_model.c - see top_model.h. */
#include "cli/top_model.h"

#include <math.h>
#include <stdlib.h>

/* Larger than any real count, and still fits into a column. */
#define NUMBER_MAX 1e15

enum { TEXT_BYTES_MAX = 4096 };

static Status not_understood(const char *what, Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "the server's answer is not understood: %s; is it of another version?", what);
}

static Status get_number(Json object, const char *name, double *out, Error *err)
{
    Json value = json_get(object, slice_from_cstr(name));
    if (!json_is(value, JSON_NUMBER) || !(json_number(value) >= 0) ||
        json_number(value) > NUMBER_MAX)
        return not_understood(name, err);
    *out = json_number(value);
    return STATUS_OK;
}

static Status get_text(Json object, const char *name, Slice *out, Error *err)
{
    Json value = json_get(object, slice_from_cstr(name));
    if (!json_is(value, JSON_STRING) || json_string(value).len > TEXT_BYTES_MAX)
        return not_understood(name, err);
    *out = json_string(value);
    return STATUS_OK;
}

static Status get_bool(Json object, const char *name, bool *out, Error *err)
{
    Json value = json_get(object, slice_from_cstr(name));
    if (!json_is(value, JSON_BOOL))
        return not_understood(name, err);
    *out = json_bool(value);
    return STATUS_OK;
}

/* An array of 'min' to 'max' elements. */
static Status get_array(Json object, const char *name, size_t min, size_t max, Json *out,
                        Error *err)
{
    *out = json_get(object, slice_from_cstr(name));
    if (!json_is(*out, JSON_ARRAY) || json_count(*out) < min || json_count(*out) > max)
        return not_understood(name, err);
    return STATUS_OK;
}

static Status parse_object(Arena *arena, Slice text, const char *what, Json *out, Error *err)
{
    Error ignored; /* the parser's message would not help the user */
    if (json_parse(arena, text, out, &ignored) != STATUS_OK || !json_is(*out, JSON_OBJECT))
        return not_understood(what, err);
    return STATUS_OK;
}

static Status parse_range(Json json, TopRange *range, Error *err)
{
    Json ru = json_get(json, SLICE("ru"));
    Json requests = json_get(json, SLICE("requests"));
    Json throttled = json_get(json, SLICE("throttled"));
    TRY(get_text(json, "id", &range->id, err));
    TRY(get_text(json, "min", &range->min, err));
    TRY(get_number(json, "items", &range->items, err));
    TRY(get_number(json, "bytes", &range->bytes, err));
    TRY(get_number(json, "normalizedConsumption", &range->peak_percent, err));
    if (json_is(json_get(json, SLICE("space")), JSON_NUMBER))
        TRY(get_number(json, "space", &range->space, err));
    TRY(get_number(ru, "allotted", &range->ru_allotted, err));
    TRY(get_number(ru, "lastSecond", &range->ru_second, err));
    TRY(get_number(ru, "lastMinute", &range->ru_minute, err));
    TRY(get_number(requests, "lastMinute", &range->requests_minute, err));
    return get_number(throttled, "lastMinute", &range->throttled_minute, err);
}

/* They are null until they are counted. */
static Status parse_logical(Json totals, TopModel *model, Error *err)
{
    model->logical = -1;
    if (!json_is(json_get(totals, SLICE("logicalPartitions")), JSON_NUMBER))
        return STATUS_OK;
    bool is_exact = false;
    TRY(get_number(totals, "logicalPartitions", &model->logical, err));
    TRY(get_bool(totals, "logicalPartitionsExact", &is_exact, err));
    model->is_logical_estimate = !is_exact;
    return STATUS_OK;
}

/* A server alone has no such list. */
static Status parse_missing(Json layout, TopModel *model, Error *err)
{
    Json missing;
    if (!json_is(json_get(layout, SLICE("missingRanges")), JSON_ARRAY))
        return STATUS_OK;
    TRY(get_array(layout, "missingRanges", 0, model->range_count, &missing, err));
    for (JsonIter it = json_iter(missing); json_next(&it);) {
        if (!json_is(it.value, JSON_STRING))
            return not_understood("missingRanges", err);
        for (size_t i = 0; i < model->range_count; i++) {
            TopRange *range = &model->ranges[i];
            if (range->is_missing || !slice_equal(range->id, json_string(it.value)))
                continue;
            range->is_missing = true;
            model->missing_count++;
        }
    }
    return STATUS_OK;
}

static Status parse_layout(Arena *arena, Slice text, TopModel *model, Error *err)
{
    Json layout;
    TRY(parse_object(arena, text, "layout", &layout, err));
    Json throughput = json_get(layout, SLICE("throughput"));
    double time_s = 0;
    TRY(get_text(layout, "database", &model->database, err));
    TRY(get_text(layout, "container", &model->container, err));
    TRY(get_number(layout, "time", &time_s, err));
    model->time_s = (int64_t)time_s;
    TRY(get_text(throughput, "mode", &model->mode, err));
    TRY(get_number(throughput, "ru", &model->ru, err));
    TRY(get_bool(throughput, "isShared", &model->is_shared, err));
    TRY(parse_logical(json_get(layout, SLICE("totals")), model, err));
    Json ranges;
    TRY(get_array(layout, "ranges", 1, TOP_MODEL_RANGES_MAX, &ranges, err));
    model->ranges = ARENA_NEW_ARRAY(arena, TopRange, json_count(ranges));
    JsonIter it = json_iter(ranges);
    while (json_next(&it))
        TRY(parse_range(it.value, &model->ranges[model->range_count++], err));
    return parse_missing(layout, model, err);
}

static Status parse_cells(Arena *arena, Json json, TopRange *range, size_t count, Error *err)
{
    Json ru;
    Json throttled;
    TRY(get_array(json, "ru", count, count, &ru, err));
    TRY(get_array(json, "throttled", count, count, &throttled, err));
    TopCell *cells = arena_zalloc(arena, count * sizeof(TopCell));
    JsonIter a = json_iter(ru);
    JsonIter b = json_iter(throttled);
    for (size_t i = 0; i < count && json_next(&a) && json_next(&b); i++) {
        if (!json_is(a.value, JSON_NUMBER) || !json_is(b.value, JSON_NUMBER))
            return not_understood("history.ranges", err);
        cells[i] = (TopCell){json_number(a.value), json_number(b.value)};
        if (!(cells[i].ru >= 0) || !(cells[i].throttled >= 0))
            return not_understood("history.ranges", err);
    }
    range->cells = cells;
    return STATUS_OK;
}

/* A range that only one of the two answers has was made or split in between: it has no history. */
static Status parse_history(Arena *arena, Slice text, TopModel *model, Error *err)
{
    Json history;
    TRY(parse_object(arena, text, "history", &history, err));
    double from = 0;
    double to = 0;
    TRY(get_number(history, "from", &from, err));
    TRY(get_number(history, "to", &to, err));
    if (!(to >= from) || to - from > TOP_MODEL_COLUMNS_MAX)
        return not_understood("history.from", err);
    model->column_count = (size_t)(to - from);
    Json ranges;
    TRY(get_array(history, "ranges", 0, TOP_MODEL_RANGES_MAX, &ranges, err));
    /* The two lists are nearly always the same, so each range is found at once. */
    size_t at = 0;
    JsonIter it = json_iter(ranges);
    while (json_next(&it)) {
        Slice id;
        TRY(get_text(it.value, "id", &id, err));
        size_t tried = 0;
        for (; tried < model->range_count && !slice_equal(model->ranges[at].id, id); tried++)
            at = (at + 1) % model->range_count;
        if (tried < model->range_count)
            TRY(parse_cells(arena, it.value, &model->ranges[at], model->column_count, err));
    }
    const TopCell *none = arena_zalloc(arena, model->column_count * sizeof(TopCell));
    for (size_t i = 0; i < model->range_count; i++) {
        if (model->ranges[i].cells == NULL)
            model->ranges[i].cells = none;
    }
    return STATUS_OK;
}

static Status parse_keys(Arena *arena, Slice text, TopKeys *out, Error *err)
{
    Json top;
    TRY(parse_object(arena, text, "top", &top, err));
    Json rows;
    TRY(get_array(top, "rows", 0, TOP_MODEL_KEYS_MAX, &rows, err));
    out->keys = ARENA_NEW_ARRAY(arena, TopModelKey, json_count(rows) + 1);
    JsonIter it = json_iter(rows);
    while (json_next(&it)) {
        TopModelKey *key = &out->keys[out->count++];
        TRY(get_text(it.value, "key", &key->text, err));
        TRY(get_text(it.value, "range", &key->range, err));
        TRY(get_number(it.value, "amount", &key->amount, err));
        TRY(get_number(it.value, "share", &key->share, err));
    }
    return STATUS_OK;
}

/* "1, 2" */
static Status get_ids(Arena *arena, Json object, const char *name, Slice *out, Error *err)
{
    Json list;
    TRY(get_array(object, name, 0, TOP_MODEL_RANGES_MAX, &list, err));
    AUTO(buf_done) Buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    for (JsonIter it = json_iter(list); json_next(&it);) {
        if (!json_is(it.value, JSON_STRING))
            return not_understood(name, err);
        buf_slice(&text, text.len > 0 ? SLICE(", ") : SLICE_EMPTY);
        buf_slice(&text, json_string(it.value));
    }
    *out = arena_copy(arena, buf_view(&text));
    return STATUS_OK;
}

static Status parse_move(Arena *arena, Json json, TopMove *move, Error *err)
{
    TRY(get_text(json, "what", &move->what, err));
    TRY(get_text(json, "reason", &move->reason, err));
    TRY(get_text(json, "stage", &move->stage, err));
    TRY(get_text(json, "message", &move->message, err));
    TRY(get_ids(arena, json, "sources", &move->sources, err));
    TRY(get_ids(arena, json, "targets", &move->targets, err));
    TRY(get_number(json, "begun", &move->begun_s, err));
    TRY(get_number(json, "ended", &move->ended_s, err));
    TRY(get_number(json, "bytesTotal", &move->bytes_total, err));
    TRY(get_number(json, "percent", &move->percent, err));
    return get_number(json, "fenceMicroseconds", &move->fence_us, err);
}

/* The moves of the container that is shown. */
static Status parse_events(Arena *arena, Slice text, TopModel *model, Error *err)
{
    Json events;
    TRY(parse_object(arena, text, "events", &events, err));
    Json moves;
    TRY(get_array(events, "moves", 0, TOP_MODEL_MOVES_MAX, &moves, err));
    model->moves = ARENA_NEW_ARRAY(arena, TopMove, json_count(moves) + 1);
    for (JsonIter it = json_iter(moves); json_next(&it);) {
        Slice database;
        Slice container;
        TRY(get_text(it.value, "database", &database, err));
        TRY(get_text(it.value, "container", &container, err));
        if (slice_equal(database, model->database) && slice_equal(container, model->container))
            TRY(parse_move(arena, it.value, &model->moves[model->move_count++], err));
    }
    return STATUS_OK;
}

/* ---- the cluster ---- */

static Status parse_node(Json json, TopNode *node, Error *err)
{
    TRY(get_text(json, "name", &node->name, err));
    TRY(get_text(json, "state", &node->state, err));
    TRY(get_number(json, "owned", &node->owned, err));
    TRY(get_number(json, "followed", &node->followed, err));
    TRY(get_number(json, "lag", &node->lag, err));
    return get_number(json, "renewalAgeMs", &node->renewed_ms, err);
}

typedef struct SpaceOwner {
    double space;
    Slice node;
} SpaceOwner;

static int compare_spaces(const void *left, const void *right)
{
    double a = ((const SpaceOwner *)left)->space;
    double b = ((const SpaceOwner *)right)->space;
    return (a > b) - (a < b);
}

/* The server lists a bounded number of spaces: the owners of others are not known. */
static Status parse_owners(Arena *arena, Json cluster, TopModel *model, Error *err)
{
    Json spaces;
    TRY(get_array(cluster, "spaces", 0, TOP_MODEL_RANGES_MAX, &spaces, err));
    SpaceOwner *owners = ARENA_NEW_ARRAY(arena, SpaceOwner, json_count(spaces) + 1);
    size_t count = 0;
    for (JsonIter it = json_iter(spaces); json_next(&it); count++) {
        TRY(get_number(it.value, "id", &owners[count].space, err));
        TRY(get_text(it.value, "owner", &owners[count].node, err));
    }
    qsort(owners, count, sizeof(SpaceOwner), compare_spaces);
    for (size_t i = 0; i < model->range_count; i++) {
        SpaceOwner wanted = {.space = model->ranges[i].space};
        const SpaceOwner *found =
            bsearch(&wanted, owners, count, sizeof(SpaceOwner), compare_spaces);
        if (found != NULL)
            model->ranges[i].owner = found->node;
    }
    return STATUS_OK;
}

/* A server of an older version says nothing of them, or not whose they are. */
static void count_moves(Json cluster, TopModel *model)
{
    for (JsonIter it = json_iter(json_get(cluster, SLICE("moves"))); json_next(&it);) {
        Json from = json_get(it.value, SLICE("from"));
        for (size_t i = 0; json_is(from, JSON_STRING) && i < model->node_count; i++)
            model->nodes[i].moves += slice_equal(model->nodes[i].name, json_string(from));
    }
}

static Status parse_cluster(Arena *arena, Slice text, TopModel *model, Error *err)
{
    if (text.len == 0)
        return STATUS_OK;
    Json cluster;
    TRY(parse_object(arena, text, "cluster", &cluster, err));
    TRY(get_text(cluster, "node", &model->node, err));
    TRY(get_bool(cluster, "leaseHolds", &model->has_lease, err));
    Json nodes;
    TRY(get_array(cluster, "nodes", 0, TOP_MODEL_NODES_MAX, &nodes, err));
    model->nodes = ARENA_NEW_ARRAY(arena, TopNode, json_count(nodes) + 1);
    for (JsonIter it = json_iter(nodes); json_next(&it);)
        TRY(parse_node(it.value, &model->nodes[model->node_count++], err));
    count_moves(cluster, model);
    return parse_owners(arena, cluster, model, err);
}

Status top_model_parse(Arena *arena, const TopAnswers *answers, TopModel *out, Error *err)
{
    TopModel model = {0};
    TRY(parse_layout(arena, answers->layout, &model, err));
    TRY(parse_history(arena, answers->history, &model, err));
    TRY(parse_keys(arena, answers->by_ru, &model.by_ru, err));
    TRY(parse_keys(arena, answers->by_throttled, &model.by_throttled, err));
    TRY(parse_events(arena, answers->events, &model, err));
    TRY(parse_cluster(arena, answers->cluster, &model, err));
    *out = model;
    return STATUS_OK;
}

Status top_containers_parse(Arena *arena, Slice answer, TopContainer **out, size_t *count,
                            Error *err)
{
    Json list;
    TRY(parse_object(arena, answer, "containers", &list, err));
    Json rows;
    TRY(get_array(list, "containers", 0, SIZE_MAX, &rows, err));
    TopContainer *containers = ARENA_NEW_ARRAY(arena, TopContainer, json_count(rows) + 1);
    size_t found = 0;
    JsonIter it = json_iter(rows);
    while (json_next(&it)) {
        TopContainer *container = &containers[found++];
        TRY(get_text(it.value, "database", &container->database, err));
        TRY(get_text(it.value, "container", &container->container, err));
        TRY(get_number(json_get(it.value, SLICE("ru")), "lastMinute", &container->ru_minute, err));
    }
    *out = containers;
    *count = found;
    return STATUS_OK;
}
