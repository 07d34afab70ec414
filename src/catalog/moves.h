/* moves.h - splits and merges of physical partitions: when, asking for them, seeing them.
 *
 * One thread of the catalogue (mover.c) drives one move at a time: it finds out where to cut, lets
 * the catalogue begin the move, brings the items over (partition/move.h) while clients go on, and
 * lets the catalogue change the map. If anything fails, or the process ends, the move is undone and
 * everything is as it was before.
 *
 * A container has as many partitions as its throughput takes, whatever it holds, and more if one of
 * them would hold too much. What is cut is never a logical partition: a physical one that holds too
 * much of nothing but one is reported and left alone.
 *
 * Threads    Any.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "catalog/snapshot.h"

typedef struct Catalog Catalog;

/* When moves happen by themselves, and how fast they may be. */
typedef struct MoveRules {
    bool splits;                  /* as throughput and storage need it */
    bool merges;                  /* when throughput has fallen, and storage allows it */
    uint64_t partition_bytes_max; /* of one physical partition, before it is split */
    uint64_t bytes_per_s;         /* that are copied; 0: as fast as it goes */
} MoveRules;

typedef enum SplitBy {
    SPLIT_BY_SIZE, /* into parts that hold equally much */
    SPLIT_BY_HASH, /* into equal parts of the range of hashes */
    SPLIT_ALWAYS,  /* by size, and by hash where too little is stored to be cut so often */
} SplitBy;

/* Ranges that move at once; targets, too. */
#define MOVE_RANGES_MAX 64

typedef struct MoveOrder {
    uint32_t database;
    uint32_t container;
    uint32_t range_first; /* ids of neighbours, the first and the last */
    uint32_t range_last;
    uint32_t parts; /* that they become: one, and it is a merge */
    SplitBy by;
    Slice cut; /* of two parts: exactly here, as text (epk_range.h); empty: nowhere special */
} MoveOrder;

/* Takes the order; what becomes of it is seen in the event with this number. STATUS_THROTTLED if
 * too many wait. */
MUST_USE Status catalog_order_move(Catalog *catalog, const MoveOrder *order, uint64_t *event,
                                   Error *err);

typedef enum MoveReason { MOVE_ASKED, MOVE_THROUGHPUT, MOVE_STORAGE } MoveReason;
typedef enum MoveStage {
    MOVE_WAITING,
    MOVE_COPYING,
    MOVE_CATCHING_UP,
    MOVE_SWITCHING,
    MOVE_DONE,
    MOVE_FAILED, /* and undone */
} MoveStage;

/* Words for people, of the enums above. */
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
    uint64_t ended_us;    /* 0: it has not */
    uint64_t bytes;       /* copied so far ... */
    uint64_t bytes_total; /* ... of about so many */
    uint64_t items;
    uint64_t caught_up; /* items that had changed meanwhile */
    uint64_t fence_us;  /* how long writes had to wait */
    char message[200];  /* why it failed */
} MoveEvent;

/* The newest first, those under way included; as many as are kept, at most 'max'. */
#define MOVE_EVENTS_MAX 256
size_t catalog_moves(Catalog *catalog, MoveEvent *out, size_t max);

/* What has come of moves since the start. */
typedef struct MoveCounts {
    uint64_t splits_done;
    uint64_t splits_failed;
    uint64_t merges_done;
    uint64_t merges_failed;
    uint64_t bytes;        /* copied by those that are over */
    uint64_t fence_us;     /* that writes had to wait, in all */
    uint64_t fence_us_max; /* the longest of them */
} MoveCounts;
MoveCounts catalog_move_counts(Catalog *catalog);

/* Whether a move of the container waits or is under way. */
bool catalog_is_moving(Catalog *catalog, const Container *container);

/* The same, or one is due for its throughput and has not failed since that was provisioned. */
bool catalog_is_scaling(Catalog *catalog, const Snapshot *snapshot, const Container *container);

/* The merges that leave the container with no more partitions than its throughput and what it holds
 * need: of neighbours that hold little together, each order for itself. */
size_t catalog_plan_merges(const Catalog *catalog, const Snapshot *snapshot,
                           const Container *container, Arena *arena, MoveOrder **out);
