/* documents.c - one item: /dbs/{db}/colls/{coll}/docs and .../docs/{id}.
 *
 * A read runs where it arrives: one look-up in memory, and on a worker only if the answer is on
 * disk. A write goes to its partition and is answered from there, when it is durable. An item may
 * be named by its resource id instead of its own id. That is rare and takes a worker, because the
 * item is found by the number in the resource id on disk only.
 */
#include "api/core/access_int.h"
#include "api/core/usage_int.h"
#include "api/items/batch_body_int.h"
#include "api/items/document_context_int.h"
#include "api/items/document_handlers_int.h"
#include "api/items/triggers_int.h"
#include "base/mem.h"

#include <time.h>

static Slice item_id(const ApiRequest *r)
{
    return r->address.parts[r->address.part_count - 1].id;
}

/* ---- resource ids ---- */

/* Only in a path of resource ids: elsewhere it is an item's own id, whatever it looks like. */
static bool is_rid(const DocumentContext *context, Slice id, uint64_t *number)
{
    Rid rid;
    if (!context->is_rid_path || !rid_parse(id, &rid) || rid.kind != RID_DOCUMENT ||
        rid.container != context->container->info.number)
        return false;
    *number = rid.child;
    return true;
}

/* The own id of the item of this logical partition that the resource id '*id' names; '*id' stays
 * as it is if there is none. On a worker. */
static Status find_by_rid(const DocumentContext *context, const Epk *epk, Slice *id, Error *err)
{
    uint64_t number = 0;
    if (!is_rid(context, *id, &number))
        return STATUS_OK;
    Slice place;
    Slice own;
    bool found = false;
    TRY(handle_locate(context->partition, number, context->request->arena, &place, &own, &found,
                      err));
    if (found && slice_equal(place, epk_slice(epk)))
        *id = own;
    return STATUS_OK;
}

/* ---- reading ---- */

/* A read whose block is not in memory, on its way to a worker and back. */
typedef struct ColdRead {
    WorkerJob job;
    HttpTask task;
    DocumentContext context;
    Epk epk;
    Slice id;
    Slice if_none_match;
    Item item;
    StoreValue value;
    StoreFound found;
    uint64_t lsn;
    Status status;
    Error error;
} ColdRead;

static void answer_read(DocumentContext *context, StoreFound found, const Item *item,
                        Slice etag_known, uint64_t lsn)
{
    if (found != STORE_FOUND) {
        Error err;
        Slice id = item_id(context->request);
        if (error_set(&err, STATUS_NOT_FOUND, SUB_NONE,
                      "Resource Not Found. There is no item '%.*s' with this partition key. "
                      "ResourceType: Document, OperationType: Read",
                      SLICE_CUT(id, 260)) != STATUS_OK)
            document_respond_error(
                context, &err, lsn,
                document_read_charge(context->request, document_failed_charge(context->request)));
        return;
    }
    char etag[ITEM_ETAG_LEN];
    item_etag(item, etag);
    bool unchanged =
        etag_known.len > 0 && (slice_equal(etag_known, SLICE("*")) ||
                               slice_equal(etag_known, slice_make(etag, sizeof(etag))));
    Charge charge = charge_read(context->request->api->options.charges, item->bytes);
    document_respond(context, unchanged ? 304 : 200, item, lsn,
                     document_read_charge(context->request, charge), DOCUMENT_ANSWER_READ);
}

static void on_cold_answer(HttpTask *task)
{
    ColdRead *read = CONTAINER_OF(task, ColdRead, task);
    StoreValue value = read->value; /* the arena is gone after the answer */
    if (read->status != STATUS_OK)
        document_respond_error(&read->context, &read->error, read->lsn,
                               document_failed_charge(read->context.request));
    else
        answer_read(&read->context, read->found, &read->item, read->if_none_match, read->lsn);
    store_value_release(&value);
}

static Status get_cold(ColdRead *read, Slice id)
{
    return handle_get(read->context.partition, read->context.container->schema, &read->epk, id,
                      STORE_READ_ANY, &read->item, &read->value, &read->found, &read->error);
}

/* By its own id first: an item whose id looks like the resource id of another item wins. */
static Status find_cold(ColdRead *read)
{
    TRY(get_cold(read, read->id));
    if (read->found == STORE_FOUND)
        return STATUS_OK;
    Slice id = read->id;
    TRY(find_by_rid(&read->context, &read->epk, &id, &read->error));
    return slice_equal(id, read->id) ? STATUS_OK : get_cold(read, id);
}

/* The item may be in the store a moment before its LSN is published; a token with that LSN would be
 * refused until then. */
static void await_lsn(ColdRead *read)
{
    enum { LOOK_NS = 20000 };
    if (read->status != STATUS_OK || read->found != STORE_FOUND || read->item.lsn <= read->lsn)
        return;
    read->lsn = read->item.lsn;
    while (handle_lsn(read->context.partition) < read->lsn &&
           handle_is_served(read->context.partition))
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
}

static void on_cold_read(WorkerJob *job)
{
    ColdRead *read = CONTAINER_OF(job, ColdRead, job);
    read->lsn = handle_lsn(read->context.partition);
    read->status = find_cold(read);
    await_lsn(read);
    http_loop_post(read->context.request->http->loop, &read->task);
}

static Status read_cold(DocumentContext *context, const Target *target, Error *err)
{
    ApiRequest *r = context->request;
    ColdRead *read = ARENA_NEW(r->arena, ColdRead);
    read->job.run = on_cold_read;
    read->task.run = on_cold_answer;
    read->epk = target->epk;
    read->id = arena_copy(r->arena, item_id(r));
    r->address.parts[r->address.part_count - 1].id = read->id;
    read->if_none_match = arena_copy(r->arena, slice_trim(request_header(r, "if-none-match")));
    document_hold(context);
    read->context = *context;
    if (workers_post(r->api->options.readers, &read->job))
        return STATUS_OK;
    document_release(context);
    return request_refuse_busy(err);
}

Status documents_read(ApiRequest *r, Error *err)
{
    Target target;
    TRY(request_target(r, &target, err));
    DocumentContext context;
    document_context_init(&context, r, target.range);
    TRY(request_location(r, &context.location, err));
    usage_name(r, r->container, &target.key, epk_slice(&target.epk));
    TRY(document_admit(&context, err));
    uint64_t lsn = handle_lsn(context.partition);
    if (document_check_session(&context, err) != STATUS_OK) {
        document_respond_error(&context, err, lsn, document_failed_charge(r));
        return STATUS_OK;
    }
    Slice id = item_id(r);
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    Item item;
    TRY(handle_get(context.partition, r->container->schema, &target.epk, id, STORE_READ_MEMORY,
                   &item, &value, &found, err));
    uint64_t number = 0;
    if (found == STORE_UNKNOWN || (found == STORE_ABSENT && is_rid(&context, id, &number)))
        return read_cold(&context, &target, err);
    /* The token must not be older than what is shown. */
    if (UNLIKELY(found == STORE_FOUND && item.lsn > lsn)) {
        lsn = handle_lsn(context.partition);
        if (item.lsn > lsn)
            return read_cold(&context, &target, err);
    }
    answer_read(&context, found, &item, slice_trim(request_header(r, "if-none-match")), lsn);
    return STATUS_OK;
}

/* ---- writing ---- */

typedef struct WriteTask {
    HttpTask task;
    WorkerJob job; /* of a write that names its item by a resource id */
    PartitionWrite write;
    ItemWrite item;
    DocumentContext context;
    bool is_minimal;
} WriteTask;

static Charge charge_of(const ApiRequest *r, const ItemWrite *w)
{
    const ChargeModel *model = r->api->options.charges;
    switch (w->op) {
    case ITEM_CREATE:
    case ITEM_UPSERT:
        if (w->created)
            return charge_create(model, w->bytes_after, w->terms);
        return charge_replace(model, w->bytes_before, w->bytes_after, w->terms);
    case ITEM_REPLACE:
        return charge_replace(model, w->bytes_before, w->bytes_after, w->terms);
    case ITEM_PATCH:
        return charge_patch(model, w->bytes_before, w->bytes_after, w->terms,
                            patch_operation_count(w->patch));
    case ITEM_DELETE:
        return charge_delete(model, w->bytes_before, w->terms);
    case ITEM_READ:
        return document_read_charge(r, charge_read(model, w->bytes_before));
    }
    return document_failed_charge(r);
}

Charge document_write_charge(const ApiRequest *r, const ItemWrite *w)
{
    bool is_known = w->op == ITEM_READ && w->status == STATUS_NOT_MODIFIED; /* to the client */
    if (w->status == STATUS_OK || is_known)
        return charge_of(r, w);
    Charge failed = document_failed_charge(r);
    return w->op == ITEM_READ ? document_read_charge(r, failed) : failed;
}

int document_write_status(const ItemWrite *w)
{
    if (w->status != STATUS_OK)
        return status_http(w->status);
    if (w->op == ITEM_DELETE)
        return 204;
    bool made = w->op == ITEM_CREATE || (w->op == ITEM_UPSERT && w->created);
    return made ? 201 : 200;
}

static void on_written(HttpTask *task)
{
    WriteTask *t = CONTAINER_OF(task, WriteTask, task);
    if (document_resubmit(&t->context, epk_slice(&t->item.epk), &t->write))
        return;
    const ItemWrite *w = &t->item;
    const ApiRequest *r = t->context.request;
    uint64_t lsn = t->write.lsn;
    if (t->write.status != STATUS_OK)
        document_respond_error(&t->context, &t->write.error, lsn, document_failed_charge(r));
    else if (w->status != STATUS_OK)
        document_respond_error(&t->context, &w->error, lsn, document_write_charge(r, w));
    else
        document_respond(&t->context, document_write_status(w),
                         w->op == ITEM_DELETE ? NULL : &w->item, lsn, document_write_charge(r, w),
                         t->is_minimal ? DOCUMENT_ANSWER_MINIMAL : DOCUMENT_ANSWER_WRITTEN);
}

static void on_done(PartitionWrite *write)
{
    WriteTask *t = CONTAINER_OF(write, WriteTask, write);
    http_loop_post(t->context.request->http->loop, &t->task);
}

static WriteTask *write_new(ApiRequest *r, ItemOp op, const Target *target)
{
    WriteTask *t = ARENA_NEW(r->arena, WriteTask);
    t->task.run = on_written;
    t->write.mode = WRITE_CONTINUE;
    t->write.items = &t->item;
    t->write.count = 1;
    t->write.arena = r->arena;
    t->write.done = on_done;
    t->write.message.deadline_us = r->deadline_us;
    t->item.op = op;
    t->item.epk = target->epk;
    t->item.if_match = arena_copy(r->arena, slice_trim(request_header(r, "if-match")));
    t->is_minimal = request_is_minimal(r);
    document_context_init(&t->context, r, target->range);
    usage_name(r, r->container, &target->key, epk_slice(&target->epk));
    return t;
}

/* Replaces the resource id by the item's own id, unless there is an item with such an id. On a
 * worker. */
static Status name_by_rid(WriteTask *t, Error *err)
{
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    Item item;
    TRY(handle_get(t->context.partition, t->context.container->schema, &t->item.epk, t->item.id,
                   STORE_READ_ANY, &item, &value, &found, err));
    return found == STORE_FOUND ? STATUS_OK
                                : find_by_rid(&t->context, &t->item.epk, &t->item.id, err);
}

static void on_rid(WorkerJob *job)
{
    WriteTask *t = CONTAINER_OF(job, WriteTask, job);
    /* The loop may have answered, and released the container, before the submit returns. */
    AUTO(container_unref) Container *container = container_ref(t->context.container);
    PartitionHandle *partition = container_handle(container, t->context.range);
    Error err;
    Status status = name_by_rid(t, &err);
    if (status == STATUS_OK)
        status = handle_submit(partition, &t->write, &err);
    if (status == STATUS_OK)
        return; /* it belongs to the partition now, which may have answered already */
    t->write.status = status;
    t->write.error = err;
    t->write.lsn = handle_lsn(partition);
    http_loop_post(t->context.request->http->loop, &t->task);
}

static Status post_by_rid(WriteTask *t, Error *err)
{
    t->job.run = on_rid;
    if (workers_post(t->context.request->api->options.readers, &t->job))
        return STATUS_OK;
    return request_refuse_busy(err);
}

static Status write_submit(WriteTask *t, Error *err)
{
    TRY(document_admit(&t->context, err));
    uint64_t number = 0;
    bool is_new = t->item.op == ITEM_CREATE || t->item.op == ITEM_UPSERT;
    document_hold(&t->context);
    Status status = !is_new && is_rid(&t->context, t->item.id, &number)
                        ? post_by_rid(t, err)
                        : document_submit(&t->context, epk_slice(&t->item.epk), &t->write, err);
    if (status != STATUS_OK)
        document_release(&t->context);
    return status;
}

static Status match_header(const ApiRequest *r, const PartitionKeyDefinition *definition,
                           const PartitionKey *key, Error *err)
{
    PartitionKey header;
    bool found = false;
    TRY(key_header_parse(r->arena, request_header(r, "x-ms-documentdb-partitionkey"), definition,
                         KEY_WHOLE, &header, &found, err));
    return found ? key_header_match(&header, key, err) : STATUS_OK;
}

/* Whether the client still knows the container whose name this one has taken over (catalog.h,
 * CATALOG_END_SWAP), and has made the header from this document by its key. The document says where
 * it belongs, so nothing is guessed. */
static bool matches_before(const ApiRequest *r, Json document)
{
    const PartitionKeyDefinition *before = r->container->key_before;
    Error ignored;
    /* A token for one key has been compared with the header; it must not reach another key. */
    if (before == NULL || r->principal.has_key)
        return false;
    PartitionKey key;
    partition_key_extract(before, document, &key);
    return partition_key_check(&key, &ignored) == STATUS_OK &&
           match_header(r, before, &key, &ignored) == STATUS_OK;
}

/* The key of a request with a document: the document's own, which the header must repeat. */
static Status target_of_document(const ApiRequest *r, Json document, Target *out, Error *err)
{
    const PartitionKeyDefinition *definition = &r->container->partition_key;
    partition_key_extract(definition, document, &out->key);
    TRY(partition_key_check(&out->key, err));
    Status status = match_header(r, definition, &out->key, err);
    if (UNLIKELY(status != STATUS_OK) && !matches_before(r, document))
        return status;
    epk_make(definition->kind, &out->key, &out->epk);
    out->range = target_range(r->container, epk_slice(&out->epk));
    return STATUS_OK;
}

static Status read_directive(const ApiRequest *r, IndexDirective *out, Error *err)
{
    static const Slice names[] = {
        [INDEX_DEFAULT] = SLICE_INIT("Default"),
        [INDEX_INCLUDE] = SLICE_INIT("Include"),
        [INDEX_EXCLUDE] = SLICE_INIT("Exclude"),
    };
    Slice text = slice_trim(request_header(r, "x-ms-indexing-directive"));
    *out = INDEX_DEFAULT;
    for (size_t i = 0; i < ARRAY_COUNT(names) && text.len > 0; i++) {
        if (slice_equal_nocase(text, names[i])) {
            *out = (IndexDirective)i;
            return STATUS_OK;
        }
    }
    if (text.len == 0)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "The header x-ms-indexing-directive is '%.*s', expected Default, Include or "
                     "Exclude.",
                     SLICE_CUT(text, 40));
}

static Status write_document(ApiRequest *r, ItemOp op, Error *err)
{
    Json body;
    TRY(request_json(r, &body, err));
    Json document;
    Slice id;
    int32_t ttl_s = 0;
    TRY(item_prepare(r->arena, body, &document, &id, &ttl_s, err));
    Target target;
    if (op == ITEM_REPLACE)
        TRY(access_check_new_id(r, item_id(r), id, err));
    TRY(target_of_document(r, document, &target, err));
    WriteTask *t = write_new(r, op, &target);
    TRY(read_directive(r, &t->item.directive, err));
    t->item.document = document;
    t->item.document_id = id;
    t->item.id = op == ITEM_REPLACE ? arena_copy(r->arena, item_id(r)) : id;
    t->item.ttl_s = ttl_s;
    if (triggers_are_asked(r))
        return triggers_write(r, &target, &t->item, r->http->body, err);
    return write_submit(t, err);
}

Status documents_create(ApiRequest *r, Error *err)
{
    if (batch_is_asked(r)) {
        r->counted_as = HISTORY_BATCH;
        return documents_batch(r, err);
    }
    bool is_upsert = request_flag(r, "x-ms-documentdb-is-upsert");
    r->counted_as = is_upsert ? HISTORY_UPSERT : HISTORY_CREATE;
    return write_document(r, is_upsert ? ITEM_UPSERT : ITEM_CREATE, err);
}

Status documents_replace(ApiRequest *r, Error *err)
{
    return write_document(r, ITEM_REPLACE, err);
}

/* A write on an item that the path and the key header name. */
static Status write_named(ApiRequest *r, ItemOp op, Target *target, WriteTask **out, Error *err)
{
    TRY(request_target(r, target, err));
    WriteTask *t = write_new(r, op, target);
    t->item.id = arena_copy(r->arena, item_id(r));
    *out = t;
    return STATUS_OK;
}

Status documents_delete(ApiRequest *r, Error *err)
{
    Target target;
    WriteTask *t = NULL;
    TRY(write_named(r, ITEM_DELETE, &target, &t, err));
    if (triggers_are_asked(r))
        return triggers_write(r, &target, &t->item, SLICE_EMPTY, err);
    return write_submit(t, err);
}

Status documents_patch(ApiRequest *r, Error *err)
{
    TRY(request_check_size(r, err));
    Json body; /* an object, or an array: not request_json() */
    TRY(request_body_json(r, &body, err));
    Target target;
    WriteTask *t = NULL;
    TRY(write_named(r, ITEM_PATCH, &target, &t, err));
    TRY(read_directive(r, &t->item.directive, err));
    TRY(document_patch_prepare(r, body, &t->item, err));
    if (triggers_are_asked(r))
        return triggers_write(r, &target, &t->item, SLICE_EMPTY, err);
    return write_submit(t, err);
}
