/* users.c - /dbs/{db}/users and .../users/{user}. */
#include "api/control/feed_int.h"
#include "api/control/mutation_int.h"
#include "api/control/resource_handlers_int.h"
#include "api/core/response_int.h"

static const WireResource *next_user(const Feed *feed, const Snapshot *snapshot, uint32_t from,
                                     Arena *arena)
{
    (void)arena;
    const User *user = snapshot_next_user(snapshot, feed->parent, from);
    return user == NULL ? NULL : wire_user(user);
}

static Feed users_of(const ApiRequest *r)
{
    const ResourceInfo *parent = &r->database->info;
    return (Feed){.parent_rid = parent->rid, .parent = parent->number, .next = next_user};
}

Status users_list(ApiRequest *r, Error *err)
{
    return feed_list(r, users_of(r), err);
}

Status users_query(ApiRequest *r, Error *err)
{
    return feed_query(r, users_of(r), err);
}

static void answer_changed(ApiRequest *r, const CatalogChange *change)
{
    bool is_new = change->op == CATALOG_CREATE_USER && !change->has_replaced;
    respond_resource(r, is_new ? 201 : 200, wire_user(change->result_user),
                     response_charge_change(r));
}

static void answer_deleted(ApiRequest *r, const CatalogChange *change)
{
    (void)change;
    respond_empty(r, 204, response_charge_change(r));
}

/* A change of what the path names. */
static Mutation *user_mutation(ApiRequest *r, CatalogOp op)
{
    Mutation *mutation = mutation_new(r, op);
    mutation->change.database = r->database->info.number;
    mutation->change.user = r->user == NULL ? 0 : r->user->info.number;
    mutation->answer = answer_changed;
    return mutation;
}

/* System properties in the body are ignored: a client may send back what it has read. */
static Status submit_named(ApiRequest *r, CatalogOp op, bool is_upsert, Error *err)
{
    Json body;
    TRY(request_json(r, &body, err));
    Mutation *mutation = user_mutation(r, op);
    TRY(user_definition_create(r->arena, body, &mutation->change.id, err));
    mutation->change.is_upsert = is_upsert;
    mutation_submit(mutation);
    return STATUS_OK;
}

Status users_create(ApiRequest *r, Error *err)
{
    return submit_named(r, CATALOG_CREATE_USER, request_flag(r, "x-ms-documentdb-is-upsert"), err);
}

Status users_read(ApiRequest *r, Error *err)
{
    (void)err;
    respond_read(r, wire_user(r->user));
    return STATUS_OK;
}

Status users_replace(ApiRequest *r, Error *err)
{
    return submit_named(r, CATALOG_REPLACE_USER, false, err);
}

Status users_delete(ApiRequest *r, Error *err)
{
    (void)err;
    Mutation *mutation = user_mutation(r, CATALOG_DELETE_USER);
    mutation->answer = answer_deleted;
    mutation_submit(mutation);
    return STATUS_OK;
}
