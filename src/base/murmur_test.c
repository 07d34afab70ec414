/* murmur_test.c - MurmurHash3 against values of a separate implementation. The messages are the
 * bytes 0, 1, 2, ... */
#include "base/murmur.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct {
    size_t len;
    uint32_t hash_32;
    uint64_t low, high;
} ROWS[] = {
    {0, 0x00000000, 0x0000000000000000, 0x0000000000000000},
    {1, 0x514e28b7, 0x4610abe56eff5cb5, 0x51622daa78f83583},
    {2, 0x70e1a2c0, 0x7cb3f5c58dab264c, 0xf03c01326ec2e044},
    {3, 0x51d4d0d7, 0xb872a12fef53e6be, 0xfb6255c252b396b6},
    {4, 0xf4c0ec39, 0xe1c594ae0ddfaf10, 0xd3d605bd13c2fde2},
    {5, 0xcca4dccb, 0x41ee8cd4a6f94036, 0xf8d0155e630c23f6},
    {7, 0x8d7e4914, 0xbd4c6987ca4b0d68, 0x613addd4bd25c787},
    {8, 0xd161d673, 0x47a7e1bdd68e2fc8, 0x60e6ee02ec31dcc7},
    {9, 0xe7e27a50, 0xfbb4cb0f6e812d32, 0x78de751d0200ffb9},
    {15, 0x5bd6952d, 0x47231598fd4925e9, 0xcd846dee88c67de9},
    {16, 0x191573dd, 0x444924b591903f30, 0xab906456762fe845},
    {17, 0xcbe58dc6, 0x5c76f40f9fe7c20e, 0xc15f026b9edaa824},
    {31, 0x64426ad6, 0x053dd3e1a32cd094, 0x9ee59aefb4005490},
    {32, 0xcac37638, 0xc66d9022b62f500f, 0x1c050a6e34c31151},
    {33, 0x5460867a, 0x7d41281bfaba4612, 0x55ac8073a7d6a30b},
    {255, 0x6334b600, 0x03b09a824269589d, 0x85fb67610eedda83},
};

static void hashes_equal_the_reference_wherever_the_bytes_are(void **state)
{
    (void)state;
    for (size_t offset = 0; offset < 8; offset++) {
        uint8_t memory[264];
        for (size_t i = 0; i < 255; i++)
            memory[offset + i] = (uint8_t)i;
        for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
            Slice bytes = slice_make(memory + offset, ROWS[i].len);
            uint64_t hash[2];
            murmur3_128(bytes, hash);
            assert_int_equal(murmur3_32(bytes), ROWS[i].hash_32);
            assert_true(hash[0] == ROWS[i].low);
            assert_true(hash[1] == ROWS[i].high);
        }
    }
}

static void nothing_at_all_has_a_hash(void **state)
{
    (void)state;
    uint64_t hash[2] = {1, 1};
    murmur3_128(SLICE_EMPTY, hash);
    assert_true(hash[0] == 0 && hash[1] == 0);
    assert_int_equal(murmur3_32(SLICE_EMPTY), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_equal_the_reference_wherever_the_bytes_are),
        cmocka_unit_test(nothing_at_all_has_a_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
