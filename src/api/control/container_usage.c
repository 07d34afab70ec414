/* container_usage.c - see container_usage_int.h. */
#include "api/control/container_usage_int.h"

#include "api/core/forward_int.h"

/* Of an answer: "items bytes index-bytes progress". */
#define HEADER_USAGE "x-orrery-node-usage"

enum { CALL_MS = 8000, ANSWER_BYTES_MAX = 64 << 10, PROGRESS_DONE = 100 };

typedef struct UsageTask UsageTask;

typedef struct UsagePart {
    NodeCall call;
    UsageTask *task;
} UsagePart;

/* Lives in its request's arena. */
struct UsageTask {
    HttpTask task;
    ApiRequest *request;
    ContainerUsageDone done;
    Snapshot *snapshot; /* a reference of its own */
    const Database *database;
    const Container *container;
    ContainerUsage usage;
    size_t left; /* parts without an answer, and one while they are being sent */
    Error error; /* the first failure, or STATUS_OK */
};

static void add_here(ContainerUsage *usage, const PartitionHandle *partition)
{
    quota_add(&usage->held, partition);
    unsigned progress = handle_index_progress(partition);
    usage->progress = progress < usage->progress ? progress : usage->progress;
}

/* ---- at the node that is asked ---- */

Status container_usage_answer(ApiRequest *r, const PartitionRange *range, Error *err)
{
    const PartitionHandle *partition = container_handle(r->container, range);
    if (!handle_is_local(partition))
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE,
                         "This node does not serve the partition key range '%u'.", range->id);
    ContainerUsage usage = {.progress = PROGRESS_DONE};
    add_here(&usage, partition);
    Response response;
    response_begin(r, &response, 200, response_charge_read(r));
    response_header(&response, SLICE(HEADER_USAGE),
                    arena_format(r->arena, "%llu %llu %llu %u",
                                 (unsigned long long)usage.held.items,
                                 (unsigned long long)usage.held.bytes,
                                 (unsigned long long)usage.held.index_bytes, usage.progress));
    response_send(r, &response);
    return STATUS_OK;
}

/* ---- at the node that asks ---- */

static bool read_numbers(Slice text, uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!slice_to_u64(slice_cut(&text, ' '), &numbers[i]))
            return false;
    }
    return text.len == 0;
}

static Status add_answer(ContainerUsage *usage, const NodeCall *call, Error *err)
{
    enum { NUMBERS = 4 };
    uint64_t numbers[NUMBERS];
    if (call->outcome != NODE_CALL_ANSWERED || call->status == status_http(STATUS_NOT_OWNER) ||
        call->status == status_http(STATUS_GONE))
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE,
                         "A node that serves a part of the container did not tell what it holds.");
    if (call->status != status_http(STATUS_OK))
        return forward_read_error(call, err);
    if (!read_numbers(forward_answer_header(call, HEADER_USAGE), numbers, NUMBERS))
        return error_set(err, STATUS_INTERNAL, SUB_NONE,
                         "A node has answered without " HEADER_USAGE ".");
    usage->held.items += numbers[0];
    usage->held.bytes += numbers[1];
    usage->held.index_bytes += numbers[2];
    if (numbers[3] < usage->progress)
        usage->progress = (unsigned)numbers[3];
    return STATUS_OK;
}

/* Later, because a call may be over before it was sent. */
static void on_loop(HttpTask *task)
{
    UsageTask *t = CONTAINER_OF(task, UsageTask, task);
    ApiRequest *r = t->request;
    Snapshot *snapshot = t->snapshot; /* the task is gone after the answer */
    if (t->error.status != STATUS_OK) {
        respond_error(r, &t->error);
    } else {
        r->snapshot = snapshot;
        r->database = t->database;
        r->container = t->container;
        t->done(r, &t->usage);
    }
    snapshot_unref(snapshot);
}

static void part_over(UsageTask *t)
{
    if (--t->left == 0)
        http_loop_post(t->request->http->loop, &t->task);
}

static void note_failure(UsageTask *t, const Error *err)
{
    const ApiCluster *cluster = t->request->api->options.cluster;
    if (err->status == STATUS_NOT_OWNER)
        cluster->refresh(cluster->ctx);
    if (t->error.status == STATUS_OK)
        t->error = *err;
}

static void on_answer(NodeCall *call)
{
    UsagePart *part = CONTAINER_OF(call, UsagePart, call);
    Error err;
    if (add_answer(&part->task->usage, call, &err) != STATUS_OK)
        note_failure(part->task, &err);
    part_over(part->task);
}

static Status send_part(UsageTask *t, const PartitionRange *range, Error *err)
{
    ApiRequest *r = t->request;
    const ApiCluster *cluster = r->api->options.cluster;
    ApiOwner owner = cluster->owner(cluster->ctx, range->space);
    if (!owner.is_known || owner.is_local)
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE,
                         "The node that serves a part of the container is being replaced.");
    UsagePart *part = ARENA_NEW(r->arena, UsagePart);
    part->task = t;
    part->call = (NodeCall){
        .address = arena_copy(r->arena, slice_from_cstr(owner.address)),
        .method = r->http->method,
        .path = r->http->path,
        .timeout_ms = CALL_MS,
        .answer_bytes_max = ANSWER_BYTES_MAX,
        .arena = r->arena,
        .done = on_answer,
    };
    HttpHeader more = {SLICE(NODE_HEADER_RANGE), arena_format(r->arena, "%u", range->id)};
    part->call.headers = forward_headers(r, &more, 1, &part->call.header_count);
    t->left++;
    node_link_send(r->http->loop, &part->call);
    return STATUS_OK;
}

static bool is_all_here(const ApiRequest *r)
{
    if (LIKELY(r->api->options.cluster == NULL))
        return true;
    for (size_t i = 0; i < r->container->range_count; i++) {
        if (!handle_is_local(container_handle_at(r->container, i)))
            return false;
    }
    return true;
}

static UsageTask *task_new(ApiRequest *r, ContainerUsageDone done)
{
    UsageTask *t = ARENA_NEW(r->arena, UsageTask);
    t->task.run = on_loop;
    t->request = r;
    t->done = done;
    t->snapshot = snapshot_ref(r->snapshot);
    t->database = r->database;
    t->container = r->container;
    t->usage.progress = PROGRESS_DONE;
    t->left = 1;
    t->error.status = STATUS_OK;
    r->database = NULL;
    r->container = NULL;
    r->snapshot = NULL;
    return t;
}

void container_usage_find(ApiRequest *r, ContainerUsageDone done)
{
    const Container *container = r->container;
    if (LIKELY(is_all_here(r))) {
        ContainerUsage usage = {.progress = PROGRESS_DONE};
        for (size_t i = 0; i < container->range_count; i++)
            add_here(&usage, container_handle_at(container, i));
        done(r, &usage);
        return;
    }
    forward_keep(r);
    UsageTask *t = task_new(r, done);
    for (size_t i = 0; i < container->range_count; i++) {
        const PartitionHandle *partition = container_handle_at(container, i);
        Error err;
        if (handle_is_local(partition))
            add_here(&t->usage, partition);
        else if (send_part(t, &container->ranges[i], &err) != STATUS_OK)
            note_failure(t, &err);
    }
    part_over(t);
}
