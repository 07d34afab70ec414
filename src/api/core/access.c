/* access.c - see access_int.h.
 *
 * A request is of one class (CLASSES, and what its headers make of it); access.def says which
 * principals may send requests of that class.
 */
#include "api/core/access_int.h"

#include "api/core/partition_key_header_int.h"

/* ---- classes ---- */

/* What is not in here is ACCESS_MANAGEMENT_CHANGE, which only a master key may do. */
static const uint8_t CLASSES[RESOURCE_COUNT][OPERATION_COUNT] = {
    [RESOURCE_ACCOUNT] = {[OPERATION_READ] = ACCESS_ACCOUNT_READ},
    [RESOURCE_DATABASE] = {[OPERATION_LIST] = ACCESS_METADATA_READ,
                           [OPERATION_QUERY] = ACCESS_METADATA_READ,
                           [OPERATION_READ] = ACCESS_METADATA_READ},
    [RESOURCE_CONTAINER] = {[OPERATION_LIST] = ACCESS_METADATA_READ,
                            [OPERATION_QUERY] = ACCESS_METADATA_READ,
                            [OPERATION_READ] = ACCESS_CONTAINER_READ},
    [RESOURCE_DOCUMENT] = {[OPERATION_LIST] = ACCESS_QUERY,
                           [OPERATION_QUERY] = ACCESS_QUERY,
                           [OPERATION_CREATE] = ACCESS_ITEM_CREATE,
                           [OPERATION_READ] = ACCESS_ITEM_READ,
                           [OPERATION_REPLACE] = ACCESS_ITEM_REPLACE,
                           [OPERATION_PATCH] = ACCESS_ITEM_PATCH,
                           [OPERATION_DELETE] = ACCESS_ITEM_DELETE},
    [RESOURCE_STORED_PROCEDURE] = {[OPERATION_LIST] = ACCESS_SCRIPT_LIST,
                                   [OPERATION_QUERY] = ACCESS_SCRIPT_LIST,
                                   [OPERATION_CREATE] = ACCESS_SCRIPT_CREATE,
                                   [OPERATION_READ] = ACCESS_SCRIPT_READ,
                                   [OPERATION_REPLACE] = ACCESS_SCRIPT_CHANGE,
                                   [OPERATION_DELETE] = ACCESS_SCRIPT_CHANGE,
                                   [OPERATION_EXECUTE] = ACCESS_PROCEDURE_EXECUTE},
    [RESOURCE_TRIGGER] = {[OPERATION_LIST] = ACCESS_SCRIPT_LIST,
                          [OPERATION_QUERY] = ACCESS_SCRIPT_LIST,
                          [OPERATION_CREATE] = ACCESS_SCRIPT_CREATE,
                          [OPERATION_READ] = ACCESS_SCRIPT_READ,
                          [OPERATION_REPLACE] = ACCESS_SCRIPT_CHANGE,
                          [OPERATION_DELETE] = ACCESS_SCRIPT_CHANGE},
    [RESOURCE_USER_DEFINED_FUNCTION] = {[OPERATION_LIST] = ACCESS_SCRIPT_LIST,
                                        [OPERATION_QUERY] = ACCESS_SCRIPT_LIST,
                                        [OPERATION_CREATE] = ACCESS_SCRIPT_CREATE,
                                        [OPERATION_READ] = ACCESS_SCRIPT_READ,
                                        [OPERATION_REPLACE] = ACCESS_SCRIPT_CHANGE,
                                        [OPERATION_DELETE] = ACCESS_SCRIPT_CHANGE},
    [RESOURCE_CONFLICT] = {[OPERATION_LIST] = ACCESS_CONFLICT_READ,
                           [OPERATION_QUERY] = ACCESS_CONFLICT_READ,
                           [OPERATION_READ] = ACCESS_CONFLICT_READ,
                           [OPERATION_DELETE] = ACCESS_CONFLICT_DELETE},
    [RESOURCE_PARTITION_KEY_RANGE] = {[OPERATION_LIST] = ACCESS_CONTAINER_READ,
                                      [OPERATION_QUERY] = ACCESS_CONTAINER_READ,
                                      [OPERATION_READ] = ACCESS_CONTAINER_READ},
    [RESOURCE_USER] = {[OPERATION_LIST] = ACCESS_MANAGEMENT_READ,
                       [OPERATION_QUERY] = ACCESS_MANAGEMENT_READ,
                       [OPERATION_READ] = ACCESS_MANAGEMENT_READ},
    [RESOURCE_PERMISSION] = {[OPERATION_LIST] = ACCESS_PERMISSION_READ,
                             [OPERATION_QUERY] = ACCESS_PERMISSION_READ,
                             [OPERATION_READ] = ACCESS_PERMISSION_READ},
    [RESOURCE_CLIENT_ENCRYPTION_KEY] = {[OPERATION_LIST] = ACCESS_METADATA_READ,
                                        [OPERATION_QUERY] = ACCESS_METADATA_READ,
                                        [OPERATION_READ] = ACCESS_METADATA_READ},
    [RESOURCE_OFFER] = {[OPERATION_LIST] = ACCESS_MANAGEMENT_READ,
                        [OPERATION_QUERY] = ACCESS_MANAGEMENT_READ,
                        [OPERATION_READ] = ACCESS_MANAGEMENT_READ},
    [RESOURCE_ATTACHMENT] = {[OPERATION_LIST] = ACCESS_MANAGEMENT_READ,
                             [OPERATION_QUERY] = ACCESS_MANAGEMENT_READ,
                             [OPERATION_READ] = ACCESS_MANAGEMENT_READ},
    [RESOURCE_SCHEMA] = {[OPERATION_LIST] = ACCESS_MANAGEMENT_READ,
                         [OPERATION_QUERY] = ACCESS_MANAGEMENT_READ,
                         [OPERATION_READ] = ACCESS_MANAGEMENT_READ},
};
static_assert(ACCESS_MANAGEMENT_CHANGE == 0, "what is not in CLASSES");

/* A request on items by its headers, which the handlers of items look at in the same order. */
static AccessClass item_class(const ApiRequest *r, AccessClass class)
{
    if (r->operation == OPERATION_QUERY && request_flag(r, "x-ms-cosmos-is-query-plan-request"))
        return ACCESS_PLAN;
    if (class == ACCESS_QUERY && request_header(r, "a-im").len > 0)
        return ACCESS_CHANGE_FEED;
    if (class == ACCESS_ITEM_CREATE && request_flag(r, "x-ms-cosmos-is-batch-request"))
        return ACCESS_BATCH;
    if (class == ACCESS_ITEM_CREATE && request_flag(r, "x-ms-documentdb-is-upsert"))
        return ACCESS_ITEM_UPSERT;
    return class;
}

AccessClass access_class(const ApiRequest *r)
{
    if (r->is_admin && r->tells_names)
        return ACCESS_PROPERTY_NAMES;
    if (r->is_admin)
        return r->operation == OPERATION_READ ? ACCESS_MANAGEMENT_READ : ACCESS_MANAGEMENT_CHANGE;
    /* {container}/operations/{name}: reading one is refused later, as what it is. */
    if (r->address.operation.len > 0)
        return r->operation == OPERATION_EXECUTE &&
                       slice_equal_nocase(r->address.operation, SLICE("partitionkeydelete"))
                   ? ACCESS_PURGE
                   : ACCESS_MANAGEMENT_CHANGE;
    AccessClass class = (AccessClass)CLASSES[r->address.type][r->operation];
    if (r->address.type == RESOURCE_CONTAINER && class == ACCESS_CONTAINER_READ &&
        request_flag(r, "x-ms-documentdb-populatepartitionstatistics"))
        return ACCESS_CONTAINER_STATISTICS;
    return r->address.type == RESOURCE_DOCUMENT ? item_class(r, class) : class;
}

/* ---- the table ---- */

typedef enum Right { RIGHT_NO, RIGHT_YES, RIGHT_KEY, RIGHT_OWN } Right;

enum { TOKEN_COLUMNS = 8 };

typedef struct AccessRow {
    uint8_t read_only_key;
    uint8_t action;
    uint8_t token[TOKEN_COLUMNS];
} AccessRow;

static const AccessRow ROWS[] = {
#define ACCESS_ROW(name, key, action, c_r, c_a, k_r, k_a, i_r, i_a, s_r, s_a)            \
    [ACCESS_##name] = {RIGHT_##key,                                                      \
                       ACTION_##action,                                                  \
                       {RIGHT_##c_r, RIGHT_##c_a, RIGHT_##k_r, RIGHT_##k_a, RIGHT_##i_r, \
                        RIGHT_##i_a, RIGHT_##s_r, RIGHT_##s_a}},
#include "api/core/access.def"
#undef ACCESS_ROW
};

/* ---- read-only keys ---- */

/* A batch is a POST to a feed, also if all its operations read: the service wants a key that may
 * write for it. Permissions hold tokens that may allow more than the key that reads them. The
 * service's status and first words are those of a wrong signature. */
static Status check_read_only_key(const ApiRequest *r, AccessClass class, Error *err)
{
    if (ROWS[class].read_only_key == RIGHT_YES)
        return STATUS_OK;
    return error_set(err, STATUS_UNAUTHORIZED, SUB_NONE,
                     "The input authorization token can't serve the request. The read-only key may "
                     "not be used for %.*s on this resource; use a read-write key.",
                     SLICE_CUT(r->http->method, 20));
}

/* ---- identities ---- */

#define ACTION_PREFIX "Microsoft.DocumentDB/databaseAccounts/"
#define ACTION_DATA   ACTION_PREFIX "sqlDatabases/containers/"

/* The service's names of actions, and which roles have them. */
static const struct {
    const char *name;
    bool reader, contributor;
} ACTIONS[ACTION_COUNT] = {
    [ACTION_READ_METADATA] = {ACTION_PREFIX "readMetadata", true, true},
    [ACTION_ITEM_CREATE] = {ACTION_DATA "items/create", false, true},
    [ACTION_ITEM_READ] = {ACTION_DATA "items/read", true, true},
    [ACTION_ITEM_REPLACE] = {ACTION_DATA "items/replace", false, true},
    [ACTION_ITEM_UPSERT] = {ACTION_DATA "items/upsert", false, true},
    [ACTION_ITEM_DELETE] = {ACTION_DATA "items/delete", false, true},
    [ACTION_EXECUTE_QUERY] = {ACTION_DATA "executeQuery", true, true},
    [ACTION_READ_CHANGE_FEED] = {ACTION_DATA "readChangeFeed", true, true},
    [ACTION_EXECUTE_PROCEDURE] = {ACTION_DATA "executeStoredProcedure", false, true},
    [ACTION_MANAGE_CONFLICTS] = {ACTION_DATA "manageConflicts", false, true},
};

static bool role_allows(IdentityRole role, IdentityAction action)
{
    switch (role) {
    case IDENTITY_NONE:
        break;
    case IDENTITY_READER:
        return ACTIONS[action].reader;
    case IDENTITY_CONTRIBUTOR:
        return ACTIONS[action].contributor;
    }
    return false;
}

static bool is_rid_path(const ApiRequest *r)
{
    Rid rid;
    return r->address.part_count > 0 && rid_parse(r->address.parts[0].id, &rid) &&
           rid.kind == RID_DATABASE;
}

static Status refuse_action(const ApiRequest *r, IdentityAction action, Error *err)
{
    SubStatus sub = action == ACTION_READ_METADATA ? SUB_IDENTITY_METADATA
                    : is_rid_path(r)               ? SUB_IDENTITY_DATA_BY_RID
                                                   : SUB_IDENTITY_DATA_BY_NAME;
    return error_set(err, STATUS_FORBIDDEN, sub,
                     "Request blocked by Auth %.*s : Request is blocked because principal [%.*s] "
                     "does not have required RBAC permissions to perform action [%s] on resource "
                     "[/%.*s].",
                     SLICE_CUT(r->api->options.account, 40), SLICE_CUT(r->principal.oid, 64),
                     ACTIONS[action].name, SLICE_CUT(r->address.link, 120));
}

static Status check_action(const ApiRequest *r, IdentityAction action, Error *err)
{
    ASSERT(ACTIONS[action].name != NULL);
    return role_allows(r->principal.role, action) ? STATUS_OK : refuse_action(r, action, err);
}

static Status check_identity(const ApiRequest *r, AccessClass class, Error *err)
{
    IdentityAction action = (IdentityAction)ROWS[class].action;
    if (action == ACTION_NONE)
        return error_set(err, STATUS_FORBIDDEN, SUB_IDENTITY_NOT_OFFERED,
                         "Request blocked by Auth %.*s : The given request [%.*s %.*s] cannot be "
                         "authorized by AAD token in data plane. Learn more: "
                         "https://aka.ms/cosmos-native-rbac",
                         SLICE_CUT(r->api->options.account, 40), SLICE_CUT(r->http->method, 20),
                         SLICE_CUT(r->http->path, 160));
    /* Only the body says what a batch does: access_check_operation. A principal that may not even
     * read items need not send it. */
    if (action == ACTION_OF_EACH_OPERATION)
        action = ACTION_ITEM_READ;
    return check_action(r, action, err);
}

Status access_check_operation(const ApiRequest *r, IdentityAction action, Error *err)
{
    return r->principal.kind == PRINCIPAL_IDENTITY ? check_action(r, action, err) : STATUS_OK;
}

/* ---- resource tokens ---- */

/* The path of the request and the link of the permission may each be of names or of resource ids,
 * so both are looked up. This is for the decision alone: whether the container exists is not told.
 * If neither names one they must be of the same text. */
static bool is_in_container(const ApiRequest *r, const Permission *permission,
                            const Snapshot *snapshot, const Container **out)
{
    *out = NULL;
    if (r->address.part_count < 2 || r->address.parts[1].type != RESOURCE_CONTAINER)
        return false;
    Slice database = r->address.parts[0].id;
    Slice container = r->address.parts[1].id;
    const PermissionTarget *target = &permission->target;
    const Container *asked = resolve_container(snapshot, database, container);
    if (asked != resolve_container(snapshot, target->database, target->container))
        return false;
    *out = asked;
    return asked != NULL ||
           (slice_equal(database, target->database) && slice_equal(container, target->container));
}

/* The partition key header, if there is exactly one. */
static bool find_key_header(const ApiRequest *r, Slice *out)
{
    size_t count = 0;
    for (size_t i = 0; i < r->http->header_count; i++) {
        if (slice_equal(r->http->headers[i].name, SLICE("x-ms-documentdb-partitionkey"))) {
            *out = r->http->headers[i].value;
            count++;
        }
    }
    return count == 1;
}

/* A container without a partition key does not look at the header: all of it has one key. */
static bool is_key_of_all(const PartitionKey *key)
{
    for (size_t i = 0; i < key->count; i++) {
        if (!json_is(key->parts[i], JSON_UNDEFINED))
            return false;
    }
    return true;
}

/* Whether the header has the permission's key, or a longer one that begins with it. */
static bool has_key(const ApiRequest *r, const PartitionKey *granted, const Container *container)
{
    Slice header;
    PartitionKey given;
    if (!find_key_header(r, &header) || !key_header_values(r->arena, header, &given))
        return false;
    PartitionKind kind = container == NULL ? PARTITION_HASH_V2 : container->partition_key.kind;
    if (kind == PARTITION_NONE && !is_key_of_all(granted))
        return false;
    if (kind == PARTITION_MULTI_HASH && granted->count > 0 && given.count > granted->count)
        given.count = granted->count;
    return partition_key_equal(&given, granted);
}

/* A trigger may write other items than the one that the request names. */
static bool names_triggers(const ApiRequest *r)
{
    return request_header(r, "x-ms-documentdb-pre-trigger-include").len > 0 ||
           request_header(r, "x-ms-documentdb-post-trigger-include").len > 0;
}

/* In a path of resource ids the id of an item may be one too; elsewhere it is the item's own. */
static bool is_item_rid(const Container *container, Slice id)
{
    Rid rid;
    return container != NULL && rid_parse(id, &rid) && rid.kind == RID_DOCUMENT &&
           rid.container == container->info.number;
}

static bool is_rid_of(const Container *container, Slice id)
{
    return container != NULL && slice_equal(container->info.rid, id);
}

/* Items are compared by their text, since looking one up takes a disk. A text that could be both an
 * id and a resource id counts only if path and link mean the same by it. */
static bool is_own_item(const ApiRequest *r, const Permission *permission,
                        const Container *container)
{
    const PermissionTarget *target = &permission->target;
    Slice id = r->address.parts[2].id;
    if (!slice_equal(id, target->child) || names_triggers(r))
        return false;
    return !is_item_rid(container, id) ||
           is_rid_of(container, r->address.parts[1].id) == is_rid_of(container, target->container);
}

static bool is_own_script(const ApiRequest *r, const Permission *permission,
                          const Snapshot *snapshot, const Container *container)
{
    static const ResourceType types[] = {
        [TARGET_PROCEDURE] = RESOURCE_STORED_PROCEDURE,
        [TARGET_TRIGGER] = RESOURCE_TRIGGER,
        [TARGET_FUNCTION] = RESOURCE_USER_DEFINED_FUNCTION,
    };
    const PermissionTarget *target = &permission->target;
    Slice id = r->address.parts[2].id;
    if (r->address.type != types[target->kind])
        return false;
    if (container == NULL)
        return slice_equal(id, target->child);
    StoredScriptKind kind = request_script_kind(r->address.type);
    const StoredScript *asked = resolve_script(snapshot, container, kind, id);
    return asked == resolve_script(snapshot, container, kind, target->child) &&
           (asked != NULL || slice_equal(id, target->child));
}

static bool is_own(const ApiRequest *r, const Permission *permission, const Snapshot *snapshot,
                   const Container *container)
{
    if (r->address.part_count != 3)
        return false;
    if (permission->target.kind != TARGET_ITEM)
        return is_own_script(r, permission, snapshot, container);
    return r->address.type == RESOURCE_DOCUMENT && is_own_item(r, permission, container) &&
           (!permission->has_key || has_key(r, &permission->key, container));
}

/* The column of access.def; the one of a token for changes follows. */
static size_t token_column(const Permission *permission)
{
    switch (permission->target.kind) {
    case TARGET_CONTAINER:
        return permission->has_key ? 2 : 0;
    case TARGET_ITEM:
        return 4;
    case TARGET_PROCEDURE:
    case TARGET_TRIGGER:
    case TARGET_FUNCTION:
        break;
    }
    return 6;
}

static bool token_may(const ApiRequest *r, AccessClass class)
{
    const Permission *permission = r->principal.permission;
    size_t column = token_column(permission) + (r->principal.is_all ? 1 : 0);
    Right right = (Right)ROWS[class].token[column];
    if (right == RIGHT_NO || class == ACCESS_ACCOUNT_READ)
        return right == RIGHT_YES;
    const Snapshot *snapshot = catalog_read(&r->loop->reader);
    const Container *container = NULL;
    if (!is_in_container(r, permission, snapshot, &container))
        return false;
    switch (right) {
    case RIGHT_NO:
        break;
    case RIGHT_YES:
        return true;
    case RIGHT_KEY:
        return has_key(r, &permission->key, container);
    case RIGHT_OWN:
        return is_own(r, permission, snapshot, container);
    }
    return false;
}

static Status refuse_token(const ApiRequest *r, Error *err)
{
    return error_set(err, STATUS_FORBIDDEN, SUB_NONE,
                     "Insufficient permissions provided in the authorization header for the "
                     "corresponding request. The token's permission does not allow %.*s on this "
                     "resource, or not with this partition key.",
                     SLICE_CUT(r->http->method, 20));
}

static Status check_token(const ApiRequest *r, AccessClass class, Error *err)
{
    return token_may(r, class) ? STATUS_OK : refuse_token(r, err);
}

Status access_check_new_id(const ApiRequest *r, Slice old, Slice new, Error *err)
{
    ASSERT(r->address.part_count == 3);
    ASSERT(r->container != NULL);
    /* An item that is named by its resource id stays what the token names. */
    bool is_by_rid = r->address.type == RESOURCE_DOCUMENT &&
                     is_rid_of(r->container, r->address.parts[1].id) &&
                     is_item_rid(r->container, old);
    if (!r->principal.is_of_child || is_by_rid || slice_equal(old, new))
        return STATUS_OK;
    return refuse_token(r, err);
}

Status access_check(const ApiRequest *r, Error *err)
{
    switch (r->principal.kind) {
    case PRINCIPAL_KEY:
        break;
    case PRINCIPAL_READ_ONLY_KEY:
        return check_read_only_key(r, access_class(r), err);
    case PRINCIPAL_RESOURCE_TOKEN:
        return check_token(r, access_class(r), err);
    case PRINCIPAL_IDENTITY:
        return check_identity(r, access_class(r), err);
    }
    return STATUS_OK;
}
