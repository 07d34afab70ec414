/* request_body.c - see request_body_int.h. */
#include "api/request_body_int.h"

struct RequestBody {
    WorkerJob job;
    HttpTask task;
    ApiRequest *request;
    bool is_batch;

    Status status;
    Error error;
    Json json;
    BatchForm form;
    BatchOperation *operations;
    size_t operation_count;
};

static bool is_batch(const ApiRequest *r)
{
    return r->address.type == RESOURCE_DOCUMENT && r->operation == OPERATION_CREATE &&
           request_flag(r, "x-ms-cosmos-is-batch-request");
}

static Status read_body(RequestBody *body)
{
    const ApiRequest *r = body->request;
    if (body->is_batch)
        return batch_decode(r->arena, r->http->body, &body->form, &body->operations,
                            &body->operation_count, &body->error);
    return json_parse(r->arena, r->http->body, &body->json, &body->error);
}

static void on_read(HttpTask *task)
{
    RequestBody *body = CONTAINER_OF(task, RequestBody, task);
    request_again(body->request);
}

static void on_worker(WorkerJob *job)
{
    RequestBody *body = CONTAINER_OF(job, RequestBody, job);
    body->status = read_body(body);
    http_loop_post(body->request->http->loop, &body->task);
}

Status request_body_defer(ApiRequest *r, bool *is_deferred, Error *err)
{
    size_t bytes = r->http->body.len;
    *is_deferred = bytes > LOOP_BODY_BYTES_MAX && bytes <= BODY_BYTES_MAX && r->body == NULL &&
                   r->operation != OPERATION_QUERY;
    if (LIKELY(!*is_deferred))
        return STATUS_OK;
    RequestBody *body = ARENA_NEW(r->arena, RequestBody);
    body->job.run = on_worker;
    body->task.run = on_read;
    body->request = r;
    body->is_batch = is_batch(r);
    r->body = body;
    request_keep(r);
    if (workers_post(r->api->options.bodies, &body->job))
        return STATUS_OK;
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "Too many requests are waiting for a worker; try again later.");
}

Status request_body_json(const ApiRequest *r, Json *out, Error *err)
{
    const RequestBody *body = r->body;
    if (body == NULL || body->is_batch)
        return json_parse(r->arena, r->http->body, out, err);
    if (body->status != STATUS_OK)
        *err = body->error;
    else
        *out = body->json;
    return body->status;
}

Status request_body_batch(const ApiRequest *r, BatchForm *form, BatchOperation **out, size_t *count,
                          Error *err)
{
    const RequestBody *body = r->body;
    if (body == NULL || !body->is_batch)
        return batch_decode(r->arena, r->http->body, form, out, count, err);
    if (body->status != STATUS_OK) {
        *err = body->error;
        return body->status;
    }
    *form = body->form;
    *out = body->operations;
    *count = body->operation_count;
    return STATUS_OK;
}
