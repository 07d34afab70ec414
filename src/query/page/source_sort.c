/* source_sort.c - a set in the order of its documents: see source_parts_int.h.
 *
 * All documents of the set are fetched, and of their keys the first ORDER_SORT_MAX after a place
 * are kept. When these have been handed out all are fetched again, for the next ones. That is a
 * bounded amount of memory for any set, and no more work than a page of so many results needs.
 */
#include "base/mem.h"
#include "query/page/source_parts_int.h"

#include <stdlib.h>

enum {
    KEYS_ROOM = 2 * ORDER_SORT_MAX, /* they are sorted, and half of them dropped, when it is full */
    STEPS_PER_FETCH = 20,           /* what an item costs in time, for the run's budget */
};

void sorter_init(Sorter *sorter, Fetcher *fetcher, const OrderBy *order)
{
    *sorter = (Sorter){.fetcher = fetcher, .order = order};
    arena_init(&sorter->arenas[0], ARENA_SMALL_BYTES);
    arena_init(&sorter->arenas[1], ARENA_SMALL_BYTES);
    arena_init(&sorter->place_arena, ORDER_REST_BYTES);
    sorter->arena = &sorter->arenas[0];
}

void sorter_done(Sorter *sorter)
{
    arena_done(&sorter->arenas[0]);
    arena_done(&sorter->arenas[1]);
    arena_done(&sorter->place_arena);
    mem_free(sorter->keys);
}

static void set_place(Sorter *sorter, const OrderKey *place, bool is_after)
{
    arena_reset(&sorter->place_arena);
    sorter->has_place = place != NULL;
    if (place != NULL)
        sorter->place = order_keep(&sorter->place_arena, place);
    sorter->is_after = is_after;
}

void sorter_begin(Sorter *sorter, const NumberSet *set, const OrderKey *place)
{
    sorter->set = *set;
    sorter->count = 0;
    sorter->at = 0;
    sorter->has_more = set->count > 0;
    set_place(sorter, place, false);
}

static int compare(const void *a, const void *b, void *order)
{
    return order_compare(order, a, b);
}

/* Sorts the keys and keeps the first ones; the memory of the others is given back. */
static void settle(Sorter *sorter)
{
    if (sorter->count > 1)
        qsort_r(sorter->keys, sorter->count, sizeof(OrderKey), compare,
                UNCONST(OrderBy, sorter->order)); /* compare() only reads it */
    if (sorter->count <= ORDER_SORT_MAX)
        return;
    Arena *next = &sorter->arenas[sorter->arena == &sorter->arenas[0]];
    for (size_t i = 0; i < ORDER_SORT_MAX; i++)
        sorter->keys[i] = order_keep(next, &sorter->keys[i]);
    arena_reset(sorter->arena);
    sorter->arena = next;
    sorter->count = ORDER_SORT_MAX;
    sorter->has_more = true;
}

static bool is_wanted(const Sorter *sorter, const OrderKey *key)
{
    int from_place = sorter->has_place ? order_compare(sorter->order, key, &sorter->place) : 1;
    if (from_place < 0 || (from_place == 0 && sorter->is_after))
        return false;
    /* After the last kept entry there is room for the next one. */
    return !sorter->has_more || sorter->count < ORDER_SORT_MAX ||
           order_compare(sorter->order, key, &sorter->keys[ORDER_SORT_MAX - 1]) < 0;
}

static Status add_item(Sorter *sorter, uint64_t number, const Item *item)
{
    Planner *planner = sorter->fetcher->planner;
    Run *run = planner->run;
    OrderKey key;
    TRY(plan_bind(planner, item, &run->rows));
    TRY(order_key(planner, sorter->order, &run->rows, number, &key));
    if (!is_wanted(sorter, &key))
        return STATUS_OK;
    if (sorter->count == KEYS_ROOM)
        settle(sorter);
    sorter->keys[sorter->count++] = order_keep(sorter->arena, &key);
    return run_reserve(run, arena_used(&sorter->arenas[0]) + arena_used(&sorter->arenas[1]));
}

static Status read_items(Sorter *sorter)
{
    Run *run = sorter->fetcher->planner->run;
    SetWalk walk = set_walk_up(&sorter->set, 0);
    uint64_t number = 0;
    while (set_walk_next(&walk, &number)) {
        Item item;
        bool found = false;
        TRY(run_charge(run, STEPS_PER_FETCH));
        TRY(fetcher_get(sorter->fetcher, number, &item, &found));
        if (found)
            TRY(add_item(sorter, number, &item));
        arena_reset(&run->rows);
    }
    return STATUS_OK;
}

/* The next keys after the place. */
static Status read_keys(Sorter *sorter)
{
    Run *run = sorter->fetcher->planner->run;
    if (sorter->keys == NULL)
        sorter->keys = MEM_NEW_ARRAY(OrderKey, KEYS_ROOM);
    arena_reset(sorter->arena);
    sorter->count = 0;
    sorter->at = 0;
    sorter->has_more = false;
    Arena *before = run->scratch;
    run->scratch = &run->rows;
    TRY(read_items(sorter));
    run->scratch = before;
    settle(sorter);
    return STATUS_OK;
}

Status sorter_next(Sorter *sorter, Item *item, bool *found)
{
    *found = false;
    while (!*found) {
        if (sorter->at == sorter->count) {
            if (!sorter->has_more)
                return STATUS_OK;
            if (sorter->count > 0)
                set_place(sorter, &sorter->keys[sorter->count - 1], true);
            TRY(read_keys(sorter));
            if (sorter->count == 0)
                return STATUS_OK;
        }
        sorter->key = sorter->keys[sorter->at++];
        TRY(fetcher_get(sorter->fetcher, sorter->key.number, item, found));
    }
    return STATUS_OK;
}
