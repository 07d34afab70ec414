/* principal.h - who sends a request, as its credential proves it.
 *
 * auth.h finds the principal of a request; what it may do is access_int.h's to decide.
 */
#pragma once

#include "base/slice.h"

typedef enum PrincipalKind {
    PRINCIPAL_KEY,           /* a master key: everything */
    PRINCIPAL_READ_ONLY_KEY, /* reads and queries, but no permissions, which hold tokens */
} PrincipalKind;

typedef struct Principal {
    PrincipalKind kind;
    Slice name; /* for people, never a secret: "primary", "secondary read-only"; lives as long as
                   the request */
} Principal;
