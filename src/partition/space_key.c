/* space_key.c - see space_key_int.h. */
#include "partition/space_key_int.h"

static void key_begin(Key *key, uint8_t kind)
{
    key->bytes[0] = kind;
    key->len = 1;
}

static void key_add(Key *key, Slice bytes)
{
    ASSERT(bytes.len <= sizeof(key->bytes) - key->len);
    if (bytes.len > 0)
        memcpy(key->bytes + key->len, bytes.ptr, bytes.len);
    key->len += bytes.len;
}

void key_set(Key *key, Slice bytes)
{
    key->len = 0;
    key_add(key, bytes);
}

void key_item(Key *key, Slice epk, Slice id)
{
    key_begin(key, KEY_ITEM);
    key_add(key, epk);
    key_add(key, id);
}

void key_number(Key *key, uint64_t number)
{
    key_begin(key, KEY_NUMBER);
    be64_put(key->bytes + 1, number);
    key->len += sizeof(number);
}

void key_expiry(Key *key, uint64_t expires_at_s, uint64_t number)
{
    uint32_t at = expires_at_s > UINT32_MAX ? UINT32_MAX : (uint32_t)expires_at_s;
    key_begin(key, KEY_EXPIRY);
    be32_put(key->bytes + 1, at);
    be64_put(key->bytes + 5, number);
    key->len += sizeof(at) + sizeof(number);
}

void key_purge(Key *key, Slice epk)
{
    key_begin(key, KEY_PURGE);
    key_add(key, epk);
}

void key_size(Key *key, Slice epk)
{
    key_begin(key, KEY_SIZE);
    key_add(key, epk);
}

/* No EPK of an item and no id continues with 0xFF after a prefix. */
void key_item_range(Key *from, Key *to, Slice prefix)
{
    key_item(from, prefix, SLICE_EMPTY);
    key_item(to, prefix, SLICE("\xFF"));
}

/* Hashes have one length; otherwise the EPK is all of the key but the id, which the document tells.
 */
Slice key_item_epk(const PartitionSchema *schema, Slice key, const Item *item)
{
    const PartitionKeyDefinition *of = &schema->key;
    if (of->kind == PARTITION_HASH_V2 || of->kind == PARTITION_MULTI_HASH)
        return slice_first(slice_from(key, 1), EPK_HASH_BYTES * of->path_count);
    Slice id = json_string(json_get(item->document, SLICE("id")));
    return slice_make(key.ptr + 1, key.len - 1 - id.len);
}

Slice location_encode(Arena *arena, Slice epk, Slice id)
{
    ASSERT(epk.len <= EPK_BYTES_MAX);
    uint16_t len = (uint16_t)epk.len;
    char *bytes = arena_alloc(arena, sizeof(len) + epk.len + id.len);
    memcpy(bytes, &len, sizeof(len));
    if (epk.len > 0)
        memcpy(bytes + sizeof(len), epk.ptr, epk.len);
    memcpy(bytes + sizeof(len) + epk.len, id.ptr, id.len);
    return slice_make(bytes, sizeof(len) + epk.len + id.len);
}

Status location_decode(Slice bytes, Slice *epk, Slice *id, Error *err)
{
    uint16_t len = 0;
    if (bytes.len >= sizeof(len))
        memcpy(&len, bytes.ptr, sizeof(len));
    if (bytes.len <= sizeof(len) + len || len > EPK_BYTES_MAX)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "the place of an item is damaged");
    *epk = slice_make(bytes.ptr + sizeof(len), len);
    *id = slice_from(bytes, sizeof(len) + len);
    return STATUS_OK;
}
