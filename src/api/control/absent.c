/* absent.c - kinds of resources that do not exist here: conflicts, which an account with one write
 * region never has.
 *
 * SDKs, frameworks and explorers list them and go on if the list is empty. A path that names a
 * single one is answered 404 when it is resolved (resolve.c).
 */
#include "api/control/feed_int.h"
#include "api/control/resource_handlers_int.h"

static const WireResource *next_none(const Feed *feed, const Snapshot *snapshot, uint32_t from,
                                     Arena *arena)
{
    (void)feed;
    (void)snapshot;
    (void)from;
    (void)arena;
    return NULL;
}

static Feed none_of(const ApiRequest *r)
{
    const ResourceInfo *parent = &r->container->info;
    return (Feed){.parent_rid = parent->rid, .parent = parent->number, .next = next_none};
}

Status absent_list(ApiRequest *r, Error *err)
{
    return feed_list(r, none_of(r), err);
}

/* The same rule as for items: clients try without the header, and expect this refusal. */
Status conflicts_query(ApiRequest *r, Error *err)
{
    bool is_whole = request_header(r, "x-ms-documentdb-partitionkey").len == 0 &&
                    request_header(r, "x-ms-documentdb-partitionkeyrangeid").len == 0;
    if (is_whole && r->container->partition_key.kind != PARTITION_NONE &&
        !request_flag(r, "x-ms-documentdb-query-enablecrosspartition"))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Cross partition query is required but disabled. Please set "
                         "x-ms-documentdb-query-enablecrosspartition to true, or specify "
                         "x-ms-documentdb-partitionkey.");
    return feed_query(r, none_of(r), err);
}
