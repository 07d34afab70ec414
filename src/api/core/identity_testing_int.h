/* identity_testing_int.h - key pairs, key sets and signed tokens for tests, made by OpenSSL. */
#pragma once

#include "base/arena.h"
#include "base/encoding.h"
#include "base/mem.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>

/* Base64 with '-' and '_', without padding. */
static inline Slice test_base64url(Arena *arena, const void *bytes, size_t len)
{
    size_t text_len = BASE64_LEN(len);
    char *text = arena_alloc(arena, text_len);
    base64_encode(BASE64_STANDARD, bytes, len, text);
    for (size_t i = 0; i < text_len; i++)
        text[i] = (char)(text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i]);
    while (text_len > 0 && text[text_len - 1] == '=')
        text_len--;
    return slice_make(text, text_len);
}

static inline Slice test_base64url_text(Arena *arena, Slice text)
{
    return test_base64url(arena, text.ptr, text.len);
}

/* 'curve' is NULL for RSA. */
static inline EVP_PKEY *test_key(const char *curve, unsigned bits)
{
    EVP_PKEY *key = curve != NULL ? EVP_PKEY_Q_keygen(NULL, NULL, "EC", curve)
                                  : EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)bits);
    ASSERT(key != NULL);
    return key;
}

static inline Slice test_number(Arena *arena, EVP_PKEY *key, const char *name)
{
    BIGNUM *number = NULL;
    int good = EVP_PKEY_get_bn_param(key, name, &number);
    ASSERT(good == 1);
    uint8_t bytes[1024];
    int len = BN_bn2bin(number, bytes);
    BN_free(number);
    return test_base64url(arena, bytes, (size_t)len);
}

/* The public half as JSON; 'more' is further members, such as "\"kid\":\"a\"", or empty. */
static inline Slice test_jwk(Arena *arena, EVP_PKEY *key, const char *curve, const char *more)
{
    const char *comma = more[0] == '\0' ? "" : ",";
    if (curve == NULL) {
        Slice n = test_number(arena, key, OSSL_PKEY_PARAM_RSA_N);
        Slice e = test_number(arena, key, OSSL_PKEY_PARAM_RSA_E);
        return arena_format(arena, "{\"kty\":\"RSA\",\"n\":\"%.*s\",\"e\":\"%.*s\"%s%s}",
                            SLICE_ARG(n), SLICE_ARG(e), comma, more);
    }
    uint8_t point[200];
    size_t len = 0;
    int good =
        EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point), &len);
    ASSERT(good == 1);
    ASSERT(point[0] == 4); /* not compressed: x and y follow */
    Slice x = test_base64url(arena, point + 1, len / 2);
    Slice y = test_base64url(arena, point + 1 + len / 2, len / 2);
    return arena_format(arena, "{\"kty\":\"EC\",\"crv\":\"%s\",\"x\":\"%.*s\",\"y\":\"%.*s\"%s%s}",
                        curve, SLICE_ARG(x), SLICE_ARG(y), comma, more);
}

/* An ECDSA signature as tokens have it: both numbers, each as long as the curve's. OpenSSL makes
 * DER: 30 len 02 len r 02 len s. */
static inline size_t test_raw_signature(const uint8_t *der, size_t half, uint8_t *out)
{
    const uint8_t *at = der + (der[1] == 0x81 ? 3 : 2);
    memset(out, 0, 2 * half);
    for (size_t i = 0; i < 2; i++) {
        size_t len = at[1];
        const uint8_t *number = at + 2;
        at = number + len;
        while (len > half) { /* a zero in front, so that it is not negative */
            number++;
            len--;
        }
        memcpy(out + i * half + half - len, number, len);
    }
    return 2 * half;
}

/* Signs "header.claims" as 'alg' says, whatever the header says. */
static inline Slice test_token(Arena *arena, EVP_PKEY *key, const char *alg, Slice header,
                               Slice claims)
{
    Slice h = test_base64url_text(arena, header);
    Slice c = test_base64url_text(arena, claims);
    Slice text = arena_format(arena, "%.*s.%.*s", SLICE_ARG(h), SLICE_ARG(c));
    const char *digest = strstr(alg, "384") != NULL   ? "SHA384"
                         : strstr(alg, "512") != NULL ? "SHA512"
                                                      : "SHA256";
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    EVP_PKEY_CTX *key_ctx = NULL;
    int good = EVP_DigestSignInit_ex(ctx, &key_ctx, digest, NULL, NULL, key, NULL);
    ASSERT(good == 1);
    if (alg[0] == 'P') {
        good = EVP_PKEY_CTX_ctrl_str(key_ctx, "rsa_padding_mode", "pss");
        ASSERT(good == 1);
        good = EVP_PKEY_CTX_ctrl_str(key_ctx, "rsa_pss_saltlen", "digest");
        ASSERT(good == 1);
    }
    uint8_t signature[2048];
    uint8_t raw[200];
    size_t len = sizeof(signature);
    good = EVP_DigestSign(ctx, signature, &len, (const uint8_t *)text.ptr, text.len);
    ASSERT(good == 1);
    EVP_MD_CTX_free(ctx);
    bool is_ec = alg[0] == 'E';
    if (is_ec)
        len = test_raw_signature(signature, (size_t)(EVP_PKEY_get_bits(key) + 7) / 8, raw);
    Slice s = test_base64url(arena, is_ec ? raw : signature, len);
    return arena_format(arena, "%.*s.%.*s", SLICE_ARG(text), SLICE_ARG(s));
}
