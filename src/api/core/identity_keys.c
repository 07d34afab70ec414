/* identity_keys.c - see identity_keys.h. The only file that knows cjose. */
#include "api/core/identity_keys.h"

#include "base/mem.h"
#include "base/shared_library.h"
#include "json/json.h"

#include <cjose/cjose.h>
#include <openssl/err.h>

#define CJOSE_LIBRARY "libcjose.so.0"

#define CJOSE_FUNCTIONS(X) \
    X(jwk_import)          \
    X(jwk_release)         \
    X(jwk_get_keysize)     \
    X(jws_import)          \
    X(jws_verify)          \
    X(jws_get_protected)   \
    X(jws_release)         \
    X(header_get)

/* The library's functions, without "cjose_" in front of their names. */
typedef struct Cjose {
#define POINTER(name) typeof(cjose_##name) *name;
    CJOSE_FUNCTIONS(POINTER)
#undef POINTER
} Cjose;

enum {
    RSA_BITS_MIN = 2048,
    RSA_BITS_MAX = 8192, /* a signature of more would take a loop milliseconds */
    MODULUS_TEXT_MAX = (RSA_BITS_MAX / 8 * 4 + 2) / 3,
    EXPONENT_TEXT_MAX = 8,
    POINT_TEXT_MAX = 88, /* a coordinate on P-521 */
    KID_BYTES_MAX = 256,
    TRIES_MAX = 4, /* keys that are tried for one token */
};

typedef enum KeyKind { KIND_RSA, KIND_P256, KIND_P384, KIND_P521 } KeyKind;

static const struct {
    Slice alg;
    KeyKind kind;
} ALGS[] = {
    {SLICE_INIT("RS256"), KIND_RSA},  {SLICE_INIT("RS384"), KIND_RSA},
    {SLICE_INIT("RS512"), KIND_RSA},  {SLICE_INIT("PS256"), KIND_RSA},
    {SLICE_INIT("PS384"), KIND_RSA},  {SLICE_INIT("PS512"), KIND_RSA},
    {SLICE_INIT("ES256"), KIND_P256}, {SLICE_INIT("ES384"), KIND_P384},
    {SLICE_INIT("ES512"), KIND_P521},
};

typedef struct IdentityKey {
    KeyKind kind;
    Slice kid; /* empty if it has none */
    Slice alg; /* the only one that it is for; empty for all of its kind */
    cjose_jwk_t *jwk;
} IdentityKey;

struct IdentityKeys {
    Cjose cjose;
    Arena arena;
    IdentityKey keys[IDENTITY_KEYS_MAX];
    size_t count;
};

static const KeyKind *find_alg(Slice alg)
{
    for (size_t i = 0; i < ARRAY_COUNT(ALGS); i++) {
        if (slice_equal(alg, ALGS[i].alg))
            return &ALGS[i].kind;
    }
    return NULL;
}

bool identity_alg_is_known(Slice alg)
{
    return find_alg(alg) != NULL;
}

/* ---- reading a set ---- */

static Status load_cjose(Cjose *cjose, Error *err)
{
#define ROW(name) {"cjose_" #name, offsetof(Cjose, name)},
    static const LibraryFunction FUNCTIONS[] = {CJOSE_FUNCTIONS(ROW)};
#undef ROW
    Error cause;
    if (shared_library_load(CJOSE_LIBRARY, FUNCTIONS, ARRAY_COUNT(FUNCTIONS), cjose, &cause) !=
        STATUS_OK)
        return error_set(err, STATUS_INTERNAL, SUB_NONE,
                         "identity tokens need the library libcjose0: %s", cause.message);
    return STATUS_OK;
}

static Slice get_text(Json object, const char *name)
{
    Json value = json_get(object, slice_from_cstr(name));
    return json_is(value, JSON_STRING) ? json_string(value) : SLICE_EMPTY;
}

/* Whether a member is base64url of a number that is not too large. */
static bool is_number(Slice text, size_t len_max)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool good = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '_';
        if (!good)
            return false;
    }
    return text.len > 0 && text.len <= len_max;
}

static bool curve_kind(Slice curve, KeyKind *out)
{
    static const Slice curves[] = {[KIND_P256] = SLICE_INIT("P-256"),
                                   [KIND_P384] = SLICE_INIT("P-384"),
                                   [KIND_P521] = SLICE_INIT("P-521")};
    for (int i = KIND_P256; i <= KIND_P521; i++) {
        if (slice_equal(curve, curves[i])) {
            *out = (KeyKind)i;
            return true;
        }
    }
    return false;
}

/* The text of the key with nothing but what is needed and was checked; empty if it cannot be used.
 */
static Slice minimal_text(Arena *arena, Json json, KeyKind *kind)
{
    Slice type = get_text(json, "kty");
    Slice n = get_text(json, "n");
    Slice e = get_text(json, "e");
    Slice x = get_text(json, "x");
    Slice y = get_text(json, "y");
    Slice curve = get_text(json, "crv");
    *kind = KIND_RSA;
    if (slice_equal(type, SLICE("RSA")) && is_number(n, MODULUS_TEXT_MAX) &&
        is_number(e, EXPONENT_TEXT_MAX))
        return arena_format(arena, "{\"kty\":\"RSA\",\"n\":\"%.*s\",\"e\":\"%.*s\"}", SLICE_ARG(n),
                            SLICE_ARG(e));
    if (slice_equal(type, SLICE("EC")) && curve_kind(curve, kind) && is_number(x, POINT_TEXT_MAX) &&
        is_number(y, POINT_TEXT_MAX))
        return arena_format(arena,
                            "{\"kty\":\"EC\",\"crv\":\"%.*s\",\"x\":\"%.*s\",\"y\":\"%.*s\"}",
                            SLICE_ARG(curve), SLICE_ARG(x), SLICE_ARG(y));
    return SLICE_EMPTY;
}

static void add_key(IdentityKeys *keys, Json json)
{
    Slice use = get_text(json, "use");
    Slice kid = get_text(json, "kid");
    Slice alg = get_text(json, "alg");
    KeyKind kind = KIND_RSA;
    Slice text = minimal_text(&keys->arena, json, &kind);
    const KeyKind *alg_kind = find_alg(alg);
    bool is_for_this = (use.len == 0 || slice_equal(use, SLICE("sig"))) &&
                       (alg.len == 0 || (alg_kind != NULL && *alg_kind == kind));
    if (text.len == 0 || !is_for_this || kid.len > KID_BYTES_MAX)
        return;
    cjose_err ignored; /* a key that cannot be used is left out */
    cjose_jwk_t *jwk = keys->cjose.jwk_import(text.ptr, text.len, &ignored);
    if (jwk == NULL)
        return;
    size_t bits = keys->cjose.jwk_get_keysize(jwk, &ignored);
    if (kind == KIND_RSA && (bits < RSA_BITS_MIN || bits > RSA_BITS_MAX)) {
        (void)keys->cjose.jwk_release(jwk);
        return;
    }
    keys->keys[keys->count++] = (IdentityKey){
        .kind = kind,
        .kid = arena_copy(&keys->arena, kid),
        .alg = arena_copy(&keys->arena, alg),
        .jwk = jwk,
    };
}

Status identity_keys_parse(Slice text, IdentityKeys **out, Error *err)
{
    AUTO(arena_done) Arena scratch;
    arena_init(&scratch, 4096);
    if (text.len > IDENTITY_KEYS_BYTES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "the key set has more than %zu bytes",
                         IDENTITY_KEYS_BYTES_MAX);
    Json json;
    TRY(json_parse(&scratch, text, &json, err));
    Json list = json_get(json, SLICE("keys"));
    if (!json_is(list, JSON_ARRAY) || json_count(list) > IDENTITY_KEYS_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "it is no JSON Web Key Set: expected an object whose 'keys' is an array "
                         "of at most %d keys",
                         IDENTITY_KEYS_MAX);
    AUTO(identity_keys_close) IdentityKeys *keys = MEM_NEW(IdentityKeys);
    arena_init(&keys->arena, 4096);
    TRY(load_cjose(&keys->cjose, err));
    for (JsonIter it = json_iter(list); json_next(&it);)
        add_key(keys, it.value);
    if (keys->count == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the key set has no public key for signatures: RSA of %d to %d bits, or "
                         "EC on P-256, P-384 or P-521",
                         RSA_BITS_MIN, RSA_BITS_MAX);
    *out = TAKE(keys);
    return STATUS_OK;
}

void identity_keys_close(IdentityKeys *keys)
{
    if (keys == NULL)
        return;
    for (size_t i = 0; i < keys->count; i++)
        (void)keys->cjose.jwk_release(keys->keys[i].jwk);
    arena_done(&keys->arena);
    mem_free(keys);
}

size_t identity_keys_count(const IdentityKeys *keys)
{
    return keys->count;
}

/* ---- verifying ---- */

static bool verify(const Cjose *cjose, const IdentityKey *key, Slice token, Slice alg)
{
    cjose_err ignored;
    cjose_jws_t *jws = cjose->jws_import(token.ptr, token.len, &ignored);
    if (jws == NULL) {
        ERR_clear_error();
        return false;
    }
    /* The library reads the header by itself. It must have found the same there as we have. */
    const char *found = cjose->header_get(cjose->jws_get_protected(jws), "alg", &ignored);
    bool good = found != NULL && slice_equal(slice_from_cstr(found), alg) &&
                cjose->jws_verify(jws, key->jwk, &ignored);
    cjose->jws_release(jws);
    ERR_clear_error(); /* or TLS on this thread would take it for its own */
    return good;
}

IdentityVerdict identity_keys_verify(const IdentityKeys *keys, Slice token, Slice alg, Slice kid)
{
    const KeyKind *kind = find_alg(alg);
    if (kind == NULL)
        return IDENTITY_FORGED;
    size_t tries = 0;
    for (size_t i = 0; i < keys->count && tries < TRIES_MAX; i++) {
        const IdentityKey *key = &keys->keys[i];
        if (key->kind != *kind || (kid.len > 0 && !slice_equal(key->kid, kid)) ||
            (key->alg.len > 0 && !slice_equal(key->alg, alg)))
            continue;
        tries++;
        if (verify(&keys->cjose, key, token, alg))
            return IDENTITY_GENUINE;
    }
    return tries == 0 ? IDENTITY_UNKNOWN_KEY : IDENTITY_FORGED;
}
