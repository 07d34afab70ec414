/* permissions.c - /dbs/{db}/users/{user}/permissions and .../permissions/{permission}.
 *
 * Every answer shows permissions with new tokens, which are good for as long as the request asks
 * (x-ms-documentdb-expiry-seconds). So an answer is printed for each request, and not kept.
 */
#include "api/control/feed_int.h"
#include "api/control/mutation_int.h"
#include "api/control/resource_handlers_int.h"
#include "api/core/response_int.h"

#define EXPIRY_HEADER "x-ms-documentdb-expiry-seconds"

static Status read_lifetime(ApiRequest *r, Error *err)
{
    Slice text = slice_trim(request_header(r, EXPIRY_HEADER));
    uint64_t seconds = RESOURCE_TOKEN_SECONDS_DEFAULT;
    if (text.len > 0 && (!slice_to_u64(text, &seconds) || seconds < RESOURCE_TOKEN_SECONDS_MIN ||
                         seconds > RESOURCE_TOKEN_SECONDS_MAX))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Value '%.*s' for the header '" EXPIRY_HEADER "' is invalid; expected "
                         "seconds from %d to %d.",
                         SLICE_CUT(text, 40), RESOURCE_TOKEN_SECONDS_MIN,
                         RESOURCE_TOKEN_SECONDS_MAX);
    r->token_seconds = (uint32_t)seconds;
    return STATUS_OK;
}

static WireTokens tokens_of(const ApiRequest *r)
{
    return (WireTokens){
        .key = &r->api->resource_tokens,
        .now_us = clock_wall_us(r->api->options.clock),
        .lifetime_s = r->token_seconds,
    };
}

static const WireResource *next_permission(const Feed *feed, const Snapshot *snapshot,
                                           uint32_t from, Arena *arena)
{
    const Permission *permission = snapshot_next_permission(snapshot, feed->owner, from);
    return permission == NULL ? NULL : wire_permission(permission, &feed->tokens, arena);
}

static Feed permissions_of(const ApiRequest *r)
{
    const ResourceInfo *parent = &r->user->info;
    return (Feed){
        .parent_rid = parent->rid,
        .parent = parent->number,
        .owner = user_key(r->user),
        .tokens = tokens_of(r),
        .next = next_permission,
    };
}

Status permissions_list(ApiRequest *r, Error *err)
{
    TRY(read_lifetime(r, err));
    return feed_list(r, permissions_of(r), err);
}

Status permissions_query(ApiRequest *r, Error *err)
{
    TRY(read_lifetime(r, err));
    return feed_query(r, permissions_of(r), err);
}

static void answer(ApiRequest *r, int status, const Permission *permission, Slice charge)
{
    WireTokens tokens = tokens_of(r);
    respond_resource(r, status, wire_permission(permission, &tokens, r->arena), charge);
}

static void answer_changed(ApiRequest *r, const CatalogChange *change)
{
    bool is_new = change->op == CATALOG_CREATE_PERMISSION && !change->has_replaced;
    answer(r, is_new ? 201 : 200, change->result_permission, response_charge_change(r));
}

static void answer_deleted(ApiRequest *r, const CatalogChange *change)
{
    (void)change;
    respond_empty(r, 204, response_charge_change(r));
}

/* A change of what the path names. */
static Mutation *permission_mutation(ApiRequest *r, CatalogOp op)
{
    Mutation *mutation = mutation_new(r, op);
    mutation->change.database = r->database->info.number;
    mutation->change.user = r->user->info.number;
    mutation->change.permission = r->permission == NULL ? 0 : r->permission->info.number;
    mutation->answer = answer_changed;
    return mutation;
}

static Status submit_defined(ApiRequest *r, CatalogOp op, bool is_upsert, Error *err)
{
    TRY(read_lifetime(r, err));
    Json body;
    TRY(request_json(r, &body, err));
    Mutation *mutation = permission_mutation(r, op);
    TRY(permission_definition_create(r->arena, body, &mutation->change.definition, err));
    mutation->change.is_upsert = is_upsert;
    mutation_submit(mutation);
    return STATUS_OK;
}

Status permissions_create(ApiRequest *r, Error *err)
{
    return submit_defined(r, CATALOG_CREATE_PERMISSION,
                          request_flag(r, "x-ms-documentdb-is-upsert"), err);
}

Status permissions_read(ApiRequest *r, Error *err)
{
    TRY(read_lifetime(r, err));
    if (request_has_version(r, r->permission->info.etag))
        respond_unchanged(r, r->permission->info.etag);
    else
        answer(r, 200, r->permission, response_charge_read(r));
    return STATUS_OK;
}

Status permissions_replace(ApiRequest *r, Error *err)
{
    return submit_defined(r, CATALOG_REPLACE_PERMISSION, false, err);
}

Status permissions_delete(ApiRequest *r, Error *err)
{
    (void)err;
    Mutation *mutation = permission_mutation(r, CATALOG_DELETE_PERMISSION);
    mutation->answer = answer_deleted;
    mutation_submit(mutation);
    return STATUS_OK;
}
