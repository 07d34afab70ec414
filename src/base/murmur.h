/* murmur.h - MurmurHash3, the hashes that the protocol prescribes for partition keys.
 *
 * They are fixed for all time: the SDKs compute them too. They are not secret and not hard to
 * collide, so nothing here may rely on two inputs having two hashes.
 */
#pragma once

#include "base/slice.h"

/* The x86 variant of 32 bits, seed 0. */
uint32_t murmur3_32(Slice bytes);

/* The x64 variant of 128 bits, seed 0: 'out[0]' is the low half. */
void murmur3_128(Slice bytes, uint64_t out[2]);
