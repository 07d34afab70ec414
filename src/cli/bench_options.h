/* bench_options.h - the command line of `orrery bench`.
 *
 * Ownership  Everything lives in the arena or in argv.
 */
#pragma once

#include "base/arena.h"
#include "load/load_container.h"
#include "load/workload.h"

typedef enum BenchMode {
    BENCH_RUN,
    BENCH_ONCE,
    BENCH_READY,
    BENCH_PRINT_ITEM,
    BENCH_PRINT_COPY,
    BENCH_PRINT_QUERIES,
} BenchMode;

typedef struct BenchOptions {
    BenchMode mode;
    const Workload *workload;
    LoadOptions load; /* without its target, observer and stop_fd */
    LoadTargetOptions target;
    LoadContainerOptions container; /* without its target */
    Signer signer;
    bool is_create;
    bool is_keep;
    bool is_allowed; /* to run against another machine: --yes, or a limit of request units */
    bool is_json;
    bool is_quiet;
    bool has_histogram;
} BenchOptions;

/* STATUS_BAD_REQUEST says what is wrong. '*help' is true if only help is wanted. */
MUST_USE Status bench_options_parse(int argc, char *const *argv, char *const *environment,
                                    Arena *arena, BenchOptions *out, bool *help, Error *err);

/* Roughly how many request units the run uses, as text: what requests of that kind cost a service.
 */
void bench_options_estimate(const BenchOptions *options, Buf *out);
