/* identity_token.c - see identity_token.h.
 *
 *     token = base64url(header) "." base64url(claims) "." base64url(signature)
 *
 * Nothing of the claims is believed before the signature was verified. Of a member that occurs
 * twice the last one counts.
 */
#include "api/core/identity_token.h"

#include "base/date.h"
#include "base/encoding.h"
#include "json/json.h"

#include <openssl/crypto.h>

#define EMULATOR_ISSUER   "https://sts.fake-issuer.net/7b1999a1-dfd7-440e-8204-00170979b984"
#define EMULATOR_AUDIENCE "https://localhost.localhost"
#define EMULATOR_SCOPE    "user_impersonation"

typedef struct Token {
    Slice text; /* the whole */
    Json header;
    Json claims;
    Slice signature; /* decoded */
} Token;

/* ---- taking it apart ---- */

static Status malformed(const char *what, Error *err)
{
    return error_set(err, STATUS_UNAUTHORIZED, SUB_IDENTITY_MALFORMED,
                     "The identity token is malformed: %s.", what);
}

/* Base64 with '-' and '_', without padding. */
static bool decode_part(Arena *arena, Slice part, Slice *out)
{
    size_t padded = (part.len + 3) / 4 * 4;
    char *text = arena_alloc(arena, padded);
    for (size_t i = 0; i < padded; i++) {
        char c = i < part.len ? part.ptr[i] : '=';
        if (i < part.len && (c == '+' || c == '/' || c == '='))
            return false;
        text[i] = c;
        if (c == '-')
            text[i] = '+';
        else if (c == '_')
            text[i] = '/';
    }
    size_t len = 0;
    char *bytes = arena_alloc(arena, padded);
    if (!base64_decode(BASE64_STANDARD, slice_make(text, padded), bytes, padded, &len))
        return false;
    *out = slice_make(bytes, len);
    return true;
}

static Status parse_object(Arena *arena, Slice part, const char *what, Json *out, Error *err)
{
    Slice text;
    Error cause;
    if (!decode_part(arena, part, &text) || json_parse(arena, text, out, &cause) != STATUS_OK ||
        !json_is(*out, JSON_OBJECT))
        return malformed(what, err);
    return STATUS_OK;
}

static Status parse(Arena *arena, Slice text, Token *out, Error *err)
{
    Slice parts[3];
    Slice rest = text;
    if (text.len > IDENTITY_TOKEN_BYTES_MAX)
        return malformed("it is too long", err);
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        parts[i] = i < 2 ? slice_cut(&rest, '.') : rest;
    if (slice_find(parts[2], '.') < parts[2].len || parts[2].len == 0)
        return malformed("expected three parts with dots between them", err);
    out->text = text;
    TRY(parse_object(arena, parts[0], "its header is no JSON object in base64url", &out->header,
                     err));
    TRY(parse_object(arena, parts[1], "its claims are no JSON object in base64url", &out->claims,
                     err));
    if (!decode_part(arena, parts[2], &out->signature))
        return malformed("its signature is not base64url", err);
    return STATUS_OK;
}

static Slice get_text(Json object, const char *name)
{
    Json value = json_get(object, slice_from_cstr(name));
    return json_is(value, JSON_STRING) ? json_string(value) : SLICE_EMPTY;
}

/* ---- who has signed it ---- */

static Status check_signature(const IdentityCheck *check, const Token *token, Error *err)
{
    Slice alg = get_text(token->header, "alg");
    Slice kid = get_text(token->header, "kid");
    if (!identity_alg_is_known(alg))
        return error_set(err, STATUS_UNAUTHORIZED, SUB_IDENTITY_SIGNATURE,
                         "The identity token has a signature of the kind '%.*s'; accepted are "
                         "RS256, PS256, ES256 and the same with 384 and 512.",
                         SLICE_CUT(alg, 32));
    if (!json_is(json_get(token->header, SLICE("crit")), JSON_UNDEFINED))
        return malformed("its header has 'crit', which demands what this server does not know",
                         err);
    switch (check->keys == NULL ? IDENTITY_UNKNOWN_KEY
                                : identity_keys_verify(check->keys, token->text, alg, kid)) {
    case IDENTITY_GENUINE:
        return STATUS_OK;
    case IDENTITY_UNKNOWN_KEY:
        return error_set(err, STATUS_UNAUTHORIZED, SUB_IDENTITY_UNKNOWN_KEY,
                         "The identity token was signed with the key '%.*s' (%.*s), which is not "
                         "among those of --identity-keys.",
                         SLICE_CUT(kid, 64), SLICE_CUT(alg, 8));
    case IDENTITY_FORGED:
        break;
    }
    return error_set(err, STATUS_UNAUTHORIZED, SUB_IDENTITY_SIGNATURE,
                     "The signature of the identity token is wrong.");
}

/* Whether the well-known key is a good master key, and with it the tokens of the emulators. */
static bool takes_emulators(const IdentityCheck *check)
{
    Principal principal;
    return auth_keys_find(check->account_keys, SLICE(AUTH_DEVELOPMENT_KEY), &principal) &&
           principal.kind == PRINCIPAL_KEY;
}

/* Whether the third part is the text of that key. */
static bool is_emulators(const Token *token)
{
    static const Slice known = SLICE_INIT(AUTH_DEVELOPMENT_KEY);
    return token->signature.len == known.len &&
           CRYPTO_memcmp(token->signature.ptr, known.ptr, known.len) == 0;
}

/* ---- claims ---- */

static bool list_has(Slice list, Slice word)
{
    while (list.len > 0) {
        if (slice_equal(slice_trim(slice_cut(&list, ',')), word))
            return word.len > 0;
    }
    return false;
}

/* A claim is one text or an array of them. */
static bool claim_meets(Json claim, bool (*meets)(const void *ctx, Slice text), const void *ctx)
{
    if (json_is(claim, JSON_STRING))
        return meets(ctx, json_string(claim));
    if (!json_is(claim, JSON_ARRAY))
        return false;
    for (JsonIter it = json_iter(claim); json_next(&it);) {
        if (json_is(it.value, JSON_STRING) && meets(ctx, json_string(it.value)))
            return true;
    }
    return false;
}

static bool is_listed(const void *ctx, Slice text)
{
    return list_has(*(const Slice *)ctx, text);
}

static bool has_scope(const void *ctx, Slice text)
{
    (void)ctx;
    while (text.len > 0) {
        if (slice_equal(slice_cut(&text, ' '), SLICE(EMULATOR_SCOPE)))
            return true;
    }
    return false;
}

static bool is_reader(const void *ctx, Slice text)
{
    (void)ctx;
    return slice_equal_nocase(text, SLICE("reader")) ||
           slice_equal(text, SLICE("00000000-0000-0000-0000-000000000001"));
}

static bool is_contributor(const void *ctx, Slice text)
{
    (void)ctx;
    return slice_equal_nocase(text, SLICE("contributor")) ||
           slice_equal(text, SLICE("00000000-0000-0000-0000-000000000002"));
}

/* Seconds since 1970, perhaps with a fraction. */
static bool get_time(Json claims, const char *name, int64_t *out)
{
    Json value = json_get(claims, slice_from_cstr(name));
    if (!json_is(value, JSON_NUMBER))
        return false;
    double s = json_number(value);
    if (!(s >= (double)DATE_MIN_S && s <= (double)DATE_MAX_S))
        return false;
    *out = (int64_t)s;
    return true;
}

bool identity_is_current(int64_t from_s, int64_t to_s, int64_t now_s)
{
    return now_s >= from_s - IDENTITY_SKEW_S && now_s <= to_s + IDENTITY_SKEW_S;
}

static Status check_time(const Token *token, int64_t now_s, IdentityClaims *out, Error *err)
{
    bool has_begin = !json_is(json_get(token->claims, SLICE("nbf")), JSON_UNDEFINED);
    out->from_s = DATE_MIN_S;
    if (!get_time(token->claims, "exp", &out->to_s) ||
        (has_begin && !get_time(token->claims, "nbf", &out->from_s)))
        return malformed("'exp' must be a time in seconds since 1970, and so must 'nbf' if it is "
                         "there",
                         err);
    if (identity_is_current(out->from_s, out->to_s, now_s))
        return STATUS_OK;
    bool is_early = now_s < out->from_s;
    char time[DATE_LEN];
    char now[DATE_LEN];
    date_print(is_early ? out->from_s : out->to_s, time);
    date_print(now_s, now);
    return error_set(
        err, STATUS_UNAUTHORIZED, is_early ? SUB_IDENTITY_NOT_YET_VALID : SUB_IDENTITY_EXPIRED,
        "The identity token %s %.*s, and the time of the server is %.*s.",
        is_early ? "is not valid before" : "has expired:", DATE_LEN, time, DATE_LEN, now);
}

/* Goes into messages and logs: something like a GUID, in any case no blanks and no quotes. */
static bool is_id(Slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] <= ' ' || text.ptr[i] >= 0x7f || text.ptr[i] == '"' || text.ptr[i] == '\\')
            return false;
    }
    return text.len > 0 && text.len <= IDENTITY_OID_BYTES_MAX;
}

/* Who it is: a person or a program by its object id, else a program by its application id. */
static Status check_oid(const Token *token, Arena *arena, IdentityClaims *out, Error *err)
{
    static const char *const names[] = {"oid", "appid", "azp"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        Slice id = get_text(token->claims, names[i]);
        if (!is_id(id))
            continue;
        out->oid = arena_copy(arena, id);
        return STATUS_OK;
    }
    return error_set(err, STATUS_UNAUTHORIZED, SUB_IDENTITY_NO_OID,
                     "The identity token does not say whose it is: it needs the claim 'oid', or "
                     "'appid', of 1 to %d visible ASCII characters.",
                     IDENTITY_OID_BYTES_MAX);
}

static IdentityRole find_role(const IdentityRules *rules, const Token *token)
{
    static const char *const names[] = {"oid", "appid", "azp", "groups"};
    const Slice *lists[] = {&rules->contributors, &rules->readers};
    Json roles = json_get(token->claims, SLICE("roles"));
    bool has[] = {claim_meets(roles, is_contributor, NULL), claim_meets(roles, is_reader, NULL)};
    for (size_t list = 0; list < ARRAY_COUNT(lists); list++) {
        for (size_t i = 0; i < ARRAY_COUNT(names) && !has[list]; i++)
            has[list] = claim_meets(json_get(token->claims, slice_from_cstr(names[i])), is_listed,
                                    lists[list]);
    }
    return has[0] ? IDENTITY_CONTRIBUTOR : has[1] ? IDENTITY_READER : IDENTITY_NONE;
}

static Status check_origin(const Token *token, Slice issuer, Slice audiences, Error *err)
{
    Slice found = get_text(token->claims, "iss");
    if (!slice_equal(found, issuer))
        return error_set(err, STATUS_UNAUTHORIZED, SUB_IDENTITY_ISSUER,
                         "The identity token was issued by '%.*s', not by '%.*s'.",
                         SLICE_CUT(found, 120), SLICE_CUT(issuer, 120));
    Json audience = json_get(token->claims, SLICE("aud"));
    if (!claim_meets(audience, is_listed, &audiences))
        return error_set(err, STATUS_UNAUTHORIZED, SUB_IDENTITY_AUDIENCE,
                         "The identity token was made for '%.*s', not for '%.*s'.",
                         SLICE_CUT(get_text(token->claims, "aud"), 120), SLICE_CUT(audiences, 120));
    return STATUS_OK;
}

/* ---- all of it ---- */

static Status refuse_off(Error *err)
{
    return error_set(err, STATUS_UNAUTHORIZED, SUB_IDENTITY_OFF,
                     "This server takes no identity tokens. Start it with --identity-issuer, "
                     "--identity-audience and --identity-keys to accept those of an issuer, or "
                     "authorize with a master key.");
}

Status identity_token_check(const IdentityCheck *check, Slice text, Arena *arena,
                            IdentityClaims *out, Error *err)
{
    const IdentityRules *rules = check->rules;
    Token token;
    IdentityClaims claims = {0};
    bool may_be_emulators = takes_emulators(check);
    if (rules->issuer.len == 0 && !may_be_emulators)
        return refuse_off(err);
    TRY(parse(arena, text, &token, err));
    bool is_emulator = may_be_emulators && is_emulators(&token);
    if (is_emulator) {
        TRY(check_origin(&token, SLICE(EMULATOR_ISSUER), SLICE(EMULATOR_AUDIENCE), err));
    } else if (rules->issuer.len == 0) {
        return error_set(err, STATUS_UNAUTHORIZED, SUB_IDENTITY_SIGNATURE,
                         "The third part of the identity token is not the text of the development "
                         "key, as the emulators have it. For tokens of an issuer start the server "
                         "with --identity-issuer, --identity-audience and --identity-keys.");
    } else {
        TRY(check_signature(check, &token, err));
        TRY(check_origin(&token, rules->issuer, rules->audiences, err));
    }
    TRY(check_time(&token, check->now_s, &claims, err));
    /* A token for a person says what the program in between may do; one for a program has none. */
    Json scope = json_get(token.claims, SLICE("scp"));
    if (!json_is(scope, JSON_UNDEFINED) && !claim_meets(scope, has_scope, NULL))
        return error_set(err, STATUS_UNAUTHORIZED, SUB_IDENTITY_SCOPE,
                         "The scope ('scp') of the identity token does not have '" EMULATOR_SCOPE
                         "'.");
    TRY(check_oid(&token, arena, &claims, err));
    claims.role = is_emulator ? IDENTITY_CONTRIBUTOR : find_role(rules, &token);
    *out = claims;
    return STATUS_OK;
}
