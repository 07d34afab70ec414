/* mutation.c - see mutation_int.h. */
#include "api/control/mutation_int.h"

#include "api/core/response_int.h"
#include "api/core/wire_int.h"

static void on_loop(HttpTask *task)
{
    Mutation *mutation = CONTAINER_OF(task, Mutation, task);
    CatalogChange *change = &mutation->change;
    /* The arena is gone after the answer (I2), so the results are taken out of it first. */
    CatalogChange results = *change;
    if (change->status == STATUS_OK)
        mutation->answer(mutation->request, change);
    else
        respond_error(mutation->request, &change->error);
    catalog_change_release(&results);
}

/* On the catalogue's thread: a large definition would take a loop too long to print. */
static void on_done(CatalogChange *change)
{
    if (change->result_database != NULL)
        (void)wire_database(change->result_database);
    if (change->result_container != NULL)
        (void)wire_container(change->result_container, false);
    if (change->result_key != NULL)
        (void)wire_key(change->result_key);
    if (change->result_user != NULL)
        (void)wire_user(change->result_user);
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
    ASSERT(mutation->answer != NULL);
    /* These belong to the loop's snapshot, which may be gone when the answer comes. */
    r->database = NULL;
    r->container = NULL;
    r->offer = NULL;
    r->key = NULL;
    r->script = NULL;
    r->user = NULL;
    r->permission = NULL;
    r->snapshot = NULL;
    catalog_submit(r->api->options.catalog, &mutation->change);
}
