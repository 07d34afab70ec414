/* move_orders.h - splits and merges of physical partitions: rules, orders, stages, events.
 *
 * One thread of the catalogue drives one move at a time: it finds out where to cut, lets the
 * catalogue begin the move, copies the items (partition/item_move.h) while clients read and write,
 * and lets the catalogue change the map. If anything fails, or the process ends, the move is undone
 * and everything is as it was before (I10).
 *
 * A container has as many partitions as its throughput needs, whatever it holds, and more if one of
 * them would hold too much. A logical partition is never cut: a physical one that holds too much,
 * all in one logical partition, is reported and left alone.
 *
 * Threads    Any.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "catalog/snapshot.h"

typedef struct Catalog Catalog;

/* Which moves happen without an order, and how fast moves may be. */
typedef struct MoveRules {
    bool splits;                  /* as throughput and storage need them */
    bool merges;                  /* when throughput was lowered, and storage allows them */
    uint64_t partition_bytes_max; /* a physical partition that holds more is split */
    uint64_t bytes_per_s;         /* the rate of copying; 0 if it is not limited */
} MoveRules;

typedef enum SplitBy {
    SPLIT_BY_SIZE, /* into parts that hold equally much */
    SPLIT_BY_HASH, /* into equal parts of the range of hashes */
    SPLIT_ALWAYS,  /* by size, and by hash where too little is stored for so many cuts */
} SplitBy;

/* The most sources, and the most targets, of one move. */
#define MOVE_RANGES_MAX 64

typedef struct MoveOrder {
    uint32_t database;
    uint32_t container;
    uint32_t range_first; /* ids of neighbours, the first and the last */
    uint32_t range_last;
    uint32_t parts; /* how many ranges they become; one for a merge */
    SplitBy by;
    Slice cut; /* where to cut in two, as text (epk_range.h); empty if 'by' decides */
} MoveOrder;

/* Takes the order. The event with the number '*event' shows how it goes on. STATUS_THROTTLED if too
 * many orders wait. */
MUST_USE Status catalog_order_move(Catalog *catalog, const MoveOrder *order, uint64_t *event,
                                   Error *err);

typedef enum MoveReason { MOVE_ASKED, MOVE_THROUGHPUT, MOVE_STORAGE } MoveReason;

/* The life of a move:
 *
 *     WAITING --> COPYING --> CATCHING_UP <--> SWITCHING --> DONE
 *        |           |             |               |
 *        +-----------+-------------+---------------+-------> FAILED
 *
 * It waits until its targets are made, too. It goes back from SWITCHING if much was written at the
 * last moment. A move that has failed is undone: everything is as it was before.
 */
typedef enum MoveStage {
    MOVE_WAITING,
    MOVE_COPYING,
    MOVE_CATCHING_UP,
    MOVE_SWITCHING,
    MOVE_DONE,
    MOVE_FAILED,
} MoveStage;

static inline bool move_stage_is_final(MoveStage stage)
{
    return stage == MOVE_DONE || stage == MOVE_FAILED;
}

/* The words that people read for the values of the enums above. */
Slice move_reason_text(MoveReason reason);
Slice move_stage_text(MoveStage stage);

typedef struct MoveEvent {
    uint64_t number; /* counts from 1 since the start */
    MoveReason reason;
    MoveStage stage;
    uint32_t database;
    uint32_t container;
    uint32_t sources[MOVE_RANGES_MAX];
    size_t source_count;
    uint32_t targets[MOVE_RANGES_MAX];
    size_t target_count;
    uint64_t begun_us;    /* wall clock */
    uint64_t ended_us;    /* wall clock; 0 if it has not ended */
    uint64_t bytes;       /* copied so far */
    uint64_t bytes_total; /* about how many there are to copy */
    uint64_t items;       /* copied so far */
    uint64_t caught_up;   /* items that changed while they were copied */
    uint64_t fence_us;    /* how long writes had to wait */
    char message[200];    /* why it failed */
} MoveEvent;

#define MOVE_EVENTS_MAX 256 /* that are kept */

/* The newest events first, those of moves under way included; at most 'max'. Returns how many. */
size_t catalog_moves(Catalog *catalog, MoveEvent *out, size_t max);

/* Moves since the start. */
typedef struct MoveCounts {
    uint64_t splits_done;
    uint64_t splits_failed;
    uint64_t merges_done;
    uint64_t merges_failed;
    uint64_t bytes;        /* copied by moves that have ended */
    uint64_t fence_us;     /* how long they kept writes waiting, in all */
    uint64_t fence_us_max; /* and the longest of them */
} MoveCounts;
MoveCounts catalog_move_counts(Catalog *catalog);

/* Whether a move of the container waits or is under way. */
bool catalog_is_moving(Catalog *catalog, const Container *container);

/* Whether a move of the container waits or is under way, or a split is due for its throughput and
 * has not failed since that was provisioned. */
bool catalog_is_scaling(Catalog *catalog, const Snapshot *snapshot, const Container *container);

/* Plans the merges that leave the container with no more partitions than its throughput and what it
 * holds need. Each order merges neighbours that hold little together, and stands alone. Returns how
 * many there are. */
size_t catalog_plan_merges(const Catalog *catalog, const Snapshot *snapshot,
                           const Container *container, Arena *arena, MoveOrder **out);
