/* journal_int.h - the interface that an engine implements.
 *
 * An engine keeps rows and runs statements on them. What a lost answer means, chains, the checks of
 * names and sizes and of what was read are written once, above this interface (journal.c,
 * append.c).
 *
 * A statement is answered in one of four ways (EngineReply). Only an engine knows which, and every
 * doubt is ENGINE_LOST.
 *
 * Ownership  An engine's journal begins with a Journal. journal_close calls 'close', which frees
 * it. Threads    As in journal.h: a lane is used by one thread at a time.
 */
#pragma once

#include "base/clock.h"
#include "journal/journal.h"

#include <openssl/evp.h>
#include <stdatomic.h>

/* What a session of the engine sees of a space, after a write of its own was acknowledged. */
typedef struct SettledSpace {
    bool is_found;     /* there is such a space */
    bool is_mine;      /* its owner is the incarnation that asks */
    bool is_same_node; /* its owner has the name of the node that asks */
    JournalPlace tail;
    int64_t sealed;
    uint64_t base;
    bool has_entry; /* the log has an entry with the append's number */
    JournalChain entry_chain;
} SettledSpace;

typedef enum EngineReply {
    ENGINE_ANSWERED,
    ENGINE_UNSENT,  /* the engine has not got the statement, nor will it */
    ENGINE_REFUSED, /* the engine has undone the statement; a space that was busy may be the cause
                     */
    ENGINE_LOST,    /* it was done, will be done later, or neither */
} EngineReply;

/* For 'return engine_reply(ENGINE_LOST, error_set(err, ...))'. */
static inline EngineReply engine_reply(EngineReply reply, Status reason)
{
    ASSERT(reply == ENGINE_ANSWERED || reason != STATUS_OK);
    return reply;
}

/* Who makes a statement. A node that joins again has another incarnation from then on; a call that
 * began before goes on as the old one. */
typedef struct JournalSelf {
    Slice node;
    uint64_t incarnation;
} JournalSelf;

/* Except for the first two, each function is that of journal.h whose name it has, with its
 * arguments checked. A function that returns what must be believed, or that has changed nothing,
 * makes a write of its own before it returns (J10). */
typedef struct JournalOps {
    /* One try. '*moved' has a member for each append. */
    EngineReply (*append)(Journal *journal, const JournalSelf *self, JournalLane lane,
                          const JournalAppend *const *appends, size_t count, uint64_t deadline_us,
                          bool *moved, Error *err);
    EngineReply (*settle)(Journal *journal, const JournalSelf *self, JournalLane lane,
                          const JournalAppend *const *appends, size_t count, uint64_t deadline_us,
                          SettledSpace *out, Error *err);

    /* Entries may be missing from the middle or the beginning of '*out': the caller looks. */
    Status (*read)(Journal *journal, JournalLane lane, uint64_t space, uint64_t seq,
                   size_t bytes_max, Arena *arena, JournalEntries *out, Error *err);

    Status (*join)(Journal *journal, const JournalJoin *join, JournalMember *out, Error *err);
    /* '*format' is that of the cluster. */
    Status (*renew)(Journal *journal, const JournalSelf *self, uint64_t catalog, Slice unreachable,
                    bool *is_member, bool *is_draining, uint64_t *format, Error *err);
    Status (*nodes)(Journal *journal, JournalLane lane, Arena *arena, const JournalNode **out,
                    size_t *count, Error *err);
    Status (*set_draining)(Journal *journal, JournalLane lane, Slice node, bool is_draining,
                           bool *done, Error *err);
    Status (*declare_dead)(Journal *journal, const JournalSelf *self, Slice node,
                           uint64_t incarnation, uint64_t renewal, bool *done, Error *err);
    Status (*remove_node)(Journal *journal, JournalLane lane, Slice node, bool *done, Error *err);

    Status (*owners)(Journal *journal, JournalLane lane, const uint64_t *spaces, size_t count,
                     Arena *arena, const JournalOwner **out, size_t *found, Error *err);
    Status (*create_spaces)(Journal *journal, JournalLane lane, const JournalNewSpace *spaces,
                            size_t count, Error *err);
    Status (*take_over)(Journal *journal, const JournalSelf *self, uint64_t space, uint64_t epoch,
                        Arena *arena, JournalOwner *out, bool *done, Error *err);
    Status (*hand_over)(Journal *journal, uint64_t space, const JournalPlace *place, Slice node,
                        uint64_t incarnation, bool *done, Error *err);
    Status (*seal)(Journal *journal, JournalLane lane, uint64_t space, const JournalPlace *place,
                   int64_t move, bool *done, Error *err);
    Status (*unseal)(Journal *journal, JournalLane lane, uint64_t space, uint64_t epoch,
                     int64_t move, bool *done, Error *err);
    Status (*forget_spaces)(Journal *journal, JournalLane lane, const uint64_t *spaces,
                            size_t count, Error *err);

    Status (*report)(Journal *journal, const JournalSelf *self, JournalLane lane,
                     const JournalReplica *replicas, size_t count, Error *err);
    Status (*replicas)(Journal *journal, JournalLane lane, Arena *arena, const JournalReplica **out,
                       size_t *count, Error *err);
    Status (*expel)(Journal *journal, JournalLane lane, uint64_t space, Slice node, Error *err);
    Status (*trim)(Journal *journal, JournalLane lane, uint64_t space, uint64_t epoch, uint64_t seq,
                   Error *err);
    Status (*rotate)(Journal *journal, JournalLane lane, Error *err);
    Status (*upgrade)(Journal *journal, JournalLane lane, uint32_t *format, Error *err);
    Status (*usage)(Journal *journal, JournalLane lane, Arena *arena, JournalUsage *out,
                    Error *err);
    Status (*engine_time)(Journal *journal, JournalLane lane, uint64_t *wall_us, Error *err);

    JournalEngineId (*engine_id)(Journal *journal);
    void (*meet)(Journal *journal, JournalEngineId id);
    void (*close)(Journal *journal);
} JournalOps;

struct Journal {
    /* Immutable after the open. */
    const JournalOps *ops;
    const Clock *clock;
    EVP_PKEY *key;                          /* the cluster's secret */
    uint32_t pause_ms_max;                  /* between two tries of an append */
    uint32_t format_newest;                 /* that it reads */
    uint8_t process[JOURNAL_ATTEMPT_BYTES]; /* names this Journal, to repeat a lost join */

    /* Written by journal_join. A node keeps its name; it changes its incarnation when it joins
     * anew, while other lanes may be inside a call. */
    char node[JOURNAL_NAME_MAX + 1];
    _Atomic uint64_t incarnation; /* 0 before the first join; 'node' is written before it */

    _Atomic uint64_t hurried_us; /* when journal_hurry was called (cond_now_us); 0 if it was not */

    _Atomic uint32_t format; /* of new entries, from 1 to 'format_newest' */
};

/* For an engine: fills in what is common, and releases it. 'format' is the newest that the journal
 * reads, 0 for JOURNAL_FORMAT. */
void journal_init(Journal *journal, const JournalOps *ops, const Clock *clock,
                  const uint8_t secret[JOURNAL_SECRET_BYTES], uint32_t pause_ms_max,
                  uint32_t format);
void journal_done(Journal *journal);

/* Who this journal has joined as. Asserts that it has. */
JournalSelf journal_self(const Journal *journal);

/* Decides what an append has come to, by the table of README.md. 'is_ambiguous' says that
 * the answer of an earlier try was lost, so that a copy of it may have been done, or may still
 * come. APPEND_PENDING means: send it again. */
AppendOutcome append_decide(const JournalAppend *append, const SettledSpace *settled,
                            bool is_ambiguous);
