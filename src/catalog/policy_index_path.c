/* policy_index_path.c - see policy_index_path.h for the grammar. */
#include "catalog/policy_index_path.h"

/* Fields of one tuple; each becomes a part of every index entry. */
enum { TUPLE_FIELDS_MAX = 16 };

typedef struct PathParser {
    Arena *arena;
    Slice text;
    size_t position;
    size_t steps;
    size_t arrays; /* steps that are "[]" */
    Buf canonical;
} PathParser;

static bool parse_steps(PathParser *parser, IndexPath *path);
static bool parse_tuple(PathParser *parser);
static bool parse_field(PathParser *parser, Slice *field);
static bool take(PathParser *parser, Slice token);
static void skip_spaces(PathParser *parser);

bool index_path_parse(Arena *arena, Slice text, unsigned allowed, IndexPath *out, size_t *position)
{
    *position = 0;
    if (text.len > PATH_BYTES_MAX) {
        *position = PATH_BYTES_MAX;
        return false;
    }
    if (slice_equal(text, SLICE("/")) || slice_equal(text, SLICE("/*"))) {
        *out = (IndexPath){.end = INDEX_PATH_SUBTREE, .is_root = true, .canonical = SLICE("/*")};
        *position = text.len;
        return (allowed & INDEX_PATH_SUBTREE) != 0;
    }
    PathParser parser = {.arena = arena, .text = text};
    buf_init(&parser.canonical, PATH_CANONICAL_BYTES_MAX);
    IndexPath path = {.is_root = false};
    bool ok = parse_steps(&parser, &path) && (path.end & allowed) != 0;
    path.canonical = arena_copy(arena, buf_view(&parser.canonical));
    buf_done(&parser.canonical);
    *position = parser.position;
    if (ok)
        *out = path;
    return ok;
}

/* Reads to the end of the text, whatever the ending is. */
static bool parse_steps(PathParser *parser, IndexPath *path)
{
    while (parser->position < parser->text.len) {
        if (!take(parser, SLICE("/")))
            return false;
        buf_byte(&parser->canonical, '/');
        bool has_name = parser->steps > 0;
        if (has_name && (take(parser, SLICE("?")) || take(parser, SLICE("*")))) {
            char last = parser->text.ptr[parser->position - 1];
            buf_byte(&parser->canonical, (uint8_t)last);
            path->end = last == '?' ? INDEX_PATH_SCALAR : INDEX_PATH_SUBTREE;
            path->is_name = parser->steps == 1;
            return parser->position == parser->text.len;
        }
        if (parser->steps == PATH_DEPTH_MAX)
            return false;
        if (has_name && take(parser, SLICE("{"))) {
            path->end = INDEX_PATH_TUPLE;
            return parse_tuple(parser);
        }
        if (has_name && take(parser, SLICE("[]"))) {
            buf_slice(&parser->canonical, SLICE("[]"));
            ++parser->arrays;
        } else {
            Slice segment;
            if (!path_parse_segment(parser->arena, parser->text, &parser->position, &segment))
                return false;
            path_print_segment(segment, &parser->canonical);
            if (!has_name)
                path->name = segment;
        }
        ++parser->steps;
    }
    path->end = INDEX_PATH_BARE;
    path->is_name = parser->steps == 1;
    return parser->steps > 0;
}

/* What follows "{". The only array of the path must be the step before it. */
static bool parse_tuple(PathParser *parser)
{
    Slice before = slice_first(parser->text, parser->position);
    if (parser->arrays != 1 || !slice_ends_with(before, SLICE("/[]/{"))) {
        --parser->position;
        return false;
    }
    Slice fields[TUPLE_FIELDS_MAX];
    size_t count = 0;
    buf_byte(&parser->canonical, '{');
    do {
        if (count > 0)
            buf_byte(&parser->canonical, ',');
        if (count == TUPLE_FIELDS_MAX || !parse_field(parser, &fields[count]))
            return false;
        for (size_t i = 0; i < count; ++i) {
            if (slice_equal(fields[i], fields[count]))
                return false;
        }
        ++count;
    } while (take(parser, SLICE(",")));
    buf_slice(&parser->canonical, SLICE("}/?"));
    return take(parser, SLICE("}/?")) && parser->position == parser->text.len;
}

static bool parse_field(PathParser *parser, Slice *field)
{
    AUTO(buf_done) Buf one;
    buf_init(&one, PATH_CANONICAL_BYTES_MAX);
    skip_spaces(parser);
    size_t depth = parser->steps;
    do {
        Slice segment;
        if (depth++ >= PATH_DEPTH_MAX ||
            !path_parse_segment(parser->arena, parser->text, &parser->position, &segment))
            return false;
        buf_byte(&one, '/');
        path_print_segment(segment, &one);
    } while (take(parser, SLICE("/")));
    skip_spaces(parser);
    *field = arena_copy(parser->arena, buf_view(&one));
    buf_slice(&parser->canonical, *field);
    return true;
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
