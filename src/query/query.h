/* query.h - the SQL of documents: from text to results.
 *
 * query_parse() reads the text, binds its names and checks every rule that can be checked without
 * data; query_run() then runs it over documents that the caller holds in memory, in the order in
 * which they are given. Feeds of small resources (databases, containers, offers) are answered
 * this way, and it is the reference that faster ways of execution are compared with.
 *
 * What is wrong with a query is STATUS_BAD_REQUEST, and the message is the JSON that clients of
 * the service parse:
 *     {"errors":[{"severity":"Error","location":{"start":7,"end":8},"code":"SC2001",
 *                 "message":"Identifier 'x' could not be resolved."}]}
 * Locations count UTF-16 code units, as the clients' strings do.
 *
 * Ownership  A Query and everything it points to lives in the arena given to query_parse. It
 *            keeps slices of the text and views of the parameters, which must live as long.
 *            Results live in the arena given to query_run, or are views of the documents.
 * Threads    A Query is immutable and may be run by many threads at once. A run belongs to one.
 * Bounds     Below. A run that needs more steps or memory than it may use fails with
 *            STATUS_BAD_REQUEST and says which of the two.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/slice.h"
#include "json/json.h"

#include "json/path.h"
#include <pthread.h>

#define QUERY_TEXT_BYTES_MAX ((size_t)512 << 10) /* as the service announces it */
#define QUERY_JOINS_MAX      10                  /* likewise, of the whole query */
#define QUERY_UDF_CALLS_MAX  10                  /* likewise */
#define QUERY_COUNT_MAX      UINT32_MAX          /* TOP, OFFSET and LIMIT, */
#define QUERY_LIMIT_MAX      INT32_MAX           /* and those of a query that clients may plan */

/* Levels of nesting, other than parentheses that open an expression, which are free up to
 * QUERY_PARENTHESES_MAX: programs print ((((a OR b) OR c) OR d) OR e) without end. The rest costs
 * a piece of the C stack each (some 600 bytes, with sanitizers 2 KB), hence the lower bound. */
#define QUERY_DEPTH_MAX       200
#define QUERY_PARENTHESES_MAX 3400 /* as the service has it */

/* A step is one operator, one row, or a few bytes of text: 20 to 100 ns. An event loop thread runs
 * queries on small feeds, so the default ends the worst of them within a tenth of a second. */
#define QUERY_STEPS_DEFAULT ((uint64_t)1000000)
#define QUERY_BYTES_DEFAULT ((size_t)64 << 20)

typedef struct Query Query;

/* Takes the body of a query request, {"query": text, "parameters": [{"name", "value"}, ...]} or a
 * JSON string alone, as old clients send it, apart and checks its shape. '*parameters' is
 * undefined if there are none. */
MUST_USE Status query_request(Arena *arena, Slice body, Slice *text, Json *parameters, Error *err);

/* The same of a query on items, which may say besides where in its order it is to begin:
 * 'resume_filter' goes into QueryPageOptions, or is undefined. */
typedef struct QueryRequest {
    Slice text;
    Json parameters;
    Json resume_filter;
} QueryRequest;
MUST_USE Status query_request_items(Arena *arena, Slice body, QueryRequest *out, Error *err);

/* 'parameters' is the request's array, or undefined. */
MUST_USE Status query_parse(Arena *arena, Slice text, Json parameters, Query **out, Error *err);

/* The same over items of a container that defines computed properties: 'computed' is its array of
 * {"name", "query"}, which must live as long as the Query, or undefined. Wherever the query names
 * one of them it means its expression, whatever an item holds under that name; only whole items,
 * as in SELECT *, are as they are stored. */
MUST_USE Status query_parse_with(Arena *arena, Slice text, Json parameters, Json computed,
                                 Query **out, Error *err);

/* Runs over 'count' documents; '*results' is an array of '*result_count' values in 'arena'. */
MUST_USE Status query_run(const Query *query, const Json *documents, size_t count, Arena *arena,
                          Json **results, size_t *result_count, Error *err);

/* What the coordinates of GeoJSON are: the container's geospatialConfig. */
typedef enum QueryGeo {
    QUERY_GEOGRAPHY, /* longitude and latitude on WGS-84, results in metres */
    QUERY_GEOMETRY,  /* a plane, results in its own units */
} QueryGeo;

/* How many runs of a server may hold much at a time, which is more than RUN_BYTES_FREE; others wait
 * until one of them is over. Any thread. */
typedef struct QueryMemory {
    pthread_mutex_t lock; /* guards 'left' */
    pthread_cond_t freed;
    uint32_t left;
} QueryMemory;

void query_memory_init(QueryMemory *memory, uint32_t runs);
void query_memory_done(QueryMemory *memory);

typedef struct QueryOptions {
    uint64_t steps_max;  /* 0: QUERY_STEPS_DEFAULT */
    size_t bytes_max;    /* 0: QUERY_BYTES_DEFAULT; results and everything held while running */
    QueryMemory *memory; /* that it shares with others; NULL: it never waits */
    Random *random;      /* for RAND(); NULL: seeded by the system when it is first needed */
    const Clock *clock;  /* for GetCurrentDateTime() and the like; NULL: the system's */
    uint64_t static_us; /* for GetCurrentDateTimeStatic() and the like, so that several runs for one
                           query agree; 0: the time at which a run first asks */
    QueryGeo geo;
    uint64_t deadline_us; /* of the monotonic clock; 0: none. A run that is not over by then fails,
                             whatever it has left of steps and bytes */
} QueryOptions;

MUST_USE Status query_run_with(const Query *query, QueryOptions options, const Json *documents,
                               size_t count, Arena *arena, Json **results, size_t *result_count,
                               Error *err);

/* True if every document gives its results by itself: nothing is sorted, grouped, made distinct or
 * cut off. Run on one document after the other, such a query gives what it gives on all of them. */
bool query_is_streaming(const Query *query);

/* How many of the paths, from the first on, its filter compares with a constant, as in c.a = 1 AND
 * c.b.c = @p, so that it finds documents with these 'values' only, which live in the arena. */
size_t query_fixed(const Query *query, Arena *arena, const PropertyPath *paths, size_t count,
                   Json *values);

/* Fails as the service's planner does, which sees queries that name neither a key nor a range: an
 * aggregate must then be an item of the projection by itself, so that clients can add up what the
 * partitions say, and over a subquery with DISTINCT it must be a plain COUNT; OFFSET and LIMIT are
 * at most QUERY_LIMIT_MAX. Within a key or a range none of this matters. */
MUST_USE Status query_check_cross_partition(const Query *query, Error *err);

/* Fails unless the text may define a computed property: SELECT VALUE and one expression over the
 * document, without anything that looks elsewhere or answers differently the next time. */
MUST_USE Status query_check_computed(Slice text, Error *err);
