/* sealed_keys_test.c - what was sealed is opened again, and nothing else is. */
#include "api/core/sealed_keys.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const SealKey SEAL = {.bytes = "0123456789abcdef0123456789abcde"};

static StoredKeys some_keys(void)
{
    StoredKeys keys = {0};
    keys.slots[KEY_SLOT_PRIMARY] =
        (StoredKey){.len = 64, .made_at_s = 1700000000, .rotations = 3, .bytes = "primary"};
    keys.slots[KEY_SLOT_SECONDARY_READ_ONLY] =
        (StoredKey){.len = AUTH_KEY_BYTES_MAX, .made_at_s = -1, .rotations = UINT32_MAX};
    memset(keys.slots[KEY_SLOT_SECONDARY_READ_ONLY].bytes, 0xff, AUTH_KEY_BYTES_MAX);
    return keys;
}

static Status open_sealed(const uint8_t *bytes, size_t len, const SealKey *seal, StoredKeys *out)
{
    Error err = {0};
    Status status = sealed_keys_open(slice_make(bytes, len), seal, out, &err);
    assert_true(status == STATUS_OK || err.message[0] != '\0');
    return status;
}

static void what_was_sealed_is_opened(void **state)
{
    (void)state;
    StoredKeys keys = some_keys();
    StoredKeys opened;
    uint8_t sealed[SEALED_KEYS_BYTES];
    sealed_keys_seal(&keys, &SEAL, sealed);
    memset(&opened, 0x55, sizeof(opened));
    assert_int_equal(open_sealed(sealed, sizeof(sealed), &SEAL, &opened), STATUS_OK);
    for (size_t i = 0; i < KEY_SLOT_COUNT; i++) {
        assert_int_equal(opened.slots[i].len, keys.slots[i].len);
        assert_int_equal(opened.slots[i].made_at_s, keys.slots[i].made_at_s);
        assert_int_equal(opened.slots[i].rotations, keys.slots[i].rotations);
        assert_memory_equal(opened.slots[i].bytes, keys.slots[i].bytes, AUTH_KEY_BYTES_MAX);
    }
}

static void no_key_is_in_the_sealed_bytes_and_no_two_are_alike(void **state)
{
    (void)state;
    StoredKeys keys = some_keys();
    uint8_t a[SEALED_KEYS_BYTES];
    uint8_t b[SEALED_KEYS_BYTES];
    sealed_keys_seal(&keys, &SEAL, a);
    sealed_keys_seal(&keys, &SEAL, b);
    assert_null(memmem(a, sizeof(a), "primary", 7));
    assert_memory_not_equal(a + 12, b + 12, 12); /* the nonces */
    assert_memory_not_equal(a + 24, b + 24, 64);
}

static void every_changed_bit_is_found(void **state)
{
    (void)state;
    StoredKeys keys = some_keys();
    uint8_t sealed[SEALED_KEYS_BYTES];
    sealed_keys_seal(&keys, &SEAL, sealed);
    for (size_t i = 0; i < sizeof(sealed); i++) {
        StoredKeys opened = {0};
        sealed[i] ^= (uint8_t)(1 << i % 8);
        assert_int_equal(open_sealed(sealed, sizeof(sealed), &SEAL, &opened), STATUS_CORRUPT);
        assert_int_equal(opened.slots[0].len, 0); /* nothing was written */
        sealed[i] ^= (uint8_t)(1 << i % 8);
    }
}

static void another_length_or_sealing_key_is_refused(void **state)
{
    (void)state;
    StoredKeys keys = some_keys();
    StoredKeys opened;
    uint8_t sealed[SEALED_KEYS_BYTES + 1] = {0};
    uint8_t zeros[SEALED_KEYS_BYTES] = {0};
    SealKey other = SEAL;
    other.bytes[31] ^= 1;
    sealed_keys_seal(&keys, &SEAL, sealed);
    static const size_t lengths[] = {0, 1, 12, SEALED_KEYS_BYTES - 1, SEALED_KEYS_BYTES + 1};
    for (size_t i = 0; i < ARRAY_COUNT(lengths); i++)
        assert_int_equal(open_sealed(sealed, lengths[i], &SEAL, &opened), STATUS_CORRUPT);
    assert_int_equal(open_sealed(sealed, SEALED_KEYS_BYTES, &other, &opened), STATUS_CORRUPT);
    assert_int_equal(open_sealed(zeros, SEALED_KEYS_BYTES, &SEAL, &opened), STATUS_CORRUPT);
}

static void slots_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < KEY_SLOT_COUNT; i++) {
        KeySlot slot = KEY_SLOT_COUNT;
        assert_true(key_slot_parse(key_slot_name((KeySlot)i), &slot));
        assert_int_equal(slot, i);
        assert_int_equal(key_slot_is_read_only(slot), i >= 2);
    }
    KeySlot slot;
    assert_false(key_slot_parse(SLICE("Primary"), &slot));
    assert_false(key_slot_parse(SLICE_EMPTY, &slot));
}

static void fingerprints_are_those_of_sha256(void **state)
{
    (void)state;
    char out[KEY_FINGERPRINT_LEN];
    key_fingerprint((const uint8_t *)"abc", 3, out);
    assert_memory_equal(out, "BA7816BF8F01CFEA", KEY_FINGERPRINT_LEN); /* FIPS 180-2 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sealed_is_opened),
        cmocka_unit_test(no_key_is_in_the_sealed_bytes_and_no_two_are_alike),
        cmocka_unit_test(every_changed_bit_is_found),
        cmocka_unit_test(another_length_or_sealing_key_is_refused),
        cmocka_unit_test(slots_have_names),
        cmocka_unit_test(fingerprints_are_those_of_sha256),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
