/* seed_command.c - see seed_command.h. The work is done in seed/seed.h. */
#include "cli/seed_command.h"

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/options.h"
#include "seed/seed.h"
#include "transfer/stop_signal.h"

#include <stdio.h>
#include <stdlib.h>

enum { EXIT_USAGE = 2 };

typedef struct SeedArguments {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) ARGUMENT_TYPE_##kind field;
#include "cli/seed_options.def"
#undef ARGUMENT_ROW
} SeedArguments;

static const ArgumentRow ROWS[] = {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) \
    ARGUMENT_TABLE_ROW(SeedArguments, field, name, kind, placeholder, fallback, help),
#include "cli/seed_options.def"
#undef ARGUMENT_ROW
};
static const ArgumentTable TABLE = {"seed", ROWS, ARRAY_COUNT(ROWS)};

const Command SEED_COMMAND = {
    .name = "seed",
    .summary = "make a server have what a file declares",
    .usage = "seed [options] FILE",
    .about =
        "Makes a server have the databases, containers, scripts, users and items that a JSON file "
        "declares (docs/seed.md). What is there already is left alone, what differs is replaced, "
        "and nothing is deleted unless the file says so. A second run changes nothing. FILE may be "
        "- for standard input.",
    .options = &TABLE,
    .operands = "FILE",
    .notes =
        "The exit code is 0 if the server is as the file says, 1 if it failed or was interrupted, "
        "and 2 if it was called in a wrong way.",
    .examples = "orrery seed shop.json\n"
                "orrery seed --endpoint https://localhost:8081 --insecure fixtures/shop.json\n",
    .main = seed_main,
};

static void print_resource(void *ctx, SeedChange change, const char *kind, const char *name)
{
    (void)ctx;
    if (change != SEED_UNCHANGED)
        (void)printf("%-9s %s %s\n", seed_change_word(change), kind, name);
}

static void print_items(void *ctx, const char *container, uint64_t written, uint64_t unchanged)
{
    (void)ctx;
    if (written > 0)
        (void)printf("%-9s %llu items of %s (%llu unchanged)\n", "written",
                     (unsigned long long)written, container, (unsigned long long)unchanged);
}

static void print_reject(void *ctx, const char *place, const char *reason)
{
    (void)ctx;
    (void)fprintf(stderr, "orrery: %s: %s\n", place, reason);
}

static int run(const SeedArguments *arguments, Client *client, const SeedFile *file)
{
    Error err;
    SeedSummary summary;
    SeedOptions options = {
        .client = client,
        .file = file,
        .on_resource = arguments->quiet ? NULL : print_resource,
        .on_items = arguments->quiet ? NULL : print_items,
        .on_reject = print_reject,
    };
    Status status = stop_signal_open(&options.stop_fd, &err);
    if (status == STATUS_OK)
        status = seed_run(&options, &summary, &err);
    if (status != STATUS_OK) {
        (void)fprintf(stderr, "orrery: %s\n", err.message);
        return EXIT_FAILURE;
    }
    if (!arguments->quiet)
        (void)printf("%s\n", seed_summary_text(&summary).text);
    return EXIT_SUCCESS;
}

static Status open_client(const SeedArguments *a, Arena *arena, char *const *environment,
                          Client **out, Error *err)
{
    ConnectionArguments connection = {
        .endpoint = a->endpoint,
        .key = a->key,
        .key_file = a->key_file,
        .cert = a->cert,
        .insecure = a->insecure,
        .database = "", /* which ones, the file says */
        .container = "",
    };
    return connection_open(&connection, arena, environment, 0, out, err);
}

int seed_main(int argc, char *const *argv, char *const *environment)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(client_close) Client *client = NULL;
    SeedArguments arguments = {0};
    ArgumentList files = {0};
    SeedFile file;
    bool help = false;
    Error err;
    Status status = arguments_parse(&TABLE, &arena, argc, argv, &arguments, &files, &help, &err);
    if (status == STATUS_OK && help) {
        command_print_help(&SEED_COMMAND, stdout);
        return EXIT_SUCCESS;
    }
    if (status == STATUS_OK && files.count != 1)
        status = error_set(&err, STATUS_BAD_REQUEST, SUB_NONE,
                           "expected the name of one file, or - for standard input");
    if (status == STATUS_OK)
        status = open_client(&arguments, &arena, environment, &client, &err);
    options_hide(argc, argv, environment);
    if (status != STATUS_OK) {
        (void)fprintf(stderr, "orrery: %s\n", err.message);
        return status == STATUS_UNAVAILABLE ? EXIT_FAILURE : EXIT_USAGE;
    }
    if (seed_file_open(&arena, files.items[0], &file, &err) != STATUS_OK) {
        (void)fprintf(stderr, "orrery: %s\n", err.message);
        return EXIT_FAILURE;
    }
    return arguments.check ? EXIT_SUCCESS : run(&arguments, client, &file);
}
