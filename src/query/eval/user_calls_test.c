/* user_calls_test.c - udf.name(...) wherever an expression may be, and calls that are made
 * together.
 */
#include "query/eval/eval_int.h"
#include "query/eval/fold_int.h"
#include "query/eval/functions_testing_int.h"
#include "query/eval/query_run_int.h"
#include "query/eval/query_testing_int.h"
#include "query/sql/query_int.h"

static const char DOCS[] =
    "[{\"id\":\"a\",\"n\":1,\"list\":[1,2,3]},{\"id\":\"b\",\"n\":2,\"list\":[4]},"
    "{\"id\":\"c\",\"s\":\"x\",\"list\":[]}]";

static QueryOptions options_of(FakeFunctions *fake)
{
    return (QueryOptions){.functions = &FAKE_FUNCTIONS, .functions_context = fake};
}

static void check_calls(const QueryCase *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        FakeFunctions fake = {0};
        const char *got = run_query(&arena, cases[i].query, DOCS, NULL, options_of(&fake));
        const char *expected = cases[i].expected;
        bool same =
            expected[0] == '!' ? strstr(got, expected + 1) != NULL : strcmp(got, expected) == 0;
        if (!same)
            fail_msg("%s\n  expected %s\n  got      %s", cases[i].query, expected, got);
    }
}

static void calls_may_be_anywhere(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT VALUE udf.twice(4)", "[8]"},
        {"SELECT udf.count() AS x", "[{\"x\":0}]"},
        {"SELECT udf.count(1, [2, {\"a\": 3}], {\"b\": [4]}) AS x", "[{\"x\":3}]"},
        {"SELECT VALUE udf.same([1, {\"a\": [c.n]}]) FROM c WHERE c.n = 2", "[[1,{\"a\":[2]}]]"},
        {"SELECT c.id, udf.twice(c.n) AS m FROM c",
         "[{\"id\":\"a\",\"m\":2},{\"id\":\"b\",\"m\":4},{\"id\":\"c\"}]"},
        {"SELECT VALUE c.id FROM c WHERE udf.even(c.n)", "[\"b\"]"},
        {"SELECT VALUE c.id FROM c WHERE udf.same(c.n)", "[]"},
        {"SELECT VALUE c.id FROM c WHERE (udf.twice(c.n) + 2) = 4", "[\"a\"]"},
        {"SELECT VALUE c.id FROM c WHERE udf.even(c.n) = true AND udf.twice(c.n) > 1", "[\"b\"]"},
        {"SELECT VALUE udf.twice(udf.twice(c.n)) FROM c", "[4,8]"},
        {"SELECT VALUE udf.box(c).x.id FROM c", "[\"a\",\"b\",\"c\"]"},
        {"SELECT VALUE x FROM c JOIN x IN udf.list(c.n)", "[0,0,1]"},
        {"SELECT VALUE x FROM x IN udf.list(3)", "[0,1,2]"},
        {"SELECT VALUE udf.twice(x) FROM c JOIN x IN c.list", "[2,4,6,8]"},
        {"SELECT VALUE v FROM c JOIN (SELECT VALUE udf.twice(x) FROM x IN c.list) v", "[2,4,6,8]"},
        {"SELECT c.id, v FROM c JOIN (SELECT udf.twice(c.n) AS t) v",
         "[{\"id\":\"a\",\"v\":{\"t\":2}},{\"id\":\"b\",\"v\":{\"t\":4}},{\"id\":\"c\",\"v\":{}}]"},
        {"SELECT VALUE ARRAY(SELECT VALUE udf.twice(x) FROM x IN c.list) FROM c",
         "[[2,4,6],[8],[]]"},
        {"SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE x FROM x IN c.list WHERE "
         "udf.even(x))",
         "[\"a\",\"b\"]"},
        {"SELECT udf.even(c.n) AS e, COUNT(1) AS n FROM c WHERE c.n > 0 GROUP BY udf.even(c.n)",
         "[{\"e\":false,\"n\":1},{\"e\":true,\"n\":1}]"},
        {"SELECT VALUE SUM(udf.twice(c.n)) FROM c", "[6]"},
        {"SELECT VALUE udf.twice(g.n) FROM (SELECT COUNT(1) AS n FROM c) g", "[6]"},
        {"SELECT DISTINCT VALUE udf.count(c) FROM c", "[1]"},
        {"SELECT VALUE c.id FROM c WHERE c.n > 0 ORDER BY udf.twice(c.n)", "!2206"},
        {"SELECT VALUE udf.twice(c.n) FROM c ORDER BY c.n DESC", "[4,2]"},
    };
    check_calls(CASES, ARRAY_COUNT(CASES));
}

static void results_are_values_like_others(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT VALUE udf.none(1)", "[]"},
        {"SELECT udf.none(1) AS a, udf.nothing() AS b", "[{\"b\":null}]"},
        {"SELECT VALUE IS_DEFINED(udf.none())", "[false]"},
        {"SELECT VALUE udf.none() ?? 'x'", "[\"x\"]"},
        {"SELECT VALUE udf.same('text') || '!'", "[\"text!\"]"},
        {"SELECT VALUE udf.box(true)", "[{\"x\":true}]"},
        {"SELECT VALUE ARRAY_LENGTH(udf.list(5))", "[5]"},
    };
    check_calls(CASES, ARRAY_COUNT(CASES));
}

static void an_undefined_argument_calls_nothing(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "SELECT VALUE udf.count(c.nothing) FROM c",
        "SELECT VALUE udf.count(1, c.nothing) FROM c",
        "SELECT VALUE udf.throws(undefined) FROM c",
        "SELECT VALUE udf.throws(1 / 0) FROM c",
    };
    for (size_t i = 0; i < ARRAY_COUNT(TEXTS); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        FakeFunctions fake = {0};
        assert_string_equal(run_query(&arena, TEXTS[i], DOCS, NULL, options_of(&fake)), "[]");
        assert_int_equal(fake.calls, 0);
    }
}

static void a_call_fails_only_where_it_is_needed(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT VALUE udf.throws(c.id) FROM c", "!thrown for \"a\""},
        {"SELECT VALUE c.n = 7 ? udf.throws(c.id) : c.id FROM c", "[\"a\",\"b\",\"c\"]"},
        {"SELECT VALUE c.id ?? udf.throws(1) FROM c", "[\"a\",\"b\",\"c\"]"},
        {"SELECT VALUE c.id FROM c WHERE c.n > 5 AND udf.throws(1)", "[]"},
        {"SELECT VALUE c.id FROM c WHERE udf.throws(1) AND c.n > 5", "[]"},
        {"SELECT VALUE c.id FROM c WHERE udf.throws(1) OR IS_STRING(c.id)", "[\"a\",\"b\",\"c\"]"},
        {"SELECT VALUE c.id FROM c WHERE udf.throws(c.n) AND c.n > 1", "!thrown for 2"},
        {"SELECT TOP 0 VALUE udf.throws(1) FROM c", "[]"},
    };
    check_calls(CASES, ARRAY_COUNT(CASES));
}

static void names_are_looked_up_when_the_query_runs(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT VALUE udf.nosuch(c) FROM c", "!SC2003"},
        {"SELECT VALUE udf.Twice(1)", "!User-defined function 'Twice' could not be resolved."},
        {"SELECT VALUE udf.twice(udf.nosuch(c)) FROM c",
         "!User-defined function 'nosuch' could not be resolved."},
        {"SELECT VALUE c.id FROM c WHERE false AND udf.nosuch(1)", "!SC2003"},
    };
    check_calls(CASES, ARRAY_COUNT(CASES));
    static const QueryCase NONE[] = {{"SELECT VALUE udf.twice(1)", "!SC2003"}};
    CHECK_CASES(NONE, DOCS, NULL);
}

static void a_call_is_never_folded(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    FakeFunctions fake = {0};
    assert_string_equal(run_query(&arena, "SELECT VALUE [udf.next(1), udf.next(1)] FROM c", DOCS,
                                  NULL, options_of(&fake)),
                        "[[0,1],[2,3],[4,5]]");
}

/* ---- calls that are made together ---- */

enum { MANY = 50 };

typedef struct Prepared {
    Arena arena;
    Arena calls;
    FakeFunctions fake;
    Run run;
    Error err;
    Query *query;
    CallDocument documents[MANY];
    size_t count;
    Status status;
} Prepared;

static void prepare(Prepared *p, const char *text, size_t count)
{
    *p = (Prepared){.count = count};
    arena_init(&p->arena, 64 << 10);
    arena_init(&p->calls, 64 << 10);
    assert_int_equal(query_parse(&p->arena, slice_from_cstr(text), JSON_NONE, &p->query, &p->err),
                     0);
    run_init(&p->run, options_of(&p->fake), &p->arena, &p->err);
    assert_int_equal(user_calls_begin(&p->run, p->query), 0);
    p->run.slots = ARENA_NEW_ARRAY(&p->arena, Value, p->query->slot_count);
    for (size_t i = 0; i < count; i++) {
        Slice document =
            arena_format(&p->arena, "{\"id\":\"%zu\",\"n\":%zu,\"list\":[%zu,%zu,%zu]}%c", i, i, i,
                         i, i + 1, '\0');
        p->documents[i] = (CallDocument){.document = parse_json(&p->arena, document.ptr)};
    }
    p->status = user_calls_prepare(&p->run, p->query->select, p->documents, count, &p->calls);
}

static void prepared_done(Prepared *p)
{
    run_done(&p->run);
    arena_done(&p->calls);
    arena_done(&p->arena);
}

/* What is asked for is exactly what the query uses, in as few batches as it can be. */
static void calls_of_many_documents_are_made_together(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        size_t batches;
        size_t calls; /* for 50 documents */
    } CASES[] = {
        {"SELECT udf.twice(c.n) AS a FROM c", 1, 50},
        {"SELECT udf.twice(c.n) AS a, udf.even(c.n) AS b, udf.next() AS c FROM c", 1, 150},
        {"SELECT VALUE udf.twice(udf.twice(c.n)) FROM c", 2, 100},
        {"SELECT udf.twice(c.n) AS a FROM c WHERE udf.even(c.n)", 2, 75},
        {"SELECT udf.twice(c.n) AS a FROM c WHERE udf.even(c.n) AND c.n < 10", 2, 15},
        {"SELECT VALUE c.n < 3 ? udf.twice(c.n) : 0 FROM c", 1, 3},
        {"SELECT VALUE c.n FROM c WHERE udf.none(c.n)", 1, 50},
        {"SELECT VALUE c.n FROM c WHERE c.n > 100 AND udf.twice(c.n)", 0, 0},
        {"SELECT VALUE udf.twice(x) FROM c JOIN x IN c.list", 1, 150},
        {"SELECT VALUE udf.twice(x) FROM c JOIN x IN c.list WHERE udf.even(x)", 2, 225},
        {"SELECT VALUE udf.twice(y) FROM c JOIN x IN c.list JOIN y IN udf.list(x) WHERE x < 2", 2,
         150 + 3},
        {"SELECT VALUE ARRAY(SELECT VALUE udf.twice(x) FROM x IN c.list) FROM c", 1, 150},
        {"SELECT VALUE SUM(udf.twice(c.n)) FROM c", 1, 50},
        {"SELECT udf.even(c.n) AS k, SUM(udf.twice(c.n)) AS s FROM c GROUP BY udf.even(c.n)", 2,
         100},
        {"SELECT udf.twice(COUNT(1)) AS n FROM c", 0, 0},
        {"SELECT DISTINCT VALUE udf.even(c.n) FROM c", 1, 50},
        {"SELECT VALUE s.t FROM (SELECT udf.twice(c.n) AS t FROM c) s WHERE udf.even(s.t)", 2, 100},
        {"SELECT TOP 1 VALUE udf.twice(x) FROM c JOIN x IN c.list", 1, 50},
        {"SELECT VALUE EXISTS(SELECT VALUE x FROM x IN c.list WHERE udf.same(x >= 0)) FROM c", 1,
         50},
        {"SELECT VALUE udf.throws(c.n) FROM c", 1, 50},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        Prepared p;
        prepare(&p, CASES[i].query, MANY);
        assert_int_equal(p.status, STATUS_OK);
        if (p.fake.batches != CASES[i].batches || p.fake.calls != CASES[i].calls)
            fail_msg("%s: %zu batches with %zu calls", CASES[i].query, p.fake.batches,
                     p.fake.calls);
        assert_int_equal(p.run.calls.used, 0);
        prepared_done(&p);
    }
}

static Status count_row(void *context, Run *run, const Value *row, RowAnswer *answer)
{
    (void)run;
    (void)row;
    (void)answer;
    ++*(size_t *)context;
    return STATUS_OK;
}

/* The run finds the values of all calls that were prepared, each once. */
static void prepared_values_are_used_and_not_called_again(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        size_t rows; /* of 50 documents */
        size_t calls;
        size_t later; /* calls that cannot be prepared */
    } CASES[] = {
        {"SELECT udf.twice(c.n) AS a, udf.even(c.n) AS b FROM c", 50, 100, 0},
        {"SELECT udf.twice(c.n) AS a FROM c WHERE udf.even(c.n)", 25, 75, 0},
        {"SELECT VALUE udf.next(x) FROM c JOIN x IN c.list", 150, 150, 0},
        {"SELECT VALUE udf.twice(x) FROM c JOIN x IN c.list WHERE udf.even(x)", 75, 225, 0},
        {"SELECT udf.twice(COUNT(1)) AS n FROM c", 50, 50, 50},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        Prepared p;
        prepare(&p, CASES[i].query, MANY);
        assert_int_equal(p.status, STATUS_OK);
        size_t batches = p.fake.batches;
        size_t rows = 0;
        for (size_t j = 0; j < MANY; j++) {
            p.run.documents = &p.documents[j].document;
            p.run.document_count = 1;
            user_calls_enter(&p.run, &p.documents[j].known);
            assert_int_equal(
                select_run(&p.run, p.query->select, SELECT_OUTERMOST, &p.arena, count_row, &rows),
                0);
        }
        if (rows != CASES[i].rows || p.fake.calls != CASES[i].calls ||
            p.run.calls.used != CASES[i].calls || p.fake.batches != batches + CASES[i].later)
            fail_msg("%s: %zu rows of %zu calls, %zu batches", CASES[i].query, rows, p.fake.calls,
                     p.fake.batches);
        prepared_done(&p);
    }
}

static void a_batch_that_fails_fails_the_query(void **state)
{
    (void)state;
    Prepared p;
    prepare(&p, "SELECT VALUE udf.hangs(c.n) FROM c", 3);
    assert_int_equal(p.status, STATUS_TIMEOUT);
    assert_string_equal(p.err.message, "it hangs");
    prepared_done(&p);
}

/* Rows and calls of one document are asked about up to a bound. */
static void a_document_with_many_rows_is_not_asked_about_all_of_them(void **state)
{
    (void)state;
    Prepared p;
    prepare(&p,
            "SELECT VALUE udf.count(x, y) FROM c JOIN x IN udf.list(100) JOIN y IN "
            "udf.list(100)",
            1);
    assert_int_equal(p.status, STATUS_OK);
    assert_true(p.fake.calls > 100 && p.fake.calls < 1000);
    prepared_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_may_be_anywhere),
        cmocka_unit_test(results_are_values_like_others),
        cmocka_unit_test(an_undefined_argument_calls_nothing),
        cmocka_unit_test(a_call_fails_only_where_it_is_needed),
        cmocka_unit_test(names_are_looked_up_when_the_query_runs),
        cmocka_unit_test(a_call_is_never_folded),
        cmocka_unit_test(calls_of_many_documents_are_made_together),
        cmocka_unit_test(prepared_values_are_used_and_not_called_again),
        cmocka_unit_test(a_batch_that_fails_fails_the_query),
        cmocka_unit_test(a_document_with_many_rows_is_not_asked_about_all_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
