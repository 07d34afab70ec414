/* load_report.h - what a run has found, as text for people and as one line of JSON for programs. */
#pragma once

#include "load/load_run.h"

typedef struct LoadReport {
    const LoadOptions *options;
    const char *workload;
    const LoadResult *result;
    bool has_histogram;     /* every bucket of the latencies, too */
    uint64_t fill_milli_ru; /* that was used before the run */
} LoadReport;

#define LOAD_REPORT_BYTES_MAX ((size_t)1 << 20)

/* One line. The scripts of bench/ take the last number of a name for the one of the whole run, so
 * operations come first. */
void load_report_json(const LoadReport *report, Buf *out);
void load_report_text(const LoadReport *report, Buf *out);
