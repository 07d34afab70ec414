/* request_int.h - one request on its way through the api: what the handlers see.
 *
 * Everything is in the request's arena. After a handler has deferred its answer, the slices of the
 * HTTP request are gone; what is in this struct stays, because it was copied or decoded.
 */
#pragma once

#include "api/address.h"
#include "api/api.h"

#include "api/sizes_cache_int.h"
#include "partition/key.h"
#include "query/query.h"
#include "throughput/top.h"
#include <pthread.h>

#define BODY_BYTES_MAX ((size_t)2 << 20) /* of a request, as the service has it */
#define PAGE_BYTES_MAX ((size_t)4 << 20) /* of a feed's page */

/* Of one item as it is sent, which may be several times as long as it came in: 1e20 is printed with
 * all its digits. */
#define ITEM_TEXT_BYTES_MAX ((size_t)16 << 20)

#define PAGE_ITEMS_DEFAULT 100

/* What a query may hold for one page. Only some pages at a time may hold much: see query_memory. */
#define QUERY_BYTES_MAX ((size_t)256 << 20)

/* A query in a longer body is read on a worker: this much is parsed in less than a millisecond, the
 * most that a query may have in some hundreds. */
#define LOOP_QUERY_BYTES_MAX ((size_t)4 << 10)

/* API versions from which something is different, as the dates that name them. */
#define VERSION_PARTITION_KEY_REQUIRED 20181231

/* What one page of items may look at. An item that has expired, or that a query does not want,
 * comes to nothing and takes time all the same. */
typedef struct PageLimits {
    uint64_t entries_max; /* as many of the smallest items fill a page */
    uint64_t us_max;
    uint64_t brief_us; /* of a query on the loop, while others wait; 0: none runs there */
} PageLimits;

#define USAGE_LOOPS_MAX 256

typedef struct ApiLoop ApiLoop;

struct Api {
    ApiOptions options; /* immutable after open */
    PageLimits limits;
    QueryMemory query_memory; /* shared by the pages on workers */
    Arena arena;
    pthread_mutex_t loops_lock; /* guards 'loops' */
    ApiLoop *loops;
    HashKey top_key;
    SizesCache sizes;
    struct Chaos *chaos; /* see chaos_int.h; NULL: none, and nobody can ask for it */

    /* The sketches of each loop that has ever been opened, see usage_int.h: atomic. */
    _Atomic uint32_t top_count;
    _Atomic(Top *) tops[USAGE_LOOPS_MAX];
};

/* What the loop's own queries take at once; so much is kept for the next one. */
#define LOOP_QUERY_ARENA_BYTES ((size_t)32 << 10)

/* What the api keeps per loop: the loop's thread only. */
struct ApiLoop {
    Api *api;
    CatalogReader reader;
    Buf text;                /* an item's body while it is sent */
    Arena brief;             /* of a query that runs on the loop, while it does */
    uint32_t brief_failures; /* see tries_briefly() */
    uint32_t brief_skips;
    Top *top; /* the Api's */
    Buf name; /* of a key while it is printed */

    ApiLoop *next; /* the Api's list */
    HttpLoop *http;
    HttpTask refresh;
    _Atomic bool is_refreshing; /* the task is under way */
};

/* What a request does to a resource type; routes are (type, operation) pairs. */
typedef enum Operation {
    OPERATION_LIST,
    OPERATION_CREATE,
    OPERATION_QUERY,
    OPERATION_READ,
    OPERATION_REPLACE,
    OPERATION_PATCH,
    OPERATION_DELETE,
    OPERATION_EXECUTE,
    OPERATION_COUNT
} Operation;

/* The logical partition that a request is about, if it is one: see usage_int.h. */
typedef struct UsageKey {
    bool is_known;
    uint32_t container; /* number */
    PartitionKey key;
    Slice epk;
} UsageKey;

typedef struct ApiRequest {
    HttpRequest *http;
    Api *api;
    ApiLoop *loop;
    Arena *arena;
    Slice activity_id; /* in the arena */
    Slice origin;      /* of a page that may read the answer: CORS headers; in the arena */
    bool is_head;
    bool is_past_chaos; /* it was delayed, and has met all that it is to meet */
    uint32_t version;   /* 20200715 for 2020-07-15 */
    Address address;
    Operation operation;
    const struct OrreryKind *page; /* what is asked under /_orrery */
    Snapshot *snapshot;            /* the loop's; valid until the handler returns */
    const Database *database;      /* what the path names, as far as it exists */
    const Container *container;
    const Offer *offer;
    const EncryptionKey *key;
    int64_t now_s;     /* when it was authorised, by the wall clock */
    BudgetClass class; /* how it stands to budgets: see throttle_int.h */
    UsageKey usage;
    const PartitionRange *refused_by; /* that had nothing left for it; valid while it is answered */
    bool is_strong; /* reads are as at Strong or BoundedStaleness, and cost as much */
    struct RequestBody
        *body;        /* that was read on a worker, see request_body_int.h; NULL: none was */
    Slice error_info; /* what a failure says in "additionalErrorInfo"; empty: nothing */
} ApiRequest;

/* A handler answers (respond_int.h), or defers its answer, or fails before it has done either. */
typedef Status (*Handler)(ApiRequest *r, Error *err);

/* Headers of the request; valid until the handler returns. */
Slice request_header(const ApiRequest *r, const char *name);
bool request_flag(const ApiRequest *r, const char *name); /* present and true, in any case */

/* Whether the request may do what it asks for; 'takes_bearer': also if it shows a key as it is. */
MUST_USE Status request_authorise(ApiRequest *r, bool takes_bearer, Error *err);

/* The slices of the HTTP request are gone when the handler returns; this makes copies of them. */
void request_keep(ApiRequest *r);

/* Begins anew, on its loop, with a request whose slices were kept, and answers it. */
void request_again(ApiRequest *r);

/* x-ms-max-item-count: UINT32_MAX for -1, PAGE_ITEMS_DEFAULT if it is absent. 0 asks for a page
 * without items, as Java's SDK does for TOP 0. */
MUST_USE Status request_max_items(const ApiRequest *r, uint32_t *out, Error *err);

/* STATUS_TOO_LARGE if the body has more than BODY_BYTES_MAX. */
MUST_USE Status request_check_size(const ApiRequest *r, Error *err);

/* Where the path was asked for, as clients are to reach it: a whole URL, in the arena. */
MUST_USE Status request_location(const ApiRequest *r, Slice *out, Error *err);

/* The body as a document in the request's arena; it must be an object. */
MUST_USE Status request_json(const ApiRequest *r, Json *out, Error *err);

/* 'incrementPercent' of autoscale settings; 0 if there is none. */
MUST_USE Status request_increment(Json settings, uint32_t *percent, Error *err);

/* x-ms-offer-throughput or x-ms-cosmos-offer-autopilot-settings. */
MUST_USE Status request_provision(const ApiRequest *r, bool *has, Provision *out, Error *err);

/* The handlers, one file per resource type. */
Status account_read(ApiRequest *r, Error *err);
Status databases_list(ApiRequest *r, Error *err);
Status databases_query(ApiRequest *r, Error *err);
Status databases_create(ApiRequest *r, Error *err);
Status databases_read(ApiRequest *r, Error *err);
Status databases_delete(ApiRequest *r, Error *err);
Status containers_list(ApiRequest *r, Error *err);
Status containers_query(ApiRequest *r, Error *err);
Status containers_create(ApiRequest *r, Error *err);
Status containers_read(ApiRequest *r, Error *err);
Status containers_replace(ApiRequest *r, Error *err);
Status containers_delete(ApiRequest *r, Error *err);
Status containers_merge(ApiRequest *r, Error *err); /* operations/partitionmerge */
Status documents_create(ApiRequest *r, Error *err); /* create, upsert, batch */
Status documents_list(ApiRequest *r, Error *err);
Status documents_query(ApiRequest *r, Error *err);
Status documents_read(ApiRequest *r, Error *err);
Status documents_replace(ApiRequest *r, Error *err);
Status documents_patch(ApiRequest *r, Error *err);
Status documents_delete(ApiRequest *r, Error *err);
Status documents_batch(ApiRequest *r, Error *err);
Status documents_purge(ApiRequest *r, Error *err); /* operations/partitionkeydelete */
Status pkranges_list(ApiRequest *r, Error *err);
Status pkranges_read(ApiRequest *r, Error *err);
Status offers_list(ApiRequest *r, Error *err);
Status offers_query(ApiRequest *r, Error *err);
Status offers_read(ApiRequest *r, Error *err);
Status offers_replace(ApiRequest *r, Error *err);

Status encryption_keys_list(ApiRequest *r, Error *err);
Status encryption_keys_query(ApiRequest *r, Error *err);
Status encryption_keys_create(ApiRequest *r, Error *err);
Status encryption_keys_read(ApiRequest *r, Error *err);
Status encryption_keys_replace(ApiRequest *r, Error *err);
Status absent_list(ApiRequest *r, Error *err); /* of what there is none of: absent.c */
Status absent_query(ApiRequest *r, Error *err);
Status absent_create(ApiRequest *r, Error *err);
Status conflicts_query(ApiRequest *r, Error *err);

/* refresh.c: loops let go of an older catalogue when there is a newer one. */
void refresh_open(Api *api);
void refresh_close(Api *api);
void refresh_loop_open(ApiLoop *loop, HttpLoop *http);
void refresh_loop_close(ApiLoop *loop);

/* Paths outside the resource model (service.c): health, metrics, certificate, CORS, addresses.
 * True if the request was one of them and has been answered. */
bool service_handle(ApiRequest *r);

/* Paths under /_orrery (orrery_int.h): first who asks and for what, then the answer. */
bool orrery_is_path(Slice path);
MUST_USE Status orrery_admit(ApiRequest *r, Error *err);
Status orrery_request(ApiRequest *r, Error *err);
bool chaos_is_path(Slice path); /* after /_orrery */
MUST_USE Status chaos_admit(ApiRequest *r, Slice path, Error *err);
Status chaos_request(ApiRequest *r, Slice path, Error *err);

/* Fills in what the path names, as far as the catalogue knows it. */
MUST_USE Status route_resolve(ApiRequest *r, Error *err);

/* Finds the handler for what the request asks and runs it (route.c). */
Status route_request(ApiRequest *r, Error *err);
