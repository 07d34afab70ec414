/* history_test.c - nothing is counted twice, nothing is lost, and what is old goes. Run under the
 * thread sanitizer too (make tsan). */
#include "throughput/history.h"

#include "base/clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define START_S 1700000000u
#define STEP_S  1700000100u /* a step begins */

static HistoryCount requests(uint64_t charge, uint64_t count)
{
    return (HistoryCount){.charge = charge, .requests = count};
}

static void expect(HistoryCount found, Charge charge, uint64_t count, uint64_t throttled)
{
    assert_int_equal(found.charge, charge);
    assert_int_equal(found.requests, count);
    assert_int_equal(found.throttled, throttled);
}

typedef struct Fixture {
    HistoryPool pool;
    History *history;
    FakeClock clock;
} Fixture;

static int open_fixture(void **state)
{
    static Fixture fixture;
    history_pool_init(&fixture.pool, 1);
    fixture.history = history_new();
    fake_clock_init(&fixture.clock, (uint64_t)START_S * 1000000);
    *state = &fixture;
    return 0;
}

static int close_fixture(void **state)
{
    Fixture *f = *state;
    history_unref(f->history);
    assert_int_equal(atomic_load(&f->pool.used), 0);
    assert_int_equal(atomic_load(&f->pool.operations_used), 0);
    return 0;
}

static uint64_t now(const Fixture *f)
{
    return (uint64_t)clock_wall_s(&f->clock.clock);
}

static void advance_s(Fixture *f, uint64_t s)
{
    fake_clock_advance(&f->clock, s * 1000000);
}

static void what_is_added_is_in_its_second_its_step_and_the_total(void **state)
{
    Fixture *f = *state;
    history_add(f->history, &f->pool, now(f), HISTORY_READ, requests(100, 1));
    history_add(f->history, &f->pool, now(f), HISTORY_READ,
                (HistoryCount){.requests = 1, .throttled = 1});
    advance_s(f, 1);
    history_add(f->history, &f->pool, now(f), HISTORY_READ, requests(571, 1));

    expect(history_at(f->history, HISTORY_SECOND, START_S), 100, 2, 1);
    expect(history_at(f->history, HISTORY_SECOND, START_S + 1), 571, 1, 0);
    expect(history_at(f->history, HISTORY_SECOND, START_S + 2), 0, 0, 0);
    expect(history_at(f->history, HISTORY_SECOND, START_S - 1), 0, 0, 0);
    expect(history_at(f->history, HISTORY_STEP, START_S), 671, 3, 1);
    expect(history_at(f->history, HISTORY_STEP, START_S + HISTORY_STEP_S), 0, 0, 0);
    expect(history_total(f->history), 671, 3, 1);
}

static void a_span_has_the_sum_and_the_highest_second(void **state)
{
    Fixture *f = *state;
    static const uint64_t charges[] = {100, 900, 300};
    for (size_t i = 0; i < ARRAY_COUNT(charges); i++, advance_s(f, 1))
        history_add(f->history, &f->pool, now(f), HISTORY_READ, requests(charges[i], 1));
    static const struct {
        uint64_t from, to;
        Charge sum, max;
    } rows[] = {
        {0, 3, 1300, 900}, {0, 1, 100, 100}, {2, 3, 300, 300},
        {1, 1, 0, 0},      {2, 1, 0, 0},     {3, 9, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        HistorySpan span = history_span(f->history, START_S + rows[i].from, START_S + rows[i].to);
        assert_int_equal(span.sum.charge, rows[i].sum);
        assert_int_equal(span.charge_max, rows[i].max);
    }
}

static void an_hour_of_seconds_and_a_week_of_steps_are_kept(void **state)
{
    Fixture *f = *state;
    const uint64_t week_s = (uint64_t)HISTORY_STEPS * HISTORY_STEP_S;
    for (uint64_t s = 0; s < HISTORY_SECONDS; s++, advance_s(f, 1))
        history_add(f->history, &f->pool, now(f), HISTORY_READ, requests(s + 1, 1));
    for (uint64_t s = 0; s < HISTORY_SECONDS; s++)
        expect(history_at(f->history, HISTORY_SECOND, START_S + s), s + 1, 1, 0);

    /* A second more, and the first one's slot is its. */
    history_add(f->history, &f->pool, now(f), HISTORY_READ, requests(7, 1));
    expect(history_at(f->history, HISTORY_SECOND, START_S + HISTORY_SECONDS), 7, 1, 0);
    expect(history_at(f->history, HISTORY_SECOND, START_S), 0, 0, 0);
    expect(history_at(f->history, HISTORY_SECOND, START_S + 1), 2, 1, 0);

    /* The step still has the count when its seconds are gone, until a week has passed. */
    HistoryCount first = history_at(f->history, HISTORY_STEP, START_S + HISTORY_STEP_S);
    assert_int_equal(first.requests, HISTORY_STEP_S);
    for (uint64_t s = 0; s < HISTORY_SECONDS; s++, advance_s(f, 1))
        history_add(f->history, &f->pool, now(f), HISTORY_READ, requests(1, 1));
    expect(history_at(f->history, HISTORY_SECOND, START_S + HISTORY_STEP_S), 0, 0, 0);
    expect(history_at(f->history, HISTORY_STEP, START_S + HISTORY_STEP_S), first.charge,
           first.requests, 0);
    advance_s(f, week_s - HISTORY_SECONDS);
    for (uint64_t s = 0; s < HISTORY_SECONDS; s++, advance_s(f, 1))
        history_add(f->history, &f->pool, now(f), HISTORY_READ, requests(9, 1));
    uint64_t later = START_S + HISTORY_SECONDS + week_s + HISTORY_STEP_S;
    expect(history_at(f->history, HISTORY_STEP, later), 9 * HISTORY_STEP_S, HISTORY_STEP_S, 0);
    expect(history_at(f->history, HISTORY_STEP, later - week_s), 0, 0, 0);
}

/* Every lap of 40 hours on the same slot: a slot must never show what an older lap left in it. */
static void a_slot_of_an_older_hour_counts_for_nothing(void **state)
{
    Fixture *f = *state;
    for (uint64_t hour = 0; hour < 40; hour++) {
        expect(history_at(f->history, HISTORY_SECOND, now(f)), 0, 0, 0);
        history_add(f->history, &f->pool, now(f), HISTORY_READ, (HistoryCount){hour, 2, 1});
        expect(history_at(f->history, HISTORY_SECOND, now(f)), hour, 2, 1);
        advance_s(f, HISTORY_SECONDS);
    }
}

static void a_clock_that_is_set_back_begins_slots_anew(void **state)
{
    Fixture *f = *state;
    history_add(f->history, &f->pool, START_S + HISTORY_SECONDS, HISTORY_READ, requests(5, 1));
    history_add(f->history, &f->pool, START_S, HISTORY_READ, requests(3, 1));
    expect(history_at(f->history, HISTORY_SECOND, START_S), 3, 1, 0);
    expect(history_at(f->history, HISTORY_SECOND, START_S + HISTORY_SECONDS), 0, 0, 0);
}

static void counts_stop_at_their_largest_value(void **state)
{
    Fixture *f = *state;
    HistoryCount much = {HISTORY_RU_MAX - 1, HISTORY_SECOND_REQUESTS_MAX - 1,
                         HISTORY_SECOND_REQUESTS_MAX - 1};
    history_add(f->history, &f->pool, START_S, HISTORY_READ, much);
    expect(history_at(f->history, HISTORY_SECOND, START_S), much.charge, much.requests,
           much.throttled);
    for (int i = 0; i < 2; i++)
        history_add(f->history, &f->pool, START_S, HISTORY_READ, (HistoryCount){1, 1, 1});
    expect(history_at(f->history, HISTORY_SECOND, START_S), HISTORY_RU_MAX,
           HISTORY_SECOND_REQUESTS_MAX, HISTORY_SECOND_REQUESTS_MAX);
    expect(history_at(f->history, HISTORY_STEP, START_S), HISTORY_RU_MAX,
           HISTORY_SECOND_REQUESTS_MAX, HISTORY_SECOND_REQUESTS_MAX);
    expect(history_total(f->history), much.charge + 2, much.requests + 2, much.throttled + 2);

    /* A step is full when its seconds are over and have been added to it. */
    for (uint64_t s = 0; s < HISTORY_STEP_S; s++)
        history_add(f->history, &f->pool, STEP_S + s, HISTORY_READ,
                    (HistoryCount){UINT64_MAX, UINT64_MAX, 1});
    for (uint64_t s = 0; s < HISTORY_STEP_S; s++)
        history_add(f->history, &f->pool, STEP_S + HISTORY_SECONDS + s, HISTORY_READ,
                    requests(1, 1));
    expect(history_at(f->history, HISTORY_STEP, STEP_S), HISTORY_RU_MAX, HISTORY_STEP_REQUESTS_MAX,
           HISTORY_STEP_S);
    /* Nothing of it runs over into the lap. */
    expect(history_at(f->history, HISTORY_SECOND, START_S + HISTORY_SECONDS), 0, 0, 0);
    expect(history_at(f->history, HISTORY_SECOND, START_S - HISTORY_SECONDS), 0, 0, 0);
}

static void a_late_history_has_totals_only_until_another_ends(void **state)
{
    Fixture *f = *state;
    assert_false(history_is_kept(f->history));
    history_add(f->history, &f->pool, START_S, HISTORY_READ, requests(1, 1));
    assert_true(history_is_kept(f->history));

    History *late = history_new();
    history_add(late, &f->pool, START_S, HISTORY_READ, requests(2, 1));
    assert_false(history_is_kept(late));
    expect(history_at(late, HISTORY_SECOND, START_S), 0, 0, 0);
    expect(history_total(late), 2, 1, 0);

    history_unref(history_ref(f->history)); /* not the last one to hold it */
    assert_true(history_is_kept(f->history));
    history_unref(f->history);
    history_add(late, &f->pool, START_S, HISTORY_READ, requests(3, 1));
    assert_true(history_is_kept(late));
    expect(history_at(late, HISTORY_SECOND, START_S), 3, 1, 0);
    expect(history_total(late), 5, 2, 0);
    f->history = late;
}

static HistoryCount operation_at(const Fixture *f, HistoryOperation operation, HistoryGrain grain,
                                 uint64_t time_s)
{
    return history_operation_at(f->history, operation, grain, time_s);
}

static void each_kind_of_request_is_counted_by_itself(void **state)
{
    Fixture *f = *state;
    for (uint64_t i = 0; i < 3; i++, advance_s(f, 1))
        history_add(f->history, &f->pool, now(f), HISTORY_UPSERT, requests(500 + i, 1));
    history_add(f->history, &f->pool, START_S, HISTORY_READ, requests(100, 1));
    history_add(f->history, &f->pool, START_S, HISTORY_UPSERT,
                (HistoryCount){.requests = 1, .throttled = 1});
    expect(operation_at(f, HISTORY_UPSERT, HISTORY_SECOND, START_S), 500, 2, 1);
    expect(operation_at(f, HISTORY_UPSERT, HISTORY_SECOND, START_S + 2), 502, 1, 0);
    expect(operation_at(f, HISTORY_READ, HISTORY_SECOND, START_S), 100, 1, 0);
    expect(operation_at(f, HISTORY_DELETE, HISTORY_SECOND, START_S), 0, 0, 0);
    expect(operation_at(f, HISTORY_UPSERT, HISTORY_STEP, START_S), 1503, 4, 1);
    expect(history_at(f->history, HISTORY_SECOND, START_S), 600, 3, 1);
}

static void kinds_are_kept_by_the_second_for_ten_minutes_and_by_steps_for_a_day(void **state)
{
    Fixture *f = *state;
    const uint64_t day_s = (uint64_t)HISTORY_OPERATION_STEPS * HISTORY_STEP_S;
    for (uint64_t s = 0; s < day_s; s++, advance_s(f, 1))
        history_add(f->history, &f->pool, now(f), HISTORY_PATCH, requests(2, 1));
    uint64_t end = now(f);
    expect(operation_at(f, HISTORY_PATCH, HISTORY_SECOND, end - HISTORY_OPERATION_SECONDS), 2, 1,
           0);
    expect(operation_at(f, HISTORY_PATCH, HISTORY_SECOND, end - HISTORY_OPERATION_SECONDS - 1), 0,
           0, 0);
    for (uint64_t s = START_S + HISTORY_STEP_S; s < end; s += HISTORY_STEP_S) {
        HistoryCount step = operation_at(f, HISTORY_PATCH, HISTORY_STEP, s);
        expect(step, history_at(f->history, HISTORY_STEP, s).charge, step.charge / 2, 0);
    }
}

static void kinds_without_a_place_are_in_the_sum_alone(void **state)
{
    Fixture *f = *state;
    for (unsigned i = 0; i < HISTORY_OPERATIONS; i++)
        history_add(f->history, &f->pool, START_S, (HistoryOperation)i, requests(1, 1));
    for (unsigned i = 0; i < HISTORY_OPERATIONS; i++)
        assert_int_equal(operation_at(f, (HistoryOperation)i, HISTORY_SECOND, START_S).requests,
                         i < HISTORY_OPERATIONS_EACH ? 1 : 0);
    expect(history_at(f->history, HISTORY_SECOND, START_S), HISTORY_OPERATIONS, HISTORY_OPERATIONS,
           0);
}

/* Threads that add while time goes on under them. Every lap they meet, and go on an hour after they
 * began, so that they find all slots in use, and none is an hour behind the others. */
enum { THREADS = 4, LAPS = 12, ADDS = 4000, ADDS_PER_MOVE = 7 };

typedef struct Adder {
    pthread_t thread;
    Fixture *fixture;
    pthread_barrier_t *meeting;
    uint64_t step_s;
    bool is_first; /* moves the clock when they meet */
} Adder;

static void *add_many(void *arg)
{
    Adder *adder = arg;
    Fixture *f = adder->fixture;
    for (uint64_t lap = 0; lap < LAPS; lap++) {
        for (int i = 0; i < ADDS; i++) {
            history_add(f->history, &f->pool, now(f), HISTORY_READ, (HistoryCount){3, 2, 1});
            if (i % ADDS_PER_MOVE == 0)
                advance_s(f, adder->step_s);
        }
        (void)pthread_barrier_wait(adder->meeting);
        if (adder->is_first && adder->step_s > 0 && lap + 1 < LAPS)
            advance_s(f, START_S + (lap + 1) * HISTORY_SECONDS - now(f));
        (void)pthread_barrier_wait(adder->meeting);
    }
    return NULL;
}

static void run_adders(Fixture *f, uint64_t step_s)
{
    Adder adders[THREADS];
    pthread_barrier_t meeting;
    assert_int_equal(pthread_barrier_init(&meeting, NULL, THREADS), 0);
    for (size_t i = 0; i < THREADS; i++) {
        adders[i] =
            (Adder){.fixture = f, .meeting = &meeting, .step_s = step_s, .is_first = i == 0};
        assert_int_equal(pthread_create(&adders[i].thread, NULL, add_many, &adders[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(adders[i].thread, NULL), 0);
    assert_int_equal(pthread_barrier_destroy(&meeting), 0);
}

static void many_threads_lose_nothing_in_one_second(void **state)
{
    Fixture *f = *state;
    run_adders(f, 0);
    const uint64_t adds = (uint64_t)THREADS * LAPS * ADDS;
    expect(history_at(f->history, HISTORY_SECOND, START_S), 3 * adds, 2 * adds, adds);
    expect(history_at(f->history, HISTORY_STEP, START_S), 3 * adds, 2 * adds, adds);
    expect(operation_at(f, HISTORY_READ, HISTORY_SECOND, START_S), 3 * adds, 2 * adds, adds);
    expect(history_total(f->history), 3 * adds, 2 * adds, adds);
}

/* The seconds of the last lap are exact, and the steps have everything. */
static void many_threads_lose_nothing_while_time_goes_on(void **state)
{
    Fixture *f = *state;
    run_adders(f, 1);
    const uint64_t lap = (uint64_t)THREADS * ADDS;
    HistoryCount steps = {0};
    for (uint64_t s = START_S; s <= now(f) + HISTORY_STEP_S; s += HISTORY_STEP_S) {
        HistoryCount step = history_at(f->history, HISTORY_STEP, s);
        steps.charge += step.charge;
        steps.requests += step.requests;
        steps.throttled += step.throttled;
    }
    expect(steps, 3 * lap * LAPS, 2 * lap * LAPS, lap * LAPS);

    HistorySpan span = history_span(f->history, now(f) - HISTORY_SECONDS + 1, now(f) + 1);
    assert_true(now(f) - START_S < LAPS * HISTORY_SECONDS);
    expect(span.sum, 3 * lap, 2 * lap, lap);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_added_is_in_its_second_its_step_and_the_total),
        TEST(a_span_has_the_sum_and_the_highest_second),
        TEST(an_hour_of_seconds_and_a_week_of_steps_are_kept),
        TEST(a_slot_of_an_older_hour_counts_for_nothing),
        TEST(a_clock_that_is_set_back_begins_slots_anew),
        TEST(counts_stop_at_their_largest_value),
        TEST(a_late_history_has_totals_only_until_another_ends),
        TEST(each_kind_of_request_is_counted_by_itself),
        TEST(kinds_are_kept_by_the_second_for_ten_minutes_and_by_steps_for_a_day),
        TEST(kinds_without_a_place_are_in_the_sum_alone),
        TEST(many_threads_lose_nothing_in_one_second),
        TEST(many_threads_lose_nothing_while_time_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
