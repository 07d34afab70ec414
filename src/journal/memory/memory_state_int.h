/* memory_state_int.h - the rows of the memory engine, and what each statement does to them.
 *
 * A MemoryState is what an engine's disk has at one moment. A copy shares the entries, which never
 * change. A statement is a value, so that it can be kept and done later.
 *
 * Ownership  A state owns its rows; entries are counted.
 * Threads    A state belongs to the holder of the engine's lock.
 */
#pragma once

#include "journal/journal_int.h"

typedef struct MemoryEntry {
    _Atomic unsigned refs;
    uint64_t seq;
    uint64_t epoch;
    uint32_t format;
    JournalChain before;
    JournalChain chain;
    size_t len;
    char bytes[];
} MemoryEntry;

typedef struct MemorySpace {
    uint64_t space;
    char node[JOURNAL_NAME_MAX + 1];
    uint64_t incarnation;
    JournalPlace tail;
    int64_t sealed;
    uint64_t base;
    MemoryEntry **entries; /* in order, without a gap */
    size_t count;
    size_t capacity;
    bool is_locked; /* by a statement that waits for the standby */
} MemorySpace;

typedef struct MemoryNode {
    char node[JOURNAL_NAME_MAX + 1];
    uint64_t incarnation;
    uint64_t renewal;
    NodeState state;
    uint32_t format;
    uint64_t catalog;
    uint8_t attempt[JOURNAL_ATTEMPT_BYTES];
    char unreachable[JOURNAL_UNREACHABLE_MAX + 1];
    char address[JOURNAL_TEXT_MAX + 1];
    char advertise[JOURNAL_TEXT_MAX + 1];
    char region[JOURNAL_TEXT_MAX + 1];
    bool is_locked;
} MemoryNode;

typedef struct MemoryReplica {
    uint64_t space;
    char node[JOURNAL_NAME_MAX + 1];
    ReplicaState state;
    uint64_t applied;
    uint64_t durable;
} MemoryReplica;

typedef struct MemoryState {
    bool has_cluster;
    uint8_t cluster[16];
    uint8_t maker[JOURNAL_ATTEMPT_BYTES]; /* of the join that was the first */
    uint32_t format;
    uint64_t last_incarnation;
    MemoryNode *nodes;
    size_t node_count;
    size_t node_capacity;
    MemorySpace *spaces; /* in order */
    size_t space_count;
    size_t space_capacity;
    MemoryReplica *replicas;
    size_t replica_count;
    size_t replica_capacity;
} MemoryState;

typedef enum MemoryStatementKind {
    MEMORY_APPEND,
    MEMORY_JOIN,
    MEMORY_RENEW,
    MEMORY_SET_DRAINING,
    MEMORY_DECLARE_DEAD,
    MEMORY_REMOVE_NODE,
    MEMORY_CREATE_SPACES,
    MEMORY_TAKE_OVER,
    MEMORY_HAND_OVER,
    MEMORY_SEAL,
    MEMORY_UNSEAL,
    MEMORY_FORGET_SPACES,
    MEMORY_REPORT,
    MEMORY_EXPEL,
    MEMORY_TRIM,
    MEMORY_ROTATE,
    MEMORY_UPGRADE,
} MemoryStatementKind;

/* A kind uses the members that the function of its name in journal_int.h has arguments for. */
typedef struct MemoryStatement {
    MemoryStatementKind kind;
    JournalSelf self;
    uint64_t space;
    uint64_t epoch;
    uint64_t number; /* a seq, a renewal, how far the catalogue is */
    JournalPlace place;
    Slice node;
    uint64_t incarnation;
    int64_t move;
    bool is_draining;
    Slice unreachable;
    uint32_t format;
    uint8_t new_cluster[16]; /* for a join that is the first */
    const JournalJoin *join;
    const JournalAppend *const *appends;
    const JournalNewSpace *new_spaces;
    const JournalReplica *replicas;
    const uint64_t *spaces;
    size_t count;
} MemoryStatement;

typedef struct MemoryResult {
    bool has_changed;
    bool *moved; /* for each append; NULL if nobody asks */
    bool is_draining;
    uint32_t format; /* of the cluster, after a renewal or an upgrade */
    JournalMember member;
    const MemorySpace *space; /* that was taken over */
} MemoryResult;

MemoryState *memory_state_copy(const MemoryState *state);
void memory_state_free(MemoryState *state); /* accepts NULL */

MemorySpace *memory_state_space(const MemoryState *state, uint64_t space);     /* or NULL */
MemoryNode *memory_state_node(const MemoryState *state, Slice node);           /* or NULL */
const MemoryEntry *memory_space_entry(const MemorySpace *space, uint64_t seq); /* or NULL */

void memory_state_drop_entries(MemorySpace *space, size_t count); /* the oldest */

/* Does the statement. STATUS_CONFLICT, and nothing is changed, where journal.h says so. */
MUST_USE Status memory_state_apply(MemoryState *state, const MemoryStatement *statement,
                                   MemoryResult *result, Error *err);

/* Whether the statement would wait for a row that another one holds; and holds its rows. */
bool memory_state_is_locked(const MemoryState *state, const MemoryStatement *statement);
void memory_state_lock(MemoryState *state, const MemoryStatement *statement);
void memory_state_unlock_all(MemoryState *state);

/* A copy that lives in 'arena' with all that it points to. */
MemoryStatement *memory_statement_copy(Arena *arena, const MemoryStatement *statement);
