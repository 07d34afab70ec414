/* epk.c - see epk.h.
 *
 * What is hashed, component by component:
 *
 *     undefined 00, null 01, false 02, true 03
 *     number    05 | the double, 8 bytes little-endian |
 *     string    08 | UTF-8 | FF (version 1: 00)
 *
 * Version 2 is MurmurHash3 of 128 bits over that, written big-endian with its two highest bits
 * cleared. MultiHash puts the version 2 hash of each component one after the other. Version
 * 1 is MurmurHash3 of 32 bits, written as a number, followed by the components themselves, all in
 * an encoding that sorts like the values.
 */
#include "partition/epk.h"

#include "base/encoding.h"
#include "base/murmur.h"

#include <math.h>

enum {
    MARK_UNDEFINED = 0x00,
    MARK_NULL = 0x01,
    MARK_FALSE = 0x02,
    MARK_TRUE = 0x03,
    MARK_NUMBER = 0x05,
    MARK_STRING = 0x08,
    V1_UNITS_MAX = 100,   /* UTF-16 code units of a string that version 1 looks at */
    V1_ENCODED_MAX = 101, /* bytes of a string that version 1 writes */
};

/* Room for what is hashed: version 1 truncates, so only version 2 meets long strings. */
#define HASHED_BYTES_MAX (PARTITION_KEY_PARTS_MAX * (PARTITION_KEY_BYTES_MAX + 16))

typedef struct Hashed {
    uint8_t bytes[HASHED_BYTES_MAX];
    size_t len;
} Hashed;

static uint8_t mark_of(Json value)
{
    switch (json_type(value)) {
    case JSON_NULL:
        return MARK_NULL;
    case JSON_BOOL:
        return json_bool(value) ? MARK_TRUE : MARK_FALSE;
    case JSON_NUMBER:
        return MARK_NUMBER;
    case JSON_STRING:
        return MARK_STRING;
    case JSON_UNDEFINED:
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    return MARK_UNDEFINED;
}

static void hashed_byte(Hashed *hashed, uint8_t byte)
{
    ASSERT(hashed->len < sizeof(hashed->bytes));
    hashed->bytes[hashed->len++] = byte;
}

static void hashed_bytes(Hashed *hashed, const void *bytes, size_t len)
{
    ASSERT(len <= sizeof(hashed->bytes) - hashed->len);
    if (len > 0)
        memcpy(hashed->bytes + hashed->len, bytes, len);
    hashed->len += len;
}

static void hashed_component(Hashed *hashed, Json value, Slice text, uint8_t terminator)
{
    uint8_t mark = mark_of(value);
    hashed_byte(hashed, mark);
    if (mark == MARK_NUMBER) {
        double number = json_number(value);
        hashed_bytes(hashed, &number, sizeof(number));
    } else if (mark == MARK_STRING) {
        hashed_bytes(hashed, text.ptr, text.len);
        hashed_byte(hashed, terminator);
    }
}

static Slice text_of(Json value)
{
    return json_is(value, JSON_STRING) ? json_string(value) : SLICE_EMPTY;
}

static void make_v2(const Json *parts, size_t count, uint8_t out[EPK_HASH_BYTES])
{
    Hashed hashed;
    hashed.len = 0;
    for (size_t i = 0; i < count; i++)
        hashed_component(&hashed, parts[i], text_of(parts[i]), 0xFF);
    uint64_t hash[2];
    murmur3_128(slice_make(hashed.bytes, hashed.len), hash);
    be64_put(out, hash[1]);
    be64_put(out + 8, hash[0]);
    out[0] &= 0x3F;
}

/* The first V1_UNITS_MAX UTF-16 code units of a string. A character outside the basic plane is two
 * units; when only its first half fits, U+FFFD stands for it, as a lone surrogate is written. */
static Slice truncate_v1(Slice text, char buffer[4 * V1_UNITS_MAX + 4])
{
    size_t units = 0;
    size_t i = 0;
    while (i < text.len && units < V1_UNITS_MAX) {
        uint8_t lead = (uint8_t)text.ptr[i];
        size_t len = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        if (len == 4 && units + 2 > V1_UNITS_MAX) {
            memcpy(buffer, text.ptr, i);
            memcpy(buffer + i, "\xEF\xBF\xBD", 3);
            return slice_make(buffer, i + 3);
        }
        units += len == 4 ? 2 : 1;
        i += len;
    }
    return slice_first(text, i);
}

size_t epk_encode_number(double number, uint8_t out[EPK_NUMBER_BYTES_MAX])
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof(bits));
    const uint64_t sign = UINT64_C(1) << 63;
    /* -0 has only the sign set and so becomes the same as 0. */
    uint64_t payload = bits < sign ? bits ^ sign : 0 - bits;
    size_t len = 0;
    out[len++] = MARK_NUMBER;
    out[len++] = (uint8_t)(payload >> 56);
    payload <<= 8;
    /* Seven bits a byte; the lowest bit says whether another byte follows. */
    do {
        uint8_t high = (uint8_t)(payload >> 56) & 0xFE;
        payload <<= 7;
        out[len++] = high | (payload != 0 ? 1 : 0);
    } while (payload != 0);
    return len;
}

/* The reverse, of what is not below zero; 'bytes' may be cut. */
static double decode_number(Slice bytes)
{
    uint64_t payload = bytes.len > 1 ? (uint64_t)(uint8_t)bytes.ptr[1] << 56 : 0;
    unsigned shift = 49;
    for (size_t i = 2; i < bytes.len && i < EPK_NUMBER_BYTES_MAX; i++, shift -= 7)
        payload |= (uint64_t)((uint8_t)bytes.ptr[i] >> 1) << shift;
    uint64_t bits = payload ^ UINT64_C(1) << 63;
    double number;
    memcpy(&number, &bits, sizeof(number));
    return number;
}

static size_t encode_string_v1(Slice text, uint8_t *out)
{
    size_t len = 0;
    bool whole = text.len <= V1_ENCODED_MAX - 1;
    out[len++] = MARK_STRING;
    for (size_t i = 0; i < text.len && i < V1_ENCODED_MAX; i++) {
        uint8_t byte = (uint8_t)text.ptr[i];
        out[len++] = byte < 0xFF ? byte + 1 : byte;
    }
    if (whole)
        out[len++] = 0x00;
    return len;
}

static void make_v1(const PartitionKey *key, Epk *out)
{
    char buffers[PARTITION_KEY_PARTS_MAX][4 * V1_UNITS_MAX + 4];
    Slice texts[PARTITION_KEY_PARTS_MAX];
    Hashed hashed;
    hashed.len = 0;
    for (size_t i = 0; i < key->count; i++) {
        texts[i] = truncate_v1(text_of(key->parts[i]), buffers[i]);
        hashed_component(&hashed, key->parts[i], texts[i], 0x00);
    }
    size_t len = epk_encode_number(murmur3_32(slice_make(hashed.bytes, hashed.len)), out->bytes);
    for (size_t i = 0; i < key->count; i++) {
        uint8_t mark = mark_of(key->parts[i]);
        if (mark == MARK_NUMBER)
            len += epk_encode_number(json_number(key->parts[i]), out->bytes + len);
        else if (mark == MARK_STRING)
            len += encode_string_v1(texts[i], out->bytes + len);
        else
            out->bytes[len++] = mark;
    }
    out->len = (uint16_t)len;
}

void epk_make(PartitionKind kind, const PartitionKey *key, Epk *out)
{
    out->len = 0;
    if (key->count == 0)
        return;
    switch (kind) {
    case PARTITION_HASH_V1:
        make_v1(key, out);
        break;
    case PARTITION_HASH_V2:
        make_v2(key->parts, key->count, out->bytes);
        out->len = EPK_HASH_BYTES;
        break;
    case PARTITION_MULTI_HASH:
        for (size_t i = 0; i < key->count; i++)
            make_v2(&key->parts[i], 1, out->bytes + EPK_HASH_BYTES * i);
        out->len = (uint16_t)(EPK_HASH_BYTES * key->count);
        break;
    case PARTITION_NONE:
        break;
    }
}

double epk_fraction(PartitionKind kind, Slice epk)
{
    if (epk.len == 0)
        return 0;
    double fraction = 0;
    if (kind == PARTITION_HASH_V1 && epk.ptr[0] == MARK_NUMBER) {
        fraction = decode_number(epk) / 0x1p32;
    } else if (kind == PARTITION_HASH_V1) {
        fraction = (uint8_t)epk.ptr[0] < MARK_NUMBER ? 0 : 1;
    } else {
        uint8_t first[8] = {0};
        memcpy(first, epk.ptr, epk.len < sizeof(first) ? epk.len : sizeof(first));
        fraction = (double)be64_get(first) / 0x1p62; /* the two highest bits are clear */
    }
    return fraction > 0 ? (fraction < 1 ? fraction : 1) : 0;
}

Slice epk_prefix_end(Arena *arena, Slice epk)
{
    char *end = arena_alloc(arena, epk.len + 1);
    if (epk.len > 0)
        memcpy(end, epk.ptr, epk.len);
    end[epk.len] = (char)0xFF;
    return slice_make(end, epk.len + 1);
}

Status partition_key_check(const PartitionKey *key, Error *err)
{
    for (size_t i = 0; i < key->count; i++) {
        Slice text = text_of(key->parts[i]);
        if (text.len > PARTITION_KEY_BYTES_MAX)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "Partition key value is too large: it has %zu bytes; the maximum is "
                             "%d.",
                             text.len, PARTITION_KEY_BYTES_MAX);
    }
    return STATUS_OK;
}

void partition_key_extract(const PartitionKeyDefinition *definition, Json document,
                           PartitionKey *out)
{
    out->count = definition->kind == PARTITION_NONE ? 0 : definition->path_count;
    for (size_t i = 0; i < out->count; i++) {
        Json value = property_path_get(definition->paths[i], document);
        bool is_scalar = !json_is(value, JSON_ARRAY) && !json_is(value, JSON_OBJECT);
        out->parts[i] = is_scalar ? value : JSON_NONE;
    }
}

/* 0 and -0 have two hashes, so they are two keys. */
static bool same_number(double a, double b)
{
    return a == b && signbit(a) == signbit(b);
}

bool partition_key_equal(const PartitionKey *a, const PartitionKey *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        uint8_t mark = mark_of(a->parts[i]);
        if (mark != mark_of(b->parts[i]))
            return false;
        if (mark == MARK_NUMBER && !same_number(json_number(a->parts[i]), json_number(b->parts[i])))
            return false;
        if (mark == MARK_STRING && !slice_equal(json_string(a->parts[i]), json_string(b->parts[i])))
            return false;
    }
    return true;
}
