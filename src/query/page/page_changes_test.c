/* page_changes_test.c - what happens between two pages: documents change, expire and are purged,
 * partitions split and merge, the indexing policy changes and the index is rebuilt. Documents that
 * did not change are neither lost nor repeated. ORRERY_TEST_SEED=... repeats a run, PAGE_CASES=...
 * is its length. */
#include "base/test_seed.h"
#include "query/eval/query_testing_int.h"
#include "query/page/container_testing_int.h"
#include "query/page/page_random_int.h"

enum { DOCUMENTS = 80, QUERIES = 25, CASES = 20, PAGES_MAX = 3000, MANY = 1300 };

typedef struct Model {
    uint64_t seed;
    Random random;
    TestContainer t;
    bool touched[DOCUMENTS]; /* since the query began */
    uint32_t wanted[DOCUMENTS];
    uint32_t seen[DOCUMENTS];
    char text[RANDOM_TEXT_BYTES];
    char policy[RANDOM_POLICY_BYTES];
} Model;

static uint64_t below(Model *m, uint64_t bound)
{
    return random_below(&m->random, bound);
}

static const char *any_policy(Model *m)
{
    return random_policy(&m->random, m->policy);
}

/* ---- changes ---- */

static void write_document(Model *m, uint64_t number)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    AUTO(buf_done) Buf text;
    buf_init(&text, 64 << 10);
    random_document(&m->random, number, m->t.options.ttl_s != 0, &text);
    Json body = parse_json(&arena, arena_cstr(&arena, buf_view(&text)));
    test_write(&m->t, ITEM_UPSERT, body, below(m, 10) == 0 ? INDEX_EXCLUDE : INDEX_DEFAULT);
}

static void delete_document(Model *m, uint64_t number)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Slice text = arena_format(&arena, "{\"id\":\"%llu\",\"pk\":\"p%llu\",\"sub\":%llu}",
                              (unsigned long long)number, (unsigned long long)(number % 5),
                              (unsigned long long)(number % 3));
    ItemWrite item;
    test_fill_write(&m->t, &arena, ITEM_DELETE, parse_json(&arena, arena_cstr(&arena, text)),
                    &item);
    bool done = test_submit(&m->t, &arena, &item, 1);
    assert_true(done || item.status == STATUS_NOT_FOUND);
}

static void change_documents(Model *m)
{
    for (uint64_t i = below(m, 6); i > 0; i--) {
        uint64_t number = below(m, DOCUMENTS / 2) * 2; /* half of them stay as they are */
        m->touched[number] = true;
        if (below(m, 3) == 0)
            delete_document(m, number);
        else
            write_document(m, number);
    }
}

/* ---- pages ---- */

static void open_targets(Model *m, Arena *arena, TestTargets *targets)
{
    Slice cuts[3];
    size_t count = (size_t)below(m, 4);
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[2] = {(uint8_t)(i * 20 + below(m, 20)), (uint8_t)below(m, 256)};
        cuts[i] = arena_copy(arena, slice_make(bytes, sizeof(bytes)));
    }
    test_targets_open(&m->t, SLICE_EMPTY, SLICE("\xFF"), cuts, count, targets);
}

static void count_results(Arena *arena, Buf *text, uint32_t *counts)
{
    buf_byte(text, ']');
    Json array = parse_json(arena, arena_cstr(arena, buf_view(text)));
    JsonIter it = json_iter(array);
    while (json_next(&it)) {
        bool has_keys = json_is(it.value, JSON_ARRAY);
        Json id = has_keys ? json_at(it.value, json_count(it.value) - 1) : it.value;
        uint64_t number = strtoull(arena_cstr(arena, json_string(id)), NULL, 10);
        assert_true(number < DOCUMENTS);
        counts[number]++;
    }
}

typedef struct Pages {
    Arena arena;
    const Query *query;
    uint32_t items_max;
    uint64_t page_us;
    bool any_plan;
    Slice position;
    bool is_done;
    Error err;
} Pages;

/* One more page, and its results to 'counts'. */
static bool read_page(Model *m, Pages *pages, uint32_t *counts)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 16 << 20);
    buf_byte(&text, '[');
    TestTargets targets;
    open_targets(m, &pages->arena, &targets);
    const Clock *clock = &m->t.clock.clock;
    QueryPageOptions options = {
        .targets = targets.list,
        .target_count = targets.count,
        .schema = m->t.schema,
        .position = pages->position,
        .items_max = pages->items_max,
        .bytes_max = 1 << 20,
        .steps_max = 100000000,
        .clock = clock,
        .plan_random = pages->any_plan ? &m->random : NULL,
    };
    atomic_store(&m->t.clock.step_us, pages->page_us == 0 ? 0 : below(m, 60) + 1);
    if (pages->page_us != 0)
        options.deadline_us = clock_monotonic_us(clock) + pages->page_us;
    QueryPage out;
    Status status = query_page(pages->query, &options, &pages->arena, &text, &out, &pages->err);
    atomic_store(&m->t.clock.step_us, 0);
    test_targets_close(&targets);
    if (status != STATUS_OK)
        return false;
    count_results(&pages->arena, &text, counts);
    pages->is_done = out.is_done;
    pages->position = out.position;
    return true;
}

/* What a scan finds now, in one page. */
static bool read_whole(Model *m, Pages *pages)
{
    memset(m->wanted, 0, sizeof(m->wanted));
    memset(m->seen, 0, sizeof(m->seen));
    memset(m->touched, 0, sizeof(m->touched));
    Pages whole = {.query = pages->query, .items_max = UINT32_MAX};
    arena_init(&whole.arena, 64 << 10);
    bool done = read_page(m, &whole, m->wanted);
    assert_true(!done || whole.is_done);
    arena_done(&whole.arena);
    pages->err = whole.err;
    return done;
}

/* A query whose results, or their last elements, are ids. */
static void make_query(Model *m)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, RANDOM_TEXT_BYTES - 1);
    RandomQuery ignored;
    memset(m->text, 0, sizeof(m->text));
    switch (below(m, 3)) {
    case 0:
        random_ordered(&m->random, &ignored, &text);
        break;
    case 1:
        buf_slice(&text, SLICE("SELECT VALUE c.id FROM c JOIN e IN c.t WHERE "));
        random_condition(&m->random, &text, 1);
        break;
    default:
        buf_slice(&text, SLICE("SELECT VALUE c.id FROM c WHERE "));
        random_condition(&m->random, &text, 2);
    }
    memcpy(m->text, text.ptr, text.len);
}

static void check_untouched(const Model *m)
{
    for (size_t i = 0; i < DOCUMENTS; i++) {
        if (!m->touched[i] && m->seen[i] != m->wanted[i])
            fail_msg("seed %llu: %s\n  '%zu' came %u times and not %u", (unsigned long long)m->seed,
                     m->text, i, m->seen[i], m->wanted[i]);
    }
}

static bool is_refusal(const Error *err)
{
    return strstr(err->message, "order-by item is excluded") != NULL ||
           strstr(err->message, "corresponding composite index") != NULL;
}

/* What was begun along an index cannot go on without it; and what is sorted for want of it may take
 * long. */
static bool is_expired(const Error *err)
{
    return strstr(err->message, "The continuation token has expired") != NULL ||
           strstr(err->message, "takes longer") != NULL;
}

static void wait_for_index(const Model *m)
{
    for (size_t i = 0; i < m->t.partition_count; i++) {
        for (int ms = 0; partition_index_progress(m->t.partitions[i]) < 100; ms++) {
            assert_true(ms < 60000);
            (void)usleep(1000);
        }
    }
}

static void run_query_over_changes(Model *m, bool changes_policy)
{
    Pages pages = {.items_max = (uint32_t)below(m, 12) + 1, .any_plan = below(m, 2) == 0};
    arena_init(&pages.arena, 64 << 10);
    if (below(m, 4) == 0)
        pages.page_us = below(m, 200) + 1;
    make_query(m);
    Query *query = NULL;
    if (query_parse(&pages.arena, slice_from_cstr(m->text),
                    parse_json(&pages.arena, RANDOM_PARAMETERS), &query, &pages.err) != STATUS_OK)
        fail_msg("%s: %s", m->text, pages.err.message);
    pages.query = query;
    bool is_served = read_whole(m, &pages);
    bool is_changed = false; /* the policy */
    for (int i = 0; is_served && !pages.is_done; i++) {
        assert_true(i < PAGES_MAX);
        is_served = read_page(m, &pages, m->seen);
        if (!is_served && !(is_changed && (is_refusal(&pages.err) || is_expired(&pages.err))))
            fail_msg("seed %llu: %s: %s", (unsigned long long)m->seed, m->text, pages.err.message);
        change_documents(m);
        if (is_served && changes_policy && below(m, 4) == 0) {
            is_changed = true;
            test_set_policy(&m->t, any_policy(m));
        }
    }
    assert_true(is_served || is_changed || is_refusal(&pages.err));
    if (is_served)
        check_untouched(m);
    if (is_changed)
        wait_for_index(m);
    arena_done(&pages.arena);
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name); /* NOLINT(concurrency-mt-unsafe): before any thread */
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static Model *model_new(uint64_t seed, TestOptions options)
{
    Model *m = MEM_NEW(Model);
    m->seed = seed;
    random_init(&m->random, seed);
    options.policy = any_policy(m);
    test_container_open(&m->t, options);
    for (uint64_t i = 0; i < DOCUMENTS; i++)
        write_document(m, i);
    return m;
}

static void model_free(Model *m)
{
    test_container_close(&m->t);
    mem_free(m);
}

static void documents_that_stay_are_neither_lost_nor_repeated(void **state)
{
    (void)state;
    uint64_t first = test_seed();
    uint64_t cases = setting("PAGE_CASES", CASES);
    for (uint64_t seed = first; seed < first + cases; seed++) {
        Model *m = model_new(seed, (TestOptions){.partitions = seed % 3 == 0 ? 3 : 1,
                                                 .is_hierarchical = seed % 4 == 0});
        for (int i = 0; i < QUERIES; i++)
            run_query_over_changes(m, seed % 2 == 0);
        model_free(m);
    }
}

/* ---- time ---- */

/* An item is gone when its time is over, wherever it is read from. */
static void what_expires_between_pages_is_gone(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        Model *m = model_new(seed, (TestOptions){.ttl_s = -1});
        Pages pages = {.items_max = 5, .any_plan = true};
        arena_init(&pages.arena, 64 << 10);
        Query *query = NULL;
        assert_int_equal(query_parse(&pages.arena,
                                     SLICE("SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.ttl)"),
                                     JSON_NONE, &query, &pages.err),
                         STATUS_OK);
        pages.query = query;
        assert_true(read_whole(m, &pages));
        while (!pages.is_done) {
            assert_true(read_page(m, &pages, m->seen));
            atomic_fetch_add(&m->t.clock.wall_us, 4000000);
        }
        check_untouched(m);
        arena_done(&pages.arena);
        arena_init(&pages.arena, 64 << 10);
        /* All of those that have a time have gone. */
        atomic_fetch_add(&m->t.clock.wall_us, 60000000);
        for (int is_grouped = 0; is_grouped < 2; is_grouped++) {
            Slice text = is_grouped ? SLICE("SELECT VALUE MAX(c.id) FROM c WHERE c.ttl > 0")
                                    : SLICE("SELECT VALUE c.id FROM c WHERE c.ttl > 0");
            assert_int_equal(query_parse(&pages.arena, text, JSON_NONE, &query, &pages.err),
                             STATUS_OK);
            pages.query = query;
            pages.position = SLICE_EMPTY;
            uint32_t counts[DOCUMENTS] = {0};
            assert_true(read_page(m, &pages, counts));
            for (size_t i = 0; i < DOCUMENTS; i++)
                assert_int_equal(counts[i], 0);
        }
        arena_done(&pages.arena);
        model_free(m);
    }
}

/* ---- policies ---- */

/* Whether the results are those of a container that was never indexed. */
static void compare_with_scan(Model *m)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Error err;
    RandomQuery q;
    random_query(&m->random, &q);
    q.cut[0] = '\0';
    const char *text = random_cut_text(&arena, &q);
    Query *query = NULL;
    assert_int_equal(query_parse(&arena, slice_from_cstr(text),
                                 parse_json(&arena, RANDOM_PARAMETERS), &query, &err),
                     STATUS_OK);
    TestTargets targets;
    test_targets_all(&m->t, &targets);
    QueryPageOptions options = {
        .targets = targets.list,
        .target_count = targets.count,
        .schema = m->t.schema,
        .items_max = UINT32_MAX,
        .bytes_max = 16 << 20,
        .steps_max = 1000000000,
        .clock = &m->t.clock.clock,
        .plan_random = &m->random,
    };
    AUTO(buf_done) Buf text_out;
    buf_init(&text_out, 16 << 20);
    buf_byte(&text_out, '[');
    QueryPage out;
    Status status = query_page(query, &options, &arena, &text_out, &out, &err);
    buf_byte(&text_out, ']');
    /* The same snapshots, scanned. */
    size_t count = 0;
    Json *documents = ARENA_NEW_ARRAY(&arena, Json, 2 * MANY);
    for (size_t i = 0; i < targets.count; i++) {
        AUTO(partition_scan_close) PartitionScan *scan = NULL;
        ScanOptions scan_options = {.order = SCAN_BY_NUMBER};
        assert_int_equal(partition_view_scan(targets.list[i].view, &scan_options, &scan, &err), 0);
        for (;;) {
            Item item;
            bool found = false;
            assert_int_equal(partition_scan_next(scan, &item, &found, &err), 0);
            if (!found)
                break;
            item.document = json_trust(json_bytes(&arena, item.document));
            documents[count++] = item_document(&arena, m->t.schema, &item);
        }
    }
    test_targets_close(&targets);
    Json *expected = NULL;
    size_t expected_count = 0;
    Error reference_err;
    Status reference = query_run_with(query, (QueryOptions){.steps_max = 1000000000}, documents,
                                      count, &arena, &expected, &expected_count, &reference_err);
    if (status != STATUS_OK && is_refusal(&err))
        return;
    if (status != reference || (status == STATUS_OK && out.count != expected_count))
        fail_msg("seed %llu: %s: %zu results and not %zu", (unsigned long long)m->seed, text,
                 out.count, expected_count);
}

/* Queries of every kind while the index is being rebuilt under them. */
static void a_rebuild_changes_no_results(void **state)
{
    (void)state;
    Model *m = model_new(test_seed(), (TestOptions){.partitions = 1});
    for (uint64_t i = DOCUMENTS; i < MANY; i++)
        write_document(m, i); /* some pieces of a rebuild */
    for (int round = 0; round < 8; round++) {
        bool is_stalled = below(m, 3) == 0;
        if (is_stalled)
            memory_store_stall(m->t.store);
        test_set_policy(&m->t, any_policy(m));
        for (int i = 0; i < 6; i++)
            compare_with_scan(m);
        if (is_stalled)
            memory_store_release(m->t.store);
        for (int i = 0; i < 6; i++) {
            compare_with_scan(m);
            write_document(m, below(m, MANY));
        }
        while (round % 2 == 0 && partition_index_progress(m->t.partitions[0]) < 100)
            compare_with_scan(m);
    }
    model_free(m);
}

/* ---- chunks ---- */

enum { FILLERS = 6000, ROUNDS = 11, BATCH = 500 };

/* Items that queries do not see, and that take up numbers. */
static void write_fillers(Model *m, size_t from)
{
    for (size_t i = 0; i < FILLERS; i += BATCH) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        ItemWrite writes[BATCH];
        for (size_t j = 0; j < BATCH; j++) {
            Slice text = arena_format(&arena, "{\"id\":\"f%zu\",\"pk\":\"filler\"}", from + i + j);
            test_fill_write(&m->t, &arena, ITEM_CREATE,
                            parse_json(&arena, arena_cstr(&arena, text)), &writes[j]);
            writes[j].directive = INDEX_EXCLUDE;
        }
        assert_true(test_submit(&m->t, &arena, writes, BATCH));
    }
}

/* Sets have a chunk for each 65,536 numbers; here they have a few numbers in each of several. */
static void items_far_apart_are_found(void **state)
{
    (void)state;
    Model *m = model_new(test_seed(), (TestOptions){.partitions = 1});
    for (size_t i = 0; i < ROUNDS; i++) {
        write_fillers(m, i * FILLERS);
        for (uint64_t j = 0; j < 20; j++)
            write_document(m, DOCUMENTS + 20 * i + j);
        if (i == ROUNDS / 2) { /* hidden, and removed by and by */
            test_purge(&m->t, "\"filler\"");
            for (int k = 0; k < 5; k++)
                compare_with_scan(m);
        }
    }
    test_purge(&m->t, "\"filler\"");
    for (int i = 0; i < 100; i++)
        compare_with_scan(m);
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_that_stay_are_neither_lost_nor_repeated),
        cmocka_unit_test(what_expires_between_pages_is_gone),
        cmocka_unit_test(a_rebuild_changes_no_results),
        cmocka_unit_test(items_far_apart_are_found),
    };
    return cmocka_run_group_tests_name("pages and changes", tests, NULL, NULL);
}
