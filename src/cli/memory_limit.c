/* memory_limit.c - see memory_limit.h. */
#include "cli/memory_limit.h"

#include "base/defs.h"
#include "base/slice.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* Where a container sees its own limit, in version 2 of cgroups and in version 1. The
 * limit of a systemd service is further down and not found; the machine's memory counts then. */
static const char *const CGROUP_FILES[] = {
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
};

/* The number in a file; UINT64_MAX if there is none, as when it says "max". */
static uint64_t read_number(const char *path)
{
    char text[32];
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return UINT64_MAX;
    size_t len = fread(text, 1, sizeof(text), file);
    (void)fclose(file);
    uint64_t number = 0;
    Slice line = slice_make(text, len);
    line = slice_first(line, slice_find(line, '\n'));
    return slice_to_u64(line, &number) ? number : UINT64_MAX;
}

uint64_t memory_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_size = sysconf(_SC_PAGESIZE);
    uint64_t least =
        pages > 0 && page_size > 0 ? (uint64_t)pages * (uint64_t)page_size : UINT64_MAX;
    for (size_t i = 0; i < ARRAY_COUNT(CGROUP_FILES); i++) {
        uint64_t allowed = read_number(CGROUP_FILES[i]);
        least = allowed < least ? allowed : least;
    }
    struct rlimit space;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY &&
        space.rlim_cur < least)
        least = space.rlim_cur;
    return least;
}
