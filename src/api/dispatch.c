/* dispatch.c - which handler answers which request, and what must exist before it runs. */
#include "api/dispatch_int.h"

#include "api/admin/chaos_int.h"
#include "api/admin/orrery_int.h"
#include "api/control/resource_handlers_int.h"
#include "api/core/forward_int.h"
#include "api/core/usage_int.h"
#include "api/items/batch_body_int.h"
#include "api/items/document_handlers_int.h"

typedef struct Route {
    ResourceType type;
    Operation operation;
    Handler handler;
} Route;

/* POST {container}/operations/{name}. */
static const struct {
    Slice name;
    Handler handler;
} OPERATIONS[] = {
    {SLICE_INIT("partitionkeydelete"), documents_purge},
    {SLICE_INIT("partitionmerge"), containers_merge},
};

static const Route ROUTES[] = {
    {RESOURCE_ACCOUNT, OPERATION_READ, account_read},
    {RESOURCE_DATABASE, OPERATION_LIST, databases_list},
    {RESOURCE_DATABASE, OPERATION_QUERY, databases_query},
    {RESOURCE_DATABASE, OPERATION_CREATE, databases_create},
    {RESOURCE_DATABASE, OPERATION_READ, databases_read},
    {RESOURCE_DATABASE, OPERATION_DELETE, databases_delete},
    {RESOURCE_CONTAINER, OPERATION_LIST, containers_list},
    {RESOURCE_CONTAINER, OPERATION_QUERY, containers_query},
    {RESOURCE_CONTAINER, OPERATION_CREATE, containers_create},
    {RESOURCE_CONTAINER, OPERATION_READ, containers_read},
    {RESOURCE_CONTAINER, OPERATION_REPLACE, containers_replace},
    {RESOURCE_CONTAINER, OPERATION_DELETE, containers_delete},
    {RESOURCE_DOCUMENT, OPERATION_LIST, documents_list},
    {RESOURCE_DOCUMENT, OPERATION_QUERY, documents_query},
    {RESOURCE_DOCUMENT, OPERATION_CREATE, documents_create},
    {RESOURCE_DOCUMENT, OPERATION_READ, documents_read},
    {RESOURCE_DOCUMENT, OPERATION_REPLACE, documents_replace},
    {RESOURCE_DOCUMENT, OPERATION_PATCH, documents_patch},
    {RESOURCE_DOCUMENT, OPERATION_DELETE, documents_delete},
    {RESOURCE_PARTITION_KEY_RANGE, OPERATION_LIST, pkranges_list},
    {RESOURCE_PARTITION_KEY_RANGE, OPERATION_READ, pkranges_read},
    {RESOURCE_OFFER, OPERATION_LIST, offers_list},
    {RESOURCE_OFFER, OPERATION_QUERY, offers_query},
    {RESOURCE_OFFER, OPERATION_READ, offers_read},
    {RESOURCE_OFFER, OPERATION_REPLACE, offers_replace},
    {RESOURCE_STORED_PROCEDURE, OPERATION_LIST, scripts_list},
    {RESOURCE_STORED_PROCEDURE, OPERATION_QUERY, scripts_query},
    {RESOURCE_STORED_PROCEDURE, OPERATION_CREATE, scripts_create},
    {RESOURCE_STORED_PROCEDURE, OPERATION_READ, scripts_read},
    {RESOURCE_STORED_PROCEDURE, OPERATION_REPLACE, scripts_replace},
    {RESOURCE_STORED_PROCEDURE, OPERATION_DELETE, scripts_delete},
    {RESOURCE_STORED_PROCEDURE, OPERATION_EXECUTE, procedures_execute},
    {RESOURCE_TRIGGER, OPERATION_LIST, scripts_list},
    {RESOURCE_TRIGGER, OPERATION_QUERY, scripts_query},
    {RESOURCE_TRIGGER, OPERATION_CREATE, scripts_create},
    {RESOURCE_TRIGGER, OPERATION_READ, scripts_read},
    {RESOURCE_TRIGGER, OPERATION_REPLACE, scripts_replace},
    {RESOURCE_TRIGGER, OPERATION_DELETE, scripts_delete},
    {RESOURCE_USER_DEFINED_FUNCTION, OPERATION_LIST, scripts_list},
    {RESOURCE_USER_DEFINED_FUNCTION, OPERATION_QUERY, scripts_query},
    {RESOURCE_USER_DEFINED_FUNCTION, OPERATION_CREATE, scripts_create},
    {RESOURCE_USER_DEFINED_FUNCTION, OPERATION_READ, scripts_read},
    {RESOURCE_USER_DEFINED_FUNCTION, OPERATION_REPLACE, scripts_replace},
    {RESOURCE_USER_DEFINED_FUNCTION, OPERATION_DELETE, scripts_delete},
    {RESOURCE_USER, OPERATION_LIST, users_list},
    {RESOURCE_USER, OPERATION_QUERY, users_query},
    {RESOURCE_USER, OPERATION_CREATE, users_create},
    {RESOURCE_USER, OPERATION_READ, users_read},
    {RESOURCE_USER, OPERATION_REPLACE, users_replace},
    {RESOURCE_USER, OPERATION_DELETE, users_delete},
    {RESOURCE_PERMISSION, OPERATION_LIST, permissions_list},
    {RESOURCE_PERMISSION, OPERATION_QUERY, permissions_query},
    {RESOURCE_PERMISSION, OPERATION_CREATE, permissions_create},
    {RESOURCE_PERMISSION, OPERATION_READ, permissions_read},
    {RESOURCE_PERMISSION, OPERATION_REPLACE, permissions_replace},
    {RESOURCE_PERMISSION, OPERATION_DELETE, permissions_delete},
    {RESOURCE_CONFLICT, OPERATION_LIST, absent_list},
    {RESOURCE_CONFLICT, OPERATION_QUERY, conflicts_query},
    {RESOURCE_CLIENT_ENCRYPTION_KEY, OPERATION_LIST, client_keys_list},
    {RESOURCE_CLIENT_ENCRYPTION_KEY, OPERATION_QUERY, client_keys_query},
    {RESOURCE_CLIENT_ENCRYPTION_KEY, OPERATION_CREATE, client_keys_create},
    {RESOURCE_CLIENT_ENCRYPTION_KEY, OPERATION_READ, client_keys_read},
    {RESOURCE_CLIENT_ENCRYPTION_KEY, OPERATION_REPLACE, client_keys_replace},
};

/* Also where nothing is read: SDKs send the headers with every request, and expect the refusal with
 * their first one. */
static Status check_consistency(ApiRequest *r, Error *err)
{
    Slice level = slice_trim(request_header(r, "x-ms-consistency-level"));
    Slice strategy = slice_trim(request_header(r, "x-ms-cosmos-read-consistency-strategy"));
    return consistency_choose(r->api->options.consistency, level, strategy, &r->consistency, err);
}

/* A client that caches a container's id says which one it means; after the container was deleted
 * and made again under the same name it must not be served from the new one. The container itself
 * can be read: that is how such a client learns the new id. */
static Status check_intended(const ApiRequest *r, Error *err)
{
    Slice rid = slice_trim(request_header(r, "x-ms-cosmos-intended-collection-rid"));
    bool is_inside = r->address.type != RESOURCE_CONTAINER || r->address.operation.len > 0;
    if (rid.len == 0 || r->container == NULL || !is_inside ||
        slice_equal(rid, r->container->info.rid))
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_COLLECTION_RID_MISMATCH,
                     "The container's resource id is '%.*s', not '%.*s' as the request intends.",
                     SLICE_ARG(r->container->info.rid), SLICE_CUT(rid, 40));
}

/* The key of such a permission was one of the container that had this name before: here it means
 * other items. Looked at here, not with the credential: a body may come long after it. */
static Status check_token_key(const ApiRequest *r, Error *err)
{
    if (LIKELY(!r->principal.has_key) || r->container == NULL ||
        r->principal.permission_lsn >= r->container->named_lsn)
        return STATUS_OK;
    return error_set(err, STATUS_FORBIDDEN, SUB_NONE,
                     "The permission is for a partition key of another container, whose name this "
                     "one has taken over; make the permission anew.");
}

/* Serverless accounts have no offers; tools recognise such accounts by this text. */
static Status check_provisioned(const ApiRequest *r, Error *err)
{
    if (r->address.type != RESOURCE_OFFER || !r->api->options.is_serverless)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "Reading or replacing offers is not supported for serverless accounts.");
}

static Status route_operation(ApiRequest *r, Error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(OPERATIONS) && r->operation == OPERATION_EXECUTE; i++) {
        if (slice_equal_nocase(r->address.operation, OPERATIONS[i].name))
            return OPERATIONS[i].handler(r, err);
    }
    return error_set(err, STATUS_NOT_IMPLEMENTED, SUB_NONE,
                     "The operation '%.*s' is not available in this version of orrery.",
                     SLICE_CUT(r->address.operation, 60));
}

Status route_request(ApiRequest *r, Error *err)
{
    usage_begin(r);
    TRY(check_consistency(r, err));
    TRY(check_provisioned(r, err));
    TRY(request_resolve(r, err));
    TRY(forward_check_catalog(r, err));
    TRY(check_intended(r, err));
    TRY(check_token_key(r, err));
    if (UNLIKELY(r->api->chaos != NULL)) {
        bool is_met = false;
        chaos_meet(r, &is_met);
        if (is_met)
            return STATUS_OK;
    }
    if (UNLIKELY(request_body_is_long(r)))
        return request_body_defer(r, batch_is_asked(r) ? batch_body_read : request_body_read_json,
                                  err);
    Slice segment = address_segment(r->address.type);
    if (r->address.operation.len > 0)
        return route_operation(r, err);
    bool type_known = false;
    for (size_t i = 0; i < ARRAY_COUNT(ROUTES); i++) {
        if (ROUTES[i].type != r->address.type)
            continue;
        if (ROUTES[i].operation == r->operation)
            return ROUTES[i].handler(r, err);
        type_known = true;
    }
    if (type_known)
        return error_set(err, STATUS_METHOD_NOT_ALLOWED, SUB_NONE,
                         "%.*s is not possible on a resource of type '%.*s'.",
                         SLICE_CUT(r->http->method, 20), SLICE_ARG(segment));
    return error_set(err, STATUS_NOT_IMPLEMENTED, SUB_NONE,
                     "Resources of type '%.*s' are not available in this version of orrery.",
                     SLICE_ARG(segment));
}

bool route_exists(ResourceType type, Operation operation)
{
    for (size_t i = 0; i < ARRAY_COUNT(ROUTES); i++) {
        if (ROUTES[i].type == type && ROUTES[i].operation == operation)
            return true;
    }
    return false;
}

Slice route_operation_name(size_t index)
{
    return index < ARRAY_COUNT(OPERATIONS) ? OPERATIONS[index].name : SLICE_EMPTY;
}
