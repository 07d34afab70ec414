/* replicated_store.h - RocksDB behind a journal that several nodes share.
 *
 * A space is in one of three states on a node: absent, followed, or owned. A transaction on a space
 * that this node owns is appended to the journal, with others of the same group, and then written
 * to RocksDB together with the place in the log that it has reached. A transaction on any other
 * space fails with STATUS_NOT_OWNER and changes nothing. A followed space gets the same writes, in
 * the same order, from the journal.
 *
 *     absent --follow--> followed --own--> owned
 *        ^                 |   ^             |
 *        +----forget-------+   +---yield-----+   (or the append says that it is another's)
 *
 * RocksDB is not synced with each write: what it loses in a crash is in the journal. A place is
 * durable when a sync of RocksDB's log that began after it has succeeded.
 *
 * Ownership  The store is closed with store_close(); the Replication dies with it. The journal
 *            outlives both.
 * Threads    Functions here may be called from any thread and may wait for the disk and the
 *            journal; not from a hook.
 */
#pragma once

#include "journal/journal.h"
#include "store/rocksdb/rocksdb_store.h"
#include "store/store.h"

typedef struct Replication Replication;

typedef enum SpaceRole { SPACE_ABSENT, SPACE_FOLLOWED, SPACE_OWNED } SpaceRole;

/* Called on threads of the store; they must not wait, and pass a message on. */
typedef struct ReplicationHooks {
    void *ctx;
    /* A followed space has new writes, up to 'seq', which readers see. */
    void (*applied)(void *ctx, StoreSpace space, uint64_t seq);
    /* A space that was owned is so no more: the journal has another owner, or has lost entries, or
     * RocksDB refused what the journal has. It is followed from now on if 'reason' is
     * STATUS_NOT_OWNER, else absent until it is seeded. */
    void (*lost)(void *ctx, StoreSpace space, const Error *reason);
    /* The journal no longer has what a followed space needs: it must be seeded from another node.
     */
    void (*behind)(void *ctx, StoreSpace space);
} ReplicationHooks;

typedef struct ReplicatedStoreOptions {
    RocksdbStoreOptions local; /* its durability is not looked at */
    Journal *journal;          /* joined */
    ReplicationHooks hooks;
    const Clock *clock;
} ReplicatedStoreOptions;

MUST_USE Status replicated_store_open(const ReplicatedStoreOptions *options, Store **out,
                                      Replication **replication, Error *err);

/* Makes the first copy in a new journal of the folder of a server that had none: all its spaces get
 * an owner's row, for this node, and a log that begins with what the folder has. Whoever follows
 * them is seeded. The folder is opened by nobody else, and its data is not changed. Fails with
 * STATUS_CONFLICT if the journal has other nodes or other spaces; after any failure, and
 * after the end of the process at any moment, it may be called again in a later incarnation of
 * the node. Not to be used once the node has served anything. */
typedef struct ReplicationAdoption {
    RocksdbStoreOptions local; /* its durability is not looked at */
    Journal *journal;          /* joined */
    Slice node;                /* as what */
    uint64_t incarnation;
    const StoreSpace *spaces; /* all that are to be served, in order */
    size_t space_count;
    void (*progress)(void *ctx, size_t done, size_t total); /* may be NULL */
    void *ctx;
} ReplicationAdoption;
MUST_USE Status replication_adopt(const ReplicationAdoption *options, Error *err);

typedef struct ReplicaPlace {
    StoreSpace space;
    SpaceRole role;
    JournalPlace applied;
    uint64_t durable_seq;
} ReplicaPlace;

/* Where each space is that this node holds; up to 'max', in order; returns how many there are. */
size_t replication_places(Replication *replication, ReplicaPlace *out, size_t max);
ReplicaPlace replication_place(Replication *replication, StoreSpace space);

/* Begins to follow. A space that the node does not hold begins empty, at the beginning of its log.
 */
void replication_follow(Replication *replication, StoreSpace space);

/* The journal says that the space is this node's, in 'tail.epoch'. Applies everything up to 'tail',
 * and takes transactions from then on. Fails, and leaves the space as it was, if the log cannot be
 * read that far before the deadline. STATUS_NOT_FOUND if it must be seeded first; STATUS_CORRUPT,
 * and nothing else, if the log has another history; STATUS_NOT_IMPLEMENTED if it needs a newer
 * program. */
MUST_USE Status replication_own(Replication *replication, StoreSpace space,
                                const JournalPlace *tail, uint64_t deadline_us, Error *err);

/* Stops taking transactions, waits for those that were taken, and follows from then on.
 * STATUS_NOT_OWNER if one of them has lost the space: then the hook 'lost' says so. */
MUST_USE Status replication_yield(Replication *replication, StoreSpace space, JournalPlace *last,
                                  Error *err);

/* Drops the node's copy. STATUS_CONFLICT if the space is owned. */
MUST_USE Status replication_forget(Replication *replication, StoreSpace space, Error *err);

/* Waits until the space has applied 'seq', whoever owns it. */
MUST_USE Status replication_wait(Replication *replication, StoreSpace space, uint64_t seq,
                                 uint64_t deadline_us, Error *err);

/* The engine keeps as much of the journal as it may, or no longer does: transactions that take room
 * are refused with STATUS_THROTTLED meanwhile. Those that make room are taken, although they are
 * entries, too. */
void replication_set_full(Replication *replication, bool is_full);

/* Looks for new entries now instead of at the next poll. From any thread, also from a loop. */
void replication_poke(Replication *replication);

/* A digest of everything that readers see in the space, and the place at which it was taken (J5).
 */
#define REPLICATION_DIGEST_BYTES 32
MUST_USE Status replication_digest(Replication *replication, StoreSpace space, JournalPlace *at,
                                   uint8_t out[REPLICATION_DIGEST_BYTES], Error *err);

/* Seeding: a copy of a space, in pieces of about 'bytes_max', each with a checksum. The first
 * piece begins with the place of the snapshot from which all are read. 'is_last' ends it. */
typedef struct SeedSource SeedSource;
typedef struct SeedTarget SeedTarget;
MUST_USE Status seed_source_open(Replication *replication, StoreSpace space, SeedSource **out,
                                 Error *err);
MUST_USE Status seed_source_next(SeedSource *source, size_t bytes_max, Buf *piece, bool *is_last,
                                 Error *err);
void seed_source_close(SeedSource *source); /* accepts NULL */
DEFINE_AUTO(SeedSource *, seed_source_close)

/* STATUS_IO if the disk is too full to begin a copy, which is of unknown size. */
MUST_USE Status seed_target_room(Replication *replication, Error *err);

/* The node's own copy is dropped first. The space is followed when the last piece was put. */
MUST_USE Status seed_target_open(Replication *replication, StoreSpace space, SeedTarget **out,
                                 Error *err);
MUST_USE Status seed_target_put(SeedTarget *target, Slice piece, Error *err);
MUST_USE Status seed_target_finish(SeedTarget *target, Error *err);
void seed_target_close(SeedTarget *target); /* accepts NULL; an unfinished copy is dropped */
DEFINE_AUTO(SeedTarget *, seed_target_close)
