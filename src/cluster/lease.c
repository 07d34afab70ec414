/* lease.c - see lease_int.h. */
#include "cluster/lease_int.h"

void lease_init(Lease *lease, const Clock *clock)
{
    lease->clock = clock;
    atomic_init(&lease->until_us, 0);
    atomic_init(&lease->wall_offset_us, 0);
}

LeaseMoment lease_moment(const Lease *lease)
{
    uint64_t boot_us = clock_boot_us(lease->clock);
    return (LeaseMoment){boot_us, clock_wall_us(lease->clock) - boot_us};
}

/* The offset comes first: a reader that sees the new end then has the new offset. One that sees the
 * new offset with the old end asks about a lease that holds until a later moment than that. */
void lease_renewed(Lease *lease, LeaseMoment sent)
{
    atomic_store(&lease->wall_offset_us, sent.wall_offset_us);
    atomic_store(&lease->until_us, sent.boot_us + LEASE_US - LEASE_MARGIN_US);
}

void lease_end(Lease *lease)
{
    atomic_store(&lease->until_us, 0);
}

bool lease_holds(const Lease *lease)
{
    uint64_t until_us = atomic_load(&lease->until_us);
    uint64_t offset_us = atomic_load(&lease->wall_offset_us);
    LeaseMoment now = lease_moment(lease);
    uint64_t jump_us = now.wall_offset_us - offset_us;
    if (jump_us > UINT64_MAX / 2) /* backwards */
        jump_us = -jump_us;
    return now.boot_us < until_us && jump_us <= LEASE_US;
}
