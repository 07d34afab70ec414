/* document_feed.c - many items: lists and queries, page by page, on a worker.
 *
 * A request names what it wants to see by a partition key (or a prefix of a hierarchical one), by a
 * physical range, by a range of effective partition keys, or not at all; each of these becomes a
 * range of EPKs, which is walked over the physical partitions that serve it, in order.
 *
 *     token = base64 of | '1' u8 | order u8 | length u16 LE | EPK | position |
 *
 * EPK is where the partition begins that was being read, so that a token finds its place again in
 * whatever partition serves that by then; position is what partition_scan_position said. Items that
 * were not changed in between are neither lost nor repeated.
 */
#include "api/item_int.h"
#include "api/session_int.h"
#include "base/encoding.h"
#include "base/mem.h"
#include "query/query.h"

enum { TOKEN_BYTES_MAX = 4096, QUERY_BYTES_MAX = 256 << 20, QUERY_STEPS_MAX = 200000000 };
enum { ENVELOPE_BYTES_MAX = 256 }; /* what stands around the items of a page */

typedef struct Page {
    WorkerJob job;
    HttpTask task;
    ApiRequest *request;
    Container *container; /* a reference of its own */
    Slice alt_path;
    Slice epk_from; /* what is asked for */
    Slice epk_to;
    ScanOrder order;
    Slice resume_epk; /* from the token; NULL pointer: from the start */
    Slice resume_after;
    uint32_t items_max;
    Query *query;    /* NULL: a list */
    uint32_t skip;   /* a query's results that earlier pages returned */
    Json *documents; /* what it is evaluated over */
    size_t document_count;
    size_t document_capacity;

    Status status;
    Error error;
    Buf text; /* the items, separated by commas */
    size_t count;
    size_t bytes_read;
    size_t items_read;
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
    page->order = SCAN_BY_EPK;
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
    Slice bytes;
    if (from.len > 0) {
        TRY(epk_header_parse(r->arena, from, &bytes, err));
        if (slice_compare(bytes, page->epk_from) > 0) {
            page->epk_from = bytes;
            page->order = SCAN_BY_EPK;
        }
    }
    if (to.len > 0) {
        TRY(epk_header_parse(r->arena, to, &bytes, err));
        if (slice_compare(bytes, page->epk_to) < 0) {
            page->epk_to = bytes;
            page->order = SCAN_BY_EPK;
        }
    }
    return STATUS_OK;
}

/* ---- tokens ---- */

static Slice token_make(Arena *arena, const Page *page, Slice epk, Slice position)
{
    uint16_t len = (uint16_t)epk.len;
    char *bytes = arena_alloc(arena, 4 + epk.len + position.len);
    bytes[0] = '1';
    bytes[1] = (char)('0' + page->order);
    memcpy(bytes + 2, &len, sizeof(len));
    if (epk.len > 0)
        memcpy(bytes + 4, epk.ptr, epk.len);
    if (position.len > 0)
        memcpy(bytes + 4 + epk.len, position.ptr, position.len);
    size_t size = 4 + epk.len + position.len;
    char *text = arena_alloc(arena, BASE64_LEN(size));
    base64_encode(BASE64_RID, bytes, size, text);
    return slice_make(text, BASE64_LEN(size));
}

static Status token_read(const ApiRequest *r, Page *page, Error *err)
{
    Slice token = slice_trim(request_header(r, "x-ms-continuation"));
    if (token.len == 0)
        return STATUS_OK;
    char *bytes = arena_alloc(r->arena, TOKEN_BYTES_MAX);
    size_t len = 0;
    uint16_t epk_len = 0;
    bool good = base64_decode(BASE64_RID, token, bytes, TOKEN_BYTES_MAX, &len) && len >= 4 &&
                bytes[0] == '1' && bytes[1] == '0' + (char)page->order;
    if (good) {
        memcpy(&epk_len, bytes + 2, sizeof(epk_len));
        good = epk_len <= len - 4 && epk_len <= EPK_BYTES_MAX;
    }
    if (!good)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Invalid continuation token: '%.*s' was not given by this server for this "
                         "feed.",
                         SLICE_CUT(token, 80));
    page->resume_epk = slice_make(bytes + 4, epk_len);
    page->resume_after = slice_make(bytes + 4 + epk_len, len - 4 - epk_len);
    return STATUS_OK;
}

/* ---- walking ---- */

/* What is done with an item: false ends the page before it. */
typedef bool (*Visit)(Page *page, const Item *item);

static bool overlaps(const Page *page, const PartitionRange *range)
{
    return slice_compare(range->min_bytes, page->epk_to) < 0 &&
           slice_compare(page->epk_from, range->max_bytes) < 0;
}

static void note_session(Page *page, const PartitionRange *range)
{
    if (page->session.len > 0)
        buf_byte(&page->session, ',');
    buf_format(&page->session, "%u:-1#%llu", range->id,
               (unsigned long long)partition_lsn(range->partition));
}

static Status walk_range(Page *page, const PartitionRange *range, Slice after, Visit visit,
                         bool *is_full)
{
    ScanOptions options = {
        .order = page->order,
        .epk_from = page->epk_from,
        .epk_to = page->epk_to,
        .after = after,
    };
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    TRY(partition_scan_open(range->partition, page->container->schema, &options, &scan,
                            &page->error));
    note_session(page, range);
    /* Copied: the item that ends the page has a position, too, and takes the place of this one. */
    AUTO(buf_done) Buf last;
    buf_init(&last, TOKEN_BYTES_MAX);
    buf_slice(&last, after);
    for (;;) {
        Item item;
        bool found = false;
        TRY(partition_scan_next(scan, &item, &found, &page->error));
        if (!found)
            return STATUS_OK;
        if (!visit(page, &item)) {
            *is_full = true;
            page->continuation =
                token_make(page->request->arena, page, range->min_bytes, buf_view(&last));
            return STATUS_OK;
        }
        page->items_read++;
        page->bytes_read += item.bytes;
        buf_reset(&last);
        buf_slice(&last, partition_scan_position(scan));
    }
}

static Status walk(Page *page, Visit visit)
{
    bool is_full = false;
    for (size_t i = 0; i < page->container->range_count && !is_full; i++) {
        const PartitionRange *range = &page->container->ranges[i];
        if (!overlaps(page, range))
            continue;
        Slice after = SLICE_EMPTY;
        if (page->resume_epk.ptr != NULL) {
            /* Skip what lies wholly before the place; the range that holds it goes on behind the
             * position. */
            if (slice_compare(range->max_bytes, page->resume_epk) <= 0)
                continue;
            if (slice_compare(range->min_bytes, page->resume_epk) <= 0)
                after = page->resume_after;
        }
        TRY(walk_range(page, range, after, visit, &is_full));
    }
    return STATUS_OK;
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

/* ---- the way of a request ---- */

static void on_answer(HttpTask *task);
static void on_worker(WorkerJob *job);

static Status page_begin(ApiRequest *r, Page **out, Error *err)
{
    Page *page = ARENA_NEW(r->arena, Page);
    page->epk_to = SLICE("\xFF");
    page->order = SCAN_BY_NUMBER;
    bool has_key = false;
    TRY(narrow_by_key(r, page, &has_key, err));
    if (!has_key)
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
        if (!overlaps(page, &r->container->ranges[i]))
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
    page->status = page->query == NULL ? walk(page, visit_list) : run_query(page);
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

Status documents_list(ApiRequest *r, Error *err)
{
    if (request_header(r, "a-im").len > 0)
        return error_set(err, STATUS_NOT_IMPLEMENTED, SUB_NONE,
                         "The change feed is not available in this version of orrery.");
    Page *page = NULL;
    TRY(page_begin(r, &page, err));
    TRY(token_read(r, page, err));
    return page_post(page, err);
}

/* ---- queries ----
 *
 * There is no index yet: a query reads every item in its range and is evaluated over them, which is
 * right and slow. Its pages count results, as those of the lists of resources do. */

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

static Status run_query(Page *page)
{
    Arena *arena = page->request->arena;
    TRY(walk(page, visit_gather));
    TRY(page->status);
    QueryOptions options = {.steps_max = QUERY_STEPS_MAX, .bytes_max = QUERY_BYTES_MAX};
    Json *results = NULL;
    size_t count = 0;
    TRY(query_run_with(page->query, options, page->documents, page->document_count, arena, &results,
                       &count, &page->error));
    page->continuation = SLICE_EMPTY;
    bool is_full = false;
    for (size_t i = page->skip; i < count && !is_full; i++) {
        size_t before = page->text.len;
        is_full = page->count == page->items_max;
        if (!is_full) {
            if (page->count > 0)
                buf_byte(&page->text, ',');
            json_print(results[i], &page->text);
            is_full = !page_keep(page, before);
        }
        if (is_full)
            page->continuation = arena_format(arena, "Q1%08zx", i);
    }
    return STATUS_OK;
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

Status documents_query(ApiRequest *r, Error *err)
{
    if (request_flag(r, "x-ms-cosmos-is-query-plan-request"))
        return refuse_plan(err);
    Page *page = NULL;
    Slice text;
    Json parameters;
    TRY(page_begin(r, &page, err));
    TRY(query_token_read(r, page, err));
    TRY(query_request(r->arena, r->http->body, &text, &parameters, err));
    /* The body goes away with this call, and a Query borrows from its text. */
    TRY(query_parse(r->arena, arena_copy(r->arena, text), parameters, &page->query, err));
    return page_post(page, err);
}
