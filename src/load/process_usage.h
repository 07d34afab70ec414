/* process_usage.h - what a process has used so far. */
#pragma once

#include "base/error.h"

typedef struct ProcessUsage {
    uint64_t cpu_us; /* user and system, all threads, also those that have ended */
    uint64_t rss_bytes;
} ProcessUsage;

MUST_USE Status process_usage(int64_t pid, ProcessUsage *out, Error *err);
