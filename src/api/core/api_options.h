/* api_options.h - what the api is opened with. */
#pragma once

#include "api/core/api_cluster.h"
#include "api/core/audit.h"
#include "api/core/browsers.h"
#include "api/core/consistency.h"
#include "api/core/identity_source.h"
#include "api/core/key_ring.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/workers.h"
#include "catalog/catalog.h"
#include "http/http.h"
#include "script/script_pool.h"
#include "store/store.h"
#include "throughput/charge.h"

typedef struct Api Api;

/* Random bytes, kept secret. */
typedef struct TokenSecret {
    HashKey keys[2];
} TokenSecret;

/* Which side merges the results of several partitions, for a query that no partition can answer
 * alone. */
typedef enum ApiMerge {
    API_MERGE_AUTO,   /* clients that are known to do it; the server for all others */
    API_MERGE_ALWAYS, /* the server */
    API_MERGE_NEVER,  /* the client, as with the service */
} ApiMerge;

typedef struct ApiOptions {
    Catalog *catalog; /* these outlive the Api */
    Store *store;
    KeyRing *keys;
    IdentitySource *identities;
    Workers *workers; /* for pages */
    Workers *bodies;  /* to read and print large bodies, which cannot give way to other work */
    Workers *readers; /* for single items that are not in memory, so that none waits for a query */
    Workers *node_workers; /* for what pages of other nodes ask; NULL for 'workers', which is right
                              only if there are no other nodes */
    ScriptPool *scripts;   /* NULL if none can run */
    const Clock *clock;
    const Log *log;
    Metrics *metrics;
    Audit *audit;  /* NULL without an audit log */
    Slice account; /* its name: letters, digits, '-' and spaces; a default if empty */
    Slice region;  /* likewise the name of its region */
    Slice
        public_endpoint; /* overrides the address in the account document; empty if there is none */
    BrowserRules browsers;      /* which pages and host names are let in */
    TokenSecret token_secret;   /* of continuation tokens; the same after a restart */
    const ChargeModel *charges; /* what work costs; NULL for the service's published prices */
    Consistency consistency;    /* the account's; a request may ask for a weaker one */
    HistoryPool *histories;     /* of partitions, outlives the catalogue; NULL without statistics */
    bool no_query_texts;        /* queries are not recorded; neither are they without statistics */
    const char *data_folder;    /* of what a backup has besides the store; NULL if nothing */
    const char *const *data_files; /* names in it, which end with NULL; they outlive the Api */
    size_t query_bytes_max;        /* of a page; 0 for QUERY_BYTES_MAX */
    uint32_t large_queries_max;    /* pages that may hold much at a time; 0 for as many as run */
    uint32_t loops;                /* how many there will be */
    bool is_loopback;              /* only this machine can reach the server */
    uint32_t failures_max; /* of authorisation, from one address: auth_failures.h; 0: no limit */
    bool limits_local_failures; /* of clients on this machine, too */
    bool trust_forwarded;       /* use X-Forwarded-Proto and X-Forwarded-Host */
    bool is_serverless;         /* as the catalogue is */
    ApiMerge merge;             /* of queries */
    bool has_extensions;        /* runs queries that the service refuses, where that is possible */
    bool hides_previous_images; /* deletes in change feeds come without what was deleted */
    const ApiCluster *cluster;  /* outlives the Api; NULL if this process serves everything */
    bool has_chaos;             /* faults can be asked for under /_orrery/chaos */
} ApiOptions;
