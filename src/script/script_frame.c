/* script_frame.c - see script_frame_int.h.
 *
 *     frame = | length u32 | type u8 | fields |     'length' counts type and fields
 *     text  = | length u32 | bytes |
 *
 * Numbers are little-endian and have a fixed size, a flag is one byte, 0 or 1. The fields of a type
 * follow each other in the order of the functions below, and nothing follows the last one.
 */
#include "script/script_frame_int.h"

enum {
    LENGTH_BYTES = 4,
    OPERATION_BYTES_MIN = 38, /* flags, the size of a page, and the lengths of seven texts */
    ANSWER_BYTES_MIN = 19,    /* status, flags, and the lengths of three texts */
};
static_assert(SCRIPT_FRAME_BYTES_MAX <= UINT32_MAX, "a frame's length is stored in a u32");
static_assert(FRAME_COUNT <= UINT8_MAX, "a frame's type is stored in a u8");

/* ---- writing ---- */

static void put_u8(Buf *out, unsigned value)
{
    buf_byte(out, (uint8_t)value);
}

static void put_u32(Buf *out, uint32_t value)
{
    uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                        (uint8_t)(value >> 24)};
    buf_bytes(out, bytes, sizeof(bytes));
}

static void put_u64(Buf *out, uint64_t value)
{
    put_u32(out, (uint32_t)value);
    put_u32(out, (uint32_t)(value >> 32));
}

static void put_text(Buf *out, Slice text)
{
    if (text.len > SCRIPT_FRAME_BYTES_MAX) {
        out->full = true;
        return;
    }
    put_u32(out, (uint32_t)text.len);
    buf_slice(out, text);
}

static void begin(Buf *out, FrameType type)
{
    ASSERT(out->len == 0);
    put_u32(out, 0);
    put_u8(out, type);
}

/* Writes a number where one was left out. */
static void set_u32(Buf *out, size_t at, uint32_t value)
{
    for (size_t i = 0; i < 4; i++)
        out->ptr[at + i] = (char)(uint8_t)(value >> (8 * i));
}

static void end(Buf *out)
{
    if (buf_full(out))
        return;
    if (out->len > SCRIPT_FRAME_BYTES_MAX) {
        out->full = true;
        return;
    }
    set_u32(out, 0, (uint32_t)out->len - LENGTH_BYTES);
}

static void begin_many(Buf *out, FrameType type)
{
    begin(out, type);
    put_u32(out, 0);
}

void frame_end_many(Buf *out, uint32_t count)
{
    if (!buf_full(out))
        set_u32(out, SCRIPT_FRAME_HEAD_BYTES, count);
    end(out);
}

void frame_put_hello(Buf *out, const FrameHello *hello)
{
    begin(out, FRAME_HELLO);
    put_u32(out, hello->version);
    put_text(out, hello->failure);
    end(out);
}

void frame_put_run(Buf *out, const FrameRun *run)
{
    begin(out, FRAME_RUN);
    put_u8(out, run->role);
    put_u8(out, run->wants_log);
    put_u64(out, run->hard_us);
    put_u64(out, run->soft_us);
    put_u64(out, run->assume_us);
    put_text(out, run->id);
    put_text(out, run->body);
    put_text(out, run->arguments);
    put_text(out, run->self_link);
    put_text(out, run->alt_link);
    put_text(out, run->operation);
    put_text(out, run->request_body);
    put_text(out, run->response_body);
    put_text(out, run->quota);
    put_text(out, run->usage);
    end(out);
}

void frame_begin_operations(Buf *out)
{
    begin_many(out, FRAME_OPERATIONS);
}

void frame_add_operation(Buf *out, const ScriptCall *call)
{
    put_u8(out, call->kind);
    put_u8(out, call->is_rid);
    put_u8(out, call->index_action);
    put_u8(out, call->enables_scan);
    put_u8(out, call->wants_item);
    put_u8(out, call->is_assumed);
    put_u32(out, (uint32_t)call->page_size);
    put_text(out, call->name);
    put_text(out, call->body);
    put_text(out, call->query);
    put_text(out, call->parameters);
    put_text(out, call->if_match);
    put_text(out, call->if_none_match);
    put_text(out, call->continuation);
}

void frame_begin_answers(Buf *out)
{
    begin_many(out, FRAME_ANSWERS);
}

bool frame_add_answer(Buf *out, const FrameAnswer *answer)
{
    size_t before = out->len;
    put_u32(out, answer->status_code);
    put_u8(out, answer->is_not_modified);
    put_u8(out, answer->has_failed);
    put_u8(out, answer->is_last);
    put_text(out, answer->resource);
    put_text(out, answer->continuation);
    put_text(out, answer->failure);
    if (!buf_full(out) && out->len <= SCRIPT_FRAME_BYTES_MAX)
        return true;
    out->len = before;
    out->full = false;
    return false;
}

void frame_put_done(Buf *out, const FrameDone *done)
{
    begin(out, FRAME_DONE);
    put_u8(out, done->outcome);
    put_u32(out, done->number);
    put_text(out, done->text);
    put_text(out, done->response_body);
    put_text(out, done->request_body);
    put_text(out, done->log);
    end(out);
}

void frame_put_open(Buf *out, const FrameOpen *open)
{
    begin(out, FRAME_OPEN);
    put_u64(out, open->hard_us);
    put_u32(out, open->count);
    for (size_t i = 0; i < open->count; i++) {
        put_text(out, open->sources[i].id);
        put_text(out, open->sources[i].body);
    }
    end(out);
}

void frame_put_calls(Buf *out, const FrameCalls *calls)
{
    begin(out, FRAME_CALL);
    put_u32(out, calls->count);
    for (size_t i = 0; i < calls->count; i++) {
        put_u32(out, calls->calls[i].which);
        put_text(out, calls->calls[i].arguments);
    }
    end(out);
}

void frame_put_results(Buf *out, const FrameResults *results)
{
    begin(out, FRAME_RESULTS);
    put_u8(out, results->is_timeout);
    put_u32(out, results->count);
    for (size_t i = 0; i < results->count; i++) {
        put_u8(out, results->calls[i].kind);
        put_u32(out, results->calls[i].number);
        put_u32(out, results->cpu_us[i]);
        put_text(out, results->calls[i].text);
    }
    end(out);
}

void frame_put_close(Buf *out)
{
    begin(out, FRAME_CLOSE);
    end(out);
}

void frame_put_repeat(Buf *out)
{
    begin(out, FRAME_REPEAT);
    end(out);
}

/* ---- reading ---- */

/* What is left to read. After the first field that is not well formed all are empty. */
typedef struct Reader {
    Slice rest;
    bool is_bad;
} Reader;

static Slice take(Reader *reader, size_t len)
{
    if (reader->is_bad || len > reader->rest.len) {
        reader->is_bad = true;
        return SLICE_EMPTY;
    }
    Slice taken = slice_first(reader->rest, len);
    reader->rest = slice_from(reader->rest, len);
    return taken;
}

static uint64_t take_number(Reader *reader, size_t bytes)
{
    Slice s = take(reader, bytes);
    uint64_t value = 0;
    for (size_t i = 0; i < s.len; i++)
        value |= (uint64_t)(uint8_t)s.ptr[i] << (8 * i);
    return value;
}

static uint32_t take_u32(Reader *reader)
{
    return (uint32_t)take_number(reader, 4);
}

static uint64_t take_u64(Reader *reader)
{
    return take_number(reader, 8);
}

/* A number below 'count'. */
static unsigned take_enum(Reader *reader, unsigned count)
{
    unsigned value = (unsigned)take_number(reader, 1);
    if (value >= count) {
        reader->is_bad = true;
        return 0;
    }
    return value;
}

static bool take_flag(Reader *reader)
{
    return take_enum(reader, 2) == 1;
}

/* The length of the UTF-8 sequence that begins at 's', which is not empty; 0 if none does. */
static size_t sequence_len(Slice s)
{
    uint8_t head = (uint8_t)s.ptr[0];
    size_t len = head < 0x80   ? 1
                 : head < 0xC2 ? 0
                 : head < 0xE0 ? 2
                 : head < 0xF0 ? 3
                 : head < 0xF5 ? 4
                               : 0;
    if (len == 0 || len > s.len)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if (((uint8_t)s.ptr[i] & 0xC0) != 0x80)
            return 0;
    }
    uint8_t second = len > 1 ? (uint8_t)s.ptr[1] : 0;
    bool is_refused = (head == 0xE0 && second < 0xA0) || (head == 0xED && second >= 0xA0) ||
                      (head == 0xF0 && second < 0x90) || (head == 0xF4 && second >= 0x90);
    return is_refused ? 0 : len;
}

static bool is_utf8(Slice s)
{
    size_t at = 0;
    while (at < s.len) {
        /* Nearly all text is ASCII. */
        uint64_t eight;
        while (s.len - at >= sizeof(eight)) {
            memcpy(&eight, s.ptr + at, sizeof(eight));
            if ((eight & 0x8080808080808080) != 0)
                break;
            at += sizeof(eight);
        }
        if (at == s.len)
            break;
        size_t len = sequence_len(slice_from(s, at));
        if (len == 0)
            return false;
        at += len;
    }
    return true;
}

static Slice take_text(Reader *reader)
{
    Slice text = take(reader, take_u32(reader));
    if (!is_utf8(text)) {
        reader->is_bad = true;
        return SLICE_EMPTY;
    }
    return text;
}

static bool is_complete(const Reader *reader)
{
    return !reader->is_bad && reader->rest.len == 0;
}

/* How many elements follow, of which each has 'size_min' bytes or more. */
static uint32_t take_count(Reader *reader, uint32_t max, size_t size_min)
{
    uint32_t count = take_u32(reader);
    if (count > max || count * size_min > reader->rest.len) {
        reader->is_bad = true;
        return 0;
    }
    return count;
}

bool frame_head(const char *head, FrameType *type, size_t *len)
{
    Reader reader = {.rest = slice_make(head, SCRIPT_FRAME_HEAD_BYTES)};
    size_t length = take_u32(&reader);
    *type = (FrameType)take_enum(&reader, FRAME_COUNT);
    *len = length + LENGTH_BYTES;
    return !reader.is_bad && length >= 1 && *len <= SCRIPT_FRAME_BYTES_MAX;
}

bool frame_get_hello(Slice payload, FrameHello *out)
{
    Reader reader = {.rest = payload};
    out->version = take_u32(&reader);
    out->failure = take_text(&reader);
    return is_complete(&reader);
}

bool frame_get_run(Slice payload, FrameRun *out)
{
    Reader reader = {.rest = payload};
    out->role = (ScriptRole)take_enum(&reader, SCRIPT_ROLE_COUNT);
    out->wants_log = take_flag(&reader);
    out->hard_us = take_u64(&reader);
    out->soft_us = take_u64(&reader);
    out->assume_us = take_u64(&reader);
    out->id = take_text(&reader);
    out->body = take_text(&reader);
    out->arguments = take_text(&reader);
    out->self_link = take_text(&reader);
    out->alt_link = take_text(&reader);
    out->operation = take_text(&reader);
    out->request_body = take_text(&reader);
    out->response_body = take_text(&reader);
    out->quota = take_text(&reader);
    out->usage = take_text(&reader);
    return is_complete(&reader);
}

static bool take_operation(Reader *reader, ScriptCall *out)
{
    out->kind = (ScriptCallKind)take_enum(reader, SCRIPT_CALL_COUNT);
    out->is_rid = take_flag(reader);
    out->index_action = (ScriptIndexAction)take_enum(reader, SCRIPT_INDEX_COUNT);
    out->enables_scan = take_flag(reader);
    out->wants_item = take_flag(reader);
    out->is_assumed = take_flag(reader);
    out->page_size = (int32_t)take_u32(reader);
    out->name = take_text(reader);
    out->body = take_text(reader);
    out->query = take_text(reader);
    out->parameters = take_text(reader);
    out->if_match = take_text(reader);
    out->if_none_match = take_text(reader);
    out->continuation = take_text(reader);
    return out->page_size > 0 || out->page_size == SCRIPT_PAGE_SIZE_DYNAMIC;
}

bool frame_get_operations(Slice payload, Arena *arena, FrameOperations *out)
{
    Reader reader = {.rest = payload};
    out->count = take_count(&reader, SCRIPT_FRAME_OPERATIONS_MAX, OPERATION_BYTES_MIN);
    out->calls = ARENA_NEW_ARRAY(arena, ScriptCall, out->count);
    for (size_t i = 0; i < out->count; i++) {
        if (!take_operation(&reader, &out->calls[i]))
            return false;
    }
    return is_complete(&reader) && out->count > 0;
}

bool frame_get_answers(Slice payload, Arena *arena, FrameAnswers *out)
{
    Reader reader = {.rest = payload};
    out->count = take_count(&reader, SCRIPT_FRAME_OPERATIONS_MAX, ANSWER_BYTES_MIN);
    out->answers = ARENA_NEW_ARRAY(arena, FrameAnswer, out->count);
    for (size_t i = 0; i < out->count; i++) {
        FrameAnswer *answer = &out->answers[i];
        answer->status_code = take_u32(&reader);
        answer->is_not_modified = take_flag(&reader);
        answer->has_failed = take_flag(&reader);
        answer->is_last = take_flag(&reader);
        answer->resource = take_text(&reader);
        answer->continuation = take_text(&reader);
        answer->failure = take_text(&reader);
    }
    return is_complete(&reader) && out->count > 0;
}

bool frame_get_done(Slice payload, FrameDone *out)
{
    Reader reader = {.rest = payload};
    out->outcome = (FrameOutcome)take_enum(&reader, FRAME_OUTCOME_COUNT);
    out->number = take_u32(&reader);
    out->text = take_text(&reader);
    out->response_body = take_text(&reader);
    out->request_body = take_text(&reader);
    out->log = take_text(&reader);
    return is_complete(&reader);
}

bool frame_get_open(Slice payload, Arena *arena, FrameOpen *out)
{
    Reader reader = {.rest = payload};
    out->hard_us = take_u64(&reader);
    out->count = take_count(&reader, SCRIPT_FUNCTIONS_MAX, 8);
    out->sources = ARENA_NEW_ARRAY(arena, ScriptSource, out->count);
    for (size_t i = 0; i < out->count; i++) {
        out->sources[i].id = take_text(&reader);
        out->sources[i].body = take_text(&reader);
    }
    return is_complete(&reader);
}

bool frame_get_calls(Slice payload, Arena *arena, FrameCalls *out)
{
    Reader reader = {.rest = payload};
    out->count = take_count(&reader, SCRIPT_BATCH_CALLS_MAX, 8);
    out->calls = ARENA_NEW_ARRAY(arena, ScriptFunctionCall, out->count);
    for (size_t i = 0; i < out->count; i++) {
        out->calls[i].which = take_u32(&reader);
        out->calls[i].arguments = take_text(&reader);
    }
    return is_complete(&reader);
}

bool frame_get_results(Slice payload, Arena *arena, FrameResults *out)
{
    Reader reader = {.rest = payload};
    out->is_timeout = take_flag(&reader);
    out->count = take_count(&reader, SCRIPT_BATCH_CALLS_MAX, 13);
    out->calls = ARENA_NEW_ARRAY(arena, ScriptFunctionCall, out->count);
    out->cpu_us = ARENA_NEW_ARRAY(arena, uint32_t, out->count);
    for (size_t i = 0; i < out->count; i++) {
        out->calls[i].kind = (ScriptValueKind)take_enum(&reader, SCRIPT_VALUE_COUNT);
        out->calls[i].number = take_u32(&reader);
        out->cpu_us[i] = take_u32(&reader);
        out->calls[i].text = take_text(&reader);
    }
    return is_complete(&reader);
}
