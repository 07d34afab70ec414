/* build.c - writes documents front to back: see json.h, and format_int.h for the bytes.
 *
 * The size of an array or object is not known when it begins. It is begun as a large one, and when
 * it ends at no more than SMALL_BYTES_MAX its contents are moved back over the shorter header. So
 * little is moved, however the document is nested.
 */
#include "base/array.h"
#include "json/build_int.h"
#include "json/bytes_int.h"
#include "json/format_int.h"
#include "json/members_int.h"

#include <math.h>
#include <stdlib.h>

enum { BYTES_FIRST = 512, NAMES_FIRST = 64 };
static_assert(JSON_BUILD_BYTES_MAX <= UINT32_MAX, "sizes are stored in 32 bits");
static_assert(JSON_BUILD_DEPTH_MAX <= UINT8_MAX, "depths are stored in 8 bits");

static bool grow(JsonBuilder *b, size_t extra);
static uint32_t end_object(JsonBuilder *b, uint32_t start, uint32_t count, uint32_t depth);
static void end_array(JsonBuilder *b, uint32_t start, uint32_t count, uint32_t depth);

/* Room for 'size' bytes after what is written; NULL if a bound is reached. */
static inline uint8_t *make_room(JsonBuilder *b, size_t size)
{
    if (UNLIKELY(b->capacity - b->len < size) && !grow(b, size))
        return NULL;
    return b->ptr + b->len;
}

/* Counts a value of 'depth' levels in what is open. False if it must not be written. */
static inline bool begin_value(JsonBuilder *b, uint32_t depth)
{
    if (UNLIKELY(b->failed))
        return false;
    if (b->depth == 0) {
        ASSERT(b->len == 1);
        return true;
    }
    uint32_t top = b->depth - 1;
    ASSERT(b->named == b->open[top].is_object);
    b->named = false;
    b->open[top].count += !b->open[top].is_object;
    if (b->open[top].depth < depth)
        b->open[top].depth = (uint16_t)depth;
    return true;
}

void json_build(JsonBuilder *b, Arena *arena)
{
    json_build_sized(b, arena, BYTES_FIRST);
}

void json_build_sized(JsonBuilder *b, Arena *arena, size_t bytes)
{
    ASSERT(bytes > 0);
    b->arena = arena;
    b->ptr = arena_alloc(arena, bytes);
    b->capacity = bytes;
    b->ptr[0] = FORMAT_VERSION;
    b->len = 1;
    b->names = NULL;
    b->name_count = b->name_capacity = 0;
    b->depth = 0;
    b->named = b->failed = false;
}

static void begin_container(JsonBuilder *b, bool is_object)
{
    if (!begin_value(b, 0))
        return;
    uint8_t *at = make_room(b, LARGE_HEADER_BYTES);
    if (b->depth == JSON_DEPTH_MAX || at == NULL) {
        b->failed = true;
        return;
    }
    b->open[b->depth].start = (uint32_t)b->len;
    b->open[b->depth].count = 0;
    b->open[b->depth].depth = 0;
    b->open[b->depth].is_object = is_object;
    b->depth++;
    b->len += LARGE_HEADER_BYTES;
}

void json_begin_object(JsonBuilder *b)
{
    begin_container(b, true);
}

void json_begin_array(JsonBuilder *b)
{
    begin_container(b, false);
}

static void put_string(JsonBuilder *b, Slice text)
{
    uint8_t *at = make_room(b, text.len + 5);
    if (UNLIKELY(at == NULL))
        return;
    uint8_t *start = at;
    uint32_t len = (uint32_t)text.len;
    if (LIKELY(len <= STRING_SHORT_MAX)) {
        *at++ = (uint8_t)(TAG_STRING_SHORT | len);
    } else if (len <= UINT8_MAX) {
        *at++ = TAG_STRING8;
        *at++ = (uint8_t)len;
    } else if (len <= UINT16_MAX) {
        *at++ = TAG_STRING16;
        memcpy(at, &len, 2);
        at += 2;
    } else {
        *at++ = TAG_STRING32;
        memcpy(at, &len, 4);
        at += 4;
    }
    copy_bytes(at, text.ptr, len);
    b->len += (size_t)(at - start) + len;
}

void json_key(JsonBuilder *b, Slice name)
{
    if (UNLIKELY(b->failed))
        return;
    ASSERT(b->depth > 0);
    ASSERT(b->open[b->depth - 1].is_object);
    ASSERT(!b->named);
    DEBUG_ASSERT(json_utf8_valid(name));
    ARRAY_GROW_IN(b->arena, b->names, b->name_count, b->name_capacity, NAMES_FIRST);
    b->names[b->name_count++] = (uint32_t)b->len;
    b->open[b->depth - 1].count++;
    b->named = true;
    put_string(b, name);
}

static void add_tag(JsonBuilder *b, uint8_t tag)
{
    if (!begin_value(b, 0))
        return;
    uint8_t *at = make_room(b, 1);
    if (at == NULL)
        return;
    *at = tag;
    b->len++;
}

void json_add_null(JsonBuilder *b)
{
    add_tag(b, TAG_NULL);
}

void json_add_bool(JsonBuilder *b, bool value)
{
    add_tag(b, value ? TAG_TRUE : TAG_FALSE);
}

void json_add_number(JsonBuilder *b, double value)
{
    if (value >= -0x1p63 && value < 0x1p63) {
        int64_t integer = (int64_t)value;
        if ((double)integer == value && (integer != 0 || !signbit(value))) {
            json_add_i64(b, integer);
            return;
        }
    }
    if (!begin_value(b, 0))
        return;
    uint8_t *at = make_room(b, 9);
    if (at == NULL)
        return;
    uint64_t bits = NAN_BITS;
    if (!isnan(value))
        memcpy(&bits, &value, sizeof(bits));
    at[0] = TAG_DOUBLE;
    memcpy(at + 1, &bits, sizeof(bits));
    b->len += 9;
}

void json_add_i64(JsonBuilder *b, int64_t value)
{
    if (!begin_value(b, 0))
        return;
    uint8_t *at = make_room(b, 9);
    if (at == NULL)
        return;
    if (value >= 0 && value <= TAG_INT_SMALL_MAX) {
        at[0] = (uint8_t)value;
        b->len += 1;
    } else if (value == (int8_t)value) {
        at[0] = TAG_I8;
        at[1] = (uint8_t)value;
        b->len += 2;
    } else if (value == (int16_t)value) {
        at[0] = TAG_I16;
        memcpy(at + 1, &value, 2);
        b->len += 3;
    } else if (value == (int32_t)value) {
        at[0] = TAG_I32;
        memcpy(at + 1, &value, 4);
        b->len += 5;
    } else {
        at[0] = TAG_I64;
        memcpy(at + 1, &value, 8);
        b->len += 9;
    }
}

void json_add_string(JsonBuilder *b, Slice value)
{
    if (!begin_value(b, 0))
        return;
    DEBUG_ASSERT(json_utf8_valid(value));
    put_string(b, value);
}

void json_add(JsonBuilder *b, Json value)
{
    ASSERT(value.at != NULL);
    if (!begin_value(b, value_depth(value.at)))
        return;
    size_t size = (size_t)(value_end(value.at) - value.at);
    uint8_t *at = make_room(b, size);
    if (at == NULL)
        return;
    memcpy(at, value.at, size);
    b->len += size;
}

void json_end(JsonBuilder *b)
{
    if (UNLIKELY(b->failed))
        return;
    ASSERT(b->depth > 0);
    ASSERT(!b->named);
    uint32_t top = --b->depth;
    uint32_t depth = b->open[top].depth + 1u;
    if (depth > JSON_BUILD_DEPTH_MAX) {
        b->failed = true;
        return;
    }
    if (b->open[top].is_object)
        depth = end_object(b, b->open[top].start, b->open[top].count, depth);
    else
        end_array(b, b->open[top].start, b->open[top].count, depth);
    if (top > 0 && b->open[top - 1].depth < depth)
        b->open[top - 1].depth = (uint16_t)depth;
}

Json json_built(JsonBuilder *b)
{
    if (b->failed)
        return JSON_NONE;
    ASSERT(b->depth == 0);
    ASSERT(b->len > 1);
    return (Json){b->ptr + 1};
}

static bool grow(JsonBuilder *b, size_t extra)
{
    if (extra > JSON_BUILD_BYTES_MAX - b->len) {
        b->failed = true;
        return false;
    }
    ASSERT(b->len <= b->capacity);
    size_t capacity = array_capacity_for(b->capacity, b->len + extra);
    b->ptr = arena_realloc(b->arena, b->ptr, b->len, capacity);
    b->capacity = capacity;
    return true;
}

static void put_small_header(uint8_t *at, uint8_t tag, uint32_t depth, size_t size, uint32_t count)
{
    at[0] = tag;
    at[1] = (uint8_t)depth;
    at[2] = (uint8_t)size;
    at[3] = (uint8_t)count;
}

static void put_large_header(uint8_t *at, uint8_t tag, uint32_t depth, size_t size, uint32_t count)
{
    uint32_t size32 = (uint32_t)size;
    at[0] = tag;
    at[1] = (uint8_t)depth;
    memcpy(at + 2, &size32, sizeof(size32));
    memcpy(at + 6, &count, sizeof(count));
}

static void end_array(JsonBuilder *b, uint32_t start, uint32_t count, uint32_t depth)
{
    uint8_t *at = b->ptr + start;
    size_t body = b->len - start - LARGE_HEADER_BYTES;
    if (SMALL_HEADER_BYTES + body > SMALL_BYTES_MAX) {
        put_large_header(at, TAG_ARRAY_LARGE, depth, b->len - start, count);
        return;
    }
    memmove(at + SMALL_HEADER_BYTES, at + LARGE_HEADER_BYTES, body);
    put_small_header(at, TAG_ARRAY_SMALL, depth, SMALL_HEADER_BYTES + body, count);
    b->len = start + SMALL_HEADER_BYTES + body;
}

static void write_small_object(JsonBuilder *b, uint32_t start, const Member *members,
                               uint32_t count, uint32_t depth)
{
    /* The shorter header makes room for the offsets of a few members only. */
    if (make_room(b, count) == NULL)
        return;
    uint8_t *at = b->ptr + start;
    size_t body = b->len - start - LARGE_HEADER_BYTES;
    size_t size = SMALL_HEADER_BYTES + body + count;
    memmove(at + SMALL_HEADER_BYTES, at + LARGE_HEADER_BYTES, body);
    put_small_header(at, TAG_OBJECT_SMALL, depth, size, count);
    uint8_t *offsets = at + SMALL_HEADER_BYTES + body;
    uint32_t moved = start + LARGE_HEADER_BYTES - SMALL_HEADER_BYTES;
    for (uint32_t i = 0; i < count; i++)
        offsets[i] = (uint8_t)(members[i].offset - moved);
    ASSERT(size <= SMALL_BYTES_MAX);
    b->len = start + size;
}

static void write_large_object(JsonBuilder *b, uint32_t start, const Member *members,
                               uint32_t count, uint32_t depth)
{
    size_t width = b->len - start + 2 * (size_t)count <= OFFSET16_BYTES_MAX ? 2 : 4;
    uint8_t *offsets = make_room(b, width * count);
    if (offsets == NULL)
        return;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t offset = members[i].offset - start;
        memcpy(offsets + i * width, &offset, width);
    }
    b->len += width * count;
    put_large_header(b->ptr + start, TAG_OBJECT_LARGE, depth, b->len - start, count);
}

static void write_object(JsonBuilder *b, uint32_t start, const Member *members, uint32_t count,
                         uint32_t depth)
{
    size_t body = b->len - start - LARGE_HEADER_BYTES;
    if (SMALL_HEADER_BYTES + body + count <= SMALL_BYTES_MAX)
        write_small_object(b, start, members, count, depth);
    else
        write_large_object(b, start, members, count, depth);
}

static int compare_offsets(const void *a, const void *b)
{
    uint32_t x = ((const Member *)a)->offset;
    uint32_t y = ((const Member *)b)->offset;
    return (x > y) - (x < y);
}

/* Of members with one name, keeps the place of the first and the value of the last. 'members' are
 * sorted. Writes the object's members anew and returns how many are left, sorted by their place;
 * '*depth' becomes what they need. */
static uint32_t drop_doubles(JsonBuilder *b, uint32_t start, Member *members, uint32_t count,
                             uint32_t *depth)
{
    uint8_t *base = b->ptr;
    size_t body = b->len - start - LARGE_HEADER_BYTES;
    AUTO(mem_free) void *copy = mem_copy(base + start + LARGE_HEADER_BYTES, body);
    const uint8_t *old = copy;
    uint32_t old_start = start + LARGE_HEADER_BYTES;

    /* Until they are written again, 'prefix' is the position of the value that counts. */
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        Slice name = load_string(base + members[i].offset);
        uint64_t value = (uint64_t)(string_end(name) - base) - old_start;
        if (kept > 0 && slice_equal(name, load_string(base + members[kept - 1].offset)))
            members[kept - 1].prefix = value;
        else
            members[kept++] = (Member){members[i].offset, value};
    }
    qsort(members, kept, sizeof(*members), compare_offsets);

    ASSERT(kept < count);
    *depth = 1;
    b->len = old_start;
    for (uint32_t i = 0; i < kept; i++) {
        const uint8_t *name = old + members[i].offset - old_start;
        const uint8_t *value = old + members[i].prefix;
        size_t name_size = (size_t)(value_end(name) - name);
        size_t value_size = (size_t)(value_end(value) - value);
        members[i].offset = (uint32_t)b->len;
        memcpy(base + b->len, name, name_size);
        memcpy(base + b->len + name_size, value, value_size);
        b->len += name_size + value_size;
        if (value_depth(value) + 1 > *depth)
            *depth = value_depth(value) + 1;
    }
    return kept;
}

static uint32_t sort_and_write(JsonBuilder *b, uint32_t start, Member *members, uint32_t count,
                               uint32_t depth)
{
    for (uint32_t i = 0; i < count; i++)
        members[i].offset = b->names[b->name_count + i];
    Member *scratch = members + count;
    if (UNLIKELY(!members_sort(b->ptr, members, scratch, count))) {
        count = drop_doubles(b, start, members, count, &depth);
        bool distinct = members_sort(b->ptr, members, scratch, count);
        ASSERT(distinct); /* I4 */
    }
    write_object(b, start, members, count, depth);
    return depth;
}

/* Returns the depth of the object: less than 'depth' if its deepest member was dropped. */
static uint32_t end_object(JsonBuilder *b, uint32_t start, uint32_t count, uint32_t depth)
{
    ASSERT(b->name_count >= count);
    b->name_count -= count;
    if (LIKELY(count <= MEMBERS_FEW)) {
        Member few[MEMBERS_FEW];
        return sort_and_write(b, start, few, count, depth);
    }
    /* Not from the arena, where scratch memory would live as long as the document. */
    AUTO(mem_free) void *many = mem_alloc(2 * (size_t)count * sizeof(Member));
    return sort_and_write(b, start, many, count, depth);
}
