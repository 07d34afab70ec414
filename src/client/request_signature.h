/* request_signature.h - the signature that a request carries: HMAC-SHA256 of its verb, resource and
 * date.
 *
 * The server has its own (api/core/auth.h), which checks every request and must be fast. This one
 * is for clients, which stand below the api.
 */
#pragma once

#include "base/error.h"
#include "base/slice.h"

#define SIGN_KEY_BYTES_MAX 256
#define SIGN_LEN           44

typedef struct SignKey {
    uint8_t bytes[SIGN_KEY_BYTES_MAX];
    size_t len;
} SignKey;

/* Reads a key in base64. STATUS_BAD_REQUEST if it is not one. */
MUST_USE Status sign_key_parse(Slice text, SignKey *out, Error *err);
void sign_key_wipe(SignKey *key);

/* The signature in base64. 'link' is not percent-encoded: "dbs/shop/colls/orders". */
void sign_request(const SignKey *key, Slice method, Slice resource_type, Slice link,
                  Slice x_ms_date, char out[SIGN_LEN]);
