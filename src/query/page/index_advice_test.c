/* index_advice_test.c - which composite indexes a query is told to have, and that it then uses
 * them. */
#include "query/page/page_testing_int.h"

enum { ITEMS = 200 };

static const char NONE[] = "{\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[]}";

static void print_item(size_t number, Buf *out)
{
    buf_format(out,
               "{\"id\":\"%zu\",\"pk\":\"p\",\"a\":%zu,\"b\":%zu,\"d\":%zu,\"t\":[%zu],\"o\":{\"x "
               "y\":%zu},"
               "\"e,f\":%zu}",
               number, number % 3, number % 4, number, number % 5, number % 6, number % 7);
}

static Slice print_composites(Arena *arena, const QueryComposite *list, size_t count)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 16);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < list[i].part_count; j++)
            buf_format(&text, "%s%.*s", j > 0 ? ", " : (i > 0 ? "; " : ""),
                       SLICE_ARG(list[i].parts[j]));
    }
    return arena_copy(arena, buf_view(&text));
}

/* The policy that has the indexes of such a text. */
static char *make_policy(Arena *arena, Slice text)
{
    AUTO(buf_done) Buf policy;
    buf_init(&policy, 1 << 16);
    buf_slice(&policy, SLICE("{\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[],"
                             "\"compositeIndexes\":["));
    for (bool is_first = true; text.len > 0; is_first = false) {
        Slice index = slice_trim(slice_cut(&text, ';'));
        buf_slice(&policy, is_first ? SLICE("[") : SLICE(",["));
        for (bool is_part = false; index.len > 0; is_part = true) {
            size_t end = 0; /* of the part: names may have commas in them */
            while (end < index.len && !slice_starts_with(slice_from(index, end), SLICE("SC")))
                end++;
            Slice part = slice_first(index, end + 2);
            index = slice_from(index, end + 4);
            bool is_down = slice_ends_with(part, SLICE(" DESC"));
            buf_slice(&policy, is_part ? SLICE(",{\"path\":\"") : SLICE("{\"path\":\""));
            for (size_t i = 0; i < part.len - (is_down ? 5 : 4); i++)
                buf_format(&policy, "%s%c", part.ptr[i] == '"' ? "\\" : "", part.ptr[i]);
            buf_format(&policy, "\",\"order\":\"%sscending\"}", is_down ? "de" : "a");
        }
        buf_byte(&policy, ']');
    }
    buf_slice(&policy, SLICE("]}"));
    return arena_cstr(arena, buf_view(&policy));
}

static const struct {
    const char *end; /* of the query */
    const char *advised;
} ROWS[] = {
    {"WHERE c.a = 1", ""},
    {"WHERE c.a = 1 AND c.b = 2", "/a ASC, /b ASC"},
    {"WHERE c.b = 2 AND 1 = c.a", "/b ASC, /a ASC"},
    {"WHERE c.a = 1 AND c.a = 2", ""},
    {"WHERE c.d > 1", ""},
    {"WHERE c.d > 1 AND c.b < 7", ""},
    {"WHERE c.a = 1 AND c.d > 1", "/a ASC, /d ASC"},
    {"WHERE c.d > 1 AND c.d < 100 AND c.a = 1", "/a ASC, /d ASC"},
    /* The service's own example. */
    {"WHERE c.a = 1 AND c.d > 1 AND c.b = 2 AND c._ts > 5",
     "/a ASC, /b ASC, /d ASC; /a ASC, /b ASC, /_ts ASC"},
    {"WHERE c.a = 1 AND c.d != 1", ""},
    {"WHERE c.a = 1 AND c.d IN (1, 2)", ""},
    {"WHERE c.a = 1 AND IS_NUMBER(c.d)", ""},
    {"WHERE c.a = 1 AND STARTSWITH(c.id, '1')", "/a ASC, /id ASC"},
    {"WHERE c.a = 1 OR c.b = 2", ""},
    {"WHERE c.a = 1 AND c.t[0] = 2", ""},
    {"WHERE c.a = 1 AND ARRAY_CONTAINS(c.t, 2)", ""},
    {"WHERE c.a = [1] AND c.b = 2", ""},
    {"WHERE c.a = 1 AND c.o['x y'] = 2", "/a ASC, /o/\"x y\" ASC"},
    {"WHERE c.a = 1 AND c['e,f'] >= 2", "/a ASC, /\"e,f\" ASC"},
    {"WHERE c.a = 1 AND false", ""},
    {"ORDER BY c.a", ""},
    {"WHERE c.a = 1 ORDER BY c.a", ""},
    {"WHERE c.a = 1 ORDER BY c.d", "/a ASC, /d ASC"},
    {"WHERE c.a = 1 ORDER BY c.d DESC", "/a ASC, /d DESC"},
    {"WHERE c.a = 1 AND c.b = 2 ORDER BY c.d DESC", "/a ASC, /b ASC, /d DESC"},
    {"WHERE c.a = 1 AND c.d > 7 ORDER BY c.d", "/a ASC, /d ASC"},
    {"WHERE c.a = 1 AND c.b > 1 ORDER BY c.d", "/a ASC, /d ASC; /a ASC, /b ASC"},
    {"WHERE c.d > 7 ORDER BY c.b", ""},
    {"WHERE c.a > 1 ORDER BY c.t[0]", ""},
};

static void filters_and_orders_have_their_indexes(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){.policy = NONE});
    insert_many(t, 0, ITEMS, print_item);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(answered_done) Answered answered;
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Slice text = arena_format(&arena, "SELECT VALUE c.id FROM c %s", ROWS[i].end);
        ask(t, arena_cstr(&arena, text), (Asked){0}, &answered);
        assert_int_equal(answered.status, STATUS_OK);
        Slice advised = print_composites(&arena, answered.page.potential_composites,
                                         answered.page.potential_composite_count);
        if (!slice_equal(advised, slice_from_cstr(ROWS[i].advised)))
            fail_msg("%s\n  expected %s\n  got      %.*s", ROWS[i].end, ROWS[i].advised,
                     SLICE_ARG(advised));
        assert_int_equal(answered.page.used_composite_count, 0);
    }
}

/* After the advice is followed, the query gets no more advice, has the same results, and uses one
 * of the indexes. */
static void advice_that_is_taken_is_good(void **state)
{
    TestContainer *t = *state;
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        if (ROWS[i].advised[0] == '\0')
            continue;
        AUTO(answered_done) Answered before;
        AUTO(answered_done) Answered after;
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Slice text = arena_format(&arena, "SELECT VALUE c.id FROM c %s", ROWS[i].end);
        char *query = arena_cstr(&arena, text);
        test_container_open(t, (TestOptions){.policy = NONE});
        insert_many(t, 0, ITEMS, print_item);
        ask(t, query, (Asked){0}, &before);
        test_container_close(t);
        test_container_open(
            t, (TestOptions){.policy = make_policy(&arena, slice_from_cstr(ROWS[i].advised))});
        insert_many(t, 0, ITEMS, print_item);
        Random random; /* a few documents are found as quickly in any way: one of many is it */
        random_init(&random, 1);
        bool is_used = false;
        for (int round = 0; round < 40 && !is_used; round++) {
            if (round > 0)
                answered_done(&after);
            ask(t, query, (Asked){.plan_random = &random}, &after);
            assert_int_equal(after.status, STATUS_OK);
            assert_int_equal(after.page.count, before.page.count);
            is_used = after.page.used_composite_count > 0;
        }
        if (!is_used || after.page.potential_composite_count > 0)
            fail_msg("%s is not served by %s", ROWS[i].end, ROWS[i].advised);
        test_container_close(t);
    }
    test_container_open(t, (TestOptions){0});
}

/* The first parts may be in any sequence; the parts after them may be reversed as a whole. */
static void an_index_that_serves_is_not_advised(void **state)
{
    TestContainer *t = *state;
    static const struct {
        const char *indexes, *end, *advised;
    } CASES[] = {
        {"/b ASC, /a DESC", "WHERE c.a = 1 AND c.b = 2", ""},
        {"/b DESC, /a ASC, /d ASC", "WHERE c.a = 1 AND c.b = 2 AND c.d > 1", ""},
        {"/b DESC, /a ASC, /d DESC", "WHERE c.a = 1 AND c.b = 2 AND c.d > 1", ""},
        {"/d ASC, /a ASC", "WHERE c.a = 1 AND c.d > 1", "/a ASC, /d ASC"},
        {"/a ASC, /b ASC", "WHERE c.a = 1 AND c.b = 2 AND c.d > 1", "/a ASC, /b ASC, /d ASC"},
        {"/a ASC, /d DESC", "WHERE c.a = 1 ORDER BY c.d", ""},
        {"/a ASC, /b ASC", "WHERE c.a = 1 ORDER BY c.a, c.b", ""},
        {"/b ASC, /d ASC", "WHERE c.a = 1 ORDER BY c.b, c.d", "/a ASC, /b ASC, /d ASC"},
        {"/b ASC, /d DESC; /a ASC, /b DESC, /d ASC", "WHERE c.a = 1 ORDER BY c.b, c.d DESC", ""},
        {"/b ASC, /d DESC; /a ASC, /b DESC, /d DESC", "WHERE c.a = 1 ORDER BY c.b, c.d DESC",
         "/a ASC, /b ASC, /d DESC"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        AUTO(answered_done) Answered answered;
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Slice text = arena_format(&arena, "SELECT VALUE c.id FROM c %s", CASES[i].end);
        test_container_open(
            t, (TestOptions){.policy = make_policy(&arena, slice_from_cstr(CASES[i].indexes))});
        ask(t, arena_cstr(&arena, text), (Asked){0}, &answered);
        assert_int_equal(answered.status, STATUS_OK);
        Slice advised = print_composites(&arena, answered.page.potential_composites,
                                         answered.page.potential_composite_count);
        if (!slice_equal(advised, slice_from_cstr(CASES[i].advised)))
            fail_msg("%s with %s\n  expected %s\n  got      %.*s", CASES[i].end, CASES[i].indexes,
                     CASES[i].advised, SLICE_ARG(advised));
        if (i + 1 < ARRAY_COUNT(CASES))
            test_container_close(t);
    }
}

static void advice_is_bounded(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){.policy = NONE});
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    buf_slice(&text, SLICE("SELECT * FROM c WHERE c.a = 1"));
    for (int i = 0; i < 500; i++)
        buf_format(&text, " AND c.some_property_%d > %d", i, i);
    buf_byte(&text, '\0');
    AUTO(answered_done) Answered ranges;
    ask(t, text.ptr, (Asked){0}, &ranges);
    assert_int_equal(ranges.status, STATUS_OK);
    assert_in_range(ranges.page.potential_composite_count, 1, 8);
    buf_reset(&text);
    buf_slice(&text, SLICE("SELECT * FROM c WHERE c.a = 1"));
    for (int i = 0; i < 500; i++)
        buf_format(&text, " AND c.some_property_%d = %d", i, i);
    buf_byte(&text, '\0');
    AUTO(answered_done) Answered equal;
    ask(t, text.ptr, (Asked){0}, &equal);
    assert_int_equal(equal.page.potential_composite_count, 1);
    assert_int_equal(equal.page.potential_composites[0].part_count, COMPOSITE_PARTS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAGE_TEST(filters_and_orders_have_their_indexes),
        PAGE_TEST(advice_that_is_taken_is_good),
        PAGE_TEST(an_index_that_serves_is_not_advised),
        PAGE_TEST(advice_is_bounded),
    };
    return cmocka_run_group_tests_name("advice on indexes", tests, NULL, NULL);
}
