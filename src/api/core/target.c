/* target.c - see target_int.h. */
#include "api/core/target_int.h"

const PartitionRange *target_range(const Container *container, Slice epk)
{
    ASSERT(container->range_count > 0);
    size_t low = 0;
    size_t high = container->range_count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (slice_compare(container->ranges[middle].min_bytes, epk) <= 0)
            low = middle;
        else
            high = middle;
    }
    return &container->ranges[low];
}

Status request_range(const ApiRequest *r, const PartitionRange **out, bool *found, Error *err)
{
    Slice text = slice_trim(request_header(r, "x-ms-documentdb-partitionkeyrangeid"));
    *found = text.len > 0;
    if (!*found)
        return STATUS_OK;
    size_t comma = slice_find(text, ',');
    uint64_t id = 0;
    if (comma < text.len) {
        if (!slice_equal(slice_first(text, comma), r->container->info.rid))
            return error_set(err, STATUS_GONE, SUB_NAME_CACHE_STALE,
                             "The range is of another container than '%.*s'.",
                             SLICE_ARG(r->container->info.rid));
        text = slice_from(text, comma + 1);
    }
    if (!slice_to_u64(text, &id))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "x-ms-documentdb-partitionkeyrangeid '%.*s' is not the id of a range.",
                         SLICE_CUT(text, 60));
    *out = id > UINT32_MAX ? NULL : container_range(r->container, (uint32_t)id);
    if (*out != NULL)
        return STATUS_OK;
    return error_set(err, STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE,
                     "The container has no partition key range '%.*s' (any more).",
                     SLICE_CUT(text, 60));
}

Status request_target(const ApiRequest *r, Target *out, Error *err)
{
    const PartitionKeyDefinition *definition = &r->container->partition_key;
    bool found = false;
    Slice header = request_header(r, "x-ms-documentdb-partitionkey");
    TRY(key_header_parse(r->arena, header, definition, KEY_WHOLE, &out->key, &found, err));
    if (!found && definition->kind != PARTITION_NONE && !definition->system_key)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "PartitionKey value must be supplied for this operation: send "
                         "x-ms-documentdb-partitionkey.");
    if (!found && definition->kind != PARTITION_NONE)
        out->key = (PartitionKey){.count = definition->path_count};
    epk_make(definition->kind, &out->key, &out->epk);
    out->range = target_range(r->container, epk_slice(&out->epk));
    return STATUS_OK;
}
