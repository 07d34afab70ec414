/* history.c - see history.h.
 *
 * A slot is two words, and each carries the number of the lap of the ring that it belongs to, so
 * that "this is from an hour ago: begin at zero" and "add to it" are one compare-and-swap. The
 * thread that begins a slot anew gets what was in it, as the only one, and adds it to its step. So
 * a step is the sum of what the ring of steps has and what is still in the ring of seconds, and a
 * request touches one slot (I9).
 *
 *     charge   | lap 16 | hundredths of a request unit 48 |
 *     counts   | lap 16 | throttled 24 | requests 24 |       of a second
 *              | lap  8 | throttled 28 | requests 28 |       of five minutes
 *
 * A lap of seconds is an hour and one of steps a week; their numbers repeat after 7 years and after
 * 5. A slot would have to be unused for that long to be mistaken for a new one. The laps of a kind
 * of request are shorter, and their numbers repeat after 15 months and after 8.
 */
#include "throughput/history.h"

#include "base/mem.h"

/* So that a request divides by constants: half of the instructions of history_add. */
#define INLINE static inline __attribute__((always_inline))

typedef struct Slot {
    _Atomic uint64_t charge;
    _Atomic uint64_t counts;
} Slot;
static_assert(sizeof(Slot) == 16, "a ring of an hour is 57,600 bytes");

/* A ring of seconds and one of steps, one after the other in 'slots'. */
typedef struct Rings {
    _Atomic uint32_t *used; /* where they are counted */
    Slot slots[];
} Rings;

struct History {
    _Atomic uint32_t refs;
    _Atomic(Rings *) rings;
    _Atomic uint64_t charge;
    _Atomic uint64_t requests;
    _Atomic uint64_t throttled;
    _Atomic(Rings *) operations[HISTORY_OPERATIONS];
};

enum { CHARGE_BITS = 48 };

typedef struct Grain {
    uint64_t slot_s;
    uint64_t slots;
    unsigned count_bits; /* of one of the two counts */
} Grain;

static const Grain ALL[HISTORY_GRAINS] = {
    [HISTORY_SECOND] = {1, HISTORY_SECONDS, 24},
    [HISTORY_STEP] = {HISTORY_STEP_S, HISTORY_STEPS, 28},
};

static const Grain OF_OPERATION[HISTORY_GRAINS] = {
    [HISTORY_SECOND] = {1, HISTORY_OPERATION_SECONDS, 24},
    [HISTORY_STEP] = {HISTORY_STEP_S, HISTORY_OPERATION_STEPS, 28},
};

static const Slice OPERATION_TEXTS[HISTORY_OPERATIONS] = {
#define HISTORY_OPERATION(name, text) [HISTORY_##name] = SLICE_INIT(text),
#include "throughput/history_operations.def"
#undef HISTORY_OPERATION
};

void history_pool_init(HistoryPool *pool, uint32_t max)
{
    atomic_init(&pool->used, 0);
    atomic_init(&pool->operations_used, 0);
    pool->max = max;
    pool->operations_max = max * HISTORY_OPERATIONS_EACH;
}

Slice history_operation_text(HistoryOperation operation)
{
    ASSERT(operation < HISTORY_OPERATIONS);
    return OPERATION_TEXTS[operation];
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

static void free_rings(_Atomic(Rings *) *place)
{
    Rings *rings = atomic_load_explicit(place, memory_order_relaxed);
    if (rings != NULL)
        atomic_fetch_sub_explicit(rings->used, 1, memory_order_relaxed);
    mem_free(rings);
}

void history_unref(History *history)
{
    if (history == NULL || atomic_fetch_sub_explicit(&history->refs, 1, memory_order_acq_rel) != 1)
        return;
    free_rings(&history->rings);
    for (size_t i = 0; i < HISTORY_OPERATIONS; i++)
        free_rings(&history->operations[i]);
    mem_free(history);
}

/* The rings, made if there are none and fewer than 'max' are used; NULL otherwise. They are counted
 * after they are published: so a thread that finds the pool full because of them finds them, too,
 * and what it adds is not lost. The pool may exceed its bound by one for each thread that makes
 * rings at the same moment. */
INLINE Rings *rings_of(_Atomic(Rings *) *place, const Grain *grains, _Atomic uint32_t *used,
                       uint32_t max)
{
    Rings *rings = atomic_load_explicit(place, memory_order_acquire);
    if (LIKELY(rings != NULL))
        return rings;
    if (atomic_load_explicit(used, memory_order_acquire) >= max)
        return atomic_load_explicit(place, memory_order_acquire);
    uint64_t slots = grains[HISTORY_SECOND].slots + grains[HISTORY_STEP].slots;
    Rings *made = mem_alloc(sizeof(Rings) + slots * sizeof(Slot));
    made->used = used;
    if (atomic_compare_exchange_strong_explicit(place, &rings, made, memory_order_acq_rel,
                                                memory_order_acquire)) {
        atomic_fetch_add_explicit(used, 1, memory_order_release);
        return made;
    }
    mem_free(made); /* another thread was first */
    return rings;
}

/* Where a slot is in its ring, and in which lap. */
typedef struct Place {
    uint64_t at;
    uint64_t lap;
} Place;

/* The slots of steps come after those of seconds. */
INLINE Place place_of(const Grain *grains, HistoryGrain grain, uint64_t time_s)
{
    uint64_t number = time_s / grains[grain].slot_s;
    uint64_t begin = grain == HISTORY_STEP ? grains[HISTORY_SECOND].slots : 0;
    return (Place){begin + number % grains[grain].slots, number / grains[grain].slots};
}

static uint64_t mask_of(unsigned bits)
{
    return ((uint64_t)1 << bits) - 1;
}

/* What a word holds in the 'bits' below its lap: 0 if the lap is another. */
INLINE uint64_t held(uint64_t word, uint64_t lap, unsigned bits)
{
    return word >> bits == (lap & mask_of(64 - bits)) ? word & mask_of(bits) : 0;
}

INLINE uint64_t add_up_to(uint64_t a, uint64_t b, uint64_t max)
{
    return b >= max - a ? max : a + b;
}

/* Adds to a word, or begins it anew with 'more' if its lap is another. Returns what was in it. */
INLINE uint64_t add_charge(_Atomic uint64_t *word, uint64_t lap, Charge more)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    uint64_t new;
    do {
        new = lap << CHARGE_BITS | add_up_to(held(old, lap, CHARGE_BITS), more, HISTORY_RU_MAX);
    } while (!atomic_compare_exchange_weak_explicit(word, &old, new, memory_order_relaxed,
                                                    memory_order_relaxed));
    return old;
}

INLINE uint64_t add_counts(_Atomic uint64_t *word, uint64_t lap, unsigned bits, HistoryCount more)
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
    return old;
}

static HistoryCount counts_of(uint64_t counts, unsigned bits)
{
    return (HistoryCount){.requests = counts & mask_of(bits),
                          .throttled = counts >> bits & mask_of(bits)};
}

/* The time of a second's word, which carries only the last bits of its lap's number. False if it is
 * not in the lap of 'now' or not as far back as the steps go. */
static bool time_of(const Grain *grains, uint64_t word_lap, Place now, uint64_t *time_s)
{
    uint64_t seconds = grains[HISTORY_SECOND].slots;
    uint64_t laps_max = grains[HISTORY_STEP].slots * HISTORY_STEP_S / seconds;
    uint64_t laps_ago = (now.lap - word_lap) & mask_of(64 - CHARGE_BITS);
    if (laps_ago >= laps_max || laps_ago > now.lap)
        return false;
    *time_s = (now.lap - laps_ago) * seconds + now.at;
    return true;
}
static_assert(64 - CHARGE_BITS == 64 - 2 * 24, "both words of a second have laps of as many bits");

/* Adds what was in a second's slot to the step that it belongs to. */
static void keep_charge(Rings *rings, const Grain *grains, uint64_t word, Place second)
{
    uint64_t time_s = 0;
    Charge charge = word & mask_of(CHARGE_BITS);
    if (charge == 0 || !time_of(grains, word >> CHARGE_BITS, second, &time_s))
        return;
    Place step = place_of(grains, HISTORY_STEP, time_s);
    (void)add_charge(&rings->slots[step.at].charge, step.lap, charge);
}

static void keep_counts(Rings *rings, const Grain *grains, uint64_t word, Place second)
{
    uint64_t time_s = 0;
    unsigned bits = grains[HISTORY_SECOND].count_bits;
    HistoryCount counts = counts_of(word, bits);
    if (counts.requests + counts.throttled == 0 ||
        !time_of(grains, word >> 2 * bits, second, &time_s))
        return;
    Place step = place_of(grains, HISTORY_STEP, time_s);
    (void)add_counts(&rings->slots[step.at].counts, step.lap, grains[HISTORY_STEP].count_bits,
                     counts);
}

INLINE void add_second(Rings *rings, const Grain *grains, uint64_t now_s, HistoryCount more)
{
    Place place = place_of(grains, HISTORY_SECOND, now_s);
    Slot *slot = &rings->slots[place.at];
    unsigned bits = grains[HISTORY_SECOND].count_bits;
    uint64_t charge = add_charge(&slot->charge, place.lap, more.charge);
    uint64_t counts = add_counts(&slot->counts, place.lap, bits, more);
    uint64_t lap = place.lap & mask_of(64 - CHARGE_BITS);
    if (UNLIKELY(charge >> CHARGE_BITS != lap))
        keep_charge(rings, grains, charge, place);
    if (UNLIKELY(counts >> 2 * bits != lap))
        keep_counts(rings, grains, counts, place);
}

void history_add(History *history, HistoryPool *pool, uint64_t now_s, HistoryOperation operation,
                 HistoryCount more)
{
    atomic_fetch_add_explicit(&history->charge, more.charge, memory_order_relaxed);
    atomic_fetch_add_explicit(&history->requests, more.requests, memory_order_relaxed);
    if (more.throttled > 0)
        atomic_fetch_add_explicit(&history->throttled, more.throttled, memory_order_relaxed);
    ASSERT(more.throttled <= more.requests);
    ASSERT(operation < HISTORY_OPERATIONS);
    Rings *rings = rings_of(&history->rings, ALL, &pool->used, pool->max);
    if (rings == NULL)
        return;
    add_second(rings, ALL, now_s, more);
    rings = rings_of(&history->operations[operation], OF_OPERATION, &pool->operations_used,
                     pool->operations_max);
    if (rings != NULL)
        add_second(rings, OF_OPERATION, now_s, more);
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
    return ALL[grain].slot_s;
}

uint64_t history_slots(HistoryGrain grain)
{
    return ALL[grain].slots;
}

static HistoryCount slot_at(const Rings *rings, const Grain *grains, HistoryGrain grain,
                            uint64_t time_s)
{
    Place place = place_of(grains, grain, time_s);
    const Slot *slot = &rings->slots[place.at];
    unsigned bits = grains[grain].count_bits;
    uint64_t charge = atomic_load_explicit(&slot->charge, memory_order_relaxed);
    uint64_t counts = atomic_load_explicit(&slot->counts, memory_order_relaxed);
    HistoryCount count = counts_of(held(counts, place.lap, 2 * bits), bits);
    count.charge = held(charge, place.lap, CHARGE_BITS);
    return count;
}

static void count_add(HistoryCount *sum, HistoryCount more)
{
    sum->charge += more.charge;
    sum->requests += more.requests;
    sum->throttled += more.throttled;
}

/* Reads the ring of steps first: a second that is moved to it meanwhile is missed, not counted
 * twice. */
static HistoryCount step_at(const Rings *rings, const Grain *grains, uint64_t time_s)
{
    HistoryCount sum = slot_at(rings, grains, HISTORY_STEP, time_s);
    uint64_t begin = time_s / HISTORY_STEP_S * HISTORY_STEP_S;
    for (uint64_t s = begin; s < begin + HISTORY_STEP_S; s++)
        count_add(&sum, slot_at(rings, grains, HISTORY_SECOND, s));
    return sum;
}

static HistoryCount count_at(const Rings *rings, const Grain *grains, HistoryGrain grain,
                             uint64_t time_s)
{
    if (rings == NULL)
        return (HistoryCount){0};
    return grain == HISTORY_SECOND ? slot_at(rings, grains, grain, time_s)
                                   : step_at(rings, grains, time_s);
}

HistoryCount history_at(const History *history, HistoryGrain grain, uint64_t time_s)
{
    const Rings *rings = atomic_load_explicit(&history->rings, memory_order_acquire);
    return count_at(rings, ALL, grain, time_s);
}

HistoryCount history_operation_at(const History *history, HistoryOperation operation,
                                  HistoryGrain grain, uint64_t time_s)
{
    ASSERT(operation < HISTORY_OPERATIONS);
    const Rings *rings =
        atomic_load_explicit(&history->operations[operation], memory_order_acquire);
    return count_at(rings, OF_OPERATION, grain, time_s);
}

HistorySpan history_span(const History *history, uint64_t from_s, uint64_t to_s)
{
    HistorySpan span = {0};
    for (uint64_t s = from_s; s < to_s; s++) {
        HistoryCount count = history_at(history, HISTORY_SECOND, s);
        count_add(&span.sum, count);
        if (count.charge > span.charge_max)
            span.charge_max = count.charge;
    }
    return span;
}
