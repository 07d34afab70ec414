/* document_query.c - queries over items: from the request to a page of the query layer, and its
 * headers.
 *
 * A query runs over the physical partitions that have something of the range it asks for, as if
 * they were one container; the page's position, signed, is the continuation token.
 */
#include "api/item_page_int.h"
#include "api/query_plan_int.h"
#include "api/query_scope_int.h"
#include "api/token_int.h"
#include "base/encoding.h"
#include "catalog/epk_range.h"
#include "query/page.h"

/* What a query may hold and do for one page. */
#define QUERY_STEPS_MAX ((uint64_t)2000000000)

/* And on the loop. */
#define BRIEF_BYTES_MAX ((size_t)8 << 20)
#define BRIEF_KEYS_MAX  ((uint64_t)4096)
#define BRIEF_STEPS_MAX \
    ((uint64_t)50000) /* about 2 ms at worst, since a run seldom looks at the clock */

/* A client takes only so many bytes of headers, Node 16 KB of all together, and what is told about
 * a query may be of any length. */
#define REPORT_BYTES_MAX ((size_t)5 << 10)

/* ---- running ---- */

static QueryGeo geo_of(const Container *container)
{
    Json config = json_get(container->definition, SLICE("geospatialConfig"));
    Json type = json_get(config, SLICE("type"));
    bool is_plane = json_is(type, JSON_STRING) && slice_equal(json_string(type), SLICE("Geometry"));
    return is_plane ? QUERY_GEOMETRY : QUERY_GEOGRAPHY;
}

static bool is_whole(const PartitionRange *range, const QueryTarget *target)
{
    return slice_compare(target->epk_from, range->min_bytes) <= 0 &&
           slice_compare(target->epk_to, range->max_bytes) >= 0;
}

static Status open_target(ItemPage *page, const PartitionRange *range, QueryTarget *target)
{
    item_page_session(page, range);
    StoreRead read = page->is_brief ? STORE_READ_MEMORY : STORE_READ_ANY;
    return partition_view_open(range->partition, page->container->schema, read, &target->view,
                               &page->error);
}

/* All partitions that are asked must have something left to spend; once they did, the page goes on,
 * also if it has to begin anew. */
static Status admit(ItemPage *page)
{
    const Container *container = page->container;
    bool needs_any = false;
    for (size_t i = 0; i < container->range_count && !page->is_admitted; i++) {
        if (!item_page_needs(page, &container->ranges[i]))
            continue;
        needs_any = true;
        TRY(item_page_admit(page, &container->ranges[i]));
    }
    if (!needs_any && !page->is_admitted)
        TRY(item_page_admit(page, &container->ranges[0])); /* see open_targets */
    page->is_admitted = true;
    return STATUS_OK;
}

/* A view of every partition that has something of what is asked for; the caller closes those that
 * are open, also if this fails. */
static Status open_targets(ItemPage *page, QueryTarget *targets, size_t *count)
{
    const Container *container = page->container;
    for (size_t i = 0; i < container->range_count; i++) {
        const PartitionRange *range = &container->ranges[i];
        if (!item_page_needs(page, range))
            continue;
        QueryTarget *target = &targets[*count];
        target->range = (uint32_t)i;
        target->epk_from =
            slice_compare(range->min_bytes, page->epk_from) > 0 ? range->min_bytes : page->epk_from;
        target->epk_to =
            slice_compare(range->max_bytes, page->epk_to) < 0 ? range->max_bytes : page->epk_to;
        target->is_whole = is_whole(range, target);
        TRY(open_target(page, range, target));
        ++*count;
    }
    if (*count > 0)
        return STATUS_OK;
    /* No item anywhere can be found, but what is counted is 0, and what cannot be sorted is refused
     * all the same: it runs over nothing of the first partition. */
    const PartitionRange *first = &container->ranges[0];
    targets[0] = (QueryTarget){.epk_from = first->max_bytes, .epk_to = first->max_bytes};
    TRY(open_target(page, first, &targets[0]));
    *count = 1;
    return STATUS_OK;
}

static void add_header(ItemPage *page, Slice name, Slice value)
{
    ASSERT(page->header_count < ARRAY_COUNT(page->headers));
    page->headers[page->header_count++] = (HttpHeader){name, value};
}

static Slice print_metrics(Arena *arena, uint64_t parse_us, const QueryMetrics *m)
{
    double total_ms = (double)(parse_us + m->total_us) / 1000;
    double index_ms = (double)m->index_us / 1000;
    double compile_ms = (double)parse_us / 1000;
    compile_ms = compile_ms < 0.01 ? 0.01 : compile_ms; /* clients take 0.00 for: not measured */
    double ratio = m->documents_read == 0 ? 1 : (double)m->results / (double)m->documents_read;
    return arena_format(
        arena,
        "totalExecutionTimeInMs=%.2f;queryCompileTimeInMs=%.2f;queryLogicalPlanBuildTimeInMs=0.00;"
        "queryPhysicalPlanBuildTimeInMs=0.00;queryOptimizationTimeInMs=0.00;"
        "VMExecutionTimeInMs=%.2f;indexLookupTimeInMs=%.2f;documentLoadTimeInMs=0.00;"
        "systemFunctionExecuteTimeInMs=0.00;userFunctionExecuteTimeInMs=0.00;"
        "retrievedDocumentCount=%llu;retrievedDocumentSize=%llu;outputDocumentCount=%llu;"
        "outputDocumentSize=%llu;writeOutputTimeInMs=0.00;indexUtilizationRatio=%.2f",
        total_ms, compile_ms, (double)m->total_us / 1000, index_ms,
        (unsigned long long)m->documents_read, (unsigned long long)m->document_bytes_read,
        (unsigned long long)m->results, (unsigned long long)m->result_bytes,
        ratio > 1 ? 1.0 : ratio);
}

/* ---- index metrics ---- */

/* The first 'count_max' of each kind are told: see REPORT_BYTES_MAX. */
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
        /* clients look for the one or the other */
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

/* What was done with one partition, without the filters that its filter is made of. */
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

/* The outlines of the first 'count_max' partitions, and all the rest. */
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

/* ---- the page ---- */

enum {
    WANTS_METRICS = 1,
    WANTS_INDEXES = 2,
    WANTS_INDEXES_V2 = 4,
    WANTS_EXPLAIN = 8,
};

static unsigned wanted_headers(const ApiRequest *r)
{
    return (request_flag(r, "x-ms-documentdb-populatequerymetrics") ? WANTS_METRICS : 0) |
           (request_flag(r, "x-ms-cosmos-populateindexmetrics") ? WANTS_INDEXES : 0) |
           (request_flag(r, "x-ms-cosmos-populateindexmetrics-v2") ? WANTS_INDEXES_V2 : 0) |
           (request_flag(r, "x-orrery-explain") ? WANTS_EXPLAIN : 0);
}

/* Clients that merge rows skip those that they have returned, by their keys and then by _rid. */
static Slice print_order(const QueryPage *out)
{
    return out->is_reversed ? SLICE("{\"reverseRidEnabled\":false,\"reverseIndexScan\":true}")
                            : SLICE("{\"reverseRidEnabled\":false,\"reverseIndexScan\":false}");
}

static void answer_headers(ItemPage *page, const QueryPage *out)
{
    Arena *arena = page->request->arena;
    if ((page->wanted & WANTS_METRICS) != 0)
        add_header(page, SLICE("x-ms-documentdb-query-metrics"),
                   print_metrics(arena, page->parse_us, &out->metrics));
    if ((page->wanted & (WANTS_INDEXES | WANTS_INDEXES_V2)) != 0)
        add_header(page, SLICE("x-ms-cosmos-index-utilization"),
                   print_indexes(arena, out, (page->wanted & WANTS_INDEXES_V2) != 0));
    if (out->is_ordered)
        add_header(page, SLICE("x-ms-cosmos-query-execution-info"), print_order(out));
    if ((page->wanted & WANTS_EXPLAIN) != 0)
        add_header(page, SLICE("x-orrery-explain"), print_explain(arena, out->explain));
}

/* ---- partition by partition ---- */

/* A page of a query that needs no merging has results of one partition, as the service's gateway
 * gives them, and its token says which one is next:
 *
 *     [{"token":"...","range":{"min":"05C1...","max":"0B82..."}}]
 *
 * The token inside is that of the same query over this range; null: the range was not begun. A
 * range that was split or merged meanwhile is read from whatever serves it. The outer part is not
 * signed: it says no more than a client may ask for by itself. */
static Slice print_walk(Arena *arena, Slice token, Slice from, Slice to)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_array(&b);
    json_begin_object(&b);
    json_key(&b, SLICE("token"));
    if (token.len > 0)
        json_add_string(&b, token);
    else
        json_add_null(&b);
    json_key(&b, SLICE("range"));
    json_begin_object(&b);
    json_key(&b, SLICE("min"));
    json_add_string(&b, epk_text(arena, from));
    json_key(&b, SLICE("max"));
    json_add_string(&b, epk_text(arena, to));
    json_end(&b);
    json_end(&b);
    json_end(&b);
    return json_print_arena(arena, json_built(&b));
}

static Slice text_member(Json object, Slice name)
{
    Json text = json_get(object, name);
    return json_is(text, JSON_STRING) ? json_string(text) : SLICE_EMPTY;
}

/* Finds the first range behind 'from' that the query needs; false if there is none. */
static bool find_next(const ItemPage *page, const Container *container, Slice from, Slice *begin,
                      Slice *end)
{
    ItemPage rest = {.route = page->route, .epk_from = from, .epk_to = SLICE("\xFF")};
    for (size_t i = 0; i < container->range_count; i++) {
        const PartitionRange *range = &container->ranges[i];
        if (!item_page_needs(&rest, range))
            continue;
        *begin = slice_compare(range->min_bytes, from) > 0 ? range->min_bytes : from;
        *end = range->max_bytes;
        return true;
    }
    return false;
}

/* Reads the outer part of a token: the page is about its range then, and the token is the inner
 * one. */
static Status read_walk(ItemPage *page, Error *err)
{
    Arena *arena = page->request->arena;
    Json list = JSON_NONE;
    Error ignored;
    if (json_parse(arena, page->token, &list, &ignored) != STATUS_OK ||
        !json_is(list, JSON_ARRAY) || json_count(list) != 1)
        return token_refuse(page->token, err);
    Json first = json_at(list, 0);
    Json range = json_get(first, SLICE("range"));
    Slice min = text_member(range, SLICE("min"));
    Slice max = text_member(range, SLICE("max"));
    if (max.len == 0 || epk_header_parse(arena, max, &page->epk_to, &ignored) != STATUS_OK ||
        (min.len > 0 && epk_header_parse(arena, min, &page->epk_from, &ignored) != STATUS_OK))
        return token_refuse(page->token, err);
    page->token = arena_copy(arena, text_member(first, SLICE("token")));
    return STATUS_OK;
}

/* Where the page begins. */
static Status begin_walk(ItemPage *page, const Container *container, Error *err)
{
    if (page->token.len > 0 && page->token.ptr[0] == '[')
        return read_walk(page, err);
    if (page->token.len == 0)
        (void)find_next(page, container, SLICE_EMPTY, &page->epk_from, &page->epk_to);
    return STATUS_OK;
}

/* The token of the page after one that has ended at 'inner', or at the end of its range. */
static Slice next_walk(const ItemPage *page, Slice inner)
{
    Arena *arena = page->request->arena;
    if (inner.len > 0)
        return print_walk(arena, inner, page->epk_from, page->epk_to);
    Slice from;
    Slice to;
    if (!find_next(page, page->container, page->epk_to, &from, &to))
        return SLICE_EMPTY;
    return print_walk(arena, SLICE_EMPTY, from, to);
}

static void charge_target(ItemPage *page, const QueryTarget *target, const QueryTargetWork *work)
{
    QueryWork done = {
        .index_keys = work->index_keys_read,
        .items = work->documents_read,
        .item_bytes = work->document_bytes_read,
        .results = work->results,
        .result_bytes = work->result_bytes,
    };
    item_page_charge(page, &page->container->ranges[target->range],
                     charge_query(page->request->api->options.charges, &done));
}

/* Each partition that was visited pays for what it did; if none was, because nothing stored is
 * asked for, the first one has answered. */
static void charge_targets(ItemPage *page, const QueryTarget *targets, size_t count,
                           const QueryTargetWork *work)
{
    for (size_t i = 0; i < count; i++) {
        if (work[i].is_visited)
            charge_target(page, &targets[i], &work[i]);
    }
    if (page->charge_count == 0)
        charge_target(page, &targets[0], &work[0]);
}

static Status run_in(ItemPage *page, const QueryTarget *targets, size_t count, Arena *arena)
{
    ApiRequest *r = page->request;
    const Api *api = r->api;
    QueryPageOptions options = {
        .targets = targets,
        .target_count = count,
        .partition_count = page->container->range_count,
        .schema = page->container->schema,
        .key = page->has_key ? &page->key : NULL,
        .position = page->position,
        .resume_filter = page->resume_filter,
        .items_max = page->items_max,
        .bytes_max = PAGE_BYTES_MAX - ENVELOPE_BYTES_MAX,
        .deadline_us = page->clock.deadline_us,
        .steps_max = QUERY_STEPS_MAX,
        .memory_max = QUERY_BYTES_MAX,
        .memory = page->is_brief ? NULL : &page->request->api->query_memory,
        .is_brief = page->is_brief,
        .workers = api->options.workers,
        .clock = &page->clock.clock,
        .pause_clock = &page->clock.pauses,
        .geo = geo_of(page->container),
        .wants_explain = (page->wanted & WANTS_EXPLAIN) != 0,
        .wants_indexes = (page->wanted & (WANTS_INDEXES | WANTS_INDEXES_V2)) != 0,
    };
    if (page->is_brief) {
        options.clock = api->options.clock;
        options.pause_clock = api->options.clock;
        options.deadline_us = clock_monotonic_us(api->options.clock) + api->limits.brief_us;
        options.index_keys_max = BRIEF_KEYS_MAX;
        options.memory_max = BRIEF_BYTES_MAX;
        options.steps_max = BRIEF_STEPS_MAX;
    }
    QueryPage out;
    TRY(query_page(page->query, &options, arena, &page->text, &out, &page->error));
    if (!page->is_brief) /* the page's clock may have jumped */
        out.metrics.total_us = page_clock_us(&page->clock);
    if (out.metrics.index_us > out.metrics.total_us)
        out.metrics.index_us = out.metrics.total_us;
    page->count = out.count;
    charge_targets(page, targets, count, out.work);
    if (!out.is_done)
        page->continuation = token_print(
            r->arena, &api->options.token_secret, page->container->info.rid,
            query_position_scope(page->query, page->parameters, out.position, arena), out.position);
    if (page->is_walking)
        page->continuation = next_walk(page, page->continuation);
    answer_headers(page, &out);
    return STATUS_OK;
}

/* What a query holds while it runs may be hundreds of megabytes. The request is there for longer:
 * it may have to wait for another turn, and then for its client to read the answer. */
static Status run_targets(ItemPage *page, const QueryTarget *targets, size_t count)
{
    if (page->is_brief) {
        Arena *arena = &page->request->loop->brief;
        Status status = run_in(page, targets, count, arena);
        arena_reset(arena);
        return status;
    }
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_LARGE_BYTES);
    return run_in(page, targets, count, &arena);
}

/* Nothing is asked for: the page is empty, and the query stands where it stood. */
static void run_empty(ItemPage *page, uint32_t first)
{
    QueryWork nothing = {0};
    item_page_charge(page, &page->container->ranges[first],
                     charge_query(page->request->api->options.charges, &nothing));
    page->continuation = page->token;
}

static Status run_query(ItemPage *page)
{
    QueryTarget *targets =
        ARENA_NEW_ARRAY(page->request->arena, QueryTarget, page->container->range_count);
    size_t count = 0;
    TRY(admit(page));
    Status status = open_targets(page, targets, &count);
    if (status == STATUS_OK && page->items_max == 0)
        run_empty(page, targets[0].range);
    else if (status == STATUS_OK)
        status = run_targets(page, targets, count);
    for (size_t i = 0; i < count; i++)
        partition_view_close(targets[i].view);
    return status;
}

/* A token is a position in the order of the query's rows. It is good for other ways to name the
 * same items, a key instead of its range, and for another filter: SDKs that merge rows ask so. */
static Status read_token(ItemPage *page, const Container *container, Error *err)
{
    ApiRequest *r = page->request;
    Slice mac;
    TRY(token_parse(r->arena, page->token, &mac, &page->position, err));
    Slice scope = query_position_scope(page->query, page->parameters, page->position, r->arena);
    return token_check(r->arena, &r->api->options.token_secret, container->info.rid, scope,
                       page->token, mac, page->position, err);
}

/* The body may go away after the call. */
static Status read_query(ItemPage *page, const Container *container, Slice body, Error *err)
{
    ApiRequest *r = page->request;
    const Clock *clock = r->api->options.clock;
    uint64_t begun_us = clock_monotonic_us(clock);
    QueryRequest request;
    TRY(query_request_items(r->arena, body, &request, err));
    page->parameters = request.parameters;
    page->resume_filter = request.resume_filter;
    page->query_text = arena_copy(r->arena, request.text); /* which a Query borrows from */
    Json computed = json_get(container->definition, SLICE("computedProperties"));
    TRY(query_parse_with(r->arena, page->query_text, page->parameters, computed, &page->query,
                         err));
    page->parse_us = clock_monotonic_us(clock) - begun_us;
    TRY(query_scope_find(page, container, err));
    if (page->is_walking)
        TRY(begin_walk(page, container, err));
    return page->token.len > 0 ? read_token(page, container, err) : STATUS_OK;
}

static Status read_and_run(ItemPage *page)
{
    if (page->body.len > 0)
        TRY(read_query(page, page->container, page->body, &page->error));
    page->body = SLICE_EMPTY;
    return run_query(page);
}

Status documents_query(ApiRequest *r, Error *err)
{
    if (request_flag(r, "x-ms-cosmos-is-query-plan-request"))
        return documents_plan(r, err);
    ItemPage *page = NULL;
    TRY(item_page_begin(r, read_and_run, &page, err));
    page->wanted = wanted_headers(r);
    TRY(query_scope_begin(r, page, err));
    page->token = arena_copy(r->arena, slice_trim(request_header(r, "x-ms-continuation")));
    bool is_long = r->http->body.len > LOOP_QUERY_BYTES_MAX;
    page->can_be_brief = !is_long && r->api->limits.brief_us > 0;
    if (is_long)
        page->body = arena_copy(r->arena, r->http->body);
    else
        TRY(read_query(page, r->container, r->http->body, err));
    return item_page_post(page, err);
}
