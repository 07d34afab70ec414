/* sign.c - see sign.h. What is signed is five lines, each with its end, the last one empty:
 *
 *     get
 *     colls
 *     dbs/a/colls/b
 *     tue, 01 oct 2024 12:00:00 gmt
 *
 */
#include "bench/sign.h"

#include "base/encoding.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

enum { SIGNATURE_BYTES = 32 };

Status signer_init(Signer *signer, Slice key, Error *err)
{
    if (!base64_decode(BASE64_STANDARD, key, signer->key, sizeof(signer->key), &signer->key_len))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected a key of at most %d bytes in base64", SIGN_KEY_BYTES_MAX);
    return STATUS_OK;
}

Status sign_target_parse(Arena *arena, Slice path, SignTarget *out, Error *err)
{
    Slice decoded;
    if (!percent_decode(arena, slice_first(path, slice_find(path, '?')), &decoded))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "broken %%XX in the path '%.*s'",
                         SLICE_CUT(path, 200));
    while (decoded.len > 0 && decoded.ptr[0] == '/')
        decoded = slice_from(decoded, 1);
    while (slice_ends_with(decoded, SLICE("/")))
        decoded.len--;

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

static Slice lower(Arena *arena, Slice text)
{
    char *copy = arena_cstr(arena, text);
    for (size_t i = 0; i < text.len; i++) {
        if (copy[i] >= 'A' && copy[i] <= 'Z')
            copy[i] = (char)(copy[i] + ('a' - 'A'));
    }
    return slice_make(copy, text.len);
}

Slice sign_authorization(const Signer *signer, Arena *arena, Slice method, SignTarget target,
                         const char date[DATE_LEN])
{
    Slice text = arena_format(arena, "%.*s\n%.*s\n%.*s\n%.*s\n\n", SLICE_ARG(lower(arena, method)),
                              SLICE_ARG(lower(arena, target.type)), SLICE_ARG(target.link),
                              SLICE_ARG(lower(arena, slice_make(date, DATE_LEN))));
    uint8_t signature[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    const uint8_t *done = HMAC(EVP_sha256(), signer->key, (int)signer->key_len,
                               (const uint8_t *)text.ptr, text.len, signature, &len);
    ASSERT(done != NULL);
    ASSERT(len == SIGNATURE_BYTES);
    char base64[BASE64_LEN(SIGNATURE_BYTES)];
    base64_encode(BASE64_STANDARD, signature, len, base64);
    return percent_encode(
        arena, arena_format(arena, "type=master&ver=1.0&sig=%.*s", (int)sizeof(base64), base64),
        SLICE("-_.!~*'()"));
}
