/* identity_token_fuzz.c - any text as an identity token, and any claims in one that is signed:
 * never accepted without a signature, never anything but a refusal or sound claims.
 *
 * The first byte of an input chooses what the rest is: a token, the claims of a token in the form
 * of the emulators, or a key set.
 */
#include "api/core/identity_token.h"

#include "api/core/identity_testing_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW_S 1700000000

/* A public key whose private half is nowhere. */
#define KEY_SET                                                   \
    "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"k\"," \
    "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","      \
    "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}]}"

static const IdentityRules RULES = {
    .issuer = SLICE_INIT("https://issuer.example"),
    .audiences = SLICE_INIT("a,b"),
    .readers = SLICE_INIT("r"),
    .contributors = SLICE_INIT("c"),
};
static const IdentityRules NO_RULES;

static void check_one(const IdentityRules *rules, const IdentityKeys *keys, const AuthKeys *account,
                      Slice token, bool may_be_good, Arena *arena)
{
    IdentityCheck check = {.rules = rules, .keys = keys, .account_keys = account, .now_s = NOW_S};
    IdentityClaims claims;
    Error err = {0};
    Status status = identity_token_check(&check, token, arena, &claims, &err);
    if (status != STATUS_OK) {
        ASSERT(status == STATUS_UNAUTHORIZED);
        ASSERT(err.message[0] != '\0');
        ASSERT(sub_number(err.sub) >= 5002);
        return;
    }
    ASSERT(may_be_good);
    ASSERT(claims.oid.len > 0);
    ASSERT(claims.oid.len <= IDENTITY_OID_BYTES_MAX);
    ASSERT(claims.role == IDENTITY_CONTRIBUTOR);
    ASSERT(identity_is_current(claims.from_s, claims.to_s, NOW_S));
}

static AuthKeys *account_of(Slice key)
{
    AuthKeys *keys = NULL;
    Error err;
    Status status = auth_keys_open((AuthKeyTexts){.primary = key}, &keys, &err);
    ASSERT(status == STATUS_OK);
    return keys;
}

static Slice emulators(Arena *arena, Slice claims)
{
    Slice c = test_base64url_text(arena, claims);
    Slice key = test_base64url_text(arena, SLICE(AUTH_DEVELOPMENT_KEY));
    return arena_format(arena, "e30.%.*s.%.*s", SLICE_ARG(c), SLICE_ARG(key));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(auth_keys_close) AuthKeys *development = account_of(SLICE(AUTH_DEVELOPMENT_KEY));
    AUTO(auth_keys_close) AuthKeys *own = account_of(SLICE("b3du"));
    AUTO(identity_keys_close) IdentityKeys *keys = NULL;
    Error err = {0};
    Slice rest = slice_make(data + 1, size - 1);
    Status status = identity_keys_parse(SLICE(KEY_SET), &keys, &err);
    ASSERT(status == STATUS_OK);
    switch (data[0] % 3) {
    case 0:
        check_one(&RULES, keys, own, rest, false, &arena);
        check_one(&NO_RULES, NULL, own, rest, false, &arena);
        check_one(&RULES, keys, development, rest, true, &arena); /* as a seed is */
        break;
    case 1:
        check_one(&NO_RULES, NULL, development, emulators(&arena, rest), true, &arena);
        check_one(&RULES, keys, own, emulators(&arena, rest), false, &arena);
        break;
    default: {
        AUTO(identity_keys_close) IdentityKeys *set = NULL;
        if (identity_keys_parse(rest, &set, &err) == STATUS_OK)
            ASSERT(identity_keys_count(set) > 0);
        else
            ASSERT(err.message[0] != '\0');
        break;
    }
    }
    return 0;
}
