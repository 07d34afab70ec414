/* mutation.c - see mutation_int.h. */
#include "api/mutation_int.h"

#include "api/respond_int.h"

static void on_loop(HttpTask *task)
{
    Mutation *mutation = CONTAINER_OF(task, Mutation, task);
    CatalogChange *change = &mutation->change;
    /* The arena goes with the answer, so the results are taken out of it first. */
    CatalogChange results = *change;
    if (change->status == STATUS_OK)
        mutation->answer(mutation->request, change);
    else
        respond_error(mutation->request, &change->error);
    catalog_change_release(&results);
}

static void on_done(CatalogChange *change)
{
    Mutation *mutation = CONTAINER_OF(change, Mutation, change);
    http_loop_post(mutation->request->http->loop, &mutation->task);
}

Mutation *mutation_new(ApiRequest *r, CatalogOp op)
{
    Mutation *mutation = ARENA_NEW(r->arena, Mutation);
    mutation->request = r;
    mutation->task.run = on_loop;
    mutation->change.op = op;
    mutation->change.if_match = arena_copy(r->arena, slice_trim(request_header(r, "if-match")));
    mutation->change.done = on_done;
    return mutation;
}

void mutation_submit(Mutation *mutation)
{
    ApiRequest *r = mutation->request;
    /* These belong to the loop's snapshot, which may be gone when the answer comes. */
    r->database = NULL;
    r->container = NULL;
    r->offer = NULL;
    r->key = NULL;
    r->snapshot = NULL;
    catalog_submit(r->api->options.catalog, &mutation->change);
}
