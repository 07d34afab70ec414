/* memory_journal.h - an engine in memory, for tests: several journals share it, and it fails when
 * told to.
 *
 * It behaves as PostgreSQL with a synchronous standby does, as far as a journal can tell. While the
 * standby is away, a statement that writes waits for it: it is not answered, others do not see it,
 * and they wait for its rows. A restart makes it visible although no standby has it; a promotion
 * forgets it. See README.md.
 *
 * Ownership  The engine is freed after its journals were closed.
 * Threads    All functions may be called from any thread.
 */
#pragma once

#include "base/clock.h"
#include "journal/journal.h"

typedef struct MemoryJournalEngine MemoryJournalEngine;

/* The seed is for memory_journal_set_chaos. */
MemoryJournalEngine *memory_journal_engine_new(uint64_t seed);
void memory_journal_engine_free(MemoryJournalEngine *engine); /* accepts NULL */
DEFINE_AUTO(MemoryJournalEngine *, memory_journal_engine_free)

typedef struct MemoryJournalOptions {
    const Clock *clock; /* NULL for the real one. Deadlines are read from it. */
    bool has_no_pause;  /* between two tries of an append, for a clock that is not the real one */
    uint32_t format;    /* the newest that the journal reads; 0 for JOURNAL_FORMAT */
} MemoryJournalOptions;

/* One Journal for each node. 'options' may be NULL. */
void memory_journal_open(MemoryJournalEngine *engine, const uint8_t secret[JOURNAL_SECRET_BYTES],
                         const MemoryJournalOptions *options, Journal **out);

/* The engine's own clock from now on, of which only the wall time is read. It is the real one until
 * then. */
void memory_journal_set_clock(MemoryJournalEngine *engine, const Clock *clock);

/* ---- faults of connections ---- */

typedef enum MemoryJournalFault {
    MEMORY_JOURNAL_NO_FAULT,
    MEMORY_JOURNAL_LOSE_REQUEST, /* the statement never arrives; the caller does not know that */
    MEMORY_JOURNAL_LOSE_ANSWER,  /* the statement is done; the caller does not know that */
    MEMORY_JOURNAL_DELAY,        /* it arrives later, on memory_journal_deliver; likewise */
    MEMORY_JOURNAL_REFUSE,       /* the engine undoes it: a row was busy for too long */
} MemoryJournalFault;

/* After 'skip' more statements on the lane, the next 'count' meet the fault. JOURNAL_LANE_COUNT
 * stands for all lanes. Another call replaces what was told before. */
void memory_journal_fail(Journal *journal, JournalLane lane, MemoryJournalFault fault,
                         unsigned skip, unsigned count);

/* Each journal_read of this space loses its connection, as if an entry were too long for it. 0 for
 * none any more. A read that is lost ends the connection of its lane (J10). */
void memory_journal_set_unreadable(Journal *journal, uint64_t space);

/* How many statements are delayed; does the one that has waited longest, or the one at 'index', and
 * says whether it has changed anything. */
size_t memory_journal_delayed(MemoryJournalEngine *engine);
bool memory_journal_deliver(MemoryJournalEngine *engine, size_t index);

/* Faults at random, of each 1,000 statements. With 'deliver', that many statements let one that is
 * delayed arrive first, whichever. NULL for none any more. */
typedef struct MemoryJournalChaos {
    unsigned lose_request;
    unsigned lose_answer;
    unsigned delay;
    unsigned refuse;
    unsigned deliver;
} MemoryJournalChaos;
void memory_journal_set_chaos(MemoryJournalEngine *engine, const MemoryJournalChaos *chaos);

/* Each statement takes this long, in real time, before the engine does it. */
void memory_journal_set_latency(MemoryJournalEngine *engine, uint64_t us);

/* ---- faults of the engine ---- */

/* Nothing is reached any more, by one node or by any, until it is again. */
void memory_journal_cut(Journal *journal, bool is_cut);
void memory_journal_set_down(MemoryJournalEngine *engine, bool is_down);

/* The standby goes away, or comes back and gets everything: then all that waited is visible. */
void memory_journal_set_standby(MemoryJournalEngine *engine, bool is_there);

/* The engine crashes and starts again. What waited for the standby is visible from then on, though
 * no standby has it. */
void memory_journal_crash_restart(MemoryJournalEngine *engine);

/* The standby becomes the engine, on a new timeline, with a new standby of its own. If it
 * was away, what it does not have is lost; nothing of that was acknowledged. */
void memory_journal_promote(MemoryJournalEngine *engine);

/* Keeps what the engine has now; and goes back to it, which loses what was acknowledged since: the
 * promotion of a standby that was behind, on a new timeline. */
void memory_journal_backup(MemoryJournalEngine *engine);
void memory_journal_restore(MemoryJournalEngine *engine);

/* Loses the oldest entries of a space, and the base does not say so: a gap. */
void memory_journal_drop_entries(MemoryJournalEngine *engine, uint64_t space, size_t count);

/* How many statements have changed something. */
uint64_t memory_journal_writes(MemoryJournalEngine *engine);
