/* forward.c - see forward_int.h. */
#include "api/core/forward_int.h"

#include "api/core/request_audit_int.h"

enum {
    RETRY_TICKS = 5, /* of HTTP_LATER_MS: an owner that has just changed may still open the space */
    CALL_MS = 8000,  /* a page takes PAGE_US_MAX at most */
    SCRIPT_CALL_MS = 20000,
    NODE_HEADERS = 4,
};

/* Of another node's answer: a page, its envelope, and an item whose numbers are long as text. */
#define ANSWER_BYTES_MAX (ITEM_TEXT_BYTES_MAX + PAGE_BYTES_MAX)

typedef enum ForwardState {
    FORWARD_WAITING,  /* the timer runs */
    FORWARD_SENT,     /* the call is under way */
    FORWARD_RUNNING,  /* it runs again on this node */
    FORWARD_FINISHED, /* its last answer is being sent */
} ForwardState;

typedef struct Forward {
    ApiRequest *request;
    ForwardState state;
    HttpTimer timer;
    NodeCall call;
    uint64_t deadline_us; /* of waiting */
    bool has_tried;
    ApiOwner tried; /* the newest owner that was asked */
    unsigned ticks; /* since then */
} Forward;

static void wait(Forward *f);

static ApiOwner owner_of(const ApiRequest *r)
{
    const ApiCluster *cluster = r->api->options.cluster;
    return r->space == 0 ? cluster->catalog_owner(cluster->ctx)
                         : cluster->owner(cluster->ctx, r->space);
}

static bool is_read(const ApiRequest *r)
{
    return r->operation == OPERATION_READ || r->operation == OPERATION_LIST ||
           r->operation == OPERATION_QUERY;
}

void forward_begin(ApiRequest *r)
{
    const ApiCluster *cluster = r->api->options.cluster;
    if (cluster != NULL)
        r->life = cluster->life(cluster->ctx);
}

void forward_keep(ApiRequest *r)
{
    if (LIKELY(r->api->options.cluster == NULL) || r->is_kept)
        return;
    r->is_kept = true;
    request_keep(r);
}

/* ---- at the node that was asked by another one ---- */

Status forward_accept(ApiRequest *r, Error *err)
{
    HttpRequest *http = r->http;
    Slice client = request_header(r, NODE_HEADER_ORIGIN);
    Slice host = request_header(r, NODE_HEADER_HOST);
    uint64_t seconds = 0;
    Slice scheme = slice_cut(&client, ' ');
    bool is_tls = slice_equal(scheme, SLICE("https"));
    if ((!is_tls && !slice_equal(scheme, SLICE("http"))) || host.ptr == NULL ||
        !slice_to_u64(request_header(r, NODE_HEADER_SECONDS), &seconds) || seconds > INT64_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "A request between nodes must have the headers " NODE_HEADER_ORIGIN
                         ", " NODE_HEADER_HOST " and " NODE_HEADER_SECONDS ".");
    http->is_tls = is_tls;
    http->peer = client;
    http->authority = host;
    r->node_time_s = (int64_t)seconds;
    uint64_t left_ms = 0;
    if (r->deadline_us == 0 && /* it may come anew, with its body */
        slice_to_u64(request_header(r, HTTP_NODE_HEADER_LEFT), &left_ms) && left_ms <= UINT32_MAX)
        r->deadline_us = http->begun_us + left_ms * 1000;
    r->origin = arena_copy(r->arena, request_header(r, "origin"));
    return STATUS_OK;
}

Slice forward_header(const ApiRequest *r, const char *name)
{
    return r->http->is_node ? request_header(r, name) : SLICE_EMPTY;
}

Status forward_range(const ApiRequest *r, const PartitionRange **out, Error *err)
{
    Slice text = forward_header(r, NODE_HEADER_RANGE);
    uint64_t id = 0;
    *out = NULL;
    if (text.len == 0)
        return STATUS_OK;
    if (slice_to_u64(text, &id) && id <= UINT32_MAX)
        *out = container_range(r->container, (uint32_t)id);
    if (*out != NULL)
        return STATUS_OK;
    return error_set(err, STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE,
                     "The container has no partition key range '%.*s' (any more).",
                     SLICE_CUT(text, 60));
}

/* So that the node that has asked need not look in the engine. In the middle of a hand-over nobody
 * is known. */
static void add_owner(ApiRequest *r, Response *response)
{
    ApiOwner owner = owner_of(r);
    if (owner.is_known && !owner.is_local)
        response_header(response, SLICE(NODE_HEADER_OWNER),
                        arena_format(r->arena, "%llu %llu %s", (unsigned long long)r->space,
                                     (unsigned long long)owner.epoch, owner.node));
}

/* ---- at the node that the client has asked ---- */

static bool is_of_connection(Slice name)
{
    static const Slice names[] = {
        SLICE_INIT("connection"),
        SLICE_INIT("keep-alive"),
        SLICE_INIT("host"),
        SLICE_INIT("content-length"),
        SLICE_INIT("content-encoding"),
        SLICE_INIT("te"),
        SLICE_INIT("accept-encoding"),
        SLICE_INIT("expect"),
        SLICE_INIT("upgrade"),
        SLICE_INIT("server"),
        SLICE_INIT("date"),
        SLICE_INIT("trailer"),
        SLICE_INIT("transfer-encoding"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (slice_equal(name, names[i]))
            return true;
    }
    return false;
}

/* The date of a signature is the client's; of an answer it is the server's. A node that was asked
 * by another one says anew what that one has said. */
static bool is_sent_on(Slice name)
{
    return !slice_starts_with(name, SLICE(HTTP_NODE_HEADER_PREFIX)) &&
           (slice_equal(name, SLICE("date")) || !is_of_connection(name)) &&
           !slice_equal(name, SLICE("x-ms-activity-id"));
}

HttpHeader *forward_headers(ApiRequest *r, const HttpHeader *more, size_t more_count,
                            size_t *count_out)
{
    const HttpRequest *http = r->http;
    HttpHeader *headers =
        ARENA_NEW_ARRAY(r->arena, HttpHeader, http->header_count + NODE_HEADERS + more_count);
    size_t count = 0;
    for (size_t i = 0; i < http->header_count; i++) {
        if (is_sent_on(http->headers[i].name))
            headers[count++] = http->headers[i];
    }
    headers[count++] = (HttpHeader){SLICE("x-ms-activity-id"), r->activity_id};
    headers[count++] = (HttpHeader){
        SLICE(NODE_HEADER_ORIGIN),
        arena_format(r->arena, "%s %.*s", http->is_tls ? "https" : "http", SLICE_ARG(http->peer))};
    headers[count++] = (HttpHeader){SLICE(NODE_HEADER_HOST), http->authority};
    headers[count++] = (HttpHeader){SLICE(NODE_HEADER_SECONDS),
                                    arena_format(r->arena, "%lld", (long long)r->now_s)};
    for (size_t i = 0; i < more_count; i++)
        headers[count++] = more[i];
    *count_out = count;
    return headers;
}

Slice forward_answer_header(const NodeCall *call, const char *name)
{
    for (size_t i = 0; i < call->answer_header_count; i++) {
        if (slice_equal(call->answer_headers[i].name, slice_from_cstr(name)))
            return call->answer_headers[i].value;
    }
    return SLICE_EMPTY;
}

void forward_note_owner(const Api *api, const NodeCall *call)
{
    const ApiCluster *cluster = api->options.cluster;
    Slice node = SLICE_EMPTY;
    if (call->outcome == NODE_CALL_ANSWERED && call->status == status_http(STATUS_NOT_OWNER))
        node = forward_answer_header(call, NODE_HEADER_OWNER);
    uint64_t space = 0;
    uint64_t epoch = 0;
    if (slice_to_u64(slice_cut(&node, ' '), &space) &&
        slice_to_u64(slice_cut(&node, ' '), &epoch) && node.len > 0 &&
        node.len <= API_NODE_NAME_MAX)
        cluster->note_owner(cluster->ctx, space, epoch, node);
    cluster->refresh(cluster->ctx);
}

/* Numbers of reasons are different for each kind only. */
static SubStatus find_reason(Status kind, uint64_t number)
{
    static const struct {
        Status kind;
        SubStatus sub;
    } reasons[] = {
#define SUB_ROW(name, of, number, meaning, advice) {STATUS_##of, SUB_##name},
#include "base/status.def"
    };
    for (size_t i = 0; i < ARRAY_COUNT(reasons); i++) {
        if (reasons[i].kind == kind && (uint64_t)sub_number(reasons[i].sub) == number)
            return reasons[i].sub;
    }
    return SUB_NONE;
}

/* Without the activity id, which is that of this request too. */
static Slice message_of(const NodeCall *call)
{
    Json body;
    Error ignored;
    if (json_parse(call->arena, call->answer_body, &body, &ignored) != STATUS_OK)
        return SLICE("Another node of the cluster has refused the request.");
    Json message = json_get(body, SLICE("message"));
    Slice text = json_is(message, JSON_STRING) ? json_string(message) : SLICE_EMPTY;
    return slice_first(text, slice_find(text, '\r'));
}

Status forward_read_error(const NodeCall *call, Error *err)
{
    Status status = STATUS_BAD_REQUEST;
    while (status < STATUS_COUNT && status_http(status) != call->status)
        status++;
    if (status == STATUS_COUNT)
        status = STATUS_INTERNAL;
    uint64_t number = 0; /* these stay 0 without the header */
    uint64_t wait_ms = 0;
    (void)slice_to_u64(forward_answer_header(call, "x-ms-substatus"), &number);
    (void)slice_to_u64(forward_answer_header(call, "x-ms-retry-after-ms"), &wait_ms);
    Slice message = message_of(call);
    status = error_set(err, status, find_reason(status, number), "%.*s", SLICE_CUT(message, 400));
    err->retry_after_ms = wait_ms < UINT32_MAX ? (uint32_t)wait_ms : 0;
    return status;
}

static void fill_in(Forward *f)
{
    ApiRequest *r = f->request;
    const HttpRequest *http = r->http;
    f->call.headers = forward_headers(r, NULL, 0, &f->call.header_count);
    f->call.method = http->method;
    f->call.path = http->path;
    f->call.body = http->body;
    f->call.timeout_ms = r->operation == OPERATION_EXECUTE ? SCRIPT_CALL_MS : CALL_MS;
    f->call.answer_bytes_max = ANSWER_BYTES_MAX;
    f->call.arena = r->arena;
}

static void finish(Forward *f, const Error *err)
{
    f->state = FORWARD_FINISHED;
    respond_error(f->request, err);
}

static void refuse(Forward *f)
{
    Error err;
    Status status = error_set(
        &err, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
        "No node of the cluster has served %s for %d ms: its owner is being replaced, or cannot be "
        "reached. Nothing was done; try again.",
        f->request->space == 0 ? "the catalogue" : "the partition", FORWARD_HOLD_MS);
    ASSERT(status == STATUS_THROTTLED);
    err.retry_after_ms = HTTP_LATER_MS * RETRY_TICKS;
    finish(f, &err);
}

static void relay(Forward *f)
{
    const NodeCall *call = &f->call;
    ApiRequest *r = f->request;
    HttpHeader *headers = ARENA_NEW_ARRAY(r->arena, HttpHeader, call->answer_header_count);
    size_t count = 0;
    for (size_t i = 0; i < call->answer_header_count; i++) {
        if (!is_of_connection(call->answer_headers[i].name))
            headers[count++] = call->answer_headers[i];
    }
    request_audit_forget(r); /* the other node has noted it */
    metrics_add(http_loop_metrics(r->http->loop), METRIC_REQUESTS_FORWARDED, 1);
    HttpResponse response = {.status = call->status,
                             .headers = headers,
                             .header_count = count,
                             .body = call->answer_body};
    http_respond(r->http, &response);
}

static bool is_same(const ApiOwner *a, const ApiOwner *b)
{
    return a->epoch == b->epoch && a->is_local == b->is_local &&
           strcmp(a->address, b->address) == 0;
}

/* Whether the owner can be asked: it is known, and not the one that has just refused. */
static bool find_owner(Forward *f)
{
    const ApiCluster *cluster = f->request->api->options.cluster;
    ApiOwner owner = owner_of(f->request);
    if (!owner.is_known ||
        (owner.is_local && !cluster->lease_holds(cluster->ctx, cluster->life(cluster->ctx))))
        return false;
    if (f->has_tried && is_same(&owner, &f->tried) && f->ticks < RETRY_TICKS)
        return false;
    f->has_tried = true;
    f->tried = owner;
    f->ticks = 0;
    return true;
}

/* Another node than the one that was asked is the owner in a later epoch, so two nodes that each
 * take the other for the owner do not send a request to and fro. */
static bool has_newer_owner(const Forward *f)
{
    ApiOwner owner = owner_of(f->request);
    return owner.is_known && !owner.is_local && owner.epoch > f->tried.epoch;
}

static void send_on(Forward *f);

/* A write whose answer was lost may have been done, so it is not sent again (J7). */
static void on_answer(NodeCall *call)
{
    Forward *f = CONTAINER_OF(call, Forward, call);
    ApiRequest *r = f->request;
    ASSERT(f->state == FORWARD_SENT);
    bool is_answered = call->outcome == NODE_CALL_ANSWERED;
    if (is_answered && call->status != status_http(STATUS_NOT_OWNER)) {
        relay(f);
        return;
    }
    forward_note_owner(r->api, call);
    if (is_answered && has_newer_owner(f) && find_owner(f)) {
        send_on(f);
        return;
    }
    if (call->outcome != NODE_CALL_UNKNOWN || is_read(r)) {
        wait(f);
        return;
    }
    Error err;
    if (error_set(&err, STATUS_TIMEOUT, SUB_NONE,
                  "The node that serves the partition was sent the request, and no answer came: "
                  "%.200s. It is not known whether it was done.",
                  call->error.message) != STATUS_OK)
        finish(f, &err);
}

static void send_on(Forward *f)
{
    f->state = FORWARD_SENT;
    forward_keep(f->request);
    if (f->call.done == NULL)
        fill_in(f);
    f->call.done = on_answer;
    f->call.address = slice_from_cstr(f->tried.address);
    node_link_send(f->request->http->loop, &f->call);
}

static void on_timer(HttpTimer *timer)
{
    Forward *f = CONTAINER_OF(timer, Forward, timer);
    ApiRequest *r = f->request;
    ASSERT(f->state == FORWARD_WAITING);
    f->ticks++;
    if (clock_monotonic_us(r->api->options.clock) >= f->deadline_us || r->http->is_abandoned) {
        refuse(f);
    } else if (!find_owner(f)) {
        wait(f);
    } else if (f->tried.is_local) {
        f->state = FORWARD_RUNNING;
        request_again(r);
    } else {
        send_on(f);
    }
}

static void wait(Forward *f)
{
    f->state = FORWARD_WAITING;
    f->timer.run = on_timer;
    http_loop_later(f->request->http->loop, &f->timer);
}

static Forward *forward_new(ApiRequest *r)
{
    Forward *f = ARENA_NEW(r->arena, Forward);
    f->request = r;
    f->deadline_us = clock_monotonic_us(r->api->options.clock) + (uint64_t)FORWARD_HOLD_MS * 1000;
    return f;
}

/* The request has done nothing here. It is not run again before this returns: its handler is still
 * on the stack. */
static void begin(ApiRequest *r)
{
    const ApiCluster *cluster = r->api->options.cluster;
    forward_keep(r);
    r->refused_by = NULL; /* it may be gone when the request is answered */
    if (r->forward == NULL)
        r->forward = forward_new(r);
    Forward *f = r->forward;
    if (f->state == FORWARD_WAITING && !f->has_tried && !owner_of(r).is_local && find_owner(f)) {
        send_on(f);
        return;
    }
    cluster->refresh(cluster->ctx);
    wait(f);
}

/* ---- what passes every answer ---- */

/* An answer that rests on what was read here (J3): all but those of writes that were made durable,
 * or may have been: such a write is not done again (J7). */
static bool rests_on_lease(const ApiRequest *r, const Response *response)
{
    bool is_done = response->status >= 200 && response->status < 300;
    return r->is_routed && (is_read(r) || r->has_only_read || !is_done) && response->status < 500 &&
           response->status != status_http(STATUS_THROTTLED) &&
           response->status != status_http(STATUS_TIMEOUT);
}

static void drop(Response *response)
{
    if (response->body_release != NULL)
        response->body_release(response->body_release_ctx);
    response->body_release = NULL;
}

bool forward_takes_over(ApiRequest *r, Response *response)
{
    const ApiCluster *cluster = r->api->options.cluster;
    if (r->forward != NULL && r->forward->state == FORWARD_FINISHED)
        return false;
    bool is_elsewhere = response->status == status_http(STATUS_NOT_OWNER);
    bool is_void = !is_elsewhere && rests_on_lease(r, response) &&
                   !cluster->lease_holds(cluster->ctx, r->life);
    if (LIKELY(!is_elsewhere && !is_void))
        return false;
    if (is_elsewhere && r->http->is_node)
        add_owner(r, response);
    if (!r->http->is_node) {
        drop(response);
        begin(r);
        return true;
    }
    Error err;
    if (is_void &&
        error_set(&err, STATUS_NOT_OWNER, SUB_NONE,
                  "This node's lease has ended, and what it has read may be old.") != STATUS_OK) {
        drop(response);
        response_error(r, response, &err, SLICE("0"));
    }
    return false;
}

/* The map of partitions is read where it changes first: a client that some node has told that a
 * range is gone must find its successors, whichever node it asks next. */
Status forward_check_catalog(const ApiRequest *r, Error *err)
{
    const ApiCluster *cluster = r->api->options.cluster;
    bool is_merge = slice_equal_nocase(r->address.operation, SLICE("partitionmerge"));
    if (cluster == NULL || (is_read(r) && r->address.type != RESOURCE_PARTITION_KEY_RANGE) ||
        ((r->address.type == RESOURCE_DOCUMENT || r->operation == OPERATION_EXECUTE) && !is_merge))
        return STATUS_OK;
    ApiOwner owner = cluster->catalog_owner(cluster->ctx);
    if (owner.is_known && owner.is_local)
        return STATUS_OK;
    return error_set(err, STATUS_NOT_OWNER, SUB_NONE,
                     "Another node of the cluster has the catalogue.");
}
