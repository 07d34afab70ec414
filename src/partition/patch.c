/* patch.c - checks the body of a patch: see patch.h. Applying it is in patch_apply.c.
 *
 * Texts that begin with "Invalid patch request" are the service's, followed by what is wrong.
 */
#include "partition/patch_int.h"

#define SYNTAX "Invalid patch request: check syntax of patch specification"

/* "id" identifies the item within its partition; the others are the server's to write. */
static const Slice FIXED_NAMES[] = {
    SLICE_INIT("id"),    SLICE_INIT("_rid"), SLICE_INIT("_self"),
    SLICE_INIT("_etag"), SLICE_INIT("_ts"),  SLICE_INIT("_attachments"),
};

static const struct {
    Slice name;
    PatchKind kind;
    bool has_value;
} KINDS[] = {
    {SLICE_INIT("add"), PATCH_ADD, true},         {SLICE_INIT("set"), PATCH_SET, true},
    {SLICE_INIT("replace"), PATCH_REPLACE, true}, {SLICE_INIT("remove"), PATCH_REMOVE, false},
    {SLICE_INIT("incr"), PATCH_INCR, true},       {SLICE_INIT("move"), PATCH_MOVE, false},
};

static Status parse_condition(Json body, Slice *out, Error *err);
static Status parse_operation(Arena *arena, Json source, PatchOperation *out, Error *err);
static Status check_free(const PatchPointer *pointer, const PatchRules *rules, Error *err);

Status patch_parse(Arena *arena, Json body, const PatchRules *rules, Patch **out, Error *err)
{
    ASSERT(rules->bytes_max > 0);
    Json operations = json_is(body, JSON_OBJECT) ? json_get(body, SLICE("operations")) : body;
    if (!json_is(operations, JSON_ARRAY))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         SYNTAX ": Expected an array of operations, alone or as 'operations'.");
    if (json_count(operations) == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, SYNTAX ": There are no operations.");
    if (json_count(operations) > PATCH_OPERATIONS_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The number of patch operations cannot exceed %d, found %zu.",
                         PATCH_OPERATIONS_MAX, json_count(operations));

    Patch *patch = ARENA_NEW(arena, Patch);
    patch->bytes_max = rules->bytes_max;
    TRY(parse_condition(body, &patch->condition, err));
    JsonIter it = json_iter(operations);
    while (json_next(&it)) {
        PatchOperation *op = &patch->operations[patch->count++];
        if (parse_operation(arena, it.value, op, err) != STATUS_OK)
            return error_context(err, SYNTAX ". Operation(%zu)", patch->count);
        TRY(check_free(&op->path, rules, err));
        if (op->kind == PATCH_MOVE)
            TRY(check_free(&op->from, rules, err));
    }
    *out = patch;
    return STATUS_OK;
}

Slice patch_condition(const Patch *patch)
{
    return patch->condition;
}

size_t patch_operation_count(const Patch *patch)
{
    return patch->count;
}

static Status parse_condition(Json body, Slice *out, Error *err)
{
    Json condition = json_get(body, SLICE("condition"));
    *out = SLICE_EMPTY;
    if (json_is(condition, JSON_STRING))
        *out = json_string(condition);
    else if (!json_is(condition, JSON_UNDEFINED) && !json_is(condition, JSON_NULL))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         SYNTAX ": Expected 'condition' to be a string.");
    return STATUS_OK;
}

static Status parse_segment(Arena *arena, Slice text, Slice *out, Error *err)
{
    *out = text;
    if (slice_find(text, '~') == text.len)
        return STATUS_OK;
    char *plain = arena_alloc(arena, text.len);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++, len++) {
        plain[len] = text.ptr[i];
        if (text.ptr[i] != '~')
            continue;
        i++;
        if (i == text.len || (text.ptr[i] != '0' && text.ptr[i] != '1'))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "Expected '0' or '1' after each '~' in path segment '%.*s'.",
                             SLICE_CUT(text, PATCH_SEGMENT_SHOWN));
        plain[len] = text.ptr[i] == '0' ? '~' : '/';
    }
    *out = slice_make(plain, len);
    return STATUS_OK;
}

static Status parse_pointer(Arena *arena, Slice text, PatchPointer *out, Error *err)
{
    if (text.len == 0 || text.ptr[0] != '/')
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Expected a path that begins with '/', found '%.*s'.",
                         SLICE_CUT(text, PATCH_PATH_SHOWN));
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] == '/';
    /* A longer path cannot lead to anything, and so costs nothing more here. */
    if (count > JSON_DEPTH_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Expected a path of at most %d segments, found %zu.", JSON_DEPTH_MAX,
                         count);

    Slice *segments = ARENA_NEW_ARRAY(arena, Slice, count);
    Slice rest = slice_from(text, 1);
    for (size_t i = 0; i < count; i++)
        TRY(parse_segment(arena, slice_cut(&rest, '/'), &segments[i], err));
    *out = (PatchPointer){.text = text, .path = {segments, count}};
    return STATUS_OK;
}

/* True if one of them is the other or leads to it. */
static bool overlap(PropertyPath a, PropertyPath b)
{
    size_t count = a.count < b.count ? a.count : b.count;
    for (size_t i = 0; i < count; i++) {
        if (!slice_equal(a.segments[i], b.segments[i]))
            return false;
    }
    return true;
}

static Status parse_path(Arena *arena, Json source, Slice name, PatchPointer *out, Error *err)
{
    Json text = json_get(source, name);
    if (!json_is(text, JSON_STRING))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "Expected '%.*s' to be a string.",
                         SLICE_ARG(name));
    return parse_pointer(arena, json_string(text), out, err);
}

static Status parse_value(Json source, PatchKind kind, Json *out, Error *err)
{
    Json value = json_get(source, SLICE("value"));
    if (json_is(value, JSON_UNDEFINED))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'value' is missing.");
    if (kind == PATCH_INCR && !json_is(value, JSON_NUMBER))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Expected 'value' of an increment to be a number.");
    *out = value;
    return STATUS_OK;
}

static Status parse_from(Arena *arena, Json source, PatchOperation *out, Error *err)
{
    TRY(parse_path(arena, source, SLICE("from"), &out->from, err));
    if (out->path.path.count > out->from.path.count && overlap(out->path.path, out->from.path))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'path' cannot be a JSON child of 'from', which is '%.*s'.",
                         SLICE_CUT(out->from.text, PATCH_PATH_SHOWN));
    return STATUS_OK;
}

static Status parse_operation(Arena *arena, Json source, PatchOperation *out, Error *err)
{
    Json op = json_get(source, SLICE("op"));
    if (!json_is(op, JSON_STRING))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Expected an object whose 'op' is a string.");
    size_t row = 0;
    while (row < ARRAY_COUNT(KINDS) && !slice_equal_nocase(KINDS[row].name, json_string(op)))
        row++;
    if (row == ARRAY_COUNT(KINDS))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Expected 'op' to be add, set, replace, remove, incr or move, "
                         "found '%.*s'.",
                         SLICE_CUT(json_string(op), PATCH_SEGMENT_SHOWN));

    out->kind = KINDS[row].kind;
    TRY(parse_path(arena, source, SLICE("path"), &out->path, err));
    if (KINDS[row].has_value)
        TRY(parse_value(source, out->kind, &out->value, err));
    if (out->kind == PATCH_MOVE)
        TRY(parse_from(arena, source, out, err));
    return STATUS_OK;
}

static Status check_free(const PatchPointer *pointer, const PatchRules *rules, Error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(FIXED_NAMES); i++) {
        if (slice_equal(pointer->path.segments[0], FIXED_NAMES[i]))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "Invalid patch request: Cannot patch system property '%.*s'.",
                             SLICE_ARG(FIXED_NAMES[i]));
    }
    for (size_t i = 0; i < rules->key_count; i++) {
        if (overlap(pointer->path, rules->keys[i]))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "Invalid patch request: Cannot patch '%.*s', which would touch the "
                             "partition key.",
                             SLICE_CUT(pointer->text, PATCH_PATH_SHOWN));
    }
    return STATUS_OK;
}
