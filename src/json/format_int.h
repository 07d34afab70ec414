/* format_int.h - the binary form of a document, for the files of this folder.
 *
 *     document = | version u8 = 1 | value |
 *
 *     tag       value                   after the tag
 *     00 .. 3f  the integers 0 .. 63    nothing
 *     40        null                    nothing
 *     41, 42    false, true             nothing
 *     43 .. 46  integer                 1, 2, 4 or 8 bytes, two's complement
 *     47        double                  8 bytes
 *     48 .. 4a  string                  its length in 1, 2 or 4 bytes, then its bytes
 *     4b, 4c    array, small or large   see below
 *     4d, 4e    object, small or large  see below
 *     4f .. 7f  never written
 *     80 .. ff  string of 0 .. 127 bytes, its length in the low seven bits; then its bytes
 *
 *     small array  = | tag | depth u8 | size u8  | count u8  | value* |
 *     large array  = | tag | depth u8 | size u32 | count u32 | value* |
 *     small object = | tag | depth u8 | size u8  | count u8  | (name value)* | offset u8 * count |
 *     large object = | tag | depth u8 | size u32 | count u32 | (name value)* | offset * count |
 *
 * All numbers are little-endian and nothing is aligned. 'size' is all the bytes of the value, tag
 * and offsets included, so a value is skipped without looking inside. 'depth' is 1 for a container
 * of scalars and one more than the deepest container inside it otherwise; it bounds every
 * recursion, and tells without a walk how deep a copy of the value would make a document. A name is
 * encoded as a string value.
 *
 * Members stand in the order of the source. The offsets at the end of an object are those of its
 * names, from the object's tag, in the byte order of the names: look-ups search them, and
 * comparisons walk two objects side by side in that order. They are 2 bytes wide in a large object
 * of at most 65535 bytes and 4 in a larger one.
 *
 * There is one encoding for each value: a container is small if it fits, strings and integers take
 * the shortest form, a double that is an integer of 64 bits is stored as one (but -0, which would
 * lose its sign), and there is one NaN. Names of an object are distinct.
 */
#pragma once

#include "json/json.h"

enum {
    FORMAT_VERSION = 1,

    TAG_INT_SMALL_MAX = 0x3f,
    TAG_NULL = 0x40,
    TAG_FALSE,
    TAG_TRUE,
    TAG_I8,
    TAG_I16,
    TAG_I32,
    TAG_I64,
    TAG_DOUBLE,
    TAG_STRING8,
    TAG_STRING16,
    TAG_STRING32,
    TAG_ARRAY_SMALL,
    TAG_ARRAY_LARGE,
    TAG_OBJECT_SMALL,
    TAG_OBJECT_LARGE,
    TAG_STRING_SHORT = 0x80,

    STRING_SHORT_MAX = 0x7f,
    SMALL_HEADER_BYTES = 4,
    LARGE_HEADER_BYTES = 10,
    SMALL_BYTES_MAX = 0xff,
    OFFSET16_BYTES_MAX = 0xffff,
};
static_assert(TAG_OBJECT_LARGE == 0x4e, "tags are stored: they never change within a version");

#define NAN_BITS UINT64_C(0x7ff8000000000000)

extern const uint8_t JSON_TAG_TYPES[256]; /* JsonType; JSON_UNDEFINED if never written */

/* The bytes of a fixed-size value, its tag included; 0 if the size is not fixed. */
extern const uint8_t JSON_TAG_SIZES[128];

static inline uint16_t load_u16(const uint8_t *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static inline uint32_t load_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static inline uint64_t load_u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static inline bool tag_is_integer(uint8_t tag)
{
    return tag <= TAG_INT_SMALL_MAX || (tag >= TAG_I8 && tag <= TAG_I64);
}

static inline bool tag_is_container(uint8_t tag)
{
    return tag >= TAG_ARRAY_SMALL && tag <= TAG_OBJECT_LARGE;
}

/* The integer at 'at', whose tag is one of an integer. */
static inline int64_t load_integer(const uint8_t *at)
{
    switch (at[0]) {
    case TAG_I8:
        return (int8_t)at[1];
    case TAG_I16:
        return (int16_t)load_u16(at + 1);
    case TAG_I32:
        return (int32_t)load_u32(at + 1);
    case TAG_I64:
        return (int64_t)load_u64(at + 1);
    default:
        return at[0];
    }
}

static inline double load_double(const uint8_t *at)
{
    double value;
    memcpy(&value, at + 1, sizeof(value));
    return value;
}

/* The string at 'at'; the next value begins where it ends. */
static inline Slice load_string(const uint8_t *at)
{
    if (LIKELY(at[0] >= TAG_STRING_SHORT))
        return slice_make(at + 1, at[0] & STRING_SHORT_MAX);
    if (at[0] == TAG_STRING8)
        return slice_make(at + 2, at[1]);
    if (at[0] == TAG_STRING16)
        return slice_make(at + 3, load_u16(at + 1));
    return slice_make(at + 5, load_u32(at + 1));
}

static inline const uint8_t *string_end(Slice string)
{
    return (const uint8_t *)string.ptr + string.len;
}

/* An array or object, taken apart. */
typedef struct Container {
    const uint8_t *at;      /* its tag */
    const uint8_t *body;    /* first element or name */
    const uint8_t *offsets; /* of an object: the offsets of its names, in name order */
    uint32_t size;
    uint32_t count;
    uint32_t offset_width;
    bool is_object;
} Container;

static inline uint32_t offset_width(uint8_t tag, uint32_t size)
{
    if (tag == TAG_OBJECT_SMALL)
        return 1;
    return size <= OFFSET16_BYTES_MAX ? 2 : 4;
}

static inline Container load_container(const uint8_t *at)
{
    uint8_t tag = at[0];
    Container c = {.at = at, .is_object = tag >= TAG_OBJECT_SMALL};
    if (tag == TAG_OBJECT_SMALL || tag == TAG_ARRAY_SMALL) {
        c.size = at[2];
        c.count = at[3];
        c.body = at + SMALL_HEADER_BYTES;
    } else {
        c.size = load_u32(at + 2);
        c.count = load_u32(at + 6);
        c.body = at + LARGE_HEADER_BYTES;
    }
    if (c.is_object) {
        c.offset_width = offset_width(tag, c.size);
        c.offsets = at + c.size - (size_t)c.count * c.offset_width;
    }
    return c;
}

/* The name at 'index' in name order. */
static inline const uint8_t *name_at_width(const Container *object, uint32_t index, uint32_t width)
{
    const uint8_t *offset = object->offsets + (size_t)index * width;
    return object->at + (width == 1 ? offset[0] : width == 2 ? load_u16(offset) : load_u32(offset));
}

static inline const uint8_t *name_at(const Container *object, uint32_t index)
{
    return name_at_width(object, index, object->offset_width);
}

/* The bytes of a value whose size is not in JSON_TAG_SIZES. */
size_t json_size_asked(const uint8_t *at);

/* Where the value at 'at' ends. */
static inline const uint8_t *value_end(const uint8_t *at)
{
    if (at[0] >= TAG_STRING_SHORT)
        return at + 1 + (at[0] & STRING_SHORT_MAX);
    size_t size = JSON_TAG_SIZES[at[0]];
    return at + (LIKELY(size != 0) ? size : json_size_asked(at));
}

/* The levels of arrays and objects in the value: 0 for a scalar. */
static inline uint32_t value_depth(const uint8_t *at)
{
    return tag_is_container(at[0]) ? at[1] : 0;
}
