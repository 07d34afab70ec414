/* file_limit.c - see file_limit.h. */
#include "cli/file_limit.h"

#include <sys/resource.h>

enum { RESERVED_FILES = 512 }; /* of the process's files, for the store and the rest */

uint32_t file_limit_raise(uint32_t connections_max, const Log *log)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return connections_max;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* the limit stays as it is then */
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return connections_max;
    uint64_t room =
        limit.rlim_cur > 2 * RESERVED_FILES ? limit.rlim_cur - RESERVED_FILES : limit.rlim_cur / 2;
    if (connections_max <= room)
        return connections_max;
    LOG_WARN(log, "server.few_files",
             "connections_max=%llu wanted=%u (raise the limit with ulimit -n)",
             (unsigned long long)room, connections_max);
    return (uint32_t)room;
}
