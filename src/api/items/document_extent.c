/* document_extent.c - see document_extent_int.h. */
#include "api/items/document_extent_int.h"

void document_extent_narrow(DocumentExtent *extent, Arena *arena, PartitionKind kind,
                            const PartitionKey *key)
{
    Epk epk;
    epk_make(kind, key, &epk);
    extent->key = *key;
    extent->has_key = true;
    extent->epk_from = arena_copy(arena, epk_slice(&epk));
    extent->epk_to = epk_prefix_end(arena, extent->epk_from);
    extent->is_fine = true;
}

static Status narrow_by_key(const ApiRequest *r, DocumentExtent *extent, bool *found, Error *err)
{
    const PartitionKeyDefinition *definition = &r->container->partition_key;
    PartitionKey key;
    TRY(key_header_parse(r->arena, request_header(r, "x-ms-documentdb-partitionkey"), definition,
                         KEY_PREFIX, &key, found, err));
    if (*found && definition->kind != PARTITION_NONE)
        document_extent_narrow(extent, r->arena, definition->kind, &key);
    return STATUS_OK;
}

/* SDKs say what the ends of a range are; other kinds than EPKs are for other transports. */
static Status check_key_type(const ApiRequest *r, Error *err)
{
    Slice type = slice_trim(request_header(r, "x-ms-read-key-type"));
    if (type.len == 0 || slice_equal_nocase(type, SLICE("EffectivePartitionKeyRange")))
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "x-ms-read-key-type '%.*s' is not supported: only EffectivePartitionKeyRange, "
                     "with hexadecimal x-ms-start-epk and x-ms-end-epk.",
                     SLICE_CUT(type, 60));
}

/* Any range of EPKs, finer or coarser than physical ones. If a physical range is given too, only
 * the part that lies in both. */
static Status narrow_by_range(const ApiRequest *r, DocumentExtent *extent, Error *err)
{
    const PartitionRange *range = NULL;
    bool found = false;
    TRY(check_key_type(r, err));
    TRY(request_range(r, &range, &found, err));
    if (found) {
        extent->epk_from = range->min_bytes;
        extent->epk_to = range->max_bytes;
    }
    Slice from = slice_trim(request_header(r, "x-ms-start-epk"));
    Slice to = slice_trim(request_header(r, "x-ms-end-epk"));
    extent->is_given = found || from.len > 0 || to.len > 0;
    Slice bytes;
    if (from.len > 0) {
        TRY(key_header_parse_epk(r->arena, from, &bytes, err));
        if (slice_compare(bytes, extent->epk_from) > 0) {
            extent->epk_from = bytes;
            extent->is_fine = true;
        }
    }
    if (to.len > 0) {
        TRY(key_header_parse_epk(r->arena, to, &bytes, err));
        if (slice_compare(bytes, extent->epk_to) < 0) {
            extent->epk_to = bytes;
            extent->is_fine = true;
        }
    }
    return STATUS_OK;
}

Status document_extent_read(const ApiRequest *r, DocumentExtent *out, Error *err)
{
    *out = (DocumentExtent){.epk_to = SLICE("\xFF")};
    TRY(narrow_by_key(r, out, &out->is_given, err));
    return out->is_given ? STATUS_OK : narrow_by_range(r, out, err);
}

bool document_extent_overlaps(const PartitionRange *range, Slice from, Slice to)
{
    return slice_compare(range->min_bytes, to) < 0 && slice_compare(from, range->max_bytes) < 0;
}

/* The first range of the route that does not end before the partition decides. */
static bool is_on_route(const QueryRoute *route, const PartitionRange *range)
{
    size_t low = 0;
    size_t high = route->count;
    while (low < high) {
        size_t middle = low + ((high - low) / 2);
        if (slice_compare(route->ranges[middle].to, range->min_bytes) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < route->count &&
           document_extent_overlaps(range, route->ranges[low].from, route->ranges[low].to);
}

bool document_extent_needs(const DocumentExtent *extent, const PartitionRange *range)
{
    return document_extent_overlaps(range, extent->epk_from, extent->epk_to) &&
           (extent->route == NULL || is_on_route(extent->route, range));
}
