/* sealed_keys_fuzz.c - any bytes as a file of keys: refused unless they were sealed, and sealing
 * any slots and opening them gives the same.
 *
 * The first byte of an input chooses what the rest is: a file, or the contents of slots.
 */
#include "api/core/sealed_keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const SealKey SEAL = {.bytes = "sealing key of this fuzz target"};

static void check_file(Slice bytes)
{
    StoredKeys keys;
    Error err = {0};
    Status status = sealed_keys_open(bytes, &SEAL, &keys, &err);
    ASSERT(status == STATUS_CORRUPT); /* no seed is sealed with this key */
    ASSERT(err.message[0] != '\0');
}

static void check_round_trip(Slice bytes)
{
    StoredKeys keys = {0};
    for (size_t i = 0; i < KEY_SLOT_COUNT && bytes.len > 0; i++) {
        StoredKey *key = &keys.slots[i];
        size_t len = (uint8_t)bytes.ptr[0] < bytes.len ? (uint8_t)bytes.ptr[0] : bytes.len;
        key->len = (uint16_t)len;
        key->made_at_s = (int64_t)(bytes.len * 1000003);
        key->rotations = (uint32_t)len;
        memcpy(key->bytes, bytes.ptr, len);
        bytes = slice_from(bytes, len + 1);
    }
    uint8_t sealed[SEALED_KEYS_BYTES];
    StoredKeys opened;
    Error err;
    sealed_keys_seal(&keys, &SEAL, sealed);
    Status status = sealed_keys_open(slice_make(sealed, sizeof(sealed)), &SEAL, &opened, &err);
    ASSERT(status == STATUS_OK);
    for (size_t i = 0; i < KEY_SLOT_COUNT; i++) {
        ASSERT(opened.slots[i].len == keys.slots[i].len);
        ASSERT(opened.slots[i].made_at_s == keys.slots[i].made_at_s);
        ASSERT(opened.slots[i].rotations == keys.slots[i].rotations);
        ASSERT(memcmp(opened.slots[i].bytes, keys.slots[i].bytes, AUTH_KEY_BYTES_MAX) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Slice bytes = slice_make(data, size);
    if (size > 0 && data[0] % 2 == 0)
        check_file(slice_from(bytes, 1));
    else
        check_round_trip(slice_from(bytes, 1));
    return 0;
}
