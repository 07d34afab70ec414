/* seed_int.h - what the files of a run share; for src/seed only.
 *
 *     seed.c              the walk over the file, and each kind of resource
 *     seed_throughput.c   offers
 *     seed_items.c        items
 */
#pragma once

#include "seed/seed.h"
#include "seed/seed_place.h"
#include "transfer/remote.h"

typedef struct SeedRun {
    const SeedOptions *options;
    Remote remote; /* only its client and its 'stop_fd' are used */
    Arena *arena;  /* reset for each resource below a database */
    SeedSummary summary;
} SeedRun;

/* The address of a resource: percent-encoded for the request, plain for the signature. */
typedef struct SeedLink {
    Slice path;
    Slice link;
} SeedLink;

/* Sends a request of that resource type and waits for the answer. A body that is undefined is none.
 * Up to two headers; a name that is NULL is none. */
typedef struct SeedRequest {
    ClientMethod method;
    Slice path;
    Slice type;
    Slice link;
    Json body;
    ClientHeader headers[2];
} SeedRequest;
MUST_USE Status seed_ask(SeedRun *run, const SeedRequest *request, ClientCall *call, Error *err);

/* The body of an answer. STATUS_UNAVAILABLE if it is not JSON. */
MUST_USE Status seed_answer(SeedRun *run, const ClientCall *call, Json *out, Error *err);

/* ---- seed_throughput.c ---- */

/* The header that asks for the throughput of a new resource; its name is NULL if none is asked for.
 */
ClientHeader seed_throughput_header(Arena *arena, Json resource);

/* Compares the offer of an existing resource with what the file says, and replaces it.
 * '*is_changed' if that was needed. */
MUST_USE Status seed_throughput_apply(SeedRun *run, Json resource, Slice rid, bool *is_changed,
                                      Error *err);
