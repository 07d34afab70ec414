/* auth.c - see auth.h.
 *
 * HMAC hashes its key before every message. The two hash states that follow the key are made
 * once, when the key is read, so checking a request costs the blocks of the message and one more.
 * OpenSSL's interface for that is the one it calls low-level: 0.5 us a signature here, against 0.9
 * with a kept EVP_MAC, which allocates on every use, and 4.6 with HMAC().
 */
#define OPENSSL_API_COMPAT 10101
#include "api/core/auth.h"

#include "base/date.h"
#include "base/encoding.h"
#include "base/secret_mem.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

enum {
    BLOCK_BYTES = 64,
    SKEW_S = 15 * 60,     /* how far clocks may differ */
    LIFETIME_S = 15 * 60, /* how long a signature is good for */
    AUTHORIZATION_BYTES_MAX = 16 << 10,
};
static_assert(SHA256_DIGEST_LENGTH == 32, "a signature is 44 characters of base64");

typedef struct HmacKey {
    SHA256_CTX inner; /* after the key, xor 0x36 */
    SHA256_CTX outer; /* after the key, xor 0x5c */
    Principal principal;
} HmacKey;

struct AuthKeys {
    HmacKey keys[4];
    size_t count;
};

typedef struct Signature {
    uint8_t bytes[SHA256_DIGEST_LENGTH];
} Signature;

static void hmac_key_init(HmacKey *key, const uint8_t *secret, size_t len)
{
    uint8_t block[BLOCK_BYTES] = {0};
    if (len > BLOCK_BYTES)
        (void)SHA256(secret, len, block);
    else
        memcpy(block, secret, len);
    for (size_t i = 0; i < BLOCK_BYTES; i++)
        block[i] ^= 0x36;
    (void)SHA256_Init(&key->inner);
    (void)SHA256_Update(&key->inner, block, BLOCK_BYTES);
    for (size_t i = 0; i < BLOCK_BYTES; i++)
        block[i] ^= 0x36 ^ 0x5c;
    (void)SHA256_Init(&key->outer);
    (void)SHA256_Update(&key->outer, block, BLOCK_BYTES);
    OPENSSL_cleanse(block, sizeof(block));
}

static void hmac_sign(const HmacKey *key, Slice message, Signature *out)
{
    SHA256_CTX ctx = key->inner;
    (void)SHA256_Update(&ctx, message.ptr, message.len);
    (void)SHA256_Final(out->bytes, &ctx);
    ctx = key->outer;
    (void)SHA256_Update(&ctx, out->bytes, sizeof(out->bytes));
    (void)SHA256_Final(out->bytes, &ctx);
}

static Status hmac_key_parse(HmacKey *key, Slice text, const char *name, Error *err)
{
    uint8_t secret[AUTH_KEY_BYTES_MAX];
    size_t len = 0;
    if (!base64_decode(BASE64_STANDARD, text, secret, sizeof(secret), &len) || len == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the %s key is not base64 of 1 to %d bytes", name, AUTH_KEY_BYTES_MAX);
    hmac_key_init(key, secret, len);
    OPENSSL_cleanse(secret, sizeof(secret));
    return STATUS_OK;
}

Status auth_keys_open(AuthKeyTexts texts, AuthKeys **out, Error *err)
{
    const struct {
        Slice text;
        const char *name;
        PrincipalKind kind;
    } rows[] = {
        {texts.primary, "primary", PRINCIPAL_KEY},
        {texts.secondary, "secondary", PRINCIPAL_KEY},
        {texts.primary_read_only, "read-only", PRINCIPAL_READ_ONLY_KEY},
        {texts.secondary_read_only, "secondary read-only", PRINCIPAL_READ_ONLY_KEY},
    };
    AUTO(auth_keys_close) AuthKeys *keys = secret_alloc(sizeof(AuthKeys));
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (rows[i].text.len == 0 && i > 0)
            continue;
        HmacKey *key = &keys->keys[keys->count++];
        TRY(hmac_key_parse(key, rows[i].text, rows[i].name, err));
        key->principal = (Principal){.kind = rows[i].kind, .name = slice_from_cstr(rows[i].name)};
    }
    *out = TAKE(keys);
    return STATUS_OK;
}

void auth_keys_close(AuthKeys *keys)
{
    if (keys == NULL)
        return;
    secret_free(keys, sizeof(*keys));
}

static char *put_lower(char *at, Slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        *at++ = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
    }
    return at;
}

/* The five lines that are signed. Only one of the two dates is not empty. */
static Slice payload_make(Arena *arena, Slice method, Slice type, Slice link, Slice x_ms_date,
                          Slice date)
{
    char *text =
        arena_alloc(arena, method.len + type.len + link.len + x_ms_date.len + date.len + 5);
    char *at = put_lower(text, method);
    *at++ = '\n';
    at = put_lower(at, type);
    *at++ = '\n';
    if (link.len > 0)
        memcpy(at, link.ptr, link.len);
    at += link.len;
    *at++ = '\n';
    at = put_lower(at, x_ms_date);
    *at++ = '\n';
    at = put_lower(at, date);
    *at++ = '\n';
    return slice_make(text, (size_t)(at - text));
}

/* The spellings of the link that clients sign, most likely first. */
enum { LINKS_MAX = 3 };
static size_t link_spellings(Arena *arena, const Address *address, Slice links[LINKS_MAX])
{
    size_t count = 0;
    links[count++] = address->link;
    if (address->part_count > 0) {
        /* A resource id is signed alone and in lower case: of the resource, or of a feed's parent.
         * They are base64, so their length is a multiple of four. Offers have no other ids. */
        Slice id = address->parts[address->part_count - 1].id;
        if (id.len % 4 == 0 || address->type == RESOURCE_OFFER) {
            char *lower = arena_alloc(arena, id.len);
            (void)put_lower(lower, id);
            links[count++] = slice_make(lower, id.len);
        }
    }
    if (!slice_equal(address->link, address->link_raw))
        links[count++] = address->link_raw;
    return count;
}

/* The service's words, and its spelling. */
static Status refuse_form(Error *err)
{
    return error_set(err, STATUS_UNAUTHORIZED, SUB_AUTHORIZATION_MALFORMED,
                     "Authorization header doesn't confirm to the required format. Please verify "
                     "and try again: expected the url-encoded form of "
                     "'type=master&ver=1.0&sig=...'.");
}

/* Splits "type=..&ver=..&sig=..". */
static bool split(Slice text, Slice parts[3])
{
    static const Slice labels[] = {SLICE_INIT("type="), SLICE_INIT("ver="), SLICE_INIT("sig=")};
    for (size_t i = 0; i < ARRAY_COUNT(labels); i++) {
        /* A signature may itself hold '&'; only the first two separate. */
        parts[i] = i < 2 ? slice_cut(&text, '&') : text;
        if (!slice_starts_with(parts[i], labels[i]))
            return false;
        parts[i] = slice_from(parts[i], labels[i].len);
    }
    parts[2] = slice_first(parts[2], slice_find(parts[2], ','));
    return parts[0].len > 0 && parts[1].len > 0 && parts[2].len > 0;
}

Status auth_parse(Arena *arena, Slice authorization, AuthToken *out, Error *err)
{
    static const struct {
        Slice name;
        size_t bytes_max; /* of the header as it was sent */
    } kinds[] = {
        [AUTH_MASTER] = {SLICE_INIT("master"), 1024},
        [AUTH_RESOURCE] = {SLICE_INIT("resource"), 8192},
        [AUTH_IDENTITY] = {SLICE_INIT("aad"), AUTHORIZATION_BYTES_MAX},
    };
    if (authorization.len == 0)
        return error_set(err, STATUS_UNAUTHORIZED, SUB_AUTHORIZATION_MISSING,
                         "Required Header authorization is missing. Ensure a valid Authorization "
                         "token is passed.");
    Slice text;
    Slice parts[3];
    if (authorization.len > AUTHORIZATION_BYTES_MAX ||
        !percent_decode(arena, authorization, &text) || !split(text, parts))
        return refuse_form(err);
    size_t i = 0;
    while (i < ARRAY_COUNT(kinds) && !slice_equal_nocase(parts[0], kinds[i].name))
        i++;
    if (i == ARRAY_COUNT(kinds))
        return error_set(err, STATUS_UNAUTHORIZED, SUB_AUTHORIZATION_MALFORMED,
                         "Authorization header doesn't confirm to the required format: the token "
                         "type '%.*s' is not known; expected 'master', 'resource' or 'aad'.",
                         SLICE_CUT(parts[0], 32));
    if (authorization.len > kinds[i].bytes_max)
        return refuse_form(err);
    *out = (AuthToken){.scheme = (AuthScheme)i, .version = parts[1], .signature = parts[2]};
    return STATUS_OK;
}

Status auth_refuse_time(int64_t start_s, int64_t expiry_s, int64_t now_s, Error *err)
{
    char begin[DATE_LEN];
    char end[DATE_LEN];
    char now[DATE_LEN];
    date_print(start_s, begin);
    date_print(expiry_s, end);
    date_print(now_s, now);
    return error_set(err, STATUS_FORBIDDEN, SUB_NONE,
                     "The authorization token is not valid at the current time. Please create "
                     "another token and retry (token start time: %.*s, token expiry time: %.*s, "
                     "current server time: %.*s).",
                     DATE_LEN, begin, DATE_LEN, end, DATE_LEN, now);
}

/* The request's date must be near ours, so that a stolen signature is soon worthless. */
static Status check_date(Slice date, int64_t now_s, Error *err)
{
    int64_t date_s = 0;
    if (!date_parse(date, &date_s))
        return error_set(err, STATUS_UNAUTHORIZED, SUB_NONE,
                         "The request date '%.*s' is missing or not of the form 'Tue, 01 Oct 2024 "
                         "12:00:00 GMT'; send it in x-ms-date.",
                         SLICE_CUT(date, 64));
    if (date_s - SKEW_S <= now_s && date_s + LIFETIME_S + SKEW_S >= now_s)
        return STATUS_OK;
    return auth_refuse_time(date_s, date_s + LIFETIME_S, now_s, err);
}

/* Shows what was signed, with visible line breaks: this is how users find their mistake. */
static Status refuse_signature(Slice payload, Error *err)
{
    char shown[300];
    size_t len = 0;
    for (size_t i = 0; i < payload.len && len + 2 < sizeof(shown); i++) {
        unsigned char c = (unsigned char)payload.ptr[i];
        if (c == '\n') {
            shown[len++] = '\\';
            shown[len++] = 'n';
        } else {
            shown[len++] = c < ' ' || c == 0x7f ? '?' : (char)c;
        }
    }
    return error_set(err, STATUS_UNAUTHORIZED, SUB_NONE,
                     "The input authorization token can't serve the request. Please check that the "
                     "expected payload is built as per the protocol, and check the key being used. "
                     "Server used the following payload to sign: '%.*s'",
                     (int)len, shown);
}

static const HmacKey *find_key(const AuthKeys *keys, Slice payload, const Signature *given)
{
    const HmacKey *match = NULL;
    for (size_t i = 0; i < keys->count && match == NULL; i++) {
        Signature expected;
        hmac_sign(&keys->keys[i], payload, &expected);
        if (CRYPTO_memcmp(&expected, given, sizeof(expected)) == 0)
            match = &keys->keys[i];
    }
    return match;
}

Status auth_check(const AuthKeys *keys, const AuthRequest *request, const AuthToken *token,
                  int64_t now_s, Arena *arena, Principal *out, Error *err)
{
    ASSERT(token->scheme == AUTH_MASTER);
    Signature given;
    size_t len = 0;
    bool well_formed =
        slice_starts_with(token->version, SLICE("1")) &&
        base64_decode(BASE64_STANDARD, token->signature, &given, sizeof(given), &len) &&
        len == sizeof(given);
    if (!well_formed)
        return error_set(err, STATUS_UNAUTHORIZED, SUB_AUTHORIZATION_MALFORMED,
                         "The authorization signature is malformed; expected version 1.0 and 44 "
                         "characters of base64.");
    bool has_x_ms_date = request->x_ms_date.len > 0;
    TRY(check_date(has_x_ms_date ? request->x_ms_date : request->date, now_s, err));

    Slice segment = address_segment(request->address->type);
    Slice links[LINKS_MAX];
    size_t link_count = link_spellings(arena, request->address, links);
    Slice first = SLICE_EMPTY;
    for (size_t i = 0; i < link_count; i++) {
        Slice payload = payload_make(arena, request->method, segment, links[i], request->x_ms_date,
                                     has_x_ms_date ? SLICE_EMPTY : request->date);
        const HmacKey *key = find_key(keys, payload, &given);
        if (key != NULL) {
            *out = key->principal;
            return STATUS_OK;
        }
        if (i == 0)
            first = payload;
    }
    return refuse_signature(first, err);
}

static const Slice BEARER = SLICE_INIT("Bearer ");

bool auth_is_bearer(Slice authorization)
{
    return slice_equal_nocase(slice_first(authorization, BEARER.len), BEARER);
}

/* Two keys are the same if they sign alike, so that the text of our keys need not be kept. */
bool auth_keys_find(const AuthKeys *keys, Slice key, Principal *out)
{
    static const Slice message = SLICE_INIT("bearer");
    HmacKey given;
    Error ignored;
    if (hmac_key_parse(&given, key, "given", &ignored) != STATUS_OK)
        return false;
    Signature signature;
    hmac_sign(&given, message, &signature);
    OPENSSL_cleanse(&given, sizeof(given));
    const HmacKey *found = find_key(keys, message, &signature);
    if (found != NULL)
        *out = found->principal;
    return found != NULL;
}

Status auth_check_bearer(const AuthKeys *keys, Slice authorization, Principal *out, Error *err)
{
    if (auth_keys_find(keys, slice_trim(slice_from(authorization, BEARER.len)), out))
        return STATUS_OK;
    return error_set(err, STATUS_UNAUTHORIZED, SUB_NONE,
                     "The bearer token is not a key of this account.");
}

Status auth_sign(Slice key_text, Slice method, Slice resource_type, Slice link, Slice x_ms_date,
                 char out[AUTH_SIGNATURE_LEN], Error *err)
{
    HmacKey key;
    TRY(hmac_key_parse(&key, key_text, "given", err));
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    Slice payload = payload_make(&arena, method, resource_type, link, x_ms_date, SLICE_EMPTY);
    Signature signature;
    hmac_sign(&key, payload, &signature);
    base64_encode(BASE64_STANDARD, &signature, sizeof(signature), out);
    return STATUS_OK;
}
