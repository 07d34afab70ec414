/* workload_test.c - files of queries: every form, parameters without values, and refusals. */
#include "advise/workload.h"

#include "advise/advise_testing_int.h"

#include <math.h>

static void queries_come_in_three_forms(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t count;
        double per_second;
    } rows[] = {
        {"SELECT * FROM c", 1, 1},
        {"\r\nSELECT * FROM c;\r\n-- no query\r\n\r\nSELECT VALUE c.a FROM c", 2, 2},
        {"[\"SELECT * FROM c\"]", 1, 1},
        {"[{\"query\":\"SELECT * FROM c\"},{\"query\":\"SELECT * FROM c\",\"perSecond\":2.5}]", 2,
         3.5},
        {" {\"query\":\"SELECT * FROM c WHERE c.a = @a\","
         "\"parameters\":[{\"name\":\"@a\",\"value\":1}],\"perSecond\":0}",
         1, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Workload work = workload_of(&arena, rows[i].text);
        assert_int_equal(work.count, rows[i].count);
        assert_true(fabs(work.per_second - rows[i].per_second) < 1e-9);
    }
}

static void parameters_need_no_values(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "SELECT * FROM c WHERE c.a = @a AND c.b = @b AND c.d = @a",
        "SELECT TOP @n * FROM c ORDER BY c.a",
        "SELECT * FROM c WHERE c.s = 'x @y' OFFSET @o LIMIT @l",
        "[{\"query\":\"SELECT * FROM c WHERE c.a = @a\",\"parameters\":[{\"name\":\"@a\"}]}]",
        "[{\"query\":\"SELECT @a, @b FROM c\",\"parameters\":[{\"name\":\"@a\",\"value\":[1]}]}]",
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Workload work = workload_of(&arena, rows[i]);
        assert_int_equal(work.count, 1);
    }
}

static void wrong_files_are_refused_with_the_query(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {"", "no query"},
        {"-- nothing", "no query"},
        {"[]", "no query"},
        {"SELECT * FROM c\nSELEC", "query 2: "},
        {"SELECT x FROM c", "query 1: Identifier 'x'"},
        {"[1]", "query 1: expected"},
        {"[{\"query\":5}]", "query 1: expected"},
        {"[{\"query\":\"SELECT * FROM c\",\"perSecond\":-1}]", "perSecond"},
        {"[{\"query\":\"SELECT * FROM c\",\"perSecond\":\"1\"}]", "perSecond"},
        {"[{\"query\":\"SELECT * FROM c\",\"parameters\":{}}]", "parameters must be an array"},
        {"[{\"query\":\"SELECT * FROM c\",\"parameters\":[5]}]", "query 1: "},
        {"[", ""},
        {"SELECT * FROM c WHERE c.a = '\xFF'", "not UTF-8"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Workload work;
        Error err;
        if (workload_parse(&arena, slice_from_cstr(rows[i].text), &work, &err) !=
            STATUS_BAD_REQUEST)
            fail_msg("'%s' was accepted", rows[i].text);
        if (strstr(err.message, rows[i].message) == NULL)
            fail_msg("'%s': %s", rows[i].text, err.message);
    }
}

static void the_number_of_queries_is_bounded(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    for (int i = 0; i < WORKLOAD_QUERIES_MAX; i++)
        buf_slice(&text, SLICE("SELECT * FROM c\n"));
    Workload work;
    Error err;
    assert_int_equal(workload_parse(&arena, buf_view(&text), &work, &err), STATUS_OK);
    buf_slice(&text, SLICE("SELECT * FROM c\n"));
    assert_int_equal(workload_parse(&arena, buf_view(&text), &work, &err), STATUS_BAD_REQUEST);
}

static Status read_recorded(Arena *arena, const char *row, Workload *out)
{
    static const Slice user = SLICE_INIT("user");
    static const PropertyPath key = {&user, 1};
    Error err;
    return workload_recorded(arena, row_json(arena, row), &key, 1, out, &err);
}

static void recorded_queries_have_rates_and_prices(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Workload work;
    assert_int_equal(
        read_recorded(
            &arena,
            "{'time':1100,'since':1000,'rows':["
            "{'query':'SELECT TOP @n1 * FROM c WHERE c.a IN (@s2, @n3, @b4, @a5, @o6, @x7)',"
            "'keyParts':0,'executions':50,'ru':175,'itemsRead':20,'indexKeysRead':30,'results':40},"
            "{'query':'SELECT * FROM c WHERE c.a = "
            "@s1','keyParts':1,'executions':200,'ru':500,'itemsRead':20,'indexKeysRead':30,'"
            "results':40},"
            "{'query':'SELECT * FROM c WHERE c.user = @s1','keyParts':1,'executions':40,'ru':500,"
            "'itemsRead':1,'indexKeysRead':1,'results':1},"
            "{'query':'SELECT * FROM t IN "
            "c.tags','keyParts':1,'executions':10,'ru':30,'itemsRead':20,'indexKeysRead':30,'"
            "results':40},"
            "{'query':'SELECT * FROM c WHERE c.z = "
            "@n1','keyParts':0,'executions':0,'ru':3,'itemsRead':20,'indexKeysRead':30,'results':"
            "40},"
            "{'query':'SELECT * FROM c WHERE newer "
            "SYNTAX','keyParts':0,'executions':1,'ru':3,'itemsRead':20,'indexKeysRead':30,'results'"
            ":40},"
            "{'query':null,'keyParts':0,'executions':7,'ru':30,'itemsRead':20,'indexKeysRead':30,'"
            "results':40}]}",
            &work),
        STATUS_OK);
    assert_true(work.is_recorded);
    assert_int_equal(work.count, 4); /* one has only later pages */
    assert_int_equal(work.left_out, 2);
    assert_true(fabs(work.executions - 300) < 1e-9);
    assert_true(fabs(work.seconds - 100) < 1e-9);
    assert_true(fabs(work.per_second - 3) < 1e-9);
    assert_true(fabs(work.list[0].measured.ru - 3.5) < 1e-9);
    assert_true(fabs(work.list[0].measured.items - 0.4) < 1e-9);
    /* The key of the header is what the query filters by. */
    assert_slice(work.list[1].text,
                 SLICE("SELECT * FROM c WHERE ((c.a = @s1) AND (c.user = @key1))"));
    assert_slice(work.list[2].text, SLICE("SELECT * FROM c WHERE c.user = @s1"));
    assert_int_equal(work.list[1].uses.count, 2);
    assert_slice(work.list[1].uses.list[1].path, SLICE("/user"));
}

static void records_of_moments_and_of_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        Status status;
        double per_second;
    } rows[] = {
        {"{'time':5,'since':5,'rows':[]}", STATUS_OK, 0},
        {"{'time':5,'since':9,'rows':[{'query':'SELECT * FROM c','keyParts':9,'executions':3,"
         "'ru':1,'itemsRead':20,'indexKeysRead':30,'results':40}]}",
         STATUS_OK, 3},
        {"{'time':5,'rows':[]}", STATUS_UNAVAILABLE, 0},
        {"{'time':5,'since':5}", STATUS_UNAVAILABLE, 0},
        {"{'time':5,'since':5,'rows':[1]}", STATUS_UNAVAILABLE, 0},
        {"{'time':5,'since':5,'rows':[{'query':'SELECT * FROM c','keyParts':-1,'executions':3,"
         "'ru':1,'itemsRead':20,'indexKeysRead':30,'results':40}]}",
         STATUS_UNAVAILABLE, 0},
        {"{'time':5,'since':5,'rows':[{'query':'SELECT * FROM c','keyParts':0,'executions':1,"
         "'ru':1,'itemsRead':1e300,'indexKeysRead':30,'results':40}]}",
         STATUS_UNAVAILABLE, 0},
        {"[]", STATUS_UNAVAILABLE, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Workload work = {0};
        assert_int_equal(read_recorded(&arena, rows[i].answer, &work), rows[i].status);
        assert_true(fabs(work.per_second - rows[i].per_second) < 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_come_in_three_forms),
        cmocka_unit_test(parameters_need_no_values),
        cmocka_unit_test(wrong_files_are_refused_with_the_query),
        cmocka_unit_test(the_number_of_queries_is_bounded),
        cmocka_unit_test(recorded_queries_have_rates_and_prices),
        cmocka_unit_test(records_of_moments_and_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
