/* memory_journal_int.h - the memory engine: what is shared by the files that make it. */
#pragma once

#include "base/random.h"
#include "journal/memory/memory_journal.h"
#include "journal/memory/memory_state_int.h"

#include <pthread.h>

/* A statement that arrives later. */
typedef struct DelayedStatement {
    Arena arena;
    const MemoryStatement *statement;
} DelayedStatement;

struct MemoryJournalEngine {
    pthread_mutex_t lock; /* guards everything below */
    MemoryState *visible; /* what statements see */
    MemoryState *hidden;  /* with what waits for the standby; NULL if nothing does */
    MemoryState *standby; /* what it has, while it is away; else NULL */
    MemoryState *backup;  /* or NULL */
    uint64_t system;
    uint32_t timeline;
    uint64_t session; /* another one after each event that ends all connections */
    uint64_t writes;
    bool is_down;
    uint64_t latency_us;
    const Clock *clock;
    bool has_chaos;
    MemoryJournalChaos chaos;
    Random random;
    DelayedStatement **delayed; /* oldest first */
    size_t delayed_count;
    size_t delayed_capacity;
};

typedef struct LaneFault {
    MemoryJournalFault fault;
    unsigned skip;
    unsigned count;
} LaneFault;

typedef struct MemoryJournal {
    Journal journal; /* first */
    MemoryJournalEngine *engine;

    /* Guarded by the engine's lock. */
    LaneFault faults[JOURNAL_LANE_COUNT];
    uint64_t session_of_read[JOURNAL_LANE_COUNT]; /* the first since the last report; 0 if none */
    uint64_t lost_reads[JOURNAL_LANE_COUNT];      /* each ends the session of its lane */
    uint64_t unreadable;                          /* a space; 0 for none */
    uint32_t timeline_met;
    bool is_cut;
} MemoryJournal;

extern const JournalOps MEMORY_JOURNAL_OPS;

/* Under the engine's lock. */

/* Does a statement, as far as the standby lets it. STATUS_CONFLICT as memory_state_apply says;
 * STATUS_UNAVAILABLE with result->has_changed if it waits for the standby, and without if it waits
 * for a row. */
MUST_USE Status memory_engine_apply(MemoryJournalEngine *engine, const MemoryStatement *statement,
                                    MemoryResult *result, Error *err);

bool memory_engine_deliver(MemoryJournalEngine *engine, size_t index);
void memory_engine_delay(MemoryJournalEngine *engine, const MemoryStatement *statement);

/* The fault that the next statement on the lane meets. */
MemoryJournalFault memory_engine_fault(MemoryJournal *memory, JournalLane lane);
