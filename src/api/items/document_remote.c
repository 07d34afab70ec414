/* document_remote.c - see document_remote_int.h. */
#include "api/items/document_remote_int.h"

#include "api/core/forward_int.h"
#include "api/core/session_int.h"
#include "base/encoding.h"
#include "http/node_link.h"
#include "query/page/remote_batch.h"

enum {
    PART_HEADERS = 2, /* that are different for each batch */
    GRACE_MS = 1000,  /* besides the time that the page has left */
    CALL_MS_MAX = 8000,
    PLAN_BYTES_MAX = 8 << 10, /* of an explanation, encoded */
};

/* What a range of another node has done for the page. */
typedef struct RemoteRange {
    Charge charge;
    char session[SESSION_ENTRY_TEXT_MAX];
    size_t session_len; /* 0 if it was not asked */
    Slice plan;         /* in the request's arena; empty if its owner has not told it */
} RemoteRange;

typedef struct DocumentRemote {
    QueryRemote remote;
    DocumentQuery *q;
    HttpHeader *headers;
    size_t header_count;
    RemoteRange *ranges; /* of each range of the container */
} DocumentRemote;

/* ---- answers ---- */

/* The page begins again, and asks the owners that there are by then. */
static Status begin_again(const DocumentRemote *remote, const PartitionRange *range, Error *err)
{
    const ApiCluster *cluster = remote->q->page.request->api->options.cluster;
    cluster->refresh(cluster->ctx);
    return error_set(err, STATUS_NOT_OWNER, SUB_NONE,
                     "The node that served partition key range %u does not serve it any more, or "
                     "does not answer.",
                     range->id);
}

/* What an owner refuses, the page refuses. One that is behind the session token counts as a range
 * here would: see has_session() of document_page.c. */
static Status refuse(const DocumentRemote *remote, const NodeCall *call, Error *err)
{
    DocumentPage *page = &remote->q->page;
    Status status = forward_read_error(call, err);
    if (err->sub == SUB_READ_SESSION_NOT_AVAILABLE && !page->is_behind) {
        page->is_behind = true;
        page->answer.error = *err;
    }
    return status;
}

static void note_range(RemoteRange *range, const NodeCall *call, Arena *arena)
{
    Slice plan = forward_answer_header(call, NODE_HEADER_PLAN);
    Slice decoded = SLICE_EMPTY;
    if (plan.len > 0 && range->plan.len == 0 && percent_decode(call->arena, plan, &decoded))
        range->plan = arena_copy(arena, decoded);
    Slice session = forward_answer_header(call, "x-ms-session-token");
    uint64_t charge = 0;
    (void)slice_to_u64(forward_answer_header(call, NODE_HEADER_CHARGE),
                       &charge); /* 0 if it says none */
    range->charge += charge;
    if (session.len == 0 || session.len > sizeof(range->session))
        return;
    memcpy(range->session, session.ptr, session.len);
    range->session_len = session.len;
}

/* ---- asking ---- */

static uint32_t time_left_ms(const DocumentPage *page)
{
    uint64_t now_us = clock_monotonic_us(&page->clock.clock);
    uint64_t end_us = page->clock.deadline_us;
    uint64_t left_ms = (end_us > now_us ? (end_us - now_us) / 1000 : 0) + GRACE_MS;
    return left_ms < CALL_MS_MAX ? (uint32_t)left_ms : CALL_MS_MAX;
}

static Slice encode(Arena *arena, Slice bytes)
{
    char *text = arena_alloc(arena, BASE64_LEN(bytes.len));
    base64_encode(BASE64_RID, bytes.ptr, bytes.len, text);
    return slice_make(text, BASE64_LEN(bytes.len));
}

static void call_owner(const DocumentRemote *remote, const ApiOwner *owner, NodeCall *call)
{
    const DocumentPage *page = &remote->q->page;
    const ApiCluster *cluster = page->request->api->options.cluster;
    const HttpRequest *http = page->request->http;
    call->address = slice_from_cstr(owner->address);
    call->method = http->method;
    call->path = http->path;
    call->body = http->body;
    call->headers = remote->headers;
    call->header_count = remote->header_count;
    call->timeout_ms = time_left_ms(page);
    call->answer_bytes_max = QUERY_BATCH_ANSWER_BYTES_MAX;
    worker_begin_wait();
    cluster->call(cluster->ctx, call);
    worker_end_wait();
}

static Status ask(void *ctx, const QueryTarget *target, Slice asked, Arena *arena, Slice *answer,
                  Error *err)
{
    DocumentRemote *remote = ctx;
    const DocumentPage *page = &remote->q->page;
    const ApiCluster *cluster = page->request->api->options.cluster;
    const PartitionRange *range = &page->container->ranges[target->range];
    ApiOwner owner = cluster->owner(cluster->ctx, range->space);
    if (!owner.is_known || owner.is_local)
        return begin_again(remote, range, err);
    HttpHeader *own = &remote->headers[remote->header_count - PART_HEADERS];
    own[0] = (HttpHeader){SLICE(NODE_HEADER_RANGE), arena_format(arena, "%u", range->id)};
    own[1] = (HttpHeader){SLICE(NODE_HEADER_BATCH), encode(arena, asked)};
    NodeCall call = {.arena = arena};
    call_owner(remote, &owner, &call);
    if (call.outcome != NODE_CALL_ANSWERED || call.status == status_http(STATUS_NOT_OWNER) ||
        call.status == status_http(STATUS_GONE)) {
        forward_note_owner(page->request->api, &call);
        return begin_again(remote, range, err);
    }
    if (call.status != status_http(STATUS_OK))
        return refuse(remote, &call, err);
    note_range(&remote->ranges[target->range], &call, page->request->arena);
    *answer = call.answer_body;
    return STATUS_OK;
}

static Slice plan_of(void *ctx, const QueryTarget *target)
{
    const DocumentRemote *remote = ctx;
    return remote->ranges[target->range].plan;
}

void document_remote_begin(DocumentQuery *q)
{
    ApiRequest *r = q->page.request;
    static const HttpHeader none[PART_HEADERS] = {0};
    DocumentRemote *remote = ARENA_NEW(r->arena, DocumentRemote);
    remote->remote = (QueryRemote){.ctx = remote, .ask = ask, .plan = plan_of};
    remote->q = q;
    remote->headers = forward_headers(r, none, PART_HEADERS, &remote->header_count);
    remote->ranges = ARENA_NEW_ARRAY(r->arena, RemoteRange, q->page.container->range_count);
    q->remote = remote;
}

void document_remote_target(DocumentQuery *q, QueryTarget *target)
{
    target->view = NULL;
    target->remote = &q->remote->remote;
}

void document_remote_end(DocumentQuery *q)
{
    for (size_t i = 0; i < q->page.container->range_count; i++) {
        const RemoteRange *range = &q->remote->ranges[i];
        q->page.bill.sum += range->charge;
        if (range->session_len > 0)
            document_page_add_session(&q->page, slice_make(range->session, range->session_len));
    }
}

/* ---- a node that is asked ---- */

Status document_batch_read(ApiRequest *r, DocumentQuery *q, Error *err)
{
    Slice text = forward_header(r, NODE_HEADER_BATCH);
    if (text.len == 0)
        return STATUS_OK;
    const PartitionRange *range = NULL;
    TRY(forward_range(r, &range, err));
    char *bytes = arena_alloc(r->arena, QUERY_ASK_BYTES_MAX);
    size_t len = 0;
    if (range == NULL || text.len > BASE64_LEN(QUERY_ASK_BYTES_MAX) ||
        !base64_decode(BASE64_RID, text, bytes, QUERY_ASK_BYTES_MAX, &len))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The header " NODE_HEADER_BATCH " is malformed.");
    q->is_batch = true;
    q->asked = slice_make(bytes, len);
    q->batch_range = (uint32_t)(range - r->container->ranges);
    q->page.is_binary = true;
    q->page.workers = r->api->options.node_workers;
    q->page.text_bytes_max = QUERY_BATCH_ANSWER_BYTES_MAX;
    return STATUS_OK;
}

static void answer_charge(DocumentQuery *q, const PartitionRange *range,
                          const QueryTargetWork *work)
{
    ApiRequest *r = q->page.request;
    PageAnswer *answer = &q->page.answer;
    QueryWork done = {
        .index_keys = work->index_keys_read,
        .items = work->documents_read,
        .item_bytes = work->document_bytes_read,
    };
    document_page_charge(&q->page, range, charge_query(r->api->options.charges, &done));
    answer->headers[answer->header_count++] = (HttpHeader){
        SLICE(NODE_HEADER_CHARGE),
        arena_format(r->arena, "%llu", (unsigned long long)q->page.bill.sum),
    };
}

/* A long one is left out: the page then says that another node reads. */
static void answer_plan(DocumentQuery *q, Slice json)
{
    PageAnswer *answer = &q->page.answer;
    Slice text = percent_encode(q->page.request->arena, json, SLICE("-_.~{}[]:,/?*"));
    if (text.len <= PLAN_BYTES_MAX)
        answer->headers[answer->header_count++] = (HttpHeader){SLICE(NODE_HEADER_PLAN), text};
}

Status document_batch_run(DocumentQuery *q)
{
    DocumentPage *page = &q->page;
    const PartitionRange *range = &page->container->ranges[q->batch_range];
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_LARGE_BYTES);
    TRY(document_page_admit(page, range));
    AUTO(partition_view_close) PartitionView *view = NULL;
    TRY(handle_view_open(container_handle(page->container, range), page->container->schema,
                         STORE_READ_ANY, &view, &page->answer.error));
    document_page_session_at(page, range, partition_view_lsn(view));
    if (page->is_behind)
        return page->answer.error.status;
    QueryTarget target = document_query_target(q, q->batch_range);
    QueryPageOptions options = document_query_options(q, &target, 1);
    target.view = view;
    options.memory = NULL;
    options.memory_max = BATCH_MEMORY_MAX;
    QueryTargetWork work;
    Json plan = {0};
    TRY(query_batch(q->query, &options, q->asked, &arena, &page->answer.text, &work, &plan,
                    &page->answer.error));
    answer_charge(q, range, &work);
    if (plan.at != NULL)
        answer_plan(q, json_print_arena(&arena, plan));
    return STATUS_OK;
}
