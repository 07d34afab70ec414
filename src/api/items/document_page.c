/* document_page.c - see document_page_int.h. */
#include "api/items/document_page_int.h"

#include "api/core/forward_int.h"
#include "api/core/session_int.h"
#include "api/core/throttle_int.h"
#include "api/core/usage_int.h"

#include <sched.h>
#include <time.h>

enum { TEXT_BYTES_FIRST = 4096 }; /* room for a few items from the start */

/* ---- what is paid ---- */

uint64_t document_page_now_us(const DocumentPage *page)
{
    return clock_monotonic_us(page->request->api->options.clock);
}

Status document_page_admit(DocumentPage *page, const PartitionRange *range)
{
    return throttle_admit(page->request, container_handle(page->container, range),
                          document_page_now_us(page), &page->answer.error);
}

bool document_page_is_local(const DocumentPage *page, const PartitionRange *range)
{
    return handle_is_local(container_handle(page->container, range));
}

static void add_session(PageAnswer *answer, Slice entry)
{
    Buf *session = &answer->session;
    /* Half an entry would make the token malformed. */
    if (session->len + 1 + entry.len > SESSION_TEXT_MAX)
        return;
    if (session->len > 0)
        buf_byte(session, ',');
    buf_slice(session, entry);
}

void document_page_add_session(DocumentPage *page, Slice entry)
{
    add_session(&page->answer, entry);
}

void document_page_session(DocumentPage *page, const PartitionRange *range)
{
    document_page_session_at(page, range, handle_lsn(container_handle(page->container, range)));
}

/* A snapshot may show a group a moment before the partition publishes its LSN. */
typedef struct AheadRange {
    const PartitionHandle *partition;
    uint64_t lsn;
} AheadRange;

static void note_ahead(DocumentPage *page, const PartitionRange *range, uint64_t lsn)
{
    const PartitionHandle *partition = container_handle(page->container, range);
    if (LIKELY(handle_lsn(partition) >= lsn))
        return;
    if (page->ahead == NULL)
        page->ahead =
            ARENA_NEW_ARRAY(page->request->arena, AheadRange, page->container->range_count);
    /* A partition that is visited twice has a later entry: it counts for both. */
    if (page->ahead_count == page->container->range_count)
        page->ahead_count--;
    page->ahead[page->ahead_count++] = (AheadRange){partition, lsn};
}

static bool is_published(const DocumentPage *page)
{
    for (size_t i = 0; i < page->ahead_count; i++) {
        if (handle_lsn(page->ahead[i].partition) < page->ahead[i].lsn &&
            handle_is_served(page->ahead[i].partition))
            return false;
    }
    return true;
}

/* On the loop a page waits for a moment only, and else begins again on a worker. */
static bool wait_until_published(const DocumentPage *page)
{
    enum { BRIEF_LOOKS = 16, LOOK_NS = 20000 };
    for (int i = 0; !is_published(page); i++) {
        if (page->is_brief && i == BRIEF_LOOKS)
            return false;
        if (page->is_brief)
            (void)sched_yield();
        else
            (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    return true;
}

void document_page_session_at(DocumentPage *page, const PartitionRange *range, uint64_t lsn)
{
    const ApiRequest *r = page->request;
    add_session(&page->answer, session_print(r->arena, range->id, lsn));
    note_ahead(page, range, lsn);
    Error err;
    if (page->is_behind ||
        document_check_token(r, page->session_token, range, lsn, &err) == STATUS_OK)
        return;
    page->is_behind = true;
    page->answer.error = err;
}

/* Partitions are visited in their order; one may be visited twice, if it was split between pages.
 */
RangeCharge *document_page_charge_of(DocumentPage *page, const PartitionRange *range)
{
    const Container *container = page->container;
    PageBill *bill = &page->bill;
    uint32_t index = (uint32_t)(range - container->ranges);
    ASSERT(index < container->range_count);
    if (bill->charges == NULL)
        bill->charges = ARENA_NEW_ARRAY(page->request->arena, RangeCharge, container->range_count);
    if (bill->count == 0 || bill->charges[bill->count - 1].range != index) {
        ASSERT(bill->count < container->range_count);
        bill->charges[bill->count++] = (RangeCharge){.range = index};
    }
    return &bill->charges[bill->count - 1];
}

void document_page_charge(DocumentPage *page, const PartitionRange *range, Charge charge)
{
    charge = document_read_charge(page->request, charge);
    document_page_charge_of(page, range)->charge += charge;
    page->bill.sum += charge;
}

/* How far it came is not known: it is charged like any request that is refused, to the first
 * partition of this node that it was about. */
static void charge_failure(DocumentPage *page)
{
    const Container *container = page->container;
    size_t first = 0;
    while (first + 1 < container->range_count &&
           (!document_extent_needs(&page->extent, &container->ranges[first]) ||
            !document_page_is_local(page, &container->ranges[first])))
        first++;
    page->bill.count = 0;
    page->bill.sum = 0;
    document_page_charge(page, &container->ranges[first], document_failed_charge(page->request));
}

/* The logical partition that is charged, if it is one. */
static void name_key(DocumentPage *page)
{
    if (page->extent.has_key && page->extent.key.count == page->container->partition_key.path_count)
        usage_name(page->request, page->container, &page->extent.key, page->extent.epk_from);
}

/* Takes the page's charges from the budgets of the partitions, and returns their sum as text. */
static Slice pay(DocumentPage *page)
{
    ApiRequest *r = page->request;
    const PageBill *bill = &page->bill;
    uint64_t now_us = document_page_now_us(page);
    for (size_t i = 0; i < bill->count; i++) {
        if (!document_page_is_local(page, &page->container->ranges[bill->charges[i].range]))
            continue; /* its owner has paid */
        throttle_pay(r, container_handle_at(page->container, bill->charges[i].range),
                     bill->charges[i].charge, now_us);
    }
    return response_charge(r, bill->sum);
}

/* ---- the way of a request ---- */

static void on_answer(HttpTask *task);
static void on_worker(WorkerJob *job);

Status document_page_init(DocumentPage *page, ApiRequest *r, Status (*run)(DocumentPage *page),
                          Error *err)
{
    ASSERT(page->request == NULL);
    page->request = r;
    page->run = run;
    page->text_bytes_max = ITEM_TEXT_BYTES_MAX;
    page->job.run = on_worker;
    page->task.run = on_answer;
    TRY(throttle_classify(r, err));
    TRY(document_extent_read(r, &page->extent, err));
    return request_max_items(r, &page->items_max, err);
}

/* Which ranges the page visits is known when it runs: document_page_session compares the token with
 * each. */
static Status read_session(DocumentPage *page, Error *err)
{
    ApiRequest *r = page->request;
    Slice token = document_session_token(r);
    TRY(session_check(token, err));
    page->session_token = arena_copy(r->arena, token);
    return STATUS_OK;
}

/* Runs the page; one that has visited a partition which is behind the session token fails. */
static void run(DocumentPage *page)
{
    PageAnswer *answer = &page->answer;
    answer->status = page->run(page);
    if (UNLIKELY(!wait_until_published(page)))
        answer->status =
            error_set(&answer->error, STATUS_TIMEOUT, SUB_NONE, "a worker must do this");
    if (page->is_behind && answer->status == STATUS_OK)
        answer->status = answer->error.status;
}

enum { BRIEF_FAILURES_MAX = 8, BRIEF_SKIPS = 16 };

/* Where most attempts fail, because what is asked for is on disk or takes long, few are made. */
static bool tries_briefly(const DocumentPage *page)
{
    ApiLoop *loop = page->request->loop;
    return page->can_be_brief && (page->is_instant || loop->brief_failures < BRIEF_FAILURES_MAX ||
                                  ++loop->brief_skips % BRIEF_SKIPS == 0);
}

static void note_attempt(ApiLoop *loop, bool is_answered)
{
    if (is_answered)
        loop->brief_failures /= 2;
    else if (loop->brief_failures < BRIEF_FAILURES_MAX)
        loop->brief_failures++;
}

/* Takes back what a run has left, so that it can begin again; it stays admitted. */
static void forget(DocumentPage *page)
{
    PageAnswer *answer = &page->answer;
    ASSERT(answer->text.len >= answer->text_begin);
    answer->text.len = answer->text_begin;
    answer->text.full = false;
    answer->count = 0;
    answer->session.len = 0;
    answer->header_count = 0;
    answer->continuation = SLICE_EMPTY;
    answer->is_not_modified = false;
    page->is_behind = false;
    page->ahead_count = 0;
    page->bill.count = 0;
    page->bill.sum = 0;
}

static bool is_too_long(const DocumentPage *page)
{
    const PageAnswer *answer = &page->answer;
    return buf_full(&answer->text) || answer->text.len - answer->text_begin > page->text_bytes_max;
}

/* Two threads that wake each other take longer than a query that finds a few items in memory. On
 * the loop other requests wait for it: what would take long is left, and begins again on a worker.
 */
static bool run_briefly(DocumentPage *page)
{
    page->is_brief = true;
    run(page);
    page->is_brief = false;
    bool is_answered = page->answer.status == STATUS_THROTTLED ||
                       page->answer.status == STATUS_NOT_OWNER || page->is_behind ||
                       (page->answer.status == STATUS_OK && !is_too_long(page));
    note_attempt(page->request->loop, is_answered);
    if (!is_answered)
        forget(page);
    return is_answered;
}

static void begin_text(DocumentPage *page)
{
    Buf *text = &page->answer.text;
    buf_init(text, page->text_bytes_max + 2 * ENVELOPE_BYTES_MAX);
    if (page->is_binary)
        return;
    (void)buf_reserve(text, TEXT_BYTES_FIRST);
    buf_slice(text, SLICE("{\"_rid\":\""));
    buf_slice(text, page->container->info.rid);
    buf_slice(text, SLICE("\",\"Documents\":["));
    page->answer.text_begin = text->len;
}

static void end_text(PageAnswer *answer)
{
    buf_slice(&answer->text, SLICE("],\"_count\":"));
    buf_u64(&answer->text, answer->count);
    buf_byte(&answer->text, '}');
}

Status document_page_post(DocumentPage *page, Error *err)
{
    ApiRequest *r = page->request;
    ASSERT(page->container == NULL);
    TRY(read_session(page, err));
    document_functions_find(r, &r->http->body, &page->functions);
    DocumentContext context;
    document_context_init(&context, r, &r->container->ranges[0]);
    page->alt_path = context.alt_path;
    page->container = container_ref(r->container);
    begin_text(page);
    buf_init(&page->answer.session, SESSION_TEXT_MAX);
    r->container = NULL; /* these belong to the loop's snapshot */
    r->database = NULL;
    r->snapshot = NULL;
    if (tries_briefly(page) && run_briefly(page)) {
        on_answer(&page->task);
        return STATUS_OK;
    }
    forward_keep(r);
    if (workers_post(page->workers != NULL ? page->workers : r->api->options.workers, &page->job))
        return STATUS_OK;
    buf_done(&page->answer.text);
    buf_done(&page->answer.session);
    container_unref(page->container);
    document_functions_release(&page->functions);
    return request_refuse_busy(err);
}

static bool is_abandoned(const DocumentPage *page)
{
    return atomic_load_explicit(&page->request->http->is_abandoned, memory_order_relaxed);
}

/* Only a client that has closed just its half of the connection will read this. */
static Status cancelled(DocumentPage *page)
{
    return error_set(
        &page->answer.error, STATUS_TIMEOUT, SUB_NONE,
        "The request was cancelled: its connection was closed before it was answered.");
}

static void on_worker(WorkerJob *job)
{
    DocumentPage *page = CONTAINER_OF(job, DocumentPage, job);
    const Api *api = page->request->api;
    document_clock_begin(&page->clock, api->options.clock, &page->request->http->is_abandoned,
                         api->limits.us_max);
    if (is_abandoned(page))
        page->answer.status = cancelled(page);
    else
        run(page);
    if (page->answer.status != STATUS_OK && is_abandoned(page))
        page->answer.status = cancelled(page);
    if (page->answer.status == STATUS_OK && is_too_long(page))
        page->answer.status =
            error_set(&page->answer.error, STATUS_TOO_LARGE, SUB_RESPONSE_TOO_LARGE,
                      "One result is larger than the %zu bytes that an answer may have.",
                      page->text_bytes_max);
    http_loop_post(page->request->http->loop, &page->task);
}

static void fill_response(DocumentPage *page, Response *response)
{
    ApiRequest *r = page->request;
    PageAnswer *answer = &page->answer;
    /* A list of an empty range of EPKs has visited no partition. */
    const PartitionRange *first = target_range(page->container, page->extent.epk_from);
    if (answer->session.len == 0 && document_page_is_local(page, first))
        document_page_session(page, first);
    response_begin(r, response, answer->is_not_modified ? 304 : 200, pay(page));
    if (!answer->is_not_modified)
        response_header(response, SLICE("content-type"),
                        page->is_binary ? SLICE("application/octet-stream")
                                        : SLICE("application/json"));
    response_header(response, SLICE("x-ms-item-count"),
                    arena_format(r->arena, "%zu", answer->count));
    if (answer->continuation.len > 0)
        response_header(response, SLICE("x-ms-continuation"), answer->continuation);
    for (size_t i = 0; i < answer->header_count; i++)
        response_header(response, answer->headers[i].name, answer->headers[i].value);
    if (answer->is_not_modified) {
        buf_done(&answer->text);
        return;
    }
    if (!page->is_binary)
        end_text(answer);
    response_own_body(response, &answer->text);
}

/* Of a failure, if a partition was looked at: see document_error_headers. */
static bool has_session(const DocumentPage *page)
{
    const PageAnswer *answer = &page->answer;
    bool is_told = answer->status != STATUS_THROTTLED && !page->is_behind;
    return is_told && answer->session.len > 0;
}

static void on_answer(HttpTask *task)
{
    DocumentPage *page = CONTAINER_OF(task, DocumentPage, task);
    ApiRequest *r = page->request;
    PageAnswer *answer = &page->answer;
    Container *container = page->container;
    Response response;
    if (is_abandoned(page))
        metrics_add(http_loop_metrics(r->http->loop), METRIC_QUERIES_CANCELLED, 1);
    name_key(page);
    if (page->answered != NULL)
        page->answered(page);
    document_functions_release(&page->functions);
    if (answer->status == STATUS_OK) {
        fill_response(page, &response);
    } else {
        if (answer->status == STATUS_NOT_OWNER)
            page->bill.count = 0;                    /* another node does it, and is paid for it */
        else if (answer->status != STATUS_THROTTLED) /* which has cost nothing */
            charge_failure(page);
        response_error(r, &response, &answer->error, pay(page));
        buf_done(&answer->text);
    }
    if (has_session(page))
        document_session_headers(&response, arena_copy(r->arena, buf_view(&answer->session)));
    buf_done(&answer->session);
    response_header(&response, SLICE("x-ms-content-path"), container->info.rid);
    response_header(&response, SLICE("x-ms-alt-content-path"), page->alt_path);
    response_send(r, &response);
    container_unref(container);
}
