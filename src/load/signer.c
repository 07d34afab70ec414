/* signer.c - see signer.h. What is signed is five lines, each with its end, the last one empty:
 *
 *     get
 *     colls
 *     dbs/a/colls/b
 *     tue, 01 oct 2024 12:00:00 gmt
 *
 * The hash states that follow the key are kept, and OpenSSL's low-level interface is used, as the
 * server does and for the same reason: HMAC() takes longer than all the rest of a request here.
 */
#define OPENSSL_API_COMPAT 10101
#include "load/signer.h"

#include "base/encoding.h"

enum { BLOCK_BYTES = 64 };

static void hash_key(SHA256_CTX *ctx, const uint8_t key[BLOCK_BYTES], uint8_t mask)
{
    uint8_t block[BLOCK_BYTES];
    for (size_t i = 0; i < BLOCK_BYTES; i++)
        block[i] = key[i] ^ mask;
    (void)SHA256_Init(ctx); /* these only fail on NULL */
    (void)SHA256_Update(ctx, block, BLOCK_BYTES);
}

Status signer_init(Signer *signer, Slice key, Error *err)
{
    uint8_t bytes[SIGNER_KEY_BYTES_MAX];
    size_t len = 0;
    if (!base64_decode(BASE64_STANDARD, key, bytes, sizeof(bytes), &len))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected a key of at most %d bytes in base64", SIGNER_KEY_BYTES_MAX);
    uint8_t block[BLOCK_BYTES] = {0};
    if (len > BLOCK_BYTES)
        (void)SHA256(bytes, len, block);
    else
        memcpy(block, bytes, len);
    hash_key(&signer->inner, block, 0x36);
    hash_key(&signer->outer, block, 0x5c);
    return STATUS_OK;
}

/* Of what the server tells about itself, the resource is signed: "_orrery/dbs/a/colls/b/layout" and
 * "_orrery/chaos/dbs/a/colls/b/split" are about "dbs/a/colls/b", "_orrery/events" about the
 * account. */
static Slice resource_of(Slice path)
{
    static const Slice prefixes[] = {SLICE_INIT("_orrery/"), SLICE_INIT("chaos/")};
    if (!slice_starts_with(path, prefixes[0]))
        return path;
    for (size_t i = 0; i < ARRAY_COUNT(prefixes); i++) {
        if (slice_starts_with(path, prefixes[i]))
            path = slice_from(path, prefixes[i].len);
    }
    while (path.len > 0 && path.ptr[path.len - 1] != '/')
        path.len--;
    return slice_first(path, path.len > 0 ? path.len - 1 : 0);
}

Status signer_target_parse(Arena *arena, Slice path, SignerTarget *out, Error *err)
{
    Slice decoded;
    if (!percent_decode(arena, slice_first(path, slice_find(path, '?')), &decoded))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "broken %%XX in the path '%.*s'",
                         SLICE_CUT(path, 200));
    while (decoded.len > 0 && decoded.ptr[0] == '/')
        decoded = slice_from(decoded, 1);
    while (slice_ends_with(decoded, SLICE("/")))
        decoded.len--;

    decoded = resource_of(decoded);

    Slice rest = decoded;
    Slice previous = SLICE_EMPTY;
    Slice last = SLICE_EMPTY;
    size_t count = 0;
    while (rest.len > 0) {
        previous = last;
        last = slice_cut(&rest, '/');
        count++;
    }
    bool is_feed = count % 2 == 1;
    size_t parent_len = is_feed ? decoded.len - last.len : decoded.len;
    out->type = is_feed ? last : previous;
    out->link = slice_first(decoded, is_feed && parent_len > 0 ? parent_len - 1 : parent_len);
    return STATUS_OK;
}

static char *put(char *out, Slice text)
{
    if (text.len > 0)
        memcpy(out, text.ptr, text.len);
    out[text.len] = '\n';
    return out + text.len + 1;
}

static char *put_lower(char *out, Slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        bool is_upper = text.ptr[i] >= 'A' && text.ptr[i] <= 'Z';
        out[i] = is_upper ? (char)(text.ptr[i] + ('a' - 'A')) : text.ptr[i];
    }
    out[text.len] = '\n';
    return out + text.len + 1;
}

Slice signer_authorization(const Signer *signer, Arena *arena, Slice method, SignerTarget target,
                           const char date[DATE_LEN])
{
    size_t size = method.len + target.type.len + target.link.len + DATE_LEN + 5;
    char *text = arena_alloc(arena, size);
    char *end = put_lower(text, method);
    end = put_lower(end, target.type);
    end = put(end, target.link);
    end = put_lower(end, slice_make(date, DATE_LEN));
    *end++ = '\n';
    ASSERT((size_t)(end - text) == size);

    uint8_t hash[SHA256_DIGEST_LENGTH];
    SHA256_CTX ctx = signer->inner;
    (void)SHA256_Update(&ctx, text, size);
    (void)SHA256_Final(hash, &ctx);
    ctx = signer->outer;
    (void)SHA256_Update(&ctx, hash, sizeof(hash));
    (void)SHA256_Final(hash, &ctx);
    Slice prefix = SLICE("type=master&ver=1.0&sig=");
    char value[24 + BASE64_LEN(SHA256_DIGEST_LENGTH)];
    ASSERT(prefix.len == 24);
    memcpy(value, prefix.ptr, prefix.len);
    base64_encode(BASE64_STANDARD, hash, sizeof(hash), value + prefix.len);
    return percent_encode(arena, slice_make(value, sizeof(value)), SLICE("-_.!~*'()"));
}
