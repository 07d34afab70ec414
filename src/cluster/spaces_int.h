/* spaces_int.h - the spaces of this node, and what it does with each.
 *
 *     ABSENT --> FOLLOWING --> TAKING --> SERVING --> YIELDING
 *       ^         |  ^  ^        |          |           |
 *       +---------+  |  +--------+----------+-----------+
 *                    v
 *                 SEEDING <--> REFUSED
 *
 * FOLLOWING: a replica, or about to be one. TAKING: the engine says that the space is this node's;
 * the store applies the rest of its log. SERVING: the store takes transactions, the catalogue has
 * the partition. YIELDING: it has no more, and the engine is asked to give it to another node; that
 * is asked again until the answer is known, because a statement that was sent may still arrive.
 * SEEDING: the copy of another replica is being read. REFUSED: the log has another history than
 * this copy, so the engine has lost writes that it had acknowledged; only an operator can end that
 * (cluster_recover), because any other copy would hide what was lost.
 *
 * TAKING and YIELDING belong to the thread that entered them, which works without the lock. A space
 * that the store has lost goes back to FOLLOWING, or to SEEDING if its copy is of no use.
 *
 * Threads    None of its own; Cluster.lock guards it. A slot's address is good only under the lock.
 */
#pragma once

#include "journal/journal.h"
#include "store/store.h"

/* Why a space goes to another node. */
typedef enum HandOverReason {
#define HAND_OVER_ROW(name, text) REASON_##name,
#include "cluster/hand_over_reasons.def"
    REASON_UNKNOWN
} HandOverReason;
const char *hand_over_reason_text(HandOverReason reason);

typedef enum SpaceState {
    SPACE_STATE_ABSENT,
    SPACE_STATE_FOLLOWING,
    SPACE_STATE_SEEDING,
    SPACE_STATE_REFUSED,
    SPACE_STATE_TAKING,
    SPACE_STATE_SERVING,
    SPACE_STATE_YIELDING,
} SpaceState;

typedef struct SpaceSlot {
    StoreSpace space;
    SpaceState state;
    bool is_lost;        /* SERVING, but the store has it no more: the manager cleans up */
    bool is_refused;     /* TAKING or lost: the log has another history */
    bool needs_seed;     /* TAKING: the log does not reach back to the copy */
    bool accepts_log;    /* an operator has said that the log is right */
    bool is_handing;     /* YIELDING, and what is below of the hand-over is known */
    uint64_t epoch;      /* TAKING, SERVING and YIELDING: this node's */
    uint64_t epoch_gone; /* up to here the space is this node's no more, whatever was read before */
    uint64_t served_us;  /* SERVING: boot time since when */
    uint64_t applied_before; /* SERVING: what was applied before the next read of the engine */
    uint64_t retry_us;       /* boot time before which taking or seeding it is not tried again */
    uint32_t seed_failures;  /* SEEDING: attempts in turn that have failed */
    uint64_t pinned_us;      /* boot time until which it stays on this node, owned or followed */
    uint64_t rowless_us; /* boot time at which the engine was first found to have no row of it */
    uint64_t orphan_us;  /* boot time at which its owner was first found dead; 0 if it is not */
    uint64_t apart_us;   /* SERVING: boot time at which others of its group were first found to have
                            another owner; 0 if they have not */
    JournalPlace last;   /* YIELDING: where it was left */
    char to[JOURNAL_NAME_MAX + 1]; /* YIELDING: the next owner */
    uint64_t to_incarnation;
    HandOverReason to_reason;
    uint64_t yield_us; /* YIELDING: boot time since when */

    uint64_t given_epoch; /* in which the owner before has given the space to this node, and why */
    HandOverReason given_reason;
    uint64_t given_us; /* boot time of this node since when that owner serves it no more */
    uint64_t open_us;  /* SERVING: boot time since when requests are let in */
} SpaceSlot;

typedef struct SpaceTable {
    SpaceSlot *items; /* in order of space */
    size_t count;
    size_t capacity;
} SpaceTable;

void space_table_done(SpaceTable *table);
SpaceSlot *space_table_find(const SpaceTable *table, StoreSpace space); /* NULL if there is none */
SpaceSlot *space_table_get(SpaceTable *table, StoreSpace space);        /* ABSENT if it is new */
void space_table_remove(SpaceTable *table, StoreSpace space);           /* must be ABSENT */

/* Asserts that the transition is one of those above. */
void space_enter(SpaceSlot *slot, SpaceState state);
const char *space_state_text(SpaceState state);
