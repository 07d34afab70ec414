/* cleaner_int.h - removes the data of dropped containers, and of the sources of moves, in the
 * background.
 *
 * Threads    Any thread posts. The cleaner's own thread sleeps until there is something to remove.
 */
#pragma once

#include "base/log.h"
#include "base/mailbox.h"
#include "catalog/record_int.h"

#include <pthread.h>

typedef struct CatalogPlacement CatalogPlacement; /* placement.h */

typedef struct Cleaner {
    Store *store;                      /* immutable after open */
    const Log *log;                    /* immutable after open */
    const CatalogPlacement *placement; /* immutable after open; NULL if there is none */
    _Atomic bool is_paused;            /* another node leads: nothing is cleaned here */
    Mailbox mailbox;                   /* GarbageMessages */
    pthread_mutex_t lock;              /* guards 'drops' */
    pthread_cond_t drops_changed;
    uint32_t drops; /* calls of cleaner_drop whose partitions have not all ended */
    _Atomic bool stop;
    pthread_t thread;
    bool is_running; /* opening thread only */
} Cleaner;

MUST_USE Status cleaner_open(Cleaner *cleaner, Store *store, const CatalogPlacement *placement,
                             const Log *log, Error *err);

/* While it is paused, garbage that is posted is left to its record. */
void cleaner_pause(Cleaner *cleaner, bool is_paused);
void cleaner_post(Cleaner *cleaner, Garbage garbage); /* after its record is durable */

/* Drops the partitions of ranges that are no longer in use, all or some of a container's, as far as
 * they are served here, and cleans their spaces when the last of these partitions has ended. */
void cleaner_drop(Cleaner *cleaner, const Container *container, const PartitionRange *ranges,
                  size_t count);

/* Drops the partitions of a container that a saved state has, or that another node has dropped.
 * Their spaces stay. */
void cleaner_keep(Cleaner *cleaner, const Container *container);

/* Whether partitions are being dropped, so that their spaces must not be opened again yet. What
 * ends in another way counts from the first function to the second, which any thread calls. */
bool cleaner_is_dropping(Cleaner *cleaner);
void cleaner_begin_drop(Cleaner *cleaner);
void cleaner_end_drop(Cleaner *cleaner);

/* Waits for partitions that are being dropped, and finishes the piece under way. What is left keeps
 * its record (I5). */
void cleaner_close(Cleaner *cleaner);

/* A way to the cleaner for the sources of a move: their last reader may let go of them after the
 * cleaner is closed. Shared; any thread. */
typedef struct CleanerLink {
    _Atomic uint32_t refs;
    pthread_mutex_t lock; /* guards 'cleaner' */
    Cleaner *cleaner;     /* NULL after the link is closed */
} CleanerLink;

CleanerLink *cleaner_link_new(Cleaner *cleaner); /* with one reference */
void cleaner_link_ref(CleanerLink *link, uint32_t count);

/* Passes garbage on, or leaves it for the next start if the link is closed. Gives a reference back.
 */
void cleaner_link_post(CleanerLink *link, Garbage garbage);
void cleaner_link_close(CleanerLink *link); /* before the cleaner; gives a reference back */

/* The spaces of ranges, neighbouring ones as one piece: gives the piece that begins at range
 * '*from', and moves '*from' to the range after it. False at the end. */
bool garbage_next(const PartitionRange *ranges, size_t count, size_t *from, Garbage *out);
