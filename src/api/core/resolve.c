/* resolve.c - finding what a path names in the catalogue. */
#include "api/core/request_int.h"

/* An id in a path is a user id or a resource id; a user id wins. */
static const Database *find_database(const Snapshot *snapshot, Slice id)
{
    const Database *database = snapshot_database_by_id(snapshot, id);
    Rid rid;
    if (database == NULL && rid_parse(id, &rid) && rid.kind == RID_DATABASE)
        database = snapshot_database(snapshot, rid.database);
    return database;
}

static const Container *find_container(const Snapshot *snapshot, const Database *database, Slice id)
{
    uint32_t number = database->info.number;
    const Container *container = snapshot_container_by_id(snapshot, number, id);
    Rid rid;
    if (container == NULL && rid_parse(id, &rid) && rid.kind == RID_CONTAINER &&
        rid.database == number)
        container = snapshot_container(snapshot, number, rid.container);
    return container;
}

static const Offer *find_offer(const Snapshot *snapshot, Slice id)
{
    Rid rid;
    return rid_parse(id, &rid) && rid.kind == RID_OFFER ? snapshot_offer(snapshot, rid.offer)
                                                        : NULL;
}

static const EncryptionKey *find_key(const Snapshot *snapshot, const Database *database, Slice id)
{
    uint32_t number = database->info.number;
    const EncryptionKey *key = snapshot_key_by_id(snapshot, number, id);
    Rid rid;
    if (key == NULL && rid_parse(id, &rid) && rid.kind == RID_CLIENT_ENCRYPTION_KEY &&
        rid.database == number)
        key = snapshot_key(snapshot, number, (uint32_t)rid.child);
    return key;
}

StoredScriptKind request_script_kind(ResourceType type)
{
    switch (type) {
    case RESOURCE_STORED_PROCEDURE:
        return STORED_PROCEDURE;
    case RESOURCE_TRIGGER:
        return STORED_TRIGGER;
    case RESOURCE_USER_DEFINED_FUNCTION:
        return STORED_FUNCTION;
    default:
        break;
    }
    ASSERT(!"a type of which there are no scripts");
    return STORED_PROCEDURE;
}

const StoredScript *resolve_script(const Snapshot *snapshot, const Container *container,
                                   StoredScriptKind kind, Slice id)
{
    StoredScriptGroup group = container_scripts(container, kind);
    const StoredScript *script = snapshot_script_by_id(snapshot, group, id);
    Rid rid;
    if (script == NULL && rid_parse(id, &rid) && rid.kind == stored_script_rid_kind(kind) &&
        rid.database == group.database && rid.container == group.container &&
        rid.child <= RID_SCRIPT_MAX)
        script = snapshot_script(snapshot, group, (uint32_t)rid.child);
    return script;
}

const Container *resolve_container(const Snapshot *snapshot, Slice database, Slice container)
{
    const Database *owner = find_database(snapshot, database);
    return owner == NULL ? NULL : find_container(snapshot, owner, container);
}

static const User *find_user(const Snapshot *snapshot, const Database *database, Slice id)
{
    uint32_t number = database->info.number;
    const User *user = snapshot_user_by_id(snapshot, number, id);
    Rid rid;
    if (user == NULL && rid_parse(id, &rid) && rid.kind == RID_USER && rid.database == number)
        user = snapshot_user(snapshot, (UserKey){number, rid.user});
    return user;
}

static const Permission *find_permission(const Snapshot *snapshot, const User *user, Slice id)
{
    UserKey owner = user_key(user);
    const Permission *permission = snapshot_permission_by_id(snapshot, owner, id);
    Rid rid;
    if (permission == NULL && rid_parse(id, &rid) && rid.kind == RID_PERMISSION &&
        rid.database == owner.database && rid.user == owner.user && rid.child <= UINT32_MAX)
        permission = snapshot_permission(snapshot, owner, (uint32_t)rid.child);
    return permission;
}

/* Offers have no names. */
static Status check_offer_id(Slice id, Error *err)
{
    Rid rid;
    if (rid_parse(id, &rid) && rid.kind == RID_OFFER)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "'%.*s' is not the resource id of an offer.", SLICE_CUT(id, 80));
}

/* A missing parent and a missing target are both 404; SDKs tell them apart by the sub-status. */
static Status missing(const ApiRequest *r, size_t part, Error *err)
{
    bool is_target =
        part + 1 == r->address.part_count && !r->address.is_feed && r->address.operation.len == 0;
    Slice segment = address_segment(r->address.parts[part].type);
    Slice id = r->address.parts[part].id;
    if (is_target)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                         "Resource Not Found. There is no %.*s/%.*s.", SLICE_ARG(segment),
                         SLICE_CUT(id, 260));
    return error_set(err, STATUS_NOT_FOUND, SUB_OWNER_NOT_FOUND,
                     "Owner resource does not exist. Resource Not Found: %.*s/%.*s.",
                     SLICE_ARG(segment), SLICE_CUT(id, 260));
}

/* Every container has these, without listing them: procedures.c knows which there are. */
static bool is_system_procedure(const ApiRequest *r, Slice id)
{
    return r->operation == OPERATION_EXECUTE && slice_starts_with(id, SLICE("__.sys."));
}

Status request_resolve(ApiRequest *r, Error *err)
{
    for (size_t i = 0; i < r->address.part_count; i++) {
        Slice id = r->address.parts[i].id;
        bool found = true;
        switch (r->address.parts[i].type) {
        case RESOURCE_DATABASE:
            r->database = find_database(r->snapshot, id);
            found = r->database != NULL;
            break;
        case RESOURCE_CONTAINER:
            r->container = find_container(r->snapshot, r->database, id);
            found = r->container != NULL;
            break;
        case RESOURCE_OFFER:
            TRY(check_offer_id(id, err));
            r->offer = find_offer(r->snapshot, id);
            found = r->offer != NULL;
            break;
        case RESOURCE_CLIENT_ENCRYPTION_KEY:
            r->key = find_key(r->snapshot, r->database, id);
            found = r->key != NULL;
            break;
        case RESOURCE_STORED_PROCEDURE:
        case RESOURCE_TRIGGER:
        case RESOURCE_USER_DEFINED_FUNCTION:
            r->script = resolve_script(r->snapshot, r->container,
                                       request_script_kind(r->address.parts[i].type), id);
            found = r->script != NULL || is_system_procedure(r, id);
            break;
        case RESOURCE_CONFLICT: /* there are none: absent.c; what no conflict allows is 405 */
            found = r->operation != OPERATION_READ && r->operation != OPERATION_DELETE;
            break;
        case RESOURCE_USER:
            r->user = find_user(r->snapshot, r->database, id);
            found = r->user != NULL;
            break;
        case RESOURCE_PERMISSION:
            r->permission = find_permission(r->snapshot, r->user, id);
            found = r->permission != NULL;
            break;
        default: /* resources below a container are looked up by their handlers */
            break;
        }
        if (!found)
            return missing(r, i, err);
    }
    return STATUS_OK;
}
