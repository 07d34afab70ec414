/* user.c - see user.h. */
#include "catalog/user.h"

#include "base/encoding.h"
#include "base/mem.h"
#include "catalog/resource_int.h"

enum { ARENA_BLOCK = 512 };

User *user_new(const UserRecord *record)
{
    User *user = MEM_NEW(User);
    atomic_init(&user->refs, 1);
    arena_init(&user->arena, ARENA_BLOCK);
    Arena *arena = &user->arena;
    char rid[RID_USER_LEN];
    rid_print_user(record->database, record->number, rid);
    resource_fill_info(&user->info, arena, record->number, record->lsn, record->ts_s);
    user->info.id = arena_copy(arena, record->id);
    user->info.rid = arena_copy(arena, slice_make(rid, sizeof(rid)));
    user->database = record->database;
    return user;
}

User *user_ref(const User *user)
{
    User *shared = UNCONST(User, user);
    atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
    return shared;
}

void user_unref(User *user)
{
    if (user == NULL || atomic_fetch_sub_explicit(&user->refs, 1, memory_order_acq_rel) > 1)
        return;
    ResourceView *view = resource_view(&user->info);
    if (view != NULL)
        view->release(view);
    arena_done(&user->arena);
    mem_free(user);
}

UserRecord user_record(const User *user)
{
    return (UserRecord){
        .number = user->info.number,
        .database = user->database,
        .id = user->info.id,
        .lsn = user->info.lsn,
        .ts_s = user->info.ts_s,
    };
}

/* | length of the link u32 | link | key, as bytes, if there is one | */
static Slice make_grant(Arena *arena, Slice link, Json definition)
{
    link = permission_link_trim(link);
    Json key = json_get(definition, SLICE("resourcePartitionKey"));
    Slice bytes = json_is(key, JSON_UNDEFINED) ? SLICE_EMPTY : json_bytes(arena, key);
    size_t len = sizeof(uint32_t) + link.len + bytes.len;
    char *grant = arena_alloc(arena, len);
    be32_put(grant, (uint32_t)link.len);
    memcpy(grant + sizeof(uint32_t), link.ptr, link.len);
    if (bytes.len > 0)
        memcpy(grant + sizeof(uint32_t) + link.len, bytes.ptr, bytes.len);
    return slice_make(grant, len);
}

static Status damaged(const char *why, Error *err)
{
    return error_set(err, STATUS_CORRUPT, SUB_NONE, "a stored permission %s", why);
}

Status permission_new(const PermissionRecord *record, Permission **out, Error *err)
{
    AUTO(permission_unref) Permission *permission = MEM_NEW(Permission);
    atomic_init(&permission->refs, 1);
    arena_init(&permission->arena, ARENA_BLOCK);
    Arena *arena = &permission->arena;
    if (json_size(record->definition) > DEFINITION_BYTES_MAX)
        return damaged("is too large", err);
    permission->owner = record->owner;
    permission->granted_lsn = record->granted_lsn;
    permission->definition = json_trust(json_bytes(arena, record->definition));
    Json id = json_get(permission->definition, SLICE("id"));
    if (!json_is(id, JSON_STRING))
        return damaged("has no id", err);
    Slice link;
    TRY(permission_definition_read(permission->definition, &permission->mode, &link,
                                   &permission->has_key, &permission->key, err));
    if (!permission_link_parse(arena, link, &permission->target))
        return damaged("names nothing", err);
    permission->grant = make_grant(arena, link, permission->definition);
    char rid[RID_CHILD_LEN];
    rid_print_permission(record->owner.database, record->owner.user, record->number, rid);
    resource_fill_info(&permission->info, arena, record->number, record->lsn, record->ts_s);
    permission->info.id = json_string(id);
    permission->info.rid = arena_copy(arena, slice_make(rid, sizeof(rid)));
    *out = TAKE(permission);
    return STATUS_OK;
}

Permission *permission_ref(const Permission *permission)
{
    Permission *shared = UNCONST(Permission, permission);
    atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
    return shared;
}

void permission_unref(Permission *permission)
{
    if (permission == NULL ||
        atomic_fetch_sub_explicit(&permission->refs, 1, memory_order_acq_rel) > 1)
        return;
    arena_done(&permission->arena);
    mem_free(permission);
}

PermissionRecord permission_record(const Permission *permission)
{
    return (PermissionRecord){
        .number = permission->info.number,
        .owner = permission->owner,
        .lsn = permission->info.lsn,
        .granted_lsn = permission->granted_lsn,
        .ts_s = permission->info.ts_s,
        .definition = permission->definition,
    };
}
