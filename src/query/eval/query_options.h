/* query_options.h - what a run of a query may use, and what it has to know from outside. */
#pragma once

#include "base/clock.h"
#include "base/defs.h"
#include "base/random.h"
#include "query/eval/query_functions.h"

#include <pthread.h>

/* A step is one operator, one row, or a few bytes of text: 20 to 100 ns. An event loop thread runs
 * queries on small feeds, so the default ends the worst of them within a tenth of a second. */
#define QUERY_STEPS_DEFAULT ((uint64_t)1000000)
#define QUERY_BYTES_DEFAULT ((size_t)64 << 20)

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
    uint64_t steps_max;  /* 0 for QUERY_STEPS_DEFAULT */
    size_t bytes_max;    /* 0 for QUERY_BYTES_DEFAULT; results and everything held while running */
    QueryMemory *memory; /* shared with other runs; NULL if it never waits */
    Random *random;      /* for RAND(); NULL to seed one when it is needed */
    const Clock *clock;  /* for GetCurrentDateTime() and the like; NULL for the system's */
    uint64_t static_us; /* for GetCurrentDateTimeStatic() and the like, so that several runs for one
                           query agree; 0 for the time at which a run first asks */
    QueryGeo geo;
    uint64_t deadline_us; /* of the monotonic clock; 0 if none. A run that is not over by then
                             fails, whatever it has left of steps and bytes */
    const QueryFunctions *functions; /* that udf.name(...) calls; NULL if there are none */
    void *functions_context;
} QueryOptions;
