/* identity_keys_test.c - key sets, and signatures of every kind, right and wrong. */
#include "api/core/identity_keys.h"

#include "api/core/identity_testing_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct Pairs {
    Arena arena;
    EVP_PKEY *rsa, *other_rsa, *weak_rsa, *p256, *p384, *p521;
} Pairs;

static int pairs_open(void **state)
{
    Pairs *p = MEM_NEW(Pairs);
    arena_init(&p->arena, 4096);
    p->rsa = test_key(NULL, 2048);
    p->other_rsa = test_key(NULL, 2048);
    p->weak_rsa = test_key(NULL, 1024);
    p->p256 = test_key("P-256", 0);
    p->p384 = test_key("P-384", 0);
    p->p521 = test_key("P-521", 0);
    *state = p;
    return 0;
}

static int pairs_close(void **state)
{
    Pairs *p = *state;
    EVP_PKEY *keys[] = {p->rsa, p->other_rsa, p->weak_rsa, p->p256, p->p384, p->p521};
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
        EVP_PKEY_free(keys[i]);
    arena_done(&p->arena);
    mem_free(p);
    return 0;
}

static Slice jwk(Pairs *p, EVP_PKEY *key, const char *curve, const char *more)
{
    return test_jwk(&p->arena, key, curve, more);
}

static IdentityKeys *parse_good(Slice text)
{
    IdentityKeys *keys = NULL;
    Error err = {0};
    if (identity_keys_parse(text, &keys, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    return keys;
}

static IdentityVerdict verify(Pairs *p, const IdentityKeys *keys, EVP_PKEY *key, const char *alg,
                              const char *kid)
{
    Slice header = arena_format(&p->arena, "{\"alg\":\"%s\",\"kid\":\"%s\"}", alg, kid);
    Slice token = test_token(&p->arena, key, alg, header, SLICE("{}"));
    return identity_keys_verify(keys, token, slice_from_cstr(alg), slice_from_cstr(kid));
}

static void every_kind_of_signature_is_verified(void **state)
{
    Pairs *p = *state;
    Slice rsa = jwk(p, p->rsa, NULL, "\"kid\":\"r\",\"use\":\"sig\"");
    Slice e1 = jwk(p, p->p256, "P-256", "\"kid\":\"e1\"");
    Slice e2 = jwk(p, p->p384, "P-384", "\"kid\":\"e2\"");
    Slice e3 = jwk(p, p->p521, "P-521", "\"kid\":\"e3\",\"alg\":\"ES512\"");
    Slice text = arena_format(&p->arena, "{\"keys\":[%.*s,%.*s,%.*s,%.*s]}", SLICE_ARG(rsa),
                              SLICE_ARG(e1), SLICE_ARG(e2), SLICE_ARG(e3));
    AUTO(identity_keys_close) IdentityKeys *keys = parse_good(text);
    assert_int_equal(identity_keys_count(keys), 4);
    const struct {
        EVP_PKEY *key;
        const char *alg, *kid;
        IdentityVerdict verdict;
    } rows[] = {
        {p->rsa, "RS256", "r", IDENTITY_GENUINE},
        {p->rsa, "RS384", "r", IDENTITY_GENUINE},
        {p->rsa, "RS512", "r", IDENTITY_GENUINE},
        {p->rsa, "PS256", "r", IDENTITY_GENUINE},
        {p->rsa, "PS384", "r", IDENTITY_GENUINE},
        {p->rsa, "PS512", "r", IDENTITY_GENUINE},
        {p->p256, "ES256", "e1", IDENTITY_GENUINE},
        {p->p384, "ES384", "e2", IDENTITY_GENUINE},
        {p->p521, "ES512", "e3", IDENTITY_GENUINE},
        {p->rsa, "RS256", "", IDENTITY_GENUINE}, /* without a kid all are tried */
        {p->other_rsa, "RS256", "", IDENTITY_FORGED},
        {p->other_rsa, "RS256", "r", IDENTITY_FORGED},
        {p->rsa, "RS256", "R", IDENTITY_UNKNOWN_KEY},
        {p->rsa, "RS256", "e1", IDENTITY_UNKNOWN_KEY}, /* a key of another kind */
        {p->p256, "ES256", "r", IDENTITY_UNKNOWN_KEY},
        {p->p256, "ES256", "e2", IDENTITY_UNKNOWN_KEY}, /* a curve of another kind */
        {p->rsa, "RS256", "../../../../etc/passwd", IDENTITY_UNKNOWN_KEY},
        {p->rsa, "RS256", "r' OR '1'='1", IDENTITY_UNKNOWN_KEY},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (verify(p, keys, rows[i].key, rows[i].alg, rows[i].kid) != rows[i].verdict)
            fail_msg("row %zu: %s with kid '%s'", i, rows[i].alg, rows[i].kid);
    }
}

static void a_public_key_is_never_a_shared_secret(void **state)
{
    Pairs *p = *state;
    Slice rsa = jwk(p, p->rsa, NULL, "\"kid\":\"r\"");
    Slice text = arena_format(&p->arena, "{\"keys\":[%.*s]}", SLICE_ARG(rsa));
    AUTO(identity_keys_close) IdentityKeys *keys = parse_good(text);
    static const char *const algs[] = {"none", "None", "HS256", "HS512", "", "rs256", "dir"};
    for (size_t i = 0; i < ARRAY_COUNT(algs); i++) {
        Slice header = arena_format(&p->arena, "{\"alg\":\"%s\",\"kid\":\"r\"}", algs[i]);
        /* Signed well, and with the name of another kind in its header. */
        Slice token = test_token(&p->arena, p->rsa, "RS256", header, SLICE("{}"));
        assert_false(identity_alg_is_known(slice_from_cstr(algs[i])));
        assert_int_equal(identity_keys_verify(keys, token, slice_from_cstr(algs[i]), SLICE("r")),
                         IDENTITY_FORGED);
        /* We read one thing in the header and the library another. */
        assert_int_equal(identity_keys_verify(keys, token, SLICE("RS256"), SLICE("r")),
                         IDENTITY_FORGED);
    }
}

static void every_changed_character_is_found(void **state)
{
    Pairs *p = *state;
    Slice rsa = jwk(p, p->p256, "P-256", "");
    Slice text = arena_format(&p->arena, "{\"keys\":[%.*s]}", SLICE_ARG(rsa));
    AUTO(identity_keys_close) IdentityKeys *keys = parse_good(text);
    Slice token =
        test_token(&p->arena, p->p256, "ES256", SLICE("{\"alg\":\"ES256\"}"), SLICE("{\"a\":1}"));
    char *copy = arena_cstr(&p->arena, token);
    /* Not the last one: some of its bits are not used. */
    for (size_t i = 0; i + 1 < token.len; i++) {
        char was = copy[i];
        copy[i] = (char)(was == 'A' ? 'B' : 'A');
        assert_int_equal(
            identity_keys_verify(keys, slice_make(copy, token.len), SLICE("ES256"), SLICE_EMPTY),
            IDENTITY_FORGED);
        copy[i] = was;
    }
    for (size_t len = 0; len < token.len; len++)
        assert_int_equal(
            identity_keys_verify(keys, slice_first(token, len), SLICE("ES256"), SLICE_EMPTY),
            IDENTITY_FORGED);
}

static void only_keys_that_can_be_used_are_taken(void **state)
{
    Pairs *p = *state;
    const struct {
        Slice key;
        bool is_good;
    } rows[] = {
        {jwk(p, p->rsa, NULL, ""), true},
        {jwk(p, p->rsa, NULL, "\"alg\":\"PS256\""), true},
        {jwk(p, p->weak_rsa, NULL, ""), false},
        {jwk(p, p->rsa, NULL, "\"use\":\"enc\""), false},
        {jwk(p, p->rsa, NULL, "\"alg\":\"RSA-OAEP\""), false},
        {jwk(p, p->rsa, NULL, "\"alg\":\"HS256\""), false},
        {jwk(p, p->rsa, NULL, "\"alg\":\"ES256\""), false},
        {jwk(p, p->p256, "P-384", ""), false},
        {jwk(p, p->p256, "secp256k1", ""), false},
        {SLICE("{\"kty\":\"oct\",\"k\":\"AAAA\"}"), false},
        {SLICE("{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}"), false},
        {SLICE("{\"kty\":\"RSA\",\"n\":5,\"e\":\"AQAB\"}"), false},
        {SLICE("{\"kty\":\"RSA\"}"), false},
        {SLICE("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAA\",\"y\":\"AAAA\"}"), false},
        {SLICE("{}"), false},
        {SLICE("[]"), false},
        {SLICE("null"), false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice text = arena_format(&p->arena, "{\"keys\":[%.*s]}", SLICE_ARG(rows[i].key));
        IdentityKeys *keys = NULL;
        Error err = {0};
        Status status = identity_keys_parse(text, &keys, &err);
        if (status != (rows[i].is_good ? STATUS_OK : STATUS_BAD_REQUEST))
            fail_msg("row %zu: %s", i, err.message);
        identity_keys_close(keys);
    }
}

static void what_is_no_key_set_is_refused(void **state)
{
    Pairs *p = *state;
    char *long_text = arena_alloc(&p->arena, IDENTITY_KEYS_BYTES_MAX + 1);
    memset(long_text, ' ', IDENTITY_KEYS_BYTES_MAX + 1);
    const Slice rows[] = {
        SLICE_EMPTY,
        SLICE("{"),
        SLICE("[]"),
        SLICE("{\"keys\":{}}"),
        SLICE("{\"keys\":[]}"),
        SLICE("-----BEGIN CERTIFICATE-----"),
        slice_make(long_text, IDENTITY_KEYS_BYTES_MAX + 1),
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        IdentityKeys *keys = NULL;
        Error err = {0};
        assert_int_equal(identity_keys_parse(rows[i], &keys, &err), STATUS_BAD_REQUEST);
        assert_true(err.message[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_signature_is_verified),
        cmocka_unit_test(a_public_key_is_never_a_shared_secret),
        cmocka_unit_test(every_changed_character_is_found),
        cmocka_unit_test(only_keys_that_can_be_used_are_taken),
        cmocka_unit_test(what_is_no_key_set_is_refused),
    };
    return cmocka_run_group_tests(tests, pairs_open, pairs_close);
}
