/* page_position_test.c - positions are short whatever they hold, and lose nothing by it. */
#include "query/page/page_testing_int.h"

/* ---- orders of long strings ---- */

enum { PARTS = 8, LONG_COUNT = 60 };

static const char EIGHT[] =
    "{\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[],\"compositeIndexes\":[["
    "{\"path\":\"/s0\",\"order\":\"ascending\"},{\"path\":\"/s1\",\"order\":\"descending\"},"
    "{\"path\":\"/s2\",\"order\":\"ascending\"},{\"path\":\"/s3\",\"order\":\"descending\"},"
    "{\"path\":\"/s4\",\"order\":\"ascending\"},{\"path\":\"/s5\",\"order\":\"descending\"},"
    "{\"path\":\"/s6\",\"order\":\"ascending\"},{\"path\":\"/s7\",\"order\":\"descending\"}]]}";

typedef struct LongItem {
    char parts[PARTS][128];
    int id;
} LongItem;

/* All but one begin alike, with as many bytes as a term keeps of a string, or a few more or less.
 */
static void make_items(Random *random, LongItem *items)
{
    for (int i = 0; i < LONG_COUNT; i++) {
        items[i] = (LongItem){.id = i};
        for (int k = 0; k < PARTS; k++) {
            size_t len = 93 + (size_t)random_below(random, 5);
            memset(items[i].parts[k], 'x', len);
            if (k < 5) /* the parts after these are not compared */
                items[i].parts[k][random_below(random, 2) == 0 ? 10 : len - 1] =
                    (char)('a' + random_below(random, 2));
        }
    }
}

static void insert_item(TestContainer *t, const LongItem *item)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 16);
    buf_format(&text, "{\"id\":\"%d\",\"pk\":\"p%d\"", item->id, item->id % 5);
    for (int k = 0; k < PARTS; k++)
        buf_format(&text, ",\"s%d\":\"%s\"", k, item->parts[k]);
    buf_slice(&text, SLICE("}"));
    buf_byte(&text, '\0');
    test_insert(t, text.ptr);
}

static int compare_items(const void *a, const void *b)
{
    const LongItem *left = a;
    const LongItem *right = b;
    for (int k = 0; k < PARTS; k++) {
        int order = strcmp(left->parts[k], right->parts[k]);
        if (order != 0)
            return k % 2 == 0 ? order : -order;
    }
    return 0;
}

/* Each item as often as it comes, by its rank among those that differ. */
static void check_order(const LongItem *sorted, bool is_down, const int *ids, size_t count)
{
    int rank_of[LONG_COUNT] = {0};
    int seen[LONG_COUNT] = {0};
    for (int i = 1; i < LONG_COUNT; i++)
        rank_of[sorted[i].id] =
            rank_of[sorted[i - 1].id] + (compare_items(&sorted[i - 1], &sorted[i]) != 0);
    assert_int_equal(count, LONG_COUNT);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(seen[ids[i]]++, 0);
        if (i > 0 && is_down)
            assert_true(rank_of[ids[i]] <= rank_of[ids[i - 1]]);
        else if (i > 0)
            assert_true(rank_of[ids[i]] >= rank_of[ids[i - 1]]);
    }
}

/* All pages, whose positions are as short as tokens need them; the ids in their order. 'by' is how
 * they are found, or NULL. */
static size_t read_ids(TestContainer *t, const char *text, Asked asked, const char *by, int *ids,
                       size_t ids_max)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    size_t count = 0;
    for (bool is_done = false; !is_done;) {
        AUTO(answered_done) Answered answered;
        ask(t, text, asked, &answered);
        if (answered.status != STATUS_OK)
            fail_msg("%.200s: %s", text, answered.err.message);
        assert_true(answered.page.position.len <= QUERY_POSITION_BYTES_MAX);
        if (by != NULL)
            assert_non_null(
                strstr(arena_cstr(&arena, json_print_arena(&arena, answered.page.explain)), by));
        Json results =
            parse_json(&answered.arena, arena_cstr(&answered.arena, buf_view(&answered.text)));
        for (JsonIter it = json_iter(results); json_next(&it);) {
            assert_true(count < ids_max);
            ids[count++] = atoi(arena_cstr(&answered.arena, json_string(it.value)));
        }
        is_done = answered.page.is_done;
        asked.position = arena_copy(&arena, answered.page.position);
    }
    return count;
}

static void an_order_of_many_long_strings_has_short_positions(void **state)
{
    TestContainer *t = *state;
    static const char *const QUERIES[] = {
        "SELECT VALUE c.id FROM c ORDER BY c.s0, c.s1 DESC, c.s2, c.s3 DESC, c.s4, c.s5 DESC, c.s6,"
        " c.s7 DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.s0 DESC, c.s1, c.s2 DESC, c.s3, c.s4 DESC, c.s5,"
        " c.s6 DESC, c.s7",
    };
    test_container_open(t, (TestOptions){.policy = EIGHT, .partitions = 3});
    Random random;
    random_init(&random, 7);
    LongItem items[LONG_COUNT];
    make_items(&random, items);
    for (int i = 0; i < LONG_COUNT; i++)
        insert_item(t, &items[i]);
    qsort(items, LONG_COUNT, sizeof(LongItem), compare_items);
    for (int is_down = 0; is_down < 2; is_down++) {
        static const uint32_t SIZES[] = {1, 7, 1000};
        for (size_t i = 0; i < 2 * ARRAY_COUNT(SIZES); i++) {
            int ids[LONG_COUNT];
            Asked asked = {.items_max = SIZES[i / 2], .plan_random = i % 2 == 0 ? NULL : &random};
            size_t count = read_ids(t, QUERIES[is_down], asked, NULL, ids, LONG_COUNT);
            check_order(items, is_down == 1, ids, count);
        }
    }
}

static void print_pair(size_t number, Buf *out)
{
    static const char x[] =
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxx";
    buf_format(out, "{\"id\":\"%zu\",\"pk\":\"p\"", number);
    for (int k = 0; k < PARTS; k++)
        buf_format(out, ",\"s%d\":\"%s%04zu\"", k, x, k < PARTS - 1 ? 0 : number);
    buf_byte(out, '}');
}

/* A long range of a composite index is walked by its terms, which are longer than a token. */
static void a_range_of_a_composite_index_has_short_positions(void **state)
{
    TestContainer *t = *state;
    enum { COUNT = 7000 };
    test_container_open(t, (TestOptions){.policy = EIGHT});
    insert_many(t, 0, COUNT, print_pair);
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 16);
    buf_slice(&text, SLICE("SELECT VALUE c.id FROM c WHERE c.s7 >= 'x'"));
    for (int k = 0; k < PARTS - 1; k++) {
        buf_format(&text, " AND c.s%d = '", k);
        for (int i = 0; i < 88; i++)
            buf_byte(&text, 'x');
        buf_slice(&text, SLICE("0000'"));
    }
    buf_byte(&text, '\0');
    int *ids = MEM_NEW_ARRAY(int, COUNT);
    uint8_t *seen = MEM_NEW_ARRAY(uint8_t, COUNT);
    assert_int_equal(read_ids(t, text.ptr, (Asked){.items_max = 900}, "along a range", ids, COUNT),
                     COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(seen[ids[i]]++, 0);
    mem_free(ids);
    mem_free(seen);
}

/* ---- orders whose index changes ---- */

#define PAIR(first, second)                                        \
    "[{\"path\":\"/a\",\"order\":\"" first "\"},{\"path\":\"/b\"," \
    "\"order\":\"" second "\"}]"
#define UP    PAIR("ascending", "ascending")
#define DOWN  PAIR("descending", "descending")
#define MIXED PAIR("ascending", "descending")
#define POLICY(pairs)                                                                              \
    "{\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[],\"compositeIndexes\":[" pairs "]" \
    "}"

static void print_few(size_t number, Buf *out)
{
    buf_format(out, "{\"id\":\"%zu\",\"pk\":\"p\",\"a\":%zu,\"b\":%zu}", number, number % 4,
               number % 2);
}

static void wait_for_index(TestContainer *t)
{
    for (int i = 0; partition_index_progress(t->partitions[0]) < 100; i++) {
        assert_true(i < 10000);
        (void)usleep(1000);
    }
}

/* An index of the opposite orders serves as well, walked the other way. */
static void an_order_goes_on_along_any_index_that_serves_it(void **state)
{
    TestContainer *t = *state;
    static const struct {
        const char *before, *after;
    } ROWS[] = {
        {POLICY(UP), POLICY(UP "," DOWN)}, {POLICY(DOWN), POLICY(DOWN "," UP)},
        {POLICY(UP "," DOWN), POLICY(UP)}, {POLICY(UP), POLICY(DOWN)},
        {POLICY(DOWN), POLICY(UP)},
    };
    static const char *const QUERIES[] = {"SELECT VALUE c.id FROM c ORDER BY c.a, c.b",
                                          "SELECT VALUE c.id FROM c ORDER BY c.a DESC, c.b DESC"};
    enum { COUNT = 20, FIRST = 7 };
    for (size_t i = 0; i < 2 * ARRAY_COUNT(ROWS); i++) {
        const char *query = QUERIES[i % 2];
        test_container_open(t, (TestOptions){.policy = ROWS[i / 2].before});
        insert_many(t, 0, COUNT, print_few);
        AUTO(answered_done) Answered whole;
        AUTO(answered_done) Answered first;
        AUTO(answered_done) Answered second;
        ask(t, query, (Asked){0}, &whole);
        ask(t, query, (Asked){.items_max = FIRST}, &first);
        test_set_policy(t, ROWS[i / 2].after);
        wait_for_index(t);
        ask(t, query, (Asked){.position = first.page.position}, &second);
        assert_int_equal(second.status, STATUS_OK);
        assert_int_equal(second.page.count, COUNT - FIRST);
        Slice rest = slice_from(buf_view(&second.text), 1);
        assert_true(slice_ends_with(buf_view(&whole.text), rest));
        if (i + 1 < 2 * ARRAY_COUNT(ROWS))
            test_container_close(t);
    }
}

/* While one partition has built an index that another one has not, each walks its own. */
static void partitions_with_different_indexes_are_merged(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){.policy = POLICY(DOWN), .partitions = 2});
    for (size_t i = 0; i < 30; i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Slice text = arena_format(&arena, "{\"id\":\"%zu\",\"pk\":\"p%zu\",\"a\":%zu,\"b\":0}", i,
                                  i, 29 - i);
        test_insert(t, arena_cstr(&arena, text));
    }
    AUTO(answered_done) Answered before;
    ask(t, "SELECT VALUE c.id FROM c ORDER BY c.a, c.b", (Asked){0}, &before);
    assert_int_equal(before.page.count, 30);
    t->options.policy = POLICY(DOWN "," UP);
    schema_unref(t->schema);
    t->schema = test_schema(&t->options);
    partition_set_schema(t->partitions[0], t->schema); /* the other one comes later */
    wait_for_index(t);
    AUTO(answered_done) Answered after;
    ask(t, "SELECT VALUE c.id FROM c ORDER BY c.a, c.b", (Asked){0}, &after);
    char *told = arena_cstr(&after.arena, json_print_arena(&after.arena, after.page.explain));
    assert_non_null(strstr(told, "/a ASC, /b ASC"));
    assert_non_null(strstr(told, "/a DESC, /b DESC"));
    for (uint32_t items_max = 1; items_max < 40; items_max += 6) {
        Slice all = buf_view(&before.text);
        char *expected = arena_cstr(&before.arena, slice_make(all.ptr + 1, all.len - 2));
        (void)expect_pages(t, "SELECT VALUE c.id FROM c ORDER BY c.a, c.b",
                           (Asked){.items_max = items_max}, expected);
    }
}

static void print_equal(size_t number, Buf *out)
{
    buf_format(out, "{\"id\":\"%zu\",\"pk\":\"p\",\"a\":1,\"b\":2}", number);
}

/* Clients that go on by themselves look for the _rid at which they were, and expect numbers to go
 * down if any key does. */
static void equal_keys_come_in_the_order_that_clients_expect(void **state)
{
    TestContainer *t = *state;
    static const struct {
        const char *policy, *by;
        bool is_down;
    } ROWS[] = {
        {POLICY(UP), "c.a", false},
        {POLICY(UP), "c.a DESC", true},
        {POLICY(UP), "c.a, c.b", false},
        {POLICY(UP), "c.a DESC, c.b DESC", true},
        {POLICY(DOWN), "c.a, c.b", false},
        {POLICY(DOWN), "c.a DESC, c.b DESC", true},
        {POLICY(MIXED), "c.a, c.b DESC", true},
        {POLICY(MIXED), "c.a DESC, c.b", true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        test_container_open(t, (TestOptions){.policy = ROWS[i].policy});
        insert_many(t, 0, 5, print_equal);
        Random random;
        random_init(&random, i);
        for (uint32_t round = 0; round < 8; round++) {
            AUTO(arena_done) Arena arena;
            arena_init(&arena, 4096);
            Slice text = arena_format(&arena, "SELECT VALUE c.id FROM c%s ORDER BY %s",
                                      round % 2 == 0 ? "" : " WHERE c.a = 1", ROWS[i].by);
            Asked asked = {.items_max = round / 2 + 1, .plan_random = round < 4 ? NULL : &random};
            (void)expect_pages(t, arena_cstr(&arena, text), asked,
                               ROWS[i].is_down ? "\"4\",\"3\",\"2\",\"1\",\"0\""
                                               : "\"0\",\"1\",\"2\",\"3\",\"4\"");
        }
        if (i + 1 < ARRAY_COUNT(ROWS))
            test_container_close(t);
    }
}

/* ---- scans ---- */

static void print_long_id(size_t number, Buf *out)
{
    buf_slice(out, SLICE("{\"id\":\""));
    buf_format(out, "%zu", number + 1000); /* the first four bytes */
    for (int i = 4; i < ITEM_ID_BYTES_MAX; i++)
        buf_byte(out, i == 600 ? (uint8_t)('a' + number % 3) : 'x');
    buf_format(out, "\",\"pk\":\"p\",\"n\":%zu}", number);
}

static void a_scan_of_long_ids_has_short_positions(void **state)
{
    TestContainer *t = *state;
    enum { COUNT = 40 };
    test_container_open(t, (TestOptions){.policy = "{\"indexingMode\":\"none\"}"});
    insert_many(t, 0, COUNT, print_long_id);
    int ids[COUNT];
    assert_int_equal(read_ids(t, "SELECT VALUE c.id FROM c WHERE c.n >= 0", (Asked){.items_max = 3},
                              "full scan", ids, COUNT),
                     COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(ids[i], 1000 + i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAGE_TEST(an_order_of_many_long_strings_has_short_positions),
        PAGE_TEST(a_range_of_a_composite_index_has_short_positions),
        PAGE_TEST(an_order_goes_on_along_any_index_that_serves_it),
        PAGE_TEST(partitions_with_different_indexes_are_merged),
        PAGE_TEST(equal_keys_come_in_the_order_that_clients_expect),
        PAGE_TEST(a_scan_of_long_ids_has_short_positions),
    };
    return cmocka_run_group_tests_name("positions", tests, NULL, NULL);
}
