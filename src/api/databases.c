/* databases.c - /dbs and /dbs/{db}. */
#include "api/feed_int.h"
#include "api/mutation_int.h"
#include "api/respond_int.h"

static const ResourceInfo *next_database(const Feed *feed, const Snapshot *snapshot, uint32_t from,
                                         Arena *arena)
{
    (void)feed;
    (void)arena;
    const Database *database = snapshot_next_database(snapshot, from);
    return database == NULL ? NULL : &database->info;
}

static const Feed DATABASES = {.next = next_database};

Status databases_list(ApiRequest *r, Error *err)
{
    return feed_list(r, DATABASES, err);
}

Status databases_query(ApiRequest *r, Error *err)
{
    return feed_query(r, DATABASES, err);
}

static void answer_created(ApiRequest *r, const CatalogChange *change)
{
    respond_resource(r, 201, &change->result_database->info, charge_text_change(r));
}

Status databases_create(ApiRequest *r, Error *err)
{
    Json body;
    TRY(request_json(r, &body, err));
    Mutation *mutation = mutation_new(r, CATALOG_CREATE_DATABASE);
    CatalogChange *change = &mutation->change;
    TRY(database_definition_create(r->arena, body, &change->id, err));
    TRY(request_provision(r, &change->has_provision, &change->provision, err));
    mutation->answer = answer_created;
    mutation_submit(mutation);
    return STATUS_OK;
}

Status databases_read(ApiRequest *r, Error *err)
{
    (void)err;
    const ResourceInfo *info = &r->database->info;
    respond_resource(r, request_has_version(r, info->etag) ? 304 : 200, info, charge_text_read(r));
    return STATUS_OK;
}

static void answer_deleted(ApiRequest *r, const CatalogChange *change)
{
    (void)change;
    respond_empty(r, 204, charge_text_change(r));
}

Status databases_delete(ApiRequest *r, Error *err)
{
    (void)err;
    Mutation *mutation = mutation_new(r, CATALOG_DELETE_DATABASE);
    mutation->change.database = r->database->info.number;
    mutation->answer = answer_deleted;
    mutation_submit(mutation);
    return STATUS_OK;
}
