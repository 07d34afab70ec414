/* sealed_keys.c - see sealed_keys.h.
 *
 *     file = | "ORRYKEYS" | version u8 = 1 | 3 zero bytes | nonce, 12 bytes | sealed | tag, 16 |
 *
 * 'sealed' is AES-256-GCM of four slots, in the order of KeySlot; the 12 bytes before the nonce are
 * authenticated with them. All numbers are big-endian.
 *
 *     slot = | length u16 | made at, s since 1970, i64 | rotations u32 | key, zeros up to 256 bytes
 * |
 *
 * A length of 0 means that the slot is empty. Everything has a fixed place, so that the size of the
 * file does not tell how many keys there are, and a reader has nothing to believe before the tag is
 * checked. A nonce is random and new in every file: keys are changed by people, so there will never
 * be the 2^32 files under one sealing key at which random nonces become a risk.
 */
#include "api/core/sealed_keys.h"

#include "base/encoding.h"
#include "base/random.h"
#include "base/secret_mem.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

enum {
    HEAD_BYTES = 12,
    NONCE_BYTES = 12,
    SLOT_BYTES = 2 + 8 + 4 + AUTH_KEY_BYTES_MAX,
    PLAIN_BYTES = KEY_SLOT_COUNT * SLOT_BYTES,
    TAG_BYTES = 16,
};
static_assert(HEAD_BYTES + NONCE_BYTES + PLAIN_BYTES + TAG_BYTES == SEALED_KEYS_BYTES,
              "the parts of a file");
static_assert(AUTH_KEY_BYTES_MAX <= UINT16_MAX, "the length of a key is stored in a u16");

static const uint8_t HEAD[HEAD_BYTES] = {'O', 'R', 'R', 'Y', 'K', 'E', 'Y', 'S', 1, 0, 0, 0};

static const Slice NAMES[KEY_SLOT_COUNT] = {
    [KEY_SLOT_PRIMARY] = SLICE_INIT("primary"),
    [KEY_SLOT_SECONDARY] = SLICE_INIT("secondary"),
    [KEY_SLOT_PRIMARY_READ_ONLY] = SLICE_INIT("primary-read-only"),
    [KEY_SLOT_SECONDARY_READ_ONLY] = SLICE_INIT("secondary-read-only"),
};

Slice key_slot_name(KeySlot slot)
{
    ASSERT((unsigned)slot < KEY_SLOT_COUNT);
    return NAMES[slot];
}

bool key_slot_parse(Slice name, KeySlot *out)
{
    for (int i = 0; i < KEY_SLOT_COUNT; i++) {
        if (slice_equal(name, NAMES[i])) {
            *out = (KeySlot)i;
            return true;
        }
    }
    return false;
}

static void put_slots(const StoredKeys *keys, uint8_t plain[PLAIN_BYTES])
{
    memset(plain, 0, PLAIN_BYTES);
    for (size_t i = 0; i < KEY_SLOT_COUNT; i++) {
        const StoredKey *key = &keys->slots[i];
        uint8_t *at = plain + i * SLOT_BYTES;
        ASSERT(key->len <= AUTH_KEY_BYTES_MAX);
        at[0] = (uint8_t)(key->len >> 8);
        at[1] = (uint8_t)key->len;
        be64_put(at + 2, (uint64_t)key->made_at_s);
        be32_put(at + 10, key->rotations);
        memcpy(at + 14, key->bytes, key->len);
    }
}

static bool get_slots(const uint8_t plain[PLAIN_BYTES], StoredKeys *out)
{
    for (size_t i = 0; i < KEY_SLOT_COUNT; i++) {
        StoredKey *key = &out->slots[i];
        const uint8_t *at = plain + i * SLOT_BYTES;
        *key = (StoredKey){.len = (uint16_t)(at[0] << 8 | at[1])};
        if (key->len > AUTH_KEY_BYTES_MAX)
            return false;
        key->made_at_s = (int64_t)be64_get(at + 2);
        key->rotations = be32_get(at + 10);
        memcpy(key->bytes, at + 14, key->len);
    }
    return true;
}

void sealed_keys_seal(const StoredKeys *keys, const SealKey *seal, uint8_t out[SEALED_KEYS_BYTES])
{
    uint8_t plain[PLAIN_BYTES];
    uint8_t *nonce = out + HEAD_BYTES;
    uint8_t *sealed = nonce + NONCE_BYTES;
    int len = 0;
    put_slots(keys, plain);
    memcpy(out, HEAD, HEAD_BYTES);
    random_secret(nonce, NONCE_BYTES);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    ASSERT(ctx != NULL);
    /* These fail if memory is used up or they are called wrongly. */
    bool good =
        EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, seal->bytes, nonce) == 1 &&
        EVP_EncryptUpdate(ctx, NULL, &len, HEAD, HEAD_BYTES) == 1 &&
        EVP_EncryptUpdate(ctx, sealed, &len, plain, PLAIN_BYTES) == 1 &&
        EVP_EncryptFinal_ex(ctx, sealed + len, &len) == 1 &&
        EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES, sealed + PLAIN_BYTES) == 1;
    ASSERT(good);
    EVP_CIPHER_CTX_free(ctx);
    secret_wipe(plain, sizeof(plain));
}

static bool unseal(const uint8_t *file, const SealKey *seal, uint8_t plain[PLAIN_BYTES])
{
    const uint8_t *nonce = file + HEAD_BYTES;
    const uint8_t *sealed = nonce + NONCE_BYTES;
    uint8_t tag[TAG_BYTES];
    int len = 0;
    memcpy(tag, sealed + PLAIN_BYTES, TAG_BYTES);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    ASSERT(ctx != NULL);
    bool good = EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, seal->bytes, nonce) == 1 &&
                EVP_DecryptUpdate(ctx, NULL, &len, HEAD, HEAD_BYTES) == 1 &&
                EVP_DecryptUpdate(ctx, plain, &len, sealed, PLAIN_BYTES) == 1 &&
                EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES, tag) == 1 &&
                EVP_DecryptFinal_ex(ctx, plain + len, &len) == 1;
    EVP_CIPHER_CTX_free(ctx);
    ERR_clear_error(); /* or TLS on this thread would take it for its own */
    return good;
}

Status sealed_keys_open(Slice bytes, const SealKey *seal, StoredKeys *out, Error *err)
{
    if (bytes.len != SEALED_KEYS_BYTES)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "it has %zu bytes instead of %d, so it is damaged or no file of keys",
                         bytes.len, SEALED_KEYS_BYTES);
    if (memcmp(bytes.ptr, HEAD, HEAD_BYTES) != 0)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "it does not begin as version 1 of a file of keys does, so it is damaged "
                         "or of a newer version");
    uint8_t plain[PLAIN_BYTES];
    StoredKeys keys;
    bool good = unseal((const uint8_t *)bytes.ptr, seal, plain) && get_slots(plain, &keys);
    if (good)
        *out = keys;
    secret_wipe(plain, sizeof(plain));
    secret_wipe(&keys, sizeof(keys));
    if (!good)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "it is damaged, or was sealed with another sealing key");
    return STATUS_OK;
}

void key_fingerprint(const uint8_t *bytes, size_t len, char out[KEY_FINGERPRINT_LEN])
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    (void)SHA256(bytes, len, digest);
    hex_encode(digest, KEY_FINGERPRINT_LEN / 2, out);
}
