/* process.c - see process.h. */
#include "bench/process.h"

#include "base/slice.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { FIELD_UTIME = 14, FIELD_STIME = 15, FIELD_RSS = 24 };

/* Reads /proc/PID/stat: "pid (name) state ppid ...", fields counted from 1. */
Status process_usage(int64_t pid, ProcessUsage *out, Error *err)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot open '%s'", path);
    char text[4096];
    ssize_t len = read(fd, text, sizeof(text));
    int code = errno;
    (void)close(fd); /* only read from */
    if (len <= 0)
        return error_set_errno(err, code, "cannot read '%s'", path);

    /* The name may hold spaces and parentheses; what follows the last ')' is regular. */
    const char *name_end = memrchr(text, ')', (size_t)len);
    if (name_end == NULL)
        return error_set(err, STATUS_IO, SUB_NONE, "'%s' has no name in it", path);
    Slice rest = slice_from(slice_make(text, (size_t)len), (size_t)(name_end - text) + 2);
    uint64_t values[FIELD_RSS + 1] = {0};
    for (int field = 3; field <= FIELD_RSS; field++)
        (void)slice_to_u64(slice_cut(&rest, ' '),
                           &values[field]); /* some are letters or negative */
    uint64_t ticks = values[FIELD_UTIME] + values[FIELD_STIME];
    out->cpu_us = ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
    out->rss_bytes = values[FIELD_RSS] * (uint64_t)sysconf(_SC_PAGESIZE);
    return STATUS_OK;
}
