/* test_seed.h - where the random choices of a test begin. For tests only.
 *
 * It is the same place each time, so that a tree that passes its tests passes them again;
 * ORRERY_TEST_SEED chooses another one. `make soak` runs every test that calls test_seed() from
 * a new place each time.
 */
#pragma once

#include "base/slice.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static inline uint64_t test_seed(void)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets it */
    const char *text = getenv("ORRERY_TEST_SEED");
    uint64_t seed = 1;
    bool is_number = text == NULL || slice_to_u64(slice_from_cstr(text), &seed);
    ASSERT(is_number);
    (void)printf("ORRERY_TEST_SEED=%" PRIu64 "\n", seed);
    return seed;
}
