/* strays.c - finds data that no record of the catalogue accounts for.
 *
 * Every space with data belongs to a range of a container, one in the map or one that is being
 * filled, or is named by a garbage record until it is empty. The records are read before the spaces
 * are looked at: a space that is emptied meanwhile is empty before its record goes.
 */
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
    if (owned->count == owned->capacity) {
        owned->capacity = owned->capacity == 0 ? 64 : 2 * owned->capacity;
        owned->items = mem_realloc(owned->items, sizeof(*owned->items) * owned->capacity);
    }
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

/* These have no spaces. */
static Status pass_counters(void *ctx, const CatalogCounters *counters, Error *err)
{
    (void)ctx, (void)counters, (void)err;
    return STATUS_OK;
}

static Status pass_database(void *ctx, const DatabaseRecord *record, Error *err)
{
    (void)ctx, (void)record, (void)err;
    return STATUS_OK;
}

static Status pass_offer(void *ctx, const OfferRecord *record, Error *err)
{
    (void)ctx, (void)record, (void)err;
    return STATUS_OK;
}

static Status pass_key(void *ctx, const EncryptionKeyRecord *record, Error *err)
{
    (void)ctx;
    (void)record;
    (void)err;
    return STATUS_OK;
}

static int compare(const void *a, const void *b)
{
    StoreSpace x = ((const Garbage *)a)->first;
    StoreSpace y = ((const Garbage *)b)->first;
    return x < y ? -1 : x > y ? 1 : 0;
}

Status catalog_find_strays(Store *store, void (*found)(void *ctx, StoreSpace space), void *ctx,
                           Error *err)
{
    AUTO(owned_done) Owned owned = {0};
    RecordVisitor visitor = {
        .ctx = &owned,
        .counters = pass_counters,
        .database = pass_database,
        .container = add_container,
        .offer = pass_offer,
        .garbage = add_garbage,
        .key = pass_key,
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
