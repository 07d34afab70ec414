/* batch.c - many operations in one request: transactional batch and bulk.
 *
 * A transactional batch belongs to one logical partition, named by the key header, and is all or
 * nothing. Bulk goes to one physical partition; each operation has a key of its own and succeeds or
 * fails alone. Both become one write of the partition. An operation that cannot even be tried is
 * refused here and not sent to the partition. A read for which the answer has no room fails alone,
 * with the sub-status that makes clients of bulk ask again in smaller portions.
 *
 * The cost of a batch is known when it is done. A transaction is admitted or turned away as a
 * whole. Of bulk, as many operations are tried as the budget seems to have room for, and the others
 * get 429 as their result.
 */
#include "api/core/access_int.h"
#include "api/core/throttle_int.h"
#include "api/core/usage_int.h"
#include "api/items/batch_body_int.h"
#include "api/items/document_context_int.h"
#include "api/items/document_handlers_int.h"

typedef struct Batch {
    HttpTask task;
    PartitionWrite write;
    DocumentContext context;
    BatchForm form;
    bool is_minimal;
    size_t count;
    const BatchOperation *operations;
    ItemWrite *writes;   /* one per operation that can be tried, in order */
    ItemWrite **results; /* one per operation */
    PartitionKey *keys;  /* of each, in bulk; NULL if the request has one for all */
    bool is_routed;      /* by the request's key, not by the range that it names */
    Epk epk;             /* if it is routed: where it goes, also after a split or merge */
} Batch;

static void fill_result(const Batch *batch, size_t i, BatchResult *result, Charge *total)
{
    const ItemWrite *w = batch->results[i];
    Arena *arena = batch->context.request->arena;
    Charge charge =
        w->status == STATUS_THROTTLED ? 0 : document_write_charge(batch->context.request, w);
    *total += charge;
    if (batch->keys != NULL && w->epk.len > 0) /* there is a key */
        usage_paid_by(batch->context.request, batch->context.container, batch->context.range,
                      &batch->keys[i], epk_slice(&w->epk), charge);
    *result = (BatchResult){
        .status = document_write_status(w),
        .request_charge = (double)charge / 100,
    };
    if (w->status != STATUS_OK) {
        result->sub_status = sub_number(w->error.sub);
        result->retry_after_ms = w->error.retry_after_ms;
        if (w->status != STATUS_NOT_MODIFIED)
            result->message = slice_from_cstr(w->error.message);
        return;
    }
    if (w->op == ITEM_DELETE)
        return;
    char *etag = arena_alloc(arena, ITEM_ETAG_LEN);
    item_etag(&w->item, etag);
    result->etag = slice_make(etag, ITEM_ETAG_LEN);
}

/* Of a result without the item and the message. The reads leave this much room for each in the
 * answer. */
enum { RESULT_BYTES_MAX = 256 };

/* Which operations' items are in the answer. The items that were read always fit into it. */
typedef enum Bodies { BODIES_WANTED, BODIES_READ } Bodies;

static bool has_body(const Batch *batch, size_t i, Bodies bodies)
{
    const ItemWrite *w = batch->results[i];
    if (w->status != STATUS_OK || w->op == ITEM_DELETE)
        return false;
    if (w->op == ITEM_READ)
        return true;
    return bodies == BODIES_WANTED && !batch->is_minimal && !batch->operations[i].minimal;
}

/* Prints the whole answer into 'out', which is empty; false if it does not fit. */
static bool encode(const Batch *batch, Bodies bodies, BatchResult *results, Buf *out)
{
    const PartitionSchema *schema = batch->context.container->schema;
    AUTO(buf_done) Buf texts; /* of all items, one after the other */
    buf_init(&texts, PAGE_BYTES_MAX);
    for (size_t i = 0; i < batch->count; i++) {
        size_t begin = texts.len;
        if (bodies == BODIES_READ)
            results[i].message = SLICE_EMPTY;
        if (has_body(batch, i, bodies))
            item_print(schema, &batch->results[i]->item, &texts);
        if (buf_full(&texts))
            return false;
        results[i].resource_body = slice_make(NULL, texts.len - begin);
    }
    /* Only now do the texts stay where they are. */
    for (size_t i = 0, at = 0; i < batch->count; i++) {
        size_t len = results[i].resource_body.len;
        results[i].resource_body = len == 0 ? SLICE_EMPTY : slice_make(texts.ptr + at, len);
        at += len;
    }
    batch_encode(batch->form, results, batch->count, out);
    return !buf_full(out);
}

static void answer(Batch *batch)
{
    ApiRequest *r = batch->context.request;
    BatchResult *results = ARENA_NEW_ARRAY(r->arena, BatchResult, batch->count);
    Charge total = 0;
    bool good = true;
    r->has_only_read = true;
    if (r->refused_by != NULL) /* some of its operations */
        usage_throttled(r);
    for (size_t i = 0; i < batch->count; i++) {
        fill_result(batch, i, &results[i], &total);
        good = good && results[i].status < 400;
        bool has_written =
            batch->results[i]->status == STATUS_OK && batch->results[i]->op != ITEM_READ;
        r->has_only_read = r->has_only_read && !has_written;
    }
    Buf body;
    buf_init(&body, PAGE_BYTES_MAX);
    /* What was written is durable: an error because of the size of the answer would make clients
     * write it again. So the written items are left out of an answer that is too large with them.
     */
    if (!encode(batch, BODIES_WANTED, results, &body)) {
        buf_reset(&body);
        bool fits = encode(batch, BODIES_READ, results, &body);
        ASSERT(fits); /* see read_bytes_max */
    }
    /* Clients expect no name of the container with a batch whose only read found nothing. */
    batch->context.is_nameless = batch->count == 1 && batch->operations[0].op == BATCH_READ &&
                                 results[0].status == status_http(STATUS_NOT_FOUND);
    Response response;
    response_begin(r, &response, good ? 200 : 207, document_charge(&batch->context, total));
    response_header(&response, SLICE("content-type"), SLICE("application/json"));
    response_header(&response, SLICE("x-ms-item-count"),
                    arena_format(r->arena, "%zu", batch->count));
    document_headers(&batch->context, &response, batch->write.lsn);
    response_own_body(&response, &body);
    document_send(&batch->context, &response);
}

/* Where one operation's failure stops others, only the first failure keeps its own status. The
 * other operations, in a transaction all of them and otherwise those after it, were not done
 * because of it. */
static void fail_others(Batch *batch)
{
    if (batch->write.mode == WRITE_CONTINUE)
        return;
    size_t failed = 0;
    while (failed < batch->count && (batch->results[failed]->status == STATUS_OK ||
                                     batch->results[failed]->status == STATUS_NOT_MODIFIED))
        failed++;
    if (failed == batch->count)
        return;
    for (size_t i = batch->write.mode == WRITE_ATOMIC ? 0 : failed; i < batch->count; i++) {
        ItemWrite *w = batch->results[i];
        if (i != failed)
            w->status =
                error_set(&w->error, STATUS_FAILED_DEPENDENCY, SUB_NONE,
                          "Not done because operation %zu of the batch failed.", failed + 1);
    }
}

static void on_loop(HttpTask *task)
{
    Batch *batch = CONTAINER_OF(task, Batch, task);
    /* A client that has named a range is told that it is gone, and finds out which ranges have
     * replaced it (I7). */
    if (batch->is_routed &&
        document_resubmit(&batch->context, epk_slice(&batch->epk), &batch->write))
        return;
    if (batch->write.mode == WRITE_ORDERED)
        fail_others(batch); /* also those that were not sent */
    if (batch->write.status != STATUS_OK)
        document_respond_error(&batch->context, &batch->write.error, batch->write.lsn,
                               document_failed_charge(batch->context.request));
    else
        answer(batch);
}

static void on_done(PartitionWrite *write)
{
    Batch *batch = CONTAINER_OF(write, Batch, write);
    http_loop_post(batch->context.request->http->loop, &batch->task);
}

/* The key of one operation: its own in bulk, the request's in a transaction. */
static Status operation_key(ApiRequest *r, const Container *container, const BatchOperation *op,
                            const PartitionKey *shared, PartitionKey *out, Error *err)
{
    const PartitionKeyDefinition *definition = &container->partition_key;
    bool found = false;
    TRY(key_header_parse(r->arena, op->partition_key, definition, KEY_WHOLE, out, &found, err));
    if (definition->kind == PARTITION_NONE)
        return STATUS_OK;
    if (!found && shared == NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The operation has no partition key, and neither has the request.");
    if (!found) {
        *out = *shared;
        return STATUS_OK;
    }
    if (shared != NULL)
        TRY(key_header_match(shared, out, err));
    return STATUS_OK;
}

static Status check_place(const ApiRequest *r, const PartitionRange *range, const Epk *epk,
                          Error *err)
{
    if (target_range(r->container, epk_slice(epk)) == range)
        return STATUS_OK;
    return error_set(err, STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE,
                     "The operation's partition key is not served by range %u.", range->id);
}

static Status prepare_document(ApiRequest *r, const BatchOperation *op, const PartitionKey *key,
                               ItemWrite *w, Error *err)
{
    if (op->body_bytes > ITEM_BYTES_MAX)
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         ITEM_TOO_LARGE "The item has %zu bytes, at most %zu are accepted.",
                         op->body_bytes, ITEM_BYTES_MAX);
    TRY(item_prepare(r->arena, op->body, &w->document, &w->document_id, &w->ttl_s, err));
    PartitionKey own;
    partition_key_extract(&r->container->partition_key, w->document, &own);
    TRY(key_header_match(key, &own, err));
    w->id = op->op == BATCH_REPLACE ? op->id : w->document_id;
    return STATUS_OK;
}

static Status prepare(ApiRequest *r, const BatchOperation *op, const PartitionKey *shared,
                      const PartitionRange *range, PartitionKey *key, ItemWrite *w, Error *err)
{
    static const ItemOp ops[] = {
        [BATCH_CREATE] = ITEM_CREATE,   [BATCH_UPSERT] = ITEM_UPSERT, [BATCH_READ] = ITEM_READ,
        [BATCH_REPLACE] = ITEM_REPLACE, [BATCH_DELETE] = ITEM_DELETE, [BATCH_PATCH] = ITEM_PATCH,
    };
    static const IndexDirective directives[] = {
        [BATCH_INDEXING_DEFAULT] = INDEX_DEFAULT,
        [BATCH_INDEXING_INCLUDE] = INDEX_INCLUDE,
        [BATCH_INDEXING_EXCLUDE] = INDEX_EXCLUDE,
    };
    w->op = ops[op->op];
    w->id = op->id;
    w->if_match = op->if_match;
    w->if_none_match = op->if_none_match;
    w->directive = directives[op->indexing];
    TRY(operation_key(r, r->container, op, shared, key, err));
    epk_make(r->container->partition_key.kind, key, &w->epk);
    TRY(check_place(r, range, &w->epk, err));
    if (w->op == ITEM_CREATE || w->op == ITEM_UPSERT || w->op == ITEM_REPLACE)
        return prepare_document(r, op, key, w, err);
    if (w->op == ITEM_PATCH)
        return document_patch_prepare(r, op->body, w, err);
    return STATUS_OK;
}

/* The least that an operation costs, before it is known what it finds and what is indexed. */
static Charge least_charge(const ApiRequest *r, const BatchOperation *op, const ItemWrite *w)
{
    bool has_document = w->op == ITEM_CREATE || w->op == ITEM_UPSERT || w->op == ITEM_REPLACE;
    return has_document ? charge_create(r->api->options.charges, op->body_bytes, 0)
                        : document_failed_charge(r);
}

/* Prepares every operation. Returns how many can be tried. */
static size_t prepare_all(ApiRequest *r, Batch *batch, const PartitionKey *shared,
                          const PartitionRange *range)
{
    size_t tried = 0;
    Charge ahead = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const BatchOperation *op = &batch->operations[i];
        ItemWrite *w = &batch->writes[tried];
        *w = (ItemWrite){0};
        PartitionKey own;
        PartitionKey *key = batch->keys != NULL ? &batch->keys[i] : &own;
        w->status = prepare(r, op, shared, range, key, w, &w->error);
        if (w->status == STATUS_OK && batch->write.mode == WRITE_CONTINUE)
            w->status = throttle_admit_after(r, batch->context.partition, ahead, r->http->begun_us,
                                             &w->error);
        if (w->status != STATUS_OK) {
            ItemWrite *refused = ARENA_NEW(r->arena, ItemWrite);
            *refused = *w;
            batch->results[i] = refused;
            continue;
        }
        batch->results[i] = w;
        ahead += least_charge(r, op, w);
        tried++;
    }
    return tried;
}

static Status choose_range(ApiRequest *r, bool is_atomic, Target *target, bool *has_key,
                           bool *has_range, Error *err)
{
    TRY(request_range(r, &target->range, has_range, err));
    *has_key = request_header(r, "x-ms-documentdb-partitionkey").len > 0;
    if (*has_key || is_atomic || !*has_range) {
        const PartitionRange *named = target->range;
        TRY(request_target(r, target, err));
        *has_key = true;
        if (*has_range && named != target->range)
            return error_set(err, STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE,
                             "The request's partition key is not served by range %u.", named->id);
    }
    return STATUS_OK;
}

/* How many of the operations that can be tried are sent. Nothing of a transaction is done if one
 * operation cannot even be tried; bulk that stops at the first failure is sent as far as that. */
static size_t count_to_send(const Batch *batch, size_t tried)
{
    if (tried == batch->count || batch->write.mode == WRITE_CONTINUE)
        return tried;
    size_t first = 0;
    while (batch->results[first]->status == STATUS_OK)
        first++;
    return batch->write.mode == WRITE_ATOMIC ? 0 : first;
}

static Status batch_submit(Batch *batch, Error *err)
{
    document_hold(&batch->context);
    Status status = batch->is_routed ? document_submit(&batch->context, epk_slice(&batch->epk),
                                                       &batch->write, err)
                                     : handle_submit(batch->context.partition, &batch->write, err);
    if (status != STATUS_OK)
        document_release(&batch->context);
    return status;
}

/* A batch that only writes ignores session tokens. One that reads as well respects them, before
 * anything is done. */
static bool has_read(const Batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->operations[i].op == BATCH_READ)
            return true;
    }
    return false;
}

/* Whether an identity may do all of it; a batch that holds anything else is refused whole. */
static Status check_access(const ApiRequest *r, const Batch *batch, Error *err)
{
    static const IdentityAction actions[] = {
        [BATCH_CREATE] = ACTION_ITEM_CREATE, [BATCH_UPSERT] = ACTION_ITEM_UPSERT,
        [BATCH_READ] = ACTION_ITEM_READ,     [BATCH_REPLACE] = ACTION_ITEM_REPLACE,
        [BATCH_DELETE] = ACTION_ITEM_DELETE, [BATCH_PATCH] = ACTION_ITEM_REPLACE,
    };
    static_assert(ARRAY_COUNT(actions) == BATCH_OP_COUNT, "every operation has one");
    for (size_t i = 0; i < batch->count; i++)
        TRY(access_check_operation(r, actions[batch->operations[i].op], err));
    return STATUS_OK;
}

Status documents_batch(ApiRequest *r, Error *err)
{
    TRY(request_check_size(r, err));
    bool is_atomic = request_flag(r, "x-ms-cosmos-batch-atomic");
    Slice go_on = slice_trim(request_header(r, "x-ms-cosmos-batch-continue-on-error"));
    bool stops = slice_equal_nocase(go_on, SLICE("false"));
    Target target;
    bool has_key = false;
    bool has_range = false;
    TRY(choose_range(r, is_atomic, &target, &has_key, &has_range, err));

    Batch *batch = ARENA_NEW(r->arena, Batch);
    batch->is_routed = !has_range;
    if (batch->is_routed)
        batch->epk = target.epk;
    const BatchBody *body = NULL;
    TRY(batch_body_get(r, &body, err));
    batch->form = body->form;
    batch->count = body->count;
    /* In bulk the SDK sends its part to each child of a split partition, even if that is nothing.
     */
    if (batch->count == 0 && is_atomic)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "Batch request has no operations.");
    batch->operations = body->operations;
    TRY(check_access(r, batch, err));
    batch->writes = arena_alloc(r->arena, batch->count * sizeof(ItemWrite)); /* zeroed one by one */
    batch->results = ARENA_NEW_ARRAY(r->arena, ItemWrite *, batch->count);
    batch->is_minimal = request_is_minimal(r);
    document_context_init(&batch->context, r, target.range);
    if (has_key)
        usage_name(r, r->container, &target.key, epk_slice(&target.epk));
    else
        batch->keys = ARENA_NEW_ARRAY(r->arena, PartitionKey, batch->count);
    TRY(document_admit(&batch->context, err));
    batch->write.lsn = handle_lsn(batch->context.partition);
    if (has_read(batch) && document_check_session(&batch->context, err) != STATUS_OK) {
        document_respond_error(&batch->context, err, batch->write.lsn, document_failed_charge(r));
        return STATUS_OK;
    }
    batch->write.mode = is_atomic ? WRITE_ATOMIC : stops ? WRITE_ORDERED : WRITE_CONTINUE;
    size_t tried = prepare_all(r, batch, has_key ? &target.key : NULL, target.range);
    batch->write.count = count_to_send(batch, tried);
    batch->write.read_bytes_max = PAGE_BYTES_MAX - batch->count * RESULT_BYTES_MAX;
    if (batch->write.count == 0) {
        fail_others(batch);
        answer(batch);
        return STATUS_OK;
    }
    batch->task.run = on_loop;
    batch->write.items = batch->writes;
    batch->write.arena = r->arena;
    batch->write.message.deadline_us = r->deadline_us;
    batch->write.done = on_done;
    return batch_submit(batch, err);
}
