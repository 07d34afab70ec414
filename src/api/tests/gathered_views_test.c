/* gathered_views_test.c - answers under /_orrery about ranges of two nodes: they are those of one
 * node that serves all ranges, or say what is missing; whatever the other node sends. */
#include "api/tests/pair_testing_int.h"

enum { AWAY = 1, ONLY_THERE = 1 };

static const char VIEW[] = "/_orrery/dbs/db/colls/c/";

/* Both nodes have the same items, and 'b' one more, which is in the range that 'a' gives away: its
 * number is 'extra'. */
typedef struct Views {
    Pair pair;
    uint64_t items_here; /* of all ranges but the one that is away */
} Views;

static uint64_t items_in(FakeServer *server, size_t range)
{
    return handle_usage(container_handle_at(container_now(server), range)).items;
}

/* A key of the range. */
static void make_extra(Pair *p)
{
    for (int i = 0; i < 1000; i++) {
        uint64_t before = items_in(&p->b, AWAY);
        make_item(&p->b,
                  arena_format(&p->b.arena, "{'id':'x','pk':'only%d','rare':{'r':1}}", i).ptr);
        if (items_in(&p->b, AWAY) > before)
            return;
        Slice header = arena_format(&p->b.arena, "['only%d']", i);
        (void)expect_status(
            &p->b, &(Ask){"DELETE", DOCS "/x", .headers = {PK(arena_cstr(&p->b.arena, header))}},
            204);
    }
    fail_msg("no key");
}

static void open_views(Views *v)
{
    open_pair_filled(&v->pair);
    make_extra(&v->pair);
    give_away(&v->pair, AWAY);
    v->items_here = 0;
    for (size_t i = 0; i < RANGES; i++)
        v->items_here += i == AWAY ? 0 : items_in(&v->pair.b, i);
    assert_true(v->items_here < ITEMS);
}

static void close_views(Views *v)
{
    close_pair(&v->pair);
}

static Json view(FakeServer *server, const char *what)
{
    const char *path = slice_equal(slice_from_cstr(what), SLICE("containers"))
                           ? "/_orrery/containers"
                           : arena_format(&server->arena, "%s%s", VIEW, what).ptr;
    FakeAnswer answer = expect_status(server, &(Ask){"GET", path}, 200);
    return body_of(server, &answer);
}

static Json member(Json object, const char *name)
{
    return json_get(object, slice_from_cstr(name));
}

static uint64_t number(Json object, const char *name)
{
    int64_t value = -1;
    assert_true(json_to_i64(member(object, name), &value));
    assert_true(value >= 0);
    return (uint64_t)value;
}

static void expect_same(FakeServer *server, Json a, Json b)
{
    Slice left = json_print_arena(&server->arena, a);
    Slice right = json_print_arena(&server->arena, b);
    if (!slice_equal(left, right))
        fail_msg("%.*s\n%.*s", SLICE_ARG(left), SLICE_ARG(right));
}

static void expect_missing(FakeServer *server, Json answer, const char *expected)
{
    assert_slice(json_print_arena(&server->arena, member(answer, "missingRanges")),
                 slice_from_cstr(expected));
}

/* ---- all of it ---- */

static FakeAnswer ask_part(FakeServer *server, const char *path, const char *part, bool is_node)
{
    const HttpHeader headers[] = {
        {SLICE(NODE_HEADER_ORIGIN), SLICE("http 1.2.3.4:5")},
        {SLICE(NODE_HEADER_HOST), SLICE("x")},
        {SLICE(NODE_HEADER_SECONDS),
         arena_format(&server->arena, "%lld", (long long)clock_wall_s(&server->clock.clock))},
        {SLICE(NODE_HEADER_PART), slice_from_cstr(part)},
    };
    FakeAnswer answer;
    fake_request(server,
                 &(FakeRequest){.method = SLICE("GET"),
                                .path = slice_from_cstr(path),
                                .headers = headers,
                                .header_count = ARRAY_COUNT(headers),
                                .key = SLICE(FAKE_KEY),
                                .is_node = is_node},
                 &answer);
    return answer;
}

/* The nodes have catalogues of their own here, and so other numbers of the container. */
static Slice with_number_of_a(Pair *p, Slice lines)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 4096);
    while (lines.len > 0) {
        Slice line = slice_cut(&lines, '\n');
        (void)slice_cut(&line, ' ');
        buf_format(&text, "%u %.*s\n", container_now(&p->a)->info.number, SLICE_ARG(line));
    }
    return arena_copy(&p->a.arena, buf_view(&text));
}

static void containers_are_summed_over_nodes(void **state UNUSED)
{
    Views v;
    open_views(&v);
    FakeServer *a = &v.pair.a;
    FakeAnswer part = ask_part(&v.pair.b, "/_orrery/containers", "numbers", true);
    v.pair.says = with_number_of_a(&v.pair, part.body);
    Json here = json_at(member(view(a, "containers"), "containers"), 0);
    Json there = json_at(member(view(&v.pair.b, "containers"), "containers"), 0);
    assert_int_equal(v.pair.calls, 1);
    expect_missing(a, here, "[]");
    assert_int_equal(number(here, "items"), ITEMS + ONLY_THERE);
    assert_int_equal(number(here, "bytes"), number(there, "bytes"));
    expect_same(a, member(member(here, "ru"), "allotted"), member(member(there, "ru"), "allotted"));
    close_views(&v);
}

static void a_layout_has_the_ranges_of_other_nodes(void **state UNUSED)
{
    Views v;
    open_views(&v);
    FakeServer *a = &v.pair.a;
    Json here = view(a, "layout");
    Json there = view(&v.pair.b, "layout");
    static const char *const same[] = {"id", "min", "max", "items", "bytes", "logicalPartitions"};
    for (size_t i = 0; i < RANGES; i++) {
        for (size_t m = 0; m < ARRAY_COUNT(same); m++)
            expect_same(a, member(json_at(member(here, "ranges"), i), same[m]),
                        member(json_at(member(there, "ranges"), i), same[m]));
    }
    assert_int_equal(number(member(here, "totals"), "items"), ITEMS + ONLY_THERE);
    assert_int_equal(number(member(here, "totals"), "logicalPartitions"), KEYS + ONLY_THERE);
    expect_missing(a, here, "[]");
    close_views(&v);
}

static void paths_are_merged_by_name(void **state UNUSED)
{
    Views v;
    open_views(&v);
    FakeServer *a = &v.pair.a;
    Json here = view(a, "paths");
    expect_same(a, member(here, "paths"), member(view(&v.pair.b, "paths"), "paths"));
    Slice text = json_print_arena(&a->arena, member(here, "paths"));
    assert_slice(text, SLICE("[\"/_ts\",\"/id\",\"/m\",\"/n\",\"/pk\",\"/rare\",\"/rare/r\"]"));
    assert_true(json_bool(member(here, "isComplete")));
    expect_missing(a, here, "[]");
    close_views(&v);
}

/* 'b' serves what 'a' has given away, and nothing else. */
static void stop_others(Pair *p)
{
    Error err;
    for (size_t i = 0; i < RANGES; i++) {
        StoreSpace space = container_now(&p->b)->ranges[i].space;
        if (i != AWAY)
            assert_int_equal(catalog_stop_serving(p->b.catalog, space, &err), 0);
    }
}

static void advice_samples_the_items_of_all_nodes(void **state UNUSED)
{
    Views v;
    open_views(&v);
    FakeServer *a = &v.pair.a;
    Json there = view(&v.pair.b, "advice");
    stop_others(&v.pair);
    Json here = view(a, "advice");
    assert_int_equal(number(member(here, "sample"), "items"), ITEMS + ONLY_THERE);
    assert_int_equal(number(member(here, "sample"), "population"), ITEMS + ONLY_THERE);
    expect_same(a, member(here, "keys"), member(there, "keys"));
    expect_missing(a, here, "[]");
    /* In proportion: of a sixth of the items, and one more of each range. */
    Json sample = member(view(a, "advice?sample=10"), "sample");
    assert_in_range(number(sample, "items"), 1, 10);
    assert_int_equal(number(sample, "population"), ITEMS + ONLY_THERE);
    close_views(&v);
}

static void a_part_of_advice_alone_is_no_sample(void **state UNUSED)
{
    Views v;
    open_views(&v);
    FakeServer *a = &v.pair.a;
    for (size_t i = 0; i < RANGES; i++) {
        if (i != AWAY)
            give_away(&v.pair, i);
    }
    Json here = view(a, "advice");
    assert_int_equal(number(member(here, "sample"), "items"), ITEMS + ONLY_THERE);
    v.pair.outcome = NODE_CALL_NOT_SENT;
    FakeAnswer answer = expect_status(a, &(Ask){"GET", "/_orrery/dbs/db/colls/c/advice"}, 429);
    expect_holds(answer.body, "do not answer");
    close_views(&v);
}

/* ---- a part of it ---- */

/* What 'a' answers if the other node is of no use. */
static void expect_part(Views *v)
{
    FakeServer *a = &v->pair.a;
    Json row = json_at(member(view(a, "containers"), "containers"), 0);
    expect_missing(a, row, "[\"1\"]");
    assert_int_equal(number(row, "items"), v->items_here);
    Json layout = view(a, "layout");
    expect_missing(a, layout, "[\"1\"]");
    assert_int_equal(number(member(layout, "totals"), "items"), v->items_here);
    assert_true(json_is(member(member(layout, "totals"), "logicalPartitions"), JSON_NULL));
    Json paths = view(a, "paths");
    expect_missing(a, paths, "[\"1\"]");
    assert_false(json_bool(member(paths, "isComplete")));
    assert_int_equal(json_count(member(paths, "paths")), 5);
    Json advice = view(a, "advice");
    expect_missing(a, advice, "[\"1\"]");
    assert_int_equal(number(member(advice, "sample"), "population"), v->items_here);
}

static void what_cannot_be_asked_is_named(void **state UNUSED)
{
    static const NodeCallOutcome rows[] = {NODE_CALL_NOT_SENT, NODE_CALL_UNKNOWN};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Views v;
        open_views(&v);
        v.pair.outcome = rows[i];
        expect_part(&v);
        assert_true(v.pair.refreshes > 0);
        close_views(&v);
    }
    Views v;
    open_views(&v);
    v.pair.refuses = 503;
    v.pair.reason = SLICE("0");
    expect_part(&v);
    close_views(&v);
}

/* None of these texts is an answer to anything. */
static void nonsense_of_a_node_counts_as_no_answer(void **state UNUSED)
{
    static const char *const rows[] = {
        "x",
        "\n",
        "{}",
        "1",
        "1 2 3",
        "-1 1",
        "1\nnot json\n",
        "1 99999999999999999999\n",
        "0 0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n", /* of a range that is here */
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Views v;
        open_views(&v);
        v.pair.says = slice_from_cstr(rows[i]);
        expect_part(&v);
        close_views(&v);
    }
}

static void numbers_that_would_overflow_a_sum_are_refused(void **state UNUSED)
{
    static const struct {
        const char *numbers;
        bool is_good;
    } rows[] = {
        {"7 700 1 1 1 1 1 1 1 1 1", true},
        {"1125899906842624 0 0 0 0 0 0 0 0 0 0", true},
        {"1125899906842625 0 0 0 0 0 0 0 0 0 0", false},
        {"18446744073709551615 0 0 0 0 0 0 0 0 0 0", false},
        {"7 700 1 1 1 1 1 1 1 1", false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Views v;
        open_views(&v);
        FakeServer *a = &v.pair.a;
        v.pair.says = arena_format(&a->arena, "%u 1 %s\n%u 0 %s\n", container_now(a)->info.number,
                                   rows[i].numbers, container_now(a)->info.number, rows[i].numbers);
        Json row = json_at(member(view(a, "containers"), "containers"), 0);
        expect_missing(a, row, rows[i].is_good ? "[]" : "[\"1\"]");
        uint64_t more = 0;
        if (rows[i].is_good)
            assert_true(slice_to_u64(slice_first(slice_from_cstr(rows[i].numbers),
                                                 slice_find(slice_from_cstr(rows[i].numbers), ' ')),
                                     &more));
        assert_int_equal(number(row, "items"), v.items_here + more);
        close_views(&v);
    }
}

static void the_keys_and_kinds_of_a_range_are_those_of_its_owner(void **state UNUSED)
{
    Views v;
    open_views(&v);
    FakeServer *a = &v.pair.a;
    Json here = view(a, "top?range=1");
    assert_int_equal(v.pair.calls, 1);
    Json there = view(&v.pair.b, "top?range=1");
    expect_same(a, member(here, "rows"), member(there, "rows"));
    expect_same(a, member(here, "total"), member(there, "total"));
    assert_true(json_count(member(here, "rows")) > 0);
    expect_missing(a, here, "[]");
    fake_clock_advance(&a->clock, 1000000);
    fake_clock_advance(&v.pair.b.clock, 1000000);
    expect_same(a, member(view(a, "history?range=1&operations=true"), "ranges"),
                member(view(&v.pair.b, "history?range=1&operations=true"), "ranges"));
    static const char *const nonsense[] = {"x", "1 1 1 {}", "1 1 1 [", "0 1 1 []", "1 -1 1 []"};
    for (size_t i = 0; i < ARRAY_COUNT(nonsense); i++) {
        v.pair.says = slice_from_cstr(nonsense[i]);
        here = view(a, "top?range=1");
        expect_missing(a, here, "[\"1\"]");
        assert_int_equal(json_count(member(here, "rows")), 0);
    }
    close_views(&v);
}

static ApiOwner catalog_elsewhere(void *ctx UNUSED)
{
    return (ApiOwner){.is_known = true, .epoch = 2, .address = "10.0.0.2:9000"};
}

static Slice no_events(void *ctx UNUSED, Arena *arena UNUSED)
{
    return SLICE("[]");
}

/* Only the owner of the catalogue knows them. */
static void splits_and_merges_are_told_by_the_owner_of_the_catalogue(void **state UNUSED)
{
    Views v;
    open_views(&v);
    Pair *p = &v.pair;
    take_back(p, AWAY);
    p->of_a.catalog_owner = catalog_elsewhere;
    p->of_a.events = no_events;
    p->of_b.events = no_events;
    p->says = SLICE("[{\"what\":\"split\",\"event\":7}]");
    FakeAnswer answer = expect_status(&p->a, &(Ask){"GET", "/_orrery/events"}, 200);
    Json moves = member(body_of(&p->a, &answer), "moves");
    assert_int_equal(number(json_at(moves, 0), "event"), 7);
    p->says = SLICE("{\"what\":\"merge\",\"event\":8}");
    assert_int_equal(number(member(view(&p->a, "layout"), "move"), "event"), 8);
    p->says = SLICE_EMPTY; /* b's own */
    assert_true(json_is(member(view(&p->a, "layout"), "move"), JSON_NULL));
    static const char *const nonsense[] = {"x", "7", "[", "{\"a\":1"};
    for (size_t i = 0; i < ARRAY_COUNT(nonsense); i++) {
        p->says = slice_from_cstr(nonsense[i]);
        answer = expect_status(&p->a, &(Ask){"GET", "/_orrery/events"}, 200);
        assert_int_equal(json_count(member(body_of(&p->a, &answer), "moves")), 0);
        assert_true(json_is(member(view(&p->a, "layout"), "move"), JSON_NULL));
    }
    p->outcome = NODE_CALL_NOT_SENT;
    (void)expect_status(&p->a, &(Ask){"GET", "/_orrery/events"}, 200);
    close_views(&v);
}

/* ---- what is told ---- */

static void an_answer_of_one_node_says_so(void **state UNUSED)
{
    Views v;
    open_views(&v);
    Json events_of_all = view(&v.pair.a, "layout");
    assert_false(json_is(member(events_of_all, "node"), JSON_STRING));
    Json top = view(&v.pair.a, "top?by=size");
    assert_slice(json_string(member(top, "node")), SLICE("a"));
    expect_missing(&v.pair.a, top, "[\"1\"]");
    close_views(&v);
}

/* A part is asked of nodes: a client gets the whole. */
static void a_part_is_told_to_nodes_only(void **state UNUSED)
{
    static const struct {
        const char *path;
        const char *part;
        int status;
    } rows[] = {
        {"/_orrery/containers", "numbers", 200},
        {"/_orrery/dbs/db/colls/c/layout", "layout", 200},
        {"/_orrery/dbs/db/colls/c/paths", "paths", 200},
        {"/_orrery/dbs/db/colls/c/advice", "counts", 200},
        {"/_orrery/dbs/db/colls/c/advice", "sample 0.5", 200},
        {"/_orrery/dbs/db/colls/c/advice", "sample", 400},
        {"/_orrery/dbs/db/colls/c/advice", "sample 2", 400},
        {"/_orrery/dbs/db/colls/c/advice", "sample -1", 400},
        {"/_orrery/dbs/db/colls/c/advice", "else", 400},
        {"/_orrery/dbs/db/colls/c/layout", "move", 200},
        {"/_orrery/dbs/db/colls/c/top?by=size", "top", 400},
        {"/_orrery/dbs/db/colls/c/top", "keys", 400},
        {"/_orrery/dbs/db/colls/c/top?range=0", "keys", 200},
        {"/_orrery/events", "moves", 200},
        {"/_orrery/events", "events", 400},
    };
    Views v;
    open_views(&v);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer told = ask_part(&v.pair.a, rows[i].path, rows[i].part, true);
        assert_int_equal(told.status, rows[i].status);
        assert_true(told.status != 200 || told.body.ptr[0] != '{');
        assert_int_equal(v.pair.calls, 0); /* and asks nobody */
    }
    FakeAnswer whole = ask_part(&v.pair.a, "/_orrery/containers", "numbers", false);
    assert_int_equal(whole.status, 200);
    assert_int_equal(whole.body.ptr[0], '{');
    close_views(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(containers_are_summed_over_nodes),
        cmocka_unit_test(a_layout_has_the_ranges_of_other_nodes),
        cmocka_unit_test(paths_are_merged_by_name),
        cmocka_unit_test(advice_samples_the_items_of_all_nodes),
        cmocka_unit_test(a_part_of_advice_alone_is_no_sample),
        cmocka_unit_test(what_cannot_be_asked_is_named),
        cmocka_unit_test(nonsense_of_a_node_counts_as_no_answer),
        cmocka_unit_test(numbers_that_would_overflow_a_sum_are_refused),
        cmocka_unit_test(the_keys_and_kinds_of_a_range_are_those_of_its_owner),
        cmocka_unit_test(splits_and_merges_are_told_by_the_owner_of_the_catalogue),
        cmocka_unit_test(an_answer_of_one_node_says_so),
        cmocka_unit_test(a_part_is_told_to_nodes_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
