/* memory_limit.h - how much memory this process may use at most. */
#pragma once

#include <stdint.h>

/* The least of what the machine has, what the container (cgroup) may use, and what the limit of the
 * process's address space (ulimit -v) leaves. */
uint64_t memory_limit(void);
