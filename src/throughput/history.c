/* history.c - see history.h.
 *
 * A slot is two words, and each carries the number of the lap of the ring that it belongs to, so
 * that "this is from an hour ago: begin at zero" and "add to it" are one compare-and-swap.
 *
 *     charge   | lap 16 | hundredths of a request unit 48 |
 *     counts   | lap 16 | throttled 24 | requests 24 |       of a second
 *              | lap  8 | throttled 28 | requests 28 |       of five minutes
 *
 * A lap of seconds is an hour and one of steps a week; their numbers come again after 7 years and
 * after 5, which is how long a slot would have to lie untouched to be taken for a new one.
 */
#include "throughput/history.h"

#include "base/mem.h"

typedef struct Slot {
    _Atomic uint64_t charge;
    _Atomic uint64_t counts;
} Slot;
static_assert(sizeof(Slot) == 16, "a ring of an hour is 57,600 bytes");

typedef struct Rings {
    HistoryPool *pool; /* that they are counted in */
    Slot seconds[HISTORY_SECONDS];
    Slot steps[HISTORY_STEPS];
} Rings;

struct History {
    _Atomic uint32_t refs;
    _Atomic(Rings *) rings;
    _Atomic uint64_t charge;
    _Atomic uint64_t requests;
    _Atomic uint64_t throttled;
};

enum { CHARGE_BITS = 48 };

static const struct Grain {
    uint64_t slot_s;
    uint64_t slots;
    unsigned count_bits; /* of one of the two counts */
} GRAINS[HISTORY_GRAINS] = {
    [HISTORY_SECOND] = {1, HISTORY_SECONDS, 24},
    [HISTORY_STEP] = {HISTORY_STEP_S, HISTORY_STEPS, 28},
};

void history_pool_init(HistoryPool *pool, uint32_t max)
{
    atomic_init(&pool->used, 0);
    pool->max = max;
}

History *history_new(void)
{
    History *history = MEM_NEW(History);
    atomic_init(&history->refs, 1);
    return history;
}

History *history_ref(History *history)
{
    atomic_fetch_add_explicit(&history->refs, 1, memory_order_relaxed);
    return history;
}

void history_unref(History *history)
{
    if (history == NULL || atomic_fetch_sub_explicit(&history->refs, 1, memory_order_acq_rel) != 1)
        return;
    Rings *rings = atomic_load_explicit(&history->rings, memory_order_relaxed);
    if (rings != NULL)
        atomic_fetch_sub_explicit(&rings->pool->used, 1, memory_order_relaxed);
    mem_free(rings);
    mem_free(history);
}

/* The rings, made if there are none and the pool has room; NULL otherwise. Who makes them counts
 * them only after they are there: so whoever finds the pool full because of them finds them, too,
 * and what is added meanwhile is not lost. That lets the pool run over by those who make theirs at
 * the same moment, one for each thread. */
static Rings *rings_of(History *history, HistoryPool *pool)
{
    Rings *rings = atomic_load_explicit(&history->rings, memory_order_acquire);
    if (LIKELY(rings != NULL))
        return rings;
    if (atomic_load_explicit(&pool->used, memory_order_acquire) >= pool->max)
        return atomic_load_explicit(&history->rings, memory_order_acquire);
    Rings *made = MEM_NEW(Rings);
    made->pool = pool;
    if (atomic_compare_exchange_strong_explicit(&history->rings, &rings, made, memory_order_acq_rel,
                                                memory_order_acquire)) {
        atomic_fetch_add_explicit(&pool->used, 1, memory_order_release);
        return made;
    }
    mem_free(made); /* another thread was first */
    return rings;
}

static Slot *slot_of(Rings *rings, HistoryGrain grain, uint64_t time_s, uint64_t *lap)
{
    uint64_t number = time_s / GRAINS[grain].slot_s;
    *lap = number / GRAINS[grain].slots;
    uint64_t at = number % GRAINS[grain].slots;
    return grain == HISTORY_SECOND ? &rings->seconds[at] : &rings->steps[at];
}

static uint64_t mask_of(unsigned bits)
{
    return ((uint64_t)1 << bits) - 1;
}

/* What a word holds behind its lap, 'bits' wide: nothing, if the lap is another. */
static uint64_t held(uint64_t word, uint64_t lap, unsigned bits)
{
    return word >> bits == (lap & mask_of(64 - bits)) ? word & mask_of(bits) : 0;
}

static uint64_t add_up_to(uint64_t a, uint64_t b, uint64_t max)
{
    return b >= max - a ? max : a + b;
}

static void add_charge(_Atomic uint64_t *word, uint64_t lap, Charge more)
{
    uint64_t top = lap << CHARGE_BITS;
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    uint64_t new;
    do {
        new = top | add_up_to(held(old, lap, CHARGE_BITS), more, HISTORY_RU_MAX);
    } while (!atomic_compare_exchange_weak_explicit(word, &old, new, memory_order_relaxed,
                                                    memory_order_relaxed));
}

static void add_counts(_Atomic uint64_t *word, uint64_t lap, unsigned bits, HistoryCount more)
{
    uint64_t max = mask_of(bits);
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    uint64_t new;
    do {
        uint64_t counts = held(old, lap, 2 * bits);
        new = lap << 2 * bits | add_up_to(counts >> bits, more.throttled, max) << bits |
              add_up_to(counts & max, more.requests, max);
    } while (!atomic_compare_exchange_weak_explicit(word, &old, new, memory_order_relaxed,
                                                    memory_order_relaxed));
}

void history_add(History *history, HistoryPool *pool, uint64_t now_s, HistoryCount more)
{
    atomic_fetch_add_explicit(&history->charge, more.charge, memory_order_relaxed);
    atomic_fetch_add_explicit(&history->requests, more.requests, memory_order_relaxed);
    if (more.throttled > 0)
        atomic_fetch_add_explicit(&history->throttled, more.throttled, memory_order_relaxed);
    Rings *rings = rings_of(history, pool);
    if (rings == NULL)
        return;
    for (HistoryGrain grain = HISTORY_SECOND; grain < HISTORY_GRAINS; grain++) {
        uint64_t lap = 0;
        Slot *slot = slot_of(rings, grain, now_s, &lap);
        add_charge(&slot->charge, lap, more.charge);
        add_counts(&slot->counts, lap, GRAINS[grain].count_bits, more);
    }
}

HistoryCount history_total(const History *history)
{
    return (HistoryCount){
        .charge = atomic_load_explicit(&history->charge, memory_order_relaxed),
        .requests = atomic_load_explicit(&history->requests, memory_order_relaxed),
        .throttled = atomic_load_explicit(&history->throttled, memory_order_relaxed),
    };
}

bool history_is_kept(const History *history)
{
    return atomic_load_explicit(&history->rings, memory_order_relaxed) != NULL;
}

uint64_t history_slot_s(HistoryGrain grain)
{
    return GRAINS[grain].slot_s;
}

uint64_t history_slots(HistoryGrain grain)
{
    return GRAINS[grain].slots;
}

HistoryCount history_at(const History *history, HistoryGrain grain, uint64_t time_s)
{
    Rings *rings = atomic_load_explicit(&history->rings, memory_order_acquire);
    if (rings == NULL)
        return (HistoryCount){0};
    uint64_t lap = 0;
    const Slot *slot = slot_of(rings, grain, time_s, &lap);
    unsigned bits = GRAINS[grain].count_bits;
    uint64_t charge = atomic_load_explicit(&slot->charge, memory_order_relaxed);
    uint64_t counts = atomic_load_explicit(&slot->counts, memory_order_relaxed);
    counts = held(counts, lap, 2 * bits);
    return (HistoryCount){
        .charge = held(charge, lap, CHARGE_BITS),
        .requests = counts & mask_of(bits),
        .throttled = counts >> bits,
    };
}

HistorySpan history_span(const History *history, uint64_t from_s, uint64_t to_s)
{
    HistorySpan span = {0};
    for (uint64_t s = from_s; s < to_s; s++) {
        HistoryCount count = history_at(history, HISTORY_SECOND, s);
        span.sum.charge += count.charge;
        span.sum.requests += count.requests;
        span.sum.throttled += count.throttled;
        if (count.charge > span.charge_max)
            span.charge_max = count.charge;
    }
    return span;
}
