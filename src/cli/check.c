/* check.c - see check.h.
 *
 * The folder is opened for reading only: the log is replayed in memory, and leftovers that a start
 * would remove stay. No server can open the folder meanwhile. Nothing in it changes (I5), so it may
 * be on a read-only disk.
 */
#include "cli/check.h"

#include "base/metrics.h"
#include "catalog/catalog.h"
#include "catalog/saved_states.h"
#include "cli/commands.h"
#include "partition/partition_check.h"
#include "store/rocksdb/rocksdb_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

typedef struct Checker {
    const char *data;
    Arena arena;
    Log log;
    Metrics metrics;
    Store *store;
    Workers *writers;
    PartitionHost host;
    Catalog *catalog;
    bool is_terminal; /* shows progress */

    /* What is being checked. */
    const Database *database;
    const Container *container;
    uint32_t partition;
    CheckTotals container_totals;
    CheckTotals totals;
    size_t containers;
} Checker;

/* A container that was dropped and is kept for a snapshot is in none. */
static Slice database_id(const Checker *checker)
{
    return checker->database != NULL ? checker->database->info.id : SLICE("(in snapshots)");
}

typedef struct CheckArguments {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) ARGUMENT_TYPE_##kind field;
#include "cli/check_options.def"
#undef ARGUMENT_ROW
} CheckArguments;

static const ArgumentRow ROWS[] = {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) \
    ARGUMENT_TABLE_ROW(CheckArguments, field, name, kind, placeholder, fallback, help),
#include "cli/check_options.def"
#undef ARGUMENT_ROW
};
static const ArgumentTable TABLE = {"check", ROWS, ARRAY_COUNT(ROWS)};

const Command CHECK_COMMAND = {
    .name = "check",
    .summary = "verify that a data folder is consistent",
    .usage = "check [--data DIR]",
    .about = "Reads everything in a data folder and verifies that it is consistent: items, their "
             "numbers, unique keys, expiry, counters, sizes, the index of every item, and that "
             "there is no data without a container. It changes nothing; the folder may be on a "
             "read-only disk. The server must not be running on it.",
    .options = &TABLE,
    .notes = "The exit code is 0 if everything is consistent and 1 if not.",
    .examples = "orrery check --data /var/lib/orrery\n",
    .main = check_main,
};

static Status parse(Checker *checker, int argc, char *const *argv, char *const *environment,
                    bool *help, Error *err)
{
    CheckArguments a = {0};
    TRY(arguments_parse(&TABLE, &checker->arena, argc, argv, &a, NULL, help, err));
    checker->data = a.data != NULL ? a.data : "data";
    for (; a.data == NULL && *environment != NULL; environment++) {
        Slice entry = slice_from_cstr(*environment);
        if (slice_starts_with(entry, SLICE("ORRERY_DATA=")))
            checker->data = *environment + strlen("ORRERY_DATA=");
    }
    if (checker->data[0] == '\0')
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "ORRERY_DATA must not be empty");
    return STATUS_OK;
}

static Status open_all(Checker *checker, Error *err)
{
    const char *path = arena_format(&checker->arena, "%s/store", checker->data).ptr;
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "'%s' is not a data folder of orrery",
                         checker->data);
    RocksdbStoreOptions options = {
        .path = path, .log = &checker->log, .merge = &PARTITION_MERGE, .is_read_only = true};
    TRY(rocksdb_store_open(&options, &checker->store, err));
    checker->writers = workers_open("writer", 1, UINT32_MAX);
    checker->host = (PartitionHost){
        .store = checker->store,
        .writers = checker->writers,
        .clock = checker->log.clock,
        .log = &checker->log,
        .is_closing = true, /* no background work */
    };
    CatalogOptions catalog = {
        .host = &checker->host,
        .clock = checker->log.clock,
        .log = &checker->log,
        .metrics = &checker->metrics.shards[0],
        .is_read_only = true,
    };
    return catalog_open(&catalog, &checker->catalog, err);
}

static void close_all(Checker *checker)
{
    catalog_close(checker->catalog);
    partition_host_stop(&checker->host);
    workers_close(checker->writers);
    store_close(checker->store);
    metrics_done(&checker->metrics);
    arena_done(&checker->arena);
}

static void show_progress(void *ctx, uint64_t items)
{
    const Checker *checker = ctx;
    if (!checker->is_terminal)
        return;
    (void)fprintf(stderr, "\r%.*s/%.*s: partition %u, %llu items ",
                  SLICE_CUT(database_id(checker), 40), SLICE_CUT(checker->container->info.id, 40),
                  checker->partition, (unsigned long long)items);
}

static void end_progress(const Checker *checker)
{
    if (checker->is_terminal)
        (void)fprintf(stderr, "\r\033[K");
}

static void print_finding(void *ctx, const char *finding)
{
    const Checker *checker = ctx;
    end_progress(checker);
    (void)printf("%.*s/%.*s: partition %u: %s\n", SLICE_ARG(database_id(checker)),
                 SLICE_ARG(checker->container->info.id), checker->partition, finding);
}

static Status check_container(Checker *checker, Error *err)
{
    const Container *container = checker->container;
    CheckReport report = {.found = print_finding, .progress = show_progress, .ctx = checker};
    checker->container_totals = (CheckTotals){0};
    CheckTotals *totals = &checker->container_totals;
    for (size_t i = 0; i < container->range_count; i++) {
        checker->partition = container->ranges[i].id;
        TRY(partition_check(handle_local(container_handle_at(container, i)), container->schema,
                            &report, totals, err));
    }
    end_progress(checker);
    (void)printf("%.*s/%.*s: %zu partitions, %llu items, %llu index terms, %llu findings\n",
                 SLICE_ARG(database_id(checker)), SLICE_ARG(container->info.id),
                 container->range_count, (unsigned long long)totals->items,
                 (unsigned long long)totals->terms, (unsigned long long)totals->findings);
    checker->totals.items += totals->items;
    checker->totals.terms += totals->terms;
    checker->totals.findings += totals->findings;
    checker->containers++;
    return STATUS_OK;
}

static Status check_snapshot(Checker *checker, const Snapshot *snapshot, Error *err)
{
    SnapshotWalk walk = {0};
    while (snapshot_next(snapshot, &walk)) {
        checker->database = walk.database;
        checker->container = walk.container;
        TRY(check_container(checker, err));
    }
    return STATUS_OK;
}

static Status check_kept(void *ctx, const Container *container, Error *err)
{
    Checker *checker = ctx;
    checker->database = NULL;
    checker->container = container;
    return check_container(checker, err);
}

static void print_unknown_space(void *ctx, StoreSpace space)
{
    Checker *checker = ctx;
    (void)printf(
        "space %llu: about %llu bytes that belong to no container\n", (unsigned long long)space,
        (unsigned long long)store_estimate_bytes(checker->store, space, SLICE_EMPTY, SLICE_EMPTY));
    checker->totals.findings++;
}

static Status run(Checker *checker, Error *err)
{
    TRY(open_all(checker, err));
    CatalogReader reader;
    catalog_reader_init(&reader, checker->catalog);
    Status status = check_snapshot(checker, catalog_read(&reader), err);
    catalog_reader_done(&reader);
    TRY(status);
    TRY(catalog_visit_kept(&checker->host, check_kept, checker, err));
    TRY(catalog_find_unknown_spaces(checker->store, print_unknown_space, checker, err));
    unsigned long long findings = checker->totals.findings;
    (void)printf("%zu containers with %llu items: ", checker->containers,
                 (unsigned long long)checker->totals.items);
    if (findings == 0)
        (void)printf("everything agrees\n");
    else
        (void)printf("%llu findings\n", findings);
    return STATUS_OK;
}

int check_main(int argc, char *const *argv, char *const *environment)
{
    Checker checker = {
        .log = {.fd = STDERR_FILENO, .level = LOG_LEVEL_WARN, .clock = clock_real()},
        .is_terminal = isatty(STDERR_FILENO) != 0,
    };
    arena_init(&checker.arena, 1024);
    Error err;
    bool help = false;
    Status parsed = parse(&checker, argc, argv, environment, &help, &err);
    if (parsed != STATUS_OK || help) {
        if (help)
            command_print_help(&CHECK_COMMAND, stdout);
        else
            (void)fprintf(stderr, "orrery: %s\n", err.message);
        arena_done(&checker.arena);
        return help ? EXIT_SUCCESS : EXIT_USAGE;
    }
    metrics_init(&checker.metrics, 1);
    Status status = run(&checker, &err);
    if (status != STATUS_OK)
        (void)fprintf(stderr, "orrery: %s\n", err.message);
    close_all(&checker);
    return status == STATUS_OK && checker.totals.findings == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
