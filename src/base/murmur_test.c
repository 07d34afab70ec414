/* murmur_test.c - against published values, and every length of the last, incomplete block. */
#include "base/murmur.h"

#include "base/testing.h"

static void hashes_equal_the_published_ones(void **state)
{
    (void)state;
    static const struct {
        Slice bytes;
        uint32_t small;
        uint64_t large[2];
    } rows[] = {
        {SLICE_INIT(""), 0, {0, 0}},
        {SLICE_INIT("hello"), 0x248bfa47, {0xcbd8a7b341bd9b02, 0x5b1e906a48ae1d19}},
        {SLICE_INIT("hello, world"), 0x149bbb7f, {0x342fac623a5ebc8e, 0x4cdcbc079642414d}},
        {SLICE_INIT("The quick brown fox jumps over the lazy dog"),
         0x2e4ff723,
         {0xe34bbc7bbc071b6c, 0x7a433ca9c49a9347}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint64_t large[2];
        murmur3_128(rows[i].bytes, large);
        assert_int_equal(murmur3_32(rows[i].bytes), rows[i].small);
        assert_int_equal(large[0], rows[i].large[0]);
        assert_int_equal(large[1], rows[i].large[1]);
    }
}

/* The rows were computed by another implementation, one that passes the check that the hash's
 * author publishes (0xb0f57ee3 and 0x6384ba69). Row n is for n bytes: 1, 38, 75, ... modulo 256. */
static void every_length_hashes_as_elsewhere(void **state)
{
    (void)state;
    static const struct {
        uint32_t small;
        uint64_t large[2];
    } rows[] = {
        {0x00000000, {0x0000000000000000, 0x0000000000000000}},
        {0xe45ad1ab, {0x7ace5c908374fe16, 0x778867e4430e6785}},
        {0x3663cdd3, {0x822599f3518e151f, 0x778f5cae35a8d07e}},
        {0xfa37fb0a, {0xf5d47e3963547482, 0x72cc4b3dbef51e38}},
        {0x47a03a05, {0x22c1cb0042d648a4, 0x2845b5b510c2ca35}},
        {0xb9fafa0f, {0x95025ae6f0d14598, 0xde091c6939ed7ea0}},
        {0xa4cc5dca, {0x0a0cd56435b4a734, 0x785bd89a9f30bfc9}},
        {0x317b1ff5, {0xee338173b524c1ec, 0x85669269c8324fc8}},
        {0x10dd5b38, {0xafaa785ecc162107, 0x24b42e30cdda0436}},
        {0x28b62837, {0x6aa3c342eeee0510, 0x61b89e7903dd2b41}},
        {0x637fd3cd, {0x4de9d5e0e434c83f, 0x1ff2ca8e7fed3ba4}},
        {0xb8b6d25b, {0x5531e3914abbbb84, 0x3437418934ae6e63}},
        {0x1e74885a, {0xf622bd937c12392e, 0xfdbfdf96efc3a08c}},
        {0x18be035d, {0x88b4289bca113f94, 0xbca0a56fe7cc9a11}},
        {0xa2ea3d3a, {0x5d5f5674d8821a24, 0x321351f475cfc71e}},
        {0xcebdfdb0, {0xaa4e3f21767eac61, 0xdcf608ed9febda3b}},
        {0xfdafc6f9, {0xe6a3b14a6ecdcfe9, 0xed09a0563ebddf22}},
        {0x516bb54d, {0x5488322dfad670f0, 0xf496873b7c201f53}},
        {0xe237f3c6, {0x06a7de4f144caca7, 0x86bd9eec37e2f93b}},
        {0xe36b61bf, {0xdcfbe6ae1c31a044, 0x4fc6e26607ccb012}},
        {0xc7892a25, {0xb65bdd15bd33e293, 0x2137afe1f92d9cfe}},
        {0x64f14a90, {0x9cfe0a89b1012c10, 0xe94a73ff8bf4dfec}},
        {0xd4dcd3cf, {0x3fe3342a34be6ece, 0x28ac5a9bc83acf5f}},
        {0xc7d0899d, {0x0cc03fdb5924cfcd, 0x0457ac03aaaf0f67}},
        {0xb75ef25f, {0x6a2dacf0ed5550c9, 0x604163711143b3a8}},
        {0xdb8286b4, {0xe607f2d0bbb1445f, 0xd394c1dab68eed19}},
        {0x08405e8b, {0x67025ebb1d3b810c, 0x1257b3ee85cc270d}},
        {0x236b4367, {0xb13c08f41778e4ec, 0xa4ba79cfe3e76d46}},
        {0x47536ac1, {0x041d9eccf15a022a, 0xfb402e877c349478}},
        {0xbdf47bf4, {0xda3427521e7615da, 0x832a08c6db7a17bc}},
        {0x077d468c, {0x0282c9514ac0699b, 0x215f4ab0f4cebba9}},
        {0x7a7916e3, {0x5101548f28ddf5ca, 0xf9893bc97ec3284c}},
        {0xcb464174, {0xeb44762a16117b3d, 0xbbe9d7c2a9ec01da}},
        {0xc7580fe5, {0x78859956a2d5c048, 0xaeafa75d4b29eff1}},
    };
    char memory[ARRAY_COUNT(rows) + 8];
    for (size_t shift = 0; shift < 8; shift++) { /* at every alignment */
        char *bytes = memory + shift;
        for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
            bytes[i] = (char)(uint8_t)(i * 37 + 1);
        for (size_t len = 0; len < ARRAY_COUNT(rows); len++) {
            uint64_t large[2];
            murmur3_128(slice_make(bytes, len), large);
            assert_int_equal(murmur3_32(slice_make(bytes, len)), rows[len].small);
            assert_int_equal(large[0], rows[len].large[0]);
            assert_int_equal(large[1], rows[len].large[1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_equal_the_published_ones),
        cmocka_unit_test(every_length_hashes_as_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
