/* pacing.c - see pacing.h. */
#include "transfer/pacing.h"

enum {
    LIMIT_FIRST = 4,
    WAIT_MS_DEFAULT = 100, /* of a server that throttles and does not say for how long */
    WAIT_MS_MAX = 60000,
    BACKOFF_MS_FIRST = 100,
    BACKOFF_MS_MAX = 10000,
};
#define ESTIMATE_FIRST 10.0 /* RU; a write of 1 KB costs about that */

void pace_init(Pace *pace, uint32_t limit_max)
{
    ASSERT(limit_max > 0);
    *pace = (Pace){
        .limit = limit_max < LIMIT_FIRST ? limit_max : LIMIT_FIRST,
        .limit_max = limit_max,
        .operations = PACE_OPERATIONS_MAX,
    };
}

bool pace_may_start(const Pace *pace, uint64_t now_us)
{
    return now_us >= pace->wait_until_us && pace->active < (uint32_t)pace->limit;
}

uint32_t pace_operations(const Pace *pace)
{
    return (uint32_t)pace->operations;
}

void pace_start(Pace *pace)
{
    pace->active++;
}

static void end(Pace *pace)
{
    ASSERT(pace->active > 0);
    pace->active--;
}

static double at_most(double value, double max)
{
    return value < max ? value : max;
}

void pace_accepted(Pace *pace)
{
    end(pace);
    pace->limit = at_most(pace->limit + 1, pace->limit_max);
    pace->operations = at_most(pace->operations * 1.25 + 1, PACE_OPERATIONS_MAX);
}

void pace_throttled(Pace *pace, uint32_t accepted, uint32_t wait_ms, uint64_t started_us,
                    uint64_t now_us)
{
    end(pace);
    /* Requests that were under way together are throttled together; that is one reason to slow
     * down, not many. */
    if (started_us >= pace->slowed_at_us) {
        pace->limit = pace->limit * 2 / 3 < 1 ? 1 : pace->limit * 2 / 3;
        if (accepted < pace_operations(pace))
            pace->operations = accepted < 1 ? 1 : accepted;
        pace->slowed_at_us = now_us;
    }
    uint32_t wait = wait_ms == 0 ? WAIT_MS_DEFAULT : wait_ms > WAIT_MS_MAX ? WAIT_MS_MAX : wait_ms;
    uint64_t until_us = now_us + (uint64_t)wait * 1000;
    pace->wait_until_us = pace->wait_until_us > until_us ? pace->wait_until_us : until_us;
}

void pace_failed(Pace *pace, uint32_t wait_ms, uint64_t now_us)
{
    end(pace);
    uint64_t until_us = now_us + (uint64_t)wait_ms * 1000;
    pace->wait_until_us = pace->wait_until_us > until_us ? pace->wait_until_us : until_us;
}

uint32_t pace_backoff_ms(uint32_t attempt)
{
    return attempt >= 7 ? BACKOFF_MS_MAX : BACKOFF_MS_FIRST << attempt;
}

void ru_limit_init(RuLimit *limit, uint32_t ru_per_s, uint64_t now_us)
{
    *limit = (RuLimit){
        .ru_per_s = ru_per_s, .available = ru_per_s, .estimate = ESTIMATE_FIRST, .at_us = now_us};
}

uint32_t ru_limit_operations(const RuLimit *limit, uint32_t wanted)
{
    if (limit->ru_per_s == 0)
        return wanted;
    double most = limit->ru_per_s / 4 / limit->estimate;
    return most < 1 ? 1 : most < wanted ? (uint32_t)most : wanted;
}

bool ru_limit_reserve(RuLimit *limit, uint32_t operations, uint64_t now_us, double *reserved,
                      uint32_t *wait_ms)
{
    *reserved = 0;
    if (limit->ru_per_s == 0)
        return true;
    double passed_s = (double)(now_us - limit->at_us) / 1e6;
    limit->available = at_most(limit->available + passed_s * limit->ru_per_s, limit->ru_per_s);
    limit->at_us = now_us;
    /* What is dearer than a second's units starts when there is all that there can be. */
    double cost = at_most(operations * limit->estimate, limit->ru_per_s);
    if (limit->available < cost) {
        double wait = (cost - limit->available) * 1000 / limit->ru_per_s;
        *wait_ms = wait > WAIT_MS_MAX ? WAIT_MS_MAX : (uint32_t)wait + 1;
        return false;
    }
    limit->available -= cost;
    *reserved = cost;
    return true;
}

void ru_limit_settle(RuLimit *limit, double reserved, uint32_t done, double charge)
{
    limit->available += reserved - charge;
    if (done > 0) {
        double each = charge / done;
        limit->estimate += (each - limit->estimate) / 4;
        limit->estimate = limit->estimate < 1 ? 1 : limit->estimate;
    }
}
