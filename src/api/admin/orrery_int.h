/* orrery_int.h - paths under /_orrery, which show partitions, keys and their load.
 *
 *     /_orrery/containers                                 all of them, the busiest first
 *     /_orrery/metrics                                    the same for Prometheus
 *     /_orrery/events                                     recent splits, merges and throttles
 *     /_orrery/keys                                       the account's keys: orrery_keys.c
 *     /_orrery/backup                                     copying all data: orrery_backup.c
 *     /_orrery/cluster                                    nodes of a cluster: orrery_cluster.c
 *     /_orrery/snapshots                                  saved states: orrery_snapshots.c
 *     /_orrery/dbs/{db}/colls/{coll}/layout               physical partitions: size, use, limits
 *     /_orrery/dbs/{db}/colls/{coll}/top                  logical partitions that stand out
 *     /_orrery/dbs/{db}/colls/{coll}/history              seconds, or steps of five minutes
 *     /_orrery/dbs/{db}/colls/{coll}/queries              texts of queries, without values
 *     /_orrery/dbs/{db}/colls/{coll}/paths                properties that the index has
 *     /_orrery/dbs/{db}/colls/{coll}/advice               which partition key it should have
 *
 * They are read with the same keys as everything else, read-only ones included, signed as a read of
 * the container, or of the account. Answers are made on a worker from the catalogue's snapshot and
 * from counters, so they neither wait for other requests nor hold them up.
 *
 * Ownership  A page lives in its request's arena, and holds its snapshot until it is answered.
 */
#pragma once

#include "api/core/logical_sizes_int.h"
#include "api/core/request_int.h"
#include "throughput/query_log.h"
#include "throughput/top_keys.h"

/* For paths under /_orrery: admit authorises the request and finds what it asks for, request
 * answers it. */
bool orrery_is_path(Slice path);
MUST_USE Status orrery_admit(ApiRequest *r, Error *err);
Status orrery_request(ApiRequest *r, Error *err);
bool chaos_is_path(Slice path); /* after /_orrery */
MUST_USE Status chaos_admit(ApiRequest *r, Slice path, Error *err);
Status chaos_request(ApiRequest *r, Slice path, Error *err);

bool keys_is_path(Slice path); /* after /_orrery */
MUST_USE Status keys_admit(ApiRequest *r, Error *err);
Status keys_request(ApiRequest *r, Error *err);
bool backup_is_path(Slice path); /* likewise */
MUST_USE Status backup_admit(ApiRequest *r, Error *err);
Status backup_request(ApiRequest *r, Slice path, Slice query, Error *err);
bool swap_is_path(Slice path); /* likewise */
MUST_USE Status swap_admit(ApiRequest *r, Error *err);
Status swap_request(ApiRequest *r, Slice path, Slice query, Error *err);
bool snapshots_is_path(Slice path); /* likewise */
MUST_USE Status snapshots_admit(ApiRequest *r, Slice path, Error *err);
Status snapshots_request(ApiRequest *r, Slice path, Slice query, Error *err);
bool cluster_is_path(Slice path); /* likewise */
MUST_USE Status cluster_admit(ApiRequest *r, Error *err);
Status cluster_request(ApiRequest *r, Slice path, Slice query, Error *err);

Status containers_merge(ApiRequest *r, Error *err); /* operations/partitionmerge */

/* JSON is parsed in one piece by clients, metrics are not. */
#define ORRERY_JSON_BYTES_MAX    ((size_t)4 << 20)
#define ORRERY_METRICS_BYTES_MAX ((size_t)64 << 20)

/* Of what one node tells another, which is read piece by piece. */
#define ORRERY_PART_BYTES_MAX ((size_t)32 << 20)

/* A number from another node: sums over all ranges there may be do not overflow. */
#define ORRERY_NUMBER_MAX ((uint64_t)1 << 50)

typedef struct OrreryPage OrreryPage;

/* Parameters that a path may have. */
enum { ORRERY_PARAMETERS_MAX = 6 };

/* The range that a parameter names; without one all ranges are meant. */
typedef struct OrreryRange {
    bool is_given;
    uint32_t id;
} OrreryRange;

typedef struct OrreryKind {
    Slice name;           /* the last part of the path */
    bool is_of_container; /* otherwise of the account */
    bool takes_bearer;    /* "Authorization: Bearer <key>", too */
    bool tells_names;     /* and nothing else: also for a token that may read all items */
    const char *parameters[ORRERY_PARAMETERS_MAX];
    Status (*parse)(OrreryPage *page, Error *err); /* on the loop; may be NULL */
    Status (*run)(OrreryPage *page);               /* on a worker: fills in text, or error */

    /* Likewise, for another node: what 'part' of the page asks of the ranges that are served here.
     * NULL if the answer is about one node (range_gather_int.h). */
    Status (*run_part)(OrreryPage *page);
} OrreryKind;

extern const OrreryKind ORRERY_CONTAINERS;
extern const OrreryKind ORRERY_LAYOUT;
extern const OrreryKind ORRERY_TOP;
extern const OrreryKind ORRERY_HISTORY;
extern const OrreryKind ORRERY_QUERIES;
extern const OrreryKind ORRERY_PATHS;
extern const OrreryKind ORRERY_ADVICE;
extern const OrreryKind ORRERY_METRICS;
extern const OrreryKind ORRERY_EVENTS;

struct OrreryPage {
    WorkerJob job;
    HttpTask task;
    ApiRequest *request;
    const OrreryKind *kind;
    Slice values[ORRERY_PARAMETERS_MAX]; /* decoded, in the arena; empty if not sent */
    Snapshot *snapshot;                  /* a reference of its own */
    const Database *database;            /* the snapshot's; NULL for the account */
    const Container *container;
    Slice part;      /* what another node asks for; empty if the request is a client's */
    bool is_long;    /* it reads much, or waits for other nodes: it takes its turn among queries */
    uint64_t now_s;  /* wall clock */
    uint64_t now_us; /* monotonic */

    /* What 'parse' has made of the parameters. */
    union {
        struct {
            uint32_t count;
        } containers;
        struct {
            uint32_t count;
        } events;
        struct {
            int by;
            uint32_t count;
            uint64_t from_s; /* minutes: the first, and the end of the last */
            uint64_t to_s;
            OrreryRange range;
        } top;
        struct {
            int by;
            uint32_t count;
        } queries;
        struct {
            uint32_t sample;     /* items */
            uint32_t partitions; /* to lay out */
            double growth;       /* items a day; 0 if it was not given */
        } advice;
        struct {
            HistoryGrain grain;
            uint64_t from_s;
            uint64_t to_s;
            bool has_operations;
            OrreryRange range;
        } history;
    };

    Status status;
    Error error;
    Buf text;
};

/* The parameter at 'index' as a number; 'fallback' if it was not sent. */
MUST_USE Status orrery_number(const OrreryPage *page, size_t index, uint64_t min, uint64_t max,
                              uint64_t fallback, uint64_t *out, Error *err);

/* The parameter at 'index' as the id of a range. */
MUST_USE Status orrery_range(const OrreryPage *page, size_t index, OrreryRange *out, Error *err);

/* STATUS_BAD_REQUEST naming what is expected. */
MUST_USE Status orrery_refuse(const OrreryPage *page, size_t index, const char *expected,
                              Error *err);

/* STATUS_BAD_REQUEST if the server was started with --no-statistics. */
MUST_USE Status orrery_need_statistics(const OrreryPage *page, Error *err);

/* How many logical partitions each range has, and the ORRERY_TOP_COUNT_MAX largest. The caller
 * releases the result; a failure is in the page's error. */
#define ORRERY_TOP_COUNT_MAX 100
MUST_USE Status orrery_counts(OrreryPage *page, LogicalSizes **out);
MUST_USE Status orrery_largest(OrreryPage *page, LogicalSizes **out);

/* The recent use of a physical partition or of a whole container, in complete seconds.
 */
typedef struct OrreryUse {
    Charge second;
    Charge ten_seconds;
    HistoryCount minute;
    HistoryCount total;
} OrreryUse;

OrreryUse orrery_use(const PartitionHandle *partition, uint64_t now_s);
void orrery_use_add(OrreryUse *sum, const OrreryUse *use);

/* The largest part of its budget that was used in one second of the last minute, in hundredths of a
 * percent. A budget that containers share counts what all of them used. */
uint64_t orrery_consumption(const Snapshot *snapshot, const Container *container,
                            const PartitionHandle *partition, uint64_t now_s);

/* The answer about recorded queries, of all nodes, which `orrery advise` understands as well; and
 * what another node has asked for it, if its part is that. */
MUST_USE Status orrery_queries_print(OrreryPage *page, QueryCount by, size_t rows_max, Buf *out,
                                     Error *err);
bool orrery_is_queries_part(const OrreryPage *page);
MUST_USE Status orrery_queries_part(OrreryPage *page, QueryCount by);

/* Append JSON text piece by piece, with a comma after everything but an opening bracket. */
void put_name(Buf *out, const char *name);
void put_open(Buf *out, const char *name, char bracket); /* without a name in an array */
void put_close(Buf *out, char bracket);
void put_text(Buf *out, const char *name, Slice text); /* valid UTF-8 */
void put_json(Buf *out, const char *name, Slice json);
void put_number(Buf *out, const char *name, uint64_t number);
void put_id(Buf *out, const char *name, uint32_t id); /* of a range, as text */
void put_hundredths(Buf *out, const char *name, uint64_t hundredths);
void put_bool(Buf *out, const char *name, bool value);
void put_use(Buf *out, const OrreryUse *use, const uint64_t *allotted); /* three members */

/* The member that says what is provisioned for the container. */
void put_throughput(Buf *out, const OrreryPage *page, const Database *database,
                    const Container *container);

/* The members of an object that describes a split or a merge. */
void put_move(Buf *out, const MoveEvent *event);
