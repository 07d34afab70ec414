/* item_context.c - see item_int.h. */
#include "api/item_int.h"

#include "api/chaos_int.h"
#include "api/quota_int.h"
#include "api/session_int.h"
#include "api/throttle_int.h"
#include "base/mem.h"

const PartitionRange *range_of(const Container *container, Slice epk)
{
    size_t low = 0;
    size_t high = container->range_count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (slice_compare(container->ranges[middle].min_bytes, epk) <= 0)
            low = middle;
        else
            high = middle;
    }
    return &container->ranges[low];
}

Status request_range(const ApiRequest *r, const PartitionRange **out, bool *found, Error *err)
{
    Slice text = slice_trim(request_header(r, "x-ms-documentdb-partitionkeyrangeid"));
    *found = text.len > 0;
    if (!*found)
        return STATUS_OK;
    size_t comma = slice_find(text, ',');
    uint64_t id = 0;
    if (comma < text.len) {
        if (!slice_equal(slice_first(text, comma), r->container->info.rid))
            return error_set(err, STATUS_GONE, SUB_NAME_CACHE_STALE,
                             "The range is of another container than '%.*s'.",
                             SLICE_ARG(r->container->info.rid));
        text = slice_from(text, comma + 1);
    }
    if (!slice_to_u64(text, &id))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "x-ms-documentdb-partitionkeyrangeid '%.*s' is not the id of a range.",
                         SLICE_CUT(text, 60));
    *out = id > UINT32_MAX ? NULL : container_range(r->container, (uint32_t)id);
    if (*out != NULL)
        return STATUS_OK;
    return error_set(err, STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE,
                     "The container has no partition key range '%.*s' (any more).",
                     SLICE_CUT(text, 60));
}

Status request_target(const ApiRequest *r, Target *out, Error *err)
{
    const PartitionKeyDefinition *definition = &r->container->partition_key;
    bool found = false;
    Slice header = request_header(r, "x-ms-documentdb-partitionkey");
    TRY(partition_key_parse(r->arena, header, definition, KEY_WHOLE, &out->key, &found, err));
    if (!found && definition->kind != PARTITION_NONE && !definition->system_key)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "PartitionKey value must be supplied for this operation: send "
                         "x-ms-documentdb-partitionkey.");
    if (!found && definition->kind != PARTITION_NONE)
        out->key = (PartitionKey){.count = definition->path_count};
    epk_make(definition->kind, &out->key, &out->epk);
    out->range = range_of(r->container, epk_slice(&out->epk));
    return STATUS_OK;
}

/* dbs/{database}/colls/{container} */
static Slice print_alt_path(const ApiRequest *r)
{
    const Slice parts[] = {SLICE("dbs/"), r->database->info.uri_id, SLICE("/colls/"),
                           r->container->info.uri_id};
    size_t size = 0;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        size += parts[i].len;
    char *text = arena_alloc(r->arena, size);
    size_t len = 0;
    for (size_t i = 0; i < ARRAY_COUNT(parts); len += parts[i++].len)
        memcpy(text + len, parts[i].ptr, parts[i].len);
    return slice_make(text, size);
}

void item_context_init(ItemContext *context, ApiRequest *r, const PartitionRange *range)
{
    *context = (ItemContext){
        .request = r,
        .container = r->container,
        .range = range,
        .partition = range->partition,
        .is_rid_path = slice_equal(r->address.parts[1].id, r->container->info.rid),
        .alt_path = print_alt_path(r),
        .wants_quota = quota_is_wanted(r),
    };
}

void item_hold(ItemContext *context)
{
    ApiRequest *r = context->request;
    (void)container_ref(context->container);
    context->is_held = true;
    r->database = NULL; /* these go with the loop's snapshot */
    r->container = NULL;
    r->snapshot = NULL;
}

void item_release(ItemContext *context)
{
    if (context->is_held)
        container_unref((Container *)(uintptr_t)context->container);
    context->is_held = false;
}

bool item_is_gone(const Error *err)
{
    return err->status == STATUS_GONE && err->sub == SUB_PARTITION_KEY_RANGE_GONE;
}

Status item_reroute(ItemContext *context, Slice epk, Error *err)
{
    ASSERT(context->is_held);
    if (context->reroutes == REROUTES_MAX)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "The partition key's range was taken over by others %d times while the "
                         "request was under way; nothing was done, try again later.",
                         REROUTES_MAX);
    context->reroutes++;
    const Container *old = context->container;
    const Snapshot *snapshot = catalog_read(&context->request->loop->reader);
    const Container *newest = snapshot_container(snapshot, old->database, old->info.number);
    if (newest == NULL)
        return error_set(err, STATUS_NOT_FOUND, SUB_OWNER_NOT_FOUND,
                         "Owner resource does not exist: the container was deleted.");
    context->container = container_ref(newest);
    context->range = range_of(newest, epk);
    context->partition = context->range->partition;
    container_unref((Container *)(uintptr_t)old);
    return STATUS_OK;
}

Status item_submit(ItemContext *context, Slice epk, PartitionWrite *write, Error *err)
{
    for (;;) {
        Status status = partition_submit(context->partition, write, err);
        if (LIKELY(status == STATUS_OK) || !item_is_gone(err))
            return status;
        TRY(item_reroute(context, epk, err));
    }
}

bool item_goes_on(ItemContext *context, Slice epk, PartitionWrite *write)
{
    if (LIKELY(write->status == STATUS_OK) || !item_is_gone(&write->error))
        return false;
    Error err;
    Status status = item_reroute(context, epk, &err);
    if (status == STATUS_OK)
        status = item_submit(context, epk, write, &err);
    if (status == STATUS_OK)
        return true;
    write->status = status;
    write->error = err;
    return false;
}

Status item_admit(const ItemContext *context, Error *err)
{
    ApiRequest *r = context->request;
    TRY(throttle_classify(r, err));
    return throttle_admit(r, context->range, r->http->begun_us, err);
}

Slice item_charge(const ItemContext *context, Charge charge)
{
    ApiRequest *r = context->request;
    /* What is answered where it arrived has just begun. */
    uint64_t now_us =
        context->is_held ? clock_monotonic_us(r->api->options.clock) : r->http->begun_us;
    throttle_pay(r, context->range, charge - context->paid_by_others, now_us);
    return charge_text(r, charge);
}

/* Sends, and only then gives back what the answer may point to; the context is in the arena, which
 * goes with the answer. */
void item_send(ItemContext *context, Response *response)
{
    Container *held = context->is_held ? (Container *)(uintptr_t)context->container : NULL;
    response_send(context->request, response);
    container_unref(held);
}

void item_session_headers(Response *response, Slice token)
{
    Slice first = slice_first(token, slice_find(token, ','));
    response_header(response, SLICE("x-ms-session-token"), token);
    response_header(response, SLICE("lsn"), slice_from(first, slice_find(first, '#') + 1));
    response_header(response, SLICE("x-ms-documentdb-partitionkeyrangeid"),
                    slice_first(first, slice_find(first, ':')));
}

void item_headers(const ItemContext *context, Response *response, uint64_t lsn)
{
    ApiRequest *r = context->request;
    item_session_headers(response, session_print(r->arena, context->range->id, lsn));
    if (LIKELY(!context->is_nameless))
        response_header(response, SLICE("x-ms-content-path"), context->container->info.rid);
    response_header(response, SLICE("x-ms-alt-content-path"), context->alt_path);
    if (UNLIKELY(context->wants_quota))
        quota_headers(r, response, context->container, context->range, 1, SLICE_EMPTY);
}

Status item_check_session(const ItemContext *context, Error *err)
{
    Slice token = request_header(context->request, "x-ms-session-token");
    if (token.len == 0)
        return STATUS_OK;
    uint64_t wanted = 0;
    TRY(session_wanted(token, context->range, &wanted, err));
    uint64_t lsn = partition_lsn(context->partition);
    struct Chaos *chaos = context->request->api->chaos;
    if (UNLIKELY(chaos != NULL))
        lsn = chaos_lsn(chaos, context->range, wanted, lsn);
    if (wanted <= lsn)
        return STATUS_OK;
    return error_set(err, STATUS_NOT_FOUND, SUB_READ_SESSION_NOT_AVAILABLE,
                     "The read session is not available for the input session token: partition %u "
                     "is at %llu, the token asks for %llu.",
                     context->range->id, (unsigned long long)lsn, (unsigned long long)wanted);
}

Charge item_read_charge(const ApiRequest *r, Charge charge)
{
    return r->is_strong ? charge_strong(r->api->options.charges, charge) : charge;
}

Charge item_failed_charge(const ApiRequest *r)
{
    return charge_failed(r->api->options.charges);
}

bool request_is_minimal(const ApiRequest *r)
{
    return slice_equal_nocase(slice_trim(request_header(r, "prefer")), SLICE("return=minimal"));
}

static void release_body(void *ctx)
{
    mem_free(ctx);
}

/* What is said about an item. */
typedef struct ItemReply {
    int status;
    ItemAnswer answer;
    const Item *item; /* may be NULL */
    uint64_t lsn;
    Charge charge;
    Buf *printed; /* the item's text, which the reply owns; NULL: it is printed when it is sent */
} ItemReply;

static bool has_text(const ItemReply *reply)
{
    return reply->item != NULL && reply->status != 304 && reply->answer != ITEM_ANSWER_MINIMAL;
}

static void respond(ItemContext *context, const ItemReply *reply)
{
    ApiRequest *r = context->request;
    const Item *item = reply->item;
    char own[ITEM_ETAG_LEN + U64_TEXT_MAX]; /* its ETag and its LSN */
    Response response;
    response_begin(r, &response, reply->status, item_charge(context, reply->charge));
    item_headers(context, &response, reply->lsn);
    if (item != NULL) {
        item_etag(item, own);
        response_header(&response, SLICE("etag"), slice_make(own, ITEM_ETAG_LEN));
    }
    if (reply->answer == ITEM_ANSWER_READ) {
        char *number = own + ITEM_ETAG_LEN;
        response_header(&response, SLICE("x-ms-item-lsn"),
                        slice_make(number, u64_print(item->lsn, number)));
        response_header(&response, SLICE("content-location"), context->location);
    }
    if (has_text(reply))
        response_header(&response, SLICE("content-type"), SLICE("application/json"));
    if (reply->printed != NULL) {
        response.body = buf_view(reply->printed);
        response.body_release = release_body;
        response.body_release_ctx = reply->printed->ptr;
    } else if (has_text(reply)) {
        Buf *text = &r->loop->text;
        buf_reset(text);
        item_print(context->container->schema, item, text);
        response.body = buf_view(text);
    }
    item_send(context, &response);
}

/* A large item as it is stored, and its text, which grows by doubling. */
enum { LARGE_REPLY_COPIES = 4 };

/* A reply with a large item, on its way to a worker and back. */
typedef struct LargeReply {
    WorkerJob job;
    HttpTask task;
    ItemContext context;
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

/* False if too much waits for workers, or there is no memory to wait in: the caller prints it. */
static bool respond_large(ItemContext *context, const ItemReply *reply)
{
    ApiRequest *r = context->request;
    if (!http_request_reserve(r->http, LARGE_REPLY_COPIES * json_size(reply->item->document)))
        return false;
    LargeReply *large = ARENA_NEW(r->arena, LargeReply);
    Error err;
    if (item_decode(item_encode(r->arena, reply->item), &large->item, &err) != STATUS_OK)
        return false;
    large->item.bytes = reply->item->bytes;
    if (!context->is_held)
        item_hold(context);
    large->job.run = print_on_worker;
    large->task.run = on_printed;
    large->context = *context;
    large->reply = *reply;
    large->reply.item = &large->item;
    large->reply.printed = &large->text;
    buf_init(&large->text, ITEM_TEXT_BYTES_MAX);
    return workers_post(r->api->options.bodies, &large->job);
}

void item_respond(ItemContext *context, int status, const Item *item, uint64_t lsn, Charge charge,
                  ItemAnswer answer)
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

void item_respond_error(ItemContext *context, const Error *err, uint64_t lsn, Charge charge)
{
    ApiRequest *r = context->request;
    Response response;
    response_error(r, &response, err, item_charge(context, charge));
    if (err->sub != SUB_READ_SESSION_NOT_AVAILABLE)
        item_headers(context, &response, lsn);
    item_send(context, &response);
}
