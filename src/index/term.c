/* term.c - see term.h.
 *
 * A double's bits order like its value once the sign bit is flipped, and all bits if it is
 * negative. Two things are made the same before: -0 is 0, and NaN, which comes before all numbers,
 * is eight zero bytes.
 *
 * A path step is hashed together with its parent's hash:
 *
 *     step = | parent u64 | 0 | name |                 a name that is not long
 *          / | parent u64 | 1 | hash of the name u64 | a long one
 *          / | parent u64 | 2 |                        any element
 */
#include "index/term.h"

#include "base/arena.h"

#include <math.h>

enum {
    STEP_NAME = 0,
    STEP_LONG_NAME = 1,
    STEP_ELEMENT = 2,
    STEP_HEAD = 8 + 1,
    STEP_NAME_MAX = 119, /* so that a step has at most 128 bytes */

    ESCAPE = 0x00,
    ESCAPE_ENDS = 0x01,
    ESCAPE_CUT = 0x02,
    ESCAPE_ZERO = 0xFF,
};
#define SIGN_BIT UINT64_C(0x8000000000000000)

/* Items may hold integers between these two that are no doubles. */
#define DOUBLES_EXACT_MAX 0x1p53
#define INTEGERS_MAX      0x1p63

/* ---- paths ---- */

TermPath term_path_root(HashKey key)
{
    return hash_keyed(key, SLICE_EMPTY);
}

static TermPath hash_step(HashKey key, TermPath parent, uint8_t kind, Slice rest)
{
    char step[STEP_HEAD + STEP_NAME_MAX];
    memcpy(step, &parent, sizeof(parent));
    step[sizeof(parent)] = (char)kind;
    if (rest.len > 0)
        memcpy(step + STEP_HEAD, rest.ptr, rest.len);
    return hash_keyed(key, slice_make(step, STEP_HEAD + rest.len));
}

TermPath term_path_name(HashKey key, TermPath parent, Slice name)
{
    if (LIKELY(name.len <= STEP_NAME_MAX))
        return hash_step(key, parent, STEP_NAME, name);
    uint64_t hash = hash_keyed(key, name);
    return hash_step(key, parent, STEP_LONG_NAME, slice_make(&hash, sizeof(hash)));
}

TermPath term_path_element(HashKey key, TermPath parent)
{
    return hash_step(key, parent, STEP_ELEMENT, SLICE_EMPTY);
}

/* ---- values ---- */

void term_put_tag(Buf *out, TermTag tag)
{
    buf_byte(out, (uint8_t)tag);
}

void term_put_bool(Buf *out, bool value)
{
    term_put_tag(out, value ? TERM_TRUE : TERM_FALSE);
}

static bool number_is_exact(double value)
{
    double size = fabs(value);
    return !(size >= DOUBLES_EXACT_MAX && size <= INTEGERS_MAX);
}

static uint64_t order_bits(double value)
{
    if (isnan(value))
        return 0;
    if (value == 0)
        value = 0; /* without its sign */
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return (bits & SIGN_BIT) != 0 ? ~bits : bits | SIGN_BIT;
}

void term_put_number(Buf *out, double value, bool *exact)
{
    char bytes[1 + 8] = {TERM_NUMBER};
    be64_put(bytes + 1, order_bits(value));
    buf_bytes(out, bytes, sizeof(bytes));
    if (!number_is_exact(value))
        *exact = false;
}

/* Appends at most TERM_STRING_BYTES of 'text', with an FF after every zero byte. */
static void put_text(Buf *out, Slice text)
{
    static const char ZERO[] = {ESCAPE, (char)ESCAPE_ZERO};
    Slice rest = slice_first(text, TERM_STRING_BYTES);
    for (;;) {
        size_t run = slice_find(rest, '\0');
        buf_bytes(out, rest.ptr, run);
        if (run == rest.len)
            return;
        buf_bytes(out, ZERO, sizeof(ZERO));
        rest = slice_from(rest, run + 1);
    }
}

void term_put_string(Buf *out, Slice value, bool *exact)
{
    bool is_cut = value.len > TERM_STRING_BYTES;
    char end[2] = {ESCAPE, is_cut ? ESCAPE_CUT : ESCAPE_ENDS};
    buf_byte(out, TERM_STRING);
    put_text(out, value);
    buf_bytes(out, end, sizeof(end));
    if (is_cut)
        *exact = false;
}

void term_put_json(Buf *out, Json value, bool *exact)
{
    switch (json_type(value)) {
    case JSON_UNDEFINED:
        term_put_tag(out, TERM_UNDEFINED);
        return;
    case JSON_NULL:
        term_put_tag(out, TERM_NULL);
        return;
    case JSON_BOOL:
        term_put_bool(out, json_bool(value));
        return;
    case JSON_NUMBER:
        term_put_number(out, json_number(value), exact);
        return;
    case JSON_STRING:
        term_put_string(out, json_string(value), exact);
        return;
    case JSON_ARRAY:
        term_put_tag(out, TERM_ARRAY);
        *exact = false;
        return;
    case JSON_OBJECT:
        term_put_tag(out, TERM_OBJECT);
        *exact = false;
        return;
    }
}

void term_put_prefix(Buf *out, Slice prefix, bool *exact)
{
    buf_byte(out, TERM_STRING);
    put_text(out, prefix);
    if (prefix.len > TERM_STRING_BYTES)
        *exact = false;
}

void term_after(Buf *bytes)
{
    while (bytes->len > 0 && (uint8_t)bytes->ptr[bytes->len - 1] == 0xFF)
        bytes->len--;
    if (bytes->len > 0)
        bytes->ptr[bytes->len - 1]++;
}

static bool read_number(Slice *bytes, TermValue *out)
{
    if (bytes->len < 8)
        return false;
    uint64_t order = be64_get(bytes->ptr);
    uint64_t bits = (order & SIGN_BIT) != 0 ? order & ~SIGN_BIT : ~order;
    memcpy(&out->number, &bits, sizeof(bits));
    out->exact = number_is_exact(out->number);
    *bytes = slice_from(*bytes, 8);
    return true;
}

/* Copies text up to its end mark, which becomes '*mark'; '*used' counts the bytes read. */
static bool unescape(Slice bytes, char text[TERM_STRING_BYTES], size_t *len, uint8_t *mark,
                     size_t *used)
{
    size_t written = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        char c = bytes.ptr[i];
        if (c == ESCAPE) {
            if (++i == bytes.len)
                return false;
            *mark = (uint8_t)bytes.ptr[i];
            if (*mark != ESCAPE_ZERO) {
                *len = written;
                *used = i + 1;
                return *mark == ESCAPE_ENDS || *mark == ESCAPE_CUT;
            }
        }
        if (written == TERM_STRING_BYTES)
            return false;
        text[written++] = c;
    }
    return false;
}

static bool read_string(Arena *arena, Slice *bytes, TermValue *out)
{
    char text[TERM_STRING_BYTES];
    size_t len = 0;
    uint8_t mark = 0;
    size_t used = 0;
    if (!unescape(*bytes, text, &len, &mark, &used))
        return false;
    if (mark == ESCAPE_CUT && len < TERM_STRING_BYTES)
        return false;
    out->exact = mark == ESCAPE_ENDS;
    out->text = arena_copy(arena, slice_make(text, len));
    *bytes = slice_from(*bytes, used);
    return true;
}

static bool read_tagged(Arena *arena, uint8_t tag, Slice *rest, TermValue *out)
{
    *out = (TermValue){.tag = (TermTag)tag, .exact = true};
    switch (tag) {
    case TERM_PRESENT:
    case TERM_ARRAY:
    case TERM_OBJECT:
        out->exact = false;
        return true;
    case TERM_UNDEFINED:
    case TERM_NULL:
    case TERM_FALSE:
    case TERM_TRUE:
        return true;
    case TERM_NUMBER:
        return read_number(rest, out);
    case TERM_STRING:
        return read_string(arena, rest, out);
    default:
        return false;
    }
}

bool term_read(Arena *arena, Slice *bytes, TermValue *out)
{
    if (bytes->len == 0)
        return false;
    Slice rest = slice_from(*bytes, 1);
    TermValue value;
    if (!read_tagged(arena, (uint8_t)bytes->ptr[0], &rest, &value))
        return false;
    *bytes = rest;
    *out = value;
    return true;
}

/* ---- keys ---- */

void term_key(Buf *out, TermPath path, Slice value, uint64_t high)
{
    ASSERT(value.len <= TERM_VALUE_BYTES_MAX);
    ASSERT(high >> (8 * TERM_CHUNK_BYTES) == 0);
    char head[TERM_KEY_HEAD] = {TERM_KIND};
    be64_put(head + 1, path);
    char chunk[8];
    be64_put(chunk, high);
    buf_bytes(out, head, sizeof(head));
    buf_slice(out, value);
    buf_bytes(out, chunk + sizeof(chunk) - TERM_CHUNK_BYTES, TERM_CHUNK_BYTES);
}

bool term_key_read(Slice key, TermPath *path, Slice *value, uint64_t *high)
{
    enum { AROUND = TERM_KEY_HEAD + TERM_CHUNK_BYTES };
    if (key.len <= AROUND || key.len > AROUND + TERM_VALUE_BYTES_MAX || key.ptr[0] != TERM_KIND)
        return false;
    *path = be64_get(key.ptr + 1);
    *value = slice_make(key.ptr + TERM_KEY_HEAD, key.len - AROUND);
    /* Also reads the two bytes before the chunk, which exist because the head is longer. */
    *high = be64_get(key.ptr + key.len - 8) & ((UINT64_C(1) << (8 * TERM_CHUNK_BYTES)) - 1);
    return true;
}

/* ---- samples ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 32);
}

/* Word by word; the last word is the last eight bytes. Not for hash tables: a client can choose
 * values that are all in a sample, or none, which only misleads estimates of its own queries. */
static uint64_t hash_value(Slice value)
{
    enum { WORD = sizeof(uint64_t) };
    uint64_t hash = value.len;
    if (value.len < WORD) {
        uint64_t word = 0;
        for (size_t i = 0; i < value.len; i++)
            word = word << 8 | (uint8_t)value.ptr[i];
        return mix(mix(hash, word), word);
    }
    for (size_t i = 0; i + WORD < value.len; i += WORD)
        hash = mix(hash, be64_get(value.ptr + i));
    hash = mix(hash, be64_get(value.ptr + value.len - WORD));
    return mix(hash, value.len);
}

unsigned term_samples(Slice value)
{
    if (value.len <= 1)
        return 0;
    uint64_t hash = hash_value(value);
    if (LIKELY((hash & ((1U << TERM_SAMPLE_BITS) - 1)) != 0))
        return 0;
    unsigned samples = 1;
    hash >>= TERM_SAMPLE_BITS;
    while (samples < TERM_SAMPLES && (hash & ((1U << TERM_SAMPLE_MORE_BITS) - 1)) == 0) {
        samples++;
        hash >>= TERM_SAMPLE_MORE_BITS;
    }
    return samples;
}

TermPath term_path_sample(TermPath path, unsigned sample)
{
    return path ^ (UINT64_C(0xd1b54a32d192ed03) * (sample + 1));
}
