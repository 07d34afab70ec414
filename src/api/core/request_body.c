/* request_body.c - see request_body_int.h. */
#include "api/core/request_body_int.h"

struct RequestBody {
    WorkerJob job;
    HttpTask task;
    ApiRequest *request;
    BodyReader reader;

    Status status;
    Error error;
    void *read; /* what the reader made */
};

static void on_read(HttpTask *task)
{
    RequestBody *body = CONTAINER_OF(task, RequestBody, task);
    request_again(body->request);
}

static void on_worker(WorkerJob *job)
{
    RequestBody *body = CONTAINER_OF(job, RequestBody, job);
    const ApiRequest *r = body->request;
    body->status = body->reader(r->arena, r->http->body, &body->read, &body->error);
    http_loop_post(r->http->loop, &body->task);
}

bool request_body_is_long(const ApiRequest *r)
{
    size_t bytes = r->http->body.len;
    return bytes > LOOP_BODY_BYTES_MAX && bytes <= BODY_BYTES_MAX && r->body == NULL &&
           r->operation != OPERATION_QUERY;
}

Status request_body_defer(ApiRequest *r, BodyReader reader, Error *err)
{
    ASSERT(request_body_is_long(r));
    RequestBody *body = ARENA_NEW(r->arena, RequestBody);
    body->job.run = on_worker;
    body->task.run = on_read;
    body->request = r;
    body->reader = reader;
    r->body = body;
    request_keep(r);
    if (workers_post(r->api->options.bodies, &body->job))
        return STATUS_OK;
    return request_refuse_busy(err);
}

Status request_body_get(const ApiRequest *r, BodyReader reader, void **out, Error *err)
{
    const RequestBody *body = r->body;
    if (body == NULL || body->reader != reader)
        return reader(r->arena, r->http->body, out, err);
    if (body->status != STATUS_OK)
        *err = body->error;
    else
        *out = body->read;
    return body->status;
}

Status request_body_read_json(Arena *arena, Slice body, void **out, Error *err)
{
    Json *json = ARENA_NEW(arena, Json);
    TRY(json_parse(arena, body, json, err));
    *out = json;
    return STATUS_OK;
}

Status request_body_json(const ApiRequest *r, Json *out, Error *err)
{
    void *read = NULL;
    TRY(request_body_get(r, request_body_read_json, &read, err));
    *out = *(Json *)read;
    return STATUS_OK;
}
