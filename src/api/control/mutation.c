/* mutation.c - see mutation_int.h. */
#include "api/control/mutation_int.h"

#include "api/core/forward_int.h"
#include "api/core/request_audit_int.h"
#include "api/core/response_int.h"
#include "api/core/wire_int.h"

/* What a change has made, or made anew. */
static const ResourceInfo *result_of(const CatalogChange *change)
{
    return change->result_database != NULL     ? &change->result_database->info
           : change->result_container != NULL  ? &change->result_container->info
           : change->result_offer != NULL      ? &change->result_offer->info
           : change->result_key != NULL        ? &change->result_key->info
           : change->result_script != NULL     ? &change->result_script->info
           : change->result_permission != NULL ? &change->result_permission->info
           : change->result_user != NULL       ? &change->result_user->info
                                               : NULL;
}

/* What the path names, for a change of it. */
static const ResourceInfo *target_of(const ApiRequest *r)
{
    return r->address.is_feed      ? NULL
           : r->script != NULL     ? &r->script->info
           : r->permission != NULL ? &r->permission->info
           : r->user != NULL       ? &r->user->info
           : r->key != NULL        ? &r->key->info
           : r->offer != NULL      ? &r->offer->info
           : r->container != NULL  ? &r->container->info
           : r->database != NULL   ? &r->database->info
                                   : NULL;
}

/* A change that fails has no result, so its target, or the name that was asked for, is noted before
 * it begins. */
static void note_subject(const Mutation *mutation)
{
    const CatalogChange *change = &mutation->change;
    const ResourceInfo *target = target_of(mutation->request);
    Json id = json_get(change->definition, SLICE("id"));
    if (target != NULL)
        request_audit_subject(mutation->request, target->id, target->rid);
    else if (json_is(id, JSON_STRING))
        request_audit_subject(mutation->request, json_string(id), SLICE_EMPTY);
    else
        request_audit_subject(mutation->request, change->id, SLICE_EMPTY);
}

static void on_loop(HttpTask *task)
{
    Mutation *mutation = CONTAINER_OF(task, Mutation, task);
    CatalogChange *change = &mutation->change;
    /* The arena is gone after the answer (I2), so the results are taken out of it first. */
    CatalogChange results = *change;
    const ResourceInfo *result = result_of(change);
    if (result != NULL)
        request_audit_subject(mutation->request, result->id, result->rid);
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
    mutation->change.deadline_us = r->deadline_us;
    return mutation;
}

void mutation_submit(Mutation *mutation)
{
    ApiRequest *r = mutation->request;
    ASSERT(mutation->answer != NULL);
    note_subject(mutation);
    forward_keep(r);
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
