/* route.c - see route.h. A filter that compares the partition key, or the first parts of a
 * hierarchical one, with constants leads to one range; everything else to all. */
#include "query/route.h"

/* Whether documents with an equal value have the same hash. Objects and arrays have none, and that
 * of -0 is not that of 0. */
static bool is_hashed(Json value)
{
    return json_is(value, JSON_STRING) || json_is(value, JSON_BOOL) || json_is(value, JSON_NULL) ||
           (json_is(value, JSON_NUMBER) && json_number(value) != 0);
}

void query_route(const Query *query, Arena *arena, const PartitionKeyDefinition *definition,
                 QueryRoute *out)
{
    PartitionKey key = {0};
    size_t fixed = query_fixed(query, arena, definition->paths, definition->path_count, key.parts);
    while (key.count < fixed && is_hashed(key.parts[key.count]))
        key.count++;
    bool is_key = key.count == definition->path_count;
    Error ignored;
    *out = (QueryRoute){.is_all = true};
    if (key.count == 0 || (!is_key && definition->kind != PARTITION_MULTI_HASH) ||
        partition_key_check(definition->kind, &key, &ignored) != STATUS_OK)
        return;
    Epk epk;
    epk_make(definition->kind, &key, &epk);
    char *bytes = arena_alloc(arena, (size_t)epk.len + 1);
    memcpy(bytes, epk.bytes, epk.len);
    bytes[epk.len] = (char)0xFF;
    QueryRange *range = ARENA_NEW(arena, QueryRange);
    *range =
        (QueryRange){slice_make(bytes, epk.len), slice_make(bytes, (size_t)epk.len + 1), is_key};
    *out = (QueryRoute){.ranges = range, .count = 1};
}
