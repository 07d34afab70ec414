/* document_report.c - see document_report_int.h. */
#include "api/items/document_report_int.h"

#include "base/encoding.h"

/* Clients limit the size of headers, Node to 16 KB of all together, and a report on a query may
 * have any length. */
#define REPORT_BYTES_MAX ((size_t)5 << 10)

/* ---- metrics ---- */

/* Returns hundredths of a millisecond, the unit that is printed. It is at least one if anything was
 * done, since clients take 0.00 as "not measured". */
static uint64_t hundredths(uint64_t us, bool was_done)
{
    uint64_t rounded = (us + 9) / 10;
    return rounded == 0 && was_done ? 1 : rounded;
}

static Slice print_metrics(Arena *arena, uint64_t parse_us, const QueryMetrics *m)
{
    uint64_t compile = hundredths(parse_us, true);
    uint64_t index = hundredths(m->index_us, false);
    uint64_t load = hundredths(m->load_us, m->documents_read > 0);
    uint64_t write = hundredths(m->write_us, m->results > 0);
    uint64_t user = hundredths(m->user_us, m->user_calls > 0);
    uint64_t parts = index + load + write + user;
    uint64_t run = hundredths(m->total_us, true);
    run = run > parts ? run : parts; /* each is rounded up */
    double ratio = m->documents_read == 0 ? 1 : (double)m->results / (double)m->documents_read;
    return arena_format(
        arena,
        "totalExecutionTimeInMs=%.2f;queryCompileTimeInMs=%.2f;queryLogicalPlanBuildTimeInMs=0.00;"
        "queryPhysicalPlanBuildTimeInMs=0.00;queryOptimizationTimeInMs=0.00;"
        "VMExecutionTimeInMs=%.2f;indexLookupTimeInMs=%.2f;documentLoadTimeInMs=%.2f;"
        "systemFunctionExecuteTimeInMs=0.00;userFunctionExecuteTimeInMs=%.2f;"
        "retrievedDocumentCount=%llu;retrievedDocumentSize=%llu;outputDocumentCount=%llu;"
        "outputDocumentSize=%llu;writeOutputTimeInMs=%.2f;indexUtilizationRatio=%.2f",
        (double)(compile + run) / 100, (double)compile / 100, (double)run / 100,
        (double)index / 100, (double)load / 100, (double)user / 100,
        (unsigned long long)m->documents_read, (unsigned long long)m->document_bytes_read,
        (unsigned long long)m->results, (unsigned long long)m->result_bytes, (double)write / 100,
        ratio > 1 ? 1.0 : ratio);
}

/* ---- index metrics ---- */

/* Only the first 'count_max' of each kind are reported: see REPORT_BYTES_MAX. */
typedef struct IndexReport {
    const QueryPage *page;
    size_t count_max;
    bool is_v2;
} IndexReport;

static void add_flag(JsonBuilder *b, Slice name, bool value)
{
    json_key(b, name);
    json_add_bool(b, value);
}

static void add_impact(JsonBuilder *b)
{
    json_key(b, SLICE("IndexImpactScore"));
    json_add_string(b, SLICE("High"));
}

static void add_specs(JsonBuilder *b, const IndexReport *report, const Slice *specs, size_t count)
{
    json_begin_array(b);
    for (size_t i = 0; i < count && i < report->count_max; i++) {
        json_begin_object(b);
        if (!report->is_v2) {
            json_key(b, SLICE("FilterExpression"));
            json_add_string(b, SLICE_EMPTY);
        }
        json_key(b, SLICE("IndexSpec"));
        json_add_string(b, specs[i]);
        if (!report->is_v2) {
            add_flag(b, SLICE("FilterPreciseSet"), true);
            add_flag(b, SLICE("IndexPreciseSet"), true);
            add_impact(b);
        }
        json_end(b);
    }
    json_end(b);
}

static void add_composites(JsonBuilder *b, const IndexReport *report, const QueryComposite *list,
                           size_t count, bool is_used)
{
    json_begin_array(b);
    for (size_t i = 0; i < count && i < report->count_max; i++) {
        json_begin_object(b);
        json_key(b, SLICE("IndexSpecs"));
        json_begin_array(b);
        for (size_t j = 0; j < list[i].part_count; j++)
            json_add_string(b, list[i].parts[j]);
        json_end(b);
        if (!report->is_v2)
            add_flag(b, SLICE("IndexPreciseSet"), is_used);
        add_impact(b);
        json_end(b);
    }
    json_end(b);
}

static void add_used(JsonBuilder *b, const IndexReport *report, Slice singles, Slice composites)
{
    const QueryPage *page = report->page;
    json_key(b, singles);
    add_specs(b, report, page->used_paths, page->used_path_count);
    json_key(b, composites);
    add_composites(b, report, page->used_composites, page->used_composite_count, true);
}

static void add_potential(JsonBuilder *b, const IndexReport *report, Slice singles,
                          Slice composites)
{
    const QueryPage *page = report->page;
    json_key(b, singles);
    add_specs(b, report, page->potential_paths, page->potential_path_count);
    json_key(b, composites);
    add_composites(b, report, page->potential_composites, page->potential_composite_count, false);
}

static Slice print_v1(Arena *arena, const IndexReport *report)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    add_used(&b, report, SLICE("UtilizedSingleIndexes"), SLICE("UtilizedCompositeIndexes"));
    add_potential(&b, report, SLICE("PotentialSingleIndexes"), SLICE("PotentialCompositeIndexes"));
    json_end(&b);
    Slice text = json_print_arena(arena, json_built(&b));
    char *encoded = arena_alloc(arena, BASE64_LEN(text.len));
    base64_encode(BASE64_STANDARD, text.ptr, text.len, encoded);
    return slice_make(encoded, BASE64_LEN(text.len));
}

static Slice print_v2(Arena *arena, const IndexReport *report)
{
    static const Slice names[][2] = {
        /* some clients look for the one, some for the other */
        {SLICE_INIT("UtilizedIndexes"), SLICE_INIT("PotentialIndexes")},
        {SLICE_INIT("Utilized"), SLICE_INIT("Potential")}};
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        json_key(&b, names[i][0]);
        json_begin_object(&b);
        add_used(&b, report, SLICE("SingleIndexes"), SLICE("CompositeIndexes"));
        json_end(&b);
        json_key(&b, names[i][1]);
        json_begin_object(&b);
        add_potential(&b, report, SLICE("SingleIndexes"), SLICE("CompositeIndexes"));
        json_end(&b);
    }
    json_end(&b);
    return percent_encode(arena, json_print_arena(arena, json_built(&b)), SLICE("-_."));
}

static Slice print_indexes(Arena *arena, const QueryPage *page, bool is_v2)
{
    IndexReport report = {.page = page, .count_max = 64, .is_v2 = is_v2};
    for (;; report.count_max /= 2) {
        Slice text = is_v2 ? print_v2(arena, &report) : print_v1(arena, &report);
        if (text.len <= REPORT_BYTES_MAX || report.count_max == 0)
            return text;
    }
}

/* ---- explanations ---- */

/* What was done with one partition, without the parts of its filter. */
static void add_outline(JsonBuilder *b, Json partition)
{
    json_begin_object(b);
    for (JsonIter member = json_iter(partition); json_next(&member);) {
        json_key(b, member.name);
        if (!slice_equal(member.name, SLICE("where"))) {
            json_add(b, member.value);
            continue;
        }
        json_begin_object(b);
        for (JsonIter of = json_iter(member.value); json_next(&of);) {
            if (slice_equal(of.name, SLICE("of")))
                continue;
            json_key(b, of.name);
            json_add(b, of.value);
        }
        json_end(b);
    }
    json_end(b);
}

/* The explanation with outlines of the first 'count_max' partitions only. */
static Json outline(Arena *arena, Json explain, size_t count_max)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    for (JsonIter member = json_iter(explain); json_next(&member);) {
        json_key(&b, member.name);
        if (!json_is(member.value, JSON_ARRAY)) {
            json_add(&b, member.value);
            continue;
        }
        size_t count = 0;
        json_begin_array(&b);
        for (JsonIter it = json_iter(member.value); count < count_max && json_next(&it); count++)
            add_outline(&b, it.value);
        json_end(&b);
    }
    json_key(&b, SLICE("isOutline"));
    json_add_bool(&b, true);
    json_end(&b);
    return json_built(&b);
}

static Slice print_explain(Arena *arena, Json explain)
{
    size_t count_max = json_count(json_get(explain, SLICE("partitions")));
    Slice plain = SLICE(" {}[]\":,./?*()-_=<>");
    Slice text = percent_encode(arena, json_print_arena(arena, explain), plain);
    while (text.len > REPORT_BYTES_MAX) {
        Json shorter = outline(arena, explain, count_max);
        text = percent_encode(arena, json_print_arena(arena, shorter), plain);
        if (count_max == 0)
            break;
        count_max /= 2;
    }
    return text;
}

/* ---- the headers ---- */

unsigned document_report_wanted(const ApiRequest *r)
{
    return (request_flag(r, "x-ms-documentdb-populatequerymetrics") ? DOCUMENT_REPORT_METRICS : 0) |
           (request_flag(r, "x-ms-cosmos-populateindexmetrics") ? DOCUMENT_REPORT_INDEXES : 0) |
           (request_flag(r, "x-ms-cosmos-populateindexmetrics-v2") ? DOCUMENT_REPORT_INDEXES_V2
                                                                   : 0) |
           (request_flag(r, "x-orrery-explain") ? DOCUMENT_REPORT_EXPLAIN : 0);
}

/* Clients that merge rows skip those that they have returned, by their keys and then by _rid. */
static Slice print_order(const QueryPage *page)
{
    return page->is_reversed ? SLICE("{\"reverseRidEnabled\":false,\"reverseIndexScan\":true}")
                             : SLICE("{\"reverseRidEnabled\":false,\"reverseIndexScan\":false}");
}

size_t document_report_headers(Arena *arena, unsigned wanted, uint64_t parse_us,
                               const QueryPage *page, HttpHeader out[DOCUMENT_REPORT_HEADERS_MAX])
{
    size_t count = 0;
    if ((wanted & DOCUMENT_REPORT_METRICS) != 0)
        out[count++] = (HttpHeader){SLICE("x-ms-documentdb-query-metrics"),
                                    print_metrics(arena, parse_us, &page->metrics)};
    if ((wanted & (DOCUMENT_REPORT_INDEXES | DOCUMENT_REPORT_INDEXES_V2)) != 0)
        out[count++] =
            (HttpHeader){SLICE("x-ms-cosmos-index-utilization"),
                         print_indexes(arena, page, (wanted & DOCUMENT_REPORT_INDEXES_V2) != 0)};
    if (page->is_ordered)
        out[count++] = (HttpHeader){SLICE("x-ms-cosmos-query-execution-info"), print_order(page)};
    if ((wanted & DOCUMENT_REPORT_EXPLAIN) != 0)
        out[count++] = (HttpHeader){SLICE("x-orrery-explain"), print_explain(arena, page->explain)};
    ASSERT(count <= DOCUMENT_REPORT_HEADERS_MAX);
    return count;
}
