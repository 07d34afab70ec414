/* scripts.c - .../sprocs, .../triggers and .../udfs of a container, and single ones of them.
 *
 * The three kinds differ in their definitions only. A script may have megabytes and is seldom read,
 * so its answer is printed for each request and not kept.
 */
#include "api/control/feed_int.h"
#include "api/control/mutation_int.h"
#include "api/control/resource_handlers_int.h"
#include "api/core/access_int.h"
#include "api/core/response_int.h"

static const WireResource *next_script(const Feed *feed, const Snapshot *snapshot, uint32_t from,
                                       Arena *arena)
{
    const StoredScript *script = snapshot_next_script(snapshot, feed->scripts, from);
    return script == NULL ? NULL : wire_script(script, feed->part, arena);
}

static Feed scripts_of(const ApiRequest *r)
{
    const ResourceInfo *parent = &r->container->info;
    return (Feed){
        .parent_rid = parent->rid,
        .parent = parent->number,
        .scripts = container_scripts(r->container, request_script_kind(r->address.type)),
        .next = next_script,
    };
}

Status scripts_list(ApiRequest *r, Error *err)
{
    return feed_list(r, scripts_of(r), err);
}

Status scripts_query(ApiRequest *r, Error *err)
{
    return feed_query(r, scripts_of(r), err);
}

/* How many scripts of this kind the container may have, and has. */
static void add_quota(const ApiRequest *r, Response *response, StoredScriptKind kind, size_t count)
{
    static const char *const names[] = {[STORED_PROCEDURE] = "storedProcedures",
                                        [STORED_TRIGGER] = "triggers",
                                        [STORED_FUNCTION] = "functions"};
    response_header(response, SLICE("x-ms-resource-quota"),
                    arena_format(r->arena, "%s=%zu;", names[kind], stored_script_count_max(kind)));
    response_header(response, SLICE("x-ms-resource-usage"),
                    arena_format(r->arena, "%s=%zu;", names[kind], count));
}

static void answer(ApiRequest *r, int status, const StoredScript *script, size_t count,
                   Slice charge)
{
    Response response;
    response_begin(r, &response, status, charge);
    response_header(&response, SLICE("etag"), script->info.etag);
    add_quota(r, &response, script->group.kind, count);
    Buf text;
    if (status != 304) {
        response_header(&response, SLICE("content-type"), SLICE("application/json"));
        wire_script_print(script, &text);
        response_own_body(&response, &text);
    }
    response_send(r, &response);
}

static void answer_changed(ApiRequest *r, const CatalogChange *change)
{
    bool is_new = change->op == CATALOG_CREATE_SCRIPT && !change->has_replaced;
    answer(r, is_new ? 201 : 200, change->result_script, change->script_count,
           response_charge_change(r));
}

static void answer_deleted(ApiRequest *r, const CatalogChange *change)
{
    (void)change;
    respond_empty(r, 204, response_charge_change(r));
}

/* A change of what the path names. */
static Mutation *script_mutation(ApiRequest *r, CatalogOp op)
{
    Mutation *mutation = mutation_new(r, op);
    CatalogChange *change = &mutation->change;
    change->database = r->database->info.number;
    change->container = r->container->info.number;
    change->script_kind = request_script_kind(r->address.type);
    change->script = r->script == NULL ? 0 : r->script->info.number;
    mutation->answer = answer_changed;
    return mutation;
}

static Status read_definition(const ApiRequest *r, CatalogChange *change, Error *err)
{
    Json body;
    TRY(request_json(r, &body, err));
    return stored_script_definition_create(r->arena, change->script_kind, body, &change->definition,
                                           err);
}

Status scripts_create(ApiRequest *r, Error *err)
{
    Mutation *mutation = script_mutation(r, CATALOG_CREATE_SCRIPT);
    TRY(read_definition(r, &mutation->change, err));
    mutation->change.is_upsert = request_flag(r, "x-ms-documentdb-is-upsert");
    mutation_submit(mutation);
    return STATUS_OK;
}

Status scripts_read(ApiRequest *r, Error *err)
{
    (void)err;
    int status = request_has_version(r, r->script->info.etag) ? 304 : 200;
    answer(r, status, r->script, snapshot_script_count(r->snapshot, r->script->group),
           response_charge_read(r));
    return STATUS_OK;
}

Status scripts_replace(ApiRequest *r, Error *err)
{
    Mutation *mutation = script_mutation(r, CATALOG_REPLACE_SCRIPT);
    TRY(read_definition(r, &mutation->change, err));
    Slice id = json_string(json_get(mutation->change.definition, SLICE("id")));
    TRY(access_check_new_id(r, r->script->info.id, id, err));
    mutation_submit(mutation);
    return STATUS_OK;
}

Status scripts_delete(ApiRequest *r, Error *err)
{
    (void)err;
    Mutation *mutation = script_mutation(r, CATALOG_DELETE_SCRIPT);
    mutation->answer = answer_deleted;
    mutation_submit(mutation);
    return STATUS_OK;
}
