/* feed_int.h - lists and queries of the catalogue's resources, page by page.
 *
 * A list's continuation token holds the number of the next resource, so a page costs what it
 * returns, and what was not deleted in between is returned exactly once. The token of a query does
 * so too, unless the query sorts, groups or counts: then it holds how many results were returned.
 */
#pragma once

#include "api/core/request_int.h"
#include "api/core/wire_int.h"

/* The resource with the smallest number >= 'from' among the children of the feed's parent, or NULL.
 * It may be made in 'arena'. */
typedef struct Feed Feed;
typedef const WireResource *(*FeedNext)(const Feed *feed, const Snapshot *snapshot, uint32_t from,
                                        Arena *arena);

struct Feed {
    Slice parent_rid;          /* empty for the feeds of the account */
    uint32_t parent;           /* number, 0 for the account */
    Catalog *catalog;          /* for what is not in a snapshot; NULL if nothing is needed */
    uint64_t now_us;           /* monotonic, for what changes by itself */
    bool is_old_client;        /* see VERSION_PARTITION_KEY_REQUIRED */
    StoredScriptGroup scripts; /* of a feed of scripts */
    UserKey owner;             /* of a feed of permissions */
    WireTokens tokens;         /* that its permissions show */
    WirePart part; /* what a page needs of each resource, for those that are made for it */
    FeedNext next;
};

Status feed_list(ApiRequest *r, Feed feed, Error *err);

/* Runs on a worker: a query looks at every resource of the feed. */
Status feed_query(ApiRequest *r, Feed feed, Error *err);

/* Sends a page; '*documents' holds the resources' bodies, separated by commas, and is taken over.
 * 'continuation' is empty on the last page, 'etag' where the feed has none. */
void feed_send(ApiRequest *r, Slice parent_rid, Buf *documents, size_t count, Slice continuation,
               Slice etag, Slice charge);
