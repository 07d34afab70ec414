/* purge.c - POST {container}/operations/partitionkeydelete: all items of a partition key.
 *
 * They are invisible when this is answered; their room comes back in the background. A prefix of a
 * hierarchical key may reach into several physical partitions, and is answered when all have taken
 * it.
 */
#include "api/item_int.h"
#include "api/throttle_int.h"
#include "api/usage_int.h"

typedef struct PurgeTask {
    HttpTask task;
    ItemContext context;
    _Atomic size_t left;
    size_t count;
    struct PurgePart {
        PartitionPurge purge;
        struct PurgeTask *task;
        const PartitionRange *range; /* of the container, which is held */
    } parts[];
} PurgeTask;

/* Each partition pays for the mark that it made; the first one's is paid with the answer. */
static Charge charge_parts(PurgeTask *t)
{
    ApiRequest *r = t->context.request;
    uint64_t now_us = clock_monotonic_us(r->api->options.clock);
    Charge each = charge_metadata_write(r->api->options.charges);
    for (size_t i = 1; i < t->count; i++)
        throttle_pay(r, t->parts[i].range, each, now_us);
    t->context.paid_by_others = each * (t->count - 1);
    return each * t->count;
}

static void on_loop(HttpTask *task)
{
    PurgeTask *t = CONTAINER_OF(task, PurgeTask, task);
    const ApiRequest *r = t->context.request;
    uint64_t lsn = t->parts[0].purge.lsn;
    for (size_t i = 0; i < t->count; i++) {
        if (t->parts[i].purge.status != STATUS_OK) {
            item_respond_error(&t->context, &t->parts[i].purge.error, lsn, item_failed_charge(r));
            return;
        }
    }
    item_respond(&t->context, 200, NULL, lsn, charge_parts(t), true);
}

static Status admit_all(ApiRequest *r, const PartitionRange *ranges, size_t count, Error *err)
{
    TRY(throttle_classify(r, err));
    for (size_t i = 0; i < count; i++)
        TRY(throttle_admit(r, &ranges[i], r->http->begun_us, err));
    return STATUS_OK;
}

static void part_over(PurgeTask *t)
{
    if (atomic_fetch_sub(&t->left, 1) == 1)
        http_loop_post(t->context.request->http->loop, &t->task);
}

static void on_done(PartitionPurge *purge)
{
    part_over(CONTAINER_OF(purge, struct PurgePart, purge)->task);
}

Status documents_purge(ApiRequest *r, Error *err)
{
    const Container *container = r->container;
    const PartitionKeyDefinition *definition = &container->partition_key;
    PartitionKey key;
    bool found = false;
    if (definition->kind == PARTITION_NONE) /* any header would name everything there is */
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The container has no partition key, so nothing can be deleted by it.");
    TRY(partition_key_parse(r->arena, request_header(r, "x-ms-documentdb-partitionkey"), definition,
                            KEY_PREFIX, &key, &found, err));
    if (!found)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "PartitionKey value must be supplied for this operation: send "
                         "x-ms-documentdb-partitionkey.");
    Epk epk;
    epk_make(definition->kind, &key, &epk);
    size_t first = (size_t)(range_of(container, epk_slice(&epk)) - container->ranges);
    size_t count = 1;
    while (first + count < container->range_count &&
           slice_starts_with(container->ranges[first + count].min_bytes, epk_slice(&epk)) &&
           epk.len > 0)
        count++;
    if (key.count == definition->path_count)
        usage_name(r, container, &key, epk_slice(&epk));
    TRY(admit_all(r, &container->ranges[first], count, err));

    PurgeTask *t = arena_zalloc(r->arena, sizeof(PurgeTask) + sizeof(struct PurgePart) * count);
    t->task.run = on_loop;
    t->count = count;
    atomic_init(&t->left, count);
    item_context_init(&t->context, r, &container->ranges[first]);
    item_hold(&t->context);
    for (size_t i = 0; i < count; i++) {
        t->parts[i].purge.epk = epk;
        t->parts[i].purge.done = on_done;
        t->parts[i].task = t;
        t->parts[i].range = &container->ranges[first + i];
    }
    /* After the last part is posted the task may be gone; one that is refused counts as answered.
     */
    for (size_t i = 0; i < count; i++) {
        PartitionPurge *purge = &t->parts[i].purge;
        Status status =
            partition_purge(container->ranges[first + i].partition, purge, &purge->error);
        if (status != STATUS_OK) {
            purge->status = status;
            part_over(t);
        }
    }
    return STATUS_OK;
}
