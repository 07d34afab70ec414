/* seed.h - makes a server have what a seed file says: databases, containers, scripts, users, items.
 *
 * Works with any endpoint of the protocol. What is there already is compared first, and changed
 * only if it differs; so a second run changes nothing. What differs and cannot be changed is an
 * error. Nothing is deleted unless the file says "absent": true.
 *
 * The steps follow the order of the file, each database before its containers, each container
 * before its scripts and items, users last. A failure ends the run. What was done until then stays,
 * and the next run goes on from there.
 *
 * Threads    All of it runs on the caller's thread.
 * Bounds     SEED_FILE_BYTES_MAX, SEED_LIST_MAX, and those of transfer/import.h for items.
 */
#pragma once

#include "base/error.h"
#include "client/client.h"
#include "seed/seed_file.h"

typedef enum SeedChange {
    SEED_CREATED,
    SEED_REPLACED,
    SEED_DELETED,
    SEED_UNCHANGED,
    SEED_CHANGES,
} SeedChange;

const char *seed_change_word(SeedChange change); /* "created" */

typedef struct SeedSummary {
    uint64_t resources[SEED_CHANGES];
    uint64_t items_written;
    uint64_t items_unchanged;
    bool is_interrupted; /* 'stop_fd' became readable; the run has failed then */
} SeedSummary;

typedef struct SeedOptions {
    Client *client;
    const SeedFile *file;
    int stop_fd; /* of stop_signal.h; -1 if there is none */

    /* Told of each resource: "container", "shop/orders". And of the items of each container that
     * has some. And of items that the server has refused, at most SEED_REJECTS_MAX for each list.
     */
    void (*on_resource)(void *ctx, SeedChange change, const char *kind, const char *name);
    void (*on_items)(void *ctx, const char *container, uint64_t written, uint64_t unchanged);
    void (*on_reject)(void *ctx, const char *place, const char *reason);
    void *ctx;
} SeedOptions;

#define SEED_REJECTS_MAX 10

/* The summary is filled also if it fails: with what was done until then. */
MUST_USE Status seed_run(const SeedOptions *options, SeedSummary *out, Error *err);

/* One line for people: what was changed, or that nothing was. Terminated. */
typedef struct SeedSummaryText {
    char text[300];
} SeedSummaryText;
SeedSummaryText seed_summary_text(const SeedSummary *summary);
