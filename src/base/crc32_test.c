/* crc32_test.c - against published values, and against the definition, bit by bit. */
#include "base/crc32.h"

#include "base/random.h"
#include "base/testing.h"

static uint32_t bit_by_bit(Slice bytes)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < bytes.len; i++) {
        crc ^= (uint8_t)bytes.ptr[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static void checksums_equal_the_published_ones(void **state)
{
    (void)state;
    static const struct {
        Slice bytes;
        uint32_t crc;
    } rows[] = {
        {SLICE_INIT(""), 0},
        {SLICE_INIT("a"), 0xe8b7be43},
        {SLICE_INIT("123456789"), 0xcbf43926}, /* the check value of catalogues of checksums */
        {SLICE_INIT("The quick brown fox jumps over the lazy dog"), 0x414fa339},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(crc32_of(rows[i].bytes), rows[i].crc);
}

/* Every length around the step of eight bytes, at every alignment. */
static void every_length_and_alignment_equals_the_definition(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 32);
    char bytes[64];
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (char)random_below(&random, 256);
        for (size_t start = 0; start < 8; start++) {
            for (size_t len = 0; start + len <= sizeof(bytes); len++) {
                Slice part = slice_make(bytes + start, len);
                assert_int_equal(crc32_of(part), bit_by_bit(part));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_equal_the_published_ones),
        cmocka_unit_test(every_length_and_alignment_equals_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
