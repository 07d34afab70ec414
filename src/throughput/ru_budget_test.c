/* ru_budget_test.c - what is provisioned is what is accepted, on a clock that the tests own; and no
 * charge is lost between threads. Run under the thread sanitizer too (make tsan). */
#include "throughput/ru_budget.h"

#include "base/clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define SECOND    UINT64_C(1000000)
#define BEGIN_US  (1000 * SECOND)
#define RU(units) ((Charge)(units)*100)

static const BudgetClass PLAIN = {0};
static const BudgetClass LOW = {.is_low = true};

static Budget *budget_of(uint64_t ru, const FakeClock *clock)
{
    BudgetTerms terms = {.share = RU(ru), .is_enforced = true};
    return budget_new(&terms, clock_monotonic_us(&clock->clock));
}

static bool admits(Budget *budget, const FakeClock *clock)
{
    uint32_t wait_ms = 0;
    return budget_admit(budget, PLAIN, 0, clock_monotonic_us(&clock->clock), &wait_ms) ==
           BUDGET_ADMITTED;
}

static void charge(Budget *budget, Charge amount, const FakeClock *clock)
{
    budget_charge(budget, PLAIN, amount, clock_monotonic_us(&clock->clock));
}

/* Takes as much as is given at this moment; what was taken. */
static Charge drain(Budget *budget, BudgetClass class, Charge each, const FakeClock *clock)
{
    uint64_t now_us = clock_monotonic_us(&clock->clock);
    uint32_t wait_ms = 0;
    Charge taken = 0;
    while (budget_admit(budget, class, 0, now_us, &wait_ms) == BUDGET_ADMITTED) {
        budget_charge(budget, class, each, now_us);
        taken += each;
    }
    return taken;
}

/* ---- the rate ---- */

/* A client asks for one thing after another; told to wait, it waits for so long. */
typedef struct Client {
    uint64_t next_us; /* when it asks again */
    size_t partition;
} Client;

enum { CLIENTS_MAX = 8, PARTITIONS_MAX = 8, ANSWER_US = 80 };

/* What clients get of the partitions together in 'seconds'. Each goes from one partition to the
 * next, so that all of them are asked for more than they may give. */
static Charge run_clients(Budget **budgets, size_t partitions, size_t clients, Charge each,
                          uint64_t seconds, FakeClock *clock)
{
    Client all[CLIENTS_MAX];
    for (size_t i = 0; i < clients; i++)
        all[i] = (Client){.next_us = clock_monotonic_us(&clock->clock), .partition = i};
    uint64_t end_us = clock_monotonic_us(&clock->clock) + seconds * SECOND;
    Charge taken = 0;
    for (;;) {
        Client *first = &all[0];
        for (size_t i = 1; i < clients; i++)
            first = all[i].next_us < first->next_us ? &all[i] : first;
        uint64_t now_us = clock_monotonic_us(&clock->clock);
        if (first->next_us > now_us)
            fake_clock_advance(clock, first->next_us - now_us);
        now_us = clock_monotonic_us(&clock->clock);
        if (now_us >= end_us)
            return taken;
        Budget *budget = budgets[first->partition % partitions];
        uint32_t wait_ms = 0;
        if (budget_admit(budget, PLAIN, 0, now_us, &wait_ms) == BUDGET_ADMITTED) {
            budget_charge(budget, PLAIN, each, now_us);
            taken += each;
            first->next_us = now_us + ANSWER_US / clients;
        } else {
            first->next_us = now_us + (uint64_t)wait_ms * 1000;
        }
        first->partition += clients % partitions == 0 ? 1 : clients;
    }
}

static void what_is_accepted_is_what_is_provisioned(void **state)
{
    (void)state;
    static const struct {
        uint64_t ru;
        size_t partitions;
        Charge each;
    } rows[] = {
        {400, 1, 100},  {400, 2, 571},   {4000, 1, 100},    {4000, 1, 2267},
        {4000, 4, 571}, {40000, 4, 629}, {40000, 8, 62500}, {400, 1, 12500},
    };
    static const size_t clients[] = {1, 4, 8};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(clients); j++) {
            FakeClock clock;
            fake_clock_init(&clock, BEGIN_US);
            Budget *budgets[PARTITIONS_MAX];
            for (size_t k = 0; k < rows[i].partitions; k++) {
                budgets[k] = budget_of(rows[i].ru / rows[i].partitions, &clock);
                /* The first second's credit is gone. */
                charge(budgets[k], RU(rows[i].ru / rows[i].partitions), &clock);
            }
            Charge taken =
                run_clients(budgets, rows[i].partitions, clients[j], rows[i].each, 10, &clock);
            Charge provisioned = RU(rows[i].ru) * 10;
            Charge overdraft = rows[i].each * rows[i].partitions;
            if (taken < provisioned * 97 / 100 || taken > provisioned + overdraft)
                fail_msg("%llu RU/s, %zu partitions, %zu clients: accepted %llu of %llu",
                         (unsigned long long)rows[i].ru, rows[i].partitions, clients[j],
                         (unsigned long long)taken / 100, (unsigned long long)provisioned / 100);
            for (size_t k = 0; k < rows[i].partitions; k++)
                budget_unref(budgets[k]);
        }
    }
}

static void a_second_of_what_was_not_used_is_kept_and_no_more(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    AUTO(budget_unref) Budget *budget = budget_of(400, &clock);
    assert_int_equal(drain(budget, PLAIN, 100, &clock), RU(400));
    fake_clock_advance(&clock, 3600 * SECOND);
    assert_int_equal(drain(budget, PLAIN, 100, &clock), RU(400));
    fake_clock_advance(&clock, SECOND / 2);
    assert_int_equal(drain(budget, PLAIN, 100, &clock), RU(200));
}

static void nothing_is_refused_that_stays_within_the_rate(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    AUTO(budget_unref) Budget *budget = budget_of(400, &clock);
    for (int i = 0; i < 40000; i++) { /* all at once at some time of each second */
        if (i % 400 == 0)
            fake_clock_advance(&clock, SECOND);
        assert_true(admits(budget, &clock));
        charge(budget, 100, &clock);
    }
    for (int i = 0; i < 40000; i++) { /* one after the other */
        fake_clock_advance(&clock, SECOND / 400);
        assert_true(admits(budget, &clock));
        charge(budget, 100, &clock);
    }
}

/* ---- the wait ---- */

static void after_the_wait_a_request_is_admitted_and_a_millisecond_earlier_not(void **state)
{
    (void)state;
    static const struct {
        uint64_t ru;
        Charge debt; /* beyond the first second's credit */
        BudgetClass class;
    } rows[] = {
        {400, 0, {0}},         {400, 1, {0}},           {400, 100, {0}}, {400, 12500, {0}},
        {4000, 571, {0}},      {10000, 125000, {0}},    {333, 777, {0}}, {40000, 3, {0}},
        {400, 100, {true, 0}}, {10000, 629, {true, 0}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeClock clock;
        fake_clock_init(&clock, BEGIN_US + 137 * i);
        AUTO(budget_unref) Budget *budget = budget_of(rows[i].ru, &clock);
        charge(budget, RU(rows[i].ru) + rows[i].debt, &clock);
        uint32_t wait_ms = 0;
        uint64_t now_us = clock_monotonic_us(&clock.clock);
        assert_int_equal(budget_admit(budget, rows[i].class, 0, now_us, &wait_ms), BUDGET_SPENT);
        uint64_t at_us = now_us + (uint64_t)wait_ms * 1000;
        uint32_t rest_ms = 0;
        assert_int_equal(budget_admit(budget, rows[i].class, 0, at_us - 1000, &rest_ms),
                         BUDGET_SPENT);
        assert_int_equal(rest_ms, 1);
        assert_int_equal(budget_admit(budget, rows[i].class, 0, at_us, &rest_ms), BUDGET_ADMITTED);
    }
}

static void one_request_may_overdraw_and_the_next_waits_for_it(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    AUTO(budget_unref) Budget *budget = budget_of(400, &clock);
    assert_true(admits(budget, &clock));
    charge(budget, RU(2000), &clock); /* the first second's 400 and four seconds more */
    uint32_t wait_ms = 0;
    assert_int_equal(budget_admit(budget, PLAIN, 0, BEGIN_US, &wait_ms), BUDGET_SPENT);
    assert_int_equal(wait_ms, 4001);
    fake_clock_advance(&clock, 4 * SECOND);
    assert_false(admits(budget, &clock));
    fake_clock_advance(&clock, 1000);
    assert_true(admits(budget, &clock));
}

static void being_turned_away_costs_nothing(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    AUTO(budget_unref) Budget *budget = budget_of(400, &clock);
    (void)drain(budget, PLAIN, 100, &clock);
    uint32_t first_ms = 0;
    uint32_t wait_ms = 0;
    (void)budget_admit(budget, PLAIN, 0, BEGIN_US, &first_ms);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(budget_admit(budget, PLAIN, 0, BEGIN_US, &wait_ms), BUDGET_SPENT);
    assert_int_equal(wait_ms, first_ms);
}

static void without_enforcement_or_a_share_everything_is_admitted(void **state)
{
    (void)state;
    static const BudgetTerms rows[] = {{.share = RU(400)}, {.share = 0, .is_enforced = true}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(budget_unref) Budget *budget = budget_new(&rows[i], BEGIN_US);
        uint32_t wait_ms = 0;
        for (int j = 0; j < 1000; j++) {
            assert_int_equal(budget_admit(budget, LOW, 0, BEGIN_US, &wait_ms), BUDGET_ADMITTED);
            budget_charge(budget, LOW, RU(10), BEGIN_US);
        }
    }
}

static void of_requests_that_come_together_as_many_are_admitted_as_there_is_for(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    AUTO(budget_unref) Budget *budget = budget_of(400, &clock);
    Charge ahead = 0;
    uint32_t wait_ms = 0;
    size_t admitted = 0;
    while (budget_admit(budget, PLAIN, ahead, BEGIN_US, &wait_ms) == BUDGET_ADMITTED) {
        ahead += 571;
        admitted++;
    }
    assert_int_equal(admitted, 71); /* 70 take 399.7, and the last one begins */
    charge(budget, ahead, &clock);
    uint32_t told_ms = wait_ms;
    assert_int_equal(budget_admit(budget, PLAIN, 0, BEGIN_US, &wait_ms), BUDGET_SPENT);
    assert_int_equal(told_ms, wait_ms);
}

/* ---- burst ---- */

static Budget *bursting(uint64_t ru, uint64_t now_us)
{
    BudgetTerms terms = {.share = RU(ru), .is_enforced = true, .has_burst = true};
    return budget_new(&terms, now_us);
}

static void five_minutes_of_unused_share_can_be_taken_at_3000_a_second(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    AUTO(budget_unref) Budget *budget = bursting(100, BEGIN_US);
    fake_clock_advance(&clock, 3600 * SECOND); /* 300 seconds of them count */
    Charge taken = 0;
    uint64_t seconds = 0;
    /* What is documented: 100 a second for 300 seconds are 30,000, which last for about ten. */
    for (;; seconds++) {
        Charge second = drain(budget, PLAIN, 100, &clock);
        if (second < RU(3000))
            break;
        assert_int_equal(second, RU(3000));
        taken += second;
        fake_clock_advance(&clock, SECOND);
    }
    assert_int_equal(seconds, 10);
    assert_int_equal(taken, RU(30000));
    fake_clock_advance(&clock, SECOND);
    Charge rest = drain(budget, PLAIN, 100, &clock); /* what the ten seconds have brought */
    fake_clock_advance(&clock, SECOND);
    assert_int_equal(drain(budget, PLAIN, 100, &clock), RU(100)); /* back at its share */
    assert_true(taken + rest <= RU(100) * (300 + 12));
}

static void credit_is_what_could_be_spent_at_once(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    BudgetTerms terms = {.share = RU(100), .is_enforced = true, .has_burst = true};
    AUTO(budget_unref) Budget *budget = budget_new(&terms, BEGIN_US);
    assert_int_equal(budget_credit(budget, BEGIN_US), RU(100));
    charge(budget, RU(150), &clock);
    assert_int_equal(budget_credit(budget, BEGIN_US), 0);
    assert_int_equal(budget_credit(budget, BEGIN_US + SECOND), RU(50));
    assert_int_equal(budget_credit(budget, BEGIN_US + 1000 * SECOND), RU(30000));
    terms.has_burst = false;
    budget_set(budget, &terms, BEGIN_US + 1000 * SECOND);
    assert_int_equal(budget_credit(budget, BEGIN_US + 1000 * SECOND), RU(100));
    terms.is_enforced = false;
    budget_set(budget, &terms, BEGIN_US + 1000 * SECOND);
    assert_int_equal(budget_credit(budget, BEGIN_US + 1000 * SECOND), 0);
}

static void a_new_budget_has_no_burst_yet(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    AUTO(budget_unref) Budget *budget = bursting(400, BEGIN_US);
    assert_int_equal(drain(budget, PLAIN, 100, &clock), RU(400));
    fake_clock_advance(&clock, 2 * SECOND);
    assert_int_equal(drain(budget, PLAIN, 100, &clock), RU(800));
}

static void a_share_of_3000_or_more_does_not_burst(void **state)
{
    (void)state;
    static const struct {
        uint64_t ru;
        Charge expected;
    } rows[] = {{2900, RU(3000)}, {3000, RU(3000)}, {5000, RU(5000)}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeClock clock;
        fake_clock_init(&clock, BEGIN_US);
        AUTO(budget_unref) Budget *budget = bursting(rows[i].ru, BEGIN_US);
        fake_clock_advance(&clock, 3600 * SECOND);
        assert_int_equal(drain(budget, PLAIN, 100, &clock), rows[i].expected);
        fake_clock_advance(&clock, SECOND);
        assert_int_equal(drain(budget, PLAIN, 100, &clock), rows[i].expected);
    }
}

/* ---- classes ---- */

static void low_priority_is_turned_away_first(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    AUTO(budget_unref) Budget *budget = budget_of(1000, &clock);
    assert_int_equal(drain(budget, LOW, 100, &clock), RU(900));
    assert_true(admits(budget, &clock));
    assert_int_equal(drain(budget, PLAIN, 100, &clock), RU(100));

    /* Side by side, each asking for all there is: the others leave nothing to it. */
    Charge high = 0;
    Charge low = 0;
    for (int ms = 0; ms < 10000; ms++) {
        fake_clock_advance(&clock, 1000);
        low += drain(budget, LOW, 100, &clock);
        high += drain(budget, PLAIN, 100, &clock);
    }
    assert_int_equal(low, 0);
    assert_in_range(high, RU(9990), RU(10010));

    /* Alone it has the whole rate. */
    low = 0;
    for (int ms = 0; ms < 10000; ms++) {
        fake_clock_advance(&clock, 1000);
        low += drain(budget, LOW, 100, &clock);
    }
    assert_in_range(low, RU(9890), RU(10010));
}

static void a_bucket_has_its_percentage_and_no_more(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    BudgetTerms terms = {
        .share = RU(1000), .is_enforced = true, .bucket_default = 3, .bucket_percent = {10, 0, 50}};
    AUTO(budget_unref) Budget *budget = budget_new(&terms, BEGIN_US);
    static const struct {
        uint8_t bucket;
        Charge expected;
    } rows[] = {{1, RU(100)}, {3, RU(500)}, {0, RU(500)}, {2, RU(1000)}, {5, RU(1000)}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        fake_clock_advance(&clock, 10 * SECOND);
        BudgetClass class = {.bucket = rows[i].bucket};
        assert_int_equal(drain(budget, class, 100, &clock), rows[i].expected);
        uint32_t wait_ms = 0;
        uint64_t now_us = clock_monotonic_us(&clock.clock);
        BudgetAnswer expected = rows[i].expected < RU(1000) ? BUDGET_BUCKET_SPENT : BUDGET_SPENT;
        assert_int_equal(budget_admit(budget, class, 0, now_us, &wait_ms), expected);
        assert_int_equal(
            budget_admit(budget, class, 0, now_us + (uint64_t)wait_ms * 1000, &wait_ms),
            BUDGET_ADMITTED);
    }
}

static void buckets_share_what_there_is(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    BudgetTerms terms = {.share = RU(1000), .is_enforced = true, .bucket_percent = {80, 80}};
    AUTO(budget_unref) Budget *budget = budget_new(&terms, BEGIN_US);
    assert_int_equal(drain(budget, (BudgetClass){.bucket = 1}, 100, &clock), RU(800));
    assert_int_equal(drain(budget, (BudgetClass){.bucket = 2}, 100, &clock), RU(200));
}

/* ---- new terms ---- */

static void a_new_rate_counts_at_once_and_keeps_what_is_owed(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    AUTO(budget_unref) Budget *budget = budget_of(400, &clock);
    charge(budget, RU(400 + 800), &clock); /* two seconds of debt */
    BudgetTerms terms = {.share = RU(4000), .is_enforced = true};
    budget_set(budget, &terms, BEGIN_US);
    assert_int_equal(budget_share(budget), RU(4000));
    uint32_t wait_ms = 0;
    assert_int_equal(budget_admit(budget, PLAIN, 0, BEGIN_US, &wait_ms), BUDGET_SPENT);
    assert_int_equal(wait_ms, 201); /* 800 at 4,000 a second */
    fake_clock_advance(&clock, 10 * SECOND);
    assert_int_equal(drain(budget, PLAIN, 100, &clock), RU(4000));
    fake_clock_advance(&clock, SECOND);
    terms.share = RU(400);
    budget_set(budget, &terms, clock_monotonic_us(&clock.clock));
    assert_int_equal(drain(budget, PLAIN, 100, &clock), RU(400)); /* no more than its window */
}

static void burst_that_was_saved_is_not_worth_more_at_a_higher_rate(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    AUTO(budget_unref) Budget *budget = bursting(100, BEGIN_US);
    fake_clock_advance(&clock, 3600 * SECOND);
    BudgetTerms terms = {.share = RU(1000), .is_enforced = true, .has_burst = true};
    budget_set(budget, &terms, clock_monotonic_us(&clock.clock));
    Charge taken = 0;
    for (int second = 0; second < 100; second++) {
        taken += drain(budget, PLAIN, 100, &clock);
        fake_clock_advance(&clock, SECOND);
    }
    /* 30,000 that were saved, and a hundred seconds, less the one that has only begun. */
    assert_in_range(taken, RU(30000 + 99000), RU(30000 + 99000) + 200);
}

static void a_limit_that_begins_later_begins_with_a_second(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    BudgetTerms terms = {.is_enforced = true};
    AUTO(budget_unref) Budget *budget = budget_new(&terms, BEGIN_US);
    charge(budget, RU(100000), &clock);
    fake_clock_advance(&clock, 100 * SECOND);
    terms = (BudgetTerms){.share = RU(400), .is_enforced = true, .has_burst = true};
    budget_set(budget, &terms, clock_monotonic_us(&clock.clock));
    assert_int_equal(drain(budget, PLAIN, 100, &clock), RU(400));
}

/* ---- autoscale ---- */

static void the_busiest_of_the_last_ten_seconds_is_remembered(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    BudgetTerms terms = {.share = RU(4000), .is_enforced = true, .is_autoscale = true};
    AUTO(budget_unref) Budget *budget = budget_new(&terms, BEGIN_US);
    assert_int_equal(budget_busiest_second(budget, BEGIN_US), 0);
    static const unsigned used[] = {5, 700, 3000, 20, 0, 0, 1, 900, 40, 30, 20, 10, 0, 0};
    static const unsigned most[] = {5,    700,  3000, 3000, 3000, 3000, 3000,
                                    3000, 3000, 3000, 3000, 3000, 900,  900};
    for (size_t i = 0; i < ARRAY_COUNT(used); i++) {
        for (unsigned j = 0; j < used[i]; j++) {
            charge(budget, 100, &clock);
            if (j == used[i] / 2)
                fake_clock_advance(&clock, SECOND / 2);
        }
        uint64_t now_us = clock_monotonic_us(&clock.clock);
        assert_int_equal(budget_busiest_second(budget, now_us), RU(most[i]));
        fake_clock_advance(&clock, SECOND - now_us % SECOND);
    }
    uint64_t now_us = clock_monotonic_us(&clock.clock);
    budget_charge(budget, PLAIN, RU(9000), now_us - 18 * SECOND); /* much too late */
    assert_int_equal(budget_busiest_second(budget, now_us), RU(900));
    fake_clock_advance(&clock, 16 * SECOND);
    assert_int_equal(budget_busiest_second(budget, clock_monotonic_us(&clock.clock)), 0);
}

/* ---- threads ---- */

enum { THREADS = 4, CHARGES = 50000 };

typedef struct Spender {
    pthread_t thread;
    Budget *budget;
    const FakeClock *clock;
    uint64_t requests; /* of them were admitted */
    Charge admitted;
} Spender;

static void *spend(void *arg)
{
    Spender *spender = arg;
    for (int i = 0; i < CHARGES; i++) {
        uint64_t now_us = clock_monotonic_us(&spender->clock->clock);
        uint32_t wait_ms = 0;
        BudgetClass class = {.bucket = (uint8_t)(i % 2)};
        Charge amount = (Charge)(i % 7) + 1;
        if (budget_admit(spender->budget, class, 0, now_us, &wait_ms) != BUDGET_ADMITTED)
            continue;
        spender->requests++;
        budget_charge(spender->budget, class, amount, now_us);
        spender->admitted += amount;
    }
    return NULL;
}

static Charge spend_at_once(Budget *budget, const FakeClock *clock, uint64_t *requests)
{
    Spender spenders[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        spenders[i] = (Spender){.budget = budget, .clock = clock};
        assert_int_equal(pthread_create(&spenders[i].thread, NULL, spend, &spenders[i]), 0);
    }
    Charge admitted = 0;
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(spenders[i].thread, NULL), 0);
        *requests += spenders[i].requests;
        admitted += spenders[i].admitted;
    }
    return admitted;
}

static void charges_of_many_threads_add_up_exactly(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    /* Plenty: all are admitted, and what is left afterwards tells what was paid. */
    BudgetTerms terms = {
        .share = RU(10000), .is_enforced = true, .is_autoscale = true, .bucket_percent = {90}};
    AUTO(budget_unref) Budget *budget = budget_new(&terms, BEGIN_US);
    uint64_t requests = 0;
    Charge admitted = spend_at_once(budget, &clock, &requests);
    assert_int_equal(requests, (uint64_t)THREADS * CHARGES);
    assert_int_equal(budget_busiest_second(budget, BEGIN_US), admitted);
    assert_int_equal(drain(budget, PLAIN, 1, &clock), RU(10000) - admitted);
}

static void threads_that_ask_for_too_much_get_what_there_is(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    AUTO(budget_unref) Budget *budget = budget_of(400, &clock);
    Charge used = 0;
    uint64_t requests = 0;
    for (int second = 1; second <= 5; second++) {
        Charge admitted = spend_at_once(budget, &clock, &requests);
        /* Each thread may have been admitted once when the last of it was taken. */
        assert_in_range(admitted, RU(400) - 7 * THREADS, RU(400) + 7 * THREADS);
        used += admitted;
        fake_clock_advance(&clock, SECOND);
    }
    assert_true(requests < (uint64_t)5 * THREADS * CHARGES);
    assert_in_range(used, RU(2000) - 7, RU(2000) + 7 * THREADS); /* overdrafts are paid */
}

/* As when the partition comes from another node, which may have given its second away. */
static void credit_is_used_up_and_debt_stays(void **state)
{
    (void)state;
    FakeClock clock;
    fake_clock_init(&clock, BEGIN_US);
    BudgetTerms terms = {.share = RU(100),
                         .is_enforced = true,
                         .has_burst = true,
                         .is_autoscale = true,
                         .bucket_percent = {50}};
    AUTO(budget_unref) Budget *budget = budget_new(&terms, BEGIN_US);
    fake_clock_advance(&clock, 200 * SECOND);
    uint64_t now_us = clock_monotonic_us(&clock.clock);
    charge(budget, RU(7), &clock);
    assert_true(budget_credit(budget, now_us) > RU(15000));
    budget_use_up(budget, now_us);
    assert_true(budget_credit(budget, now_us) == 0);
    assert_false(admits(budget, &clock));
    /* What autoscale shows is what was used here. */
    assert_true(budget_busiest_second(budget, now_us) == RU(7));
    assert_true(budget_share(budget) == RU(100));
    /* From now on it earns its rate, and each bucket its part. */
    fake_clock_advance(&clock, SECOND / 2);
    now_us = clock_monotonic_us(&clock.clock);
    assert_in_range(budget_credit(budget, now_us), RU(50) - 1, RU(50));
    uint32_t wait_ms = 0;
    assert_int_equal(budget_admit(budget, (BudgetClass){.bucket = 1}, RU(26), now_us, &wait_ms),
                     BUDGET_BUCKET_SPENT);
    assert_int_equal(budget_admit(budget, (BudgetClass){.bucket = 1}, RU(24), now_us, &wait_ms),
                     BUDGET_ADMITTED);
    charge(budget, RU(1050), &clock);
    budget_use_up(budget, now_us);
    fake_clock_advance(&clock, 9 * SECOND);
    assert_false(admits(budget, &clock)); /* 1000 were owed */
    fake_clock_advance(&clock, 2 * SECOND);
    assert_true(admits(budget, &clock));
}

static void what_was_allotted_earlier_is_remembered(void **state)
{
    (void)state;
    AUTO(budget_unref) Budget *budget = budget_new(&(BudgetTerms){0}, 0);
    assert_int_equal(budget_share_between(budget, 0, SECOND), 0);
    for (uint64_t i = 1; i <= 3; i++)
        budget_set(budget, &(BudgetTerms){.share = i * 400}, i * 10 * SECOND);
    budget_set(budget, &(BudgetTerms){.share = 1200, .has_burst = true}, 60 * SECOND);
    static const struct {
        uint64_t from_s, to_s, share;
    } rows[] = {
        {12, 13, 400}, {19, 20, 400}, {20, 21, 800}, {35, 36, 1200}, {70, 71, 1200},
        {15, 25, 600}, {10, 40, 800}, {2, 3, 400},   {0, 10, 400},   {65, 65, 1200},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(
            budget_share_between(budget, rows[i].from_s * SECOND, rows[i].to_s * SECOND),
            rows[i].share);
    /* Of many changes the last are known, and a time before them counts as the first of these. */
    for (uint64_t i = 1; i <= 100; i++)
        budget_set(budget, &(BudgetTerms){.share = i * 100}, (100 + i) * SECOND);
    assert_int_equal(budget_share_between(budget, 199 * SECOND, 200 * SECOND), 9900);
    uint64_t first = 100 - (BUDGET_SHARES_MAX - 1) + 1;
    assert_int_equal(budget_share_between(budget, 0, SECOND), first * 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_accepted_is_what_is_provisioned),
        cmocka_unit_test(credit_is_used_up_and_debt_stays),
        cmocka_unit_test(a_second_of_what_was_not_used_is_kept_and_no_more),
        cmocka_unit_test(nothing_is_refused_that_stays_within_the_rate),
        cmocka_unit_test(after_the_wait_a_request_is_admitted_and_a_millisecond_earlier_not),
        cmocka_unit_test(one_request_may_overdraw_and_the_next_waits_for_it),
        cmocka_unit_test(being_turned_away_costs_nothing),
        cmocka_unit_test(without_enforcement_or_a_share_everything_is_admitted),
        cmocka_unit_test(of_requests_that_come_together_as_many_are_admitted_as_there_is_for),
        cmocka_unit_test(five_minutes_of_unused_share_can_be_taken_at_3000_a_second),
        cmocka_unit_test(credit_is_what_could_be_spent_at_once),
        cmocka_unit_test(a_new_budget_has_no_burst_yet),
        cmocka_unit_test(a_share_of_3000_or_more_does_not_burst),
        cmocka_unit_test(low_priority_is_turned_away_first),
        cmocka_unit_test(a_bucket_has_its_percentage_and_no_more),
        cmocka_unit_test(buckets_share_what_there_is),
        cmocka_unit_test(a_new_rate_counts_at_once_and_keeps_what_is_owed),
        cmocka_unit_test(burst_that_was_saved_is_not_worth_more_at_a_higher_rate),
        cmocka_unit_test(a_limit_that_begins_later_begins_with_a_second),
        cmocka_unit_test(the_busiest_of_the_last_ten_seconds_is_remembered),
        cmocka_unit_test(what_was_allotted_earlier_is_remembered),
        cmocka_unit_test(charges_of_many_threads_add_up_exactly),
        cmocka_unit_test(threads_that_ask_for_too_much_get_what_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
