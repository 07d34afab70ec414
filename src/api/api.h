/* api.h - the REST protocol: what answers the requests that http hands over.
 *
 * Ownership  The caller closes the Api after the HTTP server.
 * Threads    Requests run on their loop's thread; changes go to the catalogue's thread and queries
 *            to workers, and come back to the loop as messages.
 */
#pragma once

#include "api/auth.h"
#include "api/browsers.h"
#include "api/consistency.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/workers.h"
#include "catalog/catalog.h"
#include "http/http.h"
#include "store/store.h"
#include "throughput/charge.h"

typedef struct Api Api;

/* Random bytes that nobody else knows. */
typedef struct TokenSecret {
    HashKey keys[2];
} TokenSecret;

/* Who puts together what several partitions say to a query that no partition can answer alone. */
typedef enum ApiMerge {
    API_MERGE_AUTO,   /* clients that are known to do it, and the server for all others */
    API_MERGE_ALWAYS, /* the server */
    API_MERGE_NEVER,  /* the client, as with the service */
} ApiMerge;

typedef struct ApiOptions {
    Catalog *catalog; /* these outlive the Api */
    Store *store;
    const AuthKeys *keys;
    Workers *workers; /* for pages */
    Workers *bodies;  /* to read and print large bodies, which cannot stop to let others run */
    Workers *readers; /* for single items that are not in memory: none waits for somebody's query */
    const Clock *clock;
    const Log *log;
    Metrics *metrics;
    Slice certificate;          /* PEM text of what TLS clients see */
    Slice account;              /* its name, and that of its region: letters, digits, ... */
    Slice region;               /* ... '-' and spaces; empty: some name */
    Slice public_endpoint;      /* overrides the address in the account document; may be empty */
    BrowserRules browsers;      /* which pages and host names are let in */
    TokenSecret token_secret;   /* of continuation tokens; the same after a restart */
    const ChargeModel *charges; /* what work costs; NULL: as the service publishes it */
    Consistency consistency;    /* the account's; a request may ask for less */
    HistoryPool *histories;     /* of partitions, outlives the catalogue; NULL: no statistics */
    uint32_t loops;             /* that there will be */
    bool trust_forwarded;       /* believe X-Forwarded-Proto and -Host */
    bool is_serverless;         /* as the catalogue is */
    ApiMerge merge;             /* of queries */
    bool has_extensions; /* queries that the service refuses are run where that is possible */
    bool has_chaos;      /* trouble can be asked for, under /_orrery/chaos */
} ApiOptions;

Api *api_open(const ApiOptions *options); /* slices are copied */
void api_close(Api *api);                 /* accepts NULL */
DEFINE_AUTO(Api *, api_close)

/* What to give to http_server_open. */
HttpHandler api_handler(Api *api);
