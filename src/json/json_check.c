/* json_check.c - json_open: whether bytes from outside are a document, see format_int.h.
 *
 * Everything that the readers rely on is checked, and also that each value has the one encoding
 * that the writer would have chosen: so that equal values have equal bytes (I1, I2), and more
 * of the bits that flip on a disk are found. What the offsets of an object must be is found as the
 * writer does it, by sorting its names.
 */
#include "base/mem.h"
#include "json/format_int.h"
#include "json/members_int.h"

typedef struct Check {
    const uint8_t *start; /* of the document, to say where it is wrong */
    Error *err;
} Check;

static Status check_value(const Check *check, const uint8_t *at, const uint8_t *end,
                          uint32_t depth_max, const uint8_t **next);

static Status wrong(const Check *check, const uint8_t *at, const char *what)
{
    return error_set(check->err, STATUS_CORRUPT, SUB_NONE,
                     "stored document is damaged at byte %zu: %s", (size_t)(at - check->start),
                     what);
}

Status json_open(Slice bytes, Json *out, Error *err)
{
    const uint8_t *start = (const uint8_t *)bytes.ptr;
    Check check = {start, err};
    if (bytes.len < 2)
        return wrong(&check, start, "too short");
    if (start[0] != FORMAT_VERSION)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "stored document has version %u, expected %u", start[0], FORMAT_VERSION);
    const uint8_t *next = NULL;
    TRY(check_value(&check, start + 1, start + bytes.len, JSON_DEPTH_MAX, &next));
    if (next != start + bytes.len)
        return wrong(&check, next, "bytes after its end");
    ASSERT(value_depth(start + 1) <= JSON_DEPTH_MAX); /* I5 */
    *out = (Json){start + 1};
    return STATUS_OK;
}

static Status check_string(const Check *check, const uint8_t *at, const uint8_t *end,
                           const uint8_t **next)
{
    size_t left = (size_t)(end - at);
    size_t header = 1;
    if (at[0] < TAG_STRING_SHORT)
        header += at[0] == TAG_STRING8 ? 1 : at[0] == TAG_STRING16 ? 2 : 4;
    if (left < header)
        return wrong(check, at, "string is cut off");
    Slice text = load_string(at);
    if (text.len > left - header)
        return wrong(check, at, "string is longer than what holds it");
    size_t len_min = header == 1   ? 0
                     : header == 2 ? STRING_SHORT_MAX + 1u
                     : header == 3 ? UINT8_MAX + 1u
                                   : UINT16_MAX + 1u;
    if (text.len < len_min)
        return wrong(check, at, "string is not in its shortest form");
    if (!json_utf8_valid(text))
        return wrong(check, at, "string is not UTF-8");
    *next = string_end(text);
    return STATUS_OK;
}

static bool double_is_canonical(uint64_t bits, double value)
{
    if (value != value)
        return bits == NAN_BITS;
    if (value >= -0x1p63 && value < 0x1p63 && (double)(int64_t)value == value)
        return bits == UINT64_C(1) << 63;
    return true;
}

/* A scalar that is not a string; its size is in JSON_TAG_SIZES. */
static Status check_scalar(const Check *check, const uint8_t *at, const uint8_t *end,
                           const uint8_t **next)
{
    size_t size = JSON_TAG_SIZES[at[0]];
    if ((size_t)(end - at) < size)
        return wrong(check, at, "number is cut off");
    if (at[0] == TAG_DOUBLE && !double_is_canonical(load_u64(at + 1), load_double(at)))
        return wrong(check, at, "double is not in its one form");
    if (tag_is_integer(at[0]) && at[0] >= TAG_I8) {
        int64_t value = load_integer(at);
        bool shorter = (value >= 0 && value <= TAG_INT_SMALL_MAX) ||
                       (at[0] > TAG_I8 && value == (int8_t)value) ||
                       (at[0] > TAG_I16 && value == (int16_t)value) ||
                       (at[0] > TAG_I32 && value == (int32_t)value);
        if (shorter)
            return wrong(check, at, "integer is not in its shortest form");
    }
    *next = at + size;
    return STATUS_OK;
}

/* The header: that the size is within bounds, the offsets inside it, and the depth possible. */
static Status check_header(const Check *check, const uint8_t *at, const uint8_t *end,
                           uint32_t depth_max, Container *out)
{
    bool small = at[0] == TAG_ARRAY_SMALL || at[0] == TAG_OBJECT_SMALL;
    size_t header = small ? SMALL_HEADER_BYTES : LARGE_HEADER_BYTES;
    size_t left = (size_t)(end - at);
    if (left < header)
        return wrong(check, at, "array or object is cut off");
    uint32_t size = small ? at[2] : load_u32(at + 2);
    uint32_t count = small ? at[3] : load_u32(at + 6);
    if (size < header || size > left)
        return wrong(check, at, "array or object is longer than what holds it");
    bool is_object = at[0] >= TAG_OBJECT_SMALL;
    uint64_t offsets = is_object ? (uint64_t)count * offset_width(at[0], size) : 0;
    if (offsets > size - header)
        return wrong(check, at, "object has no room for its members");
    if (at[1] == 0 || at[1] > depth_max)
        return wrong(check, at, "array or object has an impossible depth");
    size_t body = size - header - offsets;
    if (!small && SMALL_HEADER_BYTES + body + (is_object ? count : 0) <= SMALL_BYTES_MAX)
        return wrong(check, at, "array or object is not in its small form");
    if (is_object && size > OFFSET16_BYTES_MAX && size - 2 * (uint64_t)count <= OFFSET16_BYTES_MAX)
        return wrong(check, at, "object has wider offsets than it needs");
    *out = load_container(at);
    return STATUS_OK;
}

static Status check_offsets(const Check *check, const Container *object, Member *members)
{
    if (!members_sort(object->at, members, members + object->count, object->count))
        return wrong(check, object->at, "object has a name twice");
    for (uint32_t i = 0; i < object->count; i++) {
        if (name_at(object, i) != object->at + members[i].offset)
            return wrong(check, object->at, "offsets of an object are not in the order of names");
    }
    return STATUS_OK;
}

/* Walks the body. 'members' has room for all names of an object and is NULL for an array. */
static Status check_body(const Check *check, const Container *c, Member *members)
{
    const uint8_t *end = c->is_object ? c->offsets : c->at + c->size;
    const uint8_t *at = c->body;
    uint32_t depth = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->is_object) {
            if (at == end || JSON_TAG_TYPES[at[0]] != JSON_STRING)
                return wrong(check, at, "name of a member expected");
            const uint8_t *name = at;
            TRY(check_string(check, at, end, &at));
            members[i].offset = (uint32_t)(name - c->at);
        }
        const uint8_t *value = at;
        TRY(check_value(check, at, end, c->at[1] - 1u, &at));
        if (value_depth(value) > depth)
            depth = value_depth(value);
    }
    if (at != end)
        return wrong(check, at, "array or object has bytes after its last value");
    if (c->at[1] != depth + 1)
        return wrong(check, c->at, "array or object has a wrong depth");
    return c->is_object ? check_offsets(check, c, members) : STATUS_OK;
}

static Status check_container(const Check *check, const uint8_t *at, const uint8_t *end,
                              uint32_t depth_max, const uint8_t **next)
{
    Container c;
    TRY(check_header(check, at, end, depth_max, &c));
    if (c.is_object && c.count > MEMBERS_FEW) {
        AUTO(mem_free) void *many = mem_alloc(2 * (size_t)c.count * sizeof(Member));
        TRY(check_body(check, &c, many));
    } else {
        Member few[MEMBERS_FEW];
        TRY(check_body(check, &c, few));
    }
    *next = at + c.size;
    return STATUS_OK;
}

static Status check_value(const Check *check, const uint8_t *at, const uint8_t *end,
                          uint32_t depth_max, const uint8_t **next)
{
    if (at == end)
        return wrong(check, at, "value expected");
    switch ((JsonType)JSON_TAG_TYPES[at[0]]) {
    case JSON_NULL:
    case JSON_BOOL:
    case JSON_NUMBER:
        return check_scalar(check, at, end, next);
    case JSON_STRING:
        return check_string(check, at, end, next);
    case JSON_ARRAY:
    case JSON_OBJECT:
        return check_container(check, at, end, depth_max, next);
    case JSON_UNDEFINED:
        break;
    }
    return wrong(check, at, "tag of no value");
}
