/* parts.c - see parts_int.h. */
#include "cluster/parts_int.h"

#include "base/array.h"

static size_t places(void *ctx, ReplicaPlace *out, size_t max)
{
    return replication_places(ctx, out, max);
}

static ReplicaPlace place(void *ctx, StoreSpace space)
{
    return replication_place(ctx, space);
}

static void follow(void *ctx, StoreSpace space)
{
    replication_follow(ctx, space);
}

static Status own(void *ctx, StoreSpace space, const JournalPlace *tail, uint64_t deadline_us,
                  Error *err)
{
    return replication_own(ctx, space, tail, deadline_us, err);
}

static Status yield(void *ctx, StoreSpace space, JournalPlace *last, Error *err)
{
    return replication_yield(ctx, space, last, err);
}

static Status forget(void *ctx, StoreSpace space, Error *err)
{
    return replication_forget(ctx, space, err);
}

static void poke(void *ctx)
{
    replication_poke(ctx);
}

static void set_full(void *ctx, bool is_full)
{
    replication_set_full(ctx, is_full);
}

static Status room(void *ctx, Error *err)
{
    return seed_target_room(ctx, err);
}

static Status source_open(void *ctx, StoreSpace space, SeedSource **out, Error *err)
{
    return seed_source_open(ctx, space, out, err);
}

static Status target_open(void *ctx, StoreSpace space, SeedTarget **out, Error *err)
{
    return seed_target_open(ctx, space, out, err);
}

static bool is_damaged(void *store)
{
    StoreDamage damage;
    store_damage(store, &damage);
    return damage.reads > 0;
}

ClusterStore cluster_store_of(Store *store, Replication *replication)
{
    return (ClusterStore){
        .ctx = replication,
        .places = places,
        .place = place,
        .follow = follow,
        .own = own,
        .yield = yield,
        .forget = forget,
        .poke = poke,
        .set_full = set_full,
        .room = room,
        .source_open = source_open,
        .source_next = seed_source_next,
        .source_close = seed_source_close,
        .target_open = target_open,
        .target_put = seed_target_put,
        .target_finish = seed_target_finish,
        .target_close = seed_target_close,
        .is_damaged = is_damaged,
        .store = store,
    };
}

static Status lead(void *ctx, Error *err)
{
    return catalog_lead(ctx, err);
}

static void follow_catalog(void *ctx)
{
    catalog_follow(ctx);
}

static bool leads(void *ctx)
{
    return catalog_is_leader(ctx);
}

static Status refresh(void *ctx, Error *err)
{
    return catalog_refresh(ctx, err);
}

static Status serve(void *ctx, StoreSpace space, Error *err)
{
    return catalog_serve(ctx, space, err);
}

static Status stop_serving(void *ctx, StoreSpace space, Error *err)
{
    return catalog_stop_serving(ctx, space, err);
}

static bool container_has(const Container *container, StoreSpace space)
{
    bool found = false;
    for (size_t i = 0; i < container->range_count && !found; i++)
        found = container->ranges[i].space == space;
    for (size_t i = 0; i < container->pending_count && !found; i++)
        found = container->pending[i].space == space;
    return found;
}

static uint32_t container_of(void *ctx, StoreSpace space)
{
    uint32_t number = 0;
    CatalogReader reader;
    catalog_reader_init(&reader, ctx);
    const Snapshot *snapshot = catalog_read(&reader);
    SnapshotWalk walk = {0};
    while (number == 0 && snapshot_next(snapshot, &walk)) {
        if (container_has(walk.container, space))
            number = walk.container->info.number;
    }
    catalog_reader_done(&reader);
    return number;
}

static uint32_t switching(void *ctx)
{
    MoveEvent *moves = MEM_NEW_ARRAY(MoveEvent, MOVE_EVENTS_MAX);
    size_t count = catalog_moves(ctx, moves, MOVE_EVENTS_MAX);
    uint32_t container = 0;
    for (size_t i = 0; i < count && container == 0; i++)
        container = moves[i].stage == MOVE_SWITCHING ? moves[i].container : 0;
    mem_free(moves);
    return container;
}

static Status find_named(void *ctx, const StoreSpace *spaces, size_t count, bool *is_named,
                         Error *err)
{
    return catalog_find_named(ctx, spaces, count, is_named, err);
}

/* A database gives its budgets to ranges by position, round and round (I9 of the catalogue). */
static void add_ranges(const SnapshotWalk *walk, Arena *arena, SharedSpace **out, size_t *count,
                       size_t *capacity)
{
    const Container *container = walk->container;
    uint64_t first = (uint64_t)walk->database->info.number << 32;
    for (size_t i = 0; i < container->range_count; i++) {
        ARRAY_GROW_IN(arena, *out, *count, *capacity, 16);
        (*out)[(*count)++] = (SharedSpace){.space = container->ranges[i].space,
                                           .budget = first | i % walk->database->partitions};
    }
}

static void list_shared(void *ctx, Arena *arena, SharedSpace **out, size_t *count)
{
    size_t capacity = 0;
    *out = NULL;
    *count = 0;
    CatalogReader reader;
    catalog_reader_init(&reader, ctx);
    const Snapshot *snapshot = catalog_read(&reader);
    SnapshotWalk walk = {0};
    while (snapshot_next(snapshot, &walk)) {
        if (walk.container->offer == 0 && walk.database->partitions > 0)
            add_ranges(&walk, arena, out, count, &capacity);
    }
    catalog_reader_done(&reader);
}

static void list_usage(void *ctx, Arena *arena, SpaceUsage **out, size_t *count)
{
    catalog_list_usage(ctx, arena, out, count);
}

static void note_usage(void *ctx, SpaceUsage *said, size_t count, uint64_t age_us)
{
    catalog_note_usage(ctx, said, count, age_us);
}

ClusterCatalog cluster_catalog_of(Catalog *catalog)
{
    return (ClusterCatalog){
        .ctx = catalog,
        .lead = lead,
        .follow = follow_catalog,
        .leads = leads,
        .refresh = refresh,
        .serve = serve,
        .stop_serving = stop_serving,
        .container_of = container_of,
        .switching = switching,
        .find_named = find_named,
        .list_shared = list_shared,
        .list_usage = list_usage,
        .note_usage = note_usage,
    };
}
