/* document_query.c - queries over items: from the request to a page of the query layer, and its
 * headers.
 *
 * A query runs over the physical partitions that have something of the range it asks for, as if
 * they were one container; the page's position, signed, is the continuation token.
 */
#include "api/items/document_handlers_int.h"
#include "api/items/document_query_int.h"
#include "api/items/document_remote_int.h"
#include "api/items/document_report_int.h"
#include "api/items/document_scope_int.h"
#include "api/items/document_token_int.h"
#include "api/items/document_walk_int.h"
#include "api/items/query_plan_int.h"
#include "api/items/query_record_int.h"
#include "query/eval/query.h"
#include "query/page/page.h"
#include "query/plan/query_traits.h"

static_assert(DOCUMENT_REPORT_HEADERS_MAX <= PAGE_HEADERS_MAX, "a page has room for the report");

/* Steps that a query may take for one page. */
#define QUERY_STEPS_MAX ((uint64_t)2000000000)

/* And on the loop. */
#define BRIEF_BYTES_MAX ((size_t)8 << 20)
#define BRIEF_KEYS_MAX  ((uint64_t)4096)
#define BRIEF_STEPS_MAX \
    ((uint64_t)50000) /* about 2 ms at worst, since a run seldom looks at the clock */

/* ---- running ---- */

QueryGeo document_query_geo(const Container *container)
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

static Status open_target(DocumentQuery *q, const PartitionRange *range, QueryTarget *target)
{
    StoreRead read = q->page.is_brief ? STORE_READ_MEMORY : STORE_READ_ANY;
    TRY(handle_view_open(container_handle(q->page.container, range), q->page.container->schema,
                         read, &target->view, &q->page.answer.error));
    document_page_session_at(&q->page, range, partition_view_lsn(target->view));
    return STATUS_OK;
}

/* All partitions of this node that are asked must admit the page (I6), and those of other nodes
 * when they are asked. Once they have, it runs, also if it has to begin again on a worker. The page
 * is made where one of its ranges is: here, or by the owner of the first. There it begins again,
 * too, if one of another node has moved meanwhile. */
static Status admit(DocumentQuery *q)
{
    const Container *container = q->page.container;
    const PartitionRange *here = NULL;
    const PartitionRange *elsewhere = NULL;
    if (q->page.bill.is_admitted)
        return STATUS_OK;
    for (size_t i = 0; i < container->range_count; i++) {
        const PartitionRange *range = &container->ranges[i];
        if (!document_extent_needs(&q->page.extent, range))
            continue;
        bool is_local = document_page_is_local(&q->page, range);
        const PartitionRange **first = is_local ? &here : &elsewhere;
        *first = *first == NULL ? range : *first;
        if (is_local)
            TRY(document_page_admit(&q->page, range));
    }
    q->has_remote = elsewhere != NULL;
    if (here == NULL) {
        here = elsewhere != NULL ? elsewhere : &container->ranges[0]; /* see open_targets */
        TRY(document_page_admit(&q->page, here));
    }
    q->page.request->space = here->space;
    q->page.bill.is_admitted = true;
    return STATUS_OK;
}

QueryTarget document_query_target(const DocumentQuery *q, uint32_t index)
{
    const PartitionRange *range = &q->page.container->ranges[index];
    const DocumentExtent *extent = &q->page.extent;
    QueryTarget target = {.range = index,
                          .range_id = range->id,
                          .epk_from = extent->epk_from,
                          .epk_to = extent->epk_to};
    if (slice_compare(range->min_bytes, extent->epk_from) > 0)
        target.epk_from = range->min_bytes;
    if (slice_compare(range->max_bytes, extent->epk_to) < 0)
        target.epk_to = range->max_bytes;
    target.is_whole = is_whole(range, &target);
    return target;
}

/* Opens a view of every partition here that can have something of what is asked for. The caller
 * closes them, also if this fails. */
static Status open_targets(DocumentQuery *q, QueryTarget *targets, size_t *count)
{
    const Container *container = q->page.container;
    for (size_t i = 0; i < container->range_count; i++) {
        const PartitionRange *range = &container->ranges[i];
        if (!document_extent_needs(&q->page.extent, range))
            continue;
        QueryTarget *target = &targets[*count];
        *target = document_query_target(q, (uint32_t)i);
        ++*count; /* its view may be there even if this fails */
        if (UNLIKELY(!document_page_is_local(&q->page, range)))
            document_remote_target(q, target);
        else
            TRY(open_target(q, range, target));
        if (UNLIKELY(q->page.is_behind))
            return q->page.answer.error.status;
    }
    if (*count > 0)
        return STATUS_OK;
    /* No item can be found, but a COUNT is still 0, and a query that cannot be sorted is still
     * refused: it runs over an empty range of the first partition. */
    const PartitionRange *first = &container->ranges[0];
    targets[0] = (QueryTarget){
        .range_id = first->id, .epk_from = first->max_bytes, .epk_to = first->max_bytes};
    TRY(open_target(q, first, &targets[0]));
    *count = 1;
    return STATUS_OK;
}

/* What ranges of other nodes have read their owners have paid; the rows that were made of it are
 * this node's work. */
static QueryTargetWork add_rows(const QueryTarget *targets, size_t count,
                                const QueryTargetWork *work, QueryTargetWork first)
{
    for (size_t i = 0; i < count; i++) {
        if (targets[i].view != NULL)
            continue;
        first.results += work[i].results;
        first.result_bytes += work[i].result_bytes;
        first.user_calls += work[i].user_calls;
    }
    return first;
}

static void charge_target(DocumentQuery *q, const QueryTarget *target, const QueryTargetWork *work)
{
    QueryWork done = {
        .index_keys = work->index_keys_read,
        .items = work->documents_read,
        .item_bytes = work->document_bytes_read,
        .results = work->results,
        .result_bytes = work->result_bytes,
        .user_calls = work->user_calls,
    };
    document_page_charge(&q->page, &q->page.container->ranges[target->range],
                         charge_query(q->page.request->api->options.charges, &done));
}

/* One target is always here: see admit(). */
static const QueryTarget *find_local(const QueryTarget *targets)
{
    while (targets->view == NULL)
        targets++;
    return targets;
}

/* Each partition that was visited pays for what it did. If none was, because nothing stored is
 * asked for, the first one pays. */
static void charge_targets(DocumentQuery *q, const QueryTarget *targets, size_t count,
                           const QueryTargetWork *work)
{
    size_t first = (size_t)(find_local(targets) - targets);
    for (size_t i = 0; i < count; i++) {
        QueryTargetWork done = i == first ? add_rows(targets, count, work, work[i]) : work[i];
        bool has_work = done.is_visited || done.results > 0;
        if (has_work && targets[i].view != NULL)
            charge_target(q, &targets[i], &done);
    }
    if (q->page.bill.count == 0)
        charge_target(q, &targets[first], &work[first]);
}

/* Limits the parts to the whole: they come from samples, and from clocks that may have jumped. */
static void fit_parts(QueryMetrics *m)
{
    uint64_t *const parts[] = {&m->user_us, &m->index_us, &m->load_us, &m->write_us};
    uint64_t left_us = m->total_us;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        *parts[i] = *parts[i] < left_us ? *parts[i] : left_us;
        left_us -= *parts[i];
    }
}

QueryPageOptions document_query_options(DocumentQuery *q, const QueryTarget *targets, size_t count)
{
    const Api *api = q->page.request->api;
    bool wants_metrics = (q->wanted & DOCUMENT_REPORT_METRICS) != 0;
    QueryPageOptions options = {
        .targets = targets,
        .target_count = count,
        .partition_count = q->page.container->range_count,
        .schema = q->page.container->schema,
        .key = q->page.extent.has_key ? &q->page.extent.key : NULL,
        .position = q->position,
        .resume_filter = q->resume_filter,
        .items_max = q->page.items_max,
        .bytes_max = PAGE_BYTES_MAX - ENVELOPE_BYTES_MAX,
        .deadline_us = q->page.clock.deadline_us,
        .steps_max = QUERY_STEPS_MAX,
        .memory_max = api->options.query_bytes_max,
        .memory = q->page.is_brief ? NULL : &q->page.request->api->query_memory,
        .is_brief = q->page.is_brief,
        .workers = api->options.workers,
        .clock = &q->page.clock.clock,
        .pause_clock = &q->page.clock.pauses,
        .meter_clock = wants_metrics ? &q->page.clock.meter : NULL,
        .geo = document_query_geo(q->page.container),
        .functions = &DOCUMENT_FUNCTIONS,
        .functions_context = &q->page.functions,
        .wants_explain = (q->wanted & DOCUMENT_REPORT_EXPLAIN) != 0,
        .wants_indexes = (q->wanted & (DOCUMENT_REPORT_INDEXES | DOCUMENT_REPORT_INDEXES_V2)) != 0,
    };
    if (q->page.is_brief) {
        options.clock = api->options.clock;
        options.pause_clock = api->options.clock;
        options.meter_clock = wants_metrics ? api->options.clock : NULL;
        options.deadline_us = clock_monotonic_us(api->options.clock) + api->limits.brief_us;
        options.index_keys_max = BRIEF_KEYS_MAX;
        options.memory_max = BRIEF_BYTES_MAX;
        options.steps_max = BRIEF_STEPS_MAX;
    }
    return options;
}

static Status run_in(DocumentQuery *q, const QueryTarget *targets, size_t count, Arena *arena)
{
    ApiRequest *r = q->page.request;
    const Api *api = r->api;
    QueryPageOptions options = document_query_options(q, targets, count);
    QueryPage out;
    TRY(query_page(q->query, &options, arena, &q->page.answer.text, &out, &q->page.answer.error));
    if (!q->page.is_brief) /* the page's clock may have jumped */
        out.metrics.total_us = document_clock_us(&q->page.clock);
    fit_parts(&out.metrics);
    query_record_work(q, &out.metrics);
    q->page.answer.count = out.count;
    charge_targets(q, targets, count, out.work);
    if (q->remote != NULL)
        document_remote_end(q);
    if (!out.is_done)
        q->page.answer.continuation = document_token_print(
            r->arena, &api->options.token_secret, q->page.container->info.rid,
            query_position_scope(q->query, q->parameters, out.position, arena), out.position);
    if (q->is_walking)
        q->page.answer.continuation = document_walk_next(q, q->page.answer.continuation);
    q->page.answer.header_count =
        document_report_headers(r->arena, q->wanted, q->parse_us, &out, q->page.answer.headers);
    return STATUS_OK;
}

/* A query may hold hundreds of megabytes while it runs, so they are not in the request's arena: the
 * request may still wait for another turn, and then for its client to read the answer. */
static Status run_targets(DocumentQuery *q, const QueryTarget *targets, size_t count)
{
    if (q->page.is_brief) {
        Arena *arena = &q->page.request->loop->brief;
        Status status = run_in(q, targets, count, arena);
        arena_reset(arena);
        return status;
    }
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_LARGE_BYTES);
    return run_in(q, targets, count, &arena);
}

/* No items are asked for: the page is empty, and its token is that of the page before. */
static void run_empty(DocumentQuery *q, uint32_t first)
{
    QueryWork nothing = {0};
    document_page_charge(&q->page, &q->page.container->ranges[first],
                         charge_query(q->page.request->api->options.charges, &nothing));
    q->page.answer.continuation = q->token;
}

static Status run_query(DocumentQuery *q)
{
    QueryTarget *targets =
        ARENA_NEW_ARRAY(q->page.request->arena, QueryTarget, q->page.container->range_count);
    size_t count = 0;
    TRY(admit(q));
    if (UNLIKELY(q->has_remote) && q->page.is_brief)
        return error_set(&q->page.answer.error, STATUS_TIMEOUT, SUB_NONE, "a worker must do this");
    if (UNLIKELY(q->has_remote))
        document_remote_begin(q);
    Status status = open_targets(q, targets, &count);
    if (status == STATUS_OK && q->page.items_max == 0)
        run_empty(q, find_local(targets)->range);
    else if (status == STATUS_OK)
        status = run_targets(q, targets, count);
    document_functions_end(&q->page.functions);
    for (size_t i = 0; i < count; i++)
        partition_view_close(targets[i].view);
    return status;
}

/* A token is a position in the order of the query's rows. It is also valid if the same items are
 * named in another way, by a key instead of its range, and with another filter: SDKs that merge
 * rows do that. */
static Status read_token(DocumentQuery *q, const Container *container, Error *err)
{
    ApiRequest *r = q->page.request;
    Slice mac;
    TRY(document_token_parse(r->arena, q->token, &mac, &q->position, err));
    Slice scope = query_position_scope(q->query, q->parameters, q->position, r->arena);
    return document_token_check(r->arena, &r->api->options.token_secret, container->info.rid, scope,
                                q->token, mac, q->position, err);
}

/* The body is not needed after the call. */
static Status read_query(DocumentQuery *q, const Container *container, Slice body, Error *err)
{
    ApiRequest *r = q->page.request;
    const Clock *clock = r->api->options.clock;
    uint64_t begun_us = clock_monotonic_us(clock);
    QueryRequest request;
    TRY(query_request_items(r->arena, body, &request, err));
    q->parameters = request.parameters;
    q->resume_filter = request.resume_filter;
    q->text = arena_copy(r->arena, request.text); /* a Query borrows from it */
    Json computed = json_get(container->definition, SLICE("computedProperties"));
    TRY(query_parse_with(r->arena, q->text, q->parameters, computed, &q->query, err));
    q->parse_us = clock_monotonic_us(clock) - begun_us;
    TRY(document_scope_check(q, container, err));
    query_record_begin(q, container);
    if (q->is_batch) /* it says where it begins */
        return STATUS_OK;
    if (q->is_walking)
        TRY(document_walk_begin(q, container, err));
    return q->token.len > 0 ? read_token(q, container, err) : STATUS_OK;
}

static Status read_and_run(DocumentPage *page)
{
    DocumentQuery *q = CONTAINER_OF(page, DocumentQuery, page);
    if (q->body.len > 0)
        TRY(read_query(q, q->page.container, q->body, &q->page.answer.error));
    q->body = SLICE_EMPTY;
    return q->is_batch ? document_batch_run(q) : run_query(q);
}

/* A page that asks other nodes waits for them, so it is not tried on the loop. */
static bool asks_others(const DocumentQuery *q, const Container *container)
{
    size_t counts[2] = {0}; /* of ranges of other nodes, and of this one */
    for (size_t i = 0; i < container->range_count; i++) {
        const PartitionRange *range = &container->ranges[i];
        if (document_extent_needs(&q->page.extent, range))
            counts[handle_is_local(container_handle(container, range))]++;
    }
    return counts[0] > 0 && counts[1] > 0;
}

Status documents_query(ApiRequest *r, Error *err)
{
    if (request_flag(r, "x-ms-cosmos-is-query-plan-request"))
        return documents_plan(r, err);
    if (request_header(r, "a-im").len > 0)
        return documents_changes(r, err);
    DocumentQuery *q = ARENA_NEW(r->arena, DocumentQuery);
    TRY(document_page_init(&q->page, r, read_and_run, err));
    TRY(document_batch_read(r, q, err));
    q->page.answered = q->is_batch ? NULL : query_record_end; /* the other node notes it */
    q->wanted = document_report_wanted(r);
    TRY(document_scope_read(r, q, err));
    q->token = arena_copy(r->arena, slice_trim(request_header(r, "x-ms-continuation")));
    bool is_long = r->http->body.len > LOOP_QUERY_BYTES_MAX;
    q->page.can_be_brief = !is_long && !q->is_batch && r->api->limits.brief_us > 0;
    if (is_long)
        q->body = arena_copy(r->arena, r->http->body);
    else
        TRY(read_query(q, r->container, r->http->body, err));
    if (q->query != NULL && (query_calls_functions(q->query) ||
                             (r->api->options.cluster != NULL && asks_others(q, r->container))))
        q->page.can_be_brief = false;
    return document_page_post(&q->page, err);
}
