/* request_int.h - one request on its way through the api: what the handlers see.
 *
 * Everything is in the request's arena. After a handler has deferred its answer, the slices of the
 * HTTP request are gone; what is in this struct stays, because it was copied or decoded (I3).
 */
#pragma once

#include "api/core/address.h"
#include "api/core/api_options.h"
#include "api/core/auth_failures.h"
#include "api/core/principal.h"
#include "api/core/resource_token.h"
#include "partition/epk.h"
#include "query/eval/query_options.h"
#include "throughput/history.h"
#include "throughput/query_log.h"
#include "throughput/top_keys.h"

#include <locale.h>
#include <pthread.h>

#define BODY_BYTES_MAX ((size_t)2 << 20) /* of a request, as the service has it */
#define PAGE_BYTES_MAX ((size_t)4 << 20) /* of a feed's page */

/* Of one item as it is sent. It may be several times as long as it came in: 1e20 is printed with
 * all its digits. */
#define ITEM_TEXT_BYTES_MAX ((size_t)16 << 20)

#define PAGE_ITEMS_DEFAULT 100

/* Memory that a query may use for one page, if the options say nothing else. Only some pages at a
 * time may use much of it: see query_memory. */
#define QUERY_BYTES_MAX ((size_t)256 << 20)

/* A query in a longer body is read on a worker. This much is parsed in less than a millisecond; the
 * longest query that is accepted takes some hundreds. */
#define LOOP_QUERY_BYTES_MAX ((size_t)4 << 10)

/* API versions from which something is different, as the dates that name them. */
#define VERSION_PARTITION_KEY_REQUIRED 20181231

#define PAGE_ENTRIES_MAX ((uint64_t)20000)
#define PAGE_US_MAX      ((uint64_t)5000000)
#define PAGE_BRIEF_US    ((uint64_t)1000)

/* Work that one page of items may do: the values above, or a test's own. Items that have expired,
 * or that a query does not want, take time too. */
typedef struct PageLimits {
    uint64_t entries_max; /* of a list; as many of the smallest items fill a page */
    uint64_t us_max;
    uint64_t brief_us; /* of a query on the loop, while other requests wait; 0 if none runs there */
} PageLimits;

#define USAGE_LOOPS_MAX 256

typedef struct ApiLoop ApiLoop;
typedef struct ApiRequest ApiRequest;
typedef struct Chaos Chaos;

/* Where faults on request (chaos_int.h) act on other requests. Filled in by api.c, since the faults
 * are in a room above this one. */
typedef struct ChaosHooks {
    bool (*throttles)(Chaos *chaos, const PartitionRange *range, bool is_asked, uint32_t *wait_ms);
    uint64_t (*lsn)(Chaos *chaos, const PartitionRange *range, uint64_t wanted, uint64_t lsn);
} ChaosHooks;

struct Api {
    /* Immutable after open; what is pointed to has locks of its own. */
    ApiOptions options;
    Arena arena;
    PageLimits limits;
    HashKey top_key;
    ResourceTokenKey resource_tokens;
    void (*run_again)(ApiRequest *r); /* api.c's, for request_again */
    struct LogicalSizesCache *sizes;  /* see logical_sizes_int.h */
    struct ScriptGate *gate;          /* see items/script_gate_int.h */
    locale_t locale;         /* the one that queries use for case; open here, it stays in memory */
    AuthFailures *failures;  /* of addresses; NULL without a limit */
    Chaos *chaos;            /* see chaos_int.h; NULL without --enable-chaos */
    ChaosHooks chaos_hooks;  /* set if there is a Chaos */
    struct Backups *backups; /* see admin/backup_session_int.h */
    struct Swaps *swaps;     /* see admin/swap_session_int.h */

    QueryMemory query_memory; /* shared by the pages on workers; has a lock of its own */

    /* Guarded by 'loops_lock'. */
    pthread_mutex_t loops_lock;
    ApiLoop *loops;

    /* Atomic: /healthz says that the server is not ready yet. */
    atomic_bool is_starting;

    /* Atomic: a worker makes advice about a partition key, one at a time. */
    atomic_bool is_advising;

    /* Atomic: the sketches of each loop that has ever been opened, see usage_int.h. */
    _Atomic uint32_t top_count;
    _Atomic(Top *) tops[USAGE_LOOPS_MAX];
    _Atomic(QueryLog *) query_logs[USAGE_LOOPS_MAX];
};

/* The first block of the arena for queries on the loop; it is kept for the next query. */
#define LOOP_QUERY_ARENA_BYTES ((size_t)32 << 10)

/* What the api keeps per loop. Only the loop's thread uses it, except as noted. */
struct ApiLoop {
    Api *api;
    CatalogReader reader;
    KeyReader keys;
    IdentityReader identities;
    Buf text; /* an item's body while it is sent */

    /* Queries on the loop: see tries_briefly(). */
    Arena brief; /* of the one that runs */
    uint32_t brief_failures;
    uint32_t brief_skips;

    /* See usage_int.h. */
    Top *top;                   /* owned by the Api, as the next */
    QueryLog *queries;          /* NULL if none are recorded */
    struct QueryShapes *shapes; /* see items/query_record.c; NULL until it is used */
    Buf name;                   /* of a key while it is printed */

    /* See refresh.c. */
    ApiLoop *next; /* guarded by the Api's 'loops_lock' */
    HttpLoop *http;
    HttpTask refresh;
    _Atomic bool is_refreshing; /* the task is under way; any thread */
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

/* The logical partition that a request is about, if it is about one: see usage_int.h. */
typedef struct UsageKey {
    bool is_known;
    uint32_t container; /* number */
    PartitionKey key;
    Slice epk;
} UsageKey;

struct ApiRequest {
    HttpRequest *http;
    Api *api;
    ApiLoop *loop;
    Arena *arena;

    /* What it says about itself; in the arena. */
    Slice activity_id;
    Slice origin; /* of a web page that may read the answer, for CORS headers; or empty */
    bool is_head;
    bool is_admin;           /* its path is under /_orrery, whatever its address says */
    bool tells_names;        /* of those: it asks for names of properties in a container only */
    Consistency consistency; /* of what it reads */
    uint32_t version;        /* 20200715 for 2020-07-15 */
    Address address;
    Operation operation;
    int64_t now_s; /* when it was authorised, by the wall clock */
    Principal principal;
    int64_t node_time_s;   /* when another node has received it; 0 if none has */
    uint64_t deadline_us;  /* until when that node waits for the answer (monotonic); 0 if it is a
                              client's, of which nothing is known */
    uint64_t keys_version; /* of the keys with which it was authorised */
    bool shows_identity;   /* it came with an identity token */

    /* What it names, as far as it exists. These are the loop's: valid until the handler returns. */
    Snapshot *snapshot;
    const Database *database;
    const Container *container;
    const Offer *offer;
    const EncryptionKey *key;
    const StoredScript *script;
    const User *user;
    const Permission *permission;

    /* What it uses. */
    BudgetClass class; /* priority and bucket: see throttle_int.h */
    UsageKey usage;
    HistoryOperation counted_as; /* see usage_int.h */
    StoreSpace space;            /* of the partition that was asked last; 0 if none was */
    PartitionHandle *refused_by; /* that turned it away; valid while it is answered */

    /* How far it is. */
    struct RequestBody *body; /* see request_body_int.h; NULL if it was not read on a worker */
    uint32_t token_seconds;   /* lifetime of the tokens that it asks for */
    bool is_routed;           /* it was authorised, and its answer rests on what is stored */
    bool has_only_read;       /* it could have written, but has made nothing durable */
    bool is_kept;             /* see forward_keep */
    uint64_t life;            /* of this node in the cluster, from before anything was read */
    struct Forward *forward;  /* see forward_int.h; NULL if it did not go to another node */
    bool is_past_chaos;       /* it was run before, and meets no more faults */
    Slice error_info;         /* "additionalErrorInfo" of a failure; empty if there is none */
    Slice error_text;         /* of a script, in place of the Error's message; empty if none */

    struct AuditRecord *audit; /* see request_audit_int.h; NULL if it leaves no line */

    const struct OrreryKind *page; /* what is asked under /_orrery: admin/orrery_int.h */
};

/* A handler answers (response_int.h), or defers its answer, or fails before it has done either. */
typedef Status (*Handler)(ApiRequest *r, Error *err);

/* The request of 'http', with nothing read but its activity id. */
ApiRequest *request_new(Api *api, HttpRequest *http);

/* Whether the host that the request names and the page that it comes from are let in: browsers.h.
 */
MUST_USE Status request_check_source(ApiRequest *r, Error *err);

/* What the method does to the resource that the path names. */
MUST_USE Status request_choose_operation(ApiRequest *r, Error *err);

/* x-ms-version: "2020-07-15" is 20200715. Without the header the newest version is meant. */
MUST_USE Status request_read_version(ApiRequest *r, Error *err);

/* Headers of the request; valid until the handler returns. */
Slice request_header(const ApiRequest *r, const char *name);
bool request_flag(const ApiRequest *r,
                  const char *name); /* present and "true", in upper or lower case */

/* Whether the request may do what it asks for. With 'takes_bearer' it may show a key instead of a
 * signature. */
MUST_USE Status request_authorise(ApiRequest *r, bool takes_bearer, Error *err);

/* Copies the slices of the HTTP request, which are gone when the handler returns. */
void request_keep(ApiRequest *r);

/* Runs a request whose slices were kept from the start, on its loop. */
void request_again(ApiRequest *r);

/* x-ms-max-item-count: UINT32_MAX for -1, PAGE_ITEMS_DEFAULT if it is absent. 0 asks for a page
 * without items, as Java's SDK does for TOP 0. */
MUST_USE Status request_max_items(const ApiRequest *r, uint32_t *out, Error *err);

/* STATUS_TOO_LARGE if the body has more than BODY_BYTES_MAX. */
MUST_USE Status request_check_size(const ApiRequest *r, Error *err);

/* The server's address as this client can use it, "https://host:port/", in the arena. */
MUST_USE Status request_endpoint(const ApiRequest *r, Slice *out, Error *err);

/* The whole URL of the request, as the client can use it, in the arena. */
MUST_USE Status request_location(const ApiRequest *r, Slice *out, Error *err);

/* Two refusals that many requests share: a continuation token that was not made for this feed, and
 * workers that have too much to do already. */
Status request_refuse_token(Slice token, Error *err);
Status request_refuse_busy(Error *err);

/* The body as a document in the request's arena; it must be an object. */
MUST_USE Status request_json(const ApiRequest *r, Json *out, Error *err);

/* 'incrementPercent' of autoscale settings; 0 if there is none. */
MUST_USE Status request_increment(Json settings, uint32_t *percent, Error *err);

/* x-ms-offer-throughput or x-ms-cosmos-offer-autopilot-settings. */
MUST_USE Status request_provision(const ApiRequest *r, bool *has, Provision *out, Error *err);

/* refresh.c: loops let go of an older catalogue, and of older keys, when there are newer ones. */
void refresh_open(Api *api);
void refresh_close(Api *api);
void refresh_loop_open(ApiLoop *loop, HttpLoop *http);
void refresh_loop_close(ApiLoop *loop);
void refresh_loops(Api *api); /* from any thread, while there are loops */

/* Paths outside the resource model (service.c): health, metrics, certificate, CORS, addresses.
 * True if the request was one of them and has been answered. */
bool service_handle(ApiRequest *r);

/* Fills in what the path names, as far as the catalogue knows it (resolve.c). */
MUST_USE Status request_resolve(ApiRequest *r, Error *err);

/* A container by the ids of a path or of a link, each a name or a resource id; a name wins. NULL if
 * there is none. */
const Container *resolve_container(const Snapshot *snapshot, Slice database, Slice container);

/* A script of the container, likewise. */
const StoredScript *resolve_script(const Snapshot *snapshot, const Container *container,
                                   StoredScriptKind kind, Slice id);

/* The kind of scripts that a resource type stands for; it must be one of the three. */
StoredScriptKind request_script_kind(ResourceType type);
