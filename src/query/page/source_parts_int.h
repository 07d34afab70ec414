/* source_parts_int.h - what sources are made of: items fetched by number, a set that is sorted, a
 * walk along values. */
#pragma once

#include "query/page/document_source_int.h"

/* ---- items by number ---- */

typedef struct Fetcher {
    Planner *planner;
    Slice epk_from;
    Slice epk_to;
    const Clock *clock;
    uint64_t deadline_us;
    uint64_t looks;
    bool is_paused;
    uint64_t number; /* that was looked at last */
} Fetcher;

MUST_USE Status fetcher_get(Fetcher *fetcher, uint64_t number, Item *item, bool *found);

/* The next item of a set that is there. If none is found, the set has ended or the fetcher has
 * paused. */
MUST_USE Status fetcher_next(Fetcher *fetcher, SetWalk *numbers, Item *item, bool *found);

/* Looks at the clock now and then. */
bool fetcher_is_late(Fetcher *fetcher);

/* ---- sorting: source_sort.c ---- */

/* Goes through a set of any size, ORDER_SORT_MAX documents at a time. */
typedef struct Sorter {
    Fetcher *fetcher;
    const OrderBy *order;
    NumberSet set;
    Arena arenas[2]; /* of 'keys', the one in use and the next */
    Arena *arena;
    OrderKey *keys;
    size_t count;
    size_t at;
    bool has_more; /* after those */
    Arena place_arena;
    OrderKey place; /* where the next ones begin */
    bool has_place;
    bool is_after; /* the document at the place itself came already */
    OrderKey key;  /* of the item that came last */
} Sorter;

void sorter_init(Sorter *sorter, Fetcher *fetcher, const OrderBy *order);
void sorter_done(Sorter *sorter);

/* Begins at the first document if 'place' is NULL. The set is borrowed. */
void sorter_begin(Sorter *sorter, const NumberSet *set, const OrderKey *place);
MUST_USE Status sorter_next(Sorter *sorter, Item *item, bool *found);

/* ---- along values: source_walk.c ---- */

typedef enum WalkPhase { PHASE_OVER, PHASE_MISSING, PHASE_VALUES } WalkPhase;

typedef struct ValueWalk {
    Fetcher *fetcher;
    const SourceOptions *options;
    const OrderBy *order;
    IndexWalk *walk;
    WalkPhase phases[3];
    size_t phase;
    uint64_t passed; /* values that were looked at */

    /* The value at hand. */
    Arena arena;
    Slice value;
    bool has_value;
    NumberSet items;
    SetWalk numbers;
    Sorter sorter;
    bool is_sorted;
    Json covered;    /* the value of its documents at the covered path */
    bool is_covered; /* 'covered' is set; otherwise documents are fetched */

    OrderKey place; /* where to begin, while 'is_resuming' */
    bool is_resuming;
    OrderKey key; /* of the item that came last, or where to go on */
} ValueWalk;

MUST_USE Status value_walk_init(ValueWalk *walk, Fetcher *fetcher, const SourceOptions *options);
void value_walk_done(ValueWalk *walk);
MUST_USE Status value_walk_next(ValueWalk *walk, Item *item, bool *found);

/* ---- errors ---- */

MUST_USE Status source_bad_position(const Planner *planner);
MUST_USE Status source_out_of_budget(const Planner *planner);
