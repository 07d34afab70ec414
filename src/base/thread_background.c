/* thread_background.c - see thread_background.h.
 *
 * Linux runs a thread that wakes up at once if its slice is shorter than that of the thread that
 * runs; otherwise it waits for the end of that slice. So a background thread asks for a longer
 * slice than the usual one, of about 3 ms. Not for a much longer one: background threads wait for
 * each other's slices, too.
 *
 * A lower priority (nice) would do the same, but it is inherited by threads that are started later
 * for something else, RocksDB's for instance, and cannot be raised again without a privilege.
 */
#include "base/thread_background.h"

#include "base/defs.h"

#include <sys/syscall.h>
#include <unistd.h>

#define BACKGROUND_SLICE_NS ((uint64_t)10 * 1000 * 1000)

enum { RESET_ON_FORK = 1 }; /* a flag of the system: threads that it starts do not inherit */

/* What the system call takes; the C library has no name for it everywhere. */
typedef struct SchedAttr {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns; /* the slice, since Linux 6.12; ignored before */
    uint64_t deadline_ns;
    uint64_t period_ns;
} SchedAttr;
static_assert(sizeof(SchedAttr) == 48, "the first version of the system's struct");

void thread_set_background(void)
{
    SchedAttr attr = {.size = sizeof(attr)};
    if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0)
        return;
    attr.size = sizeof(attr);
    attr.flags = RESET_ON_FORK;
    attr.runtime_ns = BACKGROUND_SLICE_NS;
    (void)syscall(SYS_sched_setattr, 0, &attr, 0); /* a refusal only costs others some time */
}
