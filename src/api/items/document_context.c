/* document_context.c - see document_context_int.h. */
#include "api/items/document_context_int.h"

#include "api/core/forward_int.h"
#include "api/core/quota_int.h"
#include "api/core/session_int.h"
#include "api/core/throttle_int.h"

/* dbs/{database}/colls/{container} */
static Slice print_alt_path(const ApiRequest *r)
{
    const Slice parts[] = {SLICE("dbs/"), wire_database(r->database)->uri_id, SLICE("/colls/"),
                           wire_container(r->container, false)->uri_id};
    size_t size = 0;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        size += parts[i].len;
    char *text = arena_alloc(r->arena, size);
    size_t len = 0;
    for (size_t i = 0; i < ARRAY_COUNT(parts); len += parts[i++].len)
        memcpy(text + len, parts[i].ptr, parts[i].len);
    return slice_make(text, size);
}

void document_context_init(DocumentContext *context, ApiRequest *r, const PartitionRange *range)
{
    ASSERT(range >= r->container->ranges);
    ASSERT(range < r->container->ranges + r->container->range_count);
    *context = (DocumentContext){
        .request = r,
        .container = r->container,
        .range = range,
        .partition = container_handle(r->container, range),
        .is_rid_path = slice_equal(r->address.parts[1].id, r->container->info.rid),
        .alt_path = print_alt_path(r),
        .wants_quota = quota_is_wanted(r),
    };
}

void document_hold(DocumentContext *context)
{
    ApiRequest *r = context->request;
    ASSERT(context->held == NULL);
    forward_keep(r);
    context->held = container_ref(context->container);
    r->database = NULL; /* these belong to the loop's snapshot */
    r->container = NULL;
    r->snapshot = NULL;
}

void document_release(DocumentContext *context)
{
    container_unref(context->held);
    context->held = NULL;
}

bool document_is_gone(const Error *err)
{
    return err->status == STATUS_GONE && err->sub == SUB_PARTITION_KEY_RANGE_GONE;
}

/* While the request waited, its container gave its name to a copy, which has another partition key:
 * the request must be read again from its beginning. Every SDK sends it again after a 429. */
static Status check_name(const DocumentContext *context, const Snapshot *snapshot, Error *err)
{
    const Container *old = context->held;
    const Container *newest = snapshot_container(snapshot, old->database, old->info.number);
    if (newest == NULL || context->is_rid_path || slice_equal(newest->info.id, old->info.id))
        return STATUS_OK;
    Status status = error_set(err, STATUS_THROTTLED, SUB_NONE,
                              "Another container has taken the name '%.*s' over while the request "
                              "was under way; nothing was done, send it again.",
                              SLICE_CUT(old->info.id, 260));
    err->retry_after_ms = 1;
    return status;
}

Status document_reroute(DocumentContext *context, Slice epk, Error *err)
{
    ASSERT(context->held == context->container);
    if (context->reroutes == REROUTES_MAX)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "The partition key's range was taken over by others %d times while the "
                         "request was under way; nothing was done, try again later.",
                         REROUTES_MAX);
    context->reroutes++;
    Container *old = context->held;
    const Snapshot *snapshot = catalog_read(&context->request->loop->reader);
    TRY(check_name(context, snapshot, err));
    const Container *newest = snapshot_container(snapshot, old->database, old->info.number);
    if (newest == NULL)
        return error_set(err, STATUS_NOT_FOUND, SUB_OWNER_NOT_FOUND,
                         "Owner resource does not exist: the container was deleted.");
    context->held = container_ref(newest);
    context->container = context->held;
    context->range = target_range(newest, epk);
    context->partition = container_handle(newest, context->range);
    container_unref(old);
    return STATUS_OK;
}

Status document_submit(DocumentContext *context, Slice epk, PartitionWrite *write, Error *err)
{
    ASSERT(context->held != NULL);
    for (;;) {
        Status status = handle_submit(context->partition, write, err);
        if (LIKELY(status == STATUS_OK) || !document_is_gone(err))
            return status;
        TRY(document_reroute(context, epk, err));
    }
}

bool document_resubmit(DocumentContext *context, Slice epk, PartitionWrite *write)
{
    if (LIKELY(write->status == STATUS_OK) || !document_is_gone(&write->error))
        return false;
    Error err;
    Status status = document_reroute(context, epk, &err);
    if (status == STATUS_OK)
        status = document_submit(context, epk, write, &err);
    if (status == STATUS_OK)
        return true;
    write->status = status;
    write->error = err;
    return false;
}

Status document_admit(const DocumentContext *context, Error *err)
{
    ApiRequest *r = context->request;
    TRY(throttle_classify(r, err));
    return throttle_admit(r, context->partition, r->http->begun_us, err);
}

Slice document_charge(const DocumentContext *context, Charge charge)
{
    ApiRequest *r = context->request;
    ASSERT(charge >= context->paid_by_others);
    /* A request that is answered at once has just begun. */
    uint64_t now_us =
        context->held != NULL ? clock_monotonic_us(r->api->options.clock) : r->http->begun_us;
    throttle_pay(r, context->partition, charge - context->paid_by_others, now_us);
    return response_charge(r, charge);
}

/* Sends, and only then releases what the answer may point to. The context is in the arena, which is
 * gone after the answer (I2). */
void document_send(DocumentContext *context, Response *response)
{
    Container *held = context->held;
    response_send(context->request, response);
    container_unref(held);
}

void document_session_headers(Response *response, Slice token)
{
    Slice first = slice_first(token, slice_find(token, ','));
    response_header(response, SLICE("x-ms-session-token"), token);
    response_header(response, SLICE("lsn"), slice_from(first, slice_find(first, '#') + 1));
    response_header(response, SLICE("x-ms-documentdb-partitionkeyrangeid"),
                    slice_first(first, slice_find(first, ':')));
}

void document_headers(const DocumentContext *context, Response *response, uint64_t lsn)
{
    ApiRequest *r = context->request;
    document_session_headers(response, session_print(r->arena, context->range->id, lsn));
    if (LIKELY(!context->is_nameless))
        response_header(response, SLICE("x-ms-content-path"), context->container->info.rid);
    response_header(response, SLICE("x-ms-alt-content-path"), context->alt_path);
    if (UNLIKELY(context->wants_quota))
        quota_headers(r, response, context->container, context->range, 1, SLICE_EMPTY);
}

void document_error_headers(const DocumentContext *context, Response *response, const Error *err,
                            uint64_t lsn)
{
    if (err->sub != SUB_READ_SESSION_NOT_AVAILABLE && err->status != STATUS_THROTTLED)
        document_headers(context, response, lsn);
}

Slice document_session_token(const ApiRequest *r)
{
    return consistency_has_session(r->consistency) ? request_header(r, "x-ms-session-token")
                                                   : SLICE_EMPTY;
}

Status document_check_token(const ApiRequest *r, Slice token, const PartitionRange *range,
                            uint64_t lsn, Error *err)
{
    if (token.len == 0)
        return STATUS_OK;
    uint64_t wanted = 0;
    TRY(session_wanted(token, range, &wanted, err));
    const Api *api = r->api;
    if (UNLIKELY(api->chaos != NULL))
        lsn = api->chaos_hooks.lsn(api->chaos, range, wanted, lsn);
    if (wanted <= lsn)
        return STATUS_OK;
    if (wanted == SESSION_LSN_UNREACHABLE)
        return error_set(err, STATUS_NOT_FOUND, SUB_READ_SESSION_NOT_AVAILABLE,
                         "The read session is not available for the input session token. The token "
                         "is of a newer version than partition key range %u has.",
                         range->id);
    return error_set(err, STATUS_NOT_FOUND, SUB_READ_SESSION_NOT_AVAILABLE,
                     "The read session is not available for the input session token. Partition key "
                     "range %u is at LSN %llu, the token asks for %llu.",
                     range->id, (unsigned long long)lsn, (unsigned long long)wanted);
}

Status document_check_session(const DocumentContext *context, Error *err)
{
    Slice token = document_session_token(context->request);
    if (LIKELY(token.len == 0))
        return STATUS_OK;
    return document_check_token(context->request, token, context->range,
                                handle_lsn(context->partition), err);
}

Charge document_read_charge(const ApiRequest *r, Charge charge)
{
    return consistency_is_strong(r->consistency) ? charge_strong(r->api->options.charges, charge)
                                                 : charge;
}

Charge document_failed_charge(const ApiRequest *r)
{
    return charge_failed(r->api->options.charges);
}

bool request_is_minimal(const ApiRequest *r)
{
    return slice_equal_nocase(slice_trim(request_header(r, "prefer")), SLICE("return=minimal"));
}

/* What is said about an item. */
typedef struct ItemReply {
    int status;
    DocumentAnswer answer;
    const Item *item; /* may be NULL */
    uint64_t lsn;
    Charge charge;
    Buf *printed; /* the item's text, which the reply owns; NULL if it is printed when it is sent */
} ItemReply;

static bool has_text(const ItemReply *reply)
{
    return reply->item != NULL && reply->status != 304 && reply->answer != DOCUMENT_ANSWER_MINIMAL;
}

static void respond(DocumentContext *context, const ItemReply *reply)
{
    ApiRequest *r = context->request;
    const Item *item = reply->item;
    char own[ITEM_ETAG_LEN + U64_TEXT_MAX]; /* its ETag and its LSN */
    Response response;
    response_begin(r, &response, reply->status, document_charge(context, reply->charge));
    document_headers(context, &response, reply->lsn);
    if (item != NULL) {
        item_etag(item, own);
        response_header(&response, SLICE("etag"), slice_make(own, ITEM_ETAG_LEN));
    }
    if (reply->answer == DOCUMENT_ANSWER_READ) {
        char *number = own + ITEM_ETAG_LEN;
        response_header(&response, SLICE("x-ms-item-lsn"),
                        slice_make(number, u64_print(item->lsn, number)));
        response_header(&response, SLICE("content-location"), context->location);
    }
    if (has_text(reply))
        response_header(&response, SLICE("content-type"), SLICE("application/json"));
    if (reply->printed != NULL) {
        response_own_body(&response, reply->printed);
    } else if (has_text(reply)) {
        Buf *text = &r->loop->text;
        buf_reset(text);
        item_print(context->container->schema, item, text);
        response.body = buf_view(text);
    }
    document_send(context, &response);
}

/* A large item as it is stored, and its text, which grows by doubling. */
enum { LARGE_REPLY_COPIES = 4 };

/* A reply with a large item, on its way to a worker and back. */
typedef struct LargeReply {
    WorkerJob job;
    HttpTask task;
    DocumentContext context;
    ItemReply reply;
    Item item;
    Buf text;
} LargeReply;

static void on_printed(HttpTask *task)
{
    LargeReply *large = CONTAINER_OF(task, LargeReply, task);
    respond(&large->context, &large->reply);
}

static void print_on_worker(WorkerJob *job)
{
    LargeReply *large = CONTAINER_OF(job, LargeReply, job);
    item_print(large->context.container->schema, &large->item, &large->text);
    http_loop_post(large->context.request->http->loop, &large->task);
}

/* Returns false if too much waits for workers or there is no memory for waiting: the caller then
 * prints it. */
static bool respond_large(DocumentContext *context, const ItemReply *reply)
{
    ApiRequest *r = context->request;
    if (!http_request_reserve(r->http, LARGE_REPLY_COPIES * json_size(reply->item->document)))
        return false;
    LargeReply *large = ARENA_NEW(r->arena, LargeReply);
    Error err;
    if (item_decode(item_encode(r->arena, reply->item), &large->item, &err) != STATUS_OK)
        return false;
    large->item.bytes = reply->item->bytes;
    if (context->held == NULL)
        document_hold(context);
    large->job.run = print_on_worker;
    large->task.run = on_printed;
    large->context = *context;
    large->reply = *reply;
    large->reply.item = &large->item;
    large->reply.printed = &large->text;
    buf_init(&large->text, ITEM_TEXT_BYTES_MAX);
    return workers_post(r->api->options.bodies, &large->job);
}

void document_respond(DocumentContext *context, int status, const Item *item, uint64_t lsn,
                      Charge charge, DocumentAnswer answer)
{
    ItemReply reply = {
        .status = status,
        .answer = answer,
        .item = item,
        .lsn = lsn,
        .charge = charge,
    };
    bool is_large = has_text(&reply) && json_size(item->document) > LOOP_PRINT_BYTES_MAX;
    if (UNLIKELY(is_large) && respond_large(context, &reply))
        return;
    respond(context, &reply);
}

void document_respond_error(DocumentContext *context, const Error *err, uint64_t lsn, Charge charge)
{
    ApiRequest *r = context->request;
    Response response;
    response_error(r, &response, err, document_charge(context, charge));
    document_error_headers(context, &response, err, lsn);
    document_send(context, &response);
}
