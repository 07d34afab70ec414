/* partition_key_header.c - see partition_key_header_int.h. */
#include "api/core/partition_key_header_int.h"

#include "base/encoding.h"

enum { HEADER_BYTES_MAX = 16 << 10 };

/* Clients and their tests look for this text. */
#define PARTITION_KEY_MISMATCH                                                             \
    "Partition key provided either doesn't correspond to definition in the collection or " \
    "doesn't match partition key field values specified in the document."

static Status refuse(Slice header, const char *why, Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "The partition key header x-ms-documentdb-partitionkey %s: '%.*s'.", why,
                     SLICE_CUT(header, 120));
}

/* The sub-status makes SDKs read the container's definition again and try once more: a key with
 * another number of values was made for another definition. */
static Status refuse_count(Slice header, size_t count, const PartitionKeyDefinition *definition,
                           Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_PARTITION_KEY_MISMATCH,
                     PARTITION_KEY_MISMATCH " The header x-ms-documentdb-partitionkey has %zu "
                                            "values, the container's key %zu paths: '%.*s'.",
                     count, definition->path_count, SLICE_CUT(header, 120));
}

Status key_header_parse(Arena *arena, Slice header, const PartitionKeyDefinition *definition,
                        KeyExtent extent, PartitionKey *out, bool *found, Error *err)
{
    *found = header.len > 0;
    out->count = 0;
    if (header.len == 0 || definition->kind == PARTITION_NONE)
        return STATUS_OK;
    Json list;
    if (header.len > HEADER_BYTES_MAX || json_parse(arena, header, &list, err) != STATUS_OK ||
        !json_is(list, JSON_ARRAY))
        return refuse(header, "must be a JSON array with one value per path", err);
    size_t count = json_count(list);
    if (count == 0 && definition->system_key) {
        out->parts[out->count++] = JSON_NONE;
        return STATUS_OK;
    }
    if (count > definition->path_count)
        return refuse_count(header, count, definition, err);
    bool is_prefix_allowed =
        extent == KEY_PREFIX && definition->kind == PARTITION_MULTI_HASH && count > 0;
    if (count < definition->path_count && !is_prefix_allowed)
        return refuse_count(header, count, definition, err);
    JsonIter it = json_iter(list);
    while (json_next(&it)) {
        bool is_none = json_is(it.value, JSON_OBJECT) && json_count(it.value) == 0;
        if (json_is(it.value, JSON_ARRAY) || (json_is(it.value, JSON_OBJECT) && !is_none))
            return refuse(header, "may hold strings, numbers, booleans, null and {}", err);
        out->parts[out->count++] = is_none ? JSON_NONE : it.value;
    }
    return partition_key_check(out, err);
}

bool key_header_values(Arena *arena, Slice header, PartitionKey *out)
{
    Json list;
    Error ignored;
    out->count = 0;
    if (header.len > HEADER_BYTES_MAX || json_parse(arena, header, &list, &ignored) != STATUS_OK ||
        !json_is(list, JSON_ARRAY) || json_count(list) > PARTITION_KEY_PARTS_MAX)
        return false;
    for (JsonIter it = json_iter(list); json_next(&it);) {
        bool is_none = json_is(it.value, JSON_OBJECT) && json_count(it.value) == 0;
        if (json_is(it.value, JSON_ARRAY) || (json_is(it.value, JSON_OBJECT) && !is_none))
            return false;
        out->parts[out->count++] = is_none ? JSON_NONE : it.value;
    }
    return partition_key_check(out, &ignored) == STATUS_OK;
}

Status key_header_match(const PartitionKey *header, const PartitionKey *document, Error *err)
{
    if (partition_key_equal(header, document))
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_PARTITION_KEY_MISMATCH,
                     "PartitionKey extracted from document doesn't match the one specified in the "
                     "header. " PARTITION_KEY_MISMATCH);
}

Status key_header_parse_epk(Arena *arena, Slice text, Slice *out, Error *err)
{
    uint8_t *bytes = arena_alloc(arena, EPK_BYTES_MAX);
    size_t len = 0;
    if (!hex_decode(text, bytes, EPK_BYTES_MAX, &len))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'%.*s' is not an effective partition key: expected an even number of "
                         "hexadecimal digits.",
                         SLICE_CUT(text, 80));
    *out = slice_make(bytes, len);
    return STATUS_OK;
}
