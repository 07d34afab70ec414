/* databases.c - /dbs and /dbs/{db}. */
#include "api/control/feed_int.h"
#include "api/control/mutation_int.h"
#include "api/control/resource_handlers_int.h"
#include "api/core/response_int.h"

static const WireResource *next_database(const Feed *feed, const Snapshot *snapshot, uint32_t from,
                                         Arena *arena)
{
    (void)feed;
    (void)arena;
    const Database *database = snapshot_next_database(snapshot, from);
    return database == NULL ? NULL : wire_database(database);
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
    respond_resource(r, 201, wire_database(change->result_database), response_charge_change(r));
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
    respond_read(r, wire_database(r->database));
    return STATUS_OK;
}

static void answer_deleted(ApiRequest *r, const CatalogChange *change)
{
    (void)change;
    respond_empty(r, 204, response_charge_change(r));
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
