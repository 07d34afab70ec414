/* key_queries.c - see key_queries.h. */
#include "advise/key_queries.h"

#include "query/plan/query_route.h"

#include <math.h>

static const double CHARGE_UNIT = 100; /* a Charge counts hundredths */

/* How many of 'count' partitions are hit by that many keys, on average. */
static double spread(double keys, uint32_t count)
{
    return count * (1 - pow(1 - 1.0 / count, keys));
}

typedef struct Visits {
    double mean; /* partitions */
    double one;  /* how likely it is that it is one */
} Visits;

static Visits visits_make(double mean)
{
    return (Visits){mean, mean <= 1 + 1e-9 ? 1 : 0};
}

/* Partitions that the ranges of a route lie in. Splits may have divided the items of a prefix. */
static Visits visited(const QueryRoute *route, PartitionKind kind, const KeyLayout *layout,
                      uint32_t count)
{
    bool is_visited[LAYOUT_PARTITIONS_MAX] = {false};
    double sum = 0;
    for (size_t i = 0; i < route->count; i++) {
        const QueryRange *range = &route->ranges[i];
        uint32_t from = layout_partition(epk_fraction(kind, range->from), count);
        if (is_visited[from])
            continue;
        is_visited[from] = true;
        sum += range->is_key ? 1 : layout->prefix_partitions[range->key.count - 1];
    }
    Visits visits = visits_make(sum < count ? sum : count);
    if (route->count == 1 && !route->ranges[0].is_key)
        visits.one = layout->prefix_one_share[route->ranges[0].key.count - 1];
    return visits;
}

static bool names_all_keys(const QueryRoute *route)
{
    for (size_t i = 0; i < route->count; i++) {
        if (!route->ranges[i].is_key)
            return false;
    }
    return !route->is_all;
}

static void route_by(const KeyCandidate *key, const Query *query, Arena *scratch, QueryRoute *out)
{
    PartitionKeyDefinition definition;
    key_candidate_definition(key, &definition);
    query_route(query, scratch, &definition, out);
}

/* Whether a query says which item it wants, so that the suffix of its key is known. */
static bool names_id(const Query *query, Arena *scratch)
{
    static const Slice id = SLICE_INIT("id");
    KeyCandidate key = {.kind = KEY_SINGLE, .path_count = 1, .paths = {{&id, 1}}};
    QueryRoute route;
    route_by(&key, query, scratch, &route);
    return names_all_keys(&route);
}

static Visits visits_of(const KeyCandidate *key, const KeyLayout *layout, const Query *query,
                        uint32_t partitions, Arena *scratch)
{
    QueryRoute route;
    route_by(key, query, scratch, &route);
    if (route.is_all)
        return visits_make(partitions);
    if (route.count == 0)
        return visits_make(1); /* nothing can match: a server still looks once */
    switch (key->kind) {
    case KEY_SINGLE:
        return visited(&route, PARTITION_HASH_V2, layout, partitions);
    case KEY_HIERARCHICAL:
        return visited(&route, PARTITION_MULTI_HASH, layout, partitions);
    case KEY_SYNTHETIC:
        return visits_make(names_all_keys(&route) ? spread((double)route.count, partitions)
                                                  : partitions);
    case KEY_SUFFIXED:
        return visits_make(spread(
            (double)route.count * (names_id(query, scratch) ? 1 : key->suffixes), partitions));
    }
    return visits_make(partitions);
}

void key_queries_make(const KeyCandidate *key, const KeyLayout *layout, const Workload *work,
                      uint32_t partitions, const ChargeModel *model, Arena *arena, KeyQueries *out)
{
    ASSERT(work->count > 0);
    double look_ru = (double)charge_query(model, &(QueryWork){0}) / CHARGE_UNIT;
    *out = (KeyQueries){.visits = ARENA_NEW_ARRAY(arena, float, work->count)};
    AUTO(arena_done) Arena scratch;
    arena_init(&scratch, ARENA_SMALL_BYTES);
    double one = 0;
    double visits_s = 0;
    for (size_t i = 0; i < work->count; i++) {
        arena_reset(&scratch);
        Visits visits = visits_of(key, layout, work->list[i].query, partitions, &scratch);
        double rate = work->list[i].per_second;
        out->visits[i] = (float)visits.mean;
        one += visits.one * rate;
        visits_s += visits.mean * rate;
    }
    double rate = work->per_second;
    out->one_share = rate > 0 ? one / rate : 0;
    out->visits_mean = rate > 0 ? visits_s / rate : 0;
    out->look_ru_s = visits_s * look_ru;
    out->least_ru_s = rate * look_ru;
}
