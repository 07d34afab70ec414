/* page_resume_test.c - queries that begin in the middle of their order: from every row of an order,
 * with and without a position, whichever way the order is served. */
#include "query/eval/query_testing_int.h"
#include "query/page/container_testing_int.h"

enum { TEXT_BYTES_MAX = 4 << 20, ROWS_MAX = 400 };

static const char POLICY[] =
    "{\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[],\"compositeIndexes\":["
    "[{\"path\":\"/a\",\"order\":\"ascending\"},{\"path\":\"/b\",\"order\":\"ascending\"}],"
    "[{\"path\":\"/a\",\"order\":\"ascending\"},{\"path\":\"/b\",\"order\":\"descending\"}],"
    "[{\"path\":\"/b\",\"order\":\"ascending\"},{\"path\":\"/n\",\"order\":\"ascending\"},"
    "{\"path\":\"/a\",\"order\":\"descending\"}]]}";

/* Sorted by a computed property, rows are in no index's order. */
static const char COMPUTED[] =
    "[{\"name\":\"ca\",\"query\":\"SELECT VALUE (c.a ?? c.none) FROM c\"},"
    "{\"name\":\"cb\",\"query\":\"SELECT VALUE (c.b ?? c.none) FROM c\"}]";

/* Twice this is longer than what a term of the index keeps. */
#define ALPHABETS  "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
#define LONG(last) ("\"" ALPHABETS ALPHABETS last "\"")

/* NULL stands for a value that is not there. */
static const char *const VALUES[] = {
    NULL,        "null",    "false", "true",          "-5",
    "0",         "-0.0",    "1",     "1.5",           "9007199254740993",
    "1e300",     "\"\"",    "\"a\"", "\"b\\u0000c\"", "\"\xC3\xA4\"",
    LONG(""),    LONG("x"), "[]",    "[1]",           "{}",
    "{\"x\":1}",
};

static void put_member(Buf *text, const char *name, const char *value)
{
    if (value != NULL)
        buf_format(text, ",\"%s\":%s", name, value);
}

/* Twice every value, with others beside it, and many that are equal. */
static void fill(TestContainer *t)
{
    for (size_t i = 0; i < 2 * ARRAY_COUNT(VALUES) + 20; i++) {
        AUTO(buf_done) Buf text;
        buf_init(&text, 4096);
        buf_format(&text, "{\"id\":\"%zu\",\"pk\":\"%zu\",\"n\":%zu,\"t\":[1,2]", i, i % 9, i % 3);
        size_t at = i % (ARRAY_COUNT(VALUES) + 10);
        put_member(&text, "a", at < ARRAY_COUNT(VALUES) ? VALUES[at] : "7");
        put_member(&text, "b", VALUES[i * 5 % ARRAY_COUNT(VALUES)]);
        buf_byte(&text, '}');
        buf_byte(&text, '\0');
        test_insert(t, text.ptr);
    }
}

/* ---- asking ---- */

typedef struct Asked {
    const char *query;
    const char *filter; /* the resumeFilter; NULL if there is none */
    Slice position;
    uint32_t items_max; /* 0 for all */
    Random *plan_random;
} Asked;

typedef struct Answered {
    Buf text;
    QueryPage page; /* in the arena given */
    Status status;
    Error err;
} Answered;

static void ask_over(TestContainer *t, const TestTargets *targets, Arena *arena, const Asked *asked,
                     Answered *out)
{
    *out = (Answered){.status = STATUS_OK};
    buf_init(&out->text, TEXT_BYTES_MAX);
    QueryPageOptions options = {
        .targets = targets->list,
        .target_count = targets->count,
        .schema = t->schema,
        .position = asked->position,
        .resume_filter = parse_json(arena, asked->filter),
        .items_max = asked->items_max == 0 ? UINT32_MAX : asked->items_max,
        .bytes_max = TEXT_BYTES_MAX,
        .steps_max = UINT64_MAX,
        .clock = &t->clock.clock,
        .plan_random = asked->plan_random,
    };
    Query *query = NULL;
    if (query_parse_with(arena, slice_from_cstr(asked->query), JSON_NONE,
                         parse_json(arena, COMPUTED), &query, &out->err) != STATUS_OK)
        fail_msg("%s: %s", asked->query, out->err.message);
    out->status = query_page(query, &options, arena, &out->text, &out->page, &out->err);
}

typedef struct Row {
    Slice text;
    Slice rid;
    Json keys; /* [{"item": ...}, ...] */
    Slice keys_text;
} Row;

typedef struct Rows {
    Row list[ROWS_MAX];
    size_t count;
    size_t pages;
} Rows;

static void add_rows(Arena *arena, const Answered *answered, Rows *rows)
{
    Slice text = arena_format(arena, "[%.*s]", SLICE_ARG(buf_view(&answered->text)));
    Json list = parse_json(arena, arena_cstr(arena, text));
    for (JsonIter it = json_iter(list); json_next(&it);) {
        assert_true(rows->count < ROWS_MAX);
        Json keys = json_get(it.value, SLICE("orderByItems"));
        rows->list[rows->count++] = (Row){
            .text = json_print_arena(arena, it.value),
            .rid = json_string(json_get(it.value, SLICE("_rid"))),
            .keys = keys,
            .keys_text = json_print_arena(arena, keys),
        };
    }
}

/* All rows, page by page. */
static void read_rows(TestContainer *t, const TestTargets *targets, Arena *arena, Asked asked,
                      Rows *rows)
{
    rows->count = 0;
    for (rows->pages = 1;; rows->pages++) {
        Answered answered;
        ask_over(t, targets, arena, &asked, &answered);
        if (answered.status != STATUS_OK)
            fail_msg("%s, %s: %s", asked.query, asked.filter, answered.err.message);
        add_rows(arena, &answered, rows);
        buf_done(&answered.text);
        if (answered.page.is_done)
            return;
        asked.position = answered.page.position;
    }
}

/* ---- filters ---- */

/* As clients write what a row was ordered by. */
static bool put_values(const Row *row, Buf *out)
{
    bool is_hashed = false;
    size_t at = 0;
    for (JsonIter it = json_iter(row->keys); json_next(&it); at++) {
        Json item = json_get(it.value, SLICE("item"));
        if (at > 0)
            buf_byte(out, ',');
        if (json_is(item, JSON_UNDEFINED))
            buf_slice(out, SLICE("[]"));
        else if (json_is(item, JSON_ARRAY) || json_is(item, JSON_OBJECT))
            buf_format(out, "{\"type\":\"%s\",\"low\":-6706074647855398782,\"high\":17}",
                       json_is(item, JSON_ARRAY) ? "array" : "object");
        else
            json_print(item, out);
        is_hashed = is_hashed || json_is(item, JSON_ARRAY) || json_is(item, JSON_OBJECT);
    }
    return is_hashed;
}

typedef enum Way { WITH_RID, INCLUDING, EXCLUDING } Way;

static const char *make_filter(Arena *arena, const Row *row, Way way, bool *is_hashed)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 64 << 10);
    buf_slice(&text, SLICE("{\"value\":["));
    *is_hashed = put_values(row, &text);
    buf_byte(&text, ']');
    if (way == WITH_RID)
        buf_format(&text, ",\"rid\":\"%.*s\"", SLICE_ARG(row->rid));
    if (way != INCLUDING) /* what is not said is false */
        buf_format(&text, ",\"exclude\":%s", way == EXCLUDING ? "true" : "false");
    buf_byte(&text, '}');
    return arena_cstr(arena, buf_view(&text));
}

static bool same_keys(const Row *a, const Row *b)
{
    return json_equal(a->keys, b->keys);
}

/* The first row that is wanted. */
static size_t first_wanted(const Rows *all, size_t at, Way way)
{
    size_t first = at;
    switch (way) {
    case WITH_RID: /* the rows of one document stand together */
        while (first > 0 && slice_equal(all->list[first - 1].rid, all->list[at].rid) &&
               same_keys(&all->list[first - 1], &all->list[at]))
            first--;
        return first;
    case INCLUDING:
        while (first > 0 && same_keys(&all->list[first - 1], &all->list[at]))
            first--;
        return first;
    case EXCLUDING:
        while (first < all->count && same_keys(&all->list[first], &all->list[at]))
            first++;
        return first;
    }
    return first;
}

static void expect_rows(const Asked *asked, const Rows *all, size_t first, const Rows *got)
{
    bool is_same = got->count == all->count - first;
    for (size_t i = 0; i < got->count && is_same; i++)
        is_same = slice_equal(got->list[i].text, all->list[first + i].text);
    if (!is_same)
        fail_msg("%s\n  %s: expected %zu rows from %.*s, got %zu from %.*s", asked->query,
                 asked->filter, all->count - first,
                 SLICE_ARG(first < all->count ? all->list[first].text : SLICE("the end")),
                 got->count, SLICE_ARG(got->count > 0 ? got->list[0].text : SLICE("nowhere")));
}

/* From every row of the order, in pages of some sizes. */
static void check_order(TestContainer *t, const TestTargets *targets, const char *query,
                        bool is_served, Random *plan_random)
{
    static Rows all;
    static Rows got;
    AUTO(arena_done) Arena kept;
    arena_init(&kept, 64 << 10);
    read_rows(t, targets, &kept, (Asked){.query = query}, &all);
    assert_true(all.count > 10 || targets->count > 1);
    for (size_t i = 0; i < 3 * all.count; i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        Way way = (Way)(i % 3);
        bool is_hashed = false;
        Asked asked = {.query = query,
                       .filter = make_filter(&arena, &all.list[i / 3], way, &is_hashed),
                       .plan_random = plan_random};
        if (is_hashed && (way != WITH_RID || !is_served)) {
            Answered refused;
            ask_over(t, targets, &arena, &asked, &refused);
            assert_int_equal(refused.status, STATUS_BAD_REQUEST);
            assert_non_null(strstr(refused.err.message, "there is no order among those"));
            buf_done(&refused.text);
            continue;
        }
        size_t first = first_wanted(&all, i / 3, way);
        asked.items_max = i % 4 == 0 ? 3 : 0;
        read_rows(t, targets, &arena, asked, &got);
        expect_rows(&asked, &all, first, &got);
    }
}

static const struct {
    const char *query;
    bool is_served; /* by an index */
} QUERIES[] = {
    {"SELECT c._rid, [{'item': c.a}] AS orderByItems FROM c WHERE (true) ORDER BY c.a", true},
    {"SELECT c._rid, [{'item': c.a}] AS orderByItems, c AS payload FROM c ORDER BY c.a DESC", true},
    {"SELECT c._rid, [{'item': c.b}] AS orderByItems FROM c WHERE c.n = 1 ORDER BY c.b", true},
    {"SELECT c._rid, [{'item': c.b}] AS orderByItems FROM c WHERE c.n < 2 ORDER BY c.b DESC", true},
    {"SELECT c._rid, [{'item': c.a}] AS orderByItems FROM c WHERE IS_DEFINED(c.a) ORDER BY c.a",
     true},
    {"SELECT c._rid, [{'item': c.a}] AS orderByItems FROM c WHERE c.a > 0 ORDER BY c.a DESC", true},
    {"SELECT c._rid, [{'item': c.a}, {'item': c.b}] AS orderByItems FROM c ORDER BY c.a, c.b",
     true},
    {"SELECT c._rid, [{'item': c.a}, {'item': c.b}] AS orderByItems FROM c "
     "ORDER BY c.a DESC, c.b DESC",
     true},
    {"SELECT c._rid, [{'item': c.a}, {'item': c.b}] AS orderByItems FROM c "
     "ORDER BY c.a, c.b DESC",
     true},
    {"SELECT c._rid, [{'item': c.a}, {'item': c.b}] AS orderByItems FROM c WHERE c.n != 1 "
     "ORDER BY c.a DESC, c.b",
     true},
    {"SELECT c._rid, [{'item': c.b}, {'item': c.n}, {'item': c.a}] AS orderByItems FROM c "
     "ORDER BY c.b DESC, c.n DESC, c.a",
     true},
    {"SELECT c._rid, [{'item': c.n}] AS orderByItems, t FROM c JOIN t IN c.t ORDER BY c.n", true},
    {"SELECT c._rid, [{'item': c.ca}] AS orderByItems FROM c ORDER BY c.ca", false},
    {"SELECT c._rid, [{'item': c.ca}] AS orderByItems FROM c ORDER BY c.ca DESC", false},
};

static void an_order_begins_at_any_of_its_rows(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 7);
    for (size_t partitions = 1; partitions <= 3; partitions++) {
        TestContainer t;
        test_container_open(&t, (TestOptions){.policy = POLICY, .partitions = partitions});
        fill(&t);
        TestTargets targets;
        test_targets_all(&t, &targets);
        for (size_t i = 0; i < ARRAY_COUNT(QUERIES); i++) {
            Random *any_plan = (i + partitions) % 2 == 0 ? &random : NULL;
            check_order(&t, &targets, QUERIES[i].query, QUERIES[i].is_served, any_plan);
        }
        test_targets_close(&targets);
        test_container_close(&t);
    }
}

/* What a client stored before it ended: the position of an earlier page, and the last row. */
static void the_further_of_position_and_filter_counts(void **state)
{
    (void)state;
    static Rows all;
    static Rows got;
    TestContainer t;
    test_container_open(&t, (TestOptions){.policy = POLICY});
    fill(&t);
    TestTargets targets;
    test_targets_all(&t, &targets);
    for (size_t q = 0; q < ARRAY_COUNT(QUERIES); q++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        Asked asked = {.query = QUERIES[q].query};
        read_rows(&t, &targets, &arena, asked, &all);
        for (size_t read = 1; read < all.count; read += 5) {
            Answered before;
            asked = (Asked){.query = QUERIES[q].query, .items_max = (uint32_t)read};
            ask_over(&t, &targets, &arena, &asked, &before);
            buf_done(&before.text);
            assert_false(before.page.is_done);
            for (size_t at = 0; at < all.count; at += 3) {
                bool is_hashed = false;
                asked = (Asked){.query = QUERIES[q].query,
                                .filter = make_filter(&arena, &all.list[at], WITH_RID, &is_hashed),
                                .position = before.page.position,
                                .items_max = at % 2 == 0 ? 4 : 0};
                if (is_hashed && !QUERIES[q].is_served)
                    continue;
                size_t first = first_wanted(&all, at, WITH_RID);
                read_rows(&t, &targets, &arena, asked, &got);
                expect_rows(&asked, &all, first > read ? first : read, &got);
            }
        }
    }
    test_targets_close(&targets);
    test_container_close(&t);
}

/* TOP, OFFSET and LIMIT count from there, or from the start; nothing that is wanted is lost. */
static void what_is_cut_off_reaches_as_far_as_ever(void **state)
{
    (void)state;
    TestContainer t;
    test_container_open(&t, (TestOptions){.policy = POLICY});
    for (int i = 0; i < 10; i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        test_insert(&t,
                    arena_format(&arena, "{\"id\":\"%d\",\"pk\":1,\"a\":%d}%c", i, i, '\0').ptr);
    }
    static const struct {
        const char *query, *filter, *expected;
    } ROWS[] = {
        {"SELECT TOP 5 VALUE c.a FROM c ORDER BY c.a", "{'value':[3]}", "3,4,5,6,7"},
        {"SELECT TOP 5 VALUE c.a FROM c ORDER BY c.ca", "{'value':[3]}", "3,4"},
        {"SELECT VALUE c.a FROM c ORDER BY c.ca OFFSET 2 LIMIT 5", "{'value':[4]}", "4,5,6"},
        {"SELECT VALUE c.a FROM c ORDER BY c.ca OFFSET 2 LIMIT 5", "{'value':[0]}", "2,3,4,5,6"},
        {"SELECT VALUE c.a FROM c ORDER BY c.ca OFFSET 2 LIMIT 5", "{'value':[7]}", ""},
        {"SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a", "{'value':[7],'exclude':true}", "8,9"},
        {"SELECT VALUE c.a FROM c GROUP BY c.a ORDER BY c.a", "{'value':[8]}", "8,9"},
        {"SELECT VALUE c.a FROM c ORDER BY c.a", "{'value':['x']}", ""},
        {"SELECT VALUE c.a FROM c ORDER BY c.a", "{'value':[4.5]}", "5,6,7,8,9"},
        {"SELECT VALUE c.a FROM c ORDER BY c.a DESC", "{'value':['x']}", "9,8,7,6,5,4,3,2,1,0"},
        {"SELECT VALUE c.a FROM c WHERE c.a > 5 ORDER BY c.a", "{'value':[[]]}", "6,7,8,9"},
        {"SELECT VALUE c.a FROM c WHERE c.a > 5 ORDER BY c.a", "{'value':[1]}", "6,7,8,9"},
        {"SELECT VALUE c.a FROM c WHERE c.a < 5 ORDER BY c.a", "{'value':[7]}", ""},
        {"SELECT VALUE c.a FROM c WHERE c.a > 5 ORDER BY c.a DESC", "{'value':[[]]}", ""},
        {"SELECT VALUE c.a FROM c WHERE c.a < 3 ORDER BY c.a DESC", "{'value':[7]}", "2,1,0"},
    };
    TestTargets targets;
    test_targets_all(&t, &targets);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        const char *filter = row_text(&arena, ROWS[i].filter).ptr;
        Answered answered;
        ask_over(&t, &targets, &arena, &(Asked){.query = ROWS[i].query, .filter = filter},
                 &answered);
        if (answered.status != STATUS_OK ||
            !slice_equal(buf_view(&answered.text), slice_from_cstr(ROWS[i].expected)))
            fail_msg("%s\n  %s: expected %s, got %.*s", ROWS[i].query, ROWS[i].filter,
                     ROWS[i].expected, SLICE_ARG(buf_view(&answered.text)));
        buf_done(&answered.text);
    }
    test_targets_close(&targets);
    test_container_close(&t);
}

static void filters_that_mean_nothing_are_refused(void **state)
{
    (void)state;
    static const char ONE[] = "SELECT * FROM c ORDER BY c.a";
    static const char TWO[] = "SELECT * FROM c ORDER BY c.a, c.b";
    static const struct {
        const char *query, *filter, *expected;
    } ROWS[] = {
        {"SELECT * FROM c", "{\"value\":[1]}", "needs an ORDER BY"},
        {ONE, "1", "must be an object"},
        {ONE, "[]", "must be an object"},
        {ONE, "{}", "for each item of ORDER BY"},
        {ONE, "{\"value\":1}", "for each item of ORDER BY"},
        {ONE, "{\"value\":[]}", "for each item of ORDER BY"},
        {ONE, "{\"value\":[1,2]}", "for each item of ORDER BY"},
        {TWO, "{\"value\":[1]}", "for each item of ORDER BY"},
        {ONE, "{\"value\":[[1]]}", "neither a scalar, nor []"},
        {ONE, "{\"value\":[{}]}", "neither a scalar, nor []"},
        {ONE, "{\"value\":[{\"type\":\"array\"}]}", "neither a scalar, nor []"},
        {ONE, "{\"value\":[{\"type\":\"map\",\"low\":1,\"high\":2}]}", "neither a scalar, nor []"},
        {ONE, "{\"value\":[{\"type\":1,\"low\":1,\"high\":2}]}", "neither a scalar, nor []"},
        {ONE, "{\"value\":[{\"type\":\"array\",\"low\":1,\"high\":2}]}", "there is no order among"},
        {ONE, "{\"value\":[1],\"exclude\":1}", "neither true nor false"},
        {ONE, "{\"value\":[1],\"exclude\":null}", "neither true nor false"},
        {ONE, "{\"value\":[1],\"rid\":1}", "not one of the container's items"},
        {ONE, "{\"value\":[1],\"rid\":\"\"}", "not one of the container's items"},
        {ONE, "{\"value\":[1],\"rid\":\"no\"}", "not one of the container's items"},
        {ONE, "{\"value\":[1],\"rid\":\"8wGqAJI0VgcBAAAAAAAAAA==\"}", "not one of the container's"},
        {ONE, "{\"value\":[1],\"rid\":\"AQAAAIAAAAI=\"}", "not one of the container's items"},
    };
    TestContainer t;
    test_container_open(&t, (TestOptions){.policy = POLICY});
    TestTargets targets;
    test_targets_all(&t, &targets);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Answered answered;
        ask_over(&t, &targets, &arena, &(Asked){.query = ROWS[i].query, .filter = ROWS[i].filter},
                 &answered);
        if (answered.status != STATUS_BAD_REQUEST ||
            strstr(answered.err.message, ROWS[i].expected) == NULL)
            fail_msg("%s: expected '%s', got '%s'", ROWS[i].filter, ROWS[i].expected,
                     answered.status == STATUS_OK ? "results" : answered.err.message);
        buf_done(&answered.text);
    }
    test_targets_close(&targets);
    test_container_close(&t);
}

/* By which clients skip what they have: the page says which way they go. */
static void rows_with_equal_keys_come_by_number(void **state)
{
    (void)state;
    static Rows all;
    TestContainer t;
    test_container_open(&t, (TestOptions){.policy = POLICY, .partitions = 2});
    fill(&t);
    TestTargets targets;
    test_targets_all(&t, &targets);
    for (size_t q = 0; q < ARRAY_COUNT(QUERIES); q++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        Asked asked = {.query = QUERIES[q].query};
        Answered answered;
        ask_over(&t, &targets, &arena, &asked, &answered);
        assert_true(answered.page.is_ordered);
        all.count = 0;
        add_rows(&arena, &answered, &all);
        buf_done(&answered.text);
        for (size_t i = 1; i < all.count; i++) {
            uint64_t numbers[2] = {0};
            for (size_t j = 0; j < 2; j++) {
                uint64_t parts[2];
                size_t len = 0;
                assert_true(
                    base64_decode(BASE64_RID, all.list[i - 1 + j].rid, parts, sizeof(parts), &len));
                numbers[j] = parts[1]; /* little-endian, as clients read it */
            }
            if (!same_keys(&all.list[i - 1], &all.list[i]) || numbers[0] == numbers[1])
                continue;
            if ((numbers[0] > numbers[1]) != answered.page.is_reversed)
                fail_msg("%s: row %zu", QUERIES[q].query, i);
        }
    }
    test_targets_close(&targets);
    test_container_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_begins_at_any_of_its_rows),
        cmocka_unit_test(the_further_of_position_and_filter_counts),
        cmocka_unit_test(what_is_cut_off_reaches_as_far_as_ever),
        cmocka_unit_test(filters_that_mean_nothing_are_refused),
        cmocka_unit_test(rows_with_equal_keys_come_by_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
