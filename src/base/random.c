/* random.c - see random.h. */
#include "base/random.h"

#include <errno.h>
#include <sys/random.h>

static uint64_t rotate_left(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void random_init(Random *random, uint64_t seed)
{
    /* splitmix64 spreads a small seed over the whole state, which must not be all zero. */
    for (size_t i = 0; i < ARRAY_COUNT(random->state); i++) {
        seed += 0x9E3779B97F4A7C15u;
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        random->state[i] = z ^ (z >> 31);
    }
}

void random_init_secret(Random *random)
{
    uint64_t seed = 0;
    random_secret(&seed, sizeof(seed));
    random_init(random, seed);
}

uint64_t random_u64(Random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t random_below(Random *random, uint64_t bound)
{
    ASSERT(bound > 0);
    /* Values above the last whole multiple of 'bound' would favour small results. */
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    uint64_t value = random_u64(random);
    while (value >= limit)
        value = random_u64(random);
    return value % bound;
}

void random_secret(void *bytes, size_t len)
{
    char *at = bytes;
    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);
        if (got < 0) {
            ASSERT(errno == EINTR);
            continue;
        }
        at += got;
        len -= (size_t)got;
    }
}

void random_guid(Random *random, char out[GUID_LEN])
{
    uint64_t high = (random_u64(random) & ~UINT64_C(0xF000)) | 0x4000;
    uint64_t low = (random_u64(random) & ~(UINT64_C(3) << 62)) | UINT64_C(1) << 63;
    guid_print(high, low, out);
}
