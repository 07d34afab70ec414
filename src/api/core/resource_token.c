/* resource_token.c - see resource_token.h.
 *
 *     sealed = | version u8 | mode u8 | database u32 | user u32 | permission u32 |
 *              | granted LSN u64 | issued, us, u64 | expires, s, u64 |
 *
 * All big-endian. The signature is the first 16 bytes of HMAC-SHA256 over the sealed bytes, which
 * is the length that the service's tokens have.
 */
#include "api/core/resource_token.h"

#include "base/encoding.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

enum {
    TOKEN_VERSION = 1,
    SEALED_BYTES = 1 + 1 + 4 + 4 + 4 + 8 + 8 + 8,
    SEALED_LEN = (SEALED_BYTES + 2) / 3 * 4,
    SIGNATURE_BYTES = 16,
    SIGNATURE_LEN = 24,
    DIGEST_BYTES = 32,
    SKEW_S = 15 * 60, /* how far our clock may have been set back since the token was issued */
};
static_assert(SEALED_BYTES == 38, "what is drawn above");

#define PREFIX "type=resource&ver=1&sig="

typedef struct Sealed {
    PermissionMode mode;
    UserKey owner;
    uint32_t permission;
    uint64_t granted_lsn;
    uint64_t issued_us;
    int64_t expires_s;
} Sealed;

static void hmac(const void *key, size_t len, Slice message, uint8_t out[DIGEST_BYTES])
{
    unsigned size = DIGEST_BYTES;
    const uint8_t *made =
        HMAC(EVP_sha256(), key, (int)len, (const uint8_t *)message.ptr, message.len, out, &size);
    ASSERT(made != NULL);
    ASSERT(size == DIGEST_BYTES);
}

void resource_token_key_init(ResourceTokenKey *key, const void *secret, size_t len)
{
    hmac(secret, len, SLICE("orrery resource tokens"), key->bytes);
}

static void sign(const ResourceTokenKey *key, const uint8_t bytes[SEALED_BYTES],
                 uint8_t out[DIGEST_BYTES])
{
    hmac(key->bytes, sizeof(key->bytes), slice_make(bytes, SEALED_BYTES), out);
}

static void seal(const Sealed *sealed, uint8_t out[SEALED_BYTES])
{
    out[0] = TOKEN_VERSION;
    out[1] = (uint8_t)sealed->mode;
    be32_put(out + 2, sealed->owner.database);
    be32_put(out + 6, sealed->owner.user);
    be32_put(out + 10, sealed->permission);
    be64_put(out + 14, sealed->granted_lsn);
    be64_put(out + 22, sealed->issued_us);
    be64_put(out + 30, (uint64_t)sealed->expires_s);
}

/* Of bytes that we have signed. */
static Sealed unseal(const uint8_t bytes[SEALED_BYTES])
{
    return (Sealed){
        .mode = bytes[1] == PERMISSION_ALL ? PERMISSION_ALL : PERMISSION_READ,
        .owner = {.database = be32_get(bytes + 2), .user = be32_get(bytes + 6)},
        .permission = be32_get(bytes + 10),
        .granted_lsn = be64_get(bytes + 14),
        .issued_us = be64_get(bytes + 22),
        .expires_s = (int64_t)be64_get(bytes + 30),
    };
}

Slice resource_token_make(const ResourceTokenKey *key, const Permission *permission,
                          uint64_t now_us, uint32_t lifetime_s, Arena *arena)
{
    ASSERT(lifetime_s >= RESOURCE_TOKEN_SECONDS_MIN);
    ASSERT(lifetime_s <= RESOURCE_TOKEN_SECONDS_MAX);
    Sealed sealed = {
        .mode = permission->mode,
        .owner = permission->owner,
        .permission = permission->info.number,
        .granted_lsn = permission->granted_lsn,
        .issued_us = now_us,
        .expires_s = (int64_t)(now_us / 1000000) + lifetime_s,
    };
    uint8_t bytes[SEALED_BYTES];
    uint8_t digest[DIGEST_BYTES];
    seal(&sealed, bytes);
    sign(key, bytes, digest);
    char signature[SIGNATURE_LEN];
    char text[SEALED_LEN];
    base64_encode(BASE64_STANDARD, digest, SIGNATURE_BYTES, signature);
    base64_encode(BASE64_STANDARD, bytes, sizeof(bytes), text);
    return arena_format(arena, PREFIX "%.*s;%.*s;", SIGNATURE_LEN, signature, SEALED_LEN, text);
}

/* "{signature};{sealed};", of which the last ';' may be missing. */
static bool read_parts(const ResourceTokenKey *key, const AuthToken *token, Sealed *out)
{
    Slice text = token->signature;
    if (slice_ends_with(text, SLICE(";")))
        text.len--;
    if (text.len != SIGNATURE_LEN + 1 + SEALED_LEN || text.ptr[SIGNATURE_LEN] != ';' ||
        !(slice_equal(token->version, SLICE("1")) || slice_equal(token->version, SLICE("1.0"))))
        return false;
    uint8_t given[SIGNATURE_BYTES];
    uint8_t bytes[SEALED_BYTES];
    size_t given_len = 0;
    size_t len = 0;
    if (!base64_decode(BASE64_STANDARD, slice_first(text, SIGNATURE_LEN), given, sizeof(given),
                       &given_len) ||
        given_len != sizeof(given) ||
        !base64_decode(BASE64_STANDARD, slice_from(text, SIGNATURE_LEN + 1), bytes, sizeof(bytes),
                       &len) ||
        len != sizeof(bytes))
        return false;
    uint8_t digest[DIGEST_BYTES];
    sign(key, bytes, digest);
    if (CRYPTO_memcmp(digest, given, SIGNATURE_BYTES) != 0 || bytes[0] != TOKEN_VERSION)
        return false;
    *out = unseal(bytes);
    return true;
}

Status resource_token_check(const ResourceTokenKey *key, const AuthToken *token,
                            const Snapshot *snapshot, int64_t now_s, Arena *arena, Principal *out,
                            Error *err)
{
    ASSERT(token->scheme == AUTH_RESOURCE);
    Sealed sealed;
    if (!read_parts(key, token, &sealed))
        return error_set(err, STATUS_UNAUTHORIZED, SUB_NONE,
                         "The input authorization token can't serve the request. The resource "
                         "token was not issued by this account, or is damaged; read its permission "
                         "again for a new one.");
    int64_t issued_s = (int64_t)(sealed.issued_us / 1000000);
    if (now_s >= sealed.expires_s || now_s + SKEW_S < issued_s)
        return auth_refuse_time(issued_s, sealed.expires_s, now_s, err);
    const User *user = snapshot_user(snapshot, sealed.owner);
    const Permission *permission = snapshot_permission(snapshot, sealed.owner, sealed.permission);
    if (permission == NULL || permission->granted_lsn != sealed.granted_lsn)
        return error_set(err, STATUS_FORBIDDEN, SUB_NONE,
                         "Insufficient permissions provided in the authorization header: the "
                         "permission that the token was issued for is gone, or was changed. Read "
                         "it again for a new token.");
    ASSERT(user != NULL);
    *out = (Principal){
        .kind = PRINCIPAL_RESOURCE_TOKEN,
        .name = arena_format(arena, "user '%.*s', permission '%.*s'", SLICE_ARG(user->info.id),
                             SLICE_ARG(permission->info.id)),
        .permission = permission,
        .is_all = sealed.mode == PERMISSION_ALL,
        .is_of_child = permission->target.kind != TARGET_CONTAINER,
        .has_key = permission->has_key,
        .permission_lsn = permission->info.lsn,
    };
    return STATUS_OK;
}
