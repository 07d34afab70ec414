/* document_token.c - see document_token_int.h. */
#include "api/items/document_position_int.h"
#include "api/items/document_token_int.h"

#include "base/encoding.h"
#include "query/page/page.h"

enum { MAC_BYTES = 16, TOKEN_BYTES_MAX = 16 << 10 };
static_assert(BASE64_LEN(MAC_BYTES + QUERY_POSITION_BYTES_MAX) <= TOKEN_TEXT_MAX,
              "a token is as short as any client can ask for");

static Slice make_mac(Arena *arena, const TokenSecret *secret, Slice rid, Slice scope,
                      Slice position)
{
    /* With the lengths no byte can move from one part to the next. */
    const Slice parts[] = {rid, scope, position};
    size_t size = 0;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        size += sizeof(uint64_t) + parts[i].len;
    char *message = arena_alloc(arena, size);
    char *at = message;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        be64_put(at, parts[i].len);
        at += sizeof(uint64_t);
        if (parts[i].len > 0)
            memcpy(at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
    }
    char *mac = arena_alloc(arena, MAC_BYTES);
    for (size_t i = 0; i < ARRAY_COUNT(secret->keys); i++)
        be64_put(mac + 8 * i, hash_keyed(secret->keys[i], slice_make(message, size)));
    return slice_make(mac, MAC_BYTES);
}

Slice document_token_print(Arena *arena, const TokenSecret *secret, Slice container_rid,
                           Slice scope, Slice position)
{
    Slice mac = make_mac(arena, secret, container_rid, scope, position);
    size_t size = MAC_BYTES + position.len;
    char *bytes = arena_alloc(arena, size);
    memcpy(bytes, mac.ptr, MAC_BYTES);
    if (position.len > 0)
        memcpy(bytes + MAC_BYTES, position.ptr, position.len);
    char *text = arena_alloc(arena, BASE64_LEN(size));
    base64_encode(BASE64_RID, bytes, size, text);
    return slice_make(text, BASE64_LEN(size));
}

Status document_token_refuse(Slice token, Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "Invalid Continuation Token: '%.*s' was not given by this server for this "
                     "query.",
                     SLICE_CUT(token, 80));
}

Status document_token_parse(Arena *arena, Slice token, Slice *mac, Slice *position, Error *err)
{
    char *bytes = arena_alloc(arena, TOKEN_BYTES_MAX);
    size_t len = 0;
    if (token.len > BASE64_LEN(TOKEN_BYTES_MAX) ||
        !base64_decode(BASE64_RID, token, bytes, TOKEN_BYTES_MAX, &len) || len < MAC_BYTES)
        return document_token_refuse(token, err);
    *mac = slice_make(bytes, MAC_BYTES);
    *position = slice_make(bytes + MAC_BYTES, len - MAC_BYTES);
    return STATUS_OK;
}

Status document_token_check(Arena *arena, const TokenSecret *secret, Slice container_rid,
                            Slice scope, Slice token, Slice mac, Slice position, Error *err)
{
    Slice expected = make_mac(arena, secret, container_rid, scope, position);
    uint8_t differs = 0; /* compares all bytes, in constant time */
    for (size_t i = 0; i < MAC_BYTES; i++)
        differs |= (uint8_t)(expected.ptr[i] ^ mac.ptr[i]);
    return differs == 0 ? STATUS_OK : document_token_refuse(token, err);
}
