/* random_test.c - a seed repeats its run, bounds hold, and GUIDs look like GUIDs. */
#include "base/random.h"

#include "base/testing.h"

#include <string.h>

/* From a separate program, written from the published descriptions of xoshiro256** and splitmix64.
 */
static void a_seed_gives_the_published_sequence(void **state)
{
    (void)state;
    static const struct {
        uint64_t seed, values[4];
    } rows[] = {
        {0, {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0, 0x6aa594f1262d2d2c}},
        {1, {0xb3f2af6d0fc710c5, 0x853b559647364cea, 0x92f89756082a4514, 0x642e1c7bc266a3a7}},
        {42, {0x15780b2e0c2ec716, 0x6104d9866d113a7e, 0xae17533239e499a1, 0xecb8ad4703b360a1}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Random random;
        random_init(&random, rows[i].seed);
        for (size_t j = 0; j < ARRAY_COUNT(rows[i].values); j++)
            assert_true(random_u64(&random) == rows[i].values[j]);
    }
}

static void bounded_values_stay_below_and_reach_every_one(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 1);
    for (uint64_t bound = 1; bound < 40; bound++) {
        uint64_t seen = 0;
        for (int i = 0; i < 2000; i++) {
            uint64_t value = random_below(&random, bound);
            assert_true(value < bound);
            seen |= UINT64_C(1) << value;
        }
        assert_true(seen == (UINT64_C(1) << bound) - 1);
    }
    /* Just over half of the range: without rejection the lower half would come twice as often. */
    uint64_t bound = (UINT64_C(1) << 63) + 1;
    int low = 0;
    for (int i = 0; i < 10000; i++)
        low += random_below(&random, bound) < bound / 2 ? 1 : 0;
    assert_in_range(low, 4700, 5300);
    assert_true(random_below(&random, UINT64_MAX) < UINT64_MAX);
}

static void secrets_fill_exactly_their_bytes_and_differ(void **state)
{
    (void)state;
    uint8_t a[66] = {0};
    uint8_t b[66] = {0};
    random_secret(a + 1, 64);
    random_secret(b + 1, 64);
    assert_memory_not_equal(a + 1, b + 1, 64);
    assert_int_equal(a[0] + a[65] + b[0] + b[65], 0);
    random_secret(NULL, 0);

    Random first;
    Random second;
    random_init_secret(&first);
    random_init_secret(&second);
    assert_true(random_u64(&first) != random_u64(&second));
}

static void large_secrets_come_whole(void **state)
{
    (void)state;
    /* The system may answer requests over 256 bytes in parts. */
    static uint8_t bytes[100000];
    random_secret(bytes, sizeof(bytes));
    size_t zeros = 0;
    for (size_t i = 0; i < sizeof(bytes); i++)
        zeros += bytes[i] == 0 ? 1 : 0;
    assert_in_range(zeros, 200, 600); /* 391 expected */
    size_t tail_zeros = 0;
    for (size_t i = sizeof(bytes) - 64; i < sizeof(bytes); i++)
        tail_zeros += bytes[i] == 0 ? 1 : 0;
    assert_in_range(tail_zeros, 0, 16);
}

static void guids_have_version_4_and_their_dashes(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 1);
    char previous[GUID_LEN] = {0};
    for (int round = 0; round < 1000; round++) {
        char guid[GUID_LEN + 1];
        guid[GUID_LEN] = '#';
        random_guid(&random, guid);
        assert_int_equal(guid[GUID_LEN], '#');
        for (int i = 0; i < GUID_LEN; i++) {
            if (i == 8 || i == 13 || i == 18 || i == 23)
                assert_int_equal(guid[i], '-');
            else
                assert_non_null(strchr("0123456789abcdef", guid[i]));
        }
        assert_int_equal(guid[14], '4');
        assert_non_null(strchr("89ab", guid[19]));
        assert_memory_not_equal(guid, previous, GUID_LEN);
        memcpy(previous, guid, GUID_LEN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_gives_the_published_sequence),
        cmocka_unit_test(bounded_values_stay_below_and_reach_every_one),
        cmocka_unit_test(secrets_fill_exactly_their_bytes_and_differ),
        cmocka_unit_test(large_secrets_come_whole),
        cmocka_unit_test(guids_have_version_4_and_their_dashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
