/* item_digest.c - see item_digest.h.
 *
 * The hash of a value is MurmurHash3 of a byte for its type and of what it holds. Arrays hash the
 * hashes of their elements in order. Objects add up the hashes of (name, hash of the value), so the
 * order of members does not matter; names are distinct, so nothing cancels out.
 */
#include "transfer/item_digest.h"

#include "base/encoding.h"
#include "base/murmur.h"

static ItemHash hash_bytes(Slice bytes)
{
    uint64_t out[2];
    murmur3_128(bytes, out);
    return (ItemHash){.low = out[0], .high = out[1]};
}

static ItemHash add(ItemHash a, ItemHash b)
{
    ItemHash sum = {.low = a.low + b.low, .high = a.high + b.high};
    sum.high += sum.low < a.low ? 1 : 0;
    return sum;
}

/* A type, two hashes and a count, hashed again. */
static ItemHash hash_pair(JsonType type, ItemHash a, ItemHash b, uint64_t count)
{
    uint64_t words[6] = {(uint64_t)type, a.low, a.high, b.low, b.high, count};
    return hash_bytes(slice_make(words, sizeof(words)));
}

static ItemHash hash_value(Json value);

static ItemHash hash_members(Json value, bool is_item)
{
    ItemHash sum = {0};
    uint64_t count = 0;
    bool is_object = json_is(value, JSON_OBJECT);
    JsonIter it = json_iter(value);
    while (json_next(&it)) {
        if (is_item && item_is_system_name(it.name))
            continue;
        ItemHash inner = hash_value(it.value);
        if (is_object)
            sum = add(sum, hash_pair(JSON_OBJECT, hash_bytes(it.name), inner, it.name.len));
        else
            sum = hash_pair(JSON_ARRAY, sum, inner, count);
        count++;
    }
    return hash_pair(json_type(value), sum, (ItemHash){0}, count);
}

static ItemHash hash_value(Json value)
{
    JsonType type = json_type(value);
    ItemHash none = {0};
    switch (type) {
    case JSON_UNDEFINED:
    case JSON_NULL:
        return hash_pair(type, none, none, 0);
    case JSON_BOOL:
        return hash_pair(type, none, none, json_bool(value) ? 1 : 0);
    case JSON_NUMBER: {
        double number = json_number(value);
        uint64_t bits = 0;
        if (number != 0) /* 0 and -0 are equal, and print the same */
            memcpy(&bits, &number, sizeof(bits));
        return hash_pair(type, none, none, bits);
    }
    case JSON_STRING:
        return hash_pair(type, hash_bytes(json_string(value)), none, json_string(value).len);
    case JSON_ARRAY:
    case JSON_OBJECT:
        return hash_members(value, false);
    }
    return none;
}

bool item_is_system_name(Slice name)
{
    if (name.len < 3 || name.ptr[0] != '_')
        return false;
    return slice_equal(name, SLICE("_rid")) || slice_equal(name, SLICE("_self")) ||
           slice_equal(name, SLICE("_etag")) || slice_equal(name, SLICE("_attachments")) ||
           slice_equal(name, SLICE("_ts"));
}

ItemHash item_hash(Json item)
{
    return json_is(item, JSON_OBJECT) ? hash_members(item, true) : hash_value(item);
}

void item_digest_add(ItemDigest *digest, ItemHash hash)
{
    digest->sum = add(digest->sum, hash);
    digest->count++;
}

void item_digest_print(const ItemDigest *digest, char out[ITEM_DIGEST_LEN])
{
    uint8_t bytes[16];
    be64_put(bytes, digest->sum.high);
    be64_put(bytes + 8, digest->sum.low);
    hex_encode(bytes, sizeof(bytes), out);
}

bool item_digest_parse(Slice text, ItemHash *sum)
{
    uint8_t bytes[16];
    size_t len = 0;
    if (text.len != ITEM_DIGEST_LEN || !hex_decode(text, bytes, sizeof(bytes), &len) ||
        len != sizeof(bytes))
        return false;
    *sum = (ItemHash){.high = be64_get(bytes), .low = be64_get(bytes + 8)};
    return true;
}
