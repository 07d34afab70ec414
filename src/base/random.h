/* random.h - randomness, passed in, so that a test can repeat a run from its seed.
 *
 * A Random is fast and not secret (xoshiro256**): identifiers, sampling, tests. Secrets and the
 * seeds of hash tables that clients can fill come from random_secret().
 * Threads    A Random belongs to one thread.
 */
#pragma once

#include "base/encoding.h"

typedef struct Random {
    uint64_t state[4];
} Random;

void random_init(Random *random, uint64_t seed);
void random_init_secret(Random *random); /* seeded by the system */
uint64_t random_u64(Random *random);
uint64_t random_below(Random *random, uint64_t bound); /* uniform in [0, bound) */

/* Bytes that cannot be guessed, from the system. */
void random_secret(void *bytes, size_t len);

/* A version 4 GUID in its usual 36 characters, not terminated. */
void random_guid(Random *random, char out[GUID_LEN]);
