/* request_signature.c - see request_signature.h. What is signed is five lines, each with its end,
 * the last one empty:
 *
 *     get
 *     colls
 *     dbs/shop/colls/orders
 *     tue, 01 oct 2024 12:00:00 gmt
 *
 * Everything but the link is in lower case.
 */
#include "client/request_signature.h"

#include "base/arena.h"
#include "base/encoding.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

enum { SHA256_BYTES = 32 };
static_assert(BASE64_LEN(SHA256_BYTES) == SIGN_LEN, "a signature is 44 characters of base64");

Status sign_key_parse(Slice text, SignKey *out, Error *err)
{
    SignKey key;
    if (!base64_decode(BASE64_STANDARD, text, key.bytes, sizeof(key.bytes), &key.len) ||
        key.len == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the given key is not base64 of 1 to %d bytes", SIGN_KEY_BYTES_MAX);
    *out = key;
    sign_key_wipe(&key);
    return STATUS_OK;
}

void sign_key_wipe(SignKey *key)
{
    OPENSSL_cleanse(key, sizeof(*key));
}

static Slice lower(Arena *arena, Slice s)
{
    char *text = arena_cstr(arena, s);
    for (size_t i = 0; i < s.len; i++)
        text[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + ('a' - 'A') : text[i]);
    return slice_make(text, s.len);
}

void sign_request(const SignKey *key, Slice method, Slice resource_type, Slice link,
                  Slice x_ms_date, char out[SIGN_LEN])
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    Slice verb = lower(&arena, method);
    Slice type = lower(&arena, resource_type);
    Slice date = lower(&arena, x_ms_date);
    Slice text = arena_format(&arena, "%.*s\n%.*s\n%.*s\n%.*s\n\n", SLICE_ARG(verb),
                              SLICE_ARG(type), SLICE_ARG(link), SLICE_ARG(date));
    uint8_t signature[SHA256_BYTES];
    unsigned len = 0;
    const uint8_t *made = HMAC(EVP_sha256(), key->bytes, (int)key->len, (const uint8_t *)text.ptr,
                               text.len, signature, &len);
    ASSERT(made != NULL); /* fails only without memory */
    ASSERT(len == sizeof(signature));
    base64_encode(BASE64_STANDARD, signature, sizeof(signature), out);
}
