/* process_usage.c - see process_usage.h. */
#include "load/process_usage.h"

#include "base/slice.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* /proc/PID/statm: "size resident ...", in pages. */
static Status read_rss(int64_t pid, uint64_t *bytes, Error *err)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%" PRId64 "/statm", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot open '%s'", path);
    char text[256];
    ssize_t len = read(fd, text, sizeof(text));
    int code = errno;
    (void)close(fd); /* only read from */
    if (len <= 0)
        return error_set_errno(err, code, "cannot read '%s'", path);
    Slice rest = slice_make(text, (size_t)len);
    (void)slice_cut(&rest, ' ');
    uint64_t pages = 0;
    if (!slice_to_u64(slice_cut(&rest, ' '), &pages))
        return error_set(err, STATUS_IO, SUB_NONE, "'%s' has no number of pages in it", path);
    *bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return STATUS_OK;
}

/* By the process's own clock: /proc/PID/stat counts hundredths of a second. */
Status process_usage(int64_t pid, ProcessUsage *out, Error *err)
{
    clockid_t clock;
    int code = clock_getcpuclockid((pid_t)pid, &clock);
    if (code != 0)
        return error_set_errno(err, code, "cannot find the clock of process %" PRId64, pid);
    struct timespec used;
    if (clock_gettime(clock, &used) != 0)
        return error_set_errno(err, errno, "cannot read the clock of process %" PRId64, pid);
    out->cpu_us = (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
    return read_rss(pid, &out->rss_bytes, err);
}
