/* copy_command.c - see copy_command.h. The work is done in transfer/copy.h. */
#include "cli/copy_command.h"

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/options.h"
#include "transfer/copy.h"
#include "transfer/progress.h"
#include "transfer/stop_signal.h"
#include "json/property_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, RU_MAX = 100000000, HOLD_MS_MAX = 30000, POLICY_BYTES_MAX = 1 << 20 };

typedef struct CopyArguments {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) ARGUMENT_TYPE_##kind field;
#include "cli/copy_options.def"
#undef ARGUMENT_ROW
} CopyArguments;

static const ArgumentRow ROWS[] = {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) \
    ARGUMENT_TABLE_ROW(CopyArguments, field, name, kind, placeholder, fallback, help),
#include "cli/copy_options.def"
#undef ARGUMENT_ROW
};
static const ArgumentTable TABLE = {"copy", ROWS, ARRAY_COUNT(ROWS)};

const Command COPY_COMMAND = {
    .name = "copy",
    .summary = "copy a container, perhaps with another partition key, while it is used",
    .usage = "copy --database ID --container ID [options]",
    .about =
        "Copies a container to a new one, on the same server or on another, with another partition "
        "key or indexing policy if you like, while it is written to. With --swap the copy then "
        "takes the name of the source over in one step, so that a container gets another partition "
        "key while its applications run.",
    .options = &TABLE,
    .notes =
        "The exit code is 0 if the copy has everything, 1 if items were rejected or it failed or "
        "was interrupted, and 2 if it was called in a wrong way.",
    .examples =
        "orrery copy --database shop --container orders --to orders-by-user --partition-key /user\n"
        "orrery copy --database shop --container orders --partition-key /user --swap \\\n"
        "    --resume copy.state\n"
        "orrery copy --database shop --container orders --to orders \\\n"
        "    --to-endpoint https://other:8081 --to-key-file other.key\n",
    .main = copy_main,
};

static Status check_paths(const char *text, Arena *arena, Error *err)
{
    Slice paths = text == NULL ? SLICE_EMPTY : slice_from_cstr(text);
    while (paths.ptr != NULL) {
        PropertyPath path;
        size_t position = 0;
        Slice one = slice_trim(slice_cut(&paths, ','));
        if (!property_path_parse(arena, one, &path, &position))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "--partition-key: '%.*s' is not a path such as /pk",
                             SLICE_CUT(one, 100));
    }
    return STATUS_OK;
}

static Status read_policy(const char *path, Arena *arena, const char **out, Error *err)
{
    if (path == NULL)
        return STATUS_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "cannot open '%.200s': %s", path,
                         strerror(errno));
    char *text = arena_alloc(arena, POLICY_BYTES_MAX + 1);
    size_t len = 0;
    ssize_t got = 1;
    while (got > 0 && len < POLICY_BYTES_MAX) {
        got = read(fd, text + len, POLICY_BYTES_MAX - len);
        len += got > 0 ? (size_t)got : 0;
    }
    (void)close(fd); /* only read from */
    text[len] = '\0';
    Json policy;
    Error bad;
    if (got < 0 || json_parse(arena, slice_make(text, len), &policy, &bad) != STATUS_OK ||
        !json_is(policy, JSON_OBJECT) || strlen(text) != len)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'%.200s' is not an indexing policy: expected a JSON object of up to %d "
                         "bytes",
                         path, POLICY_BYTES_MAX);
    *out = text;
    return STATUS_OK;
}

static Status check_swap(const CopyArguments *a, Error *err)
{
    if (a->swap && (a->to_endpoint != NULL || a->to_database != NULL))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--swap is for a copy in the same database of the same server; leave "
                         "--to-endpoint and --to-database out");
    if (a->drop_old && !a->swap)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "--drop-old is for --swap");
    if (a->swap && a->no_retention)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--swap needs all versions of the source, so that no delete is missed; "
                         "leave --no-retention out");
    return STATUS_OK;
}

static Status to_options(const CopyArguments *a, const ArgumentList *rest, Arena *arena,
                         CopyOptions *out, Error *err)
{
    if (rest->count > 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "what is '%.80s'? The container to make is named with --to",
                         rest->items[0]);
    if (a->database == NULL || a->container == NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--database and --container are needed");
    CopyOptions o = {
        .is_one_server = a->to_endpoint == NULL,
        .database = a->database,
        .container = a->container,
        .to_database = a->to_database != NULL ? a->to_database : a->database,
        .to_container = a->to,
        .partition_key = a->partition_key,
        .no_scripts = a->no_scripts,
        .no_retention = a->no_retention,
        .no_bulk = a->no_bulk,
        .swaps = a->swap,
        .drops_old = a->drop_old,
        .resume_path = a->resume,
        .rejects_path = a->rejects,
        .is_quiet = a->quiet,
        .stop_fd = -1,
    };
    if (o.to_container == NULL)
        o.to_container = arena_cstr(arena, arena_format(arena, "%s-copy", a->container));
    if (o.is_one_server && strcmp(o.database, o.to_database) == 0 &&
        strcmp(o.container, o.to_container) == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "a container cannot be copied to itself");
    TRY(check_swap(a, err));
    TRY(check_paths(a->partition_key, arena, err));
    TRY(read_policy(a->indexing, arena, &o.indexing, err));
    TRY(argument_number("concurrency", a->concurrency, 1, COPY_CONCURRENCY_MAX, &o.concurrency,
                        err));
    TRY(argument_number("hold", a->hold, 100, HOLD_MS_MAX, &o.hold_ms, err));
    if (a->max_ru != NULL)
        TRY(argument_number("max-ru", a->max_ru, 1, RU_MAX, &o.ru_per_s_max, err));
    if (a->throughput != NULL)
        TRY(argument_number("throughput", a->throughput, 400, RU_MAX, &o.throughput, err));
    *out = o;
    return STATUS_OK;
}

/* ---- what is told at the end ---- */

static void print_side(const char *name, const ItemDigest *digest)
{
    char text[ITEM_DIGEST_LEN];
    item_digest_print(digest, text);
    (void)printf("%s %.*s %llu\n", name, ITEM_DIGEST_LEN, text, (unsigned long long)digest->count);
}

static bool is_equal(const CopySummary *s)
{
    return s->source.count == s->copy.count &&
           memcmp(&s->source.sum, &s->copy.sum, sizeof(s->copy.sum)) == 0;
}

static void print_summary(const CopyOptions *options, const CopySummary *s)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 2000);
    progress_print_count(s->copied, &text);
    buf_slice(&text, SLICE(" changes copied"));
    if (s->removed > 0) {
        buf_slice(&text, SLICE(", "));
        progress_print_count(s->removed, &text);
        buf_slice(&text, SLICE(" removed that the source does not have"));
    }
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
    if (s->has_digests) {
        print_side("source", &s->source);
        print_side("copy", &s->copy);
    }
}

static void print_swap(const CopyOptions *options, const CopySummary *s)
{
    if (options->is_quiet || !s->is_swapped)
        return;
    if (s->was_swapped)
        (void)fprintf(stderr, "the copy has had the name '%s' since an earlier run\n",
                      options->container);
    else
        (void)fprintf(stderr, "the copy has the name '%s' now; writes waited for %.0f ms\n",
                      options->container, s->held_ms);
    (void)fprintf(stderr, "the old container %s '%s'\n", options->drops_old ? "was" : "is",
                  s->old_name);
}

static int run(const CopyOptions *options)
{
    CopySummary summary;
    Error err;
    Status status = copy_run(options, &summary, &err);
    if (summary.requests > 0)
        print_summary(options, &summary);
    if (status == STATUS_OK)
        print_swap(options, &summary);
    if (summary.is_interrupted)
        (void)fprintf(stderr, "orrery: interrupted%s\n",
                      options->resume_path != NULL ? "; the same command goes on from here" : "");
    else if (status != STATUS_OK)
        (void)fprintf(stderr, "orrery: %s\n", err.message);
    if (status != STATUS_OK)
        return EXIT_FAILURE;
    if (summary.has_digests && !is_equal(&summary) && !summary.is_swapped && summary.rejected == 0)
        (void)fprintf(stderr, "orrery: the source is still being written to, so the two differ; "
                              "run it again when it rests, or use --swap\n");
    bool is_all = summary.rejected == 0 && (!summary.has_digests || is_equal(&summary));
    return is_all ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- main ---- */

static Status open_clients(const CopyArguments *a, const CopyOptions *options, Arena *arena,
                           char *const *environment, Client **from, Client **to, Error *err)
{
    ConnectionArguments source = {
        .endpoint = a->endpoint,
        .key = a->key,
        .key_file = a->key_file,
        .cert = a->cert,
        .insecure = a->insecure,
        .database = options->database,
        .container = options->container,
    };
    ConnectionArguments target = source;
    if (a->to_endpoint != NULL) {
        target.endpoint = a->to_endpoint;
        target.cert = a->to_cert;
        target.insecure = a->to_insecure;
    }
    if (a->to_key != NULL || a->to_key_file != NULL) {
        target.key = a->to_key;
        target.key_file = a->to_key_file;
    }
    TRY(connection_open(&source, arena, environment, COPY_ANSWER_BYTES_MAX, from, err));
    return connection_open(&target, arena, environment, COPY_ANSWER_BYTES_MAX, to, err);
}

int copy_main(int argc, char *const *argv, char *const *environment)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(client_close) Client *from = NULL;
    AUTO(client_close) Client *to = NULL;
    CopyArguments arguments = {0};
    ArgumentList rest = {0};
    CopyOptions options;
    bool help = false;
    Error err;
    Status status = arguments_parse(&TABLE, &arena, argc, argv, &arguments, &rest, &help, &err);
    if (status == STATUS_OK && help) {
        command_print_help(&COPY_COMMAND, stdout);
        return EXIT_SUCCESS;
    }
    if (status == STATUS_OK)
        status = to_options(&arguments, &rest, &arena, &options, &err);
    if (status == STATUS_OK)
        status = open_clients(&arguments, &options, &arena, environment, &from, &to, &err);
    options_hide(argc, argv, environment);
    if (status != STATUS_OK) {
        (void)fprintf(stderr, "orrery: %s\n", err.message);
        return status == STATUS_UNAVAILABLE ? EXIT_FAILURE : EXIT_USAGE;
    }
    options.from = from;
    options.to = to;
    if (stop_signal_open(&options.stop_fd, &err) != STATUS_OK) {
        (void)fprintf(stderr, "orrery: %s\n", err.message);
        return EXIT_FAILURE;
    }
    return run(&options);
}
