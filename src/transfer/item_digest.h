/* item_digest.h - a hash of many items in which their order does not matter.
 *
 * Two containers, or a container and a file, hold the same items if and only if (but for a chance
 * of 2^-128 or so) their digests are equal. The order of items does not matter, nor does the order
 * of members in an object, nor do the properties that the server adds (_rid, _self, _etag,
 * _attachments, _ts). It finds accidents; it is no defence against somebody who makes items that
 * collide.
 */
#pragma once

#include "base/slice.h"
#include "json/json.h"

typedef struct ItemHash {
    uint64_t low, high;
} ItemHash;

typedef struct ItemDigest {
    ItemHash sum; /* of all items, modulo 2^128 */
    uint64_t count;
} ItemDigest;

/* True for the names of the properties that the server adds to an item. */
bool item_is_system_name(Slice name);

ItemHash item_hash(Json item);
void item_digest_add(ItemDigest *digest, ItemHash hash);

/* 32 hexadecimal characters of the sum, not terminated. */
#define ITEM_DIGEST_LEN 32
void item_digest_print(const ItemDigest *digest, char out[ITEM_DIGEST_LEN]);
bool item_digest_parse(Slice text, ItemHash *sum);
