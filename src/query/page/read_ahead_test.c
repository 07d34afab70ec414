/* read_ahead_test.c - pages that several threads read, beside the same ones that one thread has
 * read. page_model_test has random ones. */
#include "query/page/page_testing_int.h"

#include <stdlib.h>

#include <cmocka.h>

enum { DOCUMENTS = 3000, KEYS = 97 };

/* "x" is not indexed, so that a query for it scans. */
static const char POLICY[] =
    "{\"indexingMode\":\"consistent\",\"automatic\":true,\"includedPaths\":[{\"path\":\"/*\"}],"
    "\"excludedPaths\":[{\"path\":\"/x/?\"}]}";

static void print_document(size_t number, Buf *out)
{
    buf_format(out, "{\"id\":\"%zu\",\"pk\":\"k%zu\",\"n\":%zu,\"x\":%zu,\"t\":[%zu,%zu]}", number,
               number % KEYS, number % 50, number * 7919 % 1000, number % 3, number % 5);
}

static void open_container(TestContainer *t, size_t partitions)
{
    test_container_open(t, (TestOptions){.policy = POLICY, .partitions = partitions});
    insert_many(t, 0, DOCUMENTS, print_document);
}

static const char *const QUERIES[] = {
    "SELECT * FROM c WHERE c.x = 500",
    "SELECT VALUE c.id FROM c WHERE c.x < 100",
    "SELECT VALUE c.id FROM c WHERE c.x < 0",
    "SELECT VALUE c.id FROM c",
    "SELECT TOP 40 VALUE c.id FROM c WHERE c.x < 100",
    "SELECT VALUE c.id FROM c WHERE c.x < 300 OFFSET 100 LIMIT 50",
    "SELECT VALUE c.id FROM c WHERE c.n = 7",
    "SELECT VALUE c.id FROM c WHERE c.n = 7 AND c.x > 500",
    "SELECT VALUE COUNT(1) FROM c WHERE c.x < 500",
    "SELECT c.n, SUM(c.x) AS s FROM c WHERE c.x > 10 GROUP BY c.n",
    "SELECT DISTINCT VALUE c.x FROM c WHERE c.x > 900",
    "SELECT VALUE t FROM c JOIN t IN c.t WHERE t = 2 AND c.x > 900",
    "SELECT VALUE c.id FROM c WHERE c.x > 900 ORDER BY c.n",
    "SELECT VALUE c.id FROM c WHERE c.x * 2 > 1900",
    "SELECT VALUE c.id FROM c WHERE RegexMatch(c.id, '^1.3') AND c.x > 1",
    "SELECT VALUE c.id FROM c WHERE c.n > 10 AND c.id > '12'",
    "SELECT VALUE c.id FROM c WHERE c.id > '12' ORDER BY c.id DESC",
    "SELECT TOP 100 VALUE c.id FROM c WHERE c.id > '2' AND c.x > 900",
    "SELECT VALUE c.id FROM c WHERE c.n = 7 AND c.pk = 'k7'",
    "SELECT VALUE c.n FROM c ORDER BY c.n",
};

static void compare(TestContainer *t, const char *query, Workers *workers, size_t slice_items)
{
    AUTO(answered_done) Answered alone;
    AUTO(answered_done) Answered helped;
    ask(t, query, (Asked){0}, &alone);
    ask(t, query, (Asked){.workers = workers, .slice_items = slice_items}, &helped);
    if (alone.status != STATUS_OK || helped.status != STATUS_OK)
        fail_msg("%s: %s", query,
                 alone.status != STATUS_OK ? alone.err.message : helped.err.message);
    if (!slice_equal(buf_view(&alone.text), buf_view(&helped.text)))
        fail_msg("%s\n  alone  %.*s\n  helped %.*s", query, SLICE_CUT(buf_view(&alone.text), 500),
                 SLICE_CUT(buf_view(&helped.text), 500));
    const QueryMetrics *a = &alone.page.metrics;
    const QueryMetrics *b = &helped.page.metrics;
    assert_true(helped.page.is_done);
    assert_int_equal(a->partitions, b->partitions);
    assert_int_equal(a->index_keys_read, b->index_keys_read);
    if (a->documents_read != b->documents_read || a->document_bytes_read != b->document_bytes_read)
        fail_msg("%s: %llu documents alone, %llu with help", query,
                 (unsigned long long)a->documents_read, (unsigned long long)b->documents_read);
    assert_int_equal(alone.page.used_path_count, helped.page.used_path_count);
    assert_int_equal(alone.page.potential_composite_count, helped.page.potential_composite_count);
}

static void help_changes_neither_results_nor_what_they_cost(void **state)
{
    for (size_t partitions = 1; partitions <= 3; partitions += 2) {
        TestContainer *t = *state;
        open_container(t, partitions);
        Workers *workers = workers_open("helper", 3, 64);
        for (size_t i = 0; i < ARRAY_COUNT(QUERIES); i++) {
            for (size_t items = 1; items <= 1000; items *= 10)
                compare(t, QUERIES[i], workers, items);
        }
        workers_close(workers);
        if (partitions == 1)
            test_container_close(t);
    }
}

static void same_work(const char *query, const QueryPage *a, const QueryPage *b, size_t targets)
{
    for (size_t i = 0; i < targets; i++) {
        const QueryTargetWork *one = &a->work[i];
        const QueryTargetWork *other = &b->work[i];
        if (one->is_visited != other->is_visited || one->documents_read != other->documents_read ||
            one->document_bytes_read != other->document_bytes_read ||
            one->index_keys_read != other->index_keys_read || one->results != other->results ||
            one->result_bytes != other->result_bytes)
            fail_msg("%s, target %zu: visited %d %d, documents %llu %llu, keys %llu %llu, results "
                     "%llu %llu",
                     query, i, one->is_visited, other->is_visited,
                     (unsigned long long)one->documents_read,
                     (unsigned long long)other->documents_read,
                     (unsigned long long)one->index_keys_read,
                     (unsigned long long)other->index_keys_read, (unsigned long long)one->results,
                     (unsigned long long)other->results);
    }
}

/* A page is the same however it is read: by one thread, with or without an explanation; by several;
 * or by one that gives up where it would take long. Results, positions and the work of each target
 * are the same. */
static void same_pages(TestContainer *t, const char *query, Asked asked, const Asked *ways,
                       size_t count)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Slice position = SLICE_EMPTY;
    for (bool is_done = false; !is_done;) {
        AUTO(answered_done) Answered alone;
        asked.position = position;
        ask(t, query, asked, &alone);
        if (alone.status != STATUS_OK)
            fail_msg("%s: %s", query, alone.err.message);
        for (size_t i = 0; i < count; i++) {
            AUTO(answered_done) Answered other;
            Asked way = ways[i];
            way.items_max = asked.items_max;
            way.position = position;
            ask(t, query, way, &other);
            if (other.status == STATUS_TIMEOUT && way.is_brief)
                continue;
            if (other.status != STATUS_OK)
                fail_msg("%s: %s", query, other.err.message);
            if (!slice_equal(buf_view(&alone.text), buf_view(&other.text)))
                fail_msg("%s\n  alone  %.*s\n  way %zu  %.*s", query,
                         SLICE_CUT(buf_view(&alone.text), 500), i,
                         SLICE_CUT(buf_view(&other.text), 500));
            assert_int_equal(alone.page.is_done, other.page.is_done);
            if (!slice_equal(alone.page.position, other.page.position))
                fail_msg("%s: way %zu has ended somewhere else", query, i);
            same_work(query, &alone.page, &other.page, t->partition_count);
        }
        is_done = alone.page.is_done;
        position = arena_copy(&arena, alone.page.position);
    }
}

static void pages_resume_however_they_are_read(void **state)
{
    for (size_t partitions = 1; partitions <= 3; partitions += 2) {
        TestContainer *t = *state;
        open_container(t, partitions);
        Workers *workers = workers_open("helper", 3, 64);
        const Asked ways[] = {
            {.tells_nothing = true},
            {.workers = workers, .slice_items = 20},
            {.workers = workers, .slice_items = 300},
            {.is_brief = true, .tells_nothing = true},
            {.is_brief = true, .tells_nothing = true, .keys_max = 20},
        };
        for (size_t i = 0; i < ARRAY_COUNT(QUERIES); i++) {
            for (uint32_t items_max = 7; items_max <= 490; items_max *= 70)
                same_pages(t, QUERIES[i], (Asked){.items_max = items_max}, ways, ARRAY_COUNT(ways));
        }
        workers_close(workers);
        if (partitions == 1)
            test_container_close(t);
    }
}

/* How far the helpers have read meanwhile does not matter; otherwise the charge of a page would
 * depend on chance. */
static void a_full_page_looks_as_far_as_it_would_alone(void **state)
{
    TestContainer *t = *state;
    open_container(t, 3);
    Workers *workers = workers_open("helper", 3, 64);
    for (int round = 0; round < 20; round++) {
        AUTO(answered_done) Answered first;
        AUTO(answered_done) Answered second;
        Asked asked = {.items_max = 1, .workers = workers, .slice_items = 10};
        ask(t, "SELECT VALUE c.id FROM c WHERE c.id = ToString(500 * c.n + 25 * c.t[0])", asked,
            &first);
        assert_int_equal(first.page.count, 1);
        assert_false(first.page.is_done);
        assert_true(first.page.metrics.documents_read < DOCUMENTS / 2);
        asked.position = first.page.position;
        ask(t, "SELECT VALUE c.id FROM c WHERE c.id = ToString(500 * c.n + 25 * c.t[0])", asked,
            &second);
        assert_int_equal(second.page.count, 0);
        assert_true(second.page.is_done);
    }
    workers_close(workers);
}

/* A helper has less memory than the page; what is too much for it is no failure of the query. */
static void what_is_too_much_for_a_helper_is_left_to_the_page(void **state)
{
    TestContainer *t = *state;
    open_container(t, 3);
    Workers *workers = workers_open("helper", 3, 64);
    static const char LARGE[] =
        "SELECT VALUE c.id FROM c WHERE c.x = 500 AND ARRAY_LENGTH(ARRAY(SELECT VALUE [u, v, w, "
        "c.id] "
        "FROM u IN (SELECT VALUE [0,1,2,3,4,5,6,7,8,9]) JOIN v IN (SELECT VALUE "
        "[0,1,2,3,4,5,6,7,8,9]) "
        "JOIN w IN (SELECT VALUE [0,1,2,3,4,5,6,7,8,9]) JOIN x IN (SELECT VALUE "
        "[0,1,2,3,4,5,6,7,8,9]) "
        "JOIN y IN (SELECT VALUE [0,1,2,3,4,5,6,7,8,9]) JOIN z IN (SELECT VALUE [0,1,2]))) > 0";
    compare(t, LARGE, workers, 10);
    workers_close(workers);
}

/* An error is the error of the page, whichever thread meets it. */
static void what_fails_fails_with_help_too(void **state)
{
    TestContainer *t = *state;
    open_container(t, 3);
    Workers *workers = workers_open("helper", 3, 64);
    Asked asked = {.workers = workers, .slice_items = 10, .steps_max = 200};
    expect_error(t, "SELECT VALUE c.id FROM c WHERE c.x < 0", asked, "more than 200 steps");
    workers_close(workers);
}

static void without_room_in_the_queue_the_page_does_it_all(void **state)
{
    TestContainer *t = *state;
    open_container(t, 3);
    Workers *workers = workers_open("helper", 3, 0);
    for (size_t i = 0; i < ARRAY_COUNT(QUERIES); i++)
        compare(t, QUERIES[i], workers, 10);
    workers_close(workers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAGE_TEST(help_changes_neither_results_nor_what_they_cost),
        PAGE_TEST(pages_resume_however_they_are_read),
        PAGE_TEST(a_full_page_looks_as_far_as_it_would_alone),
        PAGE_TEST(what_is_too_much_for_a_helper_is_left_to_the_page),
        PAGE_TEST(what_fails_fails_with_help_too),
        PAGE_TEST(without_room_in_the_queue_the_page_does_it_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
