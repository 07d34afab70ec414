/* query_page_fuzz.c - any text as a query over a container, planned over its index and run page by
 * page: with the best plan and with others, with little time and little of the index.
 *
 *     input = | container u8 | flags u8 | text |
 *
 * Beyond surviving: every page is whole JSON, with as many results as it says, and the query's
 * route is in order.
 */
#include "query/eval/query.h"
#include "query/page/page_fuzzing_int.h"
#include "query/plan/query_route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FLAG_PAGES = 1, FLAG_TIME = 2, FLAG_KEYS = 4, FLAG_PLANS = 8 };

static void check_route(const TestContainer *t, const Query *query, Arena *arena)
{
    QueryRoute route;
    query_route(query, arena, &t->schema->key, &route);
    ASSERT(route.count <= QUERY_RANGES_MAX);
    for (size_t i = 0; i < route.count; i++) {
        const QueryRange *range = &route.ranges[i];
        ASSERT(slice_compare(range->from, range->to) < 0);
        ASSERT(i == 0 || slice_compare(range[-1].to, range->from) <= 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    TestContainer *t = &fuzz_containers()->list[data[0] % FUZZ_CONTAINERS];
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice text = arena_copy(&arena, slice_make(data + 2, size - 2));
    Query *query = NULL;
    Error err;
    if (query_parse(&arena, text, test_json(&arena, RANDOM_PARAMETERS), &query, &err) != STATUS_OK)
        return 0;
    check_route(t, query, &arena);
    Random random;
    random_init(&random, size);
    FuzzAsked asked = {
        .items_max = (data[1] & FLAG_PAGES) != 0 ? 7 : 1000,
        .page_us = (data[1] & FLAG_TIME) != 0 ? 30 : 0,
        .index_keys_max = (data[1] & FLAG_KEYS) != 0 ? 20 : 0,
        .plan_random = (data[1] & FLAG_PLANS) != 0 ? &random : NULL,
    };
    fuzz_pages(t, query, asked, &arena);
    return 0;
}
