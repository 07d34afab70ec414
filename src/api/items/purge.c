/* purge.c - POST {container}/operations/partitionkeydelete: all items of a partition key.
 *
 * They are invisible when this is answered; their space is freed in the background. A prefix of a
 * hierarchical key may reach into several physical partitions, and is answered when all of them
 * have purged it. If one of them was split or merged meanwhile, all are asked again, by the newest
 * map (I7): purging twice does no harm before the answer is given.
 */
#include "api/core/throttle_int.h"
#include "api/core/usage_int.h"
#include "api/items/document_context_int.h"
#include "api/items/document_handlers_int.h"

typedef struct PurgeTask PurgeTask;

typedef struct PurgePart {
    PartitionPurge purge;
    PurgeTask *task;
    PartitionHandle *partition; /* of the container, which is held */
} PurgePart;

struct PurgeTask {
    HttpTask task;
    DocumentContext context;
    Epk epk; /* of the key or the prefix */
    _Atomic size_t left;
    size_t count;
    PurgePart *parts;
};

/* Each partition pays for its purge; the first one pays with the answer. */
static Charge charge_parts(PurgeTask *t)
{
    ApiRequest *r = t->context.request;
    uint64_t now_us = clock_monotonic_us(r->api->options.clock);
    Charge each = charge_metadata_write(r->api->options.charges);
    for (size_t i = 1; i < t->count; i++)
        throttle_pay(r, t->parts[i].partition, each, now_us);
    t->context.paid_by_others = each * (t->count - 1);
    return each * t->count;
}

static void post_parts(PurgeTask *t);

static void on_loop(HttpTask *task)
{
    PurgeTask *t = CONTAINER_OF(task, PurgeTask, task);
    uint64_t lsn = t->parts[0].purge.lsn;
    Error err = {.status = STATUS_OK};
    for (size_t i = 0; i < t->count && !document_is_gone(&err); i++) {
        const PartitionPurge *purge = &t->parts[i].purge;
        if (purge->status != STATUS_OK &&
            (err.status == STATUS_OK || document_is_gone(&purge->error)))
            err = purge->error;
    }
    if (document_is_gone(&err)) {
        err.status = document_reroute(&t->context, epk_slice(&t->epk), &err);
        if (err.status == STATUS_OK) {
            post_parts(t);
            return;
        }
    }
    if (err.status != STATUS_OK)
        document_respond_error(&t->context, &err, lsn, document_failed_charge(t->context.request));
    else
        document_respond(&t->context, 200, NULL, lsn, charge_parts(t), DOCUMENT_ANSWER_MINIMAL);
}

static Status admit_all(ApiRequest *r, const PartitionRange *first, size_t count, Error *err)
{
    TRY(throttle_classify(r, err));
    for (size_t i = 0; i < count; i++)
        TRY(throttle_admit(r, container_handle(r->container, &first[i]), r->http->begun_us, err));
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
    size_t count = count_ranges(t->context.container, first, epk_slice(&t->epk));
    PurgePart *parts = ARENA_NEW_ARRAY(t->context.request->arena, PurgePart, count);
    t->parts = parts;
    t->count = count;
    atomic_store(&t->left, count);
    for (size_t i = 0; i < count; i++) {
        parts[i].purge.epk = t->epk;
        parts[i].purge.done = on_done;
        parts[i].task = t;
        parts[i].partition = container_handle(t->context.container, &first[i]);
    }
    /* After the last part is posted the task may be gone; one that is refused counts as answered.
     */
    for (size_t i = 0; i < count; i++) {
        PartitionPurge *purge = &parts[i].purge;
        Status status = handle_purge(parts[i].partition, purge, &purge->error);
        if (status != STATUS_OK) {
            purge->status = status;
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
    if (key.count == definition->path_count)
        usage_name(r, container, &key, epk_slice(&epk));
    TRY(admit_all(r, first, count_ranges(container, first, epk_slice(&epk)), err));

    PurgeTask *t = ARENA_NEW(r->arena, PurgeTask);
    t->task.run = on_loop;
    t->epk = epk;
    document_context_init(&t->context, r, first);
    document_hold(&t->context);
    post_parts(t);
    return STATUS_OK;
}
