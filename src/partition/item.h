/* item.h - an item as it is stored, and as clients see it.
 *
 * What is stored is a small header and the document without its system properties, which follow
 * from the header; item_print adds them.
 *
 * Ownership  An Item borrows its document. Format: at the top of item.c.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "partition/schema.h"
#include "json/json.h"

#define ITEM_TOO_LARGE \
    "Message: {\"Errors\":[\"Request size is too large\"]}\r\n" /* clients look for it */
#define ITEM_BYTES_MAX ((size_t)2 << 20) /* of the JSON text, as the service has it */
#define ITEM_ETAG_LEN  38

/* As the service has it. No item has a longer id. */
#define ITEM_ID_BYTES_MAX 1023

typedef struct Item {
    uint64_t number; /* low half of its _rid: names it in the container, survives replacing */
    uint64_t lsn;    /* of the write that made this version */
    uint32_t ts_s;
    int32_t ttl_s;     /* the document's own "ttl"; 0 if it has none */
    uint32_t stamp;    /* of a transaction's write, whose ETag is older than its LSN; 0 if it is not
                          one, and see 'is_restored' */
    uint16_t order;    /* among the changes of its transaction: see change_log_int.h */
    bool is_unindexed; /* its writer excluded it from queries: it has no terms */
    bool is_restored;  /* 'stamp' is how much higher the LSN is than that which the ETag shows */
    Json document;
    size_t bytes; /* of the stored form; 0 while it is not stored */
} Item;

/* The item's number: the partition that made it in the high bits, a count in the low ones. The four
 * highest bits stay clear, which is what marks a document's _rid. */
#define ITEM_COUNT_BITS 40
#define ITEM_COUNT_MAX  ((UINT64_C(1) << ITEM_COUNT_BITS) - 1)
static inline uint64_t item_number(uint32_t partition, uint64_t count)
{
    return (uint64_t)partition << ITEM_COUNT_BITS | count;
}

/* The stored form, in 'arena': a header of this many bytes, then the document's. */
enum { ITEM_HEADER_BYTES = 32 };
Slice item_encode(Arena *arena, const Item *item);

/* STATUS_CORRUPT if the bytes are not an item's. The document is not checked again: it was when it
 * was written, and blocks carry checksums. */
MUST_USE Status item_decode(Slice bytes, Item *out, Error *err);

void item_etag(const Item *item, char out[ITEM_ETAG_LEN]); /* with its quotes */

/* Gives the item an LSN of a later write, which puts back what was there before. Its ETag stays, as
 * long as there are fewer than 2^32 writes between the two. */
void item_restore(Item *item, uint64_t lsn);

/* Appends the item as JSON text with its system properties. */
void item_print(const PartitionSchema *schema, const Item *item, Buf *out);

/* The same as a document in 'arena': what queries and conditions see. */
Json item_document(Arena *arena, const PartitionSchema *schema, const Item *item);

/* Seconds since 1970 from which on the item is gone; UINT64_MAX if it stays. */
uint64_t item_expires_at_s(const PartitionSchema *schema, const Item *item);

/* Whether the server makes a member of this name: it is not part of the stored document. */
bool item_is_system(Slice name);

/* Takes the document of a request apart: checks that it is an object with a usable "id" and "ttl"
 * and leaves out the system properties that the client sent. */
MUST_USE Status item_prepare(Arena *arena, Json body, Json *document, Slice *id, int32_t *ttl_s,
                             Error *err);
