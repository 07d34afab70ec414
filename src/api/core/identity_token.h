/* identity_token.h - who a token of an identity provider (type=aad, a JSON Web Token) is of, and
 * which role that principal has.
 *
 * Two kinds of tokens are good. Those of the configured issuer: signed with one of its keys, made
 * for one of our audiences, valid now. And the tokens that tests of the official SDKs make for the
 * vendor's emulators: they have the issuer and the audience that all of these tests use, and in
 * place of a signature the text of the master key. The latter only while the well-known development
 * key is good, when everybody who reaches the server may do everything anyway.
 *
 * Threads    Pure functions.
 */
#pragma once

#include "api/core/auth.h"
#include "api/core/identity_keys.h"
#include "api/core/principal.h"

#define IDENTITY_TOKEN_BYTES_MAX 16384
#define IDENTITY_OID_BYTES_MAX   128
#define IDENTITY_SKEW_S          300 /* how far the clocks of issuer and server may differ */

/* Lists have commas between their entries. */
typedef struct IdentityRules {
    Slice issuer;       /* empty if there is none */
    Slice audiences;    /* what 'aud' may be */
    Slice readers;      /* object ids, application ids or groups that have the role of a reader */
    Slice contributors; /* likewise */
} IdentityRules;

typedef struct IdentityClaims {
    Slice oid; /* in the arena */
    IdentityRole role;
    int64_t from_s; /* valid from and to, without the skew */
    int64_t to_s;
} IdentityClaims;

/* What a token is checked with. */
typedef struct IdentityCheck {
    const IdentityRules *rules;
    const IdentityKeys *keys;     /* of the issuer; NULL if they are not known (yet) */
    const AuthKeys *account_keys; /* of which one may be the development key */
    int64_t now_s;
} IdentityCheck;

/* STATUS_UNAUTHORIZED with the sub-status that the protocol has for each reason.
 * SUB_IDENTITY_UNKNOWN_KEY may be over when the issuer's keys are read again. */
MUST_USE Status identity_token_check(const IdentityCheck *check, Slice token, Arena *arena,
                                     IdentityClaims *out, Error *err);

/* Whether claims that were verified before are still valid. */
bool identity_is_current(int64_t from_s, int64_t to_s, int64_t now_s);
