/* pacing.h - how fast requests go out: as a server allows, and as the user does.
 *
 * A Pace belongs to one partition key range. It lets more requests run at the same time, one at a
 * time, as long as the server accepts them, and takes back a third when the server throttles:
 * additive increase, multiplicative decrease. It does the same with the operations of one bulk
 * request. Ranges have their own, so one hot range does not slow down the others.
 *
 * A RuLimit caps the request units of all requests together. What a request costs is known when it
 * is done, so it reserves an estimate before it starts, and pays the difference afterwards. Over
 * any time t no more than (t + 1 s) * limit is used, but for what a request costs beyond its
 * estimate, which delays the ones after it.
 *
 * Threads    Nothing here locks. Time is passed in.
 */
#pragma once

#include "base/defs.h"

#define PACE_OPERATIONS_MAX 100 /* in one bulk request, as the service has it */

typedef struct Pace {
    double limit; /* requests that may run at the same time */
    double limit_max;
    uint32_t active;
    double operations;      /* of one request */
    uint64_t wait_until_us; /* nothing starts before */
    uint64_t slowed_at_us;  /* when the limit was last taken back */
} Pace;

void pace_init(Pace *pace, uint32_t limit_max);
bool pace_may_start(const Pace *pace, uint64_t now_us);
uint32_t pace_operations(const Pace *pace); /* at least 1 */
void pace_start(Pace *pace);

/* A request has ended: all of it was accepted; or the server throttled, and 'accepted' operations
 * of it were done; or it failed for another reason and is worth another try after 'wait_ms'. */
void pace_accepted(Pace *pace);
void pace_throttled(Pace *pace, uint32_t accepted, uint32_t wait_ms, uint64_t started_us,
                    uint64_t now_us);
void pace_failed(Pace *pace, uint32_t wait_ms, uint64_t now_us);

/* How long to wait before try number 'attempt' (from 0) of something that failed. */
uint32_t pace_backoff_ms(uint32_t attempt);

typedef struct RuLimit {
    double ru_per_s;  /* 0 for no limit */
    double available; /* negative if more was used than estimated */
    double estimate;  /* RU of one operation, of those that were done */
    uint64_t at_us;   /* when 'available' was computed */
} RuLimit;

void ru_limit_init(RuLimit *limit, uint32_t ru_per_s, uint64_t now_us);

/* How many of 'wanted' operations one request should have, so that it costs at most a quarter of a
 * second's units; at least 1. */
uint32_t ru_limit_operations(const RuLimit *limit, uint32_t wanted);

/* Reserves for a request. If there is not enough yet, returns false and in '*wait_ms' how long that
 * takes. */
bool ru_limit_reserve(RuLimit *limit, uint32_t operations, uint64_t now_us, double *reserved,
                      uint32_t *wait_ms);

/* The request has ended: 'done' operations have cost 'charge' together. */
void ru_limit_settle(RuLimit *limit, double reserved, uint32_t done, double charge);
