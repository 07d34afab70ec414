/* hash_test.c - SipHash-1-3 against values from a separate program.
 *
 * That program was written from the description of SipHash with the numbers of rounds as
 * parameters; with 2 and 4 it gives the value that the description prints. Key and messages are
 * the description's own: the bytes 0, 1, 2, ...
 */
#include "base/hash.h"

#include "base/testing.h"

#include <string.h>

static const HashKey KEY = {.k0 = 0x0706050403020100, .k1 = 0x0f0e0d0c0b0a0908};

static void hashes_equal_the_reference(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        uint64_t hash;
    } rows[] = {
        {0, 0xabac0158050fc4dc},   {1, 0xc9f49bf37d57ca93},   {7, 0xd3927d989bb11140},
        {8, 0x369095118d299a8e},   {9, 0x25a48eb36c063de4},   {15, 0xd320d86d2a519956},
        {16, 0xcc4fdd1a7d908b66},  {63, 0x9d199062b7bbb3a8},  {64, 0xf17997ec4b4a6065},
        {255, 0xf76214e3153c4a15}, {256, 0x75b3e64e167de370},
    };
    uint8_t message[257];
    for (size_t i = 0; i < sizeof(message); i++)
        message[i] = (uint8_t)i;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_true(hash_keyed(KEY, slice_make(message, rows[i].len)) == rows[i].hash);
    HashKey zero = {0};
    assert_true(hash_keyed(zero, SLICE("orrery")) == 0x545e6d5d364cfc13);
}

static void the_place_in_memory_does_not_matter(void **state)
{
    (void)state;
    char memory[64];
    uint64_t expected = hash_keyed(KEY, SLICE("a text of some length"));
    for (size_t offset = 0; offset < 16; offset++) {
        memcpy(memory + offset, "a text of some length", 21);
        assert_true(hash_keyed(KEY, slice_make(memory + offset, 21)) == expected);
    }
}

static void another_key_gives_another_order(void **state)
{
    (void)state;
    HashKey other = {.k0 = KEY.k0 ^ 1, .k1 = KEY.k1};
    HashKey third = {.k0 = KEY.k0, .k1 = KEY.k1 ^ 1};
    assert_true(hash_keyed(KEY, SLICE("a")) != hash_keyed(other, SLICE("a")));
    assert_true(hash_keyed(KEY, SLICE("a")) != hash_keyed(third, SLICE("a")));
    assert_true(hash_keyed(KEY, SLICE_EMPTY) != hash_keyed(KEY, SLICE("\0")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_equal_the_reference),
        cmocka_unit_test(the_place_in_memory_does_not_matter),
        cmocka_unit_test(another_key_gives_another_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
