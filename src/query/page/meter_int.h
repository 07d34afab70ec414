/* meter_int.h - how long something has taken that is done very often, by a sample of its times.
 *
 * Reading a clock takes a good part of the time in which a document is fetched from memory. So the
 * first METER_FIRST times are measured, which are all of most queries and the most different ones
 * (files are opened, caches are cold), and then one in METER_STEP, which stands for the others.
 *
 * Threads    A Meter belongs to one thread.
 */
#pragma once

#include "base/clock.h"

enum {
    METER_FIRST = 4,
    METER_STEP = 17, /* a prime: what comes in batches, of 16 or of 64, must not stay in step */
};

typedef struct Meter {
    const Clock *clock; /* NULL if nothing is measured */
    uint64_t count;     /* how often it was begun */
    uint64_t first_us;  /* total of the first METER_FIRST, all of which are timed */
    uint64_t sample_us; /* total of the timed ones after them */
    uint64_t samples;   /* how many those are; each stands for METER_STEP */
    uint64_t begun_us;
    bool is_timed; /* whether the one that was begun last is timed */
} Meter;

static inline void meter_begin(Meter *meter)
{
    meter->is_timed = meter->clock != NULL && (meter->count < METER_FIRST ||
                                               (meter->count - METER_FIRST) % METER_STEP == 0);
    meter->count++;
    if (meter->is_timed)
        meter->begun_us = clock_monotonic_us(meter->clock);
}

/* Without the 'other_us' that went to something else meanwhile. */
static inline void meter_end(Meter *meter, uint64_t other_us)
{
    if (!meter->is_timed)
        return;
    uint64_t us = clock_monotonic_us(meter->clock) - meter->begun_us;
    us = us > other_us ? us - other_us : 0;
    if (meter->count <= METER_FIRST) {
        meter->first_us += us;
        return;
    }
    meter->sample_us += us;
    meter->samples++;
}

static inline uint64_t meter_us(const Meter *meter)
{
    if (meter->samples == 0)
        return meter->first_us;
    uint64_t others = meter->count - METER_FIRST;
    return meter->first_us + meter->sample_us * others / meter->samples;
}
