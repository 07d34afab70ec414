/* hash.h - a keyed hash for tables that clients can fill (SipHash-1-3).
 *
 * The key is secret and drawn when the process starts, so that no client can choose names that
 * fall into one bucket. The hashes of partition keys are another matter: they are fixed by the
 * protocol.
 */
#pragma once

#include "base/slice.h"

typedef struct HashKey {
    uint64_t k0, k1;
} HashKey;

uint64_t hash_keyed(HashKey key, Slice bytes);
