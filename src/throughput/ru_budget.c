/* ru_budget.c - see ru_budget.h.
 *
 *     paid                     now
 *       |------- credit -------|              admitted; a charge moves 'paid' to the right
 *   now - window                              'paid' is never further back than this
 *
 *                              now      paid
 *                               |--wait--|    not admitted
 *
 * Times are nanoseconds, signed: soon after the machine has started, the far end of a window lies
 * before the clock's zero. Relaxed ordering is enough: no number depends on another one.
 */
#include "throughput/ru_budget.h"

#include "base/mem.h"

#include <stdatomic.h>

#define NS_PER_US ((int64_t)1000)
#define NS_PER_MS ((int64_t)1000000)
#define NS_PER_S  ((int64_t)1000000000)

#define PEAK_RATE ((uint64_t)100 * BUDGET_BURST_PEAK_RU)

/* A second's charges in one number: the second in the high bits, the sum in the low ones, so that a
 * slot of the ring is reused in one step. */
enum { RECENT_SLOTS = 16, RECENT_SUM_BITS = 40 };
#define RECENT_SUM_MAX ((UINT64_C(1) << RECENT_SUM_BITS) - 1)
static_assert(RECENT_SLOTS > BUDGET_RECENT_S, "a slot must not be reused while it is looked at");
static_assert(BUDGET_CHARGE_MAX < RECENT_SUM_MAX / 1000, "a second's sum must fit");

typedef struct Limiter {
    _Atomic int64_t paid_ns;
} Limiter;

/* A share from a moment on. */
typedef struct PastShare {
    _Atomic uint64_t from_us;
    _Atomic uint64_t share;
} PastShare;

struct Budget {
    _Atomic uint32_t refs;

    /* The terms: written by budget_set, read by any thread. */
    _Atomic uint64_t share;
    _Atomic bool is_enforced;
    _Atomic bool has_burst;
    _Atomic bool is_autoscale;
    _Atomic uint8_t bucket_default;
    _Atomic uint8_t bucket_percent[BUDGET_BUCKETS_MAX];

    /* The last shares, in a ring: written by budget_set, read by any thread. */
    PastShare past[BUDGET_SHARES_MAX];
    _Atomic uint32_t past_count; /* of all there ever were */

    char apart[CACHE_LINE_SIZE]; /* keeps what requests only read from what they write */

    Limiter whole;
    Limiter peak;
    Limiter buckets[BUDGET_BUCKETS_MAX];
    _Atomic uint64_t recent[RECENT_SLOTS];
};

#define GET(field)        atomic_load_explicit(&(field), memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)
#define ADD(field, value) (void)atomic_fetch_add_explicit(&(field), (value), memory_order_relaxed)

static int64_t to_ns(uint64_t us)
{
    return (int64_t)us * NS_PER_US;
}

/* ---- limiters ---- */

/* How long it takes a limiter of 'rate' hundredths a second to earn a charge. Rounded up, so that
 * no more is admitted than was provisioned (I8). */
static int64_t cost_ns(Charge charge, uint64_t rate)
{
    ASSERT(rate > 0);
    Charge bounded = charge < BUDGET_CHARGE_MAX ? charge : BUDGET_CHARGE_MAX;
    return (int64_t)((bounded * (uint64_t)NS_PER_S + rate - 1) / rate);
}

/* Removes credit from before the window; returns the moment up to which it is paid. */
static int64_t limiter_cap(Limiter *limiter, int64_t now_ns, int64_t window_ns)
{
    int64_t paid = GET(limiter->paid_ns);
    while (paid < now_ns - window_ns) {
        if (atomic_compare_exchange_weak_explicit(&limiter->paid_ns, &paid, now_ns - window_ns,
                                                  memory_order_relaxed, memory_order_relaxed))
            return now_ns - window_ns;
    }
    return paid;
}

/* How long until it has more than 'margin_ns' of credit; 0 if it has. Rounded up to milliseconds,
 * in which clients wait, so that no client comes back too early (I7). */
static int64_t limiter_wait_ms(Limiter *limiter, int64_t now_ns, int64_t window_ns,
                               int64_t margin_ns)
{
    int64_t missing_ns = limiter_cap(limiter, now_ns, window_ns) + margin_ns - now_ns;
    return missing_ns < 0 ? 0 : missing_ns / NS_PER_MS + 1;
}

/* Keeps credit or debt, in request units, at another rate. */
static void limiter_convert(Limiter *limiter, int64_t now_ns, uint64_t from, uint64_t to)
{
    ASSERT(from > 0);
    ASSERT(to > 0);
    int64_t paid = GET(limiter->paid_ns);
    int64_t converted;
    do {
        double credit_s = (double)(now_ns - paid) / (double)NS_PER_S;
        converted = now_ns - (int64_t)(credit_s * (double)from / (double)to * (double)NS_PER_S);
    } while (!atomic_compare_exchange_weak_explicit(&limiter->paid_ns, &paid, converted,
                                                    memory_order_relaxed, memory_order_relaxed));
}

/* ---- budgets ---- */

static bool can_burst(const Budget *budget, uint64_t share)
{
    return GET(budget->has_burst) && share < PEAK_RATE;
}

/* The limiter of the request's bucket and its rate; NULL if none limits it. */
static Limiter *find_bucket(Budget *budget, BudgetClass class, uint64_t share, uint64_t *rate)
{
    uint8_t number = class.bucket != 0 ? class.bucket : GET(budget->bucket_default);
    if (number == 0 || number > BUDGET_BUCKETS_MAX)
        return NULL;
    uint8_t percent = GET(budget->bucket_percent[number - 1]);
    *rate = share * percent / 100;
    return *rate == 0 ? NULL : &budget->buckets[number - 1];
}

static void begin_limiters(Budget *budget, int64_t now_ns)
{
    int64_t paid_ns = now_ns - BUDGET_WINDOW_S * NS_PER_S;
    SET(budget->whole.paid_ns, paid_ns);
    SET(budget->peak.paid_ns, paid_ns);
    for (size_t i = 0; i < BUDGET_BUCKETS_MAX; i++)
        SET(budget->buckets[i].paid_ns, paid_ns);
}

static void set_terms(Budget *budget, const BudgetTerms *terms)
{
    SET(budget->share, terms->share);
    SET(budget->is_enforced, terms->is_enforced);
    SET(budget->has_burst, terms->has_burst);
    SET(budget->is_autoscale, terms->is_autoscale);
    SET(budget->bucket_default, terms->bucket_default);
    for (size_t i = 0; i < BUDGET_BUCKETS_MAX; i++)
        SET(budget->bucket_percent[i], terms->bucket_percent[i]);
}

static void remember_share(Budget *budget, uint64_t share, uint64_t now_us)
{
    uint32_t count = GET(budget->past_count);
    PastShare *past = &budget->past[count % BUDGET_SHARES_MAX];
    SET(past->from_us, now_us);
    SET(past->share, share);
    atomic_store_explicit(&budget->past_count, count + 1, memory_order_release);
}

Budget *budget_new(const BudgetTerms *terms, uint64_t now_us)
{
    Budget *budget = MEM_NEW(Budget);
    atomic_init(&budget->refs, 1);
    begin_limiters(budget, to_ns(now_us));
    set_terms(budget, terms);
    if (terms->share != 0)
        remember_share(budget, terms->share, now_us);
    return budget;
}

Budget *budget_ref(Budget *budget)
{
    ADD(budget->refs, 1);
    return budget;
}

void budget_unref(Budget *budget)
{
    if (budget == NULL || atomic_fetch_sub_explicit(&budget->refs, 1, memory_order_acq_rel) > 1)
        return;
    mem_free(budget);
}

void budget_set(Budget *budget, const BudgetTerms *terms, uint64_t now_us)
{
    int64_t now_ns = to_ns(now_us);
    uint64_t before = GET(budget->share);
    if (before == 0 && terms->share != 0) {
        begin_limiters(budget, now_ns); /* nothing was charged so far */
    } else if (before != 0 && terms->share != 0 && before != terms->share) {
        /* Time before the window is no credit at the old rate, and must be none at the new one. */
        int64_t window_s = can_burst(budget, before) ? BUDGET_BURST_S : BUDGET_WINDOW_S;
        (void)limiter_cap(&budget->whole, now_ns, window_s * NS_PER_S);
        limiter_convert(&budget->whole, now_ns, before, terms->share);
    }
    if (before != terms->share)
        remember_share(budget, terms->share, now_us);
    set_terms(budget, terms);
}

void budget_use_up(Budget *budget, uint64_t now_us)
{
    int64_t now_ns = to_ns(now_us);
    (void)limiter_cap(&budget->whole, now_ns, 0);
    (void)limiter_cap(&budget->peak, now_ns, 0);
    for (size_t i = 0; i < BUDGET_BUCKETS_MAX; i++)
        (void)limiter_cap(&budget->buckets[i], now_ns, 0);
}

BudgetAnswer budget_admit(Budget *budget, BudgetClass class, Charge ahead, uint64_t now_us,
                          uint32_t *wait_ms)
{
    uint64_t share = GET(budget->share);
    if (share == 0 || !GET(budget->is_enforced))
        return BUDGET_ADMITTED;
    int64_t now_ns = to_ns(now_us);
    int64_t second = BUDGET_WINDOW_S * NS_PER_S;
    int64_t margin_ns = class.is_low ? BUDGET_LOW_MARGIN_MS * NS_PER_MS : 0;
    bool bursts = can_burst(budget, share);
    int64_t window_ns = bursts ? BUDGET_BURST_S * NS_PER_S : second;
    int64_t wait =
        limiter_wait_ms(&budget->whole, now_ns, window_ns, margin_ns + cost_ns(ahead, share));
    if (bursts) {
        int64_t peak =
            limiter_wait_ms(&budget->peak, now_ns, second, margin_ns + cost_ns(ahead, PEAK_RATE));
        wait = peak > wait ? peak : wait;
    }
    BudgetAnswer answer = wait == 0 ? BUDGET_ADMITTED : BUDGET_SPENT;
    uint64_t rate = 0;
    Limiter *bucket = find_bucket(budget, class, share, &rate);
    if (bucket != NULL) {
        int64_t own = limiter_wait_ms(bucket, now_ns, second, margin_ns + cost_ns(ahead, rate));
        answer = own > wait ? BUDGET_BUCKET_SPENT : answer;
        wait = own > wait ? own : wait;
    }
    if (answer != BUDGET_ADMITTED)
        *wait_ms = wait < UINT32_MAX ? (uint32_t)wait : UINT32_MAX;
    return answer;
}

/* The first charge of a second takes over a slot of an earlier one. A charge that is so late that
 * its own slot has been taken over is dropped: its second is no longer recent. */
static void note_recent(Budget *budget, Charge charge, uint64_t now_us)
{
    uint64_t second = now_us / 1000000;
    _Atomic uint64_t *slot = &budget->recent[second % RECENT_SLOTS];
    uint64_t tag = second << RECENT_SUM_BITS;
    uint64_t seen = GET(*slot);
    while (seen >> RECENT_SUM_BITS != tag >> RECENT_SUM_BITS) {
        if ((int64_t)(tag - (seen & ~RECENT_SUM_MAX)) < 0)
            return;
        if (atomic_compare_exchange_weak_explicit(slot, &seen, tag | charge, memory_order_relaxed,
                                                  memory_order_relaxed))
            return;
    }
    ADD(*slot, charge);
}

void budget_charge(Budget *budget, BudgetClass class, Charge charge, uint64_t now_us)
{
    Charge bounded = charge < BUDGET_CHARGE_MAX ? charge : BUDGET_CHARGE_MAX;
    if (GET(budget->is_autoscale))
        note_recent(budget, bounded, now_us);
    uint64_t share = GET(budget->share);
    if (share == 0 || !GET(budget->is_enforced))
        return;
    ADD(budget->whole.paid_ns, cost_ns(bounded, share));
    if (can_burst(budget, share))
        ADD(budget->peak.paid_ns, cost_ns(bounded, PEAK_RATE));
    uint64_t rate = 0;
    Limiter *bucket = find_bucket(budget, class, share, &rate);
    if (bucket != NULL)
        ADD(bucket->paid_ns, cost_ns(bounded, rate));
}

Charge budget_busiest_second(const Budget *budget, uint64_t now_us)
{
    uint64_t now_s = now_us / 1000000;
    Charge most = 0;
    for (uint64_t i = 0; i < BUDGET_RECENT_S && i <= now_s; i++) {
        uint64_t second = now_s - i;
        uint64_t seen = GET(budget->recent[second % RECENT_SLOTS]);
        Charge sum = seen & RECENT_SUM_MAX;
        if (seen >> RECENT_SUM_BITS == (second << RECENT_SUM_BITS) >> RECENT_SUM_BITS)
            most = sum > most ? sum : most;
    }
    return most;
}

uint64_t budget_share(const Budget *budget)
{
    return GET(budget->share);
}

/* Of the ring only what no writer may be changing: the oldest entry is the next to be replaced. */
uint64_t budget_share_between(const Budget *budget, uint64_t from_us, uint64_t to_us)
{
    uint32_t end = atomic_load_explicit(&budget->past_count, memory_order_acquire);
    uint32_t first = end < BUDGET_SHARES_MAX ? 0 : end - (BUDGET_SHARES_MAX - 1);
    if (end == first || to_us <= from_us)
        return GET(budget->share);
    double sum = 0; /* share times microseconds */
    uint64_t until_us = to_us;
    for (uint32_t i = end; i > first && until_us > from_us; i--) { /* the newest first */
        const PastShare *past = &budget->past[(i - 1) % BUDGET_SHARES_MAX];
        uint64_t begin_us = i - 1 == first ? 0 : GET(past->from_us);
        begin_us = begin_us > from_us ? begin_us : from_us;
        if (begin_us >= until_us)
            continue;
        sum += (double)GET(past->share) * (double)(until_us - begin_us);
        until_us = begin_us;
    }
    return (uint64_t)(sum / (double)(to_us - from_us) + 0.5);
}

Charge budget_credit(const Budget *budget, uint64_t now_us)
{
    uint64_t share = GET(budget->share);
    if (share == 0 || !GET(budget->is_enforced))
        return 0;
    int64_t window_ns = (can_burst(budget, share) ? BUDGET_BURST_S : BUDGET_WINDOW_S) * NS_PER_S;
    int64_t credit_ns = to_ns(now_us) - GET(budget->whole.paid_ns);
    credit_ns = credit_ns < window_ns ? credit_ns : window_ns;
    return credit_ns <= 0 ? 0 : (Charge)((double)credit_ns / (double)NS_PER_S * (double)share);
}
