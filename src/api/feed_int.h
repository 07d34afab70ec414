/* feed_int.h - lists and queries of the catalogue's resources, page by page.
 *
 * A list's continuation token holds the number of the next resource, so a page costs what it
 * returns, and what was not deleted in between is returned exactly once. So does that of a query,
 * unless it sorts, groups or counts: then it holds how many results were returned.
 */
#pragma once

#include "api/request_int.h"

/* The resource with the smallest number >= 'from' among the children of the feed's parent, or NULL.
 * It may be made for the occasion, in 'arena'. */
typedef struct Feed Feed;
typedef const ResourceInfo *(*FeedNext)(const Feed *feed, const Snapshot *snapshot, uint32_t from,
                                        Arena *arena);

struct Feed {
    Slice parent_rid;   /* empty for the feeds of the account */
    uint32_t parent;    /* number, 0 for the account */
    Catalog *catalog;   /* of what is not in a snapshot; NULL where nothing is */
    uint64_t now_us;    /* monotonic: of what changes by itself */
    bool is_old_client; /* see VERSION_PARTITION_KEY_REQUIRED */
    FeedNext next;
};

Status feed_list(ApiRequest *r, Feed feed, Error *err);

/* Answers from a worker: a query looks at every resource of the feed. */
Status feed_query(ApiRequest *r, Feed feed, Error *err);

/* Sends a page; '*documents' holds the resources' bodies, separated by commas, and is taken over.
 * 'continuation' is empty on the last page, 'etag' where the feed has none. */
void feed_send(ApiRequest *r, Slice parent_rid, Buf *documents, size_t count, Slice continuation,
               Slice etag, Slice charge);
