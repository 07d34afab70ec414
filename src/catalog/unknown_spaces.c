/* unknown_spaces.c - which spaces the records of the catalogue name, and which hold data that none
 * names.
 *
 * Every space with data belongs to a range of a container, in the map or pending, of a container
 * that is kept for a saved state, or is named by a
 * garbage record until it is empty (I5). The records are read before the spaces: a space that is
 * cleaned meanwhile is empty before its record is deleted.
 */
#include "base/array.h"
#include "base/mem.h"
#include "catalog/catalog_int.h"
#include "catalog/placement.h"
#include "catalog/record_int.h"

#include <stdlib.h>

typedef struct Owned {
    Garbage *items; /* spaces from first to last, in order once all are there */
    size_t count;
    size_t capacity;
    StoreSpace next; /* spaces from here on were not given out yet */
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

static Status note_next(void *ctx, const CatalogCounters *counters, Error *err)
{
    (void)err;
    ((Owned *)ctx)->next = counters->space_next;
    return STATUS_OK;
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

/* In order of spaces. */
static Status load_owned(Store *store, bool with_garbage, Owned *owned, Error *err)
{
    /* Records of other kinds have no spaces. */
    RecordVisitor visitor = {
        .ctx = owned,
        .counters = note_next,
        .container = add_container,
        .kept = add_container,
        .garbage = with_garbage ? add_garbage : NULL,
    };
    TRY(record_load(store, &visitor, err));
    if (owned->count > 0)
        qsort(owned->items, owned->count, sizeof(*owned->items), compare);
    return STATUS_OK;
}

static bool has_space(const Owned *owned, StoreSpace space)
{
    size_t low = 0;
    size_t high = owned->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (owned->items[middle].last < space)
            low = middle + 1;
        else
            high = middle;
    }
    return low < owned->count && owned->items[low].first <= space;
}

Status catalog_find_named(Catalog *catalog, const StoreSpace *spaces, size_t count, bool *is_named,
                          Error *err)
{
    AUTO(owned_done) Owned owned = {0};
    TRY(load_owned(catalog->store, true, &owned, err));
    for (size_t i = 0; i < count; i++)
        is_named[i] = spaces[i] < SPACE_PARTITION_FIRST || spaces[i] >= owned.next ||
                      has_space(&owned, spaces[i]);
    return STATUS_OK;
}

Status catalog_find_unknown_spaces(Store *store, void (*found)(void *ctx, StoreSpace space),
                                   void *ctx, Error *err)
{
    AUTO(owned_done) Owned owned = {0};
    TRY(load_owned(store, true, &owned, err));
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
        if (space == STORE_SPACE_MAX)
            return STATUS_OK;
    }
}

Status catalog_find_all_spaces(Store *store, void (*found)(void *ctx, StoreSpace space), void *ctx,
                               Error *err)
{
    AUTO(owned_done) Owned owned = {0};
    TRY(load_owned(store, false, &owned, err));
    StoreSpace next = 0;
    for (size_t at = 0; next <= STORE_SPACE_MAX;) {
        StoreSpace with_data = 0;
        bool is_there = false;
        TRY(store_next_space(store, next, &with_data, &is_there, err));
        while (at < owned.count && owned.items[at].first < next)
            at++;
        bool is_named = at < owned.count;
        if (!is_there && !is_named)
            return STATUS_OK;
        StoreSpace named = is_named ? owned.items[at].first : with_data;
        StoreSpace space = is_there && with_data < named ? with_data : named;
        found(ctx, space);
        next = space + 1;
    }
    return STATUS_OK;
}
