/* client_keys.c - /dbs/{db}/clientencryptionkeys and .../clientencryptionkeys/{key}.
 *
 * Clients keep the keys here with which they encrypt properties of items, wrapped by another key
 * that the server never has. A key cannot be deleted; it goes with its database.
 */
#include "api/control/feed_int.h"
#include "api/control/mutation_int.h"
#include "api/control/resource_handlers_int.h"
#include "api/core/response_int.h"

static const WireResource *next_key(const Feed *feed, const Snapshot *snapshot, uint32_t from,
                                    Arena *arena)
{
    (void)arena;
    const EncryptionKey *key = snapshot_next_key(snapshot, feed->parent, from);
    return key == NULL ? NULL : wire_key(key);
}

static Feed keys_of(const ApiRequest *r)
{
    const ResourceInfo *parent = &r->database->info;
    return (Feed){.parent_rid = parent->rid, .parent = parent->number, .next = next_key};
}

Status client_keys_list(ApiRequest *r, Error *err)
{
    return feed_list(r, keys_of(r), err);
}

Status client_keys_query(ApiRequest *r, Error *err)
{
    return feed_query(r, keys_of(r), err);
}

static void answer_created(ApiRequest *r, const CatalogChange *change)
{
    respond_resource(r, 201, wire_key(change->result_key), response_charge_change(r));
}

static void answer_replaced(ApiRequest *r, const CatalogChange *change)
{
    respond_resource(r, 200, wire_key(change->result_key), response_charge_change(r));
}

Status client_keys_create(ApiRequest *r, Error *err)
{
    Json body;
    TRY(request_json(r, &body, err));
    Mutation *mutation = mutation_new(r, CATALOG_CREATE_KEY);
    CatalogChange *change = &mutation->change;
    TRY(encryption_key_definition_create(r->arena, body, &change->definition, err));
    change->database = r->database->info.number;
    mutation->answer = answer_created;
    mutation_submit(mutation);
    return STATUS_OK;
}

Status client_keys_read(ApiRequest *r, Error *err)
{
    (void)err;
    respond_read(r, wire_key(r->key));
    return STATUS_OK;
}

Status client_keys_replace(ApiRequest *r, Error *err)
{
    Json body;
    TRY(request_json(r, &body, err));
    Mutation *mutation = mutation_new(r, CATALOG_REPLACE_KEY);
    CatalogChange *change = &mutation->change;
    TRY(encryption_key_definition_create(r->arena, body, &change->definition, err));
    change->database = r->database->info.number;
    change->key = r->key->info.number;
    mutation->answer = answer_replaced;
    mutation_submit(mutation);
    return STATUS_OK;
}
