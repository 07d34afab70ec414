/* sample_reader.c - see sample_reader.h. */
#include "advise/sample_reader.h"

void sample_reader_init(SampleReader *reader, Sample *sample)
{
    *reader = (SampleReader){.sample = sample, .line = 1};
    buf_init(&reader->object, SAMPLE_ITEM_BYTES_MAX);
}

void sample_reader_done(SampleReader *reader)
{
    buf_done(&reader->object);
}

static Status unexpected(const SampleReader *reader, char c, const char *expected, Error *err)
{
    if (c >= 0x20 && c < 0x7F)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "line %llu: expected %s, found '%c'",
                         (unsigned long long)reader->line, expected, c);
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "line %llu: expected %s, found byte 0x%02x",
                     (unsigned long long)reader->line, expected, (unsigned)(uint8_t)c);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* A byte of a byte order mark, which may come in pieces. */
static bool is_mark(char c)
{
    return memchr("\xEF\xBB\xBF", c, 3) != NULL;
}

static void begin_object(SampleReader *reader)
{
    buf_reset(&reader->object);
    buf_byte(&reader->object, '{');
    reader->state = SAMPLE_READER_OBJECT;
    reader->depth = 1;
}

static Status end_object(SampleReader *reader, Error *err)
{
    if (buf_full(&reader->object))
        return error_set(
            err, STATUS_BAD_REQUEST, SUB_NONE,
            "line %llu: an item has more than %zu bytes, more than any container takes",
            (unsigned long long)reader->line, SAMPLE_ITEM_BYTES_MAX);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_LARGE_BYTES);
    Json document;
    if (json_parse(&arena, buf_view(&reader->object), &document, err) != STATUS_OK ||
        sample_add(reader->sample, document, err) != STATUS_OK)
        return error_context(err, "line %llu", (unsigned long long)reader->line);
    reader->state = reader->is_array ? SAMPLE_READER_COMMA : SAMPLE_READER_BETWEEN;
    return STATUS_OK;
}

static Status read_object(SampleReader *reader, char c, Error *err)
{
    buf_byte(&reader->object, (uint8_t)c);
    if (reader->is_in_string) {
        bool is_end = c == '"' && !reader->is_escaped;
        reader->is_escaped = c == '\\' && !reader->is_escaped;
        reader->is_in_string = !is_end;
    } else if (c == '"') {
        reader->is_in_string = true;
    } else if (c == '{' || c == '[') {
        if (++reader->depth > JSON_DEPTH_MAX)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "line %llu: an item is nested more than %d levels deep",
                             (unsigned long long)reader->line, JSON_DEPTH_MAX);
    } else if ((c == '}' || c == ']') && --reader->depth == 0) {
        return end_object(reader, err);
    }
    if (buf_full(&reader->object))
        return end_object(reader, err); /* fails */
    return STATUS_OK;
}

static Status read_char(SampleReader *reader, char c, Error *err)
{
    if (reader->state == SAMPLE_READER_OBJECT)
        return read_object(reader, c, err);
    if (is_space(c))
        return STATUS_OK;
    switch (reader->state) {
    case SAMPLE_READER_START:
        if (is_mark(c))
            return STATUS_OK;
        if (c == '[') {
            reader->is_array = true;
            reader->state = SAMPLE_READER_ELEMENT;
            return STATUS_OK;
        }
        if (c != '{')
            return unexpected(reader, c, "an object or an array of objects", err);
        begin_object(reader);
        return STATUS_OK;
    case SAMPLE_READER_BETWEEN:
        if (c != '{')
            return unexpected(reader, c, "an object on each line", err);
        begin_object(reader);
        return STATUS_OK;
    case SAMPLE_READER_ELEMENT:
        if (c == ']' && reader->sample->seen == 0) {
            reader->state = SAMPLE_READER_END;
            return STATUS_OK;
        }
        if (c != '{')
            return unexpected(reader, c, "an object", err);
        begin_object(reader);
        return STATUS_OK;
    case SAMPLE_READER_COMMA:
        if (c != ',' && c != ']')
            return unexpected(reader, c, "',' or ']' after an element", err);
        reader->state = c == ',' ? SAMPLE_READER_ELEMENT : SAMPLE_READER_END;
        return STATUS_OK;
    case SAMPLE_READER_END:
        return unexpected(reader, c, "nothing after the array", err);
    case SAMPLE_READER_OBJECT:
        break;
    }
    return STATUS_OK;
}

Status sample_reader_feed(SampleReader *reader, Slice text, Error *err)
{
    for (size_t i = 0; i < text.len; i++) {
        TRY(read_char(reader, text.ptr[i], err));
        reader->line += text.ptr[i] == '\n';
    }
    return STATUS_OK;
}

Status sample_reader_end(SampleReader *reader, Error *err)
{
    if (reader->state == SAMPLE_READER_OBJECT)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "line %llu: the text ends in the middle of an item",
                         (unsigned long long)reader->line);
    if (reader->state == SAMPLE_READER_ELEMENT || reader->state == SAMPLE_READER_COMMA)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "line %llu: the array has no end",
                         (unsigned long long)reader->line);
    return STATUS_OK;
}
