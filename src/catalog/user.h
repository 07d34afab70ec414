/* user.h - users of a database, and what each is permitted, as they stand at one moment.
 *
 * A user has no password: it is a name under which permissions are kept. A permission names a
 * container, or something in it, and perhaps a partition key; clients with a token that was issued
 * for it may use that and nothing else. Whether what it names exists is not asked before it is
 * used.
 *
 * A replacement makes a new object. 'granted_lsn' of a permission stays the same as long as all
 * that was granted before is still granted: tokens that were issued for it are good for that long.
 *
 * Ownership  Reference counted; a Snapshot holds references on all it shows.
 * Threads    Immutable after they are made; any thread may read and release them.
 */
#pragma once

#include "catalog/permission_link.h"
#include "catalog/resource.h"

typedef struct User {
    _Atomic uint32_t refs;
    Arena arena;
    ResourceInfo info;
    uint32_t database;
} User;

/* Whose permissions are meant. */
typedef struct UserKey {
    uint32_t database;
    uint32_t user;
} UserKey;

typedef struct Permission {
    _Atomic uint32_t refs;
    Arena arena;
    ResourceInfo info; /* no view is kept with it: what is shown has a new token each time */
    UserKey owner;
    Json definition; /* normal form, see definition.h */
    PermissionMode mode;
    PermissionTarget target;
    bool has_key;
    PartitionKey key;
    Slice grant; /* the link and the key as bytes: no two permissions of a user have the same */
    uint64_t granted_lsn;
} Permission;

/* Plain descriptions, which are stored, and from which the objects above are made. */
typedef struct UserRecord {
    uint32_t number;
    uint32_t database;
    Slice id;
    uint64_t lsn;
    int64_t ts_s;
} UserRecord;

typedef struct PermissionRecord {
    uint32_t number;
    UserKey owner;
    uint64_t lsn;
    uint64_t granted_lsn;
    int64_t ts_s;
    Json definition;
} PermissionRecord;

/* Everything is copied. STATUS_CORRUPT on a definition that is not a normal form. */
User *user_new(const UserRecord *record);
MUST_USE Status permission_new(const PermissionRecord *record, Permission **out, Error *err);

User *user_ref(const User *user);
Permission *permission_ref(const Permission *permission);
void user_unref(User *user); /* each accepts NULL */
void permission_unref(Permission *permission);
DEFINE_AUTO(User *, user_unref)
DEFINE_AUTO(Permission *, permission_unref)

/* What an object was made from; slices and documents are borrowed from it. */
UserRecord user_record(const User *user);
PermissionRecord permission_record(const Permission *permission);

static inline UserKey user_key(const User *user)
{
    return (UserKey){.database = user->database, .user = user->info.number};
}
