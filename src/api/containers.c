/* containers.c - /dbs/{db}/colls and /dbs/{db}/colls/{coll}. */
#include "api/feed_int.h"
#include "api/mutation_int.h"
#include "api/quota_int.h"
#include "api/respond_int.h"
#include "base/encoding.h"
#include "partition/partition.h"
#include "query/query.h"

/* What encodeURI leaves alone: the JS SDK compares x-ms-alt-content-path with a path made by it. */
#define URI_KEPT SLICE(";,/?:@&=+$-_.!~*'()#")

enum { STATISTICS_BYTES_MAX = 160 }; /* of one partition */

/* Clients of this age know containers without a partition key. */
static bool is_old_client(const ApiRequest *r)
{
    return r->version < VERSION_PARTITION_KEY_REQUIRED;
}

static const ResourceInfo *next_container(const Feed *feed, const Snapshot *snapshot, uint32_t from,
                                          Arena *arena)
{
    (void)arena;
    const Container *container = snapshot_next_container(snapshot, feed->parent, from);
    return container == NULL ? NULL : container_shown(container, feed->is_old_client);
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

/* Whether the text of a computed property is allowed is the query layer's to say. */
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

/* Keys are not deleted while their database is there, so that what is found now stays. Looked at
 * before anything else of the policy: clients expect this refusal whatever the paths are. */
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
    respond_resource(r, 201, &change->result_container->info, charge_text_change(r));
}

static void answer_replaced(ApiRequest *r, const CatalogChange *change)
{
    respond_resource(r, 200, container_shown(change->result_container, is_old_client(r)),
                     charge_text_change(r));
}

static void answer_deleted(ApiRequest *r, const CatalogChange *change)
{
    (void)change;
    respond_empty(r, 204, charge_text_change(r));
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
    change->database = r->database->info.number;
    mutation->answer = answer_created;
    mutation_submit(mutation);
    return STATUS_OK;
}

static void add_quota(const ApiRequest *r, Response *response)
{
    if (!quota_is_wanted(r))
        return;
    const Container *container = r->container;
    quota_headers(r, response, container, container->ranges, container->range_count,
                  SLICE("functions=0;storedProcedures=0;triggers=0;"));
    unsigned progress = 100; /* of the slowest one */
    for (size_t i = 0; i < container->range_count; i++) {
        unsigned percent = partition_index_progress(container->ranges[i].partition);
        progress = percent < progress ? percent : progress;
    }
    response_header(response, SLICE("x-ms-documentdb-collection-index-transformation-progress"),
                    arena_format(r->arena, "%u", progress));
}

/* The body with what each physical partition holds:
 * ..."_conflicts":"conflicts/","statistics":[...]}
 */
static Slice print_statistics(const ApiRequest *r, Slice body)
{
    const Container *container = r->container;
    AUTO(buf_done) Buf text;
    buf_init(&text, body.len + STATISTICS_BYTES_MAX * (container->range_count + 1));
    buf_slice(&text, slice_first(body, body.len - 1));
    buf_slice(&text, SLICE(",\"statistics\":["));
    for (size_t i = 0; i < container->range_count; i++) {
        PartitionUsage usage = partition_usage(container->ranges[i].partition);
        buf_format(&text,
                   "%s{\"id\":\"%u\",\"sizeInKB\":%llu,\"documentCount\":%llu,"
                   "\"partitionKeys\":[]}",
                   i == 0 ? "" : ",", container->ranges[i].id,
                   (unsigned long long)((usage.bytes + 1023) / 1024),
                   (unsigned long long)usage.items);
    }
    buf_slice(&text, SLICE("]}"));
    ASSERT(!buf_full(&text));
    return arena_copy(r->arena, buf_view(&text));
}

Status containers_read(ApiRequest *r, Error *err)
{
    (void)err;
    const ResourceInfo *info = container_shown(r->container, is_old_client(r));
    Response response;
    bool unchanged = request_has_version(r, info->etag);
    response_begin(r, &response, unchanged ? 304 : 200, charge_text_read(r));
    response_header(&response, SLICE("etag"), info->etag);
    Slice database_id = percent_encode(r->arena, r->database->info.id, URI_KEPT);
    response_header(&response, SLICE("x-ms-content-path"), r->database->info.rid);
    response_header(&response, SLICE("x-ms-alt-content-path"),
                    arena_format(r->arena, "dbs/%.*s", SLICE_ARG(database_id)));
    add_quota(r, &response);
    if (!unchanged) {
        response_header(&response, SLICE("content-type"), SLICE("application/json"));
        response.body = request_flag(r, "x-ms-documentdb-populatepartitionstatistics")
                            ? print_statistics(r, info->body)
                            : info->body;
    }
    response_send(r, &response);
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
