/* containers.c - /dbs/{db}/colls and /dbs/{db}/colls/{coll}. */
#include "api/control/container_usage_int.h"
#include "api/control/feed_int.h"
#include "api/control/mutation_int.h"
#include "api/control/partition_statistics_int.h"
#include "api/control/resource_handlers_int.h"
#include "api/core/forward_int.h"
#include "api/core/quota_int.h"
#include "api/core/response_int.h"
#include "partition/partition.h"
#include "query/sql/sql.h"

/* Clients of this age know containers without a partition key. */
static bool is_old_client(const ApiRequest *r)
{
    return r->version < VERSION_PARTITION_KEY_REQUIRED;
}

static const WireResource *next_container(const Feed *feed, const Snapshot *snapshot, uint32_t from,
                                          Arena *arena)
{
    (void)arena;
    const Container *container = snapshot_next_container(snapshot, feed->parent, from);
    return container == NULL ? NULL : wire_container(container, feed->is_old_client);
}

static Feed containers_of(const ApiRequest *r)
{
    const Database *database = r->database;
    return (Feed){
        .is_old_client = is_old_client(r),
        .parent_rid = database->info.rid,
        .parent = database->info.number,
        .next = next_container,
    };
}

Status containers_list(ApiRequest *r, Error *err)
{
    return feed_list(r, containers_of(r), err);
}

Status containers_query(ApiRequest *r, Error *err)
{
    return feed_query(r, containers_of(r), err);
}

/* The query layer decides whether the text of a computed property is allowed. */
static Status check_computed(Json definition, Error *err)
{
    ComputedProperty properties[COMPUTED_PROPERTIES_MAX];
    size_t count = container_computed_properties(definition, properties);
    for (size_t i = 0; i < count; i++) {
        if (query_check_computed(properties[i].query, err) != STATUS_OK)
            return error_context(err,
                                 "One of the specified inputs is invalid: Computed property '%.*s' "
                                 "has an invalid query",
                                 SLICE_CUT(properties[i].name, 60));
    }
    return STATUS_OK;
}

/* A key is not deleted before its database, so a key that is found now stays. This is checked
 * before the rest of the policy: clients expect this refusal whatever the paths are. */
static Status check_encryption_keys(const ApiRequest *r, Json body, Error *err)
{
    Json policy = json_get(body, SLICE("clientEncryptionPolicy"));
    Json paths = json_get(policy, SLICE("includedPaths"));
    if (!json_is(paths, JSON_ARRAY))
        return STATUS_OK;
    for (JsonIter it = json_iter(paths); json_next(&it);) {
        Json id = json_get(it.value, SLICE("clientEncryptionKeyId"));
        if (json_is(id, JSON_STRING) && json_string(id).len > 0 &&
            snapshot_key_by_id(r->snapshot, r->database->info.number, json_string(id)) == NULL)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "ClientEncryptionKey with id '[%.*s]' does not exist.",
                             SLICE_CUT(json_string(id), 260));
    }
    return STATUS_OK;
}

static void answer_created(ApiRequest *r, const CatalogChange *change)
{
    respond_resource(r, 201, wire_container(change->result_container, true),
                     response_charge_change(r));
}

static void answer_replaced(ApiRequest *r, const CatalogChange *change)
{
    respond_resource(r, 200, wire_container(change->result_container, is_old_client(r)),
                     response_charge_change(r));
}

static void answer_deleted(ApiRequest *r, const CatalogChange *change)
{
    (void)change;
    respond_empty(r, 204, response_charge_change(r));
}

/* A container that is to take the name of another one over must not have ranges that clients could
 * take for those of the other (CATALOG_END_SWAP). */
static Status read_first_range(const ApiRequest *r, uint32_t *out, Error *err)
{
    Slice text = slice_trim(request_header(r, "x-orrery-first-range"));
    uint64_t first = 0;
    if (text.len > 0 && (!slice_to_u64(text, &first) || first > RANGE_IDS_MAX / 2))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The header x-orrery-first-range must be a number up to %u, not '%.*s'.",
                         RANGE_IDS_MAX / 2, SLICE_CUT(text, 40));
    *out = (uint32_t)first;
    return STATUS_OK;
}

Status containers_create(ApiRequest *r, Error *err)
{
    Json body;
    TRY(request_json(r, &body, err));
    Mutation *mutation = mutation_new(r, CATALOG_CREATE_CONTAINER);
    CatalogChange *change = &mutation->change;
    ContainerRules rules = {
        .allow_no_partition_key = is_old_client(r),
    };
    TRY(check_encryption_keys(r, body, err));
    TRY(container_definition_create(r->arena, body, rules, &change->definition, err));
    TRY(check_computed(change->definition, err));
    TRY(request_provision(r, &change->has_provision, &change->provision, err));
    TRY(read_first_range(r, &change->first_range, err));
    change->database = r->database->info.number;
    mutation->answer = answer_created;
    mutation_submit(mutation);
    return STATUS_OK;
}

static size_t script_count(const ApiRequest *r, StoredScriptKind kind)
{
    return snapshot_script_count(r->snapshot, container_scripts(r->container, kind));
}

static void add_quota(const ApiRequest *r, Response *response, const ContainerUsage *usage)
{
    quota_headers_of(r, response, r->container, &usage->held,
                     arena_format(r->arena, "functions=%zu;storedProcedures=%zu;triggers=%zu;",
                                  script_count(r, STORED_FUNCTION),
                                  script_count(r, STORED_PROCEDURE),
                                  script_count(r, STORED_TRIGGER)));
    response_header(response, SLICE("x-ms-documentdb-collection-index-transformation-progress"),
                    arena_format(r->arena, "%u", usage->progress));
}

/* 'usage' is NULL if it was not asked for. */
static Status answer_read(ApiRequest *r, const ContainerUsage *usage, Error *err)
{
    const WireResource *shown = wire_container(r->container, is_old_client(r));
    Response response;
    bool unchanged = request_has_version(r, shown->etag);
    response_begin(r, &response, unchanged ? 304 : 200, response_charge_read(r));
    response_header(&response, SLICE("etag"), shown->etag);
    response_header(&response, SLICE("x-ms-content-path"), r->database->info.rid);
    response_header(
        &response, SLICE("x-ms-alt-content-path"),
        arena_format(r->arena, "dbs/%.*s", SLICE_ARG(wire_database(r->database)->uri_id)));
    if (usage != NULL)
        add_quota(r, &response, usage);
    if (!unchanged) {
        response_header(&response, SLICE("content-type"), SLICE("application/json"));
        response.body = shown->body;
    }
    if (!unchanged && request_flag(r, "x-ms-documentdb-populatepartitionstatistics"))
        return statistics_respond(r, &response, shown->body, err);
    response_send(r, &response);
    return STATUS_OK;
}

static void on_usage(ApiRequest *r, const ContainerUsage *usage)
{
    Error err;
    if (answer_read(r, usage, &err) != STATUS_OK)
        respond_error(r, &err);
}

Status containers_read(ApiRequest *r, Error *err)
{
    const PartitionRange *only = NULL;
    TRY(forward_range(r, &only, err));
    if (only != NULL && statistics_are_asked(r))
        return statistics_answer(r, only, err);
    if (only != NULL)
        return container_usage_answer(r, only, err);
    if (!quota_is_wanted(r))
        return answer_read(r, NULL, err);
    container_usage_find(r, on_usage);
    return STATUS_OK;
}

Status containers_replace(ApiRequest *r, Error *err)
{
    Json body;
    TRY(request_json(r, &body, err));
    Mutation *mutation = mutation_new(r, CATALOG_REPLACE_CONTAINER);
    CatalogChange *change = &mutation->change;
    /* Checked here against the newest version that is known, so that a bad body costs the
     * catalogue's thread nothing, and there again against the one that it replaces. */
    Json normal;
    TRY(container_definition_replace(r->arena, r->container->definition, body, &normal, err));
    TRY(check_computed(normal, err));
    change->definition = body;
    change->database = r->container->database;
    change->container = r->container->info.number;
    mutation->answer = answer_replaced;
    mutation_submit(mutation);
    return STATUS_OK;
}

Status containers_delete(ApiRequest *r, Error *err)
{
    (void)err;
    Mutation *mutation = mutation_new(r, CATALOG_DELETE_CONTAINER);
    mutation->change.database = r->container->database;
    mutation->change.container = r->container->info.number;
    mutation->answer = answer_deleted;
    mutation_submit(mutation);
    return STATUS_OK;
}
