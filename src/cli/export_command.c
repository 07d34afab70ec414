/* export_command.c - see export_command.h. The work is done in transfer/export.h. */
#include "cli/export_command.h"

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/options.h"
#include "transfer/export.h"
#include "transfer/progress.h"
#include "transfer/stop_signal.h"

#include <stdio.h>
#include <stdlib.h>

enum { EXIT_USAGE = 2, RU_MAX = 100000000 };

typedef struct ExportArguments {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) ARGUMENT_TYPE_##kind field;
#include "cli/export_options.def"
#undef ARGUMENT_ROW
} ExportArguments;

static const ArgumentRow ROWS[] = {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) \
    ARGUMENT_TABLE_ROW(ExportArguments, field, name, kind, placeholder, fallback, help),
#include "cli/export_options.def"
#undef ARGUMENT_ROW
};
static const ArgumentTable TABLE = {"export", ROWS, ARRAY_COUNT(ROWS)};

const Command EXPORT_COMMAND = {
    .name = "export",
    .summary = "write the items of a container to a file",
    .usage = "export --database ID --container ID [options]",
    .about =
        "Writes the items of a container, or the results of a query, to a file or to standard "
        "output: as JSON lines, a JSON array or CSV, plain or compressed. All physical partitions "
        "are read at the same time. An item that exists all the while is written exactly once, "
        "also if it is changed or its partition is split. 'orrery import' reads what this writes.",
    .options = &TABLE,
    .notes = "The exit code is 0 if everything was written, 1 if it failed or was interrupted, and "
             "2 if it was called in a wrong way.",
    .examples = "orrery export --database shop --container orders --output orders.jsonl.zst\n"
                "orrery export --database shop --container orders --format csv \\\n"
                "    --query \"SELECT c.id, c.total FROM c WHERE c.total > 100\"\n"
                "orrery export --database shop --container orders --digest --output /dev/null\n",
    .main = export_main,
};

static Status to_format(const ExportArguments *a, RowFormat *out, Error *err)
{
    CsvOptions ignored = {0};
    Slice path = a->output == NULL ? SLICE_EMPTY : slice_from_cstr(a->output);
    RowFormat named = row_format_of_name(path, &ignored);
    if (slice_ends_with(compression_strip(path), SLICE(".json")))
        named = ROW_FORMAT_JSON;
    bool is_tsv = slice_ends_with(compression_strip(path), SLICE(".tsv"));
    if (is_tsv && strcmp(a->format, "auto") == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "CSV is written with commas; name the file .csv, or give --format");
    if (strcmp(a->format, "auto") == 0)
        *out = named == ROW_FORMAT_AUTO ? ROW_FORMAT_LINES : named;
    else if (strcmp(a->format, "jsonl") == 0)
        *out = ROW_FORMAT_LINES;
    else if (strcmp(a->format, "json") == 0)
        *out = ROW_FORMAT_JSON;
    else if (strcmp(a->format, "csv") == 0)
        *out = ROW_FORMAT_CSV;
    else
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--format must be auto, jsonl, json or csv, not '%.80s'", a->format);
    return STATUS_OK;
}

static Status to_compression(const ExportArguments *a, Compression *out, Error *err)
{
    if (strcmp(a->compress, "auto") == 0)
        *out =
            a->output == NULL ? COMPRESSION_NONE : compression_of_name(slice_from_cstr(a->output));
    else if (strcmp(a->compress, "none") == 0)
        *out = COMPRESSION_NONE;
    else if (strcmp(a->compress, "gzip") == 0)
        *out = COMPRESSION_GZIP;
    else if (strcmp(a->compress, "zstd") == 0)
        *out = COMPRESSION_ZSTD;
    else
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--compress must be auto, none, gzip or zstd, not '%.80s'", a->compress);
    return STATUS_OK;
}

static Status to_options(const ExportArguments *a, const ArgumentList *rest, ExportOptions *out,
                         Error *err)
{
    ExportOptions o = {
        .database = a->database,
        .container = a->container,
        .query = a->query,
        .path = a->output != NULL && strcmp(a->output, "-") != 0 ? a->output : NULL,
        .strips_system = a->strip_system,
        .resume_path = a->resume,
        .has_digest = a->digest,
        .is_quiet = a->quiet,
        .stop_fd = -1,
    };
    if (rest->count > 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "what is '%.80s'? The file is named with --output", rest->items[0]);
    TRY(to_format(a, &o.format, err));
    TRY(to_compression(a, &o.compression, err));
    if (o.resume_path != NULL && (o.path == NULL || o.format == ROW_FORMAT_CSV))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--resume needs --output, and cannot be used with CSV, whose first line "
                         "is known only at the end");
    TRY(argument_number("concurrency", a->concurrency, 1, EXPORT_CONCURRENCY_MAX, &o.concurrency,
                        err));
    if (a->max_ru != NULL)
        TRY(argument_number("max-ru", a->max_ru, 1, RU_MAX, &o.ru_per_s_max, err));
    *out = o;
    return STATUS_OK;
}

static void print_summary(const ExportOptions *options, const ExportSummary *s)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 1000);
    progress_print_count(s->digest.count, &text);
    buf_format(&text, " items read, %.1f s, %.0f RU, ", s->seconds, s->ru);
    progress_print_count(s->throttled, &text);
    buf_slice(&text, SLICE(" throttled"));
    if (s->is_resumed)
        buf_slice(&text, SLICE("; counts include earlier runs"));
    if (!options->is_quiet)
        (void)fprintf(stderr, "%.*s\n", SLICE_ARG(buf_view(&text)));
    if (options->has_digest) {
        char digest[ITEM_DIGEST_LEN];
        item_digest_print(&s->digest, digest);
        /* Standard output may have the items. */
        (void)fprintf(options->path == NULL ? stderr : stdout, "%.*s %llu\n", ITEM_DIGEST_LEN,
                      digest, (unsigned long long)s->digest.count);
    }
}

static int run(const ExportOptions *options)
{
    ExportSummary summary;
    Error err;
    Status status = export_run(options, &summary, &err);
    bool has_begun = summary.requests > 0 || summary.is_resumed;
    if (status == STATUS_OK || has_begun)
        print_summary(options, &summary);
    if (status != STATUS_OK)
        (void)fprintf(stderr, "orrery: %s\n", err.message);
    if ((status != STATUS_OK || summary.is_interrupted) && has_begun &&
        options->resume_path != NULL)
        (void)fprintf(stderr, "orrery: not finished; the same command goes on from here\n");
    else if (summary.is_interrupted)
        (void)fprintf(stderr, "orrery: interrupted\n");
    return status == STATUS_OK && !summary.is_interrupted ? EXIT_SUCCESS : EXIT_FAILURE;
}

int export_main(int argc, char *const *argv, char *const *environment)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(client_close) Client *client = NULL;
    ExportArguments arguments = {0};
    ArgumentList rest = {0};
    ExportOptions options;
    bool help = false;
    Error err;
    Status status = arguments_parse(&TABLE, &arena, argc, argv, &arguments, &rest, &help, &err);
    if (status == STATUS_OK && help) {
        command_print_help(&EXPORT_COMMAND, stdout);
        return EXIT_SUCCESS;
    }
    if (status == STATUS_OK)
        status = to_options(&arguments, &rest, &options, &err);
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
        status = connection_open(&connection, &arena, environment, EXPORT_ANSWER_BYTES_MAX, &client,
                                 &err);
    options_hide(argc, argv, environment);
    if (status != STATUS_OK) {
        (void)fprintf(stderr, "orrery: %s\n", err.message);
        return status == STATUS_UNAVAILABLE ? EXIT_FAILURE : EXIT_USAGE;
    }
    options.client = client;
    if (stop_signal_open(&options.stop_fd, &err) != STATUS_OK) {
        (void)fprintf(stderr, "orrery: %s\n", err.message);
        return EXIT_FAILURE;
    }
    return run(&options);
}
