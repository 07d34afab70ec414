/* change_user.c - changes of users and of their permissions. */
#include "catalog/change_int.h"

/* ---- users ---- */

static Status put_user(Work *work, CatalogChange *change, UserRecord *record, Error *err)
{
    record->lsn = ++work->counters->lsn;
    record->ts_s = work->now_s;
    record->id = change->id;
    AUTO(user_unref) User *user = user_new(record);
    if (!snapshot_put_user(work->snapshot, user_ref(user)))
        return change_name_collision(err);
    record_put_user(work->txn, record);
    change->result_user = TAKE(user);
    return STATUS_OK;
}

static Status check_database(const Work *work, const CatalogChange *change, Error *err)
{
    if (snapshot_database(work->snapshot, change->database) != NULL)
        return STATUS_OK;
    return change_owner_not_found(err, "database");
}

static Status refuse_count(const char *what, size_t max, const char *kind, Error *err)
{
    return error_set(err, STATUS_FORBIDDEN, SUB_NONE,
                     "The %s has %zu %s, which is the most there can be.", what, max, kind);
}

Status change_create_user(Work *work, CatalogChange *change, Error *err)
{
    TRY(check_database(work, change, err));
    const User *same = snapshot_user_by_id(work->snapshot, change->database, change->id);
    if (same != NULL && !change->is_upsert)
        return change_id_exists(err, "user", same->info.id);
    if (same != NULL) {
        TRY(catalog_check_etag(change->if_match, same->info.etag, err));
        change->has_replaced = true;
        UserRecord replaced = user_record(same);
        return put_user(work, change, &replaced, err);
    }
    if (snapshot_user_count(work->snapshot, change->database) >= DATABASE_USERS_MAX)
        return refuse_count("database", DATABASE_USERS_MAX, "users", err);
    UserRecord record = {.database = change->database};
    TRY(change_take_number(&work->counters->user_next, RID_USER_MAX, &record.number, err));
    return put_user(work, change, &record, err);
}

static UserKey key_of(const CatalogChange *change)
{
    return (UserKey){.database = change->database, .user = change->user};
}

Status change_replace_user(Work *work, CatalogChange *change, Error *err)
{
    TRY(check_database(work, change, err));
    const User *old = snapshot_user(work->snapshot, key_of(change));
    if (old == NULL)
        return change_not_found(err, "user");
    TRY(catalog_check_etag(change->if_match, old->info.etag, err));
    const User *same = snapshot_user_by_id(work->snapshot, change->database, change->id);
    if (same != NULL && same != old)
        return change_id_exists(err, "user", same->info.id);
    UserRecord record = user_record(old);
    return put_user(work, change, &record, err);
}

static void drop_permissions(Work *work, UserKey owner)
{
    const Permission *permission;
    for (uint32_t from = 0;
         (permission = snapshot_next_permission(work->snapshot, owner, from)) != NULL;
         from = permission->info.number + 1)
        record_delete_permission(work->txn, owner, permission->info.number);
}

Status change_delete_user(Work *work, CatalogChange *change, Error *err)
{
    TRY(check_database(work, change, err));
    UserKey key = key_of(change);
    const User *old = snapshot_user(work->snapshot, key);
    if (old == NULL)
        return change_not_found(err, "user");
    TRY(catalog_check_etag(change->if_match, old->info.etag, err));
    work->counters->lsn++;
    drop_permissions(work, key);
    record_delete_user(work->txn, key);
    snapshot_remove_user(work->snapshot, key);
    return STATUS_OK;
}

void change_drop_users(Work *work, uint32_t database)
{
    const User *user;
    for (uint32_t from = 0; (user = snapshot_next_user(work->snapshot, database, from)) != NULL;
         from = user->info.number + 1) {
        drop_permissions(work, user_key(user));
        record_delete_user(work->txn, user_key(user));
    }
}

/* ---- permissions ---- */

static Status check_user(const Work *work, const CatalogChange *change, Error *err)
{
    if (snapshot_user(work->snapshot, key_of(change)) != NULL)
        return STATUS_OK;
    return change_owner_not_found(err, "user");
}

/* Whether 'new' grants all that 'old' does, so that what was issued for it stays good. */
static bool keeps_grant(const Permission *old, const Permission *new)
{
    return slice_equal(old->grant, new->grant) && new->mode >= old->mode;
}

/* Makes the permission that the change's definition describes, in the place of 'old' if there is
 * one, and puts it. */
static Status put_permission(Work *work, CatalogChange *change, PermissionRecord record,
                             const Permission *old, Error *err)
{
    record.lsn = work->counters->lsn + 1;
    record.granted_lsn = record.lsn;
    record.ts_s = work->now_s;
    record.definition = change->definition;
    AUTO(permission_unref) Permission *permission = NULL;
    TRY(permission_new(&record, &permission, err));
    const Permission *same =
        snapshot_permission_by_grant(work->snapshot, record.owner, permission->grant);
    if (same != NULL && same != old)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "Resource with specified id or name already exists: the permission "
                         "'%.*s' of this user is for the same resource.",
                         SLICE_CUT(same->info.id, 260));
    if (old != NULL && keeps_grant(old, permission)) {
        record.granted_lsn = old->granted_lsn;
        permission->granted_lsn = old->granted_lsn; /* nobody has seen it yet */
    }
    if (!snapshot_put_permission(work->snapshot, permission_ref(permission)))
        return change_name_collision(err);
    work->counters->lsn = record.lsn;
    record_put_permission(work->txn, &record);
    change->result_permission = TAKE(permission);
    return STATUS_OK;
}

static Slice definition_id(const CatalogChange *change)
{
    return json_string(json_get(change->definition, SLICE("id")));
}

Status change_create_permission(Work *work, CatalogChange *change, Error *err)
{
    TRY(check_user(work, change, err));
    UserKey owner = key_of(change);
    const Permission *same =
        snapshot_permission_by_id(work->snapshot, owner, definition_id(change));
    if (same != NULL && !change->is_upsert)
        return change_id_exists(err, "permission", same->info.id);
    if (same != NULL) {
        TRY(catalog_check_etag(change->if_match, same->info.etag, err));
        change->has_replaced = true;
        return put_permission(work, change, permission_record(same), same, err);
    }
    if (snapshot_permission_count(work->snapshot, owner) >= USER_PERMISSIONS_MAX)
        return refuse_count("user", USER_PERMISSIONS_MAX, "permissions", err);
    PermissionRecord record = {.owner = owner};
    TRY(change_take_number(&work->counters->permission_next, UINT32_MAX, &record.number, err));
    return put_permission(work, change, record, NULL, err);
}

Status change_replace_permission(Work *work, CatalogChange *change, Error *err)
{
    TRY(check_user(work, change, err));
    UserKey owner = key_of(change);
    const Permission *old = snapshot_permission(work->snapshot, owner, change->permission);
    if (old == NULL)
        return change_not_found(err, "permission");
    TRY(catalog_check_etag(change->if_match, old->info.etag, err));
    const Permission *same =
        snapshot_permission_by_id(work->snapshot, owner, definition_id(change));
    if (same != NULL && same != old)
        return change_id_exists(err, "permission", same->info.id);
    return put_permission(work, change, permission_record(old), old, err);
}

Status change_delete_permission(Work *work, CatalogChange *change, Error *err)
{
    TRY(check_user(work, change, err));
    UserKey owner = key_of(change);
    const Permission *old = snapshot_permission(work->snapshot, owner, change->permission);
    if (old == NULL)
        return change_not_found(err, "permission");
    TRY(catalog_check_etag(change->if_match, old->info.etag, err));
    work->counters->lsn++;
    record_delete_permission(work->txn, owner, change->permission);
    snapshot_remove_permission(work->snapshot, owner, change->permission);
    return STATUS_OK;
}
