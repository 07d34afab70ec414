/* key_choice.c - see key_choice.h.
 *
 * A zipfian number is drawn by rejection and inversion: k^-skew is below the area under x^-skew
 * from k - 1/2 to k + 1/2, whose integral can be inverted. A uniform draw from the whole integral
 * is turned into x and rounded to k; it is taken if it falls into the part of k's area that k^-skew
 * fills, which it nearly always does.
 */
#include "load/key_choice.h"

#include <math.h>

static const double SKEW = KEY_CHOICE_SKEW;

/* A prime above KEY_CHOICE_COUNT_MAX, so multiplying by it modulo any count is one to one. */
#define SPREAD_FACTOR UINT64_C(2654435761)
static_assert(SPREAD_FACTOR > KEY_CHOICE_COUNT_MAX, "no count has this factor");
static_assert(KEY_CHOICE_COUNT_MAX < UINT64_MAX / SPREAD_FACTOR, "the product fits");

static const char *const NAMES[] = {
#define X(name, text) [KEY_##name] = (text),
    KEY_DISTRIBUTIONS(X)
#undef X
};

bool key_distribution_parse(Slice name, KeyDistribution *out)
{
    for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
        if (slice_equal(name, slice_from_cstr(NAMES[i]))) {
            *out = (KeyDistribution)i;
            return true;
        }
    }
    return false;
}

static double weight(double x)
{
    return pow(x, -SKEW);
}

/* The integral of 'weight' from 1 to x, and its inverse. */
static double integral(double x)
{
    return (pow(x, 1 - SKEW) - 1) / (1 - SKEW);
}

static double inverse(double area)
{
    double base = 1 + area * (1 - SKEW);
    return pow(base, 1 / (1 - SKEW));
}

void zipfian_init(Zipfian *zipfian, uint64_t count)
{
    ASSERT(count > 0);
    *zipfian = (Zipfian){
        .count = count,
        .low = integral(1.5) - 1,
        .high = integral((double)count + 0.5),
        .accept = 2 - inverse(integral(2.5) - weight(2)),
    };
}

uint64_t zipfian_next(const Zipfian *zipfian, Random *random)
{
    for (;;) {
        double uniform = (double)(random_u64(random) >> 11) * 0x1p-53;
        double area = zipfian->high + uniform * (zipfian->low - zipfian->high);
        double x = inverse(area);
        double rounded = floor(x + 0.5);
        double last = (double)zipfian->count;
        double k = rounded < 1 ? 1 : rounded > last ? last : rounded;
        if (k - x <= zipfian->accept || area >= integral(k + 0.5) - weight(k))
            return (uint64_t)k - 1;
    }
}

void key_choice_init(KeyChoice *choice, KeyDistribution distribution, uint64_t count)
{
    ASSERT(count > 0);
    ASSERT(count <= KEY_CHOICE_COUNT_MAX);
    *choice = (KeyChoice){.distribution = distribution, .count = count};
    zipfian_init(&choice->zipfian, count);
}

uint64_t key_choice_next(KeyChoice *choice, Random *random, uint64_t first_new, uint64_t new_count)
{
    switch (choice->distribution) {
    case KEY_ZIPFIAN:
        return zipfian_next(&choice->zipfian, random) * SPREAD_FACTOR % choice->count;
    case KEY_LATEST: {
        if (choice->zipfian.count != choice->count + new_count)
            zipfian_init(&choice->zipfian, choice->count + new_count);
        uint64_t age = zipfian_next(&choice->zipfian, random);
        return age < new_count ? first_new + new_count - 1 - age
                               : choice->count - 1 - (age - new_count);
    }
    case KEY_UNIFORM:
    case KEY_DISTRIBUTION_COUNT:
        break;
    }
    return random_below(random, choice->count);
}
