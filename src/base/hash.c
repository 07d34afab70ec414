/* hash.c - see hash.h. One compression round and three finalisation rounds: enough against chosen
 * names, and half the cost of the original parameters. */
#include "base/hash.h"

typedef struct SipState {
    uint64_t v0, v1, v2, v3;
} SipState;

static uint64_t rotate_left(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static void sip_round(SipState *s)
{
    s->v0 += s->v1;
    s->v1 = rotate_left(s->v1, 13) ^ s->v0;
    s->v0 = rotate_left(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate_left(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate_left(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate_left(s->v1, 17) ^ s->v2;
    s->v2 = rotate_left(s->v2, 32);
}

uint64_t hash_keyed(HashKey key, Slice bytes)
{
    SipState s = {
        .v0 = key.k0 ^ 0x736f6d6570736575u,
        .v1 = key.k1 ^ 0x646f72616e646f6du,
        .v2 = key.k0 ^ 0x6c7967656e657261u,
        .v3 = key.k1 ^ 0x7465646279746573u,
    };
    size_t whole = bytes.len & ~(size_t)7;
    for (size_t i = 0; i < whole; i += 8) {
        uint64_t m;
        memcpy(&m, bytes.ptr + i, sizeof(m));
        s.v3 ^= m;
        sip_round(&s);
        s.v0 ^= m;
    }
    uint64_t last = (uint64_t)bytes.len << 56;
    for (size_t i = whole; i < bytes.len; i++)
        last |= (uint64_t)(uint8_t)bytes.ptr[i] << (8 * (i - whole));
    s.v3 ^= last;
    sip_round(&s);
    s.v0 ^= last;
    s.v2 ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
