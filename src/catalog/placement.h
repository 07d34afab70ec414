/* placement.h - which partitions this process serves, for a catalogue that several nodes share.
 *
 * Without a placement a process serves every partition and owns the catalogue. In a cluster the
 * layer above fills a CatalogPlacement in, and tells the catalogue with the functions below what
 * has changed. A partition that is served elsewhere has a handle, but no Partition
 * (handle_is_local is false).
 *
 * Threads    The functions below may be called from any thread that may wait, before catalog_close
 *            begins, but from no hook except 'gather', and with no lock that a hook takes. They
 *            post a message to the catalogue's thread, which publishes a snapshot in which the
 *            change has happened; those that take an Error wait for that, and for the commit of a
 *            group of changes that is under way, but never for 'published'.
 *            The hooks are called on the catalogue's thread, which may wait for a journal, but not
 *            for another message to itself. 'is_local' is also called by the thread that opens the
 *            catalogue and by the one for moves, 'gather' by the latter, 'dropped' by the
 *            cleaner's.
 */
#pragma once

#include "catalog/catalog.h"

typedef void PlacementPublished(void *ctx, bool is_everywhere);

struct CatalogPlacement {
    void *ctx;

    /* Whether this process serves the space now. Asked when the handle of a range is made that was
     * not there before; from then on catalog_serve and catalog_stop_serving decide, of which the
     * former asks it again: who gives a space away sees to it that this is false before it calls
     * the latter. Asked for the catalogue's own space when it is opened: whether this process
     * leads. */
    bool (*is_local)(void *ctx, StoreSpace space);

    /* Whether the time of PartitionHost.clock may be wrong: nothing that has expired is removed
     * meanwhile. Called on writers, often. NULL if it never is. */
    bool (*doubts_time)(void *ctx);

    /* Chooses who will serve new spaces and makes that known, before the change that makes them is
     * committed. Ranges that spend one budget should be together: 'beside' is a space whose owner
     * should have them, or 0. If it fails, so does the change. If the commit fails, the spaces are
     * never named by a range, and may be made again. */
    Status (*create)(void *ctx, StoreSpace first, size_t count, StoreSpace beside, Error *err);

    /* The newest group of changes is durable, and in the log up to here. Calls 'done' (any thread,
     * once) when every living node has published it (J8): the changes are answered then, not
     * before. If nobody waits for that any more, as this node ends, 'is_everywhere' is false, and
     * what clients have asked for is answered with STATUS_TIMEOUT. Several groups may wait, and
     * catalog_close waits for all. NULL if they need not wait. */
    void (*published)(void *ctx, PlacementPublished *done, void *done_ctx);

    /* The spaces were dropped and hold nothing on this node any more. NULL if nobody needs to know.
     */
    void (*dropped)(void *ctx, StoreSpace first, StoreSpace last);

    /* Brings spaces to this node, whose ranges are to be moved: when it returns, catalog_serve was
     * called for each. NULL if only ranges are moved that are here already. */
    Status (*gather)(void *ctx, const StoreSpace *spaces, size_t count, Error *err);
};

/* What a node says of a partition that it serves. */
typedef struct SpaceUsage {
    StoreSpace space;
    PartitionUsage held;
    Charge busiest;  /* the most of one of the last seconds: budget_busiest_second */
    bool is_one_key; /* it holds more than one may, all of it in one logical partition */
} SpaceUsage;

/* What another node says at most of one partition, so that no sum over all ranges overflows. More
 * than that is not believed. */
#define SPACE_USAGE_BYTES_MAX  (UINT64_C(1) << 43)
#define SPACE_USAGE_CHARGE_MAX (UINT64_C(1) << 40)

/* What this process serves, in the arena; and what other nodes have said so long ago of what they
 * serve ('said' is put in order). handle_known_usage shows it: moves by size, merges and offers
 * need it. What is said of a partition that this process serves, or that no range names, is
 * ignored. Neither posts a message or waits for the catalogue's thread; the first one may read from
 * the disk. */
void catalog_list_usage(Catalog *catalog, Arena *arena, SpaceUsage **out, size_t *count);
void catalog_note_usage(Catalog *catalog, SpaceUsage *said, size_t count, uint64_t age_us);

/* Whether this process changes the catalogue, or follows another one. A follower refuses changes
 * with STATUS_NOT_OWNER, and runs no moves and no clean-up that writes. A new leader has applied
 * everything that the old one has committed: the caller has seen to that. It undoes what a start
 * would undo. A leader follows by itself when the store refuses a commit of the catalogue for
 * another owner, or does not know its outcome (STATUS_TIMEOUT). */
MUST_USE Status catalog_lead(Catalog *catalog, Error *err);
void catalog_follow(Catalog *catalog);
bool catalog_is_leader(Catalog *catalog);

/* The catalogue's space has new records, which another node has written. Reads those that changed
 * and publishes them; returns when that is done. Does nothing on a leader. Partitions of containers
 * and ranges that are gone end. If it fails, it may be called again. */
MUST_USE Status catalog_refresh(Catalog *catalog, Error *err);

/* A space is this process's, or another's, from now on. To serve it the partition is opened
 * anew, as the store has it now, unless 'is_local' says by then that it is another's again. To
 * stop, messages that wait or come later are answered with STATUS_NOT_OWNER (nothing was done);
 * returns when none is under way any more. A space that no range of the catalogue names is fine,
 * and does nothing. */
MUST_USE Status catalog_serve(Catalog *catalog, StoreSpace space, Error *err);
MUST_USE Status catalog_stop_serving(Catalog *catalog, StoreSpace space, Error *err);

/* Whether a record of the catalogue, as this node has it, names each of these spaces: of a range,
 * in the map or pending, of a container that is kept for a saved state, or as garbage that the
 * leader has not removed yet. A space that was not given out yet, as far as the records say, counts
 * as named: its record may be on its way. A node drops its copy of those that are not named, after
 * a refresh. */
MUST_USE Status catalog_find_named(Catalog *catalog, const StoreSpace *spaces, size_t count,
                                   bool *is_named, Error *err);
