/* json.c - reading values in place: see json.h, and format_int.h for the bytes. */
#include "json/json.h"

#include "json/format_int.h"

/* Up to this many members a look-up scans all names, beyond it uses binary search. The CPU predicts
 * the scan by length and last byte well, binary search badly; the README has figures. */
enum { SCAN_COUNT_MAX = 64 };

const uint8_t JSON_TAG_TYPES[256] = {
    [0 ... TAG_INT_SMALL_MAX] = JSON_NUMBER,
    [TAG_NULL] = JSON_NULL,
    [TAG_FALSE] = JSON_BOOL,
    [TAG_TRUE] = JSON_BOOL,
    [TAG_I8... TAG_DOUBLE] = JSON_NUMBER,
    [TAG_STRING8... TAG_STRING32] = JSON_STRING,
    [TAG_ARRAY_SMALL] = JSON_ARRAY,
    [TAG_ARRAY_LARGE] = JSON_ARRAY,
    [TAG_OBJECT_SMALL] = JSON_OBJECT,
    [TAG_OBJECT_LARGE] = JSON_OBJECT,
    [TAG_STRING_SHORT... 255] = JSON_STRING,
};

const uint8_t JSON_TAG_SIZES[128] = {
    [0 ... TAG_INT_SMALL_MAX] = 1,
    [TAG_NULL] = 1,
    [TAG_FALSE] = 1,
    [TAG_TRUE] = 1,
    [TAG_I8] = 2,
    [TAG_I16] = 3,
    [TAG_I32] = 5,
    [TAG_I64] = 9,
    [TAG_DOUBLE] = 9,
};

static Json find_member(const Container *object, Slice name);

size_t json_size_asked(const uint8_t *at)
{
    if (tag_is_container(at[0]))
        return load_container(at).size;
    return (size_t)(string_end(load_string(at)) - at);
}

Slice json_bytes(Arena *arena, Json value)
{
    ASSERT(value.at != NULL);
    size_t size = (size_t)(value_end(value.at) - value.at);
    uint8_t *copy = arena_alloc(arena, 1 + size);
    copy[0] = FORMAT_VERSION;
    memcpy(copy + 1, value.at, size);
    return slice_make(copy, 1 + size);
}

Json json_trust(Slice bytes)
{
    ASSERT(bytes.len >= 2);
    return (Json){(const uint8_t *)bytes.ptr + 1};
}

JsonType json_type(Json value)
{
    return value.at == NULL ? JSON_UNDEFINED : (JsonType)JSON_TAG_TYPES[value.at[0]];
}

bool json_bool(Json value)
{
    DEBUG_ASSERT(json_is(value, JSON_BOOL));
    return value.at[0] == TAG_TRUE;
}

double json_number(Json value)
{
    DEBUG_ASSERT(json_is(value, JSON_NUMBER));
    return value.at[0] == TAG_DOUBLE ? load_double(value.at) : (double)load_integer(value.at);
}

Slice json_string(Json value)
{
    DEBUG_ASSERT(json_is(value, JSON_STRING));
    return load_string(value.at);
}

size_t json_count(Json value)
{
    DEBUG_ASSERT(json_is(value, JSON_ARRAY) || json_is(value, JSON_OBJECT));
    return load_container(value.at).count;
}

uint32_t json_depth(Json value)
{
    return value.at == NULL ? 0 : value_depth(value.at);
}

size_t json_size(Json value)
{
    return value.at == NULL ? 0 : (size_t)(value_end(value.at) - value.at);
}

bool json_to_i64(Json value, int64_t *out)
{
    if (!json_is(value, JSON_NUMBER))
        return false;
    if (tag_is_integer(value.at[0])) {
        *out = load_integer(value.at);
        return true;
    }
    /* The only integer of 64 bits that is stored as a double is -0. */
    if (load_double(value.at) != 0)
        return false;
    *out = 0;
    return true;
}

Json json_get(Json object, Slice name)
{
    if (object.at == NULL || (object.at[0] != TAG_OBJECT_SMALL && object.at[0] != TAG_OBJECT_LARGE))
        return JSON_NONE;
    Container c = load_container(object.at);
    return find_member(&c, name);
}

Json json_at(Json array, size_t index)
{
    if (!json_is(array, JSON_ARRAY))
        return JSON_NONE;
    Container c = load_container(array.at);
    if (index >= c.count)
        return JSON_NONE;
    const uint8_t *at = c.body;
    while (index-- > 0)
        at = value_end(at);
    return (Json){at};
}

JsonIter json_iter(Json value)
{
    if (value.at == NULL || !tag_is_container(value.at[0]))
        return (JsonIter){0};
    Container c = load_container(value.at);
    return (JsonIter){.next = c.body, .left = c.count, .is_object = c.is_object};
}

bool json_next(JsonIter *iter)
{
    if (iter->left == 0)
        return false;
    iter->left--;
    const uint8_t *at = iter->next;
    if (iter->is_object) {
        iter->name = load_string(at);
        at = string_end(iter->name);
    }
    iter->value = (Json){at};
    iter->next = value_end(at);
    return true;
}

static Json search_by_halves(const Container *object, Slice name)
{
    uint32_t low = 0;
    uint32_t high = object->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        Slice found = load_string(name_at(object, middle));
        int order = slice_compare(name, found);
        if (order == 0)
            return (Json){string_end(found)};
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return JSON_NONE;
}

/* For names short enough to have their length in the tag; of an empty one the tag is the last byte.
 * Inlined for each width. */
static inline __attribute__((always_inline)) Json scan_names(const Container *object, Slice name,
                                                             uint32_t width)
{
    uint8_t tag = (uint8_t)(TAG_STRING_SHORT | name.len);
    uint8_t last = name.len == 0 ? tag : (uint8_t)name.ptr[name.len - 1];
    for (uint32_t i = 0; i < object->count; i++) {
        const uint8_t *at = name_at_width(object, i, width);
        if (at[0] == tag && at[name.len] == last && memcmp(at + 1, name.ptr, name.len) == 0)
            return (Json){at + 1 + name.len};
    }
    return JSON_NONE;
}

static Json find_member(const Container *object, Slice name)
{
    if (object->count > SCAN_COUNT_MAX || name.len > STRING_SHORT_MAX)
        return search_by_halves(object, name);
    if (name.len == 0)
        name.ptr = ""; /* an empty slice may have no pointer, and memcmp wants one */
    if (object->offset_width == 1)
        return scan_names(object, name, 1);
    return object->offset_width == 2 ? scan_names(object, name, 2) : scan_names(object, name, 4);
}
