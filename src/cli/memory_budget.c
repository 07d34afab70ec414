/* memory_budget.c - see memory_budget.h. */
#include "cli/memory_budget.h"

#define MB ((uint64_t)1 << 20)

#define PROGRAM_BYTES    (128 * MB)
#define CACHE_BYTES      (128 * MB) /* if there is enough, and nothing else was asked for */
#define REST_BYTES_MIN   (384 * MB)
#define SMALL_PAGE_BYTES (4 * MB)
#define LARGE_PAGE_BYTES (256 * MB)
#define SCRIPT_BYTES     (256 * MB)

enum {
    SHARES = 6, /* of the rest */
    SMALL_PAGES_MAX = 256,
    LARGE_PAGES_MAX = 64,
    CONNECTIONS_PART = 8, /* of the total: more would be of no use */
    SCRIPT_PROCESSES_MIN = 2,
    SCRIPT_PROCESSES_PER_CPU = 4, /* half for procedures, half for functions */
    SCRIPT_PROCESSES_USUAL = 8,
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* With three tables of a quarter of it each that RocksDB has yet to write. */
static uint64_t with_tables(uint64_t cache)
{
    return cache + cache / 4 * 3;
}

static Status check(uint64_t total, uint64_t cache, Error *err)
{
    if (total < MEMORY_TOTAL_MIN)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--memory must be at least %lluM, or 0 for what the machine has; not "
                         "%lluM",
                         (unsigned long long)(MEMORY_TOTAL_MIN / MB),
                         (unsigned long long)(total / MB));
    unsigned long long needed = PROGRAM_BYTES + with_tables(cache) + REST_BYTES_MIN;
    if (total < needed)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--memory %lluM has no room for --cache %lluM, which needs --memory %lluM "
                         "or more",
                         (unsigned long long)(total / MB), (unsigned long long)(cache / MB),
                         needed / MB + 1);
    return STATUS_OK;
}

static void divide_scripts(uint64_t share, uint32_t cpus, MemoryBudget *out)
{
    uint64_t usual = most(SCRIPT_PROCESSES_USUAL, (uint64_t)cpus * SCRIPT_PROCESSES_PER_CPU);
    uint64_t processes = most(SCRIPT_PROCESSES_MIN, least(usual, share / SCRIPT_BYTES));
    out->script_process = least(SCRIPT_BYTES, share / processes);
    out->script_jobs = (uint32_t)(processes + 1) / 2;
    out->script_functions = (uint32_t)processes / 2;
}

Status memory_budget(uint64_t total, uint64_t available, uint64_t cache, uint32_t cpus,
                     MemoryBudget *out, Error *err)
{
    if (total != 0)
        TRY(check(total, cache, err));
    else
        total = most(available, MEMORY_TOTAL_MIN);
    if (cache == 0)
        cache = least(CACHE_BYTES, (total - PROGRAM_BYTES) / 7);
    uint64_t taken = PROGRAM_BYTES + with_tables(cache);
    uint64_t rest = total > taken ? most(total - taken, REST_BYTES_MIN) : REST_BYTES_MIN;
    uint64_t share = rest / SHARES;
    MemoryBudget budget = {
        .total = total,
        .cache = cache,
        .connections = most(least(share, total / CONNECTIONS_PART), 64 * MB),
        .small_pages = (uint32_t)least(SMALL_PAGES_MAX, share / SMALL_PAGE_BYTES),
        .large_pages = (uint32_t)most(1, least(LARGE_PAGES_MAX, 2 * share / LARGE_PAGE_BYTES)),
    };
    budget.large_page = least(LARGE_PAGE_BYTES, 2 * share / budget.large_pages);
    divide_scripts(2 * share, cpus, &budget);
    *out = budget;
    return STATUS_OK;
}
