/* call_batch_test.c - pages of queries that call functions of users: how many calls are made
 * together, which errors count, and where pages end. */
#include "query/page/page_testing_int.h"

enum { ITEMS = 1000, KEYS = 7 };

/* Numbers from 0 on, in a few logical partitions. */
static void fill(TestContainer *t, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1024);
        test_insert(t, arena_format(&arena,
                                    "{\"id\":\"i%zu\",\"pk\":\"p%zu\",\"n\":%zu,\"m\":%zu,"
                                    "\"list\":[%zu,%zu]}%c",
                                    i, i % KEYS, i, i % 10, i, i + 1, '\0')
                           .ptr);
    }
}

static void open_with(TestContainer *t, size_t partitions, size_t count)
{
    test_container_open(t, (TestOptions){.partitions = partitions});
    fill(t, count);
}

static size_t ask_count(TestContainer *t, const char *text, Asked asked, FakeFunctions *fake)
{
    AUTO(answered_done) Answered answered;
    asked.functions = fake;
    ask(t, text, asked, &answered);
    if (answered.status != STATUS_OK)
        fail_msg("%s: %s", text, answered.err.message);
    assert_int_equal(answered.page.metrics.user_calls, fake->calls); /* none was in vain */
    return answered.page.count;
}

static void calls_of_a_page_travel_in_batches(void **state)
{
    TestContainer *t = *state;
    open_with(t, 1, ITEMS);
    static const struct {
        const char *query;
        size_t rows;
        size_t calls;
        size_t batches_max;
    } CASES[] = {
        {"SELECT c.id, udf.twice(c.n) AS t FROM c", ITEMS, ITEMS, ITEMS / 64 + 5},
        {"SELECT udf.twice(c.n) AS t, udf.box(c) AS b FROM c", ITEMS, 2 * ITEMS, ITEMS / 64 + 5},
        {"SELECT VALUE c.id FROM c WHERE udf.even(c.n)", ITEMS / 2, ITEMS, ITEMS / 64 + 5},
        {"SELECT VALUE udf.twice(c.n) FROM c WHERE udf.even(c.n)", ITEMS / 2, ITEMS * 3 / 2,
         ITEMS / 32 + 10},
        {"SELECT VALUE c.id FROM c WHERE udf.even(c.n) AND c.m = 4", ITEMS / 10, ITEMS / 10,
         ITEMS / 640 + 5},
        {"SELECT VALUE c.id FROM c WHERE udf.even(c.n) AND c.n % 10 = 4", ITEMS / 10, ITEMS / 10,
         ITEMS / 64 + 5},
        {"SELECT VALUE SUM(udf.twice(c.n)) FROM c", 1, ITEMS, ITEMS / 64 + 5},
        {"SELECT c.m, COUNT(udf.same(c.n)) AS n FROM c GROUP BY c.m", 10, ITEMS, ITEMS / 64 + 5},
        {"SELECT DISTINCT VALUE udf.even(c.n) FROM c", 2, ITEMS, ITEMS / 64 + 5},
        {"SELECT VALUE udf.twice(x) FROM c JOIN x IN c.list", 2 * ITEMS, 2 * ITEMS, ITEMS / 64 + 5},
        {"SELECT VALUE udf.twice(c.n) FROM c ORDER BY c.n DESC", ITEMS, ITEMS, ITEMS / 64 + 5},
        {"SELECT TOP 1 VALUE udf.twice(c.n) FROM c", 1, 1, 1},
        {"SELECT TOP 10 VALUE udf.twice(c.n) FROM c", 10, 10, 3},
        {"SELECT VALUE udf.count()", 1, 1, 1},
        {"SELECT VALUE udf.twice(c.n) FROM c WHERE c.n < 0", 0, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        FakeFunctions fake = {0};
        size_t rows = ask_count(t, CASES[i].query, (Asked){0}, &fake);
        if (rows != CASES[i].rows || fake.calls != CASES[i].calls ||
            fake.batches > CASES[i].batches_max)
            fail_msg("%s: %zu rows, %zu calls in %zu batches", CASES[i].query, rows, fake.calls,
                     fake.batches);
    }
}

/* Page by page, over one partition and several, the rows are those of one page. */
static void check_pages(TestContainer *t, Workers *workers)
{
    static const char *const QUERIES[] = {
        "SELECT VALUE udf.twice(c.n) FROM c",
        "SELECT VALUE c.n FROM c WHERE udf.even(c.n)",
        "SELECT VALUE udf.twice(c.n) FROM c WHERE udf.even(c.m) ORDER BY c.n",
        "SELECT VALUE udf.twice(x) FROM c JOIN x IN c.list",
        "SELECT VALUE x FROM c JOIN x IN udf.list(c.m)",
        "SELECT DISTINCT VALUE udf.twice(c.m) FROM c",
        "SELECT udf.twice(c.m) AS k, COUNT(1) AS n FROM c GROUP BY udf.twice(c.m)",
        "SELECT VALUE udf.same(c) FROM c WHERE c.n < 40",
        "SELECT VALUE c FROM c WHERE udf.even(c.n) AND c.n < 40",
        "SELECT VALUE udf.twice(c.n) FROM c OFFSET 20 LIMIT 31",
        "SELECT VALUE s.t FROM (SELECT udf.twice(c.n) AS t FROM c) s WHERE udf.even(s.t / 2)",
    };
    static const uint32_t SIZES[] = {1, 3, 10, 64};
    for (size_t i = 0; i < ARRAY_COUNT(QUERIES); i++) {
        FakeFunctions fake = {0};
        AUTO(answered_done) Answered whole;
        ask(t, QUERIES[i], (Asked){.functions = &fake, .is_real_time = true}, &whole);
        if (whole.status != STATUS_OK)
            fail_msg("%s: %s", QUERIES[i], whole.err.message);
        assert_true(whole.page.is_done);
        Slice rows = buf_view(&whole.text);
        const char *expected = arena_cstr(&whole.arena, slice_make(rows.ptr + 1, rows.len - 2));
        bool is_gathered = strstr(QUERIES[i], "GROUP BY") != NULL;
        for (size_t j = 0; j < ARRAY_COUNT(SIZES) && !is_gathered; j++) {
            (void)expect_pages(t, QUERIES[i],
                               (Asked){.items_max = SIZES[j],
                                       .functions = &fake,
                                       .workers = workers,
                                       .slice_items = 10},
                               expected);
        }
    }
}

static void pages_go_on_in_one_partition(void **state)
{
    TestContainer *t = *state;
    open_with(t, 1, 200);
    check_pages(t, NULL);
}

static void pages_go_on_over_several_partitions(void **state)
{
    TestContainer *t = *state;
    open_with(t, 3, 200);
    check_pages(t, NULL);
}

/* Helpers are there, and the functions are called by the page's thread only. */
static void check_thread(FakeFunctions *fake, size_t count)
{
    (void)count;
    assert_true(pthread_equal(pthread_self(), *(pthread_t *)fake->context));
}

static void helpers_call_no_functions(void **state)
{
    TestContainer *t = *state;
    open_with(t, 3, 200);
    Workers *workers = workers_open("help", 3, 16);
    pthread_t self = pthread_self();
    FakeFunctions fake = {.on_batch = check_thread, .context = &self};
    assert_int_equal(ask_count(t, "SELECT VALUE SUM(udf.twice(c.n)) FROM c",
                               (Asked){.workers = workers, .slice_items = 10}, &fake),
                     1);
    assert_int_equal(fake.calls, 200);
    check_pages(t, workers);
    workers_close(workers);
}

static void a_page_fails_for_errors_that_it_needs(void **state)
{
    TestContainer *t = *state;
    open_with(t, 1, 100);
    static const char TEXT[] = "SELECT VALUE udf.throws(c.n < 20 ? true : c.n) FROM c";
    FakeFunctions fake = {0};
    expect_error(t, TEXT, (Asked){.functions = &fake}, "thrown for 20");
    /* The first twenty are a page, although the next document fails, */
    AUTO(answered_done) Answered first;
    ask(t, TEXT, (Asked){.functions = &fake, .items_max = 20}, &first);
    assert_int_equal(first.status, STATUS_OK);
    assert_int_equal(first.page.count, 20);
    assert_false(first.page.is_done);
    /* and the page that begins with it fails. */
    expect_error(t, TEXT,
                 (Asked){.functions = &fake, .items_max = 20, .position = first.page.position},
                 "thrown for 20");
    expect_error(t, "SELECT VALUE udf.hangs(c.n) FROM c", (Asked){.functions = &fake}, "it hangs");
    expect_error(t, "SELECT VALUE udf.nosuch(c.n) FROM c", (Asked){.functions = &fake}, "SC2003");
    expect_error(t, "SELECT VALUE udf.twice(c.n) FROM c", (Asked){0}, "SC2003");
    expect_error(t, "SELECT VALUE udf.twice(c.n) FROM c",
                 (Asked){.functions = &fake, .is_brief = true, .page_us = 1000000}, "soon over");
}

static void a_page_of_all_documents_is_the_last_one(void **state)
{
    TestContainer *t = *state;
    open_with(t, 1, 100);
    FakeFunctions fake = {0};
    AUTO(answered_done) Answered answered;
    ask(t, "SELECT VALUE udf.twice(c.n) FROM c", (Asked){.functions = &fake, .items_max = 100},
        &answered);
    assert_int_equal(answered.page.count, 100);
    assert_true(answered.page.is_done);
    assert_int_equal(fake.calls, 100);
}

/* ---- time ---- */

enum { PAGE_US = 5000000 };

typedef struct Slow {
    TestContainer *t;
    uint64_t call_us;
} Slow;

static void take_time(FakeFunctions *fake, size_t count)
{
    const Slow *slow = fake->context;
    atomic_fetch_add(&slow->t->clock.monotonic_us, count * slow->call_us);
}

/* However slow they are, calls of documents that the page has no time for are left to the next. */
static void slow_calls_make_short_pages(void **state)
{
    TestContainer *t = *state;
    open_with(t, 1, 12);
    static const struct {
        uint64_t call_us;
        size_t rows; /* of the first page */
    } CASES[] = {{1000, 12}, {1000000, 5}, {2000000, 2}, {4000000, 1}};
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        Slow slow = {t, CASES[i].call_us};
        FakeFunctions fake = {.on_batch = take_time, .context = &slow};
        Asked asked = {.functions = &fake, .page_us = PAGE_US};
        AUTO(answered_done) Answered first;
        ask(t, "SELECT VALUE udf.twice(c.n) FROM c", asked, &first);
        assert_int_equal(first.status, STATUS_OK);
        assert_int_equal(first.page.count, CASES[i].rows);
        assert_in_range(fake.time_us_max, 1, PAGE_US + 1000000);
        assert_true(first.page.metrics.user_us >= CASES[i].rows * CASES[i].call_us);
        (void)expect_pages(t, "SELECT VALUE udf.twice(c.n) FROM c", asked,
                           "0,2,4,6,8,10,12,14,16,18,20,22");
        (void)expect_pages(t, "SELECT VALUE udf.twice(c.n) FROM c ORDER BY c.n DESC", asked,
                           "22,20,18,16,14,12,10,8,6,4,2,0");
    }
}

/* What a page costs does not depend on how many documents were read ahead. */
static void read_ahead_is_not_charged(void **state)
{
    TestContainer *t = *state;
    open_with(t, 1, 300);
    static const char *const TEXTS[] = {"SELECT VALUE udf.twice(c.n) FROM c WHERE udf.even(c.n)",
                                        "SELECT VALUE udf.twice(c.n) FROM c WHERE udf.even(c.n) "
                                        "ORDER BY c.n"};
    for (size_t i = 0; i < ARRAY_COUNT(TEXTS); i++) {
        Slow slow = {t, 200000}; /* so slow that each batch is one document */
        FakeFunctions one = {.on_batch = take_time, .context = &slow};
        FakeFunctions many = {0};
        AUTO(answered_done) Answered alone;
        AUTO(answered_done) Answered ahead;
        ask(t, TEXTS[i], (Asked){.functions = &one, .items_max = 20}, &alone);
        ask(t, TEXTS[i], (Asked){.functions = &many, .items_max = 20}, &ahead);
        assert_int_equal(one.largest, 1);
        assert_true(many.largest > 10);
        assert_int_equal(alone.page.metrics.user_calls, 39 + 20);
        assert_int_equal(ahead.page.metrics.user_calls, 39 + 20);
        assert_int_equal(alone.page.metrics.documents_read, 39);
        assert_int_equal(ahead.page.metrics.documents_read, 39);
        assert_int_equal(alone.page.metrics.index_keys_read, ahead.page.metrics.index_keys_read);
        assert_true(slice_equal(alone.page.position, ahead.page.position));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAGE_TEST(calls_of_a_page_travel_in_batches),
        PAGE_TEST(pages_go_on_in_one_partition),
        PAGE_TEST(pages_go_on_over_several_partitions),
        PAGE_TEST(helpers_call_no_functions),
        PAGE_TEST(a_page_fails_for_errors_that_it_needs),
        PAGE_TEST(a_page_of_all_documents_is_the_last_one),
        PAGE_TEST(slow_calls_make_short_pages),
        PAGE_TEST(read_ahead_is_not_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
