/* index_path.c - see index_path.h for the grammar. */
#include "index/index_path.h"

typedef struct PathParser {
    Arena *arena;
    Slice text;
    size_t position;
    IndexStep steps[PROPERTY_PATH_DEPTH_MAX];
    size_t step_count;
    size_t arrays; /* steps that are "[]" */
    Buf canonical;
} PathParser;

static bool parse_steps(PathParser *parser, IndexPath *path);
static bool parse_tuple(PathParser *parser, IndexPath *path);
static bool parse_field(PathParser *parser, Slice before, IndexField *field);
static bool parse_name(PathParser *parser, size_t *count, Buf *canonical);
static const IndexStep *copy_steps(const PathParser *parser, size_t count);
static bool take(PathParser *parser, Slice token);
static void skip_spaces(PathParser *parser);

bool index_path_parse(Arena *arena, Slice text, unsigned allowed, IndexPath *out, size_t *position)
{
    *position = 0;
    if (text.len > PROPERTY_PATH_BYTES_MAX) {
        *position = PROPERTY_PATH_BYTES_MAX;
        return false;
    }
    if (slice_equal(text, SLICE("/")) || slice_equal(text, SLICE("/*"))) {
        *out = (IndexPath){.end = INDEX_PATH_SUBTREE, .is_root = true, .canonical = SLICE("/*")};
        *position = text.len;
        return (allowed & INDEX_PATH_SUBTREE) != 0;
    }
    PathParser parser;
    parser.arena = arena;
    parser.text = text;
    parser.position = parser.step_count = parser.arrays = 0;
    buf_init(&parser.canonical, PROPERTY_PATH_CANONICAL_BYTES_MAX);
    IndexPath path = {.is_root = false};
    bool ok = parse_steps(&parser, &path) && (path.end & allowed) != 0;
    *position = parser.position;
    if (ok) {
        path.canonical = arena_copy(arena, buf_view(&parser.canonical));
        path.name = parser.steps[0].name;
        path.steps = copy_steps(&parser, parser.step_count);
        path.step_count = parser.step_count;
        *out = path;
    }
    buf_done(&parser.canonical);
    return ok;
}

/* Reads to the end of the text, whatever the ending is. */
static bool parse_steps(PathParser *parser, IndexPath *path)
{
    while (parser->position < parser->text.len) {
        if (!take(parser, SLICE("/")))
            return false;
        buf_byte(&parser->canonical, '/');
        bool has_name = parser->step_count > 0;
        if (has_name && (take(parser, SLICE("?")) || take(parser, SLICE("*")))) {
            char last = parser->text.ptr[parser->position - 1];
            buf_byte(&parser->canonical, (uint8_t)last);
            path->end = last == '?' ? INDEX_PATH_SCALAR : INDEX_PATH_SUBTREE;
            path->is_name = parser->step_count == 1;
            return parser->position == parser->text.len;
        }
        if (parser->step_count == PROPERTY_PATH_DEPTH_MAX)
            return false;
        if (has_name && take(parser, SLICE("{"))) {
            path->end = INDEX_PATH_TUPLE;
            return parse_tuple(parser, path);
        }
        if (has_name && take(parser, SLICE("[]"))) {
            buf_slice(&parser->canonical, SLICE("[]"));
            parser->steps[parser->step_count++] = (IndexStep){.is_element = true};
            ++parser->arrays;
        } else if (!parse_name(parser, &parser->step_count, &parser->canonical)) {
            return false;
        }
    }
    path->end = INDEX_PATH_BARE;
    path->is_name = parser->step_count == 1;
    return parser->step_count > 0;
}

/* Reads what follows "{". The only array of the path must be the step before it. */
static bool parse_tuple(PathParser *parser, IndexPath *path)
{
    Slice text = slice_first(parser->text, parser->position);
    if (parser->arrays != 1 || !slice_ends_with(text, SLICE("/[]/{"))) {
        --parser->position;
        return false;
    }
    Slice before = buf_view(&parser->canonical);
    before = arena_copy(parser->arena, slice_first(before, before.len - 1));
    IndexField *fields = ARENA_NEW_ARRAY(parser->arena, IndexField, TUPLE_FIELDS_MAX);
    size_t count = 0;
    buf_byte(&parser->canonical, '{');
    do {
        if (count > 0)
            buf_byte(&parser->canonical, ',');
        if (count == TUPLE_FIELDS_MAX || !parse_field(parser, before, &fields[count]))
            return false;
        for (size_t i = 0; i < count; ++i) {
            if (slice_equal(fields[i].canonical, fields[count].canonical))
                return false;
        }
        ++count;
    } while (take(parser, SLICE(",")));
    path->fields = fields;
    path->field_count = count;
    buf_slice(&parser->canonical, SLICE("}/?"));
    return take(parser, SLICE("}/?")) && parser->position == parser->text.len;
}

/* 'before' is the path up to the braces. */
static bool parse_field(PathParser *parser, Slice before, IndexField *field)
{
    AUTO(buf_done) Buf one;
    buf_init(&one, PROPERTY_PATH_CANONICAL_BYTES_MAX);
    buf_slice(&one, before);
    skip_spaces(parser);
    size_t depth = parser->step_count;
    do {
        buf_byte(&one, '/');
        if (depth == PROPERTY_PATH_DEPTH_MAX || !parse_name(parser, &depth, &one))
            return false;
    } while (take(parser, SLICE("/")));
    skip_spaces(parser);
    *field = (IndexField){.steps = copy_steps(parser, depth),
                          .step_count = depth,
                          .canonical = arena_copy(parser->arena, buf_view(&one))};
    buf_slice(&parser->canonical, slice_from(field->canonical, before.len));
    return true;
}

/* One segment, which becomes step '*count'. */
static bool parse_name(PathParser *parser, size_t *count, Buf *canonical)
{
    Slice segment;
    if (!property_path_parse_segment(parser->arena, parser->text, &parser->position, &segment))
        return false;
    property_path_print_segment(segment, canonical);
    parser->steps[(*count)++] = (IndexStep){.name = segment};
    return true;
}

static const IndexStep *copy_steps(const PathParser *parser, size_t count)
{
    return (const IndexStep *)arena_copy(parser->arena,
                                         slice_make(parser->steps, count * sizeof(IndexStep)))
        .ptr;
}

static bool take(PathParser *parser, Slice token)
{
    Slice rest = slice_from(parser->text, parser->position);
    if (!slice_starts_with(rest, token))
        return false;
    parser->position += token.len;
    return true;
}

static void skip_spaces(PathParser *parser)
{
    while (take(parser, SLICE(" ")))
        continue;
}
