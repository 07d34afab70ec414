/* address.c - see address.h. */
#include "api/core/address.h"

#include "base/encoding.h"
#include "json/json.h"

static const struct {
    Slice segment;
    Slice feed;
    ResourceType parent;
} RESOURCES[] = {
#define RESOURCE_ROW(name, segment, feed, parent) \
    [RESOURCE_##name] = {SLICE_INIT(segment), SLICE_INIT(feed), RESOURCE_##parent},
#include "api/core/resources.def"
#undef RESOURCE_ROW
};

/* The segments of a path, raw and decoded, without empty ones. */
enum { SEGMENTS_MAX = 2 * ADDRESS_PARTS_MAX + 1 };
typedef struct Segments {
    Slice raw[SEGMENTS_MAX];
    Slice decoded[SEGMENTS_MAX];
    size_t count;
} Segments;

Slice address_segment(ResourceType type)
{
    return RESOURCES[type].segment;
}

Slice address_feed_name(ResourceType type)
{
    return RESOURCES[type].feed;
}

static Status split(Arena *arena, Slice path, Segments *out, Error *err)
{
    out->count = 0;
    Slice rest = path;
    while (rest.ptr != NULL) {
        Slice raw = slice_cut(&rest, '/');
        if (raw.len == 0)
            continue;
        if (out->count == SEGMENTS_MAX)
            return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                             "The path has more segments than any resource: '%.*s'.",
                             SLICE_CUT(path, 200));
        if (!percent_decode(arena, raw, &out->decoded[out->count]))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "The path has a '%%' that is not followed by two hexadecimal digits: "
                             "'%.*s'.",
                             SLICE_CUT(raw, 200));
        if (!json_utf8_valid(out->decoded[out->count]))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "The path is not UTF-8 after its '%%' are decoded: '%.*s'.",
                             SLICE_CUT(raw, 200));
        out->raw[out->count++] = raw;
    }
    return STATUS_OK;
}

static bool find_type(Slice segment, ResourceType parent, ResourceType *out)
{
    for (size_t i = RESOURCE_ACCOUNT + 1; i < RESOURCE_COUNT; i++) {
        if (RESOURCES[i].parent == parent && slice_equal_nocase(RESOURCES[i].segment, segment)) {
            *out = (ResourceType)i;
            return true;
        }
    }
    return false;
}

/* The first 'count' segments with one slash between them. In the usual case they already stand
 * like that in the path and nothing is copied. */
static Slice join(Arena *arena, const Slice *segments, size_t count)
{
    if (count == 0)
        return SLICE_EMPTY;
    bool contiguous = true;
    size_t len = segments[0].len;
    for (size_t i = 1; i < count; i++) {
        contiguous = contiguous && segments[i].ptr == segments[i - 1].ptr + segments[i - 1].len + 1;
        len += 1 + segments[i].len;
    }
    if (contiguous)
        return slice_make(segments[0].ptr, len);
    char *text = arena_alloc(arena, len);
    char *at = text;
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            *at++ = '/';
        memcpy(at, segments[i].ptr, segments[i].len);
        at += segments[i].len;
    }
    return slice_make(text, len);
}

Status address_parse(Arena *arena, Slice path, Address *out, Error *err)
{
    if (path.len > ADDRESS_BYTES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The path has %zu bytes; at most %zu are accepted.", path.len,
                         ADDRESS_BYTES_MAX);
    Segments segments;
    TRY(split(arena, path, &segments, err));
    Address address = {.type = RESOURCE_ACCOUNT};
    for (size_t i = 0; i < segments.count; i++) {
        Slice name = segments.decoded[i];
        /* {container}/operations/{name} stands for the container itself. */
        if (address.type == RESOURCE_CONTAINER && segments.count == i + 2 &&
            slice_equal_nocase(name, SLICE("operations"))) {
            address.operation = segments.decoded[i + 1];
            segments.count = i;
            break;
        }
        ResourceType type;
        if (!find_type(name, address.type, &type))
            return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                             "The path '%.*s' names no resource: '%.*s' is not expected there.",
                             SLICE_CUT(path, 160), SLICE_CUT(name, 80));
        address.type = type;
        address.is_feed = ++i == segments.count;
        if (!address.is_feed) {
            ASSERT(address.part_count < ADDRESS_PARTS_MAX);
            address.parts[address.part_count].type = type;
            address.parts[address.part_count++].id = segments.decoded[i];
        }
    }
    size_t linked = address.is_feed ? segments.count - 1 : segments.count;
    address.link = join(arena, segments.decoded, linked);
    address.link_raw = join(arena, segments.raw, linked);
    *out = address;
    return STATUS_OK;
}
