/* document_feed.c - many items: lists, page by page, on a worker; and what queries share with them.
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
#include "api/item_page_int.h"
#include "api/throttle_int.h"
#include "api/usage_int.h"
#include "base/mem.h"

enum { TEXT_BYTES_FIRST = 4096 }; /* room for a few items from the start */

/* ---- what is asked for ---- */

void item_page_narrow(ItemPage *page, PartitionKind kind, const PartitionKey *key)
{
    Arena *arena = page->request->arena;
    Epk epk;
    epk_make(kind, key, &epk);
    page->key = *key;
    page->has_key = true;
    page->epk_from = arena_copy(arena, epk_slice(&epk));
    page->epk_to = epk_prefix_end(arena, page->epk_from);
    page->place.order = SCAN_BY_EPK;
}

static Status narrow_by_key(const ApiRequest *r, ItemPage *page, bool *found, Error *err)
{
    const PartitionKeyDefinition *definition = &r->container->partition_key;
    PartitionKey key;
    TRY(partition_key_parse(r->arena, request_header(r, "x-ms-documentdb-partitionkey"), definition,
                            KEY_PREFIX, &key, found, err));
    if (*found && definition->kind != PARTITION_NONE)
        item_page_narrow(page, definition->kind, &key);
    return STATUS_OK;
}

/* SDKs say what the ends of a range are; other kinds than EPKs are for other transports. */
static Status check_key_type(const ApiRequest *r, Error *err)
{
    Slice type = slice_trim(request_header(r, "x-ms-read-key-type"));
    if (type.len == 0 || slice_equal_nocase(type, SLICE("EffectivePartitionKeyRange")))
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "x-ms-read-key-type '%.*s' is not supported: only EffectivePartitionKeyRange, "
                     "with hexadecimal x-ms-start-epk and x-ms-end-epk.",
                     SLICE_CUT(type, 60));
}

/* Any range of EPKs, finer or coarser than physical ones; within a physical range, if one is given,
 * only what it has of it. */
static Status narrow_by_range(const ApiRequest *r, ItemPage *page, Error *err)
{
    const PartitionRange *range = NULL;
    bool found = false;
    TRY(check_key_type(r, err));
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
typedef bool (*Visit)(ItemPage *page, const Item *item);

/* Whether a partition has anything of ['from', 'to'). */
static bool range_overlaps(const PartitionRange *range, Slice from, Slice to)
{
    return slice_compare(range->min_bytes, to) < 0 && slice_compare(from, range->max_bytes) < 0;
}

/* The first range of the route that does not end before the partition decides. */
static bool is_on_route(const QueryRoute *route, const PartitionRange *range)
{
    size_t low = 0;
    size_t high = route->count;
    while (low < high) {
        size_t middle = low + ((high - low) / 2);
        if (slice_compare(route->ranges[middle].to, range->min_bytes) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < route->count &&
           range_overlaps(range, route->ranges[low].from, route->ranges[low].to);
}

bool item_page_needs(const ItemPage *page, const PartitionRange *range)
{
    return range_overlaps(range, page->epk_from, page->epk_to) &&
           (page->route == NULL || is_on_route(page->route, range));
}

/* ---- what is paid ---- */

static uint64_t now_us(const ItemPage *page)
{
    return clock_monotonic_us(page->request->api->options.clock);
}

Status item_page_admit(ItemPage *page, const PartitionRange *range)
{
    return throttle_admit(page->request, range, now_us(page), &page->error);
}

void item_page_session(ItemPage *page, const PartitionRange *range)
{
    if (page->session.len > 0)
        buf_byte(&page->session, ',');
    buf_u64(&page->session, range->id);
    buf_slice(&page->session, SLICE(":-1#"));
    buf_u64(&page->session, partition_lsn(range->partition));
}

/* Partitions are visited in their order; one may be visited twice, if it was split between pages.
 */
static RangeCharge *charge_of(ItemPage *page, const PartitionRange *range)
{
    const Container *container = page->container;
    uint32_t index = (uint32_t)(range - container->ranges);
    if (page->charges == NULL)
        page->charges = ARENA_NEW_ARRAY(page->request->arena, RangeCharge, container->range_count);
    if (page->charge_count == 0 || page->charges[page->charge_count - 1].range != index) {
        ASSERT(page->charge_count < container->range_count);
        page->charges[page->charge_count++] = (RangeCharge){.range = index};
    }
    return &page->charges[page->charge_count - 1];
}

void item_page_charge(ItemPage *page, const PartitionRange *range, Charge charge)
{
    charge = item_read_charge(page->request, charge);
    charge_of(page, range)->charge += charge;
    page->charge += charge;
}

/* Nobody knows how far it came: it is charged as any request that is refused, to the first
 * partition that it was about. */
static void charge_failure(ItemPage *page)
{
    const Container *container = page->container;
    size_t first = 0;
    while (first + 1 < container->range_count && !item_page_needs(page, &container->ranges[first]))
        first++;
    page->charge_count = 0;
    page->charge = 0;
    item_page_charge(page, &container->ranges[first], item_failed_charge(page->request));
}

/* Who is behind it, if that is one whole key. */
static void name_key(ItemPage *page)
{
    if (page->has_key && page->key.count == page->container->partition_key.path_count)
        usage_name(page->request, page->container, &page->key, page->epk_from);
}

/* Takes the page's charges from the budgets of the partitions, and returns their sum as text. */
static Slice pay(ItemPage *page)
{
    ApiRequest *r = page->request;
    uint64_t now = now_us(page);
    for (size_t i = 0; i < page->charge_count; i++) {
        const PartitionRange *range = &page->container->ranges[page->charges[i].range];
        throttle_pay(r, range, page->charges[i].charge, now);
    }
    return charge_text(r, page->charge);
}

/* Walks one partition; if the page ends there, 'position' is where. A partition that has nothing
 * left to spend turns the page away if it is the first, and otherwise ends it. */
static Status walk_range(ItemPage *page, const PartitionRange *range, const ScanOptions *options,
                         Visit visit, Slice *position)
{
    bool is_admitted = true;
    if (page->charge_count > 0)
        is_admitted = throttle_has_credit(page->request, range, now_us(page));
    else if (!page->is_admitted) /* or it was, and has to begin anew */
        TRY(item_page_admit(page, range));
    page->is_admitted = true;
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    TRY(partition_scan_open(range->partition, page->container->schema, options, &scan,
                            &page->error));
    const ChargeModel *model = page->request->api->options.charges;
    RangeCharge *reads = NULL;
    if (is_admitted) {
        item_page_session(page, range);
        reads = charge_of(page, range);
    }
    bool found = true;
    while (found) {
        Item item;
        TRY(partition_scan_next(scan, &item, &found, &page->error));
        if (found && !(is_admitted && visit(page, &item))) {
            page->is_full = true;
            break;
        }
        if (found)
            reads->charge += charge_read(model, item.bytes);
    }
    page->is_full = page->is_full || partition_scan_paused(scan);
    *position = arena_copy(page->request->arena, partition_scan_position(scan));
    return STATUS_OK;
}

/* Walks the piece 'index' of the page's place, which begins at 'from', over all the partitions that
 * have something of it; the last piece is what is behind the others. */
static Status walk_piece(ItemPage *page, size_t index, Slice from, Visit visit)
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
        if (!range_overlaps(range, options.epk_from, options.epk_to))
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

static Status walk(ItemPage *page, Visit visit)
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
static void set_budget(ItemPage *page)
{
    const Api *api = page->request->api;
    page->budget = (ScanBudget){
        .entries = api->limits.entries_max,
        .deadline_us = page->clock.deadline_us,
        .clock = &page->clock.pauses,
    };
}

/* Counts what was printed behind 'before', or takes it back because the page would be too large.
 * The first one always stays: a page makes some way. */
static bool page_keep(ItemPage *page, size_t before)
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

static bool visit_list(ItemPage *page, const Item *item)
{
    if (page->count == page->items_max)
        return false;
    size_t before = page->text.len;
    if (page->count > 0)
        buf_byte(&page->text, ',');
    item_print(page->container->schema, item, &page->text);
    return page_keep(page, before);
}

static Status run_list(ItemPage *page)
{
    const ChargeModel *model = page->request->api->options.charges;
    set_budget(page);
    TRY(walk(page, visit_list));
    for (size_t i = 0; i < page->charge_count; i++) {
        Charge *charge = &page->charges[i].charge; /* of the reads, so far */
        *charge = item_read_charge(page->request, charge_feed(model, *charge));
        page->charge += *charge;
    }
    if (page->is_full)
        page->continuation = place_print(page->request->arena, &page->place);
    return STATUS_OK;
}

/* ---- the way of a request ---- */

static void on_answer(HttpTask *task);
static void on_worker(WorkerJob *job);

Status item_page_begin(ApiRequest *r, Status (*run)(ItemPage *page), ItemPage **out, Error *err)
{
    ItemPage *page = ARENA_NEW(r->arena, ItemPage);
    page->request = r;
    TRY(throttle_classify(r, err));
    page->epk_to = SLICE("\xFF");
    page->place.order = SCAN_BY_NUMBER;
    TRY(narrow_by_key(r, page, &page->is_narrow, err));
    if (!page->is_narrow)
        TRY(narrow_by_range(r, page, err));
    /* A range's own bounds live in the container, which is held; copies live in the arena. */
    TRY(request_max_items(r, &page->items_max, err));
    page->run = run;
    page->job.run = on_worker;
    page->task.run = on_answer;
    *out = page;
    return STATUS_OK;
}

static Status check_sessions(const ApiRequest *r, const ItemPage *page, Error *err)
{
    if (request_header(r, "x-ms-session-token").len == 0)
        return STATUS_OK;
    for (size_t i = 0; i < r->container->range_count; i++) {
        if (!item_page_needs(page, &r->container->ranges[i]))
            continue;
        ItemContext context;
        item_context_init(&context, (ApiRequest *)(uintptr_t)r, &r->container->ranges[i]);
        TRY(item_check_session(&context, err));
    }
    return STATUS_OK;
}

enum { BRIEF_FAILURES_MAX = 8, BRIEF_SKIPS = 16 };

/* Where most attempts are in vain, because what is asked for is on disk or long, few are made. */
static bool tries_briefly(const ItemPage *page)
{
    ApiLoop *loop = page->request->loop;
    return page->can_be_brief &&
           (loop->brief_failures < BRIEF_FAILURES_MAX || ++loop->brief_skips % BRIEF_SKIPS == 0);
}

static void note_attempt(ApiLoop *loop, bool is_answered)
{
    if (is_answered)
        loop->brief_failures /= 2;
    else if (loop->brief_failures < BRIEF_FAILURES_MAX)
        loop->brief_failures++;
}

/* So that it can begin anew. */
static void forget(ItemPage *page)
{
    page->text.len = page->text_begin;
    page->text.full = false;
    page->session.len = 0;
    page->header_count = 0;
    page->charge_count = 0;
    page->charge = 0;
    page->continuation = SLICE_EMPTY;
}

static bool is_too_long(const ItemPage *page)
{
    return buf_full(&page->text) || page->text.len - page->text_begin > ITEM_TEXT_BYTES_MAX;
}

/* Two threads that wake each other take longer than a query that finds a few items in memory. On
 * the loop others wait for it: what would take long is left, and begun anew on a worker. */
static bool run_briefly(ItemPage *page)
{
    page->is_brief = true;
    page->status = page->run(page);
    page->is_brief = false;
    bool is_answered =
        page->status == STATUS_THROTTLED || (page->status == STATUS_OK && !is_too_long(page));
    note_attempt(page->request->loop, is_answered);
    if (!is_answered)
        forget(page);
    return is_answered;
}

static void begin_text(ItemPage *page)
{
    Buf *text = &page->text;
    buf_init(text, ITEM_TEXT_BYTES_MAX + 2 * ENVELOPE_BYTES_MAX);
    (void)buf_reserve(text, TEXT_BYTES_FIRST);
    buf_slice(text, SLICE("{\"_rid\":\""));
    buf_slice(text, page->container->info.rid);
    buf_slice(text, SLICE("\",\"Documents\":["));
    page->text_begin = text->len;
}

static void end_text(ItemPage *page)
{
    buf_slice(&page->text, SLICE("],\"_count\":"));
    buf_u64(&page->text, page->count);
    buf_byte(&page->text, '}');
}

Status item_page_post(ItemPage *page, Error *err)
{
    ApiRequest *r = page->request;
    TRY(check_sessions(r, page, err));
    ItemContext context;
    item_context_init(&context, r, &r->container->ranges[0]);
    page->alt_path = context.alt_path;
    page->container = container_ref(r->container);
    begin_text(page);
    buf_init(&page->session, 64 << 10);
    r->container = NULL; /* these go with the loop's snapshot */
    r->database = NULL;
    r->snapshot = NULL;
    if (tries_briefly(page) && run_briefly(page)) {
        on_answer(&page->task);
        return STATUS_OK;
    }
    if (workers_post(r->api->options.workers, &page->job))
        return STATUS_OK;
    buf_done(&page->text);
    buf_done(&page->session);
    container_unref(page->container);
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "Too many queries are waiting for a worker; try again later.");
}

static bool is_abandoned(const ItemPage *page)
{
    return atomic_load_explicit(&page->request->http->is_abandoned, memory_order_relaxed);
}

/* For a client that has closed only its half of the connection; any other will not read it. */
static Status cancelled(ItemPage *page)
{
    return error_set(
        &page->error, STATUS_TIMEOUT, SUB_NONE,
        "The request was cancelled: its connection was closed before it was answered.");
}

static void on_worker(WorkerJob *job)
{
    ItemPage *page = CONTAINER_OF(job, ItemPage, job);
    const Api *api = page->request->api;
    page_clock_begin(&page->clock, api->options.clock, &page->request->http->is_abandoned,
                     api->limits.us_max);
    page->status = is_abandoned(page) ? cancelled(page) : page->run(page);
    if (page->status != STATUS_OK && is_abandoned(page))
        page->status = cancelled(page);
    if (page->status == STATUS_OK && is_too_long(page))
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
    ItemPage *page = CONTAINER_OF(task, ItemPage, task);
    ApiRequest *r = page->request;
    Container *container = page->container;
    Response response;
    if (is_abandoned(page))
        metrics_add(http_loop_metrics(r->http->loop), METRIC_QUERIES_CANCELLED, 1);
    name_key(page);
    if (page->status != STATUS_OK) {
        if (page->status != STATUS_THROTTLED) /* which has cost nothing */
            charge_failure(page);
        response_error(r, &response, &page->error, pay(page));
    } else {
        end_text(page);
        response_begin(r, &response, 200, pay(page));
        response_header(&response, SLICE("content-type"), SLICE("application/json"));
        response_header(&response, SLICE("x-ms-item-count"),
                        arena_format(r->arena, "%zu", page->count));
        if (page->continuation.len > 0)
            response_header(&response, SLICE("x-ms-continuation"), page->continuation);
        for (size_t i = 0; i < page->header_count; i++)
            response_header(&response, page->headers[i].name, page->headers[i].value);
        response.body = buf_view(&page->text);
        response.body_release = release_body;
        response.body_release_ctx = page->text.ptr;
        buf_init(&page->text, 0); /* it is the response's now */
    }
    if (page->session.len > 0)
        item_session_headers(&response, arena_copy(r->arena, buf_view(&page->session)));
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
    ItemPage *page = NULL;
    TRY(item_page_begin(r, run_list, &page, err));
    Slice token = slice_trim(request_header(r, "x-ms-continuation"));
    if (token.len > 0)
        TRY(place_parse(r->arena, page->place.order, token, &page->place, err));
    return item_page_post(page, err);
}
