/* purge.c - POST {container}/operations/partitionkeydelete: all items of a partition key.
 *
 * They are invisible when this is answered; their space is freed in the background. A prefix of a
 * hierarchical key may reach into several physical partitions, and is answered when all of them
 * have purged it. If one of them was split or merged meanwhile, all are asked again, by the newest
 * map (I7): purging twice does no harm before the answer is given. But if it is not known of one
 * what became of its part, nothing is asked again (J7): that part may still be on its way, and
 * would delete what clients write after the answer. Then the outcome is unknown to the client, too.
 *
 * A partition of another node is purged by its owner: that is sent the same request, with the range
 * that it is meant for. The range that has the key itself is this node's, or the whole request goes
 * to its owner.
 */
#include "api/core/forward_int.h"
#include "api/core/throttle_int.h"
#include "api/core/usage_int.h"
#include "api/items/document_context_int.h"
#include "api/items/document_handlers_int.h"
#include "http/node_link.h"

typedef struct PurgeTask PurgeTask;

typedef struct PurgePart {
    PartitionPurge purge;
    NodeCall call; /* of a partition of another node */
    PurgeTask *task;
    PartitionHandle *partition; /* of the container, which is held */
} PurgePart;

enum { CALL_MS = 8000, ANSWER_BYTES_MAX = 64 << 10 };

struct PurgeTask {
    HttpTask task;
    DocumentContext context;
    Epk epk; /* of the key or the prefix */
    _Atomic size_t left;
    size_t count;
    PurgePart *parts;
    bool is_part; /* another node means one range only */
};

/* Each partition pays for its purge; the first one pays with the answer. */
static Charge charge_parts(PurgeTask *t)
{
    ApiRequest *r = t->context.request;
    uint64_t now_us = clock_monotonic_us(r->api->options.clock);
    Charge each = charge_metadata_write(r->api->options.charges);
    for (size_t i = 1; i < t->count; i++) {
        if (handle_is_local(t->parts[i].partition)) /* otherwise its owner has paid */
            throttle_pay(r, t->parts[i].partition, each, now_us);
    }
    t->context.paid_by_others = each * (t->count - 1);
    return each * t->count;
}

static void post_parts(PurgeTask *t);

/* Which failure is answered, or dealt with, of several: the one with the highest rank, and of those
 * the first. */
static int failure_rank(const Error *err)
{
    if (err->status == STATUS_OK)
        return 0;
    if (err->status == STATUS_TIMEOUT)
        return 3;
    return document_is_gone(err) ? 2 : 1;
}

static void on_loop(HttpTask *task)
{
    PurgeTask *t = CONTAINER_OF(task, PurgeTask, task);
    uint64_t lsn = t->parts[0].purge.lsn;
    Error err = {.status = STATUS_OK};
    for (size_t i = 0; i < t->count; i++) {
        const PartitionPurge *purge = &t->parts[i].purge;
        if (purge->status != STATUS_OK && failure_rank(&purge->error) > failure_rank(&err))
            err = purge->error;
    }
    if (document_is_gone(&err) && !t->is_part) { /* otherwise the other node asks again */
        err.status = document_reroute(&t->context, epk_slice(&t->epk), &err);
        if (err.status == STATUS_OK) {
            post_parts(t);
            return;
        }
    }
    if (err.status == STATUS_NOT_OWNER) /* it begins again, or elsewhere */
        document_respond_error(&t->context, &err, lsn, 0);
    else if (err.status != STATUS_OK)
        document_respond_error(&t->context, &err, lsn, document_failed_charge(t->context.request));
    else
        document_respond(&t->context, 200, NULL, lsn, charge_parts(t), DOCUMENT_ANSWER_MINIMAL);
}

/* The first partition is this node's, or the request goes to its owner, also if it has to begin
 * again. Those of other nodes are asked there. */
static Status admit_all(ApiRequest *r, const PartitionRange *first, size_t count, Error *err)
{
    TRY(throttle_classify(r, err));
    for (size_t i = 0; i < count; i++) {
        PartitionHandle *partition = container_handle(r->container, &first[i]);
        if (i == 0 || handle_is_local(partition))
            TRY(throttle_admit(r, partition, r->http->begun_us, err));
    }
    r->space = first->space;
    return STATUS_OK;
}

static void part_over(PurgeTask *t)
{
    if (atomic_fetch_sub(&t->left, 1) == 1)
        http_loop_post(t->context.request->http->loop, &t->task);
}

static void on_done(PartitionPurge *purge)
{
    part_over(CONTAINER_OF(purge, PurgePart, purge)->task);
}

/* ---- partitions of other nodes ---- */

/* What the owner's answer says. An outcome that is not known is the client's to deal with; where
 * nothing was done there, all of it begins again. */
static Status read_answer(const NodeCall *call, Error *err)
{
    int status = call->status;
    if (call->outcome == NODE_CALL_UNKNOWN)
        return error_set(err, STATUS_TIMEOUT, SUB_NONE,
                         "A node that serves a part of the key was sent the request, and no answer "
                         "came. It is not known whether its part was done.");
    if (call->outcome == NODE_CALL_NOT_SENT || status == status_http(STATUS_NOT_OWNER))
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE,
                         "Another node serves a part of the key by now.");
    if (status == status_http(STATUS_GONE))
        return error_set(err, STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE,
                         "A partition key range was split or merged.");
    return status >= 200 && status < 300 ? STATUS_OK : forward_read_error(call, err);
}

static void on_answer(NodeCall *call)
{
    PurgePart *part = CONTAINER_OF(call, PurgePart, call);
    PartitionPurge *purge = &part->purge;
    purge->status = read_answer(call, &purge->error);
    if (purge->status == STATUS_NOT_OWNER)
        forward_note_owner(part->task->context.request->api, call);
    part_over(part->task);
}

/* False if no node is known to serve it. */
static bool send_part(PurgePart *part)
{
    ApiRequest *r = part->task->context.request;
    const ApiCluster *cluster = r->api->options.cluster;
    const PartitionRange *range = handle_range(part->partition);
    ApiOwner owner = cluster->owner(cluster->ctx, range->space);
    if (!owner.is_known || owner.is_local)
        return false;
    HttpHeader more = {SLICE(NODE_HEADER_RANGE), arena_format(r->arena, "%u", range->id)};
    NodeCall *call = &part->call;
    *call = (NodeCall){
        .address = arena_copy(r->arena, slice_from_cstr(owner.address)),
        .method = r->http->method,
        .path = r->http->path,
        .body = r->http->body,
        .timeout_ms = CALL_MS,
        .answer_bytes_max = ANSWER_BYTES_MAX,
        .arena = r->arena,
        .done = on_answer,
    };
    call->headers = forward_headers(r, &more, 1, &call->header_count);
    node_link_send(r->http->loop, call);
    return true;
}

static Status begin_part(PurgePart *part)
{
    PartitionPurge *purge = &part->purge;
    if (handle_is_local(part->partition) ||
        part->task->context.request->api->options.cluster == NULL)
        return handle_purge(part->partition, purge, &purge->error);
    return send_part(part) ? STATUS_OK
                           : error_set(&purge->error, STATUS_NOT_OWNER, SUB_NONE,
                                       "The node that serves a part of the key is being replaced.");
}

/* ---- all of them ---- */

/* How many ranges have keys that begin with 'epk', from the one that has itself. */
static size_t count_ranges(const Container *container, const PartitionRange *first, Slice epk)
{
    const PartitionRange *end = container->ranges + container->range_count;
    const PartitionRange *next = first + 1;
    while (next < end && epk.len > 0 && slice_starts_with(next->min_bytes, epk))
        next++;
    return (size_t)(next - first);
}

/* Asks every partition that has such keys, by the map of the held container. */
static void post_parts(PurgeTask *t)
{
    const PartitionRange *first = t->context.range;
    ASSERT(t->context.held != NULL);
    size_t count = t->is_part ? 1 : count_ranges(t->context.container, first, epk_slice(&t->epk));
    PurgePart *parts = ARENA_NEW_ARRAY(t->context.request->arena, PurgePart, count);
    t->parts = parts;
    t->count = count;
    atomic_store(&t->left, count);
    for (size_t i = 0; i < count; i++) {
        parts[i].purge.epk = t->epk;
        parts[i].purge.done = on_done;
        parts[i].purge.message.deadline_us = t->context.request->deadline_us;
        parts[i].task = t;
        parts[i].partition = container_handle(t->context.container, &first[i]);
    }
    /* After the last part is posted the task may be gone; one that is refused counts as answered.
     */
    for (size_t i = 0; i < count; i++) {
        Status status = begin_part(&parts[i]);
        if (status != STATUS_OK) {
            parts[i].purge.status = status;
            part_over(t);
        }
    }
}

Status documents_purge(ApiRequest *r, Error *err)
{
    const Container *container = r->container;
    const PartitionKeyDefinition *definition = &container->partition_key;
    PartitionKey key;
    bool found = false;
    r->counted_as = HISTORY_DELETE;
    if (definition->kind == PARTITION_NONE) /* any header would name all items */
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The container has no partition key, so nothing can be deleted by it.");
    TRY(key_header_parse(r->arena, request_header(r, "x-ms-documentdb-partitionkey"), definition,
                         KEY_PREFIX, &key, &found, err));
    if (!found)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "PartitionKey value must be supplied for this operation: send "
                         "x-ms-documentdb-partitionkey.");
    Epk epk;
    epk_make(definition->kind, &key, &epk);
    const PartitionRange *first = target_range(container, epk_slice(&epk));
    const PartitionRange *only = NULL;
    TRY(forward_range(r, &only, err));
    size_t count = only != NULL ? 1 : count_ranges(container, first, epk_slice(&epk));
    first = only != NULL ? only : first;
    if (key.count == definition->path_count)
        usage_name(r, container, &key, epk_slice(&epk));
    TRY(admit_all(r, first, count, err));

    PurgeTask *t = ARENA_NEW(r->arena, PurgeTask);
    t->task.run = on_loop;
    t->epk = epk;
    t->is_part = only != NULL;
    document_context_init(&t->context, r, first);
    document_hold(&t->context);
    post_parts(t);
    return STATUS_OK;
}
