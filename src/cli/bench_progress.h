/* bench_progress.h - how far a benchmark is, for people: a line that changes on a terminal, a line
 * every few seconds elsewhere. Everything goes to standard error.
 *
 * Threads    Belongs to one thread.
 */
#pragma once

#include "load/load_run.h"

typedef struct BenchProgress {
    const char *what; /* "ycsb-b", or "items" while these are made */
    uint32_t seconds; /* how long it will take; 0 if that is not known */
    bool is_quiet;
    bool is_terminal;
    bool has_line; /* there is one on the terminal */
    uint64_t shown_us;
    uint64_t requests_before; /* when it was last shown */
    uint64_t milli_ru_before;
} BenchProgress;

void bench_progress_init(BenchProgress *progress, const char *what, uint32_t seconds,
                         bool is_quiet);
LoadObserver bench_progress_observer(BenchProgress *progress);

/* Removes the line, so that other text can follow. */
void bench_progress_clear(BenchProgress *progress);

/* The text of one moment, without a line end. */
void bench_progress_print(const BenchProgress *progress, const LoadResult *result,
                          uint64_t elapsed_us, Buf *out);
