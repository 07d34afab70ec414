/* orrery_cluster.c - the nodes of the cluster that this server is one of: paths under
 * /_orrery/cluster.
 *
 *     GET    /_orrery/cluster                           nodes, owners, replicas, lag
 *     POST   /_orrery/cluster/drain?node=n              gives everything of a node to the others
 *     DELETE /_orrery/cluster/drain?node=n              it may own partitions again
 *     DELETE /_orrery/cluster/nodes?node=n              forgets a dead node
 *     POST   /_orrery/cluster/move?space=s&node=n       makes a node the owner of a partition, and
 *                                                     of those that share its throughput; s is the
 *                                                     number of its space, or db/container/range
 *     POST   /_orrery/cluster/upgrade                   all nodes write the newest format they know
 *     POST   /_orrery/cluster/recover?space=s           gives up what the engine lost, on this node
 *     GET    /_orrery/cluster/digest?space=s            what the copy on this node holds
 *
 * All are signed as requests for the account. Reading is for every key, the rest for master keys.
 * A worker asks the cluster, which may wait for its engine.
 */
#include "api/admin/orrery_int.h"
#include "api/core/response_int.h"
#include "base/encoding.h"

static const Slice PREFIX = SLICE_INIT("/cluster");

typedef enum ClusterAct {
    CLUSTER_STATUS,
    CLUSTER_DRAIN,
    CLUSTER_UNDRAIN,
    CLUSTER_REMOVE,
    CLUSTER_MOVE,
    CLUSTER_UPGRADE,
    CLUSTER_RECOVER,
    CLUSTER_DIGEST
} ClusterAct;

/* Lives in its request's arena. */
typedef struct ClusterOrder {
    WorkerJob job;
    HttpTask task;
    ApiRequest *request;
    ClusterAct act;
    Slice node; /* decoded, in the arena */
    uint64_t space;

    Status status;
    Error error;
    Slice json;
} ClusterOrder;

static Status obey(ClusterOrder *order)
{
    const ApiCluster *cluster = order->request->api->options.cluster;
    switch (order->act) {
    case CLUSTER_STATUS:
        return cluster->status(cluster->ctx, order->request->arena, &order->json, &order->error);
    case CLUSTER_DRAIN:
    case CLUSTER_UNDRAIN:
        return cluster->drain(cluster->ctx, order->node, order->act == CLUSTER_DRAIN,
                              &order->error);
    case CLUSTER_REMOVE:
        return cluster->remove(cluster->ctx, order->node, &order->error);
    case CLUSTER_UPGRADE:
        return cluster->upgrade(cluster->ctx, order->request->arena, &order->json, &order->error);
    case CLUSTER_RECOVER:
        return cluster->recover(cluster->ctx, order->space, &order->error);
    case CLUSTER_DIGEST:
        return cluster->digest(cluster->ctx, order->space, order->request->arena, &order->json,
                               &order->error);
    case CLUSTER_MOVE:
        break;
    }
    return cluster->move(cluster->ctx, order->space, order->node, order->request->arena,
                         &order->json, &order->error);
}

static void on_worker(WorkerJob *job)
{
    ClusterOrder *order = CONTAINER_OF(job, ClusterOrder, job);
    worker_begin_wait();
    order->status = obey(order);
    worker_end_wait();
    http_loop_post(order->request->http->loop, &order->task);
}

static void on_answer(HttpTask *task)
{
    ClusterOrder *order = CONTAINER_OF(task, ClusterOrder, task);
    ApiRequest *r = order->request;
    if (order->status != STATUS_OK)
        respond_error(r, &order->error);
    else if (order->json.len > 0)
        respond_text(r, 200, SLICE("application/json"), order->json);
    else
        respond_empty(r, 204, SLICE("0"));
}

/* ---- on the loop ---- */

static Status read_parameters(ClusterOrder *order, Slice query, Slice *space, Error *err)
{
    ApiRequest *r = order->request;
    while (query.len > 0) {
        Slice value = slice_cut(&query, '&');
        Slice name = slice_cut(&value, '=');
        Slice *to = slice_equal(name, SLICE("node"))    ? &order->node
                    : slice_equal(name, SLICE("space")) ? space
                                                        : NULL;
        Slice decoded;
        if (to == NULL || to->len > 0 || value.len == 0 ||
            !percent_decode(r->arena, value, &decoded))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "'%.*s' is not a parameter here, has no value, or was given twice.",
                             SLICE_CUT(name, 60));
        *to = arena_copy(r->arena, decoded);
    }
    return STATUS_OK;
}

static Status find_act(const ApiRequest *r, Slice path, ClusterAct *out, Error *err)
{
    static const struct {
        Slice method, path;
        ClusterAct act;
    } rows[] = {
        {SLICE_INIT("GET"), SLICE_INIT(""), CLUSTER_STATUS},
        {SLICE_INIT("POST"), SLICE_INIT("/drain"), CLUSTER_DRAIN},
        {SLICE_INIT("DELETE"), SLICE_INIT("/drain"), CLUSTER_UNDRAIN},
        {SLICE_INIT("DELETE"), SLICE_INIT("/nodes"), CLUSTER_REMOVE},
        {SLICE_INIT("POST"), SLICE_INIT("/move"), CLUSTER_MOVE},
        {SLICE_INIT("POST"), SLICE_INIT("/upgrade"), CLUSTER_UPGRADE},
        {SLICE_INIT("POST"), SLICE_INIT("/recover"), CLUSTER_RECOVER},
        {SLICE_INIT("GET"), SLICE_INIT("/digest"), CLUSTER_DIGEST},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (slice_equal(path, rows[i].path) && slice_equal(r->http->method, rows[i].method)) {
            *out = rows[i].act;
            return STATUS_OK;
        }
    }
    return error_set(
        err, STATUS_METHOD_NOT_ALLOWED, SUB_NONE,
        "There are GET /_orrery/cluster, GET /_orrery/cluster/digest?space=, POST and DELETE "
        "/_orrery/cluster/drain?node=, DELETE /_orrery/cluster/nodes?node=, POST "
        "/_orrery/cluster/move?space=&node=, POST /_orrery/cluster/upgrade and POST "
        "/_orrery/cluster/recover?space=.");
}

/* "database/container/range": names, and the id of a partition key range. */
static Status find_space(const ApiRequest *r, Slice text, uint64_t *out, Error *err)
{
    Slice range_text = text;
    Slice database_id = slice_cut(&range_text, '/');
    Slice container_id = slice_cut(&range_text, '/');
    uint64_t id = 0;
    if (!slice_to_u64(range_text, &id) || id > UINT32_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The parameter 'space' must be the number of a partition's space, or "
                         "DATABASE/CONTAINER/RANGE with the id of a partition key range, not "
                         "'%.*s'.",
                         SLICE_CUT(text, 200));
    const Snapshot *snapshot = catalog_read(&r->loop->reader);
    const Database *database = snapshot_database_by_id(snapshot, database_id);
    const Container *container =
        database == NULL ? NULL
                         : snapshot_container_by_id(snapshot, database->info.number, container_id);
    const PartitionRange *range =
        container == NULL ? NULL : container_range(container, (uint32_t)id);
    if (range == NULL)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                         "There is no partition key range '%.*s': its database, its container or "
                         "the range is unknown.",
                         SLICE_CUT(text, 200));
    *out = range->space;
    return STATUS_OK;
}

static Status parse(ClusterOrder *order, Slice path, Slice query, Error *err)
{
    Slice space = SLICE_EMPTY;
    TRY(find_act(order->request, slice_from(path, PREFIX.len), &order->act, err));
    TRY(read_parameters(order, query, &space, err));
    bool is_about_all = order->act == CLUSTER_STATUS || order->act == CLUSTER_UPGRADE;
    bool is_here = order->act == CLUSTER_DIGEST || order->act == CLUSTER_RECOVER;
    bool is_about_node = !is_about_all && !is_here;
    if (is_about_node && order->node.len == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "The parameter 'node' is needed.");
    if (order->act == CLUSTER_MOVE && !slice_to_u64(space, &order->space))
        return find_space(order->request, space, &order->space, err);
    if (is_here && !slice_to_u64(space, &order->space))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The parameter 'space' must be the number of a partition's space, not "
                         "'%.*s'.",
                         SLICE_CUT(space, 40));
    return STATUS_OK;
}

bool cluster_is_path(Slice path)
{
    return slice_starts_with(path, PREFIX) &&
           (path.len == PREFIX.len || path.ptr[PREFIX.len] == '/');
}

Status cluster_admit(ApiRequest *r, Error *err)
{
    TRY(address_parse(r->arena, SLICE("/"), &r->address, err));
    bool is_read = slice_equal(r->http->method, SLICE("GET"));
    r->operation = is_read ? OPERATION_READ : OPERATION_EXECUTE; /* not for a read-only key */
    return request_authorise(r, false, err);
}

Status cluster_request(ApiRequest *r, Slice path, Slice query, Error *err)
{
    if (r->api->options.cluster == NULL)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                         "This server is not a node of a cluster: it was started without "
                         "--cluster.");
    ClusterOrder *order = ARENA_NEW(r->arena, ClusterOrder);
    order->request = r;
    order->job.run = on_worker;
    order->task.run = on_answer;
    TRY(parse(order, path, query, err));
    return workers_post(r->api->options.readers, &order->job) ? STATUS_OK
                                                              : request_refuse_busy(err);
}
