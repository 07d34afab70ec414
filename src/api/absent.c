/* absent.c - resources of kinds that there are none of: scripts and users, which this version does
 * not have, and conflicts, which an account with one place to write to never has.
 *
 * SDKs, frameworks and explorers list them as a matter of course and go on if there are none. That
 * a single one is not there is said where paths are resolved (route.c).
 */
#include "api/feed_int.h"

static const ResourceInfo *next_none(const Feed *feed, const Snapshot *snapshot, uint32_t from,
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
    const ResourceInfo *parent = r->container != NULL ? &r->container->info : &r->database->info;
    return (Feed){.parent_rid = parent->rid, .parent = parent->number, .next = next_none};
}

Status absent_list(ApiRequest *r, Error *err)
{
    return feed_list(r, none_of(r), err);
}

Status absent_query(ApiRequest *r, Error *err)
{
    return feed_query(r, none_of(r), err);
}

Status absent_create(ApiRequest *r, Error *err)
{
    Slice segment = resource_segment(r->address.type);
    return error_set(err, STATUS_NOT_IMPLEMENTED, SUB_NONE,
                     "Resources of type '%.*s' cannot be created in this version of orrery.",
                     SLICE_ARG(segment));
}

/* The same rule as for items: clients try without, and expect to be told. */
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
    return absent_query(r, err);
}
