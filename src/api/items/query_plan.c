/* query_plan.c - see query_plan_int.h. A plan needs the text of a query and the container's
 * definition, and nothing that is stored. A short text is read on the loop, a long one on a worker.
 *
 * The first range of the container admits the request and pays for it, as for a query that visits
 * no partition.
 */
#include "api/items/query_plan_int.h"

#include "api/items/document_context_int.h"
#include "query/eval/query.h"
#include "query/sdk/sdk_plan.h"

/* A request for a plan, maybe on its way to a worker and back. */
typedef struct PlanTask {
    WorkerJob job;
    HttpTask task;
    DocumentContext context;
    Slice body;
    SdkFeatures features;
    bool has_key;
    PartitionKey key;

    Status status;
    Error error;
    Slice text; /* the answer */
} PlanTask;

/* A key that the client names is where its query goes, whatever the filter says. */
static void find_route(const PlanTask *t, const Query *query, QueryRoute *out)
{
    Arena *arena = t->context.request->arena;
    const PartitionKeyDefinition *definition = &t->context.container->partition_key;
    if (!t->has_key || definition->kind == PARTITION_NONE) {
        query_route(query, arena, definition, out);
        out->is_one_partition = t->context.container->range_count == 1;
        return;
    }
    Epk epk;
    epk_make(definition->kind, &t->key, &epk);
    QueryRange *range = ARENA_NEW(arena, QueryRange);
    range->from = arena_copy(arena, epk_slice(&epk));
    range->to = epk_prefix_end(arena, range->from);
    range->is_key = t->key.count == definition->path_count;
    *out = (QueryRoute){.ranges = range, .count = 1};
}

Slice document_plan_text(Arena *arena, const Query *query, const QueryRoute *route)
{
    Json plan;
    Error ignored;
    if (sdk_plan(query, arena, route, SDK_FEATURES_ALL, &plan, &ignored) != STATUS_OK)
        return SLICE_EMPTY;
    return json_print_arena(arena, plan);
}

static Status make_plan(PlanTask *t)
{
    Arena *arena = t->context.request->arena;
    Error *err = &t->error;
    Slice text;
    Json parameters;
    TRY(query_request(arena, t->body, &text, &parameters, err));
    Json computed = json_get(t->context.container->definition, SLICE("computedProperties"));
    Query *query;
    TRY(query_parse_with(arena, text, parameters, computed, &query, err));
    QueryRoute route;
    find_route(t, query, &route);
    Json plan;
    TRY(sdk_plan(query, arena, &route, t->features, &plan, err));
    t->text = json_print_arena(arena, plan);
    return STATUS_OK;
}

/* A refused query is charged like any other, because it has been read as well. */
static void answer(PlanTask *t)
{
    ApiRequest *r = t->context.request;
    Slice charge = document_charge(&t->context, charge_plan(r->api->options.charges, t->body.len));
    Response response;
    if (t->status == STATUS_OK) {
        response_begin(r, &response, 200, charge);
        response_header(&response, SLICE("content-type"), SLICE("application/json"));
        response.body = t->text;
    } else {
        response_error(r, &response, &t->error, charge);
    }
    document_send(&t->context, &response);
}

static void on_answer(HttpTask *task)
{
    answer(CONTAINER_OF(task, PlanTask, task));
}

static void on_worker(WorkerJob *job)
{
    PlanTask *t = CONTAINER_OF(job, PlanTask, job);
    t->status = make_plan(t);
    http_loop_post(t->context.request->http->loop, &t->task);
}

static Status post(PlanTask *t, Error *err)
{
    ApiRequest *r = t->context.request;
    t->job.run = on_worker;
    t->task.run = on_answer;
    t->body = arena_copy(r->arena, t->body);
    document_hold(&t->context);
    if (workers_post(r->api->options.workers, &t->job))
        return STATUS_OK;
    document_release(&t->context);
    return request_refuse_busy(err);
}

Status documents_plan(ApiRequest *r, Error *err)
{
    PlanTask *t = ARENA_NEW(r->arena, PlanTask);
    document_context_init(&t->context, r, &r->container->ranges[0]);
    TRY(document_admit(&t->context, err));
    t->body = r->http->body;
    t->features = sdk_features_read(request_header(r, "x-ms-cosmos-supported-query-features"));
    Slice key = arena_copy(r->arena, request_header(r, "x-ms-documentdb-partitionkey"));
    TRY(key_header_parse(r->arena, key, &r->container->partition_key, KEY_PREFIX, &t->key,
                         &t->has_key, err));
    if (t->body.len > LOOP_QUERY_BYTES_MAX)
        return post(t, err);
    t->status = make_plan(t);
    answer(t);
    return STATUS_OK;
}
