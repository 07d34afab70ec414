/* rid.c - see rid.h. */
#include "base/rid.h"

#include "base/encoding.h"

#define CONTAINER_BIT 0x80000000u
#define KEY_TYPE      UINT32_C(2) /* of a client encryption key, in its last bytes */

/* The highest four bits of a child's number. */
static uint64_t kind_bits(RidKind kind)
{
    switch (kind) {
    case RID_DOCUMENT:
        return 0;
    case RID_STORED_PROCEDURE:
        return 8;
    case RID_TRIGGER:
        return 7;
    case RID_USER_DEFINED_FUNCTION:
        return 6;
    case RID_CONFLICT:
        return 4;
    case RID_PARTITION_KEY_RANGE:
        return 5;
    case RID_OFFER:
    case RID_DATABASE:
    case RID_CONTAINER:
    case RID_CLIENT_ENCRYPTION_KEY:
    case RID_USER:
    case RID_PERMISSION:
        break;
    }
    ASSERT(!"a kind that has no parent container");
    return 0;
}

static bool kind_from_bits(uint64_t bits, RidKind *out)
{
    for (int kind = RID_DOCUMENT; kind <= RID_PARTITION_KEY_RANGE; kind++) {
        if (kind_bits((RidKind)kind) == bits) {
            *out = (RidKind)kind;
            return true;
        }
    }
    return false;
}

void rid_print_offer(uint32_t offer, char out[RID_OFFER_LEN])
{
    ASSERT(offer <= RID_OFFER_MAX);
    uint8_t bytes[3] = {(uint8_t)offer, (uint8_t)(offer >> 8), (uint8_t)(offer >> 16)};
    base64_encode(BASE64_RID, bytes, sizeof(bytes), out);
}

void rid_print_database(uint32_t database, char out[RID_DATABASE_LEN])
{
    base64_encode(BASE64_RID, &database, sizeof(database), out);
}

static void container_bytes(uint32_t database, uint32_t container, uint8_t bytes[8])
{
    ASSERT(container <= RID_CONTAINER_MAX);
    memcpy(bytes, &database, sizeof(database));
    be32_put(bytes + 4, container | CONTAINER_BIT);
}

void rid_print_container(uint32_t database, uint32_t container, char out[RID_CONTAINER_LEN])
{
    uint8_t bytes[8];
    container_bytes(database, container, bytes);
    base64_encode(BASE64_RID, bytes, sizeof(bytes), out);
}

void rid_print_child(RidKind kind, uint32_t database, uint32_t container, uint64_t child,
                     char out[RID_CHILD_LEN])
{
    ASSERT(child >> 60 == 0);
    uint8_t bytes[16];
    container_bytes(database, container, bytes);
    uint64_t number = child | kind_bits(kind) << 60;
    memcpy(bytes + 8, &number, sizeof(number));
    base64_encode(BASE64_RID, bytes, sizeof(bytes), out);
}

static void user_bytes(uint32_t database, uint32_t user, uint8_t bytes[8])
{
    ASSERT(user > 0);
    ASSERT(user <= RID_USER_MAX);
    memcpy(bytes, &database, sizeof(database));
    be32_put(bytes + 4, user);
}

void rid_print_user(uint32_t database, uint32_t user, char out[RID_USER_LEN])
{
    uint8_t bytes[8];
    user_bytes(database, user, bytes);
    base64_encode(BASE64_RID, bytes, sizeof(bytes), out);
}

void rid_print_permission(uint32_t database, uint32_t user, uint64_t permission,
                          char out[RID_CHILD_LEN])
{
    uint8_t bytes[16];
    user_bytes(database, user, bytes);
    memcpy(bytes + 8, &permission, sizeof(permission));
    base64_encode(BASE64_RID, bytes, sizeof(bytes), out);
}

void rid_print_key(uint32_t database, uint32_t key, char out[RID_CHILD_LEN])
{
    const uint32_t parts[4] = {database, 0, key, KEY_TYPE};
    base64_encode(BASE64_RID, parts, sizeof(parts), out);
}

/* A container's number has its highest bit set, and a user's is not zero. */
static bool parse_key(const uint8_t bytes[16], Rid *out)
{
    uint32_t parts[4];
    memcpy(parts, bytes, sizeof(parts));
    if (parts[1] != 0 || parts[3] != KEY_TYPE)
        return false;
    *out = (Rid){.kind = RID_CLIENT_ENCRYPTION_KEY, .database = parts[0], .child = parts[2]};
    return true;
}

static bool parse_user(const uint8_t *bytes, size_t len, Rid *out)
{
    Rid rid = {.kind = RID_USER, .user = be32_get(bytes + 4)};
    memcpy(&rid.database, bytes, sizeof(rid.database));
    if (len > 8) {
        rid.kind = RID_PERMISSION;
        memcpy(&rid.child, bytes + 8, sizeof(rid.child));
    }
    if (rid.user == 0)
        return false;
    *out = rid;
    return true;
}

bool rid_parse(Slice text, Rid *out)
{
    uint8_t bytes[16];
    size_t len = 0;
    if (text.len > RID_CHILD_LEN || !base64_decode(BASE64_RID, text, bytes, sizeof(bytes), &len))
        return false;
    Rid rid = {0};
    if (len == 3) {
        rid.kind = RID_OFFER;
        rid.offer = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16;
        *out = rid;
        return true;
    }
    if (len != 4 && len != 8 && len != 16)
        return false;
    if (len == 16 && parse_key(bytes, out))
        return true;
    rid.kind = RID_DATABASE;
    memcpy(&rid.database, bytes, sizeof(rid.database));
    if (len > 4) {
        uint32_t number = be32_get(bytes + 4);
        if ((number & CONTAINER_BIT) == 0)
            return parse_user(bytes, len, out);
        rid.kind = RID_CONTAINER;
        rid.container = number & ~CONTAINER_BIT;
    }
    if (len > 8) {
        uint64_t number;
        memcpy(&number, bytes + 8, sizeof(number));
        if (!kind_from_bits(number >> 60, &rid.kind))
            return false;
        rid.child = number & ~(UINT64_C(15) << 60);
    }
    *out = rid;
    return true;
}
