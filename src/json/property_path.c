/* property_path.c - see property_path.h for the grammar. */
#include "json/property_path.h"

static bool parse_quoted(Arena *arena, Slice text, size_t *position, Slice *segment);
static Slice unescape(Arena *arena, Slice raw);
static bool is_escapable(char c);
static bool is_plain(char c);

bool property_path_parse(Arena *arena, Slice text, PropertyPath *out, size_t *position)
{
    *position = 0;
    if (text.len > PROPERTY_PATH_BYTES_MAX) {
        *position = PROPERTY_PATH_BYTES_MAX;
        return false;
    }
    Slice segments[PROPERTY_PATH_DEPTH_MAX];
    size_t count = 0;
    do {
        if (*position >= text.len || text.ptr[*position] != '/' || count == PROPERTY_PATH_DEPTH_MAX)
            return false;
        ++*position;
        if (!property_path_parse_segment(arena, text, position, &segments[count]))
            return false;
        ++count;
    } while (*position < text.len);

    Slice *kept = ARENA_NEW_ARRAY(arena, Slice, count);
    memcpy(kept, segments, count * sizeof(Slice));
    *out = (PropertyPath){.segments = kept, .count = count};
    return true;
}

bool property_path_parse_segment(Arena *arena, Slice text, size_t *position, Slice *segment)
{
    size_t at = *position;
    if (at < text.len && (text.ptr[at] == '"' || text.ptr[at] == '\''))
        return parse_quoted(arena, text, position, segment);
    while (at < text.len && is_plain(text.ptr[at]))
        ++at;
    *segment = slice_make(text.ptr + *position, at - *position);
    *position = at;
    return segment->len > 0;
}

bool property_path_equal(PropertyPath a, PropertyPath b)
{
    if (a.count != b.count)
        return false;
    for (size_t i = 0; i < a.count; ++i) {
        if (!slice_equal(a.segments[i], b.segments[i]))
            return false;
    }
    return true;
}

void property_path_print_segment(Slice segment, Buf *out)
{
    bool plain = segment.len > 0;
    for (size_t i = 0; i < segment.len && plain; ++i)
        plain = is_plain(segment.ptr[i]);
    if (plain) {
        buf_slice(out, segment);
        return;
    }
    buf_byte(out, '"');
    for (size_t i = 0; i < segment.len; ++i) {
        if (segment.ptr[i] == '"' || segment.ptr[i] == '\\')
            buf_byte(out, '\\');
        buf_byte(out, (uint8_t)segment.ptr[i]);
    }
    buf_byte(out, '"');
}

void property_path_print(PropertyPath path, Buf *out)
{
    for (size_t i = 0; i < path.count; ++i) {
        buf_byte(out, '/');
        property_path_print_segment(path.segments[i], out);
    }
}

Json property_path_get(PropertyPath path, Json document)
{
    Json value = document;
    for (size_t i = 0; i < path.count; ++i)
        value = json_get(value, path.segments[i]);
    return value;
}

/* Without escapes the segment is a part of the text; only one with escapes needs a copy. */
static bool parse_quoted(Arena *arena, Slice text, size_t *position, Slice *segment)
{
    char quote = text.ptr[*position];
    size_t start = ++*position;
    bool escapes = false;
    while (*position < text.len && text.ptr[*position] != quote) {
        if (text.ptr[*position] == '\\') {
            escapes = true;
            ++*position;
            if (*position == text.len || !is_escapable(text.ptr[*position]))
                return false;
        }
        ++*position;
    }
    if (*position == text.len || *position == start)
        return false;
    *segment = slice_make(text.ptr + start, *position - start);
    if (escapes)
        *segment = unescape(arena, *segment);
    ++*position;
    return true;
}

static Slice unescape(Arena *arena, Slice raw)
{
    char *out = arena_alloc(arena, raw.len);
    size_t len = 0;
    for (size_t i = 0; i < raw.len; ++i) {
        i += raw.ptr[i] == '\\';
        out[len++] = raw.ptr[i];
    }
    return slice_make(out, len);
}

static bool is_escapable(char c)
{
    return c == '"' || c == '\'' || c == '\\' || c == '/';
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (c & 0x80) != 0;
}
