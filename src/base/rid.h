/* rid.h - resource ids: what the protocol calls _rid.
 *
 * An id names a resource by its place in the hierarchy. It is a few bytes, written in base64 with
 * '-' for '/':
 *
 *     offer       | number u24 LE |
 *     database    | number u32 LE |
 *     container   | database u32 LE | number u32 BE, highest bit set |
 *     user        | database u32 LE | number u32 BE, highest bit clear, not zero |
 *     permission  | database | user | number u64 LE |
 *     key         | database u32 LE | four zero bytes | number u32 LE | 2 u32 LE |
 *     child       | database | container | number u64 LE, kind in the highest four bits |
 *
 * SDKs take these apart (to rebuild parent links, to order documents), so the layout is part of
 * the protocol. Numbers are never used twice in a data folder.
 */
#pragma once

#include "base/defs.h"
#include "base/slice.h"

#define RID_OFFER_LEN     4
#define RID_DATABASE_LEN  8
#define RID_CONTAINER_LEN 12
#define RID_USER_LEN      12
#define RID_CHILD_LEN     24

#define RID_OFFER_MAX     0xFFFFFFu
#define RID_DATABASE_MAX  UINT32_MAX
#define RID_CONTAINER_MAX 0x7FFFFFFFu
#define RID_KEY_MAX       UINT32_MAX
#define RID_SCRIPT_MAX    UINT32_MAX
#define RID_USER_MAX      0x7FFFFFFFu

typedef enum RidKind {
    RID_OFFER,
    RID_DATABASE,
    RID_CONTAINER,
    RID_DOCUMENT,
    RID_STORED_PROCEDURE,
    RID_TRIGGER,
    RID_USER_DEFINED_FUNCTION,
    RID_CONFLICT,
    RID_PARTITION_KEY_RANGE,
    RID_CLIENT_ENCRYPTION_KEY,
    RID_USER,
    RID_PERMISSION,
} RidKind;

typedef struct Rid {
    RidKind kind;
    uint32_t offer;
    uint32_t database;
    uint32_t container;
    uint64_t child; /* without the kind's bits; a key's or a permission's number */
    uint32_t user;
} Rid;

/* Each writes exactly the length above, not terminated. */
void rid_print_offer(uint32_t offer, char out[RID_OFFER_LEN]);
void rid_print_database(uint32_t database, char out[RID_DATABASE_LEN]);
void rid_print_container(uint32_t database, uint32_t container, char out[RID_CONTAINER_LEN]);
void rid_print_child(RidKind kind, uint32_t database, uint32_t container, uint64_t child,
                     char out[RID_CHILD_LEN]);
void rid_print_user(uint32_t database, uint32_t user, char out[RID_USER_LEN]);
void rid_print_permission(uint32_t database, uint32_t user, uint64_t permission,
                          char out[RID_CHILD_LEN]);
void rid_print_key(uint32_t database, uint32_t key, char out[RID_CHILD_LEN]);

/* False if the text is not the id of a resource of a kind listed above. */
bool rid_parse(Slice text, Rid *out);
