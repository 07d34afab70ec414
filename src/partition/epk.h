/* epk.h - partition key values and their hashes.
 *
 * A partition key is one value per path of the container's definition (up to three). Its hash, the
 * effective partition key (EPK), places it: upper-case hex text on the wire, its bytes in our keys.
 * It is computed exactly as the SDKs do it; epk_vectors.json has the proof.
 *
 * Values are undefined (the path is missing, or holds an array or an object), null, booleans,
 * numbers and strings.
 *
 * Ownership  A PartitionKey borrows its strings. An Epk is a value.
 * Threads    Nothing here has state.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "json/json.h"
#include "json/property_path.h"

/* The hash takes more components than the three that a definition may have. */
#define PARTITION_KEY_PARTS_MAX 6

/* Bytes of one string. Version 1 hashes only its first 100 characters: strings that agree in them
 * are one logical partition. */
#define PARTITION_KEY_BYTES_MAX 2048

typedef enum PartitionKind {
    PARTITION_HASH_V1,
    PARTITION_HASH_V2,
    PARTITION_MULTI_HASH,
    PARTITION_NONE, /* an old-style container without a partition key */
} PartitionKind;

#define PARTITION_KEY_PATHS_MAX 3

typedef struct PartitionKeyDefinition {
    PartitionKind kind;
    size_t path_count; /* 0 for PARTITION_NONE */
    PropertyPath paths[PARTITION_KEY_PATHS_MAX];
    bool system_key; /* "systemKey": the key that a migrated old-style container was given */
} PartitionKeyDefinition;

typedef struct PartitionKey {
    size_t count; /* fewer than the definition has paths: a prefix */
    Json parts[PARTITION_KEY_PARTS_MAX];
} PartitionKey;

/* Version 1 is the longest: the hash as a number, then each component whole. */
#define EPK_NUMBER_BYTES_MAX    10
#define EPK_COMPONENT_BYTES_MAX 102
#define EPK_BYTES_MAX           (EPK_NUMBER_BYTES_MAX + PARTITION_KEY_PARTS_MAX * EPK_COMPONENT_BYTES_MAX)

/* Of an item: a definition has fewer paths than the hash takes components. */
#define EPK_ITEM_BYTES_MAX \
    (EPK_NUMBER_BYTES_MAX + PARTITION_KEY_PATHS_MAX * EPK_COMPONENT_BYTES_MAX)

typedef struct Epk {
    uint8_t bytes[EPK_BYTES_MAX];
    uint16_t len;
} Epk;

static inline Slice epk_slice(const Epk *epk)
{
    return slice_make(epk->bytes, epk->len);
}

static inline void epk_set(Epk *epk, Slice bytes)
{
    ASSERT(bytes.len <= EPK_BYTES_MAX);
    epk->len = (uint16_t)bytes.len;
    if (bytes.len > 0)
        memcpy(epk->bytes, bytes.ptr, bytes.len);
}

/* Version 2 has one hash, MultiHash one per component. */
#define EPK_HASH_BYTES 16

/* The hash of a whole key or, for PARTITION_MULTI_HASH, of a prefix. An empty key, and any key of
 * PARTITION_NONE, has an empty EPK. Strings are at most PARTITION_KEY_BYTES_MAX long: a caller
 * with a key from a client calls partition_key_check first. */
void epk_make(PartitionKind kind, const PartitionKey *key, Epk *out);

/* The end of the EPKs that begin with 'epk': [epk, end) is the range of a key, or of a prefix. */
Slice epk_prefix_end(Arena *arena, Slice epk);

/* Where among all hashes an EPK, or a bound, stands: 0 to 1. Keys are spread evenly over that. */
double epk_fraction(PartitionKind kind, Slice epk);

/* A number as version 1 encodes it, in memcmp order; returns how many bytes were written. */
size_t epk_encode_number(double number, uint8_t out[EPK_NUMBER_BYTES_MAX]);

/* STATUS_BAD_REQUEST if a string of the key is longer than PARTITION_KEY_BYTES_MAX. */
MUST_USE Status partition_key_check(const PartitionKey *key, Error *err);

/* The key of a document: missing values, arrays and objects are undefined. */
void partition_key_extract(const PartitionKeyDefinition *definition, Json document,
                           PartitionKey *out);

/* Equality of values as the protocol has it: numbers as doubles (but 0 and -0 differ, as their
 * hashes do), strings byte by byte. */
bool partition_key_equal(const PartitionKey *a, const PartitionKey *b);
