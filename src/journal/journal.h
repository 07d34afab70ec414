/* journal.h - an ordered, durable, fenced log per space, kept by an engine that several nodes
 * share.
 *
 * A space has one owner at a time: one incarnation of one node, in one epoch. Only the owner
 * appends, and the engine checks that by compare and swap on (epoch, seq, chain): a node that was
 * paused, cut off or deposed cannot write, whatever it believes. Entries are numbered from 1
 * without a gap. Each entry names the chain of the entry before it, so that two histories which
 * agree in numbers are still told apart.
 *
 * The engine also keeps who the nodes are, who owns what, and how far each replica is. Its clock
 * decides nothing of that (J4); nodes may ask for it, to see whether theirs is right. What was read
 * from it is believed only after a later write of the same connection was acknowledged (J10): every
 * function here that returns what must be believed does that by itself.
 *
 * README.md has the invariants J1 to J10.
 *
 * Ownership  The caller closes the Journal after its last call has returned. Slices and arrays that
 *            are handed out live in the arena that was passed in.
 * Threads    Each function belongs to a connection of its own, named by JournalLane, and a lane is
 *            used by one thread at a time. Calls wait for the engine; none is cancelled. A
 *            call fails with STATUS_UNAVAILABLE when its deadline has passed or the engine cannot
 * be reached, and the next call connects again.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"

#define JOURNAL_CHAIN_BYTES 16
#define JOURNAL_NAME_MAX    63 /* characters of a node's name: letters, digits, '-', '_', '.' */

/* The newest format that this program reads and writes: of entries, kinds of merges, tables. What
 * the cluster writes may be older: see journal_format. A build of the next format for the tests
 * defines it. */
#ifndef JOURNAL_FORMAT
#define JOURNAL_FORMAT 1
#endif

#define JOURNAL_SECRET_BYTES  32 /* the cluster's secret, which the engine never sees */
#define JOURNAL_ATTEMPT_BYTES 16
#define JOURNAL_TEXT_MAX      255   /* bytes of an address, a URL, a region */
#define JOURNAL_SPACES_MAX    65536 /* in one call */

#define JOURNAL_UNREACHABLE_MAX 4096 /* bytes of a list of names */

/* An entry is one group of writes. A transaction that is larger by itself is one entry. */
#define JOURNAL_ENTRY_BYTES_MAX  ((size_t)64 << 20)
#define JOURNAL_APPEND_BYTES_MAX ((size_t)128 << 20) /* all entries of one append */

typedef struct Journal Journal;

/* Which connection a call uses: appends, renewals and followers must not wait for each other. */
typedef enum JournalLane {
    JOURNAL_LANE_APPEND_0, /* a space is in at most one append under way */
    JOURNAL_LANE_APPEND_1,
    JOURNAL_LANE_NODE,   /* renewals, take-overs, everything about nodes and owners */
    JOURNAL_LANE_FOLLOW, /* followers: entries, and their progress */
    JOURNAL_LANE_ADMIN,  /* status, trimming, rotating, seeding */
    JOURNAL_LANE_COUNT,
} JournalLane;

typedef struct JournalChain {
    uint8_t bytes[JOURNAL_CHAIN_BYTES]; /* zeroes before the first entry */
} JournalChain;

/* How far a log has come. */
typedef struct JournalPlace {
    uint64_t epoch;
    uint64_t seq;
    JournalChain chain;
} JournalPlace;

/* Keyed with the cluster's secret. 'before' is the place before the entry; the result is that after
 * it, in 'epoch'. */
JournalPlace journal_place_after(const Journal *journal, uint64_t space, const JournalPlace *before,
                                 uint64_t epoch, Slice bytes);

/* ---- appending and reading ---- */

typedef enum AppendOutcome {
    APPEND_PENDING,
    APPEND_DONE,      /* the entry is in the log, once, and durable (J2) */
    APPEND_NOT_OWNER, /* it is not, nor ever will be: the space is another incarnation's, or sealed
                       */
    APPEND_UNKNOWN, /* the log was trimmed past it, or the deadline has passed: a client gets 408 */
    APPEND_LOST,    /* the engine has lost entries that it had acknowledged */
} AppendOutcome;

typedef struct JournalAppend {
    uint64_t space;
    JournalPlace before;
    uint64_t epoch; /* the owner's */
    Slice bytes;
    JournalPlace after; /* filled in by journal_append, before it sends anything */
    AppendOutcome outcome;
} JournalAppend;

/* Appends one entry to each of 'count' different spaces, in one statement, and returns when every
 * outcome is known or 'deadline_us' (monotonic) has passed. After a lost answer it sends
 * the same append again and settles, as the README draws it. Fails only with outcomes that say so:
 * the status is STATUS_OK if each has one other than APPEND_PENDING. An outcome that is still
 * APPEND_PENDING belongs to an append that surely was not done and will not be: it may be made
 * again. A space whose outcome is APPEND_UNKNOWN or APPEND_LOST must not be appended to again in
 * this epoch. */
MUST_USE Status journal_append(Journal *journal, JournalLane lane, JournalAppend *appends,
                               size_t count, uint64_t deadline_us, Error *err);

typedef struct JournalEntry {
    uint64_t seq;
    uint64_t epoch;
    uint32_t format;
    JournalChain before;
    JournalChain chain;
    Slice bytes;
} JournalEntry;

typedef struct JournalEntries {
    const JournalEntry *items;
    size_t count;
    uint64_t base; /* entries up to this one may have been trimmed */
    uint64_t tail;
} JournalEntries;

/* The entries after 'seq', in order and without a gap, at least one if there is one, and no more
 * after 'bytes_max' are reached. If the next entry was trimmed, 'count' is 0 and 'base' > 'seq'. A
 * gap is STATUS_NOT_FOUND, after it was read again: the reader needs a copy from elsewhere, and its
 * own may be right. STATUS_CORRUPT if entries are not what was written.
 * They are not believed yet: see journal_report. */
MUST_USE Status journal_read(Journal *journal, JournalLane lane, uint64_t space, uint64_t seq,
                             size_t bytes_max, Arena *arena, JournalEntries *out, Error *err);

/* ---- nodes ---- */

typedef enum NodeState { NODE_LIVE, NODE_DRAINING, NODE_DEAD } NodeState;

typedef struct JournalNode {
    Slice name;
    uint64_t incarnation;
    uint64_t renewal;
    NodeState state;
    uint32_t format;
    uint64_t catalog;  /* how much of the catalogue's log it has applied and published */
    Slice unreachable; /* names of nodes that it cannot reach, with commas between them */
    Slice address;     /* HOST:PORT for other nodes */
    Slice advertise;   /* URL for clients */
    Slice region;
} JournalNode;

typedef struct JournalJoin {
    Slice name;
    Slice address;
    Slice advertise;
    Slice region;
    uint64_t incarnation_of_folder; /* 0 for a new data folder */
    uint8_t cluster_of_folder[16];  /* the id of the cluster; zeroes for a new data folder */
    /* Random bytes that the folder has kept since before the call: a process that ends after its
     * join and before it has written the incarnation down can join again with them. Zeroes if there
     * are none: then those of the Journal are used. After a lost answer the caller joins again,
     * with the same ones. */
    uint8_t attempt[JOURNAL_ATTEMPT_BYTES];
} JournalJoin;

typedef struct JournalMember {
    uint8_t cluster[16];
    uint32_t format; /* that the cluster writes */
    uint64_t incarnation;
    bool is_first; /* this process has made the tables, and there is no space yet */
} JournalMember;

/* Makes the tables if there are none, and begins a new incarnation of the node. STATUS_CONFLICT if
 * a node of this name lives elsewhere, if the folder is of another cluster, or if the cluster's
 * format is newer than the journal's newest. A new folder has no replicas: what an earlier life of
 * the name has reported is removed. Must be called before any function below. */
MUST_USE Status journal_join(Journal *journal, const JournalJoin *join, JournalMember *out,
                             Error *err);

/* '*is_member' is false if this incarnation was declared dead, or the cluster's format is newer
 * than what the journal reads: it must drop all its spaces and join anew. '*is_draining' says what
 * an operator has asked for. */
MUST_USE Status journal_renew(Journal *journal, uint64_t catalog, Slice unreachable,
                              bool *is_member, bool *is_draining, Error *err);

/* The format that the cluster writes, as it was at the newest renewal, and the newest that this
 * journal reads. What this node writes must be of the first, so that every node reads it; what it
 * reads may be of any up to the second. Any thread. */
uint32_t journal_format(const Journal *journal);
uint32_t journal_format_newest(const Journal *journal);

/* Raises the cluster's format to the newest that all living nodes read, which is '*format' then: it
 * may be what it was. A node that does not read it can no longer join. */
MUST_USE Status journal_upgrade(Journal *journal, JournalLane lane, uint32_t *format, Error *err);

MUST_USE Status journal_nodes(Journal *journal, JournalLane lane, Arena *arena,
                              const JournalNode **out, size_t *count, Error *err);

/* Sets the state of another node to live or draining, for an operator; '*done' is false if
 * there is no such node, or it is dead. */
MUST_USE Status journal_set_draining(Journal *journal, JournalLane lane, Slice node,
                                     bool is_draining, bool *done, Error *err);

/* Declares the incarnation dead if its renewal is still 'renewal' (J4). */
MUST_USE Status journal_declare_dead(Journal *journal, Slice node, uint64_t incarnation,
                                     uint64_t renewal, bool *done, Error *err);

/* Removes a dead node's rows: it is a replica of nothing any more. */
MUST_USE Status journal_remove_node(Journal *journal, JournalLane lane, Slice node, bool *done,
                                    Error *err);

/* ---- owners ---- */

typedef struct JournalOwner {
    uint64_t space;
    Slice node;
    uint64_t incarnation;
    JournalPlace tail;
    int64_t sealed; /* 0, the id of a move, or -1 after a drop */
    uint64_t base;  /* trimmed up to */
} JournalOwner;

/* The owners of 'count' spaces, or of all if 'spaces' is NULL, in order of space. */
MUST_USE Status journal_owners(Journal *journal, JournalLane lane, const uint64_t *spaces,
                               size_t count, Arena *arena, const JournalOwner **out, size_t *found,
                               Error *err);

#define JOURNAL_EPOCH_FIRST 1

/* Makes owners' rows for new spaces, in JOURNAL_EPOCH_FIRST, with nothing in their logs. Rows that
 * exist stay as they are. STATUS_CONFLICT if a node is not a living member of this incarnation. */
typedef struct JournalNewSpace {
    uint64_t space;
    Slice node;
    uint64_t incarnation;
} JournalNewSpace;
MUST_USE Status journal_create_spaces(Journal *journal, JournalLane lane,
                                      const JournalNewSpace *spaces, size_t count, Error *err);

/* Takes a space over whose owner is dead, or whose owner is an earlier incarnation of this node.
 * '*done' is false if 'epoch' is no longer the space's or its owner lives. */
MUST_USE Status journal_take_over(Journal *journal, uint64_t space, uint64_t epoch, Arena *arena,
                                  JournalOwner *out, bool *done, Error *err);

/* Gives a space to another incarnation. The caller serves nothing of it from before the call on.
 * '*done' is false if the space was no longer the caller's at 'place', or the other is dead. */
MUST_USE Status journal_hand_over(Journal *journal, uint64_t space, const JournalPlace *place,
                                  Slice node, uint64_t incarnation, bool *done, Error *err);

MUST_USE Status journal_seal(Journal *journal, JournalLane lane, uint64_t space,
                             const JournalPlace *place, int64_t move, bool *done, Error *err);
MUST_USE Status journal_unseal(Journal *journal, JournalLane lane, uint64_t space, uint64_t epoch,
                               int64_t move, bool *done, Error *err);

/* The spaces were dropped, and no entry of theirs will be read again: removes their rows. */
MUST_USE Status journal_forget_spaces(Journal *journal, JournalLane lane, const uint64_t *spaces,
                                      size_t count, Error *err);

/* ---- replicas and trimming ---- */

typedef enum ReplicaState { REPLICA_SEEDING, REPLICA_FOLLOWING, REPLICA_EXPELLED } ReplicaState;

typedef struct JournalReplica {
    uint64_t space;
    Slice node;
    ReplicaState state;
    uint64_t applied; /* SEEDING: only a number that grows while the copy is being made */
    uint64_t durable;
} JournalReplica;

/* Says how far this node's replicas of 'count' different spaces are, and makes their rows ('node'
 * is not looked at). When it succeeds, what was read before on the same lane may be believed (J10):
 * the write that it makes was acknowledged to the connection that has read. If it fails, what was
 * read must be read again: STATUS_UNAVAILABLE also if the connection is another one by now. Also
 * with 'count' 0. STATUS_CONFLICT if the node has another incarnation than this one, or was
 * removed: the replicas are in another folder, or are none. */
MUST_USE Status journal_report(Journal *journal, JournalLane lane, const JournalReplica *replicas,
                               size_t count, Error *err);

MUST_USE Status journal_replicas(Journal *journal, JournalLane lane, Arena *arena,
                                 const JournalReplica **out, size_t *count, Error *err);

MUST_USE Status journal_expel(Journal *journal, JournalLane lane, uint64_t space, Slice node,
                              Error *err);

/* Entries up to 'seq' are needed no more; by the owner. Never goes beyond what a replica on another
 * node, that is not expelled, has made durable (J6). */
MUST_USE Status journal_trim(Journal *journal, JournalLane lane, uint64_t space, uint64_t epoch,
                             uint64_t seq, Error *err);

/* Empties a table of entries of which all were trimmed, and makes another one the current one if it
 * has grown; by the owner of the catalogue, now and then. */
MUST_USE Status journal_rotate(Journal *journal, JournalLane lane, Error *err);

typedef struct JournalUsage {
    uint64_t bytes; /* that the engine keeps for entries */
    uint64_t entries;
    bool has_synchronous_standby;
    Slice engine;  /* "PostgreSQL 15.18 at db1:5432" */
    Slice warning; /* what an operator should know: no standby, synchronous_commit; empty if
                      there is nothing */
} JournalUsage;
MUST_USE Status journal_usage(Journal *journal, JournalLane lane, Arena *arena, JournalUsage *out,
                              Error *err);

/* What the engine's own clock says: microseconds since 1970. An answer that took long is worth
 * little: the caller measures that. */
MUST_USE Status journal_engine_time(Journal *journal, JournalLane lane, uint64_t *wall_us,
                                    Error *err);

/* Which engine this is, and the newest of its timelines that a connection has met: a promoted
 * standby begins a new one. Zeroes before the first connection. Any thread. */
typedef struct JournalEngineId {
    uint64_t system;
    uint32_t timeline;
} JournalEngineId;
JournalEngineId journal_engine_id(Journal *journal);

/* Another node has met this: connections to an older timeline are closed before they are used
 * again. Any thread. */
void journal_meet(Journal *journal, JournalEngineId id);

/* The process is about to end: what JOURNAL_LANE_ADMIN asks, or has asked already, waits for a
 * moment at most, also if the engine hangs. Any thread. */
void journal_hurry(Journal *journal);

void journal_close(Journal *journal); /* accepts NULL */
DEFINE_AUTO(Journal *, journal_close)
