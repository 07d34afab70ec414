/* remote_reading_test.c - pages over targets of which another node serves some. */
#include "base/testing.h"
#include "query/eval/query.h"
#include "query/page/remote_testing_int.h"

enum { DOCUMENTS = 90, PAGES_MAX = 200 };

typedef struct Scene {
    TestContainer t;
    Arena arena;
    TestRemote remote;
    unsigned hidden; /* bit by bit, which targets another node serves */
    unsigned turns;  /* pages; with 'alternates' the odd ones are all read here */
    bool alternates;
    bool is_brief;
    bool explains;
    Slice (*spoil)(Arena *arena, Slice answer, size_t turn);
    size_t turn;
} Scene;

static void open_scene(Scene *s)
{
    *s = (Scene){.hidden = 5};
    arena_init(&s->arena, 64 << 10);
    test_container_open(&s->t, (TestOptions){.partitions = 3});
    for (int i = 0; i < DOCUMENTS; i++) {
        const char *text =
            arena_format(&s->arena, "{\"id\":\"%d\",\"pk\":\"p%d\",\"n\":%d,\"k\":%d}%c", i, i,
                         (i * 37) % DOCUMENTS, i % 7, '\0')
                .ptr;
        test_insert(&s->t, text);
    }
}

static void close_scene(Scene *s)
{
    test_container_close(&s->t);
    arena_done(&s->arena);
}

static Status ask_spoiled(void *ctx, const QueryTarget *target, Slice asked, Arena *arena,
                          Slice *answer, Error *err)
{
    Scene *s = CONTAINER_OF(ctx, Scene, remote);
    TRY(test_remote_ask(ctx, target, asked, arena, answer, err));
    *answer = s->spoil(arena, *answer, s->turn);
    return STATUS_OK;
}

static Status page(Scene *s, const char *text, Slice position, uint32_t items_max, Buf *out,
                   QueryPage *page, Error *err)
{
    Query *query = NULL;
    assert_int_equal(query_parse(&s->arena, slice_from_cstr(text), JSON_NONE, &query, err), 0);
    TestTargets own;
    test_targets_all(&s->t, &own);
    TestTargets shown = own;
    QueryPageOptions options = {
        .targets = shown.list,
        .target_count = shown.count,
        .schema = s->t.schema,
        .position = position,
        .items_max = items_max,
        .bytes_max = 1 << 20,
        .clock = &s->t.clock.clock,
        .is_brief = s->is_brief,
        .wants_explain = s->explains,
    };
    test_remote_begin(&s->remote, query, &options, &own);
    if (s->spoil != NULL)
        s->remote.remote.ask = ask_spoiled;
    unsigned hidden = s->alternates && s->turns++ % 2 == 1 ? 0 : s->hidden;
    for (size_t i = 0; i < shown.count; i++) {
        if ((hidden >> i & 1) != 0)
            test_remote_hide(&s->remote, shown.list, i);
    }
    Status status = query_page(query, &options, &s->arena, out, page, err);
    test_targets_close(&own);
    return status;
}

/* All results as text, page by page, with the positions between them. */
static Slice pages(Scene *s, const char *text, uint32_t items_max)
{
    AUTO(buf_done) Buf out;
    buf_init(&out, 16 << 20);
    Slice position = SLICE_EMPTY;
    for (int i = 0; i < PAGES_MAX; i++) {
        QueryPage made;
        Error err;
        if (page(s, text, position, items_max, &out, &made, &err) != STATUS_OK)
            fail_msg("%s: %s", text, err.message);
        if (made.is_done)
            return arena_copy(&s->arena, buf_view(&out));
        position = made.position;
        buf_byte(&out, '|');
        buf_slice(&out, position);
        buf_byte(&out, '|');
    }
    fail_msg("%s: no end", text);
    return SLICE_EMPTY;
}

static const char *const QUERIES[] = {
    "SELECT * FROM c",
    "SELECT VALUE c.id FROM c WHERE c.n > 30",
    "SELECT VALUE c.id FROM c WHERE c.n > 30 AND LENGTH(c.id) = 2",
    "SELECT VALUE c.id FROM c WHERE c.id = 'none'",
    "SELECT VALUE c.n FROM c ORDER BY c.n",
    "SELECT VALUE c.id FROM c WHERE c.k < 3 ORDER BY c.n DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 5 LIMIT 40",
    "SELECT c.k, COUNT(1) AS n, MAX(c.n) AS m FROM c GROUP BY c.k",
    "SELECT c.k, COUNT(1) AS n FROM c WHERE LENGTH(c.id) = 1 GROUP BY c.k",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT VALUE SUM(c.n) FROM c WHERE c.k = 3",
    "SELECT VALUE MIN(c.id) FROM c",
    "SELECT DISTINCT VALUE c.k FROM c",
    "SELECT DISTINCT VALUE c.k FROM c WHERE LENGTH(c.id) = 2",
    "SELECT DISTINCT VALUE c.k FROM c ORDER BY c.k DESC",
    "SELECT VALUE x FROM (SELECT VALUE c.n FROM c) AS x WHERE x < 20",
    "SELECT TOP 33 VALUE c.id FROM c",
};

static void pages_are_those_of_one_node(void **state UNUSED)
{
    static const uint32_t sizes[] = {1, 7, 1000};
    Random random;
    random_init(&random, 1);
    Scene s;
    open_scene(&s);
    for (size_t i = 0; i < ARRAY_COUNT(QUERIES); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(sizes); j++) {
            s.hidden = 0;
            s.alternates = false;
            Slice expected = pages(&s, QUERIES[i], sizes[j]);
            for (s.hidden = 1; s.hidden < 7; s.hidden++) {
                s.remote.sizes = s.hidden % 2 == 0 ? &random : NULL;
                s.alternates = s.hidden % 3 == 0;
                Slice found = pages(&s, QUERIES[i], sizes[j]);
                if (!slice_equal(found, expected))
                    fail_msg("%s, %u at a time, hidden %u:\n%.*s\nexpected\n%.*s", QUERIES[i],
                             sizes[j], s.hidden, SLICE_ARG(found), SLICE_ARG(expected));
            }
        }
    }
    assert_true(s.remote.asked > 100);
    close_scene(&s);
}

static void what_the_index_tells_comes_without_documents(void **state UNUSED)
{
    Scene s;
    open_scene(&s);
    AUTO(buf_done) Buf out;
    buf_init(&out, 1 << 20);
    QueryPage made;
    Error err;
    s.hidden = 3;
    assert_int_equal(page(&s, "SELECT VALUE COUNT(1) FROM c", SLICE_EMPTY, 10, &out, &made, &err),
                     0);
    assert_slice(buf_view(&out), SLICE("90"));
    assert_int_equal(made.metrics.documents_read, 0);
    assert_int_equal(made.metrics.partitions, 3);
    assert_int_equal(s.remote.asked, 2);
    close_scene(&s);
}

static void work_is_that_of_one_node(void **state UNUSED)
{
    Scene s;
    open_scene(&s);
    static const char *const texts[] = {
        "SELECT VALUE c.id FROM c WHERE c.n > 30 AND LENGTH(c.id) = 2",
        "SELECT VALUE c.id FROM c WHERE LENGTH(c.id) = 2",
        "SELECT c.k, COUNT(1) AS n FROM c WHERE LENGTH(c.id) = 1 GROUP BY c.k",
    };
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        AUTO(buf_done) Buf out;
        buf_init(&out, 1 << 20);
        QueryPage here;
        QueryPage there;
        Error err;
        s.hidden = 0;
        assert_int_equal(page(&s, texts[i], SLICE_EMPTY, 1000, &out, &here, &err), 0);
        s.hidden = 6;
        assert_int_equal(page(&s, texts[i], SLICE_EMPTY, 1000, &out, &there, &err), 0);
        assert_int_equal(here.metrics.documents_read, there.metrics.documents_read);
        assert_int_equal(here.metrics.document_bytes_read, there.metrics.document_bytes_read);
        for (size_t j = 0; j < 3; j++)
            assert_int_equal(here.work[j].is_visited, there.work[j].is_visited);
    }
    close_scene(&s);
}

static void an_order_that_another_node_cannot_serve_is_sorted_here(void **state UNUSED)
{
    Scene s;
    open_scene(&s);
    const char *text = "SELECT VALUE c.n FROM c ORDER BY c.n";
    s.hidden = 0;
    Slice expected = pages(&s, text, 1000);
    s.hidden = 2;
    s.remote.refuses_order = true;
    assert_slice(pages(&s, text, 1000), expected);
    /* A page that has begun with the order of an index cannot go on. */
    AUTO(buf_done) Buf out;
    buf_init(&out, 1 << 20);
    QueryPage made;
    Error err;
    s.hidden = 0;
    assert_int_equal(page(&s, text, SLICE_EMPTY, 10, &out, &made, &err), 0);
    s.hidden = 2;
    assert_int_equal(page(&s, text, made.position, 10, &out, &made, &err), STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, "has expired"));
    close_scene(&s);
}

static void rows_are_sorted_where_nothing_is_here(void **state UNUSED)
{
    Scene s;
    open_scene(&s);
    const char *text = "SELECT VALUE c.n FROM c ORDER BY c.n";
    s.hidden = 0;
    Slice expected = pages(&s, text, 1000);
    s.hidden = 7;
    assert_slice(pages(&s, text, 1000), expected);
    close_scene(&s);
}

static void a_node_that_is_lost_fails_the_page(void **state UNUSED)
{
    Scene s;
    open_scene(&s);
    s.remote.loses = true;
    for (size_t i = 0; i < ARRAY_COUNT(QUERIES); i++) {
        AUTO(buf_done) Buf out;
        buf_init(&out, 1 << 20);
        QueryPage made;
        Error err;
        assert_int_equal(page(&s, QUERIES[i], SLICE_EMPTY, 1000, &out, &made, &err),
                         STATUS_NOT_OWNER);
    }
    close_scene(&s);
}

static void a_brief_page_asks_nobody(void **state UNUSED)
{
    Scene s;
    open_scene(&s);
    AUTO(buf_done) Buf out;
    buf_init(&out, 1 << 20);
    QueryPage made;
    Error err;
    s.is_brief = true;
    assert_int_equal(page(&s, QUERIES[0], SLICE_EMPTY, 10, &out, &made, &err), STATUS_TIMEOUT);
    assert_int_equal(s.remote.asked, 0);
    close_scene(&s);
}

static void a_plan_says_that_another_node_reads(void **state UNUSED)
{
    Scene s;
    open_scene(&s);
    AUTO(buf_done) Buf out;
    buf_init(&out, 1 << 20);
    QueryPage made;
    Error err;
    s.explains = true;
    assert_int_equal(page(&s, QUERIES[4], SLICE_EMPTY, 1000, &out, &made, &err), 0);
    Slice text = json_print_arena(&s.arena, made.explain);
    const char *there = "another node";
    assert_non_null(memmem(text.ptr, text.len, there, strlen(there)));
    close_scene(&s);
}

/* As a node explains what it reads itself. What another one says is not shown unless it is a plan.
 */
static void a_plan_is_shown_as_the_other_node_tells_it(void **state UNUSED)
{
    Scene s;
    open_scene(&s);
    AUTO(buf_done) Buf out;
    buf_init(&out, 1 << 20);
    QueryPage made;
    Error err;
    s.explains = true;
    s.remote.plans = &s.arena;
    assert_int_equal(page(&s, QUERIES[4], SLICE_EMPTY, 1000, &out, &made, &err), 0);
    Json first = json_at(json_get(made.explain, SLICE("partitions")), 0);
    assert_true(json_is(json_get(first, SLICE("items")), JSON_NUMBER));
    assert_false(slice_equal(json_string(json_get(first, SLICE("by"))), SLICE("another node")));
    close_scene(&s);
}

/* ---- answers that are wrong ---- */

static Slice cut(Arena *arena UNUSED, Slice answer, size_t turn)
{
    return slice_first(answer, turn);
}

static Slice flip(Arena *arena, Slice answer, size_t turn)
{
    char *bytes = arena_alloc(arena, answer.len);
    memcpy(bytes, answer.ptr, answer.len);
    bytes[turn % answer.len] ^= (char)(1 << turn % 8);
    return slice_make(bytes, answer.len);
}

static void nothing_that_another_node_says_does_harm(void **state UNUSED)
{
    Scene s;
    open_scene(&s);
    static const char *const texts[] = {
        "SELECT VALUE c.n FROM c WHERE c.k = 1 ORDER BY c.n",
        "SELECT VALUE c.id FROM c WHERE c.k = 1",
        "SELECT c.k, MAX(c.n) AS m FROM c GROUP BY c.k",
    };
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        for (s.turn = 0; s.turn < 400; s.turn++) {
            AUTO(buf_done) Buf out;
            buf_init(&out, 1 << 20);
            QueryPage made;
            Error err;
            s.spoil = cut;
            Status status = page(&s, texts[i], SLICE_EMPTY, 1000, &out, &made, &err);
            assert_true(status == STATUS_BAD_REQUEST || (status == STATUS_OK && s.turn > 100));
            s.spoil = flip;
            (void)page(&s, texts[i], SLICE_EMPTY, 1000, &out, &made, &err); /* no harm, no more */
        }
    }
    close_scene(&s);
}

static void nothing_that_is_asked_does_harm(void **state UNUSED)
{
    Scene s;
    open_scene(&s);
    Query *query = NULL;
    Error err;
    assert_int_equal(
        query_parse(&s.arena, SLICE("SELECT * FROM c ORDER BY c.n"), JSON_NONE, &query, &err), 0);
    TestTargets own;
    test_targets_all(&s.t, &own);
    QueryPageOptions options = {
        .targets = own.list, .target_count = 1, .schema = s.t.schema, .clock = &s.t.clock.clock};
    RemoteAsk ask = {.kind = REMOTE_DOCUMENTS,
                     .is_ordered = true,
                     .count_max = 3,
                     .looks_max = 100,
                     .bytes_max = 1000,
                     .targets = 2,
                     .epk_from = SLICE("\x02"),
                     .epk_to = SLICE("\x80"),
                     .place = SLICE_EMPTY};
    AUTO(buf_done) Buf good;
    buf_init(&good, QUERY_ASK_BYTES_MAX);
    remote_ask_write(&ask, &good);
    for (size_t i = 0; i <= good.len * 8; i++) {
        AUTO(buf_done) Buf out;
        QueryTargetWork work;
        Json plan;
        buf_init(&out, QUERY_BATCH_ANSWER_BYTES_MAX);
        Slice bytes = i == good.len * 8 ? buf_view(&good) : SLICE_EMPTY;
        char *changed = arena_alloc(&s.arena, good.len);
        memcpy(changed, good.ptr, good.len);
        if (bytes.len == 0) {
            changed[i / 8] ^= (char)(1 << i % 8);
            bytes = slice_make(changed, good.len);
        }
        Status status = query_batch(query, &options, bytes, &s.arena, &out, &work, &plan, &err);
        assert_true(status == STATUS_OK || status == STATUS_BAD_REQUEST);
        if (i == good.len * 8) {
            RemoteBatch batch;
            assert_int_equal(status, STATUS_OK);
            assert_true(remote_batch_read(buf_view(&out), &batch));
            assert_int_equal(batch.count, 3);
            assert_int_equal(work.documents_read, 3);
        }
        if (i < good.len)
            assert_int_equal(query_batch(query, &options, slice_first(buf_view(&good), i), &s.arena,
                                         &out, &work, &plan, &err),
                             STATUS_BAD_REQUEST);
    }
    test_targets_close(&own);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_those_of_one_node),
        cmocka_unit_test(what_the_index_tells_comes_without_documents),
        cmocka_unit_test(work_is_that_of_one_node),
        cmocka_unit_test(an_order_that_another_node_cannot_serve_is_sorted_here),
        cmocka_unit_test(rows_are_sorted_where_nothing_is_here),
        cmocka_unit_test(a_node_that_is_lost_fails_the_page),
        cmocka_unit_test(a_brief_page_asks_nobody),
        cmocka_unit_test(a_plan_says_that_another_node_reads),
        cmocka_unit_test(a_plan_is_shown_as_the_other_node_tells_it),
        cmocka_unit_test(nothing_that_another_node_says_does_harm),
        cmocka_unit_test(nothing_that_is_asked_does_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
