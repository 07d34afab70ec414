/* bench_progress.c - see bench_progress.h. */
#include "cli/bench_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { TERMINAL_EVERY_MS = 500, LINES_EVERY_MS = 5000 };

void bench_progress_init(BenchProgress *progress, const char *what, uint32_t seconds, bool is_quiet)
{
    *progress = (BenchProgress){
        .what = what,
        .seconds = seconds,
        .is_quiet = is_quiet,
        .is_terminal = isatty(STDERR_FILENO) != 0,
    };
}

void bench_progress_print(const BenchProgress *progress, const LoadResult *result,
                          uint64_t elapsed_us, Buf *out)
{
    double passed_us =
        elapsed_us > progress->shown_us ? (double)(elapsed_us - progress->shown_us) : 1;
    uint64_t requests = result->succeeded - progress->requests_before;
    buf_format(out, "%s  %.1f", progress->what, (double)elapsed_us / 1e6);
    if (progress->seconds > 0)
        buf_format(out, "/%" PRIu32, progress->seconds);
    buf_format(out, " s  %.0f requests/s  P50 %" PRIu64 " us  P99 %" PRIu64 " us",
               (double)requests * 1e6 / passed_us, histogram_percentile(&result->latency_us, 50000),
               histogram_percentile(&result->latency_us, 99000));
    if (result->milli_ru > 0)
        buf_format(out, "  %.0f RU/s",
                   (double)(result->milli_ru - progress->milli_ru_before) * 1e3 / passed_us);
    if (result->throttled > 0)
        buf_format(out, "  %" PRIu64 " throttled", result->throttled);
    if (result->errors + result->failures > 0)
        buf_format(out, "  %" PRIu64 " errors", result->errors + result->failures);
}

static void show(void *ctx, const LoadResult *result, uint64_t elapsed_us)
{
    BenchProgress *progress = ctx;
    uint64_t every_ms = progress->is_terminal ? TERMINAL_EVERY_MS : LINES_EVERY_MS;
    /* After the warm-up everything begins again. */
    if (elapsed_us < progress->shown_us) {
        progress->shown_us = 0;
        progress->requests_before = 0;
        progress->milli_ru_before = 0;
    }
    if (progress->is_quiet || elapsed_us < progress->shown_us + every_ms * 1000)
        return;
    AUTO(buf_done) Buf text;
    buf_init(&text, 1024);
    bench_progress_print(progress, result, elapsed_us, &text);
    if (progress->is_terminal)
        (void)fprintf(stderr, "\r%.*s\033[K", SLICE_CUT(buf_view(&text), 120));
    else
        (void)fprintf(stderr, "%.*s\n", SLICE_ARG(buf_view(&text)));
    (void)fflush(stderr); /* if nobody can see it, nothing is lost */
    progress->has_line = progress->is_terminal;
    progress->shown_us = elapsed_us;
    progress->requests_before = result->succeeded;
    progress->milli_ru_before = result->milli_ru;
}

LoadObserver bench_progress_observer(BenchProgress *progress)
{
    return (LoadObserver){.ctx = progress, .show = show};
}

void bench_progress_clear(BenchProgress *progress)
{
    if (progress->has_line)
        (void)fprintf(stderr, "\r\033[K");
    progress->has_line = false;
}
