/* memory_budget.h - how the memory of the server and its workers for scripts is divided.
 *
 * One number, --memory, is the most that the whole tree of processes may take. Each part has a
 * share that it keeps by its own means, so that the sum stays below the number whatever clients do:
 *
 *     program       128 MB: code, threads, statistics, what the heap keeps for reuse
 *     cache         --cache, and three quarters of it again for what RocksDB has yet to write
 *     of the rest   1/6 connections, with their requests and answers (503 beyond it)
 *                   1/6 pages of queries that hold little; as many at a time as fit in
 *                   2/6 pages of queries that hold much; others wait for one of them to end
 *                   2/6 workers for scripts; as many as fit in, each ended if it takes more
 */
#pragma once

#include "base/error.h"

#define MEMORY_TOTAL_MIN ((uint64_t)640 << 20)

typedef struct MemoryBudget {
    uint64_t total;
    uint64_t cache; /* items and blocks */
    uint64_t connections;
    uint32_t small_pages;      /* that may be under way at a time, besides those that run */
    uint32_t large_pages;      /* of these, how many may hold more than a little */
    uint64_t large_page;       /* bytes of one */
    uint32_t script_jobs;      /* processes for procedures and triggers */
    uint32_t script_functions; /* processes for functions of queries */
    uint64_t script_process;   /* bytes of one */
} MemoryBudget;

/* 'total' of 0 means 'available', which is what the machine or the container has; 'cache' of 0 one
 * that fits. STATUS_BAD_REQUEST if a total that was given is too small for the cache that was
 * given. */
MUST_USE Status memory_budget(uint64_t total, uint64_t available, uint64_t cache, uint32_t cpus,
                              MemoryBudget *out, Error *err);
