/* page_plan_test.c - how the documents of a page are found: what is read of the index, and how many
 * documents are read. page_model_test.c tests whether results are right. */
#include "query/page/page_testing_int.h"

static void each_partition_has_a_plan_of_its_own(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){.partitions = 3});
    /* Two of the partitions have hardly anything, so that scanning them is as good. */
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    size_t last = 0;
    for (size_t i = 0; i < 40; i++) {
        PartitionKey key = {.count = 1};
        Epk epk;
        Slice text = arena_format(&arena, "\"p%zu\"", i);
        key.parts[0] = parse_json(&arena, arena_cstr(&arena, text));
        epk_make(t->schema->key.kind, &key, &epk);
        size_t partition = test_partition_of(t, &epk);
        size_t count = partition == 2 && last == 0 ? 1500 : 1;
        last = partition == 2 ? i : last;
        for (size_t j = 0; j < count; j++) {
            Slice body =
                arena_format(&arena, "{\"id\":\"%zu-%zu\",\"pk\":\"p%zu\",\"n\":%zu}", i, j, i, j);
            test_insert(t, arena_cstr(&arena, body));
        }
    }
    AUTO(answered_done) Answered answered;
    ask(t, "SELECT VALUE c.id FROM c WHERE c.n = 1200", (Asked){0}, &answered);
    assert_int_equal(answered.page.count, 1);
    assert_true(answered.page.metrics.documents_read < 60);
}

/* The same question has another plan where the data is other data, and what was estimated is told.
 */
static void the_plan_follows_from_the_data(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    insert_many(t, 0, 1000, print_number); /* n: all different, m: ten values */
    static const struct {
        const char *where, *by;
        uint64_t estimated, read;
    } ROWS[] = {
        {"c.n < 10", "index", 10, 10},
        {"c.n >= 0", "full scan", 1000, 1000}, /* the index would be a detour */
        {"c.m = 3", "index", 100, 100},
        {"c.m < 9", "full scan", 900, 1000},
        {"c.n != 3", "full scan", 999, 1000},
        {"c.m != 3 AND c.n < 20", "index", 18, 18},
        {"c.n = 7 AND c.m >= 0", "index", 1, 1}, /* what leaves less is read, wherever it stands */
        {"c.m >= 0 AND c.n = 7", "index", 1, 1},
        {"c.n < 5 OR c.n > 994", "index", 10, 10},
        {"NOT IS_DEFINED(c.n)", "index", 0, 0},
        {"IS_DEFINED(c.n)", "full scan", 1000, 1000},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(answered_done) Answered answered;
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Slice text = arena_format(&arena, "SELECT VALUE c.id FROM c WHERE %s", ROWS[i].where);
        ask(t, arena_cstr(&arena, text), (Asked){0}, &answered);
        assert_int_equal(answered.status, STATUS_OK);
        Json partition = json_at(json_get(answered.page.explain, SLICE("partitions")), 0);
        Json where = json_get(partition, SLICE("where"));
        Slice by = json_string(json_get(partition, SLICE("by")));
        double estimated = json_number(json_get(where, SLICE("estimatedItems")));
        uint64_t read = answered.page.metrics.documents_read;
        bool is_near = estimated >= 0.7 * (double)ROWS[i].estimated &&
                       estimated <= 1.5 * (double)ROWS[i].estimated;
        if (!slice_equal(by, slice_from_cstr(ROWS[i].by)) || read != ROWS[i].read || !is_near)
            fail_msg("%s: %.*s, about %g, read %llu", ROWS[i].where, SLICE_ARG(by), estimated,
                     (unsigned long long)read);
    }
}

static void the_index_alone_answers(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){.partitions = 3});
    insert_spread(t, 300);
    static const QueryCase ROWS[] = {
        {"SELECT VALUE COUNT(1) FROM c", "[300]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.a = 3", "[43]"},
        {"SELECT VALUE SUM(c.a) FROM c", "[897]"},
        {"SELECT VALUE AVG(c.a) FROM c WHERE c.b = 0", "[3]"},
        {"SELECT VALUE MAX(c.n) FROM c", "[999]"},
        {"SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a DESC", "[6,5,4,3,2,1,0]"},
        {"SELECT DISTINCT c.a FROM c WHERE c.b > 9 ORDER BY c.a",
         "[{\"a\":0},{\"a\":1},{\"a\":2},{\"a\":3},{\"a\":4},{\"a\":5},{\"a\":6}]"},
        {"SELECT TOP 2 c.a AS k, COUNT(1) AS n, SUM(c.a) AS s, MIN(c.a) AS low FROM c GROUP BY c.a",
         "[{\"k\":0,\"n\":43,\"s\":0,\"low\":0},{\"k\":1,\"n\":43,\"s\":43,\"low\":1}]"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(answered_done) Answered answered;
        ask(t, ROWS[i].query, (Asked){0}, &answered);
        expect(t, ROWS[i].query, ROWS[i].expected);
        if (answered.page.metrics.documents_read != 0)
            fail_msg("%s has read documents", ROWS[i].query);
    }
    test_insert(t, "{\"id\":\"x\",\"pk\":\"p1\",\"a\":0.5}");
    expect(t, "SELECT VALUE SUM(c.a) FROM c", "[897.5]");
    for (int i = 0; i < 10; i++) { /* added one by one, not multiplied */
        char text[64];
        (void)snprintf(text, sizeof(text), "{\"id\":\"x%d\",\"pk\":\"p1\",\"f\":0.1}", i);
        test_insert(t, text);
    }
    expect(t, "SELECT VALUE SUM(c.f) FROM c", "[0.9999999999999999]");
    test_insert(t, "{\"id\":\"x\",\"pk\":\"p1\",\"a\":\"text\"}");
    expect(t, "SELECT VALUE SUM(c.a) FROM c", "[]");
}

static void print_text_number(size_t number, Buf *out)
{
    buf_format(out, "{\"id\":\"%zu\",\"pk\":\"p\",\"n\":%zu,\"s\":\"text %zu\",\"m\":%s}", number,
               number % 5, number, number == 0 ? "[1]" : "7");
}

/* One value that is no number is enough to know that there is no sum. */
static void a_sum_that_there_is_not_reads_little(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    insert_many(t, 0, 3000, print_text_number);
    static const struct {
        const char *query, *expected;
        uint64_t keys_max;
    } ROWS[] = {
        {"SELECT VALUE SUM(c.s) FROM c", "[]", 200},
        {"SELECT VALUE AVG(c.s) FROM c WHERE c.n = 3", "[]", 200},
        {"SELECT VALUE SUM(c.m) FROM c", "[]", 200},
        {"SELECT VALUE SUM(c.m) FROM c WHERE c.n = 3", "[4200]", 200},
        {"SELECT VALUE SUM(c.s) FROM c WHERE c.n = 9", "[0]", 3200},
        {"SELECT VALUE MAX(c.m) FROM c", "[]", 200},
        {"SELECT VALUE MAX(c.m) FROM c WHERE c.n = 3", "[7]", 200},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(answered_done) Answered answered;
        ask(t, ROWS[i].query, (Asked){0}, &answered);
        expect(t, ROWS[i].query, ROWS[i].expected);
        assert_int_equal(answered.page.metrics.documents_read, 0);
        if (answered.page.metrics.index_keys_read > ROWS[i].keys_max)
            fail_msg("%s has read %llu keys", ROWS[i].query,
                     (unsigned long long)answered.page.metrics.index_keys_read);
    }
}

static void a_composite_index_serves_filters(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){.policy = COMPOSITE});
    insert_spread(t, 900);
    static const struct {
        const char *query;
        const char *expected;
        bool is_used;
    } ROWS[] = {
        {"SELECT VALUE COUNT(1) FROM c WHERE c.a = 3 AND c.b > 4", "[71]", true},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.a = 3 AND c.b <= 4", "[58]", true},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.a = 3 AND c.b BETWEEN 2 AND 3", "[24]", true},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.b > 4 AND c.a = 3 AND c.n >= 0", "[71]", true},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.a > 3 AND c.b = 4", "[36]", false},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.a = 3", "[129]", false},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.a != 3 AND c.b > 4", "[419]", false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(answered_done) Answered answered;
        ask(t, ROWS[i].query, (Asked){0}, &answered);
        expect(t, ROWS[i].query, ROWS[i].expected);
        assert_int_equal(answered.page.used_composite_count > 0, ROWS[i].is_used);
    }
    AUTO(answered_done) Answered answered;
    ask(t, "SELECT VALUE c.b FROM c WHERE c.a = 3 ORDER BY c.a, c.b DESC", (Asked){.items_max = 5},
        &answered);
    assert_true(slice_equal(buf_view(&answered.text), SLICE("[10,10,10,10,10]")));
    assert_in_range(answered.page.metrics.documents_read, 5, 6);
}

#define TIES(paths)                                                                                \
    "{\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[],\"compositeIndexes\":[" paths "]" \
    "}"
#define PART_UP(path)   "{\"path\":\"" path "\",\"order\":\"ascending\"}"
#define PART_DOWN(path) "{\"path\":\"" path "\",\"order\":\"descending\"}"

/* The documents with one value of the first parts are in the order of the others. */
static void an_order_after_constants_is_that_of_a_longer_index(void **state)
{
    TestContainer *t = *state;
    static const struct {
        const char *policy, *by;
    } ROWS[] = {
        {TIES("[" PART_UP("/a") "," PART_UP("/n") "]"), "/a ASC, /n ASC"},
        {TIES("[" PART_UP("/a") "," PART_DOWN("/n") "]"), "/a ASC, /n DESC"},
        {TIES("[" PART_DOWN("/a") "," PART_UP("/n") "]"), "/a DESC, /n ASC"},
        {TIES("[" PART_UP("/pk") "," PART_UP("/n") "],[" PART_UP("/a") "," PART_UP("/n") "]"),
         "/a ASC, /n ASC"},
        {TIES("[" PART_UP("/n") "," PART_UP("/a") "]"), "/n/?"},
        {TIES(""), "/n/?"},
    };
    static const char *const QUERIES[] = {
        "SELECT VALUE c.n FROM c WHERE c.a = 3 ORDER BY c.n",
        "SELECT VALUE c.n FROM c WHERE c.a = 3 ORDER BY c.n DESC",
        "SELECT VALUE c.n FROM c WHERE c.b != 5 AND 3 = c.a ORDER BY c.n",
        "SELECT VALUE c.n FROM c WHERE c.a = 3 AND c.n > 100 ORDER BY c.n DESC",
        "SELECT VALUE c.n FROM c WHERE c.a = 3 AND c.n IN (3, 10, 17, 500) ORDER BY c.n",
        "SELECT VALUE c.n FROM c WHERE (c.a = 3 OR c.a = 4) ORDER BY c.n",
        "SELECT VALUE c.n FROM c WHERE c.a = 3 AND c.a = 4 ORDER BY c.n",
    };
    AUTO(buf_done) Buf expected;
    buf_init(&expected, TEXT_BYTES_MAX);
    for (size_t i = ARRAY_COUNT(ROWS); i-- > 0;) { /* the last one has no index to go wrong */
        test_container_open(t, (TestOptions){.policy = ROWS[i].policy, .partitions = 3});
        insert_spread(t, 500);
        size_t at = 0;
        for (size_t j = 0; j < ARRAY_COUNT(QUERIES); j++) {
            AUTO(answered_done) Answered answered;
            ask(t, QUERIES[j], (Asked){0}, &answered);
            Slice all = buf_view(&answered.text);
            Slice results = slice_make(all.ptr + 1, all.len - 2);
            if (i == ARRAY_COUNT(ROWS) - 1)
                buf_format(&expected, "%.*s%c", SLICE_ARG(results), '\0');
            char *wanted = arena_cstr(&answered.arena, slice_from_cstr(expected.ptr + at));
            at += strlen(wanted) + 1;
            for (uint32_t round = 0; round < 4; round++) {
                Random random;
                random_init(&random, round);
                Asked asked = {.items_max = 3 + 10 * round,
                               .plan_random = round % 2 == 0 ? NULL : &random};
                (void)expect_pages(t, QUERIES[j], asked, wanted);
            }
        }
        AUTO(answered_done) Answered answered;
        ask(t, QUERIES[0], (Asked){.items_max = 5}, &answered);
        char *told =
            arena_cstr(&answered.arena, json_print_arena(&answered.arena, answered.page.explain));
        Slice by = arena_format(&answered.arena, "\"orderedBy\":\"%s\"", ROWS[i].by);
        assert_non_null(strstr(told, arena_cstr(&answered.arena, by)));
        if (ROWS[i].by[3] != '?') /* one more of each partition is looked at */
            assert_in_range(answered.page.metrics.documents_read, 5, 8);
        if (i > 0)
            test_container_close(t);
    }
}

static void print_covered(size_t number, Buf *out)
{
    static const char *const values[] = {"1.5",         "-0.0", "null", "true",
                                         "\"text\"",    "[1]",  "{}",   "9007199254740993",
                                         "\"\\u0000\"", "0",    "-3",   "1e300"};
    buf_format(out, "{\"id\":\"%zu\",\"pk\":\"p\",\"m\":%zu,\"o\":{\"n\":%zu}", number, number % 3,
               number);
    if (number % 13 != 12)
        buf_format(out, ",\"v\":%s", values[number % 13]);
    buf_slice(out, SLICE(",\"s\":\""));
    for (size_t i = 0; i < (number % 50 == 0 ? 120 : 8); i++)
        buf_byte(out, 'x');
    buf_format(out, "%03zu\"}", number);
}

/* What a term has is not fetched; what it has in part is. */
static void a_projection_of_one_path_reads_its_index(void **state)
{
    TestContainer *t = *state;
    enum { COUNT = 390 };
    test_container_open(t, (TestOptions){0});
    insert_many(t, 0, COUNT, print_covered);
    static const struct {
        const char *query;
        uint64_t read; /* documents */
    } ROWS[] = {
        {"SELECT VALUE c.o.n FROM c ORDER BY c.o.n", 1}, /* 0, which may be -0 */
        {"SELECT VALUE c.o.n FROM c WHERE c.o.n > 100 ORDER BY c.o.n DESC", 0},
        {"SELECT c.o.n AS a, c.o.n + 1 AS b FROM c WHERE c.o.n % 2 = 1 ORDER BY c.o.n", 1},
        {"SELECT TOP 5 VALUE c.o.n FROM c WHERE c.o.n >= 7 ORDER BY c.o.n", 0},
        {"SELECT VALUE c.s FROM c ORDER BY c.s", 8},                   /* those that are cut */
        {"SELECT VALUE {v: c.v} FROM c ORDER BY c.v", 5 * COUNT / 13}, /* [], {}, 0, -0, 2^53+1 */
        {"SELECT VALUE {v: c.v} FROM c ORDER BY c.v DESC", 5 * COUNT / 13},
        {"SELECT VALUE [c.o.n, c.id] FROM c ORDER BY c.o.n", COUNT},
        {"SELECT VALUE c.o FROM c ORDER BY c.o.n", COUNT},
        {"SELECT VALUE c.o.n FROM c WHERE c.m = 1 AND c.o.n > 50 ORDER BY c.o.n", 113},
        {"SELECT VALUE (SELECT VALUE c.o.n) FROM c WHERE c.o.n > 100 ORDER BY c.o.n", 289},
        {"SELECT * FROM c WHERE c.o.n > 100 ORDER BY c.o.n", 289},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(answered_done) Answered best;
        ask(t, ROWS[i].query, (Asked){0}, &best);
        assert_int_equal(best.status, STATUS_OK);
        if (best.page.metrics.documents_read != ROWS[i].read)
            fail_msg("%s has read %llu documents and not %llu", ROWS[i].query,
                     (unsigned long long)best.page.metrics.documents_read,
                     (unsigned long long)ROWS[i].read);
        Slice results = buf_view(&best.text);
        char *expected = arena_cstr(&best.arena, slice_make(results.ptr + 1, results.len - 2));
        for (uint64_t seed = 0; seed < 6; seed++) { /* some with documents, some without */
            Random random;
            random_init(&random, seed);
            (void)expect_pages(t, ROWS[i].query, (Asked){.items_max = 50, .plan_random = &random},
                               expected);
        }
    }
}

/* An index keeps terms of what has expired until it is swept up. */
static void a_projection_leaves_out_what_is_gone(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){.ttl_s = -1});
    test_insert(t, "{\"id\":\"1\",\"pk\":\"p\",\"n\":1}");
    test_insert(t, "{\"id\":\"2\",\"pk\":\"p\",\"n\":2,\"ttl\":10}");
    test_insert(t, "{\"id\":\"3\",\"pk\":\"q\",\"n\":3}");
    expect(t, "SELECT VALUE c.n FROM c ORDER BY c.n", "[1,2,3]");
    atomic_fetch_add(&t->clock.wall_us, 11000000);
    expect(t, "SELECT VALUE c.n FROM c ORDER BY c.n", "[1,3]");
    test_purge(t, "\"q\"");
    expect(t, "SELECT VALUE c.n FROM c ORDER BY c.n", "[1]");
}

static void print_place(size_t number, Buf *out)
{
    buf_format(out,
               "{\"id\":\"%zu\",\"pk\":\"p\",\"g\":{\"type\":\"Point\",\"coordinates\":[%d,%d]}}",
               number, (int)(number % 60) - 30, (int)(number / 60) - 15);
}

static void cells_narrow_down_where_to_look(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){.policy = COMPOSITE});
    insert_many(t, 0, 1800, print_place);
    static const struct {
        const char *query;
        const char *expected;
        uint64_t read_max;
    } ROWS[] = {
        {"SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.g, {'type':'Point','coordinates':[5,5]})"
         " < 120000",
         "[\"1175\",\"1234\",\"1235\",\"1236\",\"1295\"]", 100},
        {"SELECT VALUE c.id FROM c WHERE 50000 >= ST_DISTANCE({'type':'Point','coordinates':"
         "[5,5]}, c.g)",
         "[\"1235\"]", 100},
        {"SELECT VALUE COUNT(1) FROM c WHERE ST_WITHIN(c.g, {'type':'Polygon','coordinates':"
         "[[[-0.5,-0.5],[2.5,-0.5],[2.5,1.5],[-0.5,1.5],[-0.5,-0.5]]]})",
         "[6]", 100},
        {"SELECT VALUE COUNT(1) FROM c WHERE ST_INTERSECTS({'type':'LineString','coordinates':"
         "[[3,3],[3,4]]}, c.g)",
         "[2]", 100},
        {"SELECT VALUE COUNT(1) FROM c WHERE NOT ST_WITHIN(c.g, {'type':'Polygon','coordinates':"
         "[[[-0.5,-0.5],[2.5,-0.5],[2.5,1.5],[-0.5,1.5],[-0.5,-0.5]]]})",
         "[1794]", 1800},
        {"SELECT VALUE COUNT(1) FROM c WHERE ST_DISTANCE(c.g, {'type':'Point','coordinates':"
         "[5,5]}) > 120000",
         "[1795]", 1800},
        {"SELECT VALUE COUNT(1) FROM c WHERE ST_DISTANCE(c.g, {'type':'Point'}) < 5", "[0]", 1800},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(answered_done) Answered answered;
        ask(t, ROWS[i].query, (Asked){0}, &answered);
        expect(t, ROWS[i].query, ROWS[i].expected);
        assert_in_range(answered.page.metrics.documents_read, 0, ROWS[i].read_max);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAGE_TEST(each_partition_has_a_plan_of_its_own),
        PAGE_TEST(the_plan_follows_from_the_data),
        PAGE_TEST(the_index_alone_answers),
        PAGE_TEST(a_sum_that_there_is_not_reads_little),
        PAGE_TEST(a_composite_index_serves_filters),
        PAGE_TEST(an_order_after_constants_is_that_of_a_longer_index),
        PAGE_TEST(a_projection_of_one_path_reads_its_index),
        PAGE_TEST(a_projection_leaves_out_what_is_gone),
        PAGE_TEST(cells_narrow_down_where_to_look),
    };
    return cmocka_run_group_tests_name("plans of pages", tests, NULL, NULL);
}
