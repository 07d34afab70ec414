/* document_feed.c - many items: lists and queries, page by page, on a worker.
 *
 * A request names what it wants to see by a partition key (or a prefix of a hierarchical one), by a
 * physical range, by a range of effective partition keys, or not at all; each of these becomes a
 * range of EPKs, which is walked over the physical partitions that serve it, in order.
 *
 * A page ends when it has enough items or bytes, or when it has looked at enough: items that have
 * expired, or that a query does not want, come to nothing and take time all the same. Then it may
 * be empty, and its token (page_place_int.h) leads on. Items that were not changed in between are
 * neither lost nor repeated.
 */
#include "api/item_int.h"
#include "api/page_place_int.h"
#include "api/session_int.h"
#include "base/encoding.h"
#include "base/mem.h"
#include "query/query.h"

/* What a query may hold and do: for one item, or for all if it must see them at once. */
enum { QUERY_BYTES_MAX = 256 << 20, QUERY_STEPS_MAX = 200000000 };

enum { ENVELOPE_BYTES_MAX = 256 }; /* what stands around the items of a page */

typedef struct Page {
    WorkerJob job;
    HttpTask task;
    ApiRequest *request;
    Container *container; /* a reference of its own */
    Slice alt_path;
    Slice epk_from; /* what is asked for */
    Slice epk_to;
    bool is_narrow; /* by a key or a range */
    PagePlace place;
    uint32_t items_max;
    ScanBudget budget;
    Query *query;    /* NULL: a list */
    Arena scratch;   /* of a query that is run item by item: for one of them */
    FakeClock now;   /* ... and the moment that is the same for all of them */
    uint32_t skip;   /* of another query: results that earlier pages returned */
    Json *documents; /* what that is evaluated over */
    size_t document_count;
    size_t document_capacity;

    Status status;
    Error error;
    Buf text; /* the items, separated by commas */
    size_t count;
    size_t bytes_read;
    size_t items_read;
    bool is_full; /* there is more behind 'place' */
    Slice continuation;
    Buf session;
} Page;

/* ---- what is asked for ---- */

static Slice prefix_end(Arena *arena, Slice epk)
{
    char *end = arena_alloc(arena, epk.len + 1);
    if (epk.len > 0)
        memcpy(end, epk.ptr, epk.len);
    end[epk.len] = (char)0xFF;
    return slice_make(end, epk.len + 1);
}

static Status narrow_by_key(const ApiRequest *r, Page *page, bool *found, Error *err)
{
    const PartitionKeyDefinition *definition = &r->container->partition_key;
    PartitionKey key;
    TRY(partition_key_parse(r->arena, request_header(r, "x-ms-documentdb-partitionkey"), definition,
                            KEY_PREFIX, &key, found, err));
    if (!*found || definition->kind == PARTITION_NONE)
        return STATUS_OK;
    Epk epk;
    epk_make(definition->kind, &key, &epk);
    page->epk_from = arena_copy(r->arena, epk_slice(&epk));
    page->epk_to = prefix_end(r->arena, page->epk_from);
    page->place.order = SCAN_BY_EPK;
    return STATUS_OK;
}

/* Within a physical range, a narrower range of EPKs may be given besides. */
static Status narrow_by_range(const ApiRequest *r, Page *page, Error *err)
{
    const PartitionRange *range = NULL;
    bool found = false;
    TRY(request_range(r, &range, &found, err));
    if (found) {
        page->epk_from = range->min_bytes;
        page->epk_to = range->max_bytes;
    }
    Slice from = slice_trim(request_header(r, "x-ms-start-epk"));
    Slice to = slice_trim(request_header(r, "x-ms-end-epk"));
    page->is_narrow = found || from.len > 0 || to.len > 0;
    Slice bytes;
    if (from.len > 0) {
        TRY(epk_header_parse(r->arena, from, &bytes, err));
        if (slice_compare(bytes, page->epk_from) > 0) {
            page->epk_from = bytes;
            page->place.order = SCAN_BY_EPK;
        }
    }
    if (to.len > 0) {
        TRY(epk_header_parse(r->arena, to, &bytes, err));
        if (slice_compare(bytes, page->epk_to) < 0) {
            page->epk_to = bytes;
            page->place.order = SCAN_BY_EPK;
        }
    }
    return STATUS_OK;
}

/* ---- walking ---- */

/* What is done with an item: false ends the page before it. */
typedef bool (*Visit)(Page *page, const Item *item);

static bool overlaps(const PartitionRange *range, Slice from, Slice to)
{
    return slice_compare(range->min_bytes, to) < 0 && slice_compare(from, range->max_bytes) < 0;
}

static void note_session(Page *page, const PartitionRange *range)
{
    if (page->session.len > 0)
        buf_byte(&page->session, ',');
    buf_format(&page->session, "%u:-1#%llu", range->id,
               (unsigned long long)partition_lsn(range->partition));
}

/* Walks one partition; if the page ends there, 'position' is where. */
static Status walk_range(Page *page, const PartitionRange *range, const ScanOptions *options,
                         Visit visit, Slice *position)
{
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    TRY(partition_scan_open(range->partition, page->container->schema, options, &scan,
                            &page->error));
    note_session(page, range);
    bool found = true;
    while (found) {
        Item item;
        TRY(partition_scan_next(scan, &item, &found, &page->error));
        if (found && !visit(page, &item)) {
            page->is_full = true;
            break;
        }
        page->items_read += found ? 1 : 0;
        page->bytes_read += found ? item.bytes : 0;
    }
    page->is_full = page->is_full || partition_scan_paused(scan);
    *position = arena_copy(page->request->arena, partition_scan_position(scan));
    return STATUS_OK;
}

/* Walks the piece 'index' of the page's place, which begins at 'from', over all the partitions that
 * have something of it; the last piece is what is behind the others. */
static Status walk_piece(Page *page, size_t index, Slice from, Visit visit)
{
    const PagePlace *place = &page->place;
    bool is_last = index == place->piece_count;
    Slice to = is_last ? page->epk_to : place->pieces[index].to;
    ScanOptions options = {
        .order = place->order,
        .epk_from = slice_compare(from, page->epk_from) > 0 ? from : page->epk_from,
        .epk_to = slice_compare(to, page->epk_to) < 0 ? to : page->epk_to,
        .at = is_last ? place->at : place->pieces[index].at,
        .budget = &page->budget,
    };
    for (size_t i = 0; i < page->container->range_count; i++) {
        const PartitionRange *range = &page->container->ranges[i];
        if (!overlaps(range, options.epk_from, options.epk_to))
            continue;
        Slice position;
        TRY(walk_range(page, range, &options, visit, &position));
        if (page->is_full) {
            place_advance(&page->place, index, range->min_bytes, range->max_bytes, position);
            return STATUS_OK;
        }
    }
    return STATUS_OK;
}

static Status walk(Page *page, Visit visit)
{
    size_t count = page->place.piece_count;
    Slice from = page->place.from;
    for (size_t i = 0; i <= count && !page->is_full; i++) {
        Slice next = i < count ? page->place.pieces[i].to : SLICE_EMPTY;
        TRY(walk_piece(page, i, from, visit));
        from = next;
    }
    return page->status;
}

/* For a page that may end anywhere. */
static void set_budget(Page *page)
{
    const Api *api = page->request->api;
    page->budget = (ScanBudget){
        .entries = api->limits.entries_max,
        .deadline_us = clock_monotonic_us(api->options.clock) + api->limits.us_max,
    };
}

/* Counts what was printed behind 'before', or takes it back because the page would be too large.
 * The first one always stays: a page makes some way. */
static bool page_keep(Page *page, size_t before)
{
    bool fits = page->text.len <= PAGE_BYTES_MAX - ENVELOPE_BYTES_MAX && !buf_full(&page->text);
    if (page->count > 0 && !fits) {
        page->text.len = before;
        page->text.full = false;
        return false;
    }
    page->count++;
    return true;
}

static bool visit_list(Page *page, const Item *item)
{
    if (page->count == page->items_max)
        return false;
    size_t before = page->text.len;
    if (page->count > 0)
        buf_byte(&page->text, ',');
    item_print(page->container->schema, item, &page->text);
    return page_keep(page, before);
}

static Status run_list(Page *page)
{
    set_budget(page);
    TRY(walk(page, visit_list));
    if (page->is_full)
        page->continuation = place_print(page->request->arena, PLACE_LIST, &page->place);
    return STATUS_OK;
}

/* ---- the way of a request ---- */

static void on_answer(HttpTask *task);
static void on_worker(WorkerJob *job);

static Status page_begin(ApiRequest *r, Page **out, Error *err)
{
    Page *page = ARENA_NEW(r->arena, Page);
    page->epk_to = SLICE("\xFF");
    page->place.order = SCAN_BY_NUMBER;
    TRY(narrow_by_key(r, page, &page->is_narrow, err));
    if (!page->is_narrow)
        TRY(narrow_by_range(r, page, err));
    /* A range's own bounds live in the container, which is held; copies live in the arena. */
    TRY(request_max_items(r, &page->items_max, err));
    page->job.run = on_worker;
    page->task.run = on_answer;
    page->request = r;
    *out = page;
    return STATUS_OK;
}

static Status check_sessions(const ApiRequest *r, const Page *page, Error *err)
{
    if (request_header(r, "x-ms-session-token").len == 0)
        return STATUS_OK;
    for (size_t i = 0; i < r->container->range_count; i++) {
        if (!overlaps(&r->container->ranges[i], page->epk_from, page->epk_to))
            continue;
        ItemContext context;
        item_context_init(&context, (ApiRequest *)(uintptr_t)r, &r->container->ranges[i]);
        TRY(item_check_session(&context, err));
    }
    return STATUS_OK;
}

static Status page_post(Page *page, Error *err)
{
    ApiRequest *r = page->request;
    TRY(check_sessions(r, page, err));
    ItemContext context;
    item_context_init(&context, r, &r->container->ranges[0]);
    page->alt_path = context.alt_path;
    page->container = container_ref(r->container);
    buf_init(&page->text, ITEM_TEXT_BYTES_MAX);
    buf_init(&page->session, 64 << 10);
    r->container = NULL; /* these go with the loop's snapshot */
    r->database = NULL;
    r->snapshot = NULL;
    if (workers_post(r->api->options.workers, &page->job))
        return STATUS_OK;
    container_unref(page->container);
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "Too many queries are waiting for a worker; try again later.");
}

static Status run_query(Page *page);

static void on_worker(WorkerJob *job)
{
    Page *page = CONTAINER_OF(job, Page, job);
    page->status = page->query == NULL ? run_list(page) : run_query(page);
    if (page->status == STATUS_OK && buf_full(&page->text))
        page->status = error_set(&page->error, STATUS_TOO_LARGE, SUB_RESPONSE_TOO_LARGE,
                                 "One result is larger than the %zu bytes that an answer may have.",
                                 ITEM_TEXT_BYTES_MAX);
    http_loop_post(page->request->http->loop, &page->task);
}

static void release_body(void *ctx)
{
    mem_free(ctx);
}

static void on_answer(HttpTask *task)
{
    Page *page = CONTAINER_OF(task, Page, task);
    ApiRequest *r = page->request;
    Container *container = page->container;
    Response response;
    if (page->status != STATUS_OK) {
        response_error(r, &response, &page->error, charge_text(r, charge_miss()));
    } else {
        Buf body;
        buf_init(&body, page->text.len + ENVELOPE_BYTES_MAX);
        buf_format(&body, "{\"_rid\":\"%.*s\",\"Documents\":[", SLICE_ARG(container->info.rid));
        buf_slice(&body, buf_view(&page->text));
        buf_format(&body, "],\"_count\":%zu}", page->count);
        response_begin(r, &response, 200,
                       charge_text(r, charge_feed(page->bytes_read, page->items_read)));
        response_header(&response, SLICE("content-type"), SLICE("application/json"));
        response_header(&response, SLICE("x-ms-item-count"),
                        arena_format(r->arena, "%zu", page->count));
        if (page->continuation.len > 0)
            response_header(&response, SLICE("x-ms-continuation"), page->continuation);
        response.body = buf_view(&body);
        response.body_release = release_body;
        response.body_release_ctx = body.ptr;
    }
    if (page->session.len > 0)
        response_header(&response, SLICE("x-ms-session-token"),
                        arena_copy(r->arena, buf_view(&page->session)));
    response_header(&response, SLICE("x-ms-content-path"), container->info.rid);
    response_header(&response, SLICE("x-ms-alt-content-path"), page->alt_path);
    buf_done(&page->text);
    buf_done(&page->session);
    response_send(r, &response);
    container_unref(container);
}

static Status place_read(const ApiRequest *r, Page *page, PlaceKind kind, Error *err)
{
    Slice token = slice_trim(request_header(r, "x-ms-continuation"));
    if (token.len == 0)
        return STATUS_OK;
    return place_parse(r->arena, kind, page->place.order, token, &page->place, err);
}

Status documents_list(ApiRequest *r, Error *err)
{
    if (request_header(r, "a-im").len > 0)
        return error_set(err, STATUS_NOT_IMPLEMENTED, SUB_NONE,
                         "The change feed is not available in this version of orrery.");
    Page *page = NULL;
    TRY(page_begin(r, &page, err));
    TRY(place_read(r, page, PLACE_LIST, err));
    return page_post(page, err);
}

/* ---- queries ----
 *
 * There is no index yet: a query reads every item in its range. If each gives its results by
 * itself, a page reads as far as it must and goes on there, as a list does. Otherwise all are
 * gathered for each page, which is right and slow, and pages count results. */

static bool print_result(Page *page, Json result)
{
    if (page->count == page->items_max)
        return false;
    size_t before = page->text.len;
    if (page->count > 0)
        buf_byte(&page->text, ',');
    json_print(result, &page->text);
    return page_keep(page, before);
}

static bool visit_stream(Page *page, const Item *item)
{
    if (page->count == page->items_max)
        return false;
    arena_reset(&page->scratch);
    Json document = item_document(&page->scratch, page->container->schema, item);
    QueryOptions options = {
        .steps_max = QUERY_STEPS_MAX, .bytes_max = QUERY_BYTES_MAX, .clock = &page->now.clock};
    Json *results = NULL;
    size_t count = 0;
    page->status = query_run_with(page->query, options, &document, 1, &page->scratch, &results,
                                  &count, &page->error);
    if (page->status != STATUS_OK)
        return false;
    /* An item may give more results than a page takes: the next one skips those that it had. */
    size_t i = item->number == page->place.item ? page->place.skip : 0;
    page->place.skip = 0;
    for (; i < count; i++) {
        if (!print_result(page, results[i])) {
            page->place.item = item->number;
            page->place.skip = (uint32_t)i;
            return false;
        }
    }
    /* The scan looks at the clock now and then; a query may take long over one item. */
    if (clock_monotonic_us(page->request->api->options.clock) >= page->budget.deadline_us)
        page->budget.entries = 0;
    return true;
}

static Status run_stream(Page *page)
{
    set_budget(page);
    fake_clock_init(&page->now, clock_wall_us(page->request->api->options.clock));
    arena_init(&page->scratch, 16 << 10);
    Status status = walk(page, visit_stream);
    arena_done(&page->scratch);
    if (status == STATUS_OK && page->is_full)
        page->continuation = place_print(page->request->arena, PLACE_QUERY, &page->place);
    return status;
}

static bool visit_gather(Page *page, const Item *item)
{
    Arena *arena = page->request->arena;
    if (arena_used(arena) > QUERY_BYTES_MAX) {
        page->status = error_set(&page->error, STATUS_BAD_REQUEST, SUB_NONE,
                                 "The query reads more than %d MB; narrow it by partition key.",
                                 QUERY_BYTES_MAX >> 20);
        return false;
    }
    if (page->document_count == page->document_capacity) {
        size_t capacity = page->document_capacity == 0 ? 256 : 2 * page->document_capacity;
        Json *larger = ARENA_NEW_ARRAY(arena, Json, capacity);
        if (page->document_count > 0)
            memcpy(larger, page->documents, sizeof(Json) * page->document_count);
        page->documents = larger;
        page->document_capacity = capacity;
    }
    page->documents[page->document_count++] = item_document(arena, page->container->schema, item);
    return true;
}

static Status run_whole(Page *page)
{
    Arena *arena = page->request->arena;
    uint64_t entries_max = page->request->api->limits.query_entries_max;
    page->budget = (ScanBudget){.entries = entries_max};
    TRY(walk(page, visit_gather));
    if (page->is_full)
        return error_set(&page->error, STATUS_BAD_REQUEST, SUB_NONE,
                         "The query looks at more than %llu items; narrow it by partition key.",
                         (unsigned long long)entries_max);
    QueryOptions options = {.steps_max = QUERY_STEPS_MAX,
                            .bytes_max = QUERY_BYTES_MAX,
                            .clock = page->request->api->options.clock};
    Json *results = NULL;
    size_t count = 0;
    TRY(query_run_with(page->query, options, page->documents, page->document_count, arena, &results,
                       &count, &page->error));
    for (size_t i = page->skip; i < count; i++) {
        if (print_result(page, results[i]))
            continue;
        page->continuation = arena_format(arena, "Q1%08zx", i);
        break;
    }
    return STATUS_OK;
}

static Status run_query(Page *page)
{
    return query_is_streaming(page->query) ? run_stream(page) : run_whole(page);
}

static Status query_token_read(const ApiRequest *r, Page *page, Error *err)
{
    Slice token = slice_trim(request_header(r, "x-ms-continuation"));
    uint8_t bytes[4];
    size_t len = 0;
    if (token.len == 0)
        return STATUS_OK;
    if (!slice_starts_with(token, SLICE("Q1")) ||
        !hex_decode(slice_from(token, 2), bytes, sizeof(bytes), &len) || len != sizeof(bytes))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Invalid continuation token: '%.*s' was not given by this server for this "
                         "query.",
                         SLICE_CUT(token, 80));
    page->skip = be32_get(bytes);
    return STATUS_OK;
}

/* Who has not said that a query may go to every partition must name one. */
static Status check_spread(const ApiRequest *r, const Page *page, Error *err)
{
    const PartitionKeyDefinition *key = &r->container->partition_key;
    if (page->is_narrow || r->container->range_count == 1 ||
        request_flag(r, "x-ms-documentdb-query-enablecrosspartition") ||
        query_fixes(page->query, key->paths, key->path_count))
        return STATUS_OK;
    return error_set(
        err, STATUS_BAD_REQUEST, SUB_NONE,
        "Cross partition query is required but disabled. Set "
        "x-ms-documentdb-query-enablecrosspartition to true, give the partition key in "
        "x-ms-documentdb-partitionkey, or filter by it.");
}

Status documents_query(ApiRequest *r, Error *err)
{
    if (request_flag(r, "x-ms-cosmos-is-query-plan-request"))
        return refuse_plan(err);
    Page *page = NULL;
    Slice text;
    Json parameters;
    TRY(page_begin(r, &page, err));
    TRY(query_request(r->arena, r->http->body, &text, &parameters, err));
    /* The body goes away with this call, and a Query borrows from its text. */
    TRY(query_parse(r->arena, arena_copy(r->arena, text), parameters, &page->query, err));
    TRY(check_spread(r, page, err));
    if (query_is_streaming(page->query))
        TRY(place_read(r, page, PLACE_QUERY, err));
    else
        TRY(query_token_read(r, page, err));
    return page_post(page, err);
}
