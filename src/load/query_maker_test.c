/* query_maker_test.c - the requests of queries, and that their parameters are those of pgbench. */
#include "load/query_maker.h"

#include "load/order_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bool has(Slice text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

static void queries_have_names(void **state)
{
    (void)state;
    QueryKind kind;
    assert_true(query_maker_find(SLICE("range"), &kind));
    assert_int_equal(kind, QUERY_RANGE);
    assert_false(query_maker_find(SLICE("ranges"), &kind));
    assert_false(query_maker_find(SLICE(""), &kind));
}

/* What 'debug(((hash_fnv1a(turn * 16 + which, seed) >> 16) & 1073741823) * below / 1073741824)'
 * prints in a script of pgbench 15. */
static void draws_equal_those_of_pgbench(void **state)
{
    (void)state;
    static const struct {
        uint64_t seed, turn;
        uint32_t which;
        uint64_t below, drawn;
    } rows[] = {
        {0, 0, 0, 1000000, 878061},
        {1, 0, 0, 1000000, 768134},
        {1, 1, 0, 1000000, 526965},
        {1, 1, 1, 10, 6},
        {3, 123456, 0, UINT64_C(1) << 32, 795573636},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(query_maker_draw(rows[i].seed, rows[i].turn, rows[i].which, rows[i].below),
                         rows[i].drawn);
}

static void draws_are_spread_evenly(void **state)
{
    (void)state;
    enum { BELOW = 10, TURNS = 100000 };
    for (uint32_t which = 0; which < 2; which++) {
        uint32_t counts[BELOW] = {0};
        for (uint64_t turn = 0; turn < TURNS; turn++) {
            uint64_t drawn = query_maker_draw(7, turn, which, BELOW);
            assert_true(drawn < BELOW);
            counts[drawn]++;
        }
        for (size_t i = 0; i < BELOW; i++)
            assert_in_range(counts[i], TURNS / BELOW * 95 / 100, TURNS / BELOW * 105 / 100);
    }
}

static void requests_are_those_of_an_sdk(void **state)
{
    (void)state;
    for (int kind = 0; kind < QUERY_KIND_COUNT; kind++) {
        QueryOptions options = {.kind = (QueryKind)kind, .count = 1000, .seed = 1};
        AUTO(query_maker_done) QueryMaker maker;
        query_maker_init(&maker, &options);
        ItemRequest request = query_maker_print(&maker, 5, SLICE_EMPTY);
        assert_true(request.is_query);
        assert_int_equal(request.id.len, 0);
        assert_true(slice_equal(request.method, SLICE("POST")));
        assert_true(has(request.headers, "x-ms-documentdb-isquery: True\r\n"));
        assert_true(has(request.headers, "x-ms-max-item-count: 100\r\n"));
        assert_false(has(request.headers, "x-ms-continuation"));
        assert_int_equal(has(request.headers, "x-ms-documentdb-partitionkey: [\"c"),
                         kind == QUERY_KEY);
        assert_true(slice_ends_with(request.headers, SLICE("\r\n")));
        assert_true(slice_starts_with(request.body, SLICE("{\"query\":\"SELECT ")));
        assert_true(slice_ends_with(request.body, SLICE("]}")));
        /* A parameter in the text is one in the list, and the other way round. */
        assert_int_equal(has(request.body, "= @a") || has(request.body, "> @a") ||
                             has(request.body, ", @a"),
                         has(request.body, "{\"name\":\"@a\",\"value\":"));
        assert_int_equal(has(request.body, "< @b") || has(request.body, "> @b"),
                         has(request.body, "{\"name\":\"@b\",\"value\":"));
    }
}

static void a_turn_says_what_is_asked_for(void **state)
{
    (void)state;
    char bodies[3][512];
    static const uint64_t turns[] = {8, 9, 8};
    QueryOptions options = {.kind = QUERY_UNIQUE, .count = 1000, .seed = 1};
    AUTO(query_maker_done) QueryMaker maker;
    query_maker_init(&maker, &options);
    for (size_t i = 0; i < ARRAY_COUNT(turns); i++) {
        Slice body = query_maker_print(&maker, turns[i], SLICE_EMPTY).body;
        (void)snprintf(bodies[i], sizeof(bodies[i]), "%.*s", SLICE_ARG(body));
    }
    assert_string_equal(bodies[0], bodies[2]);
    assert_string_not_equal(bodies[0], bodies[1]);
    char expected[64];
    (void)snprintf(expected, sizeof(expected), "\"ORD-%lu\"",
                   (unsigned long)order_text_name(query_maker_draw(1, 8, 0, 1000)));
    assert_true(has(slice_from_cstr(bodies[0]), expected));
}

static void a_page_has_as_many_results_as_are_asked_for(void **state)
{
    (void)state;
    static const struct {
        uint32_t page_size;
        const char *header;
    } rows[] = {
        {0, "\r\nx-ms-max-item-count: 100\r\n"},
        {1, "\r\nx-ms-max-item-count: 1\r\n"},
        {1000, "\r\nx-ms-max-item-count: 1000\r\n"},
        {QUERY_PAGE_SIZE_MAX, "\r\nx-ms-max-item-count: 1000000\r\n"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        QueryOptions options = {
            .kind = QUERY_ALL, .count = 1, .seed = 1, .page_size = rows[i].page_size};
        AUTO(query_maker_done) QueryMaker maker;
        query_maker_init(&maker, &options);
        assert_true(has(query_maker_print(&maker, 0, SLICE_EMPTY).headers, rows[i].header));
        assert_true(has(query_maker_print(&maker, 0, SLICE("x")).headers, rows[i].header));
    }
}

/* To warm a server, every page of every turn has to be asked for. */
static void all_asks_for_every_order_whatever_the_turn(void **state)
{
    (void)state;
    QueryOptions options = {.kind = QUERY_ALL, .count = 1000, .seed = 1};
    AUTO(query_maker_done) QueryMaker maker;
    query_maker_init(&maker, &options);
    Slice whole = SLICE("{\"query\":\"SELECT * FROM c ORDER BY c.total\",\"parameters\":[]}");
    for (uint64_t turn = 0; turn < 3; turn++)
        assert_true(slice_equal(query_maker_print(&maker, turn, SLICE_EMPTY).body, whole));
}

/* The index counts them alone; for the sum they have to be read. */
static void sum_is_over_the_orders_that_count_counts(void **state)
{
    (void)state;
    static const Slice parameters = SLICE_INIT("\"parameters\":");
    QueryOptions count_options = {.kind = QUERY_COUNT, .count = 1000, .seed = 4};
    QueryOptions sum_options = {.kind = QUERY_SUM, .count = 1000, .seed = 4};
    AUTO(query_maker_done) QueryMaker count;
    AUTO(query_maker_done) QueryMaker sum;
    query_maker_init(&count, &count_options);
    query_maker_init(&sum, &sum_options);
    for (uint64_t turn = 0; turn < 20; turn++) {
        Slice counted = query_maker_print(&count, turn, SLICE_EMPTY).body;
        Slice added = query_maker_print(&sum, turn, SLICE_EMPTY).body;
        const char *counted_at = memmem(counted.ptr, counted.len, parameters.ptr, parameters.len);
        const char *added_at = memmem(added.ptr, added.len, parameters.ptr, parameters.len);
        assert_non_null(counted_at);
        assert_non_null(added_at);
        assert_true(slice_equal(slice_from(counted, (size_t)(counted_at - counted.ptr)),
                                slice_from(added, (size_t)(added_at - added.ptr))));
        assert_true(has(added, "SUM(c.quantity * c.price) FROM c WHERE c.category = @a\""));
    }
}

static void a_further_page_is_the_same_query_with_a_continuation(void **state)
{
    (void)state;
    QueryOptions options = {.kind = QUERY_KEY, .count = 1000, .seed = 1};
    AUTO(query_maker_done) QueryMaker first;
    AUTO(query_maker_done) QueryMaker more;
    query_maker_init(&first, &options);
    query_maker_init(&more, &options);
    ItemRequest begin = query_maker_print(&first, 3, SLICE_EMPTY);
    ItemRequest next = query_maker_print(&more, 3, SLICE("+RID:~abc=#RT:1"));
    assert_true(slice_equal(begin.body, next.body));
    assert_true(slice_starts_with(next.headers, begin.headers));
    assert_true(slice_equal(slice_from(next.headers, begin.headers.len),
                            SLICE("x-ms-continuation: +RID:~abc=#RT:1\r\n")));
}

static void a_query_of_the_user_is_sent_as_it_is(void **state)
{
    (void)state;
    QueryOptions options = {
        .kind = QUERY_KEY, .count = 1, .sql = SLICE_INIT("SELECT \"a\\b\"\nFROM c")};
    AUTO(query_maker_done) QueryMaker maker;
    query_maker_init(&maker, &options);
    for (uint64_t turn = 0; turn < 3; turn++) {
        ItemRequest request = query_maker_print(&maker, turn, SLICE_EMPTY);
        assert_true(slice_equal(request.body, SLICE("{\"query\":\"SELECT \\\"a\\\\b\\\"\\u000aFROM "
                                                    "c\",\"parameters\":[]}")));
        assert_false(has(request.headers, "partitionkey"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_have_names),
        cmocka_unit_test(draws_equal_those_of_pgbench),
        cmocka_unit_test(draws_are_spread_evenly),
        cmocka_unit_test(requests_are_those_of_an_sdk),
        cmocka_unit_test(a_turn_says_what_is_asked_for),
        cmocka_unit_test(a_page_has_as_many_results_as_are_asked_for),
        cmocka_unit_test(all_asks_for_every_order_whatever_the_turn),
        cmocka_unit_test(sum_is_over_the_orders_that_count_counts),
        cmocka_unit_test(a_further_page_is_the_same_query_with_a_continuation),
        cmocka_unit_test(a_query_of_the_user_is_sent_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
