/* crc32.c - eight bytes a step, one table for each of them.
 *
 * A checksum is linear: the entry of a byte is the exclusive or of the entries of its bits. So the
 * eight tables are written as 64 numbers, from which the compiler makes the 2,048 entries.
 * The numbers are one sequence, read backwards in each row: what becomes of the lowest bit of the
 * register after 1, 2, ... 64 steps of the division.
 */
#include "base/crc32.h"

#define BIT(i, n, value) (((i) >> (n)&1) != 0 ? (value) : 0u)
#define ENTRY(i, b0, b1, b2, b3, b4, b5, b6, b7)                                     \
    (BIT(i, 0, b0) ^ BIT(i, 1, b1) ^ BIT(i, 2, b2) ^ BIT(i, 3, b3) ^ BIT(i, 4, b4) ^ \
     BIT(i, 5, b5) ^ BIT(i, 6, b6) ^ BIT(i, 7, b7))
#define ENTRIES_4(i, ...)                                                            \
    ENTRY(i, __VA_ARGS__), ENTRY((i) + 1, __VA_ARGS__), ENTRY((i) + 2, __VA_ARGS__), \
        ENTRY((i) + 3, __VA_ARGS__)
#define ENTRIES_16(i, ...)                                                                       \
    ENTRIES_4(i, __VA_ARGS__), ENTRIES_4((i) + 4, __VA_ARGS__), ENTRIES_4((i) + 8, __VA_ARGS__), \
        ENTRIES_4((i) + 12, __VA_ARGS__)
#define ENTRIES_64(i, ...)                                         \
    ENTRIES_16(i, __VA_ARGS__), ENTRIES_16((i) + 16, __VA_ARGS__), \
        ENTRIES_16((i) + 32, __VA_ARGS__), ENTRIES_16((i) + 48, __VA_ARGS__)
#define TABLE(...)                                                                                \
    {                                                                                             \
        ENTRIES_64(0u, __VA_ARGS__), ENTRIES_64(64u, __VA_ARGS__), ENTRIES_64(128u, __VA_ARGS__), \
            ENTRIES_64(192u, __VA_ARGS__)                                                         \
    }

/* clang-format off */
static const uint32_t TABLES[8][256] = {
    TABLE(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832, 0x1db71064, 0x3b6e20c8, 0x76dc4190, 0xedb88320),
    TABLE(0x191b3141, 0x32366282, 0x646cc504, 0xc8d98a08, 0x4ac21251, 0x958424a2, 0xf0794f05, 0x3b83984b),
    TABLE(0x01c26a37, 0x0384d46e, 0x0709a8dc, 0x0e1351b8, 0x1c26a370, 0x384d46e0, 0x709a8dc0, 0xe1351b80),
    TABLE(0xb8bc6765, 0xaa09c88b, 0x8f629757, 0xc5b428ef, 0x5019579f, 0xa032af3e, 0x9b14583d, 0xed59b63b),
    TABLE(0x3d6029b0, 0x7ac05360, 0xf580a6c0, 0x30704bc1, 0x60e09782, 0xc1c12f04, 0x58f35849, 0xb1e6b092),
    TABLE(0xcb5cd3a5, 0x4dc8a10b, 0x9b914216, 0xec53826d, 0x03d6029b, 0x07ac0536, 0x0f580a6c, 0x1eb014d8),
    TABLE(0xa6770bb4, 0x979f1129, 0xf44f2413, 0x33ef4e67, 0x67de9cce, 0xcfbd399c, 0x440b7579, 0x8816eaf2),
    TABLE(0xccaa009e, 0x4225077d, 0x844a0efa, 0xd3e51bb5, 0x7cbb312b, 0xf9766256, 0x299dc2ed, 0x533b85da),
};
/* clang-format on */

static uint32_t add_eight(uint32_t crc, const uint8_t *at)
{
    uint32_t low;
    memcpy(&low, at, sizeof(low)); /* the CPU is little-endian: encoding.h asserts it */
    low ^= crc;
    return TABLES[7][low & 0xff] ^ TABLES[6][low >> 8 & 0xff] ^ TABLES[5][low >> 16 & 0xff] ^
           TABLES[4][low >> 24] ^ TABLES[3][at[4]] ^ TABLES[2][at[5]] ^ TABLES[1][at[6]] ^
           TABLES[0][at[7]];
}

uint32_t crc32_of(Slice bytes)
{
    uint32_t crc = UINT32_MAX;
    const uint8_t *at = (const uint8_t *)bytes.ptr;
    size_t left = bytes.len;
    for (; left >= 8; at += 8, left -= 8)
        crc = add_eight(crc, at);
    for (; left > 0; at++, left--)
        crc = crc >> 8 ^ TABLES[0][(crc ^ *at) & 0xff];
    return ~crc;
}
