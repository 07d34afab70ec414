/* page_test.c - pages of queries, one promise at a time: their order, positions and bounds.
 * page_model_test.c tests whether results are right, page_plan_test.c how they are found. */
#include "query/page/page_testing_int.h"

/* ---- long lists ---- */

/* Programs write these; each level of nesting would cost a piece of the stack. */
static void lists_of_thousands_are_looked_up_without_nesting(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    insert_many(t, 0, 300, print_number);
    static const struct {
        const char *before, *each, *after, *expected;
    } ROWS[] = {
        {"SELECT VALUE COUNT(1) FROM c WHERE c.n IN (0", ",", ")", "[300]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.n NOT IN (0", ",", ")", "[0]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.n = 0", " OR c.n = ", "", "[300]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.n = 7", " AND c.n != -", "", "[1]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS([0", ",", "], c.n)", "[300]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE NOT (c.n = -1", " OR c.n = -", ")", "[300]"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(buf_done) Buf text;
        buf_init(&text, QUERY_TEXT_BYTES_MAX);
        buf_slice(&text, slice_from_cstr(ROWS[i].before));
        for (int j = 1; j < 10000; j++)
            buf_format(&text, "%s%d", ROWS[i].each, j);
        buf_slice(&text, slice_from_cstr(ROWS[i].after));
        buf_byte(&text, '\0');
        assert_false(buf_full(&text));
        expect(t, text.ptr, ROWS[i].expected);
    }
}

static void what_is_explained_fits_into_a_header(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){.partitions = 3});
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 16);
    buf_slice(&text, SLICE("SELECT * FROM c WHERE c.n = 0"));
    for (int i = 1; i < 500; i++)
        buf_format(&text, " OR c.some_property_with_a_name_%d = %d", i, i);
    buf_byte(&text, '\0');
    AUTO(answered_done) Answered answered;
    ask(t, text.ptr, (Asked){0}, &answered);
    assert_int_equal(answered.status, STATUS_OK);
    assert_true(json_print_arena(&answered.arena, answered.page.explain).len < 8000);
    assert_true(answered.page.used_path_count + answered.page.potential_path_count <= 64);
}

/* ---- values that are not what they seem ---- */

static void rare_values_are_counted_as_documents_would_be(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    test_insert(t, "{\"id\":\"1\",\"pk\":\"p\",\"n\":0,\"t\":[1,2]}");
    test_insert(t, "{\"id\":\"2\",\"pk\":\"p\",\"n\":-0.0,\"t\":[]}");
    test_insert(t, "{\"id\":\"3\",\"pk\":\"p\",\"n\":5,\"t\":7}");
    test_insert(t, "{\"id\":\"4\",\"pk\":\"p\",\"n\":\"x\"}");
    static const QueryCase ROWS[] = {
        {"SELECT VALUE COUNT(1) FROM c WHERE c.n = 0", "[2]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE 1 / c.n < 0", "[1]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE NOT (1 / c.n < 0)", "[2]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.n > (0 / 0)", "[0]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE NOT (c.n > (0 / 0))", "[3]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.n != (0 / 0)", "[4]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.n < (1 / 0)", "[3]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.n BETWEEN (0 / 0) AND 9", "[0]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.n NOT BETWEEN (0 / 0) AND 9", "[3]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE EXISTS(SELECT VALUE e FROM e IN c.t WHERE c.n >= 0)",
         "[1]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE NOT ARRAY_CONTAINS(c.t, undefined)", "[0]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS_ANY(c.t, 1, undefined)", "[1]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE NOT ARRAY_CONTAINS_ANY(c.t, 1, undefined)", "[0]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS_ALL(c.t, 1, undefined)", "[0]"},
        {"SELECT VALUE COUNT(1) FROM c WHERE NOT ARRAY_CONTAINS_ALL(c.t, 1, undefined)", "[1]"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++)
        expect(t, ROWS[i].query, ROWS[i].expected);
}

/* Two keys that are one value in the index: only the hash tells them. */
static void a_partition_key_of_zero_is_not_minus_zero(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    test_insert(t, "{\"id\":\"1\",\"pk\":0}");
    test_insert(t, "{\"id\":\"2\",\"pk\":0}");
    test_insert(t, "{\"id\":\"3\",\"pk\":-0.0}");
    static const struct {
        const char *key;
        const char *expected;
    } ROWS[] = {{"0", "[2]"}, {"-0.0", "[1]"}};
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        PartitionKey key = {.count = 1, .parts = {parse_json(&arena, ROWS[i].key)}};
        AUTO(answered_done) Answered answered;
        ask_key(t, "SELECT VALUE COUNT(1) FROM c", &key, (Asked){0}, &answered);
        assert_int_equal(answered.status, STATUS_OK);
        assert_true(slice_equal(buf_view(&answered.text), slice_from_cstr(ROWS[i].expected)));
    }
}

/* ---- rows without ORDER BY ---- */

/* Their ids and hashes have the opposite order, or none. */
static void print_backwards(size_t number, Buf *out)
{
    buf_format(out, "{\"id\":\"%zu\",\"pk\":\"%s\",\"n\":%zu,\"x\":{\"m\":%zu}}", 999 - number,
               number % 3 == 0 ? "p" : "q", number, number % 2);
}

static void rows_without_an_order_come_as_they_were_made(void **state)
{
    static const char POLICY[] = "{\"includedPaths\":[{\"path\":\"/*\"}],"
                                 "\"excludedPaths\":[{\"path\":\"/x/*\"},{\"path\":\"/pk/?\"}]}";
    static const char ALL[] = "0,1,2,3,4,5,6,7,8,9,10,11";
    static const struct {
        const char *text, *key, *expected;
    } ROWS[] = {
        {"SELECT VALUE c.n FROM c", NULL, ALL},
        {"SELECT VALUE c.n FROM c WHERE c.n >= 0", NULL, ALL},
        {"SELECT VALUE c.n FROM c WHERE c.n IN (7, 3, 5)", NULL, "3,5,7"},
        {"SELECT VALUE c.n FROM c WHERE c.n % 2 = 0", NULL, "0,2,4,6,8,10"},
        {"SELECT VALUE c.n FROM c WHERE c.x.m = 0", NULL, "0,2,4,6,8,10"},
        {"SELECT TOP 2 VALUE c.n FROM c WHERE c.x.m = 1", NULL, "1,3"},
        {"SELECT VALUE c.n FROM c OFFSET 2 LIMIT 3", NULL, "2,3,4"},
        {"SELECT VALUE c.n FROM c", "\"p\"", "0,3,6,9"},
        {"SELECT VALUE c.n FROM c WHERE c.n > 0", "\"p\"", "3,6,9"},
        {"SELECT VALUE c.n FROM c WHERE c.x.m = 0", "\"q\"", "2,4,8,10"},
        {"SELECT DISTINCT VALUE c.n % 4 FROM c", "\"q\"", "1,2,0,3"},
        {"SELECT VALUE x.n FROM (SELECT c.n FROM c) x WHERE x.n != 6", "\"p\"", "0,3,9"},
    };
    const char *const policies[] = {NULL, POLICY};
    TestContainer *t = *state;
    for (size_t i = 0; i < ARRAY_COUNT(policies); i++) {
        if (i > 0)
            test_container_close(t);
        test_container_open(t, (TestOptions){.policy = policies[i]});
        insert_many(t, 0, 12, print_backwards);
        for (size_t j = 0; j < ARRAY_COUNT(ROWS); j++) {
            AUTO(arena_done) Arena arena;
            arena_init(&arena, 4096);
            PartitionKey key = {.count = 1};
            if (ROWS[j].key != NULL)
                key.parts[0] = parse_json(&arena, ROWS[j].key);
            for (uint32_t items_max = 1; items_max <= 13; items_max += 4)
                expect_pages_of(t, ROWS[j].text, ROWS[j].key == NULL ? NULL : &key,
                                (Asked){.items_max = items_max}, ROWS[j].expected);
        }
    }
}

static void index_metrics_name_the_key(void **state)
{
    static const char *const QUERIES[] = {
        "SELECT * FROM c",
        "SELECT * FROM c WHERE c.n > 3",
        "SELECT * FROM c ORDER BY c.n",
        "SELECT VALUE COUNT(1) FROM c WHERE c.x.m = 0",
    };
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    insert_many(t, 0, 12, print_backwards);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    PartitionKey key = {.count = 1, .parts = {parse_json(&arena, "\"p\"")}};
    for (size_t i = 0; i < ARRAY_COUNT(QUERIES); i++) {
        AUTO(answered_done) Answered answered;
        ask_key(t, QUERIES[i], &key, (Asked){0}, &answered);
        assert_int_equal(answered.status, STATUS_OK);
        bool is_named = false;
        for (size_t j = 0; j < answered.page.used_path_count; j++)
            is_named = is_named || slice_equal(answered.page.used_paths[j], SLICE("/pk/?"));
        if (!is_named)
            fail_msg("%s: the key's index is not named", QUERIES[i]);
    }
}

/* A logical partition that is read whole may have become too large for that on the next page. */
static void a_key_that_grows_keeps_its_order(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    insert_many(t, 0, 12, print_backwards);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    PartitionKey key = {.count = 1, .parts = {parse_json(&arena, "\"p\"")}};
    Asked asked = {.items_max = 3};
    AUTO(answered_done) Answered first;
    ask_key(t, "SELECT VALUE c.n FROM c", &key, asked, &first);
    assert_true(slice_equal(buf_view(&first.text), SLICE("[0,3,6]")));
    insert_many(t, 12, 6000, print_backwards);
    AUTO(answered_done) Answered second;
    asked.position = first.page.position;
    ask_key(t, "SELECT VALUE c.n FROM c", &key, asked, &second);
    assert_true(slice_equal(buf_view(&second.text), SLICE("[9,12,15]")));
}

/* ---- orders ---- */

static void sorted_items_keep_their_system_properties(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    test_insert(t, "{\"id\":\"1\",\"pk\":\"p\",\"t\":[2]}");
    test_insert(t, "{\"id\":\"2\",\"pk\":\"p\",\"t\":[1]}");
    AUTO(answered_done) Answered answered;
    ask(t, "SELECT * FROM c ORDER BY c.t[0]", (Asked){0}, &answered);
    assert_int_equal(answered.status, STATUS_OK);
    Json results =
        parse_json(&answered.arena, arena_cstr(&answered.arena, buf_view(&answered.text)));
    assert_int_equal(json_count(results), 2);
    for (size_t i = 0; i < 2; i++) {
        assert_true(json_is(json_get(json_at(results, i), SLICE("_rid")), JSON_STRING));
        assert_true(json_is(json_get(json_at(results, i), SLICE("_ts")), JSON_NUMBER));
    }
}

static void rows_can_ask_for_the_id_of_their_item(void **state)
{
    static const char *const QUERIES[] = {
        "SELECT VALUE _DOCUMENT_RID() FROM c",
        "SELECT VALUE _DOCUMENT_RID() FROM c ORDER BY c.id",
        "SELECT VALUE _DOCUMENT_RID() FROM x IN c.t",
        "SELECT VALUE _DOCUMENT_RID() FROM c.t AS x ORDER BY x[0]",
        "SELECT VALUE _DOCUMENT_RID() FROM (SELECT VALUE c.t FROM c) AS x",
    };
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    test_insert(t, "{\"id\":\"1\",\"pk\":\"p\",\"t\":[2]}");
    test_insert(t, "{\"id\":\"2\",\"pk\":\"p\",\"t\":[3]}");
    for (size_t i = 0; i < ARRAY_COUNT(QUERIES); i++) {
        AUTO(answered_done) Answered own;
        AUTO(answered_done) Answered answered;
        ask(t, "SELECT VALUE c._rid FROM c ORDER BY c.id", (Asked){0}, &own);
        ask(t, QUERIES[i], (Asked){0}, &answered);
        assert_int_equal(answered.status, STATUS_OK);
        assert_int_equal(answered.page.count, 2);
        assert_true(slice_equal(buf_view(&own.text), buf_view(&answered.text)));
    }
}

static void print_long(size_t number, Buf *out)
{
    buf_format(out, "{\"id\":\"%zu\",\"pk\":\"p\",\"n\":%zu,\"s\":\"", number, number % 2);
    for (int i = 0; i < 100; i++)
        buf_byte(out, 'x');
    buf_format(out, "%05zu\"}", (number * 7919) % 5003);
}

/* A term has only the first 96 bytes, which all of these share. */
static void long_strings_are_sorted_in_pieces(void **state)
{
    TestContainer *t = *state;
    enum { COUNT = 2 * ORDER_SORT_MAX + 700 };
    test_container_open(t, (TestOptions){0});
    insert_many(t, 0, COUNT, print_long);
    for (int is_down = 0; is_down < 2; is_down++) {
        AUTO(buf_done) Buf expected;
        buf_init(&expected, TEXT_BYTES_MAX);
        uint32_t ids[5003];
        memset(ids, 0xFF, sizeof(ids));
        for (uint32_t i = 0; i < COUNT; i++)
            ids[((size_t)i * 7919) % 5003] = i;
        for (size_t i = 0; i < 5003; i++) {
            uint32_t id = ids[is_down ? 5002 - i : i];
            if (id != UINT32_MAX)
                buf_format(&expected, "%s\"%u\"", expected.len == 0 ? "" : ",", id);
        }
        buf_byte(&expected, '\0');
        const char *text = is_down ? "SELECT VALUE c.id FROM c ORDER BY c.s DESC"
                                   : "SELECT VALUE c.id FROM c ORDER BY c.s";
        assert_int_equal(expect_pages(t, text, (Asked){0}, expected.ptr), 1);
        assert_int_equal(expect_pages(t, text, (Asked){.items_max = 1100}, expected.ptr), 5);
    }
}

/* A page may pause before a value that stands for several strings. */
static void a_place_without_a_rest_is_in_front_of_its_value(void **state)
{
    (void)state;
    static const struct {
        OrderKey a, b;
        int up, down; /* as numbers go */
    } ROWS[] = {
        {{SLICE_INIT("b"), SLICE_INIT("r"), 5}, {SLICE_INIT("b"), {0}, 0}, 1, 1},
        {{SLICE_INIT("b"), {0}, UINT64_MAX}, {SLICE_INIT("b"), SLICE_INIT("r"), 5}, -1, -1},
        {{SLICE_INIT("b"), SLICE_INIT("r"), 5}, {SLICE_INIT("b"), SLICE_INIT("s"), 0}, -1, -1},
        {{SLICE_INIT("b"), SLICE_INIT("r"), 5}, {SLICE_INIT("b"), SLICE_INIT("r"), 6}, -1, 1},
        {{SLICE_INIT("b"), {0}, 5}, {SLICE_INIT("b"), {0}, 6}, -1, 1},
        {{SLICE_INIT("b"), {0}, 5}, {SLICE_INIT("b"), {0}, 5}, 0, 0},
        {{SLICE_INIT("a"), SLICE_INIT("r"), 5}, {SLICE_INIT("b"), {0}, 0}, -1, -1},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        OrderBy order = {0};
        int up = order_compare(&order, &ROWS[i].a, &ROWS[i].b);
        order.numbers_down = true;
        int down = order_compare(&order, &ROWS[i].a, &ROWS[i].b);
        assert_int_equal((up > 0) - (up < 0), ROWS[i].up);
        assert_int_equal((down > 0) - (down < 0), ROWS[i].down);
    }
}

/* Among many values of a range some stand for several documents, and for longer strings. */
static void print_range(size_t number, Buf *out)
{
    if (number % 40 == 0)
        print_long(number, out);
    else
        buf_format(out, "{\"id\":\"%zu\",\"pk\":\"p\",\"s\":\"y%05zu\"}", number, number);
}

static void a_long_range_is_walked_value_by_value(void **state)
{
    TestContainer *t = *state;
    enum { COUNT = 7000 };
    test_container_open(t, (TestOptions){0});
    insert_many(t, 0, COUNT, print_range);
    size_t seen = 0;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Asked asked = {.items_max = 1000};
    for (bool is_done = false; !is_done;) {
        AUTO(answered_done) Answered answered;
        ask(t, "SELECT VALUE c.id FROM c WHERE c.s >= 'a'", asked, &answered);
        assert_int_equal(answered.status, STATUS_OK);
        assert_true(strstr(arena_cstr(&arena, json_print_arena(&arena, answered.page.explain)),
                           "along a range") != NULL);
        assert_true(answered.page.metrics.documents_read <= 1100);
        seen += answered.page.count;
        is_done = answered.page.is_done;
        asked.position = arena_copy(&arena, answered.page.position);
    }
    assert_int_equal(seen, COUNT);
}

/* A position before the only document with a term is after it once a second one has the term. */
static void a_second_long_string_does_not_repeat_the_first(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    insert_many(t, 5, 6, print_long);
    test_insert(t, "{\"id\":\"z\",\"pk\":\"p\",\"s\":\"z\"}");
    const char *text = "SELECT VALUE c.id FROM c WHERE c.pk = 'p' ORDER BY c.s";
    AUTO(answered_done) Answered first;
    ask(t, text, (Asked){.items_max = 1}, &first);
    assert_true(slice_equal(buf_view(&first.text), SLICE("[\"5\"]")));
    insert_many(t, 9, 10, print_long);
    AUTO(answered_done) Answered second;
    ask(t, text, (Asked){.position = first.page.position}, &second);
    assert_int_equal(second.status, STATUS_OK);
    assert_true(slice_equal(buf_view(&second.text), SLICE("[\"z\"]")) ||
                slice_equal(buf_view(&second.text), SLICE("[\"9\",\"z\"]")));
}

/* What ORDER BY needs of several partitions is merged, not read whole. */
static void an_order_over_partitions_reads_what_it_returns(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){.partitions = 3, .policy = COMPOSITE});
    insert_spread(t, 600);
    static const char *const ROWS[] = {
        "SELECT TOP 10 VALUE c.id FROM c ORDER BY c.n",
        "SELECT TOP 10 VALUE c.id FROM c ORDER BY c.n DESC",
        "SELECT TOP 10 VALUE c.a FROM c ORDER BY c.a, c.b DESC",
        "SELECT TOP 10 VALUE c.id FROM c WHERE c.n > 500 ORDER BY c.n",
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(answered_done) Answered answered;
        ask(t, ROWS[i], (Asked){0}, &answered);
        assert_int_equal(answered.status, STATUS_OK);
        assert_int_equal(answered.page.count, 10);
        assert_in_range(answered.page.metrics.documents_read, 10, 14);
    }
    expect(t, "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n", "[0,4,5]");
}

static void every_plan_gives_the_same_order(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){.partitions = 3, .policy = COMPOSITE});
    insert_spread(t, 120);
    static const char *const QUERIES[] = {
        "SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.n) ORDER BY c.n",
        "SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.n) AND c.a > 2 ORDER BY c.n DESC",
        "SELECT VALUE c.n FROM c WHERE c.n > 300 AND c.n < 700 ORDER BY c.n",
        "SELECT VALUE c.n FROM c WHERE c.n >= 300 AND c.b != 4 AND IS_NUMBER(c.a) ORDER BY c.n",
        "SELECT VALUE [c.a, c.b] FROM c WHERE c.a = 2 ORDER BY c.a, c.b DESC",
        "SELECT VALUE [c.a, c.b] FROM c WHERE c.a = 2 AND c.b > 3 ORDER BY c.a DESC, c.b",
        "SELECT VALUE [c.a, c.b] FROM c WHERE c.a > 2 AND c.b > 3 ORDER BY c.a, c.b DESC",
    };
    for (size_t i = 0; i < ARRAY_COUNT(QUERIES); i++) {
        AUTO(answered_done) Answered best;
        ask(t, QUERIES[i], (Asked){0}, &best);
        assert_int_equal(best.status, STATUS_OK);
        assert_true(best.page.count > 10);
        Slice results = buf_view(&best.text);
        char *expected = arena_cstr(&best.arena, slice_make(results.ptr + 1, results.len - 2));
        for (uint64_t seed = 0; seed < 20; seed++) {
            Random random;
            random_init(&random, seed);
            (void)expect_pages(t, QUERIES[i], (Asked){.items_max = 9, .plan_random = &random},
                               expected);
        }
    }
}

/* ---- bounds ---- */

static void what_cannot_be_paused_fails_in_time(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    insert_many(t, 0, 200, print_number);
    atomic_store(&t->clock.step_us, 10);
    Asked asked = {.items_max = 1, .page_us = 1};
    expect_error(t, "SELECT c.m, MAX(c.id) AS x FROM c GROUP BY c.m", asked, "takes longer");
    expect_error(t, "SELECT VALUE c.n FROM c ORDER BY c.n[0]", asked, "takes longer");
    expect_error(t, "SELECT VALUE COUNT(1) FROM (SELECT VALUE c.n FROM c) AS x", asked,
                 "takes longer");
    /* What it has found by then is right. */
    AUTO(answered_done) Answered answered;
    ask(t, "SELECT DISTINCT VALUE c.n + 1 FROM c", (Asked){.page_us = 1}, &answered);
    assert_int_equal(answered.status, STATUS_OK);
    assert_false(answered.page.is_done);
    assert_true(answered.page.count > 0);
}

/* What the index cannot tell in half of the time is found in another way. */
static void looking_through_the_index_ends_in_time(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    insert_many(t, 0, 3000, print_number);
    static const char *const QUERIES[] = {
        "SELECT VALUE c.n FROM c WHERE c.n % 1000 = 7",
        "SELECT VALUE c.n FROM c WHERE c.n % 1000 = 7 ORDER BY c.n",
        "SELECT VALUE c.n FROM c WHERE c.n % 1000 = 7 AND c.id != 'x' ORDER BY c.n",
    };
    for (size_t i = 0; i < ARRAY_COUNT(QUERIES); i++) {
        atomic_store(&t->clock.step_us, 0);
        assert_int_equal(expect_pages(t, QUERIES[i], (Asked){0}, "7,1007,2007"), 1);
        atomic_store(&t->clock.step_us, 20000);
        assert_in_range(expect_pages(t, QUERIES[i], (Asked){.page_us = 1000}, "7,1007,2007"), 5,
                        3100);
    }
}

static void one_document_cannot_hold_up_a_page(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    buf_slice(&text, SLICE("{\"id\":\"1\",\"pk\":\"p\",\"v\":[0"));
    for (int i = 1; i < 1000; i++)
        buf_format(&text, ",%d", i);
    buf_slice(&text, SLICE("]}"));
    buf_byte(&text, '\0');
    test_insert(t, text.ptr);
    uint64_t begun_us = clock_monotonic_us(clock_real());
    expect_error(
        t, "SELECT VALUE 1 FROM c JOIN a IN c.v JOIN b IN c.v JOIN d IN c.v WHERE a + b + d < 0",
        (Asked){.page_us = 50000, .is_real_time = true}, "takes longer");
    assert_in_range(clock_monotonic_us(clock_real()) - begun_us, 50000, 8000000);
    /* The rows found in time are a page, and the next page starts after them. */
    AUTO(answered_done) Answered answered;
    ask(t, "SELECT VALUE a FROM c JOIN a IN c.v JOIN b IN c.v JOIN d IN c.v",
        (Asked){.page_us = 50000, .is_real_time = true}, &answered);
    assert_int_equal(answered.status, STATUS_OK);
    assert_false(answered.page.is_done);
    assert_true(answered.page.count > 0);
}

static void memory_is_bounded(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    insert_many(t, 0, 2000, print_long);
    Asked asked = {.memory_max = 100000};
    expect_error(t, "SELECT DISTINCT VALUE [c.s, 1] FROM c", asked, "bytes, which is its limit");
    expect_error(t, "SELECT VALUE c.s FROM c ORDER BY c.n[0]", asked, "bytes, which is its limit");
    expect_error(t, "SELECT c.s, COUNT(1) AS n FROM c GROUP BY c.s", asked,
                 "bytes, which is its limit");
    expect_error(t, "SELECT VALUE c.id FROM c ORDER BY c.s", asked, "bytes, which is its limit");
    AUTO(answered_done) Answered answered;
    ask(t, "SELECT VALUE c.id FROM c WHERE c.n = 1", asked, &answered);
    assert_int_equal(answered.status, STATUS_OK);
    assert_int_equal(answered.page.count, 1000);
}

static void a_result_larger_than_the_page_is_refused(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    test_insert(t, "{\"id\":\"1\",\"pk\":\"p\"}");
    expect_error(t, "SELECT VALUE REPLICATE('x', 9000) FROM c", (Asked){.text_max = 8000},
                 "larger than a page");
}

/* A string that no document could hold is refused like one that only a page cannot. */
static void a_result_larger_than_any_document_is_refused(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    AUTO(buf_done) Buf item;
    buf_init(&item, 2 << 20);
    buf_slice(&item, SLICE("{\"id\":\"1\",\"pk\":\"p\",\"s\":\""));
    for (int i = 0; i < 1 << 20; i++)
        buf_byte(&item, 'x');
    buf_slice(&item, SLICE("\"}"));
    buf_byte(&item, '\0');
    test_insert(t, item.ptr);
    for (int megabytes = 40; megabytes <= 80; megabytes += 20) {
        AUTO(buf_done) Buf text;
        buf_init(&text, 4096);
        buf_slice(&text, SLICE("SELECT VALUE CONCAT(c.s"));
        for (int i = 1; i < megabytes; i++)
            buf_slice(&text, SLICE(",c.s"));
        buf_slice(&text, SLICE(") FROM c"));
        buf_byte(&text, '\0');
        expect_error(t, text.ptr, (Asked){0}, "larger than a page");
    }
}

/* ---- positions ---- */

static void positions_of_other_queries_are_refused(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    insert_many(t, 0, 20, print_number);
    static const char *const QUERIES[] = {
        "SELECT VALUE c.n FROM c",
        "SELECT VALUE c.n FROM c ORDER BY c.n",
        "SELECT c.m, COUNT(1) AS n FROM c GROUP BY c.m",
    };
    for (size_t i = 0; i < ARRAY_COUNT(QUERIES); i++) {
        AUTO(answered_done) Answered answered;
        ask(t, QUERIES[i], (Asked){.items_max = 3}, &answered);
        assert_int_equal(answered.status, STATUS_OK);
        for (size_t j = 0; j < ARRAY_COUNT(QUERIES); j++) {
            bool is_sorted_again = i == 2 && j == 1; /* that may go on as it was */
            if (j != i && !is_sorted_again)
                expect_error(t, QUERIES[j], (Asked){.position = answered.page.position},
                             "Invalid Continuation Token");
        }
    }
    static const Slice DAMAGED[] = {
        SLICE_INIT("1"),
        SLICE_INIT("1N"),
        SLICE_INIT("garbage"),
        SLICE_INIT("2Naaaaaaaabbbbbbbbcccccccc\0\0\0\0"),
        SLICE_INIT("1Xaaaaaaaabbbbbbbbcccccccc\0\0\0\0"),
        SLICE_INIT("1Naaaaaaaabbbbbbbbcccccccc\xFF\xFF\0\0"),
        SLICE_INIT("1Naaaaaaaabbbbbbbbcccccccc\0\0\0\0three"),
        SLICE_INIT("1Oaaaaaaaabbbbbbbbcccccccc\0\0\0\0"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(DAMAGED); i++)
        expect_error(t, QUERIES[0], (Asked){.position = DAMAGED[i]}, "Invalid Continuation Token");
    expect_error(t, QUERIES[1],
                 (Asked){.position = SLICE("1Oaaaaaaaabbbbbbbbcccccccc\0\0\0\0short")},
                 "Invalid Continuation Token");
}

/* The groups of a second page come in the order of the first, whatever has changed in between. */
static void a_query_that_is_read_whole_keeps_its_plan(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    insert_many(t, 0, 40, print_number);
    const char *text = "SELECT VALUE c.m FROM c WHERE c.n >= 0 GROUP BY c.m";
    AUTO(answered_done) Answered first;
    ask(t, text, (Asked){.items_max = 4}, &first);
    assert_true(slice_equal(buf_view(&first.text), SLICE("[0,1,2,3]")));
    test_insert(t, "{\"id\":\"long\",\"pk\":\"p\",\"n\":-1,\"m\":[1]}"); /* nothing to count now */
    AUTO(answered_done) Answered second;
    ask(t, text, (Asked){.position = first.page.position}, &second);
    assert_int_equal(second.status, STATUS_OK);
    assert_true(slice_equal(buf_view(&second.text), SLICE("[4,5,6,7,8,9]")));
}

/* ---- how long it took ---- */

/* Every look at the clock of the meters takes 10 us, so all documents and results take as long. */
static void loading_and_writing_are_measured_with_few_looks_at_the_clock(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){0});
    insert_many(t, 0, 1000, print_number);
    static const struct {
        const char *query;
        uint64_t loads_min, loads_max; /* a document more may be looked for than there are */
        uint64_t writes;
        uint64_t looks_max;
    } ROWS[] = {
        {"SELECT * FROM c WHERE c.n = 1", 1, 2, 1, 6},
        {"SELECT VALUE c.n FROM c WHERE c.m = 1", 100, 101, 100, 40},
        {"SELECT * FROM c WHERE c.n < 900 AND c.m + 0 < 5", 900, 1001, 450, 300},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.n < 900", 0, 1, 1, 4},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.n < 900 AND c.m + 0 < 5", 900, 1001, 1, 150},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        TestClock meter = {
            .clock = {.wall_us = test_clock_wall, .monotonic_us = test_clock_monotonic}};
        atomic_store(&meter.step_us, 10);
        AUTO(answered_done) Answered answered;
        ask(t, ROWS[i].query, (Asked){.meter_clock = &meter.clock}, &answered);
        assert_int_equal(answered.status, STATUS_OK);
        const QueryMetrics *m = &answered.page.metrics;
        assert_in_range(m->load_us, 10 * ROWS[i].loads_min, 10 * ROWS[i].loads_max);
        assert_int_equal(m->write_us, 10 * ROWS[i].writes);
        assert_in_range(atomic_load(&meter.monotonic_us) / 10, 2, ROWS[i].looks_max);

        AUTO(answered_done) Answered unmeasured;
        ask(t, ROWS[i].query, (Asked){0}, &unmeasured);
        assert_int_equal(unmeasured.page.metrics.load_us + unmeasured.page.metrics.write_us, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAGE_TEST(lists_of_thousands_are_looked_up_without_nesting),
        PAGE_TEST(what_is_explained_fits_into_a_header),
        PAGE_TEST(loading_and_writing_are_measured_with_few_looks_at_the_clock),
        PAGE_TEST(rare_values_are_counted_as_documents_would_be),
        PAGE_TEST(a_partition_key_of_zero_is_not_minus_zero),
        PAGE_TEST(rows_without_an_order_come_as_they_were_made),
        PAGE_TEST(index_metrics_name_the_key),
        PAGE_TEST(a_key_that_grows_keeps_its_order),
        PAGE_TEST(sorted_items_keep_their_system_properties),
        PAGE_TEST(rows_can_ask_for_the_id_of_their_item),
        PAGE_TEST(long_strings_are_sorted_in_pieces),
        cmocka_unit_test(a_place_without_a_rest_is_in_front_of_its_value),
        PAGE_TEST(a_long_range_is_walked_value_by_value),
        PAGE_TEST(a_second_long_string_does_not_repeat_the_first),
        PAGE_TEST(an_order_over_partitions_reads_what_it_returns),
        PAGE_TEST(every_plan_gives_the_same_order),
        PAGE_TEST(what_cannot_be_paused_fails_in_time),
        PAGE_TEST(looking_through_the_index_ends_in_time),
        PAGE_TEST(one_document_cannot_hold_up_a_page),
        PAGE_TEST(memory_is_bounded),
        PAGE_TEST(a_result_larger_than_the_page_is_refused),
        PAGE_TEST(a_result_larger_than_any_document_is_refused),
        PAGE_TEST(positions_of_other_queries_are_refused),
        PAGE_TEST(a_query_that_is_read_whole_keeps_its_plan),
    };
    return cmocka_run_group_tests_name("pages of queries", tests, NULL, NULL);
}
