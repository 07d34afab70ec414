/* page_model_test.c - the planner against the evaluator that scans: random documents, policies and
 * queries from a grammar, page by page. PAGE_SEED=... repeats a run, PAGE_CASES=... is its length.
 */
#include "query/container_testing_int.h"

#include <stdlib.h>

enum { DOCUMENTS = 60, QUERIES = 60, CASES = 40, TEXT_BYTES = 4096 };

static const char *const POLICIES[] = {
    NULL,
    "{\"indexingMode\":\"consistent\",\"automatic\":true,\"includedPaths\":[{\"path\":\"/*\"}],"
    "\"excludedPaths\":[{\"path\":\"/\\\"_etag\\\"/?\"}],\"compositeIndexes\":[[{\"path\":\"/a\","
    "\"order\":\"ascending\"},{\"path\":\"/n\",\"order\":\"descending\"}],[{\"path\":\"/s\","
    "\"order\":\"ascending\"},{\"path\":\"/a\",\"order\":\"ascending\"}]]}",
    "{\"indexingMode\":\"consistent\",\"automatic\":true,\"includedPaths\":[{\"path\":\"/a/?\"},"
    "{\"path\":\"/o/*\"},{\"path\":\"/t/[]/?\"}],\"excludedPaths\":[{\"path\":\"/*\"}]}",
    "{\"indexingMode\":\"none\",\"automatic\":false}",
};

typedef struct Model {
    Random random;
    Arena arena; /* of one case */
    TestContainer t;
    Json documents[DOCUMENTS]; /* as queries see them */
    size_t count;
} Model;

static uint64_t below(Model *m, uint64_t bound)
{
    return random_below(&m->random, bound);
}

static const char *pick(Model *m, const char *const *list, size_t count)
{
    return list[below(m, count)];
}
#define PICK(m, ...)                              \
    pick((m), (const char *const[]){__VA_ARGS__}, \
         sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* ---- documents ---- */

static void print_long(Model *m, Buf *out)
{
    /* Strings that differ only behind what a term keeps of them. */
    buf_byte(out, '"');
    for (int i = 0; i < 120; i++)
        buf_byte(out, 'x');
    buf_format(out, "%llu\"", (unsigned long long)below(m, 4));
}

static void print_scalar(Model *m, Buf *out)
{
    switch (below(m, 10)) {
    case 0:
        buf_slice(out, SLICE("null"));
        return;
    case 1:
        buf_slice(out, below(m, 2) == 0 ? SLICE("true") : SLICE("false"));
        return;
    case 2:
    case 3:
    case 4:
        buf_format(out, "%d", (int)below(m, 7) - 3);
        return;
    case 5:
        buf_slice(out, slice_from_cstr(PICK(m, "0.5", "1e300", "9007199254740993",
                                            "9007199254740992", "-2.25", "-0")));
        return;
    case 6:
        print_long(m, out);
        return;
    default:
        buf_format(out, "\"%s\"",
                   PICK(m, "", "a", "ab", "abc", "B", "b", "b\\u0000c", "\\u00e9t\\u00e9",
                        "\\ud83d\\ude00", "2024-01-01"));
        return;
    }
}

static void print_value(Model *m, Buf *out, int depth)
{
    uint64_t kind = below(m, 8);
    if (kind > 1 || depth == 0) {
        print_scalar(m, out);
        return;
    }
    buf_byte(out, kind == 0 ? '[' : '{');
    uint64_t count = below(m, 4);
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        if (kind == 1)
            buf_format(out, "\"%c\":", (char)('x' + i));
        print_value(m, out, depth - 1);
    }
    buf_byte(out, kind == 0 ? ']' : '}');
}

static void print_document(Model *m, size_t number, Buf *out)
{
    buf_format(out, "{\"id\":\"%zu\",\"pk\":\"p%llu\"", number, (unsigned long long)below(m, 4));
    static const char *const names[] = {"a", "n", "s", "o"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (below(m, 5) == 0)
            continue;
        buf_format(out, ",\"%s\":", names[i]);
        print_value(m, out, 2);
    }
    if (below(m, 4) > 0) {
        buf_slice(out, SLICE(",\"t\":["));
        uint64_t count = below(m, 4);
        for (uint64_t i = 0; i < count; i++) {
            if (i > 0)
                buf_byte(out, ',');
            print_value(m, out, 1);
        }
        buf_byte(out, ']');
    }
    buf_byte(out, '}');
}

static Json make_document(Model *m, size_t number)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 64 << 10);
    print_document(m, number, &text);
    return parse_json(&m->arena, arena_cstr(&m->arena, buf_view(&text)));
}

/* Reads everything back, with its system properties, by the way that lists take. */
static void read_back(Model *m)
{
    m->count = 0;
    for (size_t i = 0; i < m->t.partition_count; i++) {
        Error err;
        PartitionView *view = NULL;
        PartitionScan *scan = NULL;
        ScanOptions options = {.order = SCAN_BY_NUMBER};
        assert_int_equal(partition_view_open(m->t.partitions[i], m->t.schema, &view, &err), 0);
        assert_int_equal(partition_view_scan(view, &options, &scan, &err), 0);
        for (;;) {
            Item item;
            bool found = false;
            assert_int_equal(partition_scan_next(scan, &item, &found, &err), 0);
            if (!found)
                break;
            item.document = json_trust(json_bytes(&m->arena, item.document));
            m->documents[m->count++] = item_document(&m->arena, m->t.schema, &item);
        }
        partition_scan_close(scan);
        partition_view_close(view);
    }
}

static void fill(Model *m)
{
    for (size_t i = 0; i < DOCUMENTS; i++)
        test_write(&m->t, ITEM_UPSERT, make_document(m, below(m, DOCUMENTS)));
    read_back(m);
}

/* ---- queries ---- */

static const char *path(Model *m)
{
    return PICK(m, "c.a", "c.n", "c.s", "c.o", "c.o.x", "c.o.y", "c.t", "c.t[0]", "c.id", "c.pk",
                "c[\"a\"]", "c.none", "c.o[\"x\"]", "c._ts");
}

static void print_constant(Model *m, Buf *out)
{
    switch (below(m, 12)) {
    case 0:
        buf_slice(out, SLICE("undefined"));
        return;
    case 1:
        buf_slice(out, slice_from_cstr(PICK(m, "[1]", "{\"x\":1}", "[]")));
        return;
    case 2:
        buf_slice(out, slice_from_cstr(PICK(m, "(1 + 1)", "-1", "CONCAT('a','b')", "'p1'", "'7'")));
        return;
    default:
        print_scalar(m, out);
    }
}

static void print_predicate(Model *m, Buf *out, const char *alias)
{
    const char *p = alias != NULL ? alias : path(m);
    switch (below(m, 14)) {
    case 0:
    case 1:
    case 2:
        buf_format(out, "%s %s ", p, PICK(m, "=", "!=", "<", "<=", ">", ">="));
        print_constant(m, out);
        return;
    case 3:
        print_constant(m, out);
        buf_format(out, " %s %s", PICK(m, "=", "<", ">="), p);
        return;
    case 4:
        buf_format(out, "%s %sIN (", p, PICK(m, "", "NOT "));
        print_constant(m, out);
        buf_slice(out, SLICE(", "));
        print_constant(m, out);
        buf_byte(out, ')');
        return;
    case 5:
        buf_format(out, "(%s %sBETWEEN ", p, PICK(m, "", "NOT "));
        print_constant(m, out);
        buf_slice(out, SLICE(" AND "));
        print_constant(m, out);
        buf_byte(out, ')');
        return;
    case 6:
        buf_format(out, "%s(%s)",
                   PICK(m, "IS_DEFINED", "IS_NULL", "IS_BOOL", "IS_NUMBER", "IS_STRING", "IS_ARRAY",
                        "IS_OBJECT", "IS_PRIMITIVE", "IS_INTEGER"),
                   p);
        return;
    case 7:
        buf_format(out, "%s(%s, %s%s)",
                   PICK(m, "STARTSWITH", "CONTAINS", "ENDSWITH", "STRINGEQUALS"), p,
                   PICK(m, "'a'", "'ab'", "''", "'B'", "'xxxxxxxxxx'", "5"),
                   PICK(m, "", ", false", ", true"));
        return;
    case 8:
        buf_format(out, "%s %sLIKE %s", p, PICK(m, "", "NOT "),
                   PICK(m, "'a%'", "'%b%'", "'ab'", "'a_'", "'_'", "'[ab]%'", "'x%1'", "'%'"));
        return;
    case 9:
        buf_format(out, "ARRAY_CONTAINS(%s, ", p);
        print_constant(m, out);
        buf_byte(out, ')');
        return;
    case 10:
        buf_format(out, "ARRAY_CONTAINS([1, 'a', null, true], %s)", p);
        return;
    case 11:
        buf_format(out, "%s",
                   PICK(m, "c.a", "c.n % 2 = 0", "LENGTH(c.s) > 1", "LOWER(c.s) = 'b'", "c.a = c.n",
                        "c.n + c.a > 1", "true", "false", "NOT IS_DEFINED(c.a) OR c.a > 1",
                        "(c.a ?? 1) = 1", "c.n > 0 ? true : false", "ABS(c.n) = 1", "c._ts > 0"));
        return;
    case 12:
        buf_format(out, "EXISTS(SELECT VALUE e FROM e IN %s WHERE ", PICK(m, "c.t", "c.o", "c.a"));
        print_predicate(m, out, "e");
        buf_byte(out, ')');
        return;
    default:
        buf_format(out, "ARRAY_CONTAINS_%s(c.t, 1, 'a')", PICK(m, "ANY", "ALL"));
    }
}

static void print_condition(Model *m, Buf *out, int depth)
{
    uint64_t kind = depth == 0 ? 9 : below(m, 10);
    if (kind < 3) {
        buf_byte(out, '(');
        print_condition(m, out, depth - 1);
        buf_slice(out, kind == 0 ? SLICE(" OR ") : SLICE(" AND "));
        print_condition(m, out, depth - 1);
        buf_byte(out, ')');
    } else if (kind == 3) {
        buf_slice(out, SLICE("NOT ("));
        print_condition(m, out, depth - 1);
        buf_byte(out, ')');
    } else {
        print_predicate(m, out, NULL);
    }
}

typedef struct RandomQuery {
    char text[TEXT_BYTES];
    bool is_ordered; /* the first element of each result is what was ordered by */
    bool is_descending;
    bool is_cut; /* by TOP or LIMIT: which of the results come is not said */
} RandomQuery;

static void print_order(Model *m, RandomQuery *q, Buf *out)
{
    static const char *const paths[] = {"c.a", "c.n", "c.s", "c.o.x", "c._ts", "c.id"};
    const char *by = pick(m, paths, ARRAY_COUNT(paths));
    q->is_ordered = true;
    if (below(m, 5) == 0) {
        bool down = below(m, 2) == 0;
        buf_format(out, "SELECT VALUE [c.a ?? '-', c.id] FROM c ORDER BY c.a %s, c.n %s",
                   down ? "DESC" : "ASC", down ? "ASC" : "DESC");
        return;
    }
    if (below(m, 3) == 0) {
        q->is_cut = true;
        buf_format(out, "SELECT TOP %u ", (unsigned)below(m, 20));
    } else {
        buf_slice(out, SLICE("SELECT "));
    }
    buf_format(out, "VALUE [%s ?? '-', c.id] FROM c", by);
    if (below(m, 3) > 0) {
        buf_slice(out, SLICE(" WHERE "));
        print_condition(m, out, 2);
    }
    buf_format(out, " ORDER BY %s %s", by, PICK(m, "", "ASC", "DESC"));
    if (!q->is_cut && below(m, 4) == 0) {
        q->is_cut = true;
        buf_format(out, " OFFSET %u LIMIT %u", (unsigned)below(m, 10), (unsigned)below(m, 20));
    }
}

static void print_plain(Model *m, RandomQuery *q, Buf *out)
{
    const char *select = PICK(m, "*", "VALUE c", "c.id, c.a", "VALUE c.a", "VALUE c.o.x",
                              "c._rid, c.a", "VALUE {\"k\": c.n, \"ts\": c._etag}", "c");
    if (below(m, 6) == 0) {
        q->is_cut = true;
        buf_format(out, "SELECT TOP %u %s FROM c", (unsigned)below(m, 12), select);
    } else if (below(m, 4) == 0) {
        buf_format(out, "SELECT c.id, e FROM c JOIN e IN %s", PICK(m, "c.t", "c.o", "c.a"));
        buf_slice(out, SLICE(" WHERE "));
        if (below(m, 2) == 0)
            print_predicate(m, out, "e");
        else
            print_condition(m, out, 1);
        return;
    } else {
        buf_format(out, "SELECT %s FROM c", select);
    }
    if (below(m, 8) > 0) {
        buf_slice(out, SLICE(" WHERE "));
        print_condition(m, out, 3);
    }
}

static void print_grouped(Model *m, Buf *out)
{
    const char *by = PICK(m, "c.a", "c.n", "c.o.x", "c.pk");
    switch (below(m, 5)) {
    case 0:
        buf_format(out, "SELECT %s AS k, COUNT(1) AS n, COUNT(c.s) AS s FROM c", by);
        break;
    case 1:
        buf_format(out, "SELECT VALUE %s FROM c",
                   PICK(m, "COUNT(1)", "COUNT(c.a)", "MIN(c.n)", "MAX(c.n)", "MIN(c.id)",
                        "MAX(c.a)", "SUM(c.n)", "COUNT(c)"));
        by = NULL;
        break;
    case 2:
        buf_format(out, "SELECT DISTINCT VALUE %s FROM c", by);
        by = NULL;
        break;
    case 3:
        buf_format(out, "SELECT COUNT(1) AS n, MIN(c.id) AS low, MAX(c._ts) AS high FROM c");
        by = NULL;
        break;
    default:
        buf_format(out, "SELECT %s AS k, MAX(c.id) AS high FROM c", by);
    }
    if (below(m, 2) == 0) {
        buf_slice(out, SLICE(" WHERE "));
        print_condition(m, out, 2);
    }
    if (by != NULL)
        buf_format(out, " GROUP BY %s", by);
}

static void make_query(Model *m, RandomQuery *q)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, TEXT_BYTES - 1);
    *q = (RandomQuery){0};
    switch (below(m, 4)) {
    case 0:
        print_order(m, q, &text);
        break;
    case 1:
        print_grouped(m, &text);
        break;
    default:
        print_plain(m, q, &text);
    }
    assert_false(buf_full(&text));
    memcpy(q->text, text.ptr, text.len);
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

static size_t run_pages(Model *m, const Query *query, Arena *arena, Json **results, Error *err)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 16 << 20);
    buf_byte(&text, '[');
    QueryTarget targets[TEST_PARTITIONS_MAX];
    static const char *const bounds[] = {"", "\x16", "\x2B", "\xFF"};
    size_t n = m->t.partition_count;
    Slice position = SLICE_EMPTY;
    uint32_t size = below(m, 2) == 0 ? UINT32_MAX : (uint32_t)below(m, 7) + 1;
    size_t count = 0;
    for (int page = 0; page < 2000; page++) {
        for (size_t i = 0; i < n; i++) {
            targets[i] = (QueryTarget){.is_whole = true};
            targets[i].epk_from = slice_from_cstr(n == 1 ? "" : bounds[i]);
            targets[i].epk_to = slice_from_cstr(i + 1 == n ? "\xFF" : bounds[i + 1]);
            if (partition_view_open(m->t.partitions[i], m->t.schema, &targets[i].view, err) !=
                STATUS_OK)
                fail_msg("%s", err->message);
        }
        QueryPageOptions options = {
            .targets = targets,
            .target_count = n,
            .schema = m->t.schema,
            .position = position,
            .items_max = size,
            .bytes_max = 1 << 20,
            .clock = clock_real(),
            .wants_explain = true,
        };
        QueryPage out;
        if (page > 0 && text.len > 1 && text.ptr[text.len - 1] != ',')
            buf_byte(&text, ',');
        Status status = query_page(query, &options, arena, &text, &out, err);
        for (size_t i = 0; i < n; i++)
            partition_view_close(targets[i].view);
        if (status != STATUS_OK)
            return SIZE_MAX;
        assert_true(out.count <= size);
        count += out.count;
        if (out.is_done)
            break;
        position = out.position;
    }
    if (text.len > 1 && text.ptr[text.len - 1] == ',')
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

static bool is_refusal(const Error *err)
{
    return strstr(err->message, "order-by item is excluded") != NULL ||
           strstr(err->message, "corresponding composite index") != NULL;
}

/* There is no order among arrays, nor among objects. */
static bool same_place(Json a, Json b)
{
    JsonType type = json_type(a);
    return type == json_type(b) && (type >= JSON_ARRAY || json_compare(a, b) == 0);
}

static bool same(Json a, Json b)
{
    return json_compare(a, b) == 0;
}

/* As text and back, as the results of a page were. */
static Json normal(Arena *arena, Json value)
{
    return parse_json(arena, arena_cstr(arena, json_print_arena(arena, value)));
}

static const char *check_results(const RandomQuery *q, Json *ours, size_t count, Json *expected,
                                 size_t expected_count)
{
    if (count != expected_count)
        return "another number of results";
    if (q->is_ordered) {
        for (size_t i = 0; i < count; i++) {
            if (!same_place(json_at(ours[i], 0), json_at(expected[i], 0)))
                return "another order";
        }
    }
    if (q->is_cut)
        return NULL;
    sort_results(ours, count);
    sort_results(expected, expected_count);
    for (size_t i = 0; i < count; i++) {
        if (!same(ours[i], expected[i]))
            return "other results";
    }
    return NULL;
}

static void run_case(Model *m, uint64_t seed)
{
    RandomQuery q;
    make_query(m, &q);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Error err;
    Error reference_err;
    Query *query = NULL;
    if (query_parse(&arena, slice_from_cstr(q.text), JSON_NONE, &query, &err) != STATUS_OK)
        fail_msg("seed %llu: %s: %s", (unsigned long long)seed, q.text, err.message);
    Json *expected = NULL;
    size_t expected_count = 0;
    Status reference = query_run_with(query, (QueryOptions){.steps_max = 100000000}, m->documents,
                                      m->count, &arena, &expected, &expected_count, &reference_err);
    for (size_t i = 0; i < expected_count; i++)
        expected[i] = normal(&arena, expected[i]);
    Json *ours = NULL;
    size_t count = run_pages(m, query, &arena, &ours, &err);
    if (count == SIZE_MAX && reference == STATUS_OK && is_refusal(&err))
        return;
    if ((count == SIZE_MAX) != (reference != STATUS_OK))
        fail_msg("seed %llu: %s: %s", (unsigned long long)seed, q.text,
                 count == SIZE_MAX ? err.message : reference_err.message);
    if (count == SIZE_MAX)
        return;
    const char *wrong = check_results(&q, ours, count, expected, expected_count);
    if (wrong == NULL)
        return;
    print_message("ours (%zu):\n", count);
    for (size_t i = 0; i < count; i++)
        print_message("  %s\n", arena_cstr(&arena, json_print_arena(&arena, ours[i])));
    print_message("expected (%zu):\n", expected_count);
    for (size_t i = 0; i < expected_count; i++)
        print_message("  %s\n", arena_cstr(&arena, json_print_arena(&arena, expected[i])));
    fail_msg("seed %llu, %zu partition(s): %s: %s", (unsigned long long)seed, m->t.partition_count,
             q.text, wrong);
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name); /* NOLINT(concurrency-mt-unsafe): before any thread */
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static void planned_queries_answer_as_scans_do(void **state)
{
    (void)state;
    uint64_t first = setting("PAGE_SEED", clock_monotonic_us(clock_real()) % 1000000);
    uint64_t cases = setting("PAGE_CASES", CASES);
    print_message("PAGE_SEED=%llu\n", (unsigned long long)first);
    for (uint64_t seed = first; seed < first + cases; seed++) {
        Model *m = MEM_NEW(Model);
        random_init(&m->random, seed);
        arena_init(&m->arena, 64 << 10);
        const char *policy = pick(m, POLICIES, ARRAY_COUNT(POLICIES));
        test_container_open(&m->t, policy, below(m, 3) == 0 ? 3 : 1);
        fill(m);
        for (int i = 0; i < QUERIES; i++)
            run_case(m, seed);
        test_container_close(&m->t);
        arena_done(&m->arena);
        mem_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planned_queries_answer_as_scans_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
