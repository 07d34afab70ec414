/* murmur.c - see murmur.h. */
#include "base/murmur.h"

static uint32_t rotate_32(uint32_t x, int k)
{
    return (x << k) | (x >> (32 - k));
}

static uint64_t rotate_64(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static uint32_t scramble_32(uint32_t k)
{
    return rotate_32(k * 0xcc9e2d51u, 15) * 0x1b873593u;
}

uint32_t murmur3_32(Slice bytes)
{
    uint32_t h = 0;
    size_t whole = bytes.len & ~(size_t)3;
    for (size_t i = 0; i < whole; i += 4) {
        uint32_t k;
        memcpy(&k, bytes.ptr + i, sizeof(k));
        h = rotate_32(h ^ scramble_32(k), 13) * 5 + 0xe6546b64u;
    }
    uint32_t tail = 0;
    for (size_t i = whole; i < bytes.len; i++)
        tail |= (uint32_t)(uint8_t)bytes.ptr[i] << (8 * (i - whole));
    h ^= scramble_32(tail); /* of zero it is zero */
    h ^= (uint32_t)bytes.len;
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    return h ^ (h >> 16);
}

static uint64_t scramble_low(uint64_t k)
{
    return rotate_64(k * 0x87c37b91114253d5u, 31) * 0x4cf5ad432745937fu;
}

static uint64_t scramble_high(uint64_t k)
{
    return rotate_64(k * 0x4cf5ad432745937fu, 33) * 0x87c37b91114253d5u;
}

static uint64_t finish_64(uint64_t k)
{
    k = (k ^ (k >> 33)) * 0xff51afd7ed558ccdu;
    k = (k ^ (k >> 33)) * 0xc4ceb9fe1a85ec53u;
    return k ^ (k >> 33);
}

void murmur3_128(Slice bytes, uint64_t out[2])
{
    uint64_t low = 0;
    uint64_t high = 0;
    size_t whole = bytes.len & ~(size_t)15;
    for (size_t i = 0; i < whole; i += 16) {
        uint64_t k[2];
        memcpy(k, bytes.ptr + i, sizeof(k));
        low = (rotate_64(low ^ scramble_low(k[0]), 27) + high) * 5 + 0x52dce729;
        high = (rotate_64(high ^ scramble_high(k[1]), 31) + low) * 5 + 0x38495ab5;
    }
    uint64_t tail[2] = {0, 0};
    for (size_t i = whole; i < bytes.len; i++) {
        size_t at = i - whole;
        tail[at / 8] |= (uint64_t)(uint8_t)bytes.ptr[i] << (8 * (at % 8));
    }
    high ^= scramble_high(tail[1]);
    low ^= scramble_low(tail[0]);
    low ^= bytes.len;
    high ^= bytes.len;
    low += high;
    high += low;
    low = finish_64(low);
    high = finish_64(high);
    low += high;
    high += low;
    out[0] = low;
    out[1] = high;
}
