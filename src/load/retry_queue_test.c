/* retry_queue_test.c - who waits shortest comes first. */
#include "load/retry_queue.h"

#include "base/random.h"
#include "base/testing.h"

static void they_come_in_the_order_of_their_times(void **state)
{
    (void)state;
    enum { COUNT = 500 };
    RetryQueue queue;
    Random random;
    uint64_t times[COUNT];
    random_init(&random, 7);
    retry_queue_init(&queue, COUNT);
    for (int turn = 0; turn < 3; turn++) {
        assert_true(retry_queue_next_us(&queue) == UINT64_MAX);
        for (uint32_t i = 0; i < COUNT; i++) {
            times[i] = random_below(&random, 200);
            retry_queue_add(&queue, times[i], i);
        }
        bool seen[COUNT] = {false};
        uint64_t last = 0;
        for (uint32_t i = 0; i < COUNT; i++) {
            uint64_t at_us = retry_queue_next_us(&queue);
            uint32_t index = retry_queue_take(&queue);
            assert_true(at_us >= last);
            assert_true(times[index] == at_us);
            assert_false(seen[index]);
            seen[index] = true;
            last = at_us;
        }
    }
    retry_queue_done(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_come_in_the_order_of_their_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
