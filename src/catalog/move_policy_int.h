/* move_policy_int.h - which split or merge is due: see move_orders.h.
 *
 * The functions decide by rules, a snapshot and what its partitions hold, here and on other nodes.
 * They change nothing.
 *
 * Threads    Any. MoveBackoffs belongs to one thread.
 */
#pragma once

#include "catalog/move_orders.h"

enum { MOVE_BACKOFFS_MAX = 64 };

/* Immutable after open. */
typedef struct MovePolicy {
    MoveRules rules;
    ProvisionRules provision;
} MovePolicy;

/* Partitions that a move has failed on, and until when they are left alone (monotonic). The newest
 * MOVE_BACKOFFS_MAX of them are known. */
typedef struct MoveBackoffs {
    struct MoveBackoff {
        StoreSpace space; /* 0 if the entry is unused */
        uint64_t until_us;
    } items[MOVE_BACKOFFS_MAX];
    size_t next;
} MoveBackoffs;

void move_backoffs_add(MoveBackoffs *backoffs, StoreSpace space, uint64_t now_us);
bool move_backoffs_has(const MoveBackoffs *backoffs, StoreSpace space, uint64_t now_us);

/* The first move that is due, of any container. May wait for the disk. */
bool move_policy_find_due(const MovePolicy *policy, const MoveBackoffs *backoffs,
                          const Snapshot *snapshot, uint64_t now_us, MoveOrder *out,
                          MoveReason *reason);

/* Whether the container has fewer partitions than its throughput needs, and may be split. */
bool move_policy_needs_split(const MovePolicy *policy, const Snapshot *snapshot,
                             const Container *container);

/* See catalog_plan_merges. */
size_t move_policy_plan_merges(const MovePolicy *policy, const Snapshot *snapshot,
                               const Container *container, uint64_t now_us, Arena *arena,
                               MoveOrder **out);
