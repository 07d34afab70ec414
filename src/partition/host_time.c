/* host_time.c - the time of _ts and of expiry (I5).
 *
 * An item that has expired must not come back, and that needs a time that does not go back either.
 * So this is not the wall clock but the monotonic one, put ahead by the most that the wall clock
 * was ever ahead of it: it follows the wall clock forwards, and continues at its own pace when that
 * is set back. Each commit stores it in the partition's counters, and a partition that opens puts
 * the clock ahead of what it finds there. So time does not go back over a restart either, as far as
 * anything was written.
 */
#include "partition/partition_int.h"

#define SECOND_US INT64_C(1000000)

/* What is stored is a u32. A clock beyond it stands still at its end, in the year 2106. */
#define TIME_US_MAX ((int64_t)UINT32_MAX * SECOND_US)

/* A difference that is worth a line in the log. */
#define BEHIND_US (60 * SECOND_US)

static int64_t bounded_us(uint64_t us)
{
    return us < (uint64_t)TIME_US_MAX ? (int64_t)us : TIME_US_MAX;
}

/* Returns how far ahead it was before. */
static int64_t put_ahead(PartitionHost *host, int64_t ahead_us)
{
    int64_t before_us = atomic_load_explicit(&host->ahead_us, memory_order_relaxed);
    while (ahead_us > before_us &&
           !atomic_compare_exchange_weak(&host->ahead_us, &before_us, ahead_us))
        continue;
    return before_us;
}

uint32_t partition_host_now_s(PartitionHost *host)
{
    int64_t monotonic_us = bounded_us(clock_monotonic_us(host->clock));
    int64_t ahead_us = bounded_us(clock_wall_us(host->clock)) - monotonic_us;
    int64_t before_us = put_ahead(host, ahead_us);
    int64_t now_us = monotonic_us + (ahead_us > before_us ? ahead_us : before_us);
    return (uint32_t)(bounded_us((uint64_t)now_us) / SECOND_US);
}

void partition_host_start_at_s(PartitionHost *host, uint32_t now_s)
{
    int64_t now_us = (int64_t)partition_host_now_s(host) * SECOND_US;
    int64_t seen_us = (int64_t)now_s * SECOND_US;
    (void)put_ahead(host, seen_us - bounded_us(clock_monotonic_us(host->clock)));
    if (seen_us > now_us + BEHIND_US)
        LOG_WARN(host->log, "partition.clock_behind",
                 "seconds=%lld (the newest write is from the clock's future; time goes on from "
                 "there)",
                 (long long)((seen_us - now_us) / SECOND_US));
}

bool partition_host_doubts_time(const PartitionHost *host)
{
    return host->doubts_time != NULL && host->doubts_time(host->placement_ctx);
}
