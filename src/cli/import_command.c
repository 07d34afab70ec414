/* import_command.c - see import_command.h. The work is done in transfer/import.h. */
#include "cli/import_command.h"

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/import_key.h"
#include "cli/options.h"
#include "transfer/import_sample.h"
#include "transfer/progress.h"
#include "transfer/row_mapping.h"
#include "transfer/stop_signal.h"
#include "json/property_path.h"

#include <stdio.h>
#include <stdlib.h>

enum { EXIT_USAGE = 2, RU_MAX = 100000000 };

typedef struct ImportArguments {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) ARGUMENT_TYPE_##kind field;
#include "cli/import_options.def"
#undef ARGUMENT_ROW
} ImportArguments;

static const ArgumentRow ROWS[] = {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) \
    ARGUMENT_TABLE_ROW(ImportArguments, field, name, kind, placeholder, fallback, help),
#include "cli/import_options.def"
#undef ARGUMENT_ROW
};
static const ArgumentTable TABLE = {"import", ROWS, ARRAY_COUNT(ROWS)};

const Command IMPORT_COMMAND = {
    .name = "import",
    .summary = "write the items in files to a container",
    .usage = "import --database ID --container ID [options] FILE...",
    .about =
        "Writes the items in files to a container, many at the same time. A FILE is JSON lines, a "
        "JSON array or CSV, plain or compressed with gzip or zstd; a folder, of which all files "
        "are taken; or - for standard input. Items are upserted: one that exists is replaced. "
        "Properties that a server adds (_rid, _ts, ...) are left out. A row without an id gets one "
        "that is the same each time.",
    .options = &TABLE,
    .operands = "FILE",
    .notes = "The exit code is 0 if all rows were written, 1 if some were rejected or it failed or "
             "was interrupted, and 2 if it was called in a wrong way.",
    .examples =
        "orrery import --database shop --container orders orders.jsonl\n"
        "orrery import --database shop --container orders --create --partition-key advise x.jsonl\n"
        "orrery import --database shop --container orders --create --partition-key /userId \\\n"
        "    --id-from /orderId --rejects bad.jsonl orders.csv.gz\n"
        "zcat dump.gz | orrery import --database shop --container orders --resume state -\n",
    .main = import_main,
};

static Status to_format(const char *text, RowFormat *out, Error *err)
{
    static const struct {
        const char *name;
        RowFormat format;
    } rows[] = {{"auto", ROW_FORMAT_AUTO},
                {"jsonl", ROW_FORMAT_LINES},
                {"json", ROW_FORMAT_JSON},
                {"csv", ROW_FORMAT_CSV}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (strcmp(text, rows[i].name) == 0) {
            *out = rows[i].format;
            return STATUS_OK;
        }
    }
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "--format must be auto, jsonl, json or csv, not '%.80s'", text);
}

static Status to_delimiter(const char *text, char *out, Error *err)
{
    if (text == NULL)
        return STATUS_OK;
    bool is_tab = strcmp(text, "\\t") == 0;
    if (!is_tab && (strlen(text) != 1 || strchr("\"\r\n", text[0]) != NULL ||
                    ((unsigned char)text[0] & 0x80) != 0))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--delimiter must be one character such as ; or \\t, not '%.80s'", text);
    *out = is_tab ? '\t' : text[0];
    return STATUS_OK;
}

static bool is_advised(const ImportArguments *a)
{
    return a->partition_key != NULL && strcmp(a->partition_key, IMPORT_KEY_ADVISE) == 0;
}

/* What can be known to be wrong before a server is asked. */
static Status check_paths(const ImportArguments *a, Arena *arena, Error *err)
{
    const RowMapping *ignored = NULL;
    TRY(row_mapping_parse(arena, a->set.items, a->set.count, a->id_from, &ignored, err));
    Slice paths =
        a->partition_key == NULL || is_advised(a) ? SLICE_EMPTY : slice_from_cstr(a->partition_key);
    while (paths.ptr != NULL) {
        PropertyPath path;
        size_t position = 0;
        Slice text = slice_trim(slice_cut(&paths, ','));
        if (!property_path_parse(arena, text, &path, &position))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "--partition-key: '%.*s' is not a path such as /pk",
                             SLICE_CUT(text, 100));
    }
    return STATUS_OK;
}

static Status to_options(const ImportArguments *a, const ArgumentList *files, Arena *arena,
                         ImportOptions *out, Error *err)
{
    ImportOptions o = {
        .database = a->database,
        .container = a->container,
        .sources = files->items,
        .source_count = files->count,
        .csv = {.all_are_text = a->csv_strings},
        .sets = a->set.items,
        .set_count = a->set.count,
        .id_from = a->id_from,
        .partition_key = a->partition_key,
        .is_create = a->create,
        .no_bulk = a->no_bulk,
        .resume_path = a->resume,
        .rejects_path = a->rejects,
        .has_digest = a->digest,
        .is_quiet = a->quiet,
        .stop_fd = -1,
    };
    if (files->count == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "which file? Name files or folders, or - for standard input");
    if (a->create && a->partition_key == NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--create needs --partition-key, such as --partition-key /pk");
    if (is_advised(a) && !a->create)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--partition-key advise is for --create: a container that exists keeps "
                         "its key");
    if (a->throughput != NULL && !a->create)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "--throughput is for --create");
    TRY(check_paths(a, arena, err));
    TRY(to_format(a->format, &o.format, err));
    TRY(to_delimiter(a->delimiter, &o.csv.delimiter, err));
    TRY(argument_number("concurrency", a->concurrency, 1, IMPORT_CONCURRENCY_MAX, &o.concurrency,
                        err));
    if (a->max_ru != NULL)
        TRY(argument_number("max-ru", a->max_ru, 1, RU_MAX, &o.ru_per_s_max, err));
    if (a->throughput != NULL)
        TRY(argument_number("throughput", a->throughput, 400, RU_MAX, &o.create_ru, err));
    *out = o;
    return STATUS_OK;
}

static void print_summary(const ImportOptions *options, const ImportSummary *s)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 1000);
    progress_print_count(s->digest.count, &text);
    buf_slice(&text, SLICE(" items written"));
    if (s->rejected > 0) {
        buf_slice(&text, SLICE(", "));
        progress_print_count(s->rejected, &text);
        buf_slice(&text, SLICE(" rejected"));
    }
    buf_format(&text, ", %.1f s, %.0f RU, ", s->seconds, s->ru);
    progress_print_count(s->throttled, &text);
    buf_slice(&text, SLICE(" throttled"));
    if (s->is_resumed)
        buf_slice(&text, SLICE("; counts include earlier runs"));
    if (!options->is_quiet)
        (void)fprintf(stderr, "%.*s\n", SLICE_ARG(buf_view(&text)));
    if (options->has_digest) {
        char digest[ITEM_DIGEST_LEN];
        item_digest_print(&s->digest, digest);
        (void)printf("%.*s %llu\n", ITEM_DIGEST_LEN, digest, (unsigned long long)s->digest.count);
    }
}

/* Chooses the key of a new container. */
static Status choose_key(ImportOptions *options, Arena *arena, Buf *begun, Error *err)
{
    const char *key = NULL;
    TRY(import_key_choose(options, arena, begun, &key, err));
    options->is_create = key != NULL;
    options->partition_key = key;
    options->stdin_begun = buf_view(begun);
    return STATUS_OK;
}

static int run(const ImportOptions *options)
{
    ImportSummary summary;
    Error err;
    Status status = import_run(options, &summary, &err);
    if (status != STATUS_OK && summary.requests == 0 && summary.digest.count == 0) {
        (void)fprintf(stderr, "orrery: %s\n", err.message);
        return EXIT_FAILURE;
    }
    print_summary(options, &summary);
    if (status != STATUS_OK)
        (void)fprintf(stderr, "orrery: %s\n", err.message);
    if ((status != STATUS_OK || summary.is_interrupted) && options->resume_path != NULL)
        (void)fprintf(stderr, "orrery: not finished; the same command goes on from here\n");
    else if (summary.is_interrupted)
        (void)fprintf(stderr, "orrery: interrupted\n");
    bool is_all = status == STATUS_OK && !summary.is_interrupted && summary.rejected == 0;
    return is_all ? EXIT_SUCCESS : EXIT_FAILURE;
}

int import_main(int argc, char *const *argv, char *const *environment)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(client_close) Client *client = NULL;
    ImportArguments arguments = {0};
    ArgumentList files = {0};
    ImportOptions options;
    bool help = false;
    Error err;
    Status status = arguments_parse(&TABLE, &arena, argc, argv, &arguments, &files, &help, &err);
    if (status == STATUS_OK && help) {
        command_print_help(&IMPORT_COMMAND, stdout);
        return EXIT_SUCCESS;
    }
    if (status == STATUS_OK)
        status = to_options(&arguments, &files, &arena, &options, &err);
    ConnectionArguments connection = {
        .endpoint = arguments.endpoint,
        .key = arguments.key,
        .key_file = arguments.key_file,
        .cert = arguments.cert,
        .insecure = arguments.insecure,
        .database = arguments.database,
        .container = arguments.container,
    };
    if (status == STATUS_OK)
        status = connection_open(&connection, &arena, environment, 0, &client, &err);
    options_hide(argc, argv, environment);
    if (status != STATUS_OK) {
        (void)fprintf(stderr, "orrery: %s\n", err.message);
        return status == STATUS_UNAVAILABLE ? EXIT_FAILURE : EXIT_USAGE;
    }
    options.client = client;
    AUTO(buf_done) Buf begun;
    buf_init(&begun, IMPORT_SAMPLE_STDIN_MAX);
    if (is_advised(&arguments) && choose_key(&options, &arena, &begun, &err) != STATUS_OK) {
        (void)fprintf(stderr, "orrery: %s\n", err.message);
        return EXIT_FAILURE;
    }
    if (stop_signal_open(&options.stop_fd, &err) != STATUS_OK) {
        (void)fprintf(stderr, "orrery: %s\n", err.message);
        return EXIT_FAILURE;
    }
    return run(&options);
}
