/* page_model_test.c - the planner against the evaluator that scans: random documents, policies and
 * queries from a grammar, page by page, over whole containers, ranges and partition keys.
 * ORRERY_TEST_SEED=... repeats a run, PAGE_CASES=... is its length.
 */
#include "base/test_seed.h"
#include "query/eval/functions_testing_int.h"
#include "query/eval/query_testing_int.h"
#include "query/page/container_testing_int.h"
#include "query/page/page_random_int.h"
#include "query/page/remote_testing_int.h"

#include <ctype.h>
#include <math.h>

enum { DOCUMENTS = 60, QUERIES = 60, CASES = 150, PAGES_MAX = 5000, CUTS_MAX = 3 };

typedef struct ModelDocument {
    Json json; /* as queries see it */
    Epk epk;
} ModelDocument;

typedef struct Model {
    uint64_t seed;
    Random random;
    Arena arena; /* of one seed */
    TestContainer t;
    ModelDocument documents[DOCUMENTS];
    char policy[RANDOM_POLICY_BYTES];
    size_t count;
    Slice query; /* at hand, for messages */
} Model;

/* What a query is asked for, and how its pages end. */
typedef struct Scope {
    Slice epk_from;
    Slice epk_to;
    PartitionKey key;
    bool has_key;
    Slice cuts[CUTS_MAX]; /* of the targets */
    size_t cut_count;
    bool is_recut; /* for every page: partitions split and merge meanwhile */
    uint32_t items_max;
    size_t bytes_max;
    uint64_t page_us; /* 0 for no limit */
    uint64_t index_keys_max;
    bool any_plan;      /* not only the best */
    size_t slice_items; /* of a helper; 0 if one thread reads the page alone */
    bool has_remote;    /* some targets are another node's, for every page others */
} Scope;

static Workers *workers;

static uint64_t below(Model *m, uint64_t bound)
{
    return random_below(&m->random, bound);
}

/* ---- documents ---- */

static Json make_document(Model *m, uint64_t number)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 64 << 10);
    random_document(&m->random, number, m->t.options.ttl_s != 0, &text);
    return parse_json(&m->arena, arena_cstr(&m->arena, buf_view(&text)));
}

/* Reads everything back, with its system properties, by the way that lists take. */
static void read_back(Model *m)
{
    m->count = 0;
    for (size_t i = 0; i < m->t.partition_count; i++) {
        Error err;
        AUTO(partition_view_close) PartitionView *view = NULL;
        AUTO(partition_scan_close) PartitionScan *scan = NULL;
        ScanOptions options = {.order = SCAN_BY_NUMBER};
        assert_int_equal(
            partition_view_open(m->t.partitions[i], m->t.schema, STORE_READ_ANY, &view, &err), 0);
        assert_int_equal(partition_view_scan(view, &options, &scan, &err), 0);
        for (;;) {
            Item item;
            bool found = false;
            assert_int_equal(partition_scan_next(scan, &item, &found, &err), 0);
            if (!found)
                break;
            ModelDocument *document = &m->documents[m->count++];
            item.document = json_trust(json_bytes(&m->arena, item.document));
            document->json = item_document(&m->arena, m->t.schema, &item);
            PartitionKey key = test_key(&m->t, document->json);
            epk_make(m->t.schema->key.kind, &key, &document->epk);
        }
    }
}

static void fill(Model *m)
{
    bool has_unindexed = below(m, 4) == 0;
    for (size_t i = 0; i < DOCUMENTS; i++) {
        IndexDirective directive =
            has_unindexed && below(m, 3) == 0 ? INDEX_EXCLUDE : INDEX_DEFAULT;
        test_write(&m->t, ITEM_UPSERT, make_document(m, below(m, DOCUMENTS)), directive);
        if (below(m, 8) == 0)
            atomic_fetch_add(&m->t.clock.wall_us, 2000000);
    }
    atomic_fetch_add(&m->t.clock.wall_us, below(m, 40) * 1000000);
    read_back(m);
}

/* ---- scopes ---- */

static Slice random_bound(Model *m, Arena *arena)
{
    uint8_t bytes[2] = {(uint8_t)below(m, 64), (uint8_t)below(m, 256)};
    return arena_copy(arena, slice_make(bytes, sizeof(bytes)));
}

static void choose_cuts(Model *m, Arena *arena, Scope *scope)
{
    scope->cut_count = below(m, 2) == 0 ? 0 : (size_t)below(m, CUTS_MAX + 1);
    for (size_t i = 0; i < scope->cut_count; i++) {
        Slice cut = random_bound(m, arena);
        size_t at = i;
        for (; at > 0 && slice_compare(scope->cuts[at - 1], cut) > 0; at--)
            scope->cuts[at] = scope->cuts[at - 1];
        scope->cuts[at] = cut;
    }
}

/* Of a key that some document has, or of its beginning. */
static void choose_key(Model *m, Arena *arena, Scope *scope)
{
    Epk epk;
    scope->has_key = true;
    scope->key = test_key(&m->t, m->documents[below(m, m->count)].json);
    if (scope->key.count > 1 && below(m, 2) == 0)
        scope->key.count = 1;
    epk_make(m->t.schema->key.kind, &scope->key, &epk);
    AUTO(buf_done) Buf end;
    buf_init(&end, EPK_BYTES_MAX + 1);
    buf_slice(&end, epk_slice(&epk));
    buf_byte(&end, 0xFF);
    scope->epk_from = arena_copy(arena, epk_slice(&epk));
    scope->epk_to = arena_copy(arena, buf_view(&end));
}

static void choose_scope(Model *m, Arena *arena, Scope *scope)
{
    *scope = (Scope){.epk_to = SLICE("\xFF"), .items_max = UINT32_MAX, .bytes_max = 1 << 20};
    uint64_t kind = below(m, 6);
    if (kind == 0 && m->count > 0) {
        choose_key(m, arena, scope);
    } else if (kind == 1) {
        scope->epk_from = random_bound(m, arena);
        scope->epk_to = random_bound(m, arena);
    }
    choose_cuts(m, arena, scope);
    scope->is_recut = below(m, 2) == 0;
    if (below(m, 2) == 0)
        scope->items_max = (uint32_t)below(m, 7) + 1;
    if (below(m, 6) == 0)
        scope->bytes_max = (size_t)below(m, 2000);
    if (below(m, 4) == 0)
        scope->page_us = below(m, 200) + 1;
    if (below(m, 6) == 0)
        scope->index_keys_max = below(m, 100) + 1;
    scope->any_plan = below(m, 2) == 0;
    if (below(m, 2) == 0)
        scope->slice_items = (size_t)below(m, 30) + 1;
    scope->has_remote = below(m, 2) == 0;
}

static size_t documents_in(Model *m, const Scope *scope, Json *out)
{
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++) {
        Slice epk = epk_slice(&m->documents[i].epk);
        if (slice_compare(epk, scope->epk_from) >= 0 && slice_compare(epk, scope->epk_to) < 0)
            out[count++] = m->documents[i].json;
    }
    return count;
}

/* ---- pages ---- */

/* One target is always here: a page is made where something of it is. */
static void hide_targets(Model *m, TestRemote *remote, TestTargets *targets)
{
    size_t here = targets->count == 0 ? 0 : (size_t)below(m, targets->count);
    for (size_t i = 0; i < targets->count; i++) {
        if (i != here && below(m, 2) == 0)
            test_remote_hide(remote, targets->list, i);
    }
}

static Status run_page(Model *m, const Query *query, Arena *arena, Scope *scope, Slice position,
                       Buf *text, QueryPage *out, Error *err)
{
    if (scope->is_recut)
        choose_cuts(m, arena, scope);
    TestTargets targets;
    test_targets_open(&m->t, scope->epk_from, scope->epk_to, scope->cuts, scope->cut_count,
                      &targets);
    const Clock *clock = &m->t.clock.clock;
    FakeFunctions fake = {0};
    QueryPageOptions options = {
        .targets = targets.list,
        .target_count = targets.count,
        .schema = m->t.schema,
        .key = scope->has_key ? &scope->key : NULL,
        .position = position,
        .items_max = scope->items_max,
        .bytes_max = scope->bytes_max,
        .steps_max = 100000000,
        .index_keys_max = scope->index_keys_max,
        .clock = clock,
        .plan_random = scope->any_plan ? &m->random : NULL,
        .wants_explain = scope->slice_items == 0,
        .wants_indexes = true,
        .workers = scope->slice_items == 0 ? NULL : workers,
        .slice_items = scope->slice_items,
        .functions = &FAKE_FUNCTIONS,
        .functions_context = &fake,
    };
    TestTargets shown = targets;
    TestRemote remote = {.sizes = &m->random};
    if (scope->has_remote) {
        test_remote_begin(&remote, query, &options, &targets);
        hide_targets(m, &remote, &shown);
        options.targets = shown.list;
    }
    atomic_store(&m->t.clock.step_us, scope->page_us == 0 ? 0 : below(m, 60) + 1);
    if (scope->page_us != 0)
        options.deadline_us = clock_monotonic_us(clock) + scope->page_us;
    Status status = query_page(query, &options, arena, text, out, err);
    atomic_store(&m->t.clock.step_us, 0);
    test_targets_close(&targets);
    return status;
}

/* SIZE_MAX if it fails. */
static size_t run_pages(Model *m, const Query *query, Arena *arena, Scope *scope, Json **results,
                        Error *err)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 16 << 20);
    buf_byte(&text, '[');
    Slice position = SLICE_EMPTY;
    size_t count = 0;
    for (int page = 0;; page++) {
        QueryPage out;
        if (page == PAGES_MAX)
            fail_msg("seed %llu: more than %d pages of %.*s", (unsigned long long)m->seed,
                     PAGES_MAX, SLICE_ARG(m->query));
        if (count > 0 && text.ptr[text.len - 1] != ',')
            buf_byte(&text, ',');
        size_t before = text.len;
        if (run_page(m, query, arena, scope, position, &text, &out, err) != STATUS_OK)
            return SIZE_MAX;
        assert_true(out.count <= scope->items_max);
        assert_true(out.count <= 1 || text.len - before <= scope->bytes_max);
        assert_true((out.explain.at != NULL) == (scope->slice_items == 0));
        count += out.count;
        if (out.is_done)
            break;
        assert_true(out.position.len > 0 && out.position.len <= QUERY_POSITION_BYTES_MAX);
        position = out.position;
    }
    if (text.ptr[text.len - 1] == ',')
        text.len--;
    buf_byte(&text, ']');
    Json array = parse_json(arena, arena_cstr(arena, buf_view(&text)));
    assert_int_equal(json_count(array), count);
    *results = ARENA_NEW_ARRAY(arena, Json, count + 1);
    JsonIter it = json_iter(array);
    for (size_t i = 0; json_next(&it); i++)
        (*results)[i] = it.value;
    return count;
}

/* ---- comparison ---- */

static int compare_results(const void *a, const void *b)
{
    return json_compare(*(const Json *)a, *(const Json *)b);
}

static void sort_results(Json *list, size_t count)
{
    if (count > 0)
        qsort(list, count, sizeof(Json), compare_results);
}

/* There is no order among arrays, nor among objects. */
static bool same_place(Json a, Json b)
{
    JsonType type = json_type(a);
    return type == json_type(b) && (type >= JSON_ARRAY || json_compare(a, b) == 0);
}

/* Compares all elements but the last, which is the id. After two arrays the order is not known. */
static bool same_keys(Json ours, Json expected)
{
    for (size_t i = 0; i + 1 < json_count(expected); i++) {
        Json a = json_at(ours, i);
        if (!same_place(a, json_at(expected, i)))
            return false;
        if (json_type(a) >= JSON_ARRAY)
            break;
    }
    return true;
}

static bool same_order(const RandomQuery *q, const Json *ours, const Json *expected, size_t count)
{
    bool is_same = true;
    for (size_t i = 0; i < count && is_same; i++) {
        if (q->order == RANDOM_ORDER_KEYS)
            is_same = same_keys(ours[i], expected[i]);
        else if (q->order == RANDOM_ORDER_SELF)
            is_same = same_place(ours[i], expected[i]);
    }
    return is_same;
}

/* Whether 'all', which are sorted, have all of 'some'. */
static bool are_among(Json *some, size_t count, const Json *all, size_t all_count)
{
    sort_results(some, count);
    size_t at = 0;
    for (size_t i = 0; i < count; i++, at++) {
        while (at < all_count && json_compare(all[at], some[i]) != 0)
            at++;
        if (at >= all_count)
            return false;
    }
    return true;
}

typedef struct Answer {
    Json *results;
    size_t count; /* SIZE_MAX if the query failed */
    Error err;
} Answer;

/* As text and back, as the results of a page are. */
static Json normal(Arena *arena, Json value)
{
    return parse_json(arena, arena_cstr(arena, json_print_arena(arena, value)));
}

/* ---- calls ---- */

static size_t path_length(const char *text)
{
    size_t len = 1;
    while (text[len] == '.' && text[len + 1] != '\0') {
        len++;
        while (isalnum((unsigned char)text[len]) || text[len] == '_')
            len++;
    }
    return len > 1 && text[len] != '[' && text[len] != '(' ? len : 0;
}

static bool begins_path(const char *text, size_t at)
{
    bool is_inside = at > 0 && (isalnum((unsigned char)text[at - 1]) || text[at - 1] == '_' ||
                                text[at - 1] == '.' || text[at - 1] == '@');
    return !is_inside && text[at] == 'c' && text[at + 1] == '.';
}

/* Puts udf.same(...) around some paths of WHERE and of the projection, which changes nothing. */
static void add_calls(Model *m, RandomQuery *q)
{
    char before[RANDOM_TEXT_BYTES];
    memcpy(before, q->text, sizeof(before));
    AUTO(buf_done) Buf out;
    buf_init(&out, RANDOM_TEXT_BYTES - 64);
    unsigned calls = 0;
    bool is_distinct = strncmp(before, "SELECT DISTINCT", 15) == 0;
    bool may_call = !is_distinct;
    for (size_t at = 0; before[at] != '\0';) {
        if (strncmp(&before[at], " FROM ", 6) == 0 || strncmp(&before[at], " ORDER BY ", 10) == 0 ||
            strncmp(&before[at], " GROUP BY ", 10) == 0)
            may_call = false;
        else if (strncmp(&before[at], " WHERE ", 7) == 0)
            may_call = true;
        size_t len = may_call && begins_path(before, at) ? path_length(&before[at]) : 0;
        if (len == 0 || calls == 10 || below(m, 3) == 0) {
            buf_byte(&out, (uint8_t)before[at++]);
            continue;
        }
        calls++;
        buf_format(&out, "udf.same(%.*s)", (int)len, &before[at]);
        at += len;
    }
    if (buf_full(&out))
        return;
    memcpy(q->text, out.ptr, out.len);
    q->text[out.len] = '\0';
}

static Answer run_reference(Arena *arena, const char *text, const Json *documents, size_t count)
{
    Answer answer = {.count = SIZE_MAX};
    Query *query = NULL;
    if (query_parse(arena, slice_from_cstr(text), parse_json(arena, RANDOM_PARAMETERS), &query,
                    &answer.err) != STATUS_OK)
        return answer;
    size_t found = 0;
    FakeFunctions fake = {0};
    QueryOptions options = {
        .steps_max = 100000000, .functions = &FAKE_FUNCTIONS, .functions_context = &fake};
    if (query_run_with(query, options, documents, count, arena, &answer.results, &found,
                       &answer.err) != STATUS_OK)
        return answer;
    for (size_t i = 0; i < found; i++)
        answer.results[i] = normal(arena, answer.results[i]);
    answer.count = found;
    return answer;
}

/* Doubles are added in the order in which documents come, and none is promised: sums that have to
 * be rounded may differ in their last digits. What is added here has no large negatives, so that no
 * more than those is lost. */
static bool are_near(const Answer *a, const Answer *b)
{
    for (size_t i = 0; i < a->count; i++) {
        if (!json_is(a->results[i], JSON_NUMBER) || !json_is(b->results[i], JSON_NUMBER))
            return false;
        double x = json_number(a->results[i]);
        double y = json_number(b->results[i]);
        if (fabs(x - y) > 1e-12 * fmax(fabs(y), 1))
            return false;
    }
    return true;
}

static const char *check_results(const RandomQuery *q, const Answer *ours, const Answer *expected,
                                 const Answer *uncut)
{
    if (ours->count != expected->count)
        return "another number of results";
    if (q->is_sum)
        return are_near(ours, expected) ? NULL : "another sum";
    if (!same_order(q, ours->results, expected->results, ours->count))
        return "another order";
    sort_results(uncut->results, uncut->count);
    if (!are_among(ours->results, ours->count, uncut->results, uncut->count))
        return "other results";
    return NULL;
}

static bool is_refusal(const RandomQuery *q, const Scope *scope, const Error *err)
{
    return strstr(err->message, "order-by item is excluded") != NULL ||
           strstr(err->message, "corresponding composite index") != NULL ||
           (scope->page_us != 0 && q->is_whole && strstr(err->message, "takes longer") != NULL);
}

static void print_results(Arena *arena, const char *title, const Answer *answer)
{
    print_message("%s (%zu):\n", title, answer->count);
    for (size_t i = 0; answer->count != SIZE_MAX && i < answer->count; i++)
        print_message("  %s\n", arena_cstr(arena, json_print_arena(arena, answer->results[i])));
}

static void run_case(Model *m)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    RandomQuery q;
    Scope scope;
    Json documents[DOCUMENTS];
    random_query(&m->random, &q);
    if (below(m, 4) == 0)
        add_calls(m, &q);
    choose_scope(m, &arena, &scope);
    size_t count = documents_in(m, &scope, documents);
    const char *text = random_cut_text(&arena, &q);
    m->query = slice_from_cstr(text);
    Answer expected = run_reference(&arena, text, documents, count);
    Answer uncut = run_reference(&arena, q.text, documents, count);
    Answer ours = {.count = SIZE_MAX};
    Query *query = NULL;
    if (query_parse(&arena, slice_from_cstr(text), parse_json(&arena, RANDOM_PARAMETERS), &query,
                    &ours.err) != STATUS_OK)
        fail_msg("seed %llu: %s: %s", (unsigned long long)m->seed, text, ours.err.message);
    ours.count = run_pages(m, query, &arena, &scope, &ours.results, &ours.err);
    if (ours.count == SIZE_MAX && expected.count != SIZE_MAX && is_refusal(&q, &scope, &ours.err))
        return;
    const char *wrong = NULL;
    if ((ours.count == SIZE_MAX) != (expected.count == SIZE_MAX))
        wrong = ours.count == SIZE_MAX ? ours.err.message : expected.err.message;
    else if (ours.count != SIZE_MAX)
        wrong = check_results(&q, &ours, &expected, &uncut);
    if (wrong == NULL)
        return;
    print_results(&arena, "ours", &ours);
    print_results(&arena, "expected", &expected);
    print_message("policy: %s\n", m->t.options.policy == NULL ? "-" : m->t.options.policy);
    fail_msg("seed %llu, %zu partition(s): %s: %s", (unsigned long long)m->seed,
             m->t.partition_count, text, wrong);
}

/* ---- runs ---- */

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name); /* NOLINT(concurrency-mt-unsafe): before any thread */
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static void run_seed(uint64_t seed)
{
    Model *m = MEM_NEW(Model);
    m->seed = seed;
    random_init(&m->random, seed);
    arena_init(&m->arena, 64 << 10);
    TestOptions options = {
        .policy = random_policy(&m->random, m->policy),
        .partitions = below(m, 3) == 0 ? 3 : 1,
        .ttl_s = below(m, 3) == 0 ? -1 : 0,
        .is_hierarchical = below(m, 4) == 0,
    };
    test_container_open(&m->t, options);
    fill(m);
    for (int i = 0; i < QUERIES; i++)
        run_case(m);
    test_container_close(&m->t);
    arena_done(&m->arena);
    mem_free(m);
}

static void planned_queries_answer_as_scans_do(void **state)
{
    (void)state;
    uint64_t first = test_seed();
    uint64_t cases = setting("PAGE_CASES", CASES);
    workers = workers_open("helper", 4, 64);
    for (uint64_t seed = first; seed < first + cases; seed++)
        run_seed(seed);
    workers_close(workers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planned_queries_answer_as_scans_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
