/* query_uses_test.c - the paths that queries ask for, clause by clause. */
#include "query/plan/query_uses.h"

#include "base/buf.h"
#include "query/eval/query_testing_int.h"

static const char *const KINDS[] = {"=", "?", "+", "-", "g"};

/* "=/a ?/b", with the sign of the kind in front of each path; "..." if it is not complete, and the
 * largest number of rows at the end. */
static const char *uses_of(Arena *arena, const char *text)
{
    Error err;
    Query *query = NULL;
    Json parameters = parse_json(arena, "[{\"name\":\"@p\",\"value\":\"x\"}]");
    if (query_parse(arena, slice_from_cstr(text), parameters, &query, &err) != STATUS_OK)
        fail_msg("%s: %s", text, err.message);
    QueryUses uses;
    query_uses(query, arena, &uses);
    AUTO(buf_done) Buf out;
    buf_init(&out, 4096);
    for (size_t i = 0; i < uses.count; i++)
        buf_format(&out, "%s%s%.*s", i == 0 ? "" : " ", KINDS[uses.list[i].kind],
                   SLICE_ARG(uses.list[i].path));
    if (!uses.is_complete)
        buf_slice(&out, SLICE("..."));
    if (uses.rows_max > 0)
        buf_format(&out, " max %llu", (unsigned long long)uses.rows_max);
    return arena_cstr(arena, buf_view(&out));
}

static void paths_are_found_with_their_use(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        const char *expected;
    } rows[] = {
        {"SELECT * FROM c", ""},
        {"SELECT c.a, c.b FROM c", ""},
        {"SELECT * FROM c WHERE c.a = 1 AND @p = c.b.d", "=/a =/b/d"},
        {"SELECT * FROM c WHERE c.a = 1 OR c.b = 2", "?/a ?/b"},
        {"SELECT * FROM c WHERE c.a > 1 AND c['a b'] = @p", "?/a =/\"a b\""},
        {"SELECT * FROM c WHERE c.a = c.b", "?/a ?/b"},
        {"SELECT * FROM c WHERE STARTSWITH(c.a, 'x') AND NOT IS_DEFINED(c.b)", "?/a ?/b"},
        {"SELECT * FROM c WHERE c.a = 1 ORDER BY c.b DESC, c.d", "=/a -/b +/d"},
        {"SELECT TOP 5 * FROM c ORDER BY c._ts", "+/_ts max 5"},
        {"SELECT * FROM c OFFSET 10 LIMIT 20", " max 30"},
        {"SELECT VALUE t.n FROM c JOIN t IN c.tags WHERE t.x = 1", "?/tags =/tags/[]/x"},
        {"SELECT * FROM c WHERE c.tags[0] = 1", "=/tags/[]"},
        {"SELECT * FROM c WHERE c['[]'] = 1 AND c[''] = 1", "=/\"[]\" =/\"\""},
        {"SELECT * FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.t WHERE t.a = 1)",
         "?/t =/t/[]/a"},
        {"SELECT c.k, SUM(c.n) AS s FROM c GROUP BY c.k", "g/k g/n"},
        {"SELECT DISTINCT VALUE c.k FROM c", "g/k"},
        {"SELECT * FROM c WHERE c = @p", "..."},
        {"SELECT * FROM (SELECT c.a FROM c WHERE c.b = 1) s WHERE s.a = 2", "=/b..."},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        const char *found = uses_of(&arena, rows[i].query);
        if (strcmp(found, rows[i].expected) != 0)
            fail_msg("%s: expected '%s', found '%s'", rows[i].query, rows[i].expected, found);
    }
}

static void a_query_of_very_many_paths_is_not_complete(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(buf_done) Buf text;
    buf_init(&text, 64 << 10);
    buf_slice(&text, SLICE("SELECT * FROM c WHERE c.p = 1"));
    for (int i = 0; i < QUERY_USES_MAX; i++)
        buf_format(&text, " AND c.p%d > 1", i);
    Error err;
    Query *query = NULL;
    assert_int_equal(query_parse(&arena, buf_view(&text), JSON_NONE, &query, &err), STATUS_OK);
    QueryUses uses;
    query_uses(query, &arena, &uses);
    assert_int_equal(uses.count, QUERY_USES_MAX);
    assert_false(uses.is_complete);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_found_with_their_use),
        cmocka_unit_test(a_query_of_very_many_paths_is_not_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
