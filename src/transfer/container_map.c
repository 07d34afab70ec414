/* container_map.c - see container_map.h. */
#include "transfer/container_map.h"

#include "base/encoding.h"

#include <stdlib.h>

static Status unusable(const char *what, Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "the server's answer has no good '%s'; does it speak the protocol?", what);
}

/* ---- the partition key ---- */

static PartitionKind kind_of(Json key)
{
    Json kind = json_get(key, SLICE("kind"));
    int64_t version = 1;
    (void)json_to_i64(json_get(key, SLICE("version")), &version); /* 1 if it does not say */
    if (json_is(kind, JSON_STRING) && slice_equal(json_string(kind), SLICE("MultiHash")))
        return PARTITION_MULTI_HASH;
    return version == 2 ? PARTITION_HASH_V2 : PARTITION_HASH_V1;
}

Status container_key_parse(Arena *arena, Json container, PartitionKeyDefinition *out, Error *err)
{
    PartitionKeyDefinition definition = {.kind = PARTITION_NONE};
    Json key = json_get(container, SLICE("partitionKey"));
    if (!json_is(json_get(container, SLICE("id")), JSON_STRING))
        return unusable("id", err);
    if (json_is(key, JSON_UNDEFINED)) {
        *out = definition;
        return STATUS_OK;
    }
    Json paths = json_get(key, SLICE("paths"));
    if (!json_is(paths, JSON_ARRAY) || json_count(paths) == 0 ||
        json_count(paths) > PARTITION_KEY_PATHS_MAX)
        return unusable("partitionKey", err);
    definition.kind = kind_of(key);
    JsonIter it = json_iter(paths);
    while (json_next(&it)) {
        size_t position = 0;
        if (!json_is(it.value, JSON_STRING) ||
            !property_path_parse(arena, json_string(it.value),
                                 &definition.paths[definition.path_count], &position))
            return unusable("partitionKey", err);
        definition.path_count++;
    }
    if (definition.path_count > 1 && definition.kind != PARTITION_MULTI_HASH)
        return unusable("partitionKey", err);
    *out = definition;
    return STATUS_OK;
}

void container_epk_print(const Epk *epk, Buf *out)
{
    char text[2 * EPK_BYTES_MAX];
    hex_encode(epk->bytes, epk->len, text);
    buf_bytes(out, text, (size_t)epk->len * 2);
}

/* One character of UTF-8, which is known to be valid, as one or two escapes. */
static size_t escape_character(Slice text, Buf *out)
{
    const uint8_t *b = (const uint8_t *)text.ptr;
    uint32_t code = b[0] >= 0xf0 ? (b[0] & 0x07U) << 18 | (b[1] & 0x3fU) << 12 |
                                       (b[2] & 0x3fU) << 6 | (b[3] & 0x3fU)
                    : b[0] >= 0xe0 ? (b[0] & 0x0fU) << 12 | (b[1] & 0x3fU) << 6 | (b[2] & 0x3fU)
                                   : (b[0] & 0x1fU) << 6 | (b[1] & 0x3fU);
    if (code >= 0x10000)
        buf_format(out, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
                   0xdc00 + ((code - 0x10000) & 0x3ff));
    else
        buf_format(out, "\\u%04x", code);
    return b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : 2;
}

static void print_part(Json part, KeyText form, Buf *out)
{
    if (json_is(part, JSON_UNDEFINED)) {
        buf_slice(out, SLICE("{}"));
        return;
    }
    if (form == KEY_TEXT_UTF8) {
        json_print(part, out);
        return;
    }
    AUTO(buf_done) Buf plain;
    buf_init(&plain, 8 * PARTITION_KEY_BYTES_MAX);
    json_print(part, &plain);
    Slice text = buf_view(&plain);
    while (text.len > 0) {
        size_t taken = 1;
        if (((uint8_t)text.ptr[0] & 0x80) != 0)
            taken = escape_character(text, out);
        else
            buf_byte(out, (uint8_t)text.ptr[0]);
        text = slice_from(text, taken);
    }
}

void container_key_print(const PartitionKey *key, KeyText form, Buf *out)
{
    buf_byte(out, '[');
    for (size_t i = 0; i < key->count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        print_part(key->parts[i], form, out);
    }
    buf_byte(out, ']');
}

/* ---- ranges ---- */

static int by_min(const void *a, const void *b)
{
    return slice_compare(((const MapRange *)a)->min, ((const MapRange *)b)->min);
}

static bool text_of(Json object, Slice name, Slice *out)
{
    Json value = json_get(object, name);
    *out = json_is(value, JSON_STRING) ? json_string(value) : SLICE_EMPTY;
    return json_is(value, JSON_STRING);
}

static bool is_parent(Json list, Slice id)
{
    JsonIter it = json_iter(list);
    while (json_next(&it)) {
        JsonIter parent = json_iter(json_get(it.value, SLICE("parents")));
        while (json_next(&parent)) {
            if (json_is(parent.value, JSON_STRING) && slice_equal(json_string(parent.value), id))
                return true;
        }
    }
    return false;
}

Status container_map_parse(Arena *arena, Json feed, ContainerMap *out, Error *err)
{
    Json list = json_get(feed, SLICE("PartitionKeyRanges"));
    if (!json_is(list, JSON_ARRAY) || json_count(list) > MAP_RANGES_MAX)
        return unusable("PartitionKeyRanges", err);
    ContainerMap map = {.ranges = ARENA_NEW_ARRAY(arena, MapRange, json_count(list) + 1)};
    JsonIter it = json_iter(list);
    while (json_next(&it)) {
        MapRange *range = &map.ranges[map.count];
        if (!text_of(it.value, SLICE("id"), &range->id) ||
            !text_of(it.value, SLICE("minInclusive"), &range->min) ||
            !text_of(it.value, SLICE("maxExclusive"), &range->max) || range->id.len == 0 ||
            slice_find(range->id, '\n') < range->id.len ||
            slice_find(range->id, '\r') < range->id.len)
            return unusable("PartitionKeyRanges", err);
        map.count += is_parent(list, range->id) ? 0 : 1;
    }
    qsort(map.ranges, map.count, sizeof(MapRange), by_min);
    Slice at = SLICE("");
    for (size_t i = 0; i < map.count; i++) {
        if (!slice_equal(map.ranges[i].min, at) || slice_compare(at, map.ranges[i].max) >= 0)
            return unusable("PartitionKeyRanges without gaps", err);
        at = map.ranges[i].max;
    }
    if (!slice_equal(at, SLICE("FF")))
        return unusable("PartitionKeyRanges without gaps", err);
    *out = map;
    return STATUS_OK;
}

const MapRange *container_map_find(const ContainerMap *map, Slice epk)
{
    ASSERT(map->count > 0);
    size_t low = 0;
    size_t high = map->count; /* the last range that begins at or before it is in [low, high) */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(map->ranges[middle].min, epk) <= 0)
            low = middle;
        else
            high = middle;
    }
    return &map->ranges[low];
}
