/* bench_command.c - see bench_command.h. The work is done in src/load. */
#include "cli/bench_command.h"

#include "base/mem.h"
#include "cli/bench_options.h"
#include "cli/bench_progress.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "load/load_report.h"
#include "transfer/stop_signal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, READY_PAUSE_NS = 200000 };
#define READY_TIMEOUT_US UINT64_C(30000000)

static Status check_written(Error *err)
{
    if (fflush(stdout) != 0 || ferror(stdout) != 0)
        return error_set(err, STATUS_IO, SUB_NONE, "cannot write everything that was asked for");
    return STATUS_OK;
}

/* Items with the text of 'create', one by one from 'first' on. */
static Status print_items(const BenchOptions *o, uint64_t count, const char *format, Error *err)
{
    AUTO(item_maker_done) ItemMaker maker;
    ItemOptions options = o->load.request.items;
    memset(options.percent, 0, sizeof(options.percent));
    options.percent[LOAD_ITEM_CREATE] = 100;
    item_maker_init(&maker, &options);
    for (uint64_t i = 0; i < count; i++) {
        ItemTurn turn;
        item_maker_choose(&maker, &turn);
        Slice text = item_maker_print(&maker, &turn, SLICE_EMPTY).body;
        if (format == NULL)
            (void)printf("%.*s\n", SLICE_ARG(text));
        else
            (void)printf("%.*s\t%.*s\t%.*s\n", SLICE_ARG(maker.id), SLICE_ARG(maker.key),
                         SLICE_ARG(text));
    }
    return check_written(err);
}

static Status print_queries(const LoadOptions *options, Error *err)
{
    AUTO(query_maker_done) QueryMaker maker;
    query_maker_init(&maker, &options->request.query);
    for (uint64_t i = 0; i < options->count; i++) {
        Slice body = query_maker_print(&maker, options->turn + i, SLICE_EMPTY).body;
        (void)printf("%.*s\n", SLICE_ARG(body));
    }
    return check_written(err);
}

static Status send_once(const BenchOptions *o, LoadTarget *target, Error *err)
{
    AUTO(buf_done) Buf body;
    buf_init(&body, (size_t)64 << 20);
    int status = 0;
    TRY(load_once(&o->load.request, target, o->load.turn, clock_real(), &status, &body, err));
    (void)printf("%d\n%.*s\n", status, SLICE_ARG(buf_view(&body)));
    TRY(check_written(err));
    if (status < 200 || status > 299)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the server answered %d", status);
    return STATUS_OK;
}

/* Asks so often that the time until the answer is that of the server's start. */
static Status wait_ready(const BenchOptions *o, LoadTarget *target, Error *err)
{
    const Clock *clock = clock_real();
    uint64_t end_us = clock_monotonic_us(clock) + READY_TIMEOUT_US;
    for (;;) {
        AUTO(buf_done) Buf body;
        buf_init(&body, (size_t)64 << 20);
        int status = 0;
        Status outcome = load_once(&o->load.request, target, 0, clock, &status, &body, err);
        if (outcome == STATUS_OK && status >= 200 && status <= 299)
            return STATUS_OK;
        if (clock_monotonic_us(clock) > end_us)
            return error_set(err, STATUS_TIMEOUT, SUB_NONE, "the server is not ready after 30 s");
        struct timespec pause = {.tv_nsec = READY_PAUSE_NS};
        (void)nanosleep(&pause, NULL); /* a shorter pause does no harm */
    }
}

/* A run costs money where request units do, so nobody should start one by mistake. */
static Status check_allowed(const BenchOptions *o, const LoadTarget *target, Error *err)
{
    if (o->is_allowed || load_target_is_loopback(target))
        return STATUS_OK;
    AUTO(buf_done) Buf estimate;
    buf_init(&estimate, 400);
    bench_options_estimate(o, &estimate);
    return error_set(err, STATUS_FORBIDDEN, SUB_NONE,
                     "'%.100s' is another machine, where request units may cost money. This run "
                     "uses %.*s. Limit it with --max-ru, or allow it with --yes",
                     target->host, SLICE_ARG(buf_view(&estimate)));
}

static void print_report(const BenchOptions *o, const LoadResult *result, uint64_t fill_milli_ru)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, LOAD_REPORT_BYTES_MAX);
    LoadReport report = {
        .options = &o->load,
        .workload = o->workload->name,
        .result = result,
        .has_histogram = o->has_histogram,
        .fill_milli_ru = fill_milli_ru,
    };
    if (o->is_json)
        load_report_json(&report, &text);
    else
        load_report_text(&report, &text);
    (void)fwrite(text.ptr, 1, text.len, stdout); /* check_written comes next */
}

/* Makes the items. With STATUS_OK and an end that is not LOAD_END_DONE there is nothing to measure.
 */
static Status fill(BenchOptions *o, LoadResult *result, uint64_t *milli_ru, Error *err)
{
    BenchProgress progress;
    bench_progress_init(&progress, "making items", 0, o->is_quiet);
    LoadObserver observer = bench_progress_observer(&progress);
    o->load.observer = &observer;
    Status status = load_container_fill(&o->load, clock_real(), result, err);
    o->load.observer = NULL;
    bench_progress_clear(&progress);
    *milli_ru = result->milli_ru;
    TRY(status);
    if (result->end == LOAD_END_DONE && o->load.milli_ru_max > 0) {
        if (*milli_ru >= o->load.milli_ru_max)
            result->end = LOAD_END_MAX_RU;
        else
            o->load.milli_ru_max -= *milli_ru;
    }
    if (result->end == LOAD_END_MAX_RU)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--max-ru was reached while the items were made, with %.0f request units",
                         (double)*milli_ru / 1000);
    return STATUS_OK;
}

static Status measure(BenchOptions *o, LoadResult *result, uint64_t fill_milli_ru, Error *err)
{
    BenchProgress progress;
    bench_progress_init(&progress, o->workload->name, o->load.count > 0 ? 0 : o->load.seconds,
                        o->is_quiet);
    LoadObserver observer = bench_progress_observer(&progress);
    o->load.observer = &observer;
    Status status = load_run(&o->load, clock_real(), result, err);
    o->load.observer = NULL;
    bench_progress_clear(&progress);
    if (status == STATUS_OK || result->succeeded > 0 || result->errors > 0)
        print_report(o, result, fill_milli_ru);
    TRY(status);
    TRY(check_written(err));
    if (result->error_status == 404 && o->workload->kind == WORKLOAD_ITEMS && !o->is_create)
        (void)fprintf(stderr, "orrery: 404 means that items are missing; --create makes them, and "
                              "--items, --items-per-key and the workload must be the same later\n");
    return STATUS_OK;
}

/* A socket for each connection, beside the few files that are open anyway. */
static void allow_sockets(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE,
                    &limit); /* if it is refused, the socket that is too much says so */
}

static Status run(BenchOptions *o, LoadTarget *target, LoadResult *result, Error *err)
{
    LoadContainer container = {0};
    uint64_t fill_milli_ru = 0;
    TRY(check_allowed(o, target, err));
    o->load.target = target;
    o->container.target = target;
    allow_sockets();
    TRY(stop_signal_open(&o->load.stop_fd, err));
    if (!o->is_create)
        return measure(o, result, 0, err);
    Status status = load_container_create(&container, &o->container, clock_real(), err);
    if (status == STATUS_OK)
        status = fill(o, result, &fill_milli_ru, err);
    if (status == STATUS_OK && result->end == LOAD_END_DONE)
        status = measure(o, result, fill_milli_ru, err);
    stop_signal_taken(o->load.stop_fd);
    if (o->is_keep)
        return status;
    Error drop_err;
    if (load_container_drop(&container, clock_real(), &drop_err) != STATUS_OK)
        (void)fprintf(stderr, "orrery: the container is still there: %s\n", drop_err.message);
    return status;
}

static Status act(BenchOptions *o, bool *is_clean, Error *err)
{
    AUTO(load_target_close) LoadTarget *target = NULL;
    AUTO(mem_free) void *memory = mem_alloc(sizeof(LoadResult));
    LoadResult *result = memory;
    *is_clean = true;
    /* Lines between the results of a script would help nobody. */
    o->is_quiet = o->is_quiet || (o->is_json && isatty(STDERR_FILENO) == 0);
    switch (o->mode) {
    case BENCH_PRINT_ITEM:
        return print_items(o, 1, NULL, err);
    case BENCH_PRINT_COPY:
        return print_items(o, o->load.request.items.count, "copy", err);
    case BENCH_PRINT_QUERIES:
        return print_queries(&o->load, err);
    case BENCH_ONCE:
    case BENCH_READY:
    case BENCH_RUN:
        break;
    }
    TRY(load_target_open(&o->target, &target, err));
    if (o->mode == BENCH_ONCE)
        return send_once(o, target, err);
    if (o->mode == BENCH_READY)
        return wait_ready(o, target, err);
    TRY(run(o, target, result, err));
    if (result->end == LOAD_END_INTERRUPTED)
        (void)fprintf(stderr, "orrery: interrupted\n");
    else if (result->succeeded == 0)
        (void)fprintf(stderr, "orrery: no request has succeeded\n");
    *is_clean = result->succeeded > 0 && result->end != LOAD_END_INTERRUPTED &&
                result->errors == 0 && result->failures == 0 && result->unanswered == 0;
    return STATUS_OK;
}

int bench_main(int argc, char *const *argv, char *const *environment)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    BenchOptions options;
    bool help = false;
    bool is_clean = true;
    Error err;
    Status status = bench_options_parse(argc, argv, environment, &arena, &options, &help, &err);
    options_hide(argc, argv, environment);
    if (status == STATUS_OK && help) {
        command_print_help(&BENCH_COMMAND, stdout);
        return EXIT_SUCCESS;
    }
    bool is_usage = status != STATUS_OK;
    if (status == STATUS_OK)
        status = act(&options, &is_clean, &err);
    if (status == STATUS_OK)
        return is_clean ? EXIT_SUCCESS : EXIT_FAILURE;
    (void)fprintf(stderr, "orrery: %s\n", err.message);
    return is_usage || status == STATUS_FORBIDDEN ? EXIT_USAGE : EXIT_FAILURE;
}
