/* unknown_spaces.c - finds spaces with data that no record of the catalogue names.
 *
 * Every space with data belongs to a range of a container, in the map or pending, of a container
 * that is kept for a saved state, or is named by a
 * garbage record until it is empty (I5). The records are read before the spaces: a space that is
 * cleaned meanwhile is empty before its record is deleted.
 */
#include "base/array.h"
#include "base/mem.h"
#include "catalog/catalog.h"
#include "catalog/record_int.h"

#include <stdlib.h>

typedef struct Owned {
    Garbage *items; /* spaces from first to last, in order once all are there */
    size_t count;
    size_t capacity;
} Owned;

static void owned_done(Owned *owned)
{
    mem_free(owned->items);
}
DEFINE_AUTO_VALUE(Owned, owned_done)

static void add(Owned *owned, StoreSpace first, StoreSpace last)
{
    ARRAY_GROW(owned->items, owned->count, owned->capacity, 64);
    owned->items[owned->count++] = (Garbage){.first = first, .last = last};
}

static Status add_container(void *ctx, const ContainerRecord *record, Error *err)
{
    (void)err;
    for (size_t i = 0; i < record->range_count; i++)
        add(ctx, record->ranges[i].space, record->ranges[i].space);
    for (size_t i = 0; i < record->pending_count; i++)
        add(ctx, record->pending[i].space, record->pending[i].space);
    return STATUS_OK;
}

static Status add_garbage(void *ctx, Garbage garbage, Error *err)
{
    (void)err;
    add(ctx, garbage.first, garbage.last);
    return STATUS_OK;
}

static int compare(const void *a, const void *b)
{
    StoreSpace x = ((const Garbage *)a)->first;
    StoreSpace y = ((const Garbage *)b)->first;
    return x < y ? -1 : x > y ? 1 : 0;
}

Status catalog_find_unknown_spaces(Store *store, void (*found)(void *ctx, StoreSpace space),
                                   void *ctx, Error *err)
{
    AUTO(owned_done) Owned owned = {0};
    /* Records of other kinds have no spaces. */
    RecordVisitor visitor = {
        .ctx = &owned,
        .container = add_container,
        .kept = add_container,
        .garbage = add_garbage,
    };
    TRY(record_load(store, &visitor, err));
    if (owned.count > 0)
        qsort(owned.items, owned.count, sizeof(*owned.items), compare);
    size_t at = 0;
    for (StoreSpace space = SPACE_PARTITION_FIRST;; space++) {
        bool is_there = false;
        TRY(store_next_space(store, space, &space, &is_there, err));
        if (!is_there)
            return STATUS_OK;
        while (at < owned.count && owned.items[at].last < space)
            at++;
        if (at == owned.count || owned.items[at].first > space)
            found(ctx, space);
        if (space == UINT64_MAX)
            return STATUS_OK;
    }
}
