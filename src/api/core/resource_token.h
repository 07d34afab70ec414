/* resource_token.h - tokens that permissions give out, and their check.
 *
 *     type=resource&ver=1&sig={signature};{sealed};
 *
 * Both parts are base64. What is sealed says for which permission the token was issued, how much of
 * it, and from when to when it is good; the signature covers that. A token says nothing about what
 * the permission names: that is looked up in the catalogue for each request, so a token whose
 * permission is gone, or grants less than when it was issued, is worthless at once (Permission's
 * 'granted_lsn').
 *
 * The secret is made from one that is kept in the data folder. Another secret makes all tokens
 * worthless.
 *
 * Ownership  Results live in the arena given.
 * Threads    A ResourceTokenKey is immutable and shared.
 */
#pragma once

#include "api/core/auth.h"
#include "catalog/snapshot.h"

/* As the service has it. */
#define RESOURCE_TOKEN_SECONDS_MIN     10
#define RESOURCE_TOKEN_SECONDS_MAX     86400
#define RESOURCE_TOKEN_SECONDS_DEFAULT 3600

#define RESOURCE_TOKEN_KEY_BYTES 32

typedef struct ResourceTokenKey {
    uint8_t bytes[RESOURCE_TOKEN_KEY_BYTES];
} ResourceTokenKey;

/* Derives the key from a secret that may have other uses, too. */
void resource_token_key_init(ResourceTokenKey *key, const void *secret, size_t len);

/* A token for 'permission', good from 'now_us' (of the wall clock) for 'lifetime_s'. */
Slice resource_token_make(const ResourceTokenKey *key, const Permission *permission,
                          uint64_t now_us, uint32_t lifetime_s, Arena *arena);

/* Checks a token of AUTH_RESOURCE and finds its permission, which belongs to the snapshot.
 * STATUS_UNAUTHORIZED if we did not issue it, STATUS_FORBIDDEN if it is not good now, or if its
 * permission is gone or grants less. */
MUST_USE Status resource_token_check(const ResourceTokenKey *key, const AuthToken *token,
                                     const Snapshot *snapshot, int64_t now_s, Arena *arena,
                                     Principal *out, Error *err);
