/* field_path.c - see field_path.h. */
#include "transfer/field_path.h"

#include "json/property_path.h"

typedef struct Parser {
    Arena *arena;
    Slice text;
    size_t at;
    FieldStep *steps;
    size_t count;
} Parser;

static bool add_step(Parser *parser, FieldStep step)
{
    if (parser->count == FIELD_PATH_DEPTH_MAX)
        return false;
    parser->steps[parser->count++] = step;
    return true;
}

/* A name up to an unescaped '.' or '['. It is not empty. */
static bool parse_name(Parser *parser)
{
    char *name = arena_alloc(parser->arena, parser->text.len);
    size_t len = 0;
    while (parser->at < parser->text.len) {
        char c = parser->text.ptr[parser->at];
        if (c == '.' || c == '[')
            break;
        if (c == '\\' && ++parser->at == parser->text.len)
            return false;
        name[len++] = parser->text.ptr[parser->at++];
    }
    return len > 0 && add_step(parser, (FieldStep){.name = slice_make(name, len)});
}

/* "[12]", at its bracket. */
static bool parse_index(Parser *parser)
{
    Slice rest = slice_from(parser->text, parser->at + 1);
    size_t end = slice_find(rest, ']');
    uint64_t index = 0;
    if (end == rest.len || end == 0 || !slice_to_u64(slice_first(rest, end), &index) ||
        index > FIELD_INDEX_MAX)
        return false;
    parser->at += end + 2;
    return add_step(parser, (FieldStep){.index = (uint32_t)index, .is_index = true});
}

static bool parse_slashes(Parser *parser)
{
    PropertyPath path;
    size_t position = 0;
    if (!property_path_parse(parser->arena, parser->text, &path, &position))
        return false;
    for (size_t i = 0; i < path.count; i++) {
        if (!add_step(parser, (FieldStep){.name = path.segments[i]}))
            return false;
    }
    return true;
}

bool field_path_parse(Arena *arena, Slice text, FieldPath *out)
{
    Parser parser = {.arena = arena, .text = text};
    parser.steps = ARENA_NEW_ARRAY(arena, FieldStep, FIELD_PATH_DEPTH_MAX);
    if (slice_starts_with(text, SLICE("/"))) {
        if (!parse_slashes(&parser))
            return false;
    } else {
        if (!parse_name(&parser))
            return false;
        while (parser.at < text.len) {
            bool is_index = text.ptr[parser.at] == '[';
            parser.at += is_index ? 0 : 1;
            if (!(is_index ? parse_index(&parser) : parse_name(&parser)))
                return false;
            /* After "[0]" comes '.', '[' or the end. */
            if (is_index && parser.at < text.len && text.ptr[parser.at] != '.' &&
                text.ptr[parser.at] != '[')
                return false;
        }
    }
    if (!json_utf8_valid(text))
        return false;
    *out = (FieldPath){.steps = parser.steps, .count = parser.count};
    return true;
}

Json field_path_get(const FieldPath *path, Json document)
{
    for (size_t i = 0; i < path->count && document.at != NULL; i++) {
        const FieldStep *step = &path->steps[i];
        document = step->is_index ? json_at(document, step->index) : json_get(document, step->name);
    }
    return document;
}

void field_path_print_step(const FieldStep *step, Buf *out)
{
    if (step->is_index) {
        buf_format(out, "[%u]", step->index);
        return;
    }
    bool is_first = out->len == 0;
    if (!is_first)
        buf_byte(out, '.');
    for (size_t i = 0; i < step->name.len; i++) {
        char c = step->name.ptr[i];
        bool is_special = c == '.' || c == '[' || c == '\\' || (is_first && i == 0 && c == '/');
        if (is_special)
            buf_byte(out, '\\');
        buf_byte(out, (uint8_t)c);
    }
}

static Status put(JsonBuilder *b, const FieldStep *steps, size_t count, Json document, Json value,
                  Error *err)
{
    if (count == 0) {
        json_add(b, value);
        return STATUS_OK;
    }
    if (steps[0].is_index || (document.at != NULL && !json_is(document, JSON_OBJECT)))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "cannot set a property of something that is not an object, at '%.*s'",
                         SLICE_CUT(steps[0].name, 100));
    bool is_done = false;
    json_begin_object(b);
    JsonIter it = json_iter(document);
    while (json_next(&it)) {
        json_key(b, it.name);
        if (slice_equal(it.name, steps[0].name)) {
            TRY(put(b, steps + 1, count - 1, it.value, value, err));
            is_done = true;
        } else {
            json_add(b, it.value);
        }
    }
    if (!is_done) {
        json_key(b, steps[0].name);
        TRY(put(b, steps + 1, count - 1, JSON_NONE, value, err));
    }
    json_end(b);
    return STATUS_OK;
}

Status field_path_put(const FieldPath *path, Json document, Json value, Arena *arena, Json *out,
                      Error *err)
{
    JsonBuilder b;
    json_build(&b, arena);
    TRY(put(&b, path->steps, path->count, document, value, err));
    Json built = json_built(&b);
    if (json_is(built, JSON_UNDEFINED) || json_depth(built) > JSON_DEPTH_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "the item is nested too deeply");
    *out = built;
    return STATUS_OK;
}
