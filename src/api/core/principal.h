/* principal.h - who sends a request, as its credential proves it.
 *
 * auth.h finds the principal of a request; what it may do is access_int.h's to decide.
 */
#pragma once

#include "base/slice.h"

typedef enum PrincipalKind {
    PRINCIPAL_KEY,            /* a master key: everything */
    PRINCIPAL_READ_ONLY_KEY,  /* reads and queries, but no permissions, which hold tokens */
    PRINCIPAL_RESOURCE_TOKEN, /* what one permission of a user names */
    PRINCIPAL_IDENTITY, /* a person or program of an identity provider: what its role allows */
} PrincipalKind;

/* The built-in roles, at the scope of the account. */
typedef enum IdentityRole {
    IDENTITY_NONE, /* known, but without a role: nothing */
    IDENTITY_READER,
    IDENTITY_CONTRIBUTOR,
} IdentityRole;

typedef struct Principal {
    PrincipalKind kind;
    Slice name; /* for people, never a secret: "primary", "secondary read-only"; lives as long as
                   the request */

    /* Of an identity. */
    IdentityRole role;
    Slice oid; /* the object id of its token; lives as long as the request */

    /* Of a resource token. */
    const struct Permission *permission; /* of the loop's snapshot; NULL after access_check */
    bool is_all;                         /* it was issued for changes, too */
    bool is_of_child;                    /* its permission names something in a container */
    bool has_key;                        /* ... and a partition key */
    uint64_t permission_lsn;             /* of the newest version of the permission */
} Principal;
