/* json_print.c - values as JSON text: see json.h. Recursion is bounded by the depth that a document
 * can have. */
#include "json/bytes_int.h"
#include "json/format_int.h"

typedef uint8_t Bytes16 __attribute__((vector_size(16)));

/* What must be escaped: the letter after the backslash, or 'u' for the long form. */
static const char ESCAPES[256] = {
    [0 ... 7] = 'u', [8] = 'b',  [9] = 't',         [10] = 'n',  [11] = 'u',
    [12] = 'f',      [13] = 'r', [14 ... 31] = 'u', ['"'] = '"', ['\\'] = '\\',
};

static uint64_t load_half(const char *at)
{
    uint64_t half;
    memcpy(&half, at, sizeof(half));
    return half;
}

static bool any_escape(uint64_t low, uint64_t high)
{
    uint64_t halves[2] = {low, high};
    Bytes16 bytes;
    memcpy(&bytes, halves, sizeof(bytes));
    Bytes16 found = (Bytes16)((bytes < 0x20) | (bytes == '"') | (bytes == '\\'));
    memcpy(halves, &found, sizeof(halves));
    return (halves[0] | halves[1]) != 0;
}

/* Whether nothing in the text must be escaped. Loads overlap, as in copy_bytes. */
static bool is_plain(Slice text)
{
    const char *p = text.ptr;
    size_t len = text.len;
    if (len >= 16) {
        for (size_t at = 0; at + 16 < len; at += 16) {
            if (any_escape(load_half(p + at), load_half(p + at + 8)))
                return false;
        }
        return !any_escape(load_half(p + len - 16), load_half(p + len - 8));
    }
    if (len >= 8)
        return !any_escape(load_half(p), load_half(p + len - 8));
    if (len >= 4) {
        uint32_t ends[2];
        memcpy(&ends[0], p, 4);
        memcpy(&ends[1], p + len - 4, 4);
        uint64_t both = (uint64_t)ends[1] << 32 | ends[0];
        return !any_escape(both, both);
    }
    for (size_t i = 0; i < len; i++) {
        if (ESCAPES[(uint8_t)p[i]] != 0)
            return false;
    }
    return true;
}

static void print_escape(uint8_t byte, Buf *out)
{
    static const char hex[] = "0123456789abcdef";
    char text[6] = {'\\', ESCAPES[byte], '0', '0', hex[byte >> 4], hex[byte & 15]};
    buf_bytes(out, text, text[1] == 'u' ? 6 : 2);
}

static void print_escaped(Slice text, Buf *out)
{
    buf_byte(out, '"');
    size_t done = 0;
    for (size_t at = 0; at < text.len; at++) {
        uint8_t byte = (uint8_t)text.ptr[at];
        if (LIKELY(ESCAPES[byte] == 0))
            continue;
        buf_bytes(out, text.ptr + done, at - done);
        print_escape(byte, out);
        done = at + 1;
    }
    buf_bytes(out, text.ptr + done, text.len - done);
    buf_byte(out, '"');
}

void json_print_string(Slice text, Buf *out)
{
    if (UNLIKELY(!is_plain(text))) {
        print_escaped(text, out);
        return;
    }
    if (!buf_reserve(out, text.len + 2))
        return;
    char *at = out->ptr + out->len;
    at[0] = '"';
    copy_bytes(at + 1, text.ptr, text.len);
    at[text.len + 1] = '"';
    out->len += text.len + 2;
}

static void print_container(Json value, Buf *out)
{
    Container c = load_container(value.at);
    const uint8_t *at = c.body;
    buf_byte(out, c.is_object ? '{' : '[');
    for (uint32_t i = 0; i < c.count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        if (c.is_object) {
            Slice name = load_string(at);
            json_print_string(name, out);
            buf_byte(out, ':');
            at = string_end(name);
        }
        json_print((Json){at}, out);
        at = value_end(at);
    }
    buf_byte(out, c.is_object ? '}' : ']');
}

static void print_number(Json value, Buf *out)
{
    /* All its digits, where JavaScript would print zeros for some of them: a client that reads
     * numbers as doubles gets the same double, one that has integers of 64 bits the exact value. */
    if (tag_is_integer(value.at[0]))
        buf_i64(out, load_integer(value.at));
    else
        json_print_number(load_double(value.at), out);
}

void json_print(Json value, Buf *out)
{
    switch (json_type(value)) {
    case JSON_UNDEFINED:
        return;
    case JSON_NULL:
        buf_slice(out, SLICE("null"));
        return;
    case JSON_BOOL:
        buf_slice(out, json_bool(value) ? SLICE("true") : SLICE("false"));
        return;
    case JSON_NUMBER:
        print_number(value, out);
        return;
    case JSON_STRING:
        json_print_string(load_string(value.at), out);
        return;
    case JSON_ARRAY:
    case JSON_OBJECT:
        print_container(value, out);
        return;
    }
}

Slice json_print_arena(Arena *arena, Json value)
{
    if (value.at == NULL)
        return SLICE_EMPTY;
    /* No byte of a value prints as more than six: false with its comma, or an escaped byte. */
    size_t size = (size_t)(value_end(value.at) - value.at);
    AUTO(buf_done) Buf text;
    buf_init(&text, 6 * size + 16);
    (void)buf_reserve(&text, size + size / 2 + 16);
    json_print(value, &text);
    ASSERT(!buf_full(&text));
    return arena_copy(arena, buf_view(&text));
}
