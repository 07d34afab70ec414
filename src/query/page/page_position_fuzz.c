/* page_position_fuzz.c - any bytes as the position at which a query goes on, or as the filter that
 * says where in its order it begins.
 *
 *     input = | container u8 | query and flags u8 | position, or JSON |
 *
 * The api signs positions, so that clients cannot make them up; nothing else relies on that. Beyond
 * surviving: what is read as a position prints as the same bytes.
 */
#include "query/eval/query.h"
#include "query/page/page_fuzzing_int.h"
#include "query/page/page_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const QUERIES[] = {
    "SELECT * FROM c",
    "SELECT VALUE c.id FROM c WHERE c.i > 3",
    "SELECT VALUE c.id FROM c WHERE c.a = 1 OR c.s = 'a'",
    "SELECT c.id, e FROM c JOIN e IN c.t",
    "SELECT VALUE c.s FROM c ORDER BY c.s",
    "SELECT VALUE c.s FROM c ORDER BY c.s DESC",
    "SELECT VALUE c.a FROM c WHERE c.i < 9 ORDER BY c.a",
    "SELECT VALUE c.a FROM c ORDER BY c.a, c.n DESC",
    "SELECT VALUE c.n FROM c ORDER BY c.n ASC, c.s ASC, c.o.x DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.id OFFSET 2 LIMIT 15",
    "SELECT c.i, COUNT(1) AS n FROM c GROUP BY c.i",
    "SELECT DISTINCT VALUE c.a FROM c",
    "SELECT VALUE COUNT(1) FROM c",
};

static void check_position(Arena *arena, Slice bytes)
{
    PagePosition position;
    if (page_position_read(bytes, &position))
        ASSERT(slice_equal(page_position_print(arena, &position), bytes));
    OrderKey key;
    if (order_position_read(bytes, &key))
        ASSERT(slice_equal(order_position(arena, &key), bytes));
}

enum { FLAG_TIME = 1, FLAG_PLANS = 2, FLAG_FILTER = 4, FLAGS_END = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    TestContainer *t = &fuzz_containers()->list[data[0] % FUZZ_CONTAINERS];
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    bool is_filter = (data[1] & FLAG_FILTER) != 0;
    Slice bytes = arena_copy(&arena, slice_make(data + 2, size - 2));
    check_position(&arena, bytes);
    Query *query = NULL;
    Json filter = JSON_NONE;
    Error err;
    if (is_filter && json_parse(&arena, bytes, &filter, &err) != STATUS_OK)
        return 0;
    Slice text = slice_from_cstr(QUERIES[data[1] / FLAGS_END % ARRAY_COUNT(QUERIES)]);
    if (query_parse(&arena, text, JSON_NONE, &query, &err) != STATUS_OK)
        return 0;
    Random random;
    random_init(&random, size);
    FuzzAsked asked = {
        .position = is_filter ? SLICE_EMPTY : bytes,
        .resume_filter = filter,
        .items_max = 5,
        .page_us = (data[1] & FLAG_TIME) != 0 ? 30 : 0,
        .plan_random = (data[1] & FLAG_PLANS) != 0 ? &random : NULL,
    };
    fuzz_pages(t, query, asked, &arena);
    return 0;
}
