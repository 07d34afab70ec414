/* sealed_keys.h - the account's keys as they are kept in the data folder: encrypted and
 * authenticated with a sealing key.
 *
 * A signature can only be checked with the key itself, so keys cannot be kept as hashes. What is
 * sealed is worth nothing without the sealing key, and a change of any bit is found.
 *
 * Threads    Pure functions.
 * Format     At the top of sealed_keys.c.
 */
#pragma once

#include "api/core/auth.h"

/* The keys that an account has, in the order in which they are stored. */
typedef enum KeySlot {
    KEY_SLOT_PRIMARY,
    KEY_SLOT_SECONDARY,
    KEY_SLOT_PRIMARY_READ_ONLY,
    KEY_SLOT_SECONDARY_READ_ONLY,
    KEY_SLOT_COUNT
} KeySlot;

Slice key_slot_name(KeySlot slot); /* "primary-read-only" */
bool key_slot_parse(Slice name, KeySlot *out);
static inline bool key_slot_is_read_only(KeySlot slot)
{
    return slot >= KEY_SLOT_PRIMARY_READ_ONLY;
}

typedef struct StoredKey {
    uint16_t len; /* 0 if there is none */
    uint8_t bytes[AUTH_KEY_BYTES_MAX];
    int64_t made_at_s;  /* wall clock */
    uint32_t rotations; /* how many keys were made for this slot, with this one */
} StoredKey;

typedef struct StoredKeys {
    StoredKey slots[KEY_SLOT_COUNT];
} StoredKeys;

#define SEAL_KEY_BYTES 32
typedef struct SealKey {
    uint8_t bytes[SEAL_KEY_BYTES];
} SealKey;

/* A file always has this size. */
#define SEALED_KEYS_BYTES (8 + 4 + 12 + KEY_SLOT_COUNT * (2 + 8 + 4 + AUTH_KEY_BYTES_MAX) + 16)

void sealed_keys_seal(const StoredKeys *keys, const SealKey *seal, uint8_t out[SEALED_KEYS_BYTES]);

/* STATUS_CORRUPT if 'bytes' were not made by sealed_keys_seal with the same sealing key. */
MUST_USE Status sealed_keys_open(Slice bytes, const SealKey *seal, StoredKeys *out, Error *err);

/* Tells two keys apart without giving one away: 16 hexadecimal characters of its SHA-256. */
#define KEY_FINGERPRINT_LEN 16
void key_fingerprint(const uint8_t *bytes, size_t len, char out[KEY_FINGERPRINT_LEN]);
