/* auth.h - who sends a request: master keys and read-only keys, checked by HMAC.
 *
 * auth_parse tells what kind of credential a request shows; this file checks those that are made
 * with a key. The other kinds have files of their own.
 *
 * A client signs verb, resource type, resource link and date with the account's key. The server
 * signs the same and compares in constant time. Clients differ in which spelling of the link they
 * sign (decoded, as sent, the lower-case resource id alone), so each is tried.
 *
 * Ownership  AuthKeys holds the prepared keys; it is made once and never changes. key_ring.h
 *            replaces it as a whole.
 * Threads    AuthKeys is immutable and shared by the loops.
 */
#pragma once

#include "api/core/address.h"
#include "api/core/principal.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

#define AUTH_KEY_BYTES_MAX 256

/* The key of Microsoft's emulators, which every sample uses. */
#define AUTH_DEVELOPMENT_KEY \
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

typedef struct AuthKeys AuthKeys;

/* Keys in base64; an empty slice means that there is no such key. The primary one is required. */
typedef struct AuthKeyTexts {
    Slice primary;
    Slice secondary;
    Slice primary_read_only;
    Slice secondary_read_only;
} AuthKeyTexts;

MUST_USE Status auth_keys_open(AuthKeyTexts texts, AuthKeys **out, Error *err);
void auth_keys_close(AuthKeys *keys); /* accepts NULL; wipes them */
DEFINE_AUTO(AuthKeys *, auth_keys_close)

/* What a request says about itself. Absent headers are empty slices. */
typedef struct AuthRequest {
    Slice method;
    const Address *address;
    Slice authorization;
    Slice x_ms_date;
    Slice date;
} AuthRequest;

typedef enum AuthScheme {
    AUTH_MASTER,   /* a signature with a key of the account */
    AUTH_RESOURCE, /* a token that a permission gave out: resource_token.h */
    AUTH_IDENTITY, /* a token of an identity provider */
} AuthScheme;

/* The parts of "type=master&ver=1.0&sig=...", decoded. */
typedef struct AuthToken {
    AuthScheme scheme;
    Slice version;
    Slice signature;
} AuthToken;

/* STATUS_UNAUTHORIZED if the header is missing, too long for its kind or of no known form. What is
 * decoded is in the arena, the rest points into the header. */
MUST_USE Status auth_parse(Arena *arena, Slice authorization, AuthToken *out, Error *err);

/* Checks a token of AUTH_MASTER. STATUS_UNAUTHORIZED or STATUS_FORBIDDEN, with a message that a
 * user can act on. */
MUST_USE Status auth_check(const AuthKeys *keys, const AuthRequest *request, const AuthToken *token,
                           int64_t now_s, Arena *arena, Principal *out, Error *err);

/* STATUS_FORBIDDEN, in the service's words, with the three times. */
Status auth_refuse_time(int64_t start_s, int64_t expiry_s, int64_t now_s, Error *err);

/* Whether 'key', in base64, is one of the keys, and which. */
bool auth_keys_find(const AuthKeys *keys, Slice key, Principal *out);

/* "Bearer " and a key as it is, for tools that cannot sign. Anybody who can read the connection
 * then has the key. */
bool auth_is_bearer(Slice authorization);
MUST_USE Status auth_check_bearer(const AuthKeys *keys, Slice authorization, Principal *out,
                                  Error *err);

/* The signature itself, in base64, for tools and tests: what a client would send as 'sig'. */
#define AUTH_SIGNATURE_LEN 44
MUST_USE Status auth_sign(Slice key_text, Slice method, Slice resource_type, Slice link,
                          Slice x_ms_date, char out[AUTH_SIGNATURE_LEN], Error *err);
