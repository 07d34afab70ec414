/* quota.c - see quota_int.h.
 *
 *     documentSize     all of it, in MB, rounded down
 *     documentsSize    the items with their keys, in KB
 *     documentsCount   the items; as a quota -1, for no limit
 *     collectionSize   items and index, in KB
 *
 * These are the service's words and units: in its answers, documentSize is always
 * collectionSize divided by 1,024. Items are counted exactly, those included that have expired or
 * were purged and are not removed yet. What the index takes is the store's estimate, without what
 * was written lately.
 */
#include "api/core/quota_int.h"

#define QUOTA_BYTES ((uint64_t)10 << 30)

static unsigned long long kilobytes(uint64_t bytes)
{
    return (bytes + 1023) / 1024;
}

bool quota_is_wanted(const ApiRequest *r)
{
    return request_flag(r, "x-ms-documentdb-populatequotainfo");
}

/* The service tells this of every container, however many partitions it has. An old-style container
 * really has this limit, or the configured one. */
static uint64_t bytes_max_of(const ApiRequest *r, const Container *container)
{
    uint64_t max = container->partition_key.kind == PARTITION_NONE
                       ? catalog_logical_bytes_max(r->api->options.catalog, container->schema)
                       : 0;
    return max != 0 ? max : QUOTA_BYTES;
}

void quota_add(QuotaUsage *usage, const PartitionHandle *partition)
{
    PartitionUsage one = handle_usage(partition);
    usage->items += one.items;
    usage->bytes += one.bytes;
    usage->index_bytes += handle_index_bytes(partition);
}

static void put_headers(const ApiRequest *r, Response *response, uint64_t bytes_max,
                        const QuotaUsage *usage, Slice scripts)
{
    unsigned long long quota = kilobytes(bytes_max);
    unsigned long long used = kilobytes(usage->bytes + usage->index_bytes);
    response_header(response, SLICE("x-ms-resource-quota"),
                    arena_format(r->arena,
                                 "documentSize=%llu;documentsSize=%llu;documentsCount=-1;"
                                 "collectionSize=%llu;",
                                 quota / 1024, quota, quota));
    response_header(response, SLICE("x-ms-resource-usage"),
                    arena_format(r->arena,
                                 "%.*sdocumentSize=%llu;documentsSize=%llu;documentsCount=%llu;"
                                 "collectionSize=%llu;",
                                 SLICE_ARG(scripts), used / 1024, kilobytes(usage->bytes),
                                 (unsigned long long)usage->items, used));
}

void quota_headers(const ApiRequest *r, Response *response, const Container *container,
                   const PartitionRange *ranges, size_t count, Slice scripts)
{
    QuotaUsage usage = {0};
    for (size_t i = 0; i < count; i++)
        quota_add(&usage, container_handle(container, &ranges[i]));
    put_headers(r, response, bytes_max_of(r, container), &usage, scripts);
}

void quota_headers_of(const ApiRequest *r, Response *response, const Container *container,
                      const QuotaUsage *usage, Slice scripts)
{
    put_headers(r, response, bytes_max_of(r, container), usage, scripts);
}
