/* page_gather_test.c - results that come of all documents together, over pages between which
 * partitions split and merge: GROUP BY, DISTINCT, sorted rows, subqueries in FROM. */
#include "query/page/page_testing_int.h"

enum { DOCUMENTS = 240, RESULTS_MAX = 1000, LONG_BYTES = 700 };

static void print_document(size_t number, Buf *out)
{
    buf_format(
        out, "{\"id\":\"%zu\",\"pk\":\"k%zu\",\"g\":%zu,\"u\":\"u%zu\",\"h\":[%zu],\"t\":[%zu,%zu]",
        number, number % 41, number % 23, number % 97, number % 7, number % 5, number % 3);
    if (number % 11 != 0)
        buf_format(out, ",\"o\":%zu", number % 13);
    buf_format(out, ",\"long\":\"");
    for (size_t i = 0; i < LONG_BYTES; i++)
        buf_byte(out, 'x');
    buf_format(out, "%zu\"}", number % 19);
}

static void fill(TestContainer *t)
{
    test_container_open(t, (TestOptions){.policy = NULL});
    insert_many(t, 0, DOCUMENTS, print_document);
}

/* ---- results ---- */

typedef struct Results {
    Arena arena;
    Json list[RESULTS_MAX];
    size_t count;
    Slice position; /* of the last page */
    bool is_done;
} Results;

static void results_init(Results *results)
{
    arena_init(&results->arena, 64 << 10);
    results->count = 0;
    results->position = SLICE_EMPTY;
    results->is_done = false;
}

static void results_done(Results *results)
{
    arena_done(&results->arena);
}
DEFINE_AUTO_VALUE(Results, results_done)

static void add_results(Results *results, Slice text)
{
    Json array = parse_json(&results->arena, arena_cstr(&results->arena, text));
    for (JsonIter it = json_iter(array); json_next(&it);) {
        assert_true(results->count < RESULTS_MAX);
        results->list[results->count++] = it.value;
    }
}

/* A range of the container, and where it is cut into targets. */
typedef struct Layout {
    Slice from;
    Slice to;
    Slice cuts[4];
    size_t cut_count;
} Layout;

#define CUT(byte) SLICE_INIT(byte)
#define ALL_OF_IT .from = SLICE_INIT(""), .to = SLICE_INIT("\xFF")

static const Layout ONE = {ALL_OF_IT};
static const Layout TWO = {ALL_OF_IT, {CUT("\x20")}, 1};
static const Layout FOUR = {ALL_OF_IT, {CUT("\x10"), CUT("\x20"), CUT("\x30")}, 3};
static const Layout ODD = {ALL_OF_IT, {CUT("\x07"), CUT("\x2A")}, 2};

/* One more page. */
static void read_page(TestContainer *t, const Layout *layout, const char *text, Asked asked,
                      Results *results)
{
    TestTargets targets;
    test_targets_open(t, layout->from, layout->to, layout->cuts, layout->cut_count, &targets);
    asked.position = results->position;
    AUTO(answered_done) Answered answered;
    ask_over(t, &targets, text, asked, &answered);
    test_targets_close(&targets);
    if (answered.status != STATUS_OK)
        fail_msg("%s: %s", text, answered.err.message);
    assert_true(answered.page.is_done || answered.page.position.len <= QUERY_POSITION_BYTES_MAX);
    add_results(results, buf_view(&answered.text));
    results->is_done = answered.page.is_done;
    results->position = arena_copy(&results->arena, answered.page.position);
}

static int compare_results(const void *a, const void *b)
{
    return json_compare(*(const Json *)a, *(const Json *)b);
}

static void expect_same(Results *ours, Results *expected, const char *text)
{
    if (ours->count != expected->count)
        fail_msg("%s: %zu results and not %zu", text, ours->count, expected->count);
    qsort(ours->list, ours->count, sizeof(Json), compare_results);
    qsort(expected->list, expected->count, sizeof(Json), compare_results);
    for (size_t i = 0; i < ours->count; i++) {
        if (json_compare(ours->list[i], expected->list[i]) != 0)
            fail_msg("%s: result %zu is another one", text, i);
    }
}

/* ---- over the whole container ---- */

static const char *const QUERIES[] = {
    "SELECT c.g, COUNT(1) AS n, SUM(c.o) AS s FROM c GROUP BY c.g",
    "SELECT c.u, COUNT(1) AS n FROM c WHERE c.o > 3 GROUP BY c.u",
    "SELECT c.h, c.g, MIN(c.o) AS least FROM c GROUP BY c.h, c.g",
    "SELECT c.o, COUNT(1) AS n FROM c GROUP BY c.o",
    "SELECT c.long, COUNT(1) AS n FROM c GROUP BY c.long",
    "SELECT t, COUNT(1) AS n FROM c JOIN t IN c.t GROUP BY t",
    "SELECT c.h, COUNT(1) AS n FROM c GROUP BY c.h, c.g ORDER BY c.h DESC",
    "SELECT DISTINCT c.g, c.h FROM c",
    "SELECT DISTINCT VALUE c.u FROM c",
    "SELECT DISTINCT VALUE c.u FROM c WHERE c.o > 3",
    "SELECT DISTINCT VALUE c.long FROM c",
    "SELECT DISTINCT VALUE t FROM c JOIN t IN c.t",
    "SELECT DISTINCT c.g, c.o FROM c ORDER BY c.o DESC",
    "SELECT DISTINCT c.g FROM c ORDER BY c.u",
    "SELECT DISTINCT COUNT(1) AS n FROM c GROUP BY c.u",
    "SELECT c.id, t FROM c JOIN t IN c.t ORDER BY t",
    "SELECT x.g, x.n FROM (SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g) AS x WHERE x.n > 10",
    "SELECT VALUE x.id FROM (SELECT c.id, c.o FROM c WHERE c.o > 5) AS x WHERE x.o < 10",
    "SELECT VALUE x FROM (SELECT DISTINCT VALUE c.u FROM c) AS x",
    "SELECT x.g, COUNT(1) AS n FROM (SELECT c.g, c.o FROM c WHERE c.o > 5) AS x GROUP BY x.g",
    "SELECT x.n, COUNT(1) AS m FROM (SELECT COUNT(1) AS n FROM c GROUP BY c.u) AS x GROUP BY x.n",
};

typedef struct Change {
    const Layout *from;
    const Layout *to[2];
} Change;

static const Change CHANGES[] = {
    {&ONE, {&TWO, &FOUR}},
    {&TWO, {&FOUR, &ODD}},
    {&FOUR, {&ONE, &ODD}},
    {&ODD, {&TWO, &ONE}},
};

/* The first page in one layout, one more in the next, and the rest in the last. */
static void check_change(TestContainer *t, const char *text, const Change *change, Asked asked)
{
    AUTO(results_done) Results expected;
    AUTO(results_done) Results ours;
    results_init(&expected);
    results_init(&ours);
    read_page(t, change->from, text, (Asked){0}, &expected);
    assert_true(expected.is_done);
    read_page(t, change->from, text, asked, &ours);
    for (size_t i = 0; !ours.is_done; i++)
        read_page(t, change->to[i > 0], text, asked, &ours);
    expect_same(&ours, &expected, text);
}

static void results_go_on_when_partitions_have_changed(void **state)
{
    TestContainer *t = *state;
    fill(t);
    Random random;
    random_init(&random, 3);
    for (size_t i = 0; i < ARRAY_COUNT(QUERIES); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(CHANGES); j++) {
            check_change(t, QUERIES[i], &CHANGES[j], (Asked){.items_max = 4});
            check_change(t, QUERIES[i], &CHANGES[j],
                         (Asked){.items_max = 3, .plan_random = &random});
        }
    }
}

static void an_order_is_kept_when_partitions_have_changed(void **state)
{
    TestContainer *t = *state;
    fill(t);
    AUTO(results_done) Results ours;
    results_init(&ours);
    static const char text[] = "SELECT VALUE {n: COUNT(1), o: c.o} FROM c GROUP BY c.o "
                               "ORDER BY c.o DESC OFFSET 2 LIMIT 9";
    for (size_t i = 0; !ours.is_done; i++)
        read_page(t, CHANGES[i % ARRAY_COUNT(CHANGES)].from, text, (Asked){.items_max = 2}, &ours);
    assert_int_equal(ours.count, 9);
    for (size_t i = 0; i < ours.count; i++)
        assert_int_equal((int)json_number(json_get(ours.list[i], SLICE("o"))), 10 - (int)i);
}

/* ---- range by range, as clients ask that merge by themselves ---- */

/* Groups that the first page of a parent has given are given by none of its children, and all that
 * is left comes from them, in parts that add up. */
static void children_go_on_with_the_token_of_their_parent(void **state)
{
    TestContainer *t = *state;
    fill(t);
    static const char text[] = "SELECT VALUE [c.g, COUNT(1)] FROM c GROUP BY c.g";
    static const Layout CHILDREN[] = {
        {.from = SLICE_INIT(""), .to = SLICE_INIT("\x18")},
        {.from = SLICE_INIT("\x18"), .to = SLICE_INIT("\xFF")},
    };
    AUTO(results_done) Results all;
    results_init(&all);
    read_page(t, &ONE, text, (Asked){.items_max = 9}, &all);
    Slice position = all.position;
    for (size_t i = 0; i < ARRAY_COUNT(CHILDREN); i++) {
        all.position = position;
        all.is_done = false;
        while (!all.is_done)
            read_page(t, &CHILDREN[i], text, (Asked){.items_max = 5}, &all);
    }
    int counts[23] = {0};
    for (size_t i = 0; i < all.count; i++) {
        int group = (int)json_number(json_at(all.list[i], 0));
        bool is_whole = counts[group] == 0 || i >= 9;
        counts[group] += (int)json_number(json_at(all.list[i], 1));
        assert_true(is_whole);
    }
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++)
        assert_int_equal(counts[i], (DOCUMENTS / 23) + (i < DOCUMENTS % 23));
}

static void rows_of_a_parent_come_from_one_child(void **state)
{
    TestContainer *t = *state;
    fill(t);
    static const char text[] = "SELECT VALUE [c.id, t] FROM c JOIN t IN c.t ORDER BY t";
    static const Layout CHILDREN[] = {
        {.from = SLICE_INIT(""), .to = SLICE_INIT("\x0C")},
        {.from = SLICE_INIT("\x0C"), .to = SLICE_INIT("\xFF")},
    };
    AUTO(results_done) Results expected;
    AUTO(results_done) Results ours;
    results_init(&expected);
    results_init(&ours);
    read_page(t, &ONE, text, (Asked){0}, &expected);
    read_page(t, &ONE, text, (Asked){.items_max = 101}, &ours);
    Slice position = ours.position;
    for (size_t i = 0; i < ARRAY_COUNT(CHILDREN); i++) {
        ours.position = position;
        ours.is_done = false;
        while (!ours.is_done)
            read_page(t, &CHILDREN[i], text, (Asked){.items_max = 50}, &ours);
    }
    expect_same(&ours, &expected, text);
}

/* What counts its results is no good for a part of what they came of. */
static void a_count_of_results_is_refused_in_another_range(void **state)
{
    TestContainer *t = *state;
    fill(t);
    static const char text[] =
        "SELECT x.g, x.n FROM (SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g) AS x";
    AUTO(results_done) Results first;
    results_init(&first);
    read_page(t, &ONE, text, (Asked){.items_max = 4}, &first);
    TestTargets targets;
    test_targets_open(t, SLICE_EMPTY, SLICE("\x20"), NULL, 0, &targets);
    AUTO(answered_done) Answered answered;
    ask_over(t, &targets, text, (Asked){.items_max = 4, .position = first.position}, &answered);
    test_targets_close(&targets);
    assert_int_equal(answered.status, STATUS_BAD_REQUEST);
    assert_non_null(strstr(answered.err.message, "The continuation token has expired"));
}

/* ---- what is whole ---- */

/* Only what needs a position is put into the order of places. */
static void groups_of_one_page_come_as_they_were_found(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){.policy = NULL});
    test_insert(t, "{\"id\":\"1\",\"pk\":\"a\",\"g\":[2]}");
    test_insert(t, "{\"id\":\"2\",\"pk\":\"a\",\"g\":\"z\"}");
    test_insert(t, "{\"id\":\"3\",\"pk\":\"a\",\"g\":1}");
    expect(t, "SELECT VALUE c.g FROM c GROUP BY c.g", "[[2],\"z\",1]");
    expect_pages(t, "SELECT VALUE c.g FROM c GROUP BY c.g", (Asked){.items_max = 2}, "1,\"z\",[2]");
    expect_pages(t, "SELECT TOP 2 VALUE c.g FROM c GROUP BY c.g", (Asked){.items_max = 2},
                 "[2],\"z\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAGE_TEST(results_go_on_when_partitions_have_changed),
        PAGE_TEST(an_order_is_kept_when_partitions_have_changed),
        PAGE_TEST(children_go_on_with_the_token_of_their_parent),
        PAGE_TEST(rows_of_a_parent_come_from_one_child),
        PAGE_TEST(a_count_of_results_is_refused_in_another_range),
        PAGE_TEST(groups_of_one_page_come_as_they_were_found),
    };
    return cmocka_run_group_tests_name("gathered results", tests, NULL, NULL);
}
