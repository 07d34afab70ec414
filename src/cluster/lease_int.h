/* lease_int.h - how long this node may speak for what it owns.
 *
 * A renewal is good for LEASE_US from before it was sent, by a clock that goes on while the machine
 * sleeps. This node stops LEASE_MARGIN_US earlier, and a successor waits as much longer: clocks
 * may run at different speeds. A jump of the wall clock means that the machine was stopped without
 * that clock noticing (a virtual machine that was moved or restored), so it ends the lease.
 *
 * Threads    One thread renews; any may ask.
 */
#pragma once

#include "base/clock.h"

#include <stdatomic.h>

#define LEASE_US           UINT64_C(5000000)
#define LEASE_MARGIN_US    UINT64_C(500000)
#define LEASE_SUCCESSOR_US (LEASE_US + LEASE_MARGIN_US)
#define LEASE_RENEW_US     UINT64_C(1000000)

typedef struct Lease {
    const Clock *clock;
    _Atomic uint64_t until_us;       /* boot time; 0 if it does not hold */
    _Atomic uint64_t wall_offset_us; /* wall time minus boot time when it was renewed; wraps */
} Lease;

/* The moment before a renewal is sent. */
typedef struct LeaseMoment {
    uint64_t boot_us;
    uint64_t wall_offset_us;
} LeaseMoment;

void lease_init(Lease *lease, const Clock *clock); /* does not hold */
LeaseMoment lease_moment(const Lease *lease);
void lease_renewed(Lease *lease, LeaseMoment sent);
void lease_end(Lease *lease);
bool lease_holds(const Lease *lease);
