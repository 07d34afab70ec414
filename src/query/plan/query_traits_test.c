/* query_traits_test.c - which queries may be run document by document, and which a planner for
 * several partitions refuses. */
#include "query/eval/query_testing_int.h"
#include "query/plan/query_traits.h"

static const char DOCUMENTS[] = "[{\"id\":\"a\",\"n\":1,\"t\":[1,2]},{\"id\":\"b\",\"n\":1},"
                                "{\"id\":\"c\",\"n\":2,\"t\":[3]}]";

static Query *parse(Arena *arena, const char *text)
{
    Error err;
    Query *query = NULL;
    Json parameters = parse_json(arena, "[{\"name\":\"@p\",\"value\":1}]");
    if (query_parse(arena, slice_from_cstr(text), parameters, &query, &err) != STATUS_OK)
        fail_msg("%s: %s", text, err.message);
    return query;
}

/* The results over each element of 'documents' alone, one after the other. */
static const char *run_each(Arena *arena, const Query *query, const char *documents)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_array(&b);
    JsonIter iter = json_iter(parse_json(arena, documents));
    while (json_next(&iter)) {
        Error err;
        Json *results;
        size_t count;
        assert_int_equal(query_run(query, &iter.value, 1, arena, &results, &count, &err),
                         STATUS_OK);
        for (size_t i = 0; i < count; i++)
            json_add(&b, results[i]);
    }
    json_end(&b);
    return arena_cstr(arena, json_print_arena(arena, json_built(&b)));
}

static void a_streaming_query_gives_the_same_document_by_document(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        bool streams;
    } rows[] = {
        {"SELECT * FROM c", true},
        {"SELECT c.id FROM c WHERE c.n = 1", true},
        {"SELECT VALUE t FROM c JOIN t IN c.t", true},
        {"SELECT VALUE t FROM t IN c.t", true},
        {"SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.t) FROM c", true},
        {"SELECT VALUE ARRAY(SELECT DISTINCT VALUE t FROM t IN c.t) FROM c", true},
        {"SELECT * FROM (SELECT c.id FROM c WHERE c.n = 1) s", true},
        {"SELECT VALUE COUNT(1) FROM c", false},
        {"SELECT COUNT(1) AS n, c.n AS m FROM c GROUP BY c.n", false},
        {"SELECT DISTINCT VALUE c.n FROM c", false},
        {"SELECT * FROM c ORDER BY c.id DESC", false},
        {"SELECT TOP 1 * FROM c", false},
        {"SELECT * FROM c OFFSET 1 LIMIT 1", false},
        {"SELECT * FROM (SELECT DISTINCT VALUE c.n FROM c) s", false},
        {"SELECT * FROM (SELECT COUNT(1) AS n FROM c) s", false},
        {"SELECT VALUE 1", false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Arena arena;
        arena_init(&arena, 64 << 10);
        const Query *query = parse(&arena, rows[i].query);
        if (query_is_streaming(query) != rows[i].streams)
            fail_msg("%s is %s", rows[i].query, rows[i].streams ? "streaming" : "not streaming");
        const char *whole = run_query(&arena, rows[i].query, DOCUMENTS, NULL, (QueryOptions){0});
        bool same = strcmp(run_each(&arena, query, DOCUMENTS), whole) == 0;
        if (same != rows[i].streams)
            fail_msg("%s: document by document it is %s", rows[i].query, same ? "the same" : whole);
        arena_done(&arena);
    }
}

static void a_query_may_name_its_partition_key(void **state)
{
    (void)state;
    static const struct {
        const char *query, *paths;
        bool fixes;
    } rows[] = {
        {"SELECT * FROM c WHERE c.pk = 'a'", "/pk", true},
        {"SELECT * FROM c WHERE 'a' = c.pk", "/pk", true},
        {"SELECT * FROM c WHERE c['pk'] = @p", "/pk", true},
        {"SELECT * FROM root WHERE root.pk = null AND root.n > 1", "/pk", true},
        {"SELECT VALUE COUNT(1) FROM c JOIN t IN c.t WHERE t = 1 AND c.pk = 1", "/pk", true},
        {"SELECT * FROM c WHERE c.a.b = 1 AND c.x = 2", "/a/b /x", true},
        {"SELECT * FROM c WHERE c.a.b = 1", "/a/b /x", false},
        {"SELECT * FROM c", "", true},
        {"SELECT * FROM c", "/pk", false},
        {"SELECT VALUE 1", "/pk", false},
        {"SELECT * FROM c WHERE c.pk", "/pk", false},
        {"SELECT * FROM c WHERE c.pk > 'a'", "/pk", false},
        {"SELECT * FROM c WHERE c.pk != 'a'", "/pk", false},
        {"SELECT * FROM c WHERE NOT (c.pk = 'a')", "/pk", false},
        {"SELECT * FROM c WHERE c.pk = 'a' OR c.n = 1", "/pk", false},
        {"SELECT * FROM c WHERE c.pk = c.n", "/pk", false},
        {"SELECT * FROM c WHERE c.pk = 'a' = true", "/pk", false},
        {"SELECT * FROM c WHERE c.pk.x = 'a'", "/pk", false},
        {"SELECT * FROM c WHERE c.p = 'a'", "/pk", false},
        {"SELECT * FROM c WHERE c.pk[0] = 'a'", "/pk", false},
        {"SELECT * FROM t IN c.t WHERE t.pk = 'a'", "/pk", false},
        {"SELECT * FROM c.t WHERE t.pk = 'a'", "/pk", false},
        {"SELECT t FROM c JOIN t IN c.t WHERE t.pk = 'a'", "/pk", false},
        {"SELECT * FROM (SELECT c.pk FROM c) s WHERE s.pk = 'a'", "/pk", false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Arena arena;
        arena_init(&arena, 64 << 10);
        PropertyPath paths[3];
        size_t count = 0;
        Slice rest = slice_from_cstr(rows[i].paths);
        while (rest.len > 0) {
            size_t position = 0;
            assert_true(
                property_path_parse(&arena, slice_cut(&rest, ' '), &paths[count++], &position));
        }
        Json values[3];
        if ((query_fixed(parse(&arena, rows[i].query), &arena, paths, count, values) == count) !=
            rows[i].fixes)
            fail_msg("%s", rows[i].query);
        arena_done(&arena);
    }
}

/* Over one partition they all run; over several an aggregate must stand alone, and may count what
 * is distinct, but nothing else of it. */
static void some_aggregates_are_for_one_partition(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        bool refused;
    } ROWS[] = {
        {"SELECT COUNT(1) FROM c", false},
        {"SELECT VALUE AVG(c.n + 1) FROM c", false},
        {"SELECT c.n, COUNT(1) AS m, MAX(ABS(c.n)) FROM c GROUP BY c.n", false},
        {"SELECT VALUE c.n + 1 FROM c", false},
        {"SELECT VALUE [(SELECT VALUE COUNT(1) + 1 FROM t IN c.t)] FROM c", false},
        {"SELECT * FROM c", false},
        {"SELECT COUNT(1) + 5 FROM c", true},
        {"SELECT MIN(c.n), MAX(c.n) / 2 FROM c", true},
        {"SELECT VALUE {'sum': SUM(c.n)} FROM c", true},
        {"SELECT VALUE [SUM(c.n)] FROM c", true},
        {"SELECT VALUE FLOOR(AVG(c.n)) FROM c", true},
        {"SELECT VALUE -COUNT(1) FROM c", true},
        {"SELECT VALUE MAKELIST(c.n)[0] FROM c", true},
        {"SELECT c.n, ABS(AVG(c.n)) AS a FROM c GROUP BY c.n", true},
        {"SELECT VALUE (COUNT(x) > 0) FROM (SELECT VALUE c FROM c) AS x", true},
        {"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.n FROM c)", false},
        {"SELECT VALUE COUNT(1) FROM (SELECT c.n FROM c GROUP BY c.n)", false},
        {"SELECT VALUE SUM(x) FROM (SELECT DISTINCT VALUE c.n FROM c) AS x", true},
        {"SELECT COUNT(1) AS a, MAX(x) AS b FROM (SELECT DISTINCT VALUE c.n FROM c) AS x", true},
        {"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.n FROM c) AS x WHERE x > 1", true},
        {"SELECT VALUE MAX(y.n) FROM (SELECT x.n FROM (SELECT DISTINCT c.n FROM c) AS x) AS y",
         true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        Error err = {0};
        Status status = query_check_cross_partition(parse(&arena, ROWS[i].query), &err);
        if ((status != STATUS_OK) != ROWS[i].refused)
            fail_msg("%s: %s", ROWS[i].query, err.message);
        if (ROWS[i].refused && strstr(ROWS[i].query, "DISTINCT") != NULL)
            assert_non_null(strstr(err.message, "Aggregates over a subquery with DISTINCT"));
        else if (ROWS[i].refused)
            assert_string_equal(err.message,
                                "{\"Errors\":[\"Compositions of aggregates and other expressions "
                                "are not allowed.\"]}");
        const char *got = run_query(&arena, ROWS[i].query, DOCUMENTS, NULL, (QueryOptions){0});
        assert_int_equal(got[0], '[');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_streaming_query_gives_the_same_document_by_document),
        cmocka_unit_test(a_query_may_name_its_partition_key),
        cmocka_unit_test(some_aggregates_are_for_one_partition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
