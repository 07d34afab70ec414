/* load_container.h - the container that a benchmark makes for itself: created, filled, dropped.
 *
 * What existed before is neither filled nor dropped.
 *
 * Ownership  The LoadContainer is the caller's; it borrows its options.
 * Threads    Belongs to one thread.
 */
#pragma once

#include "load/load_run.h"

typedef struct LoadContainerOptions {
    Slice database; /* ids, not encoded */
    Slice container;
    uint32_t throughput; /* RU/s */
    const Signer *signer;
    LoadTarget *target;
    Url url; /* of the server; its path does not matter */
} LoadContainerOptions;

typedef struct LoadContainer {
    const LoadContainerOptions *options;
    bool made_database;
    bool made_container;
} LoadContainer;

/* Creates the container, and its database if there is none. STATUS_CONFLICT if the container
 * exists. */
MUST_USE Status load_container_create(LoadContainer *c, const LoadContainerOptions *options,
                                      const Clock *clock, Error *err);

/* Makes the items 0 to count - 1 that 'options' speaks of, in batches. '*result' says what that
 * took. */
MUST_USE Status load_container_fill(const LoadOptions *options, const Clock *clock,
                                    LoadResult *result, Error *err);

/* Drops what load_container_create has made. */
MUST_USE Status load_container_drop(LoadContainer *c, const Clock *clock, Error *err);

/* The path of the items of a container, in 'arena'. */
Slice load_container_path(Arena *arena, Slice database, Slice container);
