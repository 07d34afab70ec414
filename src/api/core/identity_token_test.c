/* identity_token_test.c - tokens of an issuer and of emulators: every refusal is a row. */
#include "api/core/identity_token.h"

#include "api/core/identity_testing_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NOW_S  1700000000
#define ISSUER "https://issuer.example/tenant"
#define OTHER_KEY \
    "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw=="
#define EMULATOR_ORIGIN                                                             \
    "\"iss\":\"https://sts.fake-issuer.net/7b1999a1-dfd7-440e-8204-00170979b984\"," \
    "\"aud\":\"https://localhost.localhost\","
#define TIMES "\"nbf\":1700000000,\"exp\":1700003600,"
#define GOOD  "{\"iss\":\"" ISSUER "\",\"aud\":\"https://cosmos.azure.com\"," TIMES

typedef struct World {
    Arena arena;
    EVP_PKEY *pair;
    IdentityKeys *keys;
    AuthKeys *own;         /* of an account with a key of its own */
    AuthKeys *development; /* of one with the well-known key */
    AuthKeys *read_only;   /* of one whose read-only key is the well-known one */
} World;

static const IdentityRules RULES = {
    .issuer = SLICE_INIT(ISSUER),
    .audiences = SLICE_INIT("https://orrery.example/, https://cosmos.azure.com"),
    .readers = SLICE_INIT("group-r, person-r"),
    .contributors = SLICE_INIT("app-c,person-c"),
};
static const IdentityRules NO_RULES;

static AuthKeys *account(AuthKeyTexts texts)
{
    AuthKeys *keys = NULL;
    Error err;
    assert_int_equal(auth_keys_open(texts, &keys, &err), STATUS_OK);
    return keys;
}

static int world_open(void **state)
{
    World *w = MEM_NEW(World);
    Error err = {0};
    arena_init(&w->arena, 4096);
    w->pair = test_key("P-256", 0);
    Slice key = test_jwk(&w->arena, w->pair, "P-256", "\"kid\":\"k\"");
    Slice text = arena_format(&w->arena, "{\"keys\":[%.*s]}", SLICE_ARG(key));
    if (identity_keys_parse(text, &w->keys, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    w->own = account((AuthKeyTexts){.primary = SLICE(OTHER_KEY)});
    w->development = account(
        (AuthKeyTexts){.primary = SLICE(OTHER_KEY), .secondary = SLICE(AUTH_DEVELOPMENT_KEY)});
    w->read_only = account((AuthKeyTexts){.primary = SLICE(OTHER_KEY),
                                          .primary_read_only = SLICE(AUTH_DEVELOPMENT_KEY)});
    *state = w;
    return 0;
}

static int world_close(void **state)
{
    World *w = *state;
    EVP_PKEY_free(w->pair);
    identity_keys_close(w->keys);
    auth_keys_close(w->own);
    auth_keys_close(w->development);
    auth_keys_close(w->read_only);
    arena_done(&w->arena);
    mem_free(w);
    return 0;
}

static Slice issued(World *w, const char *claims)
{
    return test_token(&w->arena, w->pair, "ES256", SLICE("{\"alg\":\"ES256\",\"kid\":\"k\"}"),
                      slice_from_cstr(claims));
}

static Slice with_third_part(World *w, const char *header, const char *claims, const char *third)
{
    Slice h = test_base64url_text(&w->arena, slice_from_cstr(header));
    Slice c = test_base64url_text(&w->arena, slice_from_cstr(claims));
    Slice t = test_base64url_text(&w->arena, slice_from_cstr(third));
    return arena_format(&w->arena, "%.*s.%.*s.%.*s", SLICE_ARG(h), SLICE_ARG(c), SLICE_ARG(t));
}

/* As the official tests make them. */
static Slice emulators(World *w, const char *claims)
{
    return with_third_part(w, "{\"typ\": \"JWT\",\t\"alg\": \"RS256\",\n \"x5t\": \"C\"}", claims,
                           AUTH_DEVELOPMENT_KEY);
}

static Status check(World *w, const IdentityRules *rules, const AuthKeys *account_keys, Slice token,
                    int64_t now_s, IdentityClaims *out, Error *err)
{
    IdentityCheck c = {.rules = rules,
                       .keys = rules->issuer.len > 0 ? w->keys : NULL,
                       .account_keys = account_keys,
                       .now_s = now_s};
    *err = (Error){0};
    return identity_token_check(&c, token, &w->arena, out, err);
}

static void expect_role(World *w, Slice token, const char *oid, IdentityRole role)
{
    IdentityClaims claims = {0};
    Error err;
    if (check(w, &RULES, w->own, token, NOW_S, &claims, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    assert_int_equal(claims.role, role);
    assert_int_equal(claims.oid.len, strlen(oid));
    assert_memory_equal(claims.oid.ptr, oid, claims.oid.len);
}

static void expect_refused(World *w, const IdentityRules *rules, const AuthKeys *account_keys,
                           Slice token, int64_t now_s, SubStatus sub, const char *words)
{
    IdentityClaims claims = {.role = IDENTITY_READER};
    Error err;
    Status status = check(w, rules, account_keys, token, now_s, &claims, &err);
    if (status != STATUS_UNAUTHORIZED || err.sub != sub || strstr(err.message, words) == NULL)
        fail_msg("expected %d with '%s' for '%.*s', found %d, %d: %s", sub_number(sub), words,
                 SLICE_ARG(token), status, sub_number(err.sub), err.message);
    assert_int_equal(claims.role, IDENTITY_READER);         /* nothing was written */
    assert_null(strstr(err.message, AUTH_DEVELOPMENT_KEY)); /* no message has a secret */
}

static void roles_come_from_claims_and_from_lists(void **state)
{
    World *w = *state;
    static const struct {
        const char *claims;
        const char *oid;
        IdentityRole role;
    } rows[] = {
        {GOOD "\"oid\":\"o\",\"roles\":[\"reader\"]}", "o", IDENTITY_READER},
        {GOOD "\"oid\":\"o\",\"roles\":[\"Contributor\"]}", "o", IDENTITY_CONTRIBUTOR},
        {GOOD "\"oid\":\"o\",\"roles\":\"reader\"}", "o", IDENTITY_READER},
        {GOOD "\"oid\":\"o\",\"roles\":[\"reader\",\"contributor\"]}", "o", IDENTITY_CONTRIBUTOR},
        {GOOD "\"oid\":\"o\",\"roles\":[\"00000000-0000-0000-0000-000000000001\"]}", "o",
         IDENTITY_READER},
        {GOOD "\"oid\":\"o\",\"roles\":[1,{},[\"reader\"],"
              "\"00000000-0000-0000-0000-000000000002\"]}",
         "o", IDENTITY_CONTRIBUTOR},
        {GOOD "\"oid\":\"o\",\"roles\":[\"admin\",\"readers\",\"\"]}", "o", IDENTITY_NONE},
        {GOOD "\"oid\":\"o\",\"roles\":{\"reader\":true}}", "o", IDENTITY_NONE},
        {GOOD "\"oid\":\"o\"}", "o", IDENTITY_NONE},
        {GOOD "\"oid\":\"person-r\"}", "person-r", IDENTITY_READER},
        {GOOD "\"oid\":\"person-c\"}", "person-c", IDENTITY_CONTRIBUTOR},
        {GOOD "\"oid\":\"PERSON-C\"}", "PERSON-C", IDENTITY_NONE},
        {GOOD "\"oid\":\"o\",\"appid\":\"app-c\"}", "o", IDENTITY_CONTRIBUTOR},
        {GOOD "\"appid\":\"app-c\"}", "app-c", IDENTITY_CONTRIBUTOR},
        {GOOD "\"azp\":\"app-c\"}", "app-c", IDENTITY_CONTRIBUTOR},
        {GOOD "\"oid\":\"o\",\"groups\":[\"x\",\"group-r\"]}", "o", IDENTITY_READER},
        {GOOD "\"oid\":\"o\",\"groups\":[\"group-r, person-r\"]}", "o", IDENTITY_NONE},
        {GOOD "\"oid\":\"o\",\"groups\":[\"\"]}", "o", IDENTITY_NONE},
        {GOOD "\"oid\":\"o\",\"roles\":[\"reader\"],\"groups\":[\"person-c\"]}", "o",
         IDENTITY_CONTRIBUTOR},
        {GOOD "\"oid\":\"o\",\"scp\":\"other user_impersonation\"}", "o", IDENTITY_NONE},
        /* Of two the last one counts. */
        {GOOD "\"oid\":\"person-c\",\"oid\":\"o\"}", "o", IDENTITY_NONE},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        expect_role(w, issued(w, rows[i].claims), rows[i].oid, rows[i].role);
}

static void what_is_wrong_with_a_token_is_said(void **state)
{
    World *w = *state;
#define FROM "{\"iss\":\"" ISSUER "\","
#define FOR  "\"aud\":\"https://cosmos.azure.com\","
    static const struct {
        const char *claims;
        SubStatus sub;
        const char *words;
    } rows[] = {
        {"{" FOR TIMES "\"oid\":\"o\"}", SUB_IDENTITY_ISSUER, "issued by ''"},
        {"{\"iss\":\"" ISSUER "/\"," FOR TIMES "\"oid\":\"o\"}", SUB_IDENTITY_ISSUER, ISSUER},
        {"{\"iss\":[\"" ISSUER "\"]," FOR TIMES "\"oid\":\"o\"}", SUB_IDENTITY_ISSUER, ISSUER},
        {"{" EMULATOR_ORIGIN TIMES "\"oid\":\"o\"}", SUB_IDENTITY_ISSUER, "fake-issuer"},
        {FROM TIMES "\"oid\":\"o\"}", SUB_IDENTITY_AUDIENCE, "made for ''"},
        {FROM TIMES "\"aud\":\"https://cosmos.azure.com/x\",\"oid\":\"o\"}", SUB_IDENTITY_AUDIENCE,
         "azure.com/x"},
        {FROM TIMES "\"aud\":[\"a\",5],\"oid\":\"o\"}", SUB_IDENTITY_AUDIENCE, "not for"},
        {FROM TIMES "\"aud\":\"\",\"oid\":\"o\"}", SUB_IDENTITY_AUDIENCE, "not for"},
        {FROM FOR "\"oid\":\"o\"}", SUB_IDENTITY_MALFORMED, "'exp'"},
        {FROM FOR "\"exp\":\"1700003600\",\"oid\":\"o\"}", SUB_IDENTITY_MALFORMED, "'exp'"},
        {FROM FOR "\"exp\":true,\"oid\":\"o\"}", SUB_IDENTITY_MALFORMED, "'exp'"},
        {FROM FOR "\"exp\":1e300,\"oid\":\"o\"}", SUB_IDENTITY_MALFORMED, "'exp'"},
        {FROM FOR "\"exp\":9223372036854775807,\"oid\":\"o\"}", SUB_IDENTITY_MALFORMED, "'exp'"},
        {FROM FOR "\"exp\":1700003600,\"nbf\":\"0\",\"oid\":\"o\"}", SUB_IDENTITY_MALFORMED,
         "'nbf'"},
        {FROM FOR "\"exp\":1700003600,\"nbf\":null,\"oid\":\"o\"}", SUB_IDENTITY_MALFORMED,
         "'nbf'"},
        {FROM FOR "\"exp\":-1,\"oid\":\"o\"}", SUB_IDENTITY_EXPIRED, "31 Dec 1969 23:59:59"},
        {FROM FOR "\"exp\":0,\"oid\":\"o\"}", SUB_IDENTITY_EXPIRED, "has expired"},
        {FROM FOR "\"exp\":1699999699,\"oid\":\"o\"}", SUB_IDENTITY_EXPIRED, "has expired"},
        {FROM FOR "\"exp\":1700003600,\"exp\":1,\"oid\":\"o\"}", SUB_IDENTITY_EXPIRED,
         "has expired"},
        {FROM FOR "\"exp\":1800000000,\"nbf\":1700000301,\"oid\":\"o\"}",
         SUB_IDENTITY_NOT_YET_VALID, "not valid before"},
        {GOOD "\"oid\":\"o\",\"scp\":\"openid\"}", SUB_IDENTITY_SCOPE, "user_impersonation"},
        {GOOD "\"oid\":\"o\",\"scp\":5}", SUB_IDENTITY_SCOPE, "user_impersonation"},
        {GOOD "\"sub\":\"o\"}", SUB_IDENTITY_NO_OID, "'oid'"},
        {GOOD "\"oid\":\"\"}", SUB_IDENTITY_NO_OID, "'oid'"},
        {GOOD "\"oid\":7}", SUB_IDENTITY_NO_OID, "'oid'"},
        {GOOD "\"oid\":\"\xc3\xb6\"}", SUB_IDENTITY_NO_OID, "'oid'"},
        {GOOD "\"oid\":\"a\\r\\nx: y\"}", SUB_IDENTITY_NO_OID, "'oid'"},
        {GOOD "\"oid\":\"\\u0000\"}", SUB_IDENTITY_NO_OID, "'oid'"},
        {"[]", SUB_IDENTITY_MALFORMED, "claims"},
        {"{", SUB_IDENTITY_MALFORMED, "claims"},
        {"\xff", SUB_IDENTITY_MALFORMED, "claims"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        expect_refused(w, &RULES, w->own, issued(w, rows[i].claims), NOW_S, rows[i].sub,
                       rows[i].words);
}

static void a_token_is_valid_with_the_skew_on_both_sides(void **state)
{
    World *w = *state;
    Slice token = issued(w, GOOD "\"oid\":\"o\"}");
    static const struct {
        int64_t now_s;
        SubStatus sub; /* SUB_NONE if it is good */
    } rows[] = {
        {NOW_S - 301, SUB_IDENTITY_NOT_YET_VALID},
        {NOW_S - 300, SUB_NONE},
        {NOW_S + 3600 + 300, SUB_NONE},
        {NOW_S + 3600 + 301, SUB_IDENTITY_EXPIRED},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        IdentityClaims claims = {0};
        Error err = {0};
        Status status = check(w, &RULES, w->own, token, rows[i].now_s, &claims, &err);
        assert_int_equal(status, rows[i].sub == SUB_NONE ? STATUS_OK : STATUS_UNAUTHORIZED);
        assert_int_equal(err.sub, rows[i].sub);
    }
    /* A fraction is allowed, and 'nbf' need not be there. */
    expect_role(w,
                issued(w, "{\"iss\":\"" ISSUER "\",\"aud\":[\"x\",\"https://orrery.example/\"],"
                          "\"exp\":1700000000.5,\"oid\":\"o\"}"),
                "o", IDENTITY_NONE);
}

static void a_forged_token_is_not_read_any_further(void **state)
{
    World *w = *state;
    const char *claims = GOOD "\"oid\":\"o\",\"roles\":[\"contributor\"]}";
    EVP_PKEY *other = test_key("P-256", 0);
    const struct {
        const char *header;
        SubStatus sub;
        const char *words;
    } rows[] = {
        {"{\"alg\":\"ES256\",\"kid\":\"k\"}", SUB_IDENTITY_SIGNATURE, "signature"},
        {"{\"alg\":\"ES256\"}", SUB_IDENTITY_SIGNATURE, "signature"},
        {"{\"alg\":\"ES256\",\"kid\":\"other\"}", SUB_IDENTITY_UNKNOWN_KEY, "'other'"},
        {"{\"alg\":\"RS256\",\"kid\":\"k\"}", SUB_IDENTITY_UNKNOWN_KEY, "'k'"},
        {"{\"alg\":\"none\"}", SUB_IDENTITY_SIGNATURE, "'none'"},
        {"{\"alg\":\"HS256\",\"kid\":\"k\"}", SUB_IDENTITY_SIGNATURE, "'HS256'"},
        {"{\"kid\":\"k\"}", SUB_IDENTITY_SIGNATURE, "''"},
        {"{\"alg\":[\"ES256\"],\"kid\":\"k\"}", SUB_IDENTITY_SIGNATURE, "''"},
        {"{\"alg\":\"none\",\"alg\":\"ES256\",\"kid\":\"k\"}", SUB_IDENTITY_SIGNATURE, "wrong"},
        {"{\"alg\":\"ES256\",\"crit\":[\"b64\"],\"b64\":false}", SUB_IDENTITY_MALFORMED, "crit"},
        {"{\"alg\":\"ES256\",\"jwk\":{},\"jku\":\"http://evil\"}", SUB_IDENTITY_SIGNATURE, "wrong"},
        {"5", SUB_IDENTITY_MALFORMED, "header"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice token = test_token(&w->arena, other, "ES256", slice_from_cstr(rows[i].header),
                                 slice_from_cstr(claims));
        expect_refused(w, &RULES, w->own, token, NOW_S, rows[i].sub, rows[i].words);
    }
    EVP_PKEY_free(other);
    /* The emulators' convention is nothing to an account with a key of its own, whichever the third
     * part is. */
    const char *fake = "{" EMULATOR_ORIGIN TIMES "\"oid\":\"o\"}";
    Slice own = with_third_part(w, "{\"alg\":\"RS256\"}", fake, OTHER_KEY);
    expect_refused(w, &RULES, w->own, own, NOW_S, SUB_IDENTITY_UNKNOWN_KEY, "");
    expect_refused(w, &RULES, w->own, emulators(w, fake), NOW_S, SUB_IDENTITY_UNKNOWN_KEY, "");
    expect_refused(w, &RULES, w->development, own, NOW_S, SUB_IDENTITY_UNKNOWN_KEY, "");
}

static void other_text_is_malformed(void **state)
{
    World *w = *state;
    char *deep = arena_alloc(&w->arena, 8000);
    memset(deep, '[', 8000);
    Slice nested = test_base64url(&w->arena, deep, 8000);
    char *long_text = arena_alloc(&w->arena, IDENTITY_TOKEN_BYTES_MAX + 1);
    memset(long_text, 'A', IDENTITY_TOKEN_BYTES_MAX + 1);
    const Slice rows[] = {
        SLICE_EMPTY,
        SLICE("."),
        SLICE(".."),
        SLICE("e30.e30."),
        SLICE("e30.e30"),
        SLICE("e30.e30.AAAA.AAAA"),
        SLICE("e30=.e30.AAAA"),
        SLICE("e3+.e30.AAAA"),
        SLICE("e30.e30.A"),
        SLICE("null"),
        slice_make(long_text, IDENTITY_TOKEN_BYTES_MAX + 1),
        arena_format(&w->arena, "e30.%.*s.AAAA", SLICE_ARG(nested)),
        arena_format(&w->arena, "%.*s.e30.AAAA", SLICE_ARG(nested)),
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        expect_refused(w, &RULES, w->own, rows[i], NOW_S, SUB_IDENTITY_MALFORMED, "malformed");
        expect_refused(w, &NO_RULES, w->development, rows[i], NOW_S, SUB_IDENTITY_MALFORMED, "");
    }
}

static void tokens_of_emulators_are_good_with_the_development_key_only(void **state)
{
    World *w = *state;
    const char *claims =
        "{" EMULATOR_ORIGIN TIMES "\"oid\": \"96313034-4739-43cb-93cd-74193adbe5b6\",\n"
        "\t\"scp\": \"user_impersonation\", \"groups\": [\"g\"]}";
    Slice good = emulators(w, claims);
    IdentityClaims out = {0};
    Error err;
    if (check(w, &NO_RULES, w->development, good, NOW_S, &out, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    assert_int_equal(out.role, IDENTITY_CONTRIBUTOR);
    assert_memory_equal(out.oid.ptr, "96313034-4739-43cb-93cd-74193adbe5b6", 36);
    assert_int_equal(check(w, &RULES, w->development, good, NOW_S, &out, &err), STATUS_OK);

    expect_refused(w, &NO_RULES, w->own, good, NOW_S, SUB_IDENTITY_OFF, "--identity-issuer");
    expect_refused(w, &NO_RULES, w->read_only, good, NOW_S, SUB_IDENTITY_OFF, "--identity-issuer");
    Slice other = with_third_part(w, "{\"alg\":\"RS256\"}", claims, OTHER_KEY);
    expect_refused(w, &NO_RULES, w->development, other, NOW_S, SUB_IDENTITY_SIGNATURE,
                   "third part");
    static const struct {
        const char *claims;
        int64_t now_s;
        SubStatus sub;
    } rows[] = {
        {"{\"aud\":\"https://localhost.localhost\"," TIMES "\"oid\":\"o\"}", NOW_S,
         SUB_IDENTITY_ISSUER},
        {"{\"iss\":\"https://sts.fake-issuer.net/7b1999a1-dfd7-440e-8204-00170979b984\"," TIMES
         "\"aud\":\"https://127.0.0.1\",\"oid\":\"o\"}",
         NOW_S, SUB_IDENTITY_AUDIENCE},
        {"{" EMULATOR_ORIGIN TIMES "\"sub\":\"o\"}", NOW_S, SUB_IDENTITY_NO_OID},
        {"{" EMULATOR_ORIGIN TIMES "\"oid\":\"o\"}", NOW_S - 301, SUB_IDENTITY_NOT_YET_VALID},
        {"{" EMULATOR_ORIGIN TIMES "\"oid\":\"o\"}", NOW_S + 3901, SUB_IDENTITY_EXPIRED},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        expect_refused(w, &NO_RULES, w->development, emulators(w, rows[i].claims), rows[i].now_s,
                       rows[i].sub, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles_come_from_claims_and_from_lists),
        cmocka_unit_test(what_is_wrong_with_a_token_is_said),
        cmocka_unit_test(a_token_is_valid_with_the_skew_on_both_sides),
        cmocka_unit_test(a_forged_token_is_not_read_any_further),
        cmocka_unit_test(other_text_is_malformed),
        cmocka_unit_test(tokens_of_emulators_are_good_with_the_development_key_only),
    };
    return cmocka_run_group_tests(tests, world_open, world_close);
}
